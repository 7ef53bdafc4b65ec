"""The Cython kernels and the KFRAME_DEBUG switch; everything else about the build stands in pyproject.toml.

``KFRAME_DEBUG=1`` checks every index, memoryview and None, and keeps assertions; ``KFRAME_SANITIZE=1`` checks no more
than a release, and lets AddressSanitizer and UBSan see what that comes to. Each mode has a build folder of its
own for C, objects and modules, because Cython would otherwise take the other mode's C for up to date and the switch
would silently do nothing. There is no ``-march``: a wheel must run on any machine of its platform.
"""

import os
from glob import glob

from Cython.Build import cythonize
from setuptools import Extension, setup

DEBUG = os.environ.get("KFRAME_DEBUG", "0") not in ("", "0")
SANITIZE = os.environ.get("KFRAME_SANITIZE", "0") not in ("", "0")
MODE = "sanitize" if SANITIZE else "debug" if DEBUG else "release"
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer"]
COMPILE_ARGS = {
    "release": ["-O3", "-g0"],
    "debug": ["-O1", "-g", "-UNDEBUG"],
    "sanitize": ["-O1", "-g", *SANITIZERS],
}
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

#: ``_core.pyx`` is beside the packages, all other kernels are in one.
SOURCES = ["kframe/_core.pyx", *sorted(glob("kframe/kernels/_*.pyx"))]

#: What every module needs of Cython stands in one of its own: in each alone it is larger than the kernels, and not in
#: the cache when an event comes to it.
SHARED = "kframe._cython"


def extension(name: str, source: str) -> Extension:
    """A module of the package, compiled as this mode says."""
    return Extension(
        name,
        [source],
        include_dirs=["."],
        define_macros=MACROS,
        extra_compile_args=COMPILE_ARGS[MODE],
        extra_link_args=SANITIZERS if SANITIZE else [],
        depends=glob("kframe/plugin/*.h"),
    )


setup(
    ext_modules=cythonize(  # type: ignore[no-untyped-call]
        [
            *(extension(source.removesuffix(".pyx").replace("/", "."), source) for source in SOURCES),
            extension(SHARED, f"build/{MODE}/{SHARED.replace('.', '/')}.c"),
        ],
        build_dir=f"build/{MODE}",
        compiler_directives=DIRECTIVES,
        shared_utility_qualified_name=SHARED,
        quiet=True,
    ),
    options={"build": {"build_base": f"build/{MODE}"}},
)
