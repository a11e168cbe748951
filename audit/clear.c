/*
 * Runs the attacks on one view and counts their success. An attack receives the view and the public
 * data only; the truth is used afterwards. If c of A's columns are equal (empty ones), no attack
 * can distinguish them, and naming one of them counts as 1/c.
 */
#include "audit/clear.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "audit/assign.h"
#include "audit/clear_internal.h"
#include "audit/tail.h"
#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"

static const char *const how_text[] = { "own statistics", "with correlations",
                                        "with correlations and order" };

static double *alloc_matrix(size_t rows, size_t cols)
{
    size_t len;
    return sherd__mul(rows, cols, &len) ? sherd__calloc(len, sizeof(double)) : NULL;
}

int sherd__gallery_init(sherd__gallery *g, const char *who, size_t rows, size_t cols)
{
    static const struct {
        const char *name, *caption;
    } all[SHERD__GALLERY] = {
        { "truth", "rows of A" },
        { "sent", "what %.90s was sent of them, each value in its place" },
        { "placed", "the same values in the places that an attacker infers" },
        { "rebuilt", "what an attacker rebuilds from them with public data" },
    };
    size_t len;
    *g = (sherd__gallery){ 0 };
    if (!sherd__mul(rows, cols, &len)) return SHERD_ENOMEM;
    g->pixels = sherd__calloc(len, SHERD__GALLERY);
    if (!g->pixels) return SHERD_ENOMEM;
    for (; g->len < SHERD__GALLERY; g->len++) {
        sherd_audit_picture *p = &g->picture[g->len];
        *p = (sherd_audit_picture){
            .name = all[g->len].name, .rows = rows, .cols = cols, .pixels = g->pixels + g->len * len
        };
        snprintf(p->caption, sizeof p->caption, all[g->len].caption, who);
    }
    return SHERD_OK;
}

void sherd__gallery_fini(sherd__gallery *g)
{
    sherd__free(g->pixels);
    memset(g, 0, sizeof *g);
}

sherd_audit_finding sherd__clear_about(const sherd__counting *k, const char *test,
                                       const char *statistic)
{
    sherd_audit_finding f = {
        .test = test, .statistic = statistic, .chance = NAN, .low = NAN, .high = NAN, .ln_p = NAN
    };
    snprintf(f.who, sizeof f.who, "%s", k->who);
    snprintf(f.subject, sizeof f.subject, "%s", k->subject);
    return f;
}

/* Sets a finding of `hits` hits in n, each of probability p by chance. */
void sherd__clear_hits(sherd_audit_finding *f, double hits, size_t n, double p)
{
    uint64_t whole = (uint64_t)hits;
    f->value = n ? hits / (double)n : 0;
    f->chance = p;
    sherd__tail_interval(whole, n ? n : 1, 0.99, &f->low, &f->high);
    f->ln_p = whole ? sherd__tail_binomial(whole, n, p) : 0;
}

/* ---- locating -------------------------------------------------------------------------------- */

static size_t widest(const sherd__adversary_view *s, size_t *first)
{
    size_t best = 0, at = 0;
    *first = 0;
    for (size_t i = 0; i < s->len; at += s->sheaves[i].cols, i++)
        if (s->sheaves[i].cols > s->sheaves[best].cols) {
            best = i;
            *first = at;
        }
    return best;
}

/* Locates columns of the other sheaves, which were seen in part; rows are ignored. */
static int locate_others(const sherd__counting *k, const sherd__truth *t)
{
    size_t at = 0;
    int err = SHERD_OK;
    for (size_t i = 0; i < k->s->len && !err; at += k->s->sheaves[i].cols, i++) {
        const sherd__sheaf *f = &k->s->sheaves[i];
        bool all = i == k->sheaf || f->kept == 0;
        for (size_t j = 0; j < f->cols && !all && k->col[at + j] != SHERD__TRUTH_NONE; j++)
            all = j + 1 == f->cols;
        if (all) continue;
        uint32_t *row = sherd__calloc(f->kept, sizeof *row);
        err = row ? sherd__truth_rows(t, f, k->col + at, k->alike + at, row) : SHERD_ENOMEM;
        sherd__free(row);
    }
    return err;
}

