/*
 * `share` and `share1` with real node processes: as many nodes as are spare may be missing, more
 * are answered by another encoding, fewer than it takes by exit 7; operands that are kept; odd
 * shapes; no byte of a share seen twice; late answers cancelled soon.
 *
 * Lost nodes are made, not waited for: some are stopped before the product begins, and others end
 * themselves at an answer of a given number (prog_misbehave), so that a slow machine meets the same
 * cases. Everything is held against the product of one machine, bit for bit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "core/rand.h"
#include "sherd/multiplier.h"
#include "sherd/npy.h"
#include "sherd/product.h"
#include "wire/record.h"

#define NODES 5u
#define BITS 17u
#define WITHIN_MS 15000
#define CANCEL_MS 200
#define OLD "an earlier result\n"

static char top[128], said[4096], warned[1024];
static sherd_cluster *cluster; /* NODES honest nodes */
static sherd_entropy_seeded rng_state;
static sherd_entropy rng;
static sherd_multiplier here;

static void note_warning(void *ctx, sherd_log_level level, const char *text)
{
    (void)ctx;
    size_t len = strlen(warned);
    if (level == SHERD_LOG_WARN) snprintf(warned + len, sizeof warned - len, "%s\n", text);
}

static sherd_cluster *open_nodes(uint32_t nodes, const char *misbehave, uint64_t memory)
{
    sherd_cluster *c;
    sherd_diag d = { 0 };
    sherd_cluster_options o = { .local_nodes = nodes, .node_memory = memory, .log = note_warning,
                                .program = misbehave ? liar_path() : sherd_path() };
    if (misbehave) setenv("SHERD_TEST_MISBEHAVE", misbehave, 1);
    int err = sherd_cluster_open(&c, &o, &d);
    unsetenv("SHERD_TEST_MISBEHAVE");
    if (err) fail_msg("%s", d.message);
    return c;
}

static pid_t pid_of(sherd_cluster *c, uint32_t i)
{
    sherd_node_info info;
    sherd_cluster_node(c, i, &info);
    return info.pid;
}

static uint64_t sent_to_all(sherd_cluster *c)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < sherd_cluster_size(c); i++) {
        sherd_node_info info;
        sherd_cluster_node(c, i, &info);
        sum += info.bytes_out;
    }
    return sum;
}

static sherd_product_options private_options(sherd_scheme scheme, uint32_t spare)
{
    sherd_product_options o;
    sherd_product_options_init(&o);
    o.scheme = scheme;
    o.spare = spare;
    return o;
}

static double *random_matrix(size_t rows, size_t cols)
{
    double *v = malloc((rows * cols + 1) * sizeof *v);
    assert_non_null(v);
    for (size_t i = 0; i < rows * cols; i++)
        v[i] = (double)sherd__entropy_below(&rng, 2000001) / 1000 - 1000;
    return v;
}

static sherd_view view(const double *v, size_t rows, size_t cols)
{
    return sherd_view_c(v, SHERD_F64, rows, cols);
}

/* The product of one machine; the caller's. */
static double *reference(sherd_view a, sherd_view b)
{
    double *c = malloc((a.rows * b.cols + 1) * sizeof *c);
    sherd_diag d = { 0 };
    assert_non_null(c);
    if (sherd_multiplier_multiply(here, a, b, c, b.cols, &d)) fail_msg("%s", d.message);
    return c;
}

static void must_equal(const double *c, const double *want, size_t len, const char *what)
{
    if (memcmp(c, want, len * sizeof *c) != 0) fail_msg("%s: other bits than one machine's", what);
}

