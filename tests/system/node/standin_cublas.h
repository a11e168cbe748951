/*
 * A stand-in for cuBLAS on the devices of preload_cuda.c, with faults of the same variable:
 *
 *   blas=N      version (12040)               nocreate    there are no handles
 *   blasfull=N  product N finds no memory     blasfail=N  product N fails
 *   blaslost=N  ... and the device is lost    blashang=N  product N does not end
 *   blaswrong=N product N spoils its result   noint8      bytes are not multiplied
 *   blasarch    it is not for this device     slowblas=N  a product takes N ms longer
 *
 * Sums are added up by ascending terms, and products and sums are rounded. Float64 is emulated,
 * with wrong bits, where the environment asks for it unless both the type of the product and the
 * mode of its handle are pedantic. A product is refused where the real one refuses it, or may do
 * so. It uses its handle's workspace.
 */
struct cublasContext {
    cuda_context context;
    cuda_stream stream;
    cuda_pointer workspace;
    size_t workspace_len;
    cublas_math math;
};

#define DECLARED(name, parameters) EXPORT cublas_status cublas##name parameters;
CUBLAS_REQUIRED(DECLARED)
CUBLAS_OPTIONAL(DECLARED)

cublas_status cublasGetProperty(cublas_property what, int *out)
{
    const int version = word("blas") ? (int)word("blas") : 12040;
    *out = what == SHERD__CUBLAS_MAJOR_VERSION ? version / 1000 : version % 1000 / 10;
    return SUCCESS;
}

cublas_status cublasCreate_v2(cublas_handle *out)
{
    if (!current || word("nocreate")) return SHERD__CUBLAS_STATUS_NOT_INITIALIZED;
    *out = calloc(1, sizeof **out);
    **out = (struct cublasContext){ .context = current };
    return SUCCESS;
}

cublas_status cublasDestroy_v2(cublas_handle h)
{
    free(h);
    return SUCCESS;
}

cublas_status cublasSetStream_v2(cublas_handle h, cuda_stream s)
{
    h->stream = s;
    h->workspace = 0;
    return SUCCESS;
}

cublas_status cublasSetWorkspace_v2(cublas_handle h, void *workspace, size_t len)
{
    if ((uintptr_t)workspace % 256) return SHERD__CUBLAS_STATUS_INVALID_VALUE;
    (void)find(workspace, len, true);
    h->workspace = (uintptr_t)workspace;
    h->workspace_len = len;
    return SUCCESS;
}

cublas_status cublasSetPointerMode_v2(cublas_handle h, cublas_pointers mode)
{
    (void)h;
    return mode == SHERD__CUBLAS_POINTER_MODE_HOST ? SUCCESS : SHERD__CUBLAS_STATUS_INVALID_VALUE;
}

#ifndef STANDIN_WITHOUT_ATOMICS
cublas_status cublasSetAtomicsMode(cublas_handle h, cublas_atomics mode)
{
    (void)h;
    return mode == SHERD__CUBLAS_ATOMICS_NOT_ALLOWED ? SUCCESS : SHERD__CUBLAS_STATUS_INVALID_VALUE;
}
#endif

cublas_status cublasSetMathMode(cublas_handle h, cublas_math mode)
{
    h->math = mode;
    return SUCCESS;
}

#ifndef STANDIN_WITHOUT_GEMM

/* A product of column-major matrices: numbers from one row and one column of an operand to the
 * next. */
typedef struct gemm {
    size_t m, n, k, a_row, a_col, b_row, b_col, ldc;
} gemm;

static void multiply_f64(const gemm *g, const double *a, const double *b, double *c, bool add,
                         bool emulated)
{
    for (size_t j = 0; j < g->n; j++)
        for (size_t i = 0; i < g->m; i++) {
            volatile double term;
            double sum = add ? c[j * g->ldc + i] : 0;
            for (size_t l = 0; l < g->k; l++) {
                term = a[i * g->a_row + l * g->a_col] * b[l * g->b_row + j * g->b_col];
                sum += term;
            }
            c[j * g->ldc + i] = emulated ? sum * (1 + 0x1p-50) : sum;
        }
}

static void multiply_int8(const gemm *g, const int8_t *a, const int8_t *b, int32_t *c, bool add)
{
    for (size_t j = 0; j < g->n; j++)
        for (size_t i = 0; i < g->m; i++) {
            int32_t sum = add ? c[j * g->ldc + i] : 0;
            for (size_t l = 0; l < g->k; l++)
                sum += a[i * g->a_row + l * g->a_col] * b[l * g->b_row + j * g->b_col];
            c[j * g->ldc + i] = sum;
        }
}

static bool asks_for_emulation(void)
{
    const char *on = getenv("CUBLAS_EMULATE_DOUBLE_PRECISION");
    const char *how = getenv("CUBLAS_EMULATION_STRATEGY");
    return on && strcmp(on, "1") == 0 && how && strcmp(how, "eager") == 0;
}

