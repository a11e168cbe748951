/* Audits through the public header: of simulations and of records, and how a report is read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/rand.h"
#include "sherd/audit.h"
#include "tests/unit/audit/spool.h"

enum { N = 300, K = 16, P = 200, NODES = 3 };

static uint8_t data[N * K], labels[N], others[P * K], their_labels[P];

/* Rows of two kinds, which differ in every column; columns have levels of their own. */
static void draw(uint8_t *x, uint8_t *of, size_t rows, uint64_t seed)
{
    sherd__seeded state;
    sherd__entropy e = sherd__entropy_seeded(&state, seed);
    for (size_t r = 0; r < rows; r++) {
        of[r] = (uint8_t)sherd__entropy_below(&e, 2);
        for (size_t c = 0; c < K; c++)
            x[r * K + c] = (uint8_t)(12 * ((c * 7 + of[r] * 5) % K) + sherd__entropy_below(&e, 20));
    }
}

static int setup(void **state)
{
    (void)state;
    draw(data, labels, N, 1);
    draw(others, their_labels, P, 2);
    return 0;
}

static sherd_audit_options options(void)
{
    return (sherd_audit_options){ .size = sizeof(sherd_audit_options),
                                  .data = sherd_view_c(data, SHERD_U8, N, K),
                                  .labels = sherd_view_c(labels, SHERD_U8, N, 1),
                                  .public_data = sherd_view_c(others, SHERD_U8, P, K),
                                  .public_labels = sherd_view_c(their_labels, SHERD_U8, 1, P),
                                  .draw = 1 };
}

static sherd_audit_info info_of(const sherd_audit *a)
{
    sherd_audit_info x = { .size = sizeof x };
    assert_int_equal(sherd_audit_get(a, &x, NULL), 0);
    return x;
}

static void a_simulation_is_audited_from_views(void **state)
{
    sherd_audit_options opt = options();
    sherd_audit *a;
    double verbatim = 0;
    size_t flagged = 0, tests = 0, n = 0;
    (void)state;
    assert_int_equal(sherd_audit_simulate(&a, SHERD_AUDIT_PERMUTE, NODES, &opt, NULL), 0);
    sherd_audit_info x = info_of(a);
    assert_string_equal(x.subject, "simulated, 3 nodes");
    assert_true(x.rows == N && x.cols == K && x.nodes == NODES && x.domains == NODES);
    assert_true(x.truth && x.labels && x.public_rows == P && x.colluding == 1);
    assert_true(!x.cut && !x.reach && x.domains_covered == NODES && x.family == 1e-6);
    for (const sherd_audit_finding *f; (f = sherd_audit_finding_at(a, n)); n++) {
        flagged += f->flagged && !f->control;
        tests += !isnan(f->ln_p) && !f->control;
        if (strcmp(f->test, "verbatim") == 0 && f->size == 1) verbatim += f->value;
        assert_true((f->size == 0) == !f->unit && isnan(f->ln_p) == isnan(f->ln_threshold));
    }
    assert_true(verbatim == 1 && flagged > 0);
    assert_true(x.flagged == flagged && x.tests == tests && x.left_out == 0);
    assert_string_equal(sherd_audit_scope_at(a, 0)->unit, "node");
    const sherd_audit_scope *pairs = sherd_audit_scope_at(a, 1);
    assert_true(pairs->size == 2 && pairs->attacked == 3 && pairs->of == 3 && pairs->end == n);
    assert_null(sherd_audit_scope_at(a, 2));
    assert_true(sherd_audit_unseen_at(a, 6) && !sherd_audit_unseen_at(a, 7));
    sherd_audit_free(a);
}

