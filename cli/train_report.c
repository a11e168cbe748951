/*
 * Messages and log of training. The log has one JSON object per line (cli/jsonl.h), so that the log
 * of a killed process can be parsed up to its last line. Figures that do not exist (accuracy of
 * values, validation without data) are left out rather than written as null. Objects are made from
 * the tables of fields of the library's reports.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli/exposures.h"
#include "cli/fields.h"
#include "cli/nodes.h"
#include "cli/train.h"
#include "core/alloc.h"
#include "core/clock.h"

#define LOG_SCHEMA "sherd/train-log/2"
#define SAME_FRACTION 5e-4 /* less than is printed */
#define LOG_DIGITS 17      /* restore every bit */
#define TRACE_DIGITS 9

static const char *figure(double x, const char *format, char out[24])
{
    if (isnan(x)) snprintf(out, 24, "-");
    else if (fabs(x) >= 1e6) snprintf(out, 24, "%.4e", x);
    else snprintf(out, 24, format, x);
    return out;
}

static sherd_train_report report_of(const sherd__train *t)
{
    sherd_train_report r = { .size = sizeof r };
    (void)!sherd_training_report_get(t->training, &r, NULL);
    return r;
}

static sherd_data_info data_of(const sherd__train *t)
{
    sherd_data_info x = { .size = sizeof x };
    (void)!sherd_data_get(sherd_training_data(t->training), &x, NULL);
    return x;
}

/* ---- objects --------------------------------------------------------------------------------- */

static json_t *event(const char *name)
{
    return json_pack("{s:s, s:s}", "schema", LOG_SCHEMA, "event", name);
}

/* Sets recipe and data, and where steps are made. */
static void set_training(const sherd__train *t, json_t *o)
{
    static const char *const names[] = { "by", "nodes", "among", "scheme", "bits", NULL };
    const sherd_train_report r = report_of(t);
    json_object_set_new(o, "name", sherd__cli_json_text(t->name));
    json_object_set_new(o, "recipe", json_string(sherd_recipe_text(t->recipe)));
    json_object_set_new(o, "data", sherd__cli_json_text(data_of(t).text));
    sherd__fields_json_of(o, &r, sherd_train_report_fields, names);
    if (r.seed_known) json_object_set_new(o, "seed", json_integer((json_int_t)r.seed_number));
    if (!r.among) json_object_del(o, "among");
    if (!r.scheme) json_object_del(o, "scheme");
    if (r.meta) json_object_set_new(o, "meta", sherd__cli_json_text(r.meta));
    if (r.meta) json_object_set_new(o, "meta_reused", json_boolean(r.meta_reused));
}

static json_t *epoch_object(const sherd_epoch *e, const char *const *without)
{
    json_t *o = sherd__fields_object(e, sherd_epoch_fields, without), *value;
    const char *key;
    void *next;
    json_object_foreach_safe(o, next, key, value) if (json_is_null(value)) json_object_del(o, key);
    return o;
}

static json_t *links_of(const sherd__train *t)
{
    json_t *links = json_array();
    sherd_train_link x = { .size = sizeof x };
    for (uint32_t i = 0; sherd_training_link_at(t->training, i, &x, NULL) == 0; i++)
        json_array_append_new(links, sherd__fields_object(&x, sherd_train_link_fields, NULL));
    return links;
}

static json_t *allreduce_object(const sherd__train *t)
{
    sherd_train_allreduce r = { .size = sizeof r };
    if (sherd_training_allreduce_get(t->training, &r, NULL) != 0) return NULL;
    json_t *o = sherd__fields_object(&r, sherd_train_allreduce_fields, NULL);
    json_object_set_new(o, "links", links_of(t));
    return o;
}

static json_t *gradients_object(const sherd__train *t)
{
    static const char *const without[] = { "threads", "parts", NULL };
    sherd_train_gradients r = { .size = sizeof r };
    sherd_train_report all = report_of(t);
    if (sherd_training_gradients_get(t->training, &r, NULL) != 0) return NULL;
    json_t *o = sherd__fields_object(&r, sherd_train_gradients_fields, without);
    json_t *circle = allreduce_object(t);
    if (r.pace_times == 0) {
        json_object_set_new(o, "pace_node", json_null());
        json_object_del(o, "pace_times");
    }
    if (all.among)
        json_object_set_new(o, "among",
                            json_pack("{s:s, s:I}", "by", all.among, "processes",
                                      (json_int_t)all.processes));
    if (circle) json_object_set_new(o, "circle", circle);
    return o;
}

