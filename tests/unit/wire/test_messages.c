/* Control bodies: golden bytes that never change; every field truncated, out of range, or
 * corrupted. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "wire/message.h"
#include "wire/record.h"

static const sherd__hello hello = {
    .minor_min = 1,
    .minor_max = 3,
    .features = UINT64_C(0x8000000000000001),
    .software = "sherd 0.1.0",
    .blas_core = "Cooperlake",
    .backend = "cpu",
    .threads = 2,
    .memory = UINT64_C(1) << 33,
    .gflops = 102.5,
};
static const sherd__fragment_info block = { .origin = SHERD__HIDDEN,
                                            .dtype = 1,
                                            .groups = 2,
                                            .rows = 300,
                                            .cols = 17,
                                            .len = 16 + 8 * 300 * 17 };
static const sherd__task task = {
    .job = 9,
    .task = 8,
    .attempt = 7,
    .op = SHERD__OP_MULTIPLY,
    .flags = SHERD__DROP_RIGHT,
    .left = 1,
    .right = 70000,
    .primes_len = 2,
    .primes = { 5931641, 5931637 },
    .result = { .origin = SHERD__RESULT,
                .dtype = SHERD__RESIDUES,
                .primes = 2,
                .rows = 5,
                .cols = 4,
                .len = 120 },
};

static void same(const uint8_t *got, size_t n, const char *hex)
{
    char text[2 * SHERD__CONTROL_MAX + 1] = "";
    for (size_t i = 0; i < n; i++) snprintf(text + 2 * i, 3, "%02x", got[i]);
    assert_string_equal(text, hex);
}

static void every_body_has_these_bytes(void **state)
{
    (void)state;
    uint8_t b[SHERD__CONTROL_MAX];
    const uint32_t attempt = 3;
    sherd__hello quick = hello;
    sherd__hello devices = hello, loaded = hello;
    loaded.load = (sherd__hello_load){ true, 3600, UINT64_C(1) << 33, 0, 2 };
    sherd__hello bytes = hello, both = hello, copies = hello;
    copies.copy_rate = 4;
    copies.resident_gflops = 102.5;
    copies.resident_residue_gflops = 408.5;
    copies.resident_byte_gops = 2048;
    bytes.byte_gops = 2048;
    both.devices_len = 1;
    both.devices[0] = (sherd__hello_device){ 31, 102.5, 0, 0, 0, 2, 2048 };
    quick.residue_gflops = 408.5;
    devices.devices_len = 2;
    devices.devices[0] = (sherd__hello_device){ 15, 102.5, 408.5, 0, 1 << 20, 2, 0 };
    devices.devices[1] = (sherd__hello_device){ 1, 8000, 0, UINT64_C(1) << 36, 1 << 24, 300, 0 };
    sherd__refusal no_room = { .block = 5, .code = SHERD_EREFUSED, .text = "no room" };
    same(b, sherd__message_hello(b, &hello),
         "08011003190100000000000080220b736865726420302e312e302a0a436f6f7065726c616b65"
         "32036370753802408080808020490000000000a05940");
    same(b, sherd__message_hello(b, &quick),
         "08011003190100000000000080220b736865726420302e312e302a0a436f6f7065726c616b65"
         "32036370753802408080808020490000000000a05940510000000000887940");
    same(b, sherd__message_hello(b, &loaded),
         "08011003190100000000000080220b736865726420302e312e302a0a436f6f7065726c616b65"
         "32036370753802408080808020490000000000a0594060901c6880808080207000"
         "7802");
    same(b, sherd__message_hello(b, &devices),
         "08011003190100000000000080220b736865726420302e312e302a0a436f6f7065726c616b65"
         "32036370753802408080808020490000000000a05940"
         "5a1c080f110000000000a059401900000000008879402000288080403002"
         "5a23080111000000000040bf4019000000000000000020808080808002288080800830ac02");
    same(b, sherd__message_hello(b, &bytes),
         "08011003190100000000000080220b736865726420302e312e302a0a436f6f7065726c616b65"
         "32036370753802408080808020490000000000a0594081010000000000"
         "00a040");
    same(b, sherd__message_hello(b, &both),
         "08011003190100000000000080220b736865726420302e312e302a0a436f6f7065726c616b65"
         "32036370753802408080808020490000000000a05940"
         "5a23081f110000000000a0594019000000000000000020002800300239000000000000a040");
    same(b, sherd__message_hello(b, &copies),
         "08011003190100000000000080220b736865726420302e312e302a0a436f6f7065726c616b65"
         "32036370753802408080808020490000000000a05940"
         "89010000000000001040"
         "91010000000000a05940"
         "99010000000000887940"
         "a101000000000000a040");
    same(b, sherd__message_description(b, &block, NULL), "0801100118002000280230ac02381140f0be02");
    same(b, sherd__message_description(b, &task.result, &attempt),
         "080210201800200228003005380440784803");
    same(b, sherd__message_task(b, &task),
         "08011002180120f0a2042a08f984ea02f584ea02321008021020180020022800300538044078");
    sherd__task images = task;
    images.windows = (sherd_windows){ 28, 300, 1, 5, 2, 0 };
    same(b, sherd__message_task(b, &images),
         "08011002180120f0a2042a08f984ea02f584ea023210080210201800200228003005380440783a0d081c10ac"
         "021801200528023000");
    sherd__task eight = task;
    eight.primes_len = 8;
    for (uint32_t i = 0; i < 8; i++) eight.primes[i] = 251 - 2 * i;
    eight.result = (sherd__fragment_info){ .origin = SHERD__RESULT,
                                           .dtype = SHERD__BYTES,
                                           .primes = 8,
                                           .rows = 5,
                                           .cols = 4,
                                           .len = 160 };
    same(b, sherd__message_task(b, &eight),
         "08011002180120f0a2042a10fb01f901f701f501f301f101ef01ed0132110802102318002008280030053804"
         "40a001");
    same(b, sherd__message_refuse(b, &no_room), "080110cd011a076e6f20726f6f6d");
    same(b, sherd__message_bye(b, SHERD_EBUSY, "later"), "081512056c61746572");
}

/* ---- every kind of body, through one pair of functions --------------------------------------- */

