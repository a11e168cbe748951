/*
 * Figures: findings that were made alike, by all adversaries of one scope, as one line of a table;
 * and what became of the controls.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "audit/audit.h"
#include "core/alloc.h"

#define RECORD_CONTROL "this record, seen by one domain more than T"

/* Compares findings: of tests the one with the lowest p is worse, of measurements the largest. */
static bool worse(const sherd_audit_finding *a, const sherd_audit_finding *b)
{
    if (isnan(a->ln_p) || isnan(b->ln_p)) return a->value > b->value;
    return a->ln_p != b->ln_p ? a->ln_p < b->ln_p : a->value > b->value;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int32_t scope_of(const sherd_audit *r, size_t finding)
{
    if (r->scopes_len == 0 || finding < r->scopes[0].first) return SHERD_AUDIT_SENT;
    for (uint32_t s = 0; s < r->scopes_len; s++)
        if (finding < r->scopes[s].end) return (int32_t)s;
    return SHERD_AUDIT_WHOLE;
}

static bool is_fraction(const sherd_audit_finding *f)
{
    return strcmp(f->test, "verbatim") == 0 || strcmp(f->test, "columns") == 0 ||
           strcmp(f->test, "labels") == 0 || strcmp(f->statistic, "fraction of columns") == 0;
}

/* Finds the figure of a finding, or makes it. Figures of one scope are next to each other. */
static sherd_audit_figure *figure_of(sherd_audit *r, size_t *room, size_t finding)
{
    const sherd_audit_finding *f = &r->findings.list[finding];
    int32_t scope = scope_of(r, finding);
    for (size_t i = r->figures_len; i-- > 0 && r->figures[i].scope == scope;)
        if (strcmp(r->figures[i].test, f->test) == 0 &&
            strcmp(r->figures[i].statistic, f->statistic) == 0)
            return &r->figures[i];
    if (r->figures_len == *room) {
        size_t more = *room ? 2 * *room : 32;
        sherd_audit_figure *list = sherd__realloc(r->figures, more * sizeof *list);
        if (!list) return NULL;
        r->figures = list;
        *room = more;
    }
    r->figures[r->figures_len] = (sherd_audit_figure){ .scope = scope,
                                                       .test = f->test,
                                                       .statistic = f->statistic,
                                                       .worst = finding,
                                                       .fraction = is_fraction(f) };
    return &r->figures[r->figures_len++];
}

static void add_controls(sherd_audit *r)
{
    sherd_audit_control record = { .name = RECORD_CONTROL, .ln_p = NAN, .advantage = NAN };
    for (int c = 0; c < SHERD__CONTROLS; c++) {
        const char *name = sherd__control_name((sherd__control)c);
        sherd_audit_control x = { .name = name, .ln_p = NAN, .advantage = NAN };
        bool ran = false;
        for (size_t i = 0; i < r->findings.len; i++) {
            const sherd_audit_finding *f = &r->findings.list[i];
            bool attack = strcmp(f->test, "control") == 0;
            if (!f->control || strcmp(f->subject, name) != 0) continue;
            if (attack && !(x.ln_p <= f->ln_p)) x.ln_p = f->ln_p;
            if (!attack && !(x.advantage >= f->value)) x.advantage = f->value;
            x.flagged |= f->flagged;
            ran |= attack;
        }
        if (ran) r->controls[r->controls_len++] = x;
    }
    for (size_t i = 0; i < r->findings.len; i++) {
        const sherd_audit_finding *f = &r->findings.list[i];
        if (!f->control || strncmp(f->test, "control", 7) == 0 || isnan(f->ln_p) ||
            record.ln_p <= f->ln_p)
            continue;
        record.ln_p = f->ln_p;
        record.who = f->who;
        record.flagged = f->flagged;
    }
    if (record.who) r->controls[r->controls_len++] = record;
}

/* Sets the number of a figure's findings and the median of their values. at: of each finding the
 * index of its figure. */
static void summarise(sherd_audit *r, size_t figure, const size_t *at, double *values)
{
    sherd_audit_figure *x = &r->figures[figure];
    size_t len = 0;
    for (size_t i = 0; i < r->findings.len; i++)
        if (at[i] == figure) values[len++] = r->findings.list[i].value;
    qsort(values, len, sizeof *values, by_value);
    x->count = (uint32_t)len;
    x->median = values[len / 2];
}

int sherd__audit_figures(sherd_audit *r)
{
    size_t room = 0, n = r->findings.len, *at = sherd__calloc(n, sizeof *at);
    double *values = sherd__calloc(n, sizeof *values);
    int err = at && values ? SHERD_OK : SHERD_ENOMEM;
    for (size_t i = 0; i < n && !err; i++) {
        const sherd_audit_finding *f = &r->findings.list[i];
        at[i] = SIZE_MAX;
        if (f->control) continue;
        sherd_audit_figure *x = figure_of(r, &room, i);
        err = x ? SHERD_OK : SHERD_ENOMEM;
        if (err) break;
        at[i] = (size_t)(x - r->figures);
        x->flagged |= f->flagged;
        if (worse(f, &r->findings.list[x->worst])) x->worst = i;
    }
    for (size_t i = 0; i < r->figures_len && !err; i++) summarise(r, i, at, values);
    if (!err) add_controls(r);
    sherd__free(at);
    sherd__free(values);
    return err;
}
