/*
 * The members of a certificate. Most have simple types: one table gives the position of each in the
 * JSON and in the struct, so that reading and writing stay consistent. Matrices, lists, and the two
 * members that are either a word or a number are handled by separate code. The input is not
 * trusted: every member must be present, of its type and in its range. Unknown members are ignored
 * (the signature covers them).
 */
#include "store/certificate_json.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/bytes.h"
#include "core/diag.h"

#define SCHEMA "sherd/certificate/1"

/* Ranges of what a coordinator can truthfully state. */
enum { PRIME_MAX = (1 << 24) - 1, MODULUS_BITS_MAX = 127, ERROR_LOG2_MIN = -100000 };

typedef enum kind { TEXT, BOOL, U32, I32, DIGEST } kind;

static const struct member {
    const char *group, *name; /* group NULL: a member of the root */
    kind kind;
    size_t at, size; /* in sherd__certificate */
    size_t flag_at;  /* DIGEST: offset of the bool that says whether it is present */
} members[] = {
#define AT(field) offsetof(sherd__certificate, field), sizeof(((sherd__certificate *)0)->field)
    { NULL, "operation", TEXT, AT(operation), 0 },
    { "arithmetic", "norms_leaked", BOOL, AT(norms_leaked), 0 },
    { "scheme", "name", TEXT, AT(scheme), 0 },
    { "scheme", "exposure", TEXT, AT(exposure), 0 },
    { "scheme", "shuffle_rows", BOOL, AT(shuffle_rows), 0 },
    { "scheme", "colluding", U32, AT(colluding), 0 },
    { "scheme", "seed_commitment", DIGEST, AT(seed_commitment),
      offsetof(sherd__certificate, has_seed) },
    { "scheme", "reused_metadata", BOOL, AT(reused_metadata), 0 },
    { "verification", "method", TEXT, AT(check), 0 },
    { "verification", "freivalds_trials", U32, AT(freivalds_trials), 0 },
    { "verification", "freivalds_modulus_bits", U32, AT(freivalds_modulus_bits), 0 },
    { "verification", "freivalds_error_log2", I32, AT(freivalds_error_log2), 0 },
    { "verification", "sample_missed_ppm", U32, AT(sample_missed_ppm), 0 },
    { "nodes", "count", U32, AT(nodes), 0 },
    { "nodes", "domains", U32, AT(domains), 0 },
    { "nodes", "domains_simulated", BOOL, AT(domains_simulated), 0 },
    { "versions", "sherd", TEXT, AT(sherd_version), 0 },
    { "versions", "protocol", TEXT, AT(protocol_version), 0 },
    { "versions", "blas", TEXT, AT(blas_version), 0 },
#undef AT
};

static const char *const groups[] = { "arithmetic", "scheme", "verification", "nodes", "versions" };
static const char *const checks[] = { "freivalds", "freivalds-float", "sample" };
/* indexed by sherd__certified */
static const char *const verdicts[] = { "unchecked", "yes", "no" };

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* ---- to JSON --------------------------------------------------------------------------------- */

static json_t *digest_json(const sherd__digest *g)
{
    char text[SHERD__DIGEST_TEXT];
    sherd__digest_text(g, text);
    return json_string(text);
}

static json_t *member_json(const sherd__certificate *c, const struct member *m)
{
    const uint8_t *at = (const uint8_t *)c + m->at;
    uint32_t u;
    int32_t i;
    switch (m->kind) {
    case TEXT: return json_stringn((const char *)at, strnlen((const char *)at, m->size));
    case BOOL: return json_boolean(*(const bool *)at);
    case U32: memcpy(&u, at, sizeof u); return json_integer(u);
    case I32: memcpy(&i, at, sizeof i); return json_integer(i);
    case DIGEST:
        if (!*((const bool *)((const uint8_t *)c + m->flag_at))) return json_null();
        return digest_json((const sherd__digest *)(const void *)at);
    }
    return NULL;
}

