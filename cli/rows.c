/* Cells are written one after another, two blanks apart. */
#include "cli/rows.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/fields.h"

static const char *real_text(double v, const char *unit, char out[48])
{
    char text[24];
    if (strcmp(unit, "s") == 0) snprintf(out, 48, "%s", v > 0 ? sherd__cli_seconds(v, text) : "-");
    else if (strcmp(unit, "fraction") == 0) snprintf(out, 48, "%.1f %%", 100 * v);
    else snprintf(out, 48, "%.3g", v);
    return out;
}

static const char *whole_text(uint64_t v, const char *unit, char out[48])
{
    char text[24];
    if (strcmp(unit, "bytes") == 0) snprintf(out, 48, "%s", sherd__cli_bytes(v, text));
    else snprintf(out, 48, "%" PRIu64, v);
    return out;
}

static const char *name_text(const char *name, char out[48])
{
    snprintf(out, 48, "%s", name ? name : "-");
    return out;
}

const char *sherd__field_text(const void *x, const sherd_field *f, char out[48])
{
    const char *at = (const char *)x + f->offset;
    const sherd__field_value v = sherd__field_read(at, f);
    switch (f->type) {
    case SHERD_FIELD_BOOL: snprintf(out, 48, "%s", v.b ? "yes" : "no"); break;
    case SHERD_FIELD_I32: snprintf(out, 48, "%" PRId32, v.i32); break;
    case SHERD_FIELD_U32: return whole_text(v.u32, f->unit, out);
    case SHERD_FIELD_I64: snprintf(out, 48, "%" PRId64, v.i64); break;
    case SHERD_FIELD_U64: return whole_text(v.u64, f->unit, out);
    case SHERD_FIELD_F64: return real_text(v.f64, f->unit, out);
    case SHERD_FIELD_TEXT: snprintf(out, 48, "%s", at); break;
    case SHERD_FIELD_NAME: return name_text(v.name, out);
    case SHERD_FIELD_ENUM: return name_text(sherd__field_enum(f, v.u32), out);
    default: snprintf(out, 48, "-");
    }
    return out;
}

const sherd_field *sherd__field_find(sherd__fields fields, const char *name)
{
    size_t count;
    const sherd_field *f = fields(&count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(f[i].name, name) == 0) return &f[i];
    return NULL;
}

static const char *cell(const sherd__column *c, const void *x, sherd__fields fields, char out[48])
{
    if (!x) return c->head;
    if (c->text) return c->text(x, out);
    const sherd_field *f = sherd__field_find(fields, c->field);
    assert(f && !f->length);
    return sherd__field_text(x, f, out);
}

const char *sherd__row_text(char *out, size_t size, const sherd__column *columns, const void *x,
                            sherd__fields fields)
{
    size_t at = 0;
    char text[48];
    out[0] = '\0';
    for (const sherd__column *c = columns; c->head && at < size; c++)
        at += (size_t)snprintf(out + at, size - at, "%s%*s", c == columns ? "" : "  ", c->width,
                               cell(c, x, fields, text));
    for (at = strlen(out); at > 0 && out[at - 1] == ' ';) out[--at] = '\0';
    return out;
}
