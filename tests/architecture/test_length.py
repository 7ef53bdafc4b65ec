"""No module and no function exceeds its length limit. There are no exceptions, and limits only decrease."""

from __future__ import annotations

from tests.architecture.source import (
    KERNELS,
    PLUGIN_KERNELS,
    kernel_functions,
    product_files,
    python_functions,
)

MODULE_LINES = 400
FUNCTION_LINES = 70
KERNEL_LINES = 60


def test_module_length() -> None:
    files = product_files(".py", ".pyi", ".pyx", ".pxd")
    assert files
    long = {path.name: lines for path in files if (lines := len(path.read_text().splitlines())) > MODULE_LINES}
    assert long == {}


def test_function_length() -> None:
    functions = [block for path in product_files(".py") for block in python_functions(path)]
    assert functions
    assert [block for block in functions if block.lines > FUNCTION_LINES] == []


def test_kernel_length() -> None:
    kernels = [block for path in KERNELS + PLUGIN_KERNELS for block in kernel_functions(path)]
    assert kernels
    assert [block for block in kernels if block.lines > KERNEL_LINES] == []
