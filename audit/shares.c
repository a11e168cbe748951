/*
 * From blocks to shares. The left blocks of a domain's tasks, in the order of the tasks' numbers,
 * are the panels of its share of A, each counted once, however often and to whichever of its nodes
 * it was sent; the right blocks, in the order in which they are first used, are the tiles of its
 * share of B. Tiles are judged as encodings of their own: that they are parts of one mask, and not
 * one mask used twice, is for the attacks to find. A domain whose share is not as high as that of
 * the others, since it was lost or came late, is left out.
 */
#include "audit/shares.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "crypto/lagrange.h"

#define PANELS_MAX 65536u
#define JOBS_MAX 64u

typedef struct panel {
    uint32_t *of[SHERD__TABLE_PRIMES]; /* kept x cols */
    size_t rows, kept, cols;
} panel;

/* Where a panel stands: the number of the first task that used it, and its rows. */
typedef struct place {
    uint32_t task;
    size_t rows, at; /* of the share: its first row */
} place;

/* A domain: what its nodes hold of A and of B. */
typedef struct node {
    panel a, b[SHERD__SHARES_TILES];
    uint64_t rights[SHERD__SHARES_TILES]; /* hashes of right blocks, those of tiles */
    uint32_t tiles, more;                 /* read; beyond what is read */
    uint64_t *known;     /* hashes of panels that are in */
    place *places;       /* of each of these */
    size_t known_len;
} node;

/* A task of one of a domain's nodes. */
typedef struct turn {
    const sherd__node_view *v;
    const sherd__view_task *t;
} turn;

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

typedef struct moved {
    uint64_t job, bytes;
} moved;

static int compare_moved(const void *a, const void *b)
{
    const moved *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    return (x->job > y->job) - (x->job < y->job);
}

