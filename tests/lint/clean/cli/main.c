/* The command. */
#include "sherd/err.h"

int main(void)
{
    return *sherd_strerror(0);
}
