/* SPDX-License-Identifier: Apache-2.0 */
/* Detached trees, mount points and the home directory. */
#include "runtime/rootfs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "platform/base/alloc.h"
#include "platform/base/buf.h"
#include "platform/base/host.h"
#include "platform/base/log.h"
#include "runtime/errtext.h"

/* glibc's <sys/mount.h> and <linux/mount.h> don't go together; these are mount(2)'s numbers. */
enum {
    ROOTFS_MS_RDONLY = 1,
    ROOTFS_MS_NOEXEC = 8,
    ROOTFS_MS_REC = 1 << 14,
    ROOTFS_MS_PRIVATE = 1 << 18,
    ROOTFS_MS_SLAVE = 1 << 19,
    ROOTFS_MS_SHARED = 1 << 20,
};

enum {
    ROOTFS_PASSWD_MAX = 1 << 20,
    ROOTFS_TREES_MAX = 1024,
    ROOTFS_RETRIES = 8, /* openat2 says EAGAIN when a rename elsewhere disturbs the walk */
};

bool rootfs_is_bind(const struct oci_mount *m)
{
    return m->type && strcmp(m->type, "bind") == 0;
}

static int rootfs_join(const char *base, const char *path, char **ret_path)
{
    char *joined;
    int n = path[0] == '/' ? asprintf(&joined, "%s", path) : asprintf(&joined, "%s/%s", base, path);
    if (n < 0)
        return -ENOMEM;
    *ret_path = joined;
    return 0;
}

int rootfs_path(const struct oci_spec *spec, const char *bundle, char **ret_path)
{
    return rootfs_join(bundle, spec->root_path, ret_path);
}

static int rootfs_clone_tree(const char *path, bool recursive)
{
    unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (recursive ? AT_RECURSIVE : 0);
    return (int)host_ret(syscall(SYS_open_tree, AT_FDCWD, path, flags));
}

static int rootfs_setattr(int tree, bool recursive, const struct mount_attr *attr)
{
    unsigned flags = AT_EMPTY_PATH | (recursive ? AT_RECURSIVE : 0);
    return (int)host_ret(syscall(SYS_mount_setattr, tree, "", flags, attr, sizeof(*attr)));
}

/* Opens path as if root_fd were the root directory, whatever links the image has. */
static int rootfs_open_in_root(int root_fd, const char *path, uint64_t flags)
{
    struct open_how how = {
        .flags = flags | O_CLOEXEC | (flags & O_PATH ? 0 : O_NOCTTY),
        .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
    };
    for (int i = 0; i < ROOTFS_RETRIES; i++) {
        int fd = (int)host_ret(syscall(SYS_openat2, root_fd, path, &how, sizeof(how)));
        if (fd != -EAGAIN)
            return fd;
    }
    return -EAGAIN;
}

/* Makes every missing directory of path[0..len) under the root. */
static int rootfs_mkdirs(int root_fd, const char *path, size_t len)
{
    CLEANUP_FREE char *part = mem_strndup(path, len);
    if (!part)
        return -ENOMEM;
    for (size_t at = 0; at <= len; at++) {
        if (at != len && path[at] != '/')
            continue;
        part[at] = '\0';
        int fd = rootfs_open_in_root(root_fd, *part ? part : "/", O_PATH | O_DIRECTORY);
        if (fd == -ENOENT) {
            char *slash = strrchr(part, '/');
            if (slash)
                *slash = '\0';
            CLEANUP_CLOSE int parent = rootfs_open_in_root(root_fd, slash && *part ? part : "/",
                                                           O_PATH | O_DIRECTORY);
            if (parent < 0)
                return parent;
            if (mkdirat(parent, slash ? slash + 1 : part, 0755) < 0 && errno != EEXIST)
                return -errno;
            if (slash)
                *slash = '/';
            fd = rootfs_open_in_root(root_fd, part, O_PATH | O_DIRECTORY);
        }
        if (fd < 0)
            return fd;
        host_close(fd);
        if (at != len)
            part[at] = '/';
    }
    return 0;
}

