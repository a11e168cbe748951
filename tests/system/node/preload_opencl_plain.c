/* The stand-in without the optional function. */
#define STANDIN_WITHOUT_FILL
#include "tests/system/node/preload_opencl.c"
