/* Element-wise views: the order of panels, slots that were taken over, entries that are found, and
 * what the values of a row reveal about it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "audit/elements.h"
#include "core/alloc.h"
#include "core/bytes.h"
#include "core/rand.h"
#include "tests/unit/audit/spool.h"

#define JOB 9
#define SIGMOID 16u

static spool in, out;

static sherd__fragment_info floats(const double *x, uint32_t rows, uint32_t cols, uint8_t *body)
{
    sherd__put_u32(body, rows);
    sherd__put_u32(body + 4, cols);
    memcpy(body + 8, x, (size_t)rows * cols * 8);
    return (sherd__fragment_info){ .origin = SHERD__HIDDEN,
                                   .dtype = SHERD_F64,
                                   .groups = 1,
                                   .rows = rows,
                                   .cols = cols,
                                   .len = 8 + (size_t)rows * cols * 8 };
}

/* Appends a task of two operands with the given op; spool_task only multiplies. */
static void a_task(uint32_t number, uint32_t op, uint32_t left, uint32_t right, uint32_t rows,
                   uint32_t cols)
{
    const sherd__fragment_info result = { .origin = SHERD__RESULT,
                                          .dtype = SHERD_F64,
                                          .rows = rows,
                                          .cols = cols,
                                          .len = (uint64_t)rows * cols * 8 };
    size_t at = in.len;
    spool_task(&in, JOB, number, left, right, NULL, 0, &result);
    for (size_t i = at + 32; i + 1 < in.len; i++) /* field 1, the op, is the first field */
        if (in.bytes[i] == 1u << 3) {
            in.bytes[i + 1] = (uint8_t)op;
            return;
        }
    fail();
}

/* Writes a record of values r*100 + place: two panels of slot 0 (2 columns), one panel of slot 1 (1
 * column), and the first panel again, out of order. */
static void open_record(sherd__views *v)
{
    static uint8_t body[400];
    const double second[] = { 200, 201, 300, 301 }, first[] = { 0, 1, 100, 101 },
                 other[] = { 2, 102, 202, 302 }, minus[] = { -1, -2, -3, -4 };
    const char *dir = spool_folder();
    sherd__fragment_info info;
    in.len = out.len = 0;
    spool_hello(&in);
    spool_welcome(&out);
    info = floats(second, 2, 2, body);
    spool_put(&in, JOB, 1, &info, body);
    a_task(4, 17, 1, 1, 2, 2); /* slot 0 of 3, panel 1 */
    info = floats(first, 2, 2, body);
    spool_put(&in, JOB, 2, &info, body);
    info = floats(minus, 2, 2, body);
    spool_put(&in, JOB, 3, &info, body);
    a_task(1, 17, 2, 3, 2, 2);
    a_task(1, 17, 2, 3, 2, 2); /* repeated */
    info = floats(other, 4, 1, body);
    spool_put(&in, JOB, 4, &info, body);
    a_task(2, 17, 4, 4, 4, 1);
    spool_file(dir, "node-1.sent", in.bytes, in.len);
    spool_file(dir, "node-1.received", out.bytes, out.len);
    memset(v, 0, sizeof *v);
    assert_int_equal(sherd__views_add(v, dir, NULL), 0);
}

static void rows_are_in_the_order_of_their_tasks(void **state)
{
    (void)state;
    sherd__views v;
    sherd__elements e;
    uint64_t job;
    open_record(&v);
    assert_true(sherd__elements_job(&v, &job) && job == JOB);
    assert_int_equal(sherd__elements_of(&e, &v.nodes[0], JOB, false, 3, 100), 0);
    assert_true(e.rows == 4 && e.cols == 3 && e.sent == 4 && e.largest == 302);
    for (unsigned r = 0; r < 4; r++)
        for (unsigned c = 0; c < 3; c++) assert_true(e.values[3 * r + c] == 100.0 * r + c);
    sherd__elements_fini(&e);
    assert_int_equal(sherd__elements_of(&e, &v.nodes[0], JOB, true, 3, 2), 0);
    assert_true(e.rows == 2 && e.cols == 3 && e.values[0] == -1 && e.values[2] == 2);
    sherd__elements_fini(&e);
    assert_int_equal(sherd__elements_of(&e, &v.nodes[0], JOB + 1, false, 3, 100), 0);
    assert_true(e.rows == 0 && !e.values);
    sherd__views_fini(&v);
}

static double find(const sherd__findings *l, const char *test, double *chance)
{
    double best = -INFINITY;
    for (size_t i = 0; i < l->len; i++)
        if (!strcmp(l->list[i].test, test) && l->list[i].value > best) {
            best = l->list[i].value;
            if (chance) *chance = l->list[i].chance;
        }
    return best;
}

