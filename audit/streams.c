/*
 * Masks that were used twice, unchanged or negated, at any offset: in another encoding, operand or
 * prime, or later in the same one. An attacker who knows the operand, or has all shares, can solve
 * for the masks. Each mask is a stream of residues, row after row. Two streams from one source have
 * a run of equal numbers somewhere, and the content selects where to look: windows with a hash of 0
 * modulo 64 are kept, at any position, and sorted. So the offset need not be known, and the cost is
 * that of sorting a sixty-fourth of the data.
 *
 * A residue is compared as a fraction of its prime, in 4096 steps: a keystream word reduced modulo
 * two primes, or a number below both, gives nearly the same fraction. Hashes are equal for a number
 * and its negative, because they use the lower of the two steps. For masks that are multiples of
 * one stream, ratios of neighbours are equal, so windows of ratios are kept as well.
 *
 * A mask of residues of one byte is a stream for each block of the operand, in an order of its own
 * (schemes/share/share.h), and is read in this order.
 *
 * Below 4096 a step is one residue, and equal numbers modulo two primes are different fractions. So
 * windows of the residues themselves are kept for such primes. Two primes reject different numbers
 * of one keystream, which shifts one stream against the other: runs are short, but many.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/modular.h"
#include "audit/stats_internal.h"
#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "crypto/lagrange.h"

enum {
    WINDOW = 8,
    STEPS = 4096,
    KEEP = 64,       /* one window in this many */
    RUN_MAX = 4096,  /* longest run that is counted */
    LOOKS_MAX = 512, /* equal windows that are extended */
    NAMED_MAX = 16   /* pairs of streams that are named */
};
#define BASE UINT64_C(0x9e3779b97f4a7c15)
#define BASE_2 (BASE * BASE)
#define OLDEST (BASE_2 * BASE_2 * BASE_2 * BASE) /* weight of the oldest number in a window */
#define STEP_EVERY ((size_t)1 << 20) /* residues between two calls of the caller's step function */

/* A combination of shares and blocks with only one mask left, modulo one prime. */
typedef struct stream {
    const sherd__seen *seen;
    uint32_t prime, mask; /* mask: its index; for a sum of masks, the share */
    bool alone;
    bool seeded; /* share `mask`, which was sent as a seed */
    uint32_t share_coef[SHERD__LCC_SHARES_MAX], block_coef[SHERD__LCC_BLOCKS_MAX];
    size_t len, first; /* first: offset in the concatenation of all streams */
} stream;

typedef struct window {
    uint64_t hash, at; /* at: position in the concatenation of all streams */
} window;

typedef struct windows {
    window *list;
    size_t len, room;
} windows;

typedef struct streams {
    stream *list;
    size_t len, room, total;
    windows kept, ratios; /* windows of steps, and of ratios of neighbours */
    windows values;       /* windows of residues, of primes below STEPS */
    const sherd__audit_options *opt;
} streams;

static int grow(void **list, size_t *room, size_t len, size_t each)
{
    if (len < *room) return SHERD_OK;
    size_t more = *room ? 2 * *room : 64;
    size_t bytes;
    if (!sherd__mul(more, each, &bytes)) return SHERD_ENOMEM;
    void *p = sherd__realloc(*list, bytes);
    if (!p) return SHERD_ENOMEM;
    *list = p;
    *room = more;
    return SHERD_OK;
}

/* ---- solving --------------------------------------------------------------------------------- */

/* Equations of all shares present: the unknowns of each on the left, and on the right the shares
   that the equation combines. */
typedef struct equations {
    uint32_t rows, unknowns, width; /* width: unknowns + shares */
    uint32_t *m;
} equations;

/* Brings the equations to reduced row echelon form. pivot[u]: the row of unknown u, or
   UINT32_MAX. */
