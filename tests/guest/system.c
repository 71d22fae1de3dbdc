/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of administrators and old programs, as root with the capabilities for them: scheduling classes, sysfs, ustat, vhangup,
 * process accounting. */
#include "tests/guest/guest.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/acct.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <sys/sysinfo.h>

struct attr {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
    uint32_t util_min, util_max;
};

static int set_attr(struct attr *a)
{
    return (int)syscall(SYS_sched_setattr, 0, a, 0);
}

static int get_attr(struct attr *a, unsigned size)
{
    memset(a, 0, sizeof(*a));
    return (int)syscall(SYS_sched_getattr, 0, a, size, 0);
}

TEST(sched_attr_sizes)
{
    struct attr a = {.size = 40};

    ERR(E2BIG, set_attr(&a));
    EQ(a.size, 56);
    a.size = 5000;
    ERR(E2BIG, set_attr(&a));
    EQ(a.size, 56);
    a.size = 0; /* the first version */
    OK(set_attr(&a));
    ERR(EINVAL, get_attr(&a, 47));
    OK(get_attr(&a, 48));
    EQ(a.size, 48);
    OK(get_attr(&a, sizeof(a)));
    EQ(a.size, 56);
    ERR(EINVAL, syscall(SYS_sched_getattr, 0, &a, 5000, 0));
    ERR(EINVAL, syscall(SYS_sched_getattr, 0, &a, 48, 1));
    ERR(EINVAL, syscall(SYS_sched_setattr, 0, NULL, 0));
    ERR(ESRCH, syscall(SYS_sched_getattr, 999999, &a, 48, 0));
    a.flags = 1 << 7;
    ERR(EINVAL, set_attr(&a));
    a.flags = 0;
    a.policy = 77;
    ERR(EINVAL, set_attr(&a));
    a.policy = UINT32_MAX;
    ERR(EINVAL, set_attr(&a));
}

TEST(sched_attr_realtime)
{
    struct attr a = {.size = 48, .policy = SCHED_FIFO, .priority = 7, .flags = 1};
    struct sched_param p = {0};

    if (set_attr(&a) && errno == EPERM)
        return; /* a cgroup without realtime bandwidth */
    EQ(sched_getscheduler(0), SCHED_FIFO | SCHED_RESET_ON_FORK);
    OK(get_attr(&a, 48));
    EQ(a.policy, SCHED_FIFO);
    EQ(a.priority, 7);
    EQ(a.flags, 1);
    OK(sched_getparam(0, &p));
    EQ(p.sched_priority, 7);
    EXITED(IN_CHILD(EQ(sched_getscheduler(0), SCHED_OTHER)), 0);
    /* The policy stays, the priority does not. */
    a = (struct attr){.size = 48, .policy = SCHED_OTHER, .priority = 9, .flags = 8};
    OK(set_attr(&a));
    EQ(sched_getscheduler(0), SCHED_FIFO | SCHED_RESET_ON_FORK);
    OK(sched_getparam(0, &p));
    EQ(p.sched_priority, 9);
    a = (struct attr){.size = 48, .policy = SCHED_RR, .flags = 16};
    OK(set_attr(&a));
    EQ(sched_getscheduler(0), SCHED_FIFO); /* the policy counts as a parameter, the flag does not */
    OK(sched_getparam(0, &p));
    EQ(p.sched_priority, 9);
    a = (struct attr){.size = 48, .policy = SCHED_BATCH, .nice = 4};
    OK(set_attr(&a));
    OK(get_attr(&a, 48));
    EQ(a.nice, 4);
    EQ(a.priority, 0);
    EQ(getpriority(PRIO_PROCESS, 0), 4);
    a.priority = 1;
    ERR(EINVAL, set_attr(&a));
}

TEST(sched_attr_deadline)
{
    struct attr a = {.size = 48, .policy = 6, .runtime = 10000000, .deadline = 30000000, .period = 30000000};
    struct sched_param p = {0};

    ERR(EINVAL, sched_setscheduler(0, 6, &p));
    OK(set_attr(&a));
    EQ(sched_getscheduler(0), 6);
    OK(get_attr(&a, 48));
    EQ(a.runtime, 10000000);
    EQ(a.deadline, 30000000);
    EQ(a.period, 30000000);
    ERR(EAGAIN, fork());
    a.flags = 1;
    OK(set_attr(&a));
    EXITED(IN_CHILD(EQ(sched_getscheduler(0), SCHED_OTHER)), 0);
    a.runtime = 1000;
    ERR(EINVAL, set_attr(&a));
    a.runtime = 40000000;
    ERR(EINVAL, set_attr(&a));
    a.runtime = 10000000;
    a.period = 20000000;
    ERR(EINVAL, set_attr(&a));
    a.period = 0;
    OK(set_attr(&a));
    OK(get_attr(&a, 48));
    EQ(a.period, 30000000);
    a.flags = 0;
    a.deadline = a.period = 5000000000;
    ERR(EINVAL, set_attr(&a));
    a = (struct attr){.size = 48};
    OK(set_attr(&a));
    OK(setuid(1000));
    a = (struct attr){.size = 48, .policy = 6, .runtime = 10000000, .deadline = 30000000, .period = 30000000};
    ERR(EPERM, set_attr(&a));
}

