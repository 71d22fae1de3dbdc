/* SPDX-License-Identifier: Apache-2.0 */
/* System V semaphores: sets whose operations are all done at once or not at all. */
#include "sentry/ipc/sysv_sem.h"

#include <string.h>
#include <sys/sem.h>
#include <sys/stat.h>
#include <time.h>

#include "platform/base/alloc.h"
#include "platform/base/buf.h"
#include "sentry/abi/abi_errno.h"
#include "sentry/core/waitq.h"
#include "sentry/ipc/ipc_caller.h"
#include "sentry/ipc/ipcns.h"
#include "sentry/mm/usermem.h"

#ifndef SEM_STAT_ANY
#define SEM_STAT_ANY 20
#endif

#define READ_ALL (S_IRUSR | S_IRGRP | S_IROTH)
#define WRITE_ALL (S_IWUSR | S_IWGRP | S_IWOTH)

struct sem {
    struct pid *last;       /* (k) who changed it last, referenced; may be NULL */
    uint32_t wait_more, wait_zero; /* (k) sleepers: GETNCNT, GETZCNT */
    uint16_t value;
};

struct sem_set {
    struct sysv_object o;
    struct ipcns *ns;       /* (k) not owned; valid until o.removed */
    struct waitq wait;
    struct list undos;      /* (k) of undo.set_link */
    int64_t otime, ctime;   /* (k) */
    uint32_t len;           /* (i) */
    struct sem sems[];
};

/* What the end of one process gives back to one set. */
struct undo {
    struct list set_link, group_link;
    struct sem_set *set;    /* (k) not owned: the set frees its undos first */
    int16_t adjust[];
};

/* Undos of one process; hangs on tgroup.sem_undos. */
struct sem_undo_list {
    struct list undos; /* (k) of undo.group_link */
};

static struct sem_set *to_set(struct sysv_object *o)
{
    return container_of(o, struct sem_set, o);
}

static void undo_free(struct undo *u)
{
    list_del(&u->set_link);
    list_del(&u->group_link);
    mem_free(u);
}

static void set_free(struct sysv_object *o)
{
    struct sem_set *s = to_set(o);
    while (!list_empty(&s->undos))
        undo_free(list_first(&s->undos, struct undo, set_link));
    for (uint32_t i = 0; i < s->len; i++)
        ipc_caller_pid_put(s->sems[i].last);
    mem_free(s);
}

int64_t sysv_sem_get(struct ctx *ctx, int32_t key, int32_t len, int32_t flags)
{
    struct ipcns *ns = ipc_caller_ns(ctx);
    struct sysv_object *o = NULL;
    if (len < 0 || len > SYSV_SEM_PER_SET_MAX)
        return -EINVAL;
    int r = sysv_get(ctx, &ns->sem, key, flags, &o);
    if (r < 0)
        return r;
    if (r > 0)
        return (uint32_t)len > to_set(o)->len ? -EINVAL : o->id;
    if (len == 0)
        return -EINVAL;
    if ((uint64_t)len > SYSV_SEM_TOTAL_MAX - ns->sems)
        return -ENOSPC;
    struct sem_set *s = mem_zalloc(sizeof(*s) + (size_t)len * sizeof(s->sems[0]));
    if (!s)
        return -ENOMEM;
    s->o.free = set_free;
    s->ns = ns;
    s->len = (uint32_t)len;
    s->ctime = time(NULL);
    waitq_init(&s->wait);
    list_init(&s->undos);
    r = sysv_ids_add(ctx, &ns->sem, &s->o, key, (uint32_t)flags & 0777, SYSV_SEM_SETS_MAX);
    if (r < 0)
        mem_free(s);
    else
        ns->sems += (uint64_t)len;
    return r;
}

/* ---- operations ---- */

/* Consumes pid. */
static void note_user(struct sem *sem, OWNS struct pid *pid)
{
    ipc_caller_pid_put(sem->last);
    sem->last = pid;
}

/* Return: the undo of one process for s, made when it is missing; NULL on no memory. */
static struct undo *undo_of(struct sem_undo_list **list, struct sem_set *s)
{
    struct undo *u;
    if (!*list) {
        *list = NEW(struct sem_undo_list);
        if (!*list)
            return NULL;
        list_init(&(*list)->undos);
    }
    list_for_each_entry(u, &(*list)->undos, group_link)
    {
        if (u->set == s)
            return u;
    }
    u = mem_zalloc(sizeof(*u) + s->len * sizeof(u->adjust[0]));
    if (!u)
        return NULL;
    u->set = s;
    list_add_tail(&s->undos, &u->set_link);
    list_add_tail(&(*list)->undos, &u->group_link);
    return u;
}

