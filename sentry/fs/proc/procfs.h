/* SPDX-License-Identifier: Apache-2.0 */
/* The proc file system: trees described by tables, and what their generators are given. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "platform/base/buf.h"
#include "platform/base/compiler.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/mount.h"

struct container;
struct ctx;
struct pid;
struct pidns;
struct proc_dir;
struct proc_node;
struct task;
struct tgroup;

extern const struct fs_type proc_fs_type;

/* A proc of the given pid namespace, for mounts that no task makes (container creation). c answers for calls
 * that no task makes either (sysctl settings); it is not referenced. data: mount options or NULL. */
MUST_CHECK int proc_mount_for(struct pidns *ns, struct container *c, const char *data, struct dentry **ret_root);
/* Another read-mostly file system made of tables (sysfs, cgroup2): its own superblock, no processes. */
MUST_CHECK int proc_mount_tree(const char *type, uint64_t magic, const struct proc_node *root,
                               struct dentry **ret_root);

enum { PROC_WRITE_MAX = 4096, PROC_SUPER_INO = 1 };

/* What a generator works on. References are held for the length of the call. */
struct proc_call {
    struct ctx *ctx;
    struct task *viewer;         /* who asks; NULL: the sentry itself */
    struct pidns *ns;            /* whose numbers are shown; NULL: not a proc */
    struct container *container; /* NULL: none known */
    const struct proc_node *node;
    struct inode *inode;
    struct task *task;           /* the entry's thread; NULL in global entries */
    bool whole;                  /* the process, not one thread */
    int64_t pos;                 /* of the file that is written */
    uint64_t *seen;              /* polls: which state the file's user has been told of */
    const struct cred *opener;   /* who opened the file that is read or written, NULL: none; borrowed */
    int fd;                      /* number of a computed entry (a descriptor, a CPU) or of its directory, else −1 */
};

enum {
    PROC_PTRACE = 1,   /* opens, reads of links and follows need ptrace read access to the task */
    PROC_FD_ACCESS = 2, /* the process itself always may, whatever the mode says */
    PROC_NO_DUMP_OWNER = 4, /* belongs to the task's effective user even when it is not dumpable */
    PROC_THREADS = 8,       /* the directory of a process's threads: counts them as links */
    PROC_FIXED_TEXT = 16,   /* arg is the text of a link */
    PROC_OWN_RESOURCE = 32, /* writing is a matter of CAP_SYS_RESOURCE in the writer's user namespace, not of owners */
};

/* One entry. The file type in mode says which members count. */
struct proc_node {
    const char *name;
    uint32_t mode;
    unsigned flags;
    /* Text of a file or a link. */
    int (*show)(struct proc_call *c, struct buf *out);
    /* One write; data is NUL-terminated. Return: bytes or −errno. */
    int64_t (*write)(struct proc_call *c, const char *data, size_t size);
    int (*follow)(struct proc_call *c, struct path *ret_path); /* magic links */
    int (*open)(struct proc_call *c, struct file *f); /* files with operations of their own */
    uint32_t (*poll)(struct proc_call *c, struct poll_table *pt); /* text files; NULL: always ready */
    int64_t (*ioctl)(struct proc_call *c, uint32_t cmd, uint64_t arg); /* text files [ENOTTY] */
    const struct proc_dir *dir;
    const void *arg; /* for generators that serve several entries */
};

/* Which computed entry an inode is for. pid is borrowed. */
struct proc_key {
    const struct proc_node *node;
    struct pid *pid;
    bool whole;
    int fd;
};

struct proc_entry {
    int64_t number; /* orders the entries; ≥ 0 */
    char name[32];
    unsigned d_type;
};

struct proc_dir {
    const struct proc_node *nodes;
    unsigned nodes_len;
    /* Entries that are computed, after the fixed ones. */
    int (*lookup)(struct proc_call *c, const char *name, struct proc_key *ret_key); /* 0, −ENOENT … */
    int (*next)(struct proc_call *c, int64_t from, struct proc_entry *ret_entry);   /* 1, 0 at the end, −errno */
};

#define PROC_FILE(n, m, f) {.name = n, .mode = S_IFREG | (m), .show = f}
#define PROC_DIR(n, d) {.name = n, .mode = S_IFDIR | 0555, .dir = &(d)}
#define PROC_DIR_OF(table) {.nodes = (table), .nodes_len = ARRAY_SIZE(table)}

/* Options of a mount. */
struct proc_sb {
    struct pidns *ns; /* (i) referenced; NULL: not a proc */
    struct container *container; /* (i) of the creation; not referenced */
    int hidepid;      /* (k) 0, 1, 2, 4 */
    uint32_t gid;     /* (k) who is not hidden from */
    bool subset_pid;  /* (i) only the process directories */
};

static inline struct proc_sb *proc_sb_of(const struct superblock *sb)
{
    return sb->priv;
}

/* Whether viewer may look into task (PTRACE_MODE_READ with file-system ids). viewer NULL: yes. Source: ptrace(2). */
bool proc_may_access(const struct proc_call *c, const struct task *task);
/* Parses a decimal number without sign or leading zero. Return: number or −1. */
int proc_parse_number(const char *name);
/* Makes an inode for a key below parent (inode number from parent and name). NULL on no memory. */
MUST_CHECK struct inode *proc_inode_new(struct inode *parent, const char *name, const struct proc_key *key);

/* Tables of the parts. */
/* The process whose directory /proc/PID (not one of a thread) f is, for pidfd_send_signal. Return: referenced, NULL when
 * f is something else; *ret_gone tells the directory of a process that has been reaped. */
struct file;
MUST_CHECK struct tgroup *procfs_dir_group(const struct file *f, bool *ret_gone);

extern const struct proc_dir proc_root_dir, proc_pid_dir, proc_tid_dir, proc_sys_dir, proc_net_dir;
extern const struct proc_node proc_pid_node, proc_tid_node;
