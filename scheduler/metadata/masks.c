/*
 * Prepares one-time masks: R*B modulo each prime. R is drawn one panel at a time, and each panel is
 * dropped after use. B is read again for every panel, a few columns at a time, so the memory used
 * does not depend on the size of B. With panels of a hundred rows the time to read B is small
 * compared with the products.
 */
#include "sherd/masks.h"

#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "core/field.h"
#include "core/hooks.h"
#include "core/options.h"
#include "core/rand.h"
#include "core/wipe.h"
#include "matrix/exact.h"
#include "matrix/view.h"
#include "schemes/blind/blind.h"
#include "store/maskfile.h"

#define MEMORY_DEFAULT (UINT64_C(64) << 20)
#define PANEL_ROWS 512u

typedef struct making {
    sherd__maskfile_head head;
    sherd_view b;
    sherd__fixed fixed;
    sherd__masks *masks;
    sherd__maskfile_writer *file;
    size_t rows, cols, row_bytes; /* rows of a panel of R; columns of a tile of B; bytes of a row of
                                     the file */
    double *r, *tile, *out;       /* rows x k, k x cols, rows x cols */
    uint8_t *packed;              /* rows x row_bytes */
} making;

static void info_of(sherd_masks_info *out, const sherd__maskfile_head *h, uint64_t left)
{
    sherd_masks_info own = { .k = h->k,
                             .m = h->m,
                             .rows = h->rows,
                             .left = left,
                             .bytes = sherd__maskfile_bytes(h),
                             .bits_a = h->bits_a,
                             .bits_b = h->bits_b,
                             .primes = h->primes_len };
    memcpy(own.b_sha256, h->b.sha256, sizeof own.b_sha256);
    sherd__result_write(out, &own, sizeof own);
}

/* Chooses the bit widths, and primes that hold every sum of such products. */
static int choose(making *mk, const sherd_masks_options *opt, sherd_diag *d)
{
    sherd__maskfile_head *h = &mk->head;
    size_t primes;
    h->bits_a = opt->bits_a ? opt->bits_a : SHERD__FIXED_BITS;
    h->bits_b = opt->bits_b ? opt->bits_b : h->bits_a;
    if (h->bits_a < 2 || h->bits_a > SHERD__PRIVATE_BITS || h->bits_b < 2 ||
        h->bits_b > SHERD__PRIVATE_BITS)
        return sherd__fail(d, SHERD_EINVAL, "choose 2 to 26 bits",
                           "%u and %u bits: 2 to 26 are possible", h->bits_a, h->bits_b);
    const char *name = opt->name ? opt->name : "B";
    sherd_diag mine = { 0 };
    int err = sherd__fixed_choose(mk->b, h->bits_b, name, &mk->fixed, d);
    if (!err && mk->fixed.integers && !opt->bits_b && mk->fixed.bits <= 26)
        h->bits_b = mk->fixed.bits < 2 ? 2 : mk->fixed.bits;
    else if (!err &&
             sherd__fixed_hold(&mk->fixed, mk->b, opt->bits_b ? h->bits_b : 26, name, &mine))
        err = sherd__fail(d, SHERD_ERANGE,
                          opt->bits_b && mk->fixed.bits <= SHERD__PRIVATE_BITS
                              ? "give more --bits-b, or none: integers are then used unchanged"
                              : "scale B: masks hold 26 bits at most",
                          "%s", mine.message);
    if (err) return err;
    uint64_t amax = (UINT64_C(1) << (h->bits_a - 1)) - 1,
             bmax = (UINT64_C(1) << (h->bits_b - 1)) - 1;
    err = sherd__exact_primes_needed(mk->b.rows, amax, bmax, &sherd__primes_default, &primes);
    if (err)
        return sherd__fail(d, err, "use fewer bits",
                           "sums of %zu products of %u and %u bits do not fit four primes",
                           mk->b.rows, h->bits_a, h->bits_b);
    h->primes_len = (uint32_t)primes;
    memcpy(h->primes, sherd__primes_default.p, primes * sizeof h->primes[0]);
    return SHERD_OK;
}