static void figures_are_the_findings_of_a_scope(void **state)
{
    sherd_audit_options opt = options();
    sherd_audit *a;
    size_t places = 0;
    int32_t scope = SHERD_AUDIT_SENT;
    (void)state;
    assert_int_equal(sherd_audit_simulate(&a, SHERD_AUDIT_PERMUTE, NODES, &opt, NULL), 0);
    for (size_t i = 0; sherd_audit_figure_at(a, i); i++) {
        const sherd_audit_figure *f = sherd_audit_figure_at(a, i);
        const sherd_audit_finding *w = sherd_audit_finding_at(a, (size_t)f->worst);
        size_t below = 0, above = 0, count = 0;
        assert_true(f->scope == scope || f->scope == ++scope);
        places |= (size_t)1 << (f->scope + 1);
        for (size_t k = 0; sherd_audit_finding_at(a, k); k++) {
            const sherd_audit_finding *x = sherd_audit_finding_at(a, k);
            if (x->size != w->size || x->test != f->test || x->statistic != f->statistic) continue;
            count++;
            below += x->value < f->median;
            above += x->value > f->median;
            assert_true(isnan(w->ln_p) ? x->value <= w->value : x->ln_p >= w->ln_p);
            assert_true(f->flagged || !x->flagged);
        }
        assert_true(f->count == count && below <= count / 2 && above <= count / 2);
        assert_int_equal(f->fraction, !strstr(f->test, "rebuil") && w->test[0] != 'z');
    }
    assert_int_equal(places, 7);
    assert_null(sherd_audit_control_at(a, 0));
    sherd_audit_free(a);
}

static void a_report_is_one_object_under_the_names_of_its_fields(void **state)
{
    sherd_audit_options opt = options();
    sherd_audit *a;
    const char *text, *again;
    size_t count, i = 0;
    const char *key;
    json_t *value;
    (void)state;
    assert_int_equal(sherd_audit_simulate(&a, SHERD_AUDIT_PERMUTE_SINGLE, NODES, &opt, NULL), 0);
    assert_int_equal(sherd_audit_json(a, &text, NULL), 0);
    json_t *o = json_loads(text, 0, NULL);
    const sherd_field *f = sherd_audit_info_fields(&count);
    json_object_foreach(o, key, value)
    {
        if (i < count) assert_string_equal(key, f[i].name);
        i++;
    }
    assert_int_equal(i, count + 4);
    const json_t *first = json_array_get(json_object_get(o, "findings"), 0);
    f = sherd_audit_finding_fields(&count);
    assert_int_equal(json_object_size(first), count);
    for (i = 0; i < count; i++) assert_non_null(json_object_get(first, f[i].name));
    assert_true(json_is_null(json_object_get(first, "size")));
    assert_true(json_is_null(json_object_get(first, "ln_threshold")));
    json_decref(o);
    char *kept = strdup(text);
    assert_int_equal(sherd_audit_json(a, &again, NULL), 0);
    assert_string_equal(kept, again);
    free(kept);
    for (size_t n = 1; n < 10; n++) {
        sherd__alloc_fail_nth(n);
        int err = sherd_audit_json(a, &again, NULL);
        size_t made = sherd__alloc_fail_nth(0);
        assert_int_equal(err, made >= n ? SHERD_ENOMEM : 0);
        if (!err) break;
    }
    sherd_audit_free(a);
}

static void a_page_is_private_and_complete_or_absent(void **state)
{
    sherd_audit_options opt = options();
    sherd_audit *a;
    const char *page;
    char path[200], found[8] = "";
    struct stat st;
    (void)state;
    opt.show = 2;
    assert_int_equal(sherd_audit_simulate(&a, SHERD_AUDIT_PERMUTE, NODES, &opt, NULL), 0);
    assert_int_equal(sherd_audit_html(a, 4, &page, NULL), 0);
    assert_non_null(strstr(page, "what node-2 was sent of them"));
    size_t len = strlen(page);
    snprintf(path, sizeof path, "%s/page.html", spool_folder());
    assert_int_equal(sherd_audit_html_save(a, 4, path, NULL), 0);
    assert_true(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600);
    assert_int_equal(st.st_size, len);
    FILE *f = fopen(path, "w");
    assert_true(f && fputs("earlier", f) > 0 && fclose(f) == 0);
    sherd__alloc_fail_nth(1);
    assert_int_equal(sherd_audit_html_save(a, 4, path, NULL), SHERD_ENOMEM);
    sherd__alloc_fail_nth(0);
    f = fopen(path, "r");
    assert_true(f && fread(found, 1, 7, f) == 7 && fclose(f) == 0);
    assert_string_equal(found, "earlier");
    assert_int_equal(sherd_audit_html_save(a, 4, "/nowhere/page.html", NULL), SHERD_EOPEN);
    sherd_audit_free(a);
}

