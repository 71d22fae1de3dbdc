/* SPDX-License-Identifier: Apache-2.0 */
/* The line discipline of terminals. Source: termios(3), POSIX General Terminal Interface. */
#include "sentry/fs/tty_ldisc.h"

#include <ctype.h>
#include <signal.h>
#include <string.h>

#define L_FLAG(l, flag) ((l)->t.c_lflag & (flag))
#define I_FLAG(l, flag) ((l)->t.c_iflag & (flag))
#define O_FLAG(l, flag) ((l)->t.c_oflag & (flag))

enum { EOF_MARK = 0 }; /* stored, marked as a line end, for the end-of-file character */

/* Echo entries: a kind in the high byte, a character or count in the low one. */
enum {
    ECHO_CHAR = 0x000,     /* through output processing */
    ECHO_CARET = 0x100,    /* as ^X */
    ECHO_BACK_COL = 0x200, /* the cursor is one column further left than counted */
    ECHO_SET_COL = 0x300,  /* the edited line starts here */
    ECHO_ERASE_TAB = 0x400, /* go back over a tab; low 7 bits: columns since the line's start or the last tab */
    ECHO_AFTER_TAB = 0x80,
    ECHO_KIND = 0xff00,
};

static bool ctl(uint8_t c)
{
    return c < 0x20 || c == 0x7f;
}

static uint8_t at(const struct ldisc *l, uint32_t pos)
{
    return l->buf[pos % LDISC_SIZE];
}

static bool is_line_end(const struct ldisc *l, uint32_t pos)
{
    pos %= LDISC_SIZE;
    return l->line_end[pos / 64] >> (pos % 64) & 1;
}

static void mark_line_end(struct ldisc *l, uint32_t pos, bool on)
{
    uint64_t bit;

    pos %= LDISC_SIZE;
    bit = 1ULL << (pos % 64);
    if (on)
        l->line_end[pos / 64] |= bit;
    else
        l->line_end[pos / 64] &= ~bit;
}

/* A later byte of a UTF-8 character takes no column of its own. */
static bool is_continuation(const struct ldisc *l, uint8_t c)
{
    return I_FLAG(l, IUTF8) && (c & 0xc0) == 0x80;
}

/* Whether c is the special character in slot; NUL stands for "none". */
static bool is_cc(const struct ldisc *l, uint8_t c, unsigned slot)
{
    return c != 0 && c == l->t.c_cc[slot];
}

void ldisc_default_termios(struct ktermios *t)
{
    static const uint8_t cc[] = {
        [VINTR] = 3,    [VQUIT] = 28, [VERASE] = 127, [VKILL] = 21,   [VEOF] = 4,
        [VTIME] = 0,    [VMIN] = 1,   [VSWTC] = 0,    [VSTART] = 17,  [VSTOP] = 19,
        [VSUSP] = 26,   [VEOL] = 0,   [VREPRINT] = 18, [VDISCARD] = 15, [VWERASE] = 23,
        [VLNEXT] = 22,  [VEOL2] = 0,
    };

    *t = (struct ktermios){
        .c_iflag = ICRNL | IXON,
        .c_oflag = OPOST | ONLCR,
        .c_cflag = B38400 | CS8 | CREAD,
        .c_lflag = ISIG | ICANON | ECHO | ECHOE | ECHOK | ECHOCTL | ECHOKE | IEXTEN,
        .c_ispeed = 38400,
        .c_ospeed = 38400,
    };
    memcpy(t->c_cc, cc, sizeof(cc));
}

void ldisc_init(struct ldisc *l, const struct ldisc_ops *ops)
{
    l->ops = ops;
    ldisc_default_termios(&l->t);
}

/* ---- output ---- */

/* Gathers processed output so that the line is called once for many characters. */
struct outbuf {
    struct ldisc *l;
    size_t room; /* what the line still takes, beyond what is gathered */
    size_t size;
    char data[512];
};

static void out_begin(struct outbuf *o, struct ldisc *l)
{
    o->l = l;
    o->size = 0;
    o->room = l->stopped ? 0 : l->ops->room(l);
}

static void out_flush(struct outbuf *o)
{
    if (o->size)
        o->l->ops->put(o->l, o->data, o->size);
    o->size = 0;
}

/* The caller has checked room. */
static void out_put(struct outbuf *o, char c)
{
    if (o->size == sizeof(o->data))
        out_flush(o);
    o->data[o->size++] = c;
    o->room--;
}

static void column_back(struct ldisc *l)
{
    if (l->column > 0)
        l->column--;
}

