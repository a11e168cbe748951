/*
 * The header of a .npy file, which numpy writes as a Python dictionary. This parser accepts exactly
 * the dictionaries that numpy writes (three keys, a string, a boolean, a tuple of integers, any
 * order and spacing), with its own tokenizer, and evaluates nothing. The header is not trusted:
 * every number is bounded before it is used, and the caller compares the implied size with the
 * file's.
 */
#include "store/npy_header.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/bytes.h"
#include "core/diag.h"
#include "matrix/view.h"

#define RESAVE "re-save it with numpy.save(path, array)"

typedef struct cursor {
    const uint8_t *text;
    size_t at, end;
    size_t base; /* offset of text[0] in the file */
    const char *where;
    sherd_diag *d;
} cursor;

static int bad(const cursor *c, const char *expected)
{
    if (c->at >= c->end)
        return sherd__fail(c->d, SHERD_EFORMAT, RESAVE,
                           "%s: byte %zu: the header ends where %s was expected", c->where,
                           c->base + c->at, expected);
    uint8_t found = c->text[c->at];
    bool shown = found >= 0x20 && found < 0x7f;
    return sherd__fail(c->d, SHERD_EFORMAT, RESAVE,
                       "%s: byte %zu: expected %s, found %s%c%s (0x%02x)", c->where,
                       c->base + c->at, expected, shown ? "'" : "", shown ? found : '?',
                       shown ? "'" : "", found);
}

static void skip_space(cursor *c)
{
    while (c->at < c->end && strchr(" \t\r\n\f", c->text[c->at]) && c->text[c->at]) c->at++;
}

static bool take(cursor *c, char ch)
{
    skip_space(c);
    if (c->at >= c->end || c->text[c->at] != (uint8_t)ch) return false;
    c->at++;
    return true;
}

/* Parses a quoted string without escapes into out. */
static int take_string(cursor *c, char *out, size_t size, const char *expected)
{
    skip_space(c);
    if (c->at >= c->end || (c->text[c->at] != '\'' && c->text[c->at] != '"'))
        return bad(c, expected);
    uint8_t quote = c->text[c->at++];
    size_t n = 0;
    while (c->at < c->end && c->text[c->at] != quote) {
        uint8_t ch = c->text[c->at];
        if (ch < 0x20 || ch >= 0x7f || ch == '\\' || n + 1 >= size)
            return bad(c, "a short plain string");
        out[n++] = (char)ch;
        c->at++;
    }
    if (c->at >= c->end) return bad(c, "a closing quote");
    c->at++;
    out[n] = '\0';
    return SHERD_OK;
}

static bool take_word(cursor *c, const char *word)
{
    size_t n = strlen(word);
    skip_space(c);
    if (c->end - c->at < n || memcmp(c->text + c->at, word, n) != 0) return false;
    c->at += n;
    return true;
}

static int take_number(cursor *c, uint64_t *out)
{
    skip_space(c);
    if (c->at >= c->end || c->text[c->at] < '0' || c->text[c->at] > '9')
        return bad(c, "a length (0 or more)");
    uint64_t v = 0;
    for (; c->at < c->end && c->text[c->at] >= '0' && c->text[c->at] <= '9'; c->at++) {
        if (__builtin_mul_overflow(v, 10u, &v) ||
            __builtin_add_overflow(v, (uint64_t)(c->text[c->at] - '0'), &v))
            return sherd__fail(c->d, SHERD_ESHAPE, RESAVE,
                               "%s: byte %zu: a length of more than 64 bits", c->where,
                               c->base + c->at);
    }
    /* written by numpy under Python 2 */
    (void)(c->at < c->end && c->text[c->at] == 'L' && c->at++);
    *out = v;
    return SHERD_OK;
}

/* ---- dtype ----------------------------------------------------------------------------------- */

