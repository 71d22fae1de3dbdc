/* SPDX-License-Identifier: Apache-2.0 */
/* Starting the two processes of a sandbox: the gofer, which holds the container's files, and the
 * sentry, which serves its programs. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "oci/spec.h"
#include "platform/base/compiler.h"
#include "platform/base/errmsg.h"
#include "runtime/cgroup.h"
#include "runtime/cli.h"
#include "runtime/namespaces.h"
#include "runtime/overlay_choice.h"
#include "runtime/procid.h"
#include "runtime/rootfs.h"

/* Everything borrowed; the descriptors stay the caller's. */
struct sandbox_config {
    const struct cli *cli;
    const struct oci_spec *spec;
    const char *id, *home, *cgroup_path;
    const char *config;
    size_t config_size;
    const struct rootfs_trees *trees;
    const struct cgroup *cgroup;
    const struct namespaces *namespaces;
    int control_sock; /* listening */
    int log_fd;       /* of sentry and gofer; −1: none */
    int stdio[3];     /* of the container; −1: closed. Unused with a console */
    int console;      /* slave of the host pty; −1: none */
    uint16_t console_rows, console_cols;
    const int *preserved; /* the container's descriptors 3, 4, … */
    unsigned preserved_len, listen_fds;
    bool foreground; /* the container ends when the creating process does */
    struct overlay_choice overlay;
    uint64_t layer_used, layer_names; /* with a limit: what the layer on disk takes */
};

struct sandbox {
    struct procid gofer, sentry; /* children of the calling process */
    int gofer_ready;             /* read end of the gofer's ready pipe */
    int sentry_sock;             /* start-up socket */
};

#define SANDBOX_NONE {.gofer_ready = -1, .sentry_sock = -1}

/* Starts both processes. On failure nothing is left of them. Return: 0, −errno with a message. */
MUST_CHECK int sandbox_spawn(const struct sandbox_config *config, struct sandbox *ret_sandbox,
                             struct errmsg *e);
/* Waits until the gofer is confined and serves. */
MUST_CHECK int sandbox_wait_gofer(struct sandbox *sb, struct errmsg *e);
/* Waits until the sentry is confined and has built the container; puts its zygote into the cgroup. */
MUST_CHECK int sandbox_wait_sentry(struct sandbox *sb, const struct sandbox_config *config,
                                   struct errmsg *e);
/* Lets the sandbox outlive the calling process (not in the foreground). */
MUST_CHECK int sandbox_commit(struct sandbox *sb, struct errmsg *e);
/* Kills both and waits for their end. */
void sandbox_kill(struct sandbox *sb);
/* Closes descriptors; the processes live on. */
void sandbox_release(struct sandbox *sb);

/* Says how one of the two ended. Return: 0 if as it should, −errno with a message. */
int sandbox_describe_status(int wait_status, const char *name, struct errmsg *e);

/* --- the two halves --- */

MUST_CHECK int sandbox_spawn_gofer(const struct sandbox_config *config, int sock, int shm,
                                   struct sandbox *sb, struct errmsg *e);
MUST_CHECK int sandbox_spawn_sentry(const struct sandbox_config *config, int gofer_sock, int gofer_shm,
                                    struct sandbox *sb, struct errmsg *e);
/* Replaces the calling process by this program under another verb. Returns only on failure. */
int sandbox_exec_self(int exe, const char *verb, const char *id);
#ifdef __SANITIZE_ADDRESS__
/* A sanitizer build is linked dynamically and can't be exec'd in an empty root: fn(verb) goes on in the forked process, as
 * main would. Its result is the exit status. Set by main before anything else. */
void sandbox_set_verb_main(int (*fn)(const char *verb));
#endif
