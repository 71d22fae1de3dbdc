/* SPDX-License-Identifier: Apache-2.0 */
/* The small kernel: each event of a guest thread is handled on a fiber, as in the sentry. */
#include "tests/platform/harness.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "platform/base/log.h"
#include "platform/seccomp/seccomp_priv.h"
#include "sentry/core/evloop.h"
#include "sentry/core/fiber.h"
#include "sentry/core/ktimer.h"
#include "tests/platform/guest_calls.h"

struct platform *harness_platform;
unsigned harness_events, harness_procs, harness_faults, harness_bad_checks;
bool harness_verbose;

extern const char guest_image_start[], guest_image_end[];

static struct list procs = LIST_INIT(procs);
static int proc_fd = -1, file_fd = -1, other_fd = -1;

struct hthread {
    struct list link;
    struct plat_thread *t;
    struct hproc *proc;
    struct plat_event ev;
    uint64_t clear;
    bool handling;
    void *fiber; /* that handles its event, for debuggers */
};

/* ---- the platform's view ---- */

struct watch {
    struct evloop_watch w;
    void (*fn)(void *arg);
    void *arg;
};

static void watch_ready(void *arg, uint32_t events)
{
    struct watch *w = arg;
    w->fn(w->arg);
}

static void *harness_watch(int fd, void (*fn)(void *arg), void *arg)
{
    struct watch *w = NEW(struct watch);
    CHECK(w);
    w->fn = fn;
    w->arg = arg;
    if (!evloop_watch(&w->w, fd, EPOLLIN, watch_ready, w))
        return w;
    mem_free(w);
    return NULL;
}

static void harness_unwatch(void *token)
{
    struct watch *w = token;
    evloop_unwatch(&w->w);
    mem_free(w);
}

static void *harness_self(void)
{
    return fiber_current();
}

static void harness_ready(void *fiber)
{
    fiber_ready(fiber);
}

/* ---- processes ---- */

static struct hproc *proc_new(struct hproc *parent, struct plat_aspace *as)
{
    struct hproc *p = NEW(struct hproc);
    CHECK(p);
    list_init(&p->children);
    list_init(&p->sibling);
    list_init(&p->threads);
    list_add_tail(&procs, &p->link);
    p->parent = parent;
    if (parent)
        list_add_tail(&parent->children, &p->sibling);
    p->aspace = plat_aspace_ref(as);
    harness_procs++;
    return p;
}

static void proc_free(struct hproc *p)
{
    struct hproc *c, *next;
    list_for_each_entry_safe(c, next, &p->children, sibling)
    {
        list_del(&c->sibling);
        c->parent = NULL;
        if (c->ended)
            proc_free(c);
    }
    list_del(&p->link);
    list_del(&p->sibling);
    plat_aspace_unref(p->aspace);
    mem_free(p);
    harness_procs--;
}

static struct hthread *thread_new(struct hproc *p, struct plat_thread *t)
{
    struct hthread *h = NEW(struct hthread);
    CHECK(h);
    h->t = t;
    h->proc = p;
    list_add_tail(&p->threads, &h->link);
    plat_thread_set_owner(t, h);
    return h;
}

static void thread_end(struct hthread *h)
{
    struct hproc *p = h->proc;
    list_del(&h->link);
    plat_thread_set_owner(h->t, NULL);
    plat_thread_end(h->t, p->dying ? 0 : h->clear);
    mem_free(h);
    if (!list_empty(&p->threads))
        return;
    p->ended = true;
    if (p->joiner)
        fiber_ready(p->joiner);
    else if (p->parent && p->parent->waiter)
        fiber_ready(p->parent->waiter);
    else if (!p->parent && !p->top)
        proc_free(p);
}

/* Ends every thread that is not in a call; the others end when it is done. */
static void proc_end(struct hproc *p, int status)
{
    if (p->dying)
        return;
    p->dying = true;
    p->status = status;
    plat_aspace_kill(p->aspace);
    if (p->waiter)
        fiber_ready(p->waiter);
    struct hthread *h, *next;
    list_for_each_entry_safe(h, next, &p->threads, link)
    {
        bool last = h->link.next == &p->threads;
        if (!h->handling)
            thread_end(h);
        if (last)
            break; /* p may be gone */
    }
}

