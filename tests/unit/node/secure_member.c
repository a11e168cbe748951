/* Blocks, tasks and signatures have the form that docs/PROTOCOL.md describes for secure sums. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/node/secure_member.h"

#include "core/bytes.h"
#include "crypto/fragment_make.h"
#include "tests/support/draw.h"
#include "tests/support/no_backend.h"

const sherd__aggregate member_agreed = { N, U, 1, LEN };
member_world m = { .places = ROWS,
                   .confirm_job = JOB,
                   .recipe = "input = 3\nlayer = dense 2\nloss = squared\ntargets = values\n"
                             "data = file\nepochs = 1\nrate = 0.5\n" };

/* ---- a coordinator's session to one node --------------------------------------------------- */

void member_hear(void *ctx, sherd__event *e)
{
    (void)ctx;
    if (e->kind != SHERD__EV_RESULT && e->kind != SHERD__EV_REFUSED) return;
    m.answered++;
    m.refused = 0;
    if (e->kind == SHERD__EV_REFUSED) {
        m.refusal = e->refusal;
        m.refused = e->refusal.code;
        return;
    }
    m.result_len = sherd__fragment_info_of(e->fragment)->len;
    assert_true(m.result_len <= ROOM);
    memcpy(m.result, sherd__fragment_bytes(e->fragment), m.result_len);
}

static sherd__ledger_ops noting;

static int charge(void *ctx, const sherd__charge *c, sherd_diag *d)
{
    int err = memory_ledger_ref(&m.ledger).ops->charge(ctx, c, d);
    atomic_fetch_add(&m.charged, 1);
    return err;
}

static void nothing(void *ctx)
{
    (void)ctx;
}

static void note_wake(void *ctx)
{
    (void)ctx;
    m.wakes++;
}

void member_start_with(uint64_t memory, const sherd__own *data, const sherd__peers *peers)
{
    assert_int_equal(m.threaded ? sherd__executor_new(&m.executor, 16, nothing, NULL)
                                : sherd__executor_new_inline(&m.executor),
                     0);
    memset(&m.ledger, 0, sizeof m.ledger);
    sherd__worker_options o = { .backend = &none,
                                .memory = memory,
                                .executor = m.executor,
                                .self = { .identity = m.identity,
                                          .data = data,
                                          .peers = peers,
                                          .policy = &m.policy,
                                          .ledger = memory_ledger_ref(&m.ledger) } };
    if (m.turns) o.wake = note_wake;
    noting = *o.self.ledger.ops;
    noting.charge = charge;
    o.self.ledger.ops = &noting;
    atomic_store(&m.charged, 0);
    assert_int_equal(sherd__worker_new(&m.worker, &o), 0);
    joined_open(&m.j, m.worker, member_hear, NULL);
    m.tasks = m.answered = 0;
    m.next_block = FIRST;
}

void member_start(const sherd__peers *peers)
{
    member_start_with((uint64_t)16 << 20, &m.own, peers);
}

void member_stop(void)
{
    assert_int_equal(m.answered, m.tasks);
    joined_cut(&m.j);
    assert_int_equal(sherd__worker_stats_of(m.worker)->queued, 0);
    assert_int_equal(sherd__worker_memory(m.worker)->used, 0);
    member_end();
}

void member_end(void)
{
    sherd__worker_free(m.worker);
    sherd__executor_free(m.executor);
    for (uint32_t i = 1; i < N; i++) {
        sherd__aggregate_member_free(m.others[i].member);
        m.others[i].member = NULL;
    }
}

void member_put(uint32_t block, uint8_t dtype, uint64_t rows, uint64_t cols, const void *bytes)
{
    joined_put(&m.j, JOB, block, dtype, rows, cols, bytes);
}

void member_ask(uint32_t op, uint32_t left, uint32_t right, uint8_t dtype, uint64_t rows,
                uint64_t cols)
{
    joined_ask(&m.j, JOB, ++m.tasks, op, left, right, dtype, rows, cols);
    joined_settle(&m.j, m.executor);
}

