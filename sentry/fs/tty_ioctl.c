/* SPDX-License-Identifier: Apache-2.0 */
/* Calls on terminals that either side of a pty answers: settings, sizes, buffers, flow. Source: tty_ioctl(4). */
#include "sentry/fs/tty.h"

#include <asm/ioctls.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>

#include "sentry/core/cred.h"
#include "sentry/fs/pty.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/usermem.h"
#include "sentry/vfs/file.h"

/* How settings travel: three generations of one structure. */
enum termios_form { FORM_TERMIO, FORM_TERMIOS, FORM_TERMIOS2 };

static const struct {
    uint32_t flag, speed;
} bauds[] = {
    {B0, 0},           {B50, 50},           {B75, 75},           {B110, 110},
    {B134, 134},       {B150, 150},         {B200, 200},         {B300, 300},
    {B600, 600},       {B1200, 1200},       {B1800, 1800},       {B2400, 2400},
    {B4800, 4800},     {B9600, 9600},       {B19200, 19200},     {B38400, 38400},
    {B57600, 57600},   {B115200, 115200},   {B230400, 230400},   {B460800, 460800},
    {B500000, 500000}, {B576000, 576000},   {B921600, 921600},   {B1000000, 1000000},
    {B1152000, 1152000}, {B1500000, 1500000}, {B2000000, 2000000}, {B2500000, 2500000},
    {B3000000, 3000000}, {B3500000, 3500000}, {B4000000, 4000000},
};

static uint32_t baud_of(uint32_t flag, uint32_t other)
{
    if (flag == BOTHER)
        return other;
    for (unsigned i = 0; i < ARRAY_SIZE(bauds); i++) {
        if (bauds[i].flag == flag)
            return bauds[i].speed;
    }
    return 0;
}

static int termios_get(struct ctx *ctx, const struct ktermios *t, enum termios_form form, uint64_t arg)
{
    struct termio old = {0};
    struct termios mid = {0};

    switch (form) {
    case FORM_TERMIO:
        old.c_iflag = (unsigned short)t->c_iflag;
        old.c_oflag = (unsigned short)t->c_oflag;
        old.c_cflag = (unsigned short)t->c_cflag;
        old.c_lflag = (unsigned short)t->c_lflag;
        old.c_line = t->c_line;
        memcpy(old.c_cc, t->c_cc, sizeof(old.c_cc));
        return COPY_OUT(ctx, UADDR(arg), &old);
    case FORM_TERMIOS:
        mid.c_iflag = t->c_iflag;
        mid.c_oflag = t->c_oflag;
        mid.c_cflag = t->c_cflag;
        mid.c_lflag = t->c_lflag;
        mid.c_line = t->c_line;
        memcpy(mid.c_cc, t->c_cc, sizeof(mid.c_cc));
        return COPY_OUT(ctx, UADDR(arg), &mid);
    default: /* termios2 has the layout of the kernel's own */
        return COPY_OUT(ctx, UADDR(arg), t);
    }
}

/* Merges what the program gave into t. */
static int termios_put(struct ctx *ctx, struct ktermios *t, enum termios_form form, uint64_t arg)
{
    struct termio old;
    struct termios mid;
    int r;

    switch (form) {
    case FORM_TERMIO:
        r = COPY_IN(ctx, &old, UADDR(arg));
        if (r)
            return r;
        t->c_iflag = (t->c_iflag & 0xffff0000) | old.c_iflag;
        t->c_oflag = (t->c_oflag & 0xffff0000) | old.c_oflag;
        t->c_cflag = (t->c_cflag & 0xffff0000) | old.c_cflag;
        t->c_lflag = (t->c_lflag & 0xffff0000) | old.c_lflag;
        t->c_line = old.c_line;
        memcpy(t->c_cc, old.c_cc, sizeof(old.c_cc));
        break;
    case FORM_TERMIOS:
        r = COPY_IN(ctx, &mid, UADDR(arg));
        if (r)
            return r;
        t->c_iflag = mid.c_iflag;
        t->c_oflag = mid.c_oflag;
        t->c_cflag = mid.c_cflag;
        t->c_lflag = mid.c_lflag;
        t->c_line = mid.c_line;
        memcpy(t->c_cc, mid.c_cc, sizeof(mid.c_cc));
        break;
    default:
        r = COPY_IN(ctx, t, UADDR(arg));
        if (r)
            return r;
    }
    return 0;
}

