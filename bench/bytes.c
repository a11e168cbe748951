/*
 * All shares of an operand modulo six byte primes, as a coordinator makes them: numbers are
 * reduced, masks are drawn, and sums of both are computed, a unit of masks at a time. Shares are
 * overwritten by those of the next unit, since a job sends them before.
 */
#include <string.h>

#include "bench/bench.h"
#include "core/alloc.h"
#include "crypto/byte_code.h"
#include "crypto/mask.h"

enum { BLOCKS = 3, TERMS = BLOCKS + 1, SHARES = 7, PRIMES = 6, UNIT = 16384 };

typedef struct encoding {
    double *a;
    size_t units; /* of each block of A */
    uint8_t *memory, *residues, *mask, *shares[SHARES];
    sherd__masks *masks;
    int8_t w[SHARES * TERMS];
} encoding;

static int open_encoding(sherd__bench *b, void *state, const void *spec, sherd_diag *d)
{
    encoding *e = state;
    const sherd__kernel_spec *x = spec;
    const sherd__entropy entropy = sherd__entropy_os();
    const size_t dim = b->quick ? x->n_quick : x->n;
    e->units = (dim * dim / BLOCKS + UNIT - 1) / UNIT;
    e->a = sherd__bench_room(BLOCKS * e->units * UNIT);
    e->memory = sherd__alloc_large((size_t)PRIMES * UNIT * (BLOCKS + SHARES) + UNIT);
    if (!e->a || !e->memory || sherd__masks_new(&e->masks, &entropy) != 0)
        return sherd__bench_no_memory(d);
    memset(e->memory, 0, (size_t)PRIMES * UNIT * (BLOCKS + SHARES) + UNIT);
    e->residues = e->memory;
    for (size_t i = 0; i < SHARES; i++)
        e->shares[i] = e->residues + (size_t)PRIMES * UNIT * (BLOCKS + i);
    e->mask = e->residues + (size_t)PRIMES * UNIT * (BLOCKS + SHARES);
    sherd__bench_integers(e->a, BLOCKS * e->units * UNIT, x->most, 7);
    for (int i = 0; i < SHARES * TERMS; i++) e->w[i] = (int8_t)(i * 37 % 211 - 105);
    return 0;
}

static void close_encoding(void *state)
{
    encoding *e = state;
    sherd__masks_free(e->masks);
    sherd__free(e->memory);
    sherd__free(e->a);
}

static const double *block(const encoding *e, size_t j, size_t unit)
{
    return e->a + (j * e->units + unit) * UNIT;
}

/* Compares the shares of a unit modulo the last prime with sums of integers. */
static bool right(const encoding *e, size_t unit)
{
    const int64_t p = sherd__byte_primes[PRIMES - 1];
    for (size_t i = 0; i < SHARES; i++)
        for (size_t c = 0; c < UNIT; c++) {
            const int8_t *w = e->w + i * TERMS;
            int64_t sum = w[BLOCKS] * e->mask[c];
            for (size_t j = 0; j < BLOCKS; j++) sum += w[j] * (int64_t)block(e, j, unit)[c];
            if (e->shares[i][(PRIMES - 1) * UNIT + c] != (sum % p + p) % p) return false;
        }
    return true;
}

/* Seconds of the three steps, of processor time: other load on the machine makes no difference. */
typedef struct steps {
    double reduce, draw, combine;
} steps;

static int encode_unit(encoding *e, size_t unit, steps *took)
{
    double began = sherd__clock_busy_s();
    for (size_t j = 0; j < BLOCKS; j++)
        sherd__bytes_reduce(block(e, j, unit), UNIT, PRIMES, BLOCKS * UNIT, e->residues + j * UNIT);
    double reduced = sherd__clock_busy_s();
    took->reduce += reduced - began;
    for (uint32_t q = 0; q < PRIMES; q++) {
        const uint32_t p = sherd__byte_primes[q];
        const sherd__mask_id id = { SHERD__MASK_LEFT, 0, q, p, UNIT };
        const uint8_t *in[TERMS] = { [BLOCKS] = e->mask };
        uint8_t *out[SHARES];
        for (size_t j = 0; j < BLOCKS; j++) in[j] = e->residues + (q * BLOCKS + j) * UNIT;
        for (size_t i = 0; i < SHARES; i++) out[i] = e->shares[i] + (size_t)q * UNIT;
        began = sherd__clock_busy_s();
        int err = sherd__masks_bytes(e->masks, &id, unit, UNIT, e->mask);
        double drawn = sherd__clock_busy_s();
        if (err) return err;
        sherd__bytes_combine(e->w, SHARES, TERMS, p, false, in, UNIT, out);
        took->draw += drawn - began;
        took->combine += sherd__clock_busy_s() - drawn;
    }
    return 0;
}

static int turn_encoding(sherd__bench *b, void *state, sherd_diag *d)
{
    encoding *e = state;
    steps took = { 0 };
    int err = 0;
    double began = sherd__clock_busy_s();
    for (size_t unit = 0; unit < e->units && !err; unit++) err = encode_unit(e, unit, &took);
    double each = 1.0 / (double)(BLOCKS * e->units * UNIT);
    if (err) return sherd__fail(d, err, NULL, "cannot draw masks");
    sherd__bench_put(b, "encode", (sherd__clock_busy_s() - began) * each);
    sherd__bench_put(b, "reduce", took.reduce * each);
    sherd__bench_put(b, "draw", took.draw * each);
    sherd__bench_put(b, "combine", took.combine * each);
    if (!b->warming || right(e, e->units - 1)) return 0;
    return sherd__fail(d, SHERD_EINTERNAL, "please report this", "a share of bytes is wrong");
}

const sherd__kind sherd__bench_bytes_encode = {
    sizeof(encoding), open_encoding, turn_encoding, NULL, close_encoding, false, false
};
