/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials, limits, names, scheduling, memfd, inotify, and other small things. */
#include "tests/guest/guest.h"

#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <sys/fsuid.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/msg.h>
#include <mqueue.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

struct cap_data {
    uint32_t effective, permitted, inheritable;
};

TEST(uname_and_sysinfo)
{
    struct utsname u;
    struct sysinfo s;

    OK(uname(&u));
    STR(u.nodename, "guest");
    CHECK(u.release[0] >= '5');
    OK(sysinfo(&s));
    CHECK(s.totalram > 0 && s.mem_unit > 0 && s.procs > 0);
    ERR(EPERM, sethostname("x", 1));
}

TEST(user_ids)
{
    uid_t r, e, s;

    OK(setresuid(10, 20, 30));
    OK(getresuid(&r, &e, &s));
    EQ(r, 10);
    EQ(e, 20);
    EQ(s, 30);
    EQ(setfsuid((uid_t)-1), 20);
    ERR(EPERM, setuid(40));
    OK(setuid(30));
    OK(getresuid(&r, &e, &s));
    EQ(r, 10);
    EQ(e, 30);
    OK(setreuid(30, 10));
    OK(getresuid(&r, &e, &s));
    EQ(r, 30);
    EQ(e, 10);
    EQ(s, 10);
}

TEST(root_drops_capabilities)
{
    struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct cap_data d[2];

    OK((int)syscall(SYS_capget, &h, d));
    CHECK(d[0].effective & (1 << CAP_CHOWN));
    OK(setresuid(1000, 1000, 1000));
    OK((int)syscall(SYS_capget, &h, d));
    EQ(d[0].effective, 0);
    EQ(d[0].permitted, 0);
    ERR(EPERM, setuid(0));
    d[0].permitted = d[0].effective = 1;
    ERR(EPERM, syscall(SYS_capset, &h, d));
    h.version = 1;
    ERR(EINVAL, syscall(SYS_capget, &h, d));
    EQ(h.version, _LINUX_CAPABILITY_VERSION_3);
}

TEST(keep_capabilities)
{
    struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct cap_data d[2];

    OK(prctl(PR_SET_KEEPCAPS, 1));
    OK(setresuid(1000, 1000, 1000));
    OK((int)syscall(SYS_capget, &h, d));
    EQ(d[0].effective, 0);
    CHECK(d[0].permitted & (1 << CAP_CHOWN));
    d[0].effective = d[0].permitted;
    OK((int)syscall(SYS_capset, &h, d));
    EQ(prctl(PR_CAPBSET_READ, CAP_CHOWN), 1);
    EQ(prctl(PR_CAPBSET_READ, CAP_SYS_ADMIN), 0);
    ERR(EINVAL, prctl(PR_CAPBSET_READ, 99));
}

TEST(groups)
{
    gid_t in[3] = {30, 10, 20}, out[3];

    OK(setgroups(3, in));
    EQ(getgroups(0, NULL), 3);
    EQ(getgroups(3, out), 3);
    EQ(out[0] + out[1] + out[2], 60);
    ERR(EINVAL, getgroups(2, out));
    OK(setresgid(5, 6, 7));
    OK(setuid(1000));
    ERR(EPERM, setgroups(0, NULL));
    ERR(EPERM, setgid(9));
    OK(setgid(7));
}

TEST(prctls)
{
    char name[16];
    int v;

    EQ(prctl(PR_GET_DUMPABLE), 1);
    OK(prctl(PR_SET_DUMPABLE, 0));
    EQ(prctl(PR_GET_DUMPABLE), 0);
    ERR(EINVAL, prctl(PR_SET_DUMPABLE, 9));
    OK(prctl(PR_SET_NAME, "a name that is too long"));
    OK(prctl(PR_GET_NAME, name));
    STR(name, "a name that is ");
    EQ(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 0);
    OK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    EQ(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 1);
    ERR(EINVAL, prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0));
    OK(prctl(PR_SET_PDEATHSIG, SIGTERM));
    OK(prctl(PR_GET_PDEATHSIG, &v));
    EQ(v, SIGTERM);
    ERR(EINVAL, prctl(PR_SET_PDEATHSIG, 99));
    ERR(EINVAL, prctl(9999));
    EQ(prctl(PR_GET_TIMERSLACK), 50000);
}

