/* See cublas_folder.h. */
#include "tests/support/cublas_folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

const char *cublas_folder(const char *name, const char *library, int major)
{
    static char folder[4096];
    static const char *const names[] = { "libcublas", "libcublasLt" };
    char file[4200], top[2048], link[4200];
    if (!realpath(getenv("BUILD"), top)) abort();
    snprintf(file, sizeof file, "%s/tests/system/node/%s.so", top, library);
    snprintf(folder, sizeof folder, "%s/tests/%s", top, name);
    if (mkdir(folder, 0755) && errno != EEXIST) abort();
    for (int i = 0; i < 2; i++) {
        snprintf(link, sizeof link, "%s/%s.so.%d", folder, names[i], major);
        if (symlink(file, link) && errno != EEXIST) abort();
    }
    return folder;
}

void cublas_use(const char *folder)
{
    if (setenv("SHERD_CUDA_PATH", folder, 1)) abort();
}
