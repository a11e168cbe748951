/*
 * `sherd bench`: measures this machine and compares it with numpy and a local dgemm in the same
 * run. Every figure is the median of several runs, printed with the minimum and the maximum and
 * compared with its target. Missed targets are reported like the others.
 *
 * OpenBLAS reads OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE before main starts, and either can halve
 * its speed. If one of them is set, this process restarts without it. Nodes, local products and
 * numpy are then all measured with the kernels that OpenBLAS would choose for the processor.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/verbs.h"
#include "cli/process.h"
#include "cli/work.h"
#include "core/cpu.h"
#include "core/suggest.h"
#include "matrix/gemm.h"
#include "matrix/residue_limbs.h"
#include "sherd/version.h"

static const char *const variables[] = { "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE" };
enum { VARIABLES = sizeof variables / sizeof *variables };
#define WAS_SET "SHERD_ENVIRONMENT_WAS" /* the hidden option --environment-was */

typedef struct measurement {
    const char *name;
    const char *says; /* printed while it is measured */
    int (*run)(sherd__bench *b, sherd_diag *d);
} measurement;

static const measurement measurements[] = {
    { "meta", "expanded metadata, beside numpy", sherd__bench_meta },
    { "seed", "metadata in seed form", sherd__bench_seed },
    { "group1", "--group 1 on the layer, beside numpy", sherd__bench_group1 },
    { "all-4096", "--group all at 4096, beside dgemm", sherd__bench_all_4096 },
    { "all-8192", "--group all at 8192, beside dgemm", sherd__bench_all_8192 },
    { "connection", "one connection", sherd__bench_connection },
    { "tasks", "small products", sherd__bench_tasks },
    { "memory", "the coordinator's memory", sherd__bench_memory },
    { "modular", "a product modulo a prime, beside dgemm", sherd__bench_modular },
    { "encode", "all shares of an operand, beside memcpy", sherd__bench_encode },
    { "freivalds", "checks of answers, beside their products", sherd__bench_freivalds },
    { "share-2048", "a product in shares at 2048, beside dgemm", sherd__bench_share_2048 },
    { "share-4096", "a product in shares at 4096, beside dgemm", sherd__bench_share_4096 },
    { "resident", "products with an operand that stays in shares", sherd__bench_resident },
    { "disturbed", "products in shares while a node dies, stops or lies", sherd__bench_disturbed },
    { "forecast", "times that are foretold, beside those that come", sherd__bench_forecast },
    { "train-deep", "batches of a deep network here, beside numpy", sherd__bench_train_deep },
    { "train-mnist", "an epoch of mnist here, beside numpy", sherd__bench_train_mnist },
    { "train-epoch", "an epoch by products in shares, beside one here", sherd__bench_train_epoch },
    { "train-batch", "a batch by products in shares", sherd__bench_train_batch },
    { "gradients-spiral", "an iteration by gradients over two nodes, beside numpy",
      sherd__bench_gradients_spiral },
    { "gradients-large", "a round of many parameters, beside its links alone",
      sherd__bench_gradients_large },
    { "gradients-circle", "a round of many parameters summed among nodes, beside the server",
      sherd__bench_gradients_allreduce },
    { "gradients-async", "asynchronous training with a slow node", sherd__bench_gradients_async },
};
#define NAMES                                                                                      \
    "meta, seed, group1, all-4096, all-8192, connection, tasks, memory, modular, encode, "         \
    "freivalds, share-2048, share-4096, resident, disturbed, forecast, train-deep, "               \
    "train-mnist, train-epoch, train-batch, gradients-spiral, gradients-large, gradients-circle, " \
    "gradients-async"
enum { MEASUREMENTS = sizeof measurements / sizeof *measurements };

int sherd__bench_runs(const sherd__bench *b, int preset)
{
    return b->runs > 0 ? b->runs : b->quick ? 2 : preset;
}

bool sherd__bench_interrupted(void *ctx)
{
    (void)ctx;
    return sherd__cli_interrupted() != 0;
}

/* ---- environment ----------------------------------------------------------------------------- */

/* Executes this program again with the same arguments. Returns only on failure. */
static int begin_anew(sherd_diag *d)
{
    static char text[65536];
    char *argv[256];
    size_t len = 0, n = 0;
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0) close(fd);
    for (; got > 0 && len < (size_t)got && n < 255; len += strlen(text + len) + 1)
        argv[n++] = text + len;
    argv[n] = NULL;
    if (n > 1) execv(SHERD__SELF, argv);
    return sherd__fail(d, SHERD_EINTERNAL, "unset them, or measure with --keep-env",
                       "cannot begin anew without OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE");
}

static int clean_environment(const sherd__cli *cli, sherd_diag *d)
{
    char was[400] = "";
    size_t at = 0;
    if (sherd__opt_flag(cli, "keep-env")) return 0;
    for (size_t i = 0; i < VARIABLES; i++) {
        const char *value = getenv(variables[i]);
        if (!value) continue;
        at += (size_t)snprintf(was + at, sizeof was - at, "%s%s=%.80s", at > 0 ? ", " : "",
                               variables[i], value);
        unsetenv(variables[i]);
    }
    if (at == 0) return 0;
    if (setenv(WAS_SET, was, 1) != 0) return sherd__fail(d, SHERD_ENOMEM, NULL, "out of memory");
    return begin_anew(d);
}

