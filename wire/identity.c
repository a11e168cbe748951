/*
 * Ed25519 keys through OpenSSL: PKCS#8 PEM files that only their owner may read, the fingerprint of
 * the public key, and a certificate for it. The certificate is generated in memory because TLS 1.3
 * in OpenSSL 3.0 does not support raw public keys (RFC 7250). Its names, dates and signature are
 * never examined: peers pin the SHA-256 of the SubjectPublicKeyInfo (wire/tls.c), and
 * CertificateVerify proves possession of the private key.
 *
 * This file trusts the memory of the process and OpenSSL. Key files are checked before they are
 * parsed: each must be a small regular file without permissions for group and others. The
 * passphrase callback always declines, so that an encrypted key never makes a daemon prompt on a
 * terminal.
 */
#include "wire/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/sha.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "wire/identity_keys.h"

#define KEY_FILE_MAX 16384
#define PREFIX "sha256:"
#define PREFIX_LEN 7
#define BASE64_LEN 43

void sherd__fingerprint_text(const sherd__fingerprint *fp, char out[SHERD__FINGERPRINT_TEXT])
{
    memcpy(out, PREFIX, PREFIX_LEN);
    sodium_bin2base64(out + PREFIX_LEN, SHERD__FINGERPRINT_TEXT - PREFIX_LEN, fp->sha256,
                      sizeof fp->sha256, sodium_base64_VARIANT_ORIGINAL_NO_PADDING);
}

int sherd__fingerprint_parse(sherd__fingerprint *fp, const char *text)
{
    sherd__fingerprint got;
    size_t len;
    if (strncmp(text, PREFIX, PREFIX_LEN) != 0 || strlen(text) != PREFIX_LEN + BASE64_LEN)
        return SHERD_EINVAL;
    if (sodium_base642bin(got.sha256, sizeof got.sha256, text + PREFIX_LEN, BASE64_LEN, NULL, &len,
                          NULL, sodium_base64_VARIANT_ORIGINAL_NO_PADDING) != 0 ||
        len != sizeof got.sha256)
        return SHERD_EINVAL;
    *fp = got;
    return SHERD_OK;
}

bool sherd__fingerprint_equal(const sherd__fingerprint *a, const sherd__fingerprint *b)
{
    return sodium_memcmp(a->sha256, b->sha256, sizeof a->sha256) == 0;
}

int sherd__fingerprint_of(sherd__fingerprint *out, EVP_PKEY *key)
{
    unsigned char *der = NULL;
    int len = i2d_PUBKEY(key, &der);
    if (len <= 0) return SHERD_ENOMEM;
    bool done = SHA256(der, (size_t)len, out->sha256) != NULL;
    OPENSSL_free(der);
    return done ? SHERD_OK : SHERD_EINTERNAL;
}

/* Deterministic: one key always gives the same bytes. The serial number is 1, and the certificate
 * never expires. */
static X509 *make_certificate(EVP_PKEY *key)
{
    X509 *cert = X509_new();
    if (!cert) return NULL;
    X509_NAME *name = X509_get_subject_name(cert);
    if (X509_set_version(cert, X509_VERSION_3) &&
        ASN1_INTEGER_set(X509_get_serialNumber(cert), 1) &&
        ASN1_TIME_set_string(X509_getm_notBefore(cert), "19700101000000Z") &&
        ASN1_TIME_set_string(X509_getm_notAfter(cert), "99991231235959Z") &&
        X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"sherd", -1, -1,
                                   0) &&
        X509_set_issuer_name(cert, name) && X509_set_pubkey(cert, key) &&
        X509_sign(cert, key, NULL) > 0)
        return cert;
    X509_free(cert);
    return NULL;
}

/* Takes ownership of the key, on failure too. */
static int wrap(sherd_identity **out, EVP_PKEY *key)
{
    size_t len = sizeof(*out)->public_key;
    sherd_identity *id = sherd__calloc(1, sizeof *id);
    int err = SHERD_ENOMEM;
    if (!id) {
        EVP_PKEY_free(key);
        return err;
    }
    id->key = key;
    id->cert = make_certificate(key);
    if (!id->cert) goto out;
    err = SHERD_EINTERNAL;
    if (EVP_PKEY_get_raw_public_key(key, id->public_key, &len) != 1 || len != 32) goto out;
    err = sherd__fingerprint_of(&id->fingerprint, key);
    if (err) goto out;
    sherd__fingerprint_text(&id->fingerprint, id->text);
    *out = id;
    return SHERD_OK;
out:
    sherd_identity_free(id);
    ERR_clear_error();
    return err;
}

int sherd_identity_new(sherd_identity **out, sherd_diag *d)
{
    *out = NULL;
    EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    if (!key) ERR_clear_error();
    int err = key ? wrap(out, key) : SHERD_ENOMEM;
    return err ? sherd__fail_to(d, err, "make a key") : SHERD_OK;
}

