/*
 * A residue below 2^24 is a0 + a1*2^8 + a2*2^16 with bytes a0, a1, a2, which is its form on the
 * wire. A product of matrices of residues is therefore nine products of matrices of bytes, added up
 * by their weights 2^0, 2^8, ..., 2^32 in five tiles of 16 x 16 sums of 32 bits. Sums are exact and
 * leave the tiles once per DEPTH terms, when they are joined and reduced. With AMX this takes nine
 * instructions of 16384 products each where dgemm takes 2048 of 8, and no conversion except sorting
 * bytes.
 *
 * Operands are sorted into strips of 16 rows of A or columns of B. A strip has a tile of each limb
 * for every 64 terms, in the form that AMX reads: in A a row is 64 terms, in B a row is four terms
 * of each of 16 columns. Missing elements at edges are zero, which adds nothing. Values are
 * compared with p during sorting. A sorted operand is its strips, one after the other, for every
 * DEPTH terms.
 *
 * A sum of weight 2^16 takes at most three products of bytes a term: 3*255^2*DEPTH < 2^32.
 *
 * The kernels in this file run on any processor. Without AMX they are slower than dgemm and serve
 * tests only, which compare all kernels (sherd__limbs_force).
 */
#include "matrix/residue_limbs.h"

#include <stdatomic.h>
#include <string.h>

#include "core/pieces.h"
#include "matrix/clones.h"
#include "matrix/residue_limbs_kernels.h"

enum {
    ROWS = 1024, /* rows of A sorted at a time; columns of B; terms */
    COLS = 256,
    DEPTH = SHERD__LIMBS_DEPTH,
    WIDE = 64, /* columns that are sorted and multiplied together */
    HIGH = 128 /* rows; a part that fits the second-level cache */
};
_Static_assert(SHERD__LIMBS_MOST == (size_t)LIMBS * ROWS * DEPTH && COLS <= ROWS, "room");
_Static_assert(3 * 255 * 255 <= UINT32_MAX / DEPTH, "sums of 32 bits");

static bool stopped(const sherd__limbs *x)
{
    return x->stop && atomic_load_explicit(x->stop, memory_order_relaxed);
}

/* ---- kernels for any processor --------------------------------------------------------------- */

static uint32_t value_at(const uint8_t *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16;
}

static bool sort_rows(const uint8_t *in, size_t rows, size_t k, size_t stride, uint32_t p,
                      uint8_t *strip)
{
    bool bad = false;
    for (size_t c = 0; c < k; c += LIMBS_STEP, strip += LIMBS * LIMBS_LIMB) {
        memset(strip, 0, LIMBS * LIMBS_LIMB);
        for (size_t r = 0; r < rows; r++)
            for (size_t i = 0; i < sherd__least(LIMBS_STEP, k - c); i++) {
                const uint8_t *at = in + r * stride + LIMBS * (c + i);
                bad |= value_at(at) >= p;
                for (size_t l = 0; l < LIMBS; l++)
                    strip[l * LIMBS_LIMB + r * LIMBS_STEP + i] = at[l];
            }
    }
    return bad;
}

static bool sort_columns(const uint8_t *in, size_t cols, size_t k, size_t stride, uint32_t p,
                         uint8_t *out, size_t strip)
{
    bool bad = false;
    for (size_t r = 0; r < k; r += LIMBS_STEP, out += LIMBS * LIMBS_LIMB) {
        for (size_t i = 0; i < WIDE / LIMBS_TILE; i++)
            memset(out + i * strip, 0, LIMBS * LIMBS_LIMB);
        for (size_t q = 0; q < sherd__least(LIMBS_STEP, k - r); q++)
            for (size_t c = 0; c < cols; c++) {
                const uint8_t *at = in + (r + q) * stride + LIMBS * c;
                uint8_t *to = out + c / LIMBS_TILE * strip + q / 4 * LIMBS_STEP +
                              c % LIMBS_TILE * 4 + q % 4;
                bad |= value_at(at) >= p;
                for (size_t l = 0; l < LIMBS; l++) to[l * LIMBS_LIMB] = at[l];
            }
    }
    return bad;
}

static void turn(uint8_t *tile)
{
    uint32_t words[LIMBS_TILE][LIMBS_TILE], turned[LIMBS_TILE][LIMBS_TILE];
    memcpy(words, tile, sizeof words);
    for (size_t i = 0; i < LIMBS_TILE; i++)
        for (size_t j = 0; j < LIMBS_TILE; j++) turned[j][i] = words[i][j];
    memcpy(tile, turned, sizeof turned);
}

