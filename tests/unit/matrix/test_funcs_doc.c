/* The vectors of docs/FUNCTIONS.md equal the results of the kernels, with every instruction set. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "matrix/funcs.h"

static const struct wide {
    const char *name;
    void (*f)(const double *x, size_t n, double *out);
} wides[] = {
    { "sigmoid", sherd__sigmoid_f64 },
    { "tanh", sherd__tanh_f64 },
    { "exp", sherd__exp_f64 },
};
static const struct narrow {
    const char *name;
    void (*f)(const float *x, size_t n, float *out);
} narrows[] = {
    { "sigmoid32", sherd__sigmoid_f32 },
    { "tanh32", sherd__tanh_f32 },
    { "exp32", sherd__exp_f32 },
};

static uint64_t compute(const char *name, uint64_t bits)
{
    for (size_t i = 0; i < sizeof wides / sizeof *wides; i++) {
        double x;
        if (strcmp(name, wides[i].name) != 0) continue;
        memcpy(&x, &bits, sizeof x);
        wides[i].f(&x, 1, &x);
        memcpy(&bits, &x, sizeof x);
        return bits;
    }
    for (size_t i = 0; i < sizeof narrows / sizeof *narrows; i++) {
        float x;
        uint32_t half = (uint32_t)bits;
        if (strcmp(name, narrows[i].name) != 0) continue;
        memcpy(&x, &half, sizeof x);
        narrows[i].f(&x, 1, &x);
        memcpy(&half, &x, sizeof x);
        return half;
    }
    fail_msg("docs/FUNCTIONS.md: no function %s", name);
    return 0;
}

static void every_vector_equals_the_functions_result(void **state)
{
    (void)state;
    for (unsigned level = 1; level <= 3; level++) {
        char line[200], name[20], x[17], want[17];
        unsigned seen = 0;
        if (!sherd__funcs_force(level)) continue;
        FILE *f = fopen("docs/FUNCTIONS.md", "r");
        assert_non_null(f);
        while (fgets(line, sizeof line, f)) {
            if (sscanf(line, "| %19[a-z0-9] | %16[0-9a-f] | %16[0-9a-f] |", name, x, want) != 3 ||
                strlen(x) < 8)
                continue;
            uint64_t have = compute(name, strtoull(x, NULL, 16));
            if (have != strtoull(want, NULL, 16))
                fail_msg("%s(%s), level %u: %llx, the document has %s", name, x, level,
                         (unsigned long long)have, want);
            seen++;
        }
        fclose(f);
        assert_in_range(seen, 60, 1000);
    }
    assert_true(sherd__funcs_force(0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_vector_equals_the_functions_result),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
