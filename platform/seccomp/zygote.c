/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the zygote. The child only makes host calls between fork and the jump into the stub. */
#include "platform/seccomp/zygote.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "platform/base/log.h"
#include "platform/seccomp/stub_abi.h"
#include "platform/seccomp/stub_blob.h"
#include "platform/seccomp/trapbpf.h"

enum {
    ZYGOTE_NOFILE = 4096 + 64,  /* injected descriptors live for one call, but every thread may be in one */
    ZYGOTE_GETFD_TRIES = 20000, /* times 50 µs */
    ZYGOTE_MAPS_MAX = 1 << 20,
};

/* Names the step that failed, sent by the child over its pipe. */
struct zygote_failure {
    int step, err;
};
enum { STEP_READY, STEP_CAPS, STEP_LIMITS, STEP_MEMORY, STEP_SIGNALS, STEP_NNP, STEP_FILTER, STEP_FDS,
       STEP_RSEQ, STEP_SESSION };
static const char *const zygote_steps[] = {
    "ready", "drop capabilities", "set limits", "map the stub", "set signal handlers",
    "set no_new_privs", "install the seccomp filter with a listener", "close descriptors",
    "unregister the rseq area", "make a session",
};

struct kernel_sigaction {
    uint64_t handler, flags, restorer, mask;
};

static const struct stub_header *zygote_header(void)
{
    return (const struct stub_header *)stub_blob_start;
}

/* Random, 1 MiB-aligned, below what the host uses for stack and vDSO, above all else. */
static uint64_t zygote_pick_zone(void)
{
    uint32_t r;
    host_random(&r, sizeof(r));
    return 0x7e0000000000UL + ((uint64_t)(r & 0xfffff) << 20);
}

static uint64_t zygote_zone_top(void)
{
    return STUB_ADDRESS_TOP;
}

/* The vDSO with its data pages, whose number depends on the host kernel: neighbours in the list of mappings. What
 * else may lie beside it (the stack, with the caller's environment) is none of the guests' business. */
static int zygote_find_vdso(int proc_fd, uint64_t *ret_start, uint64_t *ret_end)
{
    CLEANUP_FREE char *text = NULL;
    int err = proc_fd >= 0 ? host_read_file(proc_fd, "self/maps", ZYGOTE_MAPS_MAX, &text, NULL)
                           : host_read_file(AT_FDCWD, "/proc/self/maps", ZYGOTE_MAPS_MAX, &text, NULL);
    if (err < 0)
        return err;
    uint64_t first = 0, last = 0;
    for (char *line = text, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        uint64_t start, end;
        if (!strstr(line, "[vdso]") && !strstr(line, "[vvar"))
            continue;
        if (sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end) != 2 || (last && start != last))
            return -EINVAL;
        first = first ? first : start;
        last = end;
    }
    *ret_start = last ? first : zygote_zone_top() - PAGE_SIZE;
    *ret_end = last ? last : zygote_zone_top() - PAGE_SIZE;
    return 0;
}

