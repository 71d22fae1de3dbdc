/* SPDX-License-Identifier: Apache-2.0 */
/* Filters of the guests' own programs. A filter never changes; what a task has is the youngest of a chain. */
#include "sentry/kernel/guest_seccomp.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "platform/base/log.h"
#include "sentry/core/limits.h"
#include "sentry/kernel/fdtable.h"
#include "sentry/kernel/guest_seccomp_priv.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/ptrace.h"
#include "sentry/kernel/task.h"
#include "sentry/vfs/file.h"

enum { CHAIN_MAX = 32768, CHAIN_EACH = 4, ERRNO_MAX = 4095, HANDLER_DFL = 0, SYS_SECCOMP_K = 1 /* si_code */ };
enum { ALLOW_WORDS = 2 /* number and architecture, the words that do not differ between calls of one number */ };

_Static_assert(sizeof(struct seccomp_data) == 64, "the words that programs see");

/* By falling precedence; bit i of a set stands for the i-th. */
static const struct {
    const char *name;
    uint32_t action;
} actions[] = {
    {"kill_process", SECCOMP_RET_KILL_PROCESS}, {"kill_thread", SECCOMP_RET_KILL_THREAD}, {"trap", SECCOMP_RET_TRAP},
    {"errno", SECCOMP_RET_ERRNO}, {"user_notif", SECCOMP_RET_USER_NOTIF}, {"trace", SECCOMP_RET_TRACE},
    {"log", SECCOMP_RET_LOG}, {"allow", SECCOMP_RET_ALLOW},
};

unsigned guest_seccomp_action_bit(const char *name, unsigned len)
{
    for (unsigned i = 0; i < ARRAY_SIZE(actions); i++)
        if (strlen(actions[i].name) == len && !memcmp(actions[i].name, name, len))
            return 1u << i;
    return 0;
}

void guest_seccomp_put_actions(struct buf *out, unsigned bits)
{
    const char *gap = "";

    for (unsigned i = 0; i < ARRAY_SIZE(actions); i++) {
        if (!(bits >> i & 1))
            continue;
        buf_printf(out, "%s%s", gap, actions[i].name);
        gap = " ";
    }
}

static unsigned action_bit(uint32_t action)
{
    for (unsigned i = 0; i < ARRAY_SIZE(actions); i++)
        if (actions[i].action == action)
            return 1u << i;
    return 0;
}

bool guest_seccomp_action_known(uint32_t action)
{
    return action_bit(action) != 0;
}

/* ---- the tree ---- */

struct seccomp_filter *guest_filter_ref(struct seccomp_filter *f)
{
    ref_get(&f->ref);
    return f;
}

void guest_filter_unref(struct seccomp_filter *f)
{
    while (f && ref_put(&f->ref)) {
        struct seccomp_filter *prev = f->prev;

        limit_uncharge(LIMIT_KIND_SECCOMP_INSNS, f->len + CHAIN_EACH);
        guest_listener_free(f->listener);
        mem_free(f);
        f = prev;
    }
}

static void users_drop(struct seccomp_filter *f)
{
    for (; f && --f->users == 0; f = f->prev)
        if (f->listener)
            guest_listener_hangup(f->listener);
}

static bool has_listener(const struct seccomp_filter *f)
{
    for (; f; f = f->prev)
        if (f->listener && !f->listener->closed)
            return true;
    return false;
}

static bool is_above(const struct seccomp_filter *older, const struct seccomp_filter *f)
{
    if (!older)
        return true;
    while (f && f != older)
        f = f->prev;
    return f != NULL;
}

/* Which calls the program, or an older one, does anything to but allowing them. What it says without a look at more than the
 * number is the same for every call. */
static void fill_ask(struct seccomp_filter *f)
{
    for (uint32_t nr = 0; nr < PLAT_ASK_CALLS; nr++) {
        uint32_t words[ALLOW_WORDS] = {nr, AUDIT_ARCH_X86_64};
        bool unknown;
        uint32_t value = cbpf_run(f->prog, words, ALLOW_WORDS, &unknown);

        if (unknown || (value & SECCOMP_RET_ACTION_FULL) != SECCOMP_RET_ALLOW)
            f->ask[nr / 64] |= 1ULL << (nr % 64);
    }
    for (unsigned i = 0; f->prev && i < ARRAY_SIZE(f->ask); i++)
        f->ask[i] |= f->prev->ask[i];
}

