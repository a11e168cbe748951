/*
 * One pass over a matrix: magnitudes, zeros, whole numbers, and the first NaN or infinity. It works
 * on the bit patterns as integers: |x| has the order of its bits, and integer reductions can be
 * vectorised without relaxed floating-point rules. Columns of a Fortran-order view are scanned as
 * rows of its transpose; only the position of a bad value needs row order.
 */
#include <math.h>
#include <string.h>

#include "core/hooks.h"
#include "matrix/clones.h"
#include "matrix/view.h"

#define CHUNK 512u
#define PART ((size_t)1 << 20) /* entries between two calls of the hook */
#define INF_BITS UINT64_C(0x7ff0000000000000)

typedef struct totals {
    uint64_t min, max, nonzeros, nonfinite, fractions;
} totals;

SHERD__CLONES
static void scan_chunk(const double *x, size_t n, totals *t)
{
    uint64_t min = t->min, max = t->max, nonzeros = 0, nonfinite = 0, fractions = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t bits;
        memcpy(&bits, x + i, sizeof bits);
        bits &= ~(UINT64_C(1) << 63);
        uint64_t bad = bits >= INF_BITS;
        /* The comparisons are signed: the sign bit is clear, and AVX2 has no unsigned
         * comparisons. */
        int64_t low = (int64_t)(bad ? INF_BITS - 1 : bits), high = (int64_t)(bad ? 0 : bits);
        min = low < (int64_t)min ? (uint64_t)low : min;
        max = high > (int64_t)max ? (uint64_t)high : max;
        nonzeros += bits != 0;
        nonfinite += bad;
    }
    for (size_t i = 0; i < n; i++) {
        double a = fabs(x[i]);
        double whole = (a + 0x1p52) - 0x1p52;
        /* From 2^52 on every double is whole; NaN and infinity are counted above. */
        fractions += (uint64_t)((a < 0x1p52) & (whole != a));
    }
    t->min = min;
    t->max = max;
    t->nonzeros += nonzeros;
    t->nonfinite += nonfinite;
    t->fractions += fractions;
}

static double from_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void find_bad(sherd_view v, sherd__scan *out)
{
    double x[CHUNK];
    for (size_t r = 0; r < v.rows; r++)
        for (size_t c = 0; c < v.cols; c += CHUNK) {
            size_t n = v.cols - c < CHUNK ? v.cols - c : CHUNK;
            sherd__view_row_f64(v, r, c, n, x);
            for (size_t j = 0; j < n; j++)
                if (!isfinite(x[j])) {
                    out->bad_row = r;
                    out->bad_col = c + j;
                    out->bad_value = x[j];
                    return;
                }
        }
}

/* Returns whether some i64 of the view loses bits as a double. */
static bool loses_bits(sherd_view v)
{
    for (size_t r = 0; r < v.rows; r++)
        for (size_t c = 0; c < v.cols; c++) {
            int64_t x = sherd__view_i64(v, r, c);
            /* INT64_MAX rounds up to 2^63, which does not convert back. */
            if ((double)x >= 0x1p63 || (int64_t)(double)x != x) return true;
        }
    return false;
}

static sherd_view along_memory(sherd_view v)
{
    ptrdiff_t row = v.row_stride < 0 ? -v.row_stride : v.row_stride;
    ptrdiff_t col = v.col_stride < 0 ? -v.col_stride : v.col_stride;
    return row < col ? sherd_view_t(v) : v;
}

/* Joins rows without gaps to one row, since the cost per row dominates in a narrow matrix. */
static sherd_view one_row(sherd_view v)
{
    if (v.rows < 2 || v.col_stride != 1 || v.row_stride != (ptrdiff_t)v.cols) return v;
    return sherd_view_c(v.data, v.dtype, 1, v.rows * v.cols);
}

/* Returns n elements of a row: in place if they are contiguous doubles, otherwise in x. */
static const double *piece(const sherd_view *v, size_t r, size_t c, size_t n, double *x)
{
    size_t ld;
    const double *own = sherd__view_borrow_f64(*v, &ld);
    if (own) return own + r * ld + c;
    sherd__view_row_f64(*v, r, c, n, x);
    return x;
}

/* The compiler keeps several maxima in parallel, so that none waits for the previous one. */
SHERD__CLONES
static uint64_t peak_chunk(const double *x, size_t n)
{
    int64_t most = 0;
    for (size_t i = 0; i < n; i++) {
        int64_t bits;
        memcpy(&bits, x + i, sizeof bits);
        bits &= INT64_MAX;
        most = bits > most ? bits : most;
    }
    return (uint64_t)most;
}

uint64_t sherd__peak_bits(const double *x, size_t n)
{
    return peak_chunk(x, n);
}

bool sherd__view_peak(sherd_view v, double *max_abs)
{
    double x[CHUNK];
    uint64_t most = 0;
    sherd_view s = one_row(along_memory(v));
    for (size_t r = 0; r < s.rows; r++)
        for (size_t c = 0; c < s.cols; c += CHUNK) {
            size_t n = s.cols - c < CHUNK ? s.cols - c : CHUNK;
            uint64_t here = peak_chunk(piece(&s, r, c, n, x), n);
            most = here > most ? here : most;
        }
    *max_abs = from_bits(most);
    return most < INF_BITS;
}

