/* SPDX-License-Identifier: Apache-2.0 */
/* Finds host processes and threads that a guest has made and that the sentry was not told of.
 *
 * A clone call is let through once, and what comes of it must ring. A guest that leaves the stub right after the call
 * could keep a process that no object stands for, beyond the reach of kill. The host knows better: it is asked whenever
 * a clone has not ended as the stub ends it, which honest guests never see. */
#include "platform/seccomp/seccomp_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "platform/base/log.h"

enum { STRAYS_FILE_MAX = 1 << 20 };

/* As the kernel lays out what getdents64 returns. */
struct strays_dirent {
    uint64_t ino;
    int64_t off;
    uint16_t reclen;
    uint8_t type;
    char name[];
};

/* Calls fn for each number among a procfs directory's names until it returns true. Return: whether it did. */
static bool strays_each(int proc_fd, const char *path, bool (*fn)(struct scp *p, pid_t id, void *arg), struct scp *p,
                        void *arg)
{
    CLEANUP_CLOSE int dir = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
    if (dir < 0)
        return false;
    char buf[4096] ALIGNED(8);
    long n;
    while ((n = syscall(SYS_getdents64, dir, buf, sizeof(buf))) > 0) {
        for (long at = 0; at < n;) {
            const struct strays_dirent *d = (const struct strays_dirent *)(buf + at);
            int id = atoi(d->name);
            at += d->reclen;
            if (id > 0 && fn(p, id, arg))
                return true;
        }
    }
    return false;
}

/* Whether a process is one of ours. The number of a thread that has ended may be a process's by now. */
static bool strays_is_known(struct scp *p, pid_t pid)
{
    const struct scp_thread *t = scp_find(p, pid);
    return t && t->base.aspace->host_pid == pid;
}

static bool strays_has_child(struct scp *p, const struct scp_thread *t)
{
    char path[64];
    CLEANUP_FREE char *text = NULL;
    snprintf(path, sizeof(path), "%d/task/%d/children", t->base.aspace->host_pid, t->tid);
    if (host_read_file(p->config.proc_fd, path, STRAYS_FILE_MAX, &text, NULL) < 0)
        return false;
    for (char *at = text, *end;; at = end) {
        long pid = strtol(at, &end, 10);
        if (end == at)
            return false;
        if (!strays_is_known(p, (pid_t)pid))
            return true;
    }
}

static bool strays_is_unknown(struct scp *p, pid_t tid, void *arg)
{
    return !scp_find(p, tid);
}

bool scp_has_stray(struct scp *p, const struct scp_thread *t, uint64_t flags)
{
    char path[32];
    if (p->config.proc_fd < 0)
        return false;
    if (flags == STUB_CLONE_FORK)
        return strays_has_child(p, t);
    snprintf(path, sizeof(path), "%d/task", t->base.aspace->host_pid);
    return strays_each(p->config.proc_fd, path, strays_is_unknown, p, NULL);
}

/* Reads parent and session of a process. Return: 0 or −errno. */
static int strays_stat(struct scp *p, pid_t pid, int *ret_parent, int *ret_session)
{
    char path[32];
    CLEANUP_FREE char *text = NULL;
    snprintf(path, sizeof(path), "%d/stat", pid);
    int err = host_read_file(p->config.proc_fd, path, STRAYS_FILE_MAX, &text, NULL);
    if (err < 0)
        return err;
    const char *at = strrchr(text, ')');
    int group;
    return at && sscanf(at, ") %*c %d %d %d", ret_parent, &group, ret_session) == 3 ? 0 : -EINVAL;
}

static bool strays_kill(struct scp *p, pid_t pid, void *arg)
{
    int parent, session;
    /* All guest processes of a container are in their zygote's session; an orphan's parent is the sentry. */
    if (pid == p->zygote_pid || strays_is_known(p, pid) || strays_stat(p, pid, &parent, &session) < 0 ||
        parent != getpid() || session != p->zygote_pid)
        return false;
    log_debug("seccomp: process %d that nobody knows of is ended", pid);
    scp_kill_tid(pid);
    return false;
}

void scp_kill_strays(struct scp *p)
{
    if (p->config.proc_fd >= 0)
        strays_each(p->config.proc_fd, ".", strays_kill, p, NULL);
}