/* Waits until nothing is left to compute, a minute at most. Returns whether that is so. */
bool member_idle(void)
{
    for (unsigned i = 0; i < 60000 && sherd__executor_pending(m.executor); i++) {
        usleep(1000);
        if (m.j.client) joined_settle(&m.j, m.executor);
        else sherd__executor_drain(m.executor);
    }
    return sherd__executor_pending(m.executor) == 0;
}

/* Returns the code of the refusal; 0: done. */
int member_task(uint32_t op, uint32_t left, uint32_t right, uint8_t dtype, uint64_t rows,
                uint64_t cols)
{
    member_ask(op, left, right, dtype, rows, cols);
    assert_true(member_idle());
    assert_int_equal(m.answered, m.tasks);
    return m.refused;
}

/* ---- the protocol -------------------------------------------------------------------------- */

sherd__secure_plan member_plan(void)
{
    return (sherd__secure_plan){ .recipe = TEXT,
                                 .nodes = N,
                                 .threshold = U,
                                 .colluding = 1,
                                 .rows = m.places,
                                 .places = m.places,
                                 .clip = m.noise > 0,
                                 .noise = m.noise,
                                 .x = m.dealt ? MEMBER_X : 0,
                                 .targets = m.dealt ? MEMBER_TARGETS : 0 };
}

int member_join_as(const sherd__secure_plan *p)
{
    uint8_t bytes[8 * SHERD__SECURE_PLAN];
    sherd__secure_plan_write(bytes, p);
    if (!m.stays) assert_int_equal(sherd__session_drop(m.j.co, JOB, 0), 0);
    for (uint32_t b = TEXT; b <= PLAN && m.stays; b++)
        assert_int_equal(sherd__session_drop(m.j.co, JOB, b), 0);
    member_put(TEXT, SHERD_U8, 1, strlen(m.recipe), m.recipe);
    member_put(PLAN, SHERD_I64, 1, SHERD__SECURE_PLAN, bytes);
    return member_task(SHERD__OP_JOIN, PLAN, 0, SHERD_U8, 1, SHERD__SECURE_CARD);
}

int member_join(void)
{
    sherd__secure_plan p = member_plan();
    return member_join_as(&p);
}

void member_card_of(const sherd_identity *id, uint32_t self, const sherd__seal_key *k, uint8_t *out)
{
    sherd__secure_plan p = member_plan();
    uint8_t statement[SHERD__SECURE_STATEMENT];
    sherd__secure_statement(statement, JOB, &p, self, k->open);
    sherd__identity_public(id, out);
    memcpy(out + 32, k->open, 32);
    assert_int_equal(sherd__identity_sign(id, statement, sizeof statement, out + 64), 0);
}

/* Sets all cards, the node's own from its JOIN. */
void member_deal_cards(void)
{
    memcpy(m.cards, m.result, SHERD__SECURE_CARD);
    for (uint32_t i = 1; i < N; i++) {
        sherd__seal_key_new(&m.others[i].key);
        member_card_of(m.others[i].identity, i, &m.others[i].key, m.cards + i * SHERD__SECURE_CARD);
    }
}

int member_roster(void)
{
    uint32_t block = m.next_block++;
    member_put(block, SHERD_U8, N, SHERD__SECURE_CARD, m.cards);
    return member_task(SHERD__OP_ROSTER, PLAN, block, SHERD_I64, 1, 1);
}

void member_meet(void)
{
    uint8_t keys[N][32];
    assert_int_equal(member_join(), 0);
    member_deal_cards();
    for (uint32_t i = 0; i < N; i++) memcpy(keys[i], m.cards + i * SHERD__SECURE_CARD + 32, 32);
    for (uint32_t i = 1; i < N; i++)
        assert_int_equal(sherd__aggregate_member_new(&m.others[i].member, &member_agreed,
                                                     &(sherd__aggregate_self){
                                                         i, JOB, &m.others[i].key,
                                                         (const uint8_t(*)[32])keys },
                                                     NULL),
                         0);
    assert_int_equal(member_roster(), 0);
}

