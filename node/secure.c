/*
 * One client's session of secure aggregation: JOIN (a key of one's own), ROSTER (everybody's), then
 * rounds of SEAL, HIDE and OPEN. Nothing is believed of a coordinator but who connected:
 * parameters, shapes and keys are checked, every step of a round is taken at most once, and a new
 * JOIN has new keys. What a coordinator could still do, and what it could not, is in
 * docs/THREATS.md.
 */
#include "node/secure.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "core/wipe.h"
#include "crypto/aggregate.h"
#include "learn/secure.h"

_Static_assert(SHERD__SEAL_KEY == 32, "a card has room for this");

enum { SIGNATURE_AT = 64, KEY_AT = 32 };

struct sherd__secure {
    sherd__secure_site site;
    uint32_t admitted;    /* tasks that are not done */
    uint64_t forget;      /* job to be forgotten then; 0: none */
    uint64_t reserved;
    /* since JOIN */
    uint64_t job;         /* 0: none */
    sherd__secure_plan plan;
    sherd__recipe recipe;
    sherd__block *x, *targets; /* dealt; NULL: its own */
    bool joined;
    sherd__grader *grader;
    sherd__dataset data;
    size_t count;         /* parameters */
    sherd__aggregate a;
    sherd__seal_key key;
    uint8_t card[SHERD__SECURE_CARD];
    /* since ROSTER */
    sherd__aggregate_member *member;
    int64_t *sum;         /* what is hidden, and then what is sent, a.len numbers */
    uint64_t round;
    bool hidden, opened;  /* asked for in this round */
};

bool sherd__secure_op(uint32_t op)
{
    return op >= SHERD__OP_JOIN && op <= SHERD__OP_OPEN;
}

int sherd__secure_new(sherd__secure **out, const sherd__secure_site *site)
{
    sherd__secure *s = *out = sherd__calloc(1, sizeof *s);
    if (!s) return SHERD_ENOMEM;
    s->site = *site;
    if (!s->site.entropy.fill) s->site.entropy = sherd__entropy_os();
    return SHERD_OK;
}

/* ---- the end ------------------------------------------------------------------------------- */

static void leave(sherd__secure *s)
{
    if (s->sum) sherd__wipe(s->sum, s->a.len * sizeof *s->sum);
    sherd__free(s->sum);
    sherd__aggregate_member_free(s->member);
    sherd__grader_free(s->grader);
    sherd__dataset_fini(&s->data);
    sherd__block_release(s->x);
    sherd__block_release(s->targets);
    sherd__pool_unreserve(s->site.pool, s->reserved);
    sherd__secure fresh = { .site = s->site, .admitted = s->admitted };
    sherd__wipe(s, sizeof *s);
    *s = fresh;
}

void sherd__secure_free(sherd__secure *s)
{
    if (!s) return;
    leave(s);
    sherd__free(s);
}

void sherd__secure_forget(sherd__secure *s, uint64_t job)
{
    if (s->job != job || !job) return;
    if (s->admitted) s->forget = job;
    else leave(s);
}

void sherd__secure_done(sherd__secure *s)
{
    if (--s->admitted == 0 && s->forget) leave(s);
}

/* ---- blocks -------------------------------------------------------------------------------- */

static bool dense(const sherd_fragment *f, uint8_t dtype)
{
    const sherd__fragment_info *i = sherd__fragment_info_of(f);
    return i->encoding == SHERD__DENSE && i->groups == 0 && i->dtype == dtype &&
           sherd__fragment_bytes(f) != NULL;
}

static int check_block(const sherd_fragment *f, uint8_t dtype, uint64_t rows, uint64_t cols,
                       const char *what, sherd_diag *d)
{
    const sherd__fragment_info *i = f ? sherd__fragment_info_of(f) : NULL;
    if (f && dense(f, dtype) && i->rows == rows && i->cols == cols) return SHERD_OK;
    return sherd__fail(d, SHERD_ESHAPE, NULL, "no %s: expected %llu x %llu of dtype %u", what,
                       (unsigned long long)rows, (unsigned long long)cols, dtype);
}

