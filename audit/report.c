/*
 * Output of a report. If the record was cut, a sentence about the coverage appears in every output
 * format. The JSON form has every figure with its value by chance, interval and p-value; a missing
 * one is null.
 */
#include <math.h>
#include <stdio.h>

#include "audit/audit.h"

void sherd__audit_reach(sherd_audit *r, const sherd__views *v)
{
    r->cut = v->cut;
    r->covered = 0;
    for (uint32_t i = 0; i < v->domains_len; i++) {
        bool told = true;
        for (size_t n = 0; n < v->len; n++)
            if (v->nodes[n].domain == i && v->nodes[n].trouble[0]) told = false;
        r->covered += told;
        r->cut = r->cut || !told;
    }
    if (r->cut)
        snprintf(r->reach, sizeof r->reach,
                 "The record is cut: this covers %u of %u domains in full%s.", r->covered,
                 v->domains_len, v->cut ? ", of those that are in it" : "");
}

/* Returns the unit of a scope's size. */
static const char *unit_of(const sherd_audit_scope *s)
{
    return s->nodes ? "node" : "domain";
}

static json_t *number(double v)
{
    return isfinite(v) ? json_real(v) : json_null();
}

static json_t *finding(const sherd_audit_finding *f, const sherd_audit_scope *s)
{
    json_t *o = json_object();
    int bad = json_object_set_new(o, "test", json_string(f->test));
    bad |= json_object_set_new(o, "statistic", json_string(f->statistic));
    bad |= json_object_set_new(o, "subject", json_string(f->subject));
    bad |= json_object_set_new(o, "who", json_string(f->who));
    bad |= json_object_set_new(o, "size", s ? json_integer(s->size) : json_null());
    bad |= json_object_set_new(o, "unit", s ? json_string(unit_of(s)) : json_null());
    bad |= json_object_set_new(o, "value", number(f->value));
    bad |= json_object_set_new(o, "chance", number(f->chance));
    bad |= json_object_set_new(o, "low", number(f->low));
    bad |= json_object_set_new(o, "high", number(f->high));
    bad |= json_object_set_new(o, "ln_p", number(f->ln_p));
    bad |= json_object_set_new(o, "ln_threshold",
                               isnan(f->ln_p) ? json_null() : number(f->ln_threshold));
    bad |= json_object_set_new(o, "flagged", json_boolean(f->flagged));
    bad |= json_object_set_new(o, "control", json_boolean(f->control));
    bad |= json_object_set_new(o, "sentence", json_string(f->sentence));
    if (!bad) return o;
    json_decref(o);
    return NULL;
}

/* Returns the scope that a finding belongs to; NULL: none. */
static const sherd_audit_scope *scope_of(const sherd_audit *r, size_t i)
{
    for (uint32_t s = 0; s < r->scopes_len; s++)
        if (i >= r->scopes[s].first && i < r->scopes[s].end) return &r->scopes[s];
    return NULL;
}

const char *sherd_audit_unseen(const sherd_audit *r, size_t i)
{
    static const char *const unseen[] = {
        "refusals: what was refused, when, and in which words",
        "timing: when anything was sent, and how long it took",
        "links among members of a training: no record has them",
        "masks shared with an encoding that is not in the record, or whose masks it does not give",
        "masks that follow from one another otherwise than by a factor, or in runs of fewer than 8",
        "shapes, and what follows from a result",
        "a keystream whose key somebody knows, and a bias too small for the sample",
    };
    const size_t all = sizeof unseen / sizeof *unseen;
    if (i < all) return unseen[i];
    return i - all < r->unseen_len ? r->unseen[i - all] : NULL;
}

int sherd__audit_json(const sherd_audit *r, json_t *into)
{
    json_t *scopes = json_array(), *findings = json_array(), *warnings = json_array();
    json_t *unseen = json_array();
    int bad = json_object_set_new(into, "subject", json_string(r->subject));
    bad |= json_object_set_new(into, "form", json_string(r->form));
    bad |= json_object_set_new(into, "rows", json_integer((json_int_t)r->rows));
    bad |= json_object_set_new(into, "cols", json_integer((json_int_t)r->cols));
    bad |= json_object_set_new(into, "nodes", json_integer(r->nodes));
    bad |= json_object_set_new(into, "domains", json_integer(r->domains));
    bad |= json_object_set_new(into, "domains_known", json_boolean(r->domains_known));
    bad |= json_object_set_new(into, "cut", json_boolean(r->cut));
    bad |= json_object_set_new(into, "domains_covered",
                               json_integer(r->cut ? r->covered : r->domains));
    bad |= json_object_set_new(into, "reach", r->cut ? json_string(r->reach) : json_null());
    bad |= json_object_set_new(into, "colluding", json_integer(r->colluding));
    bad |= json_object_set_new(into, "public_rows", json_integer((json_int_t)r->public_rows));
    bad |= json_object_set_new(into, "truth", json_boolean(r->truth));
    bad |= json_object_set_new(into, "labels", json_boolean(r->labels));
    bad |= json_object_set_new(into, "family", json_real(SHERD__AUDIT_FAMILY));
    bad |= json_object_set_new(into, "tests", json_integer((json_int_t)r->findings.tests));
    bad |= json_object_set_new(into, "flagged", json_integer((json_int_t)sherd__audit_flagged(r)));
    bad |= json_object_set_new(into, "coalitions", scopes);
    bad |= json_object_set_new(into, "findings", findings);
    bad |= json_object_set_new(into, "warnings", warnings);
    bad |= json_object_set_new(into, "unseen", unseen);
    for (uint32_t i = 0; i < r->scopes_len; i++) {
        const sherd_audit_scope *s = &r->scopes[i];
        json_t *o = json_pack("{s:I, s:s, s:I}", "size", (json_int_t)s->size, "unit", unit_of(s),
                              "attacked", (json_int_t)s->attacked);
        bad |= json_object_set_new(o, "of",
                                   s->of > INT64_MAX ? json_null()
                                                     : json_integer((json_int_t)s->of));
        bad |= json_array_append_new(scopes, o);
    }
    for (size_t i = 0; i < r->findings.len; i++)
        bad |= json_array_append_new(findings, finding(&r->findings.list[i], scope_of(r, i)));
    for (uint32_t i = 0; i < r->warnings_len; i++)
        bad |= json_array_append_new(warnings, json_string(r->warnings[i]));
    for (size_t i = 0; sherd_audit_unseen(r, i); i++)
        bad |= json_array_append_new(unseen, json_string(sherd_audit_unseen(r, i)));
    return bad ? SHERD_ENOMEM : SHERD_OK;
}
