/*
 * A share as an adversary view: the numbers around 0 that its residues represent modulo one prime
 * of 23 bits, or modulo three below 256, divided by the largest of them, all columns in their
 * places.
 * Inference is made once and counted against every block; if blocks have columns of their own, it
 * is made once for each, as for a share of these columns.
 */
#include "audit/coded.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "audit/clear_internal.h"
#include "audit/stats_internal.h"
#include "audit/tail.h"
#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "matrix/exact.h"

#define COLUMNS_MAX 96u
#define KEPT_MAX 10000u
#define HELD (1u << 22) /* primes that hold numbers up to this are used */

/* A share, and the columns of A that the attacked blocks have in it, from the first on. */
typedef struct part {
    const sherd__seen *seen;
    uint32_t share;
    size_t first, cols;
    sherd__crt crt;
    double held; /* product of its primes */
} part;

/* Chooses the primes whose residues are read. */
static int choose_primes(part *of)
{
    const sherd__seen_code *c = of->seen->code;
    uint32_t count = 0;
    of->held = 1;
    while (count < c->primes_len && of->held < HELD) of->held *= c->primes[count++];
    return sherd__crt_init(&of->crt, c->primes, count);
}

/* Computes the numbers of a row, of every `step`-th column. residue: room for all primes. */
static void read_row(const part *of, size_t row, size_t step, size_t n, double *residue,
                     double *out)
{
    const sherd__seen *s = of->seen;
    const double *each[SHERD__TABLE_PRIMES];
    for (size_t q = 0; q < of->crt.count; q++) {
        const uint32_t *x = sherd__seen_residues(s, of->share, (uint32_t)q) + row * s->cols;
        double *to = residue + q * n;
        for (size_t j = 0; j < n; j++) to[j] = x[j * step];
        each[q] = to;
    }
    sherd__crt_f64(&of->crt, each, n, 0, out);
}

/* Takes every `step`-th column of the share, and the rows kept. */
static int make_view(sherd__adversary_view *s, sherd__sheaf *f, const part *of, size_t step)
{
    const sherd__seen *seen = of->seen;
    size_t cols = (of->cols + step - 1) / step,
           kept = seen->rows < KEPT_MAX ? seen->rows : KEPT_MAX, len;
    *f = (sherd__sheaf){ .cols = cols, .rows = seen->rows, .kept = kept };
    *s = (sherd__adversary_view){ .sheaves = f, .len = 1, .cols = cols, .integers = true };
    if (!sherd__mul(kept, cols, &len)) return SHERD_ENOMEM;
    f->values = sherd__calloc(len, sizeof *f->values);
    f->keys = sherd__calloc(cols, sizeof *f->keys);
    double *residue = sherd__calloc(of->crt.count * cols, sizeof *residue);
    if (!f->values || !f->keys || !residue) {
        sherd__free(residue);
        return SHERD_ENOMEM;
    }
    for (size_t r = 0; r < kept; r++) read_row(of, r, step, cols, residue, f->values + r * cols);
    for (size_t i = 0; i < len; i++) s->largest = fmax(s->largest, fabs(f->values[i]));
    sherd__free(residue);
    return SHERD_OK;
}

static void drop_view(sherd__sheaf *f)
{
    sherd__free(f->values);
    sherd__free(f->keys);
}

static int open_counting(sherd__counting *k, const sherd__adversary_view *s, const sherd__truth *t,
                         const part *of, size_t step, size_t tests)
{
    const sherd__sheaf *h = &s->sheaves[0];
    k->s = s;
    k->col = sherd__calloc(s->cols, sizeof *k->col);
    k->alike = sherd__calloc(s->cols, sizeof *k->alike);
    k->row = sherd__calloc(h->kept, sizeof *k->row);
    k->tests = h->kept < tests ? h->kept : tests;
    k->test = sherd__calloc(k->tests, sizeof *k->test);
    if (!k->col || !k->alike || !k->row || !k->test) return SHERD_ENOMEM;
    uint32_t *alike = sherd__calloc(t->a.cols, sizeof *alike); /* by the first of the equal
                                                                  columns */
    if (!alike) return SHERD_ENOMEM;
    for (size_t c = 0; c < t->a.cols; c++) alike[t->first[c]]++;
    for (size_t j = 0; j < s->cols; j++) {
        k->col[j] = t->first[of->first + j * step];
        k->alike[j] = alike[k->col[j]];
    }
    sherd__free(alike);
    return SHERD_OK;
}

