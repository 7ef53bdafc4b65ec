"""Each invariant of the search on a valid case and on a case that breaks it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from kframe.model.ids import PartitionState, ReplicaState
from kframe_simulator.search import invariants
from kframe_simulator.search.subject import CoreState
from kframe_simulator.search.values import BROKERS, ControllerSession, SearchBroker, Stored

STORED = Stored((1, 1, 1), 1, 1, 1, 3, BROKERS, 0, 1, 4)
PROCESS = ControllerSession(0, 0, 1, 0)
ONLINE = (PartitionState.ONLINE, tuple((broker, ReplicaState.ONLINE) for broker in BROKERS))
NODE = CoreState(None, True, 1, (1, 1, 1), (), (1, 3, BROKERS, 0, 1, 4), ONLINE, (BROKERS, (), ()))
FOLLOWS = SearchBroker(True, 1, leader=1, leader_epoch=3, has_record=True)
LEADER_AND_ISR = ("L", 1, 1, 1, 3, BROKERS, 4, BROKERS)
MOVING = STORED._replace(assigned=(3, 2, 1), adding=(3,), removing=(1,))


def sent(message: tuple[Any, ...], node: CoreState = NODE) -> Iterator[str]:
    return invariants.batch_is_valid([(2, message)], node, PROCESS, set())


def elected(leader: int, isr: tuple[int, ...], recovery: int) -> Iterator[str]:
    before = STORED._replace(isr=(2,), leader=2)
    after = STORED._replace(leader=leader, isr=isr, recovery=recovery, leader_epoch=4)
    return invariants.written(before, after, PROCESS, replace(NODE, known=(1, 0, 1)), unclean=True)


CASES = {
    "I1": (sent(("U", 2, 1, BROKERS)), sent(("U", 1, 1, BROKERS))),
    "I7": (elected(1, (1,), 0), elected(1, (1,), 1)),
    "I10": (
        invariants.committed_record_stays(STORED, [FOLLOWS._replace(has_record=False)]),
        invariants.committed_record_stays(STORED, [FOLLOWS]),
    ),
    "I12": (sent((*LEADER_AND_ISR[:4], 2, *LEADER_AND_ISR[5:])), sent(LEADER_AND_ISR)),
    "I15": (sent(("U", 1, 2, BROKERS)), sent(("U", 1, 1, BROKERS))),
    "I17": (sent(("U", 1, 1, BROKERS), replace(NODE, known=(1, 1, 0))), sent(("U", 1, 1, (1, 2)))),
    "I18": (sent(("S", 1, 1, 3, True)), sent(("S", 1, 1, 3, False))),
    "I21": (
        invariants.assigned(MOVING, STORED._replace(assigned=(2, 3)), PROCESS, (3, 2)),
        invariants.assigned(MOVING, STORED._replace(assigned=(3, 2)), PROCESS, (3, 2)),
    ),
    "I22": (
        invariants.assigned(MOVING._replace(isr=(1, 2)), STORED._replace(assigned=(3, 2)), PROCESS, (3, 2)),
        invariants.assigned(STORED, MOVING, PROCESS._replace(task=20), (3, 2)),
    ),
    "I25": (
        invariants.transitions_are_valid(NODE, replace(NODE, replica_states=(PartitionState.NEW, ONLINE[1]))),
        invariants.transitions_are_valid(NODE, replace(NODE, replica_states=(PartitionState.OFFLINE, ONLINE[1]))),
    ),
    "I29": (
        invariants.acted([("resigned", "IndexError", True)], PROCESS, failed=False, over=True),
        invariants.acted([("resigned", "the session is over", True)], PROCESS, failed=True, over=True),
    ),
    "L1": (
        invariants.at_rest(STORED._replace(leader=-1), [FOLLOWS] * 3, NODE),
        invariants.at_rest(STORED._replace(leader=-1, isr=(2,)), [FOLLOWS] * 3, replace(NODE, shutting_down=(2,))),
    ),
    "L3": (
        invariants.at_rest(MOVING, [FOLLOWS] * 3, NODE),
        invariants.at_rest(MOVING._replace(isr=(1, 2)), [FOLLOWS] * 3, NODE),
    ),
    "L2": (invariants.at_rest(STORED, [FOLLOWS] * 3, None), invariants.at_rest(STORED, [FOLLOWS] * 3, NODE)),
}


@pytest.mark.parametrize("invariant", CASES)
def test_search_invariant_distinguishes_valid_and_invalid_cases(invariant: str) -> None:
    broken, saved = CASES[invariant]
    assert [text.partition(":")[0].partition(",")[0] for text in broken] == [invariant]
    assert list(saved) == []
