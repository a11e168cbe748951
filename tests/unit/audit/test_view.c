/* Records that are complete, truncated, edited, without an index, and files that are not
 * records. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "audit/adversary_view.h"
#include "audit/right_operand.h"
#include "audit/shares.h"
#include "core/alloc.h"
#include "sherd/mat.h"
#include "store/digest.h"
#include "tests/unit/audit/spool.h"

#define JOB 77

static spool in, out;
static uint8_t left[2][600], right[400];
static sherd__fragment_info left_info, right_info, result;

/* Makes two panels of one slot, in all 20 rows of 5 columns; panel 1 is sent again for another
 * tile. */
static void a_conversation(spool *s)
{
    uint8_t values[2][50];
    for (unsigned p = 0; p < 2; p++)
        for (unsigned i = 0; i < 50; i++) values[p][i] = (uint8_t)(i % 5 == 4 ? 0 : 1 + p * 50 + i);
    memset(right, 9, sizeof right);
    s->len = 0;
    spool_hello(s);
    (void)spool_group(&right_info, right + 8, 5, 3, right);
    result = (sherd__fragment_info){
        .origin = SHERD__RESULT, .dtype = SHERD_F64, .rows = 10, .cols = 3, .len = 240
    };
    spool_put(s, JOB, 1, &right_info, right);
    for (unsigned p = 0; p < 2; p++) {
        (void)spool_group(&left_info, values[p], 10, 5, left[p]);
        spool_put(s, JOB, 10 + p, &left_info, left[p]);
        spool_record(s, 8, 0, 1 + p, 0, NULL, 0); /* a ping */
        spool_task(s, JOB, 1 + p, 10 + p, 1, NULL, 0, &result);
    }
    spool_put(s, JOB, 2, &right_info, right);
    spool_put(s, JOB, 20, &left_info, left[1]);
    (void)spool_group(&left_info, values[0], 10, 5, left[0]);
    spool_put(s, JOB, 21, &left_info, left[0]);
    spool_task(s, JOB, 3, 21, 2, NULL, 0, &result);
}

static const char *a_folder(const spool *s)
{
    const char *dir = spool_folder();
    out.len = 0;
    spool_welcome(&out);
    spool_file(dir, "node-1.sent", s->bytes, s->len);
    spool_file(dir, "node-1.received", out.bytes, out.len);
    return dir;
}

static void blocks_of_a_record_are_read(void **state)
{
    (void)state;
    sherd__views v = { 0 };
    sherd__adversary_view s;
    sherd__clear_product p;
    uint8_t body[600];
    a_conversation(&in);
    assert_int_equal(sherd__views_add(&v, a_folder(&in), NULL), 0);
    assert_true(v.of_coordinator && v.len == 1 && v.nodes[0].tasks_len == 3);
    assert_true(v.trouble[0] != 0 && v.nodes[0].trouble[0] == 0);
    assert_int_equal(v.nodes[0].blocks_len, 6);
    assert_int_equal(sherd__view_body(&v.nodes[0], &v.nodes[0].blocks[1], body), 0);
    assert_memory_equal(body, left[0], 58);
    assert_int_equal(sherd__adversary_view_job(&v, &p), 0);
    assert_true(p.job == JOB && p.jobs == 1 && p.ones == 0);
    assert_int_equal(sherd__adversary_view_of(&s, &v.nodes[0], p.job, 100), 0);
    assert_int_equal(s.len, 1);
    assert_true(s.ordered && s.cols == 5 && s.sheaves[0].rows == 20 && s.sheaves[0].kept == 20);
    for (unsigned r = 0; r < 20; r++)
        for (unsigned c = 0; c < 5; c++)
            assert_true(s.sheaves[0].values[r * 5 + c] == (c == 4 ? 0 : 1 + r * 5 + c));
    assert_true(s.sheaves[0].keys[4].nonzeros == 0 && s.sheaves[0].keys[0].nonzeros == 20);
    sherd__adversary_view_fini(&s);
    sherd__right_operand b;
    assert_int_equal(sherd__right_operand_of(&b, &v.nodes[0], p.job), 0);
    assert_int_equal(b.len, 5);
    assert_int_equal(b.keys[4].nonzeros, 6); /* in both tiles */
    assert_true(b.largest == 9 && b.integers);
    sherd__right_operand_fini(&b);
    sherd__views_fini(&v);
}

