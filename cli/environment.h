/* SHERD_* variables that set no option. */
#ifndef CLI_ENVIRONMENT_H
#define CLI_ENVIRONMENT_H

#include "cli/cli.h"

/**
 * Returns true if `variable` ("NAME=value") begins with SHERD_ and no verb reads it. `why` is then
 * a sentence that names the nearest variable, or states that the option is for the command line.
 */
bool sherd__env_unread(const char *variable, char why[240]);
/** Prints a warning for each of them. */
void sherd__env_warn(const sherd__cli *cli, char *const *env);

#endif
