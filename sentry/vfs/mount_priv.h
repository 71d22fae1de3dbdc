/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the mount code: the tree's primitives, shared by mount.c, mntns.c and propagate.c. */
#pragma once

#include <sys/mount.h>

#include "sentry/core/userns.h"
#include "sentry/core/waitq.h"
#include "sentry/vfs/mount.h"

struct mntns {
    struct ref ref;
    struct mount *root;    /* (k) its reference is the attached one */
    struct list mounts;    /* (k) of mount.ns_link */
    unsigned count;        /* (k) */
    struct userns *owner;  /* (i) referenced; NULL: initial */
    struct ucharge charge; /* (i) */
    uint64_t ino;          /* (i) */
    uint64_t id;           /* (i) never used again */
    uint64_t seq;          /* (k) */
    struct waitq changed;  /* (k) */
};

/* Flags that a less privileged namespace may not take away, and those that it may not change. */
#define MOUNT_LOCKABLE ((unsigned long)(MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC))
#define MOUNT_ATIME ((unsigned long)(MS_NOATIME | MS_NODIRATIME | MS_RELATIME))

extern struct list mount_all; /* (k) of mount.all_link */

/* Unattached mount of root (consumed) with count 1. */
MUST_CHECK struct mount *mount_new(OWNS struct dentry *root, unsigned long flags, const char *source);
/* Where a copy stands in propagation. */
enum mount_copy_kind {
    MOUNT_COPY_PEER,    /* same groups as the original */
    MOUNT_COPY_SLAVE,   /* receives from the original's group, shared with nobody */
    MOUNT_COPY_PRIVATE,
};
/* Copies the tree at m from root (m->root or a dentry below it) on; parts outside root are left out, and with
 * skip_unbindable unbindable mounts too. Copies are unattached; originals remember them in ->copy until
 * mount_tree_forget_copies. */
MUST_CHECK int mount_tree_copy(struct mount *m, struct dentry *root, bool recursive, bool skip_unbindable,
                               enum mount_copy_kind kind, struct mount **ret_tree);
void mount_tree_forget_copies(struct mount *m);
/* Frees an unattached tree. */
void mount_tree_free(struct mount *tree);
unsigned mount_tree_len(struct mount *tree);
/* Next mount in pre-order within the tree at top, NULL after the last. */
/* The unattached tree at top comes from a more privileged namespace: what its mounts hide stays hidden, and what their
 * flags forbid stays forbidden. */
void mount_tree_lock(struct mount *top);
struct mount *mount_tree_next(struct mount *m, struct mount *top);

/* Attaches an unattached tree (whose reference goes to the tree's place) below parent at mp; cannot fail. What was
 * mounted there already comes to sit on top of the new tree's root. */
void mount_tree_attach(struct mount *tree, struct mount *parent, struct dentry *mp);
/* Takes m from its parent; it keeps its children, its ns and its reference, which passes to the caller. */
void mount_unplug(struct mount *m);
/* Ends the attachment of the whole tree at m: every mount of it is on its own and loses its tree reference. */
void mount_tree_dissolve(struct mount *m);
void mntns_touch(struct mntns *ns);
struct mount *mount_lookup(const struct mount *parent, const struct dentry *mp);

/* propagate.c */
uint32_t propagate_new_group(void);
/* Attaches tree at (parent, mp) and copies of it wherever parent's peers and slaves see mp. On failure nothing is attached
 * and tree is still the caller's; else its reference belongs to the place. */
MUST_CHECK int propagate_attach(struct mount *tree, struct mount *parent, struct dentry *mp);
/* Takes down the tree at m and its propagated twins. */
void propagate_umount(struct mount *m);
/* Leaves its peer group; slaves of a group that ends are handed up. */
void propagate_leave_group(struct mount *m);
void propagate_set_type(struct mount *m, unsigned long type);
