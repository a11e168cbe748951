/* The stand-in without a required function. */
#define STANDIN_WITHOUT_FINISH
#include "tests/system/node/preload_opencl.c"
