/* SPDX-License-Identifier: Apache-2.0 */
/* Who may do what: mode bits against kinds of callers, sticky and set-group-id directories, attribute changes. */
#include "tests/unit/sentry/vfs/vfs_fixture.h"

#include <linux/capability.h>
#include <sys/xattr.h>

TestSuite(perm, .init = world_up, .fini = world_down);

static struct inode *inode_of(const char *path)
{
    struct path p;
    cr_assert_eq(w_walk(path, 0, &p), 0, "%s", path);
    struct inode *inode = p.dentry->inode;
    path_unref(&p);
    return inode;
}

static int set_attr(const char *path, struct iattr a)
{
    struct path p;
    int ret = w_walk(path, 0, &p);
    cr_assert_eq(ret, 0, "%s", path);
    ret = vfs_setattr(&w.ctx, &p, &a);
    path_unref(&p);
    return ret;
}

static int chmod_at(const char *path, uint32_t mode)
{
    return set_attr(path, (struct iattr){.valid = IATTR_MODE, .mode = mode});
}

static int chown_at(const char *path, uint32_t uid, uint32_t gid)
{
    return set_attr(path, (struct iattr){.valid = IATTR_UID | IATTR_GID, .uid = uid, .gid = gid});
}

Test(perm, matrix)
{
    cr_assert_eq(w_touch("/f", O_CREAT | O_RDWR, 0644), 0);
    struct inode *f = inode_of("/f");
    /* Every mode for owner, group member and stranger: rights follow the first class that fits. */
    for (uint32_t mode = 0; mode < 01000; mode++) {
        f->mode = S_IFREG | mode;
        const struct {
            uint32_t uid, gid;
            unsigned shift;
        } who[] = {{1000, 0, 6}, {0, 1000, 3}, {0, 0, 0}};
        for (unsigned k = 0; k < ARRAY_SIZE(who); k++) {
            f->uid = who[k].uid;
            f->gid = who[k].gid;
            for (unsigned mask = 1; mask < 8; mask++) {
                w_as_user();
                int want = (mode >> who[k].shift & mask) == mask ? 0 : -EACCES;
                cr_assert_eq(inode_permission(&w.ctx, f, mask), want, "mode %o mask %u class %u", mode, mask, k);
                w_as_root();
                want = (mask & MAY_EXEC) && !(mode & 0111) ? -EACCES : 0;
                cr_assert_eq(inode_permission(&w.ctx, f, mask), want, "root: mode %o mask %u", mode, mask);
            }
        }
    }
    f->mode = S_IFREG | 0644;
    /* Reading anything is a capability of its own. */
    f->mode = S_IFREG;
    f->uid = f->gid = 0;
    w.user_cred->cap_effective = 1ULL << CAP_DAC_READ_SEARCH;
    w_as_user();
    cr_assert_eq(inode_permission(&w.ctx, f, MAY_READ), 0);
    cr_assert_eq(inode_permission(&w.ctx, f, MAY_WRITE), -EACCES);
    w.user_cred->cap_effective = 0;
    w_as_root();
}

Test(perm, search)
{
    cr_assert_eq(w_mkdir("/d", 0700), 0);
    cr_assert_eq(w_touch("/d/f", O_CREAT | O_RDWR, 0666), 0);
    w_as_user();
    cr_assert_eq(w_there("/d/f"), -EACCES);
    cr_assert_eq(w_touch("/d", O_RDONLY, 0), -EACCES);
    cr_assert_eq(w_touch("/new", O_CREAT | O_RDWR, 0666), -EACCES);
    cr_assert_eq(w_mkdir("/new", 0777), -EACCES);
    cr_assert_eq(w_unlink("/d/f"), -EACCES);
    w_as_root();
    cr_assert_eq(chmod_at("/d", 0711), 0);
    w_as_user();
    cr_assert_eq(w_there("/d/f"), 0);
    cr_assert_eq(w_touch("/d", O_RDONLY, 0), -EACCES);
    cr_assert_eq(w_unlink("/d/f"), -EACCES);
    w_as_root();
}

Test(perm, umask_and_owner)
{
    cr_assert_eq(w_mkdir("/tmp", 0777), 0);
    cr_assert_eq(chmod_at("/tmp", 01777), 0);
    w_as_user();
    cr_assert_eq(w_touch("/tmp/f", O_CREAT | O_RDWR, 0666), 0);
    struct inode *f = inode_of("/tmp/f");
    cr_assert_eq(f->mode & 07777, 0644);
    cr_assert_eq(f->uid, 1000);
    cr_assert_eq(f->gid, 1000);
    w_as_root();
}

