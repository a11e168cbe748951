/*
 * The measuring coordinator: one loop, one link, one measurement at a time. A measurement is a
 * number of requests, each a block and a task whose answer confirms it. `depth` requests are in
 * progress at a time; the next one is sent from the event of a result, as in a job.
 *
 * The operands are small integers. Every product is therefore exact in any order of summation, and
 * a result can be compared bit for bit regardless of the node's BLAS.
 */
#include "scheduler/cluster/measure.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uv.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/clock.h"
#include "core/diag.h"
#include "core/hooks.h"
#include "core/rand.h"
#include "crypto/fragment_make.h"
#include "scheduler/cluster/buffers.h"
#include "scheduler/cluster/launch.h"
#include "sherd/mat.h"
#include "sherd/version.h"
#include "wire/link.h"
#include "wire/loop.h"

#define TICK_MS 100u
#define TIMEOUT_MS 60000u
#define CONNECT_MS 10000u
#define WINDOW 3u /* large blocks in transfer */
#define COMPARE_EVERY 64u
#define BLOCK_ONE 1u  /* 1 x 1, resident */
#define BLOCK_KEPT 2u /* the resident right operand */
#define BLOCK_ROW 3u  /* 1 x rows, to verify a large block */
#define BLOCK_COL 4u  /* rows x 1 and 1 x cols; their product is as large as a block */
#define BLOCK_LINE 5u
#define BLOCK_FIRST 16u /* first number of the blocks that are dropped after use */

/* The current measurement. */
typedef struct course {
    uint64_t job;
    size_t rows, cols; /* of the block of a request */
    uint32_t depth, total, sent, received;
    bool whole;             /* the task multiplies by the block; else it only follows it */
    bool back;              /* the task that follows the block answers with as many bytes */
    const double *block;    /* sent in every request; rows x cols */
    const double *expected; /* whole: its product with BLOCK_KEPT, rows x kept_cols */
    size_t kept_cols;
    double *began; /* start times by request, if latencies are wanted; later the durations */
} course;

struct sherd__measure {
    uv_loop_t loop;
    uv_timer_t tick;
    bool loop_made, tick_made;
    sherd__measure_options o;
    sherd__entropy entropy;
    sherd_identity *identity;
    sherd__launch *launch;
    sherd__link *link;
    sherd__buffers *answers;
    bool ready, over, gone; /* over: nothing can be sent any more */
    uint64_t deadline_ms;
    course *now;
    int err; /* of the current measurement */
    sherd_diag why;
};

/* Ends the current measurement; only the first failure is kept. */
static void fail(sherd__measure *m, int err, const char *text)
{
    if (m->err) return;
    m->err = sherd__fail(&m->why, err, NULL, "%s", text);
}

/* --- requests -------------------------------------------------------------------------------- */

static void keep(void *ctx, uint8_t *bytes, uint64_t len)
{
    (void)ctx;
    (void)bytes;
    (void)len;
}

/* Sends a block. The values are not copied and still belong to the caller. */
static int put(sherd__measure *m, uint64_t job, uint32_t number, const double *values, size_t rows,
               size_t cols)
{
    if (m->over) return SHERD_ECLOSED;
    sherd__fragment_info info = { .origin = SHERD__HIDDEN,
                                  .dtype = SHERD_F64,
                                  .rows = rows,
                                  .cols = cols,
                                  .len = 8 * (uint64_t)rows * cols };
    sherd__fragment *f;
    int err = sherd__fragment_take(&f, &info, (uint8_t *)(uintptr_t)values, keep, NULL);
    if (err) return err;
    err = sherd__session_put(sherd__link_session(m->link), job, number, f);
    if (err) sherd__fragment_free(f);
    return err;
}

/* Asks for a product of which the caller gives job, number, blocks and the result's shape. */
static int ask(sherd__measure *m, sherd__task t)
{
    t.attempt = 1;
    t.op = SHERD__OP_MULTIPLY;
    t.result.origin = SHERD__RESULT;
    t.result.dtype = SHERD_F64;
    t.result.len = 8 * t.result.rows * t.result.cols;
    return sherd__session_task(sherd__link_session(m->link), &t);
}

