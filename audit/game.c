/*
 * The distinguishing game. The attacker knows both operands and the code, and may have operand 0
 * hidden once more just before each challenge (as with chosen plaintexts). It uses signals: each
 * share unchanged, each combination without masks, and each share minus that of the known operand.
 * Of each signal it computes six statistics. On half the rounds it learns which statistic
 * distinguishes the operands, and at what threshold. Only the other half, which it has not seen,
 * counts, so searching among many statistics cannot bias the result.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/modular.h"
#include "audit/stats_internal.h"
#include "audit/tail.h"
#include "audit/uniform.h"
#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "core/rand.h"
#include "crypto/lagrange.h"

enum { SIGNALS = 48, STATISTICS = 6 };

/* Residues modulo one prime or (prime2) two, and their values for either operand if no mask were
   left in them. */
typedef struct signal {
    enum { SHARE, UNMASKED, AGAINST_KNOWN } kind;
    uint32_t which; /* member, or row of `unmasked` */
    uint32_t prime;
    uint32_t scale;
    uint32_t weight[SHERD__LCC_BLOCKS_MAX]; /* of each block, scaled */
    uint64_t modulus;
    double *target[2]; /* centred, n each */
} signal;

typedef struct play {
    const sherd__game *g;
    size_t n;
    sherd__unmasked unmasked[SHERD__AUDIT_PRIMES];
    signal signals[SIGNALS];
    uint32_t len;
    uint32_t **seen, **known; /* [member * primes_len + prime]: the challenge; operand 0 hidden
                                 before it */
    double *targets;          /* SIGNALS x 2 x n */
    uint64_t *x;
    double *value; /* rounds x (SIGNALS * STATISTICS) */
    uint8_t *coin; /* by round */
    uint32_t rounds;
} play;

/* ---- signals --------------------------------------------------------------------------------- */

static void add_signal(play *y, const signal *s)
{
    if (y->len == SIGNALS) return;
    signal *made = &y->signals[y->len];
    *made = *s;
    for (int b = 0; b < 2; b++)
        made->target[b] = y->targets + ((size_t)y->len * 2 + (size_t)b) * y->n;
    y->len++;
}

/* Sets target[b] = sum of weight * operand b, minus that of operand 0 where it is subtracted. */
static void aim(play *y, signal *s)
{
    const sherd__seen_code *c = y->g->code;
    int64_t p = (int64_t)s->modulus;
    for (int b = 0; b < 2; b++) {
        for (size_t e = 0; e < y->n; e++) {
            int64_t sum = 0;
            for (uint32_t j = 0; j < c->blocks; j++) {
                double v = y->g->operand[b][j][e];
                if (s->kind == AGAINST_KNOWN) v -= y->g->operand[0][j][e];
                sum = (sum + (int64_t)s->weight[j] * ((int64_t)v % p)) % p;
            }
            if (sum < 0) sum += p;
            s->target[b][e] = (double)sherd__modular_centre((uint64_t)sum, s->modulus);
        }
    }
}

static int find_signals(play *y)
{
    const sherd__seen_code *c = y->g->code;
    uint32_t rows = UINT32_MAX;
    for (uint32_t i = 0; i < c->primes_len; i++) {
        int err = sherd__unmasked_find(&y->unmasked[i], c, i, y->g->members, y->g->members_len);
        if (err != 0) return err;
        if (y->unmasked[i].rows < rows) rows = y->unmasked[i].rows;
    }
    for (uint32_t i = 0; i < c->primes_len; i++) {
        for (uint32_t r = 0; r < rows; r++) {
            signal s = { .kind = UNMASKED, .which = r, .prime = i, .modulus = c->primes[i] };
            memcpy(s.weight, y->unmasked[i].weight + (size_t)r * c->blocks,
                   c->blocks * sizeof *s.weight);
            s.scale = sherd__modular_shorten(s.weight, c->blocks, c->primes[i]);
            add_signal(y, &s);
        }
        for (uint32_t m = 0; m < y->g->members_len; m++) {
            signal s = { .kind = SHARE, .which = m, .prime = i, .modulus = c->primes[i] };
            sherd__modular_weights(c, i, y->g->members[m], s.weight);
            s.scale = sherd__modular_shorten(s.weight, c->blocks, c->primes[i]);
            add_signal(y, &s);
            s.kind = AGAINST_KNOWN;
            add_signal(y, &s);
        }
    }
    /* A share that is one block in clear, with columns in any order. */
    for (uint32_t m = 0; m < y->g->members_len; m++) {
        for (uint32_t j = 0; j < c->blocks; j++) {
            signal s = { .kind = SHARE, .which = m, .modulus = c->primes[0], .scale = 1 };
            s.weight[j] = 1;
            add_signal(y, &s);
        }
    }
    return SHERD_OK;
}

