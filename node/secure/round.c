/*
 * A round: pieces of a mask for the other members (SEAL), the gradient under that mask (HIDE), a
 * signature of the survivors over whom the sum is to be opened (CONFIRM), a check which of them
 * sealed no valid piece for this node (CHECK), the sum of their pieces (OPEN). Each is done at most
 * once, even where it fails. HIDE is done only for what SEAL was bound to, and OPEN only for
 * survivors that this node and U members have confirmed, and the pieces of which this node has.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "core/wipe.h"
#include "crypto/gaussian.h"
#include "node/secure/internal.h"

enum { NOISE_PART = 1 << 17 }; /* samples that are drawn before a round can stop */

/* ---- rounds -------------------------------------------------------------------------------- */

/* Checks the format of a question of `least` to `most` numbers. *len is set to how many it has. */
static int read_question(const sherd__secure *s, const sherd__fragment *left, size_t least,
                         size_t most, uint64_t *len, sherd_diag *d)
{
    const sherd__fragment_info *i = sherd__fragment_info_of(left);
    const uint8_t *bytes = sherd__fragment_bytes(left);
    if (!s->member) return sherd__fail(d, SHERD_EINVAL, NULL, "the roster must come first");
    if (!sherd__secure_dense(left, SHERD_I64) || i->rows != 1 || i->cols < least ||
        i->cols > most || sherd__get_u64(bytes) != SHERD__SECURE_FORMAT)
        return sherd__fail(d, SHERD_EFORMAT, NULL, "the question is malformed");
    *len = i->cols;
    return SHERD_OK;
}

static int same_round(const sherd__secure *s, const sherd__fragment *left, sherd_diag *d)
{
    uint64_t round = sherd__get_u64(sherd__fragment_bytes(left) + 8);
    if (s->round && round == s->round) return SHERD_OK;
    return sherd__fail(d, SHERD_EINVAL, NULL, "round %llu: this is round %llu",
                       (unsigned long long)round, (unsigned long long)s->round);
}

static int stopped(sherd_diag *d)
{
    return sherd__fail(d, SHERD_EINTERRUPTED, NULL, "the round was abandoned");
}

/* Draws the noise of the round, before its parameters are known, a part at a time. The time that
 * this takes does not depend on the noise (crypto/gaussian.h). */
static int draw_noise(sherd__secure *s, sherd_diag *d)
{
    const sherd__privacy_round r = sherd__secure_privacy(&s->plan, s->count);
    const int64_t most = INT64_C(1) << (sherd__secure_room(s->a.nodes) - 1);
    if (!(s->plan.noise > 0)) return SHERD_OK;
    if (!s->noise) s->noise = sherd__alloc_large(s->a.len * sizeof *s->noise);
    int err = s->noise ? SHERD_OK : SHERD_ENOMEM;
    for (size_t at = 0, len; at < s->a.len && !err; at += len) {
        len = s->a.len - at < NOISE_PART ? s->a.len - at : NOISE_PART;
        err = sherd__secure_stopped(s)
                  ? SHERD_EINTERRUPTED
                  : sherd__gaussian_draw(s->noise + at, len, sherd__privacy_variance(&r),
                                         &s->site.entropy);
    }
    for (size_t i = 0; i < s->a.len && !err; i++)
        s->noise[i] = s->noise[i] > most ? most : s->noise[i] < -most ? -most : s->noise[i];
    if (err == SHERD_EINTERRUPTED) return stopped(d);
    return err ? sherd__fail(d, err, NULL, "cannot draw noise") : SHERD_OK;
}

