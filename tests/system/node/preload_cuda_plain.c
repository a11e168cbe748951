/* The stand-in without an optional function. */
#define STANDIN_WITHOUT_FLAGS
#include "tests/system/node/preload_cuda.c"
