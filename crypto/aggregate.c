/*
 * Masks, their pieces and their sum. The terms are stored consecutively: U - T of them are the mask
 * (a little longer than x where U - T does not divide it), and T more hide it. Both are drawn from
 * one ChaCha20 stream under a key that is drawn for the mask and wiped at once.
 */
#include "crypto/aggregate.h"

#include <stdbool.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "core/wipe.h"
#include "crypto/freivalds.h"
#include "crypto/keystream.h"

#define Q SHERD__AGGREGATE_Q

struct sherd__aggregate_mask {
    sherd__aggregate a;
    size_t piece;    /* L */
    uint64_t *terms; /* threshold x piece */
    size_t bytes;
    bool used;
};

/* ---- shapes ---------------------------------------------------------------------------------- */

uint32_t sherd__aggregate_threshold(uint32_t nodes, uint32_t colluding)
{
    uint32_t most = (uint32_t)(((uint64_t)nodes + colluding) / 2) + 1;
    return most > colluding + 2 ? most : colluding + 2;
}

int sherd__aggregate_check(const sherd__aggregate *a, sherd_diag *d)
{
    if (a->nodes < 3 || a->nodes > SHERD__AGGREGATE_NODES_MAX)
        return sherd__fail(d, SHERD_EINVAL, "with two nodes each learns the other's data",
                           "secure aggregation over %u nodes: expected 3 to %u", a->nodes,
                           SHERD__AGGREGATE_NODES_MAX);
    if (a->colluding == 0 || a->colluding > a->nodes - 2)
        return sherd__fail(d, SHERD_EINVAL, "use more nodes, or fewer colluding ones",
                           "%u colluding nodes: expected 1 to %u of %u nodes", a->colluding,
                           a->nodes - 2, a->nodes);
    uint32_t least = sherd__aggregate_threshold(a->nodes, a->colluding);
    if (a->threshold < least || a->threshold > a->nodes)
        return sherd__fail(d, SHERD_EINVAL,
                           least <= a->nodes
                               ? "below that a coordinator could ask for two sums, or colluding "
                                 "nodes open a mask"
                               : "use more nodes, or fewer colluding ones",
                           "%u survivors of %u nodes, %u colluding: expected %u to %u",
                           a->threshold, a->nodes, a->colluding, least, a->nodes);
    if (a->len == 0)
        return sherd__fail(d, SHERD_EINVAL, NULL, "a sum must have at least one number");
    return SHERD_OK;
}

static uint32_t parts_of(const sherd__aggregate *a)
{
    return a->threshold - a->colluding;
}

size_t sherd__aggregate_piece_len(const sherd__aggregate *a)
{
    return a->len / parts_of(a) + (a->len % parts_of(a) != 0);
}

int64_t sherd__aggregate_bound(const sherd__aggregate *a)
{
    return (int64_t)((Q - 1) / 2 / a->nodes);
}

/* ---- masks ----------------------------------------------------------------------------------- */

/* Draws n uniform elements from streams `nonce` and nonce + 1 of ks: 61 bits of each word. A word
 * equal to q (probability 2^-61) is replaced by another one. */
static int draw(sherd__keystream *ks, uint64_t nonce, uint64_t *out, size_t n)
{
    uint64_t more = 0;
    int err = sherd__keystream_read(ks, nonce, 0, out, n * sizeof *out);
    for (size_t i = 0; i < n && err == 0; i++) {
        out[i] = sherd__get_u64((const uint8_t *)&out[i]) & Q;
        while (out[i] == Q && err == 0) {
            uint8_t block[SHERD__KEYSTREAM_BLOCK];
            err = sherd__keystream_read(ks, nonce + 1, more++, block, sizeof block);
            out[i] = sherd__get_u64(block) & Q;
        }
    }
    return err;
}

int sherd__aggregate_mask_new(sherd__aggregate_mask **out, const sherd__aggregate *a,
                              const sherd__entropy *e)
{
    uint8_t key[32];
    sherd__keystream ks = { 0 };
    size_t n = 0;
    *out = NULL;
    sherd__aggregate_mask *m = sherd__calloc(1, sizeof *m);
    if (!m) return SHERD_ENOMEM;
    m->a = *a;
    m->piece = sherd__aggregate_piece_len(a);
    int err = SHERD_ENOMEM;
    if (sherd__mul(m->piece, a->threshold, &n) && sherd__mul(n, sizeof *m->terms, &m->bytes))
        m->terms = sherd__alloc_large(m->bytes);
    if (m->terms) {
        e->fill(e->ctx, key, sizeof key);
        err = sherd__keystream_init(&ks, key);
        sherd__wipe(key, sizeof key);
        if (err == 0) err = draw(&ks, 0, m->terms, n);
        sherd__keystream_fini(&ks);
    }
    if (err != 0) sherd__aggregate_mask_free(m);
    else *out = m;
    return err;
}

void sherd__aggregate_mask_free(sherd__aggregate_mask *m)
{
    if (!m) return;
    if (m->terms) sherd__wipe(m->terms, m->bytes);
    sherd__free(m->terms);
    sherd__free(m);
}

void sherd__aggregate_piece(const sherd__aggregate_mask *m, uint32_t to, uint64_t *out)
{
    uint64_t at = (uint64_t)to + 1;
    memcpy(out, m->terms + (m->a.threshold - 1) * m->piece, m->piece * sizeof *out);
    for (uint32_t k = m->a.threshold - 1; k-- > 0;) {
        const uint64_t *term = m->terms + k * m->piece;
        for (size_t i = 0; i < m->piece; i++)
            out[i] = sherd__f61_add(sherd__f61_mul(out[i], at), term[i]);
    }
}

