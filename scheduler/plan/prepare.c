/*
 * The parts of preparing that all schemes share: options, seed, exposures and ledger. The planner
 * of the scheme (scheduler/plan/schemes.h) examines the operands, makes the plan and opens the
 * scheme. Secrets (seed, keys) are stored in the sherd__prepared and wiped with it.
 */
#include "scheduler/plan/prepare_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "core/options.h"
#include "core/rand.h"
#include "core/wipe.h"
#include "matrix/funcs.h"
#include "matrix/view.h"
#include "scheduler/plan/weights.h"
#include "schemes/elementwise.h"
#include "wire/session.h"

static int stored_perm(void *ctx, uint64_t row, uint32_t n, uint32_t *perm)
{
    const sherd_shuffles *s = ctx;
    (void)n;
    return s->perm(s->ctx, (size_t)row, perm);
}

sherd__perm_source sherd__prepare_perms(sherd__prepared *p, const sherd_product_options *opt)
{
    if (!opt->shuffles) return sherd__perm_from_key(p->perm_key);
    return (sherd__perm_source){ stored_perm, &p->shuffles };
}

static void set_defaults(sherd_product_options *opt)
{
    if (!opt->scheme) opt->scheme = SHERD__SCHEME_DEFAULT;
    bool as_masks = sherd_scheme_get(opt->scheme)->takes & SHERD_TAKES_MASKS;
    if (!opt->bits && !as_masks) opt->bits = SHERD__FIXED_BITS;
    if (!opt->colluding) opt->colluding = 1;
    if (!opt->memory) opt->memory = SHERD__MEMORY_DEFAULT;
}

int sherd__product_options_read(sherd_product_options *own, const sherd_product_options *opt,
                                sherd_diag *d)
{
    int err = sherd__options_read(own, sizeof *own, opt, "sherd_product_options", d);
    if (!err) set_defaults(own);
    return err;
}

void sherd__product_options_init(sherd_product_options *opt)
{
    *opt = (sherd_product_options){ .size = sizeof *opt };
    set_defaults(opt);
}

/* Options with profiles of both operands: those of the caller, or new ones for this call. */
typedef struct profiled {
    sherd_product_options opt;
    sherd_profile a, b;
} profiled;

/* Examines both operands, since every scheme needs to know their values; A may have none yet. */
static int profiles_begin(profiled *with, sherd_view a, sherd_view b,
                          const sherd_product_options *opt, sherd_diag *d)
{
    sherd_hooks quiet = opt->hooks;
    quiet.progress = NULL; /* it counts tasks */
    with->opt = *opt;
    sherd__profile_init(&with->a, a);
    sherd__profile_init(&with->b, b);
    if (!opt->profile_a) with->opt.profile_a = &with->a;
    if (!opt->profile_b) with->opt.profile_b = &with->b;
    int err = a.data ? sherd__profile_examine(with->opt.profile_a, &quiet, d) : SHERD_OK;
    return err || !b.data ? err : sherd__profile_examine(with->opt.profile_b, &quiet, d);
}

static void profiles_end(profiled *with)
{
    sherd__profile_fini(&with->a);
    sherd__profile_fini(&with->b);
}

static int begin(sherd__prepared *p, size_t slots)
{
    p->slots = (uint32_t)slots;
    p->planned = sherd__calloc(slots, sizeof *p->planned);
    return p->planned ? SHERD_OK : SHERD_ENOMEM;
}

sherd__entropy sherd__prepare_entropy(const sherd__nodes *nodes)
{
    return nodes->entropy ? *nodes->entropy : sherd__entropy_os();
}

static int take_exposures(sherd__prepared *p, size_t len, const uint32_t *stored, sherd_diag *d)
{
    for (size_t c = 0; c < len; c++)
        if (stored[c] >= p->slots)
            return sherd__fail(d, SHERD_EFORMAT, "use metadata that was built for this many nodes",
                               "exposure %zu names node %" PRIu32 ", and there are %" PRIu32
                               ", numbered from 0",
                               c, stored[c], p->slots);
    memcpy(p->exposures, stored, len * sizeof *stored);
    return SHERD_OK;
}

