/* SPDX-License-Identifier: Apache-2.0 */
/* Landlock: rights on trees, layers, renames across directories, ports, scopes, tracing. */
#include "tests/guest/guest.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#define LL(nr, ...) syscall(nr, __VA_ARGS__)
#define CREATE 444
#define ADD_RULE 445
#define RESTRICT 446

enum {
    EXECUTE = 1 << 0, WRITE_FILE = 1 << 1, READ_FILE = 1 << 2, READ_DIR = 1 << 3, REMOVE_DIR = 1 << 4, REMOVE_FILE = 1 << 5,
    MAKE_CHAR = 1 << 6, MAKE_DIR = 1 << 7, MAKE_REG = 1 << 8, MAKE_SOCK = 1 << 9, MAKE_FIFO = 1 << 10, MAKE_BLOCK = 1 << 11,
    MAKE_SYM = 1 << 12, REFER = 1 << 13, TRUNCATE = 1 << 14, IOCTL_DEV = 1 << 15, FS_ALL = (1 << 16) - 1,
};
enum { BIND_TCP = 1, CONNECT_TCP = 2 };
enum { SCOPE_ABSTRACT = 1, SCOPE_SIGNAL = 2 };

struct attr {
    uint64_t fs, net, scope;
};
struct beneath {
    uint64_t access;
    int32_t fd;
} __attribute__((packed));
struct port_attr {
    uint64_t access, port;
};

/* A kernel without Landlock, or with an older one, has nothing to compare with. */
static bool have(void)
{
    return LL(CREATE, NULL, 0, 1) >= 6;
}

static int ruleset(uint64_t fs, uint64_t net, uint64_t scope)
{
    struct attr a = {fs, net, scope};
    return (int)OK(LL(CREATE, &a, sizeof(a), 0));
}

static void allow(int set, const char *path, uint64_t access)
{
    struct beneath b = {access, OK(open(path, O_PATH | O_CLOEXEC))};
    OK(LL(ADD_RULE, set, 1, &b, 0));
    close(b.fd);
}

static void enforce(int set)
{
    OK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    OK(LL(RESTRICT, set, 0));
    close(set);
}

TEST(create_errors)
{
    struct {
        struct attr a;
        uint64_t more;
    } big = {{1, 0, 0}, 0};
    struct attr a = {1, 0, 0};
    if (!have())
        return;
    ERR(EINVAL, LL(CREATE, &a, sizeof(a), 1));
    ERR(EINVAL, LL(CREATE, NULL, 8, 1));
    ERR(EINVAL, LL(CREATE, NULL, 0, 4096));
    ERR(EFAULT, LL(CREATE, NULL, sizeof(a), 0));
    ERR(EFAULT, LL(CREATE, (void *)1, sizeof(a), 0));
    ERR(EINVAL, LL(CREATE, &a, 7, 0));
    ERR(E2BIG, LL(CREATE, &a, 4097, 0));
    close((int)OK(LL(CREATE, &a, 8, 0)));
    close((int)OK(LL(CREATE, &big, sizeof(big), 0)));
    big.more = 1;
    ERR(E2BIG, LL(CREATE, &big, sizeof(big), 0));
    a.fs = 1ULL << 40;
    ERR(EINVAL, LL(CREATE, &a, sizeof(a), 0));
    a.fs = 0;
    ERR(ENOMSG, LL(CREATE, &a, sizeof(a), 0));
    a.net = 4;
    ERR(EINVAL, LL(CREATE, &a, sizeof(a), 0));
    a.net = 0, a.scope = 4;
    ERR(EINVAL, LL(CREATE, &a, sizeof(a), 0));
    int set = ruleset(READ_FILE, 0, 0);
    EQ(fcntl(set, F_GETFD), FD_CLOEXEC);
    ERR(EINVAL, read(set, &a, 1));
    ERR(EINVAL, write(set, &a, 1));
    char link[64], name[32];
    snprintf(name, sizeof(name), "/proc/self/fd/%d", set);
    link[OK(readlink(name, link, sizeof(link) - 1))] = 0;
    STR(link, "anon_inode:[landlock-ruleset]");
}

