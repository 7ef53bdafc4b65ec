"""Selectors that keep leaders off brokers, or in racks, wherever the safety rules leave a choice."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kframe import WhatIf
from kframe.errors import ConfigError
from kframe.registry.registry import build_registry
from kframe.whatif.engines.choice import engine_of
from tests.cli.running import HEALTHY, document, whatif
from tests.plans.restarts.clusters import Sample, cluster

RACKS = {1: "a", 2: "b", 3: "c", 4: "a"}
#: In-sync replicas in assignment order, others, and min.insync.replicas.
PARTITIONS: list[Sample] = [([1, 2, 3], [], 1), ([1, 3, 2], [], 1), ([1, 2], [3], 1), ([1, 4, 2], [], 1)]


@pytest.mark.parametrize("kraft", [False, True], ids=["zookeeper", "kraft"])
@pytest.mark.parametrize(
    ("name", "options", "leaders"),
    [
        pytest.param("avoid-brokers", {"brokers": "2"}, [3, 3, 2, 4], id="others-lead"),
        pytest.param("avoid-brokers", {"brokers": "2,3,4"}, [2, 3, 2, 4], id="kafkas-choice-if-all-are-avoided"),
        pytest.param("avoid-brokers", {"brokers": " 4 , 9"}, [2, 3, 2, 2], id="unknown-broker"),
        pytest.param("prefer-racks", {"racks": "c"}, [3, 3, 2, 4], id="leaders-in-a-rack"),
        pytest.param("prefer-racks", {"racks": "b,c"}, [2, 3, 2, 2], id="leaders-in-two-racks"),
        pytest.param("prefer-racks", {"racks": "z"}, [2, 3, 2, 4], id="unknown-rack"),
    ],
)
def test_leaders_after_a_failure(name: str, options: Mapping[str, str], leaders: list[int], kraft: bool) -> None:
    selectors = build_registry().selectors_for([name], {name: options})
    study = WhatIf.of(engine_of(cluster(PARTITIONS, RACKS, kraft=kraft), {}, selectors))
    study.fail([1])
    ids = study.cluster.brokers.ids
    assert [int(ids[leader]) for leader in study.cluster.partitions.leader] == leaders
    assert not study.selector_faults


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [("avoid-brokers", "brokers", ""), ("avoid-brokers", "brokers", "1,x"), ("prefer-racks", "racks", "a,")],
)
def test_malformed_option_is_refused(name: str, option: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"selector {name}, option {option}: found '{value}'"):
        build_registry().selectors_for([name], {name: {option: value}})


def test_option_on_the_command_line() -> None:
    options = ("--selector", "avoid-brokers", "--selector-option", "avoid-brokers.brokers=2,3")
    changed = document("fail", HEALTHY, "--brokers", "1", *options)["partitions"]
    elected = [part for part in changed if part["leader_before"] == 1 and part["leader_after"] > 0]
    avoided = [part["isr_after"] for part in elected if part["leader_after"] in (2, 3)]
    assert 0 < len(avoided) < len(elected)
    assert all(set(isr) == {2, 3} for isr in avoided)
    result = whatif("fail", HEALTHY, "--brokers", "1", *options[2:])
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--selector-option avoid-brokers.brokers: found selector 'avoid-brokers'" in result.stderr
