/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks, sleeps, interval timers, POSIX timers, timerfd. */
#include "tests/guest/guest.h"

#include <poll.h>
#include <pthread.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <sys/timex.h>

static volatile int hits, last_code, last_value, last_overrun;

static void on_signal(int sig, siginfo_t *info, void *uc)
{
    hits++;
    last_code = info->si_code;
    last_value = info->si_value.sival_int;
    last_overrun = info->si_overrun;
}

static void catch(int sig)
{
    struct sigaction sa = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};

    OK(sigaction(sig, &sa, NULL));
}

static void burn(unsigned ms)
{
    uint64_t end = now_ms() + ms;

    while (now_ms() < end)
        ;
}

TEST(clocks_run)
{
    int ids[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID,
                 CLOCK_MONOTONIC_RAW, CLOCK_REALTIME_COARSE, CLOCK_MONOTONIC_COARSE, CLOCK_BOOTTIME, CLOCK_TAI};
    struct timespec a, b, res;

    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        OK((int)syscall(SYS_clock_gettime, ids[i], &a));
        burn(12);
        OK((int)syscall(SYS_clock_gettime, ids[i], &b));
        CHECK(b.tv_sec > a.tv_sec || (b.tv_sec == a.tv_sec && b.tv_nsec > a.tv_nsec));
        OK(clock_getres(ids[i], &res));
        CHECK(res.tv_sec == 0 && res.tv_nsec >= 1 && res.tv_nsec <= 10000000);
    }
    ERR(EINVAL, syscall(SYS_clock_gettime, 77, &a));
    ERR(EINVAL, syscall(SYS_clock_getres, 77, &a));
    ERR(EFAULT, syscall(SYS_clock_gettime, 0, 8));
    OK((int)syscall(SYS_clock_getres, 0, NULL));
}

TEST(call_and_vdso_agree)
{
    struct timespec a, b, c;

    for (int id = 0; id < 2; id++) {
        clock_gettime(id, &a);
        syscall(SYS_clock_gettime, id, &b);
        clock_gettime(id, &c);
        CHECK(a.tv_sec < b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec <= b.tv_nsec));
        CHECK(b.tv_sec < c.tv_sec || (b.tv_sec == c.tv_sec && b.tv_nsec <= c.tv_nsec));
    }
    CHECK(time(NULL) - syscall(SYS_time, NULL) <= 1);
}

TEST(clock_cannot_be_set)
{
    struct timespec ts = {1000000000, 0}, bad = {1, 2000000000};
    struct timeval tv = {1000000000, 0};

    ERR(EPERM, syscall(SYS_clock_settime, CLOCK_REALTIME, &ts));
    ERR(EINVAL, syscall(SYS_clock_settime, CLOCK_REALTIME, &bad));
    ERR(EINVAL, syscall(SYS_clock_settime, CLOCK_MONOTONIC, &ts));
    ERR(EPERM, syscall(SYS_settimeofday, &tv, NULL));
}

TEST(adjtimex_reads)
{
    struct timex tx = {0};

    CHECK(OK(adjtimex(&tx)) <= 5);
    CHECK(tx.tick >= 9000 && tx.tick <= 11000);
    tx.modes = 2;
    ERR(EPERM, adjtimex(&tx));
}

TEST(cpu_clocks)
{
    struct timespec a, b;
    clockid_t other;
    pid_t child;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
    sleep_ms(100);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
    CHECK((b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000 < 60);
    burn(100);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
    CHECK((a.tv_sec - b.tv_sec) * 1000 + (a.tv_nsec - b.tv_nsec) / 1000000 > 20);
    child = OK(fork());
    if (!child)
        burn(10000);
    EQ(clock_getcpuclockid(child, &other), 0);
    for (int tries = 0;; tries++) { /* on a busy machine it may have to wait */
        sleep_ms(100);
        OK(clock_gettime(other, &a));
        if (a.tv_sec || a.tv_nsec > 5000000)
            break;
        CHECK(tries < 50);
    }
    kill(child, SIGKILL);
    wait(NULL);
    EQ(clock_getcpuclockid(99999, &other), ESRCH);
}

TEST(sleeps)
{
    struct timespec ts = {0, 30000000}, bad = {0, 1000000000}, neg = {-1, 0};
    uint64_t begin = now_ms();

    OK(nanosleep(&ts, NULL));
    CHECK(now_ms() - begin >= 29);
    ERR(EINVAL, nanosleep(&bad, NULL));
    ERR(EINVAL, nanosleep(&neg, NULL));
    ERR(EFAULT, syscall(SYS_nanosleep, 8, NULL));
    begin = now_ms();
    EQ(clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL), 0);
    EQ(clock_nanosleep(CLOCK_REALTIME, 0, &ts, NULL), 0);
    EQ(clock_nanosleep(CLOCK_BOOTTIME, 0, &ts, NULL), 0);
    CHECK(now_ms() - begin >= 89);
    clock_gettime(CLOCK_MONOTONIC, &ts);
    ts.tv_sec -= 1;
    EQ(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL), 0);
    clock_gettime(CLOCK_REALTIME, &ts);
    ts.tv_nsec += 40000000;
    if (ts.tv_nsec >= 1000000000) {
        ts.tv_sec++;
        ts.tv_nsec -= 1000000000;
    }
    begin = now_ms();
    EQ(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &ts, NULL), 0);
    CHECK(now_ms() - begin >= 38);
    ERR(EINVAL, syscall(SYS_clock_nanosleep, 77, 0, &ts, NULL));
    ERR(EOPNOTSUPP, syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC_RAW, 0, &ts, NULL));
}