TEST(rule_errors)
{
    if (!have())
        return;
    guest_tmpdir();
    guest_write_file("file", "x");
    int set = ruleset(READ_FILE | READ_DIR | WRITE_FILE, BIND_TCP, 0), p[2];
    struct beneath b = {READ_FILE, OK(open(".", O_PATH))};
    struct port_attr n = {BIND_TCP, 80};
    ERR(EINVAL, LL(ADD_RULE, set, 1, &b, 1));
    ERR(EINVAL, LL(ADD_RULE, set, 0, &b, 0));
    ERR(EINVAL, LL(ADD_RULE, set, 3, &b, 0));
    ERR(EBADF, LL(ADD_RULE, -1, 1, &b, 0));
    ERR(EBADFD, LL(ADD_RULE, 0, 1, &b, 0));
    ERR(EFAULT, LL(ADD_RULE, set, 1, NULL, 0));
    b.access = 0;
    ERR(ENOMSG, LL(ADD_RULE, set, 1, &b, 0));
    b.access = EXECUTE;
    ERR(EINVAL, LL(ADD_RULE, set, 1, &b, 0));
    b.access = READ_FILE;
    b.fd = -1;
    ERR(EBADF, LL(ADD_RULE, set, 1, &b, 0));
    b.fd = set;
    ERR(EBADFD, LL(ADD_RULE, set, 1, &b, 0));
    OK(pipe(p));
    b.fd = p[0];
    ERR(EBADFD, LL(ADD_RULE, set, 1, &b, 0));
    b.fd = OK(open("file", O_RDONLY));
    OK(LL(ADD_RULE, set, 1, &b, 0));
    b.access = READ_DIR;
    ERR(EINVAL, LL(ADD_RULE, set, 1, &b, 0));
    OK(LL(ADD_RULE, set, 2, &n, 0));
    n.port = 65536;
    ERR(EINVAL, LL(ADD_RULE, set, 2, &n, 0));
    n.port = 1, n.access = CONNECT_TCP;
    ERR(EINVAL, LL(ADD_RULE, set, 2, &n, 0));
    n.access = 0;
    ERR(ENOMSG, LL(ADD_RULE, set, 2, &n, 0));
    OK(setresuid(1000, 1000, 1000));
    ERR(EPERM, LL(RESTRICT, set, 0));
    OK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    ERR(EINVAL, LL(RESTRICT, set, 1 << 20));
    ERR(EBADF, LL(RESTRICT, -1, 0));
    ERR(EBADFD, LL(RESTRICT, 0, 0));
}

TEST(layers_end)
{
    if (!have())
        return;
    OK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    for (int i = 0; i < 16; i++)
        enforce(ruleset(MAKE_BLOCK, 0, 0));
    ERR(E2BIG, LL(RESTRICT, ruleset(MAKE_BLOCK, 0, 0), 0));
}

static void tree(void)
{
    guest_tmpdir();
    OK(mkdir("in", 0777));
    OK(mkdir("in/sub", 0777));
    OK(mkdir("out", 0777));
    guest_write_file("in/file", "in");
    guest_write_file("in/sub/file", "sub");
    guest_write_file("out/file", "out");
    OK(symlink("../out/file", "in/link"));
}

TEST(read_and_write)
{
    if (!have())
        return;
    tree();
    int before = OK(open("out/file", O_RDWR)), fd;
    int set = ruleset(READ_FILE | READ_DIR | WRITE_FILE, 0, 0);
    allow(set, "in", READ_FILE | READ_DIR);
    allow(set, "in/sub", WRITE_FILE);
    enforce(set);
    close(OK(open("in/file", O_RDONLY)));
    close(OK(open("in", O_RDONLY | O_DIRECTORY)));
    ERR(EACCES, open("in/file", O_WRONLY));
    close(OK(open("in/sub/file", O_RDWR)));
    ERR(EACCES, open("out/file", O_RDONLY));
    ERR(EACCES, open("out", O_RDONLY));
    ERR(EACCES, open(".", O_RDONLY | O_DIRECTORY));
    ERR(EACCES, open("in/link", O_RDONLY));
    close(OK(open("out/file", O_PATH)));
    struct stat st;
    OK(stat("out/file", &st));
    OK(access("out/file", R_OK | W_OK));
    OK(chmod("out/file", 0600));
    OK(chdir("out"));
    ERR(EACCES, open("file", O_RDONLY));
    close(OK(open("../in/file", O_RDONLY)));
    /* What was open stays so, and can be passed on, but not be opened again. */
    EQ(OK(write(before, "x", 1)), 1);
    char name[64];
    snprintf(name, sizeof(name), "/proc/self/fd/%d", before);
    ERR(EACCES, open(name, O_RDONLY));
    /* What is in no tree is free. */
    int p[2], m = OK(memfd_create("m", 0));
    OK(pipe(p));
    snprintf(name, sizeof(name), "/proc/self/fd/%d", p[1]);
    close(OK(open(name, O_WRONLY)));
    snprintf(name, sizeof(name), "/proc/self/fd/%d", m);
    fd = OK(open(name, O_RDWR));
    OK(ftruncate(fd, 10));
    /* Children are held too. */
    EXITED(IN_CHILD(ERR(EACCES, open("file", O_RDONLY))), 0);
}

