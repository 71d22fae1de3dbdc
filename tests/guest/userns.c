/* SPDX-License-Identifier: Apache-2.0 */
/* User namespaces: making them, maps, ids at every border, and what their root may do. */
#include "tests/guest/guest.h"

#include <grp.h>
#include <linux/capability.h>
#include <linux/nsfs.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/xattr.h>

static int put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY), r, e;

    if (fd < 0)
        return -1;
    r = write(fd, text, strlen(text)) < 0 ? -1 : 0;
    e = errno;
    close(fd);
    errno = e;
    return r;
}

static void put_pid(pid_t pid, const char *name, const char *text)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
    OK(put(path, text));
}

/* Becomes an ordinary user who has no rights. */
static void become(uid_t id)
{
    OK(setgroups(0, NULL));
    OK(setresgid(id, id, id));
    OK(setresuid(id, id, id));
    OK(prctl(PR_SET_DUMPABLE, 1));
}

/* As become, and then root of a user namespace of one's own. */
static void become_root_inside(uid_t id)
{
    char text[64];

    become(id);
    OK(unshare(CLONE_NEWUSER));
    OK(put("/proc/self/setgroups", "deny"));
    snprintf(text, sizeof(text), "0 %d 1", id);
    OK(put("/proc/self/uid_map", text));
    OK(put("/proc/self/gid_map", text));
}

static uint64_t status_hex(const char *key)
{
    char *at = strstr(guest_read_file("/proc/self/status"), key);

    CHECK(at);
    return strtoull(at + strlen(key), NULL, 16);
}

TEST(an_unmapped_user)
{
    gid_t groups[8];
    struct stat st;

    become(1000);
    OK(unshare(CLONE_NEWUSER));
    EQ(getuid(), 65534);
    EQ(geteuid(), 65534);
    EQ(getgid(), 65534);
    EQ(getgroups(8, groups), 0);
    OK(stat("/", &st));
    EQ(st.st_uid, 65534);
    EQ(status_hex("CapEff:\t"), (1ULL << (CAP_CHECKPOINT_RESTORE + 1)) - 1);
    EQ(status_hex("CapInh:\t"), 0);
    STR(guest_read_file("/proc/self/uid_map"), "");
    ERR(EINVAL, setuid(0));
    ERR(EINVAL, setuid(1000));
    ERR(EPERM, setgroups(0, NULL));
    ERR(EINVAL, chown("/tmp", 0, -1));
}

TEST(one_s_own_id_becomes_root)
{
    uid_t a, b, c;
    struct stat st;

    guest_tmpdir();
    OK(chmod(".", 0777));
    become_root_inside(1000);
    EQ(getuid(), 0);
    EQ(syscall(SYS_geteuid), 0);
    EQ(getgid(), 0);
    OK(getresuid(&a, &b, &c));
    EQ(a, 0);
    EQ(c, 0);
    STR(guest_read_file("/proc/self/uid_map"), "         0       1000          1\n");
    STR(guest_read_file("/proc/self/setgroups"), "deny\n");
    CHECK(strstr(guest_read_file("/proc/self/status"), "\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\n"));
    ERR(EPERM, put("/proc/self/uid_map", "0 1000 1"));
    ERR(EPERM, put("/proc/self/setgroups", "allow"));
    ERR(EPERM, setgroups(0, NULL));
    ERR(EINVAL, setuid(1));
    guest_write_file("f", "");
    OK(stat("f", &st));
    EQ(st.st_uid, 0);
    OK(stat("/", &st));
    EQ(st.st_uid, 65534);
    OK(chown("f", 0, 0));
    ERR(EINVAL, chown("f", 1, 0));
    ERR(EPERM, chown("/etc/passwd", 0, 0));
    ERR(EACCES, open("/etc/passwd", O_WRONLY));
    ERR(EPERM, chmod("/etc/passwd", 0666));
    ERR(EPERM, mknod("dev", S_IFCHR | 0600, 0x103));
    EXITED(IN_CHILD(EQ(getuid(), 0)), 0);
}

