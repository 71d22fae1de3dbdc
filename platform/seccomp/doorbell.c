/* SPDX-License-Identifier: Apache-2.0 */
/* The sentry's end of the doorbell: seccomp notifications in, answers out.
 *
 * Whose call a notification is, the kernel says (its tid). A notification that a signal or a freeze interrupts comes
 * again under a new id with the same sequence number; an answer may be lost in the same way even after it was
 * accepted, so the last answer is kept until the next number. */
#include "platform/seccomp/seccomp_priv.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "platform/base/host.h"
#include "platform/base/log.h"

struct scp_thread *scp_find(struct scp *p, pid_t tid)
{
    struct scp_thread *t;
    list_for_each_entry(t, &p->hash[(unsigned)tid % SCP_HASH], hash_link)
        if (t->tid == tid)
            return t;
    return NULL;
}

static int scp_send(struct scp *p, uint64_t id, int64_t value, uint32_t flags)
{
    struct seccomp_notif_resp resp = {.id = id, .val = value, .flags = flags};
    return (int)host_ret(ioctl(p->listener, SECCOMP_IOCTL_NOTIF_SEND, &resp));
}

void scp_reply(struct scp *p, struct scp_thread *t, int64_t value)
{
    t->replied = true;
    t->reply = value;
    uint64_t id = t->notif_id;
    t->notif_id = 0;
    scp_look_for(p, t);
    if (t->posted)
        scp_look_reply(t, value);
    /* −ENOENT: interrupted meanwhile; the echo will ask again. */
    if (id && scp_send(p, id, value, 0) < 0)
        t->notif_id = 0;
}

void scp_kill_tid(pid_t tid)
{
    syscall(SYS_tkill, tid, SIGKILL);
}

void scp_violation(struct scp_thread *t, const char *what)
{
    const struct scp_aspace *as = scp_aspace_of(t->base.aspace);
    log_debug("seccomp: host thread %d ends with its process: %s", t->tid, what);
    if (as->pidfd >= 0 && !as->provisional)
        syscall(SYS_pidfd_send_signal, as->pidfd, SIGKILL, NULL, 0);
    else if (t->tid)
        scp_kill_tid(t->tid);
}

static void scp_wake(struct scp *p, struct scp_thread *t)
{
    t->op_done = true;
    if (t->fiber)
        p->config.ready(t->fiber);
}

/* Takes over the registers; the mailbox is the guest's, so each word is read once. */
static void scp_import_regs(struct scp_thread *t)
{
    const volatile struct stub_mailbox *m = t->mbox;
    struct regs *r = &t->base.regs;
    r->r8 = m->gregs[G_R8];
    r->r9 = m->gregs[G_R9];
    r->r10 = m->gregs[G_R10];
    r->r11 = m->gregs[G_R11];
    r->r12 = m->gregs[G_R12];
    r->r13 = m->gregs[G_R13];
    r->r14 = m->gregs[G_R14];
    r->r15 = m->gregs[G_R15];
    r->rdi = m->gregs[G_RDI];
    r->rsi = m->gregs[G_RSI];
    r->rbp = m->gregs[G_RBP];
    r->rbx = m->gregs[G_RBX];
    r->rdx = m->gregs[G_RDX];
    r->rax = m->gregs[G_RAX];
    r->rcx = m->gregs[G_RCX];
    r->rsp = m->gregs[G_RSP];
    r->rip = m->gregs[G_RIP];
    r->rflags = m->gregs[G_EFL];
    r->cs = 0x33;
    r->ss = 0x2b;
    r->fs_base = m->fs_base;
    r->gs_base = m->gs_base;
    t->fpu_at = m->fpstate;
}

