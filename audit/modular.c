/*
 * Residues are below 2^23, in 64-bit integers. The elimination is not optimised, since matrices
 * have only as many rows as a coalition has shares.
 */
#include "audit/modular.h"

#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "crypto/lagrange.h"

enum { SHORTEN_MAX = 1 << 16 };

static uint32_t times(uint64_t a, uint64_t b, uint32_t p)
{
    return (uint32_t)(a * b % p);
}

static uint32_t minus(uint32_t a, uint32_t b, uint32_t p)
{
    return a >= b ? a - b : a + (p - b);
}

uint32_t sherd__modular_inverse(uint32_t a, uint32_t p)
{
    uint32_t r = 1, x = a;
    for (uint32_t e = p - 2; e > 0; e /= 2, x = times(x, x, p))
        if (e % 2 == 1) r = times(r, x, p);
    return r;
}

int64_t sherd__modular_centre(uint64_t x, uint64_t p)
{
    return x > p / 2 ? (int64_t)x - (int64_t)p : (int64_t)x;
}

/* ---- the code -------------------------------------------------------------------------------- */

static uint32_t beta(const sherd__seen_code *c, uint32_t j)
{
    return c->beta ? c->beta[j] : j + 1;
}

static uint32_t alpha(const sherd__seen_code *c, uint32_t share)
{
    if (c->alpha) return c->alpha[share];
    return c->form == SHERD__SEEN_LAGRANGE ? c->blocks + c->masks + 1 + share : share;
}

int sherd__modular_check(const sherd__seen_code *c, sherd_diag *d)
{
    uint32_t len = c->blocks + c->masks;
    if (c->blocks < 1 || c->masks < 1 || c->blocks > SHERD__LCC_BLOCKS_MAX ||
        c->masks > SHERD__LCC_BLOCKS_MAX || len > SHERD__LCC_BLOCKS_MAX || c->shares < 1 ||
        c->shares > SHERD__LCC_SHARES_MAX || c->primes_len < 1 ||
        c->primes_len > SHERD__AUDIT_PRIMES)
        return sherd__fail(d, SHERD_EINVAL, NULL, "K %u, T %u, N %u and %u primes are not a code",
                           c->blocks, c->masks, c->shares, c->primes_len);
    if (c->one_time && len != 2)
        return sherd__fail(d, SHERD_EINVAL, NULL, "one-time masks with K %u, T %u", c->blocks,
                           c->masks);
    for (uint32_t i = 0; i < c->primes_len; i++) {
        uint32_t p = c->primes[i];
        bool ok = sherd__prime_ok(p);
        for (uint32_t j = 0; j < i; j++) ok = ok && c->primes[j] != p;
        if (!ok)
            return sherd__fail(d, SHERD_EINVAL, NULL, "%u is not a prime, or is given twice", p);
        if (c->form != SHERD__SEEN_LAGRANGE && (c->shares != len + c->masks || c->shares > p))
            return sherd__fail(d, SHERD_EINVAL, NULL,
                               "K %u, T %u, N %u modulo %u are not an inner-product code",
                               c->blocks, c->masks, c->shares, p);
        for (uint32_t a = 0; a < len && c->form == SHERD__SEEN_LAGRANGE; a++)
            for (uint32_t b = 0; b < a; b++)
                if (beta(c, a) % p == beta(c, b) % p)
                    return sherd__fail(d, SHERD_EINVAL, NULL,
                                       "beta %u and %u are one point modulo %u", b, a, p);
    }
    return SHERD_OK;
}

static uint32_t power(uint32_t x, uint32_t e, uint32_t p)
{
    uint32_t r = 1 % p;
    for (; e > 0; e--) r = times(r, x, p);
    return r;
}

/* Computes Q_j(x), the polynomial part of P(x) / x^(2T+j+1). The roots of P are the points. */
static uint32_t quotient(const sherd__seen_code *c, uint32_t p, uint32_t j, uint32_t x)
{
    uint32_t coefficient[2 * SHERD__LCC_BLOCKS_MAX + 1] = { 1 }, n = c->shares, sum = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t s = i + 2; s-- > 0;)
            coefficient[s] = minus(s > 0 ? coefficient[s - 1] : 0,
                                   times(coefficient[s], alpha(c, i) % p, p), p);
    for (uint32_t s = 2 * c->masks + j + 1; s <= n; s++)
        sum = (sum + times(coefficient[s], power(x, s - 2 * c->masks - j - 1, p), p)) % p;
    return sum;
}

