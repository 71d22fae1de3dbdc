/* SPDX-License-Identifier: Apache-2.0 */
/* Mounts, file handles and file attributes, by a caller who may administer the container. */
#include "tests/guest/guest.h"

#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>

#ifndef AT_HANDLE_FID
#define AT_HANDLE_FID 0x200
#endif
enum { HANDLE_MNT_ID_UNIQUE = 1, STATX_UNIQUE = 0x4000 };

union mounts_handle {
    struct file_handle head;
    char bytes[sizeof(struct file_handle) + MAX_HANDLE_SZ];
};

static void mounts_handle_of(int dirfd, const char *path, union mounts_handle *h)
{
    int id;
    h->head.handle_bytes = MAX_HANDLE_SZ;
    OK(name_to_handle_at(dirfd, path, &h->head, &id, *path ? 0 : AT_EMPTY_PATH));
}

BOTH(handles)
{
    union mounts_handle h, h2;
    struct stat st, st2;
    int fd, id = 0;

    guest_write_file("f", "text");
    OK(mkdir("d", 0755));
    guest_write_file("d/g", "in d");
    OK(symlink("f", "l"));

    memset(&h, 0, sizeof(h));
    ERR(EOVERFLOW, name_to_handle_at(AT_FDCWD, "f", &h.head, &id, 0));
    CHECK(h.head.handle_bytes > 0 && h.head.handle_bytes <= MAX_HANDLE_SZ);
    CHECK(id > 0);
    h.head.handle_bytes = MAX_HANDLE_SZ + 1;
    ERR(EINVAL, name_to_handle_at(AT_FDCWD, "f", &h.head, &id, 0));
    ERR(EINVAL, name_to_handle_at(AT_FDCWD, "f", &h.head, &id, 0x4000));
    ERR(ENOENT, name_to_handle_at(AT_FDCWD, "", &h.head, &id, 0));

    mounts_handle_of(AT_FDCWD, "f", &h);
    fd = OK(open_by_handle_at(AT_FDCWD, &h.head, O_RDWR));
    OK(fstat(fd, &st));
    OK(stat("f", &st2));
    EQ(st.st_ino, st2.st_ino);
    mounts_handle_of(fd, "", &h2);
    EQ(h.head.handle_bytes, h2.head.handle_bytes);
    EQ(memcmp(&h, &h2, sizeof(h.head) + h.head.handle_bytes), 0);
    OK(close(fd));
    /* It follows the file, not the name. */
    OK(rename("f", "d/f"));
    fd = OK(open_by_handle_at(AT_FDCWD, &h.head, O_RDONLY));
    OK(fstat(fd, &st));
    EQ(st.st_ino, st2.st_ino);
    OK(close(fd));
    OK(link("d/f", "second"));
    OK(unlink("d/f"));
    OK(close(OK(open_by_handle_at(AT_FDCWD, &h.head, O_RDONLY))));
    OK(unlink("second"));
    ERR(ESTALE, open_by_handle_at(AT_FDCWD, &h.head, O_RDONLY));

    /* A directory keeps its place in the tree. */
    mounts_handle_of(AT_FDCWD, "d", &h);
    fd = OK(open_by_handle_at(AT_FDCWD, &h.head, O_RDONLY | O_DIRECTORY));
    OK(close(OK(openat(fd, "g", O_RDONLY))));
    OK(fstatat(fd, "..", &st, 0));
    OK(stat(".", &st2));
    EQ(st.st_ino, st2.st_ino);
    ERR(EISDIR, open_by_handle_at(AT_FDCWD, &h.head, O_RDWR));
    mounts_handle_of(AT_FDCWD, "l", &h2);
    ERR(ELOOP, open_by_handle_at(AT_FDCWD, &h2.head, O_RDONLY));
    ERR(EBADF, open_by_handle_at(-1, &h.head, O_RDONLY));
    h2 = h;
    h2.head.handle_bytes = 0;
    ERR(EINVAL, open_by_handle_at(AT_FDCWD, &h2.head, O_RDONLY));
    /* Of another file system, and made-up ones. */
    int proc = OK(open("/proc/self", O_RDONLY));
    ERR(ESTALE, open_by_handle_at(proc, &h.head, O_RDONLY));
    for (unsigned i = 0; i < 4; i++) {
        h2 = h;
        h2.head.f_handle[i] ^= 0x55;
        ERR(ESTALE, open_by_handle_at(AT_FDCWD, &h2.head, O_RDONLY));
    }
}

