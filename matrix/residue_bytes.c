/*
 * A product is cut into pieces of rows, columns and terms. The sums of a piece stay in cache as
 * numbers of 32 bits over all of its terms, at most 65,536, and are then reduced once.
 *
 * |sum| <= 65,536 * 255 * 128 < 2^31.
 */
#include "matrix/residue_bytes.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/pieces.h"
#include "core/wipe.h"
#include "matrix/clones.h"
#include "matrix/residue_bytes_kernels.h"

enum {
    TILE = SHERD__BYTES_TILE,
    STEP = SHERD__BYTES_STEP,
    LEN = BYTES_TILE_LEN,
    TERMS = 65536 /* terms between two reductions */
};
_Static_assert((int64_t)TERMS * 255 * 128 <= INT32_MAX, "sums of 32 bits");

const uint32_t sherd__byte_primes[SHERD__BYTE_PRIMES] = { 251, 241, 239, 233, 229, 227, 223, 211 };

/* ---- layout ---------------------------------------------------------------------------------- */

size_t sherd__bytes_laid(size_t lines, size_t k)
{
    return sherd__pieces(lines, TILE) * sherd__pieces(k, STEP) * LEN;
}

void sherd__bytes_lay_rows(const uint8_t *in, size_t n, size_t k, size_t stride, uint8_t *out)
{
    for (size_t first = 0; first < n; first += TILE)
        for (size_t from = 0; from < k; from += STEP, out += LEN) {
            size_t terms = sherd__least(STEP, k - from);
            if (terms < STEP || n - first < TILE) memset(out, 0, LEN);
            for (size_t r = 0; r < sherd__least(TILE, n - first); r++)
                memcpy(out + r * STEP, in + (first + r) * stride + from, terms);
        }
}

/* Four rows of one strip: `cols` <= 16 columns of `rows` <= 4 terms. */
static void lay_group(const int8_t *in, size_t rows, size_t cols, size_t stride, uint8_t *out)
{
    if (rows < 4 || cols < TILE) {
        memset(out, 0, STEP);
        for (size_t q = 0; q < rows; q++)
            for (size_t c = 0; c < cols; c++) out[4 * c + q] = (uint8_t)in[q * stride + c];
        return;
    }
    for (size_t c = 0; c < TILE; c++)
        for (size_t q = 0; q < 4; q++) out[4 * c + q] = (uint8_t)in[q * stride + c];
}

SHERD__CLONES
static void lay_columns(const int8_t *in, size_t k, size_t m, size_t stride, uint8_t *out,
                        size_t strip)
{
    for (size_t from = 0; from < sherd__pieces(k, STEP) * STEP; from += 4)
        for (size_t c = 0; c < m; c += TILE) {
            size_t rows = from < k ? sherd__least(4, k - from) : 0;
            lay_group(in + (rows ? from : 0) * stride + c, rows, sherd__least(TILE, m - c), stride,
                      out + c / TILE * strip + from * TILE);
        }
}

/* A function with clones would be visible outside the library. */
void sherd__bytes_lay_any(const int8_t *in, size_t k, size_t m, size_t stride, uint8_t *out,
                          size_t strip)
{
    lay_columns(in, k, m, stride, out, strip);
}

/* ---- kernels for any processor --------------------------------------------------------------- */

/* Adds the product of one tile of each side. A product of two bytes fits 16 bits, which vector
 * units multiply faster than 32. */
SHERD__CLONES
static void add_tile(const uint8_t *a, size_t stride, int16_t b[STEP][TILE], int32_t *sum)
{
    for (size_t i = 0; i < TILE; i++, sum += BYTES_WIDE) {
        int32_t row[TILE];
        memcpy(row, sum, sizeof row);
        for (size_t t = 0; t < STEP; t++)
            for (size_t j = 0; j < TILE; j++) row[j] += (int16_t)(a[i * stride + t] * b[t][j]);
        memcpy(sum, row, sizeof row);
    }
}

static void sum_any(const sherd__bytes_piece *t)
{
    int16_t laid[STEP][TILE];
    size_t down = sherd__pieces(t->rows, TILE), across = sherd__pieces(t->cols, TILE);
    if (!t->more) memset(t->sums, 0, down * TILE * BYTES_WIDE * sizeof *t->sums);
    for (size_t c = 0; c < across; c++)
        for (size_t s = 0; s < t->steps; s++) {
            const int8_t *b = (const int8_t *)(t->right + c * t->right_strip + s * LEN);
            for (size_t q = 0; q < STEP; q++)
                for (size_t j = 0; j < TILE; j++) laid[q][j] = b[q / 4 * STEP + j * 4 + q % 4];
            for (size_t r = 0; r < down; r++)
                add_tile(t->left + r * t->left_strip + s * t->tile, t->row, laid,
                         t->sums + r * TILE * BYTES_WIDE + c * TILE);
        }
}

