/* Identities and lists of peers as a program sees them: through sherd/identity.h alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/alloc.h"
#include "sherd/identity.h"

static void a_list_in_memory_gives_its_peers(void **state)
{
    (void)state;
    sherd_identity *id;
    sherd_peers *list;
    sherd_peer p = { .size = sizeof p };
    char text[600];
    assert_int_equal(sherd_identity_new(&id, NULL), 0);
    snprintf(text, sizeof text,
             "# nodes\n\n127.0.0.1:7001 key=%s name=alpha domain=here weight=2.5 role=node\n"
             "[2001:db8::1]:65535\n* role=coordinator",
             sherd_identity_key(id));
    assert_int_equal(sherd_peers_parse(&list, text, NULL, NULL), 0);
    assert_int_equal(sherd_peers_count(list), 3);
    assert_int_equal(sherd_peers_at(list, 0, &p, NULL), 0);
    assert_string_equal(p.host, "127.0.0.1");
    assert_string_equal(p.key, sherd_identity_key(id));
    assert_string_equal(p.name, "alpha");
    assert_string_equal(p.domain, "here");
    assert_true(p.port == 7001 && p.weight == 2.5 && p.role == SHERD_ROLE_NODE && p.loopback &&
                p.line == 3);
    assert_int_equal(sherd_peers_at(list, 1, &p, NULL), 0);
    assert_string_equal(p.host, "2001:db8::1");
    assert_string_equal(p.key, "");
    assert_true(p.port == 65535 && p.weight == 1 && p.role == SHERD_ROLE_NONE && !p.loopback &&
                p.line == 4);
    assert_int_equal(sherd_peers_at(list, 2, &p, NULL), 0);
    assert_string_equal(p.host, "*");
    assert_true(p.port == 0 && p.role == SHERD_ROLE_COORDINATOR && p.line == 5);
    assert_int_equal(sherd_peers_at(list, 3, &p, NULL), SHERD_EINVAL);
    p.size = 0;
    assert_int_equal(sherd_peers_at(list, 0, &p, NULL), SHERD_EINVAL);
    sherd_peers_free(list);
    sherd_identity_free(id);
}

static void a_faulty_list_is_named_with_its_line(void **state)
{
    (void)state;
    sherd_peers *list = (sherd_peers *)(uintptr_t)1;
    sherd_diag d = { 0 };
    assert_int_equal(sherd_peers_parse(&list, "\nhost:0\n", "allowed", &d), SHERD_EFORMAT);
    assert_null(list);
    assert_non_null(strstr(d.message, "allowed:2: "));
    d = (sherd_diag){ 0 };
    assert_int_equal(sherd_peers_load(&list, "/nowhere/nodes.txt", &d), SHERD_EOPEN);
    assert_null(list);
    assert_non_null(strstr(d.message, "/nowhere/nodes.txt"));
    sherd_peers_free(NULL);
}

static void a_file_gives_what_its_text_does(void **state)
{
    (void)state;
    char path[] = "/tmp/sherd-peers-XXXXXX";
    int fd = mkstemp(path);
    sherd_peers *list;
    sherd_peer p = { .size = sizeof p };
    assert_true(fd >= 0 && write(fd, "host:1 name=n\n", 14) == 14);
    close(fd);
    assert_int_equal(sherd_peers_load(&list, path, NULL), 0);
    assert_int_equal(sherd_peers_count(list), 1);
    assert_int_equal(sherd_peers_at(list, 0, &p, NULL), 0);
    assert_string_equal(p.name, "n");
    sherd_peers_free(list);
    unlink(path);
}

static void a_written_peer_reads_back(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "127.0.0.1:7001 key=sha256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA name=a domain=b "
        "weight=1.5 role=node",
        "[::1]:7001 role=coordinator", "* name=x", "a.example:65535"
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        sherd_peers *list;
        sherd_peer p = { .size = sizeof p };
        char line[SHERD_PEER_LINE_SIZE];
        size_t len = strlen(lines[i]);
        assert_int_equal(sherd_peers_parse(&list, lines[i], NULL, NULL), 0);
        assert_int_equal(sherd_peers_at(list, 0, &p, NULL), 0);
        sherd_peers_free(list);
        assert_int_equal(sherd_peer_write(&p, line, len + 1, NULL), 0);
        assert_string_equal(line, lines[i]);
        line[0] = 'x';
        assert_int_equal(sherd_peer_write(&p, line, len, NULL), SHERD_EINVAL);
        assert_int_equal(line[0], 'x');
    }
}

static void no_member_can_hold_another_word(void **state)
{
    (void)state;
    char line[SHERD_PEER_LINE_SIZE] = "as it was";
    static const sherd_peer plain = { .size = sizeof plain, .host = "h", .port = 7 };
    sherd_peer bad[10];
    for (size_t i = 0; i < 10; i++) bad[i] = plain;
    strcpy(bad[0].name, "a role=coordinator");
    strcpy(bad[1].domain, "b\n* name=c");
    strcpy(bad[2].host, "h:1 name=x");
    bad[3].port = 65536;
    bad[4].port = 0;
    strcpy(bad[5].key, "sha256:short");
    bad[6].role = (sherd_role)3;
    bad[7].weight = -1;
    memset(bad[8].name, 'n', sizeof bad[8].name);
    strcpy(bad[9].name, "a#");
    for (size_t i = 0; i < 10; i++) {
        sherd_diag d = { 0 };
        if (sherd_peer_write(&bad[i], line, sizeof line, &d) != SHERD_EFORMAT)
            fail_msg("peer %zu: \"%s\"", i, line);
        assert_true(d.message[0]);
        assert_string_equal(line, "as it was");
    }
    bad[0] = plain;
    bad[0].size = 0;
    assert_int_equal(sherd_peer_write(&bad[0], line, sizeof line, NULL), SHERD_EINVAL);
    assert_int_equal(sherd_peer_write(&plain, line, sizeof line, NULL), 0);
    assert_string_equal(line, "h:7");
}

/* Every allocation fails once: the call reports it and leaves nothing behind. */
static void without_memory_there_is_no_list(void **state)
{
    (void)state;
    size_t n = 0;
    int err;
    do {
        sherd_peers *list = NULL;
        sherd__alloc_fail_nth(++n);
        err = sherd_peers_parse(&list, "h:1\nh:2\n", NULL, NULL);
        sherd__alloc_fail_nth(0);
        assert_true(err ? err == SHERD_ENOMEM && !list : list != NULL);
        sherd_peers_free(list);
    } while (err);
    assert_true(n > 3);
}

