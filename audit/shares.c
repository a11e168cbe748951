/*
 * From blocks to shares. The left blocks of a node's tasks are the panels of its share of A, each
 * counted once, however often it was sent; the right block of its first task is its share of B (of
 * the first tile: every tile is coded alike). A node whose share is not as high as that of the
 * others, since it was lost or came late, is left out.
 */
#include "audit/shares.h"

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "crypto/lagrange.h"

#define PANELS_MAX 65536u

typedef struct panel {
    uint32_t *of[SHERD__TABLE_PRIMES]; /* kept x cols */
    size_t rows, kept, cols;
} panel;

typedef struct node {
    panel a, b;
    uint64_t right;      /* hash of the first right block */
    uint64_t *known;     /* hashes of panels that are in */
    size_t known_len;
} node;

/* A product whose left block is coded; its right block may be public, and then is of any kind. */
static bool coded(const sherd__node_view *v, const sherd__view_task *t)
{
    if (t->left == SHERD__VIEW_NONE || t->right == SHERD__VIEW_NONE) return false;
    const sherd__view_block *a = &v->blocks[t->left], *b = &v->blocks[t->right];
    bool right = b->info.dtype != SHERD__RESIDUES ||
                 (b->info.groups <= 1 && b->info.primes == t->primes_len);
    bool left = a->info.dtype == SHERD__RESIDUES && a->info.groups <= 1 && a->info.rows > 0 &&
                a->info.cols > 0 && a->info.primes == t->primes_len;
    return t->primes_len > 0 && a->whole && b->whole && left && right;
}

bool sherd__shares_job(const sherd__views *v, uint64_t *job)
{
    struct { uint64_t job, bytes; } seen[64] = { { 0, 0 } };
    size_t len = 0, best = 0;
    for (size_t i = 0; i < v->len; i++)
        for (size_t t = 0; t < v->nodes[i].tasks_len; t++) {
            const sherd__view_task *task = &v->nodes[i].tasks[t];
            if (!coded(&v->nodes[i], task)) continue;
            size_t at = 0;
            while (at < len && seen[at].job != task->job) at++;
            if (at == len && len == sizeof seen / sizeof *seen) continue;
            if (at == len) seen[len++].job = task->job;
            seen[at].bytes += v->nodes[i].blocks[task->left].info.len;
            if (seen[at].bytes > seen[best].bytes) best = at;
        }
    if (len) *job = seen[best].job;
    return len > 0;
}

static uint64_t hash_bytes(const uint8_t *p, size_t len)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325) ^ len;
    for (; len >= 8; p += 8, len -= 8)
        h = (h ^ sherd__get_u64(p)) * UINT64_C(0x9e3779b97f4a7c15) ^ h >> 29;
    for (; len; p++, len--) h = (h ^ *p) * UINT64_C(0x100000001b3);
    return h;
}

/* Appends a block's rows to a panel, as far as rows_max allows. */
static int append(panel *p, const sherd__fragment_info *info, const uint8_t *body, size_t rows_max)
{
    size_t rows = (size_t)info->rows, cols = (size_t)info->cols, bytes;
    size_t take = p->kept >= rows_max ? 0 : rows < rows_max - p->kept ? rows : rows_max - p->kept;
    if (p->cols != 0 && p->cols != cols) return SHERD_OK;
    p->cols = cols;
    p->rows += rows;
    if (take == 0) return SHERD_OK;
    if (!sherd__mul(p->kept + take, cols, &bytes) || !sherd__mul(bytes, sizeof **p->of, &bytes))
        return SHERD_ENOMEM;
    for (uint32_t q = 0; q < info->primes; q++) {
        uint32_t *to = sherd__realloc(p->of[q], bytes);
        if (!to) return SHERD_ENOMEM;
        p->of[q] = to;
        const uint8_t *from = body + 8 * (size_t)info->groups + (size_t)q * rows * cols * 3;
        for (size_t i = 0; i < take * cols; i++, from += 3)
            to[p->kept * cols + i] =
                (uint32_t)from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16;
    }
    p->kept += take;
    return SHERD_OK;
}

