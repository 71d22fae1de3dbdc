/* SPDX-License-Identifier: Apache-2.0 */
/* fanotify: groups, marks, events with descriptors, questions, limits. */
#include "tests/guest/fanotify.h"

TEST(init_flags)
{
    ERR(EINVAL, fanotify_init(0x100000, O_RDONLY));
    ERR(EINVAL, fanotify_init(FAN_REPORT_PIDFD | FAN_REPORT_TID, O_RDONLY));
    ERR(EINVAL, fanotify_init(FAN_CLASS_NOTIF, O_RDONLY | O_CREAT));
    ERR(EINVAL, fanotify_init(FAN_CLASS_NOTIF, 3));
    ERR(EINVAL, fanotify_init(FAN_CLASS_CONTENT | FAN_CLASS_PRE_CONTENT, O_RDONLY));
    ERR(EINVAL, fanotify_init(FAN_CLASS_CONTENT | FAN_REPORT_FID, O_RDONLY));
    ERR(EINVAL, fanotify_init(FAN_REPORT_NAME, O_RDONLY));
    ERR(EINVAL, fanotify_init(FAN_REPORT_TARGET_FID | FAN_REPORT_DIR_FID | FAN_REPORT_NAME, O_RDONLY));
    int fd = OK(fanotify_init(FAN_CLASS_PRE_CONTENT | FAN_CLOEXEC | FAN_NONBLOCK | FAN_UNLIMITED_QUEUE |
                                  FAN_UNLIMITED_MARKS | FAN_ENABLE_AUDIT,
                              O_RDWR | O_LARGEFILE | O_CLOEXEC | O_NOATIME));
    EQ(OK(fcntl(fd, F_GETFD)), FD_CLOEXEC);
    EQ(OK(fcntl(fd, F_GETFL)) & (O_ACCMODE | O_NONBLOCK), O_RDWR | O_NONBLOCK);
    char link[64], name[64];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    name[OK(readlink(link, name, sizeof(name) - 1))] = 0;
    STR(name, "anon_inode:[fanotify]");
    EQ(OK(lseek(fd, 10, SEEK_SET)), 0);
    ERR(EAGAIN, read(fd, events, sizeof(events)));
    EQ(poll(&(struct pollfd){fd, POLLIN | POLLOUT, 0}, 1, 0), 0);
    OK(close(fd));
}

