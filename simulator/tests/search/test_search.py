"""State counts at small depth, and mutants found by a shortest path."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kframe.errors import ErrorCode
from kframe_simulator.search import subject
from kframe_simulator.search.configurations import CONFIGURATIONS, SearchOptions
from kframe_simulator.search.explore import replay, search, text
from kframe_simulator.search.mutants import MUTANTS, planted
from kframe_simulator.search.state_space import StateSpace
from kframe_simulator.search.subject import CoreState, Subject
from kframe_simulator.search.values import BROKERS, QueuedProposal


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_search_violates_no_invariant_and_reaches_expected_states(name: str) -> None:
    space = CONFIGURATIONS[name]
    report = search(StateSpace(space.options), space.quick)
    assert report.counterexample is None
    assert (report.depth, report.states) == (space.quick, space.known)


@pytest.mark.extended
@pytest.mark.parametrize("name", MUTANTS)
def test_search_finds_shortest_path_to_mutant(name: str) -> None:
    mutant = MUTANTS[name]
    with planted(mutant):
        result = search(StateSpace(mutant.options), mutant.depth + 1).counterexample
    assert result is not None
    assert result.broken[0].startswith(mutant.invariant)
    assert len(result.path) == mutant.depth


def test_printed_counterexample_is_replayed() -> None:
    mutant = MUTANTS["storage does not check the controller epoch"]
    result = search(StateSpace(mutant.options), mutant.depth).counterexample
    assert result is not None
    lines = [text(label) for label in result.path]
    assert replay(StateSpace(mutant.options), lines) == result
    with pytest.raises(ValueError, match=r"not possible here: broker 9 dies\npossible:\ncontroller 1 takes"):
        replay(StateSpace(mutant.options), [*lines[:1], "broker 9 dies"])


def test_replay_of_valid_path_reports_nothing() -> None:
    assert replay(StateSpace(SearchOptions()), ["broker 1 dies", "controller 1 takes BrokersChanged"]) is None


def test_uncached_operations_reach_the_same_states(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "CACHED_CONTROLLERS_MAX", 0)
    report = search(StateSpace(CONFIGURATIONS["all"].options), 5)
    saved = search(StateSpace(CONFIGURATIONS["all"].options), 5)
    assert report.levels == saved.levels


def _searched(depth: int) -> StateSpace:
    space = StateSpace(CONFIGURATIONS["all"].options)
    assert search(space, depth).counterexample is None
    return space


def test_broker_responses_leave_controller_state_unchanged() -> None:
    for core, number, node in _active(_searched(5)):
        for error in (ErrorCode.NONE, ErrorCode.STALE_CONTROLLER_EPOCH, ErrorCode.STALE_BROKER_EPOCH):
            for broker in BROKERS:
                assert core.step(number, ("responded", error, broker, node.controller_epoch)) == (number, ())


def test_repeated_notification_or_request_leaves_state_unchanged() -> None:
    for core, number, node in _active(_searched(5)):
        reading, _ = core.step(number, ("BrokersChanged",))
        assert core.step(reading, ("done", "ReadBrokers", node.known)) == (number, ())
        reading, _ = core.step(number, ("ControllerChanged",))
        assert core.step(reading, ("done", "ReadController", core.controller, True)) == (number, ())
        leader, leader_epoch, isr, _, _, partition_epoch = node.state
        if leader > 0 and node.known[leader - 1]:
            repeated_request = QueuedProposal(1, node.known[leader - 1], leader_epoch, partition_epoch - 1, isr)
            next_node, _ = core.step(number, ("alter", leader, repeated_request))
            ask = core.nodes[next_node].ask
            assert ask is not None
            assert {message[0] for _, message in ask[1]} == {"U"}
            after, ((kind, *_, response),) = core.step(next_node, ("done", "send"))
            assert (after, kind, response) == (number, "reply", (0, 0, leader_epoch, partition_epoch, isr))


def _active(space: StateSpace) -> Iterator[tuple[Subject, int, CoreState]]:
    """The states between two events in which a controller is active."""
    result = [
        (core, number, node) for core in space.subjects.values() for number, node in enumerate(core.nodes)
        if node.ask is None and node.active
    ]  # fmt: skip
    assert result
    yield from result


def test_search_covers_all_controller_attributes() -> None:
    space = StateSpace(SearchOptions())
    search(space, 4)
    for item in space.subjects.values():
        _hold_to(item)


def _hold_to(core: Subject) -> None:
    active = 0
    for controller in core.resting():
        copy_controller = subject.copy_controller(controller)
        assert subject.core_state(copy_controller, None) == subject.core_state(controller, None)
        assert subject.identity(copy_controller) == subject.identity(controller)
        assert vars(controller).keys() == vars(copy_controller).keys() == subject.CONTROLLER_HAS
        if controller.active:
            assert vars(controller.context).keys() == subject.CONTEXT_HAS | subject.LEFT_OUT
            active += 1
    assert active or len(list(core.resting())) > 1