int sherd__secure_run_seal(sherd__secure *s, const sherd__task *t, const sherd__fragment *left,
                           uint8_t *out, sherd_diag *d)
{
    uint64_t len;
    uint8_t bound[SHERD__ABOUT];
    size_t sealed = sherd__aggregate_sealed_len(&s->a);
    int err = read_question(s, left, SHERD__SECURE_SEAL, SHERD__SECURE_SEAL, &len, d);
    if (!err) err = sherd__secure_check_result(t, SHERD_U8, s->a.nodes, sealed, d);
    if (err) return err;
    uint64_t round = sherd__get_u64(sherd__fragment_bytes(left) + 8);
    const uint8_t *about = sherd__fragment_bytes(left) + 16;
    sherd__about(bound,
                 (const sherd__about_part[]){ { s->roster, sizeof s->roster },
                                              { about, sizeof s->about } },
                 2);
    err = sherd__aggregate_begin(s->member, round, bound, &s->site.entropy, d);
    if (err) return err;
    s->round = 0; /* the last round is over; this one needs its noise */
    s->hidden = s->checked = s->opened = s->given = s->whole = false;
    err = draw_noise(s, d);
    if (err) return err;
    memcpy(s->about, about, sizeof s->about);
    memcpy(s->bound, bound, sizeof s->bound);
    s->round = round;
    for (uint32_t i = 0; i < s->a.nodes && !err; i++) {
        if (i == s->plan.self) memset(out + i * sealed, 0, sealed);
        else if (sherd__secure_stopped(s)) err = stopped(d);
        else err = sherd__aggregate_send(s->member, i, out + i * sealed, d);
    }
    return err;
}

static int read_scales(const sherd__fragment *left, size_t tiers, int32_t *scales, sherd_diag *d)
{
    const uint8_t *at = sherd__fragment_bytes(left) + 8 * SHERD__SECURE_HIDE;
    for (size_t i = 0; i <= tiers; i++) {
        int64_t v = (int64_t)sherd__get_u64(at + 8 * i);
        if (v < -1000 || v > 1000)
            return sherd__fail(d, SHERD_EFORMAT, NULL, "a scale of %lld", (long long)v);
        scales[i] = (int32_t)v;
    }
    return SHERD_OK;
}

/* -0 and subnormal numbers give the same sums as +0, so they become +0: the ledger then treats them
 * as the same. */
static int take_params(sherd__secure *s, const sherd__fragment *right, sherd_diag *d)
{
    double *to = sherd__own_params(s->grader);
    memcpy(to, sherd__fragment_bytes(right), s->count * sizeof *to);
    for (size_t i = 0; i < s->count; i++) {
        if (!isfinite(to[i]))
            return sherd__fail(d, SHERD_EINVAL, NULL, "a parameter is not finite");
        if (!isnormal(to[i])) to[i] = 0;
    }
    return SHERD_OK;
}

/* Checks the request against the round's announcement, since pieces were sealed for the latter. */
static int check_about(const sherd__secure *s, const sherd__fragment *left,
                       const sherd__fragment *right, sherd_diag *d)
{
    uint8_t about[SHERD__ABOUT];
    sherd__about(about,
                 (const sherd__about_part[]){
                     { s->roster, sizeof s->roster },
                     { sherd__fragment_bytes(left), (size_t)sherd__fragment_info_of(left)->len },
                     { sherd__fragment_bytes(right), s->count * sizeof(double) } },
                 3);
    if (!memcmp(about, s->about, sizeof about)) return SHERD_OK;
    return sherd__fail(d, SHERD_EINVAL, NULL,
                       "round %llu has other parameters, scales or members than were announced",
                       (unsigned long long)s->round);
}

static int compare_keys(const void *a, const void *b)
{
    return memcmp(a, b, 32);
}

/* Returns the keys of these members, ascending; `who` NULL: of all members. The caller frees them
 * with sherd__free. NULL without memory. */
static uint8_t (*sort_keys(const sherd__secure *s, const uint32_t *who, uint32_t len))[32]
{
    uint8_t(*keys)[32] = sherd__calloc(len ? len : 1, sizeof *keys);
    for (uint32_t i = 0; i < len && keys; i++) memcpy(keys[i], s->signers[who ? who[i] : i], 32);
    if (keys) qsort(keys, len, sizeof *keys, compare_keys);
    return keys;
}

static int no_keys(sherd_diag *d)
{
    return sherd__fail_memory(d, "the members' keys");
}

static int digest_members(const sherd__secure *s, const uint32_t *who, uint32_t len,
                          uint8_t out[SHERD__ABOUT], sherd_diag *d)
{
    uint8_t(*keys)[32] = sort_keys(s, who, len);
    if (!keys) return no_keys(d);
    sherd__about(out, &(sherd__about_part){ keys, len * sizeof *keys }, 1);
    sherd__free(keys);
    return SHERD_OK;
}

