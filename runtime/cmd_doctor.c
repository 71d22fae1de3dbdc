/* SPDX-License-Identifier: Apache-2.0 */
/* doctor: tells whether this host can give a container its boundary, what will be slower, and what is
 * missing. It tries things rather than guess from versions, and changes nothing. */
#include "runtime/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/magic.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "runtime/errtext.h"
#include "runtime/privs.h"

/* From linux/seccomp.h of 6.6. */
#define DOCTOR_NOTIF_SET_FLAGS _IOW('!', 4, uint64_t)
#define DOCTOR_NOTIF_SYNC_WAKE_UP 1ul

enum doctor_level { DOCTOR_OK, DOCTOR_NOTE, DOCTOR_SLOW, DOCTOR_MISSING };

static unsigned doctor_missing;

static void PRINTF(2, 3) doctor_say(enum doctor_level level, const char *fmt, ...)
{
    static const char *const names[] = {"ok", "note", "slower", "missing"};
    va_list ap;
    doctor_missing += level == DOCTOR_MISSING;
    printf("%-8s ", names[level]);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
}

/* Runs fn in a child of its own, with clone flags. Return: what fn returned (0 to 127), or −errno. */
static int doctor_try(unsigned long flags, int (*fn)(void))
{
    fflush(stdout);
    struct clone_args args = {.flags = flags, .exit_signal = SIGCHLD};
    pid_t pid = (pid_t)host_ret(syscall(SYS_clone3, &args, sizeof(args)));
    if (pid < 0)
        return pid;
    if (pid == 0)
        _exit(fn());
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -EFAULT;
}

static void doctor_check_kernel(void)
{
    struct utsname u;
    unsigned major = 0, minor = 0;
    uname(&u);
    sscanf(u.release, "%u.%u", &major, &minor);
    bool enough = major > 5 || (major == 5 && minor >= 14);
    doctor_say(enough ? DOCTOR_OK : DOCTOR_MISSING, "Linux %s%s", u.release,
               enough ? "" : ": 5.14 or later is needed");
    if (strcmp(u.machine, "x86_64") != 0)
        doctor_say(DOCTOR_MISSING, "x86-64 processor: this is %s", u.machine);
}

static void doctor_check_privileges(void)
{
    static const struct {
        int number;
        const char *name, *why;
    } needed[] = {
        {CAP_SYS_ADMIN, "CAP_SYS_ADMIN", "mounts and namespaces of gofer and sentry"},
        {CAP_SETUID, "CAP_SETUID", "the sentry's own user"},
        {CAP_SETGID, "CAP_SETGID", "the sentry's own group"},
        {CAP_SETPCAP, "CAP_SETPCAP", "dropping capabilities for good"},
        {CAP_CHOWN, "CAP_CHOWN", "owners of the container's files"},
        {CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE", "the container's files"},
        {CAP_FOWNER, "CAP_FOWNER", "modes of the container's files"},
        {CAP_MKNOD, "CAP_MKNOD", "whiteouts in the container's files"},
        {CAP_KILL, "CAP_KILL", "ending a container"},
    };
    bool all = true;
    if (geteuid() != 0)
        doctor_say(DOCTOR_MISSING, "root: this is user %u", geteuid());
    for (size_t i = 0; i < ARRAY_SIZE(needed); i++) {
        if (privs_have(needed[i].number))
            continue;
        doctor_say(DOCTOR_MISSING, "%s, for %s", needed[i].name, needed[i].why);
        all = false;
    }
    if (!privs_have(CAP_SYS_RESOURCE))
        doctor_say(DOCTOR_NOTE, "no CAP_SYS_RESOURCE: open files stay bounded by this process's hard limit, and "
                                "the sentry is not spared when memory runs out");
    if (all)
        doctor_say(DOCTOR_OK, "privileges to set up the boundary");
}

static int doctor_in_namespaces(void)
{
    return 0;
}

static void doctor_check_namespaces(void)
{
    int r = doctor_try(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS |
                           CLONE_NEWNET | CLONE_NEWCGROUP,
                       doctor_in_namespaces);
    if (r == 0)
        doctor_say(DOCTOR_OK, "user, pid, mount, ipc, uts, net and cgroup namespaces");
    else
        doctor_say(DOCTOR_MISSING, "namespaces: %s (see /proc/sys/user/max_*_namespaces)", errtext(r));
}

/* Each bit of the result is a thing that does not work. */
enum {
    DOCTOR_NO_FILTER = 1,
    DOCTOR_NO_SYNC = 2,
    DOCTOR_NO_ADDFD_SEND = 4,
    DOCTOR_LISTENER_BUSY = 8,
};

static int doctor_in_seccomp(void)
{
    struct sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const struct sock_fprog prog = {.len = 1, .filter = allow};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    int fd = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &prog);
    if (fd < 0)
        return errno == EBUSY ? DOCTOR_LISTENER_BUSY : DOCTOR_NO_FILTER;
    int missing = 0;
    if (ioctl(fd, DOCTOR_NOTIF_SET_FLAGS, DOCTOR_NOTIF_SYNC_WAKE_UP) < 0)
        missing |= DOCTOR_NO_SYNC;
    /* An unknown flag is EINVAL; a known one looks for the (absent) notification first. */
    struct seccomp_notif_addfd add = {.id = 1, .flags = SECCOMP_ADDFD_FLAG_SEND, .srcfd = 0};
    if (ioctl(fd, SECCOMP_IOCTL_NOTIF_ADDFD, &add) < 0 && errno == EINVAL)
        missing |= DOCTOR_NO_ADDFD_SEND;
    return missing;
}

