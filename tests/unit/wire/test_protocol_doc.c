/* docs/PROTOCOL.md agrees with the headers: its tables are read and compared row by row. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/bytes.h"
#include "crypto/fragment.h"
#include "learn/allreduce_plan.h"
#include "learn/secure.h"
#include "node/check.h"
#include "node/gradient.h"
#include "node/store.h"
#include "sherd/mat.h"
#include "wire/link_state.h"
#include "wire/messages.pb.h"
#include "wire/record.h"
#include "wire/session.h"
#include "wire/tasks.h"

enum { CELLS = 10, ROWS = 64, TEXT = 1 << 18 };

typedef struct table {
    char *cell[ROWS][CELLS];
    size_t rows;
} table;

static char text[TEXT];

static void read_document(void)
{
    FILE *f = fopen("docs/PROTOCOL.md", "r");
    assert_non_null(f);
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    assert_in_range(n, 1000, sizeof text - 2);
    text[n] = 0;
}

/* Splits a line "| a | b |" into trimmed cells, in place. */
static void split_row(table *t, char *line)
{
    size_t c = 0;
    for (char *at = strchr(line, '|'); at[1] && c < CELLS; c++) {
        char *end = strchr(at + 1, '|');
        if (!end) break;
        *end = 0;
        for (at++; *at == ' '; at++) {}
        for (char *last = end; last > at && last[-1] == ' ';) *--last = 0;
        t->cell[t->rows][c] = at;
        at = end;
    }
    t->rows++;
}

/* Returns the table whose heading line begins with `heading`. */
static table find_table(const char *heading)
{
    table t = { .rows = 0 };
    read_document();
    char *at = strstr(text, heading);
    if (!at) fail_msg("docs/PROTOCOL.md has no table \"%s\"", heading);
    at = strchr(strchr(at, '\n') + 1, '\n') + 1; /* after the heading and the dashes */
    while (*at == '|') {
        char *end = strchr(at, '\n');
        assert_non_null(end);
        *end = 0;
        assert_true(t.rows < ROWS);
        split_row(&t, at);
        at = end + 1;
    }
    assert_true(t.rows > 0);
    return t;
}

static uint64_t number(const char *cell)
{
    char *end;
    assert_non_null(cell);
    uint64_t v = strtoull(cell, &end, 10);
    if (end == cell || *end) fail_msg("\"%s\" is not a number", cell);
    return v;
}

static void the_header_has_these_offsets_and_sizes(void **state)
{
    (void)state;
    static const char *const names[] = { "magic",  "type", "flags",   "job",
                                         "number", "part", "body_len" };
    table t = find_table("| offset | bytes |");
    assert_int_equal(t.rows, sizeof names / sizeof *names);
    uint64_t end = 0;
    for (size_t i = 0; i < t.rows; i++) {
        assert_string_equal(t.cell[i][2], names[i]);
        uint64_t offset = number(t.cell[i][0]), size = number(t.cell[i][1]);
        assert_int_equal(offset, end);
        end = offset + size;
        /* A header in which only this field is set differs from zeros only in the field's bytes. */
        uint8_t zero[SHERD__RECORD_BYTES], set[SHERD__RECORD_BYTES];
        sherd__record none = { 0 }, one = { 0 };
        if (i == 1) one.type = UINT16_MAX;
        if (i == 2) one.flags = UINT16_MAX;
        if (i == 3) one.job = UINT64_MAX;
        if (i == 4) one.number = UINT32_MAX;
        if (i == 5) one.part = UINT32_MAX;
        if (i == 6) one.body_len = UINT64_MAX;
        sherd__record_pack(&none, zero);
        sherd__record_pack(&one, set);
        for (size_t b = 0; i && b < sizeof set; b++)
            assert_int_equal(set[b] != zero[b], b >= offset && b < end);
    }
    assert_int_equal(end, SHERD__RECORD_BYTES);
    assert_non_null(strstr(t.cell[0][3], "0x44524853"));
    assert_int_equal(SHERD__RECORD_MAGIC, 0x44524853);
}

/* Returns whether a header with this value in one of its fields is accepted. `field` 0: job, 1:
 * number, 2: part. */
