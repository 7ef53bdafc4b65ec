"""Invariants of records: durability, log matching and repeatable reads (I10, I11)."""

from __future__ import annotations

from kframe.errors import ErrorCode
from kframe_simulator.broker.log import Log
from kframe_simulator.broker.messages import UNDEFINED, RecordKind
from kframe_simulator.invariants.states import elected, unclean_allowed
from kframe_simulator.replication.control_requests import Row
from kframe_simulator.simulation.observations import (
    BecameLeader,
    LogChanged,
    RecordAcknowledged,
    RecordsRead,
    StateWritten,
)
from kframe_simulator.simulation.record_history import Value, follows
from kframe_simulator.simulation.watch import Watch


def leaders_have_acknowledged_records(watch: Watch, led: BecameLeader) -> str | None:
    """I10: every later leader has each record that was acknowledged with acks=all, unless the record may be lost
    (``kframe_simulator.simulation.record_history``)."""
    record_history, key = watch.record_history, led.key
    if not record_history.watched(key):
        return None
    missing = record_history.missing(key, record_history.log(led.broker.broker_id, key), led.leader_epoch)
    return None if missing is None else f"{key}: leader {led.broker.broker_id} has not {missing}"


def last_replicas_wait_for_consent(watch: Watch, written: StateWritten) -> str | None:
    """I10: under ``kframe.last.replica.hold`` the last in-sync replica is elected after a crash only with an operator's
    consent: its log may have lost records (X9)."""
    before, after, simulation = written.before, written.after, watch.simulation
    if not simulation.options.hold_last or not elected(written) or before is None or before.isr != (after.leader,):
        return None
    if written.process is None or before.leader >= 0 or unclean_allowed(written):
        return None
    if not watch.observed.crashed_since(written.key, after.leader):
        return None
    return f"{written.key}: broker {after.leader}, the last in sync, crashed and leads again without consent"


def isr_members_have_acknowledged_records(watch: Watch, written: StateWritten) -> str | None:
    """I10: every member of the stored ISR has all records that were acknowledged with acks=all."""
    return _all_members(watch, written.after)


def acknowledged_record_is_on_isr(watch: Watch, acknowledged: RecordAcknowledged) -> str | None:
    """I10: a record that is acknowledged with acks=all is on every member of the stored ISR."""
    row = watch.simulation.ensemble.rows.get(acknowledged.key)
    return None if row is None else _all_members(watch, row)


def _all_members(watch: Watch, row: Row) -> str | None:
    record_history = watch.record_history
    if not record_history.promises.get(row.key) or not record_history.watched(row.key):
        return None
    sets = record_history.lossy, record_history.unknown_to_leader, record_history.overrated
    exempt = set().union(*(members.get(row.key, set()) for members in sets))
    for member in row.isr:
        missing = record_history.missing(row.key, record_history.log(member, row.key))
        if missing is not None and member in row.replicas and member not in exempt:
            return f"{row.key}: broker {member} of isr {row.isr} has not {missing}"
    return None


def acknowledged_records_stay(watch: Watch, _: object) -> str | None:
    """I10: at rest every record that was acknowledged with acks=all can be read from its leader. Exempt are partitions
    under min.insync.replicas, whose high watermark stops. Also exempt is a leader whose state another client has
    rewritten: it waits for an ISR that it cannot propose."""
    record_history = watch.record_history
    record_history.count_losses()
    for key, row in watch.simulation.ensemble.rows.items():
        if record_history.promises.get(key) and record_history.watched(key) and row.leader >= 0:
            log = record_history.log(row.leader, key)
            missing = record_history.missing(key, log)
            if missing is not None:
                return f"{key}: leader {row.leader} has not {missing}"
            partition = watch.simulation.brokers[row.leader].model.partitions.get(key)
            last = max(promise.offset for promise in record_history.promises[key])
            advances = partition is not None and not partition.under_min_isr
            advances = advances and key not in watch.rewritten | watch.unreadable
            if advances and log is not None and log.high_watermark <= last:
                return f"{key}: {last} was acknowledged, and leader {row.leader} shows {log.high_watermark} records"
    return None


