/*
 * Checkpoints. A checkpoint contains the complete state of the training loop
 * (learn/train.h), so that a resumed run continues exactly. It also identifies the run, so that
 * another run does not continue it: recipe, seed, digest of the data, and arithmetic. A checkpoint
 * is also a model: `sherd predict` accepts one.
 *
 * Seeds are stored, mask keys are not: a resumed run hides data with new masks.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "core/wipe.h"
#include "lib/train/training.h"
#include "store/chain.h"
#include "store/npz.h"

#define ARITHMETIC 160
#define METADATA 64u /* bytes of sherd__training_meta_digests */

struct sherd__training_keep {
    sherd__chain *chain;
    char *folder, *path; /* path: of the newest file; NULL: none */
    uint8_t data[SHERD__DIGEST_BYTES];
    char arithmetic[ARITHMETIC];
};

static int no_memory(sherd_diag *d)
{
    return sherd__fail_memory(d, "checkpoints");
}

/* ---- identity of a run ----------------------------------------------------------------------- */

/* Two texts of a recipe: its network; and everything except what may change: the length of
 * training, the interval of reports and the patience. */
typedef struct texts {
    sherd__buf network, training;
} texts;

static void texts_fini(texts *x)
{
    sherd__buf_fini(&x->network);
    sherd__buf_fini(&x->training);
}

static int texts_of(texts *x, const sherd__recipe *recipe, sherd_diag *d)
{
    sherd__recipe r = *recipe;
    r.epochs = 1;
    r.steps = 0;
    r.report_every = 1;
    r.report_steps = false;
    r.patience = 0;
    sherd__buf_init(&x->network, SHERD__RECIPE_BYTES_MAX, 0);
    sherd__buf_init(&x->training, SHERD__RECIPE_BYTES_MAX, 0);
    int err = sherd__recipe_print(&r, SHERD__RECIPE_NETWORK, &x->network);
    if (!err) err = sherd__recipe_print(&r, SHERD__RECIPE_ALL, &x->training);
    return err ? no_memory(d) : 0;
}

static bool same_text(const sherd__buf *a, const sherd__buf *b)
{
    return a->len == b->len && memcmp(a->data, b->data, a->len) == 0;
}

/* Formats the settings that, with recipe, data and seed, determine every bit of the result. */
static void name_arithmetic(const sherd_training *t, char out[ARITHMETIC])
{
    const sherd__network_products *p = &t->products;
    if (t->o.aggregate == SHERD_AGGREGATE_SECURE) sherd__training_secure_name(t, out, ARITHMETIC);
    else if (t->o.by == SHERD_BY_GRADIENTS) sherd__training_gradients_name(t, out, ARITHMETIC);
    else if (p->bits == 0) snprintf(out, ARITHMETIC, "float64");
    else
        snprintf(out, ARITHMETIC, "fixed point of %u bits%s", p->bits,
                 p->stochastic ? ", rounded by chance" : "");
}

int sherd__training_identity(const sherd_training *t, uint8_t out[32], sherd_diag *d)
{
    sherd__network *n = sherd__trainer_network(t->trainer);
    sherd_view params = sherd_view_c(sherd__network_params(n), sherd__network_dtype(n), 1,
                                     sherd__network_count(n));
    uint8_t data[SHERD__DIGEST_BYTES];
    char arithmetic[ARITHMETIC];
    sherd__digest g;
    texts x = { 0 };
    name_arithmetic(t, arithmetic);
    int err = texts_of(&x, &t->recipe->recipe, d);
    if (!err) err = sherd_data_digest(t->data, data, d);
    if (!err) err = sherd__digest_view(&g, params, d);
    if (!err && (sherd__buf_append(&x.training, arithmetic, strlen(arithmetic) + 1) ||
                 sherd__buf_append(&x.training, data, sizeof data) ||
                 sherd__buf_append(&x.training, t->seed, sizeof t->seed) ||
                 sherd__buf_append(&x.training, g.sha256, sizeof g.sha256)))
        err = no_memory(d);
    if (!err)
        err = sherd__digest_labelled(&g, "sherd-training-v1", x.training.data, x.training.len);
    if (!err) memcpy(out, g.sha256, sizeof g.sha256);
    texts_fini(&x);
    return err;
}

