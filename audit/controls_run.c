/*
 * Audits the audit: the attacks that judge a record are run on every broken scheme. A control
 * counts as found by its smallest p-value, multiplied by the number of tests it was chosen from.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "audit/controls.h"
#include "audit/modular.h"
#include "audit/stats_internal.h"
#include "audit/tail.h"
#include "core/alloc.h"
#include "crypto/lagrange.h"

enum { SIDE = 64, ENTRIES_MIN = 1024, GAME_SIDE = 12, BLOCKS = 8, SPARE = 3 };

/* ---- attacks --------------------------------------------------------------------------------- */

static int report(sherd__findings *l, const sherd__findings *tried, sherd__control c,
                  uint32_t coalition)
{
    sherd_audit_finding f = sherd__finding_of("control", "-log10 of the smallest p", true);
    const sherd_audit_finding *best = NULL;
    double tests = 0;
    for (size_t i = 0; i < tried->len; i++) {
        const sherd_audit_finding *t = &tried->list[i];
        if (isnan(t->ln_p)) continue;
        tests++;
        if (!best || t->ln_p < best->ln_p) best = t;
    }
    f.ln_p = best ? best->ln_p + log(tests) : 0;
    if (f.ln_p > 0) f.ln_p = 0;
    f.value = -f.ln_p / log(10);
    snprintf(f.subject, sizeof f.subject, "%s", sherd__control_name(c));
    snprintf(f.who, sizeof f.who, "%u domain%s", coalition, coalition > 1 ? "s" : "");
    snprintf(f.sentence, sizeof f.sentence, "control %s: best found by %s of %s (%s), p %s 1e-%.0f",
             f.subject, best ? best->statistic : "nothing", best ? best->subject : "",
             best ? best->who : "", f.value > 300 ? "<" : "=", fmin(f.value, 300));
    return sherd__findings_add(l, &f);
}

static int attack(sherd__findings *l, sherd__control c, const sherd__seen_code *code,
                  sherd__code_blocks of, const sherd__audit_options *opt, sherd_diag *d)
{
    sherd__control_view v;
    sherd__findings tried = { 0 };
    sherd__streams_reach reach;
    uint64_t seed = opt->seed + 7919 * ((uint64_t)c + 1);
    int err = sherd__control_make(&v, c, code, of, seed);
    if (err != 0) return err;
    /* A correct encoding reveals nothing to single domains, so only the coalition may flag it. */
    if (c != SHERD__CONTROL_COALITION)
        err = sherd__audit_uniformity(&tried, v.seen, v.seen_len, opt, d);
    if (err == 0 && c != SHERD__CONTROL_COALITION)
        err = sherd__audit_streams(&tried, v.seen, v.seen_len, opt, &reach, d);
    if (err == 0) err = sherd__audit_coalitions(&tried, &v.seen[0], v.coalition, opt, NULL, d);
    if (err == 0) err = report(l, &tried, c, v.coalition);
    sherd__findings_fini(&tried);
    sherd__control_fini(&v);
    return err;
}

/* ---- games ----------------------------------------------------------------------------------- */

typedef struct playing {
    sherd__control control;
    sherd__seen_code code; /* its shares are only those of the coalition */
    size_t rows, cols;
    uint64_t seed;
} playing;

static int encode(void *ctx, const double *const *blocks, uint32_t *const *out)
{
    playing *g = ctx;
    sherd__control_view v;
    if (g->control != SHERD__CONTROL_REUSE) g->seed++;
    int err = sherd__control_make(&v, g->control, &g->code,
                                  (sherd__code_blocks){ g->rows, g->cols, blocks }, g->seed);
    if (err != 0) return err;
    uint32_t members = g->control == SHERD__CONTROL_COALITION ? g->code.masks + 1 : 1;
    for (uint32_t i = 0; i < members * g->code.primes_len; i++)
        memcpy(out[i], v.seen[0].residues[i], g->rows * g->cols * sizeof **out);
    sherd__control_fini(&v);
    return SHERD_OK;
}

/* Two operands of which a game's attacker names the one that was encoded. */
typedef struct contest {
    const char *name;
    const double *const *first, *const *second;
} contest;

/* sherd__audit_game takes its weights from the code; for alpha = beta that is the code of a
   control's view. */
