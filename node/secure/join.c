/*
 * The members and the training. JOIN brings recipe and thresholds and returns a key that is made
 * for it; ROSTER brings the keys of all members. Shapes, thresholds, signatures and, with a peers'
 * file, the owners of keys are checked here. Memory for everything that follows is reserved before
 * any of it is taken.
 */
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "learn/grader.h"
#include "node/secure/internal.h"

_Static_assert(SHERD__SEAL_KEY == 32, "a card has room for this");

enum { SIGNATURE_AT = 64, KEY_AT = 32 };

/* ---- JOIN ---------------------------------------------------------------------------------- */

static int read_recipe(sherd__secure *s, sherd_diag *d)
{
    sherd__block *b = sherd__store_find(s->site.store, s->job, s->plan.recipe);
    const sherd__fragment_info *i = b ? sherd__fragment_info_of(b->fragment) : NULL;
    if (!b || !sherd__secure_dense(b->fragment, SHERD_U8) || i->rows != 1)
        return sherd__fail(d, SHERD_EINVAL, NULL, "block %u is not a recipe", s->plan.recipe);
    int err = sherd__recipe_parse(&s->recipe, (const char *)sherd__fragment_bytes(b->fragment),
                                  (size_t)i->len, "recipe", SHERD__RECIPE_ALL, d);
    if (err) return err; /* before more of it is read than a recipe has */
    uint8_t plan[SHERD__SECURE_TRAINING];
    sherd__secure_training(plan, &s->plan);
    sherd__about(s->training,
                 (const sherd__about_part[]){
                     { sherd__fragment_bytes(b->fragment), (size_t)i->len },
                     { plan, sizeof plan } },
                 2);
    return SHERD_OK;
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
    return s->x && s->targets
               ? SHERD_OK
               : sherd__fail(d, SHERD_EINVAL, NULL, "the dealt examples are missing");
}

/* Computes a += b * c, saturating. */
static void grow(uint64_t *a, uint64_t b, uint64_t c)
{
    uint64_t product;
    if (__builtin_mul_overflow(b, c, &product) || __builtin_add_overflow(*a, product, a))
        *a = UINT64_MAX;
}

/* Returns the memory that this session will take in total: grader, member, mask, sum, noise. */
static uint64_t memory_of(const sherd__secure *s, uint64_t grader)
{
    uint64_t piece = sherd__aggregate_piece_len(&s->a), all = grader;
    grow(&all, piece, 8 * ((uint64_t)s->a.nodes + s->a.threshold + 4));
    grow(&all, s->a.len, 24);
    grow(&all, s->a.nodes, 192);
    return all;
}

static bool reserve(sherd__secure *s, uint64_t memory)
{
    if (!sherd__later_reserve(&s->site.later, s->site.pool, memory)) return false;
    s->reserved = memory;
    return true;
}

/* Counts the parameters of the network, and checks that its layers fit. */
static int measure(sherd__secure *s, sherd_diag *d)
{
    size_t counts[SHERD__RECIPE_LAYERS_MAX], len = SHERD__SECURE_EXTRA;
    int err = sherd__recipe_tiers(&s->recipe, &s->tiers, counts, d);
    bool fits = true;
    for (size_t t = 0; t < s->tiers && !err && fits; t++) fits = sherd__add(len, counts[t], &len);
    if (!err && !fits) err = sherd__fail(d, SHERD_ESHAPE, NULL, "the network is too large");
    s->count = len - SHERD__SECURE_EXTRA;
    s->a = (sherd__aggregate){ s->plan.nodes, s->plan.threshold, s->plan.colluding, len };
    return err;
}

int sherd__secure_admit_join(sherd__secure *s, const sherd__task *t, const sherd__block *left,
                             sherd_diag *d)
{
    const sherd__secure_self *self = &s->site.self;
    uint64_t grader = 0;
    sherd__secure_leave(s);
    s->job = t->job;
    int err = sherd__secure_dense(left->fragment, SHERD_I64)
                  ? SHERD_OK
                  : sherd__fail(d, SHERD_EFORMAT, NULL, "block %u is not a plan", t->left);
    if (!err)
        err = sherd__secure_plan_parse(&s->plan, sherd__fragment_bytes(left->fragment),
                                       (size_t)sherd__fragment_info_of(left->fragment)->len, d);
    if (!err && !s->plan.x && self->data)
        err = sherd__policy_join(self->policy, &s->plan, self->peers != NULL, d);
    if (!err) err = read_recipe(s, d);
    if (!err) err = measure(s, d);
    if (!err) err = sherd__aggregate_check(&s->a, d);
    if (!err) err = take_blocks(s, d);
    if (!err) err = sherd__own_memory(&s->recipe, s->plan.clip > 0, &grader, d);
    if (err) return err;
    return reserve(s, memory_of(s, grader)) ? SHERD_OK
                                            : sherd__fail_memory(d, "the training on this node");
}