TEST(mark_flags)
{
    guest_tmpdir();
    touch("f");
    int fd = OK(fanotify_init(FAN_CLASS_NOTIF | FAN_NONBLOCK, O_RDONLY));
    int fid = OK(fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_FID | FAN_NONBLOCK, O_RDONLY));
    ERR(EBADF, fanotify_mark(-1, FAN_MARK_ADD, FAN_OPEN, AT_FDCWD, "f"));
    ERR(EINVAL, fanotify_mark(0, FAN_MARK_ADD, FAN_OPEN, AT_FDCWD, "f"));
    ERR(EINVAL, fanotify_mark(fd, FAN_MARK_ADD, 0, AT_FDCWD, "f"));
    ERR(EINVAL, fanotify_mark(fd, FAN_MARK_ADD | FAN_MARK_REMOVE, FAN_OPEN, AT_FDCWD, "f"));
    ERR(EINVAL, fanotify_mark(fd, FAN_MARK_FLUSH | FAN_MARK_ONLYDIR, 0, AT_FDCWD, "f"));
    ERR(EINVAL, fanotify_mark(fd, 0, FAN_OPEN, AT_FDCWD, "f"));
    ERR(EINVAL, fanotify_mark(fd, FAN_MARK_ADD | FAN_MARK_MOUNT | FAN_MARK_FILESYSTEM, FAN_OPEN, AT_FDCWD, "f"));
    ERR(EINVAL, fanotify_mark(fd, FAN_MARK_ADD | 0x10000, FAN_OPEN, AT_FDCWD, "f"));
    ERR(EINVAL, fanotify_mark(fd, FAN_MARK_ADD, FAN_OPEN | 1ULL << 32, AT_FDCWD, "f"));
    ERR(EINVAL, fanotify_mark(fd, FAN_MARK_ADD, FAN_OPEN_PERM, AT_FDCWD, "f"));
    ERR(EINVAL, fanotify_mark(fd, FAN_MARK_ADD, FAN_CREATE, AT_FDCWD, "f"));
    ERR(EINVAL, fanotify_mark(fid, FAN_MARK_ADD, FAN_RENAME, AT_FDCWD, "."));
    ERR(EINVAL, fanotify_mark(fid, FAN_MARK_ADD | FAN_MARK_MOUNT, FAN_CREATE, AT_FDCWD, "."));
    ERR(EINVAL, fanotify_mark(fid, FAN_MARK_ADD, FAN_FS_ERROR, AT_FDCWD, "f"));
    ERR(EINVAL, fanotify_mark(fid, FAN_MARK_ADD | FAN_MARK_MOUNT | FAN_MARK_EVICTABLE, FAN_OPEN, AT_FDCWD, "f"));
    ERR(EINVAL, fanotify_mark(fd, FAN_MARK_ADD | FAN_MARK_IGNORE | FAN_MARK_IGNORED_MASK, FAN_OPEN, AT_FDCWD, "f"));
    ERR(EISDIR, fanotify_mark(fd, FAN_MARK_ADD | FAN_MARK_IGNORE, FAN_OPEN, AT_FDCWD, "."));
    ERR(EINVAL, fanotify_mark(fd, FAN_MARK_ADD | FAN_MARK_IGNORE | FAN_MARK_MOUNT, FAN_OPEN, AT_FDCWD, "."));
    ERR(ENOTDIR, fanotify_mark(fd, FAN_MARK_ADD | FAN_MARK_ONLYDIR, FAN_OPEN, AT_FDCWD, "f"));
    ERR(ENOTDIR, fanotify_mark(fd, FAN_MARK_ADD | FAN_MARK_IGNORE, FAN_OPEN | FAN_ONDIR, AT_FDCWD, "f"));
    ERR(ENOENT, fanotify_mark(fd, FAN_MARK_ADD, FAN_OPEN, AT_FDCWD, "absent"));
    ERR(EFAULT, fanotify_mark(fd, FAN_MARK_ADD, FAN_OPEN, AT_FDCWD, (char *)8));
    ERR(ENOENT, fanotify_mark(fd, FAN_MARK_REMOVE, FAN_OPEN, AT_FDCWD, "f"));
    ERR(EBADF, fanotify_mark(fd, FAN_MARK_ADD, FAN_OPEN, -1, NULL));
    /* Evictable can be taken back only; what survives changes and has flags stays so. */
    OK(fanotify_mark(fid, FAN_MARK_ADD | FAN_MARK_EVICTABLE, FAN_OPEN, AT_FDCWD, "f"));
    OK(fanotify_mark(fid, FAN_MARK_ADD, FAN_OPEN, AT_FDCWD, "f"));
    ERR(EEXIST, fanotify_mark(fid, FAN_MARK_ADD | FAN_MARK_EVICTABLE, FAN_CLOSE, AT_FDCWD, "f"));
    OK(fanotify_mark(fid, FAN_MARK_ADD | FAN_MARK_IGNORE | FAN_MARK_IGNORED_SURV_MODIFY, FAN_MODIFY, AT_FDCWD, "f"));
    ERR(EEXIST, fanotify_mark(fid, FAN_MARK_ADD | FAN_MARK_IGNORED_MASK, FAN_MODIFY, AT_FDCWD, "f"));
    ERR(EEXIST, fanotify_mark(fid, FAN_MARK_ADD | FAN_MARK_IGNORE, FAN_MODIFY, AT_FDCWD, "f"));
    OK(fanotify_mark(fid, FAN_MARK_FLUSH, 0, AT_FDCWD, NULL));
    ERR(ENOENT, fanotify_mark(fid, FAN_MARK_REMOVE, FAN_OPEN, AT_FDCWD, "f"));
    int pfds[2];
    OK(pipe(pfds));
    OK(fanotify_mark(fd, FAN_MARK_ADD, FAN_OPEN, pfds[0], NULL));
    ERR(EINVAL, fanotify_mark(fd, FAN_MARK_ADD | FAN_MARK_MOUNT, FAN_OPEN, pfds[0], NULL));
    int judge = OK(fanotify_init(FAN_CLASS_CONTENT | FAN_NONBLOCK, O_RDONLY));
    ERR(EINVAL, fanotify_mark(judge, FAN_MARK_ADD, FAN_OPEN_PERM, AT_FDCWD, "/proc/version"));
    OK(fanotify_mark(judge, FAN_MARK_ADD, FAN_OPEN, AT_FDCWD, "/proc/version"));
    ERR(EOPNOTSUPP, fanotify_mark(fid, FAN_MARK_ADD | FAN_MARK_FILESYSTEM, FAN_OPEN, AT_FDCWD, "/proc"));
    OK(fanotify_mark(fid, FAN_MARK_ADD, FAN_OPEN, AT_FDCWD, "/proc/version"));
    OK(fanotify_mark(fid, FAN_MARK_ADD | FAN_MARK_FILESYSTEM, FAN_FS_ERROR, AT_FDCWD, "/dev/shm"));
}

