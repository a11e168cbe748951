/*
 * Metadata: the operations that a network needs, both forms of a file, which have the same
 * contents, and the rule that the shuffles of one operation serve one set of operands.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"
#include "crypto/perm.h"
#include "sherd/product.h"
#include "store/file.h"
#include "tests/unit/scheduler/meta_world.h"

/* ---- operations ------------------------------------------------------------------------------ */

static void one_training_step_has_the_eleven_operations_of_the_published_scheme(void **s)
{
    (void)s;
    static const struct {
        const char *name, *kind;
        uint64_t rows, m, columns;
    } want[] = {
        { "z1", "dot", 784, 128, 784 },
        { "a1", "sigmoid", 60000, 128, 128 },
        { "z2", "dot", 128, 10, 128 },
        { "a2", "sigmoid", 60000, 10, 10 },
        { "cost_delta", "minus", 60000, 10, 10 },
        { "cost_delta_squared", "square", 60000, 10, 10 },
        { "a2_dz", "multiply", 60000, 10, 10 },
        { "z2_dw", "dot", 60000, 128, 60000 },
        { "z2_da", "dot", 10, 60000, 10 },
        { "a1_dz", "multiply", 60000, 128, 128 },
        { "z1_dw", "dot", 60000, 784, 60000 },
    };
    static const uint64_t widths[] = { 784, 128, 10 };
    sherd_diag d = { .code = 0 };
    sherd_meta *m;
    uint64_t size = 0, indices = 0;
    sherd_meta_save_options opt = { .size = sizeof opt, .expanded = false };
    assert_int_equal(sherd_meta_new(&m, &meta_seven, NULL, &d), 0);
    assert_int_equal(sherd_meta_add_network(m, widths, 3, 60000, &d), 0);
    assert_int_equal(sherd_meta_count(m), 11);
    for (size_t i = 0; i < 11; i++) {
        const sherd_meta_operation *op = sherd_meta_at(m, i);
        assert_string_equal(op->name, want[i].name);
        assert_string_equal(sherd_op_name(op->kind), want[i].kind);
        assert_int_equal(sherd_meta_table_rows(op), want[i].rows);
        assert_int_equal(op->m, want[i].m);
        assert_int_equal(sherd_meta_columns(op), want[i].columns);
        assert_int_equal(sherd_meta_find(m, want[i].name), i);
        indices += want[i].rows * want[i].m;
    }
    assert_int_equal(indices, 73181632);
    assert_null(sherd_meta_at(m, 11));
    assert_int_equal(sherd_meta_save(m, meta_seeded, &opt, &size, &d), 0);
    assert_true(size < 2048);
    sherd_meta_free(m);
}

static void seed_form_metadata_is_made_within_a_millisecond(void **s)
{
    (void)s;
    static const uint64_t widths[] = { 784, 128, 10 };
    double best = 1;
    for (int i = 0; i < 20; i++) { /* the fastest run counts, since other work shares this
                                    * machine */
        struct timespec a, b;
        sherd_meta *m;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
        assert_int_equal(sherd_meta_new(&m, &meta_seven, NULL, NULL), 0);
        assert_int_equal(sherd_meta_add_network(m, widths, 3, 60000, NULL), 0);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
        sherd_meta_free(m);
        double took = (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec);
        if (took < best) best = took;
    }
    assert_true(best < 1e-3);
}

