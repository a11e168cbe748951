/*
 * Operands of a benchmark, and a folder for operands that are read from files. The layer's images
 * are MNIST if it is found, else the embedded digits, which have as many zeros.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"
#include "core/alloc.h"
#include "core/bytes.h"
#include "learn/digits.h"
#include "store/idx.h"

#define HIDDEN 128u
#define MNIST "../shared/data/mnist"

static double *room(size_t rows, size_t cols)
{
    size_t bytes;
    if (!sherd__mul(rows, cols, &bytes) || !sherd__mul(bytes, sizeof(double), &bytes)) return NULL;
    double *p = sherd__alloc_large(bytes);
    if (p) memset(p, 0, bytes); /* no page must be faulted in while a clock runs */
    return p;
}

/* Fills out with uniform values in +-scale by splitmix64; the same on every machine. */
static void scatter(double *out, size_t n, double scale, uint64_t seed)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t z = (seed += UINT64_C(0x9e3779b97f4a7c15));
        z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
        z ^= z >> 31;
        out[i] = ((double)(z >> 11) * 0x1p-52 - 1) * scale;
    }
}

static int no_memory(sherd_diag *d)
{
    return sherd__fail(d, SHERD_ENOMEM, "measure the others with --only",
                       "out of memory for operands");
}

static int make(sherd__bench_pair *p, size_t n, size_t k, size_t m, sherd_diag *d)
{
    p->a_values = room(n, k);
    p->b_values = room(k, m);
    p->c = room(n, m);
    if (!p->a_values || !p->b_values || !p->c) return no_memory(d);
    p->a = sherd_view_c(p->a_values, SHERD_F64, n, k);
    p->b = sherd_view_c(p->b_values, SHERD_F64, k, m);
    scatter(p->b_values, k * m, 1 / sqrt((double)k), 2);
    return 0;
}

/* SHERD_EOPEN if there are none. */
static int load_images(sherd__idx_set *set, const char **data, sherd_diag *d)
{
    const char *folder = getenv("SHERD_MNIST");
    *data = "MNIST";
    if (folder && *folder != '\0') return sherd__idx_set_load(set, folder, "train", d);
    if (access(MNIST, X_OK) != 0) return SHERD_EOPEN;
    return sherd__idx_set_load(set, MNIST, "train", d);
}

static int draw_images(sherd__idx *x, size_t rows, sherd_diag *d)
{
    *x = (sherd__idx){ .rows = rows,
                       .cols = SHERD__DIGIT_PIXELS,
                       .values = sherd__alloc(rows * SHERD__DIGIT_PIXELS) };
    if (!x->values) return no_memory(d);
    sherd__digits_draw(SHERD__DIGITS_SEED, 0, rows, x->values, NULL);
    return 0;
}

int sherd__bench_layer(sherd__bench_pair *p, size_t rows, sherd_diag *d)
{
    const char *named = getenv("SHERD_MNIST");
    sherd__idx_set set = { 0 };
    *p = (sherd__bench_pair){ 0 };
    int err = load_images(&set, &p->data, d);
    if (err == SHERD_EOPEN && (!named || *named == '\0')) {
        p->data = "generated digits";
        err = draw_images(&set.images, rows, d);
    }
    if (!err && set.images.rows < rows) rows = set.images.rows;
    if (!err) err = make(p, rows, set.images.cols, HIDDEN, d);
    for (size_t i = 0; !err && i < rows * set.images.cols; i++)
        p->a_values[i] = set.images.values[i] / 255.0;
    sherd__idx_set_fini(&set);
    if (err) sherd__bench_pair_fini(p);
    return err;
}

int sherd__bench_square(sherd__bench_pair *p, size_t dim, sherd_diag *d)
{
    *p = (sherd__bench_pair){ .data = "uniform" };
    int err = make(p, dim, dim, dim, d);
    if (err) sherd__bench_pair_fini(p);
    else scatter(p->a_values, dim * dim, 1, 1);
    return err;
}

void sherd__bench_pair_fini(sherd__bench_pair *p)
{
    sherd__free(p->a_values);
    sherd__free(p->b_values);
    sherd__free(p->c);
    *p = (sherd__bench_pair){ 0 };
}

/* ---- scratch --------------------------------------------------------------------------------- */

int sherd__bench_path(sherd__bench *b, const char *name, char out[PATH_MAX], sherd_diag *d)
{
    const char *tmp = getenv("TMPDIR");
    if (!tmp || *tmp == '\0') tmp = "/tmp";
    if (b->folder[0] == '\0') {
        int n = snprintf(b->folder, sizeof b->folder, "%s/sherd-bench-XXXXXX", tmp);
        if (n < 0 || (size_t)n >= sizeof b->folder || !mkdtemp(b->folder)) {
            b->folder[0] = '\0';
            return sherd__fail(d, SHERD_EOPEN, "set TMPDIR to a folder with 2 GB of room",
                               "cannot make a folder in %s: %s", tmp, strerror(errno));
        }
    }
    snprintf(out, PATH_MAX, "%s/%.40s", b->folder, name);
    return 0;
}

void sherd__bench_clean(sherd__bench *b)
{
    DIR *dir = b->folder[0] != '\0' ? opendir(b->folder) : NULL;
    if (!dir) return;
    for (struct dirent *e; (e = readdir(dir));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            unlinkat(dirfd(dir), e->d_name, 0);
    closedir(dir);
    rmdir(b->folder);
    b->folder[0] = '\0';
}