/* A*B over the nodes with the right bits. */
static void multiply(sherd_cluster *c, const sherd_product_options *o, sherd_view a, sherd_view b,
                     sherd_report *r)
{
    size_t len = a.rows * b.cols;
    double *got = malloc((len + 1) * sizeof *got), *want = reference(a, b);
    sherd_diag d = { 0 };
    char what[96];
    assert_non_null(got);
    snprintf(what, sizeof what, "%zu x %zu by %zu x %zu, scheme %d", a.rows, a.cols, b.rows, b.cols,
             (int)o->scheme);
    if (sherd_multiply(c, a, b, got, b.cols, o, r, &d)) fail_msg("%s: %s", what, d.message);
    must_equal(got, want, len, what);
    free(got);
    free(want);
}

/* ---- the command ----------------------------------------------------------------------------- */

static void path(char out[200], const char *name)
{
    snprintf(out, 200, "%s/%s", top, name);
}

/* `sherd multiply A B -o C --scheme share MORE...`; misbehave: NULL or what a node does. */
static void start(command *c, const char *misbehave, const char *a, const char *b,
                  const char *const *more)
{
    char pa[200], pb[200], pc[200], env[96];
    const char *const envs[] = { env, NULL };
    path(pa, a);
    path(pb, b);
    path(pc, "C.npy");
    snprintf(env, sizeof env, "SHERD_TEST_MISBEHAVE=%s", misbehave ? misbehave : "");
    const char *argv[32] = { "sherd", "multiply", pa, pb, "-o", pc, "--scheme", "share" };
    size_t n = 8;
    while (*more) argv[n++] = *more++;
    command_start(c, misbehave ? liar_path() : sherd_path(), argv, misbehave ? envs : NULL);
}

static json_t *finish(command *c, int expected)
{
    bool ended = command_wait(c, 60000 * patience());
    char *err = command_said(c->err);
    snprintf(said, sizeof said, "%s", err);
    free(err);
    json_t *root = command_json(c);
    if (!ended || c->status != expected)
        fail_msg("ended with %d, expected %d: %s", c->status, expected, said);
    command_free(c);
    return root;
}

static json_int_t count_of(json_t *root, const char *field)
{
    return json_integer_value(json_object_get(root, field));
}

/* ---- missing nodes --------------------------------------------------------------------------- */

static void one_encoding_is_enough_while_as_many_are_missing_as_are_spare(void **s)
{
    (void)s;
    sherd_product_options o = private_options(SHERD_SHARE, 2);
    sherd_report r;
    double *a = random_matrix(120, 70), *b = random_matrix(70, 40);
    int64_t began = clock_now_ms();
    kill(pid_of(cluster, 1), SIGSTOP); /* silent, and not yet known to be */
    kill(pid_of(cluster, 4), SIGSTOP);
    multiply(cluster, &o, view(a, 120, 70), view(b, 70, 40), &r);
    int64_t took = clock_now_ms() - began;
    kill(pid_of(cluster, 1), SIGCONT);
    kill(pid_of(cluster, 4), SIGCONT);
    assert_int_equal(r.encodings, 1);
    assert_int_equal(r.blocks, 1);
    assert_int_equal(r.threshold, 3);
    assert_int_equal(r.domains, NODES);
    assert_int_equal(r.nodes_lost + r.nodes_banned, 0);
    assert_true(r.tasks_cancelled >= 2 * r.panels * r.tiles);
    assert_true(took < 3000 * patience()); /* nobody was waited for until given up */
    sherd_report_fini(&r);
    free(a);
    free(b);
}

/* Five nodes, none spare: five answers decode. One ends at its third, and four are left. */
static void more_missing_than_spare_has_all_shares_made_anew(void **s)
{
    (void)s;
    const char *const more[] = { "-n", "5", "--memory", "2M", "--check", "--json", NULL };
    command c;
    start(&c, "crash:2@node-2", "A.npy", "B.npy", more);
    json_t *root = finish(&c, 0);
    assert_int_equal(count_of(root, "encodings"), 2);
    assert_int_equal(count_of(root, "shares"), 5); /* four of them made, of five domains */
    assert_int_equal(count_of(root, "blocks"), 1);
    assert_int_equal(count_of(root, "threshold"), 3);
    assert_int_equal(count_of(root, "nodes_lost"), 1);
    assert_true(json_is_true(json_object_get(json_object_get(root, "check"), "equal")));
    if (!strstr(said, "all shares are made anew for the 4 domains that are left"))
        fail_msg("%s", said);
    json_decref(root);
}