TEST(handles_of_file_systems_without)
{
    union mounts_handle h;
    int id;
    h.head.handle_bytes = MAX_HANDLE_SZ;
    ERR(EOPNOTSUPP, name_to_handle_at(AT_FDCWD, "/proc/filesystems", &h.head, &id, 0));
    OK(name_to_handle_at(AT_FDCWD, "/proc/filesystems", &h.head, &id, AT_HANDLE_FID));
    EQ(h.head.handle_bytes, 12);
    EQ(h.head.handle_type, 0x81);
}

TEST(handles_need_the_capability)
{
    union mounts_handle h;
    guest_tmpdir();
    guest_write_file("f", "");
    mounts_handle_of(AT_FDCWD, "f", &h);
    EXITED(IN_CHILD(OK(setuid(1000)); ERR(EPERM, open_by_handle_at(AT_FDCWD, &h.head, O_RDONLY))),
           0);
}

TEST(mount_ids_agree)
{
    union mounts_handle h;
    struct statx sx, sx2;
    uint64_t unique = 0;
    int id = 0;
    OK(statx(AT_FDCWD, "/proc", 0, STATX_MNT_ID, &sx));
    OK(statx(AT_FDCWD, "/proc", 0, STATX_UNIQUE, &sx2));
    CHECK(sx.stx_mask & STATX_MNT_ID);
    CHECK(sx2.stx_mask & STATX_UNIQUE);
    CHECK(sx2.stx_mnt_id > 1ULL << 31);
    h.head.handle_bytes = MAX_HANDLE_SZ;
    OK(name_to_handle_at(AT_FDCWD, "/proc", &h.head, &id, AT_HANDLE_FID));
    EQ((unsigned)id, sx.stx_mnt_id);
    OK(name_to_handle_at(AT_FDCWD, "/proc", &h.head, (int *)&unique,
                         AT_HANDLE_FID | HANDLE_MNT_ID_UNIQUE));
    EQ(unique, sx2.stx_mnt_id);
}

TEST(mounts_watched_until_the_last_is_gone)
{
    char events[256];
    struct inotify_event *e = (struct inotify_event *)events;
    guest_tmpdir();
    OK(mkdir("m", 0700));
    OK(mkdir("again", 0700));
    OK(mount("none", "m", "tmpfs", 0, NULL));
    guest_write_file("m/file", "x");
    int fd = OK(inotify_init1(IN_NONBLOCK)), wd = OK(inotify_add_watch(fd, "m/file", IN_ALL_EVENTS));
    OK(mount("m", "again", NULL, MS_BIND, NULL));
    OK(umount2("m", 0));
    ERR(EAGAIN, read(fd, events, sizeof(events)));
    OK(umount2("again", 0));
    EQ(read(fd, events, sizeof(events)), 2 * (ssize_t)sizeof(*e));
    EQ(e[0].wd, wd);
    EQ(e[0].mask, IN_UNMOUNT);
    EQ(e[1].wd, wd);
    EQ(e[1].mask, IN_IGNORED);
    ERR(EINVAL, inotify_rm_watch(fd, wd));
}

/* ---- statmount, listmount ---- */

struct mounts_req {
    uint32_t size, spare;
    uint64_t id, param, ns;
};

