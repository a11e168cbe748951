/*
 * The life of a task: accepted (checked, memory reserved, blocks held) -> queued with its client ->
 * started (the buffer of its result taken) -> run -> answered. Only as many tasks are started as
 * keep the devices and the compute thread busy, at least two: one runs, one is ready for the
 * compute thread to take next. The others wait in the clients' queues, where turns are taken and
 * where CANCEL finds them.
 *
 * flush may cause an event, even the client's end: so it is called last, and nothing of the client
 * is used after it.
 */
#include "node/worker.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "crypto/fragment_make.h"
#include "crypto/seed.h"
#include "node/check.h"
#include "node/programs.h"
#include "node/worker_state.h"

/* --- tasks ------------------------------------------------------------------------------- */

/* Applies the DROP flags of a task that has ended, with or without a result. */
static void drop_flagged(task *t)
{
    sherd__store *s = &t->client->store;
    uint64_t job = t->what.job;
    if (t->what.flags & SHERD__DROP_LEFT && sherd__store_find(s, job, t->left->number) == t->left)
        (void)sherd__store_drop(s, job, t->left->number);
    if (t->right && t->what.flags & SHERD__DROP_RIGHT &&
        sherd__store_find(s, job, t->right->number) == t->right)
        (void)sherd__store_drop(s, job, t->right->number);
}

void sherd__worker_release(task *t)
{
    sherd__worker *w = t->client->worker;
    if (t->round) {
        sherd__free(t);
        return;
    }
    sherd__worker_take_out(t->client, t);
    if (t->secure) sherd__secure_done(t->client->secure);
    if (t->allreduce) sherd__worker_allreduce_over(t);
    drop_flagged(t);
    sherd__block_release(t->left);
    sherd__block_release(t->right);
    sherd__pool_give(t->client->pool, t->out, t->what.result.len);
    sherd__pool_unreserve(t->client->pool, t->reserved + sizeof *t);
    w->stats.queued--;
    sherd__free(t);
}

static void refuse(sherd__client *c, const sherd__refusal *r)
{
    c->worker->stats.refused++;
    /* A session that cannot take the refusal is closing: its CLOSED event follows. */
    if (c->session && sherd__session_refuse(c->session, r)) return;
}

static void set_text(char out[SHERD__TEXT_MAX], int code, const char *text)
{
    if (!text[0]) text = sherd_strerror(code);
    size_t len = strnlen(text, SHERD__TEXT_MAX - 1);
    memcpy(out, text, len);
    out[len] = '\0';
}

void sherd__worker_refuse(sherd__client *c, const sherd__task *t, int code, const char *text)
{
    sherd__refusal r = { .job = t->job, .task = t->task, .attempt = t->attempt, .code = code };
    set_text(r.text, code, text);
    refuse(c, &r);
}

static void refuse_block(sherd__client *c, const sherd__event *e, int code, const char *text)
{
    sherd__refusal r = { .job = e->job, .block = e->block, .code = code };
    set_text(r.text, code, text);
    refuse(c, &r);
}

void sherd__worker_flush(sherd__worker *w, sherd__client *c)
{
    if (w->opt.flush && c->session && c != w->inside) w->opt.flush(w->opt.flush_ctx, c->tag);
}

void sherd__worker_count(sherd__worker *w, const sherd__task *t)
{
    w->stats.tasks[t->op % SHERD__OPS_MAX]++;
    w->stats.bytes_out += t->result.len;
}

/* Passes a finished result to the session, which then owns t->out. */
static int hand_over(task *t)
{
    sherd__client *c = t->client;
    sherd__fragment *f;
    int err = sherd__fragment_take(&f, &t->what.result, t->out, sherd__worker_unplace, c->pool);
    if (err) return err;
    t->out = NULL;
    sherd__worker_count(c->worker, &t->what);
    if (sherd__session_result(c->session, &t->what, f)) sherd__fragment_free(f);
    return SHERD_OK;
}

