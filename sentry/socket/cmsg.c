/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors and credentials in flight. A unix socket that is held by nothing but messages lying in sockets that are
 * themselves unreachable would live for ever: a collector looks for those (as every kernel with SCM_RIGHTS needs). */
#include "sentry/socket/cmsg.h"

#include <linux/capability.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "sentry/abi/abi_errno.h"
#include "sentry/core/cred.h"
#include "sentry/core/ktimer.h"
#include "sentry/core/limits.h"
#include "sentry/kernel/fdtable.h"
#include "sentry/kernel/pidns.h"
#include "sentry/kernel/task.h"
#include "sentry/socket/socket.h"
#include "sentry/vfs/file.h"

enum { SCM_RIGHTS_MAX = LIMIT_SCM_FDS, INFLIGHT_MAX = 65536 };
#define GC_DELAY_NS 20000000ULL

/* (k) all files in queues; the sockets among them; when to look for garbage. */
static struct {
    uint32_t files;
    struct list sockets;
    struct ktimer timer;
} flight = {.sockets = LIST_INIT(flight.sockets)};

/* ---- credentials ---- */

void scm_cred_current(struct ctx *ctx, struct scm_cred *ret_cred)
{
    struct task *t = ctx_task_or_null(ctx);
    *ret_cred = scm_cred_nobody();
    if (!t)
        return;
    ret_cred->pid = pid_ref(t->group->leader->pid);
    ret_cred->uid = t->ctx.cred->euid;
    ret_cred->gid = t->ctx.cred->egid;
}

void scm_cred_copy(struct scm_cred *dst, const struct scm_cred *src)
{
    *dst = *src;
    if (dst->pid)
        pid_ref(dst->pid);
}

void scm_cred_clear(struct scm_cred *cred)
{
    if (cred->pid)
        pid_unref(cred->pid);
    *cred = scm_cred_nobody();
}

bool scm_cred_equal(const struct scm_cred *a, const struct scm_cred *b)
{
    return a->pid == b->pid && a->uid == b->uid && a->gid == b->gid;
}

void scm_free(struct scm *scm)
{
    scm_rights_free(scm->rights);
    scm->rights = NULL;
    if (scm->have_cred)
        scm_cred_clear(&scm->cred);
    scm->have_cred = false;
}

/* ---- rights ---- */

static struct scm_rights *rights_new(uint32_t len)
{
    return mem_zalloc(sizeof(struct scm_rights) + len * sizeof(struct file *));
}

struct scm_rights *scm_rights_dup(const struct scm_rights *r)
{
    struct scm_rights *d = rights_new(r->len);
    if (!d)
        return NULL;
    for (; d->len < r->len; d->len++)
        d->files[d->len] = file_ref(r->files[d->len]);
    return d;
}

void scm_rights_free(struct scm_rights *r)
{
    if (!r)
        return;
    scm_rights_land(r);
    for (uint32_t i = 0; i < r->len; i++)
        file_unref(r->files[i]);
    mem_free(r);
}

int scm_rights_launch(struct ctx *ctx, struct scm_rights *r)
{
    struct task *t = ctx_task_or_null(ctx);
    uint64_t limit = t ? t->group->rlimits[RLIMIT_NOFILE].rlim_cur : INFLIGHT_MAX;
    if (t && (cred_has_cap(t->ctx.cred, CAP_SYS_RESOURCE) || cred_has_cap(t->ctx.cred, CAP_SYS_ADMIN)))
        limit = INFLIGHT_MAX;
    if (flight.files > limit || flight.files + r->len > INFLIGHT_MAX)
        return -ETOOMANYREFS;
    flight.files += r->len;
    r->in_flight = true;
    for (uint32_t i = 0; i < r->len; i++) {
        struct socket *s = socket_of(r->files[i]);
        if (s && s->family == AF_UNIX && s->inflight++ == 0)
            list_add_tail(&flight.sockets, &s->inflight_link);
    }
    return 0;
}

void scm_rights_land(struct scm_rights *r)
{
    if (!r->in_flight)
        return;
    r->in_flight = false;
    flight.files -= r->len;
    for (uint32_t i = 0; i < r->len; i++) {
        struct socket *s = socket_of(r->files[i]);
        if (s && s->family == AF_UNIX && --s->inflight == 0)
            list_del(&s->inflight_link);
    }
}

/* ---- the collector ---- */

static void gc_discount(struct file *f, void *arg)
{
    struct socket *s = socket_of(f);
    if (s && s->family == AF_UNIX && s->inflight && s->gc_count)
        s->gc_count--;
}

/* arg: list of sockets to look through. Whatever lies in a reachable queue is reachable. */
static void gc_reach(struct file *f, void *arg)
{
    struct socket *s = socket_of(f);
    if (!s || s->family != AF_UNIX || s->gc_reached || !s->inflight)
        return;
    s->gc_reached = true;
    list_del(&s->inflight_link);
    list_add_tail(arg, &s->inflight_link);
}

/* A socket in flight has as many references from outside as its file's count exceeds the in-flight ones. Sockets
 * without any are candidates; those that some reachable queue holds, directly or not, are none; the rest is garbage. */
