/*
 * Options for the products of a network. Options of `multiply` that apply to one product only
 * (masks, metadata, row shuffles) have no meaning here. Two schemes of the library are refused: a
 * public right operand would be the weights in the forward pass and the errors in the backward
 * pass, and the data can be computed from those by least squares.
 */
#include "cli/remote_products.h"

#include <string.h>

#include "cli/applies.h"
#include "cli/nodes.h"
#include "sherd/machine.h"
#include "matrix/rounding.h"
#include "matrix/scaling.h"
#include "scheduler/cluster/internal.h"

const char *const sherd__choices_elementwise[] = { "here", "nodes", NULL };
const char *const sherd__choices_rounding[] = { "nearest", "stochastic", NULL };

static bool has(const sherd__cli *cli, const char *name)
{
    for (const sherd__option *o = cli->verb->options; o->name; o++)
        if (strcmp(o->name, name) == 0) return true;
    return false;
}

static int refuse_scheme(const sherd_scheme_info *s, sherd_diag *d)
{
    if (!(s->takes & SHERD_TAKES_MASKS))
        return sherd__fail(d, SHERD_EINVAL, "use --scheme share, which hides both operands",
                           "--scheme %s is refused for a network: nodes would see the weights "
                           "and the errors of every step, and the data follow from those",
                           s->name);
    return sherd__fail(d, SHERD_EINVAL, "use --scheme share, which needs no masks",
                       "--scheme %s is refused for a network: its masks serve one public B, and "
                       "the weights are another one at every step",
                       s->name);
}

static int judge_nodes(sherd__cli *cli, sherd_diag *d)
{
    static const char *const of_nodes[] = { "scheme",
                                            "colluding",
                                            "spare",
                                            "group",
                                            "exposure",
                                            "exposure-max",
                                            "encoding",
                                            "elementwise",
                                            "record",
                                            "node-memory",
                                            "bind-to",
                                            "key",
                                            "same-host-domains",
                                            NULL };
    const char *idle = sherd__opts_idle(cli, of_nodes);
    return !idle ? 0
                 : sherd__fail(d, SHERD_EINVAL, "-n 3 starts three nodes; or leave it out",
                               "--%s has no effect without nodes", idle);
}

/* Checks for options without effect under this scheme. */
static int judge_scheme(const sherd_scheme_info *s, sherd__cli *cli, sherd_diag *d)
{
    static const char *const of_permute[] = { "group", "exposure", "exposure-max", NULL };
    static const char *const of_share[] = { "colluding", "spare", NULL };
    bool secure = has(cli, "aggregate") && sherd__opt_choice(cli, "aggregate") == 1;
    const char *idle = NULL;
    if (!(s->takes & SHERD_TAKES_SHUFFLES)) idle = sherd__opts_idle(cli, of_permute);
    if (idle)
        return sherd__fail(d, SHERD_EINVAL, "leave it out, or use --scheme permute",
                           "--%s has no effect under --scheme %s", idle, s->name);
    if (!(s->takes & SHERD_TAKES_COLLUDING) && !secure) idle = sherd__opts_idle(cli, of_share);
    if (idle)
        return sherd__fail(d, SHERD_EINVAL, "leave it out, or use --scheme share",
                           "--%s has no effect under --scheme %s%s", idle, s->name,
                           sherd_scheme_private(s->scheme) ? "" : ", which is not private");
    return 0;
}

/* Checks for options that cannot be combined with hidden products. */
static int judge_hidden(const sherd__remote_products *o, const sherd_scheme_info *s,
                        sherd__cli *cli, sherd_diag *d)
{
    if (!(s->takes & SHERD_TAKES_ENCODING) && sherd__opt_idle(cli, "encoding"))
        return sherd__fail(d, SHERD_EINVAL,
                           "leave it out: a coded operand has no zeros to leave out",
                           "--encoding has no effect under --scheme %s", s->name);
    if (!o->nodes) return 0;
    if (s->exact_only && sherd__opt_choice(cli, "mode") == 0 && sherd__opt_idle(cli, "mode"))
        return sherd__fail(d, SHERD_EINVAL, "leave it out: private schemes compute in fixed point",
                           "--mode float cannot be hidden: --scheme %s is exact", s->name);
    if (sherd_scheme_private(s->scheme) && has(cli, "elementwise") &&
        sherd__opt_choice(cli, "elementwise") == 1 && sherd__opt_idle(cli, "elementwise"))
        return sherd__fail(d, SHERD_EINVAL, "leave it out: they are computed here",
                           "--elementwise nodes would show the activations that --scheme %s "
                           "hides",
                           s->name);
    return 0;
}

/* Reads the fixed point's width and its rounding. */
static int read_arithmetic(sherd__remote_products *o, const sherd_scheme_info *s, sherd__cli *cli,
                           sherd_diag *d)
{
    bool exact;
    uint32_t bits;
    int err = sherd__opts_arithmetic(cli, &exact, &bits, d);
    if (err) return err;
    if (o->nodes && s->exact_only) exact = true;
    o->opt.exact = exact;
    o->opt.bits = bits;
    o->bits = exact ? bits : 0;
    bool stochastic = has(cli, "rounding") && sherd__opt_choice(cli, "rounding") == 1;
    if (stochastic && !exact && sherd__opt_idle(cli, "rounding"))
        return sherd__fail(d, SHERD_EINVAL, "add --mode exact, or leave it out",
                           "--rounding stochastic has no effect on floats");
    o->stochastic = stochastic && exact;
    return 0;
}