/* A pty has no wire: eight bits, no parity, always able to receive; speeds are remembered only. */
static void termios_normalize(struct ktermios *t)
{
    uint32_t in = (t->c_cflag >> IBSHIFT) & CBAUD;

    t->c_cflag = (t->c_cflag & ~(uint32_t)(CSIZE | PARENB)) | CS8 | CREAD;
    t->c_ospeed = baud_of(t->c_cflag & CBAUD, t->c_ospeed);
    t->c_ispeed = in == B0 ? t->c_ospeed : baud_of(in, t->c_ispeed);
    t->c_line = 0;
}

static bool flow_keys(const struct ktermios *t)
{
    return (t->c_iflag & IXON) && t->c_cc[VSTOP] == 023 && t->c_cc[VSTART] == 021;
}

/* Tells a packet-mode reader on the other side what concerns it. */
static void termios_status(struct tty *tty, const struct ktermios *old, const struct ktermios *t)
{
    uint8_t set = 0, clear = 0;

    if (flow_keys(old) != flow_keys(t)) {
        clear = TIOCPKT_DOSTOP | TIOCPKT_NOSTOP;
        set = flow_keys(t) ? TIOCPKT_DOSTOP : TIOCPKT_NOSTOP;
    }
    if ((old->c_lflag ^ t->c_lflag) & EXTPROC || t->c_lflag & EXTPROC)
        set |= TIOCPKT_IOCTL;
    if ((set | clear) && tty->line->status)
        tty->line->status(tty, set, clear);
}

static int64_t tty_drain(struct ctx *ctx, struct tty *tty)
{
    if (!tty->line->output_pending)
        return 0;
    return WAIT_EVENT(ctx, &tty->write_wait, tty->line->output_pending(tty) == 0 || tty->line_gone);
}

static int64_t termios_set(struct ctx *ctx, struct tty *tty, enum termios_form form, uint64_t arg,
                           bool drain, bool flush)
{
    struct ktermios t, old;
    int64_t r = tty_check_change(ctx_task_or_null(ctx), tty, SIGTTOU);

    if (r)
        return r;
    t = tty->ldisc.t;
    r = termios_put(ctx, &t, form, arg);
    if (r)
        return r;
    termios_normalize(&t);
    if (flush) {
        tty_ring_clear(&tty->input);
        ldisc_flush_input(&tty->ldisc);
    }
    if (drain || flush) {
        r = tty_drain(ctx, tty);
        if (r)
            return r;
    }
    old = tty->ldisc.t;
    ldisc_set_termios(&tty->ldisc, &t);
    termios_status(tty, &old, &t);
    waitq_wake(&tty->write_wait, WAIT_KEY_ALL);
    return 0;
}

static int64_t termios_ioctl(struct ctx *ctx, struct tty *tty, uint32_t cmd, uint64_t arg)
{
    switch (cmd) {
    case TCGETA:
        return termios_get(ctx, &tty->ldisc.t, FORM_TERMIO, arg);
    case TCGETS:
        return termios_get(ctx, &tty->ldisc.t, FORM_TERMIOS, arg);
    case TCGETS2:
        return termios_get(ctx, &tty->ldisc.t, FORM_TERMIOS2, arg);
    case TCSETA:
        return termios_set(ctx, tty, FORM_TERMIO, arg, false, false);
    case TCSETAW:
        return termios_set(ctx, tty, FORM_TERMIO, arg, true, false);
    case TCSETAF:
        return termios_set(ctx, tty, FORM_TERMIO, arg, true, true);
    case TCSETS:
        return termios_set(ctx, tty, FORM_TERMIOS, arg, false, false);
    case TCSETSW:
        return termios_set(ctx, tty, FORM_TERMIOS, arg, true, false);
    case TCSETSF:
        return termios_set(ctx, tty, FORM_TERMIOS, arg, true, true);
    case TCSETS2:
        return termios_set(ctx, tty, FORM_TERMIOS2, arg, false, false);
    case TCSETSW2:
        return termios_set(ctx, tty, FORM_TERMIOS2, arg, true, false);
    case TCSETSF2:
        return termios_set(ctx, tty, FORM_TERMIOS2, arg, true, true);
    default:
        return -TTY_NOT_MINE;
    }
}

