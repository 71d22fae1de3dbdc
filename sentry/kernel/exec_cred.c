/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials across execve: set-user-ID, file capabilities, ambient ones. Source: capabilities(7), "Transformation of
 * capabilities during execve()", execve(2). */
#include "sentry/kernel/exec_priv.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <string.h>
#include <sys/mount.h>

#include "sentry/core/cred.h"
#include "sentry/kernel/fsctx.h"
#include "sentry/kernel/ptrace.h"
#include "sentry/kernel/task.h"
#include "sentry/vfs/filecaps.h"

#define CAPS_ALL ((1ULL << (CAP_CHECKPOINT_RESTORE + 1)) - 1)

struct file_caps {
    bool present, effective;
    uint64_t permitted, inheritable;
};

/* Reads security.capability. Return: 0 or −EPERM when it is there but makes no sense. */
static int read_file_caps(struct exec *x, struct file_caps *ret)
{
    struct inode *inode = x->prog.file->inode;
    struct vfs_ns_cap_data data;
    uint32_t magic;
    ssize_t n;

    memset(ret, 0, sizeof(*ret));
    if (inode->no_sec || !inode->ops->getxattr)
        return 0;
    n = inode->ops->getxattr(&x->task->ctx, inode, "security.capability", &data, sizeof(data));
    if (n < (ssize_t)sizeof(magic))
        return 0;
    magic = data.magic_etc;
    switch (magic & VFS_CAP_REVISION_MASK) {
    case VFS_CAP_REVISION_2:
        if (n != XATTR_CAPS_SZ_2)
            return -EINVAL;
        break;
    case VFS_CAP_REVISION_3:
        if (n != XATTR_CAPS_SZ_3)
            return -EINVAL;
        if (!filecaps_owned(x->task->ctx.cred->userns, userns_uid_in(inode->sb->userns, data.rootid)))
            return 0;
        break;
    default:
        return -EINVAL;
    }
    ret->present = true;
    ret->effective = magic & VFS_CAP_FLAGS_EFFECTIVE;
    ret->permitted = (data.data[0].permitted | (uint64_t)data.data[1].permitted << 32) & CAPS_ALL;
    ret->inheritable = (data.data[0].inheritable | (uint64_t)data.data[1].inheritable << 32) & CAPS_ALL;
    return 0;
}

static void apply_set_id(struct exec *x, struct cred *c)
{
    const struct inode *inode = x->prog.file->inode;

    if (x->task->no_new_privs)
        return;
    /* Nobody becomes who has no number where he is. */
    if (userns_uid_out(c->userns, inode->uid) == USERNS_NO_ID || userns_gid_out(c->userns, inode->gid) == USERNS_NO_ID)
        return;
    if (inode->mode & S_ISUID)
        c->euid = inode->uid;
    if ((inode->mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP))
        c->egid = inode->gid;
}

/* The rules for user 0, whose programs act as if they had every file capability. */
static void apply_root(const struct cred *old, struct cred *c, const struct file_caps *caps, bool *effective)
{
    uint32_t root = userns_uid_in(c->userns, 0);

    if (c->securebits & SECBIT_NOROOT)
        return;
    /* A capable file that is set-user-ID root as well gives what its capabilities say. */
    if (caps->present && c->uid != root && c->euid == root)
        return;
    if (c->euid == root || c->uid == root)
        c->cap_permitted = old->cap_bounding | old->cap_inheritable;
    if (c->euid == root)
        *effective = true;
}

/* Nothing is gained from a nosuid mount, a mount that is not in one's own namespace, or a file system that belongs to a user
 * namespace which one is not in. */
static bool may_gain_on(const struct task *t, const struct path *p)
{
    return !(p->mount->flags & MS_NOSUID) && mount_in_ns(p->mount, t->ns->mnt) &&
           userns_contains(p->mount->sb->userns, t->ctx.cred->userns);
}

int exec_make_cred(struct exec *x)
{
    struct task *t = x->task;
    const struct cred *old = t->ctx.cred;
    bool may_gain = may_gain_on(t, &x->prog.file->path), effective = false, set_id, unsafe;
    struct file_caps caps = {0};
    struct cred *c;
    int r = cred_dup(old, old->groups_len, &c);

    if (r)
        return r;
    x->cred = c;
    if (may_gain) {
        apply_set_id(x, c);
        r = read_file_caps(x, &caps);
        if (r == -EINVAL && c->uid != userns_uid_in(c->userns, 0) && c->euid != userns_uid_in(c->userns, 0))
            return -EPERM;
    }
    c->cap_permitted = 0;
    if (caps.present) {
        c->cap_permitted = (old->cap_inheritable & caps.inheritable) | (old->cap_bounding & caps.permitted);
        effective = caps.effective;
        /* A program that would run without what it is built to need must not run at all. */
        if (effective && (caps.permitted & ~c->cap_permitted))
            return -EPERM;
    }
    apply_root(old, c, &caps, &effective);
    set_id = c->euid != old->uid || c->egid != old->gid;
    /* Whoever shares our root directory could change what the privileged program sees. */
    unsafe = t->no_new_privs || (t->fs && t->fs->ref.count > t->group->thread_count);
    /* So could a tracer, unless it may do that to any program. */
    unsafe = unsafe || !ptrace_tracer_is_able(t);
    if ((set_id || (c->cap_permitted & ~old->cap_permitted)) && unsafe) {
        if (!cred_own_cap(old, CAP_SETUID) || t->no_new_privs) {
            c->euid = c->uid;
            c->egid = c->gid;
        }
        c->cap_permitted &= old->cap_permitted;
    }
    c->suid = c->fsuid = c->euid;
    c->sgid = c->fsgid = c->egid;
    if (caps.present || set_id)
        c->cap_ambient = 0;
    c->cap_permitted |= c->cap_ambient;
    c->cap_effective = effective ? c->cap_permitted : c->cap_ambient;
    c->securebits &= ~(uint32_t)SECBIT_KEEP_CAPS;
    x->secure = set_id || (c->uid != userns_uid_in(c->userns, 0) && (effective || (c->cap_permitted & ~c->cap_ambient)));
    x->unreadable = inode_permission(&t->ctx, x->prog.file->inode, MAY_READ) != 0;
    return 0;
}
