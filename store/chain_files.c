/* Names, hashes and the head of a chain. */
#include "store/chain_files.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "store/file.h"

#define PREFIX "checkpoint-"
#define SUFFIX ".npz"
#define DIGITS 12
#define HEAD_BYTES_MAX 256u

static int no_memory(sherd_diag *d)
{
    return sherd__fail_memory(d, "a chain of checkpoints");
}

char *sherd__chain_path(const char *folder, const char *name)
{
    size_t size = strlen(folder) + 1 + strlen(name) + 1;
    char *path = sherd__alloc(size);
    if (path) snprintf(path, size, "%s/%s", folder, name);
    return path;
}

void sherd__chain_name(uint64_t number, char out[SHERD__CHAIN_NAME])
{
    snprintf(out, SHERD__CHAIN_NAME, PREFIX "%0*" PRIu64 SUFFIX, DIGITS, number);
}

/* Parses the number of a checkpoint. Only names that sherd__chain_name produces are accepted. */
static bool number_of(const char *name, uint64_t *number)
{
    char back[SHERD__CHAIN_NAME];
    if (strncmp(name, PREFIX, sizeof PREFIX - 1) != 0) return false;
    const char *digits = name + sizeof PREFIX - 1;
    if (*digits < '0' || *digits > '9') return false;
    errno = 0;
    *number = strtoull(digits, NULL, 10);
    if (errno != 0) return false;
    sherd__chain_name(*number, back);
    return strcmp(back, name) == 0;
}

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static int append(uint64_t **numbers, size_t *len, size_t *cap, uint64_t number)
{
    if (*len == *cap) {
        size_t more = *cap == 0 ? 64 : 2 * *cap;
        uint64_t *grown = sherd__realloc(*numbers, more * sizeof **numbers);
        if (!grown) return SHERD_ENOMEM;
        *numbers = grown;
        *cap = more;
    }
    (*numbers)[(*len)++] = number;
    return SHERD_OK;
}

int sherd__chain_list(const char *folder, uint64_t **numbers, size_t *len, sherd_diag *d)
{
    char text[96];
    size_t cap = 0;
    uint64_t number;
    *numbers = NULL;
    *len = 0;
    DIR *dir = opendir(folder);
    if (!dir)
        return sherd__fail(d, SHERD_EOPEN, NULL, "%s: cannot read the folder: %s",
                           sherd__path_tail(folder), strerror_r(errno, text, sizeof text));
    int err = SHERD_OK;
    for (struct dirent *e; !err && (e = readdir(dir));)
        if (number_of(e->d_name, &number) && *len < SHERD__CHAIN_MAX)
            err = append(numbers, len, &cap, number);
    closedir(dir);
    if (err) {
        sherd__free(*numbers);
        *numbers = NULL;
        return no_memory(d);
    }
    if (*len > 0) qsort(*numbers, *len, sizeof **numbers, ascending);
    return SHERD_OK;
}

int sherd__chain_hash(const char *folder, sherd__chain_link *link, sherd_diag *d)
{
    sherd__map m = { 0 };
    unsigned size = 0;
    char *path = sherd__chain_path(folder, link->name);
    if (!path) return no_memory(d);
    int err = sherd__map_open(&m, path, 0, d);
    if (!err && (EVP_Digest(m.bytes, m.len, link->hash.sha256, &size, EVP_sha256(), NULL) != 1 ||
                 size != SHERD__DIGEST_BYTES))
        err = sherd__fail(d, SHERD_EINTERNAL, NULL, "SHA-256 failed in OpenSSL");
    if (!err) err = sherd__map_check(&m, path, d);
    sherd__map_close(&m);
    sherd__free(path);
    return err;
}

/* Returns the value of two lower-case hexadecimal digits, or -1. */
static int byte_of(const char *two)
{
    static const char digits[] = "0123456789abcdef";
    const char *high = two[0] ? strchr(digits, two[0]) : NULL;
    const char *low = high && two[1] ? strchr(digits, two[1]) : NULL;
    return low ? (int)((high - digits) * 16 + (low - digits)) : -1;
}

/* Parses "NAME sha256:HEX\n" with nothing before or after it. */
static bool parse_head(const char *text, size_t len, sherd__chain_link *out)
{
    const char *space = memchr(text, ' ', len);
    size_t name = space ? (size_t)(space - text) : SHERD__CHAIN_NAME;
    const char mark[] = "sha256:";
    if (name >= SHERD__CHAIN_NAME || len != name + 1 + sizeof mark - 1 + 64 + 1 ||
        text[len - 1] != '\n' || memcmp(space + 1, mark, sizeof mark - 1) != 0)
        return false;
    memcpy(out->name, text, name);
    out->name[name] = '\0';
    for (size_t i = 0; i < SHERD__DIGEST_BYTES; i++) {
        int byte = byte_of(space + sizeof mark + 2 * i);
        if (byte < 0) return false;
        out->hash.sha256[i] = (uint8_t)byte;
    }
    return number_of(out->name, &out->number);
}

int sherd__chain_head(const char *folder, sherd__chain_link *out, sherd_diag *d)
{
    uint8_t *text = NULL;
    size_t len = 0;
    sherd_diag why = { 0 };
    sherd__chain_link link = { 0 };
    *out = link;
    char *path = sherd__chain_path(folder, "head");
    if (!path) return no_memory(d);
    int err = sherd__file_read_small(&text, &len, path, HEAD_BYTES_MAX, &why);
    if (err == SHERD_EOPEN) err = SHERD_OK; /* there is no head */
    else if (err == SHERD_EFORMAT || (!err && !parse_head((const char *)text, len, &link)))
        err = sherd__fail(d, SHERD_ECHAIN, SHERD__CHAIN_ELSEWHERE,
                          "%s: is damaged: expected 'NAME sha256:HASH'", sherd__path_tail(path));
    else if (err) err = sherd__fail(d, err, why.hint, "%s", why.message);
    if (!err) *out = link;
    sherd__free(text);
    sherd__free(path);
    return err;
}
