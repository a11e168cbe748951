#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/alloc.h"
#include "wire/identity.h"

/* RFC 8410: the key of section 10.3, and its public half of section 10.1. */
static const char rfc8410[] = "-----BEGIN PRIVATE KEY-----\n"
                              "MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n"
                              "-----END PRIVATE KEY-----\n";
static const uint8_t rfc8410_public[32] = { 0x19, 0xbf, 0x44, 0x09, 0x69, 0x84, 0xcd, 0xfe,
                                            0x85, 0x41, 0xba, 0xc1, 0x67, 0xdc, 0x3b, 0x96,
                                            0xc8, 0x50, 0x86, 0xaa, 0x30, 0xb6, 0xb6, 0xcb,
                                            0x0c, 0x5c, 0x38, 0xad, 0x70, 0x31, 0x66, 0xe1 };

static char dir[] = "/tmp/sherd-identity-XXXXXX";

static const char *in_dir(const char *name)
{
    static char path[4][256];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", dir, name);
    return path[turn];
}

static const char *write_file(const char *name, const void *bytes, size_t len, mode_t mode)
{
    const char *path = in_dir(name);
    unlink(path);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, len, f), len);
    fclose(f);
    assert_int_equal(chmod(path, mode), 0);
    return path;
}

static int make_dir(void **s)
{
    (void)s;
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **s)
{
    (void)s;
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    return system(command);
}

static void a_known_key_has_its_known_public_half(void **s)
{
    (void)s;
    sherd_identity *id;
    uint8_t got[32];
    sherd_diag d = { 0 };
    assert_int_equal(sherd__identity_parse(&id, rfc8410, strlen(rfc8410), &d), 0);
    sherd__identity_public(id, got);
    assert_memory_equal(got, rfc8410_public, 32);
    sherd_identity_free(id);
}

static void the_fingerprint_is_sha256_of_the_public_key_info(void **s)
{
    (void)s;
    uint8_t spki[44] = { 0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00 };
    uint8_t want[32];
    sherd_identity *id;
    memcpy(spki + 12, rfc8410_public, 32);
    assert_int_equal(EVP_Digest(spki, sizeof spki, want, NULL, EVP_sha256(), NULL), 1);
    assert_int_equal(sherd__identity_parse(&id, rfc8410, strlen(rfc8410), NULL), 0);
    assert_memory_equal(sherd__identity_fingerprint(id)->sha256, want, 32);
    sherd_identity_free(id);
}

static void fingerprint_text_reads_back_and_similar_text_is_refused(void **s)
{
    (void)s;
    for (unsigned round = 0; round < 200; round++) {
        sherd__fingerprint fp, back;
        char text[SHERD__FINGERPRINT_TEXT], broken[SHERD__FINGERPRINT_TEXT + 2];
        for (size_t i = 0; i < sizeof fp.sha256; i++) fp.sha256[i] = (uint8_t)rand();
        sherd__fingerprint_text(&fp, text);
        assert_int_equal(strlen(text), SHERD__FINGERPRINT_TEXT - 1);
        assert_int_equal(sherd__fingerprint_parse(&back, text), 0);
        assert_true(sherd__fingerprint_equal(&fp, &back));
        for (size_t n = 0; n < strlen(text); n++) {
            snprintf(broken, sizeof broken, "%.*s", (int)n, text);
            assert_int_equal(sherd__fingerprint_parse(&back, broken), SHERD_EINVAL);
        }
        snprintf(broken, sizeof broken, "%s=", text);
        assert_int_equal(sherd__fingerprint_parse(&back, broken), SHERD_EINVAL);
        for (size_t i = 0; i < strlen(text); i++) {
            snprintf(broken, sizeof broken, "%s", text);
            broken[i] ^= (char)(1 << rand() % 7);
            if (sherd__fingerprint_parse(&back, broken) == 0)
                assert_false(sherd__fingerprint_equal(&fp, &back));
        }
    }
}

static void a_saved_key_is_private_and_loads_as_the_same_key(void **s)
{
    (void)s;
    sherd_identity *id, *back;
    struct stat st;
    sherd_diag d = { 0 };
    const char *path = in_dir("new.key");
    mode_t mask = umask(0);
    assert_int_equal(sherd_identity_new(&id, NULL), 0);
    assert_int_equal(sherd_identity_save(id, path, &d), 0);
    umask(mask);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(sherd_identity_load(&back, path, &d), 0);
    assert_true(sherd__fingerprint_equal(sherd__identity_fingerprint(id),
                                         sherd__identity_fingerprint(back)));
    sherd_identity_free(id);
    sherd_identity_free(back);
}

