/*
 * What each key of a recipe takes, and how it is written again. Reading is strict: a value has the
 * words it needs and no others, numbers are plain decimal, counts have a ceiling far above any use,
 * so that no later size arithmetic begins with nonsense. Writing gives the shortest decimal that
 * reads back as the same double.
 */
#include "learn/recipe_keys.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/diag.h"
#include "core/suggest.h"

#define COUNT_MAX UINT64_C(1000000000000)
#define SIDE_MAX UINT64_C(1000000000)

/* ---- words ----------------------------------------------------------------------------------- */

static int expected(const sherd__recipe_value *v, const char *what, const char *hint, sherd_diag *d)
{
    if (hint == NULL) hint = "docs/TRAINING.md lists the values of each key";
    return sherd__fail(d, SHERD_EFORMAT, hint, "%s: %s: expected %s, found '%.80s'", v->where,
                       v->key, what, v->text);
}

static bool read_count(const char *word, uint64_t max, uint64_t *out)
{
    uint64_t n = 0;
    if (*word == '\0') return false;
    for (const char *p = word; *p != '\0'; p++) {
        if (*p < '0' || *p > '9') return false;
        n = n * 10 + (uint64_t)(*p - '0');
        if (n > max) return false;
    }
    *out = n;
    return true;
}

static bool read_number(const char *word, double *out)
{
    char *end;
    if (strspn(word, "0123456789.eE+-") != strlen(word) || strpbrk(word, "0123456789") == NULL)
        return false;
    errno = 0;
    double x = strtod(word, &end);
    if (*end != '\0' || !isfinite(x) || (errno == ERANGE && x != 0)) return false;
    *out = x == 0 ? 0 : x; /* no -0 */
    return true;
}

static void write_number(char *out, size_t size, double x)
{
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(out, size, "%.*g", digits, x);
        if (strtod(out, NULL) == x) return;
    }
}

/* The index of the first word in a list, or -1 with the nearest one named. */
static int read_choice(const sherd__recipe_value *v, const char *const *list, const char *what,
                       sherd_diag *d)
{
    char hint[80];
    for (int i = 0; v->len > 0 && list[i] != NULL; i++)
        if (strcmp(v->words[0], list[i]) == 0) return i;
    const char *near = v->len > 0 ? sherd__suggest(v->words[0], list) : NULL;
    if (near != NULL) snprintf(hint, sizeof hint, "did you mean %s?", near);
    expected(v, what, near != NULL ? hint : NULL, d);
    return -1;
}

static int count_of(const sherd__recipe_value *v, uint64_t min, const char *what, uint64_t *out,
                    sherd_diag *d)
{
    uint64_t n;
    if (v->len != 1 || !read_count(v->words[0], COUNT_MAX, &n) || n < min)
        return expected(v, what, NULL, d);
    *out = n;
    return SHERD_OK;
}

/* A count, or "all" for 0. */
static int count_or_all(const sherd__recipe_value *v, size_t *out, sherd_diag *d)
{
    uint64_t n = 0;
    bool all = v->len == 1 && strcmp(v->words[0], "all") == 0;
    if (!all && (v->len != 1 || !read_count(v->words[0], SIDE_MAX, &n) || n == 0))
        return expected(v, "a number of examples, or all", NULL, d);
    *out = (size_t)n;
    return SHERD_OK;
}

static bool write_count_or_all(size_t n, char out[128])
{
    if (n == 0)
        snprintf(out, 128, "all");
    else
        snprintf(out, 128, "%zu", n);
    return true;
}

static int number_of(const sherd__recipe_value *v, double min, double max, const char *what,
                     double *out, sherd_diag *d)
{
    double x;
    if (v->len != 1 || !read_number(v->words[0], &x) || !(x >= min && x <= max))
        return expected(v, what, NULL, d);
    *out = x;
    return SHERD_OK;
}

/* ---- the network ----------------------------------------------------------------------------- */

static int read_input(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d)
{
    uint64_t side[3] = { 1, 1, 1 };
    static const char what[] = "how many numbers an example has (784), or height x width x "
                               "channels (28 x 28 x 1)";
    if (v->len != 1 && v->len != 5) return expected(v, what, NULL, d);
    for (size_t i = 0; i < v->len; i += 2)
        if (!read_count(v->words[i], SIDE_MAX, &side[i / 2]) || side[i / 2] == 0 ||
            (i + 1 < v->len && strcmp(v->words[i + 1], "x") != 0))
            return expected(v, what, NULL, d);
    r->in = v->len == 1 ? (sherd__form){ 1, 1, (size_t)side[0] }
                        : (sherd__form){ (size_t)side[0], (size_t)side[1], (size_t)side[2] };
    return SHERD_OK;
}

