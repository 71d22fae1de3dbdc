/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel thread's event loop: host descriptors, deferred work, ready fibers. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"

/* Called on the kernel thread (not on a fiber: it must not park) when a watched descriptor is ready. */
typedef void (*evloop_fn)(void *arg, uint32_t epoll_events);

/* A watch; embed it, zero it, and keep it alive until evloop_unwatch. */
struct evloop_watch {
    evloop_fn fn;
    void *arg;
    int fd;
    bool watched;
};

/* Makes the loop. Once, before everything else in this header. Return: 0 or −errno. */
MUST_CHECK int evloop_init(void);
/* Watches fd (borrowed) for epoll events (EPOLLIN, EPOLLOUT, EPOLLET …). Level-triggered unless
 * EPOLLET is given. Return: 0 or −errno. */
MUST_CHECK int evloop_watch(struct evloop_watch *w, int fd, uint32_t epoll_events, evloop_fn fn, void *arg);
MUST_CHECK int evloop_modify(struct evloop_watch *w, uint32_t epoll_events);
/* Stops watching; safe inside any callback, and on a watch that was never added. */
void evloop_unwatch(struct evloop_watch *w);
/* fn(arg) is called whenever the loop would sleep, and says by true that it had better not yet: the loop then looks at
 * its descriptors without waiting and asks again. At most EVLOOP_IDLE_MAX at once; more are not called, so it may only
 * make things faster. fn NULL takes that of arg back. */
enum { EVLOOP_IDLE_MAX = 16 };
void evloop_idle(bool (*fn)(void *arg), void *arg);
/* Runs until evloop_stop. */
void evloop_run(void);
void evloop_stop(void);

/* Runs fn(arg) on an I/O pool thread while the calling fiber is parked. fn may only make host calls
 * and touch memory that arg owns; no kernel state. Not interruptible: the fiber resumes when fn is done.
 * Return: what fn returned. On the kernel thread's own stack (no fiber) it runs fn inline. */
long hostio_run(long (*fn)(void *arg), void *arg);
