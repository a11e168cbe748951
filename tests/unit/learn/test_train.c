/* The training loop: the rows that a stepper receives, the order of callbacks, and that a resumed
 * run has the same bits. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "learn/train.h"
#include "matrix/view.h"
#include "tests/support/keep.h"

static const uint8_t seed[32] = { 4, 5, 6 };

/* ---- runs ------------------------------------------------------------------------------------ */

static sherd__recipe recipe_of(const char *more)
{
    char text[600];
    sherd__recipe r;
    sherd_diag d = { 0 };
    snprintf(text, sizeof text,
             "input = 2\nlayer = dense 12\nlayer = tanh\nlayer = dense 3\n"
             "loss = cross-entropy\ndata = spiral\nexamples = 61\nclasses = 3\n%s",
             more);
    if (sherd__recipe_parse(&r, text, strlen(text), "r", SHERD__RECIPE_ALL, &d) != SHERD_OK)
        fail_msg("%s", d.message);
    return r;
}

typedef struct rig {
    sherd__recipe recipe;
    sherd__dataset data;
    sherd__trainer *t;
    sherd__stepper stepper;
    sherd__engine e;
} rig;

static rig rig_of(const char *more, unsigned bits)
{
    rig g = { .recipe = recipe_of(more) };
    sherd_diag d = { 0 };
    assert_int_equal(sherd__generate_spiral(&g.data, g.recipe.examples, 3, seed, NULL), SHERD_OK);
    if (sherd__trainer_new(&g.t, &g.recipe, &g.data, &g.data, seed, &d) != SHERD_OK)
        fail_msg("%s", d.message);
    assert_int_equal(sherd_multiplier_local(&g.e.products, bits, NULL), SHERD_OK);
    assert_int_equal(sherd__stepper_products(&g.stepper, sherd__trainer_network(g.t),
                                             sherd__trainer_optimiser(g.t), g.e, NULL),
                     SHERD_OK);
    return g;
}

static void rig_free(rig *g)
{
    sherd__stepper_free(g->stepper);
    sherd__trainer_free(g->t);
    sherd_multiplier_free(g->e.products);
    sherd__dataset_fini(&g->data);
}

static void run(rig *g, const sherd__train_calls *calls)
{
    sherd_diag d = { 0 };
    if (sherd__trainer_run(g->t, g->stepper, g->e, calls, &d) != SHERD_OK)
        fail_msg("%s", d.message);
}

static void training_reaches_the_expected_accuracy(void **s)
{
    (void)s;
    rig g = rig_of("rate = 0.5\nsteps = 800\nbatch = 20\n", 0);
    run(&g, NULL);
    const sherd__train_state *st = sherd__trainer_state(g.t);
    assert_int_equal(st->step, 800);
    if (!(st->last_validation > 0.85)) fail_msg("accuracy %g", st->last_validation);
    rig_free(&g);
}

/* Moves the contents of a checkpoint into a new trainer. */
static void move(rig *from, rig *to)
{
    sherd__optimiser *a = sherd__trainer_optimiser(from->t), *b = sherd__trainer_optimiser(to->t);
    memcpy(sherd__network_params(sherd__trainer_network(to->t)),
           sherd__network_params(sherd__trainer_network(from->t)), a->count * sizeof(double));
    if (a->state_len > 0) memcpy(b->state, a->state, a->state_len * sizeof(double));
    sherd__optimiser_resume(b, a->steps);
    *sherd__trainer_state(to->t) = *sherd__trainer_state(from->t);
}

static int sum_costs(void *ctx, const sherd__train_epoch *e, bool report, sherd_diag *d)
{
    (void)report;
    (void)d;
    *(double *)ctx += e->cost + e->accuracy * 3;
    return SHERD_OK;
}

