/*
 * OpenSSL behind a custom BIO that reads directly from the received bytes and writes directly into
 * the buffer to be sent: BIO_s_mem would copy each byte once more and grow without bound. Two
 * output buffers alternate, so that encryption continues while the kernel still holds the other
 * one.
 *
 * Cipher suites: AES-128-GCM is preferred. `openssl speed -evp` with 16 KB pieces on one core of a
 * Xeon with VAES gives AES-128-GCM 4.2, AES-256-GCM 3.2 to 3.8, ChaCha20-Poly1305 2.8 GB/s; on a
 * Zen 5 it gives 5.8, 5.4 and 4.8. The order is the same on both, and X25519 and Ed25519 also
 * provide 128 bits of security. ChaCha20 is available for peers that prefer it.
 *
 * Nothing that arrives before the peer's key has been accepted is trusted. Names, dates, chains and
 * signatures of certificates are never examined; CertificateVerify proves possession of the key.
 * OpenSSL's error queue belongs to the thread, not to the connection. It is cleared before each
 * call, because otherwise a failure of one connection would be attributed to the next.
 */
#include "wire/tls.h"

#include <assert.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "wire/identity_keys.h"

#define RECORD_LEN SSL3_RT_MAX_PLAIN_LENGTH
#define RECORD_COST (RECORD_LEN + 256)
/* Room above the gathering limit, so that handshake flights, alerts and key updates always fit. */
#define SLACK (32u * 1024u)

struct sherd__tls_context {
    SSL_CTX *ssl;
    BIO_METHOD *bio;
    sherd__fingerprint ours;
    bool server;
    unsigned refs; /* one for the creator and one per connection; used on one thread */
};

typedef struct gather {
    uint8_t *bytes;
    size_t len;
} gather;

struct sherd__tls {
    SSL *ssl;
    sherd__tls_context *context;
    sherd__tls_policy policy;
    sherd__fingerprint pinned, peer_key;
    bool has_peer_key, denied, first_seen, ready, ended, said_end;
    char offered[40]; /* the protocol that the peer offers instead of ours */
    const uint8_t *in;
    size_t in_len;
    gather fill, flight; /* written by OpenSSL; being sent */
    size_t flight_sent;
    uint64_t since_rekey;
    sherd_diag failure;
};

/* Clears the error queue if it is not empty: ERR_clear_error always walks the whole queue, which
 * costs 2 % of the time of a busy connection. */
static void forget_errors(void)
{
    if (ERR_peek_error()) ERR_clear_error();
}

static int bio_read(BIO *b, char *out, size_t len, size_t *got)
{
    sherd__tls *t = BIO_get_data(b);
    size_t n = len < t->in_len ? len : t->in_len;
    BIO_clear_retry_flags(b);
    *got = n;
    if (n == 0) {
        BIO_set_retry_read(b);
        return 0;
    }
    memcpy(out, t->in, n);
    t->in += n;
    t->in_len -= n;
    return 1;
}

static int bio_write(BIO *b, const char *in, size_t len, size_t *taken)
{
    sherd__tls *t = BIO_get_data(b);
    BIO_clear_retry_flags(b);
    *taken = 0;
    /* the peer makes us reply but reads nothing */
    if (len > SHERD__TLS_GATHER + SLACK - t->fill.len) return 0;
    memcpy(t->fill.bytes + t->fill.len, in, len);
    t->fill.len += len;
    *taken = len;
    return 1;
}

static long bio_ctrl(BIO *b, int cmd, long num, void *ptr)
{
    (void)b;
    (void)num;
    (void)ptr;
    return cmd == BIO_CTRL_FLUSH;
}