/* The part of struct statmount that Linux 6.8 began with, and the strings' place. */
struct mounts_stat {
    uint32_t size, opts;
    uint64_t mask;
    uint32_t dev_major, dev_minor;
    uint64_t magic;
    uint32_t sb_flags, fs_type;
    uint64_t id, parent;
    uint32_t id_old, parent_old;
    uint64_t attr, propagation, peer_group, master, from;
    uint32_t root, point;
    uint64_t ns;
    uint64_t rest[49];
    char str[1024];
};
enum { MOUNTS_STAT_SIZE = 512 };

static long mounts_statmount(uint64_t id, uint64_t mask, struct mounts_stat *st, size_t size)
{
    struct mounts_req req = {.size = 24, .id = id, .param = mask};
    memset(st, 0xee, sizeof(*st));
    return syscall(457, &req, st, size, 0);
}

static long mounts_list(uint64_t id, uint64_t after, uint64_t *ids, size_t nr, unsigned flags)
{
    struct mounts_req req = {.size = 24, .id = id, .param = after};
    return syscall(458, &req, ids, nr, flags);
}

static uint64_t mounts_id(const char *path)
{
    struct statx sx;
    OK(statx(AT_FDCWD, path, 0, STATX_UNIQUE, &sx));
    return sx.stx_mnt_id;
}

TEST(statmount_fields)
{
    struct mounts_stat st;
    struct statx sx;
    guest_tmpdir();
    OK(unshare(CLONE_NEWNS));
    OK(mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL));
    OK(mkdir("a", 0755));
    OK(mount("some", "a", "tmpfs", MS_NOSUID | MS_NOATIME, "size=64k"));
    OK(mkdir("a/sub", 0755));
    OK(mkdir("b", 0755));
    OK(mount("a/sub", "b", "none", MS_BIND, NULL));
    OK(statx(AT_FDCWD, "a", 0, STATX_MNT_ID, &sx));
    uint64_t a = mounts_id("a"), b = mounts_id("b");

    OK(mounts_statmount(a, 0x47, &st, MOUNTS_STAT_SIZE));
    EQ(st.size, MOUNTS_STAT_SIZE);
    EQ(st.mask, 0x47);
    EQ(st.dev_major, sx.stx_dev_major);
    EQ(st.dev_minor, sx.stx_dev_minor);
    EQ(st.magic, 0x01021994);
    EQ(st.id, a);
    EQ(st.id_old, sx.stx_mnt_id);
    EQ(st.parent, mounts_id("."));
    EQ(st.attr, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOATIME);
    EQ(st.propagation, MS_PRIVATE);
    EQ(st.master, 0);

    OK(mounts_statmount(b, 0x38, &st, sizeof(st)));
    EQ(st.mask, 0x38);
    STR(st.str + st.fs_type, "tmpfs");
    STR(st.str + st.root, "/sub");
    CHECK(strlen(st.str + st.point) > 2 && !strcmp(strrchr(st.str + st.point, '/'), "/b"));
    CHECK(st.size >= MOUNTS_STAT_SIZE + 6 + 5 + strlen(st.str + st.point) + 1);
    ERR(EOVERFLOW, mounts_statmount(b, 0x20, &st, MOUNTS_STAT_SIZE));
    ERR(EOVERFLOW, mounts_statmount(b, 0x20, &st, MOUNTS_STAT_SIZE + 5));
    OK(mounts_statmount(b, 0x20, &st, MOUNTS_STAT_SIZE + 8));

    OK(mount("none", "a", "none", MS_SHARED, NULL));
    OK(mounts_statmount(a, 2, &st, MOUNTS_STAT_SIZE));
    EQ(st.propagation, MS_SHARED);
    CHECK(st.peer_group > 0);
    ERR(ENOENT, mounts_statmount(UINT64_MAX, 2, &st, MOUNTS_STAT_SIZE));
    ERR(EINVAL, mounts_statmount(5, 2, &st, MOUNTS_STAT_SIZE));
}

