/*
 * Converts a part into blocks and tasks. Examples are gathered into buffers of their own;
 * parameters are sent from one copy that all nodes share. The task of each tier directly follows
 * the tier's parameters, lowest tier first, so the node starts to compute while the rest is still
 * being sent. All data is in clear.
 */
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "scheduler/train/internal.h"
#include "scheduler/train/put.h"

static int put(sherd__train_job *j, train_node *n, sherd__train_block block,
               sherd__train_bytes bytes)
{
    return sherd__train_put(n->w.session, j->o.id, block, bytes);
}

static int send_text(sherd__train_job *j, train_node *n)
{
    if (n->has_text) return SHERD_OK;
    char *text = sherd__alloc(j->o.text_len);
    if (!text) return SHERD_ENOMEM;
    memcpy(text, j->text, j->o.text_len);
    int err = put(j, n, (sherd__train_block){ TEXT_BLOCK, SHERD_U8, 1, j->o.text_len },
                  (sherd__train_bytes){ .bytes = text });
    n->has_text = !err;
    return err;
}

void sherd__train_forget(train_node *n)
{
    sherd__keep_forget(&n->keep, TEXT_BLOCK + 1);
    n->has_text = false;
}

/* ---- a part ---------------------------------------------------------------------------------- */

static int send_plan(sherd__train_job *j, train_node *n, given *g)
{
    const sherd__part *p = g->flight->part;
    sherd__step_plan plan = { .recipe = TEXT_BLOCK,
                              .bits = j->o.train.bits,
                              .room = p->room,
                              .tiers = (uint32_t)j->o.tiers,
                              .shards = p->shards,
                              .batch = sherd__shard_most(j->o.train.batch, j->o.train.shards) };
    const sherd__keep_to to = { n->w.session, j->o.id, j->o.train.data, j->o.train.recurring };
    size_t len = sherd__plan_size(plan.tiers, plan.shards);
    uint8_t *bytes = sherd__alloc(len);
    int err = bytes ? SHERD_OK : SHERD_ENOMEM;
    for (uint32_t i = 0; i < p->shards && !err; i++) {
        uint32_t k = p->first + i;
        sherd__step_plan_shard s;
        err = sherd__keep_send(&n->keep, &to, p->rows + p->at[k], p->at[k + 1] - p->at[k], &s);
        if (!err && p->local) s.local = p->local[k];
        if (!err) sherd__step_plan_write_shard(bytes, &plan, i, &s);
    }
    if (err) {
        sherd__free(bytes);
        return err;
    }
    g->plan = n->keep.next_block++;
    g->params = plan.params = n->keep.next_block;
    n->keep.next_block += plan.tiers;
    sherd__step_plan_write(bytes, &plan, p->scales);
    return put(j, n, (sherd__train_block){ g->plan, SHERD_I64, 1, len / 8 },
               (sherd__train_bytes){ .bytes = bytes });
}

static void release_version(void *ctx, uint8_t *bytes, uint64_t len)
{
    (void)bytes;
    (void)len;
    sherd__version_release(ctx);
}

static int send_tier(sherd__train_job *j, train_node *n, const given *g, uint32_t t)
{
    const sherd__part *p = g->flight->part;
    sherd__version *v = p->params;
    sherd__version_hold(v);
    int err = put(j, n, (sherd__train_block){ g->params + t, SHERD_F64, 1, j->counts[t] },
                  (sherd__train_bytes){ v->values + j->at[t], release_version, v });
    if (err) return err;
    uint64_t numbers = sherd__plan_numbers(j->counts[t], t, p->shards);
    sherd__task task = {
        .job = j->o.id,
        .task = g->params + t,
        .attempt = g->attempt + t,
        .op = SHERD__OP_GRADIENT,
        .flags = SHERD__DROP_RIGHT | (t == 0 ? SHERD__DROP_LEFT : 0u),
        .left = g->plan,
        .right = g->params + t,
        .result = { .origin = SHERD__RESULT,
                    .dtype = j->o.train.bits ? SHERD_I64 : SHERD_F64,
                    .rows = 1,
                    .cols = numbers,
                    .len = 8 * numbers },
    };
    return sherd__session_task(n->w.session, &task);
}

bool sherd__train_comes_round(const sherd__train_job *j, const train_node *n, const flight *f)
{
    uint32_t most = (uint32_t)j->o.tiers + 2 * f->part->shards + 2;
    return n->keep.next_block > UINT32_MAX - most - SHERD__RECIPE_LAYERS_MAX;
}

int sherd__train_send(sherd__train_job *j, uint32_t node, given *g)
{
    train_node *n = &j->nodes[node];
    uint32_t tiers = (uint32_t)j->o.tiers;
    if (j->attempts > UINT32_MAX - tiers) j->attempts = 0;
    g->answered = 0;
    g->attempt = j->attempts + 1;
    j->attempts += tiers;
    if (sherd__train_comes_round(j, n, g->flight)) {
        int err = sherd__session_drop(n->w.session, j->o.id, 0);
        if (err) return err;
        sherd__train_forget(n);
    }
    int err = send_text(j, n);
    if (!err) err = send_plan(j, n, g);
    for (uint32_t t = 0; t < tiers && !err; t++) err = send_tier(j, n, g, t);
    j->w.owner.touch(j->w.owner.ctx, node);
    if (!err) return SHERD_OK;
    (void)!sherd__session_forget(n->w.session, j->o.id);
    sherd__train_forget(n);
    return err;
}
