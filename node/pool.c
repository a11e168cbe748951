/*
 * Sizes are rounded up to eighths of a power of two, at least 64 bytes, so that a kept buffer fits
 * every later request of its class and at most an eighth is wasted. A freed buffer is wiped before
 * it enters a list of ready buffers, or enters a list of stale ones that are wiped later; lists are
 * linked through the buffers' first bytes. Buffers are allocated with a 64-byte margin, because
 * core/alloc.h promises malloc's alignment only; the margin holds the block's true start. When room
 * is needed, large kept buffers are freed first: they free the most with one call.
 */
#include "node/pool.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "core/wipe.h"

#define ALIGN 64u
#define CLASSES (64u * 8u)
#define AT_ONCE 4096u     /* bytes wiped as they are given back: a turn may free 16,384 buffers */
#define BUFFER_COST 4096u /* what a stale buffer counts in a slice in addition to its bytes */
#define PAGE 4096u
#define PIECES_MOST 16384u                /* buffers; small ones beyond are freed at once */
#define READY_MOST ((uint64_t)256 << 20)  /* the same in bytes, for several clients */
#define SHRINK_TURN ((uint64_t)256 << 20) /* bytes freed for room in a turn, several clients */
#define KEPT_MOST ((uint64_t)64 << 20)    /* larger ones may have untouched pages: they are freed */

typedef struct kept {
    struct kept *next;
    uint64_t wiped; /* of a stale buffer: bytes from here on are not wiped yet; 0: all */
} kept;

typedef struct list {
    kept *head, *tail; /* tail is valid only where head is set */
} list;

struct sherd__pool {
    sherd__pool *of; /* the pool of which this is a share; NULL: it has buffers of its own */
    sherd__pool_stats stats;
    size_t pieces;   /* kept buffers */
    uint64_t shrunk; /* bytes that were freed for room since the last turn */
    bool sole;
    bool dirty;    /* some buffers in lists are not wiped */
    bool trimming; /* stale buffers go to the system */
    list lists[CLASSES];
    list stale[CLASSES];
    void (*later)(void *ctx);
    void *later_ctx;
    bool (*relieve)(void *ctx, const sherd__pool *asks);
    void *relieve_ctx;
    bool (*take_back)(void *ctx);
    void *take_back_ctx;
};

/* Returns the class of a size: position of its top bit, and the three bits below it, rounded up. */
static unsigned class_of(uint64_t len, uint64_t *rounded)
{
    if (len < ALIGN) len = ALIGN;
    unsigned top = 63u - (unsigned)__builtin_clzll(len);
    uint64_t step = UINT64_C(1) << (top - 3);
    uint64_t up = (len + step - 1) & ~(step - 1);
    top = 63u - (unsigned)__builtin_clzll(up);
    *rounded = up;
    return top * 8 + (unsigned)(up >> (top - 3) & 7);
}

static void *carve(uint64_t size)
{
    uint8_t *start = sherd__alloc_large(size + ALIGN + sizeof(void *));
    if (!start) return NULL;
    uintptr_t at = ((uintptr_t)start + sizeof(void *) + ALIGN - 1) & ~(uintptr_t)(ALIGN - 1);
    uint8_t *bytes = start + (at - (uintptr_t)start);
    memcpy(bytes - sizeof start, &start, sizeof start);
    return bytes;
}

static void uncarve(void *bytes)
{
    uint8_t *start;
    memcpy(&start, (uint8_t *)bytes - sizeof start, sizeof start);
    sherd__free(start);
}

static uint64_t class_size(unsigned class)
{
    return (UINT64_C(8) + (class & 7)) << (class / 8 - 3);
}

static void push(list *l, kept *k)
{
    k->next = l->head;
    if (!l->head) l->tail = k;
    l->head = k;
}

static kept *pop(list *l)
{
    kept *k = l->head;
    l->head = k->next;
    return k;
}

static void free_kept(sherd__pool *p, kept *k, unsigned class)
{
    uncarve(k);
    p->pieces--;
    p->stats.kept -= class_size(class) + SHERD__POOL_OVERHEAD;
}

static void free_stale(sherd__pool *p, unsigned class)
{
    kept *k = pop(&p->stale[class]);
    p->stats.stale -= class_size(class) + SHERD__POOL_OVERHEAD;
    sherd__wipe_pages(k, class_size(class));
    free_kept(p, k, class);
}

/* Frees kept buffers, the largest first, until at least `need` bytes are free or no buffer is kept.
 * With slices and several clients it frees no more than this turn's remaining limit. */
static void shrink(sherd__pool *p, uint64_t need)
{
    const bool turns = p->later && !p->sole;
    const uint64_t before = p->stats.kept, most = turns ? SHRINK_TURN : UINT64_MAX;
    const uint64_t left = most > p->shrunk ? most - p->shrunk : 0;
    const uint64_t want = need < left ? need : left;
    for (unsigned c = CLASSES; c-- > 0;)
        while (p->lists[c].head && before - p->stats.kept < want) {
            kept *k = pop(&p->lists[c]);
            if (p->dirty) sherd__wipe_pages(k, class_size(c));
            free_kept(p, k, c);
        }
    for (unsigned c = CLASSES; c-- > 0;)
        while (p->stale[c].head && before - p->stats.kept < want) free_stale(p, c);
    if (!turns) return;
    p->shrunk += before - p->stats.kept;
    p->later(p->later_ctx); /* the limit starts again in the next turn */
}