static void show_machine(const sherd__bench *b, json_t *out)
{
    const char *was = sherd__opt_text(b->cli, "environment-was");
    json_t *env = out ? json_object() : NULL;
    double load = 0;
    if (getloadavg(&load, 1) == 1 && load > 0.5 * b->cores)
        sherd__cli_warn(b->cli,
                        "load average %.1f on %u cores: others are at work here, and the "
                        "figures are theirs too",
                        load, b->cores);
    if (!out)
        printf("sherd %s: OpenBLAS with its %s kernels, %s%u core%s, %u nodes on this machine\n",
               sherd_version(), sherd__blas_core(),
               sherd__limbs_here() ? "AMX for packed residues, " : "", b->cores,
               b->cores == 1 ? "" : "s", SHERD__BENCH_NODES);
    if (!out && was)
        printf("%s set in the environment: unset for this run (--keep-env keeps it)\n", was);
    for (size_t i = 0; i < VARIABLES; i++) {
        const char *value = getenv(variables[i]);
        if (out) json_object_set_new(env, variables[i], sherd__cli_json_text(value));
        else if (value) printf("%s=%s in the environment, kept\n", variables[i], value);
    }
    fflush(stdout);
    if (!out) return;
    json_object_set_new(out, "blas_core", json_string(sherd__blas_core()));
    json_object_set_new(out, "amx", json_boolean(sherd__limbs_here()));
    json_object_set_new(out, "cores", json_integer((json_int_t)b->cores));
    json_object_set_new(out, "load_average", json_real(load));
    json_object_set_new(out, "nodes", json_integer(SHERD__BENCH_NODES));
    json_object_set_new(out, "quick", json_boolean(b->quick));
    json_object_set_new(out, "environment", env);
    json_object_set_new(out, "unset", sherd__cli_json_text(was));
}

/* ---- measurements ---------------------------------------------------------------------------- */

static int unknown(const char *name, size_t len, sherd_diag *d)
{
    const char *known[MEASUREMENTS + 1] = { NULL };
    char word[40], hint[400];
    snprintf(word, sizeof word, "%.*s", (int)(len < 39 ? len : 39), name);
    for (size_t i = 0; i < MEASUREMENTS; i++) known[i] = measurements[i].name;
    const char *near = sherd__suggest(word, known);
    if (near) snprintf(hint, sizeof hint, "did you mean '%s'?", near);
    else snprintf(hint, sizeof hint, NAMES);
    return sherd__fail(d, SHERD_EINVAL, hint, "option --only: there is no measurement '%s'", word);
}

/* Marks the measurements of --only NAME,... in chosen[]; without --only, all of them. */
static int choose(const sherd__cli *cli, bool chosen[MEASUREMENTS], sherd_diag *d)
{
    const char *at = sherd__opt_text(cli, "only");
    for (size_t i = 0; i < MEASUREMENTS; i++) chosen[i] = !at;
    while (at && *at != '\0') {
        size_t len = strcspn(at, ","), i = 0;
        while (i < MEASUREMENTS &&
               (strncmp(measurements[i].name, at, len) != 0 || measurements[i].name[len] != '\0'))
            i++;
        if (i == MEASUREMENTS) return unknown(at, len, d);
        chosen[i] = true;
        at += len + (at[len] == ',');
    }
    return 0;
}

/* If one measurement fails, the others still run. Returns the first error. */
static int measure_all(sherd__bench *b, const bool chosen[MEASUREMENTS], sherd_diag *d)
{
    int err = 0;
    for (size_t i = 0; i < MEASUREMENTS; i++) {
        sherd_diag mine = { 0 };
        if (!chosen[i]) continue;
        sherd__cli_say(b->cli, "measuring %s", measurements[i].says);
        int failed = measurements[i].run(b, &mine);
        sherd__bench_clean(b);
        if (!failed) failed = sherd__work_go_on(&mine);
        if (!failed) continue;
        if (failed == SHERD_EINTERRUPTED) return sherd__fail(d, failed, NULL, "interrupted");
        sherd__cli_warn(b->cli, "%s: %s", measurements[i].name, mine.message);
        if (!err)
            err = sherd__fail(d, failed, mine.hint, "%s: %s", measurements[i].name, mine.message);
    }
    return err;
}

static int run_bench(sherd__cli *cli, sherd_diag *d)
{
    bool chosen[MEASUREMENTS];
    const char *memory_of = sherd__opt_text(cli, "memory-of");
    sherd__bench b = { .cli = cli,
                       .quick = sherd__opt_flag(cli, "quick"),
                       .runs = (int)sherd__opt_int(cli, "runs"),
                       .cores = sherd__cpu_usable() };
    int err = choose(cli, chosen, d);
    if (!err) err = clean_environment(cli, d);
    if (err) return err;
    if (memory_of) return sherd__bench_memory_child(&b, memory_of, d);
    sherd__blas_threads_set(b.cores);
    json_t *out = cli->json ? sherd__cli_json_new(cli) : NULL;
    if (out) b.figures = json_array();
    show_machine(&b, out);
    err = measure_all(&b, chosen, d);
    if (!out) return err;
    json_object_set_new(out, "figures", b.figures);
    return err ? sherd__cli_json_fail(cli, out, err, d) : sherd__cli_json_end(cli, out, d);
}

