/*
 * Tasks of an all-reduce group: what each of them waits for, what the compute thread does for it,
 * and what follows. A STEP's packs are found and held on the loop's thread, some in each turn. Then
 * only the compute thread uses the member, the sum and the table of rows, until it is done.
 */
#include "node/allreduce/state.h"

#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/clock.h"
#include "core/diag.h"

enum { TAKE_TURN = 1024 }; /* packs that are looked up, or released, in one turn */

bool sherd__allreduce_op(uint32_t op)
{
    return (op >= SHERD__OP_MEET && op <= SHERD__OP_REDUCE) || op == SHERD__OP_STATE ||
           op == SHERD__OP_WHERE;
}

static void block_left(void *allreduce, const sherd__block *b)
{
    sherd__allreduce *c = allreduce;
    sherd__packs_drop(&c->packs, b);
}

int sherd__allreduce_new(sherd__allreduce **out, const sherd__allreduce_site *site)
{
    sherd__allreduce *c = *out = sherd__calloc(1, sizeof *c);
    if (!c) return SHERD_ENOMEM;
    c->site = *site;
    site->store->left = block_left;
    site->store->left_ctx = c;
    return SHERD_OK;
}

void sherd__allreduce_free(sherd__allreduce *c)
{
    if (!c) return;
    c->site.store->left = NULL;
    sherd__allreduce_leave(c);
    (void)sherd__packs_reap(&c->old, SIZE_MAX);
    sherd__free(c);
}

uint64_t sherd__allreduce_name(const sherd__allreduce *c)
{
    return c->plan.id;
}

bool sherd__allreduce_to_reap(const sherd__allreduce *c)
{
    return c->old || (c->packs.dropped && !c->running);
}

size_t sherd__allreduce_reap(sherd__allreduce *c, size_t most)
{
    size_t n = c->running ? 0 : sherd__packs_release(&c->packs, most);
    return n < most ? n + sherd__packs_reap(&c->old, most - n) : n;
}

/* ---- admission ------------------------------------------------------------------------------- */

int sherd__allreduce_admit(sherd__allreduce *c, const sherd__task *t, const sherd__block *left,
                           const sherd__block *right, sherd_diag *d)
{
    (void)left;
    if (!c->site.identity)
        return sherd__fail(d, SHERD_EUNSUPPORTED, NULL,
                           "this node takes no part in all-reduce groups");
    if (t->primes_len || (t->op == SHERD__OP_MEET) != (right != NULL))
        return sherd__fail(d, SHERD_EINVAL, NULL, "operation %u takes %u blocks and no primes",
                           t->op, t->op == SHERD__OP_MEET ? 2u : 1u);
    return SHERD_OK;
}

static int check_result(const sherd__task *t, uint8_t dtype, uint64_t cols, sherd_diag *d)
{
    const sherd__fragment_info *i = &t->result;
    if (i->encoding == SHERD__DENSE && i->groups == 0 && i->dtype == dtype && i->rows == 1 &&
        i->cols == cols)
        return SHERD_OK;
    return sherd__fail(d, SHERD_ESHAPE, NULL,
                       "the result is %llu x %llu of dtype %u, expected 1 "
                       "x %llu of %u",
                       (unsigned long long)i->rows, (unsigned long long)i->cols, i->dtype,
                       (unsigned long long)cols, dtype);
}

static int read_head(const sherd__allreduce *c, const sherd__block *left,
                     sherd__allreduce_round *head, sherd__step_plan *shards, sherd_diag *d)
{
    const sherd__fragment_info *i = sherd__fragment_info_of(left->fragment);
    const uint8_t *bytes = sherd__fragment_bytes(left->fragment);
    if (i->dtype != SHERD_I64 || i->encoding != SHERD__DENSE || i->groups || i->rows != 1 || !bytes)
        return sherd__fail(d, SHERD_EFORMAT, NULL, "block %u is not a step", left->number);
    return sherd__allreduce_round_parse(head, shards, c->plan.examples, bytes, (size_t)i->len, d);
}

/* ---- STEP ------------------------------------------------------------------------------------ */

/* Checks the shards. *most is the largest number of rows of a shard. Shards may be searched one
 * after another, so together they have no more rows than the list. */
