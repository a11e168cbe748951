/*
 * Metadata of a training: each operation of a step has its exposures and permutations from a file
 * (docs/METADATA.md, "Trainings"). A file without its seed is refused. Its permutations would serve
 * every step, and nodes could compare the steps position by position.
 *
 * A file serves one training, which is recorded in it before anything is sent. The record is made
 * by sherd_training_run and not before, so that a training that never began has not used the file.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/buf.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "core/options.h"
#include "lib/metadata.h"
#include "lib/train/operations.h"
#include "lib/train/training.h"
#include "scheduler/cluster/internal.h"
#include "scheduler/metadata/metadata.h"

struct sherd__training_meta {
    char *path;
    sherd_meta *loaded;      /* until sherd__training_meta_check */
    uint8_t digests[2 * 32]; /* of the metadata and of the training */
    bool reused;
    sherd__step_tables tables;
    const uint32_t *domain; /* by node, during sherd__training_meta_domains; NULL: not known yet */
};

#define BUILD_HINT "`sherd meta build --recipe` makes the operations of a training"

/* ---- the operations of a step ---------------------------------------------------------------- */

static void shape_text(const sherd_meta_operation *op, char out[96])
{
    if (op->kind == SHERD_OP_PRODUCT)
        snprintf(out, 96, "dot of %" PRIu64 " x %" PRIu64 " x %" PRIu64, op->n, op->k, op->m);
    else snprintf(out, 96, "%s of %" PRIu64 " x %" PRIu64, sherd_op_name(op->kind), op->n, op->m);
}

/* Finds an operation of the step in the file, and reads its exposures. */
static int take_table(const sherd_training *t, sherd__step_table *to, sherd_diag *d)
{
    sherd_meta *meta = t->meta->loaded;
    int64_t at = sherd_meta_find(meta, to->op.name);
    char theirs[96], mine[96];
    if (at < 0)
        return sherd__fail(d, SHERD_EFORMAT, BUILD_HINT,
                           "%s: has no operation %s, which a step of %s needs", t->meta->path,
                           to->op.name, t->recipe->name);
    const sherd_meta_operation *op = sherd_meta_at(meta, (size_t)at);
    if (op->kind != to->op.kind || op->n != to->op.n || op->k != to->op.k || op->m != to->op.m) {
        shape_text(op, theirs);
        shape_text(&to->op, mine);
        return sherd__fail(d, SHERD_ESHAPE, "build metadata for this recipe, batch and data",
                           "%s: operation %s is %s, but a step of %s needs %s (batches of %zu)",
                           t->meta->path, op->name, theirs, t->recipe->name, mine,
                           sherd__trainer_order(t->trainer)->batch);
    }
    size_t columns = (size_t)sherd_meta_columns(op), bytes;
    to->number = (uint64_t)at;
    to->shown = sherd__calloc(2 * (size_t)t->o.nodes, sizeof *to->shown);
    to->exposures = sherd__mul(columns, sizeof *to->exposures, &bytes) ? sherd__alloc(bytes) : NULL;
    if (!to->shown || !to->exposures) return sherd__fail_memory(d, "the operations of a step");
    int err = sherd__meta_verify_operation(meta, (size_t)at, d);
    return err ? err : sherd_meta_exposures(meta, (size_t)at, to->exposures, d);
}

static int take_tables(sherd_training *t, sherd_diag *d)
{
    sherd__step_tables *to = &t->meta->tables;
    int err = SHERD_OK;
    to->at = sherd__calloc(SHERD__STEP_OPERATIONS_MAX, sizeof *to->at);
    if (!to->at) return sherd__fail_memory(d, "the operations of a step");
    to->nodes = t->o.nodes;
    to->len = sherd__step_operations(&t->recipe->recipe, sherd__trainer_network(t->trainer),
                                     sherd__trainer_order(t->trainer)->batch, t->products.maps,
                                     to->at);
    memcpy(to->seed, sherd_meta_seed(t->meta->loaded), sizeof to->seed);
    sherd__meta_begin(t->meta->loaded, &t->outer);
    for (size_t i = 0; i < to->len && !err; i++) err = take_table(t, &to->at[i], d);
    return err;
}

