/*
 * Prepares `blind`: opens the mask file, checks it against B, bit widths and number of rows, and
 * opens the scheme with it. No mask row is invalidated here, because much can still fail before
 * anything is sent. Rows are invalidated when the scheme hides its first cell. The scheme cannot
 * hide a cell without invalidating rows, because only that step returns the key.
 *
 * The sizes and numbers of messages depend on shapes, on B (which is public), and on the bit widths
 * that the masks were prepared for.
 */
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "core/wipe.h"
#include "matrix/exact.h"
#include "scheduler/plan/prepare_internal.h"
#include "schemes/blind/blind.h"
#include "schemes/partition/partition.h"
#include "schemes/slots.h"
#include "store/maskfile.h"

typedef unsigned long long ull;

static int read_row(void *ctx, uint64_t row, uint32_t q, size_t from, size_t n, uint8_t *out)
{
    sherd__prepared *p = ctx;
    size_t m = (size_t)sherd__maskfile_head_of(p->masks)->m;
    return sherd__maskfile_read(p->masks, row, SHERD__RESIDUE_BYTES * (q * m + from),
                                SHERD__RESIDUE_BYTES * n, out, &p->mask_fault);
}

static int strike(void *ctx)
{
    sherd__prepared *p = ctx;
    uint8_t key[32];
    uint64_t first;
    int err = sherd__maskfile_strike(p->masks, p->mask_rows, &first, key, &p->mask_fault);
    if (err) return err;
    err = sherd__blind_arm(&p->hiding, key, first);
    sherd__wipe(key, sizeof key);
    return err;
}

static int check_widths(const sherd__maskfile_head *h, const sherd_product_options *opt,
                        sherd_diag *d)
{
    uint32_t a = opt->bits ? opt->bits : h->bits_a, b = opt->bits_b ? opt->bits_b : h->bits_b;
    if (a == h->bits_a && b == h->bits_b) return SHERD_OK;
    bool of_a = a != h->bits_a; /* otherwise B's width was requested: here it does not follow A's */
    return sherd__fail(d, SHERD_EINVAL, "omit the bits, or prepare masks for these",
                       "%s: masks for %u bits of A and %u of B, requested %u of %s", opt->masks,
                       h->bits_a, h->bits_b, of_a ? a : b, of_a ? "A" : "B");
}

/* Repeats the range proof of `sherd prepare`: the head of the file is not trusted. */
static int check_primes(const sherd__maskfile_head *h, const char *path, sherd_diag *d)
{
    uint64_t amax = (UINT64_C(1) << (h->bits_a - 1)) - 1,
             bmax = (UINT64_C(1) << (h->bits_b - 1)) - 1;
    size_t need;
    bool held = !sherd__exact_primes_needed((size_t)h->k, amax, bmax, &sherd__primes_default,
                                            &need) &&
                need <= h->primes_len &&
                !memcmp(h->primes, sherd__primes_default.p, h->primes_len * sizeof h->primes[0]);
    return held ? SHERD_OK
                : sherd__fail(d, SHERD_EVERSION, "prepare new masks",
                              "%s: masks modulo primes that this version does not use", path);
}

/* shape: b has only a shape, no values. */
static int check_b(const sherd__maskfile_head *h, sherd_view b, bool shape,
                   const sherd_product_options *opt, sherd_diag *d)
{
    const char *path = opt->masks;
    sherd__digest digest;
    if (h->k != b.rows || h->m != b.cols)
        return sherd__fail(d, SHERD_ESHAPE, "prepare masks for this B",
                           "%s: masks for a B of %llu x %llu, this B is %zu x %zu", path, (ull)h->k,
                           (ull)h->m, b.rows, b.cols);
    if (shape) return SHERD_OK;
    int err = sherd__profile_hash(opt->profile_b, &digest, &opt->hooks, d);
    if (err || !memcmp(digest.sha256, h->b.sha256, sizeof digest.sha256)) return err;
    return sherd__fail(d, SHERD_EEXPOSURE, "prepare masks for this B",
                       "%s: masks for another B: its digest differs", path);
}

static int choose_a(sherd__fixed *f, sherd_view a, uint32_t bits, const sherd_product_options *opt,
                    sherd_diag *d)
{
    sherd_diag mine = { 0 };
    const char *name = sherd__name_a(opt);
    int err = sherd__profile_fixed(opt->profile_a, bits, name, f, d);
    if (err || !sherd__fixed_hold(f, a, bits, name, &mine)) return err;
    return sherd__fail(d, SHERD_ERANGE,
                       f->largest >> (SHERD__PRIVATE_BITS - 1)
                           ? "scale the data: masks hold 26 bits at most"
                           : "prepare masks with more bits for A",
                       "%s", mine.message);
}

static int blind_range(sherd_view a, sherd_view b, const sherd_product_options *opt, sherd_diag *d)
{
    sherd__maskfile *f;
    sherd__fixed fixed;
    (void)b;                          /* compared by its digest in the mask file */
    if (!opt->masks) return SHERD_OK; /* preparing reports it */
    int err = sherd__maskfile_open(&f, opt->masks, opt->masks_state, false, d);
    if (err) return err;
    const sherd__maskfile_head *h = sherd__maskfile_head_of(f);
    err = check_widths(h, opt, d);
    if (!err) err = choose_a(&fixed, a, h->bits_a, opt, d);
    sherd__maskfile_close(f);
    return err;
}

