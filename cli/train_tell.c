/*
 * Output of training. The log has one JSON object per line (cli/jsonl.h), so that the log of a
 * killed process can be parsed up to its last line. Figures that do not exist (accuracy of values,
 * validation without data) are left out rather than written as null.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli/train.h"
#include "core/alloc.h"
#include "core/clock.h"

#define LOG_SCHEMA "sherd/train-log/1"
#define TABLE_ROWS 20
#define DRAW_SECONDS 0.1

/* ---- numbers --------------------------------------------------------------------------------- */

static void set_real(json_t *o, const char *key, double x)
{
    if (isfinite(x)) json_object_set_new(o, key, json_real(x));
}

static const char *figure(double x, const char *format, char out[24])
{
    if (isnan(x)) snprintf(out, 24, "-");
    else if (fabs(x) >= 1e6) snprintf(out, 24, "%.4e", x);
    else snprintf(out, 24, format, x);
    return out;
}

static uint64_t epochs_of(const sherd__train *t)
{
    uint64_t each = sherd__trainer_order(t->trainer)->per_epoch;
    return (sherd__trainer_steps(t->trainer) + each - 1) / each;
}

/* ---- log ------------------------------------------------------------------------------------- */

/* Writes enough digits to restore every bit. */
static int log_line(sherd__train *t, json_t *o, sherd_diag *d)
{
    return sherd__jsonl_add(&t->log, o, 17, d);
}

static json_t *event(const char *name)
{
    return json_pack("{s:s, s:s}", "schema", LOG_SCHEMA, "event", name);
}

static json_t *recipe_text(const sherd__train *t)
{
    sherd__buf text;
    sherd__buf_init(&text, SHERD__RECIPE_BYTES_MAX, 0);
    int err = sherd__recipe_print(&t->recipe, SHERD__RECIPE_ALL, &text);
    json_t *o = err ? NULL : json_stringn((const char *)text.data, text.len);
    sherd__buf_fini(&text);
    return o;
}

static void set_where(const sherd__train *t, json_t *o)
{
    uint32_t nodes = sherd__remote_products_traffic_now(&t->over).nodes;
    json_object_set_new(o, "by", json_string(t->stepper.ops->name));
    json_object_set_new(o, "nodes", json_integer(nodes));
    if (sherd__train_others())
        json_object_set_new(o, "among", json_string(sherd__train_others()->name));
    if (nodes > 0 && !t->by)
        json_object_set_new(o, "scheme",
                            json_string(sherd_scheme_describe(t->over.opt.scheme)->name));
    json_object_set_new(o, "bits", json_integer(t->over.bits));
}

int sherd__train_log_open(sherd__train *t, sherd_diag *d)
{
    const char *path = sherd__opt_text(t->cli, "log");
    if (!path) return 0;
    int err = sherd__jsonl_open(&t->log, path, t->first_step > 0, d); /* continues if resumed */
    if (err) return err;
    json_t *o = event("start");
    json_object_set_new(o, "name", sherd__cli_json_text(t->name));
    json_object_set_new(o, "recipe", recipe_text(t));
    json_object_set_new(o, "data", sherd__cli_json_text(t->data.says));
    if (t->data.train.x.rows > 0) /* else unknown in this process */
        json_object_set_new(o, "examples", json_integer((json_int_t)t->data.train.x.rows));
    json_object_set_new(o, "steps", json_integer((json_int_t)sherd__trainer_steps(t->trainer)));
    json_object_set_new(o, "from_step", json_integer((json_int_t)t->first_step));
    json_object_set_new(o, "epochs", json_integer((json_int_t)epochs_of(t)));
    set_where(t, o);
    return log_line(t, o, d);
}

static json_t *epoch_object(const sherd__told_epoch *e)
{
    json_t *o = json_pack("{s:I, s:I, s:f}", "epoch", (json_int_t)e->e.epoch, "step",
                          (json_int_t)e->e.step, "cost", e->e.cost);
    set_real(o, "accuracy", e->e.accuracy);
    set_real(o, "validation_cost", e->e.validation_cost);
    set_real(o, "validation_accuracy", e->e.validation_accuracy);
    set_real(o, "float64_accuracy", e->float64_accuracy);
    set_real(o, "float64_validation_accuracy", e->float64_validation);
    set_real(o, "rate", e->e.rate);
    set_real(o, "epsilon", e->epsilon);
    if (isfinite(e->epsilon)) set_real(o, "delta", e->delta);
    set_real(o, "seconds", e->seconds);
    set_real(o, "examples_per_second", e->examples_per_second);
    json_object_set_new(o, "bytes_out", json_integer((json_int_t)e->bytes_out));
    json_object_set_new(o, "bytes_in", json_integer((json_int_t)e->bytes_in));
    return o;
}

