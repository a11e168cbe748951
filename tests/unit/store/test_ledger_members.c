/* Sets of members in a ledger: keys are written once, each day has a limit, and rosters of older
 * ledgers are read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scratch.h"
#include "store/ledger.h"

enum { MANY = 1024 };

static uint8_t many[MANY][SHERD__LEDGER_KEY];

static sherd__ledger *open_it(void)
{
    sherd__ledger *l;
    assert_int_equal(sherd__ledger_open(&l, scratch_path("x.ledger"), false, NULL), 0);
    return l;
}

static sherd__ledger_upload upload(uint64_t job, uint8_t by)
{
    sherd__ledger_upload u = { .day = 20000, .job = job, .rows = 1, .rho = 0.5, .threshold = 1 };
    memcpy(u.about, &job, sizeof job);
    memset(u.by, by, sizeof u.by);
    u.keys = (const uint8_t(*)[SHERD__LEDGER_KEY])many;
    return u;
}

/* Chooses those of `all` members that `keep` selects, with keys in ascending order of their
 * numbers. */
static uint32_t choose(uint32_t all, bool (*keep)(uint32_t i, uint32_t k), uint32_t k)
{
    uint32_t len = 0;
    for (uint32_t i = 0; i < all; i++) {
        if (!keep(i, k)) continue;
        memset(many[len], 7, sizeof many[len]);
        many[len][0] = (uint8_t)(i >> 8);
        many[len++][1] = (uint8_t)i;
    }
    return len;
}

static bool all_but(uint32_t i, uint32_t k)
{
    return i != k;
}

static bool every_other(uint32_t i, uint32_t k)
{
    return (i ^ k) % 2 == 0 && i != 2 * k;
}

static size_t charge_many(sherd__ledger *l, uint64_t job, uint32_t nodes)
{
    struct stat before, after;
    sherd__ledger_upload u = upload(job, 1);
    u.nodes = nodes;
    assert_int_equal(stat(scratch_path("x.ledger"), &before), 0);
    assert_int_equal(sherd__ledger_charge(l, &u, NULL), 0);
    assert_int_equal(stat(scratch_path("x.ledger"), &after), 0);
    return (size_t)(after.st_size - before.st_size);
}

static void known_as_charged(const sherd__ledger *l, uint64_t job, uint32_t nodes)
{
    uint8_t about[SHERD__LEDGER_KEY] = { 0 };
    memcpy(about, &job, sizeof job);
    const sherd__ledger_known k = sherd__ledger_known_of(l, about);
    assert_int_equal(k.nodes, nodes);
    assert_memory_equal(k.keys, many, nodes * sizeof *many);
}

static void each_key_is_written_once(void **s)
{
    (void)s;
    enum { SETS = 50, UPLOAD = 240 };
    unlink(scratch_path("x.ledger"));
    sherd__ledger *l = open_it();
    size_t len = charge_many(l, 0, choose(MANY, all_but, 3)), more = 0;
    assert_true(len > MANY * 64 && len < MANY * 73 + UPLOAD);
    assert_true(charge_many(l, 1000, choose(MANY, all_but, 3)) < UPLOAD); /* the same set again */
    for (uint32_t k = 0; k < SETS; k++) {
        len = charge_many(l, 1 + k, choose(MANY, all_but, k)); /* with member 3, 1024th by number */
        assert_true(len < UPLOAD + 40 + (k == 0 ? 73 : 0));
        more += charge_many(l, 500 + k, choose(MANY, every_other, k));
    }
    assert_true(more < SETS * (UPLOAD + MANY / 2 * 10));
    for (unsigned again = 0; again < 2; again++) {
        known_as_charged(l, 0, choose(MANY, all_but, 3));
        for (uint32_t k = 0; k < SETS; k++) {
            known_as_charged(l, 1 + k, choose(MANY, all_but, k));
            known_as_charged(l, 500 + k, choose(MANY, every_other, k));
        }
        sherd__ledger_close(l);
        l = open_it();
    }
    assert_true(charge_many(l, 2000, choose(MANY, every_other, 5)) < UPLOAD);
    sherd__ledger_close(l);
}

/* Charges as many uploads as the day's limit allows, each with MANY members that are new to the
 * ledger. Returns their number. */
