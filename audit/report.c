/*
 * The report: filling it, reading it, and its JSON. If the record was cut, a sentence about the
 * coverage appears in every output format. JSON has every figure with its value by chance, interval
 * and p-value; a missing one is null.
 */
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "audit/audit.h"
#include "core/alloc.h"
#include "core/diag.h"
#include "core/field.h"
#include "core/options.h"

/* ---- filling --------------------------------------------------------------------------------- */

void sherd__audit_fini(sherd_audit *r)
{
    sherd__findings_fini(&r->findings);
    sherd__gallery_fini(&r->gallery);
    sherd__free(r->figures);
    sherd__free(r->json);
    sherd__free(r->html);
}

void sherd_audit_free(sherd_audit *r)
{
    if (!r) return;
    sherd__audit_fini(r);
    sherd__free(r);
}

void sherd__audit_warn(sherd_audit *r, const char *fmt, ...)
{
    va_list args;
    if (r->warnings_len == sizeof r->warnings / sizeof *r->warnings) {
        snprintf(r->warnings[r->warnings_len - 1], sizeof *r->warnings, "and %u notes more",
                 ++r->warnings_more + 1);
        return;
    }
    va_start(args, fmt);
    vsnprintf(r->warnings[r->warnings_len++], sizeof *r->warnings, fmt, args);
    va_end(args);
}

void sherd__audit_leave_out(sherd_audit *r, const char *fmt, ...)
{
    va_list args;
    char text[sizeof *r->unseen];
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (r->unseen_len == sizeof r->unseen / sizeof *r->unseen) sherd__audit_warn(r, "%s", text);
    else memcpy(r->unseen[r->unseen_len++], text, sizeof text);
}

void sherd__audit_reach(sherd_audit *r, const sherd__views *v)
{
    r->cut = v->cut;
    r->covered = 0;
    for (uint32_t i = 0; i < v->domains_len; i++) {
        bool whole = true;
        for (size_t n = 0; n < v->len; n++)
            if (v->nodes[n].domain == i && v->nodes[n].trouble[0]) whole = false;
        r->covered += whole;
        r->cut = r->cut || !whole;
    }
    if (r->cut)
        snprintf(r->reach, sizeof r->reach,
                 "The record is cut: this covers %u of %u domains in full%s.", r->covered,
                 v->domains_len, v->cut ? ", of those that are in it" : "");
}

void sherd__audit_scope_add(sherd_audit *r, const char *unit, uint32_t size, uint32_t attacked,
                            uint64_t of, size_t first)
{
    if (r->scopes_len < SHERD__AUDIT_SIZES)
        r->scopes[r->scopes_len++] = (sherd_audit_scope){ size, unit,  attacked,
                                                          of,   first, r->findings.len };
}

int sherd__audit_judge(sherd_audit *r, sherd_diag *d)
{
    sherd__control missed;
    bool controls = false;
    for (uint32_t s = 0; s < r->scopes_len; s++)
        for (size_t i = r->scopes[s].first; i < r->scopes[s].end; i++) {
            r->findings.list[i].size = r->scopes[s].size;
            r->findings.list[i].unit = r->scopes[s].unit;
        }
    if (sherd__findings_judge(&r->findings, SHERD__AUDIT_FAMILY) || sherd__audit_figures(r))
        return sherd__fail_memory(d, "the findings");
    for (size_t i = 0; i < r->findings.len; i++) controls |= r->findings.list[i].control;
    if (!controls || sherd__controls_flagged(&r->findings, &missed)) return SHERD_OK;
    return sherd__fail(d, SHERD_EINTERNAL, "please report this",
                       "the audit is not valid: it did not flag its negative control '%s'",
                       sherd__control_name(missed));
}

/* ---- reading --------------------------------------------------------------------------------- */

