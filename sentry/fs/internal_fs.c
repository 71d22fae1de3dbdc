/* SPDX-License-Identifier: Apache-2.0 */
/* Files of objects that are in no directory but need an inode of their own kind. */
#include "sentry/fs/internal_fs.h"

#include "sentry/vfs/file.h"
#include "sentry/vfs/mount.h"

struct mount *internal_fs_mount(struct mount **slot, const char *type, uint64_t magic)
{
    static const struct inode_ops no_ops;
    struct superblock *sb;
    struct inode *inode;
    struct dentry *root;

    if (*slot)
        return *slot;
    sb = superblock_new(type, magic, NULL, NULL);
    inode = sb ? inode_alloc(sb, &no_ops, sizeof(*inode), S_IFDIR | 0555) : NULL;
    root = inode ? dentry_new_root(inode) : NULL;
    superblock_unref(sb);
    if (root)
        *slot = mount_new_internal(root);
    return *slot;
}

struct file *internal_fs_file(struct mount *m, OWNS struct inode *inode, const char *name, uint32_t flags,
                              const struct file_ops *ops, const struct cred *cred)
{
    struct path path = {.mount = m, .dentry = dentry_new_detached(inode, name)};
    struct file *f;

    if (!path.dentry)
        return NULL;
    f = file_new(&path, flags, ops, cred);
    dentry_unref(path.dentry);
    return f;
}
