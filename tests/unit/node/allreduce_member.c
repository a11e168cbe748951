/* Blocks and plans have the form that docs/PROTOCOL.md describes for all-reduce groups. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/node/allreduce_member.h"

#include "core/bytes.h"
#include "crypto/fragment_make.h"
#include "tests/support/no_backend.h"

static const char recipe[] = "input = 3\nlayer = dense 2\nloss = squared\n";
allreduce_member one;

const sherd__fingerprint *allreduce_key(uint32_t member)
{
    static sherd__fingerprint made_up;
    if (member <= N) return sherd__identity_fingerprint(one.identity[member]);
    memset(&made_up, (int)member, sizeof made_up);
    return &made_up;
}

static bool is_coordinator(void *ctx, const sherd__fingerprint *k)
{
    (void)ctx;
    return one.coordinators && sherd__fingerprint_equal(k, allreduce_key(2));
}

static int open_link(void *ctx, void **link, sherd__allreduce *c, uint32_t member,
                     const sherd__peer *peer)
{
    (void)ctx;
    one.allreduce = c;
    assert_true(sherd__fingerprint_equal(&peer->key, allreduce_key(member)));
    *link = &one.opened;
    one.opened++;
    return SHERD_OK;
}

static void no_link(void *ctx, void *link)
{
    (void)ctx, (void)link;
}

/* ---- a coordinator's session --------------------------------------------------------------- */

static void hear(void *ctx, sherd__event *e)
{
    (void)ctx;
    if (e->kind != SHERD__EV_RESULT && e->kind != SHERD__EV_REFUSED) return;
    one.answered++;
    one.refusals += e->kind == SHERD__EV_REFUSED;
    if (e->kind == SHERD__EV_RESULT && e->task.result.len <= sizeof one.last_result)
        memcpy(one.last_result, sherd__fragment_bytes(e->fragment), (size_t)e->task.result.len);
    one.refused = e->kind == SHERD__EV_REFUSED ? e->refusal.code : 0;
}

void allreduce_settle(void)
{
    joined_settle(&one.j, one.executor);
}

void allreduce_put(uint32_t block, uint8_t dtype, const void *bytes, size_t cols)
{
    joined_put(&one.j, JOB, block, dtype, 1, cols, bytes);
}

int allreduce_ask(uint32_t op, uint32_t left, uint32_t right, uint8_t dtype, uint64_t cols)
{
    uint32_t before = one.answered;
    joined_ask(&one.j, JOB, ++one.tasks, op, left, right, dtype, 1, cols);
    if (one.calls_off) {
        while (joined_move(&one.j, true)) {}
        assert_int_equal(sherd__session_cancel(one.j.co, JOB, 0, 0), 0);
    }
    allreduce_settle();
    return one.answered == before ? 1 : one.refused;
}

static void note_wake(void *ctx)
{
    (void)ctx;
    one.wakes++;
}

static void nobody(void *ctx)
{
    (void)ctx;
}

void allreduce_make_identities(void)
{
    for (uint32_t i = 0; i <= N; i++)
        if (!one.identity[i]) assert_int_equal(sherd_identity_new(&one.identity[i], NULL), 0);
}

/* Connects a coordinator. */
static void come(void)
{
    static const double params[COUNT] = { 0.5, -0.25 };
    joined_open_as(&one.j, one.worker, one.key, one.memory, hear, NULL);
    allreduce_put(TEXT, SHERD_U8, recipe, strlen(recipe));
    allreduce_put(STATE, SHERD_F64, params, COUNT);
}

void allreduce_start_on(bool threaded, const sherd__peers *peers)
{
    const sherd__allreduce_links stubs = { open_link, no_link, no_link, NULL };
    allreduce_make_identities();
    assert_int_equal(threaded ? sherd__executor_new(&one.executor, 16, nobody, NULL)
                              : sherd__executor_new_inline(&one.executor),
                     0);
    sherd__worker_options o = { .backend = one.backend ? one.backend : &none,
                                .backend_ctx = one.backend_ctx,
                                .memory = one.memory ? one.memory : (uint64_t)1 << 22,
                                .executor = one.executor,
                                .self = { .identity = one.identity[SELF], .peers = peers },
                                .links = one.links ? *one.links : stubs,
                                .coordinator = is_coordinator };
    if (one.turns) o.wake = note_wake;
    assert_int_equal(sherd__worker_new(&one.worker, &o), 0);
    one.tasks = one.answered = one.opened = 0;
    one.next_block = FIRST;
    one.away = (joined){ 0 };
    come();
}

void allreduce_swap(void)
{
    joined j = one.j;
    one.j = one.away;
    one.away = j;
    if (!one.j.co) come();
}

void allreduce_start(const sherd__peers *peers)
{
    allreduce_start_on(false, peers);
}

uint64_t allreduce_used(void)
{
    uint64_t used = 0;
    for (const sherd__account *a = sherd__worker_accounts(one.worker); a; a = a->next)
        used += sherd__pool_stats_of(a->pool)->used;
    assert_int_equal(used, sherd__worker_memory(one.worker)->used);
    return used;
}

