/*
 * `sherd audit`: measures what the nodes learned. It reads what was sent to them from records, or
 * generates it here (--simulate), and attacks it with side information if there is any. If the
 * operand is given, it compares the success of the attacks with chance. Labels only serve to count
 * successes; no attack gets them. Only attacks on coded operands get operands, as known plaintext.
 */
#include "cli/audit.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli/paths.h"
#include "core/alloc.h"
#include "core/bytes.h"
#include "crypto/perm.h"
#include "matrix/fixed.h"
#include "matrix/view.h"
#include "store/file.h"

#define DRAWN_ROWS 20000u
#define DRAWN_PUBLIC 10000u

static const char *const choices_simulate[] = { "permute-published", "permute-single", "permute",
                                                "plain", NULL };
static const char *const form_text[] = {
    "permute as published: columns in clear with row indices",
    "permute --group 1: columns shuffled, non-zero values in row order",
    "permute --group all: columns in clear, aligned and in order",
    "plain: whole rows in clear",
};

static const char *const coded_text[] = {
    [SHERD__SHARES_BOTH] = "share: both operands as coded residues",
    [SHERD__SHARES_ONE] = "share1: A as coded residues, B public",
    [SHERD__SHARES_BLIND] = "blind: A masked, B public",
};

/* ---- input of the attacks -------------------------------------------------------------------- */

static int name_nodes(sherd__auditing *a, uint32_t n, sherd_diag *d)
{
    a->sights = sherd__calloc(n, sizeof *a->sights);
    a->names = sherd__calloc(n, sizeof *a->names);
    if (!a->sights || !a->names) return sherd__fail(d, SHERD_ENOMEM, NULL, "out of memory");
    a->nodes = a->domains = n;
    a->name = sherd__calloc(n, sizeof *a->name);
    if (!a->name) return sherd__fail(d, SHERD_ENOMEM, NULL, "out of memory");
    for (uint32_t i = 0; i < n; i++) a->name[i] = a->names[i];
    return 0;
}

/* Reads from the record which domain runs which node. */
static int name_domains(sherd__auditing *a, sherd_diag *d)
{
    const sherd__views *v = &a->views;
    a->domains = v->domains_len;
    a->report.domains_known = v->domains_known;
    a->domain = sherd__calloc(v->len, sizeof *a->domain);
    a->domain_name = sherd__calloc(v->domains_len, sizeof *a->domain_name);
    if (!a->domain || !a->domain_name) return sherd__fail(d, SHERD_ENOMEM, NULL, "out of memory");
    for (size_t i = 0; i < v->len; i++) a->domain[i] = v->nodes[i].domain;
    for (uint32_t i = 0; i < v->domains_len; i++) a->domain_name[i] = v->domains[i].name;
    return 0;
}

/* Generates a record: exposures drawn as in any run, and what each node is then sent. */
static int simulate(sherd__auditing *a, sherd_audit_form form, sherd_diag *d)
{
    sherd_view v = a->data.view;
    uint32_t n = (uint32_t)sherd__opt_int(a->cli, "local"), *expo = NULL, *cols = NULL;
    size_t kept = (size_t)sherd__opt_int(a->cli, "rows");
    uint8_t seed[32] = { 0 }, key[32];
    sherd__put_u64(seed, (uint64_t)sherd__opt_int(a->cli, "draw"));
    sherd__perm_key(key, seed, SHERD__EXPO_LABEL, 0, 0);
    int err = name_nodes(a, n, d);
    if (err) return err;
    expo = sherd__calloc(v.cols, sizeof *expo);
    cols = sherd__calloc(v.cols, sizeof *cols);
    err = expo && cols ? sherd__exposures(key, v.cols, n, 0, expo) : SHERD_ENOMEM;
    for (uint32_t i = 0; i < n && !err; i++) {
        size_t len = 0, first = v.rows * i / n, rows = v.rows * (i + 1) / n - first;
        for (size_t c = 0; c < v.cols; c++)
            if (expo[c] == i) cols[len++] = (uint32_t)c;
        snprintf(a->names[i], sizeof *a->names, "node-%" PRIu32, i + 1);
        err = sherd__adversary_view_make(&a->sights[i], form, v, cols, len, first, rows, kept);
    }
    sherd__free(expo);
    sherd__free(cols);
    snprintf(a->report.subject, sizeof a->report.subject, "simulated, %" PRIu32 " nodes", n);
    snprintf(a->report.form, sizeof a->report.form, "%s", form_text[form]);
    return err ? sherd__fail(d, err, NULL, "cannot build what the nodes would see: %s",
                             sherd_strerror(err))
               : 0;
}

