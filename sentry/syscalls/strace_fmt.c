/* SPDX-License-Identifier: Apache-2.0 */
/* Shows one argument of a traced call: numbers, flags by name, strings, structures. */
#include "sentry/syscalls/strace.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <asm/prctl.h>
#include <netinet/in.h>
#include <time.h>
#include <unistd.h>

#include "sentry/abi/abi_errno.h"
#include "sentry/kernel/signal.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/usermem.h"
#include "sentry/syscalls/syscall_table.h"

enum { SHOW_BYTES = 48, SHOW_HEX = 32, SHOW_PATH = 256, SHOW_ITEMS = 16 };

/* Without pointers, so that these tables need no relocation when the sentry starts. */
struct name {
    uint32_t value;
    char name[28];
};

#define N(x) {(uint32_t)(x), #x}
#define END {0, ""}

static const struct name open_names[] = {
    N(O_WRONLY), N(O_RDWR), N(O_CREAT), N(O_EXCL), N(O_NOCTTY), N(O_TRUNC), N(O_APPEND), N(O_NONBLOCK), N(O_SYNC),
    N(O_DSYNC), N(O_ASYNC), N(O_DIRECT), N(O_TMPFILE), N(O_DIRECTORY), N(O_NOFOLLOW), N(O_NOATIME), N(O_CLOEXEC),
    N(O_PATH), {0100000, "O_LARGEFILE"}, END};
static const struct name prot_names[] = {N(PROT_READ), N(PROT_WRITE), N(PROT_EXEC), N(PROT_GROWSDOWN), END};
static const struct name mmap_names[] = {
    N(MAP_SHARED_VALIDATE), N(MAP_SHARED), N(MAP_PRIVATE), N(MAP_FIXED), N(MAP_ANONYMOUS), N(MAP_GROWSDOWN),
    N(MAP_DENYWRITE), N(MAP_EXECUTABLE), N(MAP_LOCKED), N(MAP_NORESERVE), N(MAP_POPULATE), N(MAP_NONBLOCK),
    N(MAP_STACK), N(MAP_HUGETLB), N(MAP_FIXED_NOREPLACE), END};
static const struct name mremap_names[] = {N(MREMAP_MAYMOVE), N(MREMAP_FIXED), {4, "MREMAP_DONTUNMAP"}, END};
static const struct name msync_names[] = {N(MS_ASYNC), N(MS_INVALIDATE), N(MS_SYNC), END};
static const struct name clone_names[] = {
    N(CLONE_VM), N(CLONE_FS), N(CLONE_FILES), N(CLONE_SIGHAND), N(CLONE_PTRACE), N(CLONE_VFORK), N(CLONE_PARENT),
    N(CLONE_THREAD), N(CLONE_NEWNS), N(CLONE_SYSVSEM), N(CLONE_SETTLS), N(CLONE_PARENT_SETTID),
    N(CLONE_CHILD_CLEARTID), N(CLONE_DETACHED), N(CLONE_UNTRACED), N(CLONE_CHILD_SETTID), N(CLONE_NEWCGROUP),
    N(CLONE_NEWUTS), N(CLONE_NEWIPC), N(CLONE_NEWUSER), N(CLONE_NEWPID), N(CLONE_NEWNET), N(CLONE_IO), END};
static const struct name at_names[] = {
    N(AT_SYMLINK_NOFOLLOW), {AT_EACCESS, "AT_EACCESS"}, N(AT_SYMLINK_FOLLOW), N(AT_NO_AUTOMOUNT),
    N(AT_EMPTY_PATH), N(AT_RECURSIVE), END};
static const struct name at_remove_names[] = {N(AT_REMOVEDIR), END};
static const struct name access_names[] = {N(R_OK), N(W_OK), N(X_OK), END};
static const struct name whence_names[] = {N(SEEK_SET), N(SEEK_CUR), N(SEEK_END), N(SEEK_DATA), N(SEEK_HOLE), END};
static const struct name sighow_names[] = {N(SIG_BLOCK), N(SIG_UNBLOCK), N(SIG_SETMASK), END};
static const struct name wait_names[] = {
    N(WNOHANG), N(WUNTRACED), N(WEXITED), N(WCONTINUED), N(WNOWAIT), {0x40000000, "__WALL"},
    {0x80000000, "__WCLONE"}, END};
