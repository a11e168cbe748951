/*
 * The game against the scheme's own code: operands are hidden by the functions that hide them in a
 * run (crypto/mask.h, crypto/code.h, crypto/byte_code.h for primes below 256). Entropy comes from
 * the audit's seed instead of getrandom, so that a report can be reproduced.
 */
#include <math.h>
#include <string.h>

#include "audit/modular.h"
#include "audit/stats_internal.h"
#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "crypto/byte_code.h"
#include "crypto/inner.h"
#include "crypto/mask.h"
#include "schemes/blind/blind.h"

typedef int weights_fn(const sherd__lcc *c, uint32_t p, uint32_t share, double *w);

typedef struct hiding {
    const sherd__seen_code *code;
    weights_fn *weights_of;
    sherd__lcc lcc;
    size_t rows, cols;
    sherd__entropy entropy;
    uint32_t members;   /* shares 0 to members - 1 */
    double **in;        /* K+T rows of n */
    double *weights;    /* members x (K+T) */
    uint8_t *packed;    /* members x 3n, or K+T+members x n residues of one byte */
    sherd__masks *file; /* one-time: the masks of a mask file */
    uint64_t row;       /* one-time: its first unused row */
} hiding;

static int masks(hiding *h, sherd__masks *m, uint32_t prime)
{
    const sherd__seen_code *c = h->code;
    int err = SHERD_OK;
    for (uint32_t t = 0; t < c->masks; t++)
        for (size_t r = 0; r < h->rows && err == 0; r++)
            err = sherd__masks_row(m,
                                   &(sherd__mask_id){ SHERD__MASK_LEFT, t, prime, c->primes[prime],
                                                      h->cols },
                                   r, h->in[c->blocks + t] + r * h->cols);
    return err;
}

static int share(hiding *h, sherd__masks *m, uint32_t prime, const double *const *blocks,
                 uint32_t *const *out)
{
    const sherd__seen_code *c = h->code;
    uint32_t p = c->primes[prime], len = c->blocks + c->masks;
    size_t n = h->rows * h->cols;
    uint8_t *to[SHERD__LCC_BLOCKS_MAX];
    int err = masks(h, m, prime);
    if (err != 0) return err;
    for (uint32_t j = 0; j < c->blocks; j++) sherd__residue_from_f64(blocks[j], n, p, h->in[j]);
    for (uint32_t i = 0; i < h->members; i++) {
        err = h->weights_of(&h->lcc, p, i, h->weights + (size_t)i * len);
        if (err != 0) return err;
        to[i] = h->packed + (size_t)i * SHERD__RESIDUE_BYTES * n;
    }
    sherd__lcc_encode(h->weights, h->members, len, p, (const double *const *)h->in, n, to);
    for (uint32_t i = 0; i < h->members; i++)
        for (size_t e = 0; e < n; e++)
            out[i * c->primes_len + prime][e] = sherd__get_u16(to[i] + 3 * e) |
                                                (uint32_t)to[i][3 * e + 2] << 16;
    return SHERD_OK;
}

/* The same modulo a prime below 256. */
static int share_bytes(hiding *h, sherd__masks *m, uint32_t prime, const double *const *blocks,
                       uint32_t *const *out)
{
    const sherd__seen_code *c = h->code;
    const uint32_t p = c->primes[prime], len = c->blocks + c->masks;
    const size_t n = h->rows * h->cols;
    const uint8_t *in[SHERD__LCC_BLOCKS_MAX];
    double weight[SHERD__LCC_BLOCKS_MAX];
    int8_t w[SHERD__LCC_BLOCKS_MAX];
    int err = SHERD_OK;
    for (uint32_t j = 0; j < len && err == 0; j++) {
        uint8_t *row = h->packed + j * n;
        const sherd__mask_id id = { SHERD__MASK_LEFT, j - c->blocks, prime, p, h->cols };
        in[j] = row;
        if (j >= c->blocks) err = sherd__masks_bytes(m, &id, 0, n, row);
        for (size_t e = 0; j < c->blocks && e < n; e++)
            row[e] = (uint8_t)sherd__audit_residue(blocks[j][e], p);
    }
    for (uint32_t i = 0; i < h->members && err == 0; i++) {
        uint8_t *to = h->packed + (len + i) * n;
        err = h->weights_of(&h->lcc, p, i, weight);
        if (err != 0) return err;
        for (uint32_t j = 0; j < len; j++) w[j] = (int8_t)weight[j];
        sherd__bytes_combine(w, 1, len, p, false, in, n, &to);
        for (size_t e = 0; e < n; e++) out[i * c->primes_len + prime][e] = to[e];
    }
    return err;
}

/* Computes A + R, as blind sends it: R is the next rows of the file, used for one encoding only. */
static int encode_one_time(void *ctx, const double *const *blocks, uint32_t *const *out)
{
    hiding *h = ctx;
    const sherd__seen_code *c = h->code;
    size_t n = h->rows * h->cols;
    int err = h->file ? SHERD_OK : sherd__masks_new(&h->file, &h->entropy);
    for (uint32_t q = 0; q < c->primes_len && err == 0; q++) {
        uint32_t p = c->primes[q];
        err = sherd__blind_mask(h->file, q, p, (sherd__mask_part){ h->row, h->rows, 0, h->cols },
                                h->in[1]);
        if (err != 0) break;
        sherd__residue_from_f64(blocks[0], n, p, h->in[0]);
        for (size_t e = 0; e < n; e++) h->in[0][e] += h->in[1][e];
        sherd__residue_from_f64(h->in[0], n, p, h->in[0]);
        for (size_t e = 0; e < n; e++)
            out[q][e] = (uint32_t)(h->in[0][e] < 0 ? h->in[0][e] + p : h->in[0][e]);
    }
    h->row += h->rows;
    return err;
}

