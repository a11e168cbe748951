/* Products for training: compared with integers, in every layout, type and instruction set; parts
 * and finishing; the same bits from one thread and from several. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "matrix/tiled.h"
#include "tests/support/under_valgrind.h"

static uint64_t state = 11;
static sherd__team *team;
static sherd__tiled_room room;

static uint32_t drawn(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33);
}

/* The fastest kernels; under valgrind, which computes an fma lane by lane, those without. The test
 * that forces each level uses all there, too. */
static unsigned usual(void)
{
    return under_valgrind() ? 1 : 0;
}

static int begin(void **s)
{
    (void)s;
    assert_true(sherd__tiled_force(usual()));
    return sherd__team_new(&team, 3);
}

static int end(void **s)
{
    (void)s;
    sherd__team_free(team);
    sherd__tiled_room_fini(&room);
    sherd__tiled_room_fini(&room);
    return 0;
}

/* A matrix in memory of its own, with gaps between its rows. */
typedef struct operand {
    void *memory;
    sherd_view v;
} operand;

static operand made(size_t rows, size_t cols, sherd_dtype type, bool turned, bool whole)
{
    size_t r = turned ? cols : rows, c = turned ? rows : cols, ld = c + drawn() % 3;
    size_t size = sherd_dtype_size(type), len = (r > 0 ? (r - 1) * ld + c : 0);
    operand o = { malloc(len * size + 1), { 0 } }; /* no memory behind it, so that sanitizers see an
                                                    * overrun */
    for (size_t i = 0; i < len; i++) {
        double x = whole ? (double)(drawn() % 17) : sin((double)drawn());
        if (type == SHERD_U8) ((uint8_t *)o.memory)[i] = (uint8_t)(drawn() % 17);
        if (type == SHERD_F64) ((double *)o.memory)[i] = whole ? x - 8 : x;
        if (type == SHERD_F32) ((float *)o.memory)[i] = (float)(whole ? x - 8 : x);
    }
    o.v = sherd_view_c(o.memory, type, r, c);
    o.v.row_stride = (ptrdiff_t)ld;
    if (turned) o.v = sherd_view_t(o.v);
    return o;
}

static double value(sherd_view v, size_t r, size_t c)
{
    ptrdiff_t at = (ptrdiff_t)r * v.row_stride + (ptrdiff_t)c * v.col_stride;
    return v.dtype == SHERD_F64   ? ((const double *)v.data)[at]
           : v.dtype == SHERD_F32 ? (double)((const float *)v.data)[at]
                                  : ((const uint8_t *)v.data)[at];
}

static double result(const sherd__tiled *p, size_t i)
{
    return p->type == SHERD_F64 ? ((const double *)p->c)[i] : (double)((const float *)p->c)[i];
}

/* Whole numbers: every order of summation gives the same result, with or without fma. */
static void one(size_t n, size_t k, size_t m, sherd_dtype type, sherd_dtype of_a, unsigned turned,
                sherd__team *t)
{
    operand a = made(n, k, of_a, turned & 1, true), b = made(k, m, type, turned & 2, true);
    size_t ldc = m + drawn() % 4, len = n * ldc, size = sherd_dtype_size(type);
    char *c = malloc(len * size + 1), *before = malloc(len * size + 1);
    memset(c, 0xff, len * size); /* NaN, which no sum equals */
    memcpy(before, c, len * size);
    sherd__tiled p = { .type = type, .a = a.v, .b = b.v, .c = c, .ldc = ldc };
    assert_true(sherd__tiled_takes(a.v) && sherd__tiled_takes(b.v));
    assert_int_equal(sherd__tiled_multiply(&p, t, &room), SHERD_OK);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < ldc; j++) {
            double want = 0;
            if (j >= m) { /* nothing is written between rows */
                assert_memory_equal(c + (i * ldc + j) * size, before + (i * ldc + j) * size, size);
                continue;
            }
            for (size_t l = 0; l < k; l++) want += value(a.v, i, l) * value(b.v, l, j);
            if (result(&p, i * ldc + j) != want)
                fail_msg("%zu x %zu x %zu, type %d of %d, turned %u: (%zu, %zu) is %g, not %g", n,
                         k, m, (int)type, (int)of_a, turned, i, j, result(&p, i * ldc + j), want);
        }
    free(a.memory);
    free(b.memory);
    free(c);
    free(before);
}

