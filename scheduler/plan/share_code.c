/*
 * Lagrange's code needs 2 (K+T) - 1 answers, any of the nodes'; the inner-product code K + 2T, all
 * of them. So the latter has more blocks and less work for each node, and is possible only if no
 * node may be missing: none is spare, and all are up. After a loss everything is coded again.
 */
#include "scheduler/plan/share_code.h"

#include <stdio.h>

#include "core/cpu.h"
#include "core/diag.h"
#include "core/pieces.h"
#include "crypto/inner.h"
#include "matrix/residue.h"
#include "scheduler/plan/cost.h"
#include "scheduler/plan/encoding.h"
#include "scheduler/plan/forecast.h"
#include "scheduler/plan/kernel_rates.h"
#include "scheduler/plan/pace.h"

const char *const sherd__code_names[] = { "auto", "lagrange", "inner", NULL };

const sherd__code *sherd__share_code_asked(const sherd_product_options *opt)
{
    return opt->code == SHERD_CODE_AUTO ? NULL : sherd__codes[opt->code - 1];
}

sherd_code sherd__share_code_number(const sherd__code *code)
{
    uint32_t i = 0;
    while (sherd__codes[i] != code) i++;
    return (sherd_code)(i + 1);
}

bool sherd__share_codes_b(const sherd_product_options *opt)
{
    return sherd_scheme_get(opt->scheme)->hides_b;
}

uint64_t sherd__share_least(const sherd_product_options *opt)
{
    uint64_t t = opt->colluding;
    return opt->spare + (sherd__share_codes_b(opt) ? 2 * t : t) + 1;
}

/* --- which code ------------------------------------------------------------------------------ */

static int too_few(const sherd__nodes *nodes, uint32_t need, const sherd_product_options *opt,
                   sherd_diag *d)
{
    char older[80] = "";
    if (nodes->older)
        snprintf(older, sizeof older,
                 ", and %u of older nodes, which do not support windows of images", nodes->older);
    return sherd__fail(d, SHERD_EFEWNODES,
                       nodes->older ? "update the older nodes"
                                    : "start more nodes in domains of their own, or lower "
                                      "--colluding or --spare",
                       "%u domain%s of nodes %s up%s; --scheme %s with --colluding %u and --spare "
                       "%u needs %u or more",
                       nodes->usable, nodes->usable == 1 ? "" : "s",
                       nodes->usable == 1 ? "is" : "are", older,
                       sherd_scheme_get(opt->scheme)->name, opt->colluding, opt->spare, need);
}

/* Returns how many spare domains are left. Domains that are not up count as spare, because the user
 * declared that the rest is enough. */
static uint32_t spares_left(const sherd__nodes *nodes, const sherd_product_options *opt)
{
    uint32_t lost = nodes->domains - nodes->usable;
    return lost < opt->spare ? opt->spare - lost : 0;
}

static const char other[] = "use --code lagrange, or leave the choice to sherd";

int sherd__share_code_check(const sherd__code *by, const sherd_product_options *opt, sherd_diag *d)
{
    if (!by || !by->complete) return SHERD_OK;
    if (!sherd__share_codes_b(opt))
        return sherd__fail(d, SHERD_EINVAL, other,
                           "--code %s hides both operands, and --scheme %s only one", by->name,
                           sherd_scheme_get(opt->scheme)->name);
    if (opt->spare)
        return sherd__fail(d, SHERD_EINVAL, other,
                           "--code %s needs the answers of all nodes, and --spare %u lets some be "
                           "missing",
                           by->name, opt->spare);
    return SHERD_OK;
}

