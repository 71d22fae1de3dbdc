/* SPDX-License-Identifier: Apache-2.0 */
/* Create, start and, in the foreground, wait: for run and do. */
#pragma once

#include "runtime/cli.h"
#include "runtime/ctr.h"

/* Runs a container. keep: leave its state after its end. Return: its exit status as a shell counts
 * it (128 + signal), or 0 when detached; −errno with a message. */
MUST_CHECK int run_container(const struct cli *cli, const struct ctr_create *how, bool keep,
                             struct errmsg *e);
