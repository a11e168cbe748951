/*
 * Coalitions. alpha and beta are public, so colluding domains can use linear algebra to cancel the
 * masks of their shares. While the mask weights of T shares are independent, nothing can be
 * cancelled. If they are dependent, the residues still look random, each share alone and all
 * together. Only the combination reveals the data, so the combination is tested.
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

enum { MIXED_MAX = 1 << 24, ENTRIES = 4096, FEATURES = 48 };

typedef struct attack {
    sherd__findings *l;
    const sherd__seen *s;
    const sherd__audit_options *opt;
    uint32_t size;     /* domains of a coalition */
    bool control;      /* more than T */
    size_t sample;     /* entries that tests use */
    uint32_t *domains; /* all domains with a share, ascending */
    uint32_t domains_len;
    uint32_t *chosen;  /* indices into domains, ascending: the coalition */
    uint32_t *who;     /* their domains */
    uint32_t *members; /* their shares */
    uint32_t members_len;
    uint32_t *mixed[SHERD__AUDIT_PRIMES]; /* K combinations of `sample` each, by prime */
    uint64_t *x, *guess;
    double *features;          /* FEATURES x entries */
    uint32_t open, rebuilt_by; /* number of coalitions that cancelled the masks, and that solved for
                                  all blocks */
} attack;

/* ---- choosing -------------------------------------------------------------------------------- */

static void list_domains(attack *a)
{
    const sherd__seen *s = a->s;
    for (uint32_t i = 0; i < s->code->shares; i++) {
        uint32_t domain = sherd__seen_domain(s, i), at = 0;
        if (!sherd__seen_has(s, i)) continue;
        while (at < a->domains_len && a->domains[at] < domain) at++;
        if (at < a->domains_len && a->domains[at] == domain) continue;
        memmove(a->domains + at + 1, a->domains + at, (a->domains_len - at) * sizeof *a->domains);
        a->domains[at] = domain;
        a->domains_len++;
    }
}

/* Advances to the next subset in lexical order; returns false after the last. */
static bool next_subset(uint32_t *chosen, uint32_t size, uint32_t of)
{
    uint32_t i = size;
    while (i > 0 && chosen[i - 1] == of - size + i - 1) i--;
    if (i == 0) return false;
    chosen[i - 1]++;
    for (uint32_t j = i; j < size; j++) chosen[j] = chosen[j - 1] + 1;
    return true;
}

/* Draws a uniform subset (Floyd). */
static void draw_subset(const sherd__entropy *e, uint32_t *chosen, uint32_t size, uint32_t of)
{
    for (uint32_t len = 0, j = of - size; j < of; j++, len++) {
        uint32_t v = (uint32_t)sherd__entropy_below(e, (uint64_t)j + 1), at = 0;
        while (at < len && chosen[at] < v) at++;
        if (at < len && chosen[at] == v) {
            chosen[len] = j; /* larger than all elements so far */
            continue;
        }
        memmove(chosen + at + 1, chosen + at, (len - at) * sizeof *chosen);
        chosen[at] = v;
    }
}

/* Returns how many subsets there are, or limit + 1 if there are more. */
static uint64_t subsets(uint32_t size, uint32_t of, uint64_t limit)
{
    uint64_t r = 1;
    for (uint32_t i = 1; i <= size; i++) {
        r = r * (of - size + i) / i; /* C(of-size+i, i), which increases with i */
        if (r > limit) return limit + 1;
    }
    return r;
}

static void gather(attack *a)
{
    const sherd__seen *s = a->s;
    a->members_len = 0;
    for (uint32_t k = 0; k < a->size; k++) a->who[k] = a->domains[a->chosen[k]];
    for (uint32_t i = 0; i < s->code->shares; i++) {
        bool in = false;
        for (uint32_t k = 0; k < a->size; k++) in = in || a->who[k] == sherd__seen_domain(s, i);
        if (in && sherd__seen_has(s, i)) a->members[a->members_len++] = i;
    }
}

/* ---- one coalition --------------------------------------------------------------------------- */

