/* Networks of every layer, their batch and a plain multiplier; see network_world.h. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "tests/unit/learn/network_world.h"

double net_inputs[ROWS * IN_MAX];
const double net_wanted[ROWS * 4] = { 0.3, -0.2, 0.9, 0, 1.1, 0.4, -0.7, 0.2, 0, 0.5, 0.6, -1 };
const uint32_t net_labels[ROWS] = { 2, 0, 1 };

int net_fill_inputs(void **s)
{
    (void)s;
    for (size_t i = 0; i < ROWS * IN_MAX; i++) net_inputs[i] = sin(7.0 * (double)i + 1.0);
    return 0;
}

/* ---- a multiplier that allocates nothing and counts ------------------------------------------ */

struct net_plain_seen net_plain_seen;

static double at(sherd_view v, size_t r, size_t c)
{
    return ((const double *)v.data)[(ptrdiff_t)r * v.row_stride + (ptrdiff_t)c * v.col_stride];
}

static int plain_multiply(void *ctx, sherd_view a, sherd_view b, double *c, size_t ldc,
                          sherd_diag *d)
{
    (void)ctx;
    (void)d;
    if (++net_plain_seen.products == net_plain_seen.fail_at) return SHERD_EFEWNODES;
    for (size_t i = 0; i < a.rows; i++)
        for (size_t j = 0; j < b.cols; j++) {
            double sum = 0;
            for (size_t k = 0; k < a.cols; k++) sum += at(a, i, k) * at(b, k, j);
            c[i * ldc + j] = sum;
        }
    return SHERD_OK;
}

static int plain_map(void *ctx, sherd_op op, sherd_view a, sherd_view b, double *out, size_t ld,
                     sherd_diag *d)
{
    sherd_multiplier *local = ctx;
    net_plain_seen.maps++;
    return sherd_multiplier_map(*local, op, a, b, out, ld, d);
}

const sherd_multiplier_ops net_plain = {
    .abi = SHERD_MULTIPLIER_ABI,
    .name = "loops",
    .multiply = plain_multiply,
    .map = plain_map,
};

sherd_multiplier net_local(unsigned bits)
{
    sherd_multiplier m;
    assert_int_equal(sherd_multiplier_local(&m, bits, NULL), SHERD_OK);
    return m;
}

/* ---- networks -------------------------------------------------------------------------------- */

