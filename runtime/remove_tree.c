/* SPDX-License-Identifier: Apache-2.0 */
/* A walk without recursion: a guest decides how deep the tree is. */
#include "runtime/remove_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"

enum { REMOVE_BATCH = 32768 };

struct remove_walk {
    int dir;       /* where the walk is */
    char **names;  /* from its start to there */
    size_t depth, room;
    char *batch;   /* REMOVE_BATCH bytes of directory entries */
    uint64_t dev;  /* a file system; others are left alone */
};

static int remove_open_dir(int dir, const char *name)
{
    return (int)host_ret(openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

static int remove_check_dev(const struct remove_walk *w, int fd)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    return st.st_dev == w->dev ? 0 : -EXDEV;
}

static int remove_down(struct remove_walk *w, const char *name)
{
    if (w->depth == w->room) {
        size_t room = w->room ? w->room * 2 : 64;
        char **names = mem_realloc(w->names, room, sizeof(*names));
        if (!names)
            return -ENOMEM;
        w->names = names;
        w->room = room;
    }
    CLEANUP_CLOSE int fd = remove_open_dir(w->dir, name);
    int r = fd < 0 ? fd : remove_check_dev(w, fd);
    if (r < 0)
        return r;
    char *copy = mem_strdup(name);
    if (!copy)
        return -ENOMEM;
    w->names[w->depth++] = copy;
    host_close(w->dir);
    w->dir = TAKE_FD(fd);
    return 0;
}

static int remove_up(struct remove_walk *w)
{
    int fd = remove_open_dir(w->dir, "..");
    if (fd < 0)
        return fd;
    host_close(w->dir);
    w->dir = fd;
    CLEANUP_FREE char *name = w->names[--w->depth];
    return unlinkat(fd, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

/* Removes the entries of where the walk is, but directories: goes down into the first that is not empty.
 * Return: 1 when it went down, 0 when nothing is left, −errno. */
static int remove_entries(struct remove_walk *w)
{
    for (;;) {
        long n = host_ret(syscall(SYS_getdents64, w->dir, w->batch, REMOVE_BATCH));
        if (n <= 0)
            return (int)n;
        for (long at = 0; at < n;) {
            const struct dirent64 *d = (const struct dirent64 *)(w->batch + at);
            at += d->d_reclen;
            if (!strcmp(d->d_name, ".") || !strcmp(d->d_name, ".."))
                continue;
            if (d->d_type != DT_DIR && unlinkat(w->dir, d->d_name, 0) == 0)
                continue;
            if (unlinkat(w->dir, d->d_name, AT_REMOVEDIR) == 0 || errno == ENOENT)
                continue;
            if (errno != ENOTEMPTY && errno != EEXIST)
                return -errno;
            int r = remove_down(w, d->d_name);
            return r < 0 ? r : 1;
        }
    }
}

int remove_tree(int dir, const char *name)
{
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (!S_ISDIR(st.st_mode))
        return unlinkat(dir, name, 0) < 0 && errno != ENOENT ? -errno : 0;
    struct remove_walk w = {.dir = remove_open_dir(dir, name), .batch = mem_zalloc(REMOVE_BATCH), .dev = st.st_dev};
    int r = w.dir < 0 ? w.dir : w.batch ? 1 : -ENOMEM;
    while (r > 0) {
        r = remove_entries(&w);
        if (r == 0 && w.depth) {
            r = remove_up(&w);
            if (r == 0)
                r = (int)host_ret(lseek(w.dir, 0, SEEK_SET)) < 0 ? -EIO : 1;
        }
    }
    while (w.depth)
        mem_free(w.names[--w.depth]);
    mem_free(w.names);
    mem_free(w.batch);
    host_close(w.dir);
    return r < 0 ? r : unlinkat(dir, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}