/* It stays connected, and is no help: what counts is who can still answer, not who is there. */
static void a_node_that_refuses_has_all_shares_made_anew_without_it(void **s)
{
    (void)s;
    const char *const more[] = { "-n", "5", "--memory", "2M", "--check", "--json", NULL };
    command c;
    start(&c, "refuse:2@node-2", "A.npy", "B.npy", more);
    json_t *root = finish(&c, 0);
    assert_int_equal(count_of(root, "encodings"), 2);
    assert_int_equal(count_of(root, "blocks"), 1);
    assert_true(json_is_true(json_object_get(json_object_get(root, "check"), "equal")));
    if (!strstr(said, "all shares are made anew for the 4 domains that are left"))
        fail_msg("%s", said);
    json_decref(root);
}

static void too_few_that_are_left_are_exit_7_with_a_reason(void **s)
{
    (void)s;
    const char *const more[] = { "-n", "3", "--memory", "2M", NULL };
    char out[200];
    command c;
    path(out, "C.npy");
    file_put(out, OLD, sizeof OLD - 1);
    start(&c, "crash:2@node-2", "A.npy", "B.npy", more);
    int64_t began = clock_now_ms();
    (void)finish(&c, 7);
    assert_true(clock_now_ms() - began < WITHIN_MS * patience());
    if (!strstr(said, "2 of 3 domains can still answer, and 3 must")) fail_msg("%s", said);
    assert_true(file_holds(out, OLD));
}

/* One residue is off by one; all five answers are needed, so that it is not overlooked. */
static void a_liar_is_named_and_its_share_done_without(void **s)
{
    (void)s;
    const char *const more[] = { "-n", "5", "--memory", "2M", "--check", "--json", NULL };
    const char *const strict[] = { "-n", "5", "--memory", "2M", "--strict", NULL };
    char out[200];
    command c;
    start(&c, "wrong:1@node-3", "A.npy", "B.npy", more);
    json_t *root = finish(&c, 0);
    assert_int_equal(count_of(root, "encodings"), 2);
    assert_int_equal(count_of(root, "nodes_banned"), 1);
    assert_true(json_is_true(json_object_get(json_object_get(root, "check"), "equal")));
    const char *named = strstr(said, "node-3 (127.0.0.1:");
    if (!named || !strstr(named, ") answered wrongly: banned")) fail_msg("%s", said);
    json_decref(root);
    path(out, "C.npy");
    file_put(out, OLD, sizeof OLD - 1);
    start(&c, "wrong:1@node-3", "A.npy", "B.npy", strict);
    (void)finish(&c, 8);
    if (!strstr(said, "node-3 (127.0.0.1:")) fail_msg("%s", said);
    assert_true(file_holds(out, OLD));
}

/* ---- kept operands --------------------------------------------------------------------------- */

#define N 801u /* which two blocks do not divide */
#define K 90u
#define M 20u

typedef struct kept_case {
    sherd_multiplier m;
    sherd_kept *x;
    double *xs, *w, *d;
} kept_case;

static void keep(kept_case *t, sherd_cluster *c, const sherd_product_options *o)
{
    sherd_diag d = { 0 };
    t->xs = random_matrix(N, K);
    t->w = random_matrix(K, M);
    t->d = random_matrix(N, M);
    if (sherd_multiplier_cluster(&t->m, c, o, &d)) fail_msg("%s", d.message);
    if (sherd_multiplier_keep(t->m, view(t->xs, N, K), &t->x, &d)) fail_msg("%s", d.message);
}