/* ---- writing --------------------------------------------------------------------------------- */

enum { FIXED = 27 }; /* members in addition to those of layers */

static sherd__chain_member bytes_of(const char *name, const void *bytes, size_t len)
{
    return (sherd__chain_member){ name, SHERD_U8, 1, 1, len, bytes };
}

static sherd__chain_member numbers(const char *name, sherd_dtype dtype, const void *x, size_t len)
{
    return (sherd__chain_member){ name, dtype, 1, 1, len, x };
}

static sherd__chain_member reals(const char *name, const double *x, size_t len)
{
    return numbers(name, SHERD_F64, x, len);
}

static sherd__chain_member count(const char *name, const int64_t *x)
{
    return (sherd__chain_member){ name, SHERD_I64, 1, 1, 1, x };
}

/* Names of layer i's members: weights, biases and their gradients. */
typedef char layer_names[4][24];

static size_t layer_members(sherd__network *n, size_t i, layer_names names,
                            sherd__chain_member out[4])
{
    const sherd__layer *l = sherd__network_layer(n, i);
    if (!sherd__recipe_member(n, i, false, names[0])) return 0;
    sherd__recipe_member(n, i, true, names[1]);
    snprintf(names[2], sizeof names[2], "gradient_%s", names[0]);
    snprintf(names[3], sizeof names[3], "gradient_%s", names[1]);
    out[0] = (sherd__chain_member){ names[0], l->dtype, 2, l->rows, l->cols, l->weights };
    out[1] = numbers(names[1], l->dtype, l->biases, l->cols);
    out[2] = (sherd__chain_member){ names[2], l->dtype, 2, l->rows, l->cols, l->weights_gradient };
    out[3] = numbers(names[3], l->dtype, l->biases_gradient, l->cols);
    return 4;
}

/* The state of early stopping. */
static size_t best_members(const sherd_training *t, sherd__chain_member out[5])
{
    const sherd__training_best *b = &t->best;
    const sherd__network *n = sherd__trainer_network(t->trainer);
    if (b->patience == 0) return 0;
    out[0] = count("best_step", &b->step);
    out[1] = count("best_waited", &b->waited);
    out[2] = reals("best_cost", &b->cost, 1);
    out[3] = reals("best_accuracy", &b->accuracy, 1);
    out[4] = numbers("best_parameters", sherd__network_dtype(n), b->params,
                     sherd__network_count(n));
    return 5;
}

/* Adds a file with `len` members, which have room for more. */
static int add_file(sherd_training *t, const sherd__train_state *s, sherd__chain_member *m,
                    size_t len, sherd_diag *d)
{
    double *history;
    size_t rows;
    int err = sherd__training_history(t, &history, &rows, d);
    if (!err && rows > 0)
        m[len++] = (sherd__chain_member){ "history", SHERD_F64,           2,
                                          rows,      SHERD__HISTORY_COLS, history };
    if (!err) err = sherd__chain_add(t->keep->chain, s->step, m, len, d);
    if (!err && t->o.checkpoint_keep > 0)
        err = sherd__chain_prune(t->keep->chain, (size_t)t->o.checkpoint_keep, d);
    sherd__free(history);
    return err;
}

