/* The stand-ins without a required function each. */
#define STANDIN_WITHOUT_GEMM
#define STANDIN_WITHOUT_UNLOAD
#include "tests/system/node/preload_cuda.c"
