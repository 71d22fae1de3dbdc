/* SPDX-License-Identifier: Apache-2.0 */
/* Immutable and append-only files and directories. */
#include "tests/guest/guest.h"

#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <utime.h>

static int get(int fd)
{
    int flags = 0;

    OK(ioctl(fd, FS_IOC_GETFLAGS, &flags));
    return flags;
}

static int set(int fd, int flags)
{
    return ioctl(fd, FS_IOC_SETFLAGS, &flags);
}

/* Runs a test in a child, and takes its flags back whatever becomes of it: nobody could remove the files. */
static void guarded(void (*test)(int dir, int file))
{
    int dir, file, status;

    OK(mkdir("d", 0755));
    guest_write_file("d/f", "text");
    guest_write_file("d/other", "text");
    dir = OK(open("d", O_RDONLY));
    file = OK(open("d/f", O_RDWR));
    status = IN_CHILD(test(dir, file));
    OK(set(dir, get(dir) & ~(FS_IMMUTABLE_FL | FS_APPEND_FL)));
    OK(set(file, get(file) & ~(FS_IMMUTABLE_FL | FS_APPEND_FL)));
    OK(unlink("d/f"));
    EXITED(status, 0);
}

static uint64_t attributes(const char *path, uint64_t *ret_mask)
{
    struct statx stx;

    OK(statx(AT_FDCWD, path, 0, STATX_BASIC_STATS, &stx));
    *ret_mask = stx.stx_attributes_mask;
    return stx.stx_attributes;
}

static void immutable_file(int dir, int file)
{
    struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_NOW}};
    uint64_t mask;
    int other = OK(open("d/other", O_RDWR));

    OK(set(file, get(file) | FS_IMMUTABLE_FL));
    CHECK(get(file) & FS_IMMUTABLE_FL);
    CHECK(attributes("d/f", &mask) & STATX_ATTR_IMMUTABLE);
    CHECK(mask & STATX_ATTR_IMMUTABLE);
    OK(open("d/f", O_RDONLY));
    ERR(EPERM, open("d/f", O_WRONLY));
    ERR(EPERM, open("d/f", O_WRONLY | O_APPEND));
    ERR(EPERM, open("d/f", O_RDONLY | O_TRUNC));
    ERR(EPERM, access("d/f", W_OK));
    ERR(EPERM, truncate("d/f", 1));
    ERR(EPERM, chmod("d/f", 0600));
    ERR(EPERM, chown("d/f", 1, 1));
    ERR(EPERM, utime("d/f", &(struct utimbuf){1, 1}));
    ERR(EPERM, utime("d/f", NULL));
    ERR(EPERM, utimensat(AT_FDCWD, "d/f", times, 0));
    ERR(EPERM, unlink("d/f"));
    ERR(EPERM, rename("d/f", "d/g"));
    ERR(EPERM, rename("d/other", "d/f"));
    ERR(EPERM, link("d/f", "d/g"));
    ERR(EPERM, setxattr("d/f", "user.a", "b", 1, 0));
    ERR(EPERM, removexattr("d/f", "user.a"));
    ERR(EPERM, setxattr("d/f", "trusted.a", "b", 1, 0));
    /* Whoever has it open for writing may not do everything either. */
    ERR(EPERM, fallocate(file, 0, 0, 10));
    ERR(EPERM, fchmod(file, 0600));
    ERR(EPERM, copy_file_range(other, NULL, file, NULL, 4, 0));
    OK(set(file, get(file) & ~FS_IMMUTABLE_FL));
    CHECK(!(attributes("d/f", &mask) & STATX_ATTR_IMMUTABLE));
    OK(truncate("d/f", 1));
    OK(rename("d/f", "d/g"));
    OK(rename("d/g", "d/f"));
}

BOTH(immutable_files)
{
    guarded(immutable_file);
}