static int locate(sherd__counting *k, const sherd__truth *t, size_t test_rows)
{
    const sherd__adversary_view *s = k->s;
    size_t at = 0, known = 0;
    k->sheaf = widest(s, &k->first);
    const sherd__sheaf *h = &s->sheaves[k->sheaf];
    k->col = sherd__calloc(s->cols, sizeof *k->col);
    k->alike = sherd__calloc(s->cols, sizeof *k->alike);
    k->row = sherd__calloc(h->kept, sizeof *k->row);
    k->test = sherd__calloc(test_rows, sizeof *k->test);
    if (!k->col || !k->alike || !k->row || !k->test) return SHERD_ENOMEM;
    for (size_t i = 0; i < s->len; at += s->sheaves[i].cols, i++)
        sherd__truth_columns(t, &s->sheaves[i], k->col + at, k->alike + at);
    int err = sherd__truth_rows(t, h, k->col + k->first, k->alike + k->first, k->row);
    if (err) return err;
    err = locate_others(k, t);
    if (err) return err;
    for (size_t r = 0; r < h->kept; r++) known += k->row[r] != SHERD__TRUTH_NONE;
    size_t want = known < test_rows ? known : test_rows, seen = 0;
    for (size_t r = 0; r < h->kept && k->tests < want; r++)
        if (k->row[r] != SHERD__TRUTH_NONE && seen++ * want / known >= k->tests)
            k->test[k->tests++] = r;
    return SHERD_OK;
}

static void counting_fini(sherd__counting *k)
{
    sherd__free(k->col);
    sherd__free(k->alike);
    sherd__free(k->row);
    sherd__free(k->test);
}

/* Counts entries of A that the view contains unchanged. */
static int verbatim(sherd__findings *l, const sherd__counting *k, const sherd__truth *t)
{
    sherd_audit_finding f = sherd__clear_about(k, "verbatim", "fraction of the entries of A");
    const sherd__adversary_view *s = k->s;
    double entries = 0, all = (double)t->a.rows * (double)t->a.cols;
    size_t at = 0, columns = 0, telling = 0;
    for (size_t i = 0; i < s->len; i++)
        for (size_t j = 0; j < s->sheaves[i].cols; j++, at++) {
            if (k->col[at] == SHERD__TRUTH_NONE) continue;
            entries += (double)s->sheaves[i].rows;
            telling += s->sheaves[i].keys[j].nonzeros > 0;
            columns++;
        }
    f.value = all > 0 ? entries / all : 0;
    f.chance = 0;
    f.ln_p = telling ? (double)telling * (log((double)t->a.cols) - 64 * M_LN2) : 0;
    if (f.ln_p > 0) f.ln_p = 0;
    snprintf(f.sentence, sizeof f.sentence,
             "%.3g %% of A's %.0f entries were sent unchanged: everything that was sent of %zu of "
             "%zu columns occurs in A (by chance none: values are compared by a 64-bit hash)",
             100 * f.value, all, columns, s->cols);
    return sherd__findings_add(l, &f);
}

/* Counts which entries are seen to be zero, among those of known rows. */
int sherd__clear_zero_mask(sherd__findings *l, const sherd__counting *k, const sherd__truth *t,
                           double *line)
{
    sherd_audit_finding f = sherd__clear_about(k, "zero mask", "F1");
    const sherd__sheaf *h = &k->s->sheaves[k->sheaf];
    double hit = 0, said = 0, is = 0, all = 0;
    size_t rows = 0;
    for (size_t i = 0; i < k->tests; i++) {
        size_t r = k->test[i];
        if (sherd__clear_row(k, i) == SHERD__TRUTH_NONE) continue;
        sherd__truth_row(t, k->row[r], line);
        rows++;
        for (size_t j = 0; j < h->cols; j++) {
            uint32_t c = k->col[k->first + j];
            if (c == SHERD__TRUTH_NONE) continue;
            bool zero = line[c] == 0, guess = h->values[r * h->cols + j] == 0;
            hit += zero && guess;
            said += guess;
            is += zero;
            all++;
        }
    }
    if (all == 0 || is == 0) return SHERD_OK;
    f.value = said + is > 0 ? 2 * hit / (said + is) : 0;
    f.chance = 2 * is * said / all / (said + is);
    snprintf(f.sentence, sizeof f.sentence,
             "zeros of A among the entries that it holds: F1 %.3f (the same guesses in random "
             "places: %.3f); %.0f entries of %zu rows",
             f.value, f.chance, all, rows);
    f.flagged = f.value > f.chance + 0.05;
    return sherd__findings_add(l, &f);
}

