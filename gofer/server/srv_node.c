/* SPDX-License-Identifier: Apache-2.0 */
/* Node table of the gofer. */
#include "gofer/server/srv_node.h"

#include <errno.h>
#include <stdbool.h>

#include "gofer/proto/wire.h"
#include "platform/base/alloc.h"
#include "platform/base/host.h"

enum { SRV_NODE_FREE_END = UINT32_MAX };

void srv_node_table_init(struct srv_node_table *t, uint64_t fds_limit)
{
    uint64_t max =
        fds_limit > 2 * SRV_NODE_FDS_SPARE ? fds_limit - SRV_NODE_FDS_SPARE : fds_limit / 2;
    *t = (struct srv_node_table){.first_free = UINT32_MAX};
    t->max = (uint32_t)MIN(max, (uint64_t)SRV_NODE_CHUNK * SRV_NODE_CHUNKS_MAX);
    pthread_mutex_init(&t->mu, NULL);
}

static struct srv_node *srv_node_at(struct srv_node_table *t, uint32_t index)
{
    return &t->chunks[index / SRV_NODE_CHUNK][index % SRV_NODE_CHUNK];
}

static int srv_node_grow(struct srv_node_table *t)
{
    if (t->capacity >= t->max)
        return -ENFILE;
    struct srv_node *chunk = NEW_ARRAY(struct srv_node, SRV_NODE_CHUNK);
    if (!chunk)
        return -ENOMEM;
    uint32_t len = MIN((uint32_t)SRV_NODE_CHUNK, t->max - t->capacity);
    t->chunks[t->capacity / SRV_NODE_CHUNK] = chunk;
    /* Pushed from the end, so that low places are used first and memory stays compact. */
    for (uint32_t i = len; i-- > 0;) {
        chunk[i].index = t->capacity + i;
        chunk[i].generation = 1;
        chunk[i].fd = chunk[i].reader_fd = -1;
        chunk[i].next_free = t->first_free;
        t->first_free = t->capacity + i;
    }
    t->capacity += len;
    return 0;
}

int srv_node_new(struct srv_node_table *t, int fd, uint32_t tree, mode_t type,
                 struct srv_node **ret_node)
{
    int err = 0;
    pthread_mutex_lock(&t->mu);
    if (t->len >= t->max - (S_ISDIR(type) ? 0 : t->max / SRV_NODE_DIRS_SHARE))
        err = -ENFILE;
    else if (t->first_free == UINT32_MAX)
        err = srv_node_grow(t);
    if (err >= 0) {
        struct srv_node *n = srv_node_at(t, t->first_free);
        t->first_free = n->next_free;
        t->len++;
        n->fd = fd;
        n->tree = tree;
        n->type = type & S_IFMT;
        n->holds_store = false;
        n->refs = 2;
        n->live = true;
        n->reader_fd = -1;
        *ret_node = n;
    }
    pthread_mutex_unlock(&t->mu);
    if (err < 0)
        host_close(fd);
    return err;
}

bool srv_node_has_room(struct srv_node_table *t)
{
    pthread_mutex_lock(&t->mu);
    bool room = t->len < t->max - t->max / SRV_NODE_DIRS_SHARE;
    pthread_mutex_unlock(&t->mu);
    return room;
}

uint64_t srv_node_id(const struct srv_node *n)
{
    return (uint64_t)n->generation << 32 | n->index;
}

/* Return: the live node of that id, or NULL. mu is held. */
static struct srv_node *srv_node_peek(struct srv_node_table *t, uint64_t id)
{
    uint32_t index = (uint32_t)id;
    if (index >= t->capacity)
        return NULL;
    struct srv_node *n = srv_node_at(t, index);
    return n->live && n->generation == id >> 32 ? n : NULL;
}

struct srv_node *srv_node_get(struct srv_node_table *t, uint64_t id)
{
    pthread_mutex_lock(&t->mu);
    struct srv_node *n = srv_node_peek(t, id);
    if (n)
        n->refs++;
    pthread_mutex_unlock(&t->mu);
    return n;
}

/* Drops a reference, mu held. Return: true when the place became free; *ret_fds are to be closed.
 */
static bool srv_node_drop(struct srv_node_table *t, struct srv_node *n, int ret_fds[2])
{
    BUG_ON(n->refs == 0);
    if (--n->refs)
        return false;
    ret_fds[0] = n->fd;
    ret_fds[1] = n->reader_fd;
    n->fd = n->reader_fd = -1;
    /* 0 is skipped: with index 0 it would be the id that means "none". */
    if (++n->generation == 0)
        n->generation = 1;
    n->next_free = t->first_free;
    t->first_free = n->index;
    t->len--;
    return true;
}

void srv_node_put(struct srv_node_table *t, struct srv_node *n)
{
    int fds[2] = {-1, -1};
    if (!n)
        return;
    pthread_mutex_lock(&t->mu);
    srv_node_drop(t, n, fds);
    pthread_mutex_unlock(&t->mu);
    host_close(fds[0]);
    host_close(fds[1]);
}

void srv_node_release(struct srv_node_table *t, uint64_t id)
{
    int fds[2] = {-1, -1};
    pthread_mutex_lock(&t->mu);
    struct srv_node *n = srv_node_peek(t, id);
    if (n) {
        n->live = false;
        srv_node_drop(t, n, fds);
    }
    pthread_mutex_unlock(&t->mu);
    host_close(fds[0]);
    host_close(fds[1]);
}

int srv_node_take_reader(struct srv_node_table *t, struct srv_node *n, uint64_t *ret_cookie)
{
    pthread_mutex_lock(&t->mu);
    int fd = n->reader_fd;
    n->reader_fd = -1;
    *ret_cookie = n->reader_cookie;
    pthread_mutex_unlock(&t->mu);
    return fd;
}

void srv_node_keep_reader(struct srv_node_table *t, struct srv_node *n, int fd, uint64_t cookie)
{
    int old = -1, evicted = -1;
    pthread_mutex_lock(&t->mu);
    old = n->reader_fd;
    n->reader_fd = fd;
    n->reader_cookie = cookie;
    if (old < 0) {
        uint32_t *place = &t->readers[t->readers_next++ % SRV_NODE_READERS_MAX];
        struct srv_node *victim = *place ? srv_node_at(t, *place - 1) : NULL;
        if (victim && victim != n) {
            evicted = victim->reader_fd;
            victim->reader_fd = -1;
        }
        *place = n->index + 1;
    }
    pthread_mutex_unlock(&t->mu);
    host_close(old);
    host_close(evicted);
}