/* Answers a task that was run, and releases it. */
static void answer(task *t)
{
    sherd__client *c = t->client;
    if (c->session && !t->cancelled) {
        if (!t->err) t->err = hand_over(t);
        t->answered = !t->err;
        if (t->err) sherd__worker_refuse(c, &t->what, t->err, t->text);
    }
    sherd__worker_release(t);
}

void sherd__worker_run(task *t)
{
    sherd__worker *w = t->client->worker;
    if (t->round) {
        sherd__round_run(t->round);
        return;
    }
    sherd_diag d = { .code = 0 };
    const sherd__fragment *right = t->right ? t->right->fragment : NULL;
    t->call.task = &t->what;
    t->call.out = t->out;
    if (t->secure)
        t->err = sherd__secure_run(t->client->secure, &t->what, t->left->fragment, right, t->out,
                                   &t->stop, &d);
    else if (t->allreduce)
        t->err = sherd__allreduce_run(t->client->allreduce, &t->what, t->left->fragment, right,
                                      t->out, &d);
    else if (!(t->err = sherd__task_settle(t->left->fragment, right, &d)))
        t->err = w->opt.backend->compute(w->opt.backend_ctx, &t->call, t->left->fragment, right,
                                         &d);
    if (t->err) set_text(t->text, t->err, d.message);
}

/* Returns how many tasks may be started and not answered. */
static uint32_t depth_of(const sherd__worker *w)
{
    uint32_t depth = sherd__devices_depth(&w->devices);
    return depth < RUNNING_LEAST ? RUNNING_LEAST : depth < RUNNING_MAX ? depth : RUNNING_MAX;
}

/* Returns whether devices compute the task; otherwise the compute thread does. */
static bool of_device(const task *t)
{
    return !t->round && !t->secure && !t->allreduce;
}

/* Returns a task's number in its client's table. */
static uint64_t number_of(uint32_t number, uint32_t attempt)
{
    return (uint64_t)attempt << 32 | number;
}

static double now_us(const sherd__worker *w)
{
    return w->opt.clock ? 1e6 * w->opt.clock() : 0;
}

static void on_run(sherd__executor_item *work)
{
    task *t = (task *)work;
    const sherd__worker *w = t->client->worker;
    double from = now_us(w);
    sherd__worker_run(t);
    t->took_us = now_us(w) - from;
}

static void leave_running(sherd__worker *w, const task *t)
{
    for (uint32_t i = 0; i < w->running_len; i++)
        if (w->running[i] == t) w->running[i] = w->running[--w->running_len];
    if (w->alone == t) w->alone = NULL;
    t->client->running--;
    sherd__worker_charge(t->client, t->took_us - t->charged_us);
}

/* Ends a started task: answers it, and starts others. */
static void finish(task *t)
{
    sherd__client *c = t->client;
    sherd__worker *w = c->worker;
    leave_running(w, t);
    if (t->round) sherd__worker_round_done(t);
    else answer(t);
    if (sherd__worker_to_reap(c)) sherd__worker_reap_now(c); /* blocks that the task held */
    if (sherd__worker_to_reap(c) && w->opt.wake) w->opt.wake(w->opt.wake_ctx);
    if (c->closed) {
        sherd__worker_over(c);
    } else {
        sherd__worker_move(c);
        sherd__worker_flush(w, c);
    }
    sherd__worker_pump(w);
}

static void submit_waiting(sherd__worker *w);

/* Tasks may have waited for calls of this one, a pass of training. */
static void on_done(sherd__executor_item *work)
{
    task *t = (task *)work;
    sherd__worker *w = t->client->worker;
    w->depth = depth_of(w);
    submit_waiting(w);
    finish(t);
}

/* --- device calls ------------------------------------------------------------------------ */

static void on_called(sherd__call *call);

/*
 * Gives a task to a device, or makes it wait while calls are in progress: all waiting tasks are
 * tried again when one of these ends. A task that found no memory runs alone, so that other tasks
 * cannot take the memory that is freed for it again and again.
 */
