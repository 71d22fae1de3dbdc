/* SPDX-License-Identifier: Apache-2.0 */
/* Copies into the mailbox what a call's signature says the sentry will read, and probes what it will write.
 * Everything here only saves the sentry host calls: what is not marshalled it fetches itself, and a bad pointer is
 * found there. */
#include "marshal_gen.h"
#include "platform/seccomp/stub.h"

enum {
    MARSHAL_STR_MAX = 4096,
    MARSHAL_IN_LIMIT = 0xa000, /* larger buffers are cheaper to copy once, by the sentry */
    MARSHAL_OUT_LIMIT = 0xf000,
    MARSHAL_IOV_MAX = 3,
};

struct marshal_iovec {
    uint64_t base, size;
};

static void marshal_in(struct stub_mailbox *m, uint64_t addr, uint64_t size, int string)
{
    uint64_t room = STUB_MBOX_DATA_SIZE - m->data_used;
    if (m->in_len >= STUB_IN_MAX || !addr || !size)
        return;
    if (string) {
        size = room < MARSHAL_STR_MAX ? room : MARSHAL_STR_MAX;
        long n = stub_copy_str(stub_mailbox_data(m) + m->data_used, (const void *)addr, size);
        if (n <= 0)
            return;
        size = (uint64_t)n;
    } else {
        if (size > MARSHAL_IN_LIMIT || size > room ||
            stub_copy(stub_mailbox_data(m) + m->data_used, (const void *)addr, size))
            return;
    }
    m->in[m->in_len].addr = addr;
    m->in[m->in_len].size = (uint32_t)size;
    m->in[m->in_len].off = m->data_used;
    m->in_len++;
    m->data_used += (uint32_t)((size + 7) & ~7UL);
}

/* Finds out how much of the buffer can be written, which also brings its pages in. */
static void marshal_out(struct stub_mailbox *m, uint64_t addr, uint64_t size)
{
    if (m->probe_len >= STUB_PROBE_MAX || !addr || !size)
        return;
    if (size > MARSHAL_OUT_LIMIT)
        size = MARSHAL_OUT_LIMIT;
    uint64_t end = addr + size;
    if (end < addr || end > (uint64_t)stub_head)
        return;
    for (uint64_t at = addr; at < end; at = (at & ~4095UL) + 4096)
        if (stub_probe(at)) {
            end = at;
            break;
        }
    if (end == addr)
        return;
    m->probe[m->probe_len].addr = addr;
    m->probe[m->probe_len].size = (uint32_t)(end - addr);
    m->probe_len++;
}

static void marshal_iov(struct stub_mailbox *m, uint64_t addr, uint64_t count, int out)
{
    struct marshal_iovec v[MARSHAL_IOV_MAX];
    if (!count || count > 1024)
        return;
    marshal_in(m, addr, count * sizeof(v[0]), 0);
    if (count > MARSHAL_IOV_MAX || stub_copy(v, (const void *)addr, count * sizeof(v[0])))
        return;
    for (uint64_t i = 0; i < count; i++) {
        if (out)
            marshal_out(m, v[i].base, v[i].size);
        else
            marshal_in(m, v[i].base, v[i].size, 0);
    }
}

static uint64_t marshal_arg(const uint64_t *g, unsigned i)
{
    switch (i) {
    case 0: return g[G_RDI];
    case 1: return g[G_RSI];
    case 2: return g[G_RDX];
    case 3: return g[G_R10];
    case 4: return g[G_R8];
    default: return g[G_R9];
    }
}

void stub_marshal(struct stub_mailbox *m, const struct stub_ucontext *uc, uint64_t nr)
{
    m->in_len = 0;
    m->probe_len = 0;
    m->data_used = 0;
    if (nr >= MARSHAL_CALLS)
        return;
    const struct marshal_desc *d = marshal_lists[marshal_index[nr]];
    for (int i = 0; i < MARSHAL_MAX && d[i].kind != MARSHAL_NONE; i++) {
        uint64_t addr = marshal_arg(uc->gregs, d[i].arg);
        uint64_t count = d[i].kind == MARSHAL_STR ? 0 : marshal_arg(uc->gregs, d[i].len_arg);
        uint64_t size = count > 0x7fffffff ? 0x7fffffff : count * d[i].n;
        switch (d[i].kind) {
        case MARSHAL_STR: marshal_in(m, addr, 1, 1); break;
        case MARSHAL_IN: marshal_in(m, addr, d[i].n, 0); break;
        case MARSHAL_IN_BYTES: marshal_in(m, addr, size, 0); break;
        case MARSHAL_OUT: marshal_out(m, addr, d[i].n); break;
        case MARSHAL_OUT_BYTES: marshal_out(m, addr, size); break;
        case MARSHAL_INOUT:
            marshal_in(m, addr, d[i].n, 0);
            marshal_out(m, addr, d[i].n);
            break;
        case MARSHAL_INOUT_BYTES:
            marshal_in(m, addr, size, 0);
            marshal_out(m, addr, size);
            break;
        case MARSHAL_IN_IOVEC: marshal_iov(m, addr, count, 0); break;
        case MARSHAL_OUT_IOVEC: marshal_iov(m, addr, count, 1); break;
        }
    }
}
