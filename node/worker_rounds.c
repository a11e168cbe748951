/*
 * Rounds of gradients in the task loop. A round (node/gradient.h) is several tasks of a session and
 * one pass. It is queued with its client as one task that answers many. It starts as soon as the
 * lowest tier's parameters have arrived, and its results are sent while the pass still runs.
 */
#include "core/alloc.h"
#include "core/diag.h"
#include "crypto/fragment_make.h"
#include "node/worker_state.h"

/* Sends the computed tiers, and refuses those that cannot be computed. */
static void answer_round(sherd__client *c, sherd__round *r)
{
    sherd__worker *w = c->worker;
    sherd__task what;
    uint8_t *bytes;
    const char *why;
    while (sherd__round_next(r, &what, &bytes)) {
        sherd__fragment *f;
        int err = sherd__fragment_take(&f, &what.result, bytes, sherd__worker_unplace, c->pool);
        c->asked--;
        w->stats.queued--;
        if (err) {
            sherd__pool_give(c->pool, bytes, what.result.len);
            sherd__worker_refuse(c, &what, err, "");
            continue;
        }
        sherd__worker_count(w, &what);
        if (sherd__session_result(c->session, &what, f)) sherd__fragment_free(f);
    }
    while (sherd__round_refused(r, &what)) {
        int code = sherd__round_failure(r, &why);
        c->asked--;
        w->stats.queued--;
        sherd__worker_refuse(c, &what, code, why);
    }
}

/* Called after a change: queues the round if it can start, sends what is ready, and closes the
 * round if it is finished. */
static void move_round(sherd__client *c, sherd__round *r)
{
    if (sherd__round_startable(r)) {
        task *t = sherd__calloc(1, sizeof *t);
        if (t) {
            *t = (task){ .client = c, .round = r };
            sherd__worker_queue(c, t);
        } else {
            sherd__round_fail(r, SHERD_ENOMEM, "out of memory for a round");
        }
    }
    if (c->session) answer_round(c, r);
    (void)sherd__round_close(r);
}

void sherd__worker_round_done(task *t)
{
    sherd__client *c = t->client;
    sherd__round *r = t->round;
    (void)sherd__round_end(r);
    sherd__free(t);
    if (!c->closed) move_round(c, r); /* otherwise the round is freed with its client */
}

void sherd__worker_gradient(sherd__client *c, const sherd__event *e)
{
    sherd_diag d = { .code = 0 };
    sherd__round *r = NULL;
    int err = sherd__round_task(&c->site, &e->task, &r, &d);
    while (err == SHERD_ENOMEM && sherd__pool_relieve(c->pool))
        err = sherd__round_task(&c->site, &e->task, &r, &d);
    if (err) {
        sherd__worker_refuse(c, &e->task, err, d.message);
        return;
    }
    c->asked++;
    c->worker->stats.queued++;
    move_round(c, r);
    sherd__worker_pump(c->worker);
}

void sherd__worker_close_gone(sherd__client *c)
{
    for (sherd__round *r = sherd__round_after(&c->site, NULL), *next; r; r = next) {
        next = sherd__round_after(&c->site, r);
        if (sherd__round_gone(r)) (void)sherd__round_close(r);
    }
}

void sherd__worker_poll(sherd__worker *w)
{
    for (uint32_t i = 0; i < w->running_len; i++) {
        sherd__round *r = w->running[i]->round;
        sherd__client *c = w->running[i]->client;
        if (!r || !c->session) continue;
        answer_round(c, r);
        sherd__worker_flush(w, c); /* this may end the client, but not a round that runs */
        sherd__round_left(r);
    }
    sherd__worker_turn(w);
}

void sherd__worker_start_round(sherd__worker *w, task *t)
{
    sherd__client *c = t->client;
    /* Not over devices: a pass waits for them, and what they do not compute takes longer here. */
    bool run_here = w->running_len == 0 && w->opt.backend->multiplier &&
                    sherd__round_us(t->round) < SHERD__ROUND_INLINE_US;
    sherd__round_begin(t->round);
    if (!run_here) {
        int err = sherd__worker_submit(w, t);
        if (!err) return;
        sherd__round_fail(t->round, err, "");
    } else {
        w->turn_us += sherd__round_us(t->round);
        sherd__worker_charge(c, sherd__round_us(t->round));
        sherd__worker_run(t);
        w->stats.inline_tasks++;
    }
    sherd__worker_round_done(t);
    sherd__worker_flush(w, c);
}

/* Ends the rounds of a job that is dropped. */
static void end_rounds(sherd__client *c, uint64_t job)
{
    sherd__task t;
    while (sherd__round_withdraw(&c->site, job, &t)) {
        c->asked--;
        c->worker->stats.queued--;
        c->worker->stats.cancelled++;
        sherd__worker_refuse(c, &t, SHERD_EINTERRUPTED, "the job was dropped");
    }
    sherd__round_sweep(&c->site, job);
}

void sherd__worker_forget(sherd__client *c, uint64_t job)
{
    end_rounds(c, job);
    sherd__worker_drop_rounds(c, false);
    sherd__worker_close_gone(c);
    sherd__gradient_forget(&c->site, job);
    if (c->secure) sherd__secure_forget(c->secure, job);
    if (!c->allreduce) return;
    sherd__allreduce_forget(c->allreduce, job);
    sherd__worker_stir(c);
}
