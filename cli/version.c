/*
 * `sherd version`: the version of sherd and of the libraries loaded into this process, queried at
 * run time (installed libraries may be newer than those of the build). They are found by symbol
 * name, so that the command does not include headers of other layers.
 */
#include "sherd/version.h"

#include <dlfcn.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/version.h"
#include "matrix/gemm.h"

static const struct {
    const char *library, *symbol;
    int takes; /* -1: no argument */
} asked[] = {
    { "libuv", "uv_version_string", -1 },
    { "libsodium", "sodium_version_string", -1 },
    { "openssl", "OpenSSL_version", 6 },
    { "libzip", "zip_libzip_version", -1 },
    { "zlib", "zlibVersion", -1 },
    { "jansson", "jansson_version_str", -1 },
    { "openblas", "openblas_get_config", -1 },
};

/* Returns a string that a loaded library reports about itself, or NULL. */
static const char *ask(const char *symbol, int argument)
{
    void *address = dlsym(RTLD_DEFAULT, symbol);
    if (!address) return NULL;
    if (argument >= 0) {
        const char *(*with_argument)(int);
        memcpy(&with_argument, &address, sizeof address);
        return with_argument(argument);
    }
    const char *(*plain)(void);
    memcpy(&plain, &address, sizeof address);
    return plain();
}

size_t sherd__library_count(void)
{
    return sizeof asked / sizeof *asked;
}

const char *sherd__library_name(size_t i)
{
    return asked[i].library;
}

const char *sherd__library_version(size_t i, char out[64])
{
    const char *told = ask(asked[i].symbol, asked[i].takes);
    if (!told) return "not loaded";
    const char *blas = "OpenBLAS ";
    if (strncmp(told, blas, strlen(blas)) == 0) told += strlen(blas);
    snprintf(out, 64, "%.*s", (int)strcspn(told, " "), told);
    return out;
}

static int run_version(sherd__cli *cli, sherd_diag *d)
{
    char text[64];
    if (!cli->json) {
        printf("sherd %s\n", sherd_version());
        for (size_t i = 0; i < sherd__library_count(); i++)
            printf("%-10s %s\n", sherd__library_name(i), sherd__library_version(i, text));
        printf("%-10s %s\n", "blas core", sherd__blas_core());
        return 0;
    }
    json_t *obj = sherd__cli_json_new(cli), *libraries = json_object();
    for (size_t i = 0; i < sherd__library_count(); i++)
        json_object_set_new(libraries, sherd__library_name(i),
                            json_string(sherd__library_version(i, text)));
    json_object_set_new(obj, "version", json_string(sherd_version()));
    json_object_set_new(obj, "libraries", libraries);
    json_object_set_new(obj, "blas_core", json_string(sherd__blas_core()));
    return sherd__cli_json_end(cli, obj, d);
}

static const sherd__example examples[] = {
    { "sherd version", "ours and those of the libraries in use" },
    { "sherd version --json", "the same as one JSON object" },
    { "sherd --version", "the same as `sherd version`" },
    { 0 },
};

const sherd__verb sherd__verb_version = {
    .name = "version",
    .summary = "versions of sherd and of the libraries in use",
    .examples = examples,
    .run = run_version,
};
