/*
 * Chooses the adversaries: one node, one domain, T domains, T+1 domains. The coalition attack is
 * the same attack on the joined view of all nodes of the members. Under a code a domain is one
 * share.
 */
#include "audit/audit.h"

#include <stdio.h>
#include <string.h>

#include "audit/controls.h"
#include "audit/stats_internal.h"
#include "core/alloc.h"
#include "core/diag.h"

/* Writes "node-1, node-4", truncated if it is too long. */
static void join_names(char out[96], const char *const *names, const uint32_t *m, uint32_t size)
{
    size_t at = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < size && at < 90; i++)
        at += (size_t)snprintf(out + at, 96 - at, "%s%.40s", i ? ", " : "", names[m[i]]);
    if (at >= 96) memcpy(out + 92, "...", 4);
}

typedef struct running {
    sherd_audit *r;
    const sherd__adversary_view *views; /* clear products, or */
    sherd__elements *const *operand;    /* element-wise operands; [1] may be NULL */
    const sherd__audit_cast *cast;
    const sherd__audit_known *known;
    const sherd__audit_plan *plan;
    uint32_t done, total;
} running;

static uint32_t domain_of(const sherd__audit_cast *c, uint32_t node)
{
    return c->domain ? c->domain[node] : node;
}

/* Collects the nodes of some domains, in the order of nodes. */
static uint32_t gather(const sherd__audit_cast *c, const uint32_t *m, uint32_t size, uint32_t *out)
{
    uint32_t len = 0;
    for (uint32_t i = 0; i < c->nodes; i++)
        for (uint32_t j = 0; j < size; j++)
            if (domain_of(c, i) == m[j]) out[len++] = i;
    return len;
}

/* Attacks the joined view of clear values of nodes m[0..size). */
static int attack_views(running *a, const uint32_t *m, uint32_t size, const char *who, bool show,
                        sherd_diag *d)
{
    const sherd__adversary_view **part = sherd__calloc(size, sizeof *part);
    sherd__adversary_view joined = { 0 };
    const sherd__adversary_view *s = &a->views[m[0]];
    sherd__clear_options opt = { .n = a->plan->n };
    const sherd__attack by = { .who = who,
                               .truth = a->known->a,
                               .pub = a->known->pub,
                               .findings = &a->r->findings,
                               .gallery = show ? &a->r->gallery : NULL };
    int err = part ? SHERD_OK : sherd__fail_memory(d, "a coalition");
    for (uint32_t i = 0; i < size && !err; i++) part[i] = &a->views[m[i]];
    if (!err && size > 1) {
        err = sherd__adversary_view_join(&joined, part, size, a->plan->k ? a->plan->k : SIZE_MAX);
        if (err) err = sherd__fail_memory(d, "a coalition");
        s = &joined;
    }
    if (!err) err = sherd__audit_clear(&by, s, &opt, d);
    sherd__adversary_view_fini(&joined);
    sherd__free(part);
    return err;
}

/* As attack_views, for an element-wise operation: attacks A, and B if there is one. */
static int attack_elements(const running *a, const uint32_t *m, uint32_t size, const char *who,
                           sherd_diag *d)
{
    const sherd__elements **part = sherd__calloc(size, sizeof *part);
    int err = part ? SHERD_OK : sherd__fail_memory(d, "a coalition");
    for (unsigned b = 0; b < 2 && !err; b++) {
        const sherd__attack by = { .who = who,
                                   .truth = b ? a->known->b : a->known->a,
                                   .pub = b ? NULL : a->known->pub,
                                   .findings = &a->r->findings };
        sherd__elements joined;
        if (!a->operand[b] || !by.truth) continue;
        for (uint32_t i = 0; i < size; i++) part[i] = &a->operand[b][m[i]];
        if (sherd__elements_join(&joined, part, size)) err = sherd__fail_memory(d, "a coalition");
        else err = sherd__audit_elements(&by, &joined, b ? "B" : "A", 1000, d);
        sherd__elements_fini(&joined); /* empty on failure */
    }
    sherd__free(part);
    return err;
}