typedef struct solved { /* what a coalition can solve modulo each prime */
    sherd__unmasked u[SHERD__AUDIT_PRIMES];
    uint32_t rows; /* number of combinations tested, the same for all primes */
} solved;

static sherd_audit_finding about(const attack *a, const char *test)
{
    sherd_audit_finding f = sherd__finding_of(test, "", a->control);
    sherd__audit_who(f.who, a->opt, a->who, a->size);
    return f;
}

static void combine(attack *a, const solved *v, uint32_t prime, uint32_t row, uint32_t *out)
{
    const sherd__unmasked *u = &v->u[prime];
    const uint32_t *x[SHERD__LCC_SHARES_MAX];
    for (uint32_t m = 0; m < a->members_len; m++)
        x[m] = sherd__seen_residues(a->s, a->members[m], prime);
    sherd__modular_combine(u->coef + (size_t)row * u->members, x, a->members_len,
                           a->s->code->primes[prime], a->sample, out);
}

static void name_row(const attack *a, const sherd__unmasked *u, uint32_t row, char *out,
                     size_t size)
{
    uint32_t block = sherd__unmasked_block(u, row);
    if (block != UINT32_MAX) snprintf(out, size, "%.24s, block %u", a->s->name, block);
    else snprintf(out, size, "%.24s, blocks mixed", a->s->name);
}

/* Tests combination `row` modulo each prime, and modulo the first two together. */
static int look_at(attack *a, const solved *v, uint32_t row)
{
    const sherd__seen_code *c = a->s->code;
    uint32_t w[2][SHERD__LCC_BLOCKS_MAX], scale[2] = { 1, 1 };
    sherd_audit_finding f = about(a, "coalition");
    char what[44];
    int err = SHERD_OK;
    name_row(a, &v->u[0], row, what, sizeof what);
    for (uint32_t i = 0; i < c->primes_len && err == 0; i++) {
        uint32_t *g = w[i > 0];
        memcpy(g, v->u[i].weight + (size_t)row * c->blocks, c->blocks * sizeof *g);
        uint32_t s = sherd__modular_shorten(g, c->blocks, c->primes[i]);
        if (i < 2) scale[i] = s;
        sherd__scaled(a->mixed[i] + row * a->sample, a->sample, s, c->primes[i], a->x);
        snprintf(f.subject, sizeof f.subject, "%.40s, prime %u", what, c->primes[i]);
        err = sherd__uniform_look(a->l, &f, a->x, a->sample, c->primes[i],
                                  SHERD__LOOK_HIGH | SHERD__LOOK_REPEATS | SHERD__LOOK_SMALL);
        if (err == 0 && a->s->blocks) {
            sherd__predicted(a->s->blocks, g, c->blocks, c->primes[i], a->sample, a->guess);
            err = sherd__uniform_guess(a->l, &f, a->x, a->guess, a->sample, c->primes[i]);
        }
        if (i != 1 || err != 0) continue;
        if (!sherd__weights_agree(w[0], c->primes[0], g, c->primes[1], c->blocks)) continue;
        sherd__joined(a->mixed[0] + row * a->sample, scale[0], c->primes[0],
                      a->mixed[1] + row * a->sample, scale[1], c->primes[1], a->sample, a->x);
        snprintf(f.subject, sizeof f.subject, "%s, two primes", what);
        err = sherd__uniform_look(a->l, &f, a->x, a->sample, (uint64_t)c->primes[0] * c->primes[1],
                                  SHERD__LOOK_REPEATS | SHERD__LOOK_SMALL);
    }
    return err;
}

/* Counts entries of `row` that equal the truth modulo every prime. */
static size_t right_entries(const attack *a, uint32_t row, uint32_t block)
{
    const sherd__seen_code *c = a->s->code;
    const double *truth = a->s->blocks[block];
    size_t right = 0;
    for (size_t e = 0; e < a->sample; e++) {
        bool same = true;
        for (uint32_t i = 0; i < c->primes_len && same; i++) {
            int64_t want = (int64_t)truth[e] % (int64_t)c->primes[i];
            if (want < 0) want += c->primes[i];
            same = (int64_t)a->mixed[i][row * a->sample + e] == want;
        }
        right += same;
    }
    return right;
}

