/* Settings of the command's own process: descriptors, signals, core dumps. */
#ifndef CLI_PROCESS_H
#define CLI_PROCESS_H

/* The path of this program, which it executes again as a node or to measure a new process. */
#define SHERD__SELF "/proc/self/exe"

/**
 * Called once, before everything else. Opens descriptors 0 to 2 if the caller closed them, so that
 * no file of ours gets such a number; writing to a closed stdout still fails. Ignores SIGPIPE and
 * SIGXFSZ. Catches SIGINT, SIGTERM and SIGHUP; a second signal ends the process at once. Forbids
 * core dumps and ptrace by other processes of the user, since the memory contains operands and
 * seeds. Names the process sherd.
 */
void sherd__process_start(void);
/** Has the effect of a first signal: sherd__cli_interrupted returns SIGALRM after this call, and
 *  threads that wait for a signal are woken. */
void sherd__process_late(void);

#endif