static int read_body(const sherd__node_view *v, const sherd__view_block *b, uint8_t **out)
{
    *out = sherd__alloc((size_t)b->info.len);
    if (!*out) return SHERD_ENOMEM;
    int err = sherd__view_body(v, b, *out);
    if (err) {
        sherd__free(*out);
        *out = NULL;
    }
    return err;
}

static int take_left(node *n, const sherd__node_view *v, const sherd__view_block *b,
                     size_t rows_max)
{
    uint8_t *body;
    int err = read_body(v, b, &body);
    if (err) return err == SHERD_EFRAME ? SHERD_OK : err;
    uint64_t h = hash_bytes(body, (size_t)b->info.len);
    bool is_known = n->known_len == PANELS_MAX;
    for (size_t i = 0; i < n->known_len && !is_known; i++) is_known = n->known[i] == h;
    uint64_t *known =
        is_known ? NULL : sherd__realloc(n->known, (n->known_len + 1) * sizeof *known);
    if (known) {
        n->known = known;
        n->known[n->known_len++] = h;
        err = append(&n->a, &b->info, body, rows_max);
    } else if (!is_known) {
        err = SHERD_ENOMEM;
    }
    sherd__free(body);
    return err;
}

static int take_right(node *n, const sherd__node_view *v, const sherd__view_block *b,
                      size_t rows_max)
{
    uint8_t *body;
    int err = read_body(v, b, &body);
    if (err) return err == SHERD_EFRAME ? SHERD_OK : err;
    n->right = hash_bytes(body, (size_t)b->info.len) | 1;
    if (b->info.dtype == SHERD__RESIDUES) err = append(&n->b, &b->info, body, rows_max);
    sherd__free(body);
    return err;
}

static int read_node(node *n, const sherd__node_view *v, uint64_t job, size_t rows_max,
                     sherd__seen_code *code)
{
    int err = SHERD_OK;
    size_t last = SHERD__VIEW_NONE;
    for (size_t i = 0; i < v->tasks_len && !err; i++) {
        const sherd__view_task *t = &v->tasks[i];
        if (t->job != job || !coded(v, t)) continue;
        if (code->primes_len == 0) {
            code->primes_len = t->primes_len;
            memcpy(code->primes, t->primes, sizeof t->primes);
        }
        if (code->primes_len != t->primes_len ||
            memcmp(code->primes, t->primes, t->primes_len * sizeof *t->primes))
            continue;
        if (!n->right) err = take_right(n, v, &v->blocks[t->right], rows_max);
        if (!err && t->left != last) err = take_left(n, v, &v->blocks[t->left], rows_max);
        last = t->left;
    }
    return err;
}

static void free_panel(panel *p)
{
    for (unsigned q = 0; q < SHERD__TABLE_PRIMES; q++) sherd__free(p->of[q]);
}

/* --- which code ------------------------------------------------------------------------------- */

static sherd__shares_kind kind_of(const node *nodes, size_t len, uint64_t n)
{
    uint64_t right = 0, rows = 0;
    size_t have = 0;
    bool same = true;
    for (size_t i = 0; i < len; i++) {
        if (!nodes[i].right) continue;
        if (right && nodes[i].right != right) same = false;
        right = nodes[i].right;
        rows += nodes[i].a.rows;
        have++;
    }
    if (have > 1 && !same) return SHERD__SHARES_BOTH;
    return n > 0 && rows == n ? SHERD__SHARES_BLIND
           : have > 1         ? SHERD__SHARES_ONE
                              : SHERD__SHARES_BOTH;
}

