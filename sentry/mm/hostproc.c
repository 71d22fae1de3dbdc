/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the host's procfs files of guest processes. */
#include "sentry/mm/hostproc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "platform/base/host.h"
#include "sentry/core/evloop.h"

static struct {
    int dirfd; /* (i) after boot */
} hostproc = {.dirfd = -1};

void hostproc_set_dirfd(int fd)
{
    hostproc.dirfd = fd;
}

enum { HOSTPROC_PATH = 64 };

/* Return: 0, or −ESRCH when there is no procfs or no process. */
static int hostproc_path(char path[HOSTPROC_PATH], int host_pid, const char *name)
{
    if (hostproc.dirfd < 0 || host_pid <= 0)
        return -ESRCH;
    snprintf(path, HOSTPROC_PATH, "%d/%s", host_pid, name);
    return 0;
}

struct hostproc_job {
    char path[HOSTPROC_PATH];
    struct buf *out;
};

static long hostproc_job_run(void *arg)
{
    struct hostproc_job *job = arg;
    char chunk[4096];
    CLEANUP_CLOSE int fd = (int)host_ret(openat(hostproc.dirfd, job->path, O_RDONLY | O_CLOEXEC));
    if (fd < 0)
        return -ESRCH;
    for (;;) {
        ssize_t n = host_ret(read(fd, chunk, sizeof(chunk)));
        if (n == -EINTR)
            continue;
        if (n <= 0)
            return n;
        if (job->out->size + (size_t)n > HOSTPROC_MAX)
            return -EFBIG;
        buf_append(job->out, chunk, (size_t)n);
        if (buf_error(job->out))
            return -ENOMEM;
    }
}

int hostproc_read(int host_pid, const char *name, struct buf *out)
{
    struct hostproc_job job = {.out = out};
    int r = hostproc_path(job.path, host_pid, name);
    return r ? r : (int)hostio_run(hostproc_job_run, &job);
}

struct hostproc_pread_job {
    char path[HOSTPROC_PATH];
    void *p;
    size_t size;
    uint64_t offset;
};

static long hostproc_pread_run(void *arg)
{
    struct hostproc_pread_job *job = arg;
    CLEANUP_CLOSE int fd = (int)host_ret(openat(hostproc.dirfd, job->path, O_RDONLY | O_CLOEXEC));

    if (fd < 0)
        return -ESRCH;
    return host_ret(pread(fd, job->p, job->size, (off_t)job->offset));
}

ssize_t hostproc_pread(int host_pid, const char *name, void *p, size_t size, uint64_t offset)
{
    struct hostproc_pread_job job = {.p = p, .size = size, .offset = offset};
    int r = hostproc_path(job.path, host_pid, name);

    return r ? r : hostio_run(hostproc_pread_run, &job);
}

struct hostproc_mem_job {
    char path[HOSTPROC_PATH];
    void *p;
    size_t size;
    uint64_t addr;
    bool write;
};

static long hostproc_mem_run(void *arg)
{
    struct hostproc_mem_job *job = arg;
    CLEANUP_CLOSE int fd = (int)host_ret(openat(hostproc.dirfd, job->path, O_RDWR | O_CLOEXEC));

    if (fd < 0)
        return fd;
    return job->write ? host_ret(pwrite(fd, job->p, job->size, (off_t)job->addr))
                      : host_ret(pread(fd, job->p, job->size, (off_t)job->addr));
}

ssize_t hostproc_mem(int host_pid, void *p, size_t size, uint64_t addr, bool write)
{
    struct hostproc_mem_job job = {.p = p, .size = size, .addr = addr, .write = write};
    int r = hostproc_path(job.path, host_pid, "mem");

    return r ? r : hostio_run(hostproc_mem_run, &job);
}
