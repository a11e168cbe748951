/*
 * Training by gradients: what adds up must have the same bits however it is cut, threaded, lost or
 * repeated, and must be the gradient of the whole batch. An engine of the test's own hands parts
 * back in any order, late, dropped or failed.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "learn/gradients.h"

static const char text[] = "input = 6\n"
                           "layer = dense 5\n"
                           "layer = tanh\n"
                           "layer = dense 4\n"
                           "layer = relu\n"
                           "layer = dense 3\n"
                           "loss = cross-entropy\n"
                           "l2 = 0.01\n";
enum { ROWS = 45, INPUTS = 6, CLASSES = 3 };

static sherd__recipe recipe;
static double inputs[ROWS * INPUTS];
static uint32_t labels[ROWS], order[ROWS];
static sherd__dataset data;

static uint64_t state = 1;

static uint64_t next_random(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return state >> 33;
}

static void choose(const char *which)
{
    sherd_diag d = { 0 };
    if (sherd__recipe_parse(&recipe, which, strlen(which), "test", SHERD__RECIPE_NETWORK, &d))
        fail_msg("%s", d.message);
}

static int set_up(void **s)
{
    (void)s;
    choose(text);
    for (size_t i = 0; i < ROWS * INPUTS; i++)
        inputs[i] = (double)next_random() / 0x1p30 - 1;
    for (uint32_t i = 0; i < ROWS; i++) {
        labels[i] = (uint32_t)(next_random() % CLASSES);
        order[i] = (i * 7) % ROWS == 0 && i ? i : (i * 7) % ROWS;
    }
    data = (sherd__dataset){ .x = sherd_view_c(inputs, SHERD_F64, ROWS, INPUTS),
                             .targets = { .labels = labels }, .classes = CLASSES,
                             .width = CLASSES };
    return 0;
}

/* ---- a run ----------------------------------------------------------------------------------- */

typedef struct run {
    sherd__network *network;
    sherd__optimiser optimiser;
    sherd__stepper stepper;
    sherd__gradients_update last;
    uint64_t updates, stalest;
    double cost;
    uint64_t hits;
} run;

static void on_update(void *ctx, const sherd__gradients_update *u)
{
    run *r = ctx;
    r->last = *u;
    r->updates++;
    if (u->staleness > r->stalest) r->stalest = u->staleness;
}

static void draw(run *r)
{
    sherd_entropy_seeded e;
    sherd_entropy from = sherd__entropy_seeded(&e, 11);
    sherd__network_draw(r->network, &from, 0);
}

static void begin(run *r, sherd__gradient_engine engine, sherd__gradients_options o)
{
    sherd_diag d = { 0 };
    memset(r, 0, sizeof *r);
    assert_int_equal(sherd__recipe_network(&recipe, ROWS, &r->network, &d), 0);
    draw(r);
    sherd__optimiser_spec spec = { .method = SHERD__SGD };
    if (!o.local_steps) spec.method = SHERD__MOMENTUM;
    assert_int_equal(sherd__optimiser_init(&r->optimiser, &spec, sherd__network_count(r->network),
                                           &d), 0);
    o.recipe = &recipe;
    o.data = &data;
    o.network = r->network;
    o.optimiser = &r->optimiser;
    o.engine = engine;
    o.note = on_update;
    o.note_ctx = r;
    if (sherd__stepper_gradients(&r->stepper, &o, &d)) fail_msg("%s", d.message);
}

static void end(run *r)
{
    sherd__stepper_free(r->stepper);
    sherd__optimiser_fini(&r->optimiser);
    sherd__network_free(r->network);
}

static int one_step(run *r, uint64_t number, size_t len, double rate, sherd_diag *d)
{
    sherd__step s = { .number = number, .rate = rate, .rows = order, .len = len };
    sherd__step_result out = { 0 };
    int err = r->stepper.ops->step(r->stepper.ctx, &s, &out, d);
    if (!err) r->cost = out.cost, r->hits = out.hits;
    return err;
}

static void steps(run *r, unsigned n, size_t len)
{
    sherd_diag d = { 0 };
    for (unsigned i = 0; i < n; i++)
        if (one_step(r, i, len, 0.1, &d)) fail_msg("%s", d.message);
    assert_int_equal(r->stepper.ops->settle(r->stepper.ctx, &d), 0);
}

static sherd__gradient_engine threads(unsigned n, unsigned bits)
{
    sherd__gradient_engine e;
    sherd_diag d = { 0 };
    if (sherd__gradients_here(&e, &recipe, &data, ROWS, bits, n, &d)) fail_msg("%s", d.message);
    return e;
}