static int choose_code(sherd__shares *s, uint32_t shares, uint64_t n, uint32_t masks,
                       uint32_t spare, sherd_diag *d)
{
    bool both = s->kind == SHERD__SHARES_BOTH;
    uint32_t blocks = sherd__lcc_blocks(shares, masks, spare, both);
    uint64_t h = s->share_rows;
    if (n > 0)
        for (uint32_t k = 1;
             k + masks <= SHERD__LCC_BLOCKS_MAX && (blocks == 0 || (n + blocks - 1) / blocks != h);
             k++)
            if ((n + k - 1) / k == h) blocks = k;
    if (blocks == 0 || (n > 0 && (n + blocks - 1) / blocks != h))
        return sherd__fail(d, SHERD_EINVAL,
                           "give the --colluding T and --spare S of the run, and its A",
                           "no code of %u nodes with T = %u has shares of %llu rows", shares, masks,
                           (unsigned long long)h);
    s->code.blocks = blocks;
    s->code.masks = masks;
    s->code.shares = shares;
    const sherd__lcc c = { blocks, masks, shares };
    for (uint32_t q = 0; q < s->code.primes_len; q++)
        if (sherd__lcc_check(&c, s->code.primes[q]))
            return sherd__fail(d, SHERD_EINVAL, "give the --colluding T and --spare S of the run",
                               "K = %u, T = %u, N = %u is no code", blocks, masks, shares);
    return SHERD_OK;
}

/* --- as arrays -------------------------------------------------------------------------------- */

static void give(sherd__shares *s, const uint32_t **index, uint32_t share, panel *p,
                 uint32_t primes)
{
    for (uint32_t q = 0; q < primes; q++) {
        index[(size_t)share * primes + q] = p->of[q];
        s->arrays[s->arrays_len++] = p->of[q];
        p->of[q] = NULL;
    }
}

/* The shape that most nodes have; others are left out. */
static const panel *common(const node *nodes, size_t len, bool left)
{
    const panel *best = NULL;
    size_t most = 0;
    for (size_t i = 0; i < len; i++) {
        const panel *p = left ? &nodes[i].a : &nodes[i].b;
        size_t same = 0;
        for (size_t j = 0; j < len && p->kept; j++) {
            const panel *o = left ? &nodes[j].a : &nodes[j].b;
            same += o->rows == p->rows && o->cols == p->cols && o->kept == p->kept;
        }
        if (same > most) {
            most = same;
            best = p;
        }
    }
    return best;
}

static void take_code(sherd__shares *s, node *nodes, size_t len, bool left, const panel *shape)
{
    const panel want = *shape;
    uint32_t primes = s->code.primes_len;
    const uint32_t **index = s->index + (left ? 0 : len * primes);
    for (size_t i = 0; i < len; i++) {
        panel *p = left ? &nodes[i].a : &nodes[i].b;
        if (p->rows == want.rows && p->cols == want.cols && p->kept == want.kept)
            give(s, index, (uint32_t)i, p, primes);
        else if (left)
            snprintf(s->note, sizeof s->note,
                     "a node's share is not as high as the others' and was left out: it was lost, "
                     "or came late");
    }
    s->seen[s->seen_len++] = (sherd__seen){ .name = left ? "A" : "B",
                                            .code = &s->code,
                                            .rows = want.kept,
                                            .cols = want.cols,
                                            .residues = index };
}

static void take_apart(sherd__shares *s, const uint32_t **index, panel *p, size_t at,
                       const char *name)
{
    if (p->kept == 0) return;
    s->domains[at] = (uint32_t)at;
    s->seen[s->seen_len++] = (sherd__seen){ .name = name, .code = &s->single, .rows = p->kept,
                                            .cols = p->cols, .residues = index,
                                            .domain = &s->domains[at] };
    give(s, index, 0, p, s->code.primes_len);
}