static void reduce(equations *q, uint32_t p, uint32_t *pivot)
{
    uint32_t row = 0;
    for (uint32_t u = 0; u < q->unknowns; u++) {
        uint32_t from = row;
        pivot[u] = UINT32_MAX;
        while (from < q->rows && q->m[(size_t)from * q->width + u] == 0) from++;
        if (from == q->rows) continue;
        uint32_t *at = q->m + (size_t)row * q->width, *with = q->m + (size_t)from * q->width;
        for (uint32_t c = 0; c < q->width; c++) {
            uint32_t t = at[c];
            at[c] = with[c];
            with[c] = t;
        }
        uint64_t inverse = sherd__modular_inverse(at[u], p);
        for (uint32_t c = 0; c < q->width; c++) at[c] = (uint32_t)(at[c] * inverse % p);
        for (uint32_t r = 0; r < q->rows; r++) {
            uint32_t *other = q->m + (size_t)r * q->width;
            uint64_t times = p - other[u];
            if (r == row || other[u] == 0) continue;
            for (uint32_t c = 0; c < q->width; c++)
                other[c] = (uint32_t)((other[c] + times * at[c]) % p);
        }
        pivot[u] = row++;
    }
}

/* Returns whether unknown u is the only one in a row. */
static bool isolated(const equations *q, uint32_t row, uint32_t u)
{
    if (row == UINT32_MAX) return false;
    for (uint32_t c = 0; c < q->unknowns; c++)
        if (c != u && q->m[(size_t)row * q->width + c] != 0) return false;
    return true;
}

static int add_stream(streams *s, const stream *one)
{
    int err = grow((void **)&s->list, &s->room, s->len, sizeof *s->list);
    if (err) return err;
    s->list[s->len] = *one;
    s->list[s->len++].first = s->total;
    s->total += one->len;
    return SHERD_OK;
}

/* Subtracts the known blocks' part of the combination. */
static void subtract_blocks(stream *one, const uint32_t *w, uint32_t blocks, uint32_t coef,
                            uint32_t p)
{
    for (uint32_t j = 0; j < blocks; j++)
        one->block_coef[j] = (uint32_t)((one->block_coef[j] + (uint64_t)(p - coef) * w[j]) % p);
}

/* Adds each share minus the blocks as a stream: the sum of all its masks, if there is more than
   one. */
static int add_sums(streams *s, const stream *like, const uint32_t *w, uint32_t width)
{
    const sherd__seen_code *c = like->seen->code;
    int err = SHERD_OK;
    for (uint32_t i = 0; i < c->shares && err == 0; i++) {
        stream one = *like;
        if (!sherd__seen_has(one.seen, i)) continue;
        one.alone = false;
        one.mask = i;
        one.share_coef[i] = 1;
        subtract_blocks(&one, w + (size_t)i * width, c->blocks, 1, c->primes[one.prime]);
        err = add_stream(s, &one);
    }
    return err;
}

/* Adds each share that was sent as a seed: it is a stream, and the masks follow from it. */
static int add_seeded(streams *s, const sherd__seen *e, uint32_t prime)
{
    stream one = { .seen = e, .prime = prime, .seeded = true, .len = e->rows * e->cols };
    int err = SHERD_OK;
    for (uint32_t i = 0; e->seeded && !e->unnumbered && i < e->code->shares && err == 0; i++) {
        if (!e->seeded[i] || !sherd__seen_has(e, i)) continue;
        one.mask = i;
        memset(one.share_coef, 0, sizeof one.share_coef);
        one.share_coef[i] = 1;
        err = add_stream(s, &one);
    }
    return err;
}

