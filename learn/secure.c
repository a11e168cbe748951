/* Messages of secure aggregation as bytes. Ranges are checked on parsing; the receiver checks
   relations between numbers (thresholds, blocks). */
#include "learn/secure.h"

#include <inttypes.h>
#include <string.h>

#include "core/bytes.h"
#include "core/diag.h"
#include "learn/local_data.h"

static const char tag[16] = "sherd seal key 2";

static uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static double f64_of(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

void sherd__secure_plan_write(uint8_t out[8 * SHERD__SECURE_PLAN], const sherd__secure_plan *p)
{
    const uint64_t v[SHERD__SECURE_PLAN] = {
        SHERD__SECURE_FORMAT, p->recipe,         p->nodes, p->threshold,
        p->colluding,         p->self,           p->rows,  p->places,
        bits_of(p->clip),     bits_of(p->noise), p->x,     p->targets
    };
    for (size_t i = 0; i < SHERD__SECURE_PLAN; i++) sherd__put_u64(out + 8 * i, v[i]);
}

/* Checks the numbers of clipping and noise, and that sums of clipped gradients fit. */
static int check_privacy(const sherd__secure_plan *p, sherd_diag *d)
{
    uint64_t most = UINT64_C(1) << (sherd__secure_room(p->nodes) - 19);
    if (!(p->clip == 0 || (p->clip >= SHERD__OWN_CLIP_LEAST && p->clip <= SHERD__OWN_CLIP_MOST)) ||
        !(p->noise >= 0 && p->noise <= SHERD__PRIVACY_NOISE_MAX))
        return sherd__fail(d, SHERD_EFORMAT, NULL,
                           "a plan with a clipping norm of %g and a noise "
                           "multiplier of %g: expected 0 or %g to %g, and 0 to %g",
                           p->clip, p->noise, SHERD__OWN_CLIP_LEAST, SHERD__OWN_CLIP_MOST,
                           SHERD__PRIVACY_NOISE_MAX);
    if (p->noise > 0 && p->clip == 0)
        return sherd__fail(d, SHERD_EFORMAT, NULL, "a plan with noise needs a clipping norm");
    if (p->clip > 0 && p->rows > most)
        return sherd__fail(d, SHERD_EFORMAT, NULL,
                           "a plan with %" PRIu64 " places a round: "
                           "expected at most %" PRIu64,
                           p->rows, most);
    return SHERD_OK;
}

int sherd__secure_plan_parse(sherd__secure_plan *out, const uint8_t *bytes, size_t len,
                             sherd_diag *d)
{
    static const struct {
        const char *name;
        uint64_t least, most;
    } of[SHERD__SECURE_PLAN] = {
        { "format", SHERD__SECURE_FORMAT, SHERD__SECURE_FORMAT },
        { "recipe", 1, UINT32_MAX },
        { "nodes", 3, 1024 },
        { "threshold", 3, 1024 },
        { "colluding", 1, 1024 },
        { "self", 0, 1023 },
        { "rows", 1, UINT32_MAX },
        { "places", 1, UINT32_MAX },
        { "clip", 0, UINT64_MAX },
        { "noise", 0, UINT64_MAX },
        { "inputs", 0, UINT32_MAX },
        { "targets", 0, UINT32_MAX },
    };
    uint64_t v[SHERD__SECURE_PLAN];
    if (len < 8 || sherd__get_u64(bytes) != SHERD__SECURE_FORMAT || len != sizeof v)
        return sherd__fail(d, SHERD_EFORMAT, NULL,
                           "another format of secure aggregation: bring "
                           "both to one version of sherd");
    for (size_t i = 0; i < SHERD__SECURE_PLAN; i++) {
        v[i] = sherd__get_u64(bytes + 8 * i);
        if (v[i] < of[i].least || v[i] > of[i].most)
            return sherd__fail(d, SHERD_EFORMAT, NULL,
                               "a plan with %s %" PRIu64 ": expected %" PRIu64 " to %" PRIu64,
                               of[i].name, v[i], of[i].least, of[i].most);
    }
    if (v[5] >= v[2] || v[6] > v[7] || (v[10] == 0) != (v[11] == 0))
        return sherd__fail(d, SHERD_EFORMAT, NULL,
                           v[5] >= v[2]  ? "a plan for a node that does not exist"
                           : v[6] > v[7] ? "a plan with more places in a "
                                           "round than in an epoch"
                                         : "a plan with inputs or targets only");
    sherd__secure_plan p = { .recipe = (uint32_t)v[1],
                             .nodes = (uint32_t)v[2],
                             .threshold = (uint32_t)v[3],
                             .colluding = (uint32_t)v[4],
                             .self = (uint32_t)v[5],
                             .rows = v[6],
                             .places = v[7],
                             .clip = f64_of(v[8]),
                             .noise = f64_of(v[9]),
                             .x = (uint32_t)v[10],
                             .targets = (uint32_t)v[11] };
    int err = check_privacy(&p, d);
    if (!err) *out = p;
    return err;
}

uint64_t sherd__secure_window(const sherd__secure_plan *p, uint64_t step, uint64_t *first)
{
    uint64_t windows = (p->places + p->rows - 1) / p->rows;
    *first = step % windows * p->rows;
    return p->places - *first < p->rows ? p->places - *first : p->rows;
}

void sherd__secure_training(uint8_t out[SHERD__SECURE_TRAINING], const sherd__secure_plan *p)
{
    sherd__put_u64(out, p->rows);
    sherd__put_u64(out + 8, p->places);
    sherd__put_u64(out + 16, bits_of(p->clip));
    sherd__put_u64(out + 24, bits_of(p->noise));
}

sherd__privacy_round sherd__secure_privacy(const sherd__secure_plan *p, uint64_t count)
{
    return (sherd__privacy_round){
        .threshold = p->threshold, .colluding = p->colluding, .gradient = count, .noise = p->noise
    };
}

void sherd__secure_statement(uint8_t out[SHERD__SECURE_STATEMENT], uint64_t job,
                             const sherd__secure_plan *p, uint32_t self, const uint8_t seal[32])
{
    memcpy(out, tag, sizeof tag);
    sherd__put_u64(out + 16, job);
    sherd__put_u32(out + 24, p->nodes);
    sherd__put_u32(out + 28, p->threshold);
    sherd__put_u32(out + 32, p->colluding);
    sherd__put_u32(out + 36, self);
    sherd__put_u32(out + 40, p->x != 0);
    memcpy(out + 44, seal, 32);
}

unsigned sherd__secure_room(uint32_t nodes)
{
    unsigned bits = 0;
    while (((uint32_t)1 << bits) < nodes) bits++;
    return 59 - bits; /* nodes 2^room is at most 2^59, and q / 2 just below 2^60 */
}
