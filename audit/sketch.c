/*
 * A sketch of an audit: the strongest attacks on the view of one node, on generated digits. Under
 * share its view is made by the scheme's own functions, with fresh masks.
 */
#include <math.h>
#include <string.h>

#include "audit/input.h"
#include "audit/stats_internal.h"
#include "core/alloc.h"
#include "core/diag.h"
#include "core/field.h"
#include "core/options.h"
#include "core/rand.h"
#include "crypto/lagrange.h"
#include "learn/digits.h"

#define ROWS 4000u
#define TESTS 300u
#define NODES_MAX 4096u

typedef struct sketch {
    uint8_t *drawn;
    sherd_view x;
    sherd__truth truth;
    sherd__public pub;
    sherd__findings found;
} sketch;

static int open_digits(sketch *s, sherd_diag *d)
{
    const size_t pixels = SHERD__DIGIT_PIXELS, all = 2 * ROWS;
    s->drawn = sherd__alloc(all * (pixels + 1));
    if (!s->drawn) return sherd__fail_memory(d, "the digits");
    uint8_t *labels = s->drawn + all * pixels;
    sherd__digits_draw(SHERD__DIGITS_SEED, 0, all, s->drawn, labels);
    s->x = sherd_view_c(s->drawn, SHERD_U8, ROWS, pixels);
    sherd_view others = sherd_view_c(s->drawn + ROWS * pixels, SHERD_U8, ROWS, pixels),
               their_labels = sherd_view_c(labels + ROWS, SHERD_U8, ROWS, 1);
    int err = sherd__truth_open(&s->truth, s->x, false, 0, d);
    s->truth.labels = labels;
    return err ? err : sherd__public_make(&s->pub, others, &their_labels, ROWS, d);
}

static sherd__attack attack_of(sketch *s)
{
    return (sherd__attack){
        .who = "node-1", .truth = &s->truth, .pub = &s->pub, .findings = &s->found
    };
}

static int attack_clear(sketch *s, sherd_audit_form form, uint32_t nodes, sherd_diag *d)
{
    const sherd__clear_options opt = { .n = ROWS, .test_rows = TESTS, .sketch = true };
    const sherd__attack by = attack_of(s);
    sherd__adversary_view seen = { 0 };
    uint32_t *cols = NULL;
    size_t *at = NULL;
    int err = sherd__audit_assign(&cols, &at, s->x.cols, nodes, 1);
    if (!err)
        err = sherd__adversary_view_make(&seen, form, s->x,
                                         &(sherd__node_part){ cols, at[1], 0, ROWS / nodes }, ROWS);
    if (err) err = sherd__fail_memory(d, "what the node sees");
    else err = sherd__audit_clear(&by, &seen, &opt, d);
    sherd__adversary_view_fini(&seen);
    sherd__free(cols);
    sherd__free(at);
    return err;
}

/* Attacks share 0, modulo one prime, of as many blocks as one colluding domain allows. */
static int attack_share(sketch *s, uint32_t nodes, sherd_diag *d)
{
    const sherd__clear_options opt = { .n = ROWS, .test_rows = TESTS };
    const sherd__attack by = attack_of(s);
    const uint32_t blocks = sherd__lcc_blocks(nodes, 1, 0, true);
    if (blocks == 0 || blocks + 1 > SHERD__LCC_BLOCKS_MAX) return SHERD_OK;
    const sherd__seen_code code = { .blocks = blocks,
                                    .masks = 1,
                                    .shares = nodes,
                                    .primes_len = 1,
                                    .primes = { sherd__primes_default.p[0] } };
    size_t height = (ROWS + blocks - 1) / blocks, len = height * s->x.cols;
    const sherd__entropy e = sherd__entropy_os();
    const uint32_t **index = sherd__calloc(nodes, sizeof *index);
    uint32_t *share = sherd__calloc(len, sizeof *share);
    double **in = NULL;
    int err = index && share ? sherd__audit_blocks(&in, blocks, len) : SHERD_ENOMEM;
    for (size_t r = 0; r < ROWS && !err; r++)
        sherd__truth_row(&s->truth, r, in[r / height] + r % height * s->x.cols);
    if (!err)
        err = sherd__audit_share_hide(&code,
                                      (sherd__code_blocks){ height, s->x.cols,
                                                            (const double *const *)in },
                                      1, &e, &share);
    if (err) {
        err = sherd__fail(d, err, NULL, "cannot encode the digits");
    } else {
        const sherd__seen seen = {
            .name = "A", .code = &code, .rows = height, .cols = s->x.cols, .residues = index
        };
        index[0] = share;
        err = sherd__audit_coded(&by, &seen, 0, &opt, d);
    }
    sherd__free(in);
    sherd__free(share);
    sherd__free(index);
    return err;
}

/* Takes the attacker's best result of each kind. */
static sherd_audit_sketched best_of(const sherd__findings *l)
{
    sherd_audit_sketched s = { 0, NAN, NAN, NAN, NAN, NAN, NAN };
    const struct {
        const char *test;
        double *value, *chance;
    } kinds[] = { { "columns", &s.columns, &s.columns_chance },
                  { "labels", &s.labels, &s.labels_chance },
                  { "rebuilding", &s.rebuilt_r2, &s.rebuilt_r2_chance } };
    for (size_t i = 0; i < l->len; i++)
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            const sherd_audit_finding *f = &l->list[i];
            if (strcmp(f->test, kinds[k].test) != 0 || *kinds[k].value >= f->value) continue;
            *kinds[k].value = f->value;
            *kinds[k].chance = f->chance;
        }
    return s;
}

int sherd_audit_sketch(sherd_audit_form form, uint32_t nodes, sherd_audit_sketched *out,
                       sherd_diag *d)
{
    sketch s = { .drawn = NULL };
    int err = sherd__result_check(out, "sherd_audit_sketched", d);
    if (err) return err;
    if ((unsigned)form > SHERD_AUDIT_SHARE || nodes < 1 || nodes > NODES_MAX)
        return sherd__fail(d, SHERD_EINVAL, "give a form, and 1 to 4096 nodes",
                           "form %d seen by %u nodes", (int)form, nodes);
    err = open_digits(&s, d);
    if (!err && form == SHERD_AUDIT_SHARE) err = attack_share(&s, nodes, d);
    else if (!err) err = attack_clear(&s, form, nodes, d);
    if (!err) {
        const sherd_audit_sketched best = best_of(&s.found);
        sherd__result_write(out, &best, sizeof best);
    }
    sherd__findings_fini(&s.found);
    sherd__truth_fini(&s.truth);
    sherd__public_fini(&s.pub);
    sherd__free(s.drawn);
    return err;
}

#define FIELD(member, text) SHERD__FIELD(sherd_audit_sketched, member, F64, "", text)

static const sherd_field audit_sketched_fields[] = {
    FIELD(columns, "fraction of its columns that a node recognises"),
    FIELD(columns_chance, "the same by chance"),
    FIELD(labels, "fraction of the labels that it reads"),
    FIELD(labels_chance, "the same by chance"),
    FIELD(rebuilt_r2, "R^2 of rows that it rebuilds"),
    FIELD(rebuilt_r2_chance, "the same by chance"),
};
SHERD__FIELDS(sherd_audit_sketched, audit_sketched_fields)
