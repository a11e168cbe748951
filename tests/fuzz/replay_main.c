/*
 * main() for the fuzz targets without a fuzzer: runs LLVMFuzzerTestOneInput on every file of the
 * given folders (and files), on every prefix of the short ones, and on an empty input. `make check`
 * runs the committed corpus this way with every compiler and sanitizer.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PREFIXES_UP_TO = 2048 };

static unsigned files, failures;

/* Passes the input in a block of its exact size, so that a sanitizer sees a read beyond the end. */
static void give(const uint8_t *data, size_t len)
{
    uint8_t *copy = calloc(1, len ? len : 1);
    if (!copy) abort();
    if (len) memcpy(copy, data, len);
    LLVMFuzzerTestOneInput(copy, len);
    free(copy);
}

static void replay_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    uint8_t *data = NULL;
    long len = 0;
    if (!f || fseek(f, 0, SEEK_END) || (len = ftell(f)) < 0 || fseek(f, 0, SEEK_SET)) goto bad;
    data = malloc((size_t)len + 1);
    if (!data || fread(data, 1, (size_t)len, f) != (size_t)len) goto bad;
    give(data, (size_t)len);
    for (long i = 0; len <= PREFIXES_UP_TO && i < len; i++) give(data, (size_t)i);
    printf("ok %u - %s\n", ++files, path);
    fflush(stdout);
    goto out;
bad:
    printf("not ok %u - %s: %s\n", ++files, path, strerror(errno));
    failures++;
out:
    free(data);
    if (f) fclose(f);
}

static void replay(const char *path)
{
    struct stat st;
    if (stat(path, &st) || !S_ISDIR(st.st_mode)) {
        replay_file(path);
        return;
    }
    struct dirent **list;
    int n = scandir(path, &list, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        char name[4096];
        snprintf(name, sizeof name, "%s/%s", path, list[i]->d_name);
        if (list[i]->d_name[0] != '.') replay(name);
        free(list[i]);
    }
    if (n >= 0) free(list);
}

int main(int argc, char **argv)
{
    give((const uint8_t *)"", 0);
    printf("ok %u - an empty input\n", ++files);
    for (int i = 1; i < argc; i++) replay(argv[i]);
    return failures ? 1 : 0;
}
