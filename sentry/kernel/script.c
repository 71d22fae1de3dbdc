/* SPDX-License-Identifier: Apache-2.0 */
/* The first line of interpreter scripts. */
#include "sentry/kernel/script.h"

#include <errno.h>
#include <string.h>

static bool blank(char c)
{
    return c == ' ' || c == '\t';
}

int script_parse(const char *head, size_t size, struct script_line *ret_line)
{
    const char *end, *name, *name_end, *arg;
    bool cut = false, open_end = false;

    if (size > SCRIPT_LINE_MAX)
        size = SCRIPT_LINE_MAX;
    if (size < 2 || head[0] != '#' || head[1] != '!')
        return -ENOEXEC;
    end = memchr(head, '\n', size);
    if (!end) {
        /* Without a newline the end of a short file counts, and in a long one the name must be complete. */
        cut = size == SCRIPT_LINE_MAX;
        open_end = !cut;
        end = head + strnlen(head, size);
    }
    name = head + 2;
    while (name < end && blank(*name))
        name++;
    while (end > name && blank(end[-1]))
        end--;
    name_end = name;
    while (name_end < end && !blank(*name_end) && *name_end)
        name_end++;
    /* An empty name stands for the working directory, which can't be executed. */
    if (name_end == name)
        return open_end ? -EACCES : -ENOEXEC;
    if (cut && name_end == end)
        return -ENOEXEC;
    arg = name_end;
    while (arg < end && blank(*arg))
        arg++;
    memset(ret_line, 0, sizeof(*ret_line));
    memcpy(ret_line->interp, name, (size_t)(name_end - name));
    if (arg < end && *arg) {
        memcpy(ret_line->arg, arg, strnlen(arg, (size_t)(end - arg)));
        ret_line->has_arg = true;
    }
    return 0;
}
