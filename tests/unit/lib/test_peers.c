/* Processes that train as peers, as threads of this process: they have the bits of a single
 * process, process 0 decides for all, and all end with the same status. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sherd/machine.h"
#include "tests/support/thread_sum.h"
#include "training_world.h"

enum { MOST = 4 };

typedef struct peer {
    sherd_collective c;
    pthread_t thread;
    const char *more;
    sherd_train_options o;
    bool common;
    unsigned asked, stop_at;
    int err;
    sherd_diag d;
    sherd_train_report report;
    double parameters[WORLD_PARAMETERS];
} peer;

static bool interrupted(void *ctx)
{
    peer *p = ctx;
    return ++p->asked == p->stop_at;
}

static void *work(void *arg)
{
    peer *p = arg;
    sherd_training *t = world_new(p->more, &p->o, &p->err, &p->d);
    if (!p->err) p->err = sherd_training_run(t, NULL, &p->d);
    p->report = (sherd_train_report){ .size = sizeof p->report };
    if (t) (void)!sherd_training_report_get(t, &p->report, NULL);
    if (t) world_parameters(t, p->parameters);
    sherd_training_free(t);
    return NULL;
}

static void prepare(peer *p, uint32_t n)
{
    memset(p, 0, n * sizeof *p);
    for (uint32_t i = 0; i < n; i++) {
        p[i].c = thread_sum_of(i, n);
        p[i].c.common = &p[i].common;
        p[i].o = (sherd_train_options){ .size = sizeof p->o,
                                        .by = SHERD_BY_GRADIENTS,
                                        .seed = world_seed,
                                        .among = &p[i].c,
                                        .hooks = { .interrupted = interrupted, .ctx = &p[i] } };
    }
}

static void together(peer *p, uint32_t n)
{
    thread_sum_begin(n);
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(pthread_create(&p[i].thread, NULL, work, &p[i]), 0);
    for (uint32_t i = 0; i < n; i++) pthread_join(p[i].thread, NULL);
    thread_sum_end();
}

/* The parameters of a training in one process. */
static void alone(double *out)
{
    const sherd_train_options o = {
        .size = sizeof o, .by = SHERD_BY_GRADIENTS, .seed = world_seed, .threads = 1
    };
    assert_int_equal(world_run(NULL, &o, out, NULL), 0);
}

static void any_number_of_processes_gives_the_same_bits(void **s)
{
    (void)s;
    static peer p[MOST];
    double one[WORLD_PARAMETERS];
    alone(one);
    for (uint32_t n = 1; n <= MOST; n++) {
        prepare(p, n);
        together(p, n);
        for (uint32_t i = 0; i < n; i++) {
            if (p[i].err) fail_msg("%s", p[i].d.message);
            assert_memory_equal(p[i].parameters, one, sizeof one);
            assert_true(p[i].report.processes == n && !p[i].common);
            assert_string_equal(p[i].report.among, "threads");
            assert_string_equal(p[i].report.by, "gradients");
        }
    }
}

static void process_0_decides_seed_and_initial_parameters(void **s)
{
    (void)s;
    static peer p[3];
    double begun[WORLD_PARAMETERS];
    int err;
    sherd_train_options other = { .size = sizeof other };
    sherd_training *t = world_new(NULL, &other, &err, NULL);
    prepare(p, 3);
    for (int i = 0; i < 3; i++) p[i].o.seed = NULL;
    p[0].o.initial = sherd_training_model(t);
    for (int i = 0; i < 3; i++) p[i].stop_at = i == 0 ? 1 : 0; /* no step is made */
    together(p, 3);
    world_parameters(t, begun);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(p[i].err, SHERD_EINTERRUPTED);
        assert_memory_equal(p[i].parameters, begun, sizeof begun);
    }
    sherd_training_free(t);
}

static void every_process_names_a_process_with_another_training(void **s)
{
    (void)s;
    static peer p[3];
    for (int way = 0; way < 3; way++) {
        prepare(p, 3);
        if (way == 0) p[1].more = "rate = 0.3\n";
        if (way == 1) p[1].o.shards = 3;
        if (way == 2) p[1].o.bits = 12;
        together(p, 3);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(p[i].err, SHERD_EFORMAT);
            assert_true(p[i].common);
            assert_non_null(strstr(p[i].d.message, "process 1 has another recipe or other data"));
        }
    }
}

static void all_stop_at_the_step_at_which_one_is_interrupted(void **s)
{
    (void)s;
    static peer p[3];
    prepare(p, 3);
    p[2].stop_at = 5;
    together(p, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(p[i].err, SHERD_EINTERRUPTED);
        assert_string_equal(p[i].d.message, "interrupted after 4 of 18 steps");
        assert_memory_equal(p[i].parameters, p[0].parameters, sizeof p[0].parameters);
    }
}

