/*
 * The receiving half of a session: converts bytes to events. Headers and control bodies are
 * collected in fixed buffers, or read in place if they are complete. Chunks of a fragment go
 * directly from the input to the memory that was allocated for the fragment. At most one body
 * arrives at a time. Its memory is allocated only after its description has been checked and, for a
 * result, found equal to the one requested. The input is not trusted.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "crypto/fragment_make.h"
#include "wire/message.h"
#include "wire/session_state.h"
#include "wire/size.h"

static int ends(sherd__session *s, const sherd_diag *d)
{
    return sherd__session_end(s, d->code, true, "%s", d->message);
}

/* ---- the arriving body ---- */

void sherd__arrival_skip(sherd__session *s)
{
    sherd__arrival *a = &s->arrival;
    if (!a->bytes) return;
    if (!a->placed) sherd__free(a->bytes);
    else if (s->opt.unplace) s->opt.unplace(s->opt.place_ctx, a->bytes, a->info.len);
    a->bytes = NULL;
}

static void keep(void *ctx, uint8_t *bytes, uint64_t len)
{
    (void)ctx;
    (void)bytes;
    (void)len;
}

static void arrival_place(sherd__session *s)
{
    sherd__arrival *a = &s->arrival;
    /* for an empty body too: a body uses memory beyond its bytes */
    a->placed = s->opt.place != NULL;
    if (a->placed)
        a->bytes = s->opt.place(s->opt.place_ctx, a->task.job, a->task.task, a->info.len);
    else if (a->info.len <= SIZE_MAX) a->bytes = sherd__alloc((size_t)a->info.len);
}

static void arrival_begin(sherd__session *s, const sherd__task *task,
                          const sherd__fragment_info *info)
{
    s->arrival = (sherd__arrival){
        .active = true, .task = *task, .info = *info, .window_ms = s->now_ms
    };
}

/* Sends a REFUSE on behalf of the node's session. */
static int answer_refuse(sherd__session *s, const sherd__refusal *r)
{
    int err = sherd__control_refuse(s, r, SHERD__ANSWERS_MAX);
    if (!err) return SHERD_OK;
    return sherd__session_end(s, err, true,
                              err == SHERD_EBUSY ? "peer does not read its answers"
                                                 : "out of memory for answers");
}

/* Refuses the block that is arriving, and skips its body. */
static int refuse_block(sherd__session *s, int code, const char *why)
{
    sherd__arrival *a = &s->arrival;
    sherd__refusal r = { .job = a->task.job, .block = a->task.task, .code = code };
    snprintf(r.text, sizeof r.text, "%s", why);
    sherd__arrival_skip(s);
    return answer_refuse(s, &r);
}

/* Transfers the allocated memory to a fragment. */
static int arrival_fragment(sherd__session *s, sherd__fragment **out)
{
    sherd__arrival *a = &s->arrival;
    void (*release)(void *, uint8_t *, uint64_t) = NULL;
    if (a->placed) release = s->opt.unplace ? s->opt.unplace : keep;
    int err = sherd__fragment_take(out, &a->info, a->bytes, release, s->opt.place_ctx);
    if (!err) a->bytes = NULL;
    return err;
}

static int block_done(sherd__session *s, sherd__event *event)
{
    sherd__arrival *a = &s->arrival;
    sherd__fragment *f;
    int err = arrival_fragment(s, &f);
    if (err) return refuse_block(s, err, "out of memory for a block");
    event->kind = SHERD__EV_BLOCK;
    event->job = a->task.job;
    event->block = a->task.task;
    event->fragment = f;
    return SHERD_OK;
}

static int result_done(sherd__session *s, sherd__event *event)
{
    sherd__fragment *f;
    int err = arrival_fragment(s, &f);
    if (err) return sherd__session_end(s, err, true, "out of memory for a result");
    event->kind = SHERD__EV_RESULT;
    event->job = s->arrival.task.job;
    event->number = s->arrival.task.task;
    event->task = s->arrival.task;
    event->fragment = f;
    s->stats.results++;
    return SHERD_OK;
}

static int arrival_advance(sherd__session *s, sherd__event *event)
{
    sherd__arrival *a = &s->arrival;
    int err = SHERD_OK;
    if (a->bytes && s->opt.role == SHERD__NODE) {
        sherd_diag d;
        d.code = SHERD_OK;
        if (sherd__fragment_check_part(&a->check, &a->info, a->bytes, a->got, &d))
            return ends(s, &d);
    }
    if (a->got < a->info.len) return SHERD_OK;
    if (a->bytes) err = s->opt.role == SHERD__NODE ? block_done(s, event) : result_done(s, event);
    a->active = false;
    return err;
}

