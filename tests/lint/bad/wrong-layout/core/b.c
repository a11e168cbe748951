/* Core: an indent of two. */
#include "core/a.h"

int sherd__b(int x)
{
  return x + 1;
}
