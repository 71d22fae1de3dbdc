/* SPDX-License-Identifier: Apache-2.0 */
/* Mounts, mount namespaces, propagation, and paths (mount + dentry). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/buf.h"
#include "platform/base/compiler.h"
#include "platform/base/list.h"
#include "platform/base/ref.h"
#include "sentry/vfs/dentry.h"

struct mntns;
struct userns;

struct mount {
    struct ref ref;
    struct mount *parent;       /* (k) NULL: root of a namespace, or detached */
    struct dentry *mountpoint;  /* (k) referenced; where it sits in parent */
    struct dentry *root;        /* (i) referenced */
    struct superblock *sb;      /* (i) referenced */
    struct mntns *ns;           /* (k) NULL when detached */
    struct list children, sibling; /* (k) */
    struct mount *hash_next;    /* (k) by (parent, mountpoint) */
    struct list all_link;       /* (k) every mount */
    struct list ns_link;        /* (k) in ns->mounts, in the order of mounting */
    struct mount *copy;         /* (k) only while a tree is being copied: this mount's copy */
    uint64_t propagate_pass;    /* (k) the last propagation that came here */
    uint64_t umount_mark;       /* (k) the last unmount that takes it along */
    uint32_t writers;           /* (k) files open for writing through it: no read-only remount */
    bool attached;              /* (k) in the tree of ns: holds one reference */
    bool locked;                /* (k) came with a tree from a more privileged namespace: may not be taken away */
    unsigned long locked_flags; /* (k) of flags, those that such a tree's owner set: they may not be changed */
    bool expire_mark;           /* (k) MNT_EXPIRE was asked once */
    bool internal;              /* (i) of an internal superblock: in no namespace, ever */
    bool floating;              /* (k) top of a tree that a descriptor holds: it has the tree's reference */
    unsigned long flags;        /* (k) MS_RDONLY|NOSUID|NODEV|NOEXEC|NOATIME|NODIRATIME|RELATIME of this mount */
    uint32_t id;                /* (i) shown in mountinfo */
    uint64_t unique_id;         /* (i) never used again: statx, statmount */
    uint32_t peer_group;        /* (k) shared: id; 0 = not */
    uint32_t master_group;      /* (k) slave of that group; 0 = not */
    bool unbindable;            /* (k) */
    char *source;               /* (k) shown in mountinfo */
    struct fan_set *fan_set;    /* (k) fanotify marks */
};

struct path {
    struct mount *mount;   /* referenced */
    struct dentry *dentry; /* referenced */
};

struct path path_ref(struct path p);
void path_unref(struct path *p); /* leaves it empty; fine on an empty one */
static inline bool path_equal(const struct path *a, const struct path *b)
{
    return a->mount == b->mount && a->dentry == b->dentry;
}
#define CLEANUP_PATH __attribute__((cleanup(path_unref)))

struct mount *mount_ref(struct mount *m);
void mount_unref(struct mount *m);
/* The same by the one who asks whether m is in use: it does not count as a use (MNT_EXPIRE). */
void mount_unref_unused(struct mount *m);

/* A new namespace whose root is sb's root dentry. Consumes root_dentry. */
MUST_CHECK int mntns_new(OWNS struct dentry *root_dentry, unsigned long flags, const char *source,
                         struct mntns **ret_ns);
/* A copy for CLONE_NEWNS, counted for user uid; inout_paths (root, cwd …) are switched to the copies. */
MUST_CHECK int mntns_clone(struct mntns *ns, struct userns *owner, uint32_t uid, struct path **inout_paths,
                           unsigned len, struct mntns **ret_ns);