/* Solves for the masks of an encoding modulo one prime, or for their sums. */
static int solve(streams *s, const sherd__seen *e, uint32_t prime)
{
    const sherd__seen_code *c = e->code;
    uint32_t p = c->primes[prime], all = c->blocks + c->masks, pivot[SHERD__LCC_BLOCKS_MAX];
    bool known = e->blocks != NULL;
    if (e->unnumbered && !known) return SHERD_OK;
    equations q = { .unknowns = known ? c->masks : all };
    q.width = q.unknowns + c->shares;
    uint32_t *w = sherd__calloc((size_t)c->shares, all * sizeof *w);
    q.m = sherd__calloc(c->shares, q.width * sizeof *q.m);
    int err = w && q.m ? SHERD_OK : SHERD_ENOMEM;
    for (uint32_t i = 0; i < c->shares && err == 0; i++) {
        sherd__modular_weights(c, prime, i, w + (size_t)i * all);
        if (!sherd__seen_has(e, i) || e->unnumbered) continue;
        uint32_t *row = q.m + (size_t)q.rows++ * q.width;
        memcpy(row, w + (size_t)i * all + (known ? c->blocks : 0), q.unknowns * sizeof *row);
        row[q.unknowns + i] = 1;
    }
    if (err == 0) reduce(&q, p, pivot);
    stream one = { .seen = e, .prime = prime, .alone = true, .len = e->rows * e->cols };
    bool solved = false;
    for (uint32_t t = 0; t < c->masks && err == 0; t++) {
        uint32_t u = known ? t : c->blocks + t;
        stream mine = one;
        if (!isolated(&q, pivot[u], u)) continue;
        const uint32_t *coef = q.m + (size_t)pivot[u] * q.width + q.unknowns;
        memcpy(mine.share_coef, coef, c->shares * sizeof *coef);
        for (uint32_t i = 0; known && i < c->shares; i++)
            subtract_blocks(&mine, w + (size_t)i * all, c->blocks, coef[i], p);
        mine.mask = t;
        solved = true;
        err = add_stream(s, &mine);
    }
    if (err == 0 && known && !solved) err = add_sums(s, &one, w, all);
    sherd__free(w);
    sherd__free(q.m);
    return err;
}

/* ---- streams --------------------------------------------------------------------------------- */

static uint32_t prime_of(const stream *s)
{
    return s->seen->code->primes[s->prime];
}

/* Returns x mod p, for x below 2^53, with the inverse of p in float64. */
static uint32_t mod(int64_t x, int64_t p, double inverse)
{
    int64_t r = x - (int64_t)((double)x * inverse) * p; /* from -p to below 2p */
    r += r < 0 ? p : 0;
    return (uint32_t)(r >= p ? r - p : r);
}

static uint32_t times(uint32_t a, uint32_t b, uint32_t p, double inverse)
{
    return mod((int64_t)((uint64_t)a * b), p, inverse);
}

static size_t entry(const stream *s, size_t at)
{
    return s->seen->order ? s->seen->order[at] : at;
}

/* Computes residues [at, at+n) of a stream. */
static void residues_of(const stream *s, size_t at, size_t n, uint32_t *out)
{
    const sherd__seen_code *c = s->seen->code;
    uint32_t p = prime_of(s);
    uint64_t sum[256];
    for (size_t from = 0; from < n; from += 256) {
        size_t some = n - from < 256 ? n - from : 256;
        memset(sum, 0, sizeof sum);
        for (uint32_t i = 0; i < c->shares; i++) {
            if (s->share_coef[i] == 0) continue;
            const uint32_t *x = sherd__seen_residues(s->seen, i, s->prime);
            for (size_t k = 0; k < some; k++)
                sum[k] += (uint64_t)s->share_coef[i] * x[entry(s, at + from + k)];
        }
        for (uint32_t j = 0; j < c->blocks; j++) {
            if (s->block_coef[j] == 0) continue;
            const double *x = s->seen->blocks[j];
            for (size_t k = 0; k < some; k++)
                sum[k] += (uint64_t)s->block_coef[j] *
                          sherd__audit_residue(x[entry(s, at + from + k)], p);
        }
        for (size_t k = 0; k < some; k++) out[from + k] = mod((int64_t)sum[k], p, 1.0 / p);
    }
}

/* Returns which of the 4096 parts of its prime's range a residue is in. */
static uint32_t step_of(uint32_t residue, uint32_t p)
{
    return (uint32_t)((uint64_t)residue * STEPS / p); /* below 2^35 */
}

/* Returns the step of the negative of a non-zero number. */
static uint32_t negated(uint32_t step)
{
    return STEPS - 1 - step;
}

