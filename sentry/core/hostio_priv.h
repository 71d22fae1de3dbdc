/* SPDX-License-Identifier: Apache-2.0 */
/* What the event loop needs of the I/O pool. */
#pragma once

#include "platform/base/compiler.h"

/* Makes the descriptor by which pool threads report, and watches it. Return: 0 or −errno. */
MUST_CHECK int hostio_init(void);