/* The quotient is too small by less than 1.5, since |sum| / 2^32 < 0.5. */
SHERD__CLONES
static void reduce(const int32_t *sums, size_t n, int32_t p, bool add, uint8_t *out)
{
    const int64_t inverse = INT64_C(0x100000000) / p;
    for (size_t i = 0; i < n; i++) {
        int32_t v = sums[i] - (int32_t)(sums[i] * inverse >> 32) * p; /* in [-p/2, 3p/2) */
        v += v < 0 ? p : 0;
        v -= v >= p ? p : 0;
        v += add ? out[i] : 0;
        out[i] = (uint8_t)(v >= p ? v - p : v);
    }
}

void sherd__bytes_reduce_any(const int32_t *sums, size_t n, uint32_t p, bool add, uint8_t *out)
{
    reduce(sums, n, (int32_t)p, add, out);
}

static const sherd__bytes_kernels any = { sum_any, sherd__bytes_reduce_any, sherd__bytes_lay_any };

/* ---- paths ----------------------------------------------------------------------------------- */

static atomic_uint forced;
static pthread_once_t selected = PTHREAD_ONCE_INIT;
static sherd__bytes_path best; /* once selected */

static const sherd__bytes_kernels *kernels_of(sherd__bytes_path path)
{
    if (path == SHERD__BYTES_ANY) return &any;
    if (path == SHERD__BYTES_NEON) return sherd__bytes_neon();
    return path < SHERD__BYTES_VNNI ? sherd__bytes_narrow(path) : sherd__bytes_wide(path);
}

const char *sherd__bytes_path_name(sherd__bytes_path path)
{
    static const char *const names[SHERD__BYTES_PATHS] = { "best",     "any",  "neon", "avx2",
                                                           "avx-vnni", "vnni", "amx" };
    return path < SHERD__BYTES_PATHS ? names[path] : "unknown";
}

bool sherd__bytes_force(sherd__bytes_path path)
{
    if (path != SHERD__BYTES_BEST && !kernels_of(path)) return false;
    atomic_store(&forced, path);
    return true;
}

sherd__bytes_path sherd__bytes_path_of_core(const char *core)
{
    static const struct {
        const char *core;
        sherd__bytes_path path;
    } cores[] = { { "SapphireRapids", SHERD__BYTES_VNNI },
                  { "Cooperlake", SHERD__BYTES_VNNI },
                  { "SkylakeX", SHERD__BYTES_AVX2 },
                  { "Haswell", SHERD__BYTES_AVX2 },
                  { "Zen", SHERD__BYTES_AVX2 },
                  { "Excavator", SHERD__BYTES_AVX2 },
                  { "NeoverseV1", SHERD__BYTES_NEON },
                  { "NeoverseN2", SHERD__BYTES_NEON },
                  { "ARMV8SVE", SHERD__BYTES_NEON } };
    if (!core || core[0] == '\0') return SHERD__BYTES_AMX;
    for (size_t i = 0; i < sizeof cores / sizeof *cores; i++)
        if (strcasecmp(core, cores[i].core) == 0) return cores[i].path;
    return SHERD__BYTES_ANY;
}

static void select_path(void)
{
    best = sherd__bytes_path_of_core(getenv("OPENBLAS_CORETYPE"));
    while (!kernels_of(best)) best--;
}

sherd__bytes_path sherd__bytes_path_here(void)
{
    sherd__bytes_path path = atomic_load_explicit(&forced, memory_order_relaxed);
    if (path != SHERD__BYTES_BEST) return path;
    (void)pthread_once(&selected, select_path);
    return best;
}

/* ---- rows of B ------------------------------------------------------------------------------- */

void sherd__bytes_lay_columns_at(const int8_t *in, size_t rows, size_t m, size_t stride,
                                 size_t from, size_t k, uint8_t *out, size_t strip)
{
    assert(from % STEP == 0 && from <= k && rows <= k - from);
    assert(rows % STEP == 0 || from + rows == k);
    kernels_of(sherd__bytes_path_here())
        ->lay(in, rows, m, stride, out + from * TILE, strip ? strip : sherd__pieces(k, STEP) * LEN);
}

void sherd__bytes_lay_columns(const int8_t *in, size_t k, size_t m, size_t stride, uint8_t *out)
{
    sherd__bytes_lay_columns_at(in, k, m, stride, 0, k, out, 0);
}

/* ---- the product ----------------------------------------------------------------------------- */

/* Terms [from, from+steps*STEP) of all rows and columns. */
typedef struct part {
    const sherd__bytes_product *x;
    const sherd__bytes_kernels *kernels;
    size_t from, steps;      /* in tiles */
    size_t a_strip, b_strip; /* bytes from one strip to the next */
    bool add;
} part;