/* ---- during training ------------------------------------------------------------------------- */

void sherd__train_say_start(const sherd__train *t)
{
    if (t->keep && t->first_step == 0 && sherd__opt_flag(t->cli, "resume"))
        sherd__cli_say(t->cli, "%s held no checkpoint: this run begins anew",
                       sherd__opt_text(t->cli, "checkpoint"));
    if (!t->keep && sherd__opt_text(t->cli, "output") == NULL)
        sherd__cli_say(t->cli, "no -o MODEL.npz: the model will not be kept");
    if (t->data.embedded && t->recipe.data == SHERD__DATA_IDX)
        sherd__cli_say(t->cli, "no --data DIR: training on digits that come with sherd, not on "
                               "MNIST");
    if (t->secure)
        sherd__cli_say(t->cli, "%s: %zu parameters, %" PRIu64 " rounds; %s; %s", t->name,
                       sherd__network_count(sherd__trainer_network(t->trainer)),
                       sherd__trainer_steps(t->trainer), t->data.says,
                       sherd__remote_products_says(&t->over));
    else
        sherd__cli_say(t->cli, "%s: %zu parameters, %" PRIu64 " steps of %zu; %s; %s", t->name,
                       sherd__network_count(sherd__trainer_network(t->trainer)),
                       sherd__trainer_steps(t->trainer), sherd__trainer_order(t->trainer)->batch,
                       t->data.says, sherd__remote_products_says(&t->over));
}

void sherd__train_progress(sherd__train *t)
{
    const sherd__train_state *s = sherd__trainer_state(t->trainer);
    uint64_t steps = sherd__trainer_steps(t->trainer),
             each = sherd__trainer_order(t->trainer)->per_epoch;
    double now = sherd__clock_s(), cost = t->last.cost, accuracy = t->last.accuracy;
    char text[200], c[24], a[24], bytes[24];
    if (t->progress.mode == SHERD__PROGRESS_NONE ||
        (s->step < steps && now - t->progress.drawn < DRAW_SECONDS))
        return;
    t->progress.drawn = now;
    if (s->seen > 0) cost = s->cost / (double)s->seen;
    if (s->seen > 0 && t->data.train.targets.labels) accuracy = (double)s->hits / (double)s->seen;
    int at = snprintf(text, sizeof text,
                      "epoch %" PRIu64 "/%" PRIu64 "  loss %s  accuracy %s  "
                      "%.0f examples/s",
                      (s->step - 1) / each + 1, epochs_of(t), figure(cost, "%.5f", c),
                      figure(accuracy, "%.4f", a), (double)t->examples / (now - t->began + 1e-9));
    if (t->over.cluster) {
        sherd__remote_products_traffic x = sherd__remote_products_traffic_now(&t->over);
        snprintf(text + at, sizeof text - (size_t)at, "  %" PRIu32 " node%s  %s", x.up,
                 x.up == 1 ? "" : "s", sherd__cli_bytes(x.bytes_out + x.bytes_in, bytes));
    }
    t->progress.drawn = -1; /* always draw: the interval was checked above */
    sherd__progress_update(&t->progress, s->step - t->first_step, steps - t->first_step, text, now);
    t->progress.drawn = now;
}

