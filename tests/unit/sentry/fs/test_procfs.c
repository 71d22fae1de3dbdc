/* SPDX-License-Identifier: Apache-2.0 */
/* proc, sysfs and the devices: every entry can be read, and the formats hold. */
#include "sentry/fs/proc/procfs.h"

#include <dirent.h>
#include <stdlib.h>

#include "tests/unit/sentry/fs/fs_fixture.h"

struct names {
    struct dir_sink sink;
    char names[400][40];
    unsigned types[400], len;
};

static bool take_name(struct dir_sink *sink, const char *name, size_t len, uint64_t ino, unsigned d_type,
                      int64_t next_pos)
{
    struct names *n = container_of(sink, struct names, sink);

    cr_assert_lt(n->len, 400);
    snprintf(n->names[n->len], sizeof(n->names[0]), "%.*s", (int)len, name);
    n->types[n->len++] = d_type;
    return true;
}

static void list(struct task *t, const char *path, struct names *n)
{
    struct file *f = s_open(t, path, O_RDONLY | O_DIRECTORY);

    n->len = 0;
    n->sink.emit = take_name;
    cr_assert_eq(f->ops->readdir(&t->ctx, f, &n->sink), 0, "%s", path);
    file_unref(f);
}

static bool listed(const struct names *n, const char *name)
{
    for (unsigned i = 0; i < n->len; i++) {
        if (strcmp(n->names[i], name) == 0)
            return true;
    }
    return false;
}

static unsigned read_tree(struct task *t, const char *path, unsigned depth)
{
    static const char *const may_fail[] = {"/duplex", "/speed", "/attr/", "/mem", "/exe", "/pagemap"};
    struct names *n = calloc(1, sizeof(*n));
    unsigned files = 0;

    list(t, path, n);
    for (unsigned i = 0; i < n->len; i++) {
        char child[512], text[4096];
        struct file *f;
        bool excused = false;
        ssize_t got;
        int r;

        if (n->names[i][0] == '.')
            continue;
        snprintf(child, sizeof(child), "%s/%s", path, n->names[i]);
        for (unsigned k = 0; k < ARRAY_SIZE(may_fail); k++)
            excused |= strstr(child, may_fail[k]) != NULL;
        if (n->types[i] == DT_DIR) {
            if (depth < 8)
                files += read_tree(t, child, depth + 1);
            continue;
        }
        if (n->types[i] != DT_REG || strstr(child, "drop_caches"))
            continue;
        files++;
        r = s_try_open(t, child, O_RDONLY, &f);
        cr_assert(r == 0 || excused, "open %s: %d", child, r);
        if (r)
            continue;
        while ((got = s_read(t, f, text, sizeof(text))) > 0)
            ;
        cr_assert(got == 0 || excused, "read %s: %zd", child, got);
        file_unref(f);
    }
    free(n);
    return files;
}

Test(procfs, every_file_can_be_read)
{
    s_up();
    s_mount("cgroup2", "/sys/fs/cgroup", NULL);
    cr_assert_gt(read_tree(s_init, "/proc", 0), 250);
    cr_assert_gt(read_tree(s_init, "/sys", 0), 60);
}

Test(procfs, processes_come_and_go)
{
    struct names *n = calloc(1, sizeof(*n));
    struct task *child;
    struct path held, p;
    char path[64], text[64];

    s_up();
    child = s_fork(w.init);
    snprintf(path, sizeof(path), "/proc/%d", tgroup_pid_for(child->group, child));
    list(s_init, "/proc", n);
    cr_assert(listed(n, "1"));
    cr_assert(listed(n, path + 6));
    cr_assert(listed(n, "self"));
    cr_assert_eq(walk_path(&s_init->ctx, &s_base, path, 0, &held), 0);

    fsctx_unref(child->fs);
    child->fs = NULL;
    fdtable_unref(NULL, child->files);
    child->files = NULL;
    tgroup_release(child->group);
    cr_assert_eq(walk_path(&s_init->ctx, &s_base, path, 0, &p), -ENOENT);
    list(s_init, "/proc", n);
    snprintf(text, sizeof(text), "%s", path + 6);
    cr_assert_not(listed(n, text));
    path_unref(&held);
    free(n);
}

Test(procfs, status_and_stat)
{
    char *text;

    s_up();
    task_set_comm(s_init, "a (b)\n");
    text = s_cat(s_init, "/proc/self/stat");
    cr_assert_eq(strncmp(text, "1 (a (b)\\n) R 0 1 1 0 -1 ", 25), 0, "%s", text);
    unsigned fields = 0;
    for (char *p = strrchr(text, ')') + 1; *p; p++)
        fields += *p == ' ';
    cr_assert_eq(fields, 50, "52 fields with pid and name, not %u", fields + 2);
    text = s_cat(s_init, "/proc/self/status");
    cr_assert(strstr(text, "Name:\ta (b)\\n\n"));
    cr_assert(strstr(text, "\nUmask:\t0022\n"));
    cr_assert(strstr(text, "\nNSpid:\t1\n"));
    cr_assert(strstr(text, "\nUid:\t0\t0\t0\t0\n"));
    cr_assert(strstr(text, "\nSigIgn:\t0000000000000000\n"));
    cr_assert(strstr(text, "\nThreads:\t1\n"));
    cr_assert(strstr(text, "\nCapEff:\t000001ffffffffff\n"), "%s", text);
}

