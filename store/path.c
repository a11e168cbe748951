/*
 * One file under two names of a call is a mistake that would cost the file: a key given as the
 * output would be replaced by a matrix, or an operand by the certificate of its product. Two paths
 * that are only read may be one file (A times A).
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/diag.h"
#include "store/file.h"

/* Resolves the path of a file that does not exist yet: its resolved folder, and its name. */
static bool resolve(const char *path, char out[PATH_MAX])
{
    char folder[PATH_MAX], whole[PATH_MAX];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t len = slash ? (size_t)(slash - path) + 1 : 0;
    if (len >= sizeof folder) return false;
    memcpy(folder, path, len);
    folder[len] = '\0';
    if (!realpath(len > 0 ? folder : ".", whole)) return false;
    int n = snprintf(out, PATH_MAX, "%s/%s", whole, name);
    return n > 0 && n < PATH_MAX;
}

bool sherd__path_same(const char *a, const char *b)
{
    struct stat x, y;
    char p[PATH_MAX], q[PATH_MAX];
    bool there = stat(a, &x) == 0;
    if (there != (stat(b, &y) == 0)) return false;
    if (there)
        return x.st_dev == y.st_dev && x.st_ino == y.st_ino &&
               (S_ISREG(x.st_mode) || S_ISDIR(x.st_mode));
    return resolve(a, p) && resolve(b, q) && strcmp(p, q) == 0;
}

/* Returns whether writing x would replace what y is. */
static bool replaces(const sherd__path_use *x, const sherd__path_use *y)
{
    char file[PATH_MAX];
    if (x == y || !x->written || !x->path || !y->path) return false;
    if (sherd__path_same(x->path, y->path)) return true;
    return !y->written && sherd__path_member(y->path, file, sizeof file) &&
           sherd__path_same(x->path, file);
}

int sherd__paths_apart(const sherd__path_use *all, size_t len, sherd_diag *d)
{
    for (size_t i = 0; i < len; i++)
        for (size_t j = 0; j < len; j++)
            if (replaces(&all[i], &all[j]))
                return sherd__fail(d, SHERD_EINVAL, "name another file",
                                   "%s would replace %s, which is also %s", all[i].what,
                                   sherd__path_tail(all[i].path), all[j].what);
    return SHERD_OK;
}