static int check_shards(const sherd__allreduce *c, const sherd__allreduce_round *head,
                        uint64_t *most, sherd_diag *d)
{
    uint64_t rows = 0;
    *most = 0;
    if (c->shards_of.tiers != sherd__member_tiers(c->member))
        return sherd__fail(d, SHERD_ESHAPE, NULL, "a plan of %u tiers for a network of %zu",
                           c->shards_of.tiers, sherd__member_tiers(c->member));
    if (c->shards_of.batch != c->plan.batch || c->shards_of.bits != c->plan.bits)
        return sherd__fail(d, SHERD_EINVAL, NULL, "a step of another training");
    for (uint32_t i = 0; i < c->shards_of.shards; i++) {
        sherd__step_plan_shard s = sherd__step_plan_shard_at(&c->shards_of, i);
        bool valid = sherd__allreduce_shard_valid(head, &s, c->plan.batch);
        if (!valid || s.rows > head->list.len - rows)
            return sherd__fail(d, SHERD_EFORMAT, NULL, "shard %u of the plan is invalid", i);
        rows += s.rows;
        if (s.rows > *most) *most = s.rows;
    }
    return SHERD_OK;
}

/* Takes the packs that were sent since the last step. Returns false where some are left for the
 * next turn. */
static bool take_packs(sherd__allreduce *c, const sherd__allreduce_round *head, int *err,
                       sherd_diag *d)
{
    uint32_t most = c->site.turns ? TAKE_TURN : UINT32_MAX;
    (void)sherd__packs_release(&c->packs, most);
    *err = sherd__packs_take(&c->packs, c->site.store, c->job, head->packs, most, d);
    return *err || (c->packs.taken >= head->packs && !c->packs.dropped);
}

/* Allocates memory for the sum, for the list and for shards that are not contiguous; it is kept for
 * later steps. The compute thread finds out whether the last one is needed. */
static int take_memory(sherd__allreduce *c, const sherd__allreduce_round *head, uint64_t rows,
                       sherd_diag *d)
{
    int err = sherd__allreduce_sum_new(c, d);
    if (!err && c->shards_of.shards) err = sherd__packs_list(&c->packs, &head->list, d);
    uint64_t len = sherd__packs_scratch(&c->packs, rows, sherd__member_inputs(c->member),
                                        sherd__member_width(c->member));
    if (err || len <= c->scratch_each) return err;
    sherd__allreduce_drop_scratch(c);
    uint32_t passes = c->passes;
    c->scratch = sherd__pool_get(c->site.pool, len * passes);
    if (!c->scratch && passes > 1) c->scratch = sherd__pool_get(c->site.pool, len * (passes = 1));
    if (!c->scratch) return SHERD_OK;
    c->scratch_each = len;
    c->scratch_len = len * passes;
    return SHERD_OK;
}

/* Opens the round of a STEP. With c->looking set, it continues in the next turn. */
static int open_step(sherd__allreduce *c, const sherd__task *t, const sherd__block *left,
                     sherd_diag *d)
{
    sherd__allreduce_round head;
    uint64_t rows;
    int err = read_head(c, left, &head, &c->shards_of, d);
    if (err) return err;
    if (head.round <= c->round)
        return sherd__fail(d, SHERD_EINVAL, NULL, "round %llu comes after round %llu",
                           (unsigned long long)head.round, (unsigned long long)c->round);
    err = check_result(t, SHERD_I64, 2 * (uint64_t)c->shards_of.shards + 1, d);
    if (!err) err = check_shards(c, &head, &rows, d);
    if (!err && !take_packs(c, &head, &err, d)) {
        c->looking = true;
        return SHERD_OK;
    }
    sherd__allreduce_drop_round(c);
    if (!err) err = take_memory(c, &head, rows, d);
    if (err) return err;
    c->head = head;
    c->round = head.round;
    c->open = true;
    return SHERD_OK;
}

static bool nobody_waits(void *ctx)
{
    const sherd__allreduce *c = ctx;
    return c->forget || c->unwanted;
}

/* Checks that all rows of the step are on this node, before anything is changed. Sets *passes to
 * how many passes have memory for them. */