/* ---- records --------------------------------------------------------------------------------- */

static uint8_t left[2000], right[400];

/* One node that was sent the first K columns of 100 rows. */
static const char *a_record(void)
{
    static spool in, out;
    sherd__fragment_info l, r,
        result = {
            .origin = SHERD__RESULT, .dtype = SHERD_F64, .rows = 100, .cols = 3, .len = 2400
        };
    in.len = out.len = 0;
    spool_hello(&in);
    spool_welcome(&out);
    (void)spool_group(&r, data, K, 3, right);
    (void)spool_group(&l, data, 100, K, left);
    spool_put(&in, 5, 1, &r, right);
    spool_put(&in, 5, 2, &l, left);
    spool_task(&in, 5, 1, 2, 1, NULL, 0, &result);
    const char *dir = spool_folder();
    spool_file(dir, "node-1.sent", in.bytes, in.len);
    spool_file(dir, "node-1.received", out.bytes, out.len);
    return dir;
}

static void a_record_is_audited_from_its_folder(void **state)
{
    const char *dir = a_record();
    sherd_audit_options opt = options();
    sherd_audit *a;
    (void)state;
    opt.data.rows = opt.labels.rows = 100;
    assert_int_equal(sherd_audit_records(&a, &dir, 1, &opt, NULL), 0);
    sherd_audit_info x = info_of(a);
    assert_string_equal(x.form, "values in clear");
    assert_true(x.nodes == 1 && !x.domains_known && x.cut && x.reach);
    assert_string_equal(sherd_audit_finding_at(a, 0)->test, "in clear");
    assert_true(sherd_audit_finding_at(a, 1)->value == 1); /* all of it, as it is */
    assert_non_null(strstr(sherd_audit_warning_at(a, 0), "no index"));
    sherd_audit_free(a);
    assert_int_equal(sherd_audit_records(&a, &dir, 1, NULL, NULL), 0); /* nothing is known */
    assert_true(!info_of(a).truth && info_of(a).flagged == 1);
    assert_non_null(strstr(sherd_audit_warning_at(a, 1), "without the operand A"));
    sherd_audit_free(a);
}

/* Products of ones measure links. A product in clear beside them is audited, however small. */
static void products_of_ones_are_left_out(void **state)
{
    static uint8_t ones[64 * K], block[64 * K + 8];
    static spool in;
    sherd_audit_options opt = options();
    sherd__fragment_info info, result = {
        .origin = SHERD__RESULT, .dtype = SHERD_F64, .rows = 64, .cols = 3, .len = 64 * 3 * 8
    };
    sherd_audit *a;
    sherd_diag d = { 0 };
    (void)state;
    memset(ones, 1, sizeof ones);
    const char *dir = a_record();
    in.len = 0;
    spool_hello(&in);
    (void)spool_group(&info, ones, K, 3, block);
    spool_put(&in, 7, 1, &info, block);
    for (uint32_t i = 0; i < 4; i++) {
        (void)spool_group(&info, ones, 64, K, block);
        spool_put(&in, 7, 2 + i, &info, block);
        spool_task(&in, 7, 1 + i, 2 + i, 1, NULL, 0, &result);
    }
    spool_file(dir, "node-2.sent", in.bytes, in.len);
    in.len = 0;
    spool_welcome(&in);
    spool_file(dir, "node-2.received", in.bytes, in.len);
    opt.data.rows = opt.labels.rows = 100;
    assert_int_equal(sherd_audit_records(&a, &dir, 1, &opt, NULL), 0);
    assert_string_equal(info_of(a).form, "values in clear");
    assert_true(info_of(a).nodes == 2 && info_of(a).flagged > 0);
    bool noted = false;
    const char *note;
    for (size_t i = 0; (note = sherd_audit_warning_at(a, i)); i++)
        noted = noted || strstr(note, "1 product of ones is left out");
    assert_true(noted);
    sherd_audit_free(a);
    char path[200];
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/node-1.%s", dir, i ? "sent" : "received");
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(sherd_audit_records(&a, &dir, 1, &opt, &d), SHERD_EFORMAT);
    assert_non_null(strstr(d.message, "no product other than products of ones"));
}