static void close_counting(sherd__counting *k)
{
    sherd__free(k->col);
    sherd__free(k->alike);
    sherd__free(k->row);
    sherd__free(k->test);
}

static double scale_of(const sherd__truth *t, double *line)
{
    double largest = 0;
    for (size_t r = 0; r < t->a.rows; r++) {
        sherd__truth_row(t, r, line);
        for (size_t c = 0; c < t->a.cols; c++)
            if (isfinite(line[c]) && fabs(line[c]) > largest) largest = fabs(line[c]);
    }
    return largest > 0 ? 1 / largest : 0;
}

/* Sets the row of A that block b has at each row of the share; returns how many rows have one. */
static size_t at_block(sherd__counting *k, const sherd__truth *t, const sherd__seen *seen,
                       uint64_t height, uint32_t b)
{
    size_t first = seen->block_cols ? 0 : (size_t)b * (size_t)height, kept = k->s->sheaves[0].kept,
           have = 0;
    if (seen->row) {
        for (size_t r = 0; r < kept; r++) {
            uint32_t row = seen->row[b * seen->rows + r];
            k->row[r] = row < t->a.rows ? row : SHERD__TRUTH_NONE;
            have += row < t->a.rows;
        }
        return have;
    }
    if (first < t->a.rows) have = t->a.rows - first < kept ? t->a.rows - first : kept;
    for (size_t r = 0; r < kept; r++)
        k->row[r] = r < have ? (uint32_t)(first + r) : SHERD__TRUTH_NONE;
    return have;
}

static int verbatim(sherd__findings *l, const sherd__counting *k, const sherd__truth *t, double p,
                    double *line)
{
    sherd_audit_finding f = sherd__clear_about(k, "verbatim", "fraction of the entries of A");
    const sherd__sheaf *h = &k->s->sheaves[0];
    uint64_t same = 0, all = 0;
    for (size_t r = 0; r < h->kept; r++) {
        if (k->row[r] == SHERD__TRUTH_NONE) continue;
        sherd__truth_row(t, k->row[r], line);
        for (size_t j = 0; j < h->cols; j++) same += h->values[r * h->cols + j] == line[k->col[j]];
        all += h->cols;
    }
    if (all == 0) return SHERD_OK;
    f.value = (double)same / (double)all;
    f.chance = 1 / p;
    f.ln_p = same ? sherd__tail_binomial(same, all, 1 / p) : 0;
    snprintf(f.sentence, sizeof f.sentence,
             "%llu of %llu entries of %s are in the share at their place (by chance %.2g)",
             (unsigned long long)same, (unsigned long long)all, k->subject, (double)all / p);
    return sherd__findings_add(l, &f);
}

/* Shares reveal the positions of columns. They are left out here, to test whether values reveal
   them. */
static int recognise(const sherd__attack *by, const part *of)
{
    sherd__sheaf f;
    sherd__adversary_view s;
    sherd__counting k = { .who = by->who, .subject = "A" };
    size_t step = of->cols / COLUMNS_MAX + 1;
    size_t *to = sherd__calloc(of->cols, sizeof *to);
    int err = make_view(&s, &f, of, step);
    if (!err) err = to ? open_counting(&k, &s, by->truth, of, step, 1) : SHERD_ENOMEM;
    for (int how = SHERD__MATCH_OWN; how <= SHERD__MATCH_TOGETHER && !err; how++) {
        err = sherd__match(&s, of->seen->rows, by->pub, (sherd__match_how)how, to);
        if (!err)
            err = sherd__clear_matched(by->findings, &k, by->truth, by->pub, (sherd__match_how)how,
                                       to);
    }
    sherd__free(to);
    close_counting(&k);
    drop_view(&f);
    return err;
}

