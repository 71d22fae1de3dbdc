/* SPDX-License-Identifier: Apache-2.0 */
/* Layers on disk. Root file systems come from images, which may bring a directory of the store's name: each step down is taken
 * without following links, and only into directories of root's that nobody else may enter. */
#include "runtime/layer_store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "gofer/proto/wire.h"
#include "platform/base/alloc.h"
#include "platform/base/buf.h"
#include "platform/base/host.h"
#include "platform/base/log.h"
#include "runtime/errtext.h"
#include "runtime/remove_tree.h"
#include "runtime/tree_walk.h"

enum { LAYER_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

/* ---- paths ---- */

/* FNV-1a. */
static uint64_t layer_hash(uint64_t h, const char *text)
{
    do
        h = (h ^ (unsigned char)*text) * 0x100000001b3ULL;
    while (*text++);
    return h;
}

/* ID-KEY. Two containers of one id are told apart by their state directories, and in a store that is not in the root file system by
 * that. */
static char *layer_name(const struct layer_wish *w)
{
    CLEANUP_BUF struct buf b = {.data = NULL};
    uint64_t key = layer_hash(layer_hash(0xcbf29ce484222325ULL, w->state_root), w->dir ? w->rootfs : "");
    buf_printf(&b, "%s-%016llx", w->id, (unsigned long long)key);
    return buf_error(&b) < 0 ? NULL : TAKE_PTR(b.data);
}

static char *layer_join(const char *dir, const char *name)
{
    CLEANUP_BUF struct buf b = {.data = NULL};
    buf_printf(&b, "%s/%s", dir, name);
    return buf_error(&b) < 0 ? NULL : TAKE_PTR(b.data);
}

/* Directory of path, whose last component nothing follows; the name is *ret_name, in path. */
static int layer_open_parent(const char *path, const char **ret_name)
{
    const char *slash = strrchr(path, '/');
    CLEANUP_FREE char *dir = mem_strndup(path, slash == path ? 1 : (size_t)(slash - path));
    if (!dir)
        return -ENOMEM;
    *ret_name = slash + 1;
    return (int)host_ret(open(dir, LAYER_FLAGS));
}

/* ---- opening ---- */

/* A directory of the store, made when missing. Return: descriptor, −errno. */
static int layer_enter(int parent, const char *name, bool *ret_made)
{
    bool made = mkdirat(parent, name, 0700) == 0;
    struct stat st;
    if (!made && errno != EEXIST)
        return -errno;
    CLEANUP_CLOSE int fd = openat(parent, name, LAYER_FLAGS);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (st.st_uid != geteuid() || (st.st_mode & 0077))
        return -EPERM;
    if (ret_made)
        *ret_made = made;
    return TAKE_FD(fd);
}

/* What an upper layer needs of its file system: attributes of the user class and whiteouts. */
static int layer_probe(int dir)
{
    static const char probe[] = ".probe";
    int r = (int)host_ret(fsetxattr(dir, "user.cloister.probe", "y", 1, 0));
    if (r == 0)
        r = (int)host_ret(fremovexattr(dir, "user.cloister.probe"));
    if (r < 0)
        return r;
    (void)unlinkat(dir, probe, 0);
    r = (int)host_ret(mknodat(dir, probe, S_IFCHR, 0));
    if (r == 0)
        r = (int)host_ret(unlinkat(dir, probe, 0));
    return r;
}

/* Opens and locks the layer name in the directory of store, both made when missing. */
static int layer_open_in(int store, const char *name, struct layer_store *ret)
{
    for (int tries = 0; tries < 8; tries++) {
        bool made;
        struct stat by_name, by_fd;
        CLEANUP_CLOSE int fd = layer_enter(store, name, &made);
        if (fd < 0)
            return fd;
        if (flock(fd, LOCK_EX | LOCK_NB) < 0)
            return errno == EWOULDBLOCK ? -EBUSY : -errno;
        /* It may have been dropped just before it was locked. */
        if (fstat(fd, &by_fd) < 0 || fstatat(store, name, &by_name, AT_SYMLINK_NOFOLLOW) < 0 || by_fd.st_ino != by_name.st_ino)
            continue;
        int r = made ? layer_probe(fd) : 0;
        if (r < 0) {
            (void)unlinkat(store, name, AT_REMOVEDIR);
            return r;
        }
        ret->fd = TAKE_FD(fd);
        ret->fresh = made;
        return 0;
    }
    return -EAGAIN;
}

/* The layer below the directory top, in store_name there, or right in top when that is NULL. */
static int layer_try(const char *top, const char *store_name, const char *name, struct layer_store *ret)
{
    CLEANUP_FREE char *store_path = store_name ? layer_join(top, store_name) : mem_strdup(top);
    CLEANUP_FREE char *path = store_path ? layer_join(store_path, name) : NULL;
    CLEANUP_CLOSE int dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (!path)
        return -ENOMEM;
    if (dir < 0)
        return -errno;
    bool made = false;
    CLEANUP_CLOSE int store = store_name ? layer_enter(dir, store_name, &made) : openat(dir, ".", LAYER_FLAGS);
    if (store < 0)
        return store_name ? store : -errno;
    int r = layer_open_in(store, name, ret);
    if (r < 0 && made)
        (void)unlinkat(dir, store_name, AT_REMOVEDIR);
    if (r == 0)
        ret->path = TAKE_PTR(path);
    return r;
}

char *layer_store_path(const struct layer_wish *w)
{
    CLEANUP_FREE char *name = layer_name(w);
    CLEANUP_FREE char *store = w->dir ? mem_strdup(w->dir) : layer_join(w->rootfs, WIRE_STORE_NAME);
    return name && store ? layer_join(store, name) : NULL;
}

int layer_store_open(const struct layer_wish *w, struct layer_store *ret_store, struct errmsg *e)
{
    struct layer_store s = {.fd = -1};
    CLEANUP_FREE char *name = layer_name(w);
    if (!name)
        return errmsg_set(e, -ENOMEM, "out of memory");
    const char *where = w->dir ? w->dir : w->rootfs;
    int r = layer_try(where, w->dir ? NULL : WIRE_STORE_NAME, name, &s);
    if (!w->dir && (r == -EROFS || r == -EOPNOTSUPP || r == -EPERM)) {
        log_debug("no layer in %s (%s): in the state directory", where, errtext(r));
        where = w->state_dir;
        r = layer_try(where, NULL, "layer", &s);
    }
    if (r == -EBUSY)
        return errmsg_set(e, r, "overlay: the layer of container %s in %s is in use", w->id, where);
    if (r == -EOPNOTSUPP || r == -EPERM)
        return errmsg_set(e, -EOPNOTSUPP, "overlay: the file system of %s can't have a layer (user xattrs and whiteouts: %s); see "
                          "--overlay-dir, --overlay-medium=memory, --overlay=none", where, errtext(r));
    if (r < 0)
        return errmsg_set(e, r, "overlay: make a layer in %s: %s", where, errtext(r));
    *ret_store = s;
    return 0;
}

int layer_store_open_upper(const char *path)
{
    const char *name;
    CLEANUP_CLOSE int store = layer_open_parent(path, &name);
    CLEANUP_CLOSE int layer = store < 0 ? -1 : openat(store, name, LAYER_FLAGS);
    CLEANUP_CLOSE int tree = layer < 0 ? -1 : openat(layer, "0", LAYER_FLAGS);
    return tree < 0 ? -1 : openat(tree, "upper", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

void layer_store_close(struct layer_store *s)
{
    host_close(s->fd);
    mem_free(s->path);
    *s = (struct layer_store){.fd = -1};
}

int layer_store_move_lock(const struct layer_store *s, int fd, struct errmsg *e)
{
    flock(s->fd, LOCK_UN);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return errmsg_set(e, -EBUSY, "overlay: the layer %s is in use", s->path);
    return 0;
}

static int layer_add(const struct layer_store *s, const char *name, int tree_fd)
{
    struct stat st;
    bool made;
    CLEANUP_CLOSE int dir = layer_enter(s->fd, name, NULL);
    if (dir < 0)
        return dir;
    /* What an interrupted container was preparing. */
    int r = remove_tree(dir, "work");
    if (r == 0)
        r = (int)host_ret(mkdirat(dir, "work", 0700));
    if (r < 0)
        return r;
    made = mkdirat(dir, "upper", 0700) == 0;
    if (!made && errno != EEXIST)
        return -errno;
    CLEANUP_CLOSE int upper = openat(dir, "upper", LAYER_FLAGS);
    if (upper < 0 || (made && fstat(tree_fd, &st) < 0))
        return -errno;
    if (made && (fchown(upper, st.st_uid, st.st_gid) < 0 || fchmod(upper, st.st_mode & 07777) < 0))
        return -errno;
    return 0;
}

int layer_store_add(const struct layer_store *s, unsigned tree, int tree_fd, struct errmsg *e)
{
    char name[16];
    snprintf(name, sizeof(name), "%u", tree);
    int r = layer_add(s, name, tree_fd);
    return r < 0 ? errmsg_set(e, r, "overlay: make %s/%s: %s", s->path, name, errtext(r)) : 0;
}

int layer_store_usage(const char *path, uint64_t *ret_size, uint64_t *ret_names)
{
    const char *name;
    CLEANUP_CLOSE int store = layer_open_parent(path, &name);
    CLEANUP_CLOSE int layer = store < 0 ? store : (int)host_ret(openat(store, name, LAYER_FLAGS));
    return layer < 0 ? layer : tree_usage(layer, ret_size, ret_names);
}

/* ---- letting go ---- */

static bool layer_dir_is_empty(int dir, const char *name)
{
    CLEANUP_CLOSE int fd = openat(dir, name, LAYER_FLAGS);
    DIR *list = fd < 0 ? NULL : fdopendir(fd);
    if (!list)
        return false;
    (void)TAKE_FD(fd);
    const struct dirent *d;
    bool empty = true;
    errno = 0;
    while (empty && (d = readdir(list)))
        empty = !strcmp(d->d_name, ".") || !strcmp(d->d_name, "..");
    empty = empty && errno == 0;
    closedir(list);
    return empty;
}

/* Whether tree N of the layer says nothing that its lower tree does not say. */
static bool layer_says_nothing(int dir, const char *rootfs)
{
    struct stat upper, lower;
    if (!layer_dir_is_empty(dir, "upper") || fstatat(dir, "upper", &upper, AT_SYMLINK_NOFOLLOW) < 0)
        return false;
    /* An owner, a mode or an attribute of the root alone is worth keeping. Of volumes only names count. */
    CLEANUP_CLOSE int fd = openat(dir, "upper", LAYER_FLAGS);
    if (!rootfs)
        return true;
    return stat(rootfs, &lower) == 0 && upper.st_mode == lower.st_mode && upper.st_uid == lower.st_uid &&
           upper.st_gid == lower.st_gid && flistxattr(fd, NULL, 0) == 0;
}

/* Removes what need not stay of the layer. Return: 1 when something stays, 0, −errno. */
static int layer_tidy(int layer, const char *rootfs, bool keep)
{
    CLEANUP_CLOSE int list_fd = openat(layer, ".", LAYER_FLAGS);
    DIR *list = list_fd < 0 ? NULL : fdopendir(list_fd);
    if (!list)
        return -errno;
    (void)TAKE_FD(list_fd);
    const struct dirent *d;
    int r = 0;
    bool stays = false;
    while (r == 0 && (d = readdir(list))) {
        if (!strcmp(d->d_name, ".") || !strcmp(d->d_name, ".."))
            continue;
        CLEANUP_CLOSE int tree = keep ? openat(layer, d->d_name, LAYER_FLAGS) : -1;
        if (tree >= 0 && !layer_says_nothing(tree, strcmp(d->d_name, "0") ? NULL : rootfs)) {
            stays = true;
            r = remove_tree(tree, "work");
        } else {
            r = remove_tree(layer, d->d_name);
        }
    }
    closedir(list);
    return r < 0 ? r : stays;
}

int layer_store_drop(const char *path, const char *rootfs, bool keep, struct errmsg *e)
{
    const char *name;
    CLEANUP_CLOSE int store = layer_open_parent(path, &name);
    CLEANUP_CLOSE int layer = store < 0 ? -1 : openat(store, name, LAYER_FLAGS);
    if (layer < 0 || flock(layer, LOCK_EX | LOCK_NB) < 0)
        return 0;
    int r = layer_tidy(layer, rootfs, keep);
    if (r == 0)
        r = unlinkat(store, name, AT_REMOVEDIR) < 0 && errno != ENOENT ? -errno : 0;
    if (r < 0)
        return errmsg_set(e, r, "remove the layer %s: %s", path, errtext(r));
    /* The store in a root file system goes with its last layer. */
    const char *store_name;
    CLEANUP_FREE char *store_path = mem_strndup(path, (size_t)(name - 1 - path));
    CLEANUP_CLOSE int top = store_path ? layer_open_parent(store_path, &store_name) : -1;
    if (top >= 0 && !strcmp(store_name, WIRE_STORE_NAME))
        (void)unlinkat(top, store_name, AT_REMOVEDIR);
    return 0;
}
