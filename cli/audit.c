/*
 * `sherd audit`: what did the nodes learn? Reads the files that it is given, runs the audit
 * (sherd/audit.h) and prints the report.
 */
#include "sherd/audit.h"

#include "cli/audit.h"
#include "cli/paths.h"
#include "cli/progress.h"
#include "core/clock.h"
#include "sherd/array.h"

static const char *const choices_simulate[] = { "permute-published", "permute-single", "permute",
                                                "plain", NULL }; /* as sherd_audit_form */

/* Matrices of the options of the same names. */
enum { DATA, RIGHT, LABELS, PUBLIC_DATA, PUBLIC_LABELS, MATRICES };

typedef struct auditing {
    sherd__cli *cli;
    sherd_array *matrix[MATRICES];
    sherd__progress_line line;
    uint64_t total; /* attacks of the phase that the line shows */
} auditing;

/* The attacks of one phase after the other are counted. Short phases are not shown. */
static void on_progress(void *ctx, const sherd_progress *p)
{
    auditing *a = ctx;
    double now = sherd__clock_s();
    if (p->total < 3) return;
    if (p->total != a->total) {
        sherd__progress_fini(&a->line);
        sherd__progress_init(&a->line, stderr,
                             a->cli->quiet ? SHERD__PROGRESS_NONE : SHERD__PROGRESS_AUTO, "audit",
                             "attacks", now);
    }
    a->total = p->total;
    sherd__progress_update(&a->line, p->done, p->total, NULL, now);
}

/* Opens the matrices that were given, as views of the options. */
static int open_matrices(auditing *a, sherd_audit_options *opt, sherd_diag *d)
{
    static const char *const names[MATRICES] = { "data", "right", "labels", "public-data",
                                                 "public-labels" };
    sherd_view *const views[MATRICES] = { &opt->data, &opt->right, &opt->labels, &opt->public_data,
                                          &opt->public_labels };
    int err = 0;
    for (size_t i = 0; i < MATRICES && !err; i++) {
        const char *path = sherd__opt_text(a->cli, names[i]);
        if (!path) continue;
        err = sherd_array_open(&a->matrix[i], path, NULL, d);
        if (!err) *views[i] = sherd_array_view(a->matrix[i]);
    }
    return err;
}

static sherd_audit_options options_of(auditing *a)
{
    const sherd__cli *cli = a->cli;
    bool show = sherd__opt_given(cli, "show");
    return (sherd_audit_options){
        .size = sizeof(sherd_audit_options),
        .draw = (uint64_t)sherd__opt_int(cli, "draw"),
        .colluding = (uint32_t)sherd__opt_int(cli, "colluding"),
        .spare = (uint32_t)sherd__opt_int(cli, "spare"),
        .code = (sherd_code)sherd__opt_choice(cli, "code"),
        .coalitions = (uint32_t)sherd__opt_int(cli, "coalitions"),
        .nodes_only = sherd__opt_int(cli, "coalitions") == 0,
        .encodings = (uint32_t)sherd__opt_int(cli, "encodings"),
        .rows = (size_t)sherd__opt_int(cli, "rows"),
        .show = show ? (uint32_t)sherd__opt_int(cli, "show") : 0,
        .hooks = { sherd__cli_stops, NULL, on_progress, a },
    };
}

static int print_json(sherd__cli *cli, sherd_audit *report, sherd_diag *d)
{
    const char *text;
    int err = sherd_audit_json(report, &text, d);
    if (err) return err;
    json_t *obj = sherd__cli_json_new(cli), *members = json_loads(text, 0, NULL);
    if (json_object_update(obj, members)) { /* one of them is NULL, or there is no memory */
        json_decref(obj);
        obj = NULL;
    }
    json_decref(members);
    return sherd__cli_json_end(cli, obj, d);
}

static int check_arguments(const sherd__cli *cli, sherd_diag *d)
{
    bool simulated = sherd__opt_given(cli, "simulate");
    const char *html = sherd__opt_text(cli, "html");
    if (simulated == (cli->args_len > 0))
        return sherd__fail(
            d, SHERD_EINVAL,
            "sherd multiply A.npy B.npy -o C.npy -n 7 --record DIR, then sherd audit "
            "DIR --data A.npy; or sherd audit --simulate permute",
            simulated ? "--simulate takes no record: give one or the other"
                      : "give the folder that --record wrote, or --simulate FORM");
    int err = sherd__paths_differ(cli, 0, d);
    return !err && html ? sherd__paths_room(html, d) : err;
}

static int run_audit(sherd__cli *cli, sherd_diag *d)
{
    auditing a = { .cli = cli };
    sherd_audit_options opt = options_of(&a);
    sherd_audit *report = NULL;
    const char *html = sherd__opt_text(cli, "html");
    int err = check_arguments(cli, d);
    if (!err) err = open_matrices(&a, &opt, d);
    if (!err && sherd__opt_given(cli, "simulate"))
        err = sherd_audit_simulate(&report, (sherd_audit_form)sherd__opt_choice(cli, "simulate"),
                                   (uint32_t)sherd__opt_int(cli, "local"), &opt, d);
    else if (!err)
        err = sherd_audit_records(&report, (const char *const *)cli->args, (size_t)cli->args_len,
                                  &opt, d);
    for (size_t i = 0; i < MATRICES; i++) {
        if (!err && a.matrix[i]) err = sherd_array_check(a.matrix[i], d);
        sherd_array_close(a.matrix[i]);
    }
    sherd__progress_fini(&a.line);
    if (!err && html)
        err = sherd_audit_html_save(report, (size_t)sherd__opt_int(cli, "width"), html, d);
    if (!err && cli->json) err = print_json(cli, report, d);
    else if (!err) sherd__audit_print(report);
    sherd_audit_free(report);
    return err;
}