static int game(sherd__findings *l, sherd__control c, const sherd__seen_code *code,
                const contest *of, const sherd__audit_options *opt, sherd_diag *d)
{
    playing p = { c, *code, GAME_SIDE, GAME_SIDE, opt->seed + 104729 * ((uint64_t)c + 1) };
    uint32_t members[SHERD__LCC_BLOCKS_MAX];
    sherd__control_view v;
    p.code.shares = code->masks + 1;
    for (uint32_t i = 0; i <= code->masks; i++) members[i] = i;
    int err = sherd__control_make(&v, c, &p.code, (sherd__code_blocks){ 1, 1, NULL }, 0);
    if (err != 0) return err;
    sherd__game g = { of->name,
                      &v.code,
                      members,
                      v.coalition,
                      GAME_SIDE,
                      GAME_SIDE,
                      { of->first, of->second },
                      { encode, &p } };
    sherd__findings played = { 0 };
    err = sherd__audit_game(&played, &g, opt, d);
    if (err == 0) {
        sherd_audit_finding *f = &played.list[0];
        f->test = "control game";
        f->control = true;
        snprintf(f->subject, sizeof f->subject, "%s", sherd__control_name(c));
        err = sherd__findings_add(l, f);
    }
    sherd__findings_fini(&played);
    sherd__control_fini(&v);
    return err;
}

static int games(sherd__findings *l, const sherd__seen_code *code, const sherd__audit_options *opt,
                 sherd_diag *d)
{
    size_t n = (size_t)GAME_SIDE * GAME_SIDE;
    sherd__seeded state;
    sherd__entropy e = sherd__entropy_seeded(&state, opt->seed);
    double **zero = NULL, **made = NULL, **mixed = NULL;
    int err = sherd__audit_blocks(&zero, code->blocks, n);
    if (err == 0) err = sherd__audit_blocks(&made, code->blocks, n);
    if (err == 0) err = sherd__audit_blocks(&mixed, code->blocks, n);
    if (err == 0) {
        sherd__audit_make_up(&e, made, code->blocks, GAME_SIDE, GAME_SIDE);
        sherd__audit_permuted(&e, (const double *const *)made, mixed, code->blocks, n);
    }
    const contest structure = { "zero or structured", (const double *const *)zero,
                                (const double *const *)made };
    const contest order = { "real or permuted", (const double *const *)made,
                            (const double *const *)mixed };
    /* One mask for all primes, one at an offset and a negated one are left to the statistics: the
       game's attacker does not combine primes, shift or add. */
    for (int c = 0; c < SHERD__CONTROL_PRIMES && err == 0; c++) {
        if (!sherd__control_of((sherd__control)c, code)) continue;
        err = game(l, (sherd__control)c, code, &structure, opt, d);
        if (err == 0) err = game(l, (sherd__control)c, code, &order, opt, d);
    }
    sherd__free(zero);
    sherd__free(made);
    sherd__free(mixed);
    return err;
}

/* ---- all controls ---------------------------------------------------------------------------- */

int sherd__audit_controls(sherd__findings *l, const sherd__seen_code *code, sherd__code_blocks of,
                          const sherd__audit_options *opt, sherd_diag *d)
{
    sherd__seen_code small = *code;
    int err = sherd__modular_check(code, d);
    if (err != 0) return err;
    small.form =
        SHERD__SEEN_LAGRANGE; /* these test attacks, and need fewer shares than the other */
    if (small.blocks > BLOCKS && !code->beta) small.blocks = BLOCKS;
    if (small.shares > small.masks + SPARE) small.shares = small.masks + SPARE;
    if (!of.block || of.rows < 2 || of.rows * of.cols < ENTRIES_MIN)
        of = (sherd__code_blocks){ SIDE, SIDE, NULL };
    for (int c = 0; c < SHERD__CONTROLS && err == 0; c++) {
        if (!sherd__control_of((sherd__control)c, code)) continue;
        err = attack(l, (sherd__control)c, &small, of, opt, d);
    }
    return err == 0 ? games(l, &small, opt, d) : err;
}

bool sherd__controls_flagged(const sherd__findings *l, sherd__control *missed)
{
    for (int c = 0; c < SHERD__CONTROLS; c++) {
        bool run = false, found = false;
        for (size_t i = 0; i < l->len; i++) {
            const sherd_audit_finding *f = &l->list[i];
            if (!f->control || strncmp(f->test, "control", 7) != 0) continue;
            if (strcmp(f->subject, sherd__control_name((sherd__control)c)) != 0) continue;
            run = true;
            found = found || f->flagged;
        }
        if (!run || found) continue;
        if (missed) *missed = (sherd__control)c;
        return false;
    }
    return true;
}
