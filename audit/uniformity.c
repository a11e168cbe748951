/*
 * What single domains could detect without solving anything: residues that are not uniform;
 * differences that are small, repeated or uneven because a mask was used twice; and such sums,
 * because a mask was negated. If masks cancel, a known combination of data is left. It is first
 * scaled so that its weights are as small as possible. If the scaled weights are the same integers
 * modulo two primes, both are used together, since 45 bits distinguish small numbers from uniform
 * ones where 22 do not.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "audit/modular.h"
#include "audit/stats_internal.h"
#include "audit/uniform.h"
#include "core/alloc.h"
#include "core/bytes.h"
#include "crypto/lagrange.h"

enum { PAIRS = 200, SHARE_PAIRS = 1600 };

typedef struct looking {
    sherd__findings *l;
    const sherd__audit_options *opt;
    size_t room; /* capacity of the buffers in numbers */
    uint32_t *first, *second;
    uint64_t *x, *guess;
    const sherd__seen_code *code; /* the code of `shortened` */
    struct shortened *shortened;  /* [(share * primes_len + prime) * 2 + whether masks are
                                     included] */
} looking;

/* Weights scaled to be small, and the scale (0: not computed yet). */
typedef struct shortened {
    uint32_t scale, weight[SHERD__LCC_BLOCKS_MAX];
} shortened;

static int look_open(looking *g, size_t n)
{
    g->room = n;
    g->first = sherd__alloc(n * sizeof *g->first);
    g->second = sherd__alloc(n * sizeof *g->second);
    g->x = sherd__alloc(n * sizeof *g->x);
    g->guess = sherd__alloc(n * sizeof *g->guess);
    return g->first && g->second && g->x && g->guess ? SHERD_OK : SHERD_ENOMEM;
}

static void look_close(looking *g)
{
    sherd__free(g->first);
    sherd__free(g->second);
    sherd__free(g->x);
    sherd__free(g->guess);
    sherd__free(g->shortened);
}

static uint32_t subtract(uint32_t a, uint32_t b, uint32_t p)
{
    return a >= b ? a - b : a + (p - b);
}

static sherd_audit_finding about(const looking *g, const char *test, const sherd__seen *s,
                                 uint32_t share)
{
    sherd_audit_finding f = sherd__finding_of(test, "", false);
    uint32_t domain = sherd__seen_domain(s, share);
    sherd__audit_who(f.who, g->opt, &domain, 1);
    return f;
}

/* Prepares the short multiples of a code. The search for them costs more than the tests, so it is
   made once for each share and prime. */
static int know_code(looking *g, const sherd__seen_code *c)
{
    if (g->code && sherd__code_same(g->code, c)) return SHERD_OK;
    sherd__free(g->shortened);
    g->shortened = sherd__calloc((size_t)c->shares * c->primes_len * 2, sizeof *g->shortened);
    g->code = g->shortened ? c : NULL;
    return g->shortened ? SHERD_OK : SHERD_ENOMEM;
}

/* Returns the scale for a combination in which blocks (and masks, if all) have the weights of
   `share`. */
static const shortened *shorten(const looking *g, uint32_t prime, uint32_t share, bool all)
{
    const sherd__seen_code *c = g->code;
    shortened *s = &g->shortened[((size_t)share * c->primes_len + prime) * 2 + all];
    if (s->scale != 0) return s;
    sherd__modular_weights(c, prime, share, s->weight);
    s->scale = sherd__modular_shorten(s->weight, c->blocks + (all ? c->masks : 0),
                                      c->primes[prime]);
    return s;
}

/* ---- one share ------------------------------------------------------------------------------- */

static int residues(looking *g, const sherd__seen *s, uint32_t share, uint32_t prime)
{
    const uint32_t *x = sherd__seen_residues(s, share, prime);
    uint32_t p = s->code->primes[prime];
    size_t n = sherd__audit_sample(g->opt, s);
    sherd_audit_finding f = about(g, "uniformity", s, share);
    snprintf(f.subject, sizeof f.subject, "%.30s, prime %u", s->name, p);
    sherd__scaled(x, n, 1, p, g->x);
    int err = sherd__uniform_look(g->l, &f, g->x, n, p, SHERD__LOOK_ALL & ~SHERD__LOOK_SMALL);
    if (err != 0) return err;
    sherd__scaled(x, n, shorten(g, prime, share, false)->scale, p, g->x);
    return sherd__uniform_look(g->l, &f, g->x, n, p, SHERD__LOOK_SMALL);
}

