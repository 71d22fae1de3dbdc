/* SPDX-License-Identifier: Apache-2.0 */
/* The only user of libcap-ng. */
#include "runtime/privs.h"
#include "runtime/errtext.h"

#include <cap-ng.h>
#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Starts over with no capabilities. libcap-ng remembers the process that it first looked at, which may
 * have been this one's parent. */
static void privs_begin(void)
{
    capng_setpid(getpid());
    capng_clear(CAPNG_SELECT_BOTH);
}

/* Applies what capng_* has collected: bounding set first, because that itself takes a capability. */
static int privs_apply(struct errmsg *e)
{
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
        return errmsg_set(e, -errno, "clear ambient capabilities: %s", errtext(errno));
    if (capng_apply(CAPNG_SELECT_BOUNDS) != 0)
        return errmsg_set(e, -EPERM, "drop the bounding set of capabilities");
    if (capng_apply(CAPNG_SELECT_CAPS) != 0)
        return errmsg_set(e, -EPERM, "drop capabilities");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return errmsg_set(e, -errno, "set no_new_privs: %s", errtext(errno));
    return 0;
}

int privs_drop_all(struct errmsg *e)
{
    privs_begin();
    int r = privs_apply(e);
    return r < 0 ? r : privs_check_none(e);
}

int privs_keep_file_set(bool immutable, struct errmsg *e)
{
    static const unsigned keep[] = {CAP_CHOWN,  CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER,
                                    CAP_FSETID, CAP_MKNOD,        CAP_SETFCAP};
    privs_begin();
    for (size_t i = 0; i < ARRAY_SIZE(keep); i++)
        if (capng_update(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED, keep[i]) != 0)
            return errmsg_set(e, -EPERM, "select capability %u", keep[i]);
    if (immutable && capng_update(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED, CAP_LINUX_IMMUTABLE) != 0)
        return errmsg_set(e, -EPERM, "select capability %u", (unsigned)CAP_LINUX_IMMUTABLE);
    return privs_apply(e);
}

int privs_check_none(struct errmsg *e)
{
    privs_begin();
    if (capng_get_caps_process() != 0)
        return errmsg_set(e, -EPERM, "read own capabilities");
    if (capng_have_capabilities(CAPNG_SELECT_CAPS) != CAPNG_NONE)
        return errmsg_set(e, -EPERM, "capabilities are left after they were dropped");
    for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
        if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1)
            return errmsg_set(e, -EPERM, "capability %d is left in the bounding set", cap);
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
        return errmsg_set(e, -EPERM, "no_new_privs is not set");
    return 0;
}

int privs_have(int capability)
{
    capng_setpid(getpid());
    if (capng_get_caps_process() != 0)
        return 0;
    return capng_have_capability(CAPNG_EFFECTIVE, (unsigned)capability);
}