Test(perm, sticky)
{
    cr_assert_eq(w_mkdir("/tmp", 0777), 0);
    cr_assert_eq(chmod_at("/tmp", 01777), 0);
    cr_assert_eq(w_touch("/tmp/roots", O_CREAT | O_RDWR, 0666), 0);
    cr_assert_eq(w_symlink("roots", "/tmp/rootlink"), 0);
    w_as_user();
    cr_assert_eq(w_unlink("/tmp/roots"), -EPERM);
    cr_assert_eq(w_rename("/tmp/roots", "/tmp/mine", 0), -EPERM);
    cr_assert_eq(w_touch("/tmp/mine", O_CREAT | O_RDWR, 0666), 0);
    cr_assert_eq(w_rename("/tmp/mine", "/tmp/roots", 0), -EPERM);
    cr_assert_eq(w_unlink("/tmp/mine"), 0);
    cr_assert_eq(w_symlink("/tmp/nothing", "/tmp/userlink"), 0);
    /* protected hard links: not another's file that one can't write */
    w_as_root();
    cr_assert_eq(chmod_at("/tmp/roots", 0644), 0);
    /* protected symlinks: root does not follow the user's link here */
    cr_assert_eq(w_there("/tmp/userlink"), -EACCES);
    cr_assert_eq(w_there("/tmp/rootlink"), 0);
    w_as_user();
    cr_assert_eq(w_link("/tmp/roots", "/tmp/pinned"), -EPERM);
    w_as_root();
}

Test(perm, setgid_directory)
{
    cr_assert_eq(w_mkdir("/d", 0777), 0);
    cr_assert_eq(chown_at("/d", 0, 500), 0);
    cr_assert_eq(chmod_at("/d", 02777), 0);
    w_as_user();
    cr_assert_eq(w_touch("/d/f", O_CREAT | O_RDWR, 02755), 0);
    cr_assert_eq(inode_of("/d/f")->gid, 500);
    cr_assert_eq(inode_of("/d/f")->mode & 07777, 0755);
    cr_assert_eq(w_mkdir("/d/sub", 0755), 0);
    cr_assert_eq(inode_of("/d/sub")->gid, 500);
    cr_assert(inode_of("/d/sub")->mode & S_ISGID);
    w_as_root();
}

Test(perm, chmod_chown)
{
    cr_assert_eq(w_mkdir("/w", 0777), 0);
    cr_assert_eq(chmod_at("/w", 0777), 0);
    w_as_user();
    cr_assert_eq(w_touch("/w/f", O_CREAT | O_RDWR, 0666), 0);
    cr_assert_eq(chmod_at("/w/f", 06755), 0);
    cr_assert_eq(chown_at("/w/f", 1000, 1000), 0);
    cr_assert_eq(inode_of("/w/f")->mode & 07777, 0755); /* set-id bits go at any chown */
    cr_assert_eq(chown_at("/w/f", 0, 1000), -EPERM);
    cr_assert_eq(chown_at("/w/f", 1000, 0), -EPERM);
    w_as_root();
    cr_assert_eq(chown_at("/w/f", 0, 0), 0);
    cr_assert_eq(chmod_at("/w/f", 04755), 0);
    w_as_user();
    cr_assert_eq(chmod_at("/w/f", 0777), -EPERM);
    cr_assert_eq(set_attr("/w/f", (struct iattr){.valid = IATTR_MTIME, .mtime = {1, 0}}), -EPERM);
    w_as_root();
    cr_assert_eq(chmod_at("/w/f", 04777), 0);
    w_as_user();
    const unsigned now = IATTR_ATIME | IATTR_MTIME | IATTR_ATIME_NOW | IATTR_MTIME_NOW;
    cr_assert_eq(set_attr("/w/f", (struct iattr){.valid = now}), 0);
    /* a write by somebody without CAP_FSETID drops them, too */
    struct file *f;
    cr_assert_eq(w_open("/w/f", O_WRONLY, 0, &f), 0);
    cr_assert_eq(inode_of("/w/f")->mode & 07777, 04777);
    cr_assert_eq(w_pwrite(f, "x", 1, 0), 1);
    cr_assert_eq(inode_of("/w/f")->mode & 07777, 0777);
    file_unref(f);
    w_as_root();
}

