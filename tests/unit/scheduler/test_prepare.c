/* From options to scheme, plan and ledger: refusals, and what follows from the seed alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "scheduler/plan/prepare.h"
#include "core/alloc.h"
#include "crypto/perm.h"
#include "scheduler/plan/prepare_internal.h"
#include "sherd/forecast.h"

static double a_data[30 * 20], b_data[20 * 10], c_data[30 * 20];
static sherd_view a, b;
static const uint8_t seed[32] = { 1, 2, 3 };
static const uint32_t domain[] = { 0, 1, 2, 0 };
static const sherd__nodes nodes = {
    .count = 4, .domain = domain, .domains = 3, .memory = UINT64_C(1) << 24
};

static int begin(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 600; i++) a_data[i] = i % 3 ? (double)i / 7 : 0;
    for (unsigned i = 0; i < 200; i++) b_data[i] = (double)i - 100;
    a = sherd_view_c(a_data, SHERD_F64, 30, 20);
    b = sherd_view_c(b_data, SHERD_F64, 20, 10);
    return 0;
}

static sherd_product_options options(void)
{
    sherd_product_options o;
    sherd__product_options_init(&o);
    o.seed = seed;
    return o;
}

static int prepare(sherd__prepared *p, const sherd_product_options *o, sherd_diag *d)
{
    return sherd__prepare_multiply(p, &(sherd__matrices){ a, b, c_data, 10 }, &nodes, o, d);
}

static void seed_and_operation_determine_the_exposures(void **state)
{
    (void)state;
    uint32_t first[20];
    for (unsigned round = 0; round < 4; round++) {
        sherd__prepared p;
        sherd_product_options o = options();
        uint8_t key[32];
        uint32_t want[20], planned[4] = { 0 };
        o.operation = round == 1 ? 5 : 0;
        o.balanced = round == 2;
        assert_int_equal(prepare(&p, &o, NULL), SHERD_OK);
        sherd__perm_key(key, seed, SHERD__EXPO_LABEL, o.operation, 0);
        assert_int_equal(sherd__exposures(key, 20, 4, o.balanced, want), SHERD_OK);
        assert_memory_equal(p.exposures, want, sizeof want);
        for (unsigned i = 0; i < 20; i++) planned[want[i]]++;
        assert_memory_equal(p.planned, planned, sizeof planned);
        assert_memory_equal(p.seed, seed, 32);
        if (round == 0) memcpy(first, want, sizeof want);
        else if (round == 3) assert_memory_equal(first, want, sizeof want);
        else assert_memory_not_equal(first, want, sizeof want);
        sherd__prepared_fini(&p);
        for (size_t i = 0; i < sizeof p; i++) assert_int_equal(((uint8_t *)&p)[i], 0); /* wiped */
    }
}

static void without_a_seed_every_call_draws_one(void **state)
{
    (void)state;
    sherd__prepared p, q;
    sherd_product_options o = options();
    o.seed = NULL;
    assert_int_equal(prepare(&p, &o, NULL), SHERD_OK);
    assert_int_equal(prepare(&q, &o, NULL), SHERD_OK);
    assert_memory_not_equal(p.seed, q.seed, 32);
    sherd__prepared_fini(&p);
    sherd__prepared_fini(&q);
}

/* Masks, check vectors and seeds are drawn only from the given entropy source. */
static void all_random_numbers_come_from_the_given_entropy(void **state)
{
    (void)state;
    uint8_t drawn[2][32];
    for (unsigned round = 0; round < 4; round++) {
        sherd__seeded st;
        sherd__entropy e = sherd__entropy_seeded(&st, 11);
        sherd__nodes own = nodes;
        sherd__prepared p;
        sherd_product_options o = options();
        int err;
        own.entropy = &e;
        own.usable = own.domains;
        o.seed = NULL;
        if (round == 3) {
            o.scheme = SHERD_SHARE;
            o.exact = true;
            err = sherd__prepare_kept(&p, a, &(sherd_keep_options){ .part = 30 }, &own, &o, NULL);
        } else if (round == 2) {
            err = sherd__prepare_multiply(&p, &(sherd__matrices){ a, b, c_data, 10 }, &own, &o,
                                          NULL);
        } else {
            err = sherd__prepare_apply(&p, SHERD_OP_SIGMOID, &(sherd__matrices){ a, a, c_data, 20 },
                                       &own, &o, NULL);
        }
        assert_int_equal(err, SHERD_OK);
        assert_ptr_equal(p.entropy.ctx, e.ctx);
        assert_true(p.entropy.fill == e.fill);
        if (round < 2) memcpy(drawn[round], p.seed, 32);
        if (round == 2) assert_memory_equal(drawn[0], p.seed, 32); /* it is drawn first */
        sherd__prepared_fini(&p);
    }
    assert_memory_equal(drawn[0], drawn[1], 32);
}