static int submit_call(sherd__worker *w, task *t)
{
    sherd_diag d = { .code = 0 };
    if (t->cramped && !w->alone) w->alone = t;
    t->waiting = w->alone && (w->alone != t || sherd__devices_busy(&w->devices));
    if (t->waiting) return SHERD_OK;
    t->call = (sherd__call){ .task = &t->what,
                             .owner = t->client->products.owner,
                             .in_parts = t->cramped,
                             .out = t->out,
                             .executor = w->opt.executor,
                             .clock = w->opt.clock,
                             .done = on_called };
    int err = sherd__devices_submit(&w->devices, &t->call, t->left, t->right, &t->on, &d);
    bool cramped = err == SHERD_ENOMEM && sherd__devices_busy(&w->devices);
    if (cramped && !w->alone) w->alone = t;
    t->cramped |= cramped;
    t->waiting = cramped || err == SHERD_EBUSY;
    if (t->waiting) return SHERD_OK;
    if (err) set_text(t->text, err, d.message);
    return err;
}

static void submit_waiting(sherd__worker *w)
{
    for (uint32_t i = 0; i < w->running_len; i++) {
        task *t = w->running[i];
        if (!t->waiting || !(t->err = submit_call(w, t))) continue;
        finish(t);
        i = UINT32_MAX; /* the list has changed: start over */
    }
}

static void on_called(sherd__call *call)
{
    task *t = sherd__worker_task_of_call(call);
    sherd__worker *w = t->client->worker;
    bool again = sherd__devices_done(call, t->left, t->right, t->on);
    t->on = NULL;
    t->err = call->err;
    t->took_us += call->took_us;
    if (t->err) set_text(t->text, t->err, call->text);
    t->cramped |= t->err == SHERD_ENOMEM;
    if (call->lost) {
        w->depth = depth_of(w);
        set_text(w->lost, SHERD_EDEVICE, call->text);
    }
    if (again && !call->lost) again = t->failures++ < SHERD__DEVICES_FAILURES;
    again = again && !t->cancelled && !t->client->closed;
    w->stats.repeated += again;
    if (again && !(t->err = submit_call(w, t))) {
        submit_waiting(w);
        return;
    }
    if (w->alone == t) w->alone = NULL;
    submit_waiting(w);
    finish(t);
}

/* Ends a task that waits for a device: it has no call in progress. */
static void withdraw(task *t)
{
    leave_running(t->client->worker, t);
    sherd__worker_release(t);
}

/* --- starting ---------------------------------------------------------------------------- */

/* Returns the estimated time of the task, without that of switching to the compute thread. */
static double us_of(const sherd__worker *w, const task *t)
{
    const sherd__fragment *right = t->right ? t->right->fragment : NULL;
    double gflops = sherd__devices_gflops(&w->devices,
                                          sherd__task_needs(&t->what, t->left->fragment));
    return sherd__task_flops(&t->what, t->left->fragment) / (gflops * 1e3) +
           sherd__task_bytes(&t->what, t->left->fragment, right) / 4e3;
}

/* Replaces the reservation by the buffer of the result. */
static int take_buffer(task *t)
{
    sherd__pool *pool = t->client->pool;
    sherd__pool_unreserve(pool, t->reserved);
    t->reserved = 0;
    t->out = sherd__pool_get(pool, t->what.result.len);
    return t->out ? SHERD_OK : SHERD_ENOMEM;
}

int sherd__worker_submit(sherd__worker *w, task *t)
{
    int err;
    if (of_device(t)) {
        err = submit_call(w, t);
    } else {
        t->work = (sherd__executor_item){ .run = on_run, .done = on_done };
        err = sherd__executor_submit(w->opt.executor, &t->work);
    }
    if (err) return err;
    t->charged_us = t->round ? sherd__round_us(t->round) : us_of(w, t);
    sherd__worker_charge(t->client, t->charged_us);
    w->running[w->running_len++] = t;
    t->client->running++;
    return SHERD_OK;
}

void sherd__worker_answer_now(task *t)
{
    t->err = take_buffer(t);
    if (!t->err) sherd__worker_run(t);
    answer(t);
}

