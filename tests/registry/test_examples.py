"""The examples work as their README describes, and the three tiers implement one rule."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from kframe.model.elections import LeaderSelector
from kframe.model.ids import NO_LEADER
from kframe.plugin import include_dir
from kframe.registry.registry import Registry, build_registry
from kframe.testing.random_elections import random_election
from kframe.testing.selector_checks import run_checks

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "selectors"
NAMES = ("last-in-sync-scalar", "last-in-sync-bulk", "last-in-sync-native")


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """Build the native example in a copy, with its own setup.py."""
    folder = tmp_path_factory.mktemp("example") / "native"
    shutil.copytree(EXAMPLES / "native", folder)
    environment = os.environ | {"PYTHONPATH": include_dir()}
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    built = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    sys.path.insert(0, str(folder))
    try:
        import kframe_last_in_sync  # type: ignore[import-not-found]  # just built

        return kframe_last_in_sync  # type: ignore[no-any-return]  # just built
    finally:
        sys.path.remove(str(folder))


@pytest.fixture(scope="module")
def registry(native: ModuleType) -> Registry:
    return build_registry(plugins_dir=EXAMPLES, extra=[native], allowed=())


def leaders(selector: LeaderSelector, seed: int, registry: Registry) -> list[list[int]]:
    chosen = []
    for kind in registry.selectors[selector.name].kinds:
        batch = random_election(seed, kind)
        leader = np.full(len(batch), NO_LEADER, np.int32)
        selector.elect(batch, leader)
        chosen.append([int(broker) for broker in leader])
    return chosen


@pytest.mark.parametrize("name", NAMES)
def test_example_selectors_pass_checks(registry: Registry, name: str) -> None:
    kinds = registry.selectors[name].kinds
    findings = list(run_checks(lambda: registry.selector(name), kinds))
    assert findings[-1].check == "single-broker-batches"
    assert [finding.problem for finding in findings if finding.problem] == []


@pytest.mark.parametrize("seed", range(3))
def test_three_tiers_agree(registry: Registry, seed: int) -> None:
    scalar, bulk, native = (leaders(registry.selector(name), seed, registry) for name in NAMES)
    assert scalar == bulk == native
    assert any(leader != NO_LEADER for leader in bulk[0])
