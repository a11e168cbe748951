/* A set is found by the digest of its spans, which are determined by its keys and by the order in
 * which members were added. */
#include "store/rosters.h"

#include <assert.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

#define LIST_MAX ((size_t)1 << 40) /* no limit: memory is smaller */
#define HEX (2 * SHERD__ROSTER_KEY)

typedef sherd__roster_span span;

typedef struct set {
    uint8_t digest[SHERD__HASH];
    uint64_t from; /* index in spans */
    uint32_t spans_len, nodes;
} set;

int sherd__rosters_init(sherd__rosters *r, const sherd__table_key *key)
{
    sherd__index_init(&r->members, SHERD__ROSTER_KEY, SHERD__ROSTER_KEY, LIST_MAX, key);
    sherd__index_init(&r->sets, sizeof(set), SHERD__HASH, LIST_MAX, key);
    sherd__buf_init(&r->spans, LIST_MAX, 0);
    r->keys = sherd__calloc(SHERD__ROSTER_MOST, sizeof *r->keys);
    return r->keys ? SHERD_OK : SHERD_ENOMEM;
}

void sherd__rosters_fini(sherd__rosters *r)
{
    sherd__index_fini(&r->members);
    sherd__index_fini(&r->sets);
    sherd__buf_fini(&r->spans);
    sherd__free(r->keys);
    r->keys = NULL;
}

uint32_t sherd__rosters_len(const sherd__rosters *r)
{
    return (uint32_t)sherd__index_len(&r->sets);
}

static uint32_t members_len(const sherd__rosters *r)
{
    return (uint32_t)sherd__index_len(&r->members);
}

static int by_key(const void *a, const void *b)
{
    return memcmp(a, b, SHERD__ROSTER_KEY);
}

const uint8_t (*sherd__rosters_keys(const sherd__rosters *r, uint32_t number,
                                    uint32_t *nodes))[SHERD__ROSTER_KEY]
{
    const set *s = sherd__index_at(&r->sets, number);
    const span *part = (const span *)(const void *)r->spans.data + s->from;
    size_t len = 0;
    for (uint32_t i = 0; i < s->spans_len; i++)
        for (uint32_t k = part[i].first; k <= part[i].last; k++)
            memcpy(r->keys[len++], sherd__index_at(&r->members, k), sizeof *r->keys);
    qsort(r->keys, len, sizeof *r->keys, by_key);
    *nodes = s->nodes;
    return (const uint8_t(*)[SHERD__ROSTER_KEY])r->keys;
}

/* ---- a set ----------------------------------------------------------------------------------- */

static void seal(const sherd__rosters *r, sherd__roster *s)
{
    const sherd__hash_part part = { s->spans, s->spans_len * sizeof *s->spans };
    sherd__hash_of(&part, 1, s->digest);
    const void *known = sherd__index_find(&r->sets, s->digest);
    s->number = known ? sherd__index_number(&r->sets, known) : sherd__rosters_len(r);
}

