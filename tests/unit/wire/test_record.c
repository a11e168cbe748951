/* The header of a record: golden bytes, the table of rules, and refusal of everything else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/bytes.h"
#include "wire/record.h"
#include "wire/session.h"

static const uint8_t golden[SHERD__RECORD_BYTES] = {
    'S',  'H',  'R',  'D',  3, 0, 0, 0, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,
    0x04, 0x03, 0x02, 0x01, 7, 0, 0, 0, 0x00, 0x00, 0x04, 0,    0,    0,    0,    0,
};

static void a_header_has_these_bytes(void **state)
{
    (void)state;
    sherd__record r = { .type = SHERD__REC_PUT,
                        .job = UINT64_C(0x1122334455667788),
                        .number = 0x01020304,
                        .part = 7,
                        .body_len = SHERD__CHUNK };
    uint8_t out[SHERD__RECORD_BYTES];
    sherd__record_pack(&r, out);
    assert_memory_equal(out, golden, sizeof golden);
    sherd__record back = { 0 };
    assert_int_equal(sherd__record_parse(&back, golden, NULL), SHERD_OK);
    assert_int_equal(back.type, r.type);
    assert_int_equal(back.flags, 0);
    assert_true(back.job == r.job && back.number == r.number && back.part == r.part);
    assert_true(back.body_len == r.body_len);
}

/* Returns a legal header of `type`. */
static sherd__record legal(uint16_t type)
{
    sherd__record r = { .type = type };
    switch (type) {
    case SHERD__REC_PUT:
    case SHERD__REC_TASK:
    case SHERD__REC_RESULT:
    case SHERD__REC_REFUSE:
    case SHERD__REC_DROP:
    case SHERD__REC_CANCEL: r.job = r.number = 1; break;
    case SHERD__REC_PING:
    case SHERD__REC_PONG: r.number = 1; break;
    default: break;
    }
    return r;
}

static int verdict(const sherd__record *r)
{
    uint8_t bytes[SHERD__RECORD_BYTES];
    sherd_diag d = { 0 };
    sherd__record out = { .type = 999 };
    sherd__record_pack(r, bytes);
    int err = sherd__record_parse(&out, bytes, &d);
    assert_int_equal(err, d.code);
    if (err) assert_int_equal(out.type, 999); /* unchanged */
    if (err) assert_true(strlen(d.message) > 0);
    return err;
}

static void every_known_type_is_parsed_and_has_a_name(void **state)
{
    (void)state;
    for (uint16_t t = SHERD__REC_HELLO; t <= SHERD__REC_BYE; t++) {
        sherd__record r = legal(t);
        assert_int_equal(verdict(&r), SHERD_OK);
        assert_non_null(sherd__record_name(t));
        assert_in_range(sherd__record_senders(t), 1, 3);
    }
    assert_null(sherd__record_name(0));
    assert_null(sherd__record_name(SHERD__REC_BYE + 1));
    assert_null(sherd__record_name(UINT16_MAX));
}

static void a_body_above_its_cap_is_refused_for_every_type_and_part(void **state)
{
    (void)state;
    for (uint16_t t = SHERD__REC_HELLO; t <= SHERD__REC_BYE; t++)
        for (uint32_t part = 0; part < 2; part++) {
            sherd__record r = legal(t);
            r.part = part;
            r.body_len = sherd__record_cap(t, part);
            int at_cap = verdict(&r);
            if (part == 0) assert_int_equal(at_cap, SHERD_OK);
            r.body_len++;
            assert_int_equal(verdict(&r), SHERD_EFRAME);
            r.body_len = UINT64_MAX;
            assert_int_equal(verdict(&r), SHERD_EFRAME);
        }
}

static void an_unknown_type_is_a_peer_error_unless_it_is_optional(void **state)
{
    (void)state;
    static const uint16_t types[] = { 0, SHERD__REC_BYE + 1, 77, UINT16_MAX };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        sherd__record r = { .type = types[i], .body_len = SHERD__UNKNOWN_MAX };
        assert_int_equal(verdict(&r), SHERD_EFRAME);
        r.flags = SHERD__RECORD_OPTIONAL;
        assert_int_equal(verdict(&r), SHERD_OK);
        r.body_len++;
        assert_int_equal(verdict(&r), SHERD_EFRAME);
    }
}

static void unused_fields_of_a_type_must_be_zero(void **state)
{
    (void)state;
    sherd__record r = legal(SHERD__REC_HELLO);
    r.job = 1;
    assert_int_equal(verdict(&r), SHERD_EFRAME);
    r = legal(SHERD__REC_BYE);
    r.number = 1;
    assert_int_equal(verdict(&r), SHERD_EFRAME);
    r = legal(SHERD__REC_DROP);
    r.part = 1;
    assert_int_equal(verdict(&r), SHERD_EFRAME);
    r = legal(SHERD__REC_PING);
    r.job = 1;
    assert_int_equal(verdict(&r), SHERD_EFRAME);
}

static void job_and_block_zero_are_invalid(void **state)
{
    (void)state;
    static const uint16_t types[] = { SHERD__REC_PUT, SHERD__REC_TASK, SHERD__REC_RESULT,
                                      SHERD__REC_REFUSE };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        sherd__record r = legal(types[i]);
        r.job = 0;
        assert_int_equal(verdict(&r), SHERD_EFRAME);
        r = legal(types[i]);
        r.number = 0;
        assert_int_equal(verdict(&r), SHERD_EFRAME);
    }
}

static void every_flag_bit_on_a_known_type_is_refused(void **state)
{
    (void)state;
    for (int bit = 0; bit < 16; bit++) {
        sherd__record r = legal(SHERD__REC_PUT);
        r.flags = (uint16_t)(1u << bit);
        assert_int_equal(verdict(&r), SHERD_EFRAME);
    }
}

static void every_flipped_bit_of_magic_is_refused(void **state)
{
    (void)state;
    for (int bit = 0; bit < 32; bit++) {
        uint8_t bytes[SHERD__RECORD_BYTES];
        sherd__record out;
        memcpy(bytes, golden, sizeof bytes);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(sherd__record_parse(&out, bytes, NULL), SHERD_EFRAME);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_header_has_these_bytes),
        cmocka_unit_test(every_known_type_is_parsed_and_has_a_name),
        cmocka_unit_test(a_body_above_its_cap_is_refused_for_every_type_and_part),
        cmocka_unit_test(an_unknown_type_is_a_peer_error_unless_it_is_optional),
        cmocka_unit_test(unused_fields_of_a_type_must_be_zero),
        cmocka_unit_test(job_and_block_zero_are_invalid),
        cmocka_unit_test(every_flag_bit_on_a_known_type_is_refused),
        cmocka_unit_test(every_flipped_bit_of_magic_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