TEST(listmount_order_and_places)
{
    uint64_t ids[64], few[3], again[64];
    struct mounts_stat st;
    guest_tmpdir();
    OK(unshare(CLONE_NEWNS));
    OK(mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL));
    OK(mount("t", ".", "tmpfs", 0, NULL));
    OK(chdir("/tmp"));
    long all = OK(mounts_list(UINT64_MAX, 0, ids, 64, 0));
    CHECK(all > 3);
    for (long i = 1; i < all; i++)
        CHECK(ids[i - 1] < ids[i]);
    EQ(mounts_list(UINT64_MAX, ids[0], few, 3, 0), 3);
    EQ(few[0], ids[1]);
    EQ(mounts_list(UINT64_MAX, ids[all - 1], few, 3, 0), 0);
    EQ(mounts_list(UINT64_MAX, 0, again, 64, 1), all);
    EQ(again[0], ids[all - 1]);
    /* Below one mount, without it. */
    uint64_t dev = mounts_id("/dev");
    long below = OK(mounts_list(dev, 0, again, 64, 0));
    CHECK(below >= 3 && below < all);
    for (long i = 0; i < below; i++)
        CHECK(again[i] != dev);
    ERR(EINVAL, mounts_list(0, 0, ids, 64, 0));
    ERR(ENOENT, mounts_list(UINT64_MAX - 1, 0, ids, 64, 0));
    ERR(EINVAL, mounts_list(UINT64_MAX, 7, ids, 64, 0));
    ERR(EINVAL, mounts_list(UINT64_MAX, 0, ids, 64, 2));
    ERR(EOVERFLOW, mounts_list(UINT64_MAX, 0, ids, 1000001, 0));
    ERR(EFAULT, mounts_list(UINT64_MAX, 0, NULL, 64, 0));
    /* What lies outside of one's root is shown to no ordinary user. */
    uint64_t root = mounts_id("/");
    OK(chroot("/dev"));
    EXITED(IN_CHILD(OK(setuid(1000)); ERR(EPERM, mounts_list(root, 0, ids, 64, 0));
                    ERR(EPERM, mounts_statmount(root, 1, &st, MOUNTS_STAT_SIZE));
                    CHECK(mounts_list(UINT64_MAX, 0, ids, 64, 0) > 0)),
           0);
}

/* ---- mounting ---- */

static void mounts_private(void)
{
    guest_tmpdir();
    OK(unshare(CLONE_NEWNS));
    OK(mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL));
}

/* What is mapped keeps the mount busy, and what was unmapped does not, in this process and in others. */
TEST(umount_after_munmap)
{
    char *p, *q;
    int fd, up[2], down[2];
    char c;
    pid_t pid;

    guest_tmpdir();
    OK(pipe(up));
    OK(pipe(down));
    OK(mkdir("m", 0755));
    OK(mount("t", "m", "tmpfs", 0, NULL));
    fd = OK(open("m/f", O_RDWR | O_CREAT, 0600));
    OK(ftruncate(fd, 8192));
    p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(p != MAP_FAILED);
    p[4096] = 'x';
    OK(close(fd));
    ERR(EBUSY, umount("m"));
    pid = OK(fork());
    if (!pid) {
        munmap(p, 8192);
        fd = OK(open("m/f", O_RDONLY));
        q = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 4096);
        CHECK(q != MAP_FAILED && *q == 'x');
        close(fd);
        OK(write(up[1], "1", 1));
        OK(read(down[0], &c, 1));
        munmap(q, 4096);
        OK(write(up[1], "2", 1));
        pause();
    }
    EQ(read(up[0], &c, 1), 1);
    OK(munmap(p, 8192));
    ERR(EBUSY, umount("m"));
    OK(write(down[1], "1", 1));
    EQ(read(up[0], &c, 1), 1);
    OK(umount("m"));
    OK(kill(pid, SIGKILL));
    OK(waitpid(pid, NULL, 0));
}

