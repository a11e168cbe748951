/* Bytes move in one piece and in order; a test that needs another order moves them itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "crypto/fragment_make.h"
#include "sherd/mat.h"
#include "tests/support/joined.h"
#include "tests/support/refusals.h"

static void keep_text(void *ctx, const sherd__refusal *r)
{
    joined *j = ctx;
    memcpy(j->withheld, r->text, sizeof j->withheld);
}

void joined_open(joined *j, sherd__worker *w, void (*hear)(void *, sherd__event *), void *ctx)
{
    joined_open_as(j, w, NULL, 0, hear, ctx);
}

void joined_open_as(joined *j, sherd__worker *w, const sherd__fingerprint *key, uint64_t memory,
                    void (*hear)(void *, sherd__event *), void *ctx)
{
    *j = (joined){ .worker = w, .hear = hear, .ctx = ctx };
    sherd__session_options o = { .role = SHERD__COORDINATOR, .now_ms = 1 };
    assert_int_equal(sherd__session_new(&j->co, &o), SHERD_OK);
    o = (sherd__session_options){ .role = SHERD__NODE, .now_ms = 1 };
    assert_int_equal(sherd__worker_join(w, &j->client, j, key, memory), SHERD_OK);
    sherd__worker_session(j->client, &o);
    o.withheld = keep_text;
    o.withheld_ctx = j;
    assert_int_equal(sherd__session_new(&j->no, &o), SHERD_OK);
    joined_exchange(j);
    assert_true(sherd__session_ready(j->co) && sherd__session_ready(j->no));
}

size_t joined_move(joined *j, bool out)
{
    sherd__session *from = out ? j->co : j->no, *to = out ? j->no : j->co;
    const uint8_t *bytes;
    size_t len = sherd__session_pending(from, 1, &bytes);
    for (size_t at = 0, used; at < len; at += used) {
        sherd__event e;
        int err = sherd__session_feed(to, bytes + at, len - at, 1, &used, &e);
        if (out && j->client) sherd__worker_event(j->client, j->no, &e);
        if (out && e.kind == SHERD__EV_CLOSED) j->client = NULL;
        if (!out) {
            if (e.kind == SHERD__EV_REFUSED && !refusal_is_constant(e.refusal.code, e.refusal.text))
                fail_msg("refused with %d: \"%s\"", e.refusal.code, e.refusal.text);
            j->hear(j->ctx, &e);
            sherd__fragment_free(e.fragment);
        }
        if (err) break;
    }
    sherd__session_sent(from, len);
    return len;
}

void joined_exchange(joined *j)
{
    while (joined_move(j, true) + (j->paused ? 0 : joined_move(j, false))) {}
}

void joined_settle(joined *j, sherd__executor *executor)
{
    do joined_exchange(j);
    while (sherd__executor_drain(executor));
    joined_exchange(j);
}

void joined_put(joined *j, uint64_t job, uint32_t block, uint8_t dtype, uint64_t rows,
                uint64_t cols, const void *bytes)
{
    sherd__fragment_info i = { .origin = SHERD__HIDDEN,
                               .dtype = dtype,
                               .rows = rows,
                               .cols = cols,
                               .len = sherd_dtype_size((sherd_dtype)dtype) * rows * cols };
    sherd__fragment *f;
    uint8_t *copy = malloc(i.len + 1);
    assert_non_null(copy);
    memcpy(copy, bytes, i.len);
    assert_int_equal(sherd__fragment_take(&f, &i, copy, NULL, NULL), SHERD_OK);
    assert_int_equal(sherd__session_put(j->co, job, block, f), SHERD_OK);
}

void joined_ask(joined *j, uint64_t job, uint32_t number, uint32_t op, uint32_t left,
                uint32_t right, uint8_t dtype, uint64_t rows, uint64_t cols)
{
    sherd__task t = { .job = job,
                      .task = number,
                      .attempt = 1,
                      .op = op,
                      .left = left,
                      .right = right,
                      .result = { .origin = SHERD__RESULT,
                                  .dtype = dtype,
                                  .rows = rows,
                                  .cols = cols,
                                  .len = sherd_dtype_size((sherd_dtype)dtype) * rows * cols } };
    assert_int_equal(sherd__session_task(j->co, &t), SHERD_OK);
}

void joined_cut(joined *j)
{
    sherd__event e;
    sherd__session_eof(j->no, SHERD_ECLOSED, "cut", &e);
    if (j->client) sherd__worker_event(j->client, j->no, &e);
    j->client = NULL;
    sherd__session_free(j->no);
    sherd__session_free(j->co);
}