/* Reads further products, whose masks are compared with those of the first. */
static int read_more(sherd__auditing *a, const uint64_t *jobs, size_t len, sherd__shares_want w,
                     sherd_diag *d)
{
    uint64_t n = w.n;
    a->more = sherd__calloc(w.rights < len ? w.rights : len, sizeof *a->more);
    int err = a->more ? 0 : SHERD_ENOMEM;
    for (size_t i = 1; i < len && a->more_len + 1 < w.rights && !err; i++) {
        sherd__shares *s = &a->more[a->more_len];
        w.n = n;
        err = sherd__shares_read(s, &a->views, jobs[i], &w, NULL);
        if (err && err != SHERD_ENOMEM) { /* of another operand */
            w.n = 0;
            err = sherd__shares_read(s, &a->views, jobs[i], &w, NULL);
        }
        if (err == SHERD_ENOMEM) break;
        if (err) err = 0; /* of another code, or incomplete: the note says how many were read */
        else err = sherd__shares_number(s, (unsigned)++a->more_len + 1);
    }
    return err ? sherd__fail(d, err, "give fewer --rows or --encodings",
                             "out of memory for the shares")
               : 0;
}

/* Reads the largest of the record's coded products, and others to compare its masks with. */
static int read_shares(sherd__auditing *a, const uint64_t *jobs, size_t len, size_t kept,
                       sherd_diag *d)
{
    const sherd__shares_want w = { .n = a->data.there ? a->data.view.rows : 0,
                                   .masks = (uint32_t)sherd__opt_int(a->cli, "colluding"),
                                   .spare = (uint32_t)sherd__opt_int(a->cli, "spare"),
                                   .rows = kept,
                                   .rights = (uint32_t)sherd__opt_int(a->cli, "encodings") };
    if (len == 0)
        return sherd__fail(d, SHERD_EFORMAT, "record a product: multiply --record DIR",
                           "%s: no product is in the record", a->cli->args[0]);
    a->coded = true;
    int err = sherd__shares_read(&a->shares, &a->views, jobs[0], &w, d);
    if (!err && len > 1) err = read_more(a, jobs, len, w, d);
    if (len > 1 && !err)
        sherd__audit_warn(&a->report,
                          "%zu coded products are in the record: the one that moved the most bytes "
                          "is attacked, and its masks are held against those of %zu others%s",
                          len, a->more_len,
                          a->more_len + 1 < len && a->more_len + 1 == w.rights
                              ? "; --encodings holds them against more"
                              : "");
    if (a->more_len + 1 < len && !err)
        sherd__audit_leave_out(&a->report, "masks of %zu of %zu coded products of the record: %s",
                               len - a->more_len - 1, len,
                               a->more_len + 1 == w.rights ? "--encodings reads more of them"
                                                           : "their shares could not be read");
    return err;
}

/* If there is no product: reads an element-wise operation, if there is one. */
static int read_elements(sherd__auditing *a, size_t kept, sherd_diag *d)
{
    const sherd__views *v = &a->views;
    size_t slots = v->of_coordinator ? v->len : 1;
    int err = 0;
    for (unsigned b = 0; b < 2 && !err; b++) {
        a->elements[b] = sherd__calloc(a->nodes, sizeof **a->elements);
        if (!a->elements[b]) err = SHERD_ENOMEM;
        for (uint32_t i = 0; i < a->nodes && !err; i++)
            err = sherd__elements_of(&a->elements[b][i], &v->nodes[i], a->job, b == 1, slots, kept);
    }
    return err ? sherd__fail(d, err, "give fewer --rows", "out of memory for what the nodes saw")
               : 0;
}

