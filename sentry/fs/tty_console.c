/* SPDX-License-Identifier: Apache-2.0 */
/* Terminals of containers and of exec sessions over a host pty. */
#include "sentry/fs/tty_console.h"

#include <asm/ioctls.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "sentry/core/evloop.h"
#include "sentry/fs/devfs.h"
#include "sentry/fs/devpts.h"
#include "sentry/fs/tty.h"
#include "sentry/kernel/task.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/path_walk.h"

enum {
    CONSOLE_OUTPUT_SIZE = 32768,
    CONSOLE_CHUNK = 1024,
    CONSOLE_READS = 16, /* chunks in one turn, so that a fast typist does not starve the rest */
};

struct console {
    struct tty tty;
    int fd;                 /* (k) host pty slave, owned; −1 once shut */
    struct evloop_watch watch;
    uint32_t watched;       /* (k) EPOLL* bits in force */
    bool watching;          /* (k) */
    struct tty_ring output; /* (k) what the host would not take yet */
    struct superblock *sb;  /* (k) the devpts instance, referenced; NULL once the node is gone */
};

static struct console *to_console(struct tty *tty)
{
    return container_of(tty, struct console, tty);
}

/* Asks for what can be used: input while there is room for it, output while some waits. */
static void console_rewatch(struct console *c)
{
    uint32_t want = 0;

    if (c->fd < 0)
        return;
    if (tty_input_room(&c->tty) >= CONSOLE_CHUNK)
        want |= EPOLLIN;
    if (tty_ring_used(&c->output))
        want |= EPOLLOUT;
    if (c->watching && want != c->watched && evloop_modify(&c->watch, want) == 0)
        c->watched = want;
}

/* The host side is gone for the guest: no more input or output. */
static void console_shut(struct console *c)
{
    if (c->watching)
        evloop_unwatch(&c->watch);
    c->watching = false;
    host_close(c->fd);
    c->fd = -1;
    tty_ring_clear(&c->output);
    if (c->sb) {
        struct superblock *sb = c->sb;

        c->sb = NULL;
        devpts_remove(sb, c->tty.index);
        superblock_unref(sb);
    }
}

static void console_hangup(struct console *c)
{
    tty_ref(&c->tty);
    c->tty.line_gone = true;
    tty_hangup(&c->tty);
    console_shut(c);
    tty_unref(&c->tty);
}

/* Return: false when the host side is closed. */
static bool console_push(struct console *c)
{
    while (c->fd >= 0 && tty_ring_used(&c->output)) {
        const uint8_t *p;
        size_t size = tty_ring_peek(&c->output, &p);
        long n = host_ret(write(c->fd, p, size));

        if (n == -EAGAIN || n == -EINTR)
            break;
        if (n <= 0)
            return false;
        tty_ring_consume(&c->output, (size_t)n);
    }
    console_rewatch(c);
    return true;
}

static void console_sync_winsize(struct tty *tty)
{
    struct console *c = to_console(tty);
    struct winsize ws;

    if (c->fd >= 0 && ioctl(c->fd, TIOCGWINSZ, &ws) == 0 && memcmp(&ws, &tty->winsize, sizeof(ws)) != 0) {
        tty->winsize = ws;
        tty_signal_foreground(tty, SIGWINCH);
    }
}

static bool console_pull(struct console *c)
{
    uint8_t chunk[CONSOLE_CHUNK];

    for (unsigned i = 0; i < CONSOLE_READS && tty_input_room(&c->tty) >= sizeof(chunk); i++) {
        long n = host_ret(read(c->fd, chunk, sizeof(chunk)));

        if (n == -EAGAIN || n == -EINTR)
            return true;
        if (n <= 0)
            return false;
        /* There is room for all of it. */
        (void)!tty_input(&c->tty, chunk, (size_t)n);
        if ((size_t)n < sizeof(chunk))
            break;
    }
    return true;
}

static void console_on_event(void *arg, uint32_t events)
{
    struct console *c = arg;
    bool open = true;

    tty_ref(&c->tty);
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
        console_sync_winsize(&c->tty);
        open = console_pull(c);
    }
    if (open && c->fd >= 0 && (events & EPOLLOUT)) {
        open = console_push(c);
        if (open)
            tty_output_room(&c->tty);
    }
    if (!open || (events & EPOLLHUP && !(events & EPOLLIN)))
        console_hangup(c);
    else
        console_rewatch(c);
    tty_unref(&c->tty);
}

/* ---- the line below the terminal ---- */

static size_t console_room(struct tty *tty)
{
    return tty_ring_room(&to_console(tty)->output);
}

static void console_put_output(struct tty *tty, const char *p, size_t size)
{
    struct console *c = to_console(tty);

    if (c->fd >= 0)
        (void)!tty_ring_put(&c->output, p, size);
}

static void console_kick(struct tty *tty)
{
    /* A closed host side is noticed by the watch; here it only stops the output. */
    (void)console_push(to_console(tty));
}

static void console_flush_output(struct tty *tty)
{
    tty_ring_clear(&to_console(tty)->output);
}

static size_t console_pending(struct tty *tty)
{
    return tty_ring_used(&to_console(tty)->output);
}

static void console_input_room(struct tty *tty)
{
    console_rewatch(to_console(tty));
}

static void console_winsize_changed(struct tty *tty)
{
    struct console *c = to_console(tty);

    if (c->fd >= 0)
        (void)ioctl(c->fd, TIOCSWINSZ, &tty->winsize);
}

/* The host's reader sees the end once nobody in the sandbox can write any more: no file is open, and no session
 * could open the terminal again by /dev/tty. */
