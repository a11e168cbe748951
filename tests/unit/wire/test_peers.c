#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/alloc.h"
#include "wire/identity.h"

#define KEY_A "sha256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
#define KEY_B "sha256:AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE"

static int parse(sherd__peer *p, bool *found, const char *line, sherd_diag *d)
{
    *d = (sherd_diag){ 0 };
    return sherd__peer_parse(p, found, line, "nodes.txt:3", d);
}

static void a_line_with_all_fields_is_parsed(void **s)
{
    (void)s;
    sherd__peer p;
    sherd_diag d;
    bool found;
    assert_int_equal(parse(&p, &found,
                           " node-7.example:7000\tkey=" KEY_B
                           " name=seven domain=rack/2 weight=1.5 role=node # spare\r",
                           &d),
                     0);
    assert_true(found);
    assert_string_equal(p.host, "node-7.example");
    assert_int_equal(p.port, 7000);
    assert_true(p.has_key);
    assert_int_equal(p.key.sha256[31], 1);
    assert_string_equal(p.name, "seven");
    assert_string_equal(p.domain, "rack/2");
    assert_true(p.weight == 1.5);
    assert_string_equal(p.role, "node");
}

static void an_address_alone_gets_the_defaults(void **s)
{
    (void)s;
    sherd__peer p;
    sherd_diag d;
    bool found;
    assert_int_equal(parse(&p, &found, "[fe80::1%eth0]:65535", &d), 0);
    assert_string_equal(p.host, "fe80::1%eth0");
    assert_int_equal(p.port, 65535);
    assert_false(p.has_key);
    assert_true(p.weight == 1);
    assert_int_equal(parse(&p, &found, "a:1 weight=.5", &d), 0);
    assert_true(p.weight == 0.5);
    assert_string_equal(p.name, "");
    assert_string_equal(p.role, "");
    assert_int_equal(parse(&p, &found, "* key=" KEY_A, &d), 0);
    assert_string_equal(p.host, "*");
    assert_int_equal(p.port, 0);
}

static void blank_and_comment_lines_name_no_peer(void **s)
{
    (void)s;
    static const char *const lines[] = { "", " \t ", "# a:1", "  #", "\r" };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        sherd__peer p;
        sherd_diag d;
        bool found = true;
        assert_int_equal(parse(&p, &found, lines[i], &d), 0);
        assert_false(found);
    }
}

