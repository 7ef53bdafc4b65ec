"""A generated plugin works without changes, and no existing file is overwritten."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import kframe
from kframe.errors import ConfigError
from kframe.registry.native import include_dir
from kframe.registry.scaffold import TEMPLATES, new_plugin


@pytest.mark.parametrize("offers", TEMPLATES)
def test_new_plugin_is_complete_and_passes_its_tests(tmp_path: Path, offers: str) -> None:
    folder = tmp_path / "deep" / "near-rack"
    files = new_plugin(folder, "near-rack", offers)
    assert {file.relative_to(folder).as_posix() for file in files} == {
        "pyproject.toml",
        "README.md",
        "kframe_near_rack.py",
        "tests/test_near_rack.py",
    }
    project = tomllib.loads((folder / "pyproject.toml").read_text())
    assert f"kframe-controller~={kframe.__version__}" in project["project"]["dependencies"]
    assert project["project"]["entry-points"]["kframe"] == {"near-rack": "kframe_near_rack"}
    assert list(folder.parent.iterdir()) == [folder], "nothing is left over"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    environment = os.environ | {"PYTHONPATH": include_dir()}
    completed = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stdout
    assert "6 passed" in completed.stdout


@pytest.mark.parametrize("name", ["", "Near", "near_rack", "near rack", "../near", "near.rack", "-near"])
def test_bad_name_writes_nothing(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="plugin name: found"):
        new_plugin(tmp_path / "new", name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("existing", ["file", "full folder"])
def test_existing_files_are_not_replaced(tmp_path: Path, existing: str) -> None:
    folder = tmp_path / "new"
    if existing == "file":
        folder.write_text("mine")
    else:
        folder.mkdir()
        (folder / "mine").write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ConfigError, match="expected a new or empty directory"):
        new_plugin(folder, "near")
    assert sorted(tmp_path.rglob("*")) == before
