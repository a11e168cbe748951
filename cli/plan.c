/*
 * `sherd plan A.npy B.npy -n 7` or `sherd plan 4096x4096x4096 --remote 7 --link 125M`: for each
 * scheme the exact bytes that would be transferred and the predicted time, compared with the same
 * product computed here. Nodes of -n and --nodes report their speed, and their links are measured;
 * with --remote nothing is started or connected to.
 */
#include "cli/plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/nodes.h"
#include "core/bytes.h"
#include "core/rand.h"
#include "scheduler/cluster/launch.h"
#include "scheduler/plan/prepare.h"
#include "sherd/npy.h"

#define CHOICES 32

typedef struct planning {
    sherd__cli *cli;
    sherd_npy *file[2];
    sherd_view a, b; /* without data: only the shapes are used */
    sherd_cluster *cluster;
    sherd_forecast_options with;
    uint8_t seed[32]; /* one draw of exposures for all rows of the table */
    sherd_product_options choice[CHOICES];
    sherd_forecast got[CHOICES];
    sherd_diag why[CHOICES]; /* why a choice is not possible */
    unsigned len;
} planning;

/* ---- input ----------------------------------------------------------------------------------- */

static bool is_shape(const char *text)
{
    return text[strspn(text, "0123456789xX")] == '\0';
}

static int read_shape(planning *p, const char *text, sherd_diag *d)
{
    uint64_t dim[3];
    const char *at = text;
    for (int i = 0; i < 3; i++) {
        char *end;
        dim[i] = strtoull(at, &end, 10);
        if (end == at || *end != (i == 2 ? '\0' : 'x') || dim[i] >= UINT32_MAX)
            return sherd__fail(d, SHERD_EINVAL,
                               "4096x784x128 is a 4096 x 784 matrix times a 784 x 128 one",
                               "%s: expected rows x inner x columns", text);
        at = end + 1;
    }
    p->a = (sherd_view){ .rows = dim[0], .cols = dim[1], .dtype = SHERD_F64 };
    p->b = (sherd_view){ .rows = dim[1], .cols = dim[2], .dtype = SHERD_F64 };
    return 0;
}

static int open_operands(planning *p, sherd_diag *d)
{
    const sherd__cli *cli = p->cli;
    if (cli->args_len == 1 && is_shape(cli->args[0])) return read_shape(p, cli->args[0], d);
    if (cli->args_len != 2)
        return sherd__fail(d, SHERD_EINVAL, "give two .npy files, or a shape as 4096x784x128",
                           "%s: a product needs two operands", cli->args[0]);
    int err = sherd_npy_open(&p->file[0], cli->args[0], d);
    if (!err) err = sherd_npy_open(&p->file[1], cli->args[1], d);
    if (err) return err;
    p->a = sherd_npy_view(p->file[0]);
    p->b = sherd_npy_view(p->file[1]);
    if (sherd_npy_ndim(p->file[1]) == 1) p->b = sherd_view_t(p->b);
    if (p->a.cols == p->b.rows) return 0;
    return sherd__fail(d, SHERD_ESHAPE, "A needs as many columns as B has rows",
                       "%s is %zu x %zu and %s is %zu x %zu: they cannot be multiplied",
                       cli->args[0], p->a.rows, p->a.cols, cli->args[1], p->b.rows, p->b.cols);
}