/* Attacks the joined view of nodes m[0..size). who: the name in the report. */
static int attack(running *a, const uint32_t *m, uint32_t size, const char *who, sherd_diag *d)
{
    bool show = size == 1 && m[0] == a->plan->show;
    int err = a->views ? attack_views(a, m, size, who, show, d)
                       : attack_elements(a, m, size, who, d);
    a->done++;
    if (!err && a->plan->step && a->plan->step(a->plan->ctx, a->done, a->total))
        err = sherd__fail(d, SHERD_EINTERRUPTED, NULL, "interrupted after %u of %u attacks",
                          a->done, a->total);
    return err;
}

/* Selects the domains with more than one node; each is attacked separately. */
static int choose_shared(sherd__subsets *m, const sherd__audit_cast *c)
{
    *m = (sherd__subsets){ .size = 1, .list = sherd__calloc(c->domains, sizeof *m->list) };
    if (!m->list) return SHERD_ENOMEM;
    for (uint32_t k = 0; k < c->domains; k++) {
        uint32_t nodes = 0;
        for (uint32_t i = 0; i < c->nodes; i++) nodes += domain_of(c, i) == k;
        if (nodes > 1) m->list[m->len++] = k;
    }
    m->of = m->len;
    return SHERD_OK;
}

static int attack_all(running *a, const sherd__subsets *m, bool nodes, uint32_t *room,
                      sherd_diag *d)
{
    size_t first = a->r->findings.len;
    const sherd__audit_cast *c = a->cast;
    const char *const *names = nodes || !c->domain_name ? c->name : c->domain_name;
    char who[96];
    int err = SHERD_OK;
    for (uint32_t j = 0; j < m->len && !err; j++) {
        const uint32_t *list = m->list + (size_t)j * m->size;
        uint32_t len = m->size;
        join_names(who, names, list, m->size);
        if (!nodes) len = gather(c, list, m->size, room);
        err = len ? attack(a, nodes ? list : room, len, who, d) : SHERD_OK;
    }
    if (!err && m->len)
        sherd__audit_scope_add(a->r, nodes ? "node" : "domain", m->size, m->len, m->of, first);
    return err;
}

/* Attacks single nodes, domains of several nodes, T domains, T+1 domains. */
static int attack_everybody(running *a, sherd_diag *d)
{
    const sherd__audit_plan *plan = a->plan;
    const sherd__audit_cast *cast = a->cast;
    uint32_t t = plan->colluding ? plan->colluding : 1, most = plan->coalitions;
    sherd__subsets m[SHERD__AUDIT_SIZES] = { { 0 } };
    uint32_t *room = sherd__calloc(cast->nodes, sizeof *room);
    int err = room ? choose_shared(&m[1], cast) : SHERD_ENOMEM;
    a->r->colluding = t;
    if (!err) err = sherd__subsets_choose(&m[0], cast->nodes, 1, cast->nodes, plan->seed);
    if (!err)
        err = sherd__subsets_choose(&m[2], cast->domains, t > 1 ? t : 0, most, plan->seed + 1);
    if (!err) err = sherd__subsets_choose(&m[3], cast->domains, t + 1, most, plan->seed + 2);
    if (err) err = sherd__fail_memory(d, "the coalitions");
    for (unsigned i = 0; i < SHERD__AUDIT_SIZES; i++) a->total += m[i].len;
    for (unsigned i = 0; i < SHERD__AUDIT_SIZES && !err; i++)
        err = attack_all(a, &m[i], i == 0, room, d);
    for (unsigned i = 0; i < SHERD__AUDIT_SIZES; i++) sherd__subsets_fini(&m[i]);
    sherd__free(room);
    return err;
}

/* Checks by shapes that A is the operand of which the nodes' views were made. Views may be of parts
   of A, and joined ones may have a row twice. */
static int check_left(const running *a, sherd_diag *d)
{
    const sherd__truth *t = a->known->a;
    for (uint32_t i = 0; i < a->cast->nodes && t; i++)
        for (size_t j = 0; j < a->views[i].len; j++) {
            const sherd__sheaf *f = &a->views[i].sheaves[j];
            if (f->rows <= t->a.rows && f->cols <= t->a.cols) continue;
            return sherd__fail(d, SHERD_ESHAPE, "give the A that the recorded run was given",
                               "%s was sent %llu rows and %zu columns of A, and --data is %zu x "
                               "%zu",
                               a->cast->name[i], (unsigned long long)f->rows, f->cols, t->a.rows,
                               t->a.cols);
        }
    return SHERD_OK;
}

