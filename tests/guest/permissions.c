/* SPDX-License-Identifier: Apache-2.0 */
/* Who may do what with files and directories: classes, sticky and set-group-id directories, capabilities, protections. */
#include "tests/guest/guest.h"

#include <dirent.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

static void become(uid_t uid, gid_t gid, size_t n, const gid_t *groups)
{
    OK(setgroups(n, groups));
    OK(setresgid(gid, gid, gid));
    OK(setresuid(uid, uid, uid));
}

/* Runs code as that user with one group, in a child. */
#define AS(uid, gid, ...) EXITED(IN_CHILD(become((uid), (gid), 0, NULL); __VA_ARGS__), 0)
/* The same with one supplementary group. */
#define AS2(uid, gid, group, ...) EXITED(IN_CHILD(become((uid), (gid), 1, (gid_t[]){group}); __VA_ARGS__), 0)

/* As a user with nothing but these capabilities. */
static void become_with_caps(uid_t uid, gid_t gid, uint64_t caps)
{
    struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct d[2] = {
        {.effective = (uint32_t)caps, .permitted = (uint32_t)caps},
        {.effective = (uint32_t)(caps >> 32), .permitted = (uint32_t)(caps >> 32)},
    };
    OK(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0));
    become(uid, gid, 0, NULL);
    OK(syscall(SYS_capset, &h, d));
}
#define AS_CAP(uid, gid, cap, ...) EXITED(IN_CHILD(become_with_caps((uid), (gid), 1ULL << (cap)); __VA_ARGS__), 0)

static void make(const char *path, mode_t mode, uid_t uid, gid_t gid)
{
    int fd = OK(open(path, O_CREAT | O_EXCL | O_RDWR, 0600));
    OK(fchown(fd, uid, gid));
    OK(fchmod(fd, mode));
    OK(close(fd));
}

static void make_dir(const char *path, mode_t mode, uid_t uid, gid_t gid)
{
    OK(mkdir(path, 0700));
    OK(chown(path, uid, gid));
    OK(chmod(path, mode));
}

static mode_t mode_of(const char *path)
{
    struct stat st;
    OK(lstat(path, &st));
    return st.st_mode & 07777;
}

static long sysctl_of(const char *path)
{
    return atol(guest_read_file(path));
}

static void start(void)
{
    umask(022);
    OK(chmod(".", 0777));
}

/* ---- classes ---- */

static int try_open(const char *path, int flags)
{
    int fd = open(path, flags);
    if (fd < 0)
        return errno;
    close(fd);
    return 0;
}

/* A mount may refuse execution whatever the rights are. */
static bool can_run(const char *path)
{
    struct statvfs st;
    OK(statvfs(path, &st));
    return !(st.f_flag & ST_NOEXEC);
}

static void check_class(const char *path, unsigned bits)
{
    EQ(try_open(path, O_RDONLY), bits & 4 ? 0 : EACCES);
    EQ(try_open(path, O_WRONLY), bits & 2 ? 0 : EACCES);
    EQ(try_open(path, O_RDWR), (bits & 6) == 6 ? 0 : EACCES);
    EQ(try_open(path, O_RDONLY | O_TRUNC), (bits & 6) == 6 ? 0 : EACCES);
    EQ(try_open(path, O_PATH), 0);
    EQ(access(path, R_OK) ? errno : 0, bits & 4 ? 0 : EACCES);
    EQ(access(path, W_OK) ? errno : 0, bits & 2 ? 0 : EACCES);
    EQ(access(path, X_OK) ? errno : 0, (bits & 1) && can_run(path) ? 0 : EACCES);
    EQ(truncate(path, 0) ? errno : 0, bits & 2 ? 0 : EACCES);
}

BOTH(classes)
{
    start();
    make("f", 0, 1001, 1002);
    for (unsigned bits = 0; bits < 8; bits++) {
        OK(chmod("f", bits << 6 | (~bits & 7) << 3 | (~bits & 7)));
        AS(1001, 1002, check_class("f", bits));
        OK(chmod("f", (~bits & 7) << 6 | bits << 3 | (~bits & 7)));
        AS(1003, 1002, check_class("f", bits));
        AS2(1003, 1003, 1002, check_class("f", bits));
        OK(chmod("f", (~bits & 7) << 6 | (~bits & 7) << 3 | bits));
        AS(1003, 1003, check_class("f", bits));
    }
    /* Root is held up only by the want of any right to execute. */
    OK(chmod("f", 0));
    OK(access("f", R_OK | W_OK));
    ERR(EACCES, access("f", X_OK));
    OK(chmod("f", 001));
    EQ(access("f", X_OK) ? errno : 0, can_run("f") ? 0 : EACCES);
}

