/* SPDX-License-Identifier: Apache-2.0 */
/* First lines of scripts. */
#include "sentry/kernel/script.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

static struct script_line line;

static int parse(const char *text)
{
    return script_parse(text, strlen(text), &line);
}

Test(script, plain)
{
    cr_assert_eq(parse("#!/bin/sh\necho\n"), 0);
    cr_assert_str_eq(line.interp, "/bin/sh");
    cr_assert_not(line.has_arg);
}

Test(script, one_argument_with_blanks_inside)
{
    cr_assert_eq(parse("#! \t/usr/bin/env  -S a b \t\n"), 0);
    cr_assert_str_eq(line.interp, "/usr/bin/env");
    cr_assert(line.has_arg);
    cr_assert_str_eq(line.arg, "-S a b");
}

Test(script, no_newline_at_the_end_of_a_short_file)
{
    cr_assert_eq(parse("#!/bin/sh"), 0);
    cr_assert_str_eq(line.interp, "/bin/sh");
    cr_assert_eq(parse("#!/bin/sh -e"), 0);
    cr_assert_str_eq(line.arg, "-e");
}

Test(script, nothing_named)
{
    cr_assert_eq(parse("#!\n"), -ENOEXEC);
    cr_assert_eq(parse("#!   \t\n"), -ENOEXEC);
    cr_assert_eq(parse("#!"), -EACCES);
    cr_assert_eq(parse("#"), -ENOEXEC);
    cr_assert_eq(parse("!#/bin/sh\n"), -ENOEXEC);
    cr_assert_eq(parse(""), -ENOEXEC);
}

Test(script, long_lines)
{
    char text[600];

    memset(text, 'a', sizeof(text));
    memcpy(text, "#!/", 3);
    cr_assert_eq(script_parse(text, sizeof(text), &line), -ENOEXEC, "a name that is cut off");
    text[100] = ' ';
    cr_assert_eq(script_parse(text, sizeof(text), &line), 0, "an argument may be cut off");
    cr_assert_eq(strlen(line.interp), 98);
    cr_assert_eq(strlen(line.arg), SCRIPT_LINE_MAX - 101);
}

Test(script, nul_bytes_end_it)
{
    cr_assert_eq(script_parse("#!/bin/sh\0junk\n", 15, &line), 0);
    cr_assert_str_eq(line.interp, "/bin/sh");
}
