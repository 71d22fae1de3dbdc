/* SPDX-License-Identifier: Apache-2.0 */
/* The line discipline against tables of what is typed, shown and read. */
#include "sentry/fs/tty_ldisc.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

struct line {
    struct ldisc l;
    char out[16384];
    size_t out_size, room;
    int signals[8], signals_len;
    int input_flushes, output_flushes, stops, starts;
};

static struct line *to_line(struct ldisc *l)
{
    return container_of(l, struct line, l);
}

static size_t line_room(struct ldisc *l)
{
    return to_line(l)->room - to_line(l)->out_size;
}

static void line_put(struct ldisc *l, const char *p, size_t size)
{
    struct line *line = to_line(l);

    cr_assert_leq(size, line->room - line->out_size);
    memcpy(line->out + line->out_size, p, size);
    line->out_size += size;
}

static void line_signal(struct ldisc *l, int signo)
{
    struct line *line = to_line(l);

    line->signals[line->signals_len++] = signo;
}

static void line_flush_output(struct ldisc *l)
{
    to_line(l)->output_flushes++;
}

static void line_input_flushed(struct ldisc *l)
{
    to_line(l)->input_flushes++;
}

static void line_flow(struct ldisc *l, bool stop)
{
    struct line *line = to_line(l);

    if (stop)
        line->stops++;
    else
        line->starts++;
}

static void line_readable(struct ldisc *l)
{
}

static const struct ldisc_ops line_ops = {line_room, line_put, line_signal, line_flush_output,
                                          line_input_flushed, line_flow, line_readable};

static struct line line;

static void start(void)
{
    memset(&line, 0, sizeof(line));
    line.room = sizeof(line.out);
    ldisc_init(&line.l, &line_ops);
}

static void type(const char *s, size_t size)
{
    cr_assert_eq(ldisc_receive(&line.l, (const uint8_t *)s, size), size);
}

static void shown_is(const char *name, const char *s, size_t size)
{
    cr_assert_eq(line.out_size, size, "%s: shown %zu bytes: %.*s", name, line.out_size,
                 (int)line.out_size, line.out);
    cr_assert_arr_eq(line.out, s, size, "%s: shown %.*s", name, (int)line.out_size, line.out);
    line.out_size = 0;
}

struct row {
    const char *name, *typed, *shown, *read; /* read: lines are separated by |, an end of file is $ */
    uint32_t lflag_clear, lflag_set, iflag_clear, iflag_set;
};

static const struct row rows[] = {
    {"line", "abc\n", "abc\r\n", "abc\n|", 0, 0, 0, 0},
    {"cr", "abc\r", "abc\r\n", "abc\n|", 0, 0, 0, 0},
    {"no icrnl", "a\r\n", "a^M\r\n", "a\r\n|", 0, 0, ICRNL, 0},
    {"igncr", "a\r\n", "a\r\n", "a\n|", 0, 0, 0, IGNCR},
    {"inlcr", "a\n\004", "a^M", "a\r|", 0, 0, ICRNL, INLCR},
    {"erase", "abx\177c\n", "abx\b \bc\r\n", "abc\n|", 0, 0, 0, 0},
    {"erase nothing", "\177\n", "\r\n", "\n|", 0, 0, 0, 0},
    {"erase control", "\001\177\n", "^A\b \b\b \b\r\n", "\n|", 0, 0, 0, 0},
    {"erase without echoe", "ab\177\n", "ab^?\r\n", "a\n|", ECHOE, 0, 0, 0},
    {"echoprt", "ab\177\177c\n", "ab\\ba/c\r\n", "c\n|", 0, ECHOPRT, 0, 0},
    {"kill", "abc\025d\n", "abc\b \b\b \b\b \bd\r\n", "d\n|", 0, 0, 0, 0},
    {"kill echok", "abc\025d\n", "abc^U\r\nd\r\n", "d\n|", ECHOKE, 0, 0, 0},
    {"kill plain", "abc\025d\n", "abc^Ud\r\n", "d\n|", ECHOKE | ECHOK, 0, 0, 0},
    {"word", "ab cd\027x\n", "ab cd\b \b\b \bx\r\n", "ab x\n|", 0, 0, 0, 0},
    {"word spaces", "ab cd  \027\n", "ab cd  \b \b\b \b\b \b\b \b\r\n", "ab \n|", 0, 0, 0, 0},
    {"word off", "a\027\n", "a^W\r\n", "a\027\n|", IEXTEN, 0, 0, 0},
    {"literal", "a\026\003b\n", "a^\b^Cb\r\n", "a\003b\n|", 0, 0, 0, 0},
    {"literal newline", "\026\nb\n", "^\b^Jb\r\n", "\nb\n|", 0, 0, 0, 0},
    {"reprint", "ab\022c\n", "ab^R\r\nabc\r\n", "abc\n|", 0, 0, 0, 0},
    {"tab erase", "a\t\177b\n", "a\t\b\b\b\b\b\b\bb\r\n", "ab\n|", 0, 0, 0, 0},
    {"utf-8 erase", "\303\244\177b\n", "\303\244\b \bb\r\n", "b\n|", 0, 0, 0, IUTF8},
    {"bytes erase", "\303\244\177\177b\n", "\303\244\b \b\b \bb\r\n", "b\n|", 0, 0, 0, 0},
    {"eof empty", "\004", "", "$|", 0, 0, 0, 0},
    {"eof pushes", "ab\004c\n", "abc\r\n", "ab|c\n|", 0, 0, 0, 0},
    {"two lines", "a\nb\n", "a\r\nb\r\n", "a\n|b\n|", 0, 0, 0, 0},
    {"no echo", "abc\177\n", "", "ab\n|", ECHO, 0, 0, 0},
    {"echonl", "abc\n", "\r\n", "abc\n|", ECHO, ECHONL, 0, 0},
    {"no echoctl", "\001b\n", "\001b\r\n", "\001b\n|", ECHOCTL, 0, 0, 0},
    {"istrip", "\341\n", "a\r\n", "a\n|", 0, 0, 0, ISTRIP},
    {"iuclc", "AbC\n", "abc\r\n", "abc\n|", 0, 0, 0, IUCLC},
    {"parmrk", "\377\n", "\377\r\n", "\377\377\n|", 0, 0, 0, PARMRK},
    {"isig off", "\003\n", "^C\r\n", "\003\n|", ISIG, 0, 0, 0},
    {"ixon off", "\023\n", "^S\r\n", "\023\n|", 0, 0, IXON, 0},
};

