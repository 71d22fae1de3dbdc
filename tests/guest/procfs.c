/* SPDX-License-Identifier: Apache-2.0 */
/* /proc and /sys as programs read them. */
#include "tests/guest/guest.h"

#include <dirent.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/statfs.h>
#include <sys/utsname.h>

static long field(const char *name)
{
    char *s = guest_read_file("/proc/self/status"), *p = strstr(s, name);

    CHECK(p);
    return strtol(p + strlen(name), NULL, 0);
}

TEST(status)
{
    char *s = guest_read_file("/proc/self/status");
    static const char *const names[] = {"Name:", "State:\tR", "Tgid:", "Pid:", "PPid:", "TracerPid:", "Uid:", "Gid:",
                                        "FDSize:", "Groups:", "VmSize:", "VmRSS:", "Threads:", "SigQ:", "SigPnd:",
                                        "SigBlk:", "SigIgn:", "SigCgt:", "CapInh:", "CapEff:", "CapBnd:", "CapAmb:",
                                        "NoNewPrivs:", "Seccomp:", "Cpus_allowed:", "voluntary_ctxt_switches:"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (!strstr(s, names[i]))
            FAIL("no %s", names[i]);
    EQ(field("Pid:\t"), getpid());
    EQ(field("PPid:\t"), getppid());
    EQ(field("Tgid:\t"), getpid());
    EQ(field("Threads:\t"), 1);
    signal(SIGUSR1, SIG_IGN);
    CHECK(strstr(guest_read_file("/proc/self/status"), "SigIgn:\t0000000000000200"));
    OK(prctl(PR_SET_NAME, "renamed"));
    CHECK(strstr(guest_read_file("/proc/self/status"), "Name:\trenamed\n"));
    STR(guest_read_file("/proc/self/comm"), "renamed\n");
}

TEST(stat_line)
{
    int pid, ppid, pgrp, session;
    char comm[32], state;

    EQ(sscanf(guest_read_file("/proc/self/stat"), "%d (%31[^)]) %c %d %d %d", &pid, comm, &state, &ppid, &pgrp, &session), 6);
    EQ(pid, getpid());
    EQ(ppid, getppid());
    EQ(pgrp, getpgrp());
    EQ(session, getsid(0));
    EQ(state, 'R');
}

TEST(links)
{
    char path[256], want[256];
    ssize_t n;

    n = OK(readlink("/proc/self", path, sizeof(path) - 1));
    path[n] = 0;
    EQ(atoi(path), getpid());
    n = OK(readlink("/proc/self/exe", path, sizeof(path) - 1));
    path[n] = 0;
    STR(path, "/test");
    OK(chdir("/tmp"));
    n = OK(readlink("/proc/self/cwd", path, sizeof(path) - 1));
    path[n] = 0;
    STR(path, "/tmp");
    n = OK(readlink("/proc/self/root", path, sizeof(path) - 1));
    path[n] = 0;
    STR(path, "/");
    snprintf(want, sizeof(want), "%d/task/%d", getpid(), getpid());
    n = OK(readlink("/proc/thread-self", path, sizeof(path) - 1));
    path[n] = 0;
    STR(path, want);
}

TEST(descriptors)
{
    char path[64], target[256], text[256];
    int fd, fds[2];
    ssize_t n;

    guest_tmpdir();
    guest_write_file("f", "x");
    fd = OK(open("f", O_RDONLY | O_CLOEXEC));
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    n = OK(readlink(path, target, sizeof(target) - 1));
    target[n] = 0;
    CHECK(getcwd(text, sizeof(text) - 3));
    strcat(text, "/f");
    STR(target, text);
    OK(unlink("f"));
    n = OK(readlink(path, target, sizeof(target) - 1));
    target[n] = 0;
    strcat(text, " (deleted)");
    STR(target, text);
    OK(close(OK(open(path, O_RDONLY))));
    OK(pipe(fds));
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fds[0]);
    n = OK(readlink(path, target, sizeof(target) - 1));
    target[n] = 0;
    CHECK(!strncmp(target, "pipe:[", 6));
    snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
    CHECK(strstr(guest_read_file(path), "pos:\t0\n"));
    DIR *d = opendir("/proc/self/fd");
    int count = 0;
    CHECK(d);
    while (readdir(d))
        count++;
    CHECK(count >= 2 + 6);
}