typedef union any {
    sherd__hello hello;
    struct {
        sherd__fragment_info info;
        uint32_t attempt;
    } first;
    sherd__task task;
    sherd__refusal refusal;
    struct {
        int code;
        char text[SHERD__TEXT_MAX];
    } bye;
} any;

enum { HELLO, PUT, RESULT, TASK, REFUSE, BYE, KINDS };

static size_t write_kind(int kind, uint8_t *b)
{
    const uint32_t attempt = 3;
    const sherd__refusal refusal = { .task = 5, .code = SHERD_ENOMEM, .text = "no room" };
    switch (kind) {
    case HELLO: return sherd__message_hello(b, &hello);
    case PUT: return sherd__message_description(b, &block, NULL);
    case RESULT: return sherd__message_description(b, &task.result, &attempt);
    case TASK: return sherd__message_task(b, &task);
    case REFUSE: return sherd__message_refuse(b, &refusal);
    default: return sherd__message_bye(b, SHERD_EBUSY, "later");
    }
}

static int read_kind(int kind, any *out, const uint8_t *b, size_t n, sherd_diag *d)
{
    switch (kind) {
    case HELLO: return sherd__message_hello_parse(&out->hello, b, n, d);
    case PUT: return sherd__message_description_parse(&out->first.info, NULL, b, n, d);
    case RESULT:
        return sherd__message_description_parse(&out->first.info, &out->first.attempt, b, n, d);
    case TASK: return sherd__message_task_parse(&out->task, b, n, d);
    case REFUSE: return sherd__message_refuse_parse(&out->refusal, b, n, d);
    default: return sherd__message_bye_parse(&out->bye.code, out->bye.text, b, n, d);
    }
}

static void a_body_that_was_written_reads_back_equal(void **state)
{
    (void)state;
    uint8_t b[SHERD__CONTROL_MAX];
    any a;
    assert_int_equal(read_kind(HELLO, &a, b, write_kind(HELLO, b), NULL), SHERD_OK);
    assert_memory_equal(&a.hello, &hello, sizeof hello);
    assert_int_equal(read_kind(PUT, &a, b, write_kind(PUT, b), NULL), SHERD_OK);
    assert_true(a.first.info.len == block.len && a.first.info.groups == 2);
    assert_int_equal(read_kind(RESULT, &a, b, write_kind(RESULT, b), NULL), SHERD_OK);
    assert_int_equal(a.first.attempt, 3);
    assert_int_equal(a.first.info.primes, 2);
    assert_int_equal(read_kind(TASK, &a, b, write_kind(TASK, b), NULL), SHERD_OK);
    assert_true(a.task.left == 1 && a.task.right == 70000 && a.task.primes[1] == 5931637);
    assert_true(a.task.job == 0 && a.task.task == 0 && a.task.attempt == 0);
    assert_true(a.task.result.len == 120 && a.task.flags == SHERD__DROP_RIGHT);
    assert_int_equal(a.task.windows.window, 0);
    assert_int_equal(read_kind(REFUSE, &a, b, write_kind(REFUSE, b), NULL), SHERD_OK);
    assert_int_equal(a.refusal.code, SHERD_ENOMEM);
    assert_true(a.refusal.block == 0 && a.refusal.task == 1);
    assert_string_equal(a.refusal.text, "no room");
    assert_int_equal(read_kind(BYE, &a, b, write_kind(BYE, b), NULL), SHERD_OK);
    assert_int_equal(a.bye.code, SHERD_EBUSY);
    assert_string_equal(a.bye.text, "later");
}

