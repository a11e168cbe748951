/*
 * The published run on MNIST, whose costs and accuracies were obtained with another program, from
 * weights drawn by numpy's legacy generator (RandomState(402)): Mersenne Twister (Matsumoto and
 * Nishimura 1998) and the polar method. 100 billion multiplications are too many for valgrind, so
 * it is not a unit test.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "learn/network.h"
#include "learn/optimiser.h"
#include "store/idx.h"

/* ---- numpy.random.RandomState ---------------------------------------------------------------- */

typedef struct twister {
    uint32_t mt[624];
    unsigned at;
    int has;
    double saved;
} twister;

static void twister_seed(twister *t, uint32_t seed)
{
    memset(t, 0, sizeof *t);
    t->mt[0] = seed;
    for (uint32_t i = 1; i < 624; i++)
        t->mt[i] = UINT32_C(1812433253) * (t->mt[i - 1] ^ t->mt[i - 1] >> 30) + i;
    t->at = 624;
}

static uint32_t twister_next(twister *t)
{
    if (t->at == 624) {
        for (unsigned i = 0; i < 624; i++) {
            uint32_t y = (t->mt[i] & 0x80000000u) | (t->mt[(i + 1) % 624] & 0x7fffffffu);
            t->mt[i] = t->mt[(i + 397) % 624] ^ y >> 1 ^ (y & 1 ? UINT32_C(0x9908b0df) : 0);
        }
        t->at = 0;
    }
    uint32_t y = t->mt[t->at++];
    y ^= y >> 11;
    y ^= y << 7 & UINT32_C(0x9d2c5680);
    y ^= y << 15 & UINT32_C(0xefc60000);
    return y ^ y >> 18;
}

static double twister_double(twister *t)
{
    uint32_t a = twister_next(t) >> 5, b = twister_next(t) >> 6;
    return ((double)a * 67108864.0 + (double)b) / 9007199254740992.0;
}

static double twister_normal(twister *t)
{
    double u, v, r;
    if (t->has) {
        t->has = 0;
        return t->saved;
    }
    do {
        u = 2.0 * twister_double(t) - 1.0;
        v = 2.0 * twister_double(t) - 1.0;
        r = u * u + v * v;
    } while (r >= 1.0 || r == 0.0);
    double f = sqrt(-2.0 * log(r) / r);
    t->saved = f * u;
    t->has = 1;
    return f * v;
}

static void the_generator_equals_numpys(void **s)
{
    (void)s;
    const double want[4] = { -0.03372100629497482, -0.6500468648735443, 0.6263864631810667,
                             -0.29376140656312066 };
    twister t;
    twister_seed(&t, 402);
    for (size_t i = 0; i < 4; i++) assert_true(fabs(twister_normal(&t) - want[i]) < 1e-15);
}

/* ---- published ------------------------------------------------------------------------------- */

#define EPOCHS 5u

static uint32_t *labels_of(const sherd__idx *idx)
{
    uint32_t *labels = malloc(idx->rows * sizeof *labels);
    assert_non_null(labels);
    for (size_t i = 0; i < idx->rows; i++) labels[i] = idx->values[i];
    return labels;
}

static void published_weights(sherd__network *n)
{
    twister t;
    twister_seed(&t, 402);
    for (size_t i = 0; i < sherd__network_len(n); i++) {
        const sherd__layer *l = sherd__network_layer(n, i);
        for (size_t k = 0; k < l->rows * l->cols; k++) l->weights[k] = 0.01 * twister_normal(&t);
    }
}

static void the_published_run_on_mnist_is_reproduced(void **s)
{
    (void)s;
    static const double costs[EPOCHS] = { 1.2512294, 1.0071909, 0.8257813, 0.6928940, 0.6085362 };
    static const double accuracies[EPOCHS] = { 0.10437, 0.1206, 0.13897, 0.1711, 0.20297 };
    static const sherd__layer_spec layers[] = { { .kind = &sherd__layer_dense, .units = 128 },
                                                { .kind = &sherd__layer_sigmoid },
                                                { .kind = &sherd__layer_dense, .units = 10 },
                                                { .kind = &sherd__layer_sigmoid } };
    const char *folder = getenv("SHERD_MNIST");
    sherd__idx_set set = { 0 };
    sherd__network *n;
    sherd__optimiser o;
    sherd__engine e = { .maps = false };
    sherd_diag d = { 0 };
    if (!folder) folder = "../shared/data/mnist";
    if (access(folder, R_OK) != 0) skip();
    if (sherd__idx_set_load(&set, folder, "train", &d) != SHERD_OK) fail_msg("%s", d.message);
    sherd__network_spec spec = { .in = { 28, 28, 1 },
                                 .layers = layers,
                                 .len = 4,
                                 .batch = set.images.rows,
                                 .loss = SHERD__LOSS_SQUARED,
                                 .bias_total = true };
    assert_int_equal(sherd__network_new(&spec, &n, &d), SHERD_OK);
    assert_int_equal(sherd_multiplier_local(&e.products, 0, &d), SHERD_OK);
    assert_int_equal(sherd__optimiser_init(&o, &(sherd__optimiser_spec){ .method = SHERD__SGD },
                                           sherd__network_count(n), &d),
                     SHERD_OK);
    published_weights(n);
    uint32_t *labels = labels_of(&set.labels);
    sherd__batch b = { .x = sherd__idx_view(&set.images), .targets.labels = labels };
    for (size_t i = 0; i < EPOCHS; i++) {
        double cost, hits;
        const double *y;
        if (sherd__network_learn(n, e, &b, &cost, &y, &d) != SHERD_OK) fail_msg("%s", d.message);
        hits = (double)sherd__labels_hit(y, b.x.rows, 10, labels) / (double)b.x.rows;
        if (!(fabs(cost - costs[i]) < 1e-5)) fail_msg("epoch %zu: cost %.7f", i, cost);
        if (!(fabs(hits - accuracies[i]) < 1e-3)) fail_msg("epoch %zu: accuracy %.5f", i, hits);
        sherd__optimiser_begin(&o);
        sherd__optimiser_apply(&o, 0.05, 0, o.count, sherd__network_params(n),
                               sherd__network_gradient(n));
    }
    free(labels);
    sherd__optimiser_fini(&o);
    sherd__network_free(n);
    sherd_multiplier_free(e.products);
    sherd__idx_set_fini(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_generator_equals_numpys),
        cmocka_unit_test(the_published_run_on_mnist_is_reproduced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
