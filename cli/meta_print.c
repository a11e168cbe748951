/* Describes a metadata file and how it was made, in a table or as JSON. */
#include "cli/meta.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli/exposures.h"
#include "cli/fields.h"
#include "core/alloc.h"

int sherd__meta_count_exposures(sherd_meta *meta, size_t i, uint64_t **counts, sherd_diag *d)
{
    uint64_t *out = sherd__calloc(sherd_meta_get(meta)->nodes, sizeof *out);
    int err = out ? sherd_meta_exposure_counts(meta, i, out, d)
                  : sherd__fail_memory(d, "the exposure counts");
    if (err) sherd__free(out);
    else *counts = out;
    return err;
}

const char *sherd__meta_time(double s, char out[24])
{
    if (s < 1) snprintf(out, 24, "%.3g ms", s * 1e3);
    else sherd__cli_seconds(s, out);
    return out;
}

/* Turns counts of exposures into fractions of the columns. Returns NULL without memory. */
static double *fractions_of(const sherd_meta *meta, size_t i, const uint64_t *counts)
{
    uint32_t nodes = sherd_meta_get(meta)->nodes;
    uint64_t columns = sherd_meta_columns(sherd_meta_at(meta, i));
    double *out = sherd__calloc(nodes, sizeof *out);
    for (uint32_t n = 0; n < nodes && out && columns; n++)
        out[n] = (double)counts[n] / (double)columns;
    return out;
}

static void print_operation(const sherd_meta *meta, size_t i, const double *seconds)
{
    const sherd_meta_operation *op = sherd_meta_at(meta, i);
    char name[6 * sizeof op->name], shape[48], size[24], took[24] = "";
    snprintf(shape, sizeof shape, "%" PRIu64 " x %" PRIu64, sherd_meta_table_rows(op), op->m);
    printf("%-19s %-8s %15s  %10s", sherd__cli_plain(op->name, name, sizeof name),
           sherd_op_name(op->kind), shape, sherd__cli_bytes(sherd_meta_bytes(meta, i), size));
    if (seconds) printf("  %9s", sherd__meta_time(seconds[i], took));
    printf("%s\n", !seconds && op->used ? "  used" : "");
}

/* A column of A and a row of B, or a position of both operands, have one exposure. */
static void print_exposures(const sherd_meta *meta, size_t i, const double *fractions)
{
    const sherd_meta_operation *op = sherd_meta_at(meta, i);
    char name[6 * sizeof op->name];
    sherd__exposures_print(sherd__cli_plain(op->name, name, sizeof name),
                           sherd_op_operands(op->kind) == 2 ? "A, B" : "A", fractions,
                           sherd_meta_get(meta)->nodes);
}

static json_t *json_of_operation(const sherd_meta *meta, size_t i, const uint64_t *counts,
                                 const double *fractions, const double *seconds)
{
    const sherd_meta_operation *op = sherd_meta_at(meta, i);
    static const char *const names[] = { "name", "kind", "used", NULL };
    json_t *o = json_object(), *list = json_array(), *shares = json_array();
    json_t *shape = op->kind == SHERD_OP_PRODUCT
                        ? json_pack("[I,I,I]", (json_int_t)op->n, (json_int_t)op->k,
                                    (json_int_t)op->m)
                        : json_pack("[I,I]", (json_int_t)op->n, (json_int_t)op->m);
    for (uint32_t n = 0; n < sherd_meta_get(meta)->nodes; n++) {
        json_array_append_new(list, json_integer((json_int_t)counts[n]));
        json_array_append_new(shares, json_real(fractions[n]));
    }
    sherd__fields_json_of(o, op, sherd_meta_operation_fields, names);
    json_object_set_new(o, "shape", shape);
    json_object_set_new(o, "rows", json_integer((json_int_t)sherd_meta_table_rows(op)));
    json_object_set_new(o, "length", json_integer((json_int_t)op->m));
    json_object_set_new(o, "exposures", list);
    json_object_set_new(o, "fractions", shares);
    json_object_set_new(o, "bytes_expanded", json_integer((json_int_t)sherd_meta_bytes(meta, i)));
    if (seconds) json_object_set_new(o, "seconds", json_real(seconds[i]));
    return o;
}