BOTH(file_events)
{
    char c = 0;
    touch("f");
    int fd = OK(fanotify_init(FAN_CLASS_NOTIF | FAN_NONBLOCK, O_RDONLY)), n;
    OK(fanotify_mark(fd, FAN_MARK_ADD, FAN_OPEN | FAN_ACCESS | FAN_MODIFY | FAN_CLOSE, AT_FDCWD, "f"));
    int f = OK(open("f", O_RDWR));
    forget_events();
    expect_close(fd, FAN_OPEN, "f");
    no_event(fd);
    OK(write(f, "xy", 2));
    forget_events();
    OK(pread(f, &c, 1, 0));
    OK(ioctl(fd, FIONREAD, &n));
    EQ(n, FAN_EVENT_METADATA_LEN); /* merged */
    EQ(poll(&(struct pollfd){fd, POLLIN, 0}, 1, 0), 1);
    int got = expect(fd, FAN_MODIFY | FAN_ACCESS, "f");
    /* What is done through the event's descriptor is told to nobody. */
    EQ(OK(read(got, &c, 1)), 1);
    EQ(c, 'x');
    ERR(EBADF, write(got, "z", 1));
    OK(close(got));
    no_event(fd);
    OK(ftruncate(f, 1)); /* has no path to tell */
    OK(fchmod(f, 0640));
    no_event(fd);
    OK(fallocate(f, 0, 0, 100));
    forget_events();
    expect_close(fd, FAN_MODIFY, "f");
    OK(close(f));
    forget_events();
    expect_close(fd, FAN_CLOSE_WRITE, "f");
    OK(close(OK(open("f", O_RDONLY))));
    OK(close(OK(open("f", O_PATH))));
    forget_events();
    expect_close(fd, FAN_OPEN | FAN_CLOSE_NOWRITE, "f");
    /* Another process is another event. */
    EXITED(IN_CHILD(OK(close(OK(open("f", O_RDONLY))))), 0);
    forget_events();
    struct fanotify_event_metadata *e = next_event(fd);
    EQ(e->mask, FAN_OPEN | FAN_CLOSE_NOWRITE);
    CHECK(e->pid > 0 && e->pid != getpid());
    OK(close(e->fd));
    /* A read that has no room for one gives nothing away. */
    OK(close(OK(open("f", O_RDONLY))));
    ERR(EINVAL, read(fd, events, FAN_EVENT_METADATA_LEN - 1));
    ERR(EFAULT, syscall(SYS_read, fd, 8, sizeof(events)));
    forget_events();
    no_event(fd);
    OK(fanotify_mark(fd, FAN_MARK_REMOVE, FAN_OPEN | FAN_ACCESS | FAN_MODIFY, AT_FDCWD, "f"));
    OK(close(OK(open("f", O_RDONLY))));
    forget_events();
    expect_close(fd, FAN_CLOSE_NOWRITE, "f");
    OK(fanotify_mark(fd, FAN_MARK_REMOVE, FAN_CLOSE, AT_FDCWD, "f"));
    ERR(ENOENT, fanotify_mark(fd, FAN_MARK_REMOVE, FAN_CLOSE, AT_FDCWD, "f"));
}

BOTH(directory_events)
{
    OK(mkdir("d", 0700));
    OK(mkdir("d/sub", 0700));
    touch("d/f");
    int fd = OK(fanotify_init(FAN_CLASS_NOTIF | FAN_NONBLOCK, O_RDONLY));
    /* Without FAN_EVENT_ON_CHILD a directory is told of itself only, and only with FAN_ONDIR. */
    OK(fanotify_mark(fd, FAN_MARK_ADD, FAN_OPEN | FAN_ACCESS, AT_FDCWD, "d"));
    OK(close(OK(open("d/f", O_RDONLY))));
    OK(close(OK(open("d", O_RDONLY))));
    no_event(fd);
    OK(fanotify_mark(fd, FAN_MARK_ADD, FAN_ONDIR, AT_FDCWD, "d"));
    DIR *d = opendir("d");
    while (readdir(d))
        ;
    closedir(d);
    forget_events();
    expect_close(fd, FAN_OPEN | FAN_ACCESS, "d");
    no_event(fd);
    OK(fanotify_mark(fd, FAN_MARK_ADD, FAN_EVENT_ON_CHILD, AT_FDCWD, "d"));
    OK(close(OK(open("d/f", O_RDONLY))));
    OK(close(OK(open("d/sub", O_RDONLY))));
    touch("d/sub/deep");
    forget_events();
    expect_close(fd, FAN_OPEN, "d/f");
    expect_close(fd, FAN_OPEN, "d/sub");
    no_event(fd);
    /* A child that is ignored; its parent's mark would tell. */
    OK(fanotify_mark(fd, FAN_MARK_ADD | FAN_MARK_IGNORED_MASK, FAN_OPEN, AT_FDCWD, "d/f"));
    OK(close(OK(open("d/f", O_RDONLY))));
    no_event(fd);
    int f = OK(open("d/f", O_WRONLY));
    OK(write(f, "x", 1)); /* ends it */
    OK(close(f));
    OK(close(OK(open("d/f", O_RDONLY))));
    forget_events();
    expect_close(fd, FAN_OPEN, "d/f");
    no_event(fd);
    OK(fanotify_mark(fd, FAN_MARK_ADD | FAN_MARK_IGNORED_MASK | FAN_MARK_IGNORED_SURV_MODIFY, FAN_OPEN, AT_FDCWD, "d/f"));
    f = OK(open("d/f", O_WRONLY));
    OK(write(f, "x", 1));
    OK(close(f));
    OK(close(OK(open("d/f", O_RDONLY))));
    no_event(fd);
    /* An unlinked file is still its directory's. */
    touch("d/g");
    f = OK(open("d/g", O_RDONLY));
    OK(unlink("d/g"));
    int other = OK(fanotify_init(FAN_CLASS_NOTIF | FAN_NONBLOCK, O_RDONLY));
    OK(fanotify_mark(other, FAN_MARK_ADD, FAN_CLOSE | FAN_EVENT_ON_CHILD, AT_FDCWD, "d"));
    OK(close(f));
    forget_events();
    struct fanotify_event_metadata *e = next_event(other);
    EQ(e->mask, FAN_CLOSE_NOWRITE);
    OK(close(e->fd));
}

