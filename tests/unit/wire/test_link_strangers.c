/*
 * Rejected peers: strangers are bare sockets and bare OpenSSL. Each receives the reason, and none
 * prevents permitted peers from connecting.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/bytes.h"
#include "tests/unit/wire/link_world.h"
#include "wire/identity_keys.h"

/* ---- rejected peers -------------------------------------------------------------------------- */

static void an_unknown_client_learns_that_its_key_is_not_allowed(void **s)
{
    (void)s;
    char key[SHERD__FINGERPRINT_TEXT];
    for (int i = 0; i < 20; i++) { /* a reset must never discard the alert */
        world w;
        link_world_open(&w);
        link_connect_as(&w, link_id_x, link_id_n);
        assert_true(link_run_until(&w, &w.c.closed_calls, 1, WAIT_MS));
        sherd__fingerprint_text(sherd__identity_fingerprint(link_id_x), key);
        assert_int_equal(w.c.err, SHERD_EAUTH);
        link_expect(w.c.text, "127.0.0.1:", key);
        link_expect(w.c.text, "127.0.0.1:", "add our line to its allow-list");
        assert_int_equal(w.c.ready, 0);
        assert_int_equal(w.accepted, 0);
        assert_int_equal(w.rejected, 1);
        assert_int_equal(w.reject_code, SHERD_EAUTH);
        link_expect(w.reason, "its key ", key);
        assert_memory_equal(w.from, "127.0.0.1:", 10);
        link_world_close(&w);
    }
}

static void a_node_with_another_key_is_refused(void **s)
{
    (void)s;
    char found[SHERD__FINGERPRINT_TEXT], pinned[SHERD__FINGERPRINT_TEXT];
    world w;
    link_world_open(&w);
    link_connect_as(&w, link_id_c, link_id_x);
    assert_true(link_run_until(&w, &w.c.closed_calls, 1, WAIT_MS));
    assert_true(link_run_until(&w, &w.rejected, 1, WAIT_MS));
    sherd__fingerprint_text(sherd__identity_fingerprint(link_id_n), found);
    sherd__fingerprint_text(sherd__identity_fingerprint(link_id_x), pinned);
    assert_int_equal(w.c.err, SHERD_EAUTH);
    link_expect(w.c.text, "127.0.0.1:", found);
    link_expect(w.c.text, "127.0.0.1:", pinned);
    assert_int_equal(w.reject_code, SHERD_EAUTH);
    link_expect(w.reason, "it does not accept our key", found);
    assert_int_equal(w.accepted, 0);
    link_world_close(&w);
}

static void the_accept_callback_may_reject_a_known_key(void **s)
{
    (void)s;
    world w;
    link_world_open(&w);
    w.turn_away = SHERD_EBUSY;
    link_connect_as(&w, link_id_c, link_id_n);
    assert_true(link_run_until(&w, &w.c.closed_calls, 1, WAIT_MS));
    assert_int_equal(w.c.err, SHERD_ECLOSED);
    link_expect(w.c.text,
                "127.0.0.1:", "during the handshake; is it a sherd node that allows our key?");
    assert_int_equal(w.reject_code, SHERD_EBUSY);
    assert_int_equal(w.accepted, 0);
    link_world_close(&w);
}