static void a_body_truncated_anywhere_is_refused_field_boundaries_included(void **state)
{
    (void)state;
    uint8_t b[SHERD__CONTROL_MAX];
    for (int kind = 0; kind < KINDS; kind++) {
        size_t n = write_kind(kind, b);
        for (size_t cut = 0; cut < n; cut++) {
            any a, before;
            sherd_diag d = { 0 };
            memset(&a, 0x5a, sizeof a);
            before = a;
            assert_int_equal(read_kind(kind, &a, b, cut, &d), SHERD_EFRAME);
            assert_true(d.message[0] != 0);
            assert_memory_equal(&a, &before, sizeof a);
        }
    }
}

static void with_any_flipped_bit_a_body_is_refused_or_has_legal_values(void **state)
{
    (void)state;
    uint8_t b[SHERD__CONTROL_MAX];
    for (int kind = 0; kind < KINDS; kind++) {
        size_t n = write_kind(kind, b);
        for (size_t bit = 0; bit < 8 * n; bit++) {
            any a;
            memset(&a, 0, sizeof a);
            b[bit / 8] ^= (uint8_t)(1u << bit % 8);
            int err = read_kind(kind, &a, b, n, NULL);
            b[bit / 8] ^= (uint8_t)(1u << bit % 8);
            assert_true(err == SHERD_OK || err == SHERD_EFRAME);
            if (err) continue;
            if (kind == HELLO) {
                assert_true(a.hello.minor_min <= a.hello.minor_max && a.hello.gflops >= 0);
                for (const char *c = a.hello.software; *c; c++) assert_in_range(*c, ' ', '~');
            }
            if (kind == TASK) assert_true(a.task.left && a.task.primes_len <= SHERD__PRIMES_MAX);
            if (kind == REFUSE) assert_true(a.refusal.code < 0);
            if (kind == BYE) assert_true(a.bye.code <= 0);
        }
    }
}

static void a_field_from_a_later_minor_is_skipped(void **state)
{
    (void)state;
    uint8_t b[SHERD__CONTROL_MAX];
    static const uint8_t later[] = { 0xf2, 0x01, 0x02, 'h', 'i' }; /* field 30, of two bytes */
    for (int kind = 0; kind < KINDS; kind++) {
        any a;
        size_t n = write_kind(kind, b);
        memcpy(b + n, later, sizeof later);
        assert_int_equal(read_kind(kind, &a, b, n + sizeof later, NULL), SHERD_OK);
    }
}

