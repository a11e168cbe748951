/* Core that includes wire. */
#include "wire/link.h"

int sherd__bad(void);
int sherd__bad(void)
{
    return 0;
}