/* Does all ops or none. Return: 0; 1 with the op that has to wait; −ERANGE, −EAGAIN (IPC_NOWAIT). */
static int try_ops(struct sem_set *s, struct undo *u, const struct sembuf *ops, uint32_t len, uint32_t *ret_block)
{
    uint32_t i;
    int r = 0;
    for (i = 0; i < len && !r; i++) {
        struct sem *sem = &s->sems[ops[i].sem_num];
        int value = sem->value + ops[i].sem_op;
        if (ops[i].sem_op == 0 ? sem->value != 0 : value < 0)
            r = ops[i].sem_flg & IPC_NOWAIT ? -EAGAIN : 1;
        else if (value > SYSV_SEM_VALUE_MAX)
            r = -ERANGE;
        else if (ops[i].sem_flg & SEM_UNDO) {
            int adjust = u->adjust[ops[i].sem_num] - ops[i].sem_op;
            if (adjust < -SYSV_SEM_VALUE_MAX - 1 || adjust > SYSV_SEM_VALUE_MAX)
                r = -ERANGE;
            else
                u->adjust[ops[i].sem_num] = (int16_t)adjust;
        }
        if (r)
            break;
        sem->value = (uint16_t)value;
    }
    if (!r)
        return 0;
    *ret_block = i;
    while (i-- > 0) { /* take back what was done */
        s->sems[ops[i].sem_num].value = (uint16_t)(s->sems[ops[i].sem_num].value - ops[i].sem_op);
        if (ops[i].sem_flg & SEM_UNDO)
            u->adjust[ops[i].sem_num] = (int16_t)(u->adjust[ops[i].sem_num] + ops[i].sem_op);
    }
    return r;
}

/* Sleeps once for op. Return: 0 (look again), −EAGAIN, −EINTR. */
static int wait_once(struct ctx *ctx, struct sem_set *s, const struct sembuf *op, uint64_t deadline_ns)
{
    struct sem *sem = &s->sems[op->sem_num];
    uint32_t *count = op->sem_op ? &sem->wait_more : &sem->wait_zero;
    (*count)++;
    int r = waitq_wait(ctx, &s->wait, CTX_WAIT_INTERRUPTIBLE, deadline_ns);
    (*count)--;
    if (r == -ETIMEDOUT)
        return -EAGAIN;
    return r == -ERESTARTSYS ? -EINTR : r;
}

/* s is referenced. */
static int64_t do_ops(struct ctx *ctx, struct sem_set *s, const struct sembuf *ops, uint32_t len, bool undo,
                      uint64_t deadline_ns)
{
    bool alter = false, timed_out = false;
    for (uint32_t i = 0; i < len; i++) {
        if (ops[i].sem_num >= s->len)
            return -EFBIG;
        alter |= ops[i].sem_op != 0;
    }
    int r = sysv_permission(ctx, &s->o, alter ? WRITE_ALL : READ_ALL);
    if (r)
        return r;
    for (;;) {
        uint32_t block = 0;
        struct undo *u = undo ? undo_of(ipc_caller_undos(ctx), s) : NULL;
        if (undo && !u)
            return -ENOMEM;
        r = try_ops(s, u, ops, len, &block);
        if (r <= 0)
            break;
        if (timed_out)
            return -EAGAIN;
        r = wait_once(ctx, s, &ops[block], deadline_ns);
        if (s->o.removed)
            return -EIDRM;
        if (r == -EAGAIN)
            timed_out = true; /* one last look */
        else if (r)
            return r;
    }
    if (r)
        return r;
    s->otime = time(NULL);
    for (uint32_t i = 0; i < len; i++)
        note_user(&s->sems[ops[i].sem_num], ipc_caller_pid(ctx));
    if (alter)
        waitq_wake_all(&s->wait);
    return 0;
}