TEST(each_layer_counts)
{
    if (!have())
        return;
    tree();
    int set = ruleset(READ_FILE, 0, 0);
    allow(set, "in", READ_FILE);
    allow(set, "out", READ_FILE);
    enforce(set);
    close(OK(open("out/file", O_RDONLY)));
    set = ruleset(READ_FILE | WRITE_FILE, 0, 0);
    allow(set, "in/sub", READ_FILE | WRITE_FILE);
    allow(set, "out/file", WRITE_FILE);
    enforce(set);
    ERR(EACCES, open("out/file", O_RDONLY));
    ERR(EACCES, open("in/file", O_RDONLY));
    close(OK(open("in/sub/file", O_RDWR)));
    close(OK(open("out/file", O_WRONLY)));
}

TEST(making_and_removing)
{
    if (!have())
        return;
    tree();
    OK(mkdir("in/gone", 0777));
    OK(mkdir("out/gone", 0777));
    struct sockaddr_un un = {AF_UNIX, "out/sock"};
    int s = OK(socket(AF_UNIX, SOCK_STREAM, 0));
    int set = ruleset(FS_ALL & ~(READ_FILE | READ_DIR | EXECUTE | WRITE_FILE | REFER), 0, 0);
    allow(set, "in", FS_ALL & ~(READ_FILE | READ_DIR | EXECUTE | WRITE_FILE | REFER));
    enforce(set);
    ERR(EACCES, mkdir("out/dir", 0777));
    ERR(EEXIST, mkdir("out/gone", 0777));
    ERR(EACCES, mkfifo("out/fifo", 0666));
    ERR(EACCES, mknod("out/reg", S_IFREG | 0666, 0));
    ERR(EACCES, mknod("out/chr", S_IFCHR | 0666, 0));
    ERR(EACCES, symlink("x", "out/link"));
    ERR(EACCES, open("out/new", O_CREAT | O_WRONLY, 0666));
    close(OK(open("out/file", O_CREAT | O_WRONLY, 0666)));
    ERR(EACCES, unlink("out/file"));
    ERR(EACCES, rmdir("out/gone"));
    ERR(ENOENT, unlink("out/none"));
    ERR(EACCES, rmdir("out/file"));
    ERR(EACCES, bind(s, (void *)&un, sizeof(un)));
    strcpy(un.sun_path, "in/sock");
    OK(bind(s, (void *)&un, sizeof(un)));
    OK(mkdir("in/dir", 0777));
    OK(mkfifo("in/fifo", 0666));
    OK(mknod("in/reg", S_IFREG | 0666, 0));
    OK(symlink("x", "in/newlink"));
    close(OK(open("in/new", O_CREAT | O_WRONLY, 0666)));
    OK(unlink("in/file"));
    OK(rmdir("in/gone"));
    /* A name in the same directory needs both rights there. */
    OK(rename("in/reg", "in/moved"));
    OK(link("in/moved", "in/again"));
    ERR(EACCES, rename("out/file", "out/moved"));
    ERR(EACCES, link("out/file", "out/again"));
}

TEST(truncation)
{
    if (!have())
        return;
    tree();
    int before = OK(open("out/file", O_RDWR));
    int set = ruleset(WRITE_FILE | TRUNCATE, 0, 0);
    allow(set, "in", WRITE_FILE | TRUNCATE);
    allow(set, "out", WRITE_FILE);
    enforce(set);
    OK(truncate("in/file", 1));
    close(OK(open("in/file", O_WRONLY | O_TRUNC)));
    ERR(EACCES, truncate("out/file", 1));
    ERR(EACCES, open("out/file", O_WRONLY | O_TRUNC));
    ERR(EACCES, open("out/file", O_RDONLY | O_TRUNC));
    ERR(EACCES, creat("out/file", 0666));
    close(OK(creat("out/new", 0666)));
    int fd = OK(open("out/file", O_WRONLY));
    ERR(EACCES, ftruncate(fd, 0));
    OK(ftruncate(before, 1));
    struct stat st;
    OK(stat("out/file", &st));
    EQ(st.st_size, 1);
}

