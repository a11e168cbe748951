#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "store/manifest.h"
#include "store/metafile.h"

#define HEX "0123456789abcdef0123456789ABCDEF0123456789abcdef0123456789abcdef"

/* A manifest in pieces; a test replaces one of them. */
enum { FORMAT, TOOL, FORM, SCHEME, NODES, GROUP, EXPOSURE, SHUFFLE, SEED, OPERATIONS, PIECES };
static const char *const sound[PIECES] = {
    "\"format\":1",
    "\"tool\":\"sherd 0.1.0\"",
    "\"form\":\"seed\"",
    "\"scheme\":\"permute\"",
    "\"nodes\":7",
    "\"group\":\"all\"",
    "\"exposure\":\"balanced\"",
    "\"shuffle_rows\":true",
    "\"seed_commitment\":\"" HEX "\"",
    "\"operations\":[{\"name\":\"z1\",\"kind\":\"dot\",\"shape\":[6,5,4],\"operands\":\"" HEX "\"},"
    "{\"name\":\"a_1\",\"kind\":\"sigmoid\",\"shape\":[6,4]}]",
};

static void join(char *out, size_t size, int piece, const char *instead)
{
    size_t at = 0;
    at += (size_t)snprintf(out, size, "{");
    for (int i = 0; i < PIECES; i++) {
        const char *text = i == piece ? instead : sound[i];
        if (*text) at += (size_t)snprintf(out + at, size - at, "%s%s", at > 1 ? "," : "", text);
    }
    snprintf(out + at, size - at, "}");
}

static int parse(const char *text, size_t len, sherd__metafile *f, sherd_diag *d)
{
    char *copy = malloc(len + 1); /* exact, so that sanitizers see an overrun */
    memcpy(copy, text, len);
    *f = (sherd__metafile){ .count = 0 };
    int err = sherd__manifest_parse(f, copy, len, "x.npz", d);
    free(copy);
    return err;
}

static void a_manifest_is_read_completely(void **s)
{
    (void)s;
    char text[2048];
    sherd__metafile f;
    sherd_diag d = { .code = 0 };
    join(text, sizeof text, -1, "");
    if (parse(text, strlen(text), &f, &d)) fail_msg("%s", d.message);
    assert_false(f.expanded);
    assert_int_equal(f.settings.nodes, 7);
    assert_int_equal(f.settings.group, 0);
    assert_true(f.settings.balanced);
    assert_true(f.settings.shuffle_rows);
    assert_int_equal(f.commitment[1], 0x23);
    assert_int_equal(f.count, 2);
    assert_string_equal(f.ops[0].name, "z1");
    assert_int_equal(f.ops[0].kind, SHERD_OP_PRODUCT);
    assert_int_equal(f.ops[0].n, 6);
    assert_int_equal(f.ops[0].k, 5);
    assert_int_equal(f.ops[0].m, 4);
    assert_true(f.ops[0].used);
    assert_int_equal(f.ops[0].operands[1], 0x23);
    assert_int_equal(f.ops[1].kind, SHERD_OP_SIGMOID);
    assert_int_equal(f.ops[1].m, 4);
    assert_false(f.ops[1].used);
    sherd__metafile_fini(&f);
    sherd__metafile_fini(&f);
}

