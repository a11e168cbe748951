/*
 * Metadata of one product or element-wise operation.
 *
 * A metadata file records which operands it served. The record is written before anything is sent:
 * a product that fails later has used it.
 */
#include "lib/metadata.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/bytes.h"
#include "core/diag.h"
#include "core/hooks.h"
#include "core/options.h"
#include "matrix/view.h"
#include "scheduler/metadata/metadata.h"
#include "scheduler/plan/prepare.h"
#include "scheduler/plan/profile.h"
#include "sherd/product.h"

/* Bytes of a file that takes noticeable time to write. */
enum { LARGE = 16 << 20 };

typedef struct taking {
    sherd_meta_request what;
    sherd_op op;
    uint32_t in_len;
    sherd_view in[2];
    const char *path;
    sherd_product_options opt;
    sherd_meta *meta;
    size_t at; /* the operation */
    uint8_t operands[SHERD__DIGEST_BYTES];
} taking;

/* ---- the operation --------------------------------------------------------------------------- */

static bool fits(const taking *t, const sherd_meta_operation *op)
{
    sherd_view a = t->in[0], b = t->in[1];
    if (op->kind != t->op || op->n != a.rows) return false;
    return t->op == SHERD_OP_PRODUCT ? op->k == a.cols && op->m == b.cols : op->m == a.cols;
}

static int find_operation(taking *t, sherd_diag *d)
{
    static const char hint[] = "sherd meta show lists the operations";
    const char *name = t->what.operation;
    size_t found = 0, count = sherd_meta_count(t->meta);
    for (size_t i = 0; i < count; i++) {
        const sherd_meta_operation *op = sherd_meta_at(t->meta, i);
        if (name ? strcmp(op->name, name) != 0 : !fits(t, op)) continue;
        t->at = i;
        found++;
    }
    if (found == 1 && fits(t, sherd_meta_at(t->meta, t->at))) return SHERD_OK;
    if (found == 1) {
        const sherd_meta_operation *op = sherd_meta_at(t->meta, t->at);
        return sherd__fail(d, SHERD_ESHAPE, hint,
                           "%s: operation %s is %s of %llu x %llu x %llu, which does not match "
                           "these operands",
                           t->path, op->name, sherd_op_name(op->kind), (unsigned long long)op->n,
                           (unsigned long long)op->k, (unsigned long long)op->m);
    }
    if (found > 1)
        return sherd__fail(d, SHERD_EINVAL, "name one with --operation",
                           "%s: %zu operations are of this kind and shape", t->path, found);
    return name ? sherd__fail(d, SHERD_EFORMAT, hint, "%s: has no operation '%s'", t->path, name)
                : sherd__fail(d, SHERD_ESHAPE, hint,
                              "%s: none of its %zu operations is %s of this "
                              "shape",
                              t->path, count,
                              t->op == SHERD_OP_PRODUCT ? "a product" : sherd_op_name(t->op));
}

/* ---- settings -------------------------------------------------------------------------------- */

int sherd__meta_settings_take(const sherd_meta *meta, const sherd__meta_user *user,
                              sherd_product_options *opt, sherd_diag *d)
{
    const sherd_meta_settings *s = sherd_meta_get(meta);
    const char *odd = NULL, *path = sherd__meta_where(meta);
    if (user->nodes && user->nodes != s->nodes)
        return sherd__fail(d, SHERD_ESHAPE, "use as many nodes, or build metadata for these",
                           "%s is for %u nodes, not for %u", path, s->nodes, user->nodes);
    if ((opt->balanced || user->settings & SHERD_META_EXPOSURE) && opt->balanced != s->balanced)
        odd = "exposure";
    if (user->op == SHERD_OP_PRODUCT) {
        if (!(sherd_scheme_get(opt->scheme)->takes & SHERD_TAKES_SHUFFLES)) odd = "scheme";
        if ((opt->group || user->settings & SHERD_META_GROUP) && opt->group != s->group)
            odd = "group";
        if ((opt->shuffle_rows || user->settings & SHERD_META_SHUFFLE_ROWS) &&
            opt->shuffle_rows != s->shuffle_rows)
            odd = "shuffle-rows";
    }
    if (odd)
        return sherd__fail(d, SHERD_EINVAL, "leave it out: the metadata decides",
                           "--%s disagrees with %s", odd, path);
    if (user->op == SHERD_OP_PRODUCT) {
        opt->group = s->group;
        opt->shuffle_rows = s->shuffle_rows;
    }
    opt->balanced = s->balanced;
    return SHERD_OK;
}

/* ---- use ------------------------------------------------------------------------------------- */

/* Computes the SHA-256 of the operands' digests, in order. */
static int digest_operands(taking *t, sherd_diag *d)
{
    sherd_profile *known[] = { t->opt.profile_a, t->opt.profile_b };
    uint8_t both[2 * SHERD__DIGEST_BYTES] = { 0 };
    sherd__digest one;
    for (uint32_t i = 0; i < t->in_len; i++) {
        int err = known[i] ? sherd__profile_hash(known[i], &one, &t->what.hooks, d)
                           : sherd__digest_view_asking(&one, t->in[i], &t->what.hooks, d);
        if (err) return err;
        memcpy(both + i * SHERD__DIGEST_BYTES, one.sha256, SHERD__DIGEST_BYTES);
    }
    int err = sherd__digest_labelled(&one, "sherd-operands-v1", both,
                                     t->in_len * SHERD__DIGEST_BYTES);
    if (err) return sherd__fail(d, err, NULL, "cannot digest the operands");
    memcpy(t->operands, one.sha256, sizeof t->operands);
    return SHERD_OK;
}