BOTH(directories)
{
    start();
    long hard = sysctl_of("/proc/sys/fs/protected_hardlinks");
    make_dir("d", 0755, 1001, 1001);
    make("d/f", 0644, 1001, 1001);
    AS(1002, 1002, ERR(EACCES, open("d/new", O_CREAT | O_WRONLY, 0600)); ERR(EACCES, mkdir("d/new", 0700));
       ERR(EACCES, symlink("x", "d/new")); EQ(link("d/f", "d/new") ? errno : 0, hard ? EPERM : EACCES); ERR(EACCES, mknod("d/new", S_IFIFO | 0600, 0));
       ERR(EACCES, unlink("d/f")); ERR(EACCES, rename("d/f", "d/g")); ERR(EACCES, rename("d/f", "g"));
       ERR(EACCES, rmdir("d/f")); ERR(EACCES, open("d", O_TMPFILE | O_RDWR, 0600)); ERR(EEXIST, mkdir("d/f", 0700));
       ERR(ENOENT, unlink("d/none")); ERR(EEXIST, open("d/f", O_CREAT | O_EXCL | O_RDWR, 0600)));
    /* Without the right to search not even what is there is told. */
    OK(chmod("d", 0744));
    AS(1002, 1002, ERR(EACCES, open("d/f", O_RDONLY)); ERR(EACCES, access("d/f", F_OK)); ERR(EACCES, access("d/none", F_OK));
       DIR *d = opendir("d"); CHECK(d); struct dirent *e; unsigned n = 0; while ((e = readdir(d))) n++; EQ(n, 3);
       ERR(EACCES, chdir("d")); ERR(EACCES, unlink("d/f")));
    OK(chmod("d", 0711));
    AS(1002, 1002, ERR(EACCES, open("d", O_RDONLY | O_DIRECTORY)); EQ(try_open("d/f", O_RDONLY), 0); OK(chdir("d"));
       EQ(try_open("f", O_RDONLY), 0));
    /* Writing without searching makes nothing. */
    OK(chmod("d", 0722));
    AS(1002, 1002, ERR(EACCES, open("d/new", O_CREAT | O_WRONLY, 0600)); ERR(EACCES, unlink("d/f")));
    OK(chmod("d", 0733));
    AS(1002, 1002, OK(mkdir("d/sub", 0700)); OK(rename("d/f", "d/g")); OK(unlink("d/g")); OK(rmdir("d/sub")));
}

BOTH(sticky)
{
    start();
    make_dir("d", 01777, 1001, 1001);
    for (unsigned who = 1001; who <= 1003; who++) {
        make("d/f", 0666, 1002, 1002);
        make_dir("d/s", 0777, 1002, 1002);
        make("g", 0666, 1002, 1002);
        bool may = who != 1003; /* owner of the directory, owner of the file */
        AS(who, who, EQ(rename("d/f", "d/h") ? errno : 0, may ? 0 : EPERM); if (may) OK(rename("d/h", "d/f"));
           EQ(rename("d/s", "d/t") ? errno : 0, may ? 0 : EPERM); if (may) OK(rename("d/t", "d/s"));
           /* what is replaced counts as removed */
           EQ(rename("g", "d/f") ? errno : 0, may ? 0 : EPERM); EQ(unlink("d/f") ? errno : 0, may ? 0 : EPERM);
           EQ(rmdir("d/s") ? errno : 0, may ? 0 : EPERM));
        unlink("g");
        unlink("d/f");
        rmdir("d/s");
    }
    make("d/f", 0666, 1002, 1002);
    AS_CAP(1003, 1003, CAP_FOWNER, OK(unlink("d/f")));
    make("d/f", 0666, 1002, 1002);
    make("d/g", 0666, 1003, 1003);
    AS(1003, 1003, ERR(EPERM, renameat2(AT_FDCWD, "d/f", AT_FDCWD, "d/g", RENAME_EXCHANGE)));
}

