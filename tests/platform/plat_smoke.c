/* SPDX-License-Identifier: Apache-2.0 */
/* Runs hand-made machine code on the seccomp platform without a kernel: calls, faults, fork, threads, kicks. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "platform/platform.h"
#include "platform/seccomp/plat_seccomp.h"
#include "sentry/core/evloop.h"
#include "sentry/core/fiber.h"

#define CHECK(c)                                                                                   \
    do {                                                                                           \
        if (!(c)) {                                                                                \
            fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #c);                        \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

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

static void *test_watch(int fd, void (*fn)(void *arg), void *arg)
{
    struct watch *w = NEW(struct watch);
    w->fn = fn;
    w->arg = arg;
    return evloop_watch(&w->w, fd, EPOLLIN, watch_ready, w) ? NULL : w;
}

static void test_unwatch(void *token)
{
    struct watch *w = token;
    evloop_unwatch(&w->w);
    mem_free(w);
}

static void *test_self(void)
{
    return fiber_current();
}

static void test_ready(void *fiber)
{
    fiber_ready(fiber);
}

/* The owner of each guest thread: the last event, and the fiber that waits for it. */
struct owner {
    struct plat_event ev;
    bool got, dead;
    struct fiber *fiber;
};

static void on_event(struct plat_thread *t, void *arg, const struct plat_event *ev)
{
    struct owner *o = arg;
    o->ev = *ev;
    o->got = true;
    if (o->fiber)
        fiber_ready(o->fiber);
}

static void on_death(struct plat_thread *t, void *arg, int signo)
{
    struct owner *o = arg;
    o->dead = true;
    if (o->fiber)
        fiber_ready(o->fiber);
}

static const struct plat_client client = {on_event, on_death};

static void wait_event(struct owner *o)
{
    o->fiber = fiber_current();
    while (!o->got && !o->dead)
        fiber_park();
    o->got = false;
}

static struct platform *plat;

static const unsigned char code[] = {
    0xb8, 39, 0, 0, 0, 0x0f, 0x05, /* 0: mov $39,%eax; syscall */
    0x89, 0xc7,                    /* 7: mov %eax,%edi */
    0xb8, 60, 0, 0, 0, 0x0f, 0x05, /* 9: mov $60,%eax; syscall */
    0xeb, 0xee,                    /* 16: jmp 0 */
    0xeb, 0xfe,                    /* 18: jmp . */
    0x8b, 0x04, 0x25, 0, 0, 0, 0,  /* 20: mov 0,%eax */
    0xb8, 39, 0, 0, 0, 0x0f, 0x05, 0xeb, 0xf7, /* 27: getpid loop */
    0xcd, 0x80, 0xeb, 0xfc,        /* 36: int 0x80 */
};

static struct plat_thread *new_guest(struct owner *o)
{
    struct plat_thread *t;
    CHECK(plat_aspace_new(plat, &t) == 0);
    plat_thread_set_owner(t, o);
    struct plat_hostcall calls[2] = {
        {.nr = SYS_mmap, .fd = -1, .args = {0x10000, 0x10000, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, (uint64_t)-1, 0}},
        {.nr = SYS_mmap, .fd = -1, .args = {0, 0x10000, 3, MAP_PRIVATE | MAP_ANONYMOUS, (uint64_t)-1, 0}},
    };
    CHECK(plat_thread_hostcalls(t, calls, 2) == 0);
    CHECK(calls[0].result == 0x10000);
    CHECK(calls[1].result > 0 && (uint64_t)calls[1].result < plat->task_size);
    CHECK(plat_copy_out(t, 0x10000, code, sizeof(code)) == 0);
    struct plat_hostcall prot = {.nr = SYS_mprotect, .fd = -1, .args = {0x10000, 0x1000, 5}};
    CHECK(plat_thread_hostcalls(t, &prot, 1) == 0 && prot.result == 0);
    t->regs.rip = 0x10000;
    t->regs.rsp = 0x1f000;
    t->regs.rbx = 0x1234;
    plat_thread_resume(t, PLAT_SET_REGS | PLAT_SET_FS | PLAT_LOAD_FPU, 0);
    return t;
}

static void test_calls(void)
{
    struct owner o = {0};
    struct plat_thread *t = new_guest(&o);
    wait_event(&o);
    CHECK(!o.dead && o.ev.kind == PLAT_EVENT_SYSCALL && t->regs.orig_rax == 39);
    CHECK(t->regs.rip == 0x10007 && t->regs.rbx == 0x1234 && t->regs.rsp == 0x1f000);
    t->regs.rax = 7;
    plat_thread_resume(t, 0, 0);
    wait_event(&o);
    CHECK(t->regs.orig_rax == 60 && t->regs.rdi == 7);
    char buf[4];
    CHECK(plat_copy_in(t, buf, 0x10000, 4) == 0 && !memcmp(buf, code, 4));
    CHECK(plat_copy_in(t, buf, 0x0, 4) == -EFAULT);
    CHECK(plat_copy_out(t, 0x10000, buf, 4) == -EFAULT);
    CHECK(plat_copy_in(t, buf, plat->task_size, 4) == -EFAULT);
    /* NULL dereference */
    t->regs.rip = 0x10000 + 20;
    plat_thread_resume(t, PLAT_SET_REGS, 0);
    wait_event(&o);
    CHECK(o.ev.kind == PLAT_EVENT_FAULT && o.ev.signo == SIGSEGV && o.ev.code == SEGV_MAPERR && o.ev.addr == 0);
    /* int 0x80 */
    t->regs.rip = 0x10000 + 36;
    plat_thread_resume(t, PLAT_SET_REGS, 0);
    wait_event(&o);
    CHECK(o.ev.kind == PLAT_EVENT_FAULT && o.ev.signo == SIGSEGV);
    /* kick out of an endless loop */
    t->regs.rip = 0x10000 + 18;
    plat_thread_resume(t, PLAT_SET_REGS, 0);
    plat_thread_kick(t);
    wait_event(&o);
    CHECK(o.ev.kind == PLAT_EVENT_KICK && t->regs.rip == 0x10000 + 18);
    /* FPU state to guest memory and back */
    t->regs.rip = 0x10000;
    plat_thread_resume(t, PLAT_SET_REGS | PLAT_SAVE_FPU, 0x12000);
    wait_event(&o);
    CHECK(o.ev.kind == PLAT_EVENT_SYSCALL);
    uint32_t mxcsr;
    CHECK(plat_copy_in(t, &mxcsr, 0x12000 + 24, 4) == 0 && mxcsr == 0x1f80);
    plat_thread_resume(t, PLAT_SET_REGS | PLAT_LOAD_FPU, 0x12000);
    wait_event(&o);
    CHECK(o.ev.kind == PLAT_EVENT_SYSCALL);
    plat_thread_resume(t, PLAT_SET_REGS | PLAT_SAVE_FPU, 0x8000);
    wait_event(&o);
    CHECK(o.ev.kind == PLAT_EVENT_FAULT && o.ev.signo == SIGSEGV);
    plat_thread_end(t, 0);
}

