/* CSV: files that RFC 4180 allows are read, numbers have the bits that strtod gives, and errors are
 * reported with line and column. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/rand.h"
#include "store/csv.h"
#include "tests/support/comma_locale.h"
#include "tests/unit/store/scratch.h"

static const sherd__csv_want label_last = { .targets = 1, .labels = true };
static const sherd__csv_want all_inputs = { 0 };

static int parse_n(sherd__csv *x, const void *text, size_t len, const sherd__csv_want *w,
                   sherd_diag *d)
{
    uint8_t *exact = malloc(len ? len : 1); /* exact, so that sanitizers see an overrun */
    memcpy(exact, text, len);
    if (d) *d = (sherd_diag){ 0 };
    int err = sherd__csv_parse(x, exact, len, "f.csv", w, d);
    free(exact);
    return err;
}

static int parse(sherd__csv *x, const char *text, const sherd__csv_want *w, sherd_diag *d)
{
    return parse_n(x, text, strlen(text), w, d);
}

/* Reads the text with label_last and compares inputs and labels. */
static void reads(const char *text, size_t rows, size_t inputs, const double *x,
                  const uint32_t *labels)
{
    sherd__csv c;
    sherd_diag d;
    int err = parse(&c, text, &label_last, &d);
    if (err) fail_msg("%s", d.message);
    assert_int_equal(c.rows, rows);
    assert_int_equal(c.inputs, inputs);
    assert_memory_equal(c.x, x, rows * inputs * sizeof *x);
    assert_memory_equal(c.labels, labels, rows * sizeof *labels);
    assert_null(c.values);
    sherd__csv_fini(&c);
    sherd__csv_fini(&c);
}

/* Checks that the text is refused, with a message that begins with `begins`. */
static void refuses(const char *text, const sherd__csv_want *w, int code, const char *begins)
{
    sherd__csv c = { .rows = 77 };
    sherd_diag d;
    int err = parse(&c, text, w, &d);
    if (err != code || strncmp(d.message, begins, strlen(begins)) != 0)
        fail_msg("%d: %s\n  expected %d: %s", err, d.message, code, begins);
    assert_int_equal(c.rows, 77);
}

static void line_ends_headers_quotes_and_a_byte_order_mark_do_not_matter(void **s)
{
    (void)s;
    const double x[] = { 1, 2.5, -3, 0.25 };
    const uint32_t y[] = { 0, 7 };
    reads("1,2.5,0\n-3,0.25,7\n", 2, 2, x, y);
    reads("1,2.5,0\n-3,0.25,7", 2, 2, x, y);
    reads("1,2.5,0\r\n-3,0.25,7\r\n", 2, 2, x, y);
    reads("1,2.5,0\n-3,0.25,7\n\n\r\n\n", 2, 2, x, y);
    reads("a,b,c\n1,2.5,0\n-3,0.25,7\n", 2, 2, x, y);
    reads(",,\n1,2.5,0\n-3,0.25,7\n", 2, 2, x, y);
    reads("\"a, b\",\"b \"\"c\"\"\r\nd\",\"\"\r\n1,2.5,0\n-3,0.25,7\n", 2, 2, x, y);
    reads("\"1\",\"2.5\",\"0\"\n\"-3\",\"0.25\",\"7\"\n", 2, 2, x, y);
    reads("\xef\xbb\xbf"
          "1,2.5,0\n-3,0.25,7\n",
          2, 2, x, y);
    reads("\xef\xbb\xbf\"a\",b,c\n1,2.5,0\n-3,0.25,7\n", 2, 2, x, y);
    reads(" 1,2.5\t,0\n -3 ,\" .25\", 7.0\n", 2, 2, x, y);
    reads("nan,inf,0x10\n1,25e-1,0e9\n-3.,+.25,+70.e-1\n", 2, 2, x, y);
}

