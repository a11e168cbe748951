/*
 * Prepares `permute` and `plain`: examines the operands, chooses fixed point and the encoding of A,
 * plans the partition, and opens the scheme with what was drawn (sherd__prepare_draw). Zeros may be
 * left out, so under these schemes the amount of data sent depends on values.
 */
#include <stdio.h>
#include <string.h>

#include "core/cpu.h"
#include "core/diag.h"
#include "matrix/exact.h"
#include "matrix/view.h"
#include "scheduler/plan/prepare_internal.h"
#include "schemes/partition/partition.h"
#include "schemes/slots.h"

/* One two-sided trial: 2 divided by the number of weights, 2^61-1, also if the modulus is 2^127-1
 * (crypto/freivalds.h). */
#define CHECK_ERROR_EXACT 0x1p-60

static int stored_rows(void *ctx, uint64_t row, uint32_t n, uint32_t *perm)
{
    const sherd_shuffles *s = ctx;
    (void)n;
    return s->rows(s->ctx, (size_t)row, perm);
}

static sherd__perm_source rows_source(sherd__prepared *p)
{
    if (!p->shuffles.rows) return sherd__perm_from_key(p->rows_key);
    return (sherd__perm_source){ stored_rows, &p->shuffles };
}

/* Chooses fixed point. If it does not hold the values, suggests floats in addition, which private
 * schemes do not have. */
static int choose_or_float(sherd_profile *v, unsigned bits, const char *name, sherd__fixed *out,
                           sherd_diag *d)
{
    sherd_diag mine = { 0 };
    char hint[sizeof mine.hint + 32];
    int err = sherd__profile_fixed(v, bits, name, out, &mine);
    if (!err) return SHERD_OK;
    snprintf(hint, sizeof hint, "%s%s", mine.hint,
             err == SHERD_ERANGE ? ", or multiply in floats" : "");
    return sherd__fail(d, err, hint, "%s", mine.message);
}

static int choose_exact(sherd__prepared *p, sherd_view a, sherd_view b,
                        const sherd_product_options *opt, sherd_diag *d)
{
    size_t primes = 0;
    const char *name_a = sherd__name_a(opt), *name_b = sherd__name_b(opt);
    int err = SHERD_OK;
    if (p->as) p->fixed_b = *p->as;
    else err = choose_or_float(opt->profile_b, opt->bits, name_b, &p->fixed_b, d);
    if (!err && a.data) err = choose_or_float(opt->profile_a, opt->bits, name_a, &p->fixed_a, d);
    else if (!err) p->fixed_a.bound = (UINT64_C(1) << (opt->bits - 1)) - 1;
    if (!err && opt->bits_bind) err = sherd__fixed_hold(&p->fixed_b, b, opt->bits, name_b, d);
    if (!err && opt->bits_bind && a.data)
        err = sherd__fixed_hold(&p->fixed_a, a, opt->bits, name_a, d);
    if (err) return err;
    if (!sherd__exact_in_f64(a.cols, p->fixed_a.bound, p->fixed_b.bound)) {
        err = sherd__exact_primes_needed(a.cols, p->fixed_a.bound, p->fixed_b.bound,
                                         &sherd__primes_default, &primes);
        if (err)
            return sherd__fail(d, err, "use fewer --bits",
                               "sums of %zu products of %u and %u bits do not fit four primes",
                               a.cols, p->fixed_a.bits, p->fixed_b.bits);
    }
    p->primes_len = (uint32_t)primes;
    return SHERD_OK;
}

static int partition_range(sherd_view a, sherd_view b, const sherd_product_options *opt,
                           sherd_diag *d)
{
    sherd__prepared p = { .exact = true };
    return opt->exact ? choose_exact(&p, a, b, opt, d) : SHERD_OK;
}

static size_t wire_size(sherd_view v, bool exact, const sherd__fixed *f)
{
    return sherd_dtype_size((sherd_dtype)sherd__partition_dtype(v, exact, f));
}

/* What a plan needs to know of the operands. */
typedef struct facts {
    bool finite;    /* both are */
    double density; /* the part of A's entries that is not zero; 1 if B is not finite */
    uint64_t nonzeros;
    size_t widest; /* columns of A of the largest slot */
} facts;

