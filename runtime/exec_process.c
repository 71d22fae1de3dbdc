/* SPDX-License-Identifier: Apache-2.0 */
/* Building the process.json of an exec. */
#include "runtime/exec_process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oci/json.h"
#include "oci/spec.h"
#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "runtime/errtext.h"
#include "runtime/layer_store.h"
#include "runtime/rootfs.h"

enum { EXEC_PROCESS_MAX = 4 << 20, EXEC_PROCESS_LIST_MAX = 1024 };

static int exec_process_parse_id(const char *text, const char *what, uint32_t *ret_id, struct errmsg *e)
{
    char *end;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    if (errno || end == text || *end || value > UINT32_MAX - 1)
        return errmsg_set(e, -EINVAL, "parsing %s as int for %s failed: invalid syntax", text, what);
    *ret_id = (uint32_t)value;
    return 0;
}

/* --user UID[:GID] and --additional-gids. */
static int exec_process_user(const struct cli_args *args, struct oci_user *user, uint32_t *gids,
                             struct errmsg *e)
{
    const char *text = cli_value(args, "user");
    int r = 0;
    if (text) {
        char uid[32];
        const char *colon = strchr(text, ':');
        snprintf(uid, sizeof(uid), "%.*s", (int)(colon ? colon - text : (long)strlen(text)), text);
        r = exec_process_parse_id(uid, "uid", &user->uid, e);
        if (r == 0 && colon)
            r = exec_process_parse_id(colon + 1, "gid", &user->gid, e);
    }
    unsigned at = 0, len = 0;
    const char *gid;
    while (r == 0 && (gid = cli_next_value(args, "additional-gids", &at))) {
        if (len == EXEC_PROCESS_LIST_MAX)
            return errmsg_set(e, -E2BIG, "too many additional gids");
        r = exec_process_parse_id(gid, "additional gid", &gids[len++], e);
    }
    if (len) {
        user->additional_gids = gids;
        user->additional_gids_len = len;
    }
    return r;
}

/* --cap adds a capability to every set but the ambient one. */
static int exec_process_caps(const struct cli_args *args, struct oci_capabilities *caps, struct errmsg *e)
{
    unsigned at = 0;
    const char *name;
    while ((name = cli_next_value(args, "cap", &at))) {
        int number = oci_capability_number(name);
        if (number < 0)
            return errmsg_set(e, -EINVAL, "unknown capability \"%s\"", name);
        uint64_t bit = UINT64_C(1) << number;
        caps->set = true;
        caps->bounding |= bit;
        caps->effective |= bit;
        caps->permitted |= bit;
    }
    return 0;
}

static void exec_process_put_caps(struct json_writer *w, const char *key, uint64_t set)
{
    json_open_array(w, key);
    for (unsigned i = 0; i < 64; i++)
        if ((set >> i & 1) && oci_capability_name(i))
            json_put_string(w, NULL, oci_capability_name(i));
    json_close_array(w);
}

static void exec_process_put_user(struct json_writer *w, const struct oci_user *user)
{
    json_open_object(w, "user");
    json_put_u64(w, "uid", user->uid);
    json_put_u64(w, "gid", user->gid);
    if (user->umask_set)
        json_put_u64(w, "umask", user->umask);
    json_open_array(w, "additionalGids");
    for (unsigned i = 0; i < user->additional_gids_len; i++)
        json_put_u64(w, NULL, user->additional_gids[i]);
    json_close_array(w);
    json_close_object(w);
}

static void exec_process_put_rlimits(struct json_writer *w, const struct oci_process *p)
{
    json_open_array(w, "rlimits");
    for (unsigned i = 0; i < p->rlimits_len; i++) {
        json_open_object(w, NULL);
        json_put_string(w, "type", p->rlimits[i].name);
        json_put_u64(w, "soft", p->rlimits[i].soft);
        json_put_u64(w, "hard", p->rlimits[i].hard);
        json_close_object(w);
    }
    json_close_array(w);
}

