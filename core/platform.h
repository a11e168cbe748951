/* What determines the results of this process's computations: the machine and the code. */
#ifndef CORE_PLATFORM_H
#define CORE_PLATFORM_H

#include <stdbool.h>
#include <stdint.h>

#include "core/hash.h"

/**
 * Hashes everything that may change the result of a computation that was tested before: the
 * processor with the features that the system permits, its microcode, the kernel and the boot of
 * the machine; the program and every library in this process, by their build ids; and the
 * environment variables that select code (LD_*, GLIBC_TUNABLES, OPENBLAS_*). Takes about 0.1 ms.
 *
 * Returns false where part of this is not known, as for a library without a build id: nothing
 * should be concluded from earlier tests then.
 */
bool sherd__platform_hash(uint8_t out[SHERD__HASH]);

#endif