const plan net_plans[] = {
    { { 1, 1, 5 }, { DENSE(3) }, SHERD__LOSS_SQUARED, 0 },
    { { 1, 1, 5 }, { DENSE(3) }, SHERD__LOSS_CROSS_ENTROPY, 0.3 },
    { { 1, 1, 1 }, { DENSE(1), DENSE(1) }, SHERD__LOSS_SQUARED, 0.1 },
    { { 1, 1, 7 }, { DENSE(5), RELU, DENSE(3) }, SHERD__LOSS_CROSS_ENTROPY, 0 },
    { { 1, 1, 7 }, { DENSE(5), SIGMOID, DENSE(3), SIGMOID }, SHERD__LOSS_SQUARED, 0 },
    { { 1, 1, 7 }, { DENSE(5), TANH, DENSE(3), TANH }, SHERD__LOSS_SQUARED, 0 },
    { { 1, 1, 7 }, { DENSE(5), SOFTMAX, DENSE(3), SOFTMAX }, SHERD__LOSS_SQUARED, 0 },
    /* activations directly after each other, and after the input: the caller's input must not be
     * overwritten */
    { { 1, 1, 7 },
      { DENSE(5), TANH, RELU, SIGMOID, DENSE(3), FLATTEN, SOFTMAX, TANH },
      SHERD__LOSS_SQUARED,
      0 },
    { { 1, 7, 1 }, { FLATTEN, SIGMOID, TANH, FLATTEN, DENSE(3) }, SHERD__LOSS_SQUARED, 0 },
    { { 7, 1, 1 }, { FLATTEN, DENSE(3) }, SHERD__LOSS_SQUARED, 0 },
    { { 5, 7, 2 }, { CONV(3, 3, 0, 0), FLATTEN, DENSE(3) }, SHERD__LOSS_CROSS_ENTROPY, 0.01 },
    { { 5, 7, 2 },
      { CONV(3, 3, 0, 1), RELU, CONV(2, 3, 2, 2), TANH, FLATTEN, DENSE(3) },
      SHERD__LOSS_SQUARED,
      0 },
    { { 5, 5, 1 }, { CONV(2, 1, 3, 0), CONV(4, 2, 0, 0) }, SHERD__LOSS_SQUARED, 0 },
    { { 7, 5, 1 },
      { CONV(3, 2, 0, 0), AVERAGE_POOL(2, 0), RELU, FLATTEN, DENSE(3) },
      SHERD__LOSS_CROSS_ENTROPY,
      0 },
    { { 7, 5, 1 },
      { CONV(3, 2, 0, 0), TANH, AVERAGE_POOL(3, 1), FLATTEN, DENSE(3) },
      SHERD__LOSS_SQUARED,
      0 },
    { { 7, 5, 1 },
      { CONV(3, 2, 0, 0), MAX_POOL(2, 0), SIGMOID, FLATTEN, DENSE(3) },
      SHERD__LOSS_CROSS_ENTROPY,
      0 },
    { { 7, 5, 1 },
      { CONV(3, 2, 0, 0), SIGMOID, MAX_POOL(3, 1), FLATTEN, DENSE(3) },
      SHERD__LOSS_SQUARED,
      0 },
    { { 5, 7, 2 },
      { CONV(3, 3, 0, 1), TANH, CONV(2, 3, 0, 1), RELU, CONV(2, 2, 1, 0), FLATTEN, DENSE(3) },
      SHERD__LOSS_SQUARED,
      0 },
    /* most pixels are in no window */
    { { 6, 4, 1 },
      { CONV(2, 1, 0, 0), CONV(3, 1, 3, 0), FLATTEN, DENSE(3) },
      SHERD__LOSS_CROSS_ENTROPY,
      0 },
};
_Static_assert(sizeof net_plans / sizeof *net_plans == NET_PLANS, "a plan is missing");

static size_t plan_len(const plan *p)
{
    size_t len = 0;
    while (len < LAYERS_MAX && p->layers[len].kind) len++;
    return len;
}

sherd__network_spec net_spec(const plan *p)
{
    return (sherd__network_spec){ .in = p->in,
                                  .layers = p->layers,
                                  .len = plan_len(p),
                                  .batch = ROWS,
                                  .loss = p->loss,
                                  .l2 = p->l2 };
}

sherd__network *net_made(const plan *p)
{
    sherd__network *n;
    sherd__network_spec spec = net_spec(p);
    sherd_diag d = { 0 };
    sherd__seeded state;
    sherd__entropy e = sherd__entropy_seeded(&state, 5);
    if (sherd__network_new(&spec, &n, &d) != SHERD_OK) fail_msg("%s", d.message);
    sherd__network_draw(n, &e, 0.7);
    for (size_t i = 0; i < sherd__network_len(n); i++) { /* biases must have an effect */
        const sherd__layer *l = sherd__network_layer(n, i);
        for (size_t k = 0; k < l->cols; k++) l->biases[k] = 0.1 * (double)k - 0.15;
    }
    return n;
}

sherd__batch net_batch(const plan *p, size_t rows)
{
    size_t size = p->in.height * p->in.width * p->in.channels;
    sherd__batch b = { .x = sherd_view_c(net_inputs, SHERD_F64, rows, size) };
    if (p->loss == SHERD__LOSS_CROSS_ENTROPY) b.targets.labels = net_labels;
    else b.targets.values = net_wanted;
    return b;
}

double net_cost(sherd__network *n, sherd__engine e, const sherd__batch *b)
{
    double cost = NAN;
    sherd_diag d = { 0 };
    if (sherd__network_learn(n, e, b, &cost, NULL, &d) != SHERD_OK) fail_msg("%s", d.message);
    return cost;
}
