"""Compiles the declarations of libsherd (sherd.cdef) to tables that import quickly; no C compiler is needed."""
from setuptools import setup

setup(cffi_modules=["declarations.py:ffi"])
