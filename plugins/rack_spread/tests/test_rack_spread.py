"""The selector passes the contract of selectors, and spreads leaders."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from kframe_rack_spread import RackSpread, kframe_leader_selectors

from kframe.plugin import NO_LEADER, ElectionBatch, ElectionKind, Ragged
from kframe.testing.selector_contract import SelectorContract, random_election


class TestRackSpread(SelectorContract):
    kinds = kframe_leader_selectors()[0].kinds

    def make_selector(self) -> RackSpread:
        return RackSpread()


def chosen(batch: ElectionBatch) -> list[int]:
    leader = np.full(len(batch), NO_LEADER, np.int32)
    RackSpread().elect(batch, leader)
    return leader.tolist()


def election(candidates: list[list[int]], broker_rack: list[int]) -> ElectionBatch:
    """Partitions whose candidates are all eligible. Broker ``b`` is in rack number ``broker_rack[b]``."""
    template = random_election(0, ElectionKind.OFFLINE, len(candidates), len(broker_rack))
    packed = Ragged.of(candidates)
    mask = np.ones(len(packed.values), np.uint8)
    racks = tuple(f"rack-{number}" for number in range(max(broker_rack) + 1))
    unclean_allowed = np.zeros(len(candidates), np.uint8)
    return replace(
        template,
        candidates=packed,
        eligible=mask,
        in_sync=mask,
        may_lead=mask,
        isr=packed,
        unclean_allowed=unclean_allowed,
        broker_rack=np.array(broker_rack, np.int32),
        racks=racks,
    )


@pytest.mark.parametrize(
    "candidates, broker_rack, leaders",
    [
        pytest.param([[0, 1]] * 4, [0, 1], [0, 1, 0, 1], id="takes turns"),
        pytest.param([[0, 1], [0, 1, 2]], [0, 0, 1], [0, 2], id="prefers the rack without leaders"),
        pytest.param([[1, 0], [0, 1]], [0, 0], [1, 0], id="of equals the first candidate"),
        pytest.param([[1, 0], [1, 0]], [-1, -1], [1, 1], id="without racks as Kafka does"),
        pytest.param([[0, 1], [0, 1]], [-1, 0], [0, 1], id="no rack counts as one rack"),
    ],
)
def test_spread(candidates: list[list[int]], broker_rack: list[int], leaders: list[int]) -> None:
    assert chosen(election(candidates, broker_rack)) == leaders


def test_ineligible_replicas_never_lead() -> None:
    batch = replace(election([[0, 1], [0, 1]], [0, 1]), may_lead=np.array([0, 0, 0, 1], np.uint8))
    assert chosen(batch) == [NO_LEADER, 1]


def test_racks_end_level() -> None:
    batch = election([[0, 1, 2]] * 300, [0, 1, 2])
    assert np.bincount(batch.broker_rack[chosen(batch)]).tolist() == [100, 100, 100]
