/* SPDX-License-Identifier: Apache-2.0 */
/* tmpfs: contents against a model, limits, holes, seals, mapping, listing. */
#include "tests/unit/sentry/vfs/vfs_fixture.h"

#include <dirent.h>
#include <linux/falloc.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "platform/base/alloc.h"
#include "sentry/core/limits.h"

TestSuite(tmpfs, .init = world_up, .fini = world_down);

static struct path mount_at(const char *path, const char *data)
{
    struct dentry *root;
    cr_assert_eq(w_mkdir(path, 0755), 0);
    cr_assert_eq(tmpfs_new(&w.ctx, 0, data, &root), 0);
    struct path p;
    cr_assert_eq(w_walk(path, 0, &p), 0);
    cr_assert_eq(mount_attach(&w.ctx, root, &p, 0, "t"), 0);
    path_unref(&p);
    cr_assert_eq(w_walk(path, 0, &p), 0);
    return p;
}

static struct statfs fs_of(const struct path *p)
{
    struct statfs st;
    cr_assert_eq(superblock_statfs(&w.ctx, p->dentry->sb, &st), 0);
    return st;
}

static uint64_t used(const struct path *p)
{
    struct statfs st = fs_of(p);
    return st.f_blocks - st.f_bfree;
}

static int truncate_to(struct file *f, uint64_t size)
{
    return vfs_truncate(&w.ctx, &f->path, size);
}

Test(tmpfs, contents_follow_a_model)
{
    enum { MAX = 300 * 1024, ROUNDS = 3000 };
    struct path m = mount_at("/m", NULL);
    struct file *f;
    cr_assert_eq(w_open("/m/f", O_CREAT | O_RDWR, 0644, &f), 0);
    char *model = calloc(1, MAX), *data = malloc(MAX), *back = malloc(MAX);
    size_t size = 0;
    srand(7);
    for (int round = 0; round < ROUNDS; round++) {
        /* small positions first, so that both representations and the move are met */
        size_t range = round < ROUNDS / 3 ? 60 * 1024 : MAX;
        size_t pos = (size_t)rand() % range, len = (size_t)rand() % (range - pos) % 9000 + 1;
        len = MIN(len, range - pos);
        switch (rand() % 8) {
        case 0:
            cr_assert_eq(truncate_to(f, pos), 0);
            if (pos < size)
                memset(model + pos, 0, size - pos);
            size = pos;
            break;
        case 1:
            cr_assert_eq(file_fallocate(&w.ctx, f, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (int64_t)pos,
                                        (int64_t)len),
                         0);
            memset(model + pos, 0, len);
            break;
        case 2:
            cr_assert_eq(file_fallocate(&w.ctx, f, 0, (int64_t)pos, (int64_t)len), 0);
            size = MAX(size, pos + len);
            break;
        default:
            for (size_t i = 0; i < len; i++)
                data[i] = (char)rand();
            cr_assert_eq(w_pwrite(f, data, len, (int64_t)pos), (ssize_t)len);
            memcpy(model + pos, data, len);
            size = MAX(size, pos + len);
        }
        cr_assert_eq(f->inode->size, size);
        pos = (size_t)rand() % (size + 1);
        ssize_t n = file_read_kernel(&w.ctx, f, back, 20000, (int64_t)pos);
        cr_assert_eq(n, (ssize_t)MIN((size_t)20000, size - pos));
        cr_assert_eq(memcmp(back, model + pos, (size_t)n), 0, "round %d", round);
    }
    cr_assert_eq(f->inode->blocks / 8, used(&m));
    file_unref(f);
    cr_assert_eq(w_unlink("/m/f"), 0);
    cr_assert_eq(used(&m), 0);
    path_unref(&m);
    free(model);
    free(data);
    free(back);
}

