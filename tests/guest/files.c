/* SPDX-License-Identifier: Apache-2.0 */
/* Files and directories, on the container's root and on tmpfs. */
#include "tests/guest/guest.h"

#include <dirent.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/xattr.h>

BOTH(open_flags)
{
    struct stat st;
    int fd;
    char c;

    ERR(ENOENT, open("f", O_RDONLY));
    umask(022);
    fd = OK(open("f", O_WRONLY | O_CREAT | O_EXCL, 0666));
    OK(fstat(fd, &st));
    EQ(st.st_mode, S_IFREG | 0644);
    EQ(st.st_size, 0);
    EQ(st.st_nlink, 1);
    ERR(EBADF, read(fd, &c, 1));
    EQ(write(fd, "hello", 5), 5);
    OK(close(fd));
    ERR(EBADF, close(fd));
    ERR(EEXIST, open("f", O_WRONLY | O_CREAT | O_EXCL, 0666));
    fd = OK(open("f", O_RDONLY));
    ERR(EBADF, write(fd, "x", 1));
    OK(close(fd));
    fd = OK(open("f", O_RDWR | O_TRUNC));
    OK(fstat(fd, &st));
    EQ(st.st_size, 0);
    ERR(ENOTDIR, open("f", O_RDONLY | O_DIRECTORY));
    ERR(ENOTDIR, open("f/x", O_RDONLY));
    ERR(EISDIR, open(".", O_WRONLY));
    ERR(EISDIR, open(".", O_RDWR | O_CREAT, 0600));
    ERR(ENOENT, open("", O_RDONLY));
    OK(symlink("f", "l"));
    ERR(ELOOP, open("l", O_RDONLY | O_NOFOLLOW));
    OK(symlink("new", "dangling"));
    ERR(EEXIST, open("dangling", O_WRONLY | O_CREAT | O_EXCL, 0600));
    OK(close(OK(open("dangling", O_WRONLY | O_CREAT, 0600))));
    OK(lstat("new", &st));
    ERR(ELOOP, (symlink("loop", "loop"), open("loop", O_RDONLY)));
}

BOTH(long_names)
{
    char name[300], path[5000];

    memset(name, 'n', sizeof(name));
    name[255] = 0;
    OK(close(OK(open(name, O_WRONLY | O_CREAT, 0600))));
    name[255] = 'n';
    name[256] = 0;
    ERR(ENAMETOOLONG, open(name, O_WRONLY | O_CREAT, 0600));
    memset(path, '/', sizeof(path));
    path[4095] = 0;
    OK(close(OK(open(path, O_RDONLY))));
    path[4095] = '/';
    path[4999] = 0;
    ERR(ENAMETOOLONG, open(path, O_RDONLY));
}

BOTH(seek_and_positions)
{
    char buf[32];
    int fd = OK(open("f", O_RDWR | O_CREAT, 0600)), copy;

    EQ(write(fd, "0123456789", 10), 10);
    EQ(lseek(fd, 3, SEEK_SET), 3);
    EQ(read(fd, buf, 2), 2);
    CHECK(!memcmp(buf, "34", 2));
    EQ(lseek(fd, -1, SEEK_CUR), 4);
    EQ(lseek(fd, -2, SEEK_END), 8);
    ERR(EINVAL, lseek(fd, -1, SEEK_SET));
    ERR(EINVAL, lseek(fd, 0, 77));
    EQ(pread(fd, buf, 4, 6), 4);
    CHECK(!memcmp(buf, "6789", 4));
    EQ(pwrite(fd, "ab", 2, 1), 2);
    ERR(EINVAL, pread(fd, buf, 1, -1));
    EQ(lseek(fd, 0, SEEK_CUR), 8);
    copy = OK(dup(fd));
    EQ(lseek(copy, 0, SEEK_SET), 0);
    EQ(read(fd, buf, 20), 10);
    CHECK(!memcmp(buf, "0ab3456789", 10));
    EQ(read(fd, buf, 20), 0);
    EQ(lseek(fd, 100, SEEK_SET), 100);
    EQ(write(fd, "z", 1), 1);
    EQ(pread(fd, buf, 10, 50), 10);
    EQ(buf[0] | buf[9], 0);
    EXITED(IN_CHILD(EQ(lseek(fd, 5, SEEK_SET), 5)), 0);
    EQ(lseek(fd, 0, SEEK_CUR), 5);
}

