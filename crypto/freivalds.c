/*
 * Freivalds' check in floats: real weights and a tolerance, at the speed of memory. Sums use eight
 * fixed lanes without fma, so that the verdict is the same on every CPU. Masked elements are
 * cleared by bit operations, because 0 * NaN is not 0.
 */
#include "crypto/freivalds.h"

#include <math.h>
#include <string.h>

#include "matrix/clones.h"

#define LANES 8u

typedef double f64x8 __attribute__((vector_size(64)));
typedef int64_t i64x8 __attribute__((vector_size(64)));

void sherd__fv_weights(const sherd__entropy *e, size_t n, double *out)
{
    e->fill(e->ctx, out, n * sizeof *out);
    for (size_t i = 0; i < n; i++) {
        uint64_t bits;
        memcpy(&bits, out + i, sizeof bits);
        bits = (bits & UINT64_C(0x800fffffffffffff)) | UINT64_C(0x3ff0000000000000);
        memcpy(out + i, &bits, sizeof bits);
    }
}

SHERD__CLONES
static void lanes_dot(const double *y, const double *s, size_t eights, double sum[LANES],
                      double size[LANES])
{
    f64x8 total = { 0 }, magnitude = { 0 };
    const i64x8 positive = { INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX,
                             INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX };
    for (size_t i = 0; i < eights; i++) {
        f64x8 a, b, product;
        memcpy(&a, y + LANES * i, sizeof a);
        memcpy(&b, s + LANES * i, sizeof b);
        i64x8 taken = b != 0.0;
        a = (f64x8)((i64x8)a & taken);
        product = a * b;
        total += product;
        magnitude += (f64x8)((i64x8)product & positive);
    }
    memcpy(sum, &total, sizeof total);
    memcpy(size, &magnitude, sizeof magnitude);
}

double sherd__fv_dot_f64(const double *y, const double *s, size_t n, double *abs_acc)
{
    double sum[LANES], size[LANES];
    size_t eights = n / LANES;
    lanes_dot(y, s, eights, sum, size);
    for (size_t i = eights * LANES; i < n; i++) {
        if (s[i] == 0.0) continue;
        sum[i % LANES] += y[i] * s[i];
        size[i % LANES] += fabs(y[i] * s[i]);
    }
    for (size_t step = LANES / 2; step != 0; step /= 2)
        for (size_t i = 0; i < step; i++) {
            sum[i] += sum[i + step];
            size[i] += size[i + step];
        }
    if (abs_acc) *abs_acc += size[0];
    return sum[0];
}

void sherd__fv_right_f64(const double *x, size_t rows, size_t cols, size_t ld, const double *s,
                         double *out, double *out_abs)
{
    for (size_t i = 0; i < rows; i++) {
        out_abs[i] = 0.0;
        out[i] = sherd__fv_dot_f64(x + i * ld, s, cols, out_abs + i);
    }
}

double sherd__fv_answer_f64(const double *y, size_t rows, size_t cols, size_t ld, const double *r,
                            const double *s)
{
    double sum = 0.0;
    for (size_t i = 0; i < rows; i++)
        if (r[i] != 0.0) sum += r[i] * sherd__fv_dot_f64(y + i * ld, s, cols, NULL);
    return sum;
}

static bool all_finite(const double *x, size_t n)
{
    const uint64_t infinity = UINT64_C(0x7ff0000000000000);
    uint64_t bad = 0, bits;
    for (size_t i = 0; i < n; i++) {
        memcpy(&bits, x + i, sizeof bits);
        bad |= (bits & infinity) == infinity;
    }
    return bad == 0;
}

size_t sherd__fv_mask_rows(const double *x, size_t rows, size_t cols, size_t ld, double *r)
{
    size_t masked = 0;
    for (size_t i = 0; i < rows; i++) {
        if (r[i] == 0.0 || all_finite(x + i * ld, cols)) continue;
        r[i] = 0.0;
        masked++;
    }
    return masked;
}

double sherd__fv_underflow(size_t n, size_t k, size_t m)
{
    return 4 * (double)n * ((double)k + 3) * (double)m * 0x1p-1074;
}
