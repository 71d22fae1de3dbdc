/* SPDX-License-Identifier: Apache-2.0 */
/* System V shared memory: each segment is a memory file of its own, which processes map like any other file. Who is attached
 * is known by what was attached and detached through us; a segment that a guest unmaps by munmap counts until its end. */
#include "sentry/ipc/sysv_shm.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <time.h>

#include "platform/base/alloc.h"
#include "platform/base/buf.h"
#include "sentry/abi/abi_errno.h"
#include "sentry/core/cred.h"
#include "sentry/ipc/ipc_caller.h"
#include "sentry/ipc/ipcns.h"
#include "sentry/mm/mm.h"
#include "sentry/mm/usermem.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/inode.h"

#ifndef SHM_STAT_ANY
#define SHM_STAT_ANY 15
#endif

struct segment {
    struct sysv_object o;
    struct ipcns *ns;         /* (k) not owned; valid until o.removed */
    struct file *file;        /* (i) owned */
    uint64_t size;            /* (i) */
    struct list attaches;     /* (k) of attach.segment_link */
    uint32_t attached;        /* (k) their number */
    int64_t atime, dtime, ctime; /* (k) */
    struct pid *creator, *last;  /* (k) referenced; last may be NULL */
};

struct attach {
    struct list segment_link, mm_link;
    struct segment *segment; /* (i) referenced */
    uint64_t addr;           /* (i) */
};

static struct segment *to_segment(struct sysv_object *o)
{
    return container_of(o, struct segment, o);
}

static uint64_t pages_of(const struct segment *s)
{
    return ALIGN_UP(s->size, PAGE_SIZE) / PAGE_SIZE;
}

static void segment_free(struct sysv_object *o)
{
    struct segment *s = to_segment(o);
    file_unref(s->file);
    ipc_caller_pid_put(s->creator);
    ipc_caller_pid_put(s->last);
    mem_free(s);
}

static void note_user(struct segment *s, struct ctx *ctx)
{
    ipc_caller_pid_put(s->last);
    s->last = ipc_caller_pid(ctx);
}

/* Takes a segment out of its namespace. */
static void segment_destroy(struct segment *s)
{
    s->ns->shm_pages -= pages_of(s);
    sysv_ids_remove(&s->ns->shm, &s->o);
}

int64_t sysv_shm_get(struct ctx *ctx, int32_t key, uint64_t size, int32_t flags)
{
    struct ipcns *ns = ipc_caller_ns(ctx);
    struct sysv_object *o = NULL;
    int r = sysv_get(ctx, &ns->shm, key, flags, &o);
    if (r < 0)
        return r;
    if (r > 0)
        return size > to_segment(o)->size ? -EINVAL : o->id;
    if (size == 0 || size > UINT64_MAX / 2 || (flags & SHM_HUGETLB))
        return -EINVAL;
    uint64_t pages = ALIGN_UP(size, PAGE_SIZE) / PAGE_SIZE;
    if (pages > SYSV_SHM_PAGES_MAX - ns->shm_pages)
        return -ENOSPC;
    struct segment *s = NEW(struct segment);
    if (!s)
        return -ENOMEM;
    char name[16];
    snprintf(name, sizeof(name), "SYSV%08x", (uint32_t)key);
    r = ipc_caller_memory_file(ctx, name, (uint32_t)flags & 0777, pages * PAGE_SIZE, &s->file);
    if (r) {
        mem_free(s);
        return r;
    }
    s->o.free = segment_free;
    s->ns = ns;
    s->size = size;
    list_init(&s->attaches);
    s->ctime = time(NULL);
    s->creator = ipc_caller_pid(ctx);
    r = sysv_ids_add(ctx, &ns->shm, &s->o, key, (uint32_t)flags & 0777, SYSV_SHM_SEGMENTS_MAX);
    if (r < 0)
        segment_free(&s->o);
    else
        ns->shm_pages += pages;
    return r;
}

/* ---- attaching ---- */

static void attach_add(struct attach *a, struct segment *s, struct mm *mm, uint64_t addr)
{
    ref_get(&s->o.ref);
    a->segment = s;
    a->addr = addr;
    list_add_tail(&s->attaches, &a->segment_link);
    list_add_tail(&mm->shm_attaches, &a->mm_link);
    s->attached++;
}

/* The last one out of a segment that is marked for removal takes it along. */
static void attach_drop(struct attach *a)
{
    struct segment *s = a->segment;
    list_del(&a->segment_link);
    list_del(&a->mm_link);
    mem_free(a);
    s->attached--;
    s->dtime = time(NULL);
    if (s->attached == 0 && (s->o.mode & SHM_DEST) && !s->o.removed)
        segment_destroy(s);
    sysv_object_unref(&s->o);
}