/* ---- what a file must have ------------------------------------------------------------------- */

static int check_file(sherd_training *t, sherd_diag *d)
{
    sherd_meta *meta = t->meta->loaded;
    const sherd__meta_user user = { SHERD_OP_PRODUCT, t->o.nodes, t->o.meta_settings };
    int err = sherd__meta_settings_take(meta, &user, &t->products.opt, d);
    if (err) return err;
    if (sherd_meta_get(meta)->shuffle_rows)
        return sherd__fail(d, SHERD_EUNSUPPORTED, "build metadata without --shuffle-rows",
                           "%s: shuffles rows, which is not possible in a training", t->meta->path);
    if (sherd_meta_seed(meta)) return SHERD_OK;
    err = sherd_meta_verify(meta, NULL, d); /* reports a changed seed as such */
    return err ? err
               : sherd__fail(d, SHERD_EUNSUPPORTED,
                             "give the file with its seed: sherd meta compact --seed",
                             "%s: has no seed, so its permutations serve one step only",
                             t->meta->path);
}

/* Numbers of passes determine permutations and must not overlap. */
static int check_passes(const sherd_training *t, sherd_diag *d)
{
    size_t batch = sherd__trainer_order(t->trainer)->batch;
    if (sherd__trainer_steps(t->trainer) < SHERD__PASS_STEPS &&
        t->data->validation.x.rows / batch < SHERD__PASS_BATCHES)
        return SHERD_OK;
    return sherd__fail(d, SHERD_EINVAL, "use larger batches",
                       "%s: serves up to 2^43 steps and 2^20 batches of a validation",
                       t->meta->path);
}

/* ---- exposure_max ---------------------------------------------------------------------------- */

/* Adds `each` to the share of a node's domain, or of the node if domains are not known, for each of
 * `len` columns that an operation exposes to it. */
static void add_shares(const sherd_training *t, const sherd__step_table *x, size_t len, double each,
                       double *shares)
{
    const uint32_t *domain = t->meta->domain;
    for (size_t c = 0; c < len; c++)
        shares[domain ? domain[x->exposures[c]] : x->exposures[c]] += each;
}

/* Compares the share of each node's domain with exposure_max. entries: of the operand. */
static int judge_shares(const sherd_training *t, const double *shares, double entries,
                        const char *what, sherd_diag *d)
{
    const double most = t->products.opt.exposure_max;
    const uint32_t *domain = t->meta->domain;
    for (uint32_t i = 0; i < t->o.nodes; i++) {
        double share = fmin(shares[domain ? domain[i] : i], 1); /* some may be shown twice */
        if (share > most + 0.5 / entries) /* a ledger rounds to whole entries */
            return sherd__fail(d, SHERD_EEXPOSURE,
                               "raise --exposure-max, or use more nodes so that each needs less",
                               "%s: gives node-%" PRIu32 "%s %.3g of %s; --exposure-max is %.3g",
                               t->meta->path, i + 1, domain ? "'s domain" : "", share, what, most);
    }
    return SHERD_OK;
}

/* Returns the number of examples in the last batch of an epoch. */
static size_t last_batch(const sherd_training *t)
{
    const sherd__train_order *o = sherd__trainer_order(t->trainer);
    size_t rest = o->examples % o->batch;
    return rest && o->order != SHERD__ORDER_DRAWN ? rest : o->batch;
}

/* Returns the number of columns of an operation in a batch of `examples`: only those that are
 * examples, or windows of examples, become fewer. */
static size_t columns_of(const sherd_training *t, const sherd__step_table *x, size_t examples)
{
    size_t all = (size_t)sherd_meta_columns(&x->op);
    return x->of_batch ? all / sherd__trainer_order(t->trainer)->batch * examples : all;
}

