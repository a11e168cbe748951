/* Recipes: what is read; what is refused, with which message; and that text and struct are
 * equivalent. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/rand.h"
#include "learn/grader.h"
#include "learn/recipe.h"
#include "learn/recipe_keys.h"
#include "tests/support/comma_locale.h"

static const char whole[] = "# a comment\n"
                            "input = 28 x 28 x 1\n"
                            "layer = conv2d 4 window 3 padding 1 # another\n"
                            "\tlayer=relu\r\n"
                            "layer = max-pool 2\n"
                            "layer = average-pool 3 stride 2\n"
                            "layer = flatten\n"
                            "layer = dense 10\n"
                            "loss = cross-entropy\n"
                            "l2 = 0.001\n"
                            "data = spiral\n"
                            "examples = 450\n"
                            "classes = 3\n"
                            "weights = normal 0.01\n"
                            "batch = 32\n"
                            "order = shuffled\n"
                            "epochs = 7\n"
                            "method = adam 0.9 0.99 1e-7\n"
                            "rate = 0.1\n"
                            "schedule = linear 0 over 100\n"
                            "warmup = 10";

static int parse(sherd__recipe *r, const char *text, sherd_diag *d)
{
    *d = (sherd_diag){ 0 };
    return sherd__recipe_parse(r, text, strlen(text), "r.conf", SHERD__RECIPE_ALL, d);
}

/* Returns the canonical text, terminated; the caller frees it. */
static char *print(const sherd__recipe *r, sherd__recipe_part part)
{
    sherd__buf b;
    sherd__buf_init(&b, SHERD__RECIPE_BYTES_MAX, 0);
    assert_int_equal(sherd__recipe_print(r, part, &b), SHERD_OK);
    char *text = malloc(b.len + 1);
    assert_non_null(text);
    memcpy(text, b.data, b.len);
    text[b.len] = '\0';
    sherd__buf_fini(&b);
    return text;
}

/* Checks that printed text parses to a recipe that prints the same. */
static void stands(const sherd__recipe *r)
{
    sherd__recipe again;
    sherd_diag d;
    char *text = print(r, SHERD__RECIPE_ALL);
    if (parse(&again, text, &d) != SHERD_OK) fail_msg("%s in:\n%s", d.message, text);
    char *second = print(&again, SHERD__RECIPE_ALL);
    assert_string_equal(text, second);
    assert_memory_equal(r->layers, again.layers, r->len * sizeof *r->layers);
    free(text);
    free(second);
}

static void every_line_of_a_recipe_is_read(void **s)
{
    (void)s;
    sherd__recipe r;
    sherd_diag d;
    if (parse(&r, whole, &d) != SHERD_OK) fail_msg("%s", d.message);
    char marked[sizeof whole + 3] = "\xef\xbb\xbf"; /* UTF-8 with a byte order mark, as Windows
                                                     * writes it */
    assert_int_equal(parse(&r, strcat(marked, whole), &d), SHERD_OK);
    assert_true(r.in.height == 28 && r.in.width == 28 && r.in.channels == 1 && r.len == 6);
    assert_ptr_equal(r.layers[0].kind, &sherd__layer_conv2d);
    assert_true(r.layers[0].units == 4 && r.layers[0].window == 3 && r.layers[0].padding == 1 &&
                r.layers[0].stride == 1);
    assert_true(r.layers[2].window == 2 && r.layers[2].stride == 2);
    assert_true(r.layers[3].window == 3 && r.layers[3].stride == 2);
    assert_true(r.layers[5].units == 10 && r.loss == SHERD__LOSS_CROSS_ENTROPY && r.l2 == 0.001);
    assert_true(r.data == SHERD__DATA_SPIRAL && r.examples == 450 && r.classes == 3);
    assert_true(r.weights == 0.01 && r.batch == 32 && r.order == SHERD__ORDER_SHUFFLED);
    assert_true(r.epochs == 7 && r.steps == 0 && r.report_every == 1 && r.divide_inputs == 1);
    assert_true(r.optimiser.method == SHERD__ADAM && r.optimiser.beta2 == 0.99 &&
                r.optimiser.epsilon == 1e-7);
    assert_true(r.schedule.kind == SHERD__LINEAR && r.schedule.period == 100 &&
                r.schedule.rate == 0.1 && r.schedule.warmup == 10);
    stands(&r);
}

