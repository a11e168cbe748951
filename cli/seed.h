/* Seeds: files of exactly 32 bytes, and numbers where no secret derives from a seed. */
#ifndef CLI_SEED_H
#define CLI_SEED_H

#include <stdbool.h>
#include <stdint.h>

#include "sherd/err.h"

/** Reads a seed from which secrets derive. SHERD_EINVAL for a number; SHERD_EOPEN, SHERD_EIO,
 *  SHERD_ENOMEM; SHERD_EFORMAT for another length. The caller wipes it. */
int sherd__seed_read(uint8_t seed[32], const char *path, sherd_diag *d) SHERD_MUST;
/** Reads a seed that may be a number from 0 to SHERD_TRAIN_SEED_MAX: sets *is_number, and *number
 *  or seed. `./7` is the file 7. SHERD_EINVAL for another number, where no file has that name;
 *  other errors are those of sherd__seed_read. The caller wipes `seed`. */
int sherd__seed_read_any(uint8_t seed[32], uint64_t *number, bool *is_number, const char *text,
                         sherd_diag *d) SHERD_MUST;

#endif