static void the_target_is_the_last_column_a_named_one_or_absent(void **s)
{
    (void)s;
    const sherd__csv_want named = { .targets = 1, .labels = true, .label = "k\"d" },
                          bare = { .targets = 1, .labels = true, .label = "k\"d", .inputs = 2 },
                          two = { .targets = 2 }, value = { .targets = 1, .label = "k\"d" };
    const double x[] = { 1, 2, 3, 4 };
    static const char *const places[] = { "\"k\"\"d\",a,b\n8,1,2\n9,3,4",
                                          "a,\"k\"\"d\",b\n1,8,2\n3,9,4",
                                          "a,b,\"k\"\"d\"\n1,2,8\n3,4,9" };
    sherd__csv c;
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(parse(&c, places[i], i == 1 ? &bare : &named, NULL), 0);
        assert_true(c.labels[0] == 8 && c.labels[1] == 9 && c.inputs == 2);
        assert_memory_equal(c.x, x, sizeof x);
        sherd__csv_fini(&c);
        assert_int_equal(parse(&c, places[i], &value, NULL), 0);
        assert_true(c.values[0] == 8 && c.values[1] == 9 && !c.labels);
        assert_memory_equal(c.x, x, sizeof x);
        sherd__csv_fini(&c);
    }
    assert_int_equal(parse(&c, "1,2\n3,4\n", &bare, NULL), 0);
    assert_true(!c.labels && !c.values && c.rows == 2);
    assert_memory_equal(c.x, x, sizeof x);
    sherd__csv_fini(&c);
    assert_int_equal(parse(&c, "1,5,-6.5\n2,7,8\n", &two, NULL), 0);
    assert_true(c.inputs == 1 && c.x[1] == 2 && c.values[0] == 5 && c.values[1] == -6.5 &&
                c.values[3] == 8);
    sherd__csv_fini(&c);
    refuses("a,b\n1,2\n", &named, SHERD_EFORMAT,
            "f.csv:1:1: expected a header with one column 'k\"d', found none of that name");
    refuses("1,2,3\n", &named, SHERD_EFORMAT,
            "f.csv:1:1: expected a header with one column 'k\"d', found numbers");
    refuses("\"k\"\"d\",\"k\"\"d\"\n", &named, SHERD_EFORMAT,
            "f.csv:1:1: expected a header with one column 'k\"d', found more than one");
    refuses("1,2,3\n", &bare, SHERD_EFORMAT, "f.csv:1:1: expected a header");
    refuses("1\n2\n", &label_last, SHERD_ESHAPE,
            "f.csv:1:1: expected inputs and 1 target column, found 1 field");
    refuses("1,2\n2,3\n", &two, SHERD_ESHAPE, "f.csv:1:1: expected inputs and 2 target columns");
}

static void other_separators_are_named(void **s)
{
    (void)s;
    const double x[] = { 1, 2 };
    const uint32_t y[] = { 3, 4 };
    refuses("a;b\n1;2\n", &label_last, SHERD_EFORMAT,
            "f.csv:1:2: expected commas between fields, found semicolons");
    refuses("1;2\t;3", &label_last, SHERD_EFORMAT,
            "f.csv:1:2: expected commas between fields, found semicolons");
    refuses("a\tb\n1\t2\n", &label_last, SHERD_EFORMAT,
            "f.csv:1:2: expected commas between fields, found tabs");
    refuses("\"a;b\"\n1\n", &label_last, SHERD_ESHAPE,
            "f.csv:1:1: expected inputs and 1 target column, found 1 field");
    reads("a;b,c\n1,3\n2,4\n", 2, 1, x, y);
}

static const sherd__csv_want named_labels = { .targets = 1, .labels = true, .names = true };

/* Returns a list that shares memory with the names given. */
static sherd__namelist list(char **names, size_t len)
{
    return (sherd__namelist){ .at = names, .len = len };
}

static void has_names(const sherd__namelist *x, const char *const *names, size_t len)
{
    assert_int_equal(x->len, len);
    for (size_t i = 0; i < len; i++) assert_string_equal(x->at[i], names[i]);
}

