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
        f->ln_threshold = NAN;
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