/* --- columns ---------------------------------------------------------------------------------- */

int sherd__clear_matched(sherd__findings *l, const sherd__counting *k, const sherd__truth *t,
                         const sherd__public *pub, sherd__match_how how, const size_t *to)
{
    sherd_audit_finding f = sherd__clear_about(k, "columns", how_text[how]);
    double hits = 0;
    size_t known = 0;
    for (size_t j = 0; j < k->s->cols; j++) {
        if (k->col[j] == SHERD__TRUTH_NONE) continue;
        known++;
        if (to[j] == SHERD__ASSIGN_NONE) continue;
        if (t->first[to[j]] == k->col[j]) hits += 1 / (double)k->alike[j];
    }
    sherd__clear_hits(&f, hits, known, 1 / (double)pub->cols);
    snprintf(f.sentence, sizeof f.sentence,
             "%.1f %% of its %zu columns recognised among %zu public ones, %s (by chance %.2g %%); "
             "%zu public rows",
             100 * f.value, known, pub->cols, how_text[how], 100 * f.chance, pub->rows);
    return sherd__findings_add(l, &f);
}

/* --- labels and rows -------------------------------------------------------------------------- */

int sherd__clear_labels(sherd__findings *l, const sherd__counting *k, const sherd__truth *t,
                        const sherd__inferred *in, unsigned which)
{
    sherd_audit_finding f = sherd__clear_about(k, "labels",
                                               which ? "5 nearest public rows" : "linear");
    size_t right = 0, of[256] = { 0 }, most = 0, rows = 0;
    if (!t->labels || !in->label[which]) return SHERD_OK;
    for (size_t i = 0; i < k->tests; i++) {
        if (sherd__clear_row(k, i) == SHERD__TRUTH_NONE) continue;
        uint8_t is = t->labels[sherd__clear_row(k, i)];
        right += in->label[which][i] == is;
        rows++;
        if (++of[is] > most) most = of[is];
    }
    if (rows == 0) return SHERD_OK;
    sherd__clear_hits(&f, (double)right, rows, (double)most / (double)rows);
    snprintf(f.sentence, sizeof f.sentence,
             "labels of %.1f %% of %zu rows read, %s (always naming the most frequent one: %.1f "
             "%%)",
             100 * f.value, rows, f.statistic, 100 * f.chance);
    return sherd__findings_add(l, &f);
}

double *sherd__clear_test_rows(const sherd__counting *k)
{
    const sherd__sheaf *h = &k->s->sheaves[k->sheaf];
    double scale = k->s->largest > 0 ? 1 / k->s->largest : 0, *x = alloc_matrix(k->tests, h->cols);
    for (size_t i = 0; i < k->tests && x; i++)
        for (size_t j = 0; j < h->cols; j++)
            x[i * h->cols + j] = h->values[k->test[i] * h->cols + j] * scale;
    return x;
}

/* Computes R^2 over all columns of the tested rows, and in how many rows the guess is better than
   the public mean. */
