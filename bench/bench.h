/*
 * Declarations shared by the files of `sherd bench`. A measurement (a row of bench/bench.c's table)
 * runs its cases several times and prints figures: a number in a unit, its target, and related
 * numbers.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <limits.h>

#include "cli/cli.h"
#include "sherd/cluster.h"
#include "sherd/mat.h"

#define SHERD__BENCH_NODES 7u
#define SHERD__BENCH_RUNS_MAX 99

typedef struct sherd__bench {
    sherd__cli *cli;
    bool quick; /* small sizes; targets are not judged */
    int runs;   /* --runs; 0: the measurement's own number */
    unsigned cores;
    json_t *figures;            /* array, where --json */
    bool headed;                /* the table's header has been printed */
    char folder[PATH_MAX - 64]; /* scratch, made when first needed */
} sherd__bench;

/** Returns how often to run: --runs, else `preset`; 2 with --quick. */
int sherd__bench_runs(const sherd__bench *b, int preset);
/** Returns whether a signal has come. For clusters and measurements; ctx is unused. */
bool sherd__bench_interrupted(void *ctx);

/* ---- figures (bench/figure.c) ------------------------------------------------------------ */

typedef enum sherd__better { SHERD__LOWER, SHERD__HIGHER } sherd__better;

/** A related number that is printed with a figure. */
typedef struct sherd__beside {
    const char *name; /* key in JSON */
    const char *what; /* words before the number, in the table */
    double value;
    const char *unit;
} sherd__beside;

#define SHERD__BESIDE_MAX 6

/** Fill in name, what, unit, better and target; then add values. */
typedef struct sherd__figure {
    const char *name; /* "group1-rate" */
    const char *what; /* "--group 1, MNIST layer 1" */
    const char *unit;
    sherd__better better;
    double target; /* the median should be at most, or at least, this */
    double values[SHERD__BENCH_RUNS_MAX];
    int len;
    double median; /* 0: computed from the values; else printed instead (a ratio of medians) */
    sherd__beside beside[SHERD__BESIDE_MAX];
    int beside_len;
    const char *remark; /* for people: why there is no number, or how it was obtained; or NULL */
} sherd__figure;

void sherd__figure_add(sherd__figure *f, double value);
void sherd__figure_beside(sherd__figure *f, const char *name, const char *what, double value,
                          const char *unit);
/** Returns the median of n values and sorts them; the mean of the middle two if n is even. 0 if n
 *  is 0. */
double sherd__median(double *values, int n);
/** Prints the figure's row, or adds it to --json. */
void sherd__bench_tell(sherd__bench *b, const sherd__figure *f);

/* ---- other processes (bench/child.c) ----------------------------------------------------- */

/** Output and exit status of a child. */
typedef struct sherd__child {
    int status;     /* exit status; -signal */
    double seconds; /* from its start to its end */
    char out[4096]; /* first bytes of stdout, NUL-terminated */
} sherd__child;

/**
 * Runs a program until it ends, without SHERD_* in its environment and, without -v, with stderr
 * discarded. SHERD_EOPEN: the program does not exist. SHERD_EINTERRUPTED: a signal came, and the
 * child was ended.
 */
int sherd__child_run(sherd__child *out, const sherd__bench *b, const char *program,
                     const char *const *argv, sherd_diag *d) SHERD_MUST;
/** Runs this command; argv[0] is the verb. A status other than 0 is SHERD_EINTERNAL. */
int sherd__child_self(sherd__child *out, const sherd__bench *b, const char *const *argv,
                      sherd_diag *d) SHERD_MUST;
/**
 * Runs a script that prints n numbers in the packaged Python with numpy. Its BLAS uses `threads`
 * threads, or its own choice if 0. SHERD_EUNSUPPORTED if there is no numpy; *d then has the message
 * to print.
 */
int sherd__numpy_run(const sherd__bench *b, const char *script, const char *const *args,
                     unsigned threads, double *out, int n, sherd_diag *d) SHERD_MUST;

/* ---- comparison with numpy (bench/rival.c) ----------------------------------------------- */

/* The scripts of bench/. The first number that each prints is the median of its repetitions. */
extern const char sherd__bench_deep_py[] __attribute__((visibility("hidden")));
extern const char sherd__bench_mnist_py[] __attribute__((visibility("hidden")));
extern const char sherd__bench_spiral_py[] __attribute__((visibility("hidden")));

/** One measurement on both sides. The caller sets the members up to `small`; the rest are
 *  results. */
typedef struct sherd__rivalry {
    int (*turn)(void *ctx, double *out, sherd_diag *d); /* our side, in the script's unit */
    void *ctx;
    int turns; /* see sherd__bench_runs */
    const char *script;
    const char *const *args; /* NULL-terminated */
    bool small;              /* one thread may be faster than all: numpy runs with either */
    double own, numpy;       /* medians of the turns; numpy: of its faster setting */
    int with;                /* turns that numpy completed; 0: there is no numpy, and f's remark
                                says so */
    double here[SHERD__BENCH_RUNS_MAX], there[SHERD__BENCH_RUNS_MAX], one[SHERD__BENCH_RUNS_MAX];
} sherd__rivalry;

/** Runs both sides in alternation. f gets the ratio of each pair, and the ratio of the medians as
 *  its median. */