TEST(mounts_and_file_systems)
{
    guest_tmpdir();
    OK(mkdir("a", 0700));
    OK(mkdir("b", 0700));
    OK(mount("one", "a", "tmpfs", 0, NULL));
    touch("a/f");
    OK(mount("a", "b", NULL, MS_BIND, NULL));
    int on_mount = OK(fanotify_init(FAN_CLASS_NOTIF | FAN_NONBLOCK, O_RDONLY));
    int on_sb = OK(fanotify_init(FAN_CLASS_NOTIF | FAN_NONBLOCK, O_RDONLY));
    OK(fanotify_mark(on_mount, FAN_MARK_ADD | FAN_MARK_MOUNT, FAN_OPEN, AT_FDCWD, "a/f"));
    OK(fanotify_mark(on_sb, FAN_MARK_ADD | FAN_MARK_FILESYSTEM, FAN_OPEN | FAN_ONDIR, AT_FDCWD, "a/f"));
    OK(close(OK(open("b/f", O_RDONLY))));
    no_event(on_mount);
    forget_events();
    expect_close(on_sb, FAN_OPEN, "b/f");
    OK(close(OK(open("a/f", O_RDONLY))));
    OK(close(OK(open("a", O_RDONLY))));
    forget_events();
    expect_close(on_mount, FAN_OPEN, "a/f");
    no_event(on_mount);
    forget_events();
    expect_close(on_sb, FAN_OPEN, "a/f");
    expect_close(on_sb, FAN_OPEN, "a");
    no_event(on_sb);
    /* Ignored by inode, whatever mark would tell. */
    OK(fanotify_mark(on_sb, FAN_MARK_ADD | FAN_MARK_IGNORED_MASK, FAN_OPEN, AT_FDCWD, "a/f"));
    OK(close(OK(open("a/f", O_RDONLY))));
    no_event(on_sb);
    forget_events();
    expect_close(on_mount, FAN_OPEN, "a/f");
    /* An event that waits keeps its mount. */
    OK(close(OK(open("a/f", O_RDONLY))));
    ERR(EBUSY, umount("a"));
    forget_events();
    expect_close(on_mount, FAN_OPEN, "a/f");
    OK(umount("a"));
    ERR(ENOENT, fanotify_mark(on_mount, FAN_MARK_REMOVE | FAN_MARK_MOUNT, FAN_OPEN, AT_FDCWD, "b"));
    OK(close(OK(open("b", O_RDONLY))));
    forget_events();
    expect_close(on_sb, FAN_OPEN, "b");
    OK(fanotify_mark(on_sb, FAN_MARK_FLUSH | FAN_MARK_FILESYSTEM, 0, AT_FDCWD, NULL));
    OK(close(OK(open("b", O_RDONLY))));
    no_event(on_sb);
    OK(umount("b"));
}

