/*
 * The broken schemes. Each is a textbook encoding (weights times blocks plus weights times masks,
 * in 64-bit integers) that omits exactly one rule of the scheme, so that what the audit finds is
 * the absence of that rule.
 */
#include "audit/controls.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "audit/modular.h"
#include "audit/stats_internal.h"
#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "crypto/lagrange.h"
#include "crypto/seeded.h"

static const char *const names[SHERD__CONTROLS] = {
    [SHERD__CONTROL_PERMUTE] = "permute",
    [SHERD__CONTROL_REUSE] = "mask reuse",
    [SHERD__CONTROL_COALITION] = "T+1 domains",
    [SHERD__CONTROL_POINT] = "alpha = beta",
    [SHERD__CONTROL_PRIMES] = "one mask for all primes",
    [SHERD__CONTROL_OFFSET] = "mask at an offset",
    [SHERD__CONTROL_NEGATED] = "negated mask",
    [SHERD__CONTROL_STREAM] = "one stream for all primes",
    [SHERD__CONTROL_SEED] = "seed used twice",
    [SHERD__CONTROL_SEED_STREAM] = "one stream of a seed for all primes",
};

const char *sherd__control_name(sherd__control c)
{
    return (unsigned)c < SHERD__CONTROLS ? names[c] : "none";
}

static bool seeds(sherd__control c)
{
    return c == SHERD__CONTROL_SEED || c == SHERD__CONTROL_SEED_STREAM;
}

/* Returns whether one stream of bytes is used for all primes. */
static bool one_stream(sherd__control c)
{
    return c == SHERD__CONTROL_STREAM || c == SHERD__CONTROL_SEED_STREAM;
}

bool sherd__control_of(sherd__control c, const sherd__seen_code *code)
{
    bool needs_points = c == SHERD__CONTROL_COALITION || c == SHERD__CONTROL_POINT;
    bool needs_primes = c == SHERD__CONTROL_PRIMES || one_stream(c);
    if (code->one_time && seeds(c)) return false;
    if (one_stream(c))
        for (uint32_t i = 0; i < code->primes_len; i++)
            if (code->primes[i] > UINT8_MAX) return false;
    return !(needs_points && code->one_time) && !(needs_primes && code->primes_len < 2);
}

typedef struct memory {
    uint32_t alpha[SHERD__LCC_SHARES_MAX];
    double **blocks[2];
    uint32_t *residues[2];        /* N x primes x n */
    const uint32_t **pointers[2]; /* into residues */
    uint32_t *masks;              /* T x n */
    uint32_t *terms;              /* (K+T) x n: blocks and masks modulo one prime */
    double *weights;              /* N x (K+T), modulo one prime */
    uint32_t seeded[SHERD__LCC_SHARES_MAX];
    uint64_t stream; /* seed of the bytes of SHERD__CONTROL_STREAM */
} memory;

static size_t entries(const sherd__control_view *v)
{
    return v->seen[0].rows * v->seen[0].cols;
}

static uint32_t *cell(const sherd__control_view *v, uint32_t e, uint32_t share, uint32_t prime)
{
    const memory *m = v->memory;
    return m->residues[e] + ((size_t)share * v->code.primes_len + prime) * entries(v);
}

static int memory_new(sherd__control_view *v)
{
    size_t n = entries(v), views = (size_t)v->code.shares * v->code.primes_len, bytes, masks, terms;
    memory *m = sherd__calloc(1, sizeof *m);
    v->memory = m;
    if (!m || !sherd__mul(views, n * sizeof(uint32_t), &bytes) ||
        !sherd__mul(n, v->code.masks * sizeof(uint32_t), &masks) ||
        !sherd__mul(n, (v->code.blocks + v->code.masks) * sizeof(uint32_t), &terms))
        return SHERD_ENOMEM;
    m->masks = sherd__alloc(masks);
    m->terms = sherd__alloc(terms);
    m->weights = sherd__calloc(v->code.shares,
                               (v->code.blocks + v->code.masks) * sizeof *m->weights);
    if (!m->masks || !m->terms || !m->weights) return SHERD_ENOMEM;
    for (uint32_t e = 0; e < v->seen_len; e++) {
        m->residues[e] = sherd__alloc(bytes);
        m->pointers[e] = sherd__calloc(views, sizeof *m->pointers[e]);
        int err = sherd__audit_blocks(&m->blocks[e], v->code.blocks, n);
        if (err != 0 || !m->residues[e] || !m->pointers[e]) return SHERD_ENOMEM;
        for (size_t i = 0; i < views; i++) m->pointers[e][i] = m->residues[e] + i * n;
        v->seen[e].residues = m->pointers[e];
        v->seen[e].blocks = (const double *const *)m->blocks[e];
    }
    return SHERD_OK;
}

