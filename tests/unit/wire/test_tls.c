/* Both sides in memory: two of ours, and one of ours with OpenSSL set up by another program. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>
#include "core/alloc.h"
#include "wire/identity_keys.h"
#include "wire/tls.h"

static sherd_identity *id_a, *id_b, *id_c; /* client, server, stranger */

static int make_keys(void **s)
{
    (void)s;
    return sherd_identity_new(&id_a, NULL) || sherd_identity_new(&id_b, NULL) ||
           sherd_identity_new(&id_c, NULL);
}

static int free_keys(void **s)
{
    (void)s;
    sherd_identity_free(id_a);
    sherd_identity_free(id_b);
    sherd_identity_free(id_c);
    return 0;
}

static bool allow_key(void *ctx, const sherd__fingerprint *key)
{
    return sherd__fingerprint_equal(ctx, key);
}

static sherd__tls *client(const sherd_identity *id, const sherd_identity *pinned, uint64_t rekey)
{
    sherd__tls_context *c;
    sherd__tls *t;
    sherd__tls_policy p = { .pinned = sherd__identity_fingerprint(pinned), .rekey_bytes = rekey };
    assert_int_equal(sherd__tls_context_new(&c, id, false, NULL), 0);
    assert_int_equal(sherd__tls_new(&t, c, &p), 0);
    sherd__tls_context_free(c);
    return t;
}

static sherd__tls *server(const sherd_identity *id, const sherd_identity *allowed, uint64_t rekey)
{
    sherd__tls_context *c;
    sherd__tls *t;
    sherd__tls_policy p = { .allow = allow_key,
                            .rekey_bytes = rekey,
                            .ctx = (void *)(uintptr_t)sherd__identity_fingerprint(allowed) };
    assert_int_equal(sherd__tls_context_new(&c, id, true, NULL), 0);
    assert_int_equal(sherd__tls_new(&t, c, &p), 0);
    sherd__tls_context_free(c);
    return t;
}

/* Moves at most `chunk` ciphertext bytes at a time from one side to the other; appends the
 * decrypted bytes to out. Returns the first error of the receiver. */
static int carry(sherd__tls *from, sherd__tls *to, size_t chunk, uint8_t *out, size_t *out_len)
{
    const uint8_t *p;
    uint8_t plain[16384];
    size_t n, got;
    while ((n = sherd__tls_pending(from, &p)) > 0) {
        size_t most = chunk ? 1 + (size_t)rand() % chunk : n;
        if (n > most) n = most;
        sherd__tls_feed(to, p, n);
        do {
            int err = sherd__tls_read(to, plain, sizeof plain, &got);
            if (err) return err;
            if (out) memcpy(out + *out_len, plain, got), *out_len += got;
            else assert_int_equal(got, 0);
        } while (got);
        sherd__tls_sent(from, n);
    }
    return 0;
}

static void shake(sherd__tls *a, sherd__tls *b, size_t chunk)
{
    for (int i = 0; i < 3; i++) {
        assert_int_equal(carry(a, b, chunk, NULL, NULL), 0);
        assert_int_equal(carry(b, a, chunk, NULL, NULL), 0);
    }
    assert_true(sherd__tls_ready(a));
    assert_true(sherd__tls_ready(b));
}

static void pinned_keys_connect_and_each_side_sees_the_others_key(void **s)
{
    (void)s;
    sherd__tls *a = client(id_a, id_b, 0), *b = server(id_b, id_a, 0);
    assert_false(sherd__tls_ready(a));
    assert_false(sherd__tls_room(a));
    shake(a, b, 0);
    assert_true(
        sherd__fingerprint_equal(sherd__tls_peer_key(a), sherd__identity_fingerprint(id_b)));
    assert_true(
        sherd__fingerprint_equal(sherd__tls_peer_key(b), sherd__identity_fingerprint(id_a)));
    sherd__tls_free(a);
    sherd__tls_free(b);
}