/* Accepts or rejects the peer's key. A rejected peer receives the alert unknown_ca. */
static int judge_key(X509_STORE_CTX *store, void *arg)
{
    (void)arg;
    SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    sherd__tls *t = SSL_get_app_data(ssl);
    X509 *cert = X509_STORE_CTX_get0_cert(store);
    EVP_PKEY *key = cert ? X509_get0_pubkey(cert) : NULL;
    bool good = false;
    if (key && EVP_PKEY_is_a(key, "ED25519") && !sherd__fingerprint_of(&t->peer_key, key)) {
        t->has_peer_key = true;
        if (t->policy.pinned) good = sherd__fingerprint_equal(&t->peer_key, &t->pinned);
        else good = t->policy.allow && t->policy.allow(t->policy.ctx, &t->peer_key);
    }
    t->denied = !good;
    X509_STORE_CTX_set_error(store, good ? X509_V_OK : X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT);
    return good;
}

/* Copies at most n bytes, with '.' for unprintable ones; longer text ends in "...". */
static void printable(char *out, size_t n, const uint8_t *in, size_t len)
{
    size_t keep = len < n ? len : n;
    for (size_t i = 0; i < keep; i++) out[i] = in[i] >= 0x20 && in[i] < 0x7f ? (char)in[i] : '.';
    memcpy(out + keep, len > n ? "..." : "", len > n ? 4 : 1);
}

static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                           const unsigned char *in, unsigned in_len, void *arg)
{
    static const unsigned char ours[] = "\x07" SHERD__ALPN;
    sherd__tls *t = SSL_get_app_data(ssl);
    unsigned char *chosen;
    (void)arg;
    if (SSL_select_next_proto(&chosen, out_len, ours, sizeof ours - 1, in, in_len) ==
        OPENSSL_NPN_NEGOTIATED) {
        *out = chosen;
        return SSL_TLSEXT_ERR_OK;
    }
    size_t len = in_len > 0 ? in[0] : 0;
    printable(t->offered, 32, in + 1, len < in_len ? len : 0);
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* Rejects a client that offers no protocol name, because OpenSSL calls choose_protocol only if one
 * is offered. A client without TLS 1.3 gets the alert about its version first. */
static int require_protocol(SSL *ssl, int *alert, void *arg)
{
    const unsigned char *ext;
    size_t len;
    (void)arg;
    if (!SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_supported_versions, &ext, &len) ||
        SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_application_layer_protocol_negotiation, &ext,
                                  &len))
        return SSL_CLIENT_HELLO_SUCCESS;
    sherd__tls *t = SSL_get_app_data(ssl);
    memcpy(t->offered, "none", 5);
    *alert = SSL_AD_NO_APPLICATION_PROTOCOL;
    return SSL_CLIENT_HELLO_ERROR;
}

static bool set_rules(SSL_CTX *ssl, const sherd_identity *id, bool server)
{
    static const unsigned char ours[] = "\x07" SHERD__ALPN;
    SSL_CTX_set_options(ssl, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
                                 SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_security_level(ssl, 2); /* independent of openssl.cnf */
    SSL_CTX_set_max_cert_list(ssl, 4096);
    SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    SSL_CTX_set_cert_verify_callback(ssl, judge_key, NULL);
    if (server) {
        SSL_CTX_set_alpn_select_cb(ssl, choose_protocol, NULL);
        SSL_CTX_set_client_hello_cb(ssl, require_protocol, NULL);
        /* 0 means success here */
    } else if (SSL_CTX_set_alpn_protos(ssl, ours, sizeof ours - 1) != 0) {
        return false;
    }
    return SSL_CTX_set_min_proto_version(ssl, TLS1_3_VERSION) &&
           SSL_CTX_set_max_proto_version(ssl, TLS1_3_VERSION) &&
           SSL_CTX_set_ciphersuites(ssl, "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256") &&
           SSL_CTX_set1_groups_list(ssl, "X25519") && SSL_CTX_set1_sigalgs_list(ssl, "ed25519") &&
           SSL_CTX_set_num_tickets(ssl, 0) && SSL_CTX_set_max_early_data(ssl, 0) &&
           SSL_CTX_use_certificate(ssl, id->cert) == 1 && SSL_CTX_use_PrivateKey(ssl, id->key) == 1;
}

static BIO_METHOD *make_bio_method(void)
{
    BIO_METHOD *m = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "sherd");
    if (m && BIO_meth_set_read_ex(m, bio_read) && BIO_meth_set_write_ex(m, bio_write) &&
        BIO_meth_set_ctrl(m, bio_ctrl))
        return m;
    BIO_meth_free(m);
    return NULL;
}

