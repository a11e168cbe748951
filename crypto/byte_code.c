/*
 * Sums of up to 512 products of a byte and a weight stay below 2^24, so they are exact in floats,
 * which any compiler multiplies in vectors; so is the multiple of p that is subtracted from them.
 * The quotient is rounded to the nearest number, and its error moves the remainder by less than p.
 * The remainder, once p is added to a negative one, is the same for any such quotient. Numbers of
 * 32 bits are divided in doubles likewise.
 */
#include "crypto/byte_code.h"

#include <assert.h>
#include <string.h>

#include "core/wipe.h"
#include "crypto/byte_code_kernels.h"
#include "matrix/clones.h"
#include "matrix/exact.h"

enum {
    TERMS = SHERD__BYTE_TERMS,
    LINES = 64, /* terms that are kept as floats */
    CHECKS = SHERD__BYTE_CHECKS,
    CHUNK = 128, /* columns whose terms are kept as floats */
    PART = 256   /* numbers that are reduced or recombined at a time */
};
#define ROUND_F32 0x1.8p23f
#define ROUND_F64 0x1.8p52

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* ---- remainders ------------------------------------------------------------------------------ */

/* Remainders above this are decreased by p; 255: none is. */
static int32_t most_of(uint32_t p, bool is_signed)
{
    return is_signed ? (int32_t)(p - 1) / 2 : UINT8_MAX;
}

/* Brings a remainder in (-p, p) to the range of residues, without a condition, which compilers do
 * not vectorise here. */
static inline __attribute__((always_inline)) uint8_t residue(int32_t r, int32_t p, int32_t most)
{
    r += p & (r >> 31);
    return (uint8_t)(r - (p & ((most - r) >> 31)));
}

static inline __attribute__((always_inline)) int32_t remainder_f64(double x, double p,
                                                                   double inverse)
{
    return (int32_t)(x - (x * inverse + ROUND_F64 - ROUND_F64) * p);
}

SHERD__CLONES
static void reduce(const double *x, size_t n, uint32_t p, uint8_t *out)
{
    const double f = (double)p, inverse = 1.0 / f;
    for (size_t i = 0; i < n; i++)
        out[i] = residue(remainder_f64(x[i], f, inverse), (int32_t)p, UINT8_MAX);
}

static void reduce_any(const double *x, size_t n, uint32_t len, size_t stride, uint8_t *out)
{
    for (size_t at = 0; at < n; at += PART)
        for (uint32_t q = 0; q < len; q++)
            reduce(x + at, least(PART, n - at), sherd__byte_primes[q], out + q * stride + at);
}

SHERD__CLONES
static void settle(const int32_t *acc, size_t n, uint32_t p, int32_t most, uint8_t *out)
{
    const double f = (double)p, inverse = 1.0 / f;
    for (size_t i = 0; i < n; i++)
        out[i] = residue(remainder_f64((double)acc[i], f, inverse), (int32_t)p, most);
}

static void settle_any(const int32_t *acc, size_t n, uint32_t p, bool is_signed, uint8_t *out)
{
    settle(acc, n, p, most_of(p, is_signed), out);
}

/* Sums are below 2^24 in magnitude. */
SHERD__CLONES
static void settle_sums(const float *sum, size_t n, uint32_t p, int32_t most, uint8_t *out)
{
    const float f = (float)p, inverse = 1.0f / f;
    for (size_t i = 0; i < n; i++) {
        float r = sum[i] - (sum[i] * inverse + ROUND_F32 - ROUND_F32) * f;
        out[i] = residue((int32_t)r, (int32_t)p, most);
    }
}

/* ---- weighted sums --------------------------------------------------------------------------- */

SHERD__CLONES
static void to_floats(const uint8_t *in, size_t n, float *out)
{
    for (size_t i = 0; i < n; i++) out[i] = (float)in[i];
}

SHERD__CLONES_WHOLE
static void add_four(float in[4][CHUNK], const int8_t *w, size_t n, float *restrict sum)
{
    const float a = w[0], b = w[1], c = w[2], d = w[3];
    for (size_t i = 0; i < n; i++)
        sum[i] += (in[0][i] * a + in[1][i] * b) + (in[2][i] * c + in[3][i] * d);
}

