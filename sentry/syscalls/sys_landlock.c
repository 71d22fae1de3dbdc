/* SPDX-License-Identifier: Apache-2.0 */
/* landlock_create_ruleset, landlock_add_rule, landlock_restrict_self, and the calls that ask for security modules. */
#include "syscalls_gen.h"

#include <fcntl.h>
#include <linux/capability.h>

#include "platform/base/alloc.h"
#include "sentry/abi/abi_errno.h"
#include "sentry/core/cred.h"
#include "sentry/core/landlock.h"
#include "sentry/kernel/fdtable.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/usermem.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/landlock_fs.h"

#define CREATE_VERSION 1U
enum { RULE_PATH_BENEATH = 1, RULE_NET_PORT = 2 };

struct ruleset_attr {
    uint64_t fs, net, scope;
};
struct path_beneath_attr {
    uint64_t access;
    int32_t parent_fd;
} __attribute__((packed));
struct net_port_attr {
    uint64_t access, port;
};

static void ruleset_release(struct file *f)
{
    landlock_unref(f->priv);
}

static const struct file_ops ruleset_ops = {.release = ruleset_release};

static int64_t ruleset_install(struct task *t, const struct landlock_handled *handled)
{
    struct landlock_set *s = landlock_ruleset_new(handled, &landlock_fs_keys);
    if (!s)
        return -ENOMEM;
    struct file *f = file_new_anon("anon_inode:[landlock-ruleset]", 0600, O_RDWR, &ruleset_ops, s, t->ctx.cred);
    if (!f) {
        landlock_unref(s);
        return -ENOMEM;
    }
    f->no_seek = true;
    return fdtable_add(t, f, 0, true);
}

int64_t sys_landlock_create_ruleset(struct task *t, uaddr_t attr, uint64_t size, uint32_t flags)
{
    struct ruleset_attr a = {0};
    if (flags)
        return flags == CREATE_VERSION && uaddr_is_null(attr) && !size ? LANDLOCK_ABI : -EINVAL;
    if (uaddr_is_null(attr))
        return -EFAULT;
    if (size < sizeof(a.fs))
        return -EINVAL;
    if (size > PAGE_SIZE)
        return -E2BIG;
    int ret = copy_in_struct(&t->ctx, &a, sizeof(a), attr, size);
    if (ret < 0)
        return ret;
    if ((a.fs & ~(uint64_t)LANDLOCK_FS_ALL) || (a.net & ~(uint64_t)LANDLOCK_NET_ALL) ||
        (a.scope & ~(uint64_t)LANDLOCK_SCOPE_ALL))
        return -EINVAL;
    if (!a.fs && !a.net && !a.scope)
        return -ENOMSG;
    return ruleset_install(t, &(struct landlock_handled){(uint32_t)a.fs, (uint32_t)a.net, (uint32_t)a.scope});
}

/* Return: 0 with a referenced file whose priv is a ruleset; −EBADF, −EBADFD. */
static int ruleset_get(struct task *t, int fd, struct file **ret_file)
{
    struct file *f = fdtable_get(t, fd);
    if (!f)
        return -EBADF;
    if (f->ops != &ruleset_ops) {
        file_unref(f);
        return -EBADFD;
    }
    *ret_file = f;
    return 0;
}

static int add_path(struct task *t, struct landlock_set *s, uaddr_t addr)
{
    struct path_beneath_attr a;
    if (COPY_IN(&t->ctx, &a, addr))
        return -EFAULT;
    if (!a.access)
        return -ENOMSG;
    if (a.access & ~(uint64_t)s->handled[0].fs)
        return -EINVAL;
    struct file *f = fdtable_get_any(t, a.parent_fd);
    if (!f)
        return -EBADF;
    int ret = landlock_fs_add_rule(s, &f->path, (uint32_t)a.access);
    file_unref(f);
    return ret;
}

