/*
 * Operands that are mostly zeros: the reference in fewer bytes, nonfinite values, and kept operands
 * multiplied by sparse and dense ones in turn.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sherd/multiplier.h"
#include "tests/system/scheduler/product_world.h"

/* `per_mille` of the entries are nonzero; every ninth row is empty. */
static operand make_sparse(size_t rows, size_t cols, sherd_dtype t, unsigned per_mille)
{
    size_t size = sherd_dtype_size(t);
    operand o = { calloc(rows * cols + 1, size), sherd_view_c(NULL, t, rows, cols) };
    for (size_t i = 0; i < rows * cols; i++)
        if (i / (cols ? cols : 1) % 9 && cluster_below(1000) < per_mille)
            operand_put(o.memory + i * size, t, 1 + (double)cluster_below(200));
    o.v.data = o.memory;
    return o;
}

static uint64_t spent(const sherd_product_options *o, operand a, operand b, sherd_report *r)
{
    operand_multiply(cluster, o, a.v, b.v, r);
    uint64_t out = bytes_of_all(r->bytes_out);
    sherd_report numbers = { .size = sizeof numbers,
                             .encoding = r->encoding,
                             .tasks = r->tasks,
                             .tasks_csr = r->tasks_csr };
    sherd_report_fini(r);
    *r = numbers;
    return out;
}

static void sparse_operands_give_the_reference_in_fewer_bytes(void **state)
{
    (void)state;
    static const unsigned densities[] = { 0, 1, 10, 50, 190, 400, 700, 1000 };
    static const sherd_dtype types[] = { SHERD_U8, SHERD_F64, SHERD_I32 };
    static const size_t sizes[][3] = { { 500, 120, 16 }, { 90, 300, 40 }, { 1, 64, 1 },
                                       { 64, 1, 9 },     { 0, 9, 9 },     { 9, 0, 9 },
                                       { 9, 9, 0 } };
    uint8_t seed[32] = { 7 };
    for (unsigned round = 0; round < 56; round++) {
        const size_t *s = sizes[round / 8 % 7];
        unsigned density = densities[round % 8];
        sherd_dtype t = types[round % 3];
        operand a = make_sparse(s[0], s[1], t, density), b = operand_any(s[1], s[2]);
        sherd_product_options o = { .size = sizeof o };
        sherd_report r = { .size = sizeof r };
        o.seed = seed;
        o.scheme = (round ^ round / 8) & 1 ? SHERD_PLAIN : SHERD_PERMUTE;
        o.exact = round / 2 & 1;
        o.group = density == 190 || round % 5 ? 0 : 4;
        o.encoding = SHERD_ENCODING_DENSE;
        uint64_t dense = spent(&o, a, b, &r);
        assert_int_equal(r.encoding, SHERD_ENCODING_DENSE);
        assert_int_equal(r.tasks_csr, 0);
        o.encoding = SHERD_ENCODING_CSR;
        uint64_t csr = spent(&o, a, b, &r);
        assert_true(csr <= dense + 1000); /* heartbeats */
        if (r.tasks_csr == 0) assert_true(csr + 1000 >= dense);
        if (s[0] == 500 && density == 190) /* a fifth of the entries, with their columns */
            assert_true(r.tasks_csr == r.tasks && csr < dense - 10000);
        o.encoding = SHERD_ENCODING_AUTO;
        operand_multiply(cluster, &o, a.v, b.v, &r);
        assert_in_range(r.encoding, SHERD_ENCODING_DENSE, SHERD_ENCODING_CSR);
        assert_true(r.encoding == SHERD_ENCODING_CSR || r.tasks_csr == 0);
        sherd_report_fini(&r);
        free(a.memory);
        free(b.memory);
    }
}

static void zeros_count_if_b_has_nonfinite_values(void **state)
{
    (void)state;
    operand a = make_sparse(40, 30, SHERD_F64, 100), b = make_sparse(30, 5, SHERD_F64, 1000);
    sherd_product_options o = { .size = sizeof o };
    sherd_report r = { .size = sizeof r };
    ((double *)(void *)b.memory)[7] = INFINITY;
    ((double *)(void *)b.memory)[33] = NAN;
    o.encoding = SHERD_ENCODING_CSR;
    operand_multiply(cluster, &o, a.v, b.v, &r);
    assert_int_equal(r.encoding, SHERD_ENCODING_DENSE);
    assert_int_equal(r.tasks_csr, 0);
    sherd_report_fini(&r);
    ((double *)(void *)b.memory)[7] = ((double *)(void *)b.memory)[33] = 1;
    ((double *)(void *)a.memory)[50] = INFINITY; /* in A they are values like others */
    ((double *)(void *)a.memory)[80] = NAN;
    operand_multiply(cluster, &o, a.v, b.v, &r);
    assert_int_equal(r.encoding, SHERD_ENCODING_CSR);
    assert_true(r.tasks_csr > 0);
    sherd_report_fini(&r);
    free(a.memory);
    free(b.memory);
}

static void a_kept_operand_is_multiplied_by_sparse_and_dense_ones_in_turn(void **state)
{
    (void)state;
    for (unsigned exact = 0; exact < 2; exact++) {
        operand b = make_sparse(80, 30, SHERD_F64, 1000);
        sherd_product_options o = { .size = sizeof o };
        sherd_resident *kept;
        o.exact = exact;
        assert_int_equal(sherd_resident_new(&kept, cluster, b.v, 200, &o, NULL), 0);
        for (unsigned round = 0; round < 4; round++) {
            operand a = make_sparse(200 - round, 80, SHERD_F64, round & 1 ? 1000 : 60);
            double *c = malloc(200 * 30 * 8);
            sherd_report r = { .size = sizeof r };
            assert_int_equal(sherd_resident_multiply(kept, a.v, c, 30, &r, NULL), 0);
            operand_must_equal(&o, a.v, b.v, c, 30);
            /* Eight-byte values, of which one in sixteen is nonzero, or nearly all. */
            if (!exact)
                assert_int_equal(r.encoding, round & 1 ? SHERD_ENCODING_DENSE : SHERD_ENCODING_CSR);
            sherd_report_fini(&r);
            free(c);
            free(a.memory);
        }
        sherd_resident_free(kept);
        free(b.memory);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sparse_operands_give_the_reference_in_fewer_bytes),
        cmocka_unit_test(zeros_count_if_b_has_nonfinite_values),
        cmocka_unit_test(a_kept_operand_is_multiplied_by_sparse_and_dense_ones_in_turn),
    };
    return cmocka_run_group_tests(tests, cluster_begin, cluster_end);
}