int sherd__tls_context_new(sherd__tls_context **out, const sherd_identity *id, bool server,
                           sherd_diag *d)
{
    sherd__tls_context *c = sherd__calloc(1, sizeof *c);
    *out = NULL;
    if (!c) return sherd__fail_memory(d, "TLS");
    c->refs = 1;
    c->server = server;
    c->ours = *sherd__identity_fingerprint(id);
    ERR_clear_error();
    c->bio = make_bio_method();
    c->ssl = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());
    if (!c->bio || !c->ssl || !set_rules(c->ssl, id, server)) {
        const char *why = ERR_reason_error_string(ERR_peek_error());
        int err = sherd__fail(d, SHERD_EINTERNAL,
                              "check the installation of OpenSSL 3 and its openssl.cnf",
                              "TLS cannot be set up: %s", why ? why : "unknown reason");
        ERR_clear_error();
        sherd__tls_context_free(c);
        return err;
    }
    *out = c;
    return SHERD_OK;
}

sherd__tls_context *sherd__tls_context_share(sherd__tls_context *c)
{
    c->refs++;
    return c;
}

void sherd__tls_context_free(sherd__tls_context *c)
{
    if (!c || --c->refs > 0) return;
    SSL_CTX_free(c->ssl);
    BIO_meth_free(c->bio);
    sherd__free(c);
}

/* Records a failure that OpenSSL reported. */
static int fail_by(sherd__tls *t, int code, const char *hint, const char *message)
{
    ERR_clear_error();
    return sherd__fail(&t->failure, code, hint, "%s", message);
}

static int fail_denied(sherd__tls *t)
{
    char found[SHERD__FINGERPRINT_TEXT], pinned[SHERD__FINGERPRINT_TEXT];
    ERR_clear_error();
    if (!t->has_peer_key)
        return sherd__fail(&t->failure, SHERD_EAUTH, "make its key with `sherd keygen`",
                           "its certificate has no Ed25519 key");
    sherd__fingerprint_text(&t->peer_key, found);
    if (!t->policy.pinned)
        return sherd__fail(&t->failure, SHERD_EAUTH, "add its line to accept it",
                           "its key %s is not on the allow-list", found);
    sherd__fingerprint_text(&t->pinned, pinned);
    return sherd__fail(&t->failure, SHERD_EAUTH, "check its line in the node file",
                       "its key is %s, pinned is %s", found, pinned);
}

static int fail_refused(sherd__tls *t)
{
    char ours[SHERD__FINGERPRINT_TEXT];
    ERR_clear_error();
    sherd__fingerprint_text(&t->context->ours, ours);
    return sherd__fail(&t->failure, SHERD_EAUTH,
                       t->context->server ? "check our key in its node file"
                                          : "add our line to its allow-list",
                       "it does not accept our key %s", ours);
}

static int fail_version(sherd__tls *t)
{
    ERR_clear_error();
    if (t->offered[0])
        return sherd__fail(&t->failure, SHERD_EVERSION, "install the same sherd on both sides",
                           "it offers protocol \"%s\", expected \"" SHERD__ALPN "\"", t->offered);
    return sherd__fail(&t->failure, SHERD_EVERSION, "install the same sherd on both sides",
                       "it does not speak protocol \"" SHERD__ALPN "\"");
}