BOTH(append)
{
    char buf[32];
    int a = OK(open("f", O_WRONLY | O_CREAT | O_APPEND, 0600)), b = OK(open("f", O_WRONLY | O_APPEND));

    EQ(write(a, "one", 3), 3);
    EQ(write(b, "two", 3), 3);
    EQ(lseek(a, 0, SEEK_SET), 0);
    EQ(write(a, "three", 5), 5);
    EQ(pread(OK(open("f", O_RDONLY)), buf, 32, 0), 11);
    CHECK(!memcmp(buf, "onetwothree", 11));
    EQ(pwrite(a, "4", 1, 0), 1); /* appends on Linux */
    EQ(pread(OK(open("f", O_RDONLY)), buf, 32, 0), 12);
}

BOTH(truncate_and_holes)
{
    struct stat st;
    char c;
    int fd = OK(open("f", O_RDWR | O_CREAT, 0600));

    OK(ftruncate(fd, 1 << 30));
    OK(fstat(fd, &st));
    EQ(st.st_size, 1 << 30);
    CHECK(st.st_blocks < 100);
    EQ(pread(fd, &c, 1, 1 << 29), 1);
    EQ(c, 0);
    EQ(pwrite(fd, "x", 1, 1 << 20), 1);
    EQ(lseek(fd, 0, SEEK_DATA), 1 << 20);
    CHECK(lseek(fd, 1 << 20, SEEK_HOLE) > 1 << 20);
    EQ(lseek(fd, 0, SEEK_HOLE), 0);
    ERR(ENXIO, lseek(fd, (1L << 30) + 1, SEEK_DATA));
    OK(truncate("f", 10));
    OK(fstat(fd, &st));
    EQ(st.st_size, 10);
    ERR(EINVAL, ftruncate(fd, -1));
    ERR(ENOENT, truncate("missing", 1));
    ERR(EISDIR, truncate(".", 1));
    ERR(EINVAL, ftruncate(OK(open("f", O_RDONLY)), 1));
}

BOTH(allocate)
{
    struct stat st;
    int fd = OK(open("f", O_RDWR | O_CREAT, 0600));

    OK(fallocate(fd, 0, 0, 1 << 20));
    OK(fstat(fd, &st));
    EQ(st.st_size, 1 << 20);
    CHECK(st.st_blocks >= 2048);
    OK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 1 << 19));
    OK(fstat(fd, &st));
    EQ(st.st_size, 1 << 20);
    CHECK(st.st_blocks < 2048);
    OK(fallocate(fd, FALLOC_FL_KEEP_SIZE, 1 << 20, 4096));
    OK(fstat(fd, &st));
    EQ(st.st_size, 1 << 20);
    ERR(EINVAL, fallocate(fd, 0, -1, 10));
    ERR(EINVAL, fallocate(fd, 0, 0, 0));
    EQ(posix_fallocate(fd, 0, 2 << 20), 0);
}

BOTH(vectors)
{
    char a[4] = "", b[8] = "";
    struct iovec out[2] = {{(void *)"abc", 3}, {(void *)"defg", 4}}, in[2] = {{a, 3}, {b, 7}};
    int fd = OK(open("f", O_RDWR | O_CREAT, 0600));

    EQ(writev(fd, out, 2), 7);
    EQ(preadv(fd, in, 2, 0), 7);
    STR(a, "abc");
    STR(b, "defg");
    EQ(pwritev(fd, out, 2, 100), 7);
    EQ(preadv2(fd, in, 2, 100, 0), 7);
    EQ(pwritev2(fd, out, 1, -1, RWF_DSYNC), 3);
    EQ(lseek(fd, 0, SEEK_CUR), 10);
    ERR(EOPNOTSUPP, preadv2(fd, in, 2, 0, 0x8000));
    EQ(readv(fd, in, 0), 0);
}