/* Prints the exposures of operation i, or adds the operation to the list. */
static int print_counts(sherd_meta *meta, size_t i, const double *seconds, json_t *list,
                        sherd_diag *d)
{
    uint64_t *counts = NULL;
    int err = sherd__meta_count_exposures(meta, i, &counts, d);
    double *fractions = err ? NULL : fractions_of(meta, i, counts);
    if (!err && !fractions) err = sherd__fail_memory(d, "the exposures");
    if (!err && list)
        json_array_append_new(list, json_of_operation(meta, i, counts, fractions, seconds));
    else if (!err) print_exposures(meta, i, fractions);
    sherd__free(fractions);
    sherd__free(counts);
    return err;
}

int sherd__meta_print_operations(sherd_meta *meta, const double *seconds, json_t *json,
                                 sherd_diag *d)
{
    json_t *list = json ? json_array() : NULL;
    int err = SHERD_OK;
    if (!json)
        printf("%-19s %-8s %15s  %10s%s\n", "operation", "kind", "rows x length", "expanded",
               seconds ? "    made in" : "");
    for (size_t i = 0; i < sherd_meta_count(meta) && !json; i++) print_operation(meta, i, seconds);
    if (!json) printf("\n");
    if (!json) sherd__exposures_head("% that each of them is given");
    for (size_t i = 0; i < sherd_meta_count(meta) && !err; i++)
        err = print_counts(meta, i, seconds, list, d);
    if (json) json_object_set_new(json, "operations", list);
    return err;
}

void sherd__meta_print_settings(const sherd_meta *meta, bool expanded, bool seed, json_t *json)
{
    const sherd_meta_settings *s = sherd_meta_get(meta);
    static const char *const names[] = { "nodes", "shuffle_rows", NULL };
    char hex[65], group[16] = "all";
    for (int i = 0; i < 32; i++) snprintf(hex + 2 * i, 3, "%02x", sherd_meta_commitment(meta)[i]);
    if (s->group) snprintf(group, sizeof group, "%" PRIu32, s->group);
    if (!json) {
        printf("%s form, %zu operation%s, %" PRIu32 " node%s, %s exposure, group %s%s, seed %s\n",
               expanded ? "expanded" : "seed", sherd_meta_count(meta),
               sherd_meta_count(meta) == 1 ? "" : "s", s->nodes, s->nodes == 1 ? "" : "s",
               s->balanced ? "balanced" : "uniform", group,
               s->shuffle_rows ? ", rows shuffled" : "", seed ? "held" : "not held");
        return;
    }
    json_object_set_new(json, "form", json_string(expanded ? "expanded" : "seed"));
    sherd__fields_json_of(json, s, sherd_meta_settings_fields, names);
    json_object_set_new(json, "exposure", json_string(s->balanced ? "balanced" : "uniform"));
    json_object_set_new(json, "group", s->group ? json_integer(s->group) : json_string("all"));
    json_object_set_new(json, "seed_held", json_boolean(seed));
    json_object_set_new(json, "seed_commitment", json_string(hex));
}

int sherd__meta_print_file(sherd__cli *cli, uint64_t size, double seconds, json_t *json,
                           sherd_diag *d)
{
    char bytes[24], took[24];
    const char *path = sherd__opt_text(cli, "output");
    if (!json) {
        sherd__cli_print("%s: %s, written in %s", path, sherd__cli_bytes(size, bytes),
                         sherd__meta_time(seconds, took));
        return SHERD_OK;
    }
    json_object_set_new(json, "file", sherd__cli_json_text(path));
    json_object_set_new(json, "bytes", json_integer((json_int_t)size));
    json_object_set_new(json, "seconds", json_real(seconds));
    return sherd__cli_json_end(cli, json, d);
}
