/* SPDX-License-Identifier: Apache-2.0 */
/* Assembly of the stub: entry points, the three syscall sites, and copies with fault fix-ups. */

    .section .head, "a"
    .globl stub_head
stub_head:
    .quad 0x31425554535443
    .quad stub_handler_entry - stub_head
    .quad stub_restorer - stub_head
    .quad stub_zygote_entry - stub_head
    .quad stub_ip_general - stub_head
    .quad stub_ip_sigreturn - stub_head
    .quad stub_ip_futex - stub_head

    .text

/* void handler(int sig, siginfo_t *info, ucontext_t *uc): never returns, so no frame is needed; the
 * stack is the slot's alternate stack, already aligned as after a call. */
    .globl stub_handler_entry
    .type stub_handler_entry, @function
stub_handler_entry:
    endbr64
    cld
    call stub_handler
    ud2

/* The restorer is only reached by a guest that jumps here: handlers leave through stub_resume. */
    .globl stub_restorer
stub_restorer:
    endbr64
    ud2

/* rdi = zone base; stack: slot 0. */
    .globl stub_zygote_entry
stub_zygote_entry:
    endbr64
    cld
    call stub_zygote
    ud2

/* long stub_syscall(nr, a1, a2, a3, a4, a5, a6) */
    .globl stub_syscall
    .type stub_syscall, @function
stub_syscall:
    endbr64
    mov %rdi, %rax
    mov %rsi, %rdi
    mov %rdx, %rsi
    mov %rcx, %rdx
    mov %r8, %r10
    mov %r9, %r8
    mov 8(%rsp), %r9
    syscall
    .globl stub_ip_general
stub_ip_general:
    ret

/* long stub_clone_thread(flags, child_stack, ctid): the child starts in stub_thread_child with its
 * stack pointer at child_stack. */
    .globl stub_clone_thread
stub_clone_thread:
    endbr64
    lea stub_thread_start(%rip), %rax
    sub $8, %rsi
    mov %rax, (%rsi)   /* the ret after the syscall takes the child there */
    mov %rdx, %r10     /* child tid */
    xor %edx, %edx     /* parent tid */
    xor %r8d, %r8d     /* tls: set on resume */
    xor %r9d, %r9d
    mov $56, %eax
    jmp stub_ip_general - 2
stub_thread_start:
    call stub_thread_child
    ud2

/* void stub_resume(struct stub_slot *slot, void *uc): leaves to the guest by rt_sigreturn. A kick that
 * arrives between the check and the call is sent back to the check by the handler. */
    .globl stub_resume
stub_resume:
    endbr64
    mov %rsi, %rsp
    mov %rdi, %rbx
    .globl stub_exit_window
stub_exit_window:
    cmpq $0, 8(%rbx)   /* slot->kicked */
    jne stub_exit_kicked
    mov $15, %eax
    syscall
    .globl stub_ip_sigreturn
stub_ip_sigreturn:
    ud2
    .globl stub_exit_kicked
stub_exit_kicked:
    mov %rbx, %rdi
    mov %rsp, %rsi
    sub $128, %rsp
    and $-16, %rsp
    call stub_kicked   /* rings; ends in stub_resume */
    ud2

/* long stub_futex_wait(args, nr, slot): a waiting futex call of six arguments that a kick ends with −EINTR, also when the
 * kick arrives just before the call. */
    .globl stub_futex_wait
stub_futex_wait:
    endbr64
    push %rbx
    mov %rdx, %rbx
    mov %rsi, %rax
    mov %rdi, %r11
    mov (%r11), %rdi
    mov 8(%r11), %rsi
    mov 16(%r11), %rdx
    mov 24(%r11), %r10
    mov 32(%r11), %r8
    mov 40(%r11), %r9
    .globl stub_futex_window
stub_futex_window:
    cmpq $0, 8(%rbx)
    jne stub_futex_abort
    syscall
    .globl stub_ip_futex
stub_ip_futex:
    pop %rbx
    ret
    .globl stub_futex_abort
stub_futex_abort:
    mov $-4, %rax
    pop %rbx
    ret

/* unsigned long stub_copy(dst, src, size): Return: bytes not copied. */
    .globl stub_copy
stub_copy:
    endbr64
    mov %rdx, %rcx
    .globl stub_copy_insn
stub_copy_insn:
    rep movsb
    .globl stub_copy_fixup
stub_copy_fixup:
    mov %rcx, %rax
    ret

/* long stub_copy_str(dst, src, max): Return: length with the NUL, or −1 (fault, or no NUL within max). */
    .globl stub_copy_str
stub_copy_str:
    endbr64
    xor %eax, %eax
1:  cmp %rdx, %rax
    jae stub_str_fixup
    .globl stub_str_insn
stub_str_insn:
    movzbl (%rsi,%rax), %ecx
    mov %cl, (%rdi,%rax)
    inc %rax
    test %cl, %cl
    jne 1b
    ret
    .globl stub_str_fixup
stub_str_fixup:
    mov $-1, %rax
    ret

/* long stub_probe(addr): makes sure that the byte can be written. Return: 0, or −1. */
    .globl stub_probe
stub_probe:
    endbr64
    .globl stub_probe_insn
stub_probe_insn:
    lock orb $0, (%rdi)
    xor %eax, %eax
    ret
    .globl stub_probe_fixup
stub_probe_fixup:
    mov $-1, %rax
    ret

    .section .note.GNU-stack, "", @progbits