void member_plan_round(uint64_t round, int64_t scale)
{
    const int64_t question[] = { SHERD__SECURE_FORMAT, (int64_t)round, 4, scale, 20 };
    uint8_t training[SHERD__ABOUT], all[SHERD__ABOUT], plan[SHERD__SECURE_TRAINING];
    const sherd__secure_plan p = member_plan();
    sherd__secure_training(plan, &p);
    memcpy(m.hiding, question, sizeof m.hiding);
    if (!m.kept) m.params[1] = (double)round / 64;
    sherd__about(training,
                 (const sherd__about_part[]){ { m.recipe, strlen(m.recipe) },
                                              { plan, sizeof plan } },
                 2);
    sherd__about(all,
                 (const sherd__about_part[]){ { training, sizeof training },
                                              { m.cards, sizeof m.cards } },
                 2);
    sherd__about(m.about,
                 (const sherd__about_part[]){ { all, sizeof all },
                                              { m.hiding, sizeof m.hiding },
                                              { m.params, sizeof m.params } },
                 3);
    sherd__about(m.bound,
                 (const sherd__about_part[]){ { all, sizeof all }, { m.about, sizeof m.about } },
                 2);
}

uint32_t member_put_seal(uint64_t round, int64_t scale)
{
    uint64_t question[SHERD__SECURE_SEAL] = { SHERD__SECURE_FORMAT, round };
    uint32_t block = m.next_block++;
    member_plan_round(round, scale);
    memcpy(question + 2, m.about, sizeof m.about);
    member_put(block, SHERD_I64, 1, SHERD__SECURE_SEAL, question);
    return block;
}

static int seal_for(uint64_t round, int64_t scale)
{
    return member_task(SHERD__OP_SEAL, member_put_seal(round, scale), 0, SHERD_U8, N,
                       sherd__aggregate_sealed_len(&member_agreed));
}

int member_seal(uint64_t round)
{
    return seal_for(round, 20);
}

/* Returns the first of two blocks. */
uint32_t member_put_hide(uint64_t round, int64_t scale)
{
    int64_t question[] = { SHERD__SECURE_FORMAT, (int64_t)round, 4, scale, 20 };
    uint32_t block = m.next_block;
    m.next_block += 2;
    member_put(block, SHERD_I64, 1, SHERD__SECURE_HIDE + 2, question);
    member_put(block + 1, SHERD_F64, 1, COUNT, m.params);
    return block;
}

int member_hide(uint64_t round, int64_t scale)
{
    uint32_t block = member_put_hide(round, scale);
    return member_task(SHERD__OP_HIDE, block, block + 1, SHERD_I64, 1, LEN);
}

void members_seal(uint64_t round)
{
    sherd__entropy e = sherd__entropy_os();
    for (uint32_t i = 1; i < N; i++) {
        assert_int_equal(sherd__aggregate_begin(m.others[i].member, round, m.bound, &e, NULL), 0);
        assert_int_equal(sherd__aggregate_send(m.others[i].member, 0, m.pieces[i], NULL), 0);
    }
}

int member_confirm(uint64_t round, const uint64_t *who, uint64_t len)
{
    uint64_t question[SHERD__SECURE_CONFIRM + N] = { SHERD__SECURE_FORMAT, round };
    uint32_t block = m.next_block++;
    memcpy(question + SHERD__SECURE_CONFIRM, who, len * sizeof *who);
    member_put(block, SHERD_I64, 1, SHERD__SECURE_CONFIRM + len, question);
    int err = member_task(SHERD__OP_CONFIRM, block, 0, SHERD_U8, 1, SHERD__SECURE_SIGNATURE);
    if (!err) memcpy(m.confirmed[0], m.result, sizeof m.confirmed[0]);
    return err;
}

