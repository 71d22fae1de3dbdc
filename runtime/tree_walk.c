/* SPDX-License-Identifier: Apache-2.0 */
/* A walk without recursion and with one open directory: a guest decides how deep and how wide the tree is. */
#include "runtime/tree_walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "platform/base/alloc.h"
#include "platform/base/buf.h"
#include "platform/base/host.h"

enum { TREE_BATCH = 32768, TREE_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

struct tree_level {
    size_t path_size; /* of the directory's own path */
    int64_t next;     /* position in it after the directory that is being looked at */
};

struct tree_state {
    int dir;
    struct tree_level *levels;
    size_t depth, room;
    struct buf path; /* of dir, with a slash at its end */
    char *batch;
    dev_t dev;
    int (*fn)(void *arg, const struct tree_entry *entry);
    void *arg;
};

static int tree_down(struct tree_state *t, const char *name, int64_t next)
{
    if (t->depth == t->room) {
        size_t room = t->room ? t->room * 2 : 64;
        struct tree_level *levels = mem_realloc(t->levels, room, sizeof(*levels));
        if (!levels)
            return -ENOMEM;
        t->levels = levels;
        t->room = room;
    }
    int fd = openat(t->dir, name, TREE_FLAGS);
    if (fd < 0)
        return -errno;
    t->levels[t->depth++] = (struct tree_level){.path_size = t->path.size, .next = next};
    buf_printf(&t->path, "%s/", name);
    host_close(t->dir);
    t->dir = fd;
    return buf_error(&t->path);
}

static int tree_up(struct tree_state *t)
{
    const struct tree_level *level = &t->levels[--t->depth];
    int fd = openat(t->dir, "..", TREE_FLAGS);
    if (fd < 0)
        return -errno;
    host_close(t->dir);
    t->dir = fd;
    t->path.size = level->path_size;
    return lseek(fd, level->next, SEEK_SET) < 0 ? -errno : 0;
}

/* Return: 1 for a directory that is to be entered, 0, −errno or fn's result. */
static int tree_entry(struct tree_state *t, const char *name)
{
    struct stat st;
    if (fstatat(t->dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    size_t size = t->path.size;
    buf_printf(&t->path, "%s", name);
    if (buf_error(&t->path) < 0)
        return -ENOMEM;
    const struct tree_entry entry = {.dir = t->dir, .name = name, .path = t->path.data, .st = &st};
    int r = t->fn(t->arg, &entry);
    t->path.size = size;
    return r ? r : S_ISDIR(st.st_mode) && st.st_dev == t->dev;
}

/* Goes on in the directory where the walk is. Return: 1 when it went down, 0 at its end, −errno or fn's result. */
static int tree_entries(struct tree_state *t)
{
    for (;;) {
        long n = host_ret(syscall(SYS_getdents64, t->dir, t->batch, TREE_BATCH));
        if (n <= 0)
            return (int)n;
        for (long at = 0; at < n;) {
            const struct dirent64 *d = (const struct dirent64 *)(t->batch + at);
            at += d->d_reclen;
            if (!strcmp(d->d_name, ".") || !strcmp(d->d_name, ".."))
                continue;
            int r = tree_entry(t, d->d_name);
            if (r == 1)
                r = tree_down(t, d->d_name, d->d_off);
            else if (r == 0)
                continue;
            return r ? r : 1;
        }
    }
}

int tree_walk(int root, int (*fn)(void *arg, const struct tree_entry *entry), void *arg)
{
    struct stat st;
    struct tree_state t = {.dir = openat(root, ".", TREE_FLAGS), .fn = fn, .arg = arg};
    if (t.dir < 0 || fstat(t.dir, &st) < 0) {
        int err = errno;
        host_close(t.dir);
        return -err;
    }
    t.dev = st.st_dev;
    t.batch = mem_zalloc(TREE_BATCH);
    buf_printf(&t.path, "%s", "");
    int r = t.batch ? 1 : -ENOMEM;
    while (r == 1) {
        r = tree_entries(&t);
        if (r == 0 && t.depth)
            r = tree_up(&t) < 0 ? -EIO : 1;
    }
    host_close(t.dir);
    buf_free(&t.path);
    mem_free(t.levels);
    mem_free(t.batch);
    return r;
}

/* ---- usage ---- */

struct tree_sum {
    uint64_t size, names;
};

static int tree_add(void *arg, const struct tree_entry *entry)
{
    struct tree_sum *sum = arg;
    uint64_t size = (uint64_t)entry->st->st_blocks * 512;
    /* All of a file's names are in the tree: each has its share. */
    sum->size += S_ISDIR(entry->st->st_mode) || entry->st->st_nlink < 2 ? size : size / entry->st->st_nlink;
    sum->names++;
    return 0;
}

int tree_usage(int root, uint64_t *ret_size, uint64_t *ret_names)
{
    struct tree_sum sum = {.size = 0};
    struct stat st;
    if (fstat(root, &st) < 0)
        return -errno;
    int r = tree_walk(root, tree_add, &sum);
    if (r < 0)
        return r;
    *ret_size = sum.size + (uint64_t)st.st_blocks * 512;
    *ret_names = sum.names;
    return 0;
}