static void plain_text_is_rejected(void **s)
{
    (void)s;
    static const char words[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    world w;
    link_world_open(&w);
    int fd = link_raw_socket(sherd__listener_port(w.listener));
    assert_true(write(fd, words, sizeof words - 1) > 0);
    assert_true(link_run_until(&w, &w.rejected, 1, WAIT_MS));
    assert_int_equal(w.reject_code, SHERD_EFRAME);
    link_expect(w.reason, "it does not use TLS: \"GET / HTTP", "");
    link_run_until(&w, NULL, 0, 20);
    assert_true(link_is_closed(fd));
    close(fd);
    link_world_close(&w);
}

static void bytes_that_a_rejected_peer_still_sends_cause_no_reset(void **s)
{
    (void)s;
    static char words[1 << 20];
    char sink[16];
    world w;
    link_world_open(&w);
    memset(words, 'x', sizeof words);
    int fd = link_raw_socket(sherd__listener_port(w.listener));
    assert_true(write(fd, words, sizeof words) > (ssize_t)SHERD__LINK_IN);
    assert_true(link_run_until(&w, &w.rejected, 1, WAIT_MS));
    link_run_until(&w, NULL, 0, 50);
    assert_int_equal(read(fd, sink, sizeof sink), 0); /* a reset would discard the reason unread */
    close(fd);
    link_world_close(&w);
}

static void a_client_that_disconnects_early_is_reported(void **s)
{
    (void)s;
    world w;
    link_world_open(&w);
    close(link_raw_socket(sherd__listener_port(w.listener)));
    assert_true(link_run_until(&w, &w.rejected, 1, WAIT_MS));
    assert_int_equal(w.reject_code, SHERD_ECLOSED);
    link_expect(w.reason, "", "is it sherd, with our key in its node file?");
    link_world_close(&w);
}

static void a_silent_client_is_dropped_after_the_timeout(void **s)
{
    (void)s;
    world w;
    link_world_open(&w);
    sherd__listener_close(w.listener);
    assert_int_equal(link_listen(&w, 0, 150), 0);
    int fd = link_raw_socket(sherd__listener_port(w.listener));
    assert_int_equal(write(fd, "\x16\x03\x01", 3), 3); /* the first bytes of a handshake */
    assert_true(link_run_until(&w, &w.rejected, 1, WAIT_MS));
    assert_int_equal(w.reject_code, SHERD_ESILENT);
    link_expect(w.reason, "the TLS handshake was not done within 150 ms",
                "is the program at the other end sherd?");
    close(fd);
    link_world_close(&w);
}

/* Connects to the listener with an OpenSSL client as another program would set it up. */
static void stranger_calls(world *w, int max_version, const sherd_identity *id, const char *alpn)
{
    char sink[256];
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_max_proto_version(ctx, max_version);
    if (id) {
        assert_int_equal(SSL_CTX_use_certificate(ctx, id->cert), 1);
        assert_int_equal(SSL_CTX_use_PrivateKey(ctx, id->key), 1);
    }
    SSL *ssl = SSL_new(ctx);
    int fd = link_raw_socket(sherd__listener_port(w->listener));
    if (alpn) SSL_set_alpn_protos(ssl, (const unsigned char *)alpn, (unsigned)strlen(alpn));
    SSL_set_fd(ssl, fd);
    SSL_set_connect_state(ssl);
    for (int i = 0; i < 500 && !w->rejected; i++) {
        ERR_clear_error();
        SSL_read(ssl, sink, sizeof sink);
        link_run_until(w, &w->rejected, 1, 2);
    }
    ERR_clear_error();
    SSL_free(ssl);
    SSL_CTX_free(ctx);
    close(fd);
}

static void strangers_with_tls_receive_the_reason_of_the_refusal(void **s)
{
    (void)s;
    static const struct {
        int version;
        bool with_key;
        const char *alpn;
        int code;
        const char *words;
    } cases[] = {
        { TLS1_2_VERSION, true, "\x07sherd/1", SHERD_EAUTH, "TLS 1.3" },
        { TLS1_3_VERSION, false, "\x07sherd/1", SHERD_EAUTH, "no Ed25519 certificate" },
        { TLS1_3_VERSION, true, "\x07sherd/9", SHERD_EVERSION, "\"sherd/9\"" },
        { TLS1_3_VERSION, true, NULL, SHERD_EVERSION, "\"none\"" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        world w;
        link_world_open(&w);
        stranger_calls(&w, cases[i].version, cases[i].with_key ? link_id_c : NULL, cases[i].alpn);
        assert_int_equal(w.rejected, 1);
        assert_int_equal(w.reject_code, cases[i].code);
        link_expect(w.reason, "", cases[i].words);
        assert_int_equal(w.accepted, 0);
        link_world_close(&w);
    }
}

static void a_flood_of_half_open_connections_is_bounded_and_keeps_no_peer_out(void **s)
{
    (void)s;
    enum { FLOOD = 100, PLACES = 16 };
    int fd[FLOOD], alive = 0;
    world w;
    link_world_open(&w);
    sherd__listener_close(w.listener);
    assert_int_equal(link_listen(&w, PLACES, 0), 0);
    for (int i = 0; i < FLOOD; i++) fd[i] = link_raw_socket(sherd__listener_port(w.listener));
    assert_true(link_run_until(&w, &w.rejected, FLOOD - PLACES / 2, WAIT_MS));
    assert_int_equal(w.reject_code, SHERD_EBUSY);
    link_run_until(&w, NULL, 0, 300);
    for (int i = 0; i < FLOOD; i++) alive += !link_is_closed(fd[i]);
    assert_int_equal(alive, PLACES / 2);
    link_connect_as(&w, link_id_c, link_id_n); /* the oldest of them is dropped */
    assert_true(link_run_until(&w, &w.c.ready, 1, WAIT_MS));
    assert_int_equal(w.rejected, FLOOD - PLACES / 2 + 1);
    for (int i = 0; i < FLOOD; i++) close(fd[i]);
    link_world_close(&w);
}

/* Returns a socket connected from another address of this machine: 127.a.b.c. */
static int socket_from(const world *w, unsigned a, unsigned b, unsigned c)
{
    struct sockaddr_in from = { .sin_family = AF_INET,
                                .sin_addr = { htonl(127u << 24 | a << 16 | b << 8 | c) } };
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons(sherd__listener_port(w->listener)),
                              .sin_addr = { htonl(INADDR_LOOPBACK) } };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof from), 0);
    (void)!connect(fd, (struct sockaddr *)&to, sizeof to);
    return fd;
}