/* Adds the product of one tile of each side. `b` has been laid out as terms x columns. A product of
 * bytes fits 16 bits, which vector units multiply faster than 32. */
SHERD__CLONES
static void add_tile(const uint8_t *a, uint16_t b[LIMBS_STEP][LIMBS_TILE], uint32_t *sum)
{
    for (size_t i = 0; i < LIMBS_TILE; i++, sum += LIMBS_TILE) {
        uint32_t row[LIMBS_TILE];
        memcpy(row, sum, sizeof row);
        for (size_t t = 0; t < LIMBS_STEP; t++)
            for (size_t j = 0; j < LIMBS_TILE; j++)
                row[j] += (uint16_t)(a[i * LIMBS_STEP + t] * b[t][j]);
        memcpy(sum, row, sizeof row);
    }
}

void sherd__limbs_sums(const uint8_t *a, const uint8_t *b, size_t steps,
                       uint32_t sums[LIMBS_SUMS * LIMBS_SUM])
{
    memset(sums, 0, LIMBS_SUMS * LIMBS_SUM * sizeof *sums);
    for (size_t s = 0; s < steps; s++, a += LIMBS * LIMBS_LIMB)
        for (size_t l = 0; l < LIMBS; l++, b += LIMBS_LIMB) {
            uint16_t laid[LIMBS_STEP][LIMBS_TILE];
            for (size_t t = 0; t < LIMBS_STEP; t++)
                for (size_t j = 0; j < LIMBS_TILE; j++)
                    laid[t][j] = b[t / 4 * LIMBS_STEP + j * 4 + t % 4];
            for (size_t i = 0; i < LIMBS; i++)
                add_tile(a + i * LIMBS_LIMB, laid, sums + (i + l) * LIMBS_SUM);
        }
}

/* Joins the sums of one element and reduces them. */
static uint32_t joined(const uint32_t *sums, uint32_t p)
{
    uint64_t x = 0;
    for (size_t w = LIMBS_SUMS; w-- > 0;) x = (x << 8) + sums[w * LIMBS_SUM];
    return (uint32_t)(x % p);
}

/* Writes rows x cols <= 16 x 16 elements of the product, or adds them to those in `out`. */
static void put(const uint32_t *sums, const sherd__limbs_piece *t, size_t rows, size_t cols,
                uint8_t *out)
{
    for (size_t i = 0; i < rows; i++, out += t->stride)
        for (size_t j = 0; j < cols; j++) {
            uint8_t *at = out + LIMBS * j;
            uint32_t v = joined(sums + i * LIMBS_TILE + j, t->p);
            if (t->add) v = (v + value_at(at)) % t->p;
            for (size_t l = 0; l < LIMBS; l++) at[l] = (uint8_t)(v >> 8 * l);
        }
}

static void multiply(const sherd__limbs_piece *t)
{
    uint32_t sums[LIMBS_SUMS * LIMBS_SUM];
    for (size_t col = 0; col < t->cols; col += LIMBS_TILE)
        for (size_t row = 0; row < t->rows; row += LIMBS_TILE) {
            sherd__limbs_sums(t->left + row / LIMBS_TILE * t->strip,
                              t->right + col / LIMBS_TILE * t->strip, t->steps, sums);
            put(sums, t, sherd__least(LIMBS_TILE, t->rows - row),
                sherd__least(LIMBS_TILE, t->cols - col), t->out + row * t->stride + LIMBS * col);
        }
}

/* ---- choice of kernels ----------------------------------------------------------------------- */

static const sherd__limbs_kernels any = { sort_rows, sort_columns, turn, multiply };
static _Atomic(const sherd__limbs_kernels *) forced;

bool sherd__limbs_force(unsigned level)
{
    const sherd__limbs_kernels *k = level > 1 ? sherd__limbs_wide(level > 2) : &any;
    if (!k) return false;
    atomic_store(&forced, level ? k : NULL);
    return true;
}

bool sherd__limbs_here(void)
{
    return atomic_load_explicit(&forced, memory_order_relaxed) || sherd__limbs_wide(true);
}

static const sherd__limbs_kernels *chosen(void)
{
    const sherd__limbs_kernels *k = atomic_load_explicit(&forced, memory_order_relaxed);
    if (!k) k = sherd__limbs_wide(true);
    return k ? k : &any;
}