BOTH(directory_moves)
{
    start();
    make_dir("a", 0777, 1001, 1001);
    make_dir("b", 0777, 1001, 1001);
    make_dir("a/d", 0555, 1002, 1002);
    make_dir("a/e", 0755, 1003, 1003);
    /* A directory's ".." changes with its parent, for which its own right to write is needed. */
    AS(1002, 1002, ERR(EACCES, rename("a/d", "b/d")); OK(rename("a/d", "a/d2")); OK(rename("a/d2", "a/d")));
    AS(1002, 1002, ERR(EACCES, rename("a/e", "b/e")));
    AS(1003, 1003, OK(rename("a/e", "b/e")));
    ERR(EINVAL, rename("a", "a/d/x"));
    ERR(EINVAL, rmdir("a/."));
    ERR(ENOTEMPTY, rmdir("a/d/.."));
    ERR(ENOTEMPTY, rmdir("a"));
    ERR(EBUSY, rename("a/.", "x"));
    ERR(EBUSY, rename("b", "a/.."));
    make("f", 0644, 0, 0);
    ERR(ENOTDIR, rmdir("f"));
    ERR(EISDIR, unlink("a"));
    ERR(ENOTDIR, rename("a", "f"));
    ERR(EISDIR, rename("f", "a"));
    ERR(ENOTDIR, rename("f/", "g"));
    ERR(ENOTDIR, unlink("f/"));
    ERR(ENOTEMPTY, rename("b", "a"));
}

/* ---- owners and modes ---- */

BOTH(setgid_directory)
{
    start();
    make_dir("d", 02777, 1001, 1005);
    AS2(1002, 1002, 1005, int fd = OK(open("d/f", O_CREAT | O_WRONLY, 02775)); close(fd); OK(mkdir("d/s", 0777));
        OK(mknod("d/p", S_IFIFO | 0666, 0)); OK(symlink("x", "d/l")));
    struct stat st;
    OK(stat("d/f", &st));
    EQ(st.st_gid, 1005);
    EQ(st.st_uid, 1002);
    EQ(st.st_mode & 07777, 02755);
    OK(stat("d/s", &st));
    EQ(st.st_gid, 1005);
    EQ(st.st_mode & 07777, 02755);
    OK(stat("d/p", &st));
    EQ(st.st_gid, 1005);
    OK(lstat("d/l", &st));
    EQ(st.st_gid, 1005);
    /* Whoever is not in the group can't make programs that run with it. */
    AS(1003, 1003, close(OK(open("d/g", O_CREAT | O_WRONLY, 02775))); close(OK(open("d/h", O_CREAT | O_WRONLY, 02664))));
    EQ(mode_of("d/g"), 0755);
    EQ(mode_of("d/h"), 02644);
    AS_CAP(1003, 1003, CAP_FSETID, close(OK(open("d/i", O_CREAT | O_WRONLY, 02775))));
    EQ(mode_of("d/i"), 02755);
}

BOTH(chmod_rules)
{
    start();
    make("f", 0644, 1001, 1005);
    AS(1002, 1002, ERR(EPERM, chmod("f", 0600)); int fd = OK(open("f", O_RDONLY)); ERR(EPERM, fchmod(fd, 0600)));
    AS_CAP(1002, 1002, CAP_FOWNER, OK(chmod("f", 0600)));
    EQ(mode_of("f"), 0600);
    /* An owner outside the file's group loses the set-group-id bit. */
    AS(1001, 1001, OK(chmod("f", 06755)));
    EQ(mode_of("f"), 04755);
    AS2(1001, 1001, 1005, OK(chmod("f", 06755)));
    EQ(mode_of("f"), 06755);
    AS_CAP(1001, 1001, CAP_FSETID, OK(chmod("f", 02711)));
    EQ(mode_of("f"), 02711);
    AS(1001, 1001, OK(chmod("f", 01644)));
    EQ(mode_of("f"), 01644);
    OK(symlink("f", "l"));
    OK(chmod("l", 0640));
    EQ(mode_of("f"), 0640);
    ERR(EOPNOTSUPP, syscall(452 /* fchmodat2 */, AT_FDCWD, "l", 0600, AT_SYMLINK_NOFOLLOW));
    make_dir("d", 0755, 1001, 1005);
    AS(1001, 1001, OK(chmod("d", 02755)));
    EQ(mode_of("d"), 0755);
}