void scm_gc_run(void)
{
    struct list reached = LIST_INIT(reached), dead = LIST_INIT(dead);
    struct socket *s;
    list_for_each_entry(s, &flight.sockets, inflight_link)
    {
        bool candidate = s->file && s->file->ref.count == s->inflight;
        s->gc_count = candidate ? s->inflight : 0;
        s->gc_reached = !candidate;
    }
    /* References that come from candidates' own queues do not make anything reachable. */
    list_for_each_entry(s, &flight.sockets, inflight_link)
    {
        if (!s->gc_reached && s->ops->visit_files)
            s->ops->visit_files(s, gc_discount, NULL);
    }
    struct socket *tmp;
    list_for_each_entry_safe(s, tmp, &flight.sockets, inflight_link)
    {
        if (s->gc_reached || s->gc_count) {
            s->gc_reached = true;
            list_del(&s->inflight_link);
            list_add_tail(&reached, &s->inflight_link);
        }
    }
    list_for_each_entry(s, &reached, inflight_link) /* grows while it runs */
    {
        if (s->ops->visit_files)
            s->ops->visit_files(s, gc_reach, &reached);
    }
    while (!list_empty(&flight.sockets)) {
        s = list_first(&flight.sockets, struct socket, inflight_link);
        list_del(&s->inflight_link);
        list_add_tail(&dead, &s->inflight_link);
        socket_ref(s);
    }
    list_splice_tail(&flight.sockets, &reached);
    /* Purging lands the rights, which unlinks sockets from dead one after another. */
    while (!list_empty(&dead)) {
        s = list_first(&dead, struct socket, inflight_link);
        list_del(&s->inflight_link);
        if (s->inflight)
            list_add_tail(&flight.sockets, &s->inflight_link);
        if (s->ops->purge_files)
            s->ops->purge_files(s);
        socket_unref(s);
    }
}

static void gc_timer(struct ktimer *t)
{
    if (!list_empty(&flight.sockets))
        scm_gc_run();
}

void scm_gc_request(void)
{
    if (list_empty(&flight.sockets) || ktimer_armed(&flight.timer))
        return;
    /* Without a timer the next close tries again. */
    (void)!ktimer_set(&flight.timer, host_monotonic_ns() + GC_DELAY_NS, gc_timer);
}

/* ---- control messages of a send ---- */

static int parse_rights(struct task *t, const int32_t *fds, size_t len, struct scm *scm)
{
    size_t old = scm->rights ? scm->rights->len : 0;
    if (len + old > SCM_RIGHTS_MAX)
        return -EINVAL;
    if (len == 0)
        return 0;
    struct scm_rights *r = rights_new((uint32_t)(len + old));
    if (!r)
        return -ENOMEM;
    if (scm->rights) {
        memcpy(r->files, scm->rights->files, old * sizeof(r->files[0]));
        r->len = (uint32_t)old;
        mem_free(scm->rights);
    }
    scm->rights = r;
    for (size_t i = 0; i < len; i++) {
        int32_t fd;
        memcpy(&fd, fds + i, sizeof(fd));
        struct file *f = fd < 0 ? NULL : fdtable_get_any(t, fd);
        if (!f)
            return -EBADF;
        r->files[r->len++] = f;
    }
    return 0;
}

static int parse_cred(struct task *t, const void *data, struct scm *scm)
{
    const struct cred *c = t->ctx.cred;
    struct ucred u;
    memcpy(&u, data, sizeof(u));
    uint32_t uid = userns_uid_in(c->userns, u.uid), gid = userns_gid_in(c->userns, u.gid);
    if (uid == USERNS_NO_ID || gid == USERNS_NO_ID)
        return -EINVAL;
    if (u.pid != tgroup_pid_for(t->group, t) && !cred_ns_cap(c, t->pidns->userns, CAP_SYS_ADMIN))
        return -EPERM;
    if (uid != c->uid && uid != c->euid && uid != c->suid && !cred_own_cap(c, CAP_SETUID))
        return -EPERM;
    if (gid != c->gid && gid != c->egid && gid != c->sgid && !cred_own_cap(c, CAP_SETGID))
        return -EPERM;
    struct pid *pid = pid_peek(t->pidns, u.pid);
    if (!pid)
        return -ESRCH;
    if (scm->have_cred)
        scm_cred_clear(&scm->cred);
    scm->have_cred = true;
    scm->cred = (struct scm_cred){.pid = pid_ref(pid), .uid = uid, .gid = gid};
    return 0;
}

int scm_parse(struct task *t, const void *data, size_t size, bool rights_ok, struct scm *scm)
{
    size_t at = 0;
    int r = 0;
    while (!r && size - at >= sizeof(struct cmsghdr)) {
        struct cmsghdr h;
        const char *p = (const char *)data + at;
        memcpy(&h, p, sizeof(h));
        if (h.cmsg_len < sizeof(h) || h.cmsg_len > size - at) {
            r = -EINVAL;
            break;
        }
        size_t body = h.cmsg_len - sizeof(h);
        if (h.cmsg_level == SOL_SOCKET) {
            if (h.cmsg_type == SCM_RIGHTS)
                r = rights_ok ? parse_rights(t, (const int32_t *)(p + sizeof(h)), body / 4, scm) : -EINVAL;
            else if (h.cmsg_type == SCM_CREDENTIALS)
                r = body == sizeof(struct ucred) ? parse_cred(t, p + sizeof(h), scm) : -EINVAL;
            else
                r = -EINVAL;
        }
        size_t step = ALIGN_UP(h.cmsg_len, sizeof(uint64_t));
        if (step > size - at)
            break;
        at += step;
    }
    if (r)
        scm_free(scm);
    return r;
}
