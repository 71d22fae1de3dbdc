/* SPDX-License-Identifier: Apache-2.0 */
/* System V message queues. */
#include "sentry/ipc/sysv_msg.h"

#include <linux/capability.h>
#include <string.h>
#include <sys/msg.h>
#include <sys/stat.h>
#include <time.h>

#include "platform/base/alloc.h"
#include "platform/base/buf.h"
#include "platform/base/list.h"
#include "sentry/abi/abi_errno.h"
#include "sentry/core/cred.h"
#include "sentry/core/waitq.h"
#include "sentry/ipc/ipc_caller.h"
#include "sentry/ipc/ipcns.h"
#include "sentry/mm/usermem.h"

#ifndef MSG_STAT_ANY
#define MSG_STAT_ANY 13
#endif
#ifndef MSG_COPY
#define MSG_COPY 040000
#endif

#define READ_ALL (S_IRUSR | S_IRGRP | S_IROTH)
#define WRITE_ALL (S_IWUSR | S_IWGRP | S_IWOTH)

struct message {
    struct list link;
    int64_t type;
    uint64_t size;
    uint8_t text[];
};

struct queue {
    struct sysv_object o;
    struct ipcns *ns;             /* (k) not owned; valid until o.removed */
    struct list messages;         /* (k) */
    uint64_t bytes, len, max_bytes; /* (k) */
    struct waitq send_wait, receive_wait;
    int64_t stime, rtime, ctime;  /* (k) */
    struct pid *last_sender, *last_receiver; /* (k) referenced; may be NULL */
};

static struct queue *to_queue(struct sysv_object *o)
{
    return container_of(o, struct queue, o);
}

static void queue_free(struct sysv_object *o)
{
    struct queue *q = to_queue(o);
    while (!list_empty(&q->messages)) {
        struct message *m = list_first(&q->messages, struct message, link);
        list_del(&m->link);
        mem_free(m);
    }
    ipc_caller_pid_put(q->last_sender);
    ipc_caller_pid_put(q->last_receiver);
    mem_free(q);
}

int64_t sysv_msg_get(struct ctx *ctx, int32_t key, int32_t flags)
{
    struct ipcns *ns = ipc_caller_ns(ctx);
    struct sysv_object *o = NULL;
    int r = sysv_get(ctx, &ns->msg, key, flags, &o);
    if (r)
        return r < 0 ? r : o->id;
    struct queue *q = NEW(struct queue);
    if (!q)
        return -ENOMEM;
    q->o.free = queue_free;
    q->ns = ns;
    q->max_bytes = SYSV_MSG_QUEUE_BYTES;
    q->ctime = time(NULL);
    list_init(&q->messages);
    waitq_init(&q->send_wait);
    waitq_init(&q->receive_wait);
    r = sysv_ids_add(ctx, &ns->msg, &q->o, key, (uint32_t)flags & 0777, SYSV_MSG_QUEUES_MAX);
    if (r < 0)
        mem_free(q);
    return r;
}

/* ---- sending ---- */

static bool fits(const struct queue *q, uint64_t size)
{
    return size + q->bytes <= q->max_bytes && q->len < q->max_bytes;
}

/* q is referenced. Consumes m on success. */
static int send_on(struct ctx *ctx, struct queue *q, struct message *m, int32_t flags)
{
    int r = sysv_permission(ctx, &q->o, WRITE_ALL);
    if (r)
        return r;
    if (!fits(q, m->size)) {
        if (flags & IPC_NOWAIT)
            return -EAGAIN;
        r = WAIT_EVENT(ctx, &q->send_wait, q->o.removed || fits(q, m->size));
        if (r)
            return r == -ERESTARTSYS ? -EINTR : r;
        if (q->o.removed)
            return -EIDRM;
    }
    list_add_tail(&q->messages, &m->link);
    q->bytes += m->size;
    q->len++;
    q->stime = time(NULL);
    ipc_caller_pid_put(q->last_sender);
    q->last_sender = ipc_caller_pid(ctx);
    waitq_wake_all(&q->receive_wait);
    return 0;
}

int64_t sysv_msg_send(struct ctx *ctx, int id, uaddr_t msg, uint64_t size, int32_t flags)
{
    struct sysv_object *o;
    int64_t type;
    if (COPY_IN(ctx, &type, msg))
        return -EFAULT;
    if (size > SYSV_MSG_SIZE_MAX || id < 0 || type < 1)
        return -EINVAL;
    struct message *m = mem_realloc(NULL, 1, sizeof(*m) + size);
    if (!m)
        return -ENOMEM;
    *m = (struct message){.type = type, .size = size};
    int r = copy_in(ctx, m->text, uaddr_add(msg, sizeof(type)), size);
    if (!r)
        r = sysv_ids_by_id(&ipc_caller_ns(ctx)->msg, id, &o);
    if (!r) {
        ref_get(&o->ref);
        r = send_on(ctx, to_queue(o), m, flags);
        sysv_object_unref(o);
    }
    if (r)
        mem_free(m);
    return r;
}

