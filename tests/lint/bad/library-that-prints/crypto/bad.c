/* Wrong. */
#include <stdio.h>
void sherd__bad(void);
void sherd__bad(void)
{
    puts("hello");
}
