/*
 * Who is attacked: one node, T domains, T+1 domains. The coalition attack is the same attack on what the
 * members have together. Every node counts as a domain of its own: a record names nodes, not who runs
 * them.
 */
#include "audit/audit.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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
        err = sherd__audit_clear(&a->r->findings, show ? &a->r->gallery : NULL, s, who, a->truth, a->pub,
                                 &opt, d);
    a->done++;
    if (!err && a->plan->step && a->plan->step(a->plan->ctx, a->done, a->total))
        err = sherd__fail(d, SHERD_EINTERRUPTED, NULL, "interrupted after %u of %u attacks", a->done,
                          a->total);
    sherd__sight_fini(&joined);
    sherd__free(part);
    return err;
}

int sherd__audit_sights(sherd__audit_report *r, const sherd__sight *sights, const char *const *names,
                        uint32_t nodes, const sherd__truth *truth, const sherd__public *pub,
                        const sherd__audit_plan *plan, sherd_diag *d)
{
    running a = { .r = r, .sights = sights, .names = names, .truth = truth, .pub = pub, .plan = plan };
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
            r->scopes[r->scopes_len++] = (sherd__audit_scope){ m[i].size, m[i].len, m[i].of, first, r->findings.len };
    }
    for (unsigned i = 0; i < SHERD__AUDIT_SIZES; i++) sherd__members_fini(&m[i]);
    return err;
}
