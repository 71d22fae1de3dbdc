/* SPDX-License-Identifier: Apache-2.0 */
/* Terminals: the object behind a pty slave or a container's console, and its files. */
#include "sentry/fs/tty.h"

#include <asm/ioctls.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "sentry/core/cred.h"
#include "sentry/fs/devfs.h"
#include "sentry/fs/pty.h"
#include "sentry/kernel/task.h"
#include "sentry/vfs/file.h"

enum {
    TTY_INPUT_SIZE = 8192, /* typed ahead beyond what the discipline holds */
    TTY_CHUNK = 1024,      /* bytes moved at a time, on the fiber's stack */
    TTY_DECISECOND_NS = 100000000,
};

static struct tty *ldisc_tty(struct ldisc *l)
{
    return container_of(l, struct tty, ldisc);
}

/* ---- what the discipline asks for ---- */

static size_t tty_ldisc_room(struct ldisc *l)
{
    struct tty *tty = ldisc_tty(l);

    return tty->line->room(tty);
}

static void tty_ldisc_put(struct ldisc *l, const char *p, size_t size)
{
    struct tty *tty = ldisc_tty(l);

    tty->line->put(tty, p, size);
}

static void tty_ldisc_signal(struct ldisc *l, int signo)
{
    tty_signal_foreground(ldisc_tty(l), signo);
}

static void tty_status(struct tty *tty, uint8_t set, uint8_t clear)
{
    if (tty->line->status)
        tty->line->status(tty, set, clear);
}

static void tty_ldisc_flush_output(struct ldisc *l)
{
    struct tty *tty = ldisc_tty(l);

    tty->line->flush_output(tty);
    tty_status(tty, TIOCPKT_FLUSHWRITE, 0);
}

static void tty_ldisc_input_flushed(struct ldisc *l)
{
    struct tty *tty = ldisc_tty(l);

    tty_status(tty, TIOCPKT_FLUSHREAD, 0);
    if (tty->line->input_room)
        tty->line->input_room(tty);
}

static void tty_ldisc_flow(struct ldisc *l, bool stop)
{
    struct tty *tty = ldisc_tty(l);

    if (stop) {
        tty_status(tty, TIOCPKT_STOP, TIOCPKT_START);
        return;
    }
    tty_status(tty, TIOCPKT_START, TIOCPKT_STOP);
    waitq_wake(&tty->write_wait, EPOLLOUT | EPOLLWRNORM);
    if (tty->line->kick)
        tty->line->kick(tty);
}

static void tty_ldisc_readable(struct ldisc *l)
{
    waitq_wake(&ldisc_tty(l)->read_wait, EPOLLIN | EPOLLRDNORM);
}

static const struct ldisc_ops tty_ldisc_ops = {
    .room = tty_ldisc_room,
    .put = tty_ldisc_put,
    .signal = tty_ldisc_signal,
    .flush_output = tty_ldisc_flush_output,
    .input_flushed = tty_ldisc_input_flushed,
    .flow = tty_ldisc_flow,
    .readable = tty_ldisc_readable,
};

void tty_init(struct tty *tty, const struct tty_line_ops *line)
{
    ref_init(&tty->ref);
    tty->line = line;
    ldisc_init(&tty->ldisc, &tty_ldisc_ops);
    waitq_init(&tty->read_wait);
    waitq_init(&tty->write_wait);
    tty_ring_init(&tty->input, TTY_INPUT_SIZE);
}

struct tty *tty_ref(struct tty *tty)
{
    ref_get(&tty->ref);
    return tty;
}

void tty_unref(struct tty *tty)
{
    if (!tty || !ref_put(&tty->ref))
        return;
    BUG_ON(tty->session);
    tty_ring_clear(&tty->input);
    tty->line->free(tty);
}

/* ---- the line's side ---- */

static void tty_kick(struct tty *tty)
{
    if (tty->line->kick)
        tty->line->kick(tty);
}