static const struct {
    char kind, size;
    sherd_dtype dtype;
} kinds[] = {
    { 'f', '8', SHERD_F64 }, { 'f', '4', SHERD_F32 }, { 'u', '1', SHERD_U8 },
    { 'u', '2', SHERD_U16 }, { 'u', '4', SHERD_U32 }, { 'i', '1', SHERD_I8 },
    { 'i', '2', SHERD_I16 }, { 'i', '4', SHERD_I32 }, { 'i', '8', SHERD_I64 },
};

static int refuse_dtype(const cursor *c, const char *descr)
{
    const char *why = "is not a dtype that is read", *hint = "re-save it with .astype('float64')";
    switch (descr[0] ? descr[1] : '\0') {
    case 'O':
        why = "holds Python objects, which are never read";
        hint = "re-save it with numpy.save(path, array.astype(float), allow_pickle=False)";
        break;
    case 'c':
        why = "is complex";
        hint = "save real and imaginary parts separately";
        break;
    case 'b':
        why = "is boolean";
        hint = "re-save it with .astype('uint8')";
        break;
    case 'U':
    case 'S': why = "is text"; break;
    case 'V':
        why = "is a structure";
        hint = "save each field separately";
        break;
    case 'u':
        hint = "re-save it with .astype('int64') if the values fit, else .astype('float64')";
        break;
    case 'f':
        if (descr[2] == '2') hint = "re-save it with .astype('float32')";
        break;
    default: break;
    }
    return sherd__fail(c->d, SHERD_EFORMAT, hint,
                       "%s: dtype '%s' %s; " SHERD__DTYPES_READ " are read", c->where, descr, why);
}

static int parse_dtype(const cursor *c, const char *descr, sherd_dtype *out)
{
    if (strlen(descr) != 3 || !strchr("<>|=", descr[0])) return refuse_dtype(c, descr);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (descr[1] != kinds[i].kind || descr[2] != kinds[i].size) continue;
        if (descr[0] == '>' && descr[2] != '1')
            return sherd__fail(c->d, SHERD_EFORMAT,
                               "re-save it with .astype(array.dtype.newbyteorder('<'))",
                               "%s: dtype '%s' is big endian, little endian is read", c->where,
                               descr);
        if (descr[0] == '|' && descr[2] != '1') return refuse_dtype(c, descr);
        *out = kinds[i].dtype;
        return SHERD_OK;
    }
    return refuse_dtype(c, descr);
}

/* ---- the dictionary -------------------------------------------------------------------------- */

typedef struct dict {
    bool has_descr, has_order, has_shape, fortran;
    sherd_dtype dtype;
    unsigned ndim;
    uint64_t shape[2];
} dict;

static int parse_shape(cursor *c, dict *o)
{
    bool comma = true;
    if (!take(c, '(')) return bad(c, "a tuple of lengths");
    o->ndim = 0;
    while (!take(c, ')')) {
        uint64_t n = 0;
        if (!comma) return bad(c, "',' or ')'");
        int err = take_number(c, &n);
        if (err) return err;
        if (o->ndim < 2) o->shape[o->ndim] = n;
        o->ndim++;
        comma = take(c, ',');
        if (!comma && o->ndim == 1) return bad(c, "',' (a tuple of one ends in a comma)");
    }
    if (o->ndim <= 2) return SHERD_OK;
    return sherd__fail(c->d, SHERD_ESHAPE, "re-save it with .reshape(len(array), -1)",
                       "%s: has %u dimensions, at most 2 are read", c->where, o->ndim);
}

/* Parses "descr". A structured dtype, [('x', '<f8')], is a list; plain dtypes are strings. */
static int parse_descr(cursor *c, dict *o)
{
    char descr[32];
    skip_space(c);
    if (c->at < c->end && c->text[c->at] == '[')
        return sherd__fail(c->d, SHERD_EFORMAT, "save each field separately",
                           "%s: is an array of structures, one of plain numbers is read", c->where);
    int err = take_string(c, descr, sizeof descr, "a dtype string");
    return err ? err : parse_dtype(c, descr, &o->dtype);
}

