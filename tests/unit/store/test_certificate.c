#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/alloc.h"
#include "crypto/perm.h"
#include "store/certificate.h"
#include "tests/unit/store/scratch.h"

static uint8_t public_key[32], secret_key[64];

static int sign(void *ctx, const uint8_t *msg, size_t len, uint8_t sig[64])
{
    return crypto_sign_detached(sig, NULL, msg, len, ctx) ? SHERD_EINTERNAL : 0;
}

static int refuse_to_sign(void *ctx, const uint8_t *msg, size_t len, uint8_t sig[64])
{
    (void)ctx, (void)msg, (void)len, (void)sig;
    return SHERD_EKEY;
}

/* Makes a certificate in which every member has a distinct value. */
static void make(sherd__certificate *c)
{
    static sherd__certificate_node nodes[7]; /* not freed: only a certificate that was read is
                                              * freed */
    memset(c, 0, sizeof *c);
    for (int i = 0; i < 7; i++) {
        snprintf(nodes[i].name, sizeof nodes[i].name, "node-%d", i + 1);
        snprintf(nodes[i].domain, sizeof nodes[i].domain, "rack \"%d\"", i / 2);
        snprintf(nodes[i].key, sizeof nodes[i].key, "sha256:%043d", i);
    }
    c->list = nodes;
    c->list_len = 7;
    c->created_unix = 1795219199;
    strcpy(c->operation, "product");
    c->inputs_len = 2;
    c->inputs[0] = (sherd__certificate_matrix){ .dtype = SHERD_U8, .rows = 60000, .cols = 784 };
    c->inputs[1] = (sherd__certificate_matrix){ .dtype = SHERD_F64, .rows = 784, .cols = 128 };
    c->result = (sherd__certificate_matrix){ .dtype = SHERD_F64, .rows = 60000, .cols = 128 };
    memset(c->inputs[0].digest.sha256, 0xa1, 32);
    memset(c->inputs[1].digest.sha256, 0xb2, 32);
    memset(c->result.digest.sha256, 0xc3, 32);
    c->has_inputs = true;
    c->exact = true;
    c->bits[0] = 0;
    c->bits[1] = 17;
    c->primes[0] = 5931641;
    c->primes[1] = 5931637;
    c->primes_len = 2;
    c->norms_leaked = true;
    strcpy(c->scheme, "permute");
    c->grouped = true;
    c->group = 4;
    strcpy(c->exposure, "balanced");
    c->shuffle_rows = true;
    c->has_seed = true;
    memset(c->seed_commitment.sha256, 0x5e, 32);
    c->reused_metadata = true;
    strcpy(c->check, "freivalds");
    c->freivalds_trials = 2;
    c->freivalds_modulus_bits = 127;
    c->freivalds_error_log2 = -43;
    c->sample_missed_ppm = 7;
    c->equal = SHERD__EQUAL;
    c->nodes = 7;
    c->domains = 7;
    c->domains_simulated = true;
    strcpy(c->sherd_version, "0.1.0");
    strcpy(c->protocol_version, "1.0");
    strcpy(c->blas_version, "OpenBLAS 0.3.21");
    sherd__certificate_core(c, "SkylakeX");
    sherd__certificate_core(c, "Haswell");
    sherd__certificate_core(c, "SkylakeX");
    sherd__certificate_warn(c, "operand \"%s\" was \xff used before", "A.npy");
}

static int save(sherd__certificate *c, const char *path, sherd__certificate_sign by, void *ctx)
{
    sherd__file *f;
    char *text;
    int err = sherd__certificate_text(c, public_key, by, ctx, &text, NULL);
    if (!err) err = sherd__certificate_begin(&f, path, text, NULL);
    sherd__free(text);
    return err ? err : sherd__file_commit(f, NULL);
}

static char *text_of(sherd__certificate *c)
{
    char *text;
    assert_int_equal(sherd__certificate_text(c, public_key, sign, secret_key, &text, NULL), 0);
    return text;
}

static int parse(sherd__certificate *out, const char *text, sherd_diag *d)
{
    return sherd__certificate_parse(out, text, strlen(text), "c.json", d);
}

