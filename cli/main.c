/* The command's entry: everything else is in cli.c, where tests can call it. */
#include "cli/cli.h"

int main(int argc, char **argv)
{
    return sherd__cli_main(argc, argv);
}
