/* Tests of core. */
#include "core/a.h"

int main(void)
{
    return sherd__a(1) != 2;
}