static const struct name idtype_names[] = {N(P_ALL), N(P_PID), N(P_PGID), {3, "P_PIDFD"}, END};
static const struct name itimer_names[] = {N(ITIMER_REAL), N(ITIMER_VIRTUAL), N(ITIMER_PROF), END};
static const struct name clockid_names[] = {
    N(CLOCK_REALTIME), N(CLOCK_MONOTONIC), N(CLOCK_PROCESS_CPUTIME_ID), N(CLOCK_THREAD_CPUTIME_ID),
    N(CLOCK_MONOTONIC_RAW), N(CLOCK_REALTIME_COARSE), N(CLOCK_MONOTONIC_COARSE), N(CLOCK_BOOTTIME),
    N(CLOCK_REALTIME_ALARM), N(CLOCK_BOOTTIME_ALARM), N(CLOCK_TAI), END};
static const struct name futex_names[] = {
    N(FUTEX_WAIT), N(FUTEX_WAKE), N(FUTEX_REQUEUE), N(FUTEX_CMP_REQUEUE), N(FUTEX_WAKE_OP), N(FUTEX_LOCK_PI),
    N(FUTEX_UNLOCK_PI), N(FUTEX_TRYLOCK_PI), N(FUTEX_WAIT_BITSET), N(FUTEX_WAKE_BITSET), N(FUTEX_WAIT_REQUEUE_PI),
    N(FUTEX_CMP_REQUEUE_PI), {13, "FUTEX_LOCK_PI2"}, END};
static const struct name madvise_names[] = {
    N(MADV_NORMAL), N(MADV_RANDOM), N(MADV_SEQUENTIAL), N(MADV_WILLNEED), N(MADV_DONTNEED), N(MADV_FREE),
    N(MADV_REMOVE), N(MADV_DONTFORK), N(MADV_DOFORK), N(MADV_HUGEPAGE), N(MADV_NOHUGEPAGE), N(MADV_DONTDUMP),
    N(MADV_DODUMP), N(MADV_WIPEONFORK), N(MADV_KEEPONFORK), N(MADV_COLD), N(MADV_PAGEOUT),
    N(MADV_POPULATE_READ), N(MADV_POPULATE_WRITE), END};
static const struct name domain_names[] = {
    N(AF_UNSPEC), N(AF_UNIX), N(AF_INET), N(AF_INET6), N(AF_NETLINK), N(AF_PACKET), N(AF_VSOCK), END};
static const struct name socktype_names[] = {
    N(SOCK_STREAM), N(SOCK_DGRAM), N(SOCK_RAW), N(SOCK_SEQPACKET), END};
static const struct name sockflag_names[] = {N(SOCK_NONBLOCK), N(SOCK_CLOEXEC), END};
static const struct name msg_names[] = {
    N(MSG_OOB), N(MSG_PEEK), N(MSG_DONTROUTE), N(MSG_CTRUNC), N(MSG_TRUNC), N(MSG_DONTWAIT), N(MSG_EOR),
    N(MSG_WAITALL), N(MSG_NOSIGNAL), N(MSG_MORE), N(MSG_WAITFORONE), N(MSG_CMSG_CLOEXEC), N(MSG_ERRQUEUE), END};
static const struct name epoll_op_names[] = {N(EPOLL_CTL_ADD), N(EPOLL_CTL_DEL), N(EPOLL_CTL_MOD), END};
static const struct name poll_names[] = {
    N(POLLIN), N(POLLPRI), N(POLLOUT), N(POLLERR), N(POLLHUP), N(POLLNVAL), N(POLLRDNORM), N(POLLWRNORM),
    N(POLLRDHUP), {1u << 31, "EPOLLET"}, {1u << 30, "EPOLLONESHOT"}, {1u << 28, "EPOLLEXCLUSIVE"}, END};
static const struct name fcntl_names[] = {
    N(F_DUPFD), N(F_GETFD), N(F_SETFD), N(F_GETFL), N(F_SETFL), N(F_GETLK), N(F_SETLK), N(F_SETLKW), N(F_SETOWN),
    N(F_GETOWN), N(F_SETSIG), N(F_GETSIG), N(F_DUPFD_CLOEXEC), N(F_SETPIPE_SZ), N(F_GETPIPE_SZ), N(F_ADD_SEALS),
    N(F_GET_SEALS), N(F_OFD_GETLK), N(F_OFD_SETLK), N(F_OFD_SETLKW), N(F_SETLEASE), N(F_GETLEASE), N(F_NOTIFY), END};
