/* SPDX-License-Identifier: Apache-2.0 */
/* The sentry's process, in boot order: parameters, zygote, lock-down, kernel, container, event loop. */
#include "runtime/boot/boot.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gofer/proto/channel.h"
#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "platform/base/log.h"
#include "platform/seccomp/plat_seccomp.h"
#include "runtime/boot/boot_priv.h"
#include "runtime/console.h"
#include "runtime/errtext.h"
#include "runtime/privs.h"
#include "sentry/core/fiber.h"
#include "sentry/fs/gofer/gofer_fs.h"

enum {
    BOOT_POOL_SIZE = 2, /* stub processes kept ready for exec */
    BOOT_GOFER_END_MS = 1000,
};

void boot_end(struct boot *b, int wait_status)
{
    if (b->state == CONTROL_EXITING)
        return;
    b->state = CONTROL_EXITING;
    b->wait_status = wait_status;
    log_debug("the container ends with wait status %#x", (unsigned)wait_status);
    evloop_stop();
}

/* Tells the gofer how the container ended; it ends likewise. Waits until it has: another of its threads could
 * otherwise see this process gone first, and take that for the end. Not for long, for it may be frozen. */
static void boot_tell_gofer(const struct boot *b)
{
    struct channel ch = {.sock = b->exit_sock, .shm = NULL};
    /* It would end before it has done what it was sent by the other way. */
    gofer_fs_finish_all(host_monotonic_ns() + BOOT_GOFER_END_MS * 1000000ULL);
    const struct wire_exit message = {.wait_status = b->wait_status};
    int r = channel_send_request(&ch, 0, WIRE_OP_EXIT, &message, sizeof(message));
    struct pollfd p = {.fd = b->exit_sock};
    if (r == 0)
        r = (int)host_ret(poll(&p, 1, BOOT_GOFER_END_MS));
    if (r < 0)
        log_debug("tell the gofer of the end: %s", errtext(r));
}

/* --- before the lock-down --- */

/* What the creator has promised. A sentry with more rights than it should have must not run. */
static int boot_check_confinement(struct errmsg *e)
{
    struct statvfs root;
    int r = privs_check_none(e);
    if (r < 0)
        return r;
    if (geteuid() != BOOT_UID_INSIDE || getuid() != BOOT_UID_INSIDE || getegid() != BOOT_UID_INSIDE)
        return errmsg_set(e, -EPERM, "the sentry runs as user %u", geteuid());
    if (getpid() != 1)
        return errmsg_set(e, -EPERM, "the sentry has no pid namespace of its own");
    if (statvfs("/", &root) < 0 || !(root.f_flag & ST_RDONLY))
        return errmsg_set(e, -EPERM, "the sentry's root is not read-only");
    return 0;
}

struct boot_plat_watch {
    struct evloop_watch watch;
    void (*fn)(void *arg);
    void *arg;
};

static void boot_plat_ready(void *arg, uint32_t epoll_events)
{
    struct boot_plat_watch *w = arg;
    w->fn(w->arg);
}

/* The platform may not include the sentry's event loop: this is its way to it. */
static void *boot_watch(int fd, void (*fn)(void *arg), void *arg)
{
    struct boot_plat_watch *w = NEW(struct boot_plat_watch);
    if (!w)
        return NULL;
    w->fn = fn;
    w->arg = arg;
    if (evloop_watch(&w->watch, fd, EPOLLIN, boot_plat_ready, w) < 0) {
        mem_free(w);
        return NULL;
    }
    return w;
}

static void boot_unwatch(void *token)
{
    struct boot_plat_watch *w = token;
    if (!w)
        return;
    evloop_unwatch(&w->watch);
    mem_free(w);
}

static void *boot_self(void)
{
    return fiber_current();
}

static void boot_ready(void *fiber)
{
    fiber_ready(fiber);
}

/* Moves this process into other cgroups. The zygote is born where its maker is, which is cheaper than
 * moving it: the host waits for nobody when a single thread moves itself. */
static int boot_pass_doors(int first, int len, struct errmsg *e)
{
    for (int i = 0; i < len; i++)
        if (write(first + i, "0", 1) != 1)
            return errmsg_set(e, -errno, "change the cgroup of the zygote's maker: %s", errtext(errno));
    return 0;
}

