/* SPDX-License-Identifier: Apache-2.0 */
/* Lower-case error texts. */
#include "runtime/errtext.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

const char *errtext(int err)
{
    static char text[128];
    snprintf(text, sizeof(text), "%s", strerror(err < 0 ? -err : err));
    /* "RPC struct is bad" keeps its capital: only words, not abbreviations, are lowered. */
    if (isupper((unsigned char)text[0]) && !isupper((unsigned char)text[1]))
        text[0] = (char)tolower((unsigned char)text[0]);
    return text;
}