static void invalid_options_are_refused_with_a_message(void **state)
{
    (void)state;
    sherd__prepared p;
    struct {
        sherd_product_options o;
        int err;
        const char *says;
    } cases[] = {
        { options(), SHERD_EINVAL, "unknown scheme" },
        { options(), SHERD_EINVAL, "1 bits" },
        { options(), SHERD_EINVAL, "27 bits" },
        { options(), SHERD_EINVAL, "exposure bound" },
        { options(), SHERD_EINVAL, "exposure bound" },
        { options(), SHERD_EFEWNODES, "does not fit" },
        { options(), SHERD_EINVAL, "unknown encoding 3" },
        { options(), SHERD_EINVAL, "a link of -1" },
    };
    cases[0].o.scheme = (sherd_scheme)9;
    cases[1].o.exact = true, cases[1].o.bits = 1;
    cases[2].o.exact = true, cases[2].o.bits = 27;
    cases[3].o.exposure_max = -0.1;
    cases[4].o.exposure_max = 1.01;
    cases[5].o.memory = 100;
    cases[6].o.encoding = (sherd_encoding)3;
    cases[7].o.link_rate = -1;
    for (unsigned i = 0; i < 8; i++) {
        sherd_diag d = { 0 };
        assert_int_equal(prepare(&p, &cases[i].o, &d), cases[i].err);
        if (!strstr(d.message, cases[i].says)) fail_msg("%u: %s", i, d.message);
    }
    sherd_product_options o = options();
    sherd_diag d = { 0 };
    sherd__nodes none = { .domain = domain };
    assert_int_equal(sherd__prepare_multiply(&p, &(sherd__matrices){ a, b, c_data, 10 }, &none, &o,
                                             &d),
                     SHERD_EFEWNODES);
    assert_int_equal(sherd__prepare_multiply(&p, &(sherd__matrices){ a, a, c_data, 20 }, &nodes, &o,
                                             NULL),
                     SHERD_ESHAPE);
    assert_int_equal(sherd__prepare_multiply(&p, &(sherd__matrices){ a, b, c_data, 9 }, &nodes, &o,
                                             NULL),
                     SHERD_EINVAL);
    assert_int_equal(sherd__prepare_apply(&p, 99, &(sherd__matrices){ a, a, c_data, 20 }, &nodes,
                                          &o, NULL),
                     SHERD_EINVAL);
    assert_int_equal(sherd__prepare_apply(&p, SHERD_OP_MINUS,
                                          &(sherd__matrices){ a, b, c_data, 20 }, &nodes, &o, NULL),
                     SHERD_ESHAPE);
    o.exact = true;
    assert_int_equal(sherd__prepare_apply(&p, SHERD_OP_EXP, &(sherd__matrices){ a, a, c_data, 20 },
                                          &nodes, &o, NULL),
                     SHERD_EUNSUPPORTED);
}

static void plans_use_what_nodes_declare_of_their_devices(void **state)
{
    (void)state;
    enum { SIDE = 600 };
    static double sparse[SIDE * SIDE], out[SIDE * SIDE];
    static const uint32_t own[] = { 0, 1, 2, 3 };
    sherd__nodes four = {
        .count = 4, .domain = own, .domains = 4, .usable = 4, .memory = UINT64_C(1) << 30
    };
    for (unsigned i = 0; i < SIDE * SIDE; i += 61) sparse[i] = i;
    sherd_view s = sherd_view_c(sparse, SHERD_F64, SIDE, SIDE);
    for (int round = 0; round < 4; round++) {
        sherd__prepared p;
        sherd_product_options o = options();
        o.scheme = round < 2 ? SHERD_PLAIN : SHERD_SHARE;
        o.code = round < 2 ? SHERD_CODE_AUTO : SHERD_CODE_LAGRANGE;
        o.exact = true;
        o.bits = 16;
        o.memory = UINT64_C(1) << 30;
        four.no_csr = round == 1;
        four.cell = round == 3 ? 8 << 20 : 1 << 20;
        four.depth = round == 3 ? 6 : 2;
        sherd_diag d = { 0 };
        if (sherd__prepare_multiply(&p, &(sherd__matrices){ s, s, out, SIDE }, &four, &o, &d))
            fail_msg("%s", d.message);
        if (round < 2) assert_int_equal(p.encoding.csr, round == 0);
        else if (round == 2) assert_true(p.plan.panel_rows == 150 && p.plan.depth == 3);
        else assert_true(p.plan.panel_rows == 600 && p.plan.depth == 7);
        sherd__prepared_fini(&p);
    }
}

