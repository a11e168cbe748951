/*
 * The source of an operation's randomness: new (nothing to do here), --seed FILE, or a metadata
 * file with its settings, its tables and its reuse rule.
 *
 * A metadata file records which operands it served. The record is written before anything is sent:
 * a run that fails later has used it.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/nodes.h"
#include "cli/seed.h"
#include "cli/work.h"
#include "core/rand.h"

/* ---- metadata -------------------------------------------------------------------------------- */

static bool fits(const sherd__product_run *w, const sherd_meta_operation *op)
{
    if (w->op != 0) return (int)op->kind == (int)w->op && op->n == w->rows && op->m == w->cols;
    return op->kind == SHERD_OP_PRODUCT && op->n == w->rows && op->m == w->cols &&
           op->k == w->in[0].view.cols;
}

static int find_operation(sherd__product_run *w, const char *path, size_t *at, sherd_diag *d)
{
    const char *name = sherd__opt_text(w->cli, "operation");
    size_t found = 0, count = sherd_meta_count(w->meta);
    for (size_t i = 0; i < count; i++) {
        const sherd_meta_operation *op = sherd_meta_at(w->meta, i);
        if (name ? strcmp(op->name, name) != 0 : !fits(w, op)) continue;
        *at = i;
        found++;
    }
    if (found == 1 && fits(w, sherd_meta_at(w->meta, *at))) return 0;
    if (found == 1) {
        const sherd_meta_operation *op = sherd_meta_at(w->meta, *at);
        return sherd__fail(d, SHERD_ESHAPE, "sherd meta show lists the operations",
                           "%s: operation %s is %s of %llu x %llu x %llu, which these operands are "
                           "not",
                           path, op->name, sherd_op_name(op->kind), (unsigned long long)op->n,
                           (unsigned long long)op->k, (unsigned long long)op->m);
    }
    if (found > 1)
        return sherd__fail(d, SHERD_EINVAL, "name one with --operation",
                           "%s: %zu operations are of this kind and shape", path, found);
    return name ? sherd__fail(d, SHERD_EFORMAT, "sherd meta show lists the operations",
                              "%s: has no operation '%s'", path, name)
                : sherd__fail(d, SHERD_ESHAPE, "sherd meta show lists the operations",
                              "%s: none of its %zu operations is %s of this shape", path, count,
                              w->op == 0 ? "a product" : w->operation);
}

/* Takes the settings from the file; an option with another value is an error, not ignored. */
static int take_settings(sherd__product_run *w, const char *path, sherd_diag *d)
{
    const sherd_meta_settings *s = sherd_meta_settings_of(w->meta);
    sherd__cli *cli = w->cli;
    const char *odd = NULL;
    uint32_t nodes;
    int err = sherd__nodes_count(&nodes, NULL, cli, d);
    if (err) return err;
    if (nodes != s->nodes)
        return sherd__fail(d, SHERD_ESHAPE, "use as many nodes, or build metadata for these",
                           "%s is for %u nodes, not for %u", path, s->nodes, nodes);
    if (sherd__opt_given(cli, "exposure") && w->opt.balanced != s->balanced) odd = "exposure";
    w->opt.balanced = s->balanced;
    if (w->op == 0) {
        if (!(sherd__work_scheme(w)->takes & SHERD_TAKES_SHUFFLES)) odd = "scheme";
        if (sherd__opt_given(cli, "group") && w->opt.group != s->group) odd = "group";
        if (sherd__opt_given(cli, "shuffle-rows") && w->opt.shuffle_rows != s->shuffle_rows)
            odd = "shuffle-rows";
        w->opt.group = s->group;
        w->opt.shuffle_rows = s->shuffle_rows;
    }
    if (!odd) return 0;
    return sherd__fail(d, SHERD_EINVAL, "leave it out: the metadata decides",
                       "%s disagrees with %s", sherd__opt_where(cli, odd), path);
}

