/*
 * The command as other programs meet it: started with arguments, watched from outside through /proc
 * and its files, judged by its exit code and its JSON. Nothing here asserts: a scenario may run in
 * a process of its own and reports in words.
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
    int status;   /* exit status, or -signal; once it has ended */
    bool ended;
    int64_t began_ms, ended_ms;
} command;

/** argv ends with NULL, env (more NAME=VALUE, or NULL) too. The child dies with the caller. */
void command_start(command *c, const char *program, const char *const *argv,
                   const char *const *env);
bool command_over(command *c);
/** False where it did not end in time; it is then killed. */
bool command_wait(command *c, int64_t ms);
/** What it has written; *text is the caller's to free. */
char *command_said(int fd);
/** Its stdout as JSON; NULL where it is none. The caller's. */
json_t *command_json(const command *c);
void command_free(command *c);

/** The command under test, and the one whose nodes misbehave. */
const char *sherd_path(void);
const char *liar_path(void);
/** How much longer everything may take (sanitizers). */
int64_t patience(void);

/** Runs the command under test to its end; its exit code. NULL or more environment; *c stays. */
int command_run(command *c, const char *const *argv, int64_t ms);

/** A new key file, and its fingerprint ("sha256:..."). */
void key_file(const char *path, char fingerprint[64]);
/** An allow-list of one coordinator. */
void allow_file(const char *path, const char *fingerprint);
/** A real node with a key of its own; more: further arguments, or NULL. Waits for its line. */
void node_start(command *c, const char *folder, const char *name, const char *allow,
                const char *const *more, char line[1024]);

int64_t clock_now_ms(void);
void pause_ms(unsigned ms);
/** Living children of a process, not more than max. */
size_t children_of(pid_t parent, pid_t *out, size_t max);
/** Whether the process runs a command line with this option and value. */
bool started_with(pid_t pid, const char *option, const char *value);
/** The child that was started with --name `name`, or 0. */
pid_t child_named(pid_t parent, const char *name);
bool process_alive(pid_t pid);
/** Waits until none of them lives. */
bool processes_gone(const pid_t *pids, size_t n, int64_t ms);

/** A new folder under $TMPDIR, and its end. */
void folder_new(char out[128]);
void folder_remove(const char *path);
/** Names in it that are hidden; what a writer might have left behind. */
size_t folder_hidden(const char *path);
size_t folder_entries(const char *path);
bool files_equal(const char *a, const char *b);
/** Bytes in a file; -1 where there is none. */
int64_t file_size(const char *path);
bool file_holds(const char *path, const char *text);
void file_put(const char *path, const void *bytes, size_t len);
/** A matrix of seeded normal-like values. */
void matrix_file(const char *path, size_t rows, size_t cols, uint64_t seed);

#endif