/* A B that is kept serves any number of rows, which are divided equally. */
static const uint32_t *rows_weights(const sherd__prepared *p, const sherd__nodes *nodes,
                                    const sherd_product_options *opt)
{
    return p->shape_only ? NULL : sherd__prepare_weights(p, nodes, opt);
}

static int plan(sherd__prepared *p, const sherd__matrices *m, const sherd__nodes *nodes,
                const sherd_product_options *opt, const facts *of, sherd_diag *d)
{
    const sherd_view a = m->a, b = m->b;
    const size_t widest = of->widest;
    bool plain = !sherd__prepare_shuffles(p);
    size_t g = opt->group == 0 || opt->group > widest ? widest : opt->group;
    size_t groups = plain ? 1 : g ? (widest + g - 1) / g : 0;
    p->size_a = a.data ? wire_size(a, p->exact, &p->fixed_a) : 8;
    p->size_b = wire_size(b, p->exact, &p->fixed_b);
    sherd__plan_input in = {
        .n = a.rows,
        .k = a.cols,
        .m = b.cols,
        .slots = p->slots,
        .widest = widest,
        .rows_kept = (double)groups * (g == 1 && !plain ? of->density : 1),
        .rows_longest = plain ? sherd__slots_longest(a.rows, p->slots, rows_weights(p, nodes, opt))
                              : a.rows,
        .size_a = p->size_a,
        .size_b = p->size_b,
        .primes_len = p->primes_len,
        .memory = opt->memory,
        .may_stay = plain && !p->exact && !p->shape_only,
    };
    return sherd__prepare_cut(p, &in, nodes, d);
}

static int look_at(sherd__prepared *p, const sherd__matrices *m, const sherd_product_options *opt,
                   facts *out, sherd_diag *d)
{
    const sherd_view a = m->a, b = m->b;
    *out = (facts){ .density = 1 };
    p->b_finite = sherd__profile_scan(opt->profile_b)->nonfinite == 0;
    out->finite = p->b_finite && a.data;
    if (a.data) {
        const sherd__scan *scan = sherd__profile_scan(opt->profile_a);
        out->finite = out->finite && scan->nonfinite == 0;
        size_t all = a.rows * a.cols;
        out->nonzeros = scan->nonzeros;
        if (p->b_finite && all) out->density = (double)scan->nonzeros / (double)all;
    }
    p->tolerant = !opt->exact;
    p->check_error = opt->exact ? CHECK_ERROR_EXACT : 1;
    return opt->exact ? choose_exact(p, a, b, opt, d) : SHERD_OK;
}

/* Chooses the encoding of A's panels: as requested, or by predicted time. If B is not finite, zeros
 * count as values. */
static void choose_encoding(sherd__prepared *p, sherd_view a, uint64_t nonzeros)
{
    sherd__encoding_input *in = &p->encoding_in;
    in->rows = a.rows;
    in->nonzeros = nonzeros;
    bool possible = p->b_finite && a.data && !(in->skips && in->widest <= 1);
    p->encoding = (sherd__encoding){ 0 };
    if (possible) sherd__encoding_choose(&p->encoding, in);
    if (p->asked != SHERD_ENCODING_AUTO)
        p->encoding.csr = possible && p->asked == SHERD_ENCODING_CSR;
    sherd__partition_sparse(&p->hiding, p->encoding.csr);
}

/* Returns how many nodes compute at the same time: nodes on this machine share its processors. */
static uint32_t sharing(uint32_t nodes)
{
    uint32_t here = sherd__cpu_usable();
    return here < nodes ? here : nodes;
}

static void set_up_encoding(sherd__prepared *p, sherd_view a, sherd_view b, size_t widest,
                            const sherd__nodes *nodes, const sherd_product_options *opt)
{
    sherd__scheme_shape shape;
    bool plain = !sherd__prepare_shuffles(p);
    size_t g = plain || opt->group == 0 || opt->group > widest ? widest : opt->group, groups = 0;
    p->hiding.ops->shape(p->hiding.ctx, &shape);
    for (uint32_t i = 0; i < p->slots && g > 0 && !plain; i++)
        groups += (p->planned[i] + g - 1) / g;
    p->asked = opt->encoding;
    p->encoding_in = (sherd__encoding_input){
        .cols = a.cols,
        .groups = plain ? 1 : groups,
        .widest = g,
        .skips = p->b_finite && !plain,
        .value_bytes = p->size_a,
        .m = b.cols,
        .tiles = shape.tiles,
        .primes_len = p->primes_len,
        .nodes = nodes->remote ? nodes->count : sharing(nodes->count),
        .gflops = nodes->gflops,
        .threads = nodes->threads,
        .none = nodes->no_csr,
        .link = opt->link_rate > 0 ? opt->link_rate : sherd__link_rate(!nodes->remote),
    };
}