static void scp_event(struct scp *p, struct scp_thread *t, uint64_t op)
{
    const volatile struct stub_mailbox *m = t->mbox;
    struct plat_event ev = {.kind = PLAT_EVENT_SYSCALL};
    bool local = t->local;
    t->local = false;
    if (op == STUB_OP_DECLINED) {
        /* What has been judged is the call as it was: number and registers are those of before. */
        if (!local) {
            scp_violation(t, "it declines a call that it was not given");
            return;
        }
        ev.declined = true;
    } else if (op == STUB_OP_FPU_FAULT || op == STUB_OP_OUT_FAULT) {
        ev = (struct plat_event){.kind = PLAT_EVENT_FAULT, .signo = SIGSEGV, .code = SI_KERNEL, .trapno = 14,
                                  .on_resume = op == STUB_OP_FPU_FAULT};
    } else {
        scp_import_regs(t);
        t->base.regs.orig_rax = (uint64_t)-1;
    }
    switch (op) {
    case STUB_OP_FPU_FAULT:
    case STUB_OP_OUT_FAULT:
        break;
    case STUB_OP_DECLINED:
        scp_guestmem_import(t);
        break;
    case STUB_OP_SYSCALL:
        t->base.regs.orig_rax = m->sysno;
        scp_guestmem_import(t);
        break;
    case STUB_OP_LOCAL:
        ev.kind = PLAT_EVENT_LOCAL;
        t->base.regs.orig_rax = m->sysno;
        break;
    case STUB_OP_KICK:
        ev.kind = PLAT_EVENT_KICK;
        break;
    case STUB_OP_FAULT:
        ev.kind = PLAT_EVENT_FAULT;
        ev.signo = m->fault_signo;
        ev.code = m->fault_code;
        ev.trapno = m->fault_trapno;
        ev.addr = m->fault_addr;
        ev.error_code = m->fault_error;
        if (ev.signo != SIGSEGV && ev.signo != SIGBUS && ev.signo != SIGFPE && ev.signo != SIGILL &&
            ev.signo != SIGTRAP)
            ev.signo = SIGSEGV;
        break;
    default:
        scp_violation(t, "it rings with an operation that there is not");
        return;
    }
    t->base.stopped = true;
    t->state = SCP_STOPPED;
    p->base.client->on_event(&t->base, t->base.owner, &ev);
}