TEST(sleep_accuracy)
{
    struct timespec ts = {0, 1000000};
    uint64_t begin = now_ms(), took;

    for (int i = 0; i < 50; i++)
        nanosleep(&ts, NULL);
    took = now_ms() - begin;
    CHECK(took >= 50 && took < 500);
}

TEST(itimer_real)
{
    struct itimerval v = {{0, 10000}, {0, 20000}}, old;
    uint64_t begin = now_ms();

    catch(SIGALRM);
    OK(setitimer(ITIMER_REAL, &v, NULL));
    while (hits < 5)
        pause();
    CHECK(now_ms() - begin >= 59);
    OK(getitimer(ITIMER_REAL, &old));
    EQ(old.it_interval.tv_usec, 10000);
    memset(&v, 0, sizeof(v));
    OK(setitimer(ITIMER_REAL, &v, &old));
    EQ(old.it_interval.tv_usec, 10000);
    hits = 0;
    sleep_ms(40);
    EQ(hits, 0);
    ERR(EINVAL, setitimer((enum __itimer_which)7, &v, NULL));
    v.it_value.tv_usec = 1000000;
    ERR(EINVAL, setitimer(ITIMER_REAL, &v, NULL));
}

TEST(alarm_counts)
{
    EQ(alarm(100), 20); /* the test's own */
    unsigned left = alarm(0);
    CHECK(left == 100 || left == 99);
    catch(SIGALRM);
    alarm(1);
    pause();
    EQ(hits, 1);
    /* Not inherited by fork, kept over exec: here only fork. */
    alarm(50);
    EXITED(IN_CHILD(_exit((int)alarm(0))), 0);
}

TEST(itimer_prof_and_virtual)
{
    struct itimerval v = {{0, 20000}, {0, 20000}}, none = {0};

    catch(SIGPROF);
    OK(setitimer(ITIMER_PROF, &v, NULL));
    burn(300);
    OK(setitimer(ITIMER_PROF, &none, NULL));
    CHECK(hits >= 3 && hits <= 20);
    hits = 0;
    catch(SIGVTALRM);
    OK(setitimer(ITIMER_VIRTUAL, &v, NULL));
    sleep_ms(100);
    CHECK(hits <= 2);
    burn(200);
    CHECK(hits >= 1);
}

static timer_t make_timer(int clock, int notify, int sig, int value)
{
    struct sigevent ev = {.sigev_notify = notify, .sigev_signo = sig, .sigev_value.sival_int = value};
    timer_t t;

    OK(timer_create(clock, &ev, &t));
    return t;
}

TEST(posix_timer_signal)
{
    struct itimerspec v = {{0, 0}, {0, 30000000}}, got;
    timer_t t;

    catch(SIGUSR1);
    t = make_timer(CLOCK_MONOTONIC, SIGEV_SIGNAL, SIGUSR1, 42);
    OK(timer_settime(t, 0, &v, NULL));
    OK(timer_gettime(t, &got));
    CHECK(got.it_value.tv_nsec > 10000000 && got.it_value.tv_nsec <= 30000000);
    pause();
    EQ(hits, 1);
    EQ(last_code, SI_TIMER);
    EQ(last_value, 42);
    OK(timer_gettime(t, &got));
    EQ(got.it_value.tv_nsec, 0);
    clock_gettime(CLOCK_REALTIME, &v.it_value);
    OK(timer_delete(t));
    t = make_timer(CLOCK_REALTIME, SIGEV_SIGNAL, SIGUSR1, 43);
    OK(timer_settime(t, TIMER_ABSTIME, &v, NULL));
    while (hits < 2)
        sleep_ms(1);
    EQ(last_value, 43);
    OK(timer_delete(t));
    ERR(EINVAL, syscall(SYS_timer_delete, 12345));
    ERR(EINVAL, syscall(SYS_timer_create, 77, NULL, &t));
    struct sigevent bad = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = 99};
    ERR(EINVAL, timer_create(CLOCK_REALTIME, &bad, &t));
}

TEST(posix_timer_overrun)
{
    struct itimerspec v = {{0, 1000000}, {0, 1000000}}, none = {0};
    sigset_t s;
    siginfo_t info;
    timer_t t;

    sigemptyset(&s);
    sigaddset(&s, SIGRTMIN);
    OK(sigprocmask(SIG_BLOCK, &s, NULL));
    t = make_timer(CLOCK_MONOTONIC, SIGEV_SIGNAL, SIGRTMIN, 1);
    OK(timer_settime(t, 0, &v, NULL));
    sleep_ms(60);
    EQ(sigwaitinfo(&s, &info), SIGRTMIN);
    CHECK(info.si_overrun >= 40 && info.si_overrun <= 200);
    EQ(timer_getoverrun(t), info.si_overrun);
    OK(timer_settime(t, 0, &none, NULL));
}