static int partition_prepare(sherd__prepared *p, const sherd__matrices *m,
                             const sherd__nodes *nodes, const sherd_product_options *opt,
                             sherd_diag *d)
{
    const sherd_view a = m->a, b = m->b;
    bool plain = !sherd__prepare_shuffles(p);
    facts of;
    int err = look_at(p, m, opt, &of, d);
    if (!err && !plain)
        err = sherd__prepare_draw(p, a.cols, sherd__prepare_weights(p, nodes, opt), opt, d);
    if (!err && plain && opt->seed) memcpy(p->seed, opt->seed, sizeof p->seed);
    if (err) return err;
    of.widest = plain ? a.cols : sherd__prepare_widest(p, a.cols);
    err = plan(p, m, nodes, opt, &of, d);
    if (err) return err;
    sherd__partition_params deal = {
        .a = a,
        .b = b,
        .c = m->out,
        .ldc = m->ld,
        .slots = p->slots,
        .exposures = p->exposures,
        .weights = rows_weights(p, nodes, opt),
        .group = opt->group ? opt->group : SHERD__GROUP_ALL,
        .panel_rows = p->plan.panel_rows,
        .tile_cols = p->plan.tile_cols,
        .left_stays = p->plan.left_stays,
        .perm_cache = p->plan.perm_cache,
        .skip_zeros = p->b_finite && !plain,
        .finite = of.finite,
        .exact = opt->exact,
        .fixed_a = p->fixed_a,
        .fixed_b = p->fixed_b,
        .primes_len = p->primes_len,
        .entropy = p->entropy,
        .bodies = nodes->bodies,
    };
    memcpy(deal.primes, sherd__primes_default.p, sizeof deal.primes);
    if (!plain) deal.perm = sherd__prepare_perms(p, opt);
    if (!plain && opt->shuffle_rows) deal.rows = rows_source(p);
    err = sherd__partition_open(&p->hiding, &deal);
    if (err) return err;
    for (uint32_t i = 0; i < p->slots; i++)
        p->planned[i] = (uint32_t)sherd__partition_planned(&p->hiding, i);
    set_up_encoding(p, a, b, of.widest, nodes, opt);
    choose_encoding(p, a, of.nonzeros);
    return SHERD_OK;
}

static int partition_next(sherd__prepared *p, const sherd__matrices *m,
                          const sherd_product_options *opt, sherd_diag *d)
{
    const sherd_view a = m->a;
    const sherd__scan *scan = sherd__profile_scan(opt->profile_a);
    sherd__fixed fixed = p->fixed_a;
    if (p->exact) {
        int err = sherd__profile_fixed(opt->profile_a, opt->bits, "A", &fixed, d);
        /* B was kept for these bits. */
        if (!err) err = sherd__fixed_hold(&fixed, a, opt->bits, "A", d);
        if (err) return err;
        p->fixed_a = fixed;
    }
    bool finite = p->exact || (p->b_finite && scan->nonfinite == 0);
    p->encoding_in.value_bytes = wire_size(a, p->exact, &fixed);
    choose_encoding(p, a, scan->nonzeros);
    return sherd__partition_next(&p->hiding, a, m->out, m->ld, finite, &fixed);
}

static void partition_report(const sherd__prepared *p, sherd_report *r)
{
    sherd__partition_counts(&p->hiding, &r->rows_skipped, &r->fragments);
    r->encoding = p->encoding.csr ? SHERD_ENCODING_CSR : SHERD_ENCODING_DENSE;
    r->tasks_csr = sherd__partition_csr_cells(&p->hiding);
}

const sherd__planner sherd__partition_planner = {
    .range = partition_range,
    .prepare = partition_prepare,
    .next = partition_next,
    .report = partition_report,
};
