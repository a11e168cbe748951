/*
 * A row of C is kept in registers, 32 columns at a time, while the row's entries are processed: one
 * load of B and a multiply-add per vector for each. All rows are computed for 32 columns before the
 * next 32, so that this part of B (256 bytes a row) stays in the first-level cache. Vectors are
 * gcc's vector types, compiled to what the clone has, without fma, which would make bits depend on
 * the clone.
 */
#include "matrix/sparse.h"

#include <string.h>

#include "matrix/clones.h"

typedef double vec __attribute__((vector_size(64)));
typedef double vec_any __attribute__((vector_size(64), aligned(8), may_alias));

#define WIDE 32u     /* columns that fit four vectors */
#define PACK_USES 4u /* uses of each row of B from which on packing pays */

#define LOAD(p) (*(const vec_any *)(const void *)(p))
#define STORE(p, v) (*(vec_any *)(void *)(p) = (v))

typedef struct left {
    size_t n;
    const uint32_t *count, *index;
    const double *value;
} left;

SHERD__CLONES
static void four(const left *a, const double *b, size_t ldb, bool add, double *c, size_t ldc)
{
    size_t at = 0;
    for (size_t i = 0; i < a->n; i++, c += ldc) {
        vec s = { 0 }, t = { 0 }, u = { 0 }, v = { 0 };
        if (add) s = LOAD(c), t = LOAD(c + 8), u = LOAD(c + 16), v = LOAD(c + 24);
        for (size_t end = at + a->count[i]; at < end; at++) {
            const double *row = b + a->index[at] * ldb;
            double x = a->value[at];
            s += x * LOAD(row);
            t += x * LOAD(row + 8);
            u += x * LOAD(row + 16);
            v += x * LOAD(row + 24);
        }
        STORE(c, s);
        STORE(c + 8, t);
        STORE(c + 16, u);
        STORE(c + 24, v);
    }
}

SHERD__CLONES
static void one(const left *a, const double *b, size_t ldb, bool add, double *c, size_t ldc)
{
    size_t at = 0;
    for (size_t i = 0; i < a->n; i++, c += ldc) {
        vec s = { 0 };
        if (add) s = LOAD(c);
        for (size_t end = at + a->count[i]; at < end; at++)
            s += a->value[at] * LOAD(b + a->index[at] * ldb);
        STORE(c, s);
    }
}

static void column(const left *a, const double *b, size_t ldb, bool add, double *c, size_t ldc)
{
    size_t at = 0;
    for (size_t i = 0; i < a->n; i++, c += ldc) {
        double s = add ? *c : 0;
        for (size_t end = at + a->count[i]; at < end; at++)
            s += a->value[at] * b[a->index[at] * ldb];
        *c = s;
    }
}

/* Copies 32 columns of B to contiguous memory: rows of B that are a power of two apart share few
 * cache sets and touch many pages. */
static const double *pack(size_t k, const double *b, size_t ldb, double *room)
{
    for (size_t i = 0; i < k; i++) memcpy(room + i * WIDE, b + i * ldb, WIDE * sizeof *room);
    return room;
}

void sherd__sparse_f64(size_t n, size_t k, size_t m, const uint32_t *count, const uint32_t *index,
                       const double *value, const double *b, size_t ldb, bool add, double *c,
                       size_t ldc, double *room)
{
    left a = { n, count, index, value };
    size_t j = 0, entries = 0;
    for (size_t i = 0; i < n; i++) entries += count[i];
    bool packs = room && ldb > WIDE && entries >= PACK_USES * k;
    for (; m - j >= WIDE; j += WIDE) {
        if (packs) four(&a, pack(k, b + j, ldb, room), WIDE, add, c + j, ldc);
        else four(&a, b + j, ldb, add, c + j, ldc);
    }
    for (; m - j >= 8; j += 8) one(&a, b + j, ldb, add, c + j, ldc);
    for (; j < m; j++) column(&a, b + j, ldb, add, c + j, ldc);
}

bool sherd__sparse_pays(uint64_t entries, uint64_t rows, uint64_t cols, unsigned threads)
{
    double all = (double)rows * (double)cols;
    return (double)entries * (threads ? threads : 1) < SHERD__SPARSE_SPEED * all;
}