int sherd__pool_new(sherd__pool **out, uint64_t budget)
{
    sherd__pool *p = *out = sherd__calloc(1, sizeof *p);
    if (!p) return SHERD_ENOMEM;
    p->stats.budget = budget;
    return SHERD_OK;
}

int sherd__pool_share(sherd__pool **out, sherd__pool *of, uint64_t limit)
{
    int err = sherd__pool_new(out, limit);
    if (!err) (*out)->of = of;
    return err;
}

void sherd__pool_limit(sherd__pool *p, uint64_t limit)
{
    p->stats.budget = limit;
}

void sherd__pool_free(sherd__pool *p)
{
    if (!p) return;
    assert(p->stats.used == 0);
    p->later = NULL;
    if (!p->of) sherd__pool_trim(p);
    sherd__free(p);
}

uint64_t sherd__pool_cost(uint64_t len)
{
    uint64_t rounded;
    if (len > UINT64_MAX / 4) return UINT64_MAX;
    class_of(len, &rounded);
    return rounded + SHERD__POOL_OVERHEAD;
}

static bool refuse(sherd__pool *p)
{
    p->stats.refused++;
    if (p->of) p->of->stats.refused++;
    return false;
}

static bool within(const sherd__pool *p, uint64_t used, uint64_t len)
{
    return used <= p->stats.budget && len <= p->stats.budget - used;
}

/* Makes room for len bytes: takes back buffers that p has lent, and frees kept ones. */
static bool make_room(sherd__pool *p, uint64_t len)
{
    const sherd__pool_stats *s = &p->stats;
    while (!within(p, s->used, len))
        if (!within(p, s->used - s->lent, len) || !p->take_back || !p->take_back(p->take_back_ctx))
            return false;
    if (p->of) return true;
    uint64_t room = s->budget - s->used - s->kept;
    if (len > room) shrink(p, len - room);
    return within(p, s->used + s->kept, len);
}

static void count(sherd__pool_stats *s, uint64_t len)
{
    s->used += len;
    if (s->used > s->peak) s->peak = s->used;
}

bool sherd__pool_reserve(sherd__pool *p, uint64_t len)
{
    if (!make_room(p, len)) return refuse(p);
    if (p->of && !sherd__pool_reserve(p->of, len)) return false;
    count(&p->stats, len);
    return true;
}

void sherd__pool_unreserve(sherd__pool *p, uint64_t len)
{
    assert(len <= p->stats.used);
    p->stats.used -= len;
    if (p->of) sherd__pool_unreserve(p->of, len);
}

static bool take(void *pool, uint64_t len)
{
    return sherd__pool_reserve(pool, len);
}

static void give(void *pool, uint64_t len)
{
    sherd__pool_unreserve(pool, len);
}

sherd__budget sherd__pool_budget(sherd__pool *p)
{
    return (sherd__budget){ take, give, p };
}

void sherd__pool_relief(sherd__pool *p, bool (*relieve)(void *ctx, const sherd__pool *asks),
                        void *ctx)
{
    p->relieve = relieve;
    p->relieve_ctx = ctx;
}

bool sherd__pool_relieve(sherd__pool *p)
{
    const sherd__pool *top = p->of ? p->of : p;
    return top->relieve && top->relieve(top->relieve_ctx, p);
}

uint8_t *sherd__pool_get(sherd__pool *p, uint64_t len)
{
    uint64_t cost = sherd__pool_cost(len), rounded;
    uint8_t *bytes = NULL;
    if (cost == UINT64_MAX) {
        p->stats.refused++;
        return NULL;
    }
    if (p->of) {
        if (!make_room(p, cost)) refuse(p);
        else if ((bytes = sherd__pool_get(p->of, len))) count(&p->stats, cost);
        return bytes;
    }
    list *ready = &p->lists[class_of(len, &rounded)];
    kept *k = ready->head ? pop(ready) : NULL;
    if (k) { /* leaves `kept` before it enters `used`, so that no room has to be made for it */
        p->pieces--;
        p->stats.kept -= cost;
        *k = (kept){ .next = NULL };
    }
    if (!sherd__pool_reserve(p, cost)) {
        if (k && p->dirty) sherd__wipe_pages(k, rounded);
        if (k) uncarve(k);
        return NULL;
    }
    if (!k) k = carve(rounded);
    if (!k) sherd__pool_unreserve(p, cost);
    return (uint8_t *)k;
}

