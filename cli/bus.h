/* What becomes of a run whose mapped input is cut short by somebody else. */
#ifndef CLI_BUS_H
#define CLI_BUS_H

#include "cli/cli.h"

/**
 * Reading a mapped file beyond its present end, or where its disk fails, is a SIGBUS. From here on
 * it ends the process with SHERD_EIO's exit code and one sentence that names the file, on stderr or
 * as --json asks, under cli's title. Nothing is tidied: files in the making have no name yet, and
 * local nodes end with the pipe that they watch. Called once, when cli knows its options; cli stays
 * put. A SIGBUS that no file explains does what it did before.
 */
void sherd__bus_start(const sherd__cli *cli);

#endif