TEST(io_priority_classes)
{
    enum { PROCESS = 1 };

    OK((int)syscall(SYS_ioprio_set, PROCESS, 0, 2 << 13 | 3));
    EQ(syscall(SYS_ioprio_get, PROCESS, 0), 2 << 13 | 3);
    ERR(EINVAL, syscall(SYS_ioprio_set, PROCESS, 0, 4 << 13));
    ERR(EINVAL, syscall(SYS_ioprio_set, PROCESS, 0, 3));
    OK((int)syscall(SYS_ioprio_set, PROCESS, 0, 8 << 13)); /* three bits of class */
    ERR(EINVAL, syscall(SYS_ioprio_set, 0, 0, 0));
}

TEST(sysfs_types)
{
    char name[64];
    int count = OK((int)syscall(SYS_sysfs, 3)), n, found = 0;

    CHECK(count >= 3);
    n = OK((int)syscall(SYS_sysfs, 1, "proc"));
    OK((int)syscall(SYS_sysfs, 2, n, name));
    STR(name, "proc");
    for (int i = 0; i < count; i++) {
        OK((int)syscall(SYS_sysfs, 2, i, name));
        found += !strcmp(name, "tmpfs");
    }
    EQ(found, 1);
    ERR(EINVAL, syscall(SYS_sysfs, 2, count, name));
    ERR(EINVAL, syscall(SYS_sysfs, 2, 1000, name));
    ERR(EINVAL, syscall(SYS_sysfs, 1, "nosuch"));
    ERR(EFAULT, syscall(SYS_sysfs, 1, guest_unmapped()));
    ERR(EFAULT, syscall(SYS_sysfs, 2, 0, guest_unmapped()));
    ERR(EINVAL, syscall(SYS_sysfs, 4, 0, 0));
}

struct ustat_buf {
    int32_t free_blocks;
    uint64_t free_inodes;
    char names[12];
};

TEST(ustat_space)
{
    struct ustat_buf u = {.names = "x"};
    struct statfs fs;
    struct stat st;

    OK(stat("/dev/shm", &st));
    OK(statfs("/dev/shm", &fs));
    OK((int)syscall(SYS_ustat, (unsigned)st.st_dev, &u));
    EQ(u.free_blocks, fs.f_bfree);
    EQ(u.free_inodes, fs.f_ffree);
    EQ(u.names[0], 0);
    ERR(EINVAL, syscall(SYS_ustat, 0xfffffffe, &u));
    ERR(EFAULT, syscall(SYS_ustat, (unsigned)st.st_dev, guest_unmapped()));
}

TEST(vhangup_of_terminal)
{
    int m = OK(posix_openpt(O_RDWR | O_NOCTTY)), status, s;
    char *name;

    OK(unlockpt(m));
    name = ptsname(m);
    status = IN_CHILD({
        char c;

        OK(setsid());
        s = OK(open(name, O_RDWR)); /* now the controlling terminal */
        signal(SIGHUP, SIG_IGN);
        OK((int)syscall(SYS_vhangup));
        EQ(read(s, &c, 1), 0);
        ERR(EIO, write(s, "x", 1));
        ERR(ENXIO, open("/dev/tty", O_RDWR));
        OK((int)syscall(SYS_vhangup)); /* nothing left to hang up */
        OK(setuid(1000));
        ERR(EPERM, syscall(SYS_vhangup));
    });
    EXITED(status, 0);
}

