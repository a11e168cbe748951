/*
 * Configuration files: `option = value` lines and `#` comments, without sections, quoting or
 * inclusion, so that each message can name one file and one line. A file is only read from places
 * where the user or the administrator puts it on purpose, never from the working directory.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/options.h"
#include "core/alloc.h"

#define FILE_BYTES_MAX 65536

static char *trim(char *s)
{
    while (*s == ' ' || *s == '\t') s++;
    size_t n = strlen(s);
    while (n > 0 && strchr(" \t\r", s[n - 1])) n--;
    s[n] = '\0';
    return s;
}

/* Parses one line without its newline: blank, a comment, `name = value`, or `name` (value
 * "yes"). */
static int take_line(char *line, const char *where, sherd__config_set *set, void *ctx,
                     sherd_diag *d)
{
    char yes[] = "yes";
    char *name = trim(line);
    if (*name == '\0' || *name == '#') return 0;
    char *eq = strchr(name, '=');
    char *value = yes;
    if (eq) {
        *eq = '\0';
        value = trim(eq + 1);
        name = trim(name);
    }
    if (*name == '\0' || strpbrk(name, " \t"))
        return sherd__fail(d, SHERD_EFORMAT, "each line is `option = value`; # starts a comment",
                           "%s: expected `option = value`, found '%.60s'", where, name);
    if (name[0] == '-')
        return sherd__fail(d, SHERD_EFORMAT, "write the option without dashes",
                           "%s: expected an option's long name, found '%.60s'", where, name);
    return set(ctx, where, name, value, d);
}

/* text is NUL-terminated and has no other NUL. */
static int take_lines(char *text, const char *path, sherd__config_set *set, void *ctx,
                      sherd_diag *d)
{
    char where[PATH_MAX + 32];
    unsigned long number = 0;
    for (char *line = text; line;) {
        char *end = strchr(line, '\n');
        if (end) *end = '\0';
        snprintf(where, sizeof where, "%s:%lu", path, ++number);
        int err = take_line(line, where, set, ctx, d);
        if (err) return err;
        line = end ? end + 1 : NULL;
    }
    return 0;
}

/* Returns whether reading fd reaches an end. A pipe or a terminal may not, and --timeout does not
 * run yet. /dev/null passes. */
static bool ends(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 &&
           (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) || (S_ISCHR(st.st_mode) && !isatty(fd)));
}

int sherd__config_read(const char *path, bool *missing, sherd__config_set *set, void *ctx,
                       sherd_diag *d)
{
    int err = 0, fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    char *text = NULL;
    FILE *f = NULL;
    *missing = false;
    if (fd < 0) {
        struct stat st;
        int e = errno; /* EACCES on a folder: it is another user's, HOME is not ours */
        *missing = e == ENOENT || e == ENOTDIR || (e == EACCES && stat(path, &st) != 0);
        return sherd__fail(d, SHERD_EOPEN, "check the path and its permissions",
                           "%s: cannot open the configuration file: %s", path, strerror(e));
    }
    if (!ends(fd)) {
        err = sherd__fail(d, SHERD_EFORMAT, "write the options into a file",
                          "%s: a configuration is read from a regular file only", path);
        goto out;
    }
    f = fdopen(fd, "r");
    text = sherd__alloc(FILE_BYTES_MAX + 1);
    if (!f || !text) {
        err = sherd__fail_memory(d, "reading %s", path);
        goto out;
    }
    size_t len = fread(text, 1, FILE_BYTES_MAX + 1, f);
    if (ferror(f)) {
        err = sherd__fail(d, SHERD_EIO, NULL, "%s: cannot read: %s", path, strerror(errno));
        goto out;
    }
    if (len > FILE_BYTES_MAX || memchr(text, '\0', len)) {
        err = sherd__fail(d, SHERD_EFORMAT, NULL,
                          "%s: expected a text file of at most %d bytes, found a %s one", path,
                          FILE_BYTES_MAX, len > FILE_BYTES_MAX ? "longer" : "binary");
        goto out;
    }
    text[len] = '\0';
    err = take_lines(text, path, set, ctx, d);
out:
    sherd__free(text);
    if (f) fclose(f);
    else close(fd);
    return err;
}