static int read_records(sherd__auditing *a, sherd_diag *d)
{
    size_t jobs = 0, kept = (size_t)sherd__opt_int(a->cli, "rows");
    int err = 0;
    for (int i = 0; i < a->cli->args_len && !err; i++)
        err = sherd__views_add(&a->views, a->cli->args[i], d);
    if (!err) err = name_nodes(a, (uint32_t)a->views.len, d);
    if (!err) err = name_domains(a, d);
    if (err) return err;
    sherd__audit_reach(&a->report, &a->views);
    if (a->views.trouble[0]) sherd__audit_warn(&a->report, "%s", a->views.trouble);
    bool clear = sherd__adversary_view_job(&a->views, &a->job, &jobs);
    if (jobs > 1)
        sherd__audit_warn(
            &a->report,
            "%zu products are in the record: the one that moved the most bytes is audited", jobs);
    for (uint32_t i = 0; i < a->nodes && !err; i++) {
        const sherd__node_view *v = &a->views.nodes[i];
        memcpy(a->names[i], v->name, sizeof *a->names);
        if (v->trouble[0]) sherd__audit_warn(&a->report, "%s", v->trouble);
        if (clear) err = sherd__adversary_view_of(&a->sights[i], v, a->job, kept);
    }
    if (err)
        return sherd__fail(d, err, "give fewer --rows", "out of memory for what the nodes saw");
    uint64_t *coded = NULL;
    size_t coded_len = 0;
    if (!clear && sherd__shares_jobs(&a->views, &coded, &coded_len))
        return sherd__fail(d, SHERD_ENOMEM, NULL, "out of memory for the record");
    bool element_wise = !clear && !coded_len && sherd__elements_job(&a->views, &a->job);
    if (element_wise) err = read_elements(a, kept, d);
    else if (!clear) err = read_shares(a, coded, coded_len, kept, d);
    sherd__free(coded);
    snprintf(a->report.subject, sizeof a->report.subject, "%.100s%s",
             sherd__path_tail(a->cli->args[0]),
             a->views.of_coordinator ? ", a coordinator's record" : ", recorded by nodes");
    snprintf(a->report.form, sizeof a->report.form, "%s",
             clear          ? "values in clear"
             : a->coded     ? coded_text[a->shares.kind]
             : element_wise ? "element-wise: values in clear, each row in an order of its own"
                            : "no product");
    return err;
}

/* ---- side information ------------------------------------------------------------------------ */

static int open_files(sherd__auditing *a, sherd_diag *d)
{
    sherd__cli *cli = a->cli;
    bool simulated = sherd__opt_given(cli, "simulate");
    int err = sherd__audit_matrix_open(&a->data, sherd__opt_text(cli, "data"), d);
    if (!err) err = sherd__audit_matrix_open(&a->right, sherd__opt_text(cli, "right"), d);
    if (!err) err = sherd__audit_matrix_open(&a->labels, sherd__opt_text(cli, "labels"), d);
    if (!err) err = sherd__audit_matrix_open(&a->pub_data, sherd__opt_text(cli, "public-data"), d);
    if (!err)
        err = sherd__audit_matrix_open(&a->pub_labels, sherd__opt_text(cli, "public-labels"), d);
    if (!err && simulated && !a->data.there) {
        err = sherd__audit_matrix_draw(&a->data, &a->labels, 0, DRAWN_ROWS, d);
        if (!err && !a->pub_data.there)
            err = sherd__audit_matrix_draw(&a->pub_data, &a->pub_labels, DRAWN_ROWS, DRAWN_PUBLIC,
                                           d);
    }
    return err;
}

static int check_labels(sherd__auditing *a, sherd_diag *d)
{
    sherd_view v = a->labels.view;
    size_t n = a->data.view.rows;
    bool column = v.cols == 1;
    if (!a->labels.there) return 0;
    if (!a->data.there)
        return sherd__fail(d, SHERD_EINVAL, "give --data A.npy too",
                           "--labels are labels of --data's rows");
    if (v.rows * v.cols != n || (!column && v.rows != 1))
        return sherd__fail(d, SHERD_ESHAPE, "give one label for each row of A",
                           "--labels has %zu x %zu values, A has %zu rows", v.rows, v.cols, n);
    a->label_bytes = sherd__alloc(n);
    if (!a->label_bytes) return sherd__fail(d, SHERD_ENOMEM, NULL, "out of memory");
    for (size_t i = 0; i < n; i++) {
        double x = sherd__view_at(v, column ? i : 0, column ? 0 : i);
        if (!(x >= 0 && x < 256) || x != floor(x))
            return sherd__fail(d, SHERD_EFORMAT, "give whole numbers from 0 to 255",
                               "--labels: value %zu is %g", i, x);
        a->label_bytes[i] = (uint8_t)x;
    }
    return 0;
}

