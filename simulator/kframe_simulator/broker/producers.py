"""Producer sequences and open transactions of a log (Kafka 3.9 ``ProducerStateManager``)."""

from __future__ import annotations

from collections import deque
from typing import Final

from kframe.errors import ErrorCode
from kframe_simulator.broker.messages import UNDEFINED, Record, RecordKind

#: A repeated record is recognised among this many.
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
    """Producers by id, and transactions that keep the last stable offset back."""

    __slots__ = ("_completed", "_known", "_open")

    def __init__(self) -> None:
        self._known: dict[int, _Producer] = {}
        self._open: dict[int, int] = {}
        """First offset of each producer's open transaction."""
        self._completed: list[tuple[int, int]] = []
        """First offset and marker's offset of transactions that ended, until the marker is below the high watermark."""

    def __len__(self) -> int:
        return len(self._known)

    def duplicate(self, record: Record) -> int:
        """The offset at which this very record stands already; -1: none of the last five."""
        known = self._known.get(record.producer_id)
        if known is not None and known.producer_epoch == record.producer_epoch:
            for sequence, offset in known.sequences:
                if sequence == record.sequence:
                    return offset
        return UNDEFINED

    def judge(self, record: Record) -> ErrorCode:
        """Whether a record that is no duplicate may follow. A producer not known yet may begin with any sequence."""
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
        """A record of a producer with an id stands in the log."""
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
        """Up to where no transaction is undecided: at most the high watermark."""
        self._completed = [transaction for transaction in self._completed if transaction[1] >= high_watermark]
        return min([high_watermark, *self._open.values(), *(first for first, _ in self._completed)])
