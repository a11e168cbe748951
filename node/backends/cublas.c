/*
 * Products of row-major matrices by cuBLAS, whose matrices are column-major: it is given the
 * transposed product, whose operands and result lie in memory just as ours do.
 *
 * Since version 12.9 cuBLAS may emulate float64 by products of bytes, with errors that exact
 * products do not allow, and variables of the environment (CUBLAS_EMULATE_DOUBLE_PRECISION,
 * CUBLAS_EMULATION_STRATEGY) ask for it. Both the pedantic type of a product and the pedantic mode
 * of a handle exclude it.
 */
#include "node/backends/cublas.h"

#include "core/diag.h"

cublas_status sherd__cublas_new(const cublas_api *a, cuda_stream stream, void *workspace,
                                size_t len, cublas_handle *out)
{
    cublas_handle h = NULL;
    cublas_status status = a->Create_v2(&h);
    if (!status) status = a->SetStream_v2(h, stream);
    if (!status) status = a->SetWorkspace_v2(h, workspace, len); /* SetStream sets it to another */
    if (!status) status = a->SetPointerMode_v2(h, SHERD__CUBLAS_POINTER_MODE_HOST);
    if (!status && a->SetAtomicsMode)
        status = a->SetAtomicsMode(h, SHERD__CUBLAS_ATOMICS_NOT_ALLOWED);
    if (status && h) a->Destroy_v2(h);
    *out = status ? NULL : h;
    return status;
}

static const void *at(void *memory, uint64_t bytes)
{
    return (const void *)((uintptr_t)memory + bytes);
}

static cublas_status multiply_plain(const cublas_api *a, cublas_handle h,
                                    const sherd__library_product *p)
{
    const double one = 1, beta = p->add;
    if (!a->Dgemm_v2) return SHERD__CUBLAS_STATUS_NOT_SUPPORTED;
    const cublas_status status = a->SetMathMode(h, SHERD__CUBLAS_DEFAULT_MATH);
    return status ? status
                  : a->Dgemm_v2(h, p->right_turned ? SHERD__CUBLAS_OP_T : SHERD__CUBLAS_OP_N,
                                p->left_turned ? SHERD__CUBLAS_OP_T : SHERD__CUBLAS_OP_N, (int)p->m,
                                (int)p->n, (int)p->k, &one, at(p->right, p->right_at),
                                (int)p->right_ld, at(p->left, p->left_at), (int)p->left_ld, &beta,
                                (void *)(uintptr_t)at(p->out, p->out_at), (int)p->out_ld);
}

cublas_status sherd__cublas_product(const cublas_api *a, cublas_handle h,
                                    const sherd__library_product *p)
{
    if (p->kind == SHERD__LIBRARY_PLAIN) return multiply_plain(a, h, p);
    static const int32_t whole[] = { 0, 1 };
    static const double real[] = { 0, 1 };
    const bool bytes = p->kind == SHERD__LIBRARY_INT8;
    const cublas_type in = bytes ? SHERD__CUBLAS_CUDA_R_8I : SHERD__CUBLAS_CUDA_R_64F;
    const void *one = bytes ? (const void *)&whole[1] : &real[1];
    const void *beta = bytes ? (const void *)&whole[p->add] : &real[p->add];
    const cublas_status status = a->SetMathMode(h, bytes ? SHERD__CUBLAS_DEFAULT_MATH
                                                         : SHERD__CUBLAS_PEDANTIC_MATH);
    if (status) return status;
    return a->GemmEx(h, p->right_turned ? SHERD__CUBLAS_OP_T : SHERD__CUBLAS_OP_N,
                     p->left_turned ? SHERD__CUBLAS_OP_T : SHERD__CUBLAS_OP_N, (int)p->m, (int)p->n,
                     (int)p->k, one, at(p->right, p->right_at), in, (int)p->right_ld,
                     at(p->left, p->left_at), in, (int)p->left_ld, beta,
                     (void *)(uintptr_t)at(p->out, p->out_at),
                     bytes ? SHERD__CUBLAS_CUDA_R_32I : SHERD__CUBLAS_CUDA_R_64F, (int)p->out_ld,
                     bytes ? SHERD__CUBLAS_COMPUTE_32I : SHERD__CUBLAS_COMPUTE_64F_PEDANTIC,
                     SHERD__CUBLAS_GEMM_DEFAULT);
}

static int error_of(cublas_status status)
{
    switch (status) {
    case SHERD__CUBLAS_SUCCESS: return SHERD_OK;
    case SHERD__CUBLAS_STATUS_ALLOC_FAILED: return SHERD_ENOMEM;
    case SHERD__CUBLAS_STATUS_ARCH_MISMATCH:
    case SHERD__CUBLAS_STATUS_NOT_SUPPORTED: return SHERD_EUNSUPPORTED;
    default: return SHERD_EDEVICE;
    }
}

int sherd__cublas_check(cublas_status status, const char *what, sherd_diag *d)
{
    const int err = error_of(status);
    return err ? sherd__fail(d, err,
                             status == SHERD__CUBLAS_STATUS_NOT_INITIALIZED
                                 ? "install a cuBLAS that the driver supports"
                                 : NULL,
                             "%s: %s (%d)", what, sherd__cublas_error(status), (int)status)
               : SHERD_OK;
}
