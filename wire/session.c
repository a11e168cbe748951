/*
 * The protocol state of one peer: public calls, timers, and the start and end of a session. The
 * code does no IO, so that the network, the simulation, the tests and the fuzzers use the same
 * implementation. session_in.c handles received bytes, session_out.c bytes to send. The caller is
 * trusted to supply the time (which may stand still but never goes back). Data from the peer is not
 * trusted.
 */
#include "wire/session.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "crypto/fragment_make.h"
#include "wire/message.h"
#include "wire/session_state.h"

/* ---- start and end ---- */

static int push_hello(sherd__session *s)
{
    uint8_t body[SHERD__CONTROL_MAX];
    sherd__record r = { .type = SHERD__REC_HELLO,
                        .body_len = sherd__message_hello(body, &s->opt.hello) };
    return sherd__control_push(s, &r, body, SHERD__CONTROLS_MAX);
}

int sherd__session_new(sherd__session **out, const sherd__session_options *opt)
{
    *out = NULL;
    if (opt->role != SHERD__COORDINATOR && opt->role != SHERD__NODE) return SHERD_EINVAL;
    if (opt->hello.minor_min > opt->hello.minor_max) return SHERD_EINVAL;
    if (!sherd__hello_rates_ok(&opt->hello)) return SHERD_EINVAL;
    sherd__session *s = sherd__calloc(1, sizeof *s);
    if (!s) return SHERD_ENOMEM;
    s->refs = 1;
    s->opt = *opt;
    s->open.table.key = opt->table_key;
    s->open.table.budget = opt->budget;
    s->now_ms = s->start_ms = s->ping_ms = s->stats.last_heard_ms = opt->now_ms;
    sherd__buf_init(&s->controls, SHERD__CONTROLS_MAX + SHERD__OFFER_MAX, 0);
    s->offer = sherd__alloc(SHERD__OFFER_MAX);
    int err = s->offer ? SHERD_OK : SHERD_ENOMEM;
    if (!err && opt->role == SHERD__COORDINATOR) err = push_hello(s);
    if (err) {
        sherd__session_free(s);
        return err;
    }
    *out = s;
    return SHERD_OK;
}

/* Releases what the session holds. sherd__session_reap frees queued entries and open tasks. */
static void forget(sherd__session *s)
{
    sherd__arrival_skip(s);
    s->arrival.active = false;
    sherd__bulks_clear(s);
    sherd__controls_clear(s);
    s->ping_due = false;
    s->pong_due = 0;
}

size_t sherd__session_reap(sherd__session *s, size_t most)
{
    size_t n = sherd__tasks_reap(&s->open, most);
    return n + sherd__bulks_reap(s, most - n);
}

bool sherd__session_reaped(const sherd__session *s)
{
    return s->open.table.all == 0 && s->unsent.head == s->unsent.tail;
}

void sherd__session_share(sherd__session *s)
{
    s->refs++;
}

void sherd__session_free(sherd__session *s)
{
    if (!s || --s->refs > 0) return;
    forget(s);
    (void)sherd__session_reap(s, SIZE_MAX);
    sherd__lent_done(s);
    sherd__tasks_fini(&s->open);
    sherd__buf_fini(&s->controls);
    sherd__free(s->bulks.ring);
    sherd__free(s->unsent.ring);
    sherd__free(s->offer);
    sherd__free(s);
}

int sherd__session_end(sherd__session *s, int err, bool tell, const char *fmt, ...)
{
    assert(err < 0);
    if (s->ended) return s->err;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(s->text, sizeof s->text, fmt, ap);
    va_end(ap);
    forget(s);
    if (s->opt.role == SHERD__COORDINATOR) (void)sherd__session_reap(s, SIZE_MAX);
    s->ended = true;
    s->err = err;
    if (tell && !s->bye_offered) {
        s->bye_due = true;
        s->bye_code = err;
        memcpy(s->bye_text, s->text, sizeof s->bye_text);
    } else if (!tell) {
        s->bye_due = false;
        s->offer_len = s->offer_sent = 0;
        sherd__lent_done(s);
    }
    return err;
}

void sherd__event_clear(sherd__event *event)
{
    event->kind = SHERD__EV_NONE;
    event->job = 0;
    event->block = event->number = 0;
    event->fragment = NULL;
    event->err = SHERD_OK;
    event->text[0] = 0;
}

void sherd__session_emit_closed(sherd__session *s, sherd__event *event)
{
    if (!s->ended || s->closed_emitted) return;
    sherd__event_clear(event);
    s->closed_emitted = true;
    event->kind = SHERD__EV_CLOSED;
    event->err = s->err;
    memcpy(event->text, s->text, sizeof event->text);
    event->refusal = (sherd__refusal){ .code = s->peer_code };
}

