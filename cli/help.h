/* Help, man page and completion: three ways to print the same tables. */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include "cli/cli.h"

/** Prints the ten lines of `sherd` without arguments. */
void sherd__help_short(FILE *out);
/** Prints all verbs with their summaries. */
void sherd__help_verbs(FILE *out);
/** Prints the help of one verb, or of a verb with subs: examples first, then usage, details,
 *  options. */
void sherd__help_verb(FILE *out, const sherd__verb *v, const char *title);
/** Prints sherd(1) in man macros: everything, from the tables and the hand-written sections. */
void sherd__help_man(FILE *out);

/** Returns the verb of this name in a NULL-terminated list, or NULL. */
const sherd__verb *sherd__verb_find(const sherd__verb *const *list, const char *name);
/** Fails with SHERD_EINVAL "unknown verb", naming the nearest; title is "" or that of the verb with
 *  subs. */
int sherd__verb_unknown(const sherd__verb *const *list, const char *title, const char *name,
                        sherd_diag *d);
/** Formats "-o, --output FILE" or "    --seed FILE"; returns the length. */
int sherd__option_synopsis(const sherd__option *o, char *out, size_t size);
/** Prints text filled to `width` columns, with every line except the first indented by `indent`;
 *  `at` is the start column of the first line. Paragraphs are separated by blank lines. Lines that
 *  begin with a space are kept unchanged. */
void sherd__print_filled(FILE *out, const char *text, int at, int indent, int width);

#endif
