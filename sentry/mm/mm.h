/* SPDX-License-Identifier: Apache-2.0 */
/* The sentry's view of a guest address space: what the host can't know. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"
#include "platform/base/list.h"
#include "platform/base/ref.h"
#include "platform/platform.h"
#include "sentry/abi/uaddr.h"
#include "sentry/core/ctx.h"
#include "sentry/mm/mempolicy.h"

struct file;
struct userns;

enum { MM_AUXV_MAX = 64, MM_STACK_GUARD = 1 << 20 };

/* Kinds of mappings: Documentation/filesystems/proc, coredump_filter. */
enum {
    MM_DUMP_ANON_PRIVATE = 1, MM_DUMP_ANON_SHARED = 2, MM_DUMP_FILE_PRIVATE = 4, MM_DUMP_FILE_SHARED = 8,
    MM_DUMP_ELF_HEADERS = 16, MM_DUMP_DEFAULT = 0x33, MM_DUMP_ALL = 0x1ff,
};

struct mm {
    struct ref ref;              /* tasks that share it */
    struct plat_aspace *aspace;  /* (i) referenced */
    struct file *exe;            /* (k) referenced: /proc/PID/exe; holds inode_deny_write on its inode */
    struct filemaps *filemaps;   /* (k) mm/filemap.h: which guest file a host device:inode stands for; referenced */
    uint64_t code_start, code_end, data_start, data_end; /* (i) after exec */
    uint64_t brk_start;
    uint64_t stack_start;        /* (i) top of the initial stack */
    uint64_t stack_low;          /* (i) lowest address of the stack mapping; MM_STACK_GUARD blocked bytes below it */
    uint64_t arg_start, arg_end, env_start, env_end;
    uint64_t auxv[MM_AUXV_MAX];  /* (i) pairs */
    unsigned auxv_len;           /* words */
    int dumpable;                /* (k) */
    uint32_t dump_filter;        /* (k) /proc/PID/coredump_filter: which kinds of mappings go into a core dump */
    struct userns *userns;       /* (k) in which it was executed, referenced: who may look in though it is not dumpable */
    bool lock_future;            /* (k) mlockall(MCL_FUTURE) */
    struct mempolicy_ranges policies; /* (k) mbind */
    struct list shm_attaches;    /* (k) System V segments: see ipc/sysv_shm.c */
    struct list aio_contexts;    /* (k) fs/aio.c */
};

/* End of the addresses that guests may use. */
static inline uint64_t mm_task_size(const struct mm *mm)
{
    return mm->aspace->platform->task_size;
}

/* System V attachments follow fork and go with the address space; implemented by ipc/sysv_shm.c. */
MUST_CHECK int mm_shm_dup(const struct mm *from, struct mm *to); /* −ENOMEM */
void mm_shm_drop(struct mm *mm);

/* AIO contexts go with the address space; a forked one has none. Implemented by fs/aio.c. */
void mm_aio_drop(struct mm *mm);

/* Takes its own reference of as. */
MUST_CHECK int mm_new(struct plat_aspace *as, struct mm **ret_mm);
/* For fork: as is the child's. */
MUST_CHECK int mm_dup(const struct mm *mm, struct plat_aspace *as, struct mm **ret_mm);
/* Takes a reference of exe and denies writes to it while mm lives; drops what was there before. Return: 0 or −ETXTBSY. */
MUST_CHECK int mm_set_exe(struct mm *mm, struct file *exe);
/* Remembers that f, which is host_fd for the host, is mapped somewhere in mm, for /proc/PID/maps. Takes its own reference of
 * the file's path. Return: 0, −ENOMEM, or the host's error about host_fd. */
MUST_CHECK int mm_note_file(struct mm *mm, struct file *f, int host_fd);
struct mm *mm_ref(struct mm *mm);
void mm_unref(struct mm *mm);