static void a_key_has_its_fingerprint_as_text(void **state)
{
    (void)state;
    char path[] = "/tmp/sherd-key-XXXXXX";
    sherd_identity *id, *back;
    assert_non_null(mkdtemp(path));
    char file[64];
    snprintf(file, sizeof file, "%s/a.key", path);
    assert_int_equal(sherd_identity_new(&id, NULL), 0);
    assert_int_equal(strlen(sherd_identity_key(id)), 50);
    assert_int_equal(sherd_identity_save(id, file, NULL), 0);
    assert_int_equal(sherd_identity_save(id, file, NULL), SHERD_EOPEN);
    assert_int_equal(sherd_identity_load(&back, file, NULL), 0);
    assert_string_equal(sherd_identity_key(back), sherd_identity_key(id));
    sherd_identity_free(id);
    sherd_identity_free(back);
    sherd_identity_free(NULL);
    unlink(file);
    rmdir(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_in_memory_gives_its_peers),
        cmocka_unit_test(a_faulty_list_is_named_with_its_line),
        cmocka_unit_test(a_file_gives_what_its_text_does),
        cmocka_unit_test(a_written_peer_reads_back),
        cmocka_unit_test(no_member_can_hold_another_word),
        cmocka_unit_test(without_memory_there_is_no_list),
        cmocka_unit_test(a_key_has_its_fingerprint_as_text),
    };
    return cmocka_run_group_tests_name("wire/peer_list", tests, NULL, NULL);
}
