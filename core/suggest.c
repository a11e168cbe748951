/*
 * Optimal string alignment distance (Damerau-Levenshtein without overlapping edits) in three rows
 * of fixed length. A word longer than LETTERS_MAX is unlikely to be a typing error and is skipped,
 * so that no allocation is needed. If no known word is near and `word` is a prefix of exactly one
 * of them, that one is suggested.
 */
#include "core/suggest.h"

#include <stddef.h>
#include <string.h>

#include "core/pieces.h"

#define LETTERS_MAX 48
#define PREFIX_MIN 3 /* minimum length of a prefix */

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static size_t distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t rows[3][LETTERS_MAX + 1];
    for (size_t j = 0; j <= b_len; j++) rows[0][j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        size_t *now = rows[i % 3];
        const size_t *above = rows[(i - 1) % 3], *above2 = rows[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            size_t wrong = lower(a[i - 1]) != lower(b[j - 1]);
            now[j] = sherd__least(sherd__least(above[j], now[j - 1]) + 1, above[j - 1] + wrong);
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                lower(a[i - 2]) == lower(b[j - 1]))
                now[j] = sherd__least(now[j], above2[j - 2] + 1);
        }
    }
    return rows[a_len % 3][b_len];
}

static const char *completed(const char *word, size_t len, const char *const *known)
{
    const char *found = NULL;
    for (; *known; known++) {
        size_t i = 0;
        while (i < len && lower(word[i]) == lower((*known)[i])) i++;
        if (i < len) continue;
        if (found) return NULL;
        found = *known;
    }
    return found;
}

const char *sherd__suggest(const char *word, const char *const *known)
{
    const char *nearest = NULL;
    size_t len = strlen(word), best = len / 3 > 1 ? len / 3 : 1;
    if (len == 0 || len > LETTERS_MAX) return NULL;
    for (const char *const *all = known; *all; all++) {
        size_t known_len = strlen(*all);
        if (known_len > LETTERS_MAX) continue;
        size_t d = distance(word, len, *all, known_len);
        if (d >= known_len || d > best || (nearest && d == best)) continue;
        nearest = *all;
        best = d;
    }
    return nearest || len < PREFIX_MIN ? nearest : completed(word, len, known);
}
