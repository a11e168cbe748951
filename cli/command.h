/*
 * The whole command, for the main function of a program: `sherd` (cli/main.c), and `sherd-mpi`,
 * which runs it in several processes (mpi/main.c).
 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include "sherd/collective.h"

/** Runs the whole command; main's only call. Returns the exit code. */
int sherd__cli_main(int argc, char **argv);
/** Set before the command begins if this process is one of several that run it. Borrowed. */
void sherd__train_among(const sherd_collective *c);

#endif