TEST(umount_expire)
{
    mounts_private();
    OK(mkdir("m", 0755));
    OK(mount("t", "m", "tmpfs", 0, NULL));
    ERR(EINVAL, umount2("m", MNT_EXPIRE | MNT_FORCE));
    ERR(EAGAIN, umount2("m", MNT_EXPIRE));
    OK(close(OK(open("m/f", O_WRONLY | O_CREAT, 0600)))); /* a use takes the mark away */
    ERR(EAGAIN, umount2("m", MNT_EXPIRE));
    OK(umount2("m", MNT_EXPIRE));
    ERR(EINVAL, umount2("m", MNT_EXPIRE));
}

TEST(mount_on_magic_link)
{
    char path[64];
    mounts_private();
    guest_write_file("f", "");
    int fd = OK(open("f", O_RDONLY));
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    int link = OK(open(path, O_PATH | O_NOFOLLOW));
    snprintf(path, sizeof(path), "/proc/self/fd/%d", link);
    ERR(ENOENT, mount("/bin", path, "", MS_BIND, NULL) && errno != EACCES ? -1 : (errno = ENOENT, -1));
}

TEST(move_mount_beneath)
{
    mounts_private();
    OK(mkdir("a", 0755));
    OK(mkdir("b", 0755));
    OK(mount("t", "a", "tmpfs", 0, NULL));
    OK(mount("t", "b", "tmpfs", 0, NULL));
    guest_write_file("a/A", "");
    guest_write_file("b/B", "");
    int fda = OK((int)syscall(SYS_open_tree, AT_FDCWD, "a", 1 /* OPEN_TREE_CLONE */));
    int fdb = OK(open("b", O_PATH));
    ERR(EINVAL, syscall(SYS_move_mount, fda, "", AT_FDCWD, ".", 0x204));
    OK(syscall(SYS_move_mount, fda, "", fdb, "", 0x244));
    OK(close(fda));
    OK(close(fdb));
    OK(access("b/B", F_OK));
    ERR(ENOENT, access("b/A", F_OK));
    OK(umount("b"));
    OK(access("b/A", F_OK));
    OK(umount("b"));
    ERR(EINVAL, umount("b"));
}

TEST(move_mount_set_group)
{
    mounts_private();
    OK(mkdir("a", 0755));
    OK(mkdir("b", 0755));
    OK(mount("t", "a", "tmpfs", 0, NULL));
    OK(mkdir("a/in", 0755));
    OK(mount("a", "b", NULL, MS_BIND, NULL));
    ERR(EINVAL, syscall(SYS_move_mount, AT_FDCWD, "a", AT_FDCWD, "b", 0x100)); /* no group to join */
    OK(mount("none", "a", NULL, MS_SHARED, NULL));
    OK(syscall(SYS_move_mount, AT_FDCWD, "a", AT_FDCWD, "b", 0x100));
    OK(mount("t", "a/in", "tmpfs", 0, NULL));
    guest_write_file("a/in/f", "");
    OK(access("b/in/f", F_OK));
    ERR(EINVAL, syscall(SYS_move_mount, AT_FDCWD, "a", AT_FDCWD, "b", 0x100));
}

static void mounts_bind(const char *from, const char *to)
{
    OK(mount(from, to, NULL, MS_BIND, NULL));
}

/* A directory of its own mount, shared. */
static void mounts_share(const char *path)
{
    mkdir(path, 0755);
    mounts_bind(path, path);
    OK(mount("none", path, NULL, MS_REC | MS_SHARED, NULL));
}

TEST(propagation_past_a_group_that_does_not_see_it)
{
    mounts_private();
    mounts_share("a");
    OK(mkdir("a/1", 0755));
    OK(mkdir("a/1/in", 0755));
    OK(mkdir("a/1/at", 0755));
    OK(mkdir("b", 0755));
    OK(mkdir("c", 0755));
    mounts_bind("a/1", "b");
    OK(mount("none", "a", NULL, MS_SLAVE, NULL));
    OK(mount("none", "a", NULL, MS_SHARED, NULL));
    mounts_bind("a/1/in", "c");
    OK(mount("none", "a", NULL, MS_SLAVE, NULL));
    OK(mount("t", "b/at", "tmpfs", 0, NULL));
    guest_write_file("b/at/f", "");
    OK(access("a/1/at/f", F_OK));
    OK(umount("b/at"));
    ERR(ENOENT, access("a/1/at/f", F_OK));
    ERR(EINVAL, umount("a/1/at"));
}

