"""`make sanitize` detects a kernel that reads beyond its array."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

BEYOND = """
import numpy as np
from kframe import _core
_core.check_transitions(np.array([{position}], np.int32), np.zeros(8, np.uint8), 1, np.zeros(1, np.uint8))
"""


@pytest.mark.skipif("asan" not in os.environ.get("LD_PRELOAD", ""), reason="only make sanitize looks at memory")
@pytest.mark.parametrize("position, seen", [(7, False), (8, True), (-1, True)])
def test_a_read_beyond_an_array_ends_the_process(position: int, seen: bool) -> None:
    completed = subprocess.run(
        [sys.executable, "-c", BEYOND.format(position=position)], capture_output=True, text=True, check=False
    )
    assert (completed.returncode != 0) is seen, completed.stderr
    assert ("AddressSanitizer: heap-buffer-overflow" in completed.stderr) is seen
