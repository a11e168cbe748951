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

int sherd__findings_add(sherd__findings *l, const sherd_audit_finding *f)
{
    if (l->len == l->room) {
        size_t room = l->room > 0 ? 2 * l->room : 64;
        sherd_audit_finding *list = sherd__realloc(l->list, room * sizeof *list);
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
    double ln_p;
    size_t index;
} ranked;

static int by_p(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->ln_p != y->ln_p) return x->ln_p < y->ln_p ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

int sherd__findings_judge(sherd__findings *l, double family)
{
    ranked *order = sherd__alloc(l->len * sizeof *order);
    if (!order) return SHERD_ENOMEM;
    size_t tests = 0;
    for (size_t i = 0; i < l->len; i++) {
        sherd_audit_finding *f = &l->list[i];
        if (isnan(f->ln_p)) continue;
        if (f->control) {
            f->ln_threshold = log(SHERD__AUDIT_CONTROL);
            f->flagged = f->ln_p < f->ln_threshold;
        } else {
            order[tests++] = (ranked){ f->ln_p, i };
        }
    }
    qsort(order, tests, sizeof *order, by_p);
    bool open = true; /* the first p-value above its threshold ends the procedure for all that
                         follow */
    for (size_t i = 0; i < tests; i++) {
        sherd_audit_finding *f = &l->list[order[i].index];
        f->ln_threshold = log(family / (double)(tests - i));
        open = open && f->ln_p <= f->ln_threshold;
        f->flagged = open;
    }
    l->tests = tests;
    sherd__free(order);
    return SHERD_OK;
}

static bool worse(const sherd_audit_finding *a, const sherd_audit_finding *b)
{
    if (isnan(a->ln_p) != isnan(b->ln_p)) return isnan(b->ln_p);
    if (!isnan(a->ln_p)) return a->ln_p < b->ln_p;
    if (a->flagged != b->flagged) return a->flagged;
    return a->value - (isnan(a->chance) ? 0 : a->chance) >
           b->value - (isnan(b->chance) ? 0 : b->chance);
}

static bool together(const sherd_audit_finding *a, const sherd_audit_finding *b)
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