BOTH(chown_rules)
{
    start();
    make("f", 06755, 1001, 1001);
    AS(1002, 1002, ERR(EPERM, chown("f", 1002, -1)); ERR(EPERM, chown("f", -1, 1002)); ERR(EPERM, lchown("f", 1001, 1001)));
    AS2(1001, 1001, 1005, ERR(EPERM, chown("f", 1002, -1)); ERR(EPERM, chown("f", -1, 1006)); OK(chown("f", -1, 1005)));
    EQ(mode_of("f"), 0755);
    struct stat st;
    OK(stat("f", &st));
    EQ(st.st_gid, 1005);
    /* Root's change drops the bits as well; a set-group-id bit without the right to execute stays. */
    OK(chmod("f", 06745));
    OK(chown("f", 1001, 1001));
    EQ(mode_of("f"), 02745);
    OK(chmod("f", 06755));
    OK(chown("f", -1, -1));
    EQ(mode_of("f"), 0755);
    OK(chmod("f", 06755));
    AS(1001, 1001, OK(chown("f", 1001, 1001)));
    EQ(mode_of("f"), 0755);
    AS_CAP(1003, 1003, CAP_CHOWN, OK(chown("f", 1004, 1004)));
    OK(stat("f", &st));
    EQ(st.st_uid, 1004);
    OK(symlink("f", "l"));
    OK(lchown("l", 1007, 1007));
    OK(lstat("l", &st));
    EQ(st.st_uid, 1007);
    make_dir("d", 06755, 1001, 1001);
    OK(chown("d", 1002, 1002));
    EQ(mode_of("d"), 06755);
}

BOTH(times_rules)
{
    start();
    make("f", 0666, 1001, 1001);
    make("g", 0644, 1001, 1001);
    struct timespec now[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_NOW}};
    struct timespec omit[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_OMIT}};
    struct timespec half[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_OMIT}};
    struct timespec set[2] = {{.tv_sec = 5}, {.tv_sec = 6}};
    AS(1002, 1002, OK(utimensat(AT_FDCWD, "f", NULL, 0)); OK(utimensat(AT_FDCWD, "f", now, 0));
       OK(utimensat(AT_FDCWD, "f", omit, 0)); ERR(EPERM, utimensat(AT_FDCWD, "f", half, 0));
       ERR(EPERM, utimensat(AT_FDCWD, "f", set, 0)); ERR(EACCES, utimensat(AT_FDCWD, "g", NULL, 0));
       ERR(EACCES, utimensat(AT_FDCWD, "g", now, 0)); OK(utimensat(AT_FDCWD, "g", omit, 0)));
    AS(1001, 1001, OK(utimensat(AT_FDCWD, "f", set, 0)));
    struct stat st;
    OK(stat("f", &st));
    EQ(st.st_atime, 5);
    EQ(st.st_mtime, 6);
    AS_CAP(1002, 1002, CAP_FOWNER, OK(utimensat(AT_FDCWD, "g", set, 0)));
    AS_CAP(1002, 1002, CAP_DAC_OVERRIDE, OK(utimensat(AT_FDCWD, "g", NULL, 0)); ERR(EPERM, utimensat(AT_FDCWD, "g", set, 0)));
}

BOTH(privileges_dropped)
{
    start();
    /* A write or a truncation by others takes the set-id bits away. */
    make("f", 06777, 1001, 1001);
    AS(1002, 1002, int fd = OK(open("f", O_WRONLY)); EQ(write(fd, "x", 1), 1));
    EQ(mode_of("f"), 0777);
    OK(chmod("f", 06777));
    AS(1002, 1002, OK(truncate("f", 1)));
    EQ(mode_of("f"), 0777);
    OK(chmod("f", 06777));
    AS(1002, 1002, close(OK(open("f", O_WRONLY | O_TRUNC))));
    EQ(mode_of("f"), 0777);
    OK(chmod("f", 06767));
    AS(1001, 1001, int fd = OK(open("f", O_WRONLY)); EQ(write(fd, "x", 1), 1));
    EQ(mode_of("f") & 04000, 0);
    OK(chmod("f", 06777));
    AS(1002, 1002, int fd = OK(open("f", O_RDWR)); OK(fallocate(fd, 0, 0, 100)));
    EQ(mode_of("f"), 0777);
    OK(chmod("f", 06777));
    int fd = OK(open("f", O_WRONLY)); /* with CAP_FSETID they stay */
    EQ(write(fd, "x", 1), 1);
    EQ(mode_of("f"), 06777);
    OK(close(fd));
}

