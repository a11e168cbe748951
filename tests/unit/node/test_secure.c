/*
 * What a node lets a coordinator do in secure aggregation: one question of each kind a round, one
 * set of survivors, that enough others were told too, keys that their owners signed and that its
 * peers' file names; whatever a plan says, every task is answered once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/bytes.h"
#include "crypto/aggregate.h"
#include "crypto/fragment_make.h"
#include "learn/secure.h"
#include "node/worker.h"
#include "tests/support/draw.h"
#include "tests/support/joined.h"
#include "tests/support/memory_ledger.h"
#include "tests/support/no_backend.h"

static const char text[] = "input = 3\nlayer = dense 2\nloss = squared\ntargets = values\n"
                           "data = file\nepochs = 1\nrate = 0.5\n";
enum { ROWS = 9, COUNT = 8, LEN = COUNT + SHERD__SECURE_EXTRA, N = 4, U = 3, JOB = 7,
       TEXT = 1, PLAN = 2, ROSTER = 3, FIRST = 10, ROOM = 4096 };

typedef struct other {
    sherd_identity *identity;
    sherd__seal_key key;
    sherd__aggregate_member *member;
} other;

static double examples[ROWS * 5], params[COUNT];
static sherd__own own;
static memory_ledger ledger;
static sherd__policy policy;
static sherd_identity *identity;
static sherd_executor *executor;
static sherd__worker *worker;
static joined j;
static other others[N];            /* members 1 to 3 */
static const sherd__aggregate agreed = { N, U, 1, LEN };
static uint32_t tasks, answered, next_block;
static int refused;                /* code of the last refusal; 0: a result */
static sherd__refusal refusal;
static uint8_t result[ROOM];
static uint64_t result_len;

/* ---- a coordinator's session to one node --------------------------------------------------- */

static void hear(void *ctx, sherd__event *e)
{
    (void)ctx;
    if (e->kind != SHERD__EV_RESULT && e->kind != SHERD__EV_REFUSED) return;
    answered++;
    refused = 0;
    if (e->kind == SHERD__EV_REFUSED) {
        refusal = e->refusal;
        refused = e->refusal.code;
        return;
    }
    result_len = sherd__fragment_info_of(e->fragment)->len;
    assert_true(result_len <= ROOM);
    memcpy(result, sherd__fragment_bytes(e->fragment), result_len);
}

static bool threaded;              /* tasks run on a compute thread */
static sherd__ledger_ops noting;
static atomic_uint charged;        /* uploads, as the compute thread charges them */

static int charge(void *ctx, const sherd__charge *c, sherd_diag *d)
{
    int err = memory_ledger_ref(&ledger).ops->charge(ctx, c, d);
    atomic_fetch_add(&charged, 1);
    return err;
}

static void nothing(void *ctx)
{
    (void)ctx;
}

static void start_with(uint64_t memory, const sherd__own *data, const sherd__peers *peers)
{
    assert_int_equal(threaded ? sherd__executor_new(&executor, 16, nothing, NULL)
                              : sherd__executor_new_inline(&executor), 0);
    memset(&ledger, 0, sizeof ledger);
    sherd__worker_options o = { .backend = &none, .memory = memory, .executor = executor,
                                .self = { .identity = identity, .data = data, .peers = peers,
                                          .policy = &policy,
                                          .ledger = memory_ledger_ref(&ledger) } };
    noting = *o.self.ledger.ops;
    noting.charge = charge;
    o.self.ledger.ops = &noting;
    atomic_store(&charged, 0);
    assert_int_equal(sherd__worker_new(&worker, &o), 0);
    joined_open(&j, worker, hear, NULL);
    tasks = answered = 0;
    next_block = FIRST;
}

static void start(const sherd__peers *peers)
{
    start_with((uint64_t)16 << 20, &own, peers);
}

static void stop(void)
{
    assert_int_equal(answered, tasks);
    joined_cut(&j);
    assert_int_equal(sherd__worker_stats_of(worker)->queued, 0);
    assert_int_equal(sherd__worker_memory(worker)->used, 0);
    sherd__worker_free(worker);
    sherd__executor_free(executor);
    for (uint32_t i = 1; i < N; i++) {
        sherd__aggregate_member_free(others[i].member);
        others[i].member = NULL;
    }
}

static void put(uint32_t block, uint8_t dtype, uint64_t rows, uint64_t cols, const void *bytes)
{
    joined_put(&j, JOB, block, dtype, rows, cols, bytes);
}

static void ask(uint32_t op, uint32_t left, uint32_t right, uint8_t dtype, uint64_t rows,
                uint64_t cols)
{
    sherd__task t = { .job = JOB, .task = ++tasks, .attempt = 1, .op = op, .left = left,
                      .right = right,
                      .result = { .origin = SHERD__RESULT, .dtype = dtype, .rows = rows,
                                  .cols = cols,
                                  .len = sherd_dtype_size((sherd_dtype)dtype) * rows * cols } };
    assert_int_equal(sherd__session_task(j.co, &t), 0);
    joined_settle(&j, executor);
}

/* Whether nothing is left to compute; waits for a minute at most. */
static bool idle(void)
{
    for (unsigned i = 0; i < 60000 && sherd__executor_pending(executor); i++) {
        usleep(1000);
        if (j.client) joined_settle(&j, executor);
        else sherd__executor_drain(executor);
    }
    return sherd__executor_pending(executor) == 0;
}