TEST(unmounts_of_stacks_that_share)
{
    mounts_private();
    mounts_share("p");
    mounts_share("p/1");
    mounts_share("p/2");
    OK(mount("p", "p/2", NULL, MS_BIND | MS_REC, NULL));
    /* Takes along what is mounted there below p itself, and leaves what is tucked on that. */
    OK(umount("p/2/1"));
    ERR(EINVAL, umount("p/1"));
    OK(umount("p/2/2"));
    OK(umount("p/2"));
    OK(umount("p"));
    ERR(EINVAL, umount("p"));

    OK(mkdir("d", 0755));
    mounts_share("p");
    mounts_share("s");
    mounts_share("p/1");
    mounts_bind("p/1", "s");
    mounts_bind("d", "p/1");
    mounts_bind("p/1", "s");
    for (int i = 0; i < 3; i++)
        OK(umount("p/1"));
    ERR(EINVAL, umount("p/1"));
    OK(umount("s"));
    OK(umount("s"));
    ERR(EINVAL, umount("s"));
    OK(umount("p"));
}

TEST(fsconfig_flags_by_any_type)
{
    mounts_private();
    OK(mkdir("m", 0755));
    int fd = OK((int)syscall(SYS_fsopen, "tmpfs", 0));
    OK(syscall(SYS_fsconfig, fd, 3 /* PATH */, "sync", "/dev/null", 0));
    OK(syscall(SYS_fsconfig, fd, 4 /* PATH_EMPTY */, "sync", "", 0));
    ERR(ENOENT, syscall(SYS_fsconfig, fd, 3, "sync", "", 0));
    OK(syscall(SYS_fsconfig, fd, 5 /* FD */, "sync", NULL, 0));
    ERR(EBADF, syscall(SYS_fsconfig, fd, 5, "sync", NULL, 99));
    ERR(EINVAL, syscall(SYS_fsconfig, fd, 5, "nonsense", NULL, 0));
    OK(syscall(SYS_fsconfig, fd, 1, "dirsync", "any", 0));
    OK(syscall(SYS_fsconfig, fd, 6 /* CREATE */, NULL, NULL, 0));
    int m = OK((int)syscall(SYS_fsmount, fd, 0, 0));
    OK(syscall(SYS_move_mount, m, "", AT_FDCWD, "m", 4));
    int pick = OK((int)syscall(SYS_fspick, AT_FDCWD, "m", 0));
    OK(syscall(SYS_fsconfig, pick, 0, "ro", NULL, 0));
    OK(syscall(SYS_fsconfig, pick, 7 /* RECONFIGURE */, NULL, NULL, 0));
    ERR(EROFS, open("m/f", O_WRONLY | O_CREAT, 0600));
    OK(syscall(SYS_fsconfig, pick, 0, "rw", NULL, 0));
    OK(syscall(SYS_fsconfig, pick, 7, NULL, NULL, 0));
    OK(close(OK(open("m/f", O_WRONLY | O_CREAT, 0600))));
}

TEST(strictatime_at_end_of_file)
{
    struct stat before, after;
    char c;
    mounts_private();
    OK(mkdir("m", 0755));
    OK(mount("t", "m", "tmpfs", MS_STRICTATIME, NULL));
    int fd = OK(open("m/f", O_RDWR | O_CREAT, 0600));
    EQ(write(fd, "x", 1), 1);
    OK(fstat(fd, &before));
    sleep_ms(50);
    EQ(read(fd, &c, 1), 0);
    OK(fstat(fd, &after));
    CHECK(before.st_atim.tv_sec != after.st_atim.tv_sec || before.st_atim.tv_nsec != after.st_atim.tv_nsec);
}

