/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of calls on files to users of several kinds, and of threads that race. */
#include "tests/guest/probe.h"

#include <dirent.h>
#include <grp.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>

static void st(const char *p)
{
    struct stat s;
    if (lstat(p, &s)) {
        printf("lstat %s -%s\n", p, strerrorname_np(errno));
        return;
    }
    printf("lstat %s mode %o uid %d gid %d size %ld\n", p, s.st_mode, s.st_uid, s.st_gid,
           S_ISDIR(s.st_mode) ? 0L : (long)s.st_size);
}
static void rl(const char *p)
{
    char b[4096];
    ssize_t n = readlink(p, b, 4095);
    if (n < 0) {
        printf("readlink %s -%s\n", p, strerrorname_np(errno));
        return;
    }
    b[n] = 0;
    printf("readlink %s %s\n", p, b);
}
static void rlfd(int fd)
{
    char p[64];
    snprintf(p, 64, "/proc/self/fd/%d", fd);
    char b[4096];
    ssize_t n = readlink(p, b, 4095);
    if (n < 0) {
        printf("rlfd -%s\n", strerrorname_np(errno));
        return;
    }
    b[n] = 0;
    char *q = strchr(b, '[');
    if (q && (q[1] >= '0' && q[1] <= '9'))
        *q = 0;
    printf("fd -> %s\n", b);
}
#define AS(u, ...)              \
    do {                        \
        fflush(stdout);         \
        if (fork() == 0) {      \
            gid_t g[] = {50};   \
            setgroups(1, g);    \
            setresgid(u, u, u); \
            setresuid(u, u, u); \
            __VA_ARGS__;        \
            exit(0);            \
        }                       \
        wait(0);                \
    } while (0)