void harness_kill(struct hproc *p)
{
    proc_end(p, 256 + SIGKILL);
}

/* ---- calls ---- */

static int64_t call_fork(struct hthread *h)
{
    struct plat_thread *t;
    int err = plat_fork(h->t, &t);
    if (err && harness_verbose)
        fprintf(stderr, "fork: %d\n", err);
    if (err)
        return err;
    if (h->proc->dying) {
        plat_thread_end(t, 0);
        return -ESRCH;
    }
    struct hproc *p = proc_new(h->proc, t->aspace);
    thread_new(p, t);
    t->regs.rax = 0;
    int64_t pid = t->aspace->host_pid;
    plat_thread_resume(t, 0, 0);
    return pid;
}

static int64_t call_thread(struct hthread *h, const struct regs *r)
{
    struct plat_thread *t;
    int err = plat_clone_thread(h->t, &t);
    if (err)
        return err;
    if (h->proc->dying) {
        plat_thread_end(t, 0);
        return -ESRCH;
    }
    struct hthread *n = thread_new(h->proc, t);
    n->clear = r->r10;
    t->regs.rip = r->rdi;
    t->regs.rsp = r->rsi;
    t->regs.rdi = r->rdx;
    t->regs.rax = 0;
    plat_thread_resume(t, PLAT_SET_REGS, 0);
    return 1;
}

struct alarm {
    struct ktimer timer;
    void *fiber;
    bool fired;
};

static void alarm_fired(struct ktimer *t)
{
    struct alarm *a = container_of(t, struct alarm, timer);
    a->fired = true;
    fiber_ready(a->fiber);
}

static int64_t wait_child(struct hproc *p, struct alarm *a)
{
    struct hproc *c, *next;
    while (!p->dying && !list_empty(&p->children)) {
        list_for_each_entry(c, &p->children, sibling) {
            if (!c->ended)
                continue;
            int status = c->status;
            proc_free(c);
            return status;
        }
        if (a->fired) { /* too late: they are killed, and reported as such */
            a->fired = false;
            list_for_each_entry_safe(c, next, &p->children, sibling)
                if (!c->ended)
                    harness_kill(c);
            continue;
        }
        p->waiter = fiber_current();
        fiber_park();
        p->waiter = NULL;
    }
    return -ECHILD;
}

static int64_t call_wait(struct hthread *h, uint64_t limit_us)
{
    struct alarm a = {.fiber = fiber_current()};
    if (limit_us)
        CHECK(ktimer_set(&a.timer, host_monotonic_ns() + limit_us * 1000, alarm_fired) == 0);
    int64_t r = wait_child(h->proc, &a);
    ktimer_cancel(&a.timer);
    return r;
}

static int64_t call_sum(struct hthread *h, uint64_t addr, uint64_t size)
{
    uint8_t buf[4096];
    int64_t sum = 0;
    if (size > sizeof(buf) || plat_copy_in(h->t, buf, addr, size))
        return -EFAULT;
    for (uint64_t i = 0; i < size; i++)
        sum += buf[i];
    return sum;
}

static int64_t call_fill(struct hthread *h, uint64_t addr, uint64_t size, int byte)
{
    uint8_t buf[4096];
    if (size > sizeof(buf))
        return -EFAULT;
    memset(buf, byte, size);
    return plat_copy_out(h->t, addr, buf, size);
}

static int64_t call_hostcalls(struct hthread *h)
{
    struct plat_hostcall map[2] = {
        {.nr = SYS_mmap, .fd = file_fd, .args = {0, 4096, PROT_READ, MAP_PRIVATE, 0, 0}},
        {.nr = SYS_mmap, .fd = -1, .args = {0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, (uint64_t)-1, 0}},
    };
    int err = plat_thread_hostcalls(h->t, map, 2);
    if (err)
        return err;
    for (int i = 0; i < 2; i++) {
        struct plat_hostcall unmap = {.nr = SYS_munmap, .fd = -1, .args = {(uint64_t)map[i].result, 4096}};
        if (map[i].result < 0)
            return map[i].result;
        err = plat_thread_hostcalls(h->t, &unmap, 1);
        if (err || unmap.result)
            return err ? err : unmap.result;
    }
    return 0;
}

