/*
 * Finds the origin of a view's contents. A column is identified by a 64-bit sum of hashes of its
 * non-zero values, which depends neither on their order nor on omitted zeros, so one method serves
 * every form of permute. A row is identified by a hash of its values in the known columns. No
 * attack receives either.
 */
#include "audit/truth.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "audit/truth_internal.h"
#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "matrix/fixed.h"
#include "matrix/view.h"

static int compare_keys(const void *a, const void *b)
{
    const sherd__truth_column *x = a, *y = b;
    if (x->key.nonzeros != y->key.nonzeros) return x->key.nonzeros < y->key.nonzeros ? -1 : 1;
    if (x->key.sum != y->key.sum) return x->key.sum < y->key.sum ? -1 : 1;
    return (x->col > y->col) - (x->col < y->col);
}

void sherd__truth_row(const sherd__truth *t, size_t r, double *out)
{
    if (t->quantised) memcpy(out, t->quantised + r * t->a.cols, t->a.cols * sizeof *out);
    else sherd__view_row_f64(t->a, r, 0, t->a.cols, out);
}

/* Exact mode chose the power of two. It follows from the largest value sent, since the kept rows of
   all nodes contain one within a factor of two of the overall maximum. */
static int quantise(sherd__truth *t, double largest)
{
    sherd__scan scan;
    size_t len;
    sherd__view_scan(t->a, &scan);
    if (scan.nonfinite || scan.max_abs == 0 || largest == 0)
        return SHERD_OK; /* the mode was not exact */
    sherd__fixed f = { .scale = (int)ceil(log2(largest / scan.max_abs) - 0.01) };
    if (!sherd__mul(t->a.rows, t->a.cols, &len) || !sherd__mul(len, sizeof *t->quantised, &len))
        return SHERD_ENOMEM;
    t->quantised = sherd__alloc(len);
    if (!t->quantised) return SHERD_ENOMEM;
    sherd__fixed_dense(&f, t->a, t->quantised, t->a.cols);
    return SHERD_OK;
}

/* Returns the largest magnitude in some rows. */
static double largest_of(sherd_view a, const uint32_t *rows, size_t len)
{
    double largest = 0;
    for (size_t i = 0; i < len; i++)
        for (size_t c = 0; c < a.cols; c++)
            largest = fmax(largest, fabs(sherd__view_at(a, rows[i], c)));
    return largest;
}

/* The factor is a power of two if the unit is that of the coded data, or differs from it by a power
   of two; otherwise it is known as accurately as the largest value. */
static int quantise_to(sherd__truth *t, const uint32_t *rows, size_t rows_len, double largest)
{
    sherd__scan scan;
    size_t len, cols = t->a.cols;
    sherd__view_scan(t->a, &scan);
    if (rows) scan.max_abs = largest_of(t->a, rows, rows_len);
    if (scan.nonfinite || scan.max_abs == 0 || largest == 0 || scan.max_abs == largest)
        return SHERD_OK;
    double factor = largest / scan.max_abs, power = exp2(rint(log2(factor)));
    if (fabs(rint(scan.max_abs * power) - largest) < 0.5) factor = power;
    if (!sherd__mul(t->a.rows, cols, &len) || !sherd__mul(len, sizeof *t->quantised, &len) ||
        !(t->quantised = sherd__alloc(len)))
        return SHERD_ENOMEM;
    sherd__view_dense_f64(t->a, t->quantised, cols);
    for (size_t i = 0; i < t->a.rows * cols; i++) t->quantised[i] = rint(t->quantised[i] * factor);
    return SHERD_OK;
}

/* Prepares the identification of columns, for a truth in the form that was sent. err: error of that
   conversion. */
