/* SPDX-License-Identifier: Apache-2.0 */
/* The overlay file system, mounted by a guest over directories of a tmpfs. */
#include "tests/guest/guest.h"

#include <dirent.h>
#include <sched.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

/* A tmpfs with the directories l1, l2, l3, u, w and m, which becomes the working directory. */
static void overlay_dirs(void)
{
    static const char *const names[] = {"l1", "l2", "l3", "u", "w", "m"};
    guest_tmpdir();
    OK(mkdir("t", 0755));
    OK(mount("none", "t", "tmpfs", 0, NULL));
    OK(chdir("t"));
    for (unsigned i = 0; i < 6; i++)
        OK(mkdir(names[i], 0755));
}

static void overlay_mount(const char *lowers)
{
    char options[512];
    snprintf(options, sizeof(options), "lowerdir=%s,upperdir=u,workdir=w", lowers);
    OK(mount("overlay", "m", "overlay", 0, options));
}

static void overlay_reads(const char *path, const char *text)
{
    char buf[256] = "";
    int fd = OK(open(path, O_RDONLY));
    ssize_t n = OK(read(fd, buf, sizeof(buf) - 1));
    EQ(n, (ssize_t)strlen(text));
    CHECK(!strcmp(buf, text));
    OK(close(fd));
}

static ino_t overlay_ino(const char *path)
{
    struct stat st;
    OK(lstat(path, &st));
    return st.st_ino;
}

static bool overlay_is_whiteout(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == 0;
}

static bool overlay_is_opaque(const char *path)
{
    char value[8];
    return getxattr(path, "trusted.overlay.opaque", value, sizeof(value)) == 1 && value[0] == 'y';
}

/* Names in path, each followed by a blank, in alphabetical order. */
static void overlay_lists(const char *path, const char *expected)
{
    struct dirent **list;
    char all[1024] = "";
    int n = OK(scandir(path, &list, NULL, alphasort));
    for (int i = 0; i < n; i++) {
        if (list[i]->d_name[0] != '.') {
            char name[512];
            snprintf(name, sizeof(name), "%s/%s", path, list[i]->d_name);
            EQ(overlay_ino(name), list[i]->d_ino);
            strcat(strcat(all, list[i]->d_name), " ");
        }
        free(list[i]);
    }
    free(list);
    if (strcmp(all, expected) != 0)
        printf("%s: \"%s\"\n", path, all);
    CHECK(!strcmp(all, expected));
}

TEST(layers_are_merged)
{
    struct statfs sf;
    overlay_dirs();
    OK(mkdir("l1/d", 0750));
    OK(mkdir("l2/d", 0700));
    guest_write_file("l1/d/one", "1");
    guest_write_file("l2/d/two", "2");
    guest_write_file("l2/d/one", "hidden");
    guest_write_file("l2/f", "f of l2");
    guest_write_file("l3/f", "f of l3");
    guest_write_file("l3/gone", "x");
    OK(mknod("l1/gone", S_IFCHR, makedev(0, 0)));
    OK(mkdir("l1/o", 0755));
    OK(setxattr("l1/o", "trusted.overlay.opaque", "y", 1, 0));
    guest_write_file("l1/o/new", "");
    OK(mkdir("l2/o", 0755));
    guest_write_file("l2/o/old", "");
    overlay_mount("l1:l2:l3");
    overlay_lists("m", "d f o ");
    overlay_lists("m/d", "one two ");
    overlay_lists("m/o", "new ");
    overlay_reads("m/d/one", "1");
    overlay_reads("m/d/two", "2");
    overlay_reads("m/f", "f of l2");
    ERR(ENOENT, open("m/gone", O_RDONLY));
    ERR(ENOENT, open("m/o/old", O_RDONLY));
    ERR(ENODATA, getxattr("m/o", "trusted.overlay.opaque", NULL, 0));
    struct stat st;
    OK(stat("m/d", &st));
    EQ(st.st_mode & 07777, 0750);
    EQ(st.st_nlink, 1);
    OK(statfs("m", &sf));
    EQ(sf.f_type, 0x794c7630);
    OK(umount("m"));
}

