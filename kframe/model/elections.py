"""Partitions that need a leader, as leader selectors receive them, and the contract of the three selector tiers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from kframe.model.arrays import Int32, Ragged, UInt8
from kframe.model.ids import ElectionKind


@dataclass(frozen=True, slots=True, eq=False)
class ElectionBatch:
    """``k`` partitions that need a leader. Every array is read-only; brokers are dense indexes.

    ``candidates`` are the assigned replicas in Kafka's candidate order (the target replicas in a REASSIGN election).
    Three arrays are parallel to ``candidates.values``. ``eligible`` is 1 where the strategy's liveness rule holds.
    ``in_sync`` is 1 where the replica is in the ISR. ``may_lead`` is 1 where the safety rules let the candidate lead:
    it is eligible and in sync, or eligible where ``unclean_allowed``. In a PREFERRED election only the first candidate
    may lead.

    In an INITIAL election there is no ISR yet: ``isr`` is the ISR that the partition will get, which is all of its
    eligible candidates. ``unclean_allowed`` is 1 where no candidate is both eligible and in sync and the config permits
    an out-of-sync leader; it is 0 except in OFFLINE elections.

    The batch of a selector copies most arrays from the columns at first access. After ``elect`` returns, arrays that
    were not accessed before cannot be read.

    Shapes: ``rows``, ``topic``, ``partition``, ``leader``, ``leader_epoch``, ``unclean_allowed`` (k,); ``candidates``
    and ``isr`` k lists; ``may_lead``, ``eligible`` and ``in_sync`` (len(candidates.values),); the ``broker_`` arrays
    (b,).
    """

    kind: ElectionKind
    rows: Int32
    topic: Int32
    partition: Int32
    candidates: Ragged
    eligible: UInt8
    in_sync: UInt8
    may_lead: UInt8
    isr: Ragged
    leader: Int32
    leader_epoch: Int32
    unclean_allowed: UInt8
    broker_ids: Int32
    broker_rack: Int32
    """Rack number by broker index, -1 where the broker has no rack. ``racks`` has the names."""
    broker_live: UInt8
    """By broker index: 1 where the broker is registered and not shutting down."""
    broker_shutting_down: UInt8
    """By broker index: 1 where the broker is registered and in controlled shutdown."""
    racks: tuple[str, ...]
    topic_names: tuple[str, ...]
    """Topic names by topic index."""
    seed: int
    """The only randomness that a selector may use: equal batches have equal seeds."""

    def __len__(self) -> int:
        return len(self.candidates)


@dataclass(frozen=True, slots=True)
class NativeCall:
    """A C function of the type ``kframe_select`` (``selector.h``), and the argument of every call: two addresses."""

    function: int
    user_data: int


@runtime_checkable
class LeaderSelector(Protocol):
    """Chooses leaders for a whole batch. This is the *bulk* tier. Adapters map the other two tiers to it."""

    @property
    def name(self) -> str:
        """Unique, lower case with dashes."""

    def elect(self, batch: ElectionBatch, leader: Int32) -> None:
        """Write into ``leader`` (k,) the broker index of the leader of each partition, or NO_LEADER. All values are
        NO_LEADER on entry.

        Equal batches must give equal results: no clock, no I/O, no randomness except ``batch.seed``, no state between
        calls. Return None. A batch is never empty.

        The caller checks the result against the safety rules before it uses the result. A leader must be a candidate,
        eligible, and in sync unless ``unclean_allowed``. In a PREFERRED election it must be the first candidate. Where
        a leader breaks a rule, the built-in selector decides. NO_LEADER breaks no rule: if a selector returns it, the
        partition gets no leader, even where the built-in selector would elect one.
        """


def selector_name(selectors: Mapping[ElectionKind, LeaderSelector], kind: ElectionKind) -> str | None:
    """Name of the leader selector in charge of a kind of election. None for the built-in rule."""
    selector = selectors.get(kind)
    return None if selector is None else selector.name
