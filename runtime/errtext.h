/* SPDX-License-Identifier: Apache-2.0 */
/* Error numbers as runc's callers know them: in lower case ("no such file or directory"). */
#pragma once

/* Text of an error number, positive or negative. Valid until the next call. */
const char *errtext(int err);
