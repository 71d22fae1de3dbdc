/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the readers of config.json, process.json and resources.json. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "oci/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_message(int err, const struct errmsg *e)
{
    /* Every failure says why, on one line. */
    if (err)
        BUG_ON(!e->text[0] || strchr(e->text, '\n'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *json = (const char *)data;
    struct errmsg e = {""};
    struct oci_spec *spec = NULL;
    check_message(oci_spec_parse(json, size, &spec, &e), &e);
    oci_spec_free(spec);
    e.text[0] = '\0';
    struct oci_process_doc *process = NULL;
    check_message(oci_process_parse(json, size, &process, &e), &e);
    oci_process_doc_free(process);
    e.text[0] = '\0';
    struct oci_resources_doc *resources = NULL;
    check_message(oci_resources_parse(json, size, &resources, &e), &e);
    oci_resources_doc_free(resources);
    return 0;
}