/* The code of its refusal; 0: done. */
static int task(uint32_t op, uint32_t left, uint32_t right, uint8_t dtype, uint64_t rows,
                uint64_t cols)
{
    ask(op, left, right, dtype, rows, cols);
    assert_true(idle());
    assert_int_equal(answered, tasks);
    return refused;
}

/* ---- the protocol -------------------------------------------------------------------------- */

static uint64_t places = ROWS;     /* of a plan, all in one round */
static double noise;               /* with a clipping norm of 1 */

static sherd__secure_plan usual(void)
{
    return (sherd__secure_plan){ .recipe = TEXT, .nodes = N, .threshold = U, .colluding = 1,
                                 .rows = places, .places = places, .clip = noise > 0,
                                 .noise = noise };
}

static bool stays; /* the job goes on from one JOIN to the next */

static int join_as(const sherd__secure_plan *p)
{
    uint8_t bytes[8 * SHERD__SECURE_PLAN];
    sherd__secure_plan_write(bytes, p);
    if (!stays) assert_int_equal(sherd__session_drop(j.co, JOB, 0), 0);
    for (uint32_t b = TEXT; b <= PLAN && stays; b++)
        assert_int_equal(sherd__session_drop(j.co, JOB, b), 0);
    put(TEXT, SHERD_U8, 1, sizeof text - 1, text);
    put(PLAN, SHERD_I64, 1, SHERD__SECURE_PLAN, bytes);
    return task(SHERD__OP_JOIN, PLAN, 0, SHERD_U8, 1, SHERD__SECURE_CARD);
}

static int join(void)
{
    sherd__secure_plan p = usual();
    return join_as(&p);
}

static void card_of(const sherd_identity *id, uint32_t self, const sherd__seal_key *k, uint8_t *out)
{
    sherd__secure_plan p = usual();
    uint8_t statement[SHERD__SECURE_STATEMENT];
    sherd__secure_statement(statement, JOB, &p, self, k->open);
    sherd__identity_public(id, out);
    memcpy(out + 32, k->open, 32);
    assert_int_equal(sherd__identity_sign(id, statement, sizeof statement, out + 64), 0);
}

static uint8_t cards[N * SHERD__SECURE_CARD];

/* All cards, the node's own from its JOIN. */
static void deal_cards(void)
{
    memcpy(cards, result, SHERD__SECURE_CARD);
    for (uint32_t i = 1; i < N; i++) {
        sherd__seal_key_new(&others[i].key);
        card_of(others[i].identity, i, &others[i].key, cards + i * SHERD__SECURE_CARD);
    }
}

static int roster(void)
{
    uint32_t block = next_block++;
    put(block, SHERD_U8, N, SHERD__SECURE_CARD, cards);
    return task(SHERD__OP_ROSTER, PLAN, block, SHERD_I64, 1, 1);
}

static void meet(void)
{
    uint8_t keys[N][32];
    assert_int_equal(join(), 0);
    deal_cards();
    for (uint32_t i = 0; i < N; i++) memcpy(keys[i], cards + i * SHERD__SECURE_CARD + 32, 32);
    for (uint32_t i = 1; i < N; i++)
        assert_int_equal(sherd__aggregate_member_new(&others[i].member, &agreed, i, JOB,
                                                     &others[i].key,
                                                     (const uint8_t(*)[32])keys, NULL), 0);
    assert_int_equal(roster(), 0);
}

/* What members are told of a round: its hide question, and a digest of all that it is about. Each
 * round has parameters of its own, unless they are kept. */
static bool kept;
static int64_t hiding[SHERD__SECURE_HIDE + 2];
static uint8_t about[SHERD__ABOUT], bound[SHERD__ABOUT]; /* bound: among these members */

static void plan_round(uint64_t round, int64_t scale)
{
    const int64_t question[] = { SHERD__SECURE_FORMAT, (int64_t)round, 4, scale, 20 };
    uint8_t training[SHERD__ABOUT], all[SHERD__ABOUT], plan[SHERD__SECURE_TRAINING];
    const sherd__secure_plan p = usual();
    sherd__secure_training(plan, &p);
    memcpy(hiding, question, sizeof hiding);
    if (!kept) params[1] = (double)round / 64;
    sherd__about(training, (const sherd__about_part[]){ { text, sizeof text - 1 },
                                                        { plan, sizeof plan } }, 2);
    sherd__about(all, (const sherd__about_part[]){ { training, sizeof training },
                                                   { cards, sizeof cards } }, 2);
    sherd__about(about, (const sherd__about_part[]){ { all, sizeof all },
                                                     { hiding, sizeof hiding },
                                                     { params, sizeof params } }, 3);
    sherd__about(bound, (const sherd__about_part[]){ { all, sizeof all },
                                                     { about, sizeof about } }, 2);
}

static uint32_t put_seal(uint64_t round, int64_t scale)
{
    uint64_t question[SHERD__SECURE_SEAL] = { SHERD__SECURE_FORMAT, round };
    uint32_t block = next_block++;
    plan_round(round, scale);
    memcpy(question + 2, about, sizeof about);
    put(block, SHERD_I64, 1, SHERD__SECURE_SEAL, question);
    return block;
}

