/*
 * Structs that callers of the public interface allocate. Each begins with `size_t size`, which its
 * _init function sets, so that the struct can grow at its end without breaking programs that were
 * compiled before.
 */
#ifndef CORE_OPTIONS_H
#define CORE_OPTIONS_H

#include <stddef.h>

#include "sherd/err.h"

/** Sets `opt`, `opt_size` bytes as its caller declares it, to the defaults of this library's
 *  version, `size` bytes, and opt's first member to opt_size. Members that only the caller knows
 *  are zeroed. */
void sherd__options_init(void *opt, size_t opt_size, const void *defaults, size_t size);

/**
 * Copies the caller's options `from` to `to`, which holds the defaults of this library's version,
 * `size` bytes. Members that the caller's version lacks keep their defaults. `what` names the
 * struct in messages. Errors: SHERD_EINVAL if from's size is not that of any version, which is so
 * when its _init was not called (`first`: the size of the first version);
 * SHERD_EUNSUPPORTED if the caller has set a member that this version does not know. `to` is
 * unchanged then.
 */
int sherd__options_read(void *to, size_t size, const void *from, size_t first, const char *what,
                        sherd_diag *d) SHERD_MUST;

#endif
