/*
 * Fields: the members of a report by name, so that programs in other languages, and the command's
 * text and JSON, can list them without a copy of the struct's declaration. A function
 * sherd_X_fields(&count) returns the table of the struct sherd_X; the table is constant.
 */
#ifndef SHERD_FIELD_H
#define SHERD_FIELD_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sherd_field_type {
    SHERD_FIELD_BOOL,  /* bool */
    SHERD_FIELD_I32,   /* int32_t */
    SHERD_FIELD_U32,   /* uint32_t */
    SHERD_FIELD_I64,   /* int64_t */
    SHERD_FIELD_U64,   /* uint64_t */
    SHERD_FIELD_F64,   /* double; NAN: not known */
    SHERD_FIELD_TEXT,  /* char[], terminated */
    SHERD_FIELD_NAME,  /* const char *; NULL: none */
    SHERD_FIELD_ENUM,  /* an enum of 4 bytes; its values are indices of `names` */
    SHERD_FIELD_BYTES, /* uint8_t[], `size` of them */
} sherd_field_type;

/** One row of a table. Never grows, since the rows of a table are counted by its size. */
typedef struct sherd_field {
    const char *name; /* of the member; the name in JSON too */
    sherd_field_type type;
    size_t offset;            /* of the member in the struct, bytes */
    size_t size;              /* of one value, bytes */
    size_t length;            /* the member points to an array of values: the offset of the
                                 uint32_t that holds its length; 0: the member is one value */
    const char *const *names; /* SHERD_FIELD_ENUM: texts of its values, ended by NULL; "": no such
                                 value */
    const char *unit;         /* "bytes", "s"; "": a count or no unit */
    const char *text;         /* description, for people */
} sherd_field;

#ifdef __cplusplus
}
#endif

#endif
