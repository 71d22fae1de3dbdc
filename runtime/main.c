/* SPDX-License-Identifier: Apache-2.0 */
/* The cloister program: global flags, the verb table, and the hidden verbs that the runtime starts
 * itself as (boot, gofer). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gofer/server/srv_main.h"
#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "platform/base/log.h"
#include "runtime/boot/boot.h"
#include "runtime/cli.h"
#include "runtime/bootproto.h"
#include "runtime/privs.h"
#include "runtime/sandbox.h"
#include "runtime/verbs.h"
#include "runtime/errtext.h"

enum { EXIT_UNKNOWN_VERB = 3 };

static const struct cli_verb *const main_verbs[] = {
    &cmd_create_verb, &cmd_delete_verb, &cmd_do_verb,     &cmd_doctor_verb, &cmd_events_verb, &cmd_exec_verb, &cmd_export_layer_verb,
    &cmd_features_verb, &cmd_kill_verb, &cmd_list_verb,   &cmd_pause_verb,  &cmd_ps_verb,
    &cmd_resume_verb, &cmd_run_verb,    &cmd_spec_verb,   &cmd_start_verb,  &cmd_state_verb,
    &cmd_update_verb, NULL,
};

static const struct cli_flag main_flags[] = {
    {"debug", 0, false, NULL, "enable debug logging"},
    {"debug-log", 0, true, NULL, "file for the debug log of the sandbox's own processes"},
    {"log", 0, true, NULL, "set the log file to write cloister logs to (default is '/dev/stderr')"},
    {"log-format", 0, true, "\"text\"", "set the log format ('text' or 'json')"},
    {"root", 0, true, "\"/run/cloister\"",
     "root directory for storage of container state (this should be located in tmpfs)"},
    {"rootless", 0, true, "\"auto\"", "ignore cgroup permission errors ('true', 'false', or 'auto')"},
    {"strace", 0, false, NULL, "log every system call of the container with its arguments"},
    {"systemd-cgroup", 0, false, NULL,
     "expect cgroupsPath to be of form \"slice:prefix:name\" as for systemd"},
    {"help", 'h', false, NULL, "show help"},
    {"version", 'v', false, NULL, "print the version"},
    {NULL, 0, false, NULL, NULL},
};


static const struct cli_verb *main_find_verb(const char *name)
{
    for (unsigned i = 0; main_verbs[i]; i++)
        if (strcmp(main_verbs[i]->name, name) == 0)
            return main_verbs[i];
    return NULL;
}

static void main_print_version(void)
{
    printf("cloister version %s\nspec: 1.2.0\n", CLOISTER_VERSION);
}

/* Opens the log and fills cli from the global flags. */
static int main_apply_globals(const struct cli_args *args, struct cli *cli, struct errmsg *e)
{
    const char *format = cli_value(args, "log-format");
    cli->root = cli_value(args, "root");
    if (!cli->root)
        cli->root = "/run/cloister";
    if (!*cli->root)
        return errmsg_set(e, -EINVAL, "root directory must not be empty");
    cli->log_path = cli_value(args, "log");
    cli->debug_log = cli_value(args, "debug-log");
    cli->debug = cli_set(args, "debug");
    cli->strace = cli_set(args, "strace");
    cli->systemd_cgroup = cli_set(args, "systemd-cgroup");
    cli->log_json = format && strcmp(format, "json") == 0;
    cli->log_fd = STDERR_FILENO;
    enum log_level level = cli->debug ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARN;
    log_setup(cli->log_fd, cli->log_json ? LOG_FORMAT_JSON : LOG_FORMAT_TEXT, level);
    if (format && !cli->log_json && strcmp(format, "text") != 0)
        return errmsg_set(e, -EINVAL, "invalid log format \"%s\"", format);
    const char *rootless = cli_value(args, "rootless");
    if (rootless && strcmp(rootless, "auto") != 0 && strcmp(rootless, "true") != 0 &&
        strcmp(rootless, "false") != 0)
        return errmsg_set(e, -EINVAL, "invalid value \"%s\" for flag -rootless", rootless);
    if (!cli->log_path)
        return 0;
    int fd = open(cli->log_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0644);
    if (fd < 0)
        return errmsg_set(e, -errno, "open %s: %s", cli->log_path, errtext(errno));
    cli->log_fd = fd;
    log_setup(fd, cli->log_json ? LOG_FORMAT_JSON : LOG_FORMAT_TEXT, level);
    return 0;
}

static bool main_wants_help(char **argv, int argc, const struct cli_verb *verb)
{
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return true;
        if (strcmp(argv[i], "--") == 0 || (verb->flags_first && argv[i][0] != '-'))
            return false;
    }
    return false;
}

static int main_usage_error(const struct cli *cli, const struct cli_verb *verb, const char *text)
{
    printf("Incorrect Usage%s%s\n\n", text ? ": " : ".", text ? text : "");
    cli_print_usage(main_verbs, main_flags, verb);
    return EXIT_FAILURE;
}

