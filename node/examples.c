/* Takes shards from blocks. Everything comes from a peer: numbers of blocks, their shapes, their
 * rows. The loss checks that labels are below the number of outputs when it reads them. */
#include "node/examples.h"

#include "core/diag.h"

int sherd__examples_fit(const sherd__block *xs, const sherd__block *ts,
                        const sherd__examples_rows *what, sherd_diag *d)
{
    const uint64_t first = what->first, rows = what->rows;
    const sherd__fragment_info *x = sherd__fragment_info_of(xs->fragment);
    const sherd__fragment_info *t = sherd__fragment_info_of(ts->fragment);
    if (x->encoding != SHERD__DENSE || x->groups || !sherd_dtype_size((sherd_dtype)x->dtype) ||
        x->cols != what->inputs)
        return sherd__fail(d, SHERD_ESHAPE, NULL, "block %u holds no inputs of %zu numbers",
                           xs->number, what->inputs);
    bool labels = t->dtype == SHERD_U32 && t->cols == 1;
    bool values = t->dtype == SHERD_F64 && t->cols == what->width;
    if (t->encoding != SHERD__DENSE || t->groups || t->rows != x->rows || !(labels || values))
        return sherd__fail(d, SHERD_ESHAPE, NULL, "block %u holds no targets of %llu examples",
                           ts->number, (unsigned long long)x->rows);
    if (rows > x->rows || first > x->rows - rows)
        return sherd__fail(d, SHERD_ESHAPE, NULL, "rows %llu and %llu more of a block of %llu",
                           (unsigned long long)first, (unsigned long long)rows,
                           (unsigned long long)x->rows);
    return SHERD_OK;
}

int sherd__examples_take(sherd__examples *e, const sherd__examples_for *of,
                         const sherd__step_plan *p, uint32_t i, sherd_diag *d)
{
    *e = (sherd__examples){ .what = sherd__step_plan_shard_at(p, i) };
    if (!sherd__plan_shard_valid(&e->what, p->batch))
        return sherd__fail(d, SHERD_EFORMAT, NULL, "shard %u of the plan is invalid", i);
    sherd__block *x, *t;
    int err = sherd__store_need(of->store, of->job, e->what.x, &x, d);
    if (!err) err = sherd__store_need(of->store, of->job, e->what.targets, &t, d);
    if (err) return err;
    sherd__block_hold(e->x = x);
    sherd__block_hold(e->targets = t);
    const sherd__examples_rows rows = { e->what.first, e->what.rows, of->inputs, of->width };
    return sherd__examples_fit(x, t, &rows, d);
}

sherd__shard sherd__examples_shard(const sherd__examples *e)
{
    const sherd__fragment_info *x = sherd__fragment_info_of(e->x->fragment);
    const sherd__fragment_info *t = sherd__fragment_info_of(e->targets->fragment);
    sherd_view all = sherd_view_c(sherd__fragment_bytes(e->x->fragment), (sherd_dtype)x->dtype,
                                  (size_t)x->rows, (size_t)x->cols);
    const void *targets = sherd__fragment_bytes(e->targets->fragment);
    sherd__shard out = { .x = sherd_view_sub(all, (size_t)e->what.first, (size_t)e->what.rows, 0,
                                             all.cols),
                         .targets = { .labels = NULL } };
    if (t->dtype == SHERD_U32) out.targets.labels = (const uint32_t *)targets + e->what.first;
    else out.targets.values = (const double *)targets + e->what.first * t->cols;
    return out;
}

void sherd__examples_release(sherd__examples *e)
{
    sherd__block_release(e->x);
    sherd__block_release(e->targets);
    e->x = e->targets = NULL;
}
