/*
 * Hostile coordinators, scripted: two clients of one task loop put blocks, give tasks of every
 * operation over them (products, element-wise, gradients, rounds of circles, secure sums over the
 * node's own examples), cancel, drop, cut the line and come again, as the input says. However it
 * goes: every task has one result at most, and when both have gone all of the budget is back.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/executor.h"
#include "crypto/fragment_make.h"
#include "node/worker.h"
#include "learn/own.h"
#include "sherd/mat.h"
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

/* Mostly small, sometimes any number of 32 bits. */
static uint32_t number(script *s)
{
    uint32_t x = next(s);
    return x < 224 ? x % 16 : x << 24 | next(s) << 16 | next(s) << 8 | next(s);
}

typedef struct peer {
    sherd_session *co, *no;
    sherd__client *client; /* NULL: the node has ended it */
    sherd__worker *worker;
    uint32_t tasks, answers;
} peer;

static sherd_identity *identity;
static sherd__own own;
static const sherd__policy policy = SHERD__POLICY_DEFAULT;
static double examples[12][3];

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

static size_t move(peer *p, bool out)
{
    sherd_session *from = out ? p->co : p->no, *to = out ? p->no : p->co;
    const uint8_t *bytes;
    size_t len = sherd__session_pending(from, NOW, &bytes);
    for (size_t at = 0, used; at < len; at += used) {
        sherd__event e;
        int err = sherd__session_feed(to, bytes + at, len - at, NOW, &used, &e);
        if (out && p->client) sherd__worker_event(p->client, p->no, &e);
        if (out && e.kind == SHERD__EV_CLOSED) p->client = NULL;
        if (!out) {
            p->answers += e.kind == SHERD__EV_RESULT;
            sherd__fragment_free(e.fragment);
        }
        if (err) break;
    }
    sherd__session_sent(from, len);
    return len;
}

static void exchange(peer *p)
{
    for (int i = 0; i < 64 && move(p, true) + move(p, false) > 0; i++) continue;
}

static void cut(peer *p)
{
    sherd__event e;
    sherd__session_eof(p->no, SHERD_ECLOSED, "cut", &e);
    if (p->client) sherd__worker_event(p->client, p->no, &e);
    p->client = NULL;
    sherd__session_free(p->no);
    sherd__session_free(p->co);
}

static void put(peer *p, script *s)
{
    static const uint8_t dtypes[] = { SHERD_F64, SHERD_U8, SHERD_U32, SHERD_I64, SHERD_U16 };
    sherd__fragment_info i = { .origin = SHERD__HIDDEN,
                               .dtype = dtypes[next(s) % sizeof dtypes] };
    uint32_t job = next(s) % 4, block = number(s);
    bool text = next(s) % 2; /* rows as a recipe or plan has them: 1 x bytes of the script */
    if (text) i.dtype = SHERD_U8;
    i.rows = text ? 1 : next(s) % 17;
    i.cols = text ? next(s) : next(s) % 17;
    i.len = i.rows * i.cols * sherd_dtype_size((sherd_dtype)i.dtype);
    uint8_t *bytes = calloc(1, i.len + 1);
    sherd_fragment *f;
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
    sherd__task t = { .job = next(s) % 4, .task = number(s), .op = next(s) % 24,
                      .left = number(s), .right = number(s), .flags = next(s) % 8,
                      .primes_len = next(s) % 5 };
    for (uint32_t i = 0; i < t.primes_len; i++) t.primes[i] = 8388593 - 2 * (number(s) % 512);
    t.result = (sherd__fragment_info){ .origin = SHERD__RESULT, .dtype = dtypes[next(s) % 4],
                                       .rows = number(s) % 64, .cols = number(s) % 64 };
    t.result.len = t.result.rows * t.result.cols *
                   sherd_dtype_size((sherd_dtype)t.result.dtype) *
                   (t.primes_len ? t.primes_len : 1);
    p->tasks += sherd__session_task(p->co, &t) == 0;
}

static void act(peer *p, script *s, sherd_executor *executor)
{
    switch (next(s) % 10) {
    case 0: case 1: case 2: put(p, s); break;
    case 3: case 4: case 5: give(p, s); break;
    case 6: (void)!sherd__session_cancel(p->co, next(s) % 4, number(s), next(s) % 2); break;
    case 7: (void)!sherd__session_drop(p->co, next(s) % 4, number(s)); break;
    case 8: exchange(p); break;
    default:
        if (next(s) % 4 > 0) {
            (void)sherd__executor_drain(executor);
            break;
        }
        cut(p);
        join(p, p->worker);
        exchange(p);
    }
    assert(p->answers <= p->tasks);
}

static void begin(void)
{
    if (identity) return;
    if (sherd__identity_new(&identity) != 0) abort();
    for (int r = 0; r < 12; r++)
        for (int c = 0; c < 3; c++) examples[r][c] = r % 2 + 0.125 * c;
    own.x = sherd_view_c(examples, SHERD_F64, 12, 3);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    script s = { data, data + len };
    sherd__worker *worker;
    sherd_executor *executor;
    peer peers[2];
    static void *cpu;
    begin();
    sherd__backend_options b = { .threads = 1, .quick = true };
    sherd__backend_caps caps;
    if (!cpu && sherd__backend_cpu.open(&cpu, &b, &caps, NULL) != 0) abort();
    sherd__worker_options o = { .backend = &sherd__backend_cpu, .backend_ctx = cpu,
                                .memory = 16 * MIB,
                                .self = { .identity = identity, .data = &own,
                                          .policy = &policy } };
    o.caps.gflops = next(&s) % 2 ? 50 : 1e-3; /* at once, or by the executor */
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
    while (sherd__executor_drain(executor)) continue;
    assert(sherd__worker_memory(worker)->used == 0);
    sherd__worker_free(worker);
    sherd__executor_free(executor);
    return 0;
}