static void a_run_resumed_at_any_step_has_the_same_bits(void **s)
{
    (void)s;
    static const char *const more[] = { "order = given\nmethod = adam\n",
                                        "order = shuffled\nmethod = momentum\n",
                                        "order = batches\nschedule = linear 0.1 over 9\n",
                                        "order = drawn\nwarmup = 5\n" };
    for (size_t k = 0; k < 8; k++) {
        char text[200];
        unsigned bits = k < 4 ? 0 : 17;
        double whole = 0;
        snprintf(text, sizeof text, "%srate = 0.1\nsteps = 11\nbatch = 16\n", more[k % 4]);
        rig g = rig_of(text, bits);
        sherd__train_calls calls = { .epoch = sum_costs, .ctx = &whole, .keep = bits > 0 };
        run(&g, &calls);
        size_t count = sherd__network_count(sherd__trainer_network(g.t));
        for (uint64_t cut = 0; cut < 11; cut++) {
            double parts = 0;
            rig a = rig_of(text, bits), b = rig_of(text, bits);
            calls.ctx = &parts;
            calls.until = cut;
            if (cut > 0) run(&a, &calls);
            memset(sherd__network_params(sherd__trainer_network(b.t)), 0, count * sizeof(double));
            move(&a, &b);
            calls.until = 0;
            run(&b, &calls);
            assert_memory_equal(sherd__network_params(sherd__trainer_network(b.t)),
                                sherd__network_params(sherd__trainer_network(g.t)),
                                count * sizeof(double));
            assert_true(parts == whole); /* the figures, too */
            rig_free(&a);
            rig_free(&b);
        }
        rig_free(&g);
    }
}

static void equal_seeds_give_equal_bits_and_other_seeds_do_not(void **s)
{
    (void)s;
    rig a = rig_of("rate = 0.1\nsteps = 5\nbatch = 16\n", 17), b = a;
    uint8_t other[32] = { 7 };
    size_t count = sherd__network_count(sherd__trainer_network(a.t));
    b = rig_of("rate = 0.1\nsteps = 5\nbatch = 16\n", 17);
    run(&a, NULL);
    run(&b, NULL);
    assert_memory_equal(sherd__network_params(sherd__trainer_network(a.t)),
                        sherd__network_params(sherd__trainer_network(b.t)), count * sizeof(double));
    sherd__trainer *c;
    assert_int_equal(sherd__trainer_new(&c, &a.recipe, &a.data, NULL, other, NULL), SHERD_OK);
    rig_free(&b);
    b = rig_of("rate = 0.1\nsteps = 5\nbatch = 16\n", 17);
    assert_memory_not_equal(sherd__network_params(sherd__trainer_network(c)),
                            sherd__network_params(sherd__trainer_network(b.t)),
                            count * sizeof(double));
    sherd__trainer_free(c);
    rig_free(&a);
    rig_free(&b);
}

/* ---- inputs of a stepper --------------------------------------------------------------------- */

typedef struct fake {
    rig *g;
    unsigned traits;
    uint64_t nan_at, spoil_at, fail_at, late_at; /* step numbers from 1; 0: never */
    uint64_t stop_at;                            /* interrupted within that step */
    size_t settled, stepped, kept;
    char calls[200]; /* s step, t settle, e epoch, r epoch with report, c checkpoint */
} fake;

static void note(fake *f, char what)
{
    size_t n = strlen(f->calls);
    if (n + 1 < sizeof f->calls) f->calls[n] = what;
}

/* Compares the rows of a step as they are, as they were gathered, and as they are kept. */
static void look(fake *f, const sherd__step *s)
{
    const sherd__dataset *data = &f->g->data;
    assert_int_equal(s->batch.x.rows, s->len);
    for (size_t i = 0; i < s->len; i++) {
        assert_int_equal(s->batch.targets.labels[i], data->targets.labels[s->rows[i]]);
        for (size_t c = 0; c < 2; c++)
            assert_true(sherd__view_at(s->batch.x, i, c) == sherd__view_at(data->x, s->rows[i], c));
    }
    if (!s->batch.kept) return;
    const double unit[4] = { 1, 0, 0, 1 };
    double y[2 * 61];
    assert_int_equal(sherd_multiplier_multiply_rows(f->g->e.products, s->batch.kept,
                                                    (sherd_rows){ s->batch.first, s->len }, false,
                                                    sherd_view_c(unit, SHERD_F64, 2, 2), y, 2,
                                                    NULL),
                     SHERD_OK);
    for (size_t i = 0; i < 2 * s->len; i++)
        assert_true(y[i] == sherd__view_at(data->x, s->rows[i / 2], i % 2));
    f->kept++;
}