static void a_server_with_another_key_is_reported_with_both_keys(void **s)
{
    (void)s;
    char found[SHERD__FINGERPRINT_TEXT], pinned[SHERD__FINGERPRINT_TEXT];
    sherd__tls *a = client(id_a, id_c, 0), *b = server(id_b, id_a, 0);
    assert_int_equal(carry(a, b, 0, NULL, NULL), 0);
    assert_int_equal(carry(b, a, 0, NULL, NULL), SHERD_EAUTH);
    sherd__fingerprint_text(sherd__identity_fingerprint(id_b), found);
    sherd__fingerprint_text(sherd__identity_fingerprint(id_c), pinned);
    assert_non_null(strstr(sherd__tls_failure(a)->message, found));
    assert_non_null(strstr(sherd__tls_failure(a)->message, pinned));
    assert_false(sherd__tls_ready(a));
    size_t taken = 1;
    assert_int_equal(sherd__tls_write(a, (const uint8_t *)"x", 1, &taken), SHERD_EAUTH);
    assert_int_equal(taken, 0);
    assert_int_equal(carry(a, b, 0, NULL, NULL), SHERD_EAUTH);
    assert_false(sherd__tls_ready(b));
    assert_non_null(strstr(sherd__tls_failure(b)->message, found));
    sherd__tls_free(a);
    sherd__tls_free(b);
}

static void a_client_that_is_not_allowed_is_refused_with_an_alert(void **s)
{
    (void)s;
    char ours[SHERD__FINGERPRINT_TEXT];
    uint8_t sink[64];
    size_t len = 0;
    sherd__tls *a = client(id_c, id_b, 0), *b = server(id_b, id_a, 0);
    assert_int_equal(carry(a, b, 0, NULL, NULL), 0);
    assert_int_equal(carry(b, a, 0, NULL, NULL), 0);
    assert_int_equal(carry(a, b, 0, NULL, NULL), SHERD_EAUTH);
    sherd__fingerprint_text(sherd__identity_fingerprint(id_c), ours);
    assert_non_null(strstr(sherd__tls_failure(b)->message, ours));
    assert_non_null(strstr(sherd__tls_failure(b)->message, "allow-list"));
    assert_false(sherd__tls_ready(b));
    assert_int_equal(carry(b, a, 0, sink, &len), SHERD_EAUTH);
    assert_non_null(strstr(sherd__tls_failure(a)->message, ours));
    assert_non_null(strstr(sherd__tls_failure(a)->hint, "allow-list"));
    sherd__tls_free(a);
    sherd__tls_free(b);
}

static void without_an_allow_callback_every_client_is_refused(void **s)
{
    (void)s;
    sherd__tls_context *c;
    sherd__tls *a = client(id_a, id_b, 0), *b;
    assert_int_equal(sherd__tls_context_new(&c, id_b, true, NULL), 0);
    assert_int_equal(sherd__tls_new(&b, c, &(sherd__tls_policy){ 0 }), 0);
    sherd__tls_context_free(c);
    assert_int_equal(carry(a, b, 0, NULL, NULL), 0);
    assert_int_equal(carry(b, a, 0, NULL, NULL), 0);
    assert_int_equal(carry(a, b, 0, NULL, NULL), SHERD_EAUTH);
    sherd__tls_free(a);
    sherd__tls_free(b);
}

/* Sends len bytes in both directions at once, in random writes and random chunks, and compares. */
static void converse(sherd__tls *a, sherd__tls *b, size_t len, size_t chunk)
{
    sherd__tls *side[2] = { a, b };
    uint8_t *sent[2], *came[2];
    size_t at[2] = { 0, 0 }, came_len[2] = { 0, 0 };
    for (int i = 0; i < 2; i++) {
        sent[i] = malloc(len + 1);
        came[i] = malloc(len + 1);
        for (size_t k = 0; k < len; k++) sent[i][k] = (uint8_t)rand();
    }
    while (came_len[0] < len || came_len[1] < len)
        for (int i = 0; i < 2; i++) {
            size_t n = (size_t)rand() % 70000, taken;
            if (n > len - at[i]) n = len - at[i];
            assert_int_equal(sherd__tls_write(side[i], sent[i] + at[i], n, &taken), 0);
            at[i] += taken;
            assert_int_equal(carry(side[i], side[!i], chunk, came[i], &came_len[i]), 0);
        }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(came_len[i], len);
        assert_memory_equal(sent[i], came[i], len);
        free(sent[i]);
        free(came[i]);
    }
}

static void large_data_can_be_sent_in_both_directions_at_once(void **s)
{
    (void)s;
    sherd__tls *a = client(id_a, id_b, 0), *b = server(id_b, id_a, 0);
    shake(a, b, 0);
    converse(a, b, 0, 0);
    converse(a, b, 1, 0);
    converse(a, b, 3 << 20, 0);
    sherd__tls_free(a);
    sherd__tls_free(b);
}

