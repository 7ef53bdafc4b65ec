"""The Cython kernels and the KFRAME_DEBUG switch; everything else about the build stands in pyproject.toml.

``KFRAME_DEBUG=1`` checks every index, memoryview and None, and keeps assertions. Each mode has a build folder of its
own for C, objects and modules, because Cython would otherwise take the other mode's C for up to date and the switch
would silently do nothing. There is no ``-march``: a wheel must run on any machine of its platform.
"""

import os
from glob import glob
from pathlib import Path

from setuptools import Extension, setup

DEBUG = os.environ.get("KFRAME_DEBUG", "0") not in ("", "0")
BUILD_BASE = "build/debug" if DEBUG else "build/release"
COMPILE_ARGS = ["-O1", "-g", "-UNDEBUG"] if DEBUG else ["-O3", "-g0"]
MACROS: list[tuple[str, str | None]] = [("KFRAME_DEBUG", "1")] if DEBUG else []

#: The same arithmetic in both modes; only the checks differ.
DIRECTIVES = {
    "language_level": 3,
    "cdivision": True,
    "wraparound": False,
    "boundscheck": DEBUG,
    "initializedcheck": DEBUG,
    "nonecheck": DEBUG,
    "autotestdict": False,
    "show_performance_hints": not DEBUG,
}

setup(
    ext_modules=[
        Extension(
            f"kframe.{Path(source).stem}",
            [source],
            include_dirs=["."],
            define_macros=MACROS,
            extra_compile_args=COMPILE_ARGS,
            depends=glob("kframe/*.h"),
        )
        for source in sorted(glob("kframe/_*.pyx"))
    ],
    options={
        "build": {"build_base": BUILD_BASE},
        "build_ext": {"cython_c_in_temp": True, "cython_directives": DIRECTIVES},
    },
)
