/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a container as commands drive it: create, start, signal, delete, and what it is now. */
#pragma once

#include <stdbool.h>

#include "oci/ocistate.h"
#include "platform/base/compiler.h"
#include "platform/base/errmsg.h"
#include "runtime/cgroup.h"
#include "runtime/cli.h"
#include "runtime/console.h"
#include "runtime/overlay_choice.h"
#include "runtime/sandbox.h"
#include "runtime/statefile.h"

/* A container found under --root. */
struct ctr {
    const char *id; /* borrowed */
    int dir;        /* its state directory */
    struct statefile state;
    struct cgroup cgroup;
    enum ocistate_status status; /* at the time of the look */
};

/* Finds a container and what it is doing now. Return: 0, −ENOENT (runc's text), −errno.
 * Owns: caller calls ctr_close. */
MUST_CHECK int ctr_open(const struct cli *cli, const char *id, struct ctr *ret_ctr, struct errmsg *e);
void ctr_close(struct ctr *c);
/* The state document's fields; strings stay the container's. */
void ctr_describe(const struct ctr *c, struct ocistate *ret_state);

/* What create and run have in common. */
struct ctr_create {
    const char *id, *bundle, *console_socket, *pid_file;
    unsigned preserve_fds;
    bool foreground; /* run without --detach: the container ends with this process */
    struct overlay_flags overlay;
    bool layer_ends; /* the layer goes with the container, whoever deletes it */
    const char *config; /* NULL: the bundle's config.json */
    size_t config_size;
};

/* A container just made by this process. */
struct ctr_new {
    struct ctr ctr;
    int lock;
    struct sandbox sandbox;
    struct console console; /* master only; foreground with a terminal */
    bool terminal;
};

/* Makes a container in the state "created". On failure nothing is left of it.
 * Owns: caller calls ctr_new_close. */
MUST_CHECK int ctr_create(const struct cli *cli, const struct ctr_create *how, struct ctr_new *ret_new,
                          struct errmsg *e);
void ctr_new_close(struct ctr_new *n);

/* Starts a created container. Locks: taken by the caller. */
MUST_CHECK int ctr_start(struct ctr *c, struct errmsg *e);
/* Sends a signal to init, or to every process. */
MUST_CHECK int ctr_kill(struct ctr *c, int signo, bool all, struct errmsg *e);
/* Kills what is left of the container, runs its poststop hooks and removes every trace; with_layer: also of a layer that would be
 * kept for the next container of its name. Can be interrupted and repeated. Locks: taken by the caller. */
MUST_CHECK int ctr_destroy(const struct cli *cli, struct ctr *c, bool with_layer, struct errmsg *e);

/* Makes path absolute against the working directory. Return: 0 or −errno. Owns: mem_free. */
MUST_CHECK int ctr_absolute(const char *path, char **ret_path);
/* Writes pid to a file in one step. */
MUST_CHECK int ctr_write_pid_file(const char *path, int pid, struct errmsg *e);
/* Where a spec's config lies: reads BUNDLE/config.json. Owns: caller frees *ret_json with mem_free. */
MUST_CHECK int ctr_read_bundle(const char *bundle, char **ret_json, size_t *ret_size, struct errmsg *e);
