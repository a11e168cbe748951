/*
 * Metadata files and other programs: numpy and an independent program read them, files that numpy
 * has written are read, and a changed number is named with its place.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/diag.h"
#include "sherd/product.h"
#include "store/npz.h"
#include "tests/unit/scheduler/meta_world.h"

/* ---- changes that are detected --------------------------------------------------------------- */

/* Copies meta_tables to meta_other with one change to the values of a member. */
typedef struct forged {
    uint8_t *bytes;
    size_t row_bytes;
} forged;

static int fill_forged(void *ctx, size_t row, size_t rows, void *out, sherd_diag *d)
{
    const forged *f = ctx;
    (void)d;
    memcpy(out, f->bytes + row * f->row_bytes, rows * f->row_bytes);
    return SHERD_OK;
}

typedef struct change {
    const char *member; /* NULL: no change */
    size_t swap[2];     /* indices of values that are exchanged */
    size_t at;          /* or the value at `at` is replaced by this: */
    int value;
    bool drop, set;
} change;

static void forge(const change *c)
{
    sherd_diag d = { .code = 0 };
    sherd__npz *z;
    sherd__npz_writer *w;
    forged all[64];
    assert_int_equal(sherd__npz_open(&z, meta_tables, 1 << 30, 1, &d), 0);
    assert_int_equal(sherd__npz_writer_new(&w, meta_other, &d), 0);
    size_t count = sherd__npz_count(z);
    for (size_t i = 0; i < count; i++) {
        const sherd__npz_member *m = sherd__npz_member_at(z, i);
        size_t len = m->head.data_len, size = sherd_dtype_size(m->head.dtype);
        bool hit = c->member && strcmp(m->name, c->member) == 0;
        all[i] = (forged){ malloc(len + 1), m->head.cols * size };
        assert_int_equal(sherd__npz_read(z, i, all[i].bytes, len, &d), 0);
        if (hit && c->drop) continue;
        if (hit && c->set) all[i].bytes[c->at] = (uint8_t)c->value;
        else if (hit) {
            uint8_t t = all[i].bytes[c->swap[0] * size];
            assert_true(size == 1);
            all[i].bytes[c->swap[0]] = all[i].bytes[c->swap[1]];
            all[i].bytes[c->swap[1]] = t;
        }
        assert_int_equal(sherd__npz_writer_add(w,
                                               &(sherd__npz_array){ m->name, m->head.dtype,
                                                                    m->head.ndim, m->head.rows,
                                                                    m->head.cols },
                                               false, (sherd__npz_source){ fill_forged, &all[i] },
                                               &d),
                         0);
    }
    assert_int_equal(sherd__npz_writer_commit(w, NULL, &d), 0);
    for (size_t i = 0; i < count; i++) free(all[i].bytes);
    sherd__npz_close(z);
}

static void found(const change *c, const char *operation, const char *row)
{
    sherd_diag d = { .code = 0 };
    sherd_meta *m;
    forge(c);
    int err = sherd_meta_load(&m, meta_other, &d);
    if (!err) err = sherd_meta_verify(m, NULL, &d);
    sherd_meta_free(m);
    if (!operation) {
        assert_int_equal(err, 0);
        return;
    }
    assert_int_equal(err, SHERD_EFORMAT);
    assert_int_equal(sherd_err_exit(err), 3);
    if (!strstr(d.message, operation) || !strstr(d.message, row))
        fail_msg("\"%s\" does not name %s, %s", d.message, operation, row);
}

static void a_swapped_pair_or_changed_number_is_named_by_operation_and_row(void **s)
{
    (void)s;
    /* z1: 30 columns of 12; a1: 20 rows of 12; 5 outputs. */
    static const struct {
        change c;
        const char *operation, *row;
    } cases[] = {
        { { .member = NULL }, NULL, NULL },
        { { .member = "z1.enshuffles", .swap = { 17 * 12 + 3, 17 * 12 + 4 } }, "z1", "row 17" },
        { { .member = "z1.unshuffles", .swap = { 0, 11 } }, "z1", "row 0" },
        { { .member = "a1.enshuffles", .swap = { 19 * 12, 19 * 12 + 11 } }, "a1", "row 19" },
        { { .member = "cost_delta_squared.unshuffles", .swap = { 7 * 5, 7 * 5 + 1 } },
          "cost_delta_squared",
          "row 7" },
        { { .member = "z1_dw.enshuffles", .set = true, .at = 2 * 30 + 5, .value = 200 },
          "z1_dw",
          "row 2" },
        { { .member = "z1_dw.exposures", .set = true, .at = 13, .value = 7 }, "z1_dw", "row 13" },
        { { .member = "z1.enshuffles", .drop = true }, "z1.enshuffles", "missing" },
        { { .member = "z1.exposures", .drop = true }, "z1.exposures", "missing" },
        { { .member = "seed", .set = true, .at = 31, .value = 1 }, "operation z1, row 0", "seed" },
    };
    for (int without = 0; without < 2; without++) {
        sherd_meta *m = meta_network(&meta_seven, 20);
        meta_save(m, meta_tables,
                  (sherd_meta_save_options){ .size = sizeof(sherd_meta_save_options),
                                             .expanded = true,
                                             .without_seed = without });
        sherd_meta_free(m);
        for (size_t i = 0; i < sizeof cases / sizeof cases[0] - (size_t)without; i++)
            found(&cases[i].c, cases[i].operation, cases[i].row);
    }
}