static void as_many_devices_as_fit_are_declared_and_no_more(void **state)
{
    (void)state;
    uint8_t b[2 * SHERD__CONTROL_MAX];
    static const uint8_t one_more[] = { 0x5a, 0x1c, 0x08, 0x0f, 0x11, 0, 0,    0, 0, 0,
                                        0,    0,    0,    0x19, 0,    0, 0,    0, 0, 0,
                                        0,    0,    0x20, 0,    0x28, 0, 0x30, 2 };
    sherd__hello h = hello, got;
    h.devices_len = SHERD__DEVICES_MAX;
    for (uint32_t i = 0; i < SHERD__DEVICES_MAX; i++)
        h.devices[i] = (sherd__hello_device){
            UINT32_MAX,
            SHERD__HELLO_GFLOPS_MAX,
            1e-300,
            SHERD__HELLO_BYTES_MAX,
            SHERD__HELLO_BYTES_MAX - i,
            SHERD__HELLO_DEPTH_MAX,
            SHERD__HELLO_GFLOPS_MAX,
        };
    size_t n = sherd__message_hello(b, &h);
    assert_true(n <= SHERD__CONTROL_MAX);
    assert_int_equal(sherd__message_hello_parse(&got, b, n, NULL), SHERD_OK);
    assert_int_equal(got.devices_len, SHERD__DEVICES_MAX);
    assert_memory_equal(got.devices, h.devices, sizeof h.devices);
    memcpy(b + n, one_more, sizeof one_more);
    b[n + 1] = sizeof one_more - 2;
    assert_int_equal(sherd__message_hello_parse(&got, b, n + sizeof one_more, NULL), SHERD_EFRAME);
    n = sherd__message_hello(b, &hello);
    memcpy(b + n, one_more, sizeof one_more);
    b[n + 1] = sizeof one_more - 2;
    assert_int_equal(sherd__message_hello_parse(&got, b, n + sizeof one_more, NULL), SHERD_OK);
    assert_int_equal(got.devices[0].depth, 2);
    b[n + 1] -= 2; /* a device without its last field */
    assert_int_equal(sherd__message_hello_parse(&got, b, n + sizeof one_more - 2, NULL),
                     SHERD_EFRAME);
}

static void rates_of_a_node_are_those_of_its_devices_together(void **state)
{
    (void)state;
    sherd__hello h = { .gflops = 5, .residue_gflops = 7 };
    sherd__hello_rates r = sherd__hello_rates_of(&h); /* of minor 1 */
    assert_true(r.devices == 1 && r.does == SHERD__DOES_FIRST && r.gflops == 5);
    assert_true(r.residue_gflops == 7 && r.byte_gops == 0 && r.cell == 0 && r.depth == 0);
    h.byte_gops = 9;
    r = sherd__hello_rates_of(&h);
    assert_true(r.does == (SHERD__DOES_FIRST | SHERD__DOES_BYTES) && r.byte_gops == 9);
    h.devices_len = 3;
    h.devices[0] = (sherd__hello_device){
        SHERD__DOES_F64 | SHERD__DOES_RESIDUES, 10, 0, 0, 9, 2, 7
    };
    h.devices[1] = (sherd__hello_device){ SHERD__DOES_F64, 100, 0, 0, 20, 3, 7 };
    h.devices[2] = (sherd__hello_device){ SHERD__DOES_MAPS, 1000, 0, 0, 0, 4, 7 };
    r = sherd__hello_rates_of(&h);
    assert_true(r.devices == 3 && r.gflops == 110 && r.residue_gflops == 0);
    assert_int_equal(r.does, SHERD__DOES_F64 | SHERD__DOES_RESIDUES | SHERD__DOES_MAPS);
    assert_true(r.cell == 20 && r.depth == 9 && r.byte_gops == 0);
    h.devices[0].does |= SHERD__DOES_BYTES;
    h.devices[2].does |= SHERD__DOES_BYTES;
    r = sherd__hello_rates_of(&h);
    assert_true(r.does & SHERD__DOES_BYTES && r.byte_gops == 14);
    h.devices[1].does |= SHERD__DOES_RESIDUES;
    h.devices[1].residue_gflops = 400;
    r = sherd__hello_rates_of(&h);
    assert_true(r.residue_gflops == 410);
    h.copy_rate = 3e9;
    h.resident_gflops = 500;
    h.resident_residue_gflops = 700;
    h.resident_byte_gops = 900;
    for (h.devices_len = 0; h.devices_len < 4; h.devices_len++) { /* stated for all together */
        r = sherd__hello_rates_of(&h);
        assert_true(r.copy_rate == 3e9 && r.resident_gflops == 500);
        assert_true(r.resident_residue_gflops == 700 && r.resident_byte_gops == 900);
    }
}