static char buf[70000];
static char b[4096];
static void *thr(void *a)
{
    for (int i = 0; i < 400; i++) {
        int fd = open("race", O_CREAT | O_RDWR, 0600);
        if (fd >= 0)
            close(fd);
        unlink("race");
        rename("race", "race2");
        unlink("race2");
        link("race", "race3");
        unlink("race3");
        mkdir("raced", 0700);
        rmdir("raced");
        symlink("x", "races");
        unlink("races");
    }
    return 0;
}
static void *thr2(void *a)
{
    struct stat s;
    for (int i = 0; i < 1200; i++) {
        stat("race", &s);
        lstat("races", &s);
        int fd = open("raced", O_RDONLY | O_DIRECTORY);
        if (fd >= 0) {
            struct stat z;
            fstatat(fd, "x", &z, 0);
            close(fd);
        }
        DIR *d = opendir(".");
        if (d) {
            while (readdir(d))
                ;
            closedir(d);
        }
        if (i > 120)
            break;
    }
    return 0;
}
static void *apthr(void *a)
{
    int fd = *(int *)a;
    for (int i = 0; i < 500; i++)
        write(fd, "0123456789", 10);
    return 0;
}
static void probe_users(void)
{
    mkdir("priv", 0700);
    close(open("priv/f", O_CREAT, 0644));
    close(open("root644", O_CREAT, 0644));
    close(open("root600", O_CREAT, 0600));
    close(open("grp", O_CREAT, 0640));
    chown("grp", 0, 50);
    mkdir("sticky", 01777);
    chmod("sticky", 01777);
    close(open("sticky/rootf", O_CREAT, 0666));
    chmod("sticky/rootf", 0666);
    mkdir("sg", 0777);
    chown("sg", 0, 50);
    chmod("sg", 02777);
    symlink("rootf", "sticky/rl");
    close(open("suid", O_CREAT | O_RDWR, 0755));
    chmod("suid", 06777);
    mkfifo("sticky/ff", 0666);
    chmod("sticky/ff", 0666);
    AS(1000, PF(open("priv/f", O_RDONLY)); PF(open("root644", O_RDONLY));
       PF(open("root644", O_RDWR)); PF(open("root600", O_RDONLY)); PF(open("root600", O_PATH));
       PF(open("grp", O_RDONLY)); PF(open("grp", O_WRONLY)); P(access("priv/f", 0));
       P(access("priv", X_OK)); P(chdir("priv")); PF(open("priv", O_RDONLY));
       P(chmod("root644", 0777)); P(chown("root644", 1000, 1000)); P(unlink("root644"));
       close(open("root644", O_CREAT, 0600)); PF(open("mine", O_CREAT | O_RDWR, 0666)); st("mine");
       P(chown("mine", 1000, 50)); st("mine"); P(chown("mine", 1000, 60)); P(chown("mine", 0, -1));
       P(chmod("mine", 02755)); st("mine"); P(chown("mine", 1000, 1000)); P(chmod("mine", 04755));
       st("mine"); P(unlink("sticky/rootf")); P(rename("sticky/rootf", "sticky/x"));
       PF(open("sticky/rootf", O_CREAT | O_RDWR, 0600)); PF(open("sticky/rootf", O_RDWR));
       PF(open("sticky/ff", O_CREAT | O_RDWR, 0600)); P(mkdir("sticky/md", 0777));
       P(rmdir("sticky/md")); P(symlink("/etc", "sticky/ul")); P(access("sticky/ul", 0));
       P(link("sticky/rootf", "sticky/h")); P(link("root600", "h2")); P(mkdir("sg/d", 0755));
       st("sg/d"); close(open("sg/f", O_CREAT, 02755)); st("sg/f"); int fd = open("suid", O_WRONLY);
       st("suid"); P(write(fd, "x", 1)); st("suid"); close(fd);
       P(mknod("cdev", S_IFCHR | 0600, makedev(1, 3))); P(mknod("wh", S_IFCHR | 0600, 0));
       P(mknod("pipe", S_IFIFO | 0600, 0)); PF(open("root644", O_RDONLY | O_NOATIME));
       P(utimensat(AT_FDCWD, "grp", 0, 0)); struct timespec t[2] = {{1, 1}, {2, 2}};
       P(utimensat(AT_FDCWD, "sticky/rootf", 0, 0)); P(utimensat(AT_FDCWD, "sticky/rootf", t, 0));
       P(setxattr("sticky/rootf", "user.x", "1", 1, 0));
       P(setxattr("root644", "user.x", "1", 1, 0)); P(setxattr("mine", "user.x", "1", 1, 0));
       P(setxattr("mine", "trusted.x", "1", 1, 0)); P(setxattr("mine", "security.foo", "1", 1, 0));
       P(setxattr("sticky", "user.x", "1", 1, 0)); P(mount("x", "sticky", "tmpfs", 0, 0));
       P(umount("/proc")); P(chroot(".")); P(truncate("root644", 0)); P(truncate("grp", 0));
       P(renameat2(AT_FDCWD, "mine", AT_FDCWD, "m2", RENAME_WHITEOUT));
       P(access("/proc/1/cwd", 0)););
    PF(open("sticky/ul", O_RDONLY));
    AS(1000, P(unlink("mine")));

    close(open("owned", O_CREAT, 0600));
    chown("owned", 1000, 1000);
    AS(0, setresuid(1000, 0, 0); P(access("root600", R_OK));
       P(faccessat(AT_FDCWD, "root600", R_OK, AT_EACCESS)); P(access("owned", R_OK));
       setfsuid(1000); PF(open("root600", O_RDONLY)); PF(open("owned", O_RDONLY)););
}

static void probe_suid_on_write_by_root(void)
{
    chmod("suid", 06777);
    {
        int fd = open("suid", O_WRONLY);
        write(fd, "y", 1);
        st("suid");
        ftruncate(fd, 0);
        st("suid");
        close(fd);
    }
}

