/* SPDX-License-Identifier: Apache-2.0 */
/* Pid namespaces: tables from number to pid object, in chunks that come and go with use. */
#include "sentry/kernel/pidns.h"

#include <errno.h>
#include <linux/capability.h>

#include "platform/base/alloc.h"
#include "sentry/core/cred.h"
#include "sentry/core/limits.h"
#include "sentry/core/userns.h"
#include "sentry/kernel/task.h"

/* Numbers below this are not handed out again after the first wrap: daemons keep low pids. */
enum { PID_RESERVED = 300, CHUNKS = LIMIT_PID_MAX / PIDNS_CHUNK };

struct pid_chunk {
    uint32_t used;
    struct pid *slots[PIDNS_CHUNK];
};

int pidns_new(struct pidns *parent, struct userns *userns, struct pidns **ret_ns)
{
    unsigned level = parent ? parent->level + 1 : 0;
    struct pidns *ns;

    if (level >= PIDNS_DEPTH_MAX)
        return -ENOSPC;
    ns = NEW(struct pidns);
    if (!ns)
        return -ENOMEM;
    ns->chunks = NEW_ARRAY(struct pid_chunk *, CHUNKS);
    if (!ns->chunks) {
        mem_free(ns);
        return -ENOMEM;
    }
    ref_init(&ns->ref);
    ns->parent = pidns_ref(parent);
    ns->level = level;
    ns->userns = userns_ref(userns);
    ns->ino = userns_next_ino();
    waitq_init(&ns->empty_wait);
    *ret_ns = ns;
    return 0;
}

struct pidns *pidns_ref(struct pidns *ns)
{
    if (ns)
        ref_get(&ns->ref);
    return ns;
}

void pidns_unref(struct pidns *ns)
{
    while (ns && ref_put(&ns->ref)) {
        struct pidns *parent = ns->parent;

        for (unsigned i = 0; i < CHUNKS; i++)
            mem_free(ns->chunks[i]);
        mem_free(ns->chunks);
        userns_unref(ns->userns);
        ucharge_drop(&ns->charge);
        mem_free(ns);
        ns = parent;
    }
}

bool pidns_contains(const struct pidns *outer, const struct pidns *ns)
{
    while (ns && ns->level > outer->level)
        ns = ns->parent;
    return ns == outer;
}

static struct pid **slot_of(const struct pidns *ns, int number)
{
    struct pid_chunk *c = ns->chunks[number / PIDNS_CHUNK];

    return c ? &c->slots[number % PIDNS_CHUNK] : NULL;
}

/* Finds a free number after the last one given. Return: it, or −EAGAIN. */
static int find_free(const struct pidns *ns)
{
    int number = ns->last;

    if (ns->live >= LIMIT_PID_MAX - PID_RESERVED)
        return -EAGAIN;
    for (unsigned tries = 0; tries < 2 * LIMIT_PID_MAX; tries++) {
        struct pid **slot;

        if (++number >= LIMIT_PID_MAX)
            number = PID_RESERVED;
        slot = slot_of(ns, number);
        if (!slot || !*slot)
            return number;
    }
    return -EAGAIN;
}

static void chunk_drop(struct pidns *ns, int index)
{
    if (ns->chunks[index] && ns->chunks[index]->used == 0) {
        mem_free(ns->chunks[index]);
        ns->chunks[index] = NULL;
    }
}

/* Whether a number may be asked for in ns. Return: 0, −EINVAL, −EPERM, −EEXIST. */
static int wish_check(const struct pidns *ns, int number, const struct cred *cred)
{
    struct pid **slot;

    /* The first one of all has to be pid 1. */
    if (number < 1 || number >= LIMIT_PID_MAX || (number != 1 && !ns->init))
        return -EINVAL;
    if (!cred_ns_cap(cred, ns->userns, CAP_CHECKPOINT_RESTORE) && !cred_ns_cap(cred, ns->userns, CAP_SYS_ADMIN))
        return -EPERM;
    slot = slot_of(ns, number);
    return slot && *slot ? -EEXIST : 0;
}