/* Makes the zygote and has the creator put it into the container's cgroup, before any guest exists. */
static int boot_make_platform(struct boot *b, struct errmsg *e)
{
    const struct plat_seccomp_config config = {
        .watch = boot_watch,
        .unwatch = boot_unwatch,
        .self = boot_self,
        .park = fiber_park,
        .ready = boot_ready,
        .spawn = fiber_spawn,
        .offload = hostio_run,
        .idle = evloop_idle,
        .pool_size = BOOT_POOL_SIZE,
        .proc_fd = BOOT_FD_PROC,
    };
    int doors = BOOT_FD_PRESERVED + (int)b->params.preserved_len, len = (int)b->params.doors_len;
    int r = boot_pass_doors(doors, len, e);
    if (r == 0)
        r = plat_seccomp_new(&config, e, &b->platform);
    if (r == 0)
        r = boot_pass_doors(doors + len, len, e);
    for (int i = 0; i < 2 * len; i++)
        close(doors + i);
    if (r < 0)
        return r;
    CLEANUP_CLOSE int pidfd =
        (int)host_ret(syscall(SYS_pidfd_open, plat_seccomp_zygote_pid(b->platform), 0));
    if (pidfd < 0)
        return errmsg_set(e, pidfd, "pidfd of the zygote: %s", errtext(pidfd));
    struct boot_message m;
    r = boot_send(BOOT_FD_SOCK, BOOT_ZYGOTE, len ? 1 : 0, NULL, pidfd);
    if (r == 0)
        r = boot_recv(BOOT_FD_SOCK, &m, NULL);
    if (r < 0 || m.type != BOOT_ZYGOTE_OK)
        return errmsg_set(e, r < 0 ? r : -EPROTO, "the creating command is gone");
    return 0;
}

static int boot_open_descriptors(struct boot *b, struct errmsg *e)
{
    b->exit_sock = fcntl(BOOT_FD_GOFER_SOCK, F_DUPFD_CLOEXEC, BOOT_FD_PRESERVED);
    if (b->exit_sock < 0)
        return errmsg_set(e, -errno, "copy the gofer's socket: %s", errtext(errno));
    if (!b->params.terminal)
        return 0;
    b->console_fd = fcntl(BOOT_FD_CONSOLE, F_DUPFD_CLOEXEC, BOOT_FD_PRESERVED);
    sigset_t winch;
    sigemptyset(&winch);
    sigaddset(&winch, SIGWINCH);
    /* Blocked after the zygote was made, so that guest processes know nothing of it. */
    sigprocmask(SIG_BLOCK, &winch, NULL);
    b->winch_fd = signalfd(-1, &winch, SFD_CLOEXEC | SFD_NONBLOCK);
    if (b->console_fd < 0 || b->winch_fd < 0)
        return errmsg_set(e, -errno, "watch the console's size: %s", errtext(errno));
    return 0;
}

static int boot_lock_down(const struct boot *b, struct errmsg *e)
{
    signal(SIGPIPE, SIG_IGN);
    /* Guest processes whose host parent is gone become this process's children: nobody waits for them. */
    signal(SIGCHLD, SIG_IGN);
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return errmsg_set(e, -errno, "make the sentry undumpable: %s", errtext(errno));
    return host_rules_install(b->params.log_level == LOG_LEVEL_DEBUG, e);
}

/* --- on the event loop --- */

static void boot_on_sock(void *arg, uint32_t epoll_events)
{
    struct boot *b = arg;
    struct boot_message m;
    int r = boot_recv(BOOT_FD_SOCK, &m, NULL);
    if (r == 0 && m.type == BOOT_COMMIT && !b->committed) {
        b->committed = true;
        if (!b->params.foreground && prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0) < 0)
            log_warn("outlive the creator: %s", errtext(errno));
        r = boot_send(BOOT_FD_SOCK, BOOT_COMMITTED, 0, NULL, -1);
        if (r == 0)
            return;
    }
    evloop_unwatch(&b->sock_watch);
    close(BOOT_FD_SOCK);
    /* The creator is gone, or talks nonsense. */
    if (!b->committed || b->params.foreground)
        boot_end(b, SIGKILL);
}

static void boot_on_gofer_gone(void *arg, uint32_t epoll_events)
{
    struct boot *b = arg;
    log_debug("the gofer is gone");
    evloop_unwatch(&b->gofer_watch);
    boot_end(b, SIGKILL);
}

static void boot_on_winch(void *arg, uint32_t epoll_events)
{
    struct boot *b = arg;
    struct signalfd_siginfo info;
    uint16_t rows, cols;
    while (read(b->winch_fd, &info, sizeof(info)) == sizeof(info))
        ;
    if (b->container && console_get_size(b->console_fd, &rows, &cols) == 0)
        sentry_container_resize(b->container, rows, cols);
}

