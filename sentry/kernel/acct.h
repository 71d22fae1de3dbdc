/* SPDX-License-Identifier: Apache-2.0 */
/* Process accounting: a record in a file for each process that ends. Source: acct(2), acct(5). */
#pragma once

#include "platform/base/compiler.h"

struct container;
struct file;
struct task;

/* Turns accounting of c's processes on (f is consumed), or off with NULL. */
void acct_set(struct container *c, OWNS struct file *f);
/* t is ending: the last thread of its process writes the record. Parks while accounting is on. */
void acct_thread_exit(struct task *t);
