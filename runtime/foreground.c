/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of a command that waits in the foreground. */
#include "runtime/foreground.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "platform/base/host.h"
#include "runtime/console.h"
#include "runtime/errtext.h"

enum { FOREGROUND_BUFFER = 16384 };

/* Bytes on their way from one descriptor to another. */
struct foreground_pipe {
    char data[FOREGROUND_BUFFER];
    size_t at, end;
    bool eof;
};

static void foreground_signals(sigset_t *ret_set)
{
    sigfillset(ret_set);
    /* Faults of our own must kill; the rest of these have a meaning for this process alone. */
    static const int ours[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGTTOU, SIGTTIN};
    for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
        sigdelset(ret_set, ours[i]);
}

void foreground_block_signals(void)
{
    sigset_t set;
    foreground_signals(&set);
    sigprocmask(SIG_BLOCK, &set, NULL);
}

static void foreground_resize(const struct foreground *f)
{
    uint16_t rows, cols;
    if (f->host_console < 0 || console_get_size(f->host_console, &rows, &cols) < 0)
        return;
    /* The host's pty tells the sentry. It may be gone already. */
    if (f->master >= 0 && console_set_size(f->master, rows, cols) < 0)
        return;
    if (f->on_resize)
        f->on_resize(f->arg, rows, cols);
}

static void foreground_signal(const struct foreground *f, int signal_fd)
{
    struct signalfd_siginfo info;
    if (read(signal_fd, &info, sizeof(info)) != sizeof(info))
        return;
    int signo = (int)info.ssi_signo;
    if (signo == SIGWINCH) {
        foreground_resize(f);
        return;
    }
    if (signo == SIGCHLD || signo == SIGURG || signo == SIGPIPE)
        return;
    f->on_signal(f->arg, signo);
}

/* Moves bytes one step. Return: false when nothing more will come or go. */
static bool foreground_fill(struct foreground_pipe *p, int fd)
{
    ssize_t n = read(fd, p->data, sizeof(p->data));
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return true;
    if (n <= 0) {
        p->eof = true;
        return false;
    }
    p->at = 0;
    p->end = (size_t)n;
    return true;
}

static bool foreground_drain(struct foreground_pipe *p, int fd)
{
    ssize_t n = write(fd, p->data + p->at, p->end - p->at);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return true;
    if (n < 0) {
        p->eof = true;
        p->at = p->end = 0;
        return false;
    }
    p->at += (size_t)n;
    return true;
}

/* What the program wrote last, after its end. */
static void foreground_flush_output(const struct foreground *f, struct foreground_pipe *out)
{
    while (f->master >= 0) {
        while (out->at < out->end)
            if (!foreground_drain(out, STDOUT_FILENO))
                return;
        struct pollfd p = {.fd = f->master, .events = POLLIN};
        if (poll(&p, 1, 0) <= 0 || !(p.revents & POLLIN) || !foreground_fill(out, f->master))
            return;
    }
}

static int foreground_loop(const struct foreground *f, int signal_fd, struct foreground_pipe *in,
                           struct foreground_pipe *out)
{
    for (;;) {
        bool in_full = in->at < in->end, out_full = out->at < out->end;
        short master_events = (short)((in_full ? POLLOUT : 0) | (out_full || out->eof ? 0 : POLLIN));
        struct pollfd p[] = {
            {.fd = signal_fd, .events = POLLIN},
            {.fd = f->watch_fd, .events = POLLIN},
            {.fd = f->master >= 0 && !in_full && !in->eof ? STDIN_FILENO : -1, .events = POLLIN},
            {.fd = master_events ? f->master : -1, .events = master_events},
            {.fd = f->master >= 0 && out_full ? STDOUT_FILENO : -1, .events = POLLOUT},
        };
        if (poll(p, ARRAY_SIZE(p), -1) < 0) {
            if (errno == EINTR)
                continue;
            return -errno;
        }
        if (p[0].revents)
            foreground_signal(f, signal_fd);
        if (p[2].revents)
            foreground_fill(in, STDIN_FILENO);
        if (p[3].revents & POLLOUT)
            foreground_drain(in, f->master);
        if ((p[3].revents & (POLLIN | POLLHUP | POLLERR)) && !out_full && !out->eof)
            foreground_fill(out, f->master);
        if (p[4].revents)
            foreground_drain(out, STDOUT_FILENO);
        if (p[1].revents) {
            int r = f->on_watch(f->arg);
            if (r != 0)
                return r < 0 ? r : 0;
        }
    }
}

int foreground_wait(const struct foreground *f, struct errmsg *e)
{
    sigset_t set;
    foreground_signals(&set);
    CLEANUP_CLOSE int signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signal_fd < 0)
        return errmsg_set(e, -errno, "signalfd: %s", errtext(errno));
    if (f->master >= 0) {
        int flags = fcntl(f->master, F_GETFL);
        if (flags < 0 || fcntl(f->master, F_SETFL, flags | O_NONBLOCK) < 0)
            return errmsg_set(e, -errno, "prepare the console: %s", errtext(errno));
        foreground_resize(f);
    }
    struct foreground_pipe in = {.at = 0}, out = {.at = 0};
    int r = foreground_loop(f, signal_fd, &in, &out);
    foreground_flush_output(f, &out);
    return r < 0 && !e->text[0] ? errmsg_set(e, r, "wait: %s", errtext(r)) : r;
}
