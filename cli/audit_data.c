/* Matrices for `sherd audit`: .npy or IDX (gzipped or not), distinguished by their first bytes, or
 * generated. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/audit.h"
#include "core/alloc.h"
#include "learn/digits.h"

/* Reads the first bytes of a file and returns how many there were. Bytes that do not exist or
 * cannot be read are zero. Nothing is read from a pipe, whose bytes its reader needs. */
static size_t magic_of(const char *path, char out[6])
{
    struct stat st;
    memset(out, 0, 6);
    FILE *f = stat(path, &st) == 0 && S_ISREG(st.st_mode) ? fopen(path, "rbe") : NULL;
    if (!f) return 0;
    size_t got = fread(out, 1, 6, f);
    fclose(f);
    return got;
}

static bool is_npy(const char *path)
{
    char magic[6];
    return magic_of(path, magic) == 6 && memcmp(magic, "\x93NUMPY", 6) == 0;
}

/* Returns whether the file begins like neither form of IDX, packed or not. If it cannot be read,
 * the reader reports that. */
static bool neither(const char *path)
{
    char magic[6];
    return magic_of(path, magic) >= 2 && memcmp(magic, "\0\0", 2) != 0 &&
           memcmp(magic, "\x1f\x8b", 2) != 0;
}

int sherd__audit_matrix_open(sherd__audit_matrix *m, const char *path, sherd_diag *d)
{
    if (!path) return 0;
    size_t len = strlen(path);
    bool npy = is_npy(path) || (len > 4 && strcmp(path + len - 4, ".npy") == 0);
    if (!npy && neither(path))
        return sherd__fail(d, SHERD_EFORMAT, "give the .npy that was multiplied, or an IDX file",
                           "%s: is neither a .npy nor an IDX file", path);
    int err = npy ? sherd_npy_open(&m->npy, path, d) : sherd__idx_load(&m->idx, path, d);
    if (err) return err;
    m->view = npy ? sherd_npy_view(m->npy) : sherd__idx_view(&m->idx);
    m->there = true;
    return 0;
}

void sherd__audit_matrix_close(sherd__audit_matrix *m)
{
    sherd_npy_close(m->npy);
    sherd__idx_fini(&m->idx);
    sherd__free(m->drawn);
    memset(m, 0, sizeof *m);
}

int sherd__audit_matrix_draw(sherd__audit_matrix *pixels, sherd__audit_matrix *labels,
                             uint64_t first, size_t rows, sherd_diag *d)
{
    pixels->drawn = sherd__alloc(rows * SHERD__DIGIT_PIXELS);
    labels->drawn = sherd__alloc(rows);
    if (!pixels->drawn || !labels->drawn)
        return sherd__fail(d, SHERD_ENOMEM, NULL, "out of memory for the digits");
    sherd__digits_draw(SHERD__DIGITS_SEED, first, rows, pixels->drawn, labels->drawn);
    pixels->view = sherd_view_c(pixels->drawn, SHERD_U8, rows, SHERD__DIGIT_PIXELS);
    labels->view = sherd_view_c(labels->drawn, SHERD_U8, rows, 1);
    pixels->there = labels->there = true;
    return 0;
}
