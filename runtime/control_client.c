/* SPDX-License-Identifier: Apache-2.0 */
/* The commands' end of the control protocol. */
#include "runtime/control.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "runtime/errtext.h"

enum { CONTROL_BACKLOG = 128, CONTROL_PIDS_MAX = 1 << 20 };

/* State directories may have long names; socket addresses may not. */
static void control_address(int state_dir, struct sockaddr_un *ret_address)
{
    *ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(ret_address->sun_path, sizeof(ret_address->sun_path), "/proc/self/fd/%d/%s", state_dir,
             CONTROL_SOCKET_NAME);
}

int control_listen(int state_dir, struct errmsg *e)
{
    struct sockaddr_un address;
    control_address(state_dir, &address);
    CLEANUP_CLOSE int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (sock < 0)
        return errmsg_set(e, -errno, "make the control socket: %s", errtext(errno));
    /* One left by a killed command would be in the way. */
    if (unlinkat(state_dir, CONTROL_SOCKET_NAME, 0) < 0 && errno != ENOENT)
        return errmsg_set(e, -errno, "remove an old control socket: %s", errtext(errno));
    mode_t old = umask(0177);
    int r = (int)host_ret(bind(sock, (struct sockaddr *)&address, sizeof(address)));
    umask(old);
    if (r < 0)
        return errmsg_set(e, r, "bind the control socket: %s", errtext(r));
    if (listen(sock, CONTROL_BACKLOG) < 0)
        return errmsg_set(e, -errno, "listen on the control socket: %s", errtext(errno));
    return TAKE_FD(sock);
}

int control_connect(int state_dir)
{
    struct sockaddr_un address;
    control_address(state_dir, &address);
    CLEANUP_CLOSE int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (sock < 0)
        return -errno;
    int r;
    do
        r = (int)host_ret(connect(sock, (struct sockaddr *)&address, sizeof(address)));
    while (r == -EINTR);
    return r < 0 ? r : TAKE_FD(sock);
}

int control_send(int sock, enum control_op op, const int32_t args[CONTROL_ARGS], const int *fds,
                 unsigned fds_len)
{
    struct control_request request = {.magic = CONTROL_MAGIC, .op = op};
    if (args)
        memcpy(request.args, args, sizeof(request.args));
    ssize_t n = host_send_fds(sock, &request, sizeof(request), fds, fds_len);
    return n < 0 ? (int)n : 0;
}

int control_recv(int sock, struct control_reply *ret_reply)
{
    ssize_t n = host_recv_fds(sock, ret_reply, sizeof(*ret_reply), NULL, NULL, 0);
    if (n == 0 || n == -ECONNRESET)
        return -EPIPE;
    if (n < 0)
        return (int)n;
    size_t head = offsetof(struct control_reply, data);
    if ((size_t)n < head || ret_reply->magic != CONTROL_MAGIC ||
        ret_reply->size > CONTROL_DATA_MAX || (size_t)n != head + ret_reply->size ||
        (ret_reply->kind != CONTROL_REPLY && ret_reply->kind != CONTROL_EXITED))
        return -EPROTO;
    /* A message is text; it may not be terminated. */
    ret_reply->data[MIN(ret_reply->size, (uint32_t)CONTROL_DATA_MAX - 1)] = '\0';
    return 0;
}

/* Waits until sock has something. Return: 0, −ETIMEDOUT, −errno. */
static int control_wait(int sock, int timeout_ms)
{
    uint64_t end = host_monotonic_ns() + (uint64_t)(timeout_ms < 0 ? 0 : timeout_ms) * 1000000u;
    for (;;) {
        int left_ms = -1;
        if (timeout_ms >= 0) {
            uint64_t now = host_monotonic_ns();
            left_ms = now >= end ? 0 : (int)((end - now) / 1000000u) + 1;
        }
        struct pollfd p = {.fd = sock, .events = POLLIN};
        int r = poll(&p, 1, left_ms);
        if (r > 0)
            return 0;
        if (r == 0)
            return -ETIMEDOUT;
        if (errno != EINTR)
            return -errno;
    }
}

/* One request on an open connection. */
static int control_ask(int sock, enum control_op op, const int32_t args[CONTROL_ARGS], int timeout_ms,
                       struct control_reply *ret_reply, struct errmsg *e)
{
    int r = control_send(sock, op, args, NULL, 0);
    if (r == 0)
        r = control_wait(sock, timeout_ms);
    if (r == 0)
        r = control_recv(sock, ret_reply);
    if (r == 0 && ret_reply->kind != CONTROL_REPLY)
        r = -EPROTO;
    if (r == -EPIPE)
        return errmsg_set(e, r, "the sandbox ended unexpectedly");
    if (r < 0)
        return errmsg_set(e, r, "ask the sentry: %s", errtext(r));
    if (ret_reply->result < 0)
        return errmsg_set(e, ret_reply->result, "%s",
                          ret_reply->size ? ret_reply->data : errtext(ret_reply->result));
    return ret_reply->result;
}

int control_call(int state_dir, enum control_op op, const int32_t args[CONTROL_ARGS], int timeout_ms,
                 struct errmsg *e)
{
    CLEANUP_CLOSE int sock = control_connect(state_dir);
    if (sock < 0)
        return errmsg_set(e, sock, "connect to the sentry: %s", errtext(sock));
    struct control_reply reply;
    return control_ask(sock, op, args, timeout_ms, &reply, e);
}

int control_ps(int state_dir, int32_t **ret_pids, struct errmsg *e)
{
    CLEANUP_CLOSE int sock = control_connect(state_dir);
    if (sock < 0)
        return errmsg_set(e, sock, "connect to the sentry: %s", errtext(sock));
    CLEANUP_FREE int32_t *pids = NULL;
    int32_t len = 0;
    for (;;) {
        struct control_reply reply;
        const int32_t args[CONTROL_ARGS] = {len};
        int total = control_ask(sock, CONTROL_PS, args, -1, &reply, e);
        if (total < 0)
            return total;
        int32_t got = (int32_t)(reply.size / sizeof(int32_t));
        int32_t *bigger = mem_realloc(pids, (size_t)(len + got + 1), sizeof(*pids));
        if (!bigger)
            return errmsg_set(e, -ENOMEM, "out of memory");
        pids = bigger;
        memcpy(pids + len, reply.data, (size_t)got * sizeof(*pids));
        len += got;
        if (got == 0 || len >= total || len > CONTROL_PIDS_MAX)
            break;
    }
    *ret_pids = TAKE_PTR(pids);
    return len;
}