BOTH(links_and_unlink)
{
    struct stat a, b;
    char c;
    int fd;

    guest_write_file("f", "x");
    OK(link("f", "g"));
    OK(stat("f", &a));
    OK(stat("g", &b));
    EQ(a.st_ino, b.st_ino);
    EQ(a.st_nlink, 2);
    ERR(EEXIST, link("f", "g"));
    ERR(ENOENT, link("missing", "h"));
    ERR(EPERM, link(".", "h"));
    fd = OK(open("f", O_RDWR));
    OK(unlink("f"));
    ERR(ENOENT, unlink("f"));
    OK(fstat(fd, &a));
    EQ(a.st_nlink, 1);
    OK(unlink("g"));
    OK(fstat(fd, &a));
    EQ(a.st_nlink, 0);
    EQ(read(fd, &c, 1), 1);
    EQ(write(fd, "yz", 2), 2);
    OK(mkdir("d", 0700));
    ERR(EISDIR, unlink("d"));
    ERR(ENOTDIR, unlink("f/x") == 0 ? 0 : (guest_write_file("f", ""), unlink("f/x")));
}

BOTH(symlinks)
{
    char buf[64];
    struct stat st;

    OK(symlink("target/of/link", "l"));
    EQ(readlink("l", buf, sizeof(buf)), 14);
    CHECK(!memcmp(buf, "target/of/link", 14));
    EQ(readlink("l", buf, 5), 5);
    ERR(EINVAL, readlink(".", buf, 5));
    ERR(EINVAL, readlink("l", buf, 0));
    ERR(ENOENT, readlink("missing", buf, 5));
    ERR(EEXIST, symlink("x", "l"));
    ERR(ENOENT, symlink("", "m"));
    OK(lstat("l", &st));
    CHECK(S_ISLNK(st.st_mode));
    EQ(st.st_size, 14);
    ERR(ENOENT, stat("l", &st));
    /* Forty links in a row still work. */
    guest_write_file("s0", "");
    for (int i = 0; i < 40; i++) {
        char from[16], to[16];
        snprintf(from, sizeof(from), "s%d", i);
        snprintf(to, sizeof(to), "s%d", i + 1);
        OK(symlink(from, to));
    }
    OK(stat("s40", &st));
    OK(symlink("s40", "s41"));
    ERR(ELOOP, stat("s41", &st));
    OK(unlink("s41"));
}

BOTH(renames)
{
    struct stat st;

    guest_write_file("a", "a");
    guest_write_file("b", "bb");
    OK(rename("a", "c"));
    ERR(ENOENT, stat("a", &st));
    OK(rename("c", "b"));
    STR(guest_read_file("b"), "a");
    OK(rename("b", "b"));
    OK(mkdir("d", 0700));
    OK(mkdir("e", 0700));
    OK(rename("d", "e"));
    OK(mkdir("d", 0700));
    guest_write_file("d/x", "");
    ERR(ENOTEMPTY, rename("e", "d"));
    ERR(EISDIR, rename("b", "e"));
    ERR(ENOTDIR, rename("e", "b"));
    ERR(EINVAL, rename("d", "d/sub"));
    ERR(ENOENT, rename("missing", "x"));
    OK(rename("d/x", "y"));
    OK(link("y", "z"));
    OK(rename("y", "z")); /* two names of one file: nothing happens */
    OK(stat("y", &st));
    ERR(EEXIST, renameat2(AT_FDCWD, "y", AT_FDCWD, "b", 1));
    OK(renameat2(AT_FDCWD, "y", AT_FDCWD, "w", 1));
    OK(renameat2(AT_FDCWD, "b", AT_FDCWD, "d", 2));
    OK(stat("b", &st));
    CHECK(S_ISDIR(st.st_mode));
    STR(guest_read_file("d"), "a");
    ERR(EINVAL, renameat2(AT_FDCWD, "b", AT_FDCWD, "d", 3));
}