bool sherd__prepare_follows_speeds(const sherd_product_options *opt)
{
    const sherd_scheme_info *s = sherd_scheme_get(opt->scheme);
    if (!(s->takes & SHERD_TAKES_WEIGHTS)) return false;
    if (!(s->takes & SHERD_TAKES_SHUFFLES)) return opt->exact || s->exact_only;
    bool given = opt->seed && !opt->seed_drawn;
    return !given && !opt->shuffles && !opt->balanced && opt->exposure_max <= 0;
}

sherd__work_kind sherd__prepared_kind(const sherd__prepared *p)
{
    return p->bytes         ? SHERD__WORK_BYTES
           : p->primes_len  ? SHERD__WORK_RESIDUES
           : p->elementwise ? SHERD__WORK_MAPS
                            : SHERD__WORK_F64;
}

bool sherd__prepared_verified(const sherd__prepared *p)
{
    return !p->elementwise && !p->tolerant;
}

const uint32_t *sherd__prepare_weights(const sherd__prepared *p, const sherd__nodes *nodes,
                                       const sherd_product_options *opt)
{
    if (nodes->weights) return nodes->weights;
    return sherd__prepare_follows_speeds(opt) ? nodes->speeds[sherd__prepared_kind(p)] : NULL;
}

int sherd__prepare_draw(sherd__prepared *p, size_t len, const uint32_t *weights,
                        const sherd_product_options *opt, sherd_diag *d)
{
    uint8_t key[32];
    if (opt->seed) memcpy(p->seed, opt->seed, sizeof p->seed);
    else p->entropy.fill(p->entropy.ctx, p->seed, sizeof p->seed);
    sherd__perm_key(p->perm_key, p->seed, SHERD__PERM_LABEL, opt->operation, 0);
    sherd__perm_key(p->rows_key, p->seed, SHERD__ROWS_LABEL, opt->operation, 0);
    int err = !opt->shuffles ? SHERD_OK
                             : sherd__options_read(&p->shuffles, sizeof p->shuffles, opt->shuffles,
                                                   "sherd_shuffles", d);
    if (err) return err;
    if (!(p->exposures = sherd__calloc(len, sizeof *p->exposures))) return SHERD_ENOMEM;
    if (opt->shuffles) return take_exposures(p, len, p->shuffles.exposures, d);
    sherd__perm_key(key, p->seed, SHERD__EXPO_LABEL, opt->operation, 0);
    err = sherd__weights_exposures(key, len, p->slots, weights, opt->balanced, p->exposures);
    sherd__wipe(key, sizeof key);
    return err;
}

size_t sherd__prepare_widest(const sherd__prepared *p, size_t len)
{
    size_t most = 0;
    for (size_t c = 0; c < len; c++) p->planned[p->exposures[c]]++;
    for (uint32_t i = 0; i < p->slots; i++)
        if (p->planned[i] > most) most = p->planned[i];
    return most;
}

uint64_t sherd__prepare_least(const sherd_product_options *opt)
{
    const sherd__scheme *e = sherd__scheme_find(opt->scheme);
    return e && e->planner->least ? e->planner->least(opt) : 1;
}

int sherd__prepare_cut(sherd__prepared *p, sherd__plan_input *in, const sherd__nodes *nodes,
                       sherd_diag *d)
{
    const uint64_t *rooms = nodes->rooms ? nodes->rooms : &nodes->memory;
    in->smallest = nodes->smallest;
    in->cell = nodes->cell;
    in->tasks = nodes->depth;
    return sherd__plan_fit(&p->plan, &p->node_memory, in, rooms,
                           nodes->rooms ? nodes->rooms_len : 1, d);
}

static int beyond(uint32_t node, double share, int which, double bound, sherd_diag *d)
{
    return sherd__fail(d, SHERD_EEXPOSURE,
                       "raise --exposure-max, or use more nodes so that each needs less",
                       "the plan gives node-%u's domain %.3g of %s; --exposure-max is %.3g",
                       node + 1, share, which ? "B" : "A", bound);
}

static bool allowed(const sherd__prepared *p, const sherd__nodes *nodes, int which, sherd_diag *d)
{
    uint32_t domain, node = 0;
    double share = sherd__ledger_planned(p->ledger, which, &domain);
    double bound = sherd__ledger_bound(p->ledger, which),
           fits = sherd__ledger_fits(p->ledger, which);
    if (share <= fits) return true;
    while (node + 1 < nodes->count && nodes->domain[node] != domain) node++;
    (void)!beyond(node, share, which, bound, d);
    return false;
}

