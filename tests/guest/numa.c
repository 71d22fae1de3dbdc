/* SPDX-License-Identifier: Apache-2.0 */
/* Memory policies, as far as they do not depend on there being more than one node. */
#include "tests/guest/guest.h"

#include <linux/mempolicy.h>

enum { PAGE = 4096 };

#define SET(mode, mask, max) syscall(SYS_set_mempolicy, (long)(mode), mask, (long)(max))
#define GET(mode, mask, max, addr, flags) syscall(SYS_get_mempolicy, mode, mask, (long)(max), addr, (long)(flags))
#define BIND(addr, len, mode, mask, max, flags)                                                    \
    syscall(SYS_mbind, addr, (long)(len), (long)(mode), mask, (long)(max), (long)(flags))

static uint64_t zero_node = 1;

static char *pages(int n)
{
    char *p = mmap(NULL, (size_t)n * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(p != MAP_FAILED);
    return p;
}

static void shows(void *addr, int mode, uint64_t nodes)
{
    int got = -1;
    uint64_t mask[2] = {~0ULL, ~0ULL};

    OK(GET(&got, mask, 128, addr, addr ? MPOL_F_ADDR : 0));
    EQ(got, mode);
    EQ(mask[0], nodes);
    EQ(mask[1], 0);
}

TEST(task_policies)
{
    uint64_t none = 0, two[2] = {1, 1}, other = 1ULL << 40;
    int mode, status;
    pid_t pid;

    shows(NULL, MPOL_DEFAULT, 0);
    OK(SET(MPOL_BIND, &zero_node, 64));
    shows(NULL, MPOL_BIND, 1);
    pid = OK(fork());
    if (!pid) {
        shows(NULL, MPOL_BIND, 1);
        _exit(0);
    }
    OK(waitpid(pid, &status, 0));
    EXITED(status, 0);
    OK(SET(MPOL_INTERLEAVE, two, 128));
    shows(NULL, MPOL_INTERLEAVE, 1);
    OK(GET(&mode, NULL, 0, NULL, MPOL_F_NODE));
    EQ(mode, 0);
    OK(SET(MPOL_PREFERRED, NULL, 0));
    shows(NULL, MPOL_LOCAL, 0);
    ERR(EINVAL, GET(&mode, NULL, 0, NULL, MPOL_F_NODE));
    OK(SET(MPOL_BIND | MPOL_F_STATIC_NODES, &zero_node, 64));
    shows(NULL, MPOL_BIND | MPOL_F_STATIC_NODES, 1);
    OK(SET(MPOL_BIND | MPOL_F_RELATIVE_NODES, &other, 64));
    OK(SET(MPOL_LOCAL, NULL, 0));
    OK(SET(MPOL_DEFAULT, NULL, 0));
    ERR(EINVAL, SET(MPOL_DEFAULT, &zero_node, 64));
    ERR(EINVAL, SET(MPOL_LOCAL, &zero_node, 64));
    ERR(EINVAL, SET(MPOL_BIND, &none, 64));
    ERR(EINVAL, SET(MPOL_BIND, NULL, 0));
    ERR(EINVAL, SET(MPOL_BIND, &zero_node, 1));
    ERR(EINVAL, SET(MPOL_BIND, &zero_node, 0));
    ERR(EINVAL, SET(MPOL_BIND, &other, 64)); /* no such node */
    ERR(EINVAL, SET(99, &zero_node, 64));
    ERR(EINVAL, SET(-1, &zero_node, 64));
    ERR(EINVAL, SET(MPOL_BIND | MPOL_F_STATIC_NODES | MPOL_F_RELATIVE_NODES, &zero_node, 64));
    ERR(EINVAL, SET(MPOL_BIND, &zero_node, 1 << 20));
    ERR(EFAULT, SET(MPOL_BIND, guest_unmapped(), 64));
    shows(NULL, MPOL_DEFAULT, 0);
}

TEST(what_get_mempolicy_refuses)
{
    int mode = 5;
    uint64_t mask = 0;
    char *p = pages(1);

    ERR(EINVAL, GET(&mode, &mask, 0, NULL, 0));
    ERR(EINVAL, GET(&mode, &mask, 64, NULL, 8));
    ERR(EINVAL, GET(&mode, &mask, 64, p, 0));
    ERR(EINVAL, GET(&mode, &mask, 64, NULL, MPOL_F_MEMS_ALLOWED | MPOL_F_ADDR));
    ERR(EFAULT, GET(&mode, &mask, 64, guest_unmapped(), MPOL_F_ADDR));
    ERR(EFAULT, GET(guest_unmapped(), &mask, 64, NULL, 0));
    ERR(EFAULT, GET(&mode, guest_unmapped(), 64, NULL, 0));
    OK(GET(&mode, &mask, 64, NULL, MPOL_F_MEMS_ALLOWED));
    EQ(mode, 0);
    EQ(mask & 1, 1);
    OK(GET(&mode, NULL, 0, p, MPOL_F_ADDR | MPOL_F_NODE));
    EQ(mode, 0);
    OK(mprotect(p, PAGE, PROT_NONE));
    ERR(EFAULT, GET(&mode, NULL, 0, p, MPOL_F_ADDR | MPOL_F_NODE));
}

TEST(ranges_have_policies)
{
    char *p = pages(8);
    int status;
    pid_t pid;

    OK(SET(MPOL_INTERLEAVE, &zero_node, 64));
    shows(p, MPOL_DEFAULT, 0); /* the task's is not the place's */
    OK(BIND(p + PAGE, 4 * PAGE, MPOL_BIND, &zero_node, 64, 0));
    OK(BIND(p + 2 * PAGE, PAGE, MPOL_PREFERRED, &zero_node, 64, MPOL_MF_MOVE | MPOL_MF_STRICT));
    shows(p, MPOL_DEFAULT, 0);
    shows(p + PAGE, MPOL_BIND, 1);
    shows(p + 2 * PAGE + 100, MPOL_PREFERRED, 1);
    shows(p + 3 * PAGE, MPOL_BIND, 1);
    shows(p + 5 * PAGE, MPOL_DEFAULT, 0);
    pid = OK(fork());
    if (!pid) {
        shows(p + 2 * PAGE, MPOL_PREFERRED, 1);
        OK(BIND(p, 8 * PAGE, MPOL_DEFAULT, NULL, 0, 0));
        shows(p + 2 * PAGE, MPOL_DEFAULT, 0);
        _exit(0);
    }
    OK(waitpid(pid, &status, 0));
    EXITED(status, 0);
    OK(BIND(p + 3 * PAGE, 5 * PAGE, MPOL_DEFAULT, NULL, 0, 0));
    shows(p + PAGE, MPOL_BIND, 1);
    shows(p + 3 * PAGE, MPOL_DEFAULT, 0);
    ERR(EINVAL, BIND(p + 1, PAGE, MPOL_BIND, &zero_node, 64, 0));
    ERR(EINVAL, BIND(p, PAGE, MPOL_BIND, &zero_node, 64, 64));
    ERR(EINVAL, BIND(p, -PAGE, MPOL_BIND, &zero_node, 64, 0));
    OK(BIND(p, 0, MPOL_BIND, &zero_node, 64, 0));
    OK(munmap(p + 6 * PAGE, PAGE));
    ERR(EFAULT, BIND(p, 8 * PAGE, MPOL_BIND, &zero_node, 64, 0));
    OK(BIND(p, 8 * PAGE, MPOL_DEFAULT, NULL, 0, 0));
    ERR(EFAULT, BIND(p + 6 * PAGE, PAGE, MPOL_DEFAULT, NULL, 0, 0));
}

TEST(pages_and_their_node)
{
    char *p = pages(3), *hole = guest_unmapped();
    void *list[4] = {p, p + PAGE, hole, p + 2 * PAGE + 5};
    int status[4] = {9, 9, 9, 9}, nodes[4] = {0}, bad[4] = {0, 0, 1 << 20, 0};

    *p = 1;
    p[2 * PAGE] = 1;
    OK(syscall(SYS_move_pages, 0L, 4L, list, NULL, status, 0L));
    EQ(status[0], 0);
    EQ(status[1], -ENOENT);
    EQ(status[2], -EFAULT);
    EQ(status[3], 0);
    OK(syscall(SYS_move_pages, 0L, 1L, list, nodes, status, (long)MPOL_MF_MOVE));
    EQ(status[0], 0);
    ERR(ENODEV, syscall(SYS_move_pages, 0L, 3L, list, bad, status, (long)MPOL_MF_MOVE));
    ERR(EINVAL, syscall(SYS_move_pages, 0L, 1L, list, nodes, status, 1L));
    ERR(ESRCH, syscall(SYS_move_pages, 99999L, 1L, list, nodes, status, 0L));
    ERR(EFAULT, syscall(SYS_move_pages, 0L, 1L, hole, nodes, status, 0L));
    ERR(EPERM, syscall(SYS_move_pages, 0L, 1L, list, nodes, status, (long)MPOL_MF_MOVE_ALL));
    OK(syscall(SYS_migrate_pages, 0L, 64L, &zero_node, &zero_node));
    ERR(ESRCH, syscall(SYS_migrate_pages, 99999L, 64L, &zero_node, &zero_node));
    ERR(EFAULT, syscall(SYS_migrate_pages, 0L, 64L, hole, &zero_node));
}

TEST(home_nodes)
{
    char *p = pages(4);

    ERR(ENOENT, syscall(450L, p, (long)PAGE, 0L, 0L));
    OK(BIND(p, 2 * PAGE, MPOL_BIND, &zero_node, 64, 0));
    OK(syscall(450L, p, 2L * PAGE, 0L, 0L));
    ERR(EINVAL, syscall(450L, p, (long)PAGE, 0L, 1L));
    ERR(EINVAL, syscall(450L, p + 1, (long)PAGE, 0L, 0L));
    ERR(EINVAL, syscall(450L, p, (long)PAGE, 77L, 0L));
    OK(syscall(450L, p, 4L * PAGE, 0L, 0L)); /* pages without a policy do no harm */
    OK(BIND(p + 3 * PAGE, PAGE, MPOL_PREFERRED_MANY, &zero_node, 64, 0));
    OK(syscall(450L, p + 2 * PAGE, 2L * PAGE, 0L, 0L));
    OK(BIND(p, PAGE, MPOL_INTERLEAVE, &zero_node, 64, 0));
    ERR(EOPNOTSUPP, syscall(450L, p, 4L * PAGE, 0L, 0L));
    ERR(EOPNOTSUPP, syscall(450L, p, (long)PAGE, 0L, 0L));
}
