/* `sherd verify` for folders of checkpoints (cli/verify_chain.c). */
#ifndef CLI_VERIFY_H
#define CLI_VERIFY_H

#include <stdbool.h>

#include "cli/cli.h"

/** Returns whether the argument is a folder. */
bool sherd__verify_is_chain(const char *path);
/** Verifies the chain of cli->args[0] and prints the result. SHERD_ECHAIN and other errors of
 *  store/chain.h; SHERD_EINVAL for a folder without checkpoints, too many arguments, or a --head
 *  that is not a hash. */
int sherd__verify_chain(sherd__cli *cli, sherd_diag *d) SHERD_MUST;

#endif