static void append_only_file(int dir, int file)
{
    uint64_t mask;
    int fd;

    OK(set(file, get(file) | FS_APPEND_FL));
    CHECK(attributes("d/f", &mask) & STATX_ATTR_APPEND);
    ERR(EPERM, open("d/f", O_WRONLY));
    ERR(EPERM, open("d/f", O_RDWR));
    ERR(EPERM, open("d/f", O_WRONLY | O_APPEND | O_TRUNC));
    OK(access("d/f", W_OK));
    ERR(EPERM, truncate("d/f", 1));
    ERR(EPERM, ftruncate(file, 1));
    ERR(EPERM, chmod("d/f", 0600));
    ERR(EPERM, utime("d/f", &(struct utimbuf){1, 1}));
    OK(utime("d/f", NULL));
    ERR(EPERM, unlink("d/f"));
    ERR(EPERM, rename("d/f", "d/g"));
    ERR(EPERM, link("d/f", "d/g"));
    ERR(EPERM, setxattr("d/f", "user.a", "b", 1, 0));
    ERR(EPERM, fallocate(file, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, 0, 4096));
    ERR(EACCES, mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    ERR(EPERM, fcntl(file, F_SETFL, O_RDWR | O_APPEND));
    (void)fd;
}

BOTH(append_only_files)
{
    guarded(append_only_file);
}

TEST(append_only_file_grows)
{
    char *text;
    int fd;
    char path[] = "/dev/shm/append.XXXXXX";

    CHECK(mkdtemp(path));
    OK(chdir(path));
    guest_write_file("f", "text");
    fd = OK(open("f", O_RDONLY));
    OK(set(fd, FS_APPEND_FL));
    fd = OK(open("f", O_RDWR | O_APPEND));
    EQ(write(fd, " more", 5), 5);
    EQ(pwrite(fd, "!", 1, 0), 1);
    ERR(EPERM, fcntl(fd, F_SETFL, O_RDWR));
    ERR(EPERM, pwritev2(fd, &(struct iovec){"x", 1}, 1, 0, 0x20 /* RWF_NOAPPEND */));
    text = guest_read_file("f");
    STR(text, "text more!");
    OK(set(fd, 0));
    OK(unlink("f"));
}

static void immutable_directory(int dir, int file)
{
    OK(set(dir, get(dir) | FS_IMMUTABLE_FL));
    ERR(EPERM, open("d/new", O_CREAT | O_WRONLY, 0600));
    ERR(EPERM, open("d", O_TMPFILE | O_WRONLY, 0600));
    ERR(EPERM, mkdir("d/new", 0700));
    ERR(EPERM, mkfifo("d/new", 0700));
    ERR(EPERM, symlink("x", "d/new"));
    ERR(EPERM, link("d/f", "d/new"));
    ERR(EPERM, unlink("d/f"));
    ERR(EPERM, rename("d/f", "d/new"));
    ERR(EPERM, rename("d", "e"));
    ERR(EPERM, rmdir("d"));
    ERR(EEXIST, mkdir("d/f", 0700));
    /* What is in it is its own affair. */
    guest_write_file("d/f", "other text");
    OK(chmod("d/f", 0600));
    OK(set(dir, (get(dir) & ~FS_IMMUTABLE_FL) | FS_APPEND_FL));
    guest_write_file("d/new", "text");
    OK(mkdir("d/newdir", 0700));
    ERR(EPERM, unlink("d/new"));
    ERR(EPERM, rmdir("d/newdir"));
    ERR(EPERM, rename("d/new", "d/newer"));
    ERR(EPERM, rename("d/new", "outside"));
    ERR(EPERM, rename("d", "e"));
    OK(set(dir, get(dir) & ~FS_APPEND_FL));
    OK(unlink("d/new"));
}

BOTH(immutable_directories)
{
    guarded(immutable_directory);
}

static void rights(int dir, int file)
{
    struct fsxattr x;
    int flags = get(file);

    ERR(EFAULT, ioctl(file, FS_IOC_GETFLAGS, guest_unmapped()));
    ERR(EFAULT, ioctl(file, FS_IOC_SETFLAGS, guest_unmapped()));
    ERR(EBADF, ioctl(OK(open("d/f", O_PATH)), FS_IOC_GETFLAGS, &flags));
    OK(fchmod(file, 0666));
    OK(chmod(".", 0755));
    OK(chmod("d", 0777));
    OK(fchown(dir, 12345, 12345));
    EXITED(IN_CHILD({
               OK(setresuid(12345, 12345, 12345));
               int own = OK(open("d/own", O_RDONLY | O_CREAT, 0600));
               ERR(EPERM, set(file, flags | FS_NODUMP_FL)); /* not the owner */
               OK(set(own, get(own) | FS_NODUMP_FL | FS_NOATIME_FL));
               EQ(get(own) & (FS_NODUMP_FL | FS_NOATIME_FL), FS_NODUMP_FL | FS_NOATIME_FL);
               ERR(EPERM, set(own, get(own) | FS_IMMUTABLE_FL)); /* without the capability */
               ERR(EPERM, set(own, get(own) | FS_APPEND_FL));
           }),
           0);
    OK(set(file, flags | FS_NOATIME_FL));
    memset(&x, 0xff, sizeof(x));
    OK(ioctl(file, FS_IOC_FSGETXATTR, &x));
    EQ(x.fsx_xflags & (FS_XFLAG_NOATIME | FS_XFLAG_IMMUTABLE | FS_XFLAG_APPEND | FS_XFLAG_NODUMP), FS_XFLAG_NOATIME);
    EQ(x.fsx_projid, 0);
    x.fsx_xflags = FS_XFLAG_IMMUTABLE;
    OK(ioctl(file, FS_IOC_FSSETXATTR, &x));
    EQ(get(file) & (FS_IMMUTABLE_FL | FS_NOATIME_FL), FS_IMMUTABLE_FL);
    OK(set(file, flags));
    EQ(get(file), flags);
}

BOTH(inode_flag_rights)
{
    guarded(rights);
}

TEST(inode_flags_are_inherited_on_tmpfs)
{
    char path[] = "/dev/shm/inherit.XXXXXX";
    int dir;

    CHECK(mkdtemp(path));
    dir = OK(open(path, O_RDONLY));
    EQ(get(dir), 0);
    OK(set(dir, FS_NODUMP_FL | FS_NOATIME_FL));
    EQ(get(OK(openat(dir, "f", O_CREAT | O_RDWR, 0600))), FS_NODUMP_FL | FS_NOATIME_FL);
    ERR(EOPNOTSUPP, set(dir, FS_COMPR_FL));
}

TEST(inode_flags_of_other_files)
{
    int flags, p[2];

    OK(pipe(p));
    ERR(ENOTTY, ioctl(p[0], FS_IOC_GETFLAGS, &flags));
    ERR(ENOTTY, ioctl(OK(open("/dev/null", O_RDONLY)), FS_IOC_GETFLAGS, &flags));
    ERR(ENOTTY, ioctl(OK(open("/proc/self/status", O_RDONLY)), FS_IOC_GETFLAGS, &flags));
}
