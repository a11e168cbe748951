/* Computes the bounds of the pipeline one by one, and takes the largest of them. */
#include "scheduler/plan/cost.h"

#include <assert.h>
#include <math.h>

/* Cost of a task for each side in addition to its bytes: two messages and two hand-overs between
 * threads. Half of what `sherd bench --only tasks` measures per task, less its product and its
 * bytes. */
#define TASK_S 15e-6

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double lesser(double a, double b)
{
    return a < b ? a : b;
}

/* Seconds until the first task can run, and seconds after the last answer. */
typedef struct ends {
    double begin_s, last_s;
} ends;

/* Returns seconds of the loop thread here. The threads that serve sessions at the nodes need the
 * same time in total. */
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

/* For nodes on this machine: returns the time of all cores until the work is done. Some of it is
 * done before the first task can run, by as many cores as have work then; some is done by one core
 * alone after the last task. */
static double shared(const sherd__cost_input *in, const sherd__cost *c, const ends *e, double work,
                     double tasks)
{
    double first = sessions(in, in->bytes_first, 0), cores = in->cores;
    double both = 2 * (sessions(in, in->bytes_out, in->bytes_in) + tasks);
    double all = work + both + in->fill_s + c->here_s - e->last_s;
    double early = 2 * first + in->fill_s + lesser(c->here_s - e->last_s, e->begin_s);
    if (early >= e->begin_s * cores) return all / cores + e->last_s;
    return e->begin_s + (all - early) / cores + e->last_s;
}

/* Before a task can run, the resident blocks must be at the node and its own block must be hidden.
 * The last answer is folded after everything else is done. */
static ends ends_of(const sherd__cost_input *in, double first_s)
{
    double positions = in->positions ? (double)in->positions : INFINITY;
    return (ends){ larger(first_s, in->hide_s / positions), in->fold_s / positions };
}

/* Returns how often the busiest node waits for the next tasks after it has returned all of those in
 * progress. */
static double turns(const sherd__cost_input *in)
{
    double all = (double)in->tasks * in->busiest / in->depth;
    return all > 1 ? all - 1 : 0;
}

double sherd__cost_uneven(const double *shares, const double *speeds, uint32_t len, bool moves)
{
    double lowest = INFINITY, all = 0, longest = 0;
    for (uint32_t i = 0; i < len && speeds; i++)
        if (speeds[i] > 0) lowest = lesser(lowest, speeds[i]);
    for (uint32_t i = 0; i < len; i++) {
        double speed = speeds && speeds[i] > 0 ? speeds[i] / lowest : 1;
        all += speed;
        longest = larger(longest, shares[i] / speed);
    }
    return moves && all > 0 ? lesser(longest, 1 / all) : longest;
}

/* Returns seconds of one core for the products of nodes on this machine. */
static double on_cores(const sherd__cost_input *in, double threads)
{
    double gflops = in->core_gflops > 0 ? in->core_gflops : in->node_gflops;
    return (in->flops * threads / (gflops * 1e9)) * (1 - in->apart) + in->convert_s;
}

/* Returns seconds of one task of the busiest node in the shorter one of its two parts. */
static double overhang(const sherd__cost_input *in, const sherd__cost *c)
{
    return lesser(c->nodes_s, c->copies_s) / larger((double)in->tasks * in->busiest, 1);
}

void sherd__cost_predict(sherd__cost *out, const sherd__cost_input *in)
{
    double tasks = (double)in->tasks * TASK_S, threads = in->node_threads ? in->node_threads : 1;
    double rest = sessions(in, in->bytes_out - in->bytes_first, in->bytes_in) + tasks;
    double speed = in->node_gflops * 1e9;
    assert(in->session_rate > 0 && in->node_gflops > 0);
    *out = (sherd__cost){ .here_s = in->hide_s + in->fold_s };
    out->nodes_s = (in->flops / speed + in->convert_s) * in->busiest;
    out->copies_s = in->copied > 0 ? in->copied / in->copy_rate * in->busiest : 0;
    out->first_s = sessions(in, in->bytes_first, 0) + in->fill_s;
    double trip = in->local ? 0 : in->latency_s;
    if (!in->local) {
        double wire = (double)in->bytes_first / in->link_rate;
        double other = (double)(in->bytes_out - in->bytes_first) / in->link_rate;
        out->first_s = larger(out->first_s, wire);
        rest = larger(rest, larger(other, (double)in->bytes_in / in->link_rate));
        if (in->depth) rest = larger(rest, turns(in) * trip);
    }
    out->links_s = out->first_s + rest;
    const ends e = ends_of(in, out->first_s);
    const double after = in->tail_s + e.last_s + trip, more = overhang(in, out);
    choose(out, e.begin_s + out->nodes_s + more + after, SHERD__BOUND_NODES);
    choose(out, e.begin_s + out->copies_s + more + after, SHERD__BOUND_DEVICES);
    choose(out, e.begin_s + rest + after, SHERD__BOUND_LINKS);
    choose(out, out->first_s + out->here_s + trip, SHERD__BOUND_HERE);
    if (!in->local) return;
    out->cores_s = shared(in, out, &e, on_cores(in, threads), tasks);
    choose(out, out->cores_s, SHERD__BOUND_CORES);
}
