"""Seeded histories of a storage: calls of three controllers, and concurrent changes by brokers and operators.

Each step is drawn from the current state of the model, so that most calls are valid and the others fail for a known
reason. Only the controller reads and writes as a controller does. Other processes try to claim the role, or try fenced
writes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from kframe.embedded import MemoryEnsemble
from kframe.model.tables import Targets
from kframe_simulator.differential.arguments import FROM_OUTSIDE, OF_CALLS, ArgumentState
from kframe_simulator.differential.calls import CALLS
from kframe_simulator.differential.storages import Side

#: Controllers of all histories.
CONTROLLERS: Final = (101, 102, 103)
#: Calls that claim, check or release the role; every session may make them.
_OF_ROLES: Final = ("claim", "take_over", "take_over", "controller", "owns_role", "may_act", "release")
#: Calls that are drawn more often than others.
_MORE_OFTEN: Final = (
    "write_states",
    "write_states",
    "write_states",
    "read_states",
    "create_topics",
    "write_assignments",
)
#: The weights of session changes, role calls, controller calls and external changes.
_OFTEN: Final = (2, 3, 16, 6)
#: Controller calls without arguments, and their weights.
_PLAIN: Final = (
    "load",
    "load",
    "load",
    "read_brokers",
    "read_topic_names",
    "read_deletions",
    "read_reassignments",
    "read_preferred_election",
    "drop_preferred_election",
    "read_isr_changes",
    "read_log_dir_events",
    "drop_notifications",
    "allocate_producer_ids",
    "prepare",
    "quarantined",
    "connected",
)
#: Writes that only the controller may do; storage refuses all others.
_FENCED: Final = (
    "write_states",
    "write_assignments",
    "prepare",
    "drop_deletions",
    "delete_topics",
    "write_reassignments",
    "drop_preferred_election",
)


def _plain(name: str) -> Callable[..., Any]:
    def action(side: Side, *arguments: Any) -> None:
        getattr(side.storage, name)(*arguments)

    return action


def _expire(side: Side, number: int) -> None:
    session = side.sessions[number]
    side.storage.expire(session.store)  # type: ignore[attr-defined]
    session.topic_ids.clear()  # A new session has to read topic ids again.


def _registering(name: str) -> Callable[..., Any]:
    def action(side: Side, brokers: Any) -> list[int]:
        return [side.ordinal("broker epoch", registration) for registration in getattr(side.storage, name)(brokers)]

    return action


#: The function of each external change.
ACTIONS: Final[Mapping[str, Callable[..., Any]]] = {name: _plain(name) for name in FROM_OUTSIDE} | {
    "open": Side.open,
    "close": Side.close,
    "expire": _expire,
    "register_brokers": _registering("register_brokers"),
    "bounce_brokers": _registering("bounce_brokers"),
    "request_reassignments": lambda side, targets: side.storage.request_reassignments(Targets.of(targets)),
    "write_state": lambda side, name, partition, isr: side.storage.write_state(name, partition, isr=isr),
}


@dataclass(frozen=True, slots=True)
class HistoryStep:
    """One step, by a session or (None) from outside."""

    call: str
    session: int | None
    arguments: tuple[Any, ...] = ()

    def __str__(self) -> str:
        who = "outside" if self.session is None else f"session {self.session}"
        return f"{who}: {self.call}({', '.join(map(repr, self.arguments))})"

    def action(self, side: Side) -> Any:
        """Perform the step on one side. Returns the result in comparable form."""
        if self.session is not None and self.call in CALLS:
            return CALLS[self.call](side, side.sessions[self.session], *self.arguments)
        return ACTIONS[self.call](side, *self.arguments)


class History(ArgumentState):
    """Draws steps for a model, and records which session holds the role there."""

    def __init__(self, seed: int, ensemble: MemoryEnsemble, model: Side, possible: Callable[[str], bool]) -> None:
        """``possible`` says which external changes the tested storage supports."""
        super().__init__(Random(f"history/{seed}"), ensemble, model)
        self._epoch = 0
        self._unread: set[int] = set()
        """Sessions that have claimed the role and not loaded since."""
        self._outside = tuple(name for name in FROM_OUTSIDE if possible(name))

    def draw(self) -> HistoryStep:
        """The next step."""
        while True:
            step = self.random.choices((self._session, self._role, self._controller, self._from_outside), _OFTEN)[0]()
            if step is not None:
                return step

    def done(self, step: HistoryStep, result: Any) -> None:
        """Record the result of a step on the model."""
        if step.session is None:
            return
        if step.call in ("claim", "take_over") and isinstance(result, int):
            self.claimed[step.session] = self._epoch = result
            self._unread.add(step.session)
        elif step.call == "load":
            self._unread.discard(step.session)
        elif step.call in ("release", "close"):
            self.claimed.pop(step.session, None)

    def deposed(self, number: int) -> bool:
        """Whether a session lost the role and has not released it."""
        return number in self.claimed and not self.model.sessions[number].store.may_act()

    # -- Drawing steps.

    def _session(self) -> HistoryStep | None:
        number = self.random.randrange(len(CONTROLLERS))
        if number not in self.model.sessions:
            return HistoryStep("open", None, (number, CONTROLLERS[number]))
        return HistoryStep("close", number, (number,)) if self.random.random() < 0.15 else None

    def _role(self) -> HistoryStep | None:
        number = self.any_session()
        if number is None:
            return None
        if self.deposed(number):
            # The session may not know yet that it lost the role. Its writes may succeed if no other session has claimed
            # the role.
            writes = _FENCED if self.claimed[number] < self._epoch else ()
            call = self.random.choice(("release", "release", "owns_role", "may_act", *writes))
            return HistoryStep(call, number) if call not in OF_CALLS else self._drawn(call, number)
        if number not in self.claimed and self.random.random() < 0.2:
            return self._drawn(self.random.choice(_FENCED), number)
        # The owner of the role does not claim it again.
        return HistoryStep(self.random.choice(_OF_ROLES[3:] if number in self.claimed else _OF_ROLES), number)

    def _controller(self) -> HistoryStep | None:
        holders = [number for number in self.claimed if not self.deposed(number)]
        if not holders:
            free = [number for number in self.model.sessions if number not in self.claimed]
            return HistoryStep("claim", self.random.choice(free)) if free else self._role()
        (number,) = holders
        if number in self._unread:  # Storage refuses writes from outdated columns.
            return (
                self._drawn("write_assignments", number) if self.random.random() < 0.4 else HistoryStep("load", number)
            )
        if self.random.random() < 0.35:
            return HistoryStep(self.random.choice(_PLAIN), number)
        return self._drawn(self.random.choice((*OF_CALLS, *_MORE_OFTEN)), number)

    def _drawn(self, call: str, number: int) -> HistoryStep | None:
        draw = OF_CALLS.get(call)
        if draw is None:
            return HistoryStep(call, number)
        arguments = draw(self, number)
        return None if arguments is None else HistoryStep(call, number, arguments)

    def _from_outside(self) -> HistoryStep | None:
        if not self._outside:
            return None
        call = self.random.choice(self._outside)
        arguments = FROM_OUTSIDE[call](self)
        return None if arguments is None else HistoryStep(call, None, arguments)
