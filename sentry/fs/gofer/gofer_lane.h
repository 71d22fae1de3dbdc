/* SPDX-License-Identifier: Apache-2.0 */
/* Changes that nobody waits for: they go to the gofer by the lane, which it works off in order.
 *
 * While anything is under way on the lane, everything else goes by it as well, so that whoever asks the gofer sees
 * what was done before. A change that fails late is told to its owner; there is a bound on how many are under way. All
 * functions run on the kernel thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gofer/proto/wire.h"
#include "platform/base/compiler.h"
#include "platform/base/list.h"
#include "sentry/fs/gofer/gofer_client.h"
#include "sentry/fs/gofer/gofer_watch.h"

struct gofer_slot;

/* One change. Made by gofer_lane_new, consumed by gofer_lane_post. */
struct gofer_late {
    struct list link;
    uint32_t seq;      /* its number among all that went by the lane */
    bool answered;     /* a success is answered too */
    enum wire_op op;
    void *owner;       /* whom gofer_lane_purge names */
    /* The change has failed, or (answered) was made: error and the reply's payload, which the gofer may have got wrong.
     * Not on a fiber; l is freed after. Return: false when the payload breaks the protocol. */
    bool (*ended)(struct gofer_late *l, int error, const void *payload, size_t size);
    uint64_t ino;      /* whatever ended needs */
    uint32_t dev;
    struct gofer_expect expects[2];
    unsigned expects_len;
    char name[WIRE_NAME_MAX + 1];
    uint32_t size, capacity; /* bytes of message */
    unsigned char message[]; /* struct wire_request and the payload */
};

/* A change whose payload has up to payload_max bytes: fixed, then name (may be NULL). Return: NULL without memory. */
struct gofer_late *gofer_lane_new(enum wire_op op, const void *fixed, size_t fixed_size, const char *name,
                                  size_t payload_max);
/* Adds to the payload, within payload_max. */
void gofer_lane_put(struct gofer_late *l, const void *p, size_t size);
/* Waits until size bytes may be posted. May park. Return: 0; −EOPNOTSUPP when there is no lane; −EIO. */
MUST_CHECK int gofer_lane_room(struct gofer_client *c, size_t size);
/* The change is sent, soon, and before whatever is asked of the gofer from now on. Does not park. On a dead
 * client it ends with −EIO. */
void gofer_lane_post(struct gofer_client *c, OWNS struct gofer_late *l);
/* Return: whether changes are under way, as far as is known. */
bool gofer_lane_busy(const struct gofer_client *c);
/* Waits until all that was posted is done. May park. Return: 0 or −EIO. */
MUST_CHECK int gofer_lane_settle(struct gofer_client *c);
/* The same for all clients but c (NULL: for all); a dead one counts as done. May park. */
void gofer_lane_settle_others(const struct gofer_client *c);
/* What is under way no longer has that owner: ended is not called. */
void gofer_lane_purge(struct gofer_client *c, const void *owner);

/* ---- for gofer_client.c ---- */

/* The sentry's end, once the gofer has given it. */
void gofer_lane_open(struct gofer_client *c, OWNS int sock);
/* Before a request is built: what was posted is sent. May park. */
void gofer_lane_make_way(struct gofer_client *c);
/* Return: whether requests go by the lane now. What was posted is sent (false: and that is not possible at the
 * moment, without parking). */
bool gofer_lane_in_use(struct gofer_client *c);
bool gofer_lane_clear(struct gofer_client *c);
/* Counts a request that was sent by the lane and is waited for. */
void gofer_lane_counted(struct gofer_client *c);
void gofer_lane_die(struct gofer_client *c);
void gofer_lane_close(struct gofer_client *c);