void allreduce_stop_coordinator(void)
{
    joined_cut(&one.j);
    assert_int_equal(sherd__worker_member(one.worker, allreduce_key(0)), 0);
    assert_int_equal(sherd__worker_stats_of(one.worker)->queued, 0);
}

void allreduce_stop_worker(void)
{
    assert_int_equal(allreduce_used(), 0);
    sherd__worker_free(one.worker);
    sherd__executor_free(one.executor);
}

void allreduce_stop(void)
{
    allreduce_stop_coordinator();
    allreduce_stop_worker();
}

/* ---- requests -------------------------------------------------------------------------------- */

sherd__allreduce_plan allreduce_plan(void)
{
    return (sherd__allreduce_plan){ .kind = SHERD__REDUCE_RING,
                                    .members = N,
                                    .self = SELF,
                                    .id = GROUP,
                                    .recipe = TEXT,
                                    .state = STATE,
                                    .bits = 20,
                                    .batch = 4,
                                    .examples = 6,
                                    .optimiser = { .method = SHERD__SGD } };
}

int allreduce_meet_of(const sherd__allreduce_plan *p, const uint32_t *who, uint32_t n)
{
    uint8_t plan[8 * SHERD__ALLREDUCE_PLAN];
    char roster[128 * SHERD__ALLREDUCE_MOST];
    size_t len = 0;
    for (uint32_t i = 0; i < n; i++) {
        char fp[SHERD__FINGERPRINT_TEXT];
        sherd__fingerprint_text(allreduce_key(who[i]), fp);
        len += (size_t)snprintf(roster + len, sizeof roster - len, "127.0.0.1:%u key=%s\n",
                                one.port ? one.port : 7000 + i, fp);
    }
    sherd__allreduce_plan_write(plan, p);
    allreduce_put(one.next_block, SHERD_I64, plan, SHERD__ALLREDUCE_PLAN);
    allreduce_put(one.next_block + 1, SHERD_U8, roster, len);
    one.next_block += 2;
    return allreduce_ask(SHERD__OP_MEET, one.next_block - 2, one.next_block - 1, SHERD_I64, 1);
}

int allreduce_meet_with(const sherd__allreduce_plan *p, const uint32_t who[N])
{
    return allreduce_meet_of(p, who, N);
}

int allreduce_meet_alone(const sherd__allreduce_plan *p)
{
    return allreduce_meet_of(p, (const uint32_t[]){ SELF }, 1);
}

int allreduce_meet(void)
{
    static const uint32_t who[N] = { 0, 1, 2 };
    sherd__allreduce_plan p = allreduce_plan();
    return allreduce_meet_with(&p, who);
}

int allreduce_step(uint64_t round, uint64_t commit)
{
    uint8_t bytes[8 * (SHERD__ALLREDUCE_STEP + SHERD__PLAN_HEAD + 1)];
    const int32_t scale = 20;
    sherd__allreduce_round r = { .round = round,
                                 .commit = commit,
                                 .rate = 0.5,
                                 .by = 3,
                                 .list = { SHERD__ROWS_GIVEN, 6, 6, { 0 } } };
    sherd__step_plan p = {
        .recipe = TEXT, .bits = 20, .room = 40, .tiers = 1, .params = 1, .batch = 4
    };
    sherd__allreduce_round_write(bytes, &r);
    sherd__step_plan_write(bytes + 8 * SHERD__ALLREDUCE_STEP, &p, &scale);
    allreduce_put(one.next_block++, SHERD_I64, bytes, sizeof bytes / 8);
    return allreduce_ask(SHERD__OP_STEP, one.next_block - 1, 0, SHERD_I64, 1);
}

int allreduce_reduce(void)
{
    return allreduce_ask(SHERD__OP_REDUCE, one.next_block - 1, 0, SHERD_F64,
                         1 + SHERD__ALLREDUCE_FIGURES);
}

uint64_t allreduce_len_of(uint32_t step_number)
{
    sherd__reduce_step s = sherd__reduce_step_of(SHERD__REDUCE_RING, N, SELF, step_number);
    return 8 * sherd__reduce_len(COUNT, N, s.in);
}

int allreduce_bring(uint32_t member, uint64_t id, uint32_t number, uint64_t len, uint8_t dtype)
{
    sherd__fragment *f;
    sherd__account *account = NULL;
    uint8_t *bytes = sherd__worker_member_place(one.worker, &account, allreduce_key(member), id,
                                                number, len);
    if (!bytes) return 1;
    memset(bytes, 0, len);
    sherd__fragment_info i = {
        .origin = SHERD__HIDDEN, .dtype = dtype, .rows = 1, .cols = len / 8, .len = len
    };
    assert_int_equal(sherd__fragment_take(&f, &i, bytes, sherd__worker_unplace, account->pool), 0);
    int err = sherd__worker_member_block(one.worker, account, allreduce_key(member), id, number, f);
    allreduce_settle();
    return err;
}

int allreduce_free_identities(void **unused)
{
    (void)unused;
    for (uint32_t i = 0; i <= N; i++) sherd_identity_free(one.identity[i]);
    return 0;
}
