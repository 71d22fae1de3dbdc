/* SPDX-License-Identifier: Apache-2.0 */
/* execve. The new program is built in a fresh guest process beside the old one, so that whatever fails leaves the old
 * program untouched; then the other threads end, and the task changes over. */
#include "sentry/kernel/exec.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "sentry/abi/abi_errno.h"
#include "sentry/core/limits.h"
#include "sentry/kernel/auxv.h"
#include "sentry/kernel/exec_priv.h"
#include "sentry/kernel/fdtable.h"
#include "sentry/kernel/fsctx.h"
#include "sentry/kernel/itimer.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/ptrace.h"
#include "sentry/kernel/sigframe_x86_64.h"
#include "sentry/kernel/task_exit.h"
#include "sentry/kernel/tgroup.h"
#include "sentry/kernel/timens.h"
#include "sentry/mm/mm.h"
#include "sentry/mm/usermem.h"

enum { USER_CS = 0x33, USER_DS = 0x2b, RFLAGS_START = 0x202, AT_RANDOM_SIZE = 16 };

#define EXEC_ARG_MIN (128UL << 10)

/* The stack's contents are built in one piece, from its top downwards. */
struct image {
    uint8_t *bytes;
    uint64_t size, top; /* guest address after the last byte */
    uint64_t at;        /* offset of the lowest byte used so far */
};

static uint64_t push(struct image *im, const void *p, size_t size)
{
    im->at -= size;
    if (size)
        memcpy(im->bytes + im->at, p, size);
    return im->top - im->size + im->at;
}

static void put_word(struct image *im, uint64_t *at, uint64_t word)
{
    memcpy(im->bytes + *at, &word, sizeof(word));
    *at += sizeof(word);
}

/* Pointers to strings that lie one after the other from guest address first on, and a NULL. */
static void put_pointers(struct image *im, uint64_t *at, const struct exec_strings *s, uint64_t first)
{
    const char *p = s->bytes.data;

    for (uint32_t i = 0; i < s->count; i++) {
        size_t size = strlen(p) + 1;

        put_word(im, at, first);
        first += size;
        p += size;
    }
    put_word(im, at, 0);
}

static int fill(struct exec *x, struct image *im)
{
    const struct exec_request *req = x->req;
    const struct platform *platform = x->task->group->container->platform;
    uint64_t zero = 0, words, at;
    struct mm *mm = x->mm;
    struct auxv_input aux = {
        .vdso = platform->vdso,
        .min_sigstack = platform->min_sigstack,
        .hwcap = platform->hwcap,
        .phdr = x->prog.image.phdr_vaddr ? x->prog.image.phdr_vaddr + x->prog.bias : 0,
        .phnum = x->prog.image.phnum,
        .entry = x->prog.image.entry + x->prog.bias,
        .interp_base = x->interp.file ? x->interp.bias + x->interp.image.low : 0,
        .cred = x->cred,
        .secure = x->secure,
    };

    push(im, &zero, sizeof(zero));
    aux.execfn = push(im, req->name, strlen(req->name) + 1);
    mm->env_end = aux.execfn;
    mm->env_start = push(im, req->envp->bytes.data, req->envp->bytes.size);
    mm->arg_end = mm->env_start;
    mm->arg_start = push(im, req->argv->bytes.data, req->argv->bytes.size);
    /* A random distance keeps caches from colliding between programs. */
    im->at = ALIGN_DOWN(im->at - (x->random[3] >> 32 & 0x1fff), 16UL);
    aux.platform = push(im, "x86_64", sizeof("x86_64"));
    aux.random = push(im, x->random, AT_RANDOM_SIZE);
    mm->auxv_len = auxv_build(&aux, mm->auxv, MM_AUXV_MAX);
    words = 1 + req->argv->count + 1 + req->envp->count + 1 + mm->auxv_len;
    im->at = ALIGN_DOWN(im->at - words * sizeof(uint64_t), 16UL);
    at = im->at;
    put_word(im, &at, req->argv->count);
    put_pointers(im, &at, req->argv, mm->arg_start);
    put_pointers(im, &at, req->envp, mm->env_start);
    memcpy(im->bytes + at, mm->auxv, mm->auxv_len * sizeof(uint64_t));
    x->sp = im->top - im->size + im->at;
    return 0;
}

