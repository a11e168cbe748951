/*
 * Who is attacked: one node, T domains, T+1 domains. The coalition attack is the same attack on
 * what the members have together. Every node counts as a domain of its own: a record names nodes,
 * not who runs them.
 */
#include "audit/audit.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "audit/controls.h"
#include "core/alloc.h"
#include "core/diag.h"

void sherd__audit_report_fini(sherd__audit_report *r)
{
    sherd__findings_fini(&r->findings);
    sherd__gallery_fini(&r->gallery);
}

void sherd__audit_warn(sherd__audit_report *r, const char *fmt, ...)
{
    va_list args;
    if (r->warnings_len == sizeof r->warnings / sizeof *r->warnings) return;
    va_start(args, fmt);
    vsnprintf(r->warnings[r->warnings_len++], sizeof *r->warnings, fmt, args);
    va_end(args);
}

size_t sherd__audit_flagged(const sherd__audit_report *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->findings.len; i++)
        n += r->findings.list[i].flagged && !r->findings.list[i].control;
    return n;
}

/* "node-1, node-4", cut where it is too long. */
static void join_names(char out[96], const char *const *names, const uint32_t *m, uint32_t size)
{
    size_t at = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < size && at < 90; i++)
        at += (size_t)snprintf(out + at, 96 - at, "%s%.40s", i ? ", " : "", names[m[i]]);
    if (at >= 96) memcpy(out + 92, "...", 4);
}

typedef struct running {
    sherd__audit_report *r;
    const sherd__sight *sights;
    const char *const *names;
    const sherd__truth *truth;
    const sherd__public *pub;
    const sherd__audit_plan *plan;
    uint32_t done, total;
} running;

static int attack(running *a, const uint32_t *m, uint32_t size, sherd_diag *d)
{
    const sherd__sight **part = sherd__calloc(size, sizeof *part);
    sherd__sight joined = { 0 };
    const sherd__sight *s = &a->sights[m[0]];
    sherd__clear_options opt = { .n = a->plan->n };
    char who[96];
    int err = part ? SHERD_OK : sherd__fail(d, SHERD_ENOMEM, NULL, "out of memory");
    for (uint32_t i = 0; i < size && !err; i++) part[i] = &a->sights[m[i]];
    if (!err && size > 1) {
        err = sherd__sight_join(&joined, part, size, a->plan->k ? a->plan->k : SIZE_MAX);
        if (err) err = sherd__fail(d, err, NULL, "out of memory for a coalition");
        s = &joined;
    }
    join_names(who, a->names, m, size);
    bool show = size == 1 && m[0] == a->plan->show;
    if (!err)
        err = sherd__audit_clear(&a->r->findings, show ? &a->r->gallery : NULL, s, who, a->truth,
                                 a->pub, &opt, d);
    a->done++;
    if (!err && a->plan->step && a->plan->step(a->plan->ctx, a->done, a->total))
        err = sherd__fail(d, SHERD_EINTERRUPTED, NULL, "interrupted after %u of %u attacks",
                          a->done, a->total);
    sherd__sight_fini(&joined);
    sherd__free(part);
    return err;
}

int sherd__audit_sights(sherd__audit_report *r, const sherd__sight *sights,
                        const char *const *names, uint32_t nodes, const sherd__truth *truth,
                        const sherd__public *pub, const sherd__audit_plan *plan, sherd_diag *d)
{
    running a = { .r = r, .sights = sights, .names = names, .truth = truth, .pub = pub,
                  .plan = plan };
    uint32_t t = plan->colluding ? plan->colluding : 1, most = plan->coalitions;
    const uint32_t size[SHERD__AUDIT_SIZES] = { 1, t > 1 ? t : 0, t + 1 };
    sherd__members m[SHERD__AUDIT_SIZES] = { { 0 } };
    int err = SHERD_OK;
    r->colluding = t;
    for (unsigned i = 0; i < SHERD__AUDIT_SIZES && !err; i++) {
        err = sherd__members_choose(&m[i], nodes, size[i], i == 0 ? nodes : most, plan->seed + i);
        a.total += m[i].len;
    }
    if (err) err = sherd__fail(d, err, NULL, "out of memory");
    for (unsigned i = 0; i < SHERD__AUDIT_SIZES && !err; i++) {
        size_t first = r->findings.len;
        for (uint32_t j = 0; j < m[i].len && !err; j++)
            err = attack(&a, m[i].list + (size_t)j * m[i].size, m[i].size, d);
        if (!err && m[i].len && r->scopes_len < SHERD__AUDIT_SIZES)
            r->scopes[r->scopes_len++] =
                (sherd__audit_scope){ m[i].size, m[i].len, m[i].of, first, r->findings.len };
    }
    for (unsigned i = 0; i < SHERD__AUDIT_SIZES; i++) sherd__members_fini(&m[i]);
    return err;
}