/* Adds to sum[i] the weighted sum of `terms` <= LINES rows of n <= CHUNK floats, of a multiple of four. */
static void weigh(float in[LINES][CHUNK], const int8_t *w, uint32_t terms, size_t n, float *sum)
{
    int8_t four[LINES] = { 0 };
    memcpy(four, w, terms);
    for (uint32_t j = 0; j < terms; j += 4) add_four(in + j, four + j, n, sum);
}

/* Converts columns of rows, and sets rows up to a multiple of four to zero. */
static void take(const uint8_t *row, size_t n, float in[LINES][CHUNK], uint32_t j)
{
    if (row) to_floats(row, n, in[j]);
    else memset(in[j], 0, n * sizeof *in[j]);
}

static uint32_t fours(size_t terms)
{
    return (uint32_t)(terms + 3) / 4 * 4;
}

/* Converts columns [at, at+n) of `some` terms from number j on. */
static void take_terms(const sherd__byte_sums *s, uint32_t j, uint32_t some, size_t at, size_t n,
                       float in[LINES][CHUNK])
{
    for (uint32_t i = 0; i < fours(some); i++) take(i < some ? s->in[j + i] + at : NULL, n, in, i);
}

static void combine_any(const sherd__byte_sums *s)
{
    float in[LINES][CHUNK], sum[CHUNK];
    for (size_t at = 0; at < s->n; at += CHUNK) {
        const size_t n = least(CHUNK, s->n - at);
        if (s->terms <= LINES) take_terms(s, 0, s->terms, at, n, in);
        for (uint32_t i = 0; i < s->sums; i++) {
            if (!s->out[i]) continue;
            memset(sum, 0, sizeof sum);
            for (uint32_t j = 0; j < s->terms; j += LINES) {
                const uint32_t some = (uint32_t)least(LINES, s->terms - j);
                if (s->terms > LINES) take_terms(s, j, some, at, n, in);
                weigh(in, s->w + (size_t)i * s->terms + j, some, n, sum);
            }
            settle_sums(sum, n, s->p, most_of(s->p, s->is_signed), s->out[i] + at);
        }
    }
    sherd__wipe(in, fours(s->terms) * sizeof *in); /* masks */
    sherd__wipe(sum, sizeof sum);
}

/* ---- projections ----------------------------------------------------------------------------- */

SHERD__CLONES
static void add_whole(const float *sum, size_t n, int32_t *acc)
{
    for (size_t i = 0; i < n; i++) acc[i] += (int32_t)sum[i];
}

static void project_any(const sherd__byte_projection *s)
{
    float in[LINES][CHUNK], sum[CHUNK];
    for (size_t row = 0; row < s->rows; row += LINES)
        for (size_t at = 0; at < s->cols; at += CHUNK) {
            const size_t n = least(CHUNK, s->cols - at), rows = least(LINES, s->rows - row);
            for (uint32_t j = 0; j < fours(rows); j++)
                take(j < rows ? s->x + (row + j) * s->ld + at : NULL, n, in, j);
            for (size_t v = 0; v < CHECKS; v++) {
                memset(sum, 0, sizeof sum);
                weigh(in, s->r + v * s->r_ld + row, (uint32_t)rows, n, sum);
                add_whole(sum, n, s->acc + v * s->acc_ld + at);
            }
        }
    sherd__wipe(in, sizeof in);
    sherd__wipe(sum, sizeof sum);
}

/* ---- rejection ------------------------------------------------------------------------------- */

/* Rejected bytes are overwritten, so there is no branch for the processor to mispredict. */
static size_t keep_any(const uint8_t *in, size_t n, uint32_t p, uint8_t *out, size_t room)
{
    size_t have = 0;
    for (size_t i = 0; i < n && have < room; i++) {
        out[have] = in[i];
        have += in[i] < p;
    }
    return have;
}

/* ---- paths ----------------------------------------------------------------------------------- */

