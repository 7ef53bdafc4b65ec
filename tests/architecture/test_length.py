"""No module and no function exceeds its length limit. There are no exceptions, and limits only decrease."""

from __future__ import annotations

from tests.architecture.source import (
    KERNELS,
    PLUGIN_KERNELS,
    ROOT,
    cython_functions,
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


CYTHON = """
cdef enum:
    ADDING = 1

cdef inline bint contains(const int32_t[::1] values, int32_t wanted) noexcept nogil:
    return False

cdef int32_t[::1] view = make(1)
cdef extern from "x.h":
    int outside(int a)


def elect(
    int kind,  # IN

    int32_t[::1] leader,
):
    with nogil:
        pass

    return 0


class Holder:
    cpdef int held(self):
        return 1
"""


def test_cython_functions_are_measured_from_header_to_last_line() -> None:
    assert list(cython_functions(CYTHON)) == [(5, "contains", 2), (13, "elect", 9), (25, "held", 2)]


def test_front_pages_are_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120
    assert len((ROOT / "ARCHITECTURE.md").read_text().split()) <= 1_200