static void call_write(struct hthread *h, uint64_t addr, uint64_t size)
{
    char buf[256];
    if (size < sizeof(buf) && !plat_copy_in(h->t, buf, addr, size) && harness_verbose)
        fprintf(stderr, "guest %d: %.*s\n", h->proc->aspace->host_pid, (int)size, buf);
}

/* Return: false when the thread has ended. */
static bool do_call(struct hthread *h)
{
    struct plat_thread *t = h->t;
    struct regs r = t->regs;
    int64_t ret = 0;
    switch (r.orig_rax) {
    case SYS_write: call_write(h, r.rsi, r.rdx); break;
    case K_EXIT:
        h->proc->status = (int)(r.rdi & 0xff);
        thread_end(h);
        return false;
    case K_EXIT_GROUP: proc_end(h->proc, (int)(r.rdi & 0xff)); break;
    case K_FORK: ret = call_fork(h); break;
    case K_THREAD: ret = call_thread(h, &r); break;
    case K_WAIT: ret = call_wait(h, r.rdi); break;
    case K_SUM: ret = call_sum(h, r.rdi, r.rsi); break;
    case K_FILL: ret = call_fill(h, r.rdi, r.rsi, (int)r.rdx); break;
    case K_MAP_FILE: {
        struct plat_hostcall c = {.nr = SYS_mmap, .fd = file_fd, .args = {0, 4096, r.rdi, r.rsi, 0, 0}};
        plat_thread_tail_hostcall(t, &c);
        break;
    }
    case K_SLEEP: harness_sleep_us(r.rdi); break;
    case K_HOSTCALLS: ret = call_hostcalls(h); break;
    case K_GETPID: ret = (int64_t)r.rdi + 1; break;
    case K_KILL_SELF: proc_end(h->proc, 256 + SIGKILL); break;
    default: ret = -ENOSYS;
    }
    t->regs.rax = (uint64_t)ret;
    return true;
}

static void handle(void *arg)
{
    struct hthread *h = arg;
    struct hproc *p = h->proc;
    h->fiber = fiber_current();
    harness_events++;
    switch (h->ev.kind) {
    case PLAT_EVENT_SYSCALL:
        if (!do_call(h))
            return;
        break;
    case PLAT_EVENT_LOCAL: /* no signals here: simply again */
        if ((int64_t)h->t->regs.rax == -512) {
            h->t->regs.rax = h->t->regs.orig_rax;
            h->t->regs.rip -= 2;
        } else {
            h->t->regs.rax = 219;
            h->t->regs.rip -= 2;
        }
        break;
    case PLAT_EVENT_FAULT:
        harness_faults++;
        if (harness_verbose)
            fprintf(stderr, "guest %d: signal %d at %#lx, address %#lx\n", p->aspace->host_pid, h->ev.signo,
                    h->t->regs.rip, h->ev.addr);
        proc_end(p, 256 + h->ev.signo);
        break;
    case PLAT_EVENT_KICK: break;
    }
    h->handling = false;
    if (p->dying) {
        thread_end(h);
        return;
    }
    plat_thread_resume(h->t, h->ev.kind == PLAT_EVENT_LOCAL ? PLAT_SET_REGS : 0, 0);
}

static void on_event(struct plat_thread *t, void *owner, const struct plat_event *ev)
{
    struct hthread *h = owner;
    CHECK(h && !h->handling);
    h->handling = true;
    h->ev = *ev;
    CHECK(fiber_start(handle, h) == 0);
}

static void on_death(struct plat_thread *t, void *owner, int signo)
{
    struct hthread *h = owner;
    h->proc->died_host = true;
    proc_end(h->proc, 256 + signo);
}