static int fake_step(void *ctx, const sherd__step *s, sherd__step_result *out, sherd_diag *d)
{
    fake *f = ctx;
    f->stepped++;
    note(f, 's');
    if (f->traits & SHERD__STEPPER_ROWS) assert_null(s->batch.x.data);
    else look(f, s);
    if (s->number + 1 == f->stop_at) {
        f->stepped--; /* as if the step had not started */
        return SHERD_EINTERRUPTED;
    }
    if (s->number + 1 == f->fail_at) return sherd__fail(d, SHERD_EFEWNODES, "h", "no nodes");
    if (s->number + 1 == f->spoil_at)
        sherd__network_params(sherd__trainer_network(f->g->t))[5] = INFINITY;
    out->cost = s->number + 1 == f->nan_at ? NAN : (double)(s->number + 1);
    out->hits = s->len / 2;
    return SHERD_OK;
}

static int fake_settle(void *ctx, sherd_diag *d)
{
    fake *f = ctx;
    f->settled++;
    note(f, 't');
    return f->late_at && f->stepped >= f->late_at
               ? sherd__fail(d, SHERD_ERANGE, "h", "n1: the loss is inf: training diverged")
               : SHERD_OK;
}

static void fake_free(void *ctx)
{
    (void)ctx;
}

static int on_epoch(void *ctx, const sherd__train_epoch *e, bool report, sherd_diag *d)
{
    (void)d;
    assert_int_equal(isnan(e->validation_cost), !report);
    note(ctx, report ? 'r' : 'e');
    return SHERD_OK;
}

static int on_checkpoint(void *ctx, const sherd__train_state *st, sherd_diag *d)
{
    (void)d;
    const fake *f = ctx;
    assert_int_equal(st->step, f->stepped);
    note(ctx, 'c');
    return SHERD_OK;
}

static int run_fake(rig *g, fake *f, sherd__train_calls calls, sherd_diag *d)
{
    const sherd__stepper_ops ops = { "fake", f->traits, fake_step, fake_settle, fake_free };
    f->g = g;
    calls.ctx = f;
    return sherd__trainer_run(g->t, (sherd__stepper){ &ops, f }, g->e, &calls, d);
}

static void a_step_gets_its_rows_for_every_order_and_layout(void **s)
{
    (void)s;
    static const char *const more[] = { "order = given\n", "order = shuffled\n",
                                        "order = batches\n", "order = drawn\n" };
    static const char *const batches[] = { "batch = 16\n", "batch = all\n", "batch = 1\n" };
    for (size_t k = 0; k < 24; k++) {
        char text[200];
        bool keep = k >= 12, fixed = k % 4 == 0 || k % 4 == 2;
        snprintf(text, sizeof text, "%s%srate = 1\nepochs = 3\n", more[k % 4], batches[k / 4 % 3]);
        rig g = rig_of(text, 0);
        fake f = { 0 };
        assert_int_equal(run_fake(&g, &f, (sherd__train_calls){ .keep = keep }, NULL), SHERD_OK);
        assert_int_equal(f.stepped, sherd__trainer_steps(g.t));
        assert_int_equal(f.kept, keep && fixed ? f.stepped : 0);
        rig_free(&g);
    }
}

static void a_stepper_that_requests_rows_gets_no_batch(void **s)
{
    (void)s;
    rig g = rig_of("rate = 1\nepochs = 2\nbatch = 16\n", 0);
    fake f = { .traits = SHERD__STEPPER_ROWS };
    assert_int_equal(run_fake(&g, &f, (sherd__train_calls){ .keep = true }, NULL), SHERD_OK);
    assert_int_equal(f.stepped, 8);
    rig_free(&g);
}