int sherd__train_tell_epoch(sherd__train *t, const sherd__train_epoch *e, sherd_diag *d)
{
    sherd__remote_products_traffic x = sherd__remote_products_traffic_now(&t->over);
    double now = sherd__clock_s();
    const sherd__train_privacy privacy = sherd__train_secure_privacy(t);
    if (t->told_len == t->told_cap) {
        size_t cap = t->told_cap > 0 ? 2 * t->told_cap : 64;
        void *more = sherd__realloc(t->told, cap * sizeof *t->told);
        if (!more) return sherd__fail(d, SHERD_ENOMEM, NULL, "no memory for %zu epochs", cap);
        t->told = more;
        t->told_cap = cap;
    }
    sherd__told_epoch *told = &t->told[t->told_len++];
    *told = (sherd__told_epoch){ .e = *e,
                                 .seconds = now - t->began,
                                 .bytes_out = x.bytes_out,
                                 .bytes_in = x.bytes_in,
                                 .epsilon = privacy.epsilon,
                                 .delta = privacy.delta,
                                 .examples_per_second = (double)(t->examples - t->told_examples) /
                                                        (now - t->told_at + 1e-9) };
    sherd__train_check_float64(t, &told->float64_accuracy, &told->float64_validation);
    t->told_at = now;
    t->told_examples = t->examples;
    char c[24], a[24], v[24];
    if (t->cli->verbose > 0) {
        sherd__progress_clear();
        sherd__cli_note(t->cli,
                        "epoch %" PRIu64 ", step %" PRIu64 ": cost %s, accuracy %s, "
                        "validation %s",
                        e->epoch, e->step, figure(e->cost, "%.7f", c),
                        figure(e->accuracy, "%.5f", a), figure(e->validation_accuracy, "%.5f", v));
    }
    if (t->log.fd < 0) return 0;
    json_t *o = epoch_object(told);
    json_object_set_new(o, "schema", json_string(LOG_SCHEMA));
    json_object_set_new(o, "event", json_string("epoch"));
    json_object_set_new(o, "nodes", json_integer(x.up));
    if (t->circle) json_object_set_new(o, "links", sherd__train_allreduce_links(t));
    return log_line(t, o, d);
}

/* ---- at the end ------------------------------------------------------------------------------ */

static int log_end(sherd__train *t, int err, sherd_diag *d)
{
    if (t->log.fd < 0) return 0;
    json_t *o = event("end");
    json_object_set_new(o, "ok", json_boolean(err == 0));
    json_object_set_new(o, "step",
                        json_integer((json_int_t)sherd__trainer_state(t->trainer)->step));
    if (err) {
        json_object_set_new(o, "code", json_integer(sherd_err_exit(err)));
        json_object_set_new(o, "message", sherd__cli_json_text(d->message));
    }
    int e = log_line(t, o, err ? NULL : d);
    return e ? e : sherd__jsonl_sync(&t->log, err ? NULL : d);
}

static void print_row(const sherd__told_epoch *e, bool check)
{
    char c[24], a[24], v[24], s[24], f[24];
    printf("%8" PRIu64 " %12s %9s %11s", e->e.epoch, figure(e->e.cost, "%.7f", c),
           figure(e->e.accuracy, "%.5f", a), figure(e->e.validation_accuracy, "%.5f", v));
    if (check)
        printf(" %9s",
               figure(isnan(e->float64_validation) ? e->float64_accuracy : e->float64_validation,
                      "%.5f", f));
    printf(" %10s %12.0f\n", sherd__cli_seconds(e->seconds, s), e->examples_per_second);
}

/* Prints the first row, the last, and as many between them as fit on a screen. */
static void print_table(const sherd__train *t)
{
    bool check = t->check != NULL;
    if (t->told_len == 0) return;
    printf("%8s %12s %9s %11s%s %10s %12s\n", "epoch", "cost", "accuracy", "validation",
           check ? "   float64" : "", "time", "examples/s");
    size_t stride = (t->told_len + TABLE_ROWS - 1) / TABLE_ROWS;
    for (size_t i = 0; i < t->told_len; i++)
        if (i % stride == 0 || i + 1 == t->told_len) print_row(&t->told[i], check);
}

static void print_end(const sherd__train *t)
{
    static const char *const lines[] = { "log", "trace" };
    const char *output = sherd__opt_text(t->cli, "output");
    sherd__remote_products_traffic x = sherd__remote_products_traffic_now(&t->over);
    char s[24], out[24], in[24];
    uint64_t parameters, epochs;
    uint64_t step = sherd__trainer_state(t->trainer)->step, steps = step - t->first_step;
    if (steps == 0) {
        printf("nothing is left to do: %" PRIu64 " steps were made before\n", step);
    } else {
        printf("\n%" PRIu64 " step%s in %s, %.0f examples/s, %s", steps, steps == 1 ? "" : "s",
               sherd__cli_seconds(t->seconds, s), (double)t->examples / (t->seconds + 1e-9),
               sherd__remote_products_says(&t->over));
        if (x.nodes > 0)
            printf("; %" PRIu32 " of %" PRIu32 " nodes up, %s out, %s in", x.up, x.nodes,
                   sherd__cli_bytes(x.bytes_out, out), sherd__cli_bytes(x.bytes_in, in));
        printf("\n");
    }
    if (t->by) sherd__train_by_print(t);
    if (t->secure) sherd__train_secure_print(t);
    sherd__train_check_count(t, &parameters, &epochs);
    if (t->check)
        printf("checked: all %" PRIu64 " parameters equal the same training here, bit for bit, "
               "after %s%" PRIu64 " epoch%s\n",
               parameters, epochs == 1 ? "" : "each of ", epochs, epochs == 1 ? "" : "s");
    if (output) printf("model: %s\n", output);
    if (t->plotted) printf("plot: %s\n", sherd__opt_text(t->cli, "plot"));
    for (size_t i = 0; i < 2; i++)
        if (sherd__opt_text(t->cli, lines[i]))
            printf("%s: %s\n", lines[i], sherd__opt_text(t->cli, lines[i]));
}

