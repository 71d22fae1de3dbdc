/* SPDX-License-Identifier: Apache-2.0 */
/* Pseudo-terminal pairs. Source: pty(7), ioctl_tty(2). */
#include "sentry/fs/pty.h"

#include <asm/ioctls.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>

#include "platform/base/alloc.h"
#include "sentry/fs/devfs.h"
#include "sentry/fs/devpts.h"
#include "sentry/fs/tty.h"
#include "sentry/kernel/task.h"
#include "sentry/vfs/file.h"

enum {
    PTY_OUTPUT_SIZE = 16384, /* bytes a slave can write ahead of the master's reader */
    PTY_CHUNK = 1024,
};

struct pty {
    struct tty tty;              /* the slave */
    struct tty_ring output;      /* (k) slave to master */
    struct waitq read_wait, write_wait; /* (k) of the master's readers and writers */
    bool locked;                 /* (k) the slave can't be opened yet */
    bool slave_closed;           /* (k) it was open, and no file is any more */
    bool packet;                 /* (k) TIOCPKT */
    bool writing;                /* (k) one master writer at a time */
    uint8_t status;              /* (k) TIOCPKT_* bits not yet read */
    struct superblock *devpts;   /* (i) referenced */
    void (*gone)(struct superblock *devpts, struct tty *tty);
};

static struct pty *to_pty(struct tty *tty)
{
    return container_of(tty, struct pty, tty);
}

static struct pty *master_pty(const struct file *f)
{
    return to_pty(((struct tty_file *)f->priv)->tty);
}

/* ---- the line below the slave ---- */

static size_t pty_room(struct tty *tty)
{
    return tty_ring_room(&to_pty(tty)->output);
}

static void pty_put(struct tty *tty, const char *p, size_t size)
{
    struct pty *pty = to_pty(tty);

    /* Output is lost only when the sentry has no memory for the queue. */
    (void)!tty_ring_put(&pty->output, p, size);
}

static void pty_kick(struct tty *tty)
{
    struct pty *pty = to_pty(tty);

    if (tty_ring_used(&pty->output))
        waitq_wake(&pty->read_wait, EPOLLIN | EPOLLRDNORM);
}

static void pty_flush_output(struct tty *tty)
{
    tty_ring_clear(&to_pty(tty)->output);
}

static void pty_input_room(struct tty *tty)
{
    waitq_wake(&to_pty(tty)->write_wait, EPOLLOUT | EPOLLWRNORM);
}

static void pty_status(struct tty *tty, uint8_t set, uint8_t clear)
{
    struct pty *pty = to_pty(tty);

    if (!pty->packet)
        return;
    pty->status = (uint8_t)((pty->status & ~clear) | set);
    if (pty->status)
        waitq_wake(&pty->read_wait, EPOLLIN | EPOLLRDNORM | EPOLLPRI);
}

static void pty_slave_opened(struct tty *tty)
{
    to_pty(tty)->slave_closed = false;
}

static void pty_slave_last_close(struct tty *tty)
{
    struct pty *pty = to_pty(tty);

    if (tty->open_files)
        return;
    pty->slave_closed = true;
    waitq_wake_all(&pty->read_wait);
    waitq_wake_all(&pty->write_wait);
}

static void pty_free(struct tty *tty)
{
    struct pty *pty = to_pty(tty);

    tty_ring_clear(&pty->output);
    superblock_unref(pty->devpts);
    mem_free(pty);
}

static const struct tty_line_ops pty_line_ops = {
    .room = pty_room,
    .put = pty_put,
    .kick = pty_kick,
    .flush_output = pty_flush_output,
    .input_room = pty_input_room,
    .status = pty_status,
    .opened = pty_slave_opened,
    .last_close = pty_slave_last_close,
    .free = pty_free,
};

int pty_open_slave(struct ctx *ctx, struct tty *tty, struct file *file)
{
    if (tty->line == &pty_line_ops && to_pty(tty)->locked)
        return -EIO;
    return tty_open(ctx, tty, file);
}

/* ---- the master's files ---- */