static const struct name flock_names[] = {N(LOCK_SH), N(LOCK_EX), N(LOCK_NB), N(LOCK_UN), END};
static const struct name ioctl_names[] = {
    {0x5401, "TCGETS"}, {0x5402, "TCSETS"}, {0x5403, "TCSETSW"}, {0x5404, "TCSETSF"}, {0x540b, "TCFLSH"},
    {0x540e, "TIOCSCTTY"}, {0x540f, "TIOCGPGRP"}, {0x5410, "TIOCSPGRP"}, {0x5413, "TIOCGWINSZ"},
    {0x5414, "TIOCSWINSZ"}, {0x541b, "FIONREAD"}, {0x5421, "FIONBIO"}, {0x5422, "TIOCNOTTY"},
    {0x5429, "TIOCGSID"}, {0x80045430, "TIOCGPTN"}, {0x40045431, "TIOCSPTLCK"}, {0x5441, "TIOCGPTPEER"},
    {0x5450, "FIONCLEX"}, {0x5451, "FIOCLEX"}, {0x40049409, "FICLONE"}, {0x80086601, "FS_IOC_GETFLAGS"}, END};
static const struct name rlimit_names[] = {
    N(RLIMIT_CPU), N(RLIMIT_FSIZE), N(RLIMIT_DATA), N(RLIMIT_STACK), N(RLIMIT_CORE), N(RLIMIT_RSS),
    N(RLIMIT_NPROC), N(RLIMIT_NOFILE), N(RLIMIT_MEMLOCK), N(RLIMIT_AS), N(RLIMIT_LOCKS), N(RLIMIT_SIGPENDING),
    N(RLIMIT_MSGQUEUE), N(RLIMIT_NICE), N(RLIMIT_RTPRIO), N(RLIMIT_RTTIME), END};
static const struct name prctl_names[] = {
    N(PR_SET_PDEATHSIG), N(PR_GET_PDEATHSIG), N(PR_GET_DUMPABLE), N(PR_SET_DUMPABLE), N(PR_GET_KEEPCAPS),
    N(PR_SET_KEEPCAPS), N(PR_SET_NAME), N(PR_GET_NAME), N(PR_GET_SECCOMP), N(PR_SET_SECCOMP), N(PR_CAPBSET_READ),
    N(PR_CAPBSET_DROP), N(PR_GET_SECUREBITS), N(PR_SET_SECUREBITS), N(PR_SET_TIMERSLACK), N(PR_GET_TIMERSLACK),
    N(PR_SET_MM), N(PR_SET_CHILD_SUBREAPER), N(PR_GET_CHILD_SUBREAPER), N(PR_SET_NO_NEW_PRIVS),
    N(PR_GET_NO_NEW_PRIVS), N(PR_CAP_AMBIENT), N(PR_SET_THP_DISABLE), {0x53564d41, "PR_SET_VMA"}, END};
static const struct name arch_prctl_names[] = {
    N(ARCH_SET_GS), N(ARCH_SET_FS), N(ARCH_GET_FS), N(ARCH_GET_GS), N(ARCH_GET_CPUID), N(ARCH_SET_CPUID),
    {0x3001, "ARCH_CET_STATUS"}, END};
static const struct name mount_names[] = {
    N(MS_RDONLY), N(MS_NOSUID), N(MS_NODEV), N(MS_NOEXEC), N(MS_SYNCHRONOUS), N(MS_REMOUNT), N(MS_NOATIME),
    N(MS_NODIRATIME), N(MS_BIND), N(MS_MOVE), N(MS_REC), N(MS_SILENT), N(MS_UNBINDABLE), N(MS_PRIVATE),
    N(MS_SLAVE), N(MS_SHARED), N(MS_RELATIME), N(MS_STRICTATIME), END};
static const struct name memfd_names[] = {N(MFD_CLOEXEC), N(MFD_ALLOW_SEALING), N(MFD_HUGETLB), END};
static const struct name rename_names[] = {{1, "RENAME_NOREPLACE"}, {2, "RENAME_EXCHANGE"}, {4, "RENAME_WHITEOUT"}, END};
static const struct name inotify_names[] = {
    {1, "IN_ACCESS"}, {2, "IN_MODIFY"}, {4, "IN_ATTRIB"}, {8, "IN_CLOSE_WRITE"}, {0x10, "IN_CLOSE_NOWRITE"},
    {0x20, "IN_OPEN"}, {0x40, "IN_MOVED_FROM"}, {0x80, "IN_MOVED_TO"}, {0x100, "IN_CREATE"}, {0x200, "IN_DELETE"},
    {0x400, "IN_DELETE_SELF"}, {0x800, "IN_MOVE_SELF"}, {0x1000000, "IN_ONLYDIR"}, {0x80000000, "IN_ONESHOT"}, END};
