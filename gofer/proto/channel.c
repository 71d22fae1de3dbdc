/* SPDX-License-Identifier: Apache-2.0 */
/* Doorbell messages over a socket, large payloads through shared memory. */
#include "gofer/proto/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "platform/base/host.h"

int channel_socketpair(int ret_socks[2])
{
    return (int)host_ret(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret_socks));
}

int channel_shm_new(void)
{
    return host_memfd("cloister-gofer", CHANNEL_SHM_SIZE);
}

int channel_open(struct channel *ch, int sock, int shm_fd)
{
    struct stat st;
    int err = (int)host_ret(fstat(shm_fd, &st));
    if (err < 0)
        return err;
    /* A peer that could shrink the memory could make this end die of SIGBUS while it copies. */
    int seals = (int)host_ret(fcntl(shm_fd, F_GET_SEALS));
    if (seals < 0 || !(seals & F_SEAL_SHRINK) || st.st_size != (off_t)CHANNEL_SHM_SIZE)
        return -EINVAL;
    void *shm = mmap(NULL, CHANNEL_SHM_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, shm_fd, 0);
    if (shm == MAP_FAILED)
        return (int)host_ret(-1);
    *ch = (struct channel){.sock = sock, .shm = shm};
    return 0;
}

void channel_close(struct channel *ch)
{
    if (!ch->shm)
        return;
    munmap(ch->shm, CHANNEL_SHM_SIZE);
    host_close(ch->sock);
    *ch = (struct channel){.sock = -1};
}

static unsigned char *channel_slot(struct channel *ch, uint32_t tag)
{
    return ch->shm + (size_t)WIRE_TAG_SLOT(tag) * WIRE_SLOT_SIZE;
}

int channel_send_request(struct channel *ch, uint32_t tag, enum wire_op op, const void *payload,
                         size_t size)
{
    struct wire_request head = {.tag = tag, .op = (uint16_t)op};
    struct iovec iov[2] = {{.iov_base = &head, .iov_len = sizeof(head)}};
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 1};
    if (size > WIRE_SLOT_SIZE || WIRE_TAG_SLOT(tag) >= WIRE_SLOTS)
        return -EINVAL;
    if (size > WIRE_INLINE_MAX) {
        memcpy(channel_slot(ch, tag), payload, size);
        head.slot_size = (uint32_t)size;
    } else if (size) {
        head.inline_size = (uint16_t)size;
        iov[1] = (struct iovec){.iov_base = (void *)payload, .iov_len = size};
        msg.msg_iovlen = 2;
    }
    for (;;) {
        long n = host_ret(sendmsg(ch->sock, &msg, MSG_NOSIGNAL | MSG_DONTWAIT));
        if (n != -EINTR)
            return n < 0 ? (int)n : 0;
    }
}

static bool channel_reply_ok(const struct wire_reply *head, size_t message_size, size_t fds_len)
{
    if (message_size < sizeof(*head) || message_size != sizeof(*head) + head->inline_size)
        return false;
    if (WIRE_TAG_SLOT(head->tag) >= WIRE_SLOTS && (WIRE_TAG_SLOT(head->tag) != WIRE_SLOT_NONE || head->slot_size))
        return false;
    if (head->slot_size > WIRE_SLOT_SIZE || (head->inline_size && head->slot_size))
        return false;
    if (head->error > 0 || head->error < -4095 || head->fds_len != fds_len)
        return false;
    return head->error == 0 || (!head->inline_size && !head->slot_size && !fds_len);
}

int channel_recv_reply(struct channel *ch, struct channel_reply *ret_reply, int flags)
{
    struct wire_reply head = {0};
    struct channel_reply *r = ret_reply;
    r->fds_len = WIRE_FDS_MAX;
    memset(r->message, 0, sizeof(head));
    ssize_t n = host_recv_fds(ch->sock, r->message, sizeof(r->message), r->fds, &r->fds_len, flags);
    if (n == -EAGAIN)
        return -EAGAIN;
    if (n == 0 || n == -ECONNRESET)
        return 0;
    if (n < 0 && n != -EMSGSIZE)
        return -EPROTO;
    memcpy(&head, r->message, n < 0 ? sizeof(head) : MIN((size_t)n, sizeof(head)));
    if (n == -EMSGSIZE) {
        /* Most likely this process has no descriptor left for what came along: that must not cost
         * the channel. */
        *r = (struct channel_reply){.tag = head.tag, .error = -EMFILE};
        return WIRE_TAG_SLOT(head.tag) < WIRE_SLOTS ? 1 : -EPROTO;
    }
    if (!channel_reply_ok(&head, (size_t)n, r->fds_len)) {
        for (size_t i = 0; i < r->fds_len; i++)
            host_close(r->fds[i]);
        return -EPROTO;
    }
    r->tag = head.tag;
    r->error = head.error;
    r->size = head.slot_size ? head.slot_size : head.inline_size;
    r->payload = head.slot_size ? channel_slot(ch, head.tag) : r->message + sizeof(head);
    return 1;
}

