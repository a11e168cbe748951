/* Plans as bytes. Ranges are checked on parsing, so that readers of a parsed plan can rely on
   them. */
#include "learn/plan.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/bytes.h"
#include "core/diag.h"

enum { SCALE_MOST = 1000 };

size_t sherd__plan_size(uint32_t tiers, uint32_t shards)
{
    return 8 * (SHERD__PLAN_HEAD + (size_t)tiers + SHERD__PLAN_SHARD * (size_t)shards);
}

static uint64_t bits_of(double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static double number_of(uint64_t bits)
{
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

void sherd__step_plan_write(uint8_t *out, const sherd__step_plan *p, const int32_t *scales)
{
    const uint64_t head[SHERD__PLAN_HEAD] = { SHERD__PLAN_FORMAT, p->recipe, p->bits,   p->room,
                                              p->tiers,           p->params, p->shards, p->batch };
    for (size_t i = 0; i < SHERD__PLAN_HEAD; i++) sherd__put_u64(out + 8 * i, head[i]);
    out += 8 * SHERD__PLAN_HEAD;
    for (uint32_t t = 0; t < p->tiers; t++)
        sherd__put_u64(out + 8 * (size_t)t, (uint64_t)(int64_t)scales[t]);
}

void sherd__step_plan_write_shard(uint8_t *out, const sherd__step_plan *p, uint32_t i,
                                  const sherd__step_plan_shard *s)
{
    const uint64_t v[SHERD__PLAN_SHARD] = { s->x,
                                            s->targets,
                                            s->first,
                                            s->rows,
                                            s->drop,
                                            s->local.steps,
                                            s->local.batch,
                                            bits_of(s->local.rate),
                                            bits_of(s->local.l2),
                                            bits_of(s->local.weight) };
    out += 8 * (SHERD__PLAN_HEAD + (size_t)p->tiers + SHERD__PLAN_SHARD * (size_t)i);
    for (size_t k = 0; k < SHERD__PLAN_SHARD; k++) sherd__put_u64(out + 8 * k, v[k]);
}

static int check_head(const uint64_t *h, size_t len, sherd_diag *d)
{
    static const struct {
        const char *name;
        uint64_t least, most;
    } of[SHERD__PLAN_HEAD] = {
        { "format", SHERD__PLAN_FORMAT, SHERD__PLAN_FORMAT },
        { "recipe", 1, UINT32_MAX },
        { "bits", 0, 53 },
        { "room", 0, 62 },
        { "tiers", 1, SHERD__RECIPE_LAYERS_MAX },
        { "params", 1, UINT32_MAX - SHERD__RECIPE_LAYERS_MAX },
        { "shards", 0, SHERD__SHARDS_MAX }, /* 0 in an all-reduce group (learn/allreduce.h) */
        { "batch", 1, UINT32_MAX },
    };
    for (size_t i = 0; i < SHERD__PLAN_HEAD; i++)
        if (h[i] < of[i].least || h[i] > of[i].most)
            return sherd__fail(d, SHERD_EFORMAT, NULL,
                               "a plan with %s %" PRIu64 ": expected %" PRIu64 " to %" PRIu64,
                               of[i].name, h[i], of[i].least, of[i].most);
    size_t want = sherd__plan_size((uint32_t)h[4], (uint32_t)h[6]);
    if (len != want)
        return sherd__fail(d, SHERD_EFORMAT, NULL, "a plan of %zu bytes: expected %zu", len, want);
    return SHERD_OK;
}

int sherd__step_plan_parse(sherd__step_plan *out, const uint8_t *bytes, size_t len, sherd_diag *d)
{
    uint64_t h[SHERD__PLAN_HEAD];
    if (len < sizeof h)
        return sherd__fail(d, SHERD_EFORMAT, NULL, "a plan of %zu bytes: expected more", len);
    for (size_t i = 0; i < SHERD__PLAN_HEAD; i++) h[i] = sherd__get_u64(bytes + 8 * i);
    int err = check_head(h, len, d);
    if (err) return err;
    if (h[2] == 1) return sherd__fail(d, SHERD_EFORMAT, NULL, "a plan with one bit");
    sherd__step_plan p = { .recipe = (uint32_t)h[1],
                           .bits = (unsigned)h[2],
                           .room = (unsigned)h[3],
                           .tiers = (uint32_t)h[4],
                           .params = (uint32_t)h[5],
                           .shards = (uint32_t)h[6],
                           .batch = (size_t)h[7],
                           .bytes = bytes + sizeof h };
    for (uint32_t t = 0; t < p.tiers; t++) {
        int64_t scale = (int64_t)sherd__get_u64(p.bytes + 8 * (size_t)t);
        if (scale < -SCALE_MOST || scale > SCALE_MOST)
            return sherd__fail(d, SHERD_EFORMAT, NULL, "a plan with scale %" PRId64, scale);
    }
    *out = p;
    return SHERD_OK;
}

int32_t sherd__step_plan_scale(const sherd__step_plan *p, uint32_t tier)
{
    return (int32_t)(int64_t)sherd__get_u64(p->bytes + 8 * (size_t)tier);
}

static uint32_t block_of(uint64_t v)
{
    return v <= UINT32_MAX ? (uint32_t)v : 0;
}

sherd__step_plan_shard sherd__step_plan_shard_at(const sherd__step_plan *p, uint32_t i)
{
    const uint8_t *at = p->bytes + 8 * ((size_t)p->tiers + SHERD__PLAN_SHARD * (size_t)i);
    uint64_t v[SHERD__PLAN_SHARD];
    for (size_t k = 0; k < SHERD__PLAN_SHARD; k++) v[k] = sherd__get_u64(at + 8 * k);
    return (sherd__step_plan_shard){ .x = block_of(v[0]),
                                     .targets = block_of(v[1]),
                                     .first = v[2],
                                     .rows = v[3],
                                     .drop = v[4] != 0,
                                     .local = { .steps = v[5],
                                                .batch = v[6],
                                                .rate = number_of(v[7]),
                                                .l2 = number_of(v[8]),
                                                .weight = number_of(v[9]) } };
}

bool sherd__plan_shard_sized(const sherd__step_plan_shard *s, size_t batch)
{
    const sherd__local_steps *l = &s->local;
    if (s->rows == 0 || s->rows > batch) return false;
    if (l->steps == 0) return true;
    return l->steps <= UINT32_MAX && isfinite(l->rate) && isfinite(l->l2) && l->l2 >= 0 &&
           l->weight > 0 && l->weight <= 1;
}

bool sherd__plan_shard_valid(const sherd__step_plan_shard *s, size_t batch)
{
    return s->x && s->targets && sherd__plan_shard_sized(s, batch);
}

uint64_t sherd__plan_numbers(size_t count, uint32_t tier, uint32_t shards)
{
    return tier > 0 ? count : count + 2 * (uint64_t)shards + SHERD__PLAN_TIMES;
}
