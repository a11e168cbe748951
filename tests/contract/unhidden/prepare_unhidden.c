/* Prepares `unhidden`: fixed point if the product is exact, sizes of cells, and the hiding. Values
 * that are not finite are refused, because its check cannot judge their products. */
#include "core/diag.h"
#include "matrix/exact.h"
#include "scheduler/plan/prepare_internal.h"
#include "tests/contract/unhidden/unhidden.h"

static int choose(sherd__fixed *out, sherd_profile *v, const sherd_product_options *opt,
                  const char *name, sherd_diag *d)
{
    const sherd__scan *scan = sherd__profile_scan(v);
    if (opt->exact) return sherd__profile_fixed(v, opt->bits, name, out, d);
    return !scan->nonfinite ? SHERD_OK
                            : sherd__fail(d, SHERD_ERANGE, "use another scheme", "%s holds %g",
                                          name, scan->bad_value);
}

static int check_sums(size_t inner, const sherd__fixed *a, const sherd__fixed *b, sherd_diag *d)
{
    return sherd__exact_in_f64(inner, a->bound, b->bound)
               ? SHERD_OK
               : sherd__fail(d, SHERD_ERANGE, "use fewer --bits",
                             "sums of %zu products of %u and %u bits do not fit a double", inner,
                             a->bits, b->bits);
}

static int look_at(sherd__prepared *p, sherd_view a, const sherd_product_options *opt,
                   sherd_diag *d)
{
    int err = p->as ? SHERD_OK : choose(&p->fixed_b, opt->profile_b, opt, sherd__name_b(opt), d);
    if (p->as) p->fixed_b = *p->as;
    if (!err && a.data) err = choose(&p->fixed_a, opt->profile_a, opt, sherd__name_a(opt), d);
    else p->fixed_a.bound = (UINT64_C(1) << (opt->bits - 1)) - 1;
    return err || !opt->exact ? err : check_sums(a.cols, &p->fixed_a, &p->fixed_b, d);
}

static int unhidden_range(sherd_view a, sherd_view b, const sherd_product_options *opt,
                          sherd_diag *d)
{
    sherd__prepared p = { .exact = opt->exact };
    (void)b;
    return look_at(&p, a, opt, d);
}

static void count_planned(sherd__prepared *p)
{
    for (uint32_t i = 0; i < p->slots; i++)
        p->planned[i] = (uint32_t)unhidden_planned(&p->hiding, i);
}

static int unhidden_prepare(sherd__prepared *p, const sherd__matrices *m, const sherd__nodes *nodes,
                            const sherd_product_options *opt, sherd_diag *d)
{
    p->size_a = p->size_b = sizeof(double);
    p->tolerant = !opt->exact;
    p->check_error = 1;
    sherd__plan_input in = { .n = m->a.rows,
                             .k = m->a.cols,
                             .m = m->b.cols,
                             .slots = p->slots,
                             .widest = m->a.cols,
                             .rows_kept = 1,
                             .rows_longest = (m->a.rows + p->slots - 1) / p->slots,
                             .size_a = p->size_a,
                             .size_b = p->size_b,
                             .memory = opt->memory };
    int err = look_at(p, m->a, opt, d);
    if (!err) err = sherd__prepare_cut(p, &in, nodes, d);
    if (err) return err;
    const unhidden_params params = { .b = m->b,
                                     .slots = p->slots,
                                     .rows_max = m->a.rows,
                                     .panel_rows = p->plan.panel_rows,
                                     .tile_cols = p->plan.tile_cols,
                                     .fixed_a = opt->exact ? &p->fixed_a : NULL,
                                     .fixed_b = opt->exact ? &p->fixed_b : NULL,
                                     .entropy = p->entropy };
    err = unhidden_open(&p->hiding, &params);
    if (!err && m->a.data) err = unhidden_next(&p->hiding, m->a, m->out, m->ld);
    if (!err) count_planned(p);
    return err;
}

static int unhidden_next_a(sherd__prepared *p, const sherd__matrices *m,
                           const sherd_product_options *opt, sherd_diag *d)
{
    sherd__fixed fixed = { 0 };
    int err = choose(&fixed, opt->profile_a, opt, "A", d);
    if (!err && p->exact) err = check_sums(m->a.cols, &fixed, &p->fixed_b, d);
    if (err) return err;
    p->fixed_a = fixed;
    err = unhidden_next(&p->hiding, m->a, m->out, m->ld);
    if (!err) count_planned(p);
    return err;
}

const sherd__planner unhidden_planner = {
    .range = unhidden_range,
    .prepare = unhidden_prepare,
    .next = unhidden_next_a,
};