static void probe_fd_links(void)
{
    {
        int fd = open("lk", O_CREAT | O_RDWR, 0644);
        rlfd(fd);
        rename("lk", "lk2");
        rlfd(fd);
        unlink("lk2");
        rlfd(fd);
        char p[64];
        snprintf(p, 64, "/proc/self/fd/%d", fd);
        write(fd, "abc", 3);
        int f2 = open(p, O_RDONLY);
        printf("reopen %d %zd\n", f2 >= 0, read(f2, b, 10));
        rlfd(f2);
        struct stat s;
        P(stat(p, &s));
        printf("nlink %ld\n", (long)s.st_nlink);
        P(linkat(AT_FDCWD, p, AT_FDCWD, "back", AT_SYMLINK_FOLLOW));
        P(linkat(fd, "", AT_FDCWD, "back", AT_EMPTY_PATH));
        close(f2);
        close(fd);
        fd = open(".", O_TMPFILE | O_RDWR, 0600);
        snprintf(p, 64, "/proc/self/fd/%d", fd);
        write(fd, "tmp", 3);
        P(linkat(AT_FDCWD, p, AT_FDCWD, "frtmp", AT_SYMLINK_FOLLOW));
        st("frtmp");
        P(linkat(AT_FDCWD, p, AT_FDCWD, "frtmp2", AT_SYMLINK_FOLLOW));
        close(fd);
        fd = open(".", O_TMPFILE | O_EXCL | O_RDWR, 0600);
        snprintf(p, 64, "/proc/self/fd/%d", fd);
        P(linkat(AT_FDCWD, p, AT_FDCWD, "frtmp3", AT_SYMLINK_FOLLOW));
        close(fd);
        int pp[2];
        pipe(pp);
        rlfd(pp[0]);
        snprintf(p, 64, "/proc/self/fd/%d", pp[1]);
        f2 = open(p, O_WRONLY);
        P(write(f2, "q", 1));
        P(read(pp[0], b, 1));
        PF(open(p, O_RDONLY | O_NONBLOCK));
        fd = open("root644", O_RDONLY);
        snprintf(p, 64, "/proc/self/fd/%d", fd);
        PF(open(p, O_RDWR));
        fd = open("root644", O_PATH);
        snprintf(p, 64, "/proc/self/fd/%d", fd);
        PF(open(p, O_RDONLY));
        P(chmod(p, 0640));
        st("root644");
        snprintf(p, 64, "/proc/self/fd/%d/x", fd);
        PF(open(p, O_RDONLY));
        int mf = syscall(SYS_memfd_create, "mm", 2);
        rlfd(mf);
        P(fcntl(mf, F_GET_SEALS));
        fstat(mf, &s);
        printf("mode %o nlink %ld\n", s.st_mode, (long)s.st_nlink);
        P(fcntl(mf, F_ADD_SEALS, F_SEAL_WRITE));
        P(write(mf, "x", 1));
        rl("/proc/self/exe");
        rl("/proc/self/cwd");
        rl("/proc/self/root");
        {
            int d = open(".", O_RDONLY);
            snprintf(p, 64, "/proc/self/fd/%d/root644", d);
            P(access(p, 0));
            snprintf(p, 64, "/proc/self/fd/%d/..", d);
            P(access(p, 0));
        }
        PF(open("/proc/self/cwd/root644", O_RDONLY));
        PF(open("/dev/null", O_RDWR));
        PF(open("/dev/stdin", O_PATH));
    }
}

static void probe_exec(void)
{
    {
        int s = open("/proc/self/exe", O_RDONLY), d = open("ex", O_CREAT | O_WRONLY, 0755);
        ssize_t n;
        while ((n = read(s, buf, 65536)) > 0)
            write(d, buf, n);
        P((errno = 0, fork() == 0 ? (execl("./ex", "ex", (char *)0), _exit(errno), 0) : 0));
        int ws;
        wait(&ws);
        printf("exec while open for write: %d\n", WEXITSTATUS(ws) == ETXTBSY);
        close(d);
        close(s);
    }
}

static void probe_mmap(void)
{
    {
        int fd = open("mm", O_CREAT | O_RDWR, 0600);
        ftruncate(fd, 8192);
        char *p = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        strcpy(p, "hi");
        pread(fd, b, 3, 0);
        puts(b);
        pwrite(fd, "ho", 2, 4096);
        printf("%.2s\n", p + 4096);
        char *q = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 4096);
        printf("%.2s\n", q);
        q[0] = 'X';
        pread(fd, b, 2, 4096);
        printf("%.2s\n", b);
        munmap(p, 8192);
        int r = open("mm", O_RDONLY);
        P(mmap(0, 4096, PROT_WRITE | PROT_READ, MAP_SHARED, r, 0) == MAP_FAILED ? -1 : 0);
        P(mmap(0, 4096, PROT_WRITE | PROT_READ, MAP_PRIVATE, r, 0) == MAP_FAILED ? -1 : 0);
        p = mmap(0, 4096, PROT_READ, MAP_SHARED, r, 0);
        P(mprotect(p, 4096, PROT_READ | PROT_WRITE));
        p = mmap(0, 4096, PROT_READ, MAP_SHARED, fd, 0);
        P(mprotect(p, 4096, PROT_READ | PROT_WRITE));
        int wo = open("mm", O_WRONLY);
        P(mmap(0, 4096, PROT_READ, MAP_SHARED, wo, 0) == MAP_FAILED ? -1 : 0);
        unlink("mm");
        strcpy(p, "after");
        pread(fd, b, 6, 0);
        puts(b);
        P(mmap(0, 4096, PROT_READ, MAP_SHARED, fd, 1) == MAP_FAILED ? -1 : 0);
    }
}

