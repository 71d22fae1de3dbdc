/* SPDX-License-Identifier: Apache-2.0 */
/* Signal frames on guest stacks, in Linux's layout for x86-64. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"
#include "platform/regs.h"
#include "sentry/kernel/signal.h"

/* State before a frame, kept until the FPU state is in it too. */
struct frame_undo {
    int sig;
    bool valid;
    struct regs regs;
    sigset_k blocked;
    struct sigaltstack_k altstack;
};

/* Stores a frame for sig on t's stack (or alternate stack) and points t's registers at the handler; old_mask is what
 * rt_sigreturn will restore. Sets PLAT_* bits in t->resume_flags. Return: 0 or −EFAULT. */
MUST_CHECK int sigframe_push(struct task *t, int sig, const siginfo_t *info, const struct sigaction_k *action,
                             sigset_k old_mask);
/* The platform could not store the FPU state into the frame that was pushed last: takes the frame back. Return: the signal it
 * was for, 0 when there was none. */
int sigframe_undo(struct task *t);
/* Fills in the FPU image of a freshly started program, of the size that frames have. */
void sigframe_fpu_initial(uint8_t *p, uint64_t size);
/* Reads the image of a frame; what is no XSAVE image leaves the rest of p as it is. Return: 0 or −EFAULT. */
MUST_CHECK int sigframe_fpu_read(struct task *t, uint8_t *p, uint64_t from, uint64_t size);
/* rt_sigreturn: takes registers, mask and alternate stack back from the frame. Return: 0 or −EFAULT. */
MUST_CHECK int sigframe_pop(struct task *t);
/* sigaltstack(2): act may be NULL. sp is the guest's stack pointer, min_size the smallest size to accept.
 * Return: 0, −EPERM (in use), −EINVAL, −ENOMEM. */
MUST_CHECK int sigaltstack_set(struct task *t, const struct sigaltstack_k *act, uint64_t sp, uint64_t min_size);
/* What sigaltstack(2) reports: the stack with SS_ONSTACK or SS_DISABLE filled in. */
struct sigaltstack_k sigaltstack_get(const struct task *t, uint64_t sp);
void sigaltstack_reset(struct task *t);