static void a_shared_key_outlives_the_handle_that_it_was_made_of(void **s)
{
    (void)s;
    sherd_identity *id, *other;
    uint8_t sig[64], half[32];
    assert_int_equal(sherd_identity_new(&id, NULL), 0);
    assert_int_equal(sherd__identity_share(&other, id), 0);
    assert_string_equal(sherd_identity_key(other), sherd_identity_key(id));
    sherd_identity_free(id);
    assert_int_equal(sherd__identity_sign(other, (const uint8_t *)"x", 1, sig), 0);
    sherd__identity_public(other, half);
    assert_true(sherd__identity_verify(half, (const uint8_t *)"x", 1, sig));
    sherd_identity_free(other);
}

static void an_existing_file_or_link_is_never_overwritten(void **s)
{
    (void)s;
    sherd_identity *id;
    char kept[8] = "";
    assert_int_equal(sherd_identity_new(&id, NULL), 0);
    const char *path = write_file("there", "kept", 4, 0600), *link = in_dir("link");
    const char *target = in_dir("target");
    assert_int_equal(symlink(target, link), 0);
    sherd_diag d = { 0 };
    assert_int_equal(sherd_identity_save(id, path, &d), SHERD_EOPEN);
    assert_non_null(strstr(d.message, path));
    assert_non_null(strstr(d.hint, "never overwritten"));
    d = (sherd_diag){ 0 };
    assert_int_equal(sherd_identity_save(id, link, &d), SHERD_EOPEN);
    assert_int_equal(access(target, F_OK), -1);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fread(kept, 1, sizeof kept, f), 4);
    fclose(f);
    assert_string_equal(kept, "kept");
    sherd_identity_free(id);
}

static void a_key_that_others_may_read_is_refused(void **s)
{
    (void)s;
    static const mode_t bad[] = { 0640, 0604, 0620, 0601, 0660, 0644, 0777 };
    sherd_identity *id;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sherd_diag d = { 0 };
        const char *path = write_file("open.key", rfc8410, strlen(rfc8410), bad[i]);
        assert_int_equal(sherd_identity_load(&id, path, &d), SHERD_EKEY);
        assert_null(id);
        assert_non_null(strstr(d.message, path));
        assert_non_null(strstr(d.hint, "chmod 600"));
    }
    const char *path = write_file("open.key", rfc8410, strlen(rfc8410), 0400);
    assert_int_equal(sherd_identity_load(&id, path, NULL), 0);
    sherd_identity_free(id);
    sherd_diag d = { 0 };
    path = write_file("open.txt", "no key", 6, 0644); /* its mode is not the reason */
    assert_int_equal(sherd_identity_load(&id, path, &d), SHERD_EKEY);
    assert_non_null(strstr(d.message, "not a private key"));
}

static void files_without_an_ed25519_key_are_refused_with_the_reason(void **s)
{
    (void)s;
    sherd_identity *id;
    sherd_diag d = { 0 };
    assert_int_equal(sherd_identity_load(&id, in_dir("absent"), &d), SHERD_EOPEN);
    d = (sherd_diag){ 0 };
    assert_int_equal(sherd_identity_load(&id, dir, &d), SHERD_EKEY);
    assert_non_null(strstr(d.message, "not a regular file"));
    d = (sherd_diag){ 0 };
    assert_int_equal(sherd_identity_load(&id, write_file("empty", "", 0, 0600), &d), SHERD_EKEY);
    char long_text[20000];
    memset(long_text, 'A', sizeof long_text);
    d = (sherd_diag){ 0 };
    assert_int_equal(sherd_identity_load(&id, write_file("long", long_text, sizeof long_text, 0600),
                                         &d),
                     SHERD_EKEY);

    EVP_PKEY *ec = EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
    EVP_PKEY *ed = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    BIO *bio = BIO_new(BIO_s_mem()), *locked = BIO_new(BIO_s_mem());
    char *pem;
    assert_true(PEM_write_bio_PKCS8PrivateKey(bio, ec, NULL, NULL, 0, NULL, NULL));
    long len = BIO_get_mem_data(bio, &pem);
    d = (sherd_diag){ 0 };
    assert_int_equal(sherd__identity_parse(&id, pem, (size_t)len, &d), SHERD_EKEY);
    assert_non_null(strstr(d.message, "type EC,"));
    assert_true(
        PEM_write_bio_PKCS8PrivateKey(locked, ed, EVP_aes_256_cbc(), "secret", 6, NULL, NULL));
    len = BIO_get_mem_data(locked, &pem);
    d = (sherd_diag){ 0 };
    assert_int_equal(sherd__identity_parse(&id, pem, (size_t)len, &d), SHERD_EKEY);
    assert_non_null(strstr(d.message, "passphrase"));
    BIO_free(bio);
    BIO_free(locked);
    EVP_PKEY_free(ec);
    EVP_PKEY_free(ed);
}

