/*
 * Parses and prints the value of each key of a recipe. Parsing is strict: a value has exactly the
 * words that it needs (learn/recipe_value.c; layers in learn/recipe_layer.c).
 */
#include "learn/recipe_keys.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "core/namelist.h"

/* ---- the network ----------------------------------------------------------------------------- */

static int read_input(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d)
{
    uint64_t side[3] = { 1, 1, 1 };
    static const char what[] = "how many numbers an example has (784), or height x width x "
                               "channels (28 x 28 x 1)";
    if (v->len != 1 && v->len != 5) return sherd__recipe_expected(v, what, NULL, d);
    for (size_t i = 0; i < v->len; i += 2)
        if (!sherd__word_count(v->words[i], SHERD__RECIPE_SIDE_MAX, &side[i / 2]) ||
            side[i / 2] == 0 || (i + 1 < v->len && strcmp(v->words[i + 1], "x") != 0))
            return sherd__recipe_expected(v, what, NULL, d);
    r->in = v->len == 1
                ? (sherd__tensor_shape){ 1, 1, (size_t)side[0] }
                : (sherd__tensor_shape){ (size_t)side[0], (size_t)side[1], (size_t)side[2] };
    return SHERD_OK;
}

static bool write_input(const sherd__recipe *r, size_t i, char out[SHERD__RECIPE_LIST])
{
    if (i > 0) return false;
    if (r->in.height == 1 && r->in.width == 1) snprintf(out, 128, "%zu", r->in.channels);
    else snprintf(out, 128, "%zu x %zu x %zu", r->in.height, r->in.width, r->in.channels);
    return true;
}

static int read_loss(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d)
{
    static const char *const names[] = { "squared", "cross-entropy", NULL };
    static const char what[] = "squared or cross-entropy";
    int i, err = sherd__recipe_one_of(v, names, what, &i, d);
    if (!err) r->loss = (sherd__loss)(i + 1);
    return err;
}

static bool write_loss(const sherd__recipe *r, size_t i, char out[SHERD__RECIPE_LIST])
{
    if (i == 0) snprintf(out, 128, "%s", sherd__loss_name(r->loss));
    return i == 0;
}

static int read_l2(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d)
{
    return sherd__recipe_number(v, 0, 1e9, "a number from 0", &r->l2, d);
}

static bool write_l2(const sherd__recipe *r, size_t i, char out[SHERD__RECIPE_LIST])
{
    if (i == 0) sherd__recipe_print_number(out, 128, r->l2);
    return i == 0;
}

static int read_bias_gradient(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d)
{
    static const char *const names[] = { "each", "total", NULL };
    static const char what[] = "each, or total (one sum over the whole layer for all its biases)";
    int i, err = sherd__recipe_one_of(v, names, what, &i, d);
    if (!err) r->bias_total = i == 1;
    return err;
}

static bool write_bias_gradient(const sherd__recipe *r, size_t i, char out[SHERD__RECIPE_LIST])
{
    if (i == 0) snprintf(out, 128, r->bias_total ? "total" : "each");
    return i == 0;
}

static int read_validation_biases(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d)
{
    static const char *const names[] = { "yes", "no", NULL };
    int i, err = sherd__recipe_one_of(v, names, "yes or no", &i, d);
    if (!err) r->validation_unbiased = i == 1;
    return err;
}

static bool write_validation_biases(const sherd__recipe *r, size_t i, char out[SHERD__RECIPE_LIST])
{
    if (i == 0) snprintf(out, 128, r->validation_unbiased ? "no" : "yes");
    return i == 0;
}

static int read_precision(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d)
{
    static const char *const names[] = { "f64", "f32", NULL };
    int i, err = sherd__recipe_one_of(v, names, "f64 or f32", &i, d);
    if (!err) r->precision = i == 1 ? SHERD_F32 : SHERD_F64;
    return err;
}

static bool write_precision(const sherd__recipe *r, size_t i, char out[SHERD__RECIPE_LIST])
{
    if (i == 0) snprintf(out, 128, r->precision == SHERD_F32 ? "f32" : "f64");
    return i == 0;
}

/* ---- data ------------------------------------------------------------------------------------ */

static const char *const data_names[] = { "idx",      "file",   "digits", "spiral",
                                          "parabola", "random", NULL };
static const char *const order_names[] = { "given", "shuffled", "batches", "drawn", NULL };

