/*
 * Sends questions as blocks and tasks. Parameters are sent from one copy that all members share.
 * The survivors' pieces are assembled for each member from what they sealed for it.
 */
#include "scheduler/secure/internal.h"

#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "scheduler/train/put.h"

enum { TEXT_BLOCK = 1, X_BLOCK, TARGETS_BLOCK, PLAN_BLOCK, ROSTER_BLOCK };

/* ---- sending ------------------------------------------------------------------------------- */

static int put(sherd__secure_job *j, member *m, sherd__train_block block, sherd__train_bytes bytes)
{
    return sherd__train_put(m->w.session, j->o.id, block, bytes);
}

/* Sends a copy of these bytes as a block. */
static int put_copy(sherd__secure_job *j, member *m, sherd__train_block block, const void *bytes)
{
    size_t len = (size_t)(sherd_dtype_size((sherd_dtype)block.dtype) * block.rows * block.cols);
    void *copy = sherd__alloc(len);
    if (!copy) return SHERD_ENOMEM;
    memcpy(copy, bytes, len);
    return put(j, m, block, (sherd__train_bytes){ .bytes = copy });
}

/* Asks a member for a task, of which the caller gives what is done, and the result's shape. */
static int ask(sherd__secure_job *j, member *m, sherd__task t)
{
    t.job = j->o.id;
    t.task = ++j->tasks;
    t.attempt = 1;
    t.result.origin = SHERD__RESULT;
    t.result.len = sherd_dtype_size((sherd_dtype)t.result.dtype) * t.result.rows * t.result.cols;
    if (t.op != SHERD__OP_JOIN && t.op != SHERD__OP_ROSTER)
        t.flags = SHERD__DROP_LEFT | (t.right ? SHERD__DROP_RIGHT : 0u);
    int err = sherd__session_task(m->w.session, &t);
    if (err) return err;
    m->asked++;
    sherd__work_asked(&j->w, (uint32_t)(m - j->nodes), j->now_ms);
    return SHERD_OK;
}

/* Sends this member's part of the data set in `deal`. */
static int deal(sherd__secure_job *j, member *m)
{
    const sherd__dataset *all = j->o.train.deal;
    size_t rows = all->x.rows, from = rows * m->self / j->a.nodes;
    size_t len = rows * (m->self + 1) / j->a.nodes - from;
    sherd__dataset part = sherd__dataset_part(all, from, len);
    bool labels = part.targets.labels != NULL;
    size_t width = labels ? 1 : all->width, each = sherd_dtype_size(part.x.dtype), bytes, t_bytes;
    uint32_t *numbers = sherd__calloc(len, sizeof *numbers);
    void *x = NULL, *t = NULL;
    if (numbers && sherd__mul(len, part.x.cols * each, &bytes) &&
        sherd__mul(len, width * (labels ? 4 : 8), &t_bytes)) {
        x = sherd__alloc_large(bytes);
        t = sherd__alloc_large(t_bytes);
    }
    for (size_t i = 0; numbers && i < len; i++) numbers[i] = (uint32_t)i;
    if (!x || !t) {
        sherd__free(numbers);
        sherd__free(x);
        sherd__free(t);
        return SHERD_ENOMEM;
    }
    sherd__shard_inputs(&part, numbers, len, x);
    sherd__shard_targets(&part, numbers, len, t);
    sherd__free(numbers);
    int err = put(j, m, (sherd__train_block){ X_BLOCK, (uint8_t)part.x.dtype, len, part.x.cols },
                  (sherd__train_bytes){ .bytes = x });
    if (err) {
        sherd__free(t);
        return err;
    }
    return put(j, m,
               (sherd__train_block){ TARGETS_BLOCK, labels ? SHERD_U32 : SHERD_F64, len, width },
               (sherd__train_bytes){ .bytes = t });
}

sherd__secure_plan sherd__secure_plan_of(const sherd__secure_job *j)
{
    return (sherd__secure_plan){ .recipe = TEXT_BLOCK,
                                 .nodes = j->a.nodes,
                                 .threshold = j->a.threshold,
                                 .colluding = j->a.colluding,
                                 .rows = j->o.train.rows,
                                 .places = j->o.train.places,
                                 .clip = j->o.train.clip,
                                 .noise = j->o.train.noise };
}

