/* SPDX-License-Identifier: Apache-2.0 */
/* WALK and READDIR. */
#pragma once

#include "gofer/server/srv_session.h"

int srv_dir_walk(struct srv_call *call);
int srv_dir_readdir(struct srv_call *call);
