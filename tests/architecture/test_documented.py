"""Documentation that ruff does not check: compiled functions, and each hook with its use and its test."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable
from typing import Any

import pytest

from tests.architecture.source import KERNELS, ROOT, module_name


def compiled_functions() -> list[tuple[str, Callable[..., Any]]]:
    """Return the public functions and classes of the compiled modules."""
    modules = [importlib.import_module(module_name(path)) for path in KERNELS]
    return [
        (f"{module.__name__}.{name}", member)
        for module in modules
        for name, member in vars(module).items()
        if callable(member) and not name.startswith("_") and getattr(member, "__module__", None) == module.__name__
    ]


def hooks() -> dict[str, str]:
    """Return the docstring of each plugin hook."""
    tree = ast.parse((ROOT / "kframe" / "registry" / "hookspecs.py").read_text())
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return {
        node.name: ast.get_docstring(node) or ""
        for node in functions
        if any("hookspec" in ast.unparse(decorator) for decorator in node.decorator_list)
    }


def test_every_compiled_module_has_a_stub() -> None:
    # stubtest compares a stub with its module, but accepts a missing stub of a private module.
    assert [path.name for path in KERNELS if not path.with_suffix(".pyi").exists()] == []


def test_every_compiled_function_is_documented() -> None:
    functions = compiled_functions()
    assert functions
    assert [name for name, member in functions if not member.__doc__] == []


@pytest.mark.parametrize("hook, docstring", hooks().items(), ids=hooks())
def test_every_hook_shows_a_complete_plugin(hook: str, docstring: str) -> None:
    assert "@hookimpl" in docstring
    assert f"def {hook}(" in docstring


@pytest.mark.parametrize("hook", hooks())
def test_every_hook_has_a_test(hook: str) -> None:
    tests = [*(ROOT / "tests" / "registry").rglob("test_*.py"), *(ROOT / "plugins").glob("*/tests/test_*.py")]
    assert [path for path in tests if hook in path.read_text()], "no test implements it"


def test_hooks_are_named_after_kframe() -> None:
    assert hooks()
    assert [hook for hook in hooks() if not hook.startswith("kframe_")] == []
