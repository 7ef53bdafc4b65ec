"""Compile native selectors once per test run."""

from __future__ import annotations

import ctypes
import shlex
import subprocess
import sysconfig
from pathlib import Path

import pytest

from kframe.registry.native import SIGNATURE, NativeFunction, include_dir

SOURCE = Path(__file__).with_name("selectors.c")


class Compiled:
    """The functions of ``selectors.c``."""

    def __init__(self, library: Path) -> None:
        self.path = library
        self._library = ctypes.CDLL(str(library))

    def address(self, name: str) -> int:
        """Return the address of a function."""
        address = ctypes.cast(getattr(self._library, name), ctypes.c_void_p).value
        assert address is not None
        return address

    def function(self, name: str, user_data: int = 0, signature: str = SIGNATURE) -> NativeFunction:
        """Return a function as a plugin provides it."""
        return NativeFunction(self.address(name), signature, user_data, self._library)


def compile_selectors(folder: Path) -> Path:
    """Compile ``selectors.c`` into a shared library in a folder."""
    library = folder / "selectors.so"
    compiler = shlex.split(sysconfig.get_config_var("CC") or "cc")
    flags = ["-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-I", include_dir()]
    subprocess.run([*compiler, *flags, "-o", str(library), str(SOURCE)], check=True)
    return library


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    return Compiled(compile_selectors(tmp_path_factory.mktemp("native")))
