/* SPDX-License-Identifier: Apache-2.0 */
/* JSON: syntax errors with their place, limits, typed access with its messages, and the writer. */
#include "oci/json.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "platform/base/alloc.h"

static int parse(struct arena *a, const char *text, const struct json_value **ret, struct errmsg *e)
{
    return json_parse(a, text, strlen(text), "", ret, e);
}

static void check_syntax(const char *text, int want, const char *message)
{
    struct arena a = {0};
    struct errmsg e = {""};
    const struct json_value *v;
    int r = parse(&a, text, &v, &e);
    cr_assert_eq(r, want, "%s: got %d", text, r);
    cr_assert_str_eq(e.text, message);
    arena_free(&a);
}

Test(json, syntax_errors_name_the_place)
{
    check_syntax("", -EINVAL, "line 1, column 1: premature EOF");
    check_syntax("{\n  \"a\": 1,\n  2\n}", -EINVAL,
                 "line 3, column 4: invalid object key (must be a string)");
    check_syntax("{\"a\" 1}", -EINVAL,
                 "line 1, column 7: object key and value must be separated by a colon (':')");
    check_syntax("[1,]", -EINVAL, "line 1, column 5: unallowed token at this point in JSON text");
    check_syntax("[1 2]", -EINVAL, "line 1, column 5: after array element, I expect ',' or ']'");
    check_syntax("{} x", -EINVAL, "line 1, column 5: trailing garbage");
    check_syntax("[\"a\xff\"]", -EINVAL, "line 1, column 5: invalid bytes in UTF8 string.");
    check_syntax("[\"a\nb\"]", -EINVAL, "line 1, column 4: invalid character inside string.");
    check_syntax("nul", -EINVAL, "line 1, column 4: invalid string in json text.");
    check_syntax(
        "/* no */ {}", -EINVAL,
        "line 1, column 1: probable comment found in input text, comments are not enabled.");
}

Test(json, limits)
{
    char deep[200];
    memset(deep, '[', sizeof(deep));
    deep[sizeof(deep) - 1] = '\0';
    check_syntax(deep, -E2BIG, "line 1, column 66: nested deeper than 64 levels");

    size_t size = 2 * (size_t)JSON_VALUES_MAX + 2;
    char *many = mem_zalloc(size + 2);
    many[0] = '[';
    for (size_t i = 1; i < size; i += 2)
        memcpy(many + i, "1,", 2);
    struct arena a = {0};
    struct errmsg e = {""};
    const struct json_value *v;
    cr_assert_eq(parse(&a, many, &v, &e), -E2BIG);
    cr_assert(strstr(e.text, "more than 262144 values"), "%s", e.text);
    arena_free(&a);
    mem_free(many);

    cr_assert_eq(json_parse(&a, "", JSON_SIZE_MAX + 1, "", &v, &e), -E2BIG);
    cr_assert_str_eq(e.text, "larger than 8388608 bytes");
}

Test(json, tree)
{
    struct arena a = {0};
    struct errmsg e = {""};
    const struct json_value *v;
    cr_assert_eq(
        parse(&a, "{\"a\":[true,null,-5,\"x\\u00e9\"],\"b\":1,\"b\":2,\"n\":null}", &v, &e), 0);
    cr_assert_eq(json_type(v), JSON_OBJECT);
    cr_assert_eq(json_len(v), 4);
    cr_assert_null(json_member_peek(v, "n"), "null counts as absent");
    cr_assert_null(json_member_peek(v, "c"));
    uint64_t u;
    cr_assert_eq(json_as_u64(json_member_peek(v, "b"), 10, &u, &e), 0);
    cr_assert_eq(u, 2, "the last of equal names counts");
    const struct json_value *list = json_member_peek(v, "a");
    const struct json_value *first = json_first(list);
    bool b = false;
    cr_assert_eq(json_as_bool(first, &b, &e), 0);
    cr_assert(b);
    const struct json_value *third = json_next(json_next(first));
    int64_t i;
    cr_assert_eq(json_as_i64(third, -5, 5, &i, &e), 0);
    cr_assert_eq(i, -5);
    const char *s;
    cr_assert_eq(json_as_string(json_next(third), &s, &e), 0);
    cr_assert_str_eq(s, "x\xc3\xa9");
    cr_assert_null(json_next(json_next(third)));
    arena_free(&a);
}

/* The first element of the array in member "m" of text, read as an unsigned number up to 100. */
static void check_number(const char *number, const char *message)
{
    char text[200];
    snprintf(text, sizeof(text), "{\"m\":[%s]}", number);
    struct arena a = {0};
    struct errmsg e = {""};
    const struct json_value *v;
    cr_assert_eq(parse(&a, text, &v, &e), 0, "%s", e.text);
    uint64_t value;
    cr_assert_eq(json_as_u64(json_first(json_member_peek(v, "m")), 100, &value, &e), -EINVAL);
    cr_assert_str_eq(e.text, message);
    arena_free(&a);
}

