/*
 * Element-wise functions compiled three times from one set of kernels: for AVX-512, for AVX2 with
 * FMA, and for any x86-64 (where fma is the C library's exact one). The choice is made here instead
 * of by target_clones, so that a test can run all three and compare bits.
 */
#include "matrix/funcs.h"

#include <stdatomic.h>
#include <string.h>

#include "matrix/funcs_kernels.h"

typedef struct level {
    void (*one[8])(const double *x, size_t n, double *out);
    void (*two[2])(const double *a, const double *b, size_t n, double *out);
    void (*one32[4])(const float *x, size_t n, float *out);
} level;

enum { EXP, TANH, SIGMOID, RELU, LOG, SQUARE };
enum { MINUS, TIMES };

/* out is the input or does not overlap it: in both cases no iteration depends on another. */
#ifdef __clang__
#define IN_PLACE
#else
#define IN_PLACE _Pragma("GCC ivdep")
#endif

#define ONE(target, suffix, f)                                                                     \
    target static void f##_##suffix(const double *x, size_t n, double *out)                        \
    {                                                                                              \
        IN_PLACE for (size_t i = 0; i < n; i++) out[i] = k_##f(x[i]);                              \
    }
#define TWO(target, suffix, f)                                                                     \
    target static void f##_##suffix(const double *a, const double *b, size_t n, double *out)       \
    {                                                                                              \
        IN_PLACE for (size_t i = 0; i < n; i++) out[i] = k_##f(a[i], b[i]);                        \
    }
#define ONE32(target, suffix, f)                                                                   \
    target static void f##32_##suffix(const float *x, size_t n, float *out)                        \
    {                                                                                              \
        IN_PLACE for (size_t i = 0; i < n; i++) out[i] = k_##f##32(x[i]);                          \
    }
