/*
 * `sherd prepare B.npy --rows N -o FILE`: one-time masks for `--scheme blind`. With --show,
 * describes the purpose of a mask file and how much of it is left.
 */
#include <inttypes.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/fields.h"
#include "cli/operands.h"
#include "cli/paths.h"
#include "cli/progress.h"
#include "core/clock.h"
#include "sherd/machine.h"
#include "sherd/masks.h"

static void on_progress(void *ctx, const sherd_progress *p)
{
    sherd__progress_update(ctx, p->done, p->total, NULL, sherd__clock_s());
}

/* Masks of a B that changed meanwhile fit no B. */
static int unchanged(void *file, sherd_diag *d)
{
    return sherd_array_check(file, d);
}

static int print_json(sherd__cli *cli, const char *path, const sherd_masks_info *i, sherd_diag *d)
{
    json_t *obj = sherd__cli_json_new(cli);
    json_object_set_new(obj, "file", sherd__cli_json_text(path));
    sherd__fields_json(obj, i, sherd_masks_info_fields, NULL);
    return sherd__cli_json_end(cli, obj, d);
}

static int show(sherd__cli *cli, sherd_diag *d)
{
    sherd_masks_info i = { .size = sizeof i };
    int err = sherd_masks_get(cli->args[0], NULL, &i, d);
    if (err) return err;
    if (cli->json) return print_json(cli, cli->args[0], &i, d);
    sherd__cli_print_prose(2,
                           "%" PRIu64 " of %" PRIu64 " rows are left; for a B of %" PRIu64
                           " x %" PRIu64 ", %" PRIu32 " bits of A and %" PRIu32 " of B, %" PRIu32
                           " prime%s",
                           i.left, i.rows, i.k, i.m, i.bits_a, i.bits_b, i.primes,
                           i.primes == 1 ? "" : "s");
    return 0;
}

static int make(sherd__cli *cli, const char *path, sherd_masks_info *info, sherd_diag *d)
{
    sherd__progress_line line;
    sherd__operand_file b;
    sherd__progress_mode mode = (sherd__progress_mode)sherd__opt_choice(cli, "progress");
    sherd_masks_options opt = {
        .size = sizeof opt,
        .rows = (uint64_t)sherd__opt_int(cli, "rows"),
        .bits_a = (uint32_t)sherd__opt_int(cli, "bits"),
        .bits_b = (uint32_t)sherd__opt_int(cli, "bits-b"),
        .memory = sherd__opt_size(cli, "memory"),
        .name = cli->args[0],
        .hooks = { sherd__cli_stops, NULL, on_progress, &line },
        .check = unchanged,
    };
    if (sherd__opt_given(cli, "threads"))
        sherd_blas_threads_set((unsigned)sherd__opt_int(cli, "threads"));
    int err = sherd__operand_file_open(&b, cli->args[0], true, d);
    opt.check_ctx = b.file;
    if (!err) {
        sherd__progress_init(&line, stderr, cli->quiet ? SHERD__PROGRESS_NONE : mode, "prepare",
                             "rows", sherd__clock_s());
        err = sherd_masks_prepare(path, b.view, &opt, info, d);
        sherd__progress_fini(&line);
    }
    sherd__operand_file_close(&b);
    return err;
}

static int run_prepare(sherd__cli *cli, sherd_diag *d)
{
    const char *path = sherd__opt_text(cli, "output");
    sherd_masks_info i = { .size = sizeof i };
    char bytes[24];
    if (sherd__opt_flag(cli, "show")) return show(cli, d);
    if (!path || !sherd__opt_given(cli, "rows"))
        return sherd__fail(d, SHERD_EINVAL, "sherd help prepare", "needs %s",
                           !path ? "-o FILE" : "--rows N, as many as A will have");
    double began = sherd__clock_s();
    int err = sherd__paths_differ(cli, 1, d);
    if (!err) err = sherd__paths_output(cli, NULL, d);
    if (!err) err = make(cli, path, &i, d);
    if (err) return err;
    if (cli->json) return print_json(cli, path, &i, d);
    char took[24];
    sherd__cli_say(cli,
                   "wrote %s: masks for %" PRIu64 " rows of A times %s, %" PRIu32 " and %" PRIu32
                   " bits, %s, in %s",
                   path, i.rows, cli->args[0], i.bits_a, i.bits_b, sherd__cli_bytes(i.bytes, bytes),
                   sherd__cli_seconds(sherd__clock_s() - began, took));
    sherd__cli_say(cli, "anyone who reads it, now or later, can remove the masks: keep it private, "
                        "and delete it when it is used up");
    return 0;
}

static const sherd__example examples[] = {
    { "sherd prepare B.npy --rows 10000 -o B.masks",
      "masks for products A B.npy, for 10000 rows of A in total" },
    { "sherd multiply A.npy B.npy --scheme blind --masks B.masks -o C.npy -n 1",
      "uses up one row of masks for each row of A" },
    { "sherd prepare --show B.masks", "how many rows are left, and for which B" },
    { 0 },
};

/* clang-format off */
static const sherd__option options[] = {
    { .name = "output", .letter = 'o', .type = SHERD__FILE, .arg = "FILE",
      .flags = SHERD__OPT_ONLY_ARGV,
      .help = "write the masks to this file (0600); on failure an existing file is kept" },
    { .name = "rows", .type = SHERD__INT, .arg = "N", .min = 1, .max = 4294967295.0,
      .flags = SHERD__OPT_ONLY_ARGV, .help = "number of rows of A, in all products together" },
    { .name = "bits", .type = SHERD__INT, .arg = "B", .min = 2, .max = 26, .preset = "17",
      .help = "width of A's entries in fixed point, and of B's" },
    { .name = "bits-b", .type = SHERD__INT, .arg = "B", .min = 2, .max = 26,
      .help = "width of B's entries [as --bits; for integers, what they need]" },
    { .name = "show", .type = SHERD__FLAG, .flags = SHERD__OPT_ONLY_ARGV,
      .help = "describe a file of masks: for which B, and how many rows are left" },
    SHERD__OPT_MEMORY,
    SHERD__OPT_THREADS,
    SHERD__OPT_PROGRESS,
    { 0 },
};
/* clang-format on */

const sherd__verb sherd__verb_prepare = {
    .name = "prepare",
    .usage = "B.npy --rows N -o FILE",
    .summary = "make one-time masks for --scheme blind",
    .details =
        "Makes a file of secret random rows R and of their products R B, for `sherd multiply "
        "--scheme blind`: nodes are sent A + R and all of B, and R B is subtracted from their "
        "answers on this machine. One node is enough, and all nodes may collude; they see B. "
        "Preparing costs as much as the product does, on this machine.\n\n"
        "Masks are for this B and for the given widths only. A product uses as many rows as A has, "
        "whether it succeeds or not, and no row is used twice: rows are marked as used in the file "
        "before anything is sent, and counted in $XDG_STATE_HOME/sherd/masks (or "
        "~/.local/state/sherd/masks) as well, so that an older copy of the file, or one that was "
        "moved to another machine or account, is refused (exit 10).\n\n"
        "Anyone who reads FILE can remove the masks of all data that was or will be sent with it. "
        "It is written with mode 0600, and refused if others can read it. Delete it when it is "
        "used up, and keep it out of backups.",
    .examples = examples,
    .options = options,
    .args_min = 1,
    .args_max = 1,
    .run = run_prepare,
};
