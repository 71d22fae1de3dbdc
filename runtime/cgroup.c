/* SPDX-License-Identifier: Apache-2.0 */
/* Cgroups: finding the hierarchies, and what v1 and v2 have in common. */
#include "runtime/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "platform/base/log.h"
#include "runtime/errtext.h"

enum {
    CGROUP_FILE_MAX = 1 << 20,
    CGROUP_REMOVE_TRIES = 200,
    CGROUP_RETRY_NS = 10 * 1000 * 1000,
};

static const char cgroup_v2_root[] = "/sys/fs/cgroup";

/* Takes ".", ".." and double slashes out of a path, as if it started at "/". */
static int cgroup_clean(const char *path, char **ret_clean)
{
    CLEANUP_FREE char *copy = mem_strdup(path);
    char *clean = mem_zalloc(strlen(path) + 2);
    if (!copy || !clean) {
        mem_free(clean);
        return -ENOMEM;
    }
    char *save;
    for (char *part = strtok_r(copy, "/", &save); part; part = strtok_r(NULL, "/", &save)) {
        if (strcmp(part, ".") == 0)
            continue;
        if (strcmp(part, "..") == 0) {
            char *slash = strrchr(clean, '/');
            if (slash)
                *slash = '\0';
            continue;
        }
        strcat(clean, "/");
        strcat(clean, part);
    }
    *ret_clean = clean;
    return 0;
}

/* Whether list, separated by commas, has word. */
static bool cgroup_has_word(const char *list, const char *word)
{
    size_t len = strlen(word);
    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, word, len) == 0 && (at[len] == ',' || at[len] == '\0'))
            return true;
    }
    return false;
}

/* This process's own cgroup in the hierarchy with these controllers ("" = v2). */
static int cgroup_own_path(const char *controllers, char **ret_path)
{
    CLEANUP_FREE char *text = NULL;
    int r = host_read_file(AT_FDCWD, "/proc/self/cgroup", CGROUP_FILE_MAX, &text, NULL);
    if (r < 0)
        return r;
    char *save;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *names = strchr(line, ':');
        char *path = names ? strchr(names + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = '\0';
        names++;
        if (strcmp(names, controllers) == 0 || (*controllers && cgroup_has_word(names, controllers)) ||
            (*names && *controllers && cgroup_has_word(controllers, names))) {
            *ret_path = mem_strdup(path);
            return *ret_path ? 0 : -ENOMEM;
        }
    }
    return -ENOENT;
}

/* Path below a mount point: a hierarchy that is mounted from /a shows /a/b as MOUNT_POINT/b. */
static const char *cgroup_below_mount(const char *path, const char *mount_root)
{
    size_t len = strlen(mount_root);
    if (len > 1 && strncmp(path, mount_root, len) == 0 && (path[len] == '/' || path[len] == '\0'))
        return path + len;
    return path;
}

static int cgroup_add_dir(struct cgroup *cg, const char *controllers, const char *mount_point,
                          const char *mount_root, const char *base, const char *path)
{
    if (cg->len == CGROUP_DIRS_MAX)
        return -E2BIG;
    base = cgroup_below_mount(base, mount_root);
    CLEANUP_FREE char *inner = NULL;
    CLEANUP_BUF struct buf joined = {.data = NULL};
    buf_printf(&joined, "%s/%s", base, path);
    int r = buf_error(&joined);
    if (r == 0)
        r = cgroup_clean(joined.data, &inner);
    if (r < 0)
        return r;
    if (!*inner)
        return -EINVAL;
    struct cgroup_dir *dir = &cg->dirs[cg->len];
    char *full = NULL;
    if (asprintf(&full, "%s%s", mount_point, inner) < 0)
        return -ENOMEM;
    dir->path = full;
    dir->controllers = mem_strdup(controllers);
    cg->len++;
    return dir->controllers ? 0 : -ENOMEM;
}

