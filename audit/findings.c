/*
 * The list of findings and the judgement over it. Holm's procedure needs all p-values at once, so
 * attacks only record theirs, and findings are flagged at the end. Controls are not part of the
 * family: they are expected to be found, and would loosen the thresholds of the rest.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "audit/stats.h"
#include "core/alloc.h"

int sherd__findings_add(sherd__findings *l, const sherd__finding *f)
{
    if (l->len == l->room) {
        size_t room = l->room > 0 ? 2 * l->room : 64;
        sherd__finding *list = sherd__realloc(l->list, room * sizeof *list);
        if (!list) return SHERD_ENOMEM;
        l->list = list;
        l->room = room;
    }
    l->list[l->len++] = *f;
    return SHERD_OK;
}

void sherd__findings_fini(sherd__findings *l)
{
    sherd__free(l->list);
    memset(l, 0, sizeof *l);
}

typedef struct ranked {
    double log_p;
    size_t index;
} ranked;

static int by_p(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->log_p != y->log_p) return x->log_p < y->log_p ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

int sherd__findings_judge(sherd__findings *l, double family)
{
    ranked *order = sherd__alloc(l->len * sizeof *order);
    if (!order) return SHERD_ENOMEM;
    size_t tests = 0;
    for (size_t i = 0; i < l->len; i++) {
        sherd__finding *f = &l->list[i];
        if (isnan(f->log_p)) continue;
        if (f->control) {
            f->log_threshold = log(SHERD__AUDIT_CONTROL);
            f->flagged = f->log_p < f->log_threshold;
        } else {
            order[tests++] = (ranked){ f->log_p, i };
        }
    }
    qsort(order, tests, sizeof *order, by_p);
    bool open = true; /* the first p-value above its threshold ends the procedure for all that
                         follow */
    for (size_t i = 0; i < tests; i++) {
        sherd__finding *f = &l->list[order[i].index];
        f->log_threshold = log(family / (double)(tests - i));
        open = open && f->log_p <= f->log_threshold;
        f->flagged = open;
    }
    l->tests = tests;
    sherd__free(order);
    return SHERD_OK;
}

static bool worse(const sherd__finding *a, const sherd__finding *b)
{
    if (isnan(a->log_p) != isnan(b->log_p)) return isnan(b->log_p);
    if (!isnan(a->log_p)) return a->log_p < b->log_p;
    if (a->flagged != b->flagged) return a->flagged;
    return a->value - (isnan(a->chance) ? 0 : a->chance) >
           b->value - (isnan(b->chance) ? 0 : b->chance);
}

static bool together(const sherd__finding *a, const sherd__finding *b)
{
    return a->control == b->control && strcmp(a->test, b->test) == 0 &&
           strcmp(a->statistic, b->statistic) == 0;
}

size_t sherd__findings_worst(const sherd__findings *l, size_t *index, size_t *count, size_t room)
{
    size_t groups = 0;
    for (size_t i = 0; i < l->len; i++) {
        size_t g = 0;
        while (g < groups && !together(&l->list[i], &l->list[index[g]])) g++;
        if (g < groups) {
            count[g]++;
            if (worse(&l->list[i], &l->list[index[g]])) index[g] = i;
        } else if (groups < room) {
            index[groups] = i;
            count[groups++] = 1;
        }
    }
    return groups;
}
