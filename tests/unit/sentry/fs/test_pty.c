/* SPDX-License-Identifier: Apache-2.0 */
/* Pseudo-terminals: pairs, hangup, packet mode, sizes, job control. */
#include "sentry/fs/pty.h"

#include <asm/ioctls.h>
#include <asm/termbits.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

#include "tests/unit/sentry/fs/fs_fixture.h"

static struct file *master, *slave;

static void open_pair(uint32_t slave_flags)
{
    int zero = 0, n = -1;
    char path[32];

    master = s_open(s_init, "/dev/ptmx", O_RDWR | O_NOCTTY);
    cr_assert_eq(s_ioctl(s_init, master, TIOCGPTN, &n), 0);
    snprintf(path, sizeof(path), "/dev/pts/%d", n);
    cr_assert_eq(s_try_open(s_init, path, O_RDWR | O_NOCTTY, &slave), -EIO, "locked");
    cr_assert_eq(s_ioctl(s_init, master, TIOCSPTLCK, &zero), 0);
    slave = s_open(s_init, path, O_RDWR | slave_flags);
}

static bool pending(struct task *t, int signo)
{
    return signal_pending_set(t) & SIGBIT(signo);
}

static void take_signals(struct task *t)
{
    siginfo_t info;

    while (signal_dequeue(t, ~0ULL, &info))
        ;
}

Test(pty, bytes_cross)
{
    int n;

    s_up();
    open_pair(O_NOCTTY);
    cr_assert_eq(s_write(s_init, master, "ls\n"), 3);
    s_expect(s_init, master, "ls\r\n");
    cr_assert_eq(s_ioctl(s_init, slave, TIOCINQ, &n), 0);
    cr_assert_eq(n, 3);
    s_expect(s_init, slave, "ls\n");
    cr_assert_eq(s_write(s_init, slave, "a\tb\n"), 4);
    s_expect(s_init, master, "a\tb\r\n");
    file_unref(slave);
    file_unref(master);
    cr_assert_eq(s_try_open(s_init, "/dev/pts/0", O_RDWR, &slave), -ENOENT);
}

Test(pty, a_closed_slave_and_a_closed_master)
{
    char c;

    s_up();
    open_pair(O_NOCTTY);
    s_write(s_init, slave, "bye");
    file_unref(slave);
    cr_assert(file_poll(master, NULL) & EPOLLHUP);
    s_expect(s_init, master, "bye");
    cr_assert_eq(s_read(s_init, master, &c, 1), -EIO);
    cr_assert_eq(s_write(s_init, master, "x"), -EIO);
    slave = s_open(s_init, "/dev/pts/0", O_RDWR | O_NOCTTY);
    cr_assert_eq(file_poll(master, NULL) & EPOLLHUP, 0);
    file_unref(master);
    cr_assert_eq(s_read(s_init, slave, &c, 1), 0);
    cr_assert_eq(s_write(s_init, slave, "x"), -EIO);
    cr_assert_eq(s_ioctl(s_init, slave, TIOCGPGRP, &c), -EIO);
    cr_assert_eq(file_poll(slave, NULL),
                 (uint32_t)(EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP | EPOLLRDNORM | EPOLLWRNORM));
    file_unref(slave);
}