static void start(sherd__worker *w, task *t)
{
    sherd__client *c = t->client;
    if (t->round) {
        sherd__worker_start_round(w, t);
        return;
    }
    double us = us_of(w, t), began = now_us(w);
    const sherd__fragment_info *left = sherd__fragment_info_of(t->left->fragment);
    /* Secure sums and all-reduce tasks all run on one thread, one after another. The time that a
     * CSR operand takes depends on the positions of its entries, so it is not estimated. */
    bool run_here = w->running_len == 0 && of_device(t) && w->opt.backend->compute &&
                    us < SHERD__INLINE_US && left->encoding != SHERD__CSR;
    if (!of_device(t) || !sherd__worker_stream(t)) {
        int err = take_buffer(t);
        if (!err && !run_here && !(err = sherd__worker_submit(w, t))) return;
        if (err) {
            t->err = err;
        } else {
            sherd__worker_run(t);
            w->stats.inline_tasks++;
            double took = now_us(w) - began; /* for example, subnormal numbers take far longer */
            w->turn_us += took > us ? took : us;
            sherd__worker_charge(c, took > us ? took : us);
        }
        answer(t);
    }
    w->turn_us += 2; /* time to send the result */
    sherd__worker_flush(w, c);
}

void sherd__worker_pump(sherd__worker *w)
{
    if (w->pumping) return;
    w->pumping = true;
    while (w->running_len < w->depth && (!w->opt.wake || w->turn_us < TURN_US)) {
        task *t = sherd__worker_next(w);
        if (!t) break;
        bool gone = t->listed && sherd__grouped_is_given_up(&t->client->tasks, &t->item);
        sherd__worker_take_out(t->client, t);
        if (!gone) {
            start(w, t);
            continue;
        }
        w->stats.cancelled++;
        w->turn_us += 1;
        sherd__worker_charge(t->client, 1);
        sherd__worker_release(t);
    }
    w->pumping = false;
    if (w->last && w->running_len < w->depth) w->opt.wake(w->opt.wake_ctx); /* in the next turn */
}

void sherd__worker_turn(sherd__worker *w)
{
    w->turn_us = 0;
    sherd__worker_reap(w);
    sherd__worker_continue(w);
    sherd__worker_pump(w);
}

/* --- events ------------------------------------------------------------------------------ */

/* Replaces a seed by the share that it encodes. The memory is taken now; the first task that
 * uses the share computes it (sherd__task_settle). */
static int grow_seed(sherd__client *c, sherd__fragment **f, sherd_diag *d)
{
    const sherd__fragment_info whole = sherd__fragment_whole(sherd__fragment_info_of(*f));
    sherd__fragment *share;
    int err = sherd__seed_check(*f, d);
    if (err) return err;
    uint8_t *bytes = sherd__worker_place(c->pool, 0, 0, whole.len);
    if (!bytes)
        return sherd__fail(d, SHERD_EREFUSED, NULL,
                           "the block does not fit into this node's memory");
    err = sherd__seed_defer(&share, *f, bytes, sherd__worker_unplace, c->pool);
    if (err) sherd__pool_give(c->pool, bytes, whole.len);
    else *f = share;
    return err;
}

/* The session has checked the group table. */
static int store(sherd__client *c, const sherd__event *e, sherd__fragment **f, sherd_diag *d)
{
    bool seed = sherd__fragment_info_of(*f)->encoding == SHERD__SEED;
    int err = seed ? grow_seed(c, f, d) : SHERD_OK;
    return err ? err : sherd__store_put(&c->store, e->job, e->block, *f);
}

static void on_block(sherd__client *c, sherd__event *e)
{
    sherd__worker *w = c->worker;
    sherd__fragment *f = e->fragment;
    sherd_diag d = { .code = 0 };
    e->fragment = NULL;
    const uint64_t len = sherd__fragment_info_of(f)->len; /* as it was sent */
    int err = store(c, e, &f, &d);
    while (err == SHERD_ENOMEM && sherd__pool_relieve(c->pool)) err = store(c, e, &f, &d);
    if (err == SHERD_EINVAL)
        (void)sherd__fail(&d, err, NULL, "block %u of this job already exists", e->block);
    if (err) {
        refuse_block(c, e, err, d.message);
        sherd__fragment_free(f);
        return;
    }
    w->stats.blocks_in++;
    w->stats.bytes_in += len;
}

