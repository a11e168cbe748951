"""The command `sherd` of a wheel."""

from __future__ import annotations

import os
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Executes the command that the package contains, with the arguments of this process."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "sherd")
    os.execv(path, ["sherd", *sys.argv[1:]])
