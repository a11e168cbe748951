"""How the shared library is found, and which one is refused."""

import os
import shutil
import subprocess
import sys

import pytest

import sherd

SHOW = "import sherd; print(sherd.library)"


def run(code, **environment):
    """Runs Python without the variables by which this process found the library."""
    env = {k: v for k, v in os.environ.items() if k not in ("SHERD_LIBRARY", "PKG_CONFIG_PATH")}
    env.update({k: str(v) for k, v in environment.items()})
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)


@pytest.fixture
def installed(tmp_path):
    """A folder with the library, under its own name and with a pkg-config file."""
    library = os.path.realpath(sherd.library)
    (tmp_path / "pkgconfig").mkdir()
    for name in ("libsherd.so", "libsherd.so.0"):
        (tmp_path / name).symlink_to(library)
    (tmp_path / "pkgconfig/sherd.pc").write_text(
        f"libdir={tmp_path}\nName: sherd\nDescription: -\nVersion: {sherd.__version__}\n"
    )
    return tmp_path


def test_the_variable_names_the_library(installed):
    path = installed / "libsherd.so"
    assert run(SHOW, SHERD_LIBRARY=path).stdout.strip() == str(path)


@pytest.mark.skipif(not shutil.which("pkg-config"), reason="pkg-config is not installed")
def test_pkg_config_names_the_library(installed):
    found = run(SHOW, PKG_CONFIG_PATH=installed / "pkgconfig").stdout.strip()
    assert found == str(installed / "libsherd.so")


def test_the_linker_finds_the_library(installed):
    found = run(SHOW, LD_LIBRARY_PATH=installed, PKG_CONFIG_LIBDIR="/nowhere")
    assert found.stdout.strip() == "libsherd.so.0", found.stderr


def test_a_missing_library_is_an_import_error_with_a_remedy():
    failed = run(
        "try: import sherd\nexcept ImportError as e: print(e.message, '|', e.hint, e.exit_code)",
        SHERD_LIBRARY="/nowhere/libsherd.so",
    )
    assert "/nowhere/libsherd.so" in failed.stdout and "SHERD_LIBRARY" in failed.stdout
    assert "PKG_CONFIG_PATH" in failed.stdout
    assert failed.stdout.strip().endswith("1"), failed.stderr


def test_a_library_of_another_version_is_refused(tmp_path):
    source, library = tmp_path / "old.c", tmp_path / "libsherd.so"
    source.write_text('const char *sherd_version(void) { return "9.9.9"; }\n')
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    failed = run("import sherd", SHERD_LIBRARY=library)
    assert failed.returncode == 1
    assert f"{library} has version 9.9.9, and this package needs" in failed.stderr
    assert "LibraryError" in failed.stderr


def test_another_library_is_refused(tmp_path):
    source, library = tmp_path / "other.c", tmp_path / "libsherd.so"
    source.write_text("int other;\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    assert "has version unknown" in run("import sherd", SHERD_LIBRARY=library).stderr