Test(procfs, links_and_descriptors)
{
    struct file *f;
    struct names *n = calloc(1, sizeof(*n));
    char text[64];
    struct path p;

    s_up();
    f = s_open(s_init, "/dev/null", O_RDWR);
    cr_assert_eq(fdtable_add(s_init, f, 0, true), 0);
    list(s_init, "/proc/self/fd", n);
    cr_assert(listed(n, "0"));
    cr_assert_eq(walk_path(&s_init->ctx, &s_base, "/proc/self/fd/0", WALK_FOLLOW, &p), 0);
    cr_assert_eq(p.dentry->inode, f->inode);
    path_unref(&p);
    cr_assert_eq(walk_path(&s_init->ctx, &s_base, "/proc/self/fd/0", 0, &p), 0);
    cr_assert_eq(p.dentry->inode->ops->readlink(&s_init->ctx, p.dentry->inode, text, sizeof(text)), 9);
    cr_assert_str_eq(text, "/dev/null");
    cr_assert_eq(p.dentry->inode->mode, (unsigned)(S_IFLNK | 0700));
    path_unref(&p);
    cr_assert(strstr(s_cat(s_init, "/proc/self/fdinfo/0"), "flags:\t02100002\n"));
    cr_assert_eq(walk_path(&s_init->ctx, &s_base, "/proc/self/fd/1", 0, &p), -ENOENT);
    cr_assert_eq(walk_path(&s_init->ctx, &s_base, "/proc/self/ns/uts", 0, &p), 0);
    path_unref(&p);
    cr_assert(strstr(s_cat(s_init, "/proc/mounts"), "devpts /dev/pts devpts rw,gid=5,mode=620,ptmxmode=666 0 0\n"));
    free(n);
}

Test(procfs, sysctl)
{
    struct file *f;

    s_up();
    cr_assert_str_eq(s_cat(s_init, "/proc/sys/kernel/hostname"), "box\n");
    f = s_open(s_init, "/proc/sys/kernel/hostname", O_WRONLY | O_TRUNC);
    cr_assert_eq(s_write(s_init, f, "crate\n"), 6);
    file_unref(f);
    cr_assert_str_eq(s_cat(s_init, "/proc/sys/kernel/hostname"), "crate\n");
    cr_assert_str_eq(s_cat(s_init, "/proc/sys/net/ipv4/ip_local_port_range"), "32768\t60999\n");
    f = s_open(s_init, "/proc/sys/net/ipv4/ip_local_port_range", O_WRONLY);
    cr_assert_eq(s_write(s_init, f, "1024 70000"), -EINVAL);
    cr_assert_eq(s_write(s_init, f, "1024 65000\n"), 11);
    file_unref(f);
    cr_assert_str_eq(s_cat(s_init, "/proc/sys/net/ipv4/ip_local_port_range"), "1024\t65000\n");
    f = s_open(s_init, "/proc/sys/vm/swappiness", O_WRONLY);
    cr_assert_eq(s_write(s_init, f, "x"), -EINVAL);
    file_unref(f);
    cr_assert_eq(strlen(s_cat(s_init, "/proc/sys/kernel/random/uuid")), 37u);
}

Test(procfs, other_users_see_less)
{
    struct task *child;
    struct cred *user;
    struct file *f;

    s_up();
    child = s_fork(w.init);
    cr_assert_eq(cred_dup(w.root, 0, &user), 0);
    user->uid = user->euid = user->suid = user->fsuid = 1000;
    user->gid = user->egid = user->sgid = user->fsgid = 1000;
    user->cap_effective = user->cap_permitted = 0;
    task_set_cred(child, user);
    cr_assert_eq(s_try_open(child, "/proc/1/environ", O_RDONLY, &f), -EACCES);
    cr_assert_eq(s_try_open(child, "/proc/1/maps", O_RDONLY, &f), -EACCES);
    cr_assert_eq(s_try_open(child, "/proc/1/fd", O_RDONLY, &f), -EACCES);
    cr_assert_eq(s_try_open(child, "/proc/sys/vm/swappiness", O_WRONLY, &f), -EACCES);
    file_unref(s_open(child, "/proc/1/status", O_RDONLY));
    file_unref(s_open(child, "/proc/self/environ", O_RDONLY));
    file_unref(s_open(child, "/proc/self/fd", O_RDONLY));
    s_mount("proc", "/hidden", "hidepid=2");
    cr_assert_eq(s_try_open(child, "/hidden/1/status", O_RDONLY, &f), -ENOENT);
    file_unref(s_open(child, "/hidden/self/status", O_RDONLY));
}

Test(procfs, standard_devices)
{
    static char big[100000];
    struct file *f;

    s_up();
    f = s_open(s_init, "/dev/zero", O_RDWR);
    memset(big, 1, sizeof(big));
    cr_assert_eq(s_read(s_init, f, big, sizeof(big)), (ssize_t)sizeof(big));
    cr_assert_eq(big[sizeof(big) - 1], 0);
    file_unref(f);
    f = s_open(s_init, "/dev/full", O_RDWR);
    cr_assert_eq(s_write(s_init, f, "x"), -ENOSPC);
    file_unref(f);
    f = s_open(s_init, "/dev/urandom", O_RDONLY);
    cr_assert_eq(s_read(s_init, f, big, sizeof(big)), (ssize_t)sizeof(big));
    file_unref(f);
    cr_assert_eq(s_try_open(s_init, "/dev/core", O_RDONLY, &f), -ENOENT);
    cr_assert(strstr(s_cat(s_init, "/proc/devices"), "  5 /dev/ptmx\n"));
}