/* Magnitudes of n contiguous integers, at their own width. The magnitude of the most negative one
 * fits the unsigned type. */
#define RANGE(t, u, negative)                                                                      \
    SHERD__CLONES                                                                                  \
    static void range_##t(const char *p, size_t n, uint64_t *min, uint64_t *max)                   \
    {                                                                                              \
        u least = (u)-1, most = 0;                                                                 \
        for (size_t i = 0; i < n; i++) {                                                           \
            t x;                                                                                   \
            memcpy(&x, p + i * sizeof x, sizeof x);                                                \
            u a = (u)((negative) ? (u)(0u - (u)x) : (u)x);                                         \
            least = a < least ? a : least;                                                         \
            most = a > most ? a : most;                                                            \
        }                                                                                          \
        *min = least < *min ? least : *min;                                                        \
        *max = most > *max ? most : *max;                                                          \
    }
RANGE(uint8_t, uint8_t, false)
RANGE(uint16_t, uint16_t, false)
RANGE(uint32_t, uint32_t, false)
RANGE(int8_t, uint8_t, x < 0)
RANGE(int16_t, uint16_t, x < 0)
RANGE(int32_t, uint32_t, x < 0)
RANGE(int64_t, uint64_t, x < 0)

static void range(sherd_dtype dtype, const char *p, size_t n, uint64_t *min, uint64_t *max)
{
    switch (dtype) {
    case SHERD_U8: range_uint8_t(p, n, min, max); break;
    case SHERD_U16: range_uint16_t(p, n, min, max); break;
    case SHERD_U32: range_uint32_t(p, n, min, max); break;
    case SHERD_I8: range_int8_t(p, n, min, max); break;
    case SHERD_I16: range_int16_t(p, n, min, max); break;
    case SHERD_I32: range_int32_t(p, n, min, max); break;
    default: range_int64_t(p, n, min, max); break;
    }
}

/* Adds a part of a matrix. whole: integers, contiguous in rows. They are scanned without
 * conversion, which is several times faster, and *t has the least and the largest of them, not the
 * bits of doubles. */
static void add(sherd_view s, bool whole, totals *t)
{
    double x[CHUNK];
    ptrdiff_t pitch = s.row_stride * (ptrdiff_t)sherd_dtype_size(s.dtype);
    for (size_t r = 0; r < s.rows && whole; r++)
        range(s.dtype, (const char *)s.data + (ptrdiff_t)r * pitch, s.cols, &t->min, &t->max);
    if (whole) t->nonzeros += sherd__view_nonzeros(s);
    for (size_t r = 0; r < s.rows && !whole; r++)
        for (size_t c = 0; c < s.cols; c += CHUNK) {
            size_t n = s.cols - c < CHUNK ? s.cols - c : CHUNK;
            scan_chunk(piece(&s, r, c, n, x), n, t);
        }
}

static int add_all(sherd_view s, bool whole, const sherd_hooks *hooks, totals *t)
{
    const size_t cols = s.cols < PART ? s.cols : PART, rows = PART / cols;
    sherd__hooked h = sherd__hooks_begin(hooks ? hooks : &(sherd_hooks){ .ctx = NULL });
    for (size_t r = 0; r < s.rows; r += rows)
        for (size_t c = 0; c < s.cols; c += cols) {
            int err = sherd__hooks_step(&h, (uint64_t)r * s.cols + c, (uint64_t)s.rows * s.cols,
                                        NULL);
            if (err) return err;
            add(sherd_view_sub(s, r, s.rows - r < rows ? s.rows - r : rows, c,
                               s.cols - c < cols ? s.cols - c : cols),
                whole, t);
        }
    uint64_t all = (uint64_t)s.rows * s.cols;
    sherd__hooks_progress(&h, (sherd_progress){ .done = all, .total = all });
    return SHERD_OK;
}

int sherd__view_scan_asking(sherd_view v, sherd__scan *out, const sherd_hooks *hooks)
{
    sherd_view s = one_row(along_memory(v));
    bool whole = v.dtype != SHERD_F64 && v.dtype != SHERD_F32 && s.col_stride == 1;
    totals t = { .min = whole ? UINT64_MAX : INF_BITS - 1 };
    *out = (sherd__scan){ .integers = true };
    if (v.rows == 0 || v.cols == 0) return SHERD_OK;
    int err = add_all(s, whole, hooks, &t);
    if (err) return err;
    out->nonzeros = t.nonzeros;
    out->nonfinite = t.nonfinite;
    out->integers = t.nonfinite == 0 && t.fractions == 0;
    if (t.nonfinite < (uint64_t)v.rows * v.cols) {
        out->min_abs = whole ? (double)t.min : from_bits(t.min);
        out->max_abs = whole ? (double)t.max : from_bits(t.max);
    }
    if (t.nonfinite != 0) find_bad(v, out);
    if (v.dtype == SHERD_I64 && out->max_abs >= 0x1p53) out->inexact = loses_bits(v);
    return SHERD_OK;
}