static void a_manifest_that_was_written_reads_back_equal(void **s)
{
    (void)s;
    char text[2048];
    uint8_t sha256[2][32];
    sherd__metafile f, g;
    sherd_diag d = { .code = 0 };
    sherd__buf out;
    memset(sha256, 0xa5, sizeof sha256);
    join(text, sizeof text, -1, "");
    assert_int_equal(parse(text, strlen(text), &f, &d), 0);
    for (uint32_t group = 0; group < 3; group++)
        for (int expanded = 0; expanded < 2; expanded++) {
            f.settings.group = group;
            f.settings.balanced = group & 1;
            f.settings.shuffle_rows = group & 2;
            sherd__buf_init(&out, 1 << 16, 0);
            assert_int_equal(sherd__manifest_format(&f, expanded, (const uint8_t(*)[32])sha256,
                                                    &out),
                             0);
            if (parse((char *)out.data, out.len, &g, &d)) fail_msg("%s", d.message);
            assert_int_equal(g.expanded, expanded);
            assert_int_equal(g.settings.nodes, f.settings.nodes);
            assert_int_equal(g.settings.group, group);
            assert_int_equal(g.settings.balanced, f.settings.balanced);
            assert_int_equal(g.settings.shuffle_rows, f.settings.shuffle_rows);
            assert_memory_equal(g.commitment, f.commitment, 32);
            assert_int_equal(g.count, 2);
            assert_int_equal(g.ops[0].n, 6);
            assert_int_equal(g.ops[0].k, 5);
            assert_memory_equal(g.ops[0].operands, f.ops[0].operands, 32);
            if (expanded) assert_memory_equal(g.exposures_sha256[1], sha256[1], 32);
            sherd__metafile_fini(&g);
            sherd__buf_fini(&out);
        }
    sherd__metafile_fini(&f);
}

static void each_invalid_field_is_named(void **s)
{
    (void)s;
    static const struct {
        int piece;
        const char *instead, *says;
    } cases[] = {
        { FORMAT, "\"format\":2", "format 2" },
        { FORMAT, "", "\"format\"" },
        { FORMAT, "\"format\":1.0", "\"format\"" },
        { FORMAT, "\"format\":\"1\"", "\"format\"" },
        { TOOL, "\"tool\":7", "\"tool\"" },
        { TOOL, "\"tol\":\"x\"", "unknown field \"tol\"" },
        { FORM, "\"form\":\"other\"", "\"form\"" },
        { SCHEME, "\"scheme\":\"share\"", "\"scheme\"" },
        { NODES, "\"nodes\":0", "\"nodes\"" },
        { NODES, "\"nodes\":65536", "\"nodes\"" },
        { NODES, "\"nodes\":-1", "\"nodes\"" },
        { NODES, "\"nodes\":7,\"nodes\":8", "duplicate" },
        { GROUP, "\"group\":0", "\"group\"" },
        { GROUP, "\"group\":\"some\"", "\"group\"" },
        { GROUP, "\"group\":4294967296", "\"group\"" },
        { EXPOSURE, "\"exposure\":\"even\"", "\"exposure\"" },
        { SHUFFLE, "\"shuffle_rows\":1", "\"shuffle_rows\"" },
        { SEED, "\"seed_commitment\":\"00\"", "\"seed_commitment\"" },
        { SEED,
          "\"seed_commitment\":\"g123456789abcdef0123456789ABCDEF0123456789abcdef0123456789"
          "abcdef\"",
          "\"seed_commitment\"" },
        { SEED, "", "\"seed_commitment\"" },
        { OPERATIONS, "\"operations\":{}", "\"operations\"" },
        { OPERATIONS, "\"operations\":[7]", "operation 0" },
        { OPERATIONS, "\"operations\":[{\"name\":\"a b\",\"kind\":\"dot\",\"shape\":[1,2,3]}]",
          "operation 0" },
        { OPERATIONS, "\"operations\":[{\"name\":\"seed\",\"kind\":\"dot\",\"shape\":[1,2,3]}]",
          "operation 0" },
        { OPERATIONS, "\"operations\":[{\"name\":\"a\",\"kind\":\"cosine\",\"shape\":[1,2]}]",
          "\"kind\"" },
        { OPERATIONS, "\"operations\":[{\"name\":\"a\",\"kind\":\"dot\",\"shape\":[1,2]}]",
          "\"shape\"" },
        { OPERATIONS, "\"operations\":[{\"name\":\"a\",\"kind\":\"exp\",\"shape\":[1,4294967296]}]",
          "\"shape\"" },
        { OPERATIONS, "\"operations\":[{\"name\":\"a\",\"kind\":\"exp\",\"shape\":[1,67108865]}]",
          "67108865" },
        { OPERATIONS,
          "\"operations\":[{\"name\":\"a\",\"kind\":\"dot\","
          "\"shape\":[1,4000000000,1]}]",
          "4000000000" },
        { OPERATIONS, "\"operations\":[{\"name\":\"a\",\"kind\":\"exp\",\"shape\":[1,-2]}]",
          "\"shape\"" },
        { OPERATIONS, "\"operations\":[{\"name\":\"a\",\"kind\":\"exp\",\"shape\":[1,2.5]}]",
          "\"shape\"" },
        { OPERATIONS,
          "\"operations\":[{\"name\":\"a\",\"kind\":\"exp\",\"shape\":[1,2],"
          "\"operands\":3}]",
          "\"operands\"" },
        { OPERATIONS,
          "\"operations\":[{\"name\":\"a\",\"kind\":\"exp\",\"shape\":[1,2],"
          "\"exposures_sha256\":\"" HEX "\"}]",
          "\"exposures_sha256\"" },
        { OPERATIONS,
          "\"operations\":[{\"name\":\"a\",\"kind\":\"exp\",\"shape\":[1,2]},"
          "{\"name\":\"a\",\"kind\":\"exp\",\"shape\":[1,2]}]",
          "operation 1" },
        { FORM, "\"form\":\"expanded\"", "\"exposures_sha256\"" },
    };
    char text[2048];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sherd__metafile f;
        sherd_diag d = { .code = 0 };
        join(text, sizeof text, cases[i].piece, cases[i].instead);
        assert_int_equal(parse(text, strlen(text), &f, &d), SHERD_EFORMAT);
        assert_non_null(strstr(d.message, "x.npz"));
        if (!strstr(d.message, cases[i].says))
            fail_msg("case %zu: \"%s\" lacks \"%s\"", i, d.message, cases[i].says);
        sherd__metafile_fini(&f);
    }
}

