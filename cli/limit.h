/* The end of a run's time, whatever it waits for. */
#ifndef CLI_LIMIT_H
#define CLI_LIMIT_H

#include "cli/cli.h"

/**
 * From here on the process ends at the latest 1.4 s after --timeout, where the verb has one, and
 * 1.7 s after the first SIGINT, SIGTERM or SIGHUP: with the exit code of a timeout or an interrupt
 * and one sentence, on stderr or as --json asks. What waits, reads or computes looks at both by
 * itself and ends sooner, in better words; this is for what cannot: a full pipe behind stdout, a
 * system call or a library that does not return. Nothing is tidied, as in cli/bus.h. Called once,
 * when cli knows its options; cli stays put. Where its thread cannot be started it is done by
 * SIGALRM, ten times a second.
 */
void sherd__limit_start(const sherd__cli *cli);
/** The signal has been heard, and what has been made so far is put away: half a minute for that. */
void sherd__limit_heard(void);
/** A signal that comes until `is` is false again is taken as heard: a file is being written that is
 *  kept, or other processes must agree before this one ends. */
void sherd__limit_writes(bool is);
/** The run tells how it ended: whoever cannot be told is left without a word. */
void sherd__limit_ending(void);

#endif