/* Checks one operation in a batch of so many examples. */
static int check_share(const sherd_training *t, const sherd__step_table *x, size_t examples,
                       double *shares, sherd_diag *d)
{
    size_t len = columns_of(t, x, examples);
    double across = (double)(x->op.n > x->op.m ? x->op.n : x->op.m); /* of the larger operand */
    memset(shares, 0, t->o.nodes * sizeof *shares);
    add_shares(t, x, len, 1 / (double)len, shares);
    return judge_shares(t, shares, (double)len * across, x->op.name, d);
}

/* Adds the shares of data that stay at the nodes: columns, or rows of all batches. */
static void add_data(const sherd_training *t, const sherd__step_table *x, double *data)
{
    const sherd__train_order *o = sherd__trainer_order(t->trainer);
    size_t rest = o->examples % o->batch, len = columns_of(t, x, o->batch);
    double each = 1 / (double)(x->of_batch ? o->examples : len);
    add_shares(t, x, len, x->of_batch ? each * (double)(o->examples / o->batch) : each, data);
    if (x->of_batch) add_shares(t, x, rest, each, data);
}

/* Checks each operation, also in the last batch of an epoch, and both uses of data that stay at the
 * nodes. */
static int check_shares(const sherd_training *t, double *shares, double *data, sherd_diag *d)
{
    const sherd__step_tables *s = &t->meta->tables;
    const sherd__train_order *o = sherd__trainer_order(t->trainer);
    bool keeps = false;
    int err = SHERD_OK;
    for (size_t i = 0; i < s->len && !err; i++) {
        const sherd__step_table *x = &s->at[i];
        err = check_share(t, x, o->batch, shares, d);
        if (!err) err = check_share(t, x, last_batch(t), shares, d);
        if (x->kept) add_data(t, x, data);
        keeps = keeps || x->kept;
    }
    double entries = (double)o->examples * (double)t->data->inputs;
    return err || !keeps ? err : judge_shares(t, data, entries, "the data", d);
}

static int check_exposures(const sherd_training *t, sherd_diag *d)
{
    if (!(t->products.opt.exposure_max > 0)) return SHERD_OK;
    double *shares = sherd__calloc(2 * (size_t)t->o.nodes, sizeof *shares);
    if (!shares) return sherd__fail_memory(d, "the exposures of a step");
    int err = check_shares(t, shares, shares + t->o.nodes, d);
    sherd__free(shares);
    return err;
}

int sherd__training_meta_domains(sherd_training *t, sherd_cluster *c, sherd_diag *d)
{
    sherd__nodes nodes;
    if (!t->meta) return SHERD_OK;
    sherd__cluster_nodes(c, &nodes);
    t->meta->domain = nodes.domain;
    int err = check_exposures(t, d);
    t->meta->domain = NULL;
    return err;
}

/* ---- digests --------------------------------------------------------------------------------- */

static int add_numbers(sherd__buf *b, const uint64_t *x, size_t len)
{
    uint8_t bytes[8];
    int err = SHERD_OK;
    for (size_t i = 0; i < len && !err; i++) {
        sherd__put_u64(bytes, x[i]);
        err = sherd__buf_append(b, bytes, sizeof bytes);
    }
    return err;
}

