/*
 * Hostile coordinators, scripted: two clients of one task loop put blocks, give tasks of every
 * operation over them (products, element-wise, gradients, rounds of all-reduce groups, secure sums
 * over the node's own examples), cancel, drop, disconnect and connect again, as the input says.
 * They also send the requests of a secure sum or of an all-reduce group, correct ones or with
 * changed numbers (worker_steps.h, which also checks the answers against the rules of a round), and
 * members of groups deliver blocks, refuse them or leave. The input selects memory, peers and
 * policy. In all cases every task has at most one result, and when all clients have left, the whole
 * budget is free and no task is counted.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/executor.h"
#include "crypto/fragment_make.h"
#include "node/account.h"
#include "node/worker.h"
#include "learn/local_data.h"
#include "sherd/mat.h"
#include "tests/fuzz/worker_steps.h"
#include "wire/identity.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define MIB ((uint64_t)1 << 20)
#define NOW 1

typedef struct script {
    const uint8_t *at, *end;
} script;

static uint32_t next(script *s)
{
    return s->at < s->end ? *s->at++ : 0;
}

/* Mostly small numbers, sometimes any 32-bit number. */
static uint32_t number(script *s)
{
    uint32_t x = next(s);
    return x < 224 ? x % 16 : x << 24 | next(s) << 16 | next(s) << 8 | next(s);
}

typedef struct peer {
    sherd__session *co, *no;
    sherd__client *client; /* NULL: the node has ended it */
    sherd__worker *worker;
    uint32_t tasks, answers;
    steps steps;
} peer;

/* A link of an all-reduce group, to a member that accepts everything. */
typedef struct wire {
    sherd__allreduce *allreduce;
    uint32_t member;
    sherd__session *co, *no; /* NULL: not up */
    bool open;
} wire;

enum { WIRES = 64, ASKED = 1 }; /* attempt number of the requests of worker_steps.h */

static sherd_identity *identity;
static sherd__own own;
static double examples[12][3];
static sherd__peer listed[N];
static wire wires[WIRES];
static uint32_t wires_len;
static bool woken;

static void join(peer *p, sherd__worker *w)
{
    sherd__session_options co = { .role = SHERD__COORDINATOR, .now_ms = NOW },
                           no = { .role = SHERD__NODE, .now_ms = NOW };
    *p = (peer){ .worker = w };
    int err = sherd__session_new(&p->co, &co);
    if (!err) err = sherd__worker_join(w, &p->client, p, NULL, 0);
    if (!err) sherd__worker_session(p->client, &no);
    if (!err) err = sherd__session_new(&p->no, &no);
    if (err) abort();
}

static void hear(void *ctx, sherd__event *e)
{
    peer *p = ctx;
    steps *m = &p->steps;
    if (e->kind == SHERD__EV_RESULT) {
        const uint8_t *bytes = sherd__fragment_bytes(e->fragment);
        uint64_t len = sherd__fragment_info_of(e->fragment)->len;
        p->answers++;
        if (e->task.attempt == ASKED) check_answer(m, &e->task, bytes, len);
        if (e->task.op == SHERD__OP_JOIN && len == SHERD__SECURE_CARD) memcpy(m->cards, bytes, len);
        if (e->task.op == SHERD__OP_CONFIRM && len == SHERD__SECURE_SIGNATURE)
            memcpy(m->signatures[0], bytes, len);
    }
    sherd__fragment_free(e->fragment);
}

/* Moves what one session sends to the other; returns the bytes moved. */
static size_t move(sherd__session *from, sherd__session *to,
                   void (*take)(void *ctx, sherd__event *e), void *ctx)
{
    const uint8_t *bytes;
    size_t len = sherd__session_pending(from, NOW, &bytes);
    for (size_t at = 0, used; at < len; at += used) {
        sherd__event e;
        int err = sherd__session_feed(to, bytes + at, len - at, NOW, &used, &e);
        take(ctx, &e);
        if (err) break;
    }
    sherd__session_sent(from, len);
    return len;
}

static void serve(void *ctx, sherd__event *e)
{
    peer *p = ctx;
    if (p->client) sherd__worker_event(p->client, p->no, e);
    if (e->kind == SHERD__EV_CLOSED) p->client = NULL;
}

static size_t move_out(peer *p)
{
    return move(p->co, p->no, serve, p);
}

static size_t move_back(peer *p)
{
    return move(p->no, p->co, hear, p);
}