/* The bits of parameters after some steps. */
static void params_after(double *out, sherd__gradient_engine e, sherd__gradients_options o,
                         size_t len)
{
    run r;
    begin(&r, e, o);
    steps(&r, 6, len);
    memcpy(out, sherd__network_params(r.network),
           sherd__network_count(r.network) * sizeof(double));
    end(&r);
}

#define COUNT (6 * 5 + 5 + 5 * 4 + 4 + 4 * 3 + 3)

/* ---- an engine of the test's own ------------------------------------------------------------- */

typedef struct mock {
    sherd__grader *grader;
    sherd__part *queue[64];
    uint32_t len, workers;
    uint32_t grain, roomy;    /* shards of a part; the most that it was ever allowed */
    uint32_t lost;            /* this part in the order of posts is dropped */
    bool oldest_last, reverse;
    uint32_t posts, most;     /* most: under way at once */
    unsigned fail_after;      /* next fails then; 0: never */
    unsigned nexts;
    const sherd__sums *sums;  /* of the last part */
    int32_t scales[3];
    sherd__local_steps local[8]; /* of shards */
} mock;

static uint32_t mock_workers(void *ctx)
{
    return ((mock *)ctx)->workers;
}

static uint32_t mock_grain(void *ctx, uint32_t most)
{
    mock *m = ctx;
    if (most > m->roomy) m->roomy = most;
    return m->grain < 1 ? 1 : m->grain < most ? m->grain : most;
}

static int mock_post(void *ctx, sherd__part *p, sherd_diag *d)
{
    mock *m = ctx;
    (void)d;
    p->by = m->posts++;
    m->sums = p->sums;
    memcpy(m->scales, p->scales, sizeof m->scales);
    for (uint32_t i = p->first; p->local && i < p->first + p->shards && i < 8; i++)
        m->local[i] = p->local[i];
    m->queue[m->len++] = p;
    if (m->len > m->most) m->most = m->len;
    return SHERD_OK;
}

static unsigned lent, given_back; /* sums, by the mock to the stepper */

static void take_back(void *sums)
{
    given_back++;
    free(sums);
}

static void mock_grade(mock *m, sherd__part *p)
{
    void *sums[3];
    sherd__grading how = { .scales = p->scales, .room = p->room, .sums = sums };
    for (size_t t = 0; t < 3; t++) sums[t] = calloc(sherd__grader_count(m->grader, t), 8);
    p->err = 0;
    p->why = (sherd_diag){ 0 };
    for (uint32_t i = p->first; i < p->first + p->shards && !p->err; i++) {
        size_t len = p->at[i + 1] - p->at[i];
        double x[ROWS * INPUTS];
        uint32_t l[ROWS];
        const double *at = p->params->values;
        for (size_t t = 0; t < 3; at += sherd__grader_count(m->grader, t), t++)
            memcpy(sherd__grader_params(m->grader, t), at, 8 * sherd__grader_count(m->grader, t));
        sherd__shard_inputs(&data, p->rows + p->at[i], len, x);
        sherd__shard_targets(&data, p->rows + p->at[i], len, l);
        sherd__shard s = { sherd_view_c(x, SHERD_F64, len, INPUTS), { .labels = l } };
        if (p->local) how.local = p->local[i];
        p->err = sherd__grader_run(m->grader, &s, &how, &p->costs[i], &p->hits[i], &p->why);
    }
    for (size_t t = 0; t < 3; t++) {
        if (p->err) {
            free(sums[t]);
            continue;
        }
        lent++;
        sherd__sums_take(p->sums, t, sums[t], take_back, sums[t]);
    }
}

static int mock_next(void *ctx, sherd__part **out, sherd_diag *d)
{
    mock *m = ctx;
    (void)d;
    if (m->fail_after && ++m->nexts >= m->fail_after) return SHERD_EFEWNODES;
    assert_true(m->len > 0);
    uint32_t pick = m->reverse ? m->len - 1 : (uint32_t)(next_random() % m->len);
    if (m->oldest_last) pick = m->len > 1 ? 1 : 0;
    sherd__part *p = *out = m->queue[pick];
    memmove(&m->queue[pick], &m->queue[pick + 1], (--m->len - pick) * sizeof *m->queue);
    p->dropped = m->lost && p->by + 1 == m->lost;
    if (!p->dropped) mock_grade(m, p);
    return SHERD_OK;
}

static void mock_free(void *ctx)
{
    sherd__grader_free(((mock *)ctx)->grader);
}

