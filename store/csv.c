/*
 * CSV reader: one cursor makes a single pass over the bytes. Lines are counted first, which bounds
 * the allocation: a file has at most half as many numbers as bytes, since each number takes a
 * character and a comma.
 *
 * Numbers of at most 19 digits whose value and power of ten are both exact doubles take one
 * correctly rounded operation (Clinger 1990, "How to read floating point numbers accurately",
 * section 3). All others are passed to strtod under the C locale.
 */
#include "store/csv.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/decimal.h"
#include "core/diag.h"
#include "store/file.h"

/* maximum bytes read from an input without a size, such as a pipe */
#define READ_MAX ((size_t)4 << 30)
#define SHOWN 40u /* bytes of a field shown in a message */

typedef struct field {
    const uint8_t *at; /* the text inside the quotes */
    size_t len;
    const uint8_t *begin; /* start of the field in the line, quote included */
    bool quoted, last;    /* last: last field of its line */
} field;

typedef struct reader {
    const uint8_t *at, *end;
    const uint8_t *line_at;
    size_t line;
    const char *where;
    const sherd__csv_want *want;
    /* determined from the first line */
    bool header;
    /* label: index of the only target column, or cols if there is not exactly one */
    size_t cols, targets, label;
    sherd__namelist names; /* fields of the header */
    uint32_t *role; /* of each column: the index of an input, TARGET, UNUSED; NULL: by `label` */
    /* determined from the first label */
    bool judged, named;
    sherd__namelist classes; /* in the order of labels */
    uint32_t *sorted;        /* labels in the order of their classes' names */
    sherd_diag *d;
} reader;

#define SEPARATOR_HINT                                                                             \
    "save it with commas between fields and points in numbers; pandas: read_csv(FILE, sep=';', "   \
    "decimal=',').to_csv(NEW, index=False)"

#define TARGET UINT32_MAX
#define UNUSED (UINT32_MAX - 1)

/* ---- messages -------------------------------------------------------------------------------- */

/* Formats a field for a message: printable ASCII, truncated. */
static const char *shown(const uint8_t *at, size_t len, char out[SHOWN + 8])
{
    size_t n = len < SHOWN ? len : SHOWN;
    if (len == 0) return "nothing";
    out[0] = '\'';
    for (size_t i = 0; i < n; i++) out[1 + i] = at[i] >= ' ' && at[i] < 0x7f ? (char)at[i] : '?';
    snprintf(out + 1 + n, 7, "%s'", len > n ? "..." : "");
    return out;
}

/* Reports an error with its position: "FILE:3:17: " followed by the message. */
__attribute__((format(printf, 5, 6))) static int fail(const reader *r, const uint8_t *at, int code,
                                                      const char *hint, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return sherd__fail(r->d, code, hint, "%s:%zu:%zu: %s", r->where, r->line,
                       (size_t)(at - r->line_at) + 1, text);
}

/* ---- fields ---------------------------------------------------------------------------------- */

/* Returns the length of the line end at p, or 0. */
static size_t line_end(const reader *r, const uint8_t *p)
{
    if (p == r->end) return 0;
    if (*p == '\n') return 1;
    return *p == '\r' && r->end - p > 1 && p[1] == '\n' ? 2 : 0;
}

static void end_field(reader *r, field *f, const uint8_t *p)
{
    size_t n = line_end(r, p);
    f->last = p == r->end || n > 0;
    r->at = p + (f->last ? n : 1);
}

static int quoted_field(reader *r, field *f)
{
    const uint8_t *p = r->at + 1;
    f->quoted = true;
    f->at = p;
    for (;; p++) {
        p = p < r->end ? memchr(p, '"', (size_t)(r->end - p)) : NULL;
        if (!p)
            return fail(r, f->begin, SHERD_EFORMAT, "close it, or leave all quotes out",
                        "a quote that is never closed");
        if (r->end - p > 1 && p[1] == '"') p++; /* "" means one quote */
        else break;
    }
    f->len = (size_t)(p - f->at);
    p++;
    if (p < r->end && *p != ',' && line_end(r, p) == 0)
        return fail(r, p, SHERD_EFORMAT, "a quote within quotes is written twice",
                    "expected a comma or the end of the line after a closing quote");
    end_field(r, f, p);
    return 0;
}

