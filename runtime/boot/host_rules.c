/* SPDX-License-Identifier: Apache-2.0 */
/* The sentry's seccomp list: every host call that it may make after start-up, beside its reason.
 * Nothing here opens a path outside the guests' procfs, makes a process, or changes a privilege. */
#include "runtime/boot/boot_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <linux/memfd.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "platform/base/host.h"
#include "platform/common/hostfilter.h"

/* Flags with which glibc makes a thread; a process would lack most of them. */
#define HOST_RULES_THREAD                                                                           \
    (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM)

/* Opening the guests' procfs: only for reading or writing what exists there. */
#define HOST_RULES_OPEN_BAD (O_CREAT | O_TRUNC | O_EXCL | (O_TMPFILE & ~O_DIRECTORY))

/* Requests of <asm/termbits.h>, which does not go together with <termios.h>. */
enum {
    HOST_RULES_NOTIF_SET_FLAGS = 0x40082104, /* SECCOMP_IOCTL_NOTIF_SET_FLAGS of newer headers */
    HOST_RULES_TCGETS2 = (int)0x802c542a,
    HOST_RULES_TCSETS2 = 0x402c542b,
    HOST_RULES_TCSETSW2 = 0x402c542c,
    HOST_RULES_TCSETSF2 = 0x402c542d,
};

/* What glibc uses to run setuid on all threads. Not in its headers. */
enum { HOST_RULES_SIGSETXID = 33 };