static const sherd__gradient_engine_ops mock_ops = { "mock", mock_workers, mock_grain, mock_post,
                                                     mock_next, mock_free };

static sherd__gradient_engine mock_engine(mock *m, unsigned bits)
{
    assert_int_equal(sherd__grader_new(&m->grader, &recipe, ROWS, bits, false, NULL), 0);
    return (sherd__gradient_engine){ &mock_ops, m };
}

/* ---- synchronous ----------------------------------------------------------------------------- */

static void the_bits_depend_on_neither_threads_nor_the_order_of_arrival(void **s)
{
    (void)s;
    const unsigned counts[] = { 1, 2, 3, 5 };
    for (unsigned bits = 17; bits <= 40; bits += 23) {
        double first[COUNT], other[COUNT];
        for (size_t len = ROWS; len >= 1; len = len > 7 ? 7 : len == 7 ? 1 : 0) {
            sherd__gradients_options o = { .bits = bits, .shards = 4 };
            params_after(first, threads(1, bits), o, len);
            for (size_t i = 1; i < 4; i++) {
                params_after(other, threads(counts[i], bits), o, len);
                assert_memory_equal(first, other, sizeof first);
            }
            for (unsigned k = 0; k < 4; k++) {
                mock m = { .workers = 1 + k };
                params_after(other, mock_engine(&m, bits), o, len);
                assert_memory_equal(first, other, sizeof first);
            }
        }
    }
}

/* Number by number what a step makes of its sums; their greatest by tier. */
static void update_by_hand(const run *r, const mock *m, sherd__optimiser *o, double *params,
                           double *gradient, double most[3])
{
    size_t at = 0, tier = 0;
    for (size_t i = 0; i < sherd__network_len(r->network); i++) {
        const sherd__layer *l = sherd__network_layer(r->network, i);
        const int64_t *sum = l->cols ? m->sums->of[tier] : NULL;
        if (!sum) continue;
        most[tier] = 0;
        for (size_t k = 0; k < l->rows * l->cols + l->cols; k++, at++) {
            gradient[at] = (double)sum[k] * ldexp(1, -m->scales[tier]) / ROWS;
            if (k < l->rows * l->cols) gradient[at] += recipe.l2 * params[at];
            most[tier] = fmax(most[tier], fabs(gradient[at]));
        }
        tier++;
    }
    sherd__optimiser_begin(o);
    sherd__optimiser_apply(o, 0.1, 0, at, params, gradient);
}

/* More numbers than are updated at a time, by one thread: peaks decide the next step's scales. */
static void an_update_of_many_numbers_is_one_of_each(void **s)
{
    (void)s;
    sherd_diag d = { 0 };
    mock m = { .workers = 2 };
    run r;
    choose("input = 6\nlayer = dense 9000\nlayer = relu\nlayer = dense 21\nlayer = tanh\n"
           "layer = dense 3\nloss = cross-entropy\nl2 = 0.01\n");
    begin(&r, mock_engine(&m, 17), (sherd__gradients_options){ .bits = 17, .shards = 4 });
    size_t count = sherd__network_count(r.network), bytes = count * sizeof(double);
    double *params = malloc(bytes), *gradient = malloc(bytes), most[3];
    sherd__optimiser o;
    sherd__optimiser_spec spec = { .method = SHERD__MOMENTUM };
    assert_int_equal(sherd__optimiser_init(&o, &spec, count, &d), 0);
    memcpy(params, sherd__network_params(r.network), bytes);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(one_step(&r, i, ROWS, 0.1, &d), 0);
        for (size_t t = 0; t < 3 && i > 0; t++) {
            int e;
            frexp(most[t] * ROWS, &e);
            assert_int_equal(m.scales[t], 60 - 24 - e);
        }
        update_by_hand(&r, &m, &o, params, gradient, most);
        assert_memory_equal(params, sherd__network_params(r.network), bytes);
        assert_memory_equal(gradient, sherd__network_gradient(r.network), bytes);
    }
    sherd__optimiser_fini(&o);
    free(params);
    free(gradient);
    end(&r);
    choose(text);
}

