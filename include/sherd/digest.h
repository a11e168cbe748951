/*
 * SHA-256 of matrices and of bytes. That of a matrix does not depend on strides or storage order;
 * certificates (docs/CERTIFICATES.md) and metadata identify operands by it. Who learns a digest can
 * test guesses of the matrix.
 */
#ifndef SHERD_DIGEST_H
#define SHERD_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"
#include "sherd/mat.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Writes the digest of v, 32 bytes, to out. SHERD_EINVAL: an invalid view; SHERD_ENOMEM. */
SHERD_API int sherd_digest_matrix(sherd_view v, uint8_t *out, sherd_diag *d) SHERD_MUST;
/** Writes SHA-256 of len bytes, 32 bytes, to out: what sha256sum prints of a file. SHERD_EINTERNAL:
 *  OpenSSL failed. */
SHERD_API int sherd_digest_bytes(const void *bytes, size_t len, uint8_t *out,
                                 sherd_diag *d) SHERD_MUST;

#ifdef __cplusplus
}
#endif

#endif