static void probe_inotify(void)
{
    {
        int i = inotify_init1(IN_NONBLOCK);
        mkdir("in", 0777);
        int wd = inotify_add_watch(i, "in", IN_ALL_EVENTS);
        int fd = open("in/a", O_CREAT | O_RDWR, 0600);
        write(fd, "x", 1);
        read(fd, b, 1);
        lseek(fd, 0, 0);
        read(fd, b, 1);
        ftruncate(fd, 0);
        fchmod(fd, 0644);
        close(fd);
        rename("in/a", "in/b");
        link("in/b", "in/c");
        symlink("b", "in/s");
        mkdir("in/d", 0700);
        rmdir("in/d");
        unlink("in/b");
        unlink("in/c");
        unlink("in/s");
        DIR *d = opendir("in");
        readdir(d);
        closedir(d);
        chmod("in", 0755);
        rename("in", "in2");
        rmdir("in2");
        char e[8192];
        ssize_t n = read(i, e, sizeof e);
        for (char *q = e; q < e + n;) {
            struct inotify_event *v = (void *)q;
            printf("%x %s\n", v->mask, v->len ? v->name : "");
            q += sizeof *v + v->len;
        }
        (void)wd;
    }
}

static void probe_races(void)
{
    {
        pthread_t t[6];
        for (int i = 0; i < 6; i++)
            pthread_create(&t[i], 0, i < 4 ? thr : thr2, 0);
        for (int i = 0; i < 6; i++)
            pthread_join(t[i], 0);
        unlink("race");
        unlink("race2");
        unlink("race3");
        rmdir("raced");
        unlink("races");
        P(access("race", 0));
        int fd = open("apnd", O_CREAT | O_WRONLY, 0600);
        for (int i = 0; i < 4; i++)
            pthread_create(&t[i], 0, apthr, &fd);
        for (int i = 0; i < 4; i++)
            pthread_join(t[i], 0);
        struct stat s;
        fstat(fd, &s);
        printf("size %ld\n", (long)s.st_size);
    }
}

static void probe_big_dir(void)
{
    {
        mkdir("bd", 0777);
        chdir("bd");
        char n[32];
        for (int i = 0; i < 3000; i++) {
            snprintf(n, 32, "file%d", i);
            close(open(n, O_CREAT, 0600));
        }
        DIR *d = opendir(".");
        int c = 0;
        struct dirent *e;
        while ((e = readdir(d)))
            c++;
        printf("%d entries\n", c);
        rewinddir(d);
        c = 0;
        long pos = 0;
        while ((e = readdir(d))) {
            if (++c == 1500)
                pos = telldir(d);
        }
        seekdir(d, pos);
        int c2 = 0;
        while (readdir(d))
            c2++;
        printf("after seek %d\n", c2);
        rewinddir(d);
        c = 0;
        while ((e = readdir(d)))
            if (e->d_name[0] != '.') {
                unlink(e->d_name);
                c++;
            }
        printf("unlinked %d\n", c);
        closedir(d);
        chdir("..");
        P(rmdir("bd"));
    }
}

static void probe_ns(void)
{
    {
        unshare(CLONE_NEWNS);
        P(mount(0, "/", 0, MS_REC | MS_PRIVATE, 0));
        mkdir("nr", 0777);
        P(mount("nr", "nr", 0, MS_BIND | MS_REC, 0));
        mkdir("nr/old", 0777);
        mkdir("nr/proc", 0777);
        P(mount("/proc", "nr/proc", 0, MS_BIND | MS_REC, 0));
        chdir("nr");
        P(syscall(SYS_pivot_root, ".", "old"));
        P(chdir("/"));
        P(access("/old/tmp", 0));
        P(umount2("/old", MNT_DETACH));
        P(rmdir("/old"));
        PF(open("/proc/self/mounts", O_RDONLY));
        int fd = open("/proc/self/mounts", O_RDONLY);
        ssize_t n = read(fd, b, 4000);
        int l = 0;
        for (int i = 0; i < n; i++)
            l += b[i] == '\n';
        printf("%d mounts\n", l);
        P(chroot("/proc"));
        P(access("/self", 0));
        P(access("/../../self", 0));
        P(chdir(".."));
    }
}

int main(void)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    umask(022);
    mkdir("w", 0777);
    if (chdir("w") < 0)
        return 1;
    chmod(".", 0777);
    PROBE(probe_users);
    PROBE(probe_suid_on_write_by_root);
    PROBE(probe_fd_links);
    PROBE(probe_exec);
    PROBE(probe_mmap);
    PROBE(probe_inotify);
    PROBE(probe_races);
    PROBE(probe_big_dir);
    PROBE(probe_ns);
    return 0;
}
