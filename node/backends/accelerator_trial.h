/* Tasks of the self-test (accelerator_selftest.c) and of measurements (accelerator_rates.c), which
 * are computed by the path of calls. */
#ifndef NODE_BACKENDS_ACCELERATOR_TRIAL_H
#define NODE_BACKENDS_ACCELERATOR_TRIAL_H

#include "core/rand.h"
#include "node/backends/accelerator_internal.h"

/* A task whose operands and result are in memory of the test. */
typedef struct accelerator_trial {
    accelerator_lane *lane;
    sherd__entropy rng;
    sherd__task task;
    sherd__fragment *left, *right;
    uint8_t *out;
    bool resident;  /* the result is not copied, and numbers are not all zero */
    double seconds; /* that computing took, with copies */
} accelerator_trial;

typedef struct accelerator_shape {
    uint32_t n, k, m;
    bool transposed;
} accelerator_shape;

/** Returns an operand of zeros; NULL: there is no memory. */
sherd__fragment *sherd__trial_operand(uint8_t dtype, uint8_t primes, uint64_t rows, uint64_t cols,
                                      uint64_t len);
uint8_t *sherd__trial_bytes(const sherd__fragment *f);
void sherd__trial_product(accelerator_trial *t, const accelerator_shape *s);
/** Sets the task's result, and memory for it. SHERD_ENOMEM: it or an operand has none. */
int sherd__trial_result(accelerator_trial *t, uint8_t dtype, uint64_t rows, uint64_t cols,
                        sherd_diag *d);
/** Computes the task `times` times, from operands that are copied with the first of them; where
 *  results stay on the device, before it. */
int sherd__trial_run(accelerator_trial *t, unsigned times, sherd_diag *d);
/** Makes a product of n x n by n x n, modulo `primes` primes (0 for float64). Its numbers are zero
 *  unless t->resident. SHERD_ENOMEM. */
int sherd__trial_square(accelerator_trial *t, uint8_t dtype, uint8_t primes, uint32_t n,
                        sherd_diag *d);
/** Returns whether such a product fits into the memory of the device. */
bool sherd__trial_fits(const accelerator_trial *t, uint8_t dtype, uint32_t primes, uint32_t n);
/** Frees operands and result. */
void sherd__trial_end(accelerator_trial *t);

/** Compares products of one kind, by kernels or the library, as library.from says: `shapes` of
 *  SHERD__TRIAL_SHAPES shapes. SHERD_EDEVICE: one is wrong. */
int sherd__trial_products(accelerator_trial *t, accelerator_kind kind, size_t shapes,
                          sherd_diag *d);
#define SHERD__TRIAL_SHAPES 4u
#define SHERD__TRIAL_KERNELS 3u /* the last one has more terms than the library adds up at a time */

/** Gives the lanes of the trial's device the library, if the machine has one. It is used for the
 *  kinds of products in which it passes the test and is faster than the kernels. Sets what the
 *  device says about it. Errors: those after which the device cannot be used. */
int sherd__accelerator_library_open(accelerator_trial *t, const sherd__backend_options *opt,
                                    sherd_diag *d);
/** Measures from which size on the library is faster than the kernels, for one kind. */
int sherd__accelerator_choose(accelerator_trial *t, accelerator_kind kind, bool quick,
                              sherd_diag *d);
/** Measures the rates of the device, and how fast it copies. */
int sherd__accelerator_measure(accelerator_trial *t, const sherd__backend_options *opt,
                               sherd_diag *d);
/** Adds to opt->rates what the driver's copies and the library's products reach, and copies and
 *  products of lanes whose operands and results stay on the device. Sets the resident rates of the
 *  device. What does not fit or takes long is left out. */
int sherd__accelerator_measure_peaks(accelerator_trial *t, const sherd__backend_options *opt,
                                     sherd_diag *d);

/* The exact products that are measured, and products in float64. */
typedef struct accelerator_measured {
    const char *name;
    uint8_t dtype, primes;
} accelerator_measured;
extern const accelerator_measured sherd__accelerator_measured[KINDS];
#define SHERD__MEASURED_N 8192u /* size of the products with answers, at most */
/** Adds a row, unless there is no room. */
void sherd__device_rates_add(sherd__device_rates *r, const char *name, uint32_t n, double value,
                             const char *unit);

/** Returns SHERD_OK, without a message, where a size is left out: the device lacks memory for it,
 *  or the library does not compute it. Returns other errors as they are. */
static inline int sherd__trial_left_out(int err, sherd_diag *d)
{
    if (err != SHERD_ENOMEM && err != SHERD_EUNSUPPORTED) return err;
    if (d) *d = (sherd_diag){ .code = 0 };
    return SHERD_OK;
}

#endif
