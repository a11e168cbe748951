/*
 * `sherd plan A.npy B.npy -n 7` or `sherd plan 4096x4096x4096 --remote 7 --link 125M`: for each
 * scheme the exact bytes that would be transferred and the predicted time, compared with the same
 * product computed locally. Nodes of -n and --nodes report their speed, and their links are
 * measured; with --remote nothing is started or connected to.
 */
#include "cli/plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/fields.h"
#include "cli/help.h"
#include "cli/nodes.h"
#include "cli/operands.h"
#include "cli/rows.h"
#include "core/clock.h"

/* ---- forecasts ------------------------------------------------------------------------------- */

#define WIDTH 80
#define NAME_WIDTH 19 /* of the names of most choices */

static const char *percent_text(double fraction, char out[48])
{
    snprintf(out, 48, fraction < 0.1 ? "%.2g%%" : "%.0f%%", 100 * fraction);
    return out;
}

static const char *of_a_text(const void *x, char out[48])
{
    return percent_text(((const sherd_forecast *)x)->exposure_a, out);
}

static const char *of_b_text(const void *x, char out[48])
{
    return percent_text(((const sherd_forecast *)x)->exposure_b, out);
}

/* In at most seven characters. */
static const char *time_text(const void *x, char out[48])
{
    const double s = ((const sherd_forecast *)x)->seconds;
    char text[24];
    if (!(s > 0)) snprintf(out, 48, "-");
    else if (s < 99.95) snprintf(out, 48, "%s", sherd__cli_seconds(s, text));
    else if (s < 5999) snprintf(out, 48, "%.0f min", s / 60);
    else if (s < 359900) snprintf(out, 48, "%.2g h", s / 3600);
    else snprintf(out, 48, "%.0f d", s / 86400);
    return out;
}

static bool timed(const sherd_forecast *f)
{
    return f->seconds > 0 && f->own_seconds > 0;
}

static const char *ratio_text(const void *x, char out[48])
{
    const sherd_forecast *f = x;
    double ratio = timed(f) ? f->seconds / f->own_seconds : 0;
    if (!(ratio > 0)) snprintf(out, 48, "-");
    else if (ratio < 99.5) snprintf(out, 48, "%.2gx", ratio);
    else if (ratio < 999.5) snprintf(out, 48, "%.0fx", ratio);
    else snprintf(out, 48, ">999x");
    return out;
}

/* In one word: a note follows for the link of a device. */
static const char *bound_text(const void *x, char out[48])
{
    const sherd_forecast *f = x;
    int len = (int)strcspn(f->bound, " ");
    snprintf(out, 48, "%.*s", f->seconds > 0 ? len : 1, f->seconds > 0 ? f->bound : "-");
    return out;
}

/* With the name of a choice, 79 characters. */
static const sherd__column columns[] = {
    { "out", 6, "bytes_out", NULL },
    { "in", 6, "bytes_in", NULL },
    { "of A", 4, NULL, of_a_text },
    { "of B", 4, NULL, of_b_text },
    { "node", 6, "node_memory", NULL },
    { "time", 7, NULL, time_text },
    { "ratio", 5, NULL, ratio_text },
    { "bound", 0, NULL, bound_text },
    { NULL, 0, NULL, NULL },
};

/* Such nodes cannot be faster than this machine. */
static bool shares_cores(const sherd_forecast *f)
{
    return f->local && f->devices == 0;
}