/* Sends A (4 x 5) and B (5 x 3) of bytes: bytes[0] and bytes[2], except the last ones. */
static void a_product(spool *s, uint64_t job, const uint8_t bytes[4])
{
    uint8_t of_a[20], of_b[15], block[64];
    sherd__fragment_info info;
    memset(of_a, bytes[0], sizeof of_a);
    memset(of_b, bytes[2], sizeof of_b);
    of_a[19] = bytes[1];
    of_b[14] = bytes[3];
    (void)spool_group(&info, of_b, 5, 3, block);
    spool_put(s, job, 1, &info, block);
    (void)spool_group(&info, of_a, 4, 5, block);
    spool_put(s, job, 2, &info, block);
    spool_task(s, job, 1, 2, 1, NULL, 0, &result);
}

static sherd__clear_product clear_of(const spool *s)
{
    sherd__views v = { 0 };
    sherd__clear_product p;
    assert_int_equal(sherd__views_add(&v, a_folder(s), NULL), 0);
    for (size_t n = 1;; n++) {
        sherd__alloc_fail_nth(n);
        int err = sherd__adversary_view_job(&v, &p);
        size_t made = sherd__alloc_fail_nth(0);
        assert_int_equal(err, made >= n ? SHERD_ENOMEM : 0);
        if (!err) break;
    }
    sherd__views_fini(&v);
    return p;
}

/* A matrix of another number than 1, or with one other number, reveals that number. */
static void only_products_of_ones_are_left_out(void **state)
{
    (void)state;
    static const uint8_t others[][4] = {
        { 1, 2, 1, 1 }, { 1, 1, 1, 0 }, { 2, 2, 1, 1 }, { 1, 1, 7, 7 }, { 0, 0, 0, 0 }
    };
    static const uint8_t ones[4] = { 1, 1, 1, 1 };
    in.len = 0;
    spool_hello(&in);
    for (uint64_t job = 1; job <= 70; job++) a_product(&in, job, ones); /* more than are counted */
    sherd__clear_product p = clear_of(&in);
    assert_true(p.jobs == 0 && p.ones == 70);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        size_t len = in.len;
        a_product(&in, 99, others[i]);
        p = clear_of(&in);
        assert_true(p.jobs == 1 && p.job == 99 && p.ones == 70);
        in.len = len;
    }
    a_product(&in, 70, others[0]); /* another block of a job */
    p = clear_of(&in);
    assert_true(p.jobs == 1 && p.job == 70 && p.ones == 69);
}

static void a_nodes_own_record_is_recognised_by_the_direction_of_the_greeting(void **state)
{
    (void)state;
    sherd__views v = { 0 };
    const char *dir = spool_folder();
    a_conversation(&in);
    out.len = 0;
    spool_welcome(&out);
    spool_file(dir, "session-1.received", in.bytes, in.len);
    spool_file(dir, "session-1.sent", out.bytes, out.len);
    assert_int_equal(sherd__views_add(&v, dir, NULL), 0);
    assert_true(!v.of_coordinator && v.nodes[0].tasks_len == 3);
    assert_int_equal(sherd__views_add(&v, a_folder(&in), NULL), SHERD_EINVAL);
    assert_int_equal(v.len, 1);
    sherd__views_fini(&v);
}