int sherd__secure_send_join(sherd__secure_job *j, member *m)
{
    uint8_t plan[8 * SHERD__SECURE_PLAN];
    bool dealt = j->o.train.deal != NULL;
    sherd__secure_plan p = sherd__secure_plan_of(j);
    p.self = m->self;
    p.x = dealt ? X_BLOCK : 0;
    p.targets = dealt ? TARGETS_BLOCK : 0;
    sherd__secure_plan_write(plan, &p);
    for (uint32_t b = TEXT_BLOCK; m->joined && b <= ROSTER_BLOCK; b++)
        (void)!sherd__session_retract(m->w.session, j->o.id, b); /* the job continues */
    if (!m->joined) m->next_block = SECURE_FIRST_BLOCK;
    m->joined = true;
    int err = put_copy(j, m, (sherd__train_block){ TEXT_BLOCK, SHERD_U8, 1, j->o.text_len },
                       j->text);
    if (!err && dealt) err = deal(j, m);
    if (!err)
        err = put_copy(j, m, (sherd__train_block){ PLAN_BLOCK, SHERD_I64, 1, SHERD__SECURE_PLAN },
                       plan);
    return err ? err
               : ask(j, m,
                     (sherd__task){
                         .op = SHERD__OP_JOIN,
                         .left = PLAN_BLOCK,
                         .result = { .dtype = SHERD_U8, .rows = 1, .cols = SHERD__SECURE_CARD } });
}

int sherd__secure_send_roster(sherd__secure_job *j, member *m, const uint8_t *cards)
{
    int err = put_copy(j, m,
                       (sherd__train_block){ ROSTER_BLOCK, SHERD_U8, j->a.nodes,
                                             SHERD__SECURE_CARD },
                       cards);
    return err ? err
               : ask(j, m,
                     (sherd__task){ .op = SHERD__OP_ROSTER,
                                    .left = PLAN_BLOCK,
                                    .right = ROSTER_BLOCK,
                                    .result = { .dtype = SHERD_I64, .rows = 1, .cols = 1 } });
}

/* ---- a round ---------------------------------------------------------------------- */

static void release_version(void *ctx, uint8_t *bytes, uint64_t len)
{
    (void)bytes;
    (void)len;
    sherd__version_release(ctx);
}

/* Computes a digest of all values that must be the same for all members (crypto/aggregate.h). */

void sherd__secure_about_roster(sherd__secure_job *j, const uint8_t *cards)
{
    uint8_t plan[SHERD__SECURE_TRAINING], training[SHERD__ABOUT];
    const sherd__secure_plan p = sherd__secure_plan_of(j);
    sherd__secure_training(plan, &p);
    sherd__about(training,
                 (const sherd__about_part[]){ { j->text, j->o.text_len }, { plan, sizeof plan } },
                 2);
    sherd__about(j->roster,
                 (const sherd__about_part[]){ { training, sizeof training },
                                              { cards, (size_t)j->a.nodes * SHERD__SECURE_CARD } },
                 2);
}

void sherd__secure_about_round(sherd__secure_job *j)
{
    const sherd__version *v = j->sum->params;
    j->hide_len = SHERD__SECURE_HIDE + j->o.tiers + 1;
    sherd__put_u64(j->hide, SHERD__SECURE_FORMAT);
    sherd__put_u64(j->hide + 8, j->round);
    sherd__put_u64(j->hide + 16, j->sum->step);
    for (size_t t = 0; t <= j->o.tiers; t++)
        sherd__put_u64(j->hide + 8 * (SHERD__SECURE_HIDE + t),
                       (uint64_t)(int64_t)j->sum->scales[t]);
    memcpy(j->seal, j->hide, 16);
    sherd__about(j->seal + 16,
                 (const sherd__about_part[]){ { j->roster, sizeof j->roster },
                                              { j->hide, 8 * j->hide_len },
                                              { v->values, v->count * sizeof *v->values } },
                 3);
    sherd__about(j->bound_about,
                 (const sherd__about_part[]){ { j->roster, sizeof j->roster },
                                              { j->seal + 16, SHERD__ABOUT } },
                 2);
}

int sherd__secure_send_hide(sherd__secure_job *j, member *m)
{
    sherd__version *v = j->sum->params;
    uint32_t at = m->next_block;
    m->next_block += 3;
    int err = put_copy(j, m, (sherd__train_block){ at, SHERD_I64, 1, SHERD__SECURE_SEAL }, j->seal);
    if (!err)
        err = ask(j, m,
                  (sherd__task){ .op = SHERD__OP_SEAL,
                                 .left = at,
                                 .result = { .dtype = SHERD_U8,
                                             .rows = j->a.nodes,
                                             .cols = sherd__aggregate_sealed_len(&j->a) } });
    if (!err)
        err = put_copy(j, m, (sherd__train_block){ at + 1, SHERD_I64, 1, j->hide_len }, j->hide);
    if (err) return err;
    sherd__version_hold(v);
    err = put(j, m, (sherd__train_block){ at + 2, SHERD_F64, 1, v->count },
              (sherd__train_bytes){ v->values, release_version, v });
    return err ? err
               : ask(j, m,
                     (sherd__task){
                         .op = SHERD__OP_HIDE,
                         .left = at + 1,
                         .right = at + 2,
                         .result = { .dtype = SHERD_I64, .rows = 1, .cols = j->a.len } });
}