static bool write_input(const sherd__recipe *r, size_t i, char out[128])
{
    if (i > 0) return false;
    if (r->in.height == 1 && r->in.width == 1)
        snprintf(out, 128, "%zu", r->in.channels);
    else
        snprintf(out, 128, "%zu x %zu x %zu", r->in.height, r->in.width, r->in.channels);
    return true;
}

static const sherd__layer_kind *const kinds[] = {
    &sherd__layer_dense,   &sherd__layer_conv2d,  &sherd__layer_max_pool,
    &sherd__layer_average_pool, &sherd__layer_flatten, &sherd__layer_relu,
    &sherd__layer_sigmoid, &sherd__layer_tanh,    &sherd__layer_softmax,
};
#define KINDS (sizeof kinds / sizeof *kinds)

static const char layer_what[] =
    "dense UNITS, conv2d CHANNELS window SIDE [stride N] [padding N], max-pool or average-pool "
    "SIDE [stride N], flatten, relu, sigmoid, tanh or softmax";

/* "stride N", "padding N" and so on, after the first words of a layer. */
static bool read_parts(const sherd__recipe_value *v, size_t from, sherd__layer_spec *l)
{
    struct {
        const char *name;
        size_t *into;
        uint64_t min;
        bool takes, seen;
    } parts[] = {
        { "window", &l->window, 1, l->kind == &sherd__layer_conv2d, false },
        { "stride", &l->stride, 1, true, false },
        { "padding", &l->padding, 0, l->kind == &sherd__layer_conv2d, false },
    };
    for (size_t i = from; i < v->len; i += 2) {
        uint64_t n;
        size_t p = 0;
        while (p < 3 && strcmp(v->words[i], parts[p].name) != 0) p++;
        if (p == 3 || !parts[p].takes || parts[p].seen || i + 1 == v->len ||
            !read_count(v->words[i + 1], SIDE_MAX, &n) || n < parts[p].min)
            return false;
        parts[p].seen = true;
        *parts[p].into = (size_t)n;
    }
    return true;
}

static int read_layer(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d)
{
    const char *names[KINDS + 1];
    sherd__layer_spec l = { 0 };
    uint64_t n = 0;
    if (r->len == SHERD__RECIPE_LAYERS_MAX)
        return sherd__fail(d, SHERD_EFORMAT, NULL, "%s: more than %u layers", v->where,
                           SHERD__RECIPE_LAYERS_MAX);
    for (size_t i = 0; i < KINDS; i++) names[i] = kinds[i]->name;
    names[KINDS] = NULL;
    int kind = read_choice(v, names, layer_what, d);
    if (kind < 0) return SHERD_EFORMAT;
    l.kind = kinds[kind];
    bool pool = l.kind == &sherd__layer_max_pool || l.kind == &sherd__layer_average_pool;
    bool numbers = pool || l.kind == &sherd__layer_dense || l.kind == &sherd__layer_conv2d;
    if (numbers && (v->len < 2 || !read_count(v->words[1], SIDE_MAX, &n) || n == 0))
        return expected(v, layer_what, NULL, d);
    if (pool)
        l.window = (size_t)n;
    else
        l.units = (size_t)n;
    bool more = pool || l.kind == &sherd__layer_conv2d;
    if (more ? !read_parts(v, 2, &l) : v->len != (numbers ? 2u : 1u))
        return expected(v, layer_what, NULL, d);
    if (l.kind == &sherd__layer_conv2d && l.window == 0)
        return expected(v, layer_what, "conv2d 20 window 3", d);
    if (more && l.stride == 0) l.stride = pool ? l.window : 1;
    r->layers[r->len++] = l;
    return SHERD_OK;
}

static bool write_layer(const sherd__recipe *r, size_t i, char out[128])
{
    if (i >= r->len) return false;
    const sherd__layer_spec *l = &r->layers[i];
    const char *name = l->kind->name;
    bool conv = l->kind == &sherd__layer_conv2d;
    int at;
    if (conv)
        at = snprintf(out, 128, "%s %zu window %zu", name, l->units, l->window);
    else if (l->window > 0)
        at = snprintf(out, 128, "%s %zu", name, l->window);
    else if (l->units > 0)
        at = snprintf(out, 128, "%s %zu", name, l->units);
    else
        at = snprintf(out, 128, "%s", name);
    if (l->stride != (conv ? 1 : l->window))
        at += snprintf(out + at, 128 - (size_t)at, " stride %zu", l->stride);
    if (l->padding > 0) snprintf(out + at, 128 - (size_t)at, " padding %zu", l->padding);
    return true;
}