TEST(files_are_copied_up)
{
    struct stat before, after;
    char value[16];
    overlay_dirs();
    OK(mkdir("l1/a", 0755));
    OK(mkdir("l1/a/b", 0711));
    OK(chown("l1/a/b", 7, 8));
    guest_write_file("l1/a/b/f", "some text");
    OK(chmod("l1/a/b/f", 04751));
    OK(chown("l1/a/b/f", 1000, 1001));
    OK(chmod("l1/a/b/f", 04751));
    OK(setxattr("l1/a/b/f", "trusted.t", "v", 1, 0));
    const struct timespec times[2] = {{1000, 5}, {2000, 6}};
    OK(utimensat(AT_FDCWD, "l1/a/b/f", times, 0));
    OK(utimensat(AT_FDCWD, "l1/a/b", times, 0));
    overlay_mount("l1");
    int old = OK(open("m/a/b/f", O_RDONLY));
    OK(fstat(old, &before));
    ERR(ENOENT, lstat("u/a", &after));
    OK(chmod("m/a/b/f", 04755));
    OK(lstat("u/a/b/f", &after));
    EQ(after.st_mode, S_IFREG | 04755);
    EQ(after.st_uid, 1000);
    EQ(after.st_gid, 1001);
    EQ(after.st_mtim.tv_sec, 2000);
    EQ(getxattr("u/a/b/f", "trusted.t", value, sizeof(value)), 1);
    OK(lstat("u/a/b", &after));
    EQ(after.st_mode, S_IFDIR | 0711);
    EQ(after.st_uid, 7);
    EQ(after.st_mtim.tv_sec, 2000);
    OK(fstat(old, &after));
    EQ(before.st_ino, after.st_ino);
    EQ(after.st_mode, S_IFREG | 04755);
    /* Who has it open for reading sees what is written now. */
    int fd = OK(open("m/a/b/f", O_WRONLY | O_APPEND));
    OK(write(fd, " more", 5));
    OK(close(fd));
    EQ(OK(pread(old, value, sizeof(value), 5)), 9);
    CHECK(!memcmp(value, "text more", 9));
    overlay_reads("m/a/b/f", "some text more");
    overlay_reads("l1/a/b/f", "some text");
    OK(stat("m/a/b/f", &after));
    EQ(before.st_ino, after.st_ino);
    EQ(after.st_size, 14);
    OK(close(old));
    OK(umount("m"));
}

TEST(holes_stay_holes)
{
    struct stat st;
    char c = 0;
    overlay_dirs();
    int fd = OK(open("l1/f", O_RDWR | O_CREAT, 0644));
    OK(pwrite(fd, "a", 1, 0));
    OK(pwrite(fd, "b", 1, 32 << 20));
    OK(ftruncate(fd, 64 << 20));
    OK(close(fd));
    overlay_mount("l1");
    fd = OK(open("m/f", O_RDWR));
    OK(fstat(fd, &st));
    EQ(st.st_size, 64 << 20);
    CHECK(st.st_blocks < 65536);
    EQ(OK(pread(fd, &c, 1, 32 << 20)), 1);
    EQ(c, 'b');
    OK(close(fd));
    OK(umount("m"));
}

TEST(removing_leaves_whiteouts)
{
    overlay_dirs();
    guest_write_file("l1/f", "");
    guest_write_file("l1/g", "");
    OK(mkdir("l1/d", 0755));
    guest_write_file("l1/d/x", "");
    overlay_mount("l1");
    OK(unlink("m/f"));
    CHECK(overlay_is_whiteout("u/f"));
    OK(chmod("m/g", 0600));
    OK(unlink("m/g"));
    CHECK(overlay_is_whiteout("u/g"));
    ERR(ENOTEMPTY, rmdir("m/d"));
    OK(unlink("m/d/x"));
    CHECK(overlay_is_whiteout("u/d/x"));
    overlay_lists("m/d", "");
    OK(rmdir("m/d"));
    CHECK(overlay_is_whiteout("u/d"));
    overlay_lists("m", "");
    guest_write_file("m/f", "new");
    overlay_reads("u/f", "new");
    OK(mkdir("m/d", 0700));
    CHECK(overlay_is_opaque("u/d"));
    overlay_lists("m/d", "");
    guest_write_file("m/own", "");
    OK(unlink("m/own"));
    struct stat st;
    ERR(ENOENT, lstat("u/own", &st));
    ERR(EPERM, mknod("m/w", S_IFCHR, makedev(0, 0)));
    OK(umount("m"));
    /* The same after all is forgotten. */
    overlay_mount("l1");
    overlay_lists("m", "d f ");
    overlay_lists("m/d", "");
    OK(umount("m"));
}

