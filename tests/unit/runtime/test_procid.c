/* SPDX-License-Identifier: Apache-2.0 */
/* Processes are told apart from others that had or will have their pid. */
#include "runtime/procid.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

Test(procid, life)
{
    struct procid id, other;
    pid_t pid = fork();
    if (pid == 0)
        for (;;)
            pause();
    cr_assert_eq(procid_of(pid, &id), 0);
    cr_assert(procid_alive(&id));
    cr_assert_eq(procid_kill(&id, 0), 0);
    cr_assert_eq(procid_wait_gone(&id, 10), -ETIMEDOUT);
    other = id;
    other.start++;
    cr_assert(!procid_alive(&other));
    cr_assert_eq(procid_kill(&other, SIGKILL), -ESRCH);
    cr_assert(procid_alive(&id));
    cr_assert_eq(procid_kill(&id, SIGKILL), 0);
    cr_assert_eq(procid_wait_gone(&id, 5000), 0);
    cr_assert(!procid_alive(&id), "a zombie is not alive");
    waitpid(pid, NULL, 0);
    cr_assert_eq(procid_kill(&id, SIGKILL), -ESRCH);
    cr_assert_eq(procid_wait_gone(&id, 0), 0);
}

Test(procid, nobody)
{
    struct procid none = {.pid = 0};
    cr_assert(!procid_alive(&none));
    cr_assert_eq(procid_kill(&none, SIGKILL), -ESRCH);
}
