/* SPDX-License-Identifier: Apache-2.0 */
/* The sentry's end of the doorbell: seccomp notifications in, answers out.
 *
 * Whose call a notification is, the kernel says (its tid). A notification that a signal or a freeze interrupts comes
 * again under a new id with the same sequence number; an answer may be lost in the same way even after it was
 * accepted, so the last answer is kept until the next number. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "platform/base/host.h"
#include "platform/base/log.h"
#include "platform/seccomp/seccomp_priv.h"

static struct scp_thread *scp_find(struct scp *p, pid_t tid)
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
    /* −ENOENT: interrupted meanwhile; the echo will ask again. */
    if (id && scp_send(p, id, value, 0) < 0)
        t->notif_id = 0;
}

int scp_inject(struct scp *p, struct scp_thread *t, int fd)
{
    for (;;) {
        struct seccomp_notif_addfd add = {
            .id = t->notif_id,
            .srcfd = (uint32_t)fd,
            .newfd_flags = 02000000, /* O_CLOEXEC: nothing execs, but say so */
        };
        int r = t->notif_id ? (int)host_ret(ioctl(p->listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add)) : -ENOENT;
        void *self = p->config.self();
        if (r != -ENOENT || !self || t->base.aspace->dead)
            return r;
        /* Interrupted: the echo brings a new id, or the process is dying. */
        void *before = t->fiber;
        t->notif_id = 0;
        t->fiber = self;
        while (!t->notif_id && !t->base.aspace->dead)
            p->config.park();
        t->fiber = before;
    }
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
    uint32_t fpu = m->fpu_size;
    /* The size of the host's frames: the same for all, and it sizes nothing of ours. */
    if (fpu >= 512 && fpu <= 16384 && t->base.aspace->platform->fpu_size == 0)
        t->base.aspace->platform->fpu_size = fpu;
}

static void scp_event(struct scp *p, struct scp_thread *t, uint64_t op)
{
    const volatile struct stub_mailbox *m = t->mbox;
    struct plat_event ev = {.kind = PLAT_EVENT_SYSCALL};
    if (t->state == SCP_ENDED || !t->base.owner) {
        scp_thread_release(p, t, 0);
        return;
    }
    t->base.stopped = true;
    t->state = SCP_STOPPED;
    if (op == STUB_OP_FPU_FAULT || op == STUB_OP_OUT_FAULT) {
        ev = (struct plat_event){.kind = PLAT_EVENT_FAULT, .signo = SIGSEGV, .code = SI_KERNEL, .trapno = 14};
    } else {
        scp_import_regs(t);
        t->base.regs.orig_rax = (uint64_t)-1;
    }
    switch (op) {
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
    }
    p->base.client->on_event(&t->base, t->base.owner, &ev);
}

/* A host thread that nobody awaits: it came from a clone that failed here, or a guest made it up. */
static void scp_kill_unknown(struct scp *p, pid_t tid, uint64_t id)
{
    if (ioctl(p->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0)
        syscall(SYS_tkill, tid, SIGKILL); /* takes its whole process */
    scp_send(p, id, -ENOSYS, 0);
}

static void scp_birth(struct scp *p, pid_t tid, uint64_t id, uint64_t seq, uint64_t token)
{
    struct scp_thread *t, *found = NULL;
    list_for_each_entry(t, &p->births, token_link)
        if (t->token == token)
            found = t;
    if (!found) {
        scp_kill_unknown(p, tid, id);
        return;
    }
    struct scp_thread *stale = scp_find(p, tid);
    if (stale) /* that thread has exited: the host gave its number to this one */
        list_del(&stale->hash_link);
    list_del(&found->token_link);
    found->tid = tid;
    found->seq = seq;
    found->notif_id = id;
    found->replied = false;
    found->state = SCP_HELD;
    list_add(&p->hash[(unsigned)tid % SCP_HASH], &found->hash_link);
    scp_thread_born(p, found);
}

static void scp_zygote_doorbell(struct scp *p, const struct seccomp_notif *n)
{
    uint64_t seq = n->data.args[0], op = n->data.args[1];
    if (seq == p->zygote_seq && p->zygote_replied) {
        scp_send(p, n->id, (int64_t)p->zygote_reply, 0);
        return;
    }
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

static void scp_clone_call(struct scp *p, const struct seccomp_notif *n)
{
    bool open;
    if ((pid_t)n->pid == p->zygote_pid) {
        open = p->zygote_clone_open && n->data.args[0] == STUB_CLONE_FORK;
    } else {
        struct scp_thread *t = scp_find(p, (pid_t)n->pid);
        open = t && t->clone_open && n->data.args[0] == t->clone_open;
    }
    if (open)
        scp_send(p, n->id, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE);
    else
        scp_send(p, n->id, -EPERM, 0);
}

static void scp_doorbell(struct scp *p, const struct seccomp_notif *n)
{
    uint64_t seq = n->data.args[0], op = n->data.args[1];
    struct scp_thread *t = scp_find(p, (pid_t)n->pid);
    if (op == STUB_OP_BIRTH && (!t || t->seq != seq || t->state != SCP_HELD)) {
        if (!(t && t->seq == seq && t->replied)) {
            scp_birth(p, (pid_t)n->pid, n->id, seq, n->data.args[2]);
            return;
        }
    }
    if (!t) {
        scp_kill_unknown(p, (pid_t)n->pid, n->id);
        return;
    }
    if (t->seq == seq) { /* an echo */
        t->notif_id = n->id;
        if (t->replied)
            scp_reply(p, t, t->reply);
        else if (t->state == SCP_ENDED)
            scp_thread_release(p, t, 0);
        else if (t->fiber)
            p->config.ready(t->fiber);
        return;
    }
    t->seq = seq;
    t->replied = false;
    t->notif_id = n->id;
    t->clone_open = 0;
    if (op == STUB_OP_CALLS_DONE || op == STUB_OP_CLONE_DONE) {
        if (t->state == SCP_ENDED)
            return; /* a parked leader: stays here until its process goes */
        t->state = SCP_STOPPED;
        scp_wake(p, t);
        return;
    }
    scp_event(p, t, op);
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