static void a_step_is_that_of_the_whole_batch(void **s)
{
    (void)s;
    for (unsigned bits = 0; bits <= 40; bits += 40) {
        run r;
        sherd_diag d = { 0 };
        begin(&r, threads(2, bits), (sherd__gradients_options){ .bits = bits, .shards = 4 });
        sherd__network *n;
        sherd__optimiser o;
        sherd__stepper central;
        sherd_multiplier products;
        sherd__optimiser_spec spec = { .method = SHERD__MOMENTUM };
        sherd__step_result out = { 0 };
        double x[ROWS * INPUTS];
        uint32_t l[ROWS];
        assert_int_equal(sherd_multiplier_local(bits, &products, &d), 0);
        assert_int_equal(sherd__recipe_network(&recipe, ROWS, &n, &d), 0);
        memcpy(sherd__network_params(n), sherd__network_params(r.network), sizeof(double) * COUNT);
        assert_int_equal(sherd__optimiser_init(&o, &spec, COUNT, &d), 0);
        assert_int_equal(sherd__stepper_products(&central, n, &o,
                                                 (sherd__engine){ .products = products }, &d), 0);
        sherd__shard_inputs(&data, order, ROWS, x);
        sherd__shard_targets(&data, order, ROWS, l);
        sherd__step step = { .rate = 0.1, .rows = order, .len = ROWS,
                             .batch = { .x = sherd_view_c(x, SHERD_F64, ROWS, INPUTS),
                                        .targets = { .labels = l } } };
        for (unsigned i = 0; i < 5; i++) {
            step.number = i;
            assert_int_equal(central.ops->step(central.ctx, &step, &out, &d), 0);
            assert_int_equal(one_step(&r, i, ROWS, 0.1, &d), 0);
            assert_true(fabs(out.cost - r.cost) < 1e-9);
            assert_int_equal(out.hits, r.hits);
            for (size_t k = 0; k < COUNT; k++)
                assert_true(fabs(sherd__network_params(n)[k] -
                                 sherd__network_params(r.network)[k]) < 1e-9);
        }
        sherd__stepper_free(central);
        sherd__optimiser_fini(&o);
        sherd__network_free(n);
        sherd_multiplier_free(products);
        end(&r);
    }
}

static void a_gradient_that_fits_no_scale_is_graded_with_a_coarser_one(void **s)
{
    (void)s;
    double first[COUNT], other[COUNT];
    run r;
    sherd_diag d = { 0 };
    for (unsigned k = 0; k < 3; k++) {
        mock m = { .workers = 1 + k };
        begin(&r, mock_engine(&m, 30), (sherd__gradients_options){ .bits = 30, .shards = 5 });
        for (size_t i = 0; i < COUNT; i++) /* what the last step is taken to have been */
            sherd__network_layer(r.network, 0)->weights_gradient[i] = 1e-250;
        assert_int_equal(one_step(&r, 0, ROWS, 0.1, &d), 0);
        assert_true(sherd__gradients_stats_of(&r.stepper)->rescaled >= 2);
        memcpy(k ? other : first, sherd__network_gradient(r.network), sizeof first);
        if (k) assert_memory_equal(first, other, sizeof first);
        end(&r);
    }
    begin(&r, threads(1, 30), (sherd__gradients_options){ .bits = 30, .shards = 5 });
    assert_int_equal(one_step(&r, 0, ROWS, 0.1, &d), 0);
    assert_int_equal(sherd__gradients_stats_of(&r.stepper)->rescaled, 0);
    for (size_t i = 0; i < COUNT; i++)
        assert_true(fabs(first[i] - sherd__network_gradient(r.network)[i]) < 1e-5);
    end(&r);
}

static void what_diverges_is_said_and_changes_nothing(void **s)
{
    (void)s;
    for (unsigned bits = 0; bits <= 17; bits += 17) {
        run r;
        sherd_diag d = { 0 };
        double before[COUNT];
        begin(&r, threads(2, bits), (sherd__gradients_options){ .bits = bits });
        sherd__network_params(r.network)[COUNT - 1] = 1e308;
        sherd__network_params(r.network)[COUNT - 2] = -1e308;
        memcpy(before, sherd__network_params(r.network), sizeof before);
        assert_int_equal(one_step(&r, 0, ROWS, 0.1, &d), SHERD_ERANGE);
        assert_true(d.message[0]);
        assert_memory_equal(before, sherd__network_params(r.network), sizeof before);
        assert_int_equal(r.updates, 0);
        end(&r);
    }
}

static void a_dropped_part_counts_for_nothing(void **s)
{
    (void)s;
    run r, rest;
    sherd_diag d = { 0 };
    mock m = { .workers = 3, .lost = 3 };
    begin(&r, mock_engine(&m, 40), (sherd__gradients_options){ .bits = 40, .shards = 3 });
    assert_int_equal(one_step(&r, 0, ROWS, 0.1, &d), 0);
    assert_int_equal(r.last.dropped, 1);
    assert_int_equal(r.last.parts, 2);
    assert_int_equal(r.last.examples, 30);
    begin(&rest, threads(1, 40), (sherd__gradients_options){ .bits = 40, .shards = 2 });
    assert_int_equal(one_step(&rest, 0, 30, 0.1, &d), 0);
    for (size_t k = 0; k < COUNT; k++)
        assert_true(fabs(sherd__network_gradient(r.network)[k] -
                         sherd__network_gradient(rest.network)[k]) < 1e-9);
    assert_true(fabs(r.cost - rest.cost) < 1e-9);
    end(&r);
    end(&rest);
}