/* Finds the nodes and the speeds of nodes and links. */
static int find_nodes(planning *p, sherd_diag *d)
{
    const sherd__cli *cli = p->cli;
    uint64_t memory = sherd__opt_size(cli, "node-memory");
    p->with.rates.link = (double)sherd__opt_size(cli, "link");
    p->with.rates.node_gflops = sherd__opt_real(cli, "node-gflops");
    if (sherd__opt_given(cli, "remote")) {
        p->with.nodes = (uint32_t)sherd__opt_int(cli, "remote");
        p->with.remote = true;
        p->with.node_memory = memory ? memory : sherd__launch_memory(1);
        return 0;
    }
    if (sherd__opt_given(cli, "node-gflops"))
        return sherd__fail(d, SHERD_EINVAL, "leave it out: nodes say themselves how fast they are",
                           "--node-gflops has no effect without --remote");
    int err = sherd__nodes_open(&p->cluster, p->cli, NULL, d);
    if (err) return err;
    p->with.cluster = p->cluster;
    /* For nodes on this host the forecast measures what it needs, under the load of their work. */
    if (p->with.rates.link > 0 || sherd_cluster_simulated(p->cluster)) return 0;
    return sherd_rates_probe(p->cluster, &p->with.rates, d);
}

static void add_choice(planning *p, const sherd_product_options *base, const sherd_scheme_info *s,
                       uint32_t group)
{
    if (p->len == CHOICES) return;
    sherd_product_options *o = &p->choice[p->len++];
    *o = *base;
    o->scheme = s->scheme;
    o->group = group;
    o->exact = base->exact || s->exact_only;
    if ((s->takes & SHERD_TAKES_MASKS) && !base->bits_bind) o->bits = 0; /* set by the masks */
}

static void add_scheme(planning *p, const sherd_product_options *base, const sherd_scheme_info *s)
{
    if ((s->takes & SHERD_TAKES_MASKS) && !base->masks) return;
    add_choice(p, base, s, 0);
    if (s->takes & SHERD_TAKES_SHUFFLES) add_choice(p, base, s, 1);
}

static int list_choices(planning *p, sherd_diag *d)
{
    sherd__cli *cli = p->cli;
    sherd_product_options base = { .size = sizeof base };
    sherd__entropy os = sherd__entropy_os();
    os.fill(os.ctx, p->seed, sizeof p->seed);
    base.seed = p->seed;
    base.colluding = (uint32_t)sherd__opt_int(cli, "colluding");
    base.spare = (uint32_t)sherd__opt_int(cli, "spare");
    base.bits_b = (uint32_t)sherd__opt_int(cli, "bits-b");
    base.memory = sherd__opt_size(cli, "memory");
    base.masks = sherd__opt_text(cli, "masks");
    if (p->file[1]) base.name_a = cli->args[0], base.name_b = cli->args[1];
    base.bits_bind = sherd__opt_given(cli, "bits");
    int err = sherd__opts_arithmetic(cli, &base.exact, &base.bits, d);
    if (err) return err;
    const sherd_scheme_info *s;
    for (size_t i = 0; (s = sherd_scheme_at(i)); i++) add_scheme(p, &base, s);
    return 0;
}

/* If no choice can represent the operands' values, this fails before nodes are started. */
static int check_range(const planning *p, sherd_diag *d)
{
    sherd_diag first = { 0 }, other;
    for (unsigned i = 0; p->a.data && p->b.data && i < p->len; i++)
        if (!sherd_product_range(p->a, p->b, &p->choice[i], i ? &other : &first)) return 0;
    return first.code ? sherd__fail(d, first.code, first.hint, "%s", first.message) : 0;
}

/* ---- output ---------------------------------------------------------------------------------- */

const char *sherd__plan_choice(const sherd_product_options *opt, char out[48])
{
    const sherd_scheme_info *s = sherd_scheme_describe(opt->scheme);
    bool shuffles = s->takes & SHERD_TAKES_SHUFFLES;
    if (shuffles && opt->group == 0) snprintf(out, 48, "%s, all", s->name);
    else if (shuffles) snprintf(out, 48, "%s, %" PRIu32, s->name, opt->group);
    else if (s->takes & SHERD_TAKES_COLLUDING)
        snprintf(out, 48, "%s, %" PRIu32 " colluding", s->name, opt->colluding);
    else snprintf(out, 48, "%s", s->name);
    return out;
}

