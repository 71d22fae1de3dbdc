/* SPDX-License-Identifier: Apache-2.0 */
/* A sandbox's processes as their creator sees them: started, waited for, let go or killed. */
#include "runtime/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gofer/proto/channel.h"
#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "platform/base/log.h"
#include "runtime/bootproto.h"
#include "runtime/errtext.h"

/* The sentry must outlive any guest when the host runs out of memory, but not the host's own daemons. */
#define SANDBOX_SENTRY_OOM_SCORE "-998"

#ifdef __SANITIZE_ADDRESS__
static int (*sandbox_verb_main)(const char *verb);

void sandbox_set_verb_main(int (*fn)(const char *verb))
{
    sandbox_verb_main = fn;
}

/* What exec would have closed. */
static void sandbox_close_on_exec(void)
{
    for (int fd = 0; fd < 4096; fd++)
        if (fcntl(fd, F_GETFD) & FD_CLOEXEC)
            host_close(fd);
}

int sandbox_exec_self(int exe, const char *verb, const char *id)
{
    sandbox_close_on_exec();
    _exit(sandbox_verb_main(verb));
}
#else
int sandbox_exec_self(int exe, const char *verb, const char *id)
{
    char *const argv[] = {(char *)"cloister", (char *)verb, (char *)id, NULL};
    char *const envp[] = {NULL};
    return (int)host_ret(syscall(SYS_execveat, exe, "", argv, envp, AT_EMPTY_PATH));
}
#endif

int sandbox_spawn(const struct sandbox_config *config, struct sandbox *ret_sandbox, struct errmsg *e)
{
    struct sandbox sb = SANDBOX_NONE;
    int socks[2];
    int r = channel_socketpair(socks);
    if (r < 0)
        return errmsg_set(e, r, "make the gofer's channel: %s", errtext(r));
    /* No copy of the sentry's end may stay with the gofer or here, nor the other way round: that end
     * of file is how each learns that the other is gone. */
    CLEANUP_CLOSE int gofer_end = socks[0], sentry_end = socks[1];
    CLEANUP_CLOSE int shm = channel_shm_new();
    if (shm < 0)
        return errmsg_set(e, shm, "make the gofer's channel: %s", errtext(shm));
    r = sandbox_spawn_gofer(config, gofer_end, shm, &sb, e);
    if (r == 0)
        r = sandbox_spawn_sentry(config, sentry_end, shm, &sb, e);
    if (r < 0) {
        sandbox_kill(&sb);
        return r;
    }
    *ret_sandbox = sb;
    return 0;
}

int sandbox_describe_status(int wait_status, const char *name, struct errmsg *e)
{
    if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0)
        return 0;
    if (WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGSYS)
        return errmsg_set(e, -EPERM, "the %s made a host call that its filter forbids", name);
    if (WIFSIGNALED(wait_status))
        return errmsg_set(e, -ECHILD, "the %s was killed by signal %d (%s)", name, WTERMSIG(wait_status),
                          strsignal(WTERMSIG(wait_status)));
    return errmsg_set(e, -ECHILD, "the %s ended with status %d", name, WEXITSTATUS(wait_status));
}

/* Reaps a child that has ended or is about to, and says how. */
static int sandbox_describe_death(struct procid *child, const char *name, struct errmsg *e)
{
    int status = 0;
    pid_t pid;
    do
        pid = waitpid(child->pid, &status, 0);
    while (pid < 0 && errno == EINTR);
    if (pid != child->pid)
        return errmsg_set(e, -ECHILD, "the %s ended", name);
    child->pid = 0;
    int r = sandbox_describe_status(status, name, e);
    return r < 0 ? r : errmsg_set(e, -ECHILD, "the %s ended", name);
}

int sandbox_wait_gofer(struct sandbox *sb, struct errmsg *e)
{
    char text[1024] = "";
    size_t size = 0;
    for (;;) {
        ssize_t n = read(sb->gofer_ready, text + size, sizeof(text) - 1 - size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n > 0)
            size += (size_t)n;
        /* A message ends with the pipe; a ready byte does too, but nobody need wait for that. */
        if (n <= 0 || text[0] == '\0' || size == sizeof(text) - 1)
            break;
    }
    if (size && text[0] == '\0')
        return 0;
    if (size > 1 && text[0] == 'E')
        return errmsg_set(e, -EIO, "%s", text + 1);
    return sandbox_describe_death(&sb->gofer, "gofer", e);
}

