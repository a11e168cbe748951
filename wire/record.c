/*
 * Record headers. One table describes the valid headers of each type, so that every error in a
 * header is rejected here, before it reaches the state of a session or causes an allocation. The
 * input is not trusted.
 */
#include "wire/record.h"

#include <inttypes.h>
#include <stddef.h>

#include "core/bytes.h"
#include "core/diag.h"
#include "wire/session.h"

enum { NONE, ANY, SOME }; /* a header field is zero, may have any value, is not zero */
enum { FROM_COORDINATOR = 1, FROM_NODE = 2, FROM_BOTH = 3 };

typedef struct rule {
    const char *name;
    uint8_t senders, job, number, part;
    uint32_t cap, cap_chunk; /* bytes of body: in part 0, in later parts */
} rule;

static const rule rules[] = {
    [SHERD__REC_HELLO] = { "HELLO", FROM_COORDINATOR, NONE, NONE, NONE, SHERD__CONTROL_MAX, 0 },
    [SHERD__REC_WELCOME] = { "WELCOME", FROM_NODE, NONE, NONE, NONE, SHERD__CONTROL_MAX, 0 },
    [SHERD__REC_PUT] = { "PUT", FROM_COORDINATOR, SOME, SOME, ANY, SHERD__CONTROL_MAX,
                         SHERD__CHUNK },
    [SHERD__REC_TASK] = { "TASK", FROM_COORDINATOR, SOME, SOME, ANY, SHERD__CONTROL_MAX,
                          SHERD__CONTROL_MAX },
    [SHERD__REC_RESULT] = { "RESULT", FROM_NODE, SOME, SOME, ANY, SHERD__CONTROL_MAX,
                            SHERD__CHUNK },
    [SHERD__REC_REFUSE] = { "REFUSE", FROM_NODE, SOME, SOME, ANY, SHERD__CONTROL_MAX,
                            SHERD__CONTROL_MAX },
    [SHERD__REC_DROP] = { "DROP", FROM_COORDINATOR, SOME, ANY, NONE, 0, 0 },
    [SHERD__REC_PING] = { "PING", FROM_BOTH, NONE, SOME, NONE, 0, 0 },
    [SHERD__REC_PONG] = { "PONG", FROM_BOTH, NONE, SOME, NONE, 0, 0 },
    [SHERD__REC_CANCEL] = { "CANCEL", FROM_COORDINATOR, SOME, ANY, ANY, 0, 0 },
    [SHERD__REC_BYE] = { "BYE", FROM_BOTH, NONE, NONE, NONE, SHERD__CONTROL_MAX, 0 },
};

static const rule *rule_of(uint16_t type)
{
    if (type >= sizeof rules / sizeof *rules || !rules[type].name) return NULL;
    return &rules[type];
}

const char *sherd__record_name(uint16_t type)
{
    const rule *r = rule_of(type);
    return r ? r->name : NULL;
}

unsigned sherd__record_senders(uint16_t type)
{
    const rule *r = rule_of(type);
    return r ? r->senders : FROM_BOTH;
}

uint64_t sherd__record_cap(uint16_t type, uint32_t part)
{
    const rule *r = rule_of(type);
    if (!r) return SHERD__UNKNOWN_MAX;
    return part ? r->cap_chunk : r->cap;
}

void sherd__record_pack(const sherd__record *r, uint8_t out[SHERD__RECORD_BYTES])
{
    sherd__put_u32(out, SHERD__RECORD_MAGIC);
    sherd__put_u16(out + 4, r->type);
    sherd__put_u16(out + 6, r->flags);
    sherd__put_u64(out + 8, r->job);
    sherd__put_u32(out + 16, r->number);
    sherd__put_u32(out + 20, r->part);
    sherd__put_u64(out + 24, r->body_len);
}

static int check_field(const rule *r, uint8_t want, uint64_t value, const char *field,
                       sherd_diag *d)
{
    if (want == ANY || (want == SOME) == (value != 0)) return SHERD_OK;
    return sherd__fail(d, SHERD_EFRAME, NULL, "%s record with %s %" PRIu64 ": expected %s", r->name,
                       field, value, want == SOME ? "one that is not 0" : "0");
}

static int check_known(const rule *r, const sherd__record *h, sherd_diag *d)
{
    if (h->flags)
        return sherd__fail(d, SHERD_EFRAME, NULL, "%s record with flags 0x%04x: expected 0",
                           r->name, h->flags);
    int err = check_field(r, r->job, h->job, "job", d);
    if (!err) err = check_field(r, r->number, h->number, "number", d);
    if (!err) err = check_field(r, r->part, h->part, "part", d);
    return err;
}

int sherd__record_parse(sherd__record *out, const uint8_t in[SHERD__RECORD_BYTES], sherd_diag *d)
{
    uint32_t magic = sherd__get_u32(in);
    if (magic != SHERD__RECORD_MAGIC)
        return sherd__fail(d, SHERD_EFRAME, NULL, "record starts with 0x%08x: expected 0x%08x",
                           magic, SHERD__RECORD_MAGIC);
    sherd__record h = {
        .type = sherd__get_u16(in + 4),
        .flags = sherd__get_u16(in + 6),
        .job = sherd__get_u64(in + 8),
        .number = sherd__get_u32(in + 16),
        .part = sherd__get_u32(in + 20),
        .body_len = sherd__get_u64(in + 24),
    };
    const rule *r = rule_of(h.type);
    if (!r && !(h.flags & SHERD__RECORD_OPTIONAL))
        return sherd__fail(d, SHERD_EFRAME, NULL, "record of unknown type %u", h.type);
    uint64_t cap = sherd__record_cap(h.type, h.part);
    if (h.body_len > cap)
        return sherd__fail(d, SHERD_EFRAME, NULL,
                           "%s record with a body of %" PRIu64 " bytes: at most %" PRIu64,
                           r ? r->name : "unknown", h.body_len, cap);
    int err = r ? check_known(r, &h, d) : SHERD_OK;
    if (!err) *out = h;
    return err;
}
