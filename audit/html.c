/*
 * The report as a page. It loads nothing: pictures are PNG in data: URLs, the style is inline,
 * there is no script, and a content security policy in its head forbids everything else. All
 * external text is escaped.
 */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "audit/audit.h"
#include "core/alloc.h"
#include "core/buf.h"
#include "core/diag.h"
#include "store/file.h"
#include "store/png.h"

#define PAGE_MAX ((size_t)256 << 20)
#define FINDINGS_MAX 4000u

/* A page being written; the first error is kept. */
typedef struct page {
    sherd__buf b;
    int err;
} page;

static void put(page *p, const char *s)
{
    if (!p->err) p->err = sherd__buf_append(&p->b, s, strlen(s));
}

static void putf(page *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void putf(page *p, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    put(p, text);
}

/* Appends external text, escaped. */
static void put_text(page *p, const char *s)
{
    for (; *s; s++) {
        char one[2] = { *s, '\0' };
        put(p, *s == '<'   ? "&lt;"
               : *s == '>' ? "&gt;"
               : *s == '&' ? "&amp;"
               : *s == '"' ? "&quot;"
                           : one);
    }
}

static void put_base64(page *p, const uint8_t *x, size_t len)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < len; i += 3) {
        size_t left = len - i;
        uint32_t v = (uint32_t)x[i] << 16 | (left > 1 ? (uint32_t)x[i + 1] << 8 : 0) |
                     (left > 2 ? x[i + 2] : 0u);
        char four[5] = { digits[v >> 18], digits[v >> 12 & 63],
                         left > 1 ? digits[v >> 6 & 63] : '=', left > 2 ? digits[v & 63] : '=',
                         '\0' };
        put(p, four);
    }
}

/* --- pictures --------------------------------------------------------------------------------- */

/* Returns columns per line: the requested width, or the side of a square. */
static size_t line_of(size_t cols, size_t width)
{
    size_t side = (size_t)lrint(sqrt((double)cols));
    if (width > 0 && cols % width == 0) return width;
    return side * side == cols ? side : cols;
}

/* Draws all rows of a gallery next to each other (one below another if they are single lines), with
   gaps. */
static int picture(page *p, const sherd_audit_picture *of, size_t width)
{
    size_t n = of->rows, cols = of->cols, w = line_of(cols, width), h = cols / w,
           gap = h > 1 ? 2 : 0, len;
    size_t all_w = h > 1 ? n * (w + gap) : w, all_h = h > 1 ? h : n;
    uint8_t *sheet = sherd__calloc(all_w, all_h), *file = NULL;
    if (!sheet) return SHERD_ENOMEM;
    memset(sheet, 64, all_w * all_h);
    for (size_t i = 0; i < n; i++)
        for (size_t y = 0; y < h; y++)
            memcpy(sheet + (h > 1 ? y * all_w + i * (w + gap) : i * all_w),
                   of->pixels + i * cols + y * w, w);
    int err = sherd__png_grey(&file, &len, sheet, all_w, all_h);
    if (!err) {
        put(p, "<figure><img alt=\"");
        put_text(p, of->caption);
        putf(p, "\" width=\"%zu\" height=\"%zu\" src=\"data:image/png;base64,", 2 * all_w,
             2 * all_h);
        put_base64(p, file, len);
        put(p, "\"><figcaption>");
        put_text(p, of->caption);
        put(p, "</figcaption></figure>\n");
    }
    sherd__free(sheet);
    sherd__free(file);
    return err;
}

static int pictures(page *p, const sherd__gallery *g, size_t width)
{
    int err = SHERD_OK;
    if (g->len) put(p, "<h2>Rows as pictures</h2>\n");
    for (size_t i = 0; i < g->len && !err; i++) err = picture(p, &g->picture[i], width);
    return err;
}

/* --- figures ---------------------------------------------------------------------------------- */

static void put_number(page *p, double v)
{
    if (isnan(v)) put(p, "<td>&ndash;</td>");
    else putf(p, "<td>%.4g</td>", v);
}

/* Draws value and chance as bars of the same scale. A figure that exceeds 1, such as a sum of
 * squares, has none. */