static const sherd_dtype types[] = { SHERD_F64, SHERD_F32 };
static const sherd_dtype left[] = { SHERD_F64, SHERD_F32, SHERD_U8 };

static void all_layouts(size_t n, size_t k, size_t m, sherd__team *t)
{
    for (unsigned turned = 0; turned < 4; turned++)
        for (size_t i = 0; i < 2; i++)
            for (size_t q = 0; q < 3; q++) one(n, k, m, types[i], left[q], turned, t);
}

static void products_equal_integers_in_every_layout_and_type(void **s)
{
    (void)s;
    static const size_t shapes[][3] = {
        { 0, 3, 4 },    { 3, 0, 4 },     { 3, 4, 0 },     { 1, 1, 1 },
        { 1, 300, 1 },  { 2, 2, 33 },    { 14, 256, 16 }, { 15, 257, 17 },
        { 29, 31, 32 }, { 13, 511, 63 }, { 40, 5, 1 },    { 1, 9, 70 },
        { 200, 20, 3 }, { 16, 128, 16 }, { 15, 384, 33 }, { 28, 255, 31 },
    };
    for (unsigned level = 0; level <= 3; level++) {
        if (!sherd__tiled_force(level)) continue;
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
            all_layouts(shapes[i][0], shapes[i][1], shapes[i][2], level == 0 ? team : NULL);
    }
    assert_true(sherd__tiled_force(usual()));
    for (size_t i = 0; i < 15; i++) all_layouts(drawn() % 50, drawn() % 50, drawn() % 50, team);
}

/* Large enough that one operand, or both, are copied into panels first, or that neither is. */
static void large_products_equal_integers(void **s)
{
    (void)s;
    one(500, 70, 90, SHERD_F64, SHERD_U8, 1, team);
    one(90, 700, 600, SHERD_F64, SHERD_F64, 0, team);
    one(90, 600, 700, SHERD_F32, SHERD_F32, 2, team);
    one(60, 30000, 8, SHERD_F64, SHERD_U8, 1, team);
    one(1400, 300, 4, SHERD_F32, SHERD_F64, 3, team);
    one(9, 1100, 350, SHERD_F64, SHERD_F64, 2, NULL);
    one(1100, 350, 11, SHERD_F64, SHERD_F64, 3, team);
    one(53, 300, 1000, SHERD_F64, SHERD_F64, 2, team); /* transposed as a whole */
    one(53, 300, 1000, SHERD_F32, SHERD_U8, 2, team);
    for (unsigned turned = 0; turned < 4; turned++) {
        one(90, 300, 190, SHERD_F64, SHERD_F64, turned, team); /* A stays in cache */
        one(190, 300, 90, SHERD_F64, SHERD_F64, turned, team); /* B stays in cache */
        one(70, 2000, 75, SHERD_F64, SHERD_F64, turned, team); /* neither does */
    }
    one(30, 40, 128, SHERD_F64, SHERD_F64, 0, team); /* rows that would share cache sets */
}

/* The product is added to sums that are in the output already; all are whole numbers. */
static void a_product_is_added_to_existing_sums(void **s)
{
    (void)s;
    static const size_t shapes[][3] = { { 1, 1, 1 },   { 29, 300, 33 }, { 33, 300, 29 },
                                        { 15, 0, 17 }, { 70, 700, 9 },  { 40, 20, 400 } };
    for (size_t q = 0; q < 6; q++)
        for (size_t i = 0; i < 2; i++) {
            size_t n = shapes[q][0], k = shapes[q][1], m = shapes[q][2];
            operand a = made(n, k, types[i], q % 2, true), b = made(k, m, types[i], i, true);
            double *want = malloc(n * m * sizeof *want);
            void *c = malloc(n * m * sizeof *want);
            sherd__tiled p = { .type = types[i], .a = a.v, .b = b.v, .c = c, .ldc = m };
            assert_int_equal(sherd__tiled_multiply(&p, team, &room), SHERD_OK);
            for (size_t at = 0; at < n * m; at++) want[at] = 2 * result(&p, at);
            p.add = true;
            assert_int_equal(sherd__tiled_multiply(&p, team, &room), SHERD_OK);
            for (size_t at = 0; at < n * m; at++) assert_true(result(&p, at) == want[at]);
            free(a.memory);
            free(b.memory);
            free(want);
            free(c);
        }
}