static void numbers_that_no_machine_has_are_read_as_the_largest_possible(void **state)
{
    (void)state;
    uint8_t b[SHERD__CONTROL_MAX];
    sherd__hello h = hello, got;
    h.threads = UINT32_MAX;
    h.memory = UINT64_MAX;
    h.gflops = h.residue_gflops = h.byte_gops = h.copy_rate = 1.7e308;
    h.resident_gflops = h.resident_residue_gflops = h.resident_byte_gops = 1.7e308;
    h.load = (sherd__hello_load){ true, UINT64_MAX, UINT64_MAX, UINT32_MAX, UINT32_MAX };
    h.devices_len = SHERD__DEVICES_MAX;
    for (uint32_t i = 0; i < SHERD__DEVICES_MAX; i++)
        h.devices[i] = (sherd__hello_device){ SHERD__DOES_ALL, 1.7e308,    1.7e308, UINT64_MAX,
                                              UINT64_MAX,      UINT32_MAX, 1.7e308 };
    size_t n = sherd__message_hello(b, &h);
    assert_int_equal(sherd__message_hello_parse(&got, b, n, NULL), SHERD_OK);
    assert_int_equal(got.threads, SHERD__HELLO_THREADS_MAX);
    assert_int_equal(got.memory, SHERD__HELLO_BYTES_MAX);
    assert_true(got.load.known && got.load.uptime_s == SHERD__HELLO_UPTIME_MAX);
    assert_true(got.load.memory_free == SHERD__HELLO_BYTES_MAX);
    assert_true(got.gflops == SHERD__HELLO_GFLOPS_MAX);
    assert_true(got.residue_gflops == SHERD__HELLO_GFLOPS_MAX);
    assert_true(got.byte_gops == SHERD__HELLO_GFLOPS_MAX);
    assert_true(got.resident_gflops == SHERD__HELLO_GFLOPS_MAX);
    assert_true(got.resident_residue_gflops == SHERD__HELLO_GFLOPS_MAX);
    assert_true(got.resident_byte_gops == SHERD__HELLO_GFLOPS_MAX);
    assert_true(got.copy_rate == SHERD__HELLO_COPY_MAX);
    for (uint32_t i = 0; i < SHERD__DEVICES_MAX; i++) {
        const sherd__hello_device *v = &got.devices[i];
        assert_true(v->gflops == SHERD__HELLO_GFLOPS_MAX);
        assert_true(v->residue_gflops == SHERD__HELLO_GFLOPS_MAX);
        assert_true(v->byte_gops == SHERD__HELLO_GFLOPS_MAX);
        assert_true(v->memory == SHERD__HELLO_BYTES_MAX && v->cell == SHERD__HELLO_BYTES_MAX);
        assert_int_equal(v->depth, SHERD__HELLO_DEPTH_MAX);
    }
    const sherd__hello_rates r = sherd__hello_rates_of(&got);
    assert_true(r.gflops == 12e9 && r.residue_gflops == 12e9 && r.depth == 12288);
    assert_true(r.byte_gops == 12e9);
    assert_int_equal(r.cell, SHERD__HELLO_BYTES_MAX);
}

static void values_out_of_range_are_a_peer_error(void **state)
{
    (void)state;
    uint8_t b[SHERD__CONTROL_MAX];
    any a;
    sherd__hello h = hello;
    h.minor_min = 4;
    assert_int_equal(sherd__message_hello_parse(&a.hello, b, sherd__message_hello(b, &h), NULL),
                     SHERD_EFRAME);
    static const double speeds[] = { -1.0, NAN, INFINITY };
    for (int i = 0; i < 3; i++) {
        h = hello;
        h.gflops = speeds[i];
        assert_int_equal(sherd__message_hello_parse(&a.hello, b, sherd__message_hello(b, &h), NULL),
                         SHERD_EFRAME);
        h = hello;
        h.residue_gflops = speeds[i];
        assert_int_equal(sherd__message_hello_parse(&a.hello, b, sherd__message_hello(b, &h), NULL),
                         SHERD_EFRAME);
        h = hello;
        h.byte_gops = speeds[i];
        assert_int_equal(sherd__message_hello_parse(&a.hello, b, sherd__message_hello(b, &h), NULL),
                         SHERD_EFRAME);
    }
    for (int i = 0; i < 12; i++) {
        h = hello;
        double *const of[] = { &h.copy_rate, &h.resident_gflops, &h.resident_residue_gflops,
                               &h.resident_byte_gops };
        *of[i % 4] = speeds[i / 4];
        assert_int_equal(sherd__message_hello_parse(&a.hello, b, sherd__message_hello(b, &h), NULL),
                         SHERD_EFRAME);
    }
    for (int i = 0; i < 9; i++) { /* of a device */
        h = hello;
        h.devices_len = SHERD__DEVICES_MAX;
        sherd__hello_device *v = &h.devices[i];
        *(i % 3 == 0   ? &v->gflops
          : i % 3 == 1 ? &v->residue_gflops
                       : &v->byte_gops) = speeds[i / 3];
        assert_int_equal(sherd__message_hello_parse(&a.hello, b, sherd__message_hello(b, &h), NULL),
                         SHERD_EFRAME);
    }
    sherd__task images = task;
    images.windows = (sherd_windows){ 28, 300, 1, 5, 2, 0 };
    size_t len = sherd__message_task(b, &images);
    assert_int_equal(sherd__message_task_parse(&a.task, b, len, NULL), SHERD_OK);
    assert_memory_equal(&a.task.windows, &images.windows, sizeof images.windows);
    for (int zero = 0; zero < 2; zero++) { /* the last number is missing; the window is 0 */
        b[len - (zero ? 5 : 1)] = 0;
        assert_int_equal(sherd__message_task_parse(&a.task, b, zero ? len : len - 2, NULL),
                         SHERD_EFRAME);
    }
    for (int i = 0; i < 6; i++) {
        sherd__task t = task;
        if (i == 0) t.left = 0;
        if (i == 1) t.flags = 4;
        if (i == 2) t.primes[1] = 2;
        if (i == 3) t.primes[0] = 1u << 24;
        if (i == 4) t.result = block;
        if (i == 5) t.result.len++;
        assert_int_equal(sherd__message_task_parse(&a.task, b, sherd__message_task(b, &t), NULL),
                         SHERD_EFRAME);
    }
    sherd__refusal r = { .task = 1, .code = 0 };
    assert_int_equal(sherd__message_refuse_parse(&a.refusal, b, sherd__message_refuse(b, &r), NULL),
                     SHERD_EFRAME);
    assert_int_equal(sherd__message_bye_parse(&a.bye.code, a.bye.text, b,
                                              sherd__message_bye(b, 1, ""), NULL),
                     SHERD_EFRAME);
}

