/*
 * Trainings and predictions over real node processes through the public interface: the bits of this
 * machine, one cluster for one training after the other, and hooks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sherd/npy.h"
#include "sherd/sherd.h"
#include "tests/support/send_signal.h"
#include "tests/system/scheduler/command.h"
#include "tests/system/scheduler/local_nodes.h"

enum { NODES = 3, EPOCHS = 4, PARAMETERS = 2 * 6 + 6 + 6 * 3 + 3 };

static const char text[] = "input = 2\nlayer = dense 6\nlayer = tanh\nlayer = dense 3\n"
                           "loss = cross-entropy\ndata = spiral\nexamples = 90\nclasses = 3\n"
                           "batch = 30\nepochs = 4\nrate = 0.5\n";
static const uint8_t seed[32] = "trainings over nodes";
static sherd_recipe *recipe;
static sherd_cluster *nodes;

static int set_up(void **state)
{
    (void)state;
    nodes = local_open(NODES, NULL, 0);
    return sherd_recipe_parse(&recipe, text, NULL, NULL);
}

static int tear_down(void **state)
{
    (void)state;
    sherd_cluster_close(nodes);
    sherd_recipe_free(recipe);
    return 0;
}

static sherd_train_options seeded(void)
{
    return (sherd_train_options){ .size = sizeof(sherd_train_options), .seed = seed };
}

static sherd_training *make(const sherd_train_options *o)
{
    sherd_training *t;
    sherd_diag d = { 0 };
    if (sherd_training_new(&t, recipe, NULL, o, &d)) fail_msg("%s", d.message);
    return t;
}

static void parameters_of(sherd_training *t, double out[PARAMETERS])
{
    const sherd_model *m = sherd_training_model(t);
    const char *name;
    for (size_t i = 0; (name = sherd_model_parameter_name(m, i)); i++) {
        sherd_view v = sherd_model_parameter_find(m, name);
        memcpy(out, v.data, v.rows * v.cols * sizeof *out);
        out += v.rows * v.cols;
    }
}

/* Runs it over c (NULL: here) and returns the training, with its parameters in out. */
static sherd_training *run(sherd_train_options o, sherd_cluster *c, double out[PARAMETERS])
{
    sherd_diag d = { 0 };
    o.nodes = c ? sherd_cluster_size(c) : 0;
    sherd_training *t = make(&o);
    if (sherd_training_run(t, c, &d)) fail_msg("%s", d.message);
    parameters_of(t, out);
    return t;
}

static void products_over_nodes_have_the_bits_of_this_machine(void **s)
{
    (void)s;
    double here[PARAMETERS], over[PARAMETERS];
    sherd_product_options p = { .size = sizeof p, .exact = true };
    sherd_train_options o = seeded();
    o.products = &p;
    sherd_training_free(run(o, NULL, here));
    static const sherd_scheme schemes[] = { SHERD_SHARE, SHERD_PERMUTE, SHERD_PLAIN };
    for (size_t i = 0; i < 3; i++) {
        p.scheme = schemes[i];
        o.check = i == 0;
        o.elementwise_at_nodes = i == 2;
        sherd_training *t = run(o, nodes, over);
        assert_memory_equal(here, over, sizeof here);
        sherd_train_report r = { .size = sizeof r };
        assert_int_equal(sherd_training_report_get(t, &r, NULL), 0);
        assert_string_equal(r.scheme, sherd_scheme_get(schemes[i])->name);
        assert_true(r.nodes == NODES && r.nodes_up == NODES && r.bits == 17 && r.bytes_out > 1000 &&
                    r.bytes_in > 1000);
        assert_int_equal(r.epochs_checked, i == 0 ? EPOCHS : 0);
        const sherd_epoch *first = sherd_training_epoch_at(t, 0),
                          *last = sherd_training_epoch_at(t, 3);
        assert_true(isnan(first->float64_accuracy) == (i != 0));
        assert_true(first->nodes == NODES && first->bytes_out > 0 &&
                    last->bytes_out > first->bytes_out && last->bytes_out <= r.bytes_out);
        assert_non_null(r.sees);
        sherd_training_free(t);
    }
}

