/*
 * Masks that were used twice, as they are or negated, at any offset: in another encoding, operand
 * or prime, or further on in the same one. Who knows the operand, or has all shares, can solve for
 * the masks; each is a stream of residues, row after row. Of two streams that come from one place,
 * the same numbers stand in a row somewhere, and content says where to look: windows whose hash is
 * 0 modulo 64 are kept, wherever they are, and sorted. So the lag need not be known, and the cost
 * is that of sorting a sixty-fourth of what was seen.
 *
 * A residue is compared as a fraction of its prime, in 4096 steps: one word of a keystream that is
 * reduced modulo two primes, or one number below both, gives nearly the same fraction. Hashes take
 * a number and its negative for the same, by the lower one of their steps.
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
    KEEP = 64,              /* one window in so many */
    RUN_MAX = 4096,         /* longest run that is counted */
    LOOKS_MAX = 512,        /* equal windows that are followed */
    NAMED_MAX = 16          /* pairs of streams that are named */
};
#define STEP_EVERY ((size_t)1 << 20) /* residues between two questions whether to go on */

/* A combination of shares and blocks in which one mask is left, modulo one prime. */
typedef struct stream {
    const sherd__seen *seen;
    uint32_t prime, mask;            /* mask: or, where it is not alone, the share */
    bool alone;
    uint32_t share_coef[SHERD__LCC_SHARES_MAX], block_coef[SHERD__LCC_BLOCKS_MAX];
    size_t len, first;               /* first: in the row of all streams, end to end */
} stream;

typedef struct window {
    uint64_t hash, at; /* at: in the row of all streams */
} window;

typedef struct streams {
    stream *list;
    size_t len, room;
    window *kept;
    size_t kept_len, kept_room, total;
    const sherd__audit_options *opt;
} streams;

static int grow(void **list, size_t *room, size_t len, size_t each)
{
    if (len < *room) return SHERD_OK;
    size_t more = *room ? 2 * *room : 64;
    size_t bytes;
    if (!sherd__mul(more, each, &bytes)) return SHERD_ENOMEM;
    void *p = sherd__realloc(*list, bytes);
    if (p == NULL) return SHERD_ENOMEM;
    *list = p;
    *room = more;
    return SHERD_OK;
}

/* ---- solving --------------------------------------------------------------------------------- */

/* Equations of all shares that are there: what is not known of each on the left, and on the right
 * which shares it is made of. */
typedef struct equations {
    uint32_t rows, unknowns, width; /* width: unknowns + shares */
    uint32_t *m;
} equations;

/* To reduced row echelon form; pivot[u]: the row that stands for unknown u, or UINT32_MAX. */
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

/* Where only unknown u is left of a row. */
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

/* What the known blocks are in the combination is taken away. */
static void subtract_blocks(stream *one, const uint32_t *w, uint32_t blocks, uint32_t coef,
                            uint32_t p)
{
    for (uint32_t j = 0; j < blocks; j++)
        one->block_coef[j] =
            (uint32_t)((one->block_coef[j] + (uint64_t)(p - coef) * w[j]) % p);
}

/* A share by itself, less the blocks: a sum of all masks, if more than one. */
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

/* The masks of an encoding modulo one prime, or what can be had of them. */
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

/* Which of the 4096 parts of its prime's range residues [at, at+n) of a stream lie in. */
static void steps_of(const stream *s, size_t at, size_t n, uint32_t *out)
{
    const sherd__seen_code *c = s->seen->code;
    uint32_t p = c->primes[s->prime];
    uint64_t sum[256];
    for (size_t from = 0; from < n; from += 256) {
        size_t some = n - from < 256 ? n - from : 256;
        memset(sum, 0, sizeof sum);
        for (uint32_t i = 0; i < c->shares; i++) {
            if (s->share_coef[i] == 0) continue;
            const uint32_t *x = sherd__seen_residues(s->seen, i, s->prime) + at + from;
            for (size_t k = 0; k < some; k++) sum[k] += (uint64_t)s->share_coef[i] * x[k];
        }
        for (uint32_t j = 0; j < c->blocks; j++) {
            if (s->block_coef[j] == 0) continue;
            const double *x = s->seen->blocks[j] + at + from;
            for (size_t k = 0; k < some; k++)
                sum[k] += (uint64_t)s->block_coef[j] * sherd__audit_residue(x[k], p);
        }
        for (size_t k = 0; k < some; k++)
            out[from + k] = (uint32_t)(sum[k] % p * STEPS / p); /* below 2^53, then 2^35 */
    }
}

/* The step of the negative of a number that is not 0. */
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

/* SHERD_EINTERRUPTED where the caller says so. */
static int step(const streams *s, size_t at)
{
    const sherd__audit_options *o = s->opt;
    if (!o->step || at % STEP_EVERY != 0) return SHERD_OK;
    return o->step(o->ctx, (uint32_t)(at / STEP_EVERY + 1), (uint32_t)(s->total / STEP_EVERY + 1))
               ? SHERD_EINTERRUPTED
               : SHERD_OK;
}