/* Lets the discipline take what has arrived. */
static void tty_pump(struct tty *tty)
{
    bool moved = false;

    while (tty_ring_used(&tty->input)) {
        const uint8_t *p;
        size_t size = tty_ring_peek(&tty->input, &p), n = ldisc_receive(&tty->ldisc, p, size);

        if (n == 0)
            break;
        tty_ring_consume(&tty->input, n);
        moved = true;
    }
    if (moved) {
        tty_kick(tty);
        if (tty->line->input_room)
            tty->line->input_room(tty);
    }
}

size_t tty_input(struct tty *tty, const uint8_t *p, size_t size)
{
    size_t n = 0;

    if (!tty_ring_used(&tty->input)) {
        n = ldisc_receive(&tty->ldisc, p, size);
        tty_kick(tty);
    }
    n += tty_ring_put(&tty->input, p + n, size - n);
    return n;
}

size_t tty_input_room(const struct tty *tty)
{
    return tty_ring_room(&tty->input);
}

void tty_output_room(struct tty *tty)
{
    if (tty->ldisc.stopped)
        return;
    ldisc_flush_echo(&tty->ldisc);
    tty_kick(tty);
    waitq_wake(&tty->write_wait, EPOLLOUT | EPOLLWRNORM);
}

void tty_set_winsize(struct tty *tty, const struct winsize *ws)
{
    if (memcmp(ws, &tty->winsize, sizeof(*ws)) == 0)
        return;
    tty->winsize = *ws;
    if (tty->line->winsize_changed)
        tty->line->winsize_changed(tty);
    tty_signal_foreground(tty, SIGWINCH);
}

void tty_hangup(struct tty *tty)
{
    struct session *s = tty->session;
    siginfo_t info;

    tty_ref(tty);
    tty->hangups++;
    tty->open_files = 0;
    if (s) {
        /* The foreground group hears of it when the leader goes. */
        pgrp_unref(s->tty_old_pgrp);
        s->tty_old_pgrp = tty->pgrp ? pgrp_ref(tty->pgrp) : NULL;
        session_ref(s);
        tty_drop_session(tty);
        if (s->leader) {
            siginfo_kernel(&info, SIGHUP, SI_KERNEL);
            signal_send_group(s->leader, &info);
            siginfo_kernel(&info, SIGCONT, SI_KERNEL);
            signal_send_group(s->leader, &info);
        }
        session_unref(s);
    }
    ldisc_flush_pending_echo(&tty->ldisc);
    tty_ring_clear(&tty->input);
    ldisc_flush_input(&tty->ldisc);
    ldisc_default_termios(&tty->ldisc.t);
    ldisc_start(&tty->ldisc, true);
    waitq_wake_all(&tty->read_wait);
    waitq_wake_all(&tty->write_wait);
    tty_unref(tty);
}

/* ---- files of the terminal side ---- */

static struct tty_file *tty_file_of(const struct file *f)
{
    return f->priv;
}

static bool tty_file_dead(const struct file *f)
{
    const struct tty_file *tf = f->priv;

    return tf->hangups != tf->tty->hangups;
}

/* Timing rules of a read in raw mode. */
struct tty_timing {
    size_t minimum;       /* bytes after which the read may end */
    uint64_t interbyte_ns; /* restarted after each byte; 0 none */
    uint64_t deadline_ns; /* 0: do not wait at all */
};

static struct tty_timing tty_timing(const struct tty *tty)
{
    const struct ktermios *t = &tty->ldisc.t;
    struct tty_timing timing = {.minimum = 1, .deadline_ns = WAIT_FOREVER};
    uint64_t time_ns = (uint64_t)t->c_cc[VTIME] * TTY_DECISECOND_NS;

    if (t->c_lflag & ICANON)
        return timing;
    if (t->c_cc[VMIN] > 0) {
        timing.minimum = t->c_cc[VMIN];
        timing.interbyte_ns = time_ns;
    } else {
        timing.deadline_ns = time_ns ? host_monotonic_ns() + time_ns : 0;
    }
    return timing;
}

