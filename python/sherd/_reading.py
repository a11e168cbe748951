"""Reads structs of the library as records, by its tables of fields."""

from __future__ import annotations

from functools import cache
from typing import Any, Callable, TypeVar

from ._library import ffi, lib, text_of
from ._record import Record

_R = TypeVar("_R", bound=Record)
_FIXED = ["bool", "int32_t", "uint32_t", "int64_t", "uint64_t", "double"]  # by sherd_field_type
_TEXT, _NAME, _ENUM, _BYTES = range(6, 10)


def _reader(row: Any) -> Callable[[Any], Any]:
    """Returns the function that reads one member, given a char * to the struct."""
    offset, kind, size = row.offset, row.type, row.size
    if kind == _BYTES:
        return lambda base: bytes(ffi.buffer(base + offset, size))
    if kind == _TEXT:
        return lambda base: text_of(base + offset)
    if kind == _NAME:
        pointer = ffi.typeof("const char **")

        def name(base: Any) -> Any:
            found = ffi.cast(pointer, base + offset)[0]
            return text_of(found) if found else None

        return name
    if kind == _ENUM:
        number = ffi.typeof("int32_t *")
        names: list[str] = []
        while row.names[len(names)]:
            names.append(text_of(row.names[len(names)]))

        def convert(value: int) -> Any:
            return names[value] if 0 <= value < len(names) else ""
    else:
        number, convert = ffi.typeof(_FIXED[kind] + " *"), lambda value: value
    if row.length:
        length, count, array = row.length, ffi.typeof("uint32_t *"), ffi.typeof("char **")

        def values(base: Any) -> Any:
            found = ffi.cast(array, base + offset)[0]
            n = ffi.cast(count, base + length)[0] if found else 0
            return [convert(v) for v in ffi.cast(number, found)[0:n]]

        return values
    return lambda base: convert(ffi.cast(number, base + offset)[0])


@cache
def _readers(struct: str) -> list[Callable[[Any], Any]]:
    count = ffi.new("size_t *")
    table = getattr(lib, struct + "_fields")(count)
    return [_reader(row) for row in table[0 : count[0]]]


def read(cls: type[_R], pointer: Any) -> _R:
    """Reads a struct of the library as a record. The record owns all of its values."""
    base = ffi.cast("char *", pointer)
    return cls(*[reader(base) for reader in _readers(cls._struct)])
