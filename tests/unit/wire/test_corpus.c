/*
 * The committed seeds of the fuzzers, which contain a frozen conversation: the bytes that both
 * sides send must equal those in tests/fuzz/corpus. This test is the first to show a change of the
 * wire format. SHERD_CORPUS=write writes the files again, for an intended change.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/wire/pair.h"
#include "wire/message.h"

enum { SEED_MAX = 65536, TO_NODE = 0, TO_COORDINATOR = 1 };

typedef struct seed {
    uint8_t bytes[SEED_MAX];
    size_t len;
} seed;

static void add(seed *s, const uint8_t *bytes, size_t len)
{
    assert_true(len <= SEED_MAX - s->len);
    memcpy(s->bytes + s->len, bytes, len);
    s->len += len;
}

static void add_record(seed *s, const sherd__record *r, const uint8_t *body)
{
    uint8_t head[SHERD__RECORD_BYTES];
    sherd__record_pack(r, head);
    add(s, head, sizeof head);
    if (body) add(s, body, r->body_len);
}

static void check_file(const char *folder, const char *name, const seed *s)
{
    char path[200];
    static uint8_t have[SEED_MAX + 1];
    snprintf(path, sizeof path, "tests/fuzz/corpus/%s/%s", folder, name);
    const char *mode = getenv("SHERD_CORPUS");
    if (mode && !strcmp(mode, "write")) {
        FILE *f = fopen(path, "wb");
        assert_non_null(f);
        assert_int_equal(fwrite(s->bytes, 1, s->len, f), s->len);
        assert_int_equal(fclose(f), 0);
        return;
    }
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("%s is missing", path);
    size_t n = fread(have, 1, sizeof have, f);
    fclose(f);
    if (n != s->len || memcmp(have, s->bytes, n))
        fail_msg("%s differs from the bytes of the code", path);
}

/* A seed of fuzz_session begins with the role, the way the bytes are cut, and the time between
 * cuts. */
static seed *begin(int role, int cut, int ticks)
{
    static seed s;
    s.len = 2;
    s.bytes[0] = (uint8_t)(role | cut << 1);
    s.bytes[1] = (uint8_t)ticks;
    return &s;
}

static void every_header_seed_equals_the_codes_bytes(void **state)
{
    (void)state;
    static seed s;
    for (uint16_t type = 0; type <= SHERD__REC_BYE + 1; type++) {
        bool named = type >= SHERD__REC_PUT && type <= SHERD__REC_CANCEL;
        bool ping = type == SHERD__REC_PING || type == SHERD__REC_PONG;
        char name[40];
        s.len = 0;
        sherd__record r = { .type = type,
                            .job = named && !ping ? 0x1234 : 0,
                            .number = named,
                            .body_len = sherd__record_cap(type, 0) };
        if (!sherd__record_name(type)) r.flags = SHERD__RECORD_OPTIONAL;
        add_record(&s, &r, NULL);
        snprintf(name, sizeof name, "type-%02u", type);
        check_file("record", name, &s);
    }
    s.len = 0;
    add_record(&s,
               &(sherd__record){ .type = SHERD__REC_PUT,
                                 .job = 1,
                                 .number = 1,
                                 .part = 1,
                                 .body_len = SHERD__CHUNK + 1 },
               NULL);
    check_file("record", "chunk-too-long", &s);
}

/* Runs the recorded conversation at both sides. */
static void converse(pair *p)
{
    assert_int_equal(pair_open(p), SHERD_OK);
    pair_run(p, SIZE_MAX);
    assert_int_equal(pair_converse(p, 2), SHERD_OK);
    p->now += SHERD__PING_MS;
    side_tick(&p->co, p->now);
    pair_run(p, SIZE_MAX);
    sherd__session_bye(p->co.s, 0, "done");
    pair_run(p, SIZE_MAX);
}

static void the_frozen_conversation_equals_the_codes_bytes(void **state)
{
    (void)state;
    pair p;
    converse(&p);
    for (int cut = 0; cut < 4; cut++) {
        char name[40];
        seed *s = begin(TO_NODE, cut, 0);
        add(s, p.co.wire, p.co.wire_len);
        snprintf(name, sizeof name, "to-node-cut-%d", cut);
        check_file("session", name, s);
        s = begin(TO_COORDINATOR, cut, 0);
        add(s, p.no.wire, p.no.wire_len);
        snprintf(name, sizeof name, "to-coordinator-cut-%d", cut);
        check_file("session", name, s);
    }
    seed *s = begin(TO_NODE, 3, 250); /* slow: reaches stalls and silence */
    add(s, p.co.wire, p.co.wire_len);
    check_file("session", "to-node-slow", s);
    pair_close(&p);
}

/* Begins a seed with the HELLO of the recorded conversation. */
static seed *after_hello(void)
{
    pair p;
    seed *s = begin(TO_NODE, 0, 0);
    assert_int_equal(pair_open(&p), SHERD_OK);
    pair_run(&p, SIZE_MAX);
    add(s, p.co.wire, p.co.wire_len);
    pair_close(&p);
    return s;
}

static void add_put(seed *s, const sherd__fragment_info *info)
{
    uint8_t body[SHERD__CONTROL_MAX];
    add_record(s,
               &(sherd__record){ .type = SHERD__REC_PUT,
                                 .job = 1,
                                 .number = 1,
                                 .body_len = sherd__message_description(body, info, NULL) },
               body);
}