/* ---- sorted operands ------------------------------------------------------------------------- */

/* Returns the bytes of a strip of k terms. */
static size_t strip_of(size_t k)
{
    return sherd__pieces(sherd__least(k, DEPTH), LIMBS_STEP) * LIMBS * LIMBS_LIMB;
}

/* An operand: A, whose rows become strips, or B, whose columns do. Columns of a matrix, B's or
 * those of an A that is transposed, are sorted 64 at a time. */
typedef struct side {
    const uint8_t *in; /* `width` values a row */
    size_t width, len; /* len: how many rows or columns are to be sorted */
    size_t each;       /* of which so many at a time */
    bool turned;       /* from the form of B to that of A */
} side;

static side left_of(const sherd__limbs *x)
{
    return x->transposed ? (side){ x->a, x->n, x->n, WIDE, true }
                         : (side){ x->a, x->k, x->n, LIMBS_TILE, false };
}

static side right_of(const sherd__limbs *x)
{
    return (side){ x->b, x->m, x->m, WIDE, false };
}

static size_t strips_of(const side *s, size_t len)
{
    return sherd__pieces(len, s->each) * (s->each / LIMBS_TILE);
}

/* Returns the bytes of the side for k terms, sorted. */
static size_t bytes_of(const side *s, size_t k)
{
    return strips_of(s, s->len) * (k / DEPTH * strip_of(DEPTH) + strip_of(k % DEPTH));
}

void sherd__limbs_room(const sherd__limbs *x, size_t *left, size_t *right)
{
    const side a = left_of(x), b = right_of(x);
    *left = strips_of(&a, sherd__least(x->n, ROWS)) * strip_of(x->k);
    *right = strips_of(&b, sherd__least(x->m, COLS)) * strip_of(x->k);
}

size_t sherd__limbs_sorted_left(const sherd__limbs *x)
{
    const side s = left_of(x);
    return bytes_of(&s, x->k);
}

size_t sherd__limbs_sorted_right(const sherd__limbs *x)
{
    const side s = right_of(x);
    return bytes_of(&s, x->k);
}

/* Sorts rows or columns [first, first+len) of a side for terms [from, from+k). */
typedef struct sorting {
    const sherd__limbs_kernels *kernels;
    const side *side;
    size_t first, len, from, k;
    uint32_t p;
    uint8_t *strips;
    atomic_bool bad;
} sorting;

static void sort_some(void *ctx, size_t i, unsigned thread)
{
    sorting *s = ctx;
    const side *of = s->side;
    const size_t each = of->each, stride = LIMBS * of->width, at = s->first + each * i;
    const size_t n = sherd__least(each, s->len - each * i), strip = strip_of(s->k);
    uint8_t *out = s->strips + each / LIMBS_TILE * strip * i;
    (void)thread;
    bool bad = each == WIDE ? s->kernels->sort_columns(of->in + s->from * stride + LIMBS * at, n,
                                                       s->k, stride, s->p, out, strip)
                            : s->kernels->sort_rows(of->in + at * stride + LIMBS * s->from, n, s->k,
                                                    stride, s->p, out);
    if (bad) atomic_store_explicit(&s->bad, true, memory_order_relaxed);
    for (size_t tile = 0; of->turned && tile < each / LIMBS_TILE * strip; tile += LIMBS_LIMB)
        s->kernels->turn(out + tile);
}

static bool sort(sorting *s, sherd__team *team)
{
    sherd__team_run(team, sherd__pieces(s->len, s->side->each), sort_some, s);
    return !s->bad;
}

/* Sorts a whole side into the strips of `whole` from number `first` on; both have as many terms. */
static int sort_all(const sherd__limbs *x, const side *of, const side *whole, size_t first,
                    sherd__team *team, uint8_t *out)
{
    sorting s = { .kernels = chosen(), .side = of, .len = of->len, .p = x->p };
    for (; s.from < x->k; s.from += DEPTH) {
        s.k = sherd__least(DEPTH, x->k - s.from);
        if (stopped(x)) return SHERD_EINTERRUPTED;
        s.strips = out + bytes_of(whole, s.from) + first * strip_of(s.k);
        if (!sort(&s, team)) return SHERD_EFRAME;
    }
    return SHERD_OK;
}