static void an_audit_without_memory_fails_and_leaves_nothing(void **state)
{
    const char *dir = a_record();
    sherd_audit_options opt = options();
    sherd_audit *a;
    (void)state;
    opt.data.rows = opt.labels.rows = 100;
    for (int simulated = 0; simulated < 2; simulated++)
        for (size_t n = 1;; n++) {
            sherd__alloc_fail_nth(n);
            int err = simulated ? sherd_audit_simulate(&a, SHERD_AUDIT_PERMUTE, 2, &opt, NULL)
                                : sherd_audit_records(&a, &dir, 1, &opt, NULL);
            size_t made = sherd__alloc_fail_nth(0);
            assert_int_equal(err, made >= n ? SHERD_ENOMEM : 0);
            assert_true((a != NULL) == !err);
            sherd_audit_free(a);
            if (!err) break;
        }
}

/* ---- hooks and errors ------------------------------------------------------------------------ */

typedef struct watched {
    uint64_t done, total, calls, stop_at;
} watched;

static bool interrupted(void *ctx)
{
    watched *w = ctx;
    return ++w->calls == w->stop_at;
}

static void progress(void *ctx, const sherd_progress *p)
{
    watched *w = ctx;
    w->done = p->done;
    w->total = p->total;
}

static void an_audit_reports_progress_and_can_be_interrupted(void **state)
{
    sherd_audit_options opt = options();
    sherd_audit *a;
    watched w = { 0 };
    sherd_diag d = { 0 };
    (void)state;
    opt.hooks = (sherd_hooks){ interrupted, NULL, progress, &w };
    assert_int_equal(sherd_audit_simulate(&a, SHERD_AUDIT_PERMUTE, NODES, &opt, NULL), 0);
    assert_true(w.calls == 6 && w.done == 6 && w.total == 6); /* three nodes and three pairs */
    sherd_audit_free(a);
    w = (watched){ .stop_at = 4 };
    assert_int_equal(sherd_audit_simulate(&a, SHERD_AUDIT_PERMUTE, NODES, &opt, &d),
                     SHERD_EINTERRUPTED);
    assert_null(a);
    assert_non_null(strstr(d.message, "after 4 of 6 attacks"));
    opt.nodes_only = true;
    w = (watched){ 0 };
    assert_int_equal(sherd_audit_simulate(&a, SHERD_AUDIT_PERMUTE, NODES, &opt, NULL), 0);
    assert_int_equal(w.calls, 3);
    sherd_audit_free(a);
}

static void refuse(const sherd_audit_options *opt, int err, const char *says)
{
    sherd_audit *a = (sherd_audit *)(uintptr_t)1;
    sherd_diag d = { 0 };
    assert_int_equal(sherd_audit_simulate(&a, SHERD_AUDIT_PERMUTE, NODES, opt, &d), err);
    assert_null(a);
    if (!strstr(d.message, says)) fail_msg("'%s' is not in: %s", says, d.message);
}