static void a_bad_line_is_reported_with_place_cause_and_hint(void **s)
{
    (void)s;
    static const struct {
        const char *line, *message, *hint;
    } bad[] = {
        { "node7", "\"node7\"", "host:port" },
        { "key=" KEY_A, "expected host:port", "host:port" },
        { "node7:", "port \"\"", "host:port" },
        { ":7", "host name", "host:port" },
        { "node7:0", "port \"0\"", "" },
        { "node7:65536", "port \"65536\"", "" },
        { "node7:007", "port \"007\"", "" },
        { "node7:7x", "port \"7x\"", "" },
        { "no_de!:7", "no_de!", "" },
        { "::1:7000", "host name or address", "[address]:port" },
        { "[::1]7000", "host name or address", "" },
        { "[::1:7000", "host name or address", "" },
        { "[::g]:7000", "host name or address", "" },
        { "[::1%]:7000", "host name or address", "" },
        { "a:1 nmae=x", "unknown word \"nmae=x\"", "did you mean name=?" },
        { "a:1 wieght=2", "unknown word", "did you mean weight=?" },
        { "a:1 KEY=" KEY_A, "unknown word", "did you mean key=?" },
        { "a:1 colour=red", "unknown word", "host:port" },
        { "a:1 name", "unknown word \"name\"", "did you mean name=?" },
        { "a:1 =x", "unknown word", "" },
        { "a:1 name=x name=y", "name= is given twice", "" },
        { "a:1 name=", "name \"\" is empty", "" },
        { "a:1 name=a#b", "name \"a#b\"", "" },
        { "a:1 name=\x1b[31m", "name \"?[31m\"", "" },
        { "a:1 key=sha256:abc", "key \"sha256:abc\"", "sherd" },
        { "a:1 role=noode", "role \"noode\"", "did you mean role=node?" },
        { "a:1 role=king", "role \"king\"", "" },
        { "a:1 weight=0", "weight \"0\"", "" },
        { "a:1 weight=0.0000001", "weight", "" },
        { "a:1 weight=-1", "weight", "" },
        { "a:1 weight=nan", "weight", "" },
        { "a:1 weight=1e3", "weight", "" },
        { "a:1 weight=1.", "weight", "" },
        { "a:1 weight=.", "weight", "" },
        { "a:1 weight=1000000", "weight", "" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sherd__peer p = { .port = 4242 };
        sherd_diag d;
        bool found = false;
        assert_int_equal(parse(&p, &found, bad[i].line, &d), SHERD_EFORMAT);
        assert_int_equal(p.port, 4242);
        assert_false(found);
        assert_ptr_equal(strstr(d.message, "nodes.txt:3: "), d.message);
        if (!strstr(d.message, bad[i].message) || !strstr(d.hint, bad[i].hint))
            fail_msg("%s -> %s (%s)", bad[i].line, d.message, d.hint);
    }
}

static void limits_of_length_are_exact(void **s)
{
    (void)s;
    char line[2000];
    sherd__peer p;
    sherd_diag d;
    bool found;
    for (int n = 60; n < 70; n++) {
        snprintf(line, sizeof line, "a:1 name=%0*d", n, 0);
        assert_int_equal(parse(&p, &found, line, &d), n <= 63 ? 0 : SHERD_EFORMAT);
    }
    for (int n = 250; n < 260; n++) {
        snprintf(line, sizeof line, "%0*d:1", n, 0);
        assert_int_equal(parse(&p, &found, line, &d), n <= 255 ? 0 : SHERD_EFORMAT);
    }
    for (int n = 1020; n < 1030; n++) {
        memset(line, ' ', sizeof line);
        memcpy(line, "a:1", 3);
        line[n] = '\0';
        assert_int_equal(parse(&p, &found, line, &d), n <= 1024 ? 0 : SHERD_EFORMAT);
    }
}

static void a_line_that_was_written_reads_back_equal(void **s)
{
    (void)s;
    static const char *const hosts[] = { "*", "127.0.0.1", "::1", "a.b-c", "fe80::2%lo" };
    static const char *const some_roles[] = { "", "node", "coordinator" };
    srand(7);
    for (int i = 0; i < 5000; i++) {
        sherd__peer p = { .weight = 1 }, q;
        char line[1024];
        sherd_diag d;
        bool found;
        snprintf(p.host, sizeof p.host, "%s", hosts[rand() % 5]);
        if (p.host[0] != '*') p.port = (uint16_t)(1 + rand() % 65535);
        p.has_key = rand() & 1;
        for (size_t k = 0; p.has_key && k < 32; k++) p.key.sha256[k] = (uint8_t)rand();
        if (rand() & 1) snprintf(p.name, sizeof p.name, "n%d", rand());
        if (rand() & 1) snprintf(p.domain, sizeof p.domain, "d/%d@x", rand());
        if (rand() & 1) p.weight = (double)(1 + rand() % 2000000000) / 1000000;
        snprintf(p.role, sizeof p.role, "%s", some_roles[rand() % 3]);
        int len = sherd__peer_format(&p, line, sizeof line);
        assert_int_equal(len, strlen(line));
        assert_int_equal(sherd__peer_format(&p, NULL, 0), len);
        assert_int_equal(parse(&q, &found, line, &d), 0);
        assert_true(found);
        assert_string_equal(p.host, q.host);
        assert_int_equal(p.port, q.port);
        assert_int_equal(p.has_key, q.has_key);
        if (p.has_key) assert_true(sherd__fingerprint_equal(&p.key, &q.key));
        assert_string_equal(p.name, q.name);
        assert_string_equal(p.domain, q.domain);
        assert_true(p.weight == q.weight);
        assert_string_equal(p.role, q.role);
    }
}

static void a_text_of_many_lines_is_parsed_and_searched(void **s)
{
    (void)s;
    static const char text[] = "# mine\na:1 key=" KEY_A "\n\nb:2\nc:3 key=" KEY_B " name=c";
    sherd__peers p;
    sherd__fingerprint key;
    assert_int_equal(sherd__peers_parse(&p, text, strlen(text), "nodes", NULL), 0);
    assert_int_equal(p.len, 3);
    assert_int_equal(sherd__fingerprint_parse(&key, KEY_B), 0);
    assert_string_equal(sherd__peers_find(&p, &key)->name, "c");
    key.sha256[5] ^= 1;
    assert_null(sherd__peers_find(&p, &key));
    sherd__peers_fini(&p);
    assert_int_equal(sherd__peers_parse(&p, "", 0, "nodes", NULL), 0);
    assert_int_equal(p.len, 0);
    sherd__peers_fini(&p);
}

static void two_lines_with_the_same_key_are_both_named(void **s)
{
    (void)s;
    static const char text[] = "a:1 key=" KEY_A "\nb:2 key=" KEY_B "\n#\nc:3 key=" KEY_A "\n";
    sherd__peers p = { NULL, 77 };
    sherd_diag d = { 0 };
    assert_int_equal(sherd__peers_parse(&p, text, strlen(text), "nodes", &d), SHERD_EFORMAT);
    assert_non_null(strstr(d.message, "lines 1 and 4"));
    assert_non_null(strstr(d.message, KEY_A));
    assert_int_equal(p.len, 77);
}

static void a_bad_line_in_a_file_is_named_by_number(void **s)
{
    (void)s;
    char path[] = "/tmp/sherd-peers-XXXXXX";
    static const char text[] = "a:1\nb:2\nc:3 nmae=x\n", zero[] = "a:1\nb\0:2\n";
    sherd__peers p;
    sherd_diag d = { 0 };
    int fd = mkstemp(path);
    assert_true(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
    assert_int_equal(sherd__peers_load(&p, path, &d), SHERD_EFORMAT);
    assert_non_null(strstr(d.message, path));
    assert_non_null(strstr(d.message, ":3: "));
    unlink(path);
    d = (sherd_diag){ 0 };
    assert_int_equal(sherd__peers_load(&p, path, &d), SHERD_EOPEN);
    d = (sherd_diag){ 0 };
    assert_int_equal(sherd__peers_load(&p, "/tmp", &d), SHERD_EFORMAT);
    d = (sherd_diag){ 0 };
    assert_int_equal(sherd__peers_parse(&p, zero, sizeof zero - 1, "z", &d), SHERD_EFORMAT);
    assert_non_null(strstr(d.message, "z:2: a zero byte"));
}

static void loopback_addresses_are_recognised_in_every_spelling(void **s)
{
    (void)s;
    static const struct {
        const char *host;
        bool loopback;
    } cases[] = {
        { "127.0.0.1", true },
        { "127.255.3.9", true },
        { "127.1", true },
        { "::1", true },
        { "0:0::0:1", true },
        { "::ffff:127.0.0.2", true },
        { "localhost", true },
        { "LocalHost", true },
        { "a.localhost", true },
        { "128.0.0.1", false },
        { "10.127.0.1", false },
        { "::ffff:10.0.0.1", false },
        { "::", true },
        { "fe80::1", false },
        { "0.0.0.0", true },
        { "0", true },
        { "::ffff:0.0.0.0", true },
        { "0.0.0.1", false },
        { "::2", false },
        { "localhosts", false },
        { "notlocalhost", false },
        { "localhost.example", false },
        { ".localhost", false },
        { "127.example", false },
        { "*", false },
        { "", false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sherd__peer p = { 0 };
        snprintf(p.host, sizeof p.host, "%s", cases[i].host);
        if (sherd__peer_loopback(&p) != cases[i].loopback) fail_msg("\"%s\"", cases[i].host);
    }
}

static void every_prefix_and_flipped_bit_is_handled(void **s)
{
    (void)s;
    static const char text[] = "[::1]:7000 key=" KEY_B " name=n domain=d weight=2.25 role=node\n"
                               "* key=" KEY_A " role=coordinator # us\n";
    char changed[sizeof text];
    sherd__peers p;
    for (size_t n = 0; n <= strlen(text); n++)
        if (sherd__peers_parse(&p, text, n, "x", NULL) == 0) sherd__peers_fini(&p);
    for (size_t bit = 0; bit < 8 * strlen(text); bit++) {
        memcpy(changed, text, sizeof text);
        changed[bit / 8] ^= (char)(1u << bit % 8);
        if (sherd__peers_parse(&p, changed, strlen(text), "x", NULL) == 0) sherd__peers_fini(&p);
    }
}

static void every_failed_allocation_is_reported(void **s)
{
    (void)s;
    char text[4000] = "";
    size_t len = 0, seen = 1;
    for (int i = 1; i <= 100; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "a:%d\n", i);
    for (size_t n = 1; seen >= n; n++) {
        sherd__peers p;
        sherd__alloc_fail_nth(n);
        int err = sherd__peers_parse(&p, text, len, "x", NULL);
        seen = sherd__alloc_fail_nth(0);
        assert_int_equal(err, seen >= n ? SHERD_ENOMEM : 0);
        if (!err) sherd__peers_fini(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_with_all_fields_is_parsed),
        cmocka_unit_test(an_address_alone_gets_the_defaults),
        cmocka_unit_test(blank_and_comment_lines_name_no_peer),
        cmocka_unit_test(a_bad_line_is_reported_with_place_cause_and_hint),
        cmocka_unit_test(limits_of_length_are_exact),
        cmocka_unit_test(a_line_that_was_written_reads_back_equal),
        cmocka_unit_test(a_text_of_many_lines_is_parsed_and_searched),
        cmocka_unit_test(two_lines_with_the_same_key_are_both_named),
        cmocka_unit_test(a_bad_line_in_a_file_is_named_by_number),
        cmocka_unit_test(loopback_addresses_are_recognised_in_every_spelling),
        cmocka_unit_test(every_prefix_and_flipped_bit_is_handled),
        cmocka_unit_test(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests_name("wire/peers", tests, NULL, NULL);
}
