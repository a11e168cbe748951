/*
 * A file of JSON objects, one a line, that is added to while something goes on: each line is whole
 * or not there, whatever ends the writing. One thread at a time.
 */
#ifndef CLI_JSONL_H
#define CLI_JSONL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "sherd/err.h"

/** Caller's storage: `fd` is -1 where none is open, and nothing else is to be touched. */
typedef struct sherd__jsonl {
    int fd;
    const char *path; /* borrowed */
    uint64_t size;    /* up to the last whole line */
} sherd__jsonl;

/** Opens it: emptied, or with go_on behind the last whole line of what is there; a line that its
 *  writer did not end is cut off. Whatever is no regular file is written to as it is. SHERD_EOPEN,
 *  SHERD_EIO. */
int sherd__jsonl_open(sherd__jsonl *l, const char *path, bool go_on, sherd_diag *d) SHERD_MUST;
/** One line, by one call of write, with so many digits of reals; o is released. SHERD_ENOMEM
 *  (also where o is NULL); SHERD_EIO: what was written of it is taken back. */
int sherd__jsonl_add(sherd__jsonl *l, json_t *o, int digits, sherd_diag *d) SHERD_MUST;
/** Everything on disk, where it is one. SHERD_EIO. */
int sherd__jsonl_sync(sherd__jsonl *l, sherd_diag *d) SHERD_MUST;
void sherd__jsonl_close(sherd__jsonl *l);

#endif
