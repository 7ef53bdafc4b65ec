"""The build: kernels of a run, their checks, and the content of the distributions."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest

from kframe import _core
from tests.architecture.source import KERNELS, PLUGIN_KERNELS, ROOT, module_name

DEBUG_REQUESTED = os.environ.get("KFRAME_DEBUG") == "1"
#: The example snapshots, which are data files of the package.
EXAMPLES = {path.relative_to(ROOT) for path in (ROOT / "kframe" / "snapshot" / "examples").rglob("*") if path.is_file()}


def test_kernels_match_requested_build() -> None:
    assert _core.DEBUG is DEBUG_REQUESTED


@pytest.mark.parametrize("name", [*(module_name(path) for path in KERNELS), "kframe._cython"])
def test_all_kernels_come_from_one_build(name: str) -> None:
    built = importlib.import_module(name).__file__
    assert built is not None
    assert Path(built).is_relative_to(ROOT / "build" / "debug") is DEBUG_REQUESTED


@pytest.mark.parametrize("path", [*KERNELS, *PLUGIN_KERNELS], ids=lambda path: path.stem)
def test_kernels_need_no_global_lock(path: Path) -> None:
    """Free-threaded Python turns its lock on when it imports a module without this declaration."""
    distribution = next(folder for folder in path.parents if (folder / "setup.py").exists())
    sources = (distribution / "build").glob(f"{'debug' if DEBUG_REQUESTED else 'release'}/**/{path.stem}.c")
    declaration = "#else\n#define __Pyx_FREETHREADING_COMPATIBLE Py_MOD_GIL_NOT_USED\n"
    assert {declaration in file.read_text() for file in sources} == {True}


@pytest.mark.skipif(not _core.DEBUG, reason="release kernels trust their caller")
@pytest.mark.parametrize("position", [1, 2**31 - 1, -1])
def test_debug_build_refuses_out_of_range_index(position: int) -> None:
    positions, states = np.array([position], np.int32), np.zeros(1, np.uint8)
    with pytest.raises(IndexError, match="Out of bounds"):
        _core.check_transitions(positions, states, 1, np.zeros(1, np.uint8))


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a source distribution and with the files of a wheel, in ``library``.

    setup.py creates folders, and another test may build in the tree, so it runs in a copy. Generated C is copied too,
    because Cython translates each kernel without it.
    """
    folder = tmp_path_factory.mktemp("distributions")
    tree = folder / "tree"
    shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".*", "__pycache__", "build", "*.egg-info"))
    for source in (ROOT / "build" / "release").rglob("*.c"):
        copy = tree / source.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, copy)
    commands = ["sdist", "--formats", "tar", "--dist-dir", str(folder), "build_py", "--build-lib", f"{folder}/library"]
    completed = subprocess.run(
        [sys.executable, "setup.py", "--quiet", *commands], capture_output=True, text=True, check=False, cwd=tree
    )
    assert completed.returncode == 0, completed.stderr
    return folder


def package_files(*suffixes: str) -> set[Path]:
    """Return the package's files with one of ``suffixes``, relative to the root."""
    paths = (path for path in (ROOT / "kframe").rglob("*") if path.suffix in suffixes)
    return {path.relative_to(ROOT) for path in paths}


def test_source_distribution_has_all_build_inputs(distributions: Path) -> None:
    (archive,) = distributions.glob("*.tar")
    with tarfile.open(archive) as sdist:
        files = {Path(*Path(name).parts[1:]) for name in sdist.getnames()}
    expected = package_files(".py", ".pyx", ".pxd", ".pyi", ".h", ".typed")
    assert expected - files == set()
    assert {Path("LICENSE"), Path("Makefile"), Path("setup.py"), Path("tests/conftest.py")} <= files
    assert files >= EXAMPLES
    excluded = ("plugins", "simulator", "benchmarks/results", "tests/golden/traces")
    assert {path for path in files for folder in excluded if path.is_relative_to(folder)} == set()
    assert {path for path in files if path.suffix in {".so", ".pyc"} or path.match("kframe/**/*.c")} == set()


def test_wheel_has_stubs_but_no_kernel_source(distributions: Path) -> None:
    library = distributions / "library"
    files = {path.relative_to(library) for path in library.rglob("*") if path.is_file()}
    assert {path.parts[0] for path in files} == {"kframe"}
    assert {path.parts[1] for path in files} & {"broker", "fuzz", "sim", "simulation"} == set()
    assert package_files(".py", ".pxd", ".pyi", ".h", ".typed") - files == set()
    assert files >= EXAMPLES
    assert {path for path in files if path.suffix in {".c", ".pyx", ".so"}} == set()
