/*
 * Small networks of every layer and their batch, for tests of networks: the plan of a network, its
 * initial values, and a multiplier that shares no code with the library's.
 */
#ifndef TESTS_UNIT_LEARN_NETWORK_WORLD_H
#define TESTS_UNIT_LEARN_NETWORK_WORLD_H

#include "learn/network.h"

#define LAYERS_MAX 8
#define ROWS 3u
#define IN_MAX 128u
#define COUNT_MAX 2000

typedef struct plan {
    sherd__tensor_shape in;
    sherd__layer_spec layers[LAYERS_MAX];
    sherd__loss loss;
    double l2;
} plan;

#define DENSE(n)                                                                                   \
    {                                                                                              \
        .kind = &sherd__layer_dense, .units = (n)                                                  \
    }
#define RELU                                                                                       \
    {                                                                                              \
        .kind = &sherd__layer_relu                                                                 \
    }
#define SIGMOID                                                                                    \
    {                                                                                              \
        .kind = &sherd__layer_sigmoid                                                              \
    }
#define TANH                                                                                       \
    {                                                                                              \
        .kind = &sherd__layer_tanh                                                                 \
    }
#define SOFTMAX                                                                                    \
    {                                                                                              \
        .kind = &sherd__layer_softmax                                                              \
    }
#define FLATTEN                                                                                    \
    {                                                                                              \
        .kind = &sherd__layer_flatten                                                              \
    }
#define CONV(n, w, s, p)                                                                           \
    {                                                                                              \
        .kind = &sherd__layer_conv2d, .units = (n), .window = (w), .stride = (s), .padding = (p)   \
    }
#define MAX_POOL(w, s)                                                                             \
    {                                                                                              \
        .kind = &sherd__layer_max_pool, .window = (w), .stride = (s)                               \
    }
#define AVERAGE_POOL(w, s)                                                                         \
    {                                                                                              \
        .kind = &sherd__layer_average_pool, .window = (w), .stride = (s)                           \
    }

#define NET_PLANS 19u
extern const plan net_plans[NET_PLANS];

/** ROWS examples with as many numbers as any plan needs. */
extern double net_inputs[ROWS * IN_MAX];
extern const double net_wanted[ROWS * 4];
extern const uint32_t net_labels[ROWS];
/** The set-up of a group of tests. */
int net_fill_inputs(void **s);

sherd__network_spec net_spec(const plan *p);
/** Makes a network with random weights and nonzero biases. */
sherd__network *net_made(const plan *p);
sherd__batch net_batch(const plan *p, size_t rows);
/** Returns the cost of a forward and backward pass. */
double net_cost(sherd__network *n, sherd__engine e, const sherd__batch *b);

/** Returns the multiplier of this machine; bits 0: floats. */
sherd_multiplier net_local(unsigned bits);
/** Plain loops that allocate nothing and count calls; ctx is a multiplier of this machine, for
 *  maps. */
extern const sherd_multiplier_ops net_plain;
extern struct net_plain_seen {
    unsigned products, maps, fail_at; /* fail_at: the product that fails, counted from 1; 0: none */
} net_plain_seen;

#endif