/* Makes views of the examples that the coordinator dealt, without copying them. */
static int take_dealt(sherd__secure *s, sherd_diag *d)
{
    const sherd__fragment_info *x = sherd__fragment_info_of(s->x->fragment);
    const sherd__fragment_info *t = sherd__fragment_info_of(s->targets->fragment);
    if (x->encoding != SHERD__DENSE || x->groups || !sherd_dtype_size((sherd_dtype)x->dtype) ||
        x->rows == 0 || t->rows != x->rows || t->encoding != SHERD__DENSE || t->groups ||
        (t->dtype != SHERD_F64 && t->dtype != SHERD_U32) ||
        !sherd__fragment_bytes(s->x->fragment) || !sherd__fragment_bytes(s->targets->fragment))
        return sherd__fail(d, SHERD_ESHAPE, NULL, "dealt examples are of another shape");
    if (s->plan.places - 1 > x->rows) /* shares of one division differ by one row */
        return sherd__fail(d, SHERD_EINVAL, NULL, "a plan with more places than dealt examples");
    s->dealt = (sherd__own){
        .x = sherd_view_c(sherd__fragment_bytes(s->x->fragment), (sherd_dtype)x->dtype,
                          (size_t)x->rows, (size_t)x->cols),
        .y = sherd_view_c(sherd__fragment_bytes(s->targets->fragment), (sherd_dtype)t->dtype,
                          (size_t)t->rows, (size_t)t->cols)
    };
    return SHERD_OK;
}

