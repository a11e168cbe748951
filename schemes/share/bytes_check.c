/*
 * Freivalds' check of answers in byte residues, with CHECKS vectors on each side for every prime: Y
 * is accepted as u*v only if R^T*Y*S = (R^T*u)*(v*S) in all CHECKS x CHECKS entries. For Y = u*v +
 * E with E of rank one the entries are products of two vectors, which are uniform and independent:
 * all are zero with probability 2p^-CHECKS - p^-2CHECKS, and with less for E of a higher rank. The
 * tables of projected terms are those of check.c.
 */
#include <string.h>

#include "core/alloc.h"
#include "core/wipe.h"
#include "crypto/mask.h"
#include "schemes/share/bytes.h"

enum { TABLE = CHECKS * CHECKS };

int sherd__share_bytes_draw(const share *d, size_t n, int8_t *out)
{
    sherd__masks *m = NULL;
    int err = sherd__masks_new(&m, &d->p.entropy); /* under a key that is used for nothing else */
    for (uint32_t q = 0; q < d->p.primes_len && !err; q++) {
        const sherd__mask_id id = { SHERD__MASK_LEFT, 0, q, d->p.primes[q], n };
        for (size_t v = 0; v < CHECKS && !err; v++, out += n) {
            err = sherd__masks_bytes(m, &id, v, n, (uint8_t *)out);
            for (size_t i = 0; i < n; i++)
                out[i] = share_bytes_signed((uint8_t)out[i], d->p.primes[q]);
        }
    }
    sherd__masks_free(m);
    return err;
}

size_t sherd__share_bytes_laid_vectors(const share *d, size_t n)
{
    return sherd__bytes_laid(CHECKS, n) * d->p.primes_len + SHERD__BYTES_TILE * SHERD__BYTES_STEP;
}

int sherd__share_bytes_lay(const share *d, const int8_t *s, size_t n, uint8_t *out)
{
    int8_t *column = sherd__share_secret(n, CHECKS, 1, 1);
    if (!column) return SHERD_ENOMEM;
    for (uint32_t q = 0; q < d->p.primes_len; q++, s += CHECKS * n) {
        for (size_t i = 0; i < n; i++)
            for (size_t v = 0; v < CHECKS; v++) column[i * CHECKS + v] = s[v * n + i];
        sherd__bytes_lay_columns(column, n, CHECKS, CHECKS, out);
        out += sherd__bytes_laid(CHECKS, n);
    }
    sherd__share_forget(column);
    return SHERD_OK;
}

size_t sherd__share_bytes_table_len(const share *d)
{
    return (size_t)TABLE * d->p.primes_len * d->a.terms * d->b.terms;
}

void sherd__share_bytes_table(const share *d, const int8_t *x, const uint8_t *y, size_t len,
                              uint8_t *gram)
{
    const size_t la = d->a.terms, lb = d->b.terms;
    int32_t sums[TABLE];
    for (uint32_t q = 0; q < d->p.primes_len; q++, x += CHECKS * la * len, y += CHECKS * lb * len)
        for (size_t i = 0; i < la; i++)
            for (size_t j = 0; j < lb; j++, gram += TABLE) {
                memset(sums, 0, sizeof sums);
                sherd__bytes_project(x + i * len, la * len, y + j * len * CHECKS, len, CHECKS,
                                     CHECKS, sums, CHECKS);
                sherd__bytes_settle(sums, TABLE, d->p.primes[q], false, gram);
            }
    sherd__wipe(sums, sizeof sums);
}

/* Computes R^T*Y*S as it must be for a slot's answer, modulo prime number q. */
static void expected(const share *d, const uint8_t *gram, uint32_t q, uint32_t slot,
                     uint8_t out[TABLE])
{
    const size_t la = d->a.terms, lb = d->b.terms;
    const uint8_t *in[SHERD__LCC_BLOCKS_MAX];
    uint8_t row[SHERD__LCC_BLOCKS_MAX][TABLE], *to = out;
    gram += (size_t)q * la * lb * TABLE;
    for (size_t i = 0; i < la; i++) {
        uint8_t *one = row[i];
        for (size_t j = 0; j < lb; j++) in[j] = gram + (i * lb + j) * TABLE;
        sherd__bytes_combine(d->b.w_bytes[q] + slot * lb, 1, (uint32_t)lb, d->p.primes[q], false,
                             in, TABLE, &one);
    }
    for (size_t i = 0; i < la; i++) in[i] = row[i];
    sherd__bytes_combine(d->a.w_bytes[q] + slot * la, 1, (uint32_t)la, d->p.primes[q], false, in,
                         TABLE, &to);
    sherd__wipe(row, la * sizeof row[0]);
}

/* One prime's part of an answer, and the check vectors of its rows and columns. */
typedef struct answer_part {
    uint32_t p;
    const uint8_t *y; /* rows x width */
    size_t rows, width;
    const int8_t *r;
    const uint8_t *s; /* laid out */
} answer_part;

/* Computes R^T*Y*S of an answer. ys: scratch, rows x CHECKS. */
static int found(const answer_part *a, uint8_t *ys, uint8_t out[TABLE])
{
    int32_t sums[TABLE] = { 0 };
    const sherd__bytes_product x = { .p = a->p,
                                     .n = a->rows,
                                     .k = a->width,
                                     .m = CHECKS,
                                     .a = a->y,
                                     .a_ld = a->width,
                                     .b = a->s,
                                     .out = ys,
                                     .ld = CHECKS };
    int err = sherd__bytes_multiply(&x, NULL);
    if (err) return err;
    sherd__bytes_project(a->r, a->rows, ys, a->rows, CHECKS, CHECKS, sums, CHECKS);
    sherd__bytes_settle(sums, TABLE, a->p, false, out);
    sherd__wipe(sums, sizeof sums);
    return SHERD_OK;
}

int sherd__share_bytes_judge(share *d, sherd__cell c, const int8_t *r, const uint8_t *s,
                             size_t rows, const uint8_t *body)
{
    const size_t width = share_tile_width(d, c.tile), part = rows * width;
    const uint8_t *gram = share_spot_of(d, c.tile, c.panel)->gram;
    uint8_t must[TABLE], is[TABLE];
    uint8_t *ys = sherd__share_secret(rows, CHECKS, 1, 1);
    int err = ys ? SHERD_OK : SHERD_ENOMEM;
    for (uint32_t q = 0; q < d->p.primes_len && !err; q++) {
        const answer_part of = { .p = d->p.primes[q],
                                 .y = body + q * part,
                                 .rows = rows,
                                 .width = width,
                                 .r = r + q * CHECKS * rows,
                                 .s = s + q * sherd__bytes_laid(CHECKS, width) };
        if (!sherd__bytes_below(of.y, part, of.p)) err = SHERD_EWRONG;
        if (!err) err = found(&of, ys, is);
        if (err) break;
        expected(d, gram, q, c.slot, must);
        if (memcmp(must, is, TABLE)) err = SHERD_EWRONG;
    }
    sherd__share_forget(ys);
    sherd__wipe(must, sizeof must);
    sherd__wipe(is, sizeof is);
    return err;
}