/* Checks the task against these blocks. */
static int check_task(sherd__client *c, const sherd__task *what, const sherd__block *left,
                      const sherd__block *right, sherd_diag *d)
{
    const sherd__worker *w = c->worker;
    if (sherd__allreduce_op(what->op)) return sherd__worker_allreduce(c, what, left, right, d);
    if (!sherd__secure_op(what->op))
        return sherd__task_check(what, left->fragment, right ? right->fragment : NULL, d);
    sherd__secure_site site = { .self = w->opt.self,
                                .pool = c->pool,
                                .store = &c->store,
                                .by = sherd__products_own(&c->products),
                                .later = sherd__worker_later(c) };
    const sherd__account *account = &c->tenant->account;
    if (account->named) memcpy(site.coordinator, account->key.sha256, sizeof site.coordinator);
    if (!c->secure && sherd__secure_new(&c->secure, &site))
        return sherd__fail_memory(d, "a secure sum");
    return sherd__secure_admit(c->secure, what, left, right, d);
}

/* Finds the blocks, checks the task and reserves room for the result, or sets *d. */
static int accept_task(sherd__client *c, const sherd__task *what, task **out, sherd_diag *d)
{
    sherd__worker *w = c->worker;
    sherd__block *left, *right = NULL;
    int err = sherd__store_need(&c->store, what->job, what->left, &left, d);
    if (!err && what->right) err = sherd__store_need(&c->store, what->job, what->right, &right, d);
    if (err) return err;
    err = check_task(c, what, left, right, d);
    if (err) return err;
    bool secure = sherd__secure_op(what->op);
    uint64_t cost = sherd__pool_cost(what->result.len);
    bool room = cost <= w->opt.memory && sherd__pool_reserve(c->pool, cost + sizeof(task));
    task *t = room ? sherd__calloc(1, sizeof *t) : NULL;
    if (!t) {
        const sherd__pool_stats *m = sherd__pool_stats_of(c->pool);
        if (room) sherd__pool_unreserve(c->pool, cost + sizeof(task));
        if (secure) sherd__secure_done(c->secure);
        return sherd__fail_memory(d, "a result of %llu bytes: %llu of %llu are in use",
                                  (unsigned long long)what->result.len, (unsigned long long)m->used,
                                  (unsigned long long)m->budget);
    }
    *t = (task){ .client = c,
                 .what = *what,
                 .left = left,
                 .right = right,
                 .reserved = cost,
                 .secure = secure,
                 .allreduce = sherd__allreduce_op(what->op) };
    sherd__block_hold(left);
    if (right) sherd__block_hold(right);
    w->stats.queued++;
    err = sherd__grouped_add(&c->tasks, &t->item, what->job, number_of(what->task, what->attempt));
    if (err) {
        t->what.flags = 0; /* as if it had not arrived, so that nothing is dropped */
        sherd__worker_release(t);
        return sherd__fail(d, err, NULL, "the table of tasks is full");
    }
    t->listed = true;
    *out = t;
    return SHERD_OK;
}

static void on_task(sherd__client *c, const sherd__event *e)
{
    sherd_diag d = { .code = 0 };
    task *t = NULL;
    int err = accept_task(c, &e->task, &t, &d);
    while (err == SHERD_ENOMEM && sherd__pool_relieve(c->pool))
        err = accept_task(c, &e->task, &t, &d);
    if (err) {
        sherd__worker_refuse(c, &e->task, err, d.message);
        return;
    }
    if (t->allreduce) {
        if (!sherd__worker_set_aside(c, t)) return;
        t->what.flags = 0;
        sherd__worker_release(t);
        sherd__worker_refuse(c, &e->task, SHERD_ENOMEM,
                             "too many tasks of an all-reduce group wait");
        return;
    }
    sherd__worker_queue(c, t);
    sherd__worker_pump(c->worker);
}

/* Stops a started task of which the result is not needed. Returns true if the task was released. */
static bool stop(task *t)
{
    const sherd__worker *w = t->client->worker;
    bool waiting = t->waiting;
    atomic_store(&t->stop, true);
    if (waiting) withdraw(t);
    else if (t->on) w->opt.backend->cancel(w->opt.backend_ctx, &t->call);
    return waiting;
}

