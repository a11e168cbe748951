/* Lists of names. A name is an allocation of its own, so a list can be sorted by its pointers. */
#include "core/namelist.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

#define CAP_FIRST 16u

int sherd__namelist_add(sherd__namelist *x, const char *name, size_t len)
{
    if (x->len == x->cap) {
        size_t cap = x->cap > 0 ? 2 * x->cap : CAP_FIRST;
        char **more = sherd__realloc(x->at, cap * sizeof *more);
        if (!more) return SHERD_ENOMEM;
        x->at = more;
        x->cap = cap;
    }
    char *copy = sherd__alloc(len + 1);
    if (!copy) return SHERD_ENOMEM;
    memcpy(copy, name, len);
    copy[len] = '\0';
    x->at[x->len++] = copy;
    return SHERD_OK;
}

int sherd__namelist_split(sherd__namelist *x, const char *text, size_t len, char separator)
{
    const char *end = text + len;
    for (;;) {
        const char *part = text, *next = memchr(text, separator, (size_t)(end - text));
        const char *last = next ? next : end;
        while (part < last && *part == ' ') part++;
        while (last > part && last[-1] == ' ') last--;
        int err = sherd__namelist_add(x, part, (size_t)(last - part));
        if (err || !next) return err;
        text = next + 1;
    }
}

int sherd__namelist_copy(sherd__namelist *out, const sherd__namelist *x)
{
    *out = (sherd__namelist){ 0 };
    for (size_t i = 0; i < x->len; i++) {
        if (sherd__namelist_add(out, x->at[i], strlen(x->at[i])) == 0) continue;
        sherd__namelist_fini(out);
        return SHERD_ENOMEM;
    }
    return SHERD_OK;
}

char *sherd__namelist_text(const sherd__namelist *x, char separator, size_t *len)
{
    size_t bytes = 0;
    for (size_t i = 0; i < x->len; i++) bytes += strlen(x->at[i]) + 1;
    char *text = sherd__alloc(bytes + 1), *at = text;
    if (!text) return NULL;
    for (size_t i = 0; i < x->len; i++) {
        size_t n = strlen(x->at[i]);
        memcpy(at, x->at[i], n);
        at[n] = separator;
        at += n + 1;
    }
    if (x->len > 0) at--;
    *at = '\0';
    *len = (size_t)(at - text);
    return text;
}

size_t sherd__namelist_find(const sherd__namelist *x, const char *name, size_t guess)
{
    if (guess < x->len && strcmp(x->at[guess], name) == 0) return guess;
    size_t i = 0;
    while (i < x->len && strcmp(x->at[i], name) != 0) i++;
    return i;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

bool sherd__name_valid(const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)name[i] < ' ' || name[i] == 0x7f) return false;
    return n > 0 && n <= SHERD__NAME_MAX;
}

int sherd__namelist_check(const sherd__namelist *x, size_t *bad)
{
    size_t at = 0, mine;
    if (!bad) bad = &mine;
    while (at < x->len && sherd__name_valid(x->at[at])) at++;
    *bad = at;
    if (at < x->len) return SHERD_EFORMAT;
    char **sorted = sherd__calloc(x->len + 1, sizeof *sorted);
    if (!sorted) return SHERD_ENOMEM;
    for (size_t i = 0; i < x->len; i++) sorted[i] = x->at[i];
    qsort(sorted, x->len, sizeof *sorted, by_bytes);
    size_t i = 1;
    while (i < x->len && by_bytes(&sorted[i - 1], &sorted[i]) != 0) i++;
    if (i < x->len) *bad = sherd__namelist_find(x, sorted[i], 0);
    sherd__free(sorted);
    return i < x->len ? SHERD_EFORMAT : SHERD_OK;
}

size_t sherd__name_quoted(const char *name, char out[SHERD__NAME_QUOTED])
{
    bool plain = name[0] != '\0' && !strpbrk(name, ",\"\r\n");
    size_t n = 0;
    if (!plain) out[n++] = '"';
    for (size_t i = 0; i < SHERD__NAME_MAX && name[i]; i++) {
        if (name[i] == '"') out[n++] = '"';
        out[n++] = name[i];
    }
    if (!plain) out[n++] = '"';
    out[n] = '\0';
    return n;
}

const char *sherd__namelist_shown(const sherd__namelist *x, char *out, size_t size)
{
    char name[SHERD__NAME_QUOTED];
    size_t at = 0;
    out[0] = '\0';
    for (size_t i = 0; i < x->len; i++) {
        size_t need = sherd__name_quoted(x->at[i], name) + 2; /* with ", " */
        if (at + need + sizeof "..." >= size) {
            snprintf(out + at, size - at, "...");
            break;
        }
        at += (size_t)snprintf(out + at, size - at, "%s%s", name, i + 1 < x->len ? ", " : "");
    }
    return out;
}

void sherd__namelist_fini(sherd__namelist *x)
{
    for (size_t i = 0; i < x->len; i++) sherd__free(x->at[i]);
    sherd__free(x->at);
    *x = (sherd__namelist){ 0 };
}