/* ---- receiving ---- */

static struct message *choose(const struct queue *q, int64_t type, int32_t flags)
{
    struct message *m, *best = NULL;
    if (flags & MSG_COPY) { /* type is a place in the queue */
        list_for_each_entry(m, &q->messages, link)
        {
            if (type-- == 0)
                return m;
        }
        return NULL;
    }
    list_for_each_entry(m, &q->messages, link)
    {
        if (type == 0)
            return m;
        if (type > 0) {
            if ((m->type == type) != !!(flags & MSG_EXCEPT))
                return m;
        } else if (m->type <= -type && (!best || m->type < best->type)) {
            best = m;
        }
    }
    return best;
}

/* q is referenced. */
static int64_t receive_on(struct ctx *ctx, struct queue *q, uaddr_t msg, uint64_t size, int64_t type,
                          int32_t flags)
{
    struct message *m = NULL;
    int r = sysv_permission(ctx, &q->o, READ_ALL);
    if (r)
        return r;
    if (!(m = choose(q, type, flags))) {
        if (flags & IPC_NOWAIT)
            return -ENOMSG;
        r = WAIT_EVENT(ctx, &q->receive_wait, q->o.removed || (m = choose(q, type, flags)));
        if (r)
            return r == -ERESTARTSYS ? -EINTR : r;
        if (q->o.removed)
            return -EIDRM;
    }
    if (m->size > size && !(flags & MSG_NOERROR))
        return -E2BIG;
    uint64_t n = MIN(m->size, size);
    if (flags & MSG_COPY) {
        r = COPY_OUT(ctx, msg, &m->type);
        if (!r)
            r = copy_out(ctx, uaddr_add(msg, sizeof(int64_t)), m->text, n);
        return r ? r : (int64_t)n;
    }
    list_del(&m->link);
    q->bytes -= m->size;
    q->len--;
    q->rtime = time(NULL);
    ipc_caller_pid_put(q->last_receiver);
    q->last_receiver = ipc_caller_pid(ctx);
    waitq_wake_all(&q->send_wait);
    r = COPY_OUT(ctx, msg, &m->type);
    if (!r)
        r = copy_out(ctx, uaddr_add(msg, sizeof(int64_t)), m->text, n);
    mem_free(m);
    return r ? r : (int64_t)n;
}

int64_t sysv_msg_receive(struct ctx *ctx, int id, uaddr_t msg, uint64_t size, int64_t type, int32_t flags)
{
    struct sysv_object *o;
    if (id < 0 || (int64_t)size < 0)
        return -EINVAL;
    if ((flags & MSG_COPY) && ((flags & MSG_EXCEPT) || !(flags & IPC_NOWAIT)))
        return -EINVAL;
    int r = sysv_ids_by_id(&ipc_caller_ns(ctx)->msg, id, &o);
    if (r)
        return r;
    if (type == INT64_MIN)
        type = -INT64_MAX;
    ref_get(&o->ref);
    int64_t n = receive_on(ctx, to_queue(o), msg, size, type, flags);
    sysv_object_unref(o);
    return n;
}

/* ---- control ---- */

static int64_t queue_stat(struct ctx *ctx, struct queue *q, uaddr_t buf, bool check, int64_t ret)
{
    struct msqid_ds ds;
    struct sysv_perm64 perm;
    _Static_assert(sizeof(perm) == sizeof(ds.msg_perm), "the guest's layout is the host's");
    int r = check ? sysv_permission(ctx, &q->o, READ_ALL) : 0;
    if (r)
        return r;
    memset(&ds, 0, sizeof(ds));
    sysv_fill_perm(ctx, &q->o, &perm);
    memcpy(&ds.msg_perm, &perm, sizeof(perm));
    ds.msg_stime = q->stime;
    ds.msg_rtime = q->rtime;
    ds.msg_ctime = q->ctime;
    ds.__msg_cbytes = q->bytes;
    ds.msg_qnum = q->len;
    ds.msg_qbytes = q->max_bytes;
    ds.msg_lspid = ipc_caller_pid_number(ctx, q->last_sender);
    ds.msg_lrpid = ipc_caller_pid_number(ctx, q->last_receiver);
    return COPY_OUT(ctx, buf, &ds) ? -EFAULT : ret;
}