static int send_one(sherd__measure *m, course *c)
{
    uint32_t number = ++c->sent, block = BLOCK_FIRST + number;
    if (c->began) c->began[number - 1] = sherd__clock_s();
    int err = put(m, c->job, block, c->block, c->rows, c->cols);
    if (err) return err;
    if (c->whole)
        return ask(m, (sherd__task){ .job = c->job,
                                     .task = number,
                                     .left = block,
                                     .right = BLOCK_KEPT,
                                     .flags = SHERD__DROP_LEFT,
                                     .result = { .rows = c->rows, .cols = c->kept_cols } });
    if (c->back)
        return ask(m, (sherd__task){ .job = c->job,
                                     .task = number,
                                     .left = BLOCK_COL,
                                     .right = BLOCK_LINE,
                                     .result = { .rows = c->rows, .cols = c->cols } });
    return ask(m, (sherd__task){ .job = c->job,
                                 .task = number,
                                 .left = BLOCK_ONE,
                                 .right = BLOCK_ONE,
                                 .result = { .rows = 1, .cols = 1 } });
}

static void send_more(sherd__measure *m, course *c)
{
    int err = SHERD_OK;
    while (!err && c->sent < c->total && c->sent - c->received < c->depth) err = send_one(m, c);
    if (err) fail(m, err, "cannot send a block");
}

static void on_result(sherd__measure *m, const sherd__event *e)
{
    course *c = m->now;
    uint32_t number = e->task.task;
    if (!c || e->task.job != c->job || number == 0 || number > c->total) return;
    c->received++;
    if (c->began) c->began[number - 1] = sherd__clock_s() - c->began[number - 1];
    bool compare = c->expected && number % COMPARE_EVERY == 1;
    if (compare &&
        memcmp(sherd__fragment_bytes(e->fragment), c->expected, 8 * c->rows * c->kept_cols) != 0)
        fail(m, SHERD_EDIFFERS, "the node's product differs from the one computed here");
    if (!c->whole &&
        sherd__session_drop(sherd__link_session(m->link), c->job, BLOCK_FIRST + number) != SHERD_OK)
        fail(m, SHERD_ENOMEM, "cannot drop a block");
    send_more(m, c);
}

/* --- the link -------------------------------------------------------------------------------- */

static void on_event(void *ctx, sherd__link *l, sherd__event *e)
{
    sherd__measure *m = ctx;
    (void)l;
    switch (e->kind) {
    case SHERD__EV_READY: m->ready = true; break;
    case SHERD__EV_RESULT: on_result(m, e); break;
    case SHERD__EV_REFUSED: fail(m, SHERD_EREFUSED, e->refusal.text); break;
    case SHERD__EV_CLOSED:
        m->over = true;
        fail(m, e->err ? e->err : SHERD_ECLOSED, e->text);
        break;
    default: break;
    }
    sherd__fragment_free(e->fragment);
    e->fragment = NULL;
}

static void on_gone(void *ctx, sherd__link *l)
{
    sherd__measure *m = ctx;
    (void)l;
    m->gone = true;
}

static void on_tick(uv_timer_t *t)
{
    sherd__measure *m = t->data;
    if (sherd__hooks_interrupted(&m->o.hooks)) fail(m, SHERD_EINTERRUPTED, "interrupted");
    if (uv_now(&m->loop) >= m->deadline_ms)
        fail(m, SHERD_ETIMEOUT, "the node did not answer in time");
}

static void begin(sherd__measure *m, uint32_t timeout_ms)
{
    m->err = SHERD_OK;
    m->why = (sherd_diag){ 0 };
    uv_update_time(&m->loop);
    m->deadline_ms = uv_now(&m->loop) + timeout_ms;
}

static int end(const sherd__measure *m, sherd_diag *d)
{
    return m->err ? sherd__fail(d, m->err, NULL, "%s", m->why.message) : SHERD_OK;
}

/* Runs c to its end; *seconds is the time it took. */
static int run(sherd__measure *m, course *c, double *seconds, sherd_diag *d)
{
    begin(m, m->o.timeout_ms ? m->o.timeout_ms : TIMEOUT_MS);
    m->now = c;
    double began = sherd__clock_s();
    send_more(m, c);
    sherd__link_flush(m->link);
    while (!m->err && c->received < c->total) uv_run(&m->loop, UV_RUN_ONCE);
    *seconds = sherd__clock_s() - began;
    m->now = NULL;
    return end(m, d);
}

/* --- measurements ---------------------------------------------------------------------------- */

