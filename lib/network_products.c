/*
 * Options for the products of a network. Options of sherd_multiply that apply to one product only
 * (masks, metadata, row shuffles) have no effect on networks. Two schemes are refused: a public
 * right operand would be the weights in the forward pass and the errors in the backward pass, and
 * the data can be computed from those by least squares.
 */
#include "lib/network_products.h"

#include <string.h>

#include "core/diag.h"
#include "matrix/rounding.h"
#include "matrix/scaling.h"
#include "scheduler/cluster/internal.h"
#include "scheduler/plan/prepare.h"

#define BITS_LEAST 2u
#define BITS_MOST 26u

static int refuse_scheme(const sherd_product_options *opt, sherd_diag *d)
{
    const sherd_scheme_info *s = sherd_scheme_get(opt->scheme);
    if (!s->scheme)
        return sherd__fail(d, SHERD_EINVAL, "sherd/scheme.h lists them", "unknown scheme %d",
                           (int)opt->scheme);
    if (!(s->takes & SHERD_TAKES_MASKS))
        return sherd__fail(d, SHERD_EINVAL, "use --scheme share, which hides both operands",
                           "--scheme %s is refused for a network: nodes would see the weights and "
                           "the errors of every step, from which the data can be computed",
                           s->name);
    return sherd__fail(d, SHERD_EINVAL, "use --scheme share, which needs no masks",
                       "--scheme %s is refused for a network: its masks serve one public B, but "
                       "the weights change at every step",
                       s->name);
}

int sherd__network_products_read(sherd__network_products *p, const sherd_product_options *opt,
                                 bool nodes, sherd_diag *d)
{
    memset(p, 0, sizeof *p);
    p->nodes = nodes;
    sherd__product_options_init(&p->opt);
    int err = opt ? sherd__product_options_read(&p->opt, opt, d) : SHERD_OK;
    if (err) return err;
    /* The caller's strings need not outlive this call, and none of them names an operand here. */
    p->opt.name_a = p->opt.name_b = p->opt.masks = p->opt.masks_state = NULL;
    p->opt.profile_a = p->opt.profile_b = NULL;
    const sherd_scheme_info *s = sherd_scheme_get(p->opt.scheme);
    if (!sherd_scheme_for_network(p->opt.scheme)) return refuse_scheme(&p->opt, d);
    if (nodes && s->exact_only) p->opt.exact = true;
    if (p->opt.exact && (p->opt.bits < BITS_LEAST || p->opt.bits > BITS_MOST))
        return sherd__fail(d, SHERD_EINVAL, "choose --bits between 2 and 26",
                           "exact mode with %u bits: %u to %u are possible", p->opt.bits,
                           BITS_LEAST, BITS_MOST);
    p->bits = p->opt.exact ? p->opt.bits : 0;
    return SHERD_OK;
}

int sherd__network_products_check(const sherd__network_products *p, sherd_dtype precision,
                                  sherd_diag *d)
{
    const sherd_scheme_info *s = sherd_scheme_get(p->opt.scheme);
    if (p->nodes && p->maps && sherd_scheme_private(s->scheme))
        return sherd__fail(d, SHERD_EINVAL, "leave it out: they are then computed locally",
                           "--elementwise nodes would show the activations that --scheme %s "
                           "hides",
                           s->name);
    if (p->stochastic && p->bits == 0)
        return sherd__fail(d, SHERD_EINVAL, "add --mode exact, or leave it out",
                           "--rounding stochastic has no effect on floats");
    if (precision != SHERD_F32 || (!p->nodes && p->bits == 0)) return SHERD_OK;
    return sherd__fail(d, SHERD_EINVAL, "precision f64, or neither nodes nor fixed point",
                       "a network of f32 is computed on this machine and in floats only");
}

int sherd__network_products_round(const sherd__network_products *p, sherd_multiplier *m,
                                  sherd_diag *d)
{
    sherd_multiplier inner = *m;
    int err = SHERD_OK;
    if (p->bits == 0) return SHERD_OK;
    if (p->stochastic) err = sherd__rounding_new(m, inner, p->bits, p->rounding, d);
    if (!err) {
        inner = *m;
        err = sherd__scaling_new(m, inner, d);
    }
    if (err) sherd_multiplier_free(inner);
    return err;
}

int sherd__network_products_open(sherd__network_products *p, sherd_cluster *c, const uint8_t *seed,
                                 sherd_diag *d)
{
    sherd_product_options opt = p->opt;
    opt.seed = seed; /* copied by the multiplier */
    p->engine.maps = c && p->maps;
    p->engine.keeps = c && sherd_scheme_get(opt.scheme)->keeps == SHERD_KEEPS_LEFT &&
                      !p->stochastic;
    if (p->nodes && p->bits > 0 && p->bits <= 27) p->engine.whole = (size_t)1 << (55 - 2 * p->bits);
    int err = c ? sherd_multiplier_cluster(&p->engine.products, c, &opt, d)
                : sherd_multiplier_local(&p->engine.products, p->bits, d);
    if (!err && c && p->tables) {
        sherd__multiplier_use_tables(p->engine.products, p->tables);
        p->engine.begin = sherd__step_tables_begin;
        p->engine.begin_ctx = p->tables;
    }
    return err ? err : sherd__network_products_round(p, &p->engine.products, d);
}

void sherd__network_products_close(sherd__network_products *p)
{
    sherd_multiplier_free(p->engine.products);
    p->engine.products = (sherd_multiplier){ 0 };
    p->engine.begin = NULL;
}

sherd__network_traffic sherd__network_traffic_of(sherd_cluster *c)
{
    sherd__network_traffic t = { 0 };
    if (!c) return t;
    sherd__cluster_refresh(c);
    t.nodes = sherd_cluster_size(c);
    for (uint32_t i = 0; i < t.nodes; i++) {
        const sherd_node_info info = sherd__cluster_node(c, i);
        t.up += info.state == SHERD_NODE_UP;
        t.bytes_out += info.bytes_out;
        t.bytes_in += info.bytes_in;
    }
    return t;
}

const char *sherd__network_products_sees(const sherd__network_products *p)
{
    if (!p->nodes) return "all data stay on this machine";
    const char *sees = sherd_scheme_get(p->opt.scheme)->training;
    return sees ? sees : "under a scheme that is not private: nodes may see data and weights";
}