Test(perm, xattrs)
{
    cr_assert_eq(w_touch("/f", O_CREAT | O_RDWR, 0755), 0);
    struct path p;
    char v[16];
    cr_assert_eq(w_walk("/f", 0, &p), 0);
    cr_assert_eq(vfs_setxattr(&w.ctx, &p, "user.a", "1", 1, 0), 0);
    cr_assert_eq(vfs_setxattr(&w.ctx, &p, "user.a", "22", 2, XATTR_CREATE), -EEXIST);
    cr_assert_eq(vfs_setxattr(&w.ctx, &p, "user.b", "22", 2, XATTR_REPLACE), -ENODATA);
    cr_assert_eq(vfs_setxattr(&w.ctx, &p, "trusted.t", "t", 1, 0), 0);
    const struct vfs_ns_cap_data caps = {.magic_etc = VFS_CAP_REVISION_2};
    cr_assert_eq(vfs_setxattr(&w.ctx, &p, "security.capability", "cap", 3, 0), -EINVAL);
    cr_assert_eq(vfs_setxattr(&w.ctx, &p, "security.capability", &caps, XATTR_CAPS_SZ_2, 0), 0);
    cr_assert_eq(vfs_setxattr(&w.ctx, &p, "bogus.x", "t", 1, 0), -EOPNOTSUPP);
    cr_assert_eq(vfs_getxattr(&w.ctx, &p, "user.a", v, 0), 1);
    cr_assert_eq(vfs_getxattr(&w.ctx, &p, "user.none", v, 0), -ENODATA);
    cr_assert_eq(vfs_listxattr(&w.ctx, &p, NULL, 0), 7 + 10 + 20);
    w_as_user();
    cr_assert_eq(vfs_setxattr(&w.ctx, &p, "user.c", "1", 1, 0), -EACCES);
    cr_assert_eq(vfs_getxattr(&w.ctx, &p, "trusted.t", v, sizeof(v)), -ENODATA);
    cr_assert_eq(vfs_setxattr(&w.ctx, &p, "trusted.t", "t", 1, 0), -EPERM);
    cr_assert_eq(vfs_setxattr(&w.ctx, &p, "security.capability", "t", 1, 0), -EPERM);
    cr_assert_eq(vfs_listxattr(&w.ctx, &p, NULL, 0), 7 + 20);
    w_as_root();
    cr_assert_eq(chmod_at("/f", 0777), 0);
    w_as_user();
    struct file *f;
    cr_assert_eq(w_open("/f", O_WRONLY, 0, &f), 0);
    cr_assert_eq(w_pwrite(f, "x", 1, 0), 1);
    file_unref(f);
    w_as_root();
    cr_assert_eq(vfs_getxattr(&w.ctx, &p, "security.capability", v, sizeof(v)), -ENODATA);
    static char big[65536];
    int ret = 0;
    char name[32];
    for (int i = 0; i < 8 && ret == 0; i++) {
        snprintf(name, sizeof(name), "user.big%d", i);
        ret = vfs_setxattr(&w.ctx, &p, name, big, sizeof(big), 0);
    }
    cr_assert_eq(ret, -ENOSPC);
    path_unref(&p);
}

Test(perm, mount_flags)
{
    cr_assert_eq(w_mkdir("/m", 0777), 0);
    struct dentry *root;
    cr_assert_eq(tmpfs_new(&w.ctx, 0, NULL, &root), 0);
    struct path at;
    cr_assert_eq(w_walk("/m", 0, &at), 0);
    cr_assert_eq(mount_attach(&w.ctx, root, &at, MS_NODEV | MS_NOEXEC, "t"), 0);
    path_unref(&at);
    cr_assert_eq(vfs_mknod(&w.ctx, &w.base, "/m/null", S_IFCHR | 0666, 0x103), 0);
    cr_assert_eq(w_touch("/m/null", O_RDONLY, 0), -EACCES);
    cr_assert_eq(vfs_mknod(&w.ctx, &w.base, "/null", S_IFCHR | 0666, 0x103), 0);
    cr_assert_eq(w_touch("/null", O_RDONLY, 0), -ENXIO); /* nobody serves it here */
    struct file *f;
    struct file_map map;
    cr_assert_eq(w_open("/m/x", O_CREAT | O_RDWR, 0755, &f), 0);
    cr_assert_eq(file_mmap(&w.ctx, f, 1 | 4 /* read, exec */, false, &map), -EPERM);
    cr_assert_eq(file_mmap(&w.ctx, f, 1, false, &map), 0);
    file_unref(f);
    w_as_user();
    cr_assert_eq(vfs_mknod(&w.ctx, &w.base, "/m/zero", S_IFCHR | 0666, 0x105), -EPERM);
    cr_assert_eq(vfs_mknod(&w.ctx, &w.base, "/m/whiteout", S_IFCHR | 0666, 0), 0);
    cr_assert_eq(vfs_mknod(&w.ctx, &w.base, "/m/fifo", S_IFIFO | 0666, 0), 0);
    w_as_root();
}

Test(perm, executables_are_not_written)
{
    cr_assert_eq(w_touch("/prog", O_CREAT | O_RDWR, 0755), 0);
    struct inode *i = inode_of("/prog");
    cr_assert_eq(inode_deny_write(i), 0);
    cr_assert_eq(w_touch("/prog", O_WRONLY, 0), -ETXTBSY);
    cr_assert_eq(w_touch("/prog", O_RDONLY, 0), 0);
    inode_allow_write(i);
    struct file *f;
    cr_assert_eq(w_open("/prog", O_WRONLY, 0, &f), 0);
    cr_assert_eq(inode_deny_write(i), -ETXTBSY);
    file_unref(f);
    cr_assert_eq(inode_deny_write(i), 0);
    inode_allow_write(i);
}