MODE(args)
{
    sleep(20);
    return 0;
}

TEST(command_line_and_environment)
{
    char *argv[] = {"argzero", "@args", "two words", "", NULL}, *envp[] = {"A=b", "C=d", NULL}, path[64];
    pid_t child = OK(fork());
    int fd;
    char buf[256];

    if (!child) {
        execve("/proc/self/exe", argv, envp);
        _exit(1);
    }
    snprintf(path, sizeof(path), "/proc/%d/cmdline", child);
    for (int i = 0; i < 100; i++) {
        fd = OK(open(path, O_RDONLY));
        ssize_t n = OK(read(fd, buf, sizeof(buf)));
        close(fd);
        if (n == 25) {
            CHECK(!memcmp(buf, "argzero\0@args\0two words\0\0", 25));
            snprintf(path, sizeof(path), "/proc/%d/environ", child);
            fd = OK(open(path, O_RDONLY));
            EQ(read(fd, buf, sizeof(buf)), 8);
            CHECK(!memcmp(buf, "A=b\0C=d\0", 8));
            kill(child, SIGKILL);
            wait(NULL);
            snprintf(path, sizeof(path), "/proc/%d", child);
            ERR(ENOENT, access(path, F_OK));
            return;
        }
        sleep_ms(10);
    }
    FAIL("no command line");
}

static void *waits(void *arg)
{
    pause();
    return NULL;
}

TEST(threads)
{
    pthread_t t;
    DIR *d;
    int n = 0;

    for (int i = 0; i < 3; i++)
        EQ(pthread_create(&t, NULL, waits, NULL), 0);
    CHECK(d = opendir("/proc/self/task"));
    while (readdir(d))
        n++;
    EQ(n, 2 + 4);
    EQ(field("Threads:\t"), 4);
}

TEST(process_list)
{
    DIR *d = opendir("/proc");
    struct dirent *e;
    bool self = false, init = false, names = false;

    CHECK(d);
    while ((e = readdir(d))) {
        self = self || atoi(e->d_name) == getpid();
        init = init || !strcmp(e->d_name, "1");
        names = names || !strcmp(e->d_name, "meminfo");
    }
    CHECK(self && init && names);
    ERR(ENOENT, access("/proc/999999", F_OK));
}

TEST(zombie_is_shown)
{
    char path[64];
    pid_t child = OK(fork());
    siginfo_t info;

    if (!child)
        _exit(0);
    OK(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT));
    snprintf(path, sizeof(path), "/proc/%d/status", child);
    CHECK(strstr(guest_read_file(path), "State:\tZ"));
    wait(NULL);
}

TEST(system_files)
{
    static const struct {
        const char *path, *text;
    } files[] = {{"/proc/meminfo", "MemTotal:"}, {"/proc/stat", "cpu  "}, {"/proc/cpuinfo", "processor\t: 0"},
                 {"/proc/version", "Linux version "}, {"/proc/uptime", "."}, {"/proc/loadavg", "/"},
                 {"/proc/filesystems", "tmpfs"}, {"/proc/mounts", " / "}, {"/proc/self/mountinfo", " / "},
                 {"/proc/sys/kernel/osrelease", "."}, {"/proc/sys/kernel/hostname", "guest\n"},
                 {"/proc/sys/kernel/pid_max", "\n"}, {"/proc/sys/fs/nr_open", "\n"},
                 {"/proc/self/limits", "Max open files"}, {"/proc/self/cgroup", ":"},
                 {"/proc/sys/kernel/random/boot_id", "-"}, {"/proc/self/oom_score_adj", "\n"},
                 {"/proc/self/statm", " "}, {"/proc/self/smaps", "Rss:"}, {"/proc/self/auxv", ""},
                 {"/proc/self/wchan", ""}, {"/proc/self/uid_map", "0"}, {"/proc/self/setgroups", "allow\n"},
                 {"/proc/sys/vm/overcommit_memory", "\n"}, {"/proc/vmstat", "nr_free_pages"}, {"/proc/devices", "mem"},
                 {"/proc/self/io", "rchar"}, {"/proc/self/personality", "00000000"}, {"/proc/swaps", "Filename"}};

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        if (!strstr(guest_read_file(files[i].path), files[i].text))
            FAIL("%s lacks %s", files[i].path, files[i].text);
}