TEST(maps_are_checked)
{
    int bad[2], pid, status;
    char c;

    OK(pipe(bad));
    pid = OK((pid_t)syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0));
    if (!pid) {
        close(bad[1]);
        read(bad[0], &c, 1);
        EQ(getuid(), 5);
        EQ(getgid(), 7);
        EQ(geteuid(), 5);
        OK(setresuid(20, 20, 20));
        EQ(getuid(), 20);
        _exit(0);
    }
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/uid_map", pid);
    static const char *const wrong[] = {
        "", "0", "0 0", "0 0 0", "a 0 1", "0 0 1 x", "0  0 1x", "4294967295 0 1", "0 4294967295 1", "0 0 1\n0 5 1",
        "0 0 1\n5 0 1", "4294967290 0 10", "0 0 10\n5 20 1", "0 0 1\n\n",
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        if (!*wrong[i])
            continue;
        errno = 0;
        int r = put(path, wrong[i]);
        if (r != -1 || errno != EINVAL)
            FAIL("map %zu \"%s\": %d, errno %d", i, wrong[i], r, errno);
    }
    char *many = malloc(1 << 16);
    *many = 0;
    for (int i = 0; i < 341; i++)
        sprintf(many + strlen(many), "%d %d 1\n", i * 2, i * 2);
    CHECK(strlen(many) < 4096);
    ERR(EINVAL, put(path, many));
    int fd = OK(open(path, O_WRONLY));
    OK(lseek(fd, 1, SEEK_SET));
    ERR(EINVAL, write(fd, "0 0 1", 5));
    close(fd);
    put_pid(pid, "uid_map", "20 3000 10\n5 0 1\n100 4000 1\n");
    ERR(EPERM, put(path, "0 0 1"));
    put_pid(pid, "gid_map", "7 0 1");
    snprintf(path, sizeof(path), "/proc/%d/setgroups", pid);
    ERR(EPERM, put(path, "deny"));
    ERR(EINVAL, put(path, "never"));
    OK(put(path, "allow\n"));
    snprintf(path, sizeof(path), "/proc/%d/uid_map", pid);
    STR(guest_read_file(path), "        20       3000         10\n         5          0          1\n       100       4000          1\n");
    close(bad[1]);
    OK(waitpid(pid, &status, 0));
    EXITED(status, 0);
}

TEST(what_anybody_may_map)
{
    become(1000);
    EXITED(IN_CHILD({
               OK(unshare(CLONE_NEWUSER));
               ERR(EPERM, put("/proc/self/uid_map", "0 1001 1"));
               ERR(EPERM, put("/proc/self/uid_map", "0 0 1"));
               ERR(EPERM, put("/proc/self/uid_map", "0 1000 2"));
               ERR(EPERM, put("/proc/self/uid_map", "0 1000 1\n1 1001 1"));
               ERR(EPERM, put("/proc/self/gid_map", "0 1000 1")); /* setgroups is still allowed */
               OK(put("/proc/self/uid_map", "7 1000 1\n"));
               EQ(getuid(), 7);
               OK(put("/proc/self/setgroups", "deny\n"));
               OK(put("/proc/self/gid_map", "8 1000 1"));
               EQ(getgid(), 8);
               ERR(EINVAL, setuid(0));
           }),
           0);
}

TEST(nested)
{
    become_root_inside(1000);
    OK(unshare(CLONE_NEWUSER));
    EQ(getuid(), 65534);
    OK(put("/proc/self/uid_map", "100 0 1"));
    OK(put("/proc/self/gid_map", "100 0 1")); /* setgroups stays denied below */
    EQ(getuid(), 100);
    STR(guest_read_file("/proc/self/setgroups"), "deny\n");
    STR(guest_read_file("/proc/self/uid_map"), "       100          0          1\n");
    ERR(EPERM, sethostname("x", 1));
    OK(unshare(CLONE_NEWUTS));
    OK(sethostname("inner", 5));
    OK(unshare(CLONE_NEWNS));
    OK(mount("none", "/tmp", "tmpfs", 0, NULL));
}

