/* SPDX-License-Identifier: Apache-2.0 */
/* ioctl calls on a host terminal that was given as stdio without being the container's own terminal. */
#include "sentry/fs/hostfd_tty.h"

#include <asm/ioctls.h>
#include <asm/termbits.h>
#include <errno.h>
#include <sys/ioctl.h>

#include "platform/base/host.h"
#include "sentry/core/evloop.h"
#include "sentry/mm/usermem.h"

enum { TERMIO_SIZE = 18 }; /* struct termio of the oldest interface */

enum tty_pass_dir { PASS_NONE, PASS_OUT, PASS_IN, PASS_VALUE };

/* Passed through: what a program may do to any terminal it holds open. */
static const struct tty_pass {
    uint32_t cmd;
    uint16_t size;
    uint8_t dir;
    bool may_wait; /* for output to drain */
} tty_pass[] = {
    {TCGETS, sizeof(struct termios), PASS_OUT, false},
    {TCSETS, sizeof(struct termios), PASS_IN, false},
    {TCSETSW, sizeof(struct termios), PASS_IN, true},
    {TCSETSF, sizeof(struct termios), PASS_IN, true},
    {TCGETS2, sizeof(struct termios2), PASS_OUT, false},
    {TCSETS2, sizeof(struct termios2), PASS_IN, false},
    {TCSETSW2, sizeof(struct termios2), PASS_IN, true},
    {TCSETSF2, sizeof(struct termios2), PASS_IN, true},
    {TCGETA, TERMIO_SIZE, PASS_OUT, false},
    {TCSETA, TERMIO_SIZE, PASS_IN, false},
    {TCSETAW, TERMIO_SIZE, PASS_IN, true},
    {TCSETAF, TERMIO_SIZE, PASS_IN, true},
    {TIOCGWINSZ, 8, PASS_OUT, false},
    {TIOCSWINSZ, 8, PASS_IN, false},
    {TIOCINQ, sizeof(int), PASS_OUT, false},
    {TIOCOUTQ, sizeof(int), PASS_OUT, false},
    {TIOCGETD, sizeof(int), PASS_OUT, false},
    {TIOCGSOFTCAR, sizeof(int), PASS_OUT, false},
    {TCFLSH, 0, PASS_VALUE, false},
    {TCXONC, 0, PASS_VALUE, false},
    {TCSBRK, 0, PASS_VALUE, true},
    {TCSBRKP, 0, PASS_VALUE, true},
};

struct tty_call {
    int fd;
    uint32_t cmd;
    unsigned long arg;
};

static long tty_call_fn(void *arg)
{
    struct tty_call *c = arg;
    long r;

    do {
        r = host_ret(ioctl(c->fd, c->cmd, c->arg));
    } while (r == -EINTR);
    return r;
}

bool hostfd_tty_is(int fd)
{
    struct termios t;

    return ioctl(fd, TCGETS, &t) == 0;
}

static int64_t tty_pass_call(struct ctx *ctx, int fd, const struct tty_pass *p, uint64_t arg)
{
    char data[64] = {0};
    struct tty_call call = {.fd = fd, .cmd = p->cmd};
    int64_t r;

    call.arg = p->dir == PASS_VALUE ? (unsigned long)(int)arg : (unsigned long)data;
    if (p->dir == PASS_IN) {
        r = copy_in(ctx, data, UADDR(arg), p->size);
        if (r)
            return r;
    }
    r = p->may_wait ? hostio_run(tty_call_fn, &call) : tty_call_fn(&call);
    if (r < 0)
        return r;
    if (p->dir == PASS_OUT)
        return copy_out(ctx, UADDR(arg), data, p->size);
    return 0;
}

int64_t hostfd_tty_ioctl(struct ctx *ctx, int fd, uint32_t cmd, uint64_t arg)
{
    for (unsigned i = 0; i < sizeof(tty_pass) / sizeof(tty_pass[0]); i++) {
        if (tty_pass[i].cmd == cmd)
            return tty_pass_call(ctx, fd, &tty_pass[i], arg);
    }
    switch (cmd) {
    case TIOCSCTTY: /* it belongs to a session of the host */
    case TIOCEXCL:
    case TIOCNXCL:
        return -EPERM;
    case TIOCSTI:
        return -EIO;
    default: /* among them TIOCGPGRP, TIOCSPGRP, TIOCGSID: not our controlling terminal */
        return -ENOTTY;
    }
}
