/* Runs a test of byte residues by every path that this processor has. */
#ifndef TESTS_SUPPORT_BYTES_PATHS_H
#define TESTS_SUPPORT_BYTES_PATHS_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "matrix/residue_bytes.h"

static void on_every_path(void (*test)(void))
{
    for (int path = SHERD__BYTES_ANY; path < SHERD__BYTES_PATHS; path++) {
        if (!sherd__bytes_force((sherd__bytes_path)path)) {
            print_message("skipped: this processor has no %s\n",
                          sherd__bytes_path_name((sherd__bytes_path)path));
            continue;
        }
        test();
    }
    assert_true(sherd__bytes_force(SHERD__BYTES_BEST));
}

#endif