static json_t *matrix_json(const sherd__certificate_matrix *m, bool digest)
{
    json_t *o = json_object();
    int bad = json_object_set_new(o, "dtype", json_string(sherd_dtype_name(m->dtype)));
    json_t *shape = json_array();
    bad |= json_object_set_new(o, "shape", shape);
    bad |= json_array_append_new(shape, json_integer((json_int_t)m->rows));
    bad |= json_array_append_new(shape, json_integer((json_int_t)m->cols));
    bad |= json_object_set_new(o, "sha256", digest ? digest_json(&m->digest) : json_null());
    if (!bad) return o;
    json_decref(o);
    return NULL;
}

static json_t *numbers_json(const uint32_t *v, size_t len)
{
    json_t *a = json_array();
    int bad = 0;
    for (size_t i = 0; i < len; i++) bad |= json_array_append_new(a, json_integer(v[i]));
    if (!bad) return a;
    json_decref(a);
    return NULL;
}

static json_t *lines_json(const char *first, size_t pitch, size_t len)
{
    json_t *a = json_array();
    int bad = 0;
    for (size_t i = 0; i < len; i++) {
        const char *line = first + i * pitch;
        bad |= json_array_append_new(a, json_stringn(line, strnlen(line, pitch)));
    }
    if (!bad) return a;
    json_decref(a);
    return NULL;
}

/* Converts at most `size` bytes of an untrusted text to a printable JSON string. */
static json_t *plain_json(const char *text, size_t size)
{
    char plain[64];
    size_t len = strnlen(text, size < sizeof plain ? size : sizeof plain - 1);
    for (size_t i = 0; i < len; i++) plain[i] = text[i] < 0x20 || text[i] >= 0x7f ? '?' : text[i];
    return json_stringn(plain, len);
}

static json_t *list_json(const sherd__certificate *c)
{
    json_t *list = json_array();
    int bad = 0;
    for (uint32_t i = 0; i < c->list_len; i++) {
        const sherd__certificate_node *n = &c->list[i];
        json_t *o = json_object();
        bad |= json_object_set_new(o, "name", plain_json(n->name, sizeof n->name));
        bad |= json_object_set_new(o, "domain", plain_json(n->domain, sizeof n->domain));
        bad |= json_object_set_new(o, "key", plain_json(n->key, sizeof n->key));
        bad |= json_array_append_new(list, o);
    }
    if (!bad) return list;
    json_decref(list);
    return NULL;
}

