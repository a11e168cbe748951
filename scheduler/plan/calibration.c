/*
 * Hides and folds a few cells of a product here, without a node, and multiplies the time by the
 * number of cells. The first position of a tile computes data that the others use (projections,
 * permutations, weights), so its time counts once per tile. Hidden cells are kept in memory as long
 * as they would be in transfer: the first positions use fresh memory, later ones reuse the memory
 * of earlier ones. Answers are zeros, because the time of folding does not depend on the values.
 * Each answer is at another address than the one before, because data just received from a node is
 * not in a cache of this core. Answers are not checked, because a check that fails stops early. The
 * time of checks is estimated from the number of bytes.
 */
#include "scheduler/plan/forecast.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/hooks.h"
#include "matrix/residue_bytes.h"
#include "scheduler/plan/kernel_rates.h"
#include "wire/session.h"

#define ENOUGH_S 0.03
#define POSITIONS_MAX 4u
#define WINDOW 2u                                /* positions in transfer */
#define CHUNKS_MAX 4u                            /* of a slot's resident block */
#define ANSWERS_BYTES (64u << 20)                /* larger than any cache of a core */
#define ANSWERS_MAX (2u * SHERD__LCC_BLOCKS_MAX) /* 2 K + 2 T - 1 of K + T points */

typedef struct measured {
    sherd__prepared *p;
    const sherd_hooks *hooks;
    sherd__scheme_shape shape;
    sherd__cell_work *kept; /* WINDOW for each slot */
    uint8_t *zeros;         /* zeros_len bytes, at least one answer */
    uint64_t zeros_len, at;
    double hide_s, fold_s; /* of the last position */
} measured;

static void free_cells(sherd__cell_work *w, uint32_t slots)
{
    for (uint32_t slot = 0; slot < slots; slot++) {
        sherd__fragment_free(w[slot].left);
        sherd__fragment_free(w[slot].right);
        w[slot] = (sherd__cell_work){ 0 };
    }
}

static int hide(measured *r, uint32_t panel, bool *empty)
{
    const sherd__hiding *h = &r->p->hiding;
    uint32_t slots = r->shape.slots;
    sherd__cell_work *kept = r->kept + panel % WINDOW * slots;
    int err = SHERD_OK;
    free_cells(kept, slots);
    double began = sherd__clock_busy_s();
    for (uint32_t slot = 0; slot < slots && !err; slot++) {
        if (sherd__hooks_interrupted(r->hooks)) return SHERD_EINTERRUPTED;
        err = h->ops->hide(h->ctx, (sherd__cell){ slot, 0, panel }, &kept[slot]);
        empty[slot] = kept[slot].empty;
    }
    r->hide_s = sherd__clock_busy_s() - began;
    return err;
}

static const uint8_t *answer(measured *r)
{
    uint64_t len = r->shape.result_max;
    if (r->at + len > r->zeros_len) r->at = 0;
    r->at += len;
    return r->zeros + r->at - len;
}

static int fold(measured *r, uint32_t panel, const bool *empty)
{
    const sherd__hiding *h = &r->p->hiding;
    const uint8_t *bodies[ANSWERS_MAX];
    uint32_t slots[ANSWERS_MAX], len = r->shape.threshold;
    double began = sherd__clock_busy_s();
    int err = SHERD_OK;
    assert(len <= ANSWERS_MAX);
    for (uint32_t i = 0; i < len; i++) slots[i] = i, bodies[i] = answer(r);
    if (len) err = h->ops->decode(h->ctx, 0, panel, slots, bodies, len);
    for (uint32_t slot = 0; slot < r->shape.slots && !len && !err; slot++)
        err = h->ops->fold(h->ctx, (sherd__cell){ slot, 0, panel }, empty[slot] ? NULL : answer(r));
    r->fold_s = sherd__clock_busy_s() - began;
    return err;
}

static int measure_cells(measured *r, sherd__calibration *out)
{
    bool *empty = sherd__calloc(r->shape.slots, sizeof *empty);
    double first_hide = 0, first_fold = 0, hide_s = 0, fold_s = 0, all = 0;
    uint32_t panel = 0, panels = r->shape.panels;
    r->kept = sherd__calloc((size_t)WINDOW * r->shape.slots, sizeof *r->kept);
    int err = empty && r->kept ? SHERD_OK : SHERD_ENOMEM;
    for (; panel < panels && panel < POSITIONS_MAX && (panel <= WINDOW || all < ENOUGH_S) && !err;
         panel++) {
        err = hide(r, panel, empty);
        if (!err) err = fold(r, panel, empty);
        *(panel >= WINDOW ? &hide_s : &first_hide) += r->hide_s;
        *(panel >= WINDOW ? &fold_s : &first_fold) += r->fold_s;
        all += r->hide_s + r->fold_s;
    }
    if (r->kept) free_cells(r->kept, WINDOW * r->shape.slots);
    sherd__free(r->kept);
    sherd__free(empty);
    if (err || panel == 0) return err;
    double rest = panel > WINDOW ? (double)(panels - WINDOW) / (double)(panel - WINDOW) : 0;
    out->hide_s = (first_hide + rest * hide_s) * r->shape.tiles;
    out->fold_s = (first_fold + rest * fold_s) * r->shape.tiles;
    return SHERD_OK;
}

/* Reads the first chunks of each slot's resident block, as the loop thread does, and sets the time
 * for all of its bytes. */