static int check_result(const sherd__task *t, uint8_t dtype, uint64_t rows, uint64_t cols,
                        sherd_diag *d)
{
    const sherd__fragment_info *i = &t->result;
    if (i->encoding == SHERD__DENSE && i->groups == 0 && i->dtype == dtype && i->rows == rows &&
        i->cols == cols)
        return SHERD_OK;
    return sherd__fail(d, SHERD_ESHAPE, NULL, "the result is %llu x %llu of dtype %u",
                       (unsigned long long)rows, (unsigned long long)cols, dtype);
}

/* ---- JOIN ---------------------------------------------------------------------------------- */

static int read_recipe(sherd__secure *s, sherd_diag *d)
{
    sherd__block *b = sherd__store_find(s->site.store, s->job, s->plan.recipe);
    const sherd__fragment_info *i = b ? sherd__fragment_info_of(b->fragment) : NULL;
    if (!b || !dense(b->fragment, SHERD_U8) || i->rows != 1)
        return sherd__fail(d, SHERD_EINVAL, NULL, "block %u is no recipe", s->plan.recipe);
    int err = sherd__recipe_parse(&s->recipe, (const char *)sherd__fragment_bytes(b->fragment),
                                  (size_t)i->len, "recipe", SHERD__RECIPE_ALL, d);
    s->recipe.precision = SHERD_F64;
    return err;
}

static int take_blocks(sherd__secure *s, sherd_diag *d)
{
    if (!s->plan.x) {
        if (s->site.self.data) return SHERD_OK;
        return sherd__fail(d, SHERD_EINVAL, "start it with --data FILE",
                           "the node has no data of its own (--data)");
    }
    if (s->site.self.data)
        return sherd__fail(d, SHERD_EINVAL, NULL, "the node has data of its own");
    s->x = sherd__store_find(s->site.store, s->job, s->plan.x);
    if (s->x) sherd__block_hold(s->x);
    s->targets = sherd__store_find(s->site.store, s->job, s->plan.targets);
    if (s->targets) sherd__block_hold(s->targets);
    return s->x && s->targets ? SHERD_OK
                              : sherd__fail(d, SHERD_EINVAL, NULL, "dealt examples are not here");
}

/* a += b * c, saturating. */
static void grow(uint64_t *a, uint64_t b, uint64_t c)
{
    uint64_t product;
    if (__builtin_mul_overflow(b, c, &product) || __builtin_add_overflow(*a, product, a))
        *a = UINT64_MAX;
}

/* Everything that this session will ever take: grader, data, member, mask, sum. */
static uint64_t memory_of(const sherd__secure *s, uint64_t grader, size_t inputs, size_t width)
{
    uint64_t piece = sherd__aggregate_piece_len(&s->a), all = grader;
    grow(&all, piece, 8 * ((uint64_t)s->a.nodes + s->a.threshold + 4));
    grow(&all, s->a.len, 16);
    grow(&all, s->a.nodes, 64);
    if (!s->plan.x) grow(&all, sherd__own_memory(s->site.self.data, inputs, width), 1);
    return all;
}

/* Inputs, outputs and parameters of the network, whose layers fit then. */
static int measure(const sherd__secure *s, size_t *inputs, size_t *width, size_t *count,
                   sherd_diag *d)
{
    const sherd__recipe *r = &s->recipe;
    size_t tiers, counts[SHERD__RECIPE_LAYERS_MAX];
    sherd__form in = r->in;
    int err = sherd__recipe_tiers(r, &tiers, counts, d);
    if (err) return err;
    for (size_t i = 0; i < r->len; i++) {
        sherd__layer l = { .spec = r->layers[i], .in = in };
        err = l.spec.kind->fit(&l, d);
        if (err) return err;
        in = l.out;
    }
    *count = SHERD__SECURE_EXTRA;
    bool fits = sherd__form_size(r->in, inputs) && sherd__form_size(in, width);
    for (size_t t = 0; t < tiers && fits; t++) fits = sherd__add(*count, counts[t], count);
    return fits ? SHERD_OK : sherd__fail(d, SHERD_ESHAPE, NULL, "a network too large to count");
}

