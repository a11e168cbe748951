/*
 * Several processes that run the same training as peers (learn/collective.h). The collective is set
 * once, before the command begins, only by build/sherd-mpi. State that must be equal in all
 * processes and is not determined by the arguments (a new seed, the checkpoint that the first
 * process resumes) comes from process 0. State that the arguments determine (recipe, data) is
 * compared.
 */
#include <string.h>

#include "cli/limit.h"
#include "cli/options.h"
#include "cli/train.h"
#include "core/alloc.h"
#include "core/wipe.h"
#include "store/digest.h"

static const sherd__collective *others; /* NULL: this is the only process */

void sherd__train_among(const sherd__collective *c)
{
    others = c;
}

const sherd__collective *sherd__train_others(void)
{
    return others;
}

bool sherd__train_is_first(void)
{
    return !others || others->rank == 0;
}

void sherd__train_leave_to_first(sherd__cli *cli)
{
    static const char *const names[] = {
        "output",          "log",    "trace",   "plot", "checkpoint", "checkpoint-every",
        "checkpoint-keep", "resume", "initial", "json"
    };
    if (sherd__train_is_first()) return;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) sherd__opt_forget(cli, names[i]);
    cli->json = false;
    cli->quiet = true;
}

int sherd__train_share_seed(sherd__train *t, sherd_diag *d)
{
    return others ? sherd__collective_share(others, t->seed, sizeof t->seed, d) : 0;
}

int sherd__train_judge_together(const sherd__train *t, int err, sherd_diag *d)
{
    if (!others) return err;
    err = sherd__collective_tell(others, err, d);
    t->cli->told = err && !sherd__train_is_first();
    return err;
}

/* Hashes the recipe, the examples with their targets, and the way gradients are computed. */
static int identify(const sherd__train *t, sherd__digest *out, sherd_diag *d)
{
    sherd__buf text;
    sherd__digest data;
    char how[160];
    sherd__train_by_name(t, how, sizeof how);
    sherd__buf_init(&text, SHERD__RECIPE_BYTES_MAX + sizeof how + sizeof data.sha256, 0);
    int err = sherd__recipe_print(&t->recipe, SHERD__RECIPE_ALL, &text);
    if (!err) err = sherd__buf_append(&text, how, strlen(how) + 1);
    if (!err) err = sherd__data_digest(&t->data, &data, d);
    if (!err) err = sherd__buf_append(&text, data.sha256, sizeof data.sha256);
    if (!err) err = sherd__digest_labelled(out, "sherd-training-v1", text.data, text.len);
    sherd__buf_fini(&text);
    return err ? sherd__fail(d, err, NULL, "cannot compare trainings: %s", sherd_strerror(err)) : 0;
}

static int same_training(const sherd__train *t, sherd_diag *d)
{
    sherd__digest mine, first;
    uint32_t who = 0;
    int err = identify(t, &mine, d);
    if (err) return err;
    first = mine;
    err = sherd__collective_share(others, &first, sizeof first, d);
    if (err) return err;
    int differs = memcmp(&first, &mine, sizeof mine) != 0 ? SHERD_EFORMAT : 0;
    err = sherd__collective_agree(others, differs, &who, d);
    return err != SHERD_EFORMAT ? err
                                : sherd__fail(d, err, "give all of them the same files and options",
                                              "process %u has another recipe or other data, shards "
                                              "or width of numbers than process 0",
                                              who);
}

/* Shares the whole state that a step depends on. This includes gradients, which determine
 * scales. */
static int share_state(sherd__train *t, sherd_diag *d)
{
    sherd__network *n = sherd__trainer_network(t->trainer);
    sherd__optimiser *o = sherd__trainer_optimiser(t->trainer);
    sherd__train_state *s = sherd__trainer_state(t->trainer);
    uint64_t steps = o->steps;
    size_t bytes = o->state_len * sherd_dtype_size(o->spec.dtype);
    int err = sherd__collective_share(others, s, sizeof *s, d);
    if (!err) err = sherd__collective_share(others, &steps, sizeof steps, d);
    if (!err) err = sherd__collective_share(others, o->state, bytes, d);
    for (size_t i = 0; i < sherd__network_len(n) && !err; i++) {
        const sherd__layer *l = sherd__network_layer(n, i);
        size_t biases = l->cols * sherd_dtype_size(l->dtype), weights = l->rows * biases;
        if (l->cols == 0) continue;
        err = sherd__collective_share(others, l->weights, weights, d);
        if (!err) err = sherd__collective_share(others, l->biases, biases, d);
        if (!err) err = sherd__collective_share(others, l->weights_gradient, weights, d);
        if (!err) err = sherd__collective_share(others, l->biases_gradient, biases, d);
    }
    if (!err) sherd__optimiser_resume(o, steps);
    return err;
}

int sherd__train_share_start(sherd__train *t, sherd_diag *d)
{
    if (!others) return 0;
    sherd__limit_writes(true); /* this process ends with all, and the first may write */
    int err = same_training(t, d);
    return err ? err : share_state(t, d);
}

int sherd__train_stop_together(int why, sherd_diag *d)
{
    return others ? sherd__collective_agree(others, why, NULL, d) : why;
}