static void recipes_of_the_examples_are_read_and_print_the_same(void **s)
{
    (void)s;
    static const char *const names[] = { "mnist",    "mnist-proper", "spiral",
                                         "parabola", "lenet",        "deep" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[80], text[4096];
        sherd__recipe r;
        sherd_diag d = { 0 };
        sherd__network *n;
        snprintf(path, sizeof path, "examples/train/%s.conf", names[i]);
        FILE *f = fopen(path, "r");
        assert_non_null(f);
        size_t len = fread(text, 1, sizeof text, f);
        fclose(f);
        if (sherd__recipe_parse(&r, text, len, path, SHERD__RECIPE_ALL, &d) != SHERD_OK)
            fail_msg("%s", d.message);
        stands(&r);
        if (sherd__recipe_network(&r, 1, &n, &d) != SHERD_OK) fail_msg("%s", d.message);
        sherd__network_free(n);
        assert_int_equal(r.bias_total, i == 0); /* only one of them has the published mistake */
        assert_int_equal(r.validation_unbiased, i == 0);
    }
}

static void different_spellings_of_a_recipe_print_alike(void **s)
{
    (void)s;
    sherd__recipe a, b;
    sherd_diag d;
    const char *one = "input=4\nlayer=max-pool 1\nlayer = dense 2\nloss = squared\ndata = idx\n"
                      "rate = 1e-1\nepochs = 1\nl2 = 0\nmethod = momentum\n";
    const char *other = "epochs = 1\nmethod = momentum 0.9\nrate = 0.10\ndata = idx\nl2 = -0.0\n"
                        "loss = squared\ninput = 1 x 1 x 4\nlayer = max-pool 1 stride 1\n"
                        "layer = dense 2\nbatch = all\norder = batches\n";
    if (parse(&a, one, &d) != SHERD_OK) fail_msg("%s", d.message);
    if (parse(&b, other, &d) != SHERD_OK) fail_msg("%s", d.message);
    char *x = print(&a, SHERD__RECIPE_ALL), *y = print(&b, SHERD__RECIPE_ALL);
    assert_string_equal(x, y);
    free(x);
    free(y);
}

