/* SPDX-License-Identifier: Apache-2.0 */
/* POSIX message queues: named per IPC namespace, ordered by priority, with a notification for the first message that
 * comes to an empty queue. */
#include "sentry/ipc/posix_mq.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "platform/base/alloc.h"
#include "platform/base/buf.h"
#include "platform/base/list.h"
#include "sentry/abi/abi_errno.h"
#include "sentry/core/cred.h"
#include "sentry/core/waitq.h"
#include "sentry/ipc/ipc_caller.h"
#include "sentry/ipc/ipcns.h"
#include "sentry/mm/usermem.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/inode.h"
#include "sentry/vfs/path_walk.h"

enum { COOKIE_WOKEN = 1, COOKIE_REMOVED = 2, NODE_OVERHEAD = 128 };

struct mq_table {
    struct list queues;  /* (k) of mqueue.link */
    uint32_t len;
    uint64_t bytes;      /* (k) what all queues may hold */
};

struct message {
    struct list link;
    uint32_t prio, size;
    uint8_t data[];
};

struct notify {
    struct tgroup *group; /* (k) referenced; NULL: nobody is registered */
    struct sigevent ev;
    struct file *thread;  /* (k) netlink socket, referenced; NULL unless SIGEV_THREAD */
    uint8_t cookie[MQ_COOKIE_SIZE];
};

struct mqueue {
    struct ref ref;           /* the table's while it has a name, and one for each file */
    struct mq_table *table;   /* (k) NULL once unlinked */
    struct list link;
    struct path path;         /* (k) of the open files, referenced; empty while there are none */
    uint32_t files;           /* (k) */
    uint32_t uid, gid, mode;  /* (i) */
    uint32_t max_len, max_size; /* (i) */
    uint32_t len;             /* (k) messages */
    uint64_t bytes;           /* (k) of data */
    struct list messages;     /* (k) highest priority first */
    struct waitq send_wait, receive_wait;
    uint32_t receivers;       /* (k) asleep in receive */
    struct notify notify;
    char name[];
};

/* ---- tables ---- */

static uint64_t cost(const struct mqueue *q)
{
    return (uint64_t)q->max_len * (q->max_size + NODE_OVERHEAD);
}

static void message_drop(struct mqueue *q, struct message *m)
{
    list_del(&m->link);
    q->len--;
    q->bytes -= m->size;
    mem_free(m);
}

static void notify_clear(struct mqueue *q, uint8_t reason)
{
    struct notify *n = &q->notify;
    if (!n->group)
        return;
    if (n->thread) {
        n->cookie[MQ_COOKIE_SIZE - 1] = reason;
        ipc_caller_tell(n->thread, n->cookie, MQ_COOKIE_SIZE);
        file_unref(n->thread);
    }
    ipc_caller_group_put(n->group);
    *n = (struct notify){0};
}

static void mqueue_unref(struct mqueue *q)
{
    if (!ref_put(&q->ref))
        return;
    notify_clear(q, COOKIE_REMOVED);
    while (!list_empty(&q->messages))
        message_drop(q, list_first(&q->messages, struct message, link));
    mem_free(q);
}

/* Takes the name away. */
static void mqueue_unlink(struct mqueue *q)
{
    q->table->len--;
    q->table->bytes -= cost(q);
    q->table = NULL;
    list_del(&q->link);
    mqueue_unref(q);
}

static struct mq_table *table_of(struct ipcns *ns)
{
    if (!ns->mq) {
        struct mq_table *table = NEW(struct mq_table);
        if (!table)
            return NULL;
        list_init(&table->queues);
        ns->mq = table;
    }
    return ns->mq;
}

void posix_mq_table_free(struct mq_table *table)
{
    if (!table)
        return;
    while (!list_empty(&table->queues))
        mqueue_unlink(list_first(&table->queues, struct mqueue, link));
    mem_free(table);
}

static struct mqueue *mqueue_find(const struct mq_table *table, const char *name)
{
    struct mqueue *q;
    if (!table)
        return NULL;
    list_for_each_entry(q, &table->queues, link)
    {
        if (!strcmp(q->name, name))
            return q;
    }
    return NULL;
}

static int name_check(const char *name)
{
    if (!*name)
        return -ENOENT;
    if (strlen(name) > MQ_NAME_MAX)
        return -ENAMETOOLONG;
    if (strchr(name, '/') || !strcmp(name, ".") || !strcmp(name, ".."))
        return -EACCES;
    return 0;
}

