/* What has to be settled before libraries begin. */
#ifndef CLI_EARLY_H
#define CLI_EARLY_H

#include <stdbool.h>

/*
 * A program that calls one of the functions below has an entry of cli/early.c in its
 * .preinit_array, which runs before the constructors of its libraries. OpenBLAS starts its threads
 * in one, and ends the process by SIGINT where one cannot be started (ulimit -u, a control group's
 * pids, no room for stacks). So as many are tried first; where one fails the program is executed
 * again with OPENBLAS_NUM_THREADS=1. Left alone where that says how many.
 */

/** From main, before other threads: whether it came to that; once. */
bool sherd__early_alone(void);
/** The same, told on stderr. */
void sherd__early_warn(void);

#endif
