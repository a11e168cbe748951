/* The stand-in without a required function. */
#define STANDIN_WITHOUT_UNLOAD
#include "tests/system/node/preload_cuda.c"