/* A filter on top of t's, which nobody uses yet. */
static int filter_new(const struct task *t, const struct cbpf_insn *prog, uint32_t len, uint64_t flags,
                      struct seccomp_filter **ret_filter)
{
    struct seccomp_filter *f;
    uint32_t total;

    if (!cbpf_check(prog, len, sizeof(struct seccomp_data)))
        return -EINVAL;
    total = cbpf_cost(prog, len) + (t->seccomp ? t->seccomp->total + CHAIN_EACH : 0);
    if ((flags & SECCOMP_FILTER_FLAG_NEW_LISTENER) && has_listener(t->seccomp))
        return -EBUSY;
    if (total > CHAIN_MAX || limit_charge(LIMIT_KIND_SECCOMP_INSNS, len + CHAIN_EACH))
        return -ENOMEM;
    f = mem_zalloc(sizeof(*f) + len * sizeof(*prog));
    if (!f) {
        limit_uncharge(LIMIT_KIND_SECCOMP_INSNS, len + CHAIN_EACH);
        return -ENOMEM;
    }
    ref_init(&f->ref);
    f->users = 1;
    f->len = len;
    f->total = total;
    f->count = 1 + guest_seccomp_count(t);
    f->log = flags & SECCOMP_FILTER_FLAG_LOG;
    memcpy(f->prog, prog, len * sizeof(*prog));
    f->prev = t->seccomp; /* lent until the filter is in force */
    fill_ask(f);
    if (flags & SECCOMP_FILTER_FLAG_NEW_LISTENER) {
        f->listener = guest_listener_new(flags & SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);
        if (!f->listener) {
            f->prev = NULL;
            guest_filter_unref(f);
            return -ENOMEM;
        }
    }
    *ret_filter = f;
    return 0;
}

/* Return: a thread that has gone another way, which can't be led back, or NULL. */
static struct task *cannot_follow(const struct task *t)
{
    for (struct task *o = tgroup_first(t->group); o; o = tgroup_next(t->group, o)) {
        if (o == t || o->exiting || o->seccomp_mode == SECCOMP_MODE_DISABLED)
            continue;
        if (o->seccomp_mode != SECCOMP_MODE_FILTER || !is_above(o->seccomp, t->seccomp))
            return o;
    }
    return NULL;
}

static void lead(const struct task *t)
{
    for (struct task *o = tgroup_first(t->group); o; o = tgroup_next(t->group, o)) {
        struct seccomp_filter *before = o->seccomp;

        if (o == t || o->exiting)
            continue;
        o->seccomp = guest_filter_ref(t->seccomp);
        o->seccomp->users++;
        o->seccomp_mode = SECCOMP_MODE_FILTER;
        o->no_new_privs |= t->no_new_privs;
        users_drop(before);
        guest_filter_unref(before);
        task_publish_self(o);
    }
}

int guest_seccomp_set_strict(struct task *t)
{
    if (t->seccomp_mode == SECCOMP_MODE_FILTER)
        return -EINVAL;
    t->seccomp_mode = SECCOMP_MODE_STRICT;
    task_publish_self(t);
    return 0;
}

int64_t guest_seccomp_set_filter(struct task *t, uint64_t flags, const struct cbpf_insn *prog, uint32_t len)
{
    struct seccomp_filter *f = NULL;
    struct file *file = NULL;
    struct task *other;
    int fd = -1;
    int64_t r = t->seccomp_mode == SECCOMP_MODE_STRICT ? -EINVAL : filter_new(t, prog, len, flags, &f);

    if (r)
        return r;
    if ((flags & SECCOMP_FILTER_FLAG_TSYNC) && (other = cannot_follow(t)))
        r = flags & SECCOMP_FILTER_FLAG_TSYNC_ESRCH ? -ESRCH : task_tid_for(other, t);
    if (!r && f->listener) {
        r = fd = fdtable_reserve(t, 0);
        file = fd >= 0 ? guest_listener_file(f, t) : NULL;
        if (fd >= 0 && !file) {
            fdtable_unreserve(t, fd);
            r = -ENOMEM;
        }
    }
    if (r < 0 || (r && fd < 0)) {
        f->prev = NULL;
        guest_filter_unref(f);
        return r;
    }
    /* The reference that t had of the older one, and its use, are the new one's. */
    t->seccomp = f;
    t->seccomp_mode = SECCOMP_MODE_FILTER;
    if (t->thread)
        task_publish_self(t);
    if (flags & SECCOMP_FILTER_FLAG_TSYNC)
        lead(t);
    if (file)
        fdtable_install(t, fd, file, true);
    return r;
}

