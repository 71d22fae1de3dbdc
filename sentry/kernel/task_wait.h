/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for children: wait4, waitid. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

#include "platform/base/compiler.h"

struct pgrp;
struct pid;
struct task;
struct tgroup;

struct wait_spec {
    const struct pid *pid;      /* the child, or the traced thread, of this number alone; else … */
    const struct tgroup *group; /* this child alone; else … */
    const struct pgrp *pgrp;    /* … children of this group; else any */
    bool nothing;               /* the number asked for is nobody's */
    int options;                /* WEXITED, WSTOPPED, WCONTINUED, WNOHANG, WNOWAIT, __WALL, __WCLONE, __WNOTHREAD */
};

struct wait_result {
    int pid;     /* 0: nothing yet (WNOHANG) */
    uint32_t uid;
    int status;  /* as wait4 gives it */
    int code;    /* CLD_* */
    int value;   /* si_status */
    struct rusage usage;
};

/* Waits as spec says and, unless WNOWAIT, takes the news (a zombie is reaped). Parks. Return: 0, −ECHILD, −ERESTARTSYS. */
MUST_CHECK int task_wait(struct task *t, const struct wait_spec *spec, struct wait_result *ret_result);
/* Usage of g itself, and of its children that have been waited for. */
void tgroup_rusage(const struct tgroup *g, struct rusage *ret_usage);
void tgroup_rusage_children(const struct tgroup *g, struct rusage *ret_usage);