/*
 * Makes calls with one file take turns from reading its record to writing it. The lock is on the
 * file. Saving replaces that file by a new one, so a process that waited checks whether the name
 * still refers to the locked file. An error of the path is reported on reading.
 */
int sherd__meta_lock(const char *path, const sherd_hooks *hooks, int *fd, sherd_diag *d)
{
    struct stat held, now;
    for (;;) {
        *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (*fd < 0) return SHERD_OK;
        while (flock(*fd, LOCK_EX | LOCK_NB) != 0 && (errno == EWOULDBLOCK || errno == EINTR)) {
            static const struct timespec moment = { 0, 20000000 };
            if (sherd__hooks_interrupted(hooks))
                return sherd__fail(d, SHERD_EINTERRUPTED, NULL,
                                   "interrupted while another process uses %s", path);
            nanosleep(&moment, NULL);
        }
        if (fstat(*fd, &held) == 0 && stat(path, &now) == 0 && held.st_dev == now.st_dev &&
            held.st_ino == now.st_ino)
            return SHERD_OK;
        close(*fd);
    }
}

/* Says why the first use of a large file takes long. */
static void say_first_use(const sherd_meta *meta, const char *path, const sherd_hooks *hooks)
{
    struct stat st;
    char size[24], text[PATH_MAX + 160];
    if (!hooks->log || stat(path, &st) != 0 || st.st_size < LARGE) return;
    snprintf(text, sizeof text, "%s: recording its first use writes all of its %s again%s", path,
             sherd__bytes_text((double)st.st_size, size),
             sherd_meta_seed(meta) ? "; the seed form (sherd meta compact) has a few kB" : "");
    hooks->log(hooks->ctx, SHERD_LOG_WARN, text);
}

int sherd__meta_record(sherd_meta *meta, const char *path, const sherd_hooks *hooks, sherd_diag *d)
{
    const sherd_meta_save_options again = { .size = sizeof again,
                                            .as_loaded = true,
                                            .hooks = *hooks };
    say_first_use(meta, path, hooks);
    return sherd_meta_save(meta, path, &again, NULL, d);
}

static int use(taking *t, sherd_meta_usage *usage, sherd_diag *d)
{
    int err = sherd_meta_use(t->meta, t->at, t->operands, t->what.reuse, usage, d);
    if (err || *usage != SHERD_META_FIRST_USE) return err;
    return sherd__meta_record(t->meta, t->path, &t->what.hooks, d);
}

static int take(taking *t, sherd_meta_usage *usage, sherd_diag *d)
{
    const sherd_meta_read_options read = { .size = sizeof read, .hooks = t->what.hooks };
    const sherd__meta_user user = { t->op, t->what.nodes, t->what.settings };
    int fd = -1, err = SHERD_OK;
    if (!t->what.look_only)
        err = digest_operands(t, d); /* takes a while, so it is done before the lock */
    if (!t->what.look_only && !err) err = sherd__meta_lock(t->path, &t->what.hooks, &fd, d);
    if (!err) err = sherd_meta_load(&t->meta, t->path, d);
    if (!err) err = find_operation(t, d);
    if (!err) err = sherd__meta_settings_take(t->meta, &user, &t->opt, d);
    if (!err) t->meta->taken.size = sizeof t->meta->taken;
    if (!err) err = sherd_meta_shuffles(t->meta, t->at, &t->meta->taken, &read, d);
    if (!err && !t->what.look_only) err = use(t, usage, d);
    if (fd >= 0) close(fd);
    return err;
}

static int read_request(taking *t, const sherd_meta_request *what, const sherd_product_options *opt,
                        sherd_diag *d)
{
    static const char *const names[] = { "A", "B" };
    int err = sherd__options_read(&t->what, sizeof t->what, what, "sherd_meta_request", d);
    if (!err) err = sherd__result_check(opt, "sherd_product_options", d);
    if (!err) err = sherd__options_read(&t->opt, sizeof t->opt, opt, "sherd_product_options", d);
    if (err) return err;
    if (!t->opt.scheme) t->opt.scheme = SHERD__SCHEME_DEFAULT;
    t->op = t->what.op ? t->what.op : SHERD_OP_PRODUCT;
    t->in_len = sherd_op_operands(t->op);
    t->in[0] = t->what.a;
    t->in[1] = t->what.b;
    if (t->in_len == 0)
        return sherd__fail(d, SHERD_EINVAL, "sherd/op.h lists them: SHERD_OP_PRODUCT, ...",
                           "unknown operation %d", (int)t->op);
    for (uint32_t i = 0; i < t->in_len && !err; i++) {
        err = sherd__view_check(t->in[i], names[i], d);
        if (!err)
            err = sherd__profile_check(i ? t->opt.profile_b : t->opt.profile_a, t->in[i], names[i],
                                       d);
    }
    return err;
}

int sherd_meta_take(sherd_meta **out, const char *path, const sherd_meta_request *what,
                    sherd_product_options *opt, sherd_meta_usage *usage, sherd_diag *d)
{
    taking t = { .path = path };
    sherd_meta_usage used = SHERD_META_SAME_USE;
    *out = NULL;
    int err = read_request(&t, what, opt, d);
    if (!err) err = take(&t, &used, d);
    if (err) {
        sherd_meta_free(t.meta);
        return err;
    }
    t.opt.shuffles = &t.meta->taken;
    t.opt.seed = sherd_meta_seed(t.meta);
    t.opt.operation = t.at;
    sherd__result_write(opt, &t.opt, sizeof t.opt);
    if (usage) *usage = used;
    *out = t.meta;
    return SHERD_OK;
}