/* Writes the OOM score of a process on the host. */
static int sandbox_set_oom_score(pid_t pid, const char *score)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", (int)pid);
    return host_write_file(AT_FDCWD, path, score, strlen(score));
}

/* Host pid of a pidfd. Return: the pid, or −errno. */
static int sandbox_pid_of_pidfd(int pidfd)
{
    char path[64];
    CLEANUP_FREE char *text = NULL;
    snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
    int r = host_read_file(AT_FDCWD, path, 1 << 16, &text, NULL);
    if (r < 0)
        return r;
    const char *line = strstr(text, "\nPid:");
    int pid = line ? atoi(line + 5) : 0;
    return pid > 0 ? pid : -ESRCH;
}

/* A zygote exists but has run nothing yet: everything it forks will be where it is now. */
static int sandbox_adopt_zygote(struct sandbox *sb, const struct sandbox_config *config, int pidfd,
                                bool in_cgroup, struct errmsg *e)
{
    if (pidfd < 0)
        return errmsg_set(e, -EPROTO, "the sentry did not name its zygote");
    int pid = sandbox_pid_of_pidfd(pidfd);
    host_close(pidfd);
    if (pid < 0)
        return errmsg_set(e, pid, "the zygote ended");
    int r = in_cgroup ? 0 : cgroup_add(config->cgroup, pid, e);
    if (r < 0)
        return r;
    const struct oci_process *process = &config->spec->process;
    if (process->oom_score_adj_set) {
        char score[16];
        snprintf(score, sizeof(score), "%d", process->oom_score_adj);
        r = sandbox_set_oom_score(pid, score);
        if (r < 0)
            return errmsg_set(e, r, "write \"%s\" to oom_score_adj: %s", score, errtext(r));
    }
    r = sandbox_set_oom_score(sb->sentry.pid, SANDBOX_SENTRY_OOM_SCORE);
    if (r == 0)
        r = sandbox_set_oom_score(sb->gofer.pid, SANDBOX_SENTRY_OOM_SCORE);
    if (r < 0)
        log_debug("lower the OOM score of the sandbox's own processes: %s", errtext(r));
    r = boot_send(sb->sentry_sock, BOOT_ZYGOTE_OK, 0, NULL, -1);
    return r < 0 ? errmsg_set(e, r, "answer the sentry: %s", errtext(r)) : 0;
}

int sandbox_wait_sentry(struct sandbox *sb, const struct sandbox_config *config, struct errmsg *e)
{
    for (;;) {
        struct boot_message m;
        int fd = -1;
        int r = boot_recv(sb->sentry_sock, &m, &fd);
        if (r == -EPIPE)
            return sandbox_describe_death(&sb->sentry, "sentry", e);
        if (r < 0)
            return errmsg_set(e, r, "start-up message: %s", errtext(r));
        switch (m.type) {
        case BOOT_ZYGOTE:
            r = sandbox_adopt_zygote(sb, config, fd, m.error == 1, e);
            if (r < 0)
                return r;
            break;
        case BOOT_READY:
            host_close(fd);
            return 0;
        case BOOT_ERROR:
            host_close(fd);
            return errmsg_set(e, m.error < 0 ? m.error : -EIO, "%s", m.text);
        default:
            host_close(fd);
            return errmsg_set(e, -EPROTO, "unexpected start-up message %u", m.type);
        }
    }
}

int sandbox_commit(struct sandbox *sb, struct errmsg *e)
{
    struct boot_message m;
    int r = boot_send(sb->sentry_sock, BOOT_COMMIT, 0, NULL, -1);
    if (r == 0)
        r = boot_recv(sb->sentry_sock, &m, NULL);
    if (r == -EPIPE)
        return sandbox_describe_death(&sb->sentry, "sentry", e);
    if (r < 0 || m.type != BOOT_COMMITTED)
        return errmsg_set(e, r < 0 ? r : -EPROTO, "let go of the sentry: %s", errtext(r ? r : EPROTO));
    return 0;
}

static void sandbox_kill_child(struct procid *child)
{
    if (child->pid <= 0)
        return;
    kill(child->pid, SIGKILL); /* our own unreaped child: the pid can't be anyone else's */
    while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    child->pid = 0;
}

void sandbox_kill(struct sandbox *sb)
{
    sandbox_kill_child(&sb->sentry);
    sandbox_kill_child(&sb->gofer);
    sandbox_release(sb);
}

void sandbox_release(struct sandbox *sb)
{
    host_close(sb->gofer_ready);
    host_close(sb->sentry_sock);
    sb->gofer_ready = sb->sentry_sock = -1;
}
