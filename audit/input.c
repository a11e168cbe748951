/*
 * The input of an audit. What was sent identifies the scheme: values in clear of a product, shares,
 * or an element-wise operation, in this order; of each the job that moved the most bytes. Products
 * of ones do not count as values in clear: a node's record may contain measurements of links beside
 * the shares.
 */
#include "audit/input.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "crypto/perm.h"

static const char *const form_text[] = {
    [SHERD_AUDIT_PERMUTE_PUBLISHED] = "permute as published: columns in clear with row indices",
    [SHERD_AUDIT_PERMUTE_SINGLE] =
        "permute --group 1: columns shuffled, non-zero values in row order",
    [SHERD_AUDIT_PERMUTE] = "permute --group all: columns in clear, aligned and in order",
    [SHERD_AUDIT_PLAIN] = "plain: whole rows in clear",
};

static const char *const coded_text[] = {
    [SHERD__SHARES_BOTH] = "share: both operands as coded residues",
    [SHERD__SHARES_ONE] = "share1: A as coded residues, B public",
    [SHERD__SHARES_BLIND] = "blind: A masked, B public",
};

static int no_memory(sherd_diag *d)
{
    return sherd__fail_memory_hint(d, "give fewer --rows", "what the nodes saw");
}

/* Each node is its own domain, until the record says otherwise. */
static int name_nodes(sherd__audit_input *in, uint32_t n, sherd_diag *d)
{
    in->views = sherd__calloc(n, sizeof *in->views);
    in->names = sherd__calloc(n, sizeof *in->names);
    in->name = sherd__calloc(n, sizeof *in->name);
    if (!in->views || !in->names || !in->name) return no_memory(d);
    for (uint32_t i = 0; i < n; i++) in->name[i] = in->names[i];
    in->cast = (sherd__audit_cast){ .nodes = n, .domains = n, .name = in->name };
    return SHERD_OK;
}

/* ---- simulation ------------------------------------------------------------------------------ */

int sherd__audit_assign(uint32_t **cols, size_t **first, size_t k, uint32_t nodes, uint64_t draw)
{
    uint8_t seed[32] = { 0 }, key[32];
    uint32_t *expo = sherd__calloc(k, sizeof *expo);
    size_t len = 0;
    *cols = sherd__calloc(k, sizeof **cols);
    *first = sherd__calloc((size_t)nodes + 1, sizeof **first);
    sherd__put_u64(seed, draw);
    sherd__perm_key(key, seed, SHERD__EXPO_LABEL, 0, 0);
    int err = expo && *cols && *first ? sherd__exposures(key, k, nodes, 0, expo) : SHERD_ENOMEM;
    for (uint32_t i = 0; i < nodes && !err; i++) {
        for (size_t c = 0; c < k; c++)
            if (expo[c] == i) (*cols)[len++] = (uint32_t)c;
        (*first)[i + 1] = len;
    }
    sherd__free(expo);
    return err;
}

int sherd__audit_input_simulate(sherd__audit_input *in, sherd_audit *r, sherd_audit_form form,
                                uint32_t nodes, const sherd_audit_options *opt, sherd_diag *d)
{
    sherd_view v = opt->data;
    uint32_t *cols = NULL;
    size_t *at = NULL;
    int err = name_nodes(in, nodes, d);
    if (!err) err = sherd__audit_assign(&cols, &at, v.cols, nodes, opt->draw);
    for (uint32_t i = 0; i < nodes && !err; i++) {
        size_t first = v.rows * i / nodes, rows = v.rows * (i + 1) / nodes - first;
        snprintf(in->names[i], sizeof *in->names, "node-%" PRIu32, i + 1);
        err = sherd__adversary_view_make(&in->views[i], form, v,
                                         &(sherd__node_part){ cols + at[i], at[i + 1] - at[i],
                                                              first, rows },
                                         opt->rows);
    }
    sherd__free(cols);
    sherd__free(at);
    snprintf(r->subject, sizeof r->subject, "simulated, %" PRIu32 " nodes", nodes);
    snprintf(r->form, sizeof r->form, "%s", form_text[form]);
    return err ? no_memory(d) : SHERD_OK;
}

/* ---- records --------------------------------------------------------------------------------- */