TEST(pidfd_and_tid)
{
    guest_tmpdir();
    touch("f");
    int fd = OK(fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_PIDFD | FAN_NONBLOCK, O_RDONLY));
    OK(fanotify_mark(fd, FAN_MARK_ADD, FAN_OPEN, AT_FDCWD, "f"));
    OK(close(OK(open("f", O_RDONLY))));
    EXITED(IN_CHILD(OK(close(OK(open("f", O_RDONLY))))), 0);
    forget_events();
    struct fanotify_event_metadata *e = next_event(fd);
    EQ(e->event_len, sizeof(*e) + sizeof(struct fanotify_event_info_pidfd));
    struct fanotify_event_info_pidfd *p = (void *)(e + 1);
    EQ(p->hdr.info_type, FAN_EVENT_INFO_TYPE_PIDFD);
    EQ(p->hdr.len, sizeof(*p));
    CHECK(p->pidfd >= 0);
    OK(syscall(SYS_pidfd_send_signal, p->pidfd, 0, NULL, 0));
    EQ(OK(fcntl(p->pidfd, F_GETFD)), FD_CLOEXEC);
    OK(close(p->pidfd));
    OK(close(e->fd));
    e = next_event(fd);
    p = (void *)(e + 1);
    EQ(p->pidfd, FAN_NOPIDFD); /* he is gone */
    OK(close(e->fd));
    no_event(fd);
}

/* ---- questions ---- */

/* Answers one question about path, after a while. */
static void judge(int fd, uint64_t mask, const char *path, uint32_t verdict)
{
    struct fanotify_response r = {.response = verdict};
    forget_events();
    r.fd = expect(fd, mask, path);
    ERR(EINVAL, write(fd, &r, sizeof(r) - 1));
    ERR(ENOENT, write(fd, &((struct fanotify_response){.fd = 1000, .response = FAN_ALLOW}), sizeof(r)));
    ERR(EINVAL, write(fd, &((struct fanotify_response){.fd = r.fd, .response = 77}), sizeof(r)));
    ERR(EINVAL, write(fd, &((struct fanotify_response){.fd = r.fd, .response = FAN_ALLOW | FAN_AUDIT}), sizeof(r)));
    EQ(OK(write(fd, &r, sizeof(r))), sizeof(r));
    ERR(ENOENT, write(fd, &r, sizeof(r)));
    OK(close(r.fd));
}

/* In a child that does not keep the group open. */
static pid_t in_background(int group, void (*fn)(void))
{
    pid_t pid = OK(fork());
    if (!pid) {
        close(group);
        fn();
        _exit(0);
    }
    return pid;
}

static void wait_for(pid_t pid)
{
    int status;
    OK(waitpid(pid, &status, 0));
    EXITED(status, 0);
}

static void opens(void)
{
    OK(close(OK(open("f", O_RDONLY))));
}

static void opens_not(void)
{
    ERR(EPERM, open("f", O_RDONLY));
}

static void reads_not(void)
{
    char c;
    int f = OK(open("f", O_RDONLY));
    ERR(EPERM, read(f, &c, 1));
    ERR(EPERM, pread(f, &c, 1, 0));
}

static void lists_not(void)
{
    char buf[1024];
    int d = OK(open(".", O_RDONLY));
    ERR(EPERM, syscall(SYS_getdents64, d, buf, sizeof(buf)));
}

BOTH(questions)
{
    guest_write_file("f", "content");
    int fd = OK(fanotify_init(FAN_CLASS_CONTENT, O_RDONLY));
    OK(fanotify_mark(fd, FAN_MARK_ADD, FAN_OPEN_PERM, AT_FDCWD, "f"));
    pid_t pid = in_background(fd, opens);
    judge(fd, FAN_OPEN_PERM, "f", FAN_ALLOW);
    wait_for(pid);
    pid = in_background(fd, opens_not);
    judge(fd, FAN_OPEN_PERM, "f", FAN_DENY);
    wait_for(pid);
    OK(fanotify_mark(fd, FAN_MARK_ADD, FAN_ACCESS_PERM, AT_FDCWD, "f"));
    pid = in_background(fd, reads_not);
    judge(fd, FAN_OPEN_PERM, "f", FAN_ALLOW);
    judge(fd, FAN_ACCESS_PERM, "f", FAN_DENY);
    judge(fd, FAN_ACCESS_PERM, "f", FAN_DENY);
    wait_for(pid);
    OK(fanotify_mark(fd, FAN_MARK_ADD, FAN_ACCESS_PERM | FAN_ONDIR, AT_FDCWD, "."));
    pid = in_background(fd, lists_not);
    judge(fd, FAN_ACCESS_PERM, ".", FAN_DENY);
    wait_for(pid);
    /* Closing allows what was read and not answered, and what was not even read. */
    pid = in_background(fd, opens);
    pid_t second = in_background(fd, opens);
    forget_events();
    struct fanotify_event_metadata *e = (void *)events;
    OK(read(fd, events, sizeof(*e)));
    EQ(e->mask, FAN_OPEN_PERM);
    OK(close(fd));
    wait_for(pid);
    wait_for(second);
}