/* Syncs every file system that is mounted in ns. Parks. */
void mntns_sync(struct ctx *ctx, struct mntns *ns);
/* Owner user namespace, borrowed; NULL: the initial one. */
struct userns *mntns_owner(const struct mntns *ns);
/* The file system with this device number (st_dev as 32 bits) among ns's mounts. Return: referenced, or NULL. */
MUST_CHECK struct superblock *mntns_find_dev(struct mntns *ns, uint32_t dev);
/* Woken at each change of the mounts, and their number: poll on /proc/PID/mounts gives EPOLLPRI|EPOLLERR. */
struct waitq *mntns_changed(struct mntns *ns);
uint64_t mntns_seq(const struct mntns *ns);
/* The mount, not attached anywhere, through which objects of an internal superblock (pipes, memfds) are seen.
 * Consumes root_dentry. Return: NULL on no memory. */
MUST_CHECK struct mount *mount_new_internal(OWNS struct dentry *root_dentry);
struct mntns *mntns_ref(struct mntns *ns);
void mntns_unref(struct mntns *ns); /* NULL is fine; the last one takes every mount of it down */
struct path mntns_root(struct mntns *ns); /* referenced */
bool mount_in_ns(const struct mount *m, const struct mntns *ns);
uint64_t mntns_ino(const struct mntns *ns);
uint64_t mntns_id(const struct mntns *ns); /* never used again, unlike the inode number */
/* The namespace of that id, or NULL; not referenced: valid until the next park. */
struct mntns *mntns_find_peek(uint64_t id);
/* The mount of ns with that unique id, or NULL; likewise. */
struct mount *mntns_mount_peek(struct mntns *ns, uint64_t unique_id);
/* Whether m is root's mount or lies below root. */
bool mount_reachable(const struct mount *m, const struct path *root);
/* The nearest group up m's chain of masters that has a mount to be seen from root; 0: none. */
uint32_t mount_propagates_from(const struct mount *m, const struct path *root);
/* The unique ids of the mounts at and below top but one, in order. Owns: *ret_ids is the caller's. Return: 0, −ENOMEM. */
MUST_CHECK int mntns_list_below(struct mntns *ns, const struct path *top, uint64_t except, uint64_t **ret_ids,
                                unsigned *ret_len);
/* Appends the file system's own options, without a leading comma. Return: 0 or −ENOMEM. */
MUST_CHECK int mount_print_options(struct superblock *sb, struct buf *out);

/* Mounts a file system's root dentry (consumed) at `at`. Follows propagation. */
MUST_CHECK int mount_attach(struct ctx *ctx, OWNS struct dentry *root, struct path *at, unsigned long flags,
                            const char *source);
MUST_CHECK int mount_bind(struct ctx *ctx, struct path *from, struct path *at, bool recursive);
MUST_CHECK int mount_move(struct ctx *ctx, struct path *from, struct path *at);
/* Moves from's mount (a floating tree or not) under the mount at to, which then covers it. Return: 0, −EINVAL, −ENOENT,
 * −ENOSPC, −ENOMEM. */
MUST_CHECK int mount_move_beneath(struct path *from, struct path *to);
/* Makes to's mount, so far private, a peer and slave of what from's is. Return: 0 or −EINVAL. */
MUST_CHECK int mount_copy_group(struct path *from, struct path *to);
MUST_CHECK int mount_remount(struct ctx *ctx, struct path *at, unsigned long flags, const char *data,
                             bool bind_only);
/* Changes a file system's own options and flags, for all its mounts. Return: 0, −EBUSY (open writers), the file system's. */
MUST_CHECK int mount_reconfigure(struct ctx *ctx, struct superblock *sb, unsigned long flags, const char *data);
/* type: MS_SHARED, MS_PRIVATE, MS_SLAVE, MS_UNBINDABLE. */
MUST_CHECK int mount_set_propagation(struct path *at, unsigned long type, bool recursive);
/* flags: MNT_DETACH, MNT_FORCE, MNT_EXPIRE, UMOUNT_NOFOLLOW is the caller's. −EBUSY when in use. */
MUST_CHECK int mount_umount(struct ctx *ctx, struct path *at, int flags);
/* Takes every mount on top of d away, in all namespaces (its directory is gone). */
void mount_detach_dentry(struct dentry *d);
/* Whether something is mounted on d in m's namespace: such a name may not be removed or renamed. */
bool mount_is_local_mountpoint(const struct mount *m, const struct dentry *d);
MUST_CHECK int mount_pivot_root(struct ctx *ctx, struct path *new_root, struct path *put_old,
                                struct path *cur_root);