/* Applies the reuse rule to the SHA-256 of the operands' digests, in order. */
static int use(sherd__product_run *w, const char *path, size_t at, sherd_diag *d)
{
    uint8_t both[2 * SHERD__DIGEST_BYTES] = { 0 };
    sherd__digest operands;
    sherd_meta_usage usage;
    int err = sherd__product_run_digests(w, d);
    if (err) return err;
    for (unsigned i = 0; i < w->in_len; i++)
        memcpy(both + i * SHERD__DIGEST_BYTES, w->in[i].digest.sha256, SHERD__DIGEST_BYTES);
    err = sherd__digest_labelled(&operands, "sherd-operands-v1", both,
                                 w->in_len * SHERD__DIGEST_BYTES);
    if (err) return sherd__fail(d, err, NULL, "cannot digest the operands");
    err = sherd_meta_use(w->meta, at, operands.sha256, sherd__opt_flag(w->cli, "reuse-metadata"),
                         &usage, d);
    if (err) return err;
    w->reused = usage == SHERD_META_REUSED;
    if (usage != SHERD_META_FIRST_USE) return 0;
    return sherd_meta_save_again(w->meta, path, d);
}

/*
 * Makes runs with one file take turns from reading its record to writing it. The lock is on the
 * file. Saving replaces that file by a new one, so a process that waited checks whether the name
 * still refers to the locked file. *fd -1: nothing to lock; an error of the path is reported on
 * reading.
 */
static int lock(int *fd, const char *path, sherd_diag *d)
{
    struct stat held, now;
    for (;;) {
        *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (*fd < 0) return 0;
        while (flock(*fd, LOCK_EX | LOCK_NB) != 0 && (errno == EWOULDBLOCK || errno == EINTR)) {
            static const struct timespec moment = { 0, 20000000 };
            int err = sherd__work_go_on(d);
            if (err) return err;
            nanosleep(&moment, NULL);
        }
        if (fstat(*fd, &held) == 0 && stat(path, &now) == 0 && held.st_dev == now.st_dev &&
            held.st_ino == now.st_ino)
            return 0;
        close(*fd);
    }
}

static bool interrupted(void *ctx)
{
    (void)ctx;
    return sherd__cli_interrupted() != 0;
}

static int take_metadata(sherd__product_run *w, const char *path, size_t *at, sherd_diag *d)
{
    int fd = -1, err = 0;
    if (!w->dry)
        err = sherd__product_run_digests(w, d); /* takes a while, so it is done before the lock */
    if (!w->dry && !err) err = lock(&fd, path, d);
    if (!err) err = sherd_meta_load(&w->meta, path, d);
    if (!err) err = find_operation(w, path, at, d);
    if (!err) err = take_settings(w, path, d);
    if (!err) sherd_meta_set_hooks(w->meta, &(sherd_hooks){ .interrupted = interrupted });
    if (!err) err = sherd_meta_shuffles(w->meta, *at, &w->shuffles, d);
    if (!err && !w->dry) err = use(w, path, *at, d);
    if (fd >= 0) close(fd);
    return err;
}

static int use_metadata(sherd__product_run *w, const char *path, sherd_diag *d)
{
    size_t at = 0;
    int err = take_metadata(w, path, &at, d);
    if (err) return err;
    w->opt.shuffles = &w->shuffles;
    w->opt.seed = sherd_meta_seed(w->meta);
    w->opt.operation = at;
    return 0;
}

int sherd__product_run_seed(sherd__product_run *w, sherd_diag *d)
{
    const char *seed = sherd__opt_text(w->cli, "seed"), *meta = sherd__opt_text(w->cli, "meta");
    if (meta) return use_metadata(w, meta, d);
    if (!seed) return 0;
    w->opt.seed = w->seed;
    return sherd__seed_read(w->seed, seed, d);
}

void sherd__product_run_seed_settle(sherd__product_run *w)
{
    if (w->opt.seed || w->opt.shuffles) return;
    sherd__entropy os = sherd__entropy_os();
    os.fill(os.ctx, w->seed, sizeof w->seed);
    w->opt.seed = w->seed;
}