#define ROWS 400u
#define COLS 40u
#define SEEN 8u

static double unit(const sherd__entropy *e)
{
    return (double)(sherd__entropy_u64(e) >> 11) * 0x1p-53;
}

/* Draws rows of four kinds, which differ in the values that they contain (or, with noise, in
 * nothing). */
static void draw(const sherd__entropy *e, double *x, uint8_t *kind, bool noise)
{
    for (unsigned r = 0; r < ROWS; r++) {
        kind[r] = (uint8_t)sherd__entropy_below(e, 4);
        for (unsigned c = 0; c < COLS; c++)
            x[r * COLS + c] = unit(e) < (noise ? 0.5 : 0.15 + 0.2 * kind[r])
                                  ? 0
                                  : unit(e) * (noise ? 1 : 1 + kind[r] / 4.0);
    }
}

static void attack(sherd__findings *l, bool noise, double spoil)
{
    static double a[ROWS * COLS], p[ROWS * COLS], seen[ROWS * SEEN], labels[ROWS];
    static uint8_t kind[ROWS], public_kind[ROWS];
    sherd__seeded state;
    sherd__entropy e = sherd__entropy_seeded(&state, 3);
    sherd__truth truth;
    sherd__public pub;
    draw(&e, a, kind, noise);
    draw(&e, p, public_kind, noise);
    for (unsigned r = 0; r < ROWS; r++) labels[r] = public_kind[r];
    for (unsigned r = 0; r < ROWS; r++) /* rotates each row's values */
        for (unsigned c = 0; c < SEEN; c++)
            seen[r * SEEN + c] = a[r * COLS + (r * 7 + c * 3) % COLS] + spoil;
    const sherd__elements x = {
        .rows = ROWS, .cols = SEEN, .sent = ROWS, .values = seen, .largest = noise ? 1 : 1.75
    };
    sherd_view of = sherd_view_c(labels, SHERD_F64, ROWS, 1);
    assert_int_equal(sherd__truth_open(&truth, sherd_view_c(a, SHERD_F64, ROWS, COLS), false, 0,
                                       NULL),
                     0);
    truth.labels = kind;
    assert_int_equal(sherd__public_make(&pub, sherd_view_c(p, SHERD_F64, ROWS, COLS), &of, ROWS,
                                        NULL),
                     0);
    memset(l, 0, sizeof *l);
    assert_int_equal(sherd__audit_elements(&(sherd__attack){ .who = "node-1",
                                                             .truth = &truth,
                                                             .pub = &pub,
                                                             .findings = l },
                                           &x, "A", ROWS, NULL),
                     0);
    assert_int_equal(sherd__findings_judge(l, SHERD__AUDIT_FAMILY), 0);
    sherd__truth_fini(&truth);
    sherd__public_fini(&pub);
}

static void entries_are_found_at_any_place_in_their_row(void **state)
{
    (void)state;
    sherd__findings l;
    attack(&l, false, 0);
    assert_true(find(&l, "verbatim", NULL) == (double)SEEN / COLS);
    sherd__findings_fini(&l);
    attack(&l, false, 1e-3);
    assert_true(find(&l, "verbatim", NULL) == 0);
    sherd__findings_fini(&l);
}

static void values_reveal_labels_and_noise_does_not(void **state)
{
    (void)state;
    sherd__findings l;
    double chance = 1;
    attack(&l, false, 0);
    assert_true(find(&l, "labels", &chance) > chance + 0.15);
    sherd__findings_fini(&l);
    attack(&l, true, 0);
    for (size_t i = 0; i < l.len; i++)
        if (strcmp(l.list[i].test, "verbatim")) assert_false(l.list[i].flagged);
    sherd__findings_fini(&l);
}

static void failed_allocations_are_reported(void **state)
{
    (void)state;
    sherd__views v;
    open_record(&v);
    for (size_t n = 1, reached = 1; reached; n++) {
        sherd__elements e;
        sherd__alloc_fail_nth(n);
        int err = sherd__elements_of(&e, &v.nodes[0], JOB, false, 3, 100);
        reached = sherd__alloc_fail_nth(0) >= n;
        assert_int_equal(err, reached ? SHERD_ENOMEM : 0);
        sherd__elements_fini(&e);
    }
    sherd__views_fini(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_in_the_order_of_their_tasks),
        cmocka_unit_test(entries_are_found_at_any_place_in_their_row),
        cmocka_unit_test(values_reveal_labels_and_noise_does_not),
        cmocka_unit_test(failed_allocations_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
