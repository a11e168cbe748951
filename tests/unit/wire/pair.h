/*
 * A coordinator's and a node's session joined in memory, with a node that answers by itself, for
 * the session tests and the fuzzers. Every event becomes one line of a log, so that two runs can be
 * compared.
 */
#ifndef TESTS_UNIT_WIRE_PAIR_H
#define TESTS_UNIT_WIRE_PAIR_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "crypto/fragment_make.h"
#include "wire/record.h"
#include "wire/session.h"

#define LOG_MAX 8192
#define PAIR_JOB 0xabcu

typedef struct side {
    sherd__session *s;
    uint8_t *wire; /* all bytes that it sent */
    size_t wire_len, wire_cap;
    char log[LOG_MAX];
    size_t log_len;
    int err;          /* the error that ended it */
    int events[16];   /* number of events of each kind */
    uint64_t held;    /* bytes allocated by place and not returned */
    uint64_t room;    /* place refuses more than this */
    int silent_tasks; /* node: does not answer tasks */
} side;

typedef struct pair {
    side co, no;
    uint64_t now;
} pair;

static inline uint8_t *pair_place(void *ctx, uint64_t job, uint32_t number, uint64_t len)
{
    side *e = ctx;
    (void)job;
    (void)number;
    if (len > e->room - e->held) return NULL;
    uint8_t *p = malloc(len);
    if (p) e->held += len;
    return p;
}

static inline void pair_unplace(void *ctx, uint8_t *bytes, uint64_t len)
{
    side *e = ctx;
    e->held -= len;
    free(bytes);
}

static inline void pair_tap(void *ctx, bool out, const uint8_t *bytes, size_t len)
{
    side *e = ctx;
    if (!out) return;
    if (e->wire_len + len > e->wire_cap) {
        e->wire_cap = 2 * (e->wire_len + len);
        e->wire = realloc(e->wire, e->wire_cap);
        if (!e->wire) abort();
    }
    memcpy(e->wire + e->wire_len, bytes, len);
    e->wire_len += len;
}

static inline int side_open(side *e, sherd__role role, uint64_t now_ms)
{
    memset(e, 0, sizeof *e);
    e->room = UINT64_C(1) << 24;
    sherd__session_options o = {
        .role = role,
        .hello = { .software = "sherd 0.1.0",
                   .blas_core = "Haswell",
                   .backend = "cpu",
                   .threads = 2,
                   .memory = 1u << 30,
                   .gflops = 12.5 },
        .now_ms = now_ms,
        .place = pair_place,
        .unplace = pair_unplace,
        .place_ctx = e,
        .tap = pair_tap,
        .tap_ctx = e,
    };
    return sherd__session_new(&e->s, &o);
}

static inline void side_close(side *e)
{
    sherd__session_free(e->s);
    free(e->wire);
    e->s = NULL;
    e->wire = NULL;
}

static inline int pair_open(pair *p)
{
    p->now = 1000;
    int err = side_open(&p->co, SHERD__COORDINATOR, p->now);
    return err ? err : side_open(&p->no, SHERD__NODE, p->now);
}

static inline void pair_close(pair *p)
{
    side_close(&p->co);
    side_close(&p->no);
}

static inline uint32_t hash_bytes(const uint8_t *p, uint64_t n)
{
    uint32_t h = 2166136261u;
    for (uint64_t i = 0; i < n; i++) h = (h ^ p[i]) * 16777619u;
    return h;
}