MODE(ids)
{
    uid_t r, e, s;

    getresuid(&r, &e, &s);
    return r == 1000 && e == (uid_t)atoi(argv[2]) ? 0 : 1;
}

TEST(set_user_id_programs)
{
    char *argv[] = {"x", "@ids", "0", NULL};
    char *data = malloc(16 << 20);
    ssize_t n;
    int in, out;

    guest_tmpdir();
    OK(chmod(".", 0755));
    in = OK(open("/test", O_RDONLY));
    out = OK(open("prog", O_WRONLY | O_CREAT, 0755));
    while ((n = OK(read(in, data, 16 << 20))) > 0)
        EQ(write(out, data, (size_t)n), n);
    OK(close(out));
    OK(chmod("prog", 04755));
    EXITED(IN_CHILD(OK(setuid(1000)); execv("prog", argv)), 0);
    argv[2] = "1000";
    EXITED(IN_CHILD(OK(setuid(1000)); OK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)); execv("prog", argv)), 0);
}

TEST(limits)
{
    struct rlimit l, n = {10, 20};

    OK(getrlimit(RLIMIT_NOFILE, &l));
    EQ(l.rlim_cur, 1024);
    OK(setrlimit(RLIMIT_CORE, &n) == -1 ? (n.rlim_max = n.rlim_cur = 0, setrlimit(RLIMIT_CORE, &n)) : 0);
    n = (struct rlimit){20, 10};
    ERR(EINVAL, setrlimit(RLIMIT_NOFILE, &n));
    ERR(EINVAL, getrlimit((enum __rlimit_resource)99, &l));
    n = (struct rlimit){l.rlim_cur, 1 << 30};
    ERR(EPERM, setrlimit(RLIMIT_NOFILE, &n));
    n = (struct rlimit){512, 512};
    OK(prlimit(0, RLIMIT_NOFILE, &n, &l));
    EQ(l.rlim_cur, 1024);
    EXITED(IN_CHILD({
               OK(getrlimit(RLIMIT_NOFILE, &l));
               EQ(l.rlim_max, 512);
           }), 0);
    ERR(ESRCH, prlimit(999999, RLIMIT_NOFILE, NULL, &l));
}

TEST_TIME(cpu_limit, 30)
{
    struct rlimit l = {1, 3};

    KILLED(IN_CHILD({
               setrlimit(RLIMIT_CPU, &l);
               for (;;)
                   ;
           }), SIGXCPU);
}

TEST(process_limit)
{
    struct rlimit l = {8, 8};

    EXITED(IN_CHILD({
               int made = 0;
               OK(setuid(4321));
               OK(setrlimit(RLIMIT_NPROC, &l));
               for (int i = 0; i < 20; i++) {
                   pid_t child = fork();
                   if (!child) {
                       sleep_ms(300);
                       _exit(0);
                   }
                   if (child < 0) {
                       EQ(errno, EAGAIN);
                       break;
                   }
                   made++;
               }
               EQ(made, 7);
               while (wait(NULL) > 0)
                   ;
               EXITED(IN_CHILD(), 0);
           }), 0);
}

TEST(random)
{
    unsigned char a[64] = {0}, b[64] = {0}, *big = calloc(1, 1 << 20);

    EQ(getrandom(a, 64, 0), 64);
    EQ(getrandom(b, 64, GRND_NONBLOCK), 64);
    CHECK(memcmp(a, b, 64));
    EQ(getrandom(big, 1 << 20, 0), 1 << 20);
    CHECK(big[(1 << 20) - 1] | big[(1 << 20) - 2] | big[(1 << 20) - 3] | big[(1 << 20) - 4]);
    ERR(EINVAL, getrandom(a, 64, 0x100));
    EQ(getrandom(a, 0, 0), 0);
}

