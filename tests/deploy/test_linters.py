"""Linters of workflows, Containerfile, compose file, unit and packaging metadata.

GitHub and macOS are not available to the tests, so the linters are the only check of what releases. A linter that
cannot be installed skips its tests, with the reason. ``tests.yml`` runs these extended tests, too.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pytest

from tests import tools
from tests.architecture.source import ROOT

pytestmark = [pytest.mark.real, pytest.mark.extended]
#: Schema in check-jsonschema to the files that it describes.
SCHEMAS: Final = {
    "vendor.citation-file-format": [ROOT / "CITATION.cff"],
    "vendor.compose-spec": [ROOT / "deploy" / "compose.yaml"],
}
#: Largest exposure of the unit by ``systemd-analyze security``, in tenths; 100 is no protection.
EXPOSURE_MOST: Final = 20
PROJECTS: Final = [
    ROOT / "pyproject.toml",
    ROOT / "simulator" / "pyproject.toml",
    *ROOT.glob("plugins/*/pyproject.toml"),
]


def installed(find: Callable[[], Path]) -> Path:
    """Return the path of a tool, or skip the test with the reason why there is none."""
    try:
        return find()
    except tools.ToolMissing as missing:
        pytest.skip(str(missing))


def lint(command: Sequence[object], folder: Path = ROOT) -> str:
    """Run a linter in a folder and return its output. It must succeed."""
    completed = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, cwd=folder)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    return completed.stdout


@pytest.fixture(scope="session")
def linters() -> Path:
    """Return the folder with the linters. They are the dependency group ``lint``."""
    return installed(lambda: tools.group_bin("lint"))


@pytest.mark.parametrize("schema", SCHEMAS)
def test_files_match_their_schema(linters: Path, schema: str) -> None:
    lint([linters / "check-jsonschema", "--builtin-schema", schema, *SCHEMAS[schema]])


def test_zizmor(linters: Path) -> None:
    lint([linters / "zizmor", "--offline", "--quiet", ROOT / ".github"])


@pytest.mark.parametrize("project", PROJECTS, ids=lambda path: path.parent.name)
def test_project_metadata(linters: Path, project: Path) -> None:
    lint([linters / "validate-pyproject", project])


@pytest.mark.parametrize(
    "platform, architecture, suffixes",
    [
        ("linux", "x86_64", ["manylinux_x86_64", "musllinux_x86_64"]),
        ("linux", "aarch64", ["manylinux_aarch64", "musllinux_aarch64"]),
        ("macos", "x86_64", ["macosx_x86_64"]),
        ("macos", "arm64", ["macosx_arm64"]),
    ],
)
def test_cibuildwheel_builds_wheels(linters: Path, platform: str, architecture: str, suffixes: list[str]) -> None:
    command = [linters / "cibuildwheel", "--print-build-identifiers", "--platform", platform, "--archs", architecture]
    identifiers = lint(command).split()
    assert identifiers == [f"cp{python}-{suffix}" for suffix in suffixes for python in (311, 312, 313, 314)]


@pytest.mark.parametrize("folder", ["simulator", "plugins/kafka_wire", "plugins/kraft", "plugins/zookeeper"])
def test_other_distributions_use_the_settings_of_the_root(linters: Path, folder: str) -> None:
    command = [linters / "cibuildwheel", "--config-file", "pyproject.toml", "--print-build-identifiers"]
    identifiers = lint([*command, "--platform", "macos", "--archs", "arm64", folder]).split()
    assert identifiers == [f"cp{python}-macosx_arm64" for python in (311, 312, 313, 314)]


# -- deployment


def test_hadolint(linters: Path) -> None:
    lint([linters / "hadolint", "--failure-threshold", "style", ROOT / "deploy" / "Containerfile"])


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """Return a copy of the unit whose executable exists."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    text = (ROOT / "deploy" / "systemd" / "kframe.service").read_text()
    copy = tmp_path / "kframe.service"
    copy.write_text(text.replace("/opt/kframe/bin/kframe", sys.executable))
    return copy


def test_systemd_accepts_the_unit(unit: Path) -> None:
    completed = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, check=False
    )
    assert (completed.returncode, completed.stderr) == (0, "")


def test_unit_is_hardened(unit: Path) -> None:
    lint(["systemd-analyze", "security", "--offline=true", f"--threshold={EXPOSURE_MOST}", unit])


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "rules", "kframe.rules.yml"),
        ("test", "rules", "kframe.rules.test.yml"),
        ("check", "config", "prometheus.yml"),
    ],
    ids=" ".join,
)
def test_promtool(arguments: tuple[str, ...]) -> None:
    lint([installed(tools.promtool), *arguments], folder=ROOT / "deploy" / "prometheus")
