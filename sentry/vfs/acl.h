/* SPDX-License-Identifier: Apache-2.0 */
/* POSIX access control lists: who besides owner, group and the rest may do what with a file, and what new files of a directory
 * inherit. File systems keep them as the extended attributes system.posix_acl_access and _default, with ids of the initial
 * namespace; inodes cache what was read. Source: acl(5), linux/posix_acl_xattr.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "platform/base/compiler.h"
#include "sentry/vfs/inode.h"

struct acl_entry {
    uint16_t tag, perm; /* ACL_USER_OBJ … of linux/posix_acl.h; 4 read, 2 write, 1 execute */
    uint32_t id;        /* of ACL_USER and ACL_GROUP, in the initial namespace */
};

struct acl {
    struct ref ref;
    bool charged; /* counts against LIMIT_KIND_ACL_BYTES: it is kept with an inode */
    uint32_t len;
    struct acl_entry v[];
};

struct acl *acl_ref(struct acl *a); /* NULL is fine */
void acl_unref(struct acl *a);      /* NULL is fine */

/* Return: which ACL an attribute's name means, or −1. */
int acl_kind_of(const char *name);
const char *acl_name(enum acl_kind kind);

/* The list of inode. *ret_acl is NULL when there is none (and on file systems and inodes without ACLs). May park.
 * Return: 0, −ENOMEM, −EIO (nonsense stored), the file system's errors. Owns: caller unrefs. */
MUST_CHECK int acl_get(struct ctx *ctx, struct inode *inode, enum acl_kind kind, struct acl **ret_acl);
/* Whether inode is known to have no list that speaks of access. Costs nothing. */
static inline bool acl_is_none(const struct inode *inode)
{
    return !inode->sb->acls || ((inode->acls_known & 1U << ACL_KIND_ACCESS) && !inode->acls[ACL_KIND_ACCESS]);
}
/* What is cached is not to be believed any more. */
void acl_forget(struct inode *inode);
/* Last reference of the inode gone. */
void acl_inode_free(struct inode *inode);

/* Whether the list gives ctx, who is not the inode's owner, all of want (MAY_READ|WRITE|EXEC). Return: 0, −EACCES. */
MUST_CHECK int acl_check(struct ctx *ctx, const struct inode *inode, const struct acl *a, unsigned want);

/* What a new inode of dir gets: its lists (attr->acls), and its mode by them or by umask. May park.
 * Return: 0 or −errno. Owns: newattr_done drops the lists. */
MUST_CHECK int acl_inherit(struct ctx *ctx, struct inode *dir, uint32_t umask, struct newattr *inout_attr);
void newattr_done(struct newattr *attr);
/* The inode that was just made in dir by attr, and that nobody has seen yet: what is known of its lists. */
void acl_inherited(const struct inode *dir, struct inode *inode, const struct newattr *attr);
/* The value of attr's list as a file system stores it. *ret_data is NULL when there is none. Return: its size, −ENOMEM. Owns: caller
 * frees. */
MUST_CHECK ssize_t acl_pack(const struct acl *a, void **ret_data);

/* Before and after a change of inode's permission bits to mode: brings the list in line where the file system does not do that
 * itself. prepare gets *ret_acl, the changed list (or NULL), and store keeps it. Return: 0 or −errno. */
MUST_CHECK int acl_chmod_prepare(struct ctx *ctx, struct inode *inode, uint32_t mode, struct acl **ret_acl);
MUST_CHECK int acl_chmod_store(struct ctx *ctx, struct inode *inode, OWNS struct acl *a);

/* The extended attributes of that name as guests see them, with checks. set with src NULL or size 0 removes. *inout_mode
 * becomes the mode that the inode is to have when ret is 1. */
MUST_CHECK ssize_t acl_xattr_get(struct ctx *ctx, struct inode *inode, enum acl_kind kind, void *dst, size_t size);
MUST_CHECK int acl_xattr_set(struct ctx *ctx, struct inode *inode, enum acl_kind kind, const void *src, size_t size,
                             uint32_t *inout_mode);
