/* SPDX-License-Identifier: Apache-2.0 */
/* Classic BPF: checking and running. Source: seccomp(2), bpf(4). */
#include "platform/base/cbpf.h"

#include <linux/filter.h>

/* Where paths join: what all of them have written of the scratch memory. */
struct cbpf_paths {
    uint16_t written[CBPF_MAX_LEN];
};

static bool cbpf_insn_ok(const struct cbpf_insn *i, uint32_t data_size)
{
    switch (i->code) {
    case BPF_LD | BPF_W | BPF_ABS:
        return i->k < data_size && i->k % 4 == 0;
    case BPF_ALU | BPF_DIV | BPF_K:
        return i->k != 0;
    case BPF_ALU | BPF_LSH | BPF_K:
    case BPF_ALU | BPF_RSH | BPF_K:
        return i->k < 32;
    case BPF_LD | BPF_MEM:
    case BPF_LDX | BPF_MEM:
    case BPF_ST:
    case BPF_STX:
        return i->k < BPF_MEMWORDS;
    case BPF_LD | BPF_W | BPF_LEN:
    case BPF_LDX | BPF_W | BPF_LEN:
    case BPF_LD | BPF_IMM:
    case BPF_LDX | BPF_IMM:
    case BPF_MISC | BPF_TAX:
    case BPF_MISC | BPF_TXA:
    case BPF_RET | BPF_K:
    case BPF_RET | BPF_A:
    case BPF_ALU | BPF_ADD | BPF_K:
    case BPF_ALU | BPF_ADD | BPF_X:
    case BPF_ALU | BPF_SUB | BPF_K:
    case BPF_ALU | BPF_SUB | BPF_X:
    case BPF_ALU | BPF_MUL | BPF_K:
    case BPF_ALU | BPF_MUL | BPF_X:
    case BPF_ALU | BPF_DIV | BPF_X:
    case BPF_ALU | BPF_AND | BPF_K:
    case BPF_ALU | BPF_AND | BPF_X:
    case BPF_ALU | BPF_OR | BPF_K:
    case BPF_ALU | BPF_OR | BPF_X:
    case BPF_ALU | BPF_XOR | BPF_K:
    case BPF_ALU | BPF_XOR | BPF_X:
    case BPF_ALU | BPF_LSH | BPF_X:
    case BPF_ALU | BPF_RSH | BPF_X:
    case BPF_ALU | BPF_NEG:
    case BPF_JMP | BPF_JA:
    case BPF_JMP | BPF_JEQ | BPF_K:
    case BPF_JMP | BPF_JEQ | BPF_X:
    case BPF_JMP | BPF_JGE | BPF_K:
    case BPF_JMP | BPF_JGE | BPF_X:
    case BPF_JMP | BPF_JGT | BPF_K:
    case BPF_JMP | BPF_JGT | BPF_X:
    case BPF_JMP | BPF_JSET | BPF_K:
    case BPF_JMP | BPF_JSET | BPF_X:
        return true;
    default:
        return false;
    }
}

/* Notes what has been written on a path from pc that goes on target instructions further. */
static bool cbpf_join(struct cbpf_paths *p, uint32_t len, uint32_t pc, uint32_t target, uint16_t written)
{
    if (target >= len - pc - 1)
        return false;
    p->written[pc + 1 + target] &= written;
    return true;
}

static bool cbpf_paths_ok(const struct cbpf_insn *prog, uint32_t len, struct cbpf_paths *p)
{
    uint16_t written = 0;
    for (uint32_t pc = 0; pc < len; pc++) {
        const struct cbpf_insn *i = &prog[pc];
        written &= p->written[pc];
        switch (i->code) {
        case BPF_ST:
        case BPF_STX:
            written |= (uint16_t)(1u << i->k);
            break;
        case BPF_LD | BPF_MEM:
        case BPF_LDX | BPF_MEM:
            if (!(written >> i->k & 1))
                return false;
            break;
        case BPF_JMP | BPF_JA:
            if (!cbpf_join(p, len, pc, i->k, written))
                return false;
            written = UINT16_MAX;
            break;
        default:
            if (BPF_CLASS(i->code) != BPF_JMP)
                break;
            if (!cbpf_join(p, len, pc, i->jt, written) || !cbpf_join(p, len, pc, i->jf, written))
                return false;
            written = UINT16_MAX;
        }
    }
    return true;
}