/* Reads from the record which domain runs which node. */
static int name_domains(sherd__audit_input *in, sherd_diag *d)
{
    const sherd__views *v = &in->record;
    in->domain = sherd__calloc(v->len, sizeof *in->domain);
    in->domain_name = sherd__calloc(v->domains_len, sizeof *in->domain_name);
    if (!in->domain || !in->domain_name) return no_memory(d);
    for (size_t i = 0; i < v->len; i++) in->domain[i] = v->nodes[i].domain;
    for (uint32_t i = 0; i < v->domains_len; i++) in->domain_name[i] = v->domains[i].name;
    in->cast.domains = v->domains_len;
    in->cast.domain = in->domain;
    in->cast.domain_name = in->domain_name;
    return SHERD_OK;
}

/* Reads further products, whose masks are compared with those of the first. One that is of another
 * operand is read without what is known of A, and one of another code, or incomplete, not at all:
 * the note says how many were read. */
static int read_more(sherd__audit_input *in, const uint64_t *jobs, size_t len,
                     const sherd__shares_want *w)
{
    sherd__shares_want other = *w;
    other.n = other.cols = 0;
    in->more = sherd__calloc(w->right_operands < len ? w->right_operands : len, sizeof *in->more);
    int err = in->more ? SHERD_OK : SHERD_ENOMEM;
    for (size_t i = 1; i < len && in->more_len + 1 < w->right_operands && err != SHERD_ENOMEM;
         i++) {
        sherd__shares *s = &in->more[in->more_len];
        err = sherd__shares_read(s, &in->record, jobs[i], w, NULL);
        if (err && err != SHERD_ENOMEM)
            err = sherd__shares_read(s, &in->record, jobs[i], &other, NULL);
        if (!err) err = sherd__shares_number(s, (unsigned)++in->more_len + 1);
    }
    return err == SHERD_ENOMEM ? err : SHERD_OK;
}

/* Reads the largest of the record's coded products, and others to compare its masks with. */
static int read_shares(sherd__audit_input *in, sherd_audit *r, const uint64_t *jobs, size_t len,
                       const sherd_audit_options *opt, sherd_diag *d)
{
    const sherd__shares_want w = { .n = opt->data.data ? opt->data.rows : 0,
                                   .masks = opt->colluding,
                                   .spare = opt->spare,
                                   .rows = opt->rows,
                                   .right_operands = opt->encodings,
                                   .cols = opt->data.data ? opt->data.cols : 0,
                                   .code = opt->code };
    in->coded = true;
    int err = sherd__shares_read(&in->shares, &in->record, jobs[0], &w, d);
    if (err || len == 1) return err;
    if (read_more(in, jobs, len, &w))
        return sherd__fail_memory_hint(d, "give fewer --rows or --encodings", "the shares");
    bool limited = in->more_len + 1 < len && in->more_len + 1 == w.right_operands;
    sherd__audit_warn(r,
                      "the record contains %zu coded products: the one that transferred the most "
                      "bytes is attacked, and its masks are compared with those of %zu others%s",
                      len, in->more_len, limited ? "; --encodings compares them with more" : "");
    if (in->more_len + 1 < len)
        sherd__audit_leave_out(r, "masks of %zu of %zu coded products of the record: %s",
                               len - in->more_len - 1, len,
                               limited ? "--encodings reads more of them"
                                       : "their shares could not be read");
    return SHERD_OK;
}

static int read_elements(sherd__audit_input *in, size_t rows_max, sherd_diag *d)
{
    const sherd__views *v = &in->record;
    size_t slots = v->of_coordinator ? v->len : 1;
    int err = SHERD_OK;
    for (unsigned b = 0; b < 2 && !err; b++) {
        in->elements[b] = sherd__calloc(v->len, sizeof **in->elements);
        if (!in->elements[b]) err = SHERD_ENOMEM;
        for (size_t i = 0; i < v->len && !err; i++)
            err = sherd__elements_of(&in->elements[b][i], &v->nodes[i], in->job, b == 1, slots,
                                     rows_max);
    }
    return err ? no_memory(d) : SHERD_OK;
}