static double *integers(size_t n, uint64_t seed)
{
    double *v = n <= SIZE_MAX / 8 ? sherd__alloc_large(8 * n) : NULL;
    for (size_t i = 0; v && i < n; i++) { /* splitmix64's step; any mixing function would do */
        uint64_t z = (seed + i) * UINT64_C(0x9e3779b97f4a7c15);
        v[i] = (double)(int64_t)(z >> 56) - 128;
    }
    return v;
}

static int no_memory(sherd_diag *d)
{
    return sherd__fail_memory(d, "the blocks");
}

/* Ends the job. Blocks that still wait to be sent refer to memory that is about to be freed.
 * Therefore a failed measurement closes the connection, which drops them. */
static void forget(sherd__measure *m, uint64_t job)
{
    if (m->over) return;
    int err = m->err;
    if (!err) err = sherd__session_drop(sherd__link_session(m->link), job, 0);
    if (err) {
        m->over = true;
        sherd__link_close(m->link, err, "the measurement failed");
    } else {
        sherd__link_flush(m->link);
    }
}

/* Runs one task with a row and a block of values, and compares the result with `expected`. */
/* Compares the node's product of a row of ones and twos with a block that was sent like the
 * measured ones. */
static int look_into(sherd__measure *m, const double *values, size_t rows, size_t cols,
                     sherd_diag *d)
{
    uint64_t job = sherd__entropy_u64(&m->entropy) | 1;
    double *row = sherd__alloc(8 * rows), *expected = sherd__calloc(cols, 8);
    int err = row && expected ? SHERD_OK : no_memory(d);
    for (size_t r = 0; !err && r < rows; r++) {
        row[r] = (double)(1 + r % 2);
        for (size_t j = 0; j < cols; j++) expected[j] += row[r] * values[r * cols + j];
    }
    course c = { .job = job,
                 .rows = 1,
                 .cols = rows,
                 .depth = 1,
                 .total = 1,
                 .whole = true,
                 .block = row,
                 .expected = expected,
                 .kept_cols = cols };
    double seconds;
    if (!err && (err = put(m, job, BLOCK_KEPT, values, rows, cols)) != 0)
        sherd__fail(d, err, NULL, "cannot send a block");
    if (!err) err = run(m, &c, &seconds, d);
    forget(m, job);
    sherd__free(row);
    sherd__free(expected);
    return err;
}

int sherd__measure_blocks(sherd__measure *m, size_t rows, size_t cols, uint32_t count,
                          double *seconds, sherd_diag *d)
{
    const double one = 1;
    size_t n;
    course c = { .job = sherd__entropy_u64(&m->entropy) | 1,
                 .rows = rows,
                 .cols = cols,
                 .depth = WINDOW,
                 .total = count };
    double *values = sherd__mul(rows, cols, &n) ? integers(n, c.job) : NULL;
    if (!values) return no_memory(d);
    c.block = values;
    int err = put(m, c.job, BLOCK_ONE, &one, 1, 1);
    if (err) sherd__fail_to(d, err, "send a block");
    else err = run(m, &c, seconds, d);
    forget(m, c.job);
    if (!err) err = look_into(m, values, rows, cols, d);
    sherd__free(values);
    return err;
}

