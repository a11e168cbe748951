/*
 * Tasks of a circle: what each of them waits for, what the compute thread does for it, and what
 * follows. A STEP's shards are found and held on the loop's thread; then the compute thread alone
 * has the member and the sum, until it is done.
 */
#include "node/circle_state.h"

#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/clock.h"
#include "core/diag.h"

bool sherd__circle_op(uint32_t op)
{
    return (op >= SHERD__OP_MEET && op <= SHERD__OP_REDUCE) || op == SHERD__OP_STATE ||
           op == SHERD__OP_WHERE;
}

int sherd__circle_new(sherd__circle **out, const sherd__circle_site *site)
{
    sherd__circle *c = *out = sherd__calloc(1, sizeof *c);
    if (!c) return SHERD_ENOMEM;
    c->site = *site;
    return SHERD_OK;
}

void sherd__circle_free(sherd__circle *c)
{
    if (!c) return;
    sherd__circle_leave(c);
    sherd__free(c);
}

/* ---- what comes ------------------------------------------------------------------------------ */

int sherd__circle_admit(sherd__circle *c, const sherd__task *t, const sherd__block *left,
                        const sherd__block *right, sherd_diag *d)
{
    (void)left;
    if (!c->site.identity)
        return sherd__fail(d, SHERD_EUNSUPPORTED, NULL, "this node takes no part in circles");
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
    return sherd__fail(d, SHERD_ESHAPE, NULL, "the result is %llu x %llu of dtype %u, expected 1 "
                       "x %llu of %u", (unsigned long long)i->rows, (unsigned long long)i->cols,
                       i->dtype, (unsigned long long)cols, dtype);
}

static int read_head(const sherd__circle *c, const sherd__block *left, sherd__circle_round *head,
                     sherd__plan *shards, sherd_diag *d)
{
    const sherd__fragment_info *i = sherd__fragment_info_of(left->fragment);
    const uint8_t *bytes = sherd__fragment_bytes(left->fragment);
    if (i->dtype != SHERD_I64 || i->encoding != SHERD__DENSE || i->groups || i->rows != 1 || !bytes)
        return sherd__fail(d, SHERD_EFORMAT, NULL, "block %u is no step", left->number);
    return sherd__circle_round_parse(head, shards, c->plan.examples, bytes, (size_t)i->len, d);
}

/* ---- STEP ------------------------------------------------------------------------------------ */

/* Shards that are not in one place are put there one after another. */
static int take_scratch(sherd__circle *c, sherd_diag *d)
{
    c->scratch_len = 0;
    for (uint32_t i = 0; i < c->shards_len; i++)
        if (c->shards[i].scratch > c->scratch_len) c->scratch_len = c->shards[i].scratch;
    if (c->scratch_len == 0) return SHERD_OK;
    c->scratch = sherd__pool_get(c->site.pool, c->scratch_len);
    return c->scratch ? SHERD_OK
                      : sherd__fail(d, SHERD_ENOMEM, NULL, "no room for a shard of %llu bytes",
                                    (unsigned long long)c->scratch_len);
}

static int take_shards(sherd__circle *c, const sherd__circle_round *head, sherd_diag *d)
{
    const sherd__member *m = c->member;
    uint32_t n = c->shards_of.shards;
    if (c->shards_of.tiers != sherd__member_tiers(m))
        return sherd__fail(d, SHERD_ESHAPE, NULL, "a plan of %u tiers for a network of %zu",
                           c->shards_of.tiers, sherd__member_tiers(m));
    if (c->shards_of.batch != c->plan.batch || c->shards_of.bits != c->plan.bits)
        return sherd__fail(d, SHERD_EINVAL, NULL, "a step of another training");
    int err = sherd__packs_take(&c->packs, c->site.store, c->job, head->packs, d);
    if (!err && n > 0) err = sherd__packs_list(&c->packs, &head->list, d);
    if (err) return err;
    c->shards = sherd__calloc(n, sizeof *c->shards);
    if (!c->shards) return sherd__fail(d, SHERD_ENOMEM, NULL, "out of memory");
    for (uint32_t i = 0; i < n && !err; i++) {
        sherd__plan_shard s = sherd__plan_shard_at(&c->shards_of, i);
        if (!sherd__circle_shard_valid(head, &s, c->plan.batch))
            return sherd__fail(d, SHERD_EFORMAT, NULL, "shard %u of the plan makes no sense", i);
        c->shards_len = i + 1;
        err = sherd__packs_pick(&c->packs, c->site.store, c->job, &s, sherd__member_inputs(m),
                                sherd__member_width(m), &c->shards[i], d);
    }
    return err ? err : take_scratch(c, d);
}

