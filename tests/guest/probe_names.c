/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of calls on names: links, directories, restricted look-ups. */
#include "tests/guest/probe.h"

#include <linux/openat2.h>
#include <sys/mount.h>
#include <sys/stat.h>

static char cwd[4096];
static void st(const char *p)
{
    struct stat s;
    if (lstat(p, &s)) {
        printf("lstat %s -%s\n", p, strerrorname_np(errno));
        return;
    }
    printf("lstat %s mode %o nlink %ld uid %d gid %d size %ld rdev %lx\n", p, s.st_mode,
           S_ISDIR(s.st_mode) ? 0L : (long)s.st_nlink, s.st_uid, s.st_gid,
           S_ISDIR(s.st_mode) ? 0L : (long)s.st_size, (long)s.st_rdev);
}
static int o2(int d, const char *p, unsigned long f, unsigned long m, unsigned long r, size_t sz)
{
    struct {
        unsigned long f, m, r, x;
    } h = {f, m, r, 0};
    int x = syscall(437, d, p, &h, sz);
    if (x >= 0) {
        close(x);
        return 0;
    }
    return x;
}
static void probe_dirs(void)
{
    P(mkdir("d", 0777));
    P(mkdir("d", 0777));
    P(mkdir("d/", 0777));
    P(mkdir("dang", 0777));
    P(mkdir("d/n/", 0777));
    P(mkdir(".", 0777));
    P(mkdir("", 0777));
    P(mkdir("f/x", 0777));
    P(mkdir("d2", 07777));
    st("d2");
    P(rmdir("d"));
    P(rmdir("d/n/."));
    P(rmdir("d/n/.."));
    P(rmdir("f"));
    P(rmdir("nope"));
    P(rmdir("l"));
    P(rmdir("/"));
    P(unlink("d"));
    P(unlink("d/"));
    P(unlink("f/"));
    P(unlink("l/"));
    P(unlink("nope/"));
    P(unlink("."));
    P(unlinkat(AT_FDCWD, "d/n", AT_REMOVEDIR));
    P(unlinkat(AT_FDCWD, "d", 0x1));
    P(unlinkat(99, "d", 0));
    {
        int fd = open("f", O_RDONLY);
        P(unlinkat(fd, "d", 0));
        P(openat(fd, "x", 0));
        P(openat(fd, "/dev/null", 0) >= 0);
        close(fd);
    }
    P(rename("f", "f"));
    P(rename("f", "d"));
    P(rename("d", "f"));
    P(rename("d", "d/x"));
    P(rename("d/.", "x"));
    P(rename("f/", "x"));
    P(rename("f", "x/"));
    P(rename("d", "x/"));
    P(rename("x", "d/"));
    P(rename("nope", "x"));
    P(rename("", "x"));
    P(rename("f", ""));
    P(rename("/", "x"));
    P(rename("f", "/"));
    P(rename("f", "."));
    P(rename("f", ".."));
    P(renameat2(AT_FDCWD, "f", AT_FDCWD, "l", RENAME_NOREPLACE));
    P(renameat2(AT_FDCWD, "f", AT_FDCWD, "l", 3));
    P(renameat2(AT_FDCWD, "f", AT_FDCWD, "l", 99));
    P(renameat2(AT_FDCWD, "f", AT_FDCWD, "d", RENAME_EXCHANGE));
    st("f");
    st("d");
    P(renameat2(AT_FDCWD, "f", AT_FDCWD, "d", RENAME_EXCHANGE));
    P(renameat2(AT_FDCWD, "f", AT_FDCWD, "nope", RENAME_EXCHANGE));
    P(mkdir("d/sub", 0777));
    P(rename("d2", "d"));
    P(rename("d", "d2"));
    P(rename("d2", "d"));
    P(rename("d/sub", "d"));
    P(rename("loop", "loop2"));
    st("loop2");
    P(unlink("loop2"));
}

static void probe_links(void)
{
    P(link("f", "g"));
    st("g");
    P(link("f", "g"));
    P(link("d", "g2"));
    P(link("nope", "g2"));
    P(link("l", "l2"));
    st("l2");
    P(linkat(AT_FDCWD, "l", AT_FDCWD, "l3", AT_SYMLINK_FOLLOW));
    st("l3");
    P(linkat(AT_FDCWD, "l", AT_FDCWD, "l4", 1));
    P(link("f", "new/"));
    P(link("f/", "new"));
    P(link("f", "d/"));
    P(unlink("g"));
    P(readlink("l", cwd, 100));
    P(readlink("f", cwd, 100));
    P(readlink("l", cwd, 0));
    P(readlink("l", cwd, -1));
    P(readlink("nope", cwd, 10));
    P(readlink("", cwd, 10));
    P(readlink("l", (char *)8, 10));
    {
        int fd = open("l", O_PATH | O_NOFOLLOW);
        P(readlinkat(fd, "", cwd, 10));
        close(fd);
        fd = open("f", O_PATH);
        P(readlinkat(fd, "", cwd, 10));
        close(fd);
    }
    P(mknod("ff", S_IFIFO | 0644, 0));
    st("ff");
    P(mknod("so", S_IFSOCK | 0644, 0));
    st("so");
    P(mknod("reg", 0644, 0));
    st("reg");
    P(mknod("dd", S_IFDIR | 0644, 0));
    P(mknod("bad", S_IFLNK | 0644, 0));
    P(mknod("ff", S_IFIFO | 0644, 0));
    PF(open("so", O_RDONLY));
    PF(open("so", O_PATH));
    PF(open("ff", O_WRONLY | O_NONBLOCK));
    PF(open("ff", O_RDONLY | O_NONBLOCK));
    PF(open("ff", O_RDWR));
    {
        int fd = open("ff", O_RDWR | O_NONBLOCK);
        P(lseek(fd, 0, 0));
        P(pread(fd, cwd, 1, 0));
        P(read(fd, cwd, 1));
        P(write(fd, "abc", 3));
        P(ioctl(fd, FIONREAD, cwd));
        P(*(int *)cwd);
        P(ftruncate(fd, 0));
        P(fsync(fd));
        P(fallocate(fd, 0, 0, 1));
        P(fcntl(fd, F_GETPIPE_SZ));
        P(fcntl(fd, F_GETFL));
        close(fd);
    }
    P(truncate("ff", 0));
}