int sherd__rivalry_run(sherd__bench *b, sherd__rivalry *r, sherd__figure *f,
                       sherd_diag *d) SHERD_MUST;

/* ---- operands (bench/data.c) ------------------------------------------------------------- */

/** Two operands and room for the result, f64, in memory. */
typedef struct sherd__bench_pair {
    sherd_view a, b;
    double *a_values, *b_values, *c;
    const char *data; /* the source of A, for people */
} sherd__bench_pair;

/** MNIST in its IDX files ($SHERD_MNIST, else ../shared/data/mnist), else generated digits, divided
 *  by 255, times 784 x 128 weights. rows: the most images. */
int sherd__bench_layer(sherd__bench_pair *out, size_t rows, sherd_diag *d) SHERD_MUST;
/** Two dim x dim operands, uniform in +-1. */
int sherd__bench_square(sherd__bench_pair *out, size_t dim, sherd_diag *d) SHERD_MUST;
void sherd__bench_pair_fini(sherd__bench_pair *p);
/** Writes the path of a file in the scratch folder, which is created at first use. */
int sherd__bench_path(sherd__bench *b, const char *name, char out[PATH_MAX],
                      sherd_diag *d) SHERD_MUST;
/** Removes the scratch folder and its files. */
void sherd__bench_clean(sherd__bench *b);

/* ---- products (bench/product.c) ---------------------------------------------------------- */

/** Opens a cluster of `nodes` local nodes. */
int sherd__bench_open(sherd_cluster **out, sherd__bench *b, uint32_t nodes,
                      sherd_diag *d) SHERD_MUST;
/** Opens a cluster of nodes that answer wrongly after SIGUSR2 (bench/liar.c). Warnings are not
 *  shown. */
int sherd__bench_open_liars(sherd_cluster **out, sherd__bench *b, uint32_t nodes,
                            sherd_diag *d) SHERD_MUST;
/** Waits until BLAS threads sleep after a product here, so that they do not disturb the next
 *  measurement. */
void sherd__bench_rest(void);
/** Times one dgemm of the pair on all cores, then rests (sherd__bench_rest). */
int sherd__bench_local(const sherd__bench_pair *p, double *seconds, sherd_diag *d) SHERD_MUST;
/** Times one permute product of the pair in floats; group 0: all. fragments may be NULL. */
int sherd__bench_multiply(sherd_cluster *cluster, const sherd__bench_pair *p, uint32_t group,
                          double *seconds, uint64_t *fragments, sherd_diag *d) SHERD_MUST;

/* ---- measurements ---------------------------------------------------------------------------- */

int sherd__bench_meta(sherd__bench *b, sherd_diag *d) SHERD_MUST;
int sherd__bench_seed(sherd__bench *b, sherd_diag *d) SHERD_MUST;
int sherd__bench_group1(sherd__bench *b, sherd_diag *d) SHERD_MUST;
int sherd__bench_all_4096(sherd__bench *b, sherd_diag *d) SHERD_MUST;
int sherd__bench_all_8192(sherd__bench *b, sherd_diag *d) SHERD_MUST;
int sherd__bench_connection(sherd__bench *b, sherd_diag *d) SHERD_MUST;
int sherd__bench_tasks(sherd__bench *b, sherd_diag *d) SHERD_MUST;
int sherd__bench_memory(sherd__bench *b, sherd_diag *d) SHERD_MUST;
int sherd__bench_modular(sherd__bench *b, sherd_diag *d) SHERD_MUST;
int sherd__bench_encode(sherd__bench *b, sherd_diag *d) SHERD_MUST;
int sherd__bench_freivalds(sherd__bench *b, sherd_diag *d) SHERD_MUST;
int sherd__bench_share_2048(sherd__bench *b, sherd_diag *d) SHERD_MUST;
int sherd__bench_share_4096(sherd__bench *b, sherd_diag *d) SHERD_MUST;
int sherd__bench_resident(sherd__bench *b, sherd_diag *d) SHERD_MUST;
int sherd__bench_disturbed(sherd__bench *b, sherd_diag *d) SHERD_MUST;
int sherd__bench_forecast(sherd__bench *b, sherd_diag *d) SHERD_MUST;
int sherd__bench_train_deep(sherd__bench *b, sherd_diag *d) SHERD_MUST;
int sherd__bench_train_mnist(sherd__bench *b, sherd_diag *d) SHERD_MUST;
int sherd__bench_train_epoch(sherd__bench *b, sherd_diag *d) SHERD_MUST;
int sherd__bench_train_batch(sherd__bench *b, sherd_diag *d) SHERD_MUST;
int sherd__bench_gradients_spiral(sherd__bench *b, sherd_diag *d) SHERD_MUST;
int sherd__bench_gradients_large(sherd__bench *b, sherd_diag *d) SHERD_MUST;
int sherd__bench_gradients_allreduce(sherd__bench *b, sherd_diag *d) SHERD_MUST;
int sherd__bench_gradients_async(sherd__bench *b, sherd_diag *d) SHERD_MUST;
/** Runs in the process that sherd__bench_memory starts: prints its peak beyond operands and
 *  result. */
int sherd__bench_memory_child(sherd__bench *b, const char *which, sherd_diag *d) SHERD_MUST;

#endif