static void collect(char *dst)
{
    bool done;

    dst[0] = 0;
    while (ldisc_input_available(&line.l, false)) {
        uint8_t buf[128];
        size_t n = ldisc_read(&line.l, buf, sizeof(buf), &done);

        strncat(dst, (char *)buf, n);
        strcat(dst, n ? "|" : "$|");
    }
}

Test(tty_ldisc, canonical)
{
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *r = &rows[i];
        char got[512];

        start();
        line.l.t.c_lflag = (line.l.t.c_lflag & ~r->lflag_clear) | r->lflag_set;
        line.l.t.c_iflag = (line.l.t.c_iflag & ~r->iflag_clear) | r->iflag_set;
        type(r->typed, strlen(r->typed));
        shown_is(r->name, r->shown, strlen(r->shown));
        collect(got);
        cr_assert_str_eq(got, r->read, "%s: read %s", r->name, got);
    }
}

Test(tty_ldisc, signals_flush_unless_told_not_to)
{
    bool done;
    uint8_t buf[16];

    start();
    type("ab\003", 3);
    cr_assert_eq(line.signals_len, 1);
    cr_assert_eq(line.signals[0], SIGINT);
    cr_assert_eq(line.input_flushes, 1);
    cr_assert_eq(line.output_flushes, 1);
    type("\034\032", 2);
    cr_assert_eq(line.signals[1], SIGQUIT);
    cr_assert_eq(line.signals[2], SIGTSTP);
    type("c\n", 2);
    cr_assert_eq(ldisc_read(&line.l, buf, sizeof(buf), &done), 2);
    cr_assert_eq(buf[0], 'c');

    start();
    line.l.t.c_lflag |= NOFLSH;
    type("ab\003\n", 4);
    cr_assert_eq(line.input_flushes, 0);
    cr_assert_eq(ldisc_read(&line.l, buf, sizeof(buf), &done), 3);
    shown_is("noflsh", "ab^C\r\n", 6);
}

Test(tty_ldisc, short_reads_keep_the_line)
{
    uint8_t buf[4];
    bool done;

    start();
    type("abcdef\n", 7);
    cr_assert_eq(ldisc_read(&line.l, buf, 4, &done), 4);
    cr_assert(!done);
    cr_assert_eq(ldisc_read(&line.l, buf, 4, &done), 3);
    cr_assert(done);

    /* The mark right after a full buffer does not give a second, empty read. */
    type("abcd\004", 5);
    cr_assert_eq(ldisc_read(&line.l, buf, 4, &done), 4);
    cr_assert(done);
    cr_assert(!ldisc_input_available(&line.l, false));
}