static int read_loss(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d)
{
    static const char *const names[] = { "squared", "cross-entropy", NULL };
    static const char what[] = "squared or cross-entropy";
    int i = read_choice(v, names, what, d);
    if (i < 0) return SHERD_EFORMAT;
    if (v->len != 1) return expected(v, what, NULL, d);
    r->loss = (sherd__loss)(i + 1);
    return SHERD_OK;
}

static bool write_loss(const sherd__recipe *r, size_t i, char out[128])
{
    if (i == 0) snprintf(out, 128, "%s", sherd__loss_name(r->loss));
    return i == 0;
}

static int read_l2(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d)
{
    return number_of(v, 0, 1e9, "a number from 0", &r->l2, d);
}

static bool write_l2(const sherd__recipe *r, size_t i, char out[128])
{
    if (i == 0) write_number(out, 128, r->l2);
    return i == 0;
}

static int read_bias_gradient(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d)
{
    static const char *const names[] = { "each", "total", NULL };
    static const char what[] = "each, or total (one sum over the whole layer for all its biases)";
    int i = read_choice(v, names, what, d);
    if (i < 0) return SHERD_EFORMAT;
    if (v->len != 1) return expected(v, what, NULL, d);
    r->bias_total = i == 1;
    return SHERD_OK;
}

static bool write_bias_gradient(const sherd__recipe *r, size_t i, char out[128])
{
    if (i == 0) snprintf(out, 128, r->bias_total ? "total" : "each");
    return i == 0;
}

static int read_validation_biases(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d)
{
    static const char *const names[] = { "yes", "no", NULL };
    int i = read_choice(v, names, "yes or no", d);
    if (i < 0) return SHERD_EFORMAT;
    if (v->len != 1) return expected(v, "yes or no", NULL, d);
    r->validation_unbiased = i == 1;
    return SHERD_OK;
}

static bool write_validation_biases(const sherd__recipe *r, size_t i, char out[128])
{
    if (i == 0) snprintf(out, 128, r->validation_unbiased ? "no" : "yes");
    return i == 0;
}

static int read_precision(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d)
{
    static const char *const names[] = { "f64", "f32", NULL };
    int i = read_choice(v, names, "f64 or f32", d);
    if (i < 0) return SHERD_EFORMAT;
    if (v->len != 1) return expected(v, "f64 or f32", NULL, d);
    r->precision = i == 1 ? SHERD_F32 : SHERD_F64;
    return SHERD_OK;
}

static bool write_precision(const sherd__recipe *r, size_t i, char out[128])
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
    int i = read_choice(v, data_names, what, d);
    if (i < 0) return SHERD_EFORMAT;
    if (v->len != 1) return expected(v, what, NULL, d);
    r->data = (sherd__data_kind)(i + 1);
    return SHERD_OK;
}

static bool write_data(const sherd__recipe *r, size_t i, char out[128])
{
    if (i == 0) snprintf(out, 128, "%s", sherd__data_kind_name(r->data));
    return i == 0;
}

static int read_examples(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d)
{
    return count_or_all(v, &r->examples, d);
}

static bool write_examples(const sherd__recipe *r, size_t i, char out[128])
{
    return i == 0 && write_count_or_all(r->examples, out);
}

static int read_classes(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d)
{
    uint64_t n;
    if (v->len != 1 || !read_count(v->words[0], UINT32_MAX, &n) || n == 0)
        return expected(v, "a number of classes", NULL, d);
    r->classes = (size_t)n;
    return SHERD_OK;
}

static bool write_classes(const sherd__recipe *r, size_t i, char out[128])
{
    if (i > 0 || r->classes == 0) return false;
    snprintf(out, 128, "%zu", r->classes);
    return true;
}

static int read_targets(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d)
{
    static const char *const names[] = { "labels", "values", NULL };
    int i = read_choice(v, names, "labels or values", d);
    if (i < 0) return SHERD_EFORMAT;
    if (v->len != 1) return expected(v, "labels or values", NULL, d);
    r->target_values = i == 1;
    return SHERD_OK;
}

static bool write_targets(const sherd__recipe *r, size_t i, char out[128])
{
    if (i == 0) snprintf(out, 128, r->target_values ? "values" : "labels");
    return i == 0;
}

static int read_label(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d)
{
    if (v->len == 0 || strlen(v->text) >= sizeof r->label)
        return expected(v, "a column's name of up to 63 bytes", NULL, d);
    snprintf(r->label, sizeof r->label, "%s", v->text);
    return SHERD_OK;
}