/* Stops the running tasks of a job that is dropped, or of a client that is closed. */
static void stop_running(sherd__client *c, uint64_t job)
{
    const sherd__worker *w = c->worker;
    for (uint32_t i = 0; i < w->running_len; i++) {
        task *t = w->running[i];
        if (t->client != c || (!c->closed && t->what.job != job)) continue;
        if (!c->closed) atomic_store(&t->stop, true);
        else if (stop(t)) i--;
    }
}

/* Cancels one attempt of a task, or with number 0 all tasks of the job. */
static void on_cancel(sherd__client *c, const sherd__event *e)
{
    sherd__worker *w = c->worker;
    uint32_t tiers = sherd__round_cancel(&c->site, e->job, e->number, e->task.attempt);
    c->asked -= tiers;
    w->stats.queued -= tiers;
    w->stats.cancelled += tiers;
    if (e->number) {
        sherd__grouped_item *it = sherd__grouped_find(&c->tasks, e->job,
                                                      number_of(e->number, e->task.attempt));
        w->stats.cancelled += it != NULL;
        if (it) sherd__worker_release(sherd__worker_task_of(it));
    } else {
        (void)sherd__grouped_give_up(&c->tasks, e->job);
        sherd__worker_reap_now(c);
        if (c->allreduce) sherd__allreduce_cancel(c->allreduce, e->job);
    }
    sherd__worker_drop_rounds(c, false);
    sherd__worker_close_gone(c);
    for (uint32_t i = 0; i < w->running_len; i++) {
        task *t = w->running[i];
        bool named = t->client == c && !t->round && t->what.job == e->job &&
                     (e->number == 0 ||
                      (t->what.task == e->number && t->what.attempt == e->task.attempt));
        if (!named || t->cancelled) continue;
        t->cancelled = true;
        w->stats.cancelled++;
        if (stop(t)) i--;
    }
}

static void on_closed(sherd__client *c, sherd__session *s)
{
    sherd__worker *w = c->worker;
    if (s) sherd__session_share(s);
    c->over = s;
    c->session = NULL;
    c->closed = true;
    if (c->allreduce) sherd__allreduce_forget(c->allreduce, 0);
    stop_running(c, 0);
    sherd__worker_drop_rounds(c, true);
    sherd__worker_leave_turns(w, c);
    sherd__grouped_give_up_all(&c->tasks);
    for (sherd__round *r = NULL; (r = sherd__round_after(&c->site, r));) sherd__round_abandon(r);
    w->stats.queued -= c->asked;
    c->asked = 0;
    sherd__store_drop_all(&c->store);
    w->stats.clients_now--;
    if (w->opt.wake) w->opt.wake(w->opt.wake_ctx); /* many may end at once: one slice a turn */
    else sherd__worker_reap(w);
}

void sherd__worker_event(sherd__client *c, sherd__session *s, sherd__event *e)
{
    sherd__worker *w = c->worker;
    sherd__client *outer = w->inside;
    if (e->kind == SHERD__EV_CLOSED) {
        on_closed(c, s);
        sherd__worker_pump(w);
        return;
    }
    w->inside = c;
    c->session = s;
    switch (e->kind) {
    case SHERD__EV_BLOCK: on_block(c, e); break;
    case SHERD__EV_TASK:
        if (e->task.op == SHERD__OP_GRADIENT) sherd__worker_gradient(c, e);
        else on_task(c, e);
        break;
    case SHERD__EV_CANCEL: on_cancel(c, e); break;
    case SHERD__EV_DROP:
        (void)sherd__store_drop(&c->store, e->job, e->block);
        if (e->block) break;
        stop_running(c, e->job);
        sherd__worker_reap_now(c);
        sherd__worker_forget(c, e->job);
        break;
    default: break;
    }
    if (sherd__worker_to_reap(c) && w->opt.wake) w->opt.wake(w->opt.wake_ctx);
    if (!w->opt.wake) sherd__worker_continue(w);
    w->inside = outer;
}