static void views_that_do_not_belong_together_are_refused(void **state)
{
    sherd_audit_options opt = options();
    static const double halves[N] = { 0.5 };
    (void)state;
    opt.size = 0;
    refuse(&opt, SHERD_EINVAL, "sherd_audit_options.size is 0");
    opt = options();
    opt.data.data = NULL;
    refuse(&opt, SHERD_EINVAL, "labels without the data");
    opt = options();
    opt.public_data.data = NULL;
    refuse(&opt, SHERD_EINVAL, "public labels without the data");
    opt = options();
    opt.labels.rows--;
    refuse(&opt, SHERD_ESHAPE, "there are 299 x 1 labels, and A has 300 rows");
    opt = options();
    opt.labels = sherd_view_c(halves, SHERD_F64, N, 1);
    refuse(&opt, SHERD_EFORMAT, "label 0 is 0.5");
    opt = options();
    opt.public_data.cols--;
    refuse(&opt, SHERD_ESHAPE, "the public data have 15 columns, A has 16");
    opt = options();
    opt.right = (sherd_view){ .data = data, .rows = 1, .cols = 1 };
    refuse(&opt, SHERD_EINVAL, "right: 0 is not a dtype");
    opt = options();
    opt.show = 4;
    refuse(&opt, SHERD_EINVAL, "node 4 cannot be shown: there are 3 nodes");
}

static void forms_and_folders_that_do_not_exist_are_refused(void **state)
{
    const char *nowhere = "/nowhere", *empty = spool_folder();
    sherd_audit_info no_size = { 0 };
    sherd_audit_options opt = options();
    sherd_audit *a;
    (void)state;
    assert_int_equal(sherd_audit_simulate(&a, SHERD_AUDIT_SHARE, 3, &opt, NULL),
                     SHERD_EUNSUPPORTED);
    assert_int_equal(sherd_audit_simulate(&a, (sherd_audit_form)9, 3, &opt, NULL), SHERD_EINVAL);
    assert_int_equal(sherd_audit_simulate(&a, SHERD_AUDIT_PLAIN, 0, &opt, NULL), SHERD_EINVAL);
    assert_int_equal(sherd_audit_simulate(&a, SHERD_AUDIT_PLAIN, 5000, &opt, NULL), SHERD_EINVAL);
    assert_int_equal(sherd_audit_records(&a, NULL, 0, &opt, NULL), SHERD_EINVAL);
    assert_int_equal(sherd_audit_records(&a, &nowhere, 1, &opt, NULL), SHERD_EOPEN);
    assert_int_equal(sherd_audit_records(&a, &empty, 1, &opt, NULL), SHERD_EFORMAT);
    assert_null(a);
    assert_int_equal(sherd_audit_simulate(&a, SHERD_AUDIT_PLAIN, 1, &opt, NULL), 0);
    assert_int_equal(sherd_audit_get(a, &no_size, NULL), SHERD_EINVAL);
    sherd_audit_free(a);
    sherd_audit_free(NULL);
}

/* What it finds is a matter of system/cli/test_demo. */
static void a_sketch_needs_a_form_nodes_and_a_size(void **state)
{
    sherd_audit_sketched s = { .size = sizeof s };
    (void)state;
    assert_int_equal(sherd_audit_sketch(SHERD_AUDIT_SHARE, 0, &s, NULL), SHERD_EINVAL);
    assert_int_equal(sherd_audit_sketch((sherd_audit_form)5, 7, &s, NULL), SHERD_EINVAL);
    s.size = 0;
    assert_int_equal(sherd_audit_sketch(SHERD_AUDIT_SHARE, 7, &s, NULL), SHERD_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_simulation_is_audited_from_views),
        cmocka_unit_test(figures_are_the_findings_of_a_scope),
        cmocka_unit_test(a_report_is_one_object_under_the_names_of_its_fields),
        cmocka_unit_test(a_page_is_private_and_complete_or_absent),
        cmocka_unit_test(a_record_is_audited_from_its_folder),
        cmocka_unit_test(products_of_ones_are_left_out),
        cmocka_unit_test(an_audit_without_memory_fails_and_leaves_nothing),
        cmocka_unit_test(an_audit_reports_progress_and_can_be_interrupted),
        cmocka_unit_test(views_that_do_not_belong_together_are_refused),
        cmocka_unit_test(forms_and_folders_that_do_not_exist_are_refused),
        cmocka_unit_test(a_sketch_needs_a_form_nodes_and_a_size),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
