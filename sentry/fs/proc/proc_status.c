/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of a process: stat, status, statm, limits. Source: proc(5). */
#include "sentry/fs/proc/proc_pid.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "platform/base/host.h"
#include "sentry/core/ucount.h"
#include "sentry/fs/tty.h"
#include "sentry/kernel/affinity.h"
#include "sentry/kernel/fdtable.h"
#include "sentry/kernel/fsctx.h"
#include "sentry/kernel/guest_seccomp.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/ptrace.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/timens.h"
#include "sentry/mm/maps.h"
#include "sentry/mm/mm.h"

enum { TICK_NS = 10000000, PF_RANDOMIZE_BIT = 0x00400000 };

typedef unsigned long long ull;

/* Memory figures of c's task; zeros when it has none any more. Parks. Return: 0, or −ESRCH when the task went meanwhile. */
static int get_usage(struct proc_call *c, struct mm_usage *u, bool *ret_has_mm)
{
    struct mm *mm = c->task->mm;

    *u = (struct mm_usage){0};
    *ret_has_mm = mm != NULL;
    if (mm) {
        mm_ref(mm);
        if (mm_get_usage(c->ctx, mm, u))
            *u = (struct mm_usage){0};
        mm_unref(mm);
    }
    return c->task->pid && c->task->group->leader && c->task->group->leader->pid ? 0 : -ESRCH;
}

/* A name may hold anything; line breaks would break the format. */
static void put_comm(struct buf *out, const char *comm)
{
    for (; *comm; comm++) {
        if (*comm == '\n')
            buf_puts(out, "\\n");
        else if (*comm == '\\')
            buf_puts(out, "\\\\");
        else
            buf_putc(out, *comm);
    }
}

static int parent_pid(const struct proc_call *c)
{
    const struct tgroup *p = c->task->group->parent;

    return p && p->leader && p->leader->pid ? tgroup_pid_in(p, c->ns) : 0;
}

static int tracer_pid(const struct proc_call *c)
{
    const struct ptrace_state *p = ptrace_of(c->task);

    return p ? task_tid_in(p->tracer, c->ns) : 0;
}

/* A thread that is in guest code for us may sleep on a futex there. The host's state is known of the first thread; of
 * others, whether they used the CPU while we were looking (from cpu_ns on). */
static char state_of(const struct proc_call *c, const struct mm_usage *u, uint64_t cpu_ns)
{
    const struct tgroup *g = c->task->group;

    if (ptrace_is_stopped(c->task))
        return 't';
    if (c->whole && g->stopped && !g->zombie)
        return 'T';
    if (c->task->state == TASK_GUEST &&
        (c->task == g->leader ? u->state == 'S' : task_cpu_ns(c->task) == cpu_ns))
        return 'S';
    return task_state_char(c->task);
}

static void handler_sets(const struct task *t, sigset_k *ret_ignored, sigset_k *ret_caught)
{
    const struct sighand *s = t->group->sighand;

    *ret_ignored = *ret_caught = 0;
    for (int n = 1; s && n <= NSIG_K; n++) {
        if (s->actions[n - 1].handler == (uint64_t)(uintptr_t)SIG_IGN)
            *ret_ignored |= SIGBIT(n);
        else if (s->actions[n - 1].handler != (uint64_t)(uintptr_t)SIG_DFL)
            *ret_caught |= SIGBIT(n);
    }
}

/* ---- stat ---- */

struct times {
    uint64_t utime, stime, cutime, cstime, start;
};

static struct times get_times(const struct proc_call *c)
{
    const struct task *t = c->task;
    const struct tgroup *g = t->group;
    struct times x = {.cutime = g->cutime_ns, .cstime = g->cstime_ns};

    x.utime = c->whole ? tgroup_cpu_ns(g) : task_cpu_ns(t);
    x.stime = c->whole ? g->stime_ns : t->stime_ns;
    x.start = timens_from_host(c->viewer && c->viewer->ns ? timens_offset(c->viewer->ns->time, CLOCK_BOOTTIME) : 0,
                               (c->whole ? g->start_ns : t->start_ns) - t->kernel->boot_ns);
    return x;
}