int64_t sysv_sem_op(struct ctx *ctx, int id, uaddr_t ops_addr, uint32_t len, uint64_t deadline_ns)
{
    struct sembuf few[16], *ops = few;
    CLEANUP_FREE void *heap = NULL;
    struct sysv_object *o;
    if (len == 0 || id < 0)
        return -EINVAL;
    if (len > SYSV_SEM_OPS_MAX)
        return -E2BIG;
    if (len > ARRAY_SIZE(few)) {
        ops = heap = mem_calloc(len, sizeof(*ops));
        if (!ops)
            return -ENOMEM;
    }
    if (copy_in(ctx, ops, ops_addr, len * sizeof(*ops)))
        return -EFAULT;
    int r = sysv_ids_by_id(&ipc_caller_ns(ctx)->sem, id, &o);
    if (r)
        return r;
    bool undo = false;
    for (uint32_t i = 0; i < len; i++)
        undo |= (ops[i].sem_flg & SEM_UNDO) != 0;
    ref_get(&o->ref);
    int64_t ret = do_ops(ctx, to_set(o), ops, len, undo, deadline_ns);
    sysv_object_unref(o);
    return ret;
}

void sysv_sem_exit(struct sem_undo_list **list, struct pid *pid)
{
    if (!*list)
        return;
    while (!list_empty(&(*list)->undos)) {
        struct undo *u = list_first(&(*list)->undos, struct undo, group_link);
        struct sem_set *s = u->set;
        for (uint32_t i = 0; i < s->len; i++) {
            if (!u->adjust[i])
                continue;
            int value = s->sems[i].value + u->adjust[i];
            s->sems[i].value = (uint16_t)MIN(MAX(value, 0), (int)SYSV_SEM_VALUE_MAX);
            note_user(&s->sems[i], ipc_caller_pid_ref(pid));
        }
        s->otime = time(NULL);
        undo_free(u);
        waitq_wake_all(&s->wait);
    }
    mem_free(*list);
    *list = NULL;
}

/* ---- control ---- */

static void forget_undo(struct sem_set *s, uint32_t first, uint32_t len)
{
    struct undo *u;
    list_for_each_entry(u, &s->undos, set_link)
    {
        memset(&u->adjust[first], 0, len * sizeof(u->adjust[0]));
    }
}

static void changed(struct sem_set *s)
{
    s->ctime = time(NULL);
    waitq_wake_all(&s->wait);
}

static int64_t set_stat(struct ctx *ctx, struct sem_set *s, uint64_t buf, bool check, int64_t ret)
{
    struct {
        struct sysv_perm64 perm;
        int64_t otime, unused1, ctime, unused2;
        uint64_t nsems, unused3, unused4;
    } ds = {.otime = s->otime, .ctime = s->ctime, .nsems = s->len};
    int r = check ? sysv_permission(ctx, &s->o, READ_ALL) : 0;
    if (r)
        return r;
    sysv_fill_perm(ctx, &s->o, &ds.perm);
    return COPY_OUT(ctx, UADDR(buf), &ds) ? -EFAULT : ret;
}

static int64_t set_info(struct ctx *ctx, uint64_t buf, bool usage)
{
    struct ipcns *ns = ipc_caller_ns(ctx);
    struct seminfo info = {.semmap = SYSV_SEM_TOTAL_MAX, .semmni = SYSV_SEM_SETS_MAX, .semmns = SYSV_SEM_TOTAL_MAX,
                           .semmnu = SYSV_SEM_TOTAL_MAX, .semmsl = SYSV_SEM_PER_SET_MAX, .semopm = SYSV_SEM_OPS_MAX,
                           .semume = SYSV_SEM_OPS_MAX, .semvmx = SYSV_SEM_VALUE_MAX, .semusz = 20,
                           .semaem = SYSV_SEM_VALUE_MAX};
    if (usage) {
        info.semusz = (int)ns->sem.used;
        info.semaem = (int)ns->sems;
    }
    return COPY_OUT(ctx, UADDR(buf), &info) ? -EFAULT : MAX(sysv_ids_max_slot(&ns->sem), 0);
}

static int64_t set_perm(struct ctx *ctx, struct sem_set *s, uint64_t buf)
{
    struct sysv_perm64 perm;
    if (COPY_IN(ctx, &perm, UADDR(buf)))
        return -EFAULT;
    int r = sysv_owner(ctx, &s->o);
    if (r)
        return r;
    r = sysv_set_perm(ctx, &s->o, &perm);
    if (r)
        return r;
    s->ctime = time(NULL);
    return 0;
}

static int64_t set_remove(struct ctx *ctx, struct sem_set *s)
{
    int r = sysv_owner(ctx, &s->o);
    if (r)
        return r;
    while (!list_empty(&s->undos))
        undo_free(list_first(&s->undos, struct undo, set_link));
    s->ns->sems -= s->len;
    ref_get(&s->o.ref);
    sysv_ids_remove(&s->ns->sem, &s->o);
    waitq_wake_all(&s->wait);
    sysv_object_unref(&s->o);
    return 0;
}