static int boot_watch_all(struct boot *b, struct errmsg *e)
{
    int r = evloop_watch(&b->sock_watch, BOOT_FD_SOCK, EPOLLIN, boot_on_sock, b);
    /* No events asked for: a hang-up is always reported, and what arrives is the gofer client's. */
    if (r == 0)
        r = evloop_watch(&b->gofer_watch, b->exit_sock, 0, boot_on_gofer_gone, b);
    if (r == 0 && b->winch_fd >= 0)
        r = evloop_watch(&b->winch_watch, b->winch_fd, EPOLLIN, boot_on_winch, b);
    if (r == 0)
        r = control_server_start(b);
    return r < 0 ? errmsg_set(e, r, "watch the sentry's sockets: %s", errtext(r)) : 0;
}

/* On a fiber: the container's files come from the gofer. */
static void boot_create_container(void *arg)
{
    struct boot *b = arg;
    struct errmsg e = {.text = ""};
    struct boot_config *config = NULL;
    int r = boot_config_make(b, &config, &e);
    if (r == 0) {
        r = sentry_container_create(b->sentry, &config->config, &e, &b->container);
        b->platform = NULL;
    }
    boot_config_free(config);
    if (r == 0)
        r = boot_send(BOOT_FD_SOCK, BOOT_READY, 0, NULL, -1);
    else if (boot_send(BOOT_FD_SOCK, BOOT_ERROR, r, e.text[0] ? e.text : errtext(r), -1) < 0)
        log_debug("nobody to tell of the failure: %s", e.text);
    if (r < 0)
        boot_end(b, SIGKILL);
}

/* In the place of the parameters, which are read. */
static int boot_open_self(struct errmsg *e)
{
    CLEANUP_CLOSE int self = openat(BOOT_FD_PROC, "self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (self < 0 || dup3(self, BOOT_FD_SELF, O_CLOEXEC) < 0)
        return errmsg_set(e, -errno, "open the sentry's own descriptors: %s", errtext(errno));
    host_set_fd_dir(BOOT_FD_SELF);
    return 0;
}

static int boot_setup(struct boot *b, struct errmsg *e)
{
    const struct sentry_options options = {.strace = b->params.strace, .proc_fd = BOOT_FD_PROC};
    int r = boot_check_confinement(e);
    if (r == 0)
        r = boot_open_self(e);
    if (r == 0)
        r = oci_spec_parse(b->params.config, b->params.config_size, &b->spec, e);
    if (r < 0)
        return r;
    r = evloop_init();
    if (r < 0)
        return errmsg_set(e, r, "make the event loop: %s", errtext(r));
    r = boot_make_platform(b, e);
    if (r == 0)
        r = boot_open_descriptors(b, e);
    if (r == 0)
        r = boot_seccomp_make(b, e);
    if (r == 0)
        r = boot_lock_down(b, e);
    if (r < 0)
        return r;
    r = sentry_new(&options, &b->sentry);
    if (r < 0)
        return errmsg_set(e, r, "make the kernel: %s", errtext(r));
    r = boot_watch_all(b, e);
    if (r == 0 && fiber_spawn(boot_create_container, b) < 0)
        r = errmsg_set(e, -ENOMEM, "out of memory");
    return r;
}

int boot_main(void)
{
    static struct boot boot = {.exit_sock = -1, .console_fd = -1, .winch_fd = -1};
    struct boot *b = &boot;
    struct errmsg e = {.text = ""};
    prctl(PR_SET_NAME, "cloister-sentry", 0, 0, 0);
    int r = boot_params_read(BOOT_FD_PARAMS, &b->params, &b->params_memory);
    if (r < 0) {
        fprintf(stderr, "cloister boot is started by cloister create and run only\n");
        return EXIT_FAILURE;
    }
    log_setup(b->params.have_log ? BOOT_FD_LOG : -1,
              b->params.log_json ? LOG_FORMAT_JSON : LOG_FORMAT_TEXT, (enum log_level)b->params.log_level);
    log_set_tag("sentry");
#ifdef __SANITIZE_ADDRESS__
    if (b->params.have_log)
        dup2(BOOT_FD_LOG, STDERR_FILENO); /* where reports go */
#endif
    r = boot_setup(b, &e);
    if (r < 0) {
        int sent = boot_send(BOOT_FD_SOCK, BOOT_ERROR, r, e.text, -1);
        return sent < 0 ? 2 : EXIT_FAILURE;
    }
    evloop_run();
    boot_tell_gofer(b);
    /* Pid 1 of the guests' pid namespace ends, and the host kernel ends the rest. */
    syscall(SYS_exit_group, EXIT_SUCCESS);
    return EXIT_SUCCESS;
}