static void a_certificate_that_was_written_reads_back_equal(void **s)
{
    (void)s;
    sherd__certificate a, b;
    make(&a);
    for (int i = 0; i < 5; i++) {
        if (i == 4) a.list_len = 0; /* as written by a version that listed no nodes */
        if (i == 1) a.has_inputs = a.has_seed = false;
        if (i == 2) a.exact = false, a.bits[0] = a.bits[1] = a.primes_len = 0, a.group = 0;
        strcpy(a.scheme, i == 3 ? "share" : "permute");
        a.grouped = i != 3;
        if (i == 3) a.inputs_len = 1, a.equal = SHERD__UNCHECKED, a.cores_len = 0;
        char *text = text_of(&a);
        assert_int_equal(parse(&b, text, NULL), 0);
        char *again = text_of(&b); /* struct padding and unused members may differ */
        assert_string_equal(text, again);
        assert_memory_equal(b.key, public_key, 32);
        assert_true(b.has_signature);
        assert_true((strstr(text, "\"list\"") != NULL) == (i < 4) && b.list_len == a.list_len);
        assert_true((strstr(text, "\"group\"") != NULL) == (i != 3));
        sherd__free(text);
        sherd__free(again);
        sherd__certificate_fini(&b);
    }
    make(&a);
    char *text = text_of(&a);
    assert_int_equal(parse(&b, text, NULL), 0);
    assert_int_equal(b.created_unix, a.created_unix);
    assert_memory_equal(b.inputs, a.inputs, sizeof a.inputs);
    assert_memory_equal(&b.seed_commitment, &a.seed_commitment, 32);
    assert_true(b.exact && b.bits[1] == 17 && b.primes_len == 2 && b.primes[1] == 5931637);
    assert_true(b.group == 4 && b.shuffle_rows && b.reused_metadata && b.norms_leaked);
    assert_string_equal(b.check, "freivalds");
    assert_true(b.freivalds_modulus_bits == 127 && b.sample_missed_ppm == 7);
    assert_true(b.freivalds_error_log2 == -43 && b.equal == SHERD__EQUAL && b.nodes == 7);
    assert_true(b.cores_len == 2 && !strcmp(b.cores[1], "Haswell"));
    assert_string_equal(b.warnings[0], "operand \"A.npy\" was ? used before");
    assert_int_equal(b.list_len, 7);
    assert_memory_equal(b.list, a.list, 7 * sizeof *a.list);
    sherd__certificate_fini(&b);
    sherd__free(text);
}