int sherd__share_code_fit(sherd__prepared *p, const sherd__code *by, size_t rows,
                          const sherd__nodes *nodes, const sherd_product_options *opt,
                          sherd_diag *d)
{
    bool both = sherd__share_codes_b(opt);
    uint32_t t = opt->colluding, spare = spares_left(nodes, opt);
    uint64_t least = sherd__share_least(opt), now = least - opt->spare + spare;
    if (t == 0)
        return sherd__fail(d, SHERD_EINVAL, "give 1 or more, or use --scheme plain",
                           "--colluding 0 would hide nothing from a single node");
    if (nodes->domain_fault)
        return sherd__fail(d, SHERD_EFORMAT, nodes->domain_hint, "%s", nodes->domain_fault);
    if (least > SHERD__LCC_SHARES_MAX || nodes->usable < now)
        return too_few(nodes, (uint32_t)(least < UINT32_MAX ? least : UINT32_MAX), opt, d);
    int err = sherd__share_code_check(by, opt, d);
    if (err) return err;
    if (by->complete && nodes->usable < nodes->domains)
        return sherd__fail(d, SHERD_EFEWNODES, other,
                           "--code %s needs the answers of all nodes, and %u of %u domains are up",
                           by->name, nodes->usable, nodes->domains);
    uint32_t k = by->blocks(nodes->usable, t, spare, both);
    if (k == 0 && by->complete)
        return sherd__fail(d, SHERD_EINVAL, other,
                           "shares for %u domains, of which %u may collude, are more than --code "
                           "%s can make",
                           nodes->domains, t, by->name);
    if (by->cut == SHERD__CUT_ROWS && k > rows) k = rows ? (uint32_t)rows : 1;
    p->coded_by = by;
    p->code = (sherd__lcc){ .blocks = k, .masks = t, .shares = nodes->domains };
    p->threshold = by->threshold(k, t, both);
    for (uint32_t i = 0; i < p->primes_len; i++)
        if (by->check(&p->code, p->primes[i]))
            return sherd__fail(d, SHERD_EINVAL, "use fewer nodes, or a smaller --colluding",
                               "%u blocks, %u masks and %u shares are more than can be encoded", k,
                               t, nodes->domains);
    return SHERD_OK;
}

/* --- seeds ----------------------------------------------------------------------------------- */

/* Links differ if a node answered at less than this fraction of the median. */
#define SLOW_LINK 0.7

/* Returns how fast the slowest node of a domain answered, as a fraction of the median; 1: not
 * known. */
static double pace_of(const sherd__nodes *nodes, uint32_t domain)
{
    double pace = 1;
    for (uint32_t i = 0; nodes->paces && i < nodes->count; i++)
        if (nodes->domain[i] == domain && nodes->paces[i] > 0 && nodes->paces[i] < pace)
            pace = nodes->paces[i];
    return pace;
}

/* Returns whether a domain is one of the `most` slowest of those that expand seeds. */
static bool among_slowest(const sherd__nodes *nodes, uint32_t domain, uint32_t most)
{
    const double pace = pace_of(nodes, domain);
    uint32_t slower = 0;
    for (uint32_t d = 0; d < nodes->domains; d++) {
        const double other_pace = pace_of(nodes, d);
        slower += nodes->seeds[d] && (other_pace < pace || (other_pace == pace && d < domain));
    }
    return slower < most;
}

uint32_t sherd__share_code_seeds(const sherd__prepared *p, const sherd__nodes *nodes,
                                 uint32_t *slots)
{
    uint32_t able = 0, slow = 0, len = 0;
    if (!p->bytes || !nodes->seeds) return 0;
    for (uint32_t d = 0; d < nodes->domains; d++) {
        able += nodes->seeds[d];
        slow += nodes->seeds[d] && pace_of(nodes, d) < SLOW_LINK;
    }
    if (able < p->code.masks) return 0;
    for (uint32_t d = 0; d < nodes->domains; d++) {
        if (!nodes->seeds[d] || (slow && !among_slowest(nodes, d, p->code.masks))) continue;
        if (slots) slots[len] = d;
        len++;
    }
    return len;
}

/* --- its time -------------------------------------------------------------------------------- */

size_t sherd__share_code_rows(const sherd__prepared *p, size_t rows)
{
    return p->coded_by->cut == SHERD__CUT_ROWS ? sherd__pieces(rows, p->code.blocks) : rows;
}

size_t sherd__share_code_depth(const sherd__prepared *p, size_t cols)
{
    return p->coded_by->cut == SHERD__CUT_ROWS ? cols : sherd__pieces(cols, p->code.blocks);
}

#define TYPICAL_GFLOPS 50 /* of a node that declares no rate */

static uint64_t cuts(size_t all, size_t each)
{
    return all ? (all - 1) / each + 1 : 1;
}

size_t sherd__share_code_tiled(const sherd__prepared *p, size_t n, size_t each)
{
    return p->bytes ? (n + each - 1) / each * each : n;
}

static double tiled(const sherd__prepared *p, size_t n, size_t each)
{
    return (double)sherd__share_code_tiled(p, n, each);
}

/* Returns the rows of all panels of a share, in which they are sent. */
static double panels(const sherd__prepared *p, size_t rows)
{
    if (!rows) return 0; /* there is no panel */
    const size_t panel = p->plan.panel_rows, rest = rows % panel;
    return (double)(rows / panel) * tiled(p, panel, SHERD__BYTES_TILE) +
           tiled(p, rest, SHERD__BYTES_TILE);
}