int exec_fill_stack(struct exec *x)
{
    const struct exec_request *req = x->req;
    struct ctx ctx = {.cred = x->task->ctx.cred, .thread = x->thread};
    struct image im = {.top = x->mm->stack_start};
    CLEANUP_FREE uint8_t *bytes = NULL;

    im.size = 16384 + strlen(req->name) + req->argv->bytes.size + req->envp->bytes.size +
              sizeof(uint64_t) * ((uint64_t)req->argv->count + req->envp->count + 4 + MM_AUXV_MAX);
    im.size = ALIGN_UP(im.size, 16UL);
    bytes = mem_zalloc(im.size);
    if (!bytes)
        return -ENOMEM;
    im.bytes = bytes;
    im.at = im.size;
    fill(x, &im);
    return copy_out(&ctx, UADDR(x->sp), im.bytes + im.at, im.size - im.at) ? -ENOMEM : 0;
}

/* Linux counts strings and pointers against a quarter of the stack, within fixed bounds. */
static int check_size(const struct exec *x)
{
    const struct exec_request *req = x->req;
    uint64_t stack = x->task->group->rlimits[RLIMIT_STACK].rlim_cur, limit = stack / 4;
    uint64_t size = req->argv->bytes.size + req->envp->bytes.size + strlen(req->name) + 1 +
                    sizeof(uint64_t) * ((uint64_t)req->argv->count + req->envp->count);

    limit = MIN(limit, (uint64_t)LIMIT_ARG_MAX);
    return size > MAX(limit, EXEC_ARG_MIN) || size > stack ? -E2BIG : 0;
}

/* Builds the new program beside the old one. */
static int prepare(struct exec *x)
{
    struct task *t = x->task;
    int r = exec_resolve(x);

    if (!r && !x->req->argv->count) { /* programs count on an argv[0] */
        buf_append(&x->req->argv->bytes, "", 1);
        x->req->argv->count = 1;
        r = buf_error(&x->req->argv->bytes);
    }
    if (!r)
        r = check_size(x);
    if (!r)
        r = exec_make_cred(x);
    if (r)
        return r;
    host_random(x->random, sizeof(x->random));
    r = plat_aspace_new(t->group->container->platform, &x->thread);
    if (!r)
        r = mm_new(x->thread->aspace, &x->mm);
    if (!r)
        r = nsproxy_for_new_mm(t->ns, &x->ns);
    if (!r)
        r = timens_enter(x->thread, NULL, x->ns->time);
    if (!r && t->mm)
        x->mm->dump_filter = t->mm->dump_filter;
    if (!r)
        r = mm_set_exe(x->mm, x->prog.file);
    if (!r)
        r = exec_map(x);
    return r ? r : exec_fill_stack(x);
}

/* What other processes share with t, it keeps to itself from now on. */
static int unshare(struct task *t, struct fdtable **ret_files, struct sighand **ret_sighand)
{
    int r = 0;

    *ret_files = NULL;
    *ret_sighand = NULL;
    if (t->files->ref.count > 1)
        r = fdtable_dup(t->files, ret_files);
    if (!r && t->group->sighand->ref.count > 1)
        r = sighand_dup(t->group->sighand, ret_sighand);
    if (r && *ret_files)
        fdtable_unref(&t->ctx, TAKE_PTR(*ret_files));
    return r;
}

