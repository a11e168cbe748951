/* A session draws its numbers from its seed; only one session is in use at a time. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "tests/unit/crypto/aggregate_session.h"

const uint8_t session_about[SHERD__ABOUT] = { 1, 2, 3 };
static sherd__seeded stream;

void session_begin(session *s, uint32_t n, uint32_t u, uint32_t t, size_t len, uint64_t seed)
{
    *s = (session){ .a = { n, u, t, len }, .e = sherd__entropy_seeded(&stream, seed) };
    assert_int_equal(sherd__aggregate_check(&s->a, NULL), 0);
    for (uint32_t i = 0; i < n; i++) {
        sherd__seal_key_new(&s->key[i]);
        memcpy(s->open[i], s->key[i].open, 32);
    }
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(sherd__aggregate_member_new(&s->node[i], &s->a,
                                                     &(sherd__aggregate_self){
                                                         i, JOB, &s->key[i],
                                                         (const uint8_t(*)[32])s->open },
                                                     NULL),
                         0);
    s->x = calloc(n * len, sizeof *s->x);
    s->uploads = calloc(n * len, sizeof *s->uploads);
    s->sealed = malloc(sherd__aggregate_sealed_len(&s->a));
}

void session_end(session *s)
{
    for (uint32_t i = 0; i < s->a.nodes; i++) sherd__aggregate_member_free(s->node[i]);
    free(s->x);
    free(s->uploads);
    free(s->sealed);
}

void session_round(session *s, uint64_t number)
{
    uint64_t bound = (uint64_t)sherd__aggregate_bound(&s->a);
    uint32_t n = s->a.nodes;
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(sherd__aggregate_begin(s->node[i], number, session_about, &s->e, NULL), 0);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++) {
            if (i == j) continue;
            assert_int_equal(sherd__aggregate_send(s->node[i], j, s->sealed, NULL), 0);
            assert_int_equal(sherd__aggregate_receive(s->node[j], i, s->sealed, NULL), 0);
        }
    for (uint32_t i = 0; i < n; i++) {
        int64_t *x = s->x + i * s->a.len;
        for (size_t k = 0; k < s->a.len; k++)
            x[k] = (int64_t)sherd__entropy_below(&s->e, 2 * bound + 1) - (int64_t)bound;
        assert_int_equal(sherd__aggregate_upload(s->node[i], x, s->uploads + i * s->a.len, NULL),
                         0);
    }
}

int session_answer(session *s, uint32_t node, const uint32_t *list, uint32_t len, uint64_t *out)
{
    uint8_t statement[SHERD__CONFIRMATION];
    int err = sherd__aggregate_confirm(s->node[node], list, len, statement, NULL);
    for (uint32_t i = 0; i < s->a.threshold && !err; i++)
        err = sherd__aggregate_confirmed(s->node[node], i, NULL);
    return err ? err : sherd__aggregate_answer(s->node[node], out, NULL);
}