static int write_newest(sherd_training *t, const sherd__train_state *s, sherd_diag *d)
{
    const sherd__training_keep *k = t->keep;
    sherd__network *n = sherd__trainer_network(t->trainer);
    const sherd__optimiser *o = sherd__trainer_optimiser(t->trainer);
    uint64_t each = sherd__trainer_order(t->trainer)->per_epoch;
    const int64_t step = (int64_t)s->step, epoch = (int64_t)(s->step / each),
                  hits = (int64_t)s->hits, seen = (int64_t)s->seen,
                  examples = (int64_t)s->step_examples, begun = (int64_t)o->steps,
                  window = (int64_t)sherd__trainer_window(t->trainer),
                  number = t->seed_known ? (int64_t)t->seed_number : -1;
    size_t layers = sherd__network_len(n), len = 0;
    const char *recipe = t->recipe->text;
    sherd__schema_members schema;
    int err = sherd__schema_list(&t->data->schema, &schema, d);
    if (err) return err;
    sherd__chain_member *m = sherd__calloc(FIXED + schema.len + 4 * layers, sizeof *m);
    layer_names *names = sherd__calloc(layers, sizeof *names);
    if (!m || !names) {
        sherd__free(names);
        sherd__free(m);
        sherd__schema_members_fini(&schema);
        return no_memory(d);
    }
    m[len++] = bytes_of("recipe", recipe, strlen(recipe));
    m[len++] = bytes_of("arithmetic", k->arithmetic, strlen(k->arithmetic));
    m[len++] = bytes_of("seed", t->seed, sizeof t->seed);
    m[len++] = bytes_of("secret", t->secret, sizeof t->secret);
    m[len++] = count("seed_number", &number);
    m[len++] = bytes_of("data", k->data, sizeof k->data);
    m[len++] = count("step", &step);
    m[len++] = count("epoch", &epoch);
    m[len++] = reals("cost", &s->last_cost, 1);
    m[len++] = reals("accuracy", &s->last_accuracy, 1);
    m[len++] = reals("validation_accuracy", &s->last_validation, 1);
    m[len++] = reals("epoch_cost", &s->cost, 1);
    m[len++] = count("epoch_hits", &hits);
    m[len++] = count("epoch_seen", &seen);
    m[len++] = count("window", &window);
    m[len++] = reals("step_cost", &s->step_cost, 1);
    m[len++] = count("step_examples", &examples);
    m[len++] = numbers("optimiser", o->spec.dtype, o->state, o->state_len);
    m[len++] = count("optimiser_steps", &begun); /* above `step` with asynchronous gradients */
    const uint8_t *metadata = sherd__training_meta_digests(t);
    if (metadata) m[len++] = bytes_of("metadata", metadata, METADATA);
    for (size_t i = 0; i < schema.len; i++)
        m[len++] = numbers(schema.arrays[i].name, schema.arrays[i].dtype, schema.values[i],
                           schema.arrays[i].cols);
    for (size_t i = 0; i < layers; i++) len += layer_members(n, i, names[i], m + len);
    len += best_members(t, m + len);
    err = add_file(t, s, m, len, d);
    sherd__free(names);
    sherd__free(m);
    sherd__schema_members_fini(&schema);
    return err;
}

static int add(sherd_training *t, const sherd__train_state *s, sherd_diag *d)
{
    if (t->o.on_checkpoint) t->o.on_checkpoint(t->o.ctx, true);
    int err = write_newest(t, s, d);
    if (t->o.on_checkpoint) t->o.on_checkpoint(t->o.ctx, false);
    return err;
}