static volatile int thread_hits;

static void on_timer(union sigval v)
{
    thread_hits += v.sival_int;
}

TEST(posix_timer_thread)
{
    struct sigevent ev = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = on_timer, .sigev_value.sival_int = 3};
    struct itimerspec v = {{0, 0}, {0, 10000000}};
    timer_t t;

    OK(timer_create(CLOCK_MONOTONIC, &ev, &t));
    OK(timer_settime(t, 0, &v, NULL));
    for (int i = 0; i < 200 && !thread_hits; i++)
        sleep_ms(10);
    EQ(thread_hits, 3);
}

TEST(posix_timer_none_and_cpu)
{
    struct itimerspec v = {{0, 0}, {0, 20000000}}, got;
    timer_t t = make_timer(CLOCK_MONOTONIC, SIGEV_NONE, 0, 0), c;

    OK(timer_settime(t, 0, &v, NULL));
    sleep_ms(30);
    OK(timer_gettime(t, &got));
    EQ(got.it_value.tv_nsec, 0);
    catch(SIGUSR2);
    c = make_timer(CLOCK_PROCESS_CPUTIME_ID, SIGEV_SIGNAL, SIGUSR2, 9);
    OK(timer_settime(c, 0, &v, NULL));
    sleep_ms(50);
    EQ(hits, 0);
    burn(300);
    EQ(hits, 1);
    EQ(last_value, 9);
}

MODE(no_timers)
{
    struct itimerspec v;

    return syscall(SYS_timer_gettime, atoi(argv[2]), &v) == -1 && errno == EINVAL && alarm(0) > 0 ? 0 : 1;
}

TEST(timers_over_fork_and_exec)
{
    int id = -1;
    struct sigevent ev = {.sigev_notify = SIGEV_NONE};
    char text[16], *argv[] = {"x", "@no_timers", text, NULL};
    struct itimerspec v;

    OK((int)syscall(SYS_timer_create, CLOCK_MONOTONIC, &ev, &id));
    EXITED(IN_CHILD(_exit(syscall(SYS_timer_gettime, id, &v) == -1 ? 0 : 1)), 0);
    EXITED(IN_CHILD({
               OK((int)syscall(SYS_timer_create, CLOCK_MONOTONIC, &ev, &id));
               snprintf(text, sizeof(text), "%d", id);
               alarm(100);
               execv("/proc/self/exe", argv);
           }), 0);
}

TEST(timerfd)
{
    struct itimerspec v = {{0, 10000000}, {0, 20000000}}, got;
    int fd = OK(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
    struct pollfd p = {fd, POLLIN, 0};
    uint64_t n;

    ERR(EAGAIN, read(fd, &n, 8));
    EQ(poll(&p, 1, 0), 0);
    OK(timerfd_settime(fd, 0, &v, NULL));
    OK(timerfd_gettime(fd, &got));
    EQ(got.it_interval.tv_nsec, 10000000);
    CHECK(got.it_value.tv_nsec > 0 && got.it_value.tv_nsec <= 20000000);
    EQ(poll(&p, 1, 1000), 1);
    EQ(read(fd, &n, 8), 8);
    CHECK(n >= 1);
    sleep_ms(55);
    EQ(read(fd, &n, 8), 8);
    CHECK(n >= 5 && n < 30);
    ERR(EINVAL, read(fd, &n, 4));
    clock_gettime(CLOCK_MONOTONIC, &v.it_value);
    v.it_interval.tv_nsec = 0;
    OK(timerfd_settime(fd, TFD_TIMER_ABSTIME, &v, NULL));
    EQ(poll(&p, 1, 1000), 1);
    EQ(read(fd, &n, 8), 8);
    EQ(n, 1);
    v = (struct itimerspec){0};
    OK(timerfd_settime(fd, 0, &v, NULL));
    EQ(poll(&p, 1, 20), 0);
    ERR(EINVAL, timerfd_create(77, 0));
    ERR(EINVAL, timerfd_create(CLOCK_MONOTONIC, 0x1234));
}

TEST(times_call)
{
    struct tms t;
    clock_t a = times(&t), b;

    burn(60);
    b = times(&t);
    CHECK(b - a >= 5 && b - a < 100);
    CHECK(t.tms_utime + t.tms_stime >= 1);
}

TEST(relative_time_never_steps_back)
{
    struct timespec a, b;

    clock_gettime(CLOCK_MONOTONIC, &a);
    for (int i = 0; i < 200000; i++) {
        clock_gettime(CLOCK_MONOTONIC, &b);
        CHECK(b.tv_sec > a.tv_sec || (b.tv_sec == a.tv_sec && b.tv_nsec >= a.tv_nsec));
        a = b;
    }
}