static bool taken(uint16_t type, const table *t, size_t row, int field, uint32_t value)
{
    uint32_t v[3];
    for (int f = 0; f < 3; f++) v[f] = strcmp(t->cell[row][3 + f], "1+") == 0;
    v[field] = value;
    uint8_t bytes[SHERD__RECORD_BYTES];
    sherd__record out;
    sherd__record_pack(&(sherd__record){ .type = type, .job = v[0], .number = v[1], .part = v[2] },
                       bytes);
    return sherd__record_parse(&out, bytes, NULL) == SHERD_OK;
}

static void every_type_has_this_number_direction_rules_and_caps(void **state)
{
    (void)state;
    table t = find_table("| type | name | from |");
    assert_int_equal(t.rows, SHERD__REC_BYE);
    for (size_t i = 0; i < t.rows; i++) {
        uint16_t type = (uint16_t)number(t.cell[i][0]);
        assert_int_equal(type, i + 1);
        assert_string_equal(t.cell[i][1], sherd__record_name(type));
        unsigned senders = sherd__record_senders(type);
        assert_int_equal(strchr(t.cell[i][2], 'C') != NULL, senders & 1);
        assert_int_equal(strchr(t.cell[i][2], 'N') != NULL, senders >> 1);
        for (int f = 0; f < 3; f++) {
            const char *rule = t.cell[i][3 + f];
            assert_int_equal(taken(type, &t, i, f, 0), strcmp(rule, "1+") != 0);
            assert_int_equal(taken(type, &t, i, f, 1), strcmp(rule, "0") != 0);
        }
        assert_int_equal(sherd__record_cap(type, 0), number(t.cell[i][6]));
        assert_int_equal(sherd__record_cap(type, 1), number(t.cell[i][7]));
    }
    assert_null(sherd__record_name((uint16_t)(t.rows + 1)));
}

#define FIELD(message, field)                                                                      \
    {                                                                                              \
#message, #field, sherd_pb_##message##_##field##_tag                                       \
    }

static void every_field_of_a_body_has_this_number(void **state)
{
    (void)state;
    static const struct {
        const char *message, *field;
        unsigned tag;
    } fields[] = {
        FIELD(Hello, minor_min),
        FIELD(Hello, minor_max),
        FIELD(Hello, features),
        FIELD(Hello, software),
        FIELD(Hello, blas_core),
        FIELD(Hello, backend),
        FIELD(Hello, threads),
        FIELD(Hello, memory),
        FIELD(Hello, gflops),
        FIELD(Hello, residue_gflops),
        FIELD(Hello, devices),
        FIELD(Hello, uptime),
        FIELD(Hello, memory_free),
        FIELD(Hello, tasks),
        FIELD(Hello, sessions),
        FIELD(Hello, byte_gops),
        FIELD(Hello, copy_rate),
        FIELD(Hello, resident_gflops),
        FIELD(Hello, resident_residue_gflops),
        FIELD(Hello, resident_byte_gops),
        FIELD(Device, does),
        FIELD(Device, gflops),
        FIELD(Device, residue_gflops),
        FIELD(Device, memory),
        FIELD(Device, cell),
        FIELD(Device, depth),
        FIELD(Device, byte_gops),
        FIELD(Description, origin),
        FIELD(Description, dtype),
        FIELD(Description, encoding),
        FIELD(Description, primes),
        FIELD(Description, groups),
        FIELD(Description, rows),
        FIELD(Description, cols),
        FIELD(Description, len),
        FIELD(Description, attempt),
        FIELD(Task, op),
        FIELD(Task, flags),
        FIELD(Task, left),
        FIELD(Task, right),
        FIELD(Task, primes),
        FIELD(Task, result),
        FIELD(Task, windows),
        FIELD(Windows, height),
        FIELD(Windows, width),
        FIELD(Windows, channels),
        FIELD(Windows, window),
        FIELD(Windows, stride),
        FIELD(Windows, padding),
        FIELD(Refuse, what),
        FIELD(Refuse, code),
        FIELD(Refuse, text),
        FIELD(Bye, code),
        FIELD(Bye, text),
    };
    table t = find_table("| message | field |");
    assert_int_equal(t.rows, sizeof fields / sizeof *fields);
    for (size_t i = 0; i < t.rows; i++) {
        assert_string_equal(t.cell[i][0], fields[i].message);
        assert_string_equal(t.cell[i][1], fields[i].field);
        assert_int_equal(number(t.cell[i][2]), fields[i].tag);
    }
    const sherd_pb_Hello *h = NULL;
    const sherd_pb_Bye *b = NULL;
    assert_int_equal(strtoul(t.cell[3][4], NULL, 10), sizeof h->software - 1);
    assert_int_equal(strtoul(t.cell[4][4], NULL, 10), sizeof h->blas_core - 1);
    assert_int_equal(strtoul(t.cell[5][4], NULL, 10), sizeof h->backend - 1);
    assert_int_equal(strtoul(t.cell[t.rows - 1][4], NULL, 10), sizeof b->text - 1);
}