static void exchanged_exposures_are_detected_without_the_seed(void **s)
{
    (void)s;
    uint32_t e[30];
    sherd_meta *m = meta_network(&meta_seven, 20);
    for (int without = 0; without < 2; without++) {
        meta_save(m, meta_tables,
                  (sherd_meta_save_options){ .size = sizeof(sherd_meta_save_options),
                                             .expanded = true,
                                             .without_seed = without });
        change c = { .member = "z1.exposures" };
        assert_int_equal(sherd_meta_exposures(m, 0, e, NULL), 0);
        while (e[c.swap[0]] == e[c.swap[1]]) c.swap[1]++;
        found(&c, "z1", without ? "digest" : "row 0");
    }
    sherd_meta_free(m);
}

static void a_changed_seed_is_refused_in_the_seed_form_and_never_saved(void **s)
{
    (void)s;
    sherd_diag d = { .code = 0 };
    sherd_meta *m = meta_network(&meta_seven, 20);
    sherd_meta_save_options opt = { .size = sizeof opt, .expanded = true };
    change c = { .member = "seed", .set = true, .at = 0, .value = 2 };
    meta_save(m, meta_tables,
              (sherd_meta_save_options){ .size = sizeof(sherd_meta_save_options),
                                         .expanded = false });
    sherd_meta_free(m);
    forge(&c);
    assert_int_equal(sherd_meta_load(&m, meta_other, &d), SHERD_EFORMAT);
    assert_non_null(strstr(d.message, "commitment of the manifest"));
    assert_null(m);
    m = meta_load(meta_tables);
    meta_save(m, meta_tables, opt);
    sherd_meta_free(m);
    forge(&c);
    m = meta_load(meta_other);
    assert_null(sherd_meta_seed(m));
    assert_int_equal(sherd_meta_save(m, meta_seeded, &opt, NULL, NULL), SHERD_EFORMAT);
    sherd_meta_free(m);
}

static void a_damaged_row_is_never_used_in_a_product(void **s)
{
    (void)s;
    sherd_diag d = { .code = 0 };
    sherd_meta *m = meta_network(&meta_seven, 20);
    sherd_shuffles q = { .size = sizeof q };
    uint32_t row[12];
    change c = { .member = "z1.enshuffles", .set = true, .at = 29 * 12, .value = 12 };
    change e = { .member = "z1.exposures", .set = true, .at = 0, .value = 255 };
    meta_save(m, meta_tables,
              (sherd_meta_save_options){ .size = sizeof(sherd_meta_save_options),
                                         .expanded = true });
    sherd_meta_free(m);
    forge(&c);
    m = meta_load(meta_other);
    assert_int_equal(sherd_meta_shuffles(m, 0, &q, NULL, &d), SHERD_EFORMAT);
    assert_non_null(strstr(d.message, "row 29"));
    assert_null(q.perm);
    assert_int_equal(sherd_meta_rows(m, 0, SHERD_META_ENSHUFFLES, 0, 28, 1, row, NULL), 0);
    assert_int_equal(sherd_meta_rows(m, 0, SHERD_META_ENSHUFFLES, 0, 29, 1, row, NULL),
                     SHERD_EFORMAT);
    sherd_meta_free(m);
    forge(&e);
    m = meta_load(meta_other);
    uint32_t exposures[784];
    uint64_t counts[7];
    assert_int_equal(sherd_meta_shuffles(m, 0, &q, NULL, NULL), SHERD_EFORMAT);
    assert_int_equal(sherd_meta_exposures(m, 0, exposures, NULL), SHERD_EFORMAT);
    assert_int_equal(sherd_meta_exposure_counts(m, 0, counts, NULL), SHERD_EFORMAT);
    sherd_meta_free(m);
}

/* The arrays are used, and never replaced by what the seed gives: if they disagree, one of them is
 * wrong. */