/* Waits for input. Return: 1 there is some, 0 the read ends with what it has, −errno. */
static int tty_read_wait(struct file *f, struct ctx *ctx, const struct tty_timing *timing)
{
    struct tty *tty = tty_file_of(f)->tty;
    int r;

    if (ldisc_input_available(&tty->ldisc, false))
        return 1;
    if (tty_file_dead(f))
        return 0;
    if (tty->line_gone)
        return -EIO;
    if (timing->deadline_ns == 0)
        return 0;
    if (f->flags & O_NONBLOCK)
        return -EAGAIN;
    if (!ctx)
        return -EAGAIN;
    r = WAIT_EVENT_UNTIL(ctx, &tty->read_wait,
                         ldisc_input_available(&tty->ldisc, false) || tty_file_dead(f) || tty->line_gone,
                         timing->deadline_ns);
    if (r == -ETIMEDOUT)
        return 0;
    return r ? r : tty_read_wait(f, ctx, timing);
}

/* Moves what is there into u. Return: bytes; ret_done tells that the read is complete. */
static ssize_t tty_read_some(struct tty *tty, struct uio *u, bool *ret_done)
{
    uint8_t chunk[TTY_CHUNK];
    ssize_t total = 0;

    *ret_done = false;
    while (u->left > 0 && !*ret_done) {
        size_t n = ldisc_read(&tty->ldisc, chunk, MIN(u->left, (uint64_t)sizeof(chunk)), ret_done);
        ssize_t moved;

        if (n == 0)
            break;
        moved = uio_put(u, chunk, n);
        if (moved < 0)
            return total ? total : moved;
        total += moved;
    }
    if (total && ldisc_canonical(&tty->ldisc))
        *ret_done = true;
    tty_pump(tty);
    return total;
}

static ssize_t tty_read(struct file *f, struct uio *u, int64_t *pos)
{
    struct tty *tty = tty_file_of(f)->tty;
    struct tty_timing timing;
    ssize_t total = 0, n;
    bool done = false;
    int r;

    if (tty_file_dead(f))
        return 0;
    r = tty_check_change(ctx_task_or_null(u->ctx), tty, SIGTTIN);
    if (r)
        return r;
    timing = tty_timing(tty);
    while (u->left > 0 && !done) {
        r = tty_read_wait(f, u->ctx, &timing);
        if (r <= 0)
            return total ? total : r;
        n = tty_read_some(tty, u, &done);
        if (n < 0)
            return total ? total : n;
        total += n;
        if ((size_t)total >= timing.minimum)
            break;
        if (timing.interbyte_ns)
            timing.deadline_ns = host_monotonic_ns() + timing.interbyte_ns;
    }
    return total;
}

static bool tty_writable(struct tty *tty)
{
    return !tty->ldisc.stopped && tty->line->room(tty) > 0;
}

/* Writes all of u chunk by chunk. Return: bytes, or −errno when there are none. */
static ssize_t tty_write_all(struct file *f, struct uio *u)
{
    struct tty *tty = tty_file_of(f)->tty;
    uint8_t chunk[TTY_CHUNK];
    ssize_t total = 0;

    while (u->left > 0) {
        ssize_t got;
        size_t n;
        int r;

        if (tty_file_dead(f) || tty->line_gone)
            return total ? total : -EIO;
        got = uio_get(u, chunk, MIN(u->left, (uint64_t)sizeof(chunk)));
        if (got <= 0)
            return total ? total : got;
        n = ldisc_write(&tty->ldisc, chunk, (size_t)got);
        tty_kick(tty);
        uio_revert(u, (uint64_t)got - n);
        total += (ssize_t)n;
        if (n == (size_t)got)
            continue;
        if ((f->flags & O_NONBLOCK) || !u->ctx)
            return total ? total : -EAGAIN;
        /* A last byte that needs two columns of room may not fit although there is some. */
        if (tty_writable(tty) && n == 0)
            r = waitq_wait(u->ctx, &tty->write_wait, CTX_WAIT_INTERRUPTIBLE, WAIT_FOREVER);
        else
            r = WAIT_EVENT(u->ctx, &tty->write_wait,
                           tty_writable(tty) || tty_file_dead(f) || tty->line_gone);
        if (r)
            return total ? total : r;
    }
    return total;
}