static void callbacks_run_settled_and_in_order(void **s)
{
    (void)s;
    rig g = rig_of("rate = 1\nsteps = 10\nbatch = 16\nreport_every = 2\n", 0);
    fake f = { 0 };
    sherd__train_calls calls = { .epoch = on_epoch,
                                 .checkpoint = on_checkpoint,
                                 .checkpoint_every = 3 };
    assert_int_equal(run_fake(&g, &f, calls, NULL), SHERD_OK);
    /* epochs of 4 steps, the last of 2; checkpoints after 3, 6, 9 and at the end */
    assert_string_equal(f.calls, "ssstcstesstcsstrstcstrtc");
    rig_free(&g);
    g = rig_of("rate = 1\nsteps = 10\nbatch = 16\nreport_every = 2\n", 0);
    f = (fake){ .traits = SHERD__STEPPER_ROWS | SHERD__STEPPER_FAR };
    calls.figures = true;
    assert_int_equal(run_fake(&g, &f, calls, NULL), SHERD_OK);
    assert_string_equal(f.calls, "ssstcsesstcsstrstcstrtc"); /* without validation, parameters are
                                                              * not fetched */
    rig_free(&g);
}

static int keep_epoch(void *ctx, const sherd__train_epoch *e, bool report, sherd_diag *d)
{
    (void)report;
    (void)d;
    sherd__train_epoch *all = ((fake *)ctx)->g->data.owned[2];
    all[e->epoch - 1] = *e;
    return SHERD_OK;
}

static void figures_weigh_steps_by_their_numbers_of_examples(void **s)
{
    (void)s;
    rig g = rig_of("order = given\nrate = 1\nsteps = 6\nbatch = 20\n"
                   "schedule = inverse 1 every 1\n",
                   0);
    sherd__train_epoch all[2];
    fake f = { 0 };
    g.data.owned[2] = all;
    assert_int_equal(run_fake(&g, &f, (sherd__train_calls){ .epoch = keep_epoch }, NULL), SHERD_OK);
    g.data.owned[2] = NULL;
    /* steps of 20, 20, 20 and 1 of 61 examples; half of each are hits, rounded down */
    assert_true(fabs(all[0].cost - (20 * (1 + 2 + 3) + 4) / 61.0) < 1e-15);
    assert_true(fabs(all[0].accuracy - 30 / 61.0) < 1e-15);
    assert_true(all[0].step == 4 && all[0].rate == 0.25);
    assert_true(all[1].epoch == 2 && all[1].step == 6 &&
                all[1].cost == 5.5); /* the second epoch is incomplete */
    rig_free(&g);
}

/* Reports within an epoch have the figures of the steps since the last report. */
static void a_recipe_may_report_every_so_many_steps(void **s)
{
    (void)s;
    rig g = rig_of("order = given\nrate = 1\nsteps = 10\nbatch = 16\nreport_every = 3 steps\n", 0);
    fake f = { 0 };
    sherd__train_calls calls = { .epoch = on_epoch };
    assert_int_equal(sherd__trainer_interval(g.t), 3);
    assert_int_equal(run_fake(&g, &f, calls, NULL), SHERD_OK);
    assert_string_equal(f.calls, "ssstrssstrssstrstr"); /* epochs of 4 steps have no report */
    rig_free(&g);
    sherd__train_epoch all[3];
    g = rig_of("order = given\nrate = 1\nsteps = 9\nbatch = 16\nreport_every = 4 steps\n", 0);
    f = (fake){ 0 };
    g.data.owned[2] = all; /* epochs of 4 steps: one report in each */
    assert_int_equal(run_fake(&g, &f, (sherd__train_calls){ .epoch = keep_epoch }, NULL), SHERD_OK);
    g.data.owned[2] = NULL;
    assert_true(all[0].step == 4 && all[1].step == 8 && all[2].step == 9 && all[2].epoch == 3);
    assert_true(fabs(all[1].cost - (16 * (5 + 6 + 7) + 13 * 8) / 61.0) < 1e-15);
    assert_true(all[2].cost == 9);
    rig_free(&g);
    g = rig_of("rate = 1\nepochs = 4\nbatch = 16\nreport_every = 3\n", 0);
    assert_int_equal(sherd__trainer_interval(g.t), 12);
    rig_free(&g);
}

static bool after_two_reports(void *ctx)
{
    unsigned reports = 0;
    for (const char *p = ((fake *)ctx)->calls; *p; p++) reports += *p == 'r';
    return reports >= 2;
}

