/*
 * The operations of a training step, as the layers of learn/ request them from a multiplier over
 * nodes: products of dense layers and convolutions (learn/products.c), and, if nodes compute them,
 * activations and their gradients (learn/activation.c).
 *
 * Data that stay at the nodes are the right operand of their products (scheduler/job/multiplier.c),
 * so these products are transposed. The first convolution's windows are not kept.
 */
#include "lib/train/operations.h"

#include <stdio.h>

typedef struct listing {
    sherd__step_table *out;
    size_t len;
    size_t batch;
    unsigned layer, activation; /* with parameters; activations: numbered from 1 */
} listing;

static void add(listing *g, const char *name, sherd_op kind, const uint64_t shape[3], bool kept)
{
    sherd__step_table *t = &g->out[g->len++];
    *t = (sherd__step_table){
        .op = { .size = sizeof t->op, .kind = kind, .n = shape[0], .k = shape[1], .m = shape[2] },
        .kept = kept
    };
    snprintf(t->op.name, sizeof t->op.name, "%s", name);
}

/* A product whose result is C = A B, or its transpose B^T A^T if `kept`: n x k by k x m. */
static void add_product(listing *g, const char *format, uint64_t n, uint64_t k, uint64_t m,
                        bool kept)
{
    char name[SHERD_META_NAME_SIZE];
    snprintf(name, sizeof name, format, g->layer);
    add(g, name, SHERD_OP_PRODUCT, (const uint64_t[]){ kept ? m : n, k, kept ? n : m }, kept);
}

/* The entries of a batch are one row, so that nodes do not see which of them belong together. */
static void add_map(listing *g, const sherd__layer *l, sherd_op kind, const char *tail)
{
    char name[SHERD_META_NAME_SIZE];
    uint64_t width = (uint64_t)l->in.height * l->in.width * l->in.channels;
    snprintf(name, sizeof name, "activation_%u%s", g->activation, tail);
    add(g, name, kind, (const uint64_t[]){ 1, 0, g->batch * width }, false);
    g->out[g->len - 1].of_batch = true;
}

static bool is_map(const sherd__layer *l)
{
    return l->spec.kind->op == SHERD_OP_SIGMOID || l->spec.kind->op == SHERD_OP_TANH ||
           l->spec.kind->op == SHERD_OP_RELU;
}

/* Returns how many rows of a product an example has: one for each window. */
static uint64_t rows_each(const sherd__layer *l)
{
    sherd__windows w = sherd__layer_windows(l);
    return w.count > 0 ? w.count : 1;
}

static void add_slope(listing *g, const sherd__layer *l)
{
    sherd_op of = (sherd_op)l->spec.kind->op;
    if (of != SHERD_OP_SIGMOID && of != SHERD_OP_TANH) return; /* ReLU's is computed here */
    add_map(g, l, SHERD_OP_SQUARE, "_square");
    if (of == SHERD_OP_SIGMOID) add_map(g, l, SHERD_OP_MINUS, "_minus");
    add_map(g, l, SHERD_OP_TIMES, "_times");
    if (of == SHERD_OP_TANH) add_map(g, l, SHERD_OP_MINUS, "_minus");
}

static void add_backward(listing *g, const sherd__layer *l, bool lowest, bool kept)
{
    uint64_t rows = g->batch * rows_each(l);
    add_product(g, "backward_%u_weights", l->rows, rows, l->cols, kept);
    g->out[g->len - 1].of_batch = true;
    if (!lowest) add_product(g, "backward_%u_input", rows, l->cols, l->rows, false);
}

size_t sherd__step_operations(const sherd__recipe *r, const sherd__network *n, size_t batch,
                              bool elementwise, sherd__step_table *out)
{
    listing g = { .out = out, .batch = batch };
    bool fixed = r->order == SHERD__ORDER_GIVEN || r->order == SHERD__ORDER_BATCHES,
         keeps = fixed && sherd__network_keeps(n);
    for (size_t i = 0; i < sherd__network_len(n); i++) {
        const sherd__layer *l = sherd__network_layer(n, i);
        if (l->cols > 0) {
            bool kept = keeps && g.layer == 0 && sherd__layer_windows(l).count == 0;
            g.layer++;
            add_product(&g, "forward_%u", batch * rows_each(l), l->rows, l->cols, kept);
        }
        if (!is_map(l)) continue;
        g.activation++;
        if (elementwise) add_map(&g, l, (sherd_op)l->spec.kind->op, "");
    }
    for (size_t i = sherd__network_len(n); i-- > 0 && g.layer > 0;) {
        const sherd__layer *l = sherd__network_layer(n, i);
        if (l->cols > 0) {
            bool kept = keeps && g.layer == 1 && sherd__layer_windows(l).count == 0;
            add_backward(&g, l, g.layer == 1, kept);
            g.layer--;
        }
        if (!is_map(l)) continue;
        if (elementwise) add_slope(&g, l);
        g.activation--;
    }
    return g.len;
}
