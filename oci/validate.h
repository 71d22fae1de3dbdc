/* SPDX-License-Identifier: Apache-2.0 */
/* Cross-checks between the parts of a parsed config. */
#pragma once

#include "oci/spec.h"

/* Checks what no single field can tell: namespaces that a setting needs, limits in order, and so
 * on. Return: 0. Errors: EINVAL, e names the JSON path. */
MUST_CHECK int validate_spec(const struct oci_spec *spec, struct errmsg *e);
/* The part that concerns a process. */
MUST_CHECK int validate_process(const struct oci_process *p, struct errmsg *e);
