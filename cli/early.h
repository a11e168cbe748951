/* What has to be settled before libraries begin. */
#ifndef CLI_EARLY_H
#define CLI_EARLY_H

/**
 * For the .preinit_array of a program, which runs before the constructors of its libraries.
 * OpenBLAS starts its threads in one, and ends the process by SIGINT where one cannot be started
 * (ulimit -u, a control group's pids, no room for stacks). So as many are tried first; where one
 * fails the program is executed again with OPENBLAS_NUM_THREADS=1. Left alone where that says how
 * many.
 */
void sherd__early_threads(int argc, char **argv, char **env);

/** From main, before other threads: whether it came to that; once. */
int sherd__early_alone(void);

#endif
