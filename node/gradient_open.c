/*
 * Opening of rounds. Plans and blocks are from a peer: every number is compared with the blocks
 * that it names before any memory is taken, and memory is counted in the node's budget. A network
 * is made once for all rounds of a job.
 */
#include <math.h>
#include <string.h>
#include <time.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "node/gradient_state.h"

/* ---- models ---------------------------------------------------------------------------------- */

static void end_model(void *what)
{
    model *m = what;
    sherd__passes_free(m->passes);
    sherd__free(m);
}

static void free_model(const sherd__gradient_site *site, model *m)
{
    const sherd__later now = { .end = NULL };
    sherd__later_end(m->touched ? &site->later : &now, site->pool, end_model, m, m->reserved);
}

void sherd__gradient_forget(sherd__gradient_site *site, uint64_t job)
{
    for (model **at = &site->models; *at;) {
        model *m = *at;
        if (m->users || (job && m->job != job)) {
            at = &m->next;
            continue;
        }
        *at = m->next;
        free_model(site, m);
    }
}

/* Returns the multiplications and additions for one example, forward and backward. */
static double flops_of(const sherd__recipe *r)
{
    sherd__tensor_shape in = r->in;
    double sum = 0;
    for (size_t i = 0; i < r->len; i++) {
        sherd__layer l = { .spec = r->layers[i], .in = in };
        if (l.spec.kind->fit(&l, NULL)) return INFINITY;
        double places = l.cols ? (double)l.out.height * (double)l.out.width : 0;
        sum += 6 * (double)l.rows * (double)l.cols * places +
               20 * (double)l.out.height * (double)l.out.width * (double)l.out.channels;
        in = l.out;
    }
    return sum;
}

/* Finds the client's model for this plan. It is made once and kept while plans agree. */
static int find_model(sherd__gradient_site *site, uint64_t job, const sherd__step_plan *p,
                      model **out, sherd_diag *d)
{
    sherd__recipe recipe;
    for (model *m = site->models; m; m = m->next)
        if (m->job == job && m->recipe == p->recipe && m->bits == p->bits && m->batch == p->batch) {
            *out = m;
            return SHERD_OK;
        }
    sherd__gradient_forget(site, job);
    sherd__block *text;
    int err = sherd__store_need(site->store, job, p->recipe, &text, d);
    if (err) return err;
    const sherd__fragment_info *info = sherd__fragment_info_of(text->fragment);
    if (info->dtype != SHERD_U8 || info->encoding != SHERD__DENSE || info->groups ||
        info->rows != 1)
        return sherd__fail(d, SHERD_EFORMAT, NULL, "block %u is not a recipe", p->recipe);
    err = sherd__recipe_parse(&recipe, (const char *)sherd__fragment_bytes(text->fragment),
                              (size_t)info->len, "recipe", SHERD__RECIPE_NETWORK, d);
    uint64_t bytes = 0;
    if (!err) err = sherd__grader_memory(&recipe, p->batch, &bytes, d);
    if (err) return err;
    sherd__passes_options how = { .recipe = &recipe,
                                  .batch = p->batch,
                                  .bits = p->bits,
                                  .by = &site->by,
                                  .count = site->passes };
    if (!sherd__later_reserve_each(&site->later, site->pool, sizeof(model), bytes, &how.count))
        return sherd__fail_memory(d, "a network of %llu bytes", (unsigned long long)bytes);
    bytes = bytes * how.count + sizeof(model);
    model *m = sherd__calloc(1, sizeof *m);
    err = m ? sherd__passes_new(&m->passes, &how, d) : sherd__fail_memory(d, "a network");
    if (err) {
        sherd__free(m);
        sherd__pool_unreserve(site->pool, bytes);
        return err;
    }
    *m = (model){ .job = job,
                  .recipe = p->recipe,
                  .bits = p->bits,
                  .batch = p->batch,
                  .passes = m->passes,
                  .flops = flops_of(&recipe),
                  .reserved = bytes,
                  .next = site->models };
    *out = site->models = m;
    return SHERD_OK;
}

/* ---- opening a round ------------------------------------------------------------------------- */