/* ---- first records of bodies ---- */

static int put_begin(sherd__session *s, const uint8_t *body, sherd__event *event)
{
    sherd__task name = { .job = s->rec.job, .task = s->rec.number };
    sherd__fragment_info info;
    sherd_diag d;
    d.code = SHERD_OK; /* cheaper than clearing the struct for each record */
    int err = sherd__message_description_parse(&info, NULL, body, s->body_len, &d);
    if (err) return ends(s, &d);
    if (info.origin != SHERD__HIDDEN)
        return sherd__session_end(s, SHERD_EFRAME, true,
                                  "PUT of a fragment of origin %u: "
                                  "expected %u",
                                  info.origin, SHERD__HIDDEN);
    arrival_begin(s, &name, &info);
    if (s->opt.block_max && sherd__fragment_whole(&info).len > s->opt.block_max) {
        err = refuse_block(s, SHERD_EREFUSED, "the block is larger than this node takes");
    } else {
        arrival_place(s);
        if (!s->arrival.bytes)
            err = refuse_block(s, SHERD_EREFUSED, "the block does not fit into this node's memory");
    }
    return err ? err : arrival_advance(s, event);
}

static bool same_info(const sherd__fragment_info *a, const sherd__fragment_info *b)
{
    return a->origin == b->origin && a->dtype == b->dtype && a->encoding == b->encoding &&
           a->primes == b->primes && a->groups == b->groups && a->rows == b->rows &&
           a->cols == b->cols && a->len == b->len;
}

static int unasked(sherd__session *s, const char *what, uint32_t attempt)
{
    return sherd__session_end(s, SHERD_EUNASKED, true,
                              "%s for task %" PRIu32 ", attempt %" PRIu32 " of job %016" PRIx64
                              ", which is not open",
                              what, s->rec.number, attempt, s->rec.job);
}

static int result_begin(sherd__session *s, const uint8_t *body, sherd__event *event)
{
    sherd__fragment_info info;
    uint32_t attempt;
    sherd_diag d;
    d.code = SHERD_OK; /* cheaper than clearing the struct for each record */
    int err = sherd__message_description_parse(&info, &attempt, body, s->body_len, &d);
    if (err) return ends(s, &d);
    sherd__open_task *open = sherd__tasks_find(&s->open, s->rec.job, s->rec.number, attempt);
    if (!open) return unasked(s, "RESULT", attempt);
    if (!same_info(&info, &open->task.result))
        return sherd__session_end(s, SHERD_EFRAME, true,
                                  "RESULT of task %" PRIu32 ": %" PRIu64 " x %" PRIu64 ", %" PRIu64
                                  " bytes of dtype %u: expected %" PRIu64 " x %" PRIu64 ", %" PRIu64
                                  " bytes of dtype %u",
                                  s->rec.number, info.rows, info.cols, info.len, info.dtype,
                                  open->task.result.rows, open->task.result.cols,
                                  open->task.result.len, open->task.result.dtype);
    bool cancelled = open->cancelled;
    arrival_begin(s, &open->task, &info);
    sherd__tasks_remove(&s->open, open);
    if (!cancelled) {
        arrival_place(s);
        if (!s->arrival.bytes)
            return sherd__session_end(s, SHERD_ENOMEM, true,
                                      "out of memory for a result of %" PRIu64 " bytes", info.len);
    }
    return arrival_advance(s, event);
}

/* ---- control records ---- */

static int hello_done(sherd__session *s, const uint8_t *body, sherd__event *event)
{
    sherd__hello h, *mine = &s->opt.hello;
    sherd_diag d = { 0 };
    if (sherd__message_hello_parse(&h, body, s->body_len, &d)) return ends(s, &d);
    uint32_t minor = h.minor_max < mine->minor_max ? h.minor_max : mine->minor_max;
    if (minor < h.minor_min || minor < mine->minor_min ||
        (s->opt.role == SHERD__COORDINATOR && h.minor_min != h.minor_max))
        return sherd__session_end(s, SHERD_EVERSION, true,
                                  "peer (%s) speaks minor versions "
                                  "%" PRIu32 " to %" PRIu32 ", this side (%s) %" PRIu32
                                  " to %" PRIu32,
                                  h.software, h.minor_min, h.minor_max, mine->software,
                                  mine->minor_min, mine->minor_max);
    if (s->opt.role == SHERD__NODE) {
        uint8_t out[SHERD__CONTROL_MAX];
        sherd__hello welcome = *mine;
        welcome.minor_min = welcome.minor_max = minor;
        if (minor < SHERD__MINOR_DEVICES) welcome.devices_len = 0;
        sherd__record r = { .type = SHERD__REC_WELCOME,
                            .body_len = sherd__message_hello(out, &welcome) };
        int err = sherd__control_push(s, &r, out, SHERD__CONTROLS_MAX);
        if (err) return sherd__session_end(s, err, false, "out of memory for a WELCOME");
    }
    if (minor < SHERD__MINOR_DEVICES) h.devices_len = 0;
    s->ready = true;
    s->peer = h;
    event->kind = SHERD__EV_READY;
    event->hello = h;
    return SHERD_OK;
}