static int choose_widths(sherd__prepared *p, sherd_view a, const sherd__maskfile_head *h,
                         const sherd_product_options *opt, sherd_diag *d)
{
    int err = sherd__profile_fixed(opt->profile_b, h->bits_b, sherd__name_b(opt), &p->fixed_b, d);
    if (!err) err = choose_a(&p->fixed_a, a, h->bits_a, opt, d);
    p->primes_len = h->primes_len;
    p->exact = true;
    return err;
}

static int plan(sherd__prepared *p, sherd_view a, sherd_view b, const sherd__nodes *nodes,
                const sherd_product_options *opt, sherd_diag *d)
{
    p->size_a = SHERD__RESIDUE_BYTES * (size_t)p->primes_len;
    p->size_b = sherd_dtype_size((sherd_dtype)sherd__partition_dtype(b, true, &p->fixed_b));
    sherd__plan_input in = {
        .n = a.rows,
        .k = a.cols,
        .m = b.cols,
        .slots = p->slots,
        .widest = a.cols,
        .rows_kept = 1,
        .rows_longest = sherd__slots_longest(a.rows, p->slots,
                                             sherd__prepare_weights(p, nodes, opt)),
        .size_a = p->size_a,
        .size_b = p->size_b,
        .primes_len = p->primes_len,
        .memory = opt->memory,
    };
    return sherd__prepare_cut(p, &in, nodes, d);
}

static int open_scheme(sherd__prepared *p, const sherd__matrices *m, const uint32_t *weights)
{
    sherd__blind_params bp = {
        .a = m->a,
        .b = m->b,
        .c = m->out,
        .ldc = m->ld,
        .slots = p->slots,
        .weights = weights,
        .panel_rows = p->plan.panel_rows,
        .tile_cols = p->plan.tile_cols,
        .fixed_a = p->fixed_a,
        .fixed_b = p->fixed_b,
        .primes_len = p->primes_len,
        .source = { read_row, p },
        .strike = p->mask_rows ? strike : NULL,
        .strike_ctx = p,
        .entropy = p->entropy,
    };
    memcpy(bp.primes, sherd__primes_default.p, sizeof bp.primes);
    int err = sherd__blind_open(&p->hiding, &bp);
    for (uint32_t i = 0; i < p->slots && !err; i++)
        p->planned[i] = (uint32_t)sherd__blind_planned(&p->hiding, i);
    return err;
}

static int blind_prepare(sherd__prepared *p, const sherd__matrices *m, const sherd__nodes *nodes,
                         const sherd_product_options *opt, sherd_diag *d)
{
    const sherd_view a = m->a, b = m->b;
    const bool runs = m->out; /* without memory for the result there will be no run */
    if (!opt->masks)
        return sherd__fail(d, SHERD_EINVAL,
                           "make them with sherd prepare, and name the file (--masks)",
                           "the scheme blind needs masks that were prepared for B");
    if (!a.data && a.rows && a.cols)
        return sherd__fail(d, SHERD_EUNSUPPORTED, "multiply by it while there are masks",
                           "an operand is not kept at the nodes under blind");
    int err = sherd__maskfile_open(&p->masks, opt->masks, opt->masks_state, runs, d);
    if (err) return err;
    const sherd__maskfile_head *h = sherd__maskfile_head_of(p->masks);
    bool shape = !runs && b.row_stride == 0 && b.col_stride == 0; /* one number for all values */
    err = check_b(h, b, shape, opt, d);
    if (!err) err = check_widths(h, opt, d);
    if (!err) err = check_primes(h, opt->masks, d);
    if (!err) err = choose_widths(p, a, h, opt, d);
    if (!err && a.rows > sherd__maskfile_left(p->masks))
        err = sherd__fail(d, SHERD_EEXPOSURE,
                          "prepare more with sherd prepare, or multiply fewer rows",
                          "%s: %llu rows of masks are left, and A has %zu rows: no row of masks is "
                          "used twice",
                          opt->masks, (ull)sherd__maskfile_left(p->masks), a.rows);
    if (err) return err;
    double e = 2.0 / (double)sherd__primes_default.p[p->primes_len - 1];
    /* Two trials; a wrong answer is wrong modulo at least one of the primes. */
    p->check_error = e * e;
    p->mask_rows = runs ? a.rows : 0;
    err = plan(p, a, b, nodes, opt, d);
    return err ? err : open_scheme(p, m, sherd__prepare_weights(p, nodes, opt));
}

static int blind_ready(sherd__prepared *p, sherd_diag *d)
{
    return p->mask_rows ? sherd__maskfile_check(p->masks, p->mask_rows, d) : SHERD_OK;
}

static void blind_report(const sherd__prepared *p, sherd_report *r)
{
    r->masks_left = sherd__maskfile_left(p->masks);
}

const sherd__planner sherd__blind_planner = {
    .range = blind_range,
    .prepare = blind_prepare,
    .ready = blind_ready,
    .report = blind_report,
};
