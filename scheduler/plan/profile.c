/*
 * Profiles. Two locks, so that the values can be read while another thread computes the digest. No
 * lock is held while hooks are called: they may use the profile. A view that repeats one number is
 * examined by reading that number: callers use such views if only the shape of an operand is known.
 */
#include "scheduler/plan/profile.h"

#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/diag.h"
#include "core/field.h"
#include "core/hooks.h"
#include "core/options.h"
#include "core/signals.h"
#include "core/wipe.h"

#define WAIT_S 0.05 /* between two questions whether to stop */

void sherd__profile_init(sherd_profile *p, sherd_view v)
{
    pthread_condattr_t attr;
    *p = (sherd_profile){ .view = v };
    pthread_mutex_init(&p->values, NULL);
    pthread_mutex_init(&p->hashing, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&p->hashed, &attr);
    pthread_condattr_destroy(&attr);
}

void sherd__profile_fini(sherd_profile *p)
{
    atomic_store(&p->stop, true);
    if (p->running) pthread_join(p->thread, NULL);
    pthread_mutex_destroy(&p->values);
    pthread_mutex_destroy(&p->hashing);
    pthread_cond_destroy(&p->hashed);
    sherd__wipe(p, sizeof *p);
}

int sherd_profile_new(sherd_profile **out, sherd_view v, sherd_diag *d)
{
    *out = NULL;
    int err = sherd__view_check(v, "the operand", d);
    if (err) return err;
    sherd_profile *p = sherd__alloc(sizeof *p);
    if (!p) return sherd__fail_memory(d, "a profile");
    sherd__profile_init(p, v);
    *out = p;
    return SHERD_OK;
}

void sherd_profile_free(sherd_profile *p)
{
    if (!p) return;
    sherd__profile_fini(p);
    sherd__free(p);
}

int sherd__profile_check(const sherd_profile *p, sherd_view v, const char *name, sherd_diag *d)
{
    if (!p || (p->view.data == v.data && p->view.dtype == v.dtype && p->view.rows == v.rows &&
               p->view.cols == v.cols && p->view.row_stride == v.row_stride &&
               p->view.col_stride == v.col_stride))
        return SHERD_OK;
    return sherd__fail(d, SHERD_EINVAL, "make a profile of each operand, of the same view",
                       "the profile given for %s belongs to another matrix", name);
}

/* ---- values ---------------------------------------------------------------------------------- */

static int scan(sherd_view v, sherd__scan *out, const sherd_hooks *hooks)
{
    bool repeats = v.row_stride == 0 && v.col_stride == 0 && v.rows > 0 && v.cols > 0;
    uint64_t times = repeats ? (uint64_t)v.rows * v.cols : 1;
    int err = sherd__view_scan_asking(repeats ? sherd_view_c(v.data, v.dtype, 1, 1) : v, out,
                                      hooks);
    out->nonzeros *= times;
    out->nonfinite *= times;
    return err;
}

/* Returns whether the values are known. If they are not, they are set from `found` unless it is
 * NULL: once, since other threads may read them without the lock from then on. */
static bool known(sherd_profile *p, const sherd__scan *found)
{
    pthread_mutex_lock(&p->values);
    if (!p->scanned && found) {
        p->scan = *found;
        p->scanned = true;
    }
    bool scanned = p->scanned;
    pthread_mutex_unlock(&p->values);
    return scanned;
}

int sherd__profile_examine(sherd_profile *p, const sherd_hooks *hooks, sherd_diag *d)
{
    sherd__scan found;
    if (known(p, NULL)) return SHERD_OK;
    int err = scan(p->view, &found, hooks);
    if (err) return sherd__fail(d, err, NULL, "interrupted");
    (void)known(p, &found);
    return SHERD_OK;
}

const sherd__scan *sherd__profile_scan(sherd_profile *p)
{
    (void)!sherd__profile_examine(p, NULL, NULL);
    return &p->scan;
}

int sherd__profile_fixed(sherd_profile *p, unsigned bits, const char *name, sherd__fixed *out,
                         sherd_diag *d)
{
    return sherd__fixed_of_scan(p->view, sherd__profile_scan(p), bits, name, out, d);
}

int sherd_profile_get(sherd_profile *p, sherd_profile_info *out, sherd_diag *d)
{
    int err = sherd__result_check(out, "sherd_profile_info", d);
    if (err) return err;
    const sherd__scan *s = sherd__profile_scan(p);
    sherd_profile_info info = { .rows = p->view.rows,
                                .cols = p->view.cols,
                                .nonzeros = s->nonzeros,
                                .nonfinite = s->nonfinite,
                                .min_abs = s->min_abs,
                                .max_abs = s->max_abs,
                                .integers = s->integers };
    sherd__result_write(out, &info, sizeof info);
    return SHERD_OK;
}