static void a_put_has_no_attempt_and_a_result_has_one(void **state)
{
    (void)state;
    uint8_t b[SHERD__CONTROL_MAX];
    any a;
    assert_int_equal(read_kind(PUT, &a, b, write_kind(RESULT, b), NULL), SHERD_EFRAME);
    assert_int_equal(read_kind(RESULT, &a, b, write_kind(PUT, b), NULL), SHERD_EFRAME);
}

static void text_from_a_peer_is_made_printable_and_bounded(void **state)
{
    (void)state;
    uint8_t b[SHERD__CONTROL_MAX] = { 0x08, 0x00, 0x12, 5, 27, '[', 'm', '\n', 0xff };
    any a;
    assert_int_equal(read_kind(BYE, &a, b, 9, NULL), SHERD_OK);
    assert_string_equal(a.bye.text, "?[m??");
    char longest[2 * SHERD__TEXT_MAX];
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = 0;
    assert_int_equal(read_kind(BYE, &a, b, sherd__message_bye(b, 0, longest), NULL), SHERD_OK);
    assert_int_equal(strlen(a.bye.text), SHERD__TEXT_MAX - 1);
    uint8_t over[SHERD__CONTROL_MAX] = { 0x08, 0x00, 0x12, 200, 1 };
    memset(over + 5, 'x', 200);
    assert_int_equal(read_kind(BYE, &a, over, 205, NULL), SHERD_EFRAME);
}

static void an_unknown_reason_is_read_as_a_refusal(void **state)
{
    (void)state;
    uint8_t b[SHERD__CONTROL_MAX];
    any a;
    assert_int_equal(read_kind(BYE, &a, b, sherd__message_bye(b, -177, ""), NULL), SHERD_OK);
    assert_int_equal(a.bye.code, SHERD_EREFUSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_body_has_these_bytes),
        cmocka_unit_test(a_body_that_was_written_reads_back_equal),
        cmocka_unit_test(a_body_truncated_anywhere_is_refused_field_boundaries_included),
        cmocka_unit_test(with_any_flipped_bit_a_body_is_refused_or_has_legal_values),
        cmocka_unit_test(a_field_from_a_later_minor_is_skipped),
        cmocka_unit_test(as_many_devices_as_fit_are_declared_and_no_more),
        cmocka_unit_test(rates_of_a_node_are_those_of_its_devices_together),
        cmocka_unit_test(numbers_that_no_machine_has_are_read_as_the_largest_possible),
        cmocka_unit_test(values_out_of_range_are_a_peer_error),
        cmocka_unit_test(a_put_has_no_attempt_and_a_result_has_one),
        cmocka_unit_test(text_from_a_peer_is_made_printable_and_bounded),
        cmocka_unit_test(an_unknown_reason_is_read_as_a_refusal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