/* Reads an operand as it was coded. largest: its largest value according to the record; 0: the
 * record has none. Residues do not reveal it either, so the default coding is assumed. */
static int open_coded(sherd__auditing *a, sherd__truth *out, sherd_view v, uint64_t largest,
                      const char *name, sherd_diag *d)
{
    sherd__fixed f = { .integers = true };
    int err = largest ? 0 : sherd__fixed_choose(v, SHERD__FIXED_BITS, name, &f, d);
    if (!err && !f.integers)
        sherd__audit_warn(&a->report,
                          "no record says in which scale %s was coded: the default of "
                          "%u bits is taken, and of a run with other --bits nothing "
                          "is found with it",
                          name, SHERD__FIXED_BITS);
    return err ? err : sherd__truth_open_scaled(out, v, largest ? largest : f.largest, d);
}

static int open_clear(sherd__auditing *a, sherd_diag *d)
{
    bool integers = false;
    double largest = 0;
    for (uint32_t i = 0; i < a->nodes; i++) {
        integers |= a->sights[i].integers;
        if (a->sights[i].largest > largest) largest = a->sights[i].largest;
    }
    return sherd__truth_open(&a->truth, a->data.view, integers, largest, d);
}

/* Opens the operand B if some of it is hidden. */
static int open_right(sherd__auditing *a, sherd_diag *d)
{
    if (!a->right.there) return 0;
    if (a->elements[0]) return sherd__truth_open(&a->truth_b, a->right.view, false, 0, d);
    a->right_coded = a->coded && sherd__shares_right(&a->shares);
    if (a->right_coded)
        return open_coded(a, &a->truth_b, a->right.view, a->shares.largest_b, "--right", d);
    if (a->coded)
        sherd__audit_warn(&a->report, "--right is not used: there are no shares of a B in the "
                                      "record of which the numbers are known");
    return 0;
}

static int open_truth(sherd__auditing *a, sherd_diag *d)
{
    int err = open_right(a, d);
    if (err || !a->data.there) return err;
    err = a->coded ? open_coded(a, &a->truth, a->data.view, a->shares.largest, "--data", d)
                   : open_clear(a, d);
    a->truth.labels = a->label_bytes;
    a->report.truth = true;
    a->report.rows = a->data.view.rows;
    a->report.cols = a->data.view.cols;
    return err;
}

static int open_public(sherd__auditing *a, sherd_diag *d)
{
    if (!a->pub_data.there) {
        if (a->pub_labels.there)
            return sherd__fail(d, SHERD_EINVAL, "give --public-data too",
                               "--public-labels are labels of --public-data's rows");
        return 0;
    }
    int err = sherd__public_make(&a->pub, a->pub_data.view,
                                 a->pub_labels.there ? &a->pub_labels.view : NULL,
                                 (size_t)sherd__opt_int(a->cli, "rows"), d);
    a->report.public_rows = a->pub.rows;
    a->report.labels = a->pub.labels && a->truth.labels;
    return err;
}

/* ---- attacking ------------------------------------------------------------------------------- */

static int step(void *ctx, uint32_t done, uint32_t total)
{
    const sherd__auditing *a = ctx;
    uint32_t before = (done - 1) * 10 / total, now = done * 10 / total;
    if (now > before)
        sherd__cli_say(a->cli, "audit: %" PRIu32 " %% of %" PRIu32 " attacks", now * 10, total);
    return sherd__cli_interrupted();
}