int sherd__remote_products_precision(const sherd__remote_products *o, sherd_dtype precision,
                                     sherd_diag *d)
{
    if (precision != SHERD_F32 || (!o->nodes && o->bits == 0)) return 0;
    return sherd__fail(d, SHERD_EINVAL, "precision f64, or neither nodes nor fixed point",
                       "a network of f32 is computed on this machine and in floats only");
}

int sherd__remote_products_read(sherd__remote_products *o, sherd__cli *cli, sherd_diag *d)
{
    memset(o, 0, sizeof *o);
    o->opt = (sherd_product_options){ .size = sizeof o->opt };
    o->nodes = sherd__opt_given(cli, "local") || sherd__opt_given(cli, "nodes") ||
               sherd__opt_in_effect(cli, "by");
    int err = o->nodes ? 0 : judge_nodes(cli, d);
    if (err) return err;
    const sherd_scheme_info *s = sherd__opt_scheme(cli);
    o->opt.scheme = s->scheme;
    if (!sherd__scheme_for_network(s)) return refuse_scheme(s, d);
    err = judge_scheme(s, cli, d);
    if (!err) err = judge_hidden(o, s, cli, d);
    if (err) return err;
    o->opt.colluding = (uint32_t)sherd__opt_int(cli, "colluding");
    o->opt.spare = (uint32_t)sherd__opt_int(cli, "spare");
    o->opt.group = (uint32_t)sherd__opt_int(cli, "group");
    o->opt.balanced = sherd__opt_choice(cli, "exposure") == 1;
    o->opt.exposure_max = sherd__opt_real(cli, "exposure-max");
    o->opt.encoding = (sherd_encoding)sherd__opt_choice(cli, "encoding");
    o->opt.memory = sherd__opt_size(cli, "memory");
    o->opt.strict = sherd__opt_flag(cli, "strict");
    o->opt.timeout_ms = sherd__opt_time_ms(cli, "timeout");
    o->engine.maps = has(cli, "elementwise") && sherd__opt_choice(cli, "elementwise") == 1;
    if (sherd__opt_given(cli, "threads"))
        sherd_blas_threads_set((unsigned)sherd__opt_int(cli, "threads"));
    return read_arithmetic(o, s, cli, d);
}

int sherd__remote_products_round(const sherd__remote_products *o, sherd_multiplier *m,
                                 sherd_diag *d)
{
    sherd_multiplier inner = *m;
    int err = 0;
    if (o->bits == 0) return 0;
    if (o->stochastic) err = sherd__rounding_new(m, inner, o->bits, o->rounding, d);
    if (!err) {
        inner = *m;
        err = sherd__scaling_new(m, inner, d);
    }
    if (err) sherd_multiplier_free(inner);
    return err;
}

int sherd__remote_products_open(sherd__remote_products *o, sherd__cli *cli, const uint8_t *seed,
                                sherd_diag *d)
{
    int err;
    if (!o->nodes) {
        err = sherd_multiplier_local(&o->engine.products, o->bits, d);
    } else {
        sherd_product_options opt = o->opt;
        opt.seed = seed; /* copied by the multiplier */
        err = o->here ? 0 : sherd__nodes_suit(cli, &o->opt, d);
        if (!err) err = sherd__nodes_open(&o->cluster, cli, o->here ? NULL : &o->opt, d);
        if (!err)
            err = o->here ? sherd_multiplier_local(&o->engine.products, o->bits, d)
                          : sherd_multiplier_cluster(&o->engine.products, o->cluster, &opt, d);
        bool shares = sherd_scheme_describe(opt.scheme)->keeps == SHERD_KEEPS_LEFT;
        o->engine.keeps = !o->here && shares && !o->stochastic;
        o->engine.whole = o->bits > 0 && o->bits <= 27 ? (size_t)1 << (55 - 2 * o->bits) : 0;
    }
    return err ? err : sherd__remote_products_round(o, &o->engine.products, d);
}

int sherd__remote_products_end(sherd__remote_products *o, sherd_diag *d)
{
    sherd_multiplier_free(o->engine.products);
    o->engine.products = (sherd_multiplier){ 0 };
    return sherd_cluster_end(o->cluster, d);
}

void sherd__remote_products_close(sherd__remote_products *o)
{
    sherd_multiplier_free(o->engine.products);
    sherd_cluster_close(o->cluster);
    o->engine.products = (sherd_multiplier){ 0 };
    o->cluster = NULL;
}

sherd__remote_products_traffic sherd__remote_products_traffic_now(const sherd__remote_products *o)
{
    sherd__remote_products_traffic t = { 0 };
    sherd_node_info info = { .size = sizeof info };
    if (o->cluster) sherd__cluster_refresh(o->cluster);
    t.nodes = o->cluster ? sherd_cluster_size(o->cluster) : 0;
    for (uint32_t i = 0; i < t.nodes; i++) {
        sherd_cluster_node(o->cluster, i, &info);
        t.up += info.state == SHERD_NODE_UP;
        t.bytes_out += info.bytes_out;
        t.bytes_in += info.bytes_in;
    }
    return t;
}

const char *sherd__remote_products_says(const sherd__remote_products *o)
{
    if (o->says) return o->says;
    if (!o->cluster) return "all of it here";
    if (o->here) return "by gradients: nodes see examples and weights in clear";
    const char *says = sherd_scheme_describe(o->opt.scheme)->training;
    return says ? says : "under a scheme that is not private: nodes may see data and weights";
}