int sherd__prepared_allowed(const sherd__prepared *p, const sherd__nodes *nodes, sherd_diag *d)
{
    return allowed(p, nodes, 0, d) && allowed(p, nodes, 1, d) ? SHERD_OK : SHERD_EEXPOSURE;
}

/* Sets up the ledger, which decides what each node may be given. Coded: share s belongs to domain
 * s, whichever nodes that has. Operands in clear must keep the bound that the user asked for, which
 * the plan is checked against immediately. */
static int set_up_ledger(sherd__prepared *p, const sherd__nodes *nodes,
                         const sherd_product_options *opt, sherd_diag *d)
{
    bool hidden = sherd_scheme_private(opt->scheme), coded = p->threshold > 0;
    uint32_t *own = coded ? sherd__calloc(p->slots, sizeof *own) : NULL;
    if (coded && !own) return SHERD_ENOMEM;
    for (uint32_t s = 0; s < p->slots && coded; s++) own[s] = s;
    sherd__ledger_options lo = {
        .hiding = &p->hiding,
        .domains = nodes->domains,
        .max_fraction = coded    ? 1
                        : hidden ? 0
                                 : opt->exposure_max,
        .domain_of_slot = coded ? own : nodes->domain,
    };
    int err = sherd__ledger_new(&p->ledger, &lo);
    sherd__free(own);
    return err || hidden ? err : sherd__prepared_allowed(p, nodes, d);
}

static int check_nodes(const sherd__nodes *nodes, sherd_diag *d)
{
    if (nodes->count > 0) return SHERD_OK;
    return sherd__fail(d, SHERD_EFEWNODES, "start nodes with -n or name them with --nodes",
                       "there is no node to send work to");
}

static bool holds(uint32_t bits)
{
    return bits >= SHERD__FIXED_BITS_MIN && bits <= SHERD__PRIVATE_BITS;
}

static int check_options(const sherd_product_options *opt, sherd_diag *d)
{
    const sherd_scheme_info *scheme = sherd_scheme_get(opt->scheme);
    if (!sherd__scheme_find(opt->scheme))
        return sherd__fail(d, SHERD_EINVAL, "sherd/scheme.h lists them", "unknown scheme %d",
                           (int)opt->scheme);
    bool exact = opt->exact || scheme->exact_only,
         as_masks = (scheme->takes & SHERD_TAKES_MASKS) && !opt->bits;
    if (exact && !as_masks && !holds(opt->bits))
        return sherd__fail(d, SHERD_EINVAL, "choose --bits between 2 and 26",
                           "exact mode with %u bits: 2 to 26 are possible", opt->bits);
    if ((scheme->takes & SHERD_TAKES_BITS_B) && opt->bits_b && !holds(opt->bits_b))
        return sherd__fail(d, SHERD_EINVAL, "choose --bits-b between 2 and 26",
                           "exact mode with %u bits for B: 2 to 26 are possible", opt->bits_b);
    if (opt->encoding > SHERD_ENCODING_CSR || !(opt->link_rate >= 0))
        return sherd__fail(d, SHERD_EINVAL, "sherd/product.h lists the encodings",
                           "unknown encoding %d, or a link of %g bytes a second",
                           (int)opt->encoding, opt->link_rate);
    if (opt->code > SHERD_CODE_INNER)
        return sherd__fail(d, SHERD_EINVAL, "sherd/product.h lists the codes", "unknown code %d",
                           (int)opt->code);
    if (opt->exposure_max < 0 || opt->exposure_max > 1)
        return sherd__fail(d, SHERD_EINVAL, "give a fraction between 0 and 1",
                           "an exposure bound of %g: expected 0 to 1", opt->exposure_max);
    return SHERD_OK;
}

int sherd__prepare_shapes(sherd_view a, sherd_view b, const sherd_product_options *opt,
                          sherd_diag *d)
{
    if (a.cols != b.rows)
        return sherd__fail(d, SHERD_ESHAPE, "the columns of A must be the rows of B",
                           "%s is %zu x %zu and %s is %zu x %zu: they cannot be multiplied",
                           sherd__name_a(opt), a.rows, a.cols, sherd__name_b(opt), b.rows, b.cols);
    if (a.rows <= UINT32_MAX && a.cols <= UINT32_MAX && b.cols <= UINT32_MAX) return SHERD_OK;
    return sherd__fail(d, SHERD_ESHAPE, "cut the operands",
                       "A is %zu x %zu and B is %zu x %zu: no dimension may exceed 2^32 - 1",
                       a.rows, a.cols, b.rows, b.cols);
}