static unsigned charge_new(sherd__ledger *l, int64_t day, uint8_t by, unsigned *next)
{
    for (unsigned n = 0; n < 200; n++, ++*next) {
        sherd__ledger_upload u = upload(*next, by);
        u.day = day;
        u.nodes = choose(MANY, all_but, MANY);
        for (uint32_t i = 0; i < MANY; i++) memcpy(&many[i][2], next, sizeof *next);
        int err = sherd__ledger_charge(l, &u, NULL);
        if (!err) continue;
        assert_int_equal(err, SHERD_EEXPOSURE);
        return n;
    }
    return 200;
}

static void new_members_take_a_limited_amount_of_disk_a_day(void **s)
{
    (void)s;
    enum { LINES = MANY * 72, EACH = SHERD__LEDGER_NAMED / LINES };
    struct stat st;
    unsigned next = 0;
    unlink(scratch_path("x.ledger"));
    sherd__ledger *l = open_it();
    unsigned n = charge_new(l, 20000, 1, &next);
    assert_true(n <= EACH && n >= EACH - 1);
    sherd__ledger_close(l);
    l = open_it(); /* the limit outlives the process */
    assert_int_equal(charge_new(l, 20000, 1, &next), 0);
    sherd__ledger_upload u = upload(1, 1);
    const sherd__ledger_known was = sherd__ledger_known_of(l, u.about);
    u.keys = was.keys;
    u.nodes = was.nodes;
    assert_int_equal(sherd__ledger_charge(l, &u, NULL), 0); /* a set that the ledger has */
    n += charge_new(l, 20000, 2, &next);
    n += charge_new(l, 20000, 3, &next); /* the limit is that of all coordinators together */
    assert_true(n <= 2 * SHERD__LEDGER_NAMED / LINES && n >= 2 * EACH - 2);
    assert_int_equal(charge_new(l, 20000, 4, &next), 0);
    assert_int_equal(stat(scratch_path("x.ledger"), &st), 0);
    assert_true(st.st_size <= 2 * SHERD__LEDGER_NAMED + 240 * 3 * EACH);
    n = charge_new(l, 20001, 1, &next); /* on another day */
    assert_true(n <= EACH && n >= EACH - 1);
    sherd__ledger_close(l);
    l = open_it();
    assert_int_equal(charge_new(l, 20001, 1, &next), 0);
    sherd__ledger_close(l);
}

static void rosters_of_older_ledgers_are_read(void **s)
{
    (void)s;
#define KEY(first) first "00000000000000000000000000000000000000000000000000000000000000"
    static const char text[] =
        "sherd-ledger-1\n"
        "roster 0 " KEY("aa") " " KEY(
            "cc") "\n"
                  "upload 2026-11-22 0000000000000001 0 4 0.5 " KEY("01") " 0 1 " KEY(
                      "00") "\n"
                            "roster 1 " KEY("aa") " " KEY("bb") " " KEY(
                                "cc") "\n"
                                      "upload 2026-11-22 0000000000000001 0 4 0.5 " KEY(
                                          "02") " 1 1 " KEY("00") "\n";
    static const uint8_t wants[3][SHERD__LEDGER_KEY] = { { 0xaa }, { 0xbb }, { 0xcc } };
    static const uint8_t about[3][SHERD__LEDGER_KEY] = { { 1 }, { 2 }, { 3 } };
    scratch_write("x.ledger", text, strlen(text));
    for (unsigned again = 0; again < 3; again++) {
        sherd__ledger *l = open_it();
        sherd__ledger_known k = sherd__ledger_known_of(l, about[0]);
        assert_int_equal(k.nodes, 2);
        assert_memory_equal(k.keys[0], wants[0], sizeof *wants);
        assert_memory_equal(k.keys[1], wants[2], sizeof *wants);
        k = sherd__ledger_known_of(l, about[1]);
        assert_int_equal(k.nodes, 3);
        assert_memory_equal(k.keys, wants, sizeof wants);
        k = sherd__ledger_known_of(l, about[2]);
        assert_int_equal(k.nodes, again ? 2 : 0);
        if (again) assert_memory_equal(k.keys, wants + 1, 2 * sizeof *wants);
        sherd__ledger_upload u = upload(1, 1);
        memcpy(u.about, about[2], sizeof u.about);
        u.keys = wants + 1;
        u.nodes = 2;
        assert_int_equal(sherd__ledger_charge(l, &u, NULL), 0);
        sherd__ledger_close(l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_key_is_written_once),
        cmocka_unit_test(new_members_take_a_limited_amount_of_disk_a_day),
        cmocka_unit_test(rosters_of_older_ledgers_are_read),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
