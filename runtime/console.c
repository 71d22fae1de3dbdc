/* SPDX-License-Identifier: Apache-2.0 */
/* Host ptys and terminals. */
#include "runtime/console.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "runtime/errtext.h"

int console_new(uint16_t rows, uint16_t cols, struct console *ret_console, struct errmsg *e)
{
    CLEANUP_CLOSE int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (master < 0)
        return errmsg_set(e, -errno, "open /dev/ptmx: %s", errtext(errno));
    int unlock = 0;
    if (ioctl(master, TIOCSPTLCK, &unlock) < 0)
        return errmsg_set(e, -errno, "unlock the pty: %s", errtext(errno));
    CLEANUP_CLOSE int slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (slave < 0)
        return errmsg_set(e, -errno, "open the pty's slave: %s", errtext(errno));
    struct termios t;
    if (tcgetattr(slave, &t) < 0)
        return errmsg_set(e, -errno, "read the pty's settings: %s", errtext(errno));
    cfmakeraw(&t);
    if (tcsetattr(slave, TCSANOW, &t) < 0)
        return errmsg_set(e, -errno, "make the pty raw: %s", errtext(errno));
    if (rows || cols) {
        int r = console_set_size(master, rows, cols);
        if (r < 0)
            return errmsg_set(e, r, "set the console's size: %s", errtext(r));
    }
    ret_console->master = TAKE_FD(master);
    ret_console->slave = TAKE_FD(slave);
    return 0;
}

void console_close(struct console *c)
{
    host_close(c->master);
    host_close(c->slave);
    c->master = c->slave = -1;
}

/* Connects to a socket whose path may be longer than an address holds. */
static int console_connect(const char *path)
{
    CLEANUP_CLOSE int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (sock < 0)
        return -errno;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    CLEANUP_CLOSE int dir = -1;
    if (strlen(path) < sizeof(address.sun_path)) {
        strcpy(address.sun_path, path);
    } else {
        CLEANUP_FREE char *dir_path = mem_strdup(path);
        CLEANUP_FREE char *base_path = mem_strdup(path);
        if (!dir_path || !base_path)
            return -ENOMEM;
        dir = open(dirname(dir_path), O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (dir < 0)
            return -errno;
        int n = snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s", dir,
                         basename(base_path));
        if (n >= (int)sizeof(address.sun_path))
            return -ENAMETOOLONG;
    }
    int r;
    do
        r = (int)host_ret(connect(sock, (struct sockaddr *)&address, sizeof(address)));
    while (r == -EINTR);
    return r < 0 ? r : TAKE_FD(sock);
}

int console_send(const struct console *c, const char *socket_path, struct errmsg *e)
{
    static const char name[] = "/dev/ptmx"; /* receivers take it for the terminal's name */
    CLEANUP_CLOSE int sock = console_connect(socket_path);
    if (sock < 0)
        return errmsg_set(e, sock, "dial unix %s: connect: %s", socket_path, errtext(sock));
    ssize_t n = host_send_fds(sock, name, sizeof(name) - 1, &c->master, 1);
    if (n < 0)
        return errmsg_set(e, (int)n, "send the console to %s: %s", socket_path, errtext((int)n));
    return 0;
}

int console_host(struct errmsg *e)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (!isatty(fd))
            continue;
        int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        if (copy >= 0)
            return copy;
    }
    int fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
    return fd < 0 ? errmsg_set(e, -errno, "open /dev/tty: %s", errtext(errno)) : fd;
}

int console_get_size(int fd, uint16_t *ret_rows, uint16_t *ret_cols)
{
    struct winsize w;
    if (ioctl(fd, TIOCGWINSZ, &w) < 0)
        return -errno;
    *ret_rows = w.ws_row;
    *ret_cols = w.ws_col;
    return 0;
}

int console_set_size(int fd, uint16_t rows, uint16_t cols)
{
    const struct winsize w = {.ws_row = rows, .ws_col = cols};
    return (int)host_ret(ioctl(fd, TIOCSWINSZ, &w));
}

int console_make_raw(int fd, struct termios *ret_old, struct errmsg *e)
{
    struct termios t;
    if (tcgetattr(fd, &t) < 0)
        return errmsg_set(e, -errno, "read the terminal's settings: %s", errtext(errno));
    *ret_old = t;
    cfmakeraw(&t);
    if (tcsetattr(fd, TCSANOW, &t) < 0)
        return errmsg_set(e, -errno, "make the terminal raw: %s", errtext(errno));
    return 0;
}

void console_restore(int fd, const struct termios *old)
{
    /* A background process would be stopped for this; it must put things right nevertheless. */
    sigset_t block, saved;
    sigemptyset(&block);
    sigaddset(&block, SIGTTOU);
    sigprocmask(SIG_BLOCK, &block, &saved);
    tcsetattr(fd, TCSADRAIN, old);
    sigprocmask(SIG_SETMASK, &saved, NULL);
}