static bool known_op(uint32_t op)
{
    return (op >= SHERD__OP_MULTIPLY && op <= SHERD__OP_REDUCE) ||
           (op >= SHERD__OP_JOIN && op <= SHERD__OP_CONFIRM) ||
           (op >= SHERD__OP_SIGMOID && op <= SHERD__OP_CHECK);
}

static int task_done(sherd__session *s, const uint8_t *body, sherd__event *event)
{
    sherd__task t;
    sherd_diag d;
    d.code = SHERD_OK; /* cheaper than clearing the struct for each record */
    if (sherd__message_task_parse(&t, body, s->body_len, &d)) return ends(s, &d);
    t.job = s->rec.job;
    t.task = s->rec.number;
    t.attempt = s->rec.part;
    s->stats.tasks++;
    if (!known_op(t.op)) {
        sherd__refusal r = { .job = t.job,
                             .task = t.task,
                             .attempt = t.attempt,
                             .code = SHERD_EUNSUPPORTED,
                             .text = "operation is not known here" };
        return answer_refuse(s, &r);
    }
    int err = sherd__tasks_add(&s->open, &t, 0);
    if (err == SHERD_EINVAL)
        return sherd__session_end(s, SHERD_EFRAME, true,
                                  "TASK %" PRIu32 ", attempt %" PRIu32 " is open already", t.task,
                                  t.attempt);
    if (err == SHERD_EBUSY)
        return sherd__session_end(s, SHERD_EFRAME, true, "more than %u open tasks",
                                  SHERD__TASKS_MAX);
    if (err) {
        sherd__refusal r = { .job = t.job,
                             .task = t.task,
                             .attempt = t.attempt,
                             .code = err,
                             .text = "the table of tasks is full" };
        return answer_refuse(s, &r);
    }
    event->kind = SHERD__EV_TASK;
    event->job = t.job;
    event->number = t.task;
    event->task = t;
    return SHERD_OK;
}

static int refuse_done(sherd__session *s, const uint8_t *body, sherd__event *event)
{
    sherd__refusal r;
    sherd_diag d = { 0 };
    if (sherd__message_refuse_parse(&r, body, s->body_len, &d)) return ends(s, &d);
    r.job = s->rec.job;
    r.attempt = s->rec.part;
    if (r.task) {
        r.task = s->rec.number;
        sherd__open_task *open = sherd__tasks_find(&s->open, r.job, r.task, r.attempt);
        if (!open) return unasked(s, "REFUSE", r.attempt);
        bool cancelled = open->cancelled;
        event->task = open->task;
        sherd__tasks_remove(&s->open, open);
        if (cancelled) return SHERD_OK;
    } else {
        r.block = s->rec.number;
    }
    s->stats.refusals++;
    event->kind = SHERD__EV_REFUSED;
    event->job = r.job;
    event->block = r.block;
    event->number = r.task;
    event->refusal = r;
    return SHERD_OK;
}

/* Answers a cancelled task at once with a REFUSE, since every TASK is answered once. */
static int cancel_one(sherd__session *s, sherd__open_task *open)
{
    sherd__refusal r = { .job = open->task.job,
                         .task = open->task.task,
                         .attempt = open->task.attempt,
                         .code = SHERD_EINTERRUPTED };
    sherd__tasks_remove(&s->open, open);
    return answer_refuse(s, &r);
}

static int answer_cancelled(sherd__session *s, unsigned most)
{
    sherd__open_task *open;
    int err = SHERD_OK;
    while (!err && most-- && (open = sherd__tasks_given_up(&s->open))) err = cancel_one(s, open);
    return err;
}

void sherd__answer_cancelled(sherd__session *s, unsigned most)
{
    if (s->opt.role == SHERD__NODE && sherd__session_ready(s)) (void)answer_cancelled(s, most);
}

