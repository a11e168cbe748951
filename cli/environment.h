/* SHERD_* variables that set nothing. */
#ifndef CLI_ENVIRONMENT_H
#define CLI_ENVIRONMENT_H

#include "cli/cli.h"

/**
 * True where `variable` ("NAME=value") begins with SHERD_ and no verb reads it: then `why` is a
 * sentence that names the nearest, or says that the option belongs on the command line.
 */
bool sherd__env_strange(const char *variable, char why[240]);
/** Warns of each of them. */
void sherd__env_warn(const sherd__cli *cli, char *const *env);

#endif