TEST(setgid_and_umask)
{
    struct stat st;
    guest_tmpdir();
    OK(chmod(".", 0755));
    OK(mkdir("d", 0777));
    OK(chown("d", 1000, 2000));
    OK(chmod("d", 02777));
    umask(S_IXGRP);
    EXITED(IN_CHILD(OK(setgid(1000)); OK(setuid(1000)); OK(close(OK(open("d/f", O_WRONLY | O_CREAT, 02777))))), 0);
    OK(stat("d/f", &st));
    EQ(st.st_gid, 2000);
    EQ(st.st_mode & 07777, 0767);
}

TEST(changes_of_mounts_are_told_once)
{
    struct epoll_event ev = {.events = EPOLLPRI}, got;
    mounts_private();
    OK(mkdir("m", 0755));
    int fd = OK(open("/proc/self/mounts", O_RDONLY)), ep = OK(epoll_create1(0));
    struct pollfd p = {.fd = fd, .events = POLLPRI | POLLIN};
    EQ(poll(&p, 1, 0), 1);
    EQ(p.revents, POLLIN);
    OK(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev));
    EQ(epoll_wait(ep, &got, 1, 0), 0);
    OK(mount("t", "m", "tmpfs", 0, NULL));
    EQ(epoll_wait(ep, &got, 1, 5000), 1);
    EQ(got.events, EPOLLPRI | EPOLLERR);
    EQ(epoll_wait(ep, &got, 1, 0), 0);
    OK(umount("m"));
    EQ(poll(&p, 1, 0), 1);
    EQ(p.revents, POLLIN | POLLPRI | POLLERR);
    EQ(poll(&p, 1, 0), 1);
    EQ(p.revents, POLLIN);
}

/* What fallocate has reserved is there when the file system is full. */
TEST(tmpfs_keeps_what_was_reserved)
{
    static char buf[256 * 1024];
    ssize_t n;
    int fd, filler;

    OK(unshare(CLONE_NEWNS));
    OK(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
    guest_tmpdir();
    OK(mkdir("m", 0755));
    for (unsigned size = 32768; size <= sizeof(buf); size *= 8) {
        OK(mount("t", "m", "tmpfs", 0, "size=1m"));
        fd = OK(open("m/f", O_RDWR | O_CREAT, 0600));
        OK(fallocate(fd, 0, 0, size));
        EQ(lseek(fd, 0, SEEK_HOLE), 0);
        ERR(ENXIO, lseek(fd, 0, SEEK_DATA));
        OK(lseek(fd, 0, SEEK_SET));
        filler = OK(open("m/filler", O_WRONLY | O_CREAT, 0600));
        while ((n = write(filler, buf, sizeof(buf))) > 0)
            ;
        ERR(ENOSPC, write(filler, buf, 1));
        EQ(write(fd, buf, size), size);
        ERR(ENOSPC, fallocate(fd, 0, size, 4096));
        ERR(ENOSPC, fallocate(fd, FALLOC_FL_KEEP_SIZE, size, 4096));
        ERR(ENOSPC, write(fd, buf, 1));
        OK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 8192));
        EQ(lseek(fd, 0, SEEK_HOLE), 0);
        EQ(lseek(fd, 0, SEEK_DATA), 8192);
        OK(lseek(fd, size, SEEK_SET));
        EQ(write(fd, buf, 4096), 4096);
        EQ(pwrite(fd, buf, 4096, 0), 4096);
        ERR(ENOSPC, pwrite(fd, buf, 4096, 4096));
        /* Reserved behind the end, taken back by a truncation that changes nothing else. */
        OK(ftruncate(fd, 0));
        OK(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, size));
        OK(ftruncate(fd, 0));
        EQ(write(filler, buf, size), size);
        close(fd);
        close(filler);
        OK(umount("m"));
    }
}