static int count_block(const sherd__attack *by, const sherd__counting *k, const sherd__inferred *in,
                       double p, double *line)
{
    double r2;
    int err = verbatim(by->findings, k, by->truth, p, line);
    if (!err) err = sherd__clear_zero_mask(by->findings, k, by->truth, line);
    for (unsigned which = 0; which < 2 && !err && by->pub; which++) {
        err = sherd__clear_labels(by->findings, k, by->truth, in, which);
        if (!err) err = sherd__clear_rebuilt(by, k, in, which, line, &r2);
    }
    return err;
}

/* Attacks blocks [b, end), which have the same columns. */
static int attack_blocks(const sherd__attack *by, const part *of, const sherd__clear_options *opt,
                         uint32_t b, uint32_t end)
{
    const sherd__truth *truth = by->truth;
    const sherd__seen *seen = of->seen;
    const sherd__public *pub = by->pub;
    sherd__sheaf f = { 0 };
    sherd__adversary_view s;
    sherd__counting k = { .who = by->who, .in_place = true };
    sherd__inferred in = { 0 };
    double *x = NULL, *line = NULL;
    size_t *to = NULL, tests = opt->test_rows ? opt->test_rows : SHERD__CLEAR_TEST_ROWS;
    char subject[40];
    int err = make_view(&s, &f, of, 1);
    if (!err) err = open_counting(&k, &s, truth, of, 1, tests);
    line = sherd__calloc(truth->a.cols, sizeof *line);
    to = sherd__calloc(of->cols, sizeof *to);
    if (!err && (!line || !to)) err = SHERD_ENOMEM;
    if (!err) k.scale = scale_of(truth, line);
    for (size_t j = 0; j < of->cols && !err; j++) to[j] = of->first + j;
    for (size_t i = 0; i < k.tests && !err; i++) k.test[i] = i * f.kept / k.tests;
    if (!err && pub) {
        x = sherd__clear_test_rows(&k);
        err = x ? sherd__infer(&in, x, k.tests, f.cols, to, pub) : SHERD_ENOMEM;
    }
    for (; b < end && !err; b++) {
        if (seen->code->blocks == 1) snprintf(subject, sizeof subject, "A");
        else snprintf(subject, sizeof subject, "A, block %u", b + 1);
        k.subject = subject;
        size_t have = at_block(&k, truth, seen, opt->share_rows ? opt->share_rows : seen->rows, b);
        err = count_block(by, &k, &in, of->held, line);
        if (!err && by->gallery && b == 0 && pub && have >= f.kept)
            err = sherd__clear_draw(by->gallery, &k, truth, to, in.rebuilt[0]);
    }
    if (!err && pub && !opt->sketch) err = recognise(by, of);
    sherd__inferred_fini(&in);
    sherd__free(x);
    sherd__free(line);
    sherd__free(to);
    close_counting(&k);
    drop_view(&f);
    return err;
}

int sherd__audit_coded(const sherd__attack *by, const sherd__seen *seen, uint32_t share,
                       const sherd__clear_options *opt, sherd_diag *d)
{
    const uint32_t blocks = seen->code->blocks, each = seen->block_cols ? 1 : blocks;
    const size_t cols = by->truth ? by->truth->a.cols : 0;
    int err = SHERD_OK;
    if (!by->truth || !seen->residues[(size_t)share * seen->code->primes_len]) return SHERD_OK;
    bool fits = seen->block_cols ? seen->cols * blocks >= cols : seen->cols == cols;
    if (!fits || (by->pub && by->pub->cols != cols))
        return sherd__fail(d, SHERD_ESHAPE,
                           "give the A of this record, and public data with its columns",
                           "A has %zu columns, the shares %zu, the public data %zu", cols,
                           seen->cols, by->pub ? by->pub->cols : 0);
    for (uint32_t b = 0; b < blocks && !err; b += each) {
        part of = { .seen = seen, .share = share, .first = b * seen->block_cols };
        if (of.first >= cols) break; /* blocks of zeros */
        of.cols = cols - of.first < seen->cols ? cols - of.first : seen->cols;
        err = choose_primes(&of);
        if (!err) err = attack_blocks(by, &of, opt, b, b + each);
    }
    return err ? sherd__fail(d, err, NULL, "%s while attacking what %s saw", sherd_strerror(err),
                             by->who)
               : SHERD_OK;
}
