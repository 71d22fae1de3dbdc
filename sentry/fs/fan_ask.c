/* SPDX-License-Identifier: Apache-2.0 */
/* fanotify's questions: whoever opens or reads a file waits until the group has answered, or is closed. */
#include "sentry/fs/fan_priv.h"

#include <sys/epoll.h>

#include "sentry/abi/abi_errno.h"
#include "sentry/mm/usermem.h"
#include "sentry/vfs/file.h"

void fan_answer(struct fan_group *g, struct fan_event *e, uint32_t answer)
{
    e->answer = answer & ~(uint32_t)FAN_INFO;
    if (e->state == FAN_CANCELLED) {
        fan_event_free(e);
        return;
    }
    e->state = FAN_ANSWERED;
    waitq_wake_all(&g->answered);
}

static int ask(struct ctx *ctx, const struct fan_hit *hit, const struct notify_event *ev)
{
    struct fan_group *g = hit->group;
    if (g->closed)
        return 0;
    if (g->events_len >= g->events_max) {
        fan_event_overflow(g);
        return 0;
    }
    struct fan_event *e = fan_event_make(hit, ev);
    if (!e)
        return -ENOMEM;
    list_add_tail(&g->events, &e->link);
    g->events_len++;
    waitq_wake(&g->wait, EPOLLIN | EPOLLRDNORM);
    int r = WAIT_EVENT_STATE(ctx, &g->answered, e->state == FAN_ANSWERED, CTX_WAIT_KILLABLE, WAIT_FOREVER);
    if (e->state == FAN_ANSWERED) {
        if (r == 0 && (e->answer & ~(uint32_t)FAN_AUDIT) != FAN_ALLOW)
            r = -EPERM;
    } else if (e->state == FAN_REPORTED) {
        /* The reader has it in hand and will answer to nobody. */
        e->state = FAN_CANCELLED;
        return r;
    } else {
        fan_event_unqueue(g, e);
    }
    fan_event_free(e);
    return r;
}

int fan_ask(struct ctx *ctx, const struct notify_event *ev)
{
    struct fan_hit *hits;
    unsigned len;
    int r = fan_hits_find(ev, &hits, &len);
    for (unsigned i = 0; i < len && r == 0; i++)
        r = ask(ctx, &hits[i], ev);
    fan_hits_free(hits, len);
    return r;
}

/* ---- answers ---- */

static ssize_t answer_rule(struct uio *u)
{
    struct fan_abi_audit_rule rule;
    if (u->left != sizeof(rule))
        return -EINVAL;
    if (uio_get(u, &rule, sizeof(rule)) != sizeof(rule))
        return -EFAULT;
    return rule.type == 1 && rule.pad == 0 && rule.size == sizeof(rule) ? (ssize_t)sizeof(rule) : -EINVAL;
}

ssize_t fan_write(struct file *f, struct uio *u, int64_t *pos)
{
    struct fan_group *g = fan_group_of(f);
    struct fanotify_response response;
    struct fan_event *e;
    ssize_t more = 0;
    if (u->left < sizeof(response))
        return -EINVAL;
    if (uio_get(u, &response, sizeof(response)) != sizeof(response))
        return -EFAULT;
    uint32_t what = response.response, verdict = what & (FAN_ALLOW | FAN_DENY);
    if ((what & ~(uint32_t)(FAN_ALLOW | FAN_DENY | FAN_AUDIT | FAN_INFO)) || (verdict != FAN_ALLOW && verdict != FAN_DENY))
        return -EINVAL;
    /* Nothing is recorded, as on a Linux whose auditing is off. */
    if ((what & FAN_AUDIT) && !(g->flags & FAN_ENABLE_AUDIT))
        return -EINVAL;
    if (what & FAN_INFO) {
        more = answer_rule(u);
        if (more < 0)
            return more;
        if (response.fd == FAN_NOFD)
            return (ssize_t)sizeof(response) + more;
    }
    if (response.fd < 0)
        return -EINVAL;
    list_for_each_entry (e, &g->asked, link) {
        if (e->fd != response.fd)
            continue;
        list_del(&e->link);
        fan_answer(g, e, what);
        return (ssize_t)sizeof(response) + more;
    }
    return -ENOENT;
}
