/*
 * The command as other programs use it: started with arguments, observed from outside through /proc
 * and its files, judged by its exit code and its JSON. Nothing here asserts: a scenario may run in
 * a process of its own and report errors as text.
 */
#ifndef TESTS_SYSTEM_SCHEDULER_COMMAND_H
#define TESTS_SYSTEM_SCHEDULER_COMMAND_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct command {
    pid_t pid;
    int out, err; /* files in memory */
    int status;   /* exit status, or -signal; valid once it has ended */
    bool ended;
    int64_t began_ms, ended_ms;
} command;

/** Starts a program. argv ends with NULL; so does env (further NAME=VALUE), which may be NULL. The
 *  child dies with the caller. */
void command_start(command *c, const char *program, const char *const *argv,
                   const char *const *env);
bool command_over(command *c);
/** Returns false if it did not end in time; it is killed then. */
bool command_wait(command *c, int64_t ms);
/** Returns what it has written; the caller frees it. */
char *command_said(int fd);
/** Returns its stdout as JSON, or NULL if it is not valid; the caller frees it. */
json_t *command_json(const command *c);
void command_free(command *c);

/** The command under test, and the one whose nodes misbehave. */
const char *sherd_path(void);
const char *liar_path(void);
/** Factor by which time limits are extended (sanitizers). */
int64_t patience(void);

/** Runs the command under test to its end and returns its exit code. *c remains valid. */
int command_run(command *c, const char *const *argv, int64_t ms);

/** Writes a new key file and returns its fingerprint ("sha256:..."). */
void key_file(const char *path, char fingerprint[64]);
/** Writes an allow-list of one coordinator. */
void allow_file(const char *path, const char *fingerprint);
/** Starts a real node with a key of its own and waits for its line; more: further arguments, or
 *  NULL. */
void node_start(command *c, const char *folder, const char *name, const char *allow,
                const char *const *more, char line[1024]);

int64_t clock_now_ms(void);
void pause_ms(unsigned ms);
/** Returns whether the process is stopped by a signal. */
bool is_stopped(pid_t pid);
/** Lists the living children of a process, at most max. */
size_t children_of(pid_t parent, pid_t *out, size_t max);
/** Returns whether the command line of the process has this option and value. */
bool started_with(pid_t pid, const char *option, const char *value);
/** Returns the child that was started with --name `name`, or 0. */
pid_t child_named(pid_t parent, const char *name);
bool process_alive(pid_t pid);
/** Waits until none of them is alive. */
bool processes_gone(const pid_t *pids, size_t n, int64_t ms);

/** Creates a new folder under $TMPDIR; removes it. */
void folder_new(char out[128]);
void folder_remove(const char *path);
/** Counts hidden names in a folder, which a writer might have left; counts all names. */
size_t folder_hidden(const char *path);
size_t folder_entries(const char *path);
bool files_equal(const char *a, const char *b);
/** Returns the bytes of a file, or -1 if there is none. */
int64_t file_size(const char *path);
bool file_holds(const char *path, const char *text);
void file_put(const char *path, const void *bytes, size_t len);
/** Writes a matrix of seeded values that are nearly normal. */
void matrix_file(const char *path, size_t rows, size_t cols, uint64_t seed);

#endif