static const struct plat_client client = {on_event, on_death};

/* ---- for tests ---- */

struct hproc *harness_start(unsigned mode, uint64_t arg)
{
    struct plat_thread *t;
    CHECK(plat_aspace_new(harness_platform, &t) == 0);
    struct hproc *p = proc_new(NULL, t->aspace);
    p->top = true;
    struct hthread *h = thread_new(p, t);
    h->handling = true;
    struct plat_hostcall calls[6] = {
        {.nr = SYS_mmap, .fd = -1,
         .args = {HARNESS_BLOB, HARNESS_BLOB_SIZE, 7, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, (uint64_t)-1, 0}},
        {.nr = SYS_mmap, .fd = -1,
         .args = {HARNESS_STACK - HARNESS_STACK_SIZE, HARNESS_STACK_SIZE, 3,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, (uint64_t)-1, 0}},
        /* Runs of a file and of none, as programs have them. */
        {.nr = SYS_mmap, .fd = file_fd, .args = {HARNESS_FILE, 4096, 1, MAP_PRIVATE | MAP_FIXED, 0, 0}},
        {.nr = SYS_mmap, .fd = file_fd, .args = {HARNESS_FILE + 4096, 4096, 1, MAP_PRIVATE | MAP_FIXED, 0, 0}},
        {.nr = SYS_mmap, .fd = other_fd, .args = {HARNESS_FILE + 8192, 4096, 1, MAP_PRIVATE | MAP_FIXED, 0, 0}},
        {.nr = SYS_mmap, .fd = -1,
         .args = {HARNESS_FILE + 12288, 4096, 1, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, (uint64_t)-1, 0}},
    };
    char text[8];
    if (plat_thread_hostcalls(t, calls, 6) ||
        plat_copy_out(t, HARNESS_BLOB, guest_image_start, (uint64_t)(guest_image_end - guest_image_start))) {
        proc_end(p, 256 + SIGKILL);
        thread_end(h);
        return p;
    }
    for (int i = 0; i < 6; i++)
        CHECK(calls[i].result > 0);
    for (int i = 0; i < 3; i++)
        if (!plat_copy_in(t, text, HARNESS_FILE + 4096UL * i, 8))
            CHECK(!memcmp(text, i < 2 ? "contents" : "other   ", 8));
    h->handling = false;
    t->regs.rip = HARNESS_BLOB;
    t->regs.rsp = HARNESS_STACK - 64;
    t->regs.rdi = mode;
    t->regs.rsi = harness_platform->task_size;
    t->regs.rdx = arg;
    plat_thread_resume(t, PLAT_SET_REGS | PLAT_SET_FS | PLAT_LOAD_FPU, 0);
    return p;
}

void harness_sleep_us(uint64_t us)
{
    struct alarm a = {.fiber = fiber_current()};
    CHECK(ktimer_set(&a.timer, host_monotonic_ns() + us * 1000, alarm_fired) == 0);
    while (!a.fired)
        fiber_park();
}

int harness_wait(struct hproc *p, unsigned limit_ms)
{
    struct alarm a = {.fiber = fiber_current()};
    CHECK(ktimer_set(&a.timer, host_monotonic_ns() + limit_ms * 1000000ULL, alarm_fired) == 0);
    p->joiner = fiber_current();
    while (!p->ended && !a.fired)
        fiber_park();
    bool late = !p->ended;
    if (late)
        harness_kill(p);
    while (!p->ended)
        fiber_park();
    ktimer_cancel(&a.timer);
    int status = late ? -1 : p->status;
    proc_free(p);
    return status;
}

