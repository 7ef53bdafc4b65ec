"""Modules that an import of kframe may load, and imports of kernels. import-linter checks the layers of Python
modules."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import kframe
from tests.architecture.source import DECLARATIONS, KERNELS, ROOT, definitions, module_name, tracked_files

#: Optional or slow modules. They are imported on first use, not by ``import kframe``.
LAZY_PACKAGES = {"click", "kazoo", "kio", "matplotlib", "pandas", "pyarrow", "pyspark", "rich", "yaml"}

#: Imports that a kernel may have: the C library, Python's C API and the package's own declarations.
REACHABLE = {"libc", "cpython", "cython", "kframe.errors", "kframe.model"} | {
    f"kframe.kernels.{path.stem}" for path in DECLARATIONS
}

IMPORT = re.compile(r"^\s*(?:from\s+(?P<source>[\w.]+)\s+c?import\b|c?import\s+(?P<names>[\w., ]+))", re.MULTILINE)
EXTERN = re.compile(r"^\s*cdef\s+extern\s+from\s+(?P<header>\*|\S+)", re.MULTILINE)


def loaded_after(statement: str) -> set[str]:
    """Return the module names in a new interpreter after ``statement``, without those that Python loads itself."""
    code = f"import sys\nbefore = set(sys.modules)\n{statement}\nprint(*set(sys.modules) - before)"
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(completed.stdout.split())


@pytest.mark.parametrize("statement", ["import kframe", "import kframe; dir(kframe)"])
def test_importing_kframe_loads_two_modules_and_typing(statement: str) -> None:
    loaded = loaded_after(statement)
    assert {name for name in loaded if name.partition(".")[0] == "kframe"} == {"kframe", "kframe.lazy"}
    assert loaded - {"kframe", "kframe.lazy", "__future__"} <= loaded_after("import typing")


def test_controller_needs_no_plugins_or_optional_dependencies() -> None:
    loaded = {name.partition(".")[0] for name in loaded_after("import kframe; kframe.ControllerBuilder; kframe.events")}
    assert "numpy" in loaded
    assert loaded & (LAZY_PACKAGES | {"kframe_rack_spread"}) == set()


def test_each_public_name_loads_independently() -> None:
    """Each in a fork of an interpreter that has imported NumPy, but nothing of kframe."""
    code = """
import os, sys, numpy
for name in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        import kframe
        sys.exit(getattr(kframe, name) is None)
    if os.waitpid(child, 0)[1] != 0:
        print(name)
"""
    names = sorted(kframe._PUBLIC)
    completed = subprocess.run(
        [sys.executable, "-c", code, *names, "_no_such"], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert completed.stdout.split() == ["_no_such"], completed.stderr


SURFACE = [
    *(ROOT / "plugins" / "rack_spread").glob("*.py"),
    *(ROOT / "examples" / "selectors").rglob("*.py"),
    *(ROOT / "examples" / "stores").glob("*.py"),
    *(ROOT / "examples" / "transports").glob("*.py"),
]


@pytest.mark.parametrize("path", SURFACE, ids=lambda path: path.name)
def test_plugin_of_one_module_imports_plugin_surface_only(path: Path) -> None:
    # import-linter checks plugins that are packages.
    modules = {name for name in reached(path.read_text()) if name.partition(".")[0] == "kframe"}
    assert {name for name in modules if not f"{name}.".startswith("kframe.plugin.")} == set()


def test_importing_plugin_surface_loads_nothing_optional() -> None:
    paths = sorted((ROOT / "kframe" / "plugin").glob("*.py"))
    modules = [module_name(path).removesuffix(".__init__") for path in paths if path.stem not in ("commands", "fleet")]
    assert len(modules) > 10
    assert optional_packages(f"import {', '.join(modules)}") == set()
    assert optional_packages("import kframe.plugin.commands") == {"click"}
    assert optional_packages("import kframe.plugin.fleet") == {"pyarrow"}


def optional_packages(statement: str) -> set[str]:
    """Return the packages of LAZY_PACKAGES that a statement loads."""
    return {name.partition(".")[0] for name in loaded_after(statement)} & LAZY_PACKAGES


def reached(text: str) -> set[str]:
    """Return the modules that a Cython source imports or cimports."""
    names: set[str] = set()
    for match in IMPORT.finditer(text):
        sources = [match["source"]] if match["source"] else [name.split()[0] for name in match["names"].split(",")]
        names.update(sources)
    return names


@pytest.mark.parametrize("path", [*KERNELS, *DECLARATIONS], ids=lambda path: path.name)
def test_kernels_import_only_c_and_vocabulary(path: Path) -> None:
    violations = {
        name
        for name in reached(path.read_text())
        if not any(name == root or name.startswith(f"{root}.") for root in REACHABLE)
    }
    assert violations == set()


@pytest.mark.parametrize("path", [*KERNELS, *DECLARATIONS], ids=lambda path: path.name)
def test_kernels_include_only_own_headers(path: Path) -> None:
    headers = {match["header"].strip("\"':") for match in EXTERN.finditer(path.read_text())}
    own_headers = {str(header.relative_to(ROOT)) for header in (ROOT / "kframe").rglob("*.h")}
    assert headers - own_headers - {"*", "Python.h"} == set()


def importable_name(path: Path) -> str:
    """Return the name under which a module of any distribution is imported."""
    package = path.parent
    while (package / "__init__.py").exists():
        package = package.parent
    name = ".".join(path.relative_to(package).with_suffix("").parts)
    return name.removesuffix(".__init__")


def import_cycle(sources: Mapping[str, str]) -> list[str] | None:
    """Return modules that import each other in a circle, or None. A package counts if a name is imported from it."""
    graph = {}
    for module, source in sources.items():
        names = (name if name in sources else name.rpartition(".")[0] for name in definitions(source).imports)
        graph[module] = {name for name in names if name in sources and name != module}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        cycle: list[str] = error.args[1]
        return cycle
    return None


def test_no_modules_import_each_other() -> None:
    sources = {importable_name(path): path.read_text() for path in tracked_files(".py")}
    assert len(sources) > 1000
    assert import_cycle(sources) is None