/* How the addresses in the allow-list begin; the permitted client's is 127.0.0.1. */
static const char *named_as;

static bool named_one(void *ctx, const char *address)
{
    (void)ctx;
    return strncmp(address, named_as, strlen(named_as)) == 0;
}

enum { MANY = 300, HALF_OPEN = 64 };

static void listen_with_names(world *w, const char *as)
{
    sherd__listen_options o = { .loop = &w->loop,
                                .identity = link_id_n,
                                .allow = link_allow,
                                .accept = link_on_accept,
                                .rejected = link_on_rejected,
                                .named = named_one,
                                .ctx = w };
    named_as = as;
    sherd__listener_close(w->listener);
    assert_int_equal(sherd__listener_new(&w->listener, &o, "127.0.0.1", 0, NULL), 0);
}

static int count_alive(const int *fd, int len)
{
    int alive = 0;
    for (int i = 0; i < len; i++) alive += !link_is_closed(fd[i]);
    return alive;
}

/* Floods the listener from the addresses that `from` gives, then connects a permitted client.
 * Returns how many connections of the flood are left. named: prefix of the addresses in the
 * allow-list, or NULL. */
static int flood(const char *named, int expected, void (*from)(int i, unsigned at[3]))
{
    int fd[MANY];
    world w;
    link_world_open(&w);
    if (named) listen_with_names(&w, named);
    for (int i = 0; i < MANY; i++) {
        unsigned at[3];
        from(i, at);
        fd[i] = socket_from(&w, at[0], at[1], at[2]);
        if (i % 50 == 49) link_run_until(&w, NULL, 0, 1);
    }
    assert_true(link_run_until(&w, &w.rejected, MANY - expected, 200)); /* too short for the oldest
                                                                         * to time out */
    link_connect_as(&w, link_id_c, link_id_n);
    assert_true(link_run_until(&w, &w.c.ready, 1, WAIT_MS));
    int alive = count_alive(fd, MANY);
    for (int i = 0; i < MANY; i++) close(fd[i]);
    link_world_close(&w);
    return alive;
}

static void one_address(int i, unsigned at[3])
{
    (void)i;
    at[0] = 0, at[1] = 7, at[2] = 1;
}

static void one_prefix(int i, unsigned at[3])
{
    at[0] = 0, at[1] = 7, at[2] = 1 + (unsigned)i % 200;
}

static void many_prefixes(int i, unsigned at[3])
{
    at[0] = 1 + (unsigned)i % 100, at[1] = 7, at[2] = 1;
}

