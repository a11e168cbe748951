/* Checks of the paths of a command: which of them are one file, and which files may be replaced. */
#ifndef CLI_PATHS_H
#define CLI_PATHS_H

#include "cli/cli.h"

/**
 * Returns SHERD_EINVAL if a file that the run writes (--output, --certificate, --html, ...) is also
 * another path of its options or one of the last `operands` arguments (sherd__paths_apart). Also
 * SHERD_EINVAL if such a path is "-" and its option may not write to standard output.
 */
int sherd__paths_differ(const sherd__cli *cli, int operands, sherd_diag *d) SHERD_MUST;
/** Returns SHERD_EINVAL if `path` is "-"; `what` writes to it and can only write to a file. */
int sherd__paths_file(const char *what, const char *path, sherd_diag *d) SHERD_MUST;
/** Checks whether a file can be created there at the end of a long run: SHERD_EOPEN if its folder
 *  does not exist or is not writable. */
int sherd__paths_room(const char *path, sherd_diag *d) SHERD_MUST;
/** Checks --output before work begins: SHERD_EOPEN as sherd__paths_room; SHERD_EINVAL if --json and
 *  --output would share standard output. Warns if its name ends like that of another format than
 *  kind (".npy"), which may be NULL. */
int sherd__paths_output(const sherd__cli *cli, const char *kind, sherd_diag *d) SHERD_MUST;
/**
 * Returns SHERD_EINVAL if new metadata must not replace the file `path`: metadata that has served
 * operands (its record of use would be lost), or a file that is not metadata.
 */
int sherd__paths_replace_meta(const char *path, sherd_diag *d) SHERD_MUST;

#endif
