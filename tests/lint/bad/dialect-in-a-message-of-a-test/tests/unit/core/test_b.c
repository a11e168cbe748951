/* Tests of core. */
#include "core/a.h"

int main(void)
{
    return "sums are made anew"[0] == sherd__a(1);
}
