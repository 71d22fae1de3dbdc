/* SPDX-License-Identifier: Apache-2.0 */
/* Address-space objects. */
#include "sentry/mm/mm.h"

#include <errno.h>
#include <sys/stat.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "sentry/core/userns.h"
#include "sentry/mm/filemap.h"
#include "sentry/vfs/file.h"

int mm_new(struct plat_aspace *as, struct mm **ret_mm)
{
    struct mm *mm = NEW(struct mm);
    if (!mm)
        return -ENOMEM;
    ref_init(&mm->ref);
    mm->aspace = plat_aspace_ref(as);
    mm->dumpable = 1;
    mm->dump_filter = MM_DUMP_DEFAULT;
    list_init(&mm->shm_attaches);
    list_init(&mm->aio_contexts);
    *ret_mm = mm;
    return 0;
}

int mm_dup(const struct mm *mm, struct plat_aspace *as, struct mm **ret_mm)
{
    struct mm *copy = NEW(struct mm);
    if (!copy)
        return -ENOMEM;
    *copy = *mm;
    ref_init(&copy->ref);
    copy->aspace = plat_aspace_ref(as);
    copy->userns = userns_ref(mm->userns);
    copy->filemaps = filemaps_ref(mm->filemaps);
    copy->exe = NULL;
    copy->lock_future = false;
    list_init(&copy->shm_attaches);
    list_init(&copy->aio_contexts);
    if (mempolicy_copy(&mm->policies, &copy->policies) || mm_shm_dup(mm, copy)) {
        mm_unref(copy);
        return -ENOMEM;
    }
    /* Cannot fail: a file that denies writes already can deny them once more. */
    if (mm->exe && mm_set_exe(copy, mm->exe) < 0)
        copy->exe = NULL;
    *ret_mm = copy;
    return 0;
}

static void mm_drop_exe(struct mm *mm)
{
    if (!mm->exe)
        return;
    inode_allow_write(mm->exe->inode);
    file_unref(mm->exe);
    mm->exe = NULL;
}

int mm_set_exe(struct mm *mm, struct file *exe)
{
    int err = inode_deny_write(exe->inode);
    if (err)
        return err;
    mm_drop_exe(mm);
    mm->exe = file_ref(exe);
    return 0;
}

int mm_note_file(struct mm *mm, struct file *f, int host_fd)
{
    struct stat st;
    if (host_fd < 0)
        return 0;
    int err = (int)host_ret(fstat(host_fd, &st));
    if (err)
        return err;
    return filemaps_add(&mm->filemaps, st.st_dev, st.st_ino, &f->path);
}

struct mm *mm_ref(struct mm *mm)
{
    ref_get(&mm->ref);
    return mm;
}

void mm_unref(struct mm *mm)
{
    if (!mm || !ref_put(&mm->ref))
        return;
    mm_shm_drop(mm);
    mm_aio_drop(mm);
    mm_drop_exe(mm);
    filemaps_unref(mm->filemaps);
    mempolicy_free(&mm->policies);
    userns_unref(mm->userns);
    plat_aspace_unref(mm->aspace);
    mem_free(mm);
}
