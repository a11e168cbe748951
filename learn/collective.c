/*
 * The stepper works in rounds: it posts one part for each process, then asks for all of them. The
 * first answer comes when this process has graded its own part and the sums over all processes are
 * complete; the other answers are taken from those sums. Error flags are reduced first, so all
 * processes return the same status. Costs and hits follow: each shard's are 0 in all processes but
 * one, so adding them copies their bits. The sums of gradients come last and are reduced in place.
 */
#include "learn/collective.h"

#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"

typedef struct among {
    const sherd_collective *c;
    sherd__gradient_engine inner;
    sherd__part **parts; /* of this round, in the order of posting; length c->count */
    uint32_t posted, given;
    int64_t *words; /* c->count error flags, then costs and hits of all shards */
} among;

int sherd__collective_share(const sherd_collective *c, void *bytes, size_t len, sherd_diag *d)
{
    size_t n = len / 8 + (len % 8 != 0);
    int64_t *words = sherd__calloc(n, sizeof *words);
    if (!words) return sherd__fail_memory(d, "%zu shared bytes", len);
    if (c->rank == 0 && len > 0) memcpy(words, bytes, len);
    int err = c->sum(c->ctx, words, n, d);
    if (!err && len > 0) memcpy(bytes, words, len);
    sherd__free(words);
    return err;
}

int sherd__collective_agree(const sherd_collective *c, int err, uint32_t *who, sherd_diag *d)
{
    int64_t *all = sherd__calloc(c->count, sizeof *all);
    if (!all) return sherd__fail_memory(d, "the agreement");
    all[c->rank] = err;
    int failed = c->sum(c->ctx, all, c->count, d);
    err = 0;
    for (uint32_t i = c->count; i-- > 0 && !failed;)
        if (all[i] != 0) {
            err = (int)all[i];
            if (who) *who = i;
        }
    sherd__free(all);
    return failed ? failed : err;
}

int sherd__collective_tell(const sherd_collective *c, int err, sherd_diag *d)
{
    int64_t words[(sizeof *d + 7) / 8] = { 0 };
    sherd_diag mine = { 0 };
    uint32_t first = 0;
    int agreed = sherd__collective_agree(c, err, &first, &mine);
    if (mine.code) *d = mine;
    if (!agreed || mine.code) return agreed;
    if (first == c->rank) memcpy(words, d, sizeof *d);
    err = c->sum(c->ctx, words, sizeof words / sizeof *words, d);
    if (!err) memcpy(d, words, sizeof *d);
    return err ? err : agreed;
}

/* ---- a round --------------------------------------------------------------------------------- */

static uint32_t shards_of(const among *a)
{
    const sherd__part *last = a->parts[a->posted - 1];
    return last->first + last->shards;
}

/* Copies costs and hits into w, or out of it. */
static void pack(const sherd__part *own, const sherd__part *all, uint32_t shards, int64_t *w)
{
    memset(w, 0, 2 * shards * sizeof *w);
    for (uint32_t i = own->first; i < own->first + own->shards; i++) {
        memcpy(&w[i], &all->costs[i], sizeof *w);
        memcpy(&w[shards + i], &all->hits[i], sizeof *w);
    }
}

static void unpack(const sherd__part *all, uint32_t shards, const int64_t *w)
{
    memcpy(all->costs, w, shards * sizeof *w);
    memcpy(all->hits, w + shards, shards * sizeof *w);
}

static int add_up(among *a, sherd__sums *s, sherd_diag *d)
{
    int err = SHERD_OK;
    for (size_t t = 0; t < s->tiers && !err; t++) {
        if (!s->has_sum[t]) memset(s->of[t], 0, s->counts[t] * sizeof(int64_t));
        s->has_sum[t] = true;
        err = a->c->sum(a->c->ctx, s->of[t], s->counts[t], d);
    }
    return err;
}

static int exchange(among *a, sherd_diag *d)
{
    sherd__part *own = a->c->rank < a->posted ? a->parts[a->c->rank] : NULL, *back;
    uint32_t shards = shards_of(a), size = a->c->count;
    int err = own ? a->inner.ops->next(a->inner.ctx, &back, d) : SHERD_OK;
    if (err) return err;
    int64_t *words = a->words, *figures = words + size;
    memset(words, 0, size * sizeof *words);
    if (own) words[a->c->rank] = own->err;
    static const sherd__part nobody;
    pack(own && !own->err ? own : &nobody, a->parts[0], shards, figures);
    err = a->c->sum(a->c->ctx, words, size + 2 * (size_t)shards, d);
    bool failed = false;
    for (uint32_t i = 0; i < a->posted && !err; i++) {
        a->parts[i]->by = i;
        a->parts[i]->dropped = false;
        failed = failed || words[i] != 0;
        if (i == a->c->rank) continue;
        a->parts[i]->err = (int)words[i];
        a->parts[i]->why = (sherd_diag){ 0 };
        if (words[i] != 0)
            sherd__fail(&a->parts[i]->why, (int)words[i], NULL, "process %u could not grade: %s", i,
                        sherd_strerror((int)words[i]));
    }
    if (err || failed) return err;
    unpack(a->parts[0], shards, figures);
    return add_up(a, a->parts[0]->sums, d);
}

/* ---- the engine ------------------------------------------------------------------------------ */

static uint32_t among_workers(void *ctx)
{
    return ((among *)ctx)->c->count;
}

static int among_post(void *ctx, sherd__part *p, sherd_diag *d)
{
    among *a = ctx;
    if (a->given > 0) a->posted = a->given = 0; /* a new round */
    if (a->posted == a->c->count || !p->sums->whole)
        return sherd__fail(d, SHERD_EUNSUPPORTED, NULL,
                           "peer processes train by synchronous steps in fixed point");
    a->parts[a->posted++] = p;
    return a->posted - 1 == a->c->rank ? a->inner.ops->post(a->inner.ctx, p, d) : SHERD_OK;
}

static int among_next(void *ctx, sherd__part **out, sherd_diag *d)
{
    among *a = ctx;
    if (a->given == a->posted) return sherd__fail(d, SHERD_EINVAL, NULL, "no part is in progress");
    int err = a->given == 0 ? exchange(a, d) : SHERD_OK;
    if (!err) *out = a->parts[a->given++];
    return err;
}

static void among_free(void *ctx)
{
    among *a = ctx;
    sherd__gradient_engine_free(a->inner);
    sherd__free(a->parts);
    sherd__free(a->words);
    sherd__free(a);
}

static const sherd__gradient_engine_ops among_ops = {
    .name = "collective",
    .workers = among_workers,
    .post = among_post,
    .next = among_next,
    .free = among_free,
};

int sherd__gradients_among(sherd__gradient_engine *out, const sherd_collective *c,
                           sherd__gradient_engine inner, sherd_diag *d)
{
    *out = (sherd__gradient_engine){ 0 };
    among *a = sherd__calloc(1, sizeof *a);
    if (a) {
        a->c = c;
        a->parts = sherd__calloc(c->count, sizeof *a->parts);
        a->words = sherd__calloc(c->count + 2 * (size_t)SHERD__SHARDS_MAX, sizeof *a->words);
    }
    if (!a || !a->parts || !a->words) {
        if (a) among_free(a);
        return sherd__fail_memory(d, "all-reduce training");
    }
    a->inner = inner;
    *out = (sherd__gradient_engine){ &among_ops, a };
    return SHERD_OK;
}