unsigned harness_count_pids(void)
{
    unsigned n = 0;
    int fd = openat(proc_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fdopendir(fd);
    CHECK(d);
    for (struct dirent *e; (e = readdir(d));)
        n += atoi(e->d_name) > 0;
    closedir(d);
    return n;
}

unsigned harness_count_fds(void)
{
    unsigned n = 0;
    int fd = openat(proc_fd, "self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fdopendir(fd);
    CHECK(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

enum { HARNESS_POOL = 2 };

bool harness_settled(unsigned limit_ms)
{
    for (unsigned i = 0; i < limit_ms; i++) {
        if (harness_procs == 0 && harness_count_pids() == 2 + HARNESS_POOL)
            return true;
        harness_sleep_us(1000);
    }
    fprintf(stderr, "%u guest processes, %u host processes\n", harness_procs, harness_count_pids());
    return false;
}

int harness_zygote(void)
{
    return plat_seccomp_zygote_pid(harness_platform);
}

int harness_random_pid(void)
{
    unsigned n = 0;
    int pid = 0;
    struct hproc *p;
    list_for_each_entry(p, &procs, link)
        if (!p->dying && harness_random() % ++n == 0)
            pid = p->aspace->host_pid;
    return pid;
}

int harness_random_host_pid(void)
{
    unsigned n = 0;
    int pid = 0, fd = openat(proc_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fdopendir(fd);
    CHECK(d);
    for (struct dirent *e; (e = readdir(d));)
        if (atoi(e->d_name) > 0 && harness_random() % ++n == 0)
            pid = atoi(e->d_name);
    closedir(d);
    return pid;
}

bool harness_set_pid_max(const char *text)
{
    return host_write_file(proc_fd, "sys/kernel/pid_max", text, strlen(text)) == 0;
}

void harness_slow_sends(unsigned n)
{
    container_of(harness_platform, struct scp, base)->slow_sends = n;
}

uint64_t harness_random(void)
{
    static uint64_t x = 0x9e3779b97f4a7c15ULL;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return x;
}

struct args {
    int (*fn)(int argc, char **argv);
    int argc;
    char **argv;
    int result;
};

static void run(void *arg)
{
    struct args *a = arg;
    a->result = a->fn(a->argc, a->argv);
    evloop_stop();
}

static int open_proc(void)
{
    int fs = (int)syscall(SYS_fsopen, "proc", 1);
    if (fs < 0 || syscall(SYS_fsconfig, fs, 6, NULL, NULL, 0) < 0)
        return -1;
    int fd = (int)syscall(SYS_fsmount, fs, 1, 0);
    close(fs);
    return fd;
}

static int inside(struct args *a)
{
    struct errmsg e = {0};
    struct plat_seccomp_config config = {harness_watch, harness_unwatch, harness_self, fiber_park, harness_ready,
                                         fiber_spawn, hostio_run, evloop_idle, HARNESS_POOL, -1};
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    signal(SIGCHLD, SIG_IGN);
    config.proc_fd = proc_fd = open_proc();
    CHECK(proc_fd >= 0);
    file_fd = host_memfd("file", 4096);
    CHECK(file_fd >= 0 && pwrite(file_fd, "contents", 8, 0) == 8);
    other_fd = host_memfd("other", 4096);
    CHECK(other_fd >= 0 && pwrite(other_fd, "other   ", 8, 0) == 8);
    if (harness_verbose)
        log_setup(2, LOG_FORMAT_TEXT, LOG_LEVEL_DEBUG);
    CHECK(evloop_init() == 0);
    if (plat_seccomp_new(&config, &e, &harness_platform)) {
        fprintf(stderr, "%s\n", e.text);
        return 1;
    }
    CHECK(platform_start(harness_platform, &client) == 0);
    CHECK(fiber_spawn(run, a) == 0);
    evloop_run();
    platform_free(harness_platform);
    return a->result;
}

int harness_main(int (*fn)(int argc, char **argv), int argc, char **argv)
{
    struct args a = {fn, argc, argv, 1};
    int status;
    harness_verbose = getenv("HARNESS_VERBOSE") != NULL;
    if (unshare(CLONE_NEWPID | CLONE_NEWNS) < 0) {
        fprintf(stderr, "no pid namespace: %s\n", strerror(errno));
        return 77;
    }
    pid_t pid = fork();
    if (pid == 0)
        exit(inside(&a));
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return 1;
    if (WIFSIGNALED(status))
        fprintf(stderr, "the sentry died of signal %d\n", WTERMSIG(status));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
