/* SPDX-License-Identifier: Apache-2.0 */
/* Many of everything: forks, threads, files, signals at once. */
#include "tests/guest/guest.h"

#include <pthread.h>
#include <sys/resource.h>

TEST_TIME(ten_thousand_forks, 120)
{
    int status;

    for (int i = 0; i < 10000; i++) {
        pid_t child = OK(fork());
        if (!child)
            _exit(i & 0x7f);
        EQ(waitpid(child, &status, 0), child);
        EXITED(status, i & 0x7f);
    }
}

TEST_TIME(thousand_processes_at_once, 120)
{
    int fds[2], status, n = 0;
    char c;

    OK(pipe(fds));
    for (int i = 0; i < 1000; i++) {
        pid_t child = OK(fork());
        if (!child) {
            close(fds[1]);
            _exit(read(fds[0], &c, 1) == 0 ? 0 : 1);
        }
    }
    close(fds[1]);
    while (wait(&status) > 0) {
        EXITED(status, 0);
        n++;
    }
    EQ(n, 1000);
}

static pthread_barrier_t barrier;

static void *meets(void *arg)
{
    pthread_barrier_wait(&barrier);
    return arg;
}

TEST_TIME(five_hundred_threads, 60)
{
    pthread_t t[500];
    pthread_attr_t attr;
    void *r;

    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 64 * 1024);
    pthread_barrier_init(&barrier, NULL, 501);
    for (long i = 0; i < 500; i++)
        EQ(pthread_create(&t[i], &attr, meets, (void *)i), 0);
    pthread_barrier_wait(&barrier);
    for (long i = 0; i < 500; i++) {
        EQ(pthread_join(t[i], &r), 0);
        EQ((long)r, i);
    }
}

static void *dies(void *arg)
{
    return NULL;
}

TEST_TIME(threads_come_and_go, 60)
{
    pthread_t t;

    for (int i = 0; i < 3000; i++) {
        EQ(pthread_create(&t, NULL, dies, NULL), 0);
        EQ(pthread_join(t, NULL), 0);
    }
}

TEST_TIME(opens_up_to_the_limit, 60)
{
    struct rlimit l;
    long n = 0;
    int fd, last = -1;

    OK(getrlimit(RLIMIT_NOFILE, &l));
    l.rlim_cur = l.rlim_max < 100000 ? l.rlim_max : 100000;
    OK(setrlimit(RLIMIT_NOFILE, &l));
    guest_tmpdir();
    guest_write_file("f", "");
    while ((fd = open(n % 2 ? "/dev/null" : "f", O_RDONLY)) >= 0) {
        last = fd;
        n++;
    }
    EQ(errno, EMFILE);
    EQ(last, (long)l.rlim_cur - 1);
    ERR(EMFILE, dup(0));
    OK((int)syscall(436, 3, ~0U, 0));
    OK(close(OK(open("f", O_RDONLY))));
}

TEST_TIME(fork_bomb_under_a_limit, 60)
{
    EXITED(IN_CHILD({
               struct rlimit l = {60, 60};
               uint64_t end = now_ms() + 1500;
               OK(setpgid(0, 0));
               OK(setuid(5555));
               OK(setrlimit(RLIMIT_NPROC, &l));
               while (now_ms() < end)
                   if (fork() == -1)
                       sleep_ms(1);
               signal(SIGTERM, SIG_IGN);
               _exit(0);
           }), 0);
    /* The rest end by the same clock; new processes are possible again. */
    sleep_ms(300);
    EXITED(IN_CHILD(OK(setuid(5555))), 0);
}

TEST_TIME(exec_chain, 60)
{
    char *argv[] = {"x", "@again", "200", NULL};

    EXITED(IN_CHILD(execv("/proc/self/exe", argv)), 55);
}

MODE(again)
{
    char text[16];
    char *next[] = {"x", "@again", text, NULL};
    int n = atoi(argv[2]);

    if (!n)
        return 55;
    snprintf(text, sizeof(text), "%d", n - 1);
    execv("/proc/self/exe", next);
    return 1;
}

static volatile bool stop;

static void *forks(void *arg)
{
    while (!stop) {
        pid_t child = fork();
        if (!child)
            _exit(0);
        if (child > 0)
            waitpid(child, NULL, 0);
    }
    return NULL;
}

static void *maps(void *arg)
{
    while (!stop) {
        char *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memset(p, 1, 1 << 20);
        munmap(p, 1 << 20);
    }
    return NULL;
}

static void *opens(void *arg)
{
    while (!stop)
        close(open("/proc/self/status", O_RDONLY));
    return NULL;
}

static void on_signal(int sig)
{
}

TEST_TIME(everything_at_once, 60)
{
    void *(*fns[])(void *) = {forks, maps, opens, forks, maps, opens};
    struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    pthread_t t[6];
    uint64_t end = now_ms() + 3000;

    OK(sigaction(SIGUSR1, &sa, NULL));
    for (int i = 0; i < 6; i++)
        EQ(pthread_create(&t[i], NULL, fns[i], NULL), 0);
    while (now_ms() < end)
        for (int i = 0; i < 6; i++)
            pthread_kill(t[i], SIGUSR1);
    stop = true;
    for (int i = 0; i < 6; i++)
        EQ(pthread_join(t[i], NULL), 0);
}

TEST_TIME(kill_at_random_moments, 60)
{
    int status;

    srand(1);
    for (int i = 0; i < 200; i++) {
        pid_t child = OK(fork());
        if (!child) {
            for (;;) {
                close(open("/tmp", O_RDONLY));
                pid_t grandchild = fork();
                if (!grandchild)
                    _exit(0);
                waitpid(grandchild, NULL, 0);
            }
        }
        usleep((useconds_t)(rand() % 3000));
        OK(kill(child, SIGKILL));
        EQ(waitpid(child, &status, 0), child);
        KILLED(status, SIGKILL);
    }
}
