/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of runtime/boot share. Everything runs on the kernel thread. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "oci/spec.h"
#include "platform/base/compiler.h"
#include "platform/base/errmsg.h"
#include "runtime/bootproto.h"
#include "runtime/control.h"
#include "sentry/core/evloop.h"
#include "sentry/sentry.h"

struct boot {
    struct boot_params params; /* (i) */
    char *params_memory;       /* (i) */
    struct oci_spec *spec;     /* (i) */
    struct sentry *sentry;     /* (i) */
    struct container *container;
    struct platform *platform; /* consumed by the container */
    enum control_state state;
    bool committed;     /* the creator has let go */
    int exit_sock;      /* copy of the gofer's socket: tells of its death, carries its end */
    int console_fd;     /* copy of the console's slave, to read its size; −1: none */
    int winch_fd;       /* signalfd of SIGWINCH; −1: none */
    struct cbpf_insn *seccomp; /* (i) filter of the container's processes, NULL: none */
    uint32_t seccomp_len;      /* (i) */
    int wait_status;    /* of the container, once state is CONTROL_EXITING */
    struct evloop_watch sock_watch, gofer_watch, winch_watch;
};

/* Ends the container: the gofer is told how, and with the sentry everything else goes. */
void boot_end(struct boot *b, int wait_status);

/* --- boot_spec.c --- */

/* Everything that a container's config points to while sentry_container_create reads it. */
struct boot_config {
    struct sentry_container_config config;
    struct arena arena;
    int preserved[BOOTPROTO_PRESERVED_MAX];
};

/* Translates the spec. Descriptors in it are still the caller's. Return: 0, −errno with a message.
 * Owns: caller calls boot_config_free. */
MUST_CHECK int boot_config_make(const struct boot *b, struct boot_config **ret_config, struct errmsg *e);
void boot_config_free(struct boot_config *config);

/* A process of the spec or of an exec, without descriptors; arrays in a. */
MUST_CHECK int boot_process_make(struct arena *a, const struct oci_process *p, const char *home,
                                 struct sentry_process *ret_process);

/* --- boot_seccomp.c --- */

/* Makes the filter program of linux.seccomp, if there is one. Before lock-down. Return: 0, −errno with a message. */
MUST_CHECK int boot_seccomp_make(struct boot *b, struct errmsg *e);
/* Puts the container's processes under it. */
void boot_seccomp_apply(const struct boot *b, struct sentry_process *p);

/* --- control_server.c --- */

/* Serves the listening control socket. Return: 0, −errno. */
MUST_CHECK int control_server_start(struct boot *b);

/* --- boot_hooks.c --- */

/* Runs the startContainer hooks inside the container. On a fiber. */
MUST_CHECK int boot_hooks_start_container(struct boot *b, struct errmsg *e);

/* --- host_rules.c --- */

/* Installs the sentry's seccomp list. report: log a refused call before the process ends. */
MUST_CHECK int host_rules_install(bool report, struct errmsg *e);