void sherd__control_fini(sherd__control_view *v)
{
    memory *m = v->memory;
    for (int e = 0; m && e < 2; e++) {
        sherd__free(m->residues[e]);
        sherd__free(m->pointers[e]);
        sherd__free(m->blocks[e]);
    }
    if (m) sherd__free(m->masks);
    if (m) sherd__free(m->terms);
    if (m) sherd__free(m->weights);
    sherd__free(m);
    memset(v, 0, sizeof *v);
}

/* ---- encoding -------------------------------------------------------------------------------- */

/* Makes the weights of all shares modulo one prime. With seeds, mask t is share t. */
static void make_weights(const sherd__control_view *v, uint32_t prime)
{
    const sherd__seen_code *c = &v->code;
    const memory *m = v->memory;
    const uint32_t p = c->primes[prime], terms = c->blocks + c->masks;
    uint32_t w[SHERD__LCC_BLOCKS_MAX], slots[SHERD__LCC_BLOCKS_MAX];
    for (uint32_t i = 0; i < c->shares; i++) {
        sherd__modular_weights(c, prime, i, w);
        for (uint32_t j = 0; j < terms; j++) m->weights[i * terms + j] = w[j];
    }
    if (!v->seen[0].seeded) return;
    for (uint32_t t = 0; t < c->masks; t++) slots[t] = t;
    int err = sherd__seeded_weights(p, c->shares, c->blocks, c->masks, slots, m->weights);
    assert(!err && "the masks of T shares are independent");
}

/* Computes share = sum of weight * block + sum of weight * mask, modulo one prime. */
static void encode(sherd__control_view *v, uint32_t e, uint32_t prime)
{
    const sherd__seen_code *c = &v->code;
    const memory *m = v->memory;
    uint32_t p = c->primes[prime], w[SHERD__LCC_BLOCKS_MAX];
    const uint32_t terms = c->blocks + c->masks;
    size_t n = entries(v);
    make_weights(v, prime);
    for (uint32_t j = 0; j < c->blocks; j++)
        for (size_t x = 0; x < n; x++)
            m->terms[j * n + x] = sherd__audit_residue(m->blocks[e][j][x], p);
    for (size_t x = 0; x < c->masks * n; x++) m->terms[c->blocks * n + x] = m->masks[x] % p;
    for (uint32_t i = 0; i < c->shares; i++) {
        uint32_t *out = cell(v, e, i, prime);
        for (uint32_t j = 0; j < terms; j++)
            w[j] = sherd__audit_residue(m->weights[i * terms + j], p);
        for (size_t x = 0; x < n; x++) {
            uint64_t sum = 0;
            for (uint32_t j = 0; j < terms; j++) sum += (uint64_t)w[j] * m->terms[j * n + x];
            out[x] = (uint32_t)(sum % p);
        }
    }
}

/* Takes the bytes of a stream that are below p. */
static void draw_bytes(uint64_t seed, uint32_t p, size_t n, uint32_t *out)
{
    sherd__seeded state;
    sherd__entropy e = sherd__entropy_seeded(&state, seed);
    uint8_t bytes[256];
    for (size_t done = 0; done < n;) {
        e.fill(e.ctx, bytes, sizeof bytes);
        for (size_t i = 0; i < sizeof bytes && done < n; i++)
            if (bytes[i] < p) out[done++] = bytes[i];
    }
}

/* Draws masks for one prime. The control with one mask for all primes keeps those of the
   smallest. */
static void draw_masks(sherd__control_view *v, sherd__control c, uint32_t prime,
                       const sherd__entropy *e)
{
    const memory *m = v->memory;
    uint32_t p = v->code.primes[prime];
    if (c == SHERD__CONTROL_PRIMES) {
        if (prime > 0) return;
        for (uint32_t i = 1; i < v->code.primes_len; i++)
            if (v->code.primes[i] < p) p = v->code.primes[i];
    }
    if (one_stream(c)) draw_bytes(m->stream, p, v->code.masks * entries(v), m->masks);
    else sherd__audit_draw(e, p, v->code.masks * entries(v), m->masks);
}

/* The second operand's masks are the first one's from the sixth row on, followed by fresh ones. */
static void shift_masks(sherd__control_view *v, uint32_t prime, const sherd__entropy *e)
{
    const memory *m = v->memory;
    size_t n = entries(v), by = 5 * v->seen[0].cols;
    if (by > n / 2) by = n / 2;
    for (uint32_t t = 0; t < v->code.masks; t++) {
        memmove(m->masks + t * n, m->masks + t * n + by, (n - by) * sizeof *m->masks);
        sherd__audit_draw(e, v->code.primes[prime], by, m->masks + t * n + n - by);
    }
}