static uint64_t mixed(uint64_t h)
{
    h = (h ^ h >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    h = (h ^ h >> 27) * UINT64_C(0x94d049bb133111eb);
    return h ^ h >> 31;
}

/* Calls the caller's step function; SHERD_EINTERRUPTED if it returns non-zero. */
static int step(const streams *s, size_t at)
{
    const sherd__audit_options *o = s->opt;
    if (!o->step || at % STEP_EVERY != 0) return SHERD_OK;
    return o->step(o->ctx, (uint32_t)(at / STEP_EVERY + 1), (uint32_t)(s->total / STEP_EVERY + 1))
               ? SHERD_EINTERRUPTED
               : SHERD_OK;
}

/* A rolling hash of the last numbers. */
typedef struct rolling {
    uint64_t hash;
    uint32_t old[WINDOW];
    size_t len;
} rolling;

/* Keeps the window that ends with `number` and starts at `at`, if its content selects it. */
static int roll(windows *to, rolling *w, uint32_t number, uint64_t salt, uint64_t at)
{
    uint32_t *oldest = &w->old[w->len++ % WINDOW];
    w->hash = (w->hash - *oldest * OLDEST) * BASE + number;
    *oldest = number;
    uint64_t h = mixed(w->hash + salt);
    if (h % KEEP != 0 || w->len < WINDOW) return SHERD_OK;
    int err = grow((void **)&to->list, &to->room, to->len, sizeof *to->list);
    if (err == 0) to->list[to->len++] = (window){ h, at };
    return err;
}

/* Computes out[i] = 1 / x[i] mod p, and 0 for 0, with one inversion for each of a few products of
   all numbers. */
static void invert(const uint32_t *x, size_t n, uint32_t p, uint32_t *out)
{
    enum { LANES = 8 };
    const double by = 1.0 / p;
    uint32_t all[LANES];
    for (size_t k = 0; k < LANES; k++) all[k] = 1;
    for (size_t i = 0; i < n; i++) {
        out[i] = all[i % LANES];
        all[i % LANES] = times(all[i % LANES], x[i] ? x[i] : 1, p, by);
    }
    for (size_t k = 0; k < LANES; k++) all[k] = sherd__modular_inverse(all[k], p);
    for (size_t i = n; i-- > 0;) {
        out[i] = x[i] ? times(out[i], all[i % LANES], p, by) : 0;
        all[i % LANES] = times(all[i % LANES], x[i] ? x[i] : 1, p, by);
    }
}

/* Keeps the windows of a stream that their content selects. */
static int keep_windows(streams *s, const stream *one)
{
    uint32_t x[2 * STEPS], inverse[2 * STEPS], p = prime_of(one), before = 0;
    rolling steps = { 0 }, ratios = { 0 }, values = { 0 };
    int err = SHERD_OK;
    for (size_t at = 0; at < one->len && err == 0; at += 2 * STEPS) {
        size_t n = one->len - at < 2 * STEPS ? one->len - at : 2 * STEPS;
        if ((err = step(s, at))) return err;
        residues_of(one, at, n, x);
        invert(x, n, p, inverse);
        for (size_t i = 0; i < n && err == 0; i++) {
            uint64_t here = one->first + at + i;
            uint32_t part = step_of(x[i], p);
            if (part >= STEPS / 2) part = negated(part);
            err = roll(&s->kept, &steps, part, 0, here + 1 - WINDOW);
            if (err == 0 && p < STEPS) err = roll(&s->values, &values, x[i], 0, here + 1 - WINDOW);
            if (err == 0 && at + i > 0)
                err = roll(&s->ratios, &ratios, times(x[i], before, p, 1.0 / p), p, here - WINDOW);
            before = inverse[i];
        }
    }
    return err;
}

static int by_hash(const void *a, const void *b)
{
    const window *x = a, *y = b;
    if (x->hash != y->hash) return x->hash < y->hash ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

/* A position in a stream. */
typedef struct place {
    const stream *of;
    size_t at;
} place;

static place place_of(const streams *s, const window *w)
{
    size_t low = 0, high = s->len; /* the last stream that starts there or before */
    while (high - low > 1) {
        size_t mid = low + (high - low) / 2;
        if (s->list[mid].first <= w->at) low = mid;
        else high = mid;
    }
    return (place){ &s->list[low], (size_t)w->at - s->list[low].first };
}

/* ---- runs in common -------------------------------------------------------------------------- */

/* The same row of one-time masks may be sent to several nodes: then it was used for one row
   only. */
static bool sent_twice(const stream *a, size_t i, const stream *b, size_t j)
{
    const sherd__seen *x = a->seen, *y = b->seen;
    if (!x->code->one_time || x == y || !x->row || !y->row || x->cols != y->cols ||
        a->prime != b->prime || strcmp(x->name, y->name) != 0)
        return false;
    return x->row[i / x->cols] == y->row[j / y->cols] && i % x->cols == j % y->cols;
}

/* What two streams are compared by. */
typedef enum measure { BY_STEPS, BY_RATIOS, BY_VALUES } measure;

/* Relation of one stream to another. */
typedef struct relation {
    measure by;
    bool minus;      /* by steps: the negative of the other; else equal */
    uint32_t factor; /* by ratios: factor from the other */
} relation;

/* Returns numbers of a stream for a comparison: of the first one transformed by r, of the second
   one unchanged. */
static void look(const stream *s, size_t at, size_t n, const relation *r, bool first, uint32_t *out)
{
    uint32_t p = prime_of(s);
    residues_of(s, at, n, out);
    for (size_t k = 0; k < n; k++) {
        if (r->by == BY_STEPS) out[k] = step_of(out[k], p);
        if (first && r->by == BY_RATIOS) out[k] = (uint32_t)((uint64_t)out[k] * r->factor % p);
        if (first && r->minus) out[k] = negated(out[k]);
    }
}

/* Returns how many consecutive numbers of b match a's there, forwards and backwards. */
static size_t run_at(const stream *a, size_t i, const stream *b, size_t j, const relation *r,
                     size_t *back)
{
    uint32_t x[WINDOW], y[WINDOW];
    size_t on = 0;
    bool same = true;
    *back = 0;
    while (same && on < RUN_MAX && i + on < a->len && j + on < b->len) {
        size_t n = WINDOW, k = 0;
        if (n > a->len - i - on) n = a->len - i - on;
        if (n > b->len - j - on) n = b->len - j - on;
        look(a, i + on, n, r, true, x);
        look(b, j + on, n, r, false, y);
        while (k < n && x[k] == y[k]) k++;
        same = k == n;
        on += k;
    }
    while (*back < i && *back < j && on + *back < RUN_MAX) {
        look(a, i - *back - 1, 1, r, true, x);
        look(b, j - *back - 1, 1, r, false, y);
        if (x[0] != y[0]) break;
        ++*back;
    }
    return on + *back;
}

static void name_stream(char out[64], const stream *s)
{
    const sherd__seen_code *c = s->seen->code;
    char which[24] = "";
    if (s->seeded) {
        snprintf(out, 64, "seed of share %u of %.20s, prime %u", s->mask + 1, s->seen->name,
                 c->primes[s->prime]);
        return;
    }
    if (s->seen->unnumbered || (!s->alone && c->masks > 1))
        snprintf(which, sizeof which, " in share %u", s->mask + 1);
    else if (c->masks > 1) snprintf(which, sizeof which, " %u", s->mask + 1);
    snprintf(out, 64, "%s%s of %.20s, prime %u", !s->alone && c->masks > 1 ? "masks" : "mask",
             which, s->seen->name, c->primes[s->prime]);
}

/* Returns the probability that any two positions of as many uniform numbers have a run of this
   length, of equal numbers or of negatives; or of multiples, whose first number gives the factor.
   choices: in which one number agrees with another by chance. */
static double chance_of(size_t total, const relation *r, double choices, size_t run)
{
    if (r->by == BY_RATIOS && choices < STEPS - 6) run--;
    double p = 2 * log((double)total) - (double)run * log(choices);
    return p < 0 ? p : 0;
}

/* Two positions with the same numbers: the longest run of that pair of streams. */
typedef struct pair {
    place x, y;
    size_t run, back;
    relation r;
} pair;

/* Returns in how many equally likely numbers one of x agrees with one of y. */
static double choices_of(const stream *x, const stream *y)
{
    uint32_t p = prime_of(x), q = prime_of(y);
    double least = p < q ? p : q;
    return least < STEPS - 6 ? least : STEPS - 6;
}

static int found(sherd__findings *l, const streams *s, const pair *p)
{
    const stream *x = p->x.of, *y = p->y.of;
    char one[64], other[64];
    sherd_audit_finding f = sherd__finding_of("offset", "longest run of two masks", false);
    const char *are = p->r.factor  ? "multiples of one another"
                      : p->r.minus ? "negatives of one another"
                                   : "the same";
    int64_t lag = (int64_t)p->y.at - (int64_t)p->x.at;
    name_stream(one, x);
    name_stream(other, y);
    f.value = (double)p->run;
    f.chance = 0;
    f.ln_p = chance_of(s->total, &p->r, choices_of(x, y), p->run);
    snprintf(f.subject, sizeof f.subject, "%.30s / %.30s", x->seen->name, y->seen->name);
    snprintf(f.who, sizeof f.who, "shares and operands of the record");
    snprintf(f.sentence, sizeof f.sentence,
             "%s and %s are %s for %s%zu numbers, from %zu and %zu on (lag %lld%s)", one, other,
             are, p->run == RUN_MAX ? "at least " : "", p->run, p->x.at - p->back,
             p->y.at - p->back, (long long)lag,
             !x->seen->order && !y->seen->order && x->seen->cols == y->seen->cols &&
                     lag % (int64_t)x->seen->cols == 0
                 ? ", whole rows"
                 : "");
    return sherd__findings_add(l, &f);
}

/* A share read at two of its possible numbers is the same where the operand is zero. */
static bool read_twice(const place *x, const place *y)
{
    return x->of->seen == y->of->seen && x->of->seen->unnumbered && x->at == y->at;
}

/* A mask that was solved for is a multiple of a seeded share of the same encoding where the operand
 * is zero: it follows from it. */
static bool follows(const place *x, const place *y)
{
    return x->of->seen == y->of->seen && x->of->seeded != y->of->seeded;
}

/* Returns the factor from x to y; 0: no factor, or 1 or -1. */
static uint32_t factor_of(const place *x, const place *y)
{
    uint32_t p = prime_of(x->of), a, b;
    if (prime_of(y->of) != p || x->of->seen->unnumbered || y->of->seen->unnumbered) return 0;
    residues_of(x->of, x->at, 1, &a);
    residues_of(y->of, y->at, 1, &b);
    if (a == 0 || b == 0) return 0;
    b = (uint32_t)((uint64_t)b * sherd__modular_inverse(a, p) % p);
    return b == 1 || b == p - 1 ? 0 : b;
}

/* Finds the longest run at two positions with equal windows. */
static void longest(pair *p, measure by)
{
    p->r.by = by;
    if (by == BY_RATIOS) p->r.factor = factor_of(&p->x, &p->y);
    if (by == BY_RATIOS && !p->r.factor) return;
    if (by == BY_VALUES && prime_of(p->x.of) == prime_of(p->y.of)) return; /* done by steps */
    for (int minus = 0; minus < (by == BY_STEPS ? 2 : 1) && p->run < WINDOW; minus++) {
        p->r.minus = minus;
        p->run = run_at(p->x.of, p->x.at, p->y.of, p->y.at, &p->r, &p->back);
    }
}

/* The longest runs of pairs of streams, for the first pairs with a run. */
typedef struct pairs {
    pair best[NAMED_MAX];
    size_t len;
} pairs;

static void compare(pairs *l, const streams *s, windows *w, measure by)
{
    size_t looks = 0;
    if (w->len > 1) qsort(w->list, w->len, sizeof *w->list, by_hash);
    for (size_t i = 1; i < w->len && looks < LOOKS_MAX; i++) {
        if (w->list[i - 1].hash != w->list[i].hash) continue;
        pair p = { .x = place_of(s, &w->list[i - 1]), .y = place_of(s, &w->list[i]) };
        size_t at = 0;
        if (sent_twice(p.x.of, p.x.at, p.y.of, p.y.at) || read_twice(&p.x, &p.y) ||
            follows(&p.x, &p.y))
            continue;
        while (at < l->len && (l->best[at].x.of != p.x.of || l->best[at].y.of != p.y.of)) at++;
        if (at == NAMED_MAX || (at < l->len && l->best[at].run >= RUN_MAX)) continue;
        longest(&p, by);
        looks += p.run > 0;
        if (p.run < WINDOW) continue; /* only the hashes were equal */
        if (at < l->len && l->best[at].run >= p.run) continue;
        l->best[at] = p;
        if (at == l->len) l->len++;
    }
}

static int nothing_found(sherd__findings *l, const streams *s, const sherd__streams_reach *reach)
{
    sherd_audit_finding f = sherd__finding_of("offset", "longest run of two masks", false);
    snprintf(f.who, sizeof f.who, "shares and operands of the record");
    snprintf(f.subject, sizeof f.subject, "%zu streams of masks", s->len);
    if (s->len == 0) {
        snprintf(f.sentence, sizeof f.sentence,
                 "no mask could be solved for: this requires the operand, or as many shares as "
                 "blocks and masks, and the number of each share");
        return sherd__findings_add(l, &f);
    }
    f.value = 0;
    f.chance = 0;
    f.ln_p = 0;
    snprintf(f.sentence, sizeof f.sentence,
             "no two places in %zu streams of masks, %zu residues of %zu of %zu encodings, have "
             "the same %u numbers in a row, or multiples of them (one place in %u was examined)",
             s->len, s->total, reach->encodings - reach->unsolved, reach->encodings, WINDOW, KEEP);
    return sherd__findings_add(l, &f);
}

/* Records what was solved of an encoding's masks: streams from `first` on. */
static void reached(sherd__streams_reach *r, const streams *s, size_t first, const sherd__seen *e)
{
    size_t at = strlen(r->names);
    r->encodings++;
    if (first < s->len) {
        r->sums += !s->list[first].alone && e->code->masks > 1;
        return;
    }
    r->unsolved++;
    if (at + strlen(e->name) + 3 < sizeof r->names)
        snprintf(r->names + at, sizeof r->names - at, "%s%s", at ? ", " : "", e->name);
}

int sherd__audit_streams(sherd__findings *l, const sherd__seen *seen, size_t seen_len,
                         const sherd__audit_options *opt, sherd__streams_reach *reach,
                         sherd_diag *d)
{
    streams s = { .opt = opt };
    pairs same = { .len = 0 };
    *reach = (sherd__streams_reach){ 0 };
    int err = SHERD_OK;
    for (size_t e = 0; e < seen_len && err == 0; e++) {
        size_t first = s.len;
        err = sherd__seen_check(&seen[e], d);
        for (uint32_t q = 0; err == 0 && q < seen[e].code->primes_len; q++)
            err = solve(&s, &seen[e], q);
        reached(reach, &s, first, &seen[e]);
        for (uint32_t q = 0; err == 0 && q < seen[e].code->primes_len; q++)
            err = add_seeded(&s, &seen[e], q);
    }
    for (size_t i = 0; i < s.len && err == 0; i++) err = keep_windows(&s, &s.list[i]);
    if (err == 0) compare(&same, &s, &s.kept, BY_STEPS);
    if (err == 0) compare(&same, &s, &s.ratios, BY_RATIOS);
    if (err == 0) compare(&same, &s, &s.values, BY_VALUES);
    for (size_t i = 0; i < same.len && err == 0; i++) err = found(l, &s, &same.best[i]);
    if (err == 0 && same.len == 0) err = nothing_found(l, &s, reach);
    sherd__free(s.list);
    sherd__free(s.kept.list);
    sherd__free(s.ratios.list);
    sherd__free(s.values.list);
    if (err == SHERD_EINTERRUPTED) return sherd__fail(d, err, NULL, "interrupted");
    return err == SHERD_ENOMEM ? sherd__fail_memory(d, "the masks of the shares") : err;
}
