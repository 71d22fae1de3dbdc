/* SPDX-License-Identifier: Apache-2.0 */
/* kill: sends a signal to a container. */
#include "runtime/verbs.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/ctr.h"

enum { CMD_KILL_RTMIN = 32, CMD_KILL_RTMAX = 64 }; /* the kernel's, not libc's */

/* Number of a signal named "9", "KILL" or "SIGKILL", in any case. Return: −1 if there is none. */
static int cmd_kill_signal(const char *text)
{
    char *end;
    long number = strtol(text, &end, 10);
    if (*text && !*end)
        return number >= 0 && number <= INT32_MAX ? (int)number : -1;
    char name[32];
    snprintf(name, sizeof(name), "%s", text);
    for (char *c = name; *c; c++)
        *c = (char)toupper((unsigned char)*c);
    const char *bare = strncmp(name, "SIG", 3) == 0 ? name + 3 : name;
    for (int signo = 1; signo < CMD_KILL_RTMIN; signo++) {
        const char *abbrev = sigabbrev_np(signo);
        if (abbrev && strcmp(abbrev, bare) == 0)
            return signo;
    }
    if (strncmp(bare, "RTMIN+", 6) == 0 && isdigit((unsigned char)bare[6]) && atoi(bare + 6) <= 30)
        return SIGRTMIN + atoi(bare + 6);
    if (strncmp(bare, "RTMAX-", 6) == 0 && isdigit((unsigned char)bare[6]) && atoi(bare + 6) <= 30)
        return CMD_KILL_RTMAX - atoi(bare + 6);
    if (strcmp(bare, "RTMIN") == 0)
        return SIGRTMIN;
    return strcmp(bare, "RTMAX") == 0 ? CMD_KILL_RTMAX : -1;
}

static int cmd_kill_run(const struct cli *cli, const struct cli_args *args, struct errmsg *e)
{
    const char *name = args->argc > 1 ? args->argv[1] : "SIGTERM";
    struct ctr c;
    int r = ctr_open(cli, args->argv[0], &c, e);
    if (r < 0)
        return r;
    int signo = cmd_kill_signal(*name ? name : "SIGTERM");
    if (signo < 0)
        r = errmsg_set(e, -EINVAL, "unknown signal \"%s\"", name);
    else
        r = ctr_kill(&c, signo, cli_set(args, "all"), e);
    ctr_close(&c);
    return r;
}

static const struct cli_flag cmd_kill_flags[] = {
    {"all", 'a', false, NULL, "send the specified signal to all processes inside the container"},
    {NULL, 0, false, NULL, NULL},
};

const struct cli_verb cmd_kill_verb = {
    .name = "kill",
    .summary = "kill sends the specified signal (default: SIGTERM) to the container's init process",
    .arguments = "<container-id> [signal]",
    .flags = cmd_kill_flags,
    .min_args = 1,
    .max_args = 2,
    .run = cmd_kill_run,
};