/* wanted 0: any number. */
static int number_take(struct pidns *ns, struct pid *pid, int wanted)
{
    int number = wanted ? wanted : find_free(ns);
    struct pid_chunk **chunk;

    if (number < 0)
        return number;
    chunk = &ns->chunks[number / PIDNS_CHUNK];
    if (!*chunk) {
        *chunk = NEW(struct pid_chunk);
        if (!*chunk)
            return -ENOMEM;
    }
    (*chunk)->slots[number % PIDNS_CHUNK] = pid;
    (*chunk)->used++;
    ns->live++;
    if (wanted)
        return number;
    if (number / PIDNS_CHUNK != ns->last / PIDNS_CHUNK)
        chunk_drop(ns, ns->last / PIDNS_CHUNK);
    ns->last = number;
    return number;
}

static void number_give(struct pidns *ns, int number)
{
    struct pid_chunk **chunk = &ns->chunks[number / PIDNS_CHUNK];

    (*chunk)->slots[number % PIDNS_CHUNK] = NULL;
    ns->live--;
    (*chunk)->used--;
    /* The chunk in use stays, or each fork of a quiet system would allocate it anew. */
    if (number / PIDNS_CHUNK != ns->last / PIDNS_CHUNK)
        chunk_drop(ns, number / PIDNS_CHUNK);
}

int pid_new(struct pidns *ns, const struct pid_wish *wish, struct pid **ret_pid)
{
    struct pid *pid;
    struct pidns *at = ns;
    int level = (int)ns->level;

    if (wish && wish->len > ns->level + 1)
        return -EINVAL;
    if (ns->dying)
        return -ENOMEM;
    pid = mem_zalloc(sizeof(*pid) + (ns->level + 1) * sizeof(pid->numbers[0]));
    if (!pid)
        return -ENOMEM;
    ref_init(&pid->ref);
    pid->level = ns->level;
    for (; at; at = at->parent, level--) {
        unsigned depth = ns->level - at->level;
        int wanted = wish && depth < wish->len ? wish->numbers[depth] : 0;
        int number = wish && depth < wish->len ? wish_check(at, wanted, wish->cred) : 0;

        if (!number)
            number = number_take(at, pid, wanted);

        if (number < 0) {
            for (struct pidns *undo = ns; undo != at; undo = undo->parent)
                number_give(undo, pid->numbers[undo->level]);
            mem_free(pid);
            return number;
        }
        pid->numbers[level] = number;
    }
    pid->ns = pidns_ref(ns);
    *ret_pid = pid;
    return 0;
}

struct pid *pid_ref(struct pid *pid)
{
    ref_get(&pid->ref);
    return pid;
}

void pid_unref(struct pid *pid)
{
    if (!pid || !ref_put(&pid->ref))
        return;
    for (struct pidns *ns = pid->ns; ns; ns = ns->parent)
        number_give(ns, pid->numbers[ns->level]);
    pidns_unref(pid->ns);
    mem_free(pid);
}

int pid_number(const struct pid *pid, const struct pidns *ns)
{
    if (!pid || !pidns_contains(ns, pid->ns))
        return 0;
    return pid->numbers[ns->level];
}

struct pid *pid_peek(const struct pidns *ns, int number)
{
    struct pid **slot;

    if (number <= 0 || number >= LIMIT_PID_MAX)
        return NULL;
    slot = slot_of(ns, number);
    return slot ? *slot : NULL;
}

struct tgroup *pidns_next_tgroup(struct pidns *ns, int number, int *ret_number)
{
    if (number < 1)
        number = 1;
    while (number < LIMIT_PID_MAX) {
        struct pid **slot = slot_of(ns, number);

        if (!slot) {
            number = (number / PIDNS_CHUNK + 1) * PIDNS_CHUNK;
            continue;
        }
        if (*slot && (*slot)->task && (*slot)->task->group->leader == (*slot)->task) {
            *ret_number = number;
            return tgroup_ref((*slot)->task->group);
        }
        number++;
    }
    return NULL;
}