int mm_shm_dup(const struct mm *from, struct mm *to)
{
    struct attach *a;
    list_for_each_entry(a, &from->shm_attaches, mm_link)
    {
        struct attach *copy = NEW(struct attach);
        if (!copy)
            return -ENOMEM;
        attach_add(copy, a->segment, to, a->addr);
    }
    return 0;
}

void mm_shm_drop(struct mm *mm)
{
    while (!list_empty(&mm->shm_attaches))
        attach_drop(list_first(&mm->shm_attaches, struct attach, mm_link));
}

int64_t sysv_shm_attach(struct ctx *ctx, int id, uint64_t addr, int32_t flags)
{
    struct sysv_object *o;
    int r = sysv_ids_by_id(&ipc_caller_ns(ctx)->shm, id, &o);
    if (r)
        return r;
    uint64_t size = to_segment(o)->size, task_size = mm_task_size(ipc_caller_mm(ctx));
    if (addr & ~PAGE_MASK) {
        if (!(flags & SHM_RND))
            return -EINVAL;
        addr &= PAGE_MASK;
    }
    if (!addr && (flags & SHM_REMAP))
        return -EINVAL;
    if (addr && (addr >= task_size || size > task_size - addr))
        return -EINVAL;
    uint32_t prot = PROT_READ, want = S_IRUSR | S_IRGRP | S_IROTH;
    if (!(flags & SHM_RDONLY)) {
        prot |= PROT_WRITE;
        want |= S_IWUSR | S_IWGRP | S_IWOTH;
    }
    if (flags & SHM_EXEC) {
        prot |= PROT_EXEC;
        want |= S_IXUSR | S_IXGRP | S_IXOTH;
    }
    r = sysv_permission(ctx, o, want);
    if (r)
        return r;
    struct attach *a = NEW(struct attach);
    if (!a)
        return -ENOMEM;
    struct segment *s = to_segment(o);
    attach_add(a, s, ipc_caller_mm(ctx), addr);
    int64_t at = ipc_caller_map(ctx, s->file, addr, ALIGN_UP(s->size, PAGE_SIZE), prot, flags & SHM_REMAP);
    if (at < 0) {
        attach_drop(a);
        return at;
    }
    a->addr = (uint64_t)at;
    s->atime = time(NULL);
    note_user(s, ctx);
    return at;
}

int64_t sysv_shm_detach(struct ctx *ctx, uint64_t addr)
{
    struct attach *a, *found = NULL;
    list_for_each_entry(a, &ipc_caller_mm(ctx)->shm_attaches, mm_link)
    {
        if (a->addr == addr && addr)
            found = a;
    }
    if (!found)
        return -EINVAL;
    struct segment *s = found->segment;
    uint64_t size = ALIGN_UP(s->size, PAGE_SIZE);
    note_user(s, ctx);
    attach_drop(found);
    return ipc_caller_unmap(ctx, addr, size);
}

/* ---- control ---- */

static int64_t segment_stat(struct ctx *ctx, struct segment *s, uaddr_t buf, bool check, int64_t ret)
{
    struct sysv_perm64 perm;
    struct shmid_ds ds;
    _Static_assert(sizeof(perm) == sizeof(ds.shm_perm), "the guest's layout is the host's");
    int r = check ? sysv_permission(ctx, &s->o, S_IRUSR | S_IRGRP | S_IROTH) : 0;
    if (r)
        return r;
    memset(&ds, 0, sizeof(ds));
    sysv_fill_perm(ctx, &s->o, &perm);
    memcpy(&ds.shm_perm, &perm, sizeof(perm));
    ds.shm_segsz = s->size;
    ds.shm_atime = s->atime;
    ds.shm_dtime = s->dtime;
    ds.shm_ctime = s->ctime;
    ds.shm_cpid = ipc_caller_pid_number(ctx, s->creator);
    ds.shm_lpid = ipc_caller_pid_number(ctx, s->last);
    ds.shm_nattch = s->attached;
    return COPY_OUT(ctx, buf, &ds) ? -EFAULT : ret;
}

static int64_t limits_info(struct ctx *ctx, uaddr_t buf)
{
    struct shminfo info = {.shmmax = UINT64_MAX - (1UL << 24), .shmmin = 1, .shmmni = SYSV_SHM_SEGMENTS_MAX,
                           .shmseg = SYSV_SHM_SEGMENTS_MAX, .shmall = UINT64_MAX - (1UL << 24)};
    return COPY_OUT(ctx, buf, &info) ? -EFAULT : MAX(sysv_ids_max_slot(&ipc_caller_ns(ctx)->shm), 0);
}