/* Uses a third of the memory for a panel of R, a third for a tile of B, and the rest for their
 * product. */
static int cut(making *mk, uint64_t memory)
{
    size_t k = mk->b.rows ? mk->b.rows : 1, m = mk->b.cols ? mk->b.cols : 1, len;
    uint64_t third = (memory ? memory : MEMORY_DEFAULT) / 3;
    uint64_t cols = third / (k * sizeof(double)), rows = third / (k * sizeof(double));
    mk->row_bytes = sherd__maskfile_row_bytes(&mk->head);
    mk->cols = cols < 1 ? 1 : cols < m ? (size_t)cols : m;
    uint64_t by_out = third / (mk->row_bytes + mk->cols * sizeof(double));
    if (by_out < rows) rows = by_out;
    if (rows > PANEL_ROWS) rows = PANEL_ROWS;
    if (rows > mk->head.rows) rows = mk->head.rows;
    mk->rows = rows < 1 ? 1 : (size_t)rows;
    mk->r = sherd__calloc(mk->rows, k * sizeof *mk->r);
    if (sherd__mul(k, mk->cols * sizeof(double), &len)) mk->tile = sherd__alloc(len);
    mk->out = sherd__calloc(mk->rows, mk->cols * sizeof *mk->out);
    mk->packed = sherd__calloc(mk->rows, mk->row_bytes);
    return mk->r && mk->tile && mk->out && mk->packed ? SHERD_OK : SHERD_ENOMEM;
}

static int begin(making *mk, const char *path, const sherd_masks_options *opt, sherd_diag *d)
{
    uint8_t root[32], key[32];
    sherd__entropy os = sherd__entropy_os();
    int err = choose(mk, opt, d);
    mk->head.k = mk->b.rows;
    mk->head.m = mk->b.cols;
    mk->head.rows = opt->rows;
    if (!err) err = sherd__digest_view_asking(&mk->head.b, mk->b, &opt->hooks, d);
    if (err) return err;
    os.fill(os.ctx, mk->head.id, sizeof mk->head.id);
    os.fill(os.ctx, root, sizeof root);
    err = sherd__maskfile_begin(&mk->file, (sherd__maskfile_place){ path, opt->state }, &mk->head,
                                root, key, d);
    if (!err) {
        err = sherd__masks_from_key(&mk->masks, key);
        if (!err) err = cut(mk, opt->memory);
        if (err) sherd__fail_to(d, err, "make masks");
    }
    sherd__wipe(root, sizeof root);
    sherd__wipe(key, sizeof key);
    return err;
}

/* Loads columns [from, from+n) of B modulo p. */
static void load_tile(making *mk, uint32_t p, size_t from, size_t n)
{
    for (size_t i = 0; i < mk->b.rows; i++)
        sherd__fixed_row(&mk->fixed, mk->b, i, from, n, mk->tile + i * n);
    sherd__residue_from_f64(mk->tile, mk->b.rows * n, p, mk->tile);
}

static int make_rows(making *mk, uint64_t row, size_t rows)
{
    size_t k = mk->b.rows, m = mk->b.cols;
    for (uint32_t q = 0; q < mk->head.primes_len; q++) {
        uint32_t p = mk->head.primes[q];
        int err = sherd__blind_mask(mk->masks, q, p, (sherd__mask_part){ row, rows, 0, k }, mk->r);
        for (size_t from = 0; from < m && !err; from += mk->cols) {
            size_t n = m - from < mk->cols ? m - from : mk->cols;
            uint8_t *to = mk->packed + SHERD__RESIDUE_BYTES * (q * m + from);
            load_tile(mk, p, from, n);
            err = sherd__residue_gemm(p, rows, k, n, mk->r, k, mk->tile, n, mk->out, n);
            for (size_t i = 0; i < rows && !err; i++)
                sherd__residue_pack(mk->out + i * n, n, p, to + i * mk->row_bytes);
        }
        if (err) return err;
    }
    return SHERD_OK;
}