int sherd__aggregate_hide(sherd__aggregate_mask *m, const int64_t *x, uint64_t *out)
{
    int64_t bound = sherd__aggregate_bound(&m->a);
    bool over = false;
    if (m->used) return SHERD_EINVAL;
    m->used = true;
    for (size_t i = 0; i < m->a.len; i++) {
        over |= (x[i] > bound) | (x[i] < -bound);
        out[i] = sherd__f61_add(sherd__f61_from_i64(x[i]), m->terms[i]);
    }
    return over ? SHERD_ERANGE : SHERD_OK;
}

/* ---- vectors --------------------------------------------------------------------------------- */

void sherd__aggregate_add(uint64_t *acc, const uint64_t *x, size_t n)
{
    for (size_t i = 0; i < n; i++) acc[i] = sherd__f61_add(acc[i], x[i]);
}

int sherd__aggregate_parse(const uint8_t *bytes, size_t n, uint64_t *out)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = sherd__get_u64(bytes + 8 * i);
        if (out[i] >= Q) return SHERD_EFRAME;
    }
    return SHERD_OK;
}

void sherd__aggregate_print(const uint64_t *x, size_t n, uint8_t *bytes)
{
    for (size_t i = 0; i < n; i++) sherd__put_u64(bytes + 8 * i, x[i]);
}

/* ---- the sum --------------------------------------------------------------------------------- */

static uint64_t inverse(uint64_t x)
{
    uint64_t y = 1; /* x^(q-2); q - 2 has all 61 bits set except the second */
    for (unsigned bit = 61; bit-- > 0;) {
        y = sherd__f61_mul(y, y);
        if (bit != 1) y = sherd__f61_mul(y, x);
    }
    return y;
}

/* Computes the u + 1 coefficients of the product of (X - at[j]), lowest first. */
static void vanishing(const uint64_t *at, uint32_t u, uint64_t *whole)
{
    memset(whole, 0, (u + 1) * sizeof *whole);
    whole[0] = 1;
    for (uint32_t j = 0; j < u; j++)
        for (uint32_t k = j + 2; k-- > 0;) {
            uint64_t below = k > 0 ? whole[k - 1] : 0;
            whole[k] = sherd__f61_sub(below, sherd__f61_mul(whole[k], at[j]));
        }
}

/* Computes row[k], the factor of value j in coefficient k: coefficients = sum of value[j] * row_j.
 * It is whole / (X - at[j]), by synthetic division, divided by its value at at[j]. */
static void basis(const uint64_t *whole, const uint64_t *at, uint32_t u, uint32_t j, uint64_t *row)
{
    uint64_t value = 0, by;
    row[u - 1] = whole[u];
    for (uint32_t k = u - 1; k > 0; k--)
        row[k - 1] = sherd__f61_add(whole[k], sherd__f61_mul(row[k], at[j]));
    for (uint32_t k = u; k-- > 0;) value = sherd__f61_add(sherd__f61_mul(value, at[j]), row[k]);
    by = inverse(value);
    for (uint32_t k = 0; k < u; k++) row[k] = sherd__f61_mul(row[k], by);
}

static int64_t signed_of(uint64_t x)
{
    return x > Q / 2 ? -(int64_t)(Q - x) : (int64_t)x;
}

/* Computes sum = uploads - mask sums, one part of the mask after another. rows: u x u, from
 * basis(). */
static void unmask(const sherd__aggregate *a, const uint64_t *rows, const uint64_t *uploads,
                   const uint64_t *const *answers, int64_t *sum)
{
    size_t piece = sherd__aggregate_piece_len(a);
    uint32_t u = a->threshold;
    for (size_t at = 0; at < a->len; at++) {
        size_t k = at / piece, i = at % piece;
        uint64_t z = 0;
        for (uint32_t j = 0; j < u; j++)
            z = sherd__f61_add(z, sherd__f61_mul(rows[j * u + k], answers[j][i]));
        sum[at] = signed_of(sherd__f61_sub(uploads[at], z));
    }
}

int sherd__aggregate_reveal(const sherd__aggregate *a, const uint64_t *uploads, const uint32_t *who,
                            const uint64_t *const *answers, int64_t *sum, sherd_diag *d)
{
    uint32_t u = a->threshold;
    for (uint32_t j = 0; j < u; j++)
        for (uint32_t i = 0; i <= j; i++)
            if (who[j] >= a->nodes || (i < j && who[i] == who[j]))
                return sherd__fail(d, SHERD_EINVAL, NULL,
                                   "answer %u of node %u: expected different nodes below %u", j,
                                   who[j], a->nodes);
    size_t len = (size_t)u * u + 2 * (size_t)u + 1;
    uint64_t *rows = sherd__calloc(len, sizeof *rows);
    if (!rows) return sherd__fail_memory(d, "a sum");
    uint64_t *at = rows + (size_t)u * u, *whole = at + u;
    for (uint32_t j = 0; j < u; j++) at[j] = (uint64_t)who[j] + 1;
    vanishing(at, u, whole);
    for (uint32_t j = 0; j < u; j++) basis(whole, at, u, j, rows + (size_t)j * u);
    unmask(a, rows, uploads, answers, sum);
    sherd__free(rows);
    return SHERD_OK;
}
