/*
 * Estimates of memory and time, reported before the first step. Memory: the least that this process
 * needs, summed with overflow checks and compared with the memory available. Time: the
 * multiplications of a network's passes, first at the speed of a small product measured now, then
 * at the speed of the first steps. Both figures are lower bounds: a run needs at least that much.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/clock.h"
#include "core/diag.h"
#include "core/memory.h"
#include "lib/train/training.h"
#include "matrix/local.h"
#include "scheduler/plan/plan.h"

#define DAY 86400.0
#define MEASURED_S 0.02    /* a product is timed for at least this time ... */
#define MEASURED_LEAST 4u  /* ... and this often: first runs start threads, fault in memory */
#define MEASURED_MOST 256u /* most rows and columns of its operands */
#define WATCHED_S 3.0      /* least time of steps before their speed is used, ... */
#define WATCHED_STEPS 2u   /* ... and their least number */

/* ---- memory ---------------------------------------------------------------------------------- */

/* *sum += count * size; UINT64_MAX on overflow. */
static void plus(uint64_t *sum, uint64_t count, uint64_t size)
{
    size_t bytes, all;
    *sum = sherd__mul(count, size, &bytes) && sherd__add(*sum, bytes, &all) ? all : UINT64_MAX;
}

static uint64_t of_optimiser(const sherd__recipe *r, uint64_t count, size_t size)
{
    uint64_t bytes = 0, vectors = r->optimiser.method == SHERD__ADAM       ? 2
                                  : r->optimiser.method == SHERD__MOMENTUM ? 1
                                                                           : 0;
    plus(&bytes, count, vectors * size);
    return bytes;
}

/* Adds this process's networks: the one that is trained, those of `check`, those of its threads. */
static int measure_networks(const sherd_training *t, size_t batch, sherd__network_size *w,
                            uint64_t *need, sherd_diag *d)
{
    const sherd__recipe *r = &t->recipe->recipe;
    int err = sherd__recipe_size(t->recipe, batch, w, d);
    if (err) return err;
    uint64_t state = of_optimiser(r, w->count, sherd_dtype_size(r->precision));
    plus(need, 1, w->bytes);
    plus(need, 1, state);
    if (r->patience > 0) plus(need, w->count, sherd_dtype_size(r->precision)); /* the best ones */
    if (t->o.check) { /* the same training computed locally, and in float64 */
        plus(need, 2, w->bytes);
        plus(need, 2, state);
    }
    plus(need, sherd__training_threads(t), 2 * sizeof(double) * w->count);
    return SHERD_OK;
}

/* Adds generated examples; examples from files are already in memory. */
static void measure_examples(const sherd__recipe *r, uint64_t *need)
{
    uint64_t inputs = 0;
    plus(&inputs, r->in.height * r->in.width, r->in.channels);
    if (r->data == SHERD__DATA_SPIRAL) inputs = 2;
    if (r->data == SHERD__DATA_PARABOLA) inputs = 1;
    if (r->data < SHERD__DATA_SPIRAL) return;
    uint64_t each = sizeof(uint32_t);
    plus(&each, inputs, sizeof(double));
    plus(need, r->examples, each);
}

/* Compares the need of all processes on this host, which need the same each, with its memory. The
 * limit of a process (ulimit -v) applies to each separately. */
static int compare(const sherd_training *t, uint64_t need, size_t count, sherd_diag *d)
{
    char takes[16], has[16], each[48] = "";
    uint32_t here = t->among.sum ? t->among.here : 1;
    uint64_t all = 0, there = sherd__memory_available_in("");
    plus(&all, here, need);
    if (here > 1) snprintf(each, sizeof each, " in %u processes of this host", here);
    if (all <= there) {
        each[0] = '\0';
        all = need;
        there = sherd__memory_available();
    }
    if (all <= there) return SHERD_OK;
    return sherd__fail(d, SHERD_ENOMEM,
                       "use fewer or narrower layers, a smaller batch or fewer examples",
                       "%s: training takes %s of memory or more%s (%zu parameters), and %s are "
                       "available",
                       t->recipe->name, sherd__bytes_text((double)all, takes), each, count,
                       sherd__bytes_text((double)there, has));
}

static int measure(const sherd_training *t, size_t examples, size_t *width, sherd_diag *d)
{
    const sherd__recipe *r = &t->recipe->recipe;
    sherd__network_size w;
    uint64_t need = 0;
    size_t batch = examples == 0 ? 1 : r->batch == 0 || r->batch > examples ? examples : r->batch;
    int err = measure_networks(t, batch, &w, &need, d);
    if (err) return err;
    *width = w.width;
    bool secure = t->o.aggregate == SHERD_AGGREGATE_SECURE;
    if (examples == 0 && !secure && !t->given) measure_examples(r, &need);
    return compare(t, need, w.count, d);
}

/* All processes compare before any of them allocates. */
int sherd__training_measure(const sherd_training *t, size_t examples, size_t *width, sherd_diag *d)
{
    return sherd__training_agree(t, measure(t, examples, width, d), d);
}

