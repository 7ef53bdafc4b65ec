"""The worlds at small depth, with known numbers of states; and mutants of the core, each found by its shortest path."""

from __future__ import annotations

import pytest

from tests.search import subject
from tests.search.explore import replay, search, text
from tests.search.mutants import MUTANTS, planted
from tests.search.options import Options
from tests.search.subject import Subject
from tests.search.world import World
from tests.search.worlds import WORLDS


@pytest.mark.parametrize("name", WORLDS)
def test_no_law_is_broken_and_as_many_states_are_seen_as_are_known(name: str) -> None:
    one = WORLDS[name]
    report = search(World(one.options), one.quick)
    assert report.found is None
    assert (report.depth, report.states) == (one.quick, one.known)


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_found_by_a_shortest_path(name: str) -> None:
    mutant = MUTANTS[name]
    with planted(mutant):
        found = search(World(mutant.options), mutant.depth + 1).found
    assert found is not None
    assert found.broken[0].startswith(mutant.law)
    assert len(found.path) == mutant.depth


def test_what_is_printed_can_be_replayed() -> None:
    mutant = MUTANTS["storage does not check the controller epoch"]
    found = search(World(mutant.options), mutant.depth).found
    assert found is not None
    lines = [text(label) for label in found.path]
    assert replay(World(mutant.options), lines) == found
    with pytest.raises(ValueError, match=r"not possible here: broker 9 dies\npossible:\ncontroller 1 takes"):
        replay(World(mutant.options), [*lines[:1], "broker 9 dies"])


def test_a_healthy_path_breaks_nothing_when_it_is_replayed() -> None:
    assert replay(World(Options()), ["broker 1 dies", "controller 1 takes BrokersChanged"]) is None


def test_the_same_states_are_found_when_every_operation_is_given_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "AT_WORK_MOST", 0)
    report = search(World(WORLDS["all"].options), 5)
    kept = search(World(WORLDS["all"].options), 5)
    assert report.levels == kept.levels


def test_all_that_a_controller_keeps_is_known_to_the_search() -> None:
    world = World(Options())
    search(world, 4)
    for one in world.subjects.values():
        _hold_to(one)


def _hold_to(one: Subject) -> None:
    active = 0
    for controller in one.resting():
        twin = subject.twin(controller)
        assert subject.look(twin, None) == subject.look(controller, None)
        assert subject.identity(twin) == subject.identity(controller)
        assert vars(controller).keys() == vars(twin).keys() == subject.CONTROLLER_HAS
        if controller.active:
            assert vars(controller.context).keys() == subject.KEPT | subject.LEFT_OUT
            active += 1
    assert active or len(list(one.resting())) > 1