static void invalid_operations_are_refused(void **s)
{
    (void)s;
    static const uint64_t widths[] = { 5, 0, 3 };
    sherd_meta *m;
    sherd_meta_settings none = { .size = sizeof none, .nodes = 0 },
                        many = { .size = sizeof many, .nodes = 65536 };
    assert_int_equal(sherd_meta_new(&m, &none, meta_seed, NULL), SHERD_EINVAL);
    assert_null(m);
    assert_int_equal(sherd_meta_new(&m, &many, meta_seed, NULL), SHERD_EINVAL);
    many = (sherd_meta_settings){ .nodes = 3 }; /* no size */
    assert_int_equal(sherd_meta_new(&m, &many, meta_seed, NULL), SHERD_EINVAL);
    assert_int_equal(sherd_meta_new(&m, &meta_seven, meta_seed, NULL), 0);
    sherd_meta_operation op = { .size = sizeof op,
                                .name = "z",
                                .kind = SHERD_OP_PRODUCT,
                                .n = 3,
                                .k = 4,
                                .m = 5 },
                         bad;
    assert_int_equal(sherd_meta_add(m, &op, NULL), 0);
    assert_int_equal(sherd_meta_add(m, &op, NULL), SHERD_EINVAL); /* the name exists already */
    static const char *const names[] = { "", "a.b", "manifest", "seed", "a b", "\xc3\xa4" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        bad = op;
        snprintf(bad.name, sizeof bad.name, "%s", names[i]);
        assert_int_equal(sherd_meta_add(m, &bad, NULL), SHERD_EINVAL);
    }
    bad = op;
    bad.size = 0;
    bad.name[0] = 'y';
    assert_int_equal(sherd_meta_add(m, &bad, NULL), SHERD_EINVAL);
    bad = op;
    memset(bad.name, 'x', sizeof bad.name); /* not terminated */
    assert_int_equal(sherd_meta_add(m, &bad, NULL), SHERD_EINVAL);
    bad = (sherd_meta_operation){ .size = sizeof bad, .name = "y", .kind = (sherd_op)99 };
    assert_int_equal(sherd_meta_add(m, &bad, NULL), SHERD_EINVAL);
    bad = (sherd_meta_operation){
        .size = sizeof bad, .name = "y", .kind = SHERD_OP_PRODUCT, .m = UINT64_C(1) << 32
    };
    assert_int_equal(sherd_meta_add(m, &bad, NULL), SHERD_EINVAL);
    assert_int_equal(sherd_meta_add_network(m, widths, 1, 9, NULL), SHERD_EINVAL);
    assert_int_equal(sherd_meta_add_network(m, widths, 3, 9, NULL), SHERD_EINVAL);
    sherd_meta_free(m);
    sherd_meta_free(NULL);
}

/* ---- both forms have the same contents ------------------------------------------------------- */

static void both_forms_and_their_conversions_contain_the_same_numbers(void **s)
{
    (void)s;
    for (int k = 0; k < 8; k++) {
        sherd_meta_settings set = { .size = sizeof set,
                                    .nodes = k & 1 ? 300 : 7,
                                    .group = k & 2 ? 0 : 3,
                                    .balanced = k & 2,
                                    .shuffle_rows = k & 4 };
        sherd_meta *fresh = meta_network(&set, 40);
        meta_save(fresh, meta_seeded,
                  (sherd_meta_save_options){ .size = sizeof(sherd_meta_save_options),
                                             .expanded = false });
        meta_save(fresh, meta_tables,
                  (sherd_meta_save_options){ .size = sizeof(sherd_meta_save_options),
                                             .expanded = true,
                                             .deflate = k & 1 });
        sherd_meta *a = meta_load(meta_seeded), *b = meta_load(meta_tables);
        assert_false(sherd_meta_expanded(a));
        assert_true(sherd_meta_expanded(b));
        const sherd_meta_settings *got = sherd_meta_get(b);
        assert_int_equal(got->nodes, set.nodes);
        assert_int_equal(got->group, set.group);
        assert_int_equal(got->balanced, set.balanced);
        assert_int_equal(got->shuffle_rows, set.shuffle_rows);
        assert_memory_equal(sherd_meta_seed(b), meta_seed, 32);
        meta_compare(fresh, a);
        meta_compare(a, b);
        assert_int_equal(sherd_meta_verify(a, NULL, NULL), 0);
        assert_int_equal(sherd_meta_verify(b, NULL, NULL), 0);
        /* Without the seed, and copied from such a file. */
        meta_save(b, meta_other,
                  (sherd_meta_save_options){ .size = sizeof(sherd_meta_save_options),
                                             .expanded = true,
                                             .without_seed = true });
        sherd_meta *c = meta_load(meta_other);
        assert_null(sherd_meta_seed(c));
        assert_memory_equal(sherd_meta_commitment(c), sherd_meta_commitment(a), 32);
        assert_int_equal(sherd_meta_verify(c, NULL, NULL), 0);
        meta_save(c, meta_tables,
                  (sherd_meta_save_options){ .size = sizeof(sherd_meta_save_options),
                                             .expanded = true });
        sherd_meta *e = meta_load(meta_tables);
        meta_compare(a, e);
        sherd_meta_free(fresh);
        sherd_meta_free(a);
        sherd_meta_free(b);
        sherd_meta_free(c);
        sherd_meta_free(e);
    }
}

