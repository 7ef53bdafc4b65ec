"""`verification/sanitize.sh` detects a kernel that reads beyond its array."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.kernel

BEYOND = """
import numpy as np
from kframe import _core
_core.check_transitions(np.array([{position}], np.int32), np.zeros(8, np.uint8), 1, np.zeros(1, np.uint8))
"""


@pytest.mark.skipif("asan" not in os.environ.get("LD_PRELOAD", ""), reason="only sanitize.sh checks memory")
@pytest.mark.parametrize("position, is_reported", [(7, False), (8, True), (-1, True)])
def test_out_of_bounds_read_aborts_process(position: int, is_reported: bool) -> None:
    completed = subprocess.run(
        [sys.executable, "-c", BEYOND.format(position=position)], capture_output=True, text=True, check=False
    )
    assert (completed.returncode != 0) is is_reported, completed.stderr
    assert ("AddressSanitizer: heap-buffer-overflow" in completed.stderr) is is_reported