static void put_stat_memory(struct proc_call *c, const struct mm_usage *u, struct buf *out)
{
    const struct mm *mm = c->task->mm;
    bool open = proc_may_access(c, c->task);

    buf_printf(out, " %llu %llu %llu", (ull)u->size, (ull)(u->resident / PAGE_SIZE),
               (ull)c->task->group->rlimits[RLIMIT_RSS].rlim_cur);
    buf_printf(out, " %llu %llu %llu 0 0", (ull)(!mm ? 0 : open ? mm->code_start : 1),
               (ull)(!mm ? 0 : open ? mm->code_end : 1), (ull)(mm && open ? mm->stack_start : 0));
}

static void put_stat_end(struct proc_call *c, struct buf *out)
{
    const struct task *t = c->task;
    const struct mm *mm = t->mm;
    int code = t->group->zombie ? t->group->exit_status : t->exit_code;

    if (mm && proc_may_access(c, t))
        buf_printf(out, " %llu %llu %llu %llu %llu %llu %llu", (ull)mm->data_start, (ull)mm->data_end,
                   (ull)mm->brk_start, (ull)mm->arg_start, (ull)mm->arg_end, (ull)mm->env_start,
                   (ull)mm->env_end);
    else
        buf_puts(out, " 0 0 0 0 0 0 0");
    buf_printf(out, " %d\n", proc_may_access(c, t) ? code : 0);
}

int proc_show_stat(struct proc_call *c, struct buf *out)
{
    struct task *t = c->task;
    struct tgroup *g = t->group;
    sigset_k ignored, caught;
    struct mm_usage u;
    struct times x;
    uint64_t cpu_ns = task_cpu_ns(t);
    uint32_t tty_nr;
    int tpgid, r;
    bool has_mm;

    r = get_usage(c, &u, &has_mm);
    if (r)
        return r;
    x = get_times(c);
    handler_sets(t, &ignored, &caught);
    tty_nr = tty_proc_numbers(g, c->ns, &tpgid);
    buf_printf(out, "%d (", c->whole ? tgroup_pid_in(g, c->ns) : task_tid_in(t, c->ns));
    put_comm(out, t->comm);
    buf_printf(out, ") %c %d %d %d %u %d %u", state_of(c, &u, cpu_ns), parent_pid(c), pgrp_id_in(g->pgrp, c->ns),
               g->pgrp ? session_id_in(g->pgrp->session, c->ns) : 0, tty_nr, tpgid, PF_RANDOMIZE_BIT);
    buf_printf(out, " %llu %llu %llu %llu", (ull)(c->whole ? g->min_flt + t->min_flt : t->min_flt),
               (ull)g->cmin_flt, (ull)(c->whole ? g->maj_flt + t->maj_flt : t->maj_flt), (ull)g->cmaj_flt);
    buf_printf(out, " %llu %llu %llu %llu", (ull)(x.utime / TICK_NS), (ull)(x.stime / TICK_NS),
               (ull)(x.cutime / TICK_NS), (ull)(x.cstime / TICK_NS));
    buf_printf(out, " %d %d %u 0 %llu", t->sched.policy == 1 || t->sched.policy == 2 ? -1 - t->sched.priority
                                                                                     : 20 + t->nice,
               t->nice, g->thread_count, (ull)(x.start / TICK_NS));
    put_stat_memory(c, &u, out);
    /* The old signal fields hold the first 31 signals only. */
    buf_printf(out, " %llu %llu %llu %llu 0 0 0", (ull)(t->pending.set & 0x7fffffff),
               (ull)(signal_blocked(t) & 0x7fffffff), (ull)(ignored & 0x7fffffff), (ull)(caught & 0x7fffffff));
    buf_printf(out, " %d 0 %d %d 0 0 0", c->whole ? g->exit_signal : -1, t->sched.priority, t->sched.policy);
    put_stat_end(c, out);
    return buf_error(out);
}