Test(tmpfs, size_limit)
{
    struct path m = mount_at("/m", "size=1m,mode=700,uid=5");
    cr_assert_eq(m.dentry->inode->uid, 5);
    cr_assert_eq(m.dentry->inode->mode & 07777, 0700);
    struct statfs st = fs_of(&m);
    cr_assert_eq(st.f_blocks, 256);
    cr_assert_eq(st.f_type, 0x01021994);
    struct file *f;
    cr_assert_eq(w_open("/m/f", O_CREAT | O_RDWR, 0644, &f), 0);
    cr_assert_eq(truncate_to(f, 64 << 20), 0);
    cr_assert_eq(used(&m), 0);
    char *data = calloc(1, 4 << 20);
    cr_assert_eq(w_pwrite(f, data, 4 << 20, 0), 1 << 20); /* as much as fits */
    cr_assert_eq(w_pwrite(f, data, 1, 32 << 20), -ENOSPC);
    cr_assert_eq(w_pwrite(f, data, 100, 5000), 100); /* pages that are there */
    cr_assert_eq(used(&m), 256);
    struct file *g;
    cr_assert_eq(w_open("/m/g", O_CREAT | O_RDWR, 0644, &g), 0);
    cr_assert_eq(w_pwrite(g, "x", 1, 0), -ENOSPC);
    cr_assert_eq(file_fallocate(&w.ctx, f, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 8192, 8192), 0);
    cr_assert_eq(used(&m), 254);
    cr_assert_eq(w_pwrite(g, "x", 1, 0), 1);
    cr_assert_eq(file_fallocate(&w.ctx, g, 0, 0, 8193), -ENOSPC);
    cr_assert_eq(file_fallocate(&w.ctx, g, 0, 0, 8192), 0);
    cr_assert_eq(used(&m), 256);
    file_unref(g);
    file_unref(f);
    cr_assert_eq(w_unlink("/m/f"), 0);
    cr_assert_eq(w_unlink("/m/g"), 0);
    cr_assert_eq(used(&m), 0);
    free(data);
    path_unref(&m);
}

Test(tmpfs, many_small_files_fill_it)
{
    struct path m = mount_at("/m", "size=100k,nr_inodes=1000");
    char name[32];
    struct file *f;
    int made = 0;
    ssize_t n = 1;
    for (; n == 1; made++) {
        snprintf(name, sizeof(name), "/m/%d", made);
        cr_assert_eq(w_open(name, O_CREAT | O_RDWR, 0644, &f), 0);
        n = w_pwrite(f, "x", 1, 0);
        file_unref(f);
    }
    cr_assert_eq(n, -ENOSPC);
    cr_assert_eq(made, 26);
    int ret = 0;
    for (; ret == 0; made++) {
        snprintf(name, sizeof(name), "/m/%d", made);
        ret = w_touch(name, O_CREAT | O_RDWR, 0644);
    }
    cr_assert_eq(ret, -ENOSPC);
    cr_assert_eq(made, 1000); /* the root is one of the thousand */
    path_unref(&m);
}

Test(tmpfs, bad_options)
{
    static const char *const bad[] = {"size=", "size=1x", "size=-1", "mode=9", "uid=x", "what=1", "nr_inodes=5%"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct dentry *d;
        cr_assert_eq(tmpfs_new(&w.ctx, 0, bad[i], &d), -EINVAL, "%s", bad[i]);
    }
}

Test(tmpfs, holes)
{
    struct path m = mount_at("/m", NULL);
    struct file *f;
    cr_assert_eq(w_open("/m/f", O_CREAT | O_RDWR, 0644, &f), 0);
    cr_assert_eq(w_pwrite(f, "x", 1, 8192), 1);
    cr_assert_eq(truncate_to(f, 40000), 0);
    for (int pass = 0; pass < 2; pass++) {
        cr_assert_eq(file_llseek(&w.ctx, f, 0, SEEK_DATA), 8192);
        cr_assert_eq(file_llseek(&w.ctx, f, 9000, SEEK_HOLE), 12288);
        cr_assert_eq(file_llseek(&w.ctx, f, 0, SEEK_HOLE), 0);
        cr_assert_eq(file_llseek(&w.ctx, f, 20000, SEEK_DATA), -ENXIO);
        cr_assert_eq(file_llseek(&w.ctx, f, 40000, SEEK_HOLE), -ENXIO);
        cr_assert_eq(f->inode->blocks, 8);
        /* the same again on a host file */
        struct file_map map;
        cr_assert_eq(file_mmap(&w.ctx, f, PROT_READ, true, &map), 0);
        struct kstat st;
        cr_assert_eq(inode_getattr(&w.ctx, f->inode, &st), 0);
    }
    file_unref(f);
    path_unref(&m);
}