static int seal_for(uint64_t round, int64_t scale)
{
    return task(SHERD__OP_SEAL, put_seal(round, scale), 0, SHERD_U8, N,
                sherd__aggregate_sealed_len(&agreed));
}

static int seal(uint64_t round)
{
    return seal_for(round, 20);
}

/* The first of two blocks. */
static uint32_t put_hide(uint64_t round, int64_t scale)
{
    int64_t question[] = { SHERD__SECURE_FORMAT, (int64_t)round, 4, scale, 20 };
    uint32_t block = next_block;
    next_block += 2;
    put(block, SHERD_I64, 1, SHERD__SECURE_HIDE + 2, question);
    put(block + 1, SHERD_F64, 1, COUNT, params);
    return block;
}

static int hide(uint64_t round, int64_t scale)
{
    uint32_t block = put_hide(round, scale);
    return task(SHERD__OP_HIDE, block, block + 1, SHERD_I64, 1, LEN);
}

/* What members 1 to 3 have sealed for the node in this round. */
static uint8_t pieces[N][512];

static void others_seal(uint64_t round)
{
    sherd_entropy e = sherd__entropy_os();
    for (uint32_t i = 1; i < N; i++) {
        assert_int_equal(sherd__aggregate_begin(others[i].member, round, bound, &e, NULL), 0);
        assert_int_equal(sherd__aggregate_send(others[i].member, 0, pieces[i], NULL), 0);
    }
}

/* What each member has signed of the survivors of this round; the node's own is its answer. */
static uint8_t confirmed[N][SHERD__SECURE_SIGNATURE];
static uint64_t confirm_job = JOB;

static int confirm(uint64_t round, const uint64_t *who, uint64_t len)
{
    uint64_t question[SHERD__SECURE_CONFIRM + N] = { SHERD__SECURE_FORMAT, round };
    uint32_t block = next_block++;
    memcpy(question + SHERD__SECURE_CONFIRM, who, len * sizeof *who);
    put(block, SHERD_I64, 1, SHERD__SECURE_CONFIRM + len, question);
    int err = task(SHERD__OP_CONFIRM, block, 0, SHERD_U8, 1, SHERD__SECURE_SIGNATURE);
    if (!err) memcpy(confirmed[0], result, sizeof confirmed[0]);
    return err;
}

static void others_confirm(uint64_t round, const uint64_t *who, uint64_t len)
{
    uint8_t statement[SHERD__CONFIRMATION];
    uint32_t list[N];
    for (uint64_t i = 0; i < len; i++) list[i] = (uint32_t)who[i];
    sherd__confirmation(statement, confirm_job, round, bound, list, (uint32_t)len);
    for (uint32_t i = 1; i < N; i++)
        assert_int_equal(sherd__identity_sign(others[i].identity, statement, sizeof statement,
                                              confirmed[i]), 0);
}

/* Pieces of the first `survivors`, as a block. */
static uint32_t put_pieces(uint64_t survivors)
{
    size_t sealed = sherd__aggregate_sealed_len(&agreed);
    uint8_t all[N * 512];
    uint32_t block = next_block++;
    for (uint64_t i = 0; i < survivors; i++) memcpy(all + i * sealed, pieces[i], sealed);
    put(block, SHERD_U8, survivors, sealed, all);
    return block;
}

static int check(uint64_t round, uint64_t survivors)
{
    const uint64_t question[SHERD__SECURE_CHECK] = { SHERD__SECURE_FORMAT, round };
    uint32_t block = next_block++;
    put(block, SHERD_I64, 1, SHERD__SECURE_CHECK, question);
    return task(SHERD__OP_CHECK, block, put_pieces(survivors), SHERD_U8, 1, survivors);
}

/* With what these have signed, and pieces of the first `survivors`; 0: it has them. */
static int open_now(uint64_t round, uint64_t survivors, const uint64_t *signers, uint64_t len)
{
    uint64_t question[SHERD__SECURE_OPEN + N * SHERD__SECURE_CONFIRMED] = { SHERD__SECURE_FORMAT,
                                                                            round };
    uint32_t block = next_block++;
    for (uint64_t i = 0; i < len; i++) {
        uint64_t *at = question + SHERD__SECURE_OPEN + SHERD__SECURE_CONFIRMED * i;
        at[0] = signers[i];
        memcpy(at + 1, confirmed[signers[i] % N], SHERD__SECURE_SIGNATURE);
    }
    put(block, SHERD_I64, 1, SHERD__SECURE_OPEN + SHERD__SECURE_CONFIRMED * len, question);
    return task(SHERD__OP_OPEN, block, survivors ? put_pieces(survivors) : 0, SHERD_I64, 1,
                sherd__aggregate_piece_len(&agreed));
}

static const uint64_t everybody[N] = { 0, 1, 2, 3 };

/* All are told of these; they are the first `len`. */
static int open_for(uint64_t round, const uint64_t *who, uint64_t len)
{
    int err = confirm(round, who, len);
    if (err) return err;
    others_confirm(round, who, len);
    return open_now(round, len, everybody, N);
}

