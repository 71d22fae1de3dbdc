/* SPDX-License-Identifier: Apache-2.0 */
/* execve, execveat. */
#include "syscalls_gen.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "platform/base/alloc.h"
#include "sentry/kernel/exec.h"
#include "sentry/kernel/fdtable.h"
#include "sentry/kernel/fsctx.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/usermem.h"

/* The name under which the program is found again: the path, or a detour over /dev/fd for one relative to a descriptor. */
static int make_name(int dirfd, const char *path, char **ret_name)
{
    size_t size = strlen(path) + sizeof("/dev/fd/-2147483648/");
    char *name;

    if (dirfd == AT_FDCWD || path[0] == '/') {
        *ret_name = mem_strdup(path);
        return *ret_name ? 0 : -ENOMEM;
    }
    name = mem_zalloc(size);
    if (!name)
        return -ENOMEM;
    snprintf(name, size, path[0] ? "/dev/fd/%d/%s" : "/dev/fd/%d", dirfd, path);
    *ret_name = name;
    return 0;
}

static int open_program(struct task *t, int dirfd, const char *path, int flags, struct file **ret_file)
{
    CLEANUP_PATH struct path hold = {0};
    struct walk_base base;
    unsigned walk = flags & AT_SYMLINK_NOFOLLOW ? 0 : WALK_FOLLOW;
    int r = fsctx_base(t, dirfd, path, &hold, &base);

    if (r)
        return r;
    if (flags & AT_EMPTY_PATH)
        walk |= WALK_EMPTY;
    return exec_open(&t->ctx, &base, path, walk, ret_file);
}

static int64_t exec_at(struct task *t, int dirfd, uaddr_t path_addr, uaddr_t argv_addr, uaddr_t envp_addr,
                       int flags)
{
    CLEANUP_FREE char *path = mem_zalloc(PATH_SIZE_MAX), *name = NULL;
    struct exec_strings argv = {0}, envp = {0};
    struct file *file = NULL;
    ssize_t n;
    int r;

    if (!path)
        return -ENOMEM;
    n = copy_in_str(&t->ctx, path, path_addr, PATH_SIZE_MAX);
    if (n < 0)
        return n;
    if (!path[0] && !(flags & AT_EMPTY_PATH))
        return -ENOENT;
    r = open_program(t, dirfd, path, flags, &file);
    if (!r)
        r = make_name(dirfd, path, &name);
    if (!r)
        r = exec_strings_in(t, argv_addr, &argv);
    if (!r)
        r = exec_strings_in(t, envp_addr, &envp);
    if (!r) {
        struct exec_request req = {
            .file = file,
            .name = name,
            .comm_of_file = !path[0],
            .name_unreachable = dirfd != AT_FDCWD && path[0] != '/' && fdtable_cloexec(t->files, dirfd),
            .argv = &argv,
            .envp = &envp,
        };

        r = exec_run(t, &req);
    }
    exec_strings_free(&argv);
    exec_strings_free(&envp);
    file_unref(file);
    return r;
}

int64_t sys_execve(struct task *t, uaddr_t path, uaddr_t argv, uaddr_t envp)
{
    return exec_at(t, AT_FDCWD, path, argv, envp, 0);
}

int64_t sys_execveat(struct task *t, int32_t dirfd, uaddr_t path, uaddr_t argv, uaddr_t envp, int32_t flags)
{
    if (flags & ~(AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW))
        return -EINVAL;
    return exec_at(t, dirfd, path, argv, envp, flags);
}