TEST(scheduling)
{
    struct sched_param p = {0};
    cpu_set_t set;

    OK(sched_getaffinity(0, sizeof(set), &set));
    CHECK(CPU_COUNT(&set) >= 1);
    OK(sched_setaffinity(0, sizeof(set), &set));
    EQ(sched_getscheduler(0), SCHED_OTHER);
    p.sched_priority = 5;
    ERR(EINVAL, sched_setscheduler(0, SCHED_OTHER, &p));
    p.sched_priority = 0;
    OK(sched_setscheduler(0, SCHED_BATCH, &p));
    EQ(sched_getscheduler(0), SCHED_BATCH);
    p.sched_priority = 5;
    ERR(EPERM, sched_setscheduler(0, SCHED_FIFO, &p));
    EQ(sched_get_priority_max(SCHED_FIFO), 99);
    ERR(ESRCH, sched_getscheduler(999999));
    errno = 0;
    EQ(getpriority(PRIO_PROCESS, 0), 0);
    OK(setpriority(PRIO_PROCESS, 0, 5));
    EQ(getpriority(PRIO_PROCESS, 0), 5);
    EQ(nice(3), 8);
    ERR(EACCES, setpriority(PRIO_PROCESS, 0, -5));
    EXITED(IN_CHILD(EQ(getpriority(PRIO_PROCESS, 0), 8)), 0);
    OK(sched_yield());
    ERR(EINVAL, getpriority(9, 0));
    ERR(EINVAL, syscall(SYS_sched_getaffinity, 0, 3, &set));
}

TEST(personalities)
{
    EQ(personality(0xffffffff), 0);
    EQ(personality(ADDR_NO_RANDOMIZE), 0);
    EQ(personality(0xffffffff), ADDR_NO_RANDOMIZE);
}

