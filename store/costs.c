/*
 * Sums are integers in units of 2^-64, so that subtraction is exact. A file of many charges is
 * therefore processed in one sweep by position: charges that start at a position are added and
 * those that end there are subtracted, however many positions each covers.
 */
#include "store/costs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

#define LIST_MAX ((size_t)1 << 40) /* no limit: memory is smaller */

#define RHO_MAX 4294967296.0 /* a cost of this or more counts as unbounded */

__extension__ typedef unsigned __int128 wide;

/* The cost from position `from` to the next step. */
typedef struct step {
    uint64_t from, boundless; /* boundless: number of charges without noise */
    wide rho;                 /* sum of the other charges */
} step;

typedef struct range {
    uint64_t first, rows;
    double rho;
} range;

int sherd__costs_init(sherd__costs *c)
{
    const step first = { 0 };
    sherd__buf_init(&c->steps, LIST_MAX, 0);
    sherd__buf_init(&c->waiting, LIST_MAX, 0);
    return sherd__buf_append(&c->steps, &first, sizeof first);
}

void sherd__costs_fini(sherd__costs *c)
{
    sherd__buf_fini(&c->steps);
    sherd__buf_fini(&c->waiting);
}

static step *steps_of(const sherd__costs *c, size_t *len)
{
    *len = c->steps.len / sizeof(step);
    return (step *)(void *)c->steps.data;
}

/* Converts a cost, rounded up. Values below RHO_MAX can be added 2^32 times without overflow. */
static step cost_of(double rho)
{
    return rho < RHO_MAX ? (step){ .rho = (wide)ceil(ldexp(rho, 64)) } : (step){ .boundless = 1 };
}

static void charge(step *s, step cost)
{
    s->boundless += cost.boundless;
    s->rho += cost.rho;
}

static void take_back(step *s, step cost)
{
    s->boundless -= cost.boundless;
    s->rho -= cost.rho;
}

/* Returns the last step that starts at `place` or before it. */
static size_t find_step(const sherd__costs *c, uint64_t place)
{
    size_t low = 0, high;
    const step *s = steps_of(c, &high);
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (s[middle].from <= place) low = middle;
        else high = middle;
    }
    return low;
}

/* Ensures that a step starts at `place`. */
static int split(sherd__costs *c, uint64_t place)
{
    size_t len, at = find_step(c, place);
    step *s = steps_of(c, &len);
    if (s[at].from == place) return SHERD_OK;
    step fresh = s[at];
    fresh.from = place;
    if (sherd__buf_append(&c->steps, &fresh, sizeof fresh)) return SHERD_ENOMEM;
    s = steps_of(c, &len);
    memmove(s + at + 2, s + at + 1, (len - at - 2) * sizeof *s);
    s[at + 1] = fresh;
    return SHERD_OK;
}

int sherd__costs_reserve(sherd__costs *c)
{
    uint8_t *at;
    return sherd__buf_reserve(&c->steps, 2 * sizeof(step), &at) ? SHERD_ENOMEM : SHERD_OK;
}

int sherd__costs_add(sherd__costs *c, uint64_t first, uint64_t rows, double rho)
{
    const step cost = cost_of(rho);
    size_t len;
    int err = split(c, first);
    if (!err) err = split(c, first + rows);
    if (err) return err;
    step *s = steps_of(c, &len);
    for (size_t i = find_step(c, first); i < len && s[i].from < first + rows; i++)
        charge(&s[i], cost);
    return SHERD_OK;
}

double sherd__costs_most(const sherd__costs *c, uint64_t first, uint64_t rows)
{
    size_t len;
    const step *s = steps_of(c, &len);
    wide most = 0;
    for (size_t i = find_step(c, first); i < len && s[i].from < first + rows; i++) {
        if (s[i].boundless) return INFINITY;
        most = s[i].rho > most ? s[i].rho : most;
    }
    return ldexp((double)most, -64);
}

/* ---- batches --------------------------------------------------------------------------------- */

int sherd__costs_wait(sherd__costs *c, uint64_t first, uint64_t rows, double rho)
{
    const range r = { first, rows, rho };
    return sherd__buf_append(&c->waiting, &r, sizeof r) ? SHERD_ENOMEM : SHERD_OK;
}

/* The start or the end of a range. */
typedef struct edge {
    uint64_t place, range; /* range: twice its index, plus 1 for the end */
} edge;

static int by_place(const void *a, const void *b)
{
    const edge *s = a, *t = b;
    return (s->place > t->place) - (s->place < t->place);
}

/* Builds the steps from edges in ascending order of position, and visits each edge once. */
static int sweep(sherd__costs *c, const edge *e, size_t n)
{
    const range *r = (const range *)(const void *)c->waiting.data;
    step now = { 0 };
    int err = SHERD_OK;
    c->steps.len = 0;
    for (size_t i = 0; i < n && !err; i++) {
        if (e[i].place != now.from) err = sherd__buf_append(&c->steps, &now, sizeof now);
        now.from = e[i].place;
        if (e[i].range % 2) take_back(&now, cost_of(r[e[i].range / 2].rho));
        else charge(&now, cost_of(r[e[i].range / 2].rho));
    }
    return err ? err : sherd__buf_append(&c->steps, &now, sizeof now);
}

int sherd__costs_settle(sherd__costs *c)
{
    const range *r = (const range *)(const void *)c->waiting.data;
    size_t n = c->waiting.len / sizeof *r;
    edge *e = sherd__calloc(2 * n, sizeof *e);
    int err = e ? SHERD_OK : SHERD_ENOMEM;
    for (size_t i = 0; i < n && !err; i++) {
        e[2 * i] = (edge){ r[i].first, 2 * i };
        e[2 * i + 1] = (edge){ r[i].first + r[i].rows, 2 * i + 1 };
    }
    if (!err) qsort(e, 2 * n, sizeof *e, by_place);
    if (!err) err = sweep(c, e, 2 * n);
    sherd__free(e);
    sherd__buf_fini(&c->waiting);
    return err ? SHERD_ENOMEM : SHERD_OK;
}
