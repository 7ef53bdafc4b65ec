"""Acknowledged records and consumer reads, and the acknowledged records that may be lost.

The leader acknowledges a record with acks=all (a promise) for all in-sync replicas. It may be lost only

- after a leader was elected from outside the ISR: records of earlier leader epochs;
- after every member of an ISR has lost its disk: records up to that leader epoch (X9);
- after a leader without its log leads, and all registered ISR members have registered again since the last state with
  a leader. Their broker epochs do not show which of them lost its log (``docs/explanation/safety.md``);
- after a leader without its log leads, and its state was written after its registration, by a client that did not know
  the registration;
- after an ISR member was elected of which the leader before did not know, or which it overrated: promises of earlier
  leader epochs. The same holds for records below the high watermark of that leader.

Promises end with their topic. Topics are not checked if a broker has a log of an earlier topic with the same name, or
knows the topic by another id.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from kframe.embedded.layout import DELETE_TOPICS
from kframe.errors import ErrorCode
from kframe.model.events import TopicPartition
from kframe_simulator.broker.log import Log
from kframe_simulator.broker.messages import NO_ID, UNDEFINED, Produce, ProduceResponse, Record
from kframe_simulator.replication.control_requests import Row
from kframe_simulator.simulation.cluster import SimulatedCluster
from kframe_simulator.simulation.controllers import ControllerProcess
from kframe_simulator.simulation.observations import StateWritten
from kframe_simulator.simulation.observed import Observed
from kframe_simulator.simulation.refused_proposals import RefusedProposals
from kframe_simulator.simulation.retained_ends import RetainedEnds


class Value(NamedTuple):
    """The unique value of a record that a client writes. ``transaction`` is -1 outside of transactions."""

    producer: int
    number: int
    transaction: int = -1


class Promise(NamedTuple):
    """A record that was acknowledged with acks=all."""

    value: Value
    offset: int
    leader_epoch: int
    """The leader epoch of the acknowledgement."""


class Undetected(NamedTuple):
    """A member of an ISR that registered again, and stays in it."""

    broker_epoch: int
    leader_epoch: int
    """The leader epoch of the state before."""


class Committed:
    """The longest log below a high watermark that any leader of a partition ever had."""

    __slots__ = ("records", "sequences")

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.sequences: dict[int, tuple[int, int]] = {}
        """The last (producer epoch, sequence) by producer id."""


class RecordHistory:
    """The history of records, by partition."""

    def __init__(self, simulation: SimulatedCluster, mismatched_topics: set[str]) -> None:
        """``mismatched_topics`` are the topics that some broker knows by another id."""
        self._simulation, self._mismatched_topics = simulation, mismatched_topics
        self.refused_proposals = RefusedProposals(simulation)
        self._retained_ends = RetainedEnds(simulation)
        self.promises: defaultdict[TopicPartition, list[Promise]] = defaultdict(list)
        self.committed: defaultdict[TopicPartition, Committed] = defaultdict(Committed)
        self.reads: defaultdict[TopicPartition, dict[int, Record]] = defaultdict(dict)
        """By offset: the record that consumers have read."""
        self.floor: dict[TopicPartition, int] = {}
        """Promises of smaller leader epochs may be lost."""
        self.lossy: defaultdict[TopicPartition, set[int]] = defaultdict(set)
        """ISR members whose log was lost while they were, or were about to become, members."""
        self.brokers_with_lost_logs: defaultdict[TopicPartition, set[int]] = defaultdict(set)
        """Brokers whose log was ever lost."""
        self._broker_epochs: dict[TopicPartition, dict[int, int]] = {}
        """The broker epochs of the ISR members when the last state with a leader was stored: a failover may store
        one without a leader before it elects one."""
        self._undetected: defaultdict[TopicPartition, dict[int, Undetected]] = defaultdict(dict)
        """ISR members whose registration the time of the last write does not show. Its writer did not know the
        registration, or kept them because all registered ISR members had registered again."""
        self._led_without_log: set[TopicPartition] = set()
        """Partitions that an undetected leader has led under an unchanged leader epoch after it lost its log: followers
        keep other records of that epoch."""
        self.unknown_to_leader: defaultdict[TopicPartition, set[int]] = defaultdict(set)
        """ISR members whose leader does not wait for them: it had a refusal for another copy of the request that has
        added them, and acknowledges records without them."""
        self.overrated: defaultdict[TopicPartition, set[int]] = defaultdict(set)
        """ISR members that lack records because the leader has kept an earlier end of their logs."""
        self.stale_logs: dict[str, set[tuple[int, TopicPartition]]] = {}
        """By topic: (broker, partition) of logs that brokers still had when an earlier topic with this name was
        deleted."""
        self.topic_numbers: Counter[str] = Counter()
        """The number of deleted topics with this name."""
        self.acknowledged: list[tuple[TopicPartition, int, int, Record, int]] = []
        """All acknowledged records: partition, topic number, acks, record, offset."""
        self.decided: set[tuple[int, int]] = set()
        """(producer id, number) of transactions that have ended, or are about to."""

    # -- Events.

    def state_written(self, written: StateWritten) -> None:
        """A state was stored. A replica that has left the ISR must catch up before it joins again."""
        key, before, after = written.key, written.before, written.after
        for member in set(after.isr).difference(before.isr if before else ()):
            if self.is_overrated(after, member):
                self.lossy[key].add(member)
        self._note_undetected_members(written)
        self._note_unknown_members(written)
        self._retained_ends.state_written(after)
        if after.leader in self.overrated[key]:
            self._release(key, after.leader_epoch)
        self.overrated[key].intersection_update(after.isr)
        lossy = self.lossy.get(key)
        if lossy:
            lossy.intersection_update(after.isr)
            is_known = written.process is not None and after.leader in self._known_to(written.process, after)
            if is_known and after.leader in lossy and self._cannot_be_known(after, written.process):
                self._release(key, after.leader_epoch)
        epochs = self._epochs(after)
        self._broker_epochs[key] = epochs if after.leader >= 0 else epochs | self._earlier_epochs(after)
        if before is not None and after.leader >= 0 and before.isr and after.leader not in before.isr:
            self._release(key, after.leader_epoch)
        self._check_isr(after)

    def _note_undetected_members(self, written: StateWritten) -> None:
        """Record the members that registered again without an effect on this write."""
        before, after, process = written.before, written.after, written.process
        undetected, reregistered = self._undetected[written.key], self._reregistered(after)
        for member in undetected.keys() - set(after.isr):
            del undetected[member]
        if before is None:
            return
        members = reregistered.intersection(before.isr)
        if process is not None and not reregistered >= self._epochs(after).keys() & Observed.registered(process):
            members -= self._known_to(process, after)
        epochs = self._epochs(after)
        undetected.update({member: Undetected(epochs[member], before.leader_epoch) for member in members})

    def _known_to(self, process: ControllerProcess, row: Row) -> set[int]:
        """The ISR members whose current registration a controller knows."""
        return {member for member, _ in self._epochs(row).items() & Observed.registered(process).items()}

    def _note_unknown_members(self, written: StateWritten) -> None:
        """Record the members that a proposal adds for which its leader does not wait. Such a member may be elected."""
        row, unknown = written.after, self.unknown_to_leader[written.key]
        behind = {member for member in unknown if self._is_behind(row.key, member)}
        renewed = written.before is not None and written.before.leader_epoch != row.leader_epoch
        unknown.intersection_update(behind.intersection(row.isr) if renewed else row.isr)
        unknown.update(self.refused_proposals.not_awaited(row))
        if row.leader in unknown:
            self._release(row.key, row.leader_epoch)

    def log_changed(self, key: TopicPartition) -> None:
        """A log of a partition may have changed. A member that has caught up is no longer overrated."""
        row = self._simulation.ensemble.rows.get(key)
        if row is not None:
            known = {member for member in self.overrated[key] if self._is_behind(key, member)}
            self.overrated[key] = known | self._retained_ends.overrated(row)

    def _is_behind(self, key: TopicPartition, broker_id: int) -> bool:
        """Whether the log of a broker lacks a promise, or a record below the high watermark of an earlier leader."""
        log = self.log(broker_id, key)
        if self.missing(key, log) is not None:
            return True
        committed = self.committed[key].records if key in self.committed else []
        return bool(committed) and (log is None or log.records[: len(committed)] != committed)

    def became_leader(self, key: TopicPartition, broker_id: int) -> None:
        """A broker becomes leader as stored. A failover writes no state for that."""
        row = self._simulation.ensemble.rows.get(key)
        if row is None or row.leader != broker_id or broker_id not in self.lossy.get(key, ()):
            return
        undetected = self._undetected_member(row, broker_id)
        leads_on = undetected is None or undetected.leader_epoch == row.leader_epoch
        if self._cannot_be_known(row, None):
            self._release(key, row.leader_epoch + leads_on)
        if undetected is not None and leads_on:
            self._led_without_log.add(key)

    def _epochs(self, row: Row) -> dict[int, int]:
        """The current broker epochs of the ISR members."""
        brokers = self._simulation.brokers
        return {member: brokers[member].registration.broker_epoch for member in row.isr if member in brokers}

    def _earlier_epochs(self, row: Row) -> dict[int, int]:
        """The broker epochs of the ISR members in the state before ``row``."""
        before = self._broker_epochs.get(row.key, {})
        return {member: before[member] for member in row.isr if member in before}

    def _reregistered(self, row: Row) -> set[int]:
        """The ISR members with another broker epoch than when the state before ``row`` was stored. If that has no
        leader, its registrations are those of the last state with a leader."""
        before = self._broker_epochs.get(row.key, {})
        return {member for member, epoch in self._epochs(row).items() if before.get(member) != epoch}

    def _cannot_be_known(self, row: Row, process: ControllerProcess | None) -> bool:
        """Whether storage cannot show that the leader is a worse choice than other registered ISR members: all of them
        have registered again, or the leader is undetected. A controller does not know members whose registration it
        cannot read."""
        brokers = self._simulation.brokers
        if process is None:
            registered = {member for member in self._epochs(row) if brokers[member].registered}
        else:
            registered = self._epochs(row).keys() & Observed.registered(process)
        return self._undetected_member(row, row.leader) is not None or self._reregistered(row) >= registered

    def _undetected_member(self, row: Row, member: int) -> Undetected | None:
        """The record of an undetected member. None if it has registered again since: the time of the write shows it."""
        undetected = self._undetected[row.key].get(member)
        is_current = undetected is not None and undetected.broker_epoch == self._epochs(row).get(member)
        return undetected if is_current else None

    def logs_lost(self, broker_id: int, keys: Iterable[TopicPartition]) -> None:
        """A broker has lost its logs of these partitions."""
        for key in keys:
            self.brokers_with_lost_logs[key].add(broker_id)
            self._undetected[key].pop(broker_id, None)
            row = self._simulation.ensemble.rows.get(key)
            if row is not None and (broker_id in row.isr or broker_id in self._proposed(row)):
                self.lossy[key].add(broker_id)
                self._check_isr(row)

    def _proposed(self, row: Row) -> tuple[int, ...]:
        """The ISR that the leader has proposed."""
        leader = self._simulation.brokers.get(row.leader)
        partition = None if leader is None else leader.model.partitions.get(row.key)
        return () if partition is None else partition.maximal_isr

    def is_overrated(self, row: Row, member: int) -> bool:
        """Whether a member has lost its log since the fetch for which the leader added or proposed it."""
        if member not in self.brokers_with_lost_logs.get(row.key, ()):
            return False
        leader, log = self._simulation.brokers.get(row.leader), self.log(member, row.key)
        partition = None if leader is None else leader.model.partitions.get(row.key)
        known = None if partition is None else partition.replicas.get(member)
        return known is not None and known.end > (0 if log is None else log.end)

    def _check_isr(self, row: Row) -> None:
        lossy = self.lossy.get(row.key)
        if lossy and lossy.issuperset(row.isr):
            self._release(row.key, row.leader_epoch + 1)

    def _release(self, key: TopicPartition, floor: int) -> None:
        """Release the promises of leader epochs below ``floor``: they may be lost from now on."""
        self.floor[key] = max(floor, self.floor.get(key, 0))
        promises = self.promises[key]
        saved = [promise for promise in promises if promise.leader_epoch >= floor]
        self._simulation.counts["promises released"] += len(promises) - len(saved)
        self.promises[key] = saved
        self.committed.pop(key, None)
        self.reads.pop(key, None)

    def topic_deleted(self, name: str, partitions: Iterable[int]) -> None:
        """A topic was deleted: its promises end."""
        self.topic_numbers[name] += 1
        for key in [(name, partition) for partition in partitions]:
            for saved in (
                self.promises,
                self.committed,
                self.reads,
                self.floor,
                self.lossy,
                self.brokers_with_lost_logs,
                self._broker_epochs,
                self._undetected,
                self.unknown_to_leader,
                self.overrated,
            ):
                saved.pop(key, None)
        self.refused_proposals.topic_deleted(name)
        self._retained_ends.topic_deleted(name)
        remaining = {
            (broker.broker_id, (name, partition))
            for broker in self._simulation.brokers.values()
            for partition in partitions
            if (name, partition) in broker.model.disks.logs
        }
        self._led_without_log.difference_update([(name, partition) for partition in partitions])
        self.stale_logs.pop(name, None)
        if remaining:
            self.stale_logs[name] = remaining

    def acknowledge(self, request: Produce, response: ProduceResponse, topic_number: int) -> bool:
        """A leader has responded to a producer. Returns whether the response is a promise."""
        key, simulation = request.partition, self._simulation
        if response.error is not ErrorCode.NONE or topic_number != self.topic_numbers[key[0]]:
            return False
        value = request.value
        assert isinstance(value, Value)
        record = Record(response.leader_epoch, value)
        self.acknowledged.append((key, topic_number, request.acks, record, response.offset))
        simulation.counts[f"acknowledged, acks={request.acks}"] += 1
        if request.acks != -1 or response.leader_epoch < self.floor.get(key, 0):
            return False
        row = simulation.ensemble.rows.get(key)
        if row is not None and row.leader_epoch == response.leader_epoch:
            self.unknown_to_leader[key].update(self.refused_proposals.not_awaited(row))
        self.promises[key].append(Promise(value, response.offset, response.leader_epoch))
        return True

    # -- Queries.

    def topic_number(self, key: TopicPartition) -> int:
        """The topic number of a partition: how many topics with this name were deleted before."""
        return self.topic_numbers[key[0]]

    def watched(self, key: TopicPartition) -> bool:
        """Whether a partition's logs are checked: all belong to the current topic, which is not being deleted, and no
        leader has continued a leader epoch without its log."""
        name, simulation = key[0], self._simulation
        if name in self.stale_logs or name in self._mismatched_topics or key not in simulation.ensemble.rows:
            return False
        if key in self._led_without_log:
            return False
        return not simulation.ensemble.has_record(f"{DELETE_TOPICS}/{name}")

    def has_later_epochs(self, row: Row) -> bool:
        """Whether a replica has a log of an earlier topic with this name, with records of later leader epochs than the
        stored one."""
        for broker_id, key in self.stale_logs.get(row.key[0], ()):
            log = self.log(broker_id, key) if key == row.key and broker_id in row.replicas else None
            if log is not None and any(record.leader_epoch > row.leader_epoch for record in log.records):
                return True
        return False

    def log(self, broker_id: int, key: TopicPartition) -> Log | None:
        """A broker's log of a partition, if it belongs to the current topic."""
        broker = self._simulation.brokers.get(broker_id)
        log = None if broker is None else broker.model.disks.logs.get(key)
        if log is None:
            return None
        known = self._simulation.ensemble.topic_ids.get(key[0], NO_ID)
        return None if NO_ID not in (known, log.topic_id) and known != log.topic_id else log

    def logs(self, key: TopicPartition) -> list[tuple[int, Log]]:
        """All logs of a partition, by broker."""
        result = ((broker, self.log(broker, key)) for broker in self._simulation.brokers)
        return [(broker_id, log) for broker_id, log in result if log is not None]

    def missing(self, key: TopicPartition, log: Log | None, until: float = float("inf")) -> Promise | None:
        """A promise of a leader epoch up to ``until`` that a log lacks. None if the log has all of them."""
        for promise in self.promises.get(key, ()):
            if promise.leader_epoch <= until and not holds(log, promise.offset, promise.value):
                return promise
        return None

    def count_losses(self) -> None:
        """At rest, count the acknowledged records. Those that their leader's log lacks are lost."""
        counts, rows = self._simulation.counts, self._simulation.ensemble.rows
        for key, topic_number, acks, record, offset in self.acknowledged:
            if topic_number == self.topic_numbers[key[0]] and key in rows and self.watched(key):
                counts[f"retained, acks={acks}"] += 1
                counts[f"lost, acks={acks}"] += not holds(self.log(rows[key].leader, key), offset, record.value)


def holds(log: Log | None, offset: int, value: object) -> bool:
    """Whether a log has this value at this offset."""
    return log is not None and offset < log.end and log.records[offset].value == value


def follows(committed: Committed, record: Record) -> bool:
    """Whether an idempotent producer's record follows all its earlier records. Updates the last sequence."""
    if UNDEFINED in (record.producer_id, record.sequence):
        return True
    now = record.producer_epoch, record.sequence
    before = committed.sequences.get(record.producer_id, (UNDEFINED, UNDEFINED))
    committed.sequences[record.producer_id] = now
    return now > before