void sherd__view_scan(sherd_view v, sherd__scan *out)
{
    (void)!sherd__view_scan_asking(v, out, NULL);
}

#define COUNT(t)                                                                                   \
    SHERD__CLONES                                                                                  \
    static uint64_t nonzeros_##t(const char *p, size_t n)                                          \
    {                                                                                              \
        uint64_t sum = 0;                                                                          \
        for (size_t i = 0; i < n; i++) {                                                           \
            t x;                                                                                   \
            memcpy(&x, p + i * sizeof x, sizeof x);                                                \
            sum += x != 0;                                                                         \
        }                                                                                          \
        return sum;                                                                                \
    }
COUNT(uint8_t)
COUNT(uint16_t)
COUNT(uint32_t)
COUNT(uint64_t)
COUNT(double)
COUNT(float)

uint64_t sherd__view_nonzeros(sherd_view v)
{
    sherd_view s = along_memory(v);
    size_t size = sherd_dtype_size(v.dtype);
    uint64_t sum = 0;
    if (v.rows == 0 || v.cols == 0) return 0;
    if (s.col_stride != 1) {
        sherd__scan scan;
        sherd__view_scan(v, &scan);
        return scan.nonzeros;
    }
    for (size_t r = 0; r < s.rows; r++) {
        const char *p = (const char *)s.data + (ptrdiff_t)r * s.row_stride * (ptrdiff_t)size;
        switch (v.dtype) {
        case SHERD_F64: sum += nonzeros_double(p, s.cols); break;
        case SHERD_F32: sum += nonzeros_float(p, s.cols); break;
        case SHERD_U8:
        case SHERD_I8: sum += nonzeros_uint8_t(p, s.cols); break;
        case SHERD_U16:
        case SHERD_I16: sum += nonzeros_uint16_t(p, s.cols); break;
        case SHERD_U32:
        case SHERD_I32: sum += nonzeros_uint32_t(p, s.cols); break;
        case SHERD_I64: sum += nonzeros_uint64_t(p, s.cols); break;
        }
    }
    return sum;
}

/* ---- counts of columns ----------------------------------------------------------------------- */

/* For each element type: adds to the count of each column of one row, and looks for an entry. */
#define COLUMNS(t, found)                                                                          \
    SHERD__CLONES                                                                                  \
    static void columns_##t(const char *p, size_t n, double least, uint32_t *counts)               \
    {                                                                                              \
        (void)least;                                                                               \
        for (size_t i = 0; i < n; i++) {                                                           \
            t x;                                                                                   \
            memcpy(&x, p + i * sizeof x, sizeof x);                                                \
            counts[i] += (found);                                                                  \
        }                                                                                          \
    }                                                                                              \
    static bool any_##t(const char *p, const uint32_t *cols, size_t n, double least)               \
    {                                                                                              \
        (void)least;                                                                               \
        for (size_t i = 0; i < n; i++) {                                                           \
            t x;                                                                                   \
            memcpy(&x, p + cols[i] * sizeof x, sizeof x);                                          \
            if (found) return true;                                                                \
        }                                                                                          \
        return false;                                                                              \
    }
COLUMNS(uint8_t, x != 0)
COLUMNS(uint16_t, x != 0)
COLUMNS(uint32_t, x != 0)
COLUMNS(uint64_t, x != 0)
COLUMNS(double, !(fabs(x) <= least))
COLUMNS(float, !(fabs((double)x) <= least))

static const char *row_of(sherd_view v, size_t r)
{
    return (const char *)v.data +
           (ptrdiff_t)r * v.row_stride * (ptrdiff_t)sherd_dtype_size(v.dtype);
}

void sherd__view_count_columns(sherd_view v, double least, uint32_t *counts)
{
    for (size_t r = 0; r < v.rows; r++) {
        const char *p = row_of(v, r);
        switch (sherd_dtype_size(v.dtype)) {
        case 1: columns_uint8_t(p, v.cols, least, counts); break;
        case 2: columns_uint16_t(p, v.cols, least, counts); break;
        case 4:
            if (v.dtype == SHERD_F32) columns_float(p, v.cols, least, counts);
            else columns_uint32_t(p, v.cols, least, counts);
            break;
        default:
            if (v.dtype == SHERD_F64) columns_double(p, v.cols, least, counts);
            else columns_uint64_t(p, v.cols, least, counts);
        }
    }
}

bool sherd__view_any(sherd_view v, size_t r, const uint32_t *cols, size_t n, double least)
{
    const char *p = row_of(v, r);
    switch (sherd_dtype_size(v.dtype)) {
    case 1: return any_uint8_t(p, cols, n, least);
    case 2: return any_uint16_t(p, cols, n, least);
    case 4:
        return v.dtype == SHERD_F32 ? any_float(p, cols, n, least)
                                    : any_uint32_t(p, cols, n, least);
    default:
        return v.dtype == SHERD_F64 ? any_double(p, cols, n, least)
                                    : any_uint64_t(p, cols, n, least);
    }
}
