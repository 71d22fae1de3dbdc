/* SPDX-License-Identifier: Apache-2.0 */
/* Rings without notifications: while guests call often and a CPU is free, the kernel thread looks at their mailboxes instead
 * of sleeping.
 *
 * A wake-up on another CPU costs more than most calls, twice for each call. So a thread that came back soon after its last
 * answers is looked at after the next one for about as long as a wake-up costs. A look that was in vain makes the next ones
 * rarer, so that a busy machine loses next to nothing. A post says no more than a ring does: what the kernel vouches for in
 * a notification is the thread, and the mailbox belongs to that. */
#include "platform/seccomp/seccomp_priv.h"

#include <sched.h>
#include <sys/ioctl.h>

#include "platform/base/host.h"
#include "platform/base/log.h"

#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#endif
#define LOOK_SYNC_WAKE_UP 1UL

#define LOOK_NS 20000U      /* how long to look after the answer to a post */
#define LOOK_WOKEN_NS 50000U /* and after one that has to wake its thread first */
#define LOOK_SLICE_NS 2000U /* and how long between two looks at the descriptors */
#define LOOK_QUICK_NS 60000U /* an answer and the next call are this near where looking may pay */
enum {
    LOOK_MAX = 8,       /* threads looked at at once */
    LOOK_QUICK = 3,     /* so many quick calls in a row before looking */
    LOOK_PAUSE_MAX = 64,
};

static bool look_set_sync(struct scp *p, bool on)
{
    return ioctl(p->listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, on ? LOOK_SYNC_WAKE_UP : 0UL) == 0;
}

void scp_look_init(struct scp *p)
{
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    /* With more CPUs than the set holds the call fails, and there are enough. */
    p->look_off = sched_getaffinity(0, sizeof(cpus), &cpus) == 0 && CPU_COUNT(&cpus) < 2;
    /* 6.6+: the notified thread runs on the notifier's CPU at once. Older hosts just are slower. */
    p->sync_wake = look_set_sync(p, true);
    if (!p->sync_wake)
        log_debug("seccomp: no SYNC_WAKE_UP on this host");
}

void scp_look_came(struct scp *p, struct scp_thread *t)
{
    if (p->look_off)
        return;
    if (t->posted || host_monotonic_ns() - t->answered_ns < LOOK_QUICK_NS)
        t->quick++;
    else
        t->quick = 0;
}

void scp_look_for(struct scp *p, struct scp_thread *t)
{
    if (p->look_off)
        return;
    t->answered_ns = host_monotonic_ns();
    if (t->quick < LOOK_QUICK || !t->mbox || t->state == SCP_ENDED)
        return;
    if (list_empty(&t->look_link)) {
        if (p->looked_len == LOOK_MAX)
            return;
        if (p->look_paused) {
            p->look_paused--;
            return;
        }
        list_add(&p->looked_at, &t->look_link);
        p->looked_len++;
        __atomic_store_n(&t->mbox->post.looked_at, 1, __ATOMIC_SEQ_CST);
        /* The one that is woken now must not wait for this CPU, which is about to be kept busy. */
        if (p->looked_len == 1 && p->sync_wake)
            look_set_sync(p, false);
    }
    uint64_t until_ns = t->answered_ns + (t->posted ? LOOK_NS : LOOK_WOKEN_NS);
    p->look_until_ns = MAX(p->look_until_ns, until_ns);
}

static bool look_swap(struct scp_thread *t, uint32_t from, uint32_t to)
{
    return __atomic_compare_exchange_n(&t->mbox->post.state, &from, to, false, __ATOMIC_SEQ_CST,
                                       __ATOMIC_SEQ_CST);
}

void scp_look_reply(struct scp_thread *t, int64_t value)
{
    t->posted = false;
    if (!t->mbox)
        return;
    t->mbox->post.reply = value;
    /* If the thread gave up waiting it rings with the same number, and gets the same answer. */
    look_swap(t, STUB_POST_TAKEN, STUB_POST_REPLIED);
}

void scp_look_ring(struct scp_thread *t)
{
    if (t->posted && t->mbox)
        look_swap(t, STUB_POST_TAKEN, STUB_POST_RING);
}

/* Takes t's post, if there is one. */
static bool look_take(struct scp *p, struct scp_thread *t)
{
    volatile struct stub_post *post = &t->mbox->post;
    if (post->state != STUB_POST_POSTED || t->base.aspace->dead ||
        !look_swap(t, STUB_POST_POSTED, STUB_POST_TAKEN))
        return false;
    uint64_t seq = post->seq, op = post->op;
    if (seq == t->seq || op == STUB_OP_BIRTH) {
        look_swap(t, STUB_POST_TAKEN, STUB_POST_RING); /* no stub does that: it may ring */
        return false;
    }
    scp_take(p, t, 0, seq, op);
    return true;
}

void scp_look_forget(struct scp *p, struct scp_thread *t)
{
    if (list_empty(&t->look_link))
        return;
    if (t->mbox)
        __atomic_store_n(&t->mbox->post.looked_at, 0, __ATOMIC_SEQ_CST);
    list_del(&t->look_link);
    if (--p->looked_len == 0 && p->sync_wake)
        look_set_sync(p, true);
}

/* Return: whether a post was taken. Each is taken at most once a round, and handling one may change the list. */
static bool look_round(struct scp *p)
{
    struct scp_thread *at[LOOK_MAX], *t;
    unsigned len = 0;
    bool any = false;
    list_for_each_entry(t, &p->looked_at, look_link)
        if (*(volatile uint32_t *)&t->mbox->post.state == STUB_POST_POSTED)
            at[len++] = t;
    for (unsigned i = 0; i < len; i++)
        any |= !list_empty(&at[i]->look_link) && look_take(p, at[i]);
    return any;
}

/* What has been taken and not answered by now waits for something: its thread had better sleep. */
static void look_send_to_sleep(struct scp *p)
{
    struct scp_thread *t;
    list_for_each_entry(t, &p->looked_at, look_link)
        scp_look_ring(t);
}

/* Stops looking. Return: whether a post came at the last moment. */
static bool look_end(struct scp *p)
{
    struct scp_thread *at[LOOK_MAX], *t, *next;
    unsigned len = 0;
    bool any = false;
    list_for_each_entry_safe(t, next, &p->looked_at, look_link)
    {
        scp_look_forget(p, t);
        at[len++] = t;
    }
    for (unsigned i = 0; i < len; i++)
        any |= look_take(p, at[i]);
    if (any) {
        p->look_pause = 0;
    } else {
        p->look_pause = MIN(p->look_pause * 2 + 1, (unsigned)LOOK_PAUSE_MAX);
        p->look_paused = p->look_pause;
    }
    return any;
}

bool scp_look(void *arg)
{
    struct scp *p = arg;
    if (list_empty(&p->looked_at))
        return false;
    look_send_to_sleep(p);
    uint64_t start = host_monotonic_ns(), now = start;
    do {
        for (int i = 0; i < 8; i++) {
            if (look_round(p)) {
                p->look_pause = 0;
                return true;
            }
            __builtin_ia32_pause();
        }
        now = host_monotonic_ns();
        if (now >= p->look_until_ns)
            return look_end(p);
    } while (now - start < LOOK_SLICE_NS);
    return true;
}
