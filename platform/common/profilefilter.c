/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles to programs, with libseccomp, so that they mean what they mean under other runtimes. */
#include "platform/common/profilefilter.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"

enum { PATCH_LEN = 3, ARGS_MAX = 6 };

struct profilefilter {
    scmp_filter_ctx ctx;
    uint32_t default_action;
    bool unknown_enosys;
    int newest; /* highest number that a rule names, −1 none */
};

struct profilefilter *profilefilter_new(uint32_t default_action, bool unknown_enosys)
{
    struct profilefilter *p = NEW(struct profilefilter);
    if (!p)
        return NULL;
    *p = (struct profilefilter){.ctx = seccomp_init(default_action), .default_action = default_action,
                                .unknown_enosys = unknown_enosys, .newest = -1};
    /* Binary search over the numbers: it is an interpreter that will run it. */
    if (!p->ctx || seccomp_attr_set(p->ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2) < 0) {
        profilefilter_free(p);
        return NULL;
    }
    return p;
}

void profilefilter_free(struct profilefilter *p)
{
    if (!p)
        return;
    if (p->ctx)
        seccomp_release(p->ctx);
    mem_free(p);
}

/* One rule cannot compare an argument twice: then any of the comparisons is enough, each in a rule of its own. */
static bool compares_twice(const struct profilefilter_arg *args, size_t len)
{
    unsigned seen = 0;
    for (size_t i = 0; i < len; i++) {
        if (seen >> args[i].index & 1)
            return true;
        seen |= 1u << args[i].index;
    }
    return false;
}

int profilefilter_add(struct profilefilter *p, const char *name, uint32_t action, const struct profilefilter_arg *args,
                      size_t len)
{
    static const enum scmp_compare ops[] = {
        [PROFILEFILTER_NE] = SCMP_CMP_NE, [PROFILEFILTER_LT] = SCMP_CMP_LT, [PROFILEFILTER_LE] = SCMP_CMP_LE,
        [PROFILEFILTER_EQ] = SCMP_CMP_EQ, [PROFILEFILTER_GE] = SCMP_CMP_GE, [PROFILEFILTER_GT] = SCMP_CMP_GT,
        [PROFILEFILTER_MASKED_EQ] = SCMP_CMP_MASKED_EQ};
    struct scmp_arg_cmp cmps[ARGS_MAX * 4];
    int nr = seccomp_syscall_resolve_name(name), r = 0;
    if (len > ARRAY_SIZE(cmps))
        return -EINVAL;
    for (size_t i = 0; i < len; i++) {
        if (args[i].index >= ARGS_MAX || args[i].cmp >= ARRAY_SIZE(ops))
            return -EINVAL;
        cmps[i] = (struct scmp_arg_cmp){args[i].index, ops[args[i].cmp], args[i].value, args[i].value_two};
    }
    if (nr < 0)
        return 0;
    p->newest = MAX(p->newest, nr);
    if (action == p->default_action)
        return 0;
    if (compares_twice(args, len)) {
        for (size_t i = 0; i < len && r >= 0; i++)
            r = seccomp_rule_add_array(p->ctx, action, nr, 1, &cmps[i]);
    } else {
        r = seccomp_rule_add_array(p->ctx, action, nr, (unsigned)len, cmps);
    }
    return r == -EEXIST ? 0 : r;
}

static int read_program(int fd, struct cbpf_insn *prog, size_t size)
{
    size_t done = 0;
    while (done < size) {
        ssize_t n = pread(fd, (char *)prog + done, size - done, (off_t)done);
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        done += (size_t)n;
    }
    return 0;
}

int profilefilter_program(const struct profilefilter *p, struct cbpf_insn **ret_prog)
{
    const struct cbpf_insn patch[PATCH_LEN] = {
        {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr)},
        {BPF_JMP | BPF_JGT | BPF_K, 0, 1, (uint32_t)p->newest},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | ENOSYS},
    };
    size_t before = p->unknown_enosys && p->newest >= 0 ? PATCH_LEN : 0;
    CLEANUP_CLOSE int fd = (int)host_ret(memfd_create("profile", MFD_CLOEXEC));
    if (fd < 0)
        return fd;
    int r = seccomp_export_bpf(p->ctx, fd);
    off_t size = r < 0 ? r : lseek(fd, 0, SEEK_END);
    if (size < 0)
        return r < 0 ? r : -errno;
    size_t len = (size_t)size / sizeof(struct cbpf_insn);
    if (len + before > CBPF_MAX_LEN)
        return -E2BIG;
    CLEANUP_FREE struct cbpf_insn *prog = mem_zalloc((before + len) * sizeof(*prog));
    if (!prog)
        return -ENOMEM;
    memcpy(prog, patch, before * sizeof(*prog));
    r = read_program(fd, prog + before, len * sizeof(*prog));
    if (r < 0)
        return r;
    *ret_prog = TAKE_PTR(prog);
    return (int)(len + before);
}