static void put_bar(page *p, double v, double chance)
{
    double a = fmax(v, 0), b = isnan(chance) ? 0 : fmax(chance, 0);
    if (!(a <= 1 && b < 1)) {
        put(p, "<td></td>");
        return;
    }
    putf(p,
         "<td><div class=\"bar\"><i style=\"width:%.1f%%\"></i><b "
         "style=\"left:%.1f%%\"></b></div></td>",
         100 * a, 100 * b);
}

/* A probability below 1e-300 is not spelt out: its digits say nothing more. */
static void put_p(page *p, double ln_p)
{
    if (isnan(ln_p)) put(p, "<td>&ndash;</td>");
    else if (ln_p < -300 * M_LN10) put(p, "<td>&lt; 1e-300</td>");
    else putf(p, "<td>%.2g</td>", exp(ln_p));
}

static void put_cell(page *p, const char *s)
{
    put(p, "<td>");
    put_text(p, s);
    put(p, "</td>");
}

/* Writes the names of nodes or domains. A line is broken between them only. */
static void put_names(page *p, const char *s)
{
    char name[96];
    put(p, "<td>");
    for (size_t len; *s; s += len + (s[len] == ' ')) {
        len = strcspn(s, " ");
        snprintf(name, sizeof name, "%.*s", (int)len, s);
        put(p, "<span>");
        put_text(p, name);
        put(p, "</span> ");
    }
    put(p, "</td>");
}

/* Begins a row with the name of its attack and of its figure. */
static void put_attack(page *p, bool flag, const char *test, const char *statistic)
{
    putf(p, "<tr%s><td><b>", flag ? " class=\"flag\"" : "");
    put_text(p, test);
    put(p, "</b> ");
    put_text(p, statistic);
    put(p, "</td>");
}

/* Ends a row with its sentence. */
static void put_sentence(page *p, const char *s)
{
    put(p, "<td class=\"s\">");
    put_text(p, s);
    put(p, "</td></tr>\n");
}

/* A control that was not flagged is marked like a finding: the audit itself has failed. */
static void put_finding(page *p, const sherd_audit_finding *f)
{
    put_attack(p, f->flagged != f->control, f->test, f->statistic);
    put_cell(p, f->subject);
    put_names(p, f->who);
    put_number(p, f->value);
    put_number(p, f->chance);
    put_bar(p, f->value, f->chance);
    put_p(p, f->ln_p);
    put_cell(p, f->control   ? (f->flagged ? "flagged, as expected" : "MISSED")
                : f->flagged ? "flagged"
                             : "");
    put_sentence(p, f->sentence);
}

/* Writes findings [first, end) of a scope, folded. */
static void put_findings(page *p, const sherd__findings *l, uint64_t first, uint64_t end)
{
    size_t last = end - first > FINDINGS_MAX ? first + FINDINGS_MAX : end;
    putf(p, "<details><summary>All findings (%zu)</summary>\n", (size_t)(end - first));
    put(p, "<table class=\"l\"><tr>"
           "<th>attack and figure</th><th>on</th><th>by</th><th>value</th><th>chance</"
           "th><th>value, and chance as a mark</th><th>p</th><th></th><th>in words</th></tr>\n");
    for (size_t i = first; i < last; i++) put_finding(p, &l->list[i]);
    put(p, "</table>\n");
    if (last < end) putf(p, "<p>%zu more findings are in the JSON report.</p>\n", end - last);
    put(p, "</details>\n");
}

/* Writes the figures of a scope: of each the median of its findings, and the worst one. */
static void put_figures(page *p, const sherd_audit *r, int32_t scope)
{
    bool any = false;
    for (size_t i = 0; i < r->figures_len; i++) {
        const sherd_audit_figure *x = &r->figures[i];
        if (x->scope != scope) continue;
        const sherd_audit_finding *f = &r->findings.list[x->worst];
        if (!any)
            put(p, "<table class=\"f\"><tr>"
                   "<th>attack and figure</th><th>findings</th><th>median</th><th>"
                   "worst</th><th>chance</th><th>worst, and chance as a mark</th><th>p</th><th>by"
                   "</th><th>the worst in words</th></tr>\n");
        any = true;
        put_attack(p, x->flagged, x->test, x->statistic);
        putf(p, "<td>%" PRIu32 "</td>", x->count);
        put_number(p, x->median);
        put_number(p, f->value);
        put_number(p, f->chance);
        put_bar(p, f->value, f->chance);
        put_p(p, f->ln_p);
        put_names(p, f->who);
        put_sentence(p, f->sentence);
    }
    put(p, any ? "</table>\n"
               : "<p>More than the scheme withstands: a control, which must be flagged.</p>\n");
}

