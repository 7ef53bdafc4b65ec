"""Importing ``kframe`` starts no thread and loads no optional module. Each name is imported on first use."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import kframe
from tests.architecture.source import ROOT

#: Modules that ``import kframe`` may load: its own, and these standard modules with their dependencies.
STANDARD = "typing"
HEAVY = {"numpy", "pluggy", "threading", "asyncio", "concurrent", "logging", "random", "msgspec"}

PROBE = """
import json, sys, time
before = set(sys.modules)
started = time.perf_counter()
{statement}
took = time.perf_counter() - started
loaded = sorted(set(sys.modules) - before)
print(json.dumps({{"loaded": loaded, "took": took, "threads": len(sys._current_frames())}}))
"""


def probe(statement: str) -> dict[str, Any]:
    """Return the modules that a statement loads in a new interpreter, and its duration."""
    code = PROBE.format(statement=statement)
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    result: dict[str, Any] = json.loads(completed.stdout)
    return result


def test_importing_kframe_loads_a_single_module_and_typing() -> None:
    ours, standard = probe("import kframe"), probe(f"import {STANDARD}")
    loaded = set(ours["loaded"])
    assert {name for name in loaded if name.partition(".")[0] == "kframe"} == {"kframe", "kframe.lazy"}
    assert loaded - {"kframe", "kframe.lazy", "__future__"} <= set(standard["loaded"])
    assert loaded & HEAVY == set()
    assert ours["threads"] == 1
    print(f"import kframe: {len(loaded)} modules, {ours['took'] / standard['took']:.2f} times `import {STANDARD}`")


def test_first_name_loads_its_module() -> None:
    """The test above can fail."""
    assert "numpy" in probe("import kframe; kframe.ClusterState")["loaded"]


def test_controller_needs_no_plugins_or_optional_dependencies() -> None:
    loaded = set(probe("import kframe; kframe.ControllerBuilder; kframe.events")["loaded"])
    roots = {name.partition(".")[0] for name in loaded}
    assert roots & {"click", "rich", "yaml", "pyarrow", "kazoo", "pyspark", "matplotlib", "kframe_rack_spread"} == set()


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


def test_dir_loads_no_module() -> None:
    assert "numpy" not in probe("import kframe; dir(kframe)")["loaded"]
