/*
 * Prints an audit for people: for single nodes and for coalitions, one line per figure with its
 * median, its worst value, the value that chance gives and the probability that chance alone
 * reaches as much; and each control. --json and --html contain everything, with each finding listed
 * separately.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "audit/controls.h"
#include "cli/audit.h"
#include "core/alloc.h"

#define FIGURES_MAX 64u

/* One figure over all adversaries that were attacked alike. */
typedef struct figure {
    const sherd_audit_finding *worst;
    double *values;
    size_t len;
    bool flagged;
} figure;

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Compares findings: for tests the one with the lowest p is worse, for measurements the largest. */
static bool worse(const sherd_audit_finding *a, const sherd_audit_finding *b)
{
    if (isnan(a->ln_p) || isnan(b->ln_p)) return a->value > b->value;
    return a->ln_p != b->ln_p ? a->ln_p < b->ln_p : a->value > b->value;
}

static const char *chance_of(double ln_p, char out[24])
{
    double digits = -ln_p / log(10);
    if (isnan(ln_p)) snprintf(out, 24, "-");
    else if (digits < 3) snprintf(out, 24, "%.3f", exp(ln_p));
    else snprintf(out, 24, "1e-%.0f", floor(digits));
    return out;
}

static size_t gather(const sherd__findings *l, size_t first, size_t end, bool control, figure *out)
{
    size_t len = 0;
    for (size_t i = first; i < end; i++) {
        const sherd_audit_finding *f = &l->list[i];
        size_t at = 0;
        if (f->control != control) continue;
        while (at < len && (strcmp(out[at].worst->test, f->test) != 0 ||
                            strcmp(out[at].worst->statistic, f->statistic) != 0))
            at++;
        if (at == FIGURES_MAX) continue;
        if (at == len) {
            out[len] = (figure){ .worst = f, .values = sherd__calloc(end - first, sizeof(double)) };
            len++;
        }
        if (!out[at].values) continue;
        out[at].values[out[at].len++] = f->value;
        out[at].flagged |= f->flagged;
        if (worse(f, out[at].worst)) out[at].worst = f;
    }
    return len;
}

static const char *amount(double v, bool share, char out[24])
{
    if (isnan(v)) snprintf(out, 24, "-");
    else if (!share) snprintf(out, 24, fabs(v) < 1e4 ? "%.3f" : "%.3g", v);
    else if (v != 0 && fabs(v) < 0.001) snprintf(out, 24, "%.2g %%", 100 * v);
    else snprintf(out, 24, "%.*f %%", fabs(v) < 0.01 ? 2 : 1, 100 * v);
    return out;
}

static void show(figure *f)
{
    char name[96], median[24], most[24], chance[24], p[24];
    const sherd_audit_finding *w = f->worst;
    bool share = strcmp(w->test, "verbatim") == 0 || strcmp(w->test, "columns") == 0 ||
                 strcmp(w->test, "labels") == 0 || strcmp(w->statistic, "fraction of columns") == 0;
    if (!f->values) return;
    qsort(f->values, f->len, sizeof *f->values, compare);
    snprintf(name, sizeof name, "%s: %.40s", w->test, w->statistic);
    printf("  %-50s %9s %9s %9s %8s  %s%s\n", name, amount(f->values[f->len / 2], share, median),
           amount(w->value, share, most), amount(w->chance, share, chance), chance_of(w->ln_p, p),
           f->flagged ? "FLAGGED, " : "", w->who);
}

static void show_scope(const sherd__auditing *a, const sherd_audit_scope *s)
{
    figure f[FIGURES_MAX];
    size_t len = gather(&a->report.findings, s->first, s->end, false, f);
    if (s->nodes) printf("\nEach node by itself (%" PRIu32 "):\n", s->attacked);
    else if (s->size == 1)
        printf("\nEach domain by itself, all its nodes together (%" PRIu32 "):\n", s->attacked);
    else if (s->attacked == s->of)
        printf("\nCoalitions of %" PRIu32 " domains (all %" PRIu32 "):\n", s->size, s->attacked);
    else
        printf("\nCoalitions of %" PRIu32 " domains (%" PRIu32 " drawn of %" PRIu64 "):\n", s->size,
               s->attacked, s->of);
    if (len > 0) printf("  %-50s %9s %9s %9s %8s\n", "", "median", "worst", "chance", "p");
    else printf("  more than the scheme withstands: a control, see below\n");
    for (size_t i = 0; i < len; i++) {
        show(&f[i]);
        sherd__free(f[i].values);
    }
}