/* The end of a run that had enough is that of a run after its last step: with a checkpoint. */
static void a_run_ends_after_the_report_that_was_enough(void **s)
{
    (void)s;
    rig g = rig_of("rate = 1\nepochs = 5\nbatch = 16\n", 0);
    fake f = { 0 };
    sherd__train_calls calls = { .epoch = on_epoch,
                                 .enough = after_two_reports,
                                 .checkpoint = on_checkpoint };
    assert_int_equal(run_fake(&g, &f, calls, NULL), SHERD_OK);
    assert_string_equal(f.calls, "sssstrsssstrtc");
    assert_int_equal(run_fake(&g, &f, calls, NULL), SHERD_OK); /* no further step */
    assert_string_equal(f.calls, "sssstrsssstrtc");
    rig_free(&g);
}

/* ---- how training ends ----------------------------------------------------------------------- */

static void a_cost_that_is_nan_ends_training_and_names_the_step(void **s)
{
    (void)s;
    rig g = rig_of("rate = 1\nsteps = 10\nbatch = 16\n", 0);
    fake f = { .nan_at = 6 };
    sherd_diag d = { 0 };
    sherd__train_calls calls = { .checkpoint = on_checkpoint, .checkpoint_every = 1 };
    assert_int_equal(run_fake(&g, &f, calls, &d), SHERD_ERANGE);
    assert_non_null(strstr(d.message, "step 6, epoch 2: the loss is"));
    assert_int_equal(sherd__trainer_state(g.t)->step, 5);
    assert_int_equal(strchr(f.calls, 'c') != NULL, 1);
    assert_true(f.calls[strlen(f.calls) - 1] == 's'); /* step 6 has no checkpoint */
    rig_free(&g);
}

static void parameters_that_overflow_are_not_written_to_a_checkpoint(void **s)
{
    (void)s;
    for (uint64_t every = 1; every <= 20; every += 19) { /* detected by a checkpoint; detected at
                                                          * the end of an epoch */
        rig g = rig_of("rate = 1\nsteps = 10\nbatch = 16\n", 0);
        fake f = { .spoil_at = every == 1 ? 6 : 8 };
        sherd_diag d = { 0 };
        sherd__train_calls calls = { .checkpoint = on_checkpoint, .checkpoint_every = every };
        assert_int_equal(run_fake(&g, &f, calls, &d), SHERD_ERANGE);
        if (!strstr(d.message,
                    every == 1 ? "step 6, epoch 2: parameter 5" : "step 8, epoch 2: parameter 5"))
            fail_msg("%s", d.message);
        size_t checkpoints = 0;
        for (const char *p = f.calls; *p != '\0'; p++) checkpoints += *p == 'c';
        assert_int_equal(checkpoints, every == 1 ? 5 : 0);
        rig_free(&g);
    }
}

/* A stepper may detect the divergence of an earlier step when it settles. */
static void divergence_detected_late_is_reported_with_its_step(void **s)
{
    (void)s;
    rig g = rig_of("rate = 1\nsteps = 10\nbatch = 16\n", 0);
    fake f = { .late_at = 6 };
    sherd_diag d = { 0 };
    sherd__train_calls calls = { .checkpoint = on_checkpoint, .checkpoint_every = 3 };
    assert_int_equal(run_fake(&g, &f, calls, &d), SHERD_ERANGE);
    assert_string_equal(d.message, "step 6, epoch 2: n1: the loss is inf: training diverged");
    assert_string_equal(d.hint, "h");
    assert_null(strchr(strchr(f.calls, 'c') + 1, 'c')); /* the checkpoint of step 3 is the last */
    rig_free(&g);
}

static void a_rate_that_is_too_large_is_reported_as_divergence(void **s)
{
    (void)s;
    for (unsigned bits = 0; bits <= 17; bits += 17) {
        rig g = rig_of("rate = 1e300\nl2 = 1e5\nsteps = 100\nbatch = 16\n", bits);
        sherd_diag d = { 0 };
        assert_int_equal(sherd__trainer_run(g.t, g.stepper, g.e, NULL, &d), SHERD_ERANGE);
        assert_int_equal(strncmp(d.message, "step ", 5), 0);
        rig_free(&g);
    }
}

