#include "honest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "audit/stats_internal.h"
#include "core/alloc.h"
#include "core/bytes.h"
#include "crypto/lagrange.h"
#include "crypto/mask.h"

honest_primes honest_under = { 2, { 5931641, 5931637 } };

static void encode(honest *h, honest_mask *mask, void *ctx, uint32_t prime)
{
    const sherd__seen_code *c = &h->code;
    uint32_t p = c->primes[prime], len = c->blocks + c->masks;
    size_t rows = h->seen.rows, cols = h->seen.cols, n = rows * cols;
    sherd__lcc lcc = { c->blocks, c->masks, c->shares };
    double *in[64];
    uint8_t *out[64];
    double w[64 * 64];
    assert_true(len <= 64 && c->shares <= 64);
    for (uint32_t j = 0; j < len; j++) {
        in[j] = malloc(n * sizeof *in[j]);
        if (j < c->blocks) {
            sherd__residue_from_f64(h->blocks[j], n, p, in[j]);
            continue;
        }
        for (size_t r = 0; r < rows; r++)
            mask(ctx, j - c->blocks, prime, p, r, cols, in[j] + r * cols);
    }
    for (uint32_t i = 0; i < c->shares; i++) {
        assert_int_equal(sherd__lcc_encode_weights(&lcc, p, i, w + i * len), 0);
        out[i] = malloc(3 * n);
    }
    sherd__lcc_encode(w, c->shares, len, p, (const double *const *)in, n, out);
    for (uint32_t i = 0; i < c->shares; i++) {
        uint32_t *x = h->residues + (i * c->primes_len + prime) * n;
        for (size_t e = 0; e < n; e++)
            x[e] = sherd__get_u16(out[i] + 3 * e) | (uint32_t)out[i][3 * e + 2] << 16;
        free(out[i]);
    }
    for (uint32_t j = 0; j < len; j++) free(in[j]);
}

static void fresh(void *ctx, uint32_t t, uint32_t prime, uint32_t p, size_t row, size_t cols,
                  double *out)
{
    const sherd__mask_id bytes = { SHERD__MASK_LEFT, t, prime, p, cols };
    uint8_t b[256];
    if (p < 256) {
        assert_true(cols <= sizeof b);
        assert_int_equal(sherd__masks_bytes(ctx, &bytes, row, cols, b), 0);
        for (size_t i = 0; i < cols; i++) out[i] = b[i];
        sherd__residue_from_f64(out, cols, p, out);
        return;
    }
    assert_int_equal(sherd__masks_row(ctx, &(sherd__mask_id){ SHERD__MASK_LEFT, t, prime, p, cols },
                                      row, out),
                     0);
}

void honest_make(honest *h, uint32_t k, uint32_t t, uint32_t n, size_t rows, size_t cols,
                 uint64_t seed)
{
    sherd__seeded mask_state; /* one seed means one key of masks, whatever the code */
    sherd__entropy key = sherd__entropy_seeded(&mask_state, ~seed);
    sherd__masks *m;
    assert_int_equal(sherd__masks_new(&m, &key), 0);
    honest_make_under(h, k, t, n, rows, cols, seed, fresh, m);
    sherd__masks_free(m);
}

void honest_make_under(honest *h, uint32_t k, uint32_t t, uint32_t n, size_t rows, size_t cols,
                       uint64_t seed, honest_mask *mask, void *ctx)
{
    sherd__seeded state;
    sherd__entropy e = sherd__entropy_seeded(&state, seed);
    h->code = (sherd__seen_code){
        .blocks = k, .masks = t, .shares = n, .primes_len = honest_under.len
    };
    memcpy(h->code.primes, honest_under.p, sizeof h->code.primes);
    size_t views = (size_t)n * h->code.primes_len;
    h->residues = malloc(views * rows * cols * sizeof *h->residues);
    h->pointers = malloc(views * sizeof *h->pointers);
    h->domains = malloc(n * sizeof *h->domains);
    assert_int_equal(sherd__audit_blocks(&h->blocks, k, rows * cols), 0);
    for (size_t i = 0; i < views; i++) h->pointers[i] = h->residues + i * rows * cols;
    for (uint32_t i = 0; i < n; i++) h->domains[i] = i;
    h->seen = (sherd__seen){ .name = "A",
                             .code = &h->code,
                             .rows = rows,
                             .cols = cols,
                             .residues = h->pointers,
                             .domain = h->domains,
                             .blocks = (const double *const *)h->blocks };
    sherd__audit_make_up(&e, h->blocks, k, rows, cols);
    for (uint32_t i = 0; i < h->code.primes_len; i++) encode(h, mask, ctx, i);
}

void honest_free(honest *h)
{
    free(h->residues);
    free(h->pointers);
    free(h->domains);
    sherd__free(h->blocks);
}