/* Reads the next field of the line. r->at moves from its first byte to the first byte after its
 * delimiter. */
static int next_field(reader *r, field *f)
{
    const uint8_t *p = r->at;
    *f = (field){ .at = p, .begin = p };
    if (p < r->end && *p == '"') return quoted_field(r, f);
    while (p < r->end && *p != ',' && *p != '\n' && *p != '\r' && *p != '"') p++;
    if (p < r->end && *p == '"')
        return fail(r, p, SHERD_EFORMAT, "quotes enclose a whole field", "a quote within a field");
    if (p < r->end && *p == '\r' && line_end(r, p) == 0)
        return fail(r, p, SHERD_EFORMAT, "end lines with LF, or with CR LF",
                    "a carriage return without a line feed");
    f->len = (size_t)(p - f->at);
    end_field(r, f, p);
    return 0;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static bool digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

typedef struct decimal {
    uint64_t digits; /* all digits as one number, if there are at most 19 */
    size_t len;      /* number of digits from the first non-zero one */
    int64_t exponent;
    bool negative;
} decimal;

static const uint8_t *take_digits(decimal *x, const uint8_t *p, const uint8_t *end)
{
    for (; p < end && digit(*p); p++) {
        if (x->len > 0 || *p != '0') x->len++;
        if (x->len <= 19) x->digits = x->digits * 10 + (uint64_t)(*p - '0');
    }
    return p;
}

/* Scans [+-] digits [. digits] [e [+-] digits], with a digit before or after the point. */
static bool scan(decimal *x, const uint8_t *p, const uint8_t *end)
{
    *x = (decimal){ 0 };
    if (p < end && (*p == '+' || *p == '-')) x->negative = *p++ == '-';
    const uint8_t *whole = p, *point;
    p = point = take_digits(x, p, end);
    if (p < end && *p == '.') {
        p = take_digits(x, p + 1, end);
        x->exponent = -(int64_t)(p - point - 1);
    }
    if (p - whole - (p != point) <= 0) return false;
    if (p == end) return true;
    if (*p != 'e' && *p != 'E') return false;
    p++;
    bool down = p < end && *p == '-';
    int64_t n = 0;
    if (p < end && (*p == '+' || *p == '-')) p++;
    if (p == end) return false;
    for (; p < end && digit(*p); p++) n = n < 100000 ? n * 10 + (*p - '0') : n;
    x->exponent += down ? -n : n;
    return p == end;
}

/* Converts a number that scan accepted. Returns false if the result is not finite. */
static bool to_double(const decimal *x, const field *f, double *out)
{
    static const double tens[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                   1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
    char text[SHERD__CSV_NUMBER_MAX + 1];
    if (x->len <= 19 && x->digits <= UINT64_C(1) << 53 && x->exponent >= -22 && x->exponent <= 22) {
        double v = (double)x->digits;
        v = x->exponent < 0 ? v / tens[-x->exponent] : v * tens[x->exponent];
        *out = x->negative ? -v : v;
        return true;
    }
    memcpy(text, f->at, f->len);
    text[f->len] = '\0';
    double v = sherd__decimal_read(text, NULL);
    if (!isfinite(v)) return false;
    *out = v;
    return true;
}

static void trim(field *f)
{
    while (f->len > 0 && (*f->at == ' ' || *f->at == '\t')) f->at++, f->len--;
    while (f->len > 0 && (f->at[f->len - 1] == ' ' || f->at[f->len - 1] == '\t')) f->len--;
}

/* Returns whether the text is this word of small letters, in any case and any locale. */
static bool is_word(const uint8_t *p, const uint8_t *end, const char *word)
{
    for (; p < end && *word && (*p | 0x20) == *word; p++) word++;
    return p == end && *word == '\0';
}

/* Reads the words that strtod takes for a NaN or an infinity. f is trimmed. */
static bool not_finite(const field *f, double *out)
{
    const uint8_t *p = f->at, *end = f->at + f->len;
    bool negative = p < end && *p == '-';
    if (p < end && (*p == '+' || *p == '-')) p++;
    bool nan = is_word(p, end, "nan");
    if (!nan && !is_word(p, end, "inf") && !is_word(p, end, "infinity")) return false;
    *out = nan ? (double)NAN : negative ? -(double)INFINITY : (double)INFINITY;
    return true;
}

static bool is_not_finite(const field *f)
{
    field t = *f;
    double x;
    trim(&t);
    return not_finite(&t, &x);
}

static bool is_number(const reader *r, const field *f)
{
    field t = *f;
    decimal x;
    trim(&t);
    return scan(&x, t.at, t.at + t.len) || (r->want->operand && is_not_finite(&t));
}

static const char *number_hint(const field *f)
{
    if (f->len == 0) return "fill it in, or leave out lines with missing values";
    if (memchr(f->at, ';', f->len) || memchr(f->at, '\t', f->len)) return SEPARATOR_HINT;
    if (is_not_finite(f)) return "leave such rows out, or fill in what is missing";
    return "features are numbers in decimal; others must be coded as such first";
}

static int take_number(const reader *r, const field *given, size_t col, double *out)
{
    char text[SHOWN + 8];
    field f = *given;
    decimal x;
    trim(&f);
    if (r->want->operand && not_finite(&f, out)) return 0;
    if (!scan(&x, f.at, f.at + f.len))
        return fail(r, f.begin, SHERD_EFORMAT, number_hint(&f),
                    "field %zu: expected a number, found %s", col + 1,
                    shown(given->at, given->len, text));
    if (f.len > SHERD__CSV_NUMBER_MAX)
        return fail(r, f.begin, SHERD_EFORMAT, NULL,
                    "field %zu: a number of %zu characters, at most %u are read", col + 1, f.len,
                    SHERD__CSV_NUMBER_MAX);
    if (to_double(&x, &f, out)) return 0;
    return fail(r, f.begin, SHERD_EFORMAT, NULL, "field %zu: %s is outside the range of a double",
                col + 1, shown(f.at, f.len, text));
}

/* ---- the first line -------------------------------------------------------------------------- */

/* Copies a field without blanks around it and without the quotes that double quotes. Returns its
 * length; a longer name is cut off after size - 1 bytes. */
static size_t text_of(const field *given, char *out, size_t size)
{
    field f = *given;
    size_t n = 0;
    trim(&f);
    for (size_t k = 0; k < f.len && n + 1 < size; k++) {
        out[n++] = f.at[k] ? (char)f.at[k] : '\x01'; /* no terminator, and no valid name either */
        if (f.quoted && f.at[k] == '"') k++;
    }
    out[n] = '\0';
    return n;
}

static int no_memory(const reader *r)
{
    return sherd__fail_memory(r->d, "the names in %s", r->where);
}

/* Reads the fields of the first line as names. */
static int read_names(reader *r)
{
    char name[SHERD__NAME_MAX + 2]; /* one byte too many shows that a name is too long */
    field f = { 0 };
    r->at = r->line_at;
    while (!f.last) {
        int err = next_field(r, &f);
        if (err) return err;
        size_t len = text_of(&f, name, sizeof name);
        if (sherd__namelist_add(&r->names, name, len) != 0) return no_memory(r);
    }
    return 0;
}

/* What kinds of fields the first line has. */
typedef struct first_line {
    field number, word;       /* the first of each; begin NULL: none */
    size_t words, not_finite; /* not_finite: words that are NaN or an infinity */
    bool last_word;           /* the last field is one */
    bool last_finite;         /* ... but neither NaN nor an infinity */
} first_line;

static int look_at_fields(reader *r, first_line *l)
{
    field f = { 0 };
    *l = (first_line){ 0 };
    for (r->cols = 0; !f.last; r->cols++) {
        int err = next_field(r, &f);
        if (err) return err;
        l->last_word = !is_number(r, &f);
        l->words += l->last_word;
        l->last_finite = l->last_word && !is_not_finite(&f);
        l->not_finite += l->last_word && !l->last_finite;
        field *kind = l->last_word ? &l->word : &l->number;
        if (!kind->begin) *kind = f;
    }
    return 0;
}

static size_t count_names(const reader *r, const char *name, size_t *at)
{
    size_t found = 0;
    for (size_t i = 0; i < r->names.len; i++) {
        if (strcmp(r->names.at[i], name) != 0) continue;
        *at = i;
        found++;
    }
    return found;
}

/* Returns whether the first line has names that are wanted, so that it is a header even if they
 * look like numbers. */
static bool has_wanted(const reader *r)
{
    const sherd__csv_want *w = r->want;
    size_t at, i = 0;
    if (w->inputs == 0) return true; /* the file must have a header */
    if (w->label && count_names(r, w->label, &at) > 0) return true;
    while (w->columns && i < w->columns->len &&
           sherd__namelist_find(&r->names, w->columns->at[i], i) < r->names.len)
        i++;
    return w->columns && i == w->columns->len;
}

/* Refuses a first line that is one field because its fields are not separated by commas. */
static int check_separator(const reader *r, const first_line *l)
{
    const field *f = l->word.begin ? &l->word : &l->number;
    if (r->cols > 1 || f->quoted) return 0;
    const uint8_t *semicolon = memchr(f->at, ';', f->len), *tab = memchr(f->at, '\t', f->len);
    if (!semicolon && !tab) return 0;
    return fail(r, semicolon ? semicolon : tab, SHERD_EFORMAT, SEPARATOR_HINT,
                "expected commas between fields, found %s", semicolon ? "semicolons" : "tabs");
}

/* Counts the fields and decides whether they are names. */
static int judge_first(reader *r, bool *numbers)
{
    char text[SHOWN + 8], other[SHOWN + 8];
    const sherd__csv_want *w = r->want;
    first_line l;
    int err = look_at_fields(r, &l);
    const uint8_t *after = r->at;
    if (!err) err = check_separator(r, &l);
    /* A line of data may end with the name of a class, and refuses what is not finite. */
    bool class = l.last_finite && w->targets == 1 && w->labels && (w->names || w->classes);
    bool data = l.words - class == l.not_finite && (l.number.begin || l.not_finite > 0);
    bool names = !data && !l.number.begin;
    if (!err && !w->operand && (w->label || w->columns || names)) err = read_names(r);
    if (err) return err;
    r->at = after;
    *numbers = l.words == 0;
    r->header = names || (r->names.len > 0 && has_wanted(r));
    if (r->header || data) return 0;
    return fail(r, l.word.begin, SHERD_EFORMAT,
                "a header has names only: rename the columns; a line of data has numbers only",
                "expected all names or all numbers in the first line, found %s beside %s",
                shown(l.word.at, l.word.len, text), shown(l.number.at, l.number.len, other));
}

/* Finds the columns that are wanted by their names. */
static int place_columns(reader *r)
{
    const sherd__namelist *want = r->want->columns;
    char name[SHOWN + 8], header[160], hint[200];
    size_t expected = 0, found = 0;
    bool *seen = sherd__calloc(want->len + 1, sizeof *seen);
    r->role = sherd__alloc(r->cols * sizeof *r->role);
    int err = seen && r->role ? 0 : no_memory(r);
    for (size_t col = 0; col < r->cols && !err; col++) {
        size_t i = sherd__namelist_find(want, r->names.at[col], expected);
        r->role[col] = i < want->len ? (uint32_t)i : UNUSED;
        if (i == want->len) continue;
        if (seen[i])
            err = fail(r, r->line_at, SHERD_EFORMAT, "rename one of them",
                       "more than one column is named %s",
                       shown((const uint8_t *)want->at[i], strlen(want->at[i]), name));
        seen[i] = true;
        expected = i + 1;
        found++;
    }
    snprintf(hint, sizeof hint, "its columns are %s",
             sherd__namelist_shown(&r->names, header, sizeof header));
    for (size_t i = 0; i < want->len && !err && found < want->len; i++)
        if (!seen[i])
            err = fail(r, r->line_at, SHERD_EFORMAT, hint,
                       "expected a column %s in the header, found none of that name",
                       shown((const uint8_t *)want->at[i], strlen(want->at[i]), name));
    sherd__free(seen);
    return err;
}

/* Marks the targets among named columns: `label`, or the last ones. */
static int place_beside(reader *r)
{
    char name[SHOWN + 8];
    size_t first = r->label < r->cols ? r->label : r->cols - r->targets,
           len = r->label < r->cols ? 1 : r->targets;
    for (size_t col = first; col < first + len; col++) {
        if (r->role[col] < UNUSED)
            return fail(r, r->line_at, SHERD_EFORMAT,
                        "`label` names the column of the target, `columns` those of inputs",
                        "the column %s is both an input and the target",
                        shown((const uint8_t *)r->names.at[col], strlen(r->names.at[col]), name));
        r->role[col] = TARGET;
    }
    return 0;
}

/* Determines which columns are targets. numbers: all fields of the first line are. */
static int place_targets(reader *r, bool numbers)
{
    const sherd__csv_want *w = r->want;
    char name[SHOWN + 8], header[160], hint[200] = "leave `label` out if it is the last column";
    r->targets = w->targets;
    bool named = w->label && w->targets == 1 && (r->header || !w->label_optional);
    bool by_name = w->columns && r->header;
    size_t found = named && r->header ? count_names(r, w->label, &r->label) : 0;
    bool bare = w->inputs > 0 && found == 0 && (by_name || r->cols == w->inputs);
    if (bare) r->targets = 0;
    if (found > 1) snprintf(hint, sizeof hint, "rename one of them");
    else if (r->header)
        snprintf(hint, sizeof hint, "name one of its columns: %s",
                 sherd__namelist_shown(&r->names, header, sizeof header));
    if (named && found != 1 && !bare)
        return fail(r, r->line_at, SHERD_EFORMAT, hint,
                    "expected a header with one column %s, found %s",
                    shown((const uint8_t *)w->label, strlen(w->label), name),
                    found > 1               ? "more than one"
                    : numbers || !r->header ? "numbers"
                                            : "none of that name");
    if (r->targets != 1) r->label = r->cols;
    else if (!named) r->label = r->cols - 1;
    if (r->cols <= r->targets)
        return fail(r, r->line_at, SHERD_ESHAPE, "fields are separated by commas",
                    "expected inputs and %zu target column%s, found %zu field%s", r->targets,
                    r->targets == 1 ? "" : "s", r->cols, r->cols == 1 ? "" : "s");
    int err = by_name ? place_columns(r) : 0;
    return err || !by_name ? err : place_beside(r);
}

/* Returns what column `col` is for; n: number of inputs before it. */
static uint32_t role_of(const reader *r, size_t col, size_t n)
{
    if (r->role) return r->role[col];
    bool target = r->label < r->cols ? col == r->label : col >= r->cols - r->targets;
    return target ? TARGET : (uint32_t)n;
}

/* Sets the names of inputs and targets. */
static int keep_names(reader *r, sherd__csv *x)
{
    size_t n = 0;
    int err = 0;
    if (!r->header || r->want->operand) return 0;
    if (r->role) err = sherd__namelist_copy(&x->columns, r->want->columns);
    for (size_t col = 0; col < r->cols && !err; col++) {
        uint32_t role = role_of(r, col, n);
        const char *name = r->names.at[col];
        if (role == UNUSED || (role != TARGET && r->role)) continue;
        n += role != TARGET;
        err = sherd__namelist_add(role == TARGET ? &x->target : &x->columns, name, strlen(name));
    }
    return err ? no_memory(r) : 0;
}

/* Advances the line counter. Quoted fields of a header may contain line ends. */
static void next_line(reader *r)
{
    for (const uint8_t *p = r->line_at; (p = memchr(p, '\n', (size_t)(r->at - p))); p++) r->line++;
    r->line_at = r->at;
}

static int read_first(reader *r)
{
    bool numbers;
    if (r->end - r->at >= 2 && (r->at[0] ^ r->at[1]) == 1 && r->at[0] >= 0xfe)
        return fail(r, r->at, SHERD_EFORMAT, "save it as UTF-8", "expected text, found UTF-16");
    if (r->end - r->at >= 3 && memcmp(r->at, "\xef\xbb\xbf", 3) == 0) r->at += 3;
    r->line_at = r->at;
    if (r->at == r->end || line_end(r, r->at) > 0)
        return fail(r, r->at, SHERD_EFORMAT, NULL, "expected names or numbers, found nothing");
    int err = judge_first(r, &numbers);
    if (!err) err = place_targets(r, numbers);
    if (err) return err;
    if (r->header) next_line(r);
    else r->at = r->line_at;
    return 0;
}

/* ---- labels ---------------------------------------------------------------------------------- */

static const char *label_hint(const reader *r, bool number)
{
    if (!r->want->names) return "labels are whole numbers from 0; `targets = values` is for others";
    if (number)
        return "labels are whole numbers from 0; `class_names` is for names that look like "
               "numbers, `targets = values` for others";
    return "labels are whole numbers from 0 in all lines, or names; `class_names` is for names "
           "that look like numbers";
}

static int take_number_label(const reader *r, const field *f, size_t col, uint32_t *out)
{
    char text[SHOWN + 8];
    double x = -1;
    bool number = is_number(r, f);
    if (number) {
        int err = take_number(r, f, col, &x);
        if (err) return err;
    }
    if (!(x >= 0 && x < 4294967295.0) || x != (double)(uint32_t)x)
        return fail(r, f->begin, SHERD_EFORMAT, label_hint(r, number),
                    "field %zu: expected a label, found %s", col + 1, shown(f->at, f->len, text));
    *out = (uint32_t)x;
    return 0;
}

/* Finds the place of a name in r->sorted. Returns whether it is there. */
static bool find_class(const reader *r, const char *name, size_t *place)
{
    size_t low = 0, high = r->classes.len;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = strcmp(r->classes.at[r->sorted[mid]], name);
        if (order == 0) {
            *place = mid;
            return true;
        }
        if (order < 0) low = mid + 1;
        else high = mid;
    }
    *place = low;
    return false;
}

static int add_class(reader *r, const char *name, size_t len, size_t place)
{
    size_t n = r->classes.len;
    if (sherd__namelist_add(&r->classes, name, len) != 0) return no_memory(r);
    memmove(r->sorted + place + 1, r->sorted + place, (n - place) * sizeof *r->sorted);
    r->sorted[place] = (uint32_t)n;
    return 0;
}

/* Decides by the first label whether labels are names. */
static int judge_labels(reader *r, const field *first)
{
    const sherd__namelist *given = r->want->classes;
    size_t place;
    int err = 0;
    r->judged = true;
    r->named = given || (r->want->names && !is_number(r, first));
    if (!r->named) return 0;
    r->sorted = sherd__alloc((given ? given->len + 1 : SHERD__CSV_CLASSES_MAX) * sizeof *r->sorted);
    if (!r->sorted) return no_memory(r);
    for (size_t i = 0; given && i < given->len && !err; i++)
        if (!find_class(r, given->at[i], &place))
            err = add_class(r, given->at[i], strlen(given->at[i]), place);
    return err;
}

/* Takes the name of a class. Names that are found get numbers in the order in which they occur. */
static int take_name(reader *r, const field *f, size_t col, uint32_t *out)
{
    char name[SHERD__NAME_MAX + 2], text[SHOWN + 8], known[160];
    size_t len = text_of(f, name, sizeof name), place;
    if (!sherd__name_valid(name))
        return fail(r, f->begin, SHERD_EFORMAT, "names of classes are texts of 1 to 255 bytes",
                    "field %zu: expected a label, found %s", col + 1, shown(f->at, f->len, text));
    bool found = find_class(r, name, &place);
    if (!found && r->want->classes)
        return fail(r, f->begin, SHERD_EFORMAT,
                    r->want->names ? "`class_names` lists the classes; leave out lines of others"
                                   : "leave out lines of other classes",
                    "field %zu: expected one of the classes %s, found %s", col + 1,
                    sherd__namelist_shown(r->want->classes, known, sizeof known),
                    shown(f->at, f->len, text));
    if (!found && r->classes.len == SHERD__CSV_CLASSES_MAX)
        return fail(r, f->begin, SHERD_EFORMAT,
                    "`targets = values` is for targets that are not classes",
                    "field %zu: more than %u different labels", col + 1, SHERD__CSV_CLASSES_MAX);
    int err = found ? 0 : add_class(r, name, len, place);
    if (!err) *out = r->sorted[place];
    return err;
}

static int take_label(reader *r, const field *f, size_t col, uint32_t *out)
{
    int err = r->judged ? 0 : judge_labels(r, f);
    if (err) return err;
    return r->named ? take_name(r, f, col, out) : take_number_label(r, f, col, out);
}

/* Numbers the classes that were found in the order of their names. */
static int sort_classes(reader *r, sherd__csv *x)
{
    size_t n = r->classes.len;
    if (!r->named || r->want->classes) return 0;
    uint32_t *rank = sherd__alloc((n + 1) * sizeof *rank);
    if (!rank) return no_memory(r);
    for (size_t i = 0; i < n; i++) rank[r->sorted[i]] = (uint32_t)i;
    for (size_t i = 0; i < x->rows; i++) x->labels[i] = rank[x->labels[i]];
    sherd__free(rank);
    int err = 0;
    for (size_t i = 0; i < n && !err; i++) {
        const char *name = r->classes.at[r->sorted[i]];
        err = sherd__namelist_add(&x->classes, name, strlen(name));
    }
    return err ? no_memory(r) : 0;
}

/* ---- data lines ------------------------------------------------------------------------------ */

/* Returns an upper bound on the number of rows: at most the number of lines, and limited by the
 * bytes that their fields need. */
static size_t rows_at_most(const reader *r)
{
    size_t lines = 1, len = (size_t)(r->end - r->at), fields = len / 2 + 1;
    for (const uint8_t *p = r->at; p < r->end; p++, lines++) {
        p = memchr(p, '\n', (size_t)(r->end - p));
        if (!p) break;
    }
    return lines < fields / r->cols + 1 ? lines : fields / r->cols + 1;
}

static int read_row(reader *r, sherd__csv *x)
{
    double *inputs = x->x + x->rows * x->inputs, *values = NULL;
    size_t n = 0, col = 0;
    field f = { 0 };
    if (x->values) values = x->values + x->rows * r->targets;
    for (; !f.last; col++) {
        int err = next_field(r, &f);
        if (err) return err;
        if (col == r->cols)
            return fail(r, f.begin, SHERD_EFORMAT, NULL,
                        "expected %zu fields as in the first line, found more", r->cols);
        uint32_t role = role_of(r, col, n);
        if (role == UNUSED) continue;
        if (role != TARGET) {
            err = take_number(r, &f, col, &inputs[role]);
            n++;
        } else if (x->labels) err = take_label(r, &f, col, &x->labels[x->rows]);
        else err = take_number(r, &f, col, values++);
        if (err) return err;
    }
    if (col < r->cols)
        return fail(r, f.begin + f.len, SHERD_EFORMAT, NULL,
                    "expected %zu fields as in the first line, found %zu", r->cols, col);
    x->rows++;
    r->line_at = r->at;
    r->line++;
    return 0;
}

/* Reads the end of the file, where empty lines are allowed. */
static int read_tail(reader *r)
{
    for (size_t n; (n = line_end(r, r->at)) > 0; r->line++) r->line_at = r->at += n;
    if (r->at == r->end) return 0;
    return fail(r, r->at, SHERD_EFORMAT, "leave empty lines out",
                "expected the end of the file after an empty line");
}

static int make_room(reader *r, sherd__csv *x)
{
    size_t rows = rows_at_most(r), n, m;
    x->inputs = r->role ? r->want->columns->len : r->cols - r->targets;
    bool fits = sherd__mul(rows, x->inputs, &n) && sherd__mul(rows, r->targets, &m) &&
                sherd__mul(n, sizeof *x->x, &n) && sherd__mul(m, sizeof *x->values, &m);
    if (fits) x->x = sherd__alloc(n);
    if (fits && r->targets > 0 && r->want->labels) x->labels = sherd__alloc(m / 2);
    else if (fits && r->targets > 0) x->values = sherd__alloc(m);
    if (x->x && (r->targets == 0 || x->labels || x->values)) return 0;
    return sherd__fail_memory_hint(r->d, "a .npy is read without copies",
                                   "%zu lines of %zu fields of %s", rows, r->cols, r->where);
}

static int read_all(reader *r, sherd__csv *x)
{
    int err = read_first(r);
    if (!err && (r->at == r->end || line_end(r, r->at) > 0))
        err = fail(r, r->at, SHERD_EFORMAT, NULL, "expected numbers below the header, found none");
    if (!err) err = keep_names(r, x);
    if (!err) err = make_room(r, x);
    while (!err && r->at < r->end && line_end(r, r->at) == 0) err = read_row(r, x);
    if (!err) err = read_tail(r);
    return err ? err : sort_classes(r, x);
}

/* ---- public calls ---------------------------------------------------------------------------- */

int sherd__csv_parse(sherd__csv *out, const uint8_t *bytes, size_t len, const char *where,
                     const sherd__csv_want *want, sherd_diag *d)
{
    sherd__csv x = { 0 };
    reader r = { .at = bytes,
                 .end = bytes + len,
                 .line_at = bytes,
                 .line = 1,
                 .where = where,
                 .want = want,
                 .d = d };
    int err = read_all(&r, &x);
    sherd__namelist_fini(&r.names);
    sherd__namelist_fini(&r.classes);
    sherd__free(r.role);
    sherd__free(r.sorted);
    if (err) {
        sherd__csv_fini(&x);
        return err;
    }
    *out = x;
    return 0;
}

int sherd__csv_load(sherd__csv *out, const char *path, const sherd__csv_want *want, sherd_diag *d)
{
    sherd__map m;
    sherd__csv x;
    int err = sherd__map_open(&m, path, READ_MAX, d);
    if (err) return err;
    err = sherd__csv_parse(&x, m.bytes, m.len, sherd__path_tail(path), want, d);
    if (!err && (err = sherd__map_check(&m, path, d)) != 0) sherd__csv_fini(&x);
    sherd__map_close(&m);
    if (!err) *out = x;
    return err;
}

void sherd__csv_fini(sherd__csv *x)
{
    sherd__free(x->x);
    sherd__free(x->labels);
    sherd__free(x->values);
    sherd__namelist_fini(&x->columns);
    sherd__namelist_fini(&x->target);
    sherd__namelist_fini(&x->classes);
    *x = (sherd__csv){ 0 };
}