/* ---- time ------------------------------------------------------------------------------------ */

/* Formats "3.2 days", "12 years". */
static const char *long_time(double seconds, char out[32])
{
    double days = seconds / DAY, years = days / 365.25;
    if (days < 999) snprintf(out, 32, "%.3g days", days);
    else snprintf(out, 32, "%.3g years", years);
    return out;
}

/* Returns the layer with the most multiplications. *all: multiplications of one forward and
 * backward pass of one example over all layers: for the output, the gradient of weights and, except
 * in the lowest layer, the gradient of inputs. */
static const sherd__layer *largest(const sherd__network *n, double *all)
{
    const sherd__layer *out = NULL;
    double most = 0;
    *all = 0;
    for (size_t i = 0; i < sherd__network_len(n); i++) {
        const sherd__layer *l = sherd__network_layer(n, i);
        if (l->cols == 0) continue;
        double places = (double)l->out.height * (double)l->out.width;
        double each = places * (double)l->rows * (double)l->cols;
        *all += each * (*all > 0 ? 3 : 2);
        if (each <= most) continue;
        most = each;
        out = l;
    }
    return out;
}

static size_t part(size_t whole)
{
    return whole < MEASURED_MOST ? whole : MEASURED_MOST;
}

/* Returns the seconds of one forward and backward pass of an example, by the speed of a small
 * product of such a shape; 0 if it cannot be measured. Timing a real pass would execute a step of
 * the training. */
static double typical_step(const sherd_training *t)
{
    unsigned times = 0;
    double all, least = INFINITY, until = sherd__clock_s() + MEASURED_S;
    const sherd__layer *l = largest(sherd__trainer_network(t->trainer), &all);
    if (!l) return 0;
    size_t rows = part(sherd__trainer_order(t->trainer)->batch * l->out.height * l->out.width);
    size_t inner = part(l->rows), cols = part(l->cols);
    sherd_dtype type = t->recipe->recipe.precision;
    sherd_multiplier here = { 0 };
    void *a = sherd__calloc(rows * inner, sizeof(double));
    void *b = sherd__calloc(inner * cols, sizeof(double));
    void *c = sherd__calloc(rows * cols, sizeof(double));
    const sherd__tiled p = { .type = type,
                             .c = c,
                             .ldc = cols,
                             .a = sherd_view_c(a, type, rows, inner),
                             .b = sherd_view_c(b, type, inner, cols) };
    int err = a && b && c ? sherd_multiplier_local(&here, 0, NULL) : SHERD_ENOMEM;
    do {
        double began = sherd__clock_s();
        if (!err) err = sherd__local_multiply(here, &p, NULL);
        least = fmin(least, sherd__clock_s() - began);
        times++;
    } while (!err && !sherd__hooks_interrupted(&t->outer) &&
             (times < MEASURED_LEAST || sherd__clock_s() < until));
    sherd_multiplier_free(here);
    sherd__free(a);
    sherd__free(b);
    sherd__free(c);
    return err ? 0 : least * all / ((double)rows * (double)inner * (double)cols);
}

/* Returns the number of nodes, threads or processes that share the work of a step. */
static double hands(const sherd_training *t)
{
    uint32_t many = t->among.sum ? t->among.count
                    : t->o.nodes ? t->o.nodes
                                 : sherd__training_threads(t);
    return many > 1 ? many : 1;
}

double sherd__training_step_here(const sherd_training *t)
{
    return typical_step(t) * (double)sherd__trainer_order(t->trainer)->batch;
}

uint64_t sherd__training_steps_left(const sherd_training *t)
{
    uint64_t all = sherd__trainer_steps(t->trainer), made = sherd__trainer_state(t->trainer)->step;
    return all > made ? all - made : 0;
}

void sherd__training_foretell(sherd_training *t)
{
    char text[32];
    if (!sherd__training_first(t)) return;
    double step = sherd__training_step_here(t) / hands(t);
    double all = step * (double)sherd__training_steps_left(t);
    if (all < DAY) return;
    t->foretold = true;
    sherd__training_log(t, SHERD_LOG_WARN,
                        "this training takes %s or more: %" PRIu64 " steps, whose products take "
                        "%.2g s each at the speed "
                        "measured on this machine",
                        long_time(all, text), sherd__training_steps_left(t), step);
}

void sherd__training_warn_slow(sherd_training *t)
{
    char text[32];
    uint64_t made = sherd__trainer_state(t->trainer)->step - t->first_step;
    double took = sherd__clock_s() - t->began;
    if (t->foretold || made < WATCHED_STEPS || took < WATCHED_S) return;
    double step = took / (double)made, all = step * (double)sherd__training_steps_left(t);
    t->foretold = true; /* warns only once */
    if (all < DAY) return;
    sherd__training_log(t, SHERD_LOG_WARN,
                        "this training takes another %s: %" PRIu64 " steps, and the first %" PRIu64
                        " took %.2g s each",
                        long_time(all, text), sherd__training_steps_left(t), made, step);
}