Test(pty, opening_makes_it_the_controlling_terminal)
{
    struct winsize ws = {.ws_row = 24, .ws_col = 80};
    struct file *tty;
    int id;

    s_up();
    cr_assert_eq(s_try_open(s_init, "/dev/tty", O_RDWR, &tty), -ENXIO);
    open_pair(0);
    cr_assert_eq(s_ioctl(s_init, slave, TIOCGPGRP, &id), 0);
    cr_assert_eq(id, 1);
    cr_assert_eq(s_ioctl(s_init, master, TIOCGSID, &id), 0);
    cr_assert_eq(id, 1);
    tty = s_open(s_init, "/dev/tty", O_RDWR);
    s_write(s_init, tty, "hi");
    s_expect(s_init, master, "hi");
    file_unref(tty);

    s_write(s_init, master, "\003");
    s_expect(s_init, master, "^C");
    /* pid 1 ignores what it has no handler for; its child does not. */
    struct task *child = s_fork(w.init);
    s_write(s_init, master, "\034");
    cr_assert(pending(child, SIGQUIT));
    take_signals(child);

    cr_assert_eq(s_ioctl(s_init, master, TIOCSWINSZ, &ws), 0);
    struct sigaction_k act = {.handler = 4096};
    cr_assert_eq(signal_set_action(child, SIGWINCH, &act, NULL), 0);
    cr_assert_eq(s_ioctl(s_init, master, TIOCSWINSZ, &ws), 0);
    cr_assert_not(pending(child, SIGWINCH), "the same size again");
    ws.ws_col = 81;
    cr_assert_eq(s_ioctl(s_init, master, TIOCSWINSZ, &ws), 0);
    cr_assert(pending(child, SIGWINCH));
    take_signals(child);

    file_unref(master);
    cr_assert_eq(s_try_open(s_init, "/dev/tty", O_RDWR, &tty), -ENXIO);
    file_unref(slave);
}

Test(pty, background_groups_are_stopped_or_refused)
{
    struct sigaction_k act = {.handler = (uint64_t)(uintptr_t)SIG_IGN};
    struct task *child;
    char c;
    int id, own;

    s_up();
    open_pair(0);
    child = s_fork(w.init);
    cr_assert_eq(session_setpgid(child, 0, 0), 0);
    own = tgroup_pid_for(child->group, child);

    cr_assert_eq(s_read(child, slave, &c, 1), -ERESTARTSYS);
    cr_assert(pending(child, SIGTTIN));
    take_signals(child);
    /* Without TOSTOP output is free. */
    cr_assert_eq(s_write(child, slave, "out"), 3);
    s_expect(s_init, master, "out");

    /* Taking the foreground: SIGTTOU, unless it is blocked or ignored. */
    cr_assert_eq(s_ioctl(child, slave, TIOCSPGRP, &own), -ERESTARTSYS);
    cr_assert(pending(child, SIGTTOU));
    take_signals(child);
    s_ioctl(s_init, slave, TIOCGPGRP, &id);
    cr_assert_eq(id, 1);
    cr_assert_eq(signal_set_action(child, SIGTTOU, &act, NULL), 0);
    cr_assert_eq(s_ioctl(child, slave, TIOCSPGRP, &own), 0);
    cr_assert_not(pending(child, SIGTTOU));
    s_ioctl(s_init, slave, TIOCGPGRP, &id);
    cr_assert_eq(id, own);

    /* An ignored SIGTTIN turns a read from the background into an error. */
    signal_set_blocked(s_init, SIGBIT(SIGTTIN));
    cr_assert_eq(s_read(s_init, slave, &c, 1), -EIO);
    id = 99;
    cr_assert_eq(s_ioctl(child, slave, TIOCSPGRP, &id), -ESRCH);
    id = -1;
    cr_assert_eq(s_ioctl(child, slave, TIOCSPGRP, &id), -EINVAL);
    file_unref(slave);
    file_unref(master);
}

Test(pty, packet_mode_tells_of_flow_and_flushes)
{
    int on = 1;
    char got[8] = {0};

    s_up();
    open_pair(O_NOCTTY);
    cr_assert_eq(s_ioctl(s_init, master, TIOCPKT, &on), 0);
    s_write(s_init, slave, "ab");
    cr_assert_eq(s_read(s_init, master, got, sizeof(got)), 3);
    cr_assert_eq(got[0], TIOCPKT_DATA);
    cr_assert_eq(got[1], 'a');
    s_write(s_init, master, "\023");
    cr_assert(file_poll(master, NULL) & EPOLLPRI);
    cr_assert_eq(s_read(s_init, master, got, sizeof(got)), 1);
    cr_assert_eq(got[0], TIOCPKT_STOP);
    s_write(s_init, master, "\021");
    cr_assert_eq(s_read(s_init, master, got, sizeof(got)), 1);
    cr_assert_eq(got[0], TIOCPKT_START);
    cr_assert_eq(file_ioctl(&s_init->ctx, slave, TCFLSH, 2), 0);
    cr_assert_eq(s_read(s_init, master, got, sizeof(got)), 1);
    cr_assert_eq(got[0], TIOCPKT_FLUSHREAD | TIOCPKT_FLUSHWRITE);
    file_unref(slave);
    file_unref(master);
}