/* Each product of a training is planned, so the system is asked once. */
static uint32_t cores(void)
{
    static _Atomic uint32_t known;
    uint32_t n = known;
    if (!n) known = n = sherd__cpu_usable();
    return n;
}

/* Sets the rates of the node that sets the pace; of nodes that are not known, a typical one. */
static void set_rates(sherd__cost_input *in, const sherd__prepared *p, const sherd__nodes *nodes,
                      const sherd__traffic *t)
{
    const sherd__pace_work work = {
        .in = p->bytes                    ? SHERD__IN_BYTES
              : nodes->residue_gflops > 0 ? SHERD__IN_RESIDUES
                                          : SHERD__IN_F64,
        .flops = in->flops,
        .copied = (double)(t->left + t->first + t->answer) + t->expanded,
        .copied_all = (double)t->first,
        .coded = true,
        .spare = p->code.shares - p->threshold,
    };
    sherd__pace pace;
    in->node_gflops = p->bytes                    ? nodes->byte_gops
                      : nodes->residue_gflops > 0 ? nodes->residue_gflops
                      : nodes->gflops > 0         ? nodes->gflops
                                                  : TYPICAL_GFLOPS;
    const uint32_t devices = sherd__pace_devices(nodes);
    if (!nodes->remote && nodes->count > 0) in->apart = (double)devices / nodes->count;
    /* Nodes on processors of this machine are equal: they measured their rates while others
     * started. */
    const bool equal = !nodes->remote && devices == 0;
    if (!nodes->each || equal || sherd__pace_find(&pace, nodes, &work) || pace.node == UINT32_MAX)
        return;
    in->node_gflops = pace.gflops;
    in->copied = pace.copied;
    in->copy_rate = pace.copy_rate;
}

double sherd__share_code_seconds(const sherd__prepared *p, const sherd__matrices *m, bool stays,
                                 const sherd__nodes *nodes, const sherd_product_options *opt)
{
    const size_t height = sherd__share_code_rows(p, m->a.rows),
                 inner = sherd__share_code_depth(p, m->a.cols);
    double rows = panels(p, height), cols = tiled(p, m->b.cols, SHERD__BYTES_TILE);
    double depth = tiled(p, inner, SHERD__BYTES_STEP), shares = p->code.shares;
    double bytes = p->bytes ? 1 : SHERD__RESIDUE_BYTES;
    double wire = bytes * (double)p->primes_len * shares; /* one number of each */
    /* There are many tiles and panels if a node declares little memory; A is sent for each tile. */
    uint64_t tiles = cuts(m->b.cols, p->plan.tile_cols);
    uint64_t positions = tiles * cuts(height, p->plan.panel_rows);
    sherd__traffic t = { .residues = true };
    /* Nodes make the shares that are sent as seeds. */
    const double seeds = sherd__share_code_seeds(p, nodes, NULL) ? p->code.masks / shares : 0;
    const double left = stays ? 0 : wire * rows * depth * (double)tiles;
    const double first = wire * depth * cols;
    t.left = (uint64_t)(left * (1 - seeds));
    t.first = (uint64_t)(first * (1 - seeds));
    t.expanded = (left + first) * seeds;
    t.answer = (uint64_t)(wire * (double)height * (double)m->b.cols);
    const sherd__calibration own = sherd__calibration_typical(p, &t);
    /* A is encoded for each tile, unless it stays, and multiplied by the vectors of the check each
     * time. */
    const double coded = stays ? 0 : (double)m->a.rows * (double)m->a.cols * (double)tiles;
    const double checked = (double)p->primes_len * (coded + (double)m->b.rows * (double)m->b.cols);
    sherd__cost_input in = {
        .bytes_out = t.left + t.first,
        .bytes_in = t.answer,
        .bytes_first = t.first,
        .tasks = positions * p->code.shares,
        .flops = 2 * rows * depth * cols * p->primes_len * shares,
        .convert_s = t.expanded / sherd__kernel_rates_typical().expand,
        .busiest = 1 / shares,
        .hide_s = own.hide_s + checked / sherd__calibration_project(p),
        .fold_s = own.fold_s,
        .fill_s = own.fill_s,
        .positions = positions,
        .node_threads = nodes->threads,
        .cores = cores(),
        .local = !nodes->remote,
        .session_rate = sherd__link_rate(true),
        .link_rate = opt->link_rate > 0 ? opt->link_rate : sherd__link_rate(!nodes->remote),
    };
    sherd__cost cost;
    set_rates(&in, p, nodes, &t);
    sherd__cost_predict(&cost, &in);
    return cost.seconds;
}