/* The remaining part of a truncated record is used, and nothing beyond it is read. */
static void every_prefix_is_read_as_far_as_it_goes(void **state)
{
    (void)state;
    static spool cut;
    a_conversation(&in);
    size_t most = 0;
    for (size_t len = 36; len <= in.len; len += len % 7 == 0 ? 1 : 5) {
        sherd__views v = { 0 };
        sherd__adversary_view s = { 0 };
        const char *dir = len == 36 ? a_folder(&in) : NULL;
        static char path[64];
        if (dir) strcpy(path, dir);
        memcpy(cut.bytes, in.bytes, len);
        cut.len = len;
        spool_file(path, "node-1.sent", cut.bytes, cut.len);
        assert_int_equal(sherd__views_add(&v, path, NULL), 0);
        assert_true(v.nodes[0].blocks_len >= most);
        most = v.nodes[0].blocks_len;
        assert_int_equal(sherd__adversary_view_of(&s, &v.nodes[0], JOB, 100), 0);
        sherd__adversary_view_fini(&s);
        sherd__views_fini(&v);
    }
    assert_int_equal(most, 6);
}

/* No flipped bit makes the reader access invalid memory, which sanitizers would see. */
static void any_byte_may_be_corrupted(void **state)
{
    (void)state;
    static spool bad;
    char path[64];
    a_conversation(&in);
    strcpy(path, a_folder(&in));
    for (size_t i = 36; i < in.len; i++) {
        sherd__views v = { 0 };
        sherd__adversary_view s = { 0 };
        sherd__shares shares;
        const sherd__shares_want want = { 20, 1, 0, 100, 8, 0, 0 };
        memcpy(bad.bytes, in.bytes, in.len);
        bad.bytes[i] ^= (uint8_t)(1u << i % 8);
        spool_file(path, "node-1.sent", bad.bytes, in.len);
        assert_int_equal(sherd__views_add(&v, path, NULL), 0);
        assert_int_equal(sherd__adversary_view_of(&s, &v.nodes[0], JOB, 100), 0);
        sherd__right_operand b;
        assert_int_equal(sherd__right_operand_of(&b, &v.nodes[0], JOB), 0);
        sherd__right_operand_fini(&b);
        if (sherd__shares_read(&shares, &v, JOB, &want, NULL) == 0) sherd__shares_fini(&shares);
        sherd__adversary_view_fini(&s);
        sherd__views_fini(&v);
    }
}

static void a_new_session_after_a_broken_connection_is_found(void **state)
{
    (void)state;
    static spool two;
    sherd__views v = { 0 };
    a_conversation(&in);
    two.len = 0;
    spool_hello(&two);
    spool_put(&two, JOB, 1, &right_info, right);
    spool_put(&two, JOB, 10, &left_info, left[0]);
    two.len -= 20; /* the connection broke inside a body */
    memcpy(two.bytes + two.len, in.bytes, in.len);
    two.len += in.len;
    assert_int_equal(sherd__views_add(&v, a_folder(&two), NULL), 0);
    assert_int_equal(v.nodes[0].tasks_len, 3);
    assert_string_equal(v.nodes[0].trouble, "");
    const sherd__view_block *b = &v.nodes[0].blocks[v.nodes[0].tasks[0].left];
    assert_true(b->whole && b->at > 150); /* of the second session */
    sherd__views_fini(&v);
}

static void an_index_cannot_name_files_outside_the_record(void **state)
{
    (void)state;
    static const char *const names[] = { "../x", "/etc/passwd", ".hidden", "", "a b", "a\\u0000b" };
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        sherd__views v = { 0 };
        sherd_diag d = { 0 };
        char text[256];
        a_conversation(&in);
        const char *dir = a_folder(&in);
        int len = snprintf(text, sizeof text,
                           "{\"schema\": \"sherd/record/1\", \"side\": \"coordinator\", "
                           "\"complete\": true, \"peers\": [{\"name\": \"%s\"}]}",
                           names[i]);
        spool_file(dir, "index.json", text, (size_t)len);
        assert_int_equal(sherd__views_add(&v, dir, &d), SHERD_EFORMAT);
        assert_int_equal(v.len, 0);
    }
}

