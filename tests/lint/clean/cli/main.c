/* The command. */
#include "wire/link.h"

int main(void)
{
    return sherd__link(0);
}
