/* SPDX-License-Identifier: Apache-2.0 */
/* Carries the linked stub image; STUB_BIN is its path, given by the build. */
    .section .rodata.stub_blob, "a"
    .balign 64
    .globl stub_blob_start
stub_blob_start:
    .incbin STUB_BIN
    .globl stub_blob_end
stub_blob_end:
    .section .note.GNU-stack, "", @progbits
