/*
 * The manifest is parsed by jansson and then checked field by field for exact types and ranges. It
 * is written by hand, since it contains only numbers, fixed words and names of [A-Za-z0-9_], which
 * need no quoting.
 */
#include "store/manifest.h"

#include <inttypes.h>
#include <jansson.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "sherd/version.h"

#define HINT "write the file again with `sherd meta build`"
#define HEX_SIZE 65

typedef struct context {
    const char *where;
    char place[48]; /* "" or "operation 3: " */
    sherd_diag *d;
} context;

static const char *const file_keys[] = {
    "format",          "tool",       "form", "scheme", "nodes", "group", "exposure", "shuffle_rows",
    "seed_commitment", "operations", NULL
};
static const char *const operation_keys[] = {
    "name", "kind", "shape", "operands", "exposures_sha256", NULL
};

/* ---- fields ---------------------------------------------------------------------------------- */

static int bad(const context *c, const char *field, const char *expected)
{
    return sherd__fail(c->d, SHERD_EFORMAT, HINT, "%s: manifest: %s\"%s\" is not %s", c->where,
                       c->place, field, expected);
}

static int only_keys(const context *c, json_t *object, const char *const *keys)
{
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        size_t i = 0;
        while (keys[i] && strcmp(keys[i], key) != 0) i++;
        if (!keys[i])
            return sherd__fail(c->d, SHERD_EFORMAT, HINT, "%s: manifest: %sunknown field \"%.40s\"",
                               c->where, c->place, key);
    }
    return SHERD_OK;
}

static int get_uint(const context *c, json_t *object, const char *field, uint64_t min, uint64_t max,
                    uint64_t *out)
{
    char expected[64];
    json_t *v = json_object_get(object, field);
    json_int_t n = json_integer_value(v);
    snprintf(expected, sizeof expected, "a whole number from %" PRIu64 " to %" PRIu64, min, max);
    if (!json_is_integer(v) || n < 0 || (uint64_t)n < min || (uint64_t)n > max)
        return bad(c, field, expected);
    *out = (uint64_t)n;
    return SHERD_OK;
}

/* Reads one of two words; *second says which. */
static int get_word(const context *c, json_t *object, const char *field, const char *first,
                    const char *other, bool *second)
{
    char expected[64];
    const char *s = json_string_value(json_object_get(object, field));
    snprintf(expected, sizeof expected, "\"%s\"%s%s%s", first, other ? " or \"" : "",
             other ? other : "", other ? "\"" : "");
    if (!s || (strcmp(s, first) != 0 && (!other || strcmp(s, other) != 0)))
        return bad(c, field, expected);
    if (second) *second = strcmp(s, first) != 0;
    return SHERD_OK;
}

/* Reads 32 bytes in hexadecimal. If `there` is given, the field is optional and *there says whether
 * it exists. */
static int get_digest(const context *c, json_t *object, const char *field, uint8_t out[32],
                      bool *there)
{
    size_t len = 0;
    json_t *v = json_object_get(object, field);
    const char *s = json_string_value(v);
    if (there) *there = v != NULL;
    if (there && !v) return SHERD_OK;
    if (!s || strlen(s) != 64 || sodium_hex2bin(out, 32, s, 64, NULL, &len, NULL) != 0 || len != 32)
        return bad(c, field, "64 hexadecimal digits");
    return SHERD_OK;
}

/* ---- operations ------------------------------------------------------------------------------ */

static int get_shape(const context *c, json_t *object, sherd_meta_operation *op)
{
    bool dot = op->kind == SHERD_OP_PRODUCT;
    uint64_t dims[3] = { 0 };
    json_t *shape = json_object_get(object, "shape");
    size_t len = json_array_size(shape);
    if (len != (dot ? 3u : 2u)) return bad(c, "shape", dot ? "[n, k, m]" : "[n, m]");
    for (size_t i = 0; i < len; i++) {
        json_t *v = json_array_get(shape, i);
        json_int_t n = json_integer_value(v);
        if (!json_is_integer(v) || n < 0 || n > UINT32_MAX)
            return bad(c, "shape", "of whole numbers below 2^32");
        dims[i] = (uint64_t)n;
    }
    op->n = dims[0];
    op->k = dot ? dims[1] : 0;
    op->m = dims[len - 1];
    return SHERD_OK;
}