int sherd_audit_get(const sherd_audit *a, sherd_audit_info *out, sherd_diag *d)
{
    int err = sherd__result_check(out, "sherd_audit_info", d);
    if (err) return err;
    sherd_audit_info x = {
        .subject = a->subject,
        .form = a->form,
        .rows = a->rows,
        .cols = a->cols,
        .nodes = a->nodes,
        .domains = a->domains,
        .domains_known = a->domains_known,
        .cut = a->cut,
        .domains_covered = a->cut ? a->covered : a->domains,
        .reach = a->cut ? a->reach : NULL,
        .colluding = a->colluding,
        .public_rows = a->public_rows,
        .truth = a->truth,
        .labels = a->labels,
        .family = SHERD__AUDIT_FAMILY,
        .tests = a->findings.tests,
        .left_out = a->unseen_len,
    };
    for (size_t i = 0; i < a->findings.len; i++)
        x.flagged += a->findings.list[i].flagged && !a->findings.list[i].control;
    sherd__result_write(out, &x, sizeof x);
    return SHERD_OK;
}

const sherd_audit_finding *sherd_audit_finding_at(const sherd_audit *a, size_t i)
{
    return i < a->findings.len ? &a->findings.list[i] : NULL;
}

const sherd_audit_scope *sherd_audit_scope_at(const sherd_audit *a, size_t i)
{
    return i < a->scopes_len ? &a->scopes[i] : NULL;
}

const sherd_audit_figure *sherd_audit_figure_at(const sherd_audit *a, size_t i)
{
    return i < a->figures_len ? &a->figures[i] : NULL;
}

const sherd_audit_control *sherd_audit_control_at(const sherd_audit *a, size_t i)
{
    return i < a->controls_len ? &a->controls[i] : NULL;
}

const sherd_audit_picture *sherd_audit_picture_at(const sherd_audit *a, size_t i)
{
    return i < a->gallery.len ? &a->gallery.picture[i] : NULL;
}

const char *sherd_audit_warning_at(const sherd_audit *a, size_t i)
{
    return i < a->warnings_len ? a->warnings[i] : NULL;
}

const char *sherd_audit_unseen_at(const sherd_audit *a, size_t i)
{
    static const char *const unseen[] = {
        "refusals: what was refused, when, and with which text",
        "timing: when something was sent, and how long it took",
        "links among members of a training: no record contains them",
        "masks shared with an encoding that is not recorded, or whose masks cannot be computed",
        "masks that follow from one another by other than a factor, or in runs of fewer than 8",
        "shapes, and what can be inferred from a result",
        "a keystream with a known key, and a bias that is too small for the sample",
    };
    const size_t all = sizeof unseen / sizeof *unseen;
    if (i < all) return unseen[i];
    return i - all < a->unseen_len ? a->unseen[i - all] : NULL;
}

/* ---- tables of fields ------------------------------------------------------------------------ */

#define FIELD(member, TYPE, text) SHERD__FIELD(sherd_audit_info, member, TYPE, "", text)
static const sherd_field info_fields[] = {
    FIELD(subject, NAME, "what was audited"),
    FIELD(form, NAME, "how values were sent"),
    FIELD(rows, U64, "rows of A, if they are known"),
    FIELD(cols, U64, "columns of A, if they are known"),
    FIELD(nodes, U32, "nodes"),
    FIELD(domains, U32, "domains"),
    FIELD(domains_known, BOOL, "the record assigns nodes to domains"),
    FIELD(cut, BOOL, "the record is incomplete"),
    FIELD(domains_covered, U32, "domains with complete records"),
    FIELD(reach, NAME, "what findings of an incomplete record cover"),
    FIELD(colluding, U32, "T, domains that may combine what they see"),
    FIELD(public_rows, U64, "rows of public data"),
    FIELD(truth, BOOL, "the operand was known for counting"),
    FIELD(labels, BOOL, "labels were known"),
    FIELD(family, F64, "probability of one false flag in the whole audit"),
    FIELD(tests, U64, "findings with a p-value, without controls"),
    FIELD(flagged, U64, "findings beyond chance, without controls"),
    FIELD(left_out, U32, "number of things that this audit left out"),
};
SHERD__FIELDS(sherd_audit_info, info_fields)
#undef FIELD

