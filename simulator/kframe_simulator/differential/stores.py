"""A store of a plugin held to the embedded one: each step of a seeded history is done in both, and what comes of it is
compared.

What is compared: every result, every refusal (a deposed controller is fenced, a stale version is refused), and what
each session is notified of. Whether a store survives the end of its process or of its server is not asked here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from typing import Final

from kframe.embedded import MemoryEnsemble
from kframe.errors import InputError
from kframe.model.cluster import ClusterState
from kframe.model.ports import Store
from kframe_simulator.differential.histories import CONTROLLERS, History, Step
from kframe_simulator.differential.storages import Difference, Side, Storage, missed, quiet

#: Steps of a history.
STEPS: Final = 300
#: How long a store may take to notify, where its storage cannot say that all has been notified.
PATIENCE_S: Final = 5.0
#: What a store knows of the role may lag behind as notifications do.
_LAGGING: Final = ("may_act",)
_LAST: Final = 9


class Bare:
    """Storage of which nothing is known but how stores for it are made. Implements ``Storage``."""

    def __init__(self, make: Callable[[], Store]) -> None:
        self.connect = make

    def settle(self) -> None:
        """Nobody can say: who waits for something has patience."""


def play_history(seed: int, storage: Storage, steps: int = STEPS, epoch: int = 0) -> Difference | None:
    """Play one history in empty storage and beside it; the first difference, or None. ``epoch`` is the last controller
    epoch that was given away there. Closes the storage, if it has a ``close``."""
    ensemble = MemoryEnsemble.from_cluster(ClusterState(), epoch)
    model, tried = Side(ensemble), Side(storage, PATIENCE_S if isinstance(storage, Bare) else 0.0)
    history = History(seed, ensemble, model, lambda name: hasattr(storage, name))
    with quiet(), ExitStack() as after:
        after.callback(tried.end)
        for number in range(1, steps + 1):
            step = history.draw()
            difference = _compare(history, step, model, tried)
            if difference is not None:
                return Difference(seed, number, str(step), *difference)
        return _compare_rest(seed, steps, history, model, tried)


def play_bare(make: Callable[[], Store], steps: int = STEPS) -> Difference | None:
    """Play one history where nothing is known but how stores are made. Raises InputError, and changes nothing, if
    something stands there already."""
    return play_history(1, Bare(make), steps, _last_epoch(make()))


def _last_epoch(store: Store) -> int:
    """Look whether storage is empty; the epoch of a claim, which is given up again."""
    store.open(lambda _event: None)
    try:
        result = [*sorted(store.read_topic_names()), *(f"broker {broker.broker_id}" for broker in store.read_brokers())]
        if result or store.controller() >= 0:
            what = f"{result[0]}{' and others' if result[1:] else ''}" if result else f"controller {store.controller()}"
            raise InputError("storage to be tried", what, "nothing: what stands there would be deleted")
        epoch = store.claim(CONTROLLERS[0])
        store.release()
    finally:
        store.close()
    return epoch or 0


def _compare(history: History, step: Step, model: Side, tried: Side) -> tuple[str, str] | None:
    """Do a step on both sides; what was expected and found, if it is not the same."""
    deposed = {number for number in model.sessions if history.deposed(number)}
    expected, result = model.do(step.deed), tried.do(step.deed)
    if expected != result and step.call in _LAGGING:
        result = tried.patiently(step.deed, expected)
    if expected != result:
        return _shown(expected, result), _shown(result, expected)
    history.done(step, expected)
    for number in model.sessions:
        # A controller that has lost the role, and was not told to give it up yet, learns of that alone for certain.
        only_roles = number in deposed or history.deposed(number)
        due = model.heard(number, only_roles, Counter())
        problem = missed(due, tried.heard(number, only_roles, due))
        if problem is not None:
            return f"session {number}: {problem[0]}", problem[1]
    return None


def _compare_rest(seed: int, steps: int, history: History, model: Side, tried: Side) -> Difference | None:
    """Look at everything once more, through a session that knows nothing."""
    for step in (Step("open", None, (_LAST, _LAST)), Step("load", _LAST)):
        difference = _compare(history, step, model, tried)
        if difference is not None:
            return Difference(seed, steps + 1, str(step), *difference)
    return None


def _shown(one: object, other: object) -> str:
    """A result, or of a table the entries that the other has not the same."""
    if isinstance(one, dict) and isinstance(other, dict):
        differing = {
            key: value for key, value in one.items() if key not in other or other[key] != value
        }  # fmt: skip
        if len(differing) == 1:
            ((key, value),) = differing.items()
            return f"{key}: {_shown(value, other.get(key))}"
        return repr(differing)
    return repr(one)
