/* The pipeline's bounds, one by one, and the greatest of them. */
#include "scheduler/cost.h"

/* Bytes a second at which a node's core goes over operands and results: to convert them, to write
 * answers. And what a task costs each side beside its bytes: two messages, two hand-overs. */
#define MEMORY_RATE 2.5e9
#define TASK_S 15e-6
/* Of cores that many threads share: they wait for each other, and for the caches. */
#define CORES_USED 0.85

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* Seconds of the loop thread here; the threads that serve sessions at the nodes take as many
 * together. */
static double sessions(const sherd__cost_input *in, uint64_t out, uint64_t back)
{
    return ((double)out + (double)back) / in->session_rate;
}

static void choose(sherd__cost *c, double seconds, sherd__cost_bound bound)
{
    if (seconds <= c->seconds) return;
    c->seconds = seconds;
    c->bound = bound;
}

void sherd__cost_predict(sherd__cost *out, const sherd__cost_input *in)
{
    double core = in->gflops * 1e9 / in->cores, tasks = (double)in->tasks * TASK_S;
    double rest = sessions(in, in->bytes_out - in->bytes_first, in->bytes_in) + tasks;
    double speed = in->local ? core : in->node_gflops * 1e9;
    double work = in->flops / speed + in->moved / MEMORY_RATE;
    *out = (sherd__cost){ .here_s = in->hide_s + in->fold_s };
    out->nodes_s = work * in->busiest;
    out->first_s = sessions(in, in->bytes_first, 0) + in->fill_s;
    if (!in->local) {
        double wire = (double)in->bytes_first / in->link_rate;
        double other = (double)(in->bytes_out - in->bytes_first) / in->link_rate;
        out->first_s = larger(out->first_s, wire);
        rest = larger(rest, larger(other, (double)in->bytes_in / in->link_rate));
    }
    out->links_s = out->first_s + rest;
    choose(out, out->first_s + out->nodes_s, SHERD__BOUND_NODES);
    choose(out, out->links_s, SHERD__BOUND_LINKS);
    choose(out, out->first_s + out->here_s, SHERD__BOUND_HERE);
    if (!in->local) return;
    double both = 2 * (sessions(in, in->bytes_out, in->bytes_in) + tasks) + in->fill_s;
    out->cores_s = (work + both + out->here_s) / (in->cores * CORES_USED);
    choose(out, out->cores_s, SHERD__BOUND_CORES);
}
