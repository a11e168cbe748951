/*
 * The arithmetic is that of the parameter server (gradients.c), by the same functions: sums become
 * a gradient, L2 is added, the optimiser is applied. Graders have networks of
 * their own: they read the parameters, or copy them for local steps, which change them.
 */
#include "learn/member.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "learn/gradients_state.h"

struct sherd__member {
    sherd__recipe recipe;
    sherd__passes *passes;
    gradients *g; /* only its tiers, network and optimiser are used */
    sherd__network *network;
    sherd__optimiser optimiser;
    uint64_t committed, absorbed;
    bool local;                 /* kind of the absorbed sum */
    uint64_t print, next_print; /* of all committed sums; of those and the absorbed one */
};

/* ---- start and end --------------------------------------------------------------------------- */

/* a += b * c, saturating. */
static void grow(uint64_t *a, uint64_t b, uint64_t c)
{
    uint64_t product;
    if (__builtin_mul_overflow(b, c, &product) || __builtin_add_overflow(*a, product, a))
        *a = UINT64_MAX;
}

int sherd__member_memory(const sherd__member_options *o, uint64_t *once, uint64_t *each,
                         sherd_diag *d)
{
    int err = sherd__grader_memory(o->recipe, o->batch, each, d);
    if (!err)
        err = sherd__grader_memory(o->recipe, 1, once, d); /* includes the optimiser's vector */
    if (!err) grow(once, sizeof(sherd__member), 1);
    return err;
}

int sherd__member_new(sherd__member **out, const sherd__member_options *o, sherd_diag *d)
{
    sherd__member *m = *out = sherd__calloc(1, sizeof *m);
    if (!m) return sherd__fail_memory(d, "the training");
    m->recipe = *o->recipe;
    m->recipe.precision = SHERD_F64;
    const sherd__passes_options p = { &m->recipe, o->batch, o->bits, &o->by, o->passes };
    int err = sherd__passes_new(&m->passes, &p, d);
    if (!err) err = sherd__recipe_network(&m->recipe, 1, &m->network, d);
    if (!err)
        err = sherd__optimiser_init(&m->optimiser, &o->optimiser, sherd__network_count(m->network),
                                    d);
    if (!err && !(m->g = sherd__calloc(1, sizeof *m->g))) err = SHERD_ENOMEM;
    if (!err) {
        m->g->o.recipe = &m->recipe;
        m->g->o.network = m->network;
        m->g->o.optimiser = &m->optimiser;
        err = sherd__gradients_number(m->g);
    }
    if (!err) return SHERD_OK;
    sherd__member_free(m);
    *out = NULL;
    return sherd__fail_to(d, err, "make a network");
}

void sherd__member_free(sherd__member *m)
{
    if (!m) return;
    if (m->g) sherd__gradients_fini(m->g);
    sherd__optimiser_fini(&m->optimiser);
    sherd__network_free(m->network);
    sherd__passes_free(m->passes);
    sherd__free(m);
}

size_t sherd__member_tiers(const sherd__member *m)
{
    return m->g->tiers;
}

size_t sherd__member_count(const sherd__member *m)
{
    return m->g->count;
}

size_t sherd__member_inputs(const sherd__member *m)
{
    return sherd__grader_inputs(sherd__passes_grader(m->passes));
}

size_t sherd__member_width(const sherd__member *m)
{
    return sherd__grader_width(sherd__passes_grader(m->passes));
}

/* ---- state ----------------------------------------------------------------------------------- */

static double *gradient(const sherd__member *m)
{
    return sherd__network_layer(m->network, m->g->layers[0])->weights_gradient;
}

size_t sherd__member_state_len(const sherd__member *m)
{
    return 2 * m->g->count + m->optimiser.state_len + 1;
}

/* Powers of the betas are made step by step, and a coordinator chooses the number of steps: this
   many take seconds at most. */
#define STEPS_MOST 0x1p32

int sherd__member_load(sherd__member *m, uint64_t round, const double *state, uint64_t len,
                       sherd_diag *d)
{
    size_t count = m->g->count, all = sherd__member_state_len(m), rest = m->optimiser.state_len;
    if (len != count && len != all)
        return sherd__fail(d, SHERD_ESHAPE, NULL, "a state of %llu numbers: expected %zu or %zu",
                           (unsigned long long)len, count, all);
    for (size_t i = 0; i < len; i++)
        if (!isfinite(state[i]))
            return sherd__fail(d, SHERD_EINVAL, NULL, "a state that holds no numbers");
    double steps = len == all ? state[all - 1] : 0;
    if (!(steps >= 0 && steps <= STEPS_MOST))
        return sherd__fail(d, SHERD_EINVAL, NULL, "a state after %g steps", steps);
    memcpy(sherd__network_params(m->network), state, count * sizeof *state);
    if (len == all) {
        memcpy(gradient(m), state + count, count * sizeof *state);
        if (rest) memcpy(m->optimiser.state, state + 2 * count, rest * sizeof *state);
    } else {
        memset(gradient(m), 0, count * sizeof *state);
        if (rest) memset(m->optimiser.state, 0, rest * sizeof *state);
    }
    sherd__optimiser_resume(&m->optimiser, (uint64_t)steps);
    m->committed = m->absorbed = round;
    m->print = m->next_print = 0;
    return SHERD_OK;
}

enum { PARTS = 4 };

/* Describes the first `len` numbers of a state as ranges of memory (NULL: zeros). Returns how many
   ranges there are. */