/* Converts an OpenSSL error to a message: our own decisions first, then OpenSSL's reason codes. */
static int fail_ssl(sherd__tls *t)
{
    char text[160];
    unsigned long first = ERR_peek_error();
    if (t->denied) return fail_denied(t);
    if (t->offered[0]) return fail_version(t);
    if (ERR_GET_REASON(first) == ERR_R_MALLOC_FAILURE)
        return fail_by(t, SHERD_ENOMEM, NULL, "out of memory for TLS");
    switch (ERR_GET_LIB(first) == ERR_LIB_SSL ? ERR_GET_REASON(first) : 0) {
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN: return fail_refused(t);
    case SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL: return fail_version(t);
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
        return fail_by(t, SHERD_EAUTH, "connect with a key from `sherd keygen`",
                       "it sends no Ed25519 certificate");
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
        return fail_by(t, SHERD_EAUTH, NULL, "it requires a certificate from us and received none");
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
    case SSL_R_WRONG_SSL_VERSION:
        return fail_by(t, SHERD_EAUTH, "connect with TLS 1.3", "it does not offer TLS 1.3");
    case SSL_R_NO_SHARED_CIPHER:
    case SSL_R_NO_SUITABLE_KEY_SHARE:
    case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
    case SSL_R_NO_SHARED_SIGNATURE_ALGORITHMS:
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
        return fail_by(t, SHERD_EAUTH,
                       "is the program at the other end sherd, of the same version?",
                       "it shares no TLS suite, group or Ed25519 with us");
    default: break;
    }
    const char *why = ERR_reason_error_string(first);
    snprintf(text, sizeof text, "%s: %s", t->ready ? "damaged TLS record" : "TLS handshake failed",
             why ? why : "unknown reason");
    return fail_by(t, SHERD_EFRAME, NULL, text);
}

/* Checks that the first bytes are a TLS handshake record or alert, and not another protocol. */
static int check_first_bytes(sherd__tls *t)
{
    char seen[40];
    if (t->first_seen || t->in_len == 0) return SHERD_OK;
    t->first_seen = true;
    if ((t->in[0] == SSL3_RT_HANDSHAKE || t->in[0] == SSL3_RT_ALERT) &&
        (t->in_len == 1 || t->in[1] == SSL3_VERSION_MAJOR))
        return SHERD_OK;
    printable(seen, 24, t->in, t->in_len);
    t->in_len = 0;
    return sherd__fail(&t->failure, SHERD_EFRAME, "is the program at the other end sherd?",
                       "it does not use TLS: \"%s\"", seen);
}

static int shake_hands(sherd__tls *t)
{
    const unsigned char *name;
    unsigned name_len;
    forget_errors();
    int r = SSL_do_handshake(t->ssl);
    if (r != 1) return SSL_get_error(t->ssl, r) == SSL_ERROR_WANT_READ ? SHERD_OK : fail_ssl(t);
    SSL_get0_alpn_selected(t->ssl, &name, &name_len);
    if (name_len != strlen(SHERD__ALPN) || memcmp(name, SHERD__ALPN, name_len) != 0)
        return fail_version(t);
    if (!t->has_peer_key || t->denied) return fail_denied(t);
    t->ready = true;
    return SHERD_OK;
}

int sherd__tls_new(sherd__tls **out, sherd__tls_context *c, const sherd__tls_policy *policy)
{
    sherd__tls *t = sherd__calloc(1, sizeof *t);
    BIO *bio = NULL;
    *out = NULL;
    if (!t) return SHERD_ENOMEM;
    t->context = sherd__tls_context_share(c);
    t->policy = *policy;
    if (policy->pinned) t->pinned = *policy->pinned;
    if (t->policy.rekey_bytes == 0) t->policy.rekey_bytes = SHERD__TLS_REKEY;
    t->fill.bytes = sherd__alloc(SHERD__TLS_GATHER + SLACK);
    t->flight.bytes = sherd__alloc(SHERD__TLS_GATHER + SLACK);
    forget_errors();
    t->ssl = SSL_new(c->ssl);
    bio = BIO_new(c->bio);
    if (!t->fill.bytes || !t->flight.bytes || !t->ssl || !bio) goto out;
    BIO_set_data(bio, t);
    BIO_set_init(bio, 1);
    SSL_set_bio(t->ssl, bio, bio);
    bio = NULL;
    SSL_set_app_data(t->ssl, t);
    if (c->server) SSL_set_accept_state(t->ssl);
    else SSL_set_connect_state(t->ssl);
    if (!c->server && shake_hands(t)) goto out;
    *out = t;
    return SHERD_OK;
out:
    BIO_free(bio);
    sherd__tls_free(t);
    forget_errors();
    return SHERD_ENOMEM;
}

