/* SPDX-License-Identifier: Apache-2.0 */
/* The gofer's entry point: what runtime/ prepares, and what the gofer does with it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "platform/base/compiler.h"
#include "platform/common/hostfilter.h"

enum { GOFER_TREES_MAX = 1024 };

/* One tree that the sentry may use. */
struct gofer_tree {
    int fd;         /* host descriptor of the tree's root, O_PATH: a directory or a single file */
    bool read_only; /* every change and every writable open is refused with EROFS */
};

/* Everything the gofer has. What the caller must have arranged before srv_main, because srv_main
 * cannot do it any more or should not have the right to:
 *  - Own mount namespace; its root and the working directory are an empty directory. The trees are
 *    reached through the descriptors below and nothing else is mounted. The trees need not be
 *    nodev or nosuid (the gofer opens no devices and runs no programs), but it does no harm.
 *  - Effective and permitted capabilities are CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, FSETID,
 *    MKNOD and SETFCAP; bounding, inheritable and ambient are empty.
 *  - The hard limit of RLIMIT_NOFILE is as high as the host gives (each file that the sentry knows
 *    may cost a descriptor): raise it to 1048576 before dropping CAP_SYS_RESOURCE. srv_main raises
 *    the soft limit.
 *  - Signals have their default action and none is blocked. Open descriptors are those below and
 *    the log's, and no others: any other would be a way out. stdio is not needed.
 *  - It is not pid 1 of a pid namespace: its death by its own signal must work.
 * srv_main then sets umask 0, RLIMIT_CORE 0 and non-dumpable, makes proc_self_fd its working
 * directory, installs its seccomp list (srv_rules.c) and serves until EXIT or until the sentry is
 * gone. */
struct gofer_server_config {
    int sock; /* SOCK_SEQPACKET socket; the other end goes to the sentry */
    int shm;  /* memfd of CHANNEL_SHM_SIZE bytes made by channel_shm_new() */
    /* Directory descriptor of this very process's /proc/self/fd: the way to reopen a file that is
     * held by an O_PATH descriptor. Best a detached copy, so that `..` leads nowhere, made in the
     * gofer process itself: open_tree(AT_FDCWD, "/proc/self/fd", OPEN_TREE_CLONE | O_CLOEXEC)
     * before CAP_SYS_ADMIN is dropped and /proc unmounted. */
    int proc_self_fd;
    const struct gofer_tree
        *trees; /* [0] is the root file system, [i] the source of bind mount i */
    unsigned trees_len;
    unsigned workers; /* threads that serve requests; 0: the default */
    enum hostfilter_default filter_default;
    bool no_filter; /* unit tests under sanitizers only: do not install the seccomp list */
};

/* Serves one container's trees. Never returns: the process ends with the wait status that the
 * sentry sends (by that signal, if it is one), by SIGKILL when the sentry vanishes, or with status
 * 1 and a line in the log when it can't start. Writes one byte 0 to ready_fd (−1: none) and closes
 * it when the lock-down is done and it serves. */
NORETURN void srv_main(const struct gofer_server_config *config, int ready_fd);
