/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that make, remove and move names. */
#pragma once

#include "gofer/server/srv_session.h"

int srv_make_create(struct srv_call *call);
int srv_make_tmpfile(struct srv_call *call);
int srv_make_mkdir(struct srv_call *call);
int srv_make_symlink(struct srv_call *call);
int srv_make_mknod(struct srv_call *call);
int srv_make_link(struct srv_call *call);
int srv_make_unlink(struct srv_call *call);
int srv_make_rename(struct srv_call *call);
