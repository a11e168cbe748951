/* Internals of a network, shared by network.c (creation, accessors, initial weights) and
   network_pass.c. No other file includes this. */
#ifndef LEARN_NETWORK_STATE_H
#define LEARN_NETWORK_STATE_H

#include "learn/network.h"

struct sherd__network {
    sherd__layer *layers;
    sherd_dtype dtype;
    void **outs;                    /* each layer's outputs; several may be the same memory */
    size_t len, batch, size, width; /* size: numbers in one input */
    size_t count;
    size_t first;  /* lowest layer with parameters; len if there is no such layer */
    bool steady;   /* sherd__network_steady */
    bool any_view; /* the lowest layer that computes takes any view */
    sherd__loss loss;
    double l2;
    union {
        double *params;
        float *params32;
    };
    union {
        double *gradient;
        float *gradient32;
    };
    void *room;      /* one allocation: outputs, scratch of layers, and the buffers below */
    void *input;     /* x in the network's dtype, unless any_view */
    void *delta[2];  /* d cost / d outputs of a layer, and of the one below */
    double *widened; /* in a network of f32: the outputs as f64, for the caller */
    sherd__network_hooks hooks;
    sherd__layer_apart apart; /* if `take` is NULL, gradients are computed */
};

#endif
