/* The report as JSON and as a page. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "audit/audit.h"
#include "core/alloc.h"

static sherd_audit a_report(void)
{
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
    sherd__audit_scope_add(&r, "node", 1, 2, 2, 0);
    assert_int_equal(sherd__audit_judge(&r, NULL), 0);
    sherd__audit_warn(&r, "cut at byte %d", 7);
    assert_int_equal(sherd__gallery_init(&r.gallery, "node-1", 2, 9), 0);
    for (size_t i = 0; i < 4 * 2 * 9; i++) r.gallery.pixels[i] = (uint8_t)i;
    return r;
}

static void end(sherd_audit *r)
{
    sherd__audit_fini(r);
}

/* Returns the report's JSON, which the caller decrefs. */
static json_t *json_of(sherd_audit *r)
{
    const char *text;
    assert_int_equal(sherd_audit_json(r, &text, NULL), 0);
    json_t *o = json_loads(text, 0, NULL);
    assert_non_null(o);
    return o;
}

static void json_has_every_figure_with_its_chance_value(void **state)
{
    (void)state;
    sherd_audit r = a_report();
    json_t *o = json_of(&r);
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
    end(&r);
}

static void pictures_are_listed_with_their_captions(void **state)
{
    (void)state;
    static const char *const names[] = { "truth", "sent", "placed", "rebuilt" };
    sherd_audit r = a_report(), none = { 0 };
    for (size_t i = 0; i < 4; i++) {
        const sherd_audit_picture *p = sherd_audit_picture_at(&r, i);
        assert_non_null(p);
        assert_string_equal(p->name, names[i]);
        assert_int_equal(p->rows, 2);
        assert_int_equal(p->cols, 9);
        assert_int_equal(p->pixels[0], 18 * i);
        assert_int_equal(p->pixels[17], 18 * i + 17);
    }
    assert_string_equal(sherd_audit_picture_at(&r, 1)->caption,
                        "what node-1 was sent of them, each value in its place");
    assert_null(sherd_audit_picture_at(&r, 4));
    assert_null(sherd_audit_picture_at(&none, 0));
    end(&r);
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
    const char *page;
    assert_int_equal(sherd_audit_html(&r, 0, &page, NULL), 0);
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
    assert_non_null(strstr(page, "The most certain finding: node-1: half of &lt;them&gt;."));
    assert_int_equal(count(page, "class=\"flag\""), 2); /* the figure, and its finding */
    assert_non_null(strstr(page, "cut at byte 7"));
    /* two pictures of 3 x 3, with their gaps: doubled on the page */
    assert_int_equal(count(page, "width=\"20\" height=\"6\""), 4);
    for (size_t n = 1; n < 200; n++) {
        sherd__alloc_fail_nth(n);
        int err = sherd_audit_html(&r, 0, &page, NULL);
        size_t made = sherd__alloc_fail_nth(0);
        assert_int_equal(err, made >= n ? SHERD_ENOMEM : 0);
        assert_true((page != NULL) == !err);
        if (!err) break;
    }
    end(&r);
}

/* Figures come before the findings, which are folded. Red marks what was found, and controls that
 * were not; a p-value below 1e-300 is not spelt out. */
static void a_page_begins_with_figures_and_marks_what_was_found(void **state)
{
    (void)state;
    static const struct {
        const char *who;
        double value, ln_p;
        bool control, flagged;
    } rows[] = {
        { "node-1", 0.1, -0.7, false, false }, { "node-2", 0.9, -800, false, true },
        { "node-3", 0.3, -1.4, false, false }, { "broken", 1, -900, true, true },
        { "missed", 0, 0, true, false },
    };
    sherd_audit r = { .subject = "s", .form = "f", .rows = 2, .cols = 3, .nodes = 3 };
    const char *page;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sherd_audit_finding f = { .test = rows[i].control ? "control" : "verbatim",
                                  .statistic = "share",
                                  .subject = "A",
                                  .value = rows[i].value,
                                  .chance = 0.25,
                                  .ln_p = rows[i].ln_p,
                                  .control = rows[i].control,
                                  .sentence = "it was sent" };
        snprintf(f.who, sizeof f.who, "%s", rows[i].who);
        assert_int_equal(sherd__findings_add(&r.findings, &f), 0);
    }
    sherd__audit_scope_add(&r, "node", 1, 3, 3, 0);
    (void)!sherd__audit_judge(&r, NULL); /* the missed control is an error */
    assert_int_equal(sherd_audit_html(&r, 0, &page, NULL), 0);
    assert_non_null(strstr(page, "<td>3</td><td>0.3</td><td>0.9</td><td>0.25</td>"));
    assert_int_equal(count(page, "<details><summary>All findings (5)</summary>"), 1);
    assert_true(strstr(page, "<td>0.3</td><td>0.9</td>") < strstr(page, "<details>"));
    assert_int_equal(count(page, "<tr class=\"flag\"><td><b>verbatim</b> share</td>"), 2);
    assert_int_equal(count(page, "<tr class=\"flag\"><td><b>control</b> share</td><td>A</td>"
                                 "<td><span>missed</span> </td>"),
                     1);
    assert_int_equal(count(page, "class=\"flag\""), 3);
    assert_int_equal(count(page, "<td>&lt; 1e-300</td>"), 3);
    assert_int_equal(count(page, "<td>MISSED</td>"), 1);
    sherd__audit_fini(&r);
}