static void probe_cwd(void)
{
    {
        mkdir("deep", 0777);
        chdir("deep");
        P(getcwd(cwd, 4096) != 0);
        P(syscall(79, cwd, 1));
        P(syscall(79, 8, 4096));
        P(rmdir("../deep"));
        P(syscall(79, cwd, 4096));
        PF(open("x", O_CREAT, 0600));
        P(mkdir("x", 0700));
        PF(open(".", O_RDONLY));
        PF(open("..", O_RDONLY));
        struct stat s;
        P(stat(".", &s));
        printf("nlink %ld\n", (long)s.st_nlink);
        {
            int fd = open(".", O_RDONLY);
            P(syscall(217, fd, cwd, 1000));
            close(fd);
        }
        P(rmdir("."));
        P(chdir(".."));
        P(chdir("f"));
        P(chdir("nope"));
        P(chdir("l"));
        P(fchdir(99));
    }
}

static void probe_openat2(void)
{
    mkdir("r", 0777);
    mkdir("r/s", 0777);
    close(open("r/s/f", O_CREAT, 0600));
    symlink("/s/f", "r/abs");
    symlink("../r", "r/up");
    symlink("s", "r/in");
    {
        int d = open("r", O_PATH | O_DIRECTORY);
        P(o2(d, "s/f", 0, 0, 0, 24));
        P(o2(d, "s/f", 0, 0, 0, 16));
        P(o2(d, "s/f", 0, 0, 0, 32));
        P(o2(d, "s/f", 0, 0600, 0, 24));
        P(o2(d, "s/f", O_CREAT, 010000, 0, 24));
        P(o2(d, "s/f", 0x40000000, 0, 0, 24));
        P(o2(d, "s/f", 0, 0, 0x100, 24));
        P(o2(d, "..", O_PATH, 0, RESOLVE_BENEATH, 24));
        P(o2(d, "s/../../r", O_PATH, 0, RESOLVE_BENEATH, 24));
        P(o2(d, "/", O_PATH, 0, RESOLVE_BENEATH, 24));
        P(o2(d, "abs", 0, 0, RESOLVE_BENEATH, 24));
        P(o2(d, "abs", 0, 0, RESOLVE_IN_ROOT, 24));
        P(o2(d, "up", O_PATH, 0, RESOLVE_BENEATH, 24));
        P(o2(d, "up", O_PATH, 0, RESOLVE_IN_ROOT, 24));
        P(o2(d, "in/f", 0, 0, RESOLVE_NO_SYMLINKS, 24));
        P(o2(d, "in", 0, 0, RESOLVE_NO_SYMLINKS, 24));
        P(o2(d, "in", O_PATH | O_NOFOLLOW, 0, RESOLVE_NO_SYMLINKS, 24));
        P(o2(d, "in/f", 0, 0, RESOLVE_BENEATH, 24));
        P(o2(d, "/s/f", 0, 0, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS, 24));
        P(o2(d, "/", O_PATH, 0, 0x12, 24));
        P(o2(d, "../../s/f", 0, 0, RESOLVE_IN_ROOT, 24));
        P(o2(d, "x", O_CREAT | O_RDWR, 0600, RESOLVE_BENEATH, 24));
        P(o2(d, "s/f", 0, 0, RESOLVE_BENEATH | RESOLVE_IN_ROOT, 24));
        P(o2(AT_FDCWD, "/proc/self/exe", 0, 0, RESOLVE_NO_MAGICLINKS, 24));
        P(o2(AT_FDCWD, "/proc/self/exe", 0, 0, RESOLVE_NO_XDEV, 24));
        P(o2(d, "s/f", O_TMPFILE | O_RDWR, 0600, 0, 24));
        P(o2(d, "s", O_TMPFILE | O_RDWR, 0600, 0, 24));
        P(o2(d, "s/f", 0, 0, RESOLVE_CACHED, 24));
        P(o2(d, "s/f", O_PATH | O_RDWR, 0, 0, 24));
        close(d);
    }
}

int main(void)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    umask(022);
    mkdir("w", 0777);
    if (chdir("w") < 0)
        return 1;
    close(open("f", O_CREAT | O_RDWR, 0644));
    ftruncate(open("f", O_RDWR), 8192);
    symlink("f", "l");
    symlink("loop", "loop");
    symlink("none", "dang");
    PROBE(probe_dirs);
    PROBE(probe_links);
    PROBE(probe_cwd);
    PROBE(probe_openat2);
    return 0;
}
