/*
 * Options for the products of a network. Options of `multiply` that apply to one product only
 * (masks, metadata, row shuffles) have no effect on networks. The library refuses schemes and
 * combinations that a network cannot use; this file refuses those that have no effect.
 */
#include "cli/remote_products.h"

#include <string.h>

#include "cli/applies.h"
#include "cli/nodes.h"
#include "sherd/machine.h"

const char *const sherd__choices_elementwise[] = { "here", "nodes", NULL };
const char *const sherd__choices_rounding[] = { "nearest", "stochastic", NULL };

static bool has(const sherd__cli *cli, const char *name)
{
    for (const sherd__option *o = cli->verb->options; o->name; o++)
        if (strcmp(o->name, name) == 0) return true;
    return false;
}

static int judge_nodes(sherd__cli *cli, sherd_diag *d)
{
    static const char *const of_nodes[] = {
        "scheme",      "colluding",         "spare",    "code",           "group",
        "exposure",    "exposure-max",      "encoding", "elementwise",    "record",
        "node-memory", "bind-to",           "backend",  "device",         "devices",
        "key",         "same-host-domains", "meta",     "reuse-metadata", NULL
    };
    const char *idle = sherd__opts_forget_unless_argv(cli, of_nodes);
    return !idle ? 0
                 : sherd__fail(d, SHERD_EINVAL, "-n 3 starts three nodes; or leave it out",
                               "--%s has no effect without nodes", idle);
}

/* Checks for options without effect under this scheme. Secure sums read the options of coded
 * operands. */
static int judge_scheme(const sherd_scheme_info *s, sherd__cli *cli, sherd_diag *d)
{
    bool secure = has(cli, "aggregate") && sherd__opt_choice(cli, "aggregate") == 1;
    const sherd__option *unread = sherd__opts_forget_unread(cli, s,
                                                            secure ? SHERD_TAKES_COLLUDING : 0);
    return unread ? sherd__opt_refuse(unread, s, d) : 0;
}

/* Checks for options without effect on hidden products. */
static int judge_hidden(const sherd__remote_products *o, const sherd_scheme_info *s,
                        sherd__cli *cli, sherd_diag *d)
{
    if (!o->nodes) return 0;
    if (s->exact_only && sherd__opt_choice(cli, "mode") == 0 &&
        sherd__opt_forget_unless_argv(cli, "mode"))
        return sherd__fail(d, SHERD_EINVAL, "leave it out: private schemes compute in fixed point",
                           "--mode float cannot be hidden: --scheme %s is exact", s->name);
    if (sherd_scheme_private(s->scheme))
        sherd__opts_forget(cli, (const char *const[]){ "elementwise", NULL });
    return 0;
}

/* Reads the fixed point's width and its rounding. */
static int read_arithmetic(sherd__remote_products *o, const sherd_scheme_info *s, sherd__cli *cli,
                           sherd_diag *d)
{
    int err = sherd__opts_arithmetic(cli, &o->opt.exact, &o->opt.bits, d);
    if (err) return err;
    if (o->nodes && s->exact_only) o->opt.exact = true;
    if (!o->opt.exact) sherd__opts_forget(cli, (const char *const[]){ "rounding", NULL });
    o->stochastic = has(cli, "rounding") && sherd__opt_choice(cli, "rounding") == 1;
    return 0;
}

int sherd__remote_products_read(sherd__remote_products *o, sherd__cli *cli, sherd_diag *d)
{
    memset(o, 0, sizeof *o);
    o->opt = (sherd_product_options){ .size = sizeof o->opt };
    o->nodes = sherd__opt_given(cli, "local") || sherd__opt_given(cli, "nodes") ||
               sherd__opt_is_set(cli, "by");
    int err = o->nodes ? 0 : judge_nodes(cli, d);
    if (err) return err;
    const sherd_scheme_info *s = sherd__opt_scheme(cli);
    o->opt.scheme = s->scheme;
    err = sherd_scheme_for_network(s->scheme) ? judge_scheme(s, cli, d) : 0;
    if (!err) err = judge_hidden(o, s, cli, d);
    if (err) return err;
    o->opt.colluding = (uint32_t)sherd__opt_int(cli, "colluding");
    o->opt.spare = (uint32_t)sherd__opt_int(cli, "spare");
    o->opt.code = (sherd_code)sherd__opt_choice(cli, "code");
    o->opt.group = (uint32_t)sherd__opt_int(cli, "group");
    o->opt.balanced = sherd__opt_choice(cli, "exposure") == 1;
    o->opt.exposure_max = sherd__opt_real(cli, "exposure-max");
    o->opt.encoding = (sherd_encoding)sherd__opt_choice(cli, "encoding");
    o->opt.memory = sherd__opt_size(cli, "memory");
    o->opt.strict = sherd__opt_flag(cli, "strict");
    o->opt.timeout_ms = sherd__opt_time_ms(cli, "timeout");
    o->elementwise = has(cli, "elementwise") && sherd__opt_choice(cli, "elementwise") == 1;
    if (sherd__opt_given(cli, "threads"))
        sherd_blas_threads_set((unsigned)sherd__opt_int(cli, "threads"));
    return read_arithmetic(o, s, cli, d);
}

int sherd__remote_products_open(sherd_cluster **out, const sherd__remote_products *o,
                                sherd__cli *cli, sherd_diag *d)
{
    *out = NULL;
    if (!o->nodes) return 0;
    int err = sherd__nodes_suit(cli, &o->opt, d);
    return err ? err : sherd__nodes_open(out, cli, &o->opt, d);
}
