/* SPDX-License-Identifier: Apache-2.0 */
/* Host calls with −errno results. */
#include "platform/base/host.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "platform/base/alloc.h"

enum { HOST_FDS_MAX = 64 };

static unsigned long hwcap;

/* The auxiliary vector stands behind the environment, as long as that is the kernel's own. */
__attribute__((constructor)) static void note_hwcap(int argc UNUSED, char **argv UNUSED, char **envp)
{
    while (*envp)
        envp++;
    for (const Elf64_auxv_t *a = (const Elf64_auxv_t *)(envp + 1); a->a_type != AT_NULL; a++) {
        if (a->a_type == AT_HWCAP)
            hwcap = a->a_un.a_val;
    }
}

unsigned long host_hwcap(void)
{
    return hwcap;
}

long host_ret(long result)
{
    return result == -1 ? -errno : result;
}

int host_write_all(int fd, const void *p, size_t size)
{
    const char *at = p;
    while (size) {
        ssize_t n = write(fd, at, size);
        if (n < 0) {
            if (errno == EINTR)
                continue;
            return -errno;
        }
        at += n;
        size -= (size_t)n;
    }
    return 0;
}

int host_read_all(int fd, void *p, size_t size)
{
    char *at = p;
    while (size) {
        ssize_t n = read(fd, at, size);
        if (n < 0) {
            if (errno == EINTR)
                continue;
            return -errno;
        }
        if (n == 0)
            return -EPIPE;
        at += n;
        size -= (size_t)n;
    }
    return 0;
}

int host_read_file(int dirfd, const char *path, size_t max, char **ret_data, size_t *ret_size)
{
    CLEANUP_CLOSE int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    size_t capacity = 4096, size = 0;
    CLEANUP_FREE char *data = mem_zalloc(capacity);
    if (!data)
        return -ENOMEM;
    for (;;) {
        if (size + 1 == capacity) {
            char *bigger = mem_realloc(data, capacity, 2);
            if (!bigger)
                return -ENOMEM;
            data = bigger;
            capacity *= 2;
        }
        ssize_t n = read(fd, data + size, capacity - size - 1);
        if (n < 0) {
            if (errno == EINTR)
                continue;
            return -errno;
        }
        if (n == 0)
            break;
        size += (size_t)n;
        if (size > max)
            return -EFBIG;
    }
    data[size] = '\0';
    *ret_data = TAKE_PTR(data);
    if (ret_size)
        *ret_size = size;
    return 0;
}

int host_write_file(int dirfd, const char *path, const void *p, size_t size)
{
    CLEANUP_CLOSE int fd = openat(dirfd, path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    for (;;) {
        ssize_t n = write(fd, p, size);
        if (n >= 0)
            return (size_t)n == size ? 0 : -EIO;
        if (errno != EINTR)
            return -errno;
    }
}

ssize_t host_send_fds(int sock, const void *p, size_t size, const int *fds, size_t len)
{
    if (len > HOST_FDS_MAX)
        return -EINVAL;
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof(int) * HOST_FDS_MAX)];
    } control;
    struct iovec iov = {.iov_base = (void *)p, .iov_len = size};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    if (len) {
        memset(&control, 0, sizeof(control));
        msg.msg_control = control.space;
        msg.msg_controllen = CMSG_SPACE(sizeof(int) * len);
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * len);
        memcpy(CMSG_DATA(c), fds, sizeof(int) * len);
    }
    for (;;) {
        ssize_t n = sendmsg(sock, &msg, MSG_NOSIGNAL);
        if (n >= 0)
            return n;
        if (errno != EINTR)
            return -errno;
    }
}

/* Collects the descriptors of one control message. Return: how many were dropped for want of room. */
static size_t host_take_fds(struct msghdr *msg, int *ret_fds, size_t max, size_t *ret_len)
{
    size_t dropped = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t len = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < len; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
            if (*ret_len < max) {
                ret_fds[(*ret_len)++] = fd;
            } else {
                host_close(fd);
                dropped++;
            }
        }
    }
    return dropped;
}

ssize_t host_recv_fds(int sock, void *p, size_t size, int *ret_fds, size_t *inout_len, int flags)
{
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof(int) * HOST_FDS_MAX)];
    } control;
    struct iovec iov = {.iov_base = p, .iov_len = size};
    struct msghdr msg = {
        .msg_iov = &iov,
        .msg_iovlen = 1,
        .msg_control = control.space,
        .msg_controllen = sizeof(control.space),
    };
    ssize_t n;
    do
        n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC | flags);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    size_t max = inout_len ? *inout_len : 0, len = 0;
    size_t dropped = host_take_fds(&msg, ret_fds, max, &len);
    if (dropped || (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC))) {
        for (size_t i = 0; i < len; i++)
            host_close(ret_fds[i]);
        return -EMSGSIZE;
    }
    if (inout_len)
        *inout_len = len;
    return n;
}

int host_memfd(const char *name, uint64_t size)
{
    CLEANUP_CLOSE int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -errno;
    if (ftruncate(fd, (off_t)size) < 0)
        return -errno;
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0)
        return -errno;
    return TAKE_FD(fd);
}

static int host_fd_dir = -1;

void host_set_fd_dir(int fd)
{
    host_fd_dir = fd;
}

int host_reopen(int fd, int flags)
{
    char name[64];
    snprintf(name, sizeof(name), "%s%d", host_fd_dir >= 0 ? "" : "/proc/self/fd/", fd);
    return (int)host_ret(openat(host_fd_dir >= 0 ? host_fd_dir : AT_FDCWD, name, flags | O_CLOEXEC));
}

int host_cachestat(int fd, uint64_t offset, uint64_t size, struct host_cachestat *ret_stat)
{
    uint64_t range[2] = {offset, size};
    struct host_cachestat st = {0};
    int ret = (int)host_ret(syscall(HOST_NR_CACHESTAT, fd, range, &st, 0));
    if (ret == 0)
        *ret_stat = st;
    return ret;
}

void host_close(int fd)
{
    if (fd >= 0)
        close(fd);
}

void host_random(void *p, size_t size)
{
    char *at = p;
    while (size) {
        ssize_t n = getrandom(at, size, 0);
        if (n < 0 && errno == EINTR)
            continue;
        BUG_ON(n <= 0);
        at += n;
        size -= (size_t)n;
    }
}

static uint64_t host_clock_ns(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t host_monotonic_ns(void)
{
    return host_clock_ns(CLOCK_MONOTONIC);
}

uint64_t host_realtime_ns(void)
{
    return host_clock_ns(CLOCK_REALTIME);
}