static int64_t all_values(struct ctx *ctx, struct sem_set *s, uint64_t arg, bool set)
{
    CLEANUP_FREE uint16_t *v = NEW_ARRAY(uint16_t, s->len);
    int r = sysv_permission(ctx, &s->o, set ? WRITE_ALL : READ_ALL);
    if (r)
        return r;
    if (!v)
        return -ENOMEM;
    if (!set) {
        for (uint32_t i = 0; i < s->len; i++)
            v[i] = s->sems[i].value;
        return copy_out(ctx, UADDR(arg), v, s->len * sizeof(*v));
    }
    if (copy_in(ctx, v, UADDR(arg), s->len * sizeof(*v)))
        return -EFAULT;
    for (uint32_t i = 0; i < s->len; i++) {
        if (v[i] > SYSV_SEM_VALUE_MAX)
            return -ERANGE;
    }
    for (uint32_t i = 0; i < s->len; i++) {
        s->sems[i].value = v[i];
        note_user(&s->sems[i], ipc_caller_pid(ctx));
    }
    forget_undo(s, 0, s->len);
    changed(s);
    return 0;
}

static int64_t one_value(struct ctx *ctx, struct sem_set *s, int32_t num, int32_t cmd, uint64_t arg)
{
    if (num < 0 || (uint32_t)num >= s->len)
        return -EINVAL;
    struct sem *sem = &s->sems[num];
    int r = sysv_permission(ctx, &s->o, cmd == SETVAL ? WRITE_ALL : READ_ALL);
    if (r)
        return r;
    switch (cmd) {
    case GETVAL:
        return sem->value;
    case GETPID:
        return ipc_caller_pid_number(ctx, sem->last);
    case GETNCNT:
        return sem->wait_more;
    case GETZCNT:
        return sem->wait_zero;
    default:
        break;
    }
    int32_t value = (int32_t)arg;
    if (value < 0 || value > SYSV_SEM_VALUE_MAX)
        return -ERANGE;
    sem->value = (uint16_t)value;
    note_user(sem, ipc_caller_pid(ctx));
    forget_undo(s, (uint32_t)num, 1);
    changed(s);
    return 0;
}

int64_t sysv_sem_control(struct ctx *ctx, int id, int32_t num, int32_t cmd, uint64_t arg)
{
    struct ipcns *ns = ipc_caller_ns(ctx);
    struct sysv_object *o;
    if (id < 0)
        return -EINVAL;
    if (cmd == IPC_INFO || cmd == SEM_INFO)
        return set_info(ctx, arg, cmd == SEM_INFO);
    if (cmd == SEM_STAT || cmd == SEM_STAT_ANY) {
        o = sysv_ids_at(&ns->sem, (uint32_t)id);
        return o ? set_stat(ctx, to_set(o), arg, cmd == SEM_STAT, o->id) : -EINVAL;
    }
    int r = sysv_ids_by_id(&ns->sem, id, &o);
    if (r)
        return r;
    struct sem_set *s = to_set(o);
    switch (cmd) {
    case IPC_STAT:
        return set_stat(ctx, s, arg, true, 0);
    case IPC_SET:
        return set_perm(ctx, s, arg);
    case IPC_RMID:
        return set_remove(ctx, s);
    case GETALL:
    case SETALL:
        return all_values(ctx, s, arg, cmd == SETALL);
    case GETVAL:
    case GETPID:
    case GETNCNT:
    case GETZCNT:
    case SETVAL:
        return one_value(ctx, s, num, cmd, arg);
    default:
        return -EINVAL;
    }
}

void sysv_sem_print(struct ctx *ctx, struct ipcns *ns, struct buf *out)
{
    buf_puts(out, "       key      semid perms      nsems   uid   gid  cuid  cgid      otime      ctime\n");
    for (int i = 0; i <= sysv_ids_max_slot(&ns->sem); i++) {
        struct sysv_object *o = sysv_ids_at(&ns->sem, (uint32_t)i);
        if (!o)
            continue;
        const struct sem_set *s = to_set(o);
        struct sysv_perm64 p;
        sysv_fill_perm(ctx, o, &p);
        buf_printf(out, "%10d %10d  %4o %10u %5u %5u %5u %5u %10lld %10lld\n", o->key, o->id, o->mode, s->len,
                   p.uid, p.gid, p.cuid, p.cgid, (long long)s->otime, (long long)s->ctime);
    }
}
