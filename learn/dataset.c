/*
 * Checks, splits and copies data sets. The check reads everything once, so that thousands of steps
 * can rely on finite numbers and labels within range.
 */
#include "learn/dataset.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "matrix/view.h"

void sherd__dataset_fini(sherd__dataset *s)
{
    for (size_t i = 0; i < sizeof s->owned / sizeof *s->owned; i++) sherd__free(s->owned[i]);
    memset(s, 0, sizeof *s);
}

static int check_targets(const sherd__dataset *s, const char *name, sherd_diag *d)
{
    for (size_t i = 0; s->targets.labels && i < s->x.rows; i++)
        if (s->targets.labels[i] >= s->width)
            return sherd__fail(d, SHERD_EFORMAT,
                               "the last layer has one output for each class, counted from 0",
                               "%s: row %zu has the label %u: expected one below %zu", name, i,
                               s->targets.labels[i], s->width);
    for (size_t i = 0; s->targets.values && i < s->x.rows * s->width; i++)
        if (!isfinite(s->targets.values[i]))
            return sherd__fail(d, SHERD_ERANGE, "leave such rows out, or fill in what is missing",
                               "%s: row %zu has the target %g", name, i / s->width,
                               s->targets.values[i]);
    return SHERD_OK;
}

int sherd__dataset_check(const sherd__dataset *s, const char *name, size_t inputs, size_t width,
                         sherd_diag *d)
{
    sherd__scan scan;
    int err = sherd__view_check(s->x, name, d);
    if (err != 0) return err;
    if (s->x.cols != inputs)
        return sherd__fail(d, SHERD_ESHAPE, "`input` in the recipe says what the network takes",
                           "%s: examples have %zu numbers: the network takes %zu", name, s->x.cols,
                           inputs);
    if (s->targets.values && s->width != width)
        return sherd__fail(d, SHERD_ESHAPE, "the last layer has as many outputs as a target",
                           "%s: targets have %zu numbers: the network gives %zu", name, s->width,
                           width);
    sherd__dataset as = *s;
    as.width = width;
    sherd__view_scan(s->x, &scan);
    if (scan.nonfinite > 0)
        return sherd__fail(d, SHERD_ERANGE, "leave such rows out, or fill in what is missing",
                           "%s: row %zu, column %zu is %g", name, scan.bad_row, scan.bad_col,
                           scan.bad_value);
    return check_targets(&as, name, d);
}

sherd__dataset sherd__dataset_part(const sherd__dataset *s, size_t first, size_t rows)
{
    sherd__dataset part = *s;
    memset(part.owned, 0, sizeof part.owned);
    part.x = sherd_view_sub(s->x, first, rows, 0, s->x.cols);
    if (s->targets.values) part.targets.values = s->targets.values + first * s->width;
    if (s->targets.labels) part.targets.labels = s->targets.labels + first;
    return part;
}

/* ---- copies ---------------------------------------------------------------------------------- */

static bool power_of_two(double x)
{
    int e;
    return x > 0 && frexp(x, &e) == 0.5;
}

/* Bytes divided by a power of two in this range are exact in f32. */
static sherd_dtype quotient_dtype(sherd_dtype t, double divide)
{
    if (divide == 1) return t;
    bool small = t == SHERD_U8 || t == SHERD_I8 || t == SHERD_U16 || t == SHERD_I16;
    return small && power_of_two(divide) && divide >= 0x1p-60 && divide <= 0x1p60 ? SHERD_F32
                                                                                  : SHERD_F64;
}

static void copy_row(sherd_view x, size_t row, const sherd__input_scale *by, sherd_dtype t,
                     uint8_t *out, double *scratch)
{
    size_t size = sherd_dtype_size(t);
    if (t == x.dtype && by->divide == 1 && !by->mean) {
        for (size_t c = 0; c < x.cols; c++) {
            ptrdiff_t at = (ptrdiff_t)row * x.row_stride + (ptrdiff_t)c * x.col_stride;
            memcpy(out + c * size, (const uint8_t *)x.data + at * (ptrdiff_t)size, size);
        }
        return;
    }
    sherd__view_row_f64(x, row, 0, x.cols, scratch);
    for (size_t c = 0; c < x.cols; c++) {
        double v = scratch[c] / by->divide;
        if (by->mean) v = (v - by->mean[c]) / by->deviation[c];
        float f = (float)v;
        memcpy(out + c * size, t == SHERD_F32 ? (void *)&f : (void *)&v, size);
    }
}

static int no_memory(size_t rows, size_t cols, sherd_diag *d)
{
    return sherd__fail_memory_hint(d, "use fewer examples", "%zu examples of %zu numbers", rows,
                                   cols);
}