TEST(renames)
{
    overlay_dirs();
    guest_write_file("l1/f", "f");
    guest_write_file("l1/g", "g");
    OK(mkdir("l1/d", 0755));
    OK(mkdir("l1/e", 0755));
    guest_write_file("l1/e/x", "x");
    overlay_mount("l1");
    ino_t ino = overlay_ino("m/f");
    OK(rename("m/f", "m/f2"));
    EQ(overlay_ino("m/f2"), ino);
    CHECK(overlay_is_whiteout("u/f"));
    overlay_reads("m/f2", "f");
    ERR(EEXIST, renameat2(AT_FDCWD, "m/f2", AT_FDCWD, "m/g", 1));
    OK(renameat2(AT_FDCWD, "m/f2", AT_FDCWD, "m/g", 2));
    overlay_reads("m/g", "f");
    overlay_reads("m/f2", "g");
    ERR(EINVAL, renameat2(AT_FDCWD, "m/g", AT_FDCWD, "m/h", 4));
    ERR(EXDEV, rename("m/d", "m/d2"));
    OK(mkdir("m/n", 0755));
    guest_write_file("m/n/y", "y");
    ERR(ENOTEMPTY, rename("m/n", "m/e"));
    OK(unlink("m/e/x"));
    OK(rename("m/n", "m/e"));
    CHECK(overlay_is_opaque("u/e"));
    overlay_lists("m/e", "y ");
    OK(rename("m/e", "m/n"));
    CHECK(overlay_is_whiteout("u/e"));
    overlay_lists("m", "d f2 g n ");
    OK(umount("m"));
    overlay_mount("l1");
    overlay_lists("m", "d f2 g n ");
    overlay_lists("m/n", "y ");
    OK(umount("m"));
}

TEST(links_and_files_without_names)
{
    struct stat st, st2;
    overlay_dirs();
    guest_write_file("l1/f", "f");
    guest_write_file("l1/late", "late");
    OK(symlink("target", "l1/s"));
    OK(mkfifo("l1/p", 0600));
    overlay_mount("l1");
    OK(link("m/f", "m/f2"));
    OK(stat("m/f", &st));
    OK(stat("m/f2", &st2));
    EQ(st.st_ino, st2.st_ino);
    EQ(st.st_nlink, 2);
    OK(chmod("m/f2", 0600));
    OK(stat("m/f", &st));
    EQ(st.st_mode & 07777, 0600);
    char name[64];
    int fd = OK(open("m", O_TMPFILE | O_RDWR, 0600));
    OK(write(fd, "tmp", 3));
    snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
    OK(linkat(AT_FDCWD, name, AT_FDCWD, "m/t", AT_SYMLINK_FOLLOW));
    overlay_reads("m/t", "tmp");
    OK(fstat(fd, &st));
    EQ(st.st_nlink, 1);
    OK(close(fd));
    /* Open, and without a name. */
    fd = OK(open("m/late", O_RDONLY));
    OK(unlink("m/late"));
    char buf[8];
    EQ(OK(read(fd, buf, sizeof(buf))), 4);
    OK(close(fd));
    OK(lchown("m/s", 5, 5));
    OK(chmod("m/p", 0640));
    EQ(OK(readlink("u/s", name, sizeof(name))), 6);
    OK(lstat("u/p", &st));
    EQ(st.st_mode, S_IFIFO | 0640);
    OK(umount("m"));
}