BOTH(capabilities)
{
    start();
    make("f", 0000, 1001, 1001);
    make_dir("d", 0000, 1001, 1001);
    make("d/f", 0666, 1001, 1001);
    AS_CAP(1002, 1002, CAP_DAC_READ_SEARCH, EQ(try_open("f", O_RDONLY), 0); EQ(try_open("f", O_WRONLY), EACCES);
           EQ(try_open("d/f", O_RDWR), 0); EQ(try_open("d", O_RDONLY | O_DIRECTORY), 0); ERR(EACCES, unlink("d/f"));
           OK(chdir("d")));
    AS_CAP(1002, 1002, CAP_DAC_OVERRIDE, EQ(try_open("f", O_RDWR), 0); EQ(try_open("d/f", O_RDWR), 0);
           ERR(EPERM, chmod("f", 0777)); ERR(EPERM, chown("f", 1002, 1002)); OK(mkdir("d/s", 0700)); OK(rmdir("d/s"));
           OK(chdir("d")));
    AS_CAP(1002, 1002, CAP_FOWNER, EQ(try_open("f", O_RDONLY), EACCES); OK(chmod("f", 0444)); EQ(try_open("f", O_RDONLY), 0);
           int fd = OK(open("f", O_RDONLY | O_NOATIME)); close(fd));
    AS(1002, 1002, ERR(EPERM, open("f", O_RDONLY | O_NOATIME)); ERR(EPERM, mknod("n", S_IFCHR | 0600, makedev(1, 3)));
       OK(mknod("r", S_IFREG | 0600, 0)); OK(mknod("p", S_IFIFO | 0600, 0)); OK(mknod("s", S_IFSOCK | 0600, 0));
       ERR(EPERM, mknod("b", S_IFBLK | 0600, makedev(7, 0))); ERR(EPERM, chroot(".")));
}

/* ---- what sticky directories protect ---- */

BOTH(protections)
{
    start();
    long links = sysctl_of("/proc/sys/fs/protected_symlinks"), hard = sysctl_of("/proc/sys/fs/protected_hardlinks");
    long fifos = sysctl_of("/proc/sys/fs/protected_fifos"), regular = sysctl_of("/proc/sys/fs/protected_regular");
    make_dir("t", 01777, 0, 0);
    make("target", 0666, 0, 0);
    OK(symlink("../target", "t/l"));
    OK(lchown("t/l", 1001, 1001));
    /* A link in such a directory is followed by its owner, and where it belongs to the directory's. */
    AS(1001, 1001, EQ(try_open("t/l", O_RDONLY), 0));
    AS(1002, 1002, EQ(try_open("t/l", O_RDONLY), links ? EACCES : 0); struct stat st; EQ(stat("t/l", &st) ? errno : 0, links ? EACCES : 0);
       OK(lstat("t/l", &st)));
    EQ(try_open("t/l", O_RDONLY), links ? EACCES : 0);
    OK(lchown("t/l", 0, 0));
    AS(1002, 1002, EQ(try_open("t/l", O_RDONLY), 0));
    make("own", 0600, 1001, 1001);
    make("open", 0666, 1001, 1001);
    make("run", 04777, 1001, 1001);
    make("group", 02777, 1001, 1001);
    make("lock", 02666, 1001, 1001);
    OK(mknod("fifo", S_IFIFO | 0666, 0));
    AS(1002, 1002, EQ(link("own", "x") ? errno : 0, hard ? EPERM : 0); OK(link("open", "y"));
       EQ(link("run", "z") ? errno : 0, hard ? EPERM : 0); EQ(link("group", "z") ? errno : 0, hard ? EPERM : 0); OK(link("lock", "w"));
       EQ(link("fifo", "v") ? errno : 0, hard ? EPERM : 0));
    AS(1001, 1001, OK(link("own", "o2")));
    AS_CAP(1002, 1002, CAP_FOWNER, OK(link("own", "o3")));
    make("t/f", 0666, 1001, 1001);
    OK(mknod("t/p", S_IFIFO, 0));
    OK(chown("t/p", 1001, 1001));
    OK(chmod("t/p", 0666));
    AS(1002, 1002, EQ(try_open("t/f", O_WRONLY), 0); EQ(try_open("t/f", O_WRONLY | O_CREAT), regular ? EACCES : 0);
       EQ(try_open("t/p", O_RDWR | O_CREAT), fifos ? EACCES : 0); EQ(try_open("t/p", O_RDWR), 0));
    AS(1001, 1001, EQ(try_open("t/f", O_WRONLY | O_CREAT), 0));
    EQ(try_open("t/f", O_WRONLY | O_CREAT), regular ? EACCES : 0);
}

