"""Compiles the declarations of libsherd to tables that import quickly, without a C compiler.

With SHERD_BUNDLE=1 the package contains a library and a command (tools/wheel): the wheel is then
for one platform, but still for every Python.
"""

import os

from setuptools import Distribution, setup

BUNDLE = os.environ.get("SHERD_BUNDLE") == "1"


class Bundle(Distribution):
    """A distribution that contains programs of this platform."""

    def has_ext_modules(self):
        """Tell setuptools that the wheel is not for every platform."""
        return True


def commands():
    """Return the commands of setuptools to replace: the wheel needs no ABI of Python."""
    from wheel.bdist_wheel import bdist_wheel

    class BundleWheel(bdist_wheel):
        def get_tag(self):
            return "py3", "none", super().get_tag()[2]

    return {"bdist_wheel": BundleWheel}


if BUNDLE:
    more = {
        "distclass": Bundle,
        "cmdclass": commands(),
        "package_data": {"sherd": ["py.typed", "lib/*", "bin/*", "licenses/*"]},
        "entry_points": {"console_scripts": ["sherd = sherd._command:main"]},
    }
else:
    more = {"package_data": {"sherd": ["py.typed"]}, "entry_points": {}}
setup(cffi_modules=["declarations.py:ffi"], **more)
