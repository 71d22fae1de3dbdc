/* SPDX-License-Identifier: Apache-2.0 */
/* OPEN_MANY. */
#pragma once

#include "gofer/server/srv_session.h"

int srv_ahead_open_many(struct srv_call *call);
