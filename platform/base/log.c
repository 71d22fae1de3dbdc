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
    /* UTC without localtime: the sentry has no /etc/localtime and may not open it. */
    struct tm tm;
    gmtime_r(&ts.tv_sec, &tm);
    char when[96];
    snprintf(when, sizeof(when), "%04d-%02d-%02dT%02d:%02d:%02d.%06ldZ", tm.tm_year + 1900,
             tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, ts.tv_nsec / 1000);

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