int sherd__limbs_sort_left(const sherd__limbs *x, sherd__team *team, uint8_t *out)
{
    const side s = left_of(x);
    return sort_all(x, &s, &s, 0, team, out);
}

int sherd__limbs_sort_right(const sherd__limbs *x, size_t col, size_t cols, sherd__team *team,
                            uint8_t *out)
{
    const side whole = right_of(x), some = { x->b, cols, cols, WIDE, false };
    return sort_all(x, &some, &whole, col / LIMBS_TILE, team, out);
}

/* ---- the product ----------------------------------------------------------------------------- */

/* Rows [row, row+rows) of A, columns [col, col+cols) of B, terms [from, from+k). */
typedef struct part {
    const sherd__limbs *x;
    const sherd__limbs_kernels *kernels;
    size_t row, rows, col, cols, from, k, strip;
    const uint8_t *left, *right; /* their strips */
} part;

static size_t ld_of(const sherd__limbs *x)
{
    return x->ld ? x->ld : x->m;
}

/* Computes HIGH x WIDE elements. */
static void multiply_piece(void *ctx, size_t i, unsigned thread)
{
    const part *t = ctx;
    const size_t across = sherd__pieces(t->cols, WIDE), stride = LIMBS * ld_of(t->x);
    const size_t row = i / across * HIGH, col = i % across * WIDE;
    const sherd__limbs_piece piece = { .left = t->left + row / LIMBS_TILE * t->strip,
                                       .right = t->right + col / LIMBS_TILE * t->strip,
                                       .strip = t->strip,
                                       .steps = sherd__pieces(t->k, LIMBS_STEP),
                                       .rows = sherd__least(HIGH, t->rows - row),
                                       .cols = sherd__least(WIDE, t->cols - col),
                                       .p = t->x->p,
                                       .add = t->from > 0 || t->x->add,
                                       .out = t->x->out + (t->row + row) * stride +
                                              LIMBS * (t->col + col),
                                       .stride = stride };
    (void)thread;
    t->kernels->multiply(&piece);
}

/* Returns the strips of rows or columns [first, first+len) of a side: from the sorted side, or
 * where that is NULL sorted into `room`. NULL if a value is not below p. */
static const uint8_t *strips(const part *t, const side *of, const uint8_t *sorted, size_t first,
                             size_t len, sherd__team *team, uint8_t *room)
{
    sorting s = { t->kernels, of, first, len, t->from, t->k, t->x->p, room, false };
    if (sorted) return sorted + bytes_of(of, t->from) + first / LIMBS_TILE * t->strip;
    return sort(&s, team) ? room : NULL;
}

/* Multiplies some rows by some terms and computes all columns. */
static int multiply_part(part *t, sherd__team *team, uint8_t *left, uint8_t *right)
{
    const sherd__limbs *x = t->x;
    const side a = left_of(x), b = right_of(x);
    t->left = strips(t, &a, x->sorted_a, t->row, t->rows, team, left);
    for (t->col = 0; t->left && t->col < x->m; t->col += COLS) {
        if (stopped(x)) return SHERD_EINTERRUPTED;
        t->cols = sherd__least(COLS, x->m - t->col);
        t->right = strips(t, &b, x->sorted_b, t->col, t->cols, team, right);
        if (!t->right) return SHERD_EFRAME;
        sherd__team_run(team, sherd__pieces(t->rows, HIGH) * sherd__pieces(t->cols, WIDE),
                        multiply_piece, t);
    }
    return t->left ? SHERD_OK : SHERD_EFRAME;
}

int sherd__limbs_multiply(const sherd__limbs *x, sherd__team *team, uint8_t *left, uint8_t *right)
{
    for (size_t row = 0; row < x->n && x->k == 0 && !x->add; row++)
        memset(x->out + LIMBS * row * ld_of(x), 0, LIMBS * x->m);
    for (size_t row = 0; row < x->n; row += ROWS)
        for (size_t from = 0; from < x->k; from += DEPTH) {
            size_t k = sherd__least(DEPTH, x->k - from);
            part t = { .x = x,
                       .kernels = chosen(),
                       .row = row,
                       .rows = sherd__least(ROWS, x->n - row),
                       .from = from,
                       .k = k,
                       .strip = strip_of(k) };
            int err = stopped(x) ? SHERD_EINTERRUPTED : multiply_part(&t, team, left, right);
            if (err) return err;
        }
    return SHERD_OK;
}
