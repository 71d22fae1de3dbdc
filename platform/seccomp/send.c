/* SPDX-License-Identifier: Apache-2.0 */
/* Answers to doorbells, with descriptors.
 *
 * A descriptor is installed by the thread that gets it, on its way out of the notification, and the host call that
 * sends it waits for that. Mostly this is a matter of microseconds; but a guest can keep hundreds of threads busy, and
 * then the one that is waited for gets its turn late. As soon as that is seen, descriptors are handed over from
 * another thread. */
#include "platform/seccomp/seccomp_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "platform/base/log.h"

#define SEND_SLOW_NS 1000000U /* a hand-over that took so long makes the next ones go by another thread */
enum { SEND_SLOW_RUN = 64 };  /* so many */

struct scp_send {
    struct scp *p;
    struct scp_thread *t; /* (k) NULL: it has gone on */
    int listener, fd;     /* (i) fd is owned */
    uint64_t id;          /* (i) */
    uint64_t took_ns;
};

static int send_addfd(int listener, uint64_t id, int fd, uint32_t flags)
{
    struct seccomp_notif_addfd add = {
        .id = id,
        .flags = flags,
        .srcfd = (uint32_t)fd,
        .newfd_flags = 02000000, /* O_CLOEXEC: nothing execs, but say so */
    };
    int r;
    do
        r = (int)host_ret(ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add));
    while (r == -EINTR);
    /* −ENOENT: interrupted before the call, −ESRCH: during it. */
    return r == -ESRCH ? -ENOENT : r;
}

int scp_inject_wait(struct scp *p, struct scp_thread *t, int fd)
{
    for (;;) {
        int r = t->notif_id ? send_addfd(p->listener, t->notif_id, fd, 0) : -ENOENT;
        if (r != -ENOENT || t->base.aspace->dead)
            return r;
        /* The echo brings a new number, or the process is dying. */
        t->notif_id = 0;
        scp_look_ring(t);
        void *before = t->fiber;
        t->fiber = p->config.self();
        while (!t->notif_id && !t->base.aspace->dead)
            p->config.park();
        t->fiber = before;
    }
}

/* What is to go along with the answer. */
static int send_which(const struct scp_thread *t)
{
    return t->mbox_fd >= 0 ? t->mbox_fd : t->tail_due ? t->due_tail.fd : t->send_fd;
}

void scp_send_done(struct scp_thread *t)
{
    if (t->send)
        t->send->t = NULL;
    t->send = NULL;
    t->send_fd = -1;
    scp_drop_tail(t);
    host_close(t->mbox_fd);
    t->mbox_fd = -1;
}

/* The hand-over has ended with r. */
static void send_result(struct scp *p, struct scp_thread *t, uint64_t id, int r)
{
    if (r == -ENOENT) {
        if (t->notif_id == id)
            t->notif_id = 0;
        if (!t->notif_id)
            t->answer_due = true;
        else if (t->state == SCP_ENDED)
            scp_thread_release(p, t);
        else
            scp_answer(p, t); /* the echo came meanwhile */
        return;
    }
    scp_send_done(t);
    if (r < 0) {
        scp_reply(p, t, r);
        return;
    }
    t->replied = true;
    t->reply = r;
    t->notif_id = 0;
}

static long send_host(void *arg)
{
    struct scp_send *s = arg;
    uint64_t t0 = host_monotonic_ns();
    int r = send_addfd(s->listener, s->id, s->fd, SECCOMP_ADDFD_FLAG_SEND);
    s->took_ns = host_monotonic_ns() - t0;
    return r;
}

static void send_fiber(void *arg)
{
    struct scp_send *s = arg;
    struct scp *p = s->p;
    int r = (int)p->config.offload(send_host, s);
    if (s->took_ns >= SEND_SLOW_NS)
        p->slow_sends = SEND_SLOW_RUN;
    else if (p->slow_sends)
        p->slow_sends--;
    if (s->t) {
        s->t->send = NULL;
        send_result(p, s->t, s->id, r);
    }
    host_close(s->fd);
    mem_free(s);
}

/* Return: 0, or −errno when it has to be done here after all. */
static int send_elsewhere(struct scp *p, struct scp_thread *t, int fd)
{
    struct scp_send *s = NEW(struct scp_send);
    if (!s)
        return -ENOMEM;
    *s = (struct scp_send){.p = p, .t = t, .listener = p->listener, .id = t->notif_id};
    s->fd = (int)host_ret(fcntl(fd, F_DUPFD_CLOEXEC, 3));
    if (s->fd < 0 || p->config.spawn(send_fiber, s)) {
        host_close(s->fd);
        mem_free(s);
        return -ENOMEM;
    }
    t->send = s;
    return 0;
}

void scp_answer(struct scp *p, struct scp_thread *t)
{
    int fd = send_which(t);
    uint64_t id = t->notif_id;
    scp_guestmem_reset(t);
    if (fd < 0) {
        scp_send_done(t);
        scp_reply(p, t, 0);
        return;
    }
    if (!id) {
        t->answer_due = true;
        scp_look_ring(t);
        return;
    }
    if (p->slow_sends && !send_elsewhere(p, t, fd))
        return;
    uint64_t t0 = host_monotonic_ns();
    int r = send_addfd(p->listener, id, fd, SECCOMP_ADDFD_FLAG_SEND);
    if (host_monotonic_ns() - t0 >= SEND_SLOW_NS)
        p->slow_sends = SEND_SLOW_RUN;
    send_result(p, t, id, r);
}