/* Charges an upload over these places, under the parameters that were taken, by the node's policy
 * and ledger. Dealt examples have neither.
 *
 * A sum is identified by its parameters and places. The recipe does not distinguish sums, since a
 * coordinator can get one sum, or the part of it that it wants, under two recipes that differ in
 * any key: under all parameters (l2, precision, validation_biases; layers that change nothing, as
 * flatten, a pool of 1, or relu twice; the spelling of a shape), or under parameters of its choice
 * (relu of values that are not negative; another loss where each of K outputs is 1/K; where all
 * weights are 0, the last layer's biases follow from the targets alone). */
static int charge(sherd__secure *s, uint64_t first, uint64_t rows, sherd_diag *d)
{
    const sherd__privacy_round r = sherd__secure_privacy(&s->plan, s->count);
    sherd__charge c = { .job = s->job,
                        .first = first,
                        .rows = rows,
                        .nodes = s->a.nodes,
                        .threshold = s->a.threshold,
                        .rho = sherd__privacy_cost(&r) };
    uint8_t places[16];
    if (s->plan.x) return SHERD_OK;
    sherd__put_u64(places, first);
    sherd__put_u64(places + 8, rows);
    sherd__about(c.about,
                 (const sherd__about_part[]){
                     { sherd__own_params(s->grader), s->count * sizeof(double) },
                     { places, sizeof places } },
                 2);
    uint8_t(*keys)[32] = sort_keys(s, NULL, s->a.nodes);
    if (!keys) return no_keys(d);
    c.keys = (const uint8_t(*)[32])keys;
    memcpy(c.coordinator, s->site.coordinator, sizeof c.coordinator);
    int err = sherd__policy_charge(s->site.self.policy, s->budget, s->site.self.ledger, &c, d);
    sherd__free(keys);
    if (!err) memcpy(s->charged, c.about, sizeof s->charged);
    return err;
}

int sherd__secure_run_hide(sherd__secure *s, const sherd__task *t, const sherd__fragment *left,
                           const sherd__fragment *right, uint8_t *out, sherd_diag *d)
{
    int32_t scales[SHERD__RECIPE_LAYERS_MAX + 1];
    uint64_t len, first;
    size_t most = SHERD__SECURE_HIDE + s->tiers + 1;
    int err = read_question(s, left, most, most, &len, d);
    if (!err) err = same_round(s, left, d);
    if (!err && s->hidden)
        err = sherd__fail(d, SHERD_EINVAL, NULL, "round %llu already has its gradient",
                          (unsigned long long)s->round);
    if (!err) err = sherd__secure_check_result(t, SHERD_I64, 1, s->a.len, d);
    if (!err) err = sherd__secure_check_block(right, SHERD_F64, 1, s->count, "parameters", d);
    if (!err) err = read_scales(left, s->tiers, scales, d);
    if (!err) err = check_about(s, left, right, d);
    if (!err) err = take_params(s, right, d);
    if (err) return err;
    s->hidden = true;
    uint64_t step = sherd__get_u64(sherd__fragment_bytes(left) + 16);
    uint64_t rows = sherd__secure_window(&s->plan, step, &first);
    err = charge(s, first, rows, d);
    if (!err)
        err = sherd__own_grade(s->grader,
                               &(sherd__own_request){ first, rows, scales,
                                                      sherd__secure_room(s->a.nodes) },
                               s->sum, d);
    for (size_t i = 0; i < s->a.len && !err && s->noise; i++) s->sum[i] += s->noise[i];
    if (!err) {
        uint64_t *sent = (uint64_t *)s->sum; /* in place: x becomes x + z, number by number */
        err = sherd__aggregate_upload(s->member, s->sum, sent, d);
        if (!err) sherd__aggregate_print(sent, s->a.len, out);
        s->given = !err;
    }
    sherd__wipe(s->sum, s->a.len * sizeof *s->sum);
    if (s->noise) sherd__wipe(s->noise, s->a.len * sizeof *s->noise);
    return err;
}

/* ---- confirming and opening a sum ---------------------------------------------------------- */

/* Reads numbers of members of the roster. crypto/ checks their range and order. */
static void read_members(const uint8_t *at, uint64_t len, size_t stride, uint32_t *out)
{
    for (uint64_t i = 0; i < len; i++) {
        uint64_t v = sherd__get_u64(at + 8 * stride * i);
        out[i] = v < UINT32_MAX ? (uint32_t)v : UINT32_MAX;
    }
}