static void kept_product(kept_case *t, bool transposed)
{
    sherd_view x = view(t->xs, N, K);
    sherd_view b = transposed ? view(t->d, N, M) : view(t->w, K, M);
    size_t len = (transposed ? K : N) * M;
    double *want = reference(transposed ? sherd_view_t(x) : x, b);
    double *got = malloc(len * sizeof *got);
    sherd_diag d = { 0 };
    assert_non_null(got);
    if (sherd_multiplier_multiply_kept(t->m, t->x, transposed, b, got, M, &d))
        fail_msg("%s", d.message);
    must_equal(got, want, len, transposed ? "X^T D" : "X W");
    free(got);
    free(want);
}

static void keep_end(kept_case *t)
{
    sherd_multiplier_release(t->m, t->x);
    sherd_multiplier_free(t->m);
    free(t->xs);
    free(t->w);
    free(t->d);
}

/* Two primes hold 801 products of 17 bits: a share of W has 6 bytes an entry. */
static void shares_that_stay_serve_both_directions(void **s)
{
    (void)s;
    kept_case t;
    sherd_product_options o = private_options(SHERD_SHARE, 0);
    keep(&t, cluster, &o);
    uint64_t begun = sent_to_all(cluster);
    kept_product(&t, false);
    uint64_t first = sent_to_all(cluster) - begun;
    assert_true(first > NODES * (N / 2) * K * 6); /* X's shares, of half its rows */
    for (unsigned round = 0; round < 3; round++) {
        uint64_t before = sent_to_all(cluster);
        for (unsigned i = 0; i < K * M; i++) t.w[i] += 1;
        kept_product(&t, false);
        uint64_t up = sent_to_all(cluster) - before, shares = NODES * K * M * 6;
        if (up < shares || up > shares + 65536)
            fail_msg("%llu bytes up, of which W's shares are %llu", (unsigned long long)up,
                     (unsigned long long)shares);
        before = sent_to_all(cluster);
        kept_product(&t, true);
        up = sent_to_all(cluster) - before, shares = NODES * ((N + 1) / 2) * M * 6;
        if (up < shares || up > shares + 65536)
            fail_msg("%llu bytes up, of which D's shares are %llu", (unsigned long long)up,
                     (unsigned long long)shares);
    }
    keep_end(&t);
}

static void a_node_may_be_lost_between_products_with_a_kept_operand(void **s)
{
    (void)s;
    kept_case t;
    sherd_product_options o = private_options(SHERD_SHARE, 0);
    sherd_cluster *c = open_nodes(NODES, NULL, 0);
    keep(&t, c, &o);
    kept_product(&t, false);
    kill(pid_of(c, 2), SIGKILL);
    *warned = '\0';
    kept_product(&t, true);
    if (!strstr(warned, "all shares are made anew for the 4 domains")) fail_msg("%s", warned);
    *warned = '\0';
    kept_product(&t, false); /* on the shares that were made anew */
    assert_string_equal(warned, "");
    keep_end(&t);
    sherd_cluster_close(c);
}

/* It ends at its second answer, the panels of one product being more; once in either direction. */
static void a_node_may_be_lost_within_a_product_with_a_kept_operand(void **s)
{
    (void)s;
    for (unsigned i = 0; i < 4; i++) {
        kept_case t;
        bool transposed = i % 2;
        sherd_product_options o = private_options(SHERD_SHARE, 0);
        sherd_cluster *c = open_nodes(NODES, i < 2 ? "crash:1@node-4" : "refuse:1@node-4", 0);
        o.memory = UINT64_C(1) << 20;
        keep(&t, c, &o);
        *warned = '\0';
        kept_product(&t, transposed);
        if (!strstr(warned, "all shares are made anew for the 4 domains")) fail_msg("%s", warned);
        kept_product(&t, !transposed);
        keep_end(&t);
        sherd_cluster_close(c);
    }
}