static void count(void *ctx, const sherd_train_pass *p)
{
    assert_true(p->computed >= p->forward && p->answered >= p->asked && p->shards > 0 && p->node);
    ++*(unsigned *)ctx;
}

static void gradients_over_nodes_have_the_bits_of_threads(void **s)
{
    (void)s;
    double here[PARAMETERS], over[PARAMETERS];
    unsigned passes = 0;
    sherd_train_options o = seeded();
    o.by = SHERD_BY_GRADIENTS;
    sherd_training_free(run(o, NULL, here));
    o.check = true;
    o.on_pass = count;
    o.ctx = &passes;
    sherd_training *t = run(o, nodes, over);
    assert_memory_equal(here, over, sizeof here);
    sherd_train_gradients g = { .size = sizeof g };
    assert_int_equal(sherd_training_gradients_get(t, &g, NULL), 0);
    assert_true(passes >= 12 && g.updates == 12 && !g.in_process && g.threads == 0);
    sherd_training_free(t);
}

typedef struct watched {
    sherd_training *training;
    double epochs[EPOCHS][PARAMETERS];
    size_t len;
    uint64_t links;
} watched;

static int look(void *ctx, const sherd_epoch *e, sherd_diag *d)
{
    watched *w = ctx;
    sherd_train_link link = { .size = sizeof link };
    (void)e;
    (void)d;
    for (uint32_t i = 0; sherd_training_link_at(w->training, i, &link, NULL) == 0; i++) {
        assert_true(link.node[0]);
        w->links += link.bytes_out;
    }
    parameters_of(w->training, w->epochs[w->len++]);
    return 0;
}

static void a_ring_of_nodes_has_them_too_and_its_model_can_be_read_at_every_epoch(void **s)
{
    (void)s;
    double here[PARAMETERS];
    static watched local, ring;
    sherd_diag d = { 0 };
    sherd_train_options o = seeded();
    o.by = SHERD_BY_GRADIENTS;
    o.on_epoch = look;
    o.ctx = &local;
    local.training = make(&o);
    assert_int_equal(sherd_training_run(local.training, NULL, NULL), 0);
    parameters_of(local.training, here);
    o.aggregate = SHERD_AGGREGATE_RING;
    o.epoch_model = true;
    o.nodes = NODES;
    o.ctx = &ring;
    ring.training = make(&o);
    if (sherd_training_run(ring.training, nodes, &d)) fail_msg("%s", d.message);
    assert_true(local.len == EPOCHS && ring.len == EPOCHS && local.links == 0 && ring.links > 0);
    assert_memory_equal(local.epochs, ring.epochs, sizeof ring.epochs);
    assert_memory_equal(ring.epochs[EPOCHS - 1], here, sizeof here);
    sherd_train_allreduce a = { .size = sizeof a };
    assert_int_equal(sherd_training_allreduce_get(ring.training, &a, NULL), 0);
    assert_string_equal(a.by, "ring");
    assert_true(a.members == NODES && a.rounds == 12 && a.repeated == 0 && a.link_bytes_out > 0 &&
                a.examples_bytes > 0);
    sherd_train_link link = { .size = sizeof link };
    assert_int_equal(sherd_training_link_at(ring.training, NODES - 1, &link, NULL), 0);
    assert_true(link.bytes_out > 0 && link.blocks_in > 0);
    assert_int_equal(sherd_training_link_at(ring.training, NODES, &link, NULL), SHERD_EINVAL);
    sherd_training_free(local.training);
    sherd_training_free(ring.training);
}

