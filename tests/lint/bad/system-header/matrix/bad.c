/* Wrong. */
#include <uv.h>