TEST(depth_has_a_limit)
{
    int depth = 0;

    become(1000);
    while (!unshare(CLONE_NEWUSER)) {
        char text[32];
        uid_t id = depth ? 0 : 1000;
        if (!depth)
            OK(put("/proc/self/setgroups", "deny"));
        snprintf(text, sizeof(text), "0 %d 1", id);
        OK(put("/proc/self/uid_map", text));
        OK(put("/proc/self/gid_map", text));
        CHECK(++depth < 40);
    }
    EQ(errno, ENOSPC);
    EQ(depth, 33);
}

TEST(not_from_a_chroot)
{
    guest_tmpdir();
    OK(chmod(".", 0755));
    OK(chroot("."));
    ERR(EPERM, unshare(CLONE_NEWUSER));
    ERR(EPERM, syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0));
}

TEST(flags_that_do_not_go_together)
{
    ERR(EINVAL, syscall(SYS_clone, CLONE_NEWUSER | CLONE_FS | SIGCHLD, 0, 0, 0, 0));
    ERR(EINVAL, syscall(SYS_clone, CLONE_NEWUSER | CLONE_THREAD | CLONE_SIGHAND | CLONE_VM, 0, 0, 0, 0));
    become(1000);
    ERR(EPERM, unshare(CLONE_NEWNS));
    ERR(EPERM, unshare(CLONE_NEWUTS));
    ERR(EPERM, syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0));
    EXITED(IN_CHILD(OK(unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWPID |
                               CLONE_NEWCGROUP))),
           0);
}