const char *sherd__data_kind_name(sherd__data_kind kind)
{
    return kind >= SHERD__DATA_IDX && kind <= SHERD__DATA_RANDOM ? data_names[kind - 1] : NULL;
}

const char *sherd__order_name(sherd__order order)
{
    return order >= SHERD__ORDER_GIVEN && order <= SHERD__ORDER_DRAWN ? order_names[order - 1]
                                                                      : NULL;
}

static int read_data(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d)
{
    static const char what[] = "idx, file, digits, spiral, parabola or random";
    int i, err = sherd__recipe_one_of(v, data_names, what, &i, d);
    if (!err) r->data = (sherd__data_kind)(i + 1);
    return err;
}

static bool write_data(const sherd__recipe *r, size_t i, char out[SHERD__RECIPE_LIST])
{
    if (i == 0) snprintf(out, 128, "%s", sherd__data_kind_name(r->data));
    return i == 0;
}

static int read_examples(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d)
{
    return sherd__recipe_count_or_all(v, &r->examples, d);
}

static bool write_examples(const sherd__recipe *r, size_t i, char out[SHERD__RECIPE_LIST])
{
    if (i == 0) sherd__recipe_print_count_or_all(out, 128, r->examples);
    return i == 0;
}

static int read_classes(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d)
{
    uint64_t n;
    if (v->len != 1 || !sherd__word_count(v->words[0], UINT32_MAX, &n) || n == 0)
        return sherd__recipe_expected(v, "a number of classes", NULL, d);
    r->classes = (size_t)n;
    return SHERD_OK;
}

static bool write_classes(const sherd__recipe *r, size_t i, char out[SHERD__RECIPE_LIST])
{
    if (i > 0 || r->classes == 0) return false;
    snprintf(out, 128, "%zu", r->classes);
    return true;
}

static int read_targets(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d)
{
    static const char *const names[] = { "labels", "values", NULL };
    int i, err = sherd__recipe_one_of(v, names, "labels or values", &i, d);
    if (!err) r->target_values = i == 1;
    return err;
}

static bool write_targets(const sherd__recipe *r, size_t i, char out[SHERD__RECIPE_LIST])
{
    if (i == 0) snprintf(out, 128, r->target_values ? "values" : "labels");
    return i == 0;
}

static int read_label(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d)
{
    if (v->text[0] == '\0' || strlen(v->text) >= sizeof r->label)
        return sherd__recipe_expected(v, "a column's name of up to 63 bytes", NULL, d);
    snprintf(r->label, sizeof r->label, "%s", v->text);
    return SHERD_OK;
}

static bool write_label(const sherd__recipe *r, size_t i, char out[SHERD__RECIPE_LIST])
{
    if (i > 0 || r->label[0] == '\0') return false;
    snprintf(out, 128, "%s", r->label);
    return true;
}

/* Reads "a, b, c" and stores it with one blank after each comma. */
static int read_list(char out[SHERD__RECIPE_LIST], const sherd__recipe_value *v, const char *what,
                     sherd_diag *d)
{
    sherd__namelist names = { 0 };
    size_t len = 0;
    char *text = NULL;
    int err = sherd__namelist_split(&names, v->text, strlen(v->text), ',');
    if (!err) err = sherd__namelist_check(&names, NULL);
    if (!err && !(text = sherd__namelist_text(&names, ',', &len))) err = SHERD_ENOMEM;
    if (!err && len + names.len > SHERD__RECIPE_LIST) err = SHERD_EFORMAT;
    if (!err) {
        char *to = out;
        for (size_t i = 0; i <= len; i++) {
            *to++ = text[i];
            if (text[i] == ',') *to++ = ' ';
        }
    }
    sherd__free(text);
    sherd__namelist_fini(&names);
    if (err == SHERD_ENOMEM) return sherd__fail_memory(d, "reading %s", v->where);
    return !err ? SHERD_OK
                : sherd__recipe_expected(v, what,
                                         "separate different names by commas; all of them have at "
                                         "most 4000 bytes",
                                         d);
}

static bool write_list(const char *list, size_t i, char out[SHERD__RECIPE_LIST])
{
    if (i > 0 || list[0] == '\0') return false;
    snprintf(out, SHERD__RECIPE_LIST, "%s", list);
    return true;
}

static int read_columns(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d)
{
    return read_list(r->columns, v, "names of columns: a, b, c", d);
}

static bool write_columns(const sherd__recipe *r, size_t i, char out[SHERD__RECIPE_LIST])
{
    return write_list(r->columns, i, out);
}

