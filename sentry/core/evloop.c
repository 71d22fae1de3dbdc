/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel thread's event loop: one epoll instance, one timer descriptor, and the ready fibers. */
#include "sentry/core/evloop.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "platform/base/host.h"
#include "sentry/core/fiber.h"
#include "sentry/core/hostio_priv.h"
#include "sentry/core/ktimer.h"

enum { BATCH = 64, IDLE_ROUNDS = 8 };

static int epoll_fd = -1, timer_fd = -1;
static struct evloop_watch timer_watch;
static uint64_t armed_ns = UINT64_MAX; /* what the timer descriptor is set to */
static bool stopping;
/* The batch being handled: evloop_unwatch erases its watch from what is still to come. */
static struct epoll_event batch[BATCH];
static int batch_next, batch_len;

static void timer_fired(void *arg, uint32_t epoll_events)
{
    armed_ns = UINT64_MAX;
    ktimer_run(host_monotonic_ns());
}

int evloop_init(void)
{
    int r;

    BUG_ON(epoll_fd >= 0);
    epoll_fd = (int)host_ret(epoll_create1(EPOLL_CLOEXEC));
    if (epoll_fd < 0)
        return epoll_fd;
    timer_fd = (int)host_ret(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
    if (timer_fd < 0)
        return timer_fd;
    /* Edge-triggered, so that no expiry ever has to be read away. */
    r = evloop_watch(&timer_watch, timer_fd, EPOLLIN | EPOLLET, timer_fired, NULL);
    return r ? r : hostio_init();
}

static int control(int op, struct evloop_watch *w, uint32_t epoll_events)
{
    struct epoll_event event = {.events = epoll_events, .data.ptr = w};

    return (int)host_ret(epoll_ctl(epoll_fd, op, w->fd, &event));
}

int evloop_watch(struct evloop_watch *w, int fd, uint32_t epoll_events, evloop_fn fn, void *arg)
{
    int r;

    BUG_ON(w->watched);
    w->fd = fd;
    w->fn = fn;
    w->arg = arg;
    r = control(EPOLL_CTL_ADD, w, epoll_events);
    if (!r)
        w->watched = true;
    return r;
}

int evloop_modify(struct evloop_watch *w, uint32_t epoll_events)
{
    return w->watched ? control(EPOLL_CTL_MOD, w, epoll_events) : -ENOENT;
}

void evloop_unwatch(struct evloop_watch *w)
{
    if (!w->watched)
        return;
    w->watched = false;
    /* Fails only when the owner closed the descriptor first, which took it off the list as well. */
    (void)control(EPOLL_CTL_DEL, w, 0);
    for (int i = batch_next; i < batch_len; i++) {
        if (batch[i].data.ptr == w)
            batch[i].data.ptr = NULL;
    }
}

/* Sets the timer descriptor when the earliest deadline came nearer. One that moved away is left: the early
 * expiry finds nothing due and sets the right time, which is cheaper than a call for each timer that
 * is cancelled in time. */
static void arm_timer(void)
{
    uint64_t next = ktimer_next();
    struct itimerspec spec = {0};

    if (next >= armed_ns)
        return;
    /* All zero would disarm. */
    spec.it_value.tv_sec = (time_t)(next / 1000000000U);
    spec.it_value.tv_nsec = next ? (long)(next % 1000000000U) : 1;
    if (!timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &spec, NULL))
        armed_ns = next;
}

static struct {
    bool (*fn)(void *arg);
    void *arg;
} idlers[EVLOOP_IDLE_MAX];

void evloop_idle(bool (*fn)(void *arg), void *arg)
{
    for (int i = 0; i < EVLOOP_IDLE_MAX; i++) {
        if (idlers[i].fn && idlers[i].arg == arg)
            idlers[i].fn = NULL;
    }
    for (int i = 0; fn && i < EVLOOP_IDLE_MAX; i++) {
        if (!idlers[i].fn) {
            idlers[i].fn = fn;
            idlers[i].arg = arg;
            return;
        }
    }
}

/* Return: whether somebody has done something, or wants the loop to stay awake. */
static bool ask_idlers(void)
{
    bool awake = false;

    for (int i = 0; i < EVLOOP_IDLE_MAX; i++) {
        if (idlers[i].fn)
            awake |= idlers[i].fn(idlers[i].arg);
    }
    return awake;
}

static void run_once(void)
{
    bool awake;
    int n, rounds = 0;

    /* What the idlers bring is worked off at once, some times in a row before the descriptors have their turn. */
    do {
        fiber_run_ready();
        if (stopping)
            return;
        awake = ask_idlers();
    } while (fiber_any_ready() && rounds++ < IDLE_ROUNDS);
    arm_timer();
    n = epoll_wait(epoll_fd, batch, BATCH, awake || fiber_any_ready() ? 0 : -1);
    BUG_ON(n < 0 && errno != EINTR);
    batch_len = n;
    for (int i = 0; i < n; i++) {
        struct evloop_watch *w = batch[i].data.ptr;

        batch_next = i + 1;
        if (w)
            w->fn(w->arg, batch[i].events);
    }
    batch_len = batch_next = 0;
}

void evloop_run(void)
{
    stopping = false;
    while (!stopping)
        run_once();
}

void evloop_stop(void)
{
    stopping = true;
}
