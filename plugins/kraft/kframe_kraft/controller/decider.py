"""Decides events one after another, and writes the decisions to the log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Final, Generic, Protocol, TypeAlias, TypeVar

from kframe.plugin.kraft import ControllerResult, DecisionPart, RecordAndVersion, records
from kframe.plugin.kraft_controller import ElectionCounts, KraftContext
from kframe_kraft.batches import BatchPosition
from kframe_kraft.encoding.decision import encode_decision

T = TypeVar("T")
#: Records that change the registration of a broker.
_REGISTRATIONS: Final = (
    records.RegisterBrokerRecord,
    records.UnregisterBrokerRecord,
    records.BrokerRegistrationChangeRecord,
    records.FenceBrokerRecord,
    records.UnfenceBrokerRecord,
)
#: A rule of the core with its request: it returns the decision in the present state. Raises RequestRefused.
Event: TypeAlias = Callable[[KraftContext], ControllerResult[T]]


class WritableLog(Protocol):
    """The log that decisions are written to, as ``kframe_kraft.log.DurableLog``."""

    @property
    def end(self) -> int:
        """The offset of the next record."""

    def append(self, batch: bytes) -> int:
        """Append a batch. Returns the new end. Raises LogWriteError."""

    def sync(self) -> int:
        """Make durable what was appended before. Returns the end of what is durable. Raises LogWriteError."""


@dataclass(frozen=True, slots=True)
class Decided(Generic[T]):
    """A decision in the log, from offset ``first`` on. Its response may be sent when the high watermark is ``end``."""

    first: int
    end: int
    result: ControllerResult[T]


class Decider:
    """Decides in leader epoch ``epoch``. The context has every record of the log."""

    def __init__(self, context: KraftContext, log: WritableLog, epoch: int) -> None:
        self.context = context
        self.elections = ElectionCounts()
        self.registrations_end = log.end
        """The offset after the last decision on the registration of a broker, or after all that precede this leader."""
        self._log = log
        self._epoch = epoch

    @property
    def end(self) -> int:
        """The offset of the next record."""
        return self._log.end

    def append(self, result: ControllerResult[object], now_ms: int) -> Iterator[int]:
        """Append a decision of ``now_ms`` since the epoch. Yields the end of the log after each batch.

        Raises LogWriteError, and RecordError, before the first batch, for a record that the level cannot carry.
        """
        for batch in encode_decision(result, BatchPosition(self._log.end, self._epoch, now_ms)):
            yield self._log.append(batch)

    def apply(self, result: ControllerResult[object], first: int) -> None:
        """Apply a decision that is in the log, from offset ``first`` on."""
        offset = first
        for _, group in groupby(result.parts, key=lambda part: _new_partition(part) is not None):
            parts = [*group]
            new = [record for part in parts if (record := _new_partition(part)) is not None]
            if new:
                self.context.apply_new_partitions(new)
                offset += len(new)
                continue
            for part in parts:
                if isinstance(part, RecordAndVersion) and isinstance(part.record, _REGISTRATIONS):
                    # Before the registration: another thread reads it first.
                    self.registrations_end = self._log.end
                self.elections.add(self.context.metadata, part)
                offset += self.context.apply(part, offset)


def _new_partition(part: DecisionPart) -> records.PartitionRecord | None:
    """The record of a part that adds a partition: no decision replaces the whole state of one."""
    if isinstance(part, RecordAndVersion) and isinstance(part.record, records.PartitionRecord):
        return part.record
    return None