static void bits_do_not_depend_on_threads_layout_or_neighbours(void **s)
{
    (void)s;
    enum { N = 61, K = 517, M = 75 };
    for (size_t i = 0; i < 2; i++) {
        size_t size = sherd_dtype_size(types[i]);
        operand a = made(N, K, types[i], false, false), b = made(K, M, types[i], false, false);
        char *c = malloc(N * M * size), *want = malloc(N * M * size);
        char *turned = malloc(K * M * size);
        sherd__tiled p = { .type = types[i], .a = a.v, .b = b.v, .c = want, .ldc = M };
        assert_int_equal(sherd__tiled_multiply(&p, NULL, &room), SHERD_OK);
        p.c = c;
        assert_int_equal(sherd__tiled_multiply(&p, team, &room), SHERD_OK);
        assert_memory_equal(c, want, N * M * size);
        for (size_t l = 0; l < K; l++)
            for (size_t j = 0; j < M; j++)
                memcpy(turned + (j * K + l) * size,
                       (const char *)b.v.data + (l * (size_t)b.v.row_stride + j) * size, size);
        p.b = sherd_view_t(sherd_view_c(turned, types[i], M, K));
        memset(c, 0, N * M * size);
        assert_int_equal(sherd__tiled_multiply(&p, team, &room), SHERD_OK);
        assert_memory_equal(c, want, N * M * size);
        p.a = sherd_view_sub(a.v, 40, 3, 0, K); /* only some rows, only some columns */
        p.b = sherd_view_sub(b.v, 0, K, 30, 7);
        assert_int_equal(sherd__tiled_multiply(&p, NULL, &room), SHERD_OK);
        for (size_t r = 0; r < 3; r++)
            assert_memory_equal(c + r * M * size, want + ((40 + r) * M + 30) * size, 7 * size);
        free(a.memory);
        free(b.memory);
        free(c);
        free(want);
        free(turned);
    }
}

/* ---- finishing ------------------------------------------------------------------------------- */

#define ROWS 300u
#define COLS 70u

static struct {
    double c[ROWS * COLS];
    atomic_uint times[ROWS * COLS];
} parts;

static void finish(void *ctx, size_t row, size_t col, size_t rows, size_t cols, void *c, size_t ld)
{
    assert_ptr_equal(ctx, &parts);
    assert_int_equal(ld, COLS);
    assert_ptr_equal(c, parts.c + row * COLS + col);
    assert_true(row + rows <= ROWS && col + cols <= COLS);
    for (size_t r = row; r < row + rows; r++)
        for (size_t j = col; j < col + cols; j++) {
            atomic_fetch_add(&parts.times[r * COLS + j], 1);
            parts.c[r * COLS + j] += 1000;
        }
}

static void each_part_is_finished_once_when_it_is_complete(void **s)
{
    (void)s;
    static const size_t depths[] = { 0, 5, 300, 600 };
    for (size_t q = 0; q < 4; q++) {
        operand a = made(ROWS, depths[q], SHERD_U8, false, true);
        operand b = made(depths[q], COLS, SHERD_F64, false, true);
        memset(&parts, 0, sizeof parts);
        sherd__tiled p = { .type = SHERD_F64,
                           .a = a.v,
                           .b = b.v,
                           .c = parts.c,
                           .ldc = COLS,
                           .finish = finish,
                           .ctx = &parts };
        assert_int_equal(sherd__tiled_multiply(&p, team, &room), SHERD_OK);
        for (size_t i = 0; i < ROWS * COLS; i++) {
            double want = 1000;
            for (size_t l = 0; l < depths[q]; l++)
                want += value(a.v, i / COLS, l) * value(b.v, l, i % COLS);
            assert_int_equal(parts.times[i], 1);
            assert_true(parts.c[i] == want);
        }
        free(a.memory);
        free(b.memory);
    }
}

typedef struct collection {
    char *c;
    size_t cols, size;
} collection;

