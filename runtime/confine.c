/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of confinement that the sentry and the gofer share. */
#include "runtime/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "runtime/errtext.h"

enum { CONFINE_NOFILE_DEFAULT = 1048576 };

void confine_reset_signals(void)
{
    for (int signo = 1; signo < NSIG; signo++)
        signal(signo, SIG_DFL); /* fails for SIGKILL and the like, which have no other action */
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The most descriptors that the host lets any process have. */
static rlim_t confine_nofile_max(void)
{
    CLEANUP_FREE char *text = NULL;
    if (host_read_file(AT_FDCWD, "/proc/sys/fs/nr_open", 64, &text, NULL) == 0) {
        rlim_t value = strtoul(text, NULL, 10);
        if (value)
            return value;
    }
    return CONFINE_NOFILE_DEFAULT;
}

/* Sets a limit to wanted, or to what the hard limit gives when it can't be raised. */
static int confine_set_limit(pid_t pid, int resource, rlim_t wanted, const char *name, struct errmsg *e)
{
    const struct rlimit both = {wanted, wanted};
    struct rlimit now;
    if (prlimit(pid, resource, &both, NULL) == 0)
        return 0;
    if (errno == EPERM && prlimit(pid, resource, NULL, &now) == 0) {
        now.rlim_cur = now.rlim_max;
        if (prlimit(pid, resource, &now, NULL) == 0)
            return 0;
    }
    return errmsg_set(e, -errno, "set the limit of %s: %s", name, errtext(errno));
}

int confine_raise_limits(pid_t pid, struct errmsg *e)
{
    const struct {
        int resource;
        rlim_t wanted;
        const char *name;
    } limits[] = {
        {RLIMIT_FSIZE, RLIM_INFINITY, "file size"},
        {RLIMIT_AS, RLIM_INFINITY, "address space"},
        {RLIMIT_DATA, RLIM_INFINITY, "data"},
        {RLIMIT_CPU, RLIM_INFINITY, "CPU time"},
        {RLIMIT_NPROC, RLIM_INFINITY, "processes"},
        {RLIMIT_NOFILE, confine_nofile_max(), "open files"},
        {RLIMIT_CORE, 1, "core dumps"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
        int r = confine_set_limit(pid, limits[i].resource, limits[i].wanted, limits[i].name, e);
        if (r < 0)
            return r;
    }
    return 0;
}

int confine_empty_root(struct errmsg *e)
{
    /* Nothing that happens here may show outside, and nothing from outside here. */
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return errmsg_set(e, -errno, "make mounts private: %s", errtext(errno));
    /* /proc is the one directory that must exist on any host we run on. */
    if (mount("none", "/proc", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=4k,nr_inodes=1,mode=0555") < 0)
        return errmsg_set(e, -errno, "mount an empty root: %s", errtext(errno));
    if (chdir("/proc") < 0)
        return errmsg_set(e, -errno, "enter the empty root: %s", errtext(errno));
    /* With both names the same, the old root ends up stacked on the new one and can be detached. */
    if (syscall(SYS_pivot_root, ".", ".") < 0)
        return errmsg_set(e, -errno, "pivot_root: %s", errtext(errno));
    if (umount2(".", MNT_DETACH) < 0)
        return errmsg_set(e, -errno, "detach the old root: %s", errtext(errno));
    if (chdir("/") < 0)
        return errmsg_set(e, -errno, "enter the empty root: %s", errtext(errno));
    if (mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        return errmsg_set(e, -errno, "make the empty root read-only: %s", errtext(errno));
    return 0;
}

int confine_place_fds(const int *fds, size_t len, int first, int null, struct errmsg *e)
{
    CLEANUP_FREE int *high = NEW_ARRAY(int, len);
    if (!high)
        return errmsg_set(e, -ENOMEM, "out of memory");
    /* First out of the way of every target, then down. */
    for (size_t i = 0; i < len; i++) {
        high[i] = fds[i] < 0 ? -1 : fcntl(fds[i], F_DUPFD_CLOEXEC, first + (int)len);
        if (fds[i] >= 0 && high[i] < 0)
            return errmsg_set(e, -errno, "move a descriptor: %s", errtext(errno));
    }
    int high_null = fcntl(null, F_DUPFD_CLOEXEC, first + (int)len);
    if (high_null < 0)
        return errmsg_set(e, -errno, "move a descriptor: %s", errtext(errno));
    for (int fd = 0; fd < first; fd++) {
        int r = fd <= 2 ? dup2(high_null, fd) : (host_close(fd), 0);
        if (r < 0)
            return errmsg_set(e, -errno, "place a descriptor: %s", errtext(errno));
    }
    for (size_t i = 0; i < len; i++) {
        if (high[i] < 0)
            close(first + (int)i);
        else if (dup2(high[i], first + (int)i) < 0)
            return errmsg_set(e, -errno, "place a descriptor: %s", errtext(errno));
    }
    if (syscall(SYS_close_range, (unsigned)first + (unsigned)len, ~0u, CLOSE_RANGE_CLOEXEC) < 0)
        return errmsg_set(e, -errno, "close_range: %s", errtext(errno));
    return 0;
}