static int admit_join(sherd__secure *s, const sherd__task *t, const sherd__block *left,
                      sherd_diag *d)
{
    size_t inputs, width, len;
    uint64_t grader = 0;
    leave(s);
    s->job = t->job;
    int err = dense(left->fragment, SHERD_I64) ? SHERD_OK
              : sherd__fail(d, SHERD_EFORMAT, NULL, "block %u is no plan", t->left);
    if (!err)
        err = sherd__secure_plan_parse(&s->plan, sherd__fragment_bytes(left->fragment),
                                       (size_t)sherd__fragment_info_of(left->fragment)->len, d);
    if (!err) err = read_recipe(s, d);
    if (!err) err = measure(s, &inputs, &width, &len, d);
    if (err) return err;
    s->count = len - SHERD__SECURE_EXTRA;
    s->a = (sherd__aggregate){ s->plan.nodes, s->plan.threshold, s->plan.colluding, len };
    err = sherd__aggregate_check(&s->a, d);
    if (!err) err = take_blocks(s, d);
    if (!err) err = sherd__grader_memory(&s->recipe, SHERD__OWN_CHUNK, &grader, d);
    if (err) return err;
    uint64_t memory = memory_of(s, grader, inputs, width);
    if (memory > UINT64_MAX / 2 || !sherd__pool_reserve(s->site.pool, memory))
        return sherd__fail(d, SHERD_ENOMEM, NULL, "no room for a training of %llu bytes",
                           (unsigned long long)memory);
    s->reserved = memory;
    return SHERD_OK;
}

/* Examples that the coordinator deals, where they lie. */
static int take_dealt(sherd__secure *s, sherd_diag *d)
{
    const sherd__fragment_info *x = sherd__fragment_info_of(s->x->fragment);
    const sherd__fragment_info *t = sherd__fragment_info_of(s->targets->fragment);
    size_t width = sherd__grader_width(s->grader), inputs = sherd__grader_inputs(s->grader);
    bool labels = t->dtype == SHERD_U32 && t->cols == 1;
    bool values = t->dtype == SHERD_F64 && t->cols == width;
    if (x->encoding != SHERD__DENSE || x->groups || !sherd_dtype_size((sherd_dtype)x->dtype) ||
        x->cols != inputs || x->rows == 0 || t->rows != x->rows || t->encoding != SHERD__DENSE ||
        t->groups || !(labels || values) || !sherd__fragment_bytes(s->x->fragment) ||
        !sherd__fragment_bytes(s->targets->fragment))
        return sherd__fail(d, SHERD_ESHAPE, NULL, "dealt examples are of another shape");
    const void *targets = sherd__fragment_bytes(s->targets->fragment);
    s->data = (sherd__dataset){
        .x = sherd_view_c(sherd__fragment_bytes(s->x->fragment), (sherd_dtype)x->dtype,
                          (size_t)x->rows, inputs),
        .classes = labels ? width : 0, .width = width };
    if (labels) s->data.targets.labels = targets;
    else s->data.targets.values = targets;
    return sherd__dataset_check(&s->data, "dealt examples", inputs, width, d);
}

