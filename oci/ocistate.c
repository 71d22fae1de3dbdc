/* SPDX-License-Identifier: Apache-2.0 */
/* The state document. */
#include "oci/ocistate.h"

#include "oci/json.h"

const char *ocistate_status_name(enum ocistate_status status)
{
    static const char *const names[] = {
        [OCISTATE_CREATING] = "creating", [OCISTATE_CREATED] = "created",
        [OCISTATE_RUNNING] = "running",   [OCISTATE_PAUSED] = "paused",
        [OCISTATE_STOPPED] = "stopped",
    };
    return (unsigned)status < ARRAY_SIZE(names) ? names[status] : "unknown";
}

void ocistate_write_time(struct buf *out, struct timespec t)
{
    struct tm tm;
    gmtime_r(&t.tv_sec, &tm);
    char text[64];
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
    buf_puts(out, text);
    if (t.tv_nsec > 0) {
        long fraction = t.tv_nsec;
        int digits = 9;
        while (fraction % 10 == 0) {
            fraction /= 10;
            digits--;
        }
        buf_printf(out, ".%0*ld", digits, fraction);
    }
    buf_putc(out, 'Z');
}

void ocistate_write(struct buf *out, const struct ocistate *state, const char *indent)
{
    struct json_writer w;
    json_writer_init(&w, out, indent);
    json_open_object(&w, NULL);
    json_put_string(&w, "ociVersion", state->oci_version ? state->oci_version : OCI_SPEC_VERSION);
    json_put_string(&w, "id", state->id);
    json_put_i64(&w, "pid", state->pid);
    json_put_string(&w, "status", ocistate_status_name(state->status));
    json_put_string(&w, "bundle", state->bundle);
    if (state->rootfs)
        json_put_string(&w, "rootfs", state->rootfs);
    if (state->created.tv_sec) {
        CLEANUP_BUF struct buf created = {0};
        ocistate_write_time(&created, state->created);
        if (buf_error(&created))
            out->failed = true;
        else
            json_put_string(&w, "created", created.data);
    }
    if (state->annotations.len) {
        json_open_object(&w, "annotations");
        for (unsigned i = 0; i < state->annotations.len; i++)
            json_put_string(&w, state->annotations.v[i].key, state->annotations.v[i].value);
        json_close_object(&w);
    }
    if (state->owner)
        json_put_string(&w, "owner", state->owner);
    json_close_object(&w);
}
