/* Help, man page and completion: three ways to print the same tables. */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include "cli/cli.h"

/** The ten lines for `sherd` without arguments. */
void sherd__help_short(FILE *out);
/** All verbs with their summaries. */
void sherd__help_verbs(FILE *out);
/** One verb, or a verb with subs: examples first, then usage, details, options. */
void sherd__help_verb(FILE *out, const sherd__verb *v, const char *title);
/** sherd(1) in man macros: everything, from the tables and the sections written by hand. */
void sherd__help_man(FILE *out);

/** The verb of this name among a NULL-terminated list, or NULL. */
const sherd__verb *sherd__verb_find(const sherd__verb *const *list, const char *name);
/** SHERD_EINVAL "unknown verb", naming the nearest; title is "" or that of the verb with subs. */
int sherd__verb_unknown(const sherd__verb *const *list, const char *title, const char *name,
                        sherd_diag *d);
/** "-o, --output FILE", "    --seed FILE"; returns the length. */
int sherd__option_synopsis(const sherd__option *o, char *out, size_t size);
/** Prints text filled to `width` columns, every line but the first indented by `indent`; `at` is
 *  the column where the first begins. Paragraphs are separated by blank lines; lines that begin
 *  with a space are kept as they are. */
void sherd__print_filled(FILE *out, const char *text, int at, int indent, int width);

#endif
