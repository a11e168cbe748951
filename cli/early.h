/* Checks that must run before the constructors of libraries. */
#ifndef CLI_EARLY_H
#define CLI_EARLY_H

#include <stdbool.h>

/*
 * A program that calls one of the functions below has an entry of cli/early.c in its
 * .preinit_array, which runs before the constructors of its libraries. OpenBLAS starts its threads
 * in a constructor and ends the process with SIGINT if one cannot be started (ulimit -u, a control
 * group's pids limit, no room for stacks). This check therefore first starts as many threads
 * itself. If one fails, the program is executed again with OPENBLAS_NUM_THREADS=1. If the
 * environment already sets the number of threads, nothing is done.
 */

/** Returns whether the program was executed again with one BLAS thread. Called from main, before
 *  other threads start; once. */
bool sherd__early_alone(void);
/** Prints a warning on stderr if sherd__early_alone returns true. */
void sherd__early_warn(void);

#endif
