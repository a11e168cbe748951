/*
 * Tables of a training step. The next table is found by its position, not by its shape, since two
 * layers may have one shape. The comparison with the call is a safeguard: an operation that used
 * the tables of another one would repeat permutations.
 */
#include "scheduler/job/step_tables.h"

#include <assert.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "core/wipe.h"
#include "crypto/perm.h"

void sherd__step_tables_fini(sherd__step_tables *t)
{
    for (size_t i = 0; i < t->len; i++) {
        sherd__step_table *x = &t->at[i];
        if (x->exposures)
            sherd__wipe(x->exposures, (size_t)sherd_meta_columns(&x->op) * sizeof *x->exposures);
        sherd__free(x->exposures);
        sherd__free(x->shown);
    }
    sherd__free(t->at);
    sherd__wipe(t, sizeof *t);
}

void sherd__step_tables_begin(void *tables, uint64_t pass)
{
    sherd__step_tables *t = tables;
    t->pass = pass;
    t->next = 0;
}

bool sherd__step_tables_keep(const sherd__step_tables *t)
{
    return t->next < t->len && t->at[t->next].kept;
}

int sherd__step_tables_next(sherd__step_tables *t, sherd_op kind, size_t columns, size_t length,
                            sherd__step_table **out, sherd_diag *d)
{
    sherd__step_table *x = t->next < t->len ? &t->at[t->next] : NULL;
    if (!x || x->op.kind != kind || columns > sherd_meta_columns(&x->op) || length > x->op.m)
        return sherd__fail(d, SHERD_EINTERNAL, "please report this",
                           "operation %zu of a step is not the one that the metadata have next",
                           t->next + 1);
    t->next++;
    *out = x;
    return SHERD_OK;
}

void sherd__step_table_key(const sherd__step_tables *t, const sherd__step_table *of, uint64_t turn,
                           uint8_t key[32])
{
    sherd__perm_key(key, t->seed, SHERD__PERM_LABEL, of->number, turn);
}

void sherd__step_table_show(sherd__step_table *t, const sherd_report *r)
{
    t->calls += r->nodes > 0;
    for (uint32_t i = 0; i < r->nodes; i++) {
        double *a = &t->shown[i], *b = &t->shown[r->nodes + i];
        if (r->exposed_a[i] > *a) *a = r->exposed_a[i];
        if (r->exposed_b[i] > *b) *b = r->exposed_b[i];
    }
}