static void exec_process_write(struct buf *out, const struct oci_process *p, const struct cli_args *args,
                               const char *home)
{
    struct json_writer w;
    json_writer_init(&w, out, NULL);
    json_open_object(&w, NULL);
    json_put_bool(&w, "terminal", p->terminal);
    exec_process_put_user(&w, &p->user);
    json_put_strings(&w, "args", p->args.v);
    json_open_array(&w, "env");
    bool have_home = false;
    for (unsigned i = 0; i < p->env.len; i++) {
        json_put_string(&w, NULL, p->env.v[i]);
        have_home |= strncmp(p->env.v[i], "HOME=", 5) == 0;
    }
    unsigned at = 0;
    const char *env;
    while (args && (env = cli_next_value(args, "env", &at))) {
        json_put_string(&w, NULL, env);
        have_home |= strncmp(env, "HOME=", 5) == 0;
    }
    if (!have_home) {
        CLEANUP_BUF struct buf text = {.data = NULL};
        buf_printf(&text, "HOME=%s", home);
        json_put_string(&w, NULL, text.data ? text.data : "HOME=/");
    }
    json_close_array(&w);
    json_put_string(&w, "cwd", p->cwd);
    if (p->capabilities.set) {
        json_open_object(&w, "capabilities");
        exec_process_put_caps(&w, "bounding", p->capabilities.bounding);
        exec_process_put_caps(&w, "effective", p->capabilities.effective);
        exec_process_put_caps(&w, "inheritable", p->capabilities.inheritable);
        exec_process_put_caps(&w, "permitted", p->capabilities.permitted);
        exec_process_put_caps(&w, "ambient", p->capabilities.ambient);
        json_close_object(&w);
    }
    exec_process_put_rlimits(&w, p);
    json_put_bool(&w, "noNewPrivileges", p->no_new_privileges);
    if (p->oom_score_adj_set)
        json_put_i64(&w, "oomScoreAdj", p->oom_score_adj);
    json_close_object(&w);
}

/* Home directory of the user by the container's root as the host sees it. */
static int exec_process_home(const struct ctr *c, uint32_t uid, char **ret_home)
{
    CLEANUP_CLOSE int root = open(c->state.rootfs, O_PATH | O_DIRECTORY | O_CLOEXEC);
    CLEANUP_CLOSE int upper = c->state.layer[0] ? layer_store_open_upper(c->state.layer) : -1;
    return rootfs_home(upper, root, uid, ret_home);
}

/* The program and the flags on top of the container's own process. */
static int exec_process_from_flags(const struct ctr *c, const struct cli_args *args, struct buf *out,
                                   bool *ret_terminal, struct errmsg *e)
{
    CLEANUP_FREE char *json = NULL, *home = NULL;
    CLEANUP_FREE uint32_t *gids = mem_calloc(EXEC_PROCESS_LIST_MAX, sizeof(*gids));
    size_t size;
    struct oci_spec *spec = NULL;
    int r = gids ? statefile_read_config(c->dir, &json, &size, e) : -ENOMEM;
    if (r == 0)
        r = oci_spec_parse(json, size, &spec, e);
    if (r < 0)
        return r;
    struct oci_process p = spec->process;
    p.args = (struct oci_strings){.v = (const char *const *)args->argv + 1,
                                  .len = (unsigned)args->argc - 1};
    p.terminal = cli_set(args, "tty");
    if (cli_value(args, "cwd"))
        p.cwd = cli_value(args, "cwd");
    if (cli_set(args, "no-new-privs"))
        p.no_new_privileges = true;
    r = exec_process_user(args, &p.user, gids, e);
    if (r == 0)
        r = exec_process_caps(args, &p.capabilities, e);
    if (r == 0 && exec_process_home(c, p.user.uid, &home) < 0)
        r = errmsg_set(e, -ENOMEM, "out of memory");
    if (r == 0) {
        exec_process_write(out, &p, args, home);
        *ret_terminal = p.terminal;
    }
    oci_spec_free(spec);
    return r;
}

/* --process FILE: taken as it is, but for a HOME if it has none. */
static int exec_process_from_file(const struct ctr *c, const char *path, const struct cli_args *args,
                                  struct buf *out, bool *ret_terminal, struct errmsg *e)
{
    CLEANUP_FREE char *json = NULL, *home = NULL;
    size_t size;
    struct oci_process_doc *doc = NULL;
    int r = host_read_file(AT_FDCWD, path, EXEC_PROCESS_MAX, &json, &size);
    if (r < 0)
        return errmsg_set(e, r, "open %s: %s", path, errtext(r));
    r = oci_process_parse(json, size, &doc, e);
    if (r < 0)
        return r;
    if (cli_set(args, "tty"))
        doc->process.terminal = true;
    if (exec_process_home(c, doc->process.user.uid, &home) < 0) {
        r = errmsg_set(e, -ENOMEM, "out of memory");
    } else {
        exec_process_write(out, &doc->process, NULL, home);
        *ret_terminal = doc->process.terminal;
    }
    oci_process_doc_free(doc);
    return r;
}

int exec_process_build(const struct ctr *c, const struct cli_args *args, struct buf *out,
                       bool *ret_terminal, struct errmsg *e)
{
    const char *path = cli_value(args, "process");
    int r;
    if (path)
        r = exec_process_from_file(c, path, args, out, ret_terminal, e);
    else if (args->argc < 2)
        r = errmsg_set(e, -EINVAL, "process args cannot be empty");
    else
        r = exec_process_from_flags(c, args, out, ret_terminal, e);
    if (r == 0 && buf_error(out) < 0)
        r = errmsg_set(e, -ENOMEM, "out of memory");
    return r;
}
