/* What the command does to its own process: descriptors, signals, core dumps. */
#ifndef CLI_PROCESS_H
#define CLI_PROCESS_H

/* The command itself, where it starts itself once more: as a node, or to measure a new process. */
#define SHERD__SELF "/proc/self/exe"

/**
 * Called once, first thing: opens descriptors 0 to 2 where the caller closed them (so that no file
 * of ours lands there; writing to a closed stdout still fails), ignores SIGPIPE and SIGXFSZ,
 * catches SIGINT, SIGTERM and SIGHUP (a second one ends the process at once), and forbids core
 * dumps and ptrace by other processes of the user, since the memory holds operands and seeds.
 */
void sherd__process_start(void);
/** As a first signal would: from here on sherd__cli_interrupted is SIGALRM, and whoever waits for a
 *  signal is woken. */
void sherd__process_late(void);

#endif