Test(tty_ldisc, a_line_too_long_still_ends)
{
    static uint8_t big[LDISC_SIZE];
    bool done;

    start();
    line.l.t.c_lflag &= ~(uint32_t)ECHO;
    for (unsigned i = 0; i < 5000; i++)
        type("x", 1);
    cr_assert(!ldisc_input_available(&line.l, false));
    type("\n", 1);
    cr_assert(ldisc_input_available(&line.l, false));
    cr_assert_eq(ldisc_inq(&line.l), LDISC_SIZE);
    cr_assert_eq(ldisc_read(&line.l, big, sizeof(big), &done), LDISC_SIZE);
    cr_assert(done);
    cr_assert_eq(big[LDISC_SIZE - 1], '\n');
}

Test(tty_ldisc, raw_mode_and_back)
{
    struct ktermios t;
    uint8_t buf[16];
    bool done;

    start();
    type("ab", 2);
    cr_assert(!ldisc_input_available(&line.l, false));
    t = line.l.t;
    t.c_lflag &= ~(uint32_t)(ICANON | ECHO | ISIG);
    t.c_cc[VMIN] = 3;
    ldisc_set_termios(&line.l, &t);
    cr_assert(ldisc_input_available(&line.l, false));
    cr_assert(!ldisc_input_available(&line.l, true)); /* poll waits for VMIN bytes */
    type("\003", 1);
    cr_assert(ldisc_input_available(&line.l, true));
    cr_assert_eq(ldisc_inq(&line.l), 3);
    cr_assert_eq(ldisc_read(&line.l, buf, 2, &done), 2);
    /* What is left becomes a line when editing starts. */
    t.c_lflag |= ICANON;
    ldisc_set_termios(&line.l, &t);
    cr_assert(ldisc_input_available(&line.l, false));
    cr_assert_eq(ldisc_read(&line.l, buf, 16, &done), 1);
    cr_assert_eq(buf[0], 3);
    cr_assert_eq(line.signals_len, 0);
}

struct out_row {
    const char *name, *written, *shown;
    uint32_t oflag;
};

static const struct out_row out_rows[] = {
    {"onlcr", "a\nb", "a\r\nb", OPOST | ONLCR},
    {"off", "a\nb\t", "a\nb\t", ONLCR | XTABS},
    {"ocrnl", "a\rb", "a\nb", OPOST | OCRNL},
    {"onocr", "\ra\rb", "a\rb", OPOST | ONOCR},
    {"xtabs", "ab\tc\t", "ab      c       ", OPOST | XTABS},
    {"xtabs after newline", "abc\n\tx", "abc\r\n        x", OPOST | ONLCR | XTABS},
    {"olcuc", "aBc1", "ABC1", OPOST | OLCUC},
    {"backspace", "abc\b\b\tx", "abc\b\b       x", OPOST | XTABS},
};

Test(tty_ldisc, output_processing)
{
    for (unsigned i = 0; i < sizeof(out_rows) / sizeof(out_rows[0]); i++) {
        const struct out_row *r = &out_rows[i];
        size_t size = strlen(r->written);

        start();
        line.l.t.c_oflag = r->oflag;
        cr_assert_eq(ldisc_write(&line.l, (const uint8_t *)r->written, size), size);
        shown_is(r->name, r->shown, strlen(r->shown));
    }
}

Test(tty_ldisc, output_stops_at_the_room_there_is)
{
    start();
    line.room = 3;
    cr_assert_eq(ldisc_write(&line.l, (const uint8_t *)"ab\ncd", 5), 2); /* \r\n does not fit */
    line.room = 4;
    cr_assert_eq(ldisc_write(&line.l, (const uint8_t *)"\ncd", 3), 1);
    shown_is("room", "ab\r\n", 4);
}

Test(tty_ldisc, stop_and_start_hold_output_and_echo)
{
    start();
    type("a", 1);
    type("\023", 1);
    cr_assert(line.l.stopped);
    cr_assert_eq(line.stops, 1);
    shown_is("before stop", "a", 1);
    type("bc", 2);
    cr_assert_eq(ldisc_write(&line.l, (const uint8_t *)"x", 1), 0);
    shown_is("stopped", "", 0);
    type("\021", 1);
    cr_assert(!line.l.stopped);
    shown_is("started", "bc", 2);

    /* TCOOFF is not undone by a character. */
    ldisc_stop(&line.l, true);
    type("\021", 1);
    cr_assert(line.l.stopped);
    ldisc_start(&line.l, true);
    cr_assert(!line.l.stopped);

    line.l.t.c_iflag |= IXANY;
    type("\023z", 2);
    cr_assert(!line.l.stopped);
    shown_is("ixany", "z", 1);
}