static int rebuild(attack *a, const solved *v)
{
    uint32_t blocks = 0;
    size_t right = 0;
    for (uint32_t r = 0; r < v->rows; r++) {
        uint32_t block = sherd__unmasked_block(&v->u[0], r);
        if (block == UINT32_MAX) continue;
        blocks++;
        if (a->s->blocks) right += right_entries(a, r, block);
    }
    a->rebuilt_by += blocks == a->s->code->blocks;
    if (blocks == 0 || !a->s->blocks) return SHERD_OK;
    sherd_audit_finding f = about(a, "reconstruction");
    f.statistic = "entries rebuilt exactly";
    snprintf(f.subject, sizeof f.subject, "%.60s", a->s->name);
    f.value = (double)right / ((double)a->sample * a->s->code->blocks);
    f.chance = 0;
    f.flagged = f.value > 0;
    snprintf(f.sentence, sizeof f.sentence,
             "%s: %u of %u blocks solved for, %.4g of all entries right", f.subject, blocks,
             a->s->code->blocks, f.value);
    return sherd__findings_add(a->l, &f);
}

/* ---- the linear attacker's features ---------------------------------------------------------- */

static void feature_of(const uint32_t *x, uint32_t scale, uint32_t p, size_t n, double *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (double)sherd__modular_centre((uint64_t)x[i] * scale % p, p);
}

/* The features are the combinations without masks, then the coalition's shares unchanged. */
static int linear(attack *a, const solved *v)
{
    const sherd__seen_code *c = a->s->code;
    const double *feature[FEATURES];
    uint32_t len = 0, w[SHERD__LCC_BLOCKS_MAX];
    size_t n = a->sample < ENTRIES ? a->sample : ENTRIES;
    for (uint32_t r = 0; r < v->rows; r++) {
        for (uint32_t i = 0; i < c->primes_len && len < FEATURES; i++, len++) {
            memcpy(w, v->u[i].weight + (size_t)r * c->blocks, c->blocks * sizeof *w);
            uint32_t scale = sherd__modular_shorten(w, c->blocks, c->primes[i]);
            feature_of(a->mixed[i] + r * a->sample, scale, c->primes[i], n, a->features + len * n);
        }
    }
    for (uint32_t m = 0; m < a->members_len; m++) {
        for (uint32_t i = 0; i < c->primes_len && len < FEATURES; i++, len++)
            feature_of(sherd__seen_residues(a->s, a->members[m], i), 1, c->primes[i], n,
                       a->features + len * n);
    }
    for (uint32_t f = 0; f < len; f++) feature[f] = a->features + f * n;
    sherd_audit_finding f = about(a, "reconstruction");
    snprintf(f.subject, sizeof f.subject, "%.60s", a->s->name);
    return sherd__audit_linear(a->l, &f,
                               &(sherd__linear){ feature, len, a->s->blocks, c->blocks, n });
}

static int coalition(attack *a)
{
    const sherd__seen_code *c = a->s->code;
    solved v = { .rows = UINT32_MAX };
    int err = SHERD_OK;
    gather(a);
    for (uint32_t i = 0; i < c->primes_len && err == 0; i++) {
        err = sherd__unmasked_find(&v.u[i], c, i, a->members, a->members_len);
        if (err == 0 && v.u[i].rows < v.rows) v.rows = v.u[i].rows;
    }
    if (err == 0 && v.rows > 0) a->open++;
    for (uint32_t r = 0; err == 0 && r < v.rows; r++) {
        for (uint32_t i = 0; i < c->primes_len; i++)
            combine(a, &v, i, r, a->mixed[i] + r * a->sample);
        err = look_at(a, &v, r);
    }
    if (err == 0) err = rebuild(a, &v);
    if (err == 0 && a->s->blocks) err = linear(a, &v);
    for (uint32_t i = 0; i < c->primes_len; i++) sherd__unmasked_fini(&v.u[i]);
    return err;
}