int proc_show_statm(struct proc_call *c, struct buf *out)
{
    struct mm_usage u;
    bool has_mm;
    int r = get_usage(c, &u, &has_mm);

    if (r)
        return r;
    buf_printf(out, "%llu %llu %llu %llu 0 %llu 0\n", (ull)(u.size / PAGE_SIZE), (ull)(u.resident / PAGE_SIZE),
               (ull)((u.file + u.shmem) / PAGE_SIZE), (ull)(u.text / PAGE_SIZE),
               (ull)((u.data + u.stack) / PAGE_SIZE));
    return buf_error(out);
}

/* ---- status ---- */

static const char *state_name(char state)
{
    switch (state) {
    case 'R':
        return "R (running)";
    case 'S':
        return "S (sleeping)";
    case 'D':
        return "D (disk sleep)";
    case 'T':
        return "T (stopped)";
    case 't':
        return "t (tracing stop)";
    case 'Z':
        return "Z (zombie)";
    default:
        return "X (dead)";
    }
}

static void put_numbers(struct buf *out, const char *label, const struct pid *pid, const struct pidns *ns)
{
    buf_puts(out, label);
    for (unsigned level = ns->level; pid && level <= pid->level; level++)
        buf_printf(out, "\t%d", pid->numbers[level]);
    buf_putc(out, '\n');
}

static void put_ids(struct proc_call *c, const struct mm_usage *u, uint64_t cpu_ns, struct buf *out)
{
    const struct task *t = c->task;
    const struct tgroup *g = t->group;
    const struct cred *cred = t->ctx.cred;
    const struct userns *ns = c->ctx && c->ctx->cred ? c->ctx->cred->userns : NULL; /* the reader's */
    uint32_t fds = t->files ? t->files->capacity : 0;

    buf_puts(out, "Name:\t");
    put_comm(out, t->comm);
    if (t->fs)
        buf_printf(out, "\nUmask:\t%04o", t->fs->umask);
    buf_printf(out, "\nState:\t%s\nTgid:\t%d\nNgid:\t0\nPid:\t%d\nPPid:\t%d\nTracerPid:\t%d\n",
               state_name(state_of(c, u, cpu_ns)), tgroup_pid_in(g, c->ns), task_tid_in(t, c->ns), parent_pid(c),
               tracer_pid(c));
    buf_printf(out, "Uid:\t%u\t%u\t%u\t%u\n", userns_uid_shown(ns, cred->uid), userns_uid_shown(ns, cred->euid),
               userns_uid_shown(ns, cred->suid), userns_uid_shown(ns, cred->fsuid));
    buf_printf(out, "Gid:\t%u\t%u\t%u\t%u\n", userns_gid_shown(ns, cred->gid), userns_gid_shown(ns, cred->egid),
               userns_gid_shown(ns, cred->sgid), userns_gid_shown(ns, cred->fsgid));
    buf_printf(out, "FDSize:\t%u\nGroups:\t", fds);
    for (uint32_t i = 0; i < cred->groups_len; i++)
        buf_printf(out, i ? " %u" : "%u", userns_gid_shown(ns, cred->groups[i]));
    buf_puts(out, " \n"); /* with a blank at the end, groups or not */
    put_numbers(out, "NStgid:", g->leader->pid, c->ns);
    put_numbers(out, "NSpid:", t->pid, c->ns);
    put_numbers(out, "NSpgid:", g->pgrp ? g->pgrp->pid : NULL, c->ns);
    put_numbers(out, "NSsid:", g->pgrp ? g->pgrp->session->pid : NULL, c->ns);
    buf_puts(out, "Kthread:\t0\n");
}