static inline void side_log(side *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static inline void side_log(side *e, const char *fmt, ...)
{
    if (e->log_len >= LOG_MAX - 1) return;
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(e->log + e->log_len, LOG_MAX - e->log_len, fmt, ap);
    va_end(ap);
    if (n > 0) e->log_len += (size_t)n;
    if (e->log_len > LOG_MAX - 1) e->log_len = LOG_MAX - 1;
}

/* Fills a body with bytes that depend on their place and their owner. */
static inline int fill_pattern(void *ctx, uint64_t offset, uint8_t *out, size_t len)
{
    for (size_t i = 0; i < len; i++)
        out[i] = (uint8_t)((offset + i) * 31 + (uintptr_t)ctx + ((offset + i) >> 9));
    return SHERD_OK;
}

static inline int result_of(sherd__fragment **out, const sherd__task *t)
{
    sherd__fragment_source src = { .fill = fill_pattern, .ctx = (void *)(uintptr_t)t->task };
    return sherd__fragment_new_source(out, &t->result, src);
}

/* Returns the description of one dense group of rows x cols bytes, with its table. */
static inline sherd__fragment_info block_info(uint64_t rows, uint64_t cols)
{
    return (sherd__fragment_info){ .origin = SHERD__HIDDEN,
                                   .dtype = 3,
                                   .groups = 1,
                                   .rows = rows,
                                   .cols = cols,
                                   .len = 8 + rows * cols };
}

static inline int block_of(sherd__fragment **out, uint64_t rows, uint64_t cols)
{
    sherd__fragment_info info = block_info(rows, cols);
    uint8_t *bytes = sherd__alloc(info.len);
    *out = NULL;
    if (!bytes) return SHERD_ENOMEM;
    if (fill_pattern((void *)1, 0, bytes, info.len)) abort();
    sherd__put_u32(bytes, (uint32_t)rows);
    sherd__put_u32(bytes + 4, (uint32_t)cols);
    int err = sherd__fragment_take(out, &info, bytes, NULL, NULL);
    if (err) sherd__free(bytes);
    return err;
}

static inline int put_block(pair *p, uint64_t job, uint32_t block, uint64_t rows, uint64_t cols)
{
    sherd__fragment *f;
    int err = block_of(&f, rows, cols);
    if (!err) err = sherd__session_put(p->co.s, job, block, f);
    if (err) sherd__fragment_free(f);
    return err;
}

static inline sherd__task task_of(uint64_t job, uint32_t task, uint64_t rows, uint64_t cols)
{
    return (sherd__task){ .job = job,
                          .task = task,
                          .attempt = 1,
                          .op = SHERD__OP_MULTIPLY,
                          .left = 1,
                          .right = 2,
                          .result = { .origin = SHERD__RESULT,
                                      .dtype = 1,
                                      .rows = rows,
                                      .cols = cols,
                                      .len = 8 * rows * cols } };
}

/* The node of the tests refuses every fifth task and answers all others at once. */
static inline void node_answers(side *e, const sherd__task *t)
{
    sherd__fragment *f = NULL;
    if (e->silent_tasks) return;
    if (t->task % 5 == 0) {
        sherd__refusal r = { .job = t->job,
                             .task = t->task,
                             .attempt = t->attempt,
                             .code = SHERD_EREFUSED,
                             .text = "no such block" };
        (void)!sherd__session_refuse(e->s, &r);
        return;
    }
    if (result_of(&f, t) || sherd__session_result(e->s, t, f)) sherd__fragment_free(f);
}

static inline void side_fragment(side *e, const char *what, const sherd__event *ev, uint32_t number)
{
    const sherd__fragment_info *i = sherd__fragment_info_of(ev->fragment);
    side_log(e, "%s %" PRIx64 " %u %" PRIu64 "x%" PRIu64 " %08x\n", what, ev->job, number, i->rows,
             i->cols, hash_bytes(sherd__fragment_bytes(ev->fragment), i->len));
    sherd__fragment_free(ev->fragment);
}

static inline void side_event(side *e, const sherd__event *ev)
{
    e->events[ev->kind]++;
    switch (ev->kind) {
    case SHERD__EV_NONE: break;
    case SHERD__EV_READY: side_log(e, "ready %u\n", ev->hello.minor_max); break;
    case SHERD__EV_BLOCK: side_fragment(e, "block", ev, ev->block); break;
    case SHERD__EV_DROP: side_log(e, "drop %" PRIx64 " %u\n", ev->job, ev->block); break;
    case SHERD__EV_TASK:
        side_log(e, "task %" PRIx64 " %u.%u op %u\n", ev->job, ev->task.task, ev->task.attempt,
                 ev->task.op);
        node_answers(e, &ev->task);
        break;
    case SHERD__EV_CANCEL: side_log(e, "cancel %" PRIx64 " %u\n", ev->job, ev->number); break;
    case SHERD__EV_RESULT: side_fragment(e, "result", ev, ev->task.task); break;
    case SHERD__EV_REFUSED:
        side_log(e, "refused %" PRIx64 " %u %u: %s\n", ev->job, ev->block, ev->refusal.task,
                 ev->refusal.text);
        break;
    case SHERD__EV_CLOSED:
        e->err = ev->err;
        side_log(e, "closed %s\n", sherd_err_name(ev->err));
        break;
    }
}

/* Feeds len bytes, at most `step` at a time; stops when the session ends. Returns its last
 * result. */
static inline int side_feed(side *e, const uint8_t *in, size_t len, size_t step, uint64_t now)
{
    for (size_t off = 0; off < len;) {
        size_t used = 0, n = len - off < step ? len - off : step;
        sherd__event ev;
        int err = sherd__session_feed(e->s, in + off, n, now, &used, &ev);
        side_event(e, &ev);
        if (err) return err;
        off += used;
    }
    return SHERD_OK;
}

/* Moves once what `from` has to send. */
static inline size_t pair_move(pair *p, side *from, side *to, size_t step)
{
    const uint8_t *out;
    size_t n = sherd__session_pending(from->s, p->now, &out);
    if (n) (void)!side_feed(to, out, n, step, p->now);
    sherd__session_sent(from->s, n);
    return n;
}

static inline void pair_run(pair *p, size_t step)
{
    while (pair_move(p, &p->co, &p->no, step) + pair_move(p, &p->no, &p->co, step) > 0) {}
}

static inline void side_tick(side *e, uint64_t now)
{
    sherd__event ev;
    sherd__session_tick(e->s, now, &ev);
    side_event(e, &ev);
}

/* Sends the coordinator's requests of the recorded conversation. Errors are returned, not
 * asserted. */
static inline int pair_converse(pair *p, uint64_t rows)
{
    int err = put_block(p, PAIR_JOB, 1, rows, 3);
    if (!err) err = put_block(p, PAIR_JOB, 2, 3, 2);
    for (uint32_t i = 1; i <= 6 && !err; i++) {
        sherd__task t = task_of(PAIR_JOB, i, rows, 2);
        if (i == 3) t.op = SHERD__OP_TANH, t.right = 0;
        if (i == 4) {
            t.primes_len = 2;
            t.primes[0] = 5931641;
            t.primes[1] = 5931637;
            t.result.dtype = SHERD__RESIDUES;
            t.result.primes = 2;
            t.result.len = 12 * rows;
        }
        err = sherd__session_task(p->co.s, &t);
    }
    if (!err) err = sherd__session_drop(p->co.s, PAIR_JOB, 2);
    if (!err) err = sherd__session_drop(p->co.s, PAIR_JOB, 0);
    return err;
}

#endif
