/*
 * Structs that callers of the public interface allocate. Each begins with `size_t size`, the size
 * that the struct had when the caller was compiled, so that it can grow at its end without breaking
 * programs: members that the caller does not know are read as 0, which means the default.
 */
#ifndef CORE_OPTIONS_H
#define CORE_OPTIONS_H

#include <stddef.h>

#include "sherd/err.h"

/**
 * Copies the caller's options `from` to `to`, a struct of this library's version with `size` bytes.
 * Members that the caller's version lacks become 0; all of them if `from` is NULL. `what` names the
 * struct in messages. Errors: SHERD_EINVAL if from's size was not set; SHERD_EUNSUPPORTED if the
 * caller has set a member that this version does not know. `to` is unchanged then.
 */
int sherd__options_read(void *to, size_t size, const void *from, const char *what,
                        sherd_diag *d) SHERD_MUST;

/** Returns SHERD_EINVAL if the struct `out` of a result is NULL or its size is not set. */
int sherd__result_check(const void *out, const char *what, sherd_diag *d) SHERD_MUST;
/** Copies a result of this library's version to the caller's struct, up to the size that the
 *  caller set. The size member is unchanged. */
void sherd__result_write(void *out, const void *result, size_t size);

#endif
