/*
 * Two hash tables with chained buckets: one of items, one of jobs. Both grow and shrink by powers
 * of two, between an eighth of an item and one item per bucket; a table that cannot grow gets
 * longer chains. A job that is given up is removed from the table of jobs at once, so that its name
 * can be reused. Its items stay in the table of items, and look-ups skip them.
 */
#include "core/grouped.h"

#include <assert.h>
#include <sodium.h>
#include <string.h>

#include "core/alloc.h"

_Static_assert(sizeof(sherd__table_key) == crypto_shorthash_KEYBYTES, "SipHash's key");

enum { CAP_FIRST = 16 };

typedef struct sherd__grouped_job {
    sherd__chained chained;                    /* must be the first member */
    struct sherd__grouped_job *before, *after; /* list of jobs given up */
    sherd__grouped_item *first;
    uint64_t job;
    size_t len;
    bool given_up;
} group;

void sherd__table_key_draw(sherd__table_key *key, const sherd__entropy *entropy)
{
    entropy->fill(entropy->ctx, key->bytes, sizeof key->bytes);
}

bool sherd__budget_take(const sherd__budget *b, uint64_t len)
{
    return !b->take || b->take(b->ctx, len);
}

void sherd__budget_give(const sherd__budget *b, uint64_t len)
{
    if (b->give) b->give(b->ctx, len);
}

static uint64_t hash_of(const sherd__grouped *g, uint64_t job, uint64_t number)
{
    const uint64_t name[2] = { job, number };
    uint64_t hash;
    crypto_shorthash((unsigned char *)&hash, (const unsigned char *)name, sizeof name,
                     g->key.bytes);
    return hash;
}

static sherd__chained **bucket_of(const sherd__buckets *b, uint64_t hash)
{
    return &b->at[hash & (b->cap - 1)];
}

static void put_in(sherd__buckets *b, sherd__chained *it)
{
    sherd__chained **at = bucket_of(b, it->hash);
    it->chain = *at;
    *at = it;
}

static void take_out(sherd__buckets *b, const sherd__chained *it)
{
    sherd__chained **at = bucket_of(b, it->hash);
    while (*at != it) at = &(*at)->chain;
    *at = it->chain;
}

/* Changes the number of buckets. Returns false and changes nothing where there is no memory. */
static bool resize(const sherd__grouped *g, sherd__buckets *b, size_t cap)
{
    if (!sherd__budget_take(&g->budget, cap * sizeof *b->at)) return false;
    sherd__buckets to = { cap ? sherd__calloc(cap, sizeof *to.at) : NULL, cap };
    if (cap && !to.at) {
        sherd__budget_give(&g->budget, cap * sizeof *b->at);
        return false;
    }
    for (size_t i = 0; i < b->cap; i++)
        for (sherd__chained *it = b->at[i], *next; it; it = next) {
            next = it->chain;
            put_in(&to, it);
        }
    sherd__budget_give(&g->budget, b->cap * sizeof *b->at);
    sherd__free(b->at);
    *b = to;
    return true;
}

/* Returns whether b has room for one more entry than `len`. */
static bool grow(const sherd__grouped *g, sherd__buckets *b, size_t len)
{
    return len < b->cap || resize(g, b, b->cap ? 2 * b->cap : CAP_FIRST) || b->cap;
}

static void shrink(const sherd__grouped *g, sherd__buckets *b, size_t len)
{
    if (len == 0) (void)resize(g, b, 0);
    else if (b->cap > CAP_FIRST && len < b->cap / 8) (void)resize(g, b, b->cap / 4);
}

void sherd__grouped_fini(sherd__grouped *g)
{
    assert(g->all == 0);
    (void)resize(g, &g->items, 0);
    (void)resize(g, &g->groups, 0);
}

static group *find_group(const sherd__grouped *g, uint64_t job, uint64_t hash)
{
    if (g->groups.cap == 0) return NULL;
    group *it = (group *)*bucket_of(&g->groups, hash);
    while (it && it->job != job) it = (group *)it->chained.chain;
    return it;
}

