/*
 * Reads and judges the options of one operation. Its steps, and their order, are the library's.
 */
#include "cli/work.h"

#include <string.h>

#include "cli/applies.h"
#include "cli/nodes.h"
#include "cli/options.h"
#include "cli/paths.h"
#include "cli/plan.h"
#include "cli/seed.h"
#include "core/wipe.h"
#include "sherd/machine.h"

/* ---- options --------------------------------------------------------------------------------- */

static const sherd_scheme_info *scheme_of(const sherd__product_run *w)
{
    return sherd_scheme_get(w->opt.scheme);
}

/* A width that is not given is the library's default, or that of the masks. */
static int read_arithmetic(sherd__product_run *w, sherd_diag *d)
{
    int err = sherd__opts_arithmetic(w->cli, &w->opt.exact, &w->opt.bits, d);
    w->opt.bits_bind = sherd__opt_given(w->cli, "bits");
    if (!w->opt.bits_bind) w->opt.bits = 0;
    return err;
}

/* Reads the option that decides which others have an effect. */
static void read_scheme(sherd__product_run *w, sherd_op op)
{
    w->opt = (sherd_product_options){ .size = sizeof w->opt };
    if (op != 0) return;
    const sherd_scheme_info *scheme = sherd__opt_scheme(w->cli);
    bool public_b = sherd__opt_given(w->cli, "public") && scheme->public_b != 0;
    w->opt.scheme = public_b ? scheme->public_b : scheme->scheme;
}

static int read_product(sherd__product_run *w, sherd_op op, sherd_diag *d)
{
    sherd__cli *cli = w->cli;
    const char *seed = sherd__opt_text(cli, "seed");
    w->opt.balanced = sherd__opt_choice(cli, "exposure") == 1;
    w->opt.exposure_max = sherd__opt_real(cli, "exposure-max");
    w->opt.memory = sherd__opt_size(cli, "memory");
    w->opt.strict = sherd__opt_flag(cli, "strict");
    if (op == 0) {
        w->opt.colluding = (uint32_t)sherd__opt_int(cli, "colluding");
        w->opt.spare = (uint32_t)sherd__opt_int(cli, "spare");
        w->opt.code = (sherd_code)sherd__opt_choice(cli, "code");
        w->opt.bits_b = (uint32_t)sherd__opt_int(cli, "bits-b");
        w->opt.masks = sherd__opt_text(cli, "masks");
        w->opt.group = (uint32_t)sherd__opt_int(cli, "group");
        w->opt.shuffle_rows = sherd__opt_flag(cli, "shuffle-rows");
        w->opt.encoding = (sherd_encoding)sherd__opt_choice(cli, "encoding");
    }
    if (sherd__opt_given(cli, "threads"))
        sherd_blas_threads_set((unsigned)sherd__opt_int(cli, "threads"));
    int err = op == 0 ? read_arithmetic(w, d) : 0;
    if (err || !seed) return err;
    w->opt.seed = w->seed;
    return sherd__seed_read(w->seed, seed, d);
}

/* Returns whether the option is on the command line. In the environment or a file it may be meant
 * for other runs. */
static bool asked(const sherd__cli *cli, const char *name)
{
    return sherd__opt_source(cli, name) == SHERD__FROM_ARGV;
}

/* Refuses options that have no effect without another option. */
static int judge_options(const sherd__product_run *w, sherd_op op, sherd_diag *d)
{
    static const struct {
        const char *name, *needs;
    } pairs[] = { { "certificate-public", "certificate" },
                  { "operation", "meta" },
                  { "reuse-metadata", "meta" } };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (asked(w->cli, pairs[i].name) && !sherd__opt_given(w->cli, pairs[i].needs))
            return sherd__fail(d, SHERD_EINVAL, "give both or neither",
                               "--%s has no effect without --%s", pairs[i].name, pairs[i].needs);
    if (op != 0) return 0;
    const sherd_scheme_info *s = scheme_of(w);
    const sherd__option *unread = sherd__opts_forget_unread(w->cli, s, 0);
    if (unread) return sherd__opt_refuse(unread, s, d);
    if (!sherd__opt_given(w->cli, "masks") && s->takes & SHERD_TAKES_MASKS)
        return sherd__fail(d, SHERD_EINVAL, "make them with sherd prepare",
                           "--scheme %s needs --masks", s->name);
    if (s->exact_only && asked(w->cli, "mode") && sherd__opt_choice(w->cli, "mode") == 0)
        return sherd__fail(d, SHERD_EINVAL, "leave it out: private schemes compute in fixed point",
                           "--mode float cannot be hidden: --scheme %s is exact", s->name);
    return 0;
}

/* ---- the operation --------------------------------------------------------------------------- */

static void on_log(void *ctx, sherd_log_level level, const char *text)
{
    sherd__nodes_log(((sherd__product_run *)ctx)->cli, level, text);
}