static void a_round(uint64_t round)
{
    assert_int_equal(seal(round), 0);
    others_seal(round);
    assert_int_equal(hide(round, 20), 0);
    assert_int_equal(open_for(round, everybody, N), 0);
}

static int fill(void **s)
{
    (void)s;
    policy = policy_of_tests;
    for (size_t i = 0; i < ROWS * 5; i++) examples[i] = (double)draw() / 0x1p30 - 1;
    for (size_t i = 0; i < COUNT; i++) params[i] = (double)draw() / 0x1p31 - 0.5;
    own.x = sherd_view_c(examples, SHERD_F64, ROWS, 5);
    assert_int_equal(sherd__identity_new(&identity), 0);
    for (uint32_t i = 1; i < N; i++)
        assert_int_equal(sherd__identity_new(&others[i].identity), 0);
    return 0;
}

static int empty(void **s)
{
    (void)s;
    sherd__identity_free(identity);
    for (uint32_t i = 1; i < N; i++) sherd__identity_free(others[i].identity);
    return 0;
}

/* ---- tests --------------------------------------------------------------------------------- */

static void rounds_go_on_with_masks_of_their_own(void **s)
{
    (void)s;
    uint8_t first[8 * LEN];
    start(NULL);
    meet();
    assert_int_equal(seal(1), 0);
    assert_int_equal(hide(1, 20), 0);
    memcpy(first, result, sizeof first);
    a_round(2);
    assert_int_equal(seal(3), 0);
    assert_int_equal(hide(3, 20), 0);
    size_t alike = 0;
    for (size_t i = 0; i < LEN; i++) alike += !memcmp(first + 8 * i, result + 8 * i, 8);
    assert_int_equal(alike, 0);
    stop();
}

static void each_question_of_a_round_is_answered_once(void **s)
{
    (void)s;
    start(NULL);
    assert_int_equal(seal(1), SHERD_EINVAL); /* nobody has joined */
    meet();
    assert_int_equal(roster(), SHERD_EINVAL);
    assert_int_equal(hide(0, 20), SHERD_EINVAL);
    assert_int_equal(seal(0), SHERD_EINVAL);
    assert_int_equal(seal(5), 0);
    others_seal(5);
    assert_int_equal(seal(5), SHERD_EINVAL);
    assert_int_equal(seal(4), SHERD_EINVAL);
    assert_int_equal(hide(6, 20), SHERD_EINVAL);
    plan_round(5, 20); /* what was refused was about something else */
    assert_int_equal(hide(5, 20), 0);
    assert_int_equal(hide(5, 20), SHERD_EINVAL);
    assert_int_equal(hide(5, 21), SHERD_EINVAL);
    assert_int_equal(open_for(4, everybody, N), SHERD_EINVAL);
    assert_int_equal(open_now(5, U, everybody, U), SHERD_EINVAL); /* over whom? */
    assert_int_equal(confirm(4, everybody, U), SHERD_EINVAL);
    assert_int_equal(open_for(5, everybody, U), 0);
    assert_int_equal(confirm(5, everybody, U), SHERD_EINVAL);
    assert_int_equal(confirm(5, everybody, N), SHERD_EEXPOSURE); /* another set of survivors */
    assert_int_equal(open_now(5, U, everybody, U), SHERD_EINVAL);
    assert_int_equal(open_now(5, N, everybody, N), SHERD_EINVAL);
    a_round(6);
    stop();
}

static void begin_checked(uint64_t round)
{
    assert_int_equal(seal(round), 0);
    others_seal(round);
    assert_int_equal(hide(round, 20), 0);
    assert_int_equal(check(round, N), SHERD_EINVAL); /* of whom? */
    assert_int_equal(confirm(round, everybody, N), 0);
    others_confirm(round, everybody, N);
}

static void pieces_are_checked_once_and_opened_as_ever(void **s)
{
    (void)s;
    static const uint8_t fine[N];
    start(NULL);
    meet();
    begin_checked(1);
    assert_int_equal(check(2, N), SHERD_EINVAL);
    assert_int_equal(check(1, U), SHERD_ESHAPE);
    assert_int_equal(open_now(1, 0, everybody, N), SHERD_EINVAL); /* it has none yet */
    assert_int_equal(check(1, N), 0);
    assert_int_equal(result_len, N);
    assert_memory_equal(result, fine, N);
    assert_int_equal(check(1, N), SHERD_EINVAL);
    assert_int_equal(open_now(1, N, everybody, N), SHERD_EINVAL); /* a second time */
    assert_int_equal(ledger.binds, 0);
    assert_int_equal(open_now(1, 0, everybody, N), 0);
    assert_int_equal(ledger.binds, 1);
    assert_int_equal(open_now(1, 0, everybody, N), SHERD_EINVAL);
    begin_checked(2);
    assert_int_equal(check(2, N), 0);
    assert_int_equal(open_now(2, 0, everybody, N), 0);
    assert_int_equal(check(2, N), SHERD_EINVAL);
    stop();
}

