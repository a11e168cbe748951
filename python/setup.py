"""Compiles the declarations of libsherd to tables that import quickly, without a C compiler."""

from setuptools import setup

setup(cffi_modules=["declarations.py:ffi"])