static void private_schemes_refuse_element_wise_operations(void **state)
{
    (void)state;
    for (sherd_scheme scheme = SHERD_SHARE; scheme <= SHERD_BLIND; scheme++) {
        sherd__prepared p;
        sherd_diag d = { 0 };
        sherd_product_options o = options();
        o.scheme = scheme;
        assert_int_equal(sherd__prepare_apply(&p, SHERD_OP_EXP,
                                              &(sherd__matrices){ a, a, c_data, 20 }, &nodes, &o,
                                              &d),
                         SHERD_EUNSUPPORTED);
        assert_non_null(strstr(d.message, "in clear"));
    }
}

/* Returns what a node receives of A in a product in shares with the seed that all tests here
 * use. */
static void share_of_a(uint8_t out[1024])
{
    static const uint32_t own[] = { 0, 1, 2, 3 };
    static const sherd__nodes four = {
        .count = 4, .domain = own, .domains = 4, .usable = 4, .memory = UINT64_C(1) << 24
    };
    sherd__prepared p;
    sherd__cell_work w;
    sherd_product_options o = options();
    o.scheme = SHERD_SHARE;
    o.colluding = 1;
    assert_int_equal(sherd__prepare_multiply(&p, &(sherd__matrices){ a, b, c_data, 10 }, &four, &o,
                                             NULL),
                     SHERD_OK);
    assert_int_equal(p.hiding.ops->hide(p.hiding.ctx, (sherd__cell){ 2, 0, 0 }, &w), SHERD_OK);
    assert_true(sherd__fragment_info_of(w.left)->len >= 1024);
    assert_int_equal(sherd__fragment_read(w.left, 0, out, 1024), SHERD_OK);
    sherd__fragment_free(w.left);
    sherd__prepared_fini(&p);
}

static void a_seed_does_not_determine_masks(void **state)
{
    (void)state;
    uint8_t first[1024], second[1024];
    size_t equal = 0;
    share_of_a(first);
    share_of_a(second);
    for (size_t i = 0; i < sizeof first; i++) equal += first[i] == second[i];
    assert_true(equal < 32); /* 7 by chance */
}

static void nonfinite_values_are_refused_in_exact_mode_with_their_place(void **state)
{
    (void)state;
    static const double odd[] = { NAN, INFINITY };
    for (unsigned i = 0; i < 4; i++) {
        double *at = i < 2 ? &a_data[2 * 20 + 5] : &b_data[2 * 10 + 5], old = *at;
        sherd__prepared p;
        sherd_diag d = { 0 };
        sherd_product_options o = options();
        *at = odd[i % 2];
        o.exact = true;
        assert_int_equal(prepare(&p, &o, &d), SHERD_ERANGE);
        assert_non_null(strstr(d.message, i < 2 ? "A" : "B"));
        o.exact = false;
        assert_int_equal(prepare(&p, &o, NULL), SHERD_OK);
        assert_true(p.tolerant);
        sherd__prepared_fini(&p);
        *at = old;
    }
}

static int identity(void *ctx, size_t row, uint32_t *out)
{
    (void)row;
    for (uint32_t i = 0; i < *(uint32_t *)ctx; i++) out[i] = i;
    return SHERD_OK;
}