static const sherd__example examples[] = {
    { "sherd bench", "everything; some minutes, 4 GB of memory, 2 GB of temporary files" },
    { "sherd bench --only connection,tasks --runs 9", "two of the measurements, nine runs each" },
    { "sherd bench --quick --json",
      "small sizes, in seconds: shows that it works, judges nothing" },
    { 0 },
};

/* clang-format off */
static const sherd__option options[] = {
    { .name = "only", .type = SHERD__TEXT, .arg = "NAME,...",
      .help = "measure these only: " NAMES },
    { .name = "runs", .type = SHERD__INT, .arg = "N", .min = 1, .max = SHERD__BENCH_RUNS_MAX,
      .help = "runs of each, after one that warms up [5 for short ones, 3 for long ones]" },
    { .name = "quick", .type = SHERD__FLAG, .help = "small sizes; targets are not judged" },
    { .name = "keep-env", .type = SHERD__FLAG,
      .help = "leave OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE as they are set" },
    { .name = "memory-of", .type = SHERD__TEXT, .arg = "GROUP",
      .flags = SHERD__OPT_ONLY_ARGV | SHERD__OPT_HIDDEN,
      .help = "be the process that is measured" },
    { .name = "environment-was", .type = SHERD__TEXT, .arg = "TEXT", .flags = SHERD__OPT_HIDDEN,
      .help = "what was unset before this process began anew" },
    { 0 },
};
/* clang-format on */

const sherd__verb sherd__verb_bench = {
    .name = "bench",
    .summary = "figures of this machine, side by side with numpy and a local product",
    .details =
        "Each figure is the median of several runs, with the least and the greatest, and what it "
        "is meant to reach. Products are timed from operands in memory to the result in memory, "
        "nodes up; whole commands, with files and the start of nodes, stand beside them.\n"
        "\n"
        "meta: the eleven operations of a step of a 784-128-10 network over 60000 samples, "
        "exposures, permutations and inverses, into memory on one thread; against numpy's loop "
        "(shuffle a row, write each entry of its inverse) on a sample of rows of every length, "
        "scaled by indices.\n"
        "\n"
        "seed: the same in seed form: bytes of the file, and the time from nothing to the file in "
        "memory.\n"
        "\n"
        "group1: MNIST ($SHERD_MNIST names its folder) or generated digits, times 784 x 128 "
        "weights in float64 over 7 node processes; against numpy's loop in one process over 200000 "
        "of the fragments: multiply a value by a shuffled row, unshuffle, add.\n"
        "\n"
        "all-4096, all-8192: squares over 7 node processes, one permutation for each; the ratio of "
        "its median to that of one local dgemm on all cores, runs alternating.\n"
        "\n"
        "connection: 64 MB blocks through session, TLS and block store of another process, each "
        "followed by a task of one number whose answer says that the block is there, three on "
        "their way, then dropped. tasks: 64 x 64 products with a fresh left block each and a right "
        "one that stays, at the best of nine depths, and the round trip at depth 1; both at the "
        "session, below jobs.\n"
        "\n"
        "memory: VmHWM of a process that does nothing but the product, less operands and result.\n"
        "\n"
        "modular: modulo the first prime, one BLAS thread for both. encode: float64 in, 17 bits, "
        "two primes, fresh masks included, packed shares out; bytes read and written against those "
        "of memcpy, all cores for both. freivalds: both operands projected, answers modulo two "
        "primes checked, on one thread; against the two products on all cores.\n\nshare-2048, "
        "share-4096: 17 bits, 7 node processes of which any one learns nothing, all 7 needed; "
        "ratio to one local dgemm, runs alternating. resident: MNIST as 9 bits stays in shares, "
        "weights of 17 bits travel; products after the first. disturbed: 8 nodes, one spare, 3072 "
        "cubed; a node is killed or stopped in the "
        "course of it, or begins to answer wrongly; the median and the worst of all strikes, "
        "against the median of as many undisturbed runs between them. forecast: what `sherd "
        "multiply -v` predicts of each case against what it then takes; bytes must agree to the "
        "last.\n"
        "\n"
        "gradients-spiral: 2-100-3 on 450 points over 2 node processes, examples dealt anew and "
        "sent with parameters each time, gradients back, over TLS; against numpy's iteration in "
        "its own process, f64, with one BLAS thread or all, whichever is quicker. Both take turns, "
        "and what counts of either is the median of its iterations. gradients-circle: a network of "
        "100 MB over 4 node processes, summed by the server, in a ring, and by halving and "
        "doubling, each over nodes of its own and one after the other; the ratio of rounds.",
    .examples = examples,
    .options = options,
    .run = run_bench,
};
