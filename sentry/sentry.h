/* SPDX-License-Identifier: Apache-2.0 */
/* The sentry as runtime/boot sees it: one kernel that serves one or more containers. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

#include "platform/base/compiler.h"
#include "platform/base/errmsg.h"

struct sentry;    /* the kernel of one sandbox */
struct container; /* one container in it */
struct platform;  /* platform/platform.h */
struct devrule;   /* sentry/fs/devrules.h */

/* One mount of the container, in the order of the spec. Strings are owned by the config's maker and
 * live until sentry_container_create returns. */
struct sentry_mount {
    const char *destination;  /* absolute path inside the container */
    const char *type;         /* "bind", "proc", "tmpfs", "devpts", "sysfs", "mqueue", "cgroup" */
    const char *source;       /* shown in /proc/self/mounts */
    const char *data;         /* file-system options (size=, mode=, …), comma-separated; may be "" */
    unsigned long flags;      /* MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_NOATIME, … */
    unsigned long propagation; /* MS_PRIVATE, MS_SHARED, MS_SLAVE, MS_UNBINDABLE, | MS_REC; 0 = default */
    int tree;                 /* bind: number of the tree that the gofer serves (root is 0); else −1 */
};

/* A node to make: linux.devices. */
struct sentry_device {
    const char *path; /* absolute path inside the container */
    uint32_t mode;    /* S_IFCHR, S_IFBLK or S_IFIFO, and permissions */
    uint64_t rdev;    /* makedev() */
    uint32_t uid, gid;
};

struct sentry_rlimit {
    int resource; /* RLIMIT_* */
    uint64_t soft, hard;
};

/* What a process in the container starts with: the container's init, and later `exec`. */
struct sentry_process {
    char *const *argv; /* NULL-terminated; argv[0] is looked up in PATH of envp when it has no slash */
    char *const *envp; /* NULL-terminated */
    const char *cwd;
    uint32_t uid, gid, umask; /* umask UINT32_MAX: 0022 */
    const uint32_t *groups;
    unsigned groups_len;
    uint64_t cap_effective, cap_permitted, cap_inheritable, cap_bounding, cap_ambient;
    bool no_new_privs;
    /* Seccomp filter (struct sock_filter), in force from the program's first call on; NULL: none. No right is needed for it. */
    const void *seccomp;
    uint32_t seccomp_len;
    bool seccomp_log; /* SECCOMP_FILTER_FLAG_LOG */
    const struct sentry_rlimit *rlimits;
    unsigned rlimits_len;
    int oom_score_adj;
    bool terminal;
    uint16_t console_rows, console_cols; /* 0: unset */
    int stdio[3];                        /* host descriptors, consumed; −1 = closed. Unused with terminal */
    int console;  /* host pty slave the container's controlling terminal is backed by; consumed; else −1 */
    const int *preserve_fds; /* host descriptors for fd 3…; consumed */
    unsigned preserve_fds_len;
};

/* As in /proc/PID/timens_offsets. */
struct sentry_time_offset {
    int64_t sec;
    uint32_t nsec;
};

/* Where the changes of trees go that are not to reach the host's. */
struct sentry_overlay {
    bool root;     /* the root file system's go to a layer of the container's own … */
    bool all;      /* … as do those of directories that are bind mounts */
    int tree;      /* the tree that has the layers: for tree N the directories N/upper and N/work. −1: a tmpfs */
    uint64_t size; /* bytes that they may take together; 0: what the tmpfs or the host has */
    uint64_t used, names; /* with a size, on disk: what they take now, bytes and directory entries */
};

struct sentry_container_config {
    const char *id;
    const char *hostname, *domainname; /* may be NULL */
    bool time_namespace;       /* linux.namespaces has a new one, with these offsets of the monotonic and the boot time clock */
    struct sentry_time_offset time_offsets[2];
    bool root_readonly;
    struct sentry_overlay overlay;
    unsigned long root_propagation; /* MS_* or 0 */
    struct sentry_process process;
    const struct sentry_mount *mounts;
    unsigned mounts_len;
    const struct sentry_device *devices;
    unsigned devices_len;
    const struct devrule *device_rules; /* linux.resources.devices */
    unsigned device_rules_len;
    const char *const *masked_paths; /* NULL-terminated; may be NULL */
    const char *const *readonly_paths;
    const char *const *sysctl; /* "key=value", NULL-terminated; may be NULL */
    const char *cgroups_path;  /* shown in /proc/PID/cgroup; may be NULL */
    uint64_t memory_limit;     /* bytes, 0 = none: for /proc/meminfo and the like */
    uint64_t pids_limit;       /* tasks, 0 = none */
    uint32_t cpu_count;        /* CPUs to show, 0 = the host's affinity */
    int gofer_sock;   /* socket of the gofer channel, consumed */
    int gofer_shm;    /* memfd of the gofer channel, consumed */
    struct platform *platform; /* guest processes of this container come from here; consumed */
};

struct sentry_options {
    bool strace;            /* log every call with decoded arguments at debug level */
    const char *kernel_release; /* NULL: the default that uname reports */
    int proc_fd; /* root of a procfs of the guests' pid namespace; borrowed for ever; −1 = none */
};

/* Makes the kernel. Called after the process has its event loop (evloop_init) and before lock-down
 * is complete; allocates no host resource beyond memory. */
MUST_CHECK int sentry_new(const struct sentry_options *options, struct sentry **ret_sentry);

/* Builds the container's mount namespace, devices and init task without running anything.
 * Runs on a fiber (it talks to the gofer). Errors: message in e, names the thing at fault. For a
 * missing program the text is runc's: `exec: "x": executable file not found in $PATH`. */
MUST_CHECK int sentry_container_create(struct sentry *s, const struct sentry_container_config *config,
                                       struct errmsg *e, struct container **ret_container);

/* Execs the init program; on_exit(arg, wait status) is called once, on the kernel thread, when init
 * is gone and every other process of the container is dead. */
MUST_CHECK int sentry_container_start(struct container *c, struct errmsg *e,
                                      void (*on_exit)(void *arg, int wait_status), void *arg);

/* Sends signo to init, or to every process of the container. Return: 0, −ESRCH, −EINVAL. */
MUST_CHECK int sentry_container_kill(struct container *c, int signo, bool all);

/* Starts a further process. on_exit is called when it has exited. Return: guest pid (> 0) or −errno. */
MUST_CHECK int sentry_container_exec(struct container *c, const struct sentry_process *p, struct errmsg *e,
                                     void (*on_exit)(void *arg, int wait_status), void *arg);

/* Sends signo to one process that sentry_container_exec started. */
MUST_CHECK int sentry_container_kill_pid(struct container *c, int guest_pid, int signo);

/* Guest pids of the container's processes. Return: count, filling at most len. */
unsigned sentry_container_pids(struct container *c, int *ret_pids, unsigned len);

/* Sets the window size of the container's console (SIGWINCH follows when it changed). */
void sentry_container_resize(struct container *c, uint16_t rows, uint16_t cols);
/* The same for the terminal of one process that sentry_container_exec started. */
void sentry_container_resize_pid(struct container *c, int guest_pid, uint16_t rows, uint16_t cols);