static int64_t usage_info(struct ctx *ctx, uaddr_t buf)
{
    struct ipcns *ns = ipc_caller_ns(ctx);
    struct shm_info info = {.used_ids = (int)ns->shm.used, .shm_tot = ns->shm_pages, .shm_rss = ns->shm_pages};
    return COPY_OUT(ctx, buf, &info) ? -EFAULT : MAX(sysv_ids_max_slot(&ns->shm), 0);
}

static int64_t segment_set(struct ctx *ctx, struct segment *s, uaddr_t buf)
{
    struct shmid_ds ds;
    struct sysv_perm64 perm;
    if (COPY_IN(ctx, &ds, buf))
        return -EFAULT;
    int r = sysv_owner(ctx, &s->o);
    if (r)
        return r;
    memcpy(&perm, &ds.shm_perm, sizeof(perm));
    r = sysv_set_perm(ctx, &s->o, &perm);
    if (r)
        return r;
    s->ctime = time(NULL);
    return 0;
}

static int64_t segment_remove(struct ctx *ctx, struct segment *s)
{
    int r = sysv_owner(ctx, &s->o);
    if (r)
        return r;
    if (s->attached == 0) {
        segment_destroy(s);
    } else {
        s->o.mode |= SHM_DEST;
        s->o.key = IPC_PRIVATE;
    }
    return 0;
}

int64_t sysv_shm_control(struct ctx *ctx, int id, int32_t cmd, uaddr_t buf)
{
    struct ipcns *ns = ipc_caller_ns(ctx);
    struct sysv_object *o;
    if (id < 0 || cmd < 0)
        return -EINVAL;
    switch (cmd) {
    case IPC_INFO:
        return limits_info(ctx, buf);
    case SHM_INFO:
        return usage_info(ctx, buf);
    case SHM_STAT:
    case SHM_STAT_ANY:
        o = sysv_ids_at(&ns->shm, (uint32_t)id);
        return o ? segment_stat(ctx, to_segment(o), buf, cmd == SHM_STAT, o->id) : -EINVAL;
    default:
        break;
    }
    int r = sysv_ids_by_id(&ns->shm, id, &o);
    if (r)
        return r;
    switch (cmd) {
    case IPC_STAT:
        return segment_stat(ctx, to_segment(o), buf, true, 0);
    case IPC_SET:
        return segment_set(ctx, to_segment(o), buf);
    case IPC_RMID:
        return segment_remove(ctx, to_segment(o));
    case SHM_LOCK:
    case SHM_UNLOCK:
        if (!cred_ns_cap(ctx->cred, ns->userns, CAP_IPC_LOCK)) {
            if (ctx->cred->euid != o->uid && ctx->cred->euid != o->cuid)
                return -EPERM;
            if (cmd == SHM_LOCK && ipc_caller_rlimit(ctx, RLIMIT_MEMLOCK) == 0)
                return -EPERM;
        }
        o->mode = cmd == SHM_LOCK ? o->mode | SHM_LOCKED : o->mode & ~(uint32_t)SHM_LOCKED;
        return 0;
    default:
        return -EINVAL;
    }
}

void sysv_shm_print(struct ctx *ctx, struct ipcns *ns, struct buf *out)
{
    buf_puts(out, "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      "
                  "atime      dtime      ctime                   rss                  swap\n");
    for (int i = 0; i <= sysv_ids_max_slot(&ns->shm); i++) {
        struct sysv_object *o = sysv_ids_at(&ns->shm, (uint32_t)i);
        if (!o)
            continue;
        const struct segment *s = to_segment(o);
        struct sysv_perm64 p;
        sysv_fill_perm(ctx, o, &p);
        buf_printf(out, "%10d %10d  %4o %21llu %5u %5u  %5u %5u %5u %5u %5u %10lld %10lld %10lld %21llu %21llu\n",
                   o->key, o->id, o->mode, (unsigned long long)s->size, (unsigned)ipc_caller_pid_number(ctx, s->creator),
                   (unsigned)ipc_caller_pid_number(ctx, s->last), s->attached, p.uid, p.gid, p.cuid, p.cgid, (long long)s->atime,
                   (long long)s->dtime, (long long)s->ctime, (unsigned long long)(pages_of(s) * PAGE_SIZE), 0ULL);
    }
}
