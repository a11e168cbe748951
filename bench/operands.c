/*
 * Operands of a benchmark, and a folder for operands that are read from files. The layer's images
 * are MNIST if it is found, else the generated digits, which have as many zeros.
 */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"
#include "core/alloc.h"
#include "core/bytes.h"
#include "sherd/array.h"

#define HIDDEN 128u
#define MNIST "../shared/data/mnist"

double *sherd__bench_room(size_t n)
{
    size_t bytes;
    double *p = sherd__mul(n, sizeof *p, &bytes) ? sherd__alloc_large(bytes) : NULL;
    if (p) memset(p, 0, bytes);
    return p;
}

static uint64_t next(uint64_t *seed)
{
    return *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
}

void sherd__bench_integers(double *x, size_t n, uint32_t most, uint64_t seed)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (double)((int64_t)((next(&seed) >> 33) % (2 * (uint64_t)most + 1)) - (int64_t)most);
}

/* Fills x with uniform values in +-scale; the same on every machine. */
static void scatter(double *x, size_t n, double scale, uint64_t seed)
{
    for (size_t i = 0; i < n; i++) x[i] = ((double)(next(&seed) >> 11) * 0x1p-52 - 1) * scale;
}

static int make(sherd__bench_pair *p, size_t n, size_t k, size_t m, sherd_diag *d)
{
    p->values = sherd__bench_room(n * k + k * m + n * m);
    if (!p->values) return sherd__bench_no_memory(d);
    p->a_values = p->values;
    p->b_values = p->a_values + n * k;
    p->c = p->b_values + k * m;
    p->bytes = sizeof *p->values * (n * k + k * m + n * m);
    p->a = sherd_view_c(p->a_values, SHERD_F64, n, k);
    p->b = sherd_view_c(p->b_values, SHERD_F64, k, m);
    scatter(p->b_values, k * m, 1 / sqrt((double)k), 2);
    return 0;
}

/* Opens MNIST's images; without them *out is NULL. */
static int open_images(sherd_array **out, sherd_diag *d)
{
    const char *named = getenv("SHERD_MNIST"), *folder = named && *named ? named : MNIST;
    sherd_array *labels = NULL;
    *out = NULL;
    if (folder != named && access(folder, X_OK) != 0) return 0;
    int err = sherd_array_open_idx(out, &labels, folder, "train", d);
    sherd_array_close(labels);
    return err;
}

static int make_layer(sherd__bench_pair *p, sherd__bench *b, sherd_diag *d)
{
    size_t rows = b->quick ? 600 : 60000, cols = SHERD_DIGIT_PIXELS;
    sherd_array *images;
    int err = open_images(&images, d);
    sherd_view v = { 0 };
    if (images) v = sherd_array_view(images);
    if (images && v.rows < rows) rows = v.rows;
    uint8_t *drawn = !err && !images ? sherd__alloc(rows * cols) : NULL;
    if (!err && !images && !drawn) err = sherd__bench_no_memory(d);
    if (drawn) sherd_digits_draw(0, 0, rows, drawn, NULL);
    if (!err) err = make(p, rows, images ? v.cols : cols, HIDDEN, d);
    const uint8_t *from = images ? v.data : drawn;
    for (size_t i = 0; !err && i < rows * p->a.cols; i++) p->a_values[i] = from[i] / 255.0;
    snprintf(b->data, sizeof b->data, "%s, %zu x %zu times %zu x %u",
             images ? "MNIST" : "generated digits", rows, p->a.cols, p->a.cols, HIDDEN);
    sherd__free(drawn);
    sherd_array_close(images);
    return err;
}

int sherd__bench_pair_open(sherd__bench_pair *p, sherd__bench *b, size_t dim, sherd_diag *d)
{
    *p = (sherd__bench_pair){ 0 };
    if (dim == 0) return make_layer(p, b, d);
    int err = make(p, dim, dim, dim, d);
    if (!err) scatter(p->a_values, dim * dim, 1, 1);
    return err;
}

void sherd__bench_pair_close(sherd__bench_pair *p)
{
    sherd__free(p->values);
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
