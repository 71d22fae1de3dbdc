/* SPDX-License-Identifier: Apache-2.0 */
/* The I/O pool: host calls that may sleep run on its threads while the calling fiber is parked. */
#include "sentry/core/hostio_priv.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "platform/base/host.h"
#include "platform/base/list.h"
#include "sentry/core/evloop.h"
#include "sentry/core/fiber.h"
#include "sentry/core/limits.h"

enum { POOL_STACK = 128 * 1024, IDLE_SECONDS = 5 };

/* One request; on the parked fiber's stack. */
struct job {
    struct list link;
    struct job *done_next;
    struct fiber *fiber;
    long (*fn)(void *arg);
    void *arg;
    long result;
    bool done;
};

/* This lock and what it covers are all that the pool shares with the kernel thread, besides done_jobs. */
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work;
static struct list jobs = LIST_INIT(jobs); /* (mu) */
static unsigned jobs_len, threads, idle_threads; /* (mu) */

static _Atomic(struct job *) done_jobs; /* finished, newest first */
static int done_fd = -1;
static struct evloop_watch done_watch;

static void report(struct job *job)
{
    static const uint64_t one = 1;
    struct job *head = atomic_load_explicit(&done_jobs, memory_order_relaxed);

    do {
        job->done_next = head;
    } while (!atomic_compare_exchange_weak_explicit(&done_jobs, &head, job, memory_order_release,
                                                    memory_order_relaxed));
    /* From here on the job may be gone. Only the first of a batch has to ring. */
    if (!head)
        BUG_ON(write(done_fd, &one, sizeof(one)) != sizeof(one));
}

static void *pool_thread(void *arg)
{
    struct timespec until;
    struct job *job;

    pthread_mutex_lock(&mu);
    for (;;) {
        job = list_first_or_null(&jobs, struct job, link);
        if (job) {
            list_del(&job->link);
            jobs_len--;
            pthread_mutex_unlock(&mu);
            job->result = job->fn(job->arg);
            report(job);
            pthread_mutex_lock(&mu);
            continue;
        }
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += IDLE_SECONDS;
        idle_threads++;
        if (pthread_cond_timedwait(&work, &mu, &until) == ETIMEDOUT && list_empty(&jobs)) {
            idle_threads--;
            threads--;
            pthread_mutex_unlock(&mu);
            return NULL;
        }
        idle_threads--;
    }
}

/* Return: whether a thread was made. */
static bool add_thread(void)
{
    pthread_attr_t attr;
    sigset_t all, old;
    pthread_t id;
    bool ok;

    if (pthread_attr_init(&attr))
        return false;
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, POOL_STACK);
    sigfillset(&all);
    sigdelset(&all, SIGSYS); /* a blocked one could not be reported before it ends the process */
    pthread_sigmask(SIG_BLOCK, &all, &old);
    ok = !pthread_create(&id, &attr, pool_thread, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    return ok;
}

static void jobs_done(void *arg, uint32_t epoll_events)
{
    struct job *job = atomic_exchange_explicit(&done_jobs, NULL, memory_order_acquire), *next;

    for (; job; job = next) {
        next = job->done_next;
        job->done = true;
        fiber_ready(job->fiber);
    }
}

int hostio_init(void)
{
    /* Pool threads share the one heap: a heap of their own would cost memory, and the C library would look up the number of
     * CPUs in /sys, which the sentry can't open. */
    mallopt(M_ARENA_MAX, 1);
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&work, &attr);
    pthread_condattr_destroy(&attr);
    done_fd = (int)host_ret(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (done_fd < 0)
        return done_fd;
    /* Edge-triggered: every ring is an edge, and the counter is never read. */
    return evloop_watch(&done_watch, done_fd, EPOLLIN | EPOLLET, jobs_done, NULL);
}

/* Hands job to the pool. Return: false when there is no thread for it and none can be made. */
static bool submit(struct job *job)
{
    bool grow, ok = true;
    unsigned others;

    pthread_mutex_lock(&mu);
    list_add_tail(&jobs, &job->link);
    grow = ++jobs_len > idle_threads && threads < LIMIT_HOSTIO_THREADS;
    others = threads;
    if (grow)
        threads++;
    else
        pthread_cond_signal(&work);
    pthread_mutex_unlock(&mu);
    if (!grow || add_thread())
        return true;
    pthread_mutex_lock(&mu);
    threads--;
    if (!others) {
        list_del(&job->link);
        jobs_len--;
        ok = false;
    }
    pthread_mutex_unlock(&mu);
    return ok;
}

long hostio_run(long (*fn)(void *arg), void *arg)
{
    struct job job = {.fiber = fiber_current(), .fn = fn, .arg = arg};

    list_init(&job.link);
    /* With no pool at all, being slow beats failing. */
    if (!job.fiber || !submit(&job))
        return fn(arg);
    while (!job.done)
        fiber_park();
    return job.result;
}