/* Makes the mount point dest if there is nothing yet: a directory, or a file for a file mount. */
static int rootfs_make_mount_point(int root_fd, const char *dest, bool is_file)
{
    CLEANUP_CLOSE int there = rootfs_open_in_root(root_fd, dest, O_PATH);
    if (there >= 0)
        return 0;
    if (there != -ENOENT)
        return there;
    if (!is_file)
        return rootfs_mkdirs(root_fd, dest, strlen(dest));
    const char *slash = strrchr(dest, '/');
    int r = rootfs_mkdirs(root_fd, dest, (size_t)(slash - dest));
    if (r < 0)
        return r;
    CLEANUP_FREE char *parent_path = mem_strndup(dest, (size_t)(slash - dest));
    if (!parent_path)
        return -ENOMEM;
    CLEANUP_CLOSE int parent =
        rootfs_open_in_root(root_fd, *parent_path ? parent_path : "/", O_PATH | O_DIRECTORY);
    if (parent < 0)
        return parent;
    CLEANUP_CLOSE int file =
        openat(parent, slash + 1, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0755);
    return file < 0 && errno != EEXIST ? -errno : 0;
}

/* Whether the destination lies below that of an earlier mount; such mount points are not the root's. */
static bool rootfs_below_earlier(const struct oci_spec *spec, unsigned index)
{
    const char *dest = spec->mounts[index].destination;
    for (unsigned i = 0; i < index; i++) {
        const char *above = spec->mounts[i].destination;
        size_t len = strlen(above);
        if (len > 1 && strncmp(dest, above, len) == 0 && (dest[len] == '/' || dest[len] == '\0'))
            return true;
    }
    return false;
}

static int rootfs_apply_options(const struct oci_mount *m, struct rootfs_tree *tree, struct errmsg *e)
{
    /* MOUNT_ATTR_* has the values of MS_* for these two. Host-side noexec makes the host refuse
     * executable maps of the mount's files, which is what the guest must see. */
    struct mount_attr attr = {.propagation = ROOTFS_MS_PRIVATE};
    for (unsigned i = 0; i < m->parsed.propagation_len; i++)
        if (m->parsed.propagation[i] & (ROOTFS_MS_SHARED | ROOTFS_MS_SLAVE))
            attr.propagation = ROOTFS_MS_SLAVE;
    int r = rootfs_setattr(tree->fd, true, &attr);
    if (r == 0 && (m->parsed.rec_set || m->parsed.rec_cleared)) {
        attr = (struct mount_attr){.attr_set = m->parsed.rec_set, .attr_clr = m->parsed.rec_cleared};
        r = rootfs_setattr(tree->fd, true, &attr);
    }
    attr = (struct mount_attr){.attr_set = 0};
    if (m->parsed.set & ROOTFS_MS_RDONLY)
        attr.attr_set |= MOUNT_ATTR_RDONLY;
    if (m->parsed.set & ROOTFS_MS_NOEXEC)
        attr.attr_set |= MOUNT_ATTR_NOEXEC;
    if (r == 0 && attr.attr_set)
        r = rootfs_setattr(tree->fd, false, &attr);
    if (r < 0)
        return errmsg_set(e, r, "error mounting \"%s\" to rootfs at \"%s\": set mount attributes: %s",
                          m->source, m->destination, errtext(r));
    tree->read_only = (m->parsed.set & ROOTFS_MS_RDONLY) || (m->parsed.rec_set & MOUNT_ATTR_RDONLY);
    return 0;
}

static int rootfs_open_bind(const struct oci_mount *m, const char *bundle, struct rootfs_tree *tree,
                            bool *ret_is_file, struct errmsg *e)
{
    if (!m->source || !*m->source)
        return errmsg_set(e, -EINVAL, "error mounting to rootfs at \"%s\": bind mount without source",
                          m->destination);
    if (m->parsed.idmap || m->uid_mappings.len || m->gid_mappings.len)
        return errmsg_set(e, -EOPNOTSUPP,
                          "error mounting \"%s\" to rootfs at \"%s\": id-mapped mounts are not supported",
                          m->source, m->destination);
    CLEANUP_FREE char *source = NULL;
    int r = rootfs_join(bundle, m->source, &source);
    if (r < 0)
        return errmsg_set(e, r, "out of memory");
    tree->fd = rootfs_clone_tree(source, m->parsed.set & ROOTFS_MS_REC);
    struct stat st;
    if (tree->fd < 0)
        return errmsg_set(e, tree->fd, "error mounting \"%s\" to rootfs at \"%s\": %s %s: %s", m->source,
                          m->destination, tree->fd == -ENOENT ? "stat" : "open_tree", source,
                          errtext(tree->fd));
    if (fstat(tree->fd, &st) < 0)
        return errmsg_set(e, -errno, "stat %s: %s", source, errtext(errno));
    *ret_is_file = !S_ISDIR(st.st_mode);
    return rootfs_apply_options(m, tree, e);
}