static void a_run_that_is_resumed_with_its_gradient_makes_the_same_bits(void **s)
{
    (void)s;
    run whole, half;
    sherd__gradients_options o = { .bits = 17 };
    sherd_diag d = { 0 };
    begin(&whole, threads(1, 17), o);
    steps(&whole, 3, ROWS);
    begin(&half, threads(2, 17), o);
    memcpy(sherd__network_params(half.network), sherd__network_params(whole.network),
           COUNT * sizeof(double));
    memcpy(half.optimiser.state, whole.optimiser.state, COUNT * sizeof(double));
    memcpy(sherd__network_layer(half.network, 0)->weights_gradient,
           sherd__network_gradient(whole.network), COUNT * sizeof(double));
    for (unsigned i = 3; i < 6; i++) {
        assert_int_equal(one_step(&whole, i, ROWS, 0.1, &d), 0);
        assert_int_equal(one_step(&half, i, ROWS, 0.1, &d), 0);
    }
    assert_memory_equal(sherd__network_params(half.network), sherd__network_params(whole.network),
                        COUNT * sizeof(double));
    end(&whole);
    end(&half);
}

static void an_engine_that_fails_ends_the_steps(void **s)
{
    (void)s;
    for (unsigned async = 0; async < 2; async++) {
        run r;
        sherd_diag d = { 0 };
        mock m = { .workers = 3, .fail_after = 2 };
        begin(&r, mock_engine(&m, 17),
              (sherd__gradients_options){ .bits = 17, .async = async > 0,
                                          .staleness_max = UINT64_MAX });
        assert_int_equal(one_step(&r, 0, ROWS, 0.1, &d), SHERD_EFEWNODES);
        assert_int_equal(one_step(&r, 1, ROWS, 0.1, &d), SHERD_EFEWNODES);
        end(&r);
    }
}

/* ---- local steps ----------------------------------------------------------------------------- */

static void one_local_step_of_all_shards_is_a_step_of_the_batch(void **s)
{
    (void)s;
    run one, local;
    sherd_diag d = { 0 };
    sherd__gradients_options o = { .bits = 0, .shards = 3 };
    begin(&one, threads(1, 0), o);
    o.local_steps = 1;
    begin(&local, threads(2, 0), o);
    for (unsigned i = 0; i < 2; i++) { /* momentum differs from plain descent from the second on */
        if (i == 0) assert_int_equal(one_step(&one, i, ROWS, 0.1, &d), 0);
        if (i == 0) assert_int_equal(one_step(&local, i, ROWS, 0.1, &d), 0);
    }
    for (size_t k = 0; k < COUNT; k++)
        assert_true(fabs(sherd__network_params(one.network)[k] -
                         sherd__network_params(local.network)[k]) < 1e-12);
    assert_true(fabs(one.cost - local.cost) < 1e-9);
    end(&one);
    end(&local);
}

static void local_steps_have_the_same_bits_however_they_are_dealt(void **s)
{
    (void)s;
    double first[COUNT], other[COUNT];
    sherd__gradients_options o = { .bits = 17, .shards = 4, .local_steps = 5, .local_batch = 3 };
    for (unsigned weighted = 0; weighted < 2; weighted++) {
        o.weighted = weighted > 0;
        params_after(first, threads(1, 17), o, ROWS);
        params_after(other, threads(3, 17), o, ROWS);
        assert_memory_equal(first, other, sizeof first);
        mock m = { .workers = 2, .reverse = true };
        params_after(other, mock_engine(&m, 17), o, ROWS);
        assert_memory_equal(first, other, sizeof first);
    }
}

/* Shards of 12, 11, 11 and 11 examples: two of 24 steps are lacking, and a step contracts what is
 * regularised by 1 - l2 rate. Where it goes to is the mean by these weights. */
