"""The kernel that mutates messages; everything else about the build stands in pyproject.toml.

``KFRAME_DEBUG=1`` and ``KFRAME_SANITIZE=1`` are as in kframe's own setup.py; each mode has a build folder of its own.
"""

import os
from glob import glob
from pathlib import Path

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

setup(
    ext_modules=[
        Extension(
            f"kframe_simulator.{Path(source).stem}",
            [source],
            extra_compile_args=COMPILE_ARGS[MODE],
            extra_link_args=SANITIZERS if SANITIZE else [],
        )
        for source in sorted(glob("kframe_simulator/_*.pyx"))
    ],
    options={
        "build": {"build_base": f"build/{MODE}"},
        "build_ext": {
            "cython_c_in_temp": True,
            "cython_directives": {
                "language_level": 3,
                "cdivision": True,
                "wraparound": False,
                "boundscheck": DEBUG,
                "initializedcheck": DEBUG,
                "nonecheck": DEBUG,
                "autotestdict": False,
            },
        },
    },
)