static void the_schema_has_these_kinds(void **state)
{
    (void)state;
    static char schema[TEXT];
    FILE *f = fopen("wire/messages.proto", "r");
    assert_non_null(f);
    schema[fread(schema, 1, sizeof schema - 1, f)] = 0;
    fclose(f);
    table t = find_table("| message | field |");
    for (size_t i = 0; i < t.rows; i++) {
        char start[60], line[120];
        snprintf(start, sizeof start, "message %s {", t.cell[i][0]);
        snprintf(line, sizeof line, " %s %s = %s", t.cell[i][3], t.cell[i][1], t.cell[i][2]);
        const char *at = strstr(schema, start), *end = at ? strstr(at, "\n}") : NULL;
        const char *field = at ? strstr(at, line) : NULL;
        if (!field || field > end) fail_msg("%s: no field%s", t.cell[i][0], line);
    }
}

static void every_operation_has_this_number(void **state)
{
    (void)state;
    static const struct {
        unsigned op;
        const char *name;
    } ops[] = {
        { SHERD__OP_MULTIPLY, "multiply" }, { SHERD__OP_MULTIPLY_T, "multiply transposed" },
        { SHERD__OP_GRADIENT, "gradient" }, { SHERD__OP_MEET, "meet" },
        { SHERD__OP_CONNECT, "connect" },   { SHERD__OP_STEP, "step" },
        { SHERD__OP_REDUCE, "reduce" },     { SHERD__OP_JOIN, "join" },
        { SHERD__OP_ROSTER, "roster" },     { SHERD__OP_SEAL, "seal" },
        { SHERD__OP_HIDE, "hide" },         { SHERD__OP_OPEN, "open" },
        { SHERD__OP_STATE, "state" },       { SHERD__OP_WHERE, "where" },
        { SHERD__OP_CONFIRM, "confirm" },   { SHERD__OP_SIGMOID, "sigmoid" },
        { SHERD__OP_MINUS, "minus" },       { SHERD__OP_SQUARE, "square" },
        { SHERD__OP_TIMES, "times" },       { SHERD__OP_RELU, "relu" },
        { SHERD__OP_TANH, "tanh" },         { SHERD__OP_EXP, "exp" },
        { SHERD__OP_CHECK, "check" },
    };
    table t = find_table("| op | name |");
    assert_int_equal(t.rows, sizeof ops / sizeof *ops);
    for (size_t i = 0; i < t.rows; i++) {
        assert_int_equal(number(t.cell[i][0]), ops[i].op);
        assert_string_equal(t.cell[i][1], ops[i].name);
    }
}

static void every_code_has_this_name_and_text(void **state)
{
    (void)state;
    static const struct {
        int code;
        const char *name, *text;
    } codes[] = {
#define XX(number, name, exit, text) { (number), #name, text },
        SHERD_ERR_MAP(XX)
#undef XX
    };
    table t = find_table("| code | name |");
    assert_int_equal(t.rows, sizeof codes / sizeof *codes);
    for (size_t i = 0; i < t.rows; i++) {
        assert_int_equal(strtol(t.cell[i][0], NULL, 10), codes[i].code);
        assert_string_equal(t.cell[i][1], codes[i].name);
        assert_string_equal(t.cell[i][2], codes[i].text);
    }
}

