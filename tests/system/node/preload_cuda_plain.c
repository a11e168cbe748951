/* The stand-ins without an optional function each. */
#define STANDIN_WITHOUT_ATOMICS
#define STANDIN_WITHOUT_FLAGS
#include "tests/system/node/preload_cuda.c"