static void the_file_is_private_and_python_reads_it(void **s)
{
    (void)s;
    static const char program[] =
        "import json\n"
        "c = json.load(open('c.json'))\n"
        "assert c['schema'] == 'sherd/certificate/1'\n"
        "assert c['created'] == '2026-11-20T23:59:59Z'\n"
        "assert c['inputs'][0] == {'dtype': '|u1', 'shape': [60000, 784], 'sha256': 'a1' * 32}\n"
        "assert c['arithmetic']['primes'] == [5931641, 5931637]\n"
        "assert c['nodes']['domains_simulated'] is True\n"
        "assert c['nodes']['list'][6]['name'] == 'node-7' and len(c['nodes']['list']) == 7\n"
        "assert 'test guesses' in c['notice']\n"
        "assert c['signature']['algorithm'] == 'Ed25519'\n"
        "sig = c.pop('signature')\n"
        "text = json.dumps(c, sort_keys=True, separators=(',', ':'))\n"
        "open('signed', 'w').write('sherd-certificate-v1\\n' + text)\n"
        "open('value', 'w').write(sig['value'])\n";
    sherd__certificate c;
    struct stat st;
    size_t len;
    uint8_t sig[64];
    make(&c);
    const char *path = scratch_path("c.json");
    assert_int_equal(save(&c, path, sign, secret_key), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(sherd__certificate_load(&c, path, NULL), 0);
    sherd__certificate_fini(&c);
    assert_int_equal(scratch_python(program), 0);
    uint8_t *msg = scratch_read(scratch_path("signed"), &len);
    size_t hex_len, got;
    uint8_t *hex = scratch_read(scratch_path("value"), &hex_len);
    assert_int_equal(sodium_hex2bin(sig, 64, (char *)hex, hex_len, NULL, &got, NULL), 0);
    assert_int_equal(crypto_sign_verify_detached(sig, msg, len, public_key), 0);
    free(msg);
    free(hex);
}

static void spacing_and_order_may_change_but_no_value(void **s)
{
    (void)s;
    static const char program[] =
        "import json\n"
        "c = json.load(open('c.json'))\n"
        "c = dict(reversed(list(c.items())))\n"
        "json.dump(c, open('reordered.json', 'w'), indent=7)\n"
        "n = 0\n"
        "def walk(o, top):\n"
        "    global n\n"
        "    for k in list(o.keys() if isinstance(o, dict) else range(len(o))):\n"
        "        old = o[k]\n"
        "        if isinstance(old, (dict, list)) and len(old):\n"
        "            walk(old, False)\n"
        "            continue\n"
        "        for new in (old + 1 if type(old) is int else not old if type(old) is bool else\n"
        "                    (old[:-1] + ('0' if old[-1:] != '0' else '1')) if type(old) is str\n"
        "                    else 1), None, [], {}:\n"
        "            o[k] = new\n"
        "            json.dump(c, open(f'edited-{n}.json', 'w'))\n"
        "            n += 1\n"
        "        o[k] = old\n"
        "walk(c, True)\n"
        "c['more'] = 1\n"
        "json.dump(c, open(f'edited-{n}.json', 'w'))\n"
        "open('count', 'w').write(str(n + 1))\n";
    sherd__certificate c;
    size_t len;
    make(&c);
    assert_int_equal(save(&c, scratch_path("c.json"), sign, secret_key), 0);
    assert_int_equal(scratch_python(program), 0);
    assert_int_equal(sherd__certificate_load(&c, scratch_path("reordered.json"), NULL), 0);
    sherd__certificate_fini(&c);
    uint8_t *count = scratch_read(scratch_path("count"), &len);
    int n = atoi((char *)count);
    free(count);
    int told = 0;
    assert_true(n > 100);
    for (int i = 0; i < n; i++) {
        char name[32];
        sherd_diag d = { 0 };
        snprintf(name, sizeof name, "edited-%d.json", i);
        int err = sherd__certificate_load(&c, scratch_path(name), &d);
        if (err != SHERD_EAUTH && err != SHERD_EFORMAT && err != SHERD_EVERSION)
            fail_msg("%s: %d", name, err);
        assert_true(d.message[0] && d.hint[0]);
        told += strstr(d.message, ": expected ") && strstr(d.message, ", found ");
    }
    assert_true(told > 0); /* the values in the file */
    scratch_clear();
}

static void every_prefix_is_refused(void **s)
{
    (void)s;
    sherd__certificate a, b;
    make(&a);
    char *text = text_of(&a);
    size_t len = strlen(text) - 1; /* without the newline */
    for (size_t n = 0; n < len; n++) {
        char *exact = malloc(n + 1);
        memcpy(exact, text, n);
        assert_int_equal(sherd__certificate_parse(&b, exact, n, "c.json", NULL), SHERD_EFORMAT);
        free(exact);
    }
    sherd__free(text);
}

static void a_flipped_bit_never_gives_another_valid_certificate(void **s)
{
    (void)s;
    sherd__certificate a, b;
    make(&a);
    char *text = text_of(&a);
    size_t len = strlen(text);
    for (size_t bit = 0; bit < len * 8; bit++) {
        text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
        if (sherd__certificate_parse(&b, text, len, "c.json", NULL) == 0) {
            char *again = text_of(&b);
            if (!strchr(" \n\t\r", text[bit / 8])) /* spacing; everything else is compared
                                                           * after writing it again */
                fail_msg("bit %zu of byte %zu, now '%c'", bit % 8, bit / 8, text[bit / 8]);
            text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
            assert_string_equal(again, text);
            text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
            sherd__free(again);
            sherd__certificate_fini(&b);
        }
        text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
    }
    sherd__free(text);
}

static void another_key_or_another_text_does_not_verify(void **s)
{
    (void)s;
    uint8_t other_public[32], other_secret[64];
    sherd__certificate a, b;
    char *text;
    sherd_diag d = { 0 };
    make(&a);
    crypto_sign_keypair(other_public, other_secret);
    assert_int_equal(sherd__certificate_text(&a, public_key, sign, other_secret, &text, NULL), 0);
    assert_int_equal(parse(&b, text, &d), SHERD_EAUTH);
    assert_non_null(strstr(d.message, "signature does not fit"));
    sherd__free(text);
}

static void impossible_claims_of_a_valid_signature_are_refused(void **s)
{
    (void)s;
    static const char *const named[] = { "scheme.colluding",
                                         "verification.freivalds_modulus_bits",
                                         "verification.freivalds_error_log2",
                                         "verification.freivalds_error_log2",
                                         "verification.sample_missed_ppm",
                                         "arithmetic.primes",
                                         "arithmetic.primes",
                                         "arithmetic.primes" };
    for (unsigned i = 0; i < sizeof named / sizeof named[0]; i++) {
        sherd__certificate a, b;
        sherd_diag d = { 0 };
        make(&a);
        if (i == 0) a.colluding = a.domains + 1;
        if (i == 1) a.freivalds_modulus_bits = 128;
        if (i == 2) a.freivalds_error_log2 = 1;
        if (i == 3) a.freivalds_error_log2 = -100001;
        if (i == 4) a.sample_missed_ppm = 1000001;
        if (i == 5) a.primes[0] = 1;
        if (i == 6) a.primes[1] = 4;
        if (i == 7) a.primes[1] = 1 << 24 | 1;
        char *text = text_of(&a);
        assert_int_equal(parse(&b, text, &d), SHERD_EFORMAT);
        if (!strstr(d.message, named[i])) fail_msg("%s: %s", named[i], d.message);
        sherd__free(text);
    }
}

static void hostile_files_are_refused(void **s)
{
    (void)s;
    static const char *const bad[] = {
        "",
        "null",
        "[]",
        "1",
        "\"x\"",
        "{}",
        "{\"schema\": 1}",
        "{\"schema\": \"other\"}",
        "{\"schema\": \"sherd/certificate/1\"}",
        "{\"schema\": \"sherd/certificate/1\", \"schema\": \"sherd/certificate/1\"}",
        "{\"schema\": \"sherd/certificate/1\", \"inputs\": [1, 2], \"result\": 3}",
        "{\"a\": 1e999}",
        "{\"a\": 99999999999999999999999}",
        "{\"a\": \"\\u0000\"}",
    };
    sherd__certificate c;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(parse(&c, bad[i], NULL), SHERD_EFORMAT);
    assert_int_equal(parse(&c, "{\"schema\": \"sherd/certificate/2\"}", NULL), SHERD_EVERSION);
    char *deep = malloc(1 << 20);
    memset(deep, '[', (1 << 20) - 1);
    deep[(1 << 20) - 1] = '\0';
    assert_int_equal(parse(&c, deep, NULL), SHERD_EFORMAT);
    free(deep);
    char *large = calloc(1, SHERD__CERTIFICATE_BYTES_MAX + 2);
    memset(large, ' ', SHERD__CERTIFICATE_BYTES_MAX + 1);
    assert_int_equal(parse(&c, large, NULL), SHERD_EFORMAT);
    free(large);
}

static void a_dimension_that_no_matrix_can_have_is_refused(void **s)
{
    (void)s;
    sherd__certificate a, b;
    sherd_diag d = { 0 };
    make(&a);
    char *text, edited[1 << 14];
    assert_int_equal(sherd__certificate_text(&a, public_key, sign, secret_key, &text, NULL), 0);
    size_t at = (size_t)(strstr(text, "60000") - text);
    snprintf(edited, sizeof edited, "%.*s4294967296%s", (int)at, text, text + at + 5);
    assert_int_equal(parse(&b, edited, &d), SHERD_EFORMAT);
    assert_non_null(strstr(d.message, "inputs.shape: expected dimensions of at most 2^32 - 1"));
    sherd__free(text);
}

static void members_out_of_range_are_not_written(void **s)
{
    (void)s;
    char *text = (char *)public_key;
    for (int i = 0; i < 8; i++) {
        sherd__certificate c;
        make(&c);
        switch (i) {
        case 0: c.inputs_len = 3; break;
        case 1: c.result.dtype = (sherd_dtype)0; break;
        case 2: c.primes_len = 9; break;
        case 3: c.equal = (sherd__certified)3; break;
        case 4: c.warnings_len = 17; break;
        case 5: strcpy(c.check, "hope"); break;
        case 6: c.nodes = 8; break; /* one more than are listed */
        default: c.inputs[1].rows = UINT64_MAX; break;
        }
        assert_int_equal(sherd__certificate_text(&c, public_key, sign, secret_key, &text, NULL),
                         SHERD_EINVAL);
        assert_null(text);
    }
}

static void a_failed_signature_leaves_no_file(void **s)
{
    (void)s;
    sherd__certificate c;
    make(&c);
    scratch_clear();
    assert_int_equal(save(&c, scratch_path("c.json"), refuse_to_sign, NULL), SHERD_EKEY);
    assert_int_equal(scratch_entries(), 0);
    assert_false(c.has_signature);
}

static void warnings_and_cores_stop_at_their_maximum(void **s)
{
    (void)s;
    sherd__certificate c = { 0 };
    for (int i = 0; i < 100; i++) {
        char core[80];
        snprintf(core, sizeof core, "core-%d-%050d", i, 0);
        sherd__certificate_core(&c, core);
        sherd__certificate_warn(&c, "%0500d", i);
    }
    assert_int_equal(c.cores_len, SHERD__CERTIFICATE_CORES);
    assert_int_equal(c.warnings_len, SHERD__CERTIFICATE_WARNINGS);
    assert_int_equal(strlen(c.warnings[15]), sizeof c.warnings[0] - 1);
}

/* A certificate written by an earlier version. */
static void a_certificate_without_listed_nodes_still_verifies(void **s)
{
    (void)s;
    sherd__certificate c;
    assert_int_equal(sherd__certificate_load(&c, "tests/fuzz/corpus/certificate/exact", NULL), 0);
    assert_true(c.nodes > 0 && c.list_len == 0 && !c.list);
    sherd__certificate_fini(&c);
}

static void more_nodes_than_the_maximum_are_not_listed(void **s)
{
    (void)s;
    sherd__certificate a, b;
    make(&a);
    a.list = NULL;
    assert_int_equal(sherd__certificate_list(&a, SHERD__CERTIFICATE_NODES + 1), SHERD_EINVAL);
    assert_int_equal(sherd__certificate_list(&a, SHERD__CERTIFICATE_NODES), SHERD_OK);
    a.nodes = SHERD__CERTIFICATE_NODES;
    for (uint32_t i = 0; i < a.nodes; i++) { /* texts of maximum length */
        memset(a.list[i].name, 'n', 63);
        memset(a.list[i].domain, '\\', 63);
        memset(a.list[i].key, 'k', 55);
    }
    char *text = text_of(&a);
    assert_int_equal(parse(&b, text, NULL), 0);
    assert_int_equal(b.list_len, a.list_len);
    assert_memory_equal(b.list, a.list, a.list_len * sizeof *a.list);
    sherd__certificate_fini(&a);
    sherd__certificate_fini(&b);
    sherd__free(text);
}

static void the_commitment_to_a_seed_equals_that_of_a_metadata_file(void **s)
{
    (void)s;
    uint8_t seed[32] = { 1 }, plain[32], meta[32];
    sherd__digest a, b;
    assert_int_equal(sherd__certificate_commit_seed(&a, seed), 0);
    crypto_hash_sha256(plain, seed, 32);
    assert_memory_not_equal(a.sha256, plain, 32);
    sherd__seed_commitment(meta, seed);
    assert_memory_equal(a.sha256, meta, 32);
    seed[31] ^= 1;
    assert_int_equal(sherd__certificate_commit_seed(&b, seed), 0);
    assert_memory_not_equal(&a, &b, 32);
}

static void every_failed_allocation_is_reported(void **s)
{
    (void)s;
    sherd__certificate a, b;
    make(&a);
    const char *path = scratch_path("c.json");
    for (size_t n = 1, reached = 1; reached; n++) {
        sherd__alloc_fail_nth(n);
        int err = save(&a, path, sign, secret_key);
        if (!err) err = sherd__certificate_load(&b, path, NULL);
        reached = sherd__alloc_fail_nth(0) >= n;
        assert_int_equal(err, reached ? SHERD_ENOMEM : 0);
        if (!err) sherd__certificate_fini(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_certificate_that_was_written_reads_back_equal),
        cmocka_unit_test(the_file_is_private_and_python_reads_it),
        cmocka_unit_test(spacing_and_order_may_change_but_no_value),
        cmocka_unit_test(every_prefix_is_refused),
        cmocka_unit_test(a_flipped_bit_never_gives_another_valid_certificate),
        cmocka_unit_test(another_key_or_another_text_does_not_verify),
        cmocka_unit_test(impossible_claims_of_a_valid_signature_are_refused),
        cmocka_unit_test(hostile_files_are_refused),
        cmocka_unit_test(a_dimension_that_no_matrix_can_have_is_refused),
        cmocka_unit_test(members_out_of_range_are_not_written),
        cmocka_unit_test(a_failed_signature_leaves_no_file),
        cmocka_unit_test(warnings_and_cores_stop_at_their_maximum),
        cmocka_unit_test(a_certificate_without_listed_nodes_still_verifies),
        cmocka_unit_test(more_nodes_than_the_maximum_are_not_listed),
        cmocka_unit_test(the_commitment_to_a_seed_equals_that_of_a_metadata_file),
        cmocka_unit_test(every_failed_allocation_is_reported),
    };
    if (sodium_init() < 0) return 1;
    crypto_sign_keypair(public_key, secret_key);
    return cmocka_run_group_tests_name("store/certificate", tests, scratch_setup, scratch_teardown);
}