static int open_step(sherd__circle *c, const sherd__task *t, const sherd__block *left,
                     sherd_diag *d)
{
    sherd__circle_round head;
    int err = read_head(c, left, &head, &c->shards_of, d);
    if (err) return err;
    if (head.round <= c->round)
        return sherd__fail(d, SHERD_EINVAL, NULL, "round %llu comes after round %llu",
                           (unsigned long long)head.round, (unsigned long long)c->round);
    err = check_result(t, SHERD_I64, 2 * (uint64_t)c->shards_of.shards + 1, d);
    sherd__circle_drop_round(c);
    if (!err) err = sherd__circle_sum_new(c, d);
    if (!err) err = take_shards(c, &head, d);
    if (err) {
        sherd__circle_drop_shards(c);
        return err;
    }
    c->head = head;
    c->round = head.round;
    c->open = true;
    return SHERD_OK;
}

static bool nobody_waits(void *ctx)
{
    const sherd__circle *c = ctx;
    return c->forget || c->unwanted;
}

static int run_step(sherd__circle *c, uint8_t *out, sherd_diag *d)
{
    int32_t scales[SHERD__RECIPE_LAYERS_MAX];
    sherd__grading how = { .scales = scales, .room = c->shards_of.room, .stop = nobody_waits,
                           .ctx = c };
    int err = sherd__member_commit(c->member, c->head.commit, c->head.rate, d);
    for (uint32_t t = 0; t < c->shards_of.tiers; t++)
        scales[t] = sherd__plan_scale(&c->shards_of, t);
    memset(c->sum->values, 0, 8 * c->sum->len);
    for (uint32_t i = 0; i < c->shards_len && !err; i++) {
        double cost = 0;
        uint64_t hits = 0;
        sherd__shard s = sherd__picked_shard(&c->shards[i], c->scratch);
        how.local = c->shards[i].what.local;
        err = sherd__member_grade(c->member, &s, &how, c->sum->values, &cost, &hits, d);
        memcpy(out + 16 * (size_t)i, &cost, 8);
        sherd__put_u64(out + 16 * (size_t)i + 8, hits);
    }
    sherd__put_u64(out + 16 * (size_t)c->shards_len, c->head.round);
    return err;
}

/* ---- REDUCE, STATE --------------------------------------------------------------------------- */

/* Of the round under way; the block need not be that of its STEP, whoever asks. */
static int check_reduce(const sherd__circle *c, const sherd__task *t, const sherd__block *left,
                        sherd_diag *d)
{
    sherd__circle_round head;
    sherd__plan shards;
    int err = read_head(c, left, &head, &shards, d);
    if (err) return err;
    if (head.round != c->round)
        return sherd__fail(d, SHERD_EINVAL, NULL, "round %llu is not under way",
                           (unsigned long long)head.round);
    if (shards.tiers != sherd__member_tiers(c->member))
        return sherd__fail(d, SHERD_ESHAPE, NULL, "a sum of %u tiers for a network of %zu",
                           shards.tiers, sherd__member_tiers(c->member));
    return check_result(t, SHERD_F64, shards.tiers + SHERD__CIRCLE_FIGURES, d);
}