static void labels_may_be_names_sorted_by_bytes(void **s)
{
    (void)s;
    static const char *const sorted[] = { "B", "a", "b \"c\", d", "\xc3\xa4" }, *const columns[] = {
        "x", ""
    };
    static const char *const texts[] = {
        "x,,kind\n1,2, \xc3\xa4\n3,4,a\n5,6,\"b \"\"c\"\", d\"\n7,8,B\n9,9,\"a \"\n",
        "1,2,\xc3\xa4\n3,4,a\n5,6,\"b \"\"c\"\", d\"\n7,8,B\n9,9,a"
    };
    const uint32_t labels[] = { 3, 1, 2, 0, 1 };
    sherd__csv c;
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(parse(&c, texts[i], &named_labels, NULL), 0);
        assert_memory_equal(c.labels, labels, sizeof labels);
        has_names(&c.classes, sorted, 4);
        has_names(&c.columns, columns, i == 0 ? 2 : 0);
        assert_int_equal(c.target.len, i == 0);
        if (i == 0) assert_string_equal(c.target.at[0], "kind");
        sherd__csv_fini(&c);
    }
    assert_int_equal(parse(&c, "a,y\n1,2\n3,0\n", &named_labels, NULL), 0);
    assert_true(c.labels[0] == 2 && c.labels[1] == 0 && c.classes.len == 0);
    sherd__csv_fini(&c);
    refuses("1,2\n3,x\n", &named_labels, SHERD_EFORMAT,
            "f.csv:2:3: field 2: expected a label, found 'x'");
    refuses("a,y\n1,x\n3,\n", &named_labels, SHERD_EFORMAT,
            "f.csv:3:3: field 2: expected a label, found nothing");
    refuses("a,y\n1,x\n3,\"y\nz\"\n", &named_labels, SHERD_EFORMAT,
            "f.csv:3:3: field 2: expected a label, found 'y?z'");
    refuses("1,x,3\n", &named_labels, SHERD_EFORMAT,
            "f.csv:1:3: expected all names or all numbers");
    refuses("1,x,y\n", &named_labels, SHERD_EFORMAT,
            "f.csv:1:3: expected all names or all numbers");
    char longest[SHERD__NAME_MAX + 10] = "1,";
    memset(longest + 2, 'x', SHERD__NAME_MAX);
    assert_int_equal(parse(&c, longest, &named_labels, NULL), 0);
    sherd__csv_fini(&c);
    longest[SHERD__NAME_MAX + 2] = 'x';
    refuses(longest, &named_labels, SHERD_EFORMAT,
            "f.csv:1:3: field 2: expected a label, found 'xxx");
}

static void given_classes_number_the_labels(void **s)
{
    (void)s;
    char *names[] = { "yes", "-1", "no" };
    const sherd__namelist classes = list(names, 3);
    const sherd__csv_want given = { .targets = 1, .labels = true, .classes = &classes };
    sherd__csv c;
    assert_int_equal(parse(&c, "1,no\n2,yes\n3,-1\n", &given, NULL), 0);
    assert_true(c.labels[0] == 2 && c.labels[1] == 0 && c.labels[2] == 1 && c.classes.len == 0);
    sherd__csv_fini(&c);
    refuses("1,no\n2,maybe\n", &given, SHERD_EFORMAT,
            "f.csv:2:3: field 2: expected one of the classes yes, -1, no, found 'maybe'");
    refuses("1,0\n", &given, SHERD_EFORMAT, "f.csv:1:3: field 2: expected one of the classes");
    sherd_diag d = { 0 };
    assert_int_equal(parse(&c, "1,maybe\n", &given, &d), SHERD_EFORMAT);
    assert_string_equal(d.hint, "leave out lines of other classes");
    sherd__csv_want recipe = given; /* of a recipe with `class_names` */
    recipe.names = true;
    assert_int_equal(parse(&c, "1,maybe\n", &recipe, &d), SHERD_EFORMAT);
    assert_string_equal(d.hint, "`class_names` lists the classes; leave out lines of others");
}

