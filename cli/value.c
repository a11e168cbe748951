/*
 * The types of option values: numbers with ranges, sizes, times, choices.
 *
 * strtod and strtoimax parse the numbers. Remaining characters, a misplaced sign and a number
 * outside its range are reported by one sentence that says what was expected. Sizes and times may
 * have a fraction ("1.5G") and are rounded to whole bytes and milliseconds.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "core/suggest.h"

typedef struct unit {
    const char *name;
    double factor;
} unit;

static const unit size_units[] = {
    { "", 1 },
    { "K", 1024 },
    { "M", 1048576 },
    { "G", 1073741824 },
    { "T", 1099511627776 },
    { "KiB", 1024 },
    { "MiB", 1048576 },
    { "GiB", 1073741824 },
    { "TiB", 1099511627776 },
    { "k", 1024 },
    { "m", 1048576 },
    { "g", 1073741824 },
    { "t", 1099511627776 },
    { NULL, 0 },
};

static const unit time_units[] = {
    { "", 1000 },     { "s", 1000 },    { "ms", 1 }, { "m", 60000 },
    { "min", 60000 }, { "h", 3600000 }, { NULL, 0 },
};

static int wrong(const char *text, const char *where, int code, const char *hint,
                 const char *expected, sherd_diag *d)
{
    return sherd__fail(d, code, hint, "%s: expected %s, found '%s'", where, expected, text);
}

static bool starts_as_number(const char *s)
{
    return (*s >= '0' && *s <= '9') || *s == '.';
}

/* Parses a non-negative number with a unit from the table, in units of factor 1; NAN if it is
 * invalid. */
static double quantity(const char *text, const unit *units)
{
    if (!starts_as_number(text) || strpbrk(text, "xXpP")) return NAN;
    char *end;
    errno = 0;
    double v = strtod(text, &end);
    if (end == text || errno == ERANGE || !isfinite(v)) return NAN;
    while (*end == ' ') end++;
    for (const unit *u = units; u->name; u++)
        if (strcmp(end, u->name) == 0) return rint(v * u->factor);
    return NAN;
}

static int parse_size(sherd__value *v, const char *text, const char *where, int code, sherd_diag *d)
{
    double q = quantity(text, size_units);
    if (!(q >= 1 && q < 9007199254740992.0))
        return wrong(text, where, code, "K, M, G and T are powers of 1024",
                     "a size such as 512M or 4G", d);
    v->integer = (int64_t)q;
    return 0;
}

static int parse_time(sherd__value *v, const char *text, const char *where, int code, sherd_diag *d)
{
    double q = quantity(text, time_units);
    if (!(q >= 1 && q <= 4294967295.0))
        return wrong(text, where, code, NULL,
                     "a time such as 30s, 500ms, 2m or 1h, at most 49 days", d);
    v->integer = (int64_t)q;
    return 0;
}

static int parse_int(sherd__value *v, const sherd__option *o, const char *text, const char *where,
                     int code, sherd_diag *d)
{
    if (o->word && strcmp(text, o->word) == 0) {
        v->integer = o->word_value;
        return 0;
    }
    bool any = o->min == 0 && o->max == 0;
    const char *digits = *text == '-' ? text + 1 : text;
    char *end = NULL;
    errno = 0;
    intmax_t n = *digits >= '0' && *digits <= '9' ? strtoimax(text, &end, 10) : 0;
    bool bad = !end || *end != '\0' || errno == ERANGE;
    if (!bad && !any) bad = (double)n < o->min || (double)n > o->max;
    if (bad) {
        char expected[128];
        int at = any ? snprintf(expected, sizeof expected, "a whole number")
                     : snprintf(expected, sizeof expected, "a whole number from %.0f to %.0f",
                                o->min, o->max);
        if (o->word) snprintf(expected + at, sizeof expected - (size_t)at, ", or %s", o->word);
        return wrong(text, where, code, NULL, expected, d);
    }
    v->integer = n;
    return 0;
}

static int parse_real(sherd__value *v, const sherd__option *o, const char *text, const char *where,
                      int code, sherd_diag *d)
{
    if (o->word && strcmp(text, o->word) == 0) {
        v->real = HUGE_VAL;
        return 0;
    }
    bool any = o->min == 0 && o->max == 0;
    char *end;
    errno = 0;
    double x = strtod(text, &end);
    bool bad = end == text || *end != '\0' || !isfinite(x) || errno == ERANGE;
    if (!bad && !any) bad = x < o->min || x > o->max;
    if (bad) {
        char expected[128];
        int at = any ? snprintf(expected, sizeof expected, "a number")
                     : snprintf(expected, sizeof expected, "a number from %g to %g", o->min,
                                o->max);
        if (o->word) snprintf(expected + at, sizeof expected - (size_t)at, ", or %s", o->word);
        return wrong(text, where, code, NULL, expected, d);
    }
    v->real = x;
    return 0;
}

static int parse_flag(sherd__value *v, const char *text, const char *where, int code, sherd_diag *d)
{
    static const char *const words[] = { "no", "yes", "0", "1", "false", "true", "off", "on" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(text, words[i]) == 0) {
            v->integer = (int64_t)(i & 1);
            return 0;
        }
    return wrong(text, where, code, NULL, "yes or no", d);
}

static int parse_choice(sherd__value *v, const sherd__option *o, const char *text,
                        const char *where, int code, sherd_diag *d)
{
    const char *const *choices = sherd__option_choices(o);
    for (int i = 0; choices[i]; i++)
        if (strcmp(text, choices[i]) == 0) {
            v->integer = i;
            return 0;
        }
    char expected[160] = "";
    size_t at = 0;
    for (int i = 0; choices[i] && at < sizeof expected; i++) {
        const char *between = i == 0 ? "" : !choices[i + 1] ? " or " : ", ";
        at += (size_t)snprintf(expected + at, sizeof expected - at, "%s%s", between, choices[i]);
    }
    const char *near = sherd__suggest(text, choices);
    char hint[80];
    if (near) snprintf(hint, sizeof hint, "did you mean %s?", near);
    return wrong(text, where, code, near ? hint : NULL, expected, d);
}

static int parse_count(sherd__value *v, const sherd__option *o, const char *text, const char *where,
                       int code, sherd_diag *d)
{
    sherd__option as_int = *o;
    as_int.min = 0;
    as_int.max = 9;
    return parse_int(v, &as_int, text, where, code, d);
}

int sherd__value_parse(sherd__value *out, const sherd__option *o, const char *text,
                       const char *where, int code, sherd_diag *d)
{
    sherd__value v = { .where = where, .text = text };
    int err = 0;
    switch (o->type) {
    case SHERD__FLAG: err = parse_flag(&v, text, where, code, d); break;
    case SHERD__COUNT: err = parse_count(&v, o, text, where, code, d); break;
    case SHERD__INT: err = parse_int(&v, o, text, where, code, d); break;
    case SHERD__REAL: err = parse_real(&v, o, text, where, code, d); break;
    case SHERD__SIZE: err = parse_size(&v, text, where, code, d); break;
    case SHERD__TIME: err = parse_time(&v, text, where, code, d); break;
    case SHERD__CHOICE: err = parse_choice(&v, o, text, where, code, d); break;
    case SHERD__TEXT:
    case SHERD__FILE:
    case SHERD__DIR:
        if (*text == '\0')
            err = sherd__fail(d, code, NULL, "%s: expected %s, found nothing", where,
                              o->type == SHERD__TEXT ? "a word" : "a path");
        break;
    }
    if (err == 0) *out = v;
    return err;
}
