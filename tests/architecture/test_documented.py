"""Documentation that ruff does not check: that of compiled functions."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from tests.architecture.source import KERNELS, module_name


def compiled_functions() -> list[tuple[str, Callable[..., Any]]]:
    """Return the public functions and classes of the compiled modules."""
    modules = [importlib.import_module(module_name(path)) for path in KERNELS]
    return [
        (f"{module.__name__}.{name}", member)
        for module in modules
        for name, member in vars(module).items()
        if callable(member) and not name.startswith("_") and getattr(member, "__module__", None) == module.__name__
    ]


def test_every_compiled_module_has_a_stub() -> None:
    # stubtest compares a stub with its module, but accepts a missing stub of a private module.
    assert [path.name for path in KERNELS if not path.with_suffix(".pyi").exists()] == []


def test_every_compiled_function_is_documented() -> None:
    functions = compiled_functions()
    assert functions
    assert [name for name, member in functions if not member.__doc__] == []