/* ---- buffers and flow ---- */

static int64_t tty_flush(struct ctx *ctx, struct file *f, struct tty *tty, uint64_t arg)
{
    int64_t r = tty_check_change(ctx_task_or_null(ctx), tty, SIGTTOU);

    if (r)
        return r;
    if (arg != TCIFLUSH && arg != TCOFLUSH && arg != TCIOFLUSH)
        return -EINVAL;
    if (pty_is_master(f)) {
        pty_master_flush(tty, arg != TCOFLUSH, arg != TCIFLUSH);
        return 0;
    }
    if (arg != TCOFLUSH) {
        tty_ring_clear(&tty->input);
        ldisc_flush_input(&tty->ldisc);
    }
    if (arg != TCIFLUSH) {
        tty->line->flush_output(tty);
        if (tty->line->status)
            tty->line->status(tty, TIOCPKT_FLUSHWRITE, 0);
        tty_output_room(tty);
    }
    return 0;
}

static int64_t tty_flow(struct ctx *ctx, struct file *f, struct tty *tty, uint64_t arg)
{
    int64_t r = tty_check_change(ctx_task_or_null(ctx), tty, SIGTTOU);
    uint8_t c;

    if (r)
        return r;
    switch (arg) {
    case TCOOFF:
    case TCOON:
        if (pty_is_master(f))
            return 0;
        if (arg == TCOOFF)
            ldisc_stop(&tty->ldisc, true);
        else
            ldisc_start(&tty->ldisc, true);
        return 0;
    case TCIOFF:
    case TCION:
        c = tty->ldisc.t.c_cc[arg == TCIOFF ? VSTOP : VSTART];
        if (c == 0 || pty_is_master(f))
            return 0;
        if (tty->line->room(tty))
            tty->line->put(tty, (const char *)&c, 1);
        if (tty->line->kick)
            tty->line->kick(tty);
        return 0;
    default:
        return -EINVAL;
    }
}

static int64_t tty_break(struct ctx *ctx, struct tty *tty)
{
    int64_t r = tty_check_change(ctx_task_or_null(ctx), tty, SIGTTOU);

    if (r)
        return r;
    r = tty_drain(ctx, tty);
    return r == -ERESTARTSYS ? -EINTR : r;
}

/* Typing for another: only for those who could do it anyway (dev.tty.legacy_tiocsti is 0). */
static int64_t tty_fake_input(struct ctx *ctx, struct tty *tty, uint64_t arg)
{
    uint8_t c;
    int r;

    if (!cred_has_cap(ctx->cred, CAP_SYS_ADMIN))
        return -EIO;
    r = COPY_IN(ctx, &c, UADDR(arg));
    if (r)
        return r;
    return tty_input(tty, &c, 1) == 1 ? 0 : -EAGAIN;
}

static int64_t tty_get_winsize(struct ctx *ctx, struct tty *tty, uint64_t arg)
{
    if (tty->line->winsize_refresh)
        tty->line->winsize_refresh(tty);
    return COPY_OUT(ctx, UADDR(arg), &tty->winsize);
}

static int64_t tty_put_winsize(struct ctx *ctx, struct tty *tty, uint64_t arg)
{
    struct winsize ws;
    int r = COPY_IN(ctx, &ws, UADDR(arg));

    if (r)
        return r;
    tty_set_winsize(tty, &ws);
    return 0;
}

static int64_t put_int(struct ctx *ctx, uint64_t arg, int value)
{
    return COPY_OUT(ctx, UADDR(arg), &value);
}