void sherd__round_free(sherd__round *r)
{
    sherd__gradient_site *site = r->site;
    for (sherd__round **at = &site->rounds; *at; at = &(*at)->next)
        if (*at == r) {
            *at = r->next;
            break;
        }
    for (uint32_t t = 0; r->tier && t < r->tiers; t++) {
        sherd__block_release(r->tier[t].params);
        if (r->tier[t].out)
            sherd__pool_give(site->pool, r->tier[t].out, r->tier[t].what.result.len);
    }
    for (uint32_t i = 0; r->shard && i < r->shards; i++) sherd__examples_release(&r->shard[i]);
    if (r->model) r->model->users--;
    sherd__block_release(r->plan);
    sherd__pool_unreserve(site->pool, r->reserved);
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->lock);
    sherd__free(r->scales);
    sherd__free(r->tier);
    sherd__free(r->shard);
    sherd__free(r->graded);
    sherd__free(r->sums);
    sherd__free(r);
}

static int take_shards(sherd__round *r, const sherd__step_plan *p, sherd_diag *d)
{
    const sherd__grader *g = sherd__passes_grader(r->model->passes);
    const sherd__examples_for of = { r->site->store, r->job, sherd__grader_inputs(g),
                                     sherd__grader_width(g) };
    int err = SHERD_OK;
    for (uint32_t i = 0; i < r->shards && !err; i++)
        err = sherd__examples_take(&r->shard[i], &of, p, i, d);
    return err;
}

static int read_plan(const sherd__block *b, uint32_t number, sherd__step_plan *p, sherd_diag *d)
{
    const sherd__fragment_info *info = sherd__fragment_info_of(b->fragment);
    if (info->dtype != SHERD_I64 || info->encoding != SHERD__DENSE || info->groups ||
        info->rows != 1)
        return sherd__fail(d, SHERD_EFORMAT, NULL, "block %u is not a plan", number);
    int err = sherd__step_plan_parse(p, sherd__fragment_bytes(b->fragment), (size_t)info->len, d);
    if (err || p->shards) return err;
    return sherd__fail(d, SHERD_EFORMAT, NULL, "a plan without shards");
}

static int open_round(sherd__gradient_site *site, const sherd__task *t, sherd__round **out,
                      sherd_diag *d)
{
    sherd__step_plan p;
    uint32_t open = 0;
    for (const sherd__round *other = site->rounds; other; other = other->next) open++;
    if (open >= SHERD__ROUNDS_MAX)
        return sherd__fail(d, SHERD_ENOMEM, NULL, "%u rounds are open", open);
    sherd__block *plan;
    int err = sherd__store_need(site->store, t->job, t->left, &plan, d);
    if (!err) err = read_plan(plan, t->left, &p, d);
    if (err) return err;
    uint64_t memory = sizeof(sherd__round) + p.tiers * (sizeof(tier) + 16) +
                      p.shards * (uint64_t)(sizeof(sherd__examples) + sizeof(sherd__graded)) +
                      SHERD__POOL_OVERHEAD;
    if (!sherd__pool_reserve(site->pool, memory))
        return sherd__fail_memory(d, "a round of %u shards", p.shards);
    sherd__round *r = sherd__calloc(1, sizeof *r);
    if (!r) {
        sherd__pool_unreserve(site->pool, memory);
        return sherd__fail_memory(d, "a round of %u shards", p.shards);
    }
    *r = (sherd__round){ .site = site,
                         .job = t->job,
                         .number = t->left,
                         .plan = plan,
                         .tiers = p.tiers,
                         .shards = p.shards,
                         .room = p.room,
                         .params = p.params,
                         .reserved = memory };
    sherd__block_hold(plan);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->changed, &attr);
    pthread_condattr_destroy(&attr);
    if (site->clock) r->base = site->clock();
    r->scales = sherd__calloc(p.tiers, sizeof *r->scales);
    r->tier = sherd__calloc(p.tiers, sizeof *r->tier);
    r->shard = sherd__calloc(p.shards, sizeof *r->shard);
    r->graded = sherd__calloc(p.shards, sizeof *r->graded);
    r->sums = sherd__calloc(p.tiers, sizeof *r->sums);
    if (!r->scales || !r->tier || !r->shard || !r->graded || !r->sums)
        err = sherd__fail_memory(d, "a round of %u shards", p.shards);
    if (!err) err = find_model(site, t->job, &p, &r->model, d);
    if (!err) r->model->users++;
    size_t tiers = err ? 0 : sherd__grader_tiers(sherd__passes_grader(r->model->passes));
    if (!err && tiers != p.tiers)
        err = sherd__fail(d, SHERD_ESHAPE, NULL, "a plan of %u tiers for a network of %zu", p.tiers,
                          tiers);
    for (uint32_t i = 0; i < p.tiers && !err; i++) r->scales[i] = sherd__step_plan_scale(&p, i);
    if (!err) err = take_shards(r, &p, d);
    if (err) {
        sherd__round_free(r);
        return err;
    }
    r->next = site->rounds;
    *out = site->rounds = r;
    return SHERD_OK;
}