/* The second operand's masks are the first one's, negated. */
static void negate_masks(sherd__control_view *v, uint32_t prime)
{
    const memory *m = v->memory;
    uint32_t p = v->code.primes[prime];
    for (size_t i = 0; i < v->code.masks * entries(v); i++)
        m->masks[i] = m->masks[i] ? p - m->masks[i] : 0;
}

/* Writes the columns of a block in clear, shuffled for each share. */
static void permute(sherd__control_view *v, uint32_t share, const sherd__entropy *e)
{
    const memory *m = v->memory;
    size_t rows = v->seen[0].rows, cols = v->seen[0].cols, n = rows * cols;
    const double *block = m->blocks[0][share % v->code.blocks];
    for (uint32_t i = 0; i < v->code.primes_len; i++)
        for (size_t x = 0; x < n; x++)
            cell(v, 0, share, i)[x] = sherd__audit_residue(block[x], v->code.primes[i]);
    for (size_t c = cols; c > 1; c--) {
        size_t other = (size_t)sherd__entropy_below(e, c);
        for (uint32_t i = 0; i < v->code.primes_len; i++) {
            for (size_t r = 0; r < rows; r++) {
                uint32_t *row = cell(v, 0, share, i) + r * cols, t = row[c - 1];
                row[c - 1] = row[other];
                row[other] = t;
            }
        }
    }
}

static void fill(sherd__control_view *v, sherd__control c, const double *const *blocks,
                 const sherd__entropy *e)
{
    memory *m = v->memory;
    size_t n = entries(v);
    sherd__seeded state;
    if (one_stream(c)) m->stream = sherd__entropy_u64(e);
    sherd__entropy made = sherd__entropy_seeded(&state, 1); /* masks do not depend on the operand */
    for (uint32_t i = 0; i < v->seen_len; i++) {
        if (i > 0 || !blocks)
            sherd__audit_make_up(&made, m->blocks[i], v->code.blocks, v->seen[i].rows,
                                 v->seen[i].cols);
        else
            for (uint32_t j = 0; j < v->code.blocks; j++)
                memcpy(m->blocks[0][j], blocks[j], n * sizeof *blocks[j]);
    }
    if (c == SHERD__CONTROL_PERMUTE) {
        for (uint32_t i = 0; i < v->code.shares; i++) permute(v, i, e);
        return;
    }
    for (uint32_t i = 0; i < v->code.primes_len; i++) {
        draw_masks(v, c, i, e);
        for (uint32_t s = 0; s < v->seen_len; s++) {
            if (s > 0 && c == SHERD__CONTROL_OFFSET) shift_masks(v, i, e);
            if (s > 0 && c == SHERD__CONTROL_NEGATED) negate_masks(v, i);
            encode(v, s, i);
        }
    }
}

int sherd__control_make(sherd__control_view *v, sherd__control c, const sherd__seen_code *code,
                        sherd__code_blocks of, uint64_t seed)
{
    sherd__seeded state;
    sherd__entropy e = sherd__entropy_seeded(&state, seed);
    size_t n;
    memset(v, 0, sizeof *v);
    int err = sherd__modular_check(code, NULL);
    if (err != 0) return err;
    if ((unsigned)c >= SHERD__CONTROLS || !sherd__control_of(c, code) ||
        (!code->one_time && code->shares <= code->masks) || code->alpha ||
        !sherd__mul(of.rows, of.cols, &n) || n == 0)
        return SHERD_EINVAL;
    v->code = *code;
    bool two = c == SHERD__CONTROL_REUSE || c == SHERD__CONTROL_OFFSET ||
               c == SHERD__CONTROL_NEGATED || c == SHERD__CONTROL_SEED;
    v->seen_len = two ? 2 : 1;
    v->coalition = c == SHERD__CONTROL_COALITION ? code->masks + 1 : 1;
    for (uint32_t i = 0; i < v->seen_len; i++)
        v->seen[i] = (sherd__seen){
            .name = i == 0 ? "A" : "B", .code = &v->code, .rows = of.rows, .cols = of.cols
        };
    err = memory_new(v);
    if (err != 0) {
        sherd__control_fini(v);
        return err;
    }
    if (seeds(c)) {
        memory *m = v->memory;
        for (uint32_t t = 0; t < code->masks; t++) m->seeded[t] = 1;
        for (uint32_t i = 0; i < v->seen_len; i++) v->seen[i].seeded = m->seeded;
    }
    if (c == SHERD__CONTROL_POINT) {
        memory *m = v->memory;
        sherd__lcc lcc = { code->blocks, code->masks, code->shares };
        for (uint32_t i = 0; i < code->shares; i++)
            m->alpha[i] = sherd__lcc_alpha(&lcc, code->primes[0], i);
        m->alpha[0] = code->beta ? code->beta[0] : sherd__lcc_beta(0);
        v->code.alpha = m->alpha;
    }
    fill(v, c, of.block, &e);
    return SHERD_OK;
}