/* Makes a question of `numbers` numbers after the format and the round. */
static uint8_t *make_question(const sherd__secure_job *j, size_t numbers)
{
    uint8_t *question = sherd__alloc(8 * (2 + numbers));
    if (!question) return NULL;
    sherd__put_u64(question, SHERD__SECURE_FORMAT);
    sherd__put_u64(question + 8, j->round);
    return question;
}

/* Sends the pieces that the survivors sealed for this member. */
static int put_pieces(sherd__secure_job *j, member *m, uint32_t block)
{
    size_t sealed = sherd__aggregate_sealed_len(&j->a), len = j->survivors_len;
    uint8_t *pieces = sherd__alloc_large(len * sealed);
    if (!pieces) return SHERD_ENOMEM;
    for (size_t i = 0; i < len; i++) {
        const uint8_t *from = sherd__fragment_bytes(j->nodes[j->node_of[j->survivors[i]]].pieces);
        memcpy(pieces + i * sealed, from + m->self * sealed, sealed);
    }
    return put(j, m, (sherd__train_block){ block, SHERD_U8, len, sealed },
               (sherd__train_bytes){ .bytes = pieces });
}

static int send_check(sherd__secure_job *j, member *m)
{
    uint8_t *question = make_question(j, 0);
    uint32_t at = m->next_block;
    m->next_block += 2;
    if (!question) return SHERD_ENOMEM;
    int err = put(j, m, (sherd__train_block){ at, SHERD_I64, 1, SHERD__SECURE_CHECK },
                  (sherd__train_bytes){ .bytes = question });
    if (!err) err = put_pieces(j, m, at + 1);
    return err ? err
               : ask(j, m,
                     (sherd__task){
                         .op = SHERD__OP_CHECK,
                         .left = at,
                         .right = at + 1,
                         .result = { .dtype = SHERD_U8, .rows = 1, .cols = j->survivors_len } });
}

int sherd__secure_send_confirm(sherd__secure_job *j, member *m)
{
    size_t len = j->survivors_len;
    uint8_t *question = make_question(j, len);
    if (!question) return SHERD_ENOMEM;
    for (size_t i = 0; i < len; i++)
        sherd__put_u64(question + 8 * (SHERD__SECURE_CONFIRM + i), j->survivors[i]);
    uint32_t at = m->next_block++;
    int err = put(j, m, (sherd__train_block){ at, SHERD_I64, 1, SHERD__SECURE_CONFIRM + len },
                  (sherd__train_bytes){ .bytes = question });
    if (!err)
        err = ask(j, m,
                  (sherd__task){ .op = SHERD__OP_CONFIRM,
                                 .left = at,
                                 .result = { .dtype = SHERD_U8,
                                             .rows = 1,
                                             .cols = SHERD__SECURE_SIGNATURE } });
    return err || !m->checks ? err : send_check(j, m);
}

int sherd__secure_send_open(sherd__secure_job *j, member *m)
{
    size_t listed = SHERD__SECURE_CONFIRMED * (size_t)j->confirmed_len;
    uint64_t n = SHERD__SECURE_OPEN + listed;
    uint8_t *question = make_question(j, listed);
    if (!question) return SHERD_ENOMEM;
    memcpy(question + 8 * SHERD__SECURE_OPEN, j->confirmed, 8 * listed);
    uint32_t at = m->next_block;
    m->next_block += 2;
    int err = put(j, m, (sherd__train_block){ at, SHERD_I64, 1, n },
                  (sherd__train_bytes){ .bytes = question });
    if (!err && !m->checks) err = put_pieces(j, m, at + 1); /* otherwise it has them */
    return err ? err
               : ask(j, m,
                     (sherd__task){ .op = SHERD__OP_OPEN,
                                    .left = at,
                                    .right = m->checks ? 0 : at + 1,
                                    .result = { .dtype = SHERD_I64,
                                                .rows = 1,
                                                .cols = sherd__aggregate_piece_len(&j->a) } });
}
