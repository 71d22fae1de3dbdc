/* SPDX-License-Identifier: Apache-2.0 */
/* unshare, setns and clone with namespaces, by a caller who may administer the container. */
#include "tests/guest/guest.h"

#include <mqueue.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

static long ns_ino(const char *name)
{
    char path[64], text[64];
    ssize_t n;

    snprintf(path, sizeof(path), "/proc/self/ns/%s", name);
    n = OK(readlink(path, text, sizeof(text) - 1));
    text[n] = 0;
    return atol(strchr(text, '[') + 1);
}

static void private_mounts(void)
{
    OK(unshare(CLONE_NEWNS));
    OK(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
}

TEST(unshare_mounts_are_ones_own)
{
    guest_tmpdir();
    OK(mkdir("m", 0755));
    private_mounts();
    OK(mount("none", "m", "tmpfs", MS_NOSUID | MS_NODEV, NULL));
    guest_write_file("m/f", "x");
    EXITED(IN_CHILD({
               /* A copy that as privileged an owner makes is as free as the original. */
               OK(unshare(CLONE_NEWNS));
               OK(mount("none", "m", NULL, MS_REMOUNT | MS_BIND, NULL));
               OK(mount("none", "m", NULL, MS_REMOUNT | MS_BIND | MS_NOATIME, NULL));
               OK(umount("m"));
               ERR(ENOENT, open("m/f", O_RDONLY));
               OK(umount("/dev/shm"));
           }),
           0);
    OK(close(OK(open("m/f", O_RDONLY))));
    OK(umount("m"));
}

TEST(unshare_flags_that_part_nothing)
{
    OK(unshare(0));
    OK(unshare(CLONE_THREAD));
    OK(unshare(CLONE_SIGHAND));
    OK(unshare(CLONE_VM));
    OK(unshare(CLONE_SYSVSEM | CLONE_FILES | CLONE_FS));
    ERR(EINVAL, unshare(CLONE_CHILD_SETTID));
    ERR(EINVAL, unshare(CLONE_PARENT | CLONE_NEWNS));
}

static void *wait_for_end(void *arg)
{
    pthread_mutex_lock(arg);
    return NULL;
}

TEST(unshare_with_threads)
{
    pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    pthread_t th;
    int fd = OK(open("/proc/self/ns/time", O_RDONLY));

    OK(setns(fd, 0));
    pthread_mutex_lock(&m);
    EQ(pthread_create(&th, NULL, wait_for_end, &m), 0);
    ERR(EINVAL, unshare(CLONE_THREAD));
    ERR(EINVAL, unshare(CLONE_SIGHAND));
    ERR(EINVAL, unshare(CLONE_VM));
    ERR(EUSERS, setns(fd, 0));
    OK(unshare(CLONE_NEWUTS));
    OK(unshare(CLONE_NEWNS)); /* of this thread alone */
    pthread_mutex_unlock(&m);
    pthread_join(th, NULL);
}

TEST(unshare_fails_as_a_whole)
{
    long mnt = ns_ino("mnt"), uts = ns_ino("uts");

    private_mounts();
    guest_tmpdir();
    OK(mkdir("m", 0755));
    CHECK(ns_ino("mnt") != mnt);
    mnt = ns_ino("mnt");
    OK(unshare(CLONE_NEWPID));
    /* One level of pid namespaces is all that children can be given: this one fails after the mounts have been copied. */
    ERR(EINVAL, unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWPID));
    ERR(EINVAL, syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0));
    EQ(ns_ino("mnt"), mnt);
    EQ(ns_ino("uts"), uts);
    OK(mount("none", "m", "tmpfs", 0, NULL));
    OK(umount("m"));
    OK(mount("none", "/tmp", "tmpfs", 0, NULL));
    OK(umount("/tmp"));
}

TEST(clone_flags_that_exclude_each_other)
{
    ERR(EINVAL, syscall(SYS_clone, CLONE_NEWIPC | CLONE_SYSVSEM | SIGCHLD, 0, 0, 0, 0));
    ERR(EINVAL, syscall(SYS_clone, CLONE_NEWNS | CLONE_FS | SIGCHLD, 0, 0, 0, 0));
    ERR(EINVAL, syscall(SYS_clone, CLONE_NEWPID | CLONE_THREAD | CLONE_SIGHAND | CLONE_VM, 0, 0, 0, 0));
}

TEST(setns_of_what_is_no_namespace)
{
    int fd = OK(open("/proc/self/stat", O_RDONLY)), uts = OK(open("/proc/self/ns/uts", O_RDONLY));

    ERR(EBADF, setns(-1, 0));
    ERR(EINVAL, setns(fd, 0));
    ERR(EINVAL, setns(uts, CLONE_NEWIPC));
    OK(setns(uts, 0));
    OK(setns(uts, CLONE_NEWUTS));
}

