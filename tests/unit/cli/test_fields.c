/* Structs as JSON by the tables of their fields. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/fields.h"
#include "core/field.h"
#include "sherd/forecast.h"

typedef struct thing {
    size_t size;
    bool yes;
    int32_t low;
    uint32_t len;
    uint64_t much;
    double real, none;
    char text[8];
    const char *name, *no_name;
    uint32_t kind;
    uint8_t bytes[3];
    double *list;
} thing;

static const char *const kinds[] = { "first", "second", NULL };

static const sherd_field table[] = {
    SHERD__FIELD(thing, yes, BOOL, "", ""),     SHERD__FIELD(thing, low, I32, "", ""),
    SHERD__FIELD(thing, len, U32, "", ""),      SHERD__FIELD(thing, much, U64, "", ""),
    SHERD__FIELD(thing, real, F64, "", ""),     SHERD__FIELD(thing, none, F64, "", ""),
    SHERD__FIELD(thing, text, TEXT, "", ""),    SHERD__FIELD(thing, name, NAME, "", ""),
    SHERD__FIELD(thing, no_name, NAME, "", ""), SHERD__FIELD_ENUM(thing, kind, kinds, ""),
    SHERD__FIELD(thing, bytes, BYTES, "", ""),  SHERD__FIELD_ARRAY(thing, list, F64, len, "", ""),
};

static const sherd_field *fields(size_t *count)
{
    *count = sizeof table / sizeof *table;
    return table;
}

static void each_type_of_field_has_its_form_in_json(void **state)
{
    (void)state;
    static double list[] = { 1.5, NAN };
    static const char *const without[] = { "low", NULL };
    const thing x = { .yes = true,
                      .low = -3,
                      .len = 2,
                      .much = UINT64_MAX,
                      .real = 0.5,
                      .none = INFINITY,
                      .text = "abc",
                      .name = "n",
                      .kind = 1,
                      .bytes = { 0, 171, 255 },
                      .list = list };
    json_t *o = json_object();
    sherd__fields_json(o, &x, fields, without);
    char *text = json_dumps(o, JSON_COMPACT);
    assert_string_equal(text, "{\"yes\":true,\"len\":2,\"much\":9223372036854775807,\"real\":0.5,"
                              "\"none\":null,\"text\":\"abc\",\"name\":\"n\",\"no_name\":null,"
                              "\"kind\":\"second\",\"bytes\":\"00abff\",\"list\":[1.5,null]}");
    free(text);
    json_decref(o);
}

static void members_can_be_chosen_by_name(void **state)
{
    (void)state;
    static const char *const names[] = { "real", "kind", "nothing", NULL };
    const thing x = { .real = 2, .kind = 0 };
    json_t *o = json_object();
    sherd__fields_json_of(o, &x, fields, names);
    char *text = json_dumps(o, JSON_COMPACT);
    assert_string_equal(text, "{\"real\":2.0,\"kind\":\"first\"}");
    free(text);
    json_decref(o);
}

static void choices_of_encoding_are_its_names(void **state)
{
    (void)state;
    size_t count, found = 0;
    const sherd_field *f = sherd_forecast_fields(&count);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(f[i].name, "encoding") != 0) continue;
        found++;
        for (size_t k = 0;; k++) {
            const char *choice = sherd__choices_encoding[k], *name = f[i].names[k];
            assert_true(!choice == !name);
            if (!choice) break;
            assert_string_equal(choice, name);
        }
    }
    assert_int_equal(found, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(each_type_of_field_has_its_form_in_json),
                                        cmocka_unit_test(members_can_be_chosen_by_name),
                                        cmocka_unit_test(choices_of_encoding_are_its_names) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