json_t *sherd__plan_object(const sherd_forecast *f)
{
    json_t *o =
        json_pack("{s:I, s:I, s:b, s:I, s:f, s:I, s:f, s:f, s:i, s:f, s:f, s:f, s:f, s:f, s:s}",
                  "bytes_out", (json_int_t)f->bytes_out, "bytes_in", (json_int_t)f->bytes_in,
                  "at_most", (int)f->at_most, "tasks", (json_int_t)f->tasks, "flops", f->flops,
                  "node_memory", (json_int_t)f->node_memory, "exposure_a", f->exposure_a,
                  "exposure_b", f->exposure_b, "primes", (int)f->primes, "seconds", f->seconds,
                  "seconds_nodes", f->nodes_s, "seconds_links", f->links_s, "seconds_here",
                  f->here_s, "seconds_cores", f->cores_s, "bound", f->bound ? f->bound : "");
    json_object_set_new(o, "private", json_boolean(sherd_scheme_private(f->scheme)));
    json_object_set_new(o, "panels", json_integer((json_int_t)f->panels));
    json_object_set_new(o, "tiles", json_integer((json_int_t)f->tiles));
    if (f->threshold) {
        json_object_set_new(o, "blocks", json_integer(f->blocks));
        json_object_set_new(o, "threshold", json_integer(f->threshold));
        json_object_set_new(o, "slack", json_integer(f->slack));
        json_object_set_new(o, "shares", json_integer((json_int_t)f->threshold + f->slack));
    }
    if (f->encoding != SHERD_ENCODING_AUTO) {
        json_object_set_new(o, "encoding", json_string(sherd__choices_encoding[f->encoding]));
        json_object_set_new(o, "tasks_csr", json_integer((json_int_t)f->tasks_csr));
    }
    if (f->dense_seconds > 0) { /* else there was no choice */
        json_object_set_new(o, "seconds_dense", json_real(f->dense_seconds));
        json_object_set_new(o, "seconds_csr", json_real(f->csr_seconds));
    }
    if (f->own_seconds > 0 && f->seconds > 0) {
        json_object_set_new(o, "own_seconds", json_real(f->own_seconds));
        json_object_set_new(o, "pays", json_boolean(f->seconds < f->own_seconds));
    }
    return o;
}

const char *sherd__plan_answers(const sherd_forecast *f, char out[24])
{
    if (f->threshold) snprintf(out, 24, "%u of %u", f->threshold, f->threshold + f->slack);
    else snprintf(out, 24, "-");
    return out;
}

static void print_row(const sherd_product_options *opt, const sherd_forecast *f)
{
    char choice[48], out[24], in[24], memory[24], t[24], need[24], ratio[24] = "";
    if (f->own_seconds > 0) snprintf(ratio, sizeof ratio, "%.2gx", f->seconds / f->own_seconds);
    printf("  %-19s %9s %9s %8.2g %9s %5.0f %% %5.0f %% %9s %8s %8s  %s\n",
           sherd__plan_choice(opt, choice), sherd__cli_bytes(f->bytes_out, out),
           sherd__cli_bytes(f->bytes_in, in), f->flops, sherd__cli_bytes(f->node_memory, memory),
           100 * f->exposure_a, 100 * f->exposure_b, sherd__plan_answers(f, need),
           sherd__cli_seconds(f->seconds, t), ratio, f->bound);
}

static const sherd_forecast *quickest(const planning *p, char name[48])
{
    const sherd_forecast *best = NULL;
    for (unsigned i = 0; i < p->len; i++) {
        if (p->why[i].code || (best && p->got[i].seconds >= best->seconds)) continue;
        best = &p->got[i];
        sherd__plan_choice(&p->choice[i], name);
    }
    return best;
}