static int read_class_names(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d)
{
    return read_list(r->class_names, v, "names of classes: cat, dog", d);
}

static bool write_class_names(const sherd__recipe *r, size_t i, char out[SHERD__RECIPE_LIST])
{
    return write_list(r->class_names, i, out);
}

static int read_standardise(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d)
{
    static const char *const names[] = { "no", "yes", NULL };
    int i, err = sherd__recipe_one_of(v, names, "yes or no", &i, d);
    if (!err) r->standardise = i == 1;
    return err;
}

static bool write_standardise(const sherd__recipe *r, size_t i, char out[SHERD__RECIPE_LIST])
{
    if (i == 0) snprintf(out, 128, "yes");
    return i == 0 && r->standardise;
}

static int read_divide(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d)
{
    return sherd__recipe_number(v, 1e-300, 1e300, "a number above 0", &r->divide_inputs, d);
}

static bool write_divide(const sherd__recipe *r, size_t i, char out[SHERD__RECIPE_LIST])
{
    if (i == 0) sherd__recipe_print_number(out, 128, r->divide_inputs);
    return i == 0;
}

static int read_holdout(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d)
{
    double x;
    if (v->len != 1 || !sherd__word_number(v->words[0], &x) || !(x >= 0 && x < 1))
        return sherd__recipe_expected(v,
                                      "the fraction of the examples that validation takes, 0 to "
                                      "below 1",
                                      NULL, d);
    r->holdout = x;
    return SHERD_OK;
}

static bool write_holdout(const sherd__recipe *r, size_t i, char out[SHERD__RECIPE_LIST])
{
    if (i == 0) sherd__recipe_print_number(out, 128, r->holdout);
    return i == 0;
}

/* ---- training -------------------------------------------------------------------------------- */

static int read_weights(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d)
{
    double x = 0;
    bool he = v->len == 1 && strcmp(v->words[0], "he") == 0;
    bool normal = v->len == 2 && strcmp(v->words[0], "normal") == 0 &&
                  sherd__word_number(v->words[1], &x) && x > 0;
    if (!he && !normal)
        return sherd__recipe_expected(v, "he, or normal STANDARD-DEVIATION", NULL, d);
    r->weights = x;
    return SHERD_OK;
}

static bool write_weights(const sherd__recipe *r, size_t i, char out[SHERD__RECIPE_LIST])
{
    if (i > 0) return false;
    int at = snprintf(out, 128, r->weights > 0 ? "normal " : "he");
    if (r->weights > 0) sherd__recipe_print_number(out + at, 128 - (size_t)at, r->weights);
    return true;
}

static int read_batch(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d)
{
    return sherd__recipe_count_or_all(v, &r->batch, d);
}

static bool write_batch(const sherd__recipe *r, size_t i, char out[SHERD__RECIPE_LIST])
{
    if (i == 0) sherd__recipe_print_count_or_all(out, 128, r->batch);
    return i == 0;
}

static int read_order(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d)
{
    static const char what[] = "given, shuffled, batches or drawn";
    int i, err = sherd__recipe_one_of(v, order_names, what, &i, d);
    if (!err) r->order = (sherd__order)(i + 1);
    return err;
}

static bool write_order(const sherd__recipe *r, size_t i, char out[SHERD__RECIPE_LIST])
{
    if (i == 0) snprintf(out, 128, "%s", sherd__order_name(r->order));
    return i == 0;
}

static int read_epochs(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d)
{
    return sherd__recipe_count(v, 1, "a number of epochs", &r->epochs, d);
}

static bool write_epochs(const sherd__recipe *r, size_t i, char out[SHERD__RECIPE_LIST])
{
    if (i == 0) snprintf(out, 128, "%" PRIu64, r->epochs);
    return i == 0 && r->epochs > 0;
}

static int read_steps(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d)
{
    return sherd__recipe_count(v, 1, "a number of steps", &r->steps, d);
}

static bool write_steps(const sherd__recipe *r, size_t i, char out[SHERD__RECIPE_LIST])
{
    if (i == 0) snprintf(out, 128, "%" PRIu64, r->steps);
    return i == 0 && r->steps > 0;
}