static void a_file_without_its_seed_is_compacted_with_the_right_seed_only(void **s)
{
    (void)s;
    uint8_t wrong[32];
    sherd_diag d = { .code = 0 };
    sherd_meta *m = meta_network(&meta_seven, 20);
    sherd_meta_save_options compact = { .size = sizeof compact, .expanded = false };
    uint32_t row[64];
    meta_save(m, meta_tables,
              (sherd_meta_save_options){ .size = sizeof(sherd_meta_save_options),
                                         .expanded = true,
                                         .without_seed = true });
    sherd_meta_free(m);
    m = meta_load(meta_tables);
    assert_int_equal(sherd_meta_save(m, meta_seeded, &compact, NULL, &d), SHERD_EINVAL);
    assert_int_equal(sherd_meta_rows(m, 0, SHERD_META_ENSHUFFLES, 1, 0, 1, row, NULL),
                     SHERD_EUNSUPPORTED);
    memcpy(wrong, meta_seed, 32);
    wrong[31] ^= 1;
    assert_int_equal(sherd_meta_seed_set(m, wrong, NULL), SHERD_EFORMAT);
    assert_int_equal(sherd_meta_seed_set(m, meta_seed, NULL), 0);
    assert_int_equal(sherd_meta_verify(m, NULL, NULL), 0);
    meta_save(m, meta_seeded, compact);
    sherd_meta_free(m);
    m = meta_load(meta_seeded);
    assert_memory_equal(sherd_meta_seed(m), meta_seed, 32);
    sherd_meta_free(m);
}

static void other_steps_have_other_permutations_and_the_same_exposures(void **s)
{
    (void)s;
    sherd_diag d = { .code = 0 };
    uint8_t key[32];
    uint32_t zero[12], one[12], back[12], want[12];
    sherd_meta *m = meta_network(&meta_seven, 20);
    assert_int_equal(sherd_meta_rows(m, 0, SHERD_META_ENSHUFFLES, 0, 2, 1, zero, &d), 0);
    assert_int_equal(sherd_meta_rows(m, 0, SHERD_META_ENSHUFFLES, 9, 2, 1, one, &d), 0);
    assert_int_equal(sherd_meta_rows(m, 0, SHERD_META_UNSHUFFLES, 9, 2, 1, back, &d), 0);
    assert_memory_not_equal(zero, one, sizeof zero);
    for (uint32_t i = 0; i < 12; i++) assert_int_equal(back[one[i]], i);
    sherd__perm_key(key, meta_seed, SHERD__PERM_LABEL, 0, 9);
    assert_int_equal(sherd__perm_row(key, 2, 12, want), 0);
    assert_memory_equal(one, want, sizeof want);
    sherd_meta_free(m);
}

static void both_forms_give_products_the_same_shuffles(void **s)
{
    (void)s;
    sherd_diag d = { .code = 0 };
    uint32_t x[64], y[64], want[64];
    sherd_meta_settings set = meta_seven;
    set.shuffle_rows = true;
    sherd_meta *a = meta_network(&set, 40);
    meta_save(a, meta_tables,
              (sherd_meta_save_options){ .size = sizeof(sherd_meta_save_options),
                                         .expanded = true,
                                         .without_seed = true });
    sherd_meta *b = meta_load(meta_tables);
    for (size_t i = 0; i < sherd_meta_count(a); i++) {
        const sherd_meta_operation *op = sherd_meta_at(a, i);
        sherd_shuffles p = { .size = sizeof p }, q = { .size = sizeof q };
        assert_int_equal(sherd_meta_shuffles(a, i, &p, NULL, &d), 0);
        assert_int_equal(sherd_meta_shuffles(b, i, &q, NULL, &d), 0);
        assert_memory_equal(p.exposures, q.exposures, sherd_meta_columns(op) * 4);
        for (size_t r = 0; r < sherd_meta_table_rows(op); r++) {
            assert_int_equal(p.perm(p.ctx, r, x), 0);
            assert_int_equal(q.perm(q.ctx, r, y), 0);
            assert_int_equal(sherd_meta_rows(a, i, SHERD_META_ENSHUFFLES, 0, r, 1, want, &d), 0);
            assert_memory_equal(x, want, op->m * 4);
            assert_memory_equal(y, want, op->m * 4);
        }
        assert_int_equal(q.perm(q.ctx, sherd_meta_table_rows(op), y), SHERD_EINVAL);
        assert_int_equal(p.rows != NULL, op->kind == SHERD_OP_PRODUCT);
        assert_int_equal(q.rows != NULL, op->kind == SHERD_OP_PRODUCT);
        for (size_t r = 0; p.rows && r < op->k; r++) {
            assert_int_equal(p.rows(p.ctx, r, x), 0);
            assert_int_equal(q.rows(q.ctx, r, y), 0);
            assert_int_equal(sherd_meta_rows(a, i, SHERD_META_ROWS, 0, r, 1, want, &d), 0);
            assert_memory_equal(x, want, op->n * 4);
            assert_memory_equal(y, want, op->n * 4);
        }
    }
    sherd_shuffles p = { .size = sizeof p };
    assert_int_equal(sherd_meta_shuffles(a, 11, &p, NULL, NULL), SHERD_EINVAL);
    sherd_meta_free(a);
    sherd_meta_free(b);
}