/* Values sent in clear are a finding that needs no truth. */
static int in_clear(sherd__auditing *a, sherd_diag *d)
{
    for (uint32_t i = 0; i < a->nodes; i++) {
        const sherd__adversary_view *s = &a->sights[i];
        const sherd__elements *e = a->elements[0] ? &a->elements[0][i] : NULL;
        sherd_audit_finding f = { .test = "in clear",
                                  .statistic = "fraction of columns",
                                  .subject = "A",
                                  .value = 1,
                                  .chance = 0,
                                  .low = NAN,
                                  .high = NAN,
                                  .ln_p = NAN,
                                  .flagged = true };
        if (s->cols == 0 && (!e || e->cols == 0)) continue;
        snprintf(f.who, sizeof f.who, "%s", a->names[i]);
        if (e) {
            f.statistic = "values of each row";
            f.value = (double)e->cols;
            snprintf(f.sentence, sizeof f.sentence,
                     "was sent %zu values of each of %" PRIu64 " rows in clear%s", e->cols, e->sent,
                     a->elements[1][i].cols ? ", of both operands" : "");
        } else {
            snprintf(f.sentence, sizeof f.sentence,
                     "was sent values of %zu columns of A in clear, %zu of them aligned by row",
                     s->cols, s->len == 1 ? s->cols : (size_t)0);
        }
        if (sherd__findings_add(&a->report.findings, &f))
            return sherd__fail(d, SHERD_ENOMEM, NULL, "out of memory");
    }
    return 0;
}

static int attack(sherd__auditing *a, sherd_diag *d)
{
    const char *const *domains = a->domain_name ? a->domain_name : a->name;
    const sherd__audit_cast cast = { a->nodes, a->domains, a->name, a->domain, a->domain_name };
    sherd__audit_plan plan = {
        .colluding = (uint32_t)sherd__opt_int(a->cli, "colluding"),
        .coalitions = (uint32_t)sherd__opt_int(a->cli, "coalitions"),
        .seed = (uint64_t)sherd__opt_int(a->cli, "draw"),
        .n = a->report.rows,
        .k = a->report.cols,
        .step = step,
        .ctx = a,
        .show = (uint32_t)sherd__opt_int(a->cli, "show") - 1,
    };
    a->report.nodes = a->nodes;
    a->report.domains = a->domains;
    int err = in_clear(a, d);
    if (!err && a->right.there && a->views.len > 0 && !a->coded && !a->elements[0])
        err = sherd__audit_right_operand(&a->report.findings, &a->views, a->job, a->name,
                                         a->right.view, d);
    if (!err && a->coded)
        err = sherd__audit_shares(&a->report, &a->shares, domains,
                                  a->report.truth ? &a->truth : NULL,
                                  a->right_coded ? &a->truth_b : NULL, a->pub.rows ? &a->pub : NULL,
                                  &plan, d);
    if (!err && a->coded && a->more_len > 0)
        err = sherd__audit_reuse(&a->report, &a->shares, a->more, a->more_len, domains, &plan, d);
    else if (!err && a->report.truth && a->elements[0])
        err = sherd__audit_element_wise(&a->report, &cast, a->elements[0], a->elements[1],
                                        &a->truth, a->right.there ? &a->truth_b : NULL,
                                        a->pub.rows ? &a->pub : NULL, &plan, d);
    else if (!err && a->report.truth && !a->coded)
        err = sherd__audit_adversary_views(&a->report, &cast, a->sights, &a->truth,
                                           a->pub.rows ? &a->pub : NULL, &plan, d);
    if (!err && !a->report.truth)
        sherd__audit_warn(&a->report, "without --data nothing can be counted: give the operand A "
                                      "to see how much of it the nodes could tell");
    if (!err && a->report.truth && a->pub.rows == 0)
        sherd__audit_warn(&a->report,
                          "without --public-data no column can be recognised: give data of the "
                          "same kind to see what an attacker who has such makes of it");
    if (!err) err = sherd__audit_judge(&a->report, d);
    return err;
}

static int write_html(const sherd__auditing *a, sherd_diag *d)
{
    const char *path = sherd__opt_text(a->cli, "html");
    sherd__file *f = NULL;
    char *text = NULL;
    size_t len = 0;
    if (!path) return 0;
    size_t width = (size_t)sherd__opt_int(a->cli, "width");
    int err = sherd__audit_html(&a->report, width, &text, &len);
    if (err) return sherd__fail(d, err, NULL, "out of memory for the page");
    err = sherd__file_begin(&f, path, SHERD__FILE_PRIVATE, d); /* the file shows data */
    if (!err) err = sherd__file_write(f, text, len, d);
    if (!err) {
        err = sherd__file_commit(f, d);
        f = NULL;
    }
    sherd__file_abort(f);
    sherd__free(text);
    return err;
}

