/* Tables of fields (sherd/field.h). */
#ifndef CORE_FIELD_H
#define CORE_FIELD_H

#include <stddef.h>

#include "sherd/field.h"

/** A member of `type` that is one value; TYPE: the end of a sherd_field_type. */
#define SHERD__FIELD(type, member, TYPE, unit, text)                                               \
    {                                                                                              \
#member, SHERD_FIELD_##TYPE, offsetof(type, member), sizeof(((type *)0)->member), 0, NULL, \
            unit, text                                                                             \
    }
/** A member that is an enum; names: texts of its values, ended by NULL. */
#define SHERD__FIELD_ENUM(type, member, names, text)                                               \
    {                                                                                              \
#member, SHERD_FIELD_ENUM, offsetof(type, member), sizeof(((type *)0)->member), 0, names,  \
            "", text                                                                               \
    }
/** A member that points to an array; length: the uint32_t member with its length. */
#define SHERD__FIELD_ARRAY(type, member, TYPE, length, unit, text)                                 \
    {                                                                                              \
#member, SHERD_FIELD_##TYPE, offsetof(type, member), sizeof(*((type *)0)->member),         \
            offsetof(type, length), NULL, unit, text                                               \
    }
/** Defines sherd_X_fields of the struct `type`, which returns the array `fields`. */
#define SHERD__FIELDS(type, fields)                                                                \
    const sherd_field *type##_fields(size_t *count)                                                \
    {                                                                                              \
        *count = sizeof(fields) / sizeof *(fields);                                                \
        return fields;                                                                             \
    }

#endif