/* ---- all coalitions -------------------------------------------------------------------------- */

static int summary(attack *a, uint64_t attacked, uint64_t all)
{
    sherd_audit_finding f = sherd__finding_of("coalition", "coalitions that cancel the masks",
                                              a->control);
    const sherd__seen_code *c = a->s->code;
    snprintf(f.subject, sizeof f.subject, "%.60s", a->s->name);
    snprintf(f.who, sizeof f.who, "any %u domain%s", a->size, a->size > 1 ? "s" : "");
    f.value = (double)a->open;
    f.chance = 0;
    f.flagged = a->open > 0;
    snprintf(f.sentence, sizeof f.sentence,
             "%s: %u of %llu coalitions of %u domain%s%s combine their shares so that no mask is "
             "left (K = %u, T = %u); %u solve for every block",
             f.subject, a->open, (unsigned long long)attacked, a->size, a->size > 1 ? "s" : "",
             attacked < all ? " (drawn)" : "", c->blocks, c->masks, a->rebuilt_by);
    return sherd__findings_add(a->l, &f);
}

static int attack_open(attack *a)
{
    uint32_t n = a->s->code->shares;
    size_t cells, entries = a->sample < ENTRIES ? a->sample : ENTRIES;
    a->domains = sherd__alloc(((size_t)n + 1) * 4 * sizeof *a->domains);
    if (!a->domains || !sherd__mul(a->s->code->blocks * sizeof *a->mixed[0], a->sample, &cells))
        return SHERD_ENOMEM;
    a->chosen = a->domains + n + 1;
    a->who = a->chosen + n + 1;
    a->members = a->who + n + 1;
    for (uint32_t i = 0; i < a->s->code->primes_len; i++) {
        a->mixed[i] = sherd__alloc(cells);
        if (!a->mixed[i]) return SHERD_ENOMEM;
    }
    a->x = sherd__alloc(a->sample * sizeof *a->x);
    a->guess = sherd__alloc(a->sample * sizeof *a->guess);
    a->features = sherd__alloc(FEATURES * entries * sizeof *a->features);
    return a->x && a->guess && a->features ? SHERD_OK : SHERD_ENOMEM;
}

static void attack_close(attack *a)
{
    for (uint32_t i = 0; i < SHERD__AUDIT_PRIMES; i++) sherd__free(a->mixed[i]);
    sherd__free(a->domains);
    sherd__free(a->x);
    sherd__free(a->guess);
    sherd__free(a->features);
}

int sherd__audit_coalitions(sherd__findings *l, const sherd__seen *seen, uint32_t size,
                            const sherd__audit_options *opt, uint32_t *drawn, sherd_diag *d)
{
    attack a = { .l = l, .s = seen, .opt = opt, .size = size };
    sherd__seeded state;
    sherd__entropy e = sherd__entropy_seeded(&state, opt->seed);
    uint64_t most = sherd__audit_coalitions_max(opt), done = 0;
    int err = sherd__seen_check(seen, d);
    if (err != 0) return err;
    a.control = size > seen->code->masks;
    a.sample = sherd__audit_sample(opt, seen);
    size_t most_entries = MIXED_MAX / ((size_t)seen->code->blocks * seen->code->primes_len);
    if (a.sample > most_entries) a.sample = most_entries;
    err = attack_open(&a);
    if (err == 0) list_domains(&a);
    if (err == 0 && size > 0 && size <= a.domains_len) {
        uint64_t all = subsets(size, a.domains_len, most);
        for (uint32_t i = 0; i < size; i++) a.chosen[i] = i;
        do {
            if (all > most) draw_subset(&e, a.chosen, size, a.domains_len);
            err = coalition(&a);
            done++;
        } while (err == 0 &&
                 (all > most ? done < most : next_subset(a.chosen, size, a.domains_len)));
        if (err == 0) err = summary(&a, done, all);
    }
    attack_close(&a);
    if (err == 0 && drawn) *drawn = (uint32_t)done;
    return err;
}