static const struct name fanotify_names[] = {
    {1, "FAN_CLOEXEC"}, {2, "FAN_NONBLOCK"}, {4, "FAN_CLASS_CONTENT"}, {8, "FAN_CLASS_PRE_CONTENT"},
    {0x10, "FAN_UNLIMITED_QUEUE"}, {0x20, "FAN_UNLIMITED_MARKS"}, {0x40, "FAN_ENABLE_AUDIT"},
    {0x80, "FAN_REPORT_PIDFD"}, {0x100, "FAN_REPORT_TID"}, {0x200, "FAN_REPORT_FID"}, {0x400, "FAN_REPORT_DIR_FID"},
    {0x800, "FAN_REPORT_NAME"}, {0x1000, "FAN_REPORT_TARGET_FID"}, {0x2000, "FAN_REPORT_FD_ERROR"}, END};
static const struct name fanmark_names[] = {
    {1, "FAN_MARK_ADD"}, {2, "FAN_MARK_REMOVE"}, {4, "FAN_MARK_DONT_FOLLOW"}, {8, "FAN_MARK_ONLYDIR"},
    {0x10, "FAN_MARK_MOUNT"}, {0x20, "FAN_MARK_IGNORED_MASK"}, {0x40, "FAN_MARK_IGNORED_SURV_MODIFY"},
    {0x80, "FAN_MARK_FLUSH"}, {0x100, "FAN_MARK_FILESYSTEM"}, {0x200, "FAN_MARK_EVICTABLE"},
    {0x400, "FAN_MARK_IGNORE"}, END};
static const struct name fanevents_names[] = {
    {1, "FAN_ACCESS"}, {2, "FAN_MODIFY"}, {4, "FAN_ATTRIB"}, {8, "FAN_CLOSE_WRITE"}, {0x10, "FAN_CLOSE_NOWRITE"},
    {0x20, "FAN_OPEN"}, {0x40, "FAN_MOVED_FROM"}, {0x80, "FAN_MOVED_TO"}, {0x100, "FAN_CREATE"}, {0x200, "FAN_DELETE"},
    {0x400, "FAN_DELETE_SELF"}, {0x800, "FAN_MOVE_SELF"}, {0x1000, "FAN_OPEN_EXEC"}, {0x8000, "FAN_FS_ERROR"},
    {0x10000, "FAN_OPEN_PERM"}, {0x20000, "FAN_ACCESS_PERM"}, {0x40000, "FAN_OPEN_EXEC_PERM"},
    {0x8000000, "FAN_EVENT_ON_CHILD"}, {0x10000000, "FAN_RENAME"}, {0x40000000, "FAN_ONDIR"}, END};
static const struct name ipcget_names[] = {{01000, "IPC_CREAT"}, {02000, "IPC_EXCL"}, END};
static const struct name sa_names[] = {
    N(SA_NOCLDSTOP), N(SA_NOCLDWAIT), N(SA_SIGINFO), N(SA_ONSTACK), N(SA_RESTART), N(SA_NODEFER), N(SA_RESETHAND),
    {0x04000000, "SA_RESTORER"}, END};

static const struct name errno_names[] = {
    N(EPERM), N(ENOENT), N(ESRCH), N(EINTR), N(EIO), N(ENXIO), N(E2BIG), N(ENOEXEC), N(EBADF), N(ECHILD), N(EAGAIN),
    N(ENOMEM), N(EACCES), N(EFAULT), N(ENOTBLK), N(EBUSY), N(EEXIST), N(EXDEV), N(ENODEV), N(ENOTDIR), N(EISDIR),
    N(EINVAL), N(ENFILE), N(EMFILE), N(ENOTTY), N(ETXTBSY), N(EFBIG), N(ENOSPC), N(ESPIPE), N(EROFS), N(EMLINK),
    N(EPIPE), N(EDOM), N(ERANGE), N(EDEADLK), N(ENAMETOOLONG), N(ENOLCK), N(ENOSYS), N(ENOTEMPTY), N(ELOOP), N(ENOMSG),
    N(EIDRM), N(ENODATA), N(ETIME), N(EPROTO), N(EBADMSG), N(EOVERFLOW), N(EILSEQ), N(EUSERS), N(ENOTSOCK),
    N(EDESTADDRREQ), N(EMSGSIZE), N(EPROTOTYPE), N(ENOPROTOOPT), N(EPROTONOSUPPORT), N(ESOCKTNOSUPPORT),
    N(EOPNOTSUPP), N(EPFNOSUPPORT), N(EAFNOSUPPORT), N(EADDRINUSE), N(EADDRNOTAVAIL), N(ENETDOWN), N(ENETUNREACH),
    N(ENETRESET), N(ECONNABORTED), N(ECONNRESET), N(ENOBUFS), N(EISCONN), N(ENOTCONN), N(ESHUTDOWN), N(ETIMEDOUT),
    N(ECONNREFUSED), N(EHOSTDOWN), N(EHOSTUNREACH), N(EALREADY), N(EINPROGRESS), N(ESTALE), N(EDQUOT), N(ENOMEDIUM),
    N(ECANCELED), N(EOWNERDEAD), N(ENOTRECOVERABLE), N(ERESTARTSYS), N(ERESTARTNOINTR), N(ERESTARTNOHAND),
    N(ERESTART_RESTARTBLOCK), END};