Test(tmpfs, maps_have_the_right_access)
{
    struct path m = mount_at("/m", NULL);
    struct file *f, *r;
    struct file_map map;
    cr_assert_eq(w_open("/m/f", O_CREAT | O_RDWR, 0644, &f), 0);
    cr_assert_eq(w_open("/m/f", O_RDONLY, 0, &r), 0);
    cr_assert_eq(w_pwrite(f, "shared", 6, 0), 6);
    cr_assert_eq(file_mmap(&w.ctx, r, PROT_READ | PROT_WRITE, true, &map), -EACCES);
    cr_assert_eq(file_mmap(&w.ctx, r, PROT_READ, true, &map), 0);
    cr_assert_eq(fcntl(map.host_fd, F_GETFL) & O_ACCMODE, O_RDONLY);
    cr_assert_eq(mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, map.host_fd, 0), MAP_FAILED);
    cr_assert_eq(file_mmap(&w.ctx, f, PROT_READ | PROT_WRITE, false, &map), 0);
    cr_assert_eq(fcntl(map.host_fd, F_GETFL) & O_ACCMODE, O_RDONLY);
    cr_assert_eq(file_mmap(&w.ctx, f, PROT_READ | PROT_WRITE, true, &map), 0);
    char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, map.host_fd, 0);
    cr_assert_neq(p, MAP_FAILED);
    cr_assert_eq(memcmp(p, "shared", 6), 0);
    p[0] = 'S';
    char c;
    cr_assert_eq(file_read_kernel(&w.ctx, r, &c, 1, 0), 1);
    cr_assert_eq(c, 'S');
    cr_assert_eq(w_pwrite(f, "!", 1, 1), 1);
    cr_assert_eq(p[1], '!');
    munmap(p, 4096);
    file_unref(f);
    file_unref(r);
    path_unref(&m);
}

Test(tmpfs, seals)
{
    struct file *f;
    struct file_map map;
    cr_assert_eq(tmpfs_file_new_unlinked(&w.ctx, "memfd:x", 0777, O_RDWR, 0, 0, &f), 0);
    char name[64];
    w_name(&f->path, name, sizeof(name));
    cr_assert_str_eq(name, "/memfd:x (deleted)");
    cr_assert_eq(w_pwrite(f, "0123456789", 10, 0), 10);
    cr_assert_eq(f->ops->fcntl(&w.ctx, f, F_ADD_SEALS, F_SEAL_GROW), 0);
    cr_assert_eq(truncate_to(f, 11), -EPERM);
    cr_assert_eq(w_pwrite(f, "xx", 2, 10), -EPERM);
    cr_assert_eq(truncate_to(f, 9), 0);
    cr_assert_eq(f->ops->fcntl(&w.ctx, f, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    cr_assert_eq(truncate_to(f, 1), -EPERM);
    /* a writable shared map stops the write seal, as the host sees it */
    cr_assert_eq(file_mmap(&w.ctx, f, PROT_READ | PROT_WRITE, true, &map), 0);
    char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, map.host_fd, 0);
    cr_assert_neq(p, MAP_FAILED);
    cr_assert_eq(f->ops->fcntl(&w.ctx, f, F_ADD_SEALS, F_SEAL_WRITE), -EBUSY);
    munmap(p, 4096);
    cr_assert_eq(f->ops->fcntl(&w.ctx, f, F_ADD_SEALS, F_SEAL_WRITE), 0);
    cr_assert_eq(w_pwrite(f, "x", 1, 0), -EPERM);
    cr_assert_eq(file_mmap(&w.ctx, f, PROT_READ | PROT_WRITE, true, &map), -EPERM);
    cr_assert_eq(file_mmap(&w.ctx, f, PROT_READ, true, &map), 0);
    cr_assert_eq(f->ops->fcntl(&w.ctx, f, F_ADD_SEALS, F_SEAL_SEAL), 0);
    cr_assert_eq(f->ops->fcntl(&w.ctx, f, F_ADD_SEALS, F_SEAL_SHRINK), -EPERM);
    cr_assert_eq(f->ops->fcntl(&w.ctx, f, F_GET_SEALS, 0),
                 F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_WRITE | F_SEAL_SEAL);
    file_unref(f);
}

struct listing {
    struct dir_sink sink;
    unsigned seen, room;
    char names[64][16];
};

static bool list_emit(struct dir_sink *sink, const char *name, size_t len, uint64_t ino, unsigned d_type,
                      int64_t next_pos)
{
    struct listing *l = container_of(sink, struct listing, sink);
    if (!l->room)
        return false;
    l->room--;
    if (l->seen < ARRAY_SIZE(l->names))
        snprintf(l->names[l->seen], sizeof(l->names[0]), "%.*s", (int)len, name);
    l->seen++;
    return true;
}

Test(tmpfs, listing_while_removing)
{
    /* rm -r: read a batch, remove it, go on. Every name is seen exactly once. */
    enum { FILES = 500, BATCH = 7 };
    struct path m = mount_at("/m", NULL);
    char name[32];
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof(name), "/m/f%d", i);
        cr_assert_eq(w_touch(name, O_CREAT | O_RDWR, 0644), 0);
    }
    cr_assert_eq(m.dentry->inode->size, 20 * (FILES + 2));
    struct file *d;
    cr_assert_eq(w_open("/m", O_RDONLY | O_DIRECTORY, 0, &d), 0);
    unsigned removed = 0;
    for (;;) {
        struct listing l = {.sink.emit = list_emit, .room = BATCH};
        cr_assert_eq(file_readdir(&w.ctx, d, &l.sink), 0);
        if (!l.seen)
            break;
        for (unsigned i = 0; i < l.seen; i++) {
            if (l.names[i][0] == '.')
                continue;
            snprintf(name, sizeof(name), "/m/%s", l.names[i]);
            cr_assert_eq(w_unlink(name), 0);
            removed++;
        }
    }
    cr_assert_eq(removed, FILES);
    file_unref(d);
    path_unref(&m);
}

