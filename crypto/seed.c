/* Expands seeds: draws the blocks of a share and lays them out. See seed.h. */
#include "crypto/seed.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "core/pieces.h"
#include "core/wipe.h"
#include "crypto/seeded.h"
#include "matrix/residue_bytes.h"

enum {
    TILE = SHERD__BYTES_TILE,
    STEP = SHERD__BYTES_STEP,
    LEN = TILE * STEP,
    LEFT_ROWS = SHERD__DRAWN_LEFT_ROWS,
    LEFT_COLS = SHERD__DRAWN_LEFT_COLS,
    RIGHT_ROWS = SHERD__DRAWN_RIGHT_ROWS,
    RIGHT_COLS = SHERD__DRAWN_RIGHT_COLS,
    HEAD = SHERD__SEED_BYTES + 2
};

static uint32_t cols_of(const uint8_t *body)
{
    return sherd__get_u16(body + SHERD__SEED_BYTES);
}

int sherd__seed_check(const sherd__fragment *f, sherd_diag *d)
{
    const sherd__fragment_info *i = sherd__fragment_info_of(f);
    const uint8_t *body = sherd__fragment_bytes(f);
    const uint32_t cols = cols_of(body);
    const bool left = i->dtype == SHERD__BYTES_LEFT;
    assert(i->encoding == SHERD__SEED);
    if (left ? cols != LEFT_COLS : cols != TILE && cols != RIGHT_COLS)
        return sherd__fail(d, SHERD_EFRAME, NULL, "a seed with blocks of %u columns", cols);
    for (uint32_t q = 0; q < i->primes; q++) {
        const uint32_t p = body[HEAD + q];
        if (p < 3 || p % 2 == 0)
            return sherd__fail(d, SHERD_EFRAME, NULL, "a seed for modulus %u", p);
    }
    return SHERD_OK;
}

/* The share that is expanded. */
typedef struct expansion {
    sherd__masks *masks;
    const uint8_t *body;
    size_t rows, cols, primes;
    uint8_t *out;
} expansion;

static int draw(const expansion *e, uint32_t q, size_t row, size_t col, const sherd__drawn *b,
                uint8_t *out)
{
    const sherd__mask_role role = b->left ? SHERD__MASK_LEFT : SHERD__MASK_RIGHT;
    const sherd__mask_id id = { role, 0, q, e->body[HEAD + q], 0 };
    return sherd__masks_block(e->masks, &id, NULL, (uint64_t)row << 32 | col, b, out);
}

/* A block is in tiles already. */
static int expand_left(const expansion *e, size_t row, size_t col, uint8_t *block)
{
    const sherd__drawn b = { true, sherd__least(LEFT_ROWS, e->rows - row),
                             sherd__least(LEFT_COLS, e->cols - col) };
    const size_t tiles = sherd__pieces(e->cols, STEP), n = sherd__pieces(b.cols, STEP) * LEN;
    int err = SHERD_OK;
    for (uint32_t q = 0; q < e->primes && !err; q++) {
        err = draw(e, q, row, col, &b, block);
        for (size_t i = 0; i < sherd__pieces(b.rows, TILE); i++)
            memcpy(e->out + (((row / TILE + i) * e->primes + q) * tiles + col / STEP) * LEN,
                   block + i * n, n);
    }
    return err;
}

static void make_signed(uint8_t *x, size_t n, uint8_t p)
{
    for (size_t i = 0; i < n; i++) x[i] = (uint8_t)(x[i] - (x[i] > p / 2 ? p : 0));
}

static int expand_right(const expansion *e, size_t row, size_t col, uint8_t *block)
{
    const sherd__drawn b = { false, sherd__least(RIGHT_ROWS, e->rows - row),
                             sherd__least(cols_of(e->body), e->cols - col) };
    const size_t tiles = sherd__pieces(e->rows, STEP);
    int err = SHERD_OK;
    for (uint32_t q = 0; q < e->primes && !err; q++) {
        err = draw(e, q, row, col, &b, block);
        make_signed(block, RIGHT_ROWS * RIGHT_COLS, e->body[HEAD + q]);
        for (size_t i = 0; i < sherd__pieces(b.cols, TILE); i++)
            sherd__bytes_lay_columns((const int8_t *)block + i * TILE, RIGHT_ROWS, TILE, RIGHT_COLS,
                                     e->out +
                                         (((col / TILE + i) * e->primes + q) * tiles + row / STEP) *
                                             LEN);
    }
    return err;
}

int sherd__seed_expand(const sherd__fragment *f, uint8_t *out)
{
    const sherd__fragment_info *i = sherd__fragment_info_of(f);
    const bool left = i->dtype == SHERD__BYTES_LEFT;
    expansion e = { .body = sherd__fragment_bytes(f),
                    .rows = (size_t)i->rows,
                    .cols = (size_t)i->cols,
                    .primes = i->primes,
                    .out = out };
    const size_t high = left ? LEFT_ROWS : RIGHT_ROWS, wide = cols_of(e.body);
    uint8_t block[SHERD__DRAWN_AREA];
    int err = sherd__masks_from_key(&e.masks, e.body);
    for (size_t row = 0; row < e.rows && !err; row += high)
        for (size_t col = 0; col < e.cols && !err; col += wide)
            err = left ? expand_left(&e, row, col, block) : expand_right(&e, row, col, block);
    sherd__masks_free(e.masks);
    sherd__wipe(block, sizeof block);
    return err;
}

/* ---- later ----------------------------------------------------------------------------------- */

static int fill(void *ctx, uint64_t offset, uint8_t *out, size_t len)
{
    (void)len;
    assert(offset == 0 && "a deferred body is computed at once");
    return sherd__seed_expand(ctx, out);
}

static void forget(void *ctx)
{
    sherd__fragment_free(ctx);
}

int sherd__seed_defer(sherd__fragment **out, sherd__fragment *f, uint8_t *bytes,
                      void (*release)(void *ctx, uint8_t *bytes, uint64_t len), void *ctx)
{
    const sherd__fragment_info whole = sherd__fragment_whole(sherd__fragment_info_of(f));
    return sherd__fragment_defer(out, &whole, bytes, release, ctx,
                                 (sherd__fragment_source){ fill, forget, f });
}