/* ---- opening ---- */

static bool may(const struct cred *c, const struct mqueue *q, uint32_t flags)
{
    static const uint8_t wants[] = {4, 2, 6, 6};
    uint32_t granted = q->mode, want = wants[flags & O_ACCMODE];
    if (c->fsuid == q->uid)
        granted >>= 6;
    else if (cred_in_group(c, q->gid))
        granted >>= 3;
    return (granted & want) == want || cred_cap_wrt(c, q->uid, q->gid, CAP_DAC_OVERRIDE);
}

static int attr_check(struct ctx *ctx, const struct mq_attr *a)
{
    bool big = cred_has_cap(ctx->cred, CAP_SYS_RESOURCE);
    if (a->mq_maxmsg <= 0 || a->mq_msgsize <= 0)
        return -EINVAL;
    if (a->mq_maxmsg > (big ? MQ_MSG_MAX_HARD : MQ_MSG_MAX) || a->mq_msgsize > (big ? MQ_SIZE_MAX_HARD : MQ_SIZE_MAX))
        return -EINVAL;
    return 0;
}

static int mqueue_new(struct ctx *ctx, struct mq_table *table, const char *name, uint32_t mode,
                      const struct mq_attr *attr, struct mqueue **ret_queue)
{
    uint32_t max_len = MQ_MSG_MAX, max_size = MQ_SIZE_MAX;
    if (attr) {
        int r = attr_check(ctx, attr);
        if (r)
            return r;
        max_len = (uint32_t)attr->mq_maxmsg;
        max_size = (uint32_t)attr->mq_msgsize;
    }
    if (table->len >= MQ_QUEUES_MAX)
        return -ENOSPC;
    uint64_t bytes = (uint64_t)max_len * (max_size + NODE_OVERHEAD);
    if (table->bytes + bytes > ipc_caller_rlimit(ctx, RLIMIT_MSGQUEUE))
        return -EMFILE;
    struct mqueue *q = mem_zalloc(sizeof(*q) + strlen(name) + 1);
    if (!q)
        return -ENOMEM;
    strcpy(q->name, name);
    ref_init(&q->ref);
    q->table = table;
    q->uid = ctx->cred->fsuid;
    q->gid = ctx->cred->fsgid;
    q->mode = mode & 0777 & ~ipc_caller_umask(ctx);
    q->max_len = max_len;
    q->max_size = max_size;
    list_init(&q->messages);
    waitq_init(&q->send_wait);
    waitq_init(&q->receive_wait);
    list_add_tail(&table->queues, &q->link);
    table->len++;
    table->bytes += bytes;
    *ret_queue = q;
    return 0;
}

static const struct file_ops mq_ops;

/* All open files of a queue share one inode. */
static struct file *mq_file(struct mqueue *q, uint32_t flags, const struct cred *cred)
{
    struct file *f;
    flags &= O_ACCMODE | O_NONBLOCK;
    if (q->files) {
        f = file_new(&q->path, flags, &mq_ops, cred);
        if (f)
            f->priv = q;
    } else {
        char shown[MQ_NAME_MAX + 2] = "/";
        strcpy(shown + 1, q->name);
        f = file_new_anon(shown, S_IFREG | q->mode, flags, &mq_ops, q, cred);
        if (f) {
            f->inode->uid = q->uid;
            f->inode->gid = q->gid;
            f->inode->size = 80;
        }
    }
    if (!f)
        return NULL;
    if (!q->files++)
        q->path = path_ref(f->path);
    ref_get(&q->ref);
    return f;
}

int posix_mq_open_file(struct ctx *ctx, const char *name, uint32_t flags, uint32_t mode, const struct mq_attr *attr,
                 struct file **ret_file)
{
    struct mq_table *table = table_of(ipc_caller_ns(ctx));
    int r = name_check(name);
    if (r)
        return r;
    if (!table)
        return -ENOMEM;
    struct mqueue *q = mqueue_find(table, name);
    bool made = false;
    if (q) {
        if ((flags & O_CREAT) && (flags & O_EXCL))
            return -EEXIST;
        if ((flags & O_ACCMODE) == O_ACCMODE)
            return -EINVAL;
        if (!may(ctx->cred, q, flags))
            return -EACCES;
    } else {
        if (!(flags & O_CREAT))
            return -ENOENT;
        r = mqueue_new(ctx, table, name, mode, attr, &q);
        if (r)
            return r;
        made = true;
    }
    struct file *f = mq_file(q, flags, ctx->cred);
    if (!f) {
        if (made)
            mqueue_unlink(q);
        return -ENOMEM;
    }
    *ret_file = f;
    return 0;
}