/* Keeps the windows of a stream that their content chooses. */
static int keep_windows(streams *s, const stream *one)
{
    const uint64_t base = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t first = 1, hash = 0; /* first: what the oldest number in the window weighs */
    uint32_t part[2 * STEPS], old[WINDOW] = { 0 };
    int err = SHERD_OK;
    for (unsigned i = 1; i < WINDOW; i++) first *= base;
    for (size_t at = 0; at < one->len && err == 0; at += 2 * STEPS) {
        size_t n = one->len - at < 2 * STEPS ? one->len - at : 2 * STEPS;
        if ((err = step(s, at))) return err;
        steps_of(one, at, n, part);
        for (size_t i = 0; i < n && err == 0; i++) {
            uint32_t *oldest = &old[(at + i) % WINDOW];
            uint32_t either = part[i] < STEPS / 2 ? part[i] : negated(part[i]);
            hash = (hash - *oldest * first) * base + either;
            *oldest = either;
            uint64_t h = mixed(hash);
            if (h % KEEP != 0 || at + i + 1 < WINDOW) continue;
            err = grow((void **)&s->kept, &s->kept_room, s->kept_len, sizeof *s->kept);
            if (err == 0)
                s->kept[s->kept_len++] = (window){ h, one->first + at + i + 1 - WINDOW };
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

/* A place in a stream. */
typedef struct place {
    const stream *of;
    size_t at;
} place;

static place place_of(const streams *s, const window *w)
{
    size_t low = 0, high = s->len; /* the last that begins there or before */
    while (high - low > 1) {
        size_t mid = low + (high - low) / 2;
        if (s->list[mid].first <= w->at) low = mid;
        else high = mid;
    }
    return (place){ &s->list[low], (size_t)w->at - s->list[low].first };
}

/* ---- what two of them share ------------------------------------------------------------------ */

/* A row of one-time masks may go to several nodes: it is the same row, masked once. */
static bool sent_twice(const stream *a, size_t i, const stream *b, size_t j)
{
    const sherd__seen *x = a->seen, *y = b->seen;
    if (!x->code->one_time || x == y || x->row == NULL || y->row == NULL || x->cols != y->cols ||
        a->prime != b->prime || strcmp(x->name, y->name) != 0)
        return false;
    return x->row[i / x->cols] == y->row[j / y->cols] && i % x->cols == j % y->cols;
}

/* steps_of, of the negatives. */
static void other_steps_of(const stream *s, size_t at, size_t n, uint32_t *out)
{
    steps_of(s, at, n, out);
    for (size_t k = 0; k < n; k++) out[k] = negated(out[k]);
}

/* How many numbers agree there, in a row, both ways; `minus`: with the negatives of b's. */
static size_t run_at(const stream *a, size_t i, const stream *b, size_t j, bool minus, size_t *back)
{
    void (*of_b)(const stream *, size_t, size_t, uint32_t *) = minus ? other_steps_of : steps_of;
    uint32_t x[WINDOW], y[WINDOW];
    size_t on = 0;
    bool same = true;
    *back = 0;
    while (same && on < RUN_MAX && i + on < a->len && j + on < b->len) {
        size_t n = WINDOW, k = 0;
        if (n > a->len - i - on) n = a->len - i - on;
        if (n > b->len - j - on) n = b->len - j - on;
        steps_of(a, i + on, n, x);
        of_b(b, j + on, n, y);
        while (k < n && x[k] == y[k]) k++;
        same = k == n;
        on += k;
    }
    while (*back < i && *back < j && on + *back < RUN_MAX) {
        steps_of(a, i - *back - 1, 1, x);
        of_b(b, j - *back - 1, 1, y);
        if (x[0] != y[0]) break;
        ++*back;
    }
    return on + *back;
}

static void name_stream(char out[64], const stream *s)
{
    const sherd__seen_code *c = s->seen->code;
    char which[24] = "";
    if (s->seen->unnumbered || (!s->alone && c->masks > 1))
        snprintf(which, sizeof which, " in share %u", s->mask + 1);
    else if (c->masks > 1) snprintf(which, sizeof which, " %u", s->mask + 1);
    snprintf(out, 64, "%s%s of %.20s, prime %u", !s->alone && c->masks > 1 ? "masks" : "mask",
             which, s->seen->name, c->primes[s->prime]);
}

/* The chance that any two places of as many uniform numbers have so long a run, of the same numbers
 * or of their negatives. */
static double chance_of(size_t total, size_t run)
{
    double p = 2 * log((double)total) - (double)run * log(STEPS - 6.0);
    return p < 0 ? p : 0;
}

/* Two places of the same numbers: the longest run of that pair of streams. */
typedef struct pair {
    place x, y;
    size_t run, back;
    bool minus;
} pair;

static int found(sherd__findings *l, const streams *s, const pair *p)
{
    const stream *x = p->x.of, *y = p->y.of;
    char one[64], other[64];
    sherd__finding f = sherd__finding_of("offset", "longest run of two masks", false);
    int64_t lag = (int64_t)p->y.at - (int64_t)p->x.at;
    name_stream(one, x);
    name_stream(other, y);
    f.value = (double)p->run;
    f.chance = 0;
    f.log_p = chance_of(s->total, p->run);
    snprintf(f.subject, sizeof f.subject, "%.30s / %.30s", x->seen->name, y->seen->name);
    snprintf(f.who, sizeof f.who, "shares and operands of the record");
    snprintf(f.sentence, sizeof f.sentence,
             "%s and %s are %s for %s%zu numbers, from %zu and %zu on (lag %lld%s)", one, other,
             p->minus ? "negatives of one another" : "the same",
             p->run == RUN_MAX ? "at least " : "", p->run, p->x.at - p->back, p->y.at - p->back,
             (long long)lag,
             x->seen->cols == y->seen->cols && lag % (int64_t)x->seen->cols == 0 ? ", whole rows"
                                                                                   : "");
    return sherd__findings_add(l, &f);
}

/* One share read by two of the numbers that it may have is the same where the operand is zero. */
static bool read_twice(const place *x, const place *y)
{
    return x->of->seen == y->of->seen && x->of->seen->unnumbered && x->at == y->at;
}

/* The longest run of each pair of streams, for the first pairs that have one. */
static int compare(sherd__findings *l, const streams *s, size_t *pairs)
{
    pair best[NAMED_MAX];
    size_t looks = 0, len = 0;
    int err = SHERD_OK;
    for (size_t i = 1; i < s->kept_len && looks < LOOKS_MAX; i++) {
        if (s->kept[i - 1].hash != s->kept[i].hash) continue;
        pair p = { .x = place_of(s, &s->kept[i - 1]), .y = place_of(s, &s->kept[i]) };
        size_t at = 0;
        if (sent_twice(p.x.of, p.x.at, p.y.of, p.y.at) || read_twice(&p.x, &p.y)) continue;
        while (at < len && (best[at].x.of != p.x.of || best[at].y.of != p.y.of)) at++;
        if (at == NAMED_MAX || (at < len && best[at].run >= RUN_MAX)) continue;
        looks++;
        for (int minus = 0; minus < 2 && p.run < WINDOW; minus++) {
            p.minus = minus;
            p.run = run_at(p.x.of, p.x.at, p.y.of, p.y.at, minus, &p.back);
        }
        if (p.run < WINDOW || (at < len && best[at].run >= p.run)) continue; /* or hashes alone */
        best[at] = p;
        if (at == len) len++;
    }
    for (size_t i = 0; i < len && err == 0; i++) err = found(l, s, &best[i]);
    *pairs = len;
    return err;
}

static int nothing_found(sherd__findings *l, const streams *s, const sherd__streams_reach *reach)
{
    sherd__finding f = sherd__finding_of("offset", "longest run of two masks", false);
    snprintf(f.who, sizeof f.who, "shares and operands of the record");
    snprintf(f.subject, sizeof f.subject, "%zu streams of masks", s->len);
    if (s->len == 0) {
        snprintf(f.sentence, sizeof f.sentence,
                 "no mask could be solved for: that takes the operand, or as many shares as there "
                 "are blocks and masks, and the number of each share");
        return sherd__findings_add(l, &f);
    }
    f.value = 0;
    f.chance = 0;
    f.log_p = 0;
    snprintf(f.sentence, sizeof f.sentence,
             "no two places of %zu streams of masks, %zu residues of %zu of %zu encodings, have "
             "the same %u numbers in a row, or their negatives (one place in %u was looked at)",
             s->len, s->total, reach->encodings - reach->unsolved, reach->encodings, WINDOW, KEEP);
    return sherd__findings_add(l, &f);
}

/* What could be had of an encoding's masks: streams from `first` on. */
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
    size_t pairs = 0;
    int err = SHERD_OK;
    *reach = (sherd__streams_reach){ 0 };
    for (size_t e = 0; e < seen_len && err == 0; e++) {
        size_t first = s.len;
        err = sherd__seen_check(&seen[e], d);
        for (uint32_t q = 0; err == 0 && q < seen[e].code->primes_len; q++)
            err = solve(&s, &seen[e], q);
        reached(reach, &s, first, &seen[e]);
    }
    for (size_t i = 0; i < s.len && err == 0; i++) err = keep_windows(&s, &s.list[i]);
    if (err == 0 && s.kept_len > 1) qsort(s.kept, s.kept_len, sizeof *s.kept, by_hash);
    if (err == 0) err = compare(l, &s, &pairs);
    if (err == 0 && pairs == 0) err = nothing_found(l, &s, reach);
    sherd__free(s.list);
    sherd__free(s.kept);
    if (err == SHERD_EINTERRUPTED) return sherd__fail(d, err, NULL, "interrupted");
    return err == SHERD_ENOMEM ? sherd__fail(d, err, NULL, "out of memory") : err;
}