static bool exposure_at(const sherd__train *t, uint32_t operation, uint32_t node,
                        sherd_train_exposure *out)
{
    *out = (sherd_train_exposure){ .size = sizeof *out };
    return sherd_training_exposure_at(t->training, operation, node, out, NULL) == 0;
}

/* Returns an object for each operation, with arrays by node; NULL without metadata. */
static json_t *exposures_of(const sherd__train *t)
{
    static const char *const names[] = { "operation", "kind", "calls", NULL };
    json_t *list = NULL;
    sherd_train_exposure e;
    for (uint32_t i = 0; exposure_at(t, i, 0, &e); i++) {
        json_t *o = json_object(), *a = json_array(), *b = json_array();
        bool both = sherd_op_operands(e.kind) == 2;
        if (!list) list = json_array();
        sherd__fields_json_of(o, &e, sherd_train_exposure_fields, names);
        for (uint32_t n = 0; exposure_at(t, i, n, &e); n++) {
            json_array_append_new(a, json_real(e.exposed_a));
            json_array_append_new(b, json_real(e.exposed_b));
        }
        json_object_set_new(o, "exposed_a", a);
        if (both) json_object_set_new(o, "exposed_b", b);
        else json_decref(b);
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *secure_object(const sherd__train *t)
{
    sherd_train_secure r = { .size = sizeof r };
    bool secure = sherd_training_secure_get(t->training, &r, NULL) == 0;
    return secure ? sherd__fields_object(&r, sherd_train_secure_fields, NULL) : NULL;
}

/* Sets how early stopping ended, if the recipe has patience. */
static void set_best(json_t *o, const sherd_train_report *r)
{
    static const char *const names[] = { "stopped_early", "best_step", "best_loss", "best_accuracy",
                                         NULL };
    if (r->best_step == 0) return;
    sherd__fields_json_of(o, r, sherd_train_report_fields, names);
    if (isnan(r->best_accuracy)) json_object_del(o, "best_accuracy");
}

/* ---- log and trace --------------------------------------------------------------------------- */

int sherd__train_logs_open(sherd__train *t, sherd_diag *d)
{
    const char *log = sherd__opt_text(t->cli, "log"), *trace = sherd__opt_text(t->cli, "trace");
    int err = trace ? sherd__jsonl_open(&t->trace, trace, false, d) : 0;
    if (err || !log) return err;
    sherd_train_report r = report_of(t);
    err = sherd__jsonl_open(&t->log, log, r.first_step > 0, d); /* continues if resumed */
    if (err) return err;
    json_t *o = event("start");
    set_training(t, o);
    uint64_t examples = data_of(t).examples;
    if (examples > 0) /* else unknown in this process */
        json_object_set_new(o, "examples", json_integer((json_int_t)examples));
    json_object_set_new(o, "steps", json_integer((json_int_t)r.steps));
    json_object_set_new(o, "from_step", json_integer((json_int_t)r.first_step));
    json_object_set_new(o, "epochs", json_integer((json_int_t)r.epochs));
    json_object_set_new(o, "steps_per_epoch", json_integer((json_int_t)r.steps_per_epoch));
    return sherd__jsonl_add(&t->log, o, LOG_DIGITS, d);
}

static int log_end(sherd__train *t, int err, sherd_diag *d)
{
    if (t->log.fd < 0) return 0;
    json_t *o = event("end");
    json_object_set_new(o, "ok", json_boolean(err == 0));
    const sherd_train_report r = report_of(t);
    json_object_set_new(o, "step", json_integer((json_int_t)r.step));
    if (!err) set_best(o, &r);
    if (err) {
        json_object_set_new(o, "code", json_integer(sherd_err_exit(err)));
        json_object_set_new(o, "message", sherd__cli_json_text(d->message));
    }
    int e = sherd__jsonl_add(&t->log, o, LOG_DIGITS, err ? NULL : d);
    return e ? e : sherd__jsonl_sync(&t->log, err ? NULL : d);
}

static void trace_line(sherd__train *t, const char *name, const void *x, sherd__fields fields)
{
    json_t *o = json_pack("{s:s}", "event", name);
    sherd__fields_json(o, x, fields, NULL);
    if (sherd__jsonl_add(&t->trace, o, TRACE_DIGITS, NULL)) t->trace_failed = true;
}

void sherd__train_on_pass(void *train, const sherd_train_pass *p)
{
    trace_line(train, "pass", p, sherd_train_pass_fields);
}

void sherd__train_on_update(void *train, const sherd_train_update *u)
{
    trace_line(train, "update", u, sherd_train_update_fields);
}

static int trace_end(sherd__train *t, sherd_diag *d)
{
    if (t->trace.fd < 0) return 0;
    int err = sherd__jsonl_sync(&t->trace, d);
    if (!err && t->trace_failed)
        err = sherd__fail(d, SHERD_EIO, NULL, "%s: cannot write", t->trace.path);
    return err;
}

/* ---- during training ------------------------------------------------------------------------- */

/* "10 epochs of 469 steps, 128 examples each". The last epoch may have fewer steps. */
static void say_length(const sherd__train *t, const sherd_train_report *r, char out[200])
{
    sherd_train_secure s = { .size = sizeof s };
    bool secure = sherd_training_secure_get(t->training, &s, NULL) == 0;
    bool one = r->steps_per_epoch == 1;
    int at = snprintf(out, 200, "%" PRIu64 " epoch%s of %" PRIu64 " %s%s", r->epochs,
                      r->epochs == 1 ? "" : "s", r->steps_per_epoch, secure ? "round" : "step",
                      one ? "" : "s");
    if (r->steps != r->epochs * r->steps_per_epoch)
        at += snprintf(out + at, 200 - (size_t)at, " (%" PRIu64 " in all)", r->steps);
    if (secure)
        snprintf(out + at, 200 - (size_t)at,
                 ", %" PRIu64 " of %" PRIu64 " places of each node in a round", s.rows, s.places);
    else
        snprintf(out + at, 200 - (size_t)at, ", %" PRIu64 " example%s%s", r->batch,
                 r->batch == 1 ? "" : "s", one ? "" : " each");
}

void sherd__train_say_start(const sherd__train *t)
{
    const sherd__cli *cli = t->cli;
    sherd_train_report r = report_of(t);
    sherd_data_info data = data_of(t);
    char length[200];
    if (t->o.meta && !t->o.seed && !r.seed_known && r.first_step == 0)
        sherd__cli_say(cli, "%s serves this training only: --seed FILE would allow to repeat it",
                       r.meta);
    if (t->o.resume && r.first_step == 0)
        sherd__cli_say(cli, "%s has no checkpoint: this run begins with the first step",
                       t->o.checkpoints);
    if (!t->o.checkpoints && !sherd__opt_text(cli, "output"))
        sherd__cli_say(cli, "no -o MODEL.npz: the model will not be saved");
    if (data.embedded && strstr(sherd_recipe_text(t->recipe), "data = idx\n"))
        sherd__cli_say(cli, "no --data DIR: training on digits that come with sherd, not on MNIST");
    say_length(t, &r, length);
    sherd__cli_say(cli, "%s: %" PRIu64 " parameters, %s", t->name, r.parameters, length);
    sherd__cli_say(cli, "%s", data.text);
    sherd__cli_say(cli, "%s", r.sees);
}

void sherd__train_on_progress(void *train, const sherd_progress *p)
{
    sherd__train *t = train;
    char text[200], c[24], a[24] = "", bytes[24];
    if (t->progress.mode == SHERD__PROGRESS_NONE) return;
    sherd_train_report r = report_of(t);
    if (!isnan(r.accuracy)) snprintf(a, sizeof a, "  accuracy %.4f", r.accuracy);
    int at = snprintf(text, sizeof text,
                      "epoch %" PRIu64 "/%" PRIu64 "  loss %s%s  %.0f examples/s",
                      (r.step - 1) / r.steps_per_epoch + 1, r.epochs, figure(r.loss, "%.4f", c), a,
                      r.examples_per_second);
    if (r.nodes > 0)
        snprintf(text + at, sizeof text - (size_t)at, "  %" PRIu32 " node%s  %s", p->nodes_up,
                 p->nodes_up == 1 ? "" : "s", sherd__cli_bytes(p->bytes_out + p->bytes_in, bytes));
    double now = sherd__clock_s();
    if (!t->reported) { /* the first steps include the start, and data that then stay at nodes */
        t->reported = true;
        t->progress.from = p->done;
        t->progress.started = now;
    }
    t->progress.drawn = -1; /* always draw: the library checked the interval */
    sherd__progress_update(&t->progress, p->done, p->total, text, now);
}

int sherd__train_on_epoch(void *train, const sherd_epoch *e, sherd_diag *d)
{
    sherd__train *t = train;
    sherd__train_table_add(t, e);
    if (t->log.fd < 0) return 0;
    json_t *o = epoch_object(e, NULL);
    json_object_set_new(o, "schema", json_string(LOG_SCHEMA));
    json_object_set_new(o, "event", json_string("epoch"));
    if (t->o.aggregate == SHERD_AGGREGATE_RING ||
        t->o.aggregate == SHERD_AGGREGATE_HALVING_DOUBLING)
        json_object_set_new(o, "links", links_of(t));
    return sherd__jsonl_add(&t->log, o, LOG_DIGITS, d);
}

/* ---- at the end ------------------------------------------------------------------------------ */

#define SENTENCE 600

/* Appends to a sentence, as far as there is room. */
__attribute__((format(printf, 2, 3))) static void add(char text[SENTENCE], const char *fmt, ...)
{
    size_t at = strlen(text);
    va_list args;
    va_start(args, fmt);
    vsnprintf(text + at, SENTENCE - at, fmt, args);
    va_end(args);
}

static void add_allreduce(char text[SENTENCE], const sherd__train *t)
{
    sherd_train_allreduce r = { .size = sizeof r };
    char out[24], examples[24];
    if (sherd_training_allreduce_get(t->training, &r, NULL) != 0) return;
    add(text, ", %s among %" PRIu32 " node%s: %s on links between them; examples sent %s", r.by,
        r.members, r.members == 1 ? "" : "s",
        sherd__cli_bytes(r.link_bytes_out + r.link_bytes_in, out),
        sherd__cli_bytes(r.examples_bytes, examples));
    if (r.repeated)
        add(text, "; %" PRIu64 " round%s repeated", r.repeated,
            r.repeated == 1 ? " was" : "s were");
}

static void print_gradients(const sherd__train *t, const sherd_train_report *all)
{
    sherd_train_gradients r = { .size = sizeof r };
    char text[SENTENCE] = "";
    if (sherd_training_gradients_get(t->training, &r, NULL) != 0) return;
    add(text, "by gradients: %" PRIu64 " update%s", r.updates, r.updates == 1 ? "" : "s");
    if (all->among)
        add(text, ", among %" PRIu32 " process%s by %s", all->processes,
            all->processes == 1 ? "" : "es", all->among);
    else if (r.in_process)
        add(text, ", %" PRIu32 " thread%s", r.threads, r.threads == 1 ? "" : "s");
    add_allreduce(text, t);
    if (r.async)
        add(text, ", staleness %.2f on average, %" PRIu64 " at most", r.staleness_mean,
            r.staleness_most);
    if (r.dropped) add(text, "; %" PRIu64 " parts of lost nodes did not count", r.dropped);
    if (r.pace_times > 0)
        add(text, "; %s took %.2g times as long for a shard as the others (median)", r.pace_node,
            r.pace_times);
    sherd__cli_print_prose(2, "%s", text);
}

static void print_secure(const sherd__train *t)
{
    sherd_train_secure r = { .size = sizeof r };
    char text[SENTENCE] = "";
    if (sherd_training_secure_get(t->training, &r, NULL) != 0) return;
    add(text, "by gradients: %" PRIu64 " update%s", r.updates, r.updates == 1 ? "" : "s");
    if (r.dropped) add(text, "; %" PRIu64 " parts of lost nodes did not count", r.dropped);
    sherd__cli_print_prose(2, "%s", text);
    if (isfinite(r.epsilon))
        sherd__cli_print_prose(
            2,
            "privacy: epsilon %.4g at delta %g for adding or removing one example, after %" PRIu64
            " round%s (noise %g, clipped at %g)",
            r.epsilon, r.delta, r.rounds, r.rounds == 1 ? "" : "s", r.noise, r.clip);
    else
        sherd__cli_print_prose(2, "privacy: no bound, since rounds had no noise (--clip, --noise)");
}

/* Prints the exposures of one operation; room is for two numbers a node. The fractions of A and B
 * differ where data stay at the nodes, or a node was lost. Returns false after the last one. */
static bool print_operation(const sherd__train *t, uint32_t operation, double *room, bool *differ)
{
    uint32_t nodes = report_of(t).nodes;
    double *a = room, *b = room + nodes;
    sherd_train_exposure e;
    bool same = true;
    for (uint32_t n = 0; n < nodes; n++) {
        if (!exposure_at(t, operation, n, &e)) return false;
        a[n] = e.exposed_a;
        b[n] = e.exposed_b;
        same = same && fabs(a[n] - b[n]) <= SAME_FRACTION;
    }
    bool both = sherd_op_operands(e.kind) == 2;
    sherd__exposures_print(e.operation, both && same ? "A, B" : "A", a, nodes);
    if (both && !same) sherd__exposures_print("", "B", b, nodes);
    *differ = *differ || (both && !same);
    return true;
}

static void print_exposures(const sherd__train *t, const sherd_train_report *r)
{
    double *fractions = r->meta ? sherd__calloc(2 * (size_t)r->nodes, sizeof *fractions) : NULL;
    if (!fractions) return;
    printf("\n");
    sherd__cli_print("exposures and permutations: %s%s", r->meta,
                     r->meta_reused ? ", which served another training before" : "");
    sherd__exposures_head("% that each of them was given, at most");
    bool differ = false;
    for (uint32_t i = 0; print_operation(t, i, fractions, &differ);) i++;
    if (differ)
        printf("Where B differs from A, it stays at the nodes (all its uses are added up),\n"
               "or a node took over work.\n");
    sherd__free(fractions);
}

/* Says which parameters the model has. */
static void print_best(const sherd_train_report *r)
{
    char loss[24], accuracy[40] = "";
    if (r->best_step == 0) return;
    if (!isnan(r->best_accuracy))
        snprintf(accuracy, sizeof accuracy, ", accuracy %.5f", r->best_accuracy);
    sherd__cli_print_prose(2,
                           "%sthe model is that of epoch %" PRIu64 ", step %" PRIu64
                           ", which had the lowest validation loss: %s%s",
                           r->stopped_early ? "stopped early: " : "",
                           (r->best_step - 1) / r->steps_per_epoch + 1, r->best_step,
                           figure(r->best_loss, "%.7f", loss), accuracy);
}

static void print_line(const sherd__cli *cli, const char *line)
{
    (void)cli;
    sherd__cli_print_prose(2, "%s", line);
}

static void print_end(const sherd__train *t)
{
    static const char *const files[][2] = {
        { "output", "model" }, { "plot", "plot" }, { "log", "log" }, { "trace", "trace" }
    };
    sherd_train_report r = report_of(t);
    uint64_t steps = r.step - r.first_step;
    char s[24], out[24], in[24], text[SENTENCE] = "";
    if (steps == 0) {
        printf("nothing to do: %" PRIu64 " steps had been made before\n", r.step);
    } else {
        printf("\n");
        add(text, "%" PRIu64 " step%s in %s, %.0f examples/s, %s", steps, steps == 1 ? "" : "s",
            sherd__cli_seconds(r.seconds, s), r.examples_per_second, r.sees);
        if (r.nodes > 0)
            add(text, "; %" PRIu32 " of %" PRIu32 " nodes up, %s out, %s in", r.nodes_up, r.nodes,
                sherd__cli_bytes(r.bytes_out, out), sherd__cli_bytes(r.bytes_in, in));
        sherd__cli_print_prose(2, "%s", text);
    }
    print_gradients(t, &r);
    print_secure(t);
    if (t->cluster) sherd__nodes_print_devices(t->cli, t->cluster, print_line);
    if (steps > 0) print_exposures(t, &r);
    print_best(&r);
    if (t->o.check)
        sherd__cli_print_prose(
            2,
            "checked: all %" PRIu64
            " parameters equal those of the same training computed locally, bit for bit, "
            "after %s%" PRIu64 " epoch%s",
            r.parameters, r.epochs_checked == 1 ? "" : "each of ", r.epochs_checked,
            r.epochs_checked == 1 ? "" : "s");
    if (r.seed_known) printf("seed: %" PRIu64 "\n", r.seed_number);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const char *path = sherd__opt_text(t->cli, files[i][0]);
        if (path && (strcmp(files[i][0], "plot") != 0 || t->plotted))
            sherd__cli_print("%s: %s", files[i][1], path);
    }
}

static json_t *result_object(const sherd__train *t)
{
    static const char *const without[] = { "nodes", NULL };
    static const char *const names[] = { "parameters", "seconds",  "examples_per_second",
                                         "bytes_out",  "bytes_in", NULL };
    json_t *o = sherd__cli_json_new(t->cli), *epochs = json_array();
    const char *output = sherd__opt_text(t->cli, "output");
    sherd_train_report r = report_of(t);
    const sherd_epoch *e;
    for (size_t i = 0; (e = sherd_training_epoch_at(t->training, i)); i++)
        json_array_append_new(epochs, epoch_object(e, without));
    set_training(t, o);
    sherd__fields_json_of(o, &r, sherd_train_report_fields, names);
    json_object_set_new(o, "steps", json_integer((json_int_t)r.step)); /* those that were made */
    json_object_set_new(o, "epochs", epochs);
    json_t *devices = t->cluster ? json_array() : NULL;
    for (uint32_t i = 0; devices && i < sherd_cluster_size(t->cluster); i++)
        json_array_append_new(devices, sherd__nodes_device_object(t->cluster, i));
    if (devices) json_object_set_new(o, "devices", devices);
    if (t->o.check)
        json_object_set_new(o, "check",
                            json_pack("{s:b, s:I}", "equal", 1, "epochs",
                                      (json_int_t)r.epochs_checked));
    if (t->confusion.counts)
        json_object_set_new(o, "confusion", sherd__confusion_json(&t->confusion));
    json_t *gradients = gradients_object(t), *secure = secure_object(t),
           *exposures = exposures_of(t);
    if (exposures) json_object_set_new(o, "exposures", exposures);
    set_best(o, &r);
    if (gradients) json_object_set_new(o, "gradients", gradients);
    if (secure) json_object_set_new(o, "aggregate", secure);
    if (output) json_object_set_new(o, "model", sherd__cli_json_text(output));
    if (t->plotted)
        json_object_set_new(o, "plot", sherd__cli_json_text(sherd__opt_text(t->cli, "plot")));
    return o;
}

/* Counts what the trained network confuses, if it classifies examples of this process. */
static void count_confusion(sherd__train *t)
{
    sherd__confusion *c = &t->confusion;
    sherd_data_part part;
    c->model = sherd_training_model(t->training);
    size_t n = sherd_model_outputs(c->model);
    if (!sherd__train_is_first(t) || n > SHERD_TRAIN_CONFUSION_MAX) return;
    c->counts = sherd__calloc(n * n, sizeof *c->counts);
    if (!c->counts) return;
    if (sherd_training_confusion(t->training, c->counts, &part, NULL) == 0) {
        c->of = part == SHERD_DATA_VALIDATION ? "validation" : "training";
        return;
    }
    sherd__free(c->counts);
    c->counts = NULL;
}

int sherd__train_report_end(sherd__train *t, int err, sherd_diag *d)
{
    sherd__progress_fini(&t->progress);
    sherd__train_table_end(t);
    if (!err) count_confusion(t);
    int e = trace_end(t, err ? NULL : d);
    if (!err) err = e;
    e = log_end(t, err, d);
    if (!err) err = e;
    if (t->cli->json) {
        t->result = result_object(t);
        return err;
    }
    sherd__confusion_print(&t->confusion, stdout);
    if (!err) print_end(t);
    return err;
}