Test(pty, blocked_io_goes_on)
{
    static char big[40000], got[40000];
    struct fx_io out, in;
    size_t total = 0;

    s_up();
    open_pair(O_NOCTTY);
    /* A reader that waits gets the line. */
    fx_start(&in, slave, got, 100, false);
    cr_assert_eq(in.ret, INT64_MIN);
    s_write(s_init, master, "line\n");
    fiber_run_ready();
    cr_assert_eq(in.ret, 5);
    s_expect(s_init, master, "line\r\n");

    memset(big, 'x', sizeof(big));
    fx_start(&out, slave, big, sizeof(big), true);
    cr_assert_eq(out.ret, INT64_MIN);
    while (total < sizeof(big)) {
        ssize_t n = s_read(s_init, master, got, sizeof(got));

        cr_assert_gt(n, 0);
        total += (size_t)n;
        fiber_run_ready();
    }
    cr_assert_eq(out.ret, (int64_t)sizeof(big));
    file_unref(slave);
    file_unref(master);
}

Test(pty, settings)
{
    struct termios t;
    struct termios2 t2;

    s_up();
    open_pair(O_NOCTTY);
    cr_assert_eq(s_ioctl(s_init, master, TCGETS, &t), 0);
    cr_assert_eq(t.c_lflag, (unsigned)(ISIG | ICANON | ECHO | ECHOE | ECHOK | ECHOCTL | ECHOKE | IEXTEN));
    cr_assert_eq(t.c_cflag, (unsigned)(B38400 | CS8 | CREAD));
    t.c_lflag &= ~(unsigned)(ICANON | ECHO);
    t.c_cc[VMIN] = 0;
    cr_assert_eq(s_ioctl(s_init, slave, TCSETSF, &t), 0);
    cr_assert_eq(s_read(s_init, slave, &t, 1), 0, "VMIN 0, VTIME 0 does not wait");
    cr_assert_eq(s_ioctl(s_init, slave, TCGETS2, &t2), 0);
    cr_assert_eq(t2.c_ospeed, 38400u);
    t2.c_cflag = (t2.c_cflag & ~(unsigned)CBAUD) | BOTHER | PARENB;
    t2.c_ospeed = 12345;
    cr_assert_eq(s_ioctl(s_init, slave, TCSETS2, &t2), 0);
    cr_assert_eq(s_ioctl(s_init, slave, TCGETS2, &t2), 0);
    cr_assert_eq(t2.c_ospeed, 12345u);
    cr_assert_eq(t2.c_cflag & PARENB, 0u);
    cr_assert_eq(s_ioctl(s_init, slave, TIOCGPTN, &t), -ENOTTY);
    cr_assert_eq(s_ioctl(s_init, slave, 0x5499, &t), -ENOTTY);
    file_unref(slave);
    file_unref(master);
}

Test(pty, numbers_are_used_again)
{
    struct file *a, *b;
    int n;

    s_up();
    a = s_open(s_init, "/dev/ptmx", O_RDWR);
    b = s_open(s_init, "/dev/pts/ptmx", O_RDWR);
    cr_assert_eq(s_ioctl(s_init, b, TIOCGPTN, &n), 0);
    cr_assert_eq(n, 1);
    file_unref(a);
    a = s_open(s_init, "/dev/ptmx", O_RDWR);
    cr_assert_eq(s_ioctl(s_init, a, TIOCGPTN, &n), 0);
    cr_assert_eq(n, 0);
    n = 0;
    cr_assert_eq(s_ioctl(s_init, a, TIOCSPTLCK, &n), 0);
    n = (int)file_ioctl(&s_init->ctx, a, TIOCGPTPEER, O_RDWR | O_NOCTTY);
    cr_assert_eq(n, 0, "first descriptor, got %d", n);
    file_unref(a);
    file_unref(b);
}
