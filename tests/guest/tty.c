/* SPDX-License-Identifier: Apache-2.0 */
/* Pseudo-terminals: line discipline, job control, sizes. */
#include "tests/guest/guest.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>

static volatile int hits;

static void on_signal(int sig)
{
    hits++;
}

static int open_pair(int *ret_slave)
{
    char name[64];
    int m = OK(open("/dev/ptmx", O_RDWR | O_NOCTTY)), zero = 0, n;

    OK(ioctl(m, TIOCSPTLCK, &zero));
    OK(ioctl(m, TIOCGPTN, &n));
    snprintf(name, sizeof(name), "/dev/pts/%d", n);
    *ret_slave = OK(open(name, O_RDWR | O_NOCTTY));
    return m;
}

static void expect(int fd, const char *text)
{
    char buf[256];
    size_t have = 0, len = strlen(text);
    struct pollfd p = {fd, POLLIN, 0};

    while (have < len) {
        EQ(poll(&p, 1, 3000), 1);
        have += (size_t)OK(read(fd, buf + have, sizeof(buf) - 1 - have));
    }
    buf[have] = 0;
    STR(buf, text);
}

TEST(canonical_mode)
{
    char buf[64];
    int s, m = open_pair(&s), n;

    CHECK(isatty(s) && isatty(m));
    EQ(write(m, "hel", 3), 3);
    expect(m, "hel");
    OK(ioctl(s, FIONREAD, &n));
    EQ(n, 0);
    EQ(write(m, "p\177lo\n", 5), 5);
    expect(m, "p\b \blo\r\n");
    EQ(read(s, buf, 64), 6);
    CHECK(!memcmp(buf, "hello\n", 6));
    EQ(write(s, "out\n", 4), 4);
    expect(m, "out\r\n");
    EQ(write(m, "kill\025x\n", 7), 7);
    EQ(read(s, buf, 64), 2);
    EQ(write(m, "ab\004", 3), 3);
    EQ(read(s, buf, 64), 2);
    EQ(write(m, "\004", 1), 1);
    EQ(read(s, buf, 64), 0);
    EQ(write(m, "line1\nline2\n", 12), 12);
    EQ(read(s, buf, 64), 6);
    EQ(read(s, buf, 3), 3);
    EQ(read(s, buf, 64), 3);
}

TEST(raw_mode)
{
    struct termios t, old;
    char buf[16];
    int s, m = open_pair(&s);

    OK(tcgetattr(s, &old));
    CHECK(old.c_lflag & ICANON);
    CHECK(old.c_oflag & ONLCR);
    EQ(old.c_cc[VINTR], 3);
    t = old;
    cfmakeraw(&t);
    OK(tcsetattr(s, TCSANOW, &t));
    EQ(write(m, "a\003\n", 3), 3);
    EQ(read(s, buf, 16), 3);
    CHECK(!memcmp(buf, "a\003\n", 3));
    EQ(write(s, "b\n", 2), 2);
    expect(m, "b\n");
    t.c_cc[VMIN] = 0;
    t.c_cc[VTIME] = 1;
    OK(tcsetattr(s, TCSANOW, &t));
    uint64_t begin = now_ms();
    EQ(read(s, buf, 16), 0);
    CHECK(now_ms() - begin >= 90);
    OK(tcsetattr(s, TCSAFLUSH, &old));
    OK(tcflush(s, TCIOFLUSH));
}

TEST(window_size)
{
    struct winsize w = {24, 80, 0, 0}, got;
    int s, m = open_pair(&s);

    OK(ioctl(m, TIOCSWINSZ, &w));
    OK(ioctl(s, TIOCGWINSZ, &got));
    EQ(got.ws_row, 24);
    EQ(got.ws_col, 80);
}

/* A child that leads a session on the slave; runs fn there. */
static pid_t session_on(int s, int m, void (*fn)(int s))
{
    pid_t child = OK(fork());

    if (!child) {
        close(m);
        OK(setsid());
        OK(ioctl(s, TIOCSCTTY, 0));
        fn(s);
        _exit(0);
    }
    return child;
}

static void wait_forever(int s)
{
    CHECK(write(s, "ready\n", 6) == 6);
    for (;;)
        pause();
}

TEST(control_characters_send_signals)
{
    static const struct {
        char c;
        int sig;
    } keys[] = {{3, SIGINT}, {034, SIGQUIT}};
    int status;

    for (int i = 0; i < 2; i++) {
        int s, m = open_pair(&s);
        pid_t child = session_on(s, m, wait_forever);
        expect(m, "ready\r\n");
        EQ(write(m, &keys[i].c, 1), 1);
        EQ(waitpid(child, &status, 0), child);
        KILLED(status, keys[i].sig);
        close(m);
        close(s);
    }
}

static void stops(int s)
{
    pid_t child = OK(fork());
    int status;

    signal(SIGTTOU, SIG_IGN);
    if (!child) {
        OK(setpgid(0, 0));
        for (;;)
            pause();
    }
    setpgid(child, child);
    OK(tcsetpgrp(s, child));
    EQ(tcgetpgrp(s), child);
    CHECK(write(s, "ready\n", 6) == 6);
    EQ(waitpid(child, &status, WUNTRACED), child);
    CHECK(WIFSTOPPED(status));
    EQ(WSTOPSIG(status), SIGTSTP);
    OK(tcsetpgrp(s, getpgrp()));
    kill(child, SIGKILL);
    EQ(waitpid(child, &status, 0), child);
}

