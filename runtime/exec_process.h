/* SPDX-License-Identifier: Apache-2.0 */
/* The process.json of an exec: the container's own process, changed by flags. */
#pragma once

#include "platform/base/buf.h"
#include "platform/base/compiler.h"
#include "platform/base/errmsg.h"
#include "runtime/cli.h"
#include "runtime/ctr.h"

/* Writes the document to out. terminal says whether it asks for one. Return: 0, −errno with a message. */
MUST_CHECK int exec_process_build(const struct ctr *c, const struct cli_args *args, struct buf *out,
                                  bool *ret_terminal, struct errmsg *e);
