/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks that run on the host. (startContainer hooks run inside: see runtime/boot.) */
#pragma once

#include <sys/types.h>

#include "oci/ocistate.h"
#include "oci/spec.h"
#include "platform/base/compiler.h"
#include "platform/base/errmsg.h"

/* Runs the hooks of one kind in order, each with the state on its standard input. enter_pid > 0: in
 * that process's net, ipc and uts namespaces. Stops at the first that fails.
 * Return: 0, −errno with runc's text. */
MUST_CHECK int hooks_run(const struct oci_spec *spec, enum oci_hook_kind kind,
                         const struct ocistate *state, pid_t enter_pid, struct errmsg *e);