static int by_number(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

int sherd__rosters_find(const sherd__rosters *r, const uint8_t (*keys)[SHERD__ROSTER_KEY],
                        uint32_t nodes, sherd__roster *out)
{
    uint32_t numbers[SHERD__ROSTER_MOST];
    if (nodes == 0 || nodes > SHERD__ROSTER_MOST) return SHERD_EINVAL;
    *out = (sherd__roster){ .nodes = nodes, .keys = keys };
    for (uint32_t i = 0; i < nodes; i++) {
        if (i > 0 && memcmp(keys[i - 1], keys[i], sizeof *keys) >= 0) return SHERD_EINVAL;
        const void *known = sherd__index_find(&r->members, keys[i]);
        if (known) numbers[i] = sherd__index_number(&r->members, known);
        else numbers[i] = members_len(r) + out->unknown_len;
        if (!known) out->unknown[out->unknown_len++] = (uint16_t)i;
    }
    qsort(numbers, nodes, sizeof *numbers, by_number);
    for (uint32_t i = 0; i < nodes; i++) {
        if (i > 0 && numbers[i] == numbers[i - 1] + 1) out->spans[out->spans_len - 1].last++;
        else out->spans[out->spans_len++] = (span){ numbers[i], numbers[i] };
    }
    seal(r, out);
    return SHERD_OK;
}

int sherd__rosters_reserve(sherd__rosters *r, const sherd__roster *s)
{
    uint8_t *at;
    int err = sherd__index_reserve_many(&r->members, s->unknown_len);
    if (!err) err = sherd__index_reserve(&r->sets);
    return err ? err : sherd__buf_reserve(&r->spans, s->spans_len * sizeof(span), &at);
}

/* Adds a set. A file of another writer may contain a set twice; the second copy still gets a
 * number. */
static int add(sherd__rosters *r, const sherd__roster *s)
{
    int err = sherd__rosters_reserve(r, s);
    if (err) return err;
    for (uint32_t i = 0; i < s->unknown_len; i++) {
        const void *member = sherd__index_add(&r->members, s->keys[s->unknown[i]]);
        assert(member);
        (void)member;
    }
    set *fresh = sherd__index_add(&r->sets, s->digest);
    assert(fresh);
    fresh->from = r->spans.len / sizeof(span);
    fresh->spans_len = s->spans_len;
    fresh->nodes = s->nodes;
    return sherd__buf_append(&r->spans, s->spans, s->spans_len * sizeof(span));
}

int sherd__rosters_add(sherd__rosters *r, const sherd__roster *s)
{
    return s->number < sherd__rosters_len(r) ? SHERD_OK : add(r, s);
}

/* ---- lines ----------------------------------------------------------------------------------- */

int sherd__rosters_print(const sherd__rosters *r, const sherd__roster *s, sherd__buf *out)
{
    char text[HEX + 16];
    int err = SHERD_OK;
    if (s->number < sherd__rosters_len(r)) return SHERD_OK;
    for (uint32_t i = 0; i < s->unknown_len && !err; i++) {
        char key[HEX + 1];
        sodium_bin2hex(key, sizeof key, s->keys[s->unknown[i]], SHERD__ROSTER_KEY);
        int n = snprintf(text, sizeof text, "member %s\n", key);
        err = sherd__buf_append(out, text, (size_t)n);
    }
    int n = snprintf(text, sizeof text, "set %" PRIu32, s->number);
    if (!err) err = sherd__buf_append(out, text, (size_t)n);
    for (uint32_t i = 0; i < s->spans_len && !err; i++) {
        n = snprintf(text, sizeof text, " %" PRIu32 "-%" PRIu32, s->spans[i].first,
                     s->spans[i].last);
        err = sherd__buf_append(out, text, (size_t)n);
    }
    return err ? err : sherd__buf_append(out, "\n", 1);
}

static bool read_key(const char *at, const char *end, uint8_t out[SHERD__ROSTER_KEY])
{
    size_t used;
    return end - at >= HEX &&
           sodium_hex2bin(out, SHERD__ROSTER_KEY, at, HEX, NULL, &used, NULL) == 0 &&
           used == SHERD__ROSTER_KEY;
}

/* Parses a decimal number that follows the byte `before`. */
static bool read_number(const char **at, const char *end, char before, uint32_t *out)
{
    uint64_t n = 0;
    const char *from = *at + 1;
    if (*at == end || **at != before) return false;
    for (*at = from; *at < end && **at >= '0' && **at <= '9' && *at - from < 10; ++*at)
        n = 10 * n + (uint64_t)(**at - '0');
    *out = (uint32_t)n;
    return *at > from && n < UINT32_MAX;
}

static int take_member(sherd__rosters *r, const char *at, const char *end)
{
    uint8_t key[SHERD__ROSTER_KEY];
    if (at == end || *at != ' ' || end - at != HEX + 1 || !read_key(at + 1, end, key) ||
        sherd__index_find(&r->members, key))
        return SHERD_EFORMAT;
    return sherd__index_add(&r->members, key) ? SHERD_OK : SHERD_ENOMEM;
}

static int take_set(sherd__rosters *r, const char *at, const char *end)
{
    sherd__roster s = { 0 };
    uint32_t number, last = 0;
    if (!read_number(&at, end, ' ', &number) || number != sherd__rosters_len(r))
        return SHERD_EFORMAT;
    for (; at < end; last = s.spans[s.spans_len++].last) {
        span *p = &s.spans[s.spans_len];
        if (s.spans_len == SHERD__ROSTER_MOST || !read_number(&at, end, ' ', &p->first) ||
            !read_number(&at, end, '-', &p->last) || p->last < p->first ||
            p->last >= members_len(r) || (s.spans_len > 0 && p->first <= last + 1) ||
            p->last - p->first >= SHERD__ROSTER_MOST - s.nodes)
            return SHERD_EFORMAT;
        s.nodes += p->last - p->first + 1;
    }
    if (s.nodes == 0) return SHERD_EFORMAT;
    seal(r, &s);
    return add(r, &s);
}

static int take_keys(sherd__rosters *r, const char *at, const char *end)
{
    uint8_t keys[SHERD__ROSTER_MOST][SHERD__ROSTER_KEY];
    sherd__roster s;
    uint32_t number, nodes = 0;
    if (!read_number(&at, end, ' ', &number) || number != sherd__rosters_len(r))
        return SHERD_EFORMAT;
    for (; at < end; at += HEX + 1, nodes++)
        if (*at != ' ' || nodes == SHERD__ROSTER_MOST || !read_key(at + 1, end, keys[nodes]))
            return SHERD_EFORMAT;
    if (sherd__rosters_find(r, (const uint8_t(*)[SHERD__ROSTER_KEY])keys, nodes, &s))
        return SHERD_EFORMAT;
    return add(r, &s);
}

int sherd__rosters_take(sherd__rosters *r, const char *at, const char *end)
{
    if (!strncmp(at, "member ", 7)) return take_member(r, at + 6, end);
    if (!strncmp(at, "set ", 4)) return take_set(r, at + 3, end);
    if (!strncmp(at, "roster ", 7)) return take_keys(r, at + 6, end);
    return SHERD_EUNSUPPORTED;
}