static const sherd__example examples[] = {
    { "sherd audit rec --data A.npy", "which entries of A the nodes of a recorded run received "
                                      "unchanged" },
    { "sherd audit rec --data A.npy --labels L.npy --public-data P.npy "
      "--public-labels Q.npy --html r.html",
      "also what an attacker with data of the same kind infers, with pictures" },
    { "sherd audit --simulate permute-published",
      "the same for permute as it was published, on generated digits" },
    { 0 },
};

/* clang-format off */
static const sherd__option options[] = {
    { .name = "data", .type = SHERD__FILE, .arg = "FILE", .flags = SHERD__OPT_ONLY_ARGV,
      .help = "operand A (.npy, IDX, or .npz with one member): to count correct inferences, and "
              "for attacks with known A: does its hiding depend on it, and do its masks repeat" },
    { .name = "right", .type = SHERD__FILE, .arg = "FILE", .flags = SHERD__OPT_ONLY_ARGV,
      .help = "operand B, for the same purposes; under share it also serves to solve for B's "
              "masks" },
    { .name = "labels", .type = SHERD__FILE, .arg = "FILE", .flags = SHERD__OPT_ONLY_ARGV,
      .help = "a label for each row of A: to count correct inferences" },
    { .name = "public-data", .type = SHERD__FILE, .arg = "FILE", .flags = SHERD__OPT_ONLY_ARGV,
      .help = "data of the attacker: other rows of the same kind" },
    { .name = "public-labels", .type = SHERD__FILE, .arg = "FILE", .flags = SHERD__OPT_ONLY_ARGV,
      .help = "labels of the attacker's data" },
    { .name = "simulate", .type = SHERD__CHOICE, .arg = "FORM", .choices = choices_simulate,
      .flags = SHERD__OPT_ONLY_ARGV,
      .help = "instead of a record, attack what nodes would see under permute-published, "
              "permute-single, permute or plain" },
    { .name = "local", .letter = 'n', .type = SHERD__INT, .arg = "N", .min = 1, .max = 1000,
      .preset = "7",
      .help = "--simulate: number of nodes" },
    { .name = "draw", .type = SHERD__INT, .arg = "K", .min = 0, .max = 4294967295.0, .preset = "1",
      .help = "number that selects a random draw of exposures and coalitions" },
    { .name = "colluding", .type = SHERD__INT, .arg = "T", .min = 1, .max = 64, .preset = "1",
      .help = "also attack coalitions of T and of T+1 domains; share: the T of the recorded run, "
              "if the record does not contain it" },
    { .name = "spare", .type = SHERD__INT, .arg = "S", .min = 0, .max = 4096, .preset = "0",
      .help = "share: the --spare S of the recorded run, if the record does not contain it" },
    { .name = "code", .type = SHERD__CHOICE, .arg = "NAME", .preset = "auto",
      .choices = sherd__choices_code,
      .help = "share: the code of the recorded run, if the record does not contain it; auto: "
              "inner if shares have fewer columns than the data" },
    { .name = "coalitions", .type = SHERD__INT, .arg = "K", .min = 0, .max = 100000,
      .preset = "200", .help = "most coalitions of one size; if there are more, a random sample of "
                               "them" },
    { .name = "encodings", .type = SHERD__INT, .arg = "K", .min = 1, .max = 65536, .preset = "8",
      .help = "share: most right operands or tiles of a product, and most products, that are "
              "attacked; each pair is compared, so the time grows with the square" },
    { .name = "rows", .type = SHERD__INT, .arg = "N", .min = 100, .max = 1000000, .preset = "10000",
      .help = "most rows of a node's view, and of the public data, that attacks use" },
    { .name = "html", .type = SHERD__FILE, .arg = "FILE", .flags = SHERD__OPT_ONLY_ARGV,
      .help = "write a page with pictures to this file; it shows data, so its mode is 0600" },
    { .name = "show", .type = SHERD__INT, .arg = "NODE", .min = 1, .max = 1000, .preset = "3",
      .help = "the node whose pictures are shown" },
    { .name = "width", .type = SHERD__INT, .arg = "PIXELS", .min = 0, .max = 65536, .preset = "0",
      .help = "columns of A in one line of a picture [as for a square one]" },
    { 0 },
};
/* clang-format on */

const sherd__verb sherd__verb_audit = {
    .name = "audit",
    .usage = "[DIR...]",
    .summary = "show what each node learned, by attacks on a record",
    .details =
        "Reads a coordinator's record (multiply --record), or records of nodes (node --record), "
        "and attacks what each node saw, and what coalitions of T and of T+1 domains saw together: "
        "entries that were sent unchanged, the zero mask, columns recognised in public data by "
        "their statistics and correlations, labels, and whole rows rebuilt by a linear attacker "
        "and by nearest neighbours. Each figure is printed beside the value that chance gives; "
        "p-values are corrected for the number of tests (Holm, family-wise 1e-6). --labels, --data "
        "and --right serve only to count correct inferences, except under share, where known "
        "operands are also used in attacks.\n\n"
        "--simulate needs no record: it generates what nodes would see, from --data or from "
        "generated digits.",
    .examples = examples,
    .options = options,
    .args_min = 0,
    .args_max = -1,
    .run = run_audit,
};
