/*
 * `sherd bench`. A measurement is a row of the table in bench/table.c: a kind, which does the work,
 * what it is applied to, and the figures that follow. The runner (bench/run.c) makes its turns, of
 * which the first one warms up; every turn measures both sides of a comparison, so that both meet
 * the same load. A turn adds numbers to series by name; figures are ratios of series.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <limits.h>

#include "cli/cli.h"
#include "cli/process.h"
#include "core/clock.h"
#include "sherd/cluster.h"
#include "sherd/mat.h"
#include "sherd/product.h"

#define SHERD__BENCH_NODES 7u
#define SHERD__BENCH_RUNS_MAX 99
#define SHERD__BENCH_SERIES_MAX 24

typedef struct sherd__series {
    const char *name;
    double values[SHERD__BENCH_RUNS_MAX];
    int len;
} sherd__series;

typedef struct sherd__bench {
    sherd__cli *cli;
    bool quick;    /* small sizes; targets are not judged */
    bool long_too; /* the measurements that take minutes as well */
    int runs;      /* --runs; 0: the measurement's own number */
    unsigned cores;
    json_t *figures;            /* array, where --json */
    bool headed;                /* the table's header has been printed */
    char folder[PATH_MAX - 64]; /* scratch, made when first needed */
    /* of the measurement */
    int turns;          /* that are counted */
    bool warming;       /* the present turn is not counted */
    bool without_numpy; /* numpy is not installed */
    char data[120];     /* the operands, for people; or empty */
    char path[120];     /* how products were computed, for people; or empty */
    sherd__series series[SHERD__BENCH_SERIES_MAX];
} sherd__bench;

/* ---- the table (bench/table.c) --------------------------------------------------------------- */

typedef enum sherd__better { SHERD__LOWER, SHERD__HIGHER } sherd__better;

/** How a series becomes numbers: scale * num / den, run by run. den NULL: 1. */
typedef struct sherd__ratio {
    const char *num, *den;
    double scale;   /* 0: 1 */
    bool of_median; /* by the median of den, not run by run */
    bool worst;     /* a related number: the largest of num in place of the median */
} sherd__ratio;

/** A related number: of the medians of its series. It is left out if there is no such series. */
typedef struct sherd__beside {
    const char *name; /* key in JSON */
    const char *what; /* words before the number, in the table */
    const char *unit;
    sherd__ratio of;
} sherd__beside;

#define SHERD__BESIDE_MAX 10

typedef struct sherd__figure {
    const char *name, *what, *what_quick; /* what_quick NULL: as what */
    const char *unit;
    sherd__better better;
    double target; /* the median should be at most, or at least, this; 0: none */
    sherd__ratio of;
    bool medians; /* the figure is the ratio of the medians, not the median of the ratios */
    sherd__beside beside[SHERD__BESIDE_MAX];
    const char *remark, *remark_quick; /* for people, or NULL */
    bool data;                         /* the remark is sherd__bench.data */
} sherd__figure;

/** What measurements do. All functions fill *d. */
typedef struct sherd__kind {
    size_t size; /* of its state, which is zeroed first */
    int (*open)(sherd__bench *b, void *state, const void *spec, sherd_diag *d);
    int (*turn)(sherd__bench *b, void *state, sherd_diag *d);
    int (*end)(sherd__bench *b, void *state, sherd_diag *d); /* after the last turn; or NULL */
    void (*close)(void *state);                              /* also after a failure; or NULL */
    bool cold;                                               /* the first turn is counted, too */
    bool whole;                                              /* one turn makes all runs */
} sherd__kind;

#define SHERD__FIGURES_MAX 3

typedef struct sherd__measurement {
    const char *name;  /* --only; rows with one name are chosen together */
    const char *title; /* printed while it is measured */
    const sherd__kind *kind;
    const void *spec;
    int runs, runs_quick; /* runs_quick 0: 2 */
    sherd__figure figures[SHERD__FIGURES_MAX];
    bool takes_long; /* measured only with --long, or where --only names it */
} sherd__measurement;

