/* SPDX-License-Identifier: Apache-2.0 */
/* The config's linux.seccomp as a filter program for the container's processes. */
#include "runtime/boot/boot_priv.h"

#include <errno.h>
#include <linux/seccomp.h>

#include "oci/spec.h"
#include "platform/base/alloc.h"
#include "platform/common/profilefilter.h"
#include "runtime/errtext.h"

_Static_assert((int)PROFILEFILTER_NE == (int)OCI_SECCOMP_NE && (int)PROFILEFILTER_MASKED_EQ == (int)OCI_SECCOMP_MASKED_EQ,
               "the comparisons are in one order");

static uint32_t seccomp_action(enum oci_seccomp_action action, bool errno_set, uint32_t errno_ret)
{
    if (action != OCI_SECCOMP_ERRNO && action != OCI_SECCOMP_TRACE)
        return (uint32_t)action;
    return (uint32_t)action | ((errno_set ? errno_ret : EPERM) & SECCOMP_RET_DATA);
}

static int seccomp_add_rule(struct profilefilter *p, const struct oci_seccomp_rule *rule)
{
    uint32_t action = seccomp_action(rule->action, rule->errno_set, rule->errno_ret);
    CLEANUP_FREE struct profilefilter_arg *args = NEW_ARRAY(struct profilefilter_arg, rule->args_len + 1);
    if (!args)
        return -ENOMEM;
    for (unsigned i = 0; i < rule->args_len; i++) {
        const struct oci_seccomp_arg *a = &rule->args[i];
        args[i] = (struct profilefilter_arg){a->index, (enum profilefilter_cmp)a->op, a->value, a->value_two};
    }
    for (unsigned i = 0; i < rule->names.len; i++) {
        int r = profilefilter_add(p, rule->names.v[i], action, args, rule->args_len);
        if (r < 0)
            return r;
    }
    return 0;
}

int boot_seccomp_make(struct boot *b, struct errmsg *e)
{
    const struct oci_seccomp *s = &b->spec->linux_.seccomp;
    if (!s->set)
        return 0;
    uint32_t action = seccomp_action(s->default_action, s->default_errno_set, s->default_errno_ret);
    bool strict = action != SECCOMP_RET_ALLOW && action != SECCOMP_RET_LOG && action != (SECCOMP_RET_ERRNO | ENOSYS);
    struct profilefilter *p = profilefilter_new(action, strict);
    if (!p)
        return errmsg_set(e, -ENOMEM, "linux.seccomp: out of memory");
    int r = 0;
    for (unsigned i = 0; i < s->rules_len && r >= 0; i++) {
        r = seccomp_add_rule(p, &s->rules[i]);
        if (r < 0)
            errmsg_set(e, r, "linux.seccomp.syscalls[%u]: %s", i, errtext(r));
    }
    if (r >= 0) {
        r = profilefilter_program(p, &b->seccomp);
        if (r < 0)
            errmsg_set(e, r, "linux.seccomp: %s", errtext(r));
    }
    profilefilter_free(p);
    if (r < 0)
        return r;
    b->seccomp_len = (uint32_t)r;
    return 0;
}

void boot_seccomp_apply(const struct boot *b, struct sentry_process *p)
{
    p->seccomp = b->seccomp;
    p->seccomp_len = b->seccomp_len;
    p->seccomp_log = b->spec->linux_.seccomp.flags & SECCOMP_FILTER_FLAG_LOG;
}
