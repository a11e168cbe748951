"""
The declarations of libsherd for cffi. sherd.cdef is generated from the public headers
(generate.py).

setup.py compiles them for use without a compiler (ABI mode). tests/test_declarations.py compiles
them with the headers (API mode), where the C compiler rejects every declaration that is not that of
the headers.
"""

import os

from cffi import FFI

FOLDER = os.path.dirname(os.path.abspath(__file__))


def declare(module, source=None):
    """Returns an FFI with all declarations that compiles to `module`; source: C, for API mode."""
    made = FFI()
    with open(os.path.join(FOLDER, "sherd.cdef"), encoding="ascii") as f:
        made.cdef(f.read())
    made.set_source(module, source)
    return made


ffi = declare("sherd._cffi")