/* Writes an index with the original lengths of the files, and truncates the files to these
 * lengths. */
static void cut_to(sherd__views *v, size_t sent, size_t received, bool indexed)
{
    char text[320];
    a_conversation(&in);
    const char *dir = a_folder(&in);
    int len = snprintf(text, sizeof text,
                       "{\"schema\": \"sherd/record/1\", \"complete\": true, \"peers\": "
                       "[{\"name\": \"node-1\", \"about\": \"x\", \"sent\": {\"bytes\": %zu}, "
                       "\"received\": {\"bytes\": %zu}}]}",
                       in.len, out.len);
    if (indexed) spool_file(dir, "index.json", text, (size_t)len);
    spool_file(dir, "node-1.sent", in.bytes, sent);
    spool_file(dir, "node-1.received", out.bytes, received);
    *v = (sherd__views){ 0 };
    assert_int_equal(sherd__views_add(v, dir, NULL), 0);
}

/* Either file is reported with its name and place; with an index, also if it was truncated between
 * two records. */
static void a_truncated_file_is_reported(void **state)
{
    (void)state;
    sherd__views v;
    char want[160];
    a_conversation(&in);
    out.len = 0;
    spool_welcome(&out);
    const size_t n = in.len, m = out.len;
    cut_to(&v, n, m, true);
    assert_string_equal(v.nodes[0].trouble, "");
    assert_string_equal(v.nodes[0].about, "x");
    sherd__views_fini(&v);
    cut_to(&v, n - 3, m, true);
    snprintf(want, sizeof want, "node-1.sent is %zu bytes long and the index says %zu", n - 3, n);
    assert_non_null(strstr(v.nodes[0].trouble, want));
    assert_non_null(strstr(v.nodes[0].trouble, "node-1.sent cannot be read from byte "));
    assert_null(strstr(v.nodes[0].trouble, "received"));
    sherd__views_fini(&v);
    cut_to(&v, n, m - 3, true);
    snprintf(want, sizeof want, "node-1.received is %zu bytes long and the index says %zu", m - 3,
             m);
    assert_non_null(strstr(v.nodes[0].trouble, want));
    snprintf(want, sizeof want, "node-1.received cannot be read from byte 0 of %zu on", m - 3);
    assert_non_null(strstr(v.nodes[0].trouble, want));
    assert_null(strstr(v.nodes[0].trouble, "node-1.sent"));
    sherd__views_fini(&v);
    cut_to(&v, n, 0, true);
    assert_non_null(strstr(v.nodes[0].trouble, "node-1.received is 0 bytes long"));
    sherd__views_fini(&v);
    cut_to(&v, n, m - 3, false);
    assert_string_equal(v.nodes[0].trouble, want);
    sherd__views_fini(&v);
}

/* The length is the same and the reader accepts it: the bytes of a body are not checked when they
 * are read. */
static void an_edited_file_is_reported(void **state)
{
    (void)state;
    char text[400], sum[SHERD__DIGEST_TEXT];
    sherd__digest digest;
    a_conversation(&in);
    const char *dir = a_folder(&in);
    assert_int_equal(sherd__digest_bytes(&digest, in.bytes, in.len), SHERD_OK);
    sherd__digest_text(&digest, sum);
    int len = snprintf(text, sizeof text,
                       "{\"schema\": \"sherd/record/2\", \"complete\": true, \"peers\": "
                       "[{\"name\": \"node-1\", \"about\": \"x\", \"domain\": {\"number\": 0, "
                       "\"name\": \"d\"}, \"sent\": {\"bytes\": %zu, \"sha256\": \"%s\"}}]}",
                       in.len, sum);
    spool_file(dir, "index.json", text, (size_t)len);
    for (unsigned edited = 0; edited < 2; edited++) {
        sherd__views v = { 0 };
        if (edited) in.bytes[in.len - 1] ^= 1;
        spool_file(dir, "node-1.sent", in.bytes, in.len);
        assert_int_equal(sherd__views_add(&v, dir, NULL), 0);
        assert_int_equal(strstr(v.nodes[0].trouble, "node-1.sent was changed") != NULL, edited);
        sherd__views_fini(&v);
    }
}