static const sherd__byte_kernels *kernels(void)
{
    static const sherd__byte_kernels any = { reduce_any, combine_any, project_any, settle_any,
                                             keep_any };
    const sherd__byte_kernels *wide = sherd__byte_kernels_wide();
    return wide && sherd__bytes_path_here() != SHERD__BYTES_ANY ? wide : &any;
}

void sherd__bytes_reduce(const double *x, size_t n, uint32_t len, size_t stride, uint8_t *out)
{
    assert(len <= SHERD__BYTE_PRIMES);
    kernels()->reduce(x, n, len, stride, out);
}

void sherd__bytes_combine(const int8_t *w, uint32_t sums, uint32_t terms, uint32_t p,
                          bool is_signed, const uint8_t *const *in, size_t n, uint8_t *const *out)
{
    assert(terms <= TERMS && p % 2 && p >= 3 && p <= UINT8_MAX);
    kernels()->combine(&(sherd__byte_sums){ w, sums, terms, p, is_signed, in, n, out });
}

void sherd__bytes_project(const int8_t *r, size_t r_ld, const uint8_t *x, size_t rows, size_t cols,
                          size_t ld, int32_t *acc, size_t acc_ld)
{
    kernels()->project(&(sherd__byte_projection){ r, r_ld, x, rows, cols, ld, acc, acc_ld });
}

void sherd__bytes_settle(const int32_t *acc, size_t n, uint32_t p, bool is_signed, uint8_t *out)
{
    assert(p % 2 && p >= 3 && p <= UINT8_MAX);
    kernels()->settle(acc, n, p, is_signed, out);
}

size_t sherd__bytes_keep(const uint8_t *in, size_t n, uint32_t p, uint8_t *out, size_t room)
{
    return kernels()->keep(in, n, p, out, room);
}

SHERD__CLONES
static bool below(const uint8_t *in, size_t n, uint8_t p)
{
    uint8_t beyond = 0;
    for (size_t i = 0; i < n; i++) beyond |= in[i] >= p;
    return !beyond;
}

bool sherd__bytes_below(const uint8_t *in, size_t n, uint32_t p)
{
    assert(p <= UINT8_MAX);
    return below(in, n, (uint8_t)p);
}

/* ---- the Chinese remainder theorem ----------------------------------------------------------- */

static uint64_t product_of(uint32_t len)
{
    uint64_t m = 1;
    for (uint32_t q = 0; q < len; q++) m *= sherd__byte_primes[q];
    return m;
}

void sherd__bytes_crt_init(sherd__bytes_crt *c, uint32_t len)
{
    assert(len >= 1 && len <= SHERD__BYTE_PRIMES);
    *c = (sherd__bytes_crt){ .len = len };
    for (uint32_t q = 0; q < len; q++) {
        const uint32_t p = sherd__byte_primes[q];
        const uint32_t rest = (uint32_t)(product_of(len) / p % p);
        for (c->fold[q] = 1; c->fold[q] * rest % p != 1;) c->fold[q]++;
    }
}

/*
 * x = sum_q in[q]*M/p_q - t*M, where t is the sum over M rounded to the nearest number, 0 <= t <= 8.
 * M is odd, so x/M differs from a half by 1/(2M) at least, and by 2^-40 at least since
 * sherd__bytes_primes_needed leaves M >> 40 unused for M of more than 40 bits. The quotient has five
 * roundings of numbers below 8, an error below 2^-47. So t is right.
 *
 * M/p_q, M and the sums are represented by two doubles, low + 2^32*high, low below 2^32 (and high
 * below 2^31). Sums of 8 products by bytes are below 2^43 in each half, and exact. Differences are
 * exact as well, and 2^32 times the upper one is; so the last addition is the only rounding, for any
 * number of primes. Up to six primes do not need it: M is below 2^48 and the sums below 2^51.
 */
typedef struct halves {
    double low, high;
} halves;

static halves halves_of(uint64_t m, uint32_t len)
{
    if (len <= 6) return (halves){ (double)m, 0 };
    return (halves){ (double)(uint32_t)m, (double)(m >> 32) };
}

