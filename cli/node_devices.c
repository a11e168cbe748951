/* `sherd node --list-devices`: the devices that this machine's drivers have, as a table or JSON. */
#include "cli/node_devices.h"

#include <string.h>

#include "cli/fields.h"
#include "cli/process.h"
#include "cli/rows.h"

static const char *number_text(const void *x, char out[48])
{
    const sherd_device *v = x;
    snprintf(out, 48, "%s %u", v->backend, v->number);
    return out;
}

static const char *state_text(const void *x, char out[48])
{
    const sherd_device *v = x;
    snprintf(out, 48, "%s", !v->usable ? "unusable" : v->processor ? "processor" : "ok");
    return out;
}

static const sherd__column columns[] = {
    { "device", -10, NULL, number_text },
    { "memory", 9, "memory", NULL },
    { "state", -9, NULL, state_text },
    { "model", 0, "model", NULL },
    { NULL, 0, NULL, NULL },
};

const char *sherd__device_line(const sherd_device *v, char *out, size_t size)
{
    char bytes[24];
    int n = snprintf(out, size, "%s %u: %s, %s of memory, %s", v->backend, v->number, v->model,
                     sherd__cli_bytes(v->memory, bytes), v->driver);
    if (n > 0 && (size_t)n < size && v->residue_gflops > 0)
        snprintf(out + n, size - (size_t)n,
                 "; %.3g GF/s in float64, %.3g modulo primes, %.3g Gop/s "
                 "of bytes%s%s",
                 v->gflops, v->residue_gflops, v->byte_gops, v->library[0] ? "; " : "", v->library);
    else if (n > 0 && (size_t)n < size && !v->usable)
        snprintf(out + n, size - (size_t)n, "; cannot be used: %s", v->why);
    return out;
}

/* Prints a line for each measurement: "residues 8192 57300 Gop/s". */
static void print_rates(const sherd_devices *v, size_t i)
{
    const sherd_device_rate *r;
    char n[16];
    for (size_t k = 0; (r = sherd_devices_rate(v, i, k)); k++) {
        snprintf(n, sizeof n, "%u", r->n);
        sherd__cli_print("    %-22s %6s %10.4g %s", r->name, r->n ? n : "",
                         r->unit[0] ? 1e-9 * r->value : 100 * r->value,
                         !r->unit[0]                   ? "%"
                         : strcmp(r->unit, "B/s") == 0 ? "GB/s"
                                                       : "Gop/s");
    }
}

static void print_devices(const sherd__cli *cli, const sherd_devices *v)
{
    char line[640];
    const sherd_device *x;
    const sherd_diag *why;
    if (sherd_devices_count(v) > 0)
        sherd__cli_say(cli, "%s",
                       sherd__row_text(line, sizeof line, columns, NULL, sherd_device_fields));
    for (size_t i = 0; (x = sherd_devices_at(v, i)); i++) {
        sherd__cli_print("%s", sherd__row_text(line, sizeof line, columns, x, sherd_device_fields));
        if (!x->usable) sherd__cli_print_prose(4, "    cannot be used: %s", x->why);
        else if (sherd__opt_flag(cli, "measure"))
            sherd__cli_print_prose(4, "    %s", sherd__device_line(x, line, sizeof line));
        else if (cli->verbose > 0) sherd__cli_print("    %s", x->driver);
        print_rates(v, i);
    }
    for (size_t i = 0; (why = sherd_devices_fault_at(v, i)); i++)
        sherd__cli_say(cli, "%s%s%s", why->message, why->hint[0] ? "; try: " : "", why->hint);
}

static json_t *device_object(const sherd_devices *v, size_t i)
{
    json_t *obj = sherd__fields_object(sherd_devices_at(v, i), sherd_device_fields, NULL);
    json_t *rates = json_array();
    const sherd_device_rate *r;
    for (size_t k = 0; (r = sherd_devices_rate(v, i, k)); k++)
        json_array_append_new(rates, sherd__fields_object(r, sherd_device_rate_fields, NULL));
    json_object_set_new(obj, "rates", rates);
    return obj;
}

static int print_json(const sherd__cli *cli, const sherd_devices *v, sherd_diag *d)
{
    json_t *obj = sherd__cli_json_new(cli), *all = json_array();
    for (size_t i = 0; i < sherd_devices_count(v); i++)
        json_array_append_new(all, device_object(v, i));
    json_object_set_new(obj, "devices", all);
    json_object_set_new(obj, "missing",
                        sherd_devices_missing(v) ? json_string(sherd_devices_missing(v))
                                                 : json_null());
    return sherd__cli_json_end(cli, obj, d);
}

int sherd__node_devices(sherd__cli *cli, sherd_diag *d)
{
    sherd_devices *v;
    const sherd_node_options o = { .size = sizeof o,
                                   .backend = sherd__opt_text(cli, "backend"),
                                   .opencl_library = sherd__opt_text(cli, "opencl-library"),
                                   .cuda_library = sherd__opt_text(cli, "cuda-library"),
                                   .devices = sherd__opt_text(cli, "device"),
                                   .device_memory = sherd__opt_size(cli, "device-memory"),
                                   .quick_test = sherd__opt_choice(cli, "selftest") == 1,
                                   .program = SHERD__SELF };
    int err = sherd_devices_find(&v, &o, sherd__opt_flag(cli, "measure"), d);
    if (err) return err;
    if (cli->json) err = print_json(cli, v, d);
    else print_devices(cli, v);
    sherd_devices_free(v);
    return err;
}
