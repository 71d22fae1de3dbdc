/* SPDX-License-Identifier: Apache-2.0 */
/* Who may look into whom. */
#include "sentry/kernel/ptrace_access.h"

#include <linux/capability.h>

#include "sentry/mm/mm.h"
#include "tests/unit/sentry/kernel/kernel_fixture.h"

static struct task *a, *b;
static struct mm mm;
static struct cred *made[32];
static unsigned made_len;

static struct cred *cred_of(uint32_t id, uint64_t caps)
{
    struct cred *c;

    cr_assert_lt(made_len, ARRAY_SIZE(made));
    cr_assert_eq(cred_dup(w.root, 0, &c), 0);
    made[made_len++] = c;
    c->uid = c->euid = c->suid = c->fsuid = id;
    c->gid = c->egid = c->sgid = c->fsgid = id;
    c->cap_effective = c->cap_permitted = caps;
    return c;
}

static struct cred *set(struct task *t, struct cred *c)
{
    t->ctx.cred = c;
    return c;
}

static void up(void)
{
    world_up();
    a = w_process(w.init, w.c.pidns)->leader;
    b = w_process(w.init, w.c.pidns)->leader;
    mm.dumpable = 1;
    b->mm = &mm;
    set(a, cred_of(1000, 0));
    set(b, cred_of(1000, 0));
}

static void down(void)
{
    while (made_len)
        cred_unref(made[--made_len]);
}

TestSuite(ptrace_access, .init = up, .fini = down);

#define MAY(mode) ptrace_may_access(a, b, (mode))

Test(ptrace_access, same_user)
{
    cr_assert_eq(MAY(PTRACE_READ_FS), 0);
    cr_assert_eq(MAY(PTRACE_ATTACH_REAL), 0);
}

Test(ptrace_access, every_id_of_the_target_counts)
{
    uint32_t *ids[6];
    struct cred *c = set(b, cred_of(1000, 0));

    ids[0] = &c->uid, ids[1] = &c->euid, ids[2] = &c->suid;
    ids[3] = &c->gid, ids[4] = &c->egid, ids[5] = &c->sgid;
    for (int i = 0; i < 6; i++) {
        *ids[i] = 7;
        cr_assert_eq(MAY(PTRACE_READ_REAL), -EPERM, "id %d", i);
        *ids[i] = 1000;
    }
    c->fsuid = c->fsgid = 7;
    cr_assert_eq(MAY(PTRACE_READ_REAL), 0, "but for the file system's");
}

Test(ptrace_access, ids_of_the_caller_by_mode)
{
    struct cred *c = set(a, cred_of(7, 0));

    c->fsuid = c->fsgid = 1000;
    cr_assert_eq(MAY(PTRACE_READ_FS), 0);
    cr_assert_eq(MAY(PTRACE_READ_REAL), -EPERM);
    c->fsuid = c->fsgid = 7;
    c->uid = c->gid = 1000;
    cr_assert_eq(MAY(PTRACE_READ_FS), -EPERM);
    cr_assert_eq(MAY(PTRACE_READ_REAL), 0);
    c->uid = c->gid = 7;
    c->euid = c->egid = 1000;
    cr_assert_eq(MAY(PTRACE_READ_FS), -EPERM);
    cr_assert_eq(MAY(PTRACE_READ_REAL), -EPERM);
}

Test(ptrace_access, capabilities_by_mode)
{
    struct cred *c = set(a, cred_of(1000, 0));

    set(b, cred_of(1000, 1ULL << CAP_NET_RAW));
    cr_assert_eq(MAY(PTRACE_READ_REAL), -EPERM, "what it may that we may not");
    c->cap_permitted = 1ULL << CAP_NET_RAW;
    cr_assert_eq(MAY(PTRACE_READ_REAL), 0);
    cr_assert_eq(MAY(PTRACE_READ_FS), -EPERM);
    c->cap_effective = 1ULL << CAP_NET_RAW;
    cr_assert_eq(MAY(PTRACE_READ_FS), 0);
}

Test(ptrace_access, dumpable)
{
    mm.dumpable = 0;
    cr_assert_eq(MAY(PTRACE_READ_FS), -EPERM);
    mm.dumpable = 2;
    cr_assert_eq(MAY(PTRACE_READ_FS), -EPERM);
    b->mm = NULL;
    cr_assert_eq(MAY(PTRACE_READ_FS), 0, "nothing to hide");
}

Test(ptrace_access, the_capability)
{
    mm.dumpable = 0;
    set(b, cred_of(0, ~0ULL));
    set(a, cred_of(1000, 1ULL << CAP_SYS_PTRACE));
    cr_assert_eq(MAY(PTRACE_ATTACH_REAL), 0);
}

Test(ptrace_access, own_process)
{
    struct task *t = w_thread(a->group, w.c.pidns);

    t->mm = &mm;
    mm.dumpable = 0;
    set(t, cred_of(7, ~0ULL));
    cr_assert_eq(ptrace_may_access(a, t, PTRACE_ATTACH_REAL), 0);
}
