/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of one sandbox: containers, root namespaces, identity. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"
#include "platform/base/errmsg.h"
#include "platform/base/list.h"
#include "platform/platform.h"

struct file;
struct gofer_client;
struct ipcns;
struct mntns;
struct netns;
struct pidns;
struct process;
struct sentry_container_config;
struct task;
struct tgroup;
struct tty;
struct timens;
struct utsns;

/* The identity that uname, /proc/version and osrelease report: the current LTS. */
#define KERNEL_RELEASE "6.12.0"
#define KERNEL_VERSION "#1 SMP PREEMPT_DYNAMIC"

struct kernel {
    bool strace;              /* (i) log calls */
    const char *release;      /* (i) */
    struct list containers;   /* (k) */
    uint64_t boot_ns;         /* (i) CLOCK_MONOTONIC when the kernel was made: btime, uptime */
    uint64_t forks;           /* (k) since boot, /proc/stat */
    unsigned seccomp_unlogged; /* (k) actions of guest filters that are not logged, bits of guest_seccomp.h */
    uint64_t seccomp_log_start_ns; /* (k) of the window that bounds the rate of such lines */
    unsigned seccomp_logged;  /* (k) lines in it */
    uint64_t next_ns_ino;     /* (k) for namespaces under /proc/PID/ns */
};

struct container {
    struct list link;
    struct kernel *kernel;
    char *id;
    struct platform *platform;   /* owned */
    struct gofer_client *gofer;  /* owned */
    struct mntns *mntns;
    struct timens *timens; /* NULL: the host's clocks */
    struct utsns *utsns;
    struct ipcns *ipcns;
    struct netns *netns;
    struct pidns *pidns;         /* each container's init is pid 1 of its own */
    struct tgroup *init;         /* (k) referenced until the container is freed; NULL before create made it */
    struct devrules *devrules;   /* owned; which devices may be opened */
    struct file *acct_file;      /* (k) process accounting goes there; referenced, NULL: off */
    uint64_t memory_limit;
    uint64_t pids_limit;         /* tasks, 0 = none. The host's cgroup is a second line: it counts the sandbox's own too */
    uint64_t task_count;         /* (k) tasks, until they are reaped */
    uint32_t cpu_count;
    char *cgroups_path;
    void (*on_exit)(void *arg, int wait_status);
    void *on_exit_arg;
    bool exited;                 /* (k) every process is gone */
    struct process *init_process; /* (k) owned; between create and start */
    struct tty *console;         /* (k) referenced; of the started init, may be NULL */
    struct list groups;          /* (k) every process of the container until it is reaped: tgroup.container_link */
    unsigned group_count;        /* (k) processes that are not dead yet */
};

/* The last process of c is gone: tells on_exit. Called by the task code. */
void container_emptied(struct container *c);