static void collect(void *ctx, size_t row, size_t col, size_t rows, size_t cols, void *c, size_t ld)
{
    const collection *to = ctx;
    assert_true(cols <= ld);
    for (size_t r = 0; r < rows; r++)
        memcpy(to->c + ((row + r) * to->cols + col) * to->size, (char *)c + r * ld * to->size,
               cols * to->size);
}

static void a_product_that_is_not_stored_is_passed_to_its_finishing_step(void **s)
{
    (void)s;
    static const size_t shapes[][3] = {
        { 1, 1, 1 },     { 200, 20, 190 }, { 15, 0, 17 },    { 190, 20, 200 },
        { 90, 300, 45 }, { 45, 300, 190 }, { 20, 7000, 22 },
    };
    for (size_t q = 0; q < 7; q++)
        for (unsigned way = 0; way < 8; way++) {
            size_t n = shapes[q][0], k = shapes[q][1], m = shapes[q][2], size;
            sherd_dtype type = types[way & 1];
            operand a = made(n, k, type, way & 2, false), b = made(k, m, type, way & 4, false);
            size = sherd_dtype_size(type);
            char *want = malloc(n * m * size);
            collection got = { malloc(n * m * size), m, size };
            sherd__tiled p = { .type = type, .a = a.v, .b = b.v, .c = want, .ldc = m };
            assert_int_equal(sherd__tiled_multiply(&p, team, &room), SHERD_OK);
            p.c = NULL;
            p.finish = collect;
            p.ctx = &got;
            for (int alone = 0; alone < 2; alone++) {
                memset(got.c, 0xff, n * m * size);
                assert_int_equal(sherd__tiled_multiply(&p, alone ? NULL : team, &room), SHERD_OK);
                assert_memory_equal(got.c, want, n * m * size);
            }
            free(a.memory);
            free(b.memory);
            free(want);
            free(got.c);
        }
}

static void unsupported_views_and_types_are_refused(void **s)
{
    (void)s;
    double x[12] = { 0 };
    sherd_view v = sherd_view_c(x, SHERD_F64, 2, 3);
    v.row_stride = 6;
    assert_true(sherd__tiled_takes(v));
    v.col_stride = 2;
    assert_false(sherd__tiled_takes(v));
    assert_false(sherd__tiled_takes(sherd_view_c(x, SHERD_I16, 2, 3)));
    sherd__tiled p = { .type = SHERD_U8,
                       .a = sherd_view_c(x, SHERD_F64, 2, 2),
                       .b = sherd_view_c(x, SHERD_F64, 2, 2),
                       .c = x,
                       .ldc = 2 };
    assert_int_equal(sherd__tiled_multiply(&p, NULL, &room), SHERD_EINVAL);
}

static void without_memory_a_product_fails(void **s)
{
    (void)s;
    double x[4] = { 1, 2, 3, 4 }, c[4];
    sherd__tiled_room none = { 0 };
    sherd__tiled p = { .type = SHERD_F64,
                       .a = sherd_view_c(x, SHERD_F64, 2, 2),
                       .b = sherd_view_c(x, SHERD_F64, 2, 2),
                       .c = c,
                       .ldc = 2 };
    sherd__alloc_fail_nth(1);
    assert_int_equal(sherd__tiled_multiply(&p, NULL, &none), SHERD_ENOMEM);
    sherd__alloc_fail_nth(0);
    assert_int_equal(sherd__tiled_multiply(&p, NULL, &none), SHERD_OK);
    assert_true(c[0] == 7 && c[1] == 10 && c[2] == 15 && c[3] == 22);
    sherd__tiled_room_fini(&none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_equal_integers_in_every_layout_and_type),
        cmocka_unit_test(large_products_equal_integers),
        cmocka_unit_test(a_product_is_added_to_existing_sums),
        cmocka_unit_test(bits_do_not_depend_on_threads_layout_or_neighbours),
        cmocka_unit_test(each_part_is_finished_once_when_it_is_complete),
        cmocka_unit_test(a_product_that_is_not_stored_is_passed_to_its_finishing_step),
        cmocka_unit_test(unsupported_views_and_types_are_refused),
        cmocka_unit_test(without_memory_a_product_fails),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
