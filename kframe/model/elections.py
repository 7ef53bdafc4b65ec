"""Partitions that need a leader, as leader selectors see them, and the contract of the three selector tiers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from kframe.model.columns import Int32, Ragged, UInt8
from kframe.model.ids import ElectionKind


@dataclass(frozen=True, slots=True, eq=False)
class ElectionBatch:
    """``k`` partitions that need a leader. Every array is read-only; brokers are dense indexes.

    ``candidates`` are the assigned replicas in Kafka's candidate order (the target replicas in a REASSIGN election);
    beside ``candidates.values`` stand ``may_lead``: 1 where the safety rules let the candidate lead, and what that
    comes of: ``eligible``, 1 where the strategy's liveness rule holds, and ``in_sync``, 1 where the replica is in the
    ISR. It has to be eligible and in sync, or eligible where ``unclean_allowed``; in a PREFERRED election the first.
    In an INITIAL election there is no ISR yet: ``isr`` is the one that the partition will get, which is all of its
    eligible candidates. ``unclean_allowed`` is 1 where no candidate is both eligible and in sync and an out-of-sync
    leader is permitted; it is 0 everywhere but in OFFLINE elections.

    A selector that is asked to elect gets a batch that copies a part out of the columns when it is first asked for:
    after it has returned, no further ones can be read.

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
    """Rack number by broker index, -1 where the broker names none; ``racks`` has the names."""
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
    """A C function of the type ``kframe_select`` (``selector.h``), and what it gets with every call: two addresses."""

    function: int
    user_data: int


@runtime_checkable
class LeaderSelector(Protocol):
    """Chooses leaders for a whole batch: the *bulk* tier, which the two others are adapted to."""

    @property
    def name(self) -> str:
        """Unique, lower case with dashes."""

    def elect(self, batch: ElectionBatch, leader: Int32) -> None:
        """Write into ``leader`` (k,) the broker index chosen for each partition, or NO_LEADER (its value on entry).

        Same batch, same answer: no clock, no I/O, no randomness but ``batch.seed``, no state kept between calls.
        Return None. A batch is never empty.

        The result is checked against the safety rules before it is used: a leader must be a candidate, eligible, and
        in sync unless ``unclean_allowed`` (in a PREFERRED election it must be the first candidate); where it is not,
        the built-in rule decides. NO_LEADER breaks no rule: a selector may leave a partition without a leader where
        the built-in rule would find one, and then the partition gets none.
        """
