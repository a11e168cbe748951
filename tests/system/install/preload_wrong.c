/* A library that multiplies wrongly, preloaded into an example that compares its result. */
#include <dlfcn.h>
#include <stddef.h>

#include "sherd/product.h"

typedef int multiply(sherd_cluster *, sherd_view, sherd_view, double *, size_t,
                     const sherd_product_options *, sherd_report *, sherd_diag *);

int sherd_multiply(sherd_cluster *c, sherd_view a, sherd_view b, double *out, size_t ldc,
                   const sherd_product_options *opt, sherd_report *report, sherd_diag *d)
{
    multiply *rightly;
    *(void **)&rightly = dlsym(RTLD_NEXT, "sherd_multiply");
    int err = rightly(c, a, b, out, ldc, opt, report, d);
    if (!err) out[ldc + 1] += 1;
    return err;
}