/* Digests what determines all tables: the commitment to the seed, settings and operations. */
static int digest_metadata(const sherd_meta *meta, uint8_t out[32], sherd_diag *d)
{
    const sherd_meta_settings *s = sherd_meta_get(meta);
    const uint64_t settings[] = { s->nodes, s->group, s->balanced, s->shuffle_rows,
                                  sherd_meta_count(meta) };
    sherd__buf b;
    sherd__digest g;
    sherd__buf_init(&b, (size_t)1 << 20, 0);
    int err = sherd__buf_append(&b, sherd_meta_commitment(meta), 32);
    if (!err) err = add_numbers(&b, settings, sizeof settings / sizeof *settings);
    for (size_t i = 0; i < sherd_meta_count(meta) && !err; i++) {
        const sherd_meta_operation *op = sherd_meta_at(meta, i);
        const uint64_t shape[] = { op->kind, op->n, op->k, op->m };
        err = sherd__buf_append(&b, op->name, strlen(op->name) + 1);
        if (!err) err = add_numbers(&b, shape, sizeof shape / sizeof *shape);
    }
    if (!err) err = sherd__digest_labelled(&g, "sherd-metadata-v1", b.data, b.len);
    sherd__buf_fini(&b);
    if (err) return sherd__fail_to(d, err, "digest the metadata");
    memcpy(out, g.sha256, 32);
    return SHERD_OK;
}

uint8_t *sherd__training_meta_digests(const sherd_training *t)
{
    return t->meta ? t->meta->digests : NULL;
}

/* ---- opening --------------------------------------------------------------------------------- */

int sherd__training_meta_open(sherd_training *t, sherd_diag *d)
{
    if (!t->o.meta) return SHERD_OK;
    sherd__training_meta *m = t->meta = sherd__calloc(1, sizeof *m);
    if (!m || !(m->path = sherd__strdup(t->o.meta))) return sherd__fail_memory(d, "metadata");
    int err = sherd_meta_load(&m->loaded, m->path, d);
    if (!err) err = check_file(t, d);
    if (!err) err = check_passes(t, d);
    if (!err) err = take_tables(t, d);
    if (!err) err = check_exposures(t, d);
    if (!err) err = digest_metadata(m->loaded, m->digests, d);
    if (!err) err = sherd__training_identity(t, m->digests + 32, d);
    t->products.tables = &m->tables;
    return err;
}

void sherd__training_meta_free(sherd__training_meta *m)
{
    if (!m) return;
    sherd_meta_free(m->loaded);
    sherd__step_tables_fini(&m->tables);
    sherd__free(m->path);
    sherd__free(m);
}

/* ---- use ------------------------------------------------------------------------------------- */

/* Marks the operations of the step as used by this training. *first: the file must be written. */
static int use(sherd_training *t, sherd_meta *meta, bool *first, sherd_diag *d)
{
    const sherd__step_tables *s = &t->meta->tables;
    const uint8_t *training = t->meta->digests + 32;
    *first = false;
    for (size_t i = 0; i < s->len; i++) {
        size_t at = (size_t)s->at[i].number;
        const sherd_meta_operation *op = sherd_meta_at(meta, at);
        sherd_meta_usage usage;
        if (op->used && memcmp(op->operands, training, 32) != 0 && !t->o.meta_reuse)
            return sherd__fail(d, SHERD_EEXPOSURE,
                               "build new metadata, repeat that training with its --seed, or allow "
                               "it with --reuse-metadata",
                               "%s: operation %s was used by another training, or for a product: "
                               "using the same permutations twice reveals more to nodes",
                               t->meta->path, op->name);
        int err = sherd_meta_use(meta, at, training, t->o.meta_reuse, &usage, d);
        if (err) return err;
        *first = *first || usage == SHERD_META_FIRST_USE;
        t->meta->reused = t->meta->reused || usage == SHERD_META_REUSED;
    }
    return SHERD_OK;
}

int sherd__training_meta_check(sherd_training *t, sherd_diag *d)
{
    bool first;
    if (!t->meta) return SHERD_OK;
    int err = use(t, t->meta->loaded, &first, d);
    sherd_meta_free(t->meta->loaded);
    t->meta->loaded = NULL;
    if (!err && t->meta->reused)
        sherd__training_log(t, SHERD_LOG_WARN,
                            "%s served another training or product before: nodes that took part in "
                            "both can compare their operands position by position",
                            t->meta->path);
    return err;
}