static void stored_exposures_are_used_and_checked(void **state)
{
    (void)state;
    uint32_t exposures[20] = { 0 }, m = 10;
    sherd_shuffles s = { .size = sizeof s, .exposures = exposures, .perm = identity, .ctx = &m };
    for (int seeded = 0; seeded < 2; seeded++) { /* a metadata file may contain no seed */
        sherd_product_options o = options();
        sherd__prepared p;
        sherd_diag d = { 0 };
        o.shuffles = &s;
        o.seed = seeded ? seed : NULL;
        for (unsigned i = 0; i < 20; i++) exposures[i] = i % 3;
        assert_int_equal(prepare(&p, &o, NULL), SHERD_OK);
        assert_int_equal(p.planned[0], 7);
        assert_int_equal(p.planned[3], 0);
        sherd__prepared_fini(&p);
        o.exposure_max = 0.35;
        assert_int_equal(sherd_product_exposures(20, 4, &o, &d), SHERD_OK);
        o.exposure_max = 0.3;
        assert_int_equal(sherd_product_exposures(20, 4, &o, &d), SHERD_EEXPOSURE);
        assert_string_equal(d.message,
                            "the plan gives node-1's domain 0.35 of A; --exposure-max is 0.3");
        exposures[13] = 4;
        sherd_diag e = { 0 }, f = { 0 }, g = { 0 };
        assert_int_equal(prepare(&p, &o, &e), SHERD_EFORMAT);
        assert_string_equal(e.message,
                            "exposure 13 names node 4, and there are 4, numbered from 0");
        assert_int_equal(sherd_product_exposures(20, 4, &o, &f), SHERD_EFORMAT);
        assert_string_equal(f.message, e.message);
        assert_int_equal(sherd__prepare_apply(&p, SHERD_OP_TANH,
                                              &(sherd__matrices){ a, a, c_data, 20 }, &nodes, &o,
                                              &g),
                         SHERD_EFORMAT);
        assert_string_equal(g.message, e.message);
    }
}

/* The row permutations that were requested. */
typedef struct asked_rows {
    uint32_t m; /* for identity() */
    uint32_t rows[20];
} asked_rows;

static int asked_row(void *ctx, size_t row, uint32_t *out)
{
    uint32_t n = 30;
    ((asked_rows *)ctx)->rows[row]++;
    return identity(&n, row, out);
}

static void stored_row_permutations_are_used_if_rows_are_shuffled(void **state)
{
    (void)state;
    for (int shuffled = 0; shuffled < 2; shuffled++) {
        uint32_t exposures[20];
        asked_rows asked = { .m = 10 };
        sherd_shuffles s = { sizeof s, exposures, identity, asked_row, &asked };
        sherd_product_options o = options();
        sherd__prepared p;
        sherd__cell_work work;
        for (unsigned i = 0; i < 20; i++) exposures[i] = i % 4;
        o.seed = NULL;
        o.shuffles = &s;
        o.shuffle_rows = shuffled;
        o.group = 1;
        o.encoding = SHERD_ENCODING_DENSE;
        assert_int_equal(prepare(&p, &o, NULL), SHERD_OK);
        assert_int_equal(p.hiding.ops->hide(p.hiding.ctx, (sherd__cell){ 2, 0, 0 }, &work), 0);
        for (unsigned i = 2; i < 20; i += 4) /* the slot's columns, each in a group of its own */
            assert_int_equal(asked.rows[i] > 0, shuffled);
        sherd__fragment_free(work.left);
        sherd__fragment_free(work.right);
        sherd__prepared_fini(&p);
    }
}

static int next(sherd__prepared *p, sherd_view v, const sherd_product_options *o, sherd_diag *d)
{
    return sherd__prepared_next(p, &(sherd__matrices){ .a = v, .out = c_data, .ld = 10 }, o, d);
}

static void the_next_operand_must_fit_the_plan(void **state)
{
    (void)state;
    sherd__prepared p;
    sherd_product_options o = options();
    sherd_view shape = sherd_view_c(NULL, SHERD_F64, 30, 20);
    int32_t large[20] = { 1 << 20 };
    int64_t small[20] = { 1 << 10 };
    int32_t narrow[20] = { 0, -9, 65535 };
    o.exact = true;
    assert_int_equal(sherd__prepare_multiply(&p, &(sherd__matrices){ shape, b, NULL, 10 }, &nodes,
                                             &o, NULL),
                     SHERD_OK);
    assert_true(p.shape_only);
    for (size_t n = 0; n <= 30; n += 6)
        assert_int_equal(next(&p, sherd_view_sub(a, 0, n, 0, 20), &o, NULL), SHERD_OK);
    assert_int_equal(next(&p, sherd_view_c(a_data, SHERD_F64, 31, 19), &o, NULL), SHERD_ESHAPE);
    assert_int_equal(next(&p, sherd_view_c(large, SHERD_I32, 1, 20), &o, NULL), SHERD_ERANGE);
    assert_int_equal(next(&p, sherd_view_c(small, SHERD_I64, 1, 20), &o, NULL), SHERD_OK);
    assert_int_equal(next(&p, sherd_view_c(narrow, SHERD_I32, 1, 20), &o, NULL), SHERD_OK);
    narrow[7] = -65536;
    sherd_diag d = { 0 };
    assert_int_equal(next(&p, sherd_view_c(narrow, SHERD_I32, 1, 20), &o, &d), SHERD_ERANGE);
    assert_non_null(strstr(d.message, "A: row 0, column 7: -65536 is beyond 65535"));
    sherd__prepared_fini(&p);
}