/* The weights of the inner-product code (docs/SCHEMES.md). */
static void inner_weights(const sherd__seen_code *c, uint32_t p, uint32_t share, uint32_t *w)
{
    uint32_t x = alpha(c, share) % p, below = 1, scale = 1;
    bool right = c->form == SHERD__SEEN_INNER_RIGHT;
    for (uint32_t i = 0; i < c->shares && right; i++)
        if (i != share) below = times(below, minus(x, alpha(c, i) % p, p), p);
    if (right) scale = sherd__modular_inverse(below, p);
    for (uint32_t t = 0; t < c->masks; t++) w[c->blocks + t] = times(scale, power(x, t, p), p);
    for (uint32_t j = 0; j < c->blocks; j++) {
        uint32_t data = right ? times(power(x, c->masks, p), quotient(c, p, j, x), p)
                              : power(x, c->masks + j, p);
        w[j] = times(scale, data, p);
    }
}

void sherd__modular_weights(const sherd__seen_code *c, uint32_t prime_index, uint32_t share,
                            uint32_t *w)
{
    uint32_t p = c->primes[prime_index], len = c->blocks + c->masks, x = alpha(c, share) % p;
    if (c->one_time) {
        w[0] = w[1] = 1;
        return;
    }
    if (c->form != SHERD__SEEN_LAGRANGE) {
        inner_weights(c, p, share, w);
        return;
    }
    for (uint32_t j = 0; j < len; j++) {
        uint32_t above = 1, below = 1, at = beta(c, j) % p;
        for (uint32_t i = 0; i < len; i++) {
            if (i == j) continue;
            above = times(above, minus(x, beta(c, i) % p, p), p);
            below = times(below, minus(at, beta(c, i) % p, p), p);
        }
        w[j] = times(above, sherd__modular_inverse(below, p), p);
    }
}

/* ---- short multiples ------------------------------------------------------------------------- */

static uint32_t distance(uint32_t x, uint32_t p)
{
    return x < p - x ? x : p - x;
}

/* The first non-zero entry takes the values 1, 2, ... It cannot exceed the largest entry, so the
   search ends when it exceeds the best maximum. */
uint32_t sherd__modular_shorten(uint32_t *g, uint32_t len, uint32_t p)
{
    uint32_t lead = 0, best = UINT32_MAX, scale = 1;
    while (lead < len && g[lead] == 0) lead++;
    if (lead == len) return 1;
    uint32_t inverse = sherd__modular_inverse(g[lead], p);
    for (uint32_t v = 1; v < best && v <= p / 2 && v <= SHORTEN_MAX; v++) {
        uint32_t s = times(v, inverse, p), largest = v;
        for (uint32_t j = lead + 1; j < len && largest < best; j++) {
            uint32_t size = distance(times(g[j], s, p), p);
            if (size > largest) largest = size;
        }
        if (largest < best) {
            best = largest;
            scale = s;
        }
    }
    for (uint32_t j = 0; j < len; j++) g[j] = times(g[j], scale, p);
    return scale;
}

/* ---- elimination ----------------------------------------------------------------------------- */

/* rows x cols, row-major. Brings the first `lead` columns to reduced row echelon form and applies
   the same operations to the others. Returns the rank of the leading part. */
