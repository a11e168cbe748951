/* Sends questions to members as blocks and tasks. Examples are sent with the first step that needs
 * them; the other data of a step is some hundred bytes. */
#include "scheduler/allreduce/internal.h"

#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "scheduler/train/put.h"

enum { TEXT_BLOCK = 1, FIRST_BLOCK };

/* Sends a copy of these bytes as a block of one row. */
static int put_copy(sherd__allreduce_job *j, member *m, uint32_t block, uint8_t dtype,
                    const void *bytes, size_t cols)
{
    size_t len = sherd_dtype_size((sherd_dtype)dtype) * cols;
    void *copy = sherd__alloc(len);
    if (!copy) return SHERD_ENOMEM;
    memcpy(copy, bytes, len);
    return sherd__train_put(m->w.session, j->o.id, (sherd__train_block){ block, dtype, 1, cols },
                            (sherd__train_bytes){ .bytes = copy });
}

/* Asks a member for a task, of which the caller gives what is done, and the result's shape. */
static int ask(sherd__allreduce_job *j, uint32_t node, sherd__task t)
{
    member *m = &j->nodes[node];
    t.job = j->o.id;
    t.task = ++j->tasks;
    t.attempt = 1;
    t.result.origin = SHERD__RESULT;
    t.result.len = 8 * t.result.rows * t.result.cols;
    int err = sherd__session_task(m->w.session, &t);
    if (err) return err;
    m->asked++;
    if (t.op == SHERD__OP_WHERE) m->asked_ms = j->now_ms;
    else sherd__work_asked(&j->w, node, j->now_ms);
    return SHERD_OK;
}

static void release_version(void *ctx, uint8_t *bytes, uint64_t len)
{
    (void)bytes;
    (void)len;
    sherd__version_release(ctx);
}

static int put_state(sherd__allreduce_job *j, member *m, uint32_t block)
{
    sherd__version *v = j->o.state;
    sherd__version_hold(v);
    return sherd__train_put(m->w.session, j->o.id,
                            (sherd__train_block){ block, SHERD_F64, 1, v->count },
                            (sherd__train_bytes){ v->values, release_version, v });
}

int sherd__allreduce_send_meet(sherd__allreduce_job *j, uint32_t node, const char *roster,
                               size_t len)
{
    member *m = &j->nodes[node];
    uint8_t plan[8 * SHERD__ALLREDUCE_PLAN];
    int err = SHERD_OK;
    if (m->state) err = sherd__session_drop(m->w.session, j->o.id, m->state); /* meeting failed */
    m->state = 0;
    if (!err && !m->has_text) {
        m->next_block = FIRST_BLOCK;
        err = put_copy(j, m, TEXT_BLOCK, SHERD_U8, j->text, j->o.text_len);
        m->has_text = !err;
    }
    sherd__allreduce_plan p = { .kind = j->o.train.kind,
                                .members = j->members,
                                .self = m->self,
                                .id = j->id,
                                .recipe = TEXT_BLOCK,
                                .bits = j->o.train.bits,
                                .batch = sherd__shard_most(j->o.train.batch, j->o.train.shards),
                                .examples = (uint32_t)j->examples,
                                .optimiser = j->o.train.optimiser->spec };
    p.round = j->commit;
    if (!m->loaded) p.state = m->next_block++;
    m->state = p.state;
    if (!err && p.state) err = put_state(j, m, p.state);
    sherd__allreduce_plan_write(plan, &p);
    uint32_t at = m->next_block;
    m->next_block += 2;
    if (!err) err = put_copy(j, m, at, SHERD_I64, plan, SHERD__ALLREDUCE_PLAN);
    if (!err) err = put_copy(j, m, at + 1, SHERD_U8, roster, len);
    return err ? err
               : ask(j, node,
                     (sherd__task){ .op = SHERD__OP_MEET,
                                    .left = at,
                                    .right = at + 1,
                                    .flags = SHERD__DROP_LEFT | SHERD__DROP_RIGHT,
                                    .result = { .dtype = SHERD_I64, .rows = 1, .cols = 1 } });
}