static void shards_that_lack_steps_weigh_what_these_would_have_contracted(void **s)
{
    (void)s;
    for (unsigned weighted = 0; weighted < 2; weighted++) {
        run r;
        sherd_diag d = { 0 };
        mock m = { .workers = 2 };
        double rate = 0.1, kept = 1 - recipe.l2 * rate, less = weighted ? kept * kept : 1;
        double before[COUNT], all = 1 + 3 * less;
        begin(&r, mock_engine(&m, 17),
              (sherd__gradients_options){ .bits = 17, .shards = 4, .local_steps = 24,
                                          .weighted = weighted > 0 });
        memcpy(before, sherd__network_params(r.network), sizeof before);
        assert_int_equal(one_step(&r, 0, ROWS, rate, &d), 0);
        for (size_t i = 0; i < 4; i++) {
            assert_int_equal(m.local[i].steps, weighted && i ? 22 : 24);
            assert_true(fabs(m.local[i].weight - (i ? less : 1)) < 1e-15);
        }
        for (size_t k = 0; k < m.sums->counts[0]; k++) {
            double moved = (double)((const int64_t *)m.sums->of[0])[k] * ldexp(1, -m.scales[0]);
            double now = sherd__network_params(r.network)[k];
            assert_true(fabs(before[k] - moved / all - now) < 1e-13);
        }
        end(&r);
    }
}

/* ---- asynchronous ---------------------------------------------------------------------------- */

static void no_gradient_is_staler_than_the_bound(void **s)
{
    (void)s;
    for (uint64_t most = 0; most <= 3; most++)
        for (unsigned k = 0; k < 3; k++) {
            run r;
            mock m = { .workers = 5, .oldest_last = k == 0, .reverse = k == 1 };
            begin(&r, mock_engine(&m, 17),
                  (sherd__gradients_options){ .bits = 17, .shards = 5, .async = true,
                                              .staleness_max = most });
            steps(&r, 20, ROWS);
            const sherd__gradients_stats *st = sherd__gradients_stats_of(&r.stepper);
            assert_true(r.stalest <= most);
            assert_true(st->staleness_most <= most);
            assert_int_equal(st->parts, 100);
            assert_int_equal(st->examples, 20 * ROWS);
            assert_true(m.most <= 5);
            if (most > 0) assert_true(st->staleness_sum > 0);
            end(&r);
        }
}

static void without_a_bound_everything_is_applied_as_it_comes(void **s)
{
    (void)s;
    run r;
    mock m = { .workers = 4, .oldest_last = true };
    begin(&r, mock_engine(&m, 17),
          (sherd__gradients_options){ .bits = 17, .shards = 4, .async = true,
                                      .staleness_max = UINT64_MAX });
    steps(&r, 10, ROWS);
    assert_int_equal(r.updates, 40);
    assert_true(r.stalest >= 30); /* the very first one comes last */
    end(&r);
}

static void asynchronous_training_comes_down_too(void **s)
{
    (void)s;
    for (unsigned local = 0; local < 2; local++) {
        run r;
        sherd_diag d = { 0 };
        double first;
        begin(&r, threads(3, 17),
              (sherd__gradients_options){ .bits = 17, .shards = 3, .async = true,
                                          .staleness_max = 4, .local_steps = local * 2 });
        assert_int_equal(one_step(&r, 0, ROWS, 0.1, &d), 0);
        first = r.cost;
        for (unsigned i = 1; i < 200; i++)
            if (one_step(&r, i, ROWS, 0.1, &d)) fail_msg("%s", d.message);
        assert_true(r.cost < first - 0.1);
        assert_int_equal(r.stepper.ops->settle(r.stepper.ctx, &d), 0);
        end(&r);
    }
}

static void one_worker_without_delay_is_a_series_of_steps(void **s)
{
    (void)s;
    run r;
    begin(&r, threads(1, 17),
          (sherd__gradients_options){ .bits = 17, .shards = 4, .async = true,
                                      .staleness_max = UINT64_MAX });
    steps(&r, 3, ROWS);
    assert_int_equal(r.updates, 12);
    assert_int_equal(r.stalest, 0);
    end(&r);
}

/* One part of all shards, and nobody beside it, is a synchronous step. */
static void a_part_of_all_shards_is_a_whole_step(void **s)
{
    (void)s;
    for (unsigned k = 0; k < 3; k++) { /* gradients; local steps; weighted ones */
        run here, there;
        mock one = { .workers = 1 }, all = { .workers = 1, .grain = 5 };
        sherd__gradients_options o = { .bits = 17, .shards = 5, .staleness_max = UINT64_MAX,
                                       .local_steps = k ? 4 : 0, .weighted = k == 2 };
        begin(&here, mock_engine(&one, 17), o);
        o.async = true;
        begin(&there, mock_engine(&all, 17), o);
        for (unsigned i = 0; i < 6; i++) {
            steps(&here, 1, ROWS);
            steps(&there, 1, ROWS);
            assert_memory_equal(sherd__network_params(here.network),
                                sherd__network_params(there.network), COUNT * sizeof(double));
            assert_int_equal(here.hits, there.hits);
            assert_true(fabs(here.cost - there.cost) < 0.01); /* L2 before or after the update */
        }
        assert_int_equal(all.posts, one.posts);
        assert_int_equal(all.roomy, 5);
        end(&here);
        end(&there);
    }
}