/* Cancels a whole job. If it has many tasks, later records and ticks answer the rest of them. */
static int cancel_job(sherd__session *s)
{
    sherd__tasks_give_up(&s->open, s->rec.job);
    return answer_cancelled(s, SHERD__ANSWERS_AT_ONCE);
}

static int cancel_done(sherd__session *s, sherd__event *event)
{
    sherd__record *r = &s->rec;
    int err = SHERD_OK;
    if (r->number) {
        sherd__open_task *open = sherd__tasks_find(&s->open, r->job, r->number, r->part);
        if (!open) return SHERD_OK; /* answered already: the two messages crossed */
        err = cancel_one(s, open);
    } else if (r->part) {
        return sherd__session_end(s, SHERD_EFRAME, true,
                                  "CANCEL of attempt %" PRIu32 " of a whole job", r->part);
    } else {
        err = cancel_job(s);
    }
    if (err) return err;
    event->kind = SHERD__EV_CANCEL;
    event->job = event->task.job = r->job;
    event->number = event->task.task = r->number;
    event->task.attempt = r->part;
    return SHERD_OK;
}

static int pong_done(sherd__session *s)
{
    if (s->rec.number <= s->pong_heard || s->rec.number > s->ping_sent)
        return sherd__session_end(s, SHERD_EUNASKED, true,
                                  "PONG %" PRIu32 ": the last PING was "
                                  "%" PRIu32,
                                  s->rec.number, s->ping_sent);
    s->pong_heard = s->rec.number;
    return SHERD_OK;
}

/* Handles a BYE. An error code of the peer usually blames its own peer, which is this side, so only
 * a few codes are kept. */
static int bye_done(sherd__session *s, const uint8_t *body)
{
    char text[SHERD__TEXT_MAX];
    sherd_diag d = { 0 };
    int code;
    if (sherd__message_bye_parse(&code, text, body, s->body_len, &d)) return ends(s, &d);
    s->peer_code = code;
    bool kept = code == SHERD_EVERSION || code == SHERD_EREFUSED || code == SHERD_EBUSY;
    return sherd__session_end(s, kept ? code : SHERD_ECLOSED, false,
                              "peer closed the session%s%s%s%s", code ? " with " : "",
                              code ? sherd_err_name(code) : "", text[0] ? ": " : "", text);
}

static int drop_done(sherd__session *s, sherd__event *event)
{
    event->kind = SHERD__EV_DROP;
    event->job = s->rec.job;
    event->block = s->rec.number;
    return SHERD_OK;
}

/* Handles a complete control record with s->body_len bytes of body. */
static int control_done(sherd__session *s, const uint8_t *body, sherd__event *event)
{
    s->phase = SHERD__IN_HEADER;
    switch (s->rec.type) {
    case SHERD__REC_HELLO:
    case SHERD__REC_WELCOME: return hello_done(s, body, event);
    case SHERD__REC_PUT: return put_begin(s, body, event);
    case SHERD__REC_RESULT: return result_begin(s, body, event);
    case SHERD__REC_TASK: return task_done(s, body, event);
    case SHERD__REC_REFUSE: return refuse_done(s, body, event);
    case SHERD__REC_DROP: return drop_done(s, event);
    case SHERD__REC_CANCEL: return cancel_done(s, event);
    case SHERD__REC_PING: s->pong_due = s->rec.number; return SHERD_OK;
    case SHERD__REC_PONG: return pong_done(s);
    case SHERD__REC_BYE: return bye_done(s, body);
    default: return SHERD_OK;
    }
}

/* ---- headers ---- */

/* Checks whether this record is valid in the current state. */
static int check_state(sherd__session *s)
{
    const sherd__record *r = &s->rec;
    const char *name = sherd__record_name(r->type);
    unsigned peer = s->opt.role == SHERD__COORDINATOR ? SHERD__NODE : SHERD__COORDINATOR;
    bool hello = r->type == SHERD__REC_HELLO || r->type == SHERD__REC_WELCOME;
    if (!name) return SHERD_OK;
    if (!(sherd__record_senders(r->type) & 1u << (peer - 1)))
        return sherd__session_end(s, SHERD_EFRAME, true, "%s record from a %s", name,
                                  peer == SHERD__NODE ? "node" : "coordinator");
    if (hello == s->ready && r->type != SHERD__REC_BYE)
        return sherd__session_end(s, SHERD_EFRAME, true, "%s record %s the handshake", name,
                                  s->ready ? "after" : "before the end of");
    bool overtakes = r->type == SHERD__REC_PING || r->type == SHERD__REC_PONG ||
                     r->type == SHERD__REC_CANCEL || r->type == SHERD__REC_REFUSE ||
                     r->type == SHERD__REC_BYE;
    bool chunk = (r->type == SHERD__REC_PUT || r->type == SHERD__REC_RESULT) && r->part;
    if (s->arrival.active && !overtakes && !chunk)
        return sherd__session_end(s, SHERD_EFRAME, true, "%s record inside a body", name);
    return SHERD_OK;
}