json_t *sherd__plan_object(const sherd_forecast *f)
{
    static const char *const times[] = { "seconds",      "seconds_nodes", "seconds_links",
                                         "seconds_here", "seconds_cores", "bound",
                                         "latency",      "arithmetic" };
    const char *without[32] = { "scheme",        "nodes",     "rates.gflops", "rates.node_gflops",
                                "rates.session", "rates.link" };
    size_t len = 6;
    bool own = timed(f);
    if (!f->threshold)
        without[len++] = "code", without[len++] = "blocks", without[len++] = "threshold",
        without[len++] = "slack";
    if (f->encoding == SHERD_ENCODING_AUTO)
        without[len++] = "encoding", without[len++] = "tasks_csr";
    if (!(f->seconds_dense > 0)) /* there was no choice */
        without[len++] = "seconds_dense", without[len++] = "seconds_csr";
    if (!own) without[len++] = "own_seconds";
    if (!(f->seconds_copies > 0)) without[len++] = "seconds_copies", without[len++] = "copy_rate";
    if (!f->pace[0]) without[len++] = "pace";
    if (!(f->seconds > 0)) /* times are not known */
        for (size_t i = 0; i < sizeof times / sizeof *times; i++) without[len++] = times[i];
    json_t *o = json_object();
    sherd__fields_json(o, f, sherd_forecast_fields, without);
    json_object_set_new(o, "private", json_boolean(sherd_scheme_private(f->scheme)));
    if (f->threshold)
        json_object_set_new(o, "shares", json_integer((json_int_t)f->threshold + f->slack));
    if (f->pace[0]) json_object_set_new(o, "pace_gflops", json_real(f->rates.node_gflops));
    if (own)
        json_object_set_new(o, "pays",
                            json_boolean(!shares_cores(f) && f->seconds < f->own_seconds));
    return o;
}

static const char *kind_text(const sherd_forecast *f)
{
    if (strcmp(f->arithmetic, "bytes") == 0) return "on bytes";
    return strcmp(f->arithmetic, "residues") == 0 ? "modulo primes" : "in float64";
}

/* Says for whom the others wait, and for how many they do not. */
static void print_pace(const char *name, const sherd_forecast *f)
{
    char spare[80] = "", text[256];
    if (f->slack == 1) snprintf(spare, sizeof spare, "; the slowest one is spare");
    else if (f->slack) snprintf(spare, sizeof spare, "; the %u slowest ones are spare", f->slack);
    snprintf(text, sizeof text, "%s: %s sets the pace (%.3g GF/s %s)%s", name, f->pace,
             f->rates.node_gflops, kind_text(f), spare);
    sherd__print_filled(stdout, text, 0, 0, WIDTH);
}

static void print_device_link(const char *name, const sherd_forecast *f)
{
    char copies[24], products[24], rate[24], text[256];
    snprintf(text, sizeof text,
             "%s: the device link is the limit: copies take %s (%s/s), products %s", name,
             sherd__cli_seconds(f->seconds_copies, copies),
             sherd__cli_bytes((uint64_t)f->copy_rate, rate),
             sherd__cli_seconds(f->seconds_nodes, products));
    sherd__print_filled(stdout, text, 0, 0, WIDTH);
}

/* Prints what is unusual about the way in which a choice is computed. */
static void print_note(const char *name, const sherd_forecast *f)
{
    if (f->threshold && f->slack)
        sherd__cli_print("%s: any %u of %u answers give the product", name, f->threshold,
                         f->threshold + f->slack);
    if (f->code == SHERD_CODE_INNER)
        sherd__cli_print("%s: code inner, which needs the answers of all %u nodes", name,
                         f->threshold);
    if (f->encoding == SHERD_ENCODING_CSR)
        sherd__cli_print("%s: A is sent in CSR, without zeros%s", name,
                         f->tasks_csr < f->tasks ? ", where this is smaller" : "");
    if (f->pace[0]) print_pace(name, f);
    if (f->seconds > 0 && strcmp(f->bound, "device link") == 0) print_device_link(name, f);
}

static void print_impossible(const char *mark, const char *name, const sherd_diag *why)
{
    char text[sizeof why->message + sizeof why->hint + 32];
    int at = printf("%s %-*s  ", mark, NAME_WIDTH, name);
    snprintf(text, sizeof text, "not possible: %s%s%s", why->message, why->hint[0] ? "; try: " : "",
             why->hint);
    sherd__print_filled(stdout, text, at, NAME_WIDTH + 4, WIDTH);
}