static void auditing_fini(sherd__auditing *a)
{
    for (uint32_t i = 0; i < a->nodes; i++) {
        sherd__adversary_view_fini(&a->sights[i]);
        for (unsigned b = 0; b < 2; b++)
            if (a->elements[b]) sherd__elements_fini(&a->elements[b][i]);
    }
    sherd__free(a->elements[0]);
    sherd__free(a->elements[1]);
    sherd__truth_fini(&a->truth_b);
    sherd__free(a->sights);
    sherd__free(a->names);
    sherd__free(a->name);
    sherd__free(a->domain);
    sherd__free(a->domain_name);
    sherd__shares_fini(&a->shares);
    for (size_t i = 0; i < a->more_len; i++) sherd__shares_fini(&a->more[i]);
    sherd__free(a->more);
    sherd__views_fini(&a->views);
    sherd__truth_fini(&a->truth);
    sherd__public_fini(&a->pub);
    sherd__audit_fini(&a->report);
    sherd__audit_matrix_close(&a->data);
    sherd__audit_matrix_close(&a->right);
    sherd__audit_matrix_close(&a->labels);
    sherd__audit_matrix_close(&a->pub_data);
    sherd__audit_matrix_close(&a->pub_labels);
    sherd__free(a->label_bytes);
}

static int tell(sherd__auditing *a, sherd_diag *d)
{
    if (!a->cli->json) {
        sherd__audit_tell(a);
        return 0;
    }
    json_t *obj = sherd__cli_json_new(a->cli);
    if (!obj || sherd__audit_json(&a->report, obj)) {
        json_decref(obj);
        return sherd__fail(d, SHERD_ENOMEM, NULL, "out of memory for the report");
    }
    return sherd__cli_json_end(a->cli, obj, d);
}

static int check_show(const sherd__auditing *a, sherd_diag *d)
{
    uint64_t node = (uint64_t)sherd__opt_int(a->cli, "show");
    if (!sherd__opt_given(a->cli, "show") || node <= a->nodes) return 0;
    return sherd__fail(d, SHERD_EINVAL, "name one of them",
                       "--show %" PRIu64 ": there %s %" PRIu32 " node%s", node,
                       a->nodes == 1 ? "is" : "are", a->nodes, a->nodes == 1 ? "" : "s");
}

static int run_audit(sherd__cli *cli, sherd_diag *d)
{
    sherd__auditing *a = sherd__calloc(1, sizeof *a);
    bool simulated = sherd__opt_given(cli, "simulate");
    if (!a) return sherd__fail(d, SHERD_ENOMEM, NULL, "out of memory");
    a->cli = cli;
    int err = 0;
    if (simulated == (cli->args_len > 0))
        err = sherd__fail(d, SHERD_EINVAL,
                          "sherd multiply A.npy B.npy -o C.npy -n 7 --record DIR, then sherd audit "
                          "DIR --data A.npy; or sherd audit --simulate permute",
                          simulated ? "--simulate attacks no record: give one or the other"
                                    : "give the folder that --record wrote, or --simulate FORM");
    if (!err && sherd__opt_text(cli, "html") != NULL)
        err = sherd__paths_room(sherd__opt_text(cli, "html"), d);
    if (!err) err = open_files(a, d);
    if (!err) err = check_labels(a, d);
    if (!err && simulated)
        err = simulate(a, (sherd_audit_form)sherd__opt_choice(cli, "simulate"), d);
    if (!err && !simulated) err = read_records(a, d);
    if (!err) err = check_show(a, d);
    if (!err) err = open_truth(a, d);
    if (!err) err = open_public(a, d);
    if (!err) err = attack(a, d);
    if (!err) err = write_html(a, d);
    if (!err) err = tell(a, d);
    auditing_fini(a);
    sherd__free(a);
    return err;
}

static const sherd__example examples[] = {
    { "sherd audit rec --data A.npy", "what of A the nodes of a recorded run were sent as it is" },
    { "sherd audit rec --data A.npy --labels L.npy --public-data P.npy "
      "--public-labels Q.npy --html r.html",
      "and what an attacker with data of the same kind makes of it, with pictures" },
    { "sherd audit --simulate permute-published",
      "the same for permute as it was published, on drawn digits" },
    { 0 },
};