/* ---- limits of names and paths ---- */

BOTH(limits)
{
    start();
    char name[300];
    memset(name, 'n', sizeof(name));
    name[255] = '\0';
    close(OK(open(name, O_CREAT | O_WRONLY, 0600)));
    OK(unlink(name));
    OK(mkdir(name, 0700));
    OK(rmdir(name));
    name[255] = 'n';
    name[256] = '\0';
    ERR(ENAMETOOLONG, open(name, O_CREAT | O_WRONLY, 0600));
    ERR(ENAMETOOLONG, mkdir(name, 0700));
    ERR(ENAMETOOLONG, symlink("x", name));
    ERR(ENAMETOOLONG, access(name, F_OK));
    make("x", 0600, 0, 0);
    ERR(ENAMETOOLONG, rename("x", name));
    ERR(ENOENT, rename("none", name));
    static char path[PATH_MAX + 10];
    OK(mkdir("d", 0700));
    for (size_t i = 0; i < PATH_MAX; i++)
        path[i] = i % 2 ? '/' : '.';
    path[PATH_MAX - 2] = 'd';
    path[PATH_MAX - 1] = '\0'; /* 4095 bytes */
    OK(access(path, F_OK));
    memcpy(path, "./", 2);
    path[PATH_MAX - 2] = '/';
    path[PATH_MAX - 1] = 'd';
    path[PATH_MAX] = '\0';
    ERR(ENAMETOOLONG, access(path, F_OK));
    ERR(ENAMETOOLONG, open(path, O_RDONLY));
    /* A link's text may be as long as a path. */
    memset(path, 'l', sizeof(path));
    path[PATH_MAX - 1] = '\0';
    int r = symlink(path, "long");
    CHECK(r == 0 || errno == ENAMETOOLONG); /* some file systems stop one byte short of it */
    path[PATH_MAX - 1] = 'l';
    path[PATH_MAX] = '\0';
    ERR(ENAMETOOLONG, symlink(path, "longer"));
    /* 40 links in a row, and not one more. */
    make("l0", 0600, 0, 0);
    for (unsigned i = 1; i <= 41; i++) {
        char to[8], from[8];
        snprintf(to, sizeof(to), "l%u", i - 1);
        snprintf(from, sizeof(from), "l%u", i);
        OK(symlink(to, from));
    }
    OK(access("l40", F_OK));
    ERR(ELOOP, access("l41", F_OK));
    ERR(ELOOP, open("l41", O_RDONLY));
    ERR(ELOOP, open("l1", O_RDONLY | O_NOFOLLOW));
    OK(symlink("loop", "loop"));
    ERR(ELOOP, open("loop", O_RDONLY));
    ERR(ELOOP, open("loop/x", O_CREAT | O_RDWR, 0600));
}

