"""A wheel of kframe, built from the source distribution, runs where there is no compiler."""

from __future__ import annotations

import os
import sys
import tarfile
from pathlib import Path

import pytest

from tests import tools
from tests.packaging import distributions

#: Largest source distribution, in bytes. The tests' records would exceed it.
SOURCES_MOST = 2_500_000


@pytest.fixture
def unoptimized(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile kernels without optimization and install no bytecode. ``make dist`` does both."""
    compiler = tmp_path / "cc"
    compiler.write_text(f'#!/bin/sh\nexec {os.environ.get("CC", "cc")} "$@" -O0\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    monkeypatch.setenv("PIP_NO_COMPILE", "1")


@pytest.mark.real
@pytest.mark.usefixtures("unoptimized")
def test_wheel_runs_without_compiler(tmp_path: Path) -> None:
    out = tmp_path / "dist"
    try:
        distributions.make(out, [Path(sys.executable)], [distributions.CONTROLLER])
    except tools.ToolMissing as missing:
        pytest.skip(str(missing))
    (source,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
    assert source.stat().st_size < SOURCES_MOST
    assert "manylinux" in wheel.name or sys.platform != "linux"


@pytest.mark.real
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
