/* SPDX-License-Identifier: Apache-2.0 */
/* Flags in every form that runc's callers use. */
#include "runtime/cli.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

static const struct cli_flag flags[] = {
    {"bundle", 'b', true, NULL, "x"},
    {"force", 'f', false, NULL, "x"},
    {"env", 'e', true, NULL, "x"},
    {"number", 0, true, NULL, "x"},
    {NULL, 0, false, NULL, NULL},
};

/* Splits at spaces into a fresh argv. */
static int parse(const char *line, bool permute, struct cli_args *args, struct errmsg *e)
{
    static char text[256], *argv[32];
    int argc = 0;
    strcpy(text, line);
    for (char *save, *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save))
        argv[argc++] = word;
    argv[argc] = NULL;
    return cli_parse(flags, permute, argv, argc, args, e);
}

Test(cli, forms)
{
    static const char *const lines[] = {
        "--bundle /x --force id", "-b /x -f id",        "--bundle=/x --force=true id", "-bundle /x -force id",
        "id -b /x --force",       "-f id --bundle=/x",
    };
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        struct cli_args a;
        struct errmsg e = {""};
        cr_assert_eq(parse(lines[i], true, &a, &e), 0, "%s: %s", lines[i], e.text);
        cr_assert_str_eq(cli_value(&a, "bundle"), "/x");
        cr_assert(cli_set(&a, "force"));
        cr_assert_eq(a.argc, 1);
        cr_assert_str_eq(a.argv[0], "id");
        cr_assert_null(a.argv[1]);
    }
}

Test(cli, flags_of_the_program_are_not_ours)
{
    struct cli_args a;
    struct errmsg e = {""};
    cr_assert_eq(parse("-f id sh -c --bundle", false, &a, &e), 0);
    cr_assert_eq(a.argc, 4);
    cr_assert_str_eq(a.argv[3], "--bundle");
    cr_assert_eq(parse("-f -- -x --bundle", true, &a, &e), 0);
    cr_assert_eq(a.argc, 2);
    cr_assert_str_eq(a.argv[0], "-x");
    /* A lone dash is an argument. */
    cr_assert_eq(parse("- id", true, &a, &e), 0);
    cr_assert_eq(a.argc, 2);
}

Test(cli, repeated)
{
    struct cli_args a;
    struct errmsg e = {""};
    unsigned at = 0;
    cr_assert_eq(parse("-e A=1 --env B=2 --env=C=3 id", false, &a, &e), 0);
    cr_assert_str_eq(cli_next_value(&a, "env", &at), "A=1");
    cr_assert_str_eq(cli_next_value(&a, "env", &at), "B=2");
    cr_assert_str_eq(cli_next_value(&a, "env", &at), "C=3");
    cr_assert_null(cli_next_value(&a, "env", &at));
    cr_assert_str_eq(cli_value(&a, "env"), "C=3");
}

Test(cli, refused)
{
    struct cli_args a;
    struct errmsg e = {""};
    cr_assert_eq(parse("--nope id", true, &a, &e), -EINVAL);
    cr_assert_str_eq(e.text, "flag provided but not defined: -nope");
    cr_assert_eq(parse("id --bundle", true, &a, &e), -EINVAL);
    cr_assert_str_eq(e.text, "flag needs an argument: -bundle");
    cr_assert_eq(parse("--force=maybe id", true, &a, &e), -EINVAL);
}

Test(cli, numbers)
{
    static const struct {
        const char *line;
        long want;
    } cases[] = {{"id", 7}, {"--number 0 id", 0}, {"--number 50 id", 50}, {"--number 51 id", -EINVAL},
                 {"--number -1 id", -EINVAL}, {"--number 1x id", -EINVAL}, {"--number= id", -EINVAL}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct cli_args a;
        struct errmsg e = {""};
        long value = 0;
        cr_assert_eq(parse(cases[i].line, true, &a, &e), 0);
        int r = cli_number(&a, "number", 7, 50, &value, &e);
        cr_assert_eq(r < 0 ? r : value, cases[i].want, "%s", cases[i].line);
    }
}
