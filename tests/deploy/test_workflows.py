"""The workflows: pinned actions, existing commands, supported versions. ``test_linters.py`` has their linters."""

from __future__ import annotations

import re
from typing import Final

import yaml

from tests.architecture.references import make_targets
from tests.architecture.source import ROOT, tracked_files

GITHUB: Final = ROOT / ".github"
WORKFLOWS: Final = sorted(GITHUB.glob("workflows/*.yml"))


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
