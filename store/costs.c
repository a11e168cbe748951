/*
 * To put a step into the array moves those behind it. A file of many charges would be read in
 * quadratic time like that: so all places where its steps begin are sorted first.
 */
#include "store/costs.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

#define LIST_MAX ((size_t)1 << 31)

/* From place `from` on, to the next step. */
typedef struct step {
    uint64_t from;
    double rho;
} step;

typedef struct range {
    uint64_t first, rows;
    double rho;
} range;

int sherd__costs_init(sherd__costs *c)
{
    const step first = { 0, 0 };
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

/* The last step that begins at `place` or before it. */
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

/* A step that begins at `place`. */
static int split(sherd__costs *c, uint64_t place)
{
    size_t len, at = find_step(c, place);
    step *s = steps_of(c, &len);
    if (s[at].from == place) return SHERD_OK;
    step fresh = { place, s[at].rho };
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
    size_t len;
    int err = split(c, first);
    if (!err) err = split(c, first + rows);
    if (err) return err;
    step *s = steps_of(c, &len);
    for (size_t i = find_step(c, first); i < len && s[i].from < first + rows; i++) s[i].rho += rho;
    return SHERD_OK;
}

double sherd__costs_most(const sherd__costs *c, uint64_t first, uint64_t rows)
{
    size_t len;
    const step *s = steps_of(c, &len);
    double most = 0;
    for (size_t i = find_step(c, first); i < len && s[i].from < first + rows; i++)
        most = s[i].rho > most ? s[i].rho : most;
    return most;
}

/* ---- many at once ---------------------------------------------------------------------------- */

int sherd__costs_wait(sherd__costs *c, uint64_t first, uint64_t rows, double rho)
{
    const range r = { first, rows, rho };
    return sherd__buf_append(&c->waiting, &r, sizeof r) ? SHERD_ENOMEM : SHERD_OK;
}

static int by_place(const void *a, const void *b)
{
    const step *s = a, *t = b;
    return (s->from > t->from) - (s->from < t->from);
}

/* Steps that begin where the ranges do, and where they end; nothing is charged. */
static int cut(sherd__costs *c, const range *r, size_t n)
{
    step *s = sherd__calloc(2 * n + 1, sizeof *s);
    size_t len = 0;
    if (!s) return SHERD_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        s[2 * i + 1].from = r[i].first;
        s[2 * i + 2].from = r[i].first + r[i].rows;
    }
    qsort(s, 2 * n + 1, sizeof *s, by_place);
    for (size_t i = 1; i <= 2 * n; i++)
        if (s[i].from != s[len].from) s[++len] = s[i];
    c->steps.len = 0;
    int err = sherd__buf_append(&c->steps, s, (len + 1) * sizeof *s);
    sherd__free(s);
    return err ? SHERD_ENOMEM : SHERD_OK;
}

int sherd__costs_settle(sherd__costs *c)
{
    const range *r = (const range *)(const void *)c->waiting.data;
    size_t n = c->waiting.len / sizeof *r;
    int err = n ? cut(c, r, n) : SHERD_OK;
    for (size_t i = 0; i < n && !err; i++)
        err = sherd__costs_add(c, r[i].first, r[i].rows, r[i].rho);
    sherd__buf_fini(&c->waiting);
    return err;
}
