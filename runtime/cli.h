/* SPDX-License-Identifier: Apache-2.0 */
/* Command line: verbs, their flags in the manner of runc, usage texts, and how a verb fails. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "platform/base/compiler.h"
#include "platform/base/errmsg.h"

/* What the flags before the verb say. Strings belong to argv. */
struct cli {
    const char *root;      /* state directory */
    const char *log_path;  /* NULL: standard error */
    bool log_json;
    bool debug;
    bool systemd_cgroup;
    bool strace;
    const char *debug_log; /* file for the sentry's and gofer's debug log; NULL: none */
    int log_fd;            /* where this command's own log lines go */
};

struct cli_flag {
    const char *name;       /* without dashes */
    char letter;            /* short form, 0: none */
    bool takes_value;
    const char *value_default; /* shown in the usage text; NULL: none */
    const char *help;
};

enum { CLI_VALUES_MAX = 256 };

/* The arguments of one verb after parsing. */
struct cli_args {
    const struct cli_flag *flags;
    struct {
        const struct cli_flag *flag;
        const char *value; /* "true" for a flag without value */
    } values[CLI_VALUES_MAX];
    unsigned values_len;
    char **argv; /* positional arguments, NULL-terminated */
    int argc;
};

struct cli_verb {
    const char *name, *summary;
    const char *arguments;   /* for the usage line: "<container-id>" */
    const char *description; /* may be NULL */
    const struct cli_flag *flags; /* ends with a NULL name; may be NULL */
    int min_args, max_args;  /* −1: any number */
    bool flags_first;        /* flags end at the first positional argument (exec, do) */
    bool hidden;             /* not in the usage text */
    int failure;             /* exit status after an error */
    /* Return: exit status ≥ 0, or −errno with the message in e. */
    int (*run)(const struct cli *cli, const struct cli_args *args, struct errmsg *e);
};

/* Last value of a flag. Return: NULL if it was not given. Owns: argv. */
const char *cli_value(const struct cli_args *args, const char *name);
/* Every value of a repeatable flag: *at starts at 0. Return: the next one, or NULL after the last. */
const char *cli_next_value(const struct cli_args *args, const char *name, unsigned *at);
/* Whether a flag without value was given (and not as --flag=false). */
bool cli_set(const struct cli_args *args, const char *name);
/* Value of a number flag in [0, max]; default_value when absent. Return: 0. Errors: EINVAL. */
MUST_CHECK int cli_number(const struct cli_args *args, const char *name, long default_value, long max,
                          long *ret_value, struct errmsg *e);

/* Takes flags off *inout_argv until a positional argument ("--" ends flags); with permute, goes on
 * past positional ones. Return: 0. Errors: EINVAL. */
MUST_CHECK int cli_parse(const struct cli_flag *flags, bool permute, char **argv, int argc,
                         struct cli_args *ret_args, struct errmsg *e);

/* Prints the usage text of the program (verb NULL) or of one verb to standard output. */
void cli_print_usage(const struct cli_verb *const *verbs, const struct cli_flag *globals,
                     const struct cli_verb *verb);

/* Writes the error to the log and, if the log is a file, to standard error as well. */
void cli_report(const struct cli *cli, const char *text);

/* What log lines of long-lived processes go to. detached: the command ends before they do, so its
 * standard error must not be kept open. Return: a new descriptor, −1 for none, or −errno < −1. */
MUST_CHECK int cli_open_process_log(const struct cli *cli, bool detached, struct errmsg *e);