BOTH(questions_end_with_the_asker)
{
    guest_write_file("f", "content");
    int fd = OK(fanotify_init(FAN_CLASS_PRE_CONTENT | FAN_NONBLOCK, O_RDONLY)), status;
    OK(fanotify_mark(fd, FAN_MARK_ADD, FAN_OPEN_PERM, AT_FDCWD, "f"));
    pid_t pid = in_background(fd, opens);
    OK(poll(&(struct pollfd){fd, POLLIN, 0}, 1, -1));
    OK(kill(pid, SIGKILL));
    OK(waitpid(pid, &status, 0));
    KILLED(status, SIGKILL);
    forget_events();
    no_event(fd); /* it went with him */
    pid = in_background(fd, opens);
    OK(poll(&(struct pollfd){fd, POLLIN, 0}, 1, -1));
    int got = expect(fd, FAN_OPEN_PERM, "f");
    OK(kill(pid, SIGKILL));
    OK(waitpid(pid, &status, 0));
    KILLED(status, SIGKILL);
    struct fanotify_response r = {.fd = got, .response = FAN_ALLOW};
    EQ(OK(write(fd, &r, sizeof(r))), sizeof(r));
    ERR(ENOENT, write(fd, &r, sizeof(r)));
}

MODE(nothing)
{
    return 0;
}

static void executes(void)
{
    execl("./prog", "prog", "@nothing", NULL);
    _exit(errno);
}

static void copy_self(const char *to)
{
    int in = OK(open("/proc/self/exe", O_RDONLY)), out = OK(open(to, O_CREAT | O_WRONLY, 0755));
    ssize_t n;
    while ((n = OK(read(in, events, sizeof(events)))) > 0)
        EQ(write(out, events, (size_t)n), n);
    OK(close(in));
    OK(close(out));
}

BOTH(execution)
{
    if (!strncmp(getcwd(events, sizeof(events)), "/dev/shm", 8))
        return; /* noexec */
    copy_self("prog");
    int fd = OK(fanotify_init(FAN_CLASS_CONTENT, O_RDONLY)), status;
    OK(fanotify_mark(fd, FAN_MARK_ADD, FAN_OPEN_EXEC, AT_FDCWD, "prog"));
    OK(close(OK(open("prog", O_RDONLY))));
    wait_for(in_background(fd, executes));
    forget_events();
    struct fanotify_event_metadata *e = next_event(fd);
    EQ(e->mask, FAN_OPEN_EXEC);
    EQ(events_at, events_len);
    OK(close(e->fd));
    OK(fanotify_mark(fd, FAN_MARK_REMOVE, FAN_OPEN_EXEC, AT_FDCWD, "prog"));
    OK(fanotify_mark(fd, FAN_MARK_ADD, FAN_OPEN_EXEC_PERM, AT_FDCWD, "prog"));
    OK(close(OK(open("prog", O_RDONLY))));
    pid_t pid = in_background(fd, executes);
    judge(fd, FAN_OPEN_EXEC_PERM, "prog", FAN_ALLOW);
    wait_for(pid);
    pid = in_background(fd, executes);
    judge(fd, FAN_OPEN_EXEC_PERM, "prog", FAN_DENY);
    OK(waitpid(pid, &status, 0));
    EXITED(status, EPERM);
    OK(fanotify_mark(fd, FAN_MARK_ADD, FAN_OPEN_PERM | FAN_ACCESS_PERM, AT_FDCWD, "prog"));
    pid = in_background(fd, executes);
    judge(fd, FAN_OPEN_EXEC_PERM, "prog", FAN_ALLOW);
    judge(fd, FAN_OPEN_PERM, "prog", FAN_ALLOW);
    judge(fd, FAN_ACCESS_PERM, "prog", FAN_DENY);
    OK(waitpid(pid, &status, 0));
    EXITED(status, EPERM);
}

/* ---- limits ---- */

static void set_number(const char *path, int n)
{
    char text[16];
    int f = OK(open(path, O_WRONLY)), len = snprintf(text, sizeof(text), "%d", n);
    EQ(write(f, text, (size_t)len), len);
    OK(close(f));
}

TEST_TIME(overflow, 60)
{
    char path[] = "/dev/shm/guest.XXXXXX", name[2][16] = {"start"};
    CHECK(mkdtemp(path));
    OK(chdir(path));
    touch(name[0]);
    int fd = OK(fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_DFID_NAME | FAN_NONBLOCK, O_RDONLY)), n = 0;
    OK(fanotify_mark(fd, FAN_MARK_ADD, FAN_RENAME | FAN_MOVE, AT_FDCWD, "."));
    for (int i = 0; i < 8300; i++) { /* each gives two that can't be merged */
        snprintf(name[!(i % 2)], sizeof(name[0]), "%d", i);
        OK(rename(name[i % 2], name[!(i % 2)]));
    }
    forget_events();
    struct fanotify_event_metadata *e;
    do {
        e = next_event(fd);
        n++;
    } while (e->mask != FAN_Q_OVERFLOW);
    EQ(n, atoi(guest_read_file("/proc/sys/fs/fanotify/max_queued_events")) + 1);
    EQ(e->fd, FAN_NOFD);
    EQ(e->event_len, sizeof(*e));
    EQ(e->pid, 0);
    no_event(fd);
    OK(rename(name[0], "again"));
    forget_events();
    EQ(next_event(fd)->mask, FAN_RENAME);
}

