/*
 * An append-only text file: a first line that names its format, followed by lines that are durable
 * once they have been added. An incomplete line at the end of the file was never reported as added,
 * and is removed when the file is opened.
 *
 * The file has mode 0600 and is locked while it is open, so that only one process uses it.
 */
#ifndef STORE_JOURNAL_H
#define STORE_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "sherd/err.h"

typedef struct sherd__journal sherd__journal;

typedef enum sherd__journal_mode {
    SHERD__JOURNAL_FRESH,    /* starts empty, and replaces an existing file */
    SHERD__JOURNAL_EXISTING, /* SHERD_EFORMAT if it does not exist */
    SHERD__JOURNAL_ANY       /* created if it does not exist */
} sherd__journal_mode;

typedef struct sherd__journal_kind {
    const char *first;   /* first line, with its newline */
    const char *name;    /* "list of sums" */
    const char *missing; /* why it must exist, for messages; NULL in other modes */
    const char *remedy;  /* hint if it does not exist; likewise */
    /** Parses a line, given without its newline. Errors: SHERD_EFORMAT if it is not a valid line;
     *  SHERD_ENOMEM. */
    int (*line)(void *ctx, const char *at, const char *end);
} sherd__journal_kind;

/**
 * Opens `path` and passes each line to kind->line. The caller closes *out with
 * sherd__journal_close. Errors: SHERD_EFORMAT with the number of an invalid line; SHERD_EBUSY if
 * another process has the file open or has created it meanwhile; SHERD_EOPEN (also if it is not a
 * regular file: the call does not wait for a pipe); SHERD_EIO, SHERD_ENOMEM.
 */
int sherd__journal_open(sherd__journal **out, const char *path, sherd__journal_mode mode,
                        const sherd__journal_kind *kind, void *ctx, sherd_diag *d) SHERD_MUST;
/** Returns true if the file did not exist when it was opened. */
bool sherd__journal_made(const sherd__journal *j);
/** Appends complete lines. With `lasts` they, and all lines before them, are synced to disk when
 *  the call returns. Errors: SHERD_EIO; every later call then fails too, since the contents of the
 *  file are unknown. */
int sherd__journal_add(sherd__journal *j, const char *text, size_t len, bool lasts,
                       sherd_diag *d) SHERD_MUST;
/** Closes the file and releases its lock. NULL is allowed. */
void sherd__journal_close(sherd__journal *j);

#endif
