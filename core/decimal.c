/* newlocale, uselocale: no other function formats a number by a given locale. */
#include "core/decimal.h"

#include <assert.h>
#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static locale_t c_locale;

/* The C library has this locale, and needs no memory for it. It is never freed. */
static void make(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    assert(c_locale != (locale_t)0);
}

static locale_t get(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make);
    return c_locale;
}

double sherd__decimal_read(const char *text, char **end)
{
    return strtod_l(text, end, get());
}

int sherd__decimal_write(char *out, size_t size, int digits, double x)
{
    locale_t before = uselocale(get());
    int len = snprintf(out, size, "%.*g", digits, x);
    uselocale(before);
    return len;
}