int sherd__audit_adversary_views(sherd_audit *r, const sherd__audit_cast *cast,
                                 const sherd__adversary_view *views,
                                 const sherd__audit_known *known, const sherd__audit_plan *plan,
                                 sherd_diag *d)
{
    running a = { .r = r, .views = views, .cast = cast, .known = known, .plan = plan };
    int err = check_left(&a, d);
    return err ? err : attack_everybody(&a, d);
}

/* As check_left, for both operands of an element-wise operation. */
static int check_elements(const running *a, sherd_diag *d)
{
    static const char *const names[] = { "A", "B" }, *const options[] = { "--data", "--right" };
    const sherd__truth *known[] = { a->known->a, a->known->b };
    for (unsigned b = 0; b < 2; b++)
        for (uint32_t i = 0; a->operand[b] && known[b] && i < a->cast->nodes; i++) {
            const sherd__elements *e = &a->operand[b][i];
            const sherd_view *x = &known[b]->a;
            if (e->sent <= x->rows && e->cols <= x->cols) continue;
            return sherd__fail(d, SHERD_ESHAPE, "give the operand that the recorded run was given",
                               "%s was sent %zu values of each of %llu rows of %s, and %s is %zu x "
                               "%zu",
                               a->cast->name[i], e->cols, (unsigned long long)e->sent, names[b],
                               options[b], x->rows, x->cols);
        }
    return SHERD_OK;
}

int sherd__audit_element_wise(sherd_audit *r, const sherd__audit_cast *cast,
                              sherd__elements *const operand[2], const sherd__audit_known *known,
                              const sherd__audit_plan *plan, sherd_diag *d)
{
    running a = { .r = r, .operand = operand, .cast = cast, .known = known, .plan = plan };
    int err = check_elements(&a, d);
    return err ? err : attack_everybody(&a, d);
}

/* --- shares ----------------------------------------------------------------------------------- */

#define GAME_ROWS                                                                                  \
    8u /* games and controls test the code and not the data, so small ones are enough */
#define GAME_COLS 8u
#define CONTROL_ROWS 32u
#define CONTROL_COLS 64u
#define KNOWN_ENTRIES ((size_t)1 << 18) /* of a block that is known to an attacker */

/* Copies a row of a block of an encoding from the operand. Columns beyond it are zeros. */
static void cut_row(const sherd__seen *a, uint32_t block, uint64_t row, const sherd__truth *t,
                    double *line, double *out)
{
    size_t first = a->col + block * a->block_cols;
    size_t cols = first >= t->a.cols            ? 0
                  : t->a.cols - first < a->cols ? t->a.cols - first
                                                : a->cols;
    if (row >= t->a.rows) return;
    sherd__truth_row(t, (size_t)row, line);
    memcpy(out, line + first, cols * sizeof *out);
}

/* Copies the first `rows` rows of an encoding's blocks from its operand, for measuring only. */
static int cut_blocks(double ***out, const sherd__seen *a, uint64_t share_rows, size_t rows,
                      const sherd__truth *t)
{
    uint32_t k = a->code->blocks;
    double **blocks = sherd__calloc(k, sizeof *blocks),
           *line = sherd__calloc(t->a.cols, sizeof *line);
    int err = blocks && line ? SHERD_OK : SHERD_ENOMEM;
    for (uint32_t b = 0; b < k && !err; b++) {
        blocks[b] = sherd__calloc(rows, a->cols * sizeof **blocks);
        if (!blocks[b]) err = SHERD_ENOMEM;
        for (size_t r = 0; r < rows && !err; r++) {
            uint64_t row = a->row          ? a->row[b * a->rows + r]
                           : a->block_cols ? r
                                           : b * share_rows + r;
            cut_row(a, b, row, t, line, blocks[b] + r * a->cols);
        }
    }
    sherd__free(line);
    *out = blocks;
    return err;
}