static bool out_tab(struct outbuf *o)
{
    struct ldisc *l = o->l;
    unsigned spaces = 8 - (l->column & 7);

    if (O_FLAG(l, TABDLY) == XTABS) {
        if (o->room < spaces)
            return false;
        for (unsigned i = 0; i < spaces; i++)
            out_put(o, ' ');
    } else {
        out_put(o, '\t');
    }
    l->column += spaces;
    return true;
}

/* One character through output processing (OPOST is on). Return: false when it does not fit. */
static bool out_processed(struct outbuf *o, uint8_t c)
{
    struct ldisc *l = o->l;

    if (o->room == 0)
        return false;
    switch (c) {
    case '\n':
        if (O_FLAG(l, ONLRET))
            l->column = 0;
        if (O_FLAG(l, ONLCR)) {
            if (o->room < 2)
                return false;
            l->canon_column = l->column = 0;
            out_put(o, '\r');
            break;
        }
        l->canon_column = l->column;
        break;
    case '\r':
        if (O_FLAG(l, ONOCR) && l->column == 0)
            return true;
        if (O_FLAG(l, OCRNL)) {
            c = '\n';
            if (O_FLAG(l, ONLRET))
                l->canon_column = l->column = 0;
            break;
        }
        l->canon_column = l->column = 0;
        break;
    case '\t':
        return out_tab(o);
    case '\b':
        column_back(l);
        break;
    default:
        if (!ctl(c)) {
            if (O_FLAG(l, OLCUC))
                c = (uint8_t)toupper(c);
            if (!is_continuation(l, c))
                l->column++;
        }
    }
    out_put(o, (char)c);
    return true;
}

static bool out_char(struct outbuf *o, uint8_t c)
{
    if (O_FLAG(o->l, OPOST))
        return out_processed(o, c);
    if (o->room == 0)
        return false;
    out_put(o, (char)c);
    return true;
}

static bool echo_erase_tab(struct outbuf *o, unsigned arg)
{
    struct ldisc *l = o->l;
    unsigned columns = arg & 0x7f;

    /* Without an earlier tab the count is from where the line started. */
    if (!(arg & ECHO_AFTER_TAB))
        columns += l->canon_column;
    columns = 8 - (columns & 7);
    if (o->room < columns)
        return false;
    while (columns-- > 0) {
        out_put(o, '\b');
        column_back(l);
    }
    return true;
}

/* Return: false when the entry does not fit yet. */
static bool echo_entry(struct outbuf *o, uint16_t e)
{
    struct ldisc *l = o->l;

    switch (e & ECHO_KIND) {
    case ECHO_CHAR:
        return out_char(o, (uint8_t)e);
    case ECHO_CARET:
        if (o->room < 2)
            return false;
        out_put(o, '^');
        out_put(o, (char)((e & 0xff) ^ 0100));
        l->column += 2;
        return true;
    case ECHO_BACK_COL:
        column_back(l);
        return true;
    case ECHO_SET_COL:
        l->canon_column = l->column;
        return true;
    default:
        return echo_erase_tab(o, e & 0xff);
    }
}

static void echo_drain(struct outbuf *o)
{
    struct ldisc *l = o->l;

    while (l->echo_tail != l->echo_head && echo_entry(o, l->echo[l->echo_tail % LDISC_ECHO_SIZE]))
        l->echo_tail++;
}

void ldisc_flush_echo(struct ldisc *l)
{
    struct outbuf o;

    if (l->echo_tail == l->echo_head)
        return;
    out_begin(&o, l);
    echo_drain(&o);
    out_flush(&o);
}

size_t ldisc_write(struct ldisc *l, const uint8_t *p, size_t size)
{
    struct outbuf o;
    size_t n = 0;

    out_begin(&o, l);
    echo_drain(&o);
    if (!O_FLAG(l, OPOST)) {
        out_flush(&o);
        n = MIN(size, o.room);
        if (n)
            l->ops->put(l, (const char *)p, n);
        return n;
    }
    while (n < size && out_processed(&o, p[n]))
        n++;
    out_flush(&o);
    return n;
}

/* ---- echo ---- */

static void echo_add(struct ldisc *l, uint16_t e)
{
    /* A full buffer loses new echo, as a terminal that is stopped for long does. */
    if (l->echo_head - l->echo_tail < LDISC_ECHO_SIZE)
        l->echo[l->echo_head++ % LDISC_ECHO_SIZE] = e;
}

static void echo_raw(struct ldisc *l, uint8_t c)
{
    echo_add(l, ECHO_CHAR | c);
}

static void echo_shown(struct ldisc *l, uint8_t c)
{
    if (L_FLAG(l, ECHOCTL) && ctl(c) && c != '\t')
        echo_add(l, ECHO_CARET | c);
    else
        echo_add(l, ECHO_CHAR | c);
}

