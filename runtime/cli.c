/* SPDX-License-Identifier: Apache-2.0 */
/* Command-line parsing and usage texts, with the habits of runc's command-line library: one or two
 * dashes mean the same, values follow "=" or stand alone, and flags may follow arguments. */
#include "runtime/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "platform/base/host.h"
#include "platform/base/log.h"
#include "runtime/errtext.h"

enum { CLI_USAGE_COLUMN = 28 };

static const struct cli_flag *cli_find_flag(const struct cli_flag *flags, const char *name, size_t len)
{
    for (const struct cli_flag *f = flags; f && f->name; f++) {
        if (strlen(f->name) == len && memcmp(f->name, name, len) == 0)
            return f;
        if (len == 1 && f->letter && f->letter == name[0])
            return f;
    }
    return NULL;
}

const char *cli_next_value(const struct cli_args *args, const char *name, unsigned *at)
{
    while (*at < args->values_len) {
        unsigned i = (*at)++;
        if (strcmp(args->values[i].flag->name, name) == 0)
            return args->values[i].value;
    }
    return NULL;
}

const char *cli_value(const struct cli_args *args, const char *name)
{
    const char *last = NULL, *v;
    for (unsigned at = 0; (v = cli_next_value(args, name, &at));)
        last = v;
    return last;
}

bool cli_set(const struct cli_args *args, const char *name)
{
    const char *v = cli_value(args, name);
    return v && strcmp(v, "false") != 0;
}

int cli_number(const struct cli_args *args, const char *name, long default_value, long max,
               long *ret_value, struct errmsg *e)
{
    const char *text = cli_value(args, name);
    if (!text) {
        *ret_value = default_value;
        return 0;
    }
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || end == text || *end || value < 0 || value > max)
        return errmsg_set(e, -EINVAL, "invalid value \"%s\" for flag -%s: not a number from 0 to %ld",
                          text, name, max);
    *ret_value = value;
    return 0;
}

/* Parses the flag at argv[*inout_at]. */
static int cli_parse_flag(struct cli_args *a, char **argv, int argc, int *inout_at, struct errmsg *e)
{
    const char *name = argv[*inout_at] + 1;
    if (*name == '-')
        name++;
    const char *equals = strchr(name, '=');
    size_t len = equals ? (size_t)(equals - name) : strlen(name);
    const struct cli_flag *flag = cli_find_flag(a->flags, name, len);
    if (!flag)
        return errmsg_set(e, -EINVAL, "flag provided but not defined: -%.*s", (int)len, name);
    const char *value = equals ? equals + 1 : NULL;
    if (!flag->takes_value) {
        if (value && strcmp(value, "true") != 0 && strcmp(value, "false") != 0)
            return errmsg_set(e, -EINVAL, "invalid boolean value \"%s\" for -%s: parse error", value,
                              flag->name);
        value = value ? value : "true";
    } else if (!value) {
        if (*inout_at + 1 >= argc)
            return errmsg_set(e, -EINVAL, "flag needs an argument: -%s", flag->name);
        value = argv[++*inout_at];
    }
    if (a->values_len == CLI_VALUES_MAX)
        return errmsg_set(e, -EINVAL, "too many flags");
    a->values[a->values_len].flag = flag;
    a->values[a->values_len++].value = value;
    return 0;
}

int cli_parse(const struct cli_flag *flags, bool permute, char **argv, int argc,
              struct cli_args *ret_args, struct errmsg *e)
{
    static const struct cli_flag none = {.name = NULL};
    *ret_args = (struct cli_args){.flags = flags ? flags : &none};
    int positional = 0;
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--") == 0) {
            while (++i < argc)
                argv[positional++] = argv[i];
            break;
        }
        if (argv[i][0] == '-' && argv[i][1] != '\0') {
            int r = cli_parse_flag(ret_args, argv, argc, &i, e);
            if (r < 0)
                return r;
            continue;
        }
        if (!permute) {
            while (i < argc)
                argv[positional++] = argv[i++];
            break;
        }
        argv[positional++] = argv[i];
    }
    /* Positional arguments were moved down over flags that are already read. */
    argv[positional] = NULL;
    ret_args->argv = argv;
    ret_args->argc = positional;
    return 0;
}

static void cli_print_flags(const struct cli_flag *flags)
{
    for (const struct cli_flag *f = flags; f && f->name; f++) {
        char left[96];
        const char *value = f->takes_value ? " value" : "";
        if (f->letter)
            snprintf(left, sizeof(left), "--%s%s, -%c%s", f->name, value, f->letter, value);
        else
            snprintf(left, sizeof(left), "--%s%s", f->name, value);
        printf("   %-*s  %s", CLI_USAGE_COLUMN, left, f->help);
        if (f->value_default)
            printf(" (default: %s)", f->value_default);
        putchar('\n');
    }
}

void cli_print_usage(const struct cli_verb *const *verbs, const struct cli_flag *globals,
                     const struct cli_verb *verb)
{
    if (verb) {
        printf("NAME:\n   cloister %s - %s\n\nUSAGE:\n   cloister %s%s %s\n", verb->name, verb->summary,
               verb->name, verb->flags ? " [command options]" : "", verb->arguments);
        if (verb->description)
            printf("\n%s\n", verb->description);
        if (verb->flags) {
            printf("\nOPTIONS:\n");
            cli_print_flags(verb->flags);
        }
        return;
    }
    printf("NAME:\n   cloister - container runtime whose containers never reach the host's kernel\n\n"
           "USAGE:\n   cloister [global options] command [command options] [arguments...]\n\n"
           "VERSION:\n   %s\n\nCOMMANDS:\n",
           CLOISTER_VERSION);
    for (; *verbs; verbs++)
        if (!(*verbs)->hidden)
            printf("   %-10s  %s\n", (*verbs)->name, (*verbs)->summary);
    printf("\nGLOBAL OPTIONS:\n");
    cli_print_flags(globals);
}

void cli_report(const struct cli *cli, const char *text)
{
    log_error("%s", text);
    if (cli->log_path)
        fprintf(stderr, "%s\n", text);
}

int cli_open_process_log(const struct cli *cli, bool detached, struct errmsg *e)
{
    const char *path = cli->debug_log ? cli->debug_log : cli->log_path;
    if (path) {
        int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0644);
        if (fd < 0)
            return errmsg_set(e, -errno < -1 ? -errno : -EACCES, "open %s: %s", path, errtext(errno));
        return fd;
    }
    if (detached && !cli->debug && !cli->strace)
        return -1;
    int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    return fd < 0 ? -1 : fd;
}