/* Copies a tile of B, which is the block in all K places. */
static int cut_tile(double ***out, const sherd__seen *b, const sherd__truth *t)
{
    uint32_t k = b->code->blocks;
    double **blocks = sherd__calloc(k, sizeof *blocks),
           *line = sherd__calloc(t->a.cols, sizeof *line),
           *tile = sherd__calloc(b->rows, b->cols * sizeof *tile);
    int err = blocks && line && tile ? SHERD_OK : SHERD_ENOMEM;
    for (size_t r = 0; r < b->rows && !err; r++) {
        sherd__truth_row(t, r, line);
        memcpy(tile + r * b->cols, line + b->col, b->cols * sizeof *tile);
    }
    for (uint32_t j = 0; j < k && !err; j++) blocks[j] = tile;
    if (err) sherd__free(tile);
    sherd__free(line);
    *out = blocks;
    return err;
}

static void free_blocks(double **blocks, uint32_t k)
{
    for (uint32_t b = k; blocks && b-- > 0;)
        if (b == 0 || blocks[b] != blocks[0]) sherd__free(blocks[b]);
    sherd__free(blocks);
}

/* Returns whether an encoding is of A and the rows of A that it contains are known. */
static bool placed(const sherd__shares *s, const sherd__seen *e)
{
    return strcmp(e->name, "A") == 0 && (!s->apart || e->row);
}

/* Attacks every share of A as if it contained values, and tests whether it depends on them. */
static int each_share(sherd_audit *r, const sherd__shares *s, const sherd__audit_known *known,
                      const sherd__audit_plan *plan, sherd_diag *d)
{
    sherd__clear_options opt = { .n = plan->n, .share_rows = s->share_rows };
    uint32_t len = s->apart ? s->seen_len : s->code.shares;
    int err = SHERD_OK;
    for (uint32_t i = 0; i < len && !err; i++) {
        const sherd__seen *e = &s->seen[s->apart ? i : 0];
        uint32_t domain = sherd__seen_domain(e, s->apart ? 0 : i);
        const sherd__attack by = { .who = plan->domain_name[domain],
                                   .truth = known->a,
                                   .pub = known->pub,
                                   .findings = &r->findings,
                                   .gallery = domain == plan->show ? &r->gallery : NULL };
        if (placed(s, e) && sherd__seen_has(e, s->apart ? 0 : i))
            err = sherd__audit_coded(&by, e, s->apart ? 0 : i, &opt, d);
        if (!err && plan->step && plan->step(plan->ctx, i + 1, len))
            err = sherd__fail(d, SHERD_EINTERRUPTED, NULL, "interrupted after %u of %u shares",
                              i + 1, len);
    }
    return err;
}

static int independence(sherd_audit *r, const sherd__shares *s, const sherd__truth *truth,
                        const sherd__audit_options *opt, sherd_diag *d)
{
    int err = SHERD_OK;
    for (uint32_t i = 0; i < s->seen_len && truth && !err; i++) {
        const sherd__seen *e = &s->seen[i];
        double **blocks = NULL;
        size_t rows = KNOWN_ENTRIES / e->cols + 1;
        if (!placed(s, e) || (!e->block_cols && e->cols != truth->a.cols)) continue;
        if (rows > e->rows) rows = e->rows;
        for (size_t k = 0; e->row && k < rows; k++) /* padding is known to be zeros */
            if (e->row[k] >= truth->a.rows && e->row[k] != SHERD__SEEN_PADDING) rows = k;
        if (rows == 0) continue;
        if (cut_blocks(&blocks, e, s->share_rows, rows, truth))
            err = sherd__fail_memory(d, "what is known of A");
        else
            err = sherd__audit_independence(&r->findings, e, (const double *const *)blocks,
                                            rows * e->cols, opt, d);
        free_blocks(blocks, e->code->blocks);
    }
    return err;
}

/* Returns whether masks can be solved for without knowing the operand. */
static bool enough_shares(const sherd__seen *e)
{
    uint32_t have = 0;
    for (uint32_t i = 0; i < e->code->shares; i++)
        have += e->residues[(size_t)i * e->code->primes_len] != NULL;
    return have >= e->code->blocks + e->code->masks;
}

/* Tests streams of masks, and reports which masks cannot be found. Rows of the first `earlier`
   encodings were counted before. */