static int parse_entry(cursor *c, dict *o)
{
    char key[16];
    size_t at = c->at;
    int err = take_string(c, key, sizeof key, "a key");
    if (err) return err;
    bool *seen = !strcmp(key, "descr")           ? &o->has_descr
                 : !strcmp(key, "fortran_order") ? &o->has_order
                 : !strcmp(key, "shape")         ? &o->has_shape
                                                 : NULL;
    if (!seen || *seen)
        return sherd__fail(c->d, SHERD_EFORMAT, RESAVE, "%s: byte %zu: %s key '%s' in the header",
                           c->where, c->base + at, seen ? "second" : "unknown", key);
    *seen = true;
    if (!take(c, ':')) return bad(c, "':'");
    if (seen == &o->has_descr) return parse_descr(c, o);
    if (seen == &o->has_shape) return parse_shape(c, o);
    o->fortran = take_word(c, "True");
    return o->fortran || take_word(c, "False") ? SHERD_OK : bad(c, "True or False");
}

static int parse_dict(cursor *c, dict *o)
{
    bool comma = true;
    if (!take(c, '{')) return bad(c, "'{'");
    while (!take(c, '}')) {
        if (!comma) return bad(c, "',' or '}'");
        skip_space(c);
        int err = parse_entry(c, o);
        if (err) return err;
        comma = take(c, ',');
    }
    skip_space(c);
    if (c->at != c->end) return bad(c, "padding");
    if (o->has_descr && o->has_order && o->has_shape) return SHERD_OK;
    return sherd__fail(c->d, SHERD_EFORMAT, RESAVE, "%s: the header has no '%s'", c->where,
                       !o->has_descr   ? "descr"
                       : !o->has_shape ? "shape"
                                       : "fortran_order");
}

/* ---- the whole header ------------------------------------------------------------------------ */

/* Parses magic and version. Returns the position and length of the dictionary. */
static int parse_prefix(const uint8_t *b, size_t len, const char *where, size_t *at,
                        size_t *dict_len, sherd_diag *d)
{
    static const uint8_t magic[6] = { 0x93, 'N', 'U', 'M', 'P', 'Y' };
    size_t known = len < sizeof magic ? len : sizeof magic;
    if (len == 0)
        return sherd__fail(d, SHERD_EFORMAT, RESAVE, "%s: is empty, not a .npy file", where);
    if (memcmp(b, magic, known) != 0) {
        bool zip = len >= 2 && b[0] == 'P' && b[1] == 'K';
        return sherd__fail(d, SHERD_EFORMAT,
                           zip ? "extract one array with numpy.save(path, numpy.load(file)[name])"
                               : RESAVE,
                           "%s: %s (it begins %02x %02x, a .npy file 93 4e)", where,
                           zip ? "is an .npz archive, not a .npy file" : "is not a .npy file", b[0],
                           len > 1 ? b[1] : 0);
    }
    if (len >= 8 && (b[6] < 1 || b[6] > 2 || b[7] != 0))
        return sherd__fail(d, SHERD_EFORMAT, RESAVE,
                           "%s: is .npy format %u.%u, 1.0 and 2.0 are read", where, b[6], b[7]);
    *at = len >= 8 && b[6] == 2 ? 12 : 10;
    if (len < *at)
        return sherd__fail(d, SHERD_EFORMAT, RESAVE,
                           "%s: ends after %zu bytes, in the middle of its header", where, len);
    *dict_len = b[6] == 2 ? sherd__get_u32(b + 8) : sherd__get_u16(b + 8);
    if (*dict_len > SHERD__NPY_DICT_MAX)
        return sherd__fail(d, SHERD_EFORMAT, RESAVE,
                           "%s: claims a header of %zu bytes, at most %u are read", where,
                           *dict_len, SHERD__NPY_DICT_MAX);
    if (len - *at < *dict_len)
        return sherd__fail(d, SHERD_EFORMAT, "copy the file again",
                           "%s: truncated: its header needs %zu bytes, it has %zu", where,
                           *at + *dict_len, len);
    return SHERD_OK;
}