#define FIELD(member, TYPE, text) SHERD__FIELD(sherd_audit_finding, member, TYPE, "", text)
static const sherd_field finding_fields[] = {
    FIELD(test, NAME, "kind of attack"),
    FIELD(statistic, NAME, "meaning of the value"),
    FIELD(subject, TEXT, "attacked data"),
    FIELD(who, TEXT, "nodes or domains that attacked"),
    FIELD(size, U32, "number of nodes or domains that attacked"),
    FIELD(unit, NAME, "node or domain"),
    FIELD(value, F64, "value of the statistic"),
    FIELD(chance, F64, "value expected by chance"),
    FIELD(low, F64, "lower end of the value's confidence interval"),
    FIELD(high, F64, "upper end of the value's confidence interval"),
    FIELD(ln_p, F64, "ln of the p-value"),
    FIELD(ln_threshold, F64, "ln of the bound for the p-value"),
    FIELD(flagged, BOOL, "beyond chance"),
    FIELD(control, BOOL, "expected to be flagged"),
    FIELD(sentence, TEXT, "the finding in words"),
};
SHERD__FIELDS(sherd_audit_finding, finding_fields)
#undef FIELD

#define FIELD(member, TYPE, text) SHERD__FIELD(sherd_audit_scope, member, TYPE, "", text)
static const sherd_field scope_fields[] = {
    FIELD(size, U32, "nodes or domains of each adversary"),
    FIELD(unit, NAME, "node or domain"),
    FIELD(attacked, U32, "adversaries that were attacked"),
    FIELD(of, U64, "adversaries of this size"),
    FIELD(first, U64, "index of the first finding"),
    FIELD(end, U64, "index after the last finding"),
};
SHERD__FIELDS(sherd_audit_scope, scope_fields)
#undef FIELD

#define FIELD(member, TYPE, text) SHERD__FIELD(sherd_audit_figure, member, TYPE, "", text)
static const sherd_field figure_fields[] = {
    FIELD(scope, I32, "index of the scope, -1: what was sent, -2: the scheme as a whole"),
    FIELD(test, NAME, "kind of attack"),
    FIELD(statistic, NAME, "meaning of the values"),
    FIELD(count, U32, "findings"),
    FIELD(worst, U64, "index of the worst finding"),
    FIELD(median, F64, "median of the values"),
    FIELD(fraction, BOOL, "values are fractions of 1"),
    FIELD(flagged, BOOL, "a finding is beyond chance"),
};
SHERD__FIELDS(sherd_audit_figure, figure_fields)
#undef FIELD

#define FIELD(member, TYPE, text) SHERD__FIELD(sherd_audit_control, member, TYPE, "", text)
static const sherd_field control_fields[] = {
    FIELD(name, NAME, "what was broken on purpose"),
    FIELD(who, NAME, "members of the record's own coalition"),
    FIELD(ln_p, F64, "ln of the smallest p-value"),
    FIELD(advantage, F64, "advantage in a game"),
    FIELD(flagged, BOOL, "the audit flagged it"),
};
SHERD__FIELDS(sherd_audit_control, control_fields)
#undef FIELD

/* ---- JSON ------------------------------------------------------------------------------------ */

/* Returns a text as JSON; bytes that are not UTF-8 become question marks. NULL is null. */
static json_t *text_json(const char *text)
{
    json_t *s = text ? json_string(text) : json_null();
    char copy[512];
    if (s) return s;
    snprintf(copy, sizeof copy, "%s", text);
    for (char *p = copy; *p; p++)
        if ((unsigned char)*p >= 0x80) *p = '?';
    return json_string(copy);
}

