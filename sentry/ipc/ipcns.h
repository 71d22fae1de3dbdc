/* SPDX-License-Identifier: Apache-2.0 */
/* IPC namespaces: System V objects and POSIX message queues. */
#pragma once

#include "platform/base/compiler.h"

struct ipcns;

struct userns;

MUST_CHECK int ipcns_new(struct userns *userns, struct ipcns **ret_ns);
struct ipcns *ipcns_ref(struct ipcns *ns);
void ipcns_unref(struct ipcns *ns);