/* Zeros and noise in place of a piece, and one of another place. */
static void who_has_sealed_no_good_piece_is_named_and_nothing_is_bound(void **s)
{
    (void)s;
    start(NULL);
    for (unsigned k = 0; k < 8; k++) {
        const uint8_t want[N] = { 0, 1, 0, k % 2 };
        size_t binds = ledger.binds;
        meet();
        begin_checked(1 + k);
        if (k < 4) memset(pieces[1], k % 3 ? 0xa5 : 0, sizeof pieces[1]);
        else memcpy(pieces[1], pieces[2], sizeof pieces[1]);
        if (want[3]) pieces[3][60] ^= 1;
        if (k < 6) {
            assert_int_equal(check(1 + k, N), 0);
            assert_memory_equal(result, want, N);
        }
        assert_int_equal(open_now(1 + k, k < 6 ? 0 : N, everybody, N), SHERD_EFRAME);
        assert_int_equal(ledger.binds, binds);
        for (uint32_t i = 1; i < N; i++) {
            sherd__aggregate_member_free(others[i].member);
            others[i].member = NULL;
        }
    }
    stop();
}

/* A coordinator that gives one member other weights than the rest would get that one's gradient
 * from a sum (CCS 2022, "model inconsistency"). */
static void a_gradient_is_given_only_for_what_the_pieces_were_sealed_for(void **s)
{
    (void)s;
    double was = params[3];
    start(NULL);
    meet();
    for (unsigned round = 1; round < 5; round++) {
        assert_int_equal(seal(round), 0);
        others_seal(round);
        if (round == 1) params[3] += 0x1p-40;
        int err = hide(round, round == 2 ? 21 : 20);
        params[3] = was;
        if (round < 3) {
            assert_int_equal(err, SHERD_EINVAL);
            assert_non_null(strstr(j.withheld, "about other parameters"));
            assert_int_equal(hide(round, 20), 0); /* nothing was given yet */
        }
        if (round == 4) { /* what another member was told */
            uint8_t theirs[SHERD__ABOUT], mine[SHERD__ABOUT];
            params[3] += 1;
            plan_round(round + 1, 20);
            params[3] = was;
            memcpy(theirs, bound, sizeof theirs);
            assert_int_equal(seal(round + 1), 0);
            memcpy(mine, bound, sizeof mine);
            memcpy(bound, theirs, sizeof bound);
            others_seal(round + 1);
            memcpy(bound, mine, sizeof bound); /* they say that they were told the same */
            assert_int_equal(hide(round + 1, 20), 0);
            assert_int_equal(open_for(round + 1, everybody, N), SHERD_EFRAME);
        }
    }
    stop();
}

static void too_few_survivors_or_pieces_of_others_open_nothing(void **s)
{
    (void)s;
    start(NULL);
    meet();
    assert_int_equal(seal(1), 0);
    others_seal(1);
    assert_int_equal(hide(1, 20), 0);
    assert_int_equal(open_for(1, everybody, U - 1), SHERD_EFEWNODES);
    static const uint64_t twice[] = { 0, 1, 1 }, beyond[] = { 0, 1, 4 }, back[] = { 0, 2, 1 };
    assert_int_equal(open_for(1, twice, 3), SHERD_EINVAL);
    assert_int_equal(open_for(1, beyond, 3), SHERD_EINVAL);
    assert_int_equal(open_for(1, back, 3), SHERD_EINVAL);
    assert_int_equal(open_for(1, everybody, N), 0);
    assert_int_equal(seal(2), 0);
    assert_int_equal(hide(2, 20), 0);
    assert_int_equal(open_for(2, everybody, N), SHERD_EFRAME); /* pieces of round 1 */
    others_seal(2);
    assert_int_equal(open_now(2, N, everybody, N), SHERD_EINVAL); /* it was asked */
    stop();
}

/* A lying coordinator tells this node of one set of survivors and others of another. */
static void survivors_that_too_few_confirm_open_nothing(void **s)
{
    (void)s;
    static const uint64_t less[] = { 0, 1, 2 }, twice[] = { 0, 1, 1 }, beyond[] = { 0, 1, 4 };
    static const uint64_t others_of_it[] = { 1, 2, 3 };
    start(NULL);
    meet();
    assert_int_equal(seal(1), 0);
    others_seal(1);
    assert_int_equal(hide(1, 20), 0);
    assert_int_equal(confirm(1, everybody, N), 0);
    assert_int_equal(confirm(1, less, U), SHERD_EINVAL);
    assert_non_null(strstr(j.withheld, "round 1 has had its survivors"));
    others_confirm(1, less, U); /* what they were told */
    assert_int_equal(open_now(1, N, everybody, N), SHERD_EAUTH);
    assert_non_null(strstr(j.withheld, "member 1 has not confirmed these survivors of round 1"));
    others_confirm(1, everybody, N);
    assert_int_equal(open_now(1, N, beyond, 3), SHERD_EAUTH);
    confirmed[2][63] ^= 1;
    assert_int_equal(open_now(1, N, everybody, N), SHERD_EAUTH);
    assert_non_null(strstr(j.withheld, "member 2 has not confirmed these"));
    confirmed[2][63] ^= 1;
    assert_int_equal(open_now(1, N, others_of_it, U), 0);
    for (uint64_t round = 2; round < 4; round++) { /* too few, and one of them twice */
        assert_int_equal(seal(round), 0);
        others_seal(round);
        assert_int_equal(hide(round, 20), 0);
        assert_int_equal(confirm(round, everybody, N), 0);
        others_confirm(round, everybody, N);
        assert_int_equal(open_now(round, N, twice, round == 2 ? U - 1 : U), SHERD_EFEWNODES);
        assert_int_equal(open_now(round, N, everybody, N), SHERD_EINVAL); /* it was asked */
    }
    stop();
}