static const struct name signal_names[] = {
    N(SIGHUP), N(SIGINT), N(SIGQUIT), N(SIGILL), N(SIGTRAP), N(SIGABRT), N(SIGBUS), N(SIGFPE), N(SIGKILL), N(SIGUSR1),
    N(SIGSEGV), N(SIGUSR2), N(SIGPIPE), N(SIGALRM), N(SIGTERM), N(SIGSTKFLT), N(SIGCHLD), N(SIGCONT), N(SIGSTOP),
    N(SIGTSTP), N(SIGTTIN), N(SIGTTOU), N(SIGURG), N(SIGXCPU), N(SIGXFSZ), N(SIGVTALRM), N(SIGPROF), N(SIGWINCH),
    N(SIGIO), N(SIGPWR), N(SIGSYS), END};

static const char *name_of(const struct name *names, uint64_t value)
{
    for (; names->name[0]; names++) {
        if (names->value == value)
            return names->name;
    }
    return NULL;
}

static void show_one(struct buf *out, const struct name *names, uint64_t value)
{
    const char *name = name_of(names, value);

    if (name)
        buf_puts(out, name);
    else
        buf_printf(out, "%#" PRIx64, value);
}

static void show_flags(struct buf *out, const struct name *names, uint64_t value)
{
    bool any = false;

    for (; names->name[0]; names++) {
        if (names->value && (value & names->value) == names->value) {
            buf_printf(out, "%s%s", any ? "|" : "", names->name);
            value &= ~names->value;
            any = true;
        }
    }
    if (value || !any)
        buf_printf(out, "%s%#" PRIx64, any ? "|" : "", value);
}

void strace_signal(struct buf *out, int signo)
{
    const char *name = name_of(signal_names, (uint64_t)signo);

    if (name)
        buf_puts(out, name);
    else if (signo >= 32 && signo <= 64)
        buf_printf(out, "SIGRT_%d", signo - 32);
    else
        buf_printf(out, "%d", signo);
}

void strace_result(struct buf *out, int64_t result)
{
    const char *name;

    if (result < 0 && result > -4096) {
        name = name_of(errno_names, (uint64_t)-result);
        buf_printf(out, "-1 %s", name ? name : "errno");
        if (!name)
            buf_printf(out, " %" PRId64, -result);
    } else if (result > 0xffff || result < 0) {
        buf_printf(out, "%#" PRIx64, (uint64_t)result);
    } else {
        buf_printf(out, "%" PRId64, result);
    }
}

static void show_quoted(struct buf *out, const char *p, size_t size, bool cut)
{
    buf_putc(out, '"');
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)p[i];

        if (c == '\n')
            buf_puts(out, "\\n");
        else if (c == '"' || c == '\\')
            buf_printf(out, "\\%c", c);
        else if (c >= ' ' && c < 0x7f)
            buf_putc(out, (char)c);
        else
            buf_printf(out, "\\x%02x", c);
    }
    buf_puts(out, cut ? "\"…" : "\"");
}

static void show_address(struct buf *out, uint64_t addr)
{
    if (addr)
        buf_printf(out, "%#" PRIx64, addr);
    else
        buf_puts(out, "NULL");
}

static void show_str(struct task *t, struct buf *out, uint64_t addr)
{
    char text[SHOW_PATH];
    ssize_t n = addr ? copy_in_str(&t->ctx, text, UADDR(addr), sizeof(text)) : -EFAULT;

    if (n >= 0)
        show_quoted(out, text, (size_t)n, false);
    else if (n == -ENAMETOOLONG)
        show_quoted(out, text, sizeof(text), true);
    else
        show_address(out, addr);
}

static void show_strings(struct task *t, struct buf *out, uint64_t addr, bool count_only)
{
    uint64_t p;
    unsigned n = 0;

    for (; n < 4096 && !copy_in(&t->ctx, &p, UADDR(addr + n * 8), 8) && p; n++) {
        if (count_only || n >= SHOW_ITEMS)
            continue;
        buf_puts(out, n ? ", " : "[");
        show_str(t, out, p);
    }
    if (count_only)
        buf_printf(out, "%#" PRIx64 " /* %u strings */", addr, n);
    else
        buf_puts(out, n > SHOW_ITEMS ? ", …]" : n ? "]" : "[]");
}

