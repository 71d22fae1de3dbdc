/* SPDX-License-Identifier: Apache-2.0 */
/* The gofer's seccomp list, each call beside its reason. */
#include "gofer/server/srv_rules.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "platform/base/host.h"

int srv_rules_mknod(mode_t type, uint32_t rdev_major, uint32_t rdev_minor)
{
    switch (type) {
    case S_IFREG:
    case S_IFIFO:
    case S_IFSOCK:
        return 0; /* nothing but a name and attributes */
    case S_IFCHR:
        /* 0:0 is the whiteout of overlay file systems, 0:1 what a guest's own whiteout is kept as in a layer; no driver has the
         * major number 0, so they open no device. Device nodes of the host would be usable by whoever else has the tree: none
         * is made. */
        return rdev_major == 0 && rdev_minor <= 1 ? 0 : -EPERM;
    case S_IFBLK:
        return -EPERM;
    default:
        return -EINVAL;
    }
}

int srv_rules_install(int sock, int lane, int proc_self_fd, pid_t self, enum hostfilter_default action,
                      struct errmsg *e)
{
    const struct hostfilter_rule rules[] = {
        /* The channel. */
        {__NR_recvfrom, "receive requests", {HF_EQ32(0, sock)}},
        {__NR_sendto, "send replies", {HF_EQ32(0, sock)}},
        {__NR_sendmsg, "send replies with descriptors", {HF_EQ32(0, sock)}},
        {__NR_recvfrom, "receive requests by the lane", {HF_EQ32(0, lane)}},
        {__NR_sendto, "answer them", {HF_EQ32(0, lane)}},
        {__NR_sendmsg, "answer them with descriptors", {HF_EQ32(0, lane)}},
        /* Finding and opening: only from a descriptor, only beneath it. That openat2 is used with
         * RESOLVE_BENEATH can't be seen here; the mount namespace is the second wall. */
        {__NR_openat2, "look up and create below a node", {HF_LE(0, INT32_MAX)}},
        {__NR_openat, "reopen a held inode with other access", {HF_EQ32(0, proc_self_fd)}},
        {__NR_fcntl, "duplicate a tree's root", {HF_EQ32(1, F_DUPFD_CLOEXEC)}},
        {__NR_close, "drop nodes and sent descriptors"},
        {__NR_statx, "attributes"},
        {__NR_readlinkat, "link targets"},
        {__NR_getdents64, "list directories"},
        {__NR_lseek, "continue a listing"},
        {__NR_fstatfs, "statfs"},
        {__NR_ioctl, "flags of a held inode", {HF_EQ32(1, FS_IOC_GETFLAGS)}},
        {__NR_ioctl, "flags of a held inode", {HF_EQ32(1, FS_IOC_SETFLAGS)}},
        {HOST_NR_CACHESTAT, "what of a file is in memory"},
        /* Changes, asked for by the sentry and allowed by the tree's flags. */
        {__NR_mkdirat, "mkdir"},
        {__NR_mknodat, "fifos, sockets, whiteouts"},
        {__NR_symlinkat, "symlink"},
        {__NR_linkat, "hard links of held inodes", {HF_EQ32(0, proc_self_fd)}},
        {__NR_unlinkat, "unlink and rmdir"},
        {__NR_renameat2, "rename"},
        {__NR_fchownat, "owner of a held inode", {HF_MASK(4, AT_EMPTY_PATH, AT_EMPTY_PATH)}},
        {__NR_fchmodat, "mode of a held inode"},
        {__NR_truncate, "size of a held inode"},
        {__NR_utimensat, "times of a held inode"},
        {__NR_getxattr, "extended attributes"},
        {__NR_setxattr, "extended attributes"},
        {__NR_listxattr, "extended attributes"},
        {__NR_removexattr, "extended attributes"},
        {__NR_fsync, "fsync of directories"},
        {__NR_syncfs, "sync and syncfs"},
        {__NR_inotify_add_watch, "tell the sentry when others change a volume"},
        {__NR_inotify_rm_watch, "stop telling"},
        /* The C library. */
        {__NR_futex, "locks between workers"},
        {__NR_mmap,
         "allocator",
         {HF_MASK(2, PROT_EXEC, 0), HF_MASK(3, MAP_ANONYMOUS, MAP_ANONYMOUS)}},
        {__NR_munmap, "allocator"},
        {__NR_mremap, "allocator"},
        {__NR_madvise, "allocator", {HF_EQ32(2, MADV_DONTNEED)}},
        {__NR_brk, "allocator"},
        {__NR_write, "log lines"},
        {__NR_clock_gettime, "time stamps of the log where the vDSO has none"},
        {__NR_restart_syscall, "a stopped process goes on"},
        /* The end. */
        {__NR_exit_group, "end with the container's exit code"},
        {__NR_exit, "end of a worker"},
        {__NR_tgkill, "end by the container's signal", {HF_EQ32(0, self)}},
        {__NR_gettid, "end by the container's signal"},
        {__NR_rt_sigaction, "default action of that signal"},
        {__NR_rt_sigprocmask, "unblock that signal"},
        {__NR_rt_sigreturn, "return from the handler that reports refused calls"},
    };
    return hostfilter_install(rules, ARRAY_SIZE(rules), action, e);
}