static uint32_t reduce(uint32_t *a, uint32_t rows, uint32_t cols, uint32_t lead, uint32_t p)
{
    uint32_t rank = 0;
    for (uint32_t c = 0; c < lead && rank < rows; c++) {
        uint32_t pivot = rank;
        while (pivot < rows && a[(size_t)pivot * cols + c] == 0) pivot++;
        if (pivot == rows) continue;
        uint32_t *top = a + (size_t)rank * cols, *from = a + (size_t)pivot * cols;
        for (uint32_t j = 0; j < cols && pivot != rank; j++) {
            uint32_t t = top[j];
            top[j] = from[j];
            from[j] = t;
        }
        uint32_t inverse = sherd__modular_inverse(top[c], p);
        for (uint32_t j = 0; j < cols; j++) top[j] = times(top[j], inverse, p);
        for (uint32_t r = 0; r < rows; r++) {
            uint32_t *row = a + (size_t)r * cols, f = row[c];
            if (r == rank || f == 0) continue;
            for (uint32_t j = 0; j < cols; j++) row[j] = minus(row[j], times(f, top[j], p), p);
        }
        rank++;
    }
    return rank;
}

/* Keeps the rows from `rank` on, and in them the columns from `drop` on. */
static uint32_t keep_rest(uint32_t *a, uint32_t rows, uint32_t cols, uint32_t rank, uint32_t drop)
{
    for (uint32_t r = rank; r < rows; r++)
        memmove(a + (size_t)(r - rank) * (cols - drop), a + (size_t)r * cols + drop,
                (cols - drop) * sizeof *a);
    return rows - rank;
}

int sherd__unmasked_find(sherd__unmasked *out, const sherd__seen_code *c, uint32_t prime_index,
                         const uint32_t *members, uint32_t members_len)
{
    uint32_t p = c->primes[prime_index], len = c->blocks + c->masks, s = members_len;
    uint32_t cols = c->masks + c->blocks + s, w[SHERD__LCC_BLOCKS_MAX];
    sherd__unmasked u = { .members = s, .blocks = c->blocks };
    size_t cells;
    if (!sherd__mul(s, cols, &cells)) return SHERD_ENOMEM;
    uint32_t *a = sherd__calloc(cells > 0 ? cells : 1, sizeof *a); /* masks | blocks | identity */
    if (!a) return SHERD_ENOMEM;
    for (uint32_t i = 0; i < s; i++) {
        uint32_t *row = a + (size_t)i * cols;
        sherd__modular_weights(c, prime_index, members[i], w);
        memcpy(row, w + c->blocks, c->masks * sizeof *w);
        memcpy(row + c->masks, w, c->blocks * sizeof *w);
        row[len + i] = 1;
    }
    /* The rows below the masks' echelon form contain no mask: the left null space. */
    uint32_t rows = keep_rest(a, s, cols, reduce(a, s, cols, c->masks, p), c->masks);
    /* A row without data is an identity among shares and reveals nothing. */
    u.rows = reduce(a, rows, c->blocks + s, c->blocks, p);
    u.coef = sherd__alloc(cells * sizeof *a);
    u.weight = sherd__alloc(cells * sizeof *a);
    if (!u.coef || !u.weight) {
        sherd__free(a);
        sherd__unmasked_fini(&u);
        return SHERD_ENOMEM;
    }
    for (uint32_t r = 0; r < u.rows; r++) {
        const uint32_t *row = a + (size_t)r * (c->blocks + s);
        memcpy(u.weight + (size_t)r * c->blocks, row, c->blocks * sizeof *row);
        memcpy(u.coef + (size_t)r * s, row + c->blocks, s * sizeof *row);
    }
    sherd__free(a);
    *out = u;
    return SHERD_OK;
}

void sherd__unmasked_fini(sherd__unmasked *u)
{
    sherd__free(u->coef);
    sherd__free(u->weight);
    memset(u, 0, sizeof *u);
}

uint32_t sherd__unmasked_block(const sherd__unmasked *u, uint32_t r)
{
    uint32_t found = UINT32_MAX;
    for (uint32_t j = 0; j < u->blocks; j++) {
        if (u->weight[(size_t)r * u->blocks + j] == 0) continue;
        if (found != UINT32_MAX) return UINT32_MAX;
        found = j;
    }
    return found;
}

void sherd__modular_combine(const uint32_t *coef, const uint32_t *const *x, uint32_t len,
                            uint32_t p, size_t n, uint32_t *out)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t sum = 0; /* at most 4096 shares: products below 2^46, sum below 2^58 */
        for (uint32_t m = 0; m < len; m++) sum += (uint64_t)coef[m] * x[m][i];
        out[i] = (uint32_t)(sum % p);
    }
}
