/* The text that a session sends to its peer with a refusal or a goodbye, compared with the fixed
 * table: for every reason the peer receives a constant text, and only the node's own log contains
 * the details. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/refusals.h"
#include "tests/unit/wire/session_steps.h"
#include "wire/says.h"

/* Texts of 0.1.0; each contains data of other clients or of the machine. */
static const char *const details[] = {
    "",
    "no memory for a result of 80 bytes: 4096 of 65536 are in use",
    "no memory for a training of 123456 bytes",
    "label 9 of an example: the network has 4 outputs",
    "/home/someone/.ssh/id: no such file or directory",
    "block 1 of this job already exists",
    "connect: ECONNREFUSED",
    "the node is ending, with 3 other coordinators",
    "the policy: none",
};

static const int codes[] = {
#define XX(num, name, exit, text) SHERD_##name,
    SHERD_ERR_MAP(XX)
#undef XX
};

enum { CODES = sizeof codes / sizeof *codes, DETAILS = sizeof details / sizeof *details };

static char withheld[SHERD__TEXT_MAX];
static int withheld_len;

static void keep(void *ctx, const sherd__refusal *r)
{
    (void)ctx;
    memcpy(withheld, r->text, sizeof withheld);
    withheld_len++;
}

static void every_code_has_one_text_for_all_reasons(void **state)
{
    (void)state;
    for (size_t c = 0; c < CODES; c++)
        for (size_t i = 0; i < DETAILS; i++) {
            const char *said = sherd__says(codes[c], details[i]);
            assert_string_equal(said, sherd__says(codes[c], ""));
            if (!refusal_is_constant(codes[c], said)) fail_msg("%d: %s", codes[c], said);
        }
}

/* Texts that help a user are sent, for any number in them, but without the number. */
static void a_mistake_of_the_peer_is_named_without_numbers(void **state)
{
    (void)state;
    static const struct {
        int code;
        const char *text, *said;
    } mistakes[] = {
        { SHERD_EINVAL, "no block 17 of this job here", "a block that it names is missing" },
        { SHERD_EINVAL, "no JOIN in this job", "no JOIN in this job" },
        { SHERD_EINVAL, "round 4: this is round 3", "another round is in progress" },
        { SHERD_EINVAL, "round 4 already has its gradient", "this round already has its gradient" },
        { SHERD_EINVAL, "a parameter is not finite", "a parameter is not finite" },
        { SHERD_EINVAL, "left block 3 holds residues, but the task has no primes",
          "an operand holds residues, but the task has no primes" },
        { SHERD_EFORMAT, "block 9 is not a plan", "the block of a plan does not contain a plan" },
    };
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        const char *said = sherd__says(mistakes[i].code, mistakes[i].text);
        assert_string_equal(said, mistakes[i].said);
        assert_true(refusal_is_constant(mistakes[i].code, said));
    }
}

/* A node's session is asked for something and refuses with each reason. */
static void a_refusal_carries_the_constant_text_and_the_log_the_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < DETAILS; i++) {
        sherd__session *no;
        sherd__event ev;
        const uint8_t *out;
        size_t used, len;
        sherd__session_options o = { .role = SHERD__NODE, .now_ms = 1, .withheld = keep };
        uint8_t body[SHERD__CONTROL_MAX], bytes[SHERD__RECORD_BYTES + SHERD__CONTROL_MAX];
        sherd__hello h = { .software = "x" };
        sherd__record r = { .type = SHERD__REC_HELLO, .body_len = sherd__message_hello(body, &h) };
        assert_int_equal(sherd__session_new(&no, &o), SHERD_OK);
        sherd__record_pack(&r, bytes);
        memcpy(bytes + SHERD__RECORD_BYTES, body, r.body_len);
        assert_int_equal(sherd__session_feed(no, bytes, SHERD__RECORD_BYTES + r.body_len, 1, &used,
                                             &ev),
                         SHERD_OK);
        len = sherd__session_pending(no, 1, &out);
        sherd__session_sent(no, len);
        sherd__refusal want = { .job = 1, .block = 1, .code = SHERD_ENOMEM }, got;
        snprintf(want.text, sizeof want.text, "%s", details[i]);
        withheld_len = 0;
        assert_int_equal(sherd__session_refuse(no, &want), SHERD_OK);
        len = sherd__session_pending(no, 1, &out);
        assert_true(len > SHERD__RECORD_BYTES);
        sherd_diag d = { 0 };
        assert_int_equal(sherd__message_refuse_parse(&got, out + SHERD__RECORD_BYTES,
                                                     len - SHERD__RECORD_BYTES, &d),
                         SHERD_OK);
        assert_string_equal(got.text, "not enough memory");
        assert_int_equal(withheld_len, 1);
        assert_string_equal(withheld, details[i]);
        sherd__session_free(no);
    }
}

static void a_goodbye_carries_the_constant_text_and_the_sender_keeps_the_reason(void **state)
{
    (void)state;
    for (unsigned node = 0; node < 2; node++)
        for (size_t i = 0; i < DETAILS; i++) {
            pair p;
            sherd__event ev;
            open_ready(&p);
            side *from = node ? &p.no : &p.co, *to = node ? &p.co : &p.no;
            size_t at = from->wire_len;
            sherd__session_bye(from->s, SHERD_EBUSY, details[i]);
            pair_run(&p, SIZE_MAX);
            assert_int_equal(to->err, SHERD_EBUSY);
            sherd__session_tick(from->s, p.now, &ev);
            assert_string_equal(ev.text, details[i]);
            char text[SHERD__TEXT_MAX];
            int code;
            sherd_diag d = { 0 };
            assert_int_equal(sherd__message_bye_parse(&code, text,
                                                      from->wire + at + SHERD__RECORD_BYTES,
                                                      from->wire_len - at - SHERD__RECORD_BYTES,
                                                      &d),
                             SHERD_OK);
            assert_string_equal(text, "busy with an earlier request");
            pair_close(&p);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_has_one_text_for_all_reasons),
        cmocka_unit_test(a_mistake_of_the_peer_is_named_without_numbers),
        cmocka_unit_test(a_refusal_carries_the_constant_text_and_the_log_the_reason),
        cmocka_unit_test(a_goodbye_carries_the_constant_text_and_the_sender_keeps_the_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