static void exchange(peer *p)
{
    for (int i = 0; i < 64 && move_out(p) + move_back(p) > 0; i++) continue;
}

static void cut(peer *p)
{
    sherd__event e;
    sherd__session_eof(p->no, SHERD_ECLOSED, "cut", &e);
    if (p->client) sherd__worker_event(p->client, p->no, &e);
    p->client = NULL;
    sherd__session_free(p->no);
    sherd__session_free(p->co);
    steps_free(&p->steps);
}

/* ---- members of all-reduce groups ------------------------------------------------------------ */

static int open_wire(void *ctx, void **link, sherd__allreduce *c, uint32_t member,
                     const sherd__peer *to)
{
    (void)ctx, (void)to;
    if (wires_len == WIRES) return SHERD_ECONNECT;
    wires[wires_len] = (wire){ .allreduce = c, .member = member, .open = true };
    *link = &wires[wires_len++];
    return SHERD_OK;
}

static void discard(void *ctx, sherd__event *e)
{
    (void)ctx;
    sherd__fragment_free(e->fragment);
}

static void flush_wire(void *ctx, void *link)
{
    wire *w = link;
    (void)ctx;
    if (!w->co) return;
    while (move(w->no, w->co, discard, NULL) + move(w->co, w->no, discard, NULL) > 0) continue;
}

static void close_wire(void *ctx, void *link)
{
    (void)ctx;
    ((wire *)link)->open = false;
}

/* The requested links come up, or fail. */
static void raise_wires(sherd__worker *worker, bool up)
{
    sherd__session_options co = { .role = SHERD__COORDINATOR, .now_ms = NOW },
                           no = { .role = SHERD__NODE, .now_ms = NOW };
    for (uint32_t i = 0; i < wires_len; i++) {
        wire *w = &wires[i];
        if (!w->open || w->co) continue;
        if (!up) {
            w->open = false;
            sherd__worker_link_down(worker, w->allreduce, w->member, SHERD_ECONNECT, "no");
            continue;
        }
        if (sherd__session_new(&w->co, &co) || sherd__session_new(&w->no, &no)) abort();
        flush_wire(NULL, w);
        sherd__worker_link_up(worker, w->allreduce, w->member, w->co);
    }
}

static void drop_wires(sherd__worker *worker)
{
    for (uint32_t i = 0; i < wires_len; i++) {
        wire *w = &wires[i];
        if (!w->open) continue;
        w->open = false;
        sherd__worker_link_down(worker, w->allreduce, w->member, SHERD_ECLOSED, "cut");
    }
}

/* Members refuse the blocks of the round's first step, or of its second. */
static void refuse_wires(const peer *p, uint32_t step)
{
    const steps *m = &p->steps;
    sherd__refusal r = { .job = GROUPS + m->allreduce,
                         .code = SHERD_ENOMEM,
                         .block = sherd__allreduce_block(m->allreduce_round, step % 2) };
    for (uint32_t i = 0; i < wires_len; i++)
        if (wires[i].open)
            sherd__worker_link_refused(p->worker, wires[i].allreduce, wires[i].member, &r);
}

static void free_wires(void)
{
    for (uint32_t i = 0; i < wires_len; i++) {
        sherd__session_free(wires[i].co);
        sherd__session_free(wires[i].no);
    }
    wires_len = 0;
}

/* Member 1 of a group sends a block: that of the step, or one from the script. */
static void bring(peer *p, script *s)
{
    const sherd__fingerprint *key = sherd__identity_fingerprint(puppet[1]);
    uint64_t id = sherd__worker_member(p->worker, key), round = p->steps.allreduce_round;
    uint32_t block = next(s) % 4 ? sherd__allreduce_block(round, next(s) % 2) : number(s);
    sherd__fragment_info i = {
        .origin = SHERD__HIDDEN, .dtype = SHERD_I64, .rows = 1, .cols = 1 + next(s) % 2
    };
    sherd__fragment *f;
    i.len = 8 * i.cols;
    sherd__account *account = NULL;
    uint8_t *bytes = sherd__worker_member_place(p->worker, &account, key, id, block, i.len);
    if (!bytes) return;
    memset(bytes, (int)next(s), i.len);
    if (sherd__fragment_take(&f, &i, bytes, sherd__worker_unplace, account->pool) != 0) abort();
    if (sherd__worker_member_block(p->worker, account, key, id, block, f) != 0)
        sherd__worker_member_gone(p->worker, account, key, id);
}

