/*
 * Freivalds' check modulo p: rT*U, V*s and rT*Y*s for two secret pairs r, s at once, in one pass
 * over the data. Everything is a double holding an integer. A sum takes as many products of
 * canonical residues between reductions as the products that are checked do: sherd__prime_block(p)
 * of them, added to a canonical value, stay below 2^53. CHUNK is a number that every p below 2^23
 * allows. Sums are therefore exact in any order and may be spread over lanes.
 */
#include <string.h>

#include "core/wipe.h"
#include "crypto/freivalds_internal.h"
#include "crypto/keystream.h"
#include "matrix/clones.h"
#include "matrix/residue.h"

enum { CHUNK = 512, TOGETHER = 2048 };

typedef double f64x8 __attribute__((vector_size(64)));

/* Stores the residues among n words, balanced, at most `room` of them; returns their number. */
static size_t keep(const uint32_t *word, size_t n, uint32_t p, double *out, size_t room)
{
    uint32_t mask = UINT32_MAX >> __builtin_clz(p), h = (p - 1) / 2;
    size_t kept = 0;
    for (size_t i = 0; i < n && kept < room; i++) {
        uint32_t v = word[i] & mask;
        out[kept] = (double)(int32_t)(v > h ? v - p : v);
        kept += v < p; /* no branch, since it would be unpredictable */
    }
    return kept;
}

/* Draws many residues from a stream under a fresh key, since the entropy source has a tenth of the
 * stream's speed. Residues that could not be read (no memory for a cipher) are left to the caller,
 * which draws them from the entropy source. */
static size_t draw_many(const sherd__entropy *e, uint32_t p, size_t n, double *out)
{
    enum { WORDS = 1024 };
    uint32_t word[WORDS];
    uint8_t key[32];
    sherd__keystream ks;
    size_t i = 0;
    e->fill(e->ctx, key, sizeof key);
    int err = sherd__keystream_init(&ks, key);
    for (uint64_t block = 0; i < n && err == 0; block += sizeof word / SHERD__KEYSTREAM_BLOCK) {
        err = sherd__keystream_read(&ks, 0, block, word, sizeof word);
        if (err == 0) i += keep(word, WORDS, p, out + i, n - i);
    }
    sherd__keystream_fini(&ks);
    sherd__wipe(key, sizeof key);
    sherd__wipe(word, sizeof word);
    return i;
}

void sherd__fvp_draw(const sherd__entropy *e, uint32_t p, size_t n, double *out)
{
    enum { WORDS = 64 };
    uint32_t word[WORDS];
    size_t i = n > WORDS ? draw_many(e, p, n, out) : 0;
    while (i < n) {
        size_t want = n - i < WORDS ? n - i : WORDS;
        e->fill(e->ctx, word, want * sizeof *word);
        i += keep(word, want, p, out + i, n - i);
    }
    sherd__wipe(word, sizeof word);
}

/* ---- dot products ---------------------------------------------------------------------------- */

static inline double fold(const f64x8 *lanes)
{
    f64x8 x = *lanes;
    return ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]));
}

/* Computes out = x.s, x.t, y.s, y.t over n <= CHUNK elements: below 2^53. */
SHERD__CLONES_WHOLE
static void dots(const double *x, const double *y, const double *s, const double *t, size_t n,
                 double out[4])
{
    f64x8 xs = { 0 }, xt = { 0 }, ys = { 0 }, yt = { 0 }, a, b, c, d;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        memcpy(&a, x + i, sizeof a);
        memcpy(&b, y + i, sizeof b);
        memcpy(&c, s + i, sizeof c);
        memcpy(&d, t + i, sizeof d);
        xs += a * c;
        xt += a * d;
        ys += b * c;
        yt += b * d;
    }
    out[0] = fold(&xs);
    out[1] = fold(&xt);
    out[2] = fold(&ys);
    out[3] = fold(&yt);
    for (; i < n; i++) {
        out[0] += x[i] * s[i];
        out[1] += x[i] * t[i];
        out[2] += y[i] * s[i];
        out[3] += y[i] * t[i];
    }
}

/* Multiplies two rows (the same one twice if there is only one) by both vectors:
 * sum[trial][row]. */
static void two_rows(const double *x, const double *y, size_t n, const double *const s[2],
                     uint32_t p, double sum[2][2])
{
    double some[4], all[4] = { 0 };
    for (size_t j = 0; j < n; j += CHUNK) {
        dots(x + j, y + j, s[0] + j, s[1] + j, n - j < CHUNK ? n - j : CHUNK, some);
        for (int i = 0; i < 4; i++) all[i] += some[i];
        sherd__residue_from_f64(all, 4, p, all);
    }
    sum[0][0] = all[0];
    sum[1][0] = all[1];
    sum[0][1] = all[2];
    sum[1][1] = all[3];
}

