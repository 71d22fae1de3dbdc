/* SPDX-License-Identifier: Apache-2.0 */
/* Signals: delivery, masks, restarts, frames, queues, faults. */
#include "tests/guest/guest.h"

#include <pthread.h>
#include <setjmp.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/ucontext.h>

static volatile int count, last, last_code, depth, max_depth, order[64];
static volatile pid_t last_pid;
static void *volatile last_addr;
static volatile long last_value;
static sigjmp_buf jump;

static void handler(int sig)
{
    if (count < 64)
        order[count] = sig;
    count++;
    last = sig;
}

static void info_handler(int sig, siginfo_t *info, void *uc)
{
    count++;
    last = sig;
    last_code = info->si_code;
    last_pid = info->si_pid;
    last_addr = info->si_addr;
    last_value = info->si_value.sival_int;
}

static void catch(int sig, void (*fn)(int), int flags)
{
    struct sigaction sa = {.sa_handler = fn, .sa_flags = flags};

    OK(sigaction(sig, &sa, NULL));
}

static void catch_info(int sig, int flags)
{
    struct sigaction sa = {.sa_sigaction = info_handler, .sa_flags = SA_SIGINFO | flags};

    OK(sigaction(sig, &sa, NULL));
}

static sigset_t set_of(int sig)
{
    sigset_t s;

    sigemptyset(&s);
    sigaddset(&s, sig);
    return s;
}

TEST(handler_runs)
{
    catch(SIGUSR1, handler, 0);
    OK(raise(SIGUSR1));
    EQ(count, 1);
    EQ(last, SIGUSR1);
}

TEST(siginfo_of_kill)
{
    catch_info(SIGUSR1, 0);
    OK(kill(getpid(), SIGUSR1));
    EQ(last_code, SI_USER);
    EQ(last_pid, getpid());
    OK((int)syscall(SYS_tgkill, getpid(), (pid_t)syscall(SYS_gettid), SIGUSR1));
    EQ(last_code, SI_TKILL);
}

TEST(action_errors_and_old)
{
    struct sigaction sa = {.sa_handler = handler}, old;

    ERR(EINVAL, sigaction(SIGKILL, &sa, NULL));
    ERR(EINVAL, sigaction(SIGSTOP, &sa, NULL));
    ERR(EINVAL, syscall(SYS_rt_sigaction, 0, &sa, NULL, 8));
    ERR(EINVAL, syscall(SYS_rt_sigaction, 65, &sa, NULL, 8));
    ERR(EINVAL, syscall(SYS_rt_sigaction, SIGUSR1, NULL, NULL, 4));
    sa.sa_flags = SA_RESTART | SA_NODEFER;
    OK(sigaction(SIGUSR1, &sa, NULL));
    OK(sigaction(SIGUSR1, NULL, &old));
    CHECK(old.sa_handler == handler);
    EQ(old.sa_flags & (SA_RESTART | SA_NODEFER), SA_RESTART | SA_NODEFER);
}

TEST(mask_blocks)
{
    sigset_t s = set_of(SIGUSR1), old, pending;

    catch(SIGUSR1, handler, 0);
    OK(sigprocmask(SIG_BLOCK, &s, &old));
    OK(raise(SIGUSR1));
    OK(raise(SIGUSR1));
    EQ(count, 0);
    OK(sigpending(&pending));
    CHECK(sigismember(&pending, SIGUSR1));
    OK(sigprocmask(SIG_UNBLOCK, &s, NULL));
    EQ(count, 1);
    ERR(EINVAL, sigprocmask(77, &s, NULL));
    /* KILL and STOP cannot be blocked. */
    sigfillset(&s);
    OK(sigprocmask(SIG_SETMASK, &s, NULL));
    OK(sigprocmask(SIG_SETMASK, NULL, &s));
    CHECK(!sigismember(&s, SIGKILL) && !sigismember(&s, SIGSTOP) && sigismember(&s, SIGTERM));
}

