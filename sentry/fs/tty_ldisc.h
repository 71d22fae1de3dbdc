/* SPDX-License-Identifier: Apache-2.0 */
/* The line discipline of terminals: editing, echo, signals and flow control between a line and its readers and
 * writers. Knows nothing of files and tasks. */
#pragma once

#include <asm/termbits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "platform/base/compiler.h"

enum { LDISC_SIZE = 4096, LDISC_ECHO_SIZE = 4096 };

struct ldisc;

/* What the line below offers. None may call back into the discipline except through the functions named. */
struct ldisc_ops {
    /* Bytes of output that the line takes now. Asked only while output is not stopped. */
    size_t (*room)(struct ldisc *l);
    /* Takes output; size is within the last room. */
    void (*put)(struct ldisc *l, const char *p, size_t size);
    /* A special character asks for SIGINT, SIGQUIT or SIGTSTP to the foreground group. */
    void (*signal)(struct ldisc *l, int signo);
    void (*flush_output)(struct ldisc *l);  /* drop output that has not left */
    void (*input_flushed)(struct ldisc *l); /* typed-ahead input was dropped */
    void (*flow)(struct ldisc *l, bool stop); /* output was stopped / may go on; may call ldisc_flush_echo */
    void (*readable)(struct ldisc *l);      /* input_available may have become true */
};

struct ldisc {
    const struct ldisc_ops *ops; /* (i) */
    struct ktermios t;           /* (k) change with ldisc_set_termios */
    uint32_t head, tail;         /* (k) free-running positions in buf */
    uint32_t canon_head;         /* (k) end of the last complete line */
    uint32_t echo_head, echo_tail; /* (k) free-running */
    uint32_t column, canon_column; /* (k) of the output cursor; where the edited line started */
    bool literal_next, erasing, push; /* (k) */
    bool stopped;                /* (k) output is held (STOP character or TCOOFF) */
    bool tco_stopped;            /* (k) by TCOOFF: characters do not start it again */
    uint8_t buf[LDISC_SIZE];
    uint64_t line_end[LDISC_SIZE / 64]; /* (k) marks on bytes that end a line */
    uint16_t echo[LDISC_ECHO_SIZE];
};

/* The settings a new terminal starts with. */
void ldisc_default_termios(struct ktermios *t);
/* Sets up a zeroed l with default settings. */
void ldisc_init(struct ldisc *l, const struct ldisc_ops *ops);
/* Input from the line. Return: bytes consumed; fewer than size when the buffer is full. */
MUST_CHECK size_t ldisc_receive(struct ldisc *l, const uint8_t *p, size_t size);
/* Output from a program, post-processed as the settings say. Return: bytes consumed; fewer when there is no room. */
MUST_CHECK size_t ldisc_write(struct ldisc *l, const uint8_t *p, size_t size);
/* Sends echo that had to wait. Call when output can go on. */
void ldisc_flush_echo(struct ldisc *l);
/* Whether a reader would get something. for_poll: by the rules of poll (VMIN counts). */
bool ldisc_input_available(const struct ldisc *l, bool for_poll);
/* Takes up to size (> 0) bytes: one line at most in canonical mode. ret_line_done: the end of a line (or end of file) was
 * reached, so the read ends; an end-of-file mark right behind a full buffer is taken with it. Return: bytes; 0 with line_done is the end of file. */
MUST_CHECK size_t ldisc_read(struct ldisc *l, uint8_t *dst, size_t size, bool *ret_line_done);
/* Return: bytes a read could get now (TIOCINQ). */
size_t ldisc_inq(const struct ldisc *l);
void ldisc_set_termios(struct ldisc *l, const struct ktermios *t);
void ldisc_flush_input(struct ldisc *l);
void ldisc_flush_pending_echo(struct ldisc *l);
/* TCOOFF / TCOON and the like. */
void ldisc_stop(struct ldisc *l, bool by_call);
void ldisc_start(struct ldisc *l, bool by_call);
static inline bool ldisc_canonical(const struct ldisc *l)
{
    return (l->t.c_lflag & (ICANON | EXTPROC)) == ICANON;
}
