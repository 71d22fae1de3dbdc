/* SPDX-License-Identifier: Apache-2.0 */
/* From the upper layer's format (docs/ARCHITECTURE.md, the root as an overlay) to that of image layers. */
#include "runtime/layer_export.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "platform/base/alloc.h"
#include "platform/base/buf.h"
#include "platform/base/host.h"
#include "platform/base/log.h"
#include "runtime/errtext.h"
#include "runtime/layer_store.h"
#include "runtime/tar_writer.h"
#include "runtime/tree_walk.h"

#define EXPORT_PRIVATE "user.cloister."

enum { EXPORT_CHUNK = 256 * 1024, EXPORT_BUCKETS = 4096, EXPORT_VALUE_MAX = 65536 };

/* A file of several names that was written under the first. */
struct export_name {
    struct export_name *next;
    dev_t dev;
    ino_t ino;
    char path[];
};

struct export_state {
    struct tar_writer tar;
    struct export_name *names[EXPORT_BUCKETS];
    char *chunk;          /* EXPORT_CHUNK bytes */
    struct buf failed_at; /* the path at which something went wrong */
};

/* ---- attributes ---- */

/* The name that the container saw, in buf or name itself. Return: NULL for those of the layer's own. */
static const char *export_xattr_name(const char *name, char buf[static XATTR_NAME_MAX + 1])
{
    static const char escaped[] = EXPORT_PRIVATE "escaped.", trusted[] = EXPORT_PRIVATE "trusted.";
    if (!strncmp(name, trusted, strlen(trusted)))
        snprintf(buf, XATTR_NAME_MAX + 1, "trusted.%s", name + strlen(trusted));
    else if (!strncmp(name, escaped, strlen(escaped)))
        snprintf(buf, XATTR_NAME_MAX + 1, EXPORT_PRIVATE "%s", name + strlen(escaped));
    else
        return strncmp(name, EXPORT_PRIVATE, strlen(EXPORT_PRIVATE)) ? name : NULL;
    return buf;
}

/* Whether the container had anything to do with it: the host's labels are not the layer's. */
static bool export_wants_xattr(const char *name)
{
    return strncmp(name, "security.", 9) || !strcmp(name, "security.capability");
}

static int export_xattr(struct export_state *x, const char *self, const char *name)
{
    char buf[XATTR_NAME_MAX + 1], key[XATTR_NAME_MAX + 32];
    const char *shown = export_xattr_name(name, buf);
    if (!shown || !export_wants_xattr(shown))
        return 0;
    ssize_t n = lgetxattr(self, name, x->chunk, EXPORT_VALUE_MAX);
    if (n < 0)
        return errno == ENODATA ? 0 : -errno;
    snprintf(key, sizeof(key), "SCHILY.xattr.%s", shown);
    tar_add_record(&x->tar, key, x->chunk, (size_t)n);
    return 0;
}

/* Through /proc/self/fd, for hosts have no such calls relative to a directory. Return: 1 when it is an opaque directory, 0, −errno. */
static int export_xattrs(struct export_state *x, const struct tree_entry *entry)
{
    char self[PATH_MAX], *names = x->chunk + EXPORT_CHUNK - XATTR_LIST_MAX;
    snprintf(self, sizeof(self), "/proc/self/fd/%d/%s", entry->dir, entry->name);
    ssize_t n = llistxattr(self, names, XATTR_LIST_MAX);
    int opaque = 0;
    if (n < 0)
        return errno == EOPNOTSUPP ? 0 : -errno;
    for (ssize_t at = 0; at < n; at += (ssize_t)strlen(names + at) + 1) {
        opaque |= !strcmp(names + at, EXPORT_PRIVATE "overlay.opaque");
        int r = export_xattr(x, self, names + at);
        if (r < 0)
            return r;
    }
    return opaque;
}

/* ---- entries ---- */

static int export_content(struct export_state *x, const struct tree_entry *entry)
{
    CLEANUP_CLOSE int fd = openat(entry->dir, entry->name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NOATIME);
    if (fd < 0)
        return -errno;
    int r = 0;
    while (r == 0 && x->tar.left) {
        ssize_t n = read(fd, x->chunk, EXPORT_CHUNK);
        if (n <= 0) {
            r = n < 0 ? -errno : 0;
            break;
        }
        r = tar_write(&x->tar, x->chunk, (size_t)n);
    }
    return r < 0 ? r : tar_finish_entry(&x->tar);
}

/* The path under which this file was written already, or NULL after noting it. */
static int export_known(struct export_state *x, const struct tree_entry *entry, const char **ret_path)
{
    const struct stat *st = entry->st;
    struct export_name **bucket = &x->names[st->st_ino % EXPORT_BUCKETS];
    *ret_path = NULL;
    if (S_ISDIR(st->st_mode) || st->st_nlink < 2)
        return 0;
    for (const struct export_name *n = *bucket; n; n = n->next) {
        if (n->ino == st->st_ino && n->dev == st->st_dev) {
            *ret_path = n->path;
            return 0;
        }
    }
    size_t size = strlen(entry->path) + 1;
    struct export_name *n = mem_zalloc(sizeof(*n) + size);
    if (!n)
        return -ENOMEM;
    n->dev = st->st_dev;
    n->ino = st->st_ino;
    memcpy(n->path, entry->path, size);
    n->next = *bucket;
    *bucket = n;
    return 0;
}