/* Shows findings without scope: data sent, games, and everything else about the scheme as a
 * whole. */
static void show_rest(const sherd__findings *l, size_t first, size_t end, const char *title)
{
    figure f[FIGURES_MAX];
    size_t len = gather(l, first, end, false, f);
    if (len > 0)
        printf("\n%s:\n  %-50s %9s %9s %9s %8s\n", title, "", "median", "worst", "chance", "p");
    for (size_t i = 0; i < len; i++) {
        show(&f[i]);
        sherd__free(f[i].values);
    }
}

/* Returns the worst of a control's findings: the least p, or the best game won; NULL: none. */
static const sherd_audit_finding *of_control(const sherd__findings *l, const char *test,
                                             const char *name)
{
    const sherd_audit_finding *found = NULL;
    for (size_t i = 0; i < l->len; i++) {
        const sherd_audit_finding *f = &l->list[i];
        if (!f->control || strcmp(f->test, test) != 0 || strcmp(f->subject, name) != 0) continue;
        if (!found || worse(f, found)) found = f;
    }
    return found;
}

/* Shows the controls, which must be flagged, since an audit that cannot fail proves nothing. */
static void show_controls(const sherd__findings *l)
{
    const sherd_audit_finding *record = NULL;
    char p[24];
    for (size_t i = 0; i < l->len; i++) /* more than T domains of the same record */
        if (l->list[i].control && strncmp(l->list[i].test, "control", 7) != 0 &&
            !isnan(l->list[i].ln_p) && (!record || worse(&l->list[i], record)))
            record = &l->list[i];
    for (int c = 0; c < SHERD__CONTROLS; c++) {
        const char *name = sherd__control_name((sherd__control)c);
        const sherd_audit_finding *f = of_control(l, "control", name),
                                  *g = of_control(l, "control game", name);
        if (!f) continue;
        if (c == 0)
            printf("\nControls, broken on purpose, which must be flagged:\n  %-50s %8s  %s\n", "",
                   "p", "game");
        printf("  %-50s %8s", name, chance_of(f->ln_p, p));
        if (g) printf("  advantage %.2f", g->value);
        printf("%s\n", f->flagged || (g && g->flagged) ? "" : "  MISSED");
    }
    if (record)
        printf("  %-50s %8s  %s\n", "this record, seen by one domain more than T",
               chance_of(record->ln_p, p), record->who);
}

void sherd__audit_tell(const sherd__auditing *a)
{
    const sherd_audit *r = &a->report;
    printf("%s: %s\n", r->subject, r->form);
    if (r->rows > 0) printf("A is %" PRIu64 " x %" PRIu64 "; ", r->rows, r->cols);
    printf("%" PRIu32 " node%s", r->nodes, r->nodes == 1 ? "" : "s");
    if (r->domains_known)
        printf(" in %" PRIu32 " domain%s", r->domains, r->domains == 1 ? "" : "s");
    else printf(", each counted as a domain of its own");
    if (r->public_rows > 0)
        printf("; %" PRIu64 " public rows%s", r->public_rows, r->labels ? " with labels" : "");
    putchar('\n');
    for (uint32_t i = 0; i < r->warnings_len; i++) printf("note: %s\n", r->warnings[i]);
    size_t sent = r->scopes_len > 0 ? r->scopes[0].first : r->findings.len;
    show_rest(&r->findings, 0, sent, "What each node was sent");
    for (uint32_t i = 0; i < r->scopes_len; i++) show_scope(a, &r->scopes[i]);
    if (r->scopes_len > 0)
        show_rest(&r->findings, r->scopes[r->scopes_len - 1].end, r->findings.len,
                  "The scheme as a whole");
    show_controls(&r->findings);
    size_t flagged = sherd__audit_flagged(r);
    if (flagged > 0)
        printf("\nFLAGGED: %zu of %zu findings are beyond chance (Holm over %zu tests, family-wise "
               "%.0e).\n",
               flagged, r->findings.len, r->findings.tests, SHERD__AUDIT_FAMILY);
    else
        printf("\nNothing found beyond chance%s (Holm over %zu tests, family-wise %.0e).\n",
               r->unseen_len ? " in what was looked at" : "", r->findings.tests,
               SHERD__AUDIT_FAMILY);
    printf("Not seen by this audit:\n");
    for (size_t i = 0; sherd_audit_unseen(r, i); i++) printf("  %s\n", sherd_audit_unseen(r, i));
    if (r->cut) printf("%s\n", r->reach);
}