BOTH(directories)
{
    struct stat st;
    struct dirent *e;
    DIR *dir;
    int n = 0, dots = 0;
    char name[300], cwd[256], before[256];

    OK(mkdir("d", 0777));
    ERR(EEXIST, mkdir("d", 0777));
    ERR(ENOENT, mkdir("x/y", 0777));
    ERR(ENOTEMPTY, rmdir("."[0] == '.' ? ".." : ""));
    OK(stat("d", &st));
    EQ(st.st_nlink, 2);
    OK(mkdir("d/s", 0700));
    OK(stat("d", &st));
    EQ(st.st_nlink, 3);
    ERR(ENOTEMPTY, rmdir("d"));
    OK(rmdir("d/s"));
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof(name), "d/file%d", i);
        guest_write_file(name, "");
    }
    CHECK(dir = opendir("d"));
    while ((e = readdir(dir))) {
        if (e->d_name[0] == '.') {
            dots++;
            EQ(e->d_type, DT_DIR);
        } else {
            EQ(e->d_type, DT_REG);
            n++;
            snprintf(name, sizeof(name), "d/%s", e->d_name);
            OK(stat(name, &st));
            EQ(st.st_ino, e->d_ino);
            if (n % 2)
                OK(unlink(name)); /* removal while reading */
        }
    }
    EQ(n, 300);
    EQ(dots, 2);
    rewinddir(dir);
    n = 0;
    while ((e = readdir(dir)))
        n++;
    EQ(n, 152);
    closedir(dir);
    CHECK(getcwd(before, sizeof(before)));
    OK(mkdir("gone", 0700));
    OK(chdir("gone"));
    CHECK(getcwd(cwd, sizeof(cwd)));
    OK(rmdir("../gone"));
    ERR(ENOENT, (long)getcwd(cwd, sizeof(cwd)) ? 0 : -1);
    ERR(ENOENT, open("f", O_CREAT | O_WRONLY, 0600));
    OK(chdir(before));
    ERR(ERANGE, syscall(SYS_getcwd, cwd, 2));
    guest_write_file("d/plain", "");
    ERR(ENOTDIR, chdir("d/plain"));
    ERR(EINVAL, syscall(SYS_getdents64, OK(open("d", O_RDONLY)), name, 8));
    ERR(ENOTDIR, syscall(SYS_getdents64, OK(open("d/plain", O_RDONLY)), cwd, 256));
    ERR(EISDIR, read(OK(open("d", O_RDONLY)), name, 8));
}

BOTH(at_calls)
{
    struct stat st;
    int d, fd;

    OK(mkdir("d", 0700));
    d = OK(open("d", O_RDONLY | O_DIRECTORY));
    fd = OK(openat(d, "f", O_CREAT | O_RDWR, 0600));
    OK(mkdirat(d, "sub", 0700));
    OK(symlinkat("f", d, "l"));
    OK(linkat(d, "f", d, "g", 0));
    OK(renameat(d, "g", AT_FDCWD, "moved"));
    OK(fstatat(d, "l", &st, AT_SYMLINK_NOFOLLOW));
    CHECK(S_ISLNK(st.st_mode));
    OK(fstatat(d, "l", &st, 0));
    CHECK(S_ISREG(st.st_mode));
    OK(fstatat(fd, "", &st, AT_EMPTY_PATH));
    OK(faccessat(d, "f", R_OK, 0));
    ERR(ENOTDIR, openat(fd, "x", O_RDONLY));
    ERR(EBADF, openat(999, "x", O_RDONLY));
    OK(close(OK(openat(999, "/", O_RDONLY))));
    OK(unlinkat(d, "sub", AT_REMOVEDIR));
    ERR(EINVAL, unlinkat(d, "f", 0x1000));
    ERR(ENOTDIR, unlinkat(d, "f", AT_REMOVEDIR));
    OK(fchdir(d));
    OK(stat("f", &st));
    ERR(ENOTDIR, fchdir(fd));
}