int sherd__prepare_apply_shapes(sherd_view a, sherd_view b, const sherd_product_options *opt,
                                sherd_diag *d)
{
    if (a.rows == b.rows && a.cols == b.cols) return SHERD_OK;
    return sherd__fail(d, SHERD_ESHAPE, "both operands must have the same shape",
                       "%s is %zu x %zu and %s is %zu x %zu", sherd__name_a(opt), a.rows, a.cols,
                       sherd__name_b(opt), b.rows, b.cols);
}

int sherd__prepare_multiply(sherd__prepared *p, const sherd__matrices *m, const sherd__nodes *nodes,
                            const sherd_product_options *opt, sherd_diag *d)
{
    return sherd__prepare_part(p, m, NULL, nodes, opt, d);
}

int sherd__prepare_part(sherd__prepared *p, const sherd__matrices *m, const sherd__fixed *as,
                        const sherd__nodes *nodes, const sherd_product_options *opt, sherd_diag *d)
{
    const sherd__scheme *e = sherd__scheme_find(opt->scheme);
    const size_t cols = m->b.cols;
    *p = (sherd__prepared){ .scheme = sherd_scheme_get(opt->scheme),
                            .planner = e ? e->planner : NULL,
                            .op = SHERD__OP_MULTIPLY,
                            .exact = opt->exact,
                            .as = as,
                            .shape_only = !m->a.data,
                            .name_a = sherd__name_a(opt),
                            .name_b = sherd__name_b(opt),
                            .rates = nodes->rates,
                            .paces = nodes->paces,
                            .entropy = sherd__prepare_entropy(nodes) };
    int err = check_nodes(nodes, d);
    if (!err) err = check_options(opt, d);
    if (!err) err = sherd__prepare_shapes(m->a, m->b, opt, d);
    if (!err && m->ld < cols)
        err = sherd__fail(d, SHERD_EINVAL, "give C rows at least as long as those of B",
                          "the row stride of C is %zu, B has %zu columns", m->ld, cols);
    p->entries_a = (uint64_t)m->a.rows * m->a.cols;
    if (!err) err = begin(p, nodes->count);
    if (!err) {
        profiled with;
        err = profiles_begin(&with, m->a, m->b, opt, d);
        if (!err) err = p->planner->prepare(p, m, nodes, &with.opt, d);
        profiles_end(&with);
    }
    if (!err) err = set_up_ledger(p, nodes, opt, d);
    if (err) {
        sherd__prepared_fini(p);
        return d && d->code ? err : sherd__fail_to(d, err, "prepare the product");
    }
    return SHERD_OK;
}

static void plan_apply(sherd__prepared *p, size_t n, size_t widest, const sherd__nodes *nodes,
                       const sherd_product_options *opt)
{
    const sherd__plan_input in = {
        .n = n, .slots = p->slots, .widest = widest, .memory = opt->memory
    };
    const uint64_t *rooms = nodes->rooms ? nodes->rooms : &nodes->memory;
    sherd__plan_rows(&p->plan, &p->node_memory, &in, sherd__map_arity(p->op), rooms,
                     nodes->rooms ? nodes->rooms_len : 1);
}

static int fill_in_apply(sherd__prepared *p, const sherd__matrices *m, const sherd__nodes *nodes,
                         const sherd_product_options *opt, sherd_diag *d)
{
    int err = sherd__prepare_draw(p, m->a.cols, sherd__prepare_weights(p, nodes, opt), opt, d);
    if (err) return err;
    plan_apply(p, m->a.rows, sherd__prepare_widest(p, m->a.cols), nodes, opt);
    sherd__elementwise_params ew = {
        .op = p->op,
        .a = m->a,
        .b = m->b,
        .out = m->out,
        .ldo = m->ld,
        .slots = p->slots,
        .exposures = p->exposures,
        .panel_rows = p->plan.panel_rows,
        .perm_cache = p->plan.perm_cache,
        .entropy = p->entropy,
    };
    if (sherd__prepare_shuffles(p)) ew.perm = sherd__prepare_perms(p, opt);
    err = sherd__elementwise_open(&p->hiding, &ew);
    if (err) return err;
    for (uint32_t i = 0; i < p->slots; i++)
        p->planned[i] = (uint32_t)sherd__elementwise_planned(&p->hiding, i);
    p->check_error = sherd__elementwise_check_error(&p->hiding);
    return set_up_ledger(p, nodes, opt, d);
}

