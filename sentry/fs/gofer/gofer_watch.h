/* SPDX-License-Identifier: Apache-2.0 */
/* Coherence with others who change a shared tree: the host's notifications, read before cached
 * names and attributes are trusted.
 *
 * The host queues an event before the call that caused it returns. So whoever was told of a change,
 * by whatever means, finds the event in the queue, and one read of the queue makes the whole cache
 * true. What this cannot see: times that change through somebody else's writable mapping, and a
 * link count that changes by a link in another directory. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"
#include "platform/base/list.h"

struct gofer_client;
struct gofer_inode;
struct gofer_watch;

/* Starts reading fd, an inotify descriptor (consumed; the client's second and later ones are
 * closed). Return: 0 or −errno. */
MUST_CHECK int gofer_watch_open(struct gofer_client *c, OWNS int fd);
void gofer_watch_free(struct gofer_watch *w); /* NULL is fine */

/* The directory gi is watched from now on under this number (0: it is not). */
void gofer_watch_set(struct gofer_inode *gi, uint32_t wd);
/* Forgets what is cached of a directory. */
void gofer_watch_distrust(struct gofer_inode *gi);
/* The inode goes. */
void gofer_watch_drop(struct gofer_inode *gi);

/* Takes in what has happened. now: also what happened within the last microsecond. w may be NULL.
 * Does not park. */
void gofer_watch_drain(struct gofer_watch *w, bool now);
/* Return: count of other people's changes; a reply is current when it did not move during the
 * request. */
uint64_t gofer_watch_events(const struct gofer_watch *w);

/* An event that a change of our own is about to cause. */
struct gofer_expect {
    struct list link;
    uint32_t wd, mask;
    bool keep; /* more than one of them */
    const char *name;
};

/* Expects one IN_CREATE, IN_DELETE, IN_MOVED_FROM or IN_MOVED_TO of name in dir. */
void gofer_watch_expect(struct gofer_expect *e, struct gofer_inode *dir, const char *name,
                        uint32_t mask);
/* The change is made, or has failed. */
void gofer_watch_done(struct gofer_expect *e, unsigned len);
