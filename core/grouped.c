/*
 * Chained buckets of items, and of jobs. Both grow and shrink by powers of two, between an eighth
 * and one item a bucket; a table that cannot grow goes on with longer chains. A job that is given
 * up leaves the table of jobs at once, so that its name may come again; its items stay where they
 * are, and look-ups pass them over.
 */
#include "core/grouped.h"

#include <sodium.h>
#include <string.h>

#include "core/alloc.h"

_Static_assert(sizeof(sherd__table_key) == crypto_shorthash_KEYBYTES, "SipHash's key");

enum { CAP_FIRST = 16 };

typedef struct sherd__group {
    struct sherd__group *chain; /* in its bucket; or the next one given up */
    struct sherd__group *before; /* of those given up */
    sherd__grouped_item *first;
    uint64_t job, hash;
    size_t len;
    bool given_up;
} group;

void sherd__table_key_draw(sherd__table_key *key, const sherd_entropy *entropy)
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

/* Another number of buckets: false, and as before, where there is no memory for them. */
static bool resize_items(sherd__grouped *g, size_t cap)
{
    if (!sherd__budget_take(&g->budget, cap * sizeof *g->items)) return false;
    sherd__grouped_item **to = cap ? sherd__calloc(cap, sizeof *to) : NULL;
    if (cap && !to) {
        sherd__budget_give(&g->budget, cap * sizeof *g->items);
        return false;
    }
    for (size_t i = 0; i < g->items_cap; i++)
        for (sherd__grouped_item *it = g->items[i], *next; it; it = next) {
            next = it->chain;
            it->chain = to[it->hash & (cap - 1)];
            to[it->hash & (cap - 1)] = it;
        }
    sherd__budget_give(&g->budget, g->items_cap * sizeof *g->items);
    sherd__free(g->items);
    g->items = to;
    g->items_cap = cap;
    return true;
}

static bool resize_groups(sherd__grouped *g, size_t cap)
{
    if (!sherd__budget_take(&g->budget, cap * sizeof *g->groups)) return false;
    group **to = cap ? sherd__calloc(cap, sizeof *to) : NULL;
    if (cap && !to) {
        sherd__budget_give(&g->budget, cap * sizeof *g->groups);
        return false;
    }
    for (size_t i = 0; i < g->groups_cap; i++)
        for (group *it = g->groups[i], *next; it; it = next) {
            next = it->chain;
            it->chain = to[it->hash & (cap - 1)];
            to[it->hash & (cap - 1)] = it;
        }
    sherd__budget_give(&g->budget, g->groups_cap * sizeof *g->groups);
    sherd__free(g->groups);
    g->groups = to;
    g->groups_cap = cap;
    return true;
}

void sherd__grouped_fini(sherd__grouped *g)
{
    (void)resize_items(g, 0);
    (void)resize_groups(g, 0);
}

static group *find_group(const sherd__grouped *g, uint64_t job, uint64_t hash)
{
    if (g->groups_cap == 0) return NULL;
    group *it = g->groups[hash & (g->groups_cap - 1)];
    while (it && it->job != job) it = it->chain;
    return it;
}

static group *make_group(sherd__grouped *g, uint64_t job, uint64_t hash)
{
    if (g->groups_len >= g->groups_cap &&
        !resize_groups(g, g->groups_cap ? 2 * g->groups_cap : CAP_FIRST) && !g->groups_cap)
        return NULL;
    if (!sherd__budget_take(&g->budget, sizeof(group))) return NULL;
    group *it = sherd__alloc(sizeof *it);
    if (!it) {
        sherd__budget_give(&g->budget, sizeof(group));
        return NULL;
    }
    *it = (group){ .job = job, .hash = hash, .chain = g->groups[hash & (g->groups_cap - 1)] };
    g->groups[hash & (g->groups_cap - 1)] = it;
    g->groups_len++;
    return it;
}