static void show_hex(struct buf *out, const unsigned char *p, size_t size, bool cut)
{
    buf_putc(out, '<');
    for (size_t i = 0; i < size; i++)
        buf_printf(out, "%02x", p[i]);
    buf_puts(out, cut ? "…>" : ">");
}

static void show_sigset(struct buf *out, sigset_k set)
{
    bool invert = __builtin_popcountll(set) > 32, any = false;

    buf_puts(out, invert ? "~[" : "[");
    for (int i = 1; i <= NSIG_K; i++) {
        if (!!(set & SIGBIT(i)) != invert) {
            if (any)
                buf_putc(out, ' ');
            strace_signal(out, i);
            any = true;
        }
    }
    buf_putc(out, ']');
}

static void show_sockaddr(struct buf *out, const unsigned char *p, size_t size)
{
    const struct sockaddr_in *in = (const void *)p;
    const unsigned char *a = (const void *)&in->sin_addr;

    if (size < 2) {
        show_hex(out, p, size, false);
        return;
    }
    buf_putc(out, '{');
    show_one(out, domain_names, in->sin_family);
    if (in->sin_family == AF_UNIX) {
        buf_putc(out, ' ');
        show_quoted(out, (const char *)p + 2, p[2] ? strnlen((const char *)p + 2, size - 2) : size - 2, false);
    } else if (in->sin_family == AF_INET && size >= 8) {
        buf_printf(out, " %u.%u.%u.%u:%u", a[0], a[1], a[2], a[3], ntohs(in->sin_port));
    } else {
        buf_putc(out, ' ');
        show_hex(out, p + 2, MIN(size - 2, (size_t)SHOW_HEX), size - 2 > SHOW_HEX);
    }
    buf_putc(out, '}');
}

static void show_stat(struct buf *out, const struct stat *st)
{
    buf_printf(out, "{mode=%#o ino=%lu nlink=%lu uid=%u gid=%u size=%ld}", st->st_mode, st->st_ino, st->st_nlink,
               st->st_uid, st->st_gid, st->st_size);
}

static void show_siginfo(struct buf *out, const siginfo_t *info)
{
    buf_putc(out, '{');
    strace_signal(out, info->si_signo);
    buf_printf(out, " code=%d pid=%d uid=%u status=%d}", info->si_code, info->si_pid, info->si_uid, info->si_status);
}

static void show_sigaction(struct buf *out, const struct sigaction_k *a)
{
    buf_putc(out, '{');
    if (a->handler <= 1)
        buf_puts(out, a->handler ? "SIG_IGN" : "SIG_DFL");
    else
        show_address(out, a->handler);
    buf_putc(out, ' ');
    show_sigset(out, a->mask);
    buf_putc(out, ' ');
    show_flags(out, sa_names, a->flags);
    buf_putc(out, '}');
}

static void show_polls(struct buf *out, const struct pollfd *p, size_t len, bool cut, bool after)
{
    for (size_t i = 0; i < len; i++) {
        buf_printf(out, "%s%d:", i ? ", " : "[", p[i].fd);
        show_flags(out, poll_names, (uint16_t)(after ? p[i].revents : p[i].events));
    }
    buf_puts(out, cut ? ", …]" : len ? "]" : "[]");
}

static void show_epolls(struct buf *out, const unsigned char *p, size_t len)
{
    uint64_t data;
    uint32_t events;

    buf_putc(out, '[');
    for (size_t i = 0; i < len; i++) {
        memcpy(&events, p + i * 12, 4);
        memcpy(&data, p + i * 12 + 4, 8);
        buf_puts(out, i ? ", " : "");
        show_flags(out, poll_names, events);
        buf_printf(out, ":%#" PRIx64, data);
    }
    buf_putc(out, ']');
}

