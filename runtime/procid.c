/* SPDX-License-Identifier: Apache-2.0 */
/* Host processes named by pid and start time. */
#include "runtime/procid.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "platform/base/host.h"

enum { PROCID_START_FIELD = 22, PROCID_STATE_FIELD = 3 };

/* Reads state letter and start time. The command name may hold spaces and parentheses, so fields
 * are counted from its last closing parenthesis. */
static int procid_read(pid_t pid, char *ret_state, uint64_t *ret_start)
{
    char path[64], text[1024];
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -ESRCH;
    ssize_t size = read(fd, text, sizeof(text) - 1);
    if (size <= 0)
        return -ESRCH;
    text[size] = '\0';
    char *at = strrchr(text, ')');
    if (!at || at[1] != ' ')
        return -ESRCH;
    at += 2;
    *ret_state = *at;
    for (int field = PROCID_STATE_FIELD; field < PROCID_START_FIELD; field++) {
        at = strchr(at, ' ');
        if (!at)
            return -ESRCH;
        at++;
    }
    *ret_start = strtoull(at, NULL, 10);
    return 0;
}

int procid_of(pid_t pid, struct procid *ret_id)
{
    char state;
    uint64_t start;
    int r = procid_read(pid, &state, &start);
    if (r == 0)
        *ret_id = (struct procid){.pid = pid, .start = start};
    return r;
}

bool procid_alive(const struct procid *id)
{
    char state;
    uint64_t start;
    if (id->pid <= 0 || procid_read(id->pid, &state, &start) < 0)
        return false;
    return start == id->start && state != 'Z' && state != 'X';
}

int procid_open(const struct procid *id)
{
    if (id->pid <= 0)
        return -ESRCH;
    int fd = (int)syscall(SYS_pidfd_open, id->pid, 0);
    if (fd < 0)
        return errno == EINVAL ? -ESRCH : -errno;
    /* The pidfd holds the identity from here on: the check can't be overtaken by pid reuse. */
    char state;
    uint64_t start;
    if (procid_read(id->pid, &state, &start) < 0 || start != id->start) {
        host_close(fd);
        return -ESRCH;
    }
    return fd;
}

int procid_kill(const struct procid *id, int signo)
{
    CLEANUP_CLOSE int fd = procid_open(id);
    if (fd < 0)
        return fd;
    return (int)host_ret(syscall(SYS_pidfd_send_signal, fd, signo, NULL, 0));
}

int procid_wait_gone(const struct procid *id, int timeout_ms)
{
    CLEANUP_CLOSE int fd = procid_open(id);
    if (fd < 0)
        return 0;
    uint64_t end = host_monotonic_ns() + (uint64_t)timeout_ms * 1000000u;
    for (;;) {
        uint64_t now = host_monotonic_ns();
        int left_ms = now >= end ? 0 : (int)((end - now) / 1000000u) + 1;
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int r = poll(&p, 1, left_ms);
        if (r > 0)
            return 0;
        if (r == 0)
            return -ETIMEDOUT;
        if (errno != EINTR)
            return -errno;
    }
}