bool cbpf_check(const struct cbpf_insn *prog, uint32_t len, uint32_t data_size)
{
    struct cbpf_paths paths;
    if (len == 0 || len > CBPF_MAX_LEN)
        return false;
    for (uint32_t pc = 0; pc < len; pc++) {
        if (!cbpf_insn_ok(&prog[pc], data_size))
            return false;
        paths.written[pc] = UINT16_MAX;
    }
    return BPF_CLASS(prog[len - 1].code) == BPF_RET && cbpf_paths_ok(prog, len, &paths);
}

uint32_t cbpf_cost(const struct cbpf_insn *prog, uint32_t len)
{
    enum { PROLOGUE = 3, DIV_CHECK = 4 };
    uint32_t cost = PROLOGUE + len;
    for (const struct cbpf_insn *i = prog; i < prog + len; i++) {
        if (i->code == (BPF_RET | BPF_K))
            cost++;
        else if (i->code == (BPF_ALU | BPF_DIV | BPF_X))
            cost += DIV_CHECK;
        else if (BPF_CLASS(i->code) == BPF_JMP && BPF_OP(i->code) != BPF_JA)
            /* A constant that looks negative is loaded first; one target has to be next. */
            cost += (BPF_SRC(i->code) == BPF_K && i->k >> 31) + (i->jf && (i->jt || BPF_OP(i->code) == BPF_JSET));
    }
    return cost;
}

static uint32_t cbpf_alu(uint16_t op, uint32_t a, uint32_t b)
{
    switch (op) {
    case BPF_ADD:
        return a + b;
    case BPF_SUB:
        return a - b;
    case BPF_MUL:
        return a * b;
    case BPF_DIV:
        return a / b;
    case BPF_AND:
        return a & b;
    case BPF_OR:
        return a | b;
    case BPF_XOR:
        return a ^ b;
    case BPF_LSH:
        return a << (b & 31);
    case BPF_RSH:
        return a >> (b & 31);
    default: /* BPF_NEG */
        return -a;
    }
}

static bool cbpf_jump(uint16_t op, uint32_t a, uint32_t b)
{
    switch (op) {
    case BPF_JEQ:
        return a == b;
    case BPF_JGT:
        return a > b;
    case BPF_JGE:
        return a >= b;
    default: /* BPF_JSET */
        return a & b;
    }
}

uint32_t cbpf_run(const struct cbpf_insn *prog, const uint32_t *words, uint32_t known_len, bool *ret_unknown)
{
    enum { DATA_SIZE = 64 }; /* struct seccomp_data */
    uint32_t a = 0, x = 0, mem[BPF_MEMWORDS] = {0};
    if (ret_unknown)
        *ret_unknown = false;
    for (const struct cbpf_insn *i = prog;; i++) {
        uint32_t b = BPF_SRC(i->code) == BPF_X ? x : i->k;
        switch (BPF_CLASS(i->code)) {
        case BPF_LD:
            if (BPF_MODE(i->code) == BPF_ABS && ret_unknown && i->k / 4 >= known_len) {
                *ret_unknown = true;
                return 0;
            }
            a = BPF_MODE(i->code) == BPF_ABS   ? words[i->k / 4]
                : BPF_MODE(i->code) == BPF_MEM ? mem[i->k]
                : BPF_MODE(i->code) == BPF_LEN ? DATA_SIZE
                                               : i->k;
            break;
        case BPF_LDX:
            x = BPF_MODE(i->code) == BPF_MEM ? mem[i->k] : BPF_MODE(i->code) == BPF_LEN ? DATA_SIZE : i->k;
            break;
        case BPF_ST:
            mem[i->k] = a;
            break;
        case BPF_STX:
            mem[i->k] = x;
            break;
        case BPF_ALU:
            if (BPF_OP(i->code) == BPF_DIV && b == 0)
                return 0; /* as in every BPF: the program ends */
            a = cbpf_alu(BPF_OP(i->code), a, b);
            break;
        case BPF_JMP:
            if (BPF_OP(i->code) == BPF_JA)
                i += i->k;
            else
                i += cbpf_jump(BPF_OP(i->code), a, b) ? i->jt : i->jf;
            break;
        case BPF_RET:
            return BPF_RVAL(i->code) == BPF_A ? a : i->k;
        default: /* BPF_MISC */
            if (BPF_MISCOP(i->code) == BPF_TAX)
                x = a;
            else
                a = x;
        }
    }
}