/* 8 shards in parts of 3, 3 and 2. */
static void shards_of_a_part_count_together(void **s)
{
    (void)s;
    run r;
    sherd_diag d = { 0 };
    mock m = { .workers = 2, .grain = 3 };
    begin(&r, mock_engine(&m, 17),
          (sherd__gradients_options){ .bits = 17, .shards = 8, .async = true,
                                      .staleness_max = UINT64_MAX });
    steps(&r, 10, ROWS);
    assert_int_equal(r.stepper.ops->settle(r.stepper.ctx, &d), 0);
    const sherd__gradients_stats *st = sherd__gradients_stats_of(&r.stepper);
    assert_int_equal(m.posts, 30);
    assert_int_equal(st->parts, 30);
    assert_int_equal(st->updates, 30);
    assert_int_equal(st->examples, 10 * ROWS);
    end(&r);
}

static void however_large_parts_are_everybody_has_one_of_each_step(void **s)
{
    (void)s;
    for (uint32_t workers = 1; workers <= 9; workers++) {
        run r;
        mock m = { .workers = workers, .grain = 99 };
        begin(&r, mock_engine(&m, 17),
              (sherd__gradients_options){ .bits = 17, .shards = 8, .async = true,
                                          .staleness_max = UINT64_MAX });
        steps(&r, 4, ROWS);
        assert_int_equal(m.roomy, workers <= 4 ? 8 / workers : 0);
        assert_true(m.posts >= 4 * (workers < 8 ? workers : 8));
        end(&r);
    }
}

/* ---- adding up ------------------------------------------------------------------------------- */

static void an_entry_beyond_its_room_is_told(void **s)
{
    (void)s;
    int64_t sums[5] = { 0 };
    double v[5] = { 1, -2, 3.5, 2.5, -8 };
    assert_true(sherd__grader_add(sums, v, 5, 1, 3));
    int64_t want[5] = { 1, -2, 4, 2, -8 };
    assert_memory_equal(sums, want, sizeof sums);
    v[4] = nextafter(-8, -9);
    assert_false(sherd__grader_add(sums, v, 5, 1, 3));
    v[4] = NAN;
    assert_false(sherd__grader_add(sums, v, 5, 1, 3));
    v[4] = INFINITY;
    assert_false(sherd__grader_add(sums, v, 5, 1, 62));
    v[4] = -1;
    assert_true(sherd__grader_add(sums, v, 5, 0x1p60, 62));
    assert_int_equal(sums[4], INT64_C(-8) - 8 - 8 - 8 - (INT64_C(1) << 60) + 24);
    assert_true(sherd__grader_add(sums, v, 0, 1, 0));
}

static void memory_of_a_first_sum_is_kept_for_a_step_and_then_given_back(void **s)
{
    (void)s;
    run r;
    mock m = { .workers = 3 };
    lent = given_back = 0;
    begin(&r, mock_engine(&m, 17), (sherd__gradients_options){ .shards = 6, .bits = 17 });
    for (unsigned n = 1; n <= 4; n++) {
        steps(&r, 1, ROWS);
        assert_int_equal(lent, 9 * n);           /* 3 parts of 3 tiers */
        assert_int_equal(lent - given_back, 3);  /* the first of each tier */
    }
    end(&r);
    assert_int_equal(lent, given_back);
}

