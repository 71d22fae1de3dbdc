/* SPDX-License-Identifier: Apache-2.0 */
/* Random, boundary and plausible values for the arguments of system calls. */
#include "tests/fuzz/fuzz_calls.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <mqueue.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <termios.h>
#include <unistd.h>

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

uint64_t values_random(uint64_t *seed)
{
    uint64_t z = (*seed += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

/* ---- what a program begins with ---- */

static void add_fd(struct values *v, int fd)
{
    for (int i = 0; i < VALUES_FDS && fd >= 0; i++)
        if (v->fds[i] < 0) {
            v->fds[i] = fd;
            return;
        }
}

static void add_pair(struct values *v, int ret, const int *fds)
{
    if (ret == 0) {
        add_fd(v, fds[0]);
        add_fd(v, fds[1]);
    }
}

static void setup_files(struct values *v)
{
    mkdir("d1", 0777);
    add_fd(v, open("f1", O_RDWR | O_CREAT, 0666));
    add_fd(v, open("d1/f2", O_RDWR | O_CREAT | O_APPEND, 0666));
    add_fd(v, open("d1", O_RDONLY | O_DIRECTORY));
    add_fd(v, open(".", O_PATH));
    if (v->fds[0] >= 0 && write(v->fds[0], v->arena, VALUES_PAGE) < 0)
        return;
    if (symlink("f1", "l1") < 0 || mkfifo("p1", 0666) < 0)
        return;
    add_fd(v, open("p1", O_RDWR | O_NONBLOCK));
}

static void setup_sockets(struct values *v)
{
    int pair[2];
    add_pair(v, socketpair(AF_UNIX, SOCK_STREAM, 0, pair), pair);
    add_pair(v, socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), pair);
    add_fd(v, socket(AF_UNIX, SOCK_DGRAM, 0));
    add_fd(v, socket(AF_INET, SOCK_STREAM, 0));
    add_fd(v, socket(AF_INET6, SOCK_DGRAM, 0));
    add_fd(v, socket(AF_NETLINK, SOCK_RAW, 0));
}

static void setup_others(struct values *v)
{
    int pair[2];
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    add_pair(v, pipe(pair), pair);
    add_fd(v, eventfd(1, EFD_NONBLOCK));
    add_fd(v, epoll_create1(0));
    add_fd(v, timerfd_create(CLOCK_MONOTONIC, 0));
    add_fd(v, signalfd(-1, &set, 0));
    add_fd(v, inotify_init1(IN_NONBLOCK));
    add_fd(v, memfd_create("m", MFD_ALLOW_SEALING));
    add_fd(v, (int)syscall(SYS_pidfd_open, getpid(), 0));
    add_fd(v, open("/dev/ptmx", O_RDWR | O_NOCTTY));
    add_fd(v, open("/proc/self/maps", O_RDONLY));
    add_fd(v, open("/proc/self/mem", O_RDWR));
    add_fd(v, open("/proc/self/ns/user", O_RDONLY));
    add_fd(v, (int)mq_open("/q", O_RDWR | O_CREAT, 0600, NULL));
}

void values_setup(struct values *v)
{
    for (int i = 0; i < VALUES_FDS; i++)
        v->fds[i] = -1;
    v->arena = mmap(NULL, VALUES_PAGES * VALUES_PAGE, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t seed = v->seed;
    for (size_t i = 0; i < VALUES_PAGES * VALUES_PAGE / 8; i++)
        ((uint64_t *)v->arena)[i] =
            values_below(&seed, 8) ? values_below(&seed, 1000) : values_random(&seed);
    setup_files(v);
    setup_sockets(v);
    setup_others(v);
    for (int i = 3; i < VALUES_PAGES; i += 4)
        mprotect(v->arena + i * VALUES_PAGE, VALUES_PAGE, i & 4 ? PROT_READ : PROT_NONE);
    v->pids[0] = getpid();
    v->pids[1] = getppid() == 1 ? 0 : getppid();
}

/* ---- numbers ---- */

static const int64_t boundaries[] = {
    0,
    1,
    2,
    3,
    4,
    7,
    8,
    9,
    16,
    31,
    32,
    63,
    64,
    65,
    100,
    127,
    128,
    255,
    256,
    511,
    512,
    1000,
    1023,
    1024,
    4095,
    4096,
    4097,
    8192,
    65535,
    65536,
    65537,
    1 << 20,
    999999999,
    1000000000,
    INT32_MAX - 1,
    INT32_MAX,
    1L << 31,
    (1L << 31) + 1,
    UINT32_MAX,
    1L << 32,
    INT64_MAX - 4095,
    INT64_MAX,
    INT64_MIN,
    INT32_MIN,
    -1,
    -2,
    -100,
    -4096,
};

static uint64_t pick_integer(uint64_t *seed)
{
    switch (values_below(seed, 8)) {
    case 0:
        return (uint64_t)boundaries[values_below(seed, LEN(boundaries))];
    case 1:
        return 1UL << values_below(seed, 64);
    case 2:
        return (1UL << values_below(seed, 32)) | (1UL << values_below(seed, 32)) |
               values_below(seed, 4);
    case 3:
        return values_random(seed);
    case 4:
        return 0;
    default:
        return values_below(seed, 48);
    }
}

static uint64_t pick_size(uint64_t *seed)
{
    switch (values_below(seed, 4)) {
    case 0:
        return (uint64_t)boundaries[values_below(seed, LEN(boundaries))];
    case 1:
        return values_below(seed, VALUES_PAGES) * VALUES_PAGE;
    case 2:
        return 8UL << values_below(seed, 6);
    default:
        return values_below(seed, 300);
    }
}

static uint64_t pick_ioctl(uint64_t *seed)
{
    static const unsigned ranges[] = {TCGETS, FIONREAD, TIOCGPTN, 0x8900, 0x8910,
                                      0x5450, 0xb700,   0x4c00,   0x1260};
    if (values_below(seed, 8) == 0)
        return values_random(seed);
    return ranges[values_below(seed, LEN(ranges))] + values_below(seed, 40);
}

/* ---- memory ---- */

static uint64_t pick_memory(struct values *v, uint64_t *seed)
{
    uint8_t *page = v->arena + values_below(seed, VALUES_PAGES) * VALUES_PAGE;
    switch (values_below(seed, 24)) {
    case 0:
        return 0;
    case 1:
        return (uint64_t)boundaries[values_below(seed, LEN(boundaries))];
    case 2: /* before the end of a page whose successor may be missing */
        return (uint64_t)page + VALUES_PAGE - values_below(seed, 65);
    case 3:
        return 0x7fff00000000 + values_below(seed, 1UL << 32);
    case 4:
        return (uint64_t)page + values_below(seed, VALUES_PAGE);
    case 5: /* code of this program, or what a thread runs on */
        return values_below(seed, 2) ? (uint64_t)(uintptr_t)&pick_memory
                                     : (uint64_t)(uintptr_t)&page;
    default:
        return (uint64_t)page + values_below(seed, 64) * 64;
    }
}

static bool may_write(const struct values *v, uint64_t at)
{
    uint64_t off = at - (uint64_t)v->arena;
    return off < (VALUES_PAGES - 1) * VALUES_PAGE && (off / VALUES_PAGE) % 4 < 2 && off % 8 == 0;
}

/* Small numbers, descriptors, pointers: what structures are made of. */
static void fill(struct values *v, uint64_t *seed, uint64_t at)
{
    if (!may_write(v, at))
        return;
    for (size_t i = 0; i < 12; i++) {
        volatile uint64_t *word = (volatile uint64_t *)at + i;
        switch (values_below(seed, 6)) {
        case 0:
            *word = pick_memory(v, seed);
            break;
        case 1:
            *word = (uint32_t)v->fds[values_below(seed, VALUES_FDS)] | values_below(seed, 64) << 32;
            break;
        case 2:
            *word = pick_integer(seed);
            break;
        case 3:
            *word = 0;
            break;
        default:
            *word = values_below(seed, 20);
        }
    }
}

static uint64_t pick_iovec(struct values *v, uint64_t *seed)
{
    uint64_t at = pick_memory(v, seed);
    if (!may_write(v, at))
        return at;
    for (size_t i = 0; i < 6; i++) {
        volatile struct iovec *iov = (volatile struct iovec *)at + i;
        iov->iov_base = (void *)pick_memory(v, seed);
        iov->iov_len = pick_size(seed);
    }
    return at;
}

/* ---- names, descriptors, processes ---- */

static const char *const names[] = {
    "",
    ".",
    "..",
    "/",
    "f1",
    "d1",
    "d1/f2",
    "l1",
    "l1/",
    "p1",
    "d1/..",
    "d1/new",
    "new",
    "s1",
    "user.x",
    "trusted.overlay.opaque",
    "security.capability",
    "system.posix_acl_access",
    "tmpfs",
    "proc",
    "mqueue",
    "overlay",
    "lowerdir=d1,upperdir=d1,workdir=.",
    "q",
    "/dev/null",
    "/dev/full",
    "/dev/ptmx",
    "/dev/tty",
    "/dev/pts/0",
    "/dev/shm/x",
    "/dev/mqueue/q",
    "/proc/self/mem",
    "/proc/self/maps",
    "/proc/self/smaps",
    "/proc/self/fd",
    "/proc/self/fd/3",
    "/proc/self/fdinfo/5",
    "/proc/self/task",
    "/proc/self/ns/mnt",
    "/proc/self/status",
    "/proc/self/exe",
    "/proc/self/uid_map",
    "/proc/self/environ",
    "/proc/self/oom_score_adj",
    "/proc/mounts",
    "/proc/self/mountinfo",
    "/proc/sys/kernel/hostname",
    "/proc/net/tcp",
    "/proc/stat",
    "/sys/kernel",
    "/etc/passwd",
    "/proc/self/cwd/f1",
    "/proc/self/root/tmp",
    "/proc/thread-self/comm",
    "nodev,size=4k",
};

static uint64_t pick_name(struct values *v, uint64_t *seed)
{
    static char longest[2][5000];
    switch (values_below(seed, 16)) {
    case 0:
        return pick_memory(v, seed);
    case 1:
        memset(longest[0], 'n', sizeof(longest[0]));
        return (uint64_t)longest[0] + sizeof(longest[0]) - 254 - values_below(seed, 4);
    case 2:
        for (size_t i = 0; i + 2 < sizeof(longest[1]); i += 2)
            memcpy(longest[1] + i, "./", 2);
        return (uint64_t)longest[1] + values_below(seed, sizeof(longest[1]));
    default:
        return (uint64_t)names[values_below(seed, LEN(names))];
    }
}

static uint64_t pick_fd(struct values *v, uint64_t *seed)
{
    switch (values_below(seed, 16)) {
    case 0:
        return (uint64_t)boundaries[values_below(seed, LEN(boundaries))];
    case 1:
        return (uint64_t)(int64_t)AT_FDCWD;
    case 2:
    case 3:
        return values_below(seed, 48);
    default:
        return (uint64_t)(int64_t)v->fds[values_below(seed, VALUES_FDS)];
    }
}

static uint64_t pick_pid(struct values *v, uint64_t *seed)
{
    if (values_below(seed, 8) == 0)
        return (uint64_t)-values_below(seed, 3);
    return (uint64_t)(v->pids[values_below(seed, 4)] +
                      (values_below(seed, 6) ? 0 : 1 + (int64_t)values_below(seed, 3)));
}

static uint64_t pick_clone_flags(uint64_t *seed)
{
    static const uint64_t sets[] = {
        SIGCHLD,
        CLONE_VM | CLONE_VFORK | SIGCHLD,
        CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM,
        CLONE_FILES | SIGCHLD,
        CLONE_NEWUSER | CLONE_NEWPID | SIGCHLD,
        CLONE_NEWNS | SIGCHLD,
        CLONE_PIDFD | SIGCHLD,
        CLONE_PARENT,
    };
    uint64_t flags = sets[values_below(seed, LEN(sets))];
    return values_below(seed, 3) ? flags : flags ^ 1UL << values_below(seed, 34);
}

uint64_t values_pick(struct values *v, uint64_t *seed, const struct call *c, int arg)
{
    if (!strcmp(c->name, "ioctl") && arg == 1)
        return pick_ioctl(seed);
    if (!strcmp(c->name, "ioctl") && arg == 2 && values_below(seed, 2))
        return pick_memory(v, seed);
    if ((!strcmp(c->name, "clone") || !strcmp(c->name, "unshare")) && arg == 0)
        return pick_clone_flags(seed);
    if (!strcmp(c->name, "fcntl") && arg == 1)
        return values_below(seed, 17) + (values_below(seed, 2) ? F_DUPFD_CLOEXEC - 6 : 0);
    uint64_t value;
    switch (c->args[arg]) {
    case 'F':
        return pick_fd(v, seed);
    case 'P':
        return pick_pid(v, seed);
    case 'S':
        return values_below(seed, 16) ? values_below(seed, 66) : pick_integer(seed);
    case 'O':
        return values_below(seed, 4) ? (values_below(seed, 4) | 1UL << values_below(seed, 24) |
                                        1UL << values_below(seed, 24))
                                     : pick_integer(seed);
    case 'Z':
        return pick_size(seed);
    case 'N':
        return pick_name(v, seed);
    case 'V':
        return pick_iovec(v, seed);
    case 'M':
        value = pick_memory(v, seed);
        if (values_below(seed, 2))
            fill(v, seed, value);
        return value;
    default:
        /* Many structures and names hide behind a plain word. */
        return values_below(seed, 24) ? pick_integer(seed) : pick_memory(v, seed);
    }
}