/* Counts a product; sets what becomes of it. */
static cublas_status begin_product(const struct cublasContext *h, bool bytes, unsigned *number)
{
    const unsigned n = *number = atomic_fetch_add(&products, 1) + 1;
    if (h->context != current) return SHERD__CUBLAS_STATUS_INVALID_VALUE;
    if (!h->stream || !h->workspace) abort();
    if (word("blasarch")) return SHERD__CUBLAS_STATUS_ARCH_MISMATCH;
    if (word("noint8") && bytes) return SHERD__CUBLAS_STATUS_NOT_SUPPORTED;
    if (word("slowblas")) usleep((unsigned)(1000 * word("slowblas")));
    if (n == word("blasfull")) return SHERD__CUBLAS_STATUS_ALLOC_FAILED;
    if (n == word("blaslost")) atomic_store(&lost, true);
    if (n == word("blasfail") || state()) return SHERD__CUBLAS_STATUS_EXECUTION_FAILED;
    return SUCCESS;
}

/* Returns the bytes from the first to the last number of a matrix. */
static size_t extent(int rows, int cols, int ld, size_t each)
{
    return (((size_t)cols - 1) * (size_t)ld + (size_t)rows) * each;
}

cublas_status cublasGemmEx(cublas_handle h, cublas_operation op_a, cublas_operation op_b, int m,
                           int n, int k, const void *alpha, const void *a, cublas_type type_a,
                           int lda, const void *b, cublas_type type_b, int ldb, const void *beta,
                           void *c, cublas_type type_c, int ldc, cublas_compute compute,
                           cublas_algorithm algorithm)
{
    const bool bytes = type_a == SHERD__CUBLAS_CUDA_R_8I;
    const bool turned_a = op_a == SHERD__CUBLAS_OP_T, turned_b = op_b == SHERD__CUBLAS_OP_T;
    const size_t each = bytes ? 1 : 8;
    unsigned number;
    const cublas_status status = begin_product(h, bytes, &number);
    if (status) return status;
    if (type_b != type_a || type_c != (bytes ? SHERD__CUBLAS_CUDA_R_32I : SHERD__CUBLAS_CUDA_R_64F))
        return SHERD__CUBLAS_STATUS_NOT_SUPPORTED;
    if (algorithm != SHERD__CUBLAS_GEMM_DEFAULT || m <= 0 || n <= 0 || k <= 0 ||
        lda < (turned_a ? k : m) || ldb < (turned_b ? n : k) || ldc < m)
        return SHERD__CUBLAS_STATUS_INVALID_VALUE;
    if (bytes && (compute != SHERD__CUBLAS_COMPUTE_32I || lda % 4 || ldb % 4 || m % 4 || k % 4 ||
                  ((uintptr_t)a | (uintptr_t)b | (uintptr_t)c) % 16))
        return SHERD__CUBLAS_STATUS_NOT_SUPPORTED;
    if (!bytes && ((uintptr_t)a | (uintptr_t)b | (uintptr_t)c) % 8)
        return SHERD__CUBLAS_STATUS_NOT_SUPPORTED;
    h->stream->hangs |= number == word("blashang");
    if (h->stream->hangs) return SUCCESS;
    const gemm g = { (size_t)m,
                     (size_t)n,
                     (size_t)k,
                     turned_a ? (size_t)lda : 1,
                     turned_a ? 1 : (size_t)lda,
                     turned_b ? (size_t)ldb : 1,
                     turned_b ? 1 : (size_t)ldb,
                     (size_t)ldc };
    const uint8_t *from_a = bytes_at((uintptr_t)a,
                                     extent(turned_a ? k : m, turned_a ? m : k, lda, each));
    const uint8_t *from_b = bytes_at((uintptr_t)b,
                                     extent(turned_b ? n : k, turned_b ? k : n, ldb, each));
    uint8_t *to = bytes_at((uintptr_t)c, extent(m, n, ldc, bytes ? 4 : 8));
    if (bytes) {
        const bool add = *(const int32_t *)beta != 0;
        if (*(const int32_t *)alpha != 1) return SHERD__CUBLAS_STATUS_NOT_SUPPORTED;
        multiply_int8(&g, (const int8_t *)from_a, (const int8_t *)from_b, (int32_t *)(void *)to,
                      add);
    } else {
        const bool pedantic = compute == SHERD__CUBLAS_COMPUTE_64F_PEDANTIC &&
                              h->math == SHERD__CUBLAS_PEDANTIC_MATH;
        if (*(const double *)alpha != 1) return SHERD__CUBLAS_STATUS_NOT_SUPPORTED;
        multiply_f64(&g, (const double *)(const void *)from_a, (const double *)(const void *)from_b,
                     (double *)(void *)to, *(const double *)beta != 0,
                     !pedantic && asks_for_emulation());
    }
    if (number == word("blaswrong") && bytes) to[0] ^= 1;
    else if (number == word("blaswrong")) *(double *)(void *)to += 1;
    memset(bytes_at(h->workspace, h->workspace_len), 1, 512);
    return SUCCESS;
}

#ifndef STANDIN_WITHOUT_ATOMICS
#define COMPUTE_64F 70 /* not pedantic */

cublas_status cublasDgemm_v2(cublas_handle h, cublas_operation op_a, cublas_operation op_b, int m,
                             int n, int k, const double *alpha, const double *a, int lda,
                             const double *b, int ldb, const double *beta, double *c, int ldc)
{
    return cublasGemmEx(h, op_a, op_b, m, n, k, alpha, a, SHERD__CUBLAS_CUDA_R_64F, lda, b,
                        SHERD__CUBLAS_CUDA_R_64F, ldb, beta, c, SHERD__CUBLAS_CUDA_R_64F, ldc,
                        COMPUTE_64F, SHERD__CUBLAS_GEMM_DEFAULT);
}
#endif

#endif