int sherd__prepare_apply(sherd__prepared *p, uint32_t op, const sherd__matrices *m,
                         const sherd__nodes *nodes, const sherd_product_options *opt, sherd_diag *d)
{
    const sherd_view a = m->a, b = m->b;
    *p = (sherd__prepared){ .scheme = sherd_scheme_get(opt->scheme),
                            .op = op,
                            .elementwise = true,
                            .name_a = sherd__name_a(opt),
                            .name_b = sherd__name_b(opt),
                            .entropy = sherd__prepare_entropy(nodes) };
    int err = check_nodes(nodes, d);
    if (!err) err = check_options(opt, d);
    unsigned arity = sherd__map_arity(op);
    if (!err && arity == 0)
        err = sherd__fail(d, SHERD_EINVAL, "sherd/product.h lists them: SHERD_OP_SIGMOID, ...",
                          "unknown element-wise operation %u", op);
    if (!err && sherd_scheme_private(opt->scheme))
        err = sherd__fail(d, SHERD_EUNSUPPORTED, "use --scheme permute, or compute it here",
                          "an element-wise operation shows its operands to the nodes in clear: "
                          "private schemes do not support it");
    if (!err && opt->exact)
        err = sherd__fail(d, SHERD_EUNSUPPORTED, "omit the exact mode",
                          "element-wise operations are computed in float64 only");
    if (!err && arity == 2) err = sherd__prepare_apply_shapes(a, b, opt, d);
    if (!err && m->ld < a.cols)
        err = sherd__fail(d, SHERD_EINVAL, "give the result rows at least as long as those of A",
                          "the row stride of the result is %zu, A has %zu columns", m->ld, a.cols);
    p->entries_a = (uint64_t)a.rows * a.cols;
    if (!err) err = begin(p, nodes->count);
    if (!err) err = fill_in_apply(p, m, nodes, opt, d);
    if (err) {
        sherd__prepared_fini(p);
        return d && d->code ? err : sherd__fail_to(d, err, "prepare the operation");
    }
    return SHERD_OK;
}

int sherd__prepared_next(sherd__prepared *p, const sherd__matrices *m,
                         const sherd_product_options *opt, sherd_diag *d)
{
    profiled with;
    int err = profiles_begin(&with, m->a, (sherd_view){ .data = NULL }, opt, d);
    if (!err) err = p->planner->next(p, m, &with.opt, d);
    profiles_end(&with);
    return err;
}

int sherd__prepare_kept(sherd__prepared *p, sherd_view a, const sherd_keep_options *how,
                        const sherd__nodes *nodes, const sherd_product_options *opt, sherd_diag *d)
{
    const sherd__scheme *e = sherd__scheme_find(opt->scheme);
    *p = (sherd__prepared){ .scheme = sherd_scheme_get(opt->scheme),
                            .planner = e ? e->planner : NULL,
                            .op = SHERD__OP_MULTIPLY,
                            .exact = true,
                            .name_a = sherd__name_a(opt),
                            .name_b = sherd__name_b(opt),
                            .entropy = sherd__prepare_entropy(nodes) };
    if (p->scheme->keeps != SHERD_KEEPS_LEFT)
        return sherd__fail(d, SHERD_EUNSUPPORTED, "use --scheme share",
                           "under --scheme %s no left operand stays at the nodes", p->scheme->name);
    p->planned = sherd__calloc(nodes->count, sizeof *p->planned);
    if (!p->planned) return sherd__fail_memory(d, "a kept operand");
    int err = p->planner->keep(p, a, how, nodes, opt, d);
    return err ? err : set_up_ledger(p, nodes, opt, d);
}