/* Picks the v1 controllers out of a mount's super options ("rw,cpu,cpuacct"). */
static void cgroup_v1_controllers(char *options, char *out, size_t size)
{
    static const char *const not_controllers[] = {"rw", "ro", "xattr", "noprefix", "clone_children",
                                                  "nofavordynmods", "favordynmods"};
    char *save;
    out[0] = '\0';
    for (char *word = strtok_r(options, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
        bool skip = strncmp(word, "release_agent=", 14) == 0;
        for (size_t i = 0; i < ARRAY_SIZE(not_controllers); i++)
            skip |= strcmp(word, not_controllers[i]) == 0;
        if (skip || strlen(out) + strlen(word) + 2 > size)
            continue;
        if (*out)
            strcat(out, ",");
        strcat(out, word);
    }
}

/* Adds the directory in the v1 hierarchy that one line of mountinfo describes, if it does. */
static int cgroup_plan_v1_line(struct cgroup *cg, char *line, const char *path)
{
    char *rest = strstr(line, " - cgroup ");
    if (!rest)
        return 0;
    char root[1024], mount_point[1024], source[256], options[1024], controllers[256];
    if (sscanf(line, "%*d %*d %*s %1023s %1023s", root, mount_point) != 2 ||
        sscanf(rest, " - cgroup %255s %1023s", source, options) != 2)
        return 0;
    cgroup_v1_controllers(options, controllers, sizeof(controllers));
    if (!*controllers || cgroup_dir_peek(cg, controllers))
        return 0; /* the same hierarchy mounted twice */
    CLEANUP_FREE char *own = NULL;
    int r = cgroup_own_path(controllers, &own);
    if (r == -ENOENT)
        return 0;
    if (r < 0)
        return r;
    r = cgroup_add_dir(cg, controllers, mount_point, root, path[0] == '/' ? "" : own, path);
    if (r < 0)
        return r;
    struct cgroup_dir *dir = &cg->dirs[cg->len - 1];
    if (asprintf(&dir->home, "%s%s", mount_point, cgroup_below_mount(own, root)) < 0) {
        dir->home = NULL;
        return -ENOMEM;
    }
    return 0;
}

static int cgroup_plan_v1(struct cgroup *cg, const char *path)
{
    CLEANUP_FREE char *text = NULL;
    int r = host_read_file(AT_FDCWD, "/proc/self/mountinfo", CGROUP_FILE_MAX * 16, &text, NULL);
    if (r < 0)
        return r;
    char *save;
    for (char *line = strtok_r(text, "\n", &save); line && r == 0; line = strtok_r(NULL, "\n", &save))
        r = cgroup_plan_v1_line(cg, line, path);
    cg->ops = &cgroup_v1_ops;
    if (r == 0 && cg->len == 0)
        return -ENOENT;
    return r;
}

static int cgroup_plan_v2(struct cgroup *cg, const char *path)
{
    CLEANUP_FREE char *own = NULL;
    cg->ops = &cgroup_v2_ops;
    int r = cgroup_own_path("", &own);
    if (r < 0)
        return r;
    /* Beside, not below: a cgroup with processes in it can't give controllers to its children. */
    CLEANUP_BUF struct buf base = {.data = NULL};
    buf_printf(&base, "%s/..", own);
    r = buf_error(&base);
    if (r < 0)
        return r;
    return cgroup_add_dir(cg, "", cgroup_v2_root, "/", path[0] == '/' ? "" : base.data, path);
}

/* Turns systemd's "slice:prefix:name" into the directory that systemd would use for that scope. */
static int cgroup_systemd_path(const char *path, const char *id, char **ret_path, struct errmsg *e)
{
    char slice[256] = "system.slice", prefix[256] = "cloister", name[1024];
    snprintf(name, sizeof(name), "%s", id);
    if (path && *path) {
        const char *one = strchr(path, ':'), *two = one ? strchr(one + 1, ':') : NULL;
        if (!two || strchr(two + 1, ':'))
            return errmsg_set(e, -EINVAL,
                              "expected cgroupsPath to be of format \"slice:prefix:name\" for systemd "
                              "cgroups, got \"%s\" instead",
                              path);
        if (one != path)
            snprintf(slice, sizeof(slice), "%.*s", (int)(one - path), path);
        snprintf(prefix, sizeof(prefix), "%.*s", (int)(two - one - 1), one + 1);
        snprintf(name, sizeof(name), "%s", two + 1);
    }
    CLEANUP_BUF struct buf out = {.data = NULL};
    /* a-b.slice lives in a.slice/a-b.slice. */
    char *suffix = strstr(slice, ".slice");
    if (!suffix || suffix[6] || strchr(slice, '/'))
        return errmsg_set(e, -EINVAL, "invalid slice name: %s", slice);
    *suffix = '\0';
    if (strcmp(slice, "-") != 0)
        for (char *dash = strchr(slice, '-');; dash = strchr(dash + 1, '-')) {
            if (dash)
                *dash = '\0';
            buf_printf(&out, "/%s.slice", slice);
            if (!dash)
                break;
            *dash = '-';
        }
    if (strlen(name) > 6 && strcmp(name + strlen(name) - 6, ".slice") == 0)
        buf_printf(&out, "/%s", name);
    else
        buf_printf(&out, "/%s%s%s.scope", prefix, *prefix ? "-" : "", name);
    *ret_path = TAKE_PTR(out.data);
    return buf_error(&out) < 0 || !*ret_path ? -ENOMEM : 0;
}

int cgroup_plan(const char *path, const char *id, bool systemd, struct cgroup *ret_cg, struct errmsg *e)
{
    struct cgroup cg = {.len = 0};
    CLEANUP_FREE char *unit = NULL;
    if (systemd) {
        int r = cgroup_systemd_path(path, id, &unit, e);
        if (r < 0)
            return r;
        path = unit;
    } else if (!path || !*path) {
        path = id;
    }
    struct statfs fs;
    if (statfs(cgroup_v2_root, &fs) < 0)
        return errmsg_set(e, -errno, "no cgroup file system: statfs %s: %s", cgroup_v2_root,
                          errtext(errno));
    int r = fs.f_type == CGROUP2_SUPER_MAGIC ? cgroup_plan_v2(&cg, path) : cgroup_plan_v1(&cg, path);
    if (r < 0) {
        cgroup_free(&cg);
        if (r == -EINVAL)
            return errmsg_set(e, r, "cgroupsPath \"%s\" names the root of the hierarchy", path);
        return errmsg_set(e, r, "find the cgroup hierarchies: %s", errtext(r));
    }
    *ret_cg = cg;
    return 0;
}

int cgroup_decode(const char *const *dirs, unsigned len, struct cgroup *ret_cg)
{
    struct cgroup cg = {.ops = &cgroup_v1_ops};
    if (len > CGROUP_DIRS_MAX)
        return -EINVAL;
    for (unsigned i = 0; i < len; i++) {
        const char *colon = strchr(dirs[i], ':');
        if (!colon || colon[1] != '/') {
            cgroup_free(&cg);
            return -EINVAL;
        }
        struct cgroup_dir *dir = &cg.dirs[cg.len++];
        dir->controllers = mem_strndup(dirs[i], (size_t)(colon - dirs[i]));
        dir->path = mem_strdup(colon + 1);
        if (!dir->controllers || !dir->path) {
            cgroup_free(&cg);
            return -ENOMEM;
        }
        if (!*dir->controllers)
            cg.ops = &cgroup_v2_ops;
    }
    *ret_cg = cg;
    return 0;
}

void cgroup_encode(const struct cgroup *cg, unsigned index, struct buf *b)
{
    buf_printf(b, "%s:%s", cg->dirs[index].controllers, cg->dirs[index].path);
}

void cgroup_free(struct cgroup *cg)
{
    for (unsigned i = 0; i < cg->len; i++) {
        mem_free(cg->dirs[i].controllers);
        mem_free(cg->dirs[i].path);
        mem_free(cg->dirs[i].home);
    }
    cg->len = 0;
}

const char *cgroup_dir_peek(const struct cgroup *cg, const char *controller)
{
    for (unsigned i = 0; i < cg->len; i++)
        if (strcmp(cg->dirs[i].controllers, controller) == 0 ||
            cgroup_has_word(cg->dirs[i].controllers, controller))
            return cg->dirs[i].path;
    return NULL;
}

int cgroup_write(const char *dir, const char *file, const char *text, struct errmsg *e)
{
    CLEANUP_BUF struct buf path = {.data = NULL};
    buf_printf(&path, "%s/%s", dir, file);
    if (buf_error(&path) < 0)
        return errmsg_set(e, -ENOMEM, "out of memory");
    int r = host_write_file(AT_FDCWD, path.data, text, strlen(text));
    if (r < 0)
        return errmsg_set(e, r, "failed to write \"%s\": write %s: %s", text, path.data, errtext(r));
    return 0;
}

int cgroup_read(const char *dir, const char *file, char *out, size_t size)
{
    CLEANUP_BUF struct buf path = {.data = NULL};
    CLEANUP_FREE char *text = NULL;
    buf_printf(&path, "%s/%s", dir, file);
    int r = buf_error(&path);
    size_t len = 0;
    if (r == 0)
        r = host_read_file(AT_FDCWD, path.data, CGROUP_FILE_MAX, &text, &len);
    if (r < 0)
        return r;
    if (len && text[len - 1] == '\n')
        text[--len] = '\0';
    if (len >= size)
        return -EOVERFLOW;
    memcpy(out, text, len + 1);
    return 0;
}

int cgroup_mkdirs(const char *path, struct errmsg *e)
{
    CLEANUP_FREE char *part = mem_strdup(path);
    if (!part)
        return errmsg_set(e, -ENOMEM, "out of memory");
    for (char *at = part + 1;; at++) {
        if (*at && *at != '/')
            continue;
        char saved = *at;
        *at = '\0';
        if (mkdir(part, 0755) < 0 && errno != EEXIST)
            return errmsg_set(e, -errno, "mkdir %s: %s", part, errtext(errno));
        *at = saved;
        if (!saved)
            return 0;
    }
}

int cgroup_create(struct cgroup *cg, struct errmsg *e)
{
    for (unsigned i = 0; i < cg->len; i++) {
        char procs[64];
        int r = cgroup_read(cg->dirs[i].path, "cgroup.procs", procs, sizeof(procs));
        if (r == -EOVERFLOW || (r == 0 && procs[0]))
            return errmsg_set(e, -EBUSY, "container's cgroup is not empty: %s", cg->dirs[i].path);
    }
    return cg->ops->create(cg, e);
}

int cgroup_set(const struct cgroup *cg, const struct oci_resources *res, struct errmsg *e)
{
    return cg->ops->set(cg, res, e);
}

int cgroup_add(const struct cgroup *cg, pid_t pid, struct errmsg *e)
{
    char text[16];
    snprintf(text, sizeof(text), "%d", (int)pid);
    for (unsigned i = 0; i < cg->len; i++) {
        int r = cgroup_write(cg->dirs[i].path, "cgroup.procs", text, e);
        if (r < 0)
            return r;
    }
    return 0;
}

int cgroup_join(const struct cgroup *cg, struct errmsg *e)
{
    for (unsigned i = 0; i < cg->len; i++) {
        const char *file = cg->ops == &cgroup_v1_ops ? "tasks" : "cgroup.procs";
        int r = cgroup_write(cg->dirs[i].path, file, "0", e);
        if (r < 0)
            return r;
    }
    return 0;
}

int cgroup_open_doors(const struct cgroup *cg, int *ret_in, int *ret_out, struct errmsg *e)
{
    if (cg->ops != &cgroup_v1_ops)
        return 0;
    for (unsigned i = 0; i < cg->len; i++) {
        CLEANUP_BUF struct buf in = {.data = NULL};
        CLEANUP_BUF struct buf out = {.data = NULL};
        buf_printf(&in, "%s/tasks", cg->dirs[i].path);
        buf_printf(&out, "%s/tasks", cg->dirs[i].home ? cg->dirs[i].home : "");
        if (buf_error(&in) < 0 || buf_error(&out) < 0)
            return errmsg_set(e, -ENOMEM, "out of memory");
        ret_in[i] = open(in.data, O_WRONLY | O_CLOEXEC);
        if (ret_in[i] < 0)
            errmsg_set(e, -errno, "open %s: %s", in.data, errtext(errno));
        ret_out[i] = ret_in[i] < 0 ? -1 : open(out.data, O_WRONLY | O_CLOEXEC);
        if (ret_out[i] >= 0)
            continue;
        int r = ret_in[i] < 0 ? -EIO : 0;
        for (unsigned j = 0; j <= i; j++) {
            host_close(ret_in[j]);
            if (j < i)
                host_close(ret_out[j]);
        }
        return r;
    }
    return (int)cg->len;
}

int cgroup_clone_fd(const struct cgroup *cg, struct errmsg *e)
{
    if (cg->ops == &cgroup_v1_ops)
        return -1;
    int fd = open(cg->dirs[0].path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errmsg_set(e, errno == EPERM ? -EACCES : -errno, "open %s: %s", cg->dirs[0].path,
                          errtext(errno));
    return fd;
}

int cgroup_freeze(const struct cgroup *cg, bool frozen, struct errmsg *e)
{
    return cg->ops->freeze(cg, frozen, e);
}

int cgroup_is_frozen(const struct cgroup *cg)
{
    return cg->ops->is_frozen(cg);
}

static void cgroup_pause_ns(long ns)
{
    const struct timespec ts = {.tv_nsec = ns};
    nanosleep(&ts, NULL);
}

/* Kills every process that is still in dir. Return: how many there were. */
static unsigned cgroup_kill_dir(const char *dir)
{
    CLEANUP_BUF struct buf path = {.data = NULL};
    CLEANUP_FREE char *text = NULL;
    buf_printf(&path, "%s/cgroup.procs", dir);
    if (buf_error(&path) < 0 ||
        host_read_file(AT_FDCWD, path.data, CGROUP_FILE_MAX, &text, NULL) < 0)
        return 0;
    unsigned killed = 0;
    char *save;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        pid_t pid = (pid_t)strtol(line, NULL, 10);
        if (pid > 0 && kill(pid, SIGKILL) == 0)
            killed++;
    }
    return killed;
}

int cgroup_destroy(const struct cgroup *cg, struct errmsg *e)
{
    int frozen = cg->len ? cgroup_is_frozen(cg) : 0;
    if (frozen == 1 && cgroup_freeze(cg, false, NULL) < 0)
        log_warn("thaw the container's cgroup before its removal failed");
    for (unsigned i = 0; i < cg->len; i++) {
        const char *dir = cg->dirs[i].path;
        int tries = 0;
        while (rmdir(dir) < 0 && errno != ENOENT) {
            if (errno != EBUSY || ++tries == CGROUP_REMOVE_TRIES)
                return errmsg_set(e, -errno, "remove cgroup %s: %s", dir, errtext(errno));
            cgroup_kill_dir(dir);
            cgroup_pause_ns(CGROUP_RETRY_NS);
        }
    }
    return 0;
}