static int find_shards(sherd__allreduce *c, uint32_t *passes, sherd_diag *d)
{
    int err = sherd__packs_note(&c->packs, d);
    *passes = c->passes;
    for (uint32_t i = 0; i < c->shards_of.shards && !err; i++) {
        sherd__step_plan_shard s = sherd__step_plan_shard_at(&c->shards_of, i);
        bool apart;
        if (nobody_waits(c)) return SHERD_EINTERRUPTED;
        err = sherd__packs_find(&c->packs, &s, sherd__member_inputs(c->member),
                                sherd__member_width(c->member), &apart, d);
        if (!err && apart && !c->scratch)
            err = sherd__fail_memory(d, "a shard of %llu examples", (unsigned long long)s.rows);
        if (!err && apart) *passes = (uint32_t)(c->scratch_len / c->scratch_each);
    }
    return err;
}

static sherd__shard shard_at(void *ctx, uint32_t i, uint32_t pass, sherd__local_steps *local)
{
    const sherd__allreduce *c = ctx;
    const sherd__step_plan_shard what = sherd__step_plan_shard_at(&c->shards_of, i);
    uint8_t *scratch = c->scratch_each ? c->scratch + pass * c->scratch_each : NULL;
    *local = what.local;
    return sherd__packs_shard(&c->packs, &what, scratch);
}

static int grade(sherd__allreduce *c, uint32_t passes, sherd__graded *graded, sherd_diag *d)
{
    int32_t scales[SHERD__RECIPE_LAYERS_MAX];
    const sherd__passes_sum sum = { .shards = c->shards_of.shards,
                                    .scales = scales,
                                    .room = c->shards_of.room,
                                    .stop = nobody_waits,
                                    .shard = shard_at,
                                    .graded = graded,
                                    .most = passes,
                                    .ctx = c };
    for (uint32_t t = 0; t < c->shards_of.tiers; t++)
        scales[t] = sherd__step_plan_scale(&c->shards_of, t);
    return sherd__member_grade(c->member, c->site.team, &sum, c->sum->values, d);
}

static int run_step(sherd__allreduce *c, uint8_t *out, sherd_diag *d)
{
    const uint32_t shards = c->shards_of.shards;
    uint32_t passes;
    int err = find_shards(c, &passes, d);
    sherd__graded *graded = err ? NULL : sherd__calloc((size_t)shards + 1, sizeof *graded);
    if (!err && !graded) err = sherd__fail_memory(d, "the figures of %u shards", shards);
    if (!err) err = sherd__member_commit(c->member, c->head.commit, c->head.rate, d);
    if (!err && shards == 0) memset(c->sum->values, 0, 8 * c->sum->len);
    if (!err && shards > 0) err = grade(c, passes, graded, d);
    for (uint32_t i = 0; i < shards && !err; i++) {
        memcpy(out + 16 * (size_t)i, &graded[i].cost, 8);
        sherd__put_u64(out + 16 * (size_t)i + 8, graded[i].hits);
    }
    sherd__put_u64(out + 16 * (size_t)shards, c->head.round);
    sherd__free(graded);
    return err;
}

/* ---- REDUCE, STATE --------------------------------------------------------------------------- */

/* Checks a REDUCE of the current round. Its block may be another one than that of the STEP. */
static int check_reduce(const sherd__allreduce *c, const sherd__task *t, const sherd__block *left,
                        sherd_diag *d)
{
    sherd__allreduce_round head;
    sherd__step_plan shards;
    int err = read_head(c, left, &head, &shards, d);
    if (err) return err;
    if (head.round != c->round)
        return sherd__fail(d, SHERD_EINVAL, NULL, "round %llu is not in progress",
                           (unsigned long long)head.round);
    if (shards.tiers != sherd__member_tiers(c->member))
        return sherd__fail(d, SHERD_ESHAPE, NULL, "a sum of %u tiers for a network of %zu",
                           shards.tiers, sherd__member_tiers(c->member));
    return check_result(t, SHERD_F64, shards.tiers + SHERD__ALLREDUCE_FIGURES, d);
}

