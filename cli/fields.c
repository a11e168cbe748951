/* Members are read at the offsets in the loaded library's table. */
#include "cli/fields.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

json_t *sherd__json_whole(uint64_t n)
{
    return json_integer((json_int_t)(n > INT64_MAX ? INT64_MAX : n));
}

sherd__field_value sherd__field_read(const void *at, const sherd_field *f)
{
    sherd__field_value v = { .u64 = 0 };
    memcpy(&v, at, f->size < sizeof v ? f->size : sizeof v);
    return v;
}

const char *sherd__field_enum(const sherd_field *f, uint32_t value)
{
    uint32_t i = 0;
    while (f->names[i] && i < value) i++;
    return f->names[i];
}

static json_t *enumerated(const char *name)
{
    return name ? json_string(name) : json_null();
}

static json_t *hexadecimal(const uint8_t *bytes, size_t len)
{
    char text[2 * 64 + 1] = "";
    for (size_t i = 0; i < len && i < 64; i++) snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    return json_string(text);
}

static json_t *value(const uint8_t *at, const sherd_field *f)
{
    if (f->type == SHERD_FIELD_TEXT) return sherd__cli_json_text((const char *)at);
    if (f->type == SHERD_FIELD_BYTES) return hexadecimal(at, f->size);
    const sherd__field_value v = sherd__field_read(at, f);
    switch (f->type) {
    case SHERD_FIELD_BOOL: return json_boolean(v.b);
    case SHERD_FIELD_I32: return json_integer(v.i32);
    case SHERD_FIELD_U32: return json_integer(v.u32);
    case SHERD_FIELD_I64: return json_integer(v.i64);
    case SHERD_FIELD_U64: return sherd__json_whole(v.u64);
    case SHERD_FIELD_F64: return isfinite(v.f64) ? json_real(v.f64) : json_null();
    case SHERD_FIELD_NAME: return sherd__cli_json_text(v.name);
    case SHERD_FIELD_ENUM: return enumerated(sherd__field_enum(f, v.u32));
    default: return json_null();
    }
}

json_t *sherd__field_json(const void *x, const sherd_field *f)
{
    const uint8_t *at = (const uint8_t *)x + f->offset, *each = NULL;
    uint32_t len;
    if (!f->length) return value(at, f);
    json_t *list = json_array();
    memcpy(&len, (const uint8_t *)x + f->length, sizeof len);
    memcpy(&each, at, sizeof each);
    for (uint32_t i = 0; i < len && each; i++)
        json_array_append_new(list, value(each + i * f->size, f));
    return list;
}

static bool among(const char *name, const char *const *names)
{
    for (; names && *names; names++)
        if (strcmp(name, *names) == 0) return true;
    return false;
}

static void add(json_t *obj, const void *x, sherd__fields table, const char *const *names,
                bool wanted)
{
    size_t count;
    const sherd_field *f = table(&count);
    for (const sherd_field *end = f + count; f < end; f++)
        if (among(f->name, names) == wanted)
            json_object_set_new(obj, f->name, sherd__field_json(x, f));
}

void sherd__fields_json_of(json_t *obj, const void *x, sherd__fields fields,
                           const char *const *names)
{
    add(obj, x, fields, names, true);
}

void sherd__fields_json(json_t *obj, const void *x, sherd__fields fields,
                        const char *const *without)
{
    add(obj, x, fields, without, false);
}

json_t *sherd__fields_object(const void *x, sherd__fields fields, const char *const *without)
{
    json_t *obj = json_object();
    add(obj, x, fields, without, false);
    return obj;
}