static void overlay_map_and_lock(void)
{
    int ro = OK(open("m/f", O_RDONLY)), rw = OK(open("m/f", O_RDWR));
    char *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, rw, 0);
    CHECK(map != MAP_FAILED);
    memcpy(map, "mapped", 6);
    char buf[8];
    EQ(OK(pread(ro, buf, 6, 0)), 6);
    CHECK(!memcmp(buf, "mapped", 6));
    struct flock lock = {.l_type = F_WRLCK};
    OK(fcntl(rw, F_OFD_SETLK, &lock));
    lock = (struct flock){.l_type = F_RDLCK};
    ERR(EAGAIN, fcntl(ro, F_OFD_SETLK, &lock));
}

TEST(maps_and_locks)
{
    overlay_dirs();
    guest_write_file("l1/f", "before");
    overlay_mount("l1");
    EXITED(IN_CHILD(overlay_map_and_lock()), 0);
    overlay_reads("u/f", "mapped");
    OK(umount("m"));
}

/* Runs itself from a lower layer, and can't be written meanwhile. */
TEST(programs)
{
    overlay_dirs();
    OK(mkdir("l1/bin", 0755));
    char buf[65536];
    int in = OK(open("/bin/busybox", O_RDONLY)), out = OK(open("l1/bin/sleep", O_WRONLY | O_CREAT, 0755));
    for (ssize_t n; (n = OK(read(in, buf, sizeof(buf)))) > 0;)
        EQ(OK(write(out, buf, (size_t)n)), n);
    OK(close(in));
    OK(close(out));
    overlay_mount("l1");
    pid_t pid = OK(fork());
    if (pid == 0) {
        execl("m/bin/sleep", "sleep", "30", NULL);
        _exit(1);
    }
    char link[64], exe[256];
    snprintf(link, sizeof(link), "/proc/%d/exe", pid);
    for (unsigned i = 0; i < 500; i++) {
        ssize_t n = OK(readlink(link, exe, sizeof(exe)));
        if (n > 6 && !memcmp(exe + n - 5, "sleep", 5))
            break;
        sleep_ms(10);
    }
    ERR(ETXTBSY, open("m/bin/sleep", O_RDWR));
    int status;
    OK(kill(pid, SIGKILL));
    OK(waitpid(pid, &status, 0));
    OK(close(OK(open("m/bin/sleep", O_RDWR))));
    OK(umount("m"));
}

TEST(options_and_layers_are_checked)
{
    struct stat st;
    overlay_dirs();
    ERR(EINVAL, mount("o", "m", "overlay", 0, "lowerdir=l1"));
    ERR(EINVAL, mount("o", "m", "overlay", 0, "lowerdir=l1,upperdir=u"));
    ERR(EINVAL, mount("o", "m", "overlay", 0, "lowerdir=l1,upperdir=u,workdir=w,nonsense"));
    ERR(ENOENT, mount("o", "m", "overlay", 0, "lowerdir=none,upperdir=u,workdir=w"));
    OK(mkdir("a:b", 0755));
    guest_write_file("a:b/f", "colon");
    OK(mount("o", "m", "overlay", 0, "lowerdir=a\\:b:l1"));
    overlay_reads("m/f", "colon");
    ERR(EROFS, open("m/f", O_RDWR));
    ERR(EROFS, mkdir("m/d", 0755));
    ERR(EROFS, unlink("m/f"));
    OK(umount("m"));
    ERR(ENOENT, lstat("u/f", &st));
}

/* As docker's overlay2 driver does it: layers by short links, changes read from the upper directory. */
TEST(images)
{
    overlay_dirs();
    OK(mkdir("l", 0755));
    OK(symlink("../l1", "l/AA"));
    OK(symlink("../l2", "l/BB"));
    OK(symlink("../l3", "l/CC"));
    OK(mkdir("l3/etc", 0755));
    OK(mkdir("l3/opt", 0755));
    guest_write_file("l3/etc/passwd", "base");
    guest_write_file("l3/opt/old", "old");
    OK(mkdir("l2/etc", 0755));
    guest_write_file("l2/etc/group", "second");
    OK(mknod("l2/opt", S_IFCHR, makedev(0, 0)));
    OK(mkdir("l1/opt", 0755));
    OK(setxattr("l1/opt", "trusted.overlay.opaque", "y", 1, 0));
    guest_write_file("l1/opt/new", "new");
    overlay_mount("l/AA:l/BB:l/CC");
    overlay_lists("m", "etc opt ");
    overlay_lists("m/etc", "group passwd ");
    overlay_lists("m/opt", "new ");
    OK(unlink("m/etc/passwd"));
    guest_write_file("m/etc/hosts", "h");
    overlay_lists("u", "etc ");
    overlay_lists("u/etc", "hosts passwd ");
    CHECK(overlay_is_whiteout("u/etc/passwd"));
    OK(umount("m"));
}