static bool master_readable(const struct pty *pty)
{
    return tty_ring_used(&pty->output) || (pty->packet && pty->status);
}

/* In packet mode each read starts with a byte that says what follows. Return: 1 go on with data, 0 the status was all,
 * −EFAULT. */
static int master_read_packet(struct pty *pty, struct uio *u, ssize_t *inout_total)
{
    char head = (char)pty->status;
    ssize_t n = uio_put(u, &head, 1);

    if (n < 0)
        return (int)n;
    *inout_total += n;
    if (pty->status) {
        pty->status = 0;
        return 0;
    }
    return 1;
}

static ssize_t master_read(struct file *f, struct uio *u, int64_t *pos)
{
    struct pty *pty = master_pty(f);
    ssize_t total = 0, n;
    bool had_no_room;
    int r;

    if (u->left == 0)
        return 0;
    while (!master_readable(pty)) {
        if (pty->slave_closed)
            return -EIO;
        if ((f->flags & O_NONBLOCK) || !u->ctx)
            return -EAGAIN;
        r = WAIT_EVENT(u->ctx, &pty->read_wait, master_readable(pty) || pty->slave_closed);
        if (r)
            return r;
    }
    if (pty->packet) {
        r = master_read_packet(pty, u, &total);
        if (r <= 0)
            return r ? r : total;
    }
    had_no_room = tty_ring_room(&pty->output) < PTY_OUTPUT_SIZE / 2;
    while (u->left > 0 && tty_ring_used(&pty->output)) {
        const uint8_t *p;
        size_t size = tty_ring_peek(&pty->output, &p);

        n = uio_put(u, p, MIN((uint64_t)size, u->left));
        if (n <= 0)
            return total ? total : n;
        tty_ring_consume(&pty->output, (size_t)n);
        total += n;
    }
    /* Writers are woken when it is worth a switch, or when nothing is left to read. */
    if (had_no_room || pty->tty.ldisc.echo_head != pty->tty.ldisc.echo_tail ||
        waitq_active(&pty->tty.write_wait))
        tty_output_room(&pty->tty);
    return total;
}

static ssize_t master_write_all(struct file *f, struct pty *pty, struct uio *u)
{
    uint8_t chunk[PTY_CHUNK];
    ssize_t total = 0;

    while (u->left > 0) {
        ssize_t got;
        size_t n;
        int r;

        if (pty->tty.open_files == 0)
            return total ? total : -EIO;
        got = uio_get(u, chunk, MIN(u->left, (uint64_t)sizeof(chunk)));
        if (got <= 0)
            return total ? total : got;
        n = tty_input(&pty->tty, chunk, (size_t)got);
        uio_revert(u, (uint64_t)got - n);
        total += (ssize_t)n;
        if (n == (size_t)got)
            continue;
        if ((f->flags & O_NONBLOCK) || !u->ctx)
            return total ? total : -EAGAIN;
        r = WAIT_EVENT(u->ctx, &pty->write_wait,
                       tty_input_room(&pty->tty) || pty->tty.open_files == 0);
        if (r)
            return total ? total : r;
    }
    return total;
}

static ssize_t master_write(struct file *f, struct uio *u, int64_t *pos)
{
    struct pty *pty = master_pty(f);
    ssize_t n;
    int r;

    if (pty->tty.open_files == 0)
        return -EIO;
    if (pty->writing) {
        if ((f->flags & O_NONBLOCK) || !u->ctx)
            return -EAGAIN;
        r = WAIT_EVENT(u->ctx, &pty->write_wait, !pty->writing);
        if (r)
            return r;
    }
    pty->writing = true;
    n = master_write_all(f, pty, u);
    pty->writing = false;
    waitq_wake(&pty->write_wait, EPOLLOUT | EPOLLWRNORM);
    return n;
}