static json_t *result_object(const sherd__train *t)
{
    json_t *o = sherd__cli_json_new(t->cli), *epochs = json_array();
    sherd__remote_products_traffic x = sherd__remote_products_traffic_now(&t->over);
    const char *output = sherd__opt_text(t->cli, "output");
    uint64_t parameters, checked;
    for (size_t i = 0; i < t->told_len; i++)
        json_array_append_new(epochs, epoch_object(&t->told[i]));
    sherd__train_check_count(t, &parameters, &checked);
    json_object_set_new(o, "name", sherd__cli_json_text(t->name));
    json_object_set_new(o, "recipe", recipe_text(t));
    json_object_set_new(o, "data", sherd__cli_json_text(t->data.says));
    set_where(t, o);
    json_object_set_new(o, "parameters", json_integer((json_int_t)parameters));
    json_object_set_new(o, "steps",
                        json_integer((json_int_t)sherd__trainer_state(t->trainer)->step));
    json_object_set_new(o, "epochs", epochs);
    json_object_set_new(o, "seconds", json_real(t->seconds));
    json_object_set_new(o, "examples_per_second",
                        json_real((double)t->examples / (t->seconds + 1e-9)));
    json_object_set_new(o, "bytes_out", json_integer((json_int_t)x.bytes_out));
    json_object_set_new(o, "bytes_in", json_integer((json_int_t)x.bytes_in));
    if (t->check)
        json_object_set_new(o, "check",
                            json_pack("{s:b, s:I}", "equal", 1, "epochs", (json_int_t)checked));
    if (t->by && t->stepper.ops)
        json_object_set_new(o, t->secure ? "aggregate" : "gradients",
                            t->secure ? sherd__train_secure_json(t) : sherd__train_by_json(t));
    if (output) json_object_set_new(o, "model", sherd__cli_json_text(output));
    if (t->plotted)
        json_object_set_new(o, "plot", sherd__cli_json_text(sherd__opt_text(t->cli, "plot")));
    return o;
}

/* Warns of divergence, which may end in a finite cost. Steps have different examples, hence the
 * factor of 2. The first example may happen to be predicted well before training. With classes, a
 * cost up to twice that of guessing therefore does not count as divergence. */
static void warn_of_rise(const sherd__train *t)
{
    double guess = t->recipe.loss == SHERD__LOSS_CROSS_ENTROPY
                       ? log((double)sherd__network_width(sherd__trainer_network(t->trainer)))
                       : 0;
    char last[24], first[24];
    if (!(t->last.cost > 2 * t->first_cost && t->last.cost > 2 * guess)) return;
    sherd__cli_warn(t->cli,
                    "the cost rose from %s in the first step to %s in the last epoch: a "
                    "smaller rate may help, or inputs scaled to about 1",
                    figure(t->first_cost, "%.5g", first), figure(t->last.cost, "%.5g", last));
}

int sherd__train_tell_end(sherd__train *t, int err, sherd_diag *d)
{
    sherd__progress_fini(&t->progress);
    if (!err) warn_of_rise(t);
    int e = log_end(t, err, d);
    if (!err) err = e;
    if (t->cli->json) {
        t->result = result_object(t);
        return err;
    }
    print_table(t);
    if (!err) print_end(t);
    return err;
}

void sherd__train_tell_fini(sherd__train *t)
{
    sherd__jsonl_close(&t->log);
    sherd__free(t->told);
    t->told = NULL;
}