static group *make_group(sherd__grouped *g, uint64_t job, uint64_t hash)
{
    if (!grow(g, &g->groups, g->groups_len) || !sherd__budget_take(&g->budget, sizeof(group)))
        return NULL;
    group *it = sherd__alloc(sizeof *it);
    if (!it) {
        sherd__budget_give(&g->budget, sizeof(group));
        return NULL;
    }
    *it = (group){ .job = job, .chained = { .hash = hash } };
    put_in(&g->groups, &it->chained);
    g->groups_len++;
    return it;
}

/* Advances to the first job of a table in which all jobs are given up. */
static void find_from(sherd__grouped *g)
{
    while (g->over && g->groups_len && !g->groups.at[g->from]) g->from++;
}

static void unlist_group(sherd__grouped *g, group *it)
{
    size_t cap = g->groups.cap;
    take_out(&g->groups, &it->chained);
    shrink(g, &g->groups, --g->groups_len);
    if (g->groups.cap != cap) g->from = 0;
    find_from(g);
}

static void free_group(sherd__grouped *g, group *it)
{
    if (!it->given_up) {
        unlist_group(g, it);
    } else {
        *(it->before ? &it->before->after : &g->given_up) = it->after;
        if (it->after) it->after->before = it->before;
    }
    sherd__free(it);
    sherd__budget_give(&g->budget, sizeof(group));
}

int sherd__grouped_add(sherd__grouped *g, sherd__grouped_item *item, uint64_t job, uint64_t number)
{
    uint64_t hash = hash_of(g, job, UINT64_MAX);
    if (!grow(g, &g->items, g->all)) return SHERD_ENOMEM;
    group *of = find_group(g, job, hash);
    if (!of && !(of = make_group(g, job, hash))) return SHERD_ENOMEM;
    *item = (sherd__grouped_item){ .chained = { .hash = hash_of(g, job, number) },
                                   .next = of->first,
                                   .group = of,
                                   .number = number };
    put_in(&g->items, &item->chained);
    if (of->first) of->first->prev = item;
    of->first = item;
    of->len++;
    g->len++;
    g->all++;
    return SHERD_OK;
}

sherd__grouped_item *sherd__grouped_find(const sherd__grouped *g, uint64_t job, uint64_t number)
{
    if (g->len == 0) return NULL;
    uint64_t hash = hash_of(g, job, number);
    sherd__grouped_item *it = (sherd__grouped_item *)*bucket_of(&g->items, hash);
    while (it && (it->chained.hash != hash || it->number != number || it->group->job != job ||
                  it->group->given_up))
        it = (sherd__grouped_item *)it->chained.chain;
    return it;
}

void sherd__grouped_remove(sherd__grouped *g, sherd__grouped_item *item)
{
    group *of = item->group;
    take_out(&g->items, &item->chained);
    *(item->prev ? &item->prev->next : &of->first) = item->next;
    if (item->next) item->next->prev = item->prev;
    if (!of->given_up && !g->over) g->len--;
    if (--of->len == 0) free_group(g, of);
    shrink(g, &g->items, --g->all);
}

sherd__grouped_item *sherd__grouped_first(const sherd__grouped *g, uint64_t job)
{
    if (g->len == 0) return NULL;
    const group *of = find_group(g, job, hash_of(g, job, UINT64_MAX));
    return of ? of->first : NULL;
}

size_t sherd__grouped_give_up(sherd__grouped *g, uint64_t job)
{
    group *of = g->len ? find_group(g, job, hash_of(g, job, UINT64_MAX)) : NULL;
    if (!of) return 0;
    unlist_group(g, of);
    of->given_up = true;
    of->before = NULL;
    of->after = g->given_up;
    if (of->after) of->after->before = of;
    g->given_up = of;
    g->len -= of->len;
    return of->len;
}

sherd__grouped_item *sherd__grouped_given_up(const sherd__grouped *g)
{
    if (g->given_up) return g->given_up->first;
    return g->over && g->groups_len ? ((const group *)g->groups.at[g->from])->first : NULL;
}

void sherd__grouped_give_up_all(sherd__grouped *g)
{
    g->over = true;
    g->len = 0;
    find_from(g);
}

bool sherd__grouped_is_given_up(const sherd__grouped *g, const sherd__grouped_item *item)
{
    return g->over || item->group->given_up;
}