static int get_operation(context *c, sherd__metafile *f, json_t *object, size_t i)
{
    sherd_meta_operation op = { .name = "" };
    bool hashed = false;
    snprintf(c->place, sizeof c->place, "operation %zu: ", i);
    if (!json_is_object(object)) return bad(c, "operations", "a list of objects");
    int err = only_keys(c, object, operation_keys);
    if (err) return err;
    const char *name = json_string_value(json_object_get(object, "name"));
    const char *kind = json_string_value(json_object_get(object, "kind"));
    if (!name || strlen(name) >= sizeof op.name) return bad(c, "name", "a short name");
    memcpy(op.name, name, strlen(name) + 1);
    op.kind = kind ? sherd_op_find(kind) : (sherd_op)0;
    if (!op.kind) return bad(c, "kind", "an operation that is known");
    err = get_shape(c, object, &op);
    if (!err) err = get_digest(c, object, "operands", op.operands, &op.used);
    if (!err) err = get_digest(c, object, "exposures_sha256", f->exposures_sha256[i], &hashed);
    if (!err && hashed != f->expanded)
        return bad(c, "exposures_sha256", f->expanded ? "there" : "for this form");
    if (err) return err;
    sherd_diag why = { .code = SHERD_OK };
    err = sherd__metafile_add(f, &op, &why);
    if (err == SHERD_EINVAL) err = SHERD_EFORMAT;
    return err ? sherd__fail(c->d, err, HINT, "%s: manifest: %s%s", c->where, c->place, why.message)
               : SHERD_OK;
}

static int get_operations(context *c, sherd__metafile *f, json_t *root)
{
    json_t *list = json_object_get(root, "operations");
    size_t count = json_array_size(list);
    if (!json_is_array(list) || count > SHERD__META_OPERATIONS_MAX)
        return bad(c, "operations", "a list of at most 4096");
    f->exposures_sha256 = sherd__calloc(count, sizeof *f->exposures_sha256);
    if (!f->exposures_sha256) return sherd__fail_memory(c->d, "%s", c->where);
    for (size_t i = 0; i < count; i++) {
        int err = get_operation(c, f, json_array_get(list, i), i);
        if (err) return err;
    }
    return SHERD_OK;
}

/* ---- the whole manifest ---------------------------------------------------------------------- */

static int get_group(const context *c, json_t *root, uint32_t *group)
{
    uint64_t n = 0;
    const char *word = json_string_value(json_object_get(root, "group"));
    *group = 0;
    if (word) return strcmp(word, "all") == 0 ? SHERD_OK : bad(c, "group", "a number or \"all\"");
    int err = get_uint(c, root, "group", 1, UINT32_MAX, &n);
    if (!err) *group = (uint32_t)n;
    return err;
}

static int get_settings(const context *c, json_t *root, sherd_meta_settings *s)
{
    uint64_t nodes = 0;
    json_t *shuffle = json_object_get(root, "shuffle_rows");
    int err = get_word(c, root, "scheme", "permute", NULL, NULL);
    if (!err) err = get_uint(c, root, "nodes", 1, UINT16_MAX, &nodes);
    if (!err) err = get_group(c, root, &s->group);
    if (!err) err = get_word(c, root, "exposure", "uniform", "balanced", &s->balanced);
    if (!err && !json_is_boolean(shuffle)) err = bad(c, "shuffle_rows", "true or false");
    if (err) return err;
    s->nodes = (uint32_t)nodes;
    s->shuffle_rows = json_is_true(shuffle);
    return SHERD_OK;
}