#define LEVEL(target, suffix)                                                                      \
    ONE32(target, suffix, exp)                                                                     \
    ONE32(target, suffix, tanh)                                                                    \
    ONE32(target, suffix, sigmoid)                                                                 \
    ONE32(target, suffix, relu)                                                                    \
    ONE(target, suffix, exp)                                                                       \
    ONE(target, suffix, log)                                                                       \
    ONE(target, suffix, tanh)                                                                      \
    ONE(target, suffix, sigmoid)                                                                   \
    ONE(target, suffix, relu)                                                                      \
    ONE(target, suffix, square)                                                                    \
    TWO(target, suffix, minus)                                                                     \
    TWO(target, suffix, times)                                                                     \
    static const level level_##suffix = {                                                          \
        .one = { [EXP] = exp_##suffix,                                                             \
                 [LOG] = log_##suffix,                                                             \
                 [TANH] = tanh_##suffix,                                                           \
                 [SIGMOID] = sigmoid_##suffix,                                                     \
                 [RELU] = relu_##suffix,                                                           \
                 [SQUARE] = square_##suffix },                                                     \
        .two = { [MINUS] = minus_##suffix, [TIMES] = times_##suffix },                             \
        .one32 = { [EXP] = exp32_##suffix,                                                         \
                   [TANH] = tanh32_##suffix,                                                       \
                   [SIGMOID] = sigmoid32_##suffix,                                                 \
                   [RELU] = relu32_##suffix },                                                     \
    };

#define NOTHING
LEVEL(NOTHING, base)
#ifdef __x86_64__
LEVEL(__attribute__((target("avx2,fma"))), fma)
LEVEL(__attribute__((target("avx512f,avx512dq,avx512vl,fma"))), avx512)
#endif

static _Atomic(const level *) forced;

static bool level_runs(unsigned n)
{
#ifdef __x86_64__
    if (n == 2) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (n == 3)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma");
#endif
    return n == 1;
}

static const level *level_of(unsigned n)
{
#ifdef __x86_64__
    if (n == 2) return &level_fma;
    if (n == 3) return &level_avx512;
#endif
    (void)n;
    return &level_base;
}

bool sherd__funcs_force(unsigned n)
{
    if (n != 0 && !level_runs(n)) return false;
    atomic_store(&forced, n == 0 ? NULL : level_of(n));
    return true;
}

static const level *chosen(void)
{
    const level *l = atomic_load_explicit(&forced, memory_order_relaxed);
    if (l) return l;
    return level_of(level_runs(3) ? 3 : level_runs(2) ? 2 : 1);
}

void sherd__exp_f64(const double *x, size_t n, double *out)
{
    chosen()->one[EXP](x, n, out);
}

void sherd__log_f64(const double *x, size_t n, double *out)
{
    chosen()->one[LOG](x, n, out);
}

void sherd__tanh_f64(const double *x, size_t n, double *out)
{
    chosen()->one[TANH](x, n, out);
}

void sherd__sigmoid_f64(const double *x, size_t n, double *out)
{
    chosen()->one[SIGMOID](x, n, out);
}

void sherd__relu_f64(const double *x, size_t n, double *out)
{
    chosen()->one[RELU](x, n, out);
}

void sherd__square_f64(const double *x, size_t n, double *out)
{
    chosen()->one[SQUARE](x, n, out);
}

void sherd__minus_f64(const double *a, const double *b, size_t n, double *out)
{
    chosen()->two[MINUS](a, b, n, out);
}

void sherd__times_f64(const double *a, const double *b, size_t n, double *out)
{
    chosen()->two[TIMES](a, b, n, out);
}

void sherd__exp_f32(const float *x, size_t n, float *out)
{
    chosen()->one32[EXP](x, n, out);
}

void sherd__tanh_f32(const float *x, size_t n, float *out)
{
    chosen()->one32[TANH](x, n, out);
}

void sherd__sigmoid_f32(const float *x, size_t n, float *out)
{
    chosen()->one32[SIGMOID](x, n, out);
}

void sherd__relu_f32(const float *x, size_t n, float *out)
{
    chosen()->one32[RELU](x, n, out);
}

/* --- by number ------------------------------------------------------------------------------- */

const char *const sherd__op_names[] = { "",       "dot",      "",     "",     "",        "",
                                        "",       "",         "",     "",     "",        "",
                                        "",       "",         "",     "",     "sigmoid", "minus",
                                        "square", "multiply", "relu", "tanh", "exp",     NULL };
_Static_assert(SHERD_OP_PRODUCT == 1 && SHERD_OP_SIGMOID == 16 && SHERD_OP_MINUS == 17 &&
                   SHERD_OP_SQUARE == 18 && SHERD_OP_TIMES == 19 && SHERD_OP_RELU == 20 &&
                   SHERD_OP_TANH == 21 && SHERD_OP_EXP == 22 &&
                   sizeof sherd__op_names / sizeof *sherd__op_names == SHERD_OP_EXP + 2,
               "sherd__op_names is in the order of sherd_op");

static const struct operation {
    void (*one)(const double *x, size_t n, double *out);
    void (*two)(const double *a, const double *b, size_t n, double *out);
} operations[] = {
    [SHERD_OP_SIGMOID] = { sherd__sigmoid_f64, NULL },
    [SHERD_OP_MINUS] = { NULL, sherd__minus_f64 },
    [SHERD_OP_SQUARE] = { sherd__square_f64, NULL },
    [SHERD_OP_TIMES] = { NULL, sherd__times_f64 },
    [SHERD_OP_RELU] = { sherd__relu_f64, NULL },
    [SHERD_OP_TANH] = { sherd__tanh_f64, NULL },
    [SHERD_OP_EXP] = { sherd__exp_f64, NULL },
};

#define OPERATIONS (sizeof operations / sizeof *operations)

unsigned sherd__map_arity(uint32_t op)
{
    if (op >= OPERATIONS) return 0;
    return operations[op].one ? 1 : operations[op].two ? 2 : 0;
}

unsigned sherd_op_operands(sherd_op op)
{
    return op == SHERD_OP_PRODUCT ? 2 : sherd__map_arity(op);
}

const char *sherd_op_name(sherd_op op)
{
    return op < OPERATIONS && *sherd__op_names[op] ? sherd__op_names[op] : NULL;
}

sherd_op sherd_op_find(const char *name)
{
    for (unsigned op = 0; op < OPERATIONS; op++)
        if (*sherd__op_names[op] && strcmp(name, sherd__op_names[op]) == 0) return (sherd_op)op;
    return (sherd_op)0;
}

int sherd__map_f64(uint32_t op, const double *a, const double *b, size_t n, double *out)
{
    unsigned arity = sherd__map_arity(op);
    if (arity == 0 || (b != NULL) != (arity == 2)) return SHERD_EINVAL;
    if (arity == 1) operations[op].one(a, n, out);
    else operations[op].two(a, b, n, out);
    return SHERD_OK;
}