/* A mount of mqueue belongs to the namespace of its maker, and outlives it. */
TEST(message_queues_of_another_namespace)
{
    guest_tmpdir();
    OK(mkdir("m", 0755));
    private_mounts();
    EXITED(IN_CHILD({
               OK(unshare(CLONE_NEWIPC));
               OK(mount("mqueue", "m", "mqueue", 0, NULL));
               OK(close(OK(creat("m/one", 0755))));
               OK(umount("m"));
               OK(mount("mqueue", "m", "mqueue", 0, NULL));
               OK(access("m/one", F_OK));
               OK(mq_unlink("/one"));
               OK(close(OK((int)mq_open("/two", O_RDWR | O_CREAT | O_EXCL, 0755, NULL))));
               ERR(ENOENT, access("m/one", F_OK));
           }),
           0);
    OK(access("m/two", F_OK));
    ERR(ENOENT, access("/dev/mqueue/two", F_OK));
    ERR(EACCES, creat("m/three", 0755));
    OK(unlink("m/two"));
    OK(umount("m"));
}

TEST(pid_namespaces_end_with_what_is_below)
{
    int status, ready[2];
    char c;
    pid_t pid;

    OK(pipe(ready));
    OK(unshare(CLONE_NEWPID));
    pid = OK(fork());
    if (!pid) {
        OK(unshare(CLONE_NEWPID));
        if (!OK(fork())) {
            EQ(getpid(), 1);
            OK(write(ready[1], "x", 1));
            pause();
        }
        pause();
    }
    EQ(read(ready[0], &c, 1), 1);
    close(ready[1]);
    OK(kill(pid, SIGKILL));
    OK(waitpid(pid, &status, 0));
    KILLED(status, SIGKILL);
    EQ(read(ready[0], &c, 1), 0);
    ERR(ENOMEM, fork()); /* nobody can be born into it */
}

/* The first process of a namespace is spared only by those inside. */
TEST(kill_all_reaches_first_processes_below)
{
    int status;
    pid_t pid, below;

    OK(unshare(CLONE_NEWPID));
    pid = OK(fork());
    if (!pid) {
        ERR(ESRCH, kill(-1, SIGKILL));
        OK(unshare(CLONE_NEWPID));
        below = OK(fork());
        if (!below) {
            signal(SIGTERM, SIG_DFL);
            for (;;)
                pause();
        }
        usleep(20000);
        OK(kill(-1, SIGTERM)); /* which it has no handler for */
        usleep(20000);
        EQ(waitpid(below, &status, WNOHANG), 0);
        OK(kill(-1, SIGKILL));
        EQ(OK(waitpid(below, &status, 0)), below);
        KILLED(status, SIGKILL);
        _exit(0);
    }
    OK(waitpid(pid, &status, 0));
    EXITED(status, 0);
}

/* clone3 with numbers to choose. Value: the pid; the child waits for its death. */
static long clone_at(uint64_t flags, const int32_t *tids, size_t len)
{
    struct {
        uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid, set_tid_size, cgroup;
    } a = {.flags = flags, .exit_signal = SIGCHLD, .set_tid = (uint64_t)tids, .set_tid_size = len};
    long r = syscall(SYS_clone3, &a, sizeof(a));

    if (!r) {
        pause();
        _exit(0);
    }
    return r;
}

static void end_child(pid_t pid)
{
    OK(kill(pid, SIGKILL));
    EQ(OK(waitpid(pid, NULL, 0)), pid);
}

TEST(numbers_of_one_s_choice)
{
    int32_t want[3] = {31000, 0, 0};
    long deep = 0;

    EQ(OK(clone_at(0, want, 1)), 31000);
    ERR(EEXIST, clone_at(0, want, 1));
    end_child(31000);
    EQ(OK(clone_at(0, want, 1)), 31000);
    end_child(31000);
    ERR(EINVAL, clone_at(0, NULL, 1));
    ERR(EINVAL, clone_at(0, want, 0));
    ERR(EINVAL, clone_at(0, want, 33));
    ERR(EFAULT, clone_at(0, (int32_t *)8, 1));
    want[0] = 0;
    ERR(EINVAL, clone_at(0, want, 1));
    want[0] = -1;
    ERR(EINVAL, clone_at(0, want, 1));
    want[0] = 1 << 30;
    ERR(EINVAL, clone_at(0, want, 1));
    /* The first process of a namespace is number 1 there, whatever it is outside. */
    want[0] = 5;
    ERR(EINVAL, clone_at(CLONE_NEWPID, want, 1));
    want[0] = 1;
    want[1] = 31001;
    EQ(deep = OK(clone_at(CLONE_NEWPID, want, 2)), 31001);
    end_child((pid_t)deep);
    OK(setresuid(1000, 1000, 1000));
    want[0] = 31002;
    ERR(EPERM, clone_at(0, want, 1));
}