static json_t *member_json(const uint8_t *at, sherd_field_type type)
{
    union {
        bool b;
        uint32_t u32;
        uint64_t u64;
        double f64;
        const char *name;
    } v;
    switch (type) {
    case SHERD_FIELD_BOOL: memcpy(&v.b, at, sizeof v.b); return json_boolean(v.b);
    case SHERD_FIELD_U32: memcpy(&v.u32, at, sizeof v.u32); return json_integer(v.u32);
    case SHERD_FIELD_U64:
        memcpy(&v.u64, at, sizeof v.u64);
        return v.u64 > INT64_MAX ? json_null() : json_integer((json_int_t)v.u64);
    case SHERD_FIELD_F64:
        memcpy(&v.f64, at, sizeof v.f64);
        return isfinite(v.f64) ? json_real(v.f64) : json_null();
    case SHERD_FIELD_NAME: memcpy(&v.name, at, sizeof v.name); return text_json(v.name);
    case SHERD_FIELD_TEXT: return text_json((const char *)at);
    default: return NULL;
    }
}

/* Adds the members of *x that a table describes. */
static int add(json_t *o, const void *x, const sherd_field *f, size_t count)
{
    int bad = o ? 0 : -1;
    for (size_t i = 0; i < count && !bad; i++)
        bad = json_object_set_new(o, f[i].name,
                                  member_json((const uint8_t *)x + f[i].offset, f[i].type));
    return bad;
}

static json_t *object(const void *x, const sherd_field *f, size_t count)
{
    json_t *o = json_object();
    if (!add(o, x, f, count)) return o;
    json_decref(o);
    return NULL;
}

static int append_texts(json_t *list, const char *(*at)(const sherd_audit *a, size_t i),
                        const sherd_audit *a)
{
    int bad = 0;
    for (size_t i = 0; at(a, i); i++) bad |= json_array_append_new(list, text_json(at(a, i)));
    return bad;
}

static int append_findings(json_t *list, const sherd_audit *a)
{
    int bad = 0;
    for (size_t i = 0; i < a->findings.len; i++) {
        const sherd_audit_finding *f = &a->findings.list[i];
        json_t *o = object(f, finding_fields, sizeof finding_fields / sizeof *finding_fields);
        if (!f->unit) bad |= json_object_set_new(o, "size", json_null());
        bad |= json_array_append_new(list, o);
    }
    return bad;
}

/* The range of a scope's findings is not part of the JSON form: each finding has size and unit. */
static int append_scopes(json_t *list, const sherd_audit *a)
{
    int bad = 0;
    for (uint32_t i = 0; i < a->scopes_len; i++)
        bad |= json_array_append_new(list, object(&a->scopes[i], scope_fields, 4));
    return bad;
}

static int fill(json_t *o, const sherd_audit *a)
{
    json_t *scopes = json_array(), *findings = json_array(), *warnings = json_array(),
           *unseen = json_array();
    sherd_audit_info info = { .size = sizeof info };
    int bad = sherd_audit_get(a, &info, NULL);
    bad |= add(o, &info, info_fields, sizeof info_fields / sizeof *info_fields);
    bad |= json_object_set_new(o, "coalitions", scopes);
    bad |= json_object_set_new(o, "findings", findings);
    bad |= json_object_set_new(o, "warnings", warnings);
    bad |= json_object_set_new(o, "unseen", unseen);
    if (bad) return bad;
    bad |= append_scopes(scopes, a) | append_findings(findings, a);
    bad |= append_texts(warnings, sherd_audit_warning_at, a);
    return bad | append_texts(unseen, sherd_audit_unseen_at, a);
}

#define JSON_FLAGS (JSON_COMPACT | JSON_ENSURE_ASCII) /* doubles with all their digits */

int sherd_audit_json(sherd_audit *a, const char **text, sherd_diag *d)
{
    json_t *o = json_object();
    size_t len = o && !fill(o, a) ? json_dumpb(o, NULL, 0, JSON_FLAGS) : 0;
    char *copy = len ? sherd__alloc(len + 1) : NULL;
    *text = NULL;
    if (copy) copy[json_dumpb(o, copy, len, JSON_FLAGS)] = '\0';
    json_decref(o);
    if (!copy) return sherd__fail_memory(d, "the report");
    sherd__free(a->json);
    *text = a->json = copy;
    return SHERD_OK;
}