TEST(version_agrees_with_uname)
{
    struct utsname u;

    OK(uname(&u));
    STR(u.sysname, "Linux");
    STR(u.machine, "x86_64");
    STR(u.nodename, "guest");
    CHECK(strstr(guest_read_file("/proc/version"), u.release));
    CHECK(strstr(guest_read_file("/proc/sys/kernel/osrelease"), u.release));
}

TEST(writes)
{
    char path[64];
    int fd = OK(open("/proc/self/comm", O_WRONLY));

    EQ(write(fd, "viafile", 7), 7);
    STR(guest_read_file("/proc/self/comm"), "viafile\n");
    snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", getpid());
    fd = OK(open(path, O_WRONLY));
    EQ(write(fd, "500", 3), 3);
    STR(guest_read_file("/proc/self/oom_score_adj"), "500\n");
    ERR(EINVAL, write(fd, "5000", 4));
    ERR(EPERM, unlink("/proc/self/comm") == -1 && (errno == EPERM || errno == EACCES) ? (errno = EPERM, -1) : 0);
    ERR(ENOENT, open("/proc/newfile", O_CREAT | O_WRONLY, 0600));
}

TEST(permissions)
{
    pid_t child = OK(fork());
    char path[64];

    if (!child)
        for (;;)
            pause();
    snprintf(path, sizeof(path), "/proc/%d/environ", child);
    EXITED(IN_CHILD({
               OK(setgid(1234));
               OK(setuid(1234));
               ERR(EACCES, open(path, O_RDONLY));
               snprintf(path, sizeof(path), "/proc/%d/status", child);
               OK(open(path, O_RDONLY));
               OK(open("/proc/self/maps", O_RDONLY));
           }), 0);
    kill(child, SIGKILL);
    wait(NULL);
}

TEST(file_system_type)
{
    struct statfs s;

    OK(statfs("/proc", &s));
    EQ(s.f_type, 0x9fa0);
    OK(statfs("/sys", &s));
    EQ(s.f_type, 0x62656572);
    OK(statfs("/dev/shm", &s));
    EQ(s.f_type, 0x01021994);
}

TEST(sys_tree)
{
    CHECK(strstr(guest_read_file("/sys/devices/system/cpu/online"), "0"));
    OK(access("/sys/class", F_OK));
    OK(access("/sys/kernel", F_OK));
}

/* ---- who may look ---- */

struct looked {
    pid_t pid;
    int pidfd;
};

static struct looked start_looked(void (*prepare)(void))
{
    int p[2];
    char c;
    struct looked l;

    OK(pipe(p));
    l.pid = OK(fork());
    if (!l.pid) {
        if (prepare)
            prepare();
        write(p[1], "x", 1);
        for (;;)
            pause();
    }
    EQ(read(p[0], &c, 1), 1);
    close(p[0]);
    close(p[1]);
    l.pidfd = (int)OK(syscall(SYS_pidfd_open, l.pid, 0));
    return l;
}

static void stop_looked(struct looked l)
{
    OK(kill(l.pid, SIGKILL));
    OK(waitpid(l.pid, NULL, 0));
    close(l.pidfd);
}

static int looks(const char *name, pid_t pid)
{
    char path[64], text[16];
    int fd, r;

    snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
    fd = open(path, O_RDONLY);
    if (fd < 0)
        return -errno;
    r = read(fd, text, sizeof(text)) < 0 ? -errno : 0;
    close(fd);
    return r;
}