TEST(memory_files)
{
    int fd = OK(memfd_create("name", MFD_CLOEXEC | MFD_ALLOW_SEALING)), plain;
    char target[64], path[64], *p;
    ssize_t n;

    OK(ftruncate(fd, 8192));
    p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    p[0] = 5;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    n = OK(readlink(path, target, sizeof(target) - 1));
    target[n] = 0;
    STR(target, "/memfd:name (deleted)");
    OK(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW));
    EQ(fcntl(fd, F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW);
    ERR(EPERM, ftruncate(fd, 100));
    ERR(EPERM, ftruncate(fd, 10000));
    ERR(EBUSY, fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
    OK(munmap(p, 8192));
    OK(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SEAL));
    ERR(EPERM, write(fd, "x", 1));
    ERR(EPERM, mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    ERR(EPERM, fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
    plain = OK(memfd_create("", 0));
    ERR(EPERM, fcntl(plain, F_ADD_SEALS, F_SEAL_SHRINK));
    ERR(EINVAL, memfd_create("x", 0x8000));
}

TEST(inotify_events)
{
    char buf[4096];
    struct inotify_event *e = (void *)buf;
    int fd = OK(inotify_init1(IN_NONBLOCK)), w;
    struct pollfd p = {fd, POLLIN, 0};

    guest_tmpdir();
    w = OK(inotify_add_watch(fd, ".", IN_CREATE | IN_DELETE | IN_CLOSE_WRITE | IN_MOVED_FROM | IN_MOVED_TO));
    ERR(EAGAIN, read(fd, buf, sizeof(buf)));
    guest_write_file("a", "x");
    EQ(poll(&p, 1, 1000), 1);
    CHECK(OK(read(fd, buf, sizeof(buf))) == 64);
    EQ(e->wd, w);
    EQ(e->mask, IN_CREATE);
    STR(e->name, "a");
    e = (void *)(buf + 32);
    EQ(e->mask, IN_CLOSE_WRITE);
    OK(rename("a", "b"));
    EQ(OK(read(fd, buf, sizeof(buf))), 64);
    e = (void *)buf;
    EQ(e->mask, IN_MOVED_FROM);
    uint32_t cookie = e->cookie;
    e = (void *)(buf + 32);
    EQ(e->mask, IN_MOVED_TO);
    EQ(e->cookie, cookie);
    OK(unlink("b"));
    OK(inotify_rm_watch(fd, w));
    EQ(OK(read(fd, buf, sizeof(buf))), 48);
    e = (void *)(buf + 32);
    EQ(e->mask, IN_IGNORED);
    ERR(EINVAL, inotify_rm_watch(fd, w));
    ERR(ENOENT, inotify_add_watch(fd, "missing", IN_CREATE));
}

TEST(sysv_ipc)
{
    struct {
        long type;
        char text[8];
    } m = {3, "hello"}, got;
    int id = OK(shmget(IPC_PRIVATE, 8192, IPC_CREAT | 0600));
    char *p = shmat(id, NULL, 0);

    CHECK(p != (void *)-1);
    EXITED(IN_CHILD(p[5] = 42), 0);
    EQ(p[5], 42);
    OK(shmdt(p));
    OK(shmctl(id, IPC_RMID, NULL));
    ERR(EINVAL, shmat(id, NULL, 0) == (void *)-1 ? -1 : 0);

    id = OK(semget(IPC_PRIVATE, 2, IPC_CREAT | 0600));
    struct sembuf up = {0, 2, 0}, down = {0, -1, 0}, now = {1, -1, IPC_NOWAIT};
    OK(semop(id, &up, 1));
    EQ(semctl(id, 0, GETVAL), 2);
    ERR(EAGAIN, semop(id, &now, 1));
    pid_t child = OK(fork());
    if (!child) {
        struct sembuf three = {0, -3, 0};
        _exit(semop(id, &three, 1) ? 1 : 0);
    }
    sleep_ms(30);
    up.sem_op = 1;
    OK(semop(id, &up, 1));
    int status;
    EQ(waitpid(child, &status, 0), child);
    EXITED(status, 0);
    (void)down;
    OK(semctl(id, 0, IPC_RMID));

    id = OK(msgget(IPC_PRIVATE, IPC_CREAT | 0600));
    OK(msgsnd(id, &m, 6, 0));
    ERR(ENOMSG, msgrcv(id, &got, 8, 4, IPC_NOWAIT));
    EQ(msgrcv(id, &got, 8, 3, 0), 6);
    STR(got.text, "hello");
    OK(msgctl(id, IPC_RMID, NULL));
}

TEST(posix_queues)
{
    struct mq_attr a = {.mq_maxmsg = 4, .mq_msgsize = 16};
    char buf[16];
    unsigned prio;
    mqd_t q = mq_open("/guest", O_CREAT | O_RDWR | O_NONBLOCK, 0600, &a);

    OK(q);
    OK(mq_send(q, "low", 3, 1));
    OK(mq_send(q, "high", 4, 9));
    EQ(mq_receive(q, buf, 16, &prio), 4);
    EQ(prio, 9);
    EQ(mq_receive(q, buf, 16, &prio), 3);
    ERR(EAGAIN, mq_receive(q, buf, 16, &prio));
    ERR(EMSGSIZE, mq_receive(q, buf, 5, &prio));
    OK(mq_unlink("/guest"));
    ERR(ENOENT, mq_unlink("/guest"));
}

TEST(process_descriptors)
{
    siginfo_t info;
    struct pollfd p;
    pid_t child = OK(fork());
    int fd;

    if (!child) {
        pause();
        _exit(0);
    }
    fd = (int)OK(syscall(434, child, 0));
    p = (struct pollfd){fd, POLLIN, 0};
    EQ(poll(&p, 1, 0), 0);
    EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
    OK((int)syscall(424, fd, SIGKILL, NULL, 0));
    EQ(poll(&p, 1, 2000), 1);
    OK(waitid((idtype_t)3, (id_t)fd, &info, WEXITED));
    EQ(info.si_pid, child);
    EQ(info.si_status, SIGKILL);
    ERR(ESRCH, syscall(424, fd, 0, NULL, 0));
    ERR(ESRCH, syscall(434, 999999, 0));
    ERR(EINVAL, syscall(434, getpid(), 1));
}

TEST(membarrier_query)
{
    long r = syscall(SYS_membarrier, 0, 0, 0);

    CHECK(r >= 0 || errno == ENOSYS);
    ERR(EINVAL, r >= 0 ? syscall(SYS_membarrier, 1 << 30, 0, 0) : (errno = EINVAL, -1));
}