static int open_columns(sherd__truth *out, sherd__truth t, int err, sherd_diag *d)
{
    sherd_view a = t.a;
    t.by_key = sherd__calloc(a.cols, sizeof *t.by_key);
    t.first = sherd__calloc(a.cols, sizeof *t.first);
    double *line = sherd__calloc(a.cols, sizeof *line);
    if (err || !t.by_key || !t.first || !line) err = sherd__fail_memory(d, "the operand");
    for (size_t r = 0; r < a.rows && !err; r++) {
        sherd__truth_row(&t, r, line);
        for (size_t c = 0; c < a.cols; c++) sherd__key_add(&t.by_key[c].key, line[c]);
    }
    for (size_t c = 0; c < a.cols && !err; c++) t.by_key[c].col = (uint32_t)c;
    if (!err) qsort(t.by_key, a.cols, sizeof *t.by_key, compare_keys);
    for (size_t i = 0; i < a.cols && !err; i++) {
        const sherd__truth_column *x = &t.by_key[i], *before = i ? x - 1 : x;
        bool same = i > 0 && x->key.nonzeros == before->key.nonzeros &&
                    x->key.sum == before->key.sum;
        t.first[x->col] = same ? t.first[before->col] : x->col;
    }
    sherd__free(line);
    if (err) sherd__truth_fini(&t);
    else *out = t;
    return err;
}

static int too_large(sherd_view a, sherd_diag *d)
{
    if (a.rows < SHERD__TRUTH_NONE && a.cols < SHERD__TRUTH_NONE) return SHERD_OK;
    return sherd__fail(d, SHERD_EINVAL, NULL, "%zu x %zu is too large to audit", a.rows, a.cols);
}

int sherd__truth_open(sherd__truth *out, sherd_view a, bool integers, double largest, sherd_diag *d)
{
    sherd__truth t = { .a = a };
    bool floats = a.dtype == SHERD_F64 || a.dtype == SHERD_F32;
    int err = too_large(a, d);
    if (err) return err;
    err = integers && floats ? quantise(&t, largest) : SHERD_OK;
    return open_columns(out, t, err, d);
}

int sherd__truth_open_scaled(sherd__truth *out, sherd_view a, const uint32_t *rows, size_t rows_len,
                             uint64_t largest, sherd_diag *d)
{
    sherd__truth t = { .a = a };
    int err = too_large(a, d);
    if (err) return err;
    err = quantise_to(&t, rows, rows_len, (double)largest);
    return open_columns(out, t, err, d);
}

void sherd__truth_fini(sherd__truth *t)
{
    sherd__free(t->quantised);
    sherd__free(t->by_key);
    sherd__free(t->first);
    memset(t, 0, sizeof *t);
}

/* --- columns ---------------------------------------------------------------------------------- */

/* Returns the range of A's columns with a key: its first index in by_key; *len is its length. */
static size_t find_key(const sherd__truth *t, sherd__column_key key, uint32_t *len)
{
    sherd__truth_column want = { key, 0 };
    size_t low = 0, high = t->a.cols;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (compare_keys(&t->by_key[mid], &want) < 0) low = mid + 1;
        else high = mid;
    }
    for (*len = 0; low + *len < t->a.cols; ++*len) {
        const sherd__column_key *k = &t->by_key[low + *len].key;
        if (k->nonzeros != key.nonzeros || k->sum != key.sum) break;
    }
    return low;
}

void sherd__truth_columns(const sherd__truth *t, const sherd__sheaf *f, uint32_t *col,
                          uint32_t *alike)
{
    for (size_t j = 0; j < f->cols; j++) {
        size_t at = find_key(t, f->keys[j], &alike[j]);
        col[j] = alike[j] ? t->by_key[at].col : SHERD__TRUTH_NONE;
    }
}

/* --- rows ------------------------------------------------------------------------------------- */

typedef struct row_hash {
    uint64_t hash;
    uint32_t row;
} row_hash;

