/* SPDX-License-Identifier: Apache-2.0 */
/* What gofer_client.c (transport) and gofer_calls.c (typed calls) share. */
#pragma once

#include "gofer/proto/channel.h"
#include "platform/base/list.h"
#include "platform/base/ref.h"
#include "sentry/core/evloop.h"
#include "sentry/core/fiber.h"
#include "sentry/core/ktimer.h"
#include "sentry/core/waitq.h"
#include "sentry/fs/gofer/gofer_client.h"

enum {
    GOFER_SLOT_KEEP = 8192,     /* reply buffers up to this are kept for the slot's next call */
    GOFER_RELEASES_MAX = 1024,  /* collected releases */
    GOFER_RELEASES_FLUSH = 128, /* sent without waiting for the timer */
    GOFER_RELEASE_DELAY_NS = 100 * 1000 * 1000 /* so long may a deleted file keep its space */
};

enum gofer_slot_state { GOFER_SLOT_FREE, GOFER_SLOT_SENT, GOFER_SLOT_ANSWERED };

/* One request under way. All fields (k). */
struct gofer_slot {
    enum gofer_slot_state state;
    uint32_t tag;
    int error;
    struct fiber *fiber; /* who waits; NULL: nobody */
    unsigned char *data; /* private copy of the reply's payload */
    size_t size, capacity;
    int fds[WIRE_FDS_MAX]; /* those not taken are closed at the end of the call */
    size_t fds_len;
};

/* A fiber that waits for a free slot; on its stack. */
struct gofer_turn {
    struct list link;
    struct fiber *fiber;
    bool granted;
};

struct gofer_client {
    struct ref ref;
    struct channel channel;
    struct evloop_watch watch;
    bool dead;
    void (*on_death)(void *arg);
    void *on_death_arg;
    uint32_t sequence;
    unsigned outstanding; /* slots in state SENT */
    struct gofer_slot slots[WIRE_SLOTS];
    uint8_t
        free_slots[WIRE_SLOTS]; /* a stack: the slot used last is used next, its memory is warm */
    unsigned free_len;
    struct list waiting; /* of gofer_turn */
    struct ktimer release_timer;
    unsigned releases_len;
    struct {
        struct wire_release head;
        uint64_t nodes[GOFER_RELEASES_MAX];
    } release;                      /* the message, as it is sent */
    struct gofer_watch *tree_watch; /* owned; NULL: no shared tree is watched */
    /* The lane, gofer_lane.c (k) */
    struct list lane_link;    /* of all clients that have one */
    struct channel lane;      /* sock −1: none; shm is the channel's */
    struct evloop_watch lane_watch;
    bool lane_stuck;          /* the socket is full: what is queued waits for it */
    uint32_t lane_seq;        /* requests that were sent by it */
    uint32_t lane_retired;    /* of these, those whose changes have been taken off lane_sent */
    struct list lane_queue, lane_sent; /* of gofer_late, in order */
    unsigned lane_queued, lane_ops;    /* changes in the queue; in both */
    size_t lane_bytes;                 /* of the messages of both */
    struct ktimer lane_timer;
    struct waitq lane_wait;   /* fibers that wait for the queue to be sent */
    struct channel_reply reply;     /* scratch of gofer_client_readable */
    unsigned char
        *request; /* scratch of WIRE_SLOT_SIZE bytes: requests are built and sent without a park */
};
/* Takes a slot, waiting for one if need be. gofer_client_end gives it back. Return: 0 or −EIO. */
MUST_CHECK int gofer_client_begin(struct gofer_client *c, struct gofer_slot **ret_slot);
/* Sends the request built in w (memory: c->request) and waits. Return: 0 with the reply's payload
 * to be read before gofer_client_end, or −errno. */
MUST_CHECK int gofer_client_finish(struct gofer_client *c, struct gofer_slot *s, enum wire_op op,
                                   struct codec_writer *w, struct codec_reader *ret_reply);
void gofer_client_end(struct gofer_client *c, struct gofer_slot *s);
/* The gofer broke the protocol or is gone. */
void gofer_client_die(struct gofer_client *c, const char *why);
void gofer_client_readable(void *arg, uint32_t epoll_events);
/* Hands a reply to whoever waits for it. */
void gofer_client_answer(struct gofer_client *c, struct channel_reply *r);