static void nesting(int sig)
{
    depth++;
    if (depth > max_depth)
        max_depth = depth;
    if (count++ < 3)
        raise(SIGUSR1);
    depth--;
}

TEST(defer_and_nodefer)
{
    catch(SIGUSR1, nesting, 0);
    raise(SIGUSR1);
    EQ(count, 4);
    EQ(max_depth, 1);
    count = max_depth = 0;
    catch(SIGUSR1, nesting, SA_NODEFER);
    raise(SIGUSR1);
    EQ(count, 4);
    EQ(max_depth, 4);
}

TEST(resethand)
{
    struct sigaction sa;

    catch(SIGUSR1, handler, SA_RESETHAND);
    raise(SIGUSR1);
    EQ(count, 1);
    OK(sigaction(SIGUSR1, NULL, &sa));
    CHECK(sa.sa_handler == SIG_DFL);
}

static void mask_checker(int sig)
{
    sigset_t s;

    sigprocmask(SIG_SETMASK, NULL, &s);
    count = sigismember(&s, SIGUSR1) && sigismember(&s, SIGUSR2) && !sigismember(&s, SIGHUP);
}

TEST(mask_in_handler)
{
    struct sigaction sa = {.sa_handler = mask_checker};
    sigset_t s;

    sigaddset(&sa.sa_mask, SIGUSR2);
    OK(sigaction(SIGUSR1, &sa, NULL));
    raise(SIGUSR1);
    EQ(count, 1);
    sigprocmask(SIG_SETMASK, NULL, &s);
    CHECK(!sigismember(&s, SIGUSR1) && !sigismember(&s, SIGUSR2));
}

TEST(realtime_queue_order)
{
    union sigval v;
    sigset_t s;

    sigfillset(&s);
    OK(sigprocmask(SIG_SETMASK, &s, NULL));
    catch_info(SIGRTMIN, 0);
    catch(SIGRTMIN + 1, handler, 0);
    for (int i = 0; i < 5; i++) {
        v.sival_int = i;
        OK(sigqueue(getpid(), SIGRTMIN + 1, v));
        OK(sigqueue(getpid(), SIGRTMIN, v));
    }
    for (int i = 0; i < 5; i++) {
        siginfo_t info;
        sigset_t one = set_of(SIGRTMIN);

        EQ(sigwaitinfo(&one, &info), SIGRTMIN);
        EQ(info.si_value.sival_int, i);
        EQ(info.si_code, SI_QUEUE);
    }
    sigemptyset(&s);
    OK(sigprocmask(SIG_SETMASK, &s, NULL));
    EQ(count, 5);
}

TEST(low_numbers_first)
{
    sigset_t s;

    sigfillset(&s);
    OK(sigprocmask(SIG_SETMASK, &s, NULL));
    for (int sig = SIGUSR2; sig >= SIGHUP; sig--)
        if (sig == SIGUSR2 || sig == SIGUSR1 || sig == SIGHUP)
            catch(sig, handler, 0);
    raise(SIGUSR2);
    raise(SIGHUP);
    raise(SIGUSR1);
    sigemptyset(&s);
    OK(sigprocmask(SIG_SETMASK, &s, NULL));
    EQ(count, 3);
    /* Frames are stacked in order of number, so the last one stacked runs first. */
    EQ(order[0], SIGUSR2);
    EQ(order[1], SIGUSR1);
    EQ(order[2], SIGHUP);
}

TEST(sigtimedwait)
{
    struct timespec none = {0, 0}, some = {0, 50000000}, bad = {0, 2000000000};
    sigset_t s = set_of(SIGUSR1);
    siginfo_t info;
    uint64_t begin;

    OK(sigprocmask(SIG_BLOCK, &s, NULL));
    ERR(EAGAIN, sigtimedwait(&s, &info, &none));
    ERR(EINVAL, sigtimedwait(&s, &info, &bad));
    begin = now_ms();
    ERR(EAGAIN, sigtimedwait(&s, &info, &some));
    CHECK(now_ms() - begin >= 49);
    raise(SIGUSR1);
    EQ(sigtimedwait(&s, &info, &none), SIGUSR1);
    EQ(info.si_signo, SIGUSR1);
    /* Another, handled signal ends the wait. */
    catch(SIGALRM, handler, SA_RESTART);
    alarm(1);
    ERR(EINTR, sigwaitinfo(&s, &info));
}

