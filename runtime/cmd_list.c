/* SPDX-License-Identifier: Apache-2.0 */
/* list: prints every container under --root. */
#include "runtime/verbs.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "platform/base/alloc.h"
#include "platform/base/buf.h"
#include "platform/base/host.h"
#include "platform/base/log.h"
#include "runtime/ctr.h"
#include "runtime/errtext.h"

enum { CMD_LIST_COLUMNS = 6, CMD_LIST_PADDING = 3 };

struct cmd_list_rows {
    char *(*v)[CMD_LIST_COLUMNS];
    unsigned len;
};

static int cmd_list_compare(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int cmd_list_add_row(struct cmd_list_rows *rows, const struct ocistate *s)
{
    void *bigger = mem_realloc(rows->v, rows->len + 1, sizeof(*rows->v));
    if (!bigger)
        return -ENOMEM;
    rows->v = bigger;
    char pid[16];
    snprintf(pid, sizeof(pid), "%d", (int)s->pid);
    struct buf created = {.data = NULL};
    ocistate_write_time(&created, s->created);
    char **row = rows->v[rows->len++];
    row[0] = mem_strdup(s->id);
    row[1] = mem_strdup(pid);
    row[2] = mem_strdup(ocistate_status_name(s->status));
    row[3] = mem_strdup(s->bundle);
    row[4] = created.data;
    row[5] = mem_strdup(s->owner ? s->owner : "");
    for (int i = 0; i < CMD_LIST_COLUMNS; i++)
        if (!row[i])
            return -ENOMEM;
    return 0;
}

static void cmd_list_print_table(const struct cmd_list_rows *rows, struct buf *out)
{
    static const char *const head[CMD_LIST_COLUMNS] = {"ID", "PID", "STATUS", "BUNDLE", "CREATED", "OWNER"};
    size_t width[CMD_LIST_COLUMNS];
    for (int i = 0; i < CMD_LIST_COLUMNS; i++) {
        width[i] = MAX(strlen(head[i]), (size_t)9);
        for (unsigned j = 0; j < rows->len; j++)
            width[i] = MAX(width[i], strlen(rows->v[j][i]));
    }
    for (unsigned j = 0; j <= rows->len; j++) {
        const char *const *row = j ? (const char *const *)rows->v[j - 1] : head;
        for (int i = 0; i < CMD_LIST_COLUMNS; i++) {
            bool last = i == CMD_LIST_COLUMNS - 1;
            buf_printf(out, "%-*s", last ? 0 : (int)width[i] + CMD_LIST_PADDING, row[i]);
        }
        buf_putc(out, '\n');
    }
}

static int cmd_list_one(const struct cli *cli, const char *id, const char *format, bool quiet,
                        struct cmd_list_rows *rows, struct buf *out)
{
    struct ctr c;
    struct errmsg ignored = {.text = ""};
    int r = ctr_open(cli, id, &c, &ignored);
    if (r < 0) {
        if (r != -ENOENT)
            log_warn("load container %s: %s", id, ignored.text);
        return 0; /* one that is not a container, or just went away */
    }
    struct ocistate state;
    ctr_describe(&c, &state);
    if (quiet) {
        buf_printf(out, "%s\n", id);
    } else if (strcmp(format, "json") == 0) {
        buf_puts(out, rows->len++ ? "," : "[");
        ocistate_write(out, &state, NULL);
    } else {
        r = cmd_list_add_row(rows, &state);
    }
    ctr_close(&c);
    return r;
}

static int cmd_list_all(const struct cli *cli, const char *format, bool quiet, struct errmsg *e)
{
    CLEANUP_BUF struct buf out = {.data = NULL};
    struct cmd_list_rows rows = {.len = 0};
    struct dirent **names = NULL;
    int count = scandir(cli->root, &names, NULL, cmd_list_compare), r = 0;
    if (count < 0 && errno != ENOENT)
        return errmsg_set(e, -errno, "open %s: %s", cli->root, errtext(errno));
    for (int i = 0; i < count; i++) {
        if (r == 0 && names[i]->d_name[0] != '.')
            r = cmd_list_one(cli, names[i]->d_name, format, quiet, &rows, &out);
        free(names[i]);
    }
    free(names);
    if (!quiet && strcmp(format, "json") == 0)
        buf_puts(&out, rows.len ? "]\n" : "null\n");
    else if (!quiet)
        cmd_list_print_table(&rows, &out);
    for (unsigned j = 0; rows.v && j < rows.len; j++)
        for (int i = 0; i < CMD_LIST_COLUMNS; i++)
            mem_free(rows.v[j][i]);
    mem_free(rows.v);
    if (r == 0)
        r = buf_error(&out);
    if (r == 0 && out.size)
        r = host_write_all(STDOUT_FILENO, out.data, out.size);
    return r < 0 ? errmsg_set(e, r, "list: %s", errtext(r)) : 0;
}

static int cmd_list_run(const struct cli *cli, const struct cli_args *args, struct errmsg *e)
{
    const char *format = cli_value(args, "format");
    format = format ? format : "table";
    if (strcmp(format, "table") != 0 && strcmp(format, "json") != 0)
        return errmsg_set(e, -EINVAL, "invalid format option");
    return cmd_list_all(cli, format, cli_set(args, "quiet"), e);
}

static const struct cli_flag cmd_list_flags[] = {
    {"format", 'f', true, "\"table\"", "select one of: table or json"},
    {"quiet", 'q', false, NULL, "display only container IDs"},
    {NULL, 0, false, NULL, NULL},
};

const struct cli_verb cmd_list_verb = {
    .name = "list",
    .summary = "lists containers started by cloister with the given root",
    .arguments = "",
    .flags = cmd_list_flags,
    .min_args = 0,
    .max_args = 0,
    .run = cmd_list_run,
};