void sherd__pool_give(sherd__pool *p, uint8_t *bytes, uint64_t len)
{
    if (!bytes) return;
    uint64_t cost = sherd__pool_cost(len), rounded;
    unsigned class = class_of(len, &rounded);
    assert(cost <= p->stats.used);
    if (p->of) {
        p->stats.used -= cost;
        sherd__pool_give(p->of, bytes, len);
        return;
    }
    kept *k = (kept *)(void *)bytes;
    p->stats.used -= cost;
    p->stats.kept += cost;
    p->pieces++;
    if (p->later && !p->sole && rounded > AT_ONCE) {
        k->wiped = 0;
        p->stats.stale += cost;
        push(&p->stale[class], k);
        p->later(p->later_ctx);
        return;
    }
    bool goes = p->pieces > PIECES_MOST && rounded <= AT_ONCE;
    if (goes || !p->sole) sherd__wipe(bytes, rounded); /* also where a sole client gives it back */
    else p->dirty = true;
    k->wiped = 0;
    if (goes) free_kept(p, k, class);
    else push(&p->lists[class], k);
}

static bool can_lend(const sherd__pool *p, uint64_t cost)
{
    uint64_t spare = p->stats.budget / 8;
    return cost < UINT64_MAX - spare && within(p, p->stats.used, cost + spare);
}

/* Takes nothing back: the caller may be using what was lent. */
uint8_t *sherd__pool_lend(sherd__pool *p, uint64_t len)
{
    uint64_t cost = sherd__pool_cost(len);
    bool room = can_lend(p, cost) && (!p->of || can_lend(p->of, cost));
    uint8_t *bytes = room ? sherd__pool_get(p, len) : NULL;
    if (!bytes) return NULL;
    p->stats.lent += cost;
    if (p->of) p->of->stats.lent += cost;
    return bytes;
}

void sherd__pool_take_back(sherd__pool *p, uint8_t *bytes, uint64_t len)
{
    uint64_t cost = sherd__pool_cost(len);
    assert(cost <= p->stats.lent);
    p->stats.lent -= cost;
    if (p->of) p->of->stats.lent -= cost;
    sherd__pool_give(p, bytes, len);
}

void sherd__pool_lender(sherd__pool *p, bool (*take_back)(void *ctx), void *ctx)
{
    p->take_back = take_back;
    p->take_back_ctx = ctx;
}

void sherd__pool_slices(sherd__pool *p, void (*later)(void *ctx), void *ctx)
{
    p->later = later;
    p->later_ctx = ctx;
}

/* Makes ready buffers stale: from now on they are wiped before they are handed out. */
static void set_aside(sherd__pool *p)
{
    for (unsigned c = 0; c < CLASSES; c++) {
        if (!p->lists[c].head) continue;
        p->lists[c].tail->next = p->stale[c].head;
        if (!p->stale[c].head) p->stale[c].tail = p->lists[c].tail;
        p->stale[c].head = p->lists[c].head;
        p->lists[c].head = NULL;
    }
    p->stats.stale = p->stats.kept;
    p->dirty = false;
    if (p->stats.stale) p->later(p->later_ctx);
}

/* Wipes part of the first stale buffer of a class. Returns the bytes that this counts. */
static uint64_t clean_one(sherd__pool *p, unsigned class, uint64_t most)
{
    bool goes = p->trimming || class_size(class) > KEPT_MOST || p->pieces > PIECES_MOST ||
                p->stats.kept - p->stats.stale > READY_MOST;
    kept *k = p->stale[class].head;
    uint64_t from = k->wiped ? k->wiped : sizeof *k, rest = class_size(class) - from;
    uint64_t n = rest < most ? rest : most, over = ((uintptr_t)k + from + n) & (PAGE - 1);
    if (n < rest && over < n) n -= over; /* so that no page is wiped in two parts */
    if (goes) sherd__wipe_pages((uint8_t *)k + from, n);
    else sherd__wipe((uint8_t *)k + from, n);
    k->wiped = from + n;
    if (n < rest) return most;
    p->stats.stale -= class_size(class) + SHERD__POOL_OVERHEAD;
    k = pop(&p->stale[class]);
    k->wiped = 0;
    if (goes) free_kept(p, k, class);
    else push(&p->lists[class], k);
    return n + BUFFER_COST;
}

bool sherd__pool_clean(sherd__pool *p, uint64_t most)
{
    p->shrunk = 0;
    for (unsigned c = 0; c < CLASSES && p->stats.stale; c++)
        while (p->stale[c].head) {
            if (most == 0) return true;
            uint64_t n = clean_one(p, c, most);
            most -= n < most ? n : most;
        }
    return false;
}

void sherd__pool_sole(sherd__pool *p, bool sole)
{
    if (p->sole && !sole && p->later) set_aside(p);
    else if (p->sole && !sole) sherd__pool_trim(p);
    if (sole) p->trimming = false;
    p->sole = sole;
}

void sherd__pool_trim(sherd__pool *p)
{
    if (p->later) {
        p->trimming = true;
        set_aside(p);
        return;
    }
    shrink(p, UINT64_MAX);
    p->dirty = false;
}

const sherd__pool_stats *sherd__pool_stats_of(const sherd__pool *p)
{
    return &p->stats;
}