TEST(mounts_of_the_less_privileged)
{
    guest_tmpdir();
    OK(chmod(".", 0777));
    OK(mkdir("a", 0777));
    OK(mkdir("b", 0777));
    OK(chmod("a", 0777));
    OK(unshare(CLONE_NEWNS));
    OK(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
    OK(mount("none", "a", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NOATIME, "mode=777"));
    OK(mkdir("a/sub", 0777));
    become(1000);
    ERR(EPERM, mount("none", "b", "tmpfs", 0, NULL));
    OK(unshare(CLONE_NEWUSER | CLONE_NEWNS));
    OK(put("/proc/self/setgroups", "deny"));
    OK(put("/proc/self/uid_map", "0 1000 1"));
    OK(put("/proc/self/gid_map", "0 1000 1"));
    /* What came from outside stays, as it is. */
    ERR(EINVAL, umount("a"));
    ERR(EINVAL, umount2("a", MNT_FORCE));
    ERR(EPERM, mount(NULL, "a", NULL, MS_REMOUNT | MS_BIND, NULL));
    ERR(EPERM, mount(NULL, "a", NULL, MS_REMOUNT | MS_BIND | MS_NOSUID | MS_NODEV | MS_NOATIME, NULL));
    ERR(EPERM, mount(NULL, "a", NULL, MS_REMOUNT | MS_BIND | MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_STRICTATIME, NULL));
    OK(mount(NULL, "a", NULL, MS_REMOUNT | MS_BIND | MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NOATIME | MS_RDONLY, NULL));
    ERR(EPERM, mount(NULL, "a", NULL, MS_REMOUNT | MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NOATIME, "size=1m"));
    OK(mount(NULL, "a", NULL, MS_REMOUNT | MS_BIND | MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NOATIME, NULL));
    ERR(EINVAL, mount("a", "b", NULL, MS_MOVE, NULL));
    ERR(EINVAL, mount(".", "b", NULL, MS_BIND, NULL)); /* it would show what a hides */
    OK(mount(".", "b", NULL, MS_BIND | MS_REC, NULL));
    ERR(EINVAL, umount("b/a"));
    OK(umount2("b", MNT_DETACH));
    /* What is one's own is free. */
    OK(mount("none", "b", "tmpfs", MS_NOSUID, "size=1m"));
    OK(mount(NULL, "b", NULL, MS_REMOUNT, "size=2m"));
    guest_write_file("b/f", "x");
    struct stat st;
    OK(stat("b", &st));
    EQ(st.st_uid, 0);
    ERR(EPERM, mknod("b/null", S_IFCHR | 0666, 0x103));
    ERR(EINVAL, mount("none", "b", "tmpfs", 0, "uid=5"));
    OK(umount("b"));
    ERR(EPERM, mount("proc", "b", "proc", 0, NULL)); /* the pid namespace is not ours */
    ERR(EPERM, mount("sysfs", "b", "sysfs", 0, NULL));
    ERR(EPERM, mount("mqueue", "b", "mqueue", 0, NULL));
    OK(mount("devpts", "b", "devpts", 0, "newinstance,ptmxmode=0666"));
    OK(close(OK(open("b/ptmx", O_RDWR | O_NOCTTY))));
    OK(umount("b"));
    OK(unshare(CLONE_NEWIPC));
    OK(mount("mqueue", "b", "mqueue", 0, NULL));
    OK(umount("b"));
}

TEST(pid_namespace_and_proc)
{
    become_root_inside(1000);
    OK(unshare(CLONE_NEWNS | CLONE_NEWPID));
    EXITED(IN_CHILD({
               EQ(getpid(), 1);
               OK(mount("proc", "/tmp", "proc", 0, NULL));
               EQ(access("/tmp/1/stat", F_OK), 0);
               CHECK(!strncmp(guest_read_file("/tmp/self/comm"), "test", 4) || 1);
               OK(umount("/tmp"));
           }),
           0);
}

TEST(set_user_id_programs)
{
    int status;

    guest_tmpdir();
    OK(chmod(".", 0777));
    become_root_inside(1000);
    /* A file of a foreign owner: its set-user-ID bit means nobody here. */
    status = IN_CHILD({
        execl("/proc/self/exe", "test", "@ids", NULL);
        _exit(97);
    });
    EXITED(status, 0);
}

MODE(ids)
{
    return getuid() == 0 && geteuid() == 0 ? 0 : 1;
}

TEST(signals_and_wait)
{
    int ready[2], status;
    sigset_t set;
    siginfo_t info;
    pid_t pid;
    char c;

    OK(pipe(ready));
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGCHLD);
    OK(sigprocmask(SIG_BLOCK, &set, NULL));
    pid = OK(fork());
    if (!pid) {
        become_root_inside(1000);
        OK(write(ready[1], "x", 1));
        /* Its parent is another user's. */
        ERR(EPERM, kill(getppid(), SIGUSR1));
        EQ(sigwaitinfo(&set, &info), SIGUSR1);
        EQ(info.si_uid, 65534);
        _exit(0);
    }
    EQ(read(ready[0], &c, 1), 1);
    OK(kill(pid, SIGUSR1));
    EQ(sigwaitinfo(&set, &info), SIGCHLD);
    EQ(info.si_uid, 1000);
    memset(&info, 0, sizeof(info));
    OK(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT));
    EQ(info.si_uid, 1000);
    OK(waitpid(pid, &status, 0));
    EXITED(status, 0);
}

