/* SPDX-License-Identifier: Apache-2.0 */
/* Bounded reading and writing of payloads; every length from the peer is checked here. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "platform/base/compiler.h"

/* Reads a payload that is already in private memory. After the first failure bad is set, and all
 * further reads give zeroes and NULL, so that a decoder checks once, at its end. */
struct codec_reader {
    const unsigned char *data;
    size_t size;
    size_t at;
    bool bad;
};

/* Writes a payload into caller memory; too much data sets bad and writes nothing. */
struct codec_writer {
    unsigned char *data;
    size_t capacity;
    size_t size;
    bool bad;
};

/* A string inside a payload: not NUL-terminated, contains no NUL. */
struct codec_str {
    const char *data;
    size_t size;
};

void codec_reader_init(struct codec_reader *r, const void *data, size_t size);
/* Copies the next size bytes to p (zeroes when there are too few). */
void codec_get(struct codec_reader *r, void *p, size_t size);
/* Return: pointer to the next size bytes inside the payload, or NULL. */
const void *codec_get_bytes(struct codec_reader *r, size_t size);
/* Reads a string of at most max bytes; empty ones are fine. Return: data NULL when bad. */
struct codec_str codec_get_str(struct codec_reader *r, size_t max);
/* Return: true when nothing failed and nothing is left over. */
MUST_CHECK bool codec_reader_done(const struct codec_reader *r);

void codec_writer_init(struct codec_writer *w, void *data, size_t capacity);
void codec_put(struct codec_writer *w, const void *p, size_t size);
void codec_put_str(struct codec_writer *w, const char *data, size_t size);
/* Return: size bytes to be filled in by the caller, or NULL when they do not fit. */
void *codec_reserve(struct codec_writer *w, size_t size);

/* Return: true when the size bytes at name can name a directory entry: 1 to 255 bytes, no slash, no
 * NUL, and neither "." nor "..". */
MUST_CHECK bool codec_name_ok(const char *name, size_t size);