static bool interrupted_after_five(void *ctx)
{
    return ((fake *)ctx)->stepped == 5;
}

static void an_interrupted_run_is_settled_and_has_a_checkpoint(void **s)
{
    (void)s;
    rig g = rig_of("rate = 1\nsteps = 10\nbatch = 16\n", 0);
    fake f = { 0 };
    sherd_diag d = { 0 };
    sherd__train_calls calls = { .checkpoint = on_checkpoint,
                                 .interrupted = interrupted_after_five };
    assert_int_equal(run_fake(&g, &f, calls, &d), SHERD_EINTERRUPTED);
    assert_string_equal(d.message, "interrupted after 5 of 10 steps");
    assert_string_equal(f.calls, "ssssts"
                                 "ttc");
    rig_free(&g);
}

/* With products, the gradient then contains layers of two steps; steps by rows compute it
 * elsewhere. */
static void an_incomplete_gradient_is_marked_invalid(void **s)
{
    (void)s;
    for (unsigned by_rows = 0; by_rows < 2; by_rows++) {
        rig g = rig_of("rate = 1\nsteps = 10\nbatch = 16\n", 0);
        fake f = { .stop_at = 4, .traits = by_rows ? SHERD__STEPPER_ROWS : 0 };
        sherd_diag d = { 0 };
        assert_int_equal(run_fake(&g, &f, (sherd__train_calls){ .checkpoint = on_checkpoint }, &d),
                         SHERD_EINTERRUPTED);
        assert_string_equal(d.message, "interrupted after 3 of 10 steps");
        const double *gradient = sherd__network_gradient(sherd__trainer_network(g.t));
        size_t torn = 0, len = sherd__network_count(sherd__trainer_network(g.t));
        for (size_t k = 0; k < len; k++) torn += isnan(gradient[k]) != 0;
        assert_int_equal(torn, by_rows ? 0 : len);
        rig_free(&g);
    }
}

static void the_error_of_a_step_is_returned_unchanged(void **s)
{
    (void)s;
    rig g = rig_of("rate = 1\nsteps = 10\nbatch = 16\n", 0);
    fake f = { .fail_at = 3 };
    sherd_diag d = { 0 };
    assert_int_equal(run_fake(&g, &f, (sherd__train_calls){ 0 }, &d), SHERD_EFEWNODES);
    assert_string_equal(d.message, "no nodes");
    assert_string_equal(d.hint, "h");
    assert_int_equal(sherd__trainer_state(g.t)->step, 2);
    rig_free(&g);
}

/* ---- evaluation, memory ---------------------------------------------------------------------- */

static void evaluate(const rig *g, sherd_kept *kept, size_t batch, double *cost, double *accuracy)
{
    assert_int_equal(sherd__train_evaluate(sherd__trainer_network(g->t), g->e,
                                           &(sherd__evaluation){ .recipe = &g->recipe,
                                                                 .data = &g->data,
                                                                 .kept = kept,
                                                                 .batch = batch },
                                           cost, accuracy, NULL),
                     SHERD_OK);
}

static void an_evaluation_does_not_depend_on_the_batch_size(void **s)
{
    (void)s;
    rig g = rig_of("rate = 0.1\nsteps = 20\nbatch = all\n", 0);
    double cost, accuracy, c, a;
    run(&g, NULL);
    sherd__network *n = sherd__trainer_network(g.t);
    evaluate(&g, NULL, 61, &cost, &accuracy);
    for (size_t batch = 1; batch < 61; batch += 7) {
        sherd_kept *kept;
        evaluate(&g, NULL, batch, &c, &a);
        assert_true(fabs(c - cost) < 1e-12 && a == accuracy);
        assert_int_equal(sherd_multiplier_keep(&kept, g.e.products, g.data.x, keep_parts(batch),
                                               NULL),
                         SHERD_OK);
        evaluate(&g, kept, batch, &c, &a);
        assert_true(fabs(c - cost) < 1e-12 && a == accuracy);
        sherd_multiplier_release(g.e.products, kept);
    }
    sherd__network_params(n)[2 * 12] += 3; /* a bias of the first layer */
    g.recipe.validation_unbiased = true;
    evaluate(&g, NULL, 61, &c, &a);
    sherd__network_params(n)[2 * 12] += 3;
    evaluate(&g, NULL, 61, &cost, &a);
    assert_true(c == cost);
    rig_free(&g);
}