Test(tmpfs, nothing_leaks)
{
    /* Names, files with and without a host file: inodes, files and descriptors are given back (B037, B052). */
    struct path m = mount_at("/m", NULL);
    int probe = dup(0);
    close(probe);
    uint64_t inodes = limit_used(LIMIT_KIND_TMPFS_INODES), files = limit_used(LIMIT_KIND_FILES);
    static char data[100 * 1024];
    char name[32];
    for (int i = 0; i < 3000; i++) {
        struct file *f;
        snprintf(name, sizeof(name), "/m/%d", i);
        cr_assert_eq(w_open(name, O_CREAT | O_RDWR, 0644, &f), 0);
        size_t size = i % 3 ? 100 : sizeof(data);
        cr_assert_eq(w_pwrite(f, data, size, 0), (ssize_t)size);
        struct file_map map;
        if (i % 7 == 0)
            cr_assert_eq(file_mmap(&w.ctx, f, PROT_READ, false, &map), 0);
        file_unref(f);
        cr_assert_eq(w_unlink(name), 0);
    }
    int after = dup(0);
    close(after);
    cr_assert_eq(after, probe);
    cr_assert_eq(limit_used(LIMIT_KIND_TMPFS_INODES), inodes);
    cr_assert_eq(limit_used(LIMIT_KIND_FILES), files);
    cr_assert_eq(used(&m), 0);
    path_unref(&m);
}

Test(tmpfs, out_of_memory)
{
    /* Every allocation fails once: the call fails cleanly or works, and nothing is half done. */
    struct path m = mount_at("/m", NULL);
    for (unsigned n = 1; n < 12; n++) {
        mem_fail_nth(n);
        int ret = w_touch("/m/f", O_CREAT | O_RDWR, 0644);
        mem_fail_nth(0);
        cr_assert(ret == 0 || ret == -ENOMEM || ret == -ENFILE, "%d", ret);
        int there = w_there("/m/f");
        cr_assert(there == 0 || there == -ENOENT);
        if (there == 0)
            cr_assert_eq(w_unlink("/m/f"), 0);
        mem_fail_nth(n);
        ret = w_mkdir("/m/d", 0755);
        mem_fail_nth(0);
        cr_assert(ret == 0 || ret == -ENOMEM);
        cr_assert_eq(w_rmdir("/m/d"), ret == 0 ? 0 : -ENOENT);
        cr_assert_eq(w_mkdir("/m/x", 0755), 0);
        mem_fail_nth(n);
        ret = w_rename("/m/x", "/m/a-name-too-long-for-inline-storage", 0);
        mem_fail_nth(0);
        cr_assert_eq(w_rmdir(ret == 0 ? "/m/a-name-too-long-for-inline-storage" : "/m/x"), 0);
    }
    path_unref(&m);
}
