/*
 * A text file that only grows: a first line that names its format, then lines that each last once
 * they were added. A line that was cut at the end of the file was never reported as added, and is
 * removed when the file is opened.
 *
 * The file is 0600, and locked as long as it is open: one process has it at a time.
 */
#ifndef STORE_JOURNAL_H
#define STORE_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "sherd/err.h"

typedef struct sherd__journal sherd__journal;

typedef enum sherd__journal_mode {
    SHERD__JOURNAL_FRESH,    /* empty, whatever was there */
    SHERD__JOURNAL_EXISTING, /* SHERD_EFORMAT where it does not exist */
    SHERD__JOURNAL_ANY       /* made where it does not exist */
} sherd__journal_mode;

typedef struct sherd__journal_kind {
    const char *first;   /* line, with its newline */
    const char *name;    /* "list of sums" */
    const char *missing; /* why it has to be there, for messages; NULL in other modes */
    const char *remedy;  /* where it does not exist; likewise */
    /** Takes a line, without its newline. SHERD_EFORMAT: it is no such line; SHERD_ENOMEM. */
    int (*line)(void *ctx, const char *at, const char *end);
} sherd__journal_kind;

/**
 * Opens `path` and hands each line to kind->line. SHERD_EFORMAT with the number of a line that is
 * none, SHERD_EBUSY where another process has it open or made it meanwhile, SHERD_EOPEN (also where
 * it is no regular file: no pipe is waited for), SHERD_EIO, SHERD_ENOMEM.
 */
int sherd__journal_open(sherd__journal **out, const char *path, sherd__journal_mode mode,
                        const sherd__journal_kind *kind, void *ctx, sherd_diag *d) SHERD_MUST;
/** Whether it did not exist when it was opened. */
bool sherd__journal_made(const sherd__journal *j);
/** Adds whole lines. `lasts`: they are on the disk when the call returns, and with them all before.
 *  SHERD_EIO; then every later call fails too, since what is in the file is not known. */
int sherd__journal_add(sherd__journal *j, const char *text, size_t len, bool lasts,
                       sherd_diag *d) SHERD_MUST;
/** NULL is allowed. */
void sherd__journal_close(sherd__journal *j);

#endif
