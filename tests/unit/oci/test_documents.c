/* SPDX-License-Identifier: Apache-2.0 */
/* Documents out: state in runc's layout, features, and the spec template. */
#include "oci/features.h"
#include "oci/ocistate.h"
#include "oci/spec_template.h"

#include <criterion/criterion.h>
#include <string.h>

#include "oci/json.h"
#include "platform/base/alloc.h"

Test(documents, state)
{
    const struct oci_pair pairs[] = {{"a", "b<"}, {"c.d", "e"}};
    struct ocistate s = {.id = "x",
                         .pid = 42,
                         .status = OCISTATE_RUNNING,
                         .bundle = "/b",
                         .annotations = {pairs, 2},
                         .rootfs = "/b/rootfs",
                         .created = {1767322445, 120000000},
                         .owner = ""};
    struct buf b = {0};
    ocistate_write(&b, &s, "  ");
    cr_assert_str_eq(b.data,
                     "{\n  \"ociVersion\": \"1.2.0\",\n  \"id\": \"x\",\n  \"pid\": 42,\n"
                     "  \"status\": \"running\",\n  \"bundle\": \"/b\",\n"
                     "  \"rootfs\": \"/b/rootfs\",\n  \"created\": \"2026-01-02T02:54:05.12Z\",\n"
                     "  \"annotations\": {\n    \"a\": \"b\\u003c\",\n    \"c.d\": \"e\"\n  },\n"
                     "  \"owner\": \"\"\n}");
    buf_reset(&b);
    struct ocistate least = {
        .oci_version = "1.0.2", .id = "y", .status = OCISTATE_STOPPED, .bundle = "/b"};
    ocistate_write(&b, &least, NULL);
    cr_assert_str_eq(b.data,
                     "{\"ociVersion\":\"1.0.2\",\"id\":\"y\",\"pid\":0,\"status\":\"stopped\","
                     "\"bundle\":\"/b\"}");
    buf_free(&b);
}

Test(documents, times)
{
    static const struct {
        struct timespec t;
        const char *text;
    } rows[] = {
        {{1767322445, 0}, "2026-01-02T02:54:05Z"},
        {{1767322445, 1}, "2026-01-02T02:54:05.000000001Z"},
        {{1767322445, 50000000}, "2026-01-02T02:54:05.05Z"},
        {{1767322445, 999999999}, "2026-01-02T02:54:05.999999999Z"},
    };
    for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
        struct buf b = {0};
        ocistate_write_time(&b, rows[i].t);
        cr_assert_str_eq(b.data, rows[i].text);
        buf_free(&b);
    }
}

Test(documents, statuses)
{
    cr_assert_str_eq(ocistate_status_name(OCISTATE_CREATING), "creating");
    cr_assert_str_eq(ocistate_status_name(OCISTATE_CREATED), "created");
    cr_assert_str_eq(ocistate_status_name(OCISTATE_PAUSED), "paused");
}

Test(documents, features)
{
    struct features f = {.cgroup_v2 = true, .seccomp = true, .version = "0.1.0", .commit = "abc"};
    struct buf b = {0};
    features_write(&b, &f);
    cr_assert_eq(b.data[b.size - 1], '\n');
    struct arena a = {0};
    struct errmsg e = {""};
    const struct json_value *v;
    cr_assert_eq(json_parse(&a, b.data, b.size, "", &v, &e), 0, "%s", e.text);
    cr_assert_eq(json_len(json_member_peek(v, "hooks")), 6);
    const struct json_value *l = json_member_peek(v, "linux");
    cr_assert_eq(json_len(json_member_peek(l, "capabilities")), 41);
    bool on = true;
    cr_assert_eq(json_as_bool(json_member_peek(json_member_peek(l, "cgroup"), "v1"), &on, &e), 0);
    cr_assert_not(on);
    cr_assert_eq(json_as_bool(json_member_peek(json_member_peek(l, "seccomp"), "enabled"), &on, &e),
                 0);
    cr_assert(on);
    arena_free(&a);
    buf_free(&b);
}

Test(documents, memory_may_run_out)
{
    struct features f = {.version = "0.1.0"};
    for (unsigned n = 1;; n++) {
        struct buf b = {0};
        mem_fail_nth(n);
        features_write(&b, &f);
        spec_template_write(&b, true, 1, 2);
        struct ocistate s = {.id = "x", .bundle = "/", .created = {5, 5}};
        ocistate_write(&b, &s, NULL);
        mem_fail_nth(0);
        int r = buf_error(&b);
        buf_free(&b);
        if (!r)
            break;
        cr_assert_lt(n, 100);
    }
}
