"""
libsherd in Python: reads the public headers with cffi and calls the library. product.py uses it.

    sherd = Sherd()                                        # the installed library, by pkg-config
    how = sherd.new("sherd_product_options", scheme=sherd.lib.SHERD_SHARE)
    sherd.call("sherd_multiply", cluster, sherd.view(a), ...)   # raises Error

Needs python3-cffi, python3-numpy, pkg-config and a C compiler, which expands the headers.
"""
import os
import subprocess
import tempfile
import weakref

import cffi


def pkg_config(variable):
    return subprocess.check_output(["pkg-config", "--variable=" + variable, "sherd"], text=True).strip()


def preprocess(header, include):
    """Expands a header without those of the C library, whose types cffi knows."""
    with tempfile.TemporaryDirectory() as empty:
        for name in ("stdbool.h", "stddef.h", "stdint.h"):
            open(os.path.join(empty, name), "w").close()
        run = subprocess.run(["cc", "-std=c11", "-E", "-P", "-nostdinc", "-D__attribute__(x)=", "-I", empty, "-I",
                              include, header], capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(run.stderr)
    return run.stdout


class Error(Exception):
    """A call failed: its code, SHERD_E..., with the library's message and hint as text."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class Sherd:
    def __init__(self, include=None, library=None):
        include = include or pkg_config("includedir")
        self.ffi = cffi.FFI()
        self.ffi.cdef(preprocess(os.path.join(include, "sherd", "sherd.h"), include))
        self.lib = self.ffi.dlopen(library or os.path.join(pkg_config("libdir"), "libsherd.so"))
        self.kept = weakref.WeakKeyDictionary()

    def new(self, struct, **members):
        """Makes a zeroed struct with its size and these members. Its texts live as long as it does."""
        made, texts = self.ffi.new(struct + " *"), []
        made.size = self.ffi.sizeof(struct)
        for name, value in members.items():
            if isinstance(value, str):
                texts.append(value := self.ffi.new("char[]", value.encode()))
            if value is not None:
                setattr(made, name, value)
        self.kept[made] = texts
        return made

    def text(self, chars):
        return self.ffi.string(chars).decode()

    def view(self, array):
        """Returns the view of a two-dimensional array, which must live as long as the view is used."""
        rows, cols = (n // array.itemsize for n in array.strides)
        dtype = self.lib.sherd_dtype_find(array.dtype.str.encode())
        if not dtype:
            raise TypeError(f"arrays of {array.dtype.str} ({array.dtype}) are not read: use .astype('<f8')")
        return self.ffi.new("sherd_view *", [self.ffi.cast("void *", array.ctypes.data), dtype, *array.shape, rows,
                                             cols])[0]

    def call(self, name, *arguments):
        """Calls a function whose last parameter is a sherd_diag."""
        d = self.ffi.new("sherd_diag *")
        arguments = [a.encode() if isinstance(a, str) else self.ffi.NULL if a is None else a for a in arguments]
        code = getattr(self.lib, name)(*arguments, d)
        if code:
            hint = self.text(d.hint)
            raise Error(code, self.text(d.message) + (f" ({hint})" if hint else ""))
