/* Clusters, commands and references for the tests of share. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/rand.h"
#include "sherd/npy.h"
#include "tests/system/scheduler/local_nodes.h"
#include "tests/system/scheduler/share_world.h"

#define BITS 17u

char share_said[4096];
sherd_cluster *share_cluster;
static char top[128];
static sherd__seeded rng_state;
static sherd__entropy rng;
static sherd_multiplier here;

sherd_product_options share_options(sherd_scheme scheme, uint32_t spare)
{
    sherd_product_options o = { .size = sizeof o };
    o.scheme = scheme;
    o.spare = spare;
    return o;
}

double *share_matrix(size_t rows, size_t cols)
{
    double *v = malloc((rows * cols + 1) * sizeof *v);
    assert_non_null(v);
    for (size_t i = 0; i < rows * cols; i++)
        v[i] = (double)sherd__entropy_below(&rng, 2000001) / 1000 - 1000;
    return v;
}

sherd_view share_view(const double *v, size_t rows, size_t cols)
{
    return sherd_view_c(v, SHERD_F64, rows, cols);
}

double *share_reference(sherd_view a, sherd_view b)
{
    double *c = malloc((a.rows * b.cols + 1) * sizeof *c);
    sherd_diag d = { 0 };
    assert_non_null(c);
    if (sherd_multiplier_multiply(here, a, b, c, b.cols, &d)) fail_msg("%s", d.message);
    return c;
}

void share_must_equal(const double *c, const double *want, size_t len, const char *what)
{
    if (memcmp(c, want, len * sizeof *c) != 0)
        fail_msg("%s: the bits differ from those of one machine", what);
}

void share_multiply(sherd_cluster *c, const sherd_product_options *o, sherd_view a, sherd_view b,
                    sherd_report *r)
{
    size_t len = a.rows * b.cols;
    double *got = malloc((len + 1) * sizeof *got), *want = share_reference(a, b);
    sherd_diag d = { 0 };
    char what[96];
    assert_non_null(got);
    snprintf(what, sizeof what, "%zu x %zu by %zu x %zu, scheme %d", a.rows, a.cols, b.rows, b.cols,
             (int)o->scheme);
    if (sherd_multiply(c, a, b, got, b.cols, o, r, &d)) fail_msg("%s: %s", what, d.message);
    share_must_equal(got, want, len, what);
    free(got);
    free(want);
}

/* ---- the command ----------------------------------------------------------------------------- */

void share_path(char out[200], const char *name)
{
    snprintf(out, 200, "%s/%s", top, name);
}

void share_start(command *c, const char *misbehave, const char *a, const char *b,
                 const char *const *more)
{
    char pa[200], pb[200], pc[200], env[96];
    const char *const envs[] = { env, NULL };
    share_path(pa, a);
    share_path(pb, b);
    share_path(pc, "C.npy");
    snprintf(env, sizeof env, "SHERD_TEST_MISBEHAVE=%s", misbehave ? misbehave : "");
    const char *argv[32] = { "sherd", "multiply", pa, pb, "-o", pc, "--scheme", "share" };
    size_t n = 8;
    while (*more) argv[n++] = *more++;
    command_start(c, misbehave ? liar_path() : sherd_path(), argv, misbehave ? envs : NULL);
}

json_t *share_finish(command *c, int expected)
{
    bool ended = command_wait(c, 60000 * patience());
    char *err = command_said(c->err);
    snprintf(share_said, sizeof share_said, "%s", err);
    free(err);
    json_t *root = command_json(c);
    if (!ended || c->status != expected)
        fail_msg("ended with %d, expected %d: %s", c->status, expected, share_said);
    command_free(c);
    return root;
}

json_int_t share_count(json_t *root, const char *field)
{
    return json_integer_value(json_object_get(root, field));
}

int share_begin(void **state)
{
    (void)state;
    char file[200];
    rng = sherd__entropy_seeded(&rng_state, 31);
    folder_new(top);
    share_path(file, "A.npy");
    matrix_file(file, 561, 420, 1);
    share_path(file, "B.npy");
    matrix_file(file, 420, 390, 2);
    double zeros[40 * 30] = { 0 };
    share_path(file, "Z.npy");
    if (sherd_npy_save(file, share_view(zeros, 40, 30), NULL)) return 1;
    share_path(file, "Y.npy");
    if (sherd_npy_save(file, share_view(zeros, 30, 20), NULL)) return 1;
    if (sherd_multiplier_local(&here, BITS, NULL)) return 1;
    share_cluster = local_open(NODES, NULL, 0);
    return 0;
}

int share_end(void **state)
{
    (void)state;
    sherd_cluster_close(share_cluster);
    sherd_multiplier_free(here);
    folder_remove(top);
    return 0;
}
