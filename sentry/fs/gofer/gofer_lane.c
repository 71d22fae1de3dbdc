/* SPDX-License-Identifier: Apache-2.0 */
/* The lane: queue, numbers, late answers. */
#include "sentry/fs/gofer/gofer_lane.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "platform/base/log.h"
#include "sentry/fs/gofer/gofer_client_priv.h"
#include "sentry/fs/gofer/gofer_fs.h"

enum {
    LANE_OPS_MAX = 128,          /* changes under way, of one client */
    LANE_BYTES_MAX = 96 * 1024,  /* and their messages: with all slots in use they fit the socket's buffer */
    LANE_BATCH = 8,              /* changes that are sent together … */
    LANE_BATCH_BYTES = 8 * 1024,
    LANE_DELAY_NS = 200 * 1000   /* … or when the first has waited so long */
};

/* All clients, for gofer_lane_settle_others (k) */
static struct list lane_clients = LIST_INIT(lane_clients);

static uint32_t lane_done(const struct gofer_client *c)
{
    return __atomic_load_n(&channel_board(&c->channel)->lane_done, __ATOMIC_ACQUIRE);
}

bool gofer_lane_busy(const struct gofer_client *c)
{
    return c->lane.sock >= 0 && !c->dead && (!list_empty(&c->lane_queue) || lane_done(c) != c->lane_seq);
}

/* ---- changes ---- */

struct gofer_late *gofer_lane_new(enum wire_op op, const void *fixed, size_t fixed_size, const char *name,
                                  size_t payload_max)
{
    size_t capacity = sizeof(struct wire_request) + payload_max;
    struct gofer_late *l = capacity <= WIRE_LANE_MAX ? mem_zalloc(sizeof(*l) + capacity) : NULL;
    if (!l)
        return NULL;
    list_init(&l->link);
    l->op = op;
    l->capacity = (uint32_t)capacity;
    l->size = sizeof(struct wire_request);
    gofer_lane_put(l, fixed, fixed_size);
    if (name) {
        uint16_t len = (uint16_t)strlen(name);
        BUG_ON(len > WIRE_NAME_MAX);
        memcpy(l->name, name, len + 1U);
        gofer_lane_put(l, &len, sizeof(len));
        gofer_lane_put(l, name, len);
    }
    return l;
}

void gofer_lane_put(struct gofer_late *l, const void *p, size_t size)
{
    BUG_ON(size > l->capacity - l->size);
    if (size)
        memcpy(l->message + l->size, p, size);
    l->size += (uint32_t)size;
}

/* Takes l, which is on no list any more, to its end. Return: false when the payload breaks the protocol. */
static bool lane_end(struct gofer_client *c, struct gofer_late *l, int error, const void *payload, size_t size)
{
    gofer_watch_done(l->expects, l->expects_len);
    bool ok = !l->ended || !l->owner || (!error && !l->answered) || l->ended(l, error, payload, size);
    mem_free(l);
    return ok;
}

void gofer_lane_purge(struct gofer_client *c, const void *owner)
{
    struct gofer_late *l;
    list_for_each_entry (l, &c->lane_queue, link)
        l->owner = l->owner == owner ? NULL : l->owner;
    list_for_each_entry (l, &c->lane_sent, link)
        l->owner = l->owner == owner ? NULL : l->owner;
}

/* ---- sending ---- */

/* Sends some of the queue in one message. Return: 0 or −errno. */
static int lane_send_some(struct gofer_client *c)
{
    struct iovec iov[LANE_BATCH];
    struct msghdr msg = {.msg_iov = iov};
    struct gofer_late *l, *next;
    size_t total = 0;
    uint32_t seq = c->lane_seq;
    list_for_each_entry (l, &c->lane_queue, link) {
        if (msg.msg_iovlen == LANE_BATCH || total + l->size > WIRE_LANE_MAX)
            break;
        l->seq = ++seq;
        struct wire_request head = {.tag = seq << 8 | WIRE_SLOT_NONE,
                                    .op = (uint16_t)l->op,
                                    .inline_size = (uint16_t)(l->size - sizeof(head))};
        memcpy(l->message, &head, sizeof(head));
        iov[msg.msg_iovlen++] = (struct iovec){.iov_base = l->message, .iov_len = l->size};
        total += l->size;
    }
    long n;
    do
        n = host_ret(sendmsg(c->lane.sock, &msg, MSG_NOSIGNAL | MSG_DONTWAIT));
    while (n == -EINTR);
    if (n < 0)
        return (int)n;
    c->lane_seq = seq;
    list_for_each_entry_safe (l, next, &c->lane_queue, link) {
        if (msg.msg_iovlen-- == 0)
            break;
        list_del(&l->link);
        list_add_tail(&c->lane_sent, &l->link);
        c->lane_queued--;
    }
    return 0;
}