/* Every node by itself; of B too, but where it is public. */
static int take_all_apart(sherd__shares *s, node *nodes, size_t len, bool public_b, sherd_diag *d)
{
    s->apart = true;
    s->single = s->code;
    s->single.blocks = s->single.masks = s->single.shares = 1;
    for (size_t i = 0; i < len; i++) {
        const uint32_t **index = s->index + 2 * i * s->code.primes_len;
        take_apart(s, index, &nodes[i].a, i, "A");
        if (!public_b) take_apart(s, index + s->code.primes_len, &nodes[i].b, i, "B");
    }
    if (s->seen_len > 0) return SHERD_OK;
    return sherd__fail(d, SHERD_EFORMAT, NULL, "no share of the record is whole");
}

static int arrange(sherd__shares *s, node *nodes, size_t len, bool numbered, uint64_t n,
                   uint32_t masks, uint32_t spare, sherd_diag *d)
{
    size_t most = 2 * len * SHERD__TABLE_PRIMES;
    s->kind = kind_of(nodes, len, n);
    s->arrays = sherd__calloc(most, sizeof *s->arrays);
    s->index = sherd__calloc(most, sizeof *s->index);
    s->seen = sherd__calloc(2 * len, sizeof *s->seen);
    s->domains = sherd__calloc(len, sizeof *s->domains);
    if (!s->arrays || !s->index || !s->seen || !s->domains)
        return sherd__fail(d, SHERD_ENOMEM, NULL, "out of memory for the shares");
    if (s->kind == SHERD__SHARES_BLIND || !numbered) {
        if (!numbered)
            snprintf(s->note, sizeof s->note,
                     "nodes' own records do not tell which share is whose: coalitions are attacked "
                     "in the coordinator's");
        return take_all_apart(s, nodes, len, s->kind != SHERD__SHARES_BOTH, d);
    }
    const panel *a = common(nodes, len, true), *b = common(nodes, len, false);
    if (!a || (!b && s->kind == SHERD__SHARES_BOTH))
        return sherd__fail(d, SHERD_EFORMAT, NULL, "no share of the record is whole");
    s->share_rows = a->rows;
    int err = choose_code(s, (uint32_t)len, n, masks, spare, d);
    if (err) return err;
    take_code(s, nodes, len, true, a);
    if (s->kind == SHERD__SHARES_BOTH) take_code(s, nodes, len, false, b);
    return SHERD_OK;
}

int sherd__shares_read(sherd__shares *out, const sherd__views *v, uint64_t job, uint64_t n,
                       uint32_t masks, uint32_t spare, size_t rows_max, sherd_diag *d)
{
    sherd__shares s = { 0 };
    node *nodes = sherd__calloc(v->len, sizeof *nodes);
    int err = nodes ? SHERD_OK : SHERD_ENOMEM;
    for (size_t i = 0; i < v->len && !err; i++)
        err = read_node(&nodes[i], &v->nodes[i], job, rows_max, &s.code);
    if (err) err = sherd__fail(d, err, "give fewer --rows", "out of memory for the shares");
    if (!err) err = arrange(&s, nodes, v->len, v->of_coordinator, n, masks, spare, d);
    for (size_t i = 0; nodes && i < v->len; i++) {
        free_panel(&nodes[i].a);
        free_panel(&nodes[i].b);
        sherd__free(nodes[i].known);
    }
    sherd__free(nodes);
    *out = s;
    if (err) {
        sherd__shares_fini(out);
        return err;
    }
    for (uint32_t i = 0; i < out->seen_len; i++) /* they moved with *out */
        out->seen[i].code = out->apart ? &out->single : &out->code;
    return SHERD_OK;
}

void sherd__shares_fini(sherd__shares *s)
{
    for (size_t i = 0; i < s->arrays_len; i++) sherd__free(s->arrays[i]);
    sherd__free(s->arrays);
    sherd__free(s->index);
    sherd__free(s->seen);
    sherd__free(s->domains);
    memset(s, 0, sizeof *s);
}