/* A node whose connection broke during an answer, and which connected again. */
static void half_an_answer_before_a_new_greeting_is_not_reported(void **state)
{
    (void)state;
    sherd__views v = { 0 };
    static const uint8_t half[40];
    a_conversation(&in);
    const char *dir = a_folder(&in);
    spool_put(&out, JOB, 3, &right_info, right);
    memcpy(out.bytes + out.len, half, sizeof half);
    out.len += sizeof half;
    spool_welcome(&out);
    spool_file(dir, "node-1.received", out.bytes, out.len);
    assert_int_equal(sherd__views_add(&v, dir, NULL), 0);
    assert_string_equal(v.nodes[0].trouble, "");
    sherd__views_fini(&v);
}

/* Invalid lines are reported by number; valid ones are used. */
static void descriptions_of_codes_are_checked_line_by_line(void **state)
{
    (void)state;
    static const char good[] =
        "{\"job\": \"00000000deadbeef\", \"scheme\": \"share1\", \"blocks\": 3, \"masks\": 1, "
        "\"shares\": 7, \"rows\": 60, \"cols\": 5, \"part\": 20, \"panel\": 4, \"stays\": true, "
        "\"largest\": 9}";
    static const char *const edits[][2] = {
        { "deadbeef", "xyzdbeef" },
        { "share1", "plain" },
        { "\"blocks\": 3", "\"blocks\": 0" },
        { "\"blocks\": 3", "\"blocks\": 64" },
        { "\"part\": 20", "\"part\": 61" },
        { "\"part\": 20", "\"part\": 2" },
        { "\"panel\": 4", "\"panel\": 0" },
        { "\"rows\": 60", "\"rows\": -1" },
        { "true", "1" },
        { "\"shares\": 7, ", "" },
        { "}", "" },
    };
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        sherd__views v = { 0 };
        char text[1024], bad[400];
        const char *at = strstr(good, edits[i][0]);
        snprintf(bad, sizeof bad, "%.*s%s%s", (int)(at - good), good, edits[i][1],
                 at + strlen(edits[i][0]));
        int len = snprintf(text, sizeof text, "%s\n%s\n", bad, good);
        a_conversation(&in);
        const char *dir = a_folder(&in);
        spool_file(dir, "coded.jsonl", text, (size_t)len);
        spool_file(dir, "rows.npy", "no array", 8);
        assert_int_equal(sherd__views_add(&v, dir, NULL), 0);
        assert_int_equal(v.coded_len, 1);
        assert_non_null(strstr(v.trouble, "coded.jsonl:1 does not say how an operand is coded"));
        assert_non_null(strstr(v.trouble, "rows.npy holds no numbers of rows"));
        assert_null(v.order);
        const sherd__view_coded *c = sherd__view_coding(&v, 0xdeadbeef);
        assert_true(c && !c->both && c->blocks == 3 && c->part == 20 && c->stays &&
                    c->largest == 9);
        assert_null(sherd__view_coding(&v, 1));
        sherd__views_fini(&v);
    }
}