int sherd__dataset_copy(sherd__dataset *out, const sherd__dataset *s, const uint32_t *rows,
                        size_t len, const sherd__input_scale *by, sherd_diag *d)
{
    static const sherd__input_scale unchanged = { .divide = 1 };
    if (!by) by = &unchanged;
    sherd_dtype t = by->mean ? SHERD_F64 : quotient_dtype(s->x.dtype, by->divide);
    size_t size = sherd_dtype_size(t), each = s->x.cols * size, bytes, targets;
    sherd__dataset r = { .classes = s->classes, .width = s->width };
    bool labels = s->targets.labels != NULL;
    size_t target_size = labels ? sizeof(uint32_t) : s->width * sizeof(double);
    memset(out, 0, sizeof *out);
    if (!sherd__mul(len, each, &bytes) || !sherd__mul(len, target_size, &targets))
        return no_memory(len, s->x.cols, d);
    uint8_t *x = r.owned[0] = sherd__alloc_large(bytes);
    uint8_t *to = r.owned[1] = sherd__alloc(targets);
    double *scratch = sherd__calloc(s->x.cols, sizeof *scratch);
    if (!x || !to || !scratch) {
        sherd__free(scratch);
        sherd__dataset_fini(&r);
        return no_memory(len, s->x.cols, d);
    }
    for (size_t i = 0; i < len; i++) {
        size_t row = rows ? rows[i] : i;
        copy_row(s->x, row, by, t, x + i * each, scratch);
        if (labels) memcpy(to + i * target_size, s->targets.labels + row, target_size);
        else memcpy(to + i * target_size, s->targets.values + row * s->width, target_size);
    }
    sherd__free(scratch);
    r.x = sherd_view_c(x, t, len, s->x.cols);
    if (labels) r.targets.labels = r.owned[1];
    else r.targets.values = r.owned[1];
    *out = r;
    return SHERD_OK;
}

/* ---- mean and deviation ---------------------------------------------------------------------- */

/* Sums of a column. The second pass has the mean, and divides differences by the range of the
 * column, so that no square underflows or overflows. */
typedef struct moments {
    double least, most, sum, error, squares;
} moments;

static double range_of(const moments *m)
{
    return m->most - m->least;
}

static int judge_column(const moments *m, size_t rows, double mean, double *deviation)
{
    double n = (double)rows, range = range_of(m);
    double root = range * sqrt((m->squares - m->error * m->error / n) / n);
    /* among subnormal numbers the root may round to 0 */
    *deviation = root > 0 ? root : range > 0 ? range : 1;
    return isfinite(mean) && isfinite(range) ? SHERD_OK : SHERD_ERANGE;
}

/* Adds a row to the sums of all columns; means NULL: to those of the first pass. */
static void add_row(moments *m, const double *row, size_t cols, double divide, const double *means)
{
    for (size_t c = 0; c < cols; c++) {
        double v = row[c] / divide;
        if (means) {
            double range = range_of(&m[c]), e = range > 0 ? (v - means[c]) / range : 0;
            m[c].error += e; /* corrects the rounding of the mean */
            m[c].squares += e * e;
            continue;
        }
        m[c].sum += v;
        if (v < m[c].least) m[c].least = v;
        if (v > m[c].most) m[c].most = v;
    }
}

int sherd__dataset_measure(const sherd__dataset *s, const char *name, double divide, double *mean,
                           double *deviation, sherd_diag *d)
{
    size_t rows = s->x.rows, cols = s->x.cols;
    moments *m = sherd__calloc(cols + 1, sizeof *m);
    double *row = sherd__calloc(cols + 1, sizeof *row);
    int err = m && row ? SHERD_OK : no_memory(rows, cols, d);
    for (size_t c = 0; c < cols && !err; c++)
        m[c] = (moments){ .least = INFINITY, .most = -INFINITY };
    for (size_t pass = 0; pass < 2 && !err; pass++) {
        for (size_t i = 0; i < rows; i++) {
            sherd__view_row_f64(s->x, i, 0, cols, row);
            add_row(m, row, cols, divide, pass > 0 ? mean : NULL);
        }
        for (size_t c = 0; c < cols && pass == 0; c++)
            /* of equal numbers exactly, so that their differences are 0 */
            mean[c] = m[c].least == m[c].most ? m[c].least : m[c].sum / (double)rows;
    }
    for (size_t c = 0; c < cols && !err; c++)
        if (judge_column(&m[c], rows, mean[c], &deviation[c]) != 0)
            err = sherd__fail(d, SHERD_ERANGE, "divide_inputs, or leave the column out",
                              "%s: the numbers of column %zu are too large to be standardised",
                              name, c);
    sherd__free(row);
    sherd__free(m);
    return err;
}
