/* SPDX-License-Identifier: Apache-2.0 */
/* memfd_create. */
#include "syscalls_gen.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "sentry/abi/abi_errno.h"
#include "sentry/fs/tmpfs/tmpfs.h"
#include "sentry/kernel/fdtable.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/usermem.h"
#include "sentry/vfs/file.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#define MFD_EXEC 16U
#endif
#ifndef F_SEAL_EXEC
#define F_SEAL_EXEC 0x20
#endif

enum { NAME_SIZE_MAX = 250 }; /* with the NUL; "memfd:" goes before it */

int64_t sys_memfd_create(struct task *t, uaddr_t name, uint32_t flags)
{
    char text[sizeof("memfd:") + NAME_SIZE_MAX] = "memfd:";
    struct file *f;
    if (flags & MFD_HUGETLB)
        return -ENOSYS; /* built without huge page files */
    if (flags & ~(MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL | MFD_EXEC))
        return -EINVAL;
    if ((flags & MFD_EXEC) && (flags & MFD_NOEXEC_SEAL))
        return -EINVAL;
    ssize_t n = copy_in_str(&t->ctx, text + 6, name, NAME_SIZE_MAX);
    if (n < 0)
        return n == -ENAMETOOLONG ? -EINVAL : n;
    uint32_t seals = flags & MFD_ALLOW_SEALING ? 0 : F_SEAL_SEAL, mode = 0777;
    if (flags & MFD_NOEXEC_SEAL) {
        mode = 0666;
        seals = F_SEAL_EXEC;
    }
    int r = tmpfs_file_new_unlinked(&t->ctx, text, mode, O_RDWR | O_LARGEFILE, seals, 0, &f);
    return r ? r : fdtable_add(t, f, 0, flags & MFD_CLOEXEC);
}