/* Its shares are half of what a node has room for: the third would be refused. */
static void what_is_released_leaves_the_nodes(void **s)
{
    (void)s;
    enum { ROWS = 2000, COLS = 1400 };
    sherd_cluster *c = open_nodes(NODES, NULL, UINT64_C(20) << 20);
    sherd_product_options o = private_options(SHERD_SHARE, 0);
    sherd_multiplier m;
    sherd_diag d = { 0 };
    double *xs = random_matrix(ROWS, COLS), *w = random_matrix(COLS, 1), *got = malloc(8 * ROWS);
    double *want = reference(view(xs, ROWS, COLS), view(w, COLS, 1));
    assert_non_null(got);
    if (sherd_multiplier_cluster(&m, c, &o, &d)) fail_msg("%s", d.message);
    for (unsigned round = 0; round < 4; round++) {
        sherd_kept *x;
        if (sherd_multiplier_keep(m, view(xs, ROWS, COLS), &x, &d)) fail_msg("%s", d.message);
        if (sherd_multiplier_multiply_kept(m, x, false, view(w, COLS, 1), got, 1, &d))
            fail_msg("round %u: %s", round, d.message);
        must_equal(got, want, ROWS, "X w");
        sherd_multiplier_release(m, x);
    }
    sherd_multiplier_free(m);
    sherd_cluster_close(c);
    free(xs);
    free(w);
    free(got);
    free(want);
}

/* It reads nothing while the others finish: of its share of W most is still to be sent then. */
static void a_node_that_is_behind_does_not_hold_up_the_next_product(void **s)
{
    (void)s;
    enum { ROWS = 300, INNER = 3000, COLS = 900 };
    sherd_product_options o = private_options(SHERD_SHARE, 1);
    sherd_cluster *c = open_nodes(4, NULL, 0);
    sherd_multiplier m;
    sherd_kept *x;
    sherd_diag d = { 0 };
    double *xs = random_matrix(ROWS, INNER), *w = random_matrix(INNER, COLS),
           *e = random_matrix(ROWS, 7), *got = malloc(8 * ROWS * COLS),
           *want = reference(view(xs, ROWS, INNER), view(w, INNER, COLS)),
           *back = reference(sherd_view_t(view(xs, ROWS, INNER)), view(e, ROWS, 7));
    assert_non_null(got);
    if (sherd_multiplier_cluster(&m, c, &o, &d)) fail_msg("%s", d.message);
    if (sherd_multiplier_keep(m, view(xs, ROWS, INNER), &x, &d)) fail_msg("%s", d.message);
    kill(pid_of(c, 3), SIGSTOP);
    if (sherd_multiplier_multiply_kept(m, x, false, view(w, INNER, COLS), got, COLS, &d))
        fail_msg("%s", d.message);
    must_equal(got, want, ROWS * COLS, "X W");
    kill(pid_of(c, 3), SIGCONT);
    for (unsigned round = 0; round < 3; round++) {
        if (sherd_multiplier_multiply_kept(m, x, true, view(e, ROWS, 7), got, 7, &d))
            fail_msg("%s", d.message);
        must_equal(got, back, INNER * 7, "X^T E");
    }
    sherd_multiplier_release(m, x);
    sherd_multiplier_free(m);
    sherd_cluster_close(c);
    free(xs);
    free(w);
    free(e);
    free(got);
    free(want);
    free(back);
}

static void share1_keeps_an_operand_for_one_direction(void **s)
{
    (void)s;
    kept_case t;
    sherd_product_options o = private_options(SHERD_SHARE1, 1);
    sherd_diag d = { 0 };
    double got[K * M];
    keep(&t, cluster, &o);
    kept_product(&t, false);
    int err = sherd_multiplier_multiply_kept(t.m, t.x, true, view(t.d, N, M), got, M, &d);
    assert_int_equal(err, SHERD_EUNSUPPORTED);
    assert_string_equal(d.hint, "use --scheme share");
    kept_product(&t, false);
    keep_end(&t);
}

/* ---- shapes ---------------------------------------------------------------------------------- */

