/* SPDX-License-Identifier: Apache-2.0 */
/* The sentry's end of a gofer channel: typed calls that park the calling fiber until the reply.
 *
 * All calls run on a fiber of the kernel thread, are not interruptible, and may overlap: up to
 * WIRE_SLOTS are under way, further ones wait their turn. The gofer's replies are not trusted: one
 * that breaks the protocol, or the end of the channel, makes the gofer dead for ever, and every
 * call (those waiting included) gives −EIO. Strings are sizes and bytes, as in path walks. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "gofer/proto/codec.h"
#include "gofer/proto/wire.h"
#include "platform/base/compiler.h"

struct gofer_client;

/* Owns: sock and shm are consumed, also on failure. Return: 0 or −errno. */
MUST_CHECK int gofer_client_new(OWNS int sock, OWNS int shm, struct gofer_client **ret_client);
struct gofer_client *gofer_client_ref(struct gofer_client *c);
/* Closes the channel at the last reference, when no call may be under way. NULL is fine. */
void gofer_client_unref(struct gofer_client *c);
/* fn(arg) runs once, on the kernel thread and not on a fiber, when the gofer is found dead. */
void gofer_client_on_death(struct gofer_client *c, void (*fn)(void *arg), void *arg);
bool gofer_client_dead(const struct gofer_client *c);

/* Root of a tree. Node and attributes in ret_entry, WIRE_TREE_* in ret_flags. With watch, *ret_watch_fd is an
 * inotify descriptor that tells of changes by others (the caller's), or −1 when the host can't. */
MUST_CHECK int gofer_client_attach(struct gofer_client *c, uint32_t tree, bool watch,
                                   struct wire_entry *ret_entry, uint32_t *ret_flags,
                                   int *ret_watch_fd);

/* Result of a walk. Zero it but for entries and max; gofer_walk_done frees what is left in it. */
struct gofer_walk {
    struct wire_entry *entries; /* caller's array of max; max ≥ the path's components */
    unsigned max;
    unsigned count;         /* entries found */
    enum wire_walk_end end; /* why the walk ended */
    int error;              /* with WIRE_WALK_FAILED */
    char *target;           /* text of the symbolic link that is the last entry, else NULL; owned */
    int fd;                 /* with WIRE_WALK_OPEN, or −1; owned */
    int open_error;         /* with WIRE_WALK_OPEN: why there is no fd */
};

/* flags: WIRE_WALK_*; open_flags: O_RDONLY, O_WRONLY, O_RDWR. Return: 0 when the gofer answered (a
 * missing component is an answer), else −errno. Nodes in entries are the caller's to release, also
 * when the walk ended early. */
MUST_CHECK int gofer_client_walk(struct gofer_client *c, uint64_t node, const char *path,
                                 size_t size, uint32_t flags, uint32_t open_flags,
                                 struct gofer_walk *inout_walk);
void gofer_walk_done(struct gofer_walk *w);

/* Return: host descriptor of the regular file with exactly this access; owned by the caller. */
MUST_CHECK int gofer_client_open(struct gofer_client *c, uint64_t node, uint32_t open_flags);

/* One file that gofer_client_open_many has opened. */
struct gofer_opened {
    int fd; /* owned by the caller; −1: it could not be opened */
    struct wire_entry entry;
};

/* Opens len (1 to WIRE_OPEN_MANY_MAX) files of the directory O_RDONLY. nodes: give nodes (the
 * caller's to release), too. ret_opened is an array of len.
 * Return: how many of the first were tried, or −errno. */
MUST_CHECK int gofer_client_open_many(struct gofer_client *c, uint64_t dir,
                                      const struct codec_str *names, unsigned len, bool nodes,
                                      struct gofer_opened *ret_opened);

/* What a new inode is to be; rdev is MKNOD's. */
struct gofer_make {
    uint32_t mode, uid, gid;
    uint32_t rdev_major, rdev_minor;
    bool want_node;
};

/* ret_fd (opened with open_flags) is the caller's. */
MUST_CHECK int gofer_client_create(struct gofer_client *c, uint64_t dir, const char *name,
                                   const struct gofer_make *make, uint32_t open_flags,
                                   struct wire_entry *ret_entry, int *ret_fd);
MUST_CHECK int gofer_client_tmpfile(struct gofer_client *c, uint64_t dir,
                                    const struct gofer_make *make, uint32_t open_flags,
                                    struct wire_entry *ret_entry, int *ret_fd);