TEST(timer_set_in_the_past)
{
    struct itimerspec v = {.it_interval = {0, 1}, .it_value = {1, 0}};
    struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    struct timespec now;
    siginfo_t info;
    sigset_t set;
    timer_t t;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    OK(sigprocmask(SIG_BLOCK, &set, NULL));
    OK(timer_create(CLOCK_REALTIME, &e, &t));
    OK(timer_settime(t, TIMER_ABSTIME, &v, NULL)); /* decades of nanoseconds */
    EQ(sigwaitinfo(&set, &info), SIGUSR1);
    EQ(info.si_overrun, INT32_MAX);
    EQ(timer_getoverrun(t), INT32_MAX);
    v.it_interval = (struct timespec){1000, 0};
    OK(clock_gettime(CLOCK_REALTIME, &now));
    v.it_value = (struct timespec){now.tv_sec - 2500, 0};
    OK(timer_settime(t, TIMER_ABSTIME, &v, NULL));
    EQ(sigwaitinfo(&set, &info), SIGUSR1);
    EQ(info.si_overrun, 2);
    OK(timer_gettime(t, &v));
    CHECK(v.it_value.tv_sec >= 480 && v.it_value.tv_sec <= 500);
    OK(timer_delete(t));
}

/* The record of a process of that name, or NULL. */
static const struct acct_v3 *find_record(const struct acct_v3 *a, size_t len, const char *comm)
{
    for (size_t i = 0; i < len; i++) {
        if (!strcmp(a[i].ac_comm, comm))
            return &a[i];
    }
    return NULL;
}

TEST(accounting)
{
    static struct acct_v3 records[64];
    const struct acct_v3 *a;
    ssize_t n;
    int fd;

    guest_tmpdir();
    ERR(ENOENT, acct("nosuch"));
    ERR(EISDIR, acct("."));
    ERR(EACCES, acct("/dev/null"));
    ERR(EFAULT, acct(guest_unmapped()));
    guest_write_file("file", "");
    OK(acct("file"));
    EXITED(IN_CHILD({
               prctl(PR_SET_NAME, "left");
               OK(setresgid(7, 7, 7));
               _exit(3);
           }),
           3);
    KILLED(IN_CHILD({
               prctl(PR_SET_NAME, "killed");
               raise(SIGTERM);
           }),
           SIGTERM);
    OK(acct(NULL));
    EXITED(IN_CHILD(prctl(PR_SET_NAME, "later")), 0);
    fd = OK(open("file", O_RDONLY));
    n = OK(read(fd, records, sizeof(records))) / (ssize_t)sizeof(records[0]);
    a = find_record(records, (size_t)n, "left");
    CHECK(a);
    EQ(a->ac_version, 3);
    EQ(a->ac_flag & 0x1d, 1);
    EQ(a->ac_exitcode, 3 << 8);
    EQ(a->ac_uid, 0);
    EQ(a->ac_gid, 7);
    EQ(a->ac_ppid, getpid());
    CHECK((uint64_t)a->ac_btime + 30 > (uint64_t)time(NULL) && a->ac_btime <= time(NULL) + 1);
    CHECK(a->ac_mem);
    a = find_record(records, (size_t)n, "killed");
    CHECK(a);
    EQ(a->ac_exitcode, SIGTERM);
    EQ(a->ac_flag & 0x10, 0x10);
    CHECK(!find_record(records, (size_t)n, "later"));
    OK(setuid(1000));
    ERR(EPERM, acct(NULL));
}

struct clone_args_t {
    uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid, set_tid_size, cgroup;
};

TEST(birth_in_a_cgroup)
{
    struct clone_args_t args = {.flags = 0x200000000ULL /* CLONE_INTO_CGROUP */, .exit_signal = SIGCHLD};
    int status;
    pid_t child;

    OK(unshare(CLONE_NEWNS));
    OK(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
    guest_tmpdir();
    OK(mkdir("group", 0755));
    OK(mount("cgroup2", "group", "cgroup2", 0, NULL));
    args.cgroup = (uint64_t)OK(open("group", O_PATH));
    child = (pid_t)OK(syscall(435, &args, sizeof(args)));
    if (!child)
        _exit(13);
    EQ(waitpid(child, &status, 0), child);
    EXITED(status, 13);
    ERR(EINVAL, syscall(435, &args, sizeof(args) - 8));
    EXITED(IN_CHILD({
               OK(setresuid(12345, 12345, 12345));
               ERR(EACCES, syscall(435, &args, sizeof(args)));
           }),
           0);
    args.cgroup = (uint64_t)OK(open("/tmp", O_RDONLY));
    ERR(EBADF, syscall(435, &args, sizeof(args)));
    args.cgroup = 999;
    ERR(EBADF, syscall(435, &args, sizeof(args)));
    args.cgroup = 1ULL << 32;
    ERR(EINVAL, syscall(435, &args, sizeof(args)));
}
