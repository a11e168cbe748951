/* The network, its runs and the engine for tests of gradients; see gradients_world.h. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "tests/support/draw.h"
#include "tests/unit/learn/gradients_world.h"

sherd__recipe grad_recipe;
sherd__dataset grad_data;
uint32_t grad_order[ROWS];

static double inputs[ROWS * INPUTS];
static uint32_t labels[ROWS];

static const char text[] = "input = 6\n"
                           "layer = dense 5\n"
                           "layer = tanh\n"
                           "layer = dense 4\n"
                           "layer = relu\n"
                           "layer = dense 3\n"
                           "loss = cross-entropy\n"
                           "l2 = 0.01\n";

void grad_choose(const char *which)
{
    sherd_diag d = { 0 };
    if (!which) which = text;
    if (sherd__recipe_parse(&grad_recipe, which, strlen(which), "test", SHERD__RECIPE_NETWORK, &d))
        fail_msg("%s", d.message);
}

int grad_set_up(void **s)
{
    (void)s;
    grad_choose(NULL);
    for (size_t i = 0; i < ROWS * INPUTS; i++) inputs[i] = (double)draw() / 0x1p30 - 1;
    for (uint32_t i = 0; i < ROWS; i++) {
        labels[i] = (uint32_t)(draw() % CLASSES);
        grad_order[i] = i * 7 % ROWS;
    }
    grad_data = (sherd__dataset){ .x = sherd_view_c(inputs, SHERD_F64, ROWS, INPUTS),
                                  .targets = { .labels = labels },
                                  .classes = CLASSES,
                                  .width = CLASSES };
    return 0;
}

/* ---- a run ----------------------------------------------------------------------------------- */

static void on_update(void *ctx, const sherd__gradients_update *u)
{
    grad_run *r = ctx;
    r->last = *u;
    r->updates++;
    if (u->staleness > r->stalest) r->stalest = u->staleness;
}

static void draw_parameters(grad_run *r)
{
    sherd__seeded e;
    sherd__entropy from = sherd__entropy_seeded(&e, 11);
    sherd__network_draw(r->network, &from, 0);
}

void grad_begin(grad_run *r, sherd__gradient_engine engine, sherd__gradients_options o)
{
    sherd_diag d = { 0 };
    memset(r, 0, sizeof *r);
    assert_int_equal(sherd__recipe_network(&grad_recipe, ROWS, &r->network, &d), 0);
    draw_parameters(r);
    sherd__optimiser_spec spec = { .method = SHERD__SGD };
    if (!o.local_steps) spec.method = SHERD__MOMENTUM;
    assert_int_equal(sherd__optimiser_init(&r->optimiser, &spec, sherd__network_count(r->network),
                                           &d),
                     0);
    o.recipe = &grad_recipe;
    o.data = &grad_data;
    o.network = r->network;
    o.optimiser = &r->optimiser;
    o.engine = engine;
    o.note = on_update;
    o.note_ctx = r;
    if (sherd__stepper_gradients(&r->stepper, &o, &d)) fail_msg("%s", d.message);
}

void grad_end(grad_run *r)
{
    sherd__stepper_free(r->stepper);
    sherd__optimiser_fini(&r->optimiser);
    sherd__network_free(r->network);
}

int grad_step(grad_run *r, uint64_t number, size_t len, double rate, sherd_diag *d)
{
    sherd__step s = { .number = number, .rate = rate, .rows = grad_order, .len = len };
    sherd__step_result out = { 0 };
    int err = r->stepper.ops->step(r->stepper.ctx, &s, &out, d);
    if (!err) r->cost = out.cost, r->hits = out.hits;
    return err;
}

void grad_steps(grad_run *r, unsigned n, size_t len)
{
    sherd_diag d = { 0 };
    for (unsigned i = 0; i < n; i++)
        if (grad_step(r, i, len, 0.1, &d)) fail_msg("%s", d.message);
    assert_int_equal(r->stepper.ops->settle(r->stepper.ctx, &d), 0);
}

sherd__gradient_engine grad_threads(unsigned n, unsigned bits)
{
    sherd__gradient_engine e;
    sherd_diag d = { 0 };
    if (sherd__gradients_here(&e, &grad_recipe, &grad_data, &(sherd__here_options){ ROWS, bits, n },
                              &d))
        fail_msg("%s", d.message);
    return e;
}

void grad_params_after(double *out, sherd__gradient_engine e, sherd__gradients_options o,
                       size_t len)
{
    grad_run r;
    grad_begin(&r, e, o);
    grad_steps(&r, 6, len);
    memcpy(out, sherd__network_params(r.network), sherd__network_count(r.network) * sizeof(double));
    grad_end(&r);
}

/* ---- an engine for the tests ----------------------------------------------------------------- */

static uint32_t mock_workers(void *ctx)
{
    return ((mock *)ctx)->workers;
}

static uint32_t mock_grain(void *ctx, uint32_t most)
{
    mock *m = ctx;
    if (most > m->roomy) m->roomy = most;
    return m->shards_per_task < 1 ? 1 : m->shards_per_task < most ? m->shards_per_task : most;
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

unsigned mock_lent, mock_given_back;

static void take_back(void *sums)
{
    mock_given_back++;
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
        sherd__shard_inputs(&grad_data, p->rows + p->at[i], len, x);
        sherd__shard_targets(&grad_data, p->rows + p->at[i], len, l);
        sherd__shard s = { sherd_view_c(x, SHERD_F64, len, INPUTS), { .labels = l } };
        if (p->local) how.local = p->local[i];
        p->err = sherd__grader_run(m->grader, &s, &how, &p->costs[i], &p->hits[i], &p->why);
    }
    for (size_t t = 0; t < 3; t++) {
        if (p->err) {
            free(sums[t]);
            continue;
        }
        mock_lent++;
        sherd__sums_take(p->sums, t, sums[t], take_back, sums[t]);
    }
}

static int mock_next(void *ctx, sherd__part **out, sherd_diag *d)
{
    mock *m = ctx;
    (void)d;
    if (m->fail_after && ++m->nexts >= m->fail_after) return SHERD_EFEWNODES;
    assert_true(m->len > 0);
    uint32_t pick = m->reverse ? m->len - 1 : (uint32_t)(draw() % m->len);
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

static const sherd__gradient_engine_ops mock_ops = { .name = "mock",
                                                     .workers = mock_workers,
                                                     .shards_per_task = mock_grain,
                                                     .post = mock_post,
                                                     .next = mock_next,
                                                     .free = mock_free };

sherd__gradient_engine mock_engine(mock *m, unsigned bits)
{
    assert_int_equal(sherd__grader_new(&m->grader, &grad_recipe, ROWS, bits, NULL, NULL), 0);
    return (sherd__gradient_engine){ &mock_ops, m };
}
