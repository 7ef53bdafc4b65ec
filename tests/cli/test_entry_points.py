"""Entry points equal those of ``importlib.metadata``."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

import pytest

from kframe.cli.entry_points import entry_points, load

METADATA = "Metadata-Version: 2.1\nName: {}\nVersion: 1\n"
POINTS = """[console_scripts]
other = a:main

# comment
[kframe.commands]
first = package.module:NAMES
 second=package.module : NAMES.inner [extra]
[kframe]
plugin = package
"""
LATER = "[kframe.commands]\nlater = package:NAMES\n"


def install(folder: Path, name: str, text: str | None) -> None:
    (folder / name).mkdir(parents=True)
    (folder / name / "METADATA").write_text(METADATA.format(name.partition("-")[0]))
    if text is not None:
        (folder / name / "entry_points.txt").write_text(text)


@pytest.mark.parametrize(
    "distributions",
    [
        pytest.param({}, id="none"),
        pytest.param({"first/a-1.dist-info": POINTS, "second/b-2.0.egg-info": LATER}, id="two"),
        pytest.param({"first/a_b-1.dist-info": POINTS, "second/A.B-2.dist-info": LATER}, id="the first of a name"),
        pytest.param({"first/a-1.dist-info": None, "second/a-2.dist-info": LATER}, id="the first has none"),
        pytest.param({"first/a-1.dist-info": "[kframe.commands.more]\nx = y\n", "first/info": LATER}, id="others"),
    ],
)
@pytest.mark.parametrize("group", ["kframe.commands", "kframe", "absent"])
def test_entry_points(
    distributions: dict[str, str | None], group: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path, text in distributions.items():
        install(tmp_path / Path(path).parent, Path(path).name, text)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "first"), str(tmp_path / "second"), str(tmp_path / "missing")])
    expected = [(point.name, point.value) for point in metadata.entry_points(group=group)]
    assert sorted(entry_points(group)) == sorted(expected)


def test_archives_on_path_are_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "folder", "a-1.dist-info", POINTS)
    (tmp_path / "archive.zip").write_bytes(b"")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "archive.zip"), str(tmp_path / "folder")])
    assert [name for name, _ in entry_points("kframe.commands")] == ["first", "second"]


@pytest.mark.parametrize(
    "reference", ["tests.cli.test_entry_points:POINTS", "tests.cli.test_entry_points : POINTS [extra]"]
)
def test_load(reference: str) -> None:
    assert load(reference) == POINTS
    assert load(reference.partition(":")[0]).POINTS == POINTS
    assert load("tests.cli.test_entry_points:METADATA.format")("x") == METADATA.format("x")