static void shapes_that_divide_by_nothing_are_right(void **s)
{
    (void)s;
    static const size_t shapes[][3] = {
        { 1, 1, 1 }, { 2, 1, 1 }, { 3, 1, 7 }, { 7, 9, 1 }, { 1, 40, 5 }, { 11, 13, 17 },
        { 0, 5, 4 }, { 5, 4, 0 }, { 5, 0, 4 }, { 0, 0, 0 }, { 64, 33, 129 },
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        size_t n = shapes[i][0], k = shapes[i][1], m = shapes[i][2];
        double *a = random_matrix(n, k), *b = random_matrix(k, m);
        for (unsigned zero = 0; zero < 3; zero++) {
            if (zero == 1) memset(b, 0, k * m * sizeof *b);
            if (zero == 2) memset(a, 0, n * k * sizeof *a);
            for (sherd_scheme scheme = SHERD_SHARE; scheme <= SHERD_SHARE1; scheme++) {
                sherd_product_options o = private_options(scheme, i % 2);
                multiply(cluster, &o, view(a, n, k), view(b, k, m), NULL);
                if (i % 3 == 0) /* the same matrix, its strides exchanged */
                    multiply(cluster, &o, sherd_view_t(view(a, k, n)), view(b, k, m), NULL);
            }
        }
        free(a);
        free(b);
    }
}

static void panels_and_tiles_keep_within_memory(void **s)
{
    (void)s;
    sherd_cluster *small = open_nodes(NODES, NULL, UINT64_C(1) << 20);
    double *a = random_matrix(203, 500), *b = random_matrix(500, 301);
    for (sherd_scheme scheme = SHERD_SHARE; scheme <= SHERD_SHARE1; scheme++) {
        sherd_product_options o = private_options(scheme, 0);
        sherd_report r;
        o.memory = UINT64_C(1) << 20;
        multiply(small, &o, view(a, 203, 500), view(b, 500, 301), &r);
        assert_true(r.panels > 1 && r.tiles > 1);
        assert_int_equal(r.encodings, 1);
        assert_int_equal(r.tasks_repeated, 0);
        sherd_report_fini(&r);
    }
    sherd_cluster_close(small);
    free(a);
    free(b);
}

/* ---- what nodes are given -------------------------------------------------------------------- */

#define WINDOW 12u /* four residues: 2^-90 that two are equal by chance */

typedef struct windows {
    uint8_t (*w)[WINDOW];
    size_t len, room;
} windows;

/* Every four residues of the blocks in a record of what was sent. */
static void add_windows(windows *all, const char *file)
{
    uint8_t header[SHERD__RECORD_BYTES], body[1 << 16];
    FILE *f = fopen(file, "rb");
    if (!f) fail_msg("%s is missing", file);
    while (fread(header, 1, sizeof header, f) == sizeof header) {
        sherd__record r;
        assert_int_equal(sherd__record_parse(&r, header, NULL), 0);
        assert_true(r.body_len <= sizeof body);
        assert_int_equal(fread(body, 1, r.body_len, f), r.body_len);
        if (r.type != SHERD__REC_PUT || r.part == 0) continue;
        for (size_t at = 0; at + WINDOW <= r.body_len; at += WINDOW) {
            if (all->len == all->room) {
                all->room = 2 * all->room + 1024;
                all->w = realloc(all->w, all->room * WINDOW);
                assert_non_null(all->w);
            }
            memcpy(all->w[all->len++], body + at, WINDOW);
        }
    }
    fclose(f);
}

static int by_bytes(const void *x, const void *y)
{
    return memcmp(x, y, WINDOW);
}