int sherd__measure_exchange(sherd__measure *m, size_t rows, size_t cols, uint32_t count,
                            double *seconds, sherd_diag *d)
{
    size_t n;
    course c = { .job = sherd__entropy_u64(&m->entropy) | 1,
                 .rows = rows,
                 .cols = cols,
                 .depth = count,
                 .total = count,
                 .back = true };
    double *values = sherd__mul(rows, cols, &n) ? integers(n, c.job) : NULL;
    if (!values) return no_memory(d);
    c.block = values;
    int err = put(m, c.job, BLOCK_COL, values, rows, 1);
    if (!err) err = put(m, c.job, BLOCK_LINE, values, 1, cols);
    if (err) sherd__fail_to(d, err, "send a block");
    else err = run(m, &c, seconds, d);
    forget(m, c.job);
    sherd__free(values);
    return err;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Computes C = A*B by the definition: the reference must not be the code that is measured. */
static void multiply(size_t dim, const double *a, const double *b, double *c)
{
    memset(c, 0, 8 * dim * dim);
    for (size_t i = 0; i < dim; i++)
        for (size_t k = 0; k < dim; k++)
            for (size_t j = 0; j < dim; j++) c[i * dim + j] += a[i * dim + k] * b[k * dim + j];
}

int sherd__measure_products(sherd__measure *m, uint32_t dim, uint32_t depth, uint32_t tasks,
                            sherd__measured *out, sherd_diag *d)
{
    size_t n = (size_t)dim * dim;
    course c = { .job = sherd__entropy_u64(&m->entropy) | 1,
                 .rows = dim,
                 .cols = dim,
                 .depth = depth,
                 .total = tasks,
                 .whole = true,
                 .kept_cols = dim };
    double *a = integers(n, c.job), *b = integers(n, ~c.job), *ab = sherd__alloc(8 * n);
    c.began = sherd__calloc(tasks, sizeof *c.began);
    int err = a && b && ab && c.began ? SHERD_OK : no_memory(d);
    if (!err) {
        multiply(dim, a, b, ab);
        c.block = a;
        c.expected = ab;
        err = put(m, c.job, BLOCK_KEPT, b, dim, dim);
        if (err) sherd__fail_to(d, err, "send a block");
        else err = run(m, &c, &out->seconds, d);
        forget(m, c.job);
    }
    if (!err) {
        qsort(c.began, tasks, sizeof *c.began, by_value);
        out->median = tasks ? c.began[tasks / 2] : 0;
    }
    sherd__free(a);
    sherd__free(b);
    sherd__free(ab);
    sherd__free(c.began);
    return err;
}

/* --- start and end --------------------------------------------------------------------------- */

static int start_loop(sherd__measure *m, sherd_diag *d)
{
    int err = sherd__loop_init(&m->loop, d);
    if (err) return err;
    m->loop_made = true;
    uv_timer_init(&m->loop, &m->tick);
    m->tick_made = true;
    m->tick.data = m;
    uv_timer_start(&m->tick, on_tick, TICK_MS, TICK_MS);
    return SHERD_OK;
}

static int start_node(sherd__measure *m, sherd_diag *d)
{
    sherd__launch_options lo = { .nodes = 1,
                                 .program = m->o.program,
                                 .memory = m->o.node_memory,
                                 .threads = 1,
                                 .hooks = m->o.hooks };
    int err = sherd_identity_new(&m->identity, d);
    if (err) return err;
    lo.allow = *sherd__identity_fingerprint(m->identity);
    return sherd__launch_start(&m->launch, &lo, d);
}

static int connect_node(sherd__measure *m, sherd_diag *d)
{
    const sherd__peer *p = &sherd__launch_node(m->launch, 0)->peer;
    sherd__link_options lo = { .loop = &m->loop,
                               .identity = m->identity,
                               .session = { .role = SHERD__COORDINATOR,
                                            .hello = { .software = "sherd " SHERD_VERSION },
                                            .place = sherd__buffers_place,
                                            .unplace = sherd__buffers_unplace,
                                            .place_ctx = m->answers },
                               .owner = { on_event, on_gone, m } };
    int err = sherd__link_connect(&m->link, &lo, p->host, p->port, &p->key, d);
    if (err) return err;
    begin(m, CONNECT_MS);
    while (!m->err && !m->ready) uv_run(&m->loop, UV_RUN_ONCE);
    return end(m, d);
}

int sherd__measure_new(sherd__measure **out, const sherd__measure_options *opt, sherd_diag *d)
{
    sherd__measure *m = sherd__calloc(1, sizeof *m);
    *out = NULL;
    if (!m) return no_memory(d);
    m->o = *opt;
    m->entropy = sherd__entropy_os();
    int err = sherd__buffers_new(&m->answers);
    if (!err) err = start_node(m, d);
    if (!err) err = start_loop(m, d);
    if (!err) err = connect_node(m, d);
    if (err) {
        sherd__measure_free(m);
        return sherd__fail_to(d, err, "measure");
    }
    *out = m;
    return SHERD_OK;
}

void sherd__measure_free(sherd__measure *m)
{
    if (!m) return;
    if (m->link) {
        if (!m->over) sherd__link_close(m->link, SHERD_OK, "the measurement is done");
        while (!m->gone) uv_run(&m->loop, UV_RUN_ONCE);
    }
    if (m->tick_made) uv_close((uv_handle_t *)&m->tick, NULL);
    if (m->loop_made) {
        uv_run(&m->loop, UV_RUN_DEFAULT);
        (void)uv_loop_close(&m->loop);
    }
    sherd__launch_stop(m->launch, 0);
    sherd_identity_free(m->identity);
    sherd__buffers_free(m->answers);
    sherd__free(m);
}