static int streams(sherd_audit *r, const sherd__seen *seen, size_t len, size_t earlier,
                   const sherd__audit_options *opt, sherd_diag *d)
{
    const char *where = earlier > 0 ? " of several products" : "";
    sherd__streams_reach reach;
    size_t rows = 0, sent = 0;
    int err = sherd__audit_streams(&r->findings, seen, len, opt, &reach, d);
    if (err) return err;
    for (size_t i = earlier; i < len; i++) {
        rows += seen[i].rows;
        sent += seen[i].rows_sent > seen[i].rows ? seen[i].rows_sent : seen[i].rows;
    }
    if (reach.unsolved > 0)
        sherd__audit_leave_out(
            r,
            "masks of %zu of %zu encodings%s (%s), used twice at an offset: to solve for them "
            "requires the operand and T shares, or K+T shares, and their numbers",
            reach.unsolved, reach.encodings, where, reach.names);
    if (reach.sums > 0)
        sherd__audit_leave_out(r,
                               "masks of %zu of %zu encodings%s, one of them used twice: only "
                               "their sum in each share is known",
                               reach.sums, reach.encodings, where);
    if (sent > rows)
        sherd__audit_leave_out(r, "masks of %zu of %zu rows of shares%s: --rows reads more",
                               sent - rows, sent, where);
    return SHERD_OK;
}

/* Returns the known blocks of an encoding if they can be used; else sets *out to NULL. */
static int known_blocks(double ***out, const sherd__shares *s, const sherd__seen *e,
                        const sherd__truth *truth, const sherd__truth *right)
{
    *out = NULL;
    if (s->apart && !e->code->one_time) return SHERD_OK;
    if (e->right && e->row) return right ? cut_blocks(out, e, 0, e->rows, right) : SHERD_OK;
    if (e->right) return right ? cut_tile(out, e, right) : SHERD_OK;
    if (!truth || !placed(s, e) || (!e->block_cols && e->cols != truth->a.cols)) return SHERD_OK;
    return cut_blocks(out, e, s->share_rows, e->rows, truth);
}

/* Finds masks that were used twice, at any offset. For one-time masks, and for a record that lacks
   shares, this needs the operand. */
static int offsets(sherd_audit *r, const sherd__shares *s, const sherd__truth *truth,
                   const sherd__truth *right, const sherd__audit_options *opt, sherd_diag *d)
{
    sherd__seen *seen = sherd__calloc(s->seen_len, sizeof *seen);
    double ***blocks = sherd__calloc(s->seen_len, sizeof *blocks);
    int err = seen && blocks ? SHERD_OK : SHERD_ENOMEM;
    for (uint32_t i = 0; i < s->seen_len && !err; i++) {
        const sherd__seen *e = &s->seen[i];
        seen[i] = *e;
        if (enough_shares(e)) continue;
        err = known_blocks(&blocks[i], s, e, truth, right);
        seen[i].blocks = (const double *const *)blocks[i];
    }
    if (err) err = sherd__fail_memory_hint(d, "give fewer --rows", "what is known of A");
    else err = streams(r, seen, s->seen_len, 0, opt, d);
    for (uint32_t i = 0; blocks && i < s->seen_len; i++)
        free_blocks(blocks[i], s->seen[i].code->blocks);
    sherd__free(blocks);
    sherd__free(seen);
    return err;
}

/* Attacks all encodings by coalitions of one size; *s receives how many were attacked. */
static int coalitions(sherd_audit *r, const sherd__shares *s, uint32_t size,
                      const sherd__audit_options *opt, uint32_t *drawn, sherd_diag *d)
{
    int err = SHERD_OK;
    for (uint32_t i = 0; i < s->seen_len && !err; i++)
        err = sherd__audit_coalitions(&r->findings, &s->seen[i], size, opt, drawn, d);
    return err;
}

static int add_scope(sherd_audit *r, uint32_t n, uint32_t size, uint32_t drawn, size_t first,
                     sherd_diag *d)
{
    sherd__subsets m;
    if (sherd__subsets_choose(&m, n, size, 1, 0))
        return sherd__fail_memory(d, "the members of a coalition");
    sherd__audit_scope_add(r, "domain", size, drawn, m.of, first);
    sherd__subsets_fini(&m);
    return SHERD_OK;
}