static int run_join(sherd__secure *s, const sherd__task *t, uint8_t *out, sherd_diag *d)
{
    uint8_t statement[SHERD__SECURE_STATEMENT];
    int err = check_result(t, SHERD_U8, 1, SHERD__SECURE_CARD, d);
    if (err) return err;
    err = sherd__grader_new(&s->grader, &s->recipe, SHERD__OWN_CHUNK, s->plan.bits, false, d);
    if (err) return err;
    err = s->plan.x ? take_dealt(s, d)
                    : sherd__own_fit(&s->data, s->site.self.data, &s->recipe,
                                     sherd__grader_inputs(s->grader),
                                     sherd__grader_width(s->grader), d);
    if (err) return err;
    sherd__seal_key_new(&s->key);
    sherd__identity_public(s->site.self.identity, s->card);
    memcpy(s->card + KEY_AT, s->key.open, sizeof s->key.open);
    sherd__secure_statement(statement, s->job, &s->plan, s->plan.self, s->key.open);
    err = sherd__identity_sign(s->site.self.identity, statement, sizeof statement,
                               s->card + SIGNATURE_AT);
    if (err) return sherd__fail(d, err, NULL, "cannot sign a key");
    memcpy(out, s->card, sizeof s->card);
    s->joined = true;
    return SHERD_OK;
}

/* ---- ROSTER -------------------------------------------------------------------------------- */

static int stranger(sherd_diag *d, uint32_t i, const char *why)
{
    return sherd__fail(d, SHERD_EAUTH, NULL, "member %u %s", i, why);
}

static int check_card(const sherd__secure *s, uint32_t i, const uint8_t *cards, sherd_diag *d)
{
    const uint8_t *card = cards + (size_t)i * SHERD__SECURE_CARD;
    uint8_t statement[SHERD__SECURE_STATEMENT];
    sherd__fingerprint key;
    if (i == s->plan.self)
        return memcmp(card, s->card, sizeof s->card) ? stranger(d, i, "is given another card than "
                                                                      "the one it made")
                                                     : SHERD_OK;
    sherd__secure_statement(statement, s->job, &s->plan, i, card + KEY_AT);
    if (!sherd__identity_verify(card, statement, sizeof statement, card + SIGNATURE_AT))
        return stranger(d, i, "has not signed its key");
    for (uint32_t k = 0; k < s->plan.nodes; k++)
        if (k != i && !memcmp(card, cards + (size_t)k * SHERD__SECURE_CARD, KEY_AT))
            return stranger(d, i, "is there twice");
    if (!s->site.self.peers) return SHERD_OK;
    sherd__fingerprint_public(&key, card);
    const sherd__peer *p = sherd__peers_find(s->site.self.peers, &key);
    if (!p || !strcmp(p->role, "coordinator"))
        return stranger(d, i, "is none of this node's peers");
    return SHERD_OK;
}

/* As far as the peers' file says who is one operator: no more than T members of one. */
static int check_domains(const sherd__secure *s, const uint8_t *cards, sherd_diag *d)
{
    const sherd__peers *peers = s->site.self.peers;
    for (size_t p = 0; peers && p < peers->len; p++) {
        uint32_t members = 0;
        for (uint32_t i = 0; i < s->plan.nodes && peers->list[p].domain[0]; i++) {
            sherd__fingerprint key;
            sherd__fingerprint_public(&key, cards + (size_t)i * SHERD__SECURE_CARD);
            const sherd__peer *other = sherd__peers_find(peers, &key);
            members += other && !strcmp(other->domain, peers->list[p].domain);
        }
        if (members > s->plan.colluding)
            return sherd__fail(d, SHERD_EAUTH, NULL,
                               "%u members are of one domain, and %u may collude", members,
                               s->plan.colluding);
    }
    return SHERD_OK;
}