/* For zeros as plain text, no byte of the ciphertext is more frequent than expected by chance. */
static void the_ciphertext_looks_random_for_any_plain_text(void **s)
{
    (void)s;
    static const uint8_t zeros[1 << 16];
    uint32_t count[256] = { 0 };
    size_t total = 0;
    sherd__tls *a = client(id_a, id_b, 0), *b = server(id_b, id_a, 0);
    shake(a, b, 0);
    for (size_t at = 0, taken = 1; at < sizeof zeros && taken; at += taken) {
        const uint8_t *p;
        assert_int_equal(sherd__tls_write(a, zeros + at, sizeof zeros - at, &taken), 0);
        size_t n = sherd__tls_pending(a, &p);
        for (size_t i = 0; i < n; i++) count[p[i]]++;
        total += n;
        sherd__tls_sent(a, n);
    }
    assert_true(total >= sizeof zeros);
    for (int i = 0; i < 256; i++)
        if (count[i] > total / 128) fail_msg("%u of %zu bytes are 0x%02x", count[i], total, i);
    sherd__tls_free(a);
    sherd__tls_free(b);
}

static void ciphertext_may_arrive_in_chunks_of_any_size(void **s)
{
    (void)s;
    static const size_t chunks[] = { 1, 2, 7, 100, 5000, 17000, 40000 };
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
        sherd__tls *a = client(id_a, id_b, 0), *b = server(id_b, id_a, 0);
        shake(a, b, chunks[i]);
        converse(a, b, chunks[i] < 10 ? 40000 : 400000, chunks[i]);
        sherd__tls_free(a);
        sherd__tls_free(b);
    }
}

static void key_updates_during_transfer_are_transparent(void **s)
{
    (void)s;
    sherd__tls *a = client(id_a, id_b, 30000), *b = server(id_b, id_a, 50000);
    shake(a, b, 0);
    converse(a, b, 1 << 20, 3000);
    converse(a, b, 1 << 20, 0);
    sherd__tls_free(a);
    sherd__tls_free(b);
}

static void writing_stops_while_nothing_is_sent_and_continues_afterwards(void **s)
{
    (void)s;
    static uint8_t block[4 << 20];
    const uint8_t *p;
    size_t taken, all = 0, n;
    sherd__tls *a = client(id_a, id_b, 0), *b = server(id_b, id_a, 0);
    shake(a, b, 0);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(sherd__tls_write(a, block, sizeof block, &taken), 0);
        all += taken;
        n = sherd__tls_pending(a, &p); /* one buffer being sent, one being filled, then full */
        assert_true(n > 0 && n <= SHERD__TLS_GATHER);
    }
    assert_true(all <= 2 * SHERD__TLS_GATHER);
    assert_false(sherd__tls_room(a));
    sherd__tls_sent(a, n);
    assert_true(sherd__tls_pending(a, &p) > 0);
    assert_true(sherd__tls_room(a));
    sherd__tls_free(a);
    sherd__tls_free(b);
}

static void pending_bytes_do_not_move_while_more_is_written(void **s)
{
    (void)s;
    static uint8_t block[100000], copy[200000];
    const uint8_t *p, *q;
    size_t taken;
    sherd__tls *a = client(id_a, id_b, 0), *b = server(id_b, id_a, 0);
    shake(a, b, 0);
    assert_int_equal(sherd__tls_write(a, block, sizeof block, &taken), 0);
    size_t n = sherd__tls_pending(a, &p);
    memcpy(copy, p, n);
    assert_int_equal(sherd__tls_write(a, block, sizeof block, &taken), 0);
    assert_int_equal(sherd__tls_pending(a, &q), n);
    assert_ptr_equal(p, q);
    assert_memory_equal(p, copy, n);
    sherd__tls_free(a);
    sherd__tls_free(b);
}

static void the_end_is_sent_and_received(void **s)
{
    (void)s;
    uint8_t out[16];
    size_t len = 0, taken;
    sherd__tls *a = client(id_a, id_b, 0), *b = server(id_b, id_a, 0);
    shake(a, b, 0);
    assert_int_equal(sherd__tls_write(a, (const uint8_t *)"bye", 3, &taken), 0);
    sherd__tls_end(a);
    sherd__tls_end(a);
    assert_false(sherd__tls_room(a));
    assert_int_equal(carry(a, b, 1, out, &len), 0);
    assert_int_equal(len, 3);
    assert_true(sherd__tls_ended(b));
    assert_false(sherd__tls_ended(a));
    sherd__tls_free(a);
    sherd__tls_free(b);
}

