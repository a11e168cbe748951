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
#include "core/cpu.h"
#include "core/suggest.h"
#include "matrix/gemm.h"
#include "matrix/residue_bytes.h"
#include "matrix/residue_limbs.h"
#include "sherd/version.h"

static const char *const variables[] = { "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE" };
enum { VARIABLES = sizeof variables / sizeof *variables };
#define WAS_SET "SHERD_ENVIRONMENT_WAS" /* the hidden option --environment-was */

/* ---- environment ----------------------------------------------------------------------------- */

/* Executes this program again with the same arguments. Returns only on failure. */
static int restart(sherd_diag *d)
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
                       "cannot restart without OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE");
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
    if (setenv(WAS_SET, was, 1) != 0) return sherd__fail_memory(d, "an environment variable");
    return restart(d);
}

static void show_machine(const sherd__bench *b, json_t *out)
{
    const char *was = sherd__opt_text(b->cli, "environment-was");
    json_t *env = out ? json_object() : NULL;
    double load = 0;
    if (getloadavg(&load, 1) == 1 && load > 0.5 * b->cores)
        sherd__cli_warn(b->cli,
                        "load average %.1f on %u cores: other programs are running and affect the "
                        "figures",
                        load, b->cores);
    if (!out)
        printf("sherd %s: OpenBLAS with its %s kernels, %sbyte products by %s, %u core%s, "
               "%u nodes on this machine\n",
               sherd_version(), sherd__blas_core(),
               sherd__limbs_here() ? "AMX for packed residues, " : "",
               sherd__bytes_path_name(sherd__bytes_path_here()), b->cores, b->cores == 1 ? "" : "s",
               SHERD__BENCH_NODES);
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
    json_object_set_new(out, "byte_products",
                        json_string(sherd__bytes_path_name(sherd__bytes_path_here())));
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
    const char *known[64] = { NULL };
    char word[40], hint[80];
    snprintf(word, sizeof word, "%.*s", (int)(len < 39 ? len : 39), name);
    for (size_t i = 0; i < sherd__measurements_len && i < 63; i++)
        known[i] = sherd__measurements[i].name;
    const char *near = sherd__suggest(word, known);
    if (near) snprintf(hint, sizeof hint, "did you mean '%s'?", near);
    return sherd__fail(d, SHERD_EINVAL, near ? hint : SHERD__MEASUREMENTS,
                       "option --only: there is no measurement '%s'", word);
}

/* Returns whether the list NAME,... has a name. */
static bool has(const char *list, const char *name)
{
    size_t len = strlen(name);
    for (; list; list = strchr(list, ',') ? strchr(list, ',') + 1 : NULL)
        if (strncmp(list, name, len) == 0 && (list[len] == ',' || list[len] == '\0')) return true;
    return false;
}

/* Returns whether the list has the name of the measurement or of one of its figures. */
static bool chooses(const char *list, const sherd__measurement *m)
{
    bool found = has(list, m->name);
    for (size_t i = 0; i < SHERD__FIGURES_MAX && m->figures[i].name && !found; i++)
        found = has(list, m->figures[i].name);
    return found;
}

/* Checks the names of --only. */
static int check_names(const char *only, sherd_diag *d)
{
    for (const char *at = only; at && *at;) {
        size_t len = strcspn(at, ","), i = 0;
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)(len < 63 ? len : 63), at);
        while (i < sherd__measurements_len && !chooses(name, &sherd__measurements[i])) i++;
        if (i == sherd__measurements_len) return unknown(at, len, d);
        at += len + (at[len] == ',');
    }
    return 0;
}

/* If one measurement fails, the others still run. Returns the first error. */
static int measure_all(sherd__bench *b, const char *only, sherd_diag *d)
{
    int err = 0;
    for (size_t i = 0; i < sherd__measurements_len; i++) {
        const sherd__measurement *m = &sherd__measurements[i];
        sherd_diag mine = { 0 };
        if (only ? !chooses(only, m) : m->takes_long && !b->long_too) continue;
        sherd__cli_say(b->cli, "measuring %s", m->title);
        int failed = sherd__bench_measure(b, m, &mine);
        sherd__bench_clean(b);
        if (!failed) failed = sherd__bench_go_on(&mine);
        if (!failed) continue;
        if (failed == SHERD_EINTERRUPTED) return sherd__fail(d, failed, NULL, "interrupted");
        sherd__cli_warn(b->cli, "%s: %s", m->name, mine.message);
        if (!err) err = sherd__fail(d, failed, mine.hint, "%s: %s", m->name, mine.message);
    }
    return err;
}

static int run_bench(sherd__cli *cli, sherd_diag *d)
{
    const char *only = sherd__opt_text(cli, "only"), *memory_of = sherd__opt_text(cli, "memory-of");
    sherd__bench b = { .cli = cli,
                       .quick = sherd__opt_flag(cli, "quick"),
                       .long_too = sherd__opt_flag(cli, "long"),
                       .runs = (int)sherd__opt_int(cli, "runs"),
                       .cores = sherd__cpu_usable() };
    int err = check_names(only, d);
    if (!err) err = clean_environment(cli, d);
    if (err) return err;
    if (memory_of) return sherd__bench_memory_child(&b, memory_of, d);
    sherd__blas_threads_set(b.cores);
    json_t *out = cli->json ? sherd__cli_json_new(cli) : NULL;
    if (out) b.figures = json_array();
    show_machine(&b, out);
    err = measure_all(&b, only, d);
    if (!out) return err;
    json_object_set_new(out, "figures", b.figures);
    return err ? sherd__cli_json_fail(cli, out, err, d) : sherd__cli_json_end(cli, out, d);
}