static void simulated_secure_sums_count_their_privacy(void **s)
{
    (void)s;
    double parameters[PARAMETERS];
    sherd_train_options o = seeded();
    o.by = SHERD_BY_GRADIENTS;
    o.aggregate = SHERD_AGGREGATE_SECURE;
    o.simulate = true;
    o.clip = 1;
    o.noise = 2;
    sherd_training *t = run(o, nodes, parameters);
    sherd_train_secure r = { .size = sizeof r };
    assert_int_equal(sherd_training_secure_get(t, &r, NULL), 0);
    assert_true(r.simulated && r.rows == 10 && r.places == 30 && r.rounds == 12 &&
                r.updates == 12 && r.parts == 36 && r.dropped == 0 && r.epsilon > 0 &&
                r.delta == 1e-6 && r.noise == 2);
    assert_true(sherd_training_epoch_at(t, 0)->epsilon > 0 &&
                sherd_training_epoch_at(t, 0)->epsilon < r.epsilon &&
                sherd_training_epoch_at(t, 0)->delta == 1e-6);
    sherd_training_free(t);
}

static void a_model_predicts_over_nodes_with_the_bits_of_this_machine(void **s)
{
    (void)s;
    enum { ROWS = 1700 };
    static double x[ROWS * 2], here[ROWS * 3], over[ROWS * 3];
    double parameters[PARAMETERS];
    sherd_diag d = { 0 };
    for (size_t i = 0; i < ROWS * 2; i++) x[i] = sin((double)i);
    sherd_training *t = run(seeded(), NULL, parameters);
    sherd_product_options p = { .size = sizeof p, .exact = true };
    sherd_predict_options o = { .size = sizeof o, .products = &p };
    sherd_predict_report r = { .size = sizeof r };
    sherd_view v = sherd_view_c(x, SHERD_F64, ROWS, 2);
    assert_int_equal(sherd_model_predict(sherd_training_model(t), v, here, 3, &o, NULL, NULL), 0);
    o.cluster = nodes;
    o.check = true;
    p = (sherd_product_options){ .size = sizeof p, .scheme = SHERD_SHARE };
    if (sherd_model_predict(sherd_training_model(t), v, over, 3, &o, &r, &d))
        fail_msg("%s", d.message);
    assert_memory_equal(here, over, sizeof here);
    assert_true(r.nodes == NODES && r.bits == 17 && r.checked && r.bytes_out > 10000);
    assert_string_equal(r.scheme, "share");
    sherd_training_free(t);
}

static bool stop_after(void *ctx)
{
    int *left = ctx;
    return --*left < 0;
}

static void hooks_are_those_of_the_training_or_else_of_the_cluster(void **s)
{
    (void)s;
    int left = 1000000;
    sherd_cluster *own =
        local_open_as((sherd_cluster_options){ .size = sizeof(sherd_cluster_options),
                                               .local_nodes = 2,
                                               .hooks = { .interrupted = stop_after,
                                                          .ctx = &left } },
                      NULL);
    double y[3];
    static const double x[2] = { 1, 2 };
    sherd_train_options o = seeded();
    o.nodes = 2;
    left = 3;
    sherd_training *t = make(&o);
    assert_int_equal(sherd_training_run(t, own, NULL), SHERD_EINTERRUPTED);
    sherd_training_free(t);
    int mine = 1000000;
    o.hooks = (sherd_hooks){ .interrupted = stop_after, .ctx = &mine };
    left = 0;
    t = make(&o);
    assert_int_equal(sherd_training_run(t, own, NULL), 0);
    assert_true(left == 0 && mine < 1000000);
    const sherd_predict_options with = { .size = sizeof with, .cluster = own };
    assert_int_equal(sherd_model_predict(sherd_training_model(t), sherd_view_c(x, SHERD_F64, 1, 2),
                                         y, 3, &with, NULL, NULL),
                     SHERD_EINTERRUPTED); /* the cluster's own again */
    sherd_training_free(t);
    sherd_cluster_close(own);
}

