/* Lines of tables: the fields of structs as text, in columns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "cli/rows.h"
#include "core/field.h"

typedef struct thing {
    size_t size;
    bool yes;
    int32_t low;
    uint32_t kind;
    uint64_t much;
    int64_t when;
    double real, seconds, part;
    char text[8];
    const char *name, *unnamed;
    uint8_t bytes[4];
} thing;

static const char *const kinds[] = { "first", "second", NULL };

static const sherd_field table[] = {
    SHERD__FIELD(thing, yes, BOOL, "", ""),     SHERD__FIELD(thing, low, I32, "", ""),
    SHERD__FIELD_ENUM(thing, kind, kinds, ""),  SHERD__FIELD(thing, much, U64, "bytes", ""),
    SHERD__FIELD(thing, when, I64, "", ""),     SHERD__FIELD(thing, real, F64, "", ""),
    SHERD__FIELD(thing, seconds, F64, "s", ""), SHERD__FIELD(thing, part, F64, "fraction", ""),
    SHERD__FIELD(thing, text, TEXT, "", ""),    SHERD__FIELD(thing, name, NAME, "", ""),
    SHERD__FIELD(thing, unnamed, NAME, "", ""), SHERD__FIELD(thing, bytes, BYTES, "", ""),
};
enum { COUNT = sizeof table / sizeof *table };

static const sherd_field *fields(size_t *count)
{
    *count = COUNT;
    return table;
}

static const thing one = { .yes = true,
                           .low = -7,
                           .kind = 1,
                           .much = 1500000,
                           .when = -9,
                           .real = 1.0 / 3,
                           .seconds = 0.25,
                           .part = 0.345,
                           .text = "abc",
                           .name = "a name" };

static void a_field_is_formatted_in_its_unit(void **s)
{
    (void)s;
    static const char *const texts[] = { "yes",    "-7",     "second", "1.5 MB", "-9", "0.333",
                                         "0.25 s", "34.5 %", "abc",    "a name", "-",  "-" };
    char out[48];
    for (size_t i = 0; i < COUNT; i++)
        assert_string_equal(sherd__field_text(&one, &table[i], out), texts[i]);
    const thing none = { .kind = 9 };
    assert_string_equal(sherd__field_text(&none, sherd__field_find(fields, "seconds"), out),
                        "-"); /* not known */
    assert_string_equal(sherd__field_text(&none, sherd__field_find(fields, "kind"), out), "-");
    assert_null(sherd__field_find(fields, "nothing"));
}

static const char *twice(const void *x, char out[48])
{
    snprintf(out, 48, "%d", 2 * ((const thing *)x)->low);
    return out;
}

static void titles_and_rows_have_the_same_columns(void **s)
{
    (void)s;
    static const sherd__column columns[] = {
        { "name", -8, "name", NULL },   { "size", 8, "much", NULL },   { "twice", 6, NULL, twice },
        { "time", 7, "seconds", NULL }, { "by", -6, "unnamed", NULL }, { NULL, 0, NULL, NULL },
    };
    char out[128];
    assert_string_equal(sherd__row_text(out, sizeof out, columns, NULL, fields),
                        "name          size   twice     time  by");
    assert_string_equal(sherd__row_text(out, sizeof out, columns, &one, fields),
                        "a name      1.5 MB     -14   0.25 s  -");
    assert_string_equal(sherd__row_text(out, 12, columns, &one, fields), "a name");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_field_is_formatted_in_its_unit),
        cmocka_unit_test(titles_and_rows_have_the_same_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