int sherd__prepared_right(sherd__prepared *p, const sherd__kept_product *m,
                          const sherd_product_options *opt, sherd_diag *d)
{
    return p->planner->right(p, m, opt, d);
}

int sherd__prepared_ready(sherd__prepared *p, sherd_diag *d)
{
    return p->planner && p->planner->ready ? p->planner->ready(p, d) : SHERD_OK;
}

void sherd__prepared_why(const sherd__prepared *p, int err, sherd_diag *d)
{
    if (err && p->mask_fault.code == err) *d = p->mask_fault;
}

void sherd__prepared_report(const sherd__prepared *p, sherd_report *r)
{
    if (p->planner && p->planner->report) p->planner->report(p, r);
}

void sherd__prepared_fini(sherd__prepared *p)
{
    if (p->hiding.ops) p->hiding.ops->free(p->hiding.ctx);
    sherd__maskfile_close(p->masks);
    sherd__ledger_free(p->ledger);
    sherd__free(p->exposures);
    sherd__free(p->planned);
    sherd__wipe(p, sizeof *p);
}

/* ---- before there are nodes ------------------------------------------------------------------ */

int sherd_product_domains(uint64_t *least, const sherd_product_options *opt, sherd_diag *d)
{
    sherd_product_options own;
    int err = sherd__product_options_read(&own, opt, d);
    if (!err) err = check_options(&own, d);
    if (!err) *least = sherd__prepare_least(&own);
    return err;
}

static int check_range(sherd_view a, sherd_view b, const sherd_product_options *opt, sherd_diag *d)
{
    const sherd__planner *planner = sherd__scheme_find(opt->scheme)->planner;
    profiled with;
    if (!planner->range) return SHERD_OK;
    int err = profiles_begin(&with, a, b, opt, d);
    if (!err) err = planner->range(a, b, &with.opt, d);
    profiles_end(&with);
    return err;
}

int sherd_product_range(sherd_view a, sherd_view b, const sherd_product_options *opt, sherd_diag *d)
{
    sherd_product_options own;
    int err = sherd__product_options_read(&own, opt, d);
    if (!err) err = sherd__view_check(a, "A", d);
    if (!err) err = sherd__view_check(b, "B", d);
    if (!err) err = sherd__profile_check(own.profile_a, a, "A", d);
    if (!err) err = sherd__profile_check(own.profile_b, b, "B", d);
    if (!err) err = check_options(&own, d);
    if (!err) err = sherd__prepare_shapes(a, b, &own, d);
    return err ? err : check_range(a, b, &own, d);
}

static int check_exposures(size_t len, uint32_t nodes, const sherd_product_options *opt,
                           sherd_diag *d)
{
    sherd_diag mine = { 0 };
    sherd__prepared p = { .entropy = sherd__entropy_os() };
    uint32_t node = 0;
    bool dealt = sherd_scheme_get(opt->scheme)->takes & SHERD_TAKES_SHUFFLES;
    if (!dealt || opt->exposure_max <= 0 || len == 0) return SHERD_OK;
    int err = begin(&p, nodes);
    if (!err) err = sherd__prepare_draw(&p, len, NULL, opt, &mine);
    if (err && mine.code) (void)!sherd__fail(d, err, mine.hint, "%s", mine.message);
    else if (err) (void)!sherd__fail_to(d, err, "draw exposures");
    size_t most = err ? 0 : sherd__prepare_widest(&p, len);
    while (!err && p.planned[node] < most) node++;
    double share = (double)most / (double)len; /* the ledger rounds its bound to whole entries */
    if (share > opt->exposure_max + 0.5 / (double)len)
        err = beyond(node, share, 0, opt->exposure_max, d);
    sherd__prepared_fini(&p);
    return err;
}

int sherd_product_exposures(uint64_t columns, uint32_t nodes, const sherd_product_options *opt,
                            sherd_diag *d)
{
    sherd_product_options own;
    int err = sherd__product_options_read(&own, opt, d);
    if (!err) err = check_options(&own, d);
    if (!err && (nodes == 0 || columns > UINT32_MAX))
        err = sherd__fail(d, SHERD_EINVAL, NULL,
                          "%llu columns at %u nodes: expected 1 node or more, and fewer than 2^32 "
                          "columns",
                          (unsigned long long)columns, nodes);
    return err ? err : check_exposures((size_t)columns, nodes, &own, d);
}