static void a_record_says_which_row_of_the_data_is_which(void **s)
{
    (void)s;
    char folder[128], record[160], path[200];
    double parameters[PARAMETERS];
    bool seen[90] = { false };
    folder_new(folder);
    snprintf(record, sizeof record, "%s/record", folder);
    snprintf(path, sizeof path, "%s/rows.npy", record);
    sherd_cluster *c = local_open_as((sherd_cluster_options){ .size = sizeof(sherd_cluster_options),
                                                              .local_nodes = 2,
                                                              .record_dir = record },
                                     NULL);
    sherd_training_free(run(seeded(), c, parameters));
    assert_int_equal(sherd_cluster_end(c, NULL), 0);
    sherd_cluster_close(c);
    sherd_npy *npy;
    assert_int_equal(sherd_npy_open(&npy, path, NULL), 0);
    sherd_view v = sherd_npy_view(npy);
    assert_true(v.dtype == SHERD_U32 && v.cols == 90);
    for (size_t i = 0; i < 90; i++) {
        uint32_t row = ((const uint32_t *)v.data)[i];
        assert_true(row < 90 && !seen[row]);
        seen[row] = true;
    }
    sherd_npy_close(npy);
    folder_remove(folder);
}

/* Writes metadata of a step for the nodes, from this byte of seed. */
static void save_step(const char *path, uint8_t from)
{
    const sherd_meta_settings settings = { .size = sizeof settings, .nodes = NODES };
    const sherd_meta_save_options as = { .size = sizeof as };
    const uint8_t own[32] = { from };
    sherd_meta *m;
    assert_int_equal(sherd_meta_new(&m, &settings, own, NULL), 0);
    assert_int_equal(sherd_meta_add_recipe(m, recipe, NULL, NULL), 0);
    assert_int_equal(sherd_meta_save(m, path, &as, NULL, NULL), 0);
    sherd_meta_free(m);
}

static size_t used_operations(const char *path)
{
    sherd_meta *m;
    size_t used = 0;
    assert_int_equal(sherd_meta_load(&m, path, NULL), 0);
    for (size_t i = 0; i < sherd_meta_count(m); i++) used += sherd_meta_at(m, i)->used;
    sherd_meta_free(m);
    return used;
}

static void metadata_decide_the_exposures_and_change_no_bit(void **s)
{
    (void)s;
    char folder[128], path[160];
    double here[PARAMETERS], over[PARAMETERS];
    sherd_product_options p = { .size = sizeof p, .exact = true };
    sherd_train_options o = seeded();
    sherd_meta *m;
    uint64_t counts[NODES];
    folder_new(folder);
    snprintf(path, sizeof path, "%s/step.npz", folder);
    save_step(path, 1);
    o.products = &p;
    sherd_training_free(run(o, NULL, here));
    o.meta = path;
    sherd_training *t = run(o, nodes, over);
    assert_memory_equal(here, over, sizeof here);
    assert_int_equal(used_operations(path), 5);
    assert_int_equal(sherd_meta_load(&m, path, NULL), 0);
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(sherd_meta_exposure_counts(m, i, counts, NULL), 0);
        for (uint32_t node = 0; node < NODES; node++) {
            sherd_train_exposure e = { .size = sizeof e };
            assert_int_equal(sherd_training_exposure_at(t, i, node, &e, NULL), 0);
            assert_string_equal(e.operation, sherd_meta_at(m, i)->name);
            assert_int_equal(e.calls, 12);
            double planned = (double)counts[node] / (double)sherd_meta_columns(sherd_meta_at(m, i));
            assert_true(fabs(e.exposed_a - planned) < 1e-12);
            assert_true(i == 0 || i == 4 ? e.exposed_b >= planned - 1e-12
                                         : fabs(e.exposed_b - planned) < 1e-12);
        }
    }
    sherd_meta_free(m);
    sherd_training_free(t);
    sherd_training_free(run(o, nodes, over)); /* the same training again */
    folder_remove(folder);
}

static int kill_a_node(void *ctx, const sherd_epoch *e, sherd_diag *d)
{
    (void)d;
    if (e->epoch != 1) return 0;
    assert_int_equal(send_signal(local_pid(ctx, 0), SIGKILL), 0);
    local_gone(ctx, 0);
    return 0;
}