/* Out of its bucket. */
static void unlist_group(sherd__grouped *g, group *it)
{
    group **at = &g->groups[it->hash & (g->groups_cap - 1)];
    while (*at != it) at = &(*at)->chain;
    *at = it->chain;
    g->groups_len--;
    if (g->groups_len == 0) (void)resize_groups(g, 0);
    else if (g->groups_cap > CAP_FIRST && g->groups_len < g->groups_cap / 8)
        (void)resize_groups(g, g->groups_cap / 4);
}

static void free_group(sherd__grouped *g, group *it)
{
    if (!it->given_up) {
        unlist_group(g, it);
    } else {
        *(it->before ? &it->before->chain : &g->given_up) = it->chain;
        if (it->chain) it->chain->before = it->before;
    }
    sherd__free(it);
    sherd__budget_give(&g->budget, sizeof(group));
}

int sherd__grouped_add(sherd__grouped *g, sherd__grouped_item *item, uint64_t job,
                       uint64_t number)
{
    uint64_t hash = hash_of(g, job, UINT64_MAX);
    if (g->all >= g->items_cap &&
        !resize_items(g, g->items_cap ? 2 * g->items_cap : CAP_FIRST) && !g->items_cap)
        return SHERD_ENOMEM;
    group *of = find_group(g, job, hash);
    if (!of && !(of = make_group(g, job, hash))) return SHERD_ENOMEM;
    hash = hash_of(g, job, number);
    sherd__grouped_item **bucket = &g->items[hash & (g->items_cap - 1)];
    *item = (sherd__grouped_item){ .chain = *bucket, .next = of->first, .group = of,
                                   .hash = hash, .number = number };
    if (of->first) of->first->prev = item;
    *bucket = of->first = item;
    of->len++;
    g->len++;
    g->all++;
    return SHERD_OK;
}

sherd__grouped_item *sherd__grouped_find(const sherd__grouped *g, uint64_t job, uint64_t number)
{
    if (g->len == 0) return NULL;
    uint64_t hash = hash_of(g, job, number);
    sherd__grouped_item *it = g->items[hash & (g->items_cap - 1)];
    while (it && (it->hash != hash || it->number != number || it->group->job != job ||
                  it->group->given_up))
        it = it->chain;
    return it;
}

void sherd__grouped_remove(sherd__grouped *g, sherd__grouped_item *item)
{
    group *of = item->group;
    sherd__grouped_item **at = &g->items[item->hash & (g->items_cap - 1)];
    while (*at != item) at = &(*at)->chain;
    *at = item->chain;
    *(item->prev ? &item->prev->next : &of->first) = item->next;
    if (item->next) item->next->prev = item->prev;
    if (!of->given_up) g->len--;
    g->all--;
    if (--of->len == 0) free_group(g, of);
    if (g->all == 0) (void)resize_items(g, 0);
    else if (g->items_cap > CAP_FIRST && g->all < g->items_cap / 8)
        (void)resize_items(g, g->items_cap / 4);
}

sherd__grouped_item *sherd__grouped_first(const sherd__grouped *g, uint64_t job)
{
    if (g->len == 0) return NULL;
    const group *of = find_group(g, job, hash_of(g, job, UINT64_MAX));
    return of ? of->first : NULL;
}

static void put_aside(sherd__grouped *g, group *of)
{
    of->given_up = true;
    of->before = NULL;
    of->chain = g->given_up;
    if (of->chain) of->chain->before = of;
    g->given_up = of;
    g->len -= of->len;
}

size_t sherd__grouped_give_up(sherd__grouped *g, uint64_t job)
{
    group *of = g->len ? find_group(g, job, hash_of(g, job, UINT64_MAX)) : NULL;
    if (!of) return 0;
    unlist_group(g, of);
    put_aside(g, of);
    return of->len;
}

sherd__grouped_item *sherd__grouped_given_up(const sherd__grouped *g)
{
    return g->given_up ? g->given_up->first : NULL;
}

void sherd__grouped_give_up_all(sherd__grouped *g)
{
    for (size_t i = 0; i < g->groups_cap; i++)
        for (group *of; (of = g->groups[i]);) {
            g->groups[i] = of->chain;
            put_aside(g, of);
        }
    g->groups_len = 0;
}

bool sherd__grouped_is_given_up(const sherd__grouped_item *item)
{
    return item->group->given_up;
}
