/* SPDX-License-Identifier: Apache-2.0 */
/* Processes without guests: tasks that never run, for tests of signals, sessions and numbers. */
#pragma once

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "sentry/core/cred.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/tgroup.h"

struct world {
    struct kernel kernel;
    struct container c;
    struct cred *root;
    struct tgroup *init;
};

static struct world w;

static inline struct task *w_thread(struct tgroup *g, struct pidns *ns)
{
    struct task *t;

    cr_assert_eq(task_new(&w.kernel, g, ns, NULL, &t), 0);
    t->ctx.cred = cred_ref(w.root);
    return t;
}

/* A process with one thread, in its parent's group; parent NULL: a session of its own. */
static inline struct tgroup *w_process(struct tgroup *parent, struct pidns *ns)
{
    struct tgroup *g;

    cr_assert_eq(tgroup_new(&w.c, &g), 0);
    cr_assert_eq(sighand_new(&g->sighand), 0);
    for (int i = 0; i < TASK_RLIMITS; i++)
        g->rlimits[i] = (struct rlimit){100, 100};
    task_publish(w_thread(g, ns), parent);
    if (parent)
        pgrp_join(g, pgrp_ref(parent->pgrp));
    else
        cr_assert_eq(session_start(g), 0);
    tgroup_unref(g); /* held by its leader from here on */
    return g;
}

static inline void world_up(void)
{
    memset(&w, 0, sizeof(w));
    list_init(&w.c.groups);
    w.c.kernel = &w.kernel;
    cr_assert_eq(cred_new_root(&w.root), 0);
    cr_assert_eq(pidns_new(NULL, NULL, &w.c.pidns), 0);
    w.init = w_process(NULL, w.c.pidns);
}

static inline int w_send(struct tgroup *g, int signo)
{
    siginfo_t info;

    siginfo_user(&info, signo, SI_USER, 1, 0);
    return signal_send_group(g, &info);
}