/* Signed by the right member for the right survivors: of another round, job, subject or roster. */
static void a_confirmation_of_another_round_or_job_or_roster_counts_for_nothing(void **s)
{
    (void)s;
    start(NULL);
    meet();
    for (unsigned what = 0; what < 4; what++) {
        uint8_t was[SHERD__ABOUT];
        uint64_t round = 1 + what, said = round - (what == 0);
        assert_int_equal(seal(round), 0);
        others_seal(round);
        assert_int_equal(confirm(round, everybody, N), SHERD_EINVAL); /* it has given nothing */
        assert_int_equal(hide(round, 20), 0);
        assert_int_equal(confirm(round, everybody, N), 0);
        memcpy(was, bound, sizeof was);
        if (what == 1) memcpy(bound, about, sizeof bound); /* as without a roster */
        if (what == 2) bound[31] ^= 1;
        confirm_job = what == 3 ? JOB + 1 : JOB;
        others_confirm(said, everybody, N);
        confirm_job = JOB;
        memcpy(bound, was, sizeof bound);
        assert_int_equal(open_now(round, N, everybody, N), SHERD_EAUTH);
        assert_non_null(strstr(j.withheld, "member 1 has not confirmed"));
        others_confirm(round, everybody, N);
        assert_int_equal(open_now(round, N, everybody, N), 0);
    }
    stop();
}

/* What is signed is bound to the members that this node knows, whatever SEAL says it is about. */
static void a_signature_of_survivors_is_over_members_and_subject(void **s)
{
    (void)s;
    uint8_t statement[SHERD__CONFIRMATION], key[32];
    const uint32_t all[N] = { 0, 1, 2, 3 };
    start(NULL);
    meet();
    assert_int_equal(seal(1), 0);
    assert_int_equal(hide(1, 20), 0);
    assert_int_equal(confirm(1, everybody, N), 0);
    sherd__identity_public(identity, key);
    sherd__confirmation(statement, JOB, 1, bound, all, N);
    assert_true(sherd__identity_verify(key, statement, sizeof statement, confirmed[0]));
    memcpy(bound, about, sizeof bound);
    sherd__confirmation(statement, JOB, 1, bound, all, N);
    assert_false(sherd__identity_verify(key, statement, sizeof statement, confirmed[0]));
    stop();
}

static void a_coordinator_of_another_version_is_told_so(void **s)
{
    (void)s;
    uint64_t words[SHERD__SECURE_PLAN];
    sherd__secure_plan p = usual();
    sherd__secure_plan_write((uint8_t *)words, &p);
    words[0] = 1;
    start(NULL);
    put(PLAN, SHERD_I64, 1, SHERD__SECURE_PLAN, words);
    assert_int_equal(task(SHERD__OP_JOIN, PLAN, 0, SHERD_U8, 1, SHERD__SECURE_CARD), SHERD_EFORMAT);
    assert_non_null(strstr(refusal.text, "another format of secure aggregation"));
    stop();
}