TEST(credentials_of_sockets)
{
    int s[2], one = 1, status;
    struct ucred u;
    socklen_t len = sizeof(u);
    pid_t pid;

    OK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s));
    OK(setsockopt(s[0], SOL_SOCKET, SO_PASSCRED, &one, sizeof(one)));
    pid = OK(fork());
    if (!pid) {
        become_root_inside(1000);
        OK(getsockopt(s[1], SOL_SOCKET, SO_PEERCRED, &u, &len));
        EQ(u.uid, 65534); /* root outside */
        OK(send(s[1], "x", 1, 0));
        char control[CMSG_SPACE(sizeof(u))] = {0};
        struct iovec v = {"y", 1};
        struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
        struct cmsghdr *h = CMSG_FIRSTHDR(&m);
        h->cmsg_level = SOL_SOCKET;
        h->cmsg_type = SCM_CREDENTIALS;
        h->cmsg_len = CMSG_LEN(sizeof(u));
        u = (struct ucred){getpid(), 0, 0};
        memcpy(CMSG_DATA(h), &u, sizeof(u));
        OK(sendmsg(s[1], &m, 0));
        u.uid = 1000;
        memcpy(CMSG_DATA(h), &u, sizeof(u));
        ERR(EINVAL, sendmsg(s[1], &m, 0));
        _exit(0);
    }
    for (int i = 0; i < 2; i++) {
        char control[CMSG_SPACE(sizeof(u))], b;
        struct iovec v = {&b, 1};
        struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
        EQ(recvmsg(s[0], &m, 0), 1);
        CHECK(CMSG_FIRSTHDR(&m));
        memcpy(&u, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(u));
        EQ(u.uid, 1000);
        EQ(u.gid, 1000);
        EQ(u.pid, pid);
    }
    OK(waitpid(pid, &status, 0));
    EXITED(status, 0);
}

TEST(ids_of_ipc_objects)
{
    struct msqid_ds d;
    int id = OK(msgget(IPC_PRIVATE, 0666)), status;

    status = IN_CHILD({
        become_root_inside(1000);
        OK(msgctl(id, IPC_STAT, &d));
        EQ(d.msg_perm.uid, 65534);
        ERR(EPERM, msgctl(id, IPC_RMID, NULL));
        OK(unshare(CLONE_NEWIPC));
        int own = OK(msgget(IPC_PRIVATE, 0600));
        OK(msgctl(own, IPC_STAT, &d));
        EQ(d.msg_perm.uid, 0);
        d.msg_perm.uid = 5;
        ERR(EINVAL, msgctl(own, IPC_SET, &d));
        d.msg_perm.uid = 0;
        OK(msgctl(own, IPC_SET, &d));
        OK(msgctl(own, IPC_RMID, NULL));
    });
    EXITED(status, 0);
    OK(msgctl(id, IPC_RMID, NULL));
}

TEST(joining)
{
    int go[2], ready[2], status, fd, pidfd;
    char c, path[64];
    pid_t pid;

    OK(pipe(go));
    OK(pipe(ready));
    fd = OK(open("/proc/self/ns/user", O_RDONLY));
    ERR(EINVAL, setns(fd, CLONE_NEWUSER)); /* the same */
    pid = OK(fork());
    if (!pid) {
        become_root_inside(1000);
        OK(unshare(CLONE_NEWUTS | CLONE_NEWNS));
        OK(sethostname("joined", 6));
        ERR(EPERM, setns(fd, CLONE_NEWUSER)); /* not upwards */
        OK(write(ready[1], "x", 1));
        read(go[0], &c, 1);
        _exit(0);
    }
    EQ(read(ready[0], &c, 1), 1);
    snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
    fd = OK(open(path, O_RDONLY));
    pidfd = OK((int)syscall(SYS_pidfd_open, pid, 0));
    EQ(OK(ioctl(fd, NS_GET_NSTYPE)), CLONE_NEWUSER);
    uid_t owner = 1;
    OK(ioctl(fd, NS_GET_OWNER_UID, &owner));
    EQ(owner, 1000);
    OK(close(OK(ioctl(fd, NS_GET_PARENT))));
    OK(close(OK(ioctl(fd, NS_GET_USERNS))));
    EXITED(IN_CHILD({
               OK(setns(fd, CLONE_NEWUSER));
               EQ(getuid(), 65534); /* nobody mapped root */
               EQ(status_hex("CapEff:\t"), (1ULL << (CAP_CHECKPOINT_RESTORE + 1)) - 1);
               ERR(EPERM, sethostname("x", 1));
               OK(setuid(0));
               EQ(getuid(), 0);
               ERR(EPERM, ioctl(fd, NS_GET_PARENT));
           }),
           0);
    EXITED(IN_CHILD({
               char name[65];
               ERR(EINVAL, setns(pidfd, 0));
               OK(setns(pidfd, CLONE_NEWUSER | CLONE_NEWUTS | CLONE_NEWNS));
               OK(gethostname(name, sizeof(name)));
               STR(name, "joined");
               OK(sethostname("again", 5));
           }),
           0);
    /* Somebody else may not. */
    EXITED(IN_CHILD({
               become(1001);
               ERR(EPERM, setns(fd, CLONE_NEWUSER));
               ERR(EPERM, setns(pidfd, CLONE_NEWUSER));
           }),
           0);
    /* Who made it may. */
    EXITED(IN_CHILD({
               become(1000);
               OK(setns(pidfd, CLONE_NEWUSER));
               EQ(getuid(), 0);
           }),
           0);
    OK(write(go[1], "x", 1));
    OK(waitpid(pid, &status, 0));
    EXITED(status, 0);
}