MUST_CHECK int gofer_client_mkdir(struct gofer_client *c, uint64_t dir, const char *name,
                                  const struct gofer_make *make, struct wire_entry *ret_entry);
MUST_CHECK int gofer_client_symlink(struct gofer_client *c, uint64_t dir, const char *name,
                                    const char *target, const struct gofer_make *make,
                                    struct wire_entry *ret_entry);
MUST_CHECK int gofer_client_mknod(struct gofer_client *c, uint64_t dir, const char *name,
                                  const struct gofer_make *make, struct wire_entry *ret_entry);
MUST_CHECK int gofer_client_link(struct gofer_client *c, uint64_t node, uint64_t dir,
                                 const char *name, struct wire_attr *ret_attr);
MUST_CHECK int gofer_client_unlink(struct gofer_client *c, uint64_t dir, const char *name,
                                   bool directory);
MUST_CHECK int gofer_client_rename(struct gofer_client *c, uint64_t old_dir, const char *old_name,
                                   uint64_t new_dir, const char *new_name, uint32_t flags);
/* Return: length; the text is NUL-terminated and cut to size. */
MUST_CHECK ssize_t gofer_client_readlink(struct gofer_client *c, uint64_t node, char *dst,
                                         size_t size);
MUST_CHECK int gofer_client_getattr(struct gofer_client *c, uint64_t node,
                                    struct wire_attr *ret_attr);
/* req->node names the inode. */
MUST_CHECK int gofer_client_setattr(struct gofer_client *c, const struct wire_setattr *req,
                                    struct wire_attr *ret_attr);
/* As the system calls: size 0 asks for the length; −ERANGE when dst is too small. */
MUST_CHECK ssize_t gofer_client_getxattr(struct gofer_client *c, uint64_t node, const char *name,
                                         void *dst, size_t size);
MUST_CHECK ssize_t gofer_client_listxattr(struct gofer_client *c, uint64_t node, char *dst,
                                          size_t size);
MUST_CHECK int gofer_client_setxattr(struct gofer_client *c, uint64_t node, const char *name,
                                     const void *value, size_t size, int flags);
MUST_CHECK int gofer_client_removexattr(struct gofer_client *c, uint64_t node, const char *name);

/* One entry of a listing; name and target are not NUL-terminated and valid during the callback
 * only. */
struct gofer_dirent {
    struct wire_dirent head;
    struct codec_str name;
    struct codec_str target;      /* data NULL: none */
    const struct wire_attr *attr; /* NULL: none */
};

/* Reads entries after cookie and calls fn(arg, entry), which must not park, for each.
 * Return: 1 at the end of the directory, 0 when more follows, or −errno. */
MUST_CHECK int gofer_client_readdir(struct gofer_client *c, uint64_t node, uint64_t cookie,
                                    uint32_t flags, uint32_t max_size,
                                    void (*fn)(void *arg, const struct gofer_dirent *d), void *arg);
MUST_CHECK int gofer_client_statfs(struct gofer_client *c, uint64_t node,
                                   struct wire_statfs *ret_st);
MUST_CHECK int gofer_client_fsync(struct gofer_client *c, uint64_t node);
MUST_CHECK int gofer_client_syncfs(struct gofer_client *c, uint64_t node);
/* flags: FS_*_FL. Return: 0, −ENOTTY and −EOPNOTSUPP (the host's file system has none), −EPERM, the gofer's errors. */
MUST_CHECK int gofer_client_flags(struct gofer_client *c, uint64_t node, uint32_t mask, uint32_t flags, uint32_t *ret_flags);
MUST_CHECK int gofer_client_cachestat(struct gofer_client *c, uint64_t node, uint64_t offset, uint64_t size,
                                      struct wire_cached *ret_cached);

/* Gives a node back, soon: releases are collected. May be called anywhere on the kernel thread;
 * never parks, never fails (without memory the node stays until the gofer ends). WIRE_NODE_NONE is
 * ignored. */
void gofer_client_release(struct gofer_client *c, uint64_t node);
/* Sends the collected releases now. */
void gofer_client_flush(struct gofer_client *c);
/* Tells the gofer to end with that wait status. Does not wait; the gofer counts as dead after. */
void gofer_client_exit(struct gofer_client *c, int wait_status);