/* ---- tasks ----------------------------------------------------------------------------------- */

static uint64_t numbers_of(const sherd__round *r, uint32_t t)
{
    return sherd__plan_numbers(sherd__round_count(r, t), t, r->shards);
}

static int check_task(const sherd__round *r, const sherd__task *t, sherd_diag *d)
{
    uint32_t i = t->right - r->params;
    if (t->primes_len || t->right < r->params || i >= r->tiers)
        return sherd__fail(d, SHERD_EINVAL, NULL, "block %u contains parameters of no tier",
                           t->right);
    if (r->tier[i].there)
        return sherd__fail(d, SHERD_EINVAL, NULL, "tier %u was already requested", i);
    const sherd__fragment_info *a = &t->result;
    uint8_t dtype = r->model->bits ? SHERD_I64 : SHERD_F64;
    if (a->dtype != dtype || a->rows != 1 || a->cols != numbers_of(r, i) || a->groups ||
        a->encoding != SHERD__DENSE)
        return sherd__fail(d, SHERD_ESHAPE, NULL, "tier %u gives %llu numbers of dtype %u", i,
                           (unsigned long long)numbers_of(r, i), dtype);
    return SHERD_OK;
}

static int join_round(sherd__round *r, const sherd__task *t, sherd_diag *d)
{
    int err = check_task(r, t, d);
    if (err) return err;
    uint32_t i = t->right - r->params;
    sherd__block *b;
    err = sherd__store_need(r->site->store, t->job, t->right, &b, d);
    if (err) return err;
    const sherd__fragment_info *info = sherd__fragment_info_of(b->fragment);
    size_t count = sherd__round_count(r, i);
    if (info->dtype != SHERD_F64 || info->encoding != SHERD__DENSE || info->groups ||
        info->rows != 1 || info->cols != count)
        return sherd__fail(d, SHERD_ESHAPE, NULL, "block %u: tier %u has %zu parameters", t->right,
                           i, count);
    uint8_t *bytes = sherd__pool_get(r->site->pool, t->result.len);
    if (!bytes)
        return sherd__fail_memory(d, "a gradient of %llu bytes", (unsigned long long)t->result.len);
    sherd__block_hold(b);
    pthread_mutex_lock(&r->lock);
    tier *a = &r->tier[i];
    *a = (tier){ .what = *t, .params = b, .out = bytes, .there = true };
    r->sums[i] = bytes;
    r->tasks++;
    r->times[SHERD__PLAN_LAST_PARAMS] = sherd__round_now(r);
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
    return SHERD_OK;
}

int sherd__round_task(sherd__gradient_site *site, const sherd__task *t, sherd__round **out,
                      sherd_diag *d)
{
    sherd__round *r = site->rounds;
    while (r && (r->job != t->job || r->number != t->left || r->gone)) r = r->next;
    if (r) {
        int err = join_round(r, t, d);
        if (!err) *out = r;
        return err;
    }
    int err = open_round(site, t, &r, d);
    if (err) return err;
    err = join_round(r, t, d);
    if (err) sherd__round_free(r);
    else *out = r;
    return err;
}
