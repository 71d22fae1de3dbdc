/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on one inode's attributes, link text, extended attributes and file system. */
#pragma once

#include "gofer/server/srv_session.h"

int srv_meta_getattr(struct srv_call *call);
int srv_meta_setattr(struct srv_call *call);
int srv_meta_readlink(struct srv_call *call);
int srv_meta_getxattr(struct srv_call *call);
int srv_meta_setxattr(struct srv_call *call);
int srv_meta_listxattr(struct srv_call *call);
int srv_meta_removexattr(struct srv_call *call);
int srv_meta_statfs(struct srv_call *call);
int srv_meta_fsync(struct srv_call *call);
int srv_meta_syncfs(struct srv_call *call);
int srv_meta_cachestat(struct srv_call *call);
int srv_meta_flags(struct srv_call *call);