static int measure_fill(measured *r, sherd__calibration *out, uint64_t bytes)
{
    const sherd__hiding *h = &r->p->hiding;
    uint8_t *part = sherd__alloc(SHERD__CHUNK);
    uint32_t slots = r->shape.shared ? 1 : r->shape.slots;
    uint64_t read = 0;
    int err = part ? SHERD_OK : SHERD_ENOMEM;
    if (part) memset(part, 0, SHERD__CHUNK); /* the pages of the session's buffer are mapped, too */
    double began = sherd__clock_busy_s();
    for (uint32_t slot = 0; slot < slots && !err; slot++) {
        sherd__fragment *f;
        err = h->ops->resident(h->ctx, slot, 0, &f);
        if (err) break;
        uint64_t len = sherd__fragment_info_of(f)->len, at = 0;
        for (unsigned i = 0; i < CHUNKS_MAX && at < len && !err; i++) {
            size_t n = len - at < SHERD__CHUNK ? (size_t)(len - at) : SHERD__CHUNK;
            err = sherd__fragment_read(f, at, part, n);
            at += n;
        }
        sherd__fragment_free(f);
        read += at;
    }
    double took = sherd__clock_busy_s() - began;
    out->fill_s = read ? took * (double)bytes / (double)read : 0;
    sherd__free(part);
    return err;
}

/* Rates in bytes a second of one core, measured on a Zen 5: of rows gathered and narrowed, of
 * shares, of answers checked and folded, and of resident blocks. */
#define TYPICAL_HIDE 1e9
#define TYPICAL_CODE 2e9
#define TYPICAL_FOLD 3e9
#define TYPICAL_FILL 4e9

/* The same of byte residues, on a Zen 4 by VNNI and by AVX2: of shares, and of residues that are
 * multiplied by the vectors of a check. */
#define WIDE_CODE 12e9
#define WIDE_PROJECT 6e9
#define NARROW_CODE 2e9
#define NARROW_PROJECT 1.2e9
#define TYPICAL_PROJECT 4e9 /* of 23 bits: numbers, two trials */

static bool wide(void)
{
    return sherd__bytes_path_here() >= SHERD__BYTES_VNNI;
}

double sherd__calibration_project(const sherd__prepared *p)
{
    return !p->bytes ? TYPICAL_PROJECT : wide() ? WIDE_PROJECT : NARROW_PROJECT;
}

static double code_rate(const sherd__prepared *p)
{
    return !p->bytes ? TYPICAL_CODE : wide() ? WIDE_CODE : NARROW_CODE;
}

static sherd__calibration of_masks(const sherd__kernel_rates *k, const sherd__traffic *t)
{
    return (sherd__calibration){
        .hide_s = (double)t->left * (1 / k->mask + 1 / k->pack),
        .fold_s = (double)t->answer * (2 / k->unpack + 1 / k->judge_residues),
    };
}

/* Returns whether a cell cannot be hidden for the time alone, because that would use up masks. */
static bool uses_up_masks(const sherd__prepared *p)
{
    return p->scheme->takes & SHERD_TAKES_MASKS;
}

sherd__calibration sherd__calibration_typical(const sherd__prepared *p, const sherd__traffic *t)
{
    const sherd__kernel_rates typical = sherd__kernel_rates_typical();
    if (uses_up_masks(p)) return of_masks(&typical, t);
    return (sherd__calibration){
        .hide_s = (double)t->left / (t->residues ? code_rate(p) : TYPICAL_HIDE),
        .fold_s = (double)t->answer / TYPICAL_FOLD,
        .fill_s = (double)t->first / TYPICAL_FILL,
    };
}

/* Returns the size of the memory for answers: one place for each, up to ANSWERS_BYTES. */
static uint64_t answers_bytes(const sherd__scheme_shape *s)
{
    uint64_t each = s->result_max ? s->result_max : 1, count = (uint64_t)POSITIONS_MAX * s->slots;
    if (count > 0 && count <= ANSWERS_BYTES / each) return count * each;
    return each > ANSWERS_BYTES ? each : ANSWERS_BYTES;
}

int sherd__calibration_measure(sherd__calibration *out, sherd__prepared *p, const sherd__traffic *t,
                               const sherd_hooks *hooks)
{
    const sherd__kernel_rates here = sherd__kernel_rates_here();
    measured r = { .p = p, .hooks = hooks };
    int err = SHERD_OK;
    *out = (sherd__calibration){ 0 };
    p->hiding.ops->shape(p->hiding.ctx, &r.shape);
    if (t->tasks == 0) return SHERD_OK;
    if (uses_up_masks(p)) {
        *out = of_masks(&here, t);
        return SHERD_OK;
    }
    r.zeros_len = answers_bytes(&r.shape);
    r.zeros = sherd__alloc(r.zeros_len);
    if (r.zeros) memset(r.zeros, 0, r.zeros_len);
    else err = SHERD_ENOMEM;
    const uint64_t left = r.shape.left_stays ? t->left : 0; /* made while it is sent, too */
    if (!err && r.shape.resident) err = measure_fill(&r, out, t->first + left);
    if (!err) err = measure_cells(&r, out);
    double judge = p->bytes             ? here.judge_bytes
                   : r.shape.primes_len ? here.judge_residues
                                        : here.judge_f64;
    out->fold_s += (double)t->answer / judge;
    sherd__free(r.zeros);
    return err;
}