static bool write_label(const sherd__recipe *r, size_t i, char out[128])
{
    if (i > 0 || r->label[0] == '\0') return false;
    snprintf(out, 128, "%s", r->label);
    return true;
}

static int read_divide(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d)
{
    return number_of(v, 1e-300, 1e300, "a number above 0", &r->divide_inputs, d);
}

static bool write_divide(const sherd__recipe *r, size_t i, char out[128])
{
    if (i == 0) write_number(out, 128, r->divide_inputs);
    return i == 0;
}

static int read_holdout(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d)
{
    double x;
    if (v->len != 1 || !read_number(v->words[0], &x) || !(x >= 0 && x < 1))
        return expected(v, "the fraction of the examples that validation takes, 0 to below 1", NULL,
                        d);
    r->holdout = x;
    return SHERD_OK;
}

static bool write_holdout(const sherd__recipe *r, size_t i, char out[128])
{
    if (i == 0) write_number(out, 128, r->holdout);
    return i == 0;
}

/* ---- training -------------------------------------------------------------------------------- */

static int read_weights(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d)
{
    double x = 0;
    bool he = v->len == 1 && strcmp(v->words[0], "he") == 0;
    bool normal = v->len == 2 && strcmp(v->words[0], "normal") == 0 &&
                  read_number(v->words[1], &x) && x > 0;
    if (!he && !normal)
        return expected(v, "he, or normal STANDARD-DEVIATION", NULL, d);
    r->weights = x;
    return SHERD_OK;
}

static bool write_weights(const sherd__recipe *r, size_t i, char out[128])
{
    if (i > 0) return false;
    int at = snprintf(out, 128, r->weights > 0 ? "normal " : "he");
    if (r->weights > 0) write_number(out + at, 128 - (size_t)at, r->weights);
    return true;
}

static int read_batch(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d)
{
    return count_or_all(v, &r->batch, d);
}

static bool write_batch(const sherd__recipe *r, size_t i, char out[128])
{
    return i == 0 && write_count_or_all(r->batch, out);
}

static int read_order(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d)
{
    static const char what[] = "given, shuffled, batches or drawn";
    int i = read_choice(v, order_names, what, d);
    if (i < 0) return SHERD_EFORMAT;
    if (v->len != 1) return expected(v, what, NULL, d);
    r->order = (sherd__order)(i + 1);
    return SHERD_OK;
}

static bool write_order(const sherd__recipe *r, size_t i, char out[128])
{
    if (i == 0) snprintf(out, 128, "%s", sherd__order_name(r->order));
    return i == 0;
}

static int read_epochs(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d)
{
    return count_of(v, 1, "a number of epochs", &r->epochs, d);
}

static bool write_epochs(const sherd__recipe *r, size_t i, char out[128])
{
    if (i == 0) snprintf(out, 128, "%" PRIu64, r->epochs);
    return i == 0 && r->epochs > 0;
}

static int read_steps(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d)
{
    return count_of(v, 1, "a number of steps", &r->steps, d);
}

static bool write_steps(const sherd__recipe *r, size_t i, char out[128])
{
    if (i == 0) snprintf(out, 128, "%" PRIu64, r->steps);
    return i == 0 && r->steps > 0;
}

static int read_report(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d)
{
    return count_of(v, 1, "a number of epochs", &r->report_every, d);
}

static bool write_report(const sherd__recipe *r, size_t i, char out[128])
{
    if (i == 0) snprintf(out, 128, "%" PRIu64, r->report_every);
    return i == 0;
}

static int read_method(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d)
{
    static const char *const names[] = { "sgd", "momentum", "adam", NULL };
    static const char what[] = "sgd, momentum [BETA], or adam [BETA1 BETA2 EPSILON]";
    static const size_t most[] = { 1, 2, 4 };
    int i = read_choice(v, names, what, d);
    if (i < 0) return SHERD_EFORMAT;
    double x[3] = { i == 0 ? 0 : 0.9, i == 2 ? 0.999 : 0, i == 2 ? 1e-8 : 0 };
    if (v->len != 1 && v->len != most[i]) return expected(v, what, NULL, d);
    for (size_t k = 1; k < v->len; k++)
        if (!read_number(v->words[k], &x[k - 1]) || !(x[k - 1] > 0 && x[k - 1] < 1))
            return expected(v, what, "these lie between 0 and 1", d);
    r->optimiser = (sherd__optimiser_spec){ .method = (sherd__method)(i + 1), .beta1 = x[0],
                                            .beta2 = x[1], .epsilon = x[2] };
    return SHERD_OK;
}

