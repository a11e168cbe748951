/* Steps of the session tests: a pair after its handshake, and records as a lying peer sends
 * them. */
#ifndef TESTS_UNIT_WIRE_SESSION_STEPS_H
#define TESTS_UNIT_WIRE_SESSION_STEPS_H

#include "tests/unit/wire/pair.h"
#include "wire/message.h"

enum { JOB = PAIR_JOB };

static inline void open_ready(pair *p)
{
    assert_int_equal(pair_open(p), SHERD_OK);
    pair_run(p, SIZE_MAX);
    assert_true(sherd__session_ready(p->co.s));
    assert_true(sherd__session_ready(p->no.s));
}

static inline void ask(pair *p, const sherd__task *t)
{
    assert_int_equal(sherd__session_task(p->co.s, t), SHERD_OK);
}

/* Injects a raw record, as a lying peer would send it. */
static inline int inject(pair *p, side *to, const sherd__record *r, const uint8_t *body)
{
    uint8_t bytes[SHERD__RECORD_BYTES + SHERD__CONTROL_MAX];
    sherd__record_pack(r, bytes);
    if (body) memcpy(bytes + SHERD__RECORD_BYTES, body, r->body_len);
    return side_feed(to, bytes, SHERD__RECORD_BYTES + r->body_len, SIZE_MAX, p->now);
}

static inline int inject_description(pair *p, side *to, uint16_t type, uint32_t number,
                                     const sherd__fragment_info *info, const uint32_t *attempt)
{
    uint8_t body[SHERD__CONTROL_MAX];
    sherd__record r = { .type = type,
                        .job = JOB,
                        .number = number,
                        .body_len = sherd__message_description(body, info, attempt) };
    return inject(p, to, &r, body);
}

#endif