int sherd__clear_rebuilt(const sherd__attack *by, const sherd__counting *k,
                         const sherd__inferred *in, unsigned which, double *line, double *r2)
{
    const sherd__truth *t = by->truth;
    const sherd__public *pub = by->pub;
    sherd_audit_finding f = sherd__clear_about(k, "rebuilding",
                                               which ? "R2, 5 nearest public rows" : "R2, linear");
    size_t cols = t->a.cols, better = 0, rows = 0;
    double scale = k->scale, off = 0, off_mean = 0, spread = 0;
    double *mean = sherd__calloc(2 * cols, sizeof *mean), *guess = mean ? mean + cols : NULL;
    if (!mean) return SHERD_ENOMEM;
    for (size_t i = 0; i < k->tests; i++) rows += sherd__clear_row(k, i) != SHERD__TRUTH_NONE;
    for (size_t i = 0; i < k->tests; i++) {
        if (sherd__clear_row(k, i) == SHERD__TRUTH_NONE) continue;
        sherd__truth_row(t, sherd__clear_row(k, i), line);
        for (size_t c = 0; c < cols; c++) mean[c] += line[c] * scale / (double)rows;
    }
    for (size_t r = 0; r < pub->rows; r++)
        for (size_t c = 0; c < cols; c++) guess[c] += pub->x[r * cols + c] / (double)pub->rows;
    for (size_t i = 0; i < k->tests; i++) {
        double mine = 0, by_mean = 0;
        if (sherd__clear_row(k, i) == SHERD__TRUTH_NONE) continue;
        sherd__truth_row(t, sherd__clear_row(k, i), line);
        for (size_t c = 0; c < cols; c++) {
            double x = line[c] * scale, e = x - in->rebuilt[which][i * cols + c], m = x - guess[c];
            mine += e * e;
            by_mean += m * m;
            spread += (x - mean[c]) * (x - mean[c]);
        }
        better += mine < by_mean;
        off += mine;
        off_mean += by_mean;
    }
    sherd__free(mean);
    if (!(spread > 0)) return SHERD_OK;
    f.value = *r2 = 1 - off / spread;
    f.chance = 1 - off_mean / spread;
    f.ln_p = better ? sherd__tail_binomial(better, rows, 0.5) : 0;
    snprintf(f.sentence, sizeof f.sentence,
             "all %zu columns of %zu rows rebuilt with R2 %.3f, %s (the public mean: %.3f; closer "
             "than it in %zu rows, by chance half)",
             cols, rows, f.value, which ? "5 nearest public rows" : "linear", f.chance, better);
    return sherd__findings_add(by->findings, &f);
}

/* --- pictures --------------------------------------------------------------------------------- */

static uint8_t shade(double v)
{
    return (uint8_t)(v <= 0 ? 0 : v >= 1 ? 255 : lrint(255 * v));
}

/* Residues of several primes are joined to centred numbers, those of one prime are not negative. */
static double lowest(const sherd__sheaf *h)
{
    double low = INFINITY;
    for (size_t i = 0; i < h->kept * h->cols; i++) low = fmin(low, h->values[i]);
    return low;
}

int sherd__clear_draw(sherd__gallery *g, const sherd__counting *k, const sherd__truth *t,
                      const size_t *to, const double *better)
{
    const sherd__sheaf *h = &k->s->sheaves[k->sheaf];
    size_t cols = t->a.cols,
           rows = k->tests < SHERD__CLEAR_PICTURES ? k->tests : SHERD__CLEAR_PICTURES;
    double low = k->in_place ? lowest(h) : 0, high = k->s->largest,
           scale = high > low ? 1 / (high - low) : 0;
    sherd__gallery o = { 0 };
    double *line = sherd__calloc(cols, sizeof *line);
    if (!line || sherd__gallery_init(&o, k->who, rows, cols)) {
        sherd__free(line);
        return SHERD_ENOMEM;
    }
    size_t len = rows * cols;
    uint8_t *truth = o.pixels, *sent = truth + len, *placed = sent + len, *rebuilt = placed + len;
    for (size_t i = 0; i < rows; i++) {
        size_t pick = i * k->tests / rows, r = k->test[pick];
        sherd__truth_row(t, k->row[r], line);
        for (size_t c = 0; c < cols; c++) {
            truth[i * cols + c] = shade(line[c] * k->scale);
            rebuilt[i * cols + c] = shade(better[pick * cols + c]);
        }
        for (size_t j = 0; j < h->cols; j++) {
            uint8_t v = shade((h->values[r * h->cols + j] - low) * scale);
            size_t at = k->in_place ? to[k->first + j] : k->col[k->first + j];
            if (at < cols) sent[i * cols + at] = v;
            if (to[k->first + j] != SHERD__ASSIGN_NONE) placed[i * cols + to[k->first + j]] = v;
        }
    }
    sherd__free(line);
    sherd__gallery_fini(g);
    *g = o;
    return SHERD_OK;
}

