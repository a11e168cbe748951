/*
 * Tests whether products by tiles of bytes are correct, and measures their speed. A node does both
 * before it listens, since processors and systems with wrong results have been shipped. The test is
 * therefore as short as a test of every path of a product can be. It relies on integer arithmetic
 * only.
 */
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/diag.h"
#include "matrix/residue.h"
#include "matrix/residue_limbs.h"

typedef struct room {
    uint8_t *all, *left, *right, *a, *b, *out;
} room;

static bool room_for(room *r, size_t n, size_t k, size_t m)
{
    const sherd__limbs x = { .transposed = true, .n = n, .k = k, .m = m };
    size_t left, right;
    sherd__limbs_room(&x, &left, &right);
    r->all = sherd__calloc(left + right + 64 + SHERD__RESIDUE_BYTES * (n * k + k * m + n * m), 1);
    if (!r->all) return false;
    r->left = r->all + (64 - (uintptr_t)r->all % 64) % 64;
    r->right = r->left + left;
    r->a = r->right + right;
    r->b = r->a + SHERD__RESIDUE_BYTES * n * k;
    r->out = r->b + SHERD__RESIDUE_BYTES * k * m;
    return true;
}

static uint32_t get(const uint8_t *at, size_t i)
{
    at += SHERD__RESIDUE_BYTES * i;
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16;
}

/* Fills with the greatest residue, or with numbers of a linear congruential generator. */
static void fill(uint8_t *at, size_t n, uint32_t p, bool extreme)
{
    uint64_t state = p;
    for (size_t i = 0; i < n; i++, at += SHERD__RESIDUE_BYTES) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        uint32_t v = extreme ? p - 1 : (uint32_t)((state >> 33) % p);
        for (size_t l = 0; l < SHERD__RESIDUE_BYTES; l++) at[l] = (uint8_t)(v >> 8 * l);
    }
}

enum { TEST_N = 21, TEST_K = SHERD__LIMBS_DEPTH + 70, TEST_M = 18 };
_Static_assert(TEST_K <= 1 << 16, "sums of products below 2^48 are reduced once, at their end");

/* A node does this before it listens, so it is fast: it unpacks each value once and does not
 * divide. */
static void sum_up(const room *r, bool transposed, uint64_t sums[TEST_N][TEST_M])
{
    memset(sums, 0, sizeof(uint64_t[TEST_N][TEST_M]));
    for (size_t l = 0; l < TEST_K; l++) {
        uint32_t b[TEST_M];
        for (size_t j = 0; j < TEST_M; j++) b[j] = get(r->b, l * TEST_M + j);
        for (size_t i = 0; i < TEST_N; i++) {
            uint64_t a = get(r->a, transposed ? l * TEST_N + i : i * TEST_K + l);
            for (size_t j = 0; j < TEST_M; j++) sums[i][j] += a * b[j];
        }
    }
}

static int selftest_prime(const room *r, uint32_t p, bool extreme, bool transposed, sherd_diag *d)
{
    const sherd__limbs x = { .p = p,
                             .transposed = transposed,
                             .n = TEST_N,
                             .k = TEST_K,
                             .m = TEST_M,
                             .a = r->a,
                             .b = r->b,
                             .out = r->out };
    uint64_t sums[TEST_N][TEST_M];
    fill(r->a, (size_t)TEST_N * TEST_K, p, extreme);
    fill(r->b, (size_t)TEST_K * TEST_M, p, extreme);
    int err = sherd__limbs_multiply(&x, NULL, r->left, r->right);
    if (err)
        return sherd__fail(d, SHERD_EDEVICE, "set OPENBLAS_CORETYPE to an older core",
                           "AMX: a product modulo %u fails: %s", p, sherd_strerror(err));
    sum_up(r, transposed, sums);
    for (size_t i = 0; i < TEST_N; i++)
        for (size_t j = 0; j < TEST_M; j++) {
            uint32_t got = get(r->out, i * TEST_M + j), want = (uint32_t)(sums[i][j] % p);
            if (got != want)
                return sherd__fail(d, SHERD_EDEVICE, "set OPENBLAS_CORETYPE to an older core",
                                   "AMX: element (%zu, %zu) of a product modulo %u is %u, expected "
                                   "%u",
                                   i, j, p, got, want);
        }
    return SHERD_OK;
}

int sherd__limbs_selftest(sherd_diag *d)
{
    room r;
    int err = SHERD_OK;
    if (!sherd__limbs_here()) return SHERD_OK;
    if (!room_for(&r, TEST_N, TEST_K, TEST_M)) return sherd__fail_memory(d, "the self-test");
    for (size_t i = 0; i < 8 * SHERD__TABLE_PRIMES && err == 0; i++) {
        const sherd__primes *table = i & 1 ? &sherd__primes_wide : &sherd__primes_default;
        err = selftest_prime(&r, table->p[i / 8], (i & 2) != 0, (i & 4) != 0, d);
    }
    sherd__free(r.all);
    return err;
}

/* With one thread, uses its CPU time, so that other load on the machine makes no difference. */
static double seconds(const sherd__team *team)
{
    return sherd__team_threads(team) == 1 ? sherd__clock_busy_s() : sherd__clock_s();
}

double sherd__limbs_gflops(sherd__team *team, size_t n, size_t k, size_t m)
{
    enum { MOST = 768, ROUNDS = 4 };
    double best = 0;
    room r;
    if (n > MOST) n = MOST;
    if (k > MOST) k = MOST;
    if (m > MOST) m = MOST;
    if (!sherd__limbs_here() || n == 0 || k == 0 || m == 0 || !room_for(&r, n, k, m)) return 0;
    const sherd__limbs x = {
        .p = sherd__primes_default.p[0], .n = n, .k = k, .m = m, .a = r.a, .b = r.b, .out = r.out
    };
    for (int round = 0; round < ROUNDS; round++) {
        double took = seconds(team);
        int err = sherd__limbs_multiply(&x, team, r.left, r.right);
        took = seconds(team) - took;
        double rate = took > 0 ? 2e-9 * (double)n * (double)k * (double)m / took : 0;
        if (!err && rate > best) best = rate;
    }
    sherd__free(r.all);
    return best;
}