static void put_scope(page *p, const sherd_audit *r, int32_t scope, uint64_t first, uint64_t end)
{
    put_figures(p, r, scope);
    put_findings(p, &r->findings, first, end);
}

static void put_all(page *p, const sherd_audit *r)
{
    size_t at = 0;
    for (uint32_t i = 0; i < r->scopes_len; i++) {
        const sherd_audit_scope *s = &r->scopes[i];
        if (s->first > at) {
            put(p, "<h2>What each node was sent</h2>\n");
            put_scope(p, r, SHERD_AUDIT_SENT, at, s->first);
        }
        if (strcmp(s->unit, "node") == 0)
            putf(p, "<h2>Each node by itself (%" PRIu32 ")</h2>\n", s->attacked);
        else if (s->size == 1)
            putf(p, "<h2>Each domain by itself (%" PRIu32 " of %" PRIu64 ")</h2>\n", s->attacked,
                 s->of);
        else
            putf(p, "<h2>Coalitions of %" PRIu32 " domains (%" PRIu32 " of %" PRIu64 ")</h2>\n",
                 s->size, s->attacked, s->of);
        put_scope(p, r, (int32_t)i, s->first, s->end);
        at = s->end;
    }
    if (at >= r->findings.len) return;
    bool sent = r->scopes_len == 0; /* figures.c counts all findings without a scope so */
    putf(p, "<h2>%s</h2>\n", sent ? "What each node was sent" : "The scheme as a whole");
    put_scope(p, r, sent ? SHERD_AUDIT_SENT : SHERD_AUDIT_WHOLE, at, r->findings.len);
}

/* Returns the flagged finding with the lowest p-value, or any if none has one; NULL if none is
 * flagged. */
static const sherd_audit_finding *most_certain(const sherd_audit *r)
{
    const sherd_audit_finding *most = NULL;
    for (size_t i = 0; i < r->findings.len; i++) {
        const sherd_audit_finding *f = &r->findings.list[i];
        if (!f->flagged || f->control) continue;
        if (!most || isnan(most->ln_p) || f->ln_p < most->ln_p) most = f;
    }
    return most;
}

static void put_verdict(page *p, const sherd_audit *r, const sherd_audit_info *info)
{
    const sherd_audit_finding *most = most_certain(r);
    put(p, "<p class=\"verdict\">");
    if (!most) {
        putf(p, "Nothing was found beyond chance%s.", r->cut ? " in what was looked at" : "");
    } else {
        put(p, "Nodes learned more than chance gives. The most certain finding: ");
        put_text(p, most->who);
        put(p, ": ");
        put_text(p, most->sentence);
        put(p, ".");
    }
    putf(p,
         "</p>\n<p>%" PRIu64 " of %zu findings are beyond chance, corrected for %zu tests (Holm, "
         "family-wise %.0e). Chance is what an attacker gets who has seen nothing.</p>\n",
         info->flagged, r->findings.len, r->findings.tests, SHERD__AUDIT_FAMILY);
}

/* The numbers of both tables, by the places of their columns. */
#define NUMBERS                                                                                    \
    ".f td:nth-child(2),.f td:nth-child(3),.f td:nth-child(4),.f td:nth-child(5),.f "              \
    "td:nth-child(7),.l td:nth-child(4),.l td:nth-child(5),.l td:nth-child(7)"

/* On a narrow screen a row is its words and its bar below each other: the sentence has the numbers
 * too. */