/* --- shares ----------------------------------------------------------------------------------- */

#define GAME_ROWS 8u /* games and controls are of the code, not of the data: small ones tell as
                        much */
#define GAME_COLS 8u
#define CONTROL_ROWS 32u
#define CONTROL_COLS 64u
#define TRUTH_MAX ((uint64_t)1 << 24) /* entries of A that coalitions are measured against */

/* A cut into the blocks of the code, the rows that are here: for measuring only. */
static int cut_blocks(double ***out, const sherd__shares *s, const sherd__truth *t)
{
    const sherd__seen *a = &s->seen[0];
    uint32_t k = s->code.blocks;
    double **blocks = sherd__calloc(k, sizeof *blocks),
           *line = sherd__calloc(a->cols, sizeof *line);
    int err = blocks && line ? SHERD_OK : SHERD_ENOMEM;
    for (uint32_t b = 0; b < k && !err; b++) {
        blocks[b] = sherd__calloc(a->rows, a->cols * sizeof **blocks);
        if (!blocks[b]) err = SHERD_ENOMEM;
        for (size_t r = 0; r < a->rows && !err; r++) {
            uint64_t row = b * s->share_rows + r;
            if (row < t->a.rows) sherd__truth_row(t, (size_t)row, blocks[b] + r * a->cols);
        }
    }
    sherd__free(line);
    *out = blocks;
    return err;
}

static void free_blocks(double **blocks, uint32_t k)
{
    for (uint32_t b = 0; blocks && b < k; b++) sherd__free(blocks[b]);
    sherd__free(blocks);
}

/* Every share as if it were values. */
static int each_share(sherd__audit_report *r, const sherd__shares *s, const char *const *names,
                      const sherd__truth *truth, const sherd__public *pub,
                      const sherd__audit_plan *plan, sherd_diag *d)
{
    sherd__clear_options opt = { .n = plan->n, .share_rows = s->share_rows };
    uint32_t len = s->apart ? 0 : s->code.shares;
    int err = SHERD_OK;
    for (uint32_t i = 0; i < len && !err; i++) {
        sherd__gallery *g = i == plan->show ? &r->gallery : NULL;
        err = sherd__audit_coded(&r->findings, g, &s->seen[0], i, names[i], truth, pub, &opt, d);
        if (!err && plan->step && plan->step(plan->ctx, i + 1, len))
            err = sherd__fail(d, SHERD_EINTERRUPTED, NULL, "interrupted after %u of %u shares",
                              i + 1, len);
    }
    return err;
}

/* All encodings, by coalitions of one size; *s says how many were attacked. */
static int coalitions(sherd__audit_report *r, const sherd__shares *s, uint32_t size,
                      const sherd__audit_options *opt, uint32_t *drawn, sherd_diag *d)
{
    int err = SHERD_OK;
    for (uint32_t i = 0; i < s->seen_len && !err; i++)
        err = sherd__audit_coalitions(&r->findings, &s->seen[i], size, opt, drawn, d);
    return err;
}