TEST(device_ioctls)
{
    if (!have())
        return;
    int before = OK(open("/dev/null", O_RDWR)), n = 0;
    int set = ruleset(IOCTL_DEV, 0, 0);
    enforce(set);
    int fd = OK(open("/dev/null", O_RDWR));
    ERR(EACCES, ioctl(fd, FIONREAD, &n));
    ERR(ENOTTY, ioctl(before, FIONREAD, &n));
    OK(ioctl(fd, FIONBIO, &n));
    OK(ioctl(fd, FIOCLEX));
    int p[2];
    OK(pipe(p));
    OK(ioctl(p[0], FIONREAD, &n));
}

TEST(moves_between_directories)
{
    const uint64_t usual = MAKE_REG | REMOVE_FILE | MAKE_DIR | REMOVE_DIR;
    if (!have())
        return;
    tree();
    OK(mkdir("same", 0777));
    OK(mkdir("less", 0777));
    OK(mkdir("none", 0777));
    guest_write_file("same/file", "x");
    guest_write_file("none/file", "x");
    /* A layer that does not name REFER refuses all moves. */
    EXITED(IN_CHILD({
               int set = ruleset(MAKE_BLOCK, 0, 0);
               enforce(set);
               ERR(EXDEV, rename("in/file", "out/x"));
               ERR(EXDEV, link("in/file", "out/x"));
               OK(rename("in/file", "in/x"));
               OK(rename("in/x", "in/file"));
           }),
           0);
    int set = ruleset(usual | REFER | READ_FILE, 0, 0);
    allow(set, "in", usual | REFER);
    allow(set, "same", usual | REFER);
    allow(set, "out", usual | REFER | READ_FILE);
    allow(set, "less", usual);
    enforce(set);
    OK(rename("in/file", "same/moved"));
    OK(link("same/moved", "in/file"));
    ERR(EXDEV, rename("in/file", "out/moved")); /* it could be read there */
    ERR(EXDEV, rename("in/file", "less/moved"));
    ERR(EXDEV, link("in/file", "less/moved"));
    ERR(EACCES, rename("in/file", "none/moved"));
    ERR(EACCES, rename("none/file", "in/moved"));
    ERR(EACCES, link("in/file", "none/moved"));
    OK(rename("out/file", "in/fromout"));
    OK(rename("in/sub", "same/sub"));
    ERR(EACCES, syscall(SYS_renameat2, AT_FDCWD, "in/fromout", AT_FDCWD, "out", 2));
    guest_write_file("out/other", "x");
    ERR(EXDEV, syscall(SYS_renameat2, AT_FDCWD, "in/fromout", AT_FDCWD, "out/other", 2));
    OK(syscall(SYS_renameat2, AT_FDCWD, "in/fromout", AT_FDCWD, "same/file", 2));
    OK(rename("same/sub/file", "same/up"));
}

TEST(execution)
{
    if (!have())
        return;
    int set = ruleset(EXECUTE, 0, 0);
    allow(set, "/tmp", EXECUTE);
    enforce(set);
    ERR(EACCES, execl("/proc/self/exe", "test", NULL));
    ERR(EACCES, execl("/test", "test", NULL));
}

TEST(mounts_stay)
{
    if (!have())
        return;
    guest_tmpdir();
    OK(mkdir("m", 0777));
    OK(mount("none", "m", "tmpfs", 0, NULL));
    enforce(ruleset(READ_FILE, 0, 0));
    ERR(EPERM, umount2("m", MNT_DETACH));
    ERR(EPERM, mount(NULL, "m", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL));
    ERR(EPERM, mount("/proc", "m", NULL, MS_BIND, NULL));
    ERR(EPERM, mount("none", ".", "tmpfs", 0, NULL));
}

static int tcp(void)
{
    return OK(socket(AF_INET, SOCK_STREAM, 0));
}

