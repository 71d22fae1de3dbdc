/* SPDX-License-Identifier: Apache-2.0 */
/* The state directory of one container. Every change is one rename or one unlink, so that a command
 * killed at any point leaves something that the next one understands. */
#include "runtime/statefile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "oci/json.h"
#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "platform/base/log.h"
#include "runtime/errtext.h"
#include "runtime/remove_tree.h"

enum { STATEFILE_RETRIES = 16 };

static const char statefile_name[] = "state.json";
static const char statefile_tmp_name[] = "state.json.new";
static const char statefile_lock_name[] = "lock";
static const char statefile_config_name[] = "config.json";

int statefile_check_id(const char *id, struct errmsg *e)
{
    if (!*id)
        return errmsg_set(e, -EINVAL, "container id cannot be empty");
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+,-.";
    if (id[strspn(id, allowed)] || strcmp(id, ".") == 0 || strcmp(id, "..") == 0)
        return errmsg_set(e, -EINVAL, "invalid container ID format");
    return 0;
}

static int statefile_make_root(const char *root, struct errmsg *e)
{
    CLEANUP_FREE char *part = mem_strdup(root);
    if (!part)
        return errmsg_set(e, -ENOMEM, "out of memory");
    for (char *at = part + 1;; at++) {
        if (*at && *at != '/')
            continue;
        char saved = *at;
        *at = '\0';
        if (mkdir(part, 0700) < 0 && errno != EEXIST)
            return errmsg_set(e, -errno, "mkdir %s: %s", part, errtext(errno));
        *at = saved;
        if (!saved)
            return 0;
    }
}

