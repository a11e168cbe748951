/*
 * Freivalds' check modulo p on packed residues: rT*Y for two secret r at once, while Y streams by.
 * Everything is a double holding an integer; a running sum takes sherd__prime_block(p) products
 * before it is reduced, exactly as the products it checks.
 */
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/wipe.h"
#include "crypto/freivalds.h"
#include "matrix/clones.h"
#include "matrix/residue.h"

#define CHUNK 512u

int sherd__fvp_init(sherd__fvp *f, uint32_t p, size_t cols)
{
    size_t len;
    *f = (sherd__fvp){0};
    if (!sherd__prime_ok(p)) return SHERD_EINVAL;
    if (!sherd__mul(cols, 2 * sizeof(double), &len)) return SHERD_ENOMEM;
    double *sums = sherd__alloc(len);
    if (sums == NULL) return SHERD_ENOMEM;
    memset(sums, 0, len);
    *f = (sherd__fvp){.p = p,
                      .cols = cols,
                      .room = sherd__prime_block(p),
                      .left = sherd__prime_block(p),
                      .sum = {sums, sums + cols}};
    return SHERD_OK;
}

void sherd__fvp_fini(sherd__fvp *f)
{
    if (f->sum[0] != NULL) sherd__wipe(f->sum[0], 2 * f->cols * sizeof(double));
    sherd__free(f->sum[0]);
    *f = (sherd__fvp){0};
}

void sherd__fvp_draw(const sherd_entropy *e, uint32_t p, size_t n, double *out)
{
    uint32_t word[64], mask = UINT32_MAX >> __builtin_clz(p), h = (p - 1) / 2;
    for (size_t i = 0; i < n;) {
        size_t want = n - i < 64 ? n - i : 64;
        e->fill(e->ctx, word, want * sizeof *word);
        for (size_t j = 0; j < want; j++) {
            uint32_t v = word[j] & mask;
            if (v < p) out[i++] = v > h ? (double)v - (double)p : (double)v;
        }
    }
    sherd__wipe(word, sizeof word);
}

/* Sums of at most `room` products of canonical residues and one canonical value: exact. */
SHERD__CLONES
static void add_row(const double *y, size_t n, double r0, double r1, double *s0, double *s1)
{
    for (size_t j = 0; j < n; j++) {
        s0[j] += r0 * y[j];
        s1[j] += r1 * y[j];
    }
}

static void settle(sherd__fvp *f)
{
    for (int t = 0; t < 2; t++) sherd__residue_from_f64(f->sum[t], f->cols, f->p, f->sum[t]);
    f->left = f->room;
}

int sherd__fvp_rows(sherd__fvp *f, const uint8_t *packed, size_t rows, const double *r0,
                    const double *r1)
{
    double y[CHUNK];
    for (size_t i = 0; i < rows; i++, packed += SHERD__RESIDUE_BYTES * f->cols) {
        for (size_t j = 0; j < f->cols; j += CHUNK) {
            size_t n = f->cols - j < CHUNK ? f->cols - j : CHUNK;
            int err = sherd__residue_unpack(packed + SHERD__RESIDUE_BYTES * j, n, f->p, y, NULL);
            if (err != 0) return err;
            add_row(y, n, r0[i], r1[i], f->sum[0] + j, f->sum[1] + j);
        }
        if (--f->left == 0) settle(f);
    }
    return SHERD_OK;
}

/* Canonical dot product. */
static double dot(const double *a, const double *b, size_t n, uint32_t p)
{
    size_t block = sherd__prime_block(p);
    double sum = 0.0;
    for (size_t i = 0; i < n;) {
        size_t end = n - i < block ? n : i + block;
        for (; i < end; i++) sum += a[i] * b[i];
        sherd__residue_from_f64(&sum, 1, p, &sum);
    }
    return sum;
}

uint32_t sherd__fvp_dot(const double *a, const double *b, size_t n, uint32_t p)
{
    double sum = dot(a, b, n, p);
    return (uint32_t)(sum < 0.0 ? sum + (double)p : sum);
}

void sherd__fvp_close(sherd__fvp *f, const double *s0, const double *s1, uint32_t out[2])
{
    settle(f);
    out[0] = sherd__fvp_dot(f->sum[0], s0, f->cols, f->p);
    out[1] = sherd__fvp_dot(f->sum[1], s1, f->cols, f->p);
}

void sherd__fvp_right(const double *x, size_t rows, size_t cols, size_t ld, const double *s,
                      uint32_t p, double *out)
{
    for (size_t i = 0; i < rows; i++) out[i] = dot(x + i * ld, s, cols, p);
}

SHERD__CLONES
static void add_scaled(const double *x, size_t n, double r, double *acc)
{
    for (size_t j = 0; j < n; j++) acc[j] += r * x[j];
}

void sherd__fvp_left(const double *x, size_t rows, size_t cols, size_t ld, const double *r,
                     uint32_t p, double *acc)
{
    size_t block = sherd__prime_block(p);
    for (size_t i = 0; i < rows; i++) {
        add_scaled(x + i * ld, cols, r[i], acc);
        if ((i + 1) % block == 0 || i + 1 == rows) sherd__residue_from_f64(acc, cols, p, acc);
    }
}