static void overlay_put(const char *path, const char *text)
{
    int fd = OK(open(path, O_WRONLY));
    OK(write(fd, text, strlen(text)));
    OK(close(fd));
}

/* Root of a user namespace may mount one, but gets nothing written that it may not write. */
TEST(less_privileged_mounters)
{
    char value[8];
    struct stat st;
    overlay_dirs();
    OK(mkdir("u/p", 0755));
    OK(mkdir("l1/p", 0755));
    OK(mkdir("l1/p/mine", 0755));
    OK(mkdir("l1/d", 0755));
    guest_write_file("l1/p/f", "f");
    guest_write_file("l1/d/f", "f");
    guest_write_file("l1/secret", "x");
    OK(chmod("l1/secret", 0600));
    static const char *const own[] = {"l1/p/mine", "l1/p/f", "l1/d", "l1/d/f", "l1", "u", "w", "m"};
    for (unsigned i = 0; i < 8; i++)
        OK(chown(own[i], 1000, 1000));
    OK(setresgid(1000, 1000, 1000));
    OK(setresuid(1000, 1000, 1000));
    OK(prctl(PR_SET_DUMPABLE, 1));
    OK(unshare(CLONE_NEWUSER | CLONE_NEWNS));
    overlay_put("/proc/self/setgroups", "deny");
    overlay_put("/proc/self/uid_map", "0 1000 1");
    overlay_put("/proc/self/gid_map", "0 1000 1");
    OK(mount("overlay", "m", "overlay", 0, "lowerdir=l1,upperdir=u,workdir=w,userxattr"));
    guest_write_file("m/d/g", "g");
    overlay_reads("u/d/g", "g");
    OK(unlink("m/d/f"));
    CHECK(overlay_is_whiteout("u/d/f"));
    ERR(EACCES, open("m/secret", O_RDONLY));
    ERR(EACCES, open("m/p/f", O_RDWR));
    ERR(EACCES, open("m/p/mine/new", O_RDWR | O_CREAT, 0644));
    ERR(ENOENT, lstat("u/p/mine", &st));
    ERR(EACCES, mkdir("m/p/new", 0755));
    OK(mkdir("m/gone", 0755));
    OK(rmdir("m/gone"));
    OK(unlink("m/d/g"));
    OK(rmdir("m/d"));
    OK(mkdir("m/d", 0755));
    EQ(getxattr("u/d", "user.overlay.opaque", value, sizeof(value)), 1);
    overlay_lists("m/d", "");
}

enum { RACERS = 4, RACE_STEPS = 400 };

/* Does things to a few names that others do things to as well: none of it has to succeed. */
static void overlay_race(unsigned seed)
{
    static const char *const names[] = {"m/a", "m/b", "m/c", "m/d/a", "m/d/b", "m/e/a"};
    for (unsigned i = 0; i < RACE_STEPS; i++) {
        const char *one = names[rand_r(&seed) % 6], *two = names[rand_r(&seed) % 6];
        int fd = -1, ret = 0;
        switch (rand_r(&seed) % 10) {
        case 0:
            fd = open(one, O_RDWR | O_CREAT, 0644);
            ret = fd >= 0 ? (int)write(fd, one, 3) : 0;
            break;
        case 1:
            fd = open(one, O_RDONLY);
            break;
        case 2:
            ret = unlink(one);
            break;
        case 3:
            ret = rename(one, two);
            break;
        case 4:
            ret = renameat2(AT_FDCWD, one, AT_FDCWD, two, 2);
            break;
        case 5:
            ret = mkdir(one, 0755);
            break;
        case 6:
            ret = rmdir(one);
            break;
        case 7:
            ret = link(one, two);
            break;
        case 8:
            ret = chmod(one, 0600 | (rand_r(&seed) & 077));
            break;
        case 9:
            ret = symlink("a", one);
            break;
        }
        (void)ret;
        if (fd >= 0)
            OK(close(fd));
    }
}