static int add_port(struct task *t, struct landlock_set *s, uaddr_t addr)
{
    struct net_port_attr a;
    if (COPY_IN(&t->ctx, &a, addr))
        return -EFAULT;
    if (!a.access)
        return -ENOMSG;
    if ((a.access & ~(uint64_t)s->handled[0].net) || a.port > UINT16_MAX)
        return -EINVAL;
    return landlock_add_port(s, (uint16_t)a.port, (uint32_t)a.access);
}

int64_t sys_landlock_add_rule(struct task *t, int32_t fd, int32_t type, uaddr_t attr, uint32_t flags)
{
    struct file *f;
    if (flags)
        return -EINVAL;
    int ret = ruleset_get(t, fd, &f);
    if (ret < 0)
        return ret;
    if (type == RULE_PATH_BENEATH)
        ret = add_path(t, f->priv, attr);
    else
        ret = type == RULE_NET_PORT ? add_port(t, f->priv, attr) : -EINVAL;
    file_unref(f);
    return ret;
}

int64_t sys_landlock_restrict_self(struct task *t, int32_t fd, uint32_t flags)
{
    const struct cred *old = t->ctx.cred;
    if (!t->no_new_privs && !cred_own_cap(old, CAP_SYS_ADMIN))
        return -EPERM;
    if (flags)
        return -EINVAL;
    struct file *f;
    int ret = ruleset_get(t, fd, &f);
    if (ret < 0)
        return ret;
    struct landlock_set *domain;
    struct cred *c;
    ret = landlock_domain_new(old->landlock, f->priv, &domain);
    file_unref(f);
    if (ret < 0)
        return ret;
    ret = cred_dup(old, old->groups_len, &c);
    if (ret < 0) {
        landlock_unref(domain);
        return ret;
    }
    landlock_unref(c->landlock);
    c->landlock = domain;
    task_set_cred(t, c);
    return 0;
}

/* ---- security modules: capabilities and Landlock, neither of which has attributes ---- */

#define LSM_ID_CAPABILITY 100
#define LSM_ID_LANDLOCK 110
#define LSM_FLAG_SINGLE 1U

struct lsm_attr_ctx {
    uint64_t id, flags, size, ctx_size;
};

int64_t sys_lsm_list_modules(struct task *t, uaddr_t ids, uaddr_t size_addr, uint32_t flags)
{
    static const uint64_t known[] = {LSM_ID_CAPABILITY, LSM_ID_LANDLOCK};
    uint32_t size, all = sizeof(known);
    if (flags)
        return -EINVAL;
    if (COPY_IN(&t->ctx, &size, size_addr) || COPY_OUT(&t->ctx, size_addr, &all))
        return -EFAULT;
    if (size < all)
        return -E2BIG;
    return copy_out(&t->ctx, ids, known, sizeof(known)) ? -EFAULT : (int64_t)ARRAY_SIZE(known);
}

int64_t sys_lsm_get_self_attr(struct task *t, uint32_t attr, uaddr_t ctx, uaddr_t size_addr, uint32_t flags)
{
    uint32_t size;
    struct lsm_attr_ctx want;
    if (!attr || uaddr_is_null(size_addr))
        return -EINVAL;
    if (COPY_IN(&t->ctx, &size, size_addr))
        return -EFAULT;
    if (flags) {
        if (flags != LSM_FLAG_SINGLE || uaddr_is_null(ctx))
            return -EINVAL;
        if (COPY_IN(&t->ctx, &want, ctx))
            return -EFAULT;
        if (!want.id)
            return -EINVAL;
    }
    size = 0;
    return COPY_OUT(&t->ctx, size_addr, &size) ? -EFAULT : -EOPNOTSUPP;
}

int64_t sys_lsm_set_self_attr(struct task *t, uint32_t attr, uaddr_t ctx, uint32_t size, uint32_t flags)
{
    struct lsm_attr_ctx a;
    if (flags || size < sizeof(a))
        return -EINVAL;
    if (size > PAGE_SIZE)
        return -E2BIG;
    if (COPY_IN(&t->ctx, &a, ctx))
        return -EFAULT;
    if (a.size < sizeof(a) || a.ctx_size > a.size - sizeof(a))
        return -EINVAL;
    return -EOPNOTSUPP;
}