static int run_reduce(sherd__circle *c, const sherd_fragment *left, uint8_t *out, sherd_diag *d)
{
    int32_t scales[SHERD__RECIPE_LAYERS_MAX];
    sherd__member_figures f;
    sherd__circle_round head;
    sherd__plan p; /* the block's own: what the step has read may be gone */
    int err = sherd__circle_round_parse(&head, &p, c->plan.examples, sherd__fragment_bytes(left),
                                        (size_t)sherd__fragment_info_of(left)->len, d);
    if (err) return err;
    for (uint32_t t = 0; t < p.tiers; t++) scales[t] = sherd__plan_scale(&p, t);
    sherd__member_absorb(c->member, head.round, c->sum->values, scales, head.by, head.local, &f);
    memcpy(out, f.most, 8 * (size_t)p.tiers);
    out += 8 * (size_t)p.tiers;
    memcpy(out, &f.l2, 8);
    sherd__put_u64(out + 8, f.print);
    for (int i = 0; i < 3; i++) sherd__put_u64(out + 16 + 8 * i, c->bytes[i]);
    return SHERD_OK;
}

static int read_question(const sherd__block *left, sherd__circle_question *q, sherd_diag *d)
{
    const sherd__fragment_info *i = sherd__fragment_info_of(left->fragment);
    const uint8_t *bytes = sherd__fragment_bytes(left->fragment);
    if (i->dtype != SHERD_I64 || !bytes)
        return sherd__fail(d, SHERD_EFORMAT, NULL, "block %u is no question", left->number);
    return sherd__circle_state_parse(q, bytes, (size_t)i->len, d);
}

static int run_state(sherd__circle *c, const sherd__task *t, const sherd_fragment *left,
                     uint8_t *out, sherd_diag *d)
{
    sherd__circle_question q;
    int err = sherd__circle_state_parse(&q, sherd__fragment_bytes(left),
                                        (size_t)sherd__fragment_info_of(left)->len, d);
    if (!err) err = sherd__member_commit(c->member, q.commit, q.rate, d);
    if (err) return err;
    if (t->result.dtype == SHERD_I64)
        sherd__member_state_hash(c->member, q.bare, (size_t)q.len, out);
    else
        sherd__member_state(c->member, q.bare, (double *)(void *)out, (size_t)q.len);
    return SHERD_OK;
}

/* On the loop's thread, whatever runs: it reads nothing that a task changes. */
static void run_where(const sherd__circle *c, uint8_t *out)
{
    sherd__circle_where w = { .round = c->round, .step = c->step };
    bool broken = c->open && c->err;
    w.phase = c->exchanging         ? SHERD__CIRCLE_EXCHANGING
              : c->summed           ? SHERD__CIRCLE_SUMMED
              : broken              ? SHERD__CIRCLE_BROKEN
              : c->open             ? SHERD__CIRCLE_GRADING
                                    : SHERD__CIRCLE_NOWHERE;
    if (broken) w.step = c->culprit;
    w.bytes = sherd__circle_moved(c);
    w.worked_us = (uint64_t)(1e6 * sherd__clock_worked_s());
    sherd__circle_where_write(out, &w);
}

/* ---- turns ----------------------------------------------------------------------------------- */

static int open_state(const sherd__circle *c, const sherd__task *t, const sherd__block *left,
                      sherd_diag *d)
{
    sherd__circle_question q;
    int err = read_question(left, &q, d);
    if (err) return err;
    if (q.len == 0 || q.len > sherd__member_state_len(c->member))
        return sherd__fail(d, SHERD_ESHAPE, NULL, "a state has %zu numbers",
                           sherd__member_state_len(c->member));
    return t->result.dtype == SHERD_I64 ? check_result(t, SHERD_I64, SHERD__HASH / 8, d)
                                        : check_result(t, SHERD_F64, q.len, d);
}

