/* "Did you mean": the nearest of a list of known words, for command lines and peer files. */
#ifndef CORE_SUGGEST_H
#define CORE_SUGGEST_H

/**
 * The word of `known` (ended by NULL) nearest to `word`, or NULL where none is near enough to be
 * worth a suggestion: at most one slip (a letter too many, missing, wrong, or two swapped) for
 * every three letters, and at least one. Upper and lower case count as equal. The first wins a tie.
 */
const char *sherd__suggest(const char *word, const char *const *known);

#endif
