/* Blocks of secure aggregation as bytes. Ranges are checked where a number enters; what belongs
 * together (thresholds, blocks) is the receiver's to check. */
#include "learn/secure.h"

#include <inttypes.h>
#include <string.h>

#include "core/bytes.h"
#include "core/diag.h"

static const char tag[16] = "sherd seal key 1";

void sherd__secure_plan_write(uint8_t out[8 * SHERD__SECURE_PLAN], const sherd__secure_plan *p)
{
    const uint64_t v[SHERD__SECURE_PLAN] = { SHERD__SECURE_FORMAT, p->recipe, p->bits, p->nodes,
                                             p->threshold, p->colluding, p->self, p->rows, p->x,
                                             p->targets };
    for (size_t i = 0; i < SHERD__SECURE_PLAN; i++) sherd__put_u64(out + 8 * i, v[i]);
}

int sherd__secure_plan_parse(sherd__secure_plan *out, const uint8_t *bytes, size_t len,
                             sherd_diag *d)
{
    static const struct { const char *name; uint64_t least, most; } of[SHERD__SECURE_PLAN] = {
        { "format", SHERD__SECURE_FORMAT, SHERD__SECURE_FORMAT },
        { "recipe", 1, UINT32_MAX },
        { "bits", 2, 53 },
        { "nodes", 3, 1024 },
        { "threshold", 3, 1024 },
        { "colluding", 1, 1024 },
        { "self", 0, 1023 },
        { "rows", 0, UINT32_MAX },
        { "inputs", 0, UINT32_MAX },
        { "targets", 0, UINT32_MAX },
    };
    uint64_t v[SHERD__SECURE_PLAN];
    if (len != sizeof v)
        return sherd__fail(d, SHERD_EFORMAT, NULL, "a plan of %zu bytes: expected %zu", len,
                           sizeof v);
    if (sherd__get_u64(bytes) != SHERD__SECURE_FORMAT)
        return sherd__fail(d, SHERD_EFORMAT, NULL, "format %" PRIu64 " of secure aggregation: this "
                           "node speaks format %d; bring both to one version of sherd",
                           sherd__get_u64(bytes), SHERD__SECURE_FORMAT);
    for (size_t i = 0; i < SHERD__SECURE_PLAN; i++) {
        v[i] = sherd__get_u64(bytes + 8 * i);
        if (v[i] < of[i].least || v[i] > of[i].most)
            return sherd__fail(d, SHERD_EFORMAT, NULL, "a plan with %s %" PRIu64 ": expected %"
                               PRIu64 " to %" PRIu64, of[i].name, v[i], of[i].least, of[i].most);
    }
    if (v[6] >= v[3] || (v[8] == 0) != (v[9] == 0))
        return sherd__fail(d, SHERD_EFORMAT, NULL, v[6] >= v[3] ? "a plan for a node beyond all"
                                                   : "a plan with inputs or targets alone");
    *out = (sherd__secure_plan){ .recipe = (uint32_t)v[1], .bits = (unsigned)v[2],
                                 .nodes = (uint32_t)v[3], .threshold = (uint32_t)v[4],
                                 .colluding = (uint32_t)v[5], .self = (uint32_t)v[6],
                                 .rows = v[7], .x = (uint32_t)v[8], .targets = (uint32_t)v[9] };
    return SHERD_OK;
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
    memcpy(out + 40, seal, 32);
}

unsigned sherd__secure_room(uint32_t nodes)
{
    unsigned bits = 0;
    while (((uint32_t)1 << bits) < nodes) bits++;
    return 59 - bits; /* nodes 2^room is at most 2^59, and q / 2 just below 2^60 */
}