static int run_roster(sherd__secure *s, const sherd__task *t, const sherd_fragment *right,
                      uint8_t *out, sherd_diag *d)
{
    uint32_t nodes = s->plan.nodes;
    if (!s->joined || s->member)
        return sherd__fail(d, SHERD_EINVAL, NULL,
                           s->member ? "the roster is known" : "no JOIN before");
    int err = check_result(t, SHERD_I64, 1, 1, d);
    if (!err) err = check_block(right, SHERD_U8, nodes, SHERD__SECURE_CARD, "roster", d);
    const uint8_t *cards = err ? NULL : sherd__fragment_bytes(right);
    for (uint32_t i = 0; i < nodes && !err; i++) err = check_card(s, i, cards, d);
    if (!err) err = check_domains(s, cards, d);
    if (err) return err;
    uint8_t(*keys)[SHERD__SEAL_KEY] = sherd__calloc(nodes, sizeof *keys);
    s->sum = sherd__alloc_large(s->a.len * sizeof *s->sum);
    if (!keys || !s->sum) {
        sherd__free(keys);
        sherd__free(s->sum);
        s->sum = NULL;
        return sherd__fail(d, SHERD_ENOMEM, NULL, "no memory for %u keys", nodes);
    }
    for (uint32_t i = 0; i < nodes; i++)
        memcpy(keys[i], cards + (size_t)i * SHERD__SECURE_CARD + KEY_AT, sizeof keys[i]);
    err = sherd__aggregate_member_new(&s->member, &s->a, s->plan.self, s->job, &s->key,
                                      (const uint8_t(*)[32])keys, d);
    sherd__free(keys);
    if (!err) sherd__put_u64(out, nodes);
    return err;
}

/* ---- rounds -------------------------------------------------------------------------------- */

/* Numbers of a question, `most` of them at most; format and, but for SEAL, round are checked. */
static int read_question(const sherd__secure *s, const sherd_fragment *left, size_t least,
                         size_t most, uint64_t *len, sherd_diag *d)
{
    const sherd__fragment_info *i = sherd__fragment_info_of(left);
    const uint8_t *bytes = sherd__fragment_bytes(left);
    if (!s->member) return sherd__fail(d, SHERD_EINVAL, NULL, "no roster before");
    if (!dense(left, SHERD_I64) || i->rows != 1 || i->cols < least || i->cols > most ||
        sherd__get_u64(bytes) != SHERD__SECURE_FORMAT)
        return sherd__fail(d, SHERD_EFORMAT, NULL, "a question that is none");
    *len = i->cols;
    return SHERD_OK;
}

static int same_round(const sherd__secure *s, const sherd_fragment *left, sherd_diag *d)
{
    uint64_t round = sherd__get_u64(sherd__fragment_bytes(left) + 8);
    if (s->round && round == s->round) return SHERD_OK;
    return sherd__fail(d, SHERD_EINVAL, NULL, "round %llu: this is round %llu",
                       (unsigned long long)round, (unsigned long long)s->round);
}

static int run_seal(sherd__secure *s, const sherd__task *t, const sherd_fragment *left,
                    uint8_t *out, sherd_diag *d)
{
    uint64_t len;
    size_t sealed = sherd__aggregate_sealed_len(&s->a);
    int err = read_question(s, left, SHERD__SECURE_SEAL, SHERD__SECURE_SEAL, &len, d);
    if (!err) err = check_result(t, SHERD_U8, s->a.nodes, sealed, d);
    if (err) return err;
    uint64_t round = sherd__get_u64(sherd__fragment_bytes(left) + 8);
    err = sherd__aggregate_begin(s->member, round, &s->site.entropy, d);
    if (err) return err;
    s->round = round;
    s->hidden = s->opened = false;
    for (uint32_t i = 0; i < s->a.nodes && !err; i++) {
        if (i == s->plan.self) memset(out + i * sealed, 0, sealed);
        else err = sherd__aggregate_send(s->member, i, out + i * sealed, d);
    }
    return err;
}

static int read_scales(const sherd_fragment *left, size_t tiers, int32_t *scales, sherd_diag *d)
{
    const uint8_t *at = sherd__fragment_bytes(left) + 8 * SHERD__SECURE_HIDE;
    for (size_t i = 0; i <= tiers; i++) {
        int64_t v = (int64_t)sherd__get_u64(at + 8 * i);
        if (v < -1000 || v > 1000) return sherd__fail(d, SHERD_EFORMAT, NULL, "a scale of %lld",
                                                      (long long)v);
        scales[i] = (int32_t)v;
    }
    return SHERD_OK;
}