/* Tests each row minus the next, which cancels masks that do not depend on the row. */
static int rows(looking *g, const sherd__seen *s, uint32_t share, uint32_t prime)
{
    const uint32_t *x = sherd__seen_residues(s, share, prime);
    uint32_t p = s->code->primes[prime];
    size_t n = sherd__audit_sample(g->opt, s);
    if (s->rows < 2) return SHERD_OK;
    if (n > (s->rows - 1) * s->cols) n = (s->rows - 1) * s->cols;
    for (size_t i = 0; i < n; i++) g->first[i] = subtract(x[i], x[i + s->cols], p);
    sherd_audit_finding f = about(g, "differences", s, share);
    snprintf(f.subject, sizeof f.subject, "rows of %.20s, prime %u", s->name, p);
    sherd__scaled(g->first, n, shorten(g, prime, share, false)->scale, p, g->x);
    return sherd__uniform_look(g->l, &f, g->x, n, p,
                               SHERD__LOOK_HIGH | SHERD__LOOK_REPEATS | SHERD__LOOK_SMALL);
}

/* Tests for one mask reduced modulo two primes: residues nearly agree, and represent a small
   number. */
static int primes(looking *g, const sherd__seen *s, uint32_t share, uint32_t prime)
{
    const sherd__seen_code *c = s->code;
    const uint32_t *x = sherd__seen_residues(s, share, 0),
                   *y = sherd__seen_residues(s, share, prime);
    uint32_t p = c->primes[0], q = c->primes[prime];
    size_t n = sherd__audit_sample(g->opt, s);
    sherd_audit_finding f = about(g, "primes", s, share);
    snprintf(f.subject, sizeof f.subject, "%.20s, prime %u less %u", s->name, p, q);
    for (size_t i = 0; i < n; i++) g->x[i] = subtract(x[i], y[i] % p, p);
    int err = sherd__uniform_look(g->l, &f, g->x, n, p, SHERD__LOOK_ALL & ~SHERD__LOOK_PAIRS);
    const shortened *v = shorten(g, 0, share, true), *w = shorten(g, prime, share, true);
    if (err != 0 || !sherd__weights_agree(v->weight, p, w->weight, q, c->blocks + c->masks))
        return err;
    snprintf(f.subject, sizeof f.subject, "%.20s, prime %u with %u", s->name, p, q);
    sherd__joined(x, v->scale, p, y, w->scale, q, n, g->x);
    return sherd__uniform_look(g->l, &f, g->x, n, (uint64_t)p * q,
                               SHERD__LOOK_HIGH | SHERD__LOOK_SMALL);
}

static int single(looking *g, const sherd__seen *s)
{
    int err = know_code(g, s->code);
    for (uint32_t i = 0; i < s->code->shares; i++) {
        if (!sherd__seen_has(s, i)) continue;
        for (uint32_t j = 0; j < s->code->primes_len && err == 0; j++) {
            err = residues(g, s, i, j);
            if (err == 0) err = rows(g, s, i, j);
            if (err == 0 && j > 0) err = primes(g, s, i, j);
        }
    }
    return err;
}

/* ---- two encodings of one domain ------------------------------------------------------------- */

/* first * x - second * y, modulo one prime. It contains no mask if both had the same one. */
typedef struct mixture {
    uint32_t first, second;
    uint32_t weight[2 * SHERD__LCC_BLOCKS_MAX]; /* of the blocks of both encodings */
} mixture;

/* With one code masks cancel in the plain difference; with two codes, if there is a single mask. */
static bool comparable(const sherd__seen_code *a, const sherd__seen_code *b)
{
    if (a->primes_len != b->primes_len) return false;
    if (memcmp(a->primes, b->primes, a->primes_len * sizeof *a->primes) != 0) return false;
    return sherd__code_same(a, b) || (a->masks == 1 && b->masks == 1);
}