static void put_memory(const struct mm_usage *u, struct buf *out)
{
    const struct {
        const char *label;
        uint64_t bytes;
    } rows[] = {
        {"VmPeak", MAX(u->size_peak, u->size)},
        {"VmSize", u->size},
        {"VmLck", u->locked},
        {"VmPin", 0},
        {"VmHWM", MAX(u->resident_peak, u->resident)},
        {"VmRSS", u->resident},
        {"RssAnon", u->anon},
        {"RssFile", u->file},
        {"RssShmem", u->shmem},
        {"VmData", u->data},
        {"VmStk", u->stack},
        {"VmExe", u->text},
        {"VmLib", u->lib},
        {"VmPTE", u->page_tables},
        {"VmSwap", u->swap},
        {"HugetlbPages", 0},
    };

    for (unsigned i = 0; i < ARRAY_SIZE(rows); i++)
        buf_printf(out, "%s:\t%8llu kB\n", rows[i].label, (ull)(rows[i].bytes / 1024));
    buf_puts(out, "CoreDumping:\t0\nTHP_enabled:\t1\nuntag_mask:\t0xffffffffffffffff\n");
}

static void put_signals(struct proc_call *c, struct buf *out)
{
    struct task *t = c->task;
    const struct tgroup *g = t->group;
    sigset_k ignored, caught;

    handler_sets(t, &ignored, &caught);
    buf_printf(out, "Threads:\t%u\nSigQ:\t%llu/%llu\n", g->thread_count,
               (ull)ucount_used(UCOUNT_SIGPENDING, t->ctx.cred->uid),
               (ull)g->rlimits[RLIMIT_SIGPENDING].rlim_cur);
    buf_printf(out, "SigPnd:\t%016llx\nShdPnd:\t%016llx\nSigBlk:\t%016llx\nSigIgn:\t%016llx\nSigCgt:\t%016llx\n",
               (ull)t->pending.set, (ull)g->pending.set, (ull)signal_blocked(t), (ull)ignored, (ull)caught);
}

/* Masks are printed in words of 32 bits, most significant first; only as many bits as there are CPUs. */
void proc_print_cpus(struct buf *out, const struct proc_call *c, const struct task *t, bool list)
{
    unsigned count = affinity_cpus(c->container), top = (count + 31) / 32;
    uint64_t mask[AFFINITY_WORDS];
    bool any = false;
    int start = -1;

    affinity_get(t, mask);
    if (!list) {
        for (unsigned w = top; w-- > 0;) {
            uint32_t bits = (uint32_t)(mask[w / 2] >> (w % 2 * 32));
            unsigned in_word = MIN(count - w * 32, 32U);

            if (in_word < 32)
                bits &= (1U << in_word) - 1;
            buf_printf(out, w == top - 1 ? "%0*x" : ",%0*x", (int)(in_word + 3) / 4, bits);
        }
        return;
    }
    for (unsigned i = 0; i <= count; i++) {
        bool on = i < count && mask[i / 64] >> (i % 64) & 1;

        if (on && start < 0)
            start = (int)i;
        if (on || start < 0)
            continue;
        buf_printf(out, any ? ",%d" : "%d", start);
        if ((int)i - 1 > start)
            buf_printf(out, "-%u", i - 1);
        any = true;
        start = -1;
    }
}

static void put_rights(struct proc_call *c, struct buf *out)
{
    const struct task *t = c->task;
    const struct cred *cred = t->ctx.cred;

    buf_printf(out, "CapInh:\t%016llx\nCapPrm:\t%016llx\nCapEff:\t%016llx\nCapBnd:\t%016llx\nCapAmb:\t%016llx\n",
               (ull)cred->cap_inheritable, (ull)cred->cap_permitted, (ull)cred->cap_effective,
               (ull)cred->cap_bounding, (ull)cred->cap_ambient);
    buf_printf(out, "NoNewPrivs:\t%d\nSeccomp:\t%u\nSeccomp_filters:\t%u\n", t->no_new_privs,
               t->seccomp_mode, guest_seccomp_count(t));
    buf_puts(out, "Speculation_Store_Bypass:\tthread vulnerable\nSpeculationIndirectBranch:\tconditional enabled\n");
    buf_puts(out, "Cpus_allowed:\t");
    proc_print_cpus(out, c, t, false);
    buf_puts(out, "\nCpus_allowed_list:\t");
    proc_print_cpus(out, c, t, true);
    buf_puts(out, "\nMems_allowed:\t00000000,00000001\nMems_allowed_list:\t0\n");
    buf_printf(out, "voluntary_ctxt_switches:\t%llu\nnonvoluntary_ctxt_switches:\t%llu\n", (ull)t->nvcsw,
               (ull)t->nivcsw);
}