static int end_after_bye(sherd__session *s)
{
    return sherd__session_end(s, s->bye_code ? s->bye_code : SHERD_ECLOSED, false, "%s",
                              s->bye_text);
}

void sherd__session_eof(sherd__session *s, int err, const char *why, sherd__event *event)
{
    sherd__event_clear(event);
    if (!s->ended && (s->bye_due || s->bye_offered)) end_after_bye(s);
    sherd__session_end(s, err < 0 ? err : SHERD_ECLOSED, false, "%s",
                       why && *why ? why : "connection closed without a goodbye");
    sherd__session_emit_closed(s, event);
}

void sherd__session_bye(sherd__session *s, int code, const char *reason)
{
    if (s->ended || s->bye_due || s->bye_offered) return;
    sherd__bulks_clear(s);
    s->bye_due = true;
    s->bye_ms = s->now_ms;
    s->bye_code = code < 0 ? code : SHERD_OK;
    snprintf(s->bye_text, sizeof s->bye_text, "%s", reason ? reason : "");
}

/* ---- received bytes ---- */

static void clock_to(sherd__session *s, uint64_t now_ms)
{
    if (now_ms > s->now_ms) s->now_ms = now_ms;
}

uint8_t *sherd__session_window(const sherd__session *s, size_t *room)
{
    const sherd__arrival *a = &s->arrival;
    bool open = s->phase == SHERD__IN_CHUNK && a->bytes && !s->ended && !s->bye_due &&
                !s->bye_offered;
    *room = open ? (size_t)s->left : 0;
    return open ? a->bytes + a->got : NULL;
}

int sherd__session_feed(sherd__session *s, const uint8_t *in, size_t len, uint64_t now_ms,
                        size_t *used, sherd__event *event)
{
    sherd__event_clear(event);
    clock_to(s, now_ms);
    size_t n = 0, room;
    int err = s->err;
    /* Bytes that are already in their final memory may be freed when the body is complete, so the
     * tap sees them first. */
    bool in_place = len && in == sherd__session_window(s, &room);
    if (in_place && s->opt.tap) s->opt.tap(s->opt.tap_ctx, false, in, len);
    if (len) {
        s->stats.last_heard_ms = s->now_ms;
        s->graced = false;
    }
    /* the session is ending: input is discarded */
    if (s->ended || s->bye_due || s->bye_offered) n = len;
    else err = sherd__session_take(s, in, len, &n, event);
    *used = n;
    s->stats.bytes_in += n;
    if (n && s->opt.tap && !in_place) s->opt.tap(s->opt.tap_ctx, false, in, n);
    if (err) sherd__session_emit_closed(s, event);
    return err;
}

/* ---- timers ---- */

static bool leaving(const sherd__session *s)
{
    return s->bye_due || s->bye_offered;
}

