/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and cursors against a made-up guest of three pages, of which the middle one is missing. */
#include "sentry/mm/usermem.h"

#include <criterion/criterion.h>
#include <errno.h>

#include "platform/platform.h"

static char guest[3 * PAGE_SIZE];
static const uint64_t guest_base = 0x10000;

static bool mapped(uint64_t addr, uint64_t size)
{
    for (uint64_t a = addr; a < addr + size; a++) {
        uint64_t page = (a - guest_base) / PAGE_SIZE;

        if (a < guest_base || (page != 0 && page != 2))
            return false;
    }
    return true;
}

int plat_copy_in(struct plat_thread *t, void *dst, uint64_t src, uint64_t size)
{
    if (!mapped(src, size))
        return -EFAULT;
    memcpy(dst, guest + (src - guest_base), size);
    return 0;
}

int plat_copy_out(struct plat_thread *t, uint64_t dst, const void *src, uint64_t size)
{
    if (!mapped(dst, size))
        return -EFAULT;
    memcpy(guest + (dst - guest_base), src, size);
    return 0;
}

static const struct platform_ops ops;
static struct platform platform = {.ops = &ops, .task_size = 0x7ffffffff000};
static struct plat_aspace aspace = {.platform = &platform};
static struct plat_thread thread = {.aspace = &aspace};
static struct ctx ctx = {.thread = &thread};
static char buffer[2 * PAGE_SIZE];

Test(usermem, bounds)
{
    cr_assert_eq(copy_in(&ctx, buffer, UADDR(guest_base), PAGE_SIZE), 0);
    cr_assert_eq(copy_in(&ctx, buffer, UADDR(guest_base), PAGE_SIZE + 1), -EFAULT);
    cr_assert_eq(copy_in(&ctx, buffer, UADDR(UINT64_MAX - 3), 8), -EFAULT);
    cr_assert_eq(copy_in(&ctx, buffer, UADDR(platform.task_size), 1), -EFAULT);
    cr_assert_eq(copy_in(&ctx, buffer, UADDR(0), 0), 0);
    cr_assert_eq(zero_out(&ctx, UADDR(guest_base), PAGE_SIZE), 0);
    cr_assert_eq(zero_out(&ctx, UADDR(guest_base), PAGE_SIZE + 1), -EFAULT);
}

Test(usermem, string_at_the_end_of_a_mapping)
{
    uint64_t end = guest_base + PAGE_SIZE;

    memcpy(guest + PAGE_SIZE - 4, "abc", 4);
    cr_assert_eq(copy_in_str(&ctx, buffer, UADDR(end - 4), sizeof(buffer)), 3);
    cr_assert_str_eq(buffer, "abc");
    guest[PAGE_SIZE - 1] = 'd';
    cr_assert_eq(copy_in_str(&ctx, buffer, UADDR(end - 4), sizeof(buffer)), -EFAULT);
    cr_assert_eq(copy_in_str(&ctx, buffer, UADDR(end - 4), 4), -ENAMETOOLONG);
    cr_assert_eq(copy_in_str(&ctx, buffer, UADDR(0), 4), -EFAULT);
}

Test(usermem, extensible_struct)
{
    uint64_t v[2];

    memset(guest, 0, PAGE_SIZE);
    guest[0] = 5;
    v[1] = 9;
    cr_assert_eq(copy_in_struct(&ctx, v, 16, UADDR(guest_base), 8), 0);
    cr_assert(v[0] == 5 && v[1] == 0);
    cr_assert_eq(copy_in_struct(&ctx, v, 8, UADDR(guest_base), 200), 0);
    guest[199] = 1;
    cr_assert_eq(copy_in_struct(&ctx, v, 8, UADDR(guest_base), 200), -E2BIG);
    cr_assert_eq(copy_in_struct(&ctx, v, 8, UADDR(guest_base), 199), 0);
    cr_assert_eq(copy_in_struct(&ctx, v, 8, UADDR(guest_base), 5000), -E2BIG);
}

Test(usermem, partial_put)
{
    struct uio u;

    memset(buffer, 'x', sizeof(buffer));
    uio_init_user(&u, &ctx, UADDR(guest_base + PAGE_SIZE - 10), 100);
    cr_assert_eq(uio_put(&u, buffer, 100), 10);
    cr_assert_eq(u.left, 90);
    cr_assert_eq(uio_put(&u, buffer, 90), -EFAULT);
}

Test(usermem, iovec_cursor)
{
    struct uio_seg iov[3] = {
        {guest_base + 512, 3}, {guest_base + 1024, 0}, {guest_base + 2 * PAGE_SIZE, 5}};
    struct uio u;
    char got[16] = "";

    memcpy(guest, iov, sizeof(iov));
    cr_assert_eq(uio_init_iovec(&u, &ctx, UADDR(guest_base), 3), 0);
    cr_assert_eq(u.left, 8);
    cr_assert_eq(uio_put(&u, "abcde", 5), 5);
    cr_assert_eq(uio_put(&u, "fghij", 5), 3);
    uio_revert(&u, 8);
    cr_assert_eq(uio_get(&u, got, 4), 4);
    uio_revert(&u, 2);
    uio_advance(&u, 3);
    cr_assert_eq(uio_get(&u, got + 4, 10), 3);
    cr_assert_str_eq(got, "abcdfgh");
    uio_free(&u);

    iov[1].size = UINT64_MAX;
    memcpy(guest, iov, sizeof(iov));
    cr_assert_eq(uio_init_iovec(&u, &ctx, UADDR(guest_base), 3), -EINVAL);
    cr_assert_eq(uio_init_iovec(&u, &ctx, UADDR(guest_base), 1025), -EINVAL);
    cr_assert_eq(uio_init_iovec(&u, &ctx, UADDR(guest_base + PAGE_SIZE - 16), 2), -EFAULT);
    cr_assert_eq(uio_init_iovec(&u, &ctx, UADDR(0), 0), 0);
    cr_assert_eq(u.left, 0);
}