int posix_mq_unlink_name(struct ctx *ctx, const char *name)
{
    int r = name_check(name);
    if (r)
        return r;
    struct mqueue *q = mqueue_find(ipc_caller_ns(ctx)->mq, name);
    if (!q)
        return -ENOENT;
    /* The directory is sticky: owners only. */
    if (ctx->cred->fsuid != q->uid && !cred_cap_wrt(ctx->cred, q->uid, q->gid, CAP_FOWNER))
        return -EACCES;
    mqueue_unlink(q);
    return 0;
}

int posix_mq_create_in(struct ctx *ctx, struct ipcns *ns, const char *name, uint32_t mode)
{
    struct mqueue *q;
    if (ipcns_deserted(ns))
        return -EACCES;
    struct mq_table *table = table_of(ns);
    if (!table)
        return -ENOMEM;
    return mqueue_find(table, name) ? -EEXIST : mqueue_new(ctx, table, name, mode, NULL, &q);
}

int posix_mq_unlink_in(struct ipcns *ns, const char *name)
{
    struct mqueue *q = mqueue_find(ns->mq, name);
    if (!q)
        return -ENOENT;
    mqueue_unlink(q);
    return 0;
}

/* ---- messages ---- */

static struct mqueue *file_mq(const struct file *f)
{
    return f->priv;
}

/* Tells the registered process that the empty queue has got a message. */
static void notify_fire(struct mqueue *q, struct ctx *ctx)
{
    struct notify *n = &q->notify;
    if (!n->group)
        return;
    if (n->ev.sigev_notify == SIGEV_SIGNAL && n->ev.sigev_signo)
        ipc_caller_signal(ctx, n->group, &n->ev);
    notify_clear(q, COOKIE_WOKEN);
}

int64_t posix_mq_send(struct ctx *ctx, struct file *f, uaddr_t msg, uint64_t size, uint32_t prio, uint64_t deadline_ns)
{
    struct mqueue *q = file_mq(f);
    if (!file_writable(f))
        return -EBADF;
    if (size > q->max_size)
        return -EMSGSIZE;
    struct message *m = mem_realloc(NULL, 1, sizeof(*m) + size);
    if (!m)
        return -ENOMEM;
    *m = (struct message){.prio = prio, .size = (uint32_t)size};
    int r = copy_in(ctx, m->data, msg, size);
    if (!r && q->len >= q->max_len)
        r = f->flags & O_NONBLOCK ? -EAGAIN
                                  : WAIT_EVENT_UNTIL(ctx, &q->send_wait, q->len < q->max_len, deadline_ns);
    if (r) {
        mem_free(m);
        return r;
    }
    struct message *at;
    struct list *before = &q->messages;
    list_for_each_entry(at, &q->messages, link)
    {
        if (at->prio < prio) {
            before = &at->link;
            break;
        }
    }
    list_add_tail(before, &m->link);
    q->bytes += size;
    if (q->len++ == 0 && q->receivers == 0)
        notify_fire(q, ctx);
    waitq_wake(&q->receive_wait, EPOLLIN | EPOLLRDNORM);
    return 0;
}

int64_t posix_mq_receive(struct ctx *ctx, struct file *f, uaddr_t msg, uint64_t size, uaddr_t prio,
                   uint64_t deadline_ns)
{
    struct mqueue *q = file_mq(f);
    if (!file_readable(f))
        return -EBADF;
    if (size < q->max_size)
        return -EMSGSIZE;
    if (!q->len) {
        if (f->flags & O_NONBLOCK)
            return -EAGAIN;
        q->receivers++;
        int r = WAIT_EVENT_UNTIL(ctx, &q->receive_wait, q->len > 0, deadline_ns);
        q->receivers--;
        if (r)
            return r;
    }
    struct message *m = list_first(&q->messages, struct message, link);
    int64_t n = m->size;
    uint32_t p = m->prio;
    int r = copy_out(ctx, msg, m->data, m->size);
    if (!r && !uaddr_is_null(prio))
        r = COPY_OUT(ctx, prio, &p);
    message_drop(q, m);
    waitq_wake(&q->send_wait, EPOLLOUT | EPOLLWRNORM);
    return r ? r : n;
}

