/*
 * Parses records and protobuf. Both are small enough that a parser of our own is less to trust than
 * a library: a fixed header, and messages of numbers with one level of nesting. Every length is
 * checked against the remaining bytes before it is used.
 */
#include "audit/reading.h"

#include <string.h>

#include "core/bytes.h"
#include "crypto/fragment_make.h"

#define MAGIC 0x44524853u
#define CONTROL_MAX 65536u /* the longest body that is not part of a block */

/* --- records --------------------------------------------------------------------------------- */

int sherd__reading_next(const uint8_t *bytes, size_t len, size_t *at, sherd__reading *out)
{
    size_t left = len - *at;
    if (left == 0) return 0;
    if (left < SHERD__READ_HEAD) return -1;
    const uint8_t *p = bytes + *at;
    uint64_t body = sherd__get_u64(p + 24);
    uint16_t type = sherd__get_u16(p + 4);
    bool carries = type == SHERD__READ_PUT || type == SHERD__READ_RESULT;
    if (sherd__get_u32(p) != MAGIC || (sherd__get_u16(p + 6) & ~1u) != 0) return -1;
    if (body > (carries ? SHERD__READ_PART : CONTROL_MAX) || body > left - SHERD__READ_HEAD)
        return -1;
    *out = (sherd__reading){
        .type = type,
        .job = sherd__get_u64(p + 8),
        .number = sherd__get_u32(p + 16),
        .part = sherd__get_u32(p + 20),
        .body = p + SHERD__READ_HEAD,
        .len = (size_t)body,
    };
    *at += SHERD__READ_HEAD + (size_t)body;
    return 1;
}

size_t sherd__reading_resume(const uint8_t *bytes, size_t len, size_t from, uint16_t type)
{
    uint8_t head[24] = { 0 }; /* magic, type, and zeros where a HELLO or WELCOME has them */
    sherd__put_u32(head, MAGIC);
    sherd__put_u16(head + 4, type);
    while (from < len && len - from >= SHERD__READ_HEAD) {
        const uint8_t *p = memmem(bytes + from, len - from, head, sizeof head);
        if (!p) break;
        return (size_t)(p - bytes);
    }
    return len;
}

/* --- protobuf -------------------------------------------------------------------------------- */

typedef struct field {
    uint32_t number, kind; /* kind: 0 varint, 1 eight bytes, 2 bytes, 5 four bytes */
    uint64_t value;        /* of a varint */
    const uint8_t *bytes;
    size_t len;
} field;

static bool varint(const uint8_t **p, const uint8_t *end, uint64_t *out)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64 && *p < end; shift += 7) {
        uint8_t b = *(*p)++;
        v |= (uint64_t)(b & 0x7f) << shift;
        if (b < 0x80) {
            *out = v;
            return true;
        }
    }
    return false;
}

/* Returns 1 for a field, 0 at the end, -1 if the bytes are not valid protobuf. */
static int next_field(const uint8_t **p, const uint8_t *end, field *f)
{
    uint64_t tag, len;
    if (*p == end) return 0;
    if (!varint(p, end, &tag) || tag >> 3 == 0 || tag >> 3 > UINT32_MAX) return -1;
    *f = (field){ .number = (uint32_t)(tag >> 3), .kind = tag & 7 };
    switch (f->kind) {
    case 0: return varint(p, end, &f->value) ? 1 : -1;
    case 1: len = 8; break;
    case 2:
        if (!varint(p, end, &len)) return -1;
        break;
    case 5: len = 4; break;
    default: return -1;
    }
    if (len > (uint64_t)(end - *p)) return -1;
    f->bytes = *p;
    f->len = (size_t)len;
    *p += len;
    return 1;
}

/* Reads the varints numbered 1..count into v; sets a bit of *seen for each. */
static int numbers(const uint8_t *body, size_t len, uint64_t *v, unsigned count, unsigned *seen)
{
    const uint8_t *p = body, *end = body + len;
    field f;
    int got;
    *seen = 0;
    while ((got = next_field(&p, end, &f)) == 1) {
        if (f.number > count) continue;
        if (f.kind != 0) return SHERD_EFRAME;
        v[f.number - 1] = f.value;
        *seen |= 1u << f.number;
    }
    return got < 0 ? SHERD_EFRAME : SHERD_OK;
}

int sherd__reading_description(const uint8_t *body, size_t len, sherd__fragment_info *out,
                               uint32_t *attempt)
{
    uint64_t v[9] = { 0 };
    unsigned seen;
    if (numbers(body, len, v, 9, &seen) || (seen & 0x1feu) != 0x1feu) return SHERD_EFRAME;
    if (v[0] > UINT8_MAX || v[1] > UINT8_MAX || v[2] > UINT8_MAX || v[3] > SHERD__READ_PRIMES ||
        v[4] > SHERD__GROUPS_MAX || v[8] > UINT32_MAX)
        return SHERD_EFRAME;
    sherd__fragment_info info = {
        .origin = (uint8_t)v[0],
        .dtype = (uint8_t)v[1],
        .encoding = (uint8_t)v[2],
        .primes = (uint8_t)v[3],
        .groups = (uint32_t)v[4],
        .rows = v[5],
        .cols = v[6],
        .len = v[7],
    };
    if (sherd__fragment_info_check(&info, NULL)) return SHERD_EFRAME;
    *out = info;
    if (attempt) *attempt = (uint32_t)v[8];
    return SHERD_OK;
}

static int read_prime(sherd__reading_task *t, uint64_t v)
{
    if (t->primes_len == SHERD__READ_PRIMES || v > UINT32_MAX) return SHERD_EFRAME;
    t->primes[t->primes_len++] = (uint32_t)v;
    return SHERD_OK;
}

/* Accepts the packed form, which we send, and single values. */
static int read_primes(const field *f, sherd__reading_task *t)
{
    uint64_t v;
    if (f->kind == 0) return read_prime(t, f->value);
    if (f->kind != 2) return SHERD_EFRAME;
    const uint8_t *p = f->bytes, *end = f->bytes + f->len;
    while (p < end)
        if (!varint(&p, end, &v) || read_prime(t, v)) return SHERD_EFRAME;
    return SHERD_OK;
}

int sherd__reading_task_of(const uint8_t *body, size_t len, sherd__reading_task *out)
{
    const uint8_t *p = body, *end = body + len;
    sherd__reading_task t = { 0 };
    unsigned seen = 0;
    field f;
    int got;
    while ((got = next_field(&p, end, &f)) == 1) {
        uint32_t *const to[] = { &t.op, &t.flags, &t.left, &t.right };
        if (f.number >= 1 && f.number <= 4) {
            if (f.kind != 0 || f.value > UINT32_MAX) return SHERD_EFRAME;
            *to[f.number - 1] = (uint32_t)f.value;
        } else if (f.number == 5) {
            if (read_primes(&f, &t)) return SHERD_EFRAME;
        } else if (f.number == 6) {
            if (f.kind != 2 || sherd__reading_description(f.bytes, f.len, &t.result, NULL))
                return SHERD_EFRAME;
        }
        if (f.number <= 6) seen |= 1u << f.number;
    }
    if (got < 0 || (seen & 0x5eu) != 0x5eu) return SHERD_EFRAME;
    *out = t;
    return SHERD_OK;
}