int proc_show_status(struct proc_call *c, struct buf *out)
{
    uint64_t cpu_ns = task_cpu_ns(c->task);
    struct mm_usage u;
    bool has_mm;
    int r = get_usage(c, &u, &has_mm);

    if (r)
        return r;
    put_ids(c, &u, cpu_ns, out);
    if (has_mm)
        put_memory(&u, out);
    put_signals(c, out);
    put_rights(c, out);
    return buf_error(out);
}

/* ---- the rest ---- */

int proc_show_limits(struct proc_call *c, struct buf *out)
{
    static const struct {
        const char *name, *unit;
    } rows[TASK_RLIMITS] = {
        [RLIMIT_CPU] = {"Max cpu time", "seconds"},
        [RLIMIT_FSIZE] = {"Max file size", "bytes"},
        [RLIMIT_DATA] = {"Max data size", "bytes"},
        [RLIMIT_STACK] = {"Max stack size", "bytes"},
        [RLIMIT_CORE] = {"Max core file size", "bytes"},
        [RLIMIT_RSS] = {"Max resident set", "bytes"},
        [RLIMIT_NPROC] = {"Max processes", "processes"},
        [RLIMIT_NOFILE] = {"Max open files", "files"},
        [RLIMIT_MEMLOCK] = {"Max locked memory", "bytes"},
        [RLIMIT_AS] = {"Max address space", "bytes"},
        [RLIMIT_LOCKS] = {"Max file locks", "locks"},
        [RLIMIT_SIGPENDING] = {"Max pending signals", "signals"},
        [RLIMIT_MSGQUEUE] = {"Max msgqueue size", "bytes"},
        [RLIMIT_NICE] = {"Max nice priority", ""},
        [RLIMIT_RTPRIO] = {"Max realtime priority", ""},
        [RLIMIT_RTTIME] = {"Max realtime timeout", "us"},
    };

    buf_printf(out, "%-25s %-20s %-20s %-10s\n", "Limit", "Soft Limit", "Hard Limit", "Units");
    for (unsigned i = 0; i < TASK_RLIMITS; i++) {
        const struct rlimit *l = &c->task->group->rlimits[i];

        buf_printf(out, "%-25s ", rows[i].name);
        if (l->rlim_cur == RLIM_INFINITY)
            buf_printf(out, "%-20s ", "unlimited");
        else
            buf_printf(out, "%-20llu ", (ull)l->rlim_cur);
        if (l->rlim_max == RLIM_INFINITY)
            buf_printf(out, "%-20s ", "unlimited");
        else
            buf_printf(out, "%-20llu ", (ull)l->rlim_max);
        buf_printf(out, *rows[i].unit ? "%-10s\n" : "%s\n", rows[i].unit);
    }
    return buf_error(out);
}

int proc_show_io(struct proc_call *c, struct buf *out)
{
    if (!proc_may_access(c, c->task))
        return -EACCES;
    /* Transfers are not counted by process. */
    buf_puts(out, "rchar: 0\nwchar: 0\nsyscr: 0\nsyscw: 0\nread_bytes: 0\nwrite_bytes: 0\n"
                  "cancelled_write_bytes: 0\n");
    return buf_error(out);
}

int proc_show_schedstat(struct proc_call *c, struct buf *out)
{
    buf_printf(out, "%llu 0 %llu\n", (ull)task_cpu_ns(c->task), (ull)(c->task->nvcsw + c->task->nivcsw));
    return buf_error(out);
}
