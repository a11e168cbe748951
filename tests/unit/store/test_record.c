#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/alloc.h"
#include "store/record.h"
#include "tests/unit/store/scratch.h"

static int fresh(void **s)
{
    (void)s;
    scratch_clear();
    return 0;
}

static void say(sherd__record_peer *p, bool out, const char *text)
{
    sherd__record_tap(p, out, (const uint8_t *)text, strlen(text));
}

static void assert_file(const char *name, const char *text)
{
    size_t len;
    uint8_t *got = scratch_read(scratch_path(name), &len);
    assert_non_null(got);
    assert_int_equal(len, strlen(text));
    assert_string_equal((char *)got, text);
    free(got);
}

/* Each code is written at once, one a line; the audit's reader has its own test. */
static void codes_are_written_as_given(void **s)
{
    (void)s;
    static const char program[] =
        "import json, os\n"
        "l = [json.loads(x) for x in open('rec/coded.jsonl')]\n"
        "assert [x['job'] for x in l] == ['fedcba9876543210', '0000000000000001'], l\n"
        "assert l[0] == {'job': 'fedcba9876543210', 'scheme': 'share', 'code': 'inner',\n"
        "                'blocks': 3, 'masks': 2,\n"
        "                'shares': 9, 'rows': 60000, 'cols': 784, 'part': 128, 'panel': 43,\n"
        "                'stays': True, 'largest': 65280, 'right': 0}\n"
        "assert l[1]['stays'] is False and l[1]['right'] == 65535\n"
        "assert os.stat('rec/coded.jsonl').st_mode & 0o777 == 0o600\n";
    sherd__recording *r;
    sherd__record_coded c = { .job = UINT64_C(0xfedcba9876543210),
                              .scheme = "share",
                              .code = "inner",
                              .blocks = 3,
                              .masks = 2,
                              .shares = 9,
                              .rows = 60000,
                              .cols = 784,
                              .part = 128,
                              .panel = 43,
                              .stays = true,
                              .largest = 65280 };
    assert_int_equal(sherd__record_new(&r, scratch_path("rec"), "coordinator", NULL), 0);
    assert_int_equal(sherd__record_coding(r, &c, NULL), 0);
    c.job = 1;
    c.stays = false;
    c.right = 65535;
    assert_int_equal(sherd__record_coding(r, &c, NULL), 0);
    assert_int_equal(scratch_python(program), 0);
    assert_int_equal(sherd__record_end(r, NULL), 0);
}

