/*
 * A step by products: forward pass, backward pass and update are made here, one product after the
 * other, and the multiplier decides where products are computed. Nothing is left to settle.
 */
#include "core/alloc.h"
#include "core/diag.h"
#include "learn/train.h"
#include "matrix/rounding.h"

typedef struct products {
    sherd__network *network;
    sherd__optimiser *optimiser;
    sherd__engine engine;
} products;

static int step(void *ctx, const sherd__step *s, sherd__step_result *out, sherd_diag *d)
{
    products *p = ctx;
    const sherd__network_update by = { p->optimiser, s->rate, s->gradient };
    sherd__learnt got;
    sherd__rounding_step(p->engine.products, s->number);
    if (p->engine.begin) p->engine.begin(p->engine.begin_ctx, s->number);
    int err = sherd__network_step(p->network, p->engine, &s->batch, &by, &got, d);
    if (err != 0) return err;
    out->cost = got.cost;
    out->hits = !s->batch.targets.labels
                    ? 0
                    : sherd__labels_hit(got.y, s->len, sherd__network_width(p->network),
                                        s->batch.targets.labels);
    return SHERD_OK;
}

static int settle(void *ctx, sherd_diag *d)
{
    (void)ctx;
    (void)d;
    return SHERD_OK;
}

static const sherd__stepper_ops ops = { "products", 0, step, settle, sherd__free };

int sherd__stepper_products(sherd__stepper *out, sherd__network *n, sherd__optimiser *o,
                            sherd__engine e, sherd_diag *d)
{
    products *p = sherd__calloc(1, sizeof *p);
    *out = (sherd__stepper){ 0 };
    if (!p) return sherd__fail_memory(d, "a stepper");
    *p = (products){ n, o, e };
    *out = (sherd__stepper){ &ops, p };
    return SHERD_OK;
}

void sherd__stepper_free(sherd__stepper s)
{
    if (s.ops) s.ops->free(s.ctx);
}
