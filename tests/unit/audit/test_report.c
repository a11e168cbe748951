/* The report as JSON and as a page. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "audit/audit.h"
#include "core/alloc.h"

static sherd_audit a_report(void)
{
    static uint8_t pictures[4][2 * 9];
    sherd_audit r = { .subject = "a record <script>alert(1)</script>",
                      .form = "x & \"y\"",
                      .rows = 20,
                      .cols = 9,
                      .nodes = 2,
                      .colluding = 1,
                      .public_rows = 5 };
    sherd_audit_finding f = { .test = "columns",
                              .statistic = "own",
                              .subject = "A",
                              .who = "node-1",
                              .value = 0.5,
                              .chance = 1.0 / 9,
                              .low = 0.2,
                              .high = 0.8,
                              .ln_p = -30,
                              .sentence = "half of <them>" };
    sherd_audit_finding m = { .test = "zero mask",
                              .statistic = "F1",
                              .who = "node-2",
                              .value = 1,
                              .chance = NAN,
                              .low = NAN,
                              .high = NAN,
                              .ln_p = NAN,
                              .sentence = "a measurement" };
    assert_int_equal(sherd__findings_add(&r.findings, &f), 0);
    assert_int_equal(sherd__findings_add(&r.findings, &m), 0);
    assert_int_equal(sherd__audit_judge(&r, NULL), 0);
    r.scopes[r.scopes_len++] = (sherd_audit_scope){ true, 1, 2, 2, 0, 2 };
    sherd__audit_warn(&r, "cut at byte %d", 7);
    for (unsigned i = 0; i < 4; i++) memset(pictures[i], (int)(60 * i + 1), sizeof pictures[i]);
    r.gallery = (sherd__gallery){ .rows = 2,
                                  .cols = 9,
                                  .truth = pictures[0],
                                  .seen = pictures[1],
                                  .placed = pictures[2],
                                  .rebuilt = pictures[3],
                                  .who = "node-1" };
    return r;
}

static void json_has_every_figure_with_its_chance_value(void **state)
{
    (void)state;
    sherd_audit r = a_report();
    json_t *o = json_object();
    assert_int_equal(sherd__audit_json(&r, o), 0);
    const json_t *l = json_object_get(o, "findings"), *f = json_array_get(l, 0),
                 *m = json_array_get(l, 1);
    assert_int_equal(json_array_size(l), 2);
    assert_true(json_is_true(json_object_get(f, "flagged")));
    assert_true(json_real_value(json_object_get(f, "chance")) == 1.0 / 9);
    assert_true(json_real_value(json_object_get(f, "ln_p")) == -30);
    assert_true(json_real_value(json_object_get(f, "ln_threshold")) < 0);
    assert_int_equal(json_integer_value(json_object_get(f, "size")), 1);
    assert_true(json_is_null(json_object_get(m, "chance")) &&
                json_is_null(json_object_get(m, "ln_p")));
    assert_int_equal(json_integer_value(json_object_get(o, "tests")), 1);
    assert_int_equal(json_integer_value(json_object_get(o, "flagged")), 1);
    const json_t *scope = json_array_get(json_object_get(o, "coalitions"), 0);
    assert_int_equal(json_integer_value(json_object_get(scope, "attacked")), 2);
    assert_string_equal(json_string_value(json_array_get(json_object_get(o, "warnings"), 0)),
                        "cut at byte 7");
    json_decref(o);
    sherd__findings_fini(&r.findings);
}

static size_t count(const char *text, const char *what)
{
    size_t n = 0;
    for (const char *p = text; (p = strstr(p, what)); p += strlen(what)) n++;
    return n;
}

static void a_page_loads_nothing_and_escapes_all_texts(void **state)
{
    (void)state;
    sherd_audit r = a_report();
    char *page;
    size_t len;
    assert_int_equal(sherd__audit_html(&r, 0, &page, &len), 0);
    assert_int_equal(strlen(page), len);
    assert_int_equal(count(page, "<script"), 0);
    assert_int_equal(count(page, "://"), 0);
    assert_int_equal(count(page, "src=\""), 4);
    assert_int_equal(count(page, "src=\"data:image/png;base64,iVBOR"), 4);
    assert_int_equal(count(page, "href="), 0);
    assert_int_equal(count(page, "url("), 0);
    assert_non_null(strstr(page, "&lt;script&gt;"));
    assert_non_null(strstr(page, "x &amp; &quot;y&quot;"));
    assert_non_null(strstr(page, "half of &lt;them&gt;"));
    assert_non_null(strstr(page, "default-src 'none'"));
    assert_int_equal(count(page, "class=\"flag\""), 1);
    assert_non_null(strstr(page, "cut at byte 7"));
    /* two pictures of 3 x 3, with their gaps: doubled on the page */
    assert_int_equal(count(page, "width=\"20\" height=\"6\""), 4);
    sherd__free(page);
    for (size_t n = 1; n < 200; n++) {
        sherd__alloc_fail_nth(n);
        int err = sherd__audit_html(&r, 0, &page, &len);
        size_t made = sherd__alloc_fail_nth(0);
        assert_int_equal(err, made >= n ? SHERD_ENOMEM : 0);
        if (err) continue;
        sherd__free(page);
        break;
    }
    sherd__findings_fini(&r.findings);
}

