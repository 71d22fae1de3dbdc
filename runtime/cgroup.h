/* SPDX-License-Identifier: Apache-2.0 */
/* The container's cgroup on the host: made, limited, joined, frozen, emptied and removed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "oci/spec.h"
#include "platform/base/buf.h"
#include "platform/base/compiler.h"
#include "platform/base/errmsg.h"

enum { CGROUP_DIRS_MAX = 32 };

/* Tasks of our own that count against the container's pids limit (gofer with its workers, zygote,
 * spare stub processes, exec waiters) and are added to it. */
enum { CGROUP_OWN_TASKS = 24 };

/* The directories of one container: one on cgroup v2, one for each hierarchy on v1. */
struct cgroup {
    const struct cgroup_ops *ops;
    struct cgroup_dir {
        char *controllers; /* "cpu,cpuacct", "name=systemd"; "" on v2 */
        char *path;        /* absolute directory */
        char *home;        /* that of this process's own cgroup on v1; NULL: not known */
    } dirs[CGROUP_DIRS_MAX];
    unsigned len;
};

struct cgroup_ops {
    /* Makes the directories and, on v2, enables controllers on the way down. */
    int (*create)(struct cgroup *cg, struct errmsg *e);
    int (*set)(const struct cgroup *cg, const struct oci_resources *res, struct errmsg *e);
    int (*freeze)(const struct cgroup *cg, bool frozen, struct errmsg *e);
    int (*is_frozen)(const struct cgroup *cg);
};
extern const struct cgroup_ops cgroup_v1_ops, cgroup_v2_ops;

/* Works out the directories without touching them. path is linux.cgroupsPath (NULL: the container's
 * id below this process's own cgroup). Return: 0, −errno with a message.
 * Owns: caller calls cgroup_free. */
MUST_CHECK int cgroup_plan(const char *path, const char *id, bool systemd, struct cgroup *ret_cg,
                           struct errmsg *e);
/* Takes up directories written by cgroup_encode. Return: 0, −EINVAL, −ENOMEM. */
MUST_CHECK int cgroup_decode(const char *const *dirs, unsigned len, struct cgroup *ret_cg);
/* One directory as text for the state file: "controllers:path". Return: 0 or −ENOMEM in b. */
void cgroup_encode(const struct cgroup *cg, unsigned index, struct buf *b);
void cgroup_free(struct cgroup *cg);

/* Makes the directories; refuses one that other processes are in. */
MUST_CHECK int cgroup_create(struct cgroup *cg, struct errmsg *e);
/* Writes the limits. Errors name the file. */
MUST_CHECK int cgroup_set(const struct cgroup *cg, const struct oci_resources *res, struct errmsg *e);
/* Moves a process. The host waits for a grace period (10 ms here) unless the kernel can tell that
 * nothing else looks: see the two below. */
MUST_CHECK int cgroup_add(const struct cgroup *cg, pid_t pid, struct errmsg *e);
/* Moves the calling process, which has only one thread. On v1 without that wait. */
MUST_CHECK int cgroup_join(const struct cgroup *cg, struct errmsg *e);
/* Opens the files through which a process of one thread, whatever its rights, can write "0" to move
 * itself into the container's cgroup and back into the one of the calling process.
 * Return: how many there are of each (0 on v2, and where the way back is not visible), −errno. */
MUST_CHECK int cgroup_open_doors(const struct cgroup *cg, int *ret_in, int *ret_out, struct errmsg *e);
/* Descriptor of the directory for CLONE_INTO_CGROUP. Return: −1 on v1, −errno < −1 with a message. */
MUST_CHECK int cgroup_clone_fd(const struct cgroup *cg, struct errmsg *e);
/* Freezes or thaws and waits until the host reports it done. */
MUST_CHECK int cgroup_freeze(const struct cgroup *cg, bool frozen, struct errmsg *e);
/* Return: 1 frozen (or freezing), 0 not, −errno. */
MUST_CHECK int cgroup_is_frozen(const struct cgroup *cg);
/* Kills whatever is left and removes the directories. Missing ones are fine. */
MUST_CHECK int cgroup_destroy(const struct cgroup *cg, struct errmsg *e);

/* --- for the managers --- */

/* Directory of the hierarchy that has the controller; NULL if there is none. */
const char *cgroup_dir_peek(const struct cgroup *cg, const char *controller);
/* Writes text to dir/file; the message names the file. */
MUST_CHECK int cgroup_write(const char *dir, const char *file, const char *text, struct errmsg *e);
/* Reads dir/file without its last newline into out. Return: 0 or −errno. */
MUST_CHECK int cgroup_read(const char *dir, const char *file, char *out, size_t size);
/* mkdir -p. */
MUST_CHECK int cgroup_mkdirs(const char *path, struct errmsg *e);
