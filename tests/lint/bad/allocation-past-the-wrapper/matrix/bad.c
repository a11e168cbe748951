/* Wrong. */
#include <stdlib.h>
void *sherd__bad(void);
void *sherd__bad(void)
{
    return malloc(3);
}
