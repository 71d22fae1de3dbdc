/* SPDX-License-Identifier: Apache-2.0 */
/* System V shared memory, semaphores and message queues. */
#include "syscalls_gen.h"

#include <time.h>

#include "platform/base/host.h"
#include "sentry/abi/abi_errno.h"
#include "sentry/core/waitq.h"
#include "sentry/ipc/sysv_msg.h"
#include "sentry/ipc/sysv_sem.h"
#include "sentry/ipc/sysv_shm.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/usermem.h"

#define NS_PER_S 1000000000ULL

int64_t sys_shmget(struct task *t, int32_t key, uint64_t size, int32_t flags)
{
    return sysv_shm_get(&t->ctx, key, size, flags);
}

int64_t sys_shmat(struct task *t, int32_t id, uaddr_t addr, int32_t flags)
{
    return sysv_shm_attach(&t->ctx, id, addr.v, flags);
}

int64_t sys_shmdt(struct task *t, uaddr_t addr)
{
    return sysv_shm_detach(&t->ctx, addr.v);
}

int64_t sys_shmctl(struct task *t, int32_t id, int32_t cmd, uaddr_t buf)
{
    return sysv_shm_control(&t->ctx, id, cmd, buf);
}

int64_t sys_semget(struct task *t, int32_t key, int32_t nsems, int32_t flags)
{
    return sysv_sem_get(&t->ctx, key, nsems, flags);
}

int64_t sys_semop(struct task *t, int32_t id, uaddr_t ops, uint32_t nops)
{
    return sysv_sem_op(&t->ctx, id, ops, nops, WAIT_FOREVER);
}

int64_t sys_semtimedop(struct task *t, int32_t id, uaddr_t ops, uint32_t nops, uaddr_t timeout)
{
    struct timespec ts;
    if (uaddr_is_null(timeout))
        return sysv_sem_op(&t->ctx, id, ops, nops, WAIT_FOREVER);
    if (COPY_IN(&t->ctx, &ts, timeout))
        return -EFAULT;
    if (ts.tv_sec < 0 || ts.tv_nsec < 0 || (uint64_t)ts.tv_nsec >= NS_PER_S)
        return -EINVAL;
    uint64_t now = host_monotonic_ns(), deadline = WAIT_FOREVER;
    if ((uint64_t)ts.tv_sec < (WAIT_FOREVER - now) / NS_PER_S - 1)
        deadline = now + (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
    return sysv_sem_op(&t->ctx, id, ops, nops, deadline);
}

int64_t sys_semctl(struct task *t, int32_t id, int32_t semnum, int32_t cmd, uint64_t arg)
{
    return sysv_sem_control(&t->ctx, id, semnum, cmd, arg);
}

int64_t sys_msgget(struct task *t, int32_t key, int32_t flags)
{
    return sysv_msg_get(&t->ctx, key, flags);
}

int64_t sys_msgsnd(struct task *t, int32_t id, uaddr_t msg, uint64_t size, int32_t flags)
{
    return sysv_msg_send(&t->ctx, id, msg, size, flags);
}

int64_t sys_msgrcv(struct task *t, int32_t id, uaddr_t msg, uint64_t size, int64_t type, int32_t flags)
{
    return sysv_msg_receive(&t->ctx, id, msg, size, type, flags);
}

int64_t sys_msgctl(struct task *t, int32_t id, int32_t cmd, uaddr_t buf)
{
    return sysv_msg_control(&t->ctx, id, cmd, buf);
}