static int by_code(sherd_audit *r, sherd__shares *s, const sherd__truth *truth, size_t first,
                   const sherd__audit_options *opt, sherd_diag *d)
{
    uint32_t drawn = 0, t = s->code.masks, n = s->numbered ? r->domains : s->code.shares;
    sherd__audit_options own = *opt;                   /* for made-up shares */
    size_t rows = KNOWN_ENTRIES / s->seen[0].cols + 1; /* coalitions test a sample of them */
    double **blocks = NULL;
    int err = SHERD_OK;
    if (rows > s->seen[0].rows) rows = s->seen[0].rows;
    if (truth && cut_blocks(&blocks, &s->seen[0], s->share_rows, rows, truth))
        err = sherd__fail_memory(d, "the blocks of A");
    if (!err && blocks) s->seen[0].blocks = (const double *const *)blocks;
    if (!err && t > 1) { /* for T = 1 single nodes are the coalitions */
        err = add_scope(r, n, 1, n, first, d);
        first = r->findings.len;
    }
    if (!err) err = coalitions(r, s, t, opt, &drawn, d);
    if (!err) err = add_scope(r, n, t, drawn, first, d);
    first = r->findings.len;
    if (!err) err = coalitions(r, s, t + 1, opt, &drawn, d);
    if (!err) err = add_scope(r, n, t + 1, drawn, first, d);
    if (s->numbered) own.domain_names = NULL;
    if (!err)
        err = sherd__audit_share_games(&r->findings, &s->code,
                                       (sherd__code_blocks){ GAME_ROWS, GAME_COLS, NULL }, &own, d);
    if (!err && s->code.form != SHERD__SEEN_LAGRANGE) /* the weights of B are others */
        err = sherd__audit_share_games(&r->findings, &s->code_b,
                                       (sherd__code_blocks){ GAME_ROWS, GAME_COLS, NULL }, &own, d);
    if (!err)
        err = sherd__audit_controls(&r->findings, &s->code,
                                    (sherd__code_blocks){ CONTROL_ROWS, CONTROL_COLS, NULL }, &own,
                                    d);
    s->seen[0].blocks = NULL;
    free_blocks(blocks, s->code.blocks);
    return err;
}

/* Attacks each domain separately, because how shares match is unknown or does not matter. With
   one-time masks all domains together hold only the separate rows of each, and the differences
   between their encodings are tested with all others. */
static int by_domain(sherd_audit *r, const sherd__shares *s, size_t first,
                     sherd__audit_options *opt, sherd_diag *d)
{
    sherd__seen_code code = s->single;
    opt->domain_names = NULL;
    if (!code.one_time) { /* for the controls, which need coalitions */
        code.blocks = 3;
        code.shares = 7;
    }
    int err = add_scope(r, r->domains, 1, r->domains, first, d);
    if (!err && code.one_time)
        err = sherd__audit_share_games(&r->findings, &code,
                                       (sherd__code_blocks){ GAME_ROWS, GAME_COLS, NULL }, opt, d);
    if (!err)
        err = sherd__audit_controls(&r->findings, &code,
                                    (sherd__code_blocks){ CONTROL_ROWS, CONTROL_COLS, NULL }, opt,
                                    d);
    return err;
}

/* Checks by shapes that B is the operand that was coded. */
static int check_right(const sherd__shares *s, const sherd__truth *right, sherd_diag *d)
{
    size_t rows = right->a.rows, end = 0;
    for (uint32_t i = 0; i < s->seen_len; i++) {
        const sherd__seen *e = &s->seen[i];
        if (!e->right || s->apart) continue;
        rows = e->row ? (size_t)s->cols : e->rows_sent;
        if (e->col + e->cols > end) end = e->col + e->cols;
    }
    if (rows == right->a.rows && (end == right->a.cols || (end < right->a.cols && s->left_out[0])))
        return SHERD_OK;
    return sherd__fail(d, SHERD_ESHAPE, "give the B that the recorded run was given",
                       "the record's B has %zu rows and %s%zu columns, and --right is %zu x %zu",
                       rows, s->left_out[0] ? "at least " : "", end, right->a.rows, right->a.cols);
}

