/* SPDX-License-Identifier: Apache-2.0 */
/* Record locks: ranges against a byte map, kinds against each other. */
#include "tests/unit/sentry/vfs/vfs_fixture.h"

#include <stdlib.h>
#include <sys/file.h>

#include "sentry/core/limits.h"
#include "sentry/vfs/flock.h"

TestSuite(flock, .init = world_up, .fini = world_down);

static struct inode *subject(void)
{
    struct file *f;
    cr_assert_eq(w_open("/locked", O_CREAT | O_RDWR, 0644, &f), 0);
    struct inode *inode = inode_ref(f->inode);
    file_unref(f);
    return inode;
}

static int owners[3];

static struct flock_req req(unsigned owner, int type, uint64_t start, uint64_t end)
{
    return (struct flock_req){.kind = FLOCK_POSIX, .type = type, .start = start, .end = end,
                              .owner = &owners[owner], .pid = (int32_t)owner + 1};
}

Test(flock, ranges_follow_a_byte_map)
{
    enum { BYTES = 40, OWNERS = 3, ROUNDS = 20000 };
    struct inode *inode = subject();
    int map[OWNERS][BYTES];
    for (int o = 0; o < OWNERS; o++) {
        for (int b = 0; b < BYTES; b++)
            map[o][b] = F_UNLCK;
    }
    srand(1);
    static const int types[] = {F_RDLCK, F_WRLCK, F_UNLCK};
    for (int round = 0; round < ROUNDS; round++) {
        unsigned o = (unsigned)rand() % OWNERS;
        int type = types[rand() % 3], start = rand() % BYTES, end = start + rand() % (BYTES - start);
        bool blocked = false;
        for (unsigned other = 0; other < OWNERS; other++) {
            for (int b = start; b <= end && other != o; b++)
                blocked |= type != F_UNLCK && map[other][b] != F_UNLCK &&
                           (type == F_WRLCK || map[other][b] == F_WRLCK);
        }
        struct flock_req r = req(o, type, (uint64_t)start, (uint64_t)end), found;
        if (type != F_UNLCK)
            cr_assert_eq(flock_test(inode, &r, &found), blocked);
        cr_assert_eq(flock_set(&w.ctx, inode, &r, false), blocked ? -EAGAIN : 0);
        if (!blocked) {
            for (int b = start; b <= end; b++)
                map[o][b] = type;
        }
    }
    for (unsigned o = 0; o < OWNERS; o++)
        flock_release_posix(inode, &owners[o]);
    cr_assert_eq(limit_used(LIMIT_KIND_FLOCKS), 0);
    inode_unref(inode);
}

Test(flock, merges_and_splits)
{
    struct inode *inode = subject();
    struct flock_req a = req(0, F_WRLCK, 0, 9), b = req(0, F_WRLCK, 10, 19), found;
    cr_assert_eq(flock_set(&w.ctx, inode, &a, false), 0);
    cr_assert_eq(flock_set(&w.ctx, inode, &b, false), 0);
    cr_assert_eq(limit_used(LIMIT_KIND_FLOCKS), 1);
    struct flock_req hole = req(0, F_UNLCK, 5, 6), probe = req(1, F_WRLCK, 6, INT64_MAX);
    cr_assert_eq(flock_set(&w.ctx, inode, &hole, false), 0);
    cr_assert_eq(limit_used(LIMIT_KIND_FLOCKS), 2);
    cr_assert(flock_test(inode, &probe, &found));
    cr_assert_eq(found.start, 7);
    cr_assert_eq(found.end, 19);
    cr_assert_eq(found.pid, 1);
    struct flock_req all = req(0, F_RDLCK, 0, INT64_MAX);
    cr_assert_eq(flock_set(&w.ctx, inode, &all, false), 0);
    cr_assert_eq(limit_used(LIMIT_KIND_FLOCKS), 1);
    struct flock_req shared = req(1, F_RDLCK, 3, 3);
    cr_assert_eq(flock_set(&w.ctx, inode, &shared, false), 0);
    inode_unref(inode); /* frees what is held */
    cr_assert_eq(w_unlink("/locked"), 0);
    cr_assert_eq(limit_used(LIMIT_KIND_FLOCKS), 0);
}

Test(flock, descriptions)
{
    struct file *f, *g;
    cr_assert_eq(w_open("/locked", O_CREAT | O_RDWR, 0644, &f), 0);
    cr_assert_eq(w_open("/locked", O_RDWR, 0, &g), 0);
    struct flock_req a = {.kind = FLOCK_BSD, .type = F_WRLCK, .end = INT64_MAX, .owner = f};
    struct flock_req b = a;
    b.owner = g;
    cr_assert_eq(flock_set(&w.ctx, f->inode, &a, false), 0);
    cr_assert_eq(flock_set(&w.ctx, g->inode, &b, false), -EAGAIN);
    struct flock_req ofd = {.kind = FLOCK_OFD, .type = F_WRLCK, .end = 5, .owner = g, .pid = -1};
    cr_assert_eq(flock_set(&w.ctx, g->inode, &ofd, false), 0); /* flock(2) is a world of its own */
    struct flock_req posix = req(0, F_RDLCK, 5, 5);
    cr_assert_eq(flock_set(&w.ctx, f->inode, &posix, false), -EAGAIN);
    a.type = F_RDLCK;
    cr_assert_eq(flock_set(&w.ctx, f->inode, &a, false), 0);
    b.type = F_RDLCK;
    cr_assert_eq(flock_set(&w.ctx, g->inode, &b, false), 0);
    b.type = F_WRLCK;
    /* A failed conversion has lost the old lock, as on Linux. */
    cr_assert_eq(flock_set(&w.ctx, g->inode, &b, false), -EAGAIN);
    a.type = F_WRLCK;
    cr_assert_eq(flock_set(&w.ctx, f->inode, &a, false), 0);
    file_unref(g);
    cr_assert_eq(flock_set(&w.ctx, f->inode, &posix, false), 0);
    flock_release_posix(f->inode, &owners[0]);
    file_unref(f);
    cr_assert_eq(limit_used(LIMIT_KIND_FLOCKS), 0);
}
