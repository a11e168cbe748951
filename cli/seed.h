/* Seeds: files of exactly 32 bytes, and numbers where no secret derives from a seed. */
#ifndef CLI_SEED_H
#define CLI_SEED_H

#include <stdbool.h>
#include <stdint.h>

#include "sherd/err.h"

/** Returns whether a value of --seed is a number, and not a file; `./7` is the file 7. A number
 *  that is too large counts as UINT64_MAX. */
bool sherd__seed_number(const char *text, uint64_t *out);
/** Reads a seed from which secrets derive. SHERD_EINVAL for a number; SHERD_EOPEN, SHERD_EIO,
 *  SHERD_ENOMEM; SHERD_EFORMAT for another length. The caller wipes it. */
int sherd__seed_read(uint8_t seed[32], const char *path, sherd_diag *d) SHERD_MUST;

#endif