/* Parses "1 up to 255 columns, 2 up to 65535, else 4" and the order of the sections, and compares
 * both with the header. */
static void the_sections_of_csr_have_these_widths_and_this_order(void **state)
{
    (void)state;
    static const char *const names[] = { "counts", "columns", "values" };
    table t = find_table("| section | entries of it |");
    assert_int_equal(t.rows, 3);
    unsigned long one, upto_one, two, upto_two, other;
    assert_int_equal(sscanf(t.cell[0][2], "%lu up to %lu columns, %lu up to %lu, else %lu", &one,
                            &upto_one, &two, &upto_two, &other),
                     5);
    const struct {
        uint64_t cols;
        unsigned long width;
    } edges[] = {
        { 0, one },        { upto_one, one },       { upto_one + 1, two },
        { upto_two, two }, { upto_two + 1, other }, { UINT32_MAX, other },
    };
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        uint64_t w = edges[i].width, rows = 7, entries = 5;
        sherd__fragment_info info = { .origin = SHERD__HIDDEN,
                                      .dtype = SHERD_U16,
                                      .groups = 3,
                                      .encoding = SHERD__CSR,
                                      .rows = rows,
                                      .cols = edges[i].cols };
        if (edges[i].cols == 0) entries = 0;
        info.len = 3 * 8 + rows * w + entries * (w + 2);
        assert_int_equal(sherd__csr_len(3, rows, edges[i].cols, entries, 2), info.len);
        sherd__csr at;
        assert_true(sherd__csr_layout(&info, &at));
        assert_int_equal(at.width, w);
        assert_int_equal(at.entries, entries);
        const uint64_t offset[] = { at.counts, at.columns, at.values };
        const uint64_t want[] = { 24, 24 + rows * w, 24 + rows * w + entries * w };
        for (size_t k = 0; k < 3; k++) {
            assert_string_equal(t.cell[k][0], names[k]);
            assert_int_equal(offset[k], want[k]);
        }
    }
    table d = find_table("| message | field |");
    for (size_t i = 0; i < d.rows; i++) {
        if (strcmp(d.cell[i][1], "encoding")) continue;
        char says[40];
        snprintf(says, sizeof says, "%d dense, %d CSR", SHERD__DENSE, SHERD__CSR);
        assert_ptr_equal(strstr(d.cell[i][4], says), d.cell[i][4]);
    }
}

/* ---- plans ---------------------------------------------------------------------------------- */

typedef bool reader(const uint64_t *v, size_t len);

static bool reads_gradients(const uint64_t *v, size_t len)
{
    sherd__step_plan out;
    return sherd__step_plan_parse(&out, (const uint8_t *)v, 8 * len, NULL) == SHERD_OK;
}

static bool reads_meet(const uint64_t *v, size_t len)
{
    sherd__allreduce_plan out;
    return sherd__allreduce_plan_parse(&out, (const uint8_t *)v, 8 * len, NULL) == SHERD_OK;
}

static bool reads_secure(const uint64_t *v, size_t len)
{
    sherd__secure_plan out;
    return sherd__secure_plan_parse(&out, (const uint8_t *)v, 8 * len, NULL) == SHERD_OK;
}

/* For each number whose limits are "A to B", values beyond them are refused. The plan has `len`
 * numbers; the rows of the table that have a number cover `named` of them. */
static void hold_limits(const char *heading, reader *reads, const uint64_t *plan, size_t len,
                        size_t named)
{
    table t = find_table(heading);
    uint64_t v[64];
    unsigned long long least, most, last = 0;
    size_t held = 0;
    assert_true(len <= sizeof v / sizeof *v);
    memcpy(v, plan, len * sizeof *v);
    assert_true(reads(v, len));
    for (size_t i = 0; i < t.rows; i++) {
        char *end, rest[8];
        uint64_t at = strtoull(t.cell[i][0], &end, 10);
        if (end == t.cell[i][0]) continue; /* "then ..." */
        assert_int_equal(at, i == 0 ? 0 : last + 1);
        for (last = at; *end == ',' || strncmp(end, " to ", 4) == 0;)
            last = strtoull(end + (*end == ',' ? 1 : 4), &end, 10);
        if (last != at || !t.cell[i][2] ||
            sscanf(t.cell[i][2], "%llu to %llu%1s", &least, &most, rest) != 2)
            continue;
        if (least > 0) {
            v[at] = least - 1;
            assert_false(reads(v, len));
        }
        v[at] = most + 1;
        assert_false(reads(v, len));
        v[at] = plan[at];
        held++;
    }
    assert_int_equal(last + 1, named);
    assert_true(held >= 2);
}