static void a_flipped_bit_anywhere_ends_the_connection(void **s)
{
    (void)s;
    for (int i = 0; i < 60; i++) {
        uint8_t *wire, plain[64];
        const uint8_t *p;
        size_t n, got, taken;
        sherd__tls *a = client(id_a, id_b, 0), *b = server(id_b, id_a, 0);
        shake(a, b, 0);
        assert_int_equal(sherd__tls_write(a, (const uint8_t *)"a secret of a job", 17, &taken), 0);
        n = sherd__tls_pending(a, &p);
        wire = malloc(n);
        memcpy(wire, p, n);
        size_t bit = (size_t)rand() % (8 * (n - 5)) + 40; /* after the record header */
        wire[bit / 8] ^= (uint8_t)(1 << bit % 8);
        sherd__tls_feed(b, wire, n);
        assert_int_equal(sherd__tls_read(b, plain, sizeof plain, &got), SHERD_EFRAME);
        assert_int_equal(got, 0);
        assert_int_equal(sherd__tls_read(b, plain, sizeof plain, &got), SHERD_EFRAME);
        free(wire);
        sherd__tls_free(a);
        sherd__tls_free(b);
    }
}

/* A stranger: OpenSSL with memory BIOs, as another program would set it up. */
typedef struct stranger {
    SSL_CTX *ctx;
    SSL *ssl;
} stranger;

static int take_any(X509_STORE_CTX *store, void *arg)
{
    (void)store;
    (void)arg;
    return 1;
}

static int say_h2(SSL *ssl, const unsigned char **out, unsigned char *len, const unsigned char *in,
                  unsigned in_len, void *arg)
{
    (void)ssl;
    (void)in;
    (void)in_len;
    (void)arg;
    *out = (const unsigned char *)"h2";
    *len = 2;
    return SSL_TLSEXT_ERR_OK;
}