int posix_mq_set_notify(struct ctx *ctx, struct file *f, const struct sigevent *ev, struct file *thread,
                  const uint8_t *cookie)
{
    struct mqueue *q = file_mq(f);
    struct notify *n = &q->notify;
    if (!ev) {
        if (n->group && n->group == ipc_caller_group(ctx))
            notify_clear(q, COOKIE_REMOVED);
        return 0;
    }
    if (n->group)
        return -EBUSY;
    n->group = ipc_caller_group_ref(ipc_caller_group(ctx));
    n->ev = *ev;
    if (thread) {
        n->thread = file_ref(thread);
        memcpy(n->cookie, cookie, MQ_COOKIE_SIZE);
    }
    return 0;
}

void posix_mq_get_attr(struct file *f, struct mq_attr *ret_attr)
{
    const struct mqueue *q = file_mq(f);
    *ret_attr = (struct mq_attr){.mq_flags = f->flags & O_NONBLOCK, .mq_maxmsg = q->max_len, .mq_msgsize = q->max_size,
                                 .mq_curmsgs = q->len};
}

void posix_mq_set_flags(struct file *f, int64_t flags)
{
    f->flags = (f->flags & ~(uint32_t)O_NONBLOCK) | ((uint32_t)flags & O_NONBLOCK);
}

/* ---- the file ---- */

static void describe(const struct mqueue *q, struct buf *out)
{
    const struct notify *n = &q->notify;
    buf_printf(out, "QSIZE:%-10llu NOTIFY:%-5d SIGNO:%-5d NOTIFY_PID:%-6d\n", (unsigned long long)q->bytes,
               n->group ? n->ev.sigev_notify : 0,
               n->group && n->ev.sigev_notify == SIGEV_SIGNAL ? n->ev.sigev_signo : 0,
               n->group ? ipc_caller_group_number(n->group) : 0);
}

static ssize_t mq_read(struct file *f, struct uio *u, int64_t *pos)
{
    CLEANUP_BUF struct buf text = {0};
    describe(file_mq(f), &text);
    if (buf_error(&text))
        return -ENOMEM;
    if (*pos < 0 || (uint64_t)*pos >= text.size)
        return 0;
    ssize_t n = uio_put(u, text.data + *pos, text.size - (size_t)*pos);
    if (n > 0)
        *pos += n;
    return n;
}

static uint32_t mq_poll(struct file *f, struct poll_table *pt)
{
    struct mqueue *q = file_mq(f);
    poll_wait(pt, &q->receive_wait);
    poll_wait(pt, &q->send_wait);
    return (q->len ? EPOLLIN | EPOLLRDNORM : 0U) | (q->len < q->max_len ? EPOLLOUT | EPOLLWRNORM : 0U);
}

/* A process that closes any descriptor of the queue is no longer registered. */
static int mq_flush(struct ctx *ctx, struct file *f)
{
    struct mqueue *q = file_mq(f);
    if (q->notify.group && q->notify.group == ipc_caller_group(ctx))
        notify_clear(q, COOKIE_REMOVED);
    return 0;
}

static void mq_release(struct file *f)
{
    struct mqueue *q = file_mq(f);
    if (--q->files == 0)
        path_unref(&q->path);
    mqueue_unref(q);
}

static const struct file_ops mq_ops = {
    .read = mq_read,
    .poll = mq_poll,
    .flush = mq_flush,
    .release = mq_release,
};

bool posix_mq_is(const struct file *f)
{
    return f->ops == &mq_ops;
}

void posix_mq_for_each(struct ipcns *ns, bool (*fn)(void *arg, const char *name), void *arg)
{
    struct mqueue *q;
    if (!ns->mq)
        return;
    list_for_each_entry(q, &ns->mq->queues, link)
    {
        if (!fn(arg, q->name))
            return;
    }
}

bool posix_mq_describe(struct ipcns *ns, const char *name, struct buf *out, uint32_t *ret_mode, uint32_t *ret_uid,
                 uint32_t *ret_gid)
{
    const struct mqueue *q = mqueue_find(ns->mq, name);
    if (!q)
        return false;
    if (out)
        describe(q, out);
    *ret_mode = q->mode;
    *ret_uid = q->uid;
    *ret_gid = q->gid;
    return true;
}
