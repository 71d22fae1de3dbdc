/* SPDX-License-Identifier: Apache-2.0 */
/* General registers of a guest thread, in the order of Linux's struct user_regs_struct (x86-64). */
#pragma once

#include <stdint.h>

struct regs {
    uint64_t r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8;
    uint64_t rax, rcx, rdx, rsi, rdi;
    uint64_t orig_rax; /* call number while in a call, else −1 */
    uint64_t rip, cs, rflags, rsp, ss;
    uint64_t fs_base, gs_base; /* as found at the event; written back only with PLAT_SET_FS / PLAT_SET_GS */
};