static void echo_rubout(struct ldisc *l)
{
    echo_raw(l, '\b');
    echo_raw(l, ' ');
    echo_raw(l, '\b');
}

static void finish_erasing(struct ldisc *l)
{
    if (l->erasing) {
        echo_raw(l, '/');
        l->erasing = false;
    }
}

/* ---- line editing ---- */

static void echo_erased_tab(struct ldisc *l)
{
    unsigned columns = 0;
    bool after_tab = false;
    uint32_t pos = l->head;

    while (pos != l->canon_head) {
        uint8_t c = at(l, --pos);

        if (c == '\t') {
            after_tab = true;
            break;
        }
        if (ctl(c))
            columns += L_FLAG(l, ECHOCTL) ? 2 : 0;
        else if (!is_continuation(l, c))
            columns++;
    }
    echo_add(l, (uint16_t)(ECHO_ERASE_TAB | (columns & 7) | (after_tab ? ECHO_AFTER_TAB : 0)));
}

/* Shows that the character at l->head (count bytes, first c) is gone. */
static void echo_erased(struct ldisc *l, uint8_t c, uint32_t count, bool single)
{
    if (L_FLAG(l, ECHOPRT)) {
        if (!l->erasing) {
            echo_raw(l, '\\');
            l->erasing = true;
        }
        echo_shown(l, c);
        for (uint32_t i = 1; i < count; i++) {
            echo_raw(l, at(l, l->head + i));
            echo_add(l, ECHO_BACK_COL);
        }
    } else if (single && !L_FLAG(l, ECHOE)) {
        echo_shown(l, l->t.c_cc[VERASE]);
    } else if (c == '\t') {
        echo_erased_tab(l);
    } else {
        if (ctl(c) && L_FLAG(l, ECHOCTL))
            echo_rubout(l);
        if (!ctl(c) || L_FLAG(l, ECHOCTL))
            echo_rubout(l);
    }
}

enum erase_kind { ERASE_CHAR, ERASE_WORD, ERASE_LINE };

static void erase_loop(struct ldisc *l, enum erase_kind kind)
{
    bool seen_word = false;

    while (l->head != l->canon_head) {
        uint32_t pos = l->head, count;
        uint8_t c;

        do {
            c = at(l, --pos);
        } while (is_continuation(l, c) && pos != l->canon_head);
        if (is_continuation(l, c))
            break; /* the rest of a character whose start is gone */
        if (kind == ERASE_WORD) {
            if (isalnum(c) || c == '_')
                seen_word = true;
            else if (seen_word)
                break;
        }
        count = l->head - pos;
        l->head = pos;
        if (L_FLAG(l, ECHO))
            echo_erased(l, c, count, kind == ERASE_CHAR);
        if (kind == ERASE_CHAR)
            break;
    }
    if (l->head == l->canon_head && L_FLAG(l, ECHO))
        finish_erasing(l);
}

static void erase(struct ldisc *l, uint8_t c)
{
    if (l->head == l->canon_head)
        return;
    if (is_cc(l, c, VERASE)) {
        erase_loop(l, ERASE_CHAR);
        return;
    }
    if (is_cc(l, c, VWERASE)) {
        erase_loop(l, ERASE_WORD);
        return;
    }
    if (!L_FLAG(l, ECHO)) {
        l->head = l->canon_head;
        return;
    }
    if (!L_FLAG(l, ECHOK) || !L_FLAG(l, ECHOKE) || !L_FLAG(l, ECHOE)) {
        l->head = l->canon_head;
        finish_erasing(l);
        echo_shown(l, l->t.c_cc[VKILL]);
        if (L_FLAG(l, ECHOK))
            echo_raw(l, '\n');
        return;
    }
    erase_loop(l, ERASE_LINE);
}

/* ---- input ---- */

static void queue_byte(struct ldisc *l, uint8_t c)
{
    mark_line_end(l, l->head, false);
    l->buf[l->head++ % LDISC_SIZE] = c;
}

static void queue_char(struct ldisc *l, uint8_t c)
{
    if (I_FLAG(l, PARMRK) && c == 0xff)
        queue_byte(l, c);
    queue_byte(l, c);
}

static void end_line(struct ldisc *l, uint8_t c)
{
    queue_byte(l, c);
    mark_line_end(l, l->head - 1, true);
    l->canon_head = l->head;
    l->ops->readable(l);
}