static void too_many_classes_are_refused_where_they_occur(void **s)
{
    (void)s;
    size_t cap = (size_t)SHERD__CSV_CLASSES_MAX * 16, at = 0;
    char *text = malloc(cap), begins[80];
    for (size_t i = 0; i <= SHERD__CSV_CLASSES_MAX; i++)
        at += (size_t)snprintf(text + at, cap - at, "1,c%zu\n", i * 7919 % 16411);
    snprintf(begins, sizeof begins, "f.csv:%u:3: field 2: more than", SHERD__CSV_CLASSES_MAX + 1);
    refuses(text, &named_labels, SHERD_EFORMAT, begins);
    free(text);
}

static void columns_are_found_by_their_names(void **s)
{
    (void)s;
    char *names[] = { "b", "2020" };
    const sherd__namelist columns = list(names, 2);
    static const char *const order[] = { "b", "2020" };
    const sherd__csv_want
        by_name = { .targets = 1, .labels = true, .columns = &columns, .label = "y" },
        last = { .targets = 1, .labels = true, .names = true, .columns = &columns },
        optional = { .targets = 1, .labels = true, .columns = &columns, .label = "y", .inputs = 2 };
    const double x[] = { 1, 2, 3, 4 };
    sherd__csv c;
    assert_int_equal(parse(&c, "id,2020,y,b\nq1,2,8,1\n\"q,2\",4,9,3\n", &by_name, NULL), 0);
    assert_true(c.rows == 2 && c.inputs == 2 && c.labels[0] == 8 && c.labels[1] == 9);
    assert_memory_equal(c.x, x, sizeof x);
    has_names(&c.columns, order, 2);
    sherd__csv_fini(&c);
    assert_int_equal(parse(&c, " b ,\"2020\",id,kind\n1,2,,u\n3,4,,u\n", &last, NULL), 0);
    assert_memory_equal(c.x, x, sizeof x);
    assert_string_equal(c.classes.at[0], "u");
    sherd__csv_fini(&c);
    static const char *const bare[] = { "1,2\n3,4\n", "2020,b\n2,1\n4,3\n",
                                        "2020,z,b\n2,?,1\n4,?,3\n" };
    for (size_t i = 0; i < 3; i++) { /* without a target, with a header or without */
        assert_int_equal(parse(&c, bare[i], &optional, NULL), 0);
        assert_true(!c.labels && c.rows == 2 && c.inputs == 2);
        assert_memory_equal(c.x, x, sizeof x);
        sherd__csv_fini(&c);
    }
    assert_int_equal(parse(&c, "y,2020,b\n8,2,1\n9,4,3\n", &optional, NULL), 0);
    assert_true(c.labels[1] == 9 && c.x[3] == 4);
    sherd__csv_fini(&c);
    refuses("a,b,y\n1,2,3\n", &by_name, SHERD_EFORMAT,
            "f.csv:1:1: expected a column '2020' in the header, found none of that name");
    refuses("b,2020,b,y\n1,2,3,4\n", &by_name, SHERD_EFORMAT,
            "f.csv:1:1: more than one column is named 'b'");
    refuses("y,b,2020\n1,2,3\n", &last, SHERD_EFORMAT,
            "f.csv:1:1: the column '2020' is both an input and the target");
    refuses("b,2020,y\n1,x,3\n", &by_name, SHERD_EFORMAT, "f.csv:2:3: field 2: expected a number");
    refuses("b,2020,y,y\n1,2,3,4\n", &optional, SHERD_EFORMAT,
            "f.csv:1:1: expected a header with one column 'y'");
    refuses("b,y\n1,2\n", &optional, SHERD_EFORMAT, "f.csv:1:1: expected a column '2020'");
}