/* A host thread that nobody awaits: it came from a clone that failed here, or a guest made it up. */
static void scp_kill_unknown(struct scp *p, pid_t tid, uint64_t id)
{
    if (ioctl(p->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0)
        scp_kill_tid(tid);
}

static bool scp_tid_is_in(const struct plat_aspace *as, pid_t tid)
{
    return syscall(SYS_tgkill, as->host_pid, tid, 0) == 0;
}

/* Whether tid may become a new thread although t goes by that number. */
static bool scp_tid_is_free(struct scp_thread *t, pid_t tid)
{
    struct plat_aspace *as = t->base.aspace;
    struct pollfd gone = {.fd = scp_aspace_of(as)->pidfd, .events = POLLIN};
    bool leader = tid == as->host_pid;
    if (t->released && !leader)
        return true; /* it has exited, and the host gave its number away */
    if (poll(&gone, 1, 0) == 1)
        return true; /* its process has died, and we are about to learn of it */
    if (scp_tid_is_in(as, tid))
        return false;
    if (!as->dead)
        scp_violation(t, "its thread has gone without a word");
    return true;
}

/* Whether the host thread can be what found stands for; if so its process is known from now on.
 * Return: 0, −EPERM when it can't be, or why its process can't be watched. */
static int scp_birth_check(struct scp *p, struct scp_thread *found, pid_t tid)
{
    struct scp_aspace *as = scp_aspace_of(found->base.aspace);
    if (as->base.host_pid && !as->provisional)
        return scp_tid_is_in(&as->base, tid) ? 0 : -EPERM;
    if (as->base.host_pid == tid) {
        as->provisional = false;
        return 0;
    }
    scp_aspace_detach(p, as);
    int err = scp_aspace_attach(p, as, tid);
    /* The host opens it for group leaders only: a thread can't pass for a process. */
    return err == -EINVAL || err == -ENOENT || err == -ESRCH ? -EPERM : err;
}

/* There is no watching the new process: better none than one that outlives what it stands for. */
static void scp_birth_refuse(struct scp *p, struct scp_thread *found, int err)
{
    if (found->from_zygote) {
        scp_birth_failed(p, found->token, err);
        return;
    }
    found->base.aspace->dead = true;
    if (found->fiber)
        p->config.ready(found->fiber);
}

static void scp_birth(struct scp *p, pid_t tid, uint64_t id, uint64_t seq, uint64_t token)
{
    struct scp_thread *t, *found = NULL;
    list_for_each_entry(t, &p->births, token_link)
        if (t->token == token)
            found = t;
    struct scp_thread *namesake = scp_find(p, tid);
    int err = found && (!namesake || scp_tid_is_free(namesake, tid)) ? scp_birth_check(p, found, tid) : -EPERM;
    if (err) {
        scp_kill_unknown(p, tid, id);
        if (err != -EPERM)
            scp_birth_refuse(p, found, err);
        return;
    }
    if (namesake)
        list_del(&namesake->hash_link);
    list_del(&found->token_link);
    found->tid = tid;
    found->seq = seq;
    found->notif_id = id;
    found->replied = false;
    found->birth = true;
    found->state = SCP_HELD;
    list_add(&p->hash[(unsigned)tid % SCP_HASH], &found->hash_link);
    scp_thread_born(p, found);
}

/* The zygote says which process it has made: should that die before it rings, its pidfd tells. */
static void scp_zygote_made(struct scp *p, pid_t pid, uint64_t token)
{
    struct scp_thread *t, *next;
    list_for_each_entry_safe(t, next, &p->births, token_link)
    {
        if (t->token != token || !t->from_zygote)
            continue;
        int err = scp_aspace_attach(p, scp_aspace_of(t->base.aspace), pid);
        if (err == -ESRCH) {
            scp_birth_lost(p, t);
        } else if (err) {
            scp_kill_tid(pid);
            scp_birth_failed(p, token, err);
        }
        return;
    }
}

static void scp_zygote_doorbell(struct scp *p, const struct seccomp_notif *n)
{
    uint64_t seq = n->data.args[0], op = n->data.args[1];
    if (seq == p->zygote_seq && p->zygote_replied) {
        scp_send(p, n->id, (int64_t)p->zygote_reply, 0);
        return;
    }
    bool echo = seq == p->zygote_seq;
    p->zygote_seq = seq;
    p->zygote_replied = false;
    p->zygote_notif = n->id;
    p->zygote_clone_open = false;
    if (op == STUB_OP_CLONE_DONE) {
        p->zygote_replied = true;
        p->zygote_reply = 0;
        p->zygote_notif = 0;
        scp_send(p, n->id, 0, 0);
        scp_birth_failed(p, n->data.args[3], (int)(int64_t)n->data.args[2]);
        return;
    }
    if (!echo && n->data.args[2])
        scp_zygote_made(p, (pid_t)n->data.args[2], n->data.args[3]);
    scp_refill(p);
}

void scp_zygote_spawn(struct scp *p)
{
    if (!p->zygote_notif)
        return;
    struct scp_thread *t;
    list_for_each_entry(t, &p->births, token_link) {
        if (!t->zygote_wanted)
            continue;
        uint64_t id = p->zygote_notif;
        t->zygote_wanted = false;
        p->zygote_notif = 0;
        p->zygote_replied = true;
        p->zygote_reply = t->token;
        p->zygote_clone_open = true;
        scp_send(p, id, (int64_t)t->token, 0);
        return;
    }
}

/* Whether the thread may make the clone call that it asks for. A call that was let through comes again when a
 * signal or a freeze got in first, which the host knows by there being no child. */
static bool scp_clone_allowed(struct scp *p, struct scp_thread *t, uint64_t flags)
{
    if (!t || !t->clone_open || flags != t->clone_open || t->base.aspace->dead)
        return false;
    if (t->clone_passed++ == 0)
        return true;
    if (t->clone_passed > SCP_CLONE_TRIES || t->clone_child->state != SCP_UNBORN || scp_has_stray(p, t, flags)) {
        scp_violation(t, "it clones once more");
        return false;
    }
    return true;
}

static void scp_clone_call(struct scp *p, const struct seccomp_notif *n)
{
    pid_t tid = (pid_t)n->pid;
    bool open = tid == p->zygote_pid ? p->zygote_clone_open && n->data.args[0] == STUB_CLONE_FORK
                                     : scp_clone_allowed(p, scp_find(p, tid), n->data.args[0]);
    if (open)
        scp_send(p, n->id, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE);
    else
        scp_send(p, n->id, -EPERM, 0);
}

/* The notification of t came again: what it was answered with may have been lost. */
static void scp_echo(struct scp *p, struct scp_thread *t)
{
    if (t->replied) {
        scp_reply(p, t, t->reply);
    } else if (t->state == SCP_ENDED) {
        scp_thread_release(p, t);
    } else if (t->send) {
        return; /* its outcome will tell */
    } else if (t->answer_due) {
        t->answer_due = false;
        scp_answer(p, t);
    } else if (t->fiber) {
        p->config.ready(t->fiber);
    }
}

/* Takes a ring with a number not seen before. */
static void scp_ring(struct scp *p, struct scp_thread *t, uint64_t op)
{
    if (t->state == SCP_ENDED) {
        if (!t->released)
            scp_thread_release(p, t);
        else if (t->tid != t->base.aspace->host_pid)
            scp_violation(t, "it goes on after its end");
        /* A leader stays here until its process goes. */
    } else if (t->await_op) {
        if (op != t->await_op) {
            scp_violation(t, "it rings with an operation that was not asked for");
            return;
        }
        t->await_op = 0;
        t->clone_open = 0;
        t->state = SCP_STOPPED;
        if (t->warming)
            scp_pool_add(p, t);
        else
            scp_wake(p, t);
    } else if (t->state != SCP_RUNNING || !t->base.owner) {
        scp_violation(t, "it rings while it is not running");
    } else {
        scp_event(p, t, op);
    }
}

static void scp_doorbell(struct scp *p, const struct seccomp_notif *n)
{
    uint64_t seq = n->data.args[0], op = n->data.args[1];
    struct scp_thread *t = scp_find(p, (pid_t)n->pid);
    if (op == STUB_OP_BIRTH && !(t && t->birth && t->seq == seq)) {
        scp_birth(p, (pid_t)n->pid, n->id, seq, n->data.args[2]);
        return;
    }
    if (!t) {
        scp_kill_unknown(p, (pid_t)n->pid, n->id);
        return;
    }
    if (t->base.aspace->dead)
        return; /* the notification ends with its process */
    t->notif_id = n->id;
    if (t->seq == seq) {
        t->posted = false;
        scp_echo(p, t);
        return;
    }
    scp_take(p, t, n->id, seq, op);
}

void scp_take(struct scp *p, struct scp_thread *t, uint64_t id, uint64_t seq, uint64_t op)
{
    t->notif_id = id;
    t->posted = !id;
    t->seq = seq;
    t->birth = false;
    t->replied = t->answer_due = false;
    scp_send_done(t);
    scp_look_came(p, t);
    scp_ring(p, t, op);
}

void scp_listener_ready(void *arg)
{
    struct scp *p = arg;
    struct seccomp_notif n;
    memset(&n, 0, sizeof(n)); /* the kernel insists */
    int err = (int)host_ret(ioctl(p->listener, SECCOMP_IOCTL_NOTIF_RECV, &n));
    if (err < 0) {
        /* −ENOENT: its thread died meanwhile, or nobody is left under the filter. */
        struct pollfd hup = {.fd = p->listener};
        if (poll(&hup, 1, 0) == 1 && (hup.revents & POLLHUP))
            scp_zygote_died(p);
        return;
    }
    if (n.data.nr == SYS_clone)
        scp_clone_call(p, &n);
    else if ((pid_t)n.pid == p->zygote_pid)
        scp_zygote_doorbell(p, &n);
    else
        scp_doorbell(p, &n);
}