/* Bytes beyond the edges of laid out blocks hide nothing, so they must be 0. */
static int edges(sherd_audit *r, const sherd__shares *s, sherd_diag *d)
{
    sherd_audit_finding f = sherd__finding_of("edges", "bytes that are not 0", false);
    if (s->stray == 0) return SHERD_OK;
    snprintf(f.who, sizeof f.who, "shares of the record");
    snprintf(f.subject, sizeof f.subject, "beyond the last row, column and term");
    f.value = (double)s->stray;
    f.chance = 0;
    f.flagged = true;
    snprintf(f.sentence, sizeof f.sentence,
             "%llu bytes beyond the last row, column or term of a share are not 0: no mask hides "
             "what they hold",
             (unsigned long long)s->stray);
    return sherd__findings_add(&r->findings, &f) ? sherd__fail_memory(d, "the findings") : SHERD_OK;
}

int sherd__audit_shares(sherd_audit *r, sherd__shares *s, const sherd__audit_known *known,
                        const sherd__audit_plan *plan, sherd_diag *d)
{
    sherd__audit_options opt = { .seed = plan->seed,
                                 .coalitions = plan->coalitions,
                                 .domain_names = plan->domain_name,
                                 .step = plan->step,
                                 .ctx = plan->ctx };
    size_t first = r->findings.len;
    r->colluding = !s->apart ? s->code.masks : plan->colluding ? plan->colluding : 1;
    if (s->note[0]) sherd__audit_warn(r, "%s", s->note);
    if (s->left_out[0]) {
        sherd__audit_warn(r, "%s", s->left_out);
        sherd__audit_leave_out(r, "masks of encodings that are not attacked: %s", s->left_out);
    }
    int err = known->b ? check_right(s, known->b, d) : SHERD_OK;
    if (!err) err = edges(r, s, d);
    if (!err) err = each_share(r, s, known, plan, d);
    if (!err) err = independence(r, s, known->a, &opt, d);
    if (!err) err = sherd__audit_uniformity(&r->findings, s->seen, s->seen_len, &opt, d);
    if (!err) err = offsets(r, s, known->a, known->b, &opt, d);
    if (!err && s->apart) return by_domain(r, s, first, &opt, d);
    return err ? err : by_code(r, s, known->a, first, &opt, d);
}

/* Returns whether two encodings are the same: the first share that both have has equal bytes. */
static bool sent_again(const sherd__seen *a, const sherd__seen *b)
{
    size_t n = a->rows * a->cols;
    if (a->rows != b->rows || a->cols != b->cols || a->code->primes_len != b->code->primes_len)
        return false;
    uint32_t shares = a->code->shares < b->code->shares ? a->code->shares : b->code->shares;
    for (uint32_t i = 0; i < shares; i++) {
        const uint32_t *x = a->residues[(size_t)i * a->code->primes_len],
                       *y = b->residues[(size_t)i * b->code->primes_len];
        if (x && y) return memcmp(x, y, n * sizeof *x) == 0;
    }
    return false;
}

int sherd__audit_reuse(sherd_audit *r, const sherd__shares *s, const sherd__shares *more,
                       size_t more_len, const sherd__audit_plan *plan, sherd_diag *d)
{
    sherd__audit_options opt = {
        .seed = plan->seed, .domain_names = plan->domain_name, .step = plan->step, .ctx = plan->ctx
    };
    size_t all = s->seen_len, len = 0;
    for (size_t i = 0; i < more_len; i++) all += more[i].seen_len;
    sherd__seen *seen = sherd__calloc(all, sizeof *seen);
    if (!seen) return sherd__fail_memory(d, "the shares");
    for (uint32_t i = 0; i < s->seen_len; i++) seen[len++] = s->seen[i];
    for (size_t i = 0; i < more_len; i++)
        for (uint32_t k = 0; k < more[i].seen_len; k++) {
            bool again = false;
            for (size_t j = 0; j < len && !again; j++)
                again = sent_again(&seen[j], &more[i].seen[k]);
            if (!again) seen[len++] = more[i].seen[k];
        }
    int err = len > s->seen_len ? sherd__audit_uniformity(&r->findings, seen, len, &opt, d) : 0;
    if (!err && len > s->seen_len) err = streams(r, seen, len, s->seen_len, &opt, d);
    sherd__free(seen);
    return err;
}