static mixture mix_of_one_code(const looking *g, uint32_t share, uint32_t prime)
{
    const shortened *s = shorten(g, prime, share, false);
    mixture m = { .first = s->scale, .second = s->scale };
    uint32_t k = g->code->blocks, p = g->code->primes[prime];
    for (uint32_t j = 0; j < k; j++) {
        m.weight[j] = s->weight[j];
        m.weight[k + j] = subtract(0, s->weight[j], p);
    }
    return m;
}

static mixture mix_of_two_codes(const sherd__seen_code *a, uint32_t i, const sherd__seen_code *b,
                                uint32_t j, uint32_t prime)
{
    uint32_t p = a->primes[prime], v[SHERD__LCC_BLOCKS_MAX], w[SHERD__LCC_BLOCKS_MAX];
    sherd__modular_weights(a, prime, i, v);
    sherd__modular_weights(b, prime, j, w);
    mixture m = { .first = w[b->blocks], .second = v[a->blocks] };
    for (uint32_t k = 0; k < a->blocks; k++) m.weight[k] = (uint32_t)((uint64_t)m.first * v[k] % p);
    for (uint32_t k = 0; k < b->blocks; k++)
        m.weight[a->blocks + k] = subtract(0, (uint32_t)((uint64_t)m.second * w[k] % p), p);
    uint64_t scale = sherd__modular_shorten(m.weight, a->blocks + b->blocks, p);
    m.first = (uint32_t)(m.first * scale % p);
    m.second = (uint32_t)(m.second * scale % p);
    return m;
}

/* Share i of one encoding and share j of another. */
typedef struct two_shares {
    const sherd__seen *a;
    uint32_t i;
    const sherd__seen *b;
    uint32_t j;
} two_shares;

/* Mixes the entries that both have, position by position; rows may have different lengths. */
static size_t mix(const mixture *m, const two_shares *of, uint32_t prime, size_t room,
                  uint32_t *out)
{
    const sherd__seen *a = of->a, *b = of->b;
    const uint32_t i = of->i, j = of->j;
    const uint32_t *x = sherd__seen_residues(a, i, prime), *y = sherd__seen_residues(b, j, prime);
    size_t rows = a->rows < b->rows ? a->rows : b->rows, n = 0;
    size_t cols = a->cols < b->cols ? a->cols : b->cols;
    uint64_t p = a->code->primes[prime], minus = p - m->second;
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < cols && n < room; c++)
            out[n++] = (uint32_t)((m->first * (uint64_t)x[r * a->cols + c] +
                                   minus * y[r * b->cols + c]) %
                                  p);
    return n;
}

/* Tests whether the mixture is that of the operands, for an attacker who guessed both. */
static int confirm(looking *g, const sherd_audit_finding *f, const mixture *m, const two_shares *of,
                   uint32_t p, size_t n)
{
    const sherd__seen *a = of->a, *b = of->b;
    uint32_t k = a->code->blocks;
    if (!a->blocks || !b->blocks || a->rows != b->rows || a->cols != b->cols) return SHERD_OK;
    sherd__predicted(b->blocks, m->weight + k, b->code->blocks, p, n, g->guess);
    for (size_t e = 0; e < n; e++) g->second[e] = (uint32_t)g->guess[e];
    sherd__predicted(a->blocks, m->weight, k, p, n, g->guess);
    for (size_t e = 0; e < n; e++) g->guess[e] = (g->guess[e] + g->second[e]) % p;
    return sherd__uniform_guess(g->l, f, g->x, g->guess, n, p);
}

/* Changes a mixture to a sum, in which masks cancel if one is the other's negative. */
static void negate(mixture *m, uint32_t from, uint32_t blocks, uint32_t p)
{
    m->second = subtract(0, m->second, p);
    for (uint32_t k = from; k < from + blocks; k++) m->weight[k] = subtract(0, m->weight[k], p);
}