static bool stopped(const sherd__bytes_product *x)
{
    return x->stop && atomic_load_explicit(x->stop, memory_order_relaxed);
}

/* Lays out some rows and terms of A and adds their products. */
static void sum_edge(const part *t, sherd__bytes_piece piece, const uint8_t *a, size_t terms)
{
    uint8_t laid[BYTES_DEEP * LEN] __attribute__((aligned(64)));
    piece.steps = sherd__pieces(terms, STEP);
    sherd__bytes_lay_rows(a, piece.rows, terms, t->x->a_ld, laid);
    piece.left = laid;
    piece.row = STEP;
    piece.tile = LEN;
    piece.left_strip = piece.steps * LEN;
    t->kernels->sum(&piece);
    sherd__wipe(laid, sherd__pieces(piece.rows, TILE) *
                          piece.left_strip); /* may be terms of an operand */
}

/* Adds products of rows of A that are not laid out. Complete tiles are multiplied where they are.
 * Terms beyond these are at most one tile of each strip, and rows beyond them one strip. */
static void sum_rows(const part *t, const sherd__bytes_piece *of, const uint8_t *a, size_t terms)
{
    const size_t rows = of->rows / TILE * TILE, tiles = terms / STEP, ld = t->x->a_ld;
    sherd__bytes_piece piece = *of;
    piece.rows = rows;
    if (rows && tiles) {
        piece.left = a;
        piece.row = ld;
        piece.tile = STEP;
        piece.left_strip = TILE * ld;
        piece.steps = tiles;
        t->kernels->sum(&piece);
    }
    if (rows && terms % STEP) {
        piece.right += tiles * LEN;
        piece.more = of->more || tiles;
        sum_edge(t, piece, a + tiles * STEP, terms % STEP);
    }
    if (of->rows == rows) return;
    piece = *of;
    piece.rows -= rows;
    piece.sums += rows * BYTES_WIDE;
    sum_edge(t, piece, a + rows * ld, terms);
}

static void multiply_piece(void *ctx, size_t i, unsigned thread)
{
    int32_t sums[BYTES_HIGH * BYTES_WIDE] __attribute__((aligned(64)));
    const part *t = ctx;
    const sherd__bytes_product *x = t->x;
    const size_t across = sherd__pieces(x->m, BYTES_WIDE);
    const size_t row = i / across * BYTES_HIGH, col = i % across * BYTES_WIDE;
    sherd__bytes_piece piece = { .row = STEP,
                                 .tile = LEN,
                                 .left_strip = t->a_strip,
                                 .right_strip = t->b_strip,
                                 .rows = sherd__least(BYTES_HIGH, x->n - row),
                                 .cols = sherd__least(BYTES_WIDE, x->m - col),
                                 .sums = sums };
    (void)thread;
    for (size_t at = 0; at < t->steps; at += BYTES_DEEP) {
        const size_t tile = t->from + at;
        if (stopped(x)) return;
        piece.right = x->b + col / TILE * t->b_strip + tile * LEN;
        piece.steps = sherd__least(BYTES_DEEP, t->steps - at);
        piece.more = at > 0;
        if (x->a_ld) {
            sum_rows(t, &piece, x->a + row * x->a_ld + tile * STEP,
                     sherd__least(piece.steps * STEP, x->k - tile * STEP));
        } else {
            piece.left = x->a + row / TILE * t->a_strip + tile * LEN;
            t->kernels->sum(&piece);
        }
    }
    for (size_t r = 0; r < piece.rows; r++)
        t->kernels->reduce(sums + r * BYTES_WIDE, piece.cols, x->p, t->add,
                           x->out + (row + r) * x->ld + col);
}

int sherd__bytes_multiply(const sherd__bytes_product *x, sherd__team *team)
{
    const size_t all = sherd__pieces(x->k, STEP);
    part t = { .x = x,
               .kernels = kernels_of(sherd__bytes_path_here()),
               .a_strip = x->a_strip ? x->a_strip : all * LEN,
               .b_strip = x->b_strip ? x->b_strip : all * LEN,
               .add = x->add };
    assert(x->a_strip % STEP == 0 && x->b_strip % STEP == 0);
    assert(x->a_ld == 0 || x->n <= 1 || x->a_ld >= x->k);
    for (size_t r = 0; r < x->n && x->k == 0 && !x->add; r++) memset(x->out + r * x->ld, 0, x->m);
    for (; t.from < all && x->n && x->m; t.from += t.steps) {
        t.steps = sherd__least(TERMS / STEP, all - t.from);
        sherd__team_run(team, sherd__pieces(x->n, BYTES_HIGH) * sherd__pieces(x->m, BYTES_WIDE),
                        multiply_piece, &t);
        if (stopped(x)) return SHERD_EINTERRUPTED;
        t.add = true;
    }
    return SHERD_OK;
}
