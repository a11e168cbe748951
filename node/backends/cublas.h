/* Products by cuBLAS, for a stream of CUDA. */
#ifndef NODE_BACKENDS_CUBLAS_H
#define NODE_BACKENDS_CUBLAS_H

#include "node/backends/accelerator.h"
#include "node/backends/cublas_api.h"

/** Makes a handle for a stream of the current context. It computes in `workspace`, len bytes of the
 *  device, aligned to 256 bytes, so that results do not depend on other streams. *out is NULL after
 *  a failure. */
cublas_status sherd__cublas_new(const cublas_api *a, cuda_stream stream, void *workspace,
                                size_t len, cublas_handle *out);
/** Starts a product. Its dimensions and lines are below 2^31. */
cublas_status sherd__cublas_product(const cublas_api *a, cublas_handle h,
                                    const sherd__library_product *p);
/** Returns SHERD_OK, SHERD_ENOMEM, SHERD_EUNSUPPORTED (the library does not compute this on this
 *  device) or SHERD_EDEVICE. what: what failed. */
int sherd__cublas_check(cublas_status status, const char *what, sherd_diag *d);

#endif
