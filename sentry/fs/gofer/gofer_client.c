/* SPDX-License-Identifier: Apache-2.0 */
/* Transport of the gofer client: slots, tags, waiting fibers, death. The typed calls are in
 * gofer_calls.c. */
#include "sentry/fs/gofer/gofer_client.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "platform/base/log.h"
#include "sentry/fs/gofer/gofer_client_priv.h"
#include "sentry/fs/gofer/gofer_lane.h"
#include "sentry/fs/gofer/gofer_watch.h"

int gofer_client_new(int sock, int shm, struct gofer_client **ret_client)
{
    struct gofer_client *c = NEW(struct gofer_client);
    int err = -ENOMEM;
    /* Pages of their own: few requests are long, and what is not touched costs nothing. */
    void *request =
        mmap(NULL, WIRE_SLOT_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (c && request != MAP_FAILED) {
        err = channel_open(&c->channel, sock, shm);
        if (err >= 0)
            sock = -1;
    }
    if (err >= 0)
        err = evloop_watch(&c->watch, c->channel.sock, EPOLLIN, gofer_client_readable, c);
    host_close(shm);
    if (err < 0) {
        host_close(sock);
        if (c)
            channel_close(&c->channel);
        if (request != MAP_FAILED)
            munmap(request, WIRE_SLOT_SIZE);
        mem_free(c);
        return err;
    }
    ref_init(&c->ref);
    c->request = request;
    list_init(&c->waiting);
    c->lane.sock = -1;
    list_init(&c->lane_link);
    list_init(&c->lane_queue);
    list_init(&c->lane_sent);
    waitq_init(&c->lane_wait);
    for (unsigned i = 0; i < WIRE_SLOTS; i++)
        c->free_slots[i] = (uint8_t)(WIRE_SLOTS - 1 - i);
    c->free_len = WIRE_SLOTS;
    *ret_client = c;
    return 0;
}

struct gofer_client *gofer_client_ref(struct gofer_client *c)
{
    ref_get(&c->ref);
    return c;
}

void gofer_client_unref(struct gofer_client *c)
{
    if (!c || !ref_put(&c->ref))
        return;
    evloop_unwatch(&c->watch);
    ktimer_cancel(&c->release_timer);
    gofer_lane_close(c);
    channel_close(&c->channel);
    gofer_watch_free(c->tree_watch);
    for (unsigned i = 0; i < WIRE_SLOTS; i++)
        mem_free(c->slots[i].data);
    munmap(c->request, WIRE_SLOT_SIZE);
    mem_free(c);
}

void gofer_client_on_death(struct gofer_client *c, void (*fn)(void *arg), void *arg)
{
    c->on_death = fn;
    c->on_death_arg = arg;
}

bool gofer_client_dead(const struct gofer_client *c)
{
    return c->dead;
}

void gofer_client_die(struct gofer_client *c, const char *why)
{
    if (c->dead)
        return;
    log_debug("gofer channel: %s", why);
    c->dead = true;
    evloop_unwatch(&c->watch);
    ktimer_cancel(&c->release_timer);
    for (unsigned i = 0; i < WIRE_SLOTS; i++) {
        struct gofer_slot *s = &c->slots[i];
        if (s->state == GOFER_SLOT_SENT) {
            s->error = -EIO;
            s->state = GOFER_SLOT_ANSWERED;
            if (s->fiber)
                fiber_ready(s->fiber);
        }
    }
    gofer_lane_die(c);
    struct gofer_turn *turn;
    list_for_each_entry (turn, &c->waiting, link)
        fiber_ready(turn->fiber);
    if (c->on_death)
        c->on_death(c->on_death_arg);
}

/* ---- slots ---- */

/* Lets the first waiting fiber have a slot that became free. Granted ones still own the right to
 * it: nobody may begin while the list is not empty. */
static void gofer_client_grant(struct gofer_client *c)
{
    struct gofer_turn *turn = list_first_or_null(&c->waiting, struct gofer_turn, link);
    if (c->free_len && turn && !turn->granted) {
        turn->granted = true;
        fiber_ready(turn->fiber);
    }
}

int gofer_client_begin(struct gofer_client *c, struct gofer_slot **ret_slot)
{
    struct gofer_turn turn = {.fiber = fiber_current()};
    BUG_ON(!turn.fiber);
    if (!c->dead && (!c->free_len || !list_empty(&c->waiting))) {
        list_add_tail(&c->waiting, &turn.link);
        while (!c->dead && !turn.granted)
            fiber_park();
        list_del(&turn.link);
    }
    if (c->dead)
        return -EIO;
    struct gofer_slot *s = &c->slots[c->free_slots[--c->free_len]];
    s->fiber = turn.fiber;
    s->fds_len = 0;
    gofer_client_grant(c);
    gofer_lane_make_way(c);
    if (c->dead) {
        gofer_client_end(c, s);
        return -EIO;
    }
    *ret_slot = s;
    return 0;
}

void gofer_client_end(struct gofer_client *c, struct gofer_slot *s)
{
    for (size_t i = 0; i < s->fds_len; i++)
        host_close(s->fds[i]);
    s->fds_len = 0;
    if (s->capacity > GOFER_SLOT_KEEP) {
        mem_free(s->data);
        s->data = NULL;
        s->capacity = 0;
    }
    s->state = GOFER_SLOT_FREE;
    s->fiber = NULL;
    c->free_slots[c->free_len++] = (uint8_t)(s - c->slots);
    gofer_client_grant(c);
}

static int gofer_client_send(struct gofer_client *c, struct gofer_slot *s, enum wire_op op,
                             const void *payload, size_t size)
{
    /* A fresh tag each time: a late reply to an earlier request is never taken for this one's. */
    s->tag = (++c->sequence << 8) | (uint32_t)(s - c->slots);
    s->state = GOFER_SLOT_SENT;
    s->error = 0;
    c->outstanding++;
    /* Whatever is asked for comes after the changes that are under way. */
    bool by_lane = gofer_lane_in_use(c);
    int err = channel_send_request(by_lane ? &c->lane : &c->channel, s->tag, op, payload, size);
    if (err >= 0 && by_lane)
        gofer_lane_counted(c);
    if (err < 0) {
        /* The socket has room for every slot's message, so that even "full" means a broken peer. */
        s->state = GOFER_SLOT_ANSWERED;
        c->outstanding--;
        gofer_client_die(c, "send failed");
        return -EIO;
    }
    return 0;
}

int gofer_client_finish(struct gofer_client *c, struct gofer_slot *s, enum wire_op op,
                        struct codec_writer *w, struct codec_reader *ret_reply)
{
    /* Larger requests than a slot holds are refused by the callers' own limits. */
    if (w->bad)
        return -ENAMETOOLONG;
    int err = gofer_client_send(c, s, op, w->data, w->size);
    if (err < 0)
        return err;
    while (s->state != GOFER_SLOT_ANSWERED)
        fiber_park();
    if (s->error < 0)
        return s->error;
    codec_reader_init(ret_reply, s->data, s->size);
    return 0;
}

/* ---- replies ---- */

static bool gofer_client_keep(struct gofer_slot *s, const struct channel_reply *r)
{
    if (r->size > s->capacity) {
        size_t capacity = r->size <= 2048 ? 2048 : r->size;
        mem_free(s->data);
        s->data = mem_zalloc(capacity);
        s->capacity = s->data ? capacity : 0;
        if (!s->data)
            return false;
    }
    /* The one copy out of memory that the gofer can change. */
    if (r->size)
        memcpy(s->data, r->payload, r->size);
    s->size = r->size;
    memcpy(s->fds, r->fds, r->fds_len * sizeof(r->fds[0]));
    s->fds_len = r->fds_len;
    return true;
}

static void gofer_client_drop_fds(struct channel_reply *r)
{
    for (size_t i = 0; i < r->fds_len; i++)
        host_close(r->fds[i]);
}

void gofer_client_answer(struct gofer_client *c, struct channel_reply *r)
{
    struct gofer_slot *s = &c->slots[WIRE_TAG_SLOT(r->tag)];
    if (s->state != GOFER_SLOT_SENT || s->tag != r->tag) {
        gofer_client_drop_fds(r);
        gofer_client_die(c, "reply that nobody awaits");
        return;
    }
    c->outstanding--;
    s->state = GOFER_SLOT_ANSWERED;
    s->error = r->error;
    if (!gofer_client_keep(s, r)) {
        gofer_client_drop_fds(r);
        s->error = -ENOMEM;
    }
    if (s->fiber)
        fiber_ready(s->fiber);
    else
        gofer_client_end(c, s); /* RELEASE: nobody waits */
}

void gofer_client_readable(void *arg, uint32_t epoll_events)
{
    struct gofer_client *c = arg;
    (void)epoll_events;
    do {
        int err = channel_recv_reply(&c->channel, &c->reply, MSG_DONTWAIT);
        if (err == -EAGAIN)
            return;
        if (err <= 0) {
            gofer_client_die(c, err ? "malformed reply" : "the gofer is gone");
            return;
        }
        gofer_client_answer(c, &c->reply);
        /* Without requests under way there is nothing more to fetch: this saves a host call. */
    } while (c->outstanding && !c->dead);
}

/* ---- what nobody waits for ---- */

void gofer_client_flush(struct gofer_client *c)
{
    if (c->dead || !c->releases_len || !c->free_len || !list_empty(&c->waiting) || !gofer_lane_clear(c))
        return;
    struct gofer_slot *s = &c->slots[c->free_slots[--c->free_len]];
    s->fiber = NULL;
    s->fds_len = 0;
    c->release.head.count = c->releases_len;
    size_t size = sizeof(c->release.head) + c->releases_len * sizeof(c->release.nodes[0]);
    c->releases_len = 0;
    ktimer_cancel(&c->release_timer);
    if (gofer_client_send(c, s, WIRE_OP_RELEASE, &c->release, size) < 0)
        gofer_client_end(c, s);
}

static void gofer_client_release_due(struct ktimer *t)
{
    struct gofer_client *c = container_of(t, struct gofer_client, release_timer);
    gofer_client_flush(c);
    /* All slots busy: the next release or this timer tries again. */
    if (c->releases_len && !c->dead)
        (void)!ktimer_set(t, host_monotonic_ns() + GOFER_RELEASE_DELAY_NS,
                          gofer_client_release_due);
}

void gofer_client_release(struct gofer_client *c, uint64_t node)
{
    if (node == WIRE_NODE_NONE || c->dead)
        return;
    if (c->releases_len == GOFER_RELEASES_MAX)
        gofer_client_flush(c);
    if (c->releases_len == GOFER_RELEASES_MAX)
        return; /* no slot was free through hundreds of releases: the node stays */
    c->release.nodes[c->releases_len++] = node;
    if (c->releases_len == 1)
        (void)!ktimer_set(&c->release_timer, host_monotonic_ns() + GOFER_RELEASE_DELAY_NS,
                          gofer_client_release_due);
    else if (c->releases_len >= GOFER_RELEASES_FLUSH)
        gofer_client_flush(c);
}

void gofer_client_exit(struct gofer_client *c, int wait_status)
{
    struct wire_exit req = {.wait_status = wait_status};
    if (c->dead)
        return;
    (void)!channel_send_request(&c->channel, ++c->sequence << 8, WIRE_OP_EXIT, &req, sizeof(req));
    c->on_death = NULL;
    gofer_client_die(c, "exit was sent");
}