static void small_integers_in_a_wide_type_need_no_residues(void **state)
{
    (void)state;
    enum { K = 300 };
    static int32_t x[2 * K], y[K * 2];
    for (size_t i = 0; i < 2 * K; i++) x[i] = y[i] = (int32_t)(i % 19) - 9;
    sherd_view left = sherd_view_c(x, SHERD_I32, 2, K), right = sherd_view_c(y, SHERD_I32, K, 2);
    sherd__prepared p;
    sherd_product_options o = options();
    sherd_diag d = { 0 };
    double out[4];
    o.exact = true;
    o.bits = 4;
    assert_int_equal(sherd__prepare_multiply(&p, &(sherd__matrices){ left, right, out, 2 }, &nodes,
                                             &o, NULL),
                     SHERD_OK);
    assert_int_equal(p.primes_len, 0);
    assert_int_equal(p.size_a, 1);
    assert_int_equal(p.fixed_a.bits, 5);
    sherd__prepared_fini(&p);
    o.bits_bind = true; /* the bits were requested explicitly: they are not ignored */
    assert_int_equal(sherd__prepare_multiply(&p, &(sherd__matrices){ left, right, out, 2 }, &nodes,
                                             &o, &d),
                     SHERD_ERANGE);
    assert_non_null(strstr(d.message, "B: row 0, column 0: -9 is beyond 7"));
    o.bits = 5;
    assert_int_equal(sherd__prepare_multiply(&p, &(sherd__matrices){ left, right, out, 2 }, &nodes,
                                             &o, NULL),
                     SHERD_OK);
    sherd__prepared_fini(&p);
}

static void a_plan_beyond_the_bound_is_refused_before_anything_is_sent(void **state)
{
    (void)state;
    /* Nodes 1 and 4 are one domain, which has half of A, by columns or rows */
    for (unsigned i = 0; i < 4; i++) {
        sherd__prepared p;
        sherd_diag d = { 0 };
        sherd_product_options o = options();
        o.balanced = true;
        o.scheme = i & 1 ? SHERD_PLAIN : SHERD_PERMUTE;
        o.exposure_max = i & 2 ? 1 : 0.4;
        assert_int_equal(prepare(&p, &o, &d), i & 2 ? SHERD_OK : SHERD_EEXPOSURE);
        if (i & 2) sherd__prepared_fini(&p);
        else if (!strstr(d.message, "the plan gives node-1's domain 0.5"))
            fail_msg("%u: %s", i, d.message);
    }
    sherd_forecast e = { .size = sizeof e };
    const sherd_forecast_options with = {
        .size = sizeof with, .nodes = 4, .node_memory = nodes.memory, .no_time = true
    };
    sherd_diag d = { 0 };
    sherd_product_options o = options();
    o.balanced = true;
    o.exposure_max = 0.2;
    assert_int_equal(sherd_forecast_multiply(a, b, &o, &with, &e, &d), SHERD_EEXPOSURE);
    assert_string_equal(d.message,
                        "the plan gives node-1's domain 0.25 of A; --exposure-max is 0.2");
    o.exposure_max = 0.25;
    assert_int_equal(sherd_forecast_multiply(a, b, &o, &with, &e, &d), SHERD_OK);
    o.exposure_max = 0.4;
    assert_int_equal(sherd__prepare_apply(&(sherd__prepared){ 0 }, SHERD_OP_MINUS,
                                          &(sherd__matrices){ a, a, c_data, 20 }, &nodes, &o, &d),
                     SHERD_EEXPOSURE);
}