void sherd__product_progress(sherd__progress_line *line, const sherd_progress *p)
{
    char text[80], out[24], in[24];
    snprintf(text, sizeof text, "%s out, %s in", sherd__cli_bytes(p->bytes_out, out),
             sherd__cli_bytes(p->bytes_in, in));
    sherd__progress_update(line, p->done, p->total, text, line->started + p->seconds);
    if (p->done == p->total) sherd__progress_fini(line); /* what follows has no progress */
}

static void on_progress(void *ctx, const sherd_progress *p)
{
    sherd__product_run *w = ctx;
    if (w->o.forecast_only) sherd__plan_progress(&w->progress, p);
    else sherd__product_progress(&w->progress, p);
}

/* Returns which settings of metadata are given. An explicit default value counts as given. */
static unsigned given_settings(const sherd__cli *cli, sherd_op op)
{
    static const struct {
        const char *name;
        unsigned setting;
    } settings[] = { { "exposure", SHERD_META_EXPOSURE },
                     { "group", SHERD_META_GROUP },
                     { "shuffle-rows", SHERD_META_SHUFFLE_ROWS } };
    unsigned given = 0;
    size_t len = op == 0 ? sizeof settings / sizeof *settings : 1; /* apply has no other */
    for (size_t i = 0; i < len; i++)
        if (sherd__opt_given(cli, settings[i].name)) given |= settings[i].setting;
    return given;
}

static int read_operation(sherd__product_run *w, sherd_op op, sherd_diag *d)
{
    sherd__cli *cli = w->cli;
    const char *output = sherd__opt_text(cli, "output");
    bool dry = sherd__opt_is_set(cli, "dry-run");
    w->o = (sherd_operation_options){
        .size = sizeof w->o,
        .op = op,
        .file_a = w->paths[0],
        .file_b = w->paths[1],
        .product = &w->opt,
        .nodes = &w->nodes,
        .meta = sherd__opt_text(cli, "meta"),
        .meta_operation = sherd__opt_text(cli, "operation"),
        .meta_settings = given_settings(cli, op),
        .meta_reuse = sherd__opt_flag(cli, "reuse-metadata"),
        .output = output && strcmp(output, "-") == 0 ? "/dev/stdout" : output,
        .check = sherd__opt_flag(cli, "check"),
        .distance = true,
        .certificate = sherd__opt_text(cli, "certificate"),
        .key_file = sherd__opt_text(cli, "key"),
        .certificate_public = sherd__opt_flag(cli, "certificate-public"),
        .forecast = cli->json || (cli->verbose > 0 && !cli->quiet),
        .measured = cli->verbose > 0,
        .forecast_only = dry,
        .timeout_ms = sherd__opt_time_ms(cli, "timeout"),
        .hooks = { sherd__cli_stops, on_log, on_progress, w },
    };
    return sherd__nodes_options(&w->nodes, !dry, cli, d);
}

int sherd__product_run_begin(sherd__product_run *w, sherd__cli *cli, sherd_op op, unsigned operands,
                             sherd_diag *d)
{
    memset(w, 0, sizeof *w);
    w->cli = cli;
    w->operation = op == 0 ? "multiply" : sherd_op_name(op);
    w->in_len = operands;
    for (unsigned i = 0; i < operands; i++)
        w->paths[i] = cli->args[cli->args_len - (int)(operands - i)];
    int err = sherd__paths_differ(cli, (int)operands, d);
    const char *output = sherd__opt_text(cli, "output"),
               *csv = output ? strrchr(output, '.') : NULL;
    bool text = csv && strcmp(csv, ".csv") == 0;
    if (!err) err = sherd__paths_output(cli, text ? NULL : ".npy", d);
    read_scheme(w, op);
    if (!err) err = judge_options(w, op, d);
    if (!err) err = read_product(w, op, d);
    if (!err) err = read_operation(w, op, d);
    if (!err) err = sherd_operation_new(&w->work, &w->o, d);
    w->info.size = sizeof w->info;
    return err ? err : sherd_operation_get(w->work, &w->info, d);
}

int sherd__product_run_run(sherd__product_run *w, sherd_diag *d)
{
    const sherd__cli *cli = w->cli;
    sherd__progress_mode mode = (sherd__progress_mode)sherd__opt_choice(cli, "progress");
    sherd__nodes_say_start(cli, &w->nodes);
    sherd__progress_init(&w->progress, stderr, cli->quiet ? SHERD__PROGRESS_NONE : mode,
                         w->operation, "tasks", 0);
    int err = sherd_operation_run(w->work, d);
    sherd__progress_fini(&w->progress);
    (void)!sherd_operation_get(w->work, &w->info, NULL);
    return sherd__product_run_report(w, err, d);
}

void sherd__product_run_fini(sherd__product_run *w)
{
    sherd_operation_free(w->work);
    sherd__wipe(w, sizeof *w);
}
