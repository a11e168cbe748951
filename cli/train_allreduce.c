/*
 * --aggregate ring|halving-doubling: nodes sum gradients among themselves and compute the updates.
 * This process sends plans and receives costs. Options that this cannot provide are refused by
 * name.
 */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "cli/applies.h"
#include "cli/train.h"
#include "core/alloc.h"
#include "scheduler/allreduce/allreduce.h"

struct sherd__train_allreduce {
    sherd__reduce kind;
    sherd__allreduce_lead lead; /* of the stepper; ops NULL: not open */
    sherd__allreduce_stats stats;
};

static bool wanted(const sherd__cli *cli)
{
    int how = sherd__opt_choice(cli, "aggregate");
    return how == SHERD__AGGREGATE_RING || how == SHERD__AGGREGATE_HALVING;
}

int sherd__train_allreduce_judge(sherd__cli *cli, sherd_diag *d)
{
    static const struct {
        const char *name, *why;
    } against[] = {
        { "async", "a sum among nodes waits for all of them" },
        { "float-gradients", "sums of floats hang on their order, and nodes would not agree" },
        { "in-process", "threads of one process have nothing to send each other" },
    };
    if (!wanted(cli)) return 0;
    for (size_t i = 0; i < sizeof against / sizeof *against; i++)
        if (sherd__opt_idle(cli, against[i].name))
            return sherd__fail(d, SHERD_EINVAL, "leave one of them out",
                               "--%s and --aggregate %s do not go together: %s", against[i].name,
                               sherd__opt_text(cli, "aggregate"), against[i].why);
    return 0;
}

int sherd__train_allreduce_read(sherd__train *t, sherd_diag *d)
{
    if (!wanted(t->cli)) return 0;
    sherd__train_allreduce *c = t->circle = sherd__calloc(1, sizeof *c);
    if (!c) return sherd__fail(d, SHERD_ENOMEM, NULL, "no memory to train");
    bool ring = sherd__opt_choice(t->cli, "aggregate") == SHERD__AGGREGATE_RING;
    c->kind = ring ? SHERD__REDUCE_RING : SHERD__REDUCE_HALVING;
    return 0;
}

int sherd__train_allreduce_open(sherd__train *t, const sherd__gradients_options *g, bool allow_drop,
                                sherd_diag *d)
{
    sherd__train_allreduce *c = t->circle;
    assert(t->over.cluster && "who is judged to train so has nodes");
    sherd__allreduce_options o = { .recipe = &t->recipe,
                                   .data = &t->data.train,
                                   .network = g->network,
                                   .optimiser = g->optimiser,
                                   .kind = c->kind,
                                   .shards = g->shards,
                                   .batch = sherd__trainer_order(t->trainer)->batch,
                                   .bits = g->bits,
                                   .allow_drop = allow_drop };
    int err = sherd__allreduce_open(&c->lead, t->over.cluster, &o, d);
    if (err) return err;
    err = sherd__stepper_allreduce(&t->stepper, g, c->lead, t->keep != NULL, d);
    if (err) {
        c->lead.ops->free(c->lead.ctx);
        c->lead = (sherd__allreduce_lead){ 0 };
    }
    return err;
}

static const sherd__allreduce_stats *count(const sherd__train *t)
{
    sherd__train_allreduce *c = t->circle;
    if (c->lead.ops) sherd__allreduce_count(&c->lead, &c->stats);
    return &c->stats;
}

void sherd__train_allreduce_print(const sherd__train *t)
{
    char out[24], examples[24];
    const sherd__allreduce_stats *s = count(t);
    printf(", %s among %" PRIu32 " node%s: %s on links between them; examples sent %s",
           sherd__reduce_name(t->circle->kind), s->members, s->members == 1 ? "" : "s",
           sherd__cli_bytes(s->link_out + s->link_in, out),
           sherd__cli_bytes(s->examples_out, examples));
    if (s->repeated)
        printf("; %" PRIu64 " round%s made anew", s->repeated,
               s->repeated == 1 ? " was" : "s were");
}

json_t *sherd__train_allreduce_links(const sherd__train *t)
{
    const sherd__train_allreduce *c = t->circle;
    json_t *links = json_array();
    for (uint32_t i = 0; c->lead.ops && i < sherd_cluster_size(t->over.cluster); i++) {
        sherd__allreduce_link_bytes b = sherd__allreduce_links_of(&c->lead, i);
        sherd_node_info info = { .size = sizeof info };
        sherd_cluster_node(t->over.cluster, i, &info);
        json_array_append_new(links,
                              json_pack("{s:s, s:I, s:I, s:I}", "node", info.name, "bytes_out",
                                        (json_int_t)b.out, "bytes_in", (json_int_t)b.in,
                                        "blocks_in", (json_int_t)b.bodies));
    }
    return links;
}

json_t *sherd__train_allreduce_json(const sherd__train *t)
{
    const sherd__allreduce_stats *s = count(t);
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "by",
                     sherd__reduce_name(t->circle->kind), "members", (json_int_t)s->members,
                     "rounds", (json_int_t)s->rounds, "repeated", (json_int_t)s->repeated,
                     "link_bytes_out", (json_int_t)s->link_out, "link_bytes_in",
                     (json_int_t)s->link_in, "examples_bytes", (json_int_t)s->examples_out, "links",
                     sherd__train_allreduce_links(t));
}

void sherd__train_allreduce_free(sherd__train_allreduce *c)
{
    sherd__free(c);
}