int statefile_lock(int dir, bool wait)
{
    int fd = openat(dir, statefile_lock_name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    while (flock(fd, LOCK_EX | (wait ? 0 : LOCK_NB)) < 0) {
        if (errno == EINTR)
            continue;
        int err = errno;
        host_close(fd);
        return -err;
    }
    return fd;
}

/* Whether dir is what root_fd/id names now. */
static bool statefile_is_current(int root_fd, const char *id, int dir)
{
    struct stat by_name, by_fd;
    return fstatat(root_fd, id, &by_name, AT_SYMLINK_NOFOLLOW) == 0 && fstat(dir, &by_fd) == 0 &&
           by_name.st_dev == by_fd.st_dev && by_name.st_ino == by_fd.st_ino;
}

/* One attempt to own ROOT/ID. Return: directory fd; −EAGAIN: it vanished meanwhile, try again. */
static int statefile_try_new_dir(int root_fd, const char *id, int *ret_lock)
{
    bool made = mkdirat(root_fd, id, 0700) == 0;
    if (!made && errno != EEXIST)
        return -errno;
    CLEANUP_CLOSE int dir = openat(root_fd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (dir < 0)
        return errno == ENOENT ? -EAGAIN : errno == ENOTDIR ? -EEXIST : -errno;
    if (faccessat(dir, statefile_name, F_OK, 0) == 0)
        return -EEXIST;
    CLEANUP_CLOSE int lock = statefile_lock(dir, false);
    if (lock == -EWOULDBLOCK)
        return -EEXIST;
    if (lock < 0) {
        if (made)
            unlinkat(root_fd, id, AT_REMOVEDIR);
        return lock == -ENOENT ? -EAGAIN : lock;
    }
    if (!statefile_is_current(root_fd, id, dir))
        return -EAGAIN;
    if (faccessat(dir, statefile_name, F_OK, 0) == 0)
        return -EEXIST;
    *ret_lock = TAKE_FD(lock);
    return TAKE_FD(dir);
}

int statefile_new_dir(const char *root, const char *id, int *ret_lock, struct errmsg *e)
{
    int r = statefile_check_id(id, e);
    if (r == 0)
        r = statefile_make_root(root, e);
    if (r < 0)
        return r;
    CLEANUP_CLOSE int root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root_fd < 0)
        return errmsg_set(e, -errno, "open %s: %s", root, errtext(errno));
    for (int i = 0; i < STATEFILE_RETRIES; i++) {
        r = statefile_try_new_dir(root_fd, id, ret_lock);
        if (r != -EAGAIN)
            break;
    }
    if (r == -EEXIST)
        return errmsg_set(e, r, "container with given ID already exists");
    if (r < 0)
        return errmsg_set(e, r, "mkdir %s/%s: %s", root, id, errtext(r));
    return r;
}

int statefile_open_dir(const char *root, const char *id, struct errmsg *e)
{
    int r = statefile_check_id(id, e);
    if (r < 0)
        return r;
    char *path = NULL;
    if (asprintf(&path, "%s/%s", root, id) < 0)
        return errmsg_set(e, -ENOMEM, "out of memory");
    int fd = (int)host_ret(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    if (fd == -ENOENT || fd == -ENOTDIR)
        fd = errmsg_set(e, -ENOENT, "container does not exist");
    else if (fd < 0)
        errmsg_set(e, fd, "open %s: %s", path, errtext(fd));
    free(path);
    return fd;
}

/* --- state.json --- */

static void statefile_put_procid(struct json_writer *w, const char *key, const struct procid *id)
{
    json_open_object(w, key);
    json_put_i64(w, "pid", id->pid);
    json_put_u64(w, "start", id->start);
    json_close_object(w);
}

static void statefile_encode(struct buf *out, const struct statefile *s)
{
    struct json_writer w;
    json_writer_init(&w, out, "  ");
    json_open_object(&w, NULL);
    json_put_string(&w, "ociVersion", s->oci_version);
    json_put_string(&w, "bundle", s->bundle);
    json_put_string(&w, "rootfs", s->rootfs);
    json_put_string(&w, "owner", s->owner);
    json_put_string(&w, "status", ocistate_status_name(s->status));
    json_put_i64(&w, "createdSec", s->created.tv_sec);
    json_put_i64(&w, "createdNsec", s->created.tv_nsec);
    statefile_put_procid(&w, "creator", &s->creator);
    statefile_put_procid(&w, "gofer", &s->gofer);
    statefile_put_procid(&w, "sentry", &s->sentry);
    json_open_array(&w, "cgroups");
    for (unsigned i = 0; i < s->cgroup_dirs_len; i++)
        json_put_string(&w, NULL, s->cgroup_dirs[i]);
    json_close_array(&w);
    json_put_bool(&w, "cgroupNamespace", s->cgroup_namespace);
    json_put_bool(&w, "terminal", s->terminal);
    json_put_string(&w, "layer", s->layer ? s->layer : "");
    json_put_bool(&w, "layerKeep", s->layer_keep);
    json_put_u64(&w, "layerLimit", s->layer_limit);
    json_open_object(&w, "annotations");
    for (unsigned i = 0; i < s->annotations.len; i++)
        json_put_string(&w, s->annotations.v[i].key, s->annotations.v[i].value);
    json_close_object(&w);
    json_close_object(&w);
    buf_putc(out, '\n');
}

/* Writes a file under a temporary name and moves it into place. */
static int statefile_replace(int dir, const char *tmp, const char *name, const char *data, size_t size,
                             struct errmsg *e)
{
    CLEANUP_CLOSE int fd = openat(dir, tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    int r = fd < 0 ? -errno : host_write_all(fd, data, size);
    if (r == 0)
        r = (int)host_ret(renameat(dir, tmp, dir, name));
    if (r < 0) {
        unlinkat(dir, tmp, 0);
        return errmsg_set(e, r, "write %s in the state directory: %s", name, errtext(r));
    }
    return 0;
}

int statefile_write(int dir, const struct statefile *state, struct errmsg *e)
{
    CLEANUP_BUF struct buf out = {.data = NULL};
    statefile_encode(&out, state);
    if (buf_error(&out) < 0)
        return errmsg_set(e, -ENOMEM, "out of memory");
    return statefile_replace(dir, statefile_tmp_name, statefile_name, out.data, out.size, e);
}

static int statefile_get_string(const struct json_value *object, const char *name, const char **ret,
                                struct errmsg *e)
{
    const struct json_value *v = json_member_peek(object, name);
    return v ? json_as_string(v, ret, e) : json_missing(object, name, e);
}

static int statefile_get_i64(const struct json_value *object, const char *name, int64_t *ret,
                             struct errmsg *e)
{
    const struct json_value *v = json_member_peek(object, name);
    return v ? json_as_i64(v, 0, INT64_MAX, ret, e) : json_missing(object, name, e);
}

static int statefile_get_bool(const struct json_value *object, const char *name, bool *ret,
                              struct errmsg *e)
{
    const struct json_value *v = json_member_peek(object, name);
    return v ? json_as_bool(v, ret, e) : json_missing(object, name, e);
}

static int statefile_get_procid(const struct json_value *object, const char *name, struct procid *ret,
                                struct errmsg *e)
{
    const struct json_value *v = json_member_peek(object, name);
    if (!v)
        return json_missing(object, name, e);
    int64_t pid = 0, start = 0;
    int r = json_expect(v, JSON_OBJECT, e);
    if (r == 0)
        r = statefile_get_i64(v, "pid", &pid, e);
    if (r == 0)
        r = statefile_get_i64(v, "start", &start, e);
    if (r == 0 && pid > INT_MAX)
        r = json_error(v, e, "pid out of range");
    if (r == 0)
        *ret = (struct procid){.pid = (pid_t)pid, .start = (uint64_t)start};
    return r;
}

static int statefile_get_status(const struct json_value *root, enum ocistate_status *ret, struct errmsg *e)
{
    const char *name;
    int r = statefile_get_string(root, "status", &name, e);
    if (r < 0)
        return r;
    for (int s = OCISTATE_CREATING; s <= OCISTATE_STOPPED; s++)
        if (strcmp(name, ocistate_status_name((enum ocistate_status)s)) == 0) {
            *ret = (enum ocistate_status)s;
            return 0;
        }
    return errmsg_set(e, -EINVAL, "status: unknown value \"%s\"", name);
}

static int statefile_get_lists(const struct json_value *root, struct statefile *s, struct errmsg *e)
{
    const struct json_value *dirs = json_member_peek(root, "cgroups");
    const struct json_value *notes = json_member_peek(root, "annotations");
    if (!dirs || !notes)
        return json_missing(root, dirs ? "annotations" : "cgroups", e);
    int r = json_expect(dirs, JSON_ARRAY, e);
    if (r == 0)
        r = json_expect(notes, JSON_OBJECT, e);
    if (r < 0)
        return r;
    const char **v = arena_calloc(&s->arena, json_len(dirs) + 1, sizeof(*v));
    struct oci_pair *pairs = arena_calloc(&s->arena, json_len(notes) + 1, sizeof(*pairs));
    if (!v || !pairs)
        return errmsg_set(e, -ENOMEM, "out of memory");
    json_for_each(dir, dirs) {
        r = json_as_string(dir, &v[s->cgroup_dirs_len++], e);
        if (r < 0)
            return r;
    }
    json_for_each(note, notes) {
        struct oci_pair *pair = &pairs[s->annotations.len++];
        pair->key = json_key(note);
        r = json_as_string(note, &pair->value, e);
        if (r < 0)
            return r;
    }
    s->cgroup_dirs = v;
    s->annotations.v = pairs;
    return 0;
}

/* States that were written before there were layers have none. */
static int statefile_get_layer(const struct json_value *root, struct statefile *s, struct errmsg *e)
{
    s->layer = "";
    if (!json_member_peek(root, "layer"))
        return 0;
    int64_t limit = 0;
    int r = statefile_get_string(root, "layer", &s->layer, e);
    if (r == 0)
        r = statefile_get_bool(root, "layerKeep", &s->layer_keep, e);
    if (r == 0)
        r = statefile_get_i64(root, "layerLimit", &limit, e);
    s->layer_limit = (uint64_t)limit;
    return r;
}

static int statefile_decode(struct statefile *s, const char *text, size_t size, struct errmsg *e)
{
    const struct json_value *root;
    int64_t sec = 0, nsec = 0;
    int r = json_parse(&s->arena, text, size, "", &root, e);
    if (r == 0)
        r = json_expect(root, JSON_OBJECT, e);
    if (r == 0)
        r = statefile_get_string(root, "ociVersion", &s->oci_version, e);
    if (r == 0)
        r = statefile_get_string(root, "bundle", &s->bundle, e);
    if (r == 0)
        r = statefile_get_string(root, "rootfs", &s->rootfs, e);
    if (r == 0)
        r = statefile_get_string(root, "owner", &s->owner, e);
    if (r == 0)
        r = statefile_get_status(root, &s->status, e);
    if (r == 0)
        r = statefile_get_i64(root, "createdSec", &sec, e);
    if (r == 0)
        r = statefile_get_i64(root, "createdNsec", &nsec, e);
    if (r == 0)
        r = statefile_get_procid(root, "creator", &s->creator, e);
    if (r == 0)
        r = statefile_get_procid(root, "gofer", &s->gofer, e);
    if (r == 0)
        r = statefile_get_procid(root, "sentry", &s->sentry, e);
    if (r == 0)
        r = statefile_get_bool(root, "cgroupNamespace", &s->cgroup_namespace, e);
    if (r == 0)
        r = statefile_get_bool(root, "terminal", &s->terminal, e);
    if (r == 0)
        r = statefile_get_layer(root, s, e);
    if (r == 0)
        r = statefile_get_lists(root, s, e);
    s->created = (struct timespec){.tv_sec = sec, .tv_nsec = nsec};
    return r;
}

int statefile_read(int dir, struct statefile *ret_state, struct errmsg *e)
{
    CLEANUP_FREE char *text = NULL;
    size_t size;
    int r = host_read_file(dir, statefile_name, JSON_SIZE_MAX, &text, &size);
    if (r == -ENOENT)
        return errmsg_set(e, r, "container does not exist");
    if (r < 0)
        return errmsg_set(e, r, "read %s: %s", statefile_name, errtext(r));
    struct statefile s = {.status = OCISTATE_STOPPED};
    r = statefile_decode(&s, text, size, e);
    if (r < 0) {
        statefile_free(&s);
        return errmsg_prefix(e, r, "read %s", statefile_name);
    }
    *ret_state = s;
    return 0;
}

void statefile_free(struct statefile *state)
{
    arena_free(&state->arena);
    *state = (struct statefile){.status = OCISTATE_STOPPED};
}

int statefile_save_config(int dir, const char *json, size_t size, struct errmsg *e)
{
    return statefile_replace(dir, "config.json.new", statefile_config_name, json, size, e);
}

int statefile_read_config(int dir, char **ret_json, size_t *ret_size, struct errmsg *e)
{
    int r = host_read_file(dir, statefile_config_name, JSON_SIZE_MAX, ret_json, ret_size);
    return r < 0 ? errmsg_set(e, r, "read the saved config.json: %s", errtext(r)) : 0;
}

int statefile_remove(const char *root, const char *id, int dir, struct errmsg *e)
{
    CLEANUP_CLOSE int list_fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = list_fd < 0 ? NULL : fdopendir(list_fd);
    if (list) {
        (void)TAKE_FD(list_fd);
        struct dirent *entry;
        while ((entry = readdir(list)))
            if (entry->d_name[0] != '.' && strcmp(entry->d_name, statefile_name) != 0 &&
                strcmp(entry->d_name, statefile_lock_name) != 0)
                if (remove_tree(dir, entry->d_name) < 0)
                    log_warn("%s stays in the state directory", entry->d_name);
        closedir(list);
    }
    /* The state last: until it is gone the container can be found and deleted again. */
    if (unlinkat(dir, statefile_name, 0) < 0 && errno != ENOENT)
        return errmsg_set(e, -errno, "remove %s: %s", statefile_name, errtext(errno));
    unlinkat(dir, statefile_lock_name, 0);
    CLEANUP_CLOSE int root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root_fd < 0 || (statefile_is_current(root_fd, id, dir) &&
                        unlinkat(root_fd, id, AT_REMOVEDIR) < 0 && errno != ENOENT))
        return errmsg_set(e, -errno, "remove %s/%s: %s", root, id, errtext(errno));
    return 0;
}
