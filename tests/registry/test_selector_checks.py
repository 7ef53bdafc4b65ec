"""The conformance checks find each violation, in this process or in a separate one."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kframe.core.selectors.kafka_selectors import SHIPPED, FirstInSync
from kframe.model.arrays import Int32
from kframe.model.elections import ElectionBatch, LeaderSelector
from kframe.model.ids import ElectionKind
from kframe.testing.isolated_checks import check_isolated
from kframe.testing.selector_checks import CHECKS, Finding, check_name, run_checks
from tests.registry.conftest import Compiled

OFFLINE = (ElectionKind.OFFLINE,)


class Acting:
    """Kafka's rule with one violation added."""

    def __init__(self, act: Callable[[ElectionBatch, Int32], Any], name: str = "acting") -> None:
        self._act = act
        self.name = name

    def elect(self, batch: ElectionBatch, leader: Int32) -> None:
        FirstInSync("").elect(batch, leader)
        returned: None = self._act(batch, leader)
        return returned


def failed(findings: list[Finding]) -> dict[str, str]:
    return {finding.check: finding.problem for finding in findings if finding.problem is not None}


def find(make: Callable[[], LeaderSelector], kinds: tuple[ElectionKind, ...] = OFFLINE) -> dict[str, str]:
    return failed(list(run_checks(make, kinds)))


def act_with_memory() -> Callable[[], LeaderSelector]:
    """Each call abstains for another partition."""
    calls = itertools.count()

    def act(batch: ElectionBatch, leader: Int32) -> None:
        leader[next(calls) % len(leader)] = -1

    return lambda: Acting(act)


def change_the_batch(batch: ElectionBatch, leader: Int32) -> None:
    if batch.leader.flags.writeable:
        batch.leader[0] += 1


def fill_with_first(batch: ElectionBatch, leader: Int32) -> None:
    leader[:] = batch.candidates.values[batch.candidates.offsets[:-1]]


NAMES = itertools.count()


@pytest.mark.parametrize("selector", SHIPPED, ids=lambda selector: selector.name)
def test_shipped_selectors_pass(selector: LeaderSelector) -> None:
    failures = find(lambda: selector, SHIPPED[selector])
    if selector.name == "controlled-shutdown-0.8.2":
        assert set(failures) == {"is-safe", "single-broker-batches"}, "it elects dead brokers, which is refused later"
    else:
        assert failures == {}


@pytest.mark.parametrize(
    "make, check, expected",
    [
        (lambda: Acting(lambda batch, leader: None, "Not A Name"), "is-named", "its name is 'Not A Name'"),
        (lambda: Acting(lambda batch, leader: None, f"a{next(NAMES)}"), "is-named", "two of it have different names"),
        (object, "is-named", "object has no name or no elect"),
        (lambda: Acting(lambda batch, leader: leader), "keeps-to-its-array", "it returned ndarray"),
        (lambda: Acting(lambda batch, leader: 1 / 0), "keeps-to-its-array", "ZeroDivisionError"),
        (lambda: Acting(fill_with_first), "is-safe", "in OFFLINE elections it chose a broker that is dead"),
        (act_with_memory(), "same-batch-same-answer", "it chooses differently when called again"),
        (lambda: Acting(change_the_batch), "leaves-the-batch-alone", "in OFFLINE elections it changes leader"),
        (lambda: Acting(fill_with_first), "single-broker-batches", "elections it"),
        (lambda: 1 / 0, "is-named", "ZeroDivisionError: division by zero"),
    ],
)
def test_each_check_finds_its_violation(make: Callable[[], LeaderSelector], check: str, expected: str) -> None:
    assert expected in find(make)[check]


PLUGIN = """
import ctypes
from kframe.plugin import SIGNATURE, ElectionKind, NativeFunction, SelectorSpec, Tier, hookimpl

library = ctypes.CDLL({library!r})

def maker(name):
    address = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    return lambda: NativeFunction(address, SIGNATURE, owner=library)

@hookimpl
def kframe_leader_selectors():
    names = ["last_in_sync", "always_out_of_range", "crash", "hang"]
    kinds = (ElectionKind.OFFLINE,)
    return [SelectorSpec(name.replace("_", "-"), Tier.NATIVE, maker(name), kinds, "") for name in names]
"""


@pytest.fixture
def plugins_dir(tmp_path: Path, compiled: Compiled) -> Path:
    (tmp_path / "natives.py").write_text(PLUGIN.format(library=str(compiled.path)))
    return tmp_path


def test_native_selector_passes_in_isolated_process(plugins_dir: Path) -> None:
    findings = check_isolated("last-in-sync", plugins_dir=plugins_dir)
    assert [finding.check for finding in findings] == [check_name(check) for check in CHECKS]
    assert failed(findings) == {}


def test_findings_of_isolated_check_are_returned(plugins_dir: Path) -> None:
    assert "not a candidate" in failed(check_isolated("always-out-of-range", plugins_dir=plugins_dir))["is-safe"]


def test_crash_is_reported_for_interrupted_check(plugins_dir: Path) -> None:
    failures = failed(check_isolated("crash", plugins_dir=plugins_dir))
    assert "is-named" not in failures
    assert failures.pop("keeps-to-its-array") == "the process crashed: SIGABRT"
    assert set(failures.values()) == {"not run"}
    assert len(failures) == len(CHECKS) - 2


@pytest.mark.extended
def test_selector_that_hangs_is_stopped(plugins_dir: Path) -> None:
    failures = failed(check_isolated("hang", plugins_dir=plugins_dir, timeout_s=3))
    assert "the process was stopped after 3 s" in failures.values()


def test_child_start_failure_is_reported(tmp_path: Path) -> None:
    failures = failed(check_isolated("no-such-selector", plugins_dir=tmp_path))
    assert failures["is-named"] == "the process ended with code 1: KeyError: 'no-such-selector'"
    assert np.all([problem == "not run" for check, problem in failures.items() if check != "is-named"])