void sherd__tls_free(sherd__tls *t)
{
    if (!t) return;
    SSL_free(t->ssl);
    sherd__tls_context_free(t->context);
    sherd__free(t->fill.bytes);
    sherd__free(t->flight.bytes);
    sherd__free(t);
}

void sherd__tls_feed(sherd__tls *t, const uint8_t *in, size_t len)
{
    assert(t->in_len == 0 || t->ended);
    t->in = in;
    t->in_len = len;
}

int sherd__tls_read(sherd__tls *t, uint8_t *out, size_t room, size_t *got)
{
    *got = 0;
    if (t->failure.code) return t->failure.code;
    if (t->ended) return SHERD_OK;
    int err = check_first_bytes(t);
    if (!err && !t->ready) err = shake_hands(t);
    if (err || !t->ready) return err;
    forget_errors();
    if (SSL_read_ex(t->ssl, out, room, got)) return SHERD_OK;
    *got = 0;
    switch (SSL_get_error(t->ssl, 0)) {
    case SSL_ERROR_WANT_READ: return SHERD_OK;
    case SSL_ERROR_ZERO_RETURN: t->ended = true; return SHERD_OK;
    default: return fail_ssl(t);
    }
}

bool sherd__tls_ready(const sherd__tls *t)
{
    return t->ready;
}

bool sherd__tls_ended(const sherd__tls *t)
{
    return t->ended;
}

const sherd__fingerprint *sherd__tls_peer_key(const sherd__tls *t)
{
    return t->has_peer_key ? &t->peer_key : NULL;
}

const sherd_diag *sherd__tls_failure(const sherd__tls *t)
{
    return &t->failure;
}

bool sherd__tls_room(const sherd__tls *t)
{
    return t->ready && !t->failure.code && !t->said_end &&
           t->fill.len + RECORD_COST <= SHERD__TLS_GATHER;
}

int sherd__tls_write(sherd__tls *t, const uint8_t *in, size_t len, size_t *taken)
{
    *taken = 0;
    if (t->failure.code) return t->failure.code;
    while (*taken < len && sherd__tls_room(t)) {
        size_t n = len - *taken < RECORD_LEN ? len - *taken : RECORD_LEN, done;
        forget_errors();
        if (!SSL_write_ex(t->ssl, in + *taken, n, &done)) return fail_ssl(t);
        *taken += done;
        t->since_rekey += done;
        if (t->since_rekey < t->policy.rekey_bytes) continue;
        t->since_rekey = 0;
        if (!SSL_key_update(t->ssl, SSL_KEY_UPDATE_NOT_REQUESTED)) return fail_ssl(t);
    }
    return SHERD_OK;
}

void sherd__tls_end(sherd__tls *t)
{
    if (!t->ready || t->failure.code || t->said_end) return;
    t->said_end = true;
    forget_errors();
    (void)SSL_shutdown(t->ssl);
    forget_errors();
}

size_t sherd__tls_pending(sherd__tls *t, const uint8_t **out)
{
    if (t->flight_sent == t->flight.len) {
        gather empty = t->flight;
        t->flight = t->fill;
        t->fill = empty;
        t->fill.len = 0;
        t->flight_sent = 0;
    }
    *out = t->flight.bytes + t->flight_sent;
    return t->flight.len - t->flight_sent;
}

void sherd__tls_sent(sherd__tls *t, size_t n)
{
    assert(n <= t->flight.len - t->flight_sent);
    t->flight_sent += n;
}