static int compare_hashes(const void *a, const void *b)
{
    const row_hash *x = a, *y = b;
    if (x->hash != y->hash) return x->hash < y->hash ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

static uint64_t add_hash(uint64_t h, double v)
{
    uint64_t b;
    if (v == 0) v = 0; /* makes both zeros equal */
    memcpy(&b, &v, sizeof b);
    h = (h ^ b) * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ h >> 32;
}

static uint64_t hash_a(const sherd__truth *t, size_t r, const uint32_t *col, size_t cols,
                       double *line)
{
    uint64_t h = 1;
    sherd__truth_row(t, r, line);
    for (size_t j = 0; j < cols; j++)
        if (col[j] != SHERD__TRUTH_NONE) h = add_hash(h, line[col[j]]);
    return h;
}

static uint64_t hash_kept(const sherd__sheaf *f, size_t r, const uint32_t *col)
{
    uint64_t h = 1;
    for (size_t j = 0; j < f->cols; j++)
        if (col[j] != SHERD__TRUTH_NONE) h = add_hash(h, f->values[r * f->cols + j]);
    return h;
}

static int look_up(const sherd__truth *t, const sherd__sheaf *f, const uint32_t *col, uint32_t *row,
                   size_t *found)
{
    size_t n = t->a.rows;
    row_hash *list = sherd__calloc(n, sizeof *list);
    double *line = sherd__calloc(t->a.cols, sizeof *line);
    int err = list && line ? SHERD_OK : SHERD_ENOMEM;
    *found = 0;
    for (size_t r = 0; r < n && !err; r++)
        list[r] = (row_hash){ hash_a(t, r, col, f->cols, line), (uint32_t)r };
    if (!err) qsort(list, n, sizeof *list, compare_hashes);
    size_t last = 0;
    for (size_t r = 0; r < f->kept && !err; r++) {
        uint64_t h = hash_kept(f, r, col);
        size_t low = 0, high = n;
        while (low < high) { /* of equal rows, prefer the one after the previous match */
            size_t mid = low + (high - low) / 2;
            bool before = list[mid].hash < h || (list[mid].hash == h && list[mid].row < last);
            if (before) low = mid + 1;
            else high = mid;
        }
        if (low == n || list[low].hash != h)
            while (low > 0 && list[low - 1].hash == h) low--;
        bool is = low < n && list[low].hash == h;
        row[r] = is ? list[low].row : SHERD__TRUTH_NONE;
        if (is) last = row[r] + 1u;
        *found += is;
    }
    sherd__free(list);
    sherd__free(line);
    return err;
}

/* Tests whether the columns of a sheaf as wide as A are those of A, in order: then most rows are
   rows of A. */
static int try_natural(const sherd__truth *t, const sherd__sheaf *f, uint32_t *col, uint32_t *alike,
                       uint32_t *row, bool *is)
{
    size_t found, cols = t->a.cols;
    uint32_t *natural = sherd__calloc(cols, sizeof *natural);
    if (!natural) return SHERD_ENOMEM;
    for (size_t j = 0; j < cols; j++) natural[j] = (uint32_t)j;
    int err = look_up(t, f, natural, row, &found);
    sherd__free(natural);
    *is = !err && 2 * found > f->kept;
    for (size_t c = 0; c < cols && *is; c++) {
        uint32_t len, at = t->by_key[c].col;
        (void)find_key(t, t->by_key[c].key, &len);
        alike[at] = len;
        col[at] = t->first[at];
    }
    return err;
}

int sherd__truth_rows(const sherd__truth *t, const sherd__sheaf *f, uint32_t *col, uint32_t *alike,
                      uint32_t *row)
{
    size_t known = 0, telling = 0, found;
    bool natural = false;
    int err = f->cols == t->a.cols ? try_natural(t, f, col, alike, row, &natural) : SHERD_OK;
    if (err || natural) return err;
    for (size_t j = 0; j < f->cols; j++) {
        telling += f->keys[j].nonzeros > 0;
        known += f->keys[j].nonzeros > 0 && col[j] != SHERD__TRUTH_NONE;
    }
    if (2 * known < telling) {
        err = sherd__truth_part(t, f, col, alike, row, &natural);
        if (err || natural) return err;
    }
    if (known >= 2) return look_up(t, f, col, row, &found);
    for (size_t r = 0; r < f->kept; r++) row[r] = SHERD__TRUTH_NONE;
    return SHERD_OK;
}