int sherd__npy_header_parse(sherd__npy_header *out, const uint8_t *bytes, size_t len,
                            const char *where, sherd_diag *d)
{
    size_t at = 0, dict_len = 0;
    dict o = { 0 };
    int err = parse_prefix(bytes, len, where, &at, &dict_len, d);
    if (err) return err;
    cursor c = { .text = bytes + at, .end = dict_len, .base = at, .where = where, .d = d };
    err = parse_dict(&c, &o);
    if (err) return err;
    size_t size = sherd_dtype_size(o.dtype), count = 0, data_len = 0, whole;
    uint64_t rows = o.ndim == 2 ? o.shape[0] : 1;
    uint64_t cols = o.ndim == 2 ? o.shape[1] : o.ndim == 1 ? o.shape[0] : 1;
    if (rows > PTRDIFF_MAX || cols > PTRDIFF_MAX || !sherd__mul(rows, cols, &count) ||
        !sherd__mul(count, size, &data_len) || !sherd__add(data_len, at + dict_len, &whole) ||
        whole > PTRDIFF_MAX)
        return sherd__fail(d, SHERD_ESHAPE, "copy the file again, or re-save it",
                           "%s: claims %" PRIu64 " x %" PRIu64 " values, too many for any file",
                           where, rows, cols);
    if (!sherd__shape_ok(rows, cols))
        return sherd__fail(d, SHERD_ESHAPE, "cut the array",
                           "%s: claims %" PRIu64 " x %" PRIu64
                           " values: a dimension is " SHERD__DIMENSION_LIMITS,
                           where, rows, cols);
    *out = (sherd__npy_header){ .dtype = o.dtype,
                                .fortran = o.fortran,
                                .ndim = o.ndim,
                                .rows = rows,
                                .cols = cols,
                                .data_at = at + dict_len,
                                .data_len = data_len };
    return SHERD_OK;
}

int sherd__npy_size_check(const sherd__npy_header *h, uint64_t file_len, const char *where,
                          sherd_diag *d)
{
    uint64_t need = (uint64_t)h->data_at + h->data_len;
    if (file_len == need) return SHERD_OK;
    return sherd__fail(d, SHERD_EFORMAT,
                       file_len < need ? "copy the file again: its end is missing"
                                       : "re-save it: something follows the array",
                       "%s: %s: %zu x %zu values of %zu bytes need %" PRIu64 " bytes with the "
                       "header, it has %" PRIu64,
                       where, file_len < need ? "truncated" : "too long", h->rows, h->cols,
                       sherd_dtype_size(h->dtype), need, file_len);
}

size_t sherd__npy_header_format(uint8_t out[SHERD__NPY_HEADER_OUT], sherd_dtype dtype,
                                unsigned ndim, size_t rows, size_t cols)
{
    char text[SHERD__NPY_HEADER_OUT], shape[48] = "()";
    if (ndim == 1) snprintf(shape, sizeof shape, "(%zu,)", cols);
    if (ndim >= 2) snprintf(shape, sizeof shape, "(%zu, %zu)", rows, cols);
    int n = snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }",
                     sherd_dtype_name(dtype), shape);
    size_t used = 10 + (size_t)n + 1, total = (used + 63) / 64 * 64;
    memcpy(out, "\x93NUMPY\x01\x00", 8);
    sherd__put_u16(out + 8, (uint16_t)(total - 10));
    memcpy(out + 10, text, (size_t)n);
    memset(out + 10 + n, ' ', total - 10 - (size_t)n);
    out[total - 1] = '\n';
    return total;
}