int sherd__secure_run_join(sherd__secure *s, const sherd__task *t, uint8_t *out, sherd_diag *d)
{
    uint8_t statement[SHERD__SECURE_STATEMENT];
    int err = sherd__secure_check_result(t, SHERD_U8, 1, SHERD__SECURE_CARD, d);
    if (!err && s->plan.x) err = take_dealt(s, d);
    if (err) return err;
    /* Dealt inputs are already divided. */
    sherd__own_options own = { .recipe = &s->recipe,
                               .clip = s->plan.clip,
                               .data = s->plan.x ? &s->dealt : s->site.self.data,
                               .stop = sherd__secure_stopped,
                               .stop_ctx = s,
                               .by = s->site.by,
                               .divide = s->plan.x ? 1 : s->recipe.divide_inputs,
                               .values = s->plan.x ? s->dealt.y.dtype == SHERD_F64
                                                   : s->recipe.target_values };
    err = sherd__own_new(&s->grader, &own, d);
    if (err) return err;
    const sherd__policy *policy = s->site.self.policy;
    if (!s->plan.x) s->budget = sherd__privacy_rho(policy->epsilon, policy->delta);
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

static bool signed_as(const sherd__secure *s, const sherd__secure_plan *p, uint32_t i,
                      const uint8_t *card)
{
    uint8_t statement[SHERD__SECURE_STATEMENT];
    sherd__secure_statement(statement, s->job, p, i, card + KEY_AT);
    return sherd__identity_verify(card, statement, sizeof statement, card + SIGNATURE_AT);
}

/* A member with dealt examples binds itself to no sum (charge, bind_survivors). If owners had such
 * members in their group, two sums could be opened that differ by the examples of one of them. */
static int check_signature(const sherd__secure *s, uint32_t i, const uint8_t *card, sherd_diag *d)
{
    sherd__secure_plan other = s->plan;
    if (signed_as(s, &s->plan, i, card)) return SHERD_OK;
    other.x = !other.x;
    if (!signed_as(s, &other, i, card)) return stranger(d, i, "has not signed its key");
    return sherd__fail(d, SHERD_EREFUSED, NULL,
                       "policy: this node takes part in sums whose members all have examples of "
                       "their own, or are all dealt examples");
}

static int check_card(const sherd__secure *s, uint32_t i, const uint8_t *cards, sherd_diag *d)
{
    const uint8_t *card = cards + (size_t)i * SHERD__SECURE_CARD;
    sherd__fingerprint key;
    if (i == s->plan.self)
        return memcmp(card, s->card, sizeof s->card) ? stranger(d, i,
                                                                "has another card than the one "
                                                                "that it made")
                                                     : SHERD_OK;
    int err = check_signature(s, i, card, d);
    if (err) return err;
    if (!sherd__seal_key_valid(card + KEY_AT))
        return stranger(d, i, "has a key that cannot be used for sealing");
    for (uint32_t k = 0; k < s->plan.nodes; k++)
        if (k != i && !memcmp(card, cards + (size_t)k * SHERD__SECURE_CARD, KEY_AT))
            return stranger(d, i, "occurs twice");
    if (!s->site.self.peers) return SHERD_OK;
    sherd__fingerprint_public(&key, card);
    const sherd__peer *p = sherd__peers_find(s->site.self.peers, &key);
    if (!p || !strcmp(p->role, "coordinator"))
        return stranger(d, i, "is not in --peers of this node");
    return SHERD_OK;
}

/* Checks that at most T members are of one domain, as far as the peers' file gives domains. */
static int check_domains(const sherd__secure *s, const uint8_t *cards, sherd_diag *d)
{
    const uint32_t nodes = s->plan.nodes;
    if (!s->site.self.peers) return SHERD_OK;
    const char **domain = sherd__calloc(nodes, sizeof *domain);
    uint32_t most = 0;
    if (!domain) return sherd__fail_memory(d, "%u members", nodes);
    for (uint32_t i = 0; i < nodes; i++) {
        sherd__fingerprint key;
        sherd__fingerprint_public(&key, cards + (size_t)i * SHERD__SECURE_CARD);
        const sherd__peer *p = sherd__peers_find(s->site.self.peers, &key);
        domain[i] = p ? p->domain : "";
    }
    for (uint32_t i = 0; i < nodes; i++) {
        uint32_t members = 0;
        for (uint32_t k = 0; k < nodes && domain[i][0]; k++)
            members += !strcmp(domain[i], domain[k]);
        if (members > most) most = members;
    }
    sherd__free(domain);
    if (most <= s->plan.colluding) return SHERD_OK;
    return sherd__fail(d, SHERD_EAUTH, NULL, "%u members belong to one domain, and %u may collude",
                       most, s->plan.colluding);
}

/* Takes the keys that rounds need from the cards, and allocates the sum. Undone on error. */
static int take_cards(sherd__secure *s, const uint8_t *cards, sherd_diag *d)
{
    uint32_t nodes = s->plan.nodes;
    uint8_t(*keys)[SHERD__SEAL_KEY] = sherd__calloc(nodes, sizeof *keys);
    uint8_t(*signers)[KEY_AT] = sherd__calloc(nodes, sizeof *signers);
    int64_t *sum = sherd__alloc_large(s->a.len * sizeof *sum);
    int err = keys && signers && sum ? SHERD_OK : sherd__fail_memory(d, "%u keys", nodes);
    for (uint32_t i = 0; i < nodes && !err; i++) {
        memcpy(signers[i], cards + (size_t)i * SHERD__SECURE_CARD, sizeof signers[i]);
        memcpy(keys[i], cards + (size_t)i * SHERD__SECURE_CARD + KEY_AT, sizeof keys[i]);
    }
    if (!err)
        err = sherd__aggregate_member_new(&s->member, &s->a,
                                          &(sherd__aggregate_self){ s->plan.self, s->job, &s->key,
                                                                    (const uint8_t(*)[32])keys },
                                          d);
    sherd__free(keys);
    if (err) {
        sherd__free(signers);
        sherd__free(sum);
        return err;
    }
    s->signers = signers;
    s->sum = sum;
    return SHERD_OK;
}

int sherd__secure_run_roster(sherd__secure *s, const sherd__task *t, const sherd__fragment *right,
                             uint8_t *out, sherd_diag *d)
{
    uint32_t nodes = s->plan.nodes;
    if (!s->joined || s->member)
        return sherd__fail(d, SHERD_EINVAL, NULL,
                           s->member ? "the roster is known" : "JOIN must come first");
    int err = sherd__secure_check_result(t, SHERD_I64, 1, 1, d);
    if (!err)
        err = sherd__secure_check_block(right, SHERD_U8, nodes, SHERD__SECURE_CARD, "roster", d);
    const uint8_t *cards = err ? NULL : sherd__fragment_bytes(right);
    for (uint32_t i = 0; i < nodes && !err; i++) err = check_card(s, i, cards, d);
    if (!err) err = check_domains(s, cards, d);
    if (err) return err;
    err = take_cards(s, cards, d);
    if (err) return err;
    sherd__about(s->roster,
                 (const sherd__about_part[]){ { s->training, sizeof s->training },
                                              { cards, (size_t)nodes * SHERD__SECURE_CARD } },
                 2);
    sherd__put_u64(out, nodes);
    return SHERD_OK;
}