static int read_report(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d)
{
    static const char what[] = "a number of epochs (5), or of steps (100 steps)";
    static const char *const units[] = { "epochs", "epoch", "steps", "step", NULL };
    sherd__recipe_value count = *v;
    char number[24];
    int unit = 0;
    size_t digits = v->len > 0 ? strspn(v->words[0], "0123456789") : 0;
    const char *word = v->len > 1 ? v->words[1] : v->len > 0 ? v->words[0] + digits : "";
    while (units[unit] && strcmp(units[unit], word) != 0) unit++;
    bool one = v->len == 1 || (v->len == 2 && v->words[0][digits] == '\0');
    if (!one || (*word && !units[unit]) || digits >= sizeof number)
        return sherd__recipe_expected(v, what, NULL, d);
    snprintf(number, sizeof number, "%.*s", (int)digits, v->words[0]);
    count.words[0] = number;
    count.len = 1;
    int err = sherd__recipe_count(&count, 1, what, &r->report_every, d);
    if (!err) r->report_steps = *word == 's';
    return err;
}

static bool write_report(const sherd__recipe *r, size_t i, char out[SHERD__RECIPE_LIST])
{
    if (i == 0)
        snprintf(out, 128, "%" PRIu64 "%s", r->report_every, r->report_steps ? " steps" : "");
    return i == 0;
}

static int read_patience(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d)
{
    return sherd__recipe_count(v, 1, "a number of reports", &r->patience, d);
}

static bool write_patience(const sherd__recipe *r, size_t i, char out[SHERD__RECIPE_LIST])
{
    if (i > 0 || r->patience == 0) return false;
    snprintf(out, 128, "%" PRIu64, r->patience);
    return true;
}

static int read_method(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d)
{
    static const char *const names[] = { "sgd", "momentum", "adam", NULL };
    static const char what[] = "sgd, momentum [BETA], or adam [BETA1 BETA2 EPSILON]";
    static const size_t most[] = { 1, 2, 4 };
    int i, err = sherd__recipe_first_of(v, names, what, &i, d);
    if (err) return err;
    double x[3] = { i == 0 ? 0 : 0.9, i == 2 ? 0.999 : 0, i == 2 ? 1e-8 : 0 };
    if (v->len != 1 && v->len != most[i]) return sherd__recipe_expected(v, what, NULL, d);
    for (size_t k = 1; k < v->len; k++)
        if (!sherd__word_number(v->words[k], &x[k - 1]) || !(x[k - 1] > 0 && x[k - 1] < 1))
            return sherd__recipe_expected(v, what, "these must be between 0 and 1", d);
    r->optimiser = (sherd__optimiser_spec){
        .method = (sherd__method)(i + 1), .beta1 = x[0], .beta2 = x[1], .epsilon = x[2]
    };
    return SHERD_OK;
}

static bool write_method(const sherd__recipe *r, size_t i, char out[SHERD__RECIPE_LIST])
{
    const sherd__optimiser_spec *o = &r->optimiser;
    const double x[3] = { o->beta1, o->beta2, o->epsilon };
    size_t numbers = o->method == SHERD__ADAM ? 3 : o->method == SHERD__MOMENTUM ? 1 : 0;
    if (i > 0) return false;
    size_t at = (size_t)snprintf(out, 128, "%s", sherd__method_name(o->method));
    for (size_t k = 0; k < numbers; k++) {
        out[at++] = ' ';
        sherd__recipe_print_number(out + at, 128 - at, x[k]);
        at += strlen(out + at);
    }
    return true;
}

static int read_rate(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d)
{
    return sherd__recipe_number(v, 1e-300, 1e300, "a number above 0", &r->schedule.rate, d);
}

static bool write_rate(const sherd__recipe *r, size_t i, char out[SHERD__RECIPE_LIST])
{
    if (i == 0) sherd__recipe_print_number(out, 128, r->schedule.rate);
    return i == 0;
}

static const char *const schedule_names[] = { "constant", "stepwise", "inverse", "linear", NULL };

static int read_schedule(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d)
{
    static const char what[] = "constant, stepwise FACTOR every STEPS, inverse FACTOR every STEPS "
                               "or linear FACTOR over STEPS";
    double factor = 0;
    uint64_t period = 0;
    int i, err = sherd__recipe_first_of(v, schedule_names, what, &i, d);
    if (err) return err;
    if (i == 0
            ? v->len != 1
            : v->len != 4 || !sherd__word_number(v->words[1], &factor) || factor < 0 ||
                  (i == SHERD__STEPWISE && factor == 0) ||
                  strcmp(v->words[2], i == SHERD__LINEAR ? "over" : "every") != 0 ||
                  !sherd__word_count(v->words[3], SHERD__RECIPE_COUNT_MAX, &period) || period == 0)
        return sherd__recipe_expected(v, what, NULL, d);
    r->schedule.kind = (sherd__schedule_kind)i;
    r->schedule.factor = factor;
    r->schedule.period = period;
    return SHERD_OK;
}