/* What m shows, one line a name: its type, mode, link count of files, and size. */
static void overlay_tells(const char *dir, char *text, size_t size)
{
    struct dirent **list;
    int n = OK(scandir(dir, &list, NULL, alphasort));
    for (int i = 0; i < n; i++) {
        if (list[i]->d_name[0] != '.') {
            char path[512];
            struct stat st;
            size_t at = strlen(text);
            snprintf(path, sizeof(path), "%s/%s", dir, list[i]->d_name);
            OK(lstat(path, &st));
            EQ(list[i]->d_ino, st.st_ino);
            EQ(list[i]->d_type, IFTODT(st.st_mode));
            snprintf(text + at, size - at, "%s %o %lld\n", path, st.st_mode, S_ISDIR(st.st_mode) ? 0LL : (long long)st.st_size);
            if (S_ISDIR(st.st_mode))
                overlay_tells(path, text, size);
        }
        free(list[i]);
    }
    free(list);
}

TEST(races_leave_what_is_seen)
{
    static char before[65536], after[65536];
    overlay_dirs();
    OK(mkdir("l1/d", 0755));
    OK(mkdir("l2/e", 0755));
    guest_write_file("l1/a", "a of l1");
    guest_write_file("l2/b", "b of l2");
    guest_write_file("l1/d/a", "d/a of l1");
    guest_write_file("l2/e/a", "e/a of l2");
    for (unsigned round = 0; round < 3; round++) {
        overlay_mount("l1:l2");
        pid_t pids[RACERS];
        for (unsigned i = 0; i < RACERS; i++) {
            pids[i] = OK(fork());
            if (!pids[i]) {
                overlay_race(round * RACERS + i + 1);
                _exit(0);
            }
        }
        for (unsigned i = 0; i < RACERS; i++) {
            int status;
            OK(waitpid(pids[i], &status, 0));
            EXITED(status, 0);
        }
        before[0] = after[0] = '\0';
        overlay_tells("m", before, sizeof(before));
        OK(umount("m"));
        overlay_mount("l1:l2");
        overlay_tells("m", after, sizeof(after));
        OK(umount("m"));
        STR(before, after);
    }
    overlay_reads("l1/a", "a of l1");
    overlay_reads("l2/e/a", "e/a of l2");
}

/* The events that have come in, all of them together. */
static uint32_t overlay_events(int fd)
{
    char buf[4096];
    uint32_t mask = 0;
    ssize_t n = read(fd, buf, sizeof(buf));
    for (ssize_t at = 0; at < n;) {
        const struct inotify_event *e = (const struct inotify_event *)(buf + at);
        mask |= e->mask;
        at += (ssize_t)(sizeof(*e) + e->len);
    }
    return mask;
}

TEST(watches)
{
    overlay_dirs();
    guest_write_file("l1/f", "f");
    overlay_mount("l1");
    int over = OK(inotify_init1(IN_NONBLOCK)), below = OK(inotify_init1(IN_NONBLOCK));
    OK(inotify_add_watch(over, "m/f", IN_ALL_EVENTS));
    OK(inotify_add_watch(below, "l1/f", IN_OPEN | IN_CLOSE));
    OK(close(OK(open("m/f", O_RDONLY))));
    EQ(overlay_events(over), IN_OPEN | IN_CLOSE_NOWRITE);
    EQ(overlay_events(below), IN_OPEN | IN_CLOSE_NOWRITE);
    /* The watch stays with the file when that is copied up. */
    OK(chmod("m/f", 0600));
    EQ(overlay_events(over) & IN_ATTRIB, IN_ATTRIB);
    int fd = OK(open("m/f", O_WRONLY));
    OK(write(fd, "g", 1));
    OK(close(fd));
    EQ(overlay_events(over), IN_OPEN | IN_MODIFY | IN_CLOSE_WRITE);
    OK(unlink("m/f"));
    CHECK(overlay_events(over) & IN_DELETE_SELF);
    OK(close(over));
    OK(close(below));
    OK(umount("m"));
}
