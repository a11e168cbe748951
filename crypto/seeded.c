/*
 * The weights are computed in integers by Gaussian elimination: T is at most 63, and the weights of
 * an encoding are computed once. See seeded.h.
 */
#include "crypto/seeded.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/pieces.h"
#include "core/wipe.h"
#include "crypto/lagrange.h"
#include "crypto/lagrange_internal.h"
#include "matrix/residue_bytes.h"

enum {
    TILE = SHERD__BYTES_TILE,
    STEP = SHERD__BYTES_STEP,
    LEN = TILE * STEP,
    MASKS = SHERD__LCC_BLOCKS_MAX
};

/* ---- weights --------------------------------------------------------------------------------- */

static uint64_t residue(double w, uint32_t p)
{
    return w < 0 ? (uint64_t)(w + p) : (uint64_t)w;
}

/* Inverts x, n x n; it is replaced. Returns false if it has no inverse. */
static bool invert(uint64_t (*x)[MASKS], uint32_t n, uint32_t p, uint64_t (*out)[MASKS])
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++) out[i][j] = i == j;
    for (uint32_t c = 0; c < n; c++) {
        uint32_t from = c;
        while (from < n && !x[from][c]) from++;
        if (from == n) return false;
        const uint64_t inverse = lcc_power(x[from][c], p - 2, p);
        for (uint32_t j = 0; j < n; j++) {
            const uint64_t a = x[from][j], b = out[from][j];
            x[from][j] = x[c][j];
            out[from][j] = out[c][j];
            x[c][j] = a * inverse % p;
            out[c][j] = b * inverse % p;
        }
        for (uint32_t i = 0; i < n; i++) {
            const uint64_t f = i == c ? 0 : p - x[i][c];
            for (uint32_t j = 0; j < n && f; j++) {
                x[i][j] = (x[i][j] + f * x[c][j]) % p;
                out[i][j] = (out[i][j] + f * out[c][j]) % p;
            }
        }
    }
    return true;
}

int sherd__seeded_weights(uint32_t p, uint32_t shares, uint32_t blocks, uint32_t masks,
                          const uint32_t *seeded, double *w)
{
    const uint32_t terms = blocks + masks;
    uint64_t own[MASKS][MASKS], inverse[MASKS][MASKS], data[MASKS][MASKS], mask[MASKS];
    if (masks < 1 || terms > MASKS) return SHERD_EINVAL;
    for (uint32_t z = 0; z < masks; z++) {
        if (seeded[z] >= shares) return SHERD_EINVAL;
        const double *row = w + (size_t)seeded[z] * terms;
        for (uint32_t t = 0; t < masks; t++) own[t][z] = residue(row[blocks + t], p);
        for (uint32_t j = 0; j < blocks; j++) data[z][j] = residue(row[j], p);
    }
    if (!invert(own, masks, p, inverse)) return SHERD_EINVAL;
    for (uint32_t i = 0; i < shares; i++, w += terms) {
        for (uint32_t z = 0; z < masks; z++) {
            mask[z] = 0; /* L, of row z: the inverse times this share's masks */
            for (uint32_t t = 0; t < masks; t++)
                mask[z] = (mask[z] + inverse[z][t] * residue(w[blocks + t], p)) % p;
        }
        for (uint32_t j = 0; j < blocks; j++) {
            uint64_t sum = residue(w[j], p);
            for (uint32_t z = 0; z < masks; z++) sum = (sum + data[z][j] * (p - mask[z])) % p;
            w[j] = lcc_balanced(sum, p);
        }
        for (uint32_t z = 0; z < masks; z++) w[blocks + z] = lcc_balanced(mask[z], p);
    }
    return SHERD_OK;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

size_t sherd__drawn_area(const sherd__drawn *b)
{
    return b->left ? sherd__pieces(b->rows, TILE) * sherd__pieces(b->cols, STEP) * LEN
                   : SHERD__DRAWN_RIGHT_ROWS * SHERD__DRAWN_RIGHT_COLS;
}

size_t sherd__drawn_place(const sherd__drawn *b, size_t i, size_t col)
{
    if (!b->left) return i * SHERD__DRAWN_RIGHT_COLS + col;
    return (i / TILE * sherd__pieces(b->cols, STEP) + col / STEP) * LEN + i % TILE * STEP;
}

bool sherd__drawn_whole(const sherd__drawn *b)
{
    return b->left ? b->rows % TILE == 0 && b->cols % STEP == 0
                   : b->rows == SHERD__DRAWN_RIGHT_ROWS && b->cols == SHERD__DRAWN_RIGHT_COLS;
}

static int draw(sherd__masks *m, const sherd__mask_id *id, const sherd__seed_id *seed,
                uint64_t unit, size_t n, uint8_t *out)
{
    return seed ? sherd__masks_seeded(m, seed, id, unit, n, out)
                : sherd__masks_bytes(m, id, unit, n, out);
}

int sherd__masks_block(sherd__masks *m, const sherd__mask_id *id, const sherd__seed_id *seed,
                       uint64_t unit, const sherd__drawn *b, uint8_t *out)
{
    uint8_t drawn[SHERD__DRAWN_AREA], *from = drawn;
    const size_t area = sherd__drawn_area(b);
    assert(area <= sizeof drawn);
    if (sherd__drawn_whole(b)) return draw(m, id, seed, unit, area, out);
    int err = draw(m, id, seed, unit, b->rows * b->cols, drawn);
    memset(out, 0, area);
    for (size_t i = 0; i < b->rows; i++)
        for (size_t c = 0; c < b->cols; c += STEP) {
            size_t n = sherd__least(STEP, b->cols - c);
            memcpy(out + sherd__drawn_place(b, i, c), from, n);
            from += n;
        }
    sherd__wipe(drawn, sizeof drawn);
    return err;
}

/* ---- fragments ------------------------------------------------------------------------------- */

enum { HEAD = SHERD__SEED_BYTES + 2 };

uint64_t sherd__seed_len(uint32_t primes)
{
    return HEAD + (uint64_t)primes;
}

int sherd__seeded_fragment(sherd__fragment **out, const sherd__fragment_info *whole,
                           const uint8_t seed[SHERD__SEED_BYTES], uint32_t cols,
                           const uint32_t *primes)
{
    sherd__fragment_info info = *whole;
    *out = NULL;
    info.encoding = SHERD__SEED;
    info.len = sherd__seed_len(whole->primes);
    uint8_t *body = sherd__alloc((size_t)info.len);
    if (!body) return SHERD_ENOMEM;
    memcpy(body, seed, SHERD__SEED_BYTES);
    sherd__put_u16(body + SHERD__SEED_BYTES, (uint16_t)cols);
    for (uint32_t q = 0; q < whole->primes; q++) body[HEAD + q] = (uint8_t)primes[q];
    int err = sherd__fragment_take(out, &info, body, NULL, NULL);
    if (err) {
        sherd__wipe(body, info.len);
        sherd__free(body);
    }
    return err;
}