static void print_choices(const sherd_choices *choices, bool preferred)
{
    char line[256];
    printf("  %-*s %s\n", NAME_WIDTH, "scheme",
           sherd__row_text(line, sizeof line, columns, NULL, sherd_forecast_fields));
    for (size_t i = 0; i < sherd_choices_count(choices); i++) {
        sherd_forecast f = { .size = sizeof f };
        sherd_diag why = { 0 };
        const char *mark = preferred && i == 0 ? "*" : " ", *name = sherd_choices_name(choices, i);
        if (sherd_choices_at(choices, i, &f, &why)) print_impossible(mark, name, &why);
        else
            printf("%s %-*s %s\n", mark, NAME_WIDTH, name,
                   sherd__row_text(line, sizeof line, columns, &f, sherd_forecast_fields));
    }
    for (size_t i = 0; i < sherd_choices_count(choices); i++) {
        sherd_forecast f = { .size = sizeof f };
        if (!sherd_choices_at(choices, i, &f, NULL)) print_note(sherd_choices_name(choices, i), &f);
    }
}

/* Finds the quickest choice of those whose time is known. */
static bool quickest(const sherd_choices *choices, sherd_forecast *best, const char **name)
{
    bool found = false;
    for (size_t i = 0; i < sherd_choices_count(choices); i++) {
        sherd_forecast f = { .size = sizeof f };
        if (sherd_choices_at(choices, i, &f, NULL) || !timed(&f)) continue;
        if (found && f.seconds >= best->seconds) continue;
        *best = f;
        *name = sherd_choices_name(choices, i);
        found = true;
    }
    return found;
}

static void print_legend(const sherd_forecast *f, const char *links)
{
    char text[1024], rate[24], late[48] = "", t[24];
    char tail[160] = "";
    const char *times = "";
    if (f->seconds > 0)
        times =
            "; time: predicted; ratio: of the time to that of this machine alone; bound: what "
            "takes longest: the nodes, copies to their devices, the links, the work here, or the "
            "cores here, which local nodes share";
    if (f->latency > 0) snprintf(late, sizeof late, ", %s", sherd__cli_seconds(f->latency, t));
    if (f->seconds > 0 && f->local)
        snprintf(tail, sizeof tail, " Sessions: %s/s a thread, measured.",
                 sherd__cli_bytes((uint64_t)f->rates.session, rate));
    else if (f->seconds > 0)
        snprintf(tail, sizeof tail, " Links: %s/s together%s, %s.",
                 sherd__cli_bytes((uint64_t)f->rates.link, rate), late, links);
    snprintf(text, sizeof text,
             "out, in: bytes to and from the nodes; of A, of B: how much of it the most exposed "
             "domain is given; node: most memory that a node uses%s.%s",
             times, tail);
    sherd__print_filled(stdout, text, 0, 0, WIDTH);
}

static void print_verdict(const sherd_forecast *f, const char *name)
{
    char text[512], t[24], own[24];
    sherd__cli_seconds(f->seconds, t);
    sherd__cli_seconds(f->own_seconds, own);
    if (shares_cores(f))
        snprintf(text, sizeof text,
                 "%snodes on this machine share its cores; %s, the quickest, takes %s, BLAS on "
                 "this machine %s (%.3g GF/s)",
                 f->seconds < f->own_seconds ? "" : "in time alone it does not pay: ", name, t, own,
                 f->rates.gflops);
    else if (f->seconds < f->own_seconds)
        snprintf(text, sizeof text, "it pays: %s takes %s where this machine takes %s (%.3g GF/s)",
                 name, t, own, f->rates.gflops);
    else
        snprintf(text, sizeof text,
                 "in time alone it does not pay: this machine takes %s (%.3g GF/s), %s, the "
                 "quickest, %s",
                 own, f->rates.gflops, name, t);
    sherd__print_filled(stdout, text, 0, 0, WIDTH);
}

