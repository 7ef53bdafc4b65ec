"""Linters of workflows, templates, Containerfile, compose file, unit and packaging metadata.

GitHub and macOS are not available to the tests, so the linters are the only check of what runs there. A linter that
cannot be installed skips its tests, with the reason.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pytest
import yaml

from tests import tools
from tests.architecture.references import make_targets
from tests.architecture.source import ROOT, tracked_files

GITHUB: Final = ROOT / ".github"
WORKFLOWS: Final = sorted(GITHUB.glob("workflows/*.yml"))
#: Schema in check-jsonschema to the files that it describes.
SCHEMAS: Final = {
    "vendor.github-workflows": WORKFLOWS,
    "vendor.dependabot": [GITHUB / "dependabot.yml"],
    "vendor.github-issue-forms": [GITHUB / "ISSUE_TEMPLATE" / "bug.yml", GITHUB / "ISSUE_TEMPLATE" / "feature.yml"],
    "vendor.github-issue-config": [GITHUB / "ISSUE_TEMPLATE" / "config.yml"],
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


# -- without tools


def test_actions_are_pinned_by_commit() -> None:
    uses = [match for path in WORKFLOWS for match in re.findall(r"uses: (\S+)(.*)", path.read_text())]
    assert uses
    remote = [(action, comment) for action, comment in uses if not action.startswith("./")]
    pinned = [action for action, comment in remote if re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action)]
    assert [action for action, comment in remote] == pinned
    assert all(re.fullmatch(r" # v\d+\.\d+\.\d+", comment) for _, comment in remote), "dependabot reads the tag"


def test_an_action_has_one_version_in_all_workflows() -> None:
    actions = {match for path in WORKFLOWS for match in re.findall(r"uses: (\S+@\S+)", path.read_text())}
    assert len({action.partition("@")[0] for action in actions}) == len(actions)


def test_make_targets_of_workflows_exist() -> None:
    targets = {match for path in WORKFLOWS for match in re.findall(r"make ([a-z][\w-]*)", path.read_text())}
    assert targets
    assert targets <= make_targets()


def test_workflows_test_each_supported_python() -> None:
    jobs = yaml.safe_load((GITHUB / "workflows" / "tests.yml").read_text())["jobs"]
    assert jobs["quick"]["strategy"]["matrix"]["python"] == ["3.11", "3.12", "3.13", "3.14"]


def test_wheels_of_each_distribution_with_kernels_are_built() -> None:
    steps = yaml.safe_load((GITHUB / "workflows" / "wheels.yml").read_text())["jobs"]["wheels"]["steps"]
    builds = [step for step in steps if "cibuildwheel" in step.get("uses", "")]
    folders = [step["with"].get("package-dir", ".") for step in builds]
    assert folders[0] == ".", "the others install its wheel"
    scripts = [path.relative_to(ROOT) for path in tracked_files(".py") if path.name == "setup.py"]
    assert {path.parent.as_posix() for path in scripts if path.parts[0] != "examples"} == set(folders)
    assert all(step["with"]["config-file"] == "pyproject.toml" for step in builds[1:])


# -- with tools


@pytest.mark.real
@pytest.mark.parametrize("schema", SCHEMAS)
def test_files_match_their_schema(linters: Path, schema: str) -> None:
    lint([linters / "check-jsonschema", "--builtin-schema", schema, *SCHEMAS[schema]])


@pytest.mark.real
def test_actionlint() -> None:
    lint([installed(tools.actionlint), *WORKFLOWS])


@pytest.mark.real
def test_zizmor(linters: Path) -> None:
    lint([linters / "zizmor", "--offline", "--quiet", ROOT / ".github"])


@pytest.mark.real
def test_pre_commit_configuration(linters: Path) -> None:
    lint([linters / "pre-commit", "validate-config", ROOT / ".pre-commit-config.yaml"])


@pytest.mark.real
@pytest.mark.parametrize("project", PROJECTS, ids=lambda path: path.parent.name)
def test_project_metadata(linters: Path, project: Path) -> None:
    lint([linters / "validate-pyproject", project])


@pytest.mark.real
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


@pytest.mark.real
@pytest.mark.parametrize("folder", ["simulator", "plugins/kafka_wire", "plugins/kraft", "plugins/zookeeper"])
def test_other_distributions_use_the_settings_of_the_root(linters: Path, folder: str) -> None:
    command = [linters / "cibuildwheel", "--config-file", "pyproject.toml", "--print-build-identifiers"]
    identifiers = lint([*command, "--platform", "macos", "--archs", "arm64", folder]).split()
    assert identifiers == [f"cp{python}-macosx_arm64" for python in (311, 312, 313, 314)]


# -- deployment


@pytest.mark.real
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


@pytest.mark.real
def test_systemd_accepts_the_unit(unit: Path) -> None:
    completed = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, check=False
    )
    assert (completed.returncode, completed.stderr) == (0, "")


@pytest.mark.real
def test_unit_is_hardened(unit: Path) -> None:
    lint(["systemd-analyze", "security", "--offline=true", f"--threshold={EXPOSURE_MOST}", unit])


@pytest.mark.real
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