/* Opens the records and names nodes and domains. */
static int open_records(sherd__audit_input *in, sherd_audit *r, const char *const *folders,
                        size_t folders_len, sherd_diag *d)
{
    sherd__views *v = &in->record;
    int err = SHERD_OK;
    for (size_t i = 0; i < folders_len && !err; i++) err = sherd__views_add(v, folders[i], d);
    if (!err) err = name_nodes(in, (uint32_t)v->len, d);
    if (!err) err = name_domains(in, d);
    if (err) return err;
    r->domains_known = v->domains_known;
    sherd__audit_reach(r, v);
    if (v->trouble[0]) sherd__audit_warn(r, "%s", v->trouble);
    snprintf(r->subject, sizeof r->subject, "%.100s%s", sherd__path_tail(folders[0]),
             v->of_coordinator ? ", a coordinator's record" : ", recorded by nodes");
    return SHERD_OK;
}

/* Finds the product in clear that is audited, if there is one. */
static int find_clear(sherd__audit_input *in, sherd_audit *r, sherd__clear_product *p,
                      sherd_diag *d)
{
    if (sherd__adversary_view_job(&in->record, p)) return no_memory(d);
    in->job = p->job;
    if (p->jobs > 1)
        sherd__audit_warn(
            r, "%zu products are in the record: the one that moved the most bytes is audited",
            p->jobs);
    if (p->ones > 0)
        sherd__audit_warn(r,
                          "%zu product%s of ones %s left out: they measure links and nodes, and "
                          "reveal nothing",
                          p->ones, p->ones == 1 ? "" : "s", p->ones == 1 ? "is" : "are");
    return SHERD_OK;
}

/* Reads the views of a product in clear. in_clear: there is one. */
static int read_clear(sherd__audit_input *in, sherd_audit *r, size_t rows_max, bool in_clear,
                      sherd_diag *d)
{
    const sherd__views *v = &in->record;
    int err = SHERD_OK;
    for (size_t i = 0; i < v->len && !err; i++) {
        memcpy(in->names[i], v->nodes[i].name, sizeof *in->names);
        if (v->nodes[i].trouble[0]) sherd__audit_warn(r, "%s", v->nodes[i].trouble);
        if (in_clear)
            err = sherd__adversary_view_of(&in->views[i], &v->nodes[i], in->job, rows_max);
    }
    return err ? no_memory(d) : SHERD_OK;
}

int sherd__audit_input_read(sherd__audit_input *in, sherd_audit *r, const char *const *folders,
                            size_t folders_len, const sherd_audit_options *opt, sherd_diag *d)
{
    uint64_t *coded = NULL;
    size_t coded_len = 0;
    sherd__clear_product clear = { 0 };
    int err = open_records(in, r, folders, folders_len, d);
    if (!err) err = find_clear(in, r, &clear, d);
    const bool in_clear = clear.jobs > 0;
    if (!err) err = read_clear(in, r, opt->rows, in_clear, d);
    if (!err && !in_clear && sherd__shares_jobs(&in->record, &coded, &coded_len))
        err = no_memory(d);
    if (err) return err;
    bool elements = !in_clear && !coded_len && sherd__elements_job(&in->record, &in->job);
    if (elements) err = read_elements(in, opt->rows, d);
    else if (!in_clear && coded_len == 0)
        err = sherd__fail(d, SHERD_EFORMAT, "record a product: multiply --record DIR",
                          "%s: the record contains no product%s", folders[0],
                          clear.ones > 0 ? " other than products of ones" : "");
    else if (!in_clear) err = read_shares(in, r, coded, coded_len, opt, d);
    sherd__free(coded);
    snprintf(r->form, sizeof r->form, "%s",
             in_clear    ? "values in clear"
             : in->coded ? coded_text[in->shares.kind]
                         : "element-wise: values in clear, each row in its own order");
    return err;
}

void sherd__audit_input_fini(sherd__audit_input *in)
{
    for (uint32_t i = 0; i < in->cast.nodes; i++) {
        sherd__adversary_view_fini(&in->views[i]);
        for (unsigned b = 0; b < 2; b++)
            if (in->elements[b]) sherd__elements_fini(&in->elements[b][i]);
    }
    for (size_t i = 0; i < in->more_len; i++) sherd__shares_fini(&in->more[i]);
    sherd__shares_fini(&in->shares);
    sherd__views_fini(&in->record);
    sherd__free(in->elements[0]);
    sherd__free(in->elements[1]);
    sherd__free(in->views);
    sherd__free(in->names);
    sherd__free(in->name);
    sherd__free(in->domain);
    sherd__free(in->domain_name);
    sherd__free(in->more);
}
