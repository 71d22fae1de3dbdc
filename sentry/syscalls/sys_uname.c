/* SPDX-License-Identifier: Apache-2.0 */
/* What the system is: uname, names, sysinfo, the kernel log. */
#include "syscalls_gen.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

#include "platform/base/host.h"
#include "sentry/core/cred.h"
#include "sentry/core/limits.h"
#include "sentry/fs/proc/proc_global.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/timekeeper.h"
#include "sentry/kernel/utsns.h"
#include "sentry/mm/usermem.h"

enum { CAP_SYS_ADMIN_ = 21, CAP_SYSLOG_ = 34 };

static const char *release_of(const struct task *t)
{
    return t->kernel->release ? t->kernel->release : KERNEL_RELEASE;
}

int64_t sys_uname(struct task *t, uaddr_t buf)
{
    struct utsname u = {.sysname = "Linux", .version = KERNEL_VERSION, .machine = "x86_64"};
    const struct utsns *ns = t->ns->uts;

    _Static_assert(sizeof(u) == 390, "struct new_utsname");
    snprintf(u.release, sizeof(u.release), "%s", t->personality & 0x0020000 /* UNAME26 */ ? "2.6.72" : release_of(t));
    snprintf(u.nodename, sizeof(u.nodename), "%s", ns->hostname);
    snprintf(u.domainname, sizeof(u.domainname), "%s", ns->domainname);
    return COPY_OUT(&t->ctx, buf, &u);
}

static int64_t set_name(struct task *t, char *dst, uaddr_t name, int32_t len)
{
    char text[UTS_NAME_MAX + 1] = "";
    int r;

    if (!cred_ns_cap(t->ctx.cred, t->ns->uts->userns, CAP_SYS_ADMIN_))
        return -EPERM;
    if (len < 0 || len > UTS_NAME_MAX)
        return -EINVAL;
    r = copy_in(&t->ctx, text, name, (size_t)len);
    if (!r)
        memcpy(dst, text, sizeof(text));
    return r;
}

int64_t sys_sethostname(struct task *t, uaddr_t name, int32_t len)
{
    return set_name(t, t->ns->uts->hostname, name, len);
}

int64_t sys_setdomainname(struct task *t, uaddr_t name, int32_t len)
{
    return set_name(t, t->ns->uts->domainname, name, len);
}

int64_t sys_sysinfo(struct task *t, uaddr_t info)
{
    struct sysinfo s = {0}, host = {0};
    const struct container *c = t->group->container;
    uint64_t unit, limit = c->memory_limit;
    double load[3];

    if (sysinfo(&host))
        host.mem_unit = 1;
    unit = host.mem_unit ? host.mem_unit : 1;
    s.mem_unit = 1;
    s.totalram = host.totalram * unit;
    s.freeram = host.freeram * unit;
    s.bufferram = host.bufferram * unit;
    if (limit && limit < s.totalram) {
        s.totalram = limit;
        s.freeram = MIN(s.freeram, limit);
        s.bufferram = 0;
    }
    proc_get_loads(t->group->container, load);
    for (unsigned i = 0; i < 3; i++)
        s.loads[i] = (unsigned long)(load[i] * (1 << SI_LOAD_SHIFT));
    s.uptime = (long)((timekeeper_uptime(t, t->kernel) + NSEC_PER_SEC - 1) / NSEC_PER_SEC); /* a second begun counts */
    s.procs = (unsigned short)MIN(limit_used(LIMIT_KIND_TASKS), (uint64_t)UINT16_MAX);
    return COPY_OUT(&t->ctx, info, &s);
}

/* ---- the kernel log: a few lines, the same for everybody ---- */

enum {
    LOG_CLOSE, LOG_OPEN, LOG_READ, LOG_READ_ALL, LOG_READ_CLEAR, LOG_CLEAR, LOG_CONSOLE_OFF, LOG_CONSOLE_ON,
    LOG_CONSOLE_LEVEL, LOG_SIZE_UNREAD, LOG_SIZE_BUFFER,
};

static size_t log_text(const struct task *t, char *text, size_t size)
{
    int n = snprintf(text, size,
                     "<5>[    0.000000] Linux version %s (gcc (Debian 14.2.0) 14.2.0) %s\n"
                     "<6>[    0.000000] Command line: root=/dev/vda1 ro quiet\n",
                     release_of(t), KERNEL_VERSION);

    return MIN((size_t)MAX(n, 0), size - 1);
}

int64_t sys_syslog(struct task *t, int32_t type, uaddr_t buf, int32_t len)
{
    char text[512];
    size_t size;
    int r;

    if (!cred_has_cap(t->ctx.cred, CAP_SYSLOG_))
        return -EPERM;
    switch (type) {
    case LOG_CLOSE:
    case LOG_OPEN:
    case LOG_CLEAR:
    case LOG_CONSOLE_OFF:
    case LOG_CONSOLE_ON:
    case LOG_SIZE_UNREAD:
        return 0;
    case LOG_CONSOLE_LEVEL:
        return len < 1 || len > 8 ? -EINVAL : 0;
    case LOG_SIZE_BUFFER:
        return 1 << 18;
    case LOG_READ:
    case LOG_READ_ALL:
    case LOG_READ_CLEAR:
        if (uaddr_is_null(buf) || len < 0)
            return -EINVAL;
        if (!len)
            return 0;
        if (type == LOG_READ) {
            /* All has been read, and nothing new ever comes. */
            r = ctx_sleep_until(&t->ctx, WAIT_FOREVER);
            return r ? r : -EINTR;
        }
        size = log_text(t, text, sizeof(text));
        size = MIN(size, (size_t)len);
        r = copy_out(&t->ctx, buf, text, size);
        return r ? r : (int64_t)size;
    default:
        return -EINVAL;
    }
}