/* Trees that are in no namespace but held by a descriptor (open_tree, fsmount): "floating". A copy of what is at from, or a
 * file system's root (consumed). ret_path is referenced; mount_sink ends the tree unless it has been mounted meanwhile.
 * Return: 0, −EINVAL (from is itself in no namespace, or may not be copied), −ENOMEM. */
MUST_CHECK int mount_float_copy(struct ctx *ctx, struct path *from, bool recursive, struct path *ret_path);
MUST_CHECK int mount_float_new(OWNS struct dentry *root, unsigned long flags, const char *source,
                               struct path *ret_path);
void mount_sink(struct mount *m);
/* mount_setattr(2): flags to clear and to set (MS_*), and MS_SHARED … or 0. Return: 0, −EINVAL, −EPERM (a locked flag),
 * −EBUSY (writers); on failure nothing has changed. */
MUST_CHECK int mount_set_flags(struct path *at, unsigned long clear, unsigned long set, unsigned long type,
                             bool recursive);
/* Steps down onto whatever is mounted at *p (repeatedly); replaces the references. */
void mount_follow_down(struct path *p);
/* Steps up from the root of a mount to its mountpoint. Return: false at the namespace's root. */
bool mount_follow_up(struct path *p);
/* Whether writes are refused: −EROFS by the mount or the superblock. */
MUST_CHECK int mount_want_write(const struct mount *m);

/* Appends the path of p as seen from root ("/a/b"); deleted ones get " (deleted)". Of a path that can't be reached from
 * root, it is the path from the top of its own tree. Return: 0, −ENOMEM or −ENAMETOOLONG (beyond PATH_SIZE_MAX). */
MUST_CHECK int path_print(const struct path *p, const struct path *root, struct buf *out);
/* The same without the suffix; tells whether root was met on the way up. */
MUST_CHECK int path_print_reach(const struct path *p, const struct path *root, struct buf *out,
                                bool *ret_reachable);
/* Lines of /proc/PID/mounts and mountinfo for ns seen from root. */
MUST_CHECK int mntns_print_mounts(struct mntns *ns, const struct path *root, struct buf *out);
MUST_CHECK int mntns_print_mountinfo(struct mntns *ns, const struct path *root, struct buf *out);

/* File-system types for mount(2) and the container's mounts; registered by sentry.c. */
struct fs_type {
    const char *name;
    bool userns_mount; /* may be mounted by root of a user namespace */
    bool nodev;        /* shown as "nodev" in /proc/filesystems */
    bool devices;      /* its device files are its own making: they work wherever it is mounted */
    /* Whose the new file system is, borrowed: CAP_SYS_ADMIN over that namespace is what mounting takes. NULL: the caller's. */
    struct userns *(*owner)(const struct ctx *ctx);
    /* Makes (or finds) the root dentry. data may be NULL. */
    int (*mount)(struct ctx *ctx, unsigned long flags, const char *source, const char *data,
                 struct dentry **ret_root);
};
/* Checks the right to mount type and makes its root; a fresh file system belongs to a user namespace and has these MS_* flags. */
MUST_CHECK int fs_type_make(struct ctx *ctx, const struct fs_type *type, unsigned long flags, const char *source,
                            const char *data, struct dentry **ret_root);
/* Whether ctx may change the options of sb. */
bool fs_type_may_change(const struct ctx *ctx, const struct superblock *sb);
void fs_type_register(const struct fs_type *type); /* static object; at most 32 */
const struct fs_type *fs_type_find(const char *name);
/* By its place in the table, for sysfs(2). Return: the place or −EINVAL; the type or NULL; how many there are. */
MUST_CHECK int fs_type_index(const char *name);
const struct fs_type *fs_type_at(unsigned index);
unsigned fs_type_count(void);
void fs_type_print(struct buf *out); /* /proc/filesystems */
