"""Producer sequences and open transactions of a log (Kafka 3.9 ``ProducerStateManager``)."""

from __future__ import annotations

from collections import deque
from typing import Final

from kframe.errors import ErrorCode
from kframe_simulator.broker.messages import UNDEFINED, Record, RecordKind

#: A repeated record is recognized among this many.
REMEMBERED: Final = 5
_SEQUENCE_MAX: Final = 2**31 - 1
_MARKERS: Final = (RecordKind.COMMIT, RecordKind.ABORT)


class _Producer:
    __slots__ = ("producer_epoch", "sequences")

    def __init__(self, producer_epoch: int) -> None:
        self.producer_epoch = producer_epoch
        self.sequences: deque[tuple[int, int]] = deque(maxlen=REMEMBERED)
        """The last sequences and their offsets."""


class Producers:
    """Producers by id, and the transactions that hold the last stable offset back."""

    __slots__ = ("_completed", "_known", "_open")

    def __init__(self) -> None:
        self._known: dict[int, _Producer] = {}
        self._open: dict[int, int] = {}
        """First offset of each producer's open transaction."""
        self._completed: list[tuple[int, int]] = []
        """First offset and marker offset of ended transactions, until the marker is below the high watermark."""

    def duplicate(self, record: Record) -> int:
        """The offset of the same record if it is among the last five; else -1."""
        known = self._known.get(record.producer_id)
        if known is not None and known.producer_epoch == record.producer_epoch:
            for sequence, offset in known.sequences:
                if sequence == record.sequence:
                    return offset
        return UNDEFINED

    def check_sequence(self, record: Record) -> ErrorCode:
        """The error for a record that is no duplicate, NONE if it may follow. An unknown producer may begin with any
        sequence."""
        known = self._known.get(record.producer_id)
        if known is None:
            return ErrorCode.NONE
        if record.producer_epoch < known.producer_epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if record.kind in _MARKERS:
            return ErrorCode.NONE
        if record.producer_epoch > known.producer_epoch or not known.sequences:
            expected = 0 if record.producer_epoch > known.producer_epoch else record.sequence
        else:
            last = known.sequences[-1][0]
            expected = 0 if last == _SEQUENCE_MAX else last + 1
        return ErrorCode.NONE if record.sequence == expected else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    def add(self, record: Record, offset: int) -> None:
        """Note that a record of a producer with an id was appended."""
        known = self._known.get(record.producer_id)
        if known is None or known.producer_epoch != record.producer_epoch:
            known = self._known[record.producer_id] = _Producer(record.producer_epoch)
        if record.kind in _MARKERS:
            first = self._open.pop(record.producer_id, None)
            if first is not None:
                self._completed.append((first, offset))
            return
        known.sequences.append((record.sequence, offset))
        if record.kind is RecordKind.TRANSACTIONAL:
            self._open.setdefault(record.producer_id, offset)

    def last_stable_offset(self, high_watermark: int) -> int:
        """The offset below which every transaction has ended. At most the high watermark."""
        self._completed = [transaction for transaction in self._completed if transaction[1] >= high_watermark]
        return min([high_watermark, *self._open.values(), *(first for first, _ in self._completed)])