static int rootfs_open_root(const struct oci_spec *spec, const char *bundle, bool read_only, struct rootfs_tree *tree,
                            struct errmsg *e)
{
    CLEANUP_FREE char *path = NULL;
    int r = rootfs_path(spec, bundle, &path);
    if (r < 0)
        return errmsg_set(e, r, "out of memory");
    tree->fd = rootfs_clone_tree(path, true);
    if (tree->fd < 0)
        return errmsg_set(e, tree->fd, "invalid rootfs: open_tree %s: %s", path, errtext(tree->fd));
    struct stat st;
    if (fstat(tree->fd, &st) < 0 || !S_ISDIR(st.st_mode))
        return errmsg_set(e, -ENOTDIR, "invalid rootfs: %s: not a directory", path);
    const struct mount_attr attr = {.propagation = ROOTFS_MS_PRIVATE};
    r = rootfs_setattr(tree->fd, true, &attr);
    if (r < 0)
        return errmsg_set(e, r, "invalid rootfs: make %s private: %s", path, errtext(r));
    tree->read_only = read_only;
    return 0;
}

/* A bind mount that has an overlay over it, or is a file, which can't have one: both keep their source from changes. */
static int rootfs_make_lower(const struct oci_mount *m, struct rootfs_tree *tree, bool is_dir, struct errmsg *e)
{
    const struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};
    int r = rootfs_setattr(tree->fd, true, &attr);
    if (r < 0)
        return errmsg_set(e, r, "error mounting \"%s\" to rootfs at \"%s\": make it read-only: %s", m->source, m->destination,
                          errtext(r));
    tree->read_only = true;
    tree->is_lower = is_dir;
    return 0;
}

static int rootfs_open_all(const struct oci_spec *spec, const char *bundle, struct rootfs_lowers lowers, struct rootfs_trees *t,
                           struct errmsg *e)
{
    bool read_only = spec->root_readonly || lowers.root;
    int r = rootfs_open_root(spec, bundle, read_only, &t->v[0], e);
    if (r < 0)
        return r;
    for (unsigned i = 0; i < spec->mounts_len; i++) {
        const struct oci_mount *m = &spec->mounts[i];
        bool is_file = false;
        if (rootfs_is_bind(m)) {
            struct rootfs_tree *tree = &t->v[t->len++];
            r = rootfs_open_bind(m, bundle, tree, &is_file, e);
            if (r == 0 && lowers.binds && !tree->read_only)
                r = rootfs_make_lower(m, tree, !is_file, e);
            if (r < 0)
                return r;
        }
        if (rootfs_below_earlier(spec, i) || lowers.root)
            continue;
        r = rootfs_make_mount_point(t->v[0].fd, m->destination, is_file);
        /* A root that nobody can write may still do: the sentry has the last word. */
        if (r < 0 && r != -EROFS)
            return errmsg_set(e, r, "error mounting \"%s\" to rootfs at \"%s\": make mount point: %s",
                              m->source ? m->source : "", m->destination, errtext(r));
    }
    if (read_only) {
        const struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};
        r = rootfs_setattr(t->v[0].fd, false, &attr);
        if (r < 0)
            return errmsg_set(e, r, "invalid rootfs: make it read-only: %s", errtext(r));
    }
    return 0;
}