static int main_run_verb(const struct cli *cli, const struct cli_verb *verb, char **argv, int argc)
{
    struct errmsg e = {.text = ""};
    struct cli_args args;
    if (main_wants_help(argv, argc, verb)) {
        cli_print_usage(main_verbs, main_flags, verb);
        return EXIT_SUCCESS;
    }
    if (cli_parse(verb->flags, !verb->flags_first, argv, argc, &args, &e) < 0) {
        int status = main_usage_error(cli, verb, e.text);
        cli_report(cli, e.text);
        return status;
    }
    if (args.argc < verb->min_args || (verb->max_args >= 0 && args.argc > verb->max_args)) {
        bool exact = verb->min_args == verb->max_args;
        int status = main_usage_error(cli, verb, NULL);
        errmsg_set(&e, 0, "cloister: \"%s\" requires %s %d argument(s)", verb->name,
                   exact ? "exactly" : args.argc < verb->min_args ? "a minimum of" : "a maximum of",
                   args.argc < verb->min_args ? verb->min_args : verb->max_args);
        cli_report(cli, e.text);
        return status;
    }
    int r = verb->run(cli, &args, &e);
    if (r >= 0)
        return r;
    if (!e.text[0])
        errmsg_set(&e, r, "%s", errtext(-r));
    cli_report(cli, e.text);
    return verb->failure ? verb->failure : EXIT_FAILURE;
}

static int main_help(int argc, char **argv, const struct cli *cli)
{
    const struct cli_verb *verb = argc > 1 ? main_find_verb(argv[1]) : NULL;
    if (argc > 1 && !verb) {
        struct errmsg e;
        errmsg_set(&e, 0, "No help topic for '%s'", argv[1]);
        cli_report(cli, e.text);
        return EXIT_UNKNOWN_VERB;
    }
    cli_print_usage(main_verbs, main_flags, verb);
    return EXIT_SUCCESS;
}

/* A closed standard descriptor would be taken by the next open, and a container's log line could
 * land in a state file. */
static void main_fill_stdio(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) >= 0)
            continue;
        int null = open("/dev/null", O_RDWR);
        if (null >= 0 && null != fd) {
            dup2(null, fd);
            close(null);
        }
    }
}

/* `cloister gofer`: from the descriptors that its creator placed to the file server. */
static int main_gofer(void)
{
    struct gofer_params params;
    struct errmsg e = {.text = ""};
    char *memory;
    int r = gofer_params_read(GOFER_FD_PARAMS, &params, &memory);
    if (r < 0) {
        fprintf(stderr, "cloister gofer is started by cloister create and run only\n");
        return EXIT_FAILURE;
    }
    host_close(GOFER_FD_PARAMS);
    log_setup(params.have_log ? GOFER_FD_LOG : -1, params.log_json ? LOG_FORMAT_JSON : LOG_FORMAT_TEXT,
              (enum log_level)params.log_level);
    log_set_tag("gofer");
    struct gofer_tree *trees = NEW_ARRAY(struct gofer_tree, params.trees_len);
    r = trees ? privs_keep_file_set(params.immutable, &e) : -ENOMEM;
    if (r < 0) {
        char text[1 + sizeof(e.text)];
        int len = snprintf(text, sizeof(text), "E%s", e.text[0] ? e.text : "out of memory");
        return host_write_all(GOFER_FD_READY, text, (size_t)len) < 0 ? 2 : EXIT_FAILURE;
    }
    for (uint32_t i = 0; i < params.trees_len; i++)
        trees[i] = (struct gofer_tree){.fd = GOFER_FD_TREES + (int)i, .read_only = params.read_only[i]};
    const struct gofer_server_config config = {
        .sock = GOFER_FD_SOCK,
        .shm = GOFER_FD_SHM,
        .proc_self_fd = GOFER_FD_PROC_SELF,
        .trees = trees,
        .trees_len = params.trees_len,
        .filter_default = params.debug ? HOSTFILTER_REPORT : HOSTFILTER_KILL,
    };
    srv_main(&config, GOFER_FD_READY);
}

#ifdef __SANITIZE_ADDRESS__
/* Every process of the program ends with memory in use, which the host takes back; the unit tests look for leaks. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}
#endif

/* The verbs that the program starts itself as. Return: exit status, −1 for any other verb. */
static int main_hidden(const char *verb)
{
    if (strcmp(verb, "boot") == 0)
        return boot_main();
    if (strcmp(verb, "gofer") == 0)
        return main_gofer();
    return -1;
}

int main(int argc, char **argv)
{
#ifdef __SANITIZE_ADDRESS__
    sandbox_set_verb_main(main_hidden);
#endif
    int hidden = argc >= 2 ? main_hidden(argv[1]) : -1;
    if (hidden >= 0)
        return hidden;
    main_fill_stdio();

    struct cli cli = {.root = "/run/cloister", .log_fd = STDERR_FILENO};
    struct cli_args args;
    struct errmsg e = {.text = ""};
    if (argc < 1)
        return EXIT_FAILURE;
    if (cli_parse(main_flags, false, argv + 1, argc - 1, &args, &e) < 0) {
        int status = main_usage_error(&cli, NULL, e.text);
        cli_report(&cli, e.text);
        return status;
    }
    if (cli_set(&args, "version")) {
        main_print_version();
        return EXIT_SUCCESS;
    }
    if (main_apply_globals(&args, &cli, &e) < 0) {
        cli_report(&cli, e.text);
        return EXIT_FAILURE;
    }
    if (cli_set(&args, "help") || args.argc == 0) {
        cli_print_usage(main_verbs, main_flags, NULL);
        return EXIT_SUCCESS;
    }
    if (strcmp(args.argv[0], "help") == 0 || strcmp(args.argv[0], "h") == 0)
        return main_help(args.argc, args.argv, &cli);
    const struct cli_verb *verb = main_find_verb(args.argv[0]);
    if (!verb) {
        errmsg_set(&e, 0, "No help topic for '%s'", args.argv[0]);
        cli_report(&cli, e.text);
        return EXIT_UNKNOWN_VERB;
    }
    return main_run_verb(&cli, verb, args.argv + 1, args.argc - 1);
}