static void print_verdict(const planning *p)
{
    char name[48], t[24], own[24];
    const sherd_forecast *f = quickest(p, name);
    if (!f) return;
    if (f->seconds < f->own_seconds)
        printf("it pays: %s takes %s where this machine takes %s (%.3g GF/s)\n", name,
               sherd__cli_seconds(f->seconds, t), sherd__cli_seconds(f->own_seconds, own),
               f->rates.gflops);
    else
        printf("in time alone it does not pay: this machine takes %s (%.3g GF/s), %s, the "
               "quickest, %s\n",
               sherd__cli_seconds(f->own_seconds, own), f->rates.gflops, name,
               sherd__cli_seconds(f->seconds, t));
}

static void print_table(const planning *p)
{
    char rate[24], choice[48];
    const sherd_forecast *f = quickest(p, choice);
    bool apart = f && (p->with.remote || f->cores_s <= 0);
    double link = !f ? 0 : apart ? f->rates.link : f->rates.session;
    printf("%zu x %zu times %zu x %zu; %s/s through sessions\n", p->a.rows, p->a.cols, p->b.rows,
           p->b.cols, sherd__cli_bytes((uint64_t)link, rate));
    printf("  %-19s %9s %9s %8s %9s %7s %7s %9s %8s %8s  %s\n", "scheme", "out", "in", "flops",
           "node", "of A", "of B", "answers", "time", "here=1", "bound by");
    for (unsigned i = 0; i < p->len; i++) {
        if (p->why[i].code)
            printf("  %-19s %s\n", sherd__plan_choice(&p->choice[i], choice), p->why[i].message);
        else print_row(&p->choice[i], &p->got[i]);
    }
    print_verdict(p);
}

static int tell_json(const planning *p, sherd_diag *d)
{
    json_t *obj = sherd__cli_json_new(p->cli), *rows = json_array();
    const sherd_rates *r = NULL;
    for (unsigned i = 0; i < p->len; i++) {
        char choice[48];
        json_t *row = p->why[i].code ? json_pack("{s:s}", "impossible", p->why[i].message)
                                     : sherd__plan_object(&p->got[i]);
        json_object_set_new(row, "choice", json_string(sherd__plan_choice(&p->choice[i], choice)));
        json_array_append_new(rows, row);
        if (!p->why[i].code) r = &p->got[i].rates;
    }
    json_object_set_new(obj, "rows", json_integer((json_int_t)p->a.rows));
    json_object_set_new(obj, "inner", json_integer((json_int_t)p->a.cols));
    json_object_set_new(obj, "columns", json_integer((json_int_t)p->b.cols));
    if (r)
        json_object_set_new(obj, "rates",
                            json_pack("{s:f, s:f, s:f, s:f}", "gflops", r->gflops, "node_gflops",
                                      r->node_gflops, "session", r->session, "link", r->link));
    json_object_set_new(obj, "choices", rows);
    return sherd__cli_json_end(p->cli, obj, d);
}

/* ---- the verb -------------------------------------------------------------------------------- */

static int forecast(planning *p, sherd_diag *d)
{
    for (unsigned i = 0; i < p->len; i++) {
        int err = sherd_forecast_multiply(p->a, p->b, &p->choice[i], &p->with, &p->got[i],
                                          &p->why[i]);
        if (err && p->why[i].code == 0) p->why[i].code = err;
        if (!err) p->with.rates.gflops = p->got[i].rates.gflops; /* measured once */
        if (sherd__cli_interrupted())
            return sherd__fail(d, SHERD_EINTERRUPTED, NULL, "interrupted");
    }
    for (unsigned i = 0; i < p->len; i++)
        if (!p->why[i].code) return 0;
    return sherd__fail(d, p->why[0].code, p->why[0].hint, "%s", p->why[0].message);
}