BOTH(busy_and_read_only)
{
    start();
    ERR(EXDEV, link("/test", "/dev/shm/x"));
    make("f", 0600, 0, 0);
    OK(mkdir("m", 0700));
    OK(mount("none", "m", "tmpfs", 0, NULL));
    ERR(EXDEV, rename("f", "m/f"));
    ERR(EXDEV, link("f", "m/f"));
    ERR(EBUSY, rmdir("m"));
    ERR(EBUSY, rename("m", "n"));
    make("m/f", 0666, 0, 0);
    OK(symlink("f", "m/l"));
    OK(mount("none", "m", NULL, MS_REMOUNT | MS_RDONLY, NULL));
    ERR(EROFS, open("m/f", O_WRONLY));
    ERR(EROFS, open("m/g", O_WRONLY | O_CREAT, 0600));
    close(OK(open("m/f", O_RDONLY | O_CREAT, 0600)));
    ERR(EEXIST, mkdir("m/f", 0700));
    ERR(EROFS, mkdir("m/d", 0700));
    ERR(EROFS, unlink("m/f"));
    ERR(EROFS, unlink("m/g"));
    ERR(EROFS, rmdir("m/none"));
    ERR(EROFS, rename("m/f", "m/g"));
    ERR(EROFS, symlink("x", "m/x"));
    ERR(EROFS, link("m/f", "m/g"));
    ERR(EROFS, chmod("m/f", 0600));
    ERR(EROFS, chown("m/f", 1, 1));
    ERR(EROFS, lchown("m/l", 1, 1));
    ERR(EROFS, utimensat(AT_FDCWD, "m/f", NULL, 0));
    ERR(EROFS, truncate("m/f", 0));
    ERR(EROFS, setxattr("m/f", "user.x", "", 0, 0));
    ERR(EROFS, access("m/f", W_OK));
    AS(1002, 1002, ERR(EROFS, access("m/f", W_OK)));
    OK(umount("m"));
    /* A bind mount is made read-only for itself. */
    OK(mkdir("b", 0700));
    OK(mount("b", "m", NULL, MS_BIND, NULL));
    OK(mount(NULL, "m", NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL));
    ERR(EROFS, mkdir("m/d", 0700));
    OK(mkdir("b/d", 0700));
    ERR(EROFS, rmdir("m/d"));
    OK(umount("m"));
    if (!can_run("."))
        return;
    /* A running program is not written, and what is being written is not run. */
    int fd = OK(open("/proc/self/exe", O_RDONLY)), out = OK(open("prog", O_CREAT | O_WRONLY, 0755));
    char buf[65536];
    ssize_t n;
    while ((n = OK(read(fd, buf, sizeof(buf)))) > 0)
        EQ(write(out, buf, n), n);
    ERR(ETXTBSY, execl("prog", "prog", NULL));
    OK(close(out));
    int p[2];
    OK(pipe(p));
    pid_t pid = OK(fork());
    if (!pid) {
        dup2(p[0], 0);
        close(p[1]);
        /* The parent's try to write may come first. */
        do {
            execl("prog", "prog", "@wait", NULL);
        } while (errno == ETXTBSY);
        _exit(99);
    }
    OK(close(p[0]));
    int err = 0;
    for (unsigned i = 0; i < 500 && err != ETXTBSY; i++) {
        int f = open("prog", O_WRONLY | O_APPEND);
        err = f < 0 ? errno : 0;
        close(f);
        sleep_ms(10);
    }
    EQ(err, ETXTBSY);
    ERR(ETXTBSY, truncate("prog", 0));
    OK(chmod("prog", 0700));
    OK(rename("prog", "prog2"));
    OK(unlink("prog2"));
    OK(close(p[1]));
    int status;
    EQ(OK(waitpid(pid, &status, 0)), pid);
    EXITED(status, 7);
}

MODE(wait)
{
    char c;
    return read(0, &c, 1) == 0 ? 7 : 8;
}

BOTH(xattr_rules)
{
    start();
    make("f", 0644, 1001, 1001);
    make("g", 0666, 1001, 1001);
    make_dir("d", 01777, 1001, 1001);
    OK(setxattr("f", "user.a", "v", 1, 0));
    AS(1002, 1002, char b[8]; EQ(getxattr("f", "user.a", b, sizeof(b)), 1); ERR(EACCES, setxattr("f", "user.a", "w", 1, 0));
       ERR(EACCES, removexattr("f", "user.a")); OK(setxattr("g", "user.a", "w", 1, 0)); ERR(EPERM, setxattr("d", "user.a", "w", 1, 0));
       ERR(EPERM, setxattr("g", "trusted.a", "w", 1, 0)); ERR(ENODATA, getxattr("g", "trusted.a", b, sizeof(b)));
       ERR(EOPNOTSUPP, setxattr("g", "nonsense.a", "w", 1, 0)));
    OK(chmod("f", 0600));
    AS(1002, 1002, char b[8]; ERR(EACCES, getxattr("f", "user.a", b, sizeof(b))); EQ(listxattr("f", b, 0), 7));
    OK(symlink("f", "l"));
    ERR(EPERM, lsetxattr("l", "user.a", "v", 1, 0));
}