static bool bye_sent(const sherd__session *s)
{
    return s->bye_offered && s->offer_sent == s->offer_len;
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t ping_at(const sherd__session *s)
{
    return later(s->stats.last_heard_ms, s->ping_ms) + SHERD__PING_MS;
}

/* Returns true if a record other than a chunk has been received partially. */
static bool record_open(const sherd__session *s)
{
    return s->head_len || s->phase == SHERD__IN_CONTROL || s->phase == SHERD__IN_SKIP;
}

static uint64_t next_clock(const sherd__session *s)
{
    if (s->ended) return s->closed_emitted ? UINT64_MAX : 0;
    if (leaving(s)) return bye_sent(s) ? 0 : s->bye_ms + SHERD__DEAD_MS;
    if (!s->ready) return s->start_ms + SHERD__HANDSHAKE_MS;
    uint64_t at = ping_at(s);
    if (s->held) return at;
    at = sooner(at, s->stats.last_heard_ms + SHERD__DEAD_MS);
    if (record_open(s)) at = sooner(at, s->record_ms + SHERD__STALL_MS);
    if (s->arrival.active) at = sooner(at, s->arrival.window_ms + SHERD__STALL_MS);
    return at;
}

uint64_t sherd__session_deadline(const sherd__session *s)
{
    bool answers = sherd__session_ready(s) && s->opt.role == SHERD__NODE &&
                   sherd__tasks_given_up(&s->open);
    return answers ? 0 : next_clock(s);
}

/* Moves the peer's deadlines so that those that have passed expire in SHERD__LATE_MS. */
static void forgive(sherd__session *s, uint64_t late_ms)
{
    uint64_t by = late_ms + SHERD__LATE_MS;
    s->graced = true;
    s->start_ms += by;
    s->ping_ms += by;
    s->record_ms += by;
    s->arrival.window_ms += by;
    s->stats.last_heard_ms += by;
}

static void check_stalls(sherd__session *s)
{
    sherd__arrival *a = &s->arrival;
    if (record_open(s) && s->now_ms >= s->record_ms + SHERD__STALL_MS)
        sherd__session_end(s, SHERD_ESILENT, true, "peer left a record unfinished for %u ms",
                           SHERD__STALL_MS);
    if (!a->active || s->now_ms < a->window_ms + SHERD__STALL_MS) return;
    if (a->got - a->window_got < SHERD__STALL_BYTES)
        sherd__session_end(s, SHERD_ESILENT, true,
                           "body %" PRIu32 " stalled at %" PRIu64 " of %" PRIu64 " bytes: %" PRIu64
                           " in %u ms",
                           a->task.task, a->got, a->info.len, a->got - a->window_got,
                           SHERD__STALL_MS);
    a->window_ms = s->now_ms;
    a->window_got = a->got;
}

static void check_life(sherd__session *s)
{
    uint64_t silent_ms = s->now_ms - sooner(s->now_ms, s->stats.last_heard_ms);
    if (!s->held) {
        if (silent_ms >= SHERD__DEAD_MS)
            sherd__session_end(s, SHERD_ESILENT, true, "peer was silent for %" PRIu64 " ms",
                               silent_ms);
        else check_stalls(s);
    }
    if (s->ended || s->now_ms < ping_at(s)) return;
    s->ping_ms = s->now_ms;
    s->ping_sent++;
    s->ping_due = true;
}

void sherd__session_tick(sherd__session *s, uint64_t now_ms, sherd__event *event)
{
    sherd__event_clear(event);
    clock_to(s, now_ms);
    sherd__answer_cancelled(s, SHERD__ANSWERS_TICK);
    uint64_t due = next_clock(s);
    if (s->now_ms < due) return;
    if (!s->ended && !leaving(s) && !s->graced && s->now_ms - due > SHERD__LATE_MS) {
        forgive(s, s->now_ms - due);
        return;
    }
    if (!s->ended) {
        if (leaving(s)) end_after_bye(s);
        else if (s->ready) check_life(s);
        else
            sherd__session_end(s, SHERD_ESILENT, true, "handshake not done within %u ms",
                               SHERD__HANDSHAKE_MS);
    }
    sherd__session_emit_closed(s, event);
}

void sherd__session_hold(sherd__session *s, bool held, uint64_t now_ms)
{
    clock_to(s, now_ms);
    if (s->held && !held) {
        s->stats.last_heard_ms = later(s->stats.last_heard_ms, s->now_ms);
        s->record_ms = s->arrival.window_ms = s->now_ms;
        s->arrival.window_got = s->arrival.got;
    }
    s->held = held;
}

bool sherd__session_ready(const sherd__session *s)
{
    return s->ready && !s->ended && !leaving(s);
}

const sherd__hello *sherd__session_peer(const sherd__session *s)
{
    return &s->peer;
}

const sherd__session_stats *sherd__session_stats_of(const sherd__session *s)
{
    return &s->stats;
}

void sherd__session_unsent(sherd__session *s, uint64_t bytes)
{
    s->stats.unsent = bytes;
}

uint64_t sherd__session_moved(const sherd__session *s)
{
    uint64_t out = s->stats.moved_out;
    return s->stats.moved_in + out - sooner(out, s->stats.unsent);
}

/* ---- public calls ---- */

static bool may_send(const sherd__session *s, sherd__role role)
{
    return s->opt.role == role && sherd__session_ready(s);
}

static bool sendable(const sherd__fragment *f, sherd__origin origin)
{
    const sherd__fragment_info *info = f ? sherd__fragment_info_of(f) : NULL;
    return info && info->origin == origin && info->len / SHERD__CHUNK < UINT32_MAX;
}

int sherd__session_put(sherd__session *s, uint64_t job, uint32_t block, sherd__fragment *f)
{
    if (!may_send(s, SHERD__COORDINATOR) || job == 0 || block == 0 || !sendable(f, SHERD__HIDDEN))
        return SHERD_EINVAL;
    int err = sherd__bulks_reserve(&s->bulks);
    if (err) return err;
    sherd__bulk item = { .kind = SHERD__BULK_FRAGMENT,
                         .fragment = f,
                         .task = { .job = job, .task = block } };
    sherd__bulk_push(s, &item);
    return SHERD_OK;
}

static bool task_valid(const sherd__task *t)
{
    if (t->job == 0 || t->task == 0 || t->left == 0 || t->primes_len > SHERD__PRIMES_MAX)
        return false;
    for (uint32_t i = 0; i < t->primes_len; i++)
        if (t->primes[i] < 3 || t->primes[i] >= 1u << 24) return false;
    return !(t->flags & ~(uint32_t)(SHERD__DROP_LEFT | SHERD__DROP_RIGHT)) &&
           t->result.origin == SHERD__RESULT && sherd__fragment_info_check(&t->result, NULL) == 0;
}

int sherd__session_task(sherd__session *s, const sherd__task *task)
{
    if (!may_send(s, SHERD__COORDINATOR) || !task_valid(task)) return SHERD_EINVAL;
    int err = sherd__bulks_reserve(&s->bulks);
    if (!err) err = sherd__tasks_add(&s->open, task, s->bulks.tail);
    if (err) return err;
    sherd__bulk item = { .kind = SHERD__BULK_TASK, .task = *task };
    sherd__bulk_push(s, &item);
    s->stats.tasks++;
    return SHERD_OK;
}

int sherd__session_drop(sherd__session *s, uint64_t job, uint32_t block)
{
    if (!may_send(s, SHERD__COORDINATOR) || job == 0) return SHERD_EINVAL;
    int err = sherd__bulks_reserve(&s->bulks);
    if (err) return err;
    sherd__bulk item = { .kind = SHERD__BULK_DROP, .task = { .job = job, .task = block } };
    sherd__bulk_push(s, &item);
    return SHERD_OK;
}

/* Cancels an open task. Returns true if the node knows about the task and will answer. */
static bool cancel_open(sherd__session *s, sherd__open_task *open)
{
    if (open->sequence >= s->bulks.head) { /* its TASK has not been sent: no message is needed */
        sherd__bulk_cancel(s, open->sequence);
        sherd__tasks_remove(&s->open, open);
        return false;
    }
    open->cancelled = true;
    return true;
}

static bool arriving(const sherd__session *s, uint64_t job, uint32_t task, uint32_t attempt)
{
    const sherd__arrival *a = &s->arrival;
    return a->active && a->task.job == job &&
           (task == 0 || (a->task.task == task && a->task.attempt == attempt));
}

static int push_cancel(sherd__session *s, uint64_t job, uint32_t task, uint32_t attempt)
{
    sherd__record r = { .type = SHERD__REC_CANCEL, .job = job, .number = task, .part = attempt };
    return sherd__control_push(s, &r, NULL, SHERD__CONTROLS_MAX);
}

static int cancel_job(sherd__session *s, uint64_t job)
{
    int err = push_cancel(s, job, 0, 0);
    if (err) return err;
    for (sherd__open_task *o = sherd__tasks_first(&s->open, job), *next; o; o = next) {
        next = sherd__tasks_next(o);
        (void)cancel_open(s, o);
    }
    return SHERD_OK;
}

int sherd__session_cancel(sherd__session *s, uint64_t job, uint32_t task, uint32_t attempt)
{
    if (!may_send(s, SHERD__COORDINATOR) || job == 0 || (task == 0 && attempt)) return SHERD_EINVAL;
    int err = SHERD_OK;
    if (task == 0) {
        err = cancel_job(s, job);
    } else if (!arriving(s, job, task, attempt)) {
        sherd__open_task *open = sherd__tasks_find(&s->open, job, task, attempt);
        if (!open || open->cancelled) return SHERD_EINVAL;
        if (open->sequence < s->bulks.head) err = push_cancel(s, job, task, attempt);
        if (!err) cancel_open(s, open);
    }
    if (!err && arriving(s, job, task, attempt)) sherd__arrival_skip(s);
    return err;
}

int sherd__session_result(sherd__session *s, const sherd__task *task, sherd__fragment *f)
{
    if (!may_send(s, SHERD__NODE) || !sendable(f, SHERD__RESULT)) return SHERD_EINVAL;
    sherd__open_task *open = sherd__tasks_find(&s->open, task->job, task->task, task->attempt);
    if (!open) return SHERD_EUNASKED;
    int err = sherd__bulks_reserve(&s->bulks);
    if (err) return err;
    sherd__tasks_remove(&s->open, open);
    sherd__bulk item = { .kind = SHERD__BULK_FRAGMENT, .fragment = f, .task = *task };
    sherd__bulk_push(s, &item);
    s->stats.results++;
    return SHERD_OK;
}

int sherd__session_refuse(sherd__session *s, const sherd__refusal *r)
{
    if (!may_send(s, SHERD__NODE) || r->job == 0 || (r->block == 0) == (r->task == 0) ||
        r->code >= 0)
        return SHERD_EINVAL;
    sherd__open_task *open = NULL;
    if (r->task) {
        open = sherd__tasks_find(&s->open, r->job, r->task, r->attempt);
        if (!open) return SHERD_EUNASKED;
    }
    int err = sherd__control_refuse(s, r, SHERD__ANSWERS_MAX);
    if (err == SHERD_EBUSY)
        sherd__session_end(s, SHERD_EBUSY, true, "peer does not read its answers");
    else if (!err && open) sherd__tasks_remove(&s->open, open);
    return err;
}
