/*
 * A report for people: one line per figure with its median, its worst value, the value that chance
 * gives and the probability that chance alone gives as large a value; and each control. --json and
 * --html list each finding.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli/audit.h"

/* Formats a p-value. */
static const char *chance_of(double ln_p, char out[24])
{
    double digits = -ln_p / log(10);
    if (isnan(ln_p)) snprintf(out, 24, "-");
    else if (digits > 300) snprintf(out, 24, "< 1e-300");
    else if (digits < 3) snprintf(out, 24, "%.3f", exp(ln_p));
    else snprintf(out, 24, "1e-%.0f", floor(digits));
    return out;
}

static const char *amount(double v, bool fraction, char out[24])
{
    if (isnan(v)) snprintf(out, 24, "-");
    else if (!fraction) snprintf(out, 24, fabs(v) < 1e4 ? "%.3f" : "%.3g", v);
    else if (v != 0 && fabs(v) < 0.001) snprintf(out, 24, "%.2g %%", 100 * v);
    else snprintf(out, 24, "%.*f %%", fabs(v) < 0.01 ? 2 : 1, 100 * v);
    return out;
}

static void show(const sherd_audit *a, const sherd_audit_figure *f)
{
    char name[96], median[24], most[24], chance[24], p[24];
    const sherd_audit_finding *w = sherd_audit_finding_at(a, (size_t)f->worst);
    snprintf(name, sizeof name, "%s: %.40s", f->test, f->statistic);
    sherd__cli_print("  %-50s %9s %9s %9s %8s  %s%s", name, amount(f->median, f->fraction, median),
                     amount(w->value, f->fraction, most), amount(w->chance, f->fraction, chance),
                     chance_of(w->ln_p, p), f->flagged ? "FLAGGED, " : "", w->who);
}

/* Prints the figures of one scope below a line of column names, if there are any. */
static size_t show_figures(const sherd_audit *a, int32_t scope, const char *title)
{
    const sherd_audit_figure *f;
    size_t shown = 0;
    for (size_t i = 0; (f = sherd_audit_figure_at(a, i)); i++) {
        if (f->scope != scope) continue;
        if (shown++ == 0)
            printf("%s  %-50s %9s %9s %9s %8s\n", title, "", "median", "worst", "chance", "p");
        show(a, f);
    }
    return shown;
}

static void show_scope(const sherd_audit *a, const sherd_audit_scope *s, int32_t index)
{
    if (strcmp(s->unit, "node") == 0) printf("\nEach node by itself (%" PRIu32 "):\n", s->attacked);
    else if (s->size == 1)
        printf("\nEach domain by itself, all its nodes together (%" PRIu32 "):\n", s->attacked);
    else if (s->attacked == s->of)
        printf("\nCoalitions of %" PRIu32 " domains (all %" PRIu32 "):\n", s->size, s->attacked);
    else
        printf("\nCoalitions of %" PRIu32 " domains (%" PRIu32 " drawn of %" PRIu64 "):\n", s->size,
               s->attacked, s->of);
    if (!show_figures(a, index, ""))
        printf("  more than the scheme withstands: a control, see below\n");
}

static void show_controls(const sherd_audit *a)
{
    const sherd_audit_control *c;
    char p[24];
    for (size_t i = 0; (c = sherd_audit_control_at(a, i)); i++) {
        if (i == 0 && !c->who)
            printf("\nControls, broken on purpose, which must be flagged:\n  %-50s %8s  %s\n", "",
                   "p", "game");
        char game[32] = "";
        if (!isnan(c->advantage)) snprintf(game, sizeof game, "  advantage %.2f", c->advantage);
        sherd__cli_print("  %-50s %8s%s%s%s", c->name, chance_of(c->ln_p, p), game,
                         c->who       ? "  "
                         : c->flagged ? ""
                                      : "  MISSED",
                         c->who ? c->who : "");
    }
}

static void show_head(const sherd_audit *a, const sherd_audit_info *x)
{
    const char *note;
    sherd__cli_print("%s: %s", x->subject, x->form);
    if (x->rows > 0) printf("A is %" PRIu64 " x %" PRIu64 "; ", x->rows, x->cols);
    printf("%" PRIu32 " node%s", x->nodes, x->nodes == 1 ? "" : "s");
    if (x->domains_known)
        printf(" in %" PRIu32 " domain%s", x->domains, x->domains == 1 ? "" : "s");
    else printf(", each counted as a domain of its own");
    if (x->public_rows > 0)
        printf("; %" PRIu64 " public rows%s", x->public_rows, x->labels ? " with labels" : "");
    putchar('\n');
    for (size_t i = 0; (note = sherd_audit_warning_at(a, i)); i++)
        sherd__cli_print("note: %s", note);
}

void sherd__audit_print(const sherd_audit *a)
{
    sherd_audit_info x = { .size = sizeof x };
    const sherd_audit_scope *s;
    const char *unseen;
    size_t findings = 0;
    if (sherd_audit_get(a, &x, NULL)) return;
    show_head(a, &x);
    show_figures(a, SHERD_AUDIT_SENT, "\nWhat each node was sent:\n");
    for (size_t i = 0; (s = sherd_audit_scope_at(a, i)); i++) show_scope(a, s, (int32_t)i);
    show_figures(a, SHERD_AUDIT_WHOLE, "\nThe scheme as a whole:\n");
    show_controls(a);
    while (sherd_audit_finding_at(a, findings)) findings++;
    if (x.flagged > 0)
        printf("\nFLAGGED: %" PRIu64 " of %zu findings are beyond chance (Holm over %" PRIu64
               " tests, family-wise %.0e).\n",
               x.flagged, findings, x.tests, x.family);
    else
        printf("\nNothing found beyond chance%s (Holm over %" PRIu64 " tests, family-wise %.0e).\n",
               x.left_out ? " in what was looked at" : "", x.tests, x.family);
    printf("Not seen by this audit:\n");
    for (size_t i = 0; (unseen = sherd_audit_unseen_at(a, i)); i++)
        sherd__cli_print("  %s", unseen);
    if (x.reach) sherd__cli_print("%s", x.reach);
}