int sherd__training_keep_add(void *training, const sherd__train_state *s, sherd_diag *d)
{
    sherd_training *t = training;
    sherd__chain_link newest;
    if (sherd__chain_newest(t->keep->chain, &newest) && newest.number == s->step) return SHERD_OK;
    return add(t, s, d);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Checks that a member equals this run's value; `differs` describes what a difference means. */
static int same(sherd__npz *z, const char *name, const void *mine, size_t len, const char *differs,
                sherd_diag *d)
{
    int64_t i = sherd__npz_find(z, name);
    const sherd__npz_member *m = i < 0 ? NULL : sherd__npz_member_at(z, (size_t)i);
    bool sized = m && m->head.data_len == len;
    uint8_t *theirs = sized ? sherd__alloc(len) : NULL;
    if (sized && !theirs) return no_memory(d);
    int err = sized ? sherd__npz_read(z, (size_t)i, theirs, len, d) : 0;
    bool equal = sized && !err && memcmp(theirs, mine, len) == 0;
    sherd__free(theirs);
    if (err || equal) return err;
    return sherd__fail(d, SHERD_EFORMAT,
                       "resume it with its original settings, or train in another folder "
                       "(--initial takes its weights)",
                       "%s: %s", sherd__npz_where(z), differs);
}

static int same_recipe(const sherd_training *t, sherd_diag *d)
{
    sherd__recipe r;
    texts mine = { 0 }, theirs = { 0 };
    int err = sherd__model_recipe(&r, t->keep->path, d);
    if (!err) err = texts_of(&theirs, &r, d);
    if (!err) err = texts_of(&mine, &t->recipe->recipe, d);
    bool network = err || same_text(&mine.network, &theirs.network);
    bool training = err || same_text(&mine.training, &theirs.training);
    texts_fini(&mine);
    texts_fini(&theirs);
    if (err || (network && training)) return err;
    return sherd__fail(d, SHERD_EFORMAT,
                       "resume it with the settings that it began with, or train in another "
                       "folder",
                       "%s: is a checkpoint of another %s than %s", t->keep->path,
                       network ? "way to train" : "network", t->recipe->name);
}

/* Loads the gradient of the last step, which determines the scales of the next step. */
static int take_gradient(sherd_training *t, sherd__npz *z, sherd_diag *d)
{
    sherd__network *n = sherd__trainer_network(t->trainer);
    int err = 0;
    for (size_t i = 0; i < sherd__network_len(n) && !err; i++) {
        const sherd__layer *l = sherd__network_layer(n, i);
        char weights[16], biases[16], member[32];
        if (!sherd__recipe_member(n, i, false, weights)) continue;
        sherd__recipe_member(n, i, true, biases);
        snprintf(member, sizeof member, "gradient_%s", weights);
        size_t row = l->cols * sherd_dtype_size(l->dtype);
        err = sherd__npz_take(z, member, l->dtype, l->weights_gradient, l->rows * row, d);
        snprintf(member, sizeof member, "gradient_%s", biases);
        if (!err) err = sherd__npz_take(z, member, l->dtype, l->biases_gradient, row, d);
    }
    return err;
}

/* The sums of a window that another --report-every cut are not those of the next report, which is
 * then of the steps of this run. */
static int take_window(const sherd_training *t, sherd__npz *z, sherd__train_state *s, sherd_diag *d)
{
    int64_t window = (int64_t)sherd__trainer_order(t->trainer)->per_epoch; /* of version 0.1.0 */
    int err = SHERD_OK;
    if (sherd__npz_find(z, "window") >= 0)
        err = sherd__npz_take(z, "window", SHERD_I64, &window, sizeof window, d);
    if (!err && (uint64_t)window != sherd__trainer_window(t->trainer)) {
        s->cost = 0;
        s->hits = s->seen = 0;
    }
    return err;
}

static int take_state(sherd_training *t, sherd__npz *z, sherd_diag *d)
{
    sherd__optimiser *o = sherd__trainer_optimiser(t->trainer);
    sherd__train_state s = { 0 };
    int64_t step = -1, hits = -1, seen = -1, examples = -1, begun = -1;
    size_t bytes = o->state_len * sherd_dtype_size(o->spec.dtype);
    void *state = sherd__alloc(bytes);
    if (!state) return no_memory(d);
    int err = sherd__npz_take(z, "step", SHERD_I64, &step, sizeof step, d);
    if (!err) err = sherd__npz_take(z, "epoch_hits", SHERD_I64, &hits, sizeof hits, d);
    if (!err) err = sherd__npz_take(z, "epoch_seen", SHERD_I64, &seen, sizeof seen, d);
    if (!err) err = sherd__npz_take(z, "step_examples", SHERD_I64, &examples, sizeof examples, d);
    if (!err) err = sherd__npz_take(z, "step_cost", SHERD_F64, &s.step_cost, sizeof s.step_cost, d);
    if (!err) err = sherd__npz_take(z, "epoch_cost", SHERD_F64, &s.cost, sizeof s.cost, d);
    if (!err) err = sherd__npz_take(z, "cost", SHERD_F64, &s.last_cost, sizeof s.last_cost, d);
    if (!err)
        err = sherd__npz_take(z, "accuracy", SHERD_F64, &s.last_accuracy, sizeof s.last_accuracy,
                              d);
    if (!err)
        err = sherd__npz_take(z, "validation_accuracy", SHERD_F64, &s.last_validation,
                              sizeof s.last_validation, d);
    if (!err) err = sherd__npz_take(z, "optimiser", o->spec.dtype, state, bytes, d);
    if (!err) err = sherd__npz_take(z, "optimiser_steps", SHERD_I64, &begun, sizeof begun, d);
    if (!err && (step < 0 || hits < 0 || seen < 0 || examples < 0 || begun < 0 ||
                 (uint64_t)step > sherd__trainer_steps(t->trainer)))
        err = sherd__fail(d, SHERD_EFORMAT, "give more --epochs",
                          "%s: has made %" PRId64 " steps of %" PRIu64, t->keep->path, step,
                          sherd__trainer_steps(t->trainer));
    if (!err) err = sherd__model_params(sherd__trainer_network(t->trainer), t->keep->path, d);
    if (!err) err = take_gradient(t, z, d);
    if (!err) {
        s.step = (uint64_t)step;
        s.hits = (uint64_t)hits;
        s.seen = (uint64_t)seen;
        s.step_examples = (uint64_t)examples;
        err = take_window(t, z, &s, d);
    }
    if (!err) {
        *sherd__trainer_state(t->trainer) = s;
        if (bytes > 0) memcpy(o->state, state, bytes);
        sherd__optimiser_resume(o, (uint64_t)begun);
    }
    sherd__free(state);
    return err;
}

/* Loads the state of early stopping, if the run that wrote the checkpoint had it. */
static int take_best(sherd_training *t, sherd__npz *z, sherd_diag *d)
{
    sherd__training_best *b = &t->best;
    sherd_dtype dtype = sherd__network_dtype(sherd__trainer_network(t->trainer));
    int64_t step = -1, waited = -1;
    if (b->patience == 0 || sherd__npz_find(z, "best_step") < 0) return SHERD_OK;
    int err = sherd__npz_take(z, "best_step", SHERD_I64, &step, sizeof step, d);
    if (!err) err = sherd__npz_take(z, "best_waited", SHERD_I64, &waited, sizeof waited, d);
    if (!err) err = sherd__npz_take(z, "best_cost", SHERD_F64, &b->cost, sizeof b->cost, d);
    if (!err)
        err = sherd__npz_take(z, "best_accuracy", SHERD_F64, &b->accuracy, sizeof b->accuracy, d);
    if (!err)
        err = sherd__npz_take(z, "best_parameters", dtype, b->params, sherd__training_best_bytes(t),
                              d);
    if (!err && (step < 0 || waited < 0 || (uint64_t)step > sherd__trainer_state(t->trainer)->step))
        err = sherd__fail(d, SHERD_EFORMAT, NULL, "%s: best_step is %" PRId64, t->keep->path, step);
    b->step = step;
    b->waited = waited;
    return err;
}

/* ---- opening, loading, writing --------------------------------------------------------------- */

static int open_newest(sherd__npz **z, const sherd__training_keep *k, sherd_diag *d)
{
    return sherd__npz_open(z, k->path, UINT64_C(1) << 40, 1, d);
}

/* Takes the seeds of a run. Earlier versions had one for all purposes. */
static int take_seed(sherd_training *t, sherd__npz *z, sherd_diag *d)
{
    uint8_t seed[32], secret[32];
    int64_t number = -1;
    int err = sherd__npz_take(z, "seed", SHERD_U8, seed, sizeof seed, d);
    bool both = !err && sherd__npz_find(z, "secret") >= 0;
    if (!err) memcpy(secret, seed, sizeof secret);
    if (both) err = sherd__npz_take(z, "secret", SHERD_U8, secret, sizeof secret, d);
    if (both && !err) err = sherd__npz_take(z, "seed_number", SHERD_I64, &number, sizeof number, d);
    if (!err) {
        memcpy(t->seed, seed, sizeof seed);
        memcpy(t->secret, secret, sizeof secret);
        t->seed_known = number >= 0;
        t->seed_number = (uint64_t)number;
    }
    sherd__wipe(seed, sizeof seed);
    sherd__wipe(secret, sizeof secret);
    return err;
}

int sherd__training_keep_open(sherd_training *t, sherd_diag *d)
{
    const char *folder = t->o.checkpoints;
    sherd__chain_link newest;
    sherd__npz *z = NULL;
    if (!folder) return SHERD_OK;
    sherd__training_keep *k = t->keep = sherd__calloc(1, sizeof *k);
    if (!k || !(k->folder = sherd__strdup(folder))) return no_memory(d);
    int err = sherd__chain_open(&k->chain, folder, t->o.resume, d);
    if (err || !sherd__chain_newest(k->chain, &newest)) return err;
    size_t size = strlen(folder) + 1 + sizeof newest.name;
    k->path = sherd__alloc(size);
    if (!k->path) return no_memory(d);
    snprintf(k->path, size, "%s/%s", folder, newest.name);
    err = open_newest(&z, k, d);
    if (!err && (t->o.seed || t->o.seed_number))
        err = same(z, "seed", t->seed, sizeof t->seed, "began with another --seed", d);
    if (!err) err = take_seed(t, z, d);
    sherd__npz_close(z);
    return err;
}

/* Checks that the run began with these metadata, or with none, and takes the digest of the training
 * that they are bound to. */
static int same_metadata(const sherd_training *t, sherd__npz *z, sherd_diag *d)
{
    uint8_t theirs[METADATA], *mine = sherd__training_meta_digests(t);
    bool there = sherd__npz_find(z, "metadata") >= 0;
    if (!there && !mine) return SHERD_OK;
    if (!there || !mine)
        return sherd__fail(d, SHERD_EFORMAT,
                           there ? "add --meta with the file that it began with"
                                 : "leave --meta out, or train in another folder",
                           "%s: began %s metadata", sherd__npz_where(z),
                           there ? "with" : "without");
    int err = sherd__npz_take(z, "metadata", SHERD_U8, theirs, sizeof theirs, d);
    if (err) return err;
    if (memcmp(mine, theirs, 32) != 0)
        return sherd__fail(d, SHERD_EFORMAT, "give the metadata file that it began with",
                           "%s: began with other metadata", sherd__npz_where(z));
    memcpy(mine, theirs, sizeof theirs);
    return SHERD_OK;
}

int sherd__training_keep_load(sherd_training *t, sherd_diag *d)
{
    sherd__training_keep *k = t->keep;
    sherd__npz *z = NULL;
    if (!k) return 0;
    name_arithmetic(t, k->arithmetic);
    int err = sherd_data_digest(t->data, k->data, d);
    if (err || !k->path) return err;
    err = same_recipe(t, d);
    if (!err) err = open_newest(&z, k, d);
    if (!err) err = same(z, "data", k->data, sizeof k->data, "was trained on other data", d);
    if (!err)
        err = same(z, "arithmetic", k->arithmetic, strlen(k->arithmetic),
                   "was computed in another arithmetic (--mode, --bits, --rounding)", d);
    if (!err) err = same_metadata(t, z, d);
    if (!err) err = take_state(t, z, d);
    if (!err) err = take_best(t, z, d);
    if (!err) err = sherd__training_history_take(t, z, d);
    if (!err) t->first_step = sherd__trainer_state(t->trainer)->step;
    sherd__npz_close(z);
    return err;
}

int sherd__training_keep_begin(sherd_training *t, sherd_diag *d)
{
    if (!t->keep || t->keep->path) return 0;
    return add(t, sherd__trainer_state(t->trainer), d);
}

int sherd__training_keep_sums(sherd_training *t, sherd__sumlist **out, sherd_diag *d)
{
    *out = NULL;
    return t->keep ? sherd__sumlist_open(out, t->keep->folder, !t->keep->path, d) : SHERD_OK;
}

void sherd__training_keep_free(sherd__training_keep *k)
{
    if (!k) return;
    sherd__chain_close(k->chain);
    sherd__free(k->folder);
    sherd__free(k->path);
    sherd__free(k);
}