static void effects_of_seed_and_bound_are_known_without_nodes_and_operands(void **state)
{
    (void)state;
    static const uint32_t own[] = { 0, 1, 2, 3 };
    static const sherd__nodes four = {
        .count = 4, .domain = own, .domains = 4, .usable = 4, .memory = UINT64_C(1) << 24
    };
    unsigned refused = 0;
    for (unsigned i = 0; i < 400; i++) {
        sherd__prepared p;
        sherd_product_options o = options();
        sherd_diag early = { 0 }, late = { 0 };
        uint8_t other[32] = { (uint8_t)i, (uint8_t)(i >> 8) };
        o.seed = other;
        o.balanced = i % 8 == 0;
        o.exposure_max = 0.2 + 0.05 * (i % 5);
        int err = sherd__prepare_multiply(&p, &(sherd__matrices){ a, b, c_data, 10 }, &four, &o,
                                          &late);
        if (!err) sherd__prepared_fini(&p);
        int said = sherd_product_exposures(20, 4, &o, &early);
        if (said) assert_string_equal(early.message, late.message);
        assert_int_equal(said, err);
        refused += err == SHERD_EEXPOSURE;
    }
    assert_true(refused > 40 && refused < 360);
    sherd_product_options o = options();
    o.exposure_max = 0.01;
    assert_int_equal(sherd_product_exposures(0, 4, &o, NULL), SHERD_OK);
    o.scheme = SHERD_PLAIN;
    assert_int_equal(sherd_product_exposures(20, 4, &o, NULL), SHERD_OK);
}

/* What can be known of a product before there are nodes, through the public header alone. */
static void needs_and_range_are_known_before_there_are_nodes(void **state)
{
    (void)state;
    static const struct {
        sherd_scheme scheme;
        uint32_t colluding, spare;
        uint64_t least;
    } needs[] = { { 0, 0, 0, 1 },
                  { SHERD_PLAIN, 5, 5, 1 },
                  { SHERD_SHARE, 0, 0, 3 },
                  { SHERD_SHARE, 2, 3, 8 },
                  { SHERD_SHARE1, 1, 0, 2 },
                  { SHERD_SHARE1, 3, 1, 5 },
                  { SHERD_BLIND, 0, 0, 1 },
                  { SHERD_SHARE, 63, UINT32_MAX, 127 + (UINT64_C(1) << 32) - 1 } };
    uint64_t least;
    sherd_diag d = { 0 };
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++) {
        sherd_product_options o = { .size = sizeof o,
                                    .scheme = needs[i].scheme,
                                    .colluding = needs[i].colluding,
                                    .spare = needs[i].spare };
        assert_int_equal(sherd_product_domains(&least, &o, NULL), SHERD_OK);
        assert_int_equal(least, needs[i].least);
    }
    sherd_product_options o = { .size = sizeof o, .scheme = (sherd_scheme)77 };
    assert_int_equal(sherd_product_domains(&least, &o, &d), SHERD_EINVAL);
    assert_string_equal(d.message, "unknown scheme 77");
    const sherd_product_options none = { .size = 0 };
    assert_int_equal(sherd_product_domains(&least, &none, NULL), SHERD_EINVAL);

    static const double bad[] = { 1, NAN, 2, 3 }, good[] = { 1, 2, 3, 4 };
    static const int64_t wide[] = { 1, 2, 3, 1 << 26 };
    sherd_view vbad = sherd_view_c(bad, SHERD_F64, 2, 2), v = sherd_view_c(good, SHERD_F64, 2, 2),
               vwide = sherd_view_c(wide, SHERD_I64, 2, 2);
    o.scheme = SHERD_PERMUTE;
    assert_int_equal(sherd_product_range(vbad, v, &o, NULL), SHERD_OK); /* float64 holds NaN */
    o.exact = true;
    o.name_a = "left";
    d = (sherd_diag){ 0 };
    assert_int_equal(sherd_product_range(vbad, v, &o, &d), SHERD_ERANGE);
    assert_string_equal(d.message, "left: row 0, column 1 is NaN: fixed point has no such value");
    assert_int_equal(sherd_product_range(v, vwide, &o, NULL), SHERD_OK);
    o.scheme = SHERD_SHARE;
    assert_int_equal(sherd_product_range(v, vwide, &o, NULL), SHERD_ERANGE);
    o.bits = 27;
    assert_int_equal(sherd_product_range(v, v, &o, NULL), SHERD_EINVAL);
    o.bits = 0;
    assert_int_equal(sherd_product_range(v, sherd_view_c(good, SHERD_F64, 1, 4), &o, NULL),
                     SHERD_ESHAPE);
    assert_int_equal(sherd_product_range(v, sherd_view_c(NULL, SHERD_F64, 2, 2), &o, NULL),
                     SHERD_EINVAL);
    assert_int_equal(sherd_product_exposures(20, 0, &o, NULL), SHERD_EINVAL);
}