static void errors_are_reported_with_line_and_column(void **s)
{
    (void)s;
    refuses("", &label_last, SHERD_EFORMAT, "f.csv:1:1: expected names or numbers, found nothing");
    refuses("\n1,2\n", &label_last, SHERD_EFORMAT, "f.csv:1:1: expected names");
    refuses("a,b\n", &label_last, SHERD_EFORMAT, "f.csv:2:1: expected numbers below the header");
    refuses("\"a\nb\",c\n1,2\n1,x\n", &label_last, SHERD_EFORMAT,
            "f.csv:4:3: field 2: expected a label, found 'x'");
    refuses("1,2\n1,2\n\n1,2\n", &label_last, SHERD_EFORMAT,
            "f.csv:4:1: expected the end of the file after an empty line");
    refuses("1,2,3\n1,2\n", &label_last, SHERD_EFORMAT,
            "f.csv:2:4: expected 3 fields as in the first line, found 2");
    refuses("1,2,3\n1,2,3,4\n", &label_last, SHERD_EFORMAT,
            "f.csv:2:7: expected 3 fields as in the first line, found more");
    refuses("1,2,3\n1,,3\n", &label_last, SHERD_EFORMAT,
            "f.csv:2:3: field 2: expected a number, found nothing");
    refuses("1,a,3\n", &label_last, SHERD_EFORMAT,
            "f.csv:1:3: expected all names or all numbers in the first line, found 'a' beside '1'");
    refuses("1,2,3\n1,\"2,3\n", &label_last, SHERD_EFORMAT,
            "f.csv:2:3: a quote that is never closed");
    refuses("1,2,3\n1,\"2\"x,3\n", &label_last, SHERD_EFORMAT, "f.csv:2:6: expected a comma");
    refuses("1,2,3\n1,2\"2\",3\n", &label_last, SHERD_EFORMAT, "f.csv:2:4: a quote within a field");
    refuses("1,2,3\r4,5,6\r", &label_last, SHERD_EFORMAT, "f.csv:1:6: a carriage return without");
    refuses("1,2\n1,2.5\n", &label_last, SHERD_EFORMAT,
            "f.csv:2:3: field 2: expected a label, found '2.5'");
    refuses("1,2\n1,-1\n", &label_last, SHERD_EFORMAT, "f.csv:2:3: field 2: expected a label");
    refuses("1,2\n1,4294967295\n", &label_last, SHERD_EFORMAT, "f.csv:2:3: field 2: expected a l");
    refuses("1,2\n1e309,1\n", &label_last, SHERD_EFORMAT,
            "f.csv:2:1: field 1: '1e309' is outside the range of a double");
    refuses("1,2\n\x1b[2J\xff,1\n", &label_last, SHERD_EFORMAT,
            "f.csv:2:1: field 1: expected a number, found '?[2J?'");
    sherd__csv c;
    sherd_diag d;
    assert_int_equal(parse(&c, "1;2\n", &all_inputs, &d), SHERD_EFORMAT);
    assert_int_equal(parse_n(&c,
                             "\xff\xfe"
                             "1\0,\0",
                             6, &all_inputs, &d),
                     SHERD_EFORMAT);
    assert_non_null(strstr(d.message, "UTF-16"));
    assert_int_equal(parse_n(&c, "1,2\n1\0,2\n", 10, &all_inputs, &d), SHERD_EFORMAT);
    assert_non_null(strstr(d.message, "f.csv:2:1: field 1"));
    assert_int_equal(parse(&c, "1,2\n1;2,3\n", &all_inputs, &d), SHERD_EFORMAT);
    assert_non_null(strstr(d.hint, "commas"));
    static const char *const no_numbers[] = { "nan",  "inf", "-infinity", "0x1p3", "1e",    "1e+",
                                              ".",    "-",   "+-1",       "1 2",   "1.2.3", "--1",
                                              "1e5.", "1_0", "1d5",       "" };
    for (size_t i = 0; i < sizeof no_numbers / sizeof *no_numbers; i++) {
        char text[64];
        snprintf(text, sizeof text, "1,1\n%s,1\n", no_numbers[i]);
        refuses(text, &all_inputs, SHERD_EFORMAT, "f.csv:2:1: field 1: expected a number");
    }
}

static uint64_t next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state ^ *state >> 29;
}

/* Reads a single number, which must have the bits that strtod gives. */
static void same_bits(const char *text)
{
    sherd__csv c;
    sherd_diag d;
    double expected = strtod(text, NULL);
    int err = parse(&c, text, &all_inputs, &d);
    if (!isfinite(expected)) {
        assert_int_equal(err, SHERD_EFORMAT);
        return;
    }
    if (err) fail_msg("%s: %s", text, d.message);
    if (memcmp(c.x, &expected, sizeof expected) != 0)
        fail_msg("%s: %.17g, strtod gives %.17g", text, *c.x, expected);
    sherd__csv_fini(&c);
}

