/* SPDX-License-Identifier: Apache-2.0 */
/* IPC namespaces: System V objects and POSIX message queues. */
#pragma once

struct ipcns;

struct ipcns *ipcns_ref(struct ipcns *ns);
void ipcns_unref(struct ipcns *ns);