static const char head[] =
    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; "
    "style-src 'unsafe-inline'\">\n<meta name=\"viewport\" content=\"width=device-width, "
    "initial-scale=1\">\n<title>sherd audit</title>\n<style>"
    "body{font:15px/1.45 sans-serif;margin:2em;max-width:90em;color:#222}"
    "table{border-collapse:collapse}td,th{padding:.15em .6em;text-align:left;border-bottom:1px "
    "solid #ddd}td.s{color:#555;font-size:13px}.flag{background:"
    "#fff1ee}.bar{position:relative;width:7em;height:.9em;background:#eee}.bar "
    "i{position:absolute;left:0;top:0;bottom:0;background:#889}.flag .bar i{background:#c33}"
    "summary{cursor:pointer;color:#555;margin:.4em 0}.bar "
    "b{position:absolute;top:-.15em;bottom:-.15em;width:2px;background:#000}figure{margin:.6em "
    "0}img{image-rendering:pixelated;max-width:100%}figcaption{color:#555}.verdict{font-size:1.2em;"
    "font-weight:bold}td.s{min-width:18em}td:first-child{min-width:11em}td "
    "span{white-space:nowrap}" NUMBERS
    "{white-space:nowrap}@media(max-width:60em){body{margin:1em}th{display:none}tr{display:flex;"
    "flex-wrap:wrap;gap:0 1em;padding:.4em 0;border-bottom:1px solid #ddd}td{border:0;padding:.1em "
    ".3em}td.s,td:first-child,td:nth-child(6){flex-basis:100%}td:empty{display:none}" NUMBERS
    "{display:none}}</style></head><body>\n<h1>What the nodes learned</h1>\n";

static void put_head(page *p, const sherd_audit *r, const sherd_audit_info *info)
{
    put(p, head);
    put(p, "<p>");
    put_text(p, r->subject);
    put(p, ": ");
    put_text(p, r->form);
    putf(p,
         ". A is %" PRIu64 " x %" PRIu64 "; %" PRIu32 " nodes in %" PRIu32
         " domains%s; side information: %" PRIu64 " rows%s.</p>\n",
         r->rows, r->cols, r->nodes, r->domains,
         r->domains_known ? "" : ", each node counted as one", r->public_rows,
         r->labels ? " with labels" : "");
    put_verdict(p, r, info);
    if (r->cut) {
        put(p, "<p class=\"verdict\">");
        put_text(p, r->reach);
        put(p, "</p>\n");
    }
    for (uint32_t i = 0; i < r->warnings_len; i++) {
        put(p, "<p>Note: ");
        put_text(p, r->warnings[i]);
        put(p, "</p>\n");
    }
}

static void put_unseen(page *p, const sherd_audit *r)
{
    const char *text;
    put(p, "<h2>What this audit does not see</h2>\n<ul>\n");
    for (size_t i = 0; (text = sherd_audit_unseen_at(r, i)); i++) {
        put(p, "<li>");
        put_text(p, text);
        put(p, "</li>\n");
    }
    put(p, "</ul>\n</body></html>\n");
}

int sherd_audit_html(sherd_audit *r, size_t width, const char **text, sherd_diag *d)
{
    page p = { .err = SHERD_OK };
    sherd_audit_info info = { .size = sizeof info };
    *text = NULL;
    int err = sherd_audit_get(r, &info, d);
    if (err) return err;
    sherd__buf_init(&p.b, PAGE_MAX, 0);
    put_head(&p, r, &info);
    err = pictures(&p, &r->gallery, width);
    put_all(&p, r);
    put_unseen(&p, r);
    if (!p.err) p.err = sherd__buf_append(&p.b, "", 1);
    if (err || p.err) {
        sherd__buf_fini(&p.b);
        return sherd__fail_memory(d, "the page");
    }
    sherd__free(r->html);
    *text = r->html = (char *)p.b.data;
    return SHERD_OK;
}

int sherd_audit_html_save(sherd_audit *r, size_t width, const char *path, sherd_diag *d)
{
    const char *text;
    sherd__file *f = NULL;
    int err = sherd_audit_html(r, width, &text, d);
    if (!err) err = sherd__file_begin(&f, path, SHERD__FILE_PRIVATE, d); /* the page shows data */
    if (!err) err = sherd__file_write(f, text, strlen(text), d);
    if (!err) return sherd__file_commit(f, d);
    sherd__file_abort(f);
    return err;
}