static void keys_that_their_owners_did_not_sign_are_refused(void **s)
{
    (void)s;
    start(NULL);
    for (size_t bit = 0; bit < 8 * N * SHERD__SECURE_CARD; bit += 61) {
        assert_int_equal(join(), 0);
        deal_cards();
        cards[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(roster(), SHERD_EAUTH);
        assert_int_equal(seal(1), SHERD_EINVAL);
    }
    assert_int_equal(join(), 0);
    deal_cards(); /* a signature as another member */
    memcpy(cards + 2 * SHERD__SECURE_CARD, cards + 3 * SHERD__SECURE_CARD, SHERD__SECURE_CARD);
    assert_int_equal(roster(), SHERD_EAUTH);
    static const sherd__seal_key nothing = { .open = { 1 } };
    assert_int_equal(join(), 0);
    deal_cards(); /* signed well, and nothing can be sealed to it */
    card_of(others[2].identity, 2, &nothing, cards + 2 * SHERD__SECURE_CARD);
    assert_int_equal(roster(), SHERD_EAUTH);
    assert_int_equal(join(), 0);
    deal_cards(); /* one owner as two members */
    card_of(others[1].identity, 2, &others[2].key, cards + 2 * SHERD__SECURE_CARD);
    assert_int_equal(roster(), SHERD_EAUTH);
    assert_int_equal(join(), 0);
    deal_cards(); /* the node itself once more */
    card_of(identity, 2, &others[2].key, cards + 2 * SHERD__SECURE_CARD);
    assert_int_equal(roster(), SHERD_EAUTH);
    stop();
}

static size_t line_of(const sherd_identity *id, const char *more, char *out)
{
    char key[SHERD__FINGERPRINT_TEXT];
    sherd__fingerprint_text(sherd__identity_fingerprint(id), key);
    return (size_t)sprintf(out, "127.0.0.1:7001 key=%s %s\n", key, more);
}

static int roster_under(const char *of_1, const char *of_2, const char *of_3)
{
    char lines[1000];
    const char *const more[N] = { NULL, of_1, of_2, of_3 };
    sherd__peers peers;
    size_t len = line_of(identity, "domain=own", lines);
    for (uint32_t i = 1; i < N; i++)
        if (more[i]) len += line_of(others[i].identity, more[i], lines + len);
    assert_int_equal(sherd__peers_parse(&peers, lines, len, "peers", NULL), 0);
    start(&peers);
    assert_int_equal(join(), 0);
    deal_cards();
    int err = roster();
    stop();
    sherd__peers_fini(&peers);
    return err;
}

static void with_a_peers_file_only_its_nodes_are_believed(void **s)
{
    (void)s;
    assert_int_equal(roster_under("", "", ""), 0);
    assert_int_equal(roster_under("role=node", "domain=a", "domain=b"), 0);
    assert_int_equal(roster_under("", "", NULL), SHERD_EAUTH);
    assert_int_equal(roster_under("", "", "role=coordinator"), SHERD_EAUTH);
    assert_int_equal(roster_under("", "domain=a", "domain=a"), SHERD_EAUTH); /* T = 1 */
    assert_int_equal(roster_under("", "", "domain=own"), SHERD_EAUTH);
}

static void thresholds_that_are_not_safe_are_refused(void **s)
{
    (void)s;
    static const uint32_t bad[][3] = { { 2, 2, 1 }, { 4, 2, 1 }, { 4, 3, 0 }, { 4, 3, 2 },
                                       { 7, 4, 2 }, { 4, 5, 1 }, { 1025, 1000, 1 } };
    start(NULL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sherd__secure_plan p = usual();
        p.nodes = bad[i][0];
        p.threshold = bad[i][1];
        p.colluding = bad[i][2];
        assert_true(join_as(&p) != 0);
    }
    meet();
    a_round(1);
    stop();
}

static void a_parameter_that_is_not_finite_is_refused(void **s)
{
    (void)s;
    start(NULL);
    meet();
    params[0] = NAN;
    assert_int_equal(seal(1), 0);
    assert_int_equal(hide(1, 20), SHERD_EINVAL);
    assert_int_equal(ledger.len, 0);
    params[0] = 0.25;
    stop();
    start_with((uint64_t)16 << 20, NULL, NULL);
    assert_int_equal(join(), SHERD_EINVAL);
    assert_non_null(strstr(refusal.text, "no data of its own"));
    stop();
}

/* What gives the same sum to the bit has one entry in the ledger. */
static void zeros_of_either_sign_and_subnormal_parameters_are_one_sum(void **s)
{
    (void)s;
    static const double zeros[] = { 0, -0.0, 0x1p-1074, -0x1p-1023 };
    const double was = params[1];
    uint64_t round = 0;
    start(NULL);
    meet();
    kept = true;
    for (size_t i = 0; i < sizeof zeros / sizeof *zeros; i++) {
        params[1] = zeros[i];
        assert_int_equal(seal(++round), 0);
        assert_int_equal(hide(round, 20), 0);
        assert_memory_equal(ledger.charges[i].about, ledger.charges[0].about,
                            SHERD__LEDGER_DIGEST);
    }
    params[1] = 0x1p-1022; /* the least normal one */
    assert_int_equal(seal(++round), 0);
    assert_int_equal(hide(round, 20), 0);
    assert_memory_not_equal(ledger.charges[round - 1].about, ledger.charges[0].about,
                            SHERD__LEDGER_DIGEST);
    kept = false;
    params[1] = was;
    stop();
}

static void memory_is_counted_before_anything_is_made(void **s)
{
    (void)s;
    unsigned no_room = 0, room = 0;
    for (uint64_t memory = 4096; memory < 65536; memory += 1024) {
        start_with(memory, &own, NULL);
        int err = join();
        no_room += err == SHERD_ENOMEM || err == SHERD_EINVAL;
        room += err == 0;
        stop();
    }
    assert_true(no_room > 0 && room > 0);
}

static void whatever_a_question_says_it_is_answered_once(void **s)
{
    (void)s;
    start(NULL);
    for (unsigned i = 0; i < 3000; i++) {
        uint64_t words[16];
        sherd__secure_plan p = usual();
        sherd__secure_plan_write((uint8_t *)words, &p);
        if (i % 50 == 0) meet();
        if (i % 50 == 0) assert_int_equal(seal(i + 1), 0);
        uint32_t op = SHERD__OP_JOIN + (uint32_t)(draw() % 6);
        if (op > SHERD__OP_OPEN) op = draw() % 2 ? SHERD__OP_CONFIRM : SHERD__OP_CHECK;
        uint32_t left = next_block++, right = 0;
        uint64_t rows = 1 + draw() % 2;
        uint64_t len = op == SHERD__OP_JOIN ? SHERD__SECURE_PLAN : draw() % 7;
        if (op != SHERD__OP_JOIN) words[1] = i / 50 * 50 + 1 + draw() % 3;
        if (draw() % 3) words[draw() % 10] = draw() % 5;
        if (draw() % 9 == 0) words[draw() % 10] = draw() << 33;
        put(left, draw() % 9 ? SHERD_I64 : SHERD_F64, rows, len / rows, words);
        if (draw() % 4) {
            right = next_block++;
            uint64_t cols = draw() % 3 ? COUNT : draw() % 200;
            uint8_t any[200 * 8];
            for (size_t k = 0; k < sizeof any; k++) any[k] = (uint8_t)draw();
            put(right, draw() % 2 ? SHERD_F64 : SHERD_U8, 1, cols, any);
        }
        (void)task(op, left, right, draw() % 2 ? SHERD_U8 : SHERD_I64, 1 + draw() % 4,
                   draw() % 2 ? LEN : draw() % 300);
        for (uint32_t k = 1; k < N && i % 50 == 49; k++) {
            sherd__aggregate_member_free(others[k].member);
            others[k].member = NULL;
        }
    }
    stop();
}

static void a_job_that_is_dropped_leaves_nothing(void **s)
{
    (void)s;
    start(NULL);
    meet();
    a_round(1);
    assert_int_equal(sherd__session_drop(j.co, JOB, 0), 0);
    joined_settle(&j, executor);
    assert_int_equal(sherd__worker_memory(worker)->used, 0);
    assert_int_equal(seal(2), SHERD_EINVAL);
    stop();
}

static void a_plan_has_no_more_places_than_examples_are_dealt(void **s)
{
    (void)s;
    enum { X = 4, Y = 5 };
    for (places = 8; places < 12; places++) {
        sherd__secure_plan p = usual();
        p.x = X;
        p.targets = Y;
        stays = true;
        start_with((uint64_t)16 << 20, NULL, NULL);
        put(X, SHERD_F64, ROWS, 3, examples);
        put(Y, SHERD_F64, ROWS, 2, examples);
        assert_int_equal(join_as(&p), places <= ROWS + 1 ? 0 : SHERD_EINVAL);
        stop();
    }
    stays = false;
    places = ROWS;
}

/* The compute thread serves everybody, and the number of places is one coordinator's word. */
static void a_round_ends_with_what_asked_for_it(void **s)
{
    (void)s;
    threaded = true;
    places = UINT32_MAX;
    for (unsigned how = 0; how < 4; how++) { /* CANCEL of it, of its job, DROP, the end */
        noise = how == 2;
        start(NULL);
        meet();
        assert_int_equal(seal(1), 0);
        uint32_t block = put_hide(1, 20);
        ask(SHERD__OP_HIDE, block, block + 1, SHERD_I64, 1, LEN);
        for (unsigned i = 0; i < 60000 && !atomic_load(&charged); i++) usleep(1000);
        assert_int_equal(sherd__executor_pending(executor), 1);
        if (how == 2) /* behind it, and stops as it draws noise */
            ask(SHERD__OP_SEAL, put_seal(2, 20), 0, SHERD_U8, N,
                sherd__aggregate_sealed_len(&agreed));
        if (how < 2) {
            assert_int_equal(sherd__session_cancel(j.co, JOB, how ? 0 : tasks, how ? 0 : 1), 0);
            tasks--; /* the coordinator hears nothing of it */
        }
        if (how == 2) assert_int_equal(sherd__session_drop(j.co, JOB, 0), 0);
        if (how == 3) {
            joined_cut(&j);
            tasks--;
        } else {
            joined_settle(&j, executor);
        }
        assert_true(idle());
        if (how == 2) assert_int_equal(refused, SHERD_EINTERRUPTED);
        assert_int_equal(ledger.len, 1);
        if (how == 3) joined_open(&j, worker, hear, NULL);
        stop();
    }
    threaded = false;
    places = ROWS;
    noise = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounds_go_on_with_masks_of_their_own),
        cmocka_unit_test(each_question_of_a_round_is_answered_once),
        cmocka_unit_test(pieces_are_checked_once_and_opened_as_ever),
        cmocka_unit_test(who_has_sealed_no_good_piece_is_named_and_nothing_is_bound),
        cmocka_unit_test(a_gradient_is_given_only_for_what_the_pieces_were_sealed_for),
        cmocka_unit_test(too_few_survivors_or_pieces_of_others_open_nothing),
        cmocka_unit_test(survivors_that_too_few_confirm_open_nothing),
        cmocka_unit_test(a_confirmation_of_another_round_or_job_or_roster_counts_for_nothing),
        cmocka_unit_test(a_signature_of_survivors_is_over_members_and_subject),
        cmocka_unit_test(a_coordinator_of_another_version_is_told_so),
        cmocka_unit_test(keys_that_their_owners_did_not_sign_are_refused),
        cmocka_unit_test(with_a_peers_file_only_its_nodes_are_believed),
        cmocka_unit_test(thresholds_that_are_not_safe_are_refused),
        cmocka_unit_test(a_parameter_that_is_not_finite_is_refused),
        cmocka_unit_test(zeros_of_either_sign_and_subnormal_parameters_are_one_sum),
        cmocka_unit_test(memory_is_counted_before_anything_is_made),
        cmocka_unit_test(whatever_a_question_says_it_is_answered_once),
        cmocka_unit_test(a_job_that_is_dropped_leaves_nothing),
        cmocka_unit_test(a_plan_has_no_more_places_than_examples_are_dealt),
        cmocka_unit_test(a_round_ends_with_what_asked_for_it),
    };
    return cmocka_run_group_tests(tests, fill, empty);
}