static int get_file(context *c, sherd__metafile *f, json_t *root)
{
    uint64_t format = 0;
    if (!json_is_object(root)) return bad(c, "manifest", "a JSON object");
    int err = get_uint(c, root, "format", 0, UINT32_MAX, &format);
    if (!err && format != SHERD__META_FORMAT)
        err = sherd__fail(c->d, SHERD_EFORMAT, "read it with the version that wrote it",
                          "%s: is of metadata format %" PRIu64 ", %d is read", c->where, format,
                          SHERD__META_FORMAT);
    if (!err) err = only_keys(c, root, file_keys);
    if (!err) err = get_word(c, root, "form", "seed", "expanded", &f->expanded);
    if (!err && !json_is_string(json_object_get(root, "tool"))) err = bad(c, "tool", "a text");
    if (!err) err = get_settings(c, root, &f->settings);
    if (!err) err = get_digest(c, root, "seed_commitment", f->commitment, NULL);
    return err ? err : get_operations(c, f, root);
}

int sherd__manifest_parse(sherd__metafile *f, const char *text, size_t len, const char *where,
                          sherd_diag *d)
{
    context c = { .where = where, .d = d };
    json_error_t e;
    json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &e);
    if (!root && json_error_code(&e) == json_error_out_of_memory)
        return sherd__fail_memory(d, "%s", where);
    if (!root)
        return sherd__fail(d, SHERD_EFORMAT, HINT, "%s: manifest: byte %d: %s", where, e.position,
                           e.text);
    int err = get_file(&c, f, root);
    json_decref(root);
    return err;
}

/* ---- writing --------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static int add(sherd__buf *out, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof text) return SHERD_EINTERNAL;
    return sherd__buf_append(out, text, (size_t)n);
}

static int add_operation(sherd__buf *out, const sherd_meta_operation *op, const uint8_t *sha256)
{
    char hex[HEX_SIZE];
    int err = add(out, "{\"name\":\"%s\",\"kind\":\"%s\",\"shape\":[%" PRIu64 ",", op->name,
                  sherd_op_name(op->kind), op->n);
    if (!err && op->kind == SHERD_OP_PRODUCT) err = add(out, "%" PRIu64 ",", op->k);
    if (!err) err = add(out, "%" PRIu64 "]", op->m);
    if (!err && op->used)
        err = add(out, ",\"operands\":\"%s\"", sodium_bin2hex(hex, sizeof hex, op->operands, 32));
    if (!err && sha256)
        err = add(out, ",\"exposures_sha256\":\"%s\"", sodium_bin2hex(hex, sizeof hex, sha256, 32));
    return err ? err : add(out, "}");
}

int sherd__manifest_format(const sherd__metafile *f, bool expanded,
                           const uint8_t (*exposures_sha256)[32], sherd__buf *out)
{
    const sherd_meta_settings *s = &f->settings;
    char hex[HEX_SIZE], group[16] = "\"all\"";
    if (s->group) snprintf(group, sizeof group, "%" PRIu32, s->group);
    int err = add(out,
                  "{\"format\":%d,\"tool\":\"sherd "
                  "%s\",\"form\":\"%s\",\"scheme\":\"permute\",\"nodes\":%" PRIu32
                  ",\"group\":%s,\"exposure\":\"%s\",\"shuffle_rows\":%s,\n\"seed_commitment\":\"%"
                  "s\",\n\"operations\":[",
                  SHERD__META_FORMAT, sherd_version(), expanded ? "expanded" : "seed", s->nodes,
                  group, s->balanced ? "balanced" : "uniform", s->shuffle_rows ? "true" : "false",
                  sodium_bin2hex(hex, sizeof hex, f->commitment, 32));
    for (size_t i = 0; i < f->count && !err; i++) {
        err = add(out, i ? ",\n" : "\n");
        if (!err) err = add_operation(out, &f->ops[i], expanded ? exposures_sha256[i] : NULL);
    }
    return err ? err : add(out, "\n]}\n");
}