/* Memory of a known format. Return: false for formats that are shown as plain bytes. */
static bool show_struct(struct buf *out, unsigned fmt, const void *p, size_t size, bool after)
{
    const int64_t *words = p;
    const int32_t *ints = p;
    const uint64_t *flags = p;

    switch (fmt) {
    case FMT_timespec:
    case FMT_timeval:
        buf_printf(out, "{%" PRId64 " %" PRId64 "}", words[0], words[1]);
        return true;
    case FMT_timespec2:
    case FMT_itimerval:
    case FMT_itimerspec:
        buf_printf(out, "{%" PRId64 " %" PRId64 ", %" PRId64 " %" PRId64 "}", words[0], words[1], words[2], words[3]);
        return true;
    case FMT_rlimit64:
        buf_printf(out, "{%" PRId64 ", %" PRId64 "}", words[0], words[1]);
        return true;
    case FMT_sigset:
        show_sigset(out, flags[0]);
        return true;
    case FMT_sigaction:
        show_sigaction(out, p);
        return true;
    case FMT_sigstack:
        buf_printf(out, "{%#" PRIx64 " flags=%#x size=%" PRIu64 "}", flags[0], ints[2], flags[2]);
        return true;
    case FMT_siginfo:
        show_siginfo(out, p);
        return true;
    case FMT_stat:
        show_stat(out, p);
        return true;
    case FMT_fdpair:
        buf_printf(out, "[%d, %d]", ints[0], ints[1]);
        return true;
    case FMT_i32:
    case FMT_u32:
        buf_printf(out, "[%d]", ints[0]);
        return true;
    case FMT_u64:
        buf_printf(out, "[%" PRId64 "]", words[0]);
        return true;
    case FMT_wstatus:
        buf_printf(out, "[%#x]", ints[0]);
        return true;
    case FMT_sockaddr:
        show_sockaddr(out, p, size);
        return true;
    case FMT_pollfds:
        show_polls(out, p, MIN(size / 8, (size_t)SHOW_ITEMS), size / 8 > SHOW_ITEMS, after);
        return true;
    case FMT_epoll_event:
    case FMT_epoll_events:
        show_epolls(out, p, size / 12);
        return true;
    case FMT_open_how:
        buf_putc(out, '{');
        show_flags(out, open_names, size >= 8 ? flags[0] : 0);
        if (size >= 24)
            buf_printf(out, " mode=%#" PRIo64 " resolve=%#" PRIx64, flags[1], flags[2]);
        buf_putc(out, '}');
        return true;
    case FMT_utsname:
        buf_printf(out, "{\"%.65s\" \"%.65s\" \"%.65s\"}", (const char *)p, (const char *)p + 65, (const char *)p + 130);
        return true;
    default:
        return false;
    }
}

static void show_memory(struct task *t, struct buf *out, const struct syscall_arg *arg, uint64_t addr, uint64_t size,
                        bool after)
{
    union {
        unsigned char bytes[256];
        uint64_t align;
    } m;
    size_t shown = MIN(size, sizeof(m.bytes));

    memset(&m, 0, sizeof(m));
    if (!addr || copy_in(&t->ctx, m.bytes, UADDR(addr), shown)) {
        show_address(out, addr);
        return;
    }
    if (show_struct(out, arg->fmt, m.bytes, arg->fmt == FMT_pollfds ? size : shown, after))
        return;
    if (arg->fmt == FMT_data && arg->kind != SYSCALL_IN && arg->kind != SYSCALL_OUT)
        show_quoted(out, (const char *)m.bytes, MIN(shown, (size_t)SHOW_BYTES), size > SHOW_BYTES);
    else
        show_hex(out, m.bytes, MIN(shown, (size_t)SHOW_HEX), size > SHOW_HEX);
}

static void show_iovec(struct task *t, struct buf *out, const struct syscall_arg *arg, uint64_t addr, uint64_t len,
                       int64_t left)
{
    uint64_t iov[2];

    buf_putc(out, '[');
    for (uint64_t i = 0; i < len && i < SHOW_ITEMS; i++) {
        if (copy_in(&t->ctx, iov, UADDR(addr + i * 16), 16))
            break;
        buf_puts(out, i ? ", " : "");
        show_memory(t, out, arg, iov[0], left >= 0 ? MIN(iov[1], (uint64_t)left) : iov[1], false);
        if (left >= 0)
            left -= (int64_t)MIN(iov[1], (uint64_t)left);
    }
    buf_puts(out, len > SHOW_ITEMS ? ", …]" : "]");
}

static bool show_named(struct buf *out, unsigned fmt, uint64_t v)
{
    static const struct {
        uint8_t fmt;
        bool flags;
        const struct name *names;
    } tables[] = {
        {FMT_prot, true, prot_names}, {FMT_mmap, true, mmap_names}, {FMT_mremap, true, mremap_names},
        {FMT_msync, true, msync_names}, {FMT_at, true, at_names}, {FMT_at_remove, true, at_remove_names},
        {FMT_access, true, access_names}, {FMT_whence, false, whence_names}, {FMT_sighow, false, sighow_names},
        {FMT_wait, true, wait_names}, {FMT_idtype, false, idtype_names}, {FMT_itimer, false, itimer_names},
        {FMT_clockid, false, clockid_names}, {FMT_madvise, false, madvise_names}, {FMT_domain, false, domain_names},
        {FMT_msg, true, msg_names}, {FMT_epoll_op, false, epoll_op_names}, {FMT_fcntl, false, fcntl_names},
        {FMT_flock, true, flock_names}, {FMT_ioctl, false, ioctl_names}, {FMT_rlimit, false, rlimit_names},
        {FMT_prctl, false, prctl_names}, {FMT_arch_prctl, false, arch_prctl_names}, {FMT_mount, true, mount_names},
        {FMT_memfd, true, memfd_names}, {FMT_rename, true, rename_names}, {FMT_inotify, true, inotify_names},
        {FMT_ipcget, true, ipcget_names}, {FMT_fanotify, true, fanotify_names}, {FMT_fanmark, true, fanmark_names},
        {FMT_fanevents, true, fanevents_names},
    };

    for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
        if (tables[i].fmt != fmt)
            continue;
        if (tables[i].flags)
            show_flags(out, tables[i].names, v);
        else
            show_one(out, tables[i].names, v);
        return true;
    }
    return false;
}

