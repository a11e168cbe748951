/*
 * A report for people, in 80 columns: one line per figure with its median, its worst value, the
 * value that chance gives and the probability that chance alone gives as large a value; and each
 * control. --json and --html list each finding.
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

/* Which nodes did best is said of what was found only: the table has room for figures. */
static void show(const sherd_audit *a, const sherd_audit_figure *f)
{
    char median[24], most[24], chance[24], p[24];
    const sherd_audit_finding *w = sherd_audit_finding_at(a, (size_t)f->worst);
    sherd__cli_print("    %-34.40s %9s %9s %9s %8s", f->statistic,
                     amount(f->median, f->fraction, median), amount(w->value, f->fraction, most),
                     amount(w->chance, f->fraction, chance), chance_of(w->ln_p, p));
    if (f->flagged) sherd__cli_print_prose(22, "      FLAGGED, worst: %s", w->who);
}

/* Prints the figures of one attack of a scope below its name. */
static void show_attack(const sherd_audit *a, int32_t scope, const char *attack)
{
    const sherd_audit_figure *f;
    printf("  %s\n", attack);
    for (size_t i = 0; (f = sherd_audit_figure_at(a, i)); i++)
        if (f->scope == scope && strcmp(f->test, attack) == 0) show(a, f);
}

/* Returns whether an earlier figure of the scope is of the same attack. */
static bool again(const sherd_audit *a, size_t figure)
{
    const sherd_audit_figure *f = sherd_audit_figure_at(a, figure), *g;
    for (size_t i = 0; i < figure; i++) {
        g = sherd_audit_figure_at(a, i);
        if (g->scope == f->scope && strcmp(g->test, f->test) == 0) return true;
    }
    return false;
}

/* Prints the figures of one scope below a line of column names, if there are any. */
static size_t show_figures(const sherd_audit *a, int32_t scope, const char *title)
{
    const sherd_audit_figure *f;
    size_t shown = 0;
    for (size_t i = 0; (f = sherd_audit_figure_at(a, i)); i++) {
        if (f->scope != scope) continue;
        if (shown++ == 0)
            printf("%s    %-34s %9s %9s %9s %8s\n", title, "", "median", "worst", "chance", "p");
        if (!again(a, i)) show_attack(a, scope, f->test);
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
            printf("\nControls, broken on purpose, which must be flagged:\n  %-44s %8s  %s\n", "",
                   "p", "game");
        char game[32] = "";
        if (!isnan(c->advantage)) snprintf(game, sizeof game, "  advantage %.2f", c->advantage);
        sherd__cli_print("  %-44s %8s%s%s", c->name, chance_of(c->ln_p, p), game,
                         c->flagged || c->who ? "" : "  MISSED");
        if (c->who) sherd__cli_print_prose(6, "      %s", c->who);
    }
}

static void show_head(const sherd_audit *a, const sherd_audit_info *x)
{
    char a_is[64] = "", domains[48] = ", each counted as a domain of its own", public[64] = "";
    const char *note;
    sherd__cli_print_prose(2, "%s: %s", x->subject, x->form);
    if (x->rows > 0)
        snprintf(a_is, sizeof a_is, "A is %" PRIu64 " x %" PRIu64 "; ", x->rows, x->cols);
    if (x->domains_known)
        snprintf(domains, sizeof domains, " in %" PRIu32 " domain%s", x->domains,
                 x->domains == 1 ? "" : "s");
    if (x->public_rows > 0)
        snprintf(public, sizeof public, "; %" PRIu64 " public rows%s", x->public_rows,
                 x->labels ? " with labels" : "");
    sherd__cli_print_prose(2, "%s%" PRIu32 " node%s%s%s", a_is, x->nodes, x->nodes == 1 ? "" : "s",
                           domains, public);
    for (size_t i = 0; (note = sherd_audit_warning_at(a, i)); i++)
        sherd__cli_print_prose(6, "note: %s", note);
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
    putchar('\n');
    if (x.flagged > 0)
        sherd__cli_print_prose(9,
                               "FLAGGED: %" PRIu64
                               " of %zu findings are beyond chance (Holm over %" PRIu64
                               " tests, family-wise %.0e).",
                               x.flagged, findings, x.tests, x.family);
    else
        sherd__cli_print_prose(0,
                               "Nothing found beyond chance%s (Holm over %" PRIu64
                               " tests, family-wise %.0e).",
                               x.left_out ? " in what was looked at" : "", x.tests, x.family);
    printf("Not seen by this audit:\n");
    for (size_t i = 0; (unseen = sherd_audit_unseen_at(a, i)); i++)
        sherd__cli_print_prose(4, "  %s", unseen);
    if (x.reach) sherd__cli_print_prose(0, "%s", x.reach);
}
