/* SPDX-License-Identifier: Apache-2.0 */
/* Error messages that gain context outward. */
#include "platform/base/errmsg.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int errmsg_set(struct errmsg *e, int err, const char *fmt, ...)
{
    if (!e)
        return err;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(e->text, sizeof(e->text), fmt, ap);
    va_end(ap);
    return err;
}

int errmsg_prefix(struct errmsg *e, int err, const char *fmt, ...)
{
    if (!e)
        return err;
    char old[sizeof(e->text)];
    memcpy(old, e->text, sizeof(old));
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(e->text, sizeof(e->text), fmt, ap);
    va_end(ap);
    size_t len = strlen(e->text);
    snprintf(e->text + len, sizeof(e->text) - len, ": %s", old);
    return err;
}