static json_t *time_json(int64_t t)
{
    struct tm tm;
    char text[40];
    time_t when = (time_t)t;
    if (!gmtime_r(&when, &tm) || strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
        return NULL;
    return json_string(text);
}

/* Sets the members that are not in the table. */
static int set_special(const sherd__certificate *c, json_t *root)
{
    json_t *arithmetic = json_object_get(root, "arithmetic"), *inputs = json_array();
    int bad = json_object_set_new(root, "schema", json_string(SCHEMA));
    bad |= json_object_set_new(root, "created", time_json(c->created_unix));
    if (c->has_inputs)
        bad |= json_object_set_new(root, "notice",
                                   json_string(
                                       "Whoever holds this can test guesses of the inputs."));
    bad |= json_object_set_new(root, "inputs", inputs);
    for (uint32_t i = 0; i < c->inputs_len; i++)
        bad |= json_array_append_new(inputs, matrix_json(&c->inputs[i], c->has_inputs));
    bad |= json_object_set_new(root, "result", matrix_json(&c->result, true));
    bad |= json_object_set_new(arithmetic, "mode", json_string(c->exact ? "exact" : "float"));
    bad |= json_object_set_new(arithmetic, "bits", numbers_json(c->bits, c->exact ? 2 : 0));
    bad |= json_object_set_new(arithmetic, "primes", numbers_json(c->primes, c->primes_len));
    if (c->grouped)
        bad |= json_object_set_new(json_object_get(root, "scheme"), "group",
                                   c->group ? json_integer((json_int_t)c->group)
                                            : json_string("all"));
    bad |= json_object_set_new(json_object_get(root, "verification"), "equal",
                               json_string(verdicts[c->equal]));
    bad |= json_object_set_new(json_object_get(root, "nodes"), "cores",
                               lines_json(c->cores[0], sizeof c->cores[0], c->cores_len));
    if (c->list_len)
        bad |= json_object_set_new(json_object_get(root, "nodes"), "list", list_json(c));
    bad |= json_object_set_new(root, "warnings",
                               lines_json(c->warnings[0], sizeof c->warnings[0], c->warnings_len));
    return bad;
}

static bool known_check(const char *name)
{
    for (size_t i = 0; i < COUNT(checks); i++)
        if (strcmp(name, checks[i]) == 0) return true;
    return false;
}

static bool writable(const sherd__certificate_matrix *m)
{
    return sherd_dtype_name(m->dtype) && sherd__shape_ok(m->rows, m->cols);
}

static const char *out_of_range(const sherd__certificate *c)
{
    if (c->inputs_len < 1 || c->inputs_len > 2) return "inputs";
    for (uint32_t i = 0; i < c->inputs_len; i++)
        if (!writable(&c->inputs[i])) return "inputs";
    if (!writable(&c->result)) return "result";
    if (c->primes_len > COUNT(c->primes)) return "primes";
    if (!known_check(c->check)) return "verification.method";
    if (c->group > INT64_MAX) return "group";
    if ((unsigned)c->equal >= COUNT(verdicts)) return "equal";
    if (c->cores_len > SHERD__CERTIFICATE_CORES) return "cores";
    if (c->list_len > SHERD__CERTIFICATE_NODES || (c->list_len && c->list_len != c->nodes))
        return "nodes.list";
    if (c->warnings_len > SHERD__CERTIFICATE_WARNINGS) return "warnings";
    return NULL;
}

int sherd__certificate_to_json(const sherd__certificate *c, json_t **out, sherd_diag *d)
{
    const char *wrong = out_of_range(c);
    *out = NULL;
    if (wrong) return sherd__fail(d, SHERD_EINVAL, NULL, "certificate: %s out of range", wrong);
    json_t *root = json_object();
    int bad = root ? 0 : -1;
    for (size_t i = 0; i < COUNT(groups); i++)
        bad |= json_object_set_new(root, groups[i], json_object());
    for (size_t i = 0; i < COUNT(members); i++) {
        const struct member *m = &members[i];
        json_t *group = m->group ? json_object_get(root, m->group) : root;
        bad |= json_object_set_new(group, m->name, member_json(c, m));
    }
    if (!bad) bad = set_special(c, root);
    if (bad) {
        json_decref(root);
        return sherd__fail_memory(d, "the certificate");
    }
    *out = root;
    return SHERD_OK;
}

/* ---- from JSON ------------------------------------------------------------------------------- */

typedef struct reader {
    const char *where;
    const json_t *root;
    sherd_diag *d;
} reader;

/* Describes the actual value in a few words, for messages. */
static void describe(char *out, size_t size, const json_t *group, const char *name)
{
    const json_t *v = json_object_get(group, name);
    char text[64] = "";
    size_t len = v && !json_is_array(v) && !json_is_object(v)
                     ? json_dumpb(v, text, sizeof text - 1, JSON_ENCODE_ANY | JSON_ENSURE_ASCII)
                     : 0;
    if (!json_is_object(group)) *out = '\0';
    else if (!v) snprintf(out, size, ", found nothing");
    else if (len > 0 && len < sizeof text) snprintf(out, size, ", found %.*s", (int)len, text);
    else snprintf(out, size, ", found %s", json_is_array(v) ? "another list" : "something else");
}

static int wrong(const reader *r, const char *group, const char *name, const char *expected)
{
    char found[96];
    describe(found, sizeof found, group ? json_object_get(r->root, group) : r->root, name);
    return sherd__fail(r->d, SHERD_EFORMAT, "take the file as sherd wrote it",
                       "%s: certificate member %s%s%s: expected %s%s", r->where, group ? group : "",
                       group ? "." : "", name, expected, found);
}

static bool read_digest(sherd__digest *out, const json_t *v)
{
    if (!json_is_string(v) || json_string_length(v) != SHERD__DIGEST_TEXT - 1) return false;
    const char *text = json_string_value(v);
    for (size_t i = 0; i < SHERD__DIGEST_BYTES; i++) {
        static const char digits[] = "0123456789abcdef";
        const char *hi = strchr(digits, text[2 * i]), *lo = strchr(digits, text[2 * i + 1]);
        if (!hi || !lo || !*hi || !*lo) return false;
        out->sha256[i] = (uint8_t)((hi - digits) << 4 | (lo - digits));
    }
    return true;
}

static bool read_text(char *out, size_t size, const json_t *v)
{
    size_t len = json_string_length(v);
    if (!json_is_string(v) || len >= size) return false;
    memcpy(out, json_string_value(v), len);
    out[len] = '\0';
    return true;
}

static bool read_u64(uint64_t *out, const json_t *v, uint64_t max)
{
    json_int_t n = json_integer_value(v);
    if (!json_is_integer(v) || n < 0 || (uint64_t)n > max) return false;
    *out = (uint64_t)n;
    return true;
}

static int read_member(sherd__certificate *c, const struct member *m, const json_t *v,
                       const reader *r)
{
    uint8_t *at = (uint8_t *)c + m->at;
    uint64_t u;
    json_int_t i = json_integer_value(v);
    switch (m->kind) {
    case TEXT:
        return read_text((char *)at, m->size, v) ? SHERD_OK : wrong(r, m->group, m->name, "a word");
    case BOOL:
        if (!json_is_boolean(v)) return wrong(r, m->group, m->name, "true or false");
        *(bool *)at = json_is_true(v);
        return SHERD_OK;
    case U32:
        if (!read_u64(&u, v, UINT32_MAX)) return wrong(r, m->group, m->name, "a number");
        memcpy(at, &(uint32_t){ (uint32_t)u }, sizeof(uint32_t));
        return SHERD_OK;
    case I32:
        if (!json_is_integer(v) || i < INT32_MIN || i > INT32_MAX)
            return wrong(r, m->group, m->name, "a number");
        memcpy(at, &(int32_t){ (int32_t)i }, sizeof(int32_t));
        return SHERD_OK;
    case DIGEST:
        *(bool *)((uint8_t *)c + m->flag_at) = !json_is_null(v);
        if (json_is_null(v) || read_digest((sherd__digest *)(void *)at, v)) return SHERD_OK;
        return wrong(r, m->group, m->name, "64 hexadecimal digits");
    }
    return SHERD_EINTERNAL;
}

static sherd_dtype dtype_of(const char *name)
{
    for (int t = SHERD_F64; t <= SHERD_I64; t++)
        if (name && !strcmp(name, sherd_dtype_name((sherd_dtype)t))) return (sherd_dtype)t;
    return (sherd_dtype)0;
}

static int read_matrix(sherd__certificate_matrix *m, bool *has_digest, const json_t *v,
                       const char *name, const reader *r)
{
    const json_t *shape = json_object_get(v, "shape"), *sum = json_object_get(v, "sha256");
    m->dtype = dtype_of(json_string_value(json_object_get(v, "dtype")));
    if (!m->dtype) return wrong(r, name, "dtype", "a dtype such as \"<f8\"");
    if (!json_is_array(shape) || json_array_size(shape) != 2 ||
        !read_u64(&m->rows, json_array_get(shape, 0), INT64_MAX) ||
        !read_u64(&m->cols, json_array_get(shape, 1), INT64_MAX))
        return wrong(r, name, "shape", "[rows, columns]");
    if (!sherd__shape_ok(m->rows, m->cols))
        return wrong(r, name, "shape", "dimensions of " SHERD__DIMENSION_LIMITS);
    *has_digest = !json_is_null(sum);
    if (!json_is_null(sum) && !read_digest(&m->digest, sum))
        return wrong(r, name, "sha256", "64 hexadecimal digits");
    return SHERD_OK;
}

static int read_matrices(sherd__certificate *c, const json_t *root, const reader *r)
{
    const json_t *inputs = json_object_get(root, "inputs");
    bool given = false;
    size_t len = json_array_size(inputs), with = 0;
    if (len < 1 || len > 2) return wrong(r, NULL, "inputs", "one or two matrices");
    for (size_t i = 0; i < len; i++) {
        int err = read_matrix(&c->inputs[i], &given, json_array_get(inputs, i), "inputs", r);
        if (err) return err;
        with += given;
    }
    if (with != 0 && with != len) return wrong(r, "inputs", "sha256", "all digests or none");
    c->inputs_len = (uint32_t)len;
    c->has_inputs = with > 0;
    int err = read_matrix(&c->result, &given, json_object_get(root, "result"), "result", r);
    if (!err && !given) err = wrong(r, "result", "sha256", "64 hexadecimal digits");
    return err;
}

/* Reads a list of numbers into out[0..len_max). */
static bool read_numbers(uint32_t *out, uint32_t *len, size_t len_max, const json_t *v)
{
    uint64_t n;
    if (!json_is_array(v) || json_array_size(v) > len_max) return false;
    for (size_t i = 0; i < json_array_size(v); i++) {
        if (!read_u64(&n, json_array_get(v, i), UINT32_MAX)) return false;
        out[i] = (uint32_t)n;
    }
    *len = (uint32_t)json_array_size(v);
    return true;
}

static bool read_lines(char *first, size_t pitch, uint32_t *len, size_t len_max, const json_t *v)
{
    if (!json_is_array(v) || json_array_size(v) > len_max) return false;
    for (size_t i = 0; i < json_array_size(v); i++)
        if (!read_text(first + i * pitch, pitch, json_array_get(v, i))) return false;
    *len = (uint32_t)json_array_size(v);
    return true;
}

static int read_arithmetic(sherd__certificate *c, const json_t *v, const reader *r)
{
    const char *mode = json_string_value(json_object_get(v, "mode"));
    uint32_t bits_len = 0;
    if (!mode || (strcmp(mode, "exact") && strcmp(mode, "float")))
        return wrong(r, "arithmetic", "mode", "\"exact\" or \"float\"");
    c->exact = !strcmp(mode, "exact");
    if (!read_numbers(c->bits, &bits_len, 2, json_object_get(v, "bits")) ||
        bits_len != (c->exact ? 2 : 0) || c->bits[0] > 64 || c->bits[1] > 64)
        return wrong(r, "arithmetic", "bits", "two widths of at most 64 if exact, else none");
    if (!read_numbers(c->primes, &c->primes_len, COUNT(c->primes), json_object_get(v, "primes")))
        return wrong(r, "arithmetic", "primes", "at most eight numbers");
    for (uint32_t i = 0; i < c->primes_len; i++)
        if (c->primes[i] % 2 == 0 || c->primes[i] < 3 || c->primes[i] > PRIME_MAX)
            return wrong(r, "arithmetic", "primes", "odd primes below 2^24");
    return SHERD_OK;
}

/* A valid signature says who claims a number, not that it is possible. */
static int check_claims(const sherd__certificate *c, const reader *r)
{
    if (c->colluding > c->domains) return wrong(r, "scheme", "colluding", "at most nodes.domains");
    if (c->freivalds_modulus_bits > MODULUS_BITS_MAX)
        return wrong(r, "verification", "freivalds_modulus_bits", "at most 127");
    if (c->freivalds_error_log2 > 0 || c->freivalds_error_log2 < ERROR_LOG2_MIN)
        return wrong(r, "verification", "freivalds_error_log2", "-100000 to 0");
    if (c->sample_missed_ppm > 1000000)
        return wrong(r, "verification", "sample_missed_ppm", "at most 1000000");
    return SHERD_OK;
}

static bool read_time(int64_t *out, const char *text)
{
    struct tm tm = { 0 };
    const char *end = text ? strptime(text, "%Y-%m-%dT%H:%M:%SZ", &tm) : NULL;
    if (!end || *end) return false;
    *out = (int64_t)timegm(&tm);
    return true;
}

/* Reads the list of nodes. Certificates of earlier versions have none. */
static int read_list(sherd__certificate *c, const json_t *list, const reader *r)
{
    size_t len = json_array_size(list);
    if (!list) return SHERD_OK;
    if (!json_is_array(list) || len > SHERD__CERTIFICATE_NODES)
        return wrong(r, "nodes", "list", "a list of nodes, 3000 at most");
    if (len && sherd__certificate_list(c, (uint32_t)len))
        return sherd__fail_memory(r->d, "%s", r->where);
    for (size_t i = 0; i < len; i++) {
        const json_t *o = json_array_get(list, i);
        sherd__certificate_node *n = &c->list[i];
        if (!read_text(n->name, sizeof n->name, json_object_get(o, "name")) ||
            !read_text(n->domain, sizeof n->domain, json_object_get(o, "domain")) ||
            !read_text(n->key, sizeof n->key, json_object_get(o, "key")))
            return wrong(r, "nodes", "list", "each node's name, domain and key");
    }
    return SHERD_OK;
}

static int read_special(sherd__certificate *c, const json_t *root, const reader *r)
{
    const json_t *group = json_object_get(json_object_get(root, "scheme"), "group");
    const json_t *nodes = json_object_get(root, "nodes");
    const char *equal = json_string_value(
        json_object_get(json_object_get(root, "verification"), "equal"));
    bool all = json_is_string(group) && !strcmp(json_string_value(group), "all");
    size_t verdict = 0;
    if (!read_time(&c->created_unix, json_string_value(json_object_get(root, "created"))))
        return wrong(r, NULL, "created", "a time, 2026-01-31T12:00:00Z");
    c->grouped = group;
    if (group && !all && (!read_u64(&c->group, group, INT64_MAX) || c->group == 0))
        return wrong(r, "scheme", "group", "\"all\" or a number from 1");
    while (verdict < COUNT(verdicts) && (!equal || strcmp(equal, verdicts[verdict]))) verdict++;
    if (verdict == COUNT(verdicts))
        return wrong(r, "verification", "equal", "\"yes\", \"no\" or \"unchecked\"");
    c->equal = (sherd__certified)verdict;
    if (!known_check(c->check))
        return wrong(r, "verification", "method",
                     "\"freivalds\", \"freivalds-float\" or "
                     "\"sample\"");
    if (!read_lines(c->cores[0], sizeof c->cores[0], &c->cores_len, SHERD__CERTIFICATE_CORES,
                    json_object_get(nodes, "cores")))
        return wrong(r, "nodes", "cores", "a list of names");
    if (!read_lines(c->warnings[0], sizeof c->warnings[0], &c->warnings_len,
                    SHERD__CERTIFICATE_WARNINGS, json_object_get(root, "warnings")))
        return wrong(r, NULL, "warnings", "a list of sentences");
    int err = read_list(c, json_object_get(nodes, "list"), r);
    return err ? err : read_arithmetic(c, json_object_get(root, "arithmetic"), r);
}

int sherd__certificate_from_json(sherd__certificate *out, const json_t *root, const char *where,
                                 sherd_diag *d)
{
    reader r = { where, root, d };
    const char *schema = json_string_value(json_object_get(root, "schema"));
    if (!schema || strncmp(schema, "sherd/certificate/", 18))
        return sherd__fail(d, SHERD_EFORMAT, "give a file that --certificate wrote",
                           "%s: is JSON, but not a certificate (no \"schema\": \"%s\")", where,
                           SCHEMA);
    if (strcmp(schema, SCHEMA))
        return sherd__fail(d, SHERD_EVERSION, "use the version of sherd that wrote it",
                           "%s: has schema %.60s, %s is read", where, schema, SCHEMA);
    int err = read_matrices(out, root, &r);
    for (size_t i = 0; i < COUNT(members) && !err; i++) {
        const struct member *m = &members[i];
        const json_t *group = m->group ? json_object_get(root, m->group) : root;
        err = read_member(out, m, json_object_get(group, m->name), &r);
    }
    if (!err) err = check_claims(out, &r);
    return err ? err : read_special(out, root, &r);
}
