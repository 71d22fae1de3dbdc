/* SPDX-License-Identifier: Apache-2.0 */
/* The table of file-system types. */
#include "sentry/vfs/mount.h"

#include <errno.h>
#include <string.h>

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
