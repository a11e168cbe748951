/* Handling of SIGBUS from a mapped input file that is truncated during the run. */
#ifndef CLI_BUS_H
#define CLI_BUS_H

#include "cli/cli.h"

/**
 * Reading a mapped file beyond its present end, or after an error of its disk, raises SIGBUS. After
 * this call SIGBUS ends the process with SHERD_EIO's exit code and one sentence that names the
 * file, on stderr or as --json specifies, under cli's title. No cleanup is done: unfinished files
 * have no name yet, and local nodes end when the pipe that they watch is closed. Called once, when
 * cli knows its options; cli must stay at its address. A SIGBUS that no mapped file explains has
 * its previous effect.
 */
void sherd__bus_start(const sherd__cli *cli);

#endif