/* Text and constants in one sealed memory file. Return: fd or −errno. */
static int zygote_text_file(const struct stub_config *config)
{
    size_t size = (size_t)(stub_blob_end - stub_blob_start);
    CLEANUP_CLOSE int fd = (int)host_ret(memfd_create("stub", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (fd < 0)
        return fd;
    if (size > STUB_TEXT_SIZE || ftruncate(fd, STUB_CONFIG_OFF + PAGE_SIZE) < 0)
        return -ENOMEM;
    if (pwrite(fd, stub_blob_start, size, 0) != (ssize_t)size ||
        pwrite(fd, config, sizeof(*config), STUB_CONFIG_OFF) != (ssize_t)sizeof(*config))
        return -EIO;
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
        return -errno;
    return TAKE_FD(fd);
}

static int zygote_map_at(uint64_t addr, uint64_t size, int prot, int flags, int fd, uint64_t off)
{
    void *p = mmap((void *)addr, size, prot, flags | MAP_PRIVATE | MAP_FIXED_NOREPLACE, fd, (off_t)off);
    return p == (void *)addr ? 0 : -errno;
}

/* Lays out the zone below the vDSO: blanket, text, constants, process data, slot 0. */
static int zygote_map_zone(uint64_t zone, int text_fd)
{
    const int anon = MAP_ANONYMOUS | MAP_NORESERVE;
    uint64_t slot = zone + STUB_SLOTS_OFF;
    int err = zygote_map_at(zone, STUB_TEXT_SIZE, PROT_READ | PROT_EXEC, 0, text_fd, 0);
    if (!err)
        err = zygote_map_at(zone + STUB_CONFIG_OFF, PAGE_SIZE, PROT_READ, 0, text_fd, STUB_CONFIG_OFF);
    if (!err)
        err = zygote_map_at(zone + STUB_CONFIG_OFF + PAGE_SIZE, STUB_PROC_OFF - STUB_CONFIG_OFF - PAGE_SIZE,
                            PROT_NONE, anon, -1, 0);
    if (!err)
        err = zygote_map_at(zone + STUB_PROC_OFF, PAGE_SIZE, PROT_READ | PROT_WRITE, anon, -1, 0);
    if (!err)
        err = zygote_map_at(zone + STUB_PROC_OFF + PAGE_SIZE,
                            STUB_SLOTS_OFF - STUB_PROC_OFF - PAGE_SIZE + STUB_STACK_OFF, PROT_NONE, anon,
                            -1, 0);
    if (!err)
        err = zygote_map_at(slot + STUB_STACK_OFF, STUB_MBOX_OFF - STUB_STACK_OFF, PROT_READ | PROT_WRITE,
                            anon, -1, 0);
    if (!err)
        err = zygote_map_at(slot + STUB_MBOX_OFF, STUB_ZONE_SIZE - STUB_SLOTS_OFF - STUB_MBOX_OFF, PROT_NONE,
                            anon, -1, 0);
    if (err)
        return err;
    ((struct stub_proc *)(zone + STUB_PROC_OFF))->slots_used = 1;
    return 0;
}

static int zygote_set_signals(uint64_t zone)
{
    static const int signals[] = {SIGSYS, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, STUB_KICK_SIGNAL};
    struct kernel_sigaction act = {0};
    for (int sig = 1; sig <= 64; sig++)
        if (sig != SIGKILL && sig != SIGSTOP)
            syscall(SYS_rt_sigaction, sig, &act, NULL, 8);
    act = (struct kernel_sigaction){
        .handler = zone + zygote_header()->handler,
        .restorer = zone + zygote_header()->restorer,
        .flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART | SA_NODEFER | 0x04000000 /* SA_RESTORER */,
    };
    for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
        if (syscall(SYS_rt_sigaction, signals[i], &act, NULL, 8) < 0)
            return -errno;
    /* The host reaps guest processes; nobody waits for them. */
    act = (struct kernel_sigaction){.handler = (uint64_t)SIG_IGN};
    if (syscall(SYS_rt_sigaction, SIGCHLD, &act, NULL, 8) < 0)
        return -errno;
    uint64_t none = 0;
    return (int)host_ret(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, 8));
}

static int zygote_drop_caps(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{0}};
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    if (syscall(SYS_capset, &header, data) < 0)
        return -errno;
    /* The sentry, of the same uid, reads and writes guest memory: it must be dumpable. */
    return (int)host_ret(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
}

static int zygote_set_limits(void)
{
    /* A core limit of 1 and not 0: with 0 a piped core_pattern would still run its helper as host root. */
    const struct rlimit core = {1, 1}, nofile = {ZYGOTE_NOFILE, ZYGOTE_NOFILE};
    if (setrlimit(RLIMIT_CORE, &core) < 0 || setrlimit(RLIMIT_NOFILE, &nofile) < 0)
        return -errno;
    return 0;
}

NORETURN static void zygote_fail(int pipe_fd, int step, int err)
{
    struct zygote_failure f = {.step = step, .err = err};
    ssize_t n = write(pipe_fd, &f, sizeof(f));
    (void)n;
    _exit(1);
}

/* Leaves for the stub on slot 0's stack. */
NORETURN static void zygote_enter(uint64_t zone)
{
    uint64_t stack = zone + STUB_SLOTS_OFF + STUB_STACK_OFF + STUB_STACK_SIZE - 64;
    uint64_t entry = zone + zygote_header()->zygote;
    __asm__ volatile("mov %0, %%rsp\n\txor %%ebp, %%ebp\n\tjmp *%1" ::"r"(stack), "r"(entry), "D"(zone)
                     : "memory");
    __builtin_unreachable();
}

/* The C library has registered an rseq area with the host, which would fault once the area is unmapped. */
static int zygote_drop_rseq(void)
{
    if (__rseq_size == 0)
        return 0;
    char *area = (char *)__builtin_thread_pointer() + __rseq_offset;
    return (int)host_ret(syscall(SYS_rseq, area, MAX(__rseq_size, 32u), RSEQ_FLAG_UNREGISTER, RSEQ_SIG));
}

/* Not for ASan, which makes host calls of its own before a call that does not return: behind the filter they would trap. */
__attribute__((no_sanitize("address"))) NORETURN static void zygote_child(int pipe_fd, int text_fd, const struct stub_config *config)
{
    int err = zygote_map_zone(config->zone, text_fd);
    if (err)
        zygote_fail(pipe_fd, STEP_MEMORY, err);
    /* A session of its own: no terminal of the host reaches guest processes, and it tells them from others. */
    if (setsid() < 0)
        zygote_fail(pipe_fd, STEP_SESSION, -errno);
    if ((err = zygote_set_signals(config->zone)))
        zygote_fail(pipe_fd, STEP_SIGNALS, err);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        zygote_fail(pipe_fd, STEP_NNP, -errno);
    if ((err = zygote_drop_caps()))
        zygote_fail(pipe_fd, STEP_CAPS, err);
    if ((err = zygote_drop_rseq()))
        zygote_fail(pipe_fd, STEP_RSEQ, err);
    struct sock_filter prog[TRAPBPF_MAX];
    const struct stub_header *h = zygote_header();
    unsigned len = trapbpf_build(config->zone + h->ip_general, config->zone + h->ip_sigreturn,
                                 config->zone + h->ip_futex, prog);
    /* Descriptor 1: the pipe; all others go, so that the listener becomes descriptor 0. */
    if (dup2(pipe_fd, 1) < 0 || close(0) < 0 || syscall(SYS_close_range, 2, ~0u, 0) < 0)
        zygote_fail(pipe_fd, STEP_FDS, -errno);
    if ((err = zygote_set_limits()))
        zygote_fail(1, STEP_LIMITS, err);
    struct zygote_failure ready = {.step = STEP_READY};
    if (write(1, &ready, sizeof(ready)) != sizeof(ready))
        _exit(1);
    struct sock_fprog fprog = {.len = (unsigned short)len, .filter = prog};
    long fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &fprog);
    if (fd != 0)
        zygote_fail(1, STEP_FILTER, fd < 0 ? -errno : -EMFILE);
    zygote_enter(config->zone);
}