/* Matrices of zeros, so that every byte of a share is a mask's. */
static void two_runs_share_no_share_byte(void **s)
{
    (void)s;
    windows all = { 0 };
    for (unsigned run = 0; run < 2; run++) {
        char name[16], record[200], file[240];
        command c;
        snprintf(name, sizeof name, "record-%u", run);
        path(record, name);
        const char *const more[] = { "-n", "3", "--record", record, NULL };
        start(&c, NULL, "Z.npy", "Y.npy", more);
        (void)finish(&c, 0);
        for (unsigned i = 1; i <= 3; i++) {
            snprintf(file, sizeof file, "%s/node-%u.sent", record, i);
            add_windows(&all, file);
        }
    }
    assert_true(all.len > 2 * 3 * (40 * 30 + 30 * 20) * 6 / WINDOW * 9 / 10);
    qsort(all.w, all.len, WINDOW, by_bytes);
    for (size_t i = 1; i < all.len; i++)
        if (by_bytes(all.w[i - 1], all.w[i]) == 0) fail_msg("four residues were sent twice");
    free(all.w);
}

/* ---- late answers ---------------------------------------------------------------------------- */

#define EVENTS 4000u

typedef struct event {
    uint32_t task;
    int64_t after_ms, by_ms; /* between two looks */
} event;

/* A record that grows, read as far as it has come. */
typedef struct tail {
    char file[240];
    uint16_t type;   /* of the records that are looked for */
    int64_t offset, looked_ms;
    size_t len;
    event e[EVENTS]; /* a task's last record of that type counts */
} tail;

static void tail_read(tail *t)
{
    uint8_t header[SHERD__RECORD_BYTES];
    int64_t before = t->looked_ms;
    t->looked_ms = clock_now_ms();
    int64_t size = file_size(t->file), now = clock_now_ms();
    int fd = size > t->offset ? open(t->file, O_RDONLY | O_CLOEXEC) : -1;
    while (fd >= 0 && t->offset + (int64_t)sizeof header <= size) {
        sherd__record r;
        assert_int_equal(pread(fd, header, sizeof header, t->offset), sizeof header);
        assert_int_equal(sherd__record_parse(&r, header, NULL), 0);
        if (t->offset + (int64_t)(sizeof header + r.body_len) > size) break;
        t->offset += (int64_t)(sizeof header + r.body_len);
        if (r.type != t->type) continue;
        if (t->len && t->e[t->len - 1].task == r.number) t->len--;
        assert_true(t->len < EVENTS);
        t->e[t->len++] = (event){ r.number, before, now };
    }
    if (fd >= 0) close(fd);
}

static int64_t tail_time(const tail *t, uint32_t task)
{
    for (size_t i = 0; i < t->len; i++)
        if (t->e[i].task == task) return t->e[i].by_ms;
    return -1;
}

/* By when the answer had come that was enough at this position: of the other nodes' the last one,
 * since four nodes with one spare decode from three answers. */
static int64_t enough_at(const tail *answers, uint32_t position)
{
    int64_t last = -1;
    for (uint32_t i = 0; i < 4; i++) {
        int64_t at = -1;
        for (uint32_t slot = 0; slot < 4 && at < 0; slot++)
            at = tail_time(&answers[i], position * 4 + slot + 1);
        if (i != 1 && at < 0) return -1;
        if (i != 1 && at > last) last = at;
    }
    return last;
}

/* node-2 takes a second for each product. How late a cancel is, is counted from the look that found
 * enough answers to the last one that did not find it: looks that are far apart, since we got no
 * processor, are not the command's doing. */