static void read_signal(play *y, const signal *s)
{
    const sherd__seen_code *c = y->g->code;
    uint32_t p = c->primes[s->prime], members = y->g->members_len;
    const uint32_t *mine = s->kind == UNMASKED ? NULL
                                               : y->seen[s->which * c->primes_len + s->prime];
    if (s->kind == SHARE) {
        sherd__scaled(mine, y->n, s->scale, p, y->x);
    } else if (s->kind == AGAINST_KNOWN) {
        const uint32_t *before = y->known[s->which * c->primes_len + s->prime];
        for (size_t e = 0; e < y->n; e++)
            y->x[e] = ((uint64_t)mine[e] + p - before[e]) % p * s->scale % p;
    } else {
        const uint32_t *coef = y->unmasked[s->prime].coef + (size_t)s->which * members;
        for (size_t e = 0; e < y->n; e++) {
            uint64_t sum = 0;
            for (uint32_t m = 0; m < members; m++)
                sum += (uint64_t)coef[m] * y->seen[m * c->primes_len + s->prime][e];
            y->x[e] = sum % p * s->scale % p;
        }
    }
}

/* ---- statistics ------------------------------------------------------------------------------ */

static int measure(const play *y, const signal *s, double out[STATISTICS])
{
    size_t cols = y->g->cols;
    double size = 0, spread = 0, right = 0, alike = 0, rows = 0;
    for (size_t r = 0; r < y->g->rows; r++) {
        double sum = 0, other = 0;
        for (size_t e = r * cols; e < (r + 1) * cols; e++) {
            double v = (double)sherd__modular_centre(y->x[e], s->modulus);
            double apart = s->target[1][e] - s->target[0][e];
            size += log(1 + fabs(v)); /* faster than log1p; 1 + |v| is exact */
            spread += v * v;
            right += (v == s->target[1][e]) - (v == s->target[0][e]);
            alike += v * apart;
            sum += v;
            other += apart;
        }
        rows += sum * other;
    }
    sherd__looked repeats;
    int err = sherd__uniform_repeats(y->x, y->n, s->modulus, &repeats);
    if (err != 0) return err;
    memcpy(out, (double[STATISTICS]){ size, spread, right, alike, rows, repeats.value },
           STATISTICS * sizeof *out);
    return SHERD_OK;
}

typedef struct sample {
    double value;
    uint8_t coin;
} sample;

static int by_value(const void *a, const void *b)
{
    const sample *x = a, *y = b;
    if (x->value != y->value) return x->value < y->value ? -1 : 1;
    return (x->coin > y->coin) - (x->coin < y->coin);
}

typedef struct guess {
    uint32_t column;
    double threshold; /* guess operand `above` if the value is above it */
    int above;
    uint32_t right;
} guess;

/* Finds the best threshold of one statistic on the first `len` rounds. */
static guess train(const play *y, uint32_t column, sample *s, uint32_t len)
{
    uint32_t columns = y->len * STATISTICS, ones = 0, below = 0;
    guess best = { .column = column, .threshold = -INFINITY };
    for (uint32_t i = 0; i < len; i++) {
        s[i] = (sample){ y->value[(size_t)i * columns + column], y->coin[i] };
        ones += y->coin[i];
    }
    qsort(s, len, sizeof *s, by_value);
    best.above = ones * 2 >= len;
    best.right = best.above ? ones : len - ones;
    for (uint32_t i = 0; i + 1 < len; i++) {
        below += s[i].coin;
        if (s[i].value == s[i + 1].value) continue;
        uint32_t up = (i + 1 - below) + (ones - below); /* zeros below it, ones above */
        for (int above = 0; above < 2; above++) {
            uint32_t right = above ? up : len - up;
            double middle = s[i].value / 2 + s[i + 1].value / 2;
            if (right > best.right) /* adjacent doubles have no number between them */
                best = (guess){ column, middle < s[i + 1].value ? middle : s[i].value, above,
                                right };
        }
    }
    return best;
}

