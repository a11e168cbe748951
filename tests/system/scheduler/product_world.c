/* The reference of exact products is sherd__reference_i128, that of others a plain loop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/rand.h"
#include "matrix/fixed.h"
#include "matrix/reference.h"
#include "matrix/view.h"
#include "tests/system/scheduler/local_nodes.h"
#include "tests/system/scheduler/product_world.h"

sherd_cluster *cluster;
static sherd__seeded rng_state;
static sherd__entropy rng;
bool cluster_stop;

static bool interrupted(void *ctx)
{
    (void)ctx;
    return cluster_stop;
}

sherd_cluster *cluster_of(uint32_t nodes, const char *misbehave)
{
    return local_open_as((sherd_cluster_options){ .size = sizeof(sherd_cluster_options),
                                                  .local_nodes = nodes,
                                                  .hooks = { .interrupted = interrupted } },
                         misbehave);
}

int cluster_begin(void **state)
{
    (void)state;
    rng = sherd__entropy_seeded(&rng_state, 11);
    cluster = cluster_of(NODES, NULL);
    return 0;
}

int cluster_end(void **state)
{
    (void)state;
    sherd_cluster_close(cluster);
    return 0;
}

size_t cluster_below(size_t n)
{
    return (size_t)sherd__entropy_below(&rng, n);
}

/* --- operands -------------------------------------------------------------------------------- */

void operand_put(uint8_t *at, sherd_dtype t, double x)
{
    switch (t) {
    case SHERD_F64: memcpy(at, &x, 8); break;
    case SHERD_F32: memcpy(at, &(float){ (float)x }, 4); break;
    case SHERD_U8: *at = (uint8_t)fabs(x); break;
    case SHERD_I32: memcpy(at, &(int32_t){ (int32_t)(x * 99) }, 4); break;
    default: memcpy(at, &(int64_t){ (int64_t)(x * 999) }, 8); break;
    }
}

operand operand_new(size_t rows, size_t cols, sherd_dtype t)
{
    size_t size = sherd_dtype_size(t), gap = cluster_below(3), room = (rows + 3) * (cols + 3);
    operand o = { calloc(room, size), sherd_view_c(NULL, t, rows, cols) };
    bool fortran = cluster_below(2);
    for (size_t i = 0; i < room; i++)
        operand_put(o.memory + i * size, t,
                    cluster_below(3) ? ((double)cluster_below(4001) - 2000) / 16 : 0);
    o.v.data = o.memory;
    o.v.row_stride = fortran ? 1 : (ptrdiff_t)(cols + gap);
    o.v.col_stride = fortran ? (ptrdiff_t)(rows + gap) : 1;
    return o;
}

operand operand_any(size_t rows, size_t cols)
{
    static const sherd_dtype types[] = { SHERD_F64, SHERD_F32, SHERD_U8, SHERD_I32, SHERD_I64 };
    return operand_new(rows, cols, types[cluster_below(5)]);
}

static void describe(const sherd_product_options *o, sherd_view a, sherd_view b, const char *what)
{
    fail_msg("%s: %zu x %zu x %zu, dtypes %d %d, scheme %d exact %d bits %u group %u balanced %d "
             "rows %d memory %llu",
             what, a.rows, a.cols, b.cols, a.dtype, b.dtype, o->scheme, o->exact, o->bits, o->group,
             o->balanced, o->shuffle_rows, (unsigned long long)o->memory);
}

void operand_must_equal(const sherd_product_options *o, sherd_view a, sherd_view b, const double *c,
                        size_t ldc)
{
    size_t n = a.rows, m = b.cols;
    double *ref = calloc(n * m + 1, 8);
    if (o->exact) {
        sherd__fixed fa, fb;
        assert_int_equal(sherd__fixed_choose(a, o->bits ? o->bits : SHERD__FIXED_BITS, "A", &fa,
                                             NULL),
                         0);
        assert_int_equal(sherd__fixed_choose(b, o->bits ? o->bits : SHERD__FIXED_BITS, "B", &fb,
                                             NULL),
                         0);
        assert_int_equal(sherd__reference_i128(&(sherd__matrices){ a, b, ref, m ? m : 1 }, &fa, &fb,
                                               NULL),
                         0);
        for (size_t i = 0; i < n; i++)
            if (m && memcmp(ref + i * m, c + i * ldc, m * 8)) describe(o, a, b, "bits differ");
    } else {
        for (size_t i = 0; i < n; i++) {
            for (size_t j = 0; j < m; j++) {
                double sum = 0, abs = 0, got = c[i * ldc + j];
                for (size_t t = 0; t < a.cols; t++) {
                    double x = sherd__view_at(a, i, t) * sherd__view_at(b, t, j);
                    sum += x;
                    abs += fabs(x);
                }
                bool ok = isfinite(sum)
                              ? fabs(got - sum) <= 4 * (double)(a.cols + 1) * 0x1p-53 * abs
                          : isnan(sum) ? isnan(got)
                                       : got == sum;
                if (!ok) describe(o, a, b, "wrong value");
            }
        }
    }
    free(ref);
}

void operand_multiply(sherd_cluster *on, const sherd_product_options *o, sherd_view a, sherd_view b,
                      sherd_report *r)
{
    size_t ldc = b.cols + cluster_below(3);
    double *c = malloc((a.rows + 1) * (ldc + 1) * 8);
    sherd_diag d = { 0 };
    memset(c, 0x5a, (a.rows + 1) * (ldc + 1) * 8);
    if (sherd_multiply(on, a, b, c, ldc, o, r, &d)) {
        fprintf(stderr, "%s\n", d.message);
        describe(o, a, b, "failed");
    }
    operand_must_equal(o, a, b, c, ldc);
    free(c);
}

uint64_t bytes_of_all(const uint64_t *per_node)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < NODES; i++) sum += per_node[i];
    return sum;
}
