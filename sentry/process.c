/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that the runtime starts in a container. */
#include "sentry/process.h"

#include <ctype.h>
#include <errno.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "sentry/core/cred.h"
#include "sentry/core/limits.h"
#include "sentry/fs/hostfd.h"
#include "sentry/fs/tty_console.h"
#include "sentry/ipc/ipcns.h"
#include "sentry/kernel/exec.h"
#include "sentry/kernel/fdtable.h"
#include "sentry/kernel/fsctx.h"
#include "sentry/kernel/guest_seccomp.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/task_run.h"
#include "sentry/kernel/tgroup.h"
#include "sentry/kernel/utsns.h"
#include "sentry/sentry.h"

#define PROCESS_UMASK 022
enum { PROCESS_PASSWD_MAX = 1 << 20 };

struct process_args {
    struct exec_strings argv, envp;
};

/* A host error's text in the way of Go programs. */
static const char *error_text(int err, char *text, size_t size)
{
    const char *s = strerror(-err);

    strncpy(text, s, size - 1);
    text[size - 1] = '\0';
    text[0] = (char)tolower((unsigned char)text[0]);
    return text;
}

static int compare_ids(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

static int make_cred(struct container *c, const struct sentry_process *p, const struct cred **ret_cred)
{
    struct cred *root, *cred;
    int r;

    if (p->groups_len > LIMIT_GROUPS)
        return -EINVAL;
    r = cred_new_root(&root);
    if (r)
        return r;
    r = cred_dup(root, p->groups_len, &cred);
    cred_unref(root);
    if (r)
        return r;
    cred->uid = cred->euid = cred->suid = cred->fsuid = p->uid;
    cred->gid = cred->egid = cred->sgid = cred->fsgid = p->gid;
    cred->cap_effective = p->cap_effective & p->cap_permitted;
    cred->cap_permitted = p->cap_permitted;
    cred->cap_inheritable = p->cap_inheritable;
    cred->cap_bounding = p->cap_bounding;
    cred->cap_ambient = p->cap_ambient & p->cap_permitted & p->cap_inheritable;
    if (p->groups_len)
        memcpy(cred->groups, p->groups, p->groups_len * sizeof(p->groups[0]));
    qsort(cred->groups, p->groups_len, sizeof(p->groups[0]), compare_ids);
    *ret_cred = cred;
    return 0;
}

static void set_limits(struct tgroup *g, const struct sentry_process *p)
{
    for (int i = 0; i < TASK_RLIMITS; i++)
        g->rlimits[i] = (struct rlimit){RLIM_INFINITY, RLIM_INFINITY};
    /* What a booted Linux gives its first process. */
    g->rlimits[RLIMIT_STACK].rlim_cur = 8UL << 20;
    g->rlimits[RLIMIT_CORE].rlim_cur = 0;
    g->rlimits[RLIMIT_NOFILE] = (struct rlimit){1024, LIMIT_NR_OPEN};
    g->rlimits[RLIMIT_MEMLOCK] = (struct rlimit){8UL << 20, 8UL << 20};
    g->rlimits[RLIMIT_NPROC] = (struct rlimit){LIMIT_TASKS, LIMIT_TASKS};
    g->rlimits[RLIMIT_SIGPENDING] = (struct rlimit){LIMIT_TASKS, LIMIT_TASKS};
    g->rlimits[RLIMIT_MSGQUEUE] = (struct rlimit){819200, 819200};
    g->rlimits[RLIMIT_NICE] = g->rlimits[RLIMIT_RTPRIO] = (struct rlimit){0, 0};
    for (unsigned i = 0; i < p->rlimits_len; i++) {
        const struct sentry_rlimit *l = &p->rlimits[i];

        if (l->resource < 0 || l->resource >= TASK_RLIMITS)
            continue;
        g->rlimits[l->resource] = (struct rlimit){l->soft, l->hard};
        if (l->resource == RLIMIT_NOFILE) {
            g->rlimits[RLIMIT_NOFILE].rlim_cur = MIN(l->soft, (uint64_t)LIMIT_NR_OPEN);
            g->rlimits[RLIMIT_NOFILE].rlim_max = MIN(l->hard, (uint64_t)LIMIT_NR_OPEN);
        }
    }
}

static int make_nsproxy(struct container *c, struct pidns *ns, struct nsproxy **ret)
{
    struct nsproxy like = {
        .mnt = c->mntns, .uts = c->utsns, .ipc = c->ipcns, .net = c->netns, .pid_for_children = ns,
        .time = c->timens, .time_for_children = c->timens};

    return nsproxy_dup(&like, ret);
}

/* The task with all that does not need files. */
static int make_task(struct container *c, const struct sentry_process *p, struct task **ret_task)
{
    struct tgroup *g;
    struct task *t;
    int r = tgroup_new(c, &g);

    if (r)
        return r;
    set_limits(g, p);
    g->oom_score_adj = p->oom_score_adj;
    r = sighand_new(&g->sighand);
    if (!r)
        r = task_new(c->kernel, g, c->pidns, NULL, &t);
    tgroup_unref(g);
    if (r)
        return r;
    r = make_cred(c, p, &t->ctx.cred);
    if (!r)
        r = make_nsproxy(c, c->pidns, &t->ns);
    if (!r)
        r = fdtable_new(&t->files);
    if (r) {
        task_abandon(t);
        return r;
    }
    t->no_new_privs = p->no_new_privs;
    *ret_task = t;
    return 0;
}

/* Makes path and the directories above it, as far as they are missing. */
static int make_dirs(struct ctx *ctx, const struct walk_base *base, const char *path)
{
    CLEANUP_FREE char *copy = mem_strdup(path);
    int r = 0;

    if (!copy)
        return -ENOMEM;
    for (char *at = copy + 1;; at++) {
        char was = *at;

        if (was && was != '/')
            continue;
        *at = '\0';
        r = vfs_mkdir(ctx, base, copy, 0755);
        *at = was;
        if (r == -EEXIST)
            r = 0;
        if (r || !was)
            return r;
    }
}

static int set_cwd(struct task *t, const struct sentry_process *p, bool is_init, struct errmsg *e)
{
    struct container *c = t->group->container;
    CLEANUP_PATH struct path root = mntns_root(c->mntns), cwd = {0};
    struct walk_base base = {.root = &root, .cwd = &root, .umask = PROCESS_UMASK};
    struct ctx admin = {0};
    const char *path = p->cwd && p->cwd[0] ? p->cwd : "/";
    struct cred *root_cred;
    char text[128];
    int r = cred_new_root(&root_cred);

    if (r)
        return errmsg_set(e, r, "out of memory");
    admin.cred = root_cred;
    r = walk_path(&admin, &base, path, WALK_FOLLOW | WALK_DIRECTORY, &cwd);
    if (r == -ENOENT && is_init) {
        r = make_dirs(&admin, &base, path);
        if (!r)
            r = walk_path(&admin, &base, path, WALK_FOLLOW | WALK_DIRECTORY, &cwd);
    }
    cred_unref(root_cred);
    if (r && is_init)
        return errmsg_set(e, r, "error during container init: mkdir %s: %s", path,
                          error_text(r, text, sizeof(text)));
    if (!r)
        r = inode_permission(&t->ctx, cwd.dentry->inode, MAY_EXEC);
    if (r)
        return errmsg_set(e, r, "chdir to cwd (\"%s\") set in config.json failed: %s", path,
                          error_text(r, text, sizeof(text)));
    r = fsctx_new(&root, &cwd, p->umask == UINT32_MAX ? PROCESS_UMASK : p->umask & 0777, &t->fs);
    return r ? errmsg_set(e, r, "out of memory") : 0;
}

/* Puts f at exactly the descriptor fd, the lowest free one. Consumes f. */
static int put_fd(struct task *t, int fd, OWNS struct file *f)
{
    int got = fdtable_add(t, f, (uint32_t)fd, false);

    return got < 0 ? got : got == fd ? 0 : -EBADF;
}

static int open_terminal(struct task *t, const struct walk_base *base, const struct sentry_process *p, bool is_init,
                         struct process *pr)
{
    struct file *f;
    int r = tty_console_open(&t->ctx, base, p->console, p->console_rows, p->console_cols, p->uid, &f);

    if (r)
        return r;
    if (is_init)
        r = tty_console_bind(&t->ctx, base, f);
    pr->tty = tty_console_get(f);
    for (int fd = 0; fd < 3 && !r; fd++)
        r = put_fd(t, fd, file_ref(f));
    file_unref(f);
    return r;
}

/* Descriptors 0 to 2 and the preserved ones. taken counts what has been consumed of p's. */
static int open_files(struct task *t, const struct sentry_process *p, bool is_init, struct process *pr,
                      unsigned *taken)
{
    struct walk_base base = {.root = &t->fs->root, .cwd = &t->fs->root};
    struct file *f;
    int r = 0;

    if (p->terminal) {
        *taken = 3;
        r = open_terminal(t, &base, p, is_init, pr);
    }
    while (!r && *taken < 3) {
        int at = (int)(*taken)++;

        if (p->stdio[at] < 0)
            continue;
        r = hostfd_open_stdio(&t->ctx, &base, p->stdio[at], p->uid, &f);
        if (!r)
            r = put_fd(t, at, f);
    }
    while (!r && *taken < 3 + p->preserve_fds_len) {
        unsigned at = (*taken)++;

        r = hostfd_new(p->preserve_fds[at - 3], p->uid, t->ctx.cred, &f);
        if (!r)
            r = put_fd(t, (int)at, f);
    }
    return r;
}

static void drop_descriptors(const struct sentry_process *p, unsigned taken)
{
    for (unsigned i = taken; i < 3; i++) {
        if (p->terminal) {
            host_close(p->console);
            break;
        }
        host_close(p->stdio[i]);
    }
    for (unsigned i = taken < 3 ? 0 : taken - 3; i < p->preserve_fds_len; i++)
        host_close(p->preserve_fds[i]);
}

static const char *path_of(char *const *envp)
{
    for (; envp && *envp; envp++) {
        if (!strncmp(*envp, "PATH=", 5))
            return *envp + 5;
    }
    return "";
}

static int try_program(struct task *t, const char *path, struct file **ret_file)
{
    struct walk_base base = {.root = &t->fs->root, .cwd = &t->fs->cwd};

    return exec_open(&t->ctx, &base, path, WALK_FOLLOW, ret_file);
}

static int search_path(struct task *t, const char *name, const char *dirs, struct process *pr)
{
    while (name[0] && *dirs) {
        size_t len = strcspn(dirs, ":");
        size_t size = len + strlen(name) + 3;
        char *path = mem_zalloc(size);

        if (!path)
            return -ENOMEM;
        memcpy(path, len ? dirs : ".", len ? len : 1);
        strcat(path, "/");
        strcat(path, name);
        if (!try_program(t, path, &pr->file)) {
            pr->path = path;
            return 0;
        }
        mem_free(path);
        dirs += len + (dirs[len] == ':');
    }
    return -ENOENT;
}

/* Finds the program as runc does, with its words when it can't. */
static int find_program(struct task *t, const struct sentry_process *p, struct process *pr, struct errmsg *e)
{
    const char *name = p->argv && p->argv[0] ? p->argv[0] : "";
    CLEANUP_PATH struct path found = {0};
    struct walk_base base = {.root = &t->fs->root, .cwd = &t->fs->cwd};
    char text[128];
    int r;

    if (!strchr(name, '/')) {
        r = search_path(t, name, path_of(p->envp), pr);
        if (r == -ENOENT)
            return errmsg_set(e, r, "exec: \"%s\": executable file not found in $PATH", name);
        return r ? errmsg_set(e, r, "out of memory") : 0;
    }
    r = walk_path(&t->ctx, &base, name, WALK_FOLLOW, &found);
    if (r)
        return errmsg_set(e, r, "exec: \"%s\": stat %s: %s", name, name, error_text(r, text, sizeof(text)));
    pr->path = mem_strdup(name);
    if (!pr->path)
        return errmsg_set(e, -ENOMEM, "out of memory");
    r = try_program(t, name, &pr->file);
    return r ? errmsg_set(e, r, "exec: \"%s\": %s", name, error_text(r, text, sizeof(text))) : 0;
}

static bool has_variable(const struct exec_strings *envp, const char *name)
{
    const char *p = envp->bytes.data;
    size_t len = strlen(name);

    for (uint32_t i = 0; i < envp->count; i++, p += strlen(p) + 1) {
        if (!strncmp(p, name, len) && p[len] == '=')
            return true;
    }
    return false;
}

/* Home directory of uid by the container's /etc/passwd; "/" when it does not say. Return: to be freed, NULL on no memory. */
static char *find_home(struct task *t, uint32_t uid)
{
    struct walk_base base = {.root = &t->fs->root, .cwd = &t->fs->root};
    CLEANUP_FREE char *text = mem_zalloc(PROCESS_PASSWD_MAX + 1);
    struct file *f;
    ssize_t n;

    if (!text)
        return NULL;
    if (vfs_open(&t->ctx, &base, "/etc/passwd", 0 /* O_RDONLY */, 0, &f))
        return mem_strdup("/");
    n = S_ISREG(f->inode->mode) ? file_read_kernel(&t->ctx, f, text, PROCESS_PASSWD_MAX, 0) : -EINVAL;
    file_unref(f);
    text[n > 0 ? n : 0] = '\0';
    for (char *line = text, *next; line && *line; line = next) {
        char *fields[6] = {line}, *end;

        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        for (int i = 1; i < 6 && fields[i - 1]; i++) {
            fields[i] = strchr(fields[i - 1], ':');
            if (fields[i])
                fields[i]++;
        }
        if (!fields[5] || strtoul(fields[2], &end, 10) != uid || end == fields[2] || *end != ':')
            continue;
        return mem_strndup(fields[5], strcspn(fields[5], ":"));
    }
    return mem_strdup("/");
}

/* As runc does for programs that count on it. */
static int add_home(struct task *t, struct exec_strings *envp)
{
    CLEANUP_FREE char *home = NULL;

    if (has_variable(envp, "HOME"))
        return 0;
    home = find_home(t, t->ctx.cred->uid);
    if (!home)
        return -ENOMEM;
    buf_puts(&envp->bytes, "HOME=");
    buf_append(&envp->bytes, home, strlen(home) + 1);
    envp->count++;
    return buf_error(&envp->bytes);
}

static int copy_args(const struct sentry_process *p, struct process *pr, struct errmsg *e)
{
    char text[128];
    int r;

    pr->args = NEW(struct process_args);
    r = pr->args ? exec_strings_from(p->argv, &pr->args->argv) : -ENOMEM;
    if (!r)
        r = exec_strings_from(p->envp, &pr->args->envp);
    if (!r)
        r = add_home(pr->task, &pr->args->envp);
    return r ? errmsg_set(e, r, "exec %s: %s", pr->path, error_text(r, text, sizeof(text))) : 0;
}

/* A session of its own, and the terminal that goes with it. */
static int found_session(struct task *t, const struct sentry_process *p, struct errmsg *e)
{
    struct file *f;
    char text[128];
    int r = session_start(t->group);

    if (!r && p->terminal) {
        f = fdtable_get(t, 0);
        r = f ? tty_console_attach(t, f) : -ENOTTY;
        file_unref(f);
    }
    return r ? errmsg_set(e, r, "setting up the terminal: %s", error_text(r, text, sizeof(text))) : 0;
}

void process_free(struct process *pr)
{
    struct task *t;

    if (!pr)
        return;
    t = pr->task;
    if (t && !list_empty(&t->thread_link) && t->state == TASK_NEW) {
        tgroup_exit(t->group, SIGKILL);
        task_run_spawn(t);
        task_unref(t);
    } else if (t && list_empty(&t->thread_link) && t->state == TASK_NEW) {
        task_abandon(t);
    } else {
        task_unref(t);
    }
    if (pr->args) {
        exec_strings_free(&pr->args->argv);
        exec_strings_free(&pr->args->envp);
        mem_free(pr->args);
    }
    tty_console_put(pr->tty);
    file_unref(pr->file);
    mem_free(pr->path);
    mem_free(pr);
}

static int set_filter(struct task *t, const struct sentry_process *p, struct errmsg *e)
{
    char text[128];
    int r;

    if (!p->seccomp)
        return 0;
    r = (int)guest_seccomp_set_filter(t, p->seccomp_log ? SECCOMP_FILTER_FLAG_LOG : 0, p->seccomp, p->seccomp_len);
    return r ? errmsg_set(e, r, "setting up the seccomp filter: %s", error_text(r, text, sizeof(text))) : 0;
}

static int set_up(struct container *c, const struct sentry_process *p, bool is_init, struct process *pr,
                  unsigned *taken, struct errmsg *e)
{
    char text[128];
    int r = make_task(c, p, &pr->task);

    if (r)
        return errmsg_set(e, r, "making the process: %s", error_text(r, text, sizeof(text)));
    r = set_cwd(pr->task, p, is_init, e);
    if (r)
        return r;
    r = open_files(pr->task, p, is_init, pr, taken);
    if (r)
        return errmsg_set(e, r, "setting up the process's descriptors: %s", error_text(r, text, sizeof(text)));
    r = set_filter(pr->task, p, e);
    if (r)
        return r;
    r = find_program(pr->task, p, pr, e);
    return r ? r : copy_args(p, pr, e);
}

int process_new(struct container *c, const struct sentry_process *p, bool is_init, struct errmsg *e,
                struct process **ret_process)
{
    struct process *pr = NEW(struct process);
    unsigned taken = 0;
    int r = pr ? set_up(c, p, is_init, pr, &taken, e) : errmsg_set(e, -ENOMEM, "out of memory");

    drop_descriptors(p, taken);
    if (r) {
        process_free(pr);
        return r;
    }
    task_publish(pr->task, NULL);
    task_ref(pr->task); /* ours, besides that of the tables */
    r = found_session(pr->task, p, e);
    if (r) {
        process_free(pr);
        return r;
    }
    if (is_init)
        c->init = tgroup_ref(pr->task->group);
    *ret_process = pr;
    return 0;
}

/* One start under way, shared by the fiber that asked and the task's own. */
struct launch {
    struct process *process;
    struct waitq done_wait;
    bool done;
    int result;
};

static void run_program(struct task *t)
{
    struct launch *l = t->first_arg;
    struct process *pr = l->process;
    struct exec_request req = {
        .file = pr->file, .name = pr->path, .argv = &pr->args->argv, .envp = &pr->args->envp};

    t->first_arg = NULL;
    l->result = t->exiting || t->group->group_exiting ? -ESRCH : exec_run(t, &req);
    if (l->result) {
        t->exit_code = 1 << 8;
        t->exiting = true;
        t->group->on_exit = NULL;
    }
    l->done = true;
    waitq_wake_all(&l->done_wait);
}

int process_start(OWNS struct process *pr, struct errmsg *e, void (*on_exit)(void *arg, int wait_status),
                  void *arg)
{
    struct launch l = {.process = pr};
    struct task *t = pr->task;
    struct ctx ctx = {.cred = t->ctx.cred};
    char text[128];
    int r;

    if (t->state != TASK_NEW || t->group->group_exiting) {
        process_free(pr);
        return errmsg_set(e, -ESRCH, "the process was killed before it was started");
    }
    waitq_init(&l.done_wait);
    t->group->on_exit = on_exit;
    t->group->on_exit_arg = arg;
    t->first_arg = &l;
    r = task_run_first(t, run_program);
    if (!r) {
        (void)!WAIT_EVENT_STATE(&ctx, &l.done_wait, l.done, CTX_WAIT_UNINTERRUPTIBLE, WAIT_FOREVER);
        r = l.result;
    }
    if (r)
        errmsg_set(e, r, "exec %s: %s", pr->path, error_text(r, text, sizeof(text)));
    else
        r = tgroup_pid_in(t->group, t->group->container->pidns);
    process_free(pr);
    return r;
}