static void every_prefix_and_every_flipped_bit_is_handled(void **s)
{
    (void)s;
    char text[2048];
    sherd__metafile f;
    join(text, sizeof text, -1, "");
    size_t len = strlen(text);
    for (size_t n = 0; n < len; n++) {
        assert_int_equal(parse(text, n, &f, NULL), SHERD_EFORMAT);
        sherd__metafile_fini(&f);
    }
    for (size_t bit = 0; bit < 8 * len; bit++) {
        text[bit / 8] = (char)(text[bit / 8] ^ (1 << bit % 8));
        int err = parse(text, len, &f, NULL);
        assert_true(err == 0 || err == SHERD_EFORMAT);
        sherd__metafile_fini(&f);
        text[bit / 8] = (char)(text[bit / 8] ^ (1 << bit % 8));
    }
    assert_int_equal(parse("[]", 2, &f, NULL), SHERD_EFORMAT);
    assert_int_equal(parse("7", 1, &f, NULL), SHERD_EFORMAT);
}

static void every_failed_allocation_is_reported(void **s)
{
    (void)s;
    char text[2048];
    join(text, sizeof text, -1, "");
    for (size_t n = 1;; n++) {
        sherd__metafile f;
        sherd__alloc_fail_nth(n);
        int err = parse(text, strlen(text), &f, NULL);
        size_t seen = sherd__alloc_fail_nth(0);
        sherd__metafile_fini(&f);
        if (seen < n) {
            assert_int_equal(err, 0);
            break;
        }
        assert_int_equal(err, SHERD_ENOMEM);
    }
}

static void names_and_kinds_of_operations_map_to_each_other(void **s)
{
    (void)s;
    static const int kinds[] = { 1, 16, 17, 18, 19, 20, 21, 22 };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        assert_int_equal(sherd_op_find(sherd_op_name((sherd_op)kinds[i])), kinds[i]);
    assert_null(sherd_op_name((sherd_op)2));
    assert_int_equal(sherd_op_find("Dot"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_manifest_is_read_completely),
        cmocka_unit_test(a_manifest_that_was_written_reads_back_equal),
        cmocka_unit_test(each_invalid_field_is_named),
        cmocka_unit_test(every_prefix_and_every_flipped_bit_is_handled),
        cmocka_unit_test(every_failed_allocation_is_reported),
        cmocka_unit_test(names_and_kinds_of_operations_map_to_each_other),
    };
    return cmocka_run_group_tests_name("store/metafile", tests, NULL, NULL);
}
