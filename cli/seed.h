/* Seed files: exactly 32 bytes. */
#ifndef CLI_SEED_H
#define CLI_SEED_H

#include <stdint.h>

#include "sherd/err.h"

/** Reads a seed. SHERD_EOPEN, SHERD_EIO, SHERD_ENOMEM; SHERD_EFORMAT for another length. The caller
 *  wipes it. */
int sherd__seed_read(uint8_t seed[32], const char *path, sherd_diag *d) SHERD_MUST;

#endif
