/* SPDX-License-Identifier: Apache-2.0 */
/* Leveled log lines. One write(2) a line, so lines of several processes do not mix. */
#include "platform/base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LOG_LINE_MAX = 4096 };

static struct {
    int fd;
    enum log_format format;
    enum log_level max_level;
    const char *tag;
} log_state = {.fd = 2, .max_level = LOG_LEVEL_WARN};

static const char *const log_level_names[] = {"error", "warning", "info", "debug"};

void log_setup(int fd, enum log_format format, enum log_level max_level)
{
    log_state.fd = fd;
    log_state.format = format;
    log_state.max_level = max_level;
}

void log_set_tag(const char *tag)
{
    log_state.tag = tag;
}

bool log_enabled(enum log_level level)
{
    return log_state.fd >= 0 && level <= log_state.max_level;
}

/* Appends s with quotes and control characters escaped as in JSON; returns the new length. */
static size_t log_escape(char *out, size_t len, size_t max, const char *s)
{
    for (; *s && len + 7 < max; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\') {
            out[len++] = '\\';
            out[len++] = (char)c;
        } else if (c == '\n') {
            out[len++] = '\\';
            out[len++] = 'n';
        } else if (c < 0x20 || c == 0x7f) {
            len += (size_t)snprintf(out + len, max - len, "\\u%04x", c);
        } else {
            out[len++] = (char)c;
        }
    }
    return len;
}

/* RFC 3339 in UTC. Not by gmtime_r: that opens the host's time zone file, which confined processes
 * may not do. */
static void log_format_utc(const struct timespec *ts, char *out, size_t size)
{
    unsigned days = (unsigned)(ts->tv_sec / 86400), rest = (unsigned)(ts->tv_sec % 86400);
    /* Days since 0000-03-01, so that leap days end their years; eras of 400 years. */
    unsigned shifted = days + 719468, era = shifted / 146097, in_era = shifted % 146097;
    unsigned year = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    unsigned in_year = in_era - (365 * year + year / 4 - year / 100);
    unsigned march_month = (5 * in_year + 2) / 153;
    unsigned day = in_year - (153 * march_month + 2) / 5 + 1;
    unsigned month = march_month < 10 ? march_month + 3 : march_month - 9;
    year += era * 400 + (month <= 2);
    snprintf(out, size, "%04u-%02u-%02uT%02u:%02u:%02u.%06ldZ", year, month, day, rest / 3600,
             rest / 60 % 60, rest % 60, ts->tv_nsec / 1000);
}

void log_write(enum log_level level, const char *fmt, ...)
{
    if (!log_enabled(level))
        return;
    char msg[LOG_LINE_MAX / 2], line[LOG_LINE_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(msg, sizeof(msg), fmt, ap);
    va_end(ap);

    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    char when[64];
    log_format_utc(&ts, when, sizeof(when));

    size_t len;
    bool json = log_state.format == LOG_FORMAT_JSON;
    if (json)
        len = (size_t)snprintf(line, sizeof(line), "{\"level\":\"%s\",\"msg\":\"",
                               log_level_names[level]);
    else
        len = (size_t)snprintf(line, sizeof(line), "time=\"%s\" level=%s msg=\"", when,
                               log_level_names[level]);
    if (log_state.tag && len + strlen(log_state.tag) + 3 < sizeof(line))
        len += (size_t)snprintf(line + len, sizeof(line) - len, "%s: ", log_state.tag);
    len = log_escape(line, len, sizeof(line) - 64, msg);
    if (json)
        len += (size_t)snprintf(line + len, sizeof(line) - len, "\",\"time\":\"%s\"}\n", when);
    else
        len += (size_t)snprintf(line + len, sizeof(line) - len, "\"\n");
    ssize_t written = write(log_state.fd, line, len);
    (void)written; /* a log that can't be written must not stop the container */
}

void bug_at(const char *file, int line, const char *what)
{
    log_write(LOG_LEVEL_ERROR, "BUG at %s:%d: %s", file, line, what);
    abort();
}
