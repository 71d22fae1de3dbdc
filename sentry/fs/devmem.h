/* SPDX-License-Identifier: Apache-2.0 */
/* The memory devices: null, zero, full, random, urandom. */
#pragma once

#include <stdbool.h>

struct file;

/* Return: whether writes to f go nowhere (splice may drop the data unseen). */
bool devmem_is_null(const struct file *f);