static void numbers_have_the_bits_that_strtod_gives(void **s)
{
    (void)s;
    static const char *const hard[] = {
        "0",
        "-0",
        "0.0",
        "-0e5",
        "1",
        "0.1",
        "9007199254740992",
        "9007199254740993",
        "9007199254740991e22",
        "9007199254740992e22",
        "1e22",
        "1e23",
        "1e-22",
        "1e-23",
        "8.5e-22",
        "123456789012345678",
        "1234567890123456789",
        "12345678901234567890",
        "18446744073709551615",
        "18446744073709551616",
        "0.0000000000000000000000000000001",
        "00000000000000000000000000000001.5",
        "4.9406564584124654e-324",
        "2.4703282292062327e-324",
        "2.4703282292062328e-324",
        "2.2250738585072011e-308",
        "1.7976931348623157e308",
        "1.7976931348623158e308",
        "1.7976931348623159e308",
        "1e309",
        "1e-400",
        "-1e-400",
        "1e99999999999999999999",
        "1e-99999999999999999999",
        "0e99999999999999999999",
        "6.631236846766476e-316",
        "9214843084008499",
        "0.500000000000000166533453693773481063544750213623046875",
        "3.518437208883201171875e13",
        "1.00000000000000011102230246251565404236316680908203125",
        "1.00000000000000011102230246251565404236316680908203124",
        "1.00000000000000011102230246251565404236316680908203126",
        "0.000000000000000000000000000000000000000000000000000000000000000000000000000000000001e84",
    };
    for (size_t i = 0; i < sizeof hard / sizeof *hard; i++) same_bits(hard[i]);
    uint64_t state = 4;
    char text[128];
    for (int i = 0; i < 40000; i++) {
        uint64_t bits = next(&state);
        double x;
        memcpy(&x, &bits, sizeof x);
        if (!isfinite(x)) continue;
        snprintf(text, sizeof text, "%.*g", (int)(next(&state) % 20) + 1, x);
        same_bits(text);
        snprintf(text, sizeof text, "%s%llu.%0*llue%d", i % 3 ? "" : "-",
                 (unsigned long long)(next(&state) >> next(&state) % 64), (int)(next(&state) % 9),
                 (unsigned long long)(next(&state) % 1000000), (int)(next(&state) % 60) - 30);
        same_bits(text);
    }
    char *longest = malloc(SHERD__CSV_NUMBER_MAX + 2);
    memset(longest, '3', SHERD__CSV_NUMBER_MAX + 1);
    longest[1] = '.';
    longest[SHERD__CSV_NUMBER_MAX] = '\0';
    same_bits(longest);
    longest[SHERD__CSV_NUMBER_MAX] = '3';
    longest[SHERD__CSV_NUMBER_MAX + 1] = '\0';
    refuses(longest, &all_inputs, SHERD_EFORMAT, "f.csv:1:1: field 1: a number of 1025 characters");
    free(longest);
}

static void the_users_locale_does_not_change_numbers(void **s)
{
    (void)s;
    const double x[] = { 1.5, 0.1234567890123456789 };
    sherd__csv c;
    comma_locale();
    assert_int_equal(parse(&c, "1.5,0.1234567890123456789\n", &all_inputs, NULL), 0);
    assert_memory_equal(c.x, x, sizeof x);
    sherd__csv_fini(&c);
    setlocale(LC_NUMERIC, "C");
}

static const char sample[] = "\xef\xbb\xbf\"a \"\"b\",\"c\nd\",y\r\n\"1\", 2.5e-3 ,0\r\n"
                             "12345678901234567890,4,2\r\n\r\n";

