/*
 * Rules for options that have no effect in this run. On the command line they are refused, since
 * the user meant something by them. Options from the environment or a file may be meant for other
 * runs and are forgotten: later lookups find them as if they were not set. Of two options that
 * exclude each other, the one from the stronger place wins, as with `excludes` (cli/options.h). If
 * both come from one place, they are refused.
 *
 * Call these functions for an option before its value is read. Names that the verb does not have
 * count as not set; so does a flag that is turned off.
 */
#ifndef CLI_APPLIES_H
#define CLI_APPLIES_H

#include "cli/cli.h"

/** Returns whether the option is set in any place, presets excluded. */
bool sherd__opt_is_set(const sherd__cli *cli, const char *name);
/** Call this for an option without effect. Returns true if it is on the command line, for the
 *  caller to refuse it. Else forgets the option and returns false. */
bool sherd__opt_forget_unless_argv(sherd__cli *cli, const char *name);
/** Returns the first of `names` (NULL-terminated) that is on the command line without effect.
 *  Returns NULL if there is none; then all of them are forgotten. */
const char *sherd__opts_forget_unless_argv(sherd__cli *cli, const char *const *names);
/** Returns the first of the verb's options that is on the command line and that the scheme does not
 *  read, except options of `also` (SHERD_TAKES_*), which something else reads. If it returns NULL,
 *  all options that the scheme does not read are forgotten. */
const sherd__option *sherd__opts_forget_unread(sherd__cli *cli, const sherd_scheme_info *s,
                                               unsigned also);
/** Fails because the scheme does not read the option. */
int sherd__opt_refuse(const sherd__option *o, const sherd_scheme_info *s, sherd_diag *d);
/** Forgets those of `names` (NULL-terminated) that are not on the command line. Call this for
 *  options without effect that the library refuses if they are set. */
void sherd__opts_forget(sherd__cli *cli, const char *const *names);
/** Call this for options a and b that exclude each other. Returns true if both are set in one
 *  place, for the caller to refuse them. Else forgets the one from the weaker place and returns
 *  false. */
bool sherd__opts_clash(sherd__cli *cli, const char *a, const char *b);

#endif