/* --- start and end ----------------------------------------------------------------------- */

int sherd__worker_join(sherd__worker *w, sherd__client **out, void *tag,
                       const sherd__fingerprint *key, uint64_t memory)
{
    *out = NULL;
    tenant *t = sherd__worker_tenant(w, key, memory ? memory : w->opt.memory);
    sherd__client *c = t ? sherd__calloc(1, sizeof *c) : NULL;
    if (!c) return SHERD_ENOMEM;
    *out = c;
    c->tenant = t;
    c->pool = t->account.pool;
    c->worker = w;
    c->tag = tag;
    sherd__store_init(&c->store);
    c->store.lending = &t->lending;
    sherd__table_key_draw(&c->store.table.key, &w->opt.entropy);
    c->tasks.key = c->store.table.key;
    c->tasks.budget = c->store.table.budget = sherd__pool_budget(c->pool);
    c->products = (sherd__products){ .devices = &w->devices, .owner = ++w->stats.clients };
    c->site = (sherd__gradient_site){ .pool = c->pool,
                                      .by = sherd__products_arithmetic(&c->products),
                                      .passes = sherd__team_threads(w->team),
                                      .team = w->team,
                                      .store = &c->store,
                                      .later = sherd__worker_later(c),
                                      .gflops = sherd__devices_gflops(&w->devices, SHERD__DOES_F64),
                                      .wake = w->opt.wake,
                                      .wake_ctx = w->opt.wake_ctx,
                                      .clock = w->opt.clock };
    c->next = w->clients;
    if (c->next) c->next->prev = c;
    w->clients = c;
    sherd__worker_count_clients(w);
    w->stats.clients_now++;
    return SHERD_OK;
}

void sherd__worker_leave(sherd__client *c)
{
    on_closed(c, NULL);
}

static bool take_back(void *worker)
{
    return sherd__devices_relieve(&((sherd__worker *)worker)->devices);
}

int sherd__worker_new(sherd__worker **out, const sherd__worker_options *opt)
{
    sherd__worker *w = *out = sherd__calloc(1, sizeof *w);
    if (!w) return SHERD_ENOMEM;
    w->opt = *opt;
    if (!w->opt.entropy.fill) w->opt.entropy = sherd__entropy_os();
    uint32_t count = opt->devices_len;
    const sherd__device *list = opt->devices;
    if (!list) list = opt->backend->devices(opt->backend_ctx, &count);
    sherd__devices_init(&w->devices, opt->backend, opt->backend_ctx, list, count);
    w->depth = depth_of(w);
    int err = sherd__programs_test(&w->devices, NULL);
    if (!err) err = sherd__pool_new(&w->pool, opt->memory);
    if (!err && opt->passes > 1 && !opt->backend->multiplier)
        err = sherd__team_new(&w->team, opt->passes);
    if (err) {
        sherd__pool_free(w->pool);
        sherd__free(w);
        *out = NULL;
        return err;
    }
    sherd__pool_relief(w->pool, sherd__worker_relieve, w);
    sherd__pool_lender(w->pool, take_back, w);
    if (opt->wake) sherd__pool_slices(w->pool, opt->wake, opt->wake_ctx);
    return SHERD_OK;
}

void sherd__worker_free(sherd__worker *w)
{
    if (!w) return;
    assert(w->stats.clients_now == 0);
    w->opt.wake = NULL;
    sherd__pool_slices(w->pool, NULL, NULL);
    sherd__worker_reap(w);
    sherd__worker_free_tenants(w);
    sherd__pool_free(w->pool);
    sherd__team_free(w->team);
    sherd__free(w);
}

const char *sherd__worker_lost(const sherd__worker *w)
{
    if (!sherd__devices_lost(&w->devices)) return NULL;
    return w->lost[0] ? w->lost : "the device failed during a pass of training";
}

const sherd__worker_stats *sherd__worker_stats_of(const sherd__worker *w)
{
    return &w->stats;
}

const sherd__pool_stats *sherd__worker_memory(const sherd__worker *w)
{
    return sherd__pool_stats_of(w->pool);
}