static void start_registers(struct exec *x)
{
    const struct exec_object *o = x->interp.file ? &x->interp : &x->prog;
    struct regs *regs = &x->thread->regs;

    memset(regs, 0, sizeof(*regs));
    regs->orig_rax = x->task->in_syscall ? (uint64_t)x->task->sysno : UINT64_MAX;
    regs->rip = o->image.entry + o->bias;
    regs->rsp = x->sp;
    regs->cs = USER_CS;
    regs->ss = USER_DS;
    regs->rflags = RFLAGS_START;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static void commit_cred(struct exec *x)
{
    struct task *t = x->task;
    const struct cred *old = t->ctx.cred, *c = x->cred;
    bool changed = c->euid != old->euid || c->egid != old->egid || c->fsuid != old->fsuid ||
                   c->fsgid != old->fsgid || (c->cap_permitted & ~old->cap_permitted);
    struct userns *userns = c->userns;
    bool foreign = old->euid != old->uid || old->egid != old->gid;

    /* An image that its reader may not read is a secret of the first namespace up from here that knows the file's owner. */
    if (x->unreadable) {
        const struct inode *inode = x->prog.file->inode;

        while (userns_uid_out(userns, inode->uid) == USERNS_NO_ID || userns_gid_out(userns, inode->gid) == USERNS_NO_ID)
            userns = userns->parent;
    }
    t->mm->userns = userns_ref(userns);
    task_set_cred(t, TAKE_PTR(x->cred));
    t->mm->dumpable = !(changed || x->unreadable || foreign);
    if (changed || x->secure)
        t->pdeath_signal = 0;
}

/* Nothing here fails. */
static void commit(struct exec *x, struct fdtable *files, struct sighand *sighand)
{
    struct task *t = x->task;
    struct tgroup *g = t->group;

    struct nsproxy *old_ns = t->ns;

    task_leave_mm(t);
    t->ns = x->ns;
    x->ns = old_ns;
    t->mm = TAKE_PTR(x->mm);
    start_registers(x);
    t->thread = t->ctx.thread = TAKE_PTR(x->thread);
    t->cpu_base_ns = 0;
    plat_thread_set_owner(t->thread, t);
    t->resume_flags = PLAT_SET_REGS | PLAT_SET_FS | PLAT_SET_GS | PLAT_LOAD_FPU;
    t->fpu_addr = 0;
    t->restart_off = true;
    t->restart_fn = NULL;
    t->died_host = false;
    if (sighand) {
        sighand_unref(g->sighand);
        g->sighand = sighand;
    }
    sighand_reset(g->sighand, false);
    sigaltstack_reset(t);
    itimers_exec(g);
    task_set_comm(t, x->req->comm_of_file ? x->prog.file->path.dentry->name : base_name(x->req->name));
    g->did_exec = true;
    g->exit_signal = SIGCHLD;
    taskkeys_exec(t);
    commit_cred(x);
    if (files) {
        fdtable_unref(&t->ctx, t->files);
        t->files = files;
    }
    fdtable_close_on_exec(t);
    task_publish_self(t);
    signal_recalc(t);
}

static int run(struct exec *x)
{
    struct task *t = x->task;
    struct fdtable *files;
    struct sighand *sighand;
    int r = prepare(x);

    if (!r)
        r = unshare(t, &files, &sighand);
    if (r)
        return r;
    r = tgroup_kill_others(t);
    if (!r && x->thread->aspace->dead) /* killed from outside while we waited */
        r = -EAGAIN;
    if (r) {
        if (files)
            fdtable_unref(&t->ctx, files);
        sighand_unref(sighand);
        return r == -ERESTARTSYS ? -ERESTARTNOINTR : r;
    }
    commit(x, files, sighand);
    return 0;
}

int exec_run(struct task *t, const struct exec_request *req)
{
    struct exec *x = NEW(struct exec);
    struct tgroup *g = t->group;
    int r, old_tid;

    if (!x)
        return -ENOMEM;
    g->execs++;
    x->task = t;
    x->req = req;
    x->prog.file = file_ref(req->file);
    old_tid = ptrace_traced(t) ? task_tid_in(t, t->ptrace->tracer->pidns) : 0;
    r = run(x);
    if (--g->execs == 0)
        waitq_wake_all(&g->exec_done);
    if (r && x->fatal) /* killed from outside meanwhile, or past return for a reason of the program's own */
        tgroup_exit(t->group, x->thread && x->thread->aspace->dead ? SIGKILL : SIGSEGV);
    if (x->thread)
        plat_thread_end(x->thread, 0);
    mm_unref(x->mm);
    nsproxy_unref(x->ns);
    cred_unref(x->cred);
    file_unref(x->prog.file);
    file_unref(x->interp.file);
    mem_free(x);
    if (!r)
        ptrace_event_exec(t, old_tid);
    return r;
}