/* Whether the task is to be asked for anew later; else SHERD_OK in *err, or why not at all. */
static bool must_wait(sherd__circle *c, const sherd__task *t, const sherd__block *left,
                      const sherd__block *right, int *err, sherd_diag *d)
{
    if (c->running) return true;
    *err = SHERD_OK;
    if (t->op == SHERD__OP_MEET) {
        *err = check_result(t, SHERD_I64, 1, d);
        if (!*err) *err = sherd__circle_open_plan(c, t, left, right, d);
        return false;
    }
    if (!c->met || t->job != c->job) {
        *err = sherd__fail(d, SHERD_EINVAL, NULL, "no MEET in this job");
        return false;
    }
    switch (t->op) {
    case SHERD__OP_CONNECT:
        *err = check_result(t, SHERD_I64, c->plan.members, d);
        if (!*err && !sherd__circle_connected(c)) return true;
        for (uint32_t i = 0; i < c->plan.members; i++) c->links[i] = c->peers[i].err;
        break;
    case SHERD__OP_STEP: *err = open_step(c, t, left, d); break;
    case SHERD__OP_REDUCE:
        *err = check_reduce(c, t, left, d);
        if (*err) break;
        if (c->err) *err = sherd__fail(d, c->err, NULL, "%s", c->why.message);
        else if (!c->open && !c->summed)
            *err = sherd__fail(d, SHERD_EINTERRUPTED, NULL, "the round was given up");
        else if (!c->summed) return true;
        break;
    default: *err = open_state(c, t, left, d); break;
    }
    return false;
}

sherd__circle_turn sherd__circle_ready(sherd__circle *c, const sherd__task *t,
                                       const sherd__block *left, const sherd__block *right,
                                       sherd_diag *d)
{
    int err = SHERD_OK;
    if (t->op == SHERD__OP_WHERE)
        return check_result(t, SHERD_I64, SHERD__CIRCLE_WHERE, d) ? SHERD__CIRCLE_REFUSE
                                                                  : SHERD__CIRCLE_NOW;
    if (must_wait(c, t, left, right, &err, d)) return SHERD__CIRCLE_WAIT;
    if (err) return SHERD__CIRCLE_REFUSE;
    c->running = true;
    return SHERD__CIRCLE_GO;
}

int sherd__circle_run(sherd__circle *c, const sherd__task *t, const sherd_fragment *left,
                      const sherd_fragment *right, uint8_t *out, sherd_diag *d)
{
    (void)right;
    switch (t->op) {
    case SHERD__OP_MEET: {
        int err = sherd__circle_meet(c, d);
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

void sherd__circle_done(sherd__circle *c, const sherd__task *t, int err, bool wanted)
{
    c->running = false;
    c->unwanted = false;
    if (c->forget) {
        sherd__circle_leave(c);
        return;
    }
    switch (t->op) {
    case SHERD__OP_MEET:
        sherd__block_release(c->state);
        c->state = NULL;
        c->met = !err && wanted;
        if (!c->met && c->plan.state) sherd__circle_leave(c); /* else the next meeting goes on */
        break;
    case SHERD__OP_STEP:
        sherd__circle_drop_shards(c);
        if (err || !wanted) sherd__circle_drop_round(c);
        else sherd__circle_exchange(c);
        break;
    case SHERD__OP_REDUCE: sherd__circle_drop_round(c); break;
    default: break;
    }
}

void sherd__circle_cancel(sherd__circle *c, uint64_t job)
{
    if (c->job != job || !job) return;
    if (c->running) c->unwanted = true; /* and dropped when it is done */
    else sherd__circle_drop_round(c);
}

void sherd__circle_forget(sherd__circle *c, uint64_t job)
{
    if (job && c->job != job) return;
    c->met = false;
    sherd__circle_disconnect(c);
    if (c->running) c->forget = true;
    else sherd__circle_leave(c);
}
