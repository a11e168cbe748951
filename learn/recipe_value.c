/*
 * Words and numbers of recipes. sherd__decimal_read accepts hexadecimal, infinities and NaN, so
 * text with their characters is refused before.
 */
#include "learn/recipe_value.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/decimal.h"
#include "core/diag.h"
#include "core/suggest.h"

int sherd__recipe_expected(const sherd__recipe_value *v, const char *what, const char *hint,
                           sherd_diag *d)
{
    if (!hint) hint = "docs/TRAINING.md lists the values of each key";
    return sherd__fail(d, SHERD_EFORMAT, hint, "%s: %s: expected %s, found '%.80s'", v->where,
                       v->key, what, v->text);
}

bool sherd__word_count(const char *word, uint64_t max, uint64_t *out)
{
    uint64_t n = 0;
    if (*word == '\0') return false;
    for (const char *p = word; *p != '\0'; p++) {
        if (*p < '0' || *p > '9') return false;
        n = n * 10 + (uint64_t)(*p - '0');
        if (n > max) return false;
    }
    *out = n;
    return true;
}

bool sherd__word_number(const char *word, double *out)
{
    char *end;
    if (strspn(word, "0123456789.eE+-") != strlen(word) || !strpbrk(word, "0123456789"))
        return false;
    errno = 0;
    double x = sherd__decimal_read(word, &end);
    if (*end != '\0' || !isfinite(x) || (errno == ERANGE && x != 0)) return false;
    *out = x == 0 ? 0 : x; /* avoids -0 */
    return true;
}

int sherd__recipe_first_of(const sherd__recipe_value *v, const char *const *list, const char *what,
                           int *out, sherd_diag *d)
{
    char hint[80];
    for (int i = 0; v->len > 0 && list[i]; i++)
        if (strcmp(v->words[0], list[i]) == 0) {
            *out = i;
            return SHERD_OK;
        }
    const char *near = v->len > 0 ? sherd__suggest(v->words[0], list) : NULL;
    if (near) snprintf(hint, sizeof hint, "did you mean %s?", near);
    return sherd__recipe_expected(v, what, near ? hint : NULL, d);
}

int sherd__recipe_one_of(const sherd__recipe_value *v, const char *const *list, const char *what,
                         int *out, sherd_diag *d)
{
    int i, err = sherd__recipe_first_of(v, list, what, &i, d);
    if (err) return err;
    if (v->len != 1) return sherd__recipe_expected(v, what, NULL, d);
    *out = i;
    return SHERD_OK;
}

int sherd__recipe_count(const sherd__recipe_value *v, uint64_t min, const char *what, uint64_t *out,
                        sherd_diag *d)
{
    uint64_t n;
    if (v->len != 1 || !sherd__word_count(v->words[0], SHERD__RECIPE_COUNT_MAX, &n) || n < min)
        return sherd__recipe_expected(v, what, NULL, d);
    *out = n;
    return SHERD_OK;
}

int sherd__recipe_count_or_all(const sherd__recipe_value *v, size_t *out, sherd_diag *d)
{
    uint64_t n = 0;
    bool all = v->len == 1 && strcmp(v->words[0], "all") == 0;
    if (!all &&
        (v->len != 1 || !sherd__word_count(v->words[0], SHERD__RECIPE_SIDE_MAX, &n) || n == 0))
        return sherd__recipe_expected(v, "a number of examples, or all", NULL, d);
    *out = (size_t)n;
    return SHERD_OK;
}

int sherd__recipe_number(const sherd__recipe_value *v, double min, double max, const char *what,
                         double *out, sherd_diag *d)
{
    double x;
    if (v->len != 1 || !sherd__word_number(v->words[0], &x) || !(x >= min && x <= max))
        return sherd__recipe_expected(v, what, NULL, d);
    *out = x;
    return SHERD_OK;
}

void sherd__recipe_print_number(char *out, size_t size, double x)
{
    for (int digits = 1; digits <= 17; digits++) {
        sherd__decimal_write(out, size, digits, x);
        if (sherd__decimal_read(out, NULL) == x) return;
    }
}

void sherd__recipe_print_count_or_all(char *out, size_t size, size_t n)
{
    if (n == 0) snprintf(out, size, "all");
    else snprintf(out, size, "%zu", n);
}