static int record(sherd_training *t, sherd_meta *meta, sherd_diag *d)
{
    uint8_t now[32];
    bool first;
    int err = digest_metadata(meta, now, d);
    if (!err && memcmp(now, t->meta->digests, sizeof now) != 0)
        err = sherd__fail(d, SHERD_EFORMAT, "start the training again",
                          "%s: was replaced since the training was prepared", t->meta->path);
    if (!err) err = use(t, meta, &first, d);
    return err || !first ? err : sherd__meta_record(meta, t->meta->path, &t->outer, d);
}

int sherd__training_meta_record(sherd_training *t, sherd_diag *d)
{
    sherd_meta *meta = NULL;
    int fd = -1;
    if (!t->meta) return SHERD_OK;
    int err = sherd__meta_lock(t->meta->path, &t->outer, &fd, d);
    if (!err) err = sherd_meta_load(&meta, t->meta->path, d);
    if (!err) err = record(t, meta, d);
    sherd_meta_free(meta);
    if (fd >= 0) close(fd);
    return err;
}

/* ---- reports --------------------------------------------------------------------------------- */

void sherd__training_meta_report(const sherd_training *t, sherd_train_report *r)
{
    if (!t->meta) return;
    r->meta = t->meta->path;
    r->meta_reused = t->meta->reused;
}

int sherd_training_exposure_at(sherd_training *t, uint32_t operation, uint32_t node,
                               sherd_train_exposure *out, sherd_diag *d)
{
    int err = sherd__result_check(out, "sherd_train_exposure", d);
    if (err) return err;
    if (!t->meta || operation >= t->meta->tables.len || node >= t->o.nodes)
        return sherd__fail(d, SHERD_EINVAL, NULL, "operation %u at node %u does not exist",
                           operation, node);
    const sherd__step_table *x = &t->meta->tables.at[operation];
    sherd_train_exposure e = { .kind = x->op.kind,
                               .node = node,
                               .calls = x->calls,
                               .exposed_a = x->shown[node],
                               .exposed_b = x->shown[t->o.nodes + node] };
    memcpy(e.operation, x->op.name, sizeof e.operation);
    sherd__result_write(out, &e, sizeof e);
    return SHERD_OK;
}

/* ---- sherd_meta_add_recipe ------------------------------------------------------------------- */

static int add_all(sherd_meta *meta, const sherd__recipe *r, size_t batch, bool elementwise,
                   sherd_diag *d)
{
    sherd__network *n = NULL;
    sherd__step_table *list = sherd__calloc(SHERD__STEP_OPERATIONS_MAX, sizeof *list);
    if (!list) return sherd__fail_memory(d, "the operations of a step");
    int err = sherd__recipe_shapes(r, &n, d);
    size_t len = err ? 0 : sherd__step_operations(r, n, batch, elementwise, list);
    for (size_t i = 0; i < len && !err; i++) err = sherd_meta_add(meta, &list[i].op, d);
    sherd__network_free(n);
    sherd__free(list);
    return err;
}

int sherd_meta_add_recipe(sherd_meta *meta, const sherd_recipe *r, const sherd_step_options *opt,
                          sherd_diag *d)
{
    sherd_step_options o;
    int err = sherd__options_read(&o, sizeof o, opt, "sherd_step_options", d);
    if (err) return err;
    size_t batch = r->recipe.batch;
    if (sherd_meta_get(meta)->shuffle_rows)
        return sherd__fail(d, SHERD_EINVAL, "leave --shuffle-rows out",
                           "rows cannot be shuffled in a training");
    if (!batch && !o.examples)
        return sherd__fail(d, SHERD_EINVAL, "give the number of examples, or a batch",
                           "%s: a batch is all examples, whose number is not known", r->name);
    if (batch && o.examples && batch > o.examples)
        return sherd__fail(d, SHERD_EINVAL, "a smaller batch, or more data",
                           "%s: a batch of %zu is larger than the data: there are %" PRIu64
                           " examples",
                           r->name, batch, o.examples);
    return add_all(meta, &r->recipe, batch ? batch : (size_t)o.examples, o.elementwise, d);
}