void sherd__plan_print(const sherd_choices *choices, bool preferred, const char *links)
{
    sherd_forecast f = { .size = sizeof f };
    const char *name = NULL;
    print_choices(choices, preferred);
    bool known = quickest(choices, &f, &name);
    putchar('\n');
    print_legend(&f, links);
    if (known) print_verdict(&f, name);
    else
        sherd__print_filled(stdout,
                            "no times: the links to nodes on other machines, and devices, were "
                            "not measured; sherd plan has the times",
                            0, 0, WIDTH);
}

json_t *sherd__plan_array(const sherd_choices *choices, bool preferred)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < sherd_choices_count(choices); i++) {
        sherd_forecast f = { .size = sizeof f };
        sherd_diag why = { 0 };
        json_t *row = sherd_choices_at(choices, i, &f, &why)
                          ? json_pack("{s:o}", "impossible", sherd__cli_json_text(why.message))
                          : sherd__plan_object(&f);
        json_object_set_new(row, "choice", json_string(sherd_choices_name(choices, i)));
        if (preferred) json_object_set_new(row, "chosen", json_boolean(i == 0));
        json_array_append_new(rows, row);
    }
    return rows;
}

/* ---- input ----------------------------------------------------------------------------------- */

typedef struct planning {
    sherd__cli *cli;
    sherd__operand_file in[2]; /* views without data: only the shapes are used */
    sherd_cluster *cluster;
    sherd_forecast_options with;
    sherd_choices *choices;
} planning;

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
    p->in[0].view = (sherd_view){ .rows = dim[0], .cols = dim[1], .dtype = SHERD_F64 };
    p->in[1].view = (sherd_view){ .rows = dim[1], .cols = dim[2], .dtype = SHERD_F64 };
    return 0;
}

static int open_operands(planning *p, sherd_diag *d)
{
    const sherd__cli *cli = p->cli;
    if (cli->args_len == 1 && is_shape(cli->args[0])) return read_shape(p, cli->args[0], d);
    if (cli->args_len != 2)
        return sherd__fail(d, SHERD_EINVAL, "give two files, or a shape as 4096x784x128",
                           "%s: a product needs two operands", cli->args[0]);
    int err = sherd__operand_file_open(&p->in[0], cli->args[0], false, d);
    return err ? err : sherd__operand_file_open(&p->in[1], cli->args[1], true, d);
}

/* Finds the nodes and the speeds of nodes and links. */
static int find_nodes(planning *p, sherd_diag *d)
{
    const sherd__cli *cli = p->cli;
    p->with.node_memory = sherd__opt_size(cli, "node-memory");
    p->with.rates.link = (double)sherd__opt_size(cli, "link");
    p->with.rates.node_gflops = sherd__opt_real(cli, "node-gflops");
    if (sherd__opt_given(cli, "remote")) {
        p->with.nodes = (uint32_t)sherd__opt_int(cli, "remote");
        p->with.remote = true;
        return 0;
    }
    if (sherd__opt_given(cli, "node-gflops"))
        return sherd__fail(d, SHERD_EINVAL, "leave it out: nodes report their speed",
                           "--node-gflops has no effect without --remote");
    int err = sherd__nodes_open(&p->cluster, p->cli, NULL, d);
    if (err) return err;
    p->with.cluster = p->cluster;
    return sherd_forecast_probe(&p->with, d);
}

static int list_choices(planning *p, sherd_diag *d)
{
    const sherd__cli *cli = p->cli;
    sherd_product_options o = {
        .size = sizeof o,
        .colluding = (uint32_t)sherd__opt_int(cli, "colluding"),
        .spare = (uint32_t)sherd__opt_int(cli, "spare"),
        .code = (sherd_code)sherd__opt_choice(cli, "code"),
        .bits_b = (uint32_t)sherd__opt_int(cli, "bits-b"),
        .memory = sherd__opt_size(cli, "memory"),
        .masks = sherd__opt_text(cli, "masks"),
        .bits_bind = sherd__opt_given(cli, "bits"),
        .name_a = p->in[0].path,
        .name_b = p->in[1].path,
        .profile_a = p->in[0].profile,
        .profile_b = p->in[1].profile,
        .hooks = p->with.hooks,
    };
    int err = sherd__opts_arithmetic(cli, &o.exact, &o.bits, d);
    return err ? err : sherd_choices_new(&p->choices, p->in[0].view, p->in[1].view, &o, d);
}