static void every_seed_of_a_lie_equals_the_codes_bytes(void **state)
{
    (void)state;
    uint8_t body[64] = { 2, 0, 0, 0, 3, 0, 0, 0, 1, 2, 3, 4, 5, 6 };
    sherd__fragment_info info = block_info(2, 3), huge = block_info(1u << 20, 1u << 20);
    sherd__record part = {
        .type = SHERD__REC_PUT, .job = 1, .number = 1, .part = 1, .body_len = 14
    };
    seed *s = after_hello();
    add_put(s, &info);
    body[0] = 3;
    add_record(s, &part, body);
    check_file("session", "lying-table", s);
    body[0] = 2;

    s = after_hello();
    add_put(s, &info);
    part.part = 2;
    add_record(s, &part, body);
    check_file("session", "second-part-first", s);
    part.part = 1;

    s = after_hello();
    add_put(s, &huge);
    check_file("session", "block-too-large", s);

    s = after_hello();
    add_put(s, &info);
    add_record(s, &(sherd__record){ .type = SHERD__REC_CANCEL, .job = 1 }, NULL);
    add_record(s, &(sherd__record){ .type = SHERD__REC_PING, .number = 1 }, NULL);
    add_record(s, &part, body);
    add_record(s, &(sherd__record){ .type = 900, .flags = SHERD__RECORD_OPTIONAL, .body_len = 50 },
               body);
    add_record(s, &(sherd__record){ .type = SHERD__REC_DROP, .job = 1, .number = 1 }, NULL);
    check_file("session", "overtaken", s);

    s = after_hello();
    add(s, s->bytes + 2, s->len - 2);
    check_file("session", "second-hello", s);
}

/* A valid block in CSR (rows of 2, 0 and 1 entries, u8, width 1) and the ways in which one can be
 * invalid. */
static void every_csr_seed_equals_the_codes_bytes(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        unsigned at;
        uint8_t byte;
    } lies[] = {
        { "csr", 8, 2 },
        { "csr-count-beyond-columns", 8, 200 },
        { "csr-counts-too-few", 8, 1 },
        { "csr-counts-too-many", 9, 1 },
        { "csr-column-beyond", 13, 5 },
        { "csr-columns-alike", 12, 0 },
        { "csr-lying-table", 0, 4 },
        { "csr-narrower-group", 4, 3 },
    };
    static const uint8_t sound[] = { 3, 0, 0, 0, 5, 0, 0, 0, 2, 0, 1, 0, 4, 2, 10, 20, 30 };
    sherd__fragment_info info = block_info(3, 5);
    info.encoding = SHERD__CSR;
    info.len = sizeof sound;
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        uint8_t body[sizeof sound];
        sherd_diag d = { 0 };
        memcpy(body, sound, sizeof sound);
        body[lies[i].at] = lies[i].byte;
        assert_int_equal(sherd__fragment_table_check(&info, body, &d), i ? SHERD_EFRAME : SHERD_OK);
        seed *s = after_hello();
        add_put(s, &info);
        add_record(s,
                   &(sherd__record){ .type = SHERD__REC_PUT,
                                     .job = 1,
                                     .number = 1,
                                     .part = 1,
                                     .body_len = sizeof sound },
                   body);
        check_file("session", lies[i].name, s);
    }
    seed *s = after_hello(); /* a length that no number of entries gives */
    info.len--;
    add_put(s, &info);
    check_file("session", "csr-length", s);
}

static void add_task(seed *s, const sherd__task *t)
{
    uint8_t body[SHERD__CONTROL_MAX];
    add_record(s,
               &(sherd__record){ .type = SHERD__REC_TASK,
                                 .job = t->job,
                                 .number = t->task,
                                 .part = t->attempt,
                                 .body_len = sherd__message_task(body, t) },
               body);
}

/* One task of each operation, and two with unknown operations. */
static void every_operation_has_a_seed_that_equals_the_codes_bytes(void **state)
{
    (void)state;
    static const uint32_t ops[] = { SHERD__OP_MULTIPLY,
                                    SHERD__OP_MULTIPLY_T,
                                    SHERD__OP_SIGMOID,
                                    SHERD__OP_MINUS,
                                    SHERD__OP_SQUARE,
                                    SHERD__OP_TIMES,
                                    SHERD__OP_RELU,
                                    SHERD__OP_TANH,
                                    SHERD__OP_EXP,
                                    3,
                                    23 };
    seed *s = after_hello();
    for (uint32_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        sherd__task t = task_of(1, i + 1, 3, 2);
        t.op = ops[i];
        if (t.op == SHERD__OP_MULTIPLY_T) {
            t.primes_len = 2;
            t.primes[0] = 5931641;
            t.primes[1] = 5931637;
            t.result.dtype = SHERD__RESIDUES;
            t.result.primes = 2;
            t.result.len = 36;
        }
        add_task(s, &t);
    }
    check_file("session", "operations", s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation_has_a_seed_that_equals_the_codes_bytes),
        cmocka_unit_test(every_header_seed_equals_the_codes_bytes),
        cmocka_unit_test(the_frozen_conversation_equals_the_codes_bytes),
        cmocka_unit_test(every_seed_of_a_lie_equals_the_codes_bytes),
        cmocka_unit_test(every_csr_seed_equals_the_codes_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
