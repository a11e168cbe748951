/* Complete trainings on the embedded digits. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <string.h>

#include "learn/digits.h"
#include "learn/network.h"
#include "learn/optimiser.h"

#define DIGITS 600u
#define BATCH 60u
/* Hash of the parameters below; computed by this code, and the same on every machine and for every
 * number of threads. */
#define EXACT_BITS UINT64_C(0xca12660e7650234f)

static double pixels[DIGITS * SHERD__DIGIT_PIXELS];
static uint32_t digits[DIGITS];

static int draw_digits(void **s)
{
    static uint8_t bytes[DIGITS * SHERD__DIGIT_PIXELS], names[DIGITS];
    (void)s;
    sherd__digits_draw(SHERD__DIGITS_SEED, 0, DIGITS, bytes, names);
    for (size_t k = 0; k < DIGITS * SHERD__DIGIT_PIXELS; k++) pixels[k] = bytes[k] / 256.0;
    for (size_t i = 0; i < DIGITS; i++) digits[i] = names[i];
    return 0;
}

/* Trains by mini-batches with Adam; *hits is that of the last epoch, out gets the parameters. */
static void train(const sherd__layer_spec *layers, size_t len, unsigned bits, size_t epochs,
                  size_t *hits, double *out, size_t room)
{
    sherd__network_spec spec = { .in = { 28, 28, 1 },
                                 .layers = layers,
                                 .len = len,
                                 .batch = BATCH,
                                 .loss = SHERD__LOSS_CROSS_ENTROPY,
                                 .l2 = 1e-4 };
    sherd__engine e = { .maps = false };
    sherd__network *n;
    sherd__optimiser o;
    sherd__seeded state;
    sherd__entropy entropy = sherd__entropy_seeded(&state, 1);
    assert_int_equal(sherd__network_new(&spec, &n, NULL), SHERD_OK);
    assert_int_equal(sherd_multiplier_local(&e.products, bits, NULL), SHERD_OK);
    assert_int_equal(sherd__optimiser_init(&o, &(sherd__optimiser_spec){ .method = SHERD__ADAM },
                                           sherd__network_count(n), NULL),
                     SHERD_OK);
    sherd__network_draw(n, &entropy, 0);
    for (size_t i = 0; i < epochs; i++) {
        *hits = 0;
        for (size_t k = 0; k < DIGITS; k += BATCH) {
            sherd_diag d = { 0 };
            const double *y;
            double cost;
            sherd__batch b = { .x = sherd_view_c(pixels + k * SHERD__DIGIT_PIXELS, SHERD_F64, BATCH,
                                                 SHERD__DIGIT_PIXELS),
                               .targets.labels = digits + k };
            if (sherd__network_learn(n, e, &b, &cost, &y, &d) != SHERD_OK)
                fail_msg("%s", d.message);
            *hits += sherd__labels_hit(y, BATCH, 10, digits + k);
            sherd__optimiser_begin(&o);
            sherd__optimiser_apply(&o, 5e-3, 0, o.count, sherd__network_params(n),
                                   sherd__network_gradient(n));
        }
    }
    assert_true(sherd__network_count(n) <= room);
    memcpy(out, sherd__network_params(n), sherd__network_count(n) * sizeof *out);
    sherd__optimiser_fini(&o);
    sherd__network_free(n);
    sherd_multiplier_free(e.products);
}

static void dense_and_convolutional_networks_learn_digits(void **s)
{
    (void)s;
    static const sherd__layer_spec dense[] = { { .kind = &sherd__layer_flatten },
                                               { .kind = &sherd__layer_dense, .units = 24 },
                                               { .kind = &sherd__layer_relu },
                                               { .kind = &sherd__layer_dense, .units = 10 } };
    static const sherd__layer_spec conv[] = {
        { .kind = &sherd__layer_conv2d, .units = 4, .window = 5, .stride = 2 },
        { .kind = &sherd__layer_relu },
        { .kind = &sherd__layer_max_pool, .window = 2 },
        { .kind = &sherd__layer_flatten },
        { .kind = &sherd__layer_dense, .units = 10 },
    };
    static double params[30000];
    size_t hits;
    train(dense, 4, 0, 6, &hits, params, 30000);
    if (hits < DIGITS * 97 / 100) fail_msg("dense: %zu of %u", hits, DIGITS);
    train(conv, 5, 0, 8, &hits, params, 30000);
    if (hits < DIGITS * 95 / 100) fail_msg("convolutional: %zu of %u", hits, DIGITS);
}

static void exact_training_has_the_same_bits_everywhere_and_learns_digits(void **s)
{
    (void)s;
    static const sherd__layer_spec layers[] = { { .kind = &sherd__layer_dense, .units = 16 },
                                                { .kind = &sherd__layer_tanh },
                                                { .kind = &sherd__layer_dense, .units = 10 } };
    static double params[13000];
    const unsigned char *bytes = (const unsigned char *)params;
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    size_t hits;
    train(layers, 3, 17, 4, &hits, params, 13000);
    for (size_t k = 0; k < (784 + 1 + 10) * 16 * sizeof *params + 10 * sizeof *params; k++)
        hash = (hash ^ bytes[k]) * UINT64_C(0x100000001b3);
    if (hash != EXACT_BITS) fail_msg("the bits of the parameters are %" PRIx64, hash);
    if (hits < DIGITS * 95 / 100) fail_msg("%zu of %u", hits, DIGITS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense_and_convolutional_networks_learn_digits),
        cmocka_unit_test(exact_training_has_the_same_bits_everywhere_and_learns_digits),
    };
    return cmocka_run_group_tests(tests, draw_digits, NULL);
}