static int run_reduce(sherd__allreduce *c, const sherd__fragment *left, uint8_t *out, sherd_diag *d)
{
    int32_t scales[SHERD__RECIPE_LAYERS_MAX];
    sherd__member_figures f;
    sherd__allreduce_round head;
    sherd__step_plan p; /* read from this block: the STEP's may be freed */
    int err = sherd__allreduce_round_parse(&head, &p, c->plan.examples, sherd__fragment_bytes(left),
                                           (size_t)sherd__fragment_info_of(left)->len, d);
    if (err) return err;
    for (uint32_t t = 0; t < p.tiers; t++) scales[t] = sherd__step_plan_scale(&p, t);
    const sherd__member_sum sum = { head.round, c->sum->values, scales, head.by, head.local };
    sherd__member_absorb(c->member, &sum, &f);
    memcpy(out, f.most, 8 * (size_t)p.tiers);
    out += 8 * (size_t)p.tiers;
    memcpy(out, &f.l2, 8);
    sherd__put_u64(out + 8, f.print);
    for (int i = 0; i < 3; i++) sherd__put_u64(out + 16 + 8 * i, c->bytes[i]);
    return SHERD_OK;
}

static int read_question(const sherd__block *left, sherd__allreduce_question *q, sherd_diag *d)
{
    const sherd__fragment_info *i = sherd__fragment_info_of(left->fragment);
    const uint8_t *bytes = sherd__fragment_bytes(left->fragment);
    if (i->dtype != SHERD_I64 || !bytes)
        return sherd__fail(d, SHERD_EFORMAT, NULL, "block %u is not a question", left->number);
    return sherd__allreduce_state_parse(q, bytes, (size_t)i->len, d);
}

static int run_state(sherd__allreduce *c, const sherd__task *t, const sherd__fragment *left,
                     uint8_t *out, sherd_diag *d)
{
    sherd__allreduce_question q;
    int err = sherd__allreduce_state_parse(&q, sherd__fragment_bytes(left),
                                           (size_t)sherd__fragment_info_of(left)->len, d);
    if (!err) err = sherd__member_commit(c->member, q.commit, q.rate, d);
    if (err) return err;
    if (t->result.dtype == SHERD_I64)
        sherd__member_state_hash(c->member, q.bare, (size_t)q.len, out);
    else sherd__member_state(c->member, q.bare, (double *)(void *)out, (size_t)q.len);
    return SHERD_OK;
}

/* Runs on the loop's thread at any time: it reads nothing that a running task changes. */
static void run_where(const sherd__allreduce *c, uint8_t *out)
{
    sherd__allreduce_where w = { .round = c->round, .step = c->step };
    bool broken = c->open && c->err;
    w.phase = c->exchanging ? SHERD__ALLREDUCE_EXCHANGING
              : c->summed   ? SHERD__ALLREDUCE_SUMMED
              : broken      ? SHERD__ALLREDUCE_BROKEN
              : c->open     ? SHERD__ALLREDUCE_GRADING
                            : SHERD__ALLREDUCE_NOWHERE;
    if (broken) w.step = c->culprit;
    w.bytes = sherd__allreduce_moved(c);
    w.worked_us = (uint64_t)(1e6 * sherd__clock_worked_s());
    sherd__allreduce_where_write(out, &w);
}

/* ---- when tasks run -------------------------------------------------------------------------- */

static int open_state(const sherd__allreduce *c, const sherd__task *t, const sherd__block *left,
                      sherd_diag *d)
{
    sherd__allreduce_question q;
    int err = read_question(left, &q, d);
    if (err) return err;
    if (q.len == 0 || q.len > sherd__member_state_len(c->member))
        return sherd__fail(d, SHERD_ESHAPE, NULL, "a state has %zu numbers",
                           sherd__member_state_len(c->member));
    return t->result.dtype == SHERD_I64 ? check_result(t, SHERD_I64, SHERD__HASH / 8, d)
                                        : check_result(t, SHERD_F64, q.len, d);
}