static int64_t tty_vhangup(struct ctx *ctx, struct file *f, struct tty *tty)
{
    if (!cred_has_cap(ctx->cred, CAP_SYS_ADMIN))
        return -EPERM;
    if (!pty_is_master(f))
        tty_hangup(tty);
    return 0;
}

static int64_t tty_set_discipline(struct ctx *ctx, uint64_t arg)
{
    int n, r = COPY_IN(ctx, &n, UADDR(arg));

    if (r)
        return r;
    return n == 0 ? 0 : -EINVAL;
}

static int64_t tty_soft_carrier(struct ctx *ctx, struct tty *tty, uint64_t arg)
{
    int on, r = COPY_IN(ctx, &on, UADDR(arg));

    if (r)
        return r;
    tty->ldisc.t.c_cflag = (tty->ldisc.t.c_cflag & ~(uint32_t)CLOCAL) | (on ? CLOCAL : 0);
    return 0;
}

static int64_t tty_pending_input(struct ctx *ctx, struct file *f, struct tty *tty, uint64_t arg)
{
    size_t n = pty_is_master(f) ? pty_master_inq(tty) : ldisc_inq(&tty->ldisc);

    return put_int(ctx, arg, (int)n);
}

static int64_t tty_state_ioctl(struct ctx *ctx, struct file *f, struct tty *tty, uint32_t cmd, uint64_t arg)
{
    static const struct ktermios locked; /* nothing is locked */

    switch (cmd) {
    case TIOCEXCL:
        tty->exclusive = true;
        return 0;
    case TIOCNXCL:
        tty->exclusive = false;
        return 0;
    case TIOCGEXCL:
        return put_int(ctx, arg, tty->exclusive);
    case TIOCGETD:
        return put_int(ctx, arg, 0);
    case TIOCSETD:
        return tty_set_discipline(ctx, arg);
    case TIOCGSOFTCAR:
        return put_int(ctx, arg, (tty->ldisc.t.c_cflag & CLOCAL) != 0);
    case TIOCSSOFTCAR:
        return tty_soft_carrier(ctx, tty, arg);
    case TIOCGLCKTRMIOS:
        return termios_get(ctx, &locked, FORM_TERMIOS, arg);
    case TIOCSLCKTRMIOS:
        return cred_has_cap(ctx->cred, CAP_SYS_ADMIN) ? -EOPNOTSUPP : -EPERM;
    case TIOCGDEV:
        return put_int(ctx, arg, (int)(minor(tty->rdev) | major(tty->rdev) << 8));
    case TIOCVHANGUP:
        return tty_vhangup(ctx, f, tty);
    case TIOCCONS:
        return cred_has_cap(ctx->cred, CAP_SYS_ADMIN) ? -EBUSY : -EPERM;
    default:
        return -ENOTTY;
    }
}

int64_t tty_ioctl(struct ctx *ctx, struct file *f, uint32_t cmd, uint64_t arg)
{
    struct tty *tty = tty_of_file(f);
    int64_t r = termios_ioctl(ctx, tty, cmd, arg);

    if (r == -TTY_NOT_MINE)
        r = tty_jobctl_ioctl(ctx, f, cmd, arg);
    if (r != -TTY_NOT_MINE)
        return r;
    switch (cmd) {
    case TIOCGWINSZ:
        return tty_get_winsize(ctx, tty, arg);
    case TIOCSWINSZ:
        return tty_put_winsize(ctx, tty, arg);
    case TIOCINQ:
        return tty_pending_input(ctx, f, tty, arg);
    case TIOCOUTQ:
        return put_int(ctx, arg, tty->line->output_pending && !pty_is_master(f)
                                     ? (int)tty->line->output_pending(tty)
                                     : 0);
    case TCFLSH:
        return tty_flush(ctx, f, tty, arg);
    case TCXONC:
        return tty_flow(ctx, f, tty, arg);
    case TCSBRK:
    case TCSBRKP:
    case TIOCSBRK:
        return tty_break(ctx, tty);
    case TIOCCBRK:
        return 0;
    case TIOCSTI:
        return tty_fake_input(ctx, tty, arg);
    default:
        return tty_state_ioctl(ctx, f, tty, cmd, arg);
    }
}