uint32_t sherd__fvp_dot(const double *a, const double *b, size_t n, uint32_t p)
{
    const double *const s[2] = { b, b };
    double sum[2][2];
    two_rows(a, a, n, s, p, sum);
    return (uint32_t)(sum[0][0] < 0.0 ? sum[0][0] + (double)p : sum[0][0]);
}

/* ---- projections ----------------------------------------------------------------------------- */

void sherd__fvp_right(const double *x, size_t rows, size_t cols, size_t ld,
                      const double *const s[2], uint32_t p, double *const out[2])
{
    for (size_t i = 0; i < rows; i += 2) {
        size_t some = rows - i < 2 ? 1 : 2;
        double sum[2][2];
        two_rows(x + i * ld, x + (i + some - 1) * ld, cols, s, p, sum);
        for (int t = 0; t < 2; t++) memcpy(out[t] + i, sum[t], some * sizeof **sum);
    }
}

SHERD__CLONES_WHOLE
static void add_row(const double *x, size_t n, double r, double q, double *restrict acc,
                    double *restrict bcc)
{
    for (size_t j = 0; j < n; j++) {
        acc[j] += r * x[j];
        bcc[j] += q * x[j];
    }
}

/* Adds four rows: the sums in memory are read and written once for all of them. */
SHERD__CLONES_WHOLE
static void add_rows(const double *x, size_t ld, size_t n, const double *r, const double *q,
                     double *restrict acc, double *restrict bcc)
{
    const double *y = x + ld, *z = y + ld, *w = z + ld;
    double r0 = r[0], r1 = r[1], r2 = r[2], r3 = r[3], q0 = q[0], q1 = q[1], q2 = q[2], q3 = q[3];
    for (size_t j = 0; j < n; j++) {
        acc[j] += (r0 * x[j] + r1 * y[j]) + (r2 * z[j] + r3 * w[j]);
        bcc[j] += (q0 * x[j] + q1 * y[j]) + (q2 * z[j] + q3 * w[j]);
    }
}

/* Like add_rows for two primes, so that each row is read from memory once. */
SHERD__CLONES_WHOLE
static void add_rows_twice(const double *x, size_t ld, size_t n, const double *const r[4],
                           double *restrict acc, double *restrict bcc, double *restrict ccc,
                           double *restrict dcc)
{
    const double *y = x + ld, *z = y + ld, *w = z + ld;
    double a0 = r[0][0], a1 = r[0][1], a2 = r[0][2], a3 = r[0][3];
    double b0 = r[1][0], b1 = r[1][1], b2 = r[1][2], b3 = r[1][3];
    double c0 = r[2][0], c1 = r[2][1], c2 = r[2][2], c3 = r[2][3];
    double d0 = r[3][0], d1 = r[3][1], d2 = r[3][2], d3 = r[3][3];
    for (size_t j = 0; j < n; j++) {
        acc[j] += (a0 * x[j] + a1 * y[j]) + (a2 * z[j] + a3 * w[j]);
        bcc[j] += (b0 * x[j] + b1 * y[j]) + (b2 * z[j] + b3 * w[j]);
        ccc[j] += (c0 * x[j] + c1 * y[j]) + (c2 * z[j] + c3 * w[j]);
        dcc[j] += (d0 * x[j] + d1 * y[j]) + (d2 * z[j] + d3 * w[j]);
    }
}

/* Adds four rows of x; the first belongs to element i of the vectors r. */
static void add_four(const double *x, size_t ld, size_t n, const sherd__fvp_sum *sum, size_t len,
                     size_t i)
{
    for (; len >= 2; len -= 2, sum += 2) {
        const double *const r[4] = { sum[0].r[0] + i, sum[0].r[1] + i, sum[1].r[0] + i,
                                     sum[1].r[1] + i };
        add_rows_twice(x, ld, n, r, sum[0].acc[0], sum[0].acc[1], sum[1].acc[0], sum[1].acc[1]);
    }
    if (len > 0) add_rows(x, ld, n, sum->r[0] + i, sum->r[1] + i, sum->acc[0], sum->acc[1]);
}