/* clang-format off */
static const sherd__option options[] = {
    { .name = "data", .type = SHERD__FILE, .arg = "FILE", .flags = SHERD__OPT_ONLY_ARGV,
      .help = "the operand A (.npy or IDX): to count with, and for attacks by who knows it: "
              "whether what hides it depends on it, and whether its masks repeat" },
    { .name = "right", .type = SHERD__FILE, .arg = "FILE", .flags = SHERD__OPT_ONLY_ARGV,
      .help = "the operand B: to count with; under share its masks are solved for with it, too" },
    { .name = "labels", .type = SHERD__FILE, .arg = "FILE", .flags = SHERD__OPT_ONLY_ARGV,
      .help = "a label for each row of A: likewise" },
    { .name = "public-data", .type = SHERD__FILE, .arg = "FILE", .flags = SHERD__OPT_ONLY_ARGV,
      .help = "what the attacker has: other rows of the same kind" },
    { .name = "public-labels", .type = SHERD__FILE, .arg = "FILE", .flags = SHERD__OPT_ONLY_ARGV,
      .help = "and their labels" },
    { .name = "simulate", .type = SHERD__CHOICE, .arg = "FORM", .choices = choices_simulate,
      .flags = SHERD__OPT_ONLY_ARGV,
      .help = "attack no record but what nodes would see: permute-published, permute-single, "
              "permute, plain" },
    { .name = "local", .letter = 'n', .type = SHERD__INT, .arg = "N", .min = 1, .max = 1000,
      .preset = "7",
      .help = "with --simulate: how many nodes" },
    { .name = "draw", .type = SHERD__INT, .arg = "K", .min = 0, .max = 4294967295.0, .preset = "1",
      .help = "which of the possible draws of exposures and coalitions" },
    { .name = "colluding", .type = SHERD__INT, .arg = "T", .min = 1, .max = 64, .preset = "1",
      .help = "attack coalitions of T and of T+1 domains too; share: the T of the recorded run, "
              "where the record does not say it" },
    { .name = "spare", .type = SHERD__INT, .arg = "S", .min = 0, .max = 4096, .preset = "0",
      .help = "share: the --spare S of the recorded run, likewise" },
    { .name = "coalitions", .type = SHERD__INT, .arg = "K", .min = 0, .max = 100000,
      .preset = "200", .help = "of one size at most; drawn where there are more" },
    { .name = "encodings", .type = SHERD__INT, .arg = "K", .min = 1, .max = 65536, .preset = "8",
      .help = "share: right operands or tiles of a product, and products of the record, that are "
              "attacked, at most; any two of them, so that time grows with the square" },
    { .name = "rows", .type = SHERD__INT, .arg = "N", .min = 100, .max = 1000000, .preset = "10000",
      .help = "rows of a node's view, and of the public data, that attacks work with, at most" },
    { .name = "html", .type = SHERD__FILE, .arg = "FILE", .flags = SHERD__OPT_ONLY_ARGV,
      .help = "write a page with pictures; it shows data, mode 0600" },
    { .name = "show", .type = SHERD__INT, .arg = "NODE", .min = 1, .max = 1000, .preset = "3",
      .help = "the node whose pictures are shown" },
    { .name = "width", .type = SHERD__INT, .arg = "PIXELS", .min = 0, .max = 65536, .preset = "0",
      .help = "columns to a line of a picture [a square, where A's columns are one]" },
    { 0 },
};
/* clang-format on */

const sherd__verb sherd__verb_audit = {
    .name = "audit",
    .usage = "[DIR...]",
    .summary = "what did each node learn? attacks what was recorded",
    .details =
        "Reads a coordinator's record (multiply --record), or records of nodes (node --record), "
        "and attacks what each node saw, and what coalitions of T and of T+1 domains saw together: "
        "entries that stand there as they are, the zero mask, columns recognised in public data by "
        "their statistics and correlations, labels, and whole rows rebuilt by a linear attacker "
        "and by nearest neighbours. Each figure stands beside what chance gives; tests are "
        "corrected together (Holm, family-wise 1e-6). --labels serve only to count what attacks "
        "got right, and so do --data and --right, but for shares: these are also attacked by who "
        "knows the operands.\n\n--simulate needs no record: it builds what nodes would see, of "
        "--data or of drawn digits.",
    .examples = examples,
    .options = options,
    .args_min = 0,
    .args_max = -1,
    .run = run_audit,
};