size_t sherd__shares_jobs(const sherd__views *v, uint64_t *jobs, size_t room)
{
    moved seen[JOBS_MAX] = { { 0, 0 } };
    size_t len = 0;
    for (size_t i = 0; i < v->len; i++)
        for (size_t t = 0; t < v->nodes[i].tasks_len; t++) {
            const sherd__view_task *task = &v->nodes[i].tasks[t];
            if (!coded(&v->nodes[i], task)) continue;
            size_t at = 0;
            while (at < len && seen[at].job != task->job) at++;
            if (at == len && len == JOBS_MAX) continue;
            if (at == len) seen[len++].job = task->job;
            seen[at].bytes += v->nodes[i].blocks[task->left].info.len;
        }
    qsort(seen, len, sizeof *seen, compare_moved);
    if (len > room) len = room;
    for (size_t i = 0; i < len; i++) jobs[i] = seen[i].job;
    return len;
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

static int take_left(node *n, const turn *at, size_t rows_max)
{
    uint8_t *body;
    const sherd__view_block *b = &at->v->blocks[at->t->left];
    int err = read_body(at->v, b, &body);
    if (err) return err == SHERD_EFRAME ? SHERD_OK : err;
    uint64_t h = hash_bytes(body, (size_t)b->info.len);
    bool is_known = n->known_len == PANELS_MAX;
    for (size_t i = 0; i < n->known_len && !is_known; i++) is_known = n->known[i] == h;
    if (!is_known) {
        uint64_t *known = sherd__realloc(n->known, (n->known_len + 1) * sizeof *known);
        if (known) n->known = known;
        place *places =
            known ? sherd__realloc(n->places, (n->known_len + 1) * sizeof *places) : NULL;
        if (places) {
            n->places = places;
            places[n->known_len] = (place){ at->t->number, (size_t)b->info.rows, n->a.rows };
            n->known[n->known_len++] = h;
            err = append(&n->a, &b->info, body, rows_max);
        } else {
            err = SHERD_ENOMEM;
        }
    }
    sherd__free(body);
    return err;
}

/* A tile of B, the first time that it is used. */
static int take_right(node *n, const turn *at, size_t rows_max)
{
    uint8_t *body;
    const sherd__view_block *b = &at->v->blocks[at->t->right];
    int err = read_body(at->v, b, &body);
    if (err) return err == SHERD_EFRAME ? SHERD_OK : err;
    uint64_t h = hash_bytes(body, (size_t)b->info.len) | 1;
    uint32_t i = 0;
    while (i < n->tiles && n->rights[i] != h) i++;
    if (i == n->tiles && i == SHERD__SHARES_TILES) {
        n->more = 1;
    } else if (i == n->tiles) {
        n->rights[n->tiles++] = h;
        if (b->info.dtype == SHERD__RESIDUES) err = append(&n->b[i], &b->info, body, rows_max);
    }
    sherd__free(body);
    return err;
}

static int compare_turns(const void *a, const void *b)
{
    const turn *x = a, *y = b;
    if (x->t->number != y->t->number) return x->t->number < y->t->number ? -1 : 1;
    return (x->t > y->t) - (x->t < y->t);
}

/* The coded tasks of a domain's nodes, in the order of their numbers. */
static int list_turns(const sherd__views *v, uint32_t domain, uint64_t job, turn **out, size_t *len)
{
    size_t all = 0, n = 0;
    for (size_t i = 0; i < v->len; i++)
        if (v->nodes[i].domain == domain) all += v->nodes[i].tasks_len;
    turn *list = sherd__calloc(all, sizeof *list);
    if (!list) return SHERD_ENOMEM;
    for (size_t i = 0; i < v->len; i++) {
        const sherd__node_view *w = &v->nodes[i];
        for (size_t k = 0; w->domain == domain && k < w->tasks_len; k++)
            if (w->tasks[k].job == job && coded(w, &w->tasks[k]))
                list[n++] = (turn){ w, &w->tasks[k] };
    }
    if (n) qsort(list, n, sizeof *list, compare_turns);
    *out = list;
    *len = n;
    return SHERD_OK;
}

static int read_domain(node *n, const sherd__views *v, uint32_t domain, uint64_t job,
                       size_t rows_max, sherd__seen_code *code)
{
    const turn *left = NULL, *right = NULL; /* of the task before: most blocks are used again */
    turn *list;
    size_t len;
    int err = list_turns(v, domain, job, &list, &len);
    if (err) return err;
    for (size_t i = 0; i < len && !err; i++) {
        const sherd__view_task *t = list[i].t;
        if (code->primes_len == 0) {
            code->primes_len = t->primes_len;
            memcpy(code->primes, t->primes, sizeof t->primes);
        }
        if (code->primes_len != t->primes_len ||
            memcmp(code->primes, t->primes, t->primes_len * sizeof *t->primes))
            continue;
        if (!right || right->v != list[i].v || right->t->right != t->right)
            err = take_right(n, &list[i], rows_max);
        if (!err && (!left || left->v != list[i].v || left->t->left != t->left))
            err = take_left(n, &list[i], rows_max);
        left = right = &list[i];
    }
    sherd__free(list);
    return err;
}

static void free_node(node *n)
{
    for (unsigned q = 0; q < SHERD__TABLE_PRIMES; q++) {
        sherd__free(n->a.of[q]);
        for (uint32_t i = 0; i < SHERD__SHARES_TILES; i++) sherd__free(n->b[i].of[q]);
    }
    sherd__free(n->known);
    sherd__free(n->places);
}

/* --- which code ------------------------------------------------------------------------------- */

static sherd__shares_kind kind_of(const node *nodes, size_t len, uint64_t n)
{
    uint64_t right = 0, rows = 0;
    size_t have = 0;
    bool same = true;
    for (size_t i = 0; i < len; i++) {
        if (!nodes[i].tiles) continue;
        if (right && nodes[i].rights[0] != right) same = false;
        right = nodes[i].rights[0];
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

/* A's panel, or a tile of B; NULL: a domain that holds other tiles than most. */
static panel *part_of(node *n, uint32_t part, uint32_t tiles)
{
    return part == 0 ? &n->a : n->tiles == tiles ? &n->b[part - 1] : NULL;
}

/* The shape that most domains have; others are left out. */
static const panel *common(node *nodes, size_t len, uint32_t part, uint32_t tiles)
{
    const panel *best = NULL;
    size_t most = 0;
    for (size_t i = 0; i < len; i++) {
        const panel *p = part_of(&nodes[i], part, tiles);
        size_t same = 0;
        for (size_t j = 0; p && p->kept && j < len; j++) {
            const panel *o = part_of(&nodes[j], part, tiles);
            same += o && o->rows == p->rows && o->cols == p->cols && o->kept == p->kept;
        }
        if (same > most) {
            most = same;
            best = p;
        }
    }
    return best;
}

static const char *const part_names[] = { "A",           "B",           "B, tile 2", "B, tile 3",
                                          "B, tile 4", "B, tile 5", "B, tile 6", "B, tile 7",
                                          "B, tile 8" };

static void take_code(sherd__shares *s, node *nodes, size_t len, uint32_t part, uint32_t tiles,
                      const panel *shape)
{
    const panel want = *shape;
    uint32_t primes = s->code.primes_len;
    const uint32_t **index = s->index + part * len * primes;
    for (size_t i = 0; i < len; i++) {
        panel *p = part_of(&nodes[i], part, tiles);
        if (p && p->rows == want.rows && p->cols == want.cols && p->kept == want.kept)
            give(s, index, (uint32_t)i, p, primes);
        else if (part == 0)
            snprintf(s->note, sizeof s->note,
                     "a node's share is not as high as the others' and was left out: it was lost, "
                     "or came late");
    }
    s->seen[s->seen_len++] = (sherd__seen){ .name = part_names[part],
                                            .code = &s->code,
                                            .rows = want.kept,
                                            .cols = want.cols,
                                            .residues = index };
}

static void take_apart(sherd__shares *s, const uint32_t **index, panel *p, size_t domain,
                       const char *name, const uint32_t *row)
{
    if (p->kept == 0) return;
    s->domains[domain] = (uint32_t)domain;
    s->seen[s->seen_len++] = (sherd__seen){ .name = name, .code = &s->single, .rows = p->kept,
                                            .cols = p->cols, .residues = index,
                                            .domain = &s->domains[domain], .row = row };
    give(s, index, 0, p, s->code.primes_len);
}

/*
 * blind cuts A's rows into one range for each of `slots` nodes, and these into panels; task numbers
 * go round the slots, then on to the next panel, then to the next tile. The panel at the head of
 * the first range is the highest, so that all of it can be told from what a listener sees.
 */
static int rows_of_blind(sherd__shares *s, const node *nodes, size_t len, size_t slots, uint64_t n)
{
    uint64_t each = n / slots, more = n % slots, first = each + (more > 0), high = 0;
    for (size_t i = 0; i < len; i++)
        for (size_t k = 0; k < nodes[i].known_len; k++)
            if (nodes[i].places[k].rows > high) high = nodes[i].places[k].rows;
    if (high == 0 || first == 0 || n > UINT32_MAX) return SHERD_OK;
    uint64_t panels = (first - 1) / high + 1;
    for (size_t i = 0; i < len; i++) {
        const node *d = &nodes[i];
        uint32_t *row = sherd__calloc(d->a.kept, sizeof *row);
        if (!row) return SHERD_ENOMEM;
        s->rows[s->rows_len++] = row;
        for (size_t k = 0; k < d->a.kept; k++) row[k] = UINT32_MAX;
        for (size_t k = 0; k < d->known_len; k++) {
            const place *p = &d->places[k];
            uint64_t ordinal = p->task ? p->task - 1 : UINT64_MAX, slot = ordinal % slots;
            uint64_t begin = slot * each + (slot < more ? slot : more), rows = each + (slot < more);
            uint64_t from = ordinal / slots % panels * high;
            if (p->task == 0 || from + p->rows > rows) continue; /* not what a coordinator sends */
            for (size_t r = 0; r < p->rows && p->at + r < d->a.kept; r++)
                row[p->at + r] = (uint32_t)(begin + from + r);
        }
    }
    return SHERD_OK;
}

/* Every domain by itself; of B too, but where it is public. */
static int take_all_apart(sherd__shares *s, node *nodes, size_t len, size_t slots, uint64_t n,
                          sherd_diag *d)
{
    bool blind = s->kind == SHERD__SHARES_BLIND;
    s->apart = true;
    s->single = s->code;
    s->single.blocks = s->single.masks = s->single.shares = 1;
    s->single.one_time = blind;
    if (blind && slots && rows_of_blind(s, nodes, len, slots, n))
        return sherd__fail(d, SHERD_ENOMEM, NULL, "out of memory for the shares");
    for (size_t i = 0; i < len; i++) {
        const uint32_t **index = s->index + 2 * i * s->code.primes_len;
        take_apart(s, index, &nodes[i].a, i, "A", s->rows_len ? s->rows[i] : NULL);
        if (s->kind == SHERD__SHARES_BOTH)
            take_apart(s, index + s->code.primes_len, &nodes[i].b[0], i, "B", NULL);
    }
    if (s->seen_len > 0) return SHERD_OK;
    return sherd__fail(d, SHERD_EFORMAT, NULL, "no share of the record is whole");
}

static int arrange(sherd__shares *s, node *nodes, size_t len, const sherd__views *v, uint64_t n,
                   uint32_t masks, uint32_t spare, sherd_diag *d)
{
    size_t parts = SHERD__SHARES_TILES + 1, most = parts * len * SHERD__TABLE_PRIMES;
    uint32_t tiles = 0;
    bool more = false;
    s->kind = kind_of(nodes, len, n);
    s->arrays = sherd__calloc(most, sizeof *s->arrays);
    s->index = sherd__calloc(most, sizeof *s->index);
    s->seen = sherd__calloc(parts + 2 * len, sizeof *s->seen);
    s->domains = sherd__calloc(len, sizeof *s->domains);
    s->rows = sherd__calloc(len, sizeof *s->rows);
    if (!s->arrays || !s->index || !s->seen || !s->domains || !s->rows)
        return sherd__fail(d, SHERD_ENOMEM, NULL, "out of memory for the shares");
    for (size_t i = 0; i < len; i++) {
        if (nodes[i].tiles > tiles) tiles = nodes[i].tiles;
        more = more || nodes[i].more;
    }
    if (s->kind == SHERD__SHARES_BLIND || !v->of_coordinator) {
        if (!v->of_coordinator)
            snprintf(s->note, sizeof s->note,
                     "nodes' own records do not tell which share is whose: coalitions are attacked "
                     "in the coordinator's");
        return take_all_apart(s, nodes, len, v->of_coordinator ? v->len : 0, n, d);
    }
    const panel *a = common(nodes, len, 0, tiles), *b = common(nodes, len, 1, tiles);
    if (!a || (!b && s->kind == SHERD__SHARES_BOTH))
        return sherd__fail(d, SHERD_EFORMAT, NULL, "no share of the record is whole");
    s->share_rows = a->rows;
    int err = choose_code(s, (uint32_t)len, n, masks, spare, d);
    if (err) return err;
    take_code(s, nodes, len, 0, tiles, a);
    for (uint32_t t = 1; t <= tiles && s->kind == SHERD__SHARES_BOTH; t++)
        if ((b = common(nodes, len, t, tiles))) take_code(s, nodes, len, t, tiles, b);
    if (more && s->kind == SHERD__SHARES_BOTH && !s->note[0])
        snprintf(s->note, sizeof s->note, "B was sent in more than %u tiles: the first %u are "
                 "attacked", SHERD__SHARES_TILES, SHERD__SHARES_TILES);
    return SHERD_OK;
}

int sherd__shares_read(sherd__shares *out, const sherd__views *v, uint64_t job, uint64_t n,
                       uint32_t masks, uint32_t spare, size_t rows_max, sherd_diag *d)
{
    sherd__shares s = { 0 };
    size_t len = v->domains_len;
    node *nodes = sherd__calloc(len, sizeof *nodes);
    int err = nodes ? SHERD_OK : SHERD_ENOMEM;
    for (uint32_t i = 0; i < len && !err; i++)
        err = read_domain(&nodes[i], v, i, job, rows_max, &s.code);
    if (err) err = sherd__fail(d, err, "give fewer --rows", "out of memory for the shares");
    if (!err) err = arrange(&s, nodes, len, v, n, masks, spare, d);
    for (size_t i = 0; nodes && i < len; i++) free_node(&nodes[i]);
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

int sherd__shares_number(sherd__shares *s, unsigned product)
{
    s->names = sherd__calloc(s->seen_len, sizeof *s->names);
    if (!s->names) return SHERD_ENOMEM;
    for (uint32_t i = 0; i < s->seen_len; i++) {
        snprintf(s->names[i], sizeof *s->names, "%.12s (%u)", s->seen[i].name, product);
        s->seen[i].name = s->names[i];
    }
    return SHERD_OK;
}

void sherd__shares_fini(sherd__shares *s)
{
    sherd__free(s->names);
    for (size_t i = 0; i < s->arrays_len; i++) sherd__free(s->arrays[i]);
    for (size_t i = 0; i < s->rows_len; i++) sherd__free(s->rows[i]);
    sherd__free(s->arrays);
    sherd__free(s->rows);
    sherd__free(s->index);
    sherd__free(s->seen);
    sherd__free(s->domains);
    memset(s, 0, sizeof *s);
}