/* ---- all attacks ----------------------------------------------------------------------------- */

static int infer_rows(const sherd__attack *by, const sherd__counting *k, const size_t *to,
                      double *line)
{
    const sherd__sheaf *h = &k->s->sheaves[k->sheaf];
    double *x = sherd__clear_test_rows(k), r2[2] = { -INFINITY, -INFINITY };
    sherd__inferred in = { 0 };
    int err = x ? sherd__infer(&in, x, k->tests, h->cols, to + k->first, by->pub) : SHERD_ENOMEM;
    for (unsigned which = 0; which < 2 && !err; which++)
        err = sherd__clear_labels(by->findings, k, by->truth, &in, which);
    for (unsigned which = 0; which < 2 && !err; which++)
        err = sherd__clear_rebuilt(by, k, &in, which, line, &r2[which]);
    if (!err && by->gallery)
        err = sherd__clear_draw(by->gallery, k, by->truth, to, in.rebuilt[r2[1] > r2[0]]);
    sherd__inferred_fini(&in);
    sherd__free(x);
    return err;
}

static int recognise(const sherd__attack *by, const sherd__counting *k,
                     const sherd__clear_options *opt, double *line)
{
    const sherd__public *pub = by->pub;
    size_t *to = sherd__calloc(k->s->cols, sizeof *to);
    bool aligned = k->s->sheaves[k->sheaf].cols > 1;
    bool order = k->s->ordered && k->s->cols <= pub->cols;
    int last = order ? SHERD__MATCH_ASCENDING : aligned ? SHERD__MATCH_TOGETHER : SHERD__MATCH_OWN;
    /* Then positions identify all columns, and no search is needed */
    bool all = order && k->s->cols == pub->cols;
    int err = to ? SHERD_OK : SHERD_ENOMEM;
    for (int how = opt->sketch || all ? last : 0; how <= last && !err; how++) {
        if (how == SHERD__MATCH_TOGETHER && !aligned) continue;
        err = sherd__match(k->s, opt->n, pub, (sherd__match_how)how, to);
        if (!err)
            err = sherd__clear_matched(by->findings, k, by->truth, pub, (sherd__match_how)how, to);
    }
    if (!err && aligned && k->tests > 0) err = infer_rows(by, k, to, line);
    sherd__free(to);
    return err;
}

int sherd__audit_clear(const sherd__attack *by, const sherd__adversary_view *s,
                       const sherd__clear_options *opt, sherd_diag *d)
{
    const sherd__truth *truth = by->truth;
    const sherd__public *pub = by->pub;
    sherd__counting k = {
        .s = s, .who = by->who, .subject = "A", .scale = s->largest > 0 ? 1 / s->largest : 0
    };
    if (s->cols == 0 || !truth) return SHERD_OK;
    if (pub && pub->cols != truth->a.cols)
        return sherd__fail(d, SHERD_ESHAPE, "give public data with the columns of A",
                           "the public data have %zu columns, A has %zu", pub->cols, truth->a.cols);
    double *line = sherd__calloc(truth->a.cols, sizeof *line);
    int err = line ? locate(&k, truth, opt->test_rows ? opt->test_rows : SHERD__CLEAR_TEST_ROWS)
                   : SHERD_ENOMEM;
    if (!err && !opt->sketch) err = verbatim(by->findings, &k, truth);
    if (!err && !opt->sketch) err = sherd__clear_zero_mask(by->findings, &k, truth, line);
    if (!err && pub) err = recognise(by, &k, opt, line);
    counting_fini(&k);
    sherd__free(line);
    return err ? sherd__fail(d, err, NULL, "%s while attacking what %s saw", sherd_strerror(err),
                             by->who)
               : SHERD_OK;
}