TEST(unprivileged)
{
    guest_tmpdir();
    OK(chmod(".", 0777));
    touch("secret");
    touch("f");
    OK(chmod("f", 0666));
    int whole = OK(fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_FID | FAN_NONBLOCK, O_RDONLY));
    EXITED(IN_CHILD({
               OK(setgid(1000));
               OK(setuid(1000));
               ERR(EPERM, fanotify_init(FAN_CLASS_NOTIF, O_RDONLY));
               ERR(EPERM, fanotify_init(FAN_CLASS_CONTENT, O_RDONLY));
               ERR(EPERM, fanotify_init(FAN_REPORT_FID | FAN_UNLIMITED_QUEUE, O_RDONLY));
               ERR(EPERM, fanotify_init(FAN_REPORT_FID | FAN_REPORT_TID, O_RDONLY));
               ERR(EPERM, fanotify_init(FAN_REPORT_FID | FAN_REPORT_PIDFD, O_RDONLY));
               ERR(EPERM, fanotify_init(FAN_REPORT_FID | FAN_ENABLE_AUDIT, O_RDONLY));
               ERR(EPERM, fanotify_mark(whole, FAN_MARK_ADD | FAN_MARK_MOUNT, FAN_OPEN, AT_FDCWD, "f"));
               int fd = OK(fanotify_init(FAN_REPORT_FID | FAN_NONBLOCK, O_RDONLY));
               ERR(EPERM, fanotify_mark(fd, FAN_MARK_ADD | FAN_MARK_FILESYSTEM, FAN_OPEN, AT_FDCWD, "f"));
               ERR(EACCES, fanotify_mark(fd, FAN_MARK_ADD, FAN_OPEN, AT_FDCWD, "secret"));
               OK(fanotify_mark(fd, FAN_MARK_ADD, FAN_OPEN, AT_FDCWD, "f"));
               EXITED(IN_CHILD(OK(open("f", O_RDONLY))), 0);
               struct fanotify_event_metadata *e = next_event(fd);
               EQ(e->mask, FAN_OPEN);
               EQ(e->pid, 0); /* somebody else: who, is not told */
               OK(open("f", O_RDONLY));
               e = next_event(fd);
               EQ(e->pid, getpid());
           }),
           0);
}

static bool ignores_something(int fd)
{
    char path[64];
    const char *at;

    snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
    at = strstr(guest_read_file(path), "ignored_mask:");
    return at && strtoul(at + strlen("ignored_mask:"), NULL, 16);
}

/* A changed file ends what its directory's mark ignores only where that mark is for the files in it. */
TEST(ignored_by_the_directory)
{
    int watcher, own, children, f;

    guest_tmpdir();
    OK(mkdir("d", 0755));
    touch("d/f");
    watcher = OK(fanotify_init(FAN_CLASS_NOTIF | FAN_NONBLOCK, O_RDONLY));
    OK(fanotify_mark(watcher, FAN_MARK_ADD, FAN_MODIFY | FAN_EVENT_ON_CHILD, AT_FDCWD, "d"));
    own = OK(fanotify_init(FAN_CLASS_NOTIF | FAN_NONBLOCK, O_RDONLY));
    OK(fanotify_mark(own, FAN_MARK_ADD | FAN_MARK_IGNORED_MASK, FAN_CLOSE_NOWRITE, AT_FDCWD, "d"));
    children = OK(fanotify_init(FAN_CLASS_NOTIF | FAN_NONBLOCK, O_RDONLY));
    OK(fanotify_mark(children, FAN_MARK_ADD, FAN_OPEN | FAN_EVENT_ON_CHILD, AT_FDCWD, "d"));
    OK(fanotify_mark(children, FAN_MARK_ADD | FAN_MARK_IGNORED_MASK, FAN_CLOSE_NOWRITE, AT_FDCWD, "d"));
    CHECK(ignores_something(own) && ignores_something(children));
    f = OK(open("d/f", O_WRONLY));
    OK(write(f, "x", 1));
    OK(close(f));
    CHECK(ignores_something(own));
    CHECK(!ignores_something(children));
}

