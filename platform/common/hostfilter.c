/* SPDX-License-Identifier: Apache-2.0 */
/* Builds and loads allowlist filters with libseccomp. */
#include "platform/common/hostfilter.h"

#include <errno.h>
#include <seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <ucontext.h>

#include "platform/base/host.h"
#include "platform/base/log.h"

/* Runs on the thread whose call was refused. SA_RESETHAND has put the default action back, so that
 * the second attempt of the same call, made after return, ends the process. */
static void hostfilter_report(int signo, siginfo_t *info, void *context)
{
    const greg_t *regs = ((const ucontext_t *)context)->uc_mcontext.gregs;
    log_error("host call %d(%#llx, %#llx, %#llx, %#llx) at %p is not in the allowlist",
              info->si_syscall, regs[REG_RDI], regs[REG_RSI], regs[REG_RDX], regs[REG_R10],
              info->si_call_addr);
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] -= 2;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = info->si_syscall;
    (void)signo;
}

static int hostfilter_catch_reports(void)
{
    struct sigaction act = {
        .sa_sigaction = hostfilter_report,
        .sa_flags = SA_SIGINFO | (int)SA_RESETHAND,
    };
    return (int)host_ret(sigaction(SIGSYS, &act, NULL));
}

static int hostfilter_compare(const struct hostfilter_arg *arg, struct scmp_arg_cmp *ret_cmp)
{
    struct scmp_arg_cmp c = {.arg = arg->index, .datum_a = arg->value};
    if (arg->index > 5)
        return -EINVAL;
    switch (arg->cmp) {
    case HOSTFILTER_EQ:
        c.op = SCMP_CMP_EQ;
        break;
    case HOSTFILTER_NE:
        c.op = SCMP_CMP_NE;
        break;
    case HOSTFILTER_LE:
        c.op = SCMP_CMP_LE;
        break;
    case HOSTFILTER_GE:
        c.op = SCMP_CMP_GE;
        break;
    case HOSTFILTER_EQ32:
        c.op = SCMP_CMP_MASKED_EQ;
        c.datum_a = UINT32_MAX;
        c.datum_b = (uint32_t)arg->value;
        break;
    case HOSTFILTER_MASK:
        if (arg->value & ~arg->mask)
            return -EINVAL;
        c.op = SCMP_CMP_MASKED_EQ;
        c.datum_a = arg->mask;
        c.datum_b = arg->value;
        break;
    default:
        return -EINVAL;
    }
    *ret_cmp = c;
    return 0;
}

static int hostfilter_add(scmp_filter_ctx ctx, const struct hostfilter_rule *rule, struct errmsg *e)
{
    struct scmp_arg_cmp cmps[HOSTFILTER_ARGS_MAX];
    unsigned len = 0;
    if (rule->nr < 0 || !rule->reason || !*rule->reason)
        return errmsg_set(e, -EINVAL, "host filter: rule for call %d has no reason", rule->nr);
    while (len < HOSTFILTER_ARGS_MAX && rule->args[len].cmp) {
        int err = hostfilter_compare(&rule->args[len], &cmps[len]);
        if (err < 0)
            return errmsg_set(e, err, "host filter: bad comparison for call %d", rule->nr);
        len++;
    }
#ifdef __SANITIZE_ADDRESS__
    if (!rule->refuse_errno)
        return 0; /* everything is allowed already, see hostfilter_install */
#endif
    uint32_t action = rule->refuse_errno ? SCMP_ACT_ERRNO((uint32_t)rule->refuse_errno) : SCMP_ACT_ALLOW;
    int err = seccomp_rule_add_exact_array(ctx, action, rule->nr, len, cmps);
    /* A later rule that an earlier, wider one already covers changes nothing. */
    if (err < 0 && err != -EEXIST)
        return errmsg_set(e, err, "host filter: rule for call %d: %s", rule->nr, strerror(-err));
    return 0;
}

static int hostfilter_configure(scmp_filter_ctx ctx)
{
    const struct {
        enum scmp_filter_attr attr;
        uint32_t value;
    } attrs[] = {
        {SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS},
        {SCMP_FLTATR_CTL_NNP, 1},
        {SCMP_FLTATR_CTL_TSYNC, 1},
        /* Binary search over call numbers instead of a chain of compares. */
        {SCMP_FLTATR_CTL_OPTIMIZE, 2},
    };
    for (size_t i = 0; i < ARRAY_SIZE(attrs); i++) {
        int err = seccomp_attr_set(ctx, attrs[i].attr, attrs[i].value);
        if (err < 0)
            return err;
    }
    return 0;
}

int hostfilter_install(const struct hostfilter_rule *rules, size_t len,
                       enum hostfilter_default action, struct errmsg *e)
{
    bool report = action == HOSTFILTER_REPORT;
    if (len > HOSTFILTER_RULES_MAX)
        return errmsg_set(e, -EINVAL, "host filter: too many rules");
    uint32_t otherwise = report ? SCMP_ACT_TRAP : SCMP_ACT_KILL_PROCESS;
#ifdef __SANITIZE_ADDRESS__
    /* The sanitizers' runtimes make calls of their own, above all when they report. Builds with them are for tests of
     * memory errors; what is forbidden is tested with the real build. */
    otherwise = SCMP_ACT_ALLOW;
#endif
    scmp_filter_ctx ctx = seccomp_init(otherwise);
    if (!ctx)
        return errmsg_set(e, -ENOMEM, "host filter: out of memory");
    int err = hostfilter_configure(ctx);
    if (err < 0)
        errmsg_set(e, err, "host filter: libseccomp: %s", strerror(-err));
    for (size_t i = 0; i < len && err >= 0; i++)
        err = hostfilter_add(ctx, &rules[i], e);
    if (err >= 0 && report)
        err = hostfilter_catch_reports();
    if (err >= 0) {
        err = seccomp_load(ctx);
        if (err < 0)
            errmsg_set(e, err, "host filter: the host kernel refuses it: %s", strerror(-err));
    }
    seccomp_release(ctx);
    return err < 0 ? err : 0;
}
