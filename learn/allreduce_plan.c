/* Messages of an all-reduce group as bytes. Every range is checked on parsing, so that nodes can
   rely on a parsed plan. */
#include "learn/allreduce_plan.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/bytes.h"
#include "core/diag.h"

enum { STEP_BITS = 8, ROUND_BITS = 24 };

static uint64_t bits_of(double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static double number_at(const uint8_t *bytes)
{
    uint64_t bits = sherd__get_u64(bytes);
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static int none(sherd_diag *d, const char *what, uint64_t v)
{
    return sherd__fail(d, SHERD_EFORMAT, NULL, "%s %" PRIu64 " in an all-reduce plan", what, v);
}

/* ---- MEET ------------------------------------------------------------------------------------ */

void sherd__allreduce_plan_write(uint8_t out[8 * SHERD__ALLREDUCE_PLAN],
                                 const sherd__allreduce_plan *p)
{
    const uint64_t v[SHERD__ALLREDUCE_PLAN] = { SHERD__ALLREDUCE_FORMAT,
                                                p->kind,
                                                p->members,
                                                p->self,
                                                p->id,
                                                p->recipe,
                                                p->state,
                                                p->bits,
                                                p->batch,
                                                p->examples,
                                                p->round,
                                                p->optimiser.method,
                                                bits_of(p->optimiser.beta1),
                                                bits_of(p->optimiser.beta2),
                                                bits_of(p->optimiser.epsilon) };
    for (size_t i = 0; i < SHERD__ALLREDUCE_PLAN; i++) sherd__put_u64(out + 8 * i, v[i]);
}

int sherd__allreduce_plan_parse(sherd__allreduce_plan *out, const uint8_t *bytes, size_t len,
                                sherd_diag *d)
{
    static const struct {
        const char *name;
        uint64_t least, most;
    } of[12] = {
        { "format", SHERD__ALLREDUCE_FORMAT, SHERD__ALLREDUCE_FORMAT },
        { "schedule", SHERD__REDUCE_RING, SHERD__REDUCE_HALVING },
        { "members", 1, SHERD__ALLREDUCE_MOST },
        { "member", 0, SHERD__ALLREDUCE_MOST - 1 },
        { "name", 1, UINT64_MAX },
        { "recipe", 1, UINT32_MAX },
        { "state", 0, UINT32_MAX },
        { "bits", 2, 53 },
        { "batch", 1, UINT32_MAX },
        { "examples", 1, UINT32_MAX },
        { "round", 0, UINT64_MAX },
        { "optimiser", SHERD__SGD, SHERD__ADAM },
    };
    uint64_t v[12];
    if (len != 8 * SHERD__ALLREDUCE_PLAN)
        return sherd__fail(d, SHERD_EFORMAT, NULL, "an all-reduce plan of %zu bytes", len);
    for (size_t i = 0; i < 12; i++) {
        v[i] = sherd__get_u64(bytes + 8 * i);
        if (v[i] < of[i].least || v[i] > of[i].most) return none(d, of[i].name, v[i]);
    }
    if (v[3] >= v[2]) return none(d, "member", v[3]);
    *out = (sherd__allreduce_plan){ .kind = (sherd__reduce)v[1],
                                    .members = (uint32_t)v[2],
                                    .self = (uint32_t)v[3],
                                    .id = v[4],
                                    .recipe = (uint32_t)v[5],
                                    .state = (uint32_t)v[6],
                                    .bits = (unsigned)v[7],
                                    .batch = (size_t)v[8],
                                    .examples = (uint32_t)v[9],
                                    .round = v[10],
                                    .optimiser = { .method = (sherd__method)v[11],
                                                   .beta1 = number_at(bytes + 96),
                                                   .beta2 = number_at(bytes + 104),
                                                   .epsilon = number_at(bytes + 112) } };
    return SHERD_OK; /* the optimiser checks its own numbers */
}

/* ---- rounds ---------------------------------------------------------------------------------- */

void sherd__allreduce_round_write(uint8_t out[8 * SHERD__ALLREDUCE_STEP],
                                  const sherd__allreduce_round *r)
{
    const uint64_t v[9] = { SHERD__ALLREDUCE_FORMAT,
                            r->round,
                            r->commit,
                            bits_of(r->rate),
                            bits_of(r->by),
                            r->local,
                            r->packs,
                            r->list.kind,
                            r->list.len };
    for (size_t i = 0; i < 9; i++) sherd__put_u64(out + 8 * i, v[i]);
    memcpy(out + 72, r->list.key, sizeof r->list.key);
}

static int read_list(sherd__allreduce_round *r, uint32_t examples, const uint8_t *bytes,
                     sherd_diag *d)
{
    uint64_t packs = sherd__get_u64(bytes + 48), kind = sherd__get_u64(bytes + 56);
    uint64_t len = sherd__get_u64(bytes + 64);
    if (packs > SHERD__ALLREDUCE_PACKS_MOST) return none(d, "packs", packs);
    if (kind > SHERD__ROWS_DRAWN) return none(d, "kind of list", kind);
    if (len > UINT32_MAX) return none(d, "rows", len);
    r->packs = (uint32_t)packs;
    r->list = (sherd__rows){ (sherd__rows_kind)kind, examples, (uint32_t)len, { 0 } };
    memcpy(r->list.key, bytes + 72, sizeof r->list.key);
    return sherd__rows_valid(&r->list) ? SHERD_OK : none(d, "rows", len);
}

int sherd__allreduce_round_parse(sherd__allreduce_round *out, sherd__step_plan *shards,
                                 uint32_t examples, const uint8_t *bytes, size_t len, sherd_diag *d)
{
    const size_t head = 8 * SHERD__ALLREDUCE_STEP;
    if (len < head)
        return sherd__fail(d, SHERD_EFORMAT, NULL, "an all-reduce step of %zu bytes", len);
    uint64_t format = sherd__get_u64(bytes), local = sherd__get_u64(bytes + 40);
    sherd__allreduce_round r = { .round = sherd__get_u64(bytes + 8),
                                 .commit = sherd__get_u64(bytes + 16),
                                 .rate = number_at(bytes + 24),
                                 .by = number_at(bytes + 32),
                                 .local = local != 0 };
    if (format != SHERD__ALLREDUCE_FORMAT) return none(d, "format", format);
    if (r.round == 0) return none(d, "round", r.round);
    if (r.commit >= r.round) return none(d, "update", r.commit);
    if (local > 1) return none(d, "kind of steps", local);
    if (!isfinite(r.rate) || !isfinite(r.by) || r.by <= 0)
        return sherd__fail(d, SHERD_EFORMAT, NULL, "a step at rate %g, divided by %g", r.rate,
                           r.by);
    int err = read_list(&r, examples, bytes, d);
    if (!err) err = sherd__step_plan_parse(shards, bytes + head, len - head, d);
    if (err) return err;
    *out = r;
    return SHERD_OK;
}

bool sherd__allreduce_shard_valid(const sherd__allreduce_round *r, const sherd__step_plan_shard *s,
                                  size_t batch)
{
    return s->x == 0 && s->targets == 0 && sherd__plan_shard_sized(s, batch) &&
           s->rows <= r->list.len && s->first <= r->list.len - s->rows;
}

uint32_t sherd__allreduce_pack(uint32_t k)
{
    return ((uint32_t)1 << 31) + 3 * k;
}

void sherd__allreduce_state_write(uint8_t out[8 * SHERD__ALLREDUCE_STATE],
                                  const sherd__allreduce_question *q)
{
    sherd__put_u64(out, SHERD__ALLREDUCE_FORMAT);
    sherd__put_u64(out + 8, q->commit);
    sherd__put_u64(out + 16, bits_of(q->rate));
    sherd__put_u64(out + 24, q->len);
    sherd__put_u64(out + 32, q->bare);
}

int sherd__allreduce_state_parse(sherd__allreduce_question *out, const uint8_t *bytes, size_t len,
                                 sherd_diag *d)
{
    if (len != 8 * SHERD__ALLREDUCE_STATE || sherd__get_u64(bytes) != SHERD__ALLREDUCE_FORMAT)
        return sherd__fail(d, SHERD_EFORMAT, NULL, "%zu bytes that are not a question", len);
    *out = (sherd__allreduce_question){ sherd__get_u64(bytes + 8), number_at(bytes + 16),
                                        sherd__get_u64(bytes + 24),
                                        sherd__get_u64(bytes + 32) != 0 };
    return isfinite(out->rate)
               ? SHERD_OK
               : sherd__fail(d, SHERD_EFORMAT, NULL, "an update at rate %g", out->rate);
}

void sherd__allreduce_where_write(uint8_t out[8 * SHERD__ALLREDUCE_WHERE],
                                  const sherd__allreduce_where *w)
{
    const uint64_t v[SHERD__ALLREDUCE_WHERE] = { w->round, w->phase, w->step, w->bytes,
                                                 w->worked_us };
    for (size_t i = 0; i < SHERD__ALLREDUCE_WHERE; i++) sherd__put_u64(out + 8 * i, v[i]);
}

bool sherd__allreduce_where_parse(sherd__allreduce_where *out,
                                  const uint8_t bytes[8 * SHERD__ALLREDUCE_WHERE])
{
    uint64_t phase = sherd__get_u64(bytes + 8), step = sherd__get_u64(bytes + 16);
    if (phase > SHERD__ALLREDUCE_BROKEN || step > 2 * SHERD__ALLREDUCE_MOST) return false;
    *out = (sherd__allreduce_where){ sherd__get_u64(bytes), (sherd__allreduce_phase)phase,
                                     (uint32_t)step, sherd__get_u64(bytes + 24),
                                     sherd__get_u64(bytes + 32) };
    return true;
}

/* Steps count from 1 here, so that no block number is 0. */
uint32_t sherd__allreduce_block(uint64_t round, uint32_t step)
{
    return (uint32_t)(round << STEP_BITS) | (step + 1);
}

void sherd__allreduce_block_of(uint32_t number, uint64_t near, uint64_t *round, uint32_t *step)
{
    const uint64_t all = (uint64_t)1 << ROUND_BITS;
    uint64_t ahead = ((number >> STEP_BITS) - near) & (all - 1);
    uint32_t s = number & ((1u << STEP_BITS) - 1);
    *step = s - 1; /* s == 0 gives a step beyond all others */
    if (ahead < all / 2) *round = near + ahead;
    else *round = near + ahead >= all ? near + ahead - all : 0;
}