static void test_fork(void)
{
    struct owner o = {0}, oc = {0}, ot = {0};
    struct plat_thread *t = new_guest(&o), *c, *th;
    wait_event(&o);
    CHECK(plat_fork(t, &c) == 0);
    plat_thread_set_owner(c, &oc);
    CHECK(c->aspace != t->aspace && c->regs.rip == 0x10007);
    c->regs.rax = 0;
    t->regs.rax = 55;
    plat_thread_resume(c, 0, 0);
    plat_thread_resume(t, 0, 0);
    wait_event(&oc);
    CHECK(c->regs.orig_rax == 60 && c->regs.rdi == 0);
    wait_event(&o);
    CHECK(t->regs.orig_rax == 60 && t->regs.rdi == 55);
    plat_thread_end(c, 0);
    CHECK(plat_clone_thread(t, &th) == 0);
    plat_thread_set_owner(th, &ot);
    th->regs.rip = 0x10000;
    th->regs.rsp = 0x1e000;
    plat_thread_resume(th, PLAT_SET_REGS, 0);
    wait_event(&ot);
    CHECK(th->regs.orig_rax == 39 && th->regs.rsp == 0x1e000 && th->aspace == t->aspace);
    plat_thread_end(th, 0);
    for (int i = 0; i < 50; i++) {
        CHECK(plat_clone_thread(t, &th) == 0);
        plat_thread_set_owner(th, &ot);
        th->regs.rip = 0x10000;
        plat_thread_resume(th, PLAT_SET_REGS, 0);
        wait_event(&ot);
        plat_thread_end(th, 0);
    }
    plat_thread_end(t, 0);
}

static void test_death(void)
{
    struct owner o = {0};
    struct plat_thread *t = new_guest(&o);
    wait_event(&o);
    t->regs.rip = 0x10000 + 18;
    plat_thread_resume(t, PLAT_SET_REGS, 0);
    kill(t->aspace->host_pid, SIGKILL);
    wait_event(&o);
    CHECK(o.dead);
    plat_thread_end(t, 0);
}

static void bench(void)
{
    struct owner o = {0}, oc = {0};
    struct plat_thread *t = new_guest(&o), *c;
    wait_event(&o);
    t->regs.rip = 0x10000 + 27;
    plat_thread_resume(t, PLAT_SET_REGS, 0);
    uint64_t t0 = host_monotonic_ns();
    const int n = 100000;
    for (int i = 0; i < n; i++) {
        wait_event(&o);
        t->regs.rax = 1;
        plat_thread_resume(t, 0, 0);
    }
    printf("call: %.2f us\n", (double)(host_monotonic_ns() - t0) / n / 1000);
    wait_event(&o);
    t0 = host_monotonic_ns();
    for (int i = 0; i < 1000; i++) {
        CHECK(plat_fork(t, &c) == 0);
        plat_thread_set_owner(c, &oc);
        plat_thread_resume(c, 0, 0);
        wait_event(&oc);
        plat_thread_end(c, 0);
    }
    printf("fork: %.2f us\n", (double)(host_monotonic_ns() - t0) / 1000 / 1000);
    t0 = host_monotonic_ns();
    for (int i = 0; i < 1000; i++) {
        c = new_guest(&oc);
        wait_event(&oc);
        plat_thread_end(c, 0);
    }
    printf("new aspace: %.2f us\n", (double)(host_monotonic_ns() - t0) / 1000 / 1000);
    plat_thread_end(t, 0);
}

static void run(void *arg)
{
    int argc = *(int *)arg;
    test_calls();
    test_fork();
    test_death();
    if (argc > 1)
        bench();
    puts("ok");
    evloop_stop();
}

int main(int argc, char **argv)
{
    struct errmsg e = {0};
    struct plat_seccomp_config config = {test_watch, test_unwatch, test_self, fiber_park, test_ready, fiber_spawn, hostio_run,
                                          evloop_idle, 2, -1};
    CHECK(evloop_init() == 0);
    if (plat_seccomp_new(&config, &e, &plat)) {
        fprintf(stderr, "%s\n", e.text);
        return 1;
    }
    CHECK(platform_start(plat, &client) == 0);
    CHECK(fiber_spawn(run, &argc) == 0);
    evloop_run();
    platform_free(plat);
    return 0;
}
