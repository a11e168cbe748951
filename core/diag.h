#ifndef CORE_DIAG_H
#define CORE_DIAG_H

#include "sherd/err.h"

/**
 * Records a failure in *d (which may be NULL) and returns `code`, so that a caller can write
 * `return sherd__fail(d, SHERD_EFORMAT, "re-save it with numpy.save", "%s: byte %zu: ...", ...)`.
 * hint may be NULL. The first failure is kept: a diag that already has a code does not change.
 */
int sherd__fail(sherd_diag *d, int code, const char *hint, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/** Records that an allocation failed, and returns SHERD_ENOMEM. The message is "out of memory for "
 *  and `use`, a printf format that names what was to be held or done, such as "%zu labels". */
int sherd__fail_memory(sherd_diag *d, const char *use, ...) __attribute__((format(printf, 2, 3)));

/** As sherd__fail_memory, where the user can do better than free memory: ask for less, say. */
int sherd__fail_memory_hint(sherd_diag *d, const char *hint, const char *use, ...)
    __attribute__((format(printf, 3, 4)));

/** Records an error of a function that gives no message, and returns it: "cannot ", `what` and the
 *  error's text. */
int sherd__fail_to(sherd_diag *d, int err, const char *what);

/** Writes "6.3 GB" or "820 KB" (powers of 1000, as in all messages) to out, and returns out. */
const char *sherd__bytes_text(double bytes, char out[16]);

#endif