int rootfs_open(const struct oci_spec *spec, const char *bundle, struct rootfs_lowers lowers, struct rootfs_trees *ret_trees,
                struct errmsg *e)
{
    unsigned binds = 0;
    for (unsigned i = 0; i < spec->mounts_len; i++)
        binds += rootfs_is_bind(&spec->mounts[i]);
    *ret_trees = (struct rootfs_trees){.len = 0};
    /* The root is a tree, too, and a store of layers. */
    if (binds + 2 > ROOTFS_TREES_MAX)
        return errmsg_set(e, -E2BIG, "more than %d bind mounts", ROOTFS_TREES_MAX - 2);
    struct rootfs_trees t = {.v = mem_calloc(binds + 2, sizeof(*t.v)), .len = 1};
    if (!t.v)
        return errmsg_set(e, -ENOMEM, "out of memory");
    for (unsigned i = 0; i <= binds + 1; i++)
        t.v[i].fd = -1;
    int r = rootfs_open_all(spec, bundle, lowers, &t, e);
    if (r < 0) {
        rootfs_close(&t);
        return r;
    }
    *ret_trees = t;
    return 0;
}

int rootfs_add_layer(struct rootfs_trees *trees, const char *path, struct errmsg *e)
{
    const struct mount_attr attr = {
        .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, .propagation = ROOTFS_MS_PRIVATE};
    CLEANUP_CLOSE int mount = rootfs_clone_tree(path, false);
    int r = mount < 0 ? mount : rootfs_setattr(mount, false, &attr);
    /* The mount lasts as long as what is open in it. */
    int fd = r < 0 ? r : (int)host_ret(openat(mount, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd >= 0)
        trees->v[trees->len++].fd = fd;
    else
        r = fd;
    return r < 0 ? errmsg_set(e, r, "overlay: open_tree %s: %s", path, errtext(r)) : 0;
}

void rootfs_close(struct rootfs_trees *trees)
{
    for (unsigned i = 0; i < trees->len; i++)
        host_close(trees->v[i].fd);
    mem_free(trees->v);
    *trees = (struct rootfs_trees){.len = 0};
}

/* Field index of a passwd line. Return: its start; its length in *ret_len. NULL if there is none. */
static const char *rootfs_passwd_field(const char *line, const char *end, unsigned index, size_t *ret_len)
{
    for (; index; index--) {
        line = memchr(line, ':', (size_t)(end - line));
        if (!line)
            return NULL;
        line++;
    }
    const char *stop = memchr(line, ':', (size_t)(end - line));
    *ret_len = (size_t)((stop ? stop : end) - line);
    return line;
}

int rootfs_home(int upper_fd, int root_fd, uint32_t uid, char **ret_home)
{
    enum { FIELD_UID = 2, FIELD_HOME = 5 };
    CLEANUP_FREE char *text = NULL;
    int passwd = upper_fd < 0 ? -ENOENT : rootfs_open_in_root(upper_fd, "/etc/passwd", O_RDONLY | O_NONBLOCK);
    if (passwd == -ENOENT)
        passwd = rootfs_open_in_root(root_fd, "/etc/passwd", O_RDONLY | O_NONBLOCK);
    CLEANUP_CLOSE int fd = passwd;
    struct stat st;
    /* The image is not trusted: only a plain file of sane size is read. */
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= ROOTFS_PASSWD_MAX) {
        text = mem_zalloc((size_t)st.st_size + 1);
        if (!text)
            return -ENOMEM;
        ssize_t n = read(fd, text, (size_t)st.st_size);
        text[n > 0 ? n : 0] = '\0';
    }
    for (const char *line = text; line && *line;) {
        const char *end = line + strcspn(line, "\n");
        size_t uid_len = 0, home_len = 0;
        const char *uid_text = rootfs_passwd_field(line, end, FIELD_UID, &uid_len);
        const char *home = rootfs_passwd_field(line, end, FIELD_HOME, &home_len);
        char *stop;
        if (uid_text && uid_len && home && home_len && strtoul(uid_text, &stop, 10) == uid &&
            stop == uid_text + uid_len) {
            *ret_home = mem_strndup(home, home_len);
            return *ret_home ? 0 : -ENOMEM;
        }
        line = *end ? end + 1 : end;
    }
    *ret_home = mem_strdup("/");
    return *ret_home ? 0 : -ENOMEM;
}