typedef struct passes {
    uint64_t at[32];
    size_t len;
} passes;

static void hear(void *ctx, uint64_t pass)
{
    passes *p = ctx;
    assert_true(p->len < 32);
    p->at[p->len++] = pass;
}

static void every_pass_is_announced_with_a_number_of_its_own(void **s)
{
    (void)s;
    passes heard = { .len = 0 };
    rig g = rig_of("rate = 0.1\nepochs = 2\nbatch = 25\n", 0);
    g.e.begin = hear;
    g.e.begin_ctx = &heard;
    sherd__stepper_free(g.stepper);
    assert_int_equal(sherd__stepper_products(&g.stepper, sherd__trainer_network(g.t),
                                             sherd__trainer_optimiser(g.t), g.e, NULL),
                     SHERD_OK);
    run(&g, NULL);
    size_t n = 0;
    for (uint64_t epoch = 0; epoch < 2; epoch++) {
        for (uint64_t step = 0; step < 3; step++) assert_int_equal(heard.at[n++], 3 * epoch + step);
        for (uint64_t batch = 0; batch < 3; batch++)
            assert_true(heard.at[n++] == sherd__pass_of_validation(3 * epoch + 3, batch));
    }
    assert_int_equal(heard.len, n);
    rig_free(&g);
}

static void without_memory_no_trainer_is_made(void **s)
{
    (void)s;
    sherd__recipe r = recipe_of("rate = 1\nsteps = 10\nbatch = 16\n");
    sherd__dataset data;
    assert_int_equal(sherd__generate_spiral(&data, 61, 3, seed, NULL), SHERD_OK);
    size_t n = 0;
    sherd__trainer *t = NULL;
    int err = SHERD_ENOMEM;
    while (err == SHERD_ENOMEM) {
        sherd_diag d = { 0 };
        sherd__alloc_fail_nth(++n);
        err = sherd__trainer_new(&t, &r, &data, NULL, seed, &d);
        if (err == SHERD_ENOMEM) assert_true(!t && d.message[0] != '\0');
    }
    sherd__alloc_fail_nth(0);
    assert_int_equal(err, SHERD_OK);
    assert_true(n > 10);
    sherd__trainer_free(t);
    sherd__dataset_fini(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_reaches_the_expected_accuracy),
        cmocka_unit_test(a_run_resumed_at_any_step_has_the_same_bits),
        cmocka_unit_test(equal_seeds_give_equal_bits_and_other_seeds_do_not),
        cmocka_unit_test(a_step_gets_its_rows_for_every_order_and_layout),
        cmocka_unit_test(a_stepper_that_requests_rows_gets_no_batch),
        cmocka_unit_test(callbacks_run_settled_and_in_order),
        cmocka_unit_test(figures_weigh_steps_by_their_numbers_of_examples),
        cmocka_unit_test(a_recipe_may_report_every_so_many_steps),
        cmocka_unit_test(a_run_ends_after_the_report_that_was_enough),
        cmocka_unit_test(a_cost_that_is_nan_ends_training_and_names_the_step),
        cmocka_unit_test(parameters_that_overflow_are_not_written_to_a_checkpoint),
        cmocka_unit_test(divergence_detected_late_is_reported_with_its_step),
        cmocka_unit_test(a_rate_that_is_too_large_is_reported_as_divergence),
        cmocka_unit_test(an_interrupted_run_is_settled_and_has_a_checkpoint),
        cmocka_unit_test(an_incomplete_gradient_is_marked_invalid),
        cmocka_unit_test(the_error_of_a_step_is_returned_unchanged),
        cmocka_unit_test(an_evaluation_does_not_depend_on_the_batch_size),
        cmocka_unit_test(every_pass_is_announced_with_a_number_of_its_own),
        cmocka_unit_test(without_memory_no_trainer_is_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