int sherd__allreduce_send_connect(sherd__allreduce_job *j, uint32_t node)
{
    member *m = &j->nodes[node];
    int err = m->state ? sherd__session_drop(m->w.session, j->o.id, m->state) : SHERD_OK;
    m->state = 0;
    return err ? err
               : ask(j, node,
                     (sherd__task){
                         .op = SHERD__OP_CONNECT,
                         .left = TEXT_BLOCK,
                         .result = { .dtype = SHERD_I64, .rows = 1, .cols = j->members } });
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* Writes shards as ranges of the step's list; examples that the member lacks are sent first. */
static int send_shards(sherd__allreduce_job *j, uint32_t node, uint8_t *bytes,
                       const sherd__step_plan *plan)
{
    const sherd__allreduce_step *s = j->ask->step;
    member *m = &j->nodes[node];
    int err = SHERD_OK;
    for (uint32_t i = 0; i < plan->shards && !err; i++) {
        uint32_t k = j->shards[m->from + i];
        size_t len = s->at[k + 1] - s->at[k];
        sherd__step_plan_shard shard = { .first = s->first + s->at[k], .rows = len };
        if (s->local) shard.local = s->local[k];
        err = sherd__allreduce_send_rows(j, node, s->rows + s->at[k], len);
        sherd__step_plan_write_shard(bytes, plan, i, &shard);
    }
    return err;
}

int sherd__allreduce_send_step(sherd__allreduce_job *j, uint32_t node, double by)
{
    member *m = &j->nodes[node];
    const sherd__allreduce_step *s = j->ask->step;
    const size_t head = 8 * SHERD__ALLREDUCE_STEP;
    sherd__allreduce_round r = { .round = j->round,
                                 .commit = j->commit,
                                 .rate = j->rate,
                                 .by = by,
                                 .local = s->local != NULL,
                                 .list = *s->list };
    sherd__step_plan plan = { .recipe = TEXT_BLOCK,
                              .bits = j->o.train.bits,
                              .room = s->room,
                              .tiers = (uint32_t)j->o.tiers,
                              .params = 1,
                              .shards = m->to - m->from,
                              .batch = sherd__shard_most(j->o.train.batch, j->o.train.shards) };
    size_t len = head + sherd__plan_size(plan.tiers, plan.shards);
    if (m->next_block >= sherd__allreduce_pack(0) - 4 ||
        m->packs > SHERD__ALLREDUCE_PACKS_MOST - plan.shards) { /* others would wait for its part */
        sherd__work_stop(&j->w, SHERD_EUNSUPPORTED, "--resume continues from the last checkpoint",
                         "a session has used all numbers of blocks");
        return SHERD_EINVAL;
    }
    uint8_t *bytes = sherd__alloc(len);
    if (!bytes) return SHERD_ENOMEM;
    int err = send_shards(j, node, bytes + head, &plan);
    if (err) {
        sherd__free(bytes);
        return err;
    }
    r.packs = m->packs;
    sherd__allreduce_round_write(bytes, &r);
    sherd__step_plan_write(bytes + head, &plan, s->scales);
    uint32_t at = m->next_block++;
    err = sherd__train_put(m->w.session, j->o.id, (sherd__train_block){ at, SHERD_I64, 1, len / 8 },
                           (sherd__train_bytes){ .bytes = bytes });
    if (!err)
        err = ask(j, node,
                  (sherd__task){ .op = SHERD__OP_STEP,
                                 .left = at,
                                 .result = { .dtype = SHERD_I64,
                                             .rows = 1,
                                             .cols = 2 * (uint64_t)plan.shards + 1 } });
    if (err) return err;
    return ask(j, node,
               (sherd__task){ .op = SHERD__OP_REDUCE,
                              .left = at,
                              .flags = SHERD__DROP_LEFT,
                              .result = { .dtype = SHERD_F64,
                                          .rows = 1,
                                          .cols = j->o.tiers + SHERD__ALLREDUCE_FIGURES } });
}

int sherd__allreduce_send_state(sherd__allreduce_job *j, uint32_t node, size_t len, bool hash)
{
    member *m = &j->nodes[node];
    uint8_t bytes[8 * SHERD__ALLREDUCE_STATE];
    uint32_t at = m->next_block++;
    const sherd__allreduce_question q = { j->commit, j->rate, len, j->stock != NULL };
    sherd__allreduce_state_write(bytes, &q);
    int err = put_copy(j, m, at, SHERD_I64, bytes, SHERD__ALLREDUCE_STATE);
    return err ? err
               : ask(j, node,
                     (sherd__task){ .op = SHERD__OP_STATE,
                                    .left = at,
                                    .flags = SHERD__DROP_LEFT,
                                    .result = { .dtype = hash ? SHERD_I64 : SHERD_F64,
                                                .rows = 1,
                                                .cols = hash ? SHERD__HASH / 8 : len } });
}

int sherd__allreduce_send_where(sherd__allreduce_job *j, uint32_t node)
{
    return ask(j, node,
               (sherd__task){
                   .op = SHERD__OP_WHERE,
                   .left = TEXT_BLOCK,
                   .result = { .dtype = SHERD_I64, .rows = 1, .cols = SHERD__ALLREDUCE_WHERE } });
}