int sherd__identity_share(sherd_identity **out, const sherd_identity *id)
{
    *out = sherd__alloc(sizeof **out);
    if (!*out) return SHERD_ENOMEM;
    memcpy(*out, id, sizeof *id);
    EVP_PKEY_up_ref(id->key);
    X509_up_ref(id->cert);
    return SHERD_OK;
}

static int no_passphrase(char *buf, int size, int rwflag, void *asked)
{
    (void)buf;
    (void)size;
    (void)rwflag;
    *(bool *)asked = true;
    return -1;
}

/* Returns whether the text is lines with fingerprints (wire/peers.c) and not a key. */
static bool is_list(const char *text, size_t len)
{
    static const char word[] = "key=sha256:";
    return memmem(text, len, word, sizeof word - 1) && !memmem(text, len, "-----BEGIN", 10);
}

static int fail_list(const char *where, sherd_diag *d)
{
    return sherd__fail(d, SHERD_EKEY, "did you swap --key and the option for the list?",
                       "%s: a list of nodes or keys, expected a private key", where);
}

static int parse(sherd_identity **out, const char *pem, size_t len, const char *where,
                 sherd_diag *d)
{
    static const char hint[] = "make a key with `sherd keygen`";
    bool asked = false;
    *out = NULL;
    if (is_list(pem, len)) return fail_list(where, d);
    if (len > KEY_FILE_MAX)
        return sherd__fail(d, SHERD_EKEY, hint, "%s: %zu bytes, too long for a key", where, len);
    BIO *bio = BIO_new_mem_buf(pem, (int)len);
    if (!bio) return sherd__fail_memory(d, "%s", where);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, &asked);
    BIO_free(bio);
    ERR_clear_error();
    if (!key && asked)
        return sherd__fail(d, SHERD_EKEY, "remove the passphrase, or run `sherd keygen`",
                           "%s: the key is protected by a passphrase", where);
    if (!key)
        return sherd__fail(d, SHERD_EKEY, hint, "%s: not a private key in PKCS#8 PEM form", where);
    if (!EVP_PKEY_is_a(key, "ED25519")) {
        sherd__fail(d, SHERD_EKEY, hint, "%s: a key of type %s, expected Ed25519", where,
                    EVP_PKEY_get0_type_name(key) ? EVP_PKEY_get0_type_name(key) : "unknown");
        EVP_PKEY_free(key);
        return SHERD_EKEY;
    }
    int err = wrap(out, key);
    return err ? sherd__fail(d, err, NULL, "%s: %s", where, sherd_strerror(err)) : SHERD_OK;
}

int sherd__identity_parse(sherd_identity **out, const char *pem, size_t len, sherd_diag *d)
{
    return parse(out, pem, len, "key", d);
}

/* Returns whether there may be a key in the file. If not, its mode does not matter. */
static bool key_in(int fd)
{
    char text[KEY_FILE_MAX];
    ssize_t n = pread(fd, text, sizeof text, 0);
    bool key = n < 0 || memmem(text, (size_t)n, "-----BEGIN", 10);
    sodium_memzero(text, sizeof text);
    return key;
}

/* Opens and checks the file. Returns -1 on failure, with the error in *d and its code in *err. */
static int open_private(const char *path, sherd_diag *d, int *err)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        *err = sherd__fail(d, SHERD_EOPEN,
                           errno == ENOENT ? "make a key with `sherd keygen`"
                                           : "check the path and its permissions",
                           "%s: cannot open the key: %s", path, strerror(errno));
        return -1;
    }
    if (fstat(fd, &st) != 0)
        *err = sherd__fail(d, SHERD_EOPEN, NULL, "%s: %s", path, strerror(errno));
    else if (!S_ISREG(st.st_mode))
        *err = sherd__fail(d, SHERD_EKEY, "name the key's file", "%s: not a regular file", path);
    else if (st.st_mode & 077 && key_in(fd))
        *err = sherd__fail(d, SHERD_EKEY, "chmod 600 the file, or make a new key if others saw it",
                           "%s: mode %04o lets others use the key, expected 0600", path,
                           (unsigned)(st.st_mode & 07777));
    else return fd;
    close(fd);
    return -1;
}

int sherd_identity_load(sherd_identity **out, const char *path, sherd_diag *d)
{
    char pem[KEY_FILE_MAX + 1];
    size_t len = 0;
    ssize_t n = 0;
    int err = SHERD_OK, fd = open_private(path, d, &err);
    *out = NULL;
    if (fd < 0) return err;
    while (len < sizeof pem) {
        n = read(fd, pem + len, sizeof pem - len);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        len += (size_t)n;
    }
    if (n < 0)
        err = sherd__fail(d, SHERD_EOPEN, NULL, "%s: cannot read the key: %s", path,
                          strerror(errno));
    else err = parse(out, pem, len, path, d);
    close(fd);
    sodium_memzero(pem, sizeof pem);
    return err;
}