static void receive_plain(struct ldisc *l, uint8_t c, bool literal)
{
    if (L_FLAG(l, ECHO)) {
        finish_erasing(l);
        if (c == '\n' && !literal) {
            echo_raw(l, '\n');
        } else {
            if (l->canon_head == l->head)
                echo_add(l, ECHO_SET_COL);
            echo_shown(l, c);
        }
    }
    queue_char(l, c);
}

static void reprint(struct ldisc *l, uint8_t c)
{
    finish_erasing(l);
    echo_shown(l, c);
    echo_raw(l, '\n');
    for (uint32_t pos = l->canon_head; pos != l->head; pos++)
        echo_shown(l, at(l, pos));
}

/* Editing and line ends. Return: whether c was dealt with. */
static bool receive_canonical(struct ldisc *l, uint8_t c)
{
    bool extended = L_FLAG(l, IEXTEN);

    if (is_cc(l, c, VERASE) || is_cc(l, c, VKILL) || (extended && is_cc(l, c, VWERASE))) {
        erase(l, c);
        return true;
    }
    if (extended && is_cc(l, c, VLNEXT)) {
        l->literal_next = true;
        if (L_FLAG(l, ECHO)) {
            finish_erasing(l);
            if (L_FLAG(l, ECHOCTL)) {
                echo_raw(l, '^');
                echo_raw(l, '\b');
            }
        }
        return true;
    }
    if (extended && L_FLAG(l, ECHO) && is_cc(l, c, VREPRINT)) {
        reprint(l, c);
        return true;
    }
    if (c == '\n') {
        if (L_FLAG(l, ECHO | ECHONL))
            echo_raw(l, '\n');
        end_line(l, c);
        return true;
    }
    if (is_cc(l, c, VEOF)) {
        end_line(l, EOF_MARK);
        return true;
    }
    if (is_cc(l, c, VEOL) || (extended && is_cc(l, c, VEOL2))) {
        if (L_FLAG(l, ECHO)) {
            if (l->canon_head == l->head)
                echo_add(l, ECHO_SET_COL);
            echo_shown(l, c);
        }
        if (I_FLAG(l, PARMRK) && c == 0xff)
            queue_byte(l, c);
        end_line(l, c);
        return true;
    }
    return false;
}

static void receive_signal(struct ldisc *l, int signo, uint8_t c)
{
    l->ops->signal(l, signo);
    if (!L_FLAG(l, NOFLSH)) {
        ldisc_flush_pending_echo(l);
        l->ops->flush_output(l);
        ldisc_flush_input(l);
    }
    if (I_FLAG(l, IXON))
        ldisc_start(l, false);
    if (L_FLAG(l, ECHO))
        echo_shown(l, c);
}

/* Return: whether c was a character that acts at once. */
static bool receive_control(struct ldisc *l, uint8_t c)
{
    if (I_FLAG(l, IXON)) {
        if (is_cc(l, c, VSTART)) {
            ldisc_start(l, false);
            return true;
        }
        if (is_cc(l, c, VSTOP)) {
            ldisc_stop(l, false);
            return true;
        }
    }
    if (L_FLAG(l, ISIG)) {
        int signo = is_cc(l, c, VINTR)   ? SIGINT
                    : is_cc(l, c, VQUIT) ? SIGQUIT
                    : is_cc(l, c, VSUSP) ? SIGTSTP
                                         : 0;

        if (signo) {
            receive_signal(l, signo, c);
            return true;
        }
    }
    return false;
}

static void receive_char(struct ldisc *l, uint8_t c)
{
    if (I_FLAG(l, ISTRIP))
        c &= 0x7f;
    if (I_FLAG(l, IUCLC) && L_FLAG(l, IEXTEN))
        c = (uint8_t)tolower(c);
    if (L_FLAG(l, EXTPROC)) { /* the other side edits */
        queue_char(l, c);
        return;
    }
    if (l->literal_next) {
        l->literal_next = false;
        receive_plain(l, c, true);
        return;
    }
    if (receive_control(l, c))
        return;
    if (l->stopped && I_FLAG(l, IXON) && I_FLAG(l, IXANY))
        ldisc_start(l, false);
    if (c == '\r') {
        if (I_FLAG(l, IGNCR))
            return;
        if (I_FLAG(l, ICRNL))
            c = '\n';
    } else if (c == '\n' && I_FLAG(l, INLCR)) {
        c = '\r';
    }
    if (L_FLAG(l, ICANON) && receive_canonical(l, c))
        return;
    receive_plain(l, c, false);
}

/* Room for input bytes, counted for the worst expansion; one byte is kept so that a line can still end. A line that fills the
 * buffer goes on being read, each byte replacing the last, or its end would never arrive. */