static void every_prefix_and_every_flipped_bit_is_read_or_refused(void **s)
{
    (void)s;
    size_t len = sizeof sample - 1;
    char copy[sizeof sample];
    for (size_t n = 0; n <= len; n++)
        for (unsigned bit = 0; bit < 8 && n + bit / 8 <= len; bit++) {
            sherd__csv c = { 0 };
            sherd_diag d;
            memcpy(copy, sample, len);
            if (n < len) copy[n] = (char)(copy[n] ^ 1 << bit);
            for (int prefix = 0; prefix < 2; prefix++) {
                int err = parse_n(&c, prefix ? sample : copy, prefix ? n : len, &label_last, &d);
                size_t last = err ? 0 : c.rows * c.inputs - 1;
                if (err) assert_true(d.code == err && strncmp(d.message, "f.csv:", 6) == 0);
                else assert_true(c.rows >= 1 && c.inputs >= 1 && isfinite(c.x[last]));
                sherd__csv_fini(&c);
            }
        }
}

static void random_tables_read_as_they_were_written(void **s)
{
    (void)s;
    uint64_t state = 11;
    for (int round = 0; round < 200; round++) {
        size_t rows = 1 + next(&state) % 12, cols = 2 + next(&state) % 9, at = 0, cap = 1u << 16;
        char *text = malloc(cap);
        double *x = calloc(rows * cols, sizeof *x);
        const char *end = next(&state) % 2 ? "\r\n" : "\n";
        for (size_t j = 0; j < cols && round % 3 == 0; j++)
            at += (size_t)snprintf(text + at, cap - at, "\"f,%zu\"%s", j, j + 1 < cols ? "," : end);
        for (size_t i = 0; i < rows; i++)
            for (size_t j = 0; j < cols; j++) {
                bool label = j + 1 == cols, quoted = next(&state) % 4 == 0;
                double v = label ? (double)(next(&state) % 10)
                                 : (double)(int64_t)next(&state) / (double)(1 + next(&state) % 999);
                x[i * cols + j] = v;
                at += (size_t)snprintf(text + at, cap - at, quoted ? "\"%.17g\"%s" : "%.17g%s", v,
                                       j + 1 < cols                ? ","
                                       : i + 1 < rows || round % 2 ? end
                                                                   : "");
            }
        sherd__csv c;
        sherd_diag d;
        if (parse_n(&c, text, at, &label_last, &d)) fail_msg("%s", d.message);
        assert_true(c.rows == rows && c.inputs == cols - 1);
        for (size_t i = 0; i < rows; i++) {
            assert_memory_equal(c.x + i * c.inputs, x + i * cols, c.inputs * sizeof *x);
            assert_true((double)c.labels[i] == x[i * cols + cols - 1]);
        }
        sherd__csv_fini(&c);
        free(x);
        free(text);
    }
}

/* A megabyte of text that could take time in proportion to the square of its length. */
static void hostile_texts_take_time_in_proportion_to_their_length(void **s)
{
    (void)s;
    size_t len = (size_t)1 << 20;
    static const char fills[] = { '"', ',', '\n', '1', '0', ' ', '\r', 'e', 'a' };
    static const char *const heads[] = { "", "1,2\n", "a,b\n", "\"", "1,2\n\"", "1,2\n3," };
    char *text = malloc(len);
    double began = sherd__clock_s();
    char *one[] = { "a" };
    const sherd__namelist columns = list(one, 1);
    const sherd__csv_want by_name = { .targets = 1,
                                      .labels = true,
                                      .names = true,
                                      .columns = &columns },
                          *const wants[] = { &label_last, &named_labels, &by_name };
    for (size_t h = 0; h < sizeof heads / sizeof *heads; h++)
        for (size_t f = 0; f < sizeof fills; f++)
            for (size_t w = 0; w < 3; w++) {
                sherd__csv c = { 0 };
                memset(text, fills[f], len);
                memcpy(text, heads[h], strlen(heads[h]));
                (void)!parse_n(&c, text, len, wants[w], NULL);
                sherd__csv_fini(&c);
            }
    for (size_t i = 0; i < len; i++) text[i] = i % 2 ? '\n' : '1'; /* as many lines as possible */
    sherd__csv c;
    assert_int_equal(parse_n(&c, text, len, &all_inputs, NULL), 0);
    assert_int_equal(c.rows, len / 2);
    sherd__csv_fini(&c);
    for (size_t i = 0; i < len; i++) text[i] = i % 2 ? ',' : '1'; /* as many fields as possible */
    text[len - 1] = '\n';
    assert_int_equal(parse_n(&c, text, len, &all_inputs, NULL), 0);
    assert_int_equal(c.inputs, len / 2);
    sherd__csv_fini(&c);
    free(text);
    assert_true(sherd__clock_s() - began < 60); /* takes some tenths of a second; quadratic time
                                                 * would be hours */
}

