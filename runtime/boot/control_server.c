/* SPDX-License-Identifier: Apache-2.0 */
/* The sentry's end of the control protocol: one connection a command, one request at a time on each. */
#include "runtime/boot/boot_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "platform/base/log.h"
#include "sentry/core/fiber.h"
#include "sentry/fs/gofer/gofer_fs.h"

enum {
    CONTROL_SERVER_MAX = 1024, /* connections */
    CONTROL_SIGNO_MAX = 64,
};

/* One connection. Lives until its socket is closed and neither fiber nor exec'd process needs it. */
struct control_conn {
    struct evloop_watch watch;
    struct boot *boot;
    int sock;     /* −1: closed */
    int exec_status;
    int exec_pid; /* guest pid of the exec'd process; 0: none or ended */
    unsigned refs;
    bool busy; /* a fiber works on a request: nothing is read meanwhile */
    struct control_request request; /* that the fiber works on */
    int fds[CONTROL_FDS_MAX];
    size_t fds_len;
};

static struct {
    struct evloop_watch watch;
    unsigned conns;
} control_server;

static void control_conn_unref(struct control_conn *c)
{
    if (--c->refs)
        return;
    control_server.conns--;
    mem_free(c);
}

static void control_conn_close_fds(struct control_conn *c)
{
    for (size_t i = 0; i < c->fds_len; i++)
        host_close(c->fds[i]);
    c->fds_len = 0;
}

static void control_conn_close(struct control_conn *c)
{
    if (c->sock < 0)
        return;
    evloop_unwatch(&c->watch);
    host_close(c->sock);
    c->sock = -1;
    /* Whoever waited for the process is gone: so is the process. */
    if (c->exec_pid && sentry_container_kill_pid(c->boot->container, c->exec_pid, SIGKILL) < 0)
        log_debug("the exec'd process %d has ended already", c->exec_pid);
    control_conn_unref(c);
}

static void control_conn_send(struct control_conn *c, enum control_kind kind, int result,
                              const void *data, size_t size)
{
    if (c->sock < 0)
        return;
    struct control_reply *reply = NEW(struct control_reply);
    if (!reply) {
        control_conn_close(c);
        return;
    }
    reply->magic = CONTROL_MAGIC;
    reply->kind = kind;
    reply->result = result;
    reply->size = (uint32_t)MIN(size, (size_t)CONTROL_DATA_MAX);
    memcpy(reply->data, data, reply->size);
    ssize_t n = host_send_fds(c->sock, reply, offsetof(struct control_reply, data) + reply->size, NULL, 0);
    mem_free(reply);
    if (n < 0)
        control_conn_close(c);
}

static void control_conn_reply(struct control_conn *c, int result, const struct errmsg *e)
{
    const char *text = e ? e->text : "";
    control_conn_send(c, CONTROL_REPLY, result, text, strlen(text));
}

/* Ends the work of a fiber on this connection. */
static void control_conn_done(struct control_conn *c, int result, const struct errmsg *e)
{
    c->busy = false;
    if (c->sock >= 0 && evloop_modify(&c->watch, EPOLLIN) < 0)
        control_conn_close(c);
    control_conn_reply(c, result, e);
    control_conn_close_fds(c);
    control_conn_unref(c);
}

/* --- start --- */

static void control_on_container_exit(void *arg, int wait_status)
{
    boot_end(arg, wait_status);
}

static void control_start_fiber(void *arg)
{
    struct control_conn *c = arg;
    struct boot *b = c->boot;
    struct errmsg e = {.text = ""};
    int r;
    if (b->state == CONTROL_RUNNING) {
        r = errmsg_set(&e, -EINVAL, "cannot start an already running container");
    } else if (b->state == CONTROL_EXITING || !b->container) {
        r = errmsg_set(&e, -EINVAL, "cannot start a container that has stopped");
    } else {
        b->state = CONTROL_RUNNING;
        r = boot_hooks_start_container(b, &e);
        if (r == 0)
            r = sentry_container_start(b->container, &e, control_on_container_exit, b);
        if (r < 0)
            boot_end(b, SIGKILL); /* half started is not a state to stay in */
    }
    control_conn_done(c, r, &e);
}

/* --- exec --- */

static void control_tell_exit(void *arg)
{
    struct control_conn *c = arg;
    /* Whoever waits for the program looks for its files next. */
    if (fiber_current())
        gofer_fs_settle_all();
    control_conn_send(c, CONTROL_EXITED, c->exec_status, "", 0);
    control_conn_unref(c);
}

static void control_on_exec_exit(void *arg, int wait_status)
{
    struct control_conn *c = arg;
    c->exec_pid = 0;
    c->exec_status = wait_status;
    if (fiber_spawn(control_tell_exit, c) < 0)
        control_tell_exit(c);
}