Test(json, numbers)
{
    check_number("101", "m[0]: 101 is out of range (0 to 100)");
    check_number("99999999999999999999999",
                 "m[0]: 99999999999999999999999 is out of range (0 to 100)");
    check_number("-1", "m[0]: expected unsigned integer, got -1");
    check_number("1.0", "m[0]: expected unsigned integer, got 1.0");
    check_number("1e1", "m[0]: expected unsigned integer, got 1e1");
    check_number("\"1\"", "m[0]: expected unsigned integer, got string");
    check_number("true", "m[0]: expected unsigned integer, got boolean");
    check_number("{}", "m[0]: expected unsigned integer, got object");
}

Test(json, paths)
{
    struct arena a = {0};
    struct errmsg e = {""};
    const struct json_value *v;
    cr_assert_eq(parse(&a, "{\"x y\":{\"a.b\":[[1]]},\"\":2,\"z\\u0001\":3}", &v, &e), 0);
    const struct json_value *inner = json_first(json_first(json_first(json_first(v))));
    json_error(inner, &e, "bad");
    cr_assert_str_eq(e.text, "[\"x y\"][\"a.b\"][0][0]: bad");
    json_error(json_next(json_first(v)), &e, "bad");
    cr_assert_str_eq(e.text, "[\"\"]: bad");
    cr_assert_eq(json_key_check(json_next(json_first(v)), &e), -EINVAL);
    cr_assert_str_eq(e.text, "[\"\"]: name is empty");
    json_error(json_next(json_next(json_first(v))), &e, "bad");
    cr_assert_str_eq(e.text, "[\"z?\"]: bad");
    json_error(v, &e, "bad");
    cr_assert_str_eq(e.text, "top level: bad");
    json_missing(v, "q", &e);
    cr_assert_str_eq(e.text, "q: required field is missing");
    arena_free(&a);

    cr_assert_eq(json_parse(&a, "{\"k\":\"a\\u0000b\"}", 16, "process", &v, &e), 0);
    const char *s;
    cr_assert_eq(json_as_string(json_first(v), &s, &e), -EINVAL);
    cr_assert_str_eq(e.text, "process.k: string holds a NUL byte");
    cr_assert_eq(json_expect(v, JSON_ARRAY, &e), -EINVAL);
    cr_assert_str_eq(e.text, "process: expected array, got object");
    arena_free(&a);
}

static void write_sample(struct buf *b, const char *indent)
{
    struct json_writer w;
    json_writer_init(&w, b, indent);
    json_open_object(&w, NULL);
    json_put_string(&w, "s", "q\"\\\n\t\r\x01<&>\xc3\xa9\xe2\x80\xa8\xff\xed\xa0\x80");
    json_open_array(&w, "empty");
    json_close_array(&w);
    json_open_object(&w, "none");
    json_close_object(&w);
    json_put_strings(&w, "list", (const char *const[]){"a", "b", NULL});
    json_put_i64(&w, "i", INT64_MIN);
    json_put_u64(&w, "u", UINT64_MAX);
    json_put_bool(&w, "t", true);
    json_close_object(&w);
}

Test(json, writer)
{
    struct buf b = {0};
    write_sample(&b, NULL);
    cr_assert_str_eq(b.data,
                     "{\"s\":\"q\\\"\\\\\\n\\t\\r\\u0001\\u003c\\u0026\\u003e\xc3\xa9\\u2028"
                     "\\ufffd\\ufffd\\ufffd\\ufffd\",\"empty\":[],\"none\":{},\"list\":[\"a\","
                     "\"b\"],\"i\":-9223372036854775808,\"u\":18446744073709551615,\"t\":true}");
    buf_reset(&b);
    struct json_writer w;
    json_writer_init(&w, &b, "  ");
    json_open_object(&w, NULL);
    json_open_array(&w, "a");
    json_put_u64(&w, NULL, 1);
    json_open_object(&w, NULL);
    json_put_bool(&w, "f", false);
    json_close_object(&w);
    json_close_array(&w);
    json_close_object(&w);
    cr_assert_str_eq(b.data, "{\n  \"a\": [\n    1,\n    {\n      \"f\": false\n    }\n  ]\n}");
    cr_assert_eq(buf_error(&b), 0);
    buf_free(&b);
}

Test(json, every_allocation_may_fail)
{
    const char *text = "{\"escaped \\\" key\":[1,2,{\"a\":\"\\u00e9\\n\"}],\"x\":\"y\"}";
    for (unsigned n = 1;; n++) {
        struct arena a = {0};
        struct errmsg e = {""};
        const struct json_value *v;
        mem_fail_nth(n);
        int r = parse(&a, text, &v, &e);
        mem_fail_nth(0);
        arena_free(&a);
        if (!r)
            break;
        cr_assert_eq(r, -ENOMEM);
        cr_assert_str_eq(e.text, "out of memory");
        cr_assert_lt(n, 1000);
    }
}
