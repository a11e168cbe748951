/*
 * The conditions of a node before the first round of a training: a known format and safe
 * thresholds, places for which it has room, keys that their owners signed and that its peers' file
 * names.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "tests/unit/node/secure_member.h"

static void a_coordinator_of_another_version_gets_a_version_error(void **s)
{
    (void)s;
    uint64_t words[SHERD__SECURE_PLAN];
    sherd__secure_plan p = member_plan();
    sherd__secure_plan_write((uint8_t *)words, &p);
    words[0] = 1;
    member_start(NULL);
    member_put(PLAN, SHERD_I64, 1, SHERD__SECURE_PLAN, words);
    assert_int_equal(member_task(SHERD__OP_JOIN, PLAN, 0, SHERD_U8, 1, SHERD__SECURE_CARD),
                     SHERD_EFORMAT);
    assert_non_null(strstr(m.refusal.text, "another format of secure aggregation"));
    member_stop();
}

static void keys_without_their_owners_signature_are_refused(void **s)
{
    (void)s;
    member_start(NULL);
    for (size_t bit = 0; bit < 8 * N * SHERD__SECURE_CARD; bit += 61) {
        assert_int_equal(member_join(), 0);
        member_deal_cards();
        m.cards[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(member_roster(), SHERD_EAUTH);
        assert_int_equal(member_seal(1), SHERD_EINVAL);
    }
    assert_int_equal(member_join(), 0);
    member_deal_cards(); /* a signature for another member */
    memcpy(m.cards + 2 * SHERD__SECURE_CARD, m.cards + 3 * SHERD__SECURE_CARD, SHERD__SECURE_CARD);
    assert_int_equal(member_roster(), SHERD_EAUTH);
    static const sherd__seal_key nothing = { .open = { 1 } };
    assert_int_equal(member_join(), 0);
    member_deal_cards(); /* a valid signature of a key to which nothing can be sealed */
    member_card_of(m.others[2].identity, 2, &nothing, m.cards + 2 * SHERD__SECURE_CARD);
    assert_int_equal(member_roster(), SHERD_EAUTH);
    assert_int_equal(member_join(), 0);
    member_deal_cards(); /* one owner as two members */
    member_card_of(m.others[1].identity, 2, &m.others[2].key, m.cards + 2 * SHERD__SECURE_CARD);
    assert_int_equal(member_roster(), SHERD_EAUTH);
    assert_int_equal(member_join(), 0);
    member_deal_cards(); /* the node itself once more */
    member_card_of(m.identity, 2, &m.others[2].key, m.cards + 2 * SHERD__SECURE_CARD);
    assert_int_equal(member_roster(), SHERD_EAUTH);
    member_stop();
}

static size_t line_of(const sherd_identity *id, const char *more, char *out)
{
    char key[SHERD__FINGERPRINT_TEXT];
    sherd__fingerprint_text(sherd__identity_fingerprint(id), key);
    return (size_t)sprintf(out, "127.0.0.1:7001 key=%s %s\n", key, more);
}

static int roster_under(const char *of_1, const char *of_2, const char *of_3)
{
    char lines[1000];
    const char *const more[N] = { NULL, of_1, of_2, of_3 };
    sherd__peers peers;
    size_t len = line_of(m.identity, "domain=own", lines);
    for (uint32_t i = 1; i < N; i++)
        if (more[i]) len += line_of(m.others[i].identity, more[i], lines + len);
    assert_int_equal(sherd__peers_parse(&peers, lines, len, "peers", NULL), 0);
    member_start(&peers);
    assert_int_equal(member_join(), 0);
    member_deal_cards();
    int err = member_roster();
    member_stop();
    sherd__peers_fini(&peers);
    return err;
}

static void with_a_peers_file_only_its_nodes_may_be_members(void **s)
{
    (void)s;
    assert_int_equal(roster_under("", "", ""), 0);
    assert_int_equal(roster_under("role=node", "domain=a", "domain=b"), 0);
    assert_int_equal(roster_under("", "", NULL), SHERD_EAUTH);
    assert_int_equal(roster_under("", "", "role=coordinator"), SHERD_EAUTH);
    assert_int_equal(roster_under("", "domain=a", "domain=a"), SHERD_EAUTH); /* T = 1 */
    assert_int_equal(roster_under("", "", "domain=own"), SHERD_EAUTH);
}

static void unsafe_thresholds_are_refused(void **s)
{
    (void)s;
    static const uint32_t bad[][3] = { { 2, 2, 1 }, { 4, 2, 1 }, { 4, 3, 0 },      { 4, 3, 2 },
                                       { 7, 4, 2 }, { 4, 5, 1 }, { 1025, 1000, 1 } };
    member_start(NULL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sherd__secure_plan p = member_plan();
        p.nodes = bad[i][0];
        p.threshold = bad[i][1];
        p.colluding = bad[i][2];
        assert_true(member_join_as(&p) != 0);
    }
    member_meet();
    member_round(1);
    member_stop();
}

/* Starts a node without data, and examples for it. */
static void start_dealt(void)
{
    m.dealt = m.stays = true;
    member_start_with((uint64_t)16 << 20, NULL, NULL);
    member_put(MEMBER_X, SHERD_F64, ROWS, 3, m.examples);
    member_put(MEMBER_TARGETS, SHERD_F64, ROWS, 2, m.examples);
}

static void stop_dealt(void)
{
    m.dealt = m.stays = false;
    member_stop();
}

static void a_plan_may_not_have_more_places_than_examples_were_sent(void **s)
{
    (void)s;
    for (m.places = 8; m.places < 12; m.places++) {
        start_dealt();
        assert_int_equal(member_join(), m.places <= ROWS + 1 ? 0 : SHERD_EINVAL);
        stop_dealt();
    }
    m.places = ROWS;
}

/* Members whose examples come from the coordinator do not bind themselves to a sum. A coordinator
 * that sends examples to some of four nodes could have them confirm {0, 1, 2} and {0, 2}, and so
 * learn the data of owner 1. */
static void either_all_members_have_own_examples_or_all_receive_theirs(void **s)
{
    (void)s;
    for (unsigned dealt = 0; dealt < 2; dealt++)
        for (uint32_t other = 0; other < N; other++) { /* 0: all members are of one kind */
            if (dealt) start_dealt();
            else member_start(NULL);
            assert_int_equal(member_join(), 0);
            member_deal_cards();
            m.dealt = !dealt;
            if (other)
                member_card_of(m.others[other].identity, other, &m.others[other].key,
                               m.cards + other * SHERD__SECURE_CARD);
            m.dealt = dealt;
            assert_int_equal(member_roster(), other ? SHERD_EREFUSED : 0);
            if (other) assert_non_null(strstr(m.refusal.text, "policy: this node takes part in"));
            if (other) assert_int_equal(member_seal(1), SHERD_EINVAL);
            if (dealt) stop_dealt();
            else member_stop();
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_coordinator_of_another_version_gets_a_version_error),
        cmocka_unit_test(keys_without_their_owners_signature_are_refused),
        cmocka_unit_test(with_a_peers_file_only_its_nodes_may_be_members),
        cmocka_unit_test(unsafe_thresholds_are_refused),
        cmocka_unit_test(a_plan_may_not_have_more_places_than_examples_were_sent),
        cmocka_unit_test(either_all_members_have_own_examples_or_all_receive_theirs),
    };
    return cmocka_run_group_tests(tests, member_fill, member_empty);
}
