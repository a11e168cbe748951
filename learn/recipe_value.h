/*
 * Values of a recipe's keys, by words. Numbers are plain decimal, and counts have a limit far above
 * any use, so that later size arithmetic starts from sane numbers. An error message gives line, key
 * and the expected value (SHERD_EFORMAT); outputs are then untouched.
 */
#ifndef LEARN_RECIPE_VALUE_H
#define LEARN_RECIPE_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"

#define SHERD__RECIPE_WORDS_MAX 16u
#define SHERD__RECIPE_COUNT_MAX UINT64_C(1000000000000)
#define SHERD__RECIPE_SIDE_MAX                                                                     \
    UINT64_C(1000000000) /* limit of a side or another dimension of an array */

/** A value, split into words. */
typedef struct sherd__recipe_value {
    const char *where; /* "path:line" */
    const char *key, *text;
    const char *words[SHERD__RECIPE_WORDS_MAX];
    size_t len;
} sherd__recipe_value;

/** Refuses a value. hint NULL: says where all values are listed. */
int sherd__recipe_expected(const sherd__recipe_value *v, const char *what, const char *hint,
                           sherd_diag *d);

/** Parse a word as a count up to max or as a finite number. Return false if it is not one. */
bool sherd__word_count(const char *word, uint64_t max, uint64_t *out);
bool sherd__word_number(const char *word, double *out);

/** Sets *out to the index of the first word in a list (ended by NULL). The error message names the
 *  nearest word. */
int sherd__recipe_first_of(const sherd__recipe_value *v, const char *const *list, const char *what,
                           int *out, sherd_diag *d);

/** Parse a value of one word: one of a list, a count of `min` or more, a number, a count or "all"
 *  (0). */
int sherd__recipe_one_of(const sherd__recipe_value *v, const char *const *list, const char *what,
                         int *out, sherd_diag *d);
int sherd__recipe_count(const sherd__recipe_value *v, uint64_t min, const char *what, uint64_t *out,
                        sherd_diag *d);
int sherd__recipe_number(const sherd__recipe_value *v, double min, double max, const char *what,
                         double *out, sherd_diag *d);
int sherd__recipe_count_or_all(const sherd__recipe_value *v, size_t *out, sherd_diag *d);

/** Print the shortest decimal that parses to the same double; print a value of count_or_all. */
void sherd__recipe_print_number(char *out, size_t size, double x);
void sherd__recipe_print_count_or_all(char *out, size_t size, size_t n);

#endif