static void plans_have_these_numbers_and_limits(void **state)
{
    (void)state;
    const uint64_t gradients[] = { 1, 1, 17, 40, 1, 2, 1, 8, 0, 3, 4, 0, 8, 0, 0, 0, 0, 0, 0 };
    const uint64_t meet[SHERD__ALLREDUCE_PLAN] = { 3, 1, 2, 0, 7, 1, 2, 17, 8, 9, 0, 1 };
    const uint64_t secure[SHERD__SECURE_PLAN] = { 3, 1, 4, 3, 1, 0, 32, 64 };
    hold_limits("| plan, numbers |", reads_gradients, gradients, sizeof gradients / 8,
                SHERD__PLAN_HEAD);
    hold_limits("| plan of MEET, numbers |", reads_meet, meet, SHERD__ALLREDUCE_PLAN,
                SHERD__ALLREDUCE_PLAN);
    hold_limits("| plan of secure sums, numbers |", reads_secure, secure, SHERD__SECURE_PLAN,
                SHERD__SECURE_PLAN);
}

#define CONSTANT(name)                                                                             \
    {                                                                                              \
#name, name                                                                                \
    }

static void every_time_and_limit_has_this_value(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t value;
    } constants[] = {
        CONSTANT(SHERD__LINK_SHAKE_MS),
        CONSTANT(SHERD__HANDSHAKE_MS),
        CONSTANT(SHERD__PING_MS),
        CONSTANT(SHERD__DEAD_MS),
        CONSTANT(SHERD__STALL_MS),
        CONSTANT(SHERD__STALL_BYTES),
        CONSTANT(SHERD__CHUNK),
        CONSTANT(SHERD__CONTROL_MAX),
        CONSTANT(SHERD__UNKNOWN_MAX),
        CONSTANT(SHERD__TASKS_MAX),
        CONSTANT(SHERD__BLOCKS_MAX),
        CONSTANT(SHERD__ROUNDS_MAX),
        CONSTANT(SHERD__TEXT_MAX),
        CONSTANT(SHERD__PRIMES_MAX),
        CONSTANT(SHERD__RESIDUES_PRIMES_MAX),
        CONSTANT(SHERD__PRIME_MIN),
        CONSTANT(SHERD__PRIME_MAX),
        CONSTANT(SHERD__BYTES_PRIME_MIN),
        CONSTANT(SHERD__BYTES_PRIME_MAX),
        CONSTANT(SHERD__BYTES_TERMS_MAX),
        CONSTANT(SHERD__WINDOW_MAX),
        CONSTANT(SHERD__GROUPS_MAX),
        CONSTANT(SHERD__CSR_MAX),
        CONSTANT(SHERD__ANSWERS_MAX),
        CONSTANT(SHERD__DEVICES_MAX),
        CONSTANT(SHERD__MINOR),
    };
    table t = find_table("| constant | value |");
    assert_int_equal(t.rows, sizeof constants / sizeof *constants);
    for (size_t i = 0; i < t.rows; i++) {
        assert_string_equal(t.cell[i][0], constants[i].name);
        assert_int_equal(number(t.cell[i][1]), constants[i].value);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_header_has_these_offsets_and_sizes),
        cmocka_unit_test(every_type_has_this_number_direction_rules_and_caps),
        cmocka_unit_test(every_field_of_a_body_has_this_number),
        cmocka_unit_test(the_schema_has_these_kinds),
        cmocka_unit_test(every_operation_has_this_number),
        cmocka_unit_test(every_code_has_this_name_and_text),
        cmocka_unit_test(the_sections_of_csr_have_these_widths_and_this_order),
        cmocka_unit_test(plans_have_these_numbers_and_limits),
        cmocka_unit_test(every_time_and_limit_has_this_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