extern const sherd__measurement sherd__measurements[];
extern const size_t sherd__measurements_len;
/** The names of all measurements: "meta, seed, ...". */
#define SHERD__MEASUREMENTS                                                                        \
    "meta, seed, group1, all-4096, all-8192, plain-4096, start, connection, tasks, memory, "       \
    "modular, bytes, encode, freivalds, share-2048, share-4096, share-8192, share-spare, "         \
    "by-size, by-nodes, resident, disturbed, forecast, train-deep, train-mnist, train-epoch, "     \
    "train-batch, gradients-spiral, gradients-large, gradients-circle, gradients-async"

/* ---- the runner (bench/run.c) ---------------------------------------------------------------- */

/** Makes the turns of one measurement and prints its figures, or adds them to --json. */
int sherd__bench_measure(sherd__bench *b, const sherd__measurement *m, sherd_diag *d) SHERD_MUST;
/** Adds a number to a series, unless the turn warms up. name: static. */
void sherd__bench_put(sherd__bench *b, const char *name, double value);
/** Makes a series of one number. */
void sherd__bench_set(sherd__bench *b, const char *name, double value);
/** Prints a figure of the series, or adds it to --json. Of a series NAME and one called NAME.one
 *  that with the lower median counts. */
void sherd__bench_report(sherd__bench *b, const sherd__figure *f);
/** Returns the median of n values and sorts them; the mean of the middle two if n is even. 0 if n
 *  is 0. */
double sherd__median(double *values, int n);
/** Returns whether a signal has come. For clusters; ctx is unused. */
bool sherd__bench_interrupted(void *ctx);
int sherd__bench_go_on(sherd_diag *d) SHERD_MUST;
int sherd__bench_no_memory(sherd_diag *d);

/* ---- other processes (bench/child.c) --------------------------------------------------------- */

/**
 * Runs this command, without SHERD_* in its environment and, without -v, with stderr discarded, and
 * times it. argv[0] is the verb; out (may be NULL) receives the first bytes of stdout. A status
 * other than 0 is SHERD_EINTERNAL; SHERD_EINTERRUPTED: a signal was received, and the child was
 * ended.
 */
int sherd__bench_command(const sherd__bench *b, const char *const *argv, double *seconds, char *out,
                         size_t size, sherd_diag *d) SHERD_MUST;

/* The scripts of bench/, for numpy. */
extern const char sherd__bench_deep_py[] __attribute__((visibility("hidden")));
extern const char sherd__bench_fragments_py[] __attribute__((visibility("hidden")));
extern const char sherd__bench_mnist_epoch_py[] __attribute__((visibility("hidden")));
extern const char sherd__bench_permutations_py[] __attribute__((visibility("hidden")));
extern const char sherd__bench_spiral_py[] __attribute__((visibility("hidden")));

/**
 * Runs a script in the packaged Python with numpy, and adds the numbers that it prints to the
 * series `names`, ended by NULL. args: ended by NULL. Its BLAS uses `threads` threads, or its own
 * choice if 0. Nothing is run in a turn that warms up, or if there is no numpy.
 */
int sherd__bench_numpy(sherd__bench *b, const char *script, const char *const *args,
                       unsigned threads, const char *const *names, sherd_diag *d) SHERD_MUST;

/* ---- operands (bench/operands.c) ------------------------------------------------------------- */

/** Two operands and room for the result, f64, in memory. */
typedef struct sherd__bench_pair {
    sherd_view a, b;
    double *values, *a_values, *b_values, *c; /* one allocation */
    uint64_t bytes;                           /* of all three */
} sherd__bench_pair;

/**
 * dim 0: the layer, MNIST in its IDX files ($SHERD_MNIST, else ../shared/data/mnist), else
 * generated digits, divided by 255, times 784 x 128 weights; 60000 images, or 600 with --quick.
 * Otherwise two dim x dim operands, uniform in +-1.
 */
int sherd__bench_pair_open(sherd__bench_pair *out, sherd__bench *b, size_t dim,
                           sherd_diag *d) SHERD_MUST;
void sherd__bench_pair_close(sherd__bench_pair *p);
/** Returns n doubles with all pages touched, so that no page is faulted in while a clock runs. NULL
 *  without memory. */
double *sherd__bench_room(size_t n);
/** Fills x with integers in +-most. */
void sherd__bench_integers(double *x, size_t n, uint32_t most, uint64_t seed);
/** Writes the path of a file in the scratch folder, which is created at first use. */
int sherd__bench_path(sherd__bench *b, const char *name, char out[PATH_MAX],
                      sherd_diag *d) SHERD_MUST;