static void lent_parameters_are_read_where_they_lie_and_for_one_run(void **s)
{
    (void)s;
    sherd__grader *g;
    sherd_diag d = { 0 };
    int64_t out[4][3][64];
    int32_t scales[3] = { 40, 40, 40 };
    double own[3][64], theirs[3][64], cost;
    uint64_t hits = 0;
    sherd__shard shard = { data.x, data.targets };
    assert_int_equal(sherd__grader_new(&g, &recipe, ROWS, 17, false, &d), 0);
    for (size_t t = 0; t < 3; t++)
        for (size_t i = 0; i < sherd__grader_count(g, t); i++) {
            own[t][i] = (double)next_random() / 0x1p30 - 1;
            theirs[t][i] = (double)next_random() / 0x1p30 - 1;
        }
    for (int pass = 0; pass < 4; pass++) { /* own; theirs, copied; theirs, lent; own again */
        void *sums[3] = { out[pass][0], out[pass][1], out[pass][2] };
        sherd__grading how = { .scales = scales, .room = 60, .sums = sums, .fresh = true };
        for (size_t t = 0; t < 3; t++) {
            size_t n = sherd__grader_count(g, t);
            if (pass < 3) memcpy(sherd__grader_params(g, t), pass == 1 ? theirs[t] : own[t], 8 * n);
            if (pass == 2) sherd__grader_lend(g, t, theirs[t]);
            if (pass == 2) assert_memory_equal(sherd__grader_params(g, t), own[t], 8 * n);
        }
        assert_int_equal(sherd__grader_run(g, &shard, &how, &cost, &hits, &d), 0);
    }
    for (size_t t = 0; t < 3; t++) {
        size_t n = sherd__grader_count(g, t);
        assert_memory_equal(out[2][t], out[1][t], 8 * n);
        assert_memory_equal(out[3][t], out[0][t], 8 * n);
        assert_memory_not_equal(out[0][t], out[1][t], 8 * n);
    }
    sherd__grader_free(g);
}

static void no_allocation_that_fails_leaks_or_lies(void **s)
{
    (void)s;
    for (size_t n = 1; n < 400; n++) {
        sherd__gradient_engine e = { 0 };
        sherd__stepper st = { 0 };
        sherd__network *net = NULL;
        sherd__optimiser o = { 0 };
        sherd__optimiser_spec spec = { .method = SHERD__SGD };
        sherd_diag d = { 0 };
        sherd__step step = { .rate = 0.1, .rows = order, .len = ROWS };
        sherd__step_result out = { 0 };
        assert_int_equal(sherd__recipe_network(&recipe, ROWS, &net, &d), 0);
        assert_int_equal(sherd__optimiser_init(&o, &spec, COUNT, &d), 0);
        sherd__gradients_options op = { .recipe = &recipe, .data = &data, .network = net,
                                        .optimiser = &o, .bits = 17, .async = n % 2,
                                        .staleness_max = 2 };
        sherd__alloc_fail_nth(n);
        int err = sherd__gradients_here(&e, &recipe, &data, ROWS, 17, 2, &d);
        op.engine = e;
        if (!err) err = sherd__stepper_gradients(&st, &op, &d);
        if (err) sherd__gradient_engine_free(e);
        if (!err) err = st.ops->step(st.ctx, &step, &out, &d);
        sherd__alloc_fail_nth(0);
        assert_true(err == 0 || (err == SHERD_ENOMEM && d.message[0]));
        sherd__stepper_free(st);
        sherd__optimiser_fini(&o);
        sherd__network_free(net);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bits_depend_on_neither_threads_nor_the_order_of_arrival),
        cmocka_unit_test(an_update_of_many_numbers_is_one_of_each),
        cmocka_unit_test(a_step_is_that_of_the_whole_batch),
        cmocka_unit_test(a_gradient_that_fits_no_scale_is_graded_with_a_coarser_one),
        cmocka_unit_test(what_diverges_is_said_and_changes_nothing),
        cmocka_unit_test(a_dropped_part_counts_for_nothing),
        cmocka_unit_test(a_run_that_is_resumed_with_its_gradient_makes_the_same_bits),
        cmocka_unit_test(an_engine_that_fails_ends_the_steps),
        cmocka_unit_test(one_local_step_of_all_shards_is_a_step_of_the_batch),
        cmocka_unit_test(local_steps_have_the_same_bits_however_they_are_dealt),
        cmocka_unit_test(shards_that_lack_steps_weigh_what_these_would_have_contracted),
        cmocka_unit_test(no_gradient_is_staler_than_the_bound),
        cmocka_unit_test(without_a_bound_everything_is_applied_as_it_comes),
        cmocka_unit_test(asynchronous_training_comes_down_too),
        cmocka_unit_test(one_worker_without_delay_is_a_series_of_steps),
        cmocka_unit_test(a_part_of_all_shards_is_a_whole_step),
        cmocka_unit_test(shards_of_a_part_count_together),
        cmocka_unit_test(however_large_parts_are_everybody_has_one_of_each_step),
        cmocka_unit_test(an_entry_beyond_its_room_is_told),
        cmocka_unit_test(memory_of_a_first_sum_is_kept_for_a_step_and_then_given_back),
        cmocka_unit_test(lent_parameters_are_read_where_they_lie_and_for_one_run),
        cmocka_unit_test(no_allocation_that_fails_leaks_or_lies),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
