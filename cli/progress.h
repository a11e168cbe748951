/*
 * The progress line. On a terminal one line is redrawn at most ten times a second; elsewhere a line
 * is printed for each tenth of the work. Under --quiet or --progress none nothing is printed.
 *
 *     multiply  62 % [############--------]  3 s left  1.2 GB out, 310 MB in  41/64 tasks  8/s
 *
 * On a terminal the line fits its width: the bar becomes shorter, then the last fields are left
 * out, whole.
 */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef enum sherd__progress_mode {
    SHERD__PROGRESS_AUTO, /* bar on a terminal, else plain; values in the order of --progress */
    SHERD__PROGRESS_BAR,
    SHERD__PROGRESS_PLAIN,
    SHERD__PROGRESS_NONE
} sherd__progress_mode;

/** Caller's storage; set up by sherd__progress_init. One thread at a time. */
typedef struct sherd__progress_line {
    FILE *out;
    sherd__progress_mode mode;
    const char *what, *unit; /* "multiply", "tasks" */
    double started, drawn;   /* seconds of the caller's clock; drawn < 0: never */
    uint64_t from;           /* done before this run: not part of its rate */
    int tenths;              /* plain: tenths printed so far */
    bool shown;              /* the bar is currently on the terminal */
} sherd__progress_line;

/** `what` and `unit` are borrowed. isatty and TERM resolve AUTO here. now: any clock. */
void sherd__progress_init(sherd__progress_line *p, FILE *out, sherd__progress_mode mode,
                          const char *what, const char *unit, double now);
/** Shows `done` of `total` (0: not known yet); `extra` ("1.2 GB out") may be NULL. */
void sherd__progress_update(sherd__progress_line *p, uint64_t done, uint64_t total,
                            const char *extra, double now);
/** Erases the bar at the end of the work. */
void sherd__progress_fini(sherd__progress_line *p);

/** Erases the bar if it is currently on stderr. Called before anything else is printed. */
void sherd__progress_clear(void);

#endif