/* Returns true where the task must wait; otherwise *err is SHERD_OK or why it cannot run. */
static bool must_wait(sherd__allreduce *c, const sherd__task *t, const sherd__block *left,
                      const sherd__block *right, int *err, sherd_diag *d)
{
    if (c->running || c->looking) return true;
    *err = SHERD_OK;
    if (t->op == SHERD__OP_MEET) {
        *err = check_result(t, SHERD_I64, 1, d);
        if (!*err) *err = sherd__allreduce_open_plan(c, t, left, right, d);
        return false;
    }
    if (!c->met || t->job != c->job) {
        *err = sherd__fail(d, SHERD_EINVAL, NULL, "no MEET in this job");
        return false;
    }
    switch (t->op) {
    case SHERD__OP_CONNECT:
        *err = check_result(t, SHERD_I64, c->plan.members, d);
        if (!*err && !sherd__allreduce_connected(c)) return true;
        for (uint32_t i = 0; i < c->plan.members; i++) c->links[i] = c->peers[i].err;
        break;
    case SHERD__OP_STEP:
        *err = open_step(c, t, left, d);
        if (c->looking) return true;
        break;
    case SHERD__OP_REDUCE:
        *err = check_reduce(c, t, left, d);
        if (*err) break;
        if (c->err) *err = sherd__fail(d, c->err, NULL, "%s", c->why.message);
        else if (!c->open && !c->summed)
            *err = sherd__fail(d, SHERD_EINTERRUPTED, NULL, "the round was abandoned");
        else if (!c->summed) return true;
        break;
    default: *err = open_state(c, t, left, d); break;
    }
    return false;
}

sherd__allreduce_turn sherd__allreduce_ready(sherd__allreduce *c, const sherd__task *t,
                                             const sherd__block *left, const sherd__block *right,
                                             sherd_diag *d)
{
    int err = SHERD_OK;
    if (t->op == SHERD__OP_WHERE)
        return check_result(t, SHERD_I64, SHERD__ALLREDUCE_WHERE, d) ? SHERD__ALLREDUCE_REFUSE
                                                                     : SHERD__ALLREDUCE_NOW;
    if (must_wait(c, t, left, right, &err, d)) return SHERD__ALLREDUCE_WAIT;
    if (err) return SHERD__ALLREDUCE_REFUSE;
    c->running = true;
    return SHERD__ALLREDUCE_GO;
}

bool sherd__allreduce_wants_turn(const sherd__allreduce *c)
{
    return c->looking || c->adding;
}

void sherd__allreduce_begin_turn(sherd__allreduce *c)
{
    c->looking = false;
}

int sherd__allreduce_run(sherd__allreduce *c, const sherd__task *t, const sherd__fragment *left,
                         const sherd__fragment *right, uint8_t *out, sherd_diag *d)
{
    (void)right;
    switch (t->op) {
    case SHERD__OP_MEET: {
        int err = sherd__allreduce_meet(c, d);
        if (!err) sherd__put_u64(out, sherd__member_state_len(c->member));
        return err;
    }
    case SHERD__OP_CONNECT:
        for (uint32_t i = 0; i < c->plan.members; i++)
            sherd__put_u64(out + 8 * (size_t)i, (uint64_t)c->links[i]);
        return SHERD_OK;
    case SHERD__OP_STEP: return run_step(c, out, d);
    case SHERD__OP_REDUCE: return run_reduce(c, left, out, d);
    case SHERD__OP_STATE: return run_state(c, t, left, out, d);
    case SHERD__OP_WHERE: run_where(c, out); return SHERD_OK;
    default: return sherd__fail(d, SHERD_EUNSUPPORTED, NULL, "operation %u", t->op);
    }
}

void sherd__allreduce_done(sherd__allreduce *c, const sherd__task *t, int err, bool wanted)
{
    c->running = false;
    c->unwanted = false;
    if (c->forget) {
        sherd__allreduce_leave(c);
        return;
    }
    switch (t->op) {
    case SHERD__OP_MEET:
        sherd__block_release(c->state);
        c->state = NULL;
        c->met = !err && wanted;
        if (!c->met && c->plan.state) sherd__allreduce_leave(c); /* else kept for the next MEET */
        break;
    case SHERD__OP_STEP:
        if (err || !wanted) sherd__allreduce_drop_round(c);
        else sherd__allreduce_exchange(c);
        break;
    case SHERD__OP_REDUCE: sherd__allreduce_drop_round(c); break;
    default: break;
    }
}

void sherd__allreduce_cancel(sherd__allreduce *c, uint64_t job)
{
    if (c->job != job || !job) return;
    if (c->running) c->unwanted = true; /* and dropped when it is done */
    else sherd__allreduce_drop_round(c);
}

void sherd__allreduce_forget(sherd__allreduce *c, uint64_t job)
{
    if (job && c->job != job) return;
    c->met = false;
    sherd__allreduce_disconnect(c);
    if (c->running) c->forget = true;
    else sherd__allreduce_leave(c);
}
