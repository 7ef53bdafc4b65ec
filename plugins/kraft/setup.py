"""The kernels of the plugin; ``pyproject.toml`` has the rest of the build."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from kframe_build import kernels_in, setup_kernels

setup_kernels(kernels_in("kframe_kraft/kernels"), shared="kframe_kraft._cython")