static size_t parts_of(const sherd__member *m, bool bare, size_t len, const double *steps,
                       sherd__hash_part out[PARTS])
{
    const sherd__hash_part all[PARTS] = { { sherd__network_params(m->network), m->g->count },
                                          { bare ? NULL : gradient(m), m->g->count },
                                          { m->optimiser.state, m->optimiser.state_len },
                                          { steps, 1 } };
    size_t n = 0;
    for (size_t i = 0; i < PARTS && len > 0; i++) {
        size_t part = all[i].len < len ? all[i].len : len;
        if (part) out[n++] = (sherd__hash_part){ all[i].bytes, part * sizeof *steps };
        len -= part;
    }
    return n;
}

void sherd__member_state(const sherd__member *m, bool bare, double *out, size_t len)
{
    const double steps = (double)m->optimiser.steps;
    sherd__hash_part parts[PARTS];
    size_t n = parts_of(m, bare, len, &steps, parts);
    for (size_t i = 0; i < n; i++) {
        if (parts[i].bytes) memcpy(out, parts[i].bytes, parts[i].len);
        else memset(out, 0, parts[i].len);
        out += parts[i].len / sizeof *out;
    }
}

/* Hashes the parts that have memory. */
static void hash_parts(uint64_t round, const sherd__hash_part *parts, size_t n,
                       uint8_t out[SHERD__HASH])
{
    uint8_t bytes[8];
    sherd__hash_part some[PARTS + 1] = { { bytes, sizeof bytes } };
    size_t len = 1;
    sherd__put_u64(bytes, round);
    for (size_t i = 0; i < n; i++)
        if (parts[i].bytes) some[len++] = parts[i];
    sherd__hash_of(some, len, out);
}

void sherd__member_state_hash(const sherd__member *m, bool bare, size_t len,
                              uint8_t out[SHERD__HASH])
{
    const double steps = (double)m->optimiser.steps;
    sherd__hash_part parts[PARTS];
    hash_parts(m->committed, parts, parts_of(m, bare, len, &steps, parts), out);
}

void sherd__state_hash(uint64_t round, const double *state, size_t len, size_t count, bool bare,
                       uint8_t out[SHERD__HASH])
{
    size_t first = len < count ? len : count, skip = bare ? 2 * count : count;
    sherd__hash_part parts[2] = { { state, first * sizeof *state }, { NULL, 0 } };
    if (len > skip) parts[1] = (sherd__hash_part){ state + skip, (len - skip) * sizeof *state };
    hash_parts(round, parts, 2, out);
}

void sherd__member_meet(sherd__member *m)
{
    m->print = m->next_print = 0;
}

int sherd__member_commit(sherd__member *m, uint64_t round, double rate, sherd_diag *d)
{
    if (m->committed == round) return SHERD_OK;
    if (m->absorbed != round)
        return sherd__fail(d, SHERD_EINVAL, NULL, "the sum of round %llu is not here",
                           (unsigned long long)round);
    sherd__optimiser_begin(&m->optimiser);
    sherd__optimiser_apply(&m->optimiser, rate, 0, m->g->count, sherd__network_params(m->network),
                           gradient(m));
    m->committed = round;
    m->print = m->next_print;
    return SHERD_OK;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

/* Of a sum: the caller's part of it. */
typedef struct grading {
    const sherd__member *m;
    const sherd__passes_sum *by;
} grading;

static int need(void *ctx, size_t t, const double **params, sherd_diag *d)
{
    const grading *g = ctx;
    (void)d;
    *params = sherd__network_params(g->m->network) + g->m->g->at[t];
    return SHERD_OK;
}

static sherd__shard shard(void *ctx, uint32_t i, uint32_t pass, sherd__local_steps *local)
{
    const grading *g = ctx;
    return g->by->shard(g->by->ctx, i, pass, local);
}

static bool stop(void *ctx)
{
    const grading *g = ctx;
    return g->by->stop && g->by->stop(g->by->ctx);
}

int sherd__member_grade(sherd__member *m, sherd__team *team, const sherd__passes_sum *s,
                        int64_t *sums, sherd_diag *d)
{
    void *of[SHERD__RECIPE_LAYERS_MAX];
    grading g = { m, s };
    sherd__passes_sum all = *s;
    for (size_t t = 0; t < m->g->tiers; t++) of[t] = sums + m->g->at[t];
    all.sums = of;
    all.shard = shard;
    all.need = need;
    all.stop = stop;
    all.done = NULL;
    all.ctx = &g;
    return sherd__passes_run(m->passes, team, &all, d);
}

static uint64_t print_of(uint64_t print, uint64_t round, const int64_t *sums, size_t n)
{
    uint64_t h = print ^ round * UINT64_C(0x9E3779B97F4A7C15);
    for (size_t i = 0; i < n; i++) {
        h = (h ^ (uint64_t)sums[i]) * UINT64_C(0x9E3779B97F4A7C15);
        h ^= h >> 32;
    }
    return h;
}

void sherd__member_absorb(sherd__member *m, const sherd__member_sum *sum,
                          sherd__member_figures *out)
{
    gradients *g = m->g;
    void *of[SHERD__RECIPE_LAYERS_MAX];
    sherd__sums s = { .tiers = g->tiers, .whole = true, .of = of, .counts = g->counts };
    for (size_t t = 0; t < g->tiers; t++) of[t] = (void *)(uintptr_t)(sum->sums + g->at[t]);
    sherd__gradients_take(g, &(sherd__gradients_sum){ &s, sum->scales, sum->by, false });
    if (!sum->local) sherd__gradients_add_l2(g); /* local steps already include it */
    sherd__gradients_most(g, out->most);
    out->l2 = sherd__gradients_l2(g);
    out->print = m->next_print = print_of(m->print, sum->round, sum->sums, g->count);
    m->absorbed = sum->round;
}
