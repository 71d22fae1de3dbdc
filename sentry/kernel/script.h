/* SPDX-License-Identifier: Apache-2.0 */
/* The first line of interpreter scripts. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "platform/base/compiler.h"

/* How much of the file the kernel looks at. */
enum { SCRIPT_LINE_MAX = 256 };

struct script_line {
    char interp[SCRIPT_LINE_MAX];
    char arg[SCRIPT_LINE_MAX]; /* "": none */
    bool has_arg;
};

/* Parses a "#!" line at the start of head. Return: 0, −ENOEXEC when there is none, it names nothing, or the name is cut off by
 * the limit, −EACCES when the file ends where the name should begin. Source: execve(2), "Interpreter scripts". */
MUST_CHECK int script_parse(const char *head, size_t size, struct script_line *ret_line);
