/* SPDX-License-Identifier: Apache-2.0 */
/* Controlling terminals: who owns one, who may use it, and who is told when it goes. Source: tty_ioctl(4),
 * credentials(7), POSIX General Terminal Interface (11.1.3, 11.1.4). */
#include "sentry/fs/tty.h"

#include <asm/ioctls.h>
#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/sysmacros.h>

#include "sentry/fs/pty.h"
#include "sentry/kernel/task.h"
#include "sentry/vfs/file.h"

struct tty *tty_current(const struct task *t)
{
    const struct tgroup *g = t->group;

    return g->pgrp && !g->tty_given_up ? g->pgrp->session->tty : NULL;
}

static void signal_pgrp(struct pgrp *pgrp, int signo)
{
    siginfo_t info;

    siginfo_kernel(&info, signo, SI_KERNEL);
    signal_send_pgrp(pgrp, &info);
}

void tty_signal_foreground(struct tty *tty, int signo)
{
    struct pgrp *pgrp = tty->pgrp;

    if (!pgrp)
        return;
    pgrp_ref(pgrp);
    signal_pgrp(pgrp, signo);
    pgrp_unref(pgrp);
}

int tty_check_change(struct task *t, struct tty *tty, int sig)
{
    struct pgrp *own;

    if (!t || tty_current(t) != tty || !tty->pgrp)
        return 0;
    own = t->group->pgrp;
    if (own == tty->pgrp)
        return 0;
    if ((t->blocked & SIGBIT(sig)) || signal_ignored(t, sig))
        return sig == SIGTTIN ? -EIO : 0;
    if (pgrp_is_orphaned(own))
        return -EIO;
    pgrp_ref(own);
    signal_pgrp(own, sig);
    pgrp_unref(own);
    return -ERESTARTSYS;
}

void tty_make_controlling(struct tty *tty, struct tgroup *leader)
{
    struct session *s = leader->pgrp->session;

    tty->session = session_ref(s);
    tty->pgrp = pgrp_ref(leader->pgrp);
    s->tty = tty_ref(tty);
    leader->tty_given_up = false;
    pgrp_unref(s->tty_old_pgrp);
    s->tty_old_pgrp = NULL;
}

void tty_drop_session(struct tty *tty)
{
    struct session *s = tty->session;
    struct pgrp *pgrp = tty->pgrp;

    tty->session = NULL;
    tty->pgrp = NULL;
    pgrp_unref(pgrp);
    if (s) {
        s->tty = NULL;
        session_unref(s);
        tty_unref(tty);
    }
}

void tty_leader_exit(struct tgroup *leader)
{
    struct session *s = leader->pgrp ? leader->pgrp->session : NULL;
    struct tty *tty;

    if (!s || s->leader != leader)
        return;
    session_ref(s);
    if (s->tty) {
        tty = tty_ref(s->tty);
        tty_signal_foreground(tty, SIGHUP);
        tty_drop_session(tty);
        if (tty->open_files == 0 && tty->line->last_close)
            tty->line->last_close(tty);
        tty_unref(tty);
    } else if (s->tty_old_pgrp) {
        signal_pgrp(s->tty_old_pgrp, SIGHUP);
        signal_pgrp(s->tty_old_pgrp, SIGCONT);
    }
    pgrp_unref(s->tty_old_pgrp);
    s->tty_old_pgrp = NULL;
    session_unref(s);
}

uint32_t tty_proc_numbers(const struct tgroup *g, const struct pidns *ns, int *ret_tpgid)
{
    struct tty *tty = g->pgrp && !g->tty_given_up ? g->pgrp->session->tty : NULL;
    uint64_t dev;

    *ret_tpgid = -1;
    if (!tty)
        return 0;
    if (tty->pgrp)
        *ret_tpgid = pgrp_id_in(tty->pgrp, ns);
    dev = tty->rdev;
    return (uint32_t)((minor(dev) & 0xff) | (major(dev) << 8) | ((minor(dev) & ~0xffU) << 12));
}

