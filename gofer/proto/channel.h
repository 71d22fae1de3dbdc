/* SPDX-License-Identifier: Apache-2.0 */
/* The channel between sentry and gofer: a SOCK_SEQPACKET pair for doorbells, small payloads and
 * descriptors, and shared memory for larger payloads. Neither end trusts the other's bytes.
 *
 * The socket is the doorbell because its wake-up is synchronous: the host moves the peer onto this
 * CPU at once, where a futex or eventfd costs a wake-up of another one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "gofer/proto/wire.h"
#include "platform/base/compiler.h"

#define CHANNEL_BOARD_AT ((uint64_t)WIRE_SLOTS * WIRE_SLOT_SIZE)
#define CHANNEL_SHM_SIZE (CHANNEL_BOARD_AT + 4096)

struct channel {
    int sock; /* (i) owned */
    unsigned char
        *shm; /* (i) CHANNEL_SHM_SIZE bytes, shared with a peer that may write at any time */
};

/* Makes the two ends of a channel's socket (close-on-exec). Return: 0 or −errno. */
MUST_CHECK int channel_socketpair(int ret_socks[2]);
/* Makes the shared memory. Return: fd of a memfd that can neither grow nor shrink, or −errno. */
MUST_CHECK int channel_shm_new(void);

/* Opens one end. Owns: sock is consumed on success; shm_fd stays the caller's and may be closed.
 * Errors: −EINVAL when the memory has another size or could be shrunk. */
MUST_CHECK int channel_open(struct channel *ch, int sock, int shm_fd);
void channel_close(struct channel *ch);
/* What the server tells without a message. */
static inline struct wire_board *channel_board(const struct channel *ch)
{
    return (struct wire_board *)(ch->shm + CHANNEL_BOARD_AT);
}

/* Sends a request without blocking. payload of at most WIRE_SLOT_SIZE bytes.
 * Return: 0 or −errno (−EPIPE, −ECONNRESET: the peer is gone). */
MUST_CHECK int channel_send_request(struct channel *ch, uint32_t tag, enum wire_op op,
                                    const void *payload, size_t size);

/* A reply as received. payload may point into shared memory: copy it once, then look at it. */
struct channel_reply {
    uint32_t tag;
    int error;
    const unsigned char *payload;
    size_t size;
    int fds[WIRE_FDS_MAX]; /* owned by the receiver */
    size_t fds_len;
    unsigned char message[sizeof(struct wire_reply) + WIRE_INLINE_MAX];
};

/* Receives one reply; flags as for recvmsg (MSG_DONTWAIT). Descriptors that can't be received (too
 * many are open) make it one that failed with −EMFILE. Slot and sizes are in range and error ≤ 0
 * when this returns 1; that the tag is awaited is for the caller to check. Return: 1; 0 when the
 * peer is gone; −EAGAIN; −EPROTO for a malformed message (nothing is kept).
 */
MUST_CHECK int channel_recv_reply(struct channel *ch, struct channel_reply *ret_reply, int flags);

/* Server side. buffer is private memory of CHANNEL_BUFFER_SIZE bytes that receives the payload. */
enum { CHANNEL_BUFFER_SIZE = WIRE_SLOT_SIZE + 64 };

struct channel_request {
    uint32_t tag;
    enum wire_op op;
    const unsigned char *payload; /* inside buffer */
    size_t size;
};

/* Waits for one request. Return: 1; 0 when the peer is gone; −EPROTO when it sent nonsense. */
MUST_CHECK int channel_recv_request(struct channel *ch, void *buffer,
                                    struct channel_request *ret_request);

/* The lane: a message is several requests. Receives one into message (WIRE_LANE_MAX bytes).
 * Return: its size, 0 when the peer is gone, −EPROTO when it is none. */
MUST_CHECK ssize_t channel_recv_lane(int sock, void *message);
/* Takes the request at *inout_at out of a lane's message. slot_buffer (WIRE_SLOT_SIZE bytes) receives a payload that
 * lies in a slot. Return: 1, 0 at the end of the message, −EPROTO. */
MUST_CHECK int channel_lane_request(struct channel *ch, const unsigned char *message, size_t size, size_t *inout_at,
                                    void *slot_buffer, struct channel_request *ret_request);

/* Where in a buffer of CHANNEL_BUFFER_SIZE bytes a reply's payload (≤ WIRE_SLOT_SIZE) is built. */
static inline void *channel_reply_payload(void *buffer)
{
    return (char *)buffer + sizeof(struct wire_reply);
}
/* Sends the reply whose payload of size bytes was built in buffer; fds stay the caller's.
 * Return: 0 or −errno. */
MUST_CHECK int channel_send_reply(struct channel *ch, uint32_t tag, int error, void *buffer,
                                  size_t size, const int *fds, size_t fds_len);
