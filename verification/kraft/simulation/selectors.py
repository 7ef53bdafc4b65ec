"""Leader selectors of plugins in simulated clusters. They compare what they see with a plain model of the metadata."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from enum import StrEnum

import numpy as np

from kframe.plugin import ElectionBatch, ElectionKind
from kframe.plugin.columns import Int32
from verification.kraft.simulation.image import Image, PartitionState


class Choice(StrEnum):
    """What a selector does. Kafka chooses the first replica that may lead."""

    BUILTIN = "built-in"
    FIRST = "first"
    LAST = "last"
    INVALID = "invalid"
    """It raises an exception, or names a broker that may not lead. The built-in rule decides then."""


class SimulatedSelector:
    """Chooses the first or the last replica that may lead, or wrongly."""

    def __init__(self, choice: Choice, image: Callable[[], Image], report: Callable[[str], None]) -> None:
        """``image`` is the metadata before the decision; ``report`` gets what a batch has wrong."""
        self.name = f"{choice}-replica"
        self.refused = 0
        """Partitions for which the choice was wrong."""
        self._choice = choice
        self._image = image
        self._report = report
        self._calls = 0

    def elect(self, batch: ElectionBatch, leader: Int32) -> None:
        """Write the leaders."""
        self._calls += 1
        for problem in _problems(batch, self._image()):
            self._report(f"K10: an election batch has {problem}")
        if self._choice is Choice.INVALID:
            self.refused += len(batch)
            if self._calls % 2:
                raise ValueError("this selector fails")
            leader[:] = [_ineligible(batch, position) for position in range(len(batch))]
            return
        for position in range(len(batch)):
            span = slice(batch.candidates.offsets[position], batch.candidates.offsets[position + 1])
            able = batch.candidates[position][batch.may_lead[span] != 0]
            leader[position] = able[0 if self._choice is Choice.FIRST else -1]


def _ineligible(batch: ElectionBatch, position: int) -> int:
    """A broker that is no candidate, or else an index beyond all brokers."""
    others = set(range(len(batch.broker_ids))) - set(batch.candidates[position].tolist())
    return min(others, default=len(batch.broker_ids))


def _problems(batch: ElectionBatch, image: Image) -> Iterator[str]:
    """What a batch has otherwise than the metadata before the decision."""
    ids = batch.broker_ids.tolist()
    columns = [getattr(batch, field.name) for field in fields(batch)]
    columns += [batch.candidates.offsets, batch.candidates.values, batch.isr.offsets, batch.isr.values]
    if any(isinstance(column, np.ndarray) and column.flags.writeable for column in columns):
        yield "a column that a selector may change"
    for index, broker_id in enumerate(ids):
        broker = image.brokers.get(broker_id)
        rack_number = int(batch.broker_rack[index])
        if rack_number < -1:
            yield f"broker {broker_id} in rack {rack_number}"
        rack = batch.racks[rack_number] if rack_number >= 0 else None
        is_stopping = broker is not None and broker.in_shutdown and not broker.fenced
        if broker is not None and (rack, bool(batch.broker_shutting_down[index])) != (broker.rack, is_stopping):
            yield f"broker {broker_id} in rack {rack}, shutting down {batch.broker_shutting_down[index]}: {broker}"
    for position in range(len(batch)):
        name, number = batch.topic_names[batch.topic[position]], int(batch.partition[position])
        state = image.partitions[image.topics[name], number]
        span = slice(batch.candidates.offsets[position], batch.candidates.offsets[position + 1])
        leader = int(batch.leader[position])
        seen = ids[leader] if leader >= 0 else -1, int(batch.leader_epoch[position])
        if seen != (state.leader, state.leader_epoch):
            yield f"leader and epoch {seen} of {name}-{number}: {state}"
        for index in batch.candidates[position][batch.may_lead[span] != 0].tolist():
            if not _may_lead(batch, position, image, state, ids[index]):
                yield f"replica {ids[index]} of {name}-{number} that may lead: {state}"


def _may_lead(batch: ElectionBatch, position: int, image: Image, state: PartitionState, replica: int) -> bool:
    """Whether the directory of a replica is online, and the replica in sync or the election unclean."""
    broker = image.brokers.get(replica)
    if broker is None or replica not in state.replicas or not broker.has_online(state.directory_of(replica)):
        return False
    members = [int(batch.broker_ids[member]) for member in batch.isr[position].tolist()]
    is_in_sync = replica in (members or {*state.isr, *state.elr})
    is_preferred = batch.kind is not ElectionKind.PREFERRED or replica == _first(batch, position)
    return is_preferred and (is_in_sync or bool(batch.unclean_allowed[position]))


def _first(batch: ElectionBatch, position: int) -> int:
    return int(batch.broker_ids[batch.candidates[position][0]])
