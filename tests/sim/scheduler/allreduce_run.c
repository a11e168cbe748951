/*
 * Trainings in the world of all-reduce groups: the network, its steps, and the same training in one
 * process.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/sim/scheduler/allreduce_world.h"
#include "tests/support/draw.h"

void allreduce_run_begin(run *r, world *w, const training *t)
{
    sherd_diag d = { 0 };
    *r = (run){ 0 };
    assert_int_equal(sherd__recipe_network(&w->recipe, 1, &r->network, &d), 0);
    double *p = sherd__network_params(r->network);
    double *g = sherd__network_layer(r->network, 0)->weights_gradient;
    for (size_t i = 0; i < COUNT; i++) p[i] = (double)((i * 37) % 19) / 19 - 0.5;
    for (size_t i = 0; i < COUNT; i++) g[i] = t->before;
    assert_int_equal(sherd__optimiser_init(&r->optimiser,
                                           &(sherd__optimiser_spec){ .method = t->method }, COUNT,
                                           &d),
                     0);
}

sherd__gradients_options allreduce_options(world *w, const training *t, run *r)
{
    return (sherd__gradients_options){ .recipe = &w->recipe,
                                       .data = &w->data,
                                       .network = r->network,
                                       .optimiser = &r->optimiser,
                                       .shards = t->shards,
                                       .bits = 20,
                                       .local_steps = t->local,
                                       .weighted = t->local > 1 };
}

int allreduce_run_steps(run *r, const training *t, unsigned steps, sherd_diag *d)
{
    static const uint8_t seed[32] = "orders";
    uint32_t rows[ROWS];
    sherd__train_order o;
    int err = 0;
    assert_int_equal(sherd__train_order_init(&o, t->order, ROWS, t->batch, seed, d), 0);
    for (unsigned k = 0; k < steps && !err; k++) {
        sherd__step_result out = { 0 };
        sherd__step s = { .number = k, .rate = 0.1, .rows = rows };
        s.len = sherd__train_order_rows(&o, k, rows);
        sherd__rows list = sherd__train_order_list(&o, k, &s.first);
        s.list = &list;
        err = r->stepper.ops->step(r->stepper.ctx, &s, &out, d);
        r->cost += out.cost;
        r->hits += out.hits;
    }
    sherd__train_order_fini(&o);
    return err ? err : r->stepper.ops->settle(r->stepper.ctx, d);
}

void allreduce_run_here(run *r, world *w, const training *t)
{
    sherd_diag d = { 0 };
    allreduce_run_begin(r, w, t);
    sherd__gradients_options g = allreduce_options(w, t, r);
    assert_int_equal(sherd__gradients_here(&g.engine, &w->recipe, &w->data,
                                           &(sherd__here_options){
                                               sherd__shard_most(t->batch, t->shards), 20, 1 },
                                           &d),
                     0);
    assert_int_equal(sherd__stepper_gradients(&r->stepper, &g, &d), 0);
    assert_int_equal(allreduce_run_steps(r, t, STEPS, &d), 0);
}

void allreduce_assert_same(const run *a, const run *b)
{
    size_t n = COUNT * sizeof(double);
    assert_memory_equal(sherd__network_params(a->network), sherd__network_params(b->network), n);
    assert_memory_equal(sherd__network_gradient(a->network), sherd__network_gradient(b->network),
                        n);
    if (a->optimiser.state_len)
        assert_memory_equal(a->optimiser.state, b->optimiser.state,
                            a->optimiser.state_len * sizeof(double));
    assert_int_equal(a->optimiser.steps, b->optimiser.steps);
    assert_true(a->cost == b->cost); /* including l2 */
    assert_int_equal(a->hits, b->hits);
}

void allreduce_run_end(run *r)
{
    sherd__stepper_free(r->stepper);
    sherd__network_free(r->network);
    sherd__optimiser_fini(&r->optimiser);
}

void allreduce_trial_open(trial *x, uint64_t seed, const training *t)
{
    x->t = *t;
    draw_state = seed;
    allreduce_world_open(&x->w, &x->t);
    allreduce_run_here(&x->here, &x->w, &x->t);
    allreduce_run_begin(&x->there, &x->w, &x->t);
}

void allreduce_trial_start(trial *x)
{
    allreduce_job_open(&x->w, &x->t, &x->there);
}

void allreduce_trial_train(trial *x)
{
    sherd_diag d = { 0 };
    if (allreduce_run_steps(&x->there, &x->t, STEPS, &d)) fail_msg("%s\n%s", d.message, x->w.log);
    allreduce_assert_same(&x->here, &x->there);
    sherd__allreduce_job_count(x->w.job, &x->s);
}

void allreduce_trial_close(trial *x)
{
    allreduce_world_close(&x->w);
    allreduce_run_end(&x->here);
    allreduce_run_end(&x->there);
}
