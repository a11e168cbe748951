/*
 * One client's session of secure aggregation, from its first task to its wiping. Of a coordinator
 * nothing is trusted but its key, which the connection has proved: every step of a round is taken
 * at most once, and a new JOIN has new keys (join.c, round.c). docs/THREATS.md describes what a
 * coordinator could still do, and what it could not.
 */
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "core/wipe.h"
#include "node/secure/internal.h"

bool sherd__secure_op(uint32_t op)
{
    return (op >= SHERD__OP_JOIN && op <= SHERD__OP_OPEN) || op == SHERD__OP_CONFIRM ||
           op == SHERD__OP_CHECK;
}

int sherd__secure_new(sherd__secure **out, const sherd__secure_site *site)
{
    sherd__secure *s = *out = sherd__calloc(1, sizeof *s);
    if (!s) return SHERD_ENOMEM;
    s->site = *site;
    if (!s->site.entropy.fill) s->site.entropy = sherd__entropy_os();
    return SHERD_OK;
}

/* ---- end ----------------------------------------------------------------------------------- */

/* The parts of a session that are as large as its network. */
typedef struct remains {
    sherd__aggregate_member *member;
    sherd__own_grader *grader;
    int64_t *sum, *noise;
    size_t len;
} remains;

static void wipe(const remains *r)
{
    if (r->sum) sherd__wipe(r->sum, r->len * sizeof *r->sum);
    if (r->noise) sherd__wipe(r->noise, r->len * sizeof *r->noise);
    sherd__free(r->sum);
    sherd__free(r->noise);
    sherd__aggregate_member_free(r->member);
    sherd__own_free(r->grader);
}

static void end(void *what)
{
    wipe(what);
    sherd__free(what);
}

void sherd__secure_leave(sherd__secure *s)
{
    const remains r = { s->member, s->grader, s->sum, s->noise, s->a.len };
    remains *copy = s->reserved ? sherd__alloc(sizeof *copy) : NULL;
    if (copy) {
        *copy = r;
        sherd__later_end(&s->site.later, s->site.pool, end, copy, s->reserved);
    } else {
        wipe(&r);
        sherd__pool_unreserve(s->site.pool, s->reserved);
    }
    sherd__free(s->signers);
    sherd__block_release(s->x);
    sherd__block_release(s->targets);
    sherd__secure fresh = { .site = s->site, .admitted = s->admitted };
    sherd__wipe(s, sizeof *s);
    *s = fresh;
}

void sherd__secure_free(sherd__secure *s)
{
    if (!s) return;
    sherd__secure_leave(s);
    sherd__free(s);
}

void sherd__secure_forget(sherd__secure *s, uint64_t job)
{
    if (s->job != job || !job) return;
    if (s->admitted) s->forget = job;
    else sherd__secure_leave(s);
}

void sherd__secure_done(sherd__secure *s)
{
    if (--s->admitted == 0 && s->forget) sherd__secure_leave(s);
}

/* ---- blocks -------------------------------------------------------------------------------- */

bool sherd__secure_dense(const sherd__fragment *f, uint8_t dtype)
{
    const sherd__fragment_info *i = sherd__fragment_info_of(f);
    return i->encoding == SHERD__DENSE && i->groups == 0 && i->dtype == dtype &&
           sherd__fragment_bytes(f);
}

int sherd__secure_check_block(const sherd__fragment *f, uint8_t dtype, uint64_t rows, uint64_t cols,
                              const char *what, sherd_diag *d)
{
    const sherd__fragment_info *i = f ? sherd__fragment_info_of(f) : NULL;
    if (f && sherd__secure_dense(f, dtype) && i->rows == rows && i->cols == cols) return SHERD_OK;
    return sherd__fail(d, SHERD_ESHAPE, NULL, "no %s: expected %llu x %llu of dtype %u", what,
                       (unsigned long long)rows, (unsigned long long)cols, dtype);
}

int sherd__secure_check_result(const sherd__task *t, uint8_t dtype, uint64_t rows, uint64_t cols,
                               sherd_diag *d)
{
    const sherd__fragment_info *i = &t->result;
    if (i->encoding == SHERD__DENSE && i->groups == 0 && i->dtype == dtype && i->rows == rows &&
        i->cols == cols)
        return SHERD_OK;
    return sherd__fail(d, SHERD_ESHAPE, NULL, "the result is %llu x %llu of dtype %u",
                       (unsigned long long)rows, (unsigned long long)cols, dtype);
}

bool sherd__secure_stopped(void *secure)
{
    const sherd__secure *s = secure;
    return atomic_load(s->stop);
}

/* ---- tasks --------------------------------------------------------------------------------- */

int sherd__secure_admit(sherd__secure *s, const sherd__task *t, const sherd__block *left,
                        const sherd__block *right, sherd_diag *d)
{
    bool two = t->op == SHERD__OP_ROSTER || t->op == SHERD__OP_HIDE || t->op == SHERD__OP_CHECK ||
               (t->op == SHERD__OP_OPEN && right);
    if (!s->site.self.identity)
        return sherd__fail(d, SHERD_EUNSUPPORTED, NULL, "this node takes no part in aggregation");
    if (t->primes_len || two != (right != NULL))
        return sherd__fail(d, SHERD_EINVAL, NULL, "operation %u takes %u blocks and no primes",
                           t->op, two ? 2u : 1u);
    if (t->op == SHERD__OP_JOIN && s->admitted)
        return sherd__fail(d, SHERD_EBUSY, NULL, "the earlier request is not finished");
    if (t->op != SHERD__OP_JOIN && (t->job != s->job || s->forget))
        return sherd__fail(d, SHERD_EINVAL, NULL, "no JOIN in this job");
    int err = t->op == SHERD__OP_JOIN ? sherd__secure_admit_join(s, t, left, d) : SHERD_OK;
    if (err) sherd__secure_leave(s);
    else s->admitted++;
    return err;
}

int sherd__secure_run(sherd__secure *s, const sherd__task *t, const sherd__fragment *left,
                      const sherd__fragment *right, uint8_t *out, const atomic_bool *stop,
                      sherd_diag *d)
{
    int err = SHERD_EUNSUPPORTED;
    s->stop = stop;
    switch (t->op) {
    case SHERD__OP_JOIN: err = sherd__secure_run_join(s, t, out, d); break;
    case SHERD__OP_ROSTER: err = sherd__secure_run_roster(s, t, right, out, d); break;
    case SHERD__OP_SEAL: err = sherd__secure_run_seal(s, t, left, out, d); break;
    case SHERD__OP_HIDE: err = sherd__secure_run_hide(s, t, left, right, out, d); break;
    case SHERD__OP_CONFIRM: err = sherd__secure_run_confirm(s, t, left, out, d); break;
    case SHERD__OP_CHECK: err = sherd__secure_run_check(s, t, left, right, out, d); break;
    case SHERD__OP_OPEN: err = sherd__secure_run_open(s, t, left, right, out, d); break;
    default: break;
    }
    s->stop = NULL;
    if (err && t->result.len) sherd__wipe(out, t->result.len);
    return err;
}