TEST(suspend_key)
{
    int s, m = open_pair(&s), status;
    pid_t child = session_on(s, m, stops);

    expect(m, "ready\r\n");
    EQ(write(m, "\032", 1), 1);
    EQ(waitpid(child, &status, 0), child);
    EXITED(status, 0);
}

static void background(int s)
{
    int status;
    char c;
    pid_t child = OK(fork());

    if (!child) {
        OK(setpgid(0, 0));
        read(s, &c, 1);
        _exit(1);
    }
    EQ(waitpid(child, &status, WUNTRACED), child);
    CHECK(WIFSTOPPED(status));
    EQ(WSTOPSIG(status), SIGTTIN);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    child = OK(fork());
    if (!child) {
        OK(setpgid(0, 0));
        tcsetpgrp(s, getpid());
        _exit(1);
    }
    EQ(waitpid(child, &status, WUNTRACED), child);
    CHECK(WIFSTOPPED(status));
    EQ(WSTOPSIG(status), SIGTTOU);
    EQ(tcgetpgrp(s), getpgrp());
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    child = OK(fork());
    if (!child) {
        OK(setpgid(0, 0));
        signal(SIGTTIN, SIG_IGN);
        ERR(EIO, read(s, &c, 1));
        signal(SIGTTOU, SIG_IGN);
        OK(tcsetpgrp(s, getpid()));
        _exit(0);
    }
    EQ(waitpid(child, &status, 0), child);
    EXITED(status, 0);
}

TEST(background_access)
{
    int s, m = open_pair(&s), status;
    pid_t child = session_on(s, m, background);

    EQ(waitpid(child, &status, 0), child);
    EXITED(status, 0);
}

static void resized(int s)
{
    struct winsize w;

    signal(SIGWINCH, on_signal);
    CHECK(write(s, "ready\n", 6) == 6);
    while (!hits)
        sleep_ms(5);
    OK(ioctl(s, TIOCGWINSZ, &w));
    EQ(w.ws_col, 132);
    sleep_ms(50);
    EQ(hits, 1);
}

TEST(resize_signals)
{
    struct winsize w = {50, 132, 0, 0};
    int s, m = open_pair(&s), status;
    pid_t child = session_on(s, m, resized);

    expect(m, "ready\r\n");
    OK(ioctl(m, TIOCSWINSZ, &w));
    OK(ioctl(m, TIOCSWINSZ, &w)); /* no change, no signal */
    EQ(waitpid(child, &status, 0), child);
    EXITED(status, 0);
}

static void hangs_up(int s)
{
    char c;

    signal(SIGHUP, on_signal);
    signal(SIGCONT, SIG_IGN);
    CHECK(write(s, "ready\n", 6) == 6);
    while (!hits)
        sleep_ms(5);
    EQ(read(s, &c, 1), 0);
    ERR(EIO, write(s, &c, 1));
}

TEST(close_of_the_master_hangs_up)
{
    int s, m = open_pair(&s), status;
    pid_t child = session_on(s, m, hangs_up);

    expect(m, "ready\r\n");
    close(s);
    close(m);
    EQ(waitpid(child, &status, 0), child);
    EXITED(status, 0);
}

static void has_tty(int s)
{
    char name[64];
    int fd = OK(open("/dev/tty", O_RDWR));

    EQ(tcgetpgrp(fd), getpgrp());
    EQ(tcgetsid(fd), getsid(0));
    CHECK(!ttyname_r(s, name, sizeof(name)));
    OK(ioctl(fd, TIOCNOTTY));
    ERR(ENXIO, open("/dev/tty", O_RDWR));
}

TEST(controlling_terminal)
{
    int s, m = open_pair(&s), status;
    pid_t child;

    ERR(ENXIO, open("/dev/tty", O_RDWR));
    ERR(ENOTTY, ioctl(s, TIOCGPGRP, &status));
    signal(SIGHUP, SIG_IGN);
    child = session_on(s, m, has_tty);
    EQ(waitpid(child, &status, 0), child);
    EXITED(status, 0);
}

TEST(master_sees_closed_slave)
{
    char c;
    int s, m = open_pair(&s);
    struct pollfd p = {m, POLLIN, 0};

    EQ(write(s, "x", 1), 1);
    close(s);
    EQ(poll(&p, 1, 1000), 1);
    CHECK(p.revents & POLLHUP);
    EQ(read(m, &c, 1), 1);
    ERR(EIO, read(m, &c, 1));
}

TEST(not_a_terminal)
{
    struct termios t;
    int fds[2];

    OK(pipe(fds));
    ERR(ENOTTY, tcgetattr(fds[0], &t));
    ERR(ENOTTY, tcgetattr(OK(open("/dev/null", O_RDWR)), &t));
    ERR(EBADF, tcgetattr(999, &t));
}
