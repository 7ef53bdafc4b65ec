"""Simulations at rest whose logs, acknowledged records or reads break an invariant."""

from __future__ import annotations

from typing import Any

from kframe.errors import ErrorCode
from kframe_simulator import Simulation
from kframe_simulator.broker.messages import Fetched, Record, RecordKind
from kframe_simulator.invariants import records
from kframe_simulator.simulation.observations import BecameLeader, LogChanged, RecordAcknowledged, RecordsRead, Rested
from kframe_simulator.simulation.record_history import Value
from verification.simulator.at_rest import KEY, ViolationCase, log, promise, state, write


def logged(simulation: Simulation, broker_id: int) -> LogChanged:
    """A broker has changed its log."""
    return LogChanged(simulation.brokers[broker_id], KEY, log(simulation, broker_id))


def read(*records: Record, offset: int = 0, error: ErrorCode = ErrorCode.NONE) -> RecordsRead:
    """A consumer has read these records."""
    return RecordsRead(KEY, offset, True, Fetched(error, log_end_offset=0, records=records))


def _leader_lacks(simulation: Simulation) -> Any:
    write(simulation, 2, 3)
    promise(simulation)
    return BecameLeader(simulation.brokers[1], KEY, 1)


def _member_lacks(simulation: Simulation) -> Any:
    write(simulation, 1, 2)
    promise(simulation)
    return state(simulation)


def _too_soon(simulation: Simulation) -> Any:
    write(simulation, 1)
    promise(simulation)
    return RecordAcknowledged(KEY)


def _record_lost_at_rest(simulation: Simulation) -> Any:
    promise(simulation)
    return Rested()


def _hidden_at_rest(simulation: Simulation) -> Any:
    write(simulation, 1, 2, 3)
    promise(simulation)
    return Rested()


def _logs_part(simulation: Simulation) -> Any:
    write(simulation, 1, number=1)
    write(simulation, 2, number=2)
    return logged(simulation, 2)


def _high_watermark_too_high(simulation: Simulation) -> Any:
    write(simulation, 1, 2, high_watermark=1)
    return logged(simulation, 1)


def _leader_out_of_sync(simulation: Simulation) -> Any:
    simulation.brokers[1].model.partitions[KEY].isr = (2, 3)
    return logged(simulation, 1)


def _committed_is_another(simulation: Simulation) -> Any:
    write(simulation, 1, high_watermark=1)
    simulation.watch.record_history.committed[KEY].records.append(Record(0, Value(0, 9)))
    return logged(simulation, 1)


def _written_twice(simulation: Simulation) -> Any:
    write(simulation, 1)
    write(simulation, 1, high_watermark=2)
    return logged(simulation, 1)


def _reads_another(simulation: Simulation) -> Any:
    simulation.watch.record_history.reads[KEY][0] = Record(0, Value(0, 1))
    return read(Record(1, Value(0, 2)))


def _reads_twice(simulation: Simulation) -> Any:
    same = Record(0, Value(0, 1), 0, 0, 0)
    return read(same, same)


def _read_record_is_lost(simulation: Simulation) -> Any:
    simulation.watch.record_history.reads[KEY][0] = Record(0, Value(0, 1))
    return read(offset=1, error=ErrorCode.OFFSET_OUT_OF_RANGE)


#: The invariant that must fail, and the function that breaks it.
VIOLATIONS_OF_RECORDS: list[ViolationCase] = [
    (records.leaders_have_acknowledged_records, _leader_lacks),
    (records.isr_members_have_acknowledged_records, _member_lacks),
    (records.acknowledged_record_is_on_isr, _too_soon),
    (records.acknowledged_records_stay, _record_lost_at_rest),
    (records.acknowledged_records_stay, _hidden_at_rest),
    (records.logs_match, _logs_part),
    (records.high_watermark_is_replicated, _high_watermark_too_high),
    (records.high_watermark_is_replicated, _leader_out_of_sync),
    (records.committed_records_stay, _committed_is_another),
    (records.committed_records_stay, _written_twice),
    (records.reads_are_repeatable, _reads_another),
    (records.reads_are_repeatable, _reads_twice),
    (records.reads_are_repeatable, _read_record_is_lost),
    (
        records.open_transactions_are_hidden,
        lambda simulation: read(Record(0, Value(0, 1, transaction=1), 0, 0, 0, RecordKind.TRANSACTIONAL)),
    ),
]