static int64_t queue_set(struct ctx *ctx, struct queue *q, uaddr_t buf)
{
    struct msqid_ds ds;
    struct sysv_perm64 perm;
    if (COPY_IN(ctx, &ds, buf))
        return -EFAULT;
    int r = sysv_owner(ctx, &q->o);
    if (r)
        return r;
    if (ds.msg_qbytes > SYSV_MSG_QUEUE_BYTES) /* the sandbox does not hold more, not even for root */
        return -EPERM;
    memcpy(&perm, &ds.msg_perm, sizeof(perm));
    r = sysv_set_perm(ctx, &q->o, &perm);
    if (r)
        return r;
    q->max_bytes = ds.msg_qbytes;
    q->ctime = time(NULL);
    waitq_wake_all(&q->send_wait);
    waitq_wake_all(&q->receive_wait);
    return 0;
}

static int64_t queue_remove(struct ctx *ctx, struct queue *q)
{
    int r = sysv_owner(ctx, &q->o);
    if (r)
        return r;
    ref_get(&q->o.ref);
    sysv_ids_remove(&q->ns->msg, &q->o);
    waitq_wake_all(&q->send_wait);
    waitq_wake_all(&q->receive_wait);
    sysv_object_unref(&q->o);
    return 0;
}

static int64_t queue_info(struct ctx *ctx, uaddr_t buf, bool usage)
{
    struct ipcns *ns = ipc_caller_ns(ctx);
    struct msginfo info = {.msgpool = SYSV_MSG_QUEUES_MAX * (SYSV_MSG_QUEUE_BYTES / 1024), .msgmap = SYSV_MSG_QUEUE_BYTES,
                           .msgmax = SYSV_MSG_SIZE_MAX, .msgmnb = SYSV_MSG_QUEUE_BYTES, .msgmni = SYSV_MSG_QUEUES_MAX,
                           .msgssz = 16, .msgtql = SYSV_MSG_QUEUE_BYTES, .msgseg = 0xffff};
    if (usage) {
        uint64_t messages = 0, bytes = 0;
        for (int i = 0; i <= sysv_ids_max_slot(&ns->msg); i++) {
            struct sysv_object *o = sysv_ids_at(&ns->msg, (uint32_t)i);
            messages += o ? to_queue(o)->len : 0;
            bytes += o ? to_queue(o)->bytes : 0;
        }
        info.msgpool = (int)ns->msg.used;
        info.msgmap = (int)messages;
        info.msgtql = (int)bytes;
    }
    return COPY_OUT(ctx, buf, &info) ? -EFAULT : MAX(sysv_ids_max_slot(&ns->msg), 0);
}

int64_t sysv_msg_control(struct ctx *ctx, int id, int32_t cmd, uaddr_t buf)
{
    struct ipcns *ns = ipc_caller_ns(ctx);
    struct sysv_object *o;
    if (id < 0 || cmd < 0)
        return -EINVAL;
    if (cmd == IPC_INFO || cmd == MSG_INFO)
        return queue_info(ctx, buf, cmd == MSG_INFO);
    if (cmd == MSG_STAT || cmd == MSG_STAT_ANY) {
        o = sysv_ids_at(&ns->msg, (uint32_t)id);
        return o ? queue_stat(ctx, to_queue(o), buf, cmd == MSG_STAT, o->id) : -EINVAL;
    }
    int r = sysv_ids_by_id(&ns->msg, id, &o);
    if (r)
        return r;
    switch (cmd) {
    case IPC_STAT:
        return queue_stat(ctx, to_queue(o), buf, true, 0);
    case IPC_SET:
        return queue_set(ctx, to_queue(o), buf);
    case IPC_RMID:
        return queue_remove(ctx, to_queue(o));
    default:
        return -EINVAL;
    }
}

void sysv_msg_print(struct ctx *ctx, struct ipcns *ns, struct buf *out)
{
    buf_puts(out, "       key      msqid perms      cbytes       qnum lspid lrpid   uid   gid  cuid  cgid      stime      "
                  "rtime      ctime\n");
    for (int i = 0; i <= sysv_ids_max_slot(&ns->msg); i++) {
        struct sysv_object *o = sysv_ids_at(&ns->msg, (uint32_t)i);
        if (!o)
            continue;
        const struct queue *q = to_queue(o);
        struct sysv_perm64 p;
        sysv_fill_perm(ctx, o, &p);
        buf_printf(out, "%10d %10d  %4o  %10llu %10llu %5u %5u %5u %5u %5u %5u %10lld %10lld %10lld\n", o->key, o->id,
                   o->mode, (unsigned long long)q->bytes, (unsigned long long)q->len,
                   (unsigned)ipc_caller_pid_number(ctx, q->last_sender),
                   (unsigned)ipc_caller_pid_number(ctx, q->last_receiver), p.uid, p.gid, p.cuid, p.cgid, (long long)q->stime, (long long)q->rtime, (long long)q->ctime);
    }
}