TEST(fdinfo)
{
    guest_tmpdir();
    touch("f");
    int fd = OK(fanotify_init(FAN_CLASS_NOTIF | FAN_NONBLOCK, O_RDWR));
    OK(fanotify_mark(fd, FAN_MARK_ADD, FAN_OPEN, AT_FDCWD, "f"));
    OK(fanotify_mark(fd, FAN_MARK_ADD | FAN_MARK_IGNORED_MASK | FAN_MARK_IGNORED_SURV_MODIFY, FAN_CLOSE, AT_FDCWD, "f"));
    OK(fanotify_mark(fd, FAN_MARK_ADD | FAN_MARK_MOUNT, FAN_ACCESS, AT_FDCWD, "f"));
    OK(fanotify_mark(fd, FAN_MARK_ADD | FAN_MARK_FILESYSTEM, FAN_MODIFY, AT_FDCWD, "f"));
    char path[64], want[128];
    snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
    char *text = guest_read_file(path);
    CHECK(strstr(text, "fanotify flags:2 event-flags:2\n") || strstr(text, "fanotify flags:2 event-flags:8002\n"));
    snprintf(want, sizeof(want), "fanotify ino:%llx sdev:", (unsigned long long)ino_of("f"));
    CHECK(strstr(text, want));
    CHECK(strstr(text, " mflags:40 mask:20 ignored_mask:18 fhandle-bytes:"));
    CHECK(strstr(text, "fanotify mnt_id:"));
    CHECK(strstr(text, " mflags:0 mask:1 ignored_mask:0\n"));
    CHECK(strstr(text, " mflags:0 mask:2 ignored_mask:0\n"));
}

/* Marks keep nobody from taking what they are on away. */
TEST(marks_of_what_goes)
{
    guest_tmpdir();
    OK(mkdir("m", 0700));
    OK(mount("one", "m", "tmpfs", 0, NULL));
    touch("m/f");
    int fd = OK(fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_FID | FAN_NONBLOCK, O_RDONLY));
    OK(fanotify_mark(fd, FAN_MARK_ADD, FAN_OPEN | FAN_DELETE_SELF, AT_FDCWD, "m/f"));
    OK(fanotify_mark(fd, FAN_MARK_ADD | FAN_MARK_FILESYSTEM, FAN_OPEN, AT_FDCWD, "m"));
    OK(umount("m"));
    no_event(fd);
    OK(chdir("/dev/shm"));
    for (int i = 0; i < 500; i++) {
        touch("g");
        OK(fanotify_mark(fd, i % 2 ? FAN_MARK_ADD : FAN_MARK_ADD | FAN_MARK_EVICTABLE, FAN_ATTRIB, AT_FDCWD, "g"));
        OK(unlink("g"));
    }
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
    CHECK(!strstr(guest_read_file(path), " ino:")); /* not even one */
}

TEST(limits_by_user)
{
    guest_tmpdir();
    CHECK(atoi(guest_read_file("/proc/sys/fs/fanotify/max_queued_events")) > 0);
    CHECK(atoi(guest_read_file("/proc/sys/fs/fanotify/max_user_groups")) > 0);
    CHECK(atoi(guest_read_file("/proc/sys/fs/fanotify/max_user_marks")) > 0);
    EXITED(IN_CHILD({
               OK(setgid(1000));
               OK(setuid(1000));
               OK(unshare(CLONE_NEWUSER));
               set_number("/proc/sys/user/max_fanotify_groups", 2);
               set_number("/proc/sys/user/max_fanotify_marks", 3);
               EQ(atoi(guest_read_file("/proc/sys/user/max_fanotify_groups")), 2);
               int fd = OK(fanotify_init(FAN_REPORT_FID | FAN_NONBLOCK, O_RDONLY));
               int other = OK(fanotify_init(FAN_REPORT_FID | FAN_NONBLOCK, O_RDONLY));
               ERR(EMFILE, fanotify_init(FAN_REPORT_FID | FAN_NONBLOCK, O_RDONLY));
               OK(close(other));
               OK(close(OK(fanotify_init(FAN_REPORT_FID | FAN_NONBLOCK, O_RDONLY))));
               OK(fanotify_mark(fd, FAN_MARK_ADD, FAN_OPEN, AT_FDCWD, "/"));
               OK(fanotify_mark(fd, FAN_MARK_ADD, FAN_OPEN, AT_FDCWD, "/tmp"));
               OK(fanotify_mark(fd, FAN_MARK_ADD, FAN_OPEN, AT_FDCWD, "/dev"));
               ERR(ENOSPC, fanotify_mark(fd, FAN_MARK_ADD, FAN_OPEN, AT_FDCWD, "/etc"));
               OK(fanotify_mark(fd, FAN_MARK_ADD, FAN_CLOSE, AT_FDCWD, "/tmp"));
               OK(fanotify_mark(fd, FAN_MARK_FLUSH, 0, AT_FDCWD, NULL));
               OK(fanotify_mark(fd, FAN_MARK_ADD, FAN_OPEN, AT_FDCWD, "/etc"));
           }),
           0);
}
