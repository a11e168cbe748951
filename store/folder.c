/* Paths and owners of folders that the user did not name. */
#include "store/folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"

char *sherd__user_folder(const char *variable, const char *preset, const char *tail)
{
    const char *xdg = getenv(variable), *home = getenv("HOME");
    bool set = xdg && *xdg == '/';
    if (!set && (!home || *home != '/')) return NULL;
    size_t size = strlen(set ? xdg : home) + strlen(preset) + strlen(tail) + 3;
    char *path = sherd__alloc(size);
    if (path && set) snprintf(path, size, "%s/%s", xdg, tail);
    else if (path) snprintf(path, size, "%s/%s/%s", home, preset, tail);
    return path;
}

bool sherd__owned(const struct stat *st)
{
    return st->st_uid == geteuid() && (st->st_mode & 022) == 0;
}