static void console_last_close(struct tty *tty)
{
    struct console *c = to_console(tty);

    if (tty->session || tty->open_files || c->fd < 0)
        return;
    (void)console_push(c);
    tty->line_gone = true;
    console_shut(c);
}

static void console_free(struct tty *tty)
{
    struct console *c = to_console(tty);

    console_shut(c);
    mem_free(c);
}

static const struct tty_line_ops console_line_ops = {
    .room = console_room,
    .put = console_put_output,
    .kick = console_kick,
    .flush_output = console_flush_output,
    .output_pending = console_pending,
    .input_room = console_input_room,
    .winsize_changed = console_winsize_changed,
    .winsize_refresh = console_sync_winsize,
    .last_close = console_last_close,
    .free = console_free,
};

/* ---- making one ---- */

static int console_raw(int fd)
{
    struct termios t;

    if (ioctl(fd, TCGETS, &t) < 0)
        return -ENOTTY;
    t.c_iflag &= ~(uint32_t)(IGNBRK | BRKINT | PARMRK | ISTRIP | INLCR | IGNCR | ICRNL | IXON);
    t.c_oflag &= ~(uint32_t)OPOST;
    t.c_lflag &= ~(uint32_t)(ECHO | ECHONL | ICANON | ISIG | IEXTEN);
    t.c_cflag = (t.c_cflag & ~(uint32_t)(CSIZE | PARENB)) | CS8;
    t.c_cc[VMIN] = 1;
    t.c_cc[VTIME] = 0;
    return (int)host_ret(ioctl(fd, TCSETS, &t));
}

static int console_new(OWNS int fd, uint16_t rows, uint16_t cols, struct console **ret_console)
{
    struct console *c = NEW(struct console);
    int r = c ? console_raw(fd) : -ENOMEM;

    if (r == 0)
        r = (int)host_ret(fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK));
    if (r < 0) {
        mem_free(c);
        host_close(fd);
        return r;
    }
    c->fd = fd;
    tty_init(&c->tty, &console_line_ops);
    tty_ring_init(&c->output, CONSOLE_OUTPUT_SIZE);
    if (rows || cols) {
        c->tty.winsize = (struct winsize){.ws_row = rows, .ws_col = cols};
        console_winsize_changed(&c->tty);
    } else {
        console_sync_winsize(&c->tty);
    }
    c->watched = EPOLLIN;
    r = evloop_watch(&c->watch, fd, EPOLLIN, console_on_event, c);
    if (r) {
        tty_unref(&c->tty);
        return r;
    }
    c->watching = true;
    *ret_console = c;
    return 0;
}

/* Puts the terminal into the devpts of the container. */
static int console_publish(struct ctx *ctx, const struct walk_base *base, struct console *c, uint32_t uid)
{
    CLEANUP_PATH struct path pts = {0};
    int r = walk_path(ctx, base, "/dev/pts", WALK_FOLLOW | WALK_DIRECTORY, &pts);
    struct superblock *sb;

    if (r)
        return r;
    sb = pts.dentry->sb;
    if (!devpts_is(sb))
        return -ENODEV;
    r = devpts_reserve(sb);
    if (r < 0)
        return r;
    c->tty.index = (unsigned)r;
    c->tty.rdev = makedev(DEV_PTS_MAJOR + c->tty.index / 256, c->tty.index % 256);
    r = devpts_publish(ctx, sb, &c->tty, uid);
    if (r) {
        devpts_remove(sb, c->tty.index);
        return r;
    }
    c->sb = superblock_ref(sb);
    return 0;
}

int tty_console_open(struct ctx *ctx, const struct walk_base *base, OWNS int host_fd, uint16_t rows,
                     uint16_t cols, uint32_t uid, struct file **ret_file)
{
    struct console *c;
    char path[32];
    int r = console_new(host_fd, rows, cols, &c);

    if (r)
        return r;
    r = console_publish(ctx, base, c, uid);
    if (r == 0) {
        snprintf(path, sizeof(path), "/dev/pts/%u", c->tty.index);
        r = vfs_open(ctx, base, path, O_RDWR | O_NOCTTY, 0, ret_file);
    }
    if (r)
        console_shut(c);
    tty_unref(&c->tty);
    return r;
}

int tty_console_attach(struct task *t, struct file *f)
{
    struct tty *tty = tty_of_file(f);
    struct session *s = t->group->pgrp ? t->group->pgrp->session : NULL;

    if (!tty || !s || s->leader != t->group || s->tty || tty->session)
        return -EPERM;
    tty_make_controlling(tty, t->group);
    return 0;
}

int tty_console_bind(struct ctx *ctx, const struct walk_base *base, struct file *f)
{
    CLEANUP_PATH struct path at = {0};
    struct path from = f->path;
    int r = walk_path(ctx, base, "/dev/console", WALK_FOLLOW, &at);

    if (r == -ENOENT) {
        r = vfs_mknod(ctx, base, "/dev/console", S_IFREG | 0666, 0);
        if (r == 0)
            r = walk_path(ctx, base, "/dev/console", WALK_FOLLOW, &at);
    }
    return r ? r : mount_bind(ctx, &from, &at, false);
}

struct tty *tty_console_get(struct file *f)
{
    struct tty *tty = tty_of_file(f);

    return tty ? tty_ref(tty) : NULL;
}

void tty_console_put(struct tty *tty)
{
    tty_unref(tty);
}

void tty_console_resize(struct tty *tty, uint16_t rows, uint16_t cols)
{
    struct winsize ws = {.ws_row = rows, .ws_col = cols};

    tty_set_winsize(tty, &ws);
}
