/* SPDX-License-Identifier: Apache-2.0 */
/* Start and lock-down of the gofer process. */
#include "gofer/server/srv_main.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gofer/server/srv_exit.h"
#include "gofer/server/srv_rules.h"
#include "gofer/server/srv_session.h"
#include "platform/base/host.h"
#include "platform/base/log.h"

/* Two, so that a look-up that waits for a disk does not hold up everyone else; each worker beyond
 * the first costs an idle call 0.8 us. */
enum { SRV_MAIN_WORKERS = 2, SRV_MAIN_WORKERS_MAX = 8, SRV_MAIN_STACK = 128 * 1024 };

static struct {
    struct srv_session session;
    pthread_barrier_t started; /* workers have made the calls that only a thread's start needs */
    pthread_barrier_t confined;
    unsigned serving; /* workers that have not seen the end of the session */
} srv_main_state;

static NORETURN void srv_main_fail(int err, const char *what)
{
    log_error("gofer: %s: %s", what, strerror(-err));
    _exit(1);
}

/* Raises the soft limit of descriptors. Return: the limit. */
static uint64_t srv_main_limits(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return 1024;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0 && getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return 1024;
    return limit.rlim_cur;
}

static NORETURN void srv_main_serve(bool lane)
{
    struct srv_session *s = &srv_main_state.session;
    int err = lane ? srv_session_serve_lane(s) : srv_session_serve(s);
    /* Nobody has asked for it: its thread waits for what never comes. */
    host_close(srv_session_take_lane(s));
    if (err < 0)
        log_error("gofer: session dropped: %s", strerror(-err));
    /* The sentry may hang up right after its last request, the one with the container's status: whoever has
     * taken that ends the process. */
    else if (__atomic_sub_fetch(&srv_main_state.serving, 1, __ATOMIC_ACQ_REL))
        syscall(SYS_exit, 0);
    /* Without a sentry there is no container: it ended as one that was killed. */
    srv_exit(SIGKILL);
}

/* arg: not NULL for the one that serves the lane. */
static void *srv_main_worker(void *arg)
{
    pthread_barrier_wait(&srv_main_state.started);
    pthread_barrier_wait(&srv_main_state.confined);
    srv_main_serve(arg != NULL);
}

/* The last of them serves the lane. */
static void srv_main_start_workers(unsigned len, bool lane)
{
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, SRV_MAIN_STACK);
    for (unsigned i = 0; i < len; i++) {
        pthread_t thread;
        void *arg = lane && i == len - 1 ? &srv_main_state : NULL;
        int err = pthread_create(&thread, &attr, srv_main_worker, arg);
        if (err)
            srv_main_fail(-err, "thread");
        pthread_detach(thread);
    }
    pthread_attr_destroy(&attr);
}

NORETURN void srv_main(const struct gofer_server_config *config, int ready_fd)
{
    unsigned workers = config->workers ? config->workers : SRV_MAIN_WORKERS;
    struct errmsg e = {0};
    workers = MIN(workers, (unsigned)SRV_MAIN_WORKERS_MAX);
    umask(0);
    /* One heap for all workers: a second one would ask the host for its CPUs when first needed. */
    mallopt(M_ARENA_MAX, 1);
    srv_exit_prepare();
    int err = srv_session_init(&srv_main_state.session, config, srv_main_limits());
    if (err < 0)
        srv_main_fail(err, "channel");
    err = (int)host_ret(fchdir(config->proc_self_fd));
    if (err < 0)
        srv_main_fail(err, "/proc/self/fd");
    bool lane = srv_main_state.session.lane.sock >= 0;
    unsigned threads = workers + lane;
    pthread_barrier_init(&srv_main_state.started, NULL, threads);
    pthread_barrier_init(&srv_main_state.confined, NULL, threads);
    srv_main_state.serving = threads;
    srv_main_start_workers(threads - 1, lane);
    pthread_barrier_wait(&srv_main_state.started);
    if (!config->no_filter) {
        err = srv_rules_install(config->sock, srv_main_state.session.lane.sock, config->proc_self_fd, getpid(),
                                config->filter_default, &e);
        if (err < 0) {
            log_error("gofer: %s", e.text);
            _exit(1);
        }
    }
    if (ready_fd >= 0) {
        char zero = 0;
        err = host_write_all(ready_fd, &zero, 1);
        host_close(ready_fd);
        if (err < 0)
            srv_main_fail(err, "ready");
    }
    pthread_barrier_wait(&srv_main_state.confined);
    srv_main_serve(false);
}