void sherd__fvp_left_many(const double *x, size_t rows, size_t cols, size_t ld,
                          const sherd__fvp_sum *sum, size_t len, size_t *since)
{
    for (size_t i = 0, some; i < rows; i += some, *since += some) {
        some = rows - i < 4 ? 1 : 4;
        for (size_t q = 0; q<len && * since + some> CHUNK; q++)
            for (int t = 0; t < 2; t++)
                sherd__residue_from_f64(sum[q].acc[t], cols, sum[q].p, sum[q].acc[t]);
        if (*since + some > CHUNK) *since = 0;
        if (some == 4) add_four(x + i * ld, ld, cols, sum, len, i);
        for (size_t q = 0; q < len && some == 1; q++)
            add_row(x + i * ld, cols, sum[q].r[0][i], sum[q].r[1][i], sum[q].acc[0], sum[q].acc[1]);
    }
}

void sherd__fvp_left(const double *x, size_t rows, size_t cols, size_t ld, const double *const r[2],
                     uint32_t p, double *const acc[2], size_t *since)
{
    const sherd__fvp_sum sum = { p, { r[0], r[1] }, { acc[0], acc[1] } };
    sherd__fvp_left_many(x, rows, cols, ld, &sum, 1, since);
}

/* ---- answers --------------------------------------------------------------------------------- */

/* Computes y[t][i] = row i of the answer times s[t], for rows <= CHUNK. Several short rows are
 * unpacked at once, long ones in pairs and in chunks. */
static int short_rows(const uint8_t *packed, size_t rows, size_t cols, const double *const s[2],
                      uint32_t p, double y[2][CHUNK])
{
    double x[TOGETHER];
    size_t step = TOGETHER / cols;
    for (size_t i = 0; i < rows; i += step) {
        size_t some = rows - i < step ? rows - i : step;
        double *const out[2] = { y[0] + i, y[1] + i };
        int err = sherd__residue_unpack(packed + i * cols * SHERD__RESIDUE_BYTES, some * cols, p, x,
                                        NULL);
        if (err != 0) return err;
        sherd__fvp_right(x, some, cols, cols, s, p, out);
    }
    return SHERD_OK;
}

static int long_rows(const uint8_t *packed, size_t rows, size_t cols, const double *const s[2],
                     uint32_t p, double y[2][CHUNK])
{
    double x[2][CHUNK], some[4];
    for (size_t i = 0; i < rows; i += 2) {
        size_t second = i + 1 < rows ? i + 1 : i;
        double all[4] = { 0 };
        for (size_t j = 0; j < cols; j += CHUNK) {
            size_t n = cols - j < CHUNK ? cols - j : CHUNK;
            int err = sherd__residue_unpack(packed + (i * cols + j) * SHERD__RESIDUE_BYTES, n, p,
                                            x[0], NULL);
            if (err == 0)
                err = sherd__residue_unpack(packed + (second * cols + j) * SHERD__RESIDUE_BYTES, n,
                                            p, x[1], NULL);
            if (err != 0) return err;
            dots(x[0], x[1], s[0] + j, s[1] + j, n, some);
            for (int k = 0; k < 4; k++) all[k] += some[k];
            sherd__residue_from_f64(all, 4, p, all);
        }
        for (int t = 0; t < 2; t++) {
            y[t][second] = all[2 + t];
            y[t][i] = all[t];
        }
    }
    return SHERD_OK;
}

int sherd__fvp_answer(const uint8_t *packed, size_t rows, size_t cols, const double *const r[2],
                      const double *const s[2], uint32_t p, uint32_t out[2])
{
    double y[2][CHUNK];
    uint64_t sum[2] = { 0, 0 };
    uint32_t most, wide[2];
    if (sherd__fvp_answer_wide(packed, rows, cols, r, s, p, &most, wide)) {
        if (most >= p) return SHERD_EFRAME;
        memcpy(out, wide, sizeof wide);
        return SHERD_OK;
    }
    for (size_t i = 0; i < rows && cols > 0; i += CHUNK) {
        size_t some = rows - i < CHUNK ? rows - i : CHUNK;
        const uint8_t *at = packed + i * cols * SHERD__RESIDUE_BYTES;
        int err = cols <= CHUNK ? short_rows(at, some, cols, s, p, y)
                                : long_rows(at, some, cols, s, p, y);
        if (err != 0) return err;
        for (int t = 0; t < 2; t++) sum[t] += sherd__fvp_dot(r[t] + i, y[t], some, p);
    }
    for (int t = 0; t < 2; t++) out[t] = (uint32_t)(sum[t] % p);
    return SHERD_OK;
}
