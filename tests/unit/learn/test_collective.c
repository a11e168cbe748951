/* Processes that train together, as threads of one process: the parameters have the same bits as
 * with one adder, and all processes return the same status of a round. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/diag.h"
#include "learn/collective.h"
#include "tests/support/thread_sum.h"

static const char text[] = "input = 6\nlayer = dense 5\nlayer = tanh\nlayer = dense 3\n"
                           "loss = cross-entropy\nl2 = 0.01\n";
enum { ROWS = 45, INPUTS = 6, MOST = 7, STEPS = 6, SHARDS = 5 };

static sherd__recipe recipe;
static double inputs[ROWS * INPUTS];
static uint32_t labels[ROWS], rows[ROWS];
static sherd__dataset data;

static int set_up(void **state)
{
    (void)state;
    sherd_diag d = { 0 };
    if (sherd__recipe_parse(&recipe, text, sizeof text - 1, "test", SHERD__RECIPE_NETWORK, &d))
        fail_msg("%s", d.message);
    for (size_t i = 0; i < ROWS * INPUTS; i++) inputs[i] = sin((double)(i * i) + 0.3);
    for (uint32_t i = 0; i < ROWS; i++) {
        labels[i] = i * 5 % 3;
        rows[i] = i * 7 % ROWS;
    }
    data = (sherd__dataset){ .x = sherd_view_c(inputs, SHERD_F64, ROWS, INPUTS),
                             .targets = { .labels = labels },
                             .classes = 3,
                             .width = 3 };
    return 0;
}

typedef struct member {
    sherd_collective c;
    pthread_t thread;
    double params[200];
    double cost;
    uint64_t hits;
    int err;
} member;

/* Runs some steps; takes over the engine. */
static void train(member *m, sherd__gradient_engine engine)
{
    sherd_diag d = { 0 };
    sherd__network *n;
    sherd__optimiser o;
    sherd__stepper s;
    sherd__seeded state;
    sherd__entropy e = sherd__entropy_seeded(&state, 5);
    sherd__optimiser_spec spec = { .method = SHERD__MOMENTUM };
    if (sherd__recipe_network(&recipe, ROWS, &n, &d) ||
        sherd__optimiser_init(&o, &spec, sherd__network_count(n), &d))
        abort();
    sherd__network_draw(n, &e, 0);
    sherd__gradients_options g = { .recipe = &recipe,
                                   .data = &data,
                                   .network = n,
                                   .optimiser = &o,
                                   .engine = engine,
                                   .shards = SHARDS,
                                   .bits = 17,
                                   .staleness_max = UINT64_MAX };
    if (sherd__stepper_gradients(&s, &g, &d)) abort();
    for (uint64_t i = 0; i < STEPS && !m->err; i++) {
        sherd__step step = { .number = i, .rate = 0.1, .rows = rows, .len = i == 3 ? 4 : ROWS };
        sherd__step_result r;
        m->err = s.ops->step(s.ctx, &step, &r, &d);
        m->cost = r.cost;
        m->hits = r.hits;
    }
    memcpy(m->params, sherd__network_params(n), sherd__network_count(n) * sizeof(double));
    sherd__stepper_free(s);
    sherd__optimiser_fini(&o);
    sherd__network_free(n);
}

static sherd__gradient_engine here(void)
{
    sherd__gradient_engine e;
    if (sherd__gradients_here(&e, &recipe, &data, &(sherd__here_options){ ROWS, 17, 1 }, NULL))
        abort();
    return e;
}

static void *run(void *arg)
{
    member *m = arg;
    sherd__gradient_engine e;
    if (sherd__gradients_among(&e, &m->c, here(), NULL)) abort();
    train(m, e);
    return NULL;
}

static void together(member *m, uint32_t n, void *(*work)(void *))
{
    thread_sum_begin(n);
    for (uint32_t i = 0; i < n; i++) {
        m[i].c = thread_sum_of(i, n);
        assert_int_equal(pthread_create(&m[i].thread, NULL, work, &m[i]), 0);
    }
    for (uint32_t i = 0; i < n; i++) pthread_join(m[i].thread, NULL);
    thread_sum_end();
}

/* ---- */

static void parameters_have_the_bits_of_one_adder(void **state)
{
    (void)state;
    member one = { 0 };
    train(&one, here());
    assert_int_equal(one.err, 0);
    for (uint32_t n = 1; n <= MOST; n++) { /* including more processes than shards */
        member m[MOST] = { 0 };
        together(m, n, run);
        for (uint32_t i = 0; i < n; i++) {
            assert_int_equal(m[i].err, 0);
            assert_memory_equal(m[i].params, one.params, sizeof one.params);
            assert_memory_equal(&m[i].cost, &one.cost, sizeof one.cost);
            assert_int_equal(m[i].hits, one.hits);
        }
    }
}

static void a_failure_of_one_process_is_returned_by_all(void **state)
{
    (void)state;
    double kept = inputs[0];
    inputs[0] = NAN; /* the gradient of row 0 fails */
    member one = { 0 };
    train(&one, here());
    assert_true(one.err != 0);
    member m[3] = { 0 };
    together(m, 3, run);
    for (unsigned i = 0; i < 3; i++) assert_int_equal(m[i].err, one.err);
    inputs[0] = kept;
}

static void *shared(void *arg)
{
    member *m = arg;
    char bytes[13];
    uint32_t who = 9;
    memset(bytes, 'a' + (int)m->c.rank, sizeof bytes);
    m->err = sherd__collective_share(&m->c, bytes, sizeof bytes, NULL);
    for (unsigned i = 0; i < sizeof bytes; i++) m->err |= bytes[i] != 'a';
    m->err |= sherd__collective_agree(&m->c, 0, &who, NULL) != 0 || who != 9;
    int mine = m->c.rank == 1 ? SHERD_EIO : m->c.rank == 2 ? SHERD_EOPEN : 0;
    m->err |= sherd__collective_agree(&m->c, mine, &who, NULL) != SHERD_EIO || who != 1;
    sherd_diag d = { 0 };
    m->err |= sherd__collective_tell(&m->c, 0, &d) != 0 || d.code;
    if (mine) sherd__fail(&d, mine, "try", "said by %u", m->c.rank);
    m->err |= sherd__collective_tell(&m->c, mine, &d) != SHERD_EIO || d.code != SHERD_EIO ||
              strcmp(d.message, "said by 1") || strcmp(d.hint, "try");
    return NULL;
}

static void all_processes_get_the_bytes_and_the_first_failure_of_process_0(void **state)
{
    (void)state;
    member m[4] = { 0 };
    together(m, 4, shared);
    for (unsigned i = 0; i < 4; i++) assert_int_equal(m[i].err, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_have_the_bits_of_one_adder),
        cmocka_unit_test(a_failure_of_one_process_is_returned_by_all),
        cmocka_unit_test(all_processes_get_the_bytes_and_the_first_failure_of_process_0),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