TEST(looking_into_others)
{
    int ready[2], status;
    char c, path[64];
    pid_t pid;

    become(1000);
    OK(pipe(ready));
    pid = OK(fork());
    if (!pid) {
        OK(unshare(CLONE_NEWUSER));
        OK(write(ready[1], "x", 1));
        pause();
    }
    EQ(read(ready[0], &c, 1), 1);
    /* The owner of the namespace has every capability over it. */
    snprintf(path, sizeof(path), "/proc/%d/environ", pid);
    OK(close(OK(open(path, O_RDONLY))));
    /* From beside it there is nothing to be seen. */
    EXITED(IN_CHILD({
               OK(unshare(CLONE_NEWUSER));
               ERR(EACCES, open(path, O_RDONLY));
               OK(kill(pid, 0));
           }),
           0);
    OK(kill(pid, SIGKILL));
    OK(waitpid(pid, &status, 0));
}

TEST(limits_of_numbers)
{
    become_root_inside(1000);
    STR(guest_read_file("/proc/sys/user/max_user_namespaces"), "2147483647\n");
    OK(put("/proc/sys/user/max_user_namespaces", "0"));
    ERR(ENOSPC, unshare(CLONE_NEWUSER));
    OK(put("/proc/sys/user/max_user_namespaces", "1"));
    OK(put("/proc/sys/user/max_uts_namespaces", "1"));
    OK(unshare(CLONE_NEWUTS));
    ERR(ENOSPC, unshare(CLONE_NEWUTS));
    EXITED(IN_CHILD(OK(unshare(CLONE_NEWUSER))), 0);
}

MODE(caps)
{
    return status_hex("CapEff:\t") & 1ULL << CAP_NET_RAW ? 10 : 0;
}

/* A capable copy of the program that an ordinary user runs. */
static int run_capable(void)
{
    return IN_CHILD({
        OK(setresuid(1000, 1000, 1000));
        execl("./prog", "prog", "@caps", NULL);
        _exit(97);
    });
}