/** Removes the scratch folder and its files. */
void sherd__bench_clean(sherd__bench *b);

/* ---- products (bench/products.c) ------------------------------------------------------------- */

/** Opens a cluster of local nodes, which the command's verb `verb` runs (NULL: node). */
int sherd__bench_cluster(sherd_cluster **out, sherd__bench *b, uint32_t nodes, const char *verb,
                         sherd_diag *d) SHERD_MUST;
/** Sums the bytes that all nodes were sent, and received, in MB. */
void sherd__bench_traffic(sherd_cluster *c, double *up, double *down);
/** Processor time of the processes of a product, in seconds: of threads that compute products at
 *  the nodes, of those that send and receive on both sides, and of the others here, which encode,
 *  check and decode. */
typedef struct sherd__busy {
    double products, links, here;
} sherd__busy;
/** Reads the times of a cluster of local nodes, from its start. Zero where the system has none. */
void sherd__bench_busy(sherd_cluster *c, sherd__busy *out);
/** Adds the differences of two readings to series of their names, "waiting" for the rest of the
 *  time of all cores, and "cores" for all of it. */
void sherd__bench_put_busy(sherd__bench *b, const sherd__busy *before, const sherd__busy *after,
                           double seconds);
/** Waits until BLAS threads sleep after a product here, so that they do not disturb the next
 *  measurement. */
void sherd__bench_rest(void);

typedef struct sherd__product_spec {
    size_t dim, dim_quick; /* 0: the layer */
    sherd_scheme scheme;
    uint32_t group, bits, bits_b, spare;
    uint32_t nodes; /* 0: SHERD__BENCH_NODES */
    bool stays;     /* A stays at the nodes */
    bool local;     /* beside one local dgemm */
    bool forecast;  /* beside its forecast */
    bool numpy;     /* beside numpy's loop over fragments */
    bool command;   /* and the whole command */
} sherd__product_spec;

typedef struct sherd__memory_spec {
    const char *which; /* value of --memory-of */
    sherd__product_spec product;
} sherd__memory_spec;

/** Runs in the process that a measurement of memory starts: prints its peak beyond operands and
 *  result, and the bytes of these. */
int sherd__bench_memory_child(sherd__bench *b, const char *which, sherd_diag *d) SHERD_MUST;

/* ---- kernels (bench/kernels.c, bench/bytes.c) and trainings (bench/training.c) --------------- */

/** An n x k by k x m product of integers in +-most. */
typedef struct sherd__kernel_spec {
    size_t n, k, m, n_quick, k_quick, m_quick;
    uint32_t most;
} sherd__kernel_spec;

/** Ways to make the steps of a training. */
typedef enum sherd__way {
    SHERD__WAY_HERE = 1, /* products in floats; series "here" */
    SHERD__WAY_PRODUCTS, /* products under `share` over nodes; "nodes" */
    SHERD__WAY_SERVER,   /* gradients over nodes; "server" */
    SHERD__WAY_RING,     /* the same, summed among the nodes; "ring" and "halving" */
    SHERD__WAY_HALVING,
    SHERD__WAY_ASYNC
} sherd__way;

#define SHERD__WAYS_MAX 3

typedef struct sherd__training_spec {
    const char *recipe; /* the name of a built-in one, or a text; NULL: 100 MB of parameters */
    size_t examples, examples_quick;
    int steps, steps_quick; /* of one turn */
    sherd__way ways[SHERD__WAYS_MAX];
    uint32_t nodes; /* of each way over nodes */
    bool f32;
    const char *script; /* of numpy, or NULL */
} sherd__training_spec;

extern const sherd__kind sherd__bench_meta, sherd__bench_seed, sherd__bench_product,
    sherd__bench_memory, sherd__bench_disturbed, sherd__bench_start, sherd__bench_connection,
    sherd__bench_tasks, sherd__bench_modular, sherd__bench_bytes, sherd__bench_bytes_encode,
    sherd__bench_encode, sherd__bench_freivalds, sherd__bench_ways, sherd__bench_apart,
    sherd__bench_slowed;

#endif