/* The record of one of three domains was truncated; all three forms of the report say so. */
static void a_truncated_record_is_reported_in_json_and_on_the_page(void **state)
{
    (void)state;
    sherd__node_view nodes[4] = { { .domain = 0 },
                                  { .domain = 1 },
                                  { .domain = 2 },
                                  { .domain = 1, .trouble = "node-4.received was cut" } };
    sherd__views v = { .nodes = nodes, .len = 4, .domains_len = 3 };
    sherd_audit r = a_report();
    static const char says[] = "The record is cut: this covers 2 of 3 domains in full.";
    json_t *o = json_object();
    char *page;
    size_t len;
    r.domains = 3;
    assert_int_equal(sherd__audit_json(&r, o), 0);
    assert_true(json_is_false(json_object_get(o, "cut")));
    assert_int_equal(json_integer_value(json_object_get(o, "domains_covered")), 3);
    assert_true(json_is_null(json_object_get(o, "reach")));
    sherd__audit_reach(&r, &v);
    assert_int_equal(sherd__audit_json(&r, o), 0);
    assert_true(json_is_true(json_object_get(o, "cut")));
    assert_int_equal(json_integer_value(json_object_get(o, "domains_covered")), 2);
    assert_string_equal(json_string_value(json_object_get(o, "reach")), says);
    assert_int_equal(sherd__audit_html(&r, 0, &page, &len), 0);
    assert_int_equal(count(page, says), 1);
    sherd__free(page);
    v.cut = true;
    sherd__audit_reach(&r, &v);
    assert_non_null(strstr(r.reach, ", of those that are in it"));
    json_decref(o);
    sherd__findings_fini(&r.findings);
}

static void notes_beyond_the_maximum_are_counted(void **state)
{
    (void)state;
    sherd_audit r = a_report();
    for (int i = 1; i < 20; i++) sherd__audit_warn(&r, "note %d", i);
    assert_int_equal(r.warnings_len, 16);
    assert_string_equal(r.warnings[14], "note 14");
    assert_string_equal(r.warnings[15], "and 5 notes more");
    sherd__findings_fini(&r.findings);
}

static void an_undetected_control_ends_the_audit(void **state)
{
    (void)state;
    sherd_audit r = a_report();
    sherd_diag d = { 0 };
    sherd_audit_finding f = { .test = "control",
                              .statistic = "p",
                              .who = "permute",
                              .subject = "permute",
                              .ln_p = log(1e-9),
                              .control = true };
    assert_int_equal(sherd__findings_add(&r.findings, &f), 0);
    assert_int_equal(sherd__audit_judge(&r, &d), SHERD_EINTERNAL);
    assert_non_null(strstr(d.message, "negative control"));
    sherd__findings_fini(&r.findings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_has_every_figure_with_its_chance_value),
        cmocka_unit_test(a_page_loads_nothing_and_escapes_all_texts),
        cmocka_unit_test(a_truncated_record_is_reported_in_json_and_on_the_page),
        cmocka_unit_test(notes_beyond_the_maximum_are_counted),
        cmocka_unit_test(an_undetected_control_ends_the_audit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