static void all_continue_from_the_checkpoint_of_process_0(void **s)
{
    (void)s;
    static peer p[3];
    char folder[] = "/tmp/sherd-peers-XXXXXX", path[64], command[100];
    double one[WORLD_PARAMETERS];
    alone(one);
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/run", folder);
    prepare(p, 3);
    p[0].o.checkpoints = path;
    p[1].stop_at = 5;
    together(p, 3);
    assert_int_equal(p[0].err, SHERD_ESTOPPED);
    assert_int_equal(p[1].err, SHERD_EINTERRUPTED);
    prepare(p, 2); /* fewer of them */
    p[0].o.checkpoints = path;
    p[0].o.resume = true;
    for (int i = 0; i < 2; i++) p[i].o.seed = NULL;
    together(p, 2);
    for (int i = 0; i < 2; i++) {
        if (p[i].err) fail_msg("%s", p[i].d.message);
        assert_memory_equal(p[i].parameters, one, sizeof one);
        assert_int_equal(p[i].report.first_step, 4);
    }
    snprintf(command, sizeof command, "exec rm -rf %s", folder);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    pclose(f);
}

/* Process 0 has the checkpoint, and all must know how many reports have passed since the best. */
static void all_stop_early_at_the_same_step_after_a_checkpoint_too(void **s)
{
    (void)s;
    static const char lines[] = "holdout = 0.25\nrate = 2\nepochs = 40\nmethod = momentum 0.9\n"
                                "patience = 3\n";
    static peer p[3];
    char folder[] = "/tmp/sherd-peers-XXXXXX", path[64], command[100];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/run", folder);
    prepare(p, 1);
    p[0].more = lines;
    together(p, 1);
    const peer one = p[0];
    assert_true(!one.err && one.report.stopped_early && one.report.best_step > 0);
    prepare(p, 3);
    for (int i = 0; i < 3; i++) p[i].more = lines;
    p[0].o.checkpoints = path;
    p[1].stop_at = (unsigned)one.report.best_step + 3 + 2; /* one report after the best */
    together(p, 3);
    assert_int_equal(p[0].err, SHERD_ESTOPPED);
    prepare(p, 3);
    for (int i = 0; i < 3; i++) p[i].more = lines;
    p[0].o.checkpoints = path;
    p[0].o.resume = true;
    together(p, 3);
    for (int i = 0; i < 3; i++) {
        if (p[i].err) fail_msg("%s", p[i].d.message);
        assert_true(p[i].report.stopped_early && p[i].report.step == one.report.step &&
                    p[i].report.best_step == one.report.best_step);
        assert_memory_equal(p[i].parameters, one.parameters, sizeof one.parameters);
    }
    snprintf(command, sizeof command, "exec rm -rf %s", folder);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    pclose(f);
}

static void refused(const sherd_train_options *o, const sherd_collective *c, const char *words)
{
    sherd_train_options with = *o;
    sherd_diag d = { 0 };
    int err;
    with.among = c;
    assert_null(world_new(NULL, &with, &err, &d));
    if (err != SHERD_EINVAL || !strstr(d.message, words)) fail_msg("%d, %s", err, d.message);
}

static void options_that_peers_do_not_support_are_refused(void **s)
{
    (void)s;
    sherd_collective c = thread_sum_of(0, 1);
#define GRADIENTS(...)                                                                             \
    {                                                                                              \
        .size = sizeof(sherd_train_options), .by = SHERD_BY_GRADIENTS, __VA_ARGS__                 \
    }
    const sherd_train_options products = { .size = sizeof products }, fine = GRADIENTS(.shards = 0);
    static const struct {
        sherd_train_options o;
        const char *words;
    } cases[] = { { GRADIENTS(.nodes = 2), "a cluster of nodes has no effect" },
                  { GRADIENTS(.async = true), "--async has no effect" },
                  { GRADIENTS(.allow_drop = true), "--allow-drop has no effect" },
                  { GRADIENTS(.floats = true), "--float-gradients has no effect" },
                  { GRADIENTS(.check = true), "--check has no effect" },
                  { GRADIENTS(.aggregate = SHERD_AGGREGATE_RING), "--aggregate has no effect" } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refused(&cases[i].o, &c, cases[i].words);
    refused(&products, &c, "train by gradients only");
    c.rank = 1;
    refused(&fine, &c, "process 1 of 1");
    c = thread_sum_of(0, 1);
    c.sum = NULL;
    refused(&fine, &c, "needs a name, a sum");
    c.size = 1;
    refused(&fine, &c, "sherd_collective.size");
}

int main(void)
{
    sherd_blas_threads_set(1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_processes_gives_the_same_bits),
        cmocka_unit_test(process_0_decides_seed_and_initial_parameters),
        cmocka_unit_test(every_process_names_a_process_with_another_training),
        cmocka_unit_test(all_stop_at_the_step_at_which_one_is_interrupted),
        cmocka_unit_test(all_continue_from_the_checkpoint_of_process_0),
        cmocka_unit_test(all_stop_early_at_the_same_step_after_a_checkpoint_too),
        cmocka_unit_test(options_that_peers_do_not_support_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