int sherd_profile_rounding_get(sherd_profile *p, uint32_t bits, sherd_rounding *out, sherd_diag *d)
{
    sherd__fixed fixed;
    int err = sherd__result_check(out, "sherd_rounding", d);
    if (!err) err = sherd__profile_fixed(p, bits, "the operand", &fixed, d);
    if (err) return err;
    pthread_mutex_lock(&p->values);
    if (!p->measured || p->scale != fixed.scale) {
        sherd__fixed_measure(p->view, fixed.scale, &p->loss);
        p->scale = fixed.scale;
        p->measured = true;
    }
    const sherd__fixed_loss loss = p->loss;
    pthread_mutex_unlock(&p->values);
    sherd_rounding r = { .vanished = loss.vanished,
                         .nonzeros = loss.nonzeros,
                         .relative_error = loss.max_error > 0 ? loss.max_error / loss.max_abs : 0,
                         .max_error = loss.max_error,
                         .max_abs = loss.max_abs,
                         .scale = fixed.scale };
    sherd__result_write(out, &r, sizeof r);
    return SHERD_OK;
}

/* ---- digest ---------------------------------------------------------------------------------- */

static bool stopped(void *ctx)
{
    sherd_profile *p = ctx;
    return atomic_load(&p->stop);
}

static void *hash_in_thread(void *arg)
{
    sherd__digest digest;
    const sherd_hooks hooks = { .interrupted = stopped, .ctx = arg };
    (void)!sherd__profile_hash(arg, &digest, &hooks, NULL);
    return NULL;
}

void sherd_profile_digest_start(sherd_profile *p)
{
    sigset_t before;
    pthread_mutex_lock(&p->hashing);
    sherd__signals_hold(&before);
    if (!p->running && !p->digested)
        p->running = pthread_create(&p->thread, NULL, hash_in_thread, p) == 0;
    sherd__signals_restore(&before);
    pthread_mutex_unlock(&p->hashing);
}

/* Waits while another thread computes the digest. The lock must be held; it is released while the
 * hooks are called. */
static int wait_for_hasher(sherd_profile *p, const sherd_hooks *hooks, sherd_diag *d)
{
    bool stop = false;
    while (p->hashes && !p->digested && !pthread_equal(p->hasher, pthread_self()) && !stop) {
        struct timespec until = sherd__clock_after(WAIT_S);
        pthread_cond_timedwait(&p->hashed, &p->hashing, &until);
        if (!hooks) continue;
        pthread_mutex_unlock(&p->hashing);
        stop = sherd__hooks_interrupted(hooks);
        pthread_mutex_lock(&p->hashing);
    }
    return stop ? sherd__fail(d, SHERD_EINTERRUPTED, NULL, "interrupted") : SHERD_OK;
}

/* Computes the digest. The lock must be held; it is released meanwhile. If `hashes` is true
 * already, a hook of this thread's own computation needs the digest. */
static int hash(sherd_profile *p, const sherd_hooks *hooks, sherd_diag *d)
{
    sherd__digest digest;
    bool nested = p->hashes;
    p->hashes = true;
    p->hasher = pthread_self();
    pthread_mutex_unlock(&p->hashing);
    int err = sherd__digest_view_asking(&digest, p->view, hooks, d);
    pthread_mutex_lock(&p->hashing);
    p->hashes = nested;
    pthread_cond_broadcast(&p->hashed);
    if (err) return err;
    p->digest = digest;
    p->digested = true;
    return SHERD_OK;
}

int sherd__profile_hash(sherd_profile *p, sherd__digest *out, const sherd_hooks *hooks,
                        sherd_diag *d)
{
    pthread_mutex_lock(&p->hashing);
    int err = wait_for_hasher(p, hooks, d);
    if (!err && !p->digested) err = hash(p, hooks, d);
    if (!err) *out = p->digest;
    pthread_mutex_unlock(&p->hashing);
    return err;
}

int sherd_profile_digest(sherd_profile *p, uint8_t sha256[32], sherd_diag *d)
{
    sherd__digest digest;
    int err = sherd__profile_hash(p, &digest, NULL, d);
    if (!err) memcpy(sha256, digest.sha256, sizeof digest.sha256);
    return err;
}

/* ---- fields ---------------------------------------------------------------------------------- */

static const sherd_field profile_info_fields[] = {
    SHERD__FIELD(sherd_profile_info, rows, U64, "", "rows"),
    SHERD__FIELD(sherd_profile_info, cols, U64, "", "columns"),
    SHERD__FIELD(sherd_profile_info, nonzeros, U64, "", "entries that are not 0"),
    SHERD__FIELD(sherd_profile_info, nonfinite, U64, "", "NaN and infinities"),
    SHERD__FIELD(sherd_profile_info, min_abs, F64, "", "least magnitude of a finite entry"),
    SHERD__FIELD(sherd_profile_info, max_abs, F64, "", "largest magnitude of a finite entry"),
    SHERD__FIELD(sherd_profile_info, integers, BOOL, "", "every entry is finite and whole"),
};
SHERD__FIELDS(sherd_profile_info, profile_info_fields)

static const sherd_field rounding_fields[] = {
    SHERD__FIELD(sherd_rounding, vanished, U64, "", "entries that are not 0 and become 0"),
    SHERD__FIELD(sherd_rounding, nonzeros, U64, "", "entries that are not 0"),
    SHERD__FIELD(sherd_rounding, relative_error, F64, "",
                 "largest error, divided by the largest entry"),
    SHERD__FIELD(sherd_rounding, max_error, F64, "", "largest error of an entry"),
    SHERD__FIELD(sherd_rounding, max_abs, F64, "", "largest entry"),
    SHERD__FIELD(sherd_rounding, scale, I32, "", "entries are multiples of 2^-scale"),
};
SHERD__FIELDS(sherd_rounding, rounding_fields)
