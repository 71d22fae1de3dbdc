/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for the sentry in a tree where it is not built. */
#include "runtime/boot/boot.h"

#include <stdlib.h>

#include "platform/base/host.h"
#include "runtime/bootproto.h"

int boot_main(void)
{
    int r = boot_send(BOOT_FD_SOCK, BOOT_ERROR, -1, "this build has no sentry", -1);
    return r < 0 ? 2 : EXIT_FAILURE;
}