int sherd__identity_pem(const sherd_identity *id, char **pem, size_t *len)
{
    BIO *bio = BIO_new(BIO_s_secmem());
    char *text, *copy;
    int err = SHERD_ENOMEM;
    *pem = NULL;
    if (!bio || !PEM_write_bio_PKCS8PrivateKey(bio, id->key, NULL, NULL, 0, NULL, NULL)) goto out;
    long n = BIO_get_mem_data(bio, &text);
    if (n <= 0 || !(copy = sherd__alloc((size_t)n + 1))) goto out;
    memcpy(copy, text, (size_t)n);
    copy[n] = '\0';
    *pem = copy;
    *len = (size_t)n;
    err = SHERD_OK;
out:
    BIO_free(bio);
    if (err) ERR_clear_error();
    return err;
}

static bool write_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, bytes, len);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return false;
        bytes += n;
        len -= (size_t)n;
    }
    return true;
}

/* A new directory entry survives a power failure only after its directory has been synced. */
static void sync_folder_of(const char *path)
{
    char folder[4096];
    const char *slash = strrchr(path, '/');
    size_t len = slash ? (size_t)(slash - path) + (slash == path) : 1;
    if (len >= sizeof folder) return;
    memcpy(folder, slash ? path : ".", len);
    folder[len] = '\0';
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    (void)fsync(fd);
    close(fd);
}

int sherd_identity_save(const sherd_identity *id, const char *path, sherd_diag *d)
{
    char *pem;
    size_t len;
    int err = sherd__identity_pem(id, &pem, &len);
    if (err) return sherd__fail(d, err, NULL, "%s: %s", path, sherd_strerror(err));
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        err = sherd__fail(d, SHERD_EOPEN,
                          errno == EEXIST ? "a key is never overwritten: choose another name"
                                          : "check that the folder exists and may be written",
                          "%s: cannot make the key file: %s", path, strerror(errno));
        goto out;
    }
    /* fchmod is needed because the umask may have removed the owner's permissions too. */
    bool done = fchmod(fd, 0600) == 0 && write_all(fd, pem, len) && fsync(fd) == 0;
    int cause = errno;
    if (close(fd) != 0 && done) {
        done = false;
        cause = errno;
    }
    if (done) {
        sync_folder_of(path);
    } else {
        unlink(path);
        err = sherd__fail(d, SHERD_EIO, "free some space, or choose another place",
                          "%s: cannot write the key: %s", path, strerror(cause));
    }
out:
    sodium_memzero(pem, len);
    sherd__free(pem);
    return err;
}

const char *sherd_identity_key(const sherd_identity *id)
{
    return id->text;
}

const sherd__fingerprint *sherd__identity_fingerprint(const sherd_identity *id)
{
    return &id->fingerprint;
}

int sherd__identity_sign(const sherd_identity *id, const uint8_t *msg, size_t len, uint8_t sig[64])
{
    uint8_t made[64];
    size_t sig_len = sizeof made;
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    if (!ctx) return SHERD_ENOMEM;
    int err = SHERD_EINTERNAL;
    if (EVP_DigestSignInit(ctx, NULL, NULL, NULL, id->key) == 1 &&
        EVP_DigestSign(ctx, made, &sig_len, msg, len) == 1 && sig_len == sizeof made) {
        memcpy(sig, made, sizeof made);
        err = SHERD_OK;
    }
    EVP_MD_CTX_free(ctx);
    if (err) ERR_clear_error();
    return err;
}

void sherd__identity_public(const sherd_identity *id, uint8_t out[32])
{
    memcpy(out, id->public_key, 32);
}

bool sherd__identity_verify(const uint8_t public_key[32], const uint8_t *msg, size_t len,
                            const uint8_t sig[64])
{
    return sodium_init() >= 0 && crypto_sign_verify_detached(sig, msg, len, public_key) == 0;
}

void sherd__fingerprint_public(sherd__fingerprint *out, const uint8_t public_key[32])
{
    /* SubjectPublicKeyInfo of an Ed25519 key, up to the key (RFC 8410, section 4). */
    static const uint8_t head[12] = { 0x30, 0x2a, 0x30, 0x05, 0x06, 0x03,
                                      0x2b, 0x65, 0x70, 0x03, 0x21, 0x00 };
    uint8_t der[sizeof head + 32];
    memcpy(der, head, sizeof head);
    memcpy(der + sizeof head, public_key, 32);
    SHA256(der, sizeof der, out->sha256);
}

void sherd_identity_free(sherd_identity *id)
{
    if (!id) return;
    X509_free(id->cert);
    EVP_PKEY_free(id->key); /* OpenSSL wipes the private key */
    sherd__free(id);
}
