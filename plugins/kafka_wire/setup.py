"""The plugin's kernels; everything else about the build stands in pyproject.toml.

``KFRAME_DEBUG=1`` checks every index, as in kframe's own setup.py; each mode has a build folder of its own.
"""

import os
from glob import glob
from pathlib import Path

from setuptools import Extension, setup

DEBUG = os.environ.get("KFRAME_DEBUG", "0") not in ("", "0")

setup(
    ext_modules=[
        Extension(
            f"kframe_kafka_wire.{Path(source).stem}",
            [source],
            extra_compile_args=["-O1", "-g", "-UNDEBUG"] if DEBUG else ["-O3", "-g0"],
        )
        for source in sorted(glob("kframe_kafka_wire/_*.pyx"))
    ],
    options={
        "build": {"build_base": "build/debug" if DEBUG else "build/release"},
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