/* ---- calls ---- */

static int64_t tty_take(struct ctx *ctx, struct task *t, struct file *f, struct tty *tty, uint64_t arg)
{
    struct session *s = t->group->pgrp->session;
    bool admin = cred_has_cap(ctx->cred, CAP_SYS_ADMIN);
    struct tty *stolen;

    if (s->leader == t->group && tty->session == s)
        return 0;
    if (s->leader != t->group || s->tty)
        return -EPERM;
    if (tty->session && (arg != 1 || !admin))
        return -EPERM;
    if (!file_readable(f) && !admin)
        return -EPERM;
    stolen = tty_ref(tty);
    tty_drop_session(tty);
    tty_make_controlling(tty, t->group);
    tty_unref(stolen);
    return 0;
}

static int64_t tty_give_up(struct task *t, struct tty *tty)
{
    struct session *s = t->group->pgrp->session;

    if (tty_current(t) != tty)
        return -ENOTTY;
    if (s->leader != t->group) {
        t->group->tty_given_up = true;
        return 0;
    }
    tty_ref(tty);
    tty_signal_foreground(tty, SIGHUP);
    tty_signal_foreground(tty, SIGCONT);
    tty_drop_session(tty);
    tty_unref(tty);
    return 0;
}

static int64_t tty_get_pgrp(struct ctx *ctx, struct task *t, struct tty *tty, bool master, uint64_t arg)
{
    int id;

    if (!master && tty_current(t) != tty)
        return -ENOTTY;
    id = tty->pgrp ? pgrp_id_in(tty->pgrp, t->pidns) : 0;
    return COPY_OUT(ctx, UADDR(arg), &id);
}

static int64_t tty_set_pgrp(struct ctx *ctx, struct task *t, struct tty *tty, uint64_t arg)
{
    struct session *s = t->group->pgrp->session;
    struct pgrp *pgrp, *old;
    int id, r = tty_check_change(t, tty, SIGTTOU);

    if (r)
        return r == -EIO ? -ENOTTY : r;
    if (tty_current(t) != tty || tty->session != s)
        return -ENOTTY;
    r = COPY_IN(ctx, &id, UADDR(arg));
    if (r)
        return r;
    if (id < 0)
        return -EINVAL;
    pgrp = pgrp_find(t->pidns, id);
    if (!pgrp)
        return -ESRCH;
    if (pgrp->session != s) {
        pgrp_unref(pgrp);
        return -EPERM;
    }
    old = tty->pgrp;
    tty->pgrp = pgrp;
    pgrp_unref(old);
    return 0;
}

static int64_t tty_get_sid(struct ctx *ctx, struct task *t, struct tty *tty, bool master, uint64_t arg)
{
    int id;

    if ((!master && tty_current(t) != tty) || !tty->session)
        return -ENOTTY;
    id = session_id_in(tty->session, t->pidns);
    return COPY_OUT(ctx, UADDR(arg), &id);
}

int64_t tty_jobctl_ioctl(struct ctx *ctx, struct file *f, uint32_t cmd, uint64_t arg)
{
    struct task *t = ctx_task_or_null(ctx);
    struct tty *tty = tty_of_file(f);
    bool master = pty_is_master(f);

    switch (cmd) {
    case TIOCSCTTY:
    case TIOCNOTTY:
    case TIOCGPGRP:
    case TIOCSPGRP:
    case TIOCGSID:
        if (!t || !t->group->pgrp)
            return -ENOTTY;
        break;
    default:
        return -TTY_NOT_MINE;
    }
    switch (cmd) {
    case TIOCSCTTY:
        return tty_take(ctx, t, f, tty, arg);
    case TIOCNOTTY:
        return master ? -ENOTTY : tty_give_up(t, tty);
    case TIOCGPGRP:
        return tty_get_pgrp(ctx, t, tty, master, arg);
    case TIOCSPGRP:
        return tty_set_pgrp(ctx, t, tty, arg);
    default:
        return tty_get_sid(ctx, t, tty, master, arg);
    }
}
