/* The second form of `sherd verify`: folders of checkpoints (cli/verify_chain.c). */
#ifndef CLI_VERIFY_H
#define CLI_VERIFY_H

#include <stdbool.h>

#include "cli/cli.h"

/** Whether the argument is a folder. */
bool sherd__verify_is_chain(const char *path);
/** Walks the chain of cli->args[0] and tells what it found. SHERD_ECHAIN and other errors of
 *  store/chain.h; SHERD_EINVAL for a folder without checkpoints, arguments too many, a --head that
 *  is no hash. */
int sherd__verify_chain(sherd__cli *cli, sherd_diag *d) SHERD_MUST;

#endif