static void lists_of_names_have_one_spelling_and_any_number_of_words(void **s)
{
    (void)s;
    static const char base[] =
        "input=2\nlayer=dense 2\nloss=squared\ndata=file\nrate=1\nepochs=1\n";
    char text[SHERD__RECIPE_LIST + 400];
    sherd__recipe r;
    sherd_diag d;
    snprintf(text, sizeof text,
             "%scolumns =a b c d e f g h i j k l m n o p q r,  s\nclass_names= x ,y\n"
             "label = a b c d e f g h i j k l m n o p q r\nstandardise = yes\n",
             base);
    if (parse(&r, text, &d) != SHERD_OK) fail_msg("%s", d.message);
    assert_string_equal(r.columns, "a b c d e f g h i j k l m n o p q r, s");
    assert_string_equal(r.class_names, "x, y");
    assert_string_equal(r.label, "a b c d e f g h i j k l m n o p q r");
    assert_true(r.standardise);
    stands(&r);
    size_t at = (size_t)snprintf(text, sizeof text, "%scolumns = ", base), from = at;
    for (unsigned i = 0; at - from < SHERD__RECIPE_LIST - 10; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%06u", i ? ", " : "", i);
    if (parse(&r, text, &d) != SHERD_OK) fail_msg("%s", d.message);
    stands(&r);
    snprintf(text + at, sizeof text - at, ", %09u\n", 7);
    assert_int_equal(parse(&r, text, &d), SHERD_EFORMAT);
    snprintf(text, sizeof text, "%sclass_names = x, y\ntargets = values\n", base);
    assert_int_equal(parse(&r, text, &d), SHERD_EFORMAT);
    assert_non_null(strstr(d.message, "class_names is for labels"));
    assert_int_equal(parse(&r, base, &d), SHERD_OK);
    assert_int_equal(sherd__recipe_set(&r, "columns", "p,q", "r", &d), SHERD_OK);
    assert_string_equal(r.columns, "p, q");
    sherd__alloc_fail_nth(2); /* after the copy of the text */
    assert_int_equal(sherd__recipe_set(&r, "columns", "s,t", "r", &d), SHERD_ENOMEM);
    sherd__alloc_fail_nth(0);
    assert_string_equal(r.columns, "p, q");
}

static void the_network_part_can_be_parsed_alone(void **s)
{
    (void)s;
    sherd__recipe r, again;
    sherd_diag d;
    assert_int_equal(parse(&r, whole, &d), SHERD_OK);
    char *text = print(&r, SHERD__RECIPE_NETWORK);
    assert_null(strstr(text, "rate"));
    d = (sherd_diag){ 0 };
    if (sherd__recipe_parse(&again, text, strlen(text), "n", SHERD__RECIPE_NETWORK, &d) != SHERD_OK)
        fail_msg("%s", d.message);
    char *second = print(&again, SHERD__RECIPE_NETWORK);
    assert_string_equal(text, second);
    free(second);
    assert_int_equal(sherd__recipe_parse(&again, "rate = 1\n", 9, "n", SHERD__RECIPE_NETWORK, &d),
                     SHERD_EFORMAT);
    assert_non_null(strstr(d.message, "n:1: unknown key 'rate'"));
    assert_int_equal(parse(&again, text, &d), SHERD_EFORMAT); /* and is not a complete recipe */
    free(text);
}

/* ---- refusals -------------------------------------------------------------------------------- */

/* Returns `whole` with the line that begins like `line` replaced by it, or with `line` added. */
static char *with(const char *line)
{
    static char text[sizeof whole + 200];
    char start[40];
    size_t n = strcspn(line, "=");
    snprintf(start, sizeof start, "\n%.*s=", (int)n, line);
    const char *at = strstr(whole, start);
    if (!at) {
        snprintf(text, sizeof text, "%s\n%s", whole, line);
    } else {
        const char *end = strchr(at + 1, '\n');
        snprintf(text, sizeof text, "%.*s\n%s%s", (int)(at - whole), whole, line, end ? end : "");
    }
    return text;
}

static void invalid_values_are_reported_with_line_and_key(void **s)
{
    (void)s;
    static const char *const lines[][2] = {
        { "input = 0", "input: expected" },
        { "input = 28 x 28", "input: expected" },
        { "input = 28 y 28 y 1", "input: expected" },
        { "input = -4", "found '-4'" },
        { "input = 99999999999999999999", "input: expected" },
        { "layer = dense", "layer: expected" },
        { "layer = dense 0", "layer: expected" },
        { "layer = dense 4 4", "layer: expected" },
        { "layer = relu 4", "layer: expected" },
        { "layer = conv2d 4", "layer: expected" },
        { "layer = conv2d 4 window", "expected" },
        { "layer = conv2d 4 window 0", "expected" },
        { "layer = conv2d 4 window 3 window 3", "expected" },
        { "layer = max-pool 2 padding 1", "expected" },
        { "layer =", "layer: expected" },
        { "loss = square", "loss: expected squared or cross-entropy" },
        { "loss = squared 1", "loss: expected" },
        { "l2 = -1", "l2: expected" },
        { "l2 = nan", "l2: expected" },
        { "l2 = 1e999", "l2: expected" },
        { "l2 = 0x1p3", "l2: expected" },
        { "data = mnist", "data: expected" },
        { "examples = 0", "examples: expected" },
        { "examples = some", "examples: expected" },
        { "classes = 0", "classes: expected" },
        { "divide_inputs = 0", "expected a number" },
        { "holdout = 1", "holdout: expected" },
        { "holdout = -0.1", "holdout: expected" },
        { "weights = normal", "weights: expected" },
        { "weights = normal 0", "weights: expected" },
        { "batch = 0", "batch: expected" },
        { "batch = 1.5", "batch: expected" },
        { "order = random", "order: expected" },
        { "epochs = 0", "epochs: expected" },
        { "report_every = 0", "report_every: expected" },
        { "report_every = 0 steps", "report_every: expected" },
        { "report_every = steps", "report_every: expected" },
        { "report_every = 5 stepss", "report_every: expected" },
        { "report_every = 5 s", "report_every: expected" },
        { "report_every = 5steps 5", "report_every: expected" },
        { "report_every = 5 steps 5", "report_every: expected" },
        { "report_every = 5s steps", "report_every: expected" },
        { "report_every = 1000000000001 steps", "report_every: expected" },
        { "report_every = 00000000000000000000000005 steps", "report_every: expected" },
        { "patience = 0", "patience: expected a number of reports" },
        { "patience = 1 2", "patience: expected" },
        { "method = sgd 0.9", "method: expected" },
        { "method = adam 0.9", "method: expected" },
        { "method = momentum 1", "method: expected" },
        { "rate = 0", "rate: expected" },
        { "rate = fast", "found 'fast'" },
        { "schedule = linear 0", "schedule: expected" },
        { "schedule = stepwise 0 every 4", "schedule: expected" },
        { "schedule = inverse 1 over 4", "schedule: expected" },
        { "schedule = linear 0 over 0", "schedule: expected" },
        { "warmup = -1", "warmup: expected" },
        { "targets = both", "targets: expected" },
        { "columns =", "columns: expected names of columns" },
        { "columns = a, ,b", "columns: expected names of columns" },
        { "columns = a, b, a", "columns: expected names of columns" },
        { "class_names = cat,", "class_names: expected names of classes" },
        { "label =", "label: expected" },
        { "standardise = both", "standardise: expected yes or no" },
        { "precision = f16", "precision: expected f64 or f32" },
        { "bias_gradient = sum", "bias_gradient: expected" },
        { "validation_biases = maybe", "validation_biases: expected" },
        { "steps = 5", "both epochs and steps" },
        { "rate", "expected `key = value`" },
        { "= 4", "unknown key ''" },
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        sherd__recipe r, was;
        sherd_diag d;
        memset(&r, 0x5a, sizeof r);
        was = r;
        if (parse(&r, with(lines[i][0]), &d) != SHERD_EFORMAT) fail_msg("%s passes", lines[i][0]);
        if (!strstr(d.message, lines[i][1]) || strncmp(d.message, "r.conf", 6) != 0)
            fail_msg("%s: %s", lines[i][0], d.message);
        assert_memory_equal(&r, &was, sizeof r);
    }
}

static void reports_are_counted_in_epochs_or_steps(void **s)
{
    (void)s;
    static const struct {
        const char *line;
        uint64_t every;
        bool steps;
        const char *printed;
    } cases[] = {
        { "report_every = 5", 5, false, "\nreport_every = 5\n" },
        { "report_every = 5 epochs", 5, false, "\nreport_every = 5\n" },
        { "report_every = 1epoch", 1, false, "\nreport_every = 1\n" },
        { "report_every = 100 steps", 100, true, "\nreport_every = 100 steps\n" },
        { "report_every = 100steps", 100, true, "\nreport_every = 100 steps\n" },
        { "report_every = 1 step", 1, true, "\nreport_every = 1 steps\n" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sherd__recipe r;
        sherd_diag d;
        if (parse(&r, with(cases[i].line), &d) != SHERD_OK) fail_msg("%s", d.message);
        assert_true(r.report_every == cases[i].every && r.report_steps == cases[i].steps);
        char *text = print(&r, SHERD__RECIPE_ALL);
        assert_non_null(strstr(text, cases[i].printed));
        assert_null(strstr(text, "patience"));
        free(text);
        stands(&r);
    }
    sherd__recipe r;
    sherd_diag d;
    assert_int_equal(parse(&r, with("patience = 7"), &d), SHERD_OK);
    assert_int_equal(r.patience, 7);
    stands(&r);
}

static void an_unknown_key_is_reported_with_its_line_and_the_nearest_key(void **s)
{
    (void)s;
    sherd__recipe r;
    sherd_diag d;
    assert_int_equal(parse(&r, with("scedule = constant"), &d), SHERD_EFORMAT);
    assert_string_equal(d.message, "r.conf:22: unknown key 'scedule'");
    assert_string_equal(d.hint, "did you mean schedule?");
    assert_int_equal(parse(&r, with("layer = dens 4"), &d), SHERD_EFORMAT);
    assert_string_equal(d.hint, "did you mean dense?");
}

static void a_missing_key_is_named(void **s)
{
    (void)s;
    static const char *const keys[] = { "input",  "loss",    "data",    "rate",
                                        "epochs", "classes", "examples" };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        char text[sizeof whole], start[40];
        sherd__recipe r;
        sherd_diag d;
        memcpy(text, whole, sizeof text);
        snprintf(start, sizeof start, "\n%s =", keys[i]);
        char *at = strstr(text, start);
        assert_non_null(at);
        at[1] = '#';
        assert_int_equal(parse(&r, text, &d), SHERD_EFORMAT);
        if (!strstr(d.message, keys[i])) fail_msg("%s: %s", keys[i], d.message);
    }
}

static void a_duplicate_key_names_both_lines(void **s)
{
    (void)s;
    char text[sizeof whole + 40];
    sherd__recipe r;
    sherd_diag d;
    snprintf(text, sizeof text, "%s\nrate = 2\n", whole);
    assert_int_equal(parse(&r, text, &d), SHERD_EFORMAT);
    assert_string_equal(d.message, "r.conf:22: rate is also in line 19");
}

static void every_prefix_is_read_or_refused(void **s)
{
    (void)s;
    size_t good = 0;
    for (size_t len = 0; len <= strlen(whole); len++) {
        sherd__recipe r;
        sherd_diag d = { 0 };
        char *cut = malloc(len > 0 ? len : 1); /* exact, so that a sanitizer sees an overrun */
        assert_non_null(cut);
        memcpy(cut, whole, len);
        int err = sherd__recipe_parse(&r, cut, len, "r.conf", SHERD__RECIPE_ALL, &d);
        free(cut);
        assert_true(err == SHERD_OK || (err == SHERD_EFORMAT && d.message[0] != '\0'));
        if (err == SHERD_OK) stands(&r);
        good += err == SHERD_OK;
    }
    assert_true(good > 3);
}

static void every_bit_flip_is_read_or_refused(void **s)
{
    (void)s;
    for (size_t at = 0; at < strlen(whole); at++) {
        for (int bit = 0; bit < 8; bit++) {
            char text[sizeof whole];
            sherd__recipe r;
            sherd_diag d = { 0 };
            memcpy(text, whole, sizeof text);
            text[at] = (char)(text[at] ^ 1 << bit);
            int err = sherd__recipe_parse(&r, text, sizeof text - 1, "r.conf", SHERD__RECIPE_ALL,
                                          &d);
            assert_true(err == SHERD_OK || err == SHERD_EFORMAT);
            for (const char *p = d.message; *p != '\0'; p++) assert_true((unsigned char)*p >= ' ');
            if (err == SHERD_OK && at % 7 == 0) stands(&r);
        }
    }
}

static void lines_and_texts_that_are_too_long_are_refused(void **s)
{
    (void)s;
    static char text[SHERD__RECIPE_BYTES_MAX + 2];
    sherd__recipe r;
    sherd_diag d = { 0 };
    memset(text, ' ', sizeof text);
    assert_int_equal(sherd__recipe_parse(&r, text, sizeof text, "r", SHERD__RECIPE_ALL, &d),
                     SHERD_EFORMAT);
    for (size_t i = 0; i + 1 < sizeof text - 2; i += 2) text[i] = 'w';
    memcpy(text, "layer =", 7);
    d = (sherd_diag){ 0 };
    assert_int_equal(sherd__recipe_parse(&r, text, sizeof text - 2, "r", SHERD__RECIPE_ALL, &d),
                     SHERD_EFORMAT);
    assert_non_null(strstr(d.message, "too many words"));
    for (size_t i = 0; i < sizeof text - 2; i += 11) memcpy(text + i, "layer=relu\n", 11);
    d = (sherd_diag){ 0 };
    assert_int_equal(sherd__recipe_parse(&r, text, 65 * 11, "r", SHERD__RECIPE_ALL, &d),
                     SHERD_EFORMAT);
    assert_non_null(strstr(d.message, "r:65: more than 64 layers"));
}

/* ---- numbers --------------------------------------------------------------------------------- */

static double any_number(const sherd__entropy *e)
{
    double x = 0;
    while (!(x > 1e-290 && x < 1e290)) {
        uint64_t u = sherd__entropy_u64(e) >> 1;
        memcpy(&x, &u, sizeof x);
    }
    return x;
}

static void every_double_is_preserved_by_the_text(void **s)
{
    (void)s;
    sherd__seeded state;
    sherd__entropy e = sherd__entropy_seeded(&state, 5);
    sherd__recipe r, again;
    sherd_diag d;
    assert_int_equal(parse(&r, whole, &d), SHERD_OK);
    for (int i = 0; i < 300; i++) {
        r.schedule.rate = any_number(&e);
        r.divide_inputs = any_number(&e);
        r.schedule.factor = any_number(&e);
        r.holdout = (double)(sherd__entropy_u64(&e) >> 11) * 0x1p-53;
        r.schedule.period = 1 + sherd__entropy_below(&e, 1000000000000);
        char *text = print(&r, SHERD__RECIPE_ALL);
        if (parse(&again, text, &d) != SHERD_OK) fail_msg("%s", d.message);
        free(text);
        assert_true(again.schedule.rate == r.schedule.rate && again.holdout == r.holdout);
        assert_true(again.divide_inputs == r.divide_inputs);
        assert_true(again.schedule.factor == r.schedule.factor &&
                    again.schedule.period == r.schedule.period);
    }
}

static void every_key_is_documented(void **s)
{
    (void)s;
    static char text[100000];
    FILE *f = fopen("docs/TRAINING.md", "r");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    for (const sherd__recipe_key *k = sherd__recipe_keys; k->name; k++) {
        char row[60];
        snprintf(row, sizeof row, "%s`%s`", strcmp(k->name, "steps") != 0 ? "\n| " : "", k->name);
        if (!strstr(text, row)) fail_msg("docs/TRAINING.md lacks %s", k->name);
    }
}

/* ---- networks -------------------------------------------------------------------------------- */

static void layers_that_do_not_fit_are_named(void **s)
{
    (void)s;
    sherd__recipe r;
    sherd_diag d;
    sherd__network *n;
    assert_int_equal(parse(&r, with("input = 4 x 4 x 1"), &d), SHERD_OK);
    r.layers[0].padding = 0; /* 4 -> 2 -> 1, which is too small for a pool of 3 */
    d = (sherd_diag){ 0 };
    assert_int_equal(sherd__recipe_network(&r, 1, &n, &d), SHERD_ESHAPE);
    assert_null(n);
    assert_true(d.message[0] != '\0');
}

static void members_are_numbered_over_layers_with_parameters(void **s)
{
    (void)s;
    sherd__recipe r;
    sherd_diag d;
    sherd__network *n;
    char name[16];
    assert_int_equal(parse(&r, whole, &d), SHERD_OK);
    assert_int_equal(sherd__recipe_network(&r, 1, &n, &d), SHERD_OK);
    assert_true(sherd__recipe_member(n, 0, false, name));
    assert_string_equal(name, "w1");
    assert_false(sherd__recipe_member(n, 1, false, name));
    assert_true(sherd__recipe_member(n, 5, true, name));
    assert_string_equal(name, "b2");
    sherd__network_free(n);
}

static void operations_of_an_example_are_counted(void **s)
{
    (void)s;
    sherd__recipe r = { .in = { 8, 8, 2 }, .len = 3 };
    r.layers[0] = (sherd__layer_spec){
        .kind = &sherd__layer_conv2d, .units = 3, .window = 3, .stride = 1
    };
    r.layers[1] = (sherd__layer_spec){ .kind = &sherd__layer_flatten };
    r.layers[2] = (sherd__layer_spec){ .kind = &sherd__layer_dense, .units = 10 };
    double conv = 6 * 6 * 3 * (6 * 18 + 50), dense = 10 * (6 * 108 + 50);
    assert_true(sherd__recipe_flops(&r) == conv + 108 * 50 + dense);
    r.layers[0].window = 9; /* larger than the image */
    assert_true(sherd__recipe_flops(&r) == 0);
    const size_t at[] = { 10, 14, 20 };
    const sherd__local_steps local[] = { { .steps = 3 }, { .steps = 2, .batch = 4 } };
    assert_true(sherd__shards_examples(at, 2, NULL) == 10);
    assert_true(sherd__shards_examples(at, 2, local) == 3 * 4 + 2 * 4);
}

static void without_memory_nothing_is_read(void **s)
{
    (void)s;
    sherd__recipe r, was;
    sherd_diag d;
    sherd__buf b;
    memset(&r, 0x5a, sizeof r);
    was = r;
    sherd__alloc_fail_nth(1);
    assert_int_equal(parse(&r, whole, &d), SHERD_ENOMEM);
    assert_memory_equal(&r, &was, sizeof r);
    assert_int_equal(parse(&r, whole, &d), SHERD_OK);
    sherd__buf_init(&b, 100, 0); /* too small for the text */
    assert_int_equal(sherd__recipe_print(&r, SHERD__RECIPE_ALL, &b), SHERD_EINVAL);
    assert_int_equal(b.len, 0);
    sherd__buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_line_of_a_recipe_is_read),
        cmocka_unit_test(recipes_of_the_examples_are_read_and_print_the_same),
        cmocka_unit_test(different_spellings_of_a_recipe_print_alike),
        cmocka_unit_test(lists_of_names_have_one_spelling_and_any_number_of_words),
        cmocka_unit_test(the_network_part_can_be_parsed_alone),
        cmocka_unit_test(invalid_values_are_reported_with_line_and_key),
        cmocka_unit_test(reports_are_counted_in_epochs_or_steps),
        cmocka_unit_test(an_unknown_key_is_reported_with_its_line_and_the_nearest_key),
        cmocka_unit_test(a_missing_key_is_named),
        cmocka_unit_test(a_duplicate_key_names_both_lines),
        cmocka_unit_test(every_prefix_is_read_or_refused),
        cmocka_unit_test(every_bit_flip_is_read_or_refused),
        cmocka_unit_test(lines_and_texts_that_are_too_long_are_refused),
        cmocka_unit_test(every_double_is_preserved_by_the_text),
        cmocka_unit_test(every_key_is_documented),
        cmocka_unit_test(layers_that_do_not_fit_are_named),
        cmocka_unit_test(members_are_numbered_over_layers_with_parameters),
        cmocka_unit_test(operations_of_an_example_are_counted),
        cmocka_unit_test(without_memory_nothing_is_read),
    };
    comma_locale(); /* changes nothing */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
