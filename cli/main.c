/* The command's entry: everything else is in cli.c, where tests can call it. */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/early.h"

__attribute__((section(".preinit_array"), used)) static void (*const early)(int, char **, char **) =
    sherd__early_threads;

int main(int argc, char **argv)
{
    if (sherd__early_alone())
        fputs("sherd: warning: no thread can be started beside this one, as OpenBLAS would have "
              "to: products use one thread\n  try: raise the limit (ulimit -u, ulimit -v, the "
              "control group's pids)\n", stderr);
    return sherd__cli_main(argc, argv);
}