static int encode(void *ctx, const double *const *blocks, uint32_t *const *out)
{
    hiding *h = ctx;
    sherd__masks *m;
    int err = sherd__masks_new(&m, &h->entropy); /* fresh for every encoding */
    if (err != 0) return err;
    for (uint32_t i = 0; i < h->code->primes_len && err == 0; i++)
        err = (h->code->primes[i] > UINT8_MAX ? share : share_bytes)(h, m, i, blocks, out);
    sherd__masks_free(m);
    return err;
}

static int hiding_open(hiding *h)
{
    uint32_t len = h->code->blocks + h->code->masks;
    size_t n = h->rows * h->cols;
    int err = sherd__audit_blocks(&h->in, len, n);
    h->weights = sherd__alloc((size_t)h->members * len * sizeof *h->weights);
    h->packed = sherd__alloc((h->members * SHERD__RESIDUE_BYTES + len) * n);
    return err == 0 && h->weights && h->packed ? SHERD_OK : SHERD_ENOMEM;
}

static void hiding_close(hiding *h)
{
    sherd__free(h->in);
    sherd__free(h->weights);
    sherd__free(h->packed);
    sherd__masks_free(h->file);
}

static weights_fn *weights_of(const sherd__seen_code *c)
{
    return c->form == SHERD__SEEN_LAGRANGE     ? sherd__code_lagrange.left
           : c->form == SHERD__SEEN_INNER_LEFT ? sherd__code_inner.left
                                               : sherd__code_inner.right;
}

static int usable(const sherd__seen_code *c, size_t rows, size_t cols, sherd_diag *d)
{
    size_t n;
    int err = sherd__modular_check(c, d);
    if (err != 0) return err;
    if (c->alpha || c->beta || c->masks > c->shares)
        return sherd__fail(d, SHERD_EINVAL, NULL, "the scheme has points and T of its own");
    if (!sherd__mul(rows, cols, &n) || n == 0)
        return sherd__fail(d, SHERD_EINVAL, NULL, "blocks of %zu x %zu", rows, cols);
    return SHERD_OK;
}

int sherd__audit_share_hide(const sherd__seen_code *code, sherd__code_blocks of, uint32_t members,
                            const sherd__entropy *e, uint32_t *const *out)
{
    hiding h = { .code = code,
                 .weights_of = weights_of(code),
                 .lcc = { code->blocks, code->masks, code->shares },
                 .rows = of.rows,
                 .cols = of.cols,
                 .members = members,
                 .entropy = *e };
    int err = usable(code, of.rows, of.cols, NULL);
    if (err == 0) err = hiding_open(&h);
    if (err == 0)
        err = code->one_time ? encode_one_time(&h, of.block, out) : encode(&h, of.block, out);
    hiding_close(&h);
    return err;
}

int sherd__audit_share_games(sherd__findings *l, const sherd__seen_code *code,
                             sherd__code_blocks of, const sherd__audit_options *opt, sherd_diag *d)
{
    sherd__seeded state, masks_state;
    sherd__entropy e = sherd__entropy_seeded(&state, opt->seed ^ UINT64_C(0x67616d65));
    uint32_t members[SHERD__LCC_BLOCKS_MAX];
    double **zero = NULL, **made = NULL, **mixed = NULL;
    int err = usable(code, of.rows, of.cols, d);
    if (err != 0) return err;
    hiding h = { .code = code,
                 .weights_of = weights_of(code),
                 .lcc = { code->blocks, code->masks, code->shares },
                 .rows = of.rows,
                 .cols = of.cols,
                 .members = code->masks,
                 .entropy = sherd__entropy_seeded(&masks_state, opt->seed ^ UINT64_C(0x6d61736b)) };
    size_t n = of.rows * of.cols;
    err = hiding_open(&h);
    if (err == 0) err = sherd__audit_blocks(&zero, code->blocks, n);
    if (err == 0) err = sherd__audit_blocks(&made, code->blocks, n);
    if (err == 0) err = sherd__audit_blocks(&mixed, code->blocks, n);
    if (err == 0) {
        for (uint32_t i = 0; i < code->masks; i++) members[i] = i;
        sherd__audit_make_up(&e, made, code->blocks, of.rows, of.cols);
        const double *const *real = of.block ? of.block : (const double *const *)made;
        sherd__audit_permuted(&e, real, mixed, code->blocks, n);
        sherd__game g = { "zero or structured",
                          code,
                          members,
                          code->masks,
                          of.rows,
                          of.cols,
                          { (const double *const *)zero, real },
                          { code->one_time ? encode_one_time : encode, &h } };
        err = sherd__audit_game(l, &g, opt, d);
        g.name = "real or permuted";
        g.operand[0] = real;
        g.operand[1] = (const double *const *)mixed;
        if (err == 0) err = sherd__audit_game(l, &g, opt, d);
    }
    sherd__free(zero);
    sherd__free(made);
    sherd__free(mixed);
    hiding_close(&h);
    return err;
}