/* Reads the process.json out of the memfd that came along. */
static int control_exec_parse(struct control_conn *c, struct oci_process_doc **ret_doc, struct errmsg *e)
{
    struct stat st;
    if (c->fds_len < 1 || fstat(c->fds[0], &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0 ||
        st.st_size > CONTROL_PROCESS_MAX)
        return errmsg_set(e, -EINVAL, "malformed exec request");
    CLEANUP_FREE char *json = mem_zalloc((size_t)st.st_size + 1);
    if (!json)
        return errmsg_set(e, -ENOMEM, "out of memory");
    if (pread(c->fds[0], json, (size_t)st.st_size, 0) != st.st_size)
        return errmsg_set(e, -EINVAL, "malformed exec request");
    return oci_process_parse(json, (size_t)st.st_size, ret_doc, e);
}

/* Hands the connection's descriptors to the process. Return: 0, −EINVAL. */
static int control_exec_take_fds(struct control_conn *c, struct sentry_process *p, int *preserved)
{
    const int32_t *args = c->request.args;
    int flags = args[0];
    size_t at = 1;
    if (flags & CONTROL_EXEC_TERMINAL) {
        if (at >= c->fds_len || args[1] < 0 || args[1] > UINT16_MAX || args[2] < 0 || args[2] > UINT16_MAX)
            return -EINVAL;
        p->terminal = true;
        p->console = c->fds[at++];
        p->console_rows = (uint16_t)args[1];
        p->console_cols = (uint16_t)args[2];
    } else {
        p->terminal = false;
        for (int i = 0; i < 3; i++) {
            if (!(flags & 1 << i))
                continue;
            if (at >= c->fds_len)
                return -EINVAL;
            p->stdio[i] = c->fds[at++];
        }
    }
    if (args[3] < 0 || (size_t)args[3] != c->fds_len - at)
        return -EINVAL;
    for (int i = 0; i < args[3]; i++)
        preserved[i] = c->fds[at++];
    p->preserve_fds = preserved;
    p->preserve_fds_len = (unsigned)args[3];
    /* From here on they are the process's; the document stays ours. */
    host_close(c->fds[0]);
    c->fds_len = 0;
    return 0;
}

static int control_exec(struct control_conn *c, struct errmsg *e)
{
    struct boot *b = c->boot;
    struct oci_process_doc *doc = NULL;
    struct arena arena = {.blocks = NULL};
    struct sentry_process p;
    int preserved[CONTROL_FDS_MAX];
    if (!b->container || b->state == CONTROL_EXITING)
        return errmsg_set(e, -ESRCH, "cannot exec in a stopped container");
    if (c->exec_pid)
        return errmsg_set(e, -EBUSY, "this connection has a process already");
    int r = control_exec_parse(c, &doc, e);
    if (r < 0)
        return r;
    r = boot_process_make(&arena, &doc->process, b->params.home, &p);
    if (r == 0)
        boot_seccomp_apply(b, &p);
    if (r == 0)
        r = control_exec_take_fds(c, &p, preserved);
    if (r < 0) {
        errmsg_set(e, r, r == -ENOMEM ? "out of memory" : "malformed exec request");
    } else {
        c->refs++; /* for control_on_exec_exit */
        r = sentry_container_exec(b->container, &p, e, control_on_exec_exit, c);
        if (r < 0)
            control_conn_unref(c);
    }
    arena_free(&arena);
    oci_process_doc_free(doc);
    return r;
}

static void control_exec_fiber(void *arg)
{
    struct control_conn *c = arg;
    struct errmsg e = {.text = ""};
    int r = control_exec(c, &e);
    if (r > 0) {
        c->exec_pid = r;
        if (c->sock < 0 && sentry_container_kill_pid(c->boot->container, r, SIGKILL) < 0)
            log_debug("the exec'd process %d has ended already", r);
    }
    control_conn_done(c, r, &e);
}

/* --- the rest, at once --- */

/* A created container has no init yet; what would have ended runc's placeholder ends it. */
static int control_kill_created(struct boot *b, int signo)
{
    switch (signo) {
    case SIGKILL:
    case SIGTERM:
    case SIGINT:
    case SIGQUIT:
    case SIGHUP:
        boot_end(b, signo);
        return 0;
    default:
        return 0;
    }
}

static int control_kill(struct boot *b, int signo, bool all, struct errmsg *e)
{
    if (signo < 0 || signo > CONTROL_SIGNO_MAX)
        return errmsg_set(e, -EINVAL, "invalid argument");
    if (b->state == CONTROL_EXITING || !b->container)
        return errmsg_set(e, -ESRCH, "no such process");
    if (b->state == CONTROL_CREATED)
        return control_kill_created(b, signo);
    int r = sentry_container_kill(b->container, signo, all);
    if (r == -ESRCH)
        return errmsg_set(e, r, "no such process");
    return r < 0 ? errmsg_set(e, r, "invalid argument") : 0;
}

static void control_list_pids(struct control_conn *c, int offset)
{
    struct boot *b = c->boot;
    unsigned total = b->container ? sentry_container_pids(b->container, NULL, 0) : 0;
    if (offset < 0 || (unsigned)offset >= total) {
        control_conn_send(c, CONTROL_REPLY, (int)total, "", 0);
        return;
    }
    CLEANUP_FREE int *pids = NEW_ARRAY(int, total);
    if (!pids) {
        control_conn_reply(c, -ENOMEM, NULL);
        return;
    }
    total = MIN(total, sentry_container_pids(b->container, pids, total));
    size_t len = (unsigned)offset < total ? MIN(total - (unsigned)offset, (unsigned)CONTROL_PS_MAX) : 0;
    control_conn_send(c, CONTROL_REPLY, (int)total, pids + offset, len * sizeof(*pids));
}

static void control_resize(struct control_conn *c)
{
    const int32_t *args = c->request.args;
    if (!c->boot->container || args[0] < 0 || args[0] > UINT16_MAX || args[1] < 0 || args[1] > UINT16_MAX)
        return;
    if (c->exec_pid)
        sentry_container_resize_pid(c->boot->container, c->exec_pid, (uint16_t)args[0], (uint16_t)args[1]);
    else
        sentry_container_resize(c->boot->container, (uint16_t)args[0], (uint16_t)args[1]);
}

/* Runs fn on a fiber; the connection is not read meanwhile. */
static void control_conn_spawn(struct control_conn *c, void (*fn)(void *arg))
{
    c->refs++;
    c->busy = true;
    int r = evloop_modify(&c->watch, 0);
    if (r == 0)
        r = fiber_spawn(fn, c);
    if (r < 0)
        control_conn_done(c, r, NULL);
}

static void control_conn_handle(struct control_conn *c)
{
    struct boot *b = c->boot;
    struct errmsg e = {.text = ""};
    const int32_t *args = c->request.args;
    int r = 0;
    switch (c->request.op) {
    case CONTROL_START:
        control_conn_spawn(c, control_start_fiber);
        return;
    case CONTROL_EXEC:
        control_conn_spawn(c, control_exec_fiber);
        return;
    case CONTROL_KILL:
        r = control_kill(b, args[0], args[1] != 0, &e);
        break;
    case CONTROL_STATE:
        r = (int)b->state;
        break;
    case CONTROL_PS:
        control_list_pids(c, args[0]);
        return;
    case CONTROL_SIGNAL:
        if (!c->exec_pid || args[0] < 0 || args[0] > CONTROL_SIGNO_MAX)
            r = errmsg_set(&e, -ESRCH, "no such process");
        else
            r = sentry_container_kill_pid(b->container, c->exec_pid, args[0]);
        break;
    case CONTROL_RESIZE:
        control_resize(c);
        break;
    default:
        control_conn_close(c);
        return;
    }
    control_conn_reply(c, r, &e);
}

static void control_conn_on_ready(void *arg, uint32_t epoll_events)
{
    struct control_conn *c = arg;
    if (c->busy) {
        control_conn_close(c); /* nothing but a hang-up is reported now */
        return;
    }
    c->refs++;
    c->fds_len = CONTROL_FDS_MAX;
    ssize_t n = host_recv_fds(c->sock, &c->request, sizeof(c->request), c->fds, &c->fds_len, MSG_DONTWAIT);
    if (n <= 0)
        c->fds_len = 0;
    if (n == -EAGAIN) {
        control_conn_unref(c);
        return;
    }
    if (n != sizeof(c->request) || c->request.magic != CONTROL_MAGIC)
        control_conn_close(c);
    else
        control_conn_handle(c);
    if (!c->busy)
        control_conn_close_fds(c);
    control_conn_unref(c);
}

static void control_server_on_ready(void *arg, uint32_t epoll_events)
{
    int sock = accept4(BOOT_FD_CONTROL, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (sock < 0)
        return;
    struct control_conn *c = control_server.conns < CONTROL_SERVER_MAX ? NEW(struct control_conn) : NULL;
    if (!c) {
        host_close(sock);
        return;
    }
    c->boot = arg;
    c->sock = sock;
    c->refs = 1;
    control_server.conns++;
    if (evloop_watch(&c->watch, sock, EPOLLIN, control_conn_on_ready, c) < 0)
        control_conn_close(c);
}

int control_server_start(struct boot *b)
{
    return evloop_watch(&control_server.watch, BOOT_FD_CONTROL, EPOLLIN, control_server_on_ready, b);
}