static void a_file_reads_like_its_bytes_and_other_paths_are_errors(void **s)
{
    (void)s;
    sherd__csv c;
    sherd_diag d = { 0 };
    scratch_write("t.csv", "a,y\n1.5,1\n2.5,0\n", 16);
    assert_int_equal(sherd__csv_load(&c, scratch_path("t.csv"), &label_last, &d), 0);
    assert_true(c.rows == 2 && c.x[1] == 2.5 && c.labels[0] == 1);
    sherd__csv_fini(&c);
    assert_int_equal(sherd__csv_load(&c, scratch_path("none.csv"), &label_last, &d), SHERD_EOPEN);
    size_t len = 0, rows = 100000; /* large enough to be mapped */
    char *text = malloc(rows * 16);
    for (size_t i = 0; i < rows; i++)
        len += (size_t)snprintf(text + len, 16, "%zu.5,%zu\n", i, i % 10);
    scratch_write("large.csv", text, len);
    assert_int_equal(sherd__csv_load(&c, scratch_path("large.csv"), &label_last, NULL), 0);
    assert_true(c.rows == rows && c.x[rows - 1] == 99999.5 && c.labels[rows - 1] == 9);
    sherd__csv_fini(&c);
    free(text);
}

static void without_memory_nothing_is_read(void **s)
{
    (void)s;
    sherd__csv c = { .rows = 77 };
    for (size_t n = 1; n <= 2; n++) {
        sherd__alloc_fail_nth(n);
        int err = sherd__csv_parse(&c, (const uint8_t *)"1,2\n", 4, "f.csv", &label_last, NULL);
        sherd__alloc_fail_nth(0);
        assert_int_equal(err, SHERD_ENOMEM);
        assert_int_equal(c.rows, 77);
    }
    static const char text[] = "b,id,kind\n1,2,u\n3,4,v\n";
    char *one[] = { "b" };
    const sherd__namelist columns = list(one, 1);
    const sherd__csv_want want = {
        .targets = 1, .labels = true, .names = true, .columns = &columns
    };
    int err = SHERD_ENOMEM;
    for (size_t n = 1; err; n++) {
        sherd__alloc_fail_nth(n);
        err = sherd__csv_parse(&c, (const uint8_t *)text, sizeof text - 1, "f.csv", &want, NULL);
        sherd__alloc_fail_nth(0);
        assert_true(err ? err == SHERD_ENOMEM && c.rows == 77 : c.rows == 2 && n > 10);
    }
    sherd__csv_fini(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(line_ends_headers_quotes_and_a_byte_order_mark_do_not_matter),
        cmocka_unit_test(the_target_is_the_last_column_a_named_one_or_absent),
        cmocka_unit_test(other_separators_are_named),
        cmocka_unit_test(labels_may_be_names_sorted_by_bytes),
        cmocka_unit_test(given_classes_number_the_labels),
        cmocka_unit_test(too_many_classes_are_refused_where_they_occur),
        cmocka_unit_test(columns_are_found_by_their_names),
        cmocka_unit_test(errors_are_reported_with_line_and_column),
        cmocka_unit_test(numbers_have_the_bits_that_strtod_gives),
        cmocka_unit_test(the_users_locale_does_not_change_numbers),
        cmocka_unit_test(every_prefix_and_every_flipped_bit_is_read_or_refused),
        cmocka_unit_test(random_tables_read_as_they_were_written),
        cmocka_unit_test(hostile_texts_take_time_in_proportion_to_their_length),
        cmocka_unit_test(a_file_reads_like_its_bytes_and_other_paths_are_errors),
        cmocka_unit_test(without_memory_nothing_is_read),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