static uint32_t master_poll(struct file *f, struct poll_table *pt)
{
    struct pty *pty = master_pty(f);
    uint32_t events = 0;

    poll_wait(pt, &pty->read_wait);
    poll_wait(pt, &pty->write_wait);
    if (master_readable(pty))
        events |= EPOLLIN | EPOLLRDNORM;
    if (pty->packet && pty->status)
        events |= EPOLLPRI;
    if (pty->slave_closed)
        events |= EPOLLHUP;
    if (!pty->writing && tty_input_room(&pty->tty))
        events |= EPOLLOUT | EPOLLWRNORM;
    return events;
}

static int64_t master_signal(struct pty *pty, uint64_t arg)
{
    int signo = (int)arg;

    if (signo != SIGINT && signo != SIGQUIT && signo != SIGTSTP)
        return -EINVAL;
    tty_signal_foreground(&pty->tty, signo);
    return 0;
}

static int64_t master_ioctl(struct ctx *ctx, struct file *f, uint32_t cmd, uint64_t arg)
{
    struct pty *pty = master_pty(f);
    int value, r;

    switch (cmd) {
    case TIOCSPTLCK:
    case TIOCPKT:
        r = COPY_IN(ctx, &value, UADDR(arg));
        if (r)
            return r;
        if (cmd == TIOCSPTLCK) {
            pty->locked = value != 0;
        } else {
            if (value && !pty->packet)
                pty->status = 0;
            pty->packet = value != 0;
        }
        return 0;
    case TIOCGPTLCK:
        value = pty->locked;
        return COPY_OUT(ctx, UADDR(arg), &value);
    case TIOCGPKT:
        value = pty->packet;
        return COPY_OUT(ctx, UADDR(arg), &value);
    case TIOCGPTN:
        value = (int)pty->tty.index;
        return COPY_OUT(ctx, UADDR(arg), &value);
    case TIOCGPTPEER:
        return devpts_open_peer(ctx, f, &pty->tty, (uint32_t)arg);
    case TIOCSIG:
        return master_signal(pty, arg);
    default:
        return tty_ioctl(ctx, f, cmd, arg);
    }
}

static void master_release(struct file *f)
{
    struct pty *pty = master_pty(f);

    mem_free(f->priv);
    pty->packet = false;
    pty->tty.line_gone = true;
    pty->gone(pty->devpts, &pty->tty);
    tty_hangup(&pty->tty);
    tty_ring_clear(&pty->output);
    tty_unref(&pty->tty);
}

static const struct file_ops pty_master_ops = {
    .signals_io = true,
    .read = master_read,
    .write = master_write,
    .poll = master_poll,
    .ioctl = master_ioctl,
    .release = master_release,
};

bool pty_is_master(const struct file *f)
{
    return f->ops == &pty_master_ops;
}

void pty_master_flush(struct tty *tty, bool input, bool output)
{
    struct pty *pty = to_pty(tty);

    if (input) {
        tty_ring_clear(&pty->output);
        tty_output_room(tty);
    }
    if (output) {
        tty_ring_clear(&tty->input);
        pty_input_room(tty);
    }
}

size_t pty_master_inq(const struct tty *tty)
{
    return tty_ring_used(&container_of(tty, const struct pty, tty)->output);
}

int pty_open_master(struct file *file, unsigned index, struct superblock *devpts,
                    void (*gone)(struct superblock *devpts, struct tty *tty), struct tty **ret_tty)
{
    struct tty_file *tf = NEW(struct tty_file);
    struct pty *pty = NEW(struct pty);

    if (!tf || !pty) {
        mem_free(tf);
        mem_free(pty);
        return -ENOMEM;
    }
    tty_init(&pty->tty, &pty_line_ops);
    pty->tty.index = index;
    pty->tty.rdev = makedev(DEV_PTS_MAJOR + index / 256, index % 256);
    tty_ring_init(&pty->output, PTY_OUTPUT_SIZE);
    waitq_init(&pty->read_wait);
    waitq_init(&pty->write_wait);
    pty->locked = true;
    pty->devpts = superblock_ref(devpts);
    pty->gone = gone;
    tf->tty = tty_ref(&pty->tty);
    tf->master = true;
    file->ops = &pty_master_ops;
    file->priv = tf;
    file->no_seek = true;
    *ret_tty = &pty->tty;
    return 0;
}