static int call_tcp(bool connects, int fd, uint16_t port)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    return connects ? connect(fd, (void *)&in, sizeof(in)) : bind(fd, (void *)&in, sizeof(in));
}

TEST(ports)
{
    if (!have())
        return;
    struct port_attr a = {BIND_TCP, 4001}, b = {CONNECT_TCP, 4002};
    int set = ruleset(0, BIND_TCP | CONNECT_TCP, 0);
    OK(LL(ADD_RULE, set, 2, &a, 0));
    OK(LL(ADD_RULE, set, 2, &b, 0));
    int l = tcp(), on = 1;
    setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    OK(call_tcp(false, l, 4002));
    OK(listen(l, 1));
    enforce(set);
    ERR(EACCES, call_tcp(false, tcp(), 4000));
    ERR(EACCES, call_tcp(false, tcp(), 0));
    OK(call_tcp(false, tcp(), 4001));
    OK(call_tcp(true, tcp(), 4002));
    ERR(EACCES, call_tcp(true, tcp(), 4001));
    struct sockaddr un = {.sa_family = AF_UNSPEC};
    ERR(EINVAL, connect(tcp(), &un, 1));
    OK(connect(tcp(), &un, 16));
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(4000)};
    ERR(EINVAL, bind(tcp(), (void *)&in6, sizeof(in6)));
    /* Datagrams are not concerned. */
    int u = OK(socket(AF_INET, SOCK_DGRAM, 0));
    OK(call_tcp(false, u, 4005));
    enforce(ruleset(0, BIND_TCP, 0));
    ERR(EACCES, call_tcp(false, tcp(), 4001));
    OK(call_tcp(true, tcp(), 4002));
}

static socklen_t abstract(struct sockaddr_un *un, const char *name)
{
    *un = (struct sockaddr_un){.sun_family = AF_UNIX};
    strcpy(un->sun_path + 1, name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
}

TEST(abstract_names)
{
    if (!have())
        return;
    struct sockaddr_un un;
    char name[32];
    guest_tmpdir();
    snprintf(name, sizeof(name), "landlock-%d", getpid());
    socklen_t size = abstract(&un, name);
    int l = OK(socket(AF_UNIX, SOCK_STREAM, 0)), d = OK(socket(AF_UNIX, SOCK_DGRAM, 0));
    int early = OK(socket(AF_UNIX, SOCK_DGRAM, 0));
    OK(bind(l, (void *)&un, size));
    OK(listen(l, 5));
    OK(bind(d, (void *)&un, size));
    OK(connect(early, (void *)&un, size));
    enforce(ruleset(0, 0, SCOPE_ABSTRACT));
    int s = OK(socket(AF_UNIX, SOCK_STREAM, 0)), g = OK(socket(AF_UNIX, SOCK_DGRAM, 0));
    ERR(EPERM, connect(s, (void *)&un, size));
    ERR(EPERM, connect(g, (void *)&un, size));
    ERR(EPERM, sendto(g, "x", 1, 0, (void *)&un, size));
    EQ(OK(send(early, "x", 1, 0)), 1);
    /* Inside all is well, also from deeper domains; path names are free. */
    snprintf(name, sizeof(name), "landlock-in-%d", getpid());
    size = abstract(&un, name);
    int l2 = OK(socket(AF_UNIX, SOCK_STREAM, 0));
    OK(bind(l2, (void *)&un, size));
    OK(listen(l2, 5));
    OK(connect(s, (void *)&un, size));
    EXITED(IN_CHILD({
               enforce(ruleset(READ_FILE, 0, 0));
               OK(connect(OK(socket(AF_UNIX, SOCK_STREAM, 0)), (void *)&un, size));
               enforce(ruleset(0, 0, SCOPE_ABSTRACT));
               ERR(EPERM, connect(OK(socket(AF_UNIX, SOCK_STREAM, 0)), (void *)&un, size));
           }),
           0);
    int l3 = OK(socket(AF_UNIX, SOCK_DGRAM, 0));
    struct sockaddr_un path = {AF_UNIX, "sock"};
    OK(bind(l3, (void *)&path, sizeof(path)));
    EXITED(IN_CHILD({
               enforce(ruleset(0, 0, SCOPE_ABSTRACT));
               OK(connect(OK(socket(AF_UNIX, SOCK_DGRAM, 0)), (void *)&path, sizeof(path)));
           }),
           0);
}

TEST(signals)
{
    if (!have())
        return;
    pid_t parent = getpid();
    EXITED(IN_CHILD({
               pid_t inner;
               OK(kill(parent, 0));
               enforce(ruleset(0, 0, SCOPE_SIGNAL));
               ERR(EPERM, kill(parent, 0));
               ERR(EPERM, kill(parent, SIGCONT));
               OK(kill(getpid(), 0));
               OK(raise(SIGCONT));
               inner = OK(fork());
               if (!inner) {
                   OK(kill(getppid(), 0));
                   enforce(ruleset(READ_FILE, 0, 0));
                   OK(kill(getppid(), 0));
                   pause();
               }
               OK(kill(inner, SIGKILL));
               KILLED(({ int st; OK(waitpid(inner, &st, 0)); st; }), SIGKILL);
           }),
           0);
}

TEST(signals_from_files)
{
    if (!have())
        return;
    struct timespec none = {0, 0}, some = {5, 0};
    pid_t parent = getpid();
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGIO);
    OK(sigprocmask(SIG_BLOCK, &set, NULL));
    for (int scoped = 0; scoped < 2; scoped++) {
        EXITED(IN_CHILD({
                   int p[2];
                   if (scoped)
                       enforce(ruleset(0, 0, SCOPE_SIGNAL));
                   OK(pipe(p));
                   OK(fcntl(p[0], F_SETOWN, parent));
                   OK(fcntl(p[0], F_SETFL, O_ASYNC));
                   EQ(write(p[1], "x", 1), 1);
                   OK(fcntl(p[0], F_SETOWN, getpid()));
                   EQ(write(p[1], "x", 1), 1);
                   EQ(sigtimedwait(&set, NULL, &some), SIGIO);
               }),
               0);
        if (scoped)
            ERR(EAGAIN, sigtimedwait(&set, NULL, &none));
        else
            EQ(sigtimedwait(&set, NULL, &none), SIGIO);
    }
}