/* Terms of two primes: a*M/p + b*M/r = (a*r + b*p) * M/(p*r). p is 0 if there is no second one. */
typedef struct two_terms {
    const uint8_t *a, *b;
    int32_t r, p;
    halves m;
} two_terms;

SHERD__CLONES_WHOLE
static void add_low(const two_terms *t, size_t n, double *restrict low)
{
    const uint8_t *a = t->a, *b = t->b;
    const int32_t r = t->r, p = t->p;
    const double m = t->m.low;
    for (size_t i = 0; i < n; i++) low[i] += (double)(a[i] * r + b[i] * p) * m;
}

SHERD__CLONES_WHOLE
static void add_both(const two_terms *t, size_t n, double *restrict low, double *restrict high)
{
    const uint8_t *a = t->a, *b = t->b;
    const int32_t r = t->r, p = t->p;
    const halves m = t->m;
    for (size_t i = 0; i < n; i++) {
        double x = (double)(a[i] * r + b[i] * p);
        low[i] += x * m.low;
        high[i] += x * m.high;
    }
}

SHERD__CLONES
static void balance_low(const double *sum, size_t n, double m, double *out)
{
    const double inverse = 1.0 / m;
    for (size_t i = 0; i < n; i++) out[i] = sum[i] - (sum[i] * inverse + ROUND_F64 - ROUND_F64) * m;
}

SHERD__CLONES
static void balance_both(const double *low, const double *high, size_t n, halves m, double *out)
{
    const double inverse = 1.0 / (m.high + m.low * 0x1p-32);
    for (size_t i = 0; i < n; i++) {
        double t = (high[i] + low[i] * 0x1p-32) * inverse + ROUND_F64 - ROUND_F64;
        out[i] = (high[i] - t * m.high) * 0x1p32 + (low[i] - t * m.low);
    }
}

uint32_t sherd__bytes_primes_needed(size_t k, uint64_t a, uint64_t b)
{
    sherd__u128 need;
    if (__builtin_mul_overflow((sherd__u128)k * a, (sherd__u128)b, &need)) return 0;
    for (uint32_t len = 1; len <= SHERD__BYTE_PRIMES; len++) {
        uint64_t m = product_of(len);
        if (need <= (m - 1) / 2 - (m >> 40)) return len;
    }
    return 0;
}

/* Pairs the terms of the primes; returns the number of pairs. */
static size_t pair_terms(const sherd__bytes_crt *c, const uint8_t *const *in, uint64_t all,
                         two_terms out[SHERD__BYTE_PRIMES / 2])
{
    const uint32_t *p = sherd__byte_primes;
    const uint32_t len = c->len, pairs = len / 2;
    for (uint32_t i = 0; i < pairs; i++, in += 2, p += 2)
        out[i] = (two_terms){ in[0], in[1], (int32_t)p[1], (int32_t)p[0],
                              halves_of(all / (p[0] * p[1]), len) };
    if (len % 2) out[pairs] = (two_terms){ in[0], in[0], 1, 0, halves_of(all / p[0], len) };
    return pairs + len % 2;
}

void sherd__bytes_crt_f64(const sherd__bytes_crt *c, const uint8_t *const *in, size_t n, int scale,
                          double *out)
{
    const uint64_t all = product_of(c->len);
    two_terms pair[SHERD__BYTE_PRIMES / 2];
    const size_t pairs = pair_terms(c, in, all, pair);
    const bool two = c->len > 6;
    double low[PART], high[PART];
    for (size_t at = 0; at < n; at += PART) {
        const size_t some = least(PART, n - at);
        memset(low, 0, some * sizeof *low);
        if (two) memset(high, 0, some * sizeof *high);
        for (two_terms *t = pair; t < pair + pairs; t++) {
            if (two) add_both(t, some, low, high);
            else add_low(t, some, low);
            t->a += some;
            t->b += some;
        }
        if (two) balance_both(low, high, some, halves_of(all, c->len), out + at);
        else balance_low(low, some, (double)all, out + at);
        if (scale) sherd__exact_unscale(out + at, some, scale);
    }
}
