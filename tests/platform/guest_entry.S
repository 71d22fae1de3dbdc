/* SPDX-License-Identifier: Apache-2.0 */
/* Entry points of the guest image, and jumps with every register chosen. */
    .section .head, "ax"
    .globl guest_start
guest_start:
    call guest_main
    mov %rax, %rdi
    mov $231, %eax
    syscall
    ud2

    .text
/* A thread's stack starts with its function. */
    .globl guest_thread
guest_thread:
    pop %rax
    call *%rax
    xor %edi, %edi
    mov $60, %eax
    syscall
    ud2

/* Reached from the stub's general instruction once the stub is patched: lets guest_hook look at what the host answered. */
    .globl guest_hook_entry
guest_hook_entry:
    push %rdi
    push %rsi
    push %rdx
    push %r8
    push %r9
    push %r10
    push %rbp
    mov %rsp, %rbp
    mov %rax, %rdi
    mov %rsp, %rsi
    and $-16, %rsp
    call guest_hook
    mov %rbp, %rsp
    pop %rbp
    pop %r10
    pop %r9
    pop %r8
    pop %rdx
    pop %rsi
    pop %rdi
    ret

/* void guest_jump(const uint64_t regs[16]): rax rbx rcx rdx rsi rdi rbp rsp r8 to r15, then the target. */
    .globl guest_jump
guest_jump:
    mov %rdi, %r15
    mov 128(%r15), %rax
    mov %rax, guest_jump_target(%rip)
    mov 0(%r15), %rax
    mov 8(%r15), %rbx
    mov 16(%r15), %rcx
    mov 24(%r15), %rdx
    mov 32(%r15), %rsi
    mov 40(%r15), %rdi
    mov 48(%r15), %rbp
    mov 56(%r15), %rsp
    mov 64(%r15), %r8
    mov 72(%r15), %r9
    mov 80(%r15), %r10
    mov 88(%r15), %r11
    mov 96(%r15), %r12
    mov 104(%r15), %r13
    mov 112(%r15), %r14
    mov 120(%r15), %r15
    jmp *guest_jump_target(%rip)

    .data
guest_jump_target:
    .quad 0
    .section .note.GNU-stack, "", @progbits
