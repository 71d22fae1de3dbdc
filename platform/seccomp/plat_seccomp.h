/* SPDX-License-Identifier: Apache-2.0 */
/* The seccomp backend: guest processes are host processes that trap into the stub. */
#pragma once

#include <stdbool.h>

#include "platform/base/compiler.h"
#include "platform/base/errmsg.h"

struct platform;

struct plat_seccomp_config {
    /* Lets the backend wait for descriptors: fn(arg) is called on the kernel thread when fd is readable. The event loop is
     * the sentry's, which the platform may not include. Return: a token for unwatch, NULL on no memory. */
    void *(*watch)(int fd, void (*fn)(void *arg), void *arg);
    void (*unwatch)(void *token);
    /* Suspends the calling fiber / makes it run again; self tells which one calls. */
    void *(*self)(void);
    void (*park)(void);
    void (*ready)(void *fiber);
    /* Runs fn(arg) on a new fiber (0 or −ENOMEM); runs fn(arg) on another thread while the calling fiber is suspended. */
    int (*spawn)(void (*fn)(void *arg), void *arg);
    long (*offload)(long (*fn)(void *arg), void *arg);
    /* fn(arg) is called on the kernel thread whenever it would sleep; it returns true to be called again after a look at
     * the descriptors. NULL takes that of arg back. */
    void (*idle)(bool (*fn)(void *arg), void *arg);
    unsigned pool_size; /* stub processes kept ready */
    int proc_fd; /* root of a procfs of the caller's pid namespace, borrowed for ever; −1 = none */
};

/* Makes the zygote (a child of the caller) with its filter, and the backend around it. To be called before the
 * caller locks down: it forks, and takes the listener with pidfd_getfd. The caller must be single-threaded.
 * The zygote has no capabilities, no descriptors, and the caller's uid.
 * Errors: −errno with a message that names what the host refused. */
MUST_CHECK int plat_seccomp_new(const struct plat_seccomp_config *config, struct errmsg *e,
                                struct platform **ret_platform);
/* Return: the zygote's pid in the caller's pid namespace (to put it into a cgroup before any guest runs). */
int plat_seccomp_zygote_pid(const struct platform *p);