def logs_match(watch: Watch, logged: LogChanged) -> str | None:
    """I11, log matching: two logs with records of one leader epoch at one offset are equal up to that offset."""
    record_history, key, log = watch.record_history, logged.key, logged.log
    if not record_history.watched(key):
        return None
    for other_id, other in record_history.logs(key):
        if other is not log and not _match(log, other):
            return f"{key}: the logs of {logged.broker.broker_id} and {other_id} part and meet again"
    return None


def _match(log: Log, other: Log) -> bool:
    own_records, other_records = log.records, other.records
    for offset in range(min(len(own_records), len(other_records)) - 1, -1, -1):
        if own_records[offset].leader_epoch == other_records[offset].leader_epoch:
            return own_records[: offset + 1] == other_records[: offset + 1]
    return True


def high_watermark_is_replicated(watch: Watch, logged: LogChanged) -> str | None:
    """I11: records below the leader's high watermark are in the logs of its maximal ISR (StrongIsr). The leader is a
    member of it (LeaderInIsr)."""
    record_history, key, broker = watch.record_history, logged.key, logged.broker
    partition = broker.model.partitions.get(key)
    row = watch.simulation.ensemble.rows.get(key)
    if partition is None or row is None or partition.leader_log is None or not record_history.watched(key):
        return None
    if (row.leader, row.leader_epoch) != (broker.broker_id, partition.leader_epoch):
        return None
    if broker.broker_id not in partition.isr:
        return f"{key}: leader {broker.broker_id} is not in its isr {partition.isr}"
    high = partition.leader_log.high_watermark
    exempt = record_history.lossy.get(key, set()) | record_history.overrated.get(key, set())
    for member in partition.maximal_isr:
        log = record_history.log(member, key)
        end = 0 if log is None else log.end
        if end < high and member not in exempt and not record_history.is_overrated(row, member):
            return f"{key}: leader {broker.broker_id} has high watermark {high}, {member} of its isr has {end}"
    return None


def committed_records_stay(watch: Watch, logged: LogChanged) -> str | None:
    """I11, leader completeness: every later leader has all records below an earlier leader's high watermark. A record
    of an idempotent producer is there once, and in order."""
    record_history, key = watch.record_history, logged.key
    partition = logged.broker.model.partitions.get(key)
    if partition is None or partition.leader_log is None or not record_history.watched(key):
        return None
    if partition.leader_epoch < record_history.floor.get(key, 0):
        return None
    committed, log = record_history.committed[key], partition.leader_log
    known, below = len(committed.records), log.records[: log.high_watermark]
    shared = min(known, len(below))
    if below[:shared] != committed.records[:shared]:
        return f"{key}: leader {logged.broker.broker_id} has others below its high watermark than leaders before it"
    for record in below[known:]:
        if not follows(committed, record):
            return f"{key}: {record} occurs twice, or after a later record"
    committed.records += below[known:]
    return None


def reads_are_repeatable(watch: Watch, read: RecordsRead) -> str | None:
    """I11: all consumers read the same record at an offset. They read a record of an idempotent producer once."""
    records_by_offset = watch.record_history.reads[read.key]
    if read.response.error is ErrorCode.OFFSET_OUT_OF_RANGE:
        lost_offsets = [offset for offset in records_by_offset if offset >= read.response.log_end_offset]
        return (
            f"{read.key}: {lost_offsets} were read, and the log ends at {read.response.log_end_offset}"
            if lost_offsets
            else None
        )
    for offset, record in enumerate(read.response.records, read.offset):
        known = records_by_offset.setdefault(offset, record)
        if known != record:
            return f"{read.key}: {known} was read at {offset}, and now {record}"
    unique = [
        seen_id.value
        for seen_id in records_by_offset.values()
        if seen_id.producer_id != UNDEFINED and seen_id.value is not None
    ]
    return f"{read.key}: a record was read twice" if len(unique) != len(set(unique)) else None


def open_transactions_are_hidden(watch: Watch, read: RecordsRead) -> str | None:
    """I11: read_committed consumers read no record of an open transaction."""
    for record in read.response.records if read.committed else ():
        value = record.value
        if record.kind is not RecordKind.TRANSACTIONAL or not isinstance(value, Value):
            continue
        if (record.producer_id, value.transaction) not in watch.record_history.decided:
            return f"{read.key}: {record} was read before its transaction ended"
    return None