/* Checks the survivors against sums of the same `about` that were opened before. Only a member that
 * has computed its upload knows what the round is about, so no other member confirms. */
static int check_survivors(sherd__secure *s, const uint32_t *who, uint32_t len, sherd_diag *d)
{
    uint8_t members[SHERD__ABOUT];
    if (!s->given)
        return sherd__fail(d, SHERD_EINVAL, NULL, "round %llu has no upload of this node",
                           (unsigned long long)s->round);
    for (uint32_t i = 0; i < len; i++)
        if (who[i] >= s->a.nodes)
            return sherd__fail(d, SHERD_EINVAL, NULL, "there is no member %u", who[i]);
    if (s->plan.x) return SHERD_OK;
    int err = digest_members(s, who, len, members, d);
    return err ? err
               : sherd__policy_confirm(s->site.self.policy, s->site.self.ledger, s->charged,
                                       members, d);
}

int sherd__secure_run_confirm(sherd__secure *s, const sherd__task *t, const sherd__fragment *left,
                              uint8_t *out, sherd_diag *d)
{
    uint32_t who[SHERD__AGGREGATE_NODES_MAX];
    uint8_t statement[SHERD__CONFIRMATION];
    uint64_t len = 0;
    size_t most = SHERD__SECURE_CONFIRM + (size_t)s->a.nodes;
    int err = read_question(s, left, SHERD__SECURE_CONFIRM, most, &len, d);
    if (!err) err = same_round(s, left, d);
    if (!err) err = sherd__secure_check_result(t, SHERD_U8, 1, SHERD__SECURE_SIGNATURE, d);
    if (err) return err;
    len -= SHERD__SECURE_CONFIRM;
    read_members(sherd__fragment_bytes(left) + 8 * SHERD__SECURE_CONFIRM, len, 1, who);
    err = check_survivors(s, who, (uint32_t)len, d);
    if (!err) err = sherd__aggregate_confirm(s->member, who, (uint32_t)len, statement, d);
    if (err) return err;
    err = sherd__identity_sign(s->site.self.identity, statement, sizeof statement, out);
    return err ? sherd__fail(d, err, NULL, "cannot sign who is in a sum") : SHERD_OK;
}

/* Checks that all these members have confirmed this node's survivors and round. */
static int check_confirmed(sherd__secure *s, const uint8_t *at, uint64_t len, sherd_diag *d)
{
    uint32_t who[SHERD__AGGREGATE_NODES_MAX], survivors_len = 0;
    uint8_t statement[SHERD__CONFIRMATION];
    const uint32_t *survivors = sherd__aggregate_survivors(s->member, &survivors_len);
    if (!survivors)
        return sherd__fail(d, SHERD_EINVAL, NULL, "round %llu has no survivors yet",
                           (unsigned long long)s->round);
    sherd__confirmation(statement, s->job, s->round, s->bound, survivors, survivors_len);
    read_members(at, len, SHERD__SECURE_CONFIRMED, who);
    int err = SHERD_OK;
    for (uint64_t i = 0; i < len && !err; i++) {
        const uint8_t *signature = at + 8 * (SHERD__SECURE_CONFIRMED * i + 1);
        bool signs = who[i] < s->a.nodes && sherd__identity_verify(s->signers[who[i]], statement,
                                                                   sizeof statement, signature);
        err = signs ? sherd__aggregate_confirmed(s->member, who[i], d)
                    : sherd__fail(d, SHERD_EAUTH, NULL,
                                  "member %u has not confirmed these "
                                  "survivors of round %llu",
                                  who[i], (unsigned long long)s->round);
    }
    return err;
}

/* Binds the node: from now on it answers for the same sum over no other members than these
 * survivors. A confirmation does not bind: another session may have opened the same sum since. */
static int bind_survivors(sherd__secure *s, sherd_diag *d)
{
    uint32_t len = 0;
    uint8_t members[SHERD__ABOUT];
    const uint32_t *who = sherd__aggregate_survivors(s->member, &len);
    if (s->plan.x) return SHERD_OK;
    int err = digest_members(s, who, len, members, d);
    return err ? err
               : sherd__policy_open(s->site.self.policy, s->site.self.ledger, s->charged, members,
                                    d);
}

