/* SPDX-License-Identifier: Apache-2.0 */
/* Ends the process as the container's init ended. */
#include "gofer/server/srv_exit.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* For tgkill(): read before the seccomp list is in force. */
static pid_t srv_exit_pid;

void srv_exit_prepare(void)
{
    struct rlimit none = {0, 0};
    srv_exit_pid = getpid();
    /* The signal may be one that dumps core. A limit of 0 does not stop a core_pattern that names a
     * program, being non-dumpable does. */
    (void)setrlimit(RLIMIT_CORE, &none);
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

NORETURN void srv_exit(int wait_status)
{
    if (WIFSIGNALED(wait_status)) {
        int signo = WTERMSIG(wait_status);
        sigset_t set;
        signal(signo, SIG_DFL);
        sigemptyset(&set);
        sigaddset(&set, signo);
        sigprocmask(SIG_UNBLOCK, &set, NULL);
        /* To this thread, so that it is delivered before the call returns. */
        tgkill(srv_exit_pid, gettid(), signo);
        /* Not a signal that ends a process: the shell's convention is the best that is left. */
        _exit(128 + signo);
    }
    _exit(WEXITSTATUS(wait_status));
}
