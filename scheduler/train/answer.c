/*
 * Processes the answers for a part: checks and records costs and hits, and adds up sums of
 * gradients. Large tiers are added on the executor, small ones on the loop's thread, because
 * handing work over costs more than adding a few thousand numbers.
 *
 * Nodes are trusted for the values of gradients only: checking these would mean computing them.
 */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "scheduler/train/internal.h"

#define ADD_HERE 8192u /* numbers of a tier that are added on the loop's thread */

typedef struct add {
    sherd__executor_item work; /* first: the executor passes it to the callbacks */
    sherd__train_job *job;
    flight *flight;
    uint32_t tier;
    sherd__fragment *answer;
} add;

/* ---- figures --------------------------------------------------------------------------------- */

static void note_trace(sherd__train_job *j, uint32_t node, const flight *f, const uint8_t *times,
                       uint64_t now_ms)
{
    double t[SHERD__PLAN_TIMES];
    if (!j->o.train.trace) return;
    for (uint32_t i = 0; i < SHERD__PLAN_TIMES; i++)
        t[i] = (double)sherd__get_u64(times + 8 * (size_t)i) * 1e-6;
    pthread_mutex_lock(&j->lock);
    if (j->traces_len == TRACES) {
        j->traces_from = (j->traces_from + 1) % TRACES;
        j->traces_len--;
    }
    j->traces[(j->traces_from + j->traces_len++) % TRACES] = (sherd__train_trace){
        .version = f->part->params->number,
        .node = sherd__work_name(&j->w, node),
        .shards = f->part->shards,
        .forward = t[SHERD__PLAN_FORWARD],
        .last_params = t[SHERD__PLAN_LAST_PARAMS],
        .top_left = t[SHERD__PLAN_TOP_LEFT],
        .lowest_backward = t[SHERD__PLAN_LOWEST_BACKWARD],
        .computed = t[SHERD__PLAN_COMPUTED],
        .asked = f->asked,
        .answered = (double)(now_ms - j->began_ms) * 1e-3,
    };
    pthread_mutex_unlock(&j->lock);
}

bool sherd__train_figures(sherd__train_job *j, uint32_t node, flight *f, const uint8_t *bytes,
                          uint64_t now_ms)
{
    sherd__part *p = f->part;
    const uint8_t *at = bytes + 8 * j->counts[0];
    for (uint32_t i = p->first; i < p->first + p->shards; i++, at += 16) {
        double cost;
        memcpy(&cost, at, 8);
        uint64_t hits = sherd__get_u64(at + 8);
        if (!isfinite(cost) || hits > p->at[i + 1] - p->at[i]) return false;
        p->costs[i] = cost;
        p->hits[i] = hits;
    }
    note_trace(j, node, f, at, now_ms);
    return true;
}

bool sherd__train_job_trace(sherd__train_job *j, sherd__train_trace *out)
{
    pthread_mutex_lock(&j->lock);
    bool any = j->traces_len > 0;
    if (any) {
        *out = j->traces[j->traces_from];
        j->traces_from = (j->traces_from + 1) % TRACES;
        j->traces_len--;
    }
    pthread_mutex_unlock(&j->lock);
    return any;
}

/* ---- sums ------------------------------------------------------------------------------------ */

static void release_answer(void *answer)
{
    sherd__fragment_free(answer);
}

/* The first answer becomes the sum: copying it would be as much work as adding it. */
static void on_add(sherd__executor_item *work)
{
    add *a = (add *)work;
    sherd__sums_take(a->flight->part->sums, a->tier,
                     (void *)(uintptr_t)sherd__fragment_bytes(a->answer), release_answer,
                     a->answer);
}

static void on_added(sherd__executor_item *work)
{
    add *a = (add *)work;
    sherd__train_job *j = a->job;
    flight *f = a->flight;
    sherd__free(a);
    j->pieces--;
    f->adding--;
    sherd__train_maybe_back(j, f);
}

int sherd__train_add(sherd__train_job *j, flight *f, uint32_t t, sherd__fragment *answer)
{
    if (j->counts[t] <= ADD_HERE) {
        sherd__sums_add(f->part->sums, t, sherd__fragment_bytes(answer));
        sherd__fragment_free(answer);
        return SHERD_OK;
    }
    add *a = sherd__alloc(sizeof *a);
    int err = a ? SHERD_OK : SHERD_ENOMEM;
    if (!err) {
        *a = (add){ { on_add, on_added, NULL }, j, f, t, answer };
        err = sherd__executor_submit(j->o.executor, &a->work);
    }
    if (err) {
        sherd__fragment_free(answer);
        sherd__free(a);
        return err;
    }
    f->adding++;
    j->pieces++;
    return SHERD_OK;
}