/* Writes the record of four nodes with these descriptions of their domains in the index. */
static int four_nodes(sherd__views *v, unsigned version, const char *const domain[4], sherd_diag *d)
{
    const char *dir = spool_folder();
    char text[1024], name[40];
    int len = snprintf(text, sizeof text,
                       "{\"schema\": \"sherd/record/%u\", \"complete\": true, "
                       "\"side\": \"coordinator\", \"peers\": [",
                       version);
    *v = (sherd__views){ 0 };
    a_conversation(&in);
    out.len = 0;
    spool_welcome(&out);
    for (unsigned i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "node-%u.sent", i + 1);
        spool_file(dir, name, in.bytes, in.len);
        snprintf(name, sizeof name, "node-%u.received", i + 1);
        spool_file(dir, name, out.bytes, out.len);
        len += snprintf(text + len, sizeof text - (size_t)len,
                        "%s{\"name\": \"node-%u\", \"key\": \"SHA256:%u\"%s%s, \"sent\": "
                        "{\"bytes\": %zu}}",
                        i ? ", " : "", i + 1, i, domain[i][0] ? ", \"domain\": " : "", domain[i],
                        in.len);
    }
    len += snprintf(text + len, sizeof text - (size_t)len, "]}");
    spool_file(dir, "index.json", text, (size_t)len);
    return sherd__views_add(v, dir, d);
}

#define A_DOMAIN "{\"number\": 7, \"name\": \"acme\"}"
#define B_DOMAIN "{\"number\": 2, \"name\": \"b\\n\"}"
#define C_DOMAIN "{\"number\": 9, \"name\": \"acme\"}"

static void nodes_of_one_domain_are_recognised_by_its_number(void **state)
{
    (void)state;
    sherd__views v;
    const char *const four[] = { A_DOMAIN, B_DOMAIN, A_DOMAIN, C_DOMAIN };
    assert_int_equal(four_nodes(&v, 2, four, NULL), 0);
    assert_true(v.len == 4 && v.domains_known && v.domains_len == 3);
    assert_true(v.nodes[0].domain == 1 && v.nodes[1].domain == 0);
    assert_true(v.nodes[2].domain == 1 && v.nodes[3].domain == 2);
    assert_string_equal(v.domains[0].name, "b?");
    assert_string_equal(v.domains[1].name, "acme");
    assert_true(v.domains[1].nodes == 2 && v.domains[2].nodes == 1);
    assert_string_equal(v.nodes[3].key, "SHA256:3");
    assert_true(v.nodes[0].shuffled);
    assert_string_equal(v.trouble, "");
    sherd__views_fini(&v);
}

static void without_domains_each_node_is_a_domain_of_its_own(void **state)
{
    (void)state;
    const char *const some[] = { A_DOMAIN, A_DOMAIN, "", A_DOMAIN };
    for (unsigned version = 1; version <= 2; version++) {
        sherd__views v;
        assert_int_equal(four_nodes(&v, version, some, NULL), 0);
        assert_true(!v.domains_known && v.domains_len == 4 && v.nodes[3].domain == 3);
        assert_string_equal(v.domains[1].name, "node-2");
        assert_non_null(strstr(v.trouble, "each node counts as one"));
        assert_true(v.nodes[0].shuffled == (version == 2));
        sherd__views_fini(&v);
    }
}

static void a_later_version_and_an_invalid_domain_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = { "{\"number\": -1, \"name\": \"a\"}", "{\"number\": 1}",
                                       "{\"number\": 1.5, \"name\": \"a\"}", "\"acme\"",
                                       "{\"number\": 1, \"name\": \"\"}" };
    sherd__views v;
    sherd_diag d = { 0 };
    assert_int_equal(four_nodes(&v, 3, (const char *const[]){ "", "", "", "" }, &d), SHERD_EFORMAT);
    assert_non_null(strstr(d.message, "sherd/record/3"));
    assert_non_null(strstr(d.hint, "version of sherd that wrote it"));
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(four_nodes(&v, 2, (const char *const[]){ A_DOMAIN, bad[i], "", "" }, NULL),
                         SHERD_EFORMAT);
        assert_int_equal(v.len, 0);
    }
}

