/* The command's entry point; everything else is in cli.c, where tests can call it. */
#include "cli/command.h"
#include "cli/early.h"

int main(int argc, char **argv)
{
    sherd__early_warn();
    return sherd__cli_main(argc, argv);
}