void members_confirm(uint64_t round, const uint64_t *who, uint64_t len)
{
    uint8_t statement[SHERD__CONFIRMATION];
    uint32_t list[N];
    for (uint64_t i = 0; i < len; i++) list[i] = (uint32_t)who[i];
    sherd__confirmation(statement, m.confirm_job, round, m.bound, list, (uint32_t)len);
    for (uint32_t i = 1; i < N; i++)
        assert_int_equal(sherd__identity_sign(m.others[i].identity, statement, sizeof statement,
                                              m.confirmed[i]),
                         0);
}

/* Sends the pieces of the first `survivors` as a block. */
static uint32_t put_pieces(uint64_t survivors)
{
    size_t sealed = sherd__aggregate_sealed_len(&member_agreed);
    uint8_t all[N * 512];
    uint32_t block = m.next_block++;
    for (uint64_t i = 0; i < survivors; i++) memcpy(all + i * sealed, m.pieces[i], sealed);
    member_put(block, SHERD_U8, survivors, sealed, all);
    return block;
}

int member_check(uint64_t round, uint64_t survivors)
{
    const uint64_t question[SHERD__SECURE_CHECK] = { SHERD__SECURE_FORMAT, round };
    uint32_t block = m.next_block++;
    member_put(block, SHERD_I64, 1, SHERD__SECURE_CHECK, question);
    uint32_t all = put_pieces(survivors);
    return member_task(SHERD__OP_CHECK, block, all, SHERD_U8, 1, survivors);
}

/* Opens with the signatures of these members and the pieces of the first `survivors`; 0: m.result
 * has the answer. */
int member_open(uint64_t round, uint64_t survivors, const uint64_t *signers, uint64_t len)
{
    uint64_t question[SHERD__SECURE_OPEN + N * SHERD__SECURE_CONFIRMED] = { SHERD__SECURE_FORMAT,
                                                                            round };
    uint32_t block = m.next_block++;
    for (uint64_t i = 0; i < len; i++) {
        uint64_t *at = question + SHERD__SECURE_OPEN + SHERD__SECURE_CONFIRMED * i;
        at[0] = signers[i];
        memcpy(at + 1, m.confirmed[signers[i] % N], SHERD__SECURE_SIGNATURE);
    }
    member_put(block, SHERD_I64, 1, SHERD__SECURE_OPEN + SHERD__SECURE_CONFIRMED * len, question);
    uint32_t all = survivors ? put_pieces(survivors) : 0;
    return member_task(SHERD__OP_OPEN, block, all, SHERD_I64, 1,
                       sherd__aggregate_piece_len(&member_agreed));
}

const uint64_t member_all[N] = { 0, 1, 2, 3 };

/* Names these survivors to all members; they are the first `len`. */
int member_open_for(uint64_t round, const uint64_t *who, uint64_t len)
{
    int err = member_confirm(round, who, len);
    if (err) return err;
    members_confirm(round, who, len);
    return member_open(round, len, member_all, N);
}

void member_round(uint64_t round)
{
    assert_int_equal(member_seal(round), 0);
    members_seal(round);
    assert_int_equal(member_hide(round, 20), 0);
    assert_int_equal(member_open_for(round, member_all, N), 0);
}

int member_fill(void **s)
{
    (void)s;
    m.policy = policy_of_tests;
    for (size_t i = 0; i < ROWS * 5; i++) m.examples[i] = (double)draw() / 0x1p30 - 1;
    for (size_t i = 0; i < COUNT; i++) m.params[i] = (double)draw() / 0x1p31 - 0.5;
    m.own.x = sherd_view_c(m.examples, SHERD_F64, ROWS, 5);
    assert_int_equal(sherd_identity_new(&m.identity, NULL), 0);
    for (uint32_t i = 1; i < N; i++)
        assert_int_equal(sherd_identity_new(&m.others[i].identity, NULL), 0);
    return 0;
}

int member_empty(void **s)
{
    (void)s;
    sherd_identity_free(m.identity);
    for (uint32_t i = 1; i < N; i++) sherd_identity_free(m.others[i].identity);
    return 0;
}