static stranger meet(bool is_server, const sherd_identity *id, const char *alpn)
{
    stranger x;
    x.ctx = SSL_CTX_new(TLS_method());
    SSL_CTX_set_verify(x.ctx, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_cert_verify_callback(x.ctx, take_any, NULL);
    if (id) {
        assert_int_equal(SSL_CTX_use_certificate(x.ctx, id->cert), 1);
        assert_int_equal(SSL_CTX_use_PrivateKey(x.ctx, id->key), 1);
    }
    if (alpn && is_server) SSL_CTX_set_alpn_select_cb(x.ctx, say_h2, NULL);
    x.ssl = SSL_new(x.ctx);
    if (alpn && !is_server)
        SSL_set_alpn_protos(x.ssl, (const unsigned char *)alpn, (unsigned)strlen(alpn));
    SSL_set_bio(x.ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    if (is_server) SSL_set_accept_state(x.ssl);
    else SSL_set_connect_state(x.ssl);
    return x;
}

/* Runs both sides until ours fails or is ready; returns its result. */
static int face(sherd__tls *t, stranger *x)
{
    uint8_t plain[16384];
    const uint8_t *p;
    char *q;
    size_t got;
    int err = 0;
    for (int i = 0; i < 6; i++) {
        size_t n = sherd__tls_pending(t, &p);
        if (n) BIO_write(SSL_get_rbio(x->ssl), p, (int)n);
        sherd__tls_sent(t, n);
        ERR_clear_error();
        SSL_read(x->ssl, plain, sizeof plain);
        long len = BIO_get_mem_data(SSL_get_wbio(x->ssl), &q);
        if (len > 0) {
            sherd__tls_feed(t, (uint8_t *)q, (size_t)len);
            do {
                err = sherd__tls_read(t, plain, sizeof plain, &got);
            } while (!err && got);
            if (err) return err;
            BIO_reset(SSL_get_wbio(x->ssl));
        }
    }
    return 0;
}

static void part(stranger *x, sherd__tls *t)
{
    SSL_free(x->ssl);
    SSL_CTX_free(x->ctx);
    sherd__tls_free(t);
}

static void expect(sherd__tls *t, int err, int code, const char *words)
{
    if (err != code || !strstr(sherd__tls_failure(t)->message, words))
        fail_msg("%d: %s", err, sherd__tls_failure(t)->message);
    assert_false(sherd__tls_ready(t));
}

static void a_stranger_with_the_same_settings_and_an_allowed_key_is_accepted(void **s)
{
    (void)s;
    sherd__tls *t = server(id_b, id_a, 0);
    stranger x = meet(false, id_a, "\x02h2\x07sherd/1");
    assert_int_equal(face(t, &x), 0);
    assert_true(sherd__tls_ready(t));
    assert_false(SSL_session_reused(x.ssl));
    assert_int_equal(SSL_version(x.ssl), TLS1_3_VERSION);
    assert_string_equal(SSL_get_cipher(x.ssl), "TLS_AES_128_GCM_SHA256");
    part(&x, t);
}

static void a_client_without_certificate_is_refused(void **s)
{
    (void)s;
    sherd__tls *t = server(id_b, id_a, 0);
    stranger x = meet(false, NULL, "\x07sherd/1");
    expect(t, face(t, &x), SHERD_EAUTH, "no Ed25519 certificate");
    part(&x, t);
}

static void tls_1_2_is_refused_on_both_sides(void **s)
{
    (void)s;
    sherd__tls *t = server(id_b, id_a, 0);
    stranger x = meet(false, id_a, NULL);
    SSL_set_max_proto_version(x.ssl, TLS1_2_VERSION);
    expect(t, face(t, &x), SHERD_EAUTH, "TLS 1.3");
    part(&x, t);
    t = client(id_a, id_b, 0);
    x = meet(true, id_b, NULL);
    SSL_set_max_proto_version(x.ssl, TLS1_2_VERSION);
    expect(t, face(t, &x), SHERD_EAUTH, "TLS 1.3");
    part(&x, t);
}

static void another_protocol_name_is_a_version_error(void **s)
{
    (void)s;
    sherd__tls *t = server(id_b, id_a, 0);
    stranger x = meet(false, id_a, "\x07sherd/2\x02h2");
    expect(t, face(t, &x), SHERD_EVERSION, "\"sherd/2\"");
    part(&x, t);
    t = server(id_b, id_a, 0);
    x = meet(false, id_a, NULL);
    expect(t, face(t, &x), SHERD_EVERSION, "\"none\"");
    part(&x, t);
    t = client(id_a, id_b, 0);
    x = meet(true, id_b, NULL);
    expect(t, face(t, &x), SHERD_EVERSION, "sherd/1");
    part(&x, t);
}

static void a_server_that_answers_with_a_protocol_we_did_not_offer_is_refused(void **s)
{
    (void)s;
    sherd__tls *t = client(id_a, id_b, 0);
    stranger x = meet(true, id_b, "h2");
    int err = face(t, &x);
    assert_true(err == SHERD_EFRAME || err == SHERD_EVERSION);
    assert_false(sherd__tls_ready(t));
    part(&x, t);
}

static void plain_text_is_quoted_and_refused(void **s)
{
    (void)s;
    static const char *const words[] = { "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "SSH-2.0-x\r\n",
                                         "S" };
    for (size_t i = 0; i < 6; i++) {
        uint8_t out[16];
        size_t got;
        sherd__tls *t = i < 3 ? server(id_b, id_a, 0) : client(id_a, id_b, 0);
        const char *w = words[i % 3];
        sherd__tls_feed(t, (const uint8_t *)w, strlen(w));
        assert_int_equal(sherd__tls_read(t, out, sizeof out, &got), SHERD_EFRAME);
        assert_non_null(strstr(sherd__tls_failure(t)->message, "it does not use TLS: \""));
        assert_memory_equal(strchr(sherd__tls_failure(t)->message, '"') + 1, w,
                            strlen(w) < 14 ? strlen(w) - (strlen(w) > 2 ? 2 : 0) : 14);
        sherd__tls_free(t);
    }
}

static void a_failed_connection_does_not_affect_others(void **s)
{
    (void)s;
    sherd__tls *a = client(id_a, id_b, 0), *b = server(id_b, id_a, 0);
    sherd__tls *bad = server(id_b, id_a, 0);
    uint8_t out[16];
    size_t got, len = 0;
    shake(a, b, 0);
    for (int i = 0; i < 4; i++) ERR_raise(ERR_LIB_SSL, SSL_R_BAD_LENGTH);
    sherd__tls_feed(bad, (const uint8_t *)"\x16\x03\x01\x00\x05junk!", 10);
    assert_true(sherd__tls_read(bad, out, sizeof out, &got) < 0);
    assert_int_equal(sherd__tls_write(a, (const uint8_t *)"x", 1, &got), 0);
    for (int i = 0; i < 4; i++) ERR_raise(ERR_LIB_SSL, SSL_R_BAD_LENGTH);
    assert_int_equal(carry(a, b, 0, out, &len), 0);
    assert_int_equal(len, 1);
    sherd__tls_free(a);
    sherd__tls_free(b);
    sherd__tls_free(bad);
}

static void a_damaged_or_truncated_first_flight_is_handled(void **s)
{
    (void)s;
    uint8_t flight[4096], out[16];
    const uint8_t *p;
    size_t got, n;
    sherd__tls *a = client(id_a, id_b, 0);
    n = sherd__tls_pending(a, &p);
    assert_true(n < sizeof flight);
    for (size_t i = 0; i < 300; i++) {
        sherd__tls *b = server(id_b, id_a, 0);
        size_t bit = (size_t)rand() % (8 * n), len = i % 3 ? n : (size_t)rand() % n;
        memcpy(flight, p, n);
        if (i % 3) flight[bit / 8] ^= (uint8_t)(1 << bit % 8);
        sherd__tls_feed(b, flight, len);
        int err = sherd__tls_read(b, out, sizeof out, &got);
        assert_true(err == 0 || err == SHERD_EFRAME || err == SHERD_EAUTH || err == SHERD_EVERSION);
        assert_false(sherd__tls_ready(b));
        sherd__tls_free(b);
    }
    sherd__tls_free(a);
}

static void every_failed_allocation_is_reported(void **s)
{
    (void)s;
    size_t seen = 1;
    for (size_t n = 1; seen >= n; n++) {
        sherd__tls_context *c = NULL;
        sherd__tls *t = NULL;
        sherd__tls_policy p = { .pinned = sherd__identity_fingerprint(id_b) };
        sherd__alloc_fail_nth(n);
        int err = sherd__tls_context_new(&c, id_a, false, NULL);
        if (!err) err = sherd__tls_new(&t, c, &p);
        seen = sherd__alloc_fail_nth(0);
        assert_int_equal(err, seen >= n ? SHERD_ENOMEM : 0);
        sherd__tls_free(t);
        sherd__tls_context_free(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pinned_keys_connect_and_each_side_sees_the_others_key),
        cmocka_unit_test(a_server_with_another_key_is_reported_with_both_keys),
        cmocka_unit_test(a_client_that_is_not_allowed_is_refused_with_an_alert),
        cmocka_unit_test(without_an_allow_callback_every_client_is_refused),
        cmocka_unit_test(large_data_can_be_sent_in_both_directions_at_once),
        cmocka_unit_test(the_ciphertext_looks_random_for_any_plain_text),
        cmocka_unit_test(ciphertext_may_arrive_in_chunks_of_any_size),
        cmocka_unit_test(key_updates_during_transfer_are_transparent),
        cmocka_unit_test(writing_stops_while_nothing_is_sent_and_continues_afterwards),
        cmocka_unit_test(pending_bytes_do_not_move_while_more_is_written),
        cmocka_unit_test(the_end_is_sent_and_received),
        cmocka_unit_test(a_flipped_bit_anywhere_ends_the_connection),
        cmocka_unit_test(a_stranger_with_the_same_settings_and_an_allowed_key_is_accepted),
        cmocka_unit_test(a_client_without_certificate_is_refused),
        cmocka_unit_test(tls_1_2_is_refused_on_both_sides),
        cmocka_unit_test(another_protocol_name_is_a_version_error),
        cmocka_unit_test(a_server_that_answers_with_a_protocol_we_did_not_offer_is_refused),
        cmocka_unit_test(plain_text_is_quoted_and_refused),
        cmocka_unit_test(a_failed_connection_does_not_affect_others),
        cmocka_unit_test(a_damaged_or_truncated_first_flight_is_handled),
        cmocka_unit_test(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests_name("wire/tls", tests, make_keys, free_keys);
}
