"""A wheel of kframe, built from the source distribution, runs where there is no compiler."""

from __future__ import annotations

import shutil
import sys
import sysconfig
import tarfile
from pathlib import Path

import pytest

from tests import tools
from tests.architecture.source import ROOT
from tests.packaging import distributions

#: Largest source distribution, in bytes. The tests' records would exceed it.
SOURCES_MOST = 2_500_000


def unpack_compiled(archive: Path, folder: Path) -> Path:
    """Unpack a source distribution, and add the modules of the tree, so that they are not compiled again."""
    with tarfile.open(archive) as sources:
        sources.extractall(folder, filter="data")
    (unpacked,) = folder.iterdir()
    release = Path("build") / "release"
    for path in (ROOT / release / "kframe").rglob("*.c"):
        copy(path, unpacked / path.relative_to(ROOT))
    library = release / f"lib.{sysconfig.get_platform()}-{sys.implementation.cache_tag}"
    for path in (ROOT / "kframe").rglob("*.so"):
        copy(path, unpacked / library / path.relative_to(ROOT))
    return unpacked


def copy(path: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(path, target)


@pytest.mark.real
@pytest.mark.extended
def test_wheel_runs_without_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``make dist`` compiles it. A test of the build checks that the source distribution has what that needs."""
    monkeypatch.setenv("PIP_NO_COMPILE", "1")
    out, python = tmp_path / "dist", Path(sys.executable)
    out.mkdir()
    try:
        source = distributions.source_distribution(distributions.CONTROLLER, out)
        distributions.build_wheels(python, [unpack_compiled(source, tmp_path / "tree")], out, "--no-build-isolation")
    except tools.ToolMissing as missing:
        pytest.skip(str(missing))
    (wheel,) = out.glob("*.whl")
    assert source.stat().st_size < SOURCES_MOST
    assert "manylinux" in wheel.name or sys.platform != "linux"
    distributions.install_and_run(python, out, [source])


@pytest.mark.real
@pytest.mark.extended
def test_plugin_source_distribution_has_build_definition(tmp_path: Path) -> None:
    """In the tree it is a symbolic link, which would lead nowhere in another folder."""
    try:
        archive = distributions.source_distribution(Path("plugins/zookeeper"), tmp_path)
    except tools.ToolMissing as missing:
        pytest.skip(str(missing))
    with tarfile.open(archive) as sources:
        (definition,) = [member for member in sources.getmembers() if member.name.endswith("/kframe_build.py")]
    assert definition.isfile()


def test_interpreters_are_of_different_supported_versions() -> None:
    minors = [distributions.minor_version(python) for python in distributions.interpreters()]
    assert sys.version_info.minor in minors
    assert len(set(minors)) == len(minors)
    assert set(minors) <= set(distributions.MINORS)