static const struct hostfilter_rule host_rules[] = {
    /* The event loop. */
    {__NR_epoll_wait, "wait for anything to happen"},
    {__NR_epoll_ctl, "watch descriptors"},
    {__NR_timerfd_settime, "wake at the next deadline"},
    {__NR_poll, "is a host descriptor ready now"},
    {__NR_clock_gettime, "time where the vDSO has none"},
    {__NR_clock_nanosleep, "short back-off"},

    /* Guest processes. */
    {__NR_ioctl, "take a guest's call", {HF_EQ32(1, SECCOMP_IOCTL_NOTIF_RECV)}},
    {__NR_ioctl, "answer a guest's call", {HF_EQ32(1, SECCOMP_IOCTL_NOTIF_SEND)}},
    {__NR_ioctl, "is a guest's call still pending", {HF_EQ32(1, SECCOMP_IOCTL_NOTIF_ID_VALID)}},
    {__NR_ioctl, "let a woken guest have this CPU, or another", {HF_EQ32(1, HOST_RULES_NOTIF_SET_FLAGS)}},
    {__NR_ioctl, "give a guest process a file to map", {HF_EQ32(1, SECCOMP_IOCTL_NOTIF_ADDFD)}},
    {__NR_prlimit64, "size of a guest process's address space", {HF_EQ32(1, RLIMIT_AS)}},
    {__NR_process_vm_readv, "read guest memory"},
    {__NR_process_vm_writev, "write guest memory"},
    {__NR_pidfd_open, "learn of a guest process's death"},
    {__NR_pidfd_send_signal, "end a guest process"},
    {__NR_tgkill, "kick a guest thread; end this process"},
    {__NR_tkill, "end a guest process that is not known by its pidfd", {HF_EQ32(1, SIGKILL)}},
    {__NR_openat, "a guest process's maps and memory",
     {HF_EQ32(0, BOOT_FD_PROC), HF_MASK(2, HOST_RULES_OPEN_BAD, 0)}},
    {__NR_getdents64, "threads of a guest process, after a clone that failed"},
    {__NR_openat, "open a file of its own for reading alone",
     {HF_EQ32(0, BOOT_FD_SELF), HF_MASK(2, O_ACCMODE | HOST_RULES_OPEN_BAD, O_RDONLY)}},

    /* Files that the gofer has opened, and the container's stdio. */
    {__NR_read, "pipes, event and timer descriptors, host files"},
    {__NR_write, "the same; log lines"},
    {__NR_pread64, "host files"},
    {__NR_pwrite64, "host files"},
    {__NR_preadv2, "host files, without sleeping"},
    {__NR_pwritev2, "host files, with the guest's flags"},
    {__NR_lseek, "offsets of inherited files; data and holes"},
    {__NR_fstat, "size of a host file"},
    {__NR_fstatfs, "whether a host file lies on a disk"},
    {__NR_newfstatat, "the C library's fstat", {HF_MASK(3, AT_EMPTY_PATH, AT_EMPTY_PATH)}},
    {__NR_ftruncate, "size of a host file"},
    {__NR_fallocate, "space and holes of a host file"},
    {HOST_NR_CACHESTAT, "what of a host file is in memory"},
    {__NR_fsync, "fsync"},
    {__NR_fdatasync, "fdatasync"},
    {__NR_fcntl, "copy a descriptor", {HF_EQ32(1, F_DUPFD_CLOEXEC)}},
    {__NR_fcntl, "how an inherited file was opened", {HF_EQ32(1, F_GETFL)}},
    {__NR_fcntl, "make an inherited file non-blocking", {HF_EQ32(1, F_SETFL)}},
    {__NR_fcntl, "fix the size of a memory file", {HF_EQ32(1, F_ADD_SEALS)}},
    {__NR_fcntl, "is the channel's size fixed", {HF_EQ32(1, F_GET_SEALS)}},
    {__NR_memfd_create, "files of the sentry's own file systems"},
    {__NR_close, "drop descriptors"},
    {__NR_ioctl, "bytes waiting in an inherited descriptor", {HF_EQ32(1, FIONREAD)}},

    /* Terminals that the container was given. TIOCSTI and its like are not here. */
    {__NR_ioctl, "terminal settings", {HF_EQ32(1, TCGETS)}},
    {__NR_ioctl, "terminal settings", {HF_EQ32(1, TCSETS)}},
    {__NR_ioctl, "terminal settings", {HF_EQ32(1, TCSETSW)}},
    {__NR_ioctl, "terminal settings", {HF_EQ32(1, TCSETSF)}},
    {__NR_ioctl, "terminal settings with any speed", {HF_EQ32(1, HOST_RULES_TCGETS2)}},
    {__NR_ioctl, "terminal settings with any speed", {HF_EQ32(1, HOST_RULES_TCSETS2)}},
    {__NR_ioctl, "terminal settings with any speed", {HF_EQ32(1, HOST_RULES_TCSETSW2)}},
    {__NR_ioctl, "terminal settings with any speed", {HF_EQ32(1, HOST_RULES_TCSETSF2)}},
    {__NR_ioctl, "terminal settings of old programs", {HF_EQ32(1, TCGETA)}},
    {__NR_ioctl, "terminal settings of old programs", {HF_EQ32(1, TCSETA)}},
    {__NR_ioctl, "terminal settings of old programs", {HF_EQ32(1, TCSETAW)}},
    {__NR_ioctl, "terminal settings of old programs", {HF_EQ32(1, TCSETAF)}},
    {__NR_ioctl, "terminal queues", {HF_EQ32(1, TCFLSH)}},
    {__NR_ioctl, "terminal flow", {HF_EQ32(1, TCXONC)}},
    {__NR_ioctl, "terminal break and drain", {HF_EQ32(1, TCSBRK)}},
    {__NR_ioctl, "terminal break", {HF_EQ32(1, TCSBRKP)}},
    {__NR_ioctl, "window size", {HF_EQ32(1, TIOCGWINSZ)}},
    {__NR_ioctl, "window size", {HF_EQ32(1, TIOCSWINSZ)}},
    {__NR_ioctl, "bytes not yet written", {HF_EQ32(1, TIOCOUTQ)}},
    {__NR_ioctl, "line discipline", {HF_EQ32(1, TIOCGETD)}},
    {__NR_ioctl, "carrier of a serial line", {HF_EQ32(1, TIOCGSOFTCAR)}},

    /* Sockets: the gofer, control connections, the creator. None can be made or connected. */
    {__NR_accept4, "control connections", {HF_EQ32(0, BOOT_FD_CONTROL)}},
    {__NR_sendmsg, "requests to the gofer, replies to commands"},
    {__NR_recvmsg, "replies of the gofer, requests of commands"},
    {__NR_recvfrom, "inherited sockets, without waiting", {HF_MASK(3, MSG_DONTWAIT, MSG_DONTWAIT)}},

    /* Memory. Never executable: guest code is mapped by guest processes. */
    {__NR_mmap, "heap, mailboxes, stacks", {HF_MASK(2, PROT_EXEC, 0)}},
    {__NR_munmap, "heap, mailboxes, stacks"},
    {__NR_mremap, "heap"},
    {__NR_mprotect, "guard pages", {HF_MASK(2, PROT_EXEC, 0)}},
    {__NR_madvise, "give memory back", {HF_EQ32(2, MADV_DONTNEED)}},
    {__NR_madvise, "give memory back", {HF_EQ32(2, MADV_FREE)}},
    {__NR_madvise, "large pages", {HF_EQ32(2, MADV_HUGEPAGE)}},
    {__NR_madvise, "small pages", {HF_EQ32(2, MADV_NOHUGEPAGE)}},
    {__NR_brk, "heap"},

    /* Threads of the I/O pool. */
    {__NR_clone3, "its flags can't be checked: glibc falls back to clone", .refuse_errno = ENOSYS},
    {__NR_clone, "make a thread", {HF_MASK(0, HOST_RULES_THREAD, HOST_RULES_THREAD)}},
    {__NR_futex, "locks between threads"},
    {__NR_rt_sigaction, "the C library's own signal, at the first thread", {HF_EQ32(0, HOST_RULES_SIGSETXID)}},
    {__NR_set_robust_list, "start of a thread"},
    {__NR_rseq, "start of a thread"},
    {__NR_rt_sigprocmask, "signals of a new thread"},
    {__NR_rt_sigaction, "the C library's own signal (SIGSETXID), with the first thread", {HF_EQ32(0, 33)}},
    {__NR_sched_yield, "let another thread go on"},
    {__NR_sched_getaffinity, "CPUs that guests see"},
    {__NR_gettid, "name a thread of its own"},
    {__NR_getcpu, "CPU that a guest asks for, where the vDSO does not tell"},
    {__NR_getpid, "name itself"},
    {__NR_prlimit64, "its own limit of descriptors", {HF_EQ32(0, 0), HF_EQ(2, 0)}},
    {__NR_getrandom, "random numbers for guests"},
    {__NR_sysinfo, "memory and load that guests see"},

    /* Start and end. */
    {__NR_prctl, "outlive the creator once it has let go", {HF_EQ32(0, PR_SET_PDEATHSIG), HF_EQ(1, 0)}},
    {__NR_prctl, "names of memory areas, where the C library sets them", {HF_EQ32(0, PR_SET_VMA)}},
    {__NR_restart_syscall, "a stopped process goes on"},
    {__NR_rt_sigreturn, "end of a signal handler"},
    {__NR_rt_sigaction, "abort() puts back the default action", {HF_EQ32(0, SIGABRT)}},
    {__NR_rt_sigaction, "report of a refused call", {HF_EQ32(0, SIGSYS)}},
    {__NR_exit, "end of a thread"},
    {__NR_exit_group, "end"},
};

int host_rules_install(bool report, struct errmsg *e)
{
    return hostfilter_install(host_rules, ARRAY_SIZE(host_rules),
                              report ? HOSTFILTER_REPORT : HOSTFILTER_KILL, e);
}
