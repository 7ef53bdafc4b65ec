"""Seeded histories of a storage: what three controllers ask of it, and what brokers and operators do there meanwhile.

A step is drawn from what the model of the storage holds at that moment, so that most of what is asked makes sense and
the rest is refused for a reason. Only who has the role reads and writes as a controller does; others try to claim it,
or to write although they may not.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from kframe.embedded import MemoryEnsemble
from kframe.embedded.records import RecordError
from kframe.model.cluster import ClusterState
from kframe_simulator.differential.arguments import FROM_OUTSIDE, OF_CALLS, TOPICS
from kframe_simulator.differential.calls import CALLS
from kframe_simulator.differential.outside import ACTIONS
from kframe_simulator.differential.storages import Side

#: Controllers of all histories.
CONTROLLERS: Final = (101, 102, 103)
#: Calls that end or begin the role, open to every session.
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
#: How often a session comes or goes, the role is asked for, the controller works, and something is done from outside.
_OFTEN: Final = (2, 3, 16, 6)
#: Calls of a controller without arguments, and how often each is drawn.
_PLAIN: Final = (
    "load", "load", "load", "read_brokers", "read_topic_names", "read_deletions", "read_reassignments",
    "read_preferred_election", "drop_preferred_election", "read_isr_changes", "read_log_dir_events",
    "drop_notifications", "allocate_producer_ids", "prepare", "quarantined", "connected",
)  # fmt: skip
#: Writes that only a controller may do; others are refused.
_FENCED: Final = (
    "write_states", "write_assignments", "prepare", "drop_deletions", "delete_topics", "write_reassignments",
    "drop_preferred_election",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that is done: by a session, or (None) from outside."""

    call: str
    session: int | None
    arguments: tuple[Any, ...] = ()

    def __str__(self) -> str:
        who = "outside" if self.session is None else f"session {self.session}"
        return f"{who}: {self.call}({', '.join(map(repr, self.arguments))})"

    def deed(self, side: Side) -> Any:
        """Do it on one side; the result, as it can be compared."""
        if self.session is not None and self.call in CALLS:
            return CALLS[self.call](side, side.sessions[self.session], *self.arguments)
        return ACTIONS[self.call](side, *self.arguments)


class History:
    """Draws steps for a model, and remembers who holds the role there."""

    def __init__(self, seed: int, ensemble: MemoryEnsemble, model: Side, possible: Callable[[str], bool]) -> None:
        """``possible``: what can be done from outside to the storage that is tried."""
        self.random = Random(f"history/{seed}")
        self.ensemble, self.model = ensemble, model
        self.claimed: dict[int, int] = {}
        """Controller epoch by session, from a claim that was won until the role was given up."""
        self._epoch = 0
        self._unread: set[int] = set()
        """Sessions that have claimed the role and not loaded since."""
        self._looks = ensemble.records.open_session(lambda _event: None)
        self._outside = tuple(name for name in FROM_OUTSIDE if possible(name))

    def draw(self) -> Step:
        """The next step."""
        while True:
            step = self.random.choices((self._session, self._role, self._controller, self._from_outside), _OFTEN)[0]()
            if step is not None:
                return step

    def done(self, step: Step, result: Any) -> None:
        """Note what came of a step on the model."""
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
        """Whether a session held the role, and has not given it up since it was lost."""
        return number in self.claimed and not self.model.sessions[number].store.may_act()

    # -- what is drawn

    def _session(self) -> Step | None:
        number = self.random.randrange(len(CONTROLLERS))
        if number not in self.model.sessions:
            return Step("open", None, (number, CONTROLLERS[number]))
        return Step("close", number, (number,)) if self.random.random() < 0.15 else None

    def _role(self) -> Step | None:
        number = self.any_session()
        if number is None:
            return None
        if self.deposed(number):
            # It gives up, or has not heard yet. Where nobody else has claimed the role, its writes may be done or not.
            writes = _FENCED if self.claimed[number] < self._epoch else ()
            call = self.random.choice(("release", "release", "owns_role", "may_act", *writes))
            return Step(call, number) if call not in OF_CALLS else self._drawn(call, number)
        if number not in self.claimed and self.random.random() < 0.2:
            return self._drawn(self.random.choice(_FENCED), number)
        # Whoever has the role does not claim it once more.
        return Step(self.random.choice(_OF_ROLES[3:] if number in self.claimed else _OF_ROLES), number)

    def _controller(self) -> Step | None:
        holders = [number for number in self.claimed if not self.deposed(number)]
        if not holders:
            free = [number for number in self.model.sessions if number not in self.claimed]
            return Step("claim", self.random.choice(free)) if free else self._role()
        (number,) = holders
        if number in self._unread:  # what it knows from an earlier time is refused where it is out of date
            return self._drawn("write_assignments", number) if self.random.random() < 0.4 else Step("load", number)
        if self.random.random() < 0.35:
            return Step(self.random.choice(_PLAIN), number)
        return self._drawn(self.random.choice((*OF_CALLS, *_MORE_OFTEN)), number)

    def _drawn(self, call: str, number: int) -> Step | None:
        draw = OF_CALLS.get(call)
        if draw is None:
            return Step(call, number)
        arguments = draw(self, number)
        return None if arguments is None else Step(call, number, arguments)

    def _from_outside(self) -> Step | None:
        if not self._outside:
            return None
        call = self.random.choice(self._outside)
        arguments = FROM_OUTSIDE[call](self)
        return None if arguments is None else Step(call, None, arguments)

    # -- what is there

    def any_session(self) -> int | None:
        """One of those that are open."""
        return self.random.choice(sorted(self.model.sessions)) if self.model.sessions else None

    def stored(self) -> ClusterState:
        """What storage holds."""
        return self.ensemble.stored()

    def topics(self) -> list[str]:
        """The topics that are stored."""
        topics = self.stored().topics
        return sorted(name for name in TOPICS if topics.find(name) is not None)

    def partitions(self, cluster: ClusterState | None) -> list[tuple[str, int]]:
        """The partitions that somebody knows."""
        if cluster is None:
            return []
        result = [(name, cluster.topics.find(name)) for name in TOPICS]
        return [(name, partition) for name, index in result if index is not None
                for partition in range(len(cluster.topics.rows_of(index)))]  # fmt: skip

    def below(self, path: str) -> list[str] | None:
        """The names of the records below a path; None if there is no such record."""
        with suppress(RecordError):
            if self.ensemble.records.exists(self._looks, path) is not None:
                return self.ensemble.records.children(self._looks, path)
        return None