int channel_recv_request(struct channel *ch, void *buffer, struct channel_request *ret_request)
{
    struct wire_request head;
    ssize_t n;
    /* A peer that closes with replies unread resets the connection. That is told once, before what it had sent.
     * Without room for control data the host drops descriptors that a hostile sentry attaches. */
    do
        n = host_ret(recv(ch->sock, buffer, CHANNEL_BUFFER_SIZE, MSG_TRUNC));
    while (n == -EINTR || n == -ECONNRESET);
    if (n == 0)
        return 0;
    if (n < (ssize_t)sizeof(head) || n > CHANNEL_BUFFER_SIZE)
        return -EPROTO;
    memcpy(&head, buffer, sizeof(head));
    if (head.inline_size > WIRE_INLINE_MAX || (size_t)n != sizeof(head) + head.inline_size ||
        head.slot_size > WIRE_SLOT_SIZE || (head.slot_size && head.inline_size) ||
        WIRE_TAG_SLOT(head.tag) >= WIRE_SLOTS || head.op == 0 || head.op >= WIRE_OP_COUNT)
        return -EPROTO;
    struct channel_request *q = ret_request;
    *q = (struct channel_request){.tag = head.tag, .op = head.op, .size = head.inline_size};
    q->payload = (unsigned char *)buffer + sizeof(head);
    if (head.slot_size) {
        memcpy(buffer, channel_slot(ch, head.tag), head.slot_size);
        q->payload = buffer;
        q->size = head.slot_size;
    }
    return 1;
}

ssize_t channel_recv_lane(int sock, void *message)
{
    ssize_t n;
    do
        n = host_ret(recv(sock, message, WIRE_LANE_MAX, MSG_TRUNC));
    while (n == -EINTR || n == -ECONNRESET);
    return n < 0 || n > WIRE_LANE_MAX ? -EPROTO : n;
}

int channel_lane_request(struct channel *ch, const unsigned char *message, size_t size, size_t *inout_at,
                         void *slot_buffer, struct channel_request *ret_request)
{
    struct wire_request head;
    size_t at = *inout_at;
    if (at == size)
        return 0;
    if (size - at < sizeof(head))
        return -EPROTO;
    memcpy(&head, message + at, sizeof(head));
    at += sizeof(head);
    bool slot_ok = WIRE_TAG_SLOT(head.tag) < WIRE_SLOTS || (WIRE_TAG_SLOT(head.tag) == WIRE_SLOT_NONE && !head.slot_size);
    if (head.inline_size > size - at || head.slot_size > WIRE_SLOT_SIZE || (head.slot_size && head.inline_size) ||
        !slot_ok || head.op == 0 || head.op >= WIRE_OP_COUNT)
        return -EPROTO;
    *ret_request = (struct channel_request){
        .tag = head.tag, .op = head.op, .payload = message + at, .size = head.inline_size};
    if (head.slot_size) {
        memcpy(slot_buffer, channel_slot(ch, head.tag), head.slot_size);
        ret_request->payload = slot_buffer;
        ret_request->size = head.slot_size;
    }
    *inout_at = at + head.inline_size;
    return 1;
}

int channel_send_reply(struct channel *ch, uint32_t tag, int error, void *buffer, size_t size,
                       const int *fds, size_t fds_len)
{
    struct wire_reply head = {.tag = tag, .error = error, .fds_len = (uint16_t)fds_len};
    size_t message_size = sizeof(head);
    ssize_t n;
    if (size > WIRE_INLINE_MAX) {
        memcpy(channel_slot(ch, tag), channel_reply_payload(buffer), size);
        head.slot_size = (uint32_t)size;
    } else {
        head.inline_size = (uint16_t)size;
        message_size += size;
    }
    memcpy(buffer, &head, sizeof(head));
    if (fds_len) {
        n = host_send_fds(ch->sock, buffer, message_size, fds, fds_len);
    } else {
        do
            n = host_ret(send(ch->sock, buffer, message_size, MSG_NOSIGNAL));
        while (n == -EINTR);
    }
    return n < 0 ? (int)n : 0;
}
