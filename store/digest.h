/*
 * SHA-256 of a matrix, which identifies an operand in certificates, ledgers and metadata. It does
 * not depend on strides or storage order. In Python:
 *
 *     a = numpy.ascontiguousarray(a)
 *     head = "sherd-matrix-v1 %s %d %d\n" % (a.dtype.str, *a.shape)
 *     hashlib.sha256(head.encode() + a.tobytes()).hexdigest()
 *
 * A party that knows a digest can test guesses of the matrix.
 */
#ifndef STORE_DIGEST_H
#define STORE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"
#include "sherd/hooks.h"
#include "sherd/mat.h"

#define SHERD__DIGEST_BYTES 32
/** 64 hexadecimal digits and NUL. */
#define SHERD__DIGEST_TEXT 65

typedef struct sherd__digest {
    uint8_t sha256[SHERD__DIGEST_BYTES];
} sherd__digest;

/** Computes the digest of v at about 2 GB/s. May be called on any thread. Errors: SHERD_EINVAL,
 *  SHERD_ENOMEM. */
int sherd__digest_view(sherd__digest *out, sherd_view v, sherd_diag *d) SHERD_MUST;
/** The same, of a matrix that may be large. SHERD_EINTERRUPTED: hooks, which may be NULL. */
int sherd__digest_view_asking(sherd__digest *out, sherd_view v, const sherd_hooks *hooks,
                              sherd_diag *d) SHERD_MUST;

/** Computes a digest from rows that arrive in order. */
typedef struct sherd__digest_stream sherd__digest_stream;
int sherd__digest_new(sherd__digest_stream **out, sherd_dtype dtype, size_t rows, size_t cols,
                      sherd_diag *d) SHERD_MUST;
int sherd__digest_rows(sherd__digest_stream *s, sherd_view v, sherd_diag *d) SHERD_MUST;
/** Returns the digest in *out. Frees s, on failure too. Errors: SHERD_EINVAL if rows are
 *  missing. */
int sherd__digest_end(sherd__digest_stream *s, sherd__digest *out, sherd_diag *d) SHERD_MUST;
/** Frees s. NULL is allowed. */
void sherd__digest_free(sherd__digest_stream *s);

/** Computes SHA-256 of label (with its NUL) and bytes, for commitments. Errors: SHERD_EINTERNAL if
 *  OpenSSL fails. */
int sherd__digest_labelled(sherd__digest *out, const char *label, const void *bytes,
                           size_t len) SHERD_MUST;

/** Computes SHA-256 of the bytes alone, like sha256sum. Errors: SHERD_EINTERNAL if OpenSSL
 *  fails. */
int sherd__digest_bytes(sherd__digest *out, const void *bytes, size_t len) SHERD_MUST;

void sherd__digest_text(const sherd__digest *g, char out[SHERD__DIGEST_TEXT]);

#endif