static int take_params(sherd__secure *s, const sherd_fragment *right, sherd_diag *d)
{
    const uint8_t *at = sherd__fragment_bytes(right);
    for (size_t t = 0; t < sherd__grader_tiers(s->grader); t++) {
        size_t n = sherd__grader_count(s->grader, t);
        double *to = sherd__grader_params(s->grader, t);
        memcpy(to, at, n * sizeof *to);
        at += n * sizeof *to;
        for (size_t i = 0; i < n; i++)
            if (!isfinite(to[i]))
                return sherd__fail(d, SHERD_EINVAL, NULL, "parameters that are no numbers");
    }
    return SHERD_OK;
}

static int run_hide(sherd__secure *s, const sherd__task *t, const sherd_fragment *left,
                    const sherd_fragment *right, uint8_t *out, sherd_diag *d)
{
    int32_t scales[SHERD__RECIPE_LAYERS_MAX + 1];
    uint64_t len;
    size_t tiers = s->grader ? sherd__grader_tiers(s->grader) : 0;
    size_t most = SHERD__SECURE_HIDE + tiers + 1;
    int err = read_question(s, left, most, most, &len, d);
    if (!err) err = same_round(s, left, d);
    if (!err && s->hidden)
        err = sherd__fail(d, SHERD_EINVAL, NULL, "round %llu has had its gradient",
                          (unsigned long long)s->round);
    if (!err) err = check_result(t, SHERD_I64, 1, s->a.len, d);
    if (!err) err = check_block(right, SHERD_F64, 1, s->count, "parameters", d);
    if (!err) err = read_scales(left, tiers, scales, d);
    if (err) return err;
    s->hidden = true;
    uint64_t rows = s->plan.rows, all = s->data.x.rows;
    uint64_t first = rows ? ((s->round - 1) % all) * (rows % all) % all : 0;
    err = take_params(s, right, d);
    if (!err)
        err = sherd__own_grade(s->grader, &s->data, first, rows, scales,
                               sherd__secure_room(s->a.nodes), s->sum, d);
    if (!err) {
        uint64_t *sent = (uint64_t *)s->sum; /* in place: x becomes x + z, number by number */
        err = sherd__aggregate_upload(s->member, s->sum, sent, d);
        if (!err) sherd__aggregate_print(sent, s->a.len, out);
    }
    sherd__wipe(s->sum, s->a.len * sizeof *s->sum);
    return err;
}

static int read_survivors(const sherd__secure *s, const sherd_fragment *left, uint64_t len,
                          uint32_t *out, sherd_diag *d)
{
    const uint8_t *at = sherd__fragment_bytes(left) + 8 * SHERD__SECURE_OPEN;
    for (uint64_t i = 0; i < len; i++) {
        uint64_t v = sherd__get_u64(at + 8 * i);
        if (v >= s->a.nodes || (i > 0 && v <= out[i - 1]))
            return sherd__fail(d, SHERD_EINVAL, NULL,
                               "survivors that are none, or in another order");
        out[i] = (uint32_t)v;
    }
    return SHERD_OK;
}

static int open_sum(sherd__secure *s, const uint32_t *who, uint32_t len, const uint8_t *pieces,
                    uint8_t *out, sherd_diag *d)
{
    size_t sealed = sherd__aggregate_sealed_len(&s->a), n = sherd__aggregate_piece_len(&s->a);
    int err = SHERD_OK;
    for (uint32_t i = 0; i < len && !err; i++)
        if (who[i] != s->plan.self)
            err = sherd__aggregate_receive(s->member, who[i], pieces + i * sealed, d);
    uint64_t *sum = err ? NULL : sherd__alloc(n * sizeof *sum);
    if (!err && !sum) err = sherd__fail(d, SHERD_ENOMEM, NULL, "no memory for a sum of pieces");
    if (!err) err = sherd__aggregate_answer(s->member, who, len, sum, d);
    if (!err) sherd__aggregate_print(sum, n, out);
    if (sum) sherd__wipe(sum, n * sizeof *sum);
    sherd__free(sum);
    return err;
}

