/* SPDX-License-Identifier: Apache-2.0 */
/* Path arguments. Buffers are kept in a short list: nearly every call on files needs one for a moment. */
#include "sentry/syscalls/pathname.h"

#include <errno.h>

#include "platform/base/alloc.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/usermem.h"

enum { PATHNAME_KEPT = 16 };

union pathname_buf {
    union pathname_buf *next;
    char text[PATH_SIZE_MAX];
};

static union pathname_buf *pathname_spare;
static unsigned pathname_spare_len;

int pathname_in(struct task *t, uaddr_t addr, char **ret_path)
{
    union pathname_buf *b = pathname_spare;
    if (b) {
        pathname_spare = b->next;
        pathname_spare_len--;
    } else {
        b = mem_zalloc(sizeof(*b));
        if (!b)
            return -ENOMEM;
    }
    ssize_t len = copy_in_str(&t->ctx, b->text, addr, PATH_SIZE_MAX);
    if (len < 0) {
        pathname_free(b->text);
        return (int)len;
    }
    *ret_path = b->text;
    return 0;
}

void pathname_free(char *path)
{
    if (!path)
        return;
    union pathname_buf *b = (union pathname_buf *)(void *)path;
    if (pathname_spare_len >= PATHNAME_KEPT) {
        mem_free(b);
        return;
    }
    b->next = pathname_spare;
    pathname_spare = b;
    pathname_spare_len++;
}

int pathname_walk(struct task *t, int dirfd, uaddr_t addr, unsigned walk_flags, struct path *ret_path)
{
    struct walk_base base;
    struct path hold;
    CLEANUP_PATHNAME char *buf = NULL;
    const char *path = "";
    int ret = 0;
    if (!(walk_flags & WALK_EMPTY) || !uaddr_is_null(addr)) {
        ret = pathname_in(t, addr, &buf);
        if (ret < 0)
            return ret;
        path = buf;
    }
    if (!*path && !(walk_flags & WALK_EMPTY))
        return -ENOENT;
    ret = fsctx_base(t, dirfd, path, &hold, &base);
    if (ret < 0)
        return ret;
    ret = walk_path(&t->ctx, &base, path, walk_flags, ret_path);
    path_unref(&hold);
    return ret;
}