static int make_all(making *mk, const sherd_masks_options *opt, sherd_diag *d)
{
    sherd__hooked h = sherd__hooks_begin(&opt->hooks);
    for (uint64_t row = 0; row < mk->head.rows; row += mk->rows) {
        size_t rows = mk->head.rows - row < mk->rows ? (size_t)(mk->head.rows - row) : mk->rows;
        int err = sherd__hooks_step(&h, row, mk->head.rows, d);
        if (err) return err;
        err = make_rows(mk, row, rows);
        if (err) return sherd__fail_to(d, err, "make masks");
        for (size_t i = 0; i < rows && !err; i++)
            err = sherd__maskfile_row(mk->file, mk->packed + i * mk->row_bytes, d);
        if (err) return err;
    }
    int err = sherd__hooks_step(&h, mk->head.rows, mk->head.rows, d);
    return err || !opt->check ? err : opt->check(opt->check_ctx, d);
}

static void wipe_free(void *p, size_t len)
{
    if (p) sherd__wipe(p, len);
    sherd__free(p);
}

int sherd_masks_prepare(const char *path, sherd_view b, const sherd_masks_options *opt,
                        sherd_masks_info *out, sherd_diag *d)
{
    making mk = { .b = b };
    sherd_masks_options own;
    int err = sherd__options_read(&own, sizeof own, opt, "sherd_masks_options", d);
    if (!err && out) err = sherd__result_check(out, "sherd_masks_info", d);
    if (err) return err;
    opt = &own;
    err = sherd__view_check(b, "B", d);
    if (!err && opt->rows == 0)
        err = sherd__fail(d, SHERD_EINVAL, "give as many rows as A will have",
                          "masks need at least one row");
    if (!err) err = begin(&mk, path, opt, d);
    if (!err) err = make_all(&mk, opt, d);
    if (!err) {
        err = sherd__maskfile_commit(mk.file, d);
        mk.file = NULL;
    }
    if (!err && out) info_of(out, &mk.head, mk.head.rows);
    sherd__maskfile_abort(mk.file);
    sherd__masks_free(mk.masks);
    wipe_free(mk.r, mk.rows * b.rows * sizeof *mk.r);
    wipe_free(mk.out, mk.rows * mk.cols * sizeof *mk.out);
    wipe_free(mk.packed, mk.rows * mk.row_bytes);
    sherd__free(mk.tile);
    return err;
}

int sherd_masks_get(const char *path, const char *state, sherd_masks_info *out, sherd_diag *d)
{
    sherd__maskfile *f;
    int err = sherd__result_check(out, "sherd_masks_info", d);
    if (!err) err = sherd__maskfile_open(&f, path, state, false, d);
    if (err) return err;
    info_of(out, sherd__maskfile_head_of(f), sherd__maskfile_left(f));
    sherd__maskfile_close(f);
    return SHERD_OK;
}

static const sherd_field masks_info_fields[] = {
    SHERD__FIELD(sherd_masks_info, k, U64, "", "rows of B"),
    SHERD__FIELD(sherd_masks_info, m, U64, "", "columns of B"),
    SHERD__FIELD(sherd_masks_info, rows, U64, "", "rows of all A that the masks serve"),
    SHERD__FIELD(sherd_masks_info, left, U64, "", "rows that are left"),
    SHERD__FIELD(sherd_masks_info, bytes, U64, "bytes", "size of the file"),
    SHERD__FIELD(sherd_masks_info, bits_a, U32, "", "width of A"),
    SHERD__FIELD(sherd_masks_info, bits_b, U32, "", "width of B"),
    SHERD__FIELD(sherd_masks_info, primes, U32, "", "number of primes"),
    SHERD__FIELD(sherd_masks_info, b_sha256, BYTES, "", "digest of B"),
};
SHERD__FIELDS(sherd_masks_info, masks_info_fields)