/* Member 1 has lost the node's link to it. */
static void part(peer *p)
{
    const sherd__fingerprint *key = sherd__identity_fingerprint(puppet[1]);
    sherd__worker_member_gone(p->worker, NULL, key, sherd__worker_member(p->worker, key));
}

/* ---- requests -------------------------------------------------------------------------------- */

static void block(peer *p, uint32_t number_, uint8_t dtype, uint64_t rows, uint64_t cols,
                  const void *bytes)
{
    sherd__fragment_info i = { .origin = SHERD__HIDDEN,
                               .dtype = dtype,
                               .rows = rows,
                               .cols = cols,
                               .len = rows * cols * sherd_dtype_size((sherd_dtype)dtype) };
    sherd__fragment *f;
    uint8_t *copy = calloc(1, i.len + 1);
    if (!copy) abort();
    memcpy(copy, bytes, i.len);
    if (sherd__fragment_take(&f, &i, copy, NULL, NULL) != 0) abort();
    if (sherd__session_drop(p->co, JOB, number_) != 0 ||
        sherd__session_put(p->co, JOB, number_, f) != 0)
        sherd__fragment_free(f);
}

/* Sends examples of a group: eight rows, or fewer. */
static void send_pack(peer *p, script *s)
{
    uint32_t rows[8], len = next(s) % 4 ? 8 : next(s) % 9;
    const uint32_t at = sherd__allreduce_pack(p->steps.packs++);
    double values[16];
    for (uint32_t i = 0; i < 8; i++) rows[i] = next(s) % 4 ? i : number(s);
    for (uint32_t i = 0; i < 16; i++) values[i] = (double)i / 8;
    block(p, at, SHERD_U32, 1, len, rows);
    block(p, at + 1, SHERD_F64, len, 2, values);
    block(p, at + 2, SHERD_F64, len, 1, values);
}

static void ask(peer *p, script *s)
{
    steps *m = &p->steps;
    question q = { 0 };
    const uint32_t kind = next(s) % 21, spoil = next(s);
    m->era += kind < 3; /* a round may start */
    switch (kind) {
    case 0:
        m->clip = spoil & 16 ? 1 : 0;
        m->noise = spoil & 32 ? 3 : 0;
        ask_join(m, &q);
        block(p, TEXT, SHERD_U8, 1, sizeof network - 1, network);
        break;
    case 1: ask_roster(m, &q); break;
    case 2: ask_seal(m, &q); break;
    case 3: hiding(m, &q); break;
    case 4: ask_confirm(m, &q); break;
    case 5: ask_open(m, &q, m->checking == ((spoil & 16) != 0)); break;
    case 6:
    case 7: {
        static const double start[COUNT] = { 0.5, -0.25, 0.125 };
        block(p, TEXT, SHERD_U8, 1, sizeof layers - 1, layers);
        block(p, START, SHERD_F64, 1, COUNT, start);
        ask_meet(m, &q, identity, kind == 7, spoil & 16);
        break;
    }
    case 8: ask_bare(&q, SHERD__OP_CONNECT, 1 + (spoil >> 4) % 2); break;
    case 9:
    case 10: ask_step(m, &q, kind == 10); break;
    case 11: ask_state(m, &q, spoil & 16); break;
    case 12: ask_bare(&q, SHERD__OP_WHERE, SHERD__ALLREDUCE_WHERE); break;
    case 13: send_pack(p, s); return;
    case 14: bring(p, s); return;
    case 15:
        block(p, TEXT, SHERD_U8, 1, sizeof layers - 1, layers);
        block(p, INPUTS, SHERD_F64, 8, 2, examples);
        block(p, TARGETS, SHERD_F64, 8, 1, examples);
        ask_gradient(&q);
        break;
    case 16: raise_wires(p->worker, spoil & 1); return;
    case 17: ask_check(m, &q); break;
    case 18: refuse_wires(p, spoil >> 4); return;
    case 19: part(p); return;
    default: sherd__worker_poll(p->worker); return;
    }
    for (uint32_t i = 0; i < spoil % 4 && spoil & 8; i++) { /* changes some numbers of it */
        uint32_t at = next(s), value = number(s);
        if (at < 128) q.left[at % q.left_len] = value;
        else if (at < 192 && q.right_cols) q.right[value % sizeof q.right] ^= 1;
        else if (at < 224) q.left_len = 1 + value % 64;
        else q.cols = value % 64;
    }
    const uint32_t right = q.right_cols ? PARAMS : 0;
    block(p, QUESTION, SHERD_I64, 1, q.left_len, q.left);
    if (right) block(p, right, q.right_dtype, q.right_rows, q.right_cols, q.right);
    sherd__task t = { .job = JOB,
                      .task = number_of(m, &q, p->tasks),
                      .attempt = ASKED,
                      .op = q.op,
                      .left = QUESTION,
                      .right = right,
                      .result = { .origin = SHERD__RESULT,
                                  .dtype = q.dtype,
                                  .rows = q.rows,
                                  .cols = q.cols,
                                  .len = q.rows * q.cols *
                                         sherd_dtype_size((sherd_dtype)q.dtype) } };
    p->tasks += sherd__session_task(p->co, &t) == 0;
}