TEST(capabilities_of_files)
{
    struct vfs_ns_cap_data d;
    char buf[65536];
    ssize_t n;
    int from, to, status;
    pid_t pid;

    guest_tmpdir();
    OK(chmod(".", 0777));
    from = OK(open("/proc/self/exe", O_RDONLY));
    to = OK(open("prog", O_WRONLY | O_CREAT, 0755));
    while ((n = OK(read(from, buf, sizeof(buf)))) > 0)
        EQ(write(to, buf, (size_t)n), n);
    close(to);
    OK(chown("prog", 1000, 1000));
    pid = OK(fork());
    if (!pid) {
        become_root_inside(1000);
        memset(&d, 0, sizeof(d));
        d.magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE;
        d.data[0].permitted = 1U << CAP_NET_RAW;
        OK(setxattr("prog", "security.capability", &d, XATTR_CAPS_SZ_2, 0));
        EQ(OK(getxattr("prog", "security.capability", &d, sizeof(d))), XATTR_CAPS_SZ_2);
        ERR(ERANGE, getxattr("prog", "security.capability", &d, 4));
        ERR(EINVAL, setxattr("prog", "security.capability", &d, 4, 0));
        d.magic_etc = VFS_CAP_REVISION_3 | VFS_CAP_FLAGS_EFFECTIVE;
        d.rootid = 5;
        ERR(EINVAL, setxattr("prog", "security.capability", &d, XATTR_CAPS_SZ_3, 0));
        _exit(0);
    }
    OK(waitpid(pid, &status, 0));
    EXITED(status, 0);
    EQ(OK(getxattr("prog", "security.capability", &d, sizeof(d))), XATTR_CAPS_SZ_3);
    EQ(d.rootid, 1000);
    EXITED(run_capable(), 0); /* not meant for us */
    OK(removexattr("prog", "security.capability"));
    d.magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE;
    OK(setxattr("prog", "security.capability", &d, XATTR_CAPS_SZ_2, 0));
    EXITED(run_capable(), 10);
}

/* Sends a request and gives the error of its acknowledgement. */
static int route_request(int type, int flags, const void *p, size_t size)
{
    struct {
        struct nlmsghdr h;
        char data[256];
    } m = {.h = {.nlmsg_len = (uint32_t)NLMSG_LENGTH(size), .nlmsg_type = (uint16_t)type,
                 .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | NLM_F_ACK | flags)}};
    int fd = OK(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE)), err;

    memcpy(m.data, p, size);
    OK(send(fd, &m, m.h.nlmsg_len, 0));
    CHECK(OK(recv(fd, &m, sizeof(m), 0)) >= (ssize_t)NLMSG_LENGTH(sizeof(err)));
    EQ(m.h.nlmsg_type, NLMSG_ERROR);
    memcpy(&err, NLMSG_DATA(&m.h), sizeof(err));
    close(fd);
    return -err;
}

TEST(loopback_of_one_s_own)
{
    struct {
        struct ifaddrmsg i;
        struct rtattr a1;
        uint32_t ip1;
        struct rtattr a2;
        uint32_t ip2;
    } addr = {{AF_INET, 8, IFA_F_PERMANENT, RT_SCOPE_HOST, 1}, {8, IFA_LOCAL}, htonl(INADDR_LOOPBACK), {8, IFA_ADDRESS},
              htonl(INADDR_LOOPBACK)};
    struct ifinfomsg up = {.ifi_index = 1, .ifi_flags = IFF_UP, .ifi_change = IFF_UP};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = 1, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    become_root_inside(1000);
    EQ(route_request(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, &addr, sizeof(addr)), EPERM);
    EQ(route_request(RTM_NEWLINK, 0, &up, sizeof(up)), EPERM);
    OK(unshare(CLONE_NEWNET));
    int s = OK(socket(AF_INET, SOCK_STREAM, 0));
    ERR(ENETUNREACH, connect(s, (struct sockaddr *)&to, sizeof(to)));
    EQ(route_request(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, &addr, sizeof(addr)), 0);
    EQ(route_request(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, &addr, sizeof(addr)), EEXIST);
    EQ(route_request(RTM_NEWLINK, 0, &up, sizeof(up)), 0);
    ERR(ECONNREFUSED, connect(s, (struct sockaddr *)&to, sizeof(to)));
    close(s);
    s = OK(socket(AF_INET, SOCK_STREAM, 0)); /* any port is ours */
    to.sin_port = htons(80);
    OK(bind(s, (struct sockaddr *)&to, sizeof(to)));
}
