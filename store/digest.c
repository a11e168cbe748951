/*
 * Digests of matrices with OpenSSL's SHA-256, which is four times as fast as the other available
 * libraries. A label, the dtype and the shape are hashed first, so that two different matrices
 * never have the same preimage, and neither does any other use of SHA-256 in this project.
 */
#include "store/digest.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "core/hooks.h"
#include "matrix/view.h"
#include "sherd/digest.h"
#include "store/pack.h"

#define PACK_BYTES ((size_t)128 << 10)
#define ASK_BYTES ((size_t)4 << 20) /* between two questions whether to stop */

struct sherd__digest_stream {
    EVP_MD_CTX *md;
    sherd_dtype dtype;
    size_t rows, cols, seen;
    _Alignas(8) uint8_t pack[PACK_BYTES];
};

static int fail_hash(sherd_diag *d)
{
    return sherd__fail(d, SHERD_EINTERNAL, NULL, "SHA-256 failed in OpenSSL");
}

int sherd__digest_new(sherd__digest_stream **out, sherd_dtype dtype, size_t rows, size_t cols,
                      sherd_diag *d)
{
    const char *name = sherd_dtype_name(dtype);
    char head[96];
    *out = NULL;
    if (!name) return sherd__fail(d, SHERD_EINVAL, NULL, "%d is not a dtype", (int)dtype);
    sherd__digest_stream *s = sherd__alloc(sizeof *s);
    EVP_MD_CTX *md = s ? EVP_MD_CTX_new() : NULL;
    if (!md) {
        sherd__free(s);
        return sherd__fail_memory(d, "a digest");
    }
    s->md = md;
    s->dtype = dtype;
    s->rows = rows;
    s->cols = cols;
    s->seen = 0;
    int n = snprintf(head, sizeof head, "sherd-matrix-v1 %s %zu %zu\n", name, rows, cols);
    if (EVP_DigestInit_ex(md, EVP_sha256(), NULL) != 1 ||
        EVP_DigestUpdate(md, head, (size_t)n) != 1) {
        sherd__digest_free(s);
        return fail_hash(d);
    }
    *out = s;
    return SHERD_OK;
}

static int absorb(void *ctx, const void *bytes, size_t len, sherd_diag *d)
{
    return EVP_DigestUpdate(ctx, bytes, len) == 1 ? SHERD_OK : fail_hash(d);
}

int sherd__digest_rows(sherd__digest_stream *s, sherd_view v, sherd_diag *d)
{
    if (v.dtype != s->dtype || v.cols != s->cols || v.rows > s->rows - s->seen)
        return sherd__fail(d, SHERD_EINVAL, NULL,
                           "%zu rows of %zu do not continue a %zu x %zu matrix at row %zu", v.rows,
                           v.cols, s->rows, s->cols, s->seen);
    s->seen += v.rows;
    return sherd__view_stream(v, s->pack, sizeof s->pack, absorb, s->md, d);
}

int sherd__digest_end(sherd__digest_stream *s, sherd__digest *out, sherd_diag *d)
{
    uint8_t sum[EVP_MAX_MD_SIZE];
    int err = SHERD_OK;
    if (s->seen != s->rows)
        err = sherd__fail(d, SHERD_EINVAL, NULL, "%zu of %zu rows were digested", s->seen, s->rows);
    else if (EVP_DigestFinal_ex(s->md, sum, NULL) != 1) err = fail_hash(d);
    else memcpy(out->sha256, sum, SHERD__DIGEST_BYTES);
    sherd__digest_free(s);
    return err;
}

void sherd__digest_free(sherd__digest_stream *s)
{
    if (!s) return;
    EVP_MD_CTX_free(s->md);
    sherd__free(s);
}

/* Digests all rows, some megabytes between two questions. */
static int digest_rows(sherd__digest_stream *s, sherd_view v, const sherd_hooks *hooks,
                       sherd_diag *d)
{
    size_t row = v.cols * sherd_dtype_size(v.dtype), step = row ? ASK_BYTES / row : v.rows;
    int err = SHERD_OK;
    if (!hooks || !hooks->interrupted || step > v.rows) step = v.rows;
    if (step == 0) step = 1;
    for (size_t r = 0; r < v.rows && !err; r += step) {
        size_t rows = v.rows - r < step ? v.rows - r : step;
        err = hooks && sherd__hooks_interrupted(hooks)
                  ? sherd__fail(d, SHERD_EINTERRUPTED, NULL, "interrupted")
                  : sherd__digest_rows(s, sherd_view_sub(v, r, rows, 0, v.cols), d);
    }
    return err;
}

int sherd__digest_view(sherd__digest *out, sherd_view v, sherd_diag *d)
{
    return sherd__digest_view_asking(out, v, NULL, d);
}

int sherd__digest_view_asking(sherd__digest *out, sherd_view v, const sherd_hooks *hooks,
                              sherd_diag *d)
{
    sherd__digest_stream *s;
    int err = sherd__digest_new(&s, v.dtype, v.rows, v.cols, d);
    if (err) return err;
    err = digest_rows(s, v, hooks, d);
    if (err) {
        sherd__digest_free(s);
        return err;
    }
    return sherd__digest_end(s, out, d);
}

int sherd__digest_labelled(sherd__digest *out, const char *label, const void *bytes, size_t len)
{
    uint8_t sum[EVP_MAX_MD_SIZE];
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    if (!md) return SHERD_ENOMEM;
    int ok = EVP_DigestInit_ex(md, EVP_sha256(), NULL) == 1 &&
             EVP_DigestUpdate(md, label, strlen(label) + 1) == 1 &&
             EVP_DigestUpdate(md, bytes, len) == 1 && EVP_DigestFinal_ex(md, sum, NULL) == 1;
    EVP_MD_CTX_free(md);
    if (!ok) return SHERD_EINTERNAL;
    memcpy(out->sha256, sum, SHERD__DIGEST_BYTES);
    return SHERD_OK;
}

int sherd__digest_bytes(sherd__digest *out, const void *bytes, size_t len)
{
    uint8_t sum[EVP_MAX_MD_SIZE];
    if (EVP_Digest(bytes, len, sum, NULL, EVP_sha256(), NULL) != 1) return SHERD_EINTERNAL;
    memcpy(out->sha256, sum, SHERD__DIGEST_BYTES);
    return SHERD_OK;
}

void sherd__digest_text(const sherd__digest *g, char out[SHERD__DIGEST_TEXT])
{
    for (size_t i = 0; i < SHERD__DIGEST_BYTES; i++) snprintf(out + 2 * i, 3, "%02x", g->sha256[i]);
}

/* ---- public ---------------------------------------------------------------------------------- */

int sherd_digest_matrix(sherd_view v, uint8_t *out, sherd_diag *d)
{
    sherd__digest g;
    int err = sherd__view_check(v, "the matrix", d);
    if (!err) err = sherd__digest_view(&g, v, d);
    if (!err) memcpy(out, g.sha256, sizeof g.sha256);
    return err;
}

int sherd_digest_bytes(const void *bytes, size_t len, uint8_t *out, sherd_diag *d)
{
    sherd__digest g;
    int err = sherd__digest_bytes(&g, bytes, len);
    if (err) return fail_hash(d);
    memcpy(out, g.sha256, sizeof g.sha256);
    return SHERD_OK;
}