static void expect_looks(struct looked l, int allowed)
{
    static char here[8];
    struct iovec {
        void *p;
        size_t n;
    } local = {here, 1}, remote = {here, 1};
    size_t len;
    void *head;

#define LOOK(expr)                                                                                 \
    do {                                                                                           \
        if (allowed)                                                                               \
            OK(expr);                                                                              \
        else                                                                                       \
            ERR(EPERM, expr);                                                                      \
    } while (0)
    LOOK(syscall(SYS_process_vm_readv, l.pid, &local, 1, &remote, 1, 0));
    LOOK(syscall(SYS_process_vm_writev, l.pid, &local, 1, &remote, 1, 0));
    LOOK(syscall(SYS_pidfd_getfd, l.pidfd, 0, 0));
    LOOK(syscall(SYS_kcmp, l.pid, getpid(), 1, 0, 0));
    LOOK(syscall(SYS_kcmp, getpid(), l.pid, 1, 0, 0));
    LOOK(syscall(SYS_get_robust_list, l.pid, &head, &len));
#undef LOOK
    EQ(looks("environ", l.pid), allowed ? 0 : -EACCES);
    EQ(looks("maps", l.pid), allowed ? 0 : -EACCES);
}

static void become(uid_t id)
{
    OK(setresgid(id, id, id));
    OK(setresuid(id, id, id));
    OK(prctl(PR_SET_DUMPABLE, 1));
}

static void become_1234(void)
{
    become(1234);
}

static void become_hidden(void)
{
    become(1234);
    OK(prctl(PR_SET_DUMPABLE, 0));
}

static void become_two(void)
{
    OK(setresgid(1234, 1234, 1234));
    OK(setresuid(1234, 1234, 1235));
    OK(prctl(PR_SET_DUMPABLE, 1));
}

TEST(access_of_other_processes)
{
    struct looked root, same, hidden, two;
    int status;

    root = start_looked(NULL);
    same = start_looked(become_1234);
    hidden = start_looked(become_hidden);
    two = start_looked(become_two);
    status = IN_CHILD({
        become(1234);
        expect_looks(root, 0);
        expect_looks(same, 1);
        expect_looks(hidden, 0);
        expect_looks(two, 0);
        EQ(looks("syscall", same.pid), 0);
        EQ(looks("personality", same.pid), 0);
        EQ(looks("syscall", root.pid), -EACCES); /* by its mode */
        /* Our own threads and we ourselves, whatever the memory says. */
        OK(prctl(PR_SET_DUMPABLE, 0));
        OK(syscall(SYS_kcmp, getpid(), getpid(), 1, 0, 0));
        OK(syscall(SYS_pidfd_getfd, (int)OK(syscall(SYS_pidfd_open, getpid(), 0)), 1, 0));
    });
    EXITED(status, 0);
    stop_looked(root);
    stop_looked(same);
    stop_looked(hidden);
    stop_looked(two);
}

TEST(syscall_of_stopped_and_dead)
{
    pid_t pid = OK(fork());
    char path[64], *text;
    unsigned long long sp, ip;
    long nr;
    int status;

    if (!pid) {
        kill(getpid(), SIGSTOP);
        _exit(0);
    }
    EQ(OK(waitpid(pid, &status, WUNTRACED)), pid);
    snprintf(path, sizeof(path), "/proc/%d/syscall", pid);
    text = guest_read_file(path);
    nr = strtol(text, NULL, 0);
    if (nr == SYS_kill)
        CHECK(sscanf(text, "%ld %*x 0x13 %*x %*x %*x %*x %llx %llx", &nr, &sp, &ip) == 3);
    else
        FAIL("a thread that stopped at the end of kill: %s", text);
    CHECK(sp && ip);
    OK(kill(pid, SIGKILL));
    siginfo_t info;
    OK(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT));
    STR(guest_read_file(path), "-1 0x0 0x0\n");
    OK(waitpid(pid, NULL, 0));
}