/* Sends many blocks of one job, which are freed in slices when it is dropped. */
static void many(peer *p, script *s)
{
    uint32_t len = 8 * next(s);
    for (uint32_t i = 0; i < len; i++) block(p, 5000 + i, SHERD_U8, 1, 1, "x");
}

/* Describes residues of one byte, or another block or result as it was, by bits of a byte that also
 * names the job. */
static void of_bytes(sherd__fragment_info *i, uint32_t bits)
{
    if (!(bits & 0x80)) return;
    const bool left = bits & 0x40;
    const uint64_t lines = left ? i->rows : i->cols, terms = left ? i->cols : i->rows;
    i->primes = (uint8_t)(1 + (bits >> 2) % 8);
    if (i->origin == SHERD__RESULT) {
        i->dtype = SHERD__BYTES;
        i->len = i->rows * i->cols * i->primes;
    } else {
        i->dtype = left ? SHERD__BYTES_LEFT : SHERD__BYTES_RIGHT;
        i->len = (lines + 15) / 16 * i->primes * ((terms + 63) / 64) * 1024;
    }
}

static void put(peer *p, script *s)
{
    static const uint8_t dtypes[] = { SHERD_F64, SHERD_U8, SHERD_U32, SHERD_I64, SHERD_U16 };
    sherd__fragment_info i = { .origin = SHERD__HIDDEN, .dtype = dtypes[next(s) % sizeof dtypes] };
    uint32_t bits = next(s), job = bits % 4, block = number(s);
    bool text = next(s) % 2; /* one row, like a recipe or plan: 1 x bytes of the script */
    if (text) i.dtype = SHERD_U8;
    i.rows = text ? 1 : next(s) % 17;
    i.cols = text ? next(s) : next(s) % 17;
    i.len = i.rows * i.cols * sherd_dtype_size((sherd_dtype)i.dtype);
    of_bytes(&i, bits);
    uint8_t *bytes = calloc(1, i.len + 1);
    sherd__fragment *f;
    if (!bytes) abort();
    for (uint64_t k = 0; k < i.len && s->at < s->end; k++) bytes[k] = (uint8_t)next(s);
    if (sherd__fragment_take(&f, &i, bytes, NULL, NULL) != 0) {
        free(bytes);
        return;
    }
    if (sherd__session_put(p->co, job, block, f) != 0) sherd__fragment_free(f);
}

static void give(peer *p, script *s)
{
    static const uint8_t dtypes[] = { SHERD_F64, SHERD_U8, SHERD_U32, SHERD_I64 };
    p->steps.era++;          /* which may start a round */
    uint32_t bits = next(s); /* evaluated one after the other, in the same order by
                                             * every compiler */
    sherd__task t = { .job = bits % 4 };
    t.task = number(s);
    t.op = next(s) % 24;
    t.left = number(s);
    t.right = number(s);
    t.flags = next(s) % 8;
    t.primes_len = next(s) % 5;
    for (uint32_t i = 0; i < t.primes_len; i++) t.primes[i] = 8388593 - 2 * (number(s) % 512);
    t.result = (sherd__fragment_info){ .origin = SHERD__RESULT, .dtype = dtypes[next(s) % 4] };
    t.result.rows = number(s) % 64;
    t.result.cols = number(s) % 64;
    t.result.len = t.result.rows * t.result.cols * sherd_dtype_size((sherd_dtype)t.result.dtype) *
                   (t.primes_len ? t.primes_len : 1);
    of_bytes(&t.result, bits);
    if (t.result.dtype == SHERD__BYTES) t.primes_len = t.result.primes;
    for (uint32_t i = 0; i < t.primes_len && t.result.dtype == SHERD__BYTES; i++)
        t.primes[i] = 3 + 2 * (number(s) % 128);
    p->tasks += sherd__session_task(p->co, &t) == 0;
}