static ssize_t tty_write(struct file *f, struct uio *u, int64_t *pos)
{
    struct tty *tty = tty_file_of(f)->tty;
    ssize_t n;
    int r;

    if (tty_file_dead(f))
        return -EIO;
    if (tty->ldisc.t.c_lflag & TOSTOP) {
        r = tty_check_change(ctx_task_or_null(u->ctx), tty, SIGTTOU);
        if (r)
            return r;
    }
    if (tty->writing) {
        if ((f->flags & O_NONBLOCK) || !u->ctx)
            return -EAGAIN;
        r = WAIT_EVENT(u->ctx, &tty->write_wait, !tty->writing);
        if (r)
            return r;
    }
    tty->writing = true;
    n = tty_write_all(f, u);
    tty->writing = false;
    waitq_wake(&tty->write_wait, EPOLLOUT | EPOLLWRNORM);
    return n;
}

static uint32_t tty_poll(struct file *f, struct poll_table *pt)
{
    struct tty *tty = tty_file_of(f)->tty;
    uint32_t events = 0;

    if (tty_file_dead(f))
        return EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP | EPOLLRDNORM | EPOLLWRNORM;
    poll_wait(pt, &tty->read_wait);
    poll_wait(pt, &tty->write_wait);
    if (ldisc_input_available(&tty->ldisc, true))
        events |= EPOLLIN | EPOLLRDNORM;
    if (tty->line_gone)
        events |= EPOLLHUP;
    if (!tty->writing && tty_writable(tty))
        events |= EPOLLOUT | EPOLLWRNORM;
    return events;
}

static int64_t tty_file_ioctl(struct ctx *ctx, struct file *f, uint32_t cmd, uint64_t arg)
{
    if (tty_file_dead(f))
        return cmd == TIOCSPGRP ? -ENOTTY : -EIO;
    return tty_ioctl(ctx, f, cmd, arg);
}

static void tty_release(struct file *f)
{
    struct tty_file *tf = f->priv;
    struct tty *tty = tf->tty;

    if (tf->hangups == tty->hangups && --tty->open_files == 0) {
        tty->exclusive = false;
        if (tty->line->last_close)
            tty->line->last_close(tty);
    }
    mem_free(tf);
    tty_unref(tty);
}

static const struct file_ops tty_file_ops = {
    .signals_io = true,
    .read = tty_read,
    .write = tty_write,
    .poll = tty_poll,
    .ioctl = tty_file_ioctl,
    .release = tty_release,
};

struct tty *tty_of_file(const struct file *f)
{
    if (f->ops == &tty_file_ops || pty_is_master(f))
        return tty_file_of(f)->tty;
    return NULL;
}

int tty_open(struct ctx *ctx, struct tty *tty, struct file *file)
{
    struct task *t = ctx_task_or_null(ctx);
    struct tgroup *g = t ? t->group : NULL;
    struct tty_file *tf;

    if (tty->line_gone)
        return -EIO;
    if (tty->exclusive && !cred_has_cap(ctx->cred, CAP_SYS_ADMIN))
        return -EBUSY;
    tf = NEW(struct tty_file);
    if (!tf)
        return -ENOMEM;
    tf->tty = tty_ref(tty);
    tf->hangups = tty->hangups;
    file->priv = tf;
    file->ops = &tty_file_ops;
    file->no_seek = true;
    tty->open_files++;
    if (tty->line->opened)
        tty->line->opened(tty);
    if (g && !(file->flags & O_NOCTTY) && file_readable(file) && g->pgrp &&
        g->pgrp->session->leader == g && !g->pgrp->session->tty && !tty->session)
        tty_make_controlling(tty, g);
    return 0;
}

int tty_current_open(struct ctx *ctx, struct inode *inode, struct file *file)
{
    struct task *t = ctx_task_or_null(ctx);
    struct tty *tty = t ? tty_current(t) : NULL;

    if (!tty)
        return -ENXIO;
    return tty_open(ctx, tty, file);
}

/* /dev/console without a console, and slaves that no devpts of ours made. */
static int tty_absent_open(struct ctx *ctx, struct inode *inode, struct file *file)
{
    return -ENXIO;
}

void tty_register(void)
{
    chrdev_register(DEV_TTYAUX_MAJOR, DEV_TTY, 1, "/dev/tty", tty_current_open);
    chrdev_register(DEV_TTYAUX_MAJOR, DEV_CONSOLE, 1, "/dev/console", tty_absent_open);
}
