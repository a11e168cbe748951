/*
 * Certificates as signed files. The signature covers the canonical text of the parsed object, not
 * the bytes of the file: white space and the order of members may change afterwards, values may
 * not. A label precedes the signed text, so that the signature is not valid for any other kind of
 * text under the same key.
 */
#include "store/certificate.h"

#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "store/certificate_json.h"
#include "store/file.h"

#define LABEL "sherd-certificate-v1\n"
#define CANONICAL (JSON_COMPACT | JSON_SORT_KEYS | JSON_ENSURE_ASCII)
#define READABLE (JSON_INDENT(2) | JSON_SORT_KEYS | JSON_ENSURE_ASCII)

int sherd__certificate_commit_seed(sherd__digest *out, const uint8_t seed[32])
{
    return sherd__digest_labelled(out, "sherd seed-v1", seed, 32);
}

/* Replaces bytes that JSON does not allow: file names and texts of nodes may have any byte. */
static void make_plain(char *line)
{
    for (; *line; line++)
        if (*line < 0x20 || *line >= 0x7f) *line = '?';
}

void sherd__certificate_warn(sherd__certificate *c, const char *fmt, ...)
{
    va_list ap;
    if (c->warnings_len >= SHERD__CERTIFICATE_WARNINGS) return;
    char *line = c->warnings[c->warnings_len++];
    va_start(ap, fmt);
    vsnprintf(line, sizeof c->warnings[0], fmt, ap);
    va_end(ap);
    make_plain(line);
}

void sherd__certificate_core(sherd__certificate *c, const char *core)
{
    char line[sizeof c->cores[0]];
    snprintf(line, sizeof line, "%s", core);
    make_plain(line);
    for (uint32_t i = 0; i < c->cores_len; i++)
        if (!strcmp(c->cores[i], line)) return;
    if (c->cores_len < SHERD__CERTIFICATE_CORES)
        memcpy(c->cores[c->cores_len++], line, sizeof line);
}

int sherd__certificate_list(sherd__certificate *c, uint32_t len)
{
    if (len > SHERD__CERTIFICATE_NODES) return SHERD_EINVAL;
    sherd__certificate_node *list = sherd__calloc(len, sizeof *list);
    if (!list) return SHERD_ENOMEM;
    sherd__free(c->list);
    c->list = list;
    c->list_len = len;
    return SHERD_OK;
}

void sherd__certificate_fini(sherd__certificate *c)
{
    sherd__free(c->list);
    memset(c, 0, sizeof *c);
}

/* Builds the signed bytes of an object. The caller frees *msg with sherd__free. */
static int signed_bytes(const json_t *root, uint8_t **msg, size_t *len, sherd_diag *d)
{
    size_t text_len = json_dumpb(root, NULL, 0, CANONICAL), label_len = strlen(LABEL);
    uint8_t *p = text_len ? sherd__alloc(label_len + text_len) : NULL;
    if (!p || json_dumpb(root, (char *)p + label_len, text_len, CANONICAL) != text_len) {
        sherd__free(p);
        return sherd__fail_memory(d, "the certificate");
    }
    memcpy(p, LABEL, label_len);
    *msg = p;
    *len = label_len + text_len;
    return SHERD_OK;
}

static int set_signature(json_t *root, const uint8_t key[32], const uint8_t sig[64], sherd_diag *d)
{
    char key_hex[65], sig_hex[129];
    json_t *o = json_object();
    sodium_bin2hex(key_hex, sizeof key_hex, key, 32);
    sodium_bin2hex(sig_hex, sizeof sig_hex, sig, 64);
    int bad = json_object_set_new(o, "algorithm", json_string("Ed25519"));
    bad |= json_object_set_new(o, "key", json_string(key_hex));
    bad |= json_object_set_new(o, "value", json_string(sig_hex));
    bad |= json_object_set_new(root, "signature", o);
    return bad ? sherd__fail_memory(d, "the certificate") : SHERD_OK;
}

static int readable_text(const json_t *root, char **text, sherd_diag *d)
{
    size_t len = json_dumpb(root, NULL, 0, READABLE);
    char *p = len ? sherd__alloc(len + 2) : NULL;
    if (!p || json_dumpb(root, p, len, READABLE) != len) {
        sherd__free(p);
        return sherd__fail_memory(d, "the certificate");
    }
    p[len] = '\n';
    p[len + 1] = '\0';
    *text = p;
    return SHERD_OK;
}