/* Sends the queue as far as the socket takes it. */
static void lane_flush(struct gofer_client *c)
{
    int err = 0;
    while (!list_empty(&c->lane_queue) && !c->dead && err >= 0)
        err = lane_send_some(c);
    bool stuck = err == -EAGAIN;
    if (err < 0 && !stuck)
        gofer_client_die(c, "send by the lane failed");
    if (c->dead || stuck == c->lane_stuck)
        return;
    c->lane_stuck = stuck;
    (void)!evloop_modify(&c->lane_watch, stuck ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

static void lane_due(struct ktimer *t)
{
    lane_flush(container_of(t, struct gofer_client, lane_timer));
}

void gofer_lane_post(struct gofer_client *c, OWNS struct gofer_late *l)
{
    if (c->dead) {
        (void)!lane_end(c, l, -EIO, NULL, 0);
        return;
    }
    list_add_tail(&c->lane_queue, &l->link);
    c->lane_queued++;
    c->lane_ops++;
    c->lane_bytes += l->size;
    if (c->lane_queued >= LANE_BATCH || l->size >= LANE_BATCH_BYTES ||
        (!ktimer_armed(&c->lane_timer) &&
         ktimer_set(&c->lane_timer, host_monotonic_ns() + LANE_DELAY_NS, lane_due) < 0))
        lane_flush(c);
}

bool gofer_lane_clear(struct gofer_client *c)
{
    lane_flush(c);
    return list_empty(&c->lane_queue);
}

bool gofer_lane_in_use(struct gofer_client *c)
{
    return c->lane.sock >= 0 && !c->dead && lane_done(c) != c->lane_seq;
}

void gofer_lane_counted(struct gofer_client *c)
{
    c->lane_seq++;
}

/* ---- answers ---- */

static void lane_forget(struct gofer_client *c, struct gofer_late *l)
{
    list_del(&l->link);
    c->lane_ops--;
    c->lane_bytes -= l->size;
}

/* An answer that no slot awaits. Return: false when it breaks the protocol. */
static bool lane_answer(struct gofer_client *c, struct channel_reply *r)
{
    struct gofer_late *l;
    list_for_each_entry (l, &c->lane_sent, link) {
        if ((l->seq << 8 | WIRE_SLOT_NONE) != r->tag)
            continue;
        if (r->fds_len || (!r->error && !l->answered))
            return false;
        lane_forget(c, l);
        return lane_end(c, l, r->error, r->payload, r->size);
    }
    return false;
}

/* Takes in what has come by the lane. */
static void lane_receive(struct gofer_client *c)
{
    while (!c->dead) {
        int err = channel_recv_reply(&c->lane, &c->reply, MSG_DONTWAIT);
        if (err == -EAGAIN)
            return;
        if (err <= 0)
            gofer_client_die(c, err ? "malformed reply" : "the gofer is gone");
        else if (WIRE_TAG_SLOT(c->reply.tag) != WIRE_SLOT_NONE)
            gofer_client_answer(c, &c->reply);
        else if (!lane_answer(c, &c->reply))
            gofer_client_die(c, "late reply that nobody awaits");
    }
}

/* Ends what the gofer has done. */
static void lane_retire(struct gofer_client *c)
{
    uint32_t done = lane_done(c);
    if (c->dead || done == c->lane_retired)
        return;
    if (done - c->lane_retired > c->lane_seq - c->lane_retired) {
        gofer_client_die(c, "more was done than was asked for");
        return;
    }
    /* Failures are told before what failed counts as done, and the events of a change come before that, too. */
    lane_receive(c);
    gofer_watch_drain(c->tree_watch, true);
    c->lane_retired = done;
    while (!list_empty(&c->lane_sent) && !c->dead) {
        struct gofer_late *l = list_first(&c->lane_sent, struct gofer_late, link);
        if ((int32_t)(done - l->seq) < 0)
            break;
        lane_forget(c, l);
        if (l->answered) {
            (void)!lane_end(c, l, -EIO, NULL, 0);
            gofer_client_die(c, "no late reply");
            return;
        }
        (void)!lane_end(c, l, 0, NULL, 0);
    }
}

static void lane_readable(void *arg, uint32_t epoll_events)
{
    struct gofer_client *c = arg;
    if (epoll_events & EPOLLOUT)
        lane_flush(c);
    lane_receive(c);
    lane_retire(c);
    waitq_wake_all(&c->lane_wait);
}

/* ---- waiting ---- */

/* A request that is answered when all before it are done. */
static int lane_round_trip(struct gofer_client *c)
{
    struct wire_release none = {0};
    struct gofer_slot *s;
    struct codec_writer w;
    struct codec_reader r;
    int err = gofer_client_begin(c, &s);
    if (err < 0)
        return err;
    codec_writer_init(&w, c->request, WIRE_SLOT_SIZE);
    codec_put(&w, &none, sizeof(none));
    err = gofer_client_finish(c, s, WIRE_OP_RELEASE, &w, &r);
    gofer_client_end(c, s);
    return err;
}

int gofer_lane_settle(struct gofer_client *c)
{
    int err = 0;
    if (gofer_lane_busy(c))
        err = lane_round_trip(c);
    if (!list_empty(&c->lane_sent))
        lane_retire(c);
    return c->dead ? -EIO : err;
}

void gofer_lane_settle_others(const struct gofer_client *c)
{
    struct gofer_client *other;
again:
    list_for_each_entry (other, &lane_clients, lane_link) {
        if (other == c || !gofer_lane_busy(other))
            continue;
        gofer_client_ref(other);
        (void)!gofer_lane_settle(other);
        gofer_client_unref(other);
        goto again; /* the list may have changed meanwhile */
    }
}

void gofer_fs_settle_all(void)
{
    gofer_lane_settle_others(NULL);
}

void gofer_fs_finish_all(uint64_t deadline_ns)
{
    struct gofer_client *c;
    list_for_each_entry (c, &lane_clients, lane_link) {
        while (!c->dead && !(gofer_lane_clear(c) && lane_done(c) == c->lane_seq) &&
               host_monotonic_ns() < deadline_ns) {
            /* Answers that nobody takes any more must not stop the gofer; else time is what is waited for. */
            struct pollfd p = {.fd = c->lane.sock, .events = POLLIN};
            if (poll(&p, 1, 1) > 0)
                lane_receive(c);
        }
    }
}

int gofer_lane_room(struct gofer_client *c, size_t size)
{
    if (c->lane.sock < 0)
        return -EOPNOTSUPP;
    if (c->lane_ops >= LANE_OPS_MAX / 2)
        lane_retire(c);
    while (!c->dead && (c->lane_ops >= LANE_OPS_MAX || c->lane_bytes + size > LANE_BYTES_MAX)) {
        int err = gofer_lane_settle(c);
        if (err < 0)
            return err;
    }
    return c->dead ? -EIO : 0;
}

void gofer_lane_make_way(struct gofer_client *c)
{
    struct ctx nobody = {0};
    while (!c->dead && !gofer_lane_clear(c))
        (void)!waitq_wait(&nobody, &c->lane_wait, CTX_WAIT_UNINTERRUPTIBLE, WAIT_FOREVER);
}

/* ---- life ---- */

void gofer_lane_open(struct gofer_client *c, OWNS int sock)
{
    if (c->lane.sock >= 0 || evloop_watch(&c->lane_watch, sock, EPOLLIN, lane_readable, c) < 0) {
        host_close(sock);
        return;
    }
    c->lane = (struct channel){.sock = sock, .shm = c->channel.shm};
    list_add_tail(&lane_clients, &c->lane_link);
}

void gofer_lane_die(struct gofer_client *c)
{
    struct list all;
    list_init(&all);
    list_splice_tail(&all, &c->lane_sent);
    list_splice_tail(&all, &c->lane_queue);
    evloop_unwatch(&c->lane_watch);
    ktimer_cancel(&c->lane_timer);
    while (!list_empty(&all)) {
        struct gofer_late *l = list_first(&all, struct gofer_late, link);
        list_del(&l->link);
        (void)!lane_end(c, l, -EIO, NULL, 0);
    }
    c->lane_ops = c->lane_queued = 0;
    c->lane_bytes = 0;
    waitq_wake_all(&c->lane_wait);
}

void gofer_lane_close(struct gofer_client *c)
{
    gofer_lane_die(c);
    if (c->lane.sock < 0)
        return;
    list_del(&c->lane_link);
    host_close(c->lane.sock);
    c->lane.sock = -1;
}
