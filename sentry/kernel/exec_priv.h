/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of exec share. */
#pragma once

#include "sentry/kernel/elf.h"
#include "sentry/kernel/exec.h"
#include "sentry/kernel/script.h"

struct cred;
struct mm;
struct plat_thread;

enum { EXEC_HEAD = 4096, EXEC_SCRIPTS_MAX = 5 };

/* One file of the new program: itself or its interpreter. */
struct exec_object {
    struct file *file;  /* referenced */
    size_t head_size;
    struct elf_image image;
    uint64_t bias;      /* added to all its addresses */
    uint8_t head[EXEC_HEAD];
};

/* One exec under way; too large for a fiber's stack. */
struct exec {
    struct task *task;
    const struct exec_request *req;
    struct exec_object prog, interp; /* interp.file NULL: static */
    struct cred *cred;        /* owned until committed */
    bool secure;              /* AT_SECURE */
    bool fatal;               /* the file is broken in a way that Linux notices when the old program is gone */
    bool unreadable;          /* the program may not be read by its user */
    struct plat_thread *thread; /* owned until committed */
    struct mm *mm;            /* owned until committed */
    struct nsproxy *ns;       /* owned until committed */
    uint64_t random[4];
    uint64_t stack_size, sp;
    char interp_path[ELF_INTERP_MAX];
    struct script_line line;
};

/* Reads the file's head and parses it as ELF. Return: 0, −ENOEXEC and the like. */
MUST_CHECK int exec_object_load(struct exec *x, struct exec_object *o);
/* Finds the real program behind scripts, and its interpreter. */
MUST_CHECK int exec_resolve(struct exec *x);
/* Credentials that the new program runs with. */
MUST_CHECK int exec_make_cred(struct exec *x);
/* Lays out and maps everything into x->thread's empty address space. Parks. */
MUST_CHECK int exec_map(struct exec *x);
/* Puts arguments, environment and auxiliary vector onto the stack. */
MUST_CHECK int exec_fill_stack(struct exec *x);