/* ---- output ---------------------------------------------------------------------------------- */

/* Returns how the rate of the links was found. */
static const char *links_text(const planning *p)
{
    if (sherd__opt_given(p->cli, "link")) return "as --link says";
    return p->with.remote ? "assumed from the network interface: --link sets it" : "measured";
}

static void print_table(const planning *p)
{
    printf("%zu x %zu times %zu x %zu\n", p->in[0].view.rows, p->in[0].view.cols,
           p->in[1].view.rows, p->in[1].view.cols);
    sherd__plan_print(p->choices, false, links_text(p));
}

static int print_json(const planning *p, sherd_diag *d)
{
    json_t *obj = sherd__cli_json_new(p->cli), *rates = NULL;
    for (size_t i = 0; i < sherd_choices_count(p->choices); i++) {
        sherd_forecast f = { .size = sizeof f };
        if (sherd_choices_at(p->choices, i, &f, NULL)) continue;
        json_decref(rates);
        rates = json_pack("{s:f, s:f, s:f, s:f, s:f}", "gflops", f.rates.gflops, "node_gflops",
                          f.rates.node_gflops, "session", f.rates.session, "link", f.rates.link,
                          "latency", f.latency);
    }
    json_object_set_new(obj, "rows", json_integer((json_int_t)p->in[0].view.rows));
    json_object_set_new(obj, "inner", json_integer((json_int_t)p->in[0].view.cols));
    json_object_set_new(obj, "columns", json_integer((json_int_t)p->in[1].view.cols));
    if (rates) json_object_set_new(obj, "rates", rates);
    json_object_set_new(obj, "choices", sherd__plan_array(p->choices, false));
    return sherd__cli_json_end(p->cli, obj, d);
}

/* ---- progress -------------------------------------------------------------------------------- */

/* Short calls show nothing. */
#define PROGRESS_FROM_S 1.0

void sherd__plan_progress(sherd__progress_line *line, const sherd_progress *p)
{
    if (p->seconds >= PROGRESS_FROM_S)
        sherd__progress_update(line, p->done, p->total, NULL, sherd__clock_s());
}

static void on_progress(void *line, const sherd_progress *p)
{
    sherd__plan_progress(line, p);
}

static void on_read(void *line, const sherd_progress *p)
{
    const sherd_progress mib = { .done = p->done >> 20,
                                 .total = p->total >> 20,
                                 .seconds = p->seconds };
    sherd__plan_progress(line, &mib);
}

void sherd__plan_progress_init(sherd__progress_line *line, const sherd__cli *cli, const char *what,
                               const char *unit)
{
    sherd__progress_init(line, stderr, cli->quiet ? SHERD__PROGRESS_NONE : SHERD__PROGRESS_AUTO,
                         what, unit, sherd__clock_s());
}

/* ---- the verb -------------------------------------------------------------------------------- */

static int run_plan(sherd__cli *cli, sherd_diag *d)
{
    sherd__progress_line line;
    planning p = { .cli = cli,
                   .with = { .size = sizeof p.with,
                             .hooks = { sherd__cli_stops, NULL, on_read, &line } } };
    sherd__plan_progress_init(&line, cli, "reading", "MiB");
    int err = open_operands(&p, d);
    if (!err) err = list_choices(&p, d);
    sherd__progress_fini(&line);
    p.with.hooks.progress = NULL; /* it would count tasks */
    if (!err) err = find_nodes(&p, d);
    sherd__plan_progress_init(&line, cli, "forecast", "parts");
    p.with.hooks.progress = on_progress;
    if (!err) err = sherd_choices_forecast(p.choices, &p.with, d);
    sherd__progress_fini(&line);
    if (!err) err = sherd_cluster_end(p.cluster, d);
    if (!err && cli->json) err = print_json(&p, d);
    else if (!err) print_table(&p);
    sherd_cluster_close(p.cluster);
    sherd_choices_free(p.choices);
    for (int i = 0; i < 2; i++) sherd__operand_file_close(&p.in[i]);
    return err;
}