static void doctor_check_seccomp(void)
{
    int r = doctor_try(0, doctor_in_seccomp);
    if (r < 0 || (r & DOCTOR_NO_FILTER)) {
        doctor_say(DOCTOR_MISSING, "seccomp filters with user notification");
        return;
    }
    if (r & DOCTOR_LISTENER_BUSY) {
        doctor_say(DOCTOR_MISSING, "seccomp user notification: another listener watches this process");
        return;
    }
    doctor_say(DOCTOR_OK, "seccomp filters with user notification");
    if (r & DOCTOR_NO_ADDFD_SEND)
        doctor_say(DOCTOR_MISSING, "seccomp: SECCOMP_ADDFD_FLAG_SEND (Linux 5.14)");
    if (r & DOCTOR_NO_SYNC)
        doctor_say(DOCTOR_SLOW, "system calls wake the sentry on another CPU: no SYNC_WAKE_UP (Linux 6.6)");
    else
        doctor_say(DOCTOR_OK, "seccomp notification with SYNC_WAKE_UP");
}

static char doctor_word[8] = "remote";

/* A child reads the memory of a child of its own. */
static int doctor_in_remote_memory(void)
{
    int fds[2];
    char byte, word[sizeof(doctor_word)] = "";
    if (pipe2(fds, O_CLOEXEC) < 0)
        return 1;
    pid_t pid = fork();
    if (pid == 0) {
        close(fds[1]);
        ssize_t n = read(fds[0], &byte, 1);
        _exit(n < 0);
    }
    const struct iovec local = {word, sizeof(word)}, remote = {doctor_word, sizeof(doctor_word)};
    ssize_t n = process_vm_readv(pid, &local, 1, &remote, 1, 0);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return n == sizeof(word) && strcmp(word, doctor_word) == 0 ? 0 : 1;
}

static void doctor_check_remote_memory(void)
{
    CLEANUP_FREE char *yama = NULL;
    int scope = 0;
    if (host_read_file(AT_FDCWD, "/proc/sys/kernel/yama/ptrace_scope", 64, &yama, NULL) == 0)
        scope = atoi(yama);
    int r = doctor_try(0, doctor_in_remote_memory);
    if (r == 0)
        doctor_say(DOCTOR_OK, "process_vm_readv on own children (yama ptrace_scope %d)", scope);
    else
        doctor_say(DOCTOR_MISSING, "process_vm_readv on own children (yama ptrace_scope is %d, 2 at most)",
                   scope);
}

static int doctor_in_mounts(void)
{
    CLEANUP_CLOSE int fs = (int)syscall(SYS_fsopen, "proc", 0);
    if (fs < 0)
        return errno;
    if (syscall(SYS_fsconfig, fs, 6 /* FSCONFIG_CMD_CREATE */, NULL, NULL, 0) < 0)
        return errno;
    CLEANUP_CLOSE int mount = (int)syscall(SYS_fsmount, fs, 0, 0);
    return mount < 0 ? errno : 0;
}

