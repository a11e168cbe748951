/*
 * A file of JSON objects, one per line, that grows during a run. Each line is complete or absent,
 * however writing ends. One thread at a time.
 */
#ifndef CLI_JSONL_H
#define CLI_JSONL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "sherd/err.h"

/** Caller's storage. `fd` is -1 if no file is open; the other members are internal. */
typedef struct sherd__jsonl {
    int fd;
    const char *path; /* borrowed */
    uint64_t size;    /* up to the end of the last complete line */
} sherd__jsonl;

/** Opens the file and truncates it or, with append, continues after its last complete line and cuts
 *  off an incomplete one. A path that is not a regular file is only appended to. SHERD_EOPEN,
 *  SHERD_EIO. */
int sherd__jsonl_open(sherd__jsonl *l, const char *path, bool append, sherd_diag *d) SHERD_MUST;
/** Writes o as one line by one call of write, with `digits` digits for reals, and releases o.
 *  SHERD_ENOMEM (also if o is NULL). SHERD_EIO: a partly written line is removed. */
int sherd__jsonl_add(sherd__jsonl *l, json_t *o, int digits, sherd_diag *d) SHERD_MUST;
/** Syncs the file to disk if it is on one. SHERD_EIO. */
int sherd__jsonl_sync(sherd__jsonl *l, sherd_diag *d) SHERD_MUST;
void sherd__jsonl_close(sherd__jsonl *l);

#endif
