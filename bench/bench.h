/*
 * What the files of `sherd bench` share. A measurement (a row of bench/bench.c's table) runs its
 * cases several times and tells figures: a number in a unit, what it shall reach, and what stands
 * beside it.
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
    bool quick; /* small sizes; nothing is judged */
    int runs;   /* --runs; 0: what the measurement finds right */
    unsigned cores;
    json_t *figures;            /* array, where --json */
    bool headed;                /* the table has its head */
    char folder[PATH_MAX - 64]; /* scratch, made when first needed */
} sherd__bench;

/** How often to run: --runs, else `preset`, 2 where quick. */
int sherd__bench_runs(const sherd__bench *b, int preset);
/** For clusters and measurements: a signal has come. ctx unused. */
bool sherd__bench_interrupted(void *ctx);

/* ---- figures (bench/figure.c) ------------------------------------------------------------ */

typedef enum sherd__better { SHERD__LOWER, SHERD__HIGHER } sherd__better;

/** A number that stands beside a figure. */
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
    double target; /* the median shall be at most, or at least, this */
    double values[SHERD__BENCH_RUNS_MAX];
    int len;
    double median; /* 0: of the values; else told in its place (a ratio of medians) */
    sherd__beside beside[SHERD__BESIDE_MAX];
    int beside_len;
    const char *remark; /* for people: why there is no number, or how it came about; or NULL */
} sherd__figure;

void sherd__figure_add(sherd__figure *f, double value);
void sherd__figure_beside(sherd__figure *f, const char *name, const char *what, double value,
                          const char *unit);
/** Of n values, which are sorted; the mean of the middle two where n is even. 0 for none. */
double sherd__median(double *values, int n);
/** Prints the figure's row, or keeps it for --json. */
void sherd__bench_tell(sherd__bench *b, const sherd__figure *f);

/* ---- other processes (bench/child.c) ----------------------------------------------------- */

/** What a child said and how it ended. */
typedef struct sherd__child {
    int status;     /* exit status; -signal */
    double seconds; /* from its start to its end */
    char out[4096]; /* the head of stdout, terminated */
} sherd__child;

/**
 * Runs a program to its end, without SHERD_* in its environment and with stderr thrown away unless
 * -v. SHERD_EOPEN: there is none; SHERD_EINTERRUPTED: a signal came, and the child was ended.
 */
int sherd__child_run(sherd__child *out, const sherd__bench *b, const char *program,
                     const char *const *argv, sherd_diag *d) SHERD_MUST;
/** Runs this command; argv[0] is its verb. A status other than 0 is SHERD_EINTERNAL. */
int sherd__child_self(sherd__child *out, const sherd__bench *b, const char *const *argv,
                      sherd_diag *d) SHERD_MUST;
/**
 * Runs a script of the packaged Python with numpy, which prints n numbers; its BLAS has `threads`
 * of them, 0: as many as it finds right. SHERD_EUNSUPPORTED where there is no numpy; what is then
 * to be said in *d.
 */
int sherd__numpy_run(const sherd__bench *b, const char *script, const char *const *args,
                     unsigned threads, double *out, int n, sherd_diag *d) SHERD_MUST;

/* ---- numpy beside us (bench/rival.c) ----------------------------------------------------- */

/* The programs of bench/, whose first number is the median of their repetitions. */
extern const char sherd__bench_deep_py[] __attribute__((visibility("hidden")));
extern const char sherd__bench_mnist_py[] __attribute__((visibility("hidden")));
extern const char sherd__bench_spiral_py[] __attribute__((visibility("hidden")));

/** One measurement on both sides: fill in the first members; the rest is found. */
typedef struct sherd__rivalry {
    int (*turn)(void *ctx, double *out, sherd_diag *d); /* ours, in the script's unit */
    void *ctx;
    int turns; /* see sherd__bench_runs */
    const char *script;
    const char *const *args; /* NULL at their end */
    bool small;              /* one thread may be better than all: numpy may have either */
    double own, numpy;       /* medians of the turns; numpy: of its quicker setting */
    int with;                /* turns that numpy had; 0: there is none, and f's remark says so */
    double here[SHERD__BENCH_RUNS_MAX], there[SHERD__BENCH_RUNS_MAX], one[SHERD__BENCH_RUNS_MAX];
} sherd__rivalry;

/** Both by turns; f gets the ratio of each pair, and the ratio of the medians as its own. */
int sherd__rivalry_run(sherd__bench *b, sherd__rivalry *r, sherd__figure *f,
                       sherd_diag *d) SHERD_MUST;

/* ---- operands (bench/data.c) ------------------------------------------------------------- */

/** Two operands and room for the result, f64, in memory. */
typedef struct sherd__bench_pair {
    sherd_view a, b;
    double *a_values, *b_values, *c;
    const char *data; /* where A comes from, for people */
} sherd__bench_pair;

/** MNIST in its IDX files ($SHERD_MNIST, else ../shared/data/mnist), else generated digits, over
 *  255, times 784 x 128 weights. rows: how many images at most. */
int sherd__bench_layer(sherd__bench_pair *out, size_t rows, sherd_diag *d) SHERD_MUST;
/** dim x dim, uniform in +-1. */
int sherd__bench_square(sherd__bench_pair *out, size_t dim, sherd_diag *d) SHERD_MUST;
void sherd__bench_pair_fini(sherd__bench_pair *p);
/** Path of a file in the scratch folder, which is made if need be. */
int sherd__bench_path(sherd__bench *b, const char *name, char out[PATH_MAX],
                      sherd_diag *d) SHERD_MUST;
/** Removes the scratch folder and its files. */
void sherd__bench_clean(sherd__bench *b);

/* ---- products (bench/product.c) ---------------------------------------------------------- */

/** Opens a cluster of local nodes. */
int sherd__bench_open(sherd_cluster **out, sherd__bench *b, uint32_t nodes,
                      sherd_diag *d) SHERD_MUST;
/** The same, of nodes that lie once they get SIGUSR2 (bench/liar.c); warnings are not told. */
int sherd__bench_open_liars(sherd_cluster **out, sherd__bench *b, uint32_t nodes,
                            sherd_diag *d) SHERD_MUST;
/** Until BLAS threads have gone to sleep after a product here, so that they take nothing from what
 *  is measured next. */
void sherd__bench_rest(void);
/** One dgemm of the pair on all cores, and a rest after it. */
int sherd__bench_local(const sherd__bench_pair *p, double *seconds, sherd_diag *d) SHERD_MUST;
/** One permute product of the pair in floats; group 0: all. fragments may be NULL. */
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
/** The process that sherd__bench_memory starts: prints its peak beyond operands and result. */
int sherd__bench_memory_child(sherd__bench *b, const char *which, sherd_diag *d) SHERD_MUST;

#endif