static int run_plan(sherd__cli *cli, sherd_diag *d)
{
    static planning p; /* static because it is large: diagnoses of every choice */
    memset(&p, 0, sizeof p);
    p.cli = cli;
    p.with.size = sizeof p.with;
    for (unsigned i = 0; i < CHOICES; i++) p.got[i].size = sizeof p.got[i];
    int err = open_operands(&p, d);
    if (!err) err = list_choices(&p, d);
    if (!err) err = check_range(&p, d);
    if (!err) err = find_nodes(&p, d);
    if (!err) err = forecast(&p, d);
    if (!err) err = sherd_cluster_end(p.cluster, d);
    if (!err && cli->json) err = tell_json(&p, d);
    else if (!err) print_table(&p);
    sherd_cluster_close(p.cluster);
    sherd_npy_close(p.file[0]);
    sherd_npy_close(p.file[1]);
    return err;
}

static const sherd__example examples[] = {
    { "sherd plan A.npy B.npy -n 7", "what each scheme would take on seven nodes of this machine" },
    { "sherd plan 4096x4096x4096 --nodes nodes.txt --key me.key --colluding 2",
      "shapes alone, over the nodes of a file, whose links are measured" },
    { "sherd plan 60000x784x128 --remote 7 --link 12M --node-gflops 80",
      "for nodes that there are not yet; nothing is started or connected to" },
    { 0 },
};

/* clang-format off */
static const sherd__option options[] = {
    SHERD__OPT_LOCAL,
    SHERD__OPT_NODES,
    SHERD__OPT_KEY,
    SHERD__OPT_NODE_MEMORY,
    SHERD__OPT_BIND_TO,
    SHERD__OPT_SAME_HOST,
    SHERD__OPT_TIMEOUT,
    SHERD__OPT_RECORD,
    { .name = "remote", .type = SHERD__INT, .arg = "N", .min = 1, .max = 1000,
      .flags = SHERD__OPT_ONLY_ARGV, .excludes = "local",
      .help = "plan for N nodes on other machines, without connecting to any" },
    { .name = "link", .type = SHERD__SIZE, .arg = "RATE", .flags = SHERD__OPT_ONLY_ARGV,
      .help = "bytes a second of all links together "
              "[measured; --remote: the network interface's]" },
    { .name = "node-gflops", .type = SHERD__REAL, .arg = "G", .min = 0.001, .max = 1e9,
      .flags = SHERD__OPT_ONLY_ARGV,
      .help = "--remote: billions of operations a second of each node [one core of this machine]" },
    { .name = "colluding", .type = SHERD__INT, .arg = "T", .min = 1, .max = 63, .preset = "1",
      .help = "share: how many domains together shall learn nothing" },
    { .name = "spare", .type = SHERD__INT, .arg = "S", .min = 0, .max = 1000, .preset = "0",
      .help = "share: how many nodes may be slow, dead or lying without work done again" },
    { .name = "masks", .type = SHERD__FILE, .arg = "FILE", .flags = SHERD__OPT_ONLY_ARGV,
      .help = "blind too, by these masks; none is used up" },
    SHERD__OPTS_ARITHMETIC,
    SHERD__OPT_MEMORY,
    SHERD__OPT_THREADS,
    { 0 },
};
/* clang-format on */

const sherd__verb sherd__verb_plan = {
    .name = "plan",
    .usage = "A.npy B.npy | ROWSxINNERxCOLUMNS",
    .summary = "what each scheme would take, and whether it pays",
    .details =
        "For each scheme: bytes to and from the nodes, exactly as they will be counted (of shapes "
        "alone: without zeros, as f64); multiply-adds of all nodes, counted two; the most that a "
        "node holds; how much of A and B the most exposed domain is given; how many answers of "
        "how many decode (share); the time, and how many times as long as the same product by "
        "BLAS here.\n"
        "\n"
        "Time is predicted from speeds that are measured now: of the nodes' links by two products "
        "of constants of up to 8 MB a node (none of the operands is sent), of hiding and decoding "
        "by doing it with a few panels, of products here; of the nodes' products as they measured "
        "themselves.",
    .examples = examples,
    .options = options,
    .args_min = 1,
    .args_max = 2,
    .run = run_plan,
};