static void members_that_do_not_verify_are_neither_used_nor_replaced(void **s)
{
    (void)s;
    static const change lies[] = {
        { .member = "z1.enshuffles", .swap = { 24, 25 } },
        { .member = "z1.unshuffles", .swap = { 24, 25 } },
        { .member = "z1.rows", .swap = { 40, 41 } },
        { .member = "z1.unrows", .swap = { 40, 41 } },
        { .member = "z1.exposures", .swap = { 0, 1 } },
    };
    sherd_meta_settings set = meta_seven;
    set.shuffle_rows = true;
    set.balanced = true;
    for (int bare = 0; bare < 2; bare++)
        for (size_t k = 0; k < sizeof lies / sizeof *lies; k++) {
            sherd_diag d = { .code = 0 };
            sherd_shuffles q = { .size = sizeof q };
            change lie = lies[k];
            sherd_meta *m = meta_network(&set, 20);
            uint32_t *exposures = calloc(sherd_meta_columns(sherd_meta_at(m, 0)), 4);
            assert_int_equal(sherd_meta_exposures(m, 0, exposures, NULL), 0);
            while (strstr(lie.member, "exposures") && exposures[lie.swap[1]] == exposures[0])
                lie.swap[1]++;
            free(exposures);
            meta_save(m, meta_tables,
                      (sherd_meta_save_options){ .size = sizeof(sherd_meta_save_options),
                                                 .expanded = true,
                                                 .without_seed = bare });
            sherd_meta_free(m);
            forge(&lie);
            m = meta_load(meta_other);
            assert_int_equal(sherd_meta_shuffles(m, 0, &q, NULL, &d), SHERD_EFORMAT);
            assert_non_null(strstr(d.message, "operation z1, row "));
            assert_null(q.exposures);
            if (sherd_meta_shuffles(m, 1, &q, NULL, &d)) fail_msg("%s", d.message);
            int err = sherd_meta_save(m, meta_tables,
                                      &(sherd_meta_save_options){
                                          .size = sizeof(sherd_meta_save_options),
                                          .as_loaded = true },
                                      NULL, &d);
            sherd_meta_free(m);
            assert_int_equal(err, strstr(lie.member, "exposures") ? SHERD_EFORMAT : SHERD_OK);
            if (err) continue;
            m = meta_load(meta_tables); /* saved for another operation, and unchanged */
            assert_int_equal(sherd_meta_verify(m, NULL, NULL), SHERD_EFORMAT);
            sherd_meta_free(m);
        }
}

/* ---- numpy, and an independent program ------------------------------------------------------- */

static void numpy_opens_the_files_and_an_independent_program_reproduces_them(void **s)
{
    (void)s;
    static const char *const oracle = "/usr/bin/python3 -W ignore tests/oracle/perm_v1.py %s "
                                      ">/dev/null";
    sherd_diag d = { .code = 0 };
    char command[256];
    if (access("/usr/bin/python3", X_OK) != 0) skip();
    for (int k = 0; k < 3; k++) {
        sherd_meta_settings set = {
            .size = sizeof set, .nodes = k ? 300 : 7, .balanced = k == 1, .shuffle_rows = k == 2
        };
        sherd_meta *m = meta_network(&set, 270); /* rows of 270: two bytes for an index */
        sherd_meta_operation big = {
            .size = sizeof big, .name = "big", .kind = SHERD_OP_PRODUCT, .n = 2, .k = 2, .m = 66000
        };
        assert_int_equal(sherd_meta_add(m, &big, &d), 0);
        meta_save(m, meta_tables,
                  (sherd_meta_save_options){ .size = sizeof(sherd_meta_save_options),
                                             .expanded = true,
                                             .deflate = k == 1 });
        sherd_meta_free(m);
        snprintf(command, sizeof command, oracle, meta_tables);
        assert_int_equal(system(command), 0);
    }
    change c = { .member = "z1.enshuffles", .swap = { 0, 1 } };
    forge(&c);
    snprintf(command, sizeof command,
             "/usr/bin/python3 -W ignore tests/oracle/perm_v1.py %s "
             ">/dev/null 2>&1",
             meta_other);
    assert_int_not_equal(system(command), 0); /* the check can fail */
}

static void a_file_that_numpy_has_rewritten_is_read(void **s)
{
    (void)s;
    char command[512];
    if (access("/usr/bin/python3", X_OK) != 0) skip();
    for (int packed = 0; packed < 2; packed++) {
        sherd_meta *m = meta_network(&meta_seven, 20);
        meta_save(m, meta_tables,
                  (sherd_meta_save_options){ .size = sizeof(sherd_meta_save_options),
                                             .expanded = true });
        snprintf(command, sizeof command,
                 "/usr/bin/python3 -c 'import numpy; numpy.savez%s(\"%s\", **numpy.load(\"%s\"))'",
                 packed ? "_compressed" : "", meta_other, meta_tables);
        assert_int_equal(system(command), 0);
        sherd_meta *b = meta_load(meta_other);
        meta_compare(m, b);
        assert_int_equal(sherd_meta_verify(b, NULL, NULL), 0);
        sherd_meta_free(m);
        sherd_meta_free(b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_swapped_pair_or_changed_number_is_named_by_operation_and_row),
        cmocka_unit_test(exchanged_exposures_are_detected_without_the_seed),
        cmocka_unit_test(a_changed_seed_is_refused_in_the_seed_form_and_never_saved),
        cmocka_unit_test(a_damaged_row_is_never_used_in_a_product),
        cmocka_unit_test(members_that_do_not_verify_are_neither_used_nor_replaced),
        cmocka_unit_test(numpy_opens_the_files_and_an_independent_program_reproduces_them),
        cmocka_unit_test(a_file_that_numpy_has_rewritten_is_read),
    };
    return cmocka_run_group_tests_name("scheduler/metadata_files", tests, meta_begin, meta_end);
}
