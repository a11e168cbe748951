/* The end of a run and its final message; the only place that prints errors. */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include "cli/cli.h"

/**
 * Ends a run: flushes stdout (a failed write is SHERD_EIO), then prints the error, if any, as
 * `sherd: TITLE: message` and `  try: hint` on stderr, or with --json as one object on stdout. err
 * is 0 or SHERD_E*; d may be empty. Returns the exit code.
 */
int sherd__cli_end(const sherd__cli *cli, int err, const sherd_diag *d);

/** Returns true if stderr is a terminal that may show colour (NO_COLOR, TERM=dumb). */
bool sherd__cli_colour(void);

#endif
