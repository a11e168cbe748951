/*
 * Computes gradients of examples that are marked as undefined for memcheck, and hides them as a
 * secure sum does: each kind of layer and loss, labels and values, with and without clipping.
 * Memcheck then reports every branch and address that depends on an example; test_undefined.sh
 * reads its output.
 *
 *     prog_undefined header     exits with 0 if built with the memcheck header and with
 *                               optimization (without it, selections are branches)
 *     prog_undefined examples
 *     prog_undefined control    a branch that depends on an example
 */
#include <stdio.h>
#include <string.h>
#if defined __OPTIMIZE__ && __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
enum { HEADER = 1 };
#else
#define VALGRIND_MAKE_MEM_UNDEFINED(p, n) ((void)(p), (void)(n))
#define VALGRIND_MAKE_MEM_DEFINED(p, n) ((void)(p), (void)(n))
enum { HEADER = 0 };
#endif

#include "core/rand.h"
#include "crypto/aggregate.h"
#include "learn/grader.h"
#include "learn/local_data.h"
#include "learn/secure.h"

enum { ROWS = 12, COLS_MAX = 68, COUNT_MAX = 4096 };

typedef struct test_case {
    const char *text;
    size_t inputs, targets;
    bool values;
} test_case;

#define END "data = file\nepochs = 1\nrate = 1\n"
#define THREE "layer = dense 3\nloss = cross-entropy\n" END

static const test_case cases[] = {
    { "input = 8\nlayer = dense 6\nlayer = relu\n" THREE, 8, 1, false },
    { "input = 8\nlayer = dense 6\nlayer = tanh\n" THREE, 8, 1, false },
    { "input = 8\nlayer = dense 6\nlayer = sigmoid\nlayer = dense 3\nloss = squared\n" END, 8, 3,
      true },
    { "input = 8\nlayer = dense 6\nlayer = softmax\nlayer = dense 3\nloss = squared\n" END, 8, 1,
      false },
    { "input = 8 x 8 x 1\nlayer = conv2d 2 window 3\nlayer = relu\nlayer = max-pool 2\n" THREE, 64,
      1, false },
    { "input = 8 x 8 x 1\nlayer = average-pool 2\nlayer = flatten\n" THREE, 64, 1, false },
};

static double examples[ROWS * COLS_MAX];
static int64_t sum[COUNT_MAX];
static uint64_t hidden[COUNT_MAX];
static uint8_t sent[8 * COUNT_MAX];

static void make_examples(const test_case *c)
{
    size_t cols = c->inputs + c->targets;
    for (size_t r = 0; r < ROWS; r++)
        for (size_t j = 0; j < cols; j++)
            examples[r * cols + j] = j < c->inputs ? (double)((r + 5 * j) % 13) / 13
                                                   : (double)((r + j) % 3);
    (void)VALGRIND_MAKE_MEM_UNDEFINED(examples, sizeof examples);
}

static int hide(size_t len)
{
    const sherd__aggregate a = { 4, 3, 1, len };
    const sherd__entropy os = sherd__entropy_os();
    sherd__aggregate_mask *mask;
    int err = sherd__aggregate_mask_new(&mask, &a, &os);
    if (err) return err;
    err = sherd__aggregate_hide(mask, sum, hidden);
    (void)VALGRIND_MAKE_MEM_DEFINED(&err, sizeof err);
    if (!err) sherd__aggregate_print(hidden, len, sent);
    sherd__aggregate_mask_free(mask);
    return err;
}

static int grade_and_hide(const test_case *c, double clip)
{
    static const int32_t scales[SHERD__RECIPE_LAYERS_MAX + 1] = { 20, 20, 20, 20 };
    static sherd__recipe r;
    const size_t cols = c->inputs + c->targets;
    const sherd__own own = { .x = sherd_view_c(examples, SHERD_F64, ROWS, cols) };
    const sherd__own_options o = {
        .recipe = &r, .data = &own, .values = c->values, .divide = 2, .clip = clip
    };
    sherd__own_grader *g = NULL;
    size_t tiers = 0, counts[SHERD__RECIPE_LAYERS_MAX], count = 0;
    int err = sherd__recipe_parse(&r, c->text, strlen(c->text), "case", SHERD__RECIPE_ALL, NULL);
    if (!err) err = sherd__recipe_tiers(&r, &tiers, counts, NULL);
    for (size_t t = 0; t < tiers; t++) count += counts[t];
    if (!err) err = sherd__own_new(&g, &o, NULL);
    for (size_t i = 0; !err && i < count; i++)
        sherd__own_params(g)[i] = (double)(i % 17) / 17 - 0.4;
    if (!err)
        err = sherd__own_grade(g, &(sherd__own_request){ 0, ROWS + 3, scales, 30 }, sum,
                               NULL); /* 3 empty places */
    if (!err) err = hide(count + SHERD__SECURE_EXTRA);
    sherd__own_free(g);
    return err;
}

static int __attribute__((noinline)) secret_branch(const double *x)
{
    return *x < 0.5 ? puts("small") : puts("large");
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "header")) return !HEADER;
    if (!strcmp(what, "control")) {
        make_examples(&cases[0]);
        return secret_branch(examples) < 0;
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int clips = 0; clips < 2; clips++) {
            make_examples(&cases[i]);
            int err = grade_and_hide(&cases[i], clips);
            if (!err) continue;
            fprintf(stderr, "%s: %d\n", cases[i].text, err);
            return 1;
        }
    return 0;
}
