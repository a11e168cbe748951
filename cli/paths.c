/*
 * That one file under two options would be replaced is found before anything is opened, as is "-"
 * where a file name is expected.
 */
#include "cli/paths.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/options.h"
#include "sherd/meta.h"
#include "store/file.h"

static bool is_written(const char *option)
{
    static const char *const names[] = { "output", "certificate", "meta", "record", "log",
                                         "trace",  "checkpoint",  "plot", "html" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], option) == 0) return true;
    return false;
}

int sherd__paths_file(const char *what, const char *path, sherd_diag *d)
{
    if (strcmp(path, "-") != 0) return 0;
    return sherd__fail(d, SHERD_EINVAL, "name a file; ./- is a file called -",
                       "%s -: this is written to a file, not to standard output", what);
}

int sherd__paths_room(const char *path, sherd_diag *d)
{
    char folder[PATH_MAX] = ".";
    struct stat st;
    const char *slash = strrchr(path, '/');
    if (slash && (size_t)(slash - path) + 2 <= sizeof folder)
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - path) + 1, path);
    int e = stat(folder, &st) != 0 ? errno : !S_ISDIR(st.st_mode) ? ENOTDIR : 0;
    if (!e && access(folder, W_OK | X_OK) != 0) e = errno; /* EROFS is more specific than EACCES */
    if (e && access(path, W_OK) == 0) e = 0;
    if (!e && stat(path, &st) == 0 && S_ISDIR(st.st_mode)) e = EISDIR;
    if (!e) return 0;
    return sherd__fail(d, SHERD_EOPEN, "check the folder and its permissions",
                       "%s: cannot write: %s", path, strerror(e));
}

int sherd__paths_differ(const sherd__cli *cli, int operands, sherd_diag *d)
{
    const sherd__option *list[SHERD__OPTIONS_MAX];
    sherd__path_use all[SHERD__OPTIONS_MAX + 8];
    size_t options = sherd__options_of(cli->verb, list, SHERD__OPTIONS_MAX), len = 0;
    for (size_t i = 0; i < options; i++) {
        if (list[i]->type != SHERD__FILE && list[i]->type != SHERD__DIR) continue;
        const char *path = sherd__opt_text(cli, list[i]->name);
        if (!path) continue;
        if (is_written(list[i]->name) && !(list[i]->flags & SHERD__OPT_STREAM)) {
            int err = sherd__paths_file(sherd__opt_where(cli, list[i]->name), path, d);
            if (err) return err;
        }
        all[len++] = (sherd__path_use){ sherd__opt_where(cli, list[i]->name), path,
                                        is_written(list[i]->name) };
    }
    for (int i = cli->args_len - operands; i < cli->args_len && operands <= 8; i++)
        all[len++] = (sherd__path_use){ "an operand", cli->args[i], false };
    return sherd__paths_apart(all, len, d);
}

/* Warns of a file name that ends like that of another format. */
static void warn_of_kind(const sherd__cli *cli, const char *path, const char *kind)
{
    static const char *const known[] = { ".csv",  ".txt", ".npy", ".npz",  ".h5",
                                         ".json", ".mat", ".pt",  ".onnx", ".parquet" };
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot && i < sizeof known / sizeof *known; i++)
        if (strcasecmp(dot, known[i]) == 0 && strcmp(known[i], kind) != 0)
            sherd__cli_warn(cli, "%s: the file will be in the format of %s, whatever its name",
                            path, kind);
}

int sherd__paths_output(const sherd__cli *cli, const char *kind, sherd_diag *d)
{
    const char *path = sherd__opt_text(cli, "output");
    struct stat out, x;
    if (!path) return 0;
    int err = strcmp(path, "-") == 0 ? 0 : sherd__paths_room(path, d);
    if (!err && kind) warn_of_kind(cli, path, kind);
    if (err || !cli->json) return err;
    bool shared = strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0;
    if (!shared && stat(path, &x) == 0 && fstat(STDOUT_FILENO, &out) == 0)
        shared = x.st_dev == out.st_dev && x.st_ino == out.st_ino &&
                 (!S_ISCHR(out.st_mode) || isatty(STDOUT_FILENO));
    if (!shared) return 0;
    return sherd__fail(d, SHERD_EINVAL, "write the result to a file, or leave --json out",
                       "-o %s and --json would both write to standard output", path);
}

int sherd__paths_replace_meta(const char *path, sherd_diag *d)
{
    static const char hint[] = "name another file, or replace this one with --force";
    struct stat st;
    sherd_meta *meta = NULL;
    bool used = false;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size == 0) return 0;
    int err = sherd_meta_load(&meta, path, NULL);
    for (size_t i = 0; !err && i < sherd_meta_count(meta); i++)
        used = used || sherd_meta_at(meta, i)->used;
    sherd_meta_free(meta);
    if (err) return sherd__fail(d, SHERD_EINVAL, hint, "%s exists and is not valid metadata", path);
    if (!used) return 0;
    return sherd__fail(d, SHERD_EINVAL, hint,
                       "%s has been used for operands, and the record of this would be lost", path);
}