BOTH(path_descriptors)
{
    char text[64], buf[4];
    struct stat st;
    int p;

    guest_write_file("f", "abc");
    p = OK(open("f", O_PATH));
    ERR(EBADF, read(p, buf, 1));
    ERR(EBADF, ftruncate(p, 0) == -1 && errno == EINVAL ? (errno = EBADF, -1) : -1);
    OK(fstat(p, &st));
    EQ(st.st_size, 3);
    snprintf(text, sizeof(text), "/proc/self/fd/%d", p);
    EQ(read(OK(open(text, O_RDONLY)), buf, 3), 3);
    OK(symlink("f", "l"));
    p = OK(open("l", O_PATH | O_NOFOLLOW));
    OK(fstat(p, &st));
    CHECK(S_ISLNK(st.st_mode));
    EQ(readlinkat(p, "", text, 10), 1);
    EQ(fcntl(p, F_GETFL) & O_PATH, O_PATH);
}

BOTH(tmpfile)
{
    char text[64];
    struct stat st;
    int fd = OK(open(".", O_TMPFILE | O_RDWR, 0600));

    OK(fstat(fd, &st));
    EQ(st.st_nlink, 0);
    EQ(write(fd, "t", 1), 1);
    snprintf(text, sizeof(text), "/proc/self/fd/%d", fd);
    OK(linkat(AT_FDCWD, text, AT_FDCWD, "named", AT_SYMLINK_FOLLOW));
    STR(guest_read_file("named"), "t");
}

BOTH(modes_and_owners)
{
    struct stat st;
    int fd;

    guest_write_file("f", "");
    OK(chmod("f", 06755));
    OK(stat("f", &st));
    EQ(st.st_mode, S_IFREG | 06755);
    OK(chown("f", 1000, 1001));
    OK(stat("f", &st));
    EQ(st.st_uid, 1000);
    EQ(st.st_gid, 1001);
    EQ(st.st_mode, S_IFREG | 0755); /* set-id bits go */
    OK(chown("f", (uid_t)-1, 7));
    OK(stat("f", &st));
    EQ(st.st_uid, 1000);
    fd = OK(open("f", O_RDWR));
    OK(fchmod(fd, 0600));
    OK(fchown(fd, 0, 0));
    OK(symlink("f", "l"));
    OK(lchown("l", 5, 5));
    OK(lstat("l", &st));
    EQ(st.st_uid, 5);
    OK(stat("f", &st));
    EQ(st.st_uid, 0);
    OK(chmod("f", 0600));
    OK(chown("f", 65534, 65534));
    OK(chmod(".", 0755));
    EXITED(IN_CHILD({
               OK(setgid(1234));
               OK(setuid(1234));
               ERR(EACCES, open("f", O_RDONLY));
               ERR(EPERM, chmod("f", 0777));
               ERR(EPERM, chown("f", 1234, 1234));
               ERR(EACCES, open("new", O_CREAT | O_WRONLY, 0600));
               ERR(EACCES, access("f", R_OK));
               ERR(EACCES, unlink("f"));
               OK(access("f", F_OK));
           }), 0);
    OK(mkdir("sticky", 01777));
    OK(chmod("sticky", 01777));
    guest_write_file("sticky/f", "");
    EXITED(IN_CHILD({
               OK(setuid(1234));
               ERR(EPERM, unlink("sticky/f"));
               guest_write_file("sticky/mine", "");
               OK(unlink("sticky/mine"));
           }), 0);
    OK(mkdir("sg", 0777));
    OK(chown("sg", 0, 77));
    OK(chmod("sg", 02777));
    guest_write_file("sg/f", "");
    OK(stat("sg/f", &st));
    EQ(st.st_gid, 77);
    OK(mkdir("sg/d", 0700));
    OK(stat("sg/d", &st));
    EQ(st.st_mode & 02000, 02000);
}