static void operations_without_rows_or_columns_work(void **s)
{
    (void)s;
    sherd_diag d = { .code = 0 };
    static const uint64_t shapes[][3] = {
        { 0, 0, 0 }, { 1, 1, 1 }, { 0, 5, 3 }, { 4, 0, 3 }, { 4, 3, 0 }
    };
    sherd_meta *m;
    sherd_meta_settings set = { .size = sizeof set, .nodes = 1, .shuffle_rows = true };
    assert_int_equal(sherd_meta_new(&m, &set, meta_seed, &d), 0);
    for (size_t i = 0; i < 5; i++)
        for (int dot = 0; dot < 2; dot++) {
            sherd_meta_operation op = { .size = sizeof op,
                                        .kind = dot ? SHERD_OP_PRODUCT : SHERD_OP_TANH,
                                        .n = shapes[i][0],
                                        .k = shapes[i][1],
                                        .m = shapes[i][2] };
            snprintf(op.name, sizeof op.name, "op%zu_%d", i, dot);
            assert_int_equal(sherd_meta_add(m, &op, &d), 0);
        }
    meta_save(m, meta_tables,
              (sherd_meta_save_options){ .size = sizeof(sherd_meta_save_options),
                                         .expanded = true });
    sherd_meta *b = meta_load(meta_tables);
    meta_compare(m, b);
    if (sherd_meta_verify(b, NULL, &d)) fail_msg("%s", d.message);
    for (size_t i = 0; i < sherd_meta_count(b); i++) {
        sherd_shuffles q = { .size = sizeof q };
        assert_int_equal(sherd_meta_shuffles(b, i, &q, NULL, &d), 0);
    }
    sherd_meta_free(m);
    sherd_meta_free(b);
}

/* ---- the rule about reuse -------------------------------------------------------------------- */

static void metadata_used_for_some_operands_is_refused_for_others(void **s)
{
    (void)s;
    static const uint8_t mine[32] = { 1 }, other[32] = { 2 };
    sherd_diag d = { .code = 0 };
    sherd_meta_usage usage;
    for (int expanded = 0; expanded < 2; expanded++) {
        sherd_meta *m = meta_network(&meta_seven, 20);
        sherd_meta_save_options form = { .size = sizeof form, .expanded = expanded };
        assert_int_equal(sherd_meta_use(m, 3, mine, false, &usage, &d), 0);
        assert_int_equal(usage, SHERD_META_FIRST_USE);
        meta_save(m, meta_tables, form);
        sherd_meta_free(m);
        m = meta_load(meta_tables);
        assert_true(sherd_meta_at(m, 3)->used);
        assert_false(sherd_meta_at(m, 2)->used);
        assert_memory_equal(sherd_meta_at(m, 3)->operands, mine, 32);
        assert_int_equal(sherd_meta_use(m, 3, mine, false, &usage, &d), 0);
        assert_int_equal(usage, SHERD_META_SAME_USE);
        assert_int_equal(sherd_meta_use(m, 3, other, false, &usage, NULL), SHERD_EEXPOSURE);
        assert_int_equal(sherd_meta_use(m, 3, other, true, &usage, &d), 0);
        assert_int_equal(usage, SHERD_META_REUSED);
        assert_memory_equal(sherd_meta_at(m, 3)->operands, mine, 32);
        assert_int_equal(sherd_meta_use(m, 2, other, false, &usage, &d), 0);
        assert_int_equal(usage, SHERD_META_FIRST_USE);
        assert_int_equal(sherd_meta_use(m, 11, other, false, &usage, NULL), SHERD_EINVAL);
        sherd_meta_free(m);
    }
}

static void a_file_is_saved_again_in_its_own_form(void **s)
{
    (void)s;
    const sherd_meta_save_options again = { .size = sizeof again, .as_loaded = true };
    for (int k = 0; k < 8; k++) {
        sherd_meta_save_options opt = { .size = sizeof opt,
                                        .expanded = k & 1,
                                        .deflate = k & 2,
                                        .without_seed = (k & 1) && (k & 4) };
        uint8_t *a, *b;
        size_t a_len, b_len;
        sherd_meta *m = meta_network(&meta_seven, 20);
        meta_save(m, meta_tables, opt);
        sherd_meta_free(m);
        m = meta_load(meta_tables);
        assert_int_equal(sherd_meta_save(m, meta_other, &again, NULL, NULL), 0);
        sherd_meta_free(m);
        assert_int_equal(sherd__file_read_small(&a, &a_len, meta_tables, 1 << 20, NULL), 0);
        assert_int_equal(sherd__file_read_small(&b, &b_len, meta_other, 1 << 20, NULL), 0);
        assert_int_equal(a_len, b_len);
        assert_memory_equal(a, b, a_len);
        sherd__free(a);
        sherd__free(b);
    }
}