/* Fetches descriptor 0 of the child once the filter is in force. */
static int zygote_take_listener(pid_t pid, int pipe_fd)
{
    CLEANUP_CLOSE int pidfd = (int)host_ret(syscall(SYS_pidfd_open, pid, 0));
    if (pidfd < 0)
        return pidfd;
    for (int i = 0; i < ZYGOTE_GETFD_TRIES; i++) {
        int fd = (int)host_ret(syscall(SYS_pidfd_getfd, pidfd, 0, 0));
        if (fd >= 0 || fd != -EBADF)
            return fd;
        struct timespec pause = {.tv_nsec = 50000};
        nanosleep(&pause, NULL);
    }
    return -ETIMEDOUT;
}

static int zygote_handshake(struct errmsg *e, pid_t pid, int pipe_fd, int *ret_listener)
{
    struct zygote_failure f;
    if (host_read_all(pipe_fd, &f, sizeof(f)) < 0)
        return errmsg_set(e, -ESRCH, "zygote: ended before it was ready");
    if (f.step != STEP_READY)
        return errmsg_set(e, f.err, "zygote: %s: %s",
                          (size_t)f.step < ARRAY_SIZE(zygote_steps) ? zygote_steps[f.step] : "start",
                          strerror(-f.err));
    int fd = zygote_take_listener(pid, pipe_fd);
    if (fd < 0) {
        /* The filter step reports after "ready". */
        fcntl(pipe_fd, F_SETFL, O_NONBLOCK);
        if (read(pipe_fd, &f, sizeof(f)) == sizeof(f))
            return errmsg_set(e, f.err, "zygote: %s: %s", zygote_steps[STEP_FILTER], strerror(-f.err));
        return errmsg_set(e, fd, "zygote: take the seccomp listener: %s", strerror(-fd));
    }
    *ret_listener = fd;
    return 0;
}

static int zygote_try_spawn(int proc_fd, struct errmsg *e, struct zygote *ret_zygote)
{
    struct stub_config config = {.zone = zygote_pick_zone(), .zone_top = zygote_zone_top()};
    if (zygote_header()->magic != STUB_MAGIC)
        return errmsg_set(e, -ENOEXEC, "zygote: the stub image is damaged");
    int err = zygote_find_vdso(proc_fd, &config.vdso_start, &config.vdso_end);
    if (err < 0)
        return errmsg_set(e, err, "zygote: find the vDSO: %s", strerror(-err));
    config.fsgsbase = (getauxval(AT_HWCAP2) & 2) != 0;
    CLEANUP_CLOSE int text_fd = zygote_text_file(&config);
    if (text_fd < 0)
        return errmsg_set(e, text_fd, "zygote: make the stub's memory file: %s", strerror(-text_fd));
    int pipe_fds[2];
    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        return errmsg_set(e, -errno, "zygote: pipe: %s", strerror(errno));
    pid_t pid = fork();
    if (pid == 0)
        zygote_child(pipe_fds[1], text_fd, &config);
    err = pid < 0 ? errmsg_set(e, -errno, "zygote: fork: %s", strerror(errno)) : 0;
    close(pipe_fds[1]);
    if (!err)
        err = zygote_handshake(e, pid, pipe_fds[0], &ret_zygote->listener);
    close(pipe_fds[0]);
    if (err && pid > 0) {
        int status = 0;
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
        if (err == -ESRCH)
            log_warn("%s (wait status %#x)", e->text, (unsigned)status);
    }
    if (err)
        return err;
    ret_zygote->pid = pid;
    ret_zygote->zone = config.zone;
    ret_zygote->vdso = getauxval(AT_SYSINFO_EHDR);
    return 0;
}

int zygote_spawn(int proc_fd, struct errmsg *e, struct zygote *ret_zygote)
{
    int err;
    /* The random zone may meet a mapping of this process: then another place is tried. */
    for (int i = 0; i < 8; i++) {
        err = zygote_try_spawn(proc_fd, e, ret_zygote);
        /* ESRCH: something has ended the new process before it did anything, the host out of memory for one. */
        if (err != -EEXIST && err != -ESRCH)
            break;
    }
    return err;
}