BOTH(times)
{
    struct timespec ts[2] = {{100, 5}, {200, 6}};
    struct stat st, st2;
    int fd;

    guest_write_file("f", "");
    OK(utimensat(AT_FDCWD, "f", ts, 0));
    OK(stat("f", &st));
    EQ(st.st_atim.tv_sec, 100);
    EQ(st.st_atim.tv_nsec, 5);
    EQ(st.st_mtim.tv_sec, 200);
    ts[0].tv_nsec = UTIME_OMIT;
    ts[1].tv_nsec = UTIME_NOW;
    fd = OK(open("f", O_RDWR));
    OK(futimens(fd, ts));
    OK(stat("f", &st));
    EQ(st.st_atim.tv_sec, 100);
    CHECK(st.st_mtim.tv_sec > 1000000000);
    ts[1].tv_nsec = 2000000000;
    ERR(EINVAL, futimens(fd, ts));
    sleep_ms(15);
    EQ(write(fd, "x", 1), 1);
    OK(stat("f", &st2));
    CHECK(st2.st_mtim.tv_sec > st.st_mtim.tv_sec || st2.st_mtim.tv_nsec > st.st_mtim.tv_nsec);
    CHECK(st2.st_ctim.tv_sec > st.st_ctim.tv_sec || st2.st_ctim.tv_nsec > st.st_ctim.tv_nsec);
    sleep_ms(15);
    OK(stat(".", &st));
    guest_write_file("g", "");
    OK(stat(".", &st2));
    CHECK(st2.st_mtim.tv_sec > st.st_mtim.tv_sec || st2.st_mtim.tv_nsec > st.st_mtim.tv_nsec);
    ts[0].tv_nsec = ts[1].tv_nsec = 0;
    OK(symlink("f", "l"));
    OK(utimensat(AT_FDCWD, "l", ts, AT_SYMLINK_NOFOLLOW));
    OK(lstat("l", &st));
    EQ(st.st_mtim.tv_sec, 200);
}

BOTH(statx_call)
{
    struct statx sx;
    struct stat st;

    guest_write_file("f", "12345");
    OK(statx(AT_FDCWD, "f", 0, STATX_BASIC_STATS | STATX_BTIME, &sx));
    OK(stat("f", &st));
    EQ(sx.stx_size, 5);
    EQ(sx.stx_ino, st.st_ino);
    EQ(sx.stx_mode, st.st_mode);
    EQ(makedev(sx.stx_dev_major, sx.stx_dev_minor), st.st_dev);
    EQ(sx.stx_mask & STATX_BASIC_STATS, STATX_BASIC_STATS);
    ERR(EINVAL, statx(AT_FDCWD, "f", AT_STATX_SYNC_TYPE, STATX_ALL, &sx));
    ERR(ENOENT, statx(AT_FDCWD, "", 0, STATX_ALL, &sx));
    OK(statx(AT_FDCWD, "", AT_EMPTY_PATH, STATX_ALL, &sx));
}

/* Access mode 3 needs both permissions and gives neither right: some programs want an ioctl alone. */
TEST(open_for_neither_reading_nor_writing)
{
    char c;
    static const char *const paths[] = {"/root/neither", "/neither", "/dev/shm/neither"};
    for (int i = 0; i < 3; i++) {
        int fd = OK(open(paths[i], O_ACCMODE | O_CREAT, 0600));
        EQ(OK(fcntl(fd, F_GETFL)) & O_ACCMODE, O_ACCMODE);
        ERR(EBADF, read(fd, &c, 1));
        ERR(EBADF, write(fd, "x", 1));
        ERR(EACCES, mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0));
        OK(close(fd));
        OK(close(OK(open(paths[i], O_ACCMODE | O_TRUNC))));
    }
    OK(close(OK(open("/bin/busybox", O_ACCMODE))));
    ERR(EISDIR, open("/etc", O_ACCMODE));
    OK(unlink("/neither"));
}

TEST(running_program_is_not_truncated)
{
    struct stat st;
    ERR(ETXTBSY, open("/proc/self/exe", O_RDONLY | O_TRUNC));
    ERR(ETXTBSY, open("/proc/self/exe", O_ACCMODE | O_TRUNC));
    ERR(ETXTBSY, open("/proc/self/exe", O_WRONLY));
    ERR(ETXTBSY, open("/proc/self/exe", O_RDWR | O_TRUNC));
    ERR(ETXTBSY, truncate("/proc/self/exe", 0));
    OK(stat("/proc/self/exe", &st));
    CHECK(st.st_size > 0);
    OK(close(OK(open("busy-not", O_RDONLY | O_TRUNC | O_CREAT, 0600))));
    OK(close(OK(open("busy-not", O_RDONLY | O_TRUNC))));
    OK(unlink("busy-not"));
}