static void folders_that_are_not_records_are_refused(void **state)
{
    (void)state;
    sherd__views v = { 0 };
    const char *dir = spool_folder();
    assert_int_equal(sherd__views_add(&v, "/tmp/there is no such folder", NULL), SHERD_EOPEN);
    assert_int_equal(sherd__views_add(&v, dir, NULL), SHERD_EFORMAT);
    spool_file(dir, "node-1.sent", "hello", 5);
    spool_file(dir, "node-1.received", "", 0);
    assert_int_equal(sherd__views_add(&v, dir, NULL), SHERD_EFORMAT);
    spool_file(dir, "index.json", "[]", 2);
    assert_int_equal(sherd__views_add(&v, dir, NULL), SHERD_EFORMAT);
    sherd__views_fini(&v);
}

/* A description may state any size: memory is allocated only for bytes that exist. */
static void a_block_that_states_too_large_a_size_takes_no_memory(void **state)
{
    (void)state;
    static spool s;
    sherd__views v = { 0 };
    sherd__adversary_view sight;
    sherd__fragment_info huge = { .origin = SHERD__HIDDEN,
                                  .dtype = SHERD_F64,
                                  .groups = 1,
                                  .rows = UINT64_C(1) << 31,
                                  .cols = 1 << 10,
                                  .len = 8 + (UINT64_C(1) << 44) };
    a_conversation(&in);
    s.len = 0;
    spool_hello(&s);
    spool_put(&s, JOB, 1, &right_info, right);
    spool_head(&s, JOB, 5, &huge);
    spool_task(&s, JOB, 1, 5, 1, NULL, 0, &result);
    assert_int_equal(sherd__views_add(&v, a_folder(&s), NULL), 0);
    assert_int_equal(sherd__adversary_view_of(&sight, &v.nodes[0], JOB, 100), 0);
    assert_int_equal(sight.cols, 0);
    sherd__views_fini(&v);
}

static void failed_allocations_are_reported(void **state)
{
    (void)state;
    char path[64];
    a_conversation(&in);
    strcpy(path, a_folder(&in));
    for (size_t n = 1; n < 2000; n++) {
        sherd__views v = { 0 };
        sherd__adversary_view s = { 0 };
        sherd__alloc_fail_nth(n);
        int err = sherd__views_add(&v, path, NULL);
        if (!err) err = sherd__adversary_view_of(&s, &v.nodes[0], JOB, 100);
        sherd__right_operand b = { 0 };
        if (!err) err = sherd__right_operand_of(&b, &v.nodes[0], JOB);
        bool reached = sherd__alloc_fail_nth(0) >= n;
        assert_int_equal(err, reached ? SHERD_ENOMEM : 0);
        sherd__right_operand_fini(&b);
        sherd__adversary_view_fini(&s);
        sherd__views_fini(&v);
        if (!reached) return;
    }
    fail();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_of_a_record_are_read),
        cmocka_unit_test(only_products_of_ones_are_left_out),
        cmocka_unit_test(a_nodes_own_record_is_recognised_by_the_direction_of_the_greeting),
        cmocka_unit_test(every_prefix_is_read_as_far_as_it_goes),
        cmocka_unit_test(any_byte_may_be_corrupted),
        cmocka_unit_test(a_new_session_after_a_broken_connection_is_found),
        cmocka_unit_test(an_index_cannot_name_files_outside_the_record),
        cmocka_unit_test(a_truncated_file_is_reported),
        cmocka_unit_test(an_edited_file_is_reported),
        cmocka_unit_test(half_an_answer_before_a_new_greeting_is_not_reported),
        cmocka_unit_test(descriptions_of_codes_are_checked_line_by_line),
        cmocka_unit_test(nodes_of_one_domain_are_recognised_by_its_number),
        cmocka_unit_test(without_domains_each_node_is_a_domain_of_its_own),
        cmocka_unit_test(a_later_version_and_an_invalid_domain_are_refused),
        cmocka_unit_test(folders_that_are_not_records_are_refused),
        cmocka_unit_test(a_block_that_states_too_large_a_size_takes_no_memory),
        cmocka_unit_test(failed_allocations_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
