/* Wrong. */
#include <matrix/m.h>
