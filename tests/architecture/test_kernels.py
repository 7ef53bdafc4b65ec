"""What kernels may not do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.architecture.source import DECLARATIONS, KERNELS, PLUGIN_KERNELS

#: Names by which Cython code allocates.
ALLOCATION = re.compile(r"\b(?:m|c|re)alloc\b|\bPyMem_|\bnew\s+\w+\(|\bnp\.\w*(?:empty|zeros|array)\b|\bcython\.view\b")


@pytest.mark.parametrize("path", [*KERNELS, *PLUGIN_KERNELS, *DECLARATIONS], ids=lambda path: path.name)
def test_kernels_allocate_nothing(path: Path) -> None:
    """Callers pass all arrays, so a kernel cannot fail half-way for want of memory."""
    code = re.sub(r'"""[\s\S]*?"""|#.*', "", path.read_text())
    assert ALLOCATION.findall(code) == []