static const sherd__example examples[] = {
    { "sherd plan A.npy B.npy -n 7", "the cost of each scheme on seven nodes of this machine" },
    { "sherd plan 4096x4096x4096 --nodes nodes.txt --key me.key --colluding 2",
      "from shapes alone, over the nodes that a file lists; their links are measured" },
    { "sherd plan 60000x784x128 --remote 7 --link 12M --node-gflops 80",
      "for nodes that do not exist yet; nothing is started or connected to" },
    { 0 },
};

/* clang-format off */
static const sherd__option options[] = {
    SHERD__OPT_LOCAL,
    SHERD__OPT_NODES,
    SHERD__OPT_KEY,
    SHERD__OPT_NODE_MEMORY,
    SHERD__OPT_BIND_TO,
    SHERD__OPTS_DEVICES,
    SHERD__OPT_SAME_HOST,
    SHERD__OPT_TIMEOUT,
    SHERD__OPT_RECORD,
    { .name = "remote", .type = SHERD__INT, .arg = "N", .min = 1, .max = 1000,
      .flags = SHERD__OPT_ONLY_ARGV, .excludes = "local",
      .help = "plan for N nodes on other machines, without connecting to any" },
    { .name = "link", .type = SHERD__SIZE, .arg = "RATE", .flags = SHERD__OPT_ONLY_ARGV,
      .help = "bytes per second of all links together [measured; --remote: of the network "
              "interface]" },
    { .name = "node-gflops", .type = SHERD__REAL, .arg = "G", .min = 0.001, .max = 1e9,
      .flags = SHERD__OPT_ONLY_ARGV,
      .help = "--remote: speed of each node in GFLOP/s [of one core of this machine]" },
    SHERD__OPT_COLLUDING(0),
    SHERD__OPT_SPARE(0),
    SHERD__OPT_CODE(0),
    { .name = "masks", .type = SHERD__FILE, .arg = "FILE", .flags = SHERD__OPT_ONLY_ARGV,
      .takes = SHERD_TAKES_MASKS, .help = "masks to plan with; none of them is used up" },
    SHERD__OPTS_ARITHMETIC,
    SHERD__OPT_MEMORY,
    SHERD__OPT_THREADS,
    { 0 },
};
/* clang-format on */

const sherd__verb sherd__verb_plan = {
    .name = "plan",
    .usage = "A.npy B.npy | ROWSxINNERxCOLUMNS",
    .summary = "predict the cost of a product under each scheme, and whether it pays",
    .details =
        "For each scheme: bytes to and from the nodes, exactly as they will be counted (of shapes "
        "alone: as f64 without zeros); how much of A and B the most exposed domain is given; the "
        "most memory that a node uses; the predicted time, also as a multiple of the time of the "
        "same product by BLAS on this machine; and what bounds it. For nodes on devices, copies to "
        "these and products are predicted apart. Under share the plan names the node that sets the "
        "pace: the slowest one that is not spare. For a choice that is not possible the reason is "
        "printed. --json has more: operations, tasks, answers.\n\n"
        "Times are predicted from speeds that are measured now: of the nodes' links by products of "
        "constants of up to 8 MB a node (none of the operands is sent), of hiding and decoding by "
        "processing a few panels, and of products on this machine. Nodes report the speed of their "
        "own products and copies.",
    .examples = examples,
    .options = options,
    .args_min = 1,
    .args_max = 2,
    .run = run_plan,
};