static void show_value(struct task *t, struct buf *out, unsigned fmt, uint64_t v)
{
    switch (fmt) {
    case FMT_i32:
    case FMT_fd:
    case FMT_pid:
        buf_printf(out, "%d", (int32_t)v);
        break;
    case FMT_u32:
        buf_printf(out, "%u", (uint32_t)v);
        break;
    case FMT_i64:
        buf_printf(out, "%" PRId64, (int64_t)v);
        break;
    case FMT_u64:
    case FMT_size:
        buf_printf(out, "%" PRIu64, v);
        break;
    case FMT_mode:
        buf_printf(out, "%#o", (uint32_t)v);
        break;
    case FMT_dirfd:
        if ((int32_t)v == AT_FDCWD)
            buf_puts(out, "AT_FDCWD");
        else
            buf_printf(out, "%d", (int32_t)v);
        break;
    case FMT_sig:
        strace_signal(out, (int)v);
        break;
    case FMT_oflags:
        if (!(v & O_ACCMODE))
            buf_puts(out, v ? "O_RDONLY|" : "O_RDONLY");
        if (v)
            show_flags(out, open_names, v);
        break;
    case FMT_clone:
        show_flags(out, clone_names, v & ~0xffULL);
        if (v & 0xff) {
            buf_putc(out, '|');
            strace_signal(out, (int)(v & 0xff));
        }
        break;
    case FMT_socktype:
        show_one(out, socktype_names, v & 0xf);
        if (v & ~0xfULL) {
            buf_putc(out, '|');
            show_flags(out, sockflag_names, v & ~0xfULL);
        }
        break;
    case FMT_futex:
        show_one(out, futex_names, v & 127);
        buf_puts(out, v & FUTEX_PRIVATE_FLAG ? "|FUTEX_PRIVATE_FLAG" : "");
        buf_puts(out, v & FUTEX_CLOCK_REALTIME ? "|FUTEX_CLOCK_REALTIME" : "");
        break;
    case FMT_str:
        show_str(t, out, v);
        break;
    case FMT_strv:
    case FMT_envp:
        show_strings(t, out, v, fmt == FMT_envp);
        break;
    default:
        if (!show_named(out, fmt, v))
            show_address(out, v);
    }
}

/* The length in bytes that args[len_arg] counts; int arguments may be negative, which counts as none. */
static uint64_t counted(const struct syscall_arg *arg, const uint64_t *args)
{
    uint64_t len = args[arg->len_arg];

    return len > 1u << 30 ? 0 : len * arg->n;
}

void strace_arg(struct task *t, struct buf *out, const struct syscall_arg *arg, const uint64_t *args, unsigned i,
                bool after, int64_t result)
{
    uint64_t v = args[i], size;

    if (after && result < 0 && arg->kind != SYSCALL_INOUT && arg->kind != SYSCALL_INOUT_BYTES) {
        show_address(out, v);
        return;
    }
    switch (arg->kind) {
    case SYSCALL_VALUE:
        show_value(t, out, arg->fmt, v);
        break;
    case SYSCALL_STR:
        show_str(t, out, v);
        break;
    case SYSCALL_IN:
    case SYSCALL_OUT:
    case SYSCALL_INOUT:
        show_memory(t, out, arg, v, arg->n, after);
        break;
    case SYSCALL_IN_BYTES:
    case SYSCALL_INOUT_BYTES:
        show_memory(t, out, arg, v, counted(arg, args), after);
        break;
    case SYSCALL_OUT_BYTES:
        /* What such calls return is how many elements they stored, but for a few that return 0. */
        size = counted(arg, args);
        show_memory(t, out, arg, v, MIN(size, (uint64_t)result * arg->n), after);
        break;
    case SYSCALL_IN_IOVEC:
    case SYSCALL_OUT_IOVEC:
        show_iovec(t, out, arg, v, args[arg->len_arg], after ? result : -1);
        break;
    default:
        show_address(out, v);
    }
}
