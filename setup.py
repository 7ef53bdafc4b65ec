"""The kernels of kframe; ``pyproject.toml`` has the rest of the build."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from kframe_build import kernels_in, setup_kernels

setup_kernels(
    [*kernels_in("kframe"), *kernels_in("kframe/kernels")],
    headers=["kframe/plugin/placement.h", "kframe/plugin/selector.h"],
    shared="kframe._cython",
)
