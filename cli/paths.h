/* Paths that a command was given: which of them are one file, and what may be replaced. */
#ifndef CLI_PATHS_H
#define CLI_PATHS_H

#include "cli/cli.h"

/**
 * SHERD_EINVAL where a file that the run is to write (--output, --certificate, --meta, --record) is
 * also another path of its options or one of the `operands` last arguments: by device and inode
 * where both are there, else by the resolved folder and the name. Devices and pipes are no files.
 * Also where such a path is "-" and its option is not one that may write to standard output.
 */
int sherd__paths_differ(const sherd__cli *cli, int operands, sherd_diag *d) SHERD_MUST;
/** SHERD_EINVAL where `path`, to be written by `what` and to a file only, is "-". */
int sherd__paths_file(const char *what, const char *path, sherd_diag *d) SHERD_MUST;
/** Whether a file could be made there when a long run ends: SHERD_EOPEN where its folder is not
 *  there, or is not ours to write to. */
int sherd__paths_room(const char *path, sherd_diag *d) SHERD_MUST;
/** Before work begins that --output is to hold: SHERD_EOPEN as sherd__paths_room, SHERD_EINVAL
 *  where --json and --output would share standard output. */
int sherd__paths_output(const sherd__cli *cli, sherd_diag *d) SHERD_MUST;
/** True where both name one regular file or folder, or would once they are made. */
bool sherd__paths_same(const char *a, const char *b);
/**
 * SHERD_EINVAL where `path` is a file that new metadata must not replace: metadata that has served
 * operands, whose record would go with it, or a file that is no metadata.
 */
int sherd__paths_replace_meta(const char *path, sherd_diag *d) SHERD_MUST;

#endif
