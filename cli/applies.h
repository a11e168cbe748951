/*
 * One rule for options that have no effect in what is asked for. On the command line they are
 * refused: whoever typed them meant something. From the environment or a file they may be meant for
 * other runs, and are forgotten: whoever asks later finds them as if they were not set. Of two that
 * exclude each other the one from the stronger place wins, as with `excludes` (cli/options.h); from
 * one place they are refused.
 *
 * So what decides is judged first and read afterwards. Names that the verb does not have count as
 * not set; so does a flag that says no.
 */
#ifndef CLI_APPLIES_H
#define CLI_APPLIES_H

#include "cli/cli.h"

/** Whether it is set in any place, presets apart. */
bool sherd__opt_in_effect(const sherd__cli *cli, const char *name);
/** `name` has no effect: whether it stands on the command line, for the caller to refuse it. Else
 *  it is forgotten. */
bool sherd__opt_idle(sherd__cli *cli, const char *name);
/** The first of names (the last one is followed by NULL) that is idle on the command line; NULL:
 *  none is, and all of them are forgotten. */
const char *sherd__opts_idle(sherd__cli *cli, const char *const *names);
/** a and b do not go together: whether both are set in one place, for the caller to refuse them.
 *  Else the weaker is forgotten. */
bool sherd__opts_clash(sherd__cli *cli, const char *a, const char *b);

#endif