static void exposures_include_the_work_of_a_lost_node(void **s)
{
    (void)s;
    char folder[128], path[160];
    double here[PARAMETERS], over[PARAMETERS], sum = 0;
    sherd_product_options p = { .size = sizeof p, .exact = true };
    sherd_train_options o = seeded();
    folder_new(folder);
    snprintf(path, sizeof path, "%s/step.npz", folder);
    save_step(path, 1);
    o.products = &p;
    sherd_training_free(run(o, NULL, here));
    sherd_cluster *own = local_open(NODES, NULL, 0);
    o.meta = path;
    o.on_epoch = kill_a_node;
    o.ctx = own;
    sherd_training *t = run(o, own, over);
    assert_memory_equal(here, over, sizeof here);
    for (uint32_t node = 0; node < NODES; node++) {
        sherd_train_exposure e = { .size = sizeof e };
        assert_int_equal(sherd_training_exposure_at(t, 2, node, &e, NULL), 0);
        sum += e.exposed_a;
    }
    assert_true(sum > 1.01); /* the columns of the lost node count again */
    sherd_training_free(t);
    sherd_cluster_close(own);
    folder_remove(folder);
}

/* Another training, or other metadata under the same name, between the preparation and the run. */
static void metadata_are_bound_before_anything_is_sent(void **s)
{
    (void)s;
    char folder[128], path[160];
    double over[PARAMETERS];
    static const uint8_t other[32] = { 9 };
    sherd_diag d = { 0 };
    sherd_train_options o = seeded(), p = seeded();
    folder_new(folder);
    snprintf(path, sizeof path, "%s/step.npz", folder);
    save_step(path, 1);
    o.meta = p.meta = path;
    o.nodes = NODES;
    p.seed = other;
    sherd_training *late = make(&o), *replaced = make(&o);
    sherd_training_free(run(p, nodes, over));
    uint64_t sent = local_sent(nodes);
    assert_int_equal(sherd_training_run(late, nodes, &d), SHERD_EEXPOSURE);
    assert_non_null(strstr(d.message, "operation forward_1 was used by another training"));
    save_step(path, 2);
    d = (sherd_diag){ 0 };
    assert_int_equal(sherd_training_run(replaced, nodes, &d), SHERD_EFORMAT);
    assert_non_null(strstr(d.message, "was replaced since the training was prepared"));
    assert_int_equal(local_sent(nodes), sent);
    assert_int_equal(used_operations(path), 0);
    sherd_training_free(late);
    sherd_training_free(replaced);
    folder_remove(folder);
}

static void a_cluster_of_another_size_is_refused(void **s)
{
    (void)s;
    sherd_diag d = { 0 };
    sherd_train_options o = seeded();
    o.nodes = NODES + 1;
    sherd_training *t = make(&o);
    assert_int_equal(sherd_training_run(t, nodes, &d), SHERD_EINVAL);
    assert_string_equal(d.message, "a training for 4 nodes was given 3");
    sherd_training_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_over_nodes_have_the_bits_of_this_machine),
        cmocka_unit_test(gradients_over_nodes_have_the_bits_of_threads),
        cmocka_unit_test(a_ring_of_nodes_has_them_too_and_its_model_can_be_read_at_every_epoch),
        cmocka_unit_test(simulated_secure_sums_count_their_privacy),
        cmocka_unit_test(a_model_predicts_over_nodes_with_the_bits_of_this_machine),
        cmocka_unit_test(hooks_are_those_of_the_training_or_else_of_the_cluster),
        cmocka_unit_test(a_record_says_which_row_of_the_data_is_which),
        cmocka_unit_test(metadata_decide_the_exposures_and_change_no_bit),
        cmocka_unit_test(exposures_include_the_work_of_a_lost_node),
        cmocka_unit_test(metadata_are_bound_before_anything_is_sent),
        cmocka_unit_test(a_cluster_of_another_size_is_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