static size_t receive_room(struct ldisc *l)
{
    int room = (int)(LDISC_SIZE - (l->head - l->tail));

    if (I_FLAG(l, PARMRK))
        room = (room + 2) / 3;
    room--;
    if (room > 0)
        return (size_t)room;
    if (!ldisc_canonical(l) || l->canon_head != l->tail)
        return 0;
    if (room < 0)
        l->head--;
    return 1;
}

size_t ldisc_receive(struct ldisc *l, const uint8_t *p, size_t size)
{
    uint32_t before = l->head;
    size_t done = 0;

    while (done < size) {
        size_t n = MIN(receive_room(l), size - done);

        if (n == 0)
            break;
        for (size_t i = 0; i < n; i++)
            receive_char(l, p[done + i]);
        done += n;
    }
    ldisc_flush_echo(l);
    if (!ldisc_canonical(l) && l->head != before)
        l->ops->readable(l);
    return done;
}

/* ---- reading ---- */

bool ldisc_input_available(const struct ldisc *l, bool for_poll)
{
    uint32_t want = 1;

    if (ldisc_canonical(l))
        return l->canon_head != l->tail;
    if (for_poll && l->t.c_cc[VTIME] == 0 && l->t.c_cc[VMIN] > 0)
        want = l->t.c_cc[VMIN];
    return l->head - l->tail >= want;
}

static size_t read_line(struct ldisc *l, uint8_t *dst, size_t size, bool *ret_line_done)
{
    size_t n = 0;

    while (l->tail != l->canon_head) {
        bool end = is_line_end(l, l->tail);
        uint8_t c = at(l, l->tail);

        if (end && c == EOF_MARK) {
            mark_line_end(l, l->tail++, false);
            *ret_line_done = true;
            break;
        }
        if (n == size)
            break;
        dst[n++] = c;
        mark_line_end(l, l->tail++, false);
        if (end) {
            l->push = false;
            *ret_line_done = true;
            break;
        }
    }
    return n;
}

size_t ldisc_read(struct ldisc *l, uint8_t *dst, size_t size, bool *ret_line_done)
{
    size_t n = 0;

    *ret_line_done = false;
    if (ldisc_canonical(l))
        return read_line(l, dst, size, ret_line_done);
    while (n < size && l->tail != l->head) {
        dst[n++] = at(l, l->tail);
        mark_line_end(l, l->tail++, false);
    }
    /* Whatever was a complete line before the mode changed is behind the tail now. */
    if ((int32_t)(l->canon_head - l->tail) < 0)
        l->canon_head = l->tail;
    return n;
}

size_t ldisc_inq(const struct ldisc *l)
{
    size_t n = 0;

    if (!ldisc_canonical(l))
        return l->head - l->tail;
    for (uint32_t pos = l->tail; pos != l->canon_head; pos++)
        n += !(is_line_end(l, pos) && at(l, pos) == EOF_MARK);
    return n;
}

/* ---- settings ---- */

void ldisc_set_termios(struct ldisc *l, const struct ktermios *t)
{
    struct ktermios old = l->t;

    l->t = *t;
    if ((old.c_lflag ^ t->c_lflag) & (ICANON | EXTPROC)) {
        memset(l->line_end, 0, sizeof(l->line_end));
        if (!(t->c_lflag & ICANON) || l->head == l->tail) {
            l->canon_head = l->tail;
            l->push = false;
        } else {
            /* What was typed in raw mode becomes a line of its own, though nothing ends it. */
            mark_line_end(l, l->head - 1, true);
            l->canon_head = l->head;
            l->push = true;
        }
        l->erasing = l->literal_next = false;
    }
    if ((old.c_iflag & IXON) && !(t->c_iflag & IXON))
        ldisc_start(l, false);
    ldisc_flush_echo(l);
    l->ops->readable(l);
}

void ldisc_flush_input(struct ldisc *l)
{
    l->head = l->tail = l->canon_head = 0;
    l->erasing = l->literal_next = l->push = false;
    memset(l->line_end, 0, sizeof(l->line_end));
    l->ops->input_flushed(l);
}

void ldisc_flush_pending_echo(struct ldisc *l)
{
    l->echo_tail = l->echo_head;
}

void ldisc_stop(struct ldisc *l, bool by_call)
{
    if (by_call)
        l->tco_stopped = true;
    if (l->stopped)
        return;
    l->stopped = true;
    l->ops->flow(l, true);
}

void ldisc_start(struct ldisc *l, bool by_call)
{
    if (by_call)
        l->tco_stopped = false;
    if (!l->stopped || l->tco_stopped)
        return;
    l->stopped = false;
    l->ops->flow(l, false);
    ldisc_flush_echo(l);
}
