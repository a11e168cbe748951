/* The command with one additional scheme (schemes.c). */
#include "cli/cli.h"
#include "cli/command.h"
#include "cli/early.h"

int main(int argc, char **argv)
{
    sherd__early_warn();
    return sherd__cli_main(argc, argv);
}
