"""Compare a plugin's store with the embedded store: both perform each step of a seeded history.

A test compares every result, every refusal (a deposed controller is fenced, a stale version is refused), and the events
of each session. It does not restart the process or the server of a store.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from typing import Final

from kframe.embedded import MemoryEnsemble
from kframe.errors import InputError
from kframe.model.cluster import ClusterState
from kframe.ports.store import Store
from kframe.ports.store_requests import Claim, ReadBrokers, ReadController, ReadTopicNames, ReleaseRole
from kframe_simulator.differential.histories import CONTROLLERS, History, HistoryStep
from kframe_simulator.differential.storages import Side, Storage, StorageDifference, missing_events, quiet

#: Steps of a history.
STEPS: Final = 300
#: The longest wait for events of a storage that cannot tell when all are delivered.
PATIENCE_S: Final = 5.0
#: A store may learn of a lost role as late as of other changes.
_LAGGING: Final = ("may_act",)
_LAST: Final = 9


class Bare:
    """A storage that can only make stores. Implements ``Storage``."""

    def __init__(self, make: Callable[[], Store]) -> None:
        self.connect = make

    def settle(self) -> None:
        """Do nothing: callers wait with a time limit instead."""


def play_history(seed: int, storage: Storage, steps: int = STEPS, epoch: int = 0) -> StorageDifference | None:
    """Play a history in empty storage and in the model. Returns the first difference, or None. ``epoch`` is the last
    controller epoch that the storage has assigned. Closes the storage if it has a ``close``."""
    ensemble = MemoryEnsemble.from_cluster(ClusterState(), epoch)
    model, tested = Side(ensemble), Side(storage, PATIENCE_S if isinstance(storage, Bare) else 0.0)
    history = History(seed, ensemble, model, lambda name: hasattr(storage, name))
    with quiet(), ExitStack() as after:
        after.callback(tested.end)
        for number in range(1, steps + 1):
            step = history.draw()
            difference = _compare(history, step, model, tested)
            if difference is not None:
                return StorageDifference(seed, number, str(step), *difference)
        return _compare_rest(seed, steps, history, model, tested)


def play_bare(make: Callable[[], Store], steps: int = STEPS) -> StorageDifference | None:
    """Play a history in a storage that can only make stores. Raises InputError, and changes nothing, if it is not
    empty."""
    return play_history(1, Bare(make), steps, _last_epoch(make()))


def _last_epoch(store: Store) -> int:
    """Check that storage is empty. Returns the epoch of a claim, which it releases."""
    store.open(lambda _event: None)
    try:
        brokers = store.perform(ReadBrokers())
        result = [*sorted(store.perform(ReadTopicNames())), *(f"broker {broker.broker_id}" for broker in brokers)]
        controller_id = store.perform(ReadController()).controller_id
        if result or controller_id >= 0:
            contents = f"{result[0]}{' and others' if result[1:] else ''}" if result else f"controller {controller_id}"
            raise InputError("storage to be tried", contents, "an empty storage, because its contents would be deleted")
        epoch = store.perform(Claim(CONTROLLERS[0]))
        store.perform(ReleaseRole())
    finally:
        store.close()
    return epoch or 0


def _compare(history: History, step: HistoryStep, model: Side, tested: Side) -> tuple[str, str] | None:
    """Perform a step on both sides. Returns the expected and the actual result if they differ."""
    deposed = {number for number in model.sessions if history.deposed(number)}
    expected, result = model.perform(step.action), tested.perform(step.action)
    if expected != result and step.call in _LAGGING:
        result = tested.retry_until(step.action, expected)
    if expected != result:
        return _differing_part(expected, result), _differing_part(result, expected)
    history.done(step, expected)
    for number in model.sessions:
        # A controller that lost the role and did not release it is only certain to receive that event.
        only_roles = number in deposed or history.deposed(number)
        expected_events = model.received_events(number, only_roles, Counter())
        problem = missing_events(expected_events, tested.received_events(number, only_roles, expected_events))
        if problem is not None:
            return f"session {number}: {problem[0]}", problem[1]
    return None


def _compare_rest(seed: int, steps: int, history: History, model: Side, tested: Side) -> StorageDifference | None:
    """Compare the whole content through a new session."""
    for step in (HistoryStep("open", None, (_LAST, _LAST)), HistoryStep("load", _LAST)):
        difference = _compare(history, step, model, tested)
        if difference is not None:
            return StorageDifference(seed, steps + 1, str(step), *difference)
    return None


def _differing_part(result: object, other: object) -> str:
    """A result; of a table only the entries that differ."""
    if isinstance(result, dict) and isinstance(other, dict):
        differing = {key: value for key, value in result.items() if key not in other or other[key] != value}
        if len(differing) == 1:
            ((key, value),) = differing.items()
            return f"{key}: {_differing_part(value, other.get(key))}"
        return repr(differing)
    return repr(result)