static void a_host_with_300_handshakes_leaves_places_for_others(void **s)
{
    (void)s;
    assert_in_range(flood(NULL, HALF_OPEN / 2, one_address), HALF_OPEN / 2 - 1, HALF_OPEN / 2);
    assert_in_range(flood(NULL, HALF_OPEN - HALF_OPEN / 4, one_prefix),
                    HALF_OPEN - HALF_OPEN / 4 - 1, HALF_OPEN - HALF_OPEN / 4);
}

/* A few prefixes take all places: one of their connections is dropped at once. */
static void few_prefixes(int i, unsigned at[3])
{
    at[0] = 1 + (unsigned)i % 6, at[1] = 7, at[2] = 1 + (unsigned)i % 200;
}

static void a_connection_from_elsewhere_or_from_a_listed_address_displaces_a_flood(void **s)
{
    (void)s;
    assert_in_range(flood(NULL, HALF_OPEN, few_prefixes), HALF_OPEN - 1, HALF_OPEN);
    assert_in_range(flood("127.0.0.1:", HALF_OPEN - HALF_OPEN / 4, many_prefixes),
                    HALF_OPEN - HALF_OPEN / 4 - 1, HALF_OPEN - HALF_OPEN / 4);
}

/* An address does not prove a key: either the flood comes from listed addresses, too, or the
 * permitted client's address is not listed. */
static void a_flood_from_listed_addresses_leaves_places_for_others(void **s)
{
    (void)s;
    const int most = HALF_OPEN - HALF_OPEN / 4;
    assert_in_range(flood("127.0.", HALF_OPEN / 2, one_address), HALF_OPEN / 2 - 1, HALF_OPEN / 2);
    assert_in_range(flood("127.0.7.", HALF_OPEN / 2, one_address), HALF_OPEN / 2 - 1,
                    HALF_OPEN / 2);
    assert_in_range(flood("127.0.", most, one_prefix), most - 1, most);
    assert_in_range(flood("127.0.7.", most, one_prefix), most - 1, most);
    assert_in_range(flood("127.", most, few_prefixes), most - 1, most);
}

static void a_listed_address_does_not_shorten_the_handshakes_of_others(void **s)
{
    (void)s;
    enum { OTHERS = HALF_OPEN - HALF_OPEN / 4, NAMED = 40 };
    int other[OTHERS], named[NAMED];
    world w;
    link_world_open(&w);
    listen_with_names(&w, "127.0.7.1:");
    for (int i = 0; i < OTHERS; i++) other[i] = socket_from(&w, 1 + (unsigned)i / 2, 7, 1);
    for (int i = 0; i < NAMED; i++) named[i] = socket_from(&w, 0, 7, 1);
    assert_true(link_run_until(&w, &w.rejected, OTHERS + NAMED - HALF_OPEN, WAIT_MS));
    assert_int_equal(count_alive(other, OTHERS), OTHERS);
    assert_int_equal(count_alive(named, NAMED), HALF_OPEN - OTHERS);
    for (int i = 0; i < OTHERS; i++) close(other[i]);
    for (int i = 0; i < NAMED; i++) close(named[i]);
    link_world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unknown_client_learns_that_its_key_is_not_allowed),
        cmocka_unit_test(a_node_with_another_key_is_refused),
        cmocka_unit_test(the_accept_callback_may_reject_a_known_key),
        cmocka_unit_test(plain_text_is_rejected),
        cmocka_unit_test(bytes_that_a_rejected_peer_still_sends_cause_no_reset),
        cmocka_unit_test(a_client_that_disconnects_early_is_reported),
        cmocka_unit_test(a_silent_client_is_dropped_after_the_timeout),
        cmocka_unit_test(strangers_with_tls_receive_the_reason_of_the_refusal),
        cmocka_unit_test(a_flood_of_half_open_connections_is_bounded_and_keeps_no_peer_out),
        cmocka_unit_test(a_host_with_300_handshakes_leaves_places_for_others),
        cmocka_unit_test(a_connection_from_elsewhere_or_from_a_listed_address_displaces_a_flood),
        cmocka_unit_test(a_flood_from_listed_addresses_leaves_places_for_others),
        cmocka_unit_test(a_listed_address_does_not_shorten_the_handshakes_of_others),
    };
    return cmocka_run_group_tests_name("wire/link_strangers", tests, link_keys_make,
                                       link_keys_free);
}
