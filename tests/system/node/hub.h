/* A coordinator for tests: real links to real node processes, driven step by step. */
#ifndef TESTS_SYSTEM_NODE_HUB_H
#define TESTS_SYSTEM_NODE_HUB_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "crypto/fragment_make.h"
#include "scheduler/cluster/launch.h"
#include "sherd/mat.h"
#include "wire/link.h"

typedef struct hub {
    uv_loop_t loop;
    uv_timer_t limit;
    bool late;
    sherd_identity *me;
    struct tie_end *open; /* of the links that are not gone */
} hub;

/* The owner of a link. It outlives the test's tie if the test fails. */
typedef struct tie_end {
    hub *hub;
    sherd__link *link;
    struct tie *tie; /* NULL after the test has failed */
    struct tie_end *next;
} tie_end;

typedef struct tie {
    sherd__link *link;
    bool ready, closed, gone;
    int err;
    char text[SHERD__TEXT_MAX];
    sherd__hello hello;
    uint32_t results, refused;
    sherd__refusal refusal; /* the latest one */
    double first, last;     /* values of the latest result */
    uint32_t task;          /* its task number */
    void (*on_result)(struct tie *t);
} tie;

static inline void hub_late(uv_timer_t *t)
{
    ((hub *)t->data)->late = true;
}

static inline void hub_open(hub *h)
{
    signal(SIGPIPE, SIG_IGN);
    memset(h, 0, sizeof *h);
    assert_int_equal(uv_loop_init(&h->loop), 0);
    uv_timer_init(&h->loop, &h->limit);
    h->limit.data = h;
    assert_int_equal(sherd_identity_new(&h->me, NULL), SHERD_OK);
}

/* Closes the links that a failed test left open, without its ties, which were on its stack. */
static inline void hub_cut(hub *h)
{
    uv_timer_stop(&h->limit);
    for (tie_end *end = h->open; end; end = end->next) end->tie = NULL;
    for (tie_end *end = h->open, *next; end; end = next) {
        next = end->next;
        sherd__link_close(end->link, 0, "test has failed");
    }
    while (h->open) uv_run(&h->loop, UV_RUN_ONCE);
}

static inline void hub_close(hub *h)
{
    hub_cut(h);
    uv_close((uv_handle_t *)&h->limit, NULL);
    uv_run(&h->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&h->loop), 0);
    sherd_identity_free(h->me);
}

/* Runs the loop until *value reaches `want`; fails the test after `ms`. Runs the loop of `other`,
 * which may be NULL, meanwhile: a node ends the session of a peer that is silent for seconds. */
