/* An all-reduce group of a node, which is member 0, and of keys that a test chooses. */
#ifndef TESTS_SYSTEM_NODE_MEETING_H
#define TESTS_SYSTEM_NODE_MEETING_H

#include "learn/allreduce_plan.h"
#include "tests/system/node/hub.h"

enum { JOB = 7, GROUP = 99 };

typedef struct meeting {
    uint64_t id; /* 0: GROUP */
    sherd__reduce kind;
    const sherd_identity *const *others;
    uint32_t others_len;
    const uint16_t *ports; /* of the members; NULL: 1 */
    const char *network;
    uint32_t count; /* number of parameters */
} meeting;

static inline void put(tie *t, uint64_t job, uint32_t block, uint8_t dtype, const void *bytes,
                       size_t cols)
{
    sherd__fragment *f;
    size_t len = sherd_dtype_size((sherd_dtype)dtype) * cols;
    uint8_t *copy = malloc(len);
    assert_non_null(copy);
    memcpy(copy, bytes, len);
    sherd__fragment_info i = {
        .origin = SHERD__HIDDEN, .dtype = dtype, .rows = 1, .cols = cols, .len = len
    };
    assert_int_equal(sherd__fragment_take(&f, &i, copy, NULL, NULL), 0);
    assert_int_equal(sherd__session_put(sherd__link_session(t->link), job, block, f), 0);
}

/* Asks for a task of the group whose result are numbers. */
static inline void meeting_ask(hub *h, tie *t, uint32_t task, uint32_t op, uint32_t right,
                               uint64_t cols)
{
    uint32_t before = t->results;
    sherd__task q = { .job = JOB,
                      .task = task,
                      .attempt = 1,
                      .op = op,
                      .left = 3,
                      .right = right,
                      .result = { .origin = SHERD__RESULT,
                                  .dtype = SHERD_I64,
                                  .rows = 1,
                                  .cols = cols,
                                  .len = 8 * cols } };
    assert_int_equal(sherd__session_task(sherd__link_session(t->link), &q), 0);
    sherd__link_flush(t->link);
    hub_wait(h, t->results + t->refused, before + 1, 10000);
    if (t->results == before) fail_msg("%s", t->refusal.text);
}

static inline void meeting_begin(hub *h, tie *t, const sherd__peer *self, const meeting *m)
{
    double *params = calloc(m->count, sizeof *params);
    uint8_t plan[8 * SHERD__ALLREDUCE_PLAN];
    char roster[4096], key[SHERD__FINGERPRINT_TEXT];
    sherd__allreduce_plan p = { .kind = m->kind,
                                .members = 1 + m->others_len,
                                .self = 0,
                                .id = m->id ? m->id : GROUP,
                                .recipe = 1,
                                .state = 2,
                                .bits = 20,
                                .batch = 4,
                                .examples = 4,
                                .optimiser = { .method = SHERD__SGD } };
    assert_non_null(params);
    sherd__fingerprint_text(&self->key, key);
    int len = snprintf(roster, sizeof roster, "%s:%u key=%s\n", self->host, self->port, key);
    for (uint32_t i = 0; i < m->others_len; i++) {
        sherd__fingerprint_text(sherd__identity_fingerprint(m->others[i]), key);
        len += snprintf(roster + len, sizeof roster - (size_t)len, "127.0.0.1:%u key=%s\n",
                        m->ports ? m->ports[i] : 1u, key);
    }
    sherd__allreduce_plan_write(plan, &p);
    put(t, JOB, 1, SHERD_U8, m->network, strlen(m->network));
    put(t, JOB, 2, SHERD_F64, params, m->count);
    put(t, JOB, 3, SHERD_I64, plan, SHERD__ALLREDUCE_PLAN);
    put(t, JOB, 4, SHERD_U8, roster, (size_t)len);
    free(params);
    meeting_ask(h, t, 1, SHERD__OP_MEET, 4, 1);
}

#endif
