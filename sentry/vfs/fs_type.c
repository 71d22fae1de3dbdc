/* SPDX-License-Identifier: Apache-2.0 */
/* The table of file-system types. */
#include "sentry/vfs/mount.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/mount.h>

#include "sentry/core/cred.h"
#include "sentry/core/ctx.h"

enum { FS_TYPES_MAX = 32 };

static const struct fs_type *fs_types[FS_TYPES_MAX];
static unsigned fs_types_len;

void fs_type_register(const struct fs_type *type)
{
    if (fs_type_find(type->name))
        return;
    BUG_ON(fs_types_len == FS_TYPES_MAX);
    fs_types[fs_types_len++] = type;
}

const struct fs_type *fs_type_find(const char *name)
{
    for (unsigned i = 0; i < fs_types_len; i++) {
        if (!strcmp(fs_types[i]->name, name))
            return fs_types[i];
    }
    return NULL;
}

int fs_type_index(const char *name)
{
    for (unsigned i = 0; i < fs_types_len; i++) {
        if (!strcmp(fs_types[i]->name, name))
            return (int)i;
    }
    return -EINVAL;
}

const struct fs_type *fs_type_at(unsigned index)
{
    return index < fs_types_len ? fs_types[index] : NULL;
}

unsigned fs_type_count(void)
{
    return fs_types_len;
}

void fs_type_print(struct buf *out)
{
    for (unsigned i = 0; i < fs_types_len; i++)
        buf_printf(out, "%s\t%s\n", fs_types[i]->nodev ? "nodev" : "", fs_types[i]->name);
}

int fs_type_make(struct ctx *ctx, const struct fs_type *type, unsigned long flags, const char *source,
                 const char *data, struct dentry **ret_root)
{
    const unsigned long sb_flags = MS_RDONLY | MS_SYNCHRONOUS | MS_MANDLOCK | MS_DIRSYNC | MS_LAZYTIME;
    struct userns *owner = type->owner ? type->owner(ctx) : ctx->cred->userns;
    if (type->userns_mount ? !cred_ns_cap(ctx->cred, owner, CAP_SYS_ADMIN) : !cred_has_cap(ctx->cred, CAP_SYS_ADMIN))
        return -EPERM;
    /* The owner may change while the file system's operation is parked; it is the one that was checked. */
    userns_ref(owner);
    struct dentry *root;
    int ret = type->mount(ctx, flags, source, data, &root);
    if (ret == 0) {
        struct superblock *sb = root->sb;
        if (!sb->mount_count && !sb->userns) {
            /* One that can't be written by its nature says so itself. */
            sb->flags = (flags & sb_flags) | (sb->flags & MS_RDONLY);
            if (!userns_is_initial(owner)) {
                sb->userns = userns_ref(owner);
                sb->nodev = !type->devices;
            }
        }
        *ret_root = root;
    }
    userns_unref(owner);
    return ret;
}

bool fs_type_may_change(const struct ctx *ctx, const struct superblock *sb)
{
    return cred_ns_cap(ctx->cred, sb->userns, CAP_SYS_ADMIN);
}
