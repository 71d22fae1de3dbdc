/* SPDX-License-Identifier: Apache-2.0 */
/* Every limit on what guests can make the sentry hold, in one place, and counters for the sandbox-wide ones. */
#pragma once

#include <stdint.h>

#include "platform/base/compiler.h"

enum {
    LIMIT_KTIMERS = 1 << 20,        /* armed kernel timers: sleeps, timeouts, timers */
    LIMIT_NR_OPEN = 1 << 20,        /* fs.nr_open: highest RLIMIT_NOFILE */
    LIMIT_TASKS = 32768,            /* threads of the sandbox */
    LIMIT_PID_MAX = 4194304,        /* kernel.pid_max */
    LIMIT_FILES = 1 << 20,          /* open file descriptions: fs.file-max */
    LIMIT_PIPE_SIZE = 1 << 20,      /* fs.pipe-max-size */
    LIMIT_PIPE_PAGES = 1 << 18,     /* pages in all pipe buffers together */
    LIMIT_SOCK_BUF = 4 << 20,       /* largest socket buffer */
    LIMIT_POSIX_TIMERS = 4096,      /* timers of one process, besides RLIMIT_SIGPENDING */
    LIMIT_EPOLL_WATCHES = 1 << 20,  /* fs.epoll.max_user_watches */
    LIMIT_WATCHES = 1 << 20,        /* inotify watches and fanotify marks of the sandbox, whatever users may have */
    LIMIT_INOTIFY_WATCHES = 65536,  /* fs.inotify.max_user_watches at the start */
    LIMIT_INOTIFY_INSTANCES = 1024, /* fs.inotify.max_user_instances at the start */
    LIMIT_INOTIFY_QUEUE = 16384,    /* fs.inotify.max_queued_events and fanotify's at the start */
    LIMIT_FANOTIFY_GROUPS = 128,    /* fs.fanotify.max_user_groups at the start */
    LIMIT_FANOTIFY_MARKS = 65536,   /* fs.fanotify.max_user_marks at the start */
    LIMIT_NOTIFY_EVENTS = 1 << 18,  /* queued events of all inotify and fanotify descriptors */
    LIMIT_MOUNTS = 100000,          /* fs.mount-max, per mount namespace */
    LIMIT_GROUPS = 65536,           /* supplementary groups of one process */
    LIMIT_ARG_STRLEN = 128 * 1024,  /* one argument or environment string */
    LIMIT_ARG_MAX = 6 << 20,        /* all of them together, whatever RLIMIT_STACK says */
    LIMIT_FLOCKS = 65536,           /* record locks of the sandbox */
    LIMIT_AIO_REQUESTS = 1 << 17,   /* AIO requests, and events of them that nobody has fetched */
    LIMIT_FUTEX_WAITERS = 1 << 18,  /* threads asleep on futexes */
    LIMIT_ROBUST_LIST = 2048,       /* entries of one robust list */
    LIMIT_KEYS = 65536,             /* keys and keyrings of the sandbox, besides the quotas of users */
    LIMIT_KEY_BYTES = 32 << 20,     /* their descriptions, payloads and links */
    LIMIT_SECCOMP_INSNS = 1 << 22,  /* instructions of all seccomp filters of guests together, 8 bytes each */
    LIMIT_XATTR_SIZE = 65536,
    LIMIT_SCM_FDS = 253,            /* descriptors in one message */
    LIMIT_LANDLOCK_RULES = 16384,   /* rules of one ruleset, of files and of ports */
    LIMIT_ACL_BYTES = 16 << 20,     /* ACLs kept with inodes beside the stored ones */
    LIMIT_HOSTIO_THREADS = 8,       /* I/O pool threads */
};

/* Quantities that are counted for the whole sandbox. */
enum limit_kind {
    LIMIT_KIND_TASKS,
    LIMIT_KIND_FILES,
    LIMIT_KIND_PIPE_PAGES,
    LIMIT_KIND_FLOCKS,
    LIMIT_KIND_WATCHES,       /* of inotify, dnotify and fanotify */
    LIMIT_KIND_NOTIFY_EVENTS,
    LIMIT_KIND_EPOLL_WATCHES,
    LIMIT_KIND_TMPFS_INODES,
    LIMIT_KIND_UNIX_BYTES, /* in flight in unix sockets */
    LIMIT_KIND_AIO,
    LIMIT_KIND_SECCOMP_INSNS,
    LIMIT_KIND_LANDLOCK_RULES, /* in all rulesets and domains: a domain has its parents' too */
    LIMIT_KIND_ACL_BYTES,
    LIMIT_KIND_LEN,
};

/* What the guests' root may set in /proc/sys, for layers that do not see proc. */
enum limit_tunable {
    LIMIT_TUNED_INOTIFY_QUEUE,    /* fs.inotify.max_queued_events */
    LIMIT_TUNED_FANOTIFY_QUEUE,   /* fs.fanotify.max_queued_events */
    LIMIT_TUNED_LEASE_BREAK_TIME, /* fs.lease-break-time, seconds */
    LIMIT_TUNED_LEASES_ENABLE,    /* fs.leases-enable */
    LIMIT_TUNED_LEN,
};
extern int32_t limit_tuned[LIMIT_TUNED_LEN]; /* (k) */

/* Takes amount units. Return: 0, or −EAGAIN when the sandbox would exceed the limit (callers turn it into
 * the errno of their call). Give back with limit_uncharge. */
MUST_CHECK int limit_charge(enum limit_kind kind, uint64_t amount);
void limit_uncharge(enum limit_kind kind, uint64_t amount);
/* Return: units in use. */
uint64_t limit_used(enum limit_kind kind);
