/*
 * A round: pieces of a mask for the others (SEAL), the gradient under that mask (HIDE), the word
 * that this node was told whose sum is to be opened (CONFIRM), the sum of the pieces that these
 * have sealed for it (OPEN). Each is done at most once, whatever came of it; HIDE only for what
 * SEAL was told it would be about, OPEN only for those whom this node and U members have confirmed.
 */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "core/wipe.h"
#include "node/secure_internal.h"

/* ---- rounds -------------------------------------------------------------------------------- */

/* Numbers of a question, `most` of them at most; format and, but for SEAL, round are checked. */
static int read_question(const sherd__secure *s, const sherd_fragment *left, size_t least,
                         size_t most, uint64_t *len, sherd_diag *d)
{
    const sherd__fragment_info *i = sherd__fragment_info_of(left);
    const uint8_t *bytes = sherd__fragment_bytes(left);
    if (!s->member) return sherd__fail(d, SHERD_EINVAL, NULL, "no roster before");
    if (!sherd__secure_dense(left, SHERD_I64) || i->rows != 1 || i->cols < least ||
        i->cols > most || sherd__get_u64(bytes) != SHERD__SECURE_FORMAT)
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

int sherd__secure_run_seal(sherd__secure *s, const sherd__task *t, const sherd_fragment *left,
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
    sherd__about(bound, (const sherd__about_part[]){ { s->roster, sizeof s->roster },
                                                     { about, sizeof s->about } }, 2);
    err = sherd__aggregate_begin(s->member, round, bound, &s->site.entropy, d);
    if (err) return err;
    memcpy(s->about, about, sizeof s->about);
    memcpy(s->bound, bound, sizeof s->bound);
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

/* Pieces were sealed for what the round was said to be about: is it? */
static int check_about(const sherd__secure *s, const sherd_fragment *left,
                       const sherd_fragment *right, sherd_diag *d)
{
    uint8_t about[SHERD__ABOUT];
    sherd__about(about, (const sherd__about_part[]){
                            { s->roster, sizeof s->roster },
                            { sherd__fragment_bytes(left),
                              (size_t)sherd__fragment_info_of(left)->len },
                            { sherd__fragment_bytes(right), s->count * sizeof(double) } }, 3);
    if (!memcmp(about, s->about, sizeof about)) return SHERD_OK;
    return sherd__fail(d, SHERD_EINVAL, NULL,
                       "round %llu is about other parameters, scales or members than was said",
                       (unsigned long long)s->round);
}

int sherd__secure_run_hide(sherd__secure *s, const sherd__task *t, const sherd_fragment *left,
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
    if (!err) err = sherd__secure_check_result(t, SHERD_I64, 1, s->a.len, d);
    if (!err) err = sherd__secure_check_block(right, SHERD_F64, 1, s->count, "parameters", d);
    if (!err) err = read_scales(left, tiers, scales, d);
    if (!err) err = check_about(s, left, right, d);
    if (err) return err;
    s->hidden = true;
    uint64_t rows = s->plan.rows, all = s->data.x.rows;
    uint64_t step = sherd__get_u64(sherd__fragment_bytes(left) + 16);
    uint64_t first = rows ? (step % all) * (rows % all) % all : 0;
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

/* ---- whose sum, and its opening ------------------------------------------------------------ */

/* Numbers as members of the roster; which they are, and their order, crypto/ holds them to. */
static void read_members(const uint8_t *at, uint64_t len, size_t stride, uint32_t *out)
{
    for (uint64_t i = 0; i < len; i++) {
        uint64_t v = sherd__get_u64(at + 8 * stride * i);
        out[i] = v < UINT32_MAX ? (uint32_t)v : UINT32_MAX;
    }
}

int sherd__secure_run_confirm(sherd__secure *s, const sherd__task *t, const sherd_fragment *left,
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
    err = sherd__aggregate_confirm(s->member, who, (uint32_t)len, statement, d);
    if (err) return err;
    err = sherd__identity_sign(s->site.self.identity, statement, sizeof statement, out);
    return err ? sherd__fail(d, err, NULL, "cannot sign who is in a sum") : SHERD_OK;
}

/* That all these were told of the survivors that this node was told of, and of its round. */
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
        bool signs = who[i] < s->a.nodes &&
                     sherd__identity_verify(s->signers[who[i]], statement, sizeof statement,
                                            signature);
        err = signs ? sherd__aggregate_confirmed(s->member, who[i], d)
                    : sherd__fail(d, SHERD_EAUTH, NULL, "member %u has not confirmed these "
                                  "survivors of round %llu", who[i],
                                  (unsigned long long)s->round);
    }
    return err;
}

static int open_sum(sherd__secure *s, const uint8_t *pieces, uint8_t *out, sherd_diag *d)
{
    uint32_t len = 0;
    const uint32_t *who = sherd__aggregate_survivors(s->member, &len);
    size_t sealed = sherd__aggregate_sealed_len(&s->a), n = sherd__aggregate_piece_len(&s->a);
    int err = SHERD_OK;
    for (uint32_t i = 0; i < len && !err; i++)
        if (who[i] != s->plan.self)
            err = sherd__aggregate_receive(s->member, who[i], pieces + i * sealed, d);
    uint64_t *sum = err ? NULL : sherd__alloc(n * sizeof *sum);
    if (!err && !sum) err = sherd__fail(d, SHERD_ENOMEM, NULL, "no memory for a sum of pieces");
    if (!err) err = sherd__aggregate_answer(s->member, sum, d);
    if (!err) sherd__aggregate_print(sum, n, out);
    if (sum) sherd__wipe(sum, n * sizeof *sum);
    sherd__free(sum);
    return err;
}

int sherd__secure_run_open(sherd__secure *s, const sherd__task *t, const sherd_fragment *left,
                    const sherd_fragment *right, uint8_t *out, sherd_diag *d)
{
    uint32_t survivors = 0;
    uint64_t len = 0;
    size_t most = SHERD__SECURE_OPEN + SHERD__SECURE_CONFIRMED * (size_t)s->a.nodes;
    int err = read_question(s, left, SHERD__SECURE_OPEN, most, &len, d);
    if (!err) err = same_round(s, left, d);
    if (!err && s->opened)
        err = sherd__fail(d, SHERD_EINVAL, NULL, "round %llu has had its answer",
                          (unsigned long long)s->round);
    if (!err && (len - SHERD__SECURE_OPEN) % SHERD__SECURE_CONFIRMED)
        err = sherd__fail(d, SHERD_EFORMAT, NULL, "a question that is none");
    if (!err)
        err = sherd__secure_check_result(t, SHERD_I64, 1, sherd__aggregate_piece_len(&s->a), d);
    if (!err)
        err = check_confirmed(s, sherd__fragment_bytes(left) + 8 * SHERD__SECURE_OPEN,
                              (len - SHERD__SECURE_OPEN) / SHERD__SECURE_CONFIRMED, d);
    if (err) return err;
    (void)sherd__aggregate_survivors(s->member, &survivors);
    err = sherd__secure_check_block(right, SHERD_U8, survivors,
                                    sherd__aggregate_sealed_len(&s->a), "pieces", d);
    if (err) return err;
    s->opened = true;
    return open_sum(s, sherd__fragment_bytes(right), out, d);
}