void guest_seccomp_fork(const struct task *t, struct task *c)
{
    c->seccomp_mode = t->seccomp_mode;
    if (!t->seccomp)
        return;
    c->seccomp = guest_filter_ref(t->seccomp);
    c->seccomp->users++;
    c->no_new_privs = t->no_new_privs;
}

void guest_seccomp_exit(struct task *t)
{
    struct seccomp_filter *f = t->seccomp;

    t->seccomp = NULL;
    t->seccomp_mode = SECCOMP_MODE_DISABLED;
    users_drop(f);
    guest_filter_unref(f);
}

unsigned guest_seccomp_count(const struct task *t)
{
    return t->seccomp ? t->seccomp->count : 0;
}

bool guest_seccomp_asks(const struct task *t, uint64_t nr)
{
    if (t->seccomp_mode != SECCOMP_MODE_FILTER)
        return t->seccomp_mode == SECCOMP_MODE_STRICT;
    return nr >= PLAT_ASK_CALLS || (t->seccomp->ask[nr / 64] >> (nr % 64) & 1);
}

void guest_seccomp_publish(const struct task *t, volatile struct plat_shared *s)
{
    if (t->seccomp_mode != SECCOMP_MODE_FILTER) {
        s->ask_how = t->seccomp_mode == SECCOMP_MODE_STRICT ? PLAT_ASK_ALL : PLAT_ASK_NONE;
        return;
    }
    for (unsigned i = 0; i < ARRAY_SIZE(t->seccomp->ask); i++)
        s->ask[i] = t->seccomp->ask[i];
    s->ask_how = PLAT_ASK_SOME;
}

/* ---- judging ---- */

enum { LOG_BURST = 10 };
#define LOG_WINDOW_NS 5000000000ULL

/* Notes an action in the log: those that end something and LOG always, others when the filter asks for it; never one that
 * /proc/sys/kernel/seccomp/actions_logged leaves out. */
static void note(const struct task *t, uint32_t action, uint32_t nr, int signo, bool asked)
{
    struct kernel *k = t->kernel;
    uint64_t now;

    if (action == SECCOMP_RET_ALLOW || (k->seccomp_unlogged & action_bit(action)))
        return;
    if (!asked && action != SECCOMP_RET_LOG && action != SECCOMP_RET_KILL_THREAD && action_bit(action) &&
        action != SECCOMP_RET_KILL_PROCESS)
        return;
    if (!log_enabled(LOG_LEVEL_DEBUG))
        return;
    now = host_monotonic_ns();
    if (now - k->seccomp_log_start_ns >= LOG_WINDOW_NS) {
        k->seccomp_log_start_ns = now;
        k->seccomp_logged = 0;
    }
    if (k->seccomp_logged++ >= LOG_BURST)
        return;
    log_debug("seccomp: uid=%u pid=%d comm=\"%s\" sig=%d syscall=%u ip=0x%llx code=0x%x", t->ctx.cred->uid,
              task_tid_in(t, t->group->container->pidns), t->comm, signo, nr, (unsigned long long)t->thread->regs.rip, action);
}

static void fill_signal(const struct task *t, siginfo_t *info, uint32_t nr, uint32_t data)
{
    siginfo_kernel(info, SIGSYS, SYS_SECCOMP_K);
    info->si_errno = (int)data;
    info->si_call_addr = (void *)(uintptr_t)t->thread->regs.rip;
    info->si_syscall = (int)nr;
    info->si_arch = AUDIT_ARCH_X86_64;
}

static void end_thread(struct task *t, int signo)
{
    t->exit_code = signo;
    t->exiting = true;
    signal_recalc(t);
}

static void kill_caller(struct task *t, uint32_t action, uint32_t nr, uint32_t data)
{
    siginfo_t info;

    if (action == SECCOMP_RET_KILL_THREAD && t->group->thread_count > 1) {
        end_thread(t, SIGSYS);
        return;
    }
    fill_signal(t, &info, nr, data);
    t->group->sighand->actions[SIGSYS - 1].handler = HANDLER_DFL;
    signal_force(t, &info);
}

