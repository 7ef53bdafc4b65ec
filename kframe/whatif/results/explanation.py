"""The result of ``kframe explain``: the leader of a partition, its rule, and why each other replica does not lead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final

from kframe.pages.parts import FactsPart, Heading, NotesPart, Part, TablePart
from kframe.pages.shown import Shown
from kframe.whatif.results.release import ReleaseRecord

_CANDIDATES: Final = ("broker_id", "position", "outcome", "reason")


@dataclass(frozen=True, slots=True)
class CandidateReplica:
    """One assigned replica. It has its position in the assignment from 0, and why it leads or does not."""

    broker_id: int
    position: int
    outcome: str
    """A CandidateStatus, or a KraftCandidateStatus."""
    reason: str


@dataclass(frozen=True, slots=True)
class Decision:
    """One choice of a leader, or the lack of one. ``step`` is the what-if's step, None for the snapshot itself."""

    step: str | None
    rule: str
    """A LeaderRule, or a KraftRule."""
    leader: int | None
    text: str
    isr: tuple[int, ...]
    """The ISR that the choice was made from."""
    candidates: tuple[CandidateReplica, ...]
    selector: str | None = None
    """The leader selector in charge, if it is not the built-in rule."""
    elr: tuple[int, ...] | None = None
    """The eligible leader replicas that the choice was made from; None in ZooKeeper mode."""
    last_known_elr: tuple[int, ...] | None = None
    """The last leader of a partition without ISR and ELR; None in ZooKeeper mode."""


@dataclass(frozen=True, slots=True, repr=False)
class Explanation(Shown):
    """Everything decided about one partition: what the snapshot shows, then each election of the what-if."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    before: Decision
    elections: tuple[Decision, ...]
    leader: int | None
    isr: tuple[int, ...]
    assumptions: tuple[str, ...]
    rules: str
    """The rules that decided, in words."""
    release: ReleaseRecord | None = None
    """The release of Kafka whose rules decided; None in ZooKeeper mode."""

    def heading(self) -> Heading:
        """See ``Shown``."""
        facts = (("leader", self.leader), ("ISR", list(self.isr)), ("replicas", list(self.replicas)))
        return Heading(f"{self.topic}-{self.partition}", FactsPart(facts))

    def parts(self) -> Sequence[Part]:
        """See ``Shown``."""
        parts: list[Part] = []
        for decision in (self.before, *self.elections):
            rows = [asdict(candidate) for candidate in decision.candidates]
            title = f"{decision.step or 'present state'}: {decision.text}"
            parts.append(TablePart(title, _CANDIDATES, rows, len(rows)))
        return [*parts, NotesPart(self.assumptions)]