static const sherd__example examples[] = {
    { "sherd bench", "all measurements; takes some minutes, 4 GB of memory, 2 GB of temporary "
                     "files" },
    { "sherd bench --only connection,tasks --runs 9", "two of the measurements, nine runs each" },
    { "sherd bench --quick --json",
      "small sizes, in seconds: shows that the measurements work, ignores targets" },
    { 0 },
};

/* clang-format off */
static const sherd__option options[] = {
    { .name = "only", .type = SHERD__TEXT, .arg = "NAME,...",
      .help = "measure these only, or those with these figures: " SHERD__MEASUREMENTS },
    { .name = "runs", .type = SHERD__INT, .arg = "N", .min = 1, .max = SHERD__BENCH_RUNS_MAX,
      .help = "runs of each measurement, after one warm-up run [5 if they are short, else 3]" },
    { .name = "quick", .type = SHERD__FLAG, .help = "small sizes; targets are ignored" },
    { .name = "long", .type = SHERD__FLAG,
      .help = "also measure share-8192, by-size and by-nodes, which take many minutes" },
    { .name = "nodes", .type = SHERD__FILE, .arg = "FILE", .flags = SHERD__OPT_ONLY_ARGV,
      .help = "products over the nodes that FILE lists, each in a domain of its own, in place of "
              "nodes that are started" },
    { .name = "key", .type = SHERD__FILE, .arg = "FILE", .flags = SHERD__OPT_ONLY_ARGV,
      .help = "--nodes: private key of this coordinator (sherd keygen)" },
    { .name = "keep-env", .type = SHERD__FLAG,
      .help = "keep OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE as they are set" },
    { .name = "memory-of", .type = SHERD__TEXT, .arg = "GROUP",
      .flags = SHERD__OPT_ONLY_ARGV | SHERD__OPT_HIDDEN,
      .help = "measure memory in this process, for the process that started it" },
    { .name = "environment-was", .type = SHERD__TEXT, .arg = "TEXT", .flags = SHERD__OPT_HIDDEN,
      .help = "variables that were unset before this process restarted" },
    { 0 },
};
/* clang-format on */

const sherd__verb sherd__verb_bench = {
    .name = "bench",
    .summary = "measure this machine, beside numpy and a local product",
    .details =
        "Each figure is the median of several runs, with the minimum, the maximum and its target. "
        "Products are timed from operands in memory to the result in memory, with the nodes "
        "running; times of whole commands include files and the start of nodes.\n"
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
        "all-4096, all-8192, plain-4096: squares over 7 node processes, with one permutation "
        "for each node or with none; the ratio of its median to that of one local dgemm on all "
        "cores, runs alternating.\n"
        "\n"
        "connection: 64 MB blocks through session, TLS and block store of another process, each "
        "followed by a task of one number whose answer shows that the block is there, three in "
        "transfer, then dropped. tasks: 64 x 64 products with a new left block each and a right "
        "one that stays, at the best of nine depths, and the round trip at depth 1; both at the "
        "session, below jobs.\n"
        "\n"
        "memory: VmHWM of a process that does nothing but the product, less operands and result.\n"
        "\n"
        "start: from nothing to 63 node processes that are connected.\n"
        "\n"
        "modular: modulo the first prime, one BLAS thread for both. bytes: modulo 251, one "
        "thread for both; operands are laid out in each run. bytes-encode: float64 in, 18 bits, "
        "six primes, fresh masks included, shares of one byte a residue, in processor time. "
        "encode: float64 in, 17 bits, two "
        "primes, fresh masks included, packed shares; bytes read and written against those of "
        "memcpy, all cores for both; and the time of one core for an element. freivalds: both "
        "operands projected, answers modulo two primes checked, on one thread; against the two "
        "products on all cores.\n"
        "\n"
        "share-2048, share-4096, share-8192: 17 bits, 7 node processes of which any one learns "
        "nothing, all 7 needed; ratio to one local dgemm, runs alternating. share-spare: 8 "
        "nodes, of which one may be missing. by-size, by-nodes: the same ratio for n from 512 "
        "to 8192, and for 3 to 32 nodes at 2048; bench/plot.py draws it from --json. "
        "Percentages below products over nodes say where the time of all cores went: nodes that "
        "compute, both ends of the links, the rest of this process, and waiting.\n"
        "\n"
        "resident: MNIST as 9 bits stays in shares, weights of 17 bits travel; products after "
        "the first. disturbed: 8 nodes, one spare, 3072 cubed; during the product a node is "
        "killed, stopped or begins to answer wrongly; the median and the worst of all runs, "
        "against the median of as many undisturbed runs between them. forecast: the time that "
        "`sherd multiply -v` predicts against the time of the run; bytes must be equal.\n"
        "\n"
        "gradients-spiral: 2-100-3 on 450 points over 2 node processes; each time the examples "
        "are partitioned again and sent with the parameters, and gradients come back, over TLS; "
        "against numpy's iteration in its own process, f64, with one BLAS thread or all, the "
        "faster of the two; medians of the iterations of alternating runs. gradients-circle: a "
        "network of 100 MB over 4 node processes, summed by the server, in a ring, and by halving "
        "and doubling, each over its own nodes, one after the other; the ratio of rounds.",
    .examples = examples,
    .options = options,
    .run = run_bench,
};