/* A mark: an empty file "DIR/.wh.NAME". dir_size: length of "DIR/" in path. */
static int export_mark(struct export_state *x, const char *path, size_t dir_size, const char *name, const struct stat *like)
{
    CLEANUP_BUF struct buf mark = {.data = NULL};
    struct stat st = {.st_mode = S_IFREG | 0600, .st_mtim = like->st_mtim};
    buf_append(&mark, path, dir_size);
    buf_printf(&mark, ".wh.%s", name);
    const struct tar_entry entry = {.path = mark.data, .st = &st};
    return buf_error(&mark) < 0 ? -ENOMEM : tar_put(&x->tar, &entry);
}

static int export_directory(struct export_state *x, const struct tree_entry *entry, bool opaque)
{
    CLEANUP_BUF struct buf path = {.data = NULL};
    buf_printf(&path, "%s/", entry->path);
    if (buf_error(&path) < 0)
        return -ENOMEM;
    const struct tar_entry head = {.path = path.data, .st = entry->st};
    int r = tar_put(&x->tar, &head);
    return r == 0 && opaque ? export_mark(x, path.data, path.size, ".wh..opq", entry->st) : r;
}

static int export_file(struct export_state *x, const struct tree_entry *entry)
{
    char target[PATH_MAX];
    struct stat st = *entry->st;
    struct tar_entry head = {.path = entry->path, .st = &st};
    int r = export_known(x, entry, &head.link);
    if (r < 0)
        return r;
    if (head.link) {
        head.hard = true;
        x->tar.pax.size = 0; /* the first name has brought them */
    } else if (S_ISLNK(st.st_mode)) {
        ssize_t n = readlinkat(entry->dir, entry->name, target, sizeof(target) - 1);
        if (n < 0)
            return -errno;
        target[n] = '\0';
        head.link = target;
    } else if (S_ISCHR(st.st_mode) && major(st.st_rdev) == 0) {
        st.st_rdev = makedev(0, minor(st.st_rdev) - 1);
    }
    r = tar_put(&x->tar, &head);
    return r == 0 && S_ISREG(st.st_mode) && !head.hard ? export_content(x, entry) : r;
}

static int export_entry(void *arg, const struct tree_entry *entry)
{
    struct export_state *x = arg;
    const struct stat *st = entry->st;
    int r;
    if (S_ISCHR(st->st_mode) && st->st_rdev == 0) {
        r = export_mark(x, entry->path, strlen(entry->path) - strlen(entry->name), entry->name, st);
    } else if (S_ISSOCK(st->st_mode)) {
        log_warn("%s is a socket, which an archive can't have: left out", entry->path);
        r = 0;
    } else {
        r = export_xattrs(x, entry);
        if (r >= 0)
            r = S_ISDIR(st->st_mode) ? export_directory(x, entry, r) : export_file(x, entry);
    }
    if (r < 0)
        buf_puts(&x->failed_at, entry->path);
    return r;
}

/* The root's own entry, if the container has changed its attributes. */
static int export_root(struct export_state *x, int upper, const char *rootfs)
{
    struct stat st, lower;
    if (fstat(upper, &st) < 0)
        return -errno;
    bool same = stat(rootfs, &lower) == 0 && lower.st_mode == st.st_mode && lower.st_uid == st.st_uid && lower.st_gid == st.st_gid;
    const struct tree_entry entry = {.dir = upper, .name = ".", .path = ".", .st = &st};
    int r = same ? 0 : export_xattrs(x, &entry);
    return same || r < 0 ? r : export_directory(x, &entry, false);
}

int layer_export(const char *path, const char *rootfs, int fd, struct errmsg *e)
{
    CLEANUP_CLOSE int upper_path = layer_store_open_upper(path);
    CLEANUP_CLOSE int upper = upper_path < 0 ? -1 : openat(upper_path, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (upper < 0)
        return errmsg_set(e, -ENOENT, "the layer %s is not there", path);
    struct export_state x = {.chunk = mem_zalloc(EXPORT_CHUNK)};
    tar_init(&x.tar, fd);
    int r = x.chunk ? export_root(&x, upper, rootfs) : -ENOMEM;
    if (r >= 0)
        r = tree_walk(upper, export_entry, &x);
    if (r == 0)
        r = tar_finish(&x.tar);
    if (r < 0)
        errmsg_set(e, r, "export the layer: %s%s%s", x.failed_at.size ? x.failed_at.data : "", x.failed_at.size ? ": " : "", errtext(r));
    for (size_t i = 0; i < EXPORT_BUCKETS; i++) {
        while (x.names[i]) {
            struct export_name *n = x.names[i];
            x.names[i] = n->next;
            mem_free(n);
        }
    }
    tar_free(&x.tar);
    buf_free(&x.failed_at);
    mem_free(x.chunk);
    return r;
}