static void doctor_check_mounts(void)
{
    CLEANUP_CLOSE int tree = (int)syscall(SYS_open_tree, AT_FDCWD, "/", 1 /* OPEN_TREE_CLONE */);
    if (tree < 0)
        doctor_say(DOCTOR_MISSING, "open_tree: %s", errtext(errno));
    else
        doctor_say(DOCTOR_OK, "detached mounts");
    int r = doctor_try(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS, doctor_in_mounts);
    if (r == 0)
        doctor_say(DOCTOR_OK, "procfs in a new pid namespace");
    else
        doctor_say(DOCTOR_MISSING, "procfs in a new pid namespace: %s (is this host's /proc partly hidden?)",
                   errtext(r));
}

static void doctor_check_cgroup_v1(void)
{
    static const char *const wanted[] = {"cpu", "cpuset", "memory", "pids", "freezer", "blkio"};
    CLEANUP_FREE char *text = NULL;
    if (host_read_file(AT_FDCWD, "/proc/self/mountinfo", 16 << 20, &text, NULL) < 0)
        return;
    unsigned found = 0;
    for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
        bool have = false;
        for (const char *at = text; !have && (at = strstr(at, " - cgroup ")); at++) {
            const char *word = strstr(at, wanted[i]), *end = strchr(at, '\n');
            have = word && (!end || word < end);
        }
        found += have;
        if (!have)
            doctor_say(DOCTOR_NOTE, "cgroup v1 without the %s controller: its limits are refused", wanted[i]);
    }
    if (found)
        doctor_say(DOCTOR_OK, "cgroup v1");
    else
        doctor_say(DOCTOR_MISSING, "cgroups: no hierarchy is mounted");
}

static void doctor_check_cgroups(void)
{
    struct statfs fs;
    if (statfs("/sys/fs/cgroup", &fs) < 0) {
        doctor_say(DOCTOR_MISSING, "cgroups: /sys/fs/cgroup: %s", errtext(errno));
        return;
    }
    if (fs.f_type != CGROUP2_SUPER_MAGIC) {
        doctor_check_cgroup_v1();
        return;
    }
    CLEANUP_FREE char *controllers = NULL;
    if (host_read_file(AT_FDCWD, "/sys/fs/cgroup/cgroup.controllers", 4096, &controllers, NULL) < 0)
        return;
    controllers[strcspn(controllers, "\n")] = '\0';
    doctor_say(DOCTOR_OK, "cgroup v2 with %s", *controllers ? controllers : "no controllers");
    if (access("/sys/fs/cgroup/cgroup.procs", W_OK) < 0)
        doctor_say(DOCTOR_MISSING, "cgroups: /sys/fs/cgroup is not writable");
}

static void doctor_check_rest(void)
{
    CLEANUP_CLOSE int memfd = (int)syscall(SYS_memfd_create, "doctor", 3 /* cloexec, sealing */);
    if (memfd < 0)
        doctor_say(DOCTOR_MISSING, "memfd_create: %s", errtext(errno));
    if (access("/dev/ptmx", R_OK | W_OK) < 0)
        doctor_say(DOCTOR_NOTE, "no /dev/ptmx: containers with a terminal are refused");
    if (syscall(SYS_openat2, -1, "", NULL, 0) < 0 && errno == ENOSYS)
        doctor_say(DOCTOR_MISSING, "openat2");
    if (syscall(SYS_mount_setattr, -1, "", 0, NULL, 0) < 0 && errno == ENOSYS)
        doctor_say(DOCTOR_MISSING, "mount_setattr");
    CLEANUP_FREE char *huge = NULL;
    if (host_read_file(AT_FDCWD, "/sys/kernel/mm/transparent_hugepage/enabled", 64, &huge, NULL) == 0 &&
        strstr(huge, "[never]"))
        doctor_say(DOCTOR_SLOW, "large heaps: transparent huge pages are off");
}

static int cmd_doctor_run(const struct cli *cli, const struct cli_args *args, struct errmsg *e)
{
    doctor_check_kernel();
    doctor_check_privileges();
    doctor_check_namespaces();
    doctor_check_seccomp();
    doctor_check_remote_memory();
    doctor_check_mounts();
    doctor_check_cgroups();
    doctor_check_rest();
    if (doctor_missing) {
        printf("\nContainers cannot run here: %u of the above is missing.\n", doctor_missing);
        return EXIT_FAILURE;
    }
    printf("\nContainers can run here.\n");
    return EXIT_SUCCESS;
}

const struct cli_verb cmd_doctor_verb = {
    .name = "doctor",
    .summary = "check whether this host can run containers",
    .arguments = "",
    .min_args = 0,
    .max_args = 0,
    .run = cmd_doctor_run,
};
