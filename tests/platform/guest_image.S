/* SPDX-License-Identifier: Apache-2.0 */
/* Carries the guest image of the platform tests inside the test programs. */
    .section .rodata
    .globl guest_image_start
    .globl guest_image_end
guest_image_start:
    .incbin GUEST_BIN
guest_image_end:
    .section .note.GNU-stack, "", @progbits
