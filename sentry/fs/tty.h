/* SPDX-License-Identifier: Apache-2.0 */
/* Terminals: the object behind a pty slave or a container's console, its files and its job control. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/ioctl.h>

#include "platform/base/compiler.h"
#include "platform/base/ref.h"
#include "sentry/core/ctx.h"
#include "sentry/core/waitq.h"
#include "sentry/fs/tty_ldisc.h"
#include "sentry/fs/tty_ring.h"

struct file;
struct inode;
struct pgrp;
struct session;
struct superblock;
struct task;
struct tgroup;
struct tty;

/* The line below a terminal: a pty master or a host descriptor. None parks. NULL: nothing to do, 0. */
struct tty_line_ops {
    size_t (*room)(struct tty *tty);                            /* output bytes taken now */
    void (*put)(struct tty *tty, const char *p, size_t size);   /* within room */
    void (*kick)(struct tty *tty);                              /* output was put: get it moving */
    void (*flush_output)(struct tty *tty);
    size_t (*output_pending)(struct tty *tty);                  /* bytes still on their way, for drains */
    void (*input_room)(struct tty *tty);                        /* more input can be taken again */
    void (*status)(struct tty *tty, uint8_t set, uint8_t clear); /* TIOCPKT_* bits for a packet-mode reader */
    void (*winsize_changed)(struct tty *tty);
    void (*winsize_refresh)(struct tty *tty);                   /* before the size is told to a program */
    void (*opened)(struct tty *tty);
    void (*last_close)(struct tty *tty);                        /* no file is open any more */
    void (*free)(struct tty *tty);                              /* last reference; frees tty */
};

struct tty {
    struct ref ref;
    const struct tty_line_ops *line; /* (i) */
    struct ldisc ldisc;
    struct winsize winsize;        /* (k) */
    struct waitq read_wait, write_wait; /* (k) of this side's readers and writers */
    struct tty_ring input;         /* (k) arrived, not yet taken by the discipline */
    struct session *session;       /* (k) whose controlling terminal it is; referenced */
    struct pgrp *pgrp;             /* (k) foreground group; referenced */
    uint32_t hangups;              /* (k) files opened before the last one are dead */
    unsigned open_files;           /* (k) live files of this side */
    bool exclusive;                /* (k) TIOCEXCL */
    bool line_gone;                /* (k) the other side is closed for good */
    bool writing;                  /* (k) one writer at a time */
    unsigned index;                /* (i) N of /dev/pts/N */
    uint64_t rdev;                 /* (i) */
};

/* file->priv of every terminal file. */
struct tty_file {
    struct tty *tty; /* referenced */
    uint32_t hangups;
    bool master;
};

void tty_init(struct tty *tty, const struct tty_line_ops *line);
struct tty *tty_ref(struct tty *tty);
void tty_unref(struct tty *tty); /* NULL is fine */

/* Opens the terminal side (not a pty master): sets file's ops, and makes it the controlling terminal where Linux does.
 * Return: 0, −EIO (line gone), −EBUSY (exclusive), −ENOMEM. */
MUST_CHECK int tty_open(struct ctx *ctx, struct tty *tty, struct file *file);
/* Return: the terminal behind a file (either side of a pty), borrowed; NULL when it is no terminal. */
struct tty *tty_of_file(const struct file *f);
/* Input from the line. Return: bytes taken. */
MUST_CHECK size_t tty_input(struct tty *tty, const uint8_t *p, size_t size);
/* Bytes that tty_input would take at least. */
size_t tty_input_room(const struct tty *tty);
/* Output may go on: sends waiting echo, wakes writers. */
void tty_output_room(struct tty *tty);
/* Sets the size; SIGWINCH to the foreground group when it differs from the old one. */
void tty_set_winsize(struct tty *tty, const struct winsize *ws);
/* Every open file of this side is dead from now on; the session loses it: SIGHUP and SIGCONT to its leader. */
void tty_hangup(struct tty *tty);

/* ---- job control (tty_jobctl.c) ---- */

/* The controlling terminal of t's process: borrowed, NULL when it has none. */
struct tty *tty_current(const struct task *t);
/* What a process outside the foreground group gets when it reads (SIGTTIN) or changes (SIGTTOU) its terminal.
 * Return: 0 go on, −EIO, −ERESTARTSYS (its group got sig). t may be NULL. */
MUST_CHECK int tty_check_change(struct task *t, struct tty *tty, int sig);
/* Makes tty the controlling terminal of leader's session, with its group in the foreground. No checks. */
void tty_make_controlling(struct tty *tty, struct tgroup *leader);
/* Takes tty away from its session (all processes of it). */
void tty_drop_session(struct tty *tty);
void tty_signal_foreground(struct tty *tty, int signo);
/* For /proc/PID/stat: device number and foreground group of the controlling terminal as seen from ns. */
struct pidns;
uint32_t tty_proc_numbers(const struct tgroup *g, const struct pidns *ns, int *ret_tpgid);
/* TIOCSCTTY, TIOCNOTTY, TIOCGPGRP, TIOCSPGRP, TIOCGSID. f is the file the call came through. Return: 0, −errno, or
 * −TTY_NOT_MINE when cmd is none of them. */
enum { TTY_NOT_MINE = 515 };
MUST_CHECK int64_t tty_jobctl_ioctl(struct ctx *ctx, struct file *f, uint32_t cmd, uint64_t arg);

/* ---- other parts of this side ---- */
MUST_CHECK int64_t tty_ioctl(struct ctx *ctx, struct file *f, uint32_t cmd, uint64_t arg);
/* Opens of /dev/tty. */
MUST_CHECK int tty_current_open(struct ctx *ctx, struct inode *inode, struct file *file);
/* Registers /dev/tty, /dev/console and the numbers of pty slaves. */
void tty_register(void);