static enum guest_seccomp_verdict strict(struct task *t, uint32_t nr)
{
    if (nr == SYS_read || nr == SYS_write || nr == SYS_exit || nr == SYS_rt_sigreturn)
        return GUEST_SECCOMP_RUN;
    note(t, SECCOMP_RET_KILL_THREAD, nr, SIGKILL, true);
    end_thread(t, SIGKILL);
    return GUEST_SECCOMP_LEAVE;
}

/* The strongest of the filters' answers, and which one gave it: among equals the youngest. */
static uint32_t judge(struct seccomp_filter *youngest, const struct seccomp_data *data, struct seccomp_filter **ret_by)
{
    uint32_t words[sizeof(*data) / sizeof(uint32_t)], best = SECCOMP_RET_ALLOW;

    memcpy(words, data, sizeof(words));
    for (struct seccomp_filter *f = youngest; f; f = f->prev) {
        uint32_t value = cbpf_run(f->prog, words, ARRAY_SIZE(words), NULL);

        if ((int32_t)(value & SECCOMP_RET_ACTION_FULL) < (int32_t)(best & SECCOMP_RET_ACTION_FULL)) {
            best = value;
            *ret_by = f;
        }
    }
    return best;
}

static enum guest_seccomp_verdict notify(struct task *t, struct seccomp_filter *by, const struct seccomp_data *data,
                                         int64_t *ret_result)
{
    bool run;

    guest_filter_ref(by); /* a sibling may put another one in its place while we wait */
    run = guest_notif_ask(t, by, data, ret_result);
    guest_filter_unref(by);
    return run ? GUEST_SECCOMP_RUN : GUEST_SECCOMP_RESULT;
}

/* What the tracer makes of the call is judged again, but for this action. */
static enum guest_seccomp_verdict ask_tracer(struct task *t, uint32_t data, int64_t *ret_result)
{
    if (ptrace_event_seccomp(t, (uint16_t)data) && !t->ctx.fatal_pending &&
        (int64_t)t->thread->regs.orig_rax != -1)
        return guest_seccomp_enter(t, true, ret_result);
    *ret_result = t->thread ? (int64_t)t->thread->regs.rax : -ENOSYS; /* −ENOSYS, unless the tracer had another idea */
    return GUEST_SECCOMP_RESULT;
}

enum guest_seccomp_verdict guest_seccomp_enter(struct task *t, bool traced, int64_t *ret_result)
{
    struct seccomp_data sd = {.nr = (int)t->sysno, .arch = AUDIT_ARCH_X86_64, .instruction_pointer = t->thread->regs.rip};
    uint32_t nr = (uint32_t)t->sysno, value, action, data;
    struct seccomp_filter *by = NULL;
    siginfo_t info;

    if (ptrace_seccomp_suspended(t))
        return GUEST_SECCOMP_RUN;
    if (t->seccomp_mode == SECCOMP_MODE_STRICT)
        return strict(t, nr);
    if (!guest_seccomp_asks(t, nr))
        return GUEST_SECCOMP_RUN;
    for (unsigned i = 0; i < ARRAY_SIZE(sd.args); i++)
        sd.args[i] = t->sysargs[i];
    value = judge(t->seccomp, &sd, &by);
    action = value & SECCOMP_RET_ACTION_FULL;
    data = value & SECCOMP_RET_DATA;
    switch (action) {
    case SECCOMP_RET_ALLOW:
        return GUEST_SECCOMP_RUN;
    case SECCOMP_RET_LOG:
        note(t, action, nr, 0, true);
        return GUEST_SECCOMP_RUN;
    case SECCOMP_RET_ERRNO:
        note(t, action, nr, 0, by->log);
        *ret_result = -(int64_t)MIN(data, (uint32_t)ERRNO_MAX);
        return GUEST_SECCOMP_RESULT;
    case SECCOMP_RET_TRACE:
        if (traced)
            return GUEST_SECCOMP_RUN;
        note(t, action, nr, 0, by->log);
        return ask_tracer(t, data, ret_result);
    case SECCOMP_RET_USER_NOTIF:
        note(t, action, nr, 0, by->log);
        return notify(t, by, &sd, ret_result);
    case SECCOMP_RET_TRAP:
        note(t, action, nr, SIGSYS, by->log);
        fill_signal(t, &info, nr, data);
        signal_force(t, &info);
        return GUEST_SECCOMP_LEAVE;
    default: /* KILL_THREAD, KILL_PROCESS, and what nobody knows */
        note(t, action, nr, SIGSYS, true);
        kill_caller(t, action, nr, data);
        return GUEST_SECCOMP_LEAVE;
    }
}