static void every_prefix_and_flipped_bit_of_a_key_is_handled(void **s)
{
    (void)s;
    sherd_identity *id;
    size_t len = strlen(rfc8410);
    char text[sizeof rfc8410];
    /* The last newline is optional, and the last dash is not read */
    for (size_t n = 0; n + 2 < len; n++) {
        int err = sherd__identity_parse(&id, rfc8410, n, NULL);
        if (!err) sherd_identity_free(id);
        if (n < len - 5) assert_int_equal(err, SHERD_EKEY);
    }
    for (size_t bit = 0; bit < 8 * len; bit++) {
        memcpy(text, rfc8410, sizeof text);
        text[bit / 8] ^= (char)(1 << bit % 8);
        int err = sherd__identity_parse(&id, text, len, NULL);
        assert_true(err == SHERD_EKEY || err == 0);
        if (!err) sherd_identity_free(id);
    }
}

static void a_signature_verifies_for_its_message_only(void **s)
{
    (void)s;
    sherd_identity *id;
    uint8_t sig[64];
    const uint8_t msg[] = "C = A*B";
    assert_int_equal(sherd__identity_parse(&id, rfc8410, strlen(rfc8410), NULL), 0);
    assert_int_equal(sherd__identity_sign(id, msg, sizeof msg, sig), 0);
    EVP_PKEY *pub = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, rfc8410_public, 32);
    for (int changed = 0; changed < 2; changed++) {
        EVP_MD_CTX *ctx = EVP_MD_CTX_new();
        assert_int_equal(EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, pub), 1);
        sig[7] ^= (uint8_t)changed;
        assert_int_equal(EVP_DigestVerify(ctx, sig, 64, msg, sizeof msg) == 1, !changed);
        EVP_MD_CTX_free(ctx);
    }
    EVP_PKEY_free(pub);
    sherd_identity_free(id);
}

static void every_failed_allocation_is_reported(void **s)
{
    (void)s;
    size_t seen = 1;
    for (size_t n = 1; seen >= n; n++) {
        sherd_identity *id = NULL, *back = NULL;
        char *pem = NULL;
        size_t len;
        unlink(in_dir("torture.key"));
        sherd__alloc_fail_nth(n);
        int err = sherd_identity_new(&id, NULL);
        if (!err) err = sherd_identity_save(id, in_dir("torture.key"), NULL);
        if (!err) err = sherd_identity_load(&back, in_dir("torture.key"), NULL);
        if (!err) err = sherd__identity_pem(back, &pem, &len);
        seen = sherd__alloc_fail_nth(0);
        assert_int_equal(err, seen >= n ? SHERD_ENOMEM : 0);
        sherd__free(pem);
        sherd_identity_free(id);
        sherd_identity_free(back);
    }
}

/* The key of RFC 8410, section 10.1; the digest by `openssl pkey -pubin -outform DER |
 * sha256sum`. */
static void a_fingerprint_is_the_digest_of_the_key_in_der(void **s)
{
    (void)s;
    static const uint8_t key[32] = { 0x19, 0xbf, 0x44, 0x09, 0x69, 0x84, 0xcd, 0xfe,
                                     0x85, 0x41, 0xba, 0xc1, 0x67, 0xdc, 0x3b, 0x96,
                                     0xc8, 0x50, 0x86, 0xaa, 0x30, 0xb6, 0xb6, 0xcb,
                                     0x0c, 0x5c, 0x38, 0xad, 0x70, 0x31, 0x66, 0xe1 };
    static const uint8_t wanted[] = { 0xa1, 0xe9, 0x15, 0x60, 0x54, 0xe0, 0x4f, 0xac,
                                      0x89, 0x9a, 0xe9, 0xf2, 0x75, 0x13, 0x2c, 0xdc,
                                      0x07, 0xa5, 0xdb, 0xc4, 0xea, 0x2c, 0x2a, 0xd3,
                                      0xa1, 0xff, 0xc6, 0xe0, 0xd2, 0x53, 0x68, 0x1f };
    sherd__fingerprint found;
    sherd__fingerprint_public(&found, key);
    assert_memory_equal(found.sha256, wanted, sizeof wanted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fingerprint_is_the_digest_of_the_key_in_der),
        cmocka_unit_test(a_known_key_has_its_known_public_half),
        cmocka_unit_test(the_fingerprint_is_sha256_of_the_public_key_info),
        cmocka_unit_test(fingerprint_text_reads_back_and_similar_text_is_refused),
        cmocka_unit_test(a_saved_key_is_private_and_loads_as_the_same_key),
        cmocka_unit_test(a_shared_key_outlives_the_handle_that_it_was_made_of),
        cmocka_unit_test(an_existing_file_or_link_is_never_overwritten),
        cmocka_unit_test(a_key_that_others_may_read_is_refused),
        cmocka_unit_test(files_without_an_ed25519_key_are_refused_with_the_reason),
        cmocka_unit_test(every_prefix_and_flipped_bit_of_a_key_is_handled),
        cmocka_unit_test(a_signature_verifies_for_its_message_only),
        cmocka_unit_test(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests_name("wire/identity", tests, make_dir, remove_dir);
}