static bool write_schedule(const sherd__recipe *r, size_t i, char out[SHERD__RECIPE_LIST])
{
    const sherd__schedule *s = &r->schedule;
    if (i > 0) return false;
    size_t at = (size_t)snprintf(out, 128, "%s", schedule_names[s->kind]);
    if (s->kind == SHERD__CONSTANT) return true;
    out[at++] = ' ';
    sherd__recipe_print_number(out + at, 128 - at, s->factor);
    at += strlen(out + at);
    snprintf(out + at, 128 - at, " %s %" PRIu64, s->kind == SHERD__LINEAR ? "over" : "every",
             s->period);
    return true;
}

static int read_warmup(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d)
{
    return sherd__recipe_count(v, 0, "a number of steps", &r->schedule.warmup, d);
}

static bool write_warmup(const sherd__recipe *r, size_t i, char out[SHERD__RECIPE_LIST])
{
    if (i == 0) snprintf(out, 128, "%" PRIu64, r->schedule.warmup);
    return i == 0;
}

const sherd__recipe_key sherd__recipe_keys[] = {
    { "input", SHERD__RECIPE_NETWORK, true, false, read_input, write_input },
    { "layer", SHERD__RECIPE_NETWORK, true, true, sherd__recipe_read_layer,
      sherd__recipe_write_layer },
    { "loss", SHERD__RECIPE_NETWORK, true, false, read_loss, write_loss },
    { "l2", SHERD__RECIPE_NETWORK, false, false, read_l2, write_l2 },
    { "bias_gradient", SHERD__RECIPE_NETWORK, false, false, read_bias_gradient,
      write_bias_gradient },
    { "validation_biases", SHERD__RECIPE_NETWORK, false, false, read_validation_biases,
      write_validation_biases },
    { "precision", SHERD__RECIPE_NETWORK, false, false, read_precision, write_precision },
    { "data", SHERD__RECIPE_ALL, true, false, read_data, write_data },
    { "examples", SHERD__RECIPE_ALL, false, false, read_examples, write_examples },
    { "classes", SHERD__RECIPE_ALL, false, false, read_classes, write_classes },
    { "targets", SHERD__RECIPE_ALL, false, false, read_targets, write_targets },
    { "label", SHERD__RECIPE_ALL, false, false, read_label, write_label },
    { "columns", SHERD__RECIPE_ALL, false, false, read_columns, write_columns },
    { "class_names", SHERD__RECIPE_ALL, false, false, read_class_names, write_class_names },
    { "divide_inputs", SHERD__RECIPE_ALL, false, false, read_divide, write_divide },
    { "standardise", SHERD__RECIPE_ALL, false, false, read_standardise, write_standardise },
    { "holdout", SHERD__RECIPE_ALL, false, false, read_holdout, write_holdout },
    { "weights", SHERD__RECIPE_ALL, false, false, read_weights, write_weights },
    { "batch", SHERD__RECIPE_ALL, false, false, read_batch, write_batch },
    { "order", SHERD__RECIPE_ALL, false, false, read_order, write_order },
    { "epochs", SHERD__RECIPE_ALL, false, false, read_epochs, write_epochs },
    { "steps", SHERD__RECIPE_ALL, false, false, read_steps, write_steps },
    { "report_every", SHERD__RECIPE_ALL, false, false, read_report, write_report },
    { "patience", SHERD__RECIPE_ALL, false, false, read_patience, write_patience },
    { "method", SHERD__RECIPE_ALL, false, false, read_method, write_method },
    { "rate", SHERD__RECIPE_ALL, true, false, read_rate, write_rate },
    { "schedule", SHERD__RECIPE_ALL, false, false, read_schedule, write_schedule },
    { "warmup", SHERD__RECIPE_ALL, false, false, read_warmup, write_warmup },
    { 0 },
};

bool sherd__recipe_key_is_text(const sherd__recipe_key *k)
{
    return k->read == read_label || k->read == read_columns || k->read == read_class_names;
}

void sherd__recipe_defaults(sherd__recipe *r)
{
    memset(r, 0, sizeof *r);
    r->precision = SHERD_F64;
    r->divide_inputs = 1;
    r->order = SHERD__ORDER_BATCHES;
    r->report_every = 1;
    r->optimiser.method = SHERD__SGD;
}