static void messages_of_both_directions_are_in_the_folder(void **s)
{
    (void)s;
    static const char program[] =
        "import hashlib, json\n"
        "i = json.load(open('rec/index.json'))\n"
        "assert i['schema'] == 'sherd/record/2' and i['side'] == 'coordinator' and i['complete']\n"
        "assert [p['name'] for p in i['peers']] == ['node-0', 'node-1']\n"
        "assert i['peers'][0]['about'] == '127.0.0.1:7000 ?'\n"
        "assert i['peers'][0]['key'] == 'SHA256:abc' and 'key' not in i['peers'][1]\n"
        "assert i['peers'][0]['domain'] == {'number': 3, 'name': 'acme ?'}\n"
        "assert 'domain' not in i['peers'][1]\n"
        "for p in i['peers']:\n"
        "    for side in 'sent', 'received':\n"
        "        data = open('rec/' + p[side]['file'], 'rb').read()\n"
        "        assert len(data) == p[side]['bytes']\n"
        "        assert hashlib.sha256(data).hexdigest() == p[side]['sha256']\n";
    sherd__recording *r;
    sherd__record_peer *p, *q;
    struct stat st;
    assert_int_equal(sherd__record_new(&r, scratch_path("rec"), "coordinator", NULL), 0);
    assert_int_equal(sherd__record_peer_add(&p, r, "node-0", NULL), 0);
    assert_int_equal(sherd__record_peer_add(&q, r, "node-1", NULL), 0);
    assert_int_equal(sherd__record_peer_about(p, "127.0.0.1:7000 \xff"), 0);
    assert_int_equal(sherd__record_peer_key(p, "SHA256:abc"), 0);
    assert_int_equal(sherd__record_peer_domain(p, 2, "other"), 0);
    assert_int_equal(sherd__record_peer_domain(p, 3, "acme \xff"), 0); /* the last value counts */
    say(p, true, "HELLO");
    say(q, true, "hello");
    say(p, false, "WELCOME");
    say(p, true, "");
    say(p, true, "PUT");
    assert_file("rec/node-0.sent", "HELLOPUT"); /* before the end: nothing waits in a buffer */
    sherd__record_peer_end(q);
    say(q, true, "too late");
    assert_int_equal(sherd__record_end(r, NULL), 0);
    assert_file("rec/node-0.received", "WELCOME");
    assert_file("rec/node-1.sent", "hello");
    assert_file("rec/node-1.received", "");
    assert_int_equal(stat(scratch_path("rec"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    assert_int_equal(stat(scratch_path("rec/node-0.sent"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    size_t len;
    uint8_t *readme = scratch_read(scratch_path("rec/README"), &len);
    assert_non_null(strstr((char *)readme, "enough to rebuild your data"));
    free(readme);
    assert_int_equal(scratch_python(program), 0);
}

static void an_empty_folder_is_used_and_closed_to_other_users(void **s)
{
    (void)s;
    sherd__recording *r;
    struct stat st;
    assert_int_equal(mkdir(scratch_path("rec"), 0755), 0);
    assert_int_equal(sherd__record_new(&r, scratch_path("rec"), "node", NULL), 0);
    assert_int_equal(sherd__record_end(r, NULL), 0);
    assert_int_equal(stat(scratch_path("rec"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
}

static void a_folder_in_use_a_file_and_a_missing_parent_are_refused(void **s)
{
    (void)s;
    assert_int_equal(mkdir(scratch_path("full"), 0755), 0);
    scratch_write("full/thesis.txt", "x", 1);
    scratch_write("file", "x", 1);
    const char *bad[] = { scratch_path("full"), scratch_path("file"), scratch_path("no/rec"), "" };
    for (size_t i = 0; i < 4; i++) {
        sherd__recording *r;
        sherd_diag d = { 0 };
        assert_int_equal(sherd__record_new(&r, bad[i], "node", &d), SHERD_EOPEN);
        assert_null(r);
        assert_true(d.message[0] && d.hint[0]);
        if (i == 0) assert_non_null(strstr(d.message, "thesis.txt"));
    }
    assert_file("full/thesis.txt", "x");
}

static void peers_of_any_name_get_distinct_files(void **s)
{
    (void)s;
    static const char *const names[] = { "n", "n", "n-2",        "../../etc/passwd", ".hidden",
                                         "",  "",  "[::1]:7001", "\xff\xff" };
    char longest[300];
    sherd__recording *r;
    sherd__record_peer *p;
    memset(longest, 'x', 299);
    longest[299] = '\0';
    assert_int_equal(sherd__record_new(&r, scratch_path("rec"), "node", NULL), 0);
    for (size_t i = 0; i < 9; i++) {
        assert_int_equal(sherd__record_peer_add(&p, r, names[i], NULL), 0);
        say(p, true, "x");
    }
    assert_int_equal(sherd__record_peer_add(&p, r, longest, NULL), 0);
    assert_int_equal(sherd__record_peer_add(&p, r, longest, NULL), 0);
    assert_int_equal(sherd__record_end(r, NULL), 0);
    assert_int_equal(scratch_entries(), 1);
    assert_file("rec/n-2.sent", "x");
    assert_file("rec/_._.._etc_passwd.sent", "x");
}

static int record_past_limit(void)
{
    static const uint8_t block[60000];
    struct rlimit lim = { 100000, 100000 };
    sherd__recording *r;
    sherd__record_peer *p, *q;
    sherd_diag d = { 0 };
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &lim)) return 1;
    if (sherd__record_new(&r, scratch_path("rec"), "node", NULL)) return 2;
    if (sherd__record_peer_add(&p, r, "c", NULL)) return 3;
    for (int i = 0; i < 5; i++) sherd__record_tap(p, false, block, sizeof block);
    if (sherd__record_error(r, &d) != SHERD_EIO) return 4;
    if (sherd__record_peer_add(&q, r, "other", NULL)) return 7;
    say(q, true, "after the hole");
    struct stat other, c;
    if (stat(scratch_path("rec/other.sent"), &other) || other.st_size != 0) return 8;
    if (stat(scratch_path("rec/c.received"), &c) || c.st_size < 60000) return 5;
    sherd_diag e = { 0 };
    if (sherd__record_end(r, &e) != SHERD_EIO || !e.message[0]) return 6;
    return 0;
}

static void a_full_disk_is_reported_and_the_index_says_so(void **s)
{
    (void)s;
    pid_t child = fork();
    if (child == 0) _exit(record_past_limit());
    int status = 0;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    size_t len;
    uint8_t *index = scratch_read(scratch_path("rec/index.json"), &len);
    assert_non_null(index);
    assert_non_null(strstr((char *)index, "\"complete\": false"));
    free(index);
}

static void every_failed_allocation_is_reported(void **s)
{
    (void)s;
    for (size_t n = 1, reached = 1; reached; n++) {
        sherd__recording *r;
        sherd__record_peer *p;
        scratch_clear();
        sherd__alloc_fail_nth(n);
        int err = sherd__record_new(&r, scratch_path("rec"), "node", NULL);
        if (!err) {
            err = sherd__record_peer_add(&p, r, "c", NULL);
            if (!err) err = sherd__record_peer_about(p, "x");
            if (!err) err = sherd__record_peer_key(p, "k");
            if (!err) err = sherd__record_peer_domain(p, 0, "d");
            int end = sherd__record_end(r, NULL);
            if (!err) err = end;
        }
        reached = sherd__alloc_fail_nth(0) >= n;
        assert_int_equal(err, reached ? SHERD_ENOMEM : 0);
    }
}

#define T(name) cmocka_unit_test_setup(name, fresh)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(codes_are_written_as_given),
        T(messages_of_both_directions_are_in_the_folder),
        T(an_empty_folder_is_used_and_closed_to_other_users),
        T(a_folder_in_use_a_file_and_a_missing_parent_are_refused),
        T(peers_of_any_name_get_distinct_files),
        T(a_full_disk_is_reported_and_the_index_says_so),
        T(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests_name("store/record", tests, scratch_setup, scratch_teardown);
}