static int run_open(sherd__secure *s, const sherd__task *t, const sherd_fragment *left,
                    const sherd_fragment *right, uint8_t *out, sherd_diag *d)
{
    uint32_t who[SHERD__AGGREGATE_NODES_MAX];
    uint64_t len = 0;
    size_t most = SHERD__SECURE_OPEN + (size_t)s->a.nodes;
    int err = read_question(s, left, SHERD__SECURE_OPEN, most, &len, d);
    if (!err) err = same_round(s, left, d);
    if (!err && s->opened)
        err = sherd__fail(d, SHERD_EINVAL, NULL, "round %llu has had its answer",
                          (unsigned long long)s->round);
    if (!err) err = check_result(t, SHERD_I64, 1, sherd__aggregate_piece_len(&s->a), d);
    if (err) return err;
    len -= SHERD__SECURE_OPEN;
    if (len < s->a.threshold)
        return sherd__fail(d, SHERD_EFEWNODES, NULL, "%llu survivors: expected at least %u",
                           (unsigned long long)len, s->a.threshold);
    err = read_survivors(s, left, len, who, d);
    size_t sealed = sherd__aggregate_sealed_len(&s->a);
    if (!err) err = check_block(right, SHERD_U8, len, sealed, "pieces", d);
    if (err) return err;
    s->opened = true;
    return open_sum(s, who, (uint32_t)len, sherd__fragment_bytes(right), out, d);
}

/* ---- tasks --------------------------------------------------------------------------------- */

int sherd__secure_admit(sherd__secure *s, const sherd__task *t, const sherd__block *left,
                        const sherd__block *right, sherd_diag *d)
{
    bool two = t->op == SHERD__OP_ROSTER || t->op == SHERD__OP_HIDE || t->op == SHERD__OP_OPEN;
    if (!s->site.self.identity)
        return sherd__fail(d, SHERD_EUNSUPPORTED, NULL, "this node takes no part in aggregation");
    if (t->primes_len || two != (right != NULL))
        return sherd__fail(d, SHERD_EINVAL, NULL, "operation %u takes %u blocks and no primes",
                           t->op, two ? 2u : 1u);
    if (t->op == SHERD__OP_JOIN && s->admitted)
        return sherd__fail(d, SHERD_EBUSY, NULL, "what was asked before is not done");
    if (t->op != SHERD__OP_JOIN && (t->job != s->job || s->forget))
        return sherd__fail(d, SHERD_EINVAL, NULL, "no JOIN in this job");
    int err = t->op == SHERD__OP_JOIN ? admit_join(s, t, left, d) : SHERD_OK;
    if (err) leave(s);
    else s->admitted++;
    return err;
}

int sherd__secure_run(sherd__secure *s, const sherd__task *t, const sherd_fragment *left,
                      const sherd_fragment *right, uint8_t *out, sherd_diag *d)
{
    int err = SHERD_EUNSUPPORTED;
    switch (t->op) {
    case SHERD__OP_JOIN: err = run_join(s, t, out, d); break;
    case SHERD__OP_ROSTER: err = run_roster(s, t, right, out, d); break;
    case SHERD__OP_SEAL: err = run_seal(s, t, left, out, d); break;
    case SHERD__OP_HIDE: err = run_hide(s, t, left, right, out, d); break;
    case SHERD__OP_OPEN: err = run_open(s, t, left, right, out, d); break;
    default: break;
    }
    if (err && t->result.len) sherd__wipe(out, t->result.len);
    return err;
}