/* Takes the pieces that the survivors sealed for this node, a row from each. bad[i] is 1 where row
 * i is invalid; with bad NULL the first invalid row is an error. */
static int receive(sherd__secure *s, const sherd__fragment *right, uint8_t *bad, sherd_diag *d)
{
    uint32_t len = 0;
    const uint32_t *who = sherd__aggregate_survivors(s->member, &len);
    size_t sealed = sherd__aggregate_sealed_len(&s->a);
    int err = sherd__secure_check_block(right, SHERD_U8, len, sealed, "pieces", d);
    s->whole = !err;
    for (uint32_t i = 0; i < len && !err; i++) {
        if (who[i] != s->plan.self)
            err = sherd__aggregate_receive(s->member, who[i],
                                           sherd__fragment_bytes(right) + i * sealed, d);
        if (bad) bad[i] = err == SHERD_EFRAME;
        if (err) s->whole = false;
        if (bad && err == SHERD_EFRAME) err = SHERD_OK;
    }
    return err;
}

int sherd__secure_run_check(sherd__secure *s, const sherd__task *t, const sherd__fragment *left,
                            const sherd__fragment *right, uint8_t *out, sherd_diag *d)
{
    uint32_t survivors = 0;
    uint64_t len = 0;
    int err = read_question(s, left, SHERD__SECURE_CHECK, SHERD__SECURE_CHECK, &len, d);
    if (!err) err = same_round(s, left, d);
    if (!err && (s->checked || s->opened))
        err = sherd__fail(d, SHERD_EINVAL, NULL, "round %llu already has its pieces",
                          (unsigned long long)s->round);
    if (err) return err;
    if (!sherd__aggregate_survivors(s->member, &survivors))
        return sherd__fail(d, SHERD_EINVAL, NULL, "round %llu has no survivors yet",
                           (unsigned long long)s->round);
    err = sherd__secure_check_result(t, SHERD_U8, 1, survivors, d);
    if (err) return err;
    s->checked = true;
    return receive(s, right, out, d);
}

static int open_sum(sherd__secure *s, uint8_t *out, sherd_diag *d)
{
    size_t n = sherd__aggregate_piece_len(&s->a);
    uint64_t *sum = sherd__alloc(n * sizeof *sum);
    if (!sum) return sherd__fail_memory(d, "a sum of pieces");
    int err = sherd__aggregate_answer(s->member, sum, d);
    if (!err) sherd__aggregate_print(sum, n, out);
    sherd__wipe(sum, n * sizeof *sum);
    sherd__free(sum);
    return err;
}

int sherd__secure_run_open(sherd__secure *s, const sherd__task *t, const sherd__fragment *left,
                           const sherd__fragment *right, uint8_t *out, sherd_diag *d)
{
    uint64_t len = 0;
    size_t most = SHERD__SECURE_OPEN + SHERD__SECURE_CONFIRMED * (size_t)s->a.nodes;
    int err = read_question(s, left, SHERD__SECURE_OPEN, most, &len, d);
    if (!err) err = same_round(s, left, d);
    if (!err && s->opened)
        err = sherd__fail(d, SHERD_EINVAL, NULL, "round %llu already has its answer",
                          (unsigned long long)s->round);
    if (!err && (len - SHERD__SECURE_OPEN) % SHERD__SECURE_CONFIRMED)
        err = sherd__fail(d, SHERD_EFORMAT, NULL, "the question is malformed");
    if (!err)
        err = sherd__secure_check_result(t, SHERD_I64, 1, sherd__aggregate_piece_len(&s->a), d);
    if (!err)
        err = check_confirmed(s, sherd__fragment_bytes(left) + 8 * SHERD__SECURE_OPEN,
                              (len - SHERD__SECURE_OPEN) / SHERD__SECURE_CONFIRMED, d);
    if (!err && s->checked == (right != NULL))
        err = sherd__fail(d, SHERD_EINVAL, NULL, "pieces are sent once: for a check, or here");
    if (err) return err;
    if (right && !s->whole) err = receive(s, right, NULL, d);
    if (!err && !s->whole)
        err = sherd__fail(d, SHERD_EFRAME, NULL, "a piece is not what its sender sealed");
    if (err) s->opened = true;
    if (!err) err = bind_survivors(s, d);
    if (err) return err;
    s->opened = true;
    return open_sum(s, out, d);
}
