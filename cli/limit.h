/* Enforces the end of a run after --timeout or a signal, even if the run is blocked. */
#ifndef CLI_LIMIT_H
#define CLI_LIMIT_H

#include "cli/cli.h"

/**
 * After this call the process ends at most 1.4 s after --timeout, if the verb has one, and at most
 * 1.7 s after the first SIGINT, SIGTERM or SIGHUP. It ends with the exit code of a timeout or an
 * interrupt and one sentence, on stderr or as --json specifies. Code that waits, reads or computes
 * normally checks both conditions and ends sooner, with a more specific message. This function
 * covers cases that cannot: a full pipe behind stdout, a system call or a library function that
 * does not return. No cleanup is done, as in cli/bus.h. Called once, when cli knows its options;
 * cli must stay at its address. If its thread cannot be started, SIGALRM does the work, ten times a
 * second.
 */
void sherd__limit_start(const sherd__cli *cli);
/** Reports that the signal has been handled and that results so far are being saved. The process
 *  may take half a minute for that. */
void sherd__limit_handled(void);
/** Until it is called with false, a signal counts as handled, because a file that is kept is being
 *  written, or because other processes must agree before this one ends. */
void sherd__limit_writes(bool is);
/** Reports that the run is printing its final message. If that blocks, the process ends without a
 *  message. */
void sherd__limit_ending(void);

#endif