/* A bar is for what is at most 1. Names are broken between them, not at their hyphens. */
static void a_page_has_bars_for_fractions_and_whole_names(void **state)
{
    (void)state;
    sherd_audit r = { .subject = "s", .form = "f", .rows = 2, .cols = 3, .nodes = 3 };
    const double values[] = { 0.5, 227.9, 1.01 }, chances[] = { NAN, 255, 1 };
    const char *page;
    for (size_t i = 0; i < 3; i++) {
        sherd_audit_finding f = { .test = "verbatim",
                                  .statistic = "share",
                                  .subject = "A",
                                  .who = "simulated-1, simulated-<2>",
                                  .value = values[i],
                                  .chance = chances[i],
                                  .ln_p = -0.1,
                                  .sentence = "it was sent" };
        f.statistic = i == 0 ? "share" : i == 1 ? "chi2" : "smallness";
        assert_int_equal(sherd__findings_add(&r.findings, &f), 0);
    }
    sherd__audit_scope_add(&r, "node", 1, 3, 3, 0);
    assert_int_equal(sherd__audit_judge(&r, NULL), 0);
    assert_int_equal(sherd_audit_html(&r, 0, &page, NULL), 0);
    assert_int_equal(count(page, "<div class=\"bar\"><i style=\"width:50.0%\""), 2);
    assert_int_equal(count(page, "<div class=\"bar\">"), 2); /* the figure, and its finding */
    assert_int_equal(count(page, "<td><span>simulated-1,</span> <span>simulated-&lt;2&gt;</span> "),
                     6);
    sherd__audit_fini(&r);
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
    const char *page;
    r.domains = 3;
    json_t *o = json_of(&r);
    assert_true(json_is_false(json_object_get(o, "cut")));
    assert_int_equal(json_integer_value(json_object_get(o, "domains_covered")), 3);
    assert_true(json_is_null(json_object_get(o, "reach")));
    sherd__audit_reach(&r, &v);
    json_decref(o);
    o = json_of(&r);
    assert_true(json_is_true(json_object_get(o, "cut")));
    assert_int_equal(json_integer_value(json_object_get(o, "domains_covered")), 2);
    assert_string_equal(json_string_value(json_object_get(o, "reach")), says);
    assert_int_equal(sherd_audit_html(&r, 0, &page, NULL), 0);
    assert_int_equal(count(page, says), 1);
    v.cut = true;
    sherd__audit_reach(&r, &v);
    assert_non_null(strstr(r.reach, ", of those that are in it"));
    json_decref(o);
    end(&r);
}

static void notes_beyond_the_maximum_are_counted(void **state)
{
    (void)state;
    sherd_audit r = a_report();
    for (int i = 1; i < 20; i++) sherd__audit_warn(&r, "note %d", i);
    assert_int_equal(r.warnings_len, 16);
    assert_string_equal(r.warnings[14], "note 14");
    assert_string_equal(r.warnings[15], "and 5 notes more");
    end(&r);
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
    end(&r);
}

static void add_control(sherd_audit *r, const char *test, const char *subject, const char *who,
                        double value, double ln_p)
{
    sherd_audit_finding f = {
        .test = test, .statistic = "s", .value = value, .ln_p = ln_p, .control = true
    };
    snprintf(f.subject, sizeof f.subject, "%s", subject);
    snprintf(f.who, sizeof f.who, "%s", who);
    assert_int_equal(sherd__findings_add(&r->findings, &f), 0);
}

/* Controls that were made for the audit, by name, and last the record's own coalition. */
static void controls_have_their_best_attack_and_game(void **state)
{
    (void)state;
    sherd_audit r = a_report();
    size_t figures = r.figures_len;
    add_control(&r, "control game", "mask reuse", "a", 0.4, -40);
    add_control(&r, "control", "mask reuse", "a", 7, -50);
    add_control(&r, "control", "mask reuse", "a", 8, -60);
    add_control(&r, "control game", "mask reuse", "a", 0.9, -90);
    add_control(&r, "control", "permute", "a", 8, -70);
    add_control(&r, "coalition", "A", "domains 1, 2", 8, -30);
    add_control(&r, "coalition", "A", "domains 2, 3", 8, -35);
    add_control(&r, "reconstruction", "A", "domains 2, 4", 1, NAN);
    assert_int_equal(sherd__findings_judge(&r.findings, SHERD__AUDIT_FAMILY), 0);
    r.figures_len = 0;
    assert_int_equal(sherd__audit_figures(&r), 0);
    assert_true(r.figures_len == figures && r.figures[0].count == 1 && r.figures[0].flagged);
    const sherd_audit_control *c = sherd_audit_control_at(&r, 0);
    assert_string_equal(c->name, "permute");
    assert_true(c->ln_p == -70 && isnan(c->advantage) && c->flagged && !c->who);
    c = sherd_audit_control_at(&r, 1);
    assert_string_equal(c->name, "mask reuse");
    assert_true(c->ln_p == -60 && c->advantage == 0.9 && c->flagged);
    c = sherd_audit_control_at(&r, 2);
    assert_string_equal(c->who, "domains 2, 3");
    assert_true(c->ln_p == -35 && c->flagged);
    assert_null(sherd_audit_control_at(&r, 3));
    end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_has_every_figure_with_its_chance_value),
        cmocka_unit_test(pictures_are_listed_with_their_captions),
        cmocka_unit_test(a_page_loads_nothing_and_escapes_all_texts),
        cmocka_unit_test(a_page_begins_with_figures_and_marks_what_was_found),
        cmocka_unit_test(a_page_has_bars_for_fractions_and_whole_names),
        cmocka_unit_test(a_truncated_record_is_reported_in_json_and_on_the_page),
        cmocka_unit_test(notes_beyond_the_maximum_are_counted),
        cmocka_unit_test(an_undetected_control_ends_the_audit),
        cmocka_unit_test(controls_have_their_best_attack_and_game),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
