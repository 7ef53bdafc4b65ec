"""Builds the Cython kernels of kframe and of the plugins beside it, in one of three modes.

A release build checks neither indexes nor None. ``KFRAME_DEBUG=1`` checks every index, memoryview and None, and keeps
assertions. ``KFRAME_SANITIZE=1`` is a release build with AddressSanitizer and UBSan. Each mode has its own build folder
for C, objects and modules, so that a change of mode does not recompile. There is no ``-march``: a wheel runs on any
machine of its platform. ``KFRAME_COMPILE=0`` compiles nothing: ``make setup`` installs the libraries with pip while it
compiles the kernels.

Plugins with kernels link to this file, because the isolated build of a distribution sees only its own folder.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

DEBUG = os.environ.get("KFRAME_DEBUG", "0") not in ("", "0")
SANITIZE = os.environ.get("KFRAME_SANITIZE", "0") not in ("", "0")
COMPILE = os.environ.get("KFRAME_COMPILE", "1") not in ("", "0")
MODE = "sanitize" if SANITIZE else "debug" if DEBUG else "release"
#: Commands of setuptools that need no compiled module.
LISTING = {"dist_info", "egg_info", "sdist"}
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer"]
COMPILE_ARGS = {
    "release": ["-O3", "-g0"],
    "debug": ["-O0", "-g", "-UNDEBUG"],
    "sanitize": ["-O1", "-g", *SANITIZERS],
}
#: Arithmetic is the same in all modes; only the checks differ.
DIRECTIVES = {
    "language_level": 3,
    "cdivision": True,
    "wraparound": False,
    "boundscheck": DEBUG,
    "initializedcheck": DEBUG,
    "nonecheck": DEBUG,
    "autotestdict": False,
    # Kernels have no state of their own: a free-threaded Python need not turn its lock on for them.
    "freethreading_compatible": True,
    "show_performance_hints": not DEBUG,
}


def setup_kernels(sources: Sequence[str], *, headers: Sequence[str] = (), shared: str | None = None) -> None:
    """Run ``setup`` with an extension for each ``.pyx`` file, named after its path.

    A change of ``headers`` recompiles all of them. ``shared`` names a further extension for Cython's utility code,
    which would otherwise be a part of each. Commands that only list files or write metadata compile nothing.
    """
    if not COMPILE:
        setup()
        return
    extensions = [_extension(source.removesuffix(".pyx").replace("/", "."), source, headers) for source in sources]
    options: dict[str, str] = {}
    if shared is not None:
        extensions.append(_extension(shared, f"build/{MODE}/{shared.replace('.', '/')}.c", headers))
        options["shared_utility_qualified_name"] = shared
    if not LISTING & set(sys.argv):
        extensions = cythonize(  # type: ignore[no-untyped-call]
            extensions, build_dir=f"build/{MODE}", compiler_directives=DIRECTIVES, quiet=True, **options
        )
    commands: dict[str, dict[str, object]] = {
        "build": {"build_base": f"build/{MODE}"},
        "build_ext": {"parallel": os.cpu_count() or 1},
    }
    setup(ext_modules=extensions, options=commands)


def kernels_in(folder: str) -> list[str]:
    """The Cython modules of a package, as paths relative to the distribution."""
    return sorted(path.as_posix() for path in Path(folder).glob("_*.pyx"))


def _extension(name: str, source: str, headers: Sequence[str]) -> Extension:
    return Extension(
        name,
        [source],
        include_dirs=["."],
        define_macros=[("KFRAME_DEBUG", "1")] if DEBUG else [],
        extra_compile_args=COMPILE_ARGS[MODE],
        extra_link_args=SANITIZERS if SANITIZE else [],
        depends=list(headers),
    )
