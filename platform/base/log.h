/* SPDX-License-Identifier: Apache-2.0 */
/* Leveled log lines to one file descriptor, in text or JSON as runc's --log-format writes them. */
#pragma once

#include <stdbool.h>

#include "platform/base/compiler.h"

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };
enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };

/* Sets where and how lines go. fd is borrowed and must stay open; -1 drops everything.
 * Called once at start-up of each process, before other threads exist. */
void log_setup(int fd, enum log_format format, enum log_level max_level);
/* Names the process in every line of the debug log ("sentry", "gofer", …); NULL for none. */
void log_set_tag(const char *tag);
bool log_enabled(enum log_level level);
void log_write(enum log_level level, const char *fmt, ...) PRINTF(2, 3);

#define log_error(...) log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...) log_write(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...) log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)                                                                             \
    do {                                                                                           \
        if (log_enabled(LOG_LEVEL_DEBUG))                                                          \
            log_write(LOG_LEVEL_DEBUG, __VA_ARGS__);                                               \
    } while (0)