#define hub_wait_beside(h, other, value, want, ms)                                                 \
    do {                                                                                           \
        hub *second = (other);                                                                     \
        (h)->late = false;                                                                         \
        uv_timer_start(&(h)->limit, hub_late, (ms), 0);                                            \
        while ((value) < (want) && !(h)->late) {                                                   \
            uv_run(&(h)->loop, UV_RUN_ONCE);                                                       \
            if (second) uv_run(&second->loop, UV_RUN_NOWAIT);                                      \
        }                                                                                          \
        uv_timer_stop(&(h)->limit);                                                                \
        if ((value) < (want))                                                                      \
            fail_msg("%s did not reach %s within %u ms", #value, #want, (unsigned)(ms));           \
    } while (0)

#define hub_wait(h, value, want, ms) hub_wait_beside(h, NULL, value, want, ms)

static inline void tie_result(tie *t, sherd__event *e)
{
    const sherd__fragment_info *i = sherd__fragment_info_of(e->fragment);
    const uint8_t *bytes = sherd__fragment_bytes(e->fragment);
    if (i->dtype == SHERD_F64 && i->len >= 8) {
        memcpy(&t->first, bytes, 8);
        memcpy(&t->last, bytes + i->len - 8, 8);
    }
    t->task = e->task.task;
    t->results++;
    sherd__fragment_free(e->fragment);
    if (t->on_result) t->on_result(t);
}

static inline void tie_event(void *ctx, sherd__link *l, sherd__event *e)
{
    tie *t = ((tie_end *)ctx)->tie;
    (void)l;
    if (!t) {
        if (e->kind == SHERD__EV_RESULT) sherd__fragment_free(e->fragment);
        return;
    }
    switch (e->kind) {
    case SHERD__EV_READY:
        t->ready = true;
        t->hello = e->hello;
        break;
    case SHERD__EV_RESULT: tie_result(t, e); break;
    case SHERD__EV_REFUSED:
        t->refused++;
        t->refusal = e->refusal;
        break;
    case SHERD__EV_CLOSED:
        t->closed = true;
        t->err = e->err;
        memcpy(t->text, e->text, sizeof t->text);
        break;
    default: break;
    }
}

static inline void tie_gone(void *ctx, sherd__link *l)
{
    tie_end *end = ctx, **at = &end->hub->open;
    (void)l;
    if (end->tie) end->tie->gone = true;
    while (*at != end) at = &(*at)->next;
    *at = end->next;
    free(end);
}

static inline void tie_begin_as(hub *h, const sherd_identity *me, tie *t, const sherd__peer *p)
{
    tie_end *end = calloc(1, sizeof *end);
    assert_non_null(end);
    memset(t, 0, sizeof *t);
    sherd__link_options o = { .loop = &h->loop,
                              .identity = me,
                              .owner = { tie_event, tie_gone, end } };
    o.session.role = SHERD__COORDINATOR;
    o.session.hello = (sherd__hello){ .minor_max = SHERD__MINOR, .software = "sherd tests" };
    assert_int_equal(sherd__link_connect(&t->link, &o, p->host, p->port, &p->key, NULL), SHERD_OK);
    *end = (tie_end){ h, t->link, t, h->open };
    h->open = end;
}

static inline void tie_begin(hub *h, tie *t, const sherd__peer *p)
{
    tie_begin_as(h, h->me, t, p);
}

static inline void tie_up(hub *h, tie *t, const sherd__peer *p)
{
    tie_begin(h, t, p);
    hub_wait(h, t->ready + t->closed, 1, 10000);
    if (!t->ready) fail_msg("no session: %s", t->text);
}

static inline void tie_down(hub *h, tie *t)
{
    if (!t->closed) sherd__link_close(t->link, 0, "test is done");
    hub_wait(h, t->gone, 1, 10000);
}

static inline void tie_put(tie *t, uint64_t job, uint32_t block, uint64_t rows, uint64_t cols,
                           double value)
{
    sherd__fragment_info i = { .origin = SHERD__HIDDEN,
                               .dtype = SHERD_F64,
                               .rows = rows,
                               .cols = cols,
                               .len = 8 * rows * cols };
    double *v = malloc(i.len + 8);
    for (uint64_t k = 0; k < rows * cols; k++) v[k] = value;
    sherd__fragment *f;
    assert_int_equal(sherd__fragment_take(&f, &i, (uint8_t *)v, NULL, NULL), SHERD_OK);
    assert_int_equal(sherd__session_put(sherd__link_session(t->link), job, block, f), SHERD_OK);
}

static inline sherd__task tie_task(uint64_t job, uint32_t number, uint64_t n, uint64_t m)
{
    return (sherd__task){ .job = job,
                          .task = number,
                          .attempt = 1,
                          .op = SHERD__OP_MULTIPLY,
                          .left = 1,
                          .right = 2,
                          .result = { .origin = SHERD__RESULT,
                                      .dtype = SHERD_F64,
                                      .rows = n,
                                      .cols = m,
                                      .len = 8 * n * m } };
}

static inline void tie_ask(tie *t, uint64_t job, uint32_t number, uint64_t n, uint64_t m)
{
    sherd__task task = tie_task(job, number, n, m);
    assert_int_equal(sherd__session_task(sherd__link_session(t->link), &task), SHERD_OK);
    sherd__link_flush(t->link);
}

/* Starts `nodes` local nodes of the command under test that allow the hub. */
static inline sherd__launch *hub_launch(hub *h, uint32_t nodes, uint64_t memory)
{
    sherd__launch *l;
    sherd_diag d = { .code = 0 };
    sherd__launch_options o = { .nodes = nodes,
                                .program = getenv("SHERD"),
                                .memory = memory,
                                .allow = *sherd__identity_fingerprint(h->me) };
    if (sherd__launch_start(&l, &o, &d)) fail_msg("%s", d.message);
    return l;
}

#endif