static void *sender(void *arg)
{
    sleep_ms(50);
    kill(getpid(), (int)(long)arg);
    return NULL;
}

static void send_soon(int sig)
{
    sigset_t all, old;
    pthread_t t;

    /* The sender itself takes no signals, so that they go to the waiting thread. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    EQ(pthread_create(&t, NULL, sender, (void *)(long)sig), 0);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_detach(t);
}

TEST(suspend_and_pause)
{
    sigset_t s = set_of(SIGUSR1), none;

    catch(SIGUSR1, handler, SA_RESTART);
    OK(sigprocmask(SIG_BLOCK, &s, NULL));
    raise(SIGUSR1);
    sigemptyset(&none);
    ERR(EINTR, sigsuspend(&none));
    EQ(count, 1);
    OK(sigprocmask(SIG_SETMASK, NULL, &none));
    CHECK(sigismember(&none, SIGUSR1));
    sigemptyset(&none);
    OK(sigprocmask(SIG_SETMASK, &none, NULL));
    send_soon(SIGUSR1);
    ERR(EINTR, pause());
    EQ(count, 2);
}

TEST(restart_of_read)
{
    int fds[2];
    pid_t child, me = getpid();
    char c;

    OK(pipe(fds));
    for (int restart = 0; restart < 2; restart++) {
        catch(SIGUSR1, handler, restart ? SA_RESTART : 0);
        count = 0;
        child = OK(fork());
        if (!child) {
            sleep_ms(50);
            kill(me, SIGUSR1);
            sleep_ms(50);
            _exit(write(fds[1], "x", 1) == 1 ? 0 : 1);
        }
        if (!restart)
            ERR(EINTR, read(fds[0], &c, 1));
        EQ(read(fds[0], &c, 1), 1);
        EQ(count, 1);
        EQ(waitpid(child, NULL, 0), child);
    }
}

TEST(ignored_signal_does_not_interrupt)
{
    struct timespec ts = {0, 200000000};
    uint64_t begin = now_ms();

    signal(SIGUSR1, SIG_IGN);
    send_soon(SIGUSR1);
    send_soon(SIGCHLD);
    OK(nanosleep(&ts, NULL));
    CHECK(now_ms() - begin >= 199);
}

TEST(nanosleep_interrupted)
{
    struct timespec ts = {5, 0}, rem;

    catch(SIGUSR1, handler, SA_RESTART);
    send_soon(SIGUSR1);
    ERR(EINTR, nanosleep(&ts, &rem));
    CHECK(rem.tv_sec == 4 && rem.tv_nsec > 500000000);
}

TEST(stop_and_continue_restart_the_sleep)
{
    uint64_t begin = now_ms();
    int status;
    pid_t child = OK(fork());

    if (!child) {
        struct timespec ts = {0, 300000000};
        _exit(nanosleep(&ts, NULL) ? 1 : 0);
    }
    sleep_ms(50);
    OK(kill(child, SIGSTOP));
    EQ(waitpid(child, &status, WUNTRACED), child);
    sleep_ms(50);
    OK(kill(child, SIGCONT));
    EQ(waitpid(child, &status, 0), child);
    EXITED(status, 0);
    CHECK(now_ms() - begin >= 299);
    CHECK(now_ms() - begin < 1500);
}

/* ---- frames ---- */

static void altstack_handler(int sig, siginfo_t *info, void *uc)
{
    stack_t ss;
    char here;

    sigaltstack(NULL, &ss);
    count = (ss.ss_flags == SS_ONSTACK) && &here >= (char *)ss.ss_sp && &here < (char *)ss.ss_sp + ss.ss_size;
    ss.ss_flags = SS_DISABLE;
    last = sigaltstack(&ss, NULL) == -1 ? errno : 0;
}

TEST(alternate_stack)
{
    struct sigaction sa = {.sa_sigaction = altstack_handler, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    stack_t ss = {.ss_size = 64 * 1024}, old;

    ss.ss_sp = malloc(ss.ss_size);
    OK(sigaltstack(NULL, &old));
    EQ(old.ss_flags, SS_DISABLE);
    OK(sigaltstack(&ss, NULL));
    OK(sigaction(SIGUSR1, &sa, NULL));
    raise(SIGUSR1);
    EQ(count, 1);
    EQ(last, EPERM);
    OK(sigaltstack(NULL, &old));
    CHECK(old.ss_sp == ss.ss_sp && old.ss_size == ss.ss_size && old.ss_flags == 0);
    ss.ss_size = 100;
    ERR(ENOMEM, sigaltstack(&ss, NULL));
    ss.ss_flags = 0x4444;
    ERR(EINVAL, sigaltstack(&ss, NULL));
}

static void overflow_handler(int sig, siginfo_t *info, void *uc)
{
    siglongjmp(jump, 1);
}

static int recurse(volatile int n)
{
    volatile char big[4096];

    big[0] = (char)n;
    return n < 0 ? n : n + recurse(n + 1) + big[0];
}

TEST(stack_overflow_is_caught)
{
    struct sigaction sa = {.sa_sigaction = overflow_handler, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    stack_t ss = {.ss_size = 64 * 1024};

    ss.ss_sp = malloc(ss.ss_size);
    OK(sigaltstack(&ss, NULL));
    OK(sigaction(SIGSEGV, &sa, NULL));
    for (int i = 0; i < 3; i++)
        if (!sigsetjmp(jump, 1))
            recurse(0);
}

TEST(stack_overflow_without_altstack_kills)
{
    KILLED(IN_CHILD({
               struct sigaction sa = {.sa_sigaction = overflow_handler, .sa_flags = SA_SIGINFO};
               OK(sigaction(SIGSEGV, &sa, NULL));
               recurse(0);
           }), SIGSEGV);
}

static void change_registers(int sig, siginfo_t *info, void *ucontext)
{
    ucontext_t *uc = ucontext;

    uc->uc_mcontext.gregs[REG_RBX] = 0x1234;
    uc->uc_mcontext.gregs[REG_R15] += 1;
    uc->uc_mcontext.gregs[REG_RIP] += 2;
}

TEST(handler_changes_registers)
{
    struct sigaction sa = {.sa_sigaction = change_registers, .sa_flags = SA_SIGINFO};
    unsigned long rbx = 0, r15 = 41;

    OK(sigaction(SIGILL, &sa, NULL));
    __asm__ volatile("mov $0, %%rbx\n mov $41, %%r15\n ud2\n mov %%rbx, %0\n mov %%r15, %1\n"
                     : "=r"(rbx), "=r"(r15)::"rbx", "r15", "memory");
    EQ(rbx, 0x1234);
    EQ(r15, 42);
}

static void ruin_fpu(int sig)
{
    double x = 1.5;

    __asm__ volatile("pxor %%xmm0, %%xmm0\n pcmpeqb %%xmm8, %%xmm8\n fninit\n" ::: "xmm0", "xmm8");
    for (int i = 0; i < 100; i++)
        x = x * 1.1 + i;
    last_value = (long)x;
    count++;
}

TEST(fpu_state_survives)
{
    uint64_t in[4] = {0x1122334455667788, 0x99aabbccddeeff00, 3, 4}, out[4] = {0};
    unsigned mxcsr = 0x1f80 | 0x6000, got;
    pid_t me = getpid();

    catch(SIGUSR1, ruin_fpu, 0);
    __asm__ volatile("ldmxcsr %[csr]\n movdqu (%[in]), %%xmm0\n movdqu 16(%[in]), %%xmm8\n"
                     "mov %[nr], %%eax\n mov %[pid], %%edi\n mov %[sig], %%esi\n syscall\n"
                     "movdqu %%xmm0, (%[out])\n movdqu %%xmm8, 16(%[out])\n stmxcsr %[got]\n"
                     : [got] "=m"(got)
                     : [in] "r"(in), [out] "r"(out), [csr] "m"(mxcsr), [nr] "i"(SYS_kill), [pid] "m"(me), [sig] "i"(SIGUSR1)
                     : "rax", "rdi", "rsi", "rcx", "r11", "xmm0", "xmm8", "memory");
    EQ(count, 1);
    CHECK(!memcmp(in, out, sizeof(in)));
    EQ(got & ~0x3f, mxcsr);
}

TEST(avx_state_survives)
{
    uint8_t in[32], out[32];
    pid_t me = getpid();

    if (!__builtin_cpu_supports("avx"))
        return;
    for (int i = 0; i < 32; i++)
        in[i] = (uint8_t)(i * 7 + 1);
    catch(SIGUSR1, ruin_fpu, 0);
    __asm__ volatile("vmovdqu %[in], %%ymm3\n"
                     "mov %[nr], %%eax\n mov %[pid], %%edi\n mov %[sig], %%esi\n syscall\n"
                     "vmovdqu %%ymm3, %[out]\n"
                     : [out] "=m"(out)
                     : [in] "m"(in), [nr] "i"(SYS_kill), [pid] "m"(me), [sig] "i"(SIGUSR1)
                     : "rax", "rdi", "rsi", "rcx", "r11", "xmm3", "memory");
    CHECK(!memcmp(in, out, sizeof(in)));
}

TEST(syscall_clobbers_only_what_it_may)
{
    unsigned long before[6] = {11, 12, 13, 14, 15, 16}, after[6], flags;

    __asm__ volatile("mov (%1), %%rdi\n mov 8(%1), %%rsi\n mov 16(%1), %%rdx\n mov 24(%1), %%r10\n"
                     "mov 32(%1), %%r8\n mov 40(%1), %%r9\n mov $39, %%eax\n stc\n syscall\n pushfq\n pop %0\n"
                     "mov %%rdi, (%2)\n mov %%rsi, 8(%2)\n mov %%rdx, 16(%2)\n mov %%r10, 24(%2)\n"
                     "mov %%r8, 32(%2)\n mov %%r9, 40(%2)\n"
                     : "=&r"(flags)
                     : "r"(before), "r"(after)
                     : "rax", "rdi", "rsi", "rdx", "r10", "r8", "r9", "rcx", "r11", "memory", "cc");
    CHECK(!memcmp(before, after, sizeof(before)));
    CHECK(flags & 1);
}

TEST(red_zone_survives)
{
    unsigned long got;

    catch(SIGUSR1, handler, 0);
    __asm__ volatile("movq $0x5a5a, -64(%%rsp)\n mov %1, %%edi\n mov %2, %%esi\n mov %3, %%eax\n syscall\n"
                     "movq -64(%%rsp), %0\n"
                     : "=r"(got)
                     : "r"(getpid()), "i"(SIGUSR1), "i"(SYS_kill)
                     : "rax", "rdi", "rsi", "rcx", "r11", "memory");
    EQ(got, 0x5a5a);
}

/* ---- faults ---- */

static void fault_handler(int sig, siginfo_t *info, void *uc)
{
    info_handler(sig, info, uc);
    siglongjmp(jump, 1);
}

static void expect_fault(int sig, int code, void *addr, void (*fn)(volatile char *), volatile char *arg)
{
    struct sigaction sa = {.sa_sigaction = fault_handler, .sa_flags = SA_SIGINFO};

    OK(sigaction(sig, &sa, NULL));
    last = 0;
    if (!sigsetjmp(jump, 1)) {
        fn(arg);
        FAIL("no fault at %p, wanted signal %d code %d", (void *)arg, sig, code);
    }
    EQ(last, sig);
    EQ(last_code, code);
    if (addr)
        CHECK(last_addr == addr);
}

static void do_read(volatile char *p)
{
    (void)*p;
}

static void do_write(volatile char *p)
{
    *p = 1;
}

static void do_call(volatile char *p)
{
    ((void (*)(void))(uintptr_t)p)();
}

static void do_divide(volatile char *p)
{
    volatile int zero = 0, seven = 7;

    seven = seven / zero;
}

static void do_ud2(volatile char *p)
{
    __asm__ volatile("ud2");
}

static void do_int3(volatile char *p)
{
    __asm__ volatile("int3");
}

static void do_privileged(volatile char *p)
{
    __asm__ volatile("cli");
}

TEST(fault_codes)
{
    char *unmapped, *none, *ro, *file;
    int fd;

    none = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ro = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unmapped = guest_unmapped(); /* after the others, which would fill the hole */
    expect_fault(SIGSEGV, SEGV_MAPERR, unmapped + 10, do_read, unmapped + 10);
    expect_fault(SIGSEGV, SEGV_MAPERR, unmapped + 11, do_write, unmapped + 11);
    expect_fault(SIGSEGV, SEGV_MAPERR, unmapped, do_call, unmapped);
    expect_fault(SIGSEGV, SEGV_ACCERR, none + 5, do_read, none + 5);
    expect_fault(SIGSEGV, SEGV_ACCERR, ro + 6, do_write, ro + 6);
    expect_fault(SIGSEGV, SEGV_ACCERR, ro, do_call, ro);
    expect_fault(SIGSEGV, SEGV_MAPERR, NULL, do_read, (char *)8);
    EQ((long)last_addr, 8);
    expect_fault(SIGSEGV, SI_KERNEL, NULL, do_read, (char *)0x8000000000000000);
    EQ((long)last_addr, 0);
    expect_fault(SIGSEGV, SI_KERNEL, NULL, do_privileged, NULL);
    expect_fault(SIGFPE, FPE_INTDIV, NULL, do_divide, NULL);
    expect_fault(SIGILL, ILL_ILLOPN, NULL, do_ud2, NULL);
    expect_fault(SIGTRAP, SI_KERNEL, NULL, do_int3, NULL);
    guest_tmpdir();
    fd = OK(open("f", O_RDWR | O_CREAT, 0600));
    OK(ftruncate(fd, 4096));
    file = mmap(NULL, 2 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    do_write(file);
    expect_fault(SIGBUS, BUS_ADRERR, file + 4096, do_read, file + 4096);
    OK(ftruncate(fd, 0));
    expect_fault(SIGBUS, BUS_ADRERR, file + 3, do_write, file + 3);
}

TEST(blocked_fault_kills)
{
    KILLED(IN_CHILD({
               sigset_t s = set_of(SIGSEGV);
               catch(SIGSEGV, handler, 0);
               OK(sigprocmask(SIG_BLOCK, &s, NULL));
               do_write(NULL);
           }), SIGSEGV);
    KILLED(IN_CHILD(signal(SIGSEGV, SIG_IGN); do_write(NULL)), SIGSEGV);
}

TEST(blocked_sent_fault_signal_stays_pending)
{
    sigset_t s = set_of(SIGSEGV), p;

    OK(sigprocmask(SIG_BLOCK, &s, NULL));
    OK(kill(getpid(), SIGSEGV));
    OK(sigpending(&p));
    CHECK(sigismember(&p, SIGSEGV));
}

TEST(bad_frame_kills)
{
    KILLED(IN_CHILD({
               catch(SIGUSR1, handler, 0);
               __asm__ volatile("mov %0, %%edi\n mov %1, %%esi\n mov %2, %%eax\n xor %%esp, %%esp\n syscall\n ud2\n" ::"r"(
                                    getpid()),
                                "i"(SIGUSR1), "i"(SYS_kill)
                                : "rax", "rdi", "rsi", "rcx", "r11", "memory");
           }), SIGSEGV);
}

TEST(signals_to_threads)
{
    sigset_t s = set_of(SIGUSR1), p;
    siginfo_t info;

    OK(sigprocmask(SIG_BLOCK, &s, NULL));
    OK((int)syscall(SYS_tgkill, getpid(), (pid_t)syscall(SYS_gettid), SIGUSR1));
    OK(sigpending(&p));
    CHECK(sigismember(&p, SIGUSR1));
    EQ(sigwaitinfo(&s, &info), SIGUSR1);
    EQ(info.si_code, SI_USER); /* libc says so of SI_TKILL */
    ERR(EINVAL, syscall(SYS_tgkill, 0, 1, SIGUSR1));
    ERR(ESRCH, syscall(SYS_tgkill, getpid(), 99999, SIGUSR1));
}

TEST(default_actions)
{
    int killers[] = {SIGHUP, SIGINT, SIGUSR1, SIGPIPE, SIGALRM, SIGTERM, SIGVTALRM, SIGPROF, SIGIO, SIGRTMIN, SIGSTKFLT};
    int harmless[] = {SIGCHLD, SIGCONT, SIGURG, SIGWINCH};

    for (size_t i = 0; i < sizeof(killers) / sizeof(killers[0]); i++)
        KILLED(IN_CHILD(raise(killers[i])), killers[i]);
    for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++)
        EXITED(IN_CHILD(raise(harmless[i])), 0);
}

TEST(signalfd_reads)
{
    struct signalfd_siginfo info[2];
    sigset_t s = set_of(SIGUSR1);
    int fd;

    sigaddset(&s, SIGRTMIN);
    OK(sigprocmask(SIG_BLOCK, &s, NULL));
    fd = OK(signalfd(-1, &s, SFD_NONBLOCK | SFD_CLOEXEC));
    ERR(EAGAIN, read(fd, info, sizeof(info)));
    raise(SIGUSR1);
    OK(sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = 5}));
    EQ(read(fd, info, sizeof(info)), sizeof(info));
    EQ(info[0].ssi_signo, SIGUSR1);
    EQ(info[0].ssi_pid, getpid());
    EQ(info[1].ssi_signo, SIGRTMIN);
    EQ(info[1].ssi_int, 5);
    ERR(EINVAL, read(fd, info, 10));
}

TEST(many_signals)
{
    pid_t me = getpid(), child;
    int status;

    catch(SIGUSR1, handler, SA_RESTART);
    child = OK(fork());
    if (!child) {
        for (int i = 0; i < 5000; i++)
            kill(me, SIGUSR1);
        _exit(0);
    }
    while (waitpid(child, &status, 0) != child)
        ;
    CHECK(count >= 1 && count <= 5000);
}

TEST(sigqueue_permissions)
{
    siginfo_t info = {.si_code = SI_USER};

    info.si_signo = SIGUSR1;
    /* A process cannot make it look as if the kernel or kill sent a signal to another. */
    ERR(EPERM, syscall(SYS_rt_sigqueueinfo, getppid(), SIGUSR1, &info));
    ERR(EINVAL, sigqueue(getpid(), 77, (union sigval){0}));
    OK(sigqueue(getpid(), 0, (union sigval){0}));
}

TEST(longjmp_out_of_handlers)
{
    struct sigaction sa = {.sa_sigaction = overflow_handler, .sa_flags = SA_SIGINFO};

    OK(sigaction(SIGUSR1, &sa, NULL));
    for (volatile int i = 0; i < 1000; i++)
        if (!sigsetjmp(jump, 1))
            raise(SIGUSR1);
}