/* ---- interruption, and failed allocations ---------------------------------------------------- */

static bool stop_at_the_third(void *ctx)
{
    return ++*(int *)ctx == 3;
}

static void its_hooks_can_interrupt_saving(void **s)
{
    (void)s;
    int calls = 0;
    const sherd_hooks hooks = { .interrupted = stop_at_the_third, .ctx = &calls };
    const sherd_meta_read_options read = { .size = sizeof read, .hooks = hooks };
    sherd_shuffles q = { .size = sizeof q };
    sherd_meta *m = meta_network(&meta_seven, 20);
    sherd_meta_save_options opt = { .size = sizeof opt, .expanded = true };
    unlink(meta_tables);
    calls = 0;
    opt.hooks = hooks;
    assert_int_equal(sherd_meta_save(m, meta_tables, &opt, NULL, NULL), SHERD_EINTERRUPTED);
    assert_int_not_equal(access(meta_tables, F_OK), 0);
    opt.hooks = (sherd_hooks){ 0 };
    meta_save(m, meta_tables, opt);
    sherd_meta_free(m);
    m = meta_load(meta_tables);
    calls = 0;
    assert_int_equal(sherd_meta_verify(m, &read, NULL), SHERD_EINTERRUPTED);
    assert_int_equal(calls, 3);
    calls = 2; /* at the first */
    assert_int_equal(sherd_meta_shuffles(m, 1, &q, &read, NULL), SHERD_EINTERRUPTED);
    assert_null(q.exposures);
    sherd_meta_free(m);
    assert_int_equal(calls, 3);
}

static int whole_life(void)
{
    static const uint64_t widths[] = { 30, 12 };
    sherd_meta *m, *b = NULL;
    sherd_shuffles q = { .size = sizeof q };
    uint32_t row[60];
    sherd_meta_save_options opt = { .size = sizeof opt, .expanded = true },
                            copy = { .size = sizeof copy, .expanded = true };
    int err = sherd_meta_new(&m, &meta_seven, meta_seed, NULL);
    if (!err) err = sherd_meta_add_network(m, widths, 2, 20, NULL);
    opt.without_seed = true;
    if (!err) err = sherd_meta_save(m, meta_tables, &opt, NULL, NULL);
    if (!err) err = sherd_meta_load(&b, meta_tables, NULL);
    if (!err) err = sherd_meta_verify(b, NULL, NULL);
    if (!err) err = sherd_meta_shuffles(b, 0, &q, NULL, NULL);
    if (!err) err = sherd_meta_rows(m, 0, SHERD_META_UNSHUFFLES, 0, 0, 2, row, NULL);
    if (!err) err = sherd_meta_save(b, meta_other, &copy, NULL, NULL);
    sherd_meta_free(m);
    sherd_meta_free(b);
    return err;
}

static void every_failed_allocation_is_reported(void **s)
{
    (void)s;
    for (size_t n = 1;; n++) {
        sherd__alloc_fail_nth(n);
        int err = whole_life();
        if (sherd__alloc_fail_nth(0) < n) {
            assert_int_equal(err, 0);
            break;
        }
        assert_int_equal(err, SHERD_ENOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_training_step_has_the_eleven_operations_of_the_published_scheme),
        cmocka_unit_test(seed_form_metadata_is_made_within_a_millisecond),
        cmocka_unit_test(invalid_operations_are_refused),
        cmocka_unit_test(both_forms_and_their_conversions_contain_the_same_numbers),
        cmocka_unit_test(a_file_without_its_seed_is_compacted_with_the_right_seed_only),
        cmocka_unit_test(other_steps_have_other_permutations_and_the_same_exposures),
        cmocka_unit_test(both_forms_give_products_the_same_shuffles),
        cmocka_unit_test(operations_without_rows_or_columns_work),
        cmocka_unit_test(metadata_used_for_some_operands_is_refused_for_others),
        cmocka_unit_test(a_file_is_saved_again_in_its_own_form),
        cmocka_unit_test(its_hooks_can_interrupt_saving),
        cmocka_unit_test(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests_name("scheduler/metadata", tests, meta_begin, meta_end);
}
