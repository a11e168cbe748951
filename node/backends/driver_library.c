/* See driver_library.h. */
#include "node/backends/driver_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/diag.h"

/* Returns whether the loader's reason is that there is no such library. Otherwise it names the file
 * that it has found, or another library that this one needs. */
static bool is_missing(const char *name, const char *why)
{
    const size_t len = strlen(name);
    return strncmp(why, name, len) == 0 && why[len] == ':' &&
           (!strchr(name, '/') || access(name, F_OK) != 0);
}

int sherd__driver_library(void **out, const char *file, const char *const *names, const char *what,
                          const char *hint, sherd_diag *d)
{
    const char *const one[] = { file, NULL };
    char reason[256] = "";
    int err = SHERD_EUNSUPPORTED;
    for (const char *const *name = file ? one : names; *name; name++) {
        void *library = dlopen(*name, RTLD_NOW | RTLD_LOCAL);
        if (library) {
            *out = library;
            return SHERD_OK;
        }
        const char *why = dlerror();
        if (!why) why = "no reason given";
        const bool fails = err == SHERD_EUNSUPPORTED && !is_missing(*name, why);
        if (fails || !reason[0]) snprintf(reason, sizeof reason, "%s", why);
        if (fails) err = SHERD_EDEVICE;
    }
    return sherd__fail(d, err, hint, "%s cannot be loaded: %.200s", what, reason);
}

void sherd__driver_symbol(void *library, const char *name, void *member)
{
    void *symbol = dlsym(library, name);
    memcpy(member, &symbol, sizeof symbol);
}

static int denied(const char *file, const struct stat *is, sherd_diag *d)
{
    char names[1024];
    struct group g, *of = NULL;
    (void)getgrgid_r(is->st_gid, &g, names, sizeof names, &of);
    const bool joined = (is->st_mode & (S_IRGRP | S_IWGRP)) == (S_IRGRP | S_IWGRP);
    char hint[120];
    snprintf(hint, sizeof hint, "%s group %.40s (%u)%s",
             joined ? "add this user to the" : "let the file be read and written by its",
             of ? of->gr_name : "without a name", (unsigned)is->st_gid,
             joined ? ", to which the file belongs" : ", and add this user to it");
    return sherd__fail(d, SHERD_EDEVICE, hint, "this user may not read and write %.200s", file);
}

int sherd__driver_files(const char *folder, const char *const *names, sherd_diag *d)
{
    char file[PATH_MAX];
    struct stat is;
    for (; *names; names++) {
        snprintf(file, sizeof file, "%.4000s/%.64s", folder, *names);
        if (!stat(file, &is) && faccessat(AT_FDCWD, file, R_OK | W_OK, AT_EACCESS) &&
            errno == EACCES)
            return denied(file, &is, d);
    }
    return SHERD_OK;
}