int sherd__certificate_text(sherd__certificate *c, const uint8_t key[32],
                            sherd__certificate_sign sign, void *sign_ctx, char **text,
                            sherd_diag *d)
{
    json_t *root = NULL;
    uint8_t *msg = NULL, sig[64];
    size_t msg_len = 0;
    *text = NULL;
    int err = sherd__certificate_to_json(c, &root, d);
    if (!err) err = signed_bytes(root, &msg, &msg_len, d);
    if (!err && (err = sign(sign_ctx, msg, msg_len, sig)) != 0)
        err = sherd__fail(d, err, NULL, "the certificate could not be signed");
    if (!err) err = set_signature(root, key, sig, d);
    if (!err) err = readable_text(root, text, d);
    if (!err) {
        memcpy(c->key, key, 32);
        memcpy(c->signature, sig, 64);
        c->has_signature = true;
    }
    sherd__free(msg);
    json_decref(root);
    return err;
}

int sherd__certificate_begin(sherd__file **out, const char *path, const char *text, sherd_diag *d)
{
    sherd__file *f = NULL;
    *out = NULL;
    int err = sherd__file_begin(&f, path, SHERD__FILE_PRIVATE, d);
    if (!err) err = sherd__file_write(f, text, strlen(text), d);
    if (!err) err = sherd__file_sync(f, d);
    if (!err) *out = f;
    else sherd__file_abort(f);
    return err;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Reads hexadecimal digits. Only lower case is accepted, since only that is written. */
static bool read_hex(uint8_t *out, size_t len, const json_t *v)
{
    size_t got = 0;
    return json_is_string(v) && json_string_length(v) == 2 * len &&
           strspn(json_string_value(v), "0123456789abcdef") == 2 * len &&
           sodium_hex2bin(out, len, json_string_value(v), 2 * len, NULL, &got, NULL) == 0 &&
           got == len;
}

/* Removes the signature from root and verifies it against the rest. */
static int check_signature(sherd__certificate *c, json_t *root, const char *where, sherd_diag *d)
{
    const json_t *s = json_object_get(root, "signature");
    const char *algorithm = json_string_value(json_object_get(s, "algorithm"));
    uint8_t *msg = NULL;
    size_t len = 0;
    if (!algorithm || strcmp(algorithm, "Ed25519") ||
        !read_hex(c->key, 32, json_object_get(s, "key")) ||
        !read_hex(c->signature, 64, json_object_get(s, "value")))
        return sherd__fail(d, SHERD_EFORMAT, "take the file as sherd wrote it",
                           "%s: certificate member signature: expected an Ed25519 signature",
                           where);
    json_object_del(root, "signature");
    int err = signed_bytes(root, &msg, &len, d);
    if (err) return err;
    int bad = sodium_init() < 0 || crypto_sign_verify_detached(c->signature, msg, len, c->key);
    sherd__free(msg);
    if (bad)
        return sherd__fail(d, SHERD_EAUTH, "ask its writer for the file again",
                           "%s: the signature does not fit: the certificate was edited or damaged",
                           where);
    c->has_signature = true;
    return SHERD_OK;
}

int sherd__certificate_parse(sherd__certificate *out, const char *text, size_t len,
                             const char *where, sherd_diag *d)
{
    json_error_t e;
    if (len > SHERD__CERTIFICATE_BYTES_MAX)
        return sherd__fail(d, SHERD_EFORMAT, "give a file that --certificate wrote",
                           "%s: %zu bytes, more than a certificate has", where, len);
    json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &e);
    if (!json_is_object(root)) {
        json_decref(root);
        return sherd__fail(d, SHERD_EFORMAT, "give a file that --certificate wrote",
                           root ? "%s: is JSON, but not an object"
                                : "%s: is not a JSON object: line %d, column %d: %.100s",
                           where, e.line, e.column, e.text);
    }
    sherd__certificate *c = sherd__calloc(1, sizeof *c);
    int err = c ? sherd__certificate_from_json(c, root, where, d)
                : sherd__fail_memory(d, "%s", where);
    if (!err) err = check_signature(c, root, where, d);
    if (!err) *out = *c;
    else if (c) sherd__certificate_fini(c);
    sherd__free(c);
    json_decref(root);
    return err;
}

int sherd__certificate_load(sherd__certificate *out, const char *path, sherd_diag *d)
{
    uint8_t *text;
    size_t len;
    int err = sherd__file_read_small(&text, &len, path, SHERD__CERTIFICATE_BYTES_MAX, d);
    if (err) return err;
    err = sherd__certificate_parse(out, (const char *)text, len, sherd__path_tail(path), d);
    sherd__free(text);
    return err;
}