static void the_bound_applies_to_the_second_operand_of_element_wise_operations(void **state)
{
    (void)state;
    sherd__prepared p;
    sherd__scheme_shape shape;
    static const uint32_t own[] = { 0, 1, 2, 3 };
    sherd__nodes four = { .count = 4, .domain = own, .domains = 4, .memory = UINT64_C(1) << 24 };
    sherd_product_options o = options();
    o.balanced = true;
    o.exposure_max = 0.4;
    for (unsigned arity = 1; arity <= 2; arity++) {
        uint32_t op = arity == 2 ? SHERD_OP_TIMES : SHERD_OP_EXP, domain_at;
        assert_int_equal(sherd__prepare_apply(&p, op, &(sherd__matrices){ a, a, c_data, 20 }, &four,
                                              &o, NULL),
                         SHERD_OK);
        p.hiding.ops->shape(p.hiding.ctx, &shape);
        double seen = arity == 2 ? 0.25 : 0; /* 0 for a second operand that does not exist */
        for (unsigned again = 0; again < 2; again++)
            for (uint32_t i = 0; i < shape.panels; i++)
                assert_int_equal(sherd__ledger_give(p.ledger, 1, (sherd__cell){ 1, 0, i }),
                                 SHERD_OK);
        assert_true(sherd__ledger_fraction(p.ledger, 1, 0) == 0.25);
        assert_true(sherd__ledger_fraction(p.ledger, 1, 1) == seen);
        assert_true(sherd__ledger_bound(p.ledger, 1) == 0.4);
        assert_true(sherd__ledger_planned(p.ledger, 1, &domain_at) == seen);
        int err = SHERD_OK;
        for (uint32_t i = 0; i < shape.panels && !err; i++)
            err = sherd__ledger_give(p.ledger, 1, (sherd__cell){ 2, 0, i });
        assert_int_equal(err, SHERD_EEXPOSURE);
        assert_true(sherd__ledger_fraction(p.ledger, 1, 1) <= 0.4);
        sherd__prepared_fini(&p);
    }
}

static void every_failed_allocation_is_reported(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < 6; kind++) {
        int err = SHERD_ENOMEM;
        for (size_t n = 1; err; n++) {
            sherd__prepared p;
            sherd_diag d = { 0 };
            sherd_product_options o = options();
            o.exact = kind & 1;
            o.bits = 26;
            o.scheme = kind & 2 ? SHERD_PLAIN : SHERD_PERMUTE;
            o.shuffle_rows = true;
            (void)sherd__alloc_fail_nth(n);
            if (kind < 4) err = prepare(&p, &o, &d);
            else
                o.exact = false,
                err = sherd__prepare_apply(&p, SHERD_OP_TIMES,
                                           &(sherd__matrices){ a, a, c_data, 20 }, &nodes, &o, &d);
            (void)sherd__alloc_fail_nth(0);
            if (!err) sherd__prepared_fini(&p);
            else assert_true(err == SHERD_ENOMEM && d.message[0]);
            assert_true(n < 100);
        }
    }
}

static void element_wise_work_is_divided_for_most_of_the_nodes(void **state)
{
    (void)state;
    const uint64_t much = UINT64_C(1) << 30, vast = UINT64_C(1) << 60;
    const struct {
        uint64_t rooms[4], counted;
    } cases[] = {
        { { 4000, 4000, 4000, vast }, 4000 }, { { 4000, 4000, vast, vast }, 4000 },
        { { 4000, much, much, much }, much }, { { 1, much, much, much }, much },
        { { much, much, much, vast }, much },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sherd__nodes some = nodes;
        sherd_product_options o = options();
        sherd__prepared p;
        some.rooms = cases[i].rooms;
        some.rooms_len = 4;
        assert_int_equal(sherd__prepare_apply(&p, SHERD_OP_EXP,
                                              &(sherd__matrices){ a, a, c_data, 20 }, &some, &o,
                                              NULL),
                         SHERD_OK);
        assert_int_equal(p.node_memory, cases[i].counted);
        sherd__prepared_fini(&p);
    }
}

