/*
 * Keeps a list of disjoint, ascending ranges of entries per side, domain and part. Ranges are used
 * instead of a set of tiles because the next job may divide the same part into other tiles. Tiles
 * are sent in ascending order, so a list rarely has more than two ranges.
 */
#include "scheduler/plan/exposure.h"

#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"

typedef struct stretch {
    uint64_t from, to;
} stretch;

typedef struct shown {
    stretch *list;
    size_t len, room;
} shown;

struct sherd__exposure_account {
    uint32_t domains, parts;
    shown *shown;    /* by side, domain, part */
    uint64_t *seen;  /* by side, domain */
    double *planned; /* by side, domain */
};

static shown *shown_of(const sherd__exposure_account *a, unsigned side, uint32_t domain,
                       uint32_t part)
{
    return &a->shown[((size_t)side * a->domains + domain) * a->parts + part];
}

int sherd__exposure_account_new(sherd__exposure_account **out, uint32_t domains, uint32_t parts)
{
    size_t sides = SHERD__SIDES * (size_t)domains, all;
    *out = NULL;
    if (!sherd__mul(sides, parts, &all)) return SHERD_ENOMEM;
    sherd__exposure_account *a = sherd__calloc(1, sizeof *a);
    if (!a) return SHERD_ENOMEM;
    a->domains = domains;
    a->parts = parts;
    a->shown = sherd__calloc(all, sizeof *a->shown);
    a->seen = sherd__calloc(sides, sizeof *a->seen);
    a->planned = sherd__calloc(sides, sizeof *a->planned);
    if (!a->shown || !a->seen || !a->planned) {
        sherd__exposure_account_free(a);
        return SHERD_ENOMEM;
    }
    *out = a;
    return SHERD_OK;
}

void sherd__exposure_account_free(sherd__exposure_account *a)
{
    if (!a) return;
    size_t all = SHERD__SIDES * (size_t)a->domains * a->parts;
    for (size_t i = 0; a->shown && i < all; i++) sherd__free(a->shown[i].list);
    sherd__free(a->shown);
    sherd__free(a->seen);
    sherd__free(a->planned);
    sherd__free(a);
}

void sherd__exposure_account_plan(sherd__exposure_account *a, unsigned side, uint32_t domain,
                                  double share)
{
    a->planned[(size_t)side * a->domains + domain] = share;
}

void sherd__exposure_account_unplan(sherd__exposure_account *a, unsigned side)
{
    for (uint32_t d = 0; d < a->domains; d++) sherd__exposure_account_plan(a, side, d, 0);
}

double sherd__exposure_account_planned(const sherd__exposure_account *a, uint32_t domain)
{
    double share = a->planned[domain] + a->planned[(size_t)a->domains + domain];
    return share < 1 ? share : 1;
}

uint64_t sherd__exposure_account_unseen(const sherd__exposure_account *a, unsigned side,
                                        uint32_t domain, uint32_t part, uint64_t from, uint64_t to)
{
    const shown *s = shown_of(a, side, domain, part);
    uint64_t left = to - from;
    for (size_t i = 0; i < s->len; i++) {
        uint64_t lo = s->list[i].from > from ? s->list[i].from : from;
        uint64_t hi = s->list[i].to < to ? s->list[i].to : to;
        if (lo < hi) left -= hi - lo;
    }
    return left;
}

int sherd__exposure_account_show(sherd__exposure_account *a, unsigned side, uint32_t domain,
                                 uint32_t part, uint64_t from, uint64_t to)
{
    uint64_t fresh = sherd__exposure_account_unseen(a, side, domain, part, from, to);
    if (fresh == 0) return SHERD_OK;
    shown *s = shown_of(a, side, domain, part);
    if (s->len == s->room) {
        size_t room = s->room ? 2 * s->room : 2;
        stretch *list = sherd__calloc(room, sizeof *list);
        if (!list) return SHERD_ENOMEM;
        if (s->len) memcpy(list, s->list, s->len * sizeof *list);
        sherd__free(s->list);
        s->list = list;
        s->room = room;
    }
    /* Merges all ranges that touch the new one; ranges before and after them stay. */
    size_t first = 0, end;
    while (first < s->len && s->list[first].to < from) first++;
    for (end = first; end < s->len && s->list[end].from <= to; end++) {
        if (s->list[end].from < from) from = s->list[end].from;
        if (s->list[end].to > to) to = s->list[end].to;
    }
    memmove(&s->list[first + 1], &s->list[end], (s->len - end) * sizeof *s->list);
    s->list[first] = (stretch){ from, to };
    s->len = s->len - (end - first) + 1;
    a->seen[(size_t)side * a->domains + domain] += fresh;
    return SHERD_OK;
}

uint64_t sherd__exposure_account_seen(const sherd__exposure_account *a, uint32_t domain)
{
    return a->seen[domain] + a->seen[(size_t)a->domains + domain];
}