static bool write_method(const sherd__recipe *r, size_t i, char out[128])
{
    const sherd__optimiser_spec *o = &r->optimiser;
    const double x[3] = { o->beta1, o->beta2, o->epsilon };
    size_t numbers = o->method == SHERD__ADAM ? 3 : o->method == SHERD__MOMENTUM ? 1 : 0;
    if (i > 0) return false;
    size_t at = (size_t)snprintf(out, 128, "%s", sherd__method_name(o->method));
    for (size_t k = 0; k < numbers; k++) {
        out[at++] = ' ';
        write_number(out + at, 128 - at, x[k]);
        at += strlen(out + at);
    }
    return true;
}

static int read_rate(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d)
{
    return number_of(v, 1e-300, 1e300, "a number above 0", &r->schedule.rate, d);
}

static bool write_rate(const sherd__recipe *r, size_t i, char out[128])
{
    if (i == 0) write_number(out, 128, r->schedule.rate);
    return i == 0;
}

static const char *const schedule_names[] = { "constant", "stepwise", "inverse", "linear", NULL };

static int read_schedule(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d)
{
    static const char what[] = "constant, stepwise FACTOR every STEPS, inverse FACTOR every STEPS "
                               "or linear FACTOR over STEPS";
    double factor = 0;
    uint64_t period = 0;
    int i = read_choice(v, schedule_names, what, d);
    if (i < 0) return SHERD_EFORMAT;
    if (i == 0 ? v->len != 1
               : v->len != 4 || !read_number(v->words[1], &factor) || factor < 0 ||
                     (i == SHERD__STEPWISE && factor == 0) ||
                     strcmp(v->words[2], i == SHERD__LINEAR ? "over" : "every") != 0 ||
                     !read_count(v->words[3], COUNT_MAX, &period) || period == 0)
        return expected(v, what, NULL, d);
    r->schedule.kind = (sherd__schedule_kind)i;
    r->schedule.factor = factor;
    r->schedule.period = period;
    return SHERD_OK;
}

static bool write_schedule(const sherd__recipe *r, size_t i, char out[128])
{
    const sherd__schedule *s = &r->schedule;
    if (i > 0) return false;
    size_t at = (size_t)snprintf(out, 128, "%s", schedule_names[s->kind]);
    if (s->kind == SHERD__CONSTANT) return true;
    out[at++] = ' ';
    write_number(out + at, 128 - at, s->factor);
    at += strlen(out + at);
    snprintf(out + at, 128 - at, " %s %" PRIu64, s->kind == SHERD__LINEAR ? "over" : "every",
             s->period);
    return true;
}

static int read_warmup(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d)
{
    return count_of(v, 0, "a number of steps", &r->schedule.warmup, d);
}

static bool write_warmup(const sherd__recipe *r, size_t i, char out[128])
{
    if (i == 0) snprintf(out, 128, "%" PRIu64, r->schedule.warmup);
    return i == 0;
}

const sherd__recipe_key sherd__recipe_keys[] = {
    { "input", SHERD__RECIPE_NETWORK, true, false, read_input, write_input },
    { "layer", SHERD__RECIPE_NETWORK, true, true, read_layer, write_layer },
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
    { "divide_inputs", SHERD__RECIPE_ALL, false, false, read_divide, write_divide },
    { "holdout", SHERD__RECIPE_ALL, false, false, read_holdout, write_holdout },
    { "weights", SHERD__RECIPE_ALL, false, false, read_weights, write_weights },
    { "batch", SHERD__RECIPE_ALL, false, false, read_batch, write_batch },
    { "order", SHERD__RECIPE_ALL, false, false, read_order, write_order },
    { "epochs", SHERD__RECIPE_ALL, false, false, read_epochs, write_epochs },
    { "steps", SHERD__RECIPE_ALL, false, false, read_steps, write_steps },
    { "report_every", SHERD__RECIPE_ALL, false, false, read_report, write_report },
    { "method", SHERD__RECIPE_ALL, false, false, read_method, write_method },
    { "rate", SHERD__RECIPE_ALL, true, false, read_rate, write_rate },
    { "schedule", SHERD__RECIPE_ALL, false, false, read_schedule, write_schedule },
    { "warmup", SHERD__RECIPE_ALL, false, false, read_warmup, write_warmup },
    { 0 },
};

void sherd__recipe_defaults(sherd__recipe *r)
{
    memset(r, 0, sizeof *r);
    r->precision = SHERD_F64;
    r->divide_inputs = 1;
    r->order = SHERD__ORDER_BATCHES;
    r->report_every = 1;
    r->optimiser.method = SHERD__SGD;
}