static void late_answers_are_cancelled_within_200_ms(void **s)
{
    (void)s;
    static tail answers[4], cancels, tasks;
    char record[200];
    command c;
    path(record, "record-late");
    const char *const more[] = { "-n", "4", "--spare", "1", "--memory", "2M", "--record", record,
                                 "--json", NULL };
    start(&c, "slow@node-2", "A.npy", "B.npy", more);
    for (unsigned i = 0; i < 4; i++) {
        snprintf(answers[i].file, sizeof answers[i].file, "%s/node-%u.received", record, i + 1);
        answers[i].type = SHERD__REC_RESULT;
    }
    snprintf(cancels.file, sizeof cancels.file, "%s/node-2.sent", record);
    cancels.type = SHERD__REC_CANCEL;
    tasks = cancels;
    tasks.type = SHERD__REC_TASK;
    for (bool over = false; !over;) {
        over = command_over(&c);
        for (unsigned i = 0; i < 4; i++) tail_read(&answers[i]);
        tail_read(&cancels);
        tail_read(&tasks);
        pause_ms(1);
    }
    json_t *root = finish(&c, 0);
    json_int_t positions = count_of(root, "panels") * count_of(root, "tiles"), seen = 0;
    int64_t longest = 0;
    for (size_t i = 0; i < cancels.len; i++) {
        if (cancels.e[i].task == 0) continue; /* at the end, of the whole job */
        uint32_t position = (cancels.e[i].task - 1) / 4;
        int64_t enough = enough_at(answers, position);
        if (enough < 0) fail_msg("position %u was cancelled before three answers", position);
        int64_t after = cancels.e[i].after_ms - enough;
        if (after > longest) longest = after;
        seen++;
    }
    size_t left = 0; /* to run, though nobody needs them any more */
    for (size_t i = 0; i < tasks.len; i++)
        left += tail_time(&cancels, tasks.e[i].task) < 0 &&
                tail_time(&answers[1], tasks.e[i].task) < 0;
    print_message("# %lld of %zu tasks cancelled, at most %lld ms late; %zu left\n",
                  (long long)seen, tasks.len, (long long)longest, left);
    assert_true(seen >= 3 && seen <= positions);
    assert_true(left <= 1); /* one that is a trial */
    assert_true(longest <= CANCEL_MS * patience());
    json_decref(root);
}

/* ---------------------------------------------------------------------------------------------- */

static int begin(void **state)
{
    (void)state;
    char file[200];
    signal(SIGPIPE, SIG_IGN);
    rng = sherd__entropy_seeded(&rng_state, 31);
    folder_new(top);
    path(file, "A.npy");
    matrix_file(file, 561, 420, 1);
    path(file, "B.npy");
    matrix_file(file, 420, 390, 2);
    double zeros[40 * 30] = { 0 };
    path(file, "Z.npy");
    if (sherd_npy_save(file, view(zeros, 40, 30), NULL)) return 1;
    path(file, "Y.npy");
    if (sherd_npy_save(file, view(zeros, 30, 20), NULL)) return 1;
    if (sherd_multiplier_local(BITS, &here, NULL)) return 1;
    cluster = open_nodes(NODES, NULL, 0);
    return 0;
}

static int end(void **state)
{
    (void)state;
    sherd_cluster_close(cluster);
    sherd_multiplier_free(here);
    folder_remove(top);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_that_divide_by_nothing_are_right),
        cmocka_unit_test(panels_and_tiles_keep_within_memory),
        cmocka_unit_test(shares_that_stay_serve_both_directions),
        cmocka_unit_test(share1_keeps_an_operand_for_one_direction),
        cmocka_unit_test(one_encoding_is_enough_while_as_many_are_missing_as_are_spare),
        cmocka_unit_test(more_missing_than_spare_has_all_shares_made_anew),
        cmocka_unit_test(a_node_that_refuses_has_all_shares_made_anew_without_it),
        cmocka_unit_test(too_few_that_are_left_are_exit_7_with_a_reason),
        cmocka_unit_test(a_liar_is_named_and_its_share_done_without),
        cmocka_unit_test(a_node_may_be_lost_between_products_with_a_kept_operand),
        cmocka_unit_test(a_node_may_be_lost_within_a_product_with_a_kept_operand),
        cmocka_unit_test(a_node_that_is_behind_does_not_hold_up_the_next_product),
        cmocka_unit_test(what_is_released_leaves_the_nodes),
        cmocka_unit_test(two_runs_share_no_share_byte),
        cmocka_unit_test(late_answers_are_cancelled_within_200_ms),
    };
    return cmocka_run_group_tests_name("scheduler/share", tests, begin, end);
}
