/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that the runtime starts in a container: its init and those of exec. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"
#include "platform/base/errmsg.h"

struct container;
struct sentry_process;
struct task;
struct tty;

/* A process made but not started. */
struct process {
    struct task *task;     /* referenced */
    struct tty *tty;       /* referenced; its terminal, or NULL */
    char *path;            /* program, as found in PATH */
    struct file *file;     /* referenced; opened for execution */
    struct process_args *args;
};

/* Makes the task of p in container c: credentials, working directory, descriptors, limits, session, terminal; finds its program.
 * Consumes p's descriptors in any case. is_init: the container's pid 1, whose working directory is made when it is missing and
 * whose terminal is /dev/console. On a fiber; parks. Errors: −errno with runc's wording in e, except for the prefix. */
MUST_CHECK int process_new(struct container *c, const struct sentry_process *p, bool is_init, struct errmsg *e,
                           struct process **ret_process);
/* Runs the program. on_exit(arg, wait status) is called when the process is gone; not when this fails. The process
 * object is consumed. On a fiber; parks until the program is loaded. Return: guest pid in the container, or −errno. */
MUST_CHECK int process_start(OWNS struct process *process, struct errmsg *e,
                             void (*on_exit)(void *arg, int wait_status), void *arg);
/* Ends a process that was never started. */
void process_free(struct process *process); /* NULL is fine */
