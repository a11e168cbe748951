/*
 * Generated examples. Sine and cosine are computed here from IEEE operations in one order, because
 * those of the C library differ in the last bit between machines and training would amplify the
 * difference. The angles are within a few turns of zero, so a reduction with two constants is
 * accurate enough.
 */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "learn/dataset.h"
#include "learn/digits.h"
#include "learn/draw.h"
#include "learn/train.h"

/* The numbers of an example, and the bytes of each and of its target. */
typedef struct numbers {
    size_t cols, size, target;
} numbers;

/* Allocates inputs, and labels or values. */
static int make(sherd__dataset *out, const char *what, size_t rows, numbers of, sherd_diag *d)
{
    size_t bytes, targets;
    memset(out, 0, sizeof *out);
    if (rows == 0 || of.cols == 0 || rows > UINT32_MAX)
        return sherd__fail(d, SHERD_EINVAL, NULL, "%s: %zu examples of %zu numbers", what, rows,
                           of.cols);
    if (!sherd__mul(rows, of.cols, &bytes) || !sherd__mul(bytes, of.size, &bytes) ||
        !sherd__mul(rows, of.target, &targets) || !(out->owned[0] = sherd__alloc_large(bytes)) ||
        !(out->owned[1] = sherd__alloc(targets))) {
        sherd__dataset_fini(out);
        return sherd__fail_memory_hint(d, "take fewer examples", "%zu examples of %zu numbers (%s)",
                                       rows, of.cols, what);
    }
    return SHERD_OK;
}

/* ---- spiral ---------------------------------------------------------------------------------- */

/* pi/2 in two parts: the first has 33 bits, so its product with n is exact for |n| < 2^20. */
#define HALF_PI_HIGH 0x1.921fb544p0
#define HALF_PI_LOW 0x1.0b4611a626331p-34

/* Taylor series of |x| <= pi/4; the first term left out is below 2^-60. */
static double series(double x, double first, int from)
{
    double sum = 0, square = x * x;
    for (int k = from + 16; k > from; k -= 2) sum = (1 + sum) * -square / (double)(k * (k - 1));
    return first * (1 + sum);
}

static void sine_cosine(double x, double *sine, double *cosine)
{
    double n = rint(x / (HALF_PI_HIGH + HALF_PI_LOW));
    double r = (x - n * HALF_PI_HIGH) - n * HALF_PI_LOW;
    double s = series(r, r, 1), c = series(r, 1, 0);
    int quarter = (int)(n - 4 * floor(n / 4));
    *sine = quarter == 0 ? s : quarter == 1 ? c : quarter == 2 ? -s : -c;
    *cosine = quarter == 0 ? c : quarter == 1 ? -s : quarter == 2 ? -c : s;
}

int sherd__generate_spiral(sherd__dataset *out, size_t examples, size_t classes,
                           const uint8_t seed[32], sherd_diag *d)
{
    sherd__seeded state;
    sherd__entropy e = sherd__train_entropy(&state, seed, "spiral", 0);
    double pair[2] = { 0 };
    if (classes == 0 || classes > examples || classes > UINT32_MAX)
        return sherd__fail(d, SHERD_EINVAL, "more examples, or fewer classes",
                           "spiral: %zu examples for %zu classes: each has one or more", examples,
                           classes);
    int err = make(out, "spiral", examples, (numbers){ 2, sizeof(double), sizeof(uint32_t) }, d);
    if (err != 0) return err;
    double *x = out->owned[0];
    uint32_t *labels = out->owned[1];
    size_t at = 0;
    for (size_t j = 0; j < classes; j++) {
        size_t n = examples / classes + (j < examples % classes);
        for (size_t i = 0; i < n; i++, at++) {
            double t = n > 1 ? (double)i / (double)(n - 1) : 0, sine, cosine;
            if (at % 2 == 0) sherd__draw_normal(&e, pair);
            sine_cosine(4 * ((double)j + t) + 0.2 * pair[at % 2], &sine, &cosine);
            x[2 * at] = t * sine;
            x[2 * at + 1] = t * cosine;
            labels[at] = (uint32_t)j;
        }
    }
    out->x = sherd_view_c(x, SHERD_F64, examples, 2);
    out->targets.labels = labels;
    out->classes = out->width = classes;
    return SHERD_OK;
}

/* ---- the others ------------------------------------------------------------------------------ */

int sherd__generate_parabola(sherd__dataset *out, size_t examples, sherd_diag *d)
{
    int err = make(out, "parabola", examples, (numbers){ 1, sizeof(double), sizeof(double) }, d);
    if (err != 0) return err;
    double *x = out->owned[0], *y = out->owned[1];
    for (size_t i = 0; i < examples; i++) {
        x[i] = examples > 1 ? -2 + 4 * (double)i / (double)(examples - 1) : 0;
        y[i] = x[i] * x[i];
    }
    out->x = sherd_view_c(x, SHERD_F64, examples, 1);
    out->targets.values = y;
    out->width = 1;
    return SHERD_OK;
}

int sherd__generate_random(sherd__dataset *out, size_t examples, size_t inputs, size_t classes,
                           const uint8_t seed[32], sherd_diag *d)
{
    sherd__seeded state;
    if (classes == 0 || classes > UINT32_MAX)
        return sherd__fail(d, SHERD_EINVAL, NULL, "random: %zu classes", classes);
    int err = make(out, "random", examples, (numbers){ inputs, sizeof(double), sizeof(uint32_t) },
                   d);
    if (err != 0) return err;
    double *x = out->owned[0];
    uint8_t *bytes = out->owned[0]; /* words are converted to numbers in place */
    for (size_t i = 0; i < examples; i++) {
        sherd__entropy e = sherd__train_entropy(&state, seed, "random inputs", i);
        uint8_t *row = bytes + i * inputs * sizeof *x;
        e.fill(e.ctx, row, inputs * sizeof *x);
        for (size_t c = 0; c < inputs; c++)
            x[i * inputs + c] = (double)(sherd__get_u64(row + c * sizeof *x) >> 11) * 0x1p-53;
    }
    sherd__entropy e = sherd__train_entropy(&state, seed, "random labels", 0);
    sherd__draw_below(&e, (uint32_t)classes, out->owned[1], examples);
    out->x = sherd_view_c(x, SHERD_F64, examples, inputs);
    out->targets.labels = out->owned[1];
    out->classes = out->width = classes;
    return SHERD_OK;
}

int sherd__generate_digits(sherd__dataset *out, size_t first, size_t examples, sherd_diag *d)
{
    int err = make(out, "digits", examples, (numbers){ SHERD__DIGIT_PIXELS, 1, sizeof(uint32_t) },
                   d);
    if (err != 0) return err;
    uint8_t *pixels = out->owned[0], label;
    uint32_t *labels = out->owned[1];
    for (size_t i = 0; i < examples; i++) {
        sherd__digits_draw(SHERD__DIGITS_SEED, first + i, 1, pixels + i * SHERD__DIGIT_PIXELS,
                           &label);
        labels[i] = label;
    }
    out->x = sherd_view_c(pixels, SHERD_U8, examples, SHERD__DIGIT_PIXELS);
    out->targets.labels = labels;
    out->classes = out->width = 10;
    return SHERD_OK;
}