static int add_scope(sherd__audit_report *r, uint32_t n, uint32_t size, uint32_t drawn,
                     size_t first, sherd_diag *d)
{
    sherd__members m;
    if (sherd__members_choose(&m, n, size, 1, 0))
        return sherd__fail(d, SHERD_ENOMEM, NULL, "out of memory");
    if (r->scopes_len < SHERD__AUDIT_SIZES)
        r->scopes[r->scopes_len++] =
            (sherd__audit_scope){ size, drawn, m.of, first, r->findings.len };
    sherd__members_fini(&m);
    return SHERD_OK;
}

static int by_code(sherd__audit_report *r, sherd__shares *s, const sherd__truth *truth,
                   size_t first, const sherd__audit_options *opt, sherd_diag *d)
{
    uint32_t drawn = 0, t = s->code.masks, n = s->code.shares;
    uint64_t entries = (uint64_t)s->seen[0].rows * s->seen[0].cols * s->code.blocks;
    double **blocks = NULL;
    int err = SHERD_OK;
    if (truth && entries <= TRUTH_MAX && cut_blocks(&blocks, s, truth))
        err = sherd__fail(d, SHERD_ENOMEM, NULL, "out of memory for the blocks of A");
    if (!err && blocks) s->seen[0].blocks = (const double *const *)blocks;
    if (!err && t > 1) { /* else single nodes are the coalitions of T */
        err = add_scope(r, n, 1, n, first, d);
        first = r->findings.len;
    }
    if (!err) err = coalitions(r, s, t, opt, &drawn, d);
    if (!err) err = add_scope(r, n, t, drawn, first, d);
    first = r->findings.len;
    if (!err) err = coalitions(r, s, t + 1, opt, &drawn, d);
    if (!err) err = add_scope(r, n, t + 1, drawn, first, d);
    if (!err)
        err = sherd__audit_share_games(&r->findings, &s->code, GAME_ROWS, GAME_COLS, NULL, opt, d);
    if (!err)
        err =
            sherd__audit_controls(&r->findings, &s->code, CONTROL_ROWS, CONTROL_COLS, NULL, opt, d);
    s->seen[0].blocks = NULL;
    free_blocks(blocks, s->code.blocks);
    return err;
}

int sherd__audit_shares(sherd__audit_report *r, sherd__shares *s, const char *const *names,
                        const sherd__truth *truth, const sherd__public *pub,
                        const sherd__audit_plan *plan, sherd_diag *d)
{
    sherd__audit_options opt = { .seed = plan->seed, .coalitions = plan->coalitions,
                                 .domain_names = names };
    size_t first = r->findings.len;
    r->colluding = plan->colluding ? plan->colluding : 1;
    if (s->note[0]) sherd__audit_warn(r, "%s", s->note);
    int err = each_share(r, s, names, truth, pub, plan, d);
    if (!err) err = sherd__audit_uniformity(&r->findings, s->seen, s->seen_len, &opt, d);
    if (!err && s->apart) {
        sherd__seen_code code = s->single; /* for the controls, which need coalitions */
        opt.domain_names = NULL;
        code.blocks = 3;
        code.masks = 1;
        code.shares = 7;
        err = add_scope(r, r->nodes, 1, r->nodes, first, d);
        if (!err)
            err = sherd__audit_controls(&r->findings, &code, CONTROL_ROWS, CONTROL_COLS, NULL,
                                        &opt, d);
    }
    if (!err && !s->apart) err = by_code(r, s, truth, first, &opt, d);
    return err;
}

int sherd__audit_judge(sherd__audit_report *r, sherd_diag *d)
{
    sherd__control missed;
    bool controls = false;
    if (sherd__findings_judge(&r->findings, SHERD__AUDIT_FAMILY))
        return sherd__fail(d, SHERD_ENOMEM, NULL, "out of memory");
    for (size_t i = 0; i < r->findings.len; i++) controls |= r->findings.list[i].control;
    if (!controls || sherd__controls_flagged(&r->findings, &missed)) return SHERD_OK;
    return sherd__fail(d, SHERD_EINTERNAL, "please report this",
                       "the audit did not flag its negative control '%s': it proves nothing",
                       sherd__control_name(missed));
}
