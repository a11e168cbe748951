/*
 * A kept operand is one job that runs repeatedly with resident left blocks. If too few domains can
 * still answer, or a run has failed for another reason, the whole encoding is dropped. The operand
 * is then encoded again, with fresh masks, for the domains that are left: answers of two encodings
 * cannot be combined.
 */
#include "scheduler/job/kept_share.h"

#include "core/alloc.h"
#include "core/clock.h"
#include "core/diag.h"
#include "scheduler/plan/prepare_internal.h"

struct sherd__kept_share {
    sherd_cluster *cluster;
    sherd_view a;
    sherd_keep_options how; /* how.windows is NULL or points to the next member */
    sherd_windows windows;
    sherd_product_options opt;
    uint32_t spare;     /* as requested; opt.spare is set to 0 after shares had to be made again */
    sherd_code code;    /* as requested; opt.code is AUTO after shares had to be made again */
    sherd__nodes nodes; /* as of the time when the shares were made */
    sherd__prepared p;
    sherd__job *job; /* NULL: there are no shares */
    uint32_t encodings;
    uint32_t alive; /* if the last product starved: number of domains that could still answer */
};

#define NOT_STARVED UINT32_MAX

static void give_up(sherd__kept_share *k)
{
    if (k->job) {
        sherd__cluster_drop(k->cluster, k->job);
        sherd__cluster_unreserve(k->cluster, k->p.kept_bytes);
    }
    sherd__job_free(k->job);
    k->job = NULL;
    sherd__prepared_fini(&k->p);
}

static int encode(sherd__kept_share *k, sherd_diag *d)
{
    sherd__cluster_nodes(k->cluster, &k->nodes);
    if (k->nodes.usable > k->alive) { /* domains with the least memory are the least likely to be
                                         usable */
        if (k->nodes.budgets) k->nodes.budgets += k->nodes.usable - k->alive;
        k->nodes.usable = k->alive;
        k->nodes.older = 0; /* older nodes have not answered if windows are needed */
    }
    k->alive = NOT_STARVED;
    int err = sherd__prepare_kept(&k->p, k->a, &k->how, &k->nodes, &k->opt, d);
    if (!err) err = sherd__product_job(&k->job, k->cluster, &k->p, k->opt.strict, d);
    if (!err) {
        sherd__cluster_reserve(k->cluster, k->p.kept_bytes);
        k->encodings++;
        return SHERD_OK;
    }
    give_up(k);
    return sherd__fail_to(d, err, "keep the operand");
}

int sherd__kept_share_new(sherd__kept_share **out, sherd_cluster *c, sherd_view a,
                          const sherd_keep_options *how, const sherd_product_options *opt,
                          sherd_diag *d)
{
    *out = NULL;
    sherd__kept_share *k = sherd__calloc(1, sizeof *k);
    if (!k) return sherd__fail_memory(d, "a kept operand");
    k->cluster = c;
    k->a = a;
    k->how = *how;
    if (how->windows) {
        k->windows = *how->windows;
        k->how.windows = &k->windows;
    }
    k->opt = *opt;
    k->spare = opt->spare;
    k->code = opt->code;
    if (opt->code == SHERD_CODE_INNER) k->how.one_way = true;
    k->alive = NOT_STARVED;
    int err = encode(k, d);
    if (err) sherd__free(k);
    else *out = k;
    return err;
}

static int once(sherd__kept_share *k, const sherd__kept_product *m, double began, sherd_report *r,
                sherd_diag *d)
{
    sherd_product_options opt = k->opt;
    int err = k->job ? SHERD_OK : encode(k, d);
    if (!err) err = sherd__prepared_right(&k->p, m, &k->opt, d);
    if (!err) err = sherd__time_left(&opt.timeout_ms, k->opt.timeout_ms, began, d);
    if (err) return err; /* nothing has started: another B may still follow */
    err = sherd__job_again(k->job);
    if (err) {
        give_up(k);
        return sherd__fail(d, err, NULL, "the kept operand cannot be used: %s",
                           sherd_strerror(err));
    }
    err = sherd__product_run(&(sherd__product_call){ k->cluster, &k->nodes, &opt, r }, &k->p,
                             k->job, false, d);
    if (!err) return SHERD_OK;
    if (err != SHERD_EFEWNODES || !sherd__job_starved(k->job, &k->alive)) k->alive = NOT_STARVED;
    give_up(k);
    return err;
}

/* The answer depends on what was asked for, never on the code that happens to be used. */
static int judge_transposed(const sherd__kept_share *k, sherd_diag *d)
{
    const sherd_scheme_info *scheme = sherd_scheme_get(k->opt.scheme);
    if (!scheme->hides_b)
        return sherd__fail(d, SHERD_EUNSUPPORTED, "use --scheme share",
                           "%s multiplies a kept operand from the right only", scheme->name);
    if (k->code == SHERD_CODE_INNER)
        return sherd__fail(d, SHERD_EUNSUPPORTED,
                           "use --code lagrange, which multiplies it from both sides",
                           "--code inner multiplies a kept operand from the right only");
    if (k->how.one_way)
        return sherd__fail(d, SHERD_EUNSUPPORTED, "keep it for both directions, not one way",
                           "the operand is kept for products from the right only");
    return SHERD_OK;
}

int sherd__kept_share_multiply(sherd__kept_share *k, const sherd__kept_product *m, sherd_report *r,
                               sherd_diag *d)
{
    sherd_diag own = { 0 };
    double began = sherd__clock_s();
    int err;
    if (!d) d = &own;
    if (!k->job) {
        sherd__cluster_nodes(k->cluster, &k->nodes);
        bool all = k->nodes.usable == k->nodes.domains;
        k->opt.spare = k->spare;
        k->opt.code = all ? k->code : SHERD_CODE_AUTO;
    }
    if (r) *r = (sherd_report){ 0 };
    if (m->transposed && (err = judge_transposed(k, d))) return err;
    sherd__cluster_call(k->cluster, &k->opt.hooks);
    err = once(k, m, began, r, d);
    while (k->alive != NOT_STARVED) { /* each time with fewer domains than before */
        sherd_diag last = *d;
        sherd__cluster_nodes(k->cluster, &k->nodes);
        if (k->alive > k->nodes.usable) k->alive = k->nodes.usable;
        *d = (sherd_diag){ 0 };
        k->opt.spare = 0;
        k->opt.code = SHERD_CODE_AUTO; /* one that needs every node is no longer possible */
        sherd__cluster_say(k->cluster, SHERD_LOG_WARN,
                           "%s: all shares are made again for the %u domains that are left",
                           last.message, k->alive);
        sherd_report so_far = r ? *r : (sherd_report){ 0 };
        if (r) *r = (sherd_report){ 0 };
        err = once(k, m, began, r, d);
        if (r) sherd__report_add(r, &so_far);
        if (err == SHERD_EFEWNODES && !k->job) *d = last; /* the earlier error says more */
    }
    if (r) r->encodings = k->encodings;
    return err;
}

void sherd__kept_share_free(sherd__kept_share *k)
{
    if (!k) return;
    give_up(k);
    sherd__free(k);
}
