/* SPDX-License-Identifier: Apache-2.0 */
/* getrandom. */
#include "syscalls_gen.h"

#include <errno.h>
#include <limits.h>

#include "platform/base/host.h"
#include "sentry/core/fiber.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/usermem.h"

enum { NONBLOCK = 1, RANDOM = 2, INSECURE = 4, CHUNK = 1024, TURN = 64 * 1024 };

int64_t sys_getrandom(struct task *t, uaddr_t buf, uint64_t len, uint32_t flags)
{
    char chunk[CHUNK];
    uint64_t done = 0;

    if (flags & ~(uint32_t)(NONBLOCK | RANDOM | INSECURE) || (flags & (RANDOM | INSECURE)) == (RANDOM | INSECURE))
        return -EINVAL;
    len = MIN(len, (uint64_t)INT_MAX);
    while (done < len) {
        uint64_t n = MIN(len - done, (uint64_t)CHUNK);

        host_random(chunk, n);
        if (copy_out(&t->ctx, uaddr_add(buf, done), chunk, n))
            return done ? (int64_t)done : -EFAULT;
        done += n;
        /* Large requests take turns with others, and signals end them. */
        if (done % TURN == 0 && done < len) {
            fiber_yield();
            if (t->ctx.signal_pending || t->ctx.fatal_pending)
                break;
        }
    }
    return (int64_t)done;
}