static int conclude(sherd__findings *l, const play *y, const sherd__audit_options *opt)
{
    uint32_t columns = y->len * STATISTICS, half = y->rounds / 2, right = 0;
    guess best = { .right = 0 };
    sample *s = sherd__alloc(half * sizeof *s);
    if (!s) return SHERD_ENOMEM;
    for (uint32_t j = 0; j < columns; j++) {
        guess g = train(y, j, s, half);
        if (g.right > best.right) best = g;
    }
    sherd__free(s);
    for (uint32_t i = half; i < y->rounds; i++) {
        int above = y->value[(size_t)i * columns + best.column] > best.threshold;
        right += (above ? best.above : !best.above) == y->coin[i];
    }
    uint32_t counted = y->rounds - half;
    sherd_audit_finding f = sherd__finding_of("game", "advantage", false);
    sherd__tail_interval(right, counted, 0.99, &f.low, &f.high);
    f.low = 2 * f.low - 1;
    f.high = 2 * f.high - 1;
    f.value = 2.0 * right / counted - 1;
    f.chance = 0;
    f.ln_p = sherd__tail_binomial(right, counted, 0.5);
    snprintf(f.subject, sizeof f.subject, "%.60s", y->g->name);
    sherd__audit_who(f.who, opt, y->g->members, y->g->members_len);
    snprintf(f.sentence, sizeof f.sentence,
             "%s: distinguished in %u of %u rounds after training on %u (advantage %.3f, 99 %% "
             "interval %.3f to %.3f)",
             f.subject, right, counted, half, f.value, f.low, f.high);
    return sherd__findings_add(l, &f);
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static uint32_t **views_new(uint32_t len, size_t n)
{
    uint32_t **v = sherd__calloc(len, sizeof *v);
    for (uint32_t i = 0; v && i < len; i++) {
        v[i] = sherd__calloc(n, sizeof **v);
        if (v[i]) continue;
        while (i > 0) sherd__free(v[--i]);
        sherd__free(v);
        return NULL;
    }
    return v;
}

static void views_free(uint32_t **v, uint32_t len)
{
    for (uint32_t i = 0; v && i < len; i++) sherd__free(v[i]);
    sherd__free(v);
}

static int play_open(play *y)
{
    const sherd__game *g = y->g;
    uint32_t views = g->members_len * g->code->primes_len;
    size_t targets, values;
    if (!sherd__mul(y->n, 2 * SIGNALS * sizeof(double), &targets) ||
        !sherd__mul(y->rounds, SIGNALS * STATISTICS * sizeof(double), &values))
        return SHERD_ENOMEM;
    y->seen = views_new(views, y->n);
    y->known = views_new(views, y->n);
    y->targets = sherd__alloc(targets);
    y->value = sherd__alloc(values);
    y->x = sherd__alloc(y->n * sizeof *y->x);
    y->coin = sherd__alloc(y->rounds);
    return y->seen && y->known && y->targets && y->value && y->x && y->coin ? SHERD_OK
                                                                            : SHERD_ENOMEM;
}

static void play_close(play *y)
{
    uint32_t views = y->g->members_len * y->g->code->primes_len;
    views_free(y->seen, views);
    views_free(y->known, views);
    for (uint32_t i = 0; i < SHERD__AUDIT_PRIMES; i++) sherd__unmasked_fini(&y->unmasked[i]);
    sherd__free(y->targets);
    sherd__free(y->value);
    sherd__free(y->x);
    sherd__free(y->coin);
}

static int hide(const play *y, uint32_t coin, uint32_t **out)
{
    const sherd__game_encoder *e = &y->g->encoder;
    return e->encode(e->ctx, y->g->operand[coin], out);
}

static int play_round(play *y, const sherd__entropy *e, uint32_t round)
{
    double *row = y->value + (size_t)round * y->len * STATISTICS;
    y->coin[round] = (uint8_t)sherd__entropy_below(e, 2);
    int err = hide(y, 0, y->known);
    if (err == 0) err = hide(y, y->coin[round], y->seen);
    for (uint32_t i = 0; i < y->len && err == 0; i++) {
        read_signal(y, &y->signals[i]);
        err = measure(y, &y->signals[i], row + (size_t)i * STATISTICS);
    }
    return err;
}

int sherd__audit_game(sherd__findings *l, const sherd__game *g, const sherd__audit_options *opt,
                      sherd_diag *d)
{
    play y = { .g = g, .rounds = sherd__audit_rounds(opt) };
    sherd__seeded state;
    sherd__entropy e = sherd__entropy_seeded(&state, opt->seed);
    int err = sherd__modular_check(g->code, d);
    if (err != 0) return err;
    if (!sherd__mul(g->rows, g->cols, &y.n) || y.n == 0 || g->members_len == 0 || y.rounds < 4)
        return sherd__fail(d, SHERD_EINVAL, NULL,
                           "a game of %zu x %zu entries, %u members, %u rounds", g->rows, g->cols,
                           g->members_len, y.rounds);
    err = play_open(&y);
    if (err == 0) err = find_signals(&y);
    for (uint32_t i = 0; i < y.len && err == 0; i++) aim(&y, &y.signals[i]);
    for (uint32_t i = 0; i < y.rounds && err == 0; i++) err = play_round(&y, &e, i);
    if (err == 0) err = conclude(l, &y, opt);
    play_close(&y);
    return err;
}