static void act(peer *p, script *s, sherd__executor *executor)
{
    const uint32_t kind = next(s) % 16;
    switch (kind) {
    case 0:
    case 1: put(p, s); break;
    case 2:
    case 3: give(p, s); break;
    case 4: many(p, s); break;
    case 5: drop_wires(p->worker); break;
    case 6:
    case 7: {
        uint32_t job = next(s) % 4, which = number(s);
        if (kind == 7) (void)!sherd__session_drop(p->co, job, which);
        else (void)!sherd__session_cancel(p->co, job, which, next(s) % 2);
        break;
    }
    case 8: exchange(p); break;
    case 9: /* executes the requested tasks */
        exchange(p);
        (void)sherd__executor_drain(executor);
        exchange(p);
        break;
    case 10:
    case 11:
    case 12:
    case 13:
    case 14: ask(p, s); break;
    default:
        if (next(s) % 4 > 0) {
            (void)sherd__executor_drain(executor);
            break;
        }
        cut(p);
        join(p, p->worker);
        exchange(p);
    }
    if (woken) {
        woken = false;
        sherd__worker_poll(p->worker);
    }
    assert(p->answers <= p->tasks);
}

static void wake(void *ctx)
{
    (void)ctx;
    woken = true;
}

static void begin(void)
{
    if (identity) return;
    if (sherd_identity_new(&identity, NULL) != 0) abort();
    for (int r = 0; r < 12; r++)
        for (int c = 0; c < 3; c++) examples[r][c] = r % 2 + 0.125 * c;
    own.x = sherd_view_c(examples, SHERD_F64, 12, 3);
    steps_init();
    for (int i = 0; i < N; i++) {
        sherd__peer *p = &listed[i];
        *p = (sherd__peer){ .host = "127.0.0.1", .has_key = true, .role = "node" };
        p->key = *sherd__identity_fingerprint(i ? puppet[i] : identity);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    script s = { data, data + len };
    sherd__worker *worker;
    sherd__executor *executor;
    peer peers[2];
    static void *cpu;
    begin();
    sherd__backend_options b = { .threads = 1, .quick = true };
    if (!cpu && sherd__backend_cpu.open(&cpu, &b, NULL) != 0) abort();
    const uint32_t how = next(&s);
    const sherd__peers peers_file = { listed, N };
    sherd__policy policy = SHERD__POLICY_DEFAULT;
    if (how & 4) policy.epsilon = INFINITY;
    if (how & 8) policy.rows_min = 1;
    policy.any_peers = how & 16;
    sherd__worker_options o = { .backend = &sherd__backend_cpu,
                                .backend_ctx = cpu,
                                .memory = how & 2 ? 64 << 10 : 16 * MIB,
                                .self = { .identity = identity,
                                          .data = &own,
                                          .policy = &policy,
                                          .peers = how & 32 ? &peers_file : NULL,
                                          .ledger = { &charges_ops, NULL } },
                                .links = { open_wire, flush_wire, close_wire, NULL },
                                .wake = how & 64 ? wake : NULL };
    const sherd__device device = { .does = SHERD__DOES_ALL,
                                   .depth = 2,
                                   .gflops = how & 1 ? 50 : 1e-3, /* on the loop, or by a call */
                                   .byte_gops = how & 1 ? 50 : 1e-3 };
    o.devices = &device;
    o.devices_len = 1;
    memset(&charges, 0, sizeof charges);
    woken = false;
    if (sherd__executor_new_inline(&executor) != 0) abort();
    o.executor = executor;
    if (sherd__worker_new(&worker, &o) != 0) abort();
    for (int i = 0; i < 2; i++) {
        join(&peers[i], worker);
        exchange(&peers[i]);
    }
    while (s.at < s.end) act(&peers[next(&s) % 2], &s, executor);
    for (int i = 0; i < 2; i++) {
        do exchange(&peers[i]);
        while (sherd__executor_drain(executor));
        cut(&peers[i]);
        assert(peers[i].answers <= peers[i].tasks);
    }
    for (int i = 0; i < 4096 && sherd__worker_memory(worker)->used; i++) {
        while (sherd__executor_drain(executor)) continue;
        sherd__worker_poll(worker);
    }
    free_wires();
    assert(sherd__worker_memory(worker)->used == 0);
    assert(sherd__worker_stats_of(worker)->queued == 0);
    sherd__worker_free(worker);
    sherd__executor_free(executor);
    return 0;
}