static unsigned asked, ends_at;

static bool ends(void *ctx)
{
    (void)ctx;
    return ++asked == ends_at;
}

static void preparing_can_be_interrupted_at_each_question(void **state)
{
    (void)state;
    static const sherd_scheme all[] = { SHERD_PERMUTE, SHERD_PLAIN, SHERD_SHARE };
    for (unsigned i = 0; i < 3; i++) {
        sherd_product_options o = options();
        sherd__prepared p;
        int err = SHERD_EINTERRUPTED;
        o.scheme = all[i];
        o.hooks.interrupted = ends;
        for (ends_at = 1; err && ends_at < 20; ends_at++) {
            sherd_diag d = { 0 };
            asked = 0;
            err = sherd__prepare_multiply(&p, &(sherd__matrices){ a, b, c_data, 10 },
                                          &(sherd__nodes){ .count = 4,
                                                           .domain = domain,
                                                           .domains = 3,
                                                           .usable = 3,
                                                           .memory = UINT64_C(1) << 24 },
                                          &o, &d);
            assert_int_equal(err, asked < ends_at ? SHERD_OK : SHERD_EINTERRUPTED);
            if (err) assert_string_equal(d.message, "interrupted");
        }
        assert_true(!err && asked >= 2); /* once for each operand, at least */
        sherd__prepared_fini(&p);
        ends_at = 1;
        asked = 0;
        assert_int_equal(sherd_product_range(a, b, &o, NULL), SHERD_EINTERRUPTED);
    }
}

static void the_next_operand_can_be_interrupted(void **state)
{
    (void)state;
    sherd__prepared p;
    sherd_product_options o = options();
    sherd_diag d = { 0 };
    const sherd_view shape = sherd_view_c(NULL, SHERD_F64, 30, 20);
    assert_int_equal(sherd__prepare_multiply(&p, &(sherd__matrices){ shape, b, NULL, 10 }, &nodes,
                                             &o, NULL),
                     SHERD_OK);
    o.hooks.interrupted = ends;
    ends_at = 1;
    asked = 0;
    assert_int_equal(next(&p, a, &o, &d), SHERD_EINTERRUPTED);
    assert_string_equal(d.message, "interrupted");
    assert_int_equal(next(&p, a, &o, NULL), SHERD_OK);
    sherd__prepared_fini(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seed_and_operation_determine_the_exposures),
        cmocka_unit_test(without_a_seed_every_call_draws_one),
        cmocka_unit_test(all_random_numbers_come_from_the_given_entropy),
        cmocka_unit_test(invalid_options_are_refused_with_a_message),
        cmocka_unit_test(plans_use_what_nodes_declare_of_their_devices),
        cmocka_unit_test(private_schemes_refuse_element_wise_operations),
        cmocka_unit_test(a_seed_does_not_determine_masks),
        cmocka_unit_test(nonfinite_values_are_refused_in_exact_mode_with_their_place),
        cmocka_unit_test(stored_exposures_are_used_and_checked),
        cmocka_unit_test(stored_row_permutations_are_used_if_rows_are_shuffled),
        cmocka_unit_test(the_next_operand_must_fit_the_plan),
        cmocka_unit_test(a_plan_beyond_the_bound_is_refused_before_anything_is_sent),
        cmocka_unit_test(small_integers_in_a_wide_type_need_no_residues),
        cmocka_unit_test(effects_of_seed_and_bound_are_known_without_nodes_and_operands),
        cmocka_unit_test(needs_and_range_are_known_before_there_are_nodes),
        cmocka_unit_test(the_bound_applies_to_the_second_operand_of_element_wise_operations),
        cmocka_unit_test(every_failed_allocation_is_reported),
        cmocka_unit_test(element_wise_work_is_divided_for_most_of_the_nodes),
        cmocka_unit_test(preparing_can_be_interrupted_at_each_question),
        cmocka_unit_test(the_next_operand_can_be_interrupted),
    };
    return cmocka_run_group_tests(tests, begin, NULL);
}