/* Tests the difference of two shares or (plus) their sum. */
static int pair_shares(looking *g, const sherd__seen *a, uint32_t i, const sherd__seen *b,
                       uint32_t j, bool plus)
{
    const char *of = plus ? "plus" : "less";
    const sherd__seen_code *c = a->code;
    bool one = sherd__code_same(c, b->code);
    sherd_audit_finding f = about(g, "differences", a, i);
    const two_shares both = { a, i, b, j };
    mixture m[2];
    size_t n = 0;
    int err = SHERD_OK;
    for (uint32_t q = 0; q < c->primes_len && err == 0; q++) {
        mixture *now = &m[q > 0];
        *now = one ? mix_of_one_code(g, i, q) : mix_of_two_codes(c, i, b->code, j, q);
        if (plus) negate(now, c->blocks, b->code->blocks, c->primes[q]);
        n = mix(now, &both, q, g->room, g->first);
        sherd__scaled(g->first, n, 1, c->primes[q], g->x);
        snprintf(f.subject, sizeof f.subject, "%.16s %s %.16s, prime %u", a->name, of, b->name,
                 c->primes[q]);
        err = sherd__uniform_look(g->l, &f, g->x, n, c->primes[q],
                                  SHERD__LOOK_ALL & ~SHERD__LOOK_PAIRS);
        if (err == 0) err = confirm(g, &f, now, &both, c->primes[q], n);
        if (q != 1 || err != 0 ||
            !sherd__weights_agree(m[0].weight, c->primes[0], m[1].weight, c->primes[1],
                                  c->blocks + b->code->blocks))
            continue;
        (void)mix(&m[0], &both, 0, g->room, g->second);
        sherd__joined(g->second, 1, c->primes[0], g->first, 1, c->primes[1], n, g->x);
        snprintf(f.subject, sizeof f.subject, "%.16s %s %.16s, two primes", a->name, of, b->name);
        err = sherd__uniform_look(g->l, &f, g->x, n, (uint64_t)c->primes[0] * c->primes[1],
                                  SHERD__LOOK_REPEATS | SHERD__LOOK_SMALL);
    }
    return err;
}

static int pair(looking *g, const sherd__seen *a, const sherd__seen *b)
{
    int err = SHERD_OK;
    if (!comparable(a->code, b->code)) return SHERD_OK;
    bool one = sherd__code_same(a->code, b->code);
    err = know_code(g, a->code);
    for (uint32_t i = 0; i < a->code->shares && err == 0; i++) {
        if (!sherd__seen_has(a, i)) continue;
        for (uint32_t j = 0; j < b->code->shares && err == 0; j++) {
            bool both = one ? i == j : sherd__seen_domain(a, i) == sherd__seen_domain(b, j);
            if (!both || !sherd__seen_has(b, j)) continue;
            err = pair_shares(g, a, i, b, j, false);
            if (err == 0) err = pair_shares(g, a, i, b, j, true);
        }
    }
    return err;
}

/* Tests all pairs if they are few; else each with the next, and random ones. */
static int pairs(looking *g, const sherd__seen *seen, size_t len)
{
    size_t most = SHARE_PAIRS / seen[0].code->shares;
    int err = SHERD_OK;
    if (most > PAIRS) most = PAIRS;
    if (most == 0) most = 1;
    if (len < 2) return SHERD_OK;
    if (len - 1 <= 2 * most / len) {
        for (size_t i = 0; i < len; i++)
            for (size_t j = i + 1; j < len && err == 0; j++) err = pair(g, &seen[i], &seen[j]);
        return err;
    }
    sherd__seeded state;
    sherd__entropy e = sherd__entropy_seeded(&state, g->opt->seed);
    for (size_t k = 0; k < most && err == 0; k++) {
        size_t i = k < len - 1 ? k : (size_t)sherd__entropy_below(&e, len);
        size_t j = k < len - 1 ? k + 1 : (size_t)sherd__entropy_below(&e, len - 1);
        if (k >= len - 1 && j >= i) j++;
        err = pair(g, &seen[i], &seen[j]);
    }
    return err;
}

int sherd__audit_uniformity(sherd__findings *l, const sherd__seen *seen, size_t seen_len,
                            const sherd__audit_options *opt, sherd_diag *d)
{
    looking g = { .l = l, .opt = opt };
    size_t room = 0;
    int err = SHERD_OK;
    for (size_t e = 0; e < seen_len; e++) {
        err = sherd__seen_check(&seen[e], d);
        if (err != 0) return err;
        size_t n = sherd__audit_sample(opt, &seen[e]);
        if (n > room) room = n;
    }
    if (seen_len == 0) return SHERD_OK;
    err = look_open(&g, room);
    for (size_t e = 0; e < seen_len && err == 0; e++) err = single(&g, &seen[e]);
    if (err == 0) err = pairs(&g, seen, seen_len);
    look_close(&g);
    return err;
}
