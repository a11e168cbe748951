/* "Did you mean" suggestions: the nearest of a list of known words, for command lines and peer
 * files. */
#ifndef CORE_SUGGEST_H
#define CORE_SUGGEST_H

/**
 * Returns the word of `known` (an array ended by NULL) nearest to `word`, or NULL if no word is
 * near enough: at most one edit (a letter added, missing or wrong, or two letters swapped) for
 * every three letters, and at least one. Case is ignored. Of equally near words it returns the
 * first.
 */
const char *sherd__suggest(const char *word, const char *const *known);

#endif