static int chunk_begin(sherd__session *s)
{
    const sherd__record *r = &s->rec;
    sherd__arrival *a = &s->arrival;
    if (!a->active || r->job != a->task.job || r->number != a->task.task || r->part != a->part + 1)
        return sherd__session_end(s, SHERD_EFRAME, true,
                                  "part %" PRIu32 " of body %" PRIu32 " does not belong here",
                                  r->part, r->number);
    uint64_t rest = a->info.len - a->got;
    uint64_t expected = rest < SHERD__CHUNK ? rest : SHERD__CHUNK;
    if (r->body_len != expected)
        return sherd__session_end(s, SHERD_EFRAME, true,
                                  "part %" PRIu32 " has %" PRIu64 " bytes: expected %" PRIu64,
                                  r->part, r->body_len, expected);
    a->part = r->part;
    s->phase = SHERD__IN_CHUNK;
    return SHERD_OK;
}

static int record_begin(sherd__session *s)
{
    sherd_diag d;
    d.code = SHERD_OK;
    if (sherd__record_parse(&s->rec, s->head, &d)) return ends(s, &d);
    s->head_len = 0;
    s->left = s->rec.body_len;
    s->body_len = 0;
    s->stats.records_in++;
    if (sherd__size_counts(s->rec.type)) s->stats.work_in += SHERD__RECORD_BYTES + s->rec.body_len;
    int err = check_state(s);
    if (!err && s->opt.role == SHERD__NODE) err = answer_cancelled(s, SHERD__ANSWERS_RECORD);
    if (err) return err;
    if (!sherd__record_name(s->rec.type)) s->phase = SHERD__IN_SKIP;
    else if (s->rec.part && (s->rec.type == SHERD__REC_PUT || s->rec.type == SHERD__REC_RESULT))
        return chunk_begin(s);
    else s->phase = SHERD__IN_CONTROL;
    return SHERD_OK;
}

/* ---- bytes ---- */

static int take_control(sherd__session *s, const uint8_t *in, size_t len, size_t *used,
                        sherd__event *event)
{
    size_t n = s->left < len ? (size_t)s->left : len;
    bool whole = s->body_len == 0 && n == s->left;
    if (!whole && n) memcpy(s->body + s->body_len, in, n);
    s->body_len += n;
    s->left -= n;
    *used += n;
    if (s->left) return SHERD_OK;
    return control_done(s, whole ? in : s->body, event);
}

static int take_chunk(sherd__session *s, const uint8_t *in, size_t len, size_t *used,
                      sherd__event *event)
{
    sherd__arrival *a = &s->arrival;
    size_t n = s->left < len ? (size_t)s->left : len;
    if (a->bytes && n && in != a->bytes + a->got) memcpy(a->bytes + a->got, in, n);
    a->got += n;
    s->stats.moved_in += n;
    s->left -= n;
    *used += n;
    if (s->left) return SHERD_OK;
    s->phase = SHERD__IN_HEADER;
    return arrival_advance(s, event);
}

int sherd__session_take(sherd__session *s, const uint8_t *in, size_t len, size_t *used,
                        sherd__event *event)
{
    if (s->phase == SHERD__IN_HEADER) {
        size_t n = SHERD__RECORD_BYTES - s->head_len;
        if (n > len) n = len;
        if (n == 0) return SHERD_OK;
        if (s->head_len == 0) s->record_ms = s->now_ms;
        memcpy(s->head + s->head_len, in, n);
        s->head_len += n;
        *used += n;
        if (s->head_len < SHERD__RECORD_BYTES) return SHERD_OK;
        int err = record_begin(s);
        if (err) return err;
    }
    const uint8_t *rest = in + *used;
    size_t rest_len = len - *used;
    if (s->phase == SHERD__IN_CONTROL) return take_control(s, rest, rest_len, used, event);
    if (s->phase == SHERD__IN_CHUNK) return take_chunk(s, rest, rest_len, used, event);
    size_t n = s->left < rest_len ? (size_t)s->left : rest_len; /* SHERD__IN_SKIP */
    s->left -= n;
    *used += n;
    if (s->left == 0) s->phase = SHERD__IN_HEADER;
    return SHERD_OK;
}