TEST(tracing)
{
    if (!have())
        return;
    pid_t parent = getpid();
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/exe", parent);
    EXITED(IN_CHILD({
               char text[64];
               pid_t inner;
               OK(readlink(path, text, sizeof(text)));
               enforce(ruleset(MAKE_BLOCK, 0, 0));
               ERR(EACCES, readlink(path, text, sizeof(text)));
               struct iovec v = {text, 1};
               ERR(EPERM, process_vm_readv(parent, &v, 1, &v, 1, 0));
               OK(readlink("/proc/self/exe", text, sizeof(text)));
               inner = OK(fork());
               if (!inner) {
                   enforce(ruleset(MAKE_BLOCK, 0, 0));
                   pause();
               }
               snprintf(path, sizeof(path), "/proc/%d/exe", inner);
               OK(readlink(path, text, sizeof(text)));
               OK(kill(inner, SIGKILL));
           }),
           0);
}

TEST(modules)
{
    uint32_t size = 0;
    uint64_t ids[64];
    long r = syscall(461, ids, &size, 0);
    if (r == -1 && errno == ENOSYS)
        return;
    ERR(E2BIG, r == -1 ? (errno = E2BIG, r) : r);
    CHECK(size >= 8);
    size = sizeof(ids);
    ERR(EINVAL, syscall(461, ids, &size, 1));
    ERR(EFAULT, syscall(461, ids, NULL, 0));
    ERR(EFAULT, syscall(461, NULL, &size, 0));
    size = sizeof(ids);
    r = OK(syscall(461, ids, &size, 0));
    EQ(size, r * 8);
    unsigned found = 0;
    for (long i = 0; i < r; i++)
        found |= ids[i] == 100 ? 1U : ids[i] == 110 ? 2U : 0;
    EQ(found, have() ? 3 : 1);
    size = sizeof(ids);
    ERR(EINVAL, syscall(459, 0, ids, &size, 0));
    ERR(EINVAL, syscall(459, 100, ids, NULL, 0));
    ERR(EFAULT, syscall(459, 100, ids, (void *)1, 0));
    ERR(EINVAL, syscall(459, 100, NULL, &size, 1));
    ERR(EINVAL, syscall(459, 100, ids, &size, 2));
    ERR(EINVAL, syscall(460, 100, ids, 64, 1));
    ERR(EINVAL, syscall(460, 100, ids, 31, 0));
    ERR(E2BIG, syscall(460, 100, ids, 4097, 0));
}
