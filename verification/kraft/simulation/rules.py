"""What every record of a controller must satisfy, given those before it.

The names are those of ``docs/reference/invariants.md`` where the rule is the same in both modes; rules of KRaft alone
begin with K.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final
from uuid import UUID

from kframe.plugin.kraft import records
from kframe.plugin.kraft_controller import Release
from verification.kraft.simulation.changes import (
    LAST_KNOWN_ACTIVE,
    Outlook,
    PartitionChange,
    leaderless_problems,
    outlook_of,
)
from verification.kraft.simulation.completion import TargetState
from verification.kraft.simulation.history import WrittenBatch
from verification.kraft.simulation.image import ELR_FEATURE, Image, PartitionKey, PartitionState, merged
from verification.kraft.simulation.options import Options

#: The release since which assignments to cordoned brokers are refused.
_CORDONED_REFUSED: Final = Release(4, 4)
#: The release since which a new process leaves the ISRs and leaderships of the former one.
_RESTART_LEAVES_ISRS: Final = Release(4, 0)


class LogRules:
    """Checks batches in the order of the log. ``image`` is the metadata after the last one."""

    def __init__(self, options: Options, *, is_unclean_requested: bool = False) -> None:
        """``is_unclean_requested``: an administrator has asked for unclean elections, which need no setting."""
        self.image = Image(refuses_cordoned=options.release >= _CORDONED_REFUSED)
        self._options = options
        self.unclean: set[PartitionKey] = set()
        """Partitions that have had a leader outside the ISR: records may be lost."""
        self.is_unclean_requested = is_unclean_requested
        self.elections: list[tuple[int, bool]] = []
        """Elections outside the ISR: the offset, and whether the leader was in the ELR."""
        self._ids: set[UUID] = set()
        self._broker_epochs: dict[int, int] = {}
        self._changed: dict[PartitionKey, records.PartitionChangeRecord] = {}
        """The changes of the batch so far. Two parts of a decision may both have the same change."""
        self._outlook: Outlook = outlook_of(self.image, ())
        self._end = 0
        self._epoch = 0

    def check(self, batch: WrittenBatch) -> Iterator[str]:
        """Apply a batch. Yields what it breaks."""
        if batch.base != self._end:
            yield f"K1: a batch begins at {batch.base}, the log ends at {self._end}"
        if batch.epoch < self._epoch:
            yield f"K1: epoch {batch.epoch} follows {self._epoch}"
        self._end, self._epoch = batch.end, batch.epoch
        self._changed, self._outlook = {}, outlook_of(self.image, batch.records)
        for number, record in enumerate(batch.records):
            for problem in self._check(record, batch.base + number):
                yield f"{problem} (offset {batch.base + number}, {record})"
            self.image.apply(record)
        yield from leaderless_problems(self.image, self._outlook, self._options.release)

    def _check(self, record: records.MetadataRecord, offset: int) -> Iterator[str]:
        match record:
            case records.TopicRecord():
                yield from self._topic(record)
            case records.PartitionRecord():
                yield from self._new_partition(record)
            case records.PartitionChangeRecord():
                yield from self._change(record, offset)
            case records.RegisterBrokerRecord():
                yield from self._registration(record, offset)
            case records.BrokerRegistrationChangeRecord():
                yield from self._broker_change(record)
            case records.ProducerIdsRecord():
                if record.next_producer_id <= self.image.next_producer_id:
                    yield "K2: a block of producer ids is not after the last one"
            case records.FeatureLevelRecord(name="metadata.version"):
                if record.feature_level < self.image.features.get(record.name, 0):
                    yield "K3: metadata.version falls"
            case records.UnregisterBrokerRecord():
                yield from self._no_roles(record.broker_id, "an unregistered broker")

    def _topic(self, record: records.TopicRecord) -> Iterator[str]:
        if record.name in self.image.topics:
            yield "I20: a topic of this name exists"
        if record.topic_id in self._ids:
            yield "I20: the topic id was used before"
        self._ids.add(record.topic_id)

    def _new_partition(self, record: records.PartitionRecord) -> Iterator[str]:
        number = sum(1 for _ in self.image.partitions_of(record.topic_id))
        if record.partition_id != number:
            yield f"I23: the topic has {number} partitions"
        state = PartitionState(record.replicas, record.isr, record.leader, 0, 0)
        yield from self._lists(state)
        if record.leader_epoch or record.partition_epoch:
            yield "I8: a new partition begins with epochs 0"
        if record.leader not in record.isr or not self._is_active(record.leader):
            yield "I4: the first leader is not an active member of the ISR"
        if not all(self._is_active(member) for member in record.isr):
            yield "I5: the first ISR has a broker that is not active"

    def _change(self, record: records.PartitionChangeRecord, offset: int) -> Iterator[str]:
        key = record.topic_id, record.partition_id
        before = self.image.partitions.get(key)
        if before is None:
            yield "K4: the partition does not exist"
            return
        after = merged(before, record)
        is_repeated = self._changed.get(key) == record
        self._changed[key] = record
        if (
            not is_repeated
            and replace(after, leader_epoch=before.leader_epoch, partition_epoch=before.partition_epoch) == before
        ):
            yield "I28: the record changes nothing"
        if not is_repeated:
            yield from PartitionChange(
                self._options, self.image, self._outlook, key[0], before, after, record
            ).problems()
        yield from self._lists(after)
        yield from self._elr(record.topic_id, before, after)
        yield from self._reassignment(before, after)
        if record.leader not in (records.NO_LEADER_CHANGE, -1):
            if record.leader not in before.isr:
                self.elections.append((offset, record.leader in before.elr))
            yield from self._election(key, before, after)
        elif not set(after.isr) <= set(before.isr):
            joined = set(after.isr) - set(before.isr)
            if after.leader < 0 and after.isr == after.replicas[:1] and (before.adding or before.removing):
                joined = set()  # A cancellation without a member of the ISR, where unclean elections are allowed.
                self.unclean.add(key)
            if not all(self._is_active(member) for member in joined):
                yield "I5: a broker that is not active joins the ISR"

    def _election(self, key: PartitionKey, before: PartitionState, after: PartitionState) -> Iterator[str]:
        leader, broker = after.leader, self.image.brokers.get(after.leader)
        is_last_known = not before.isr and not after.elr and before.last_known_elr == (leader,)
        if is_last_known and self._options.release < LAST_KNOWN_ACTIVE:
            pass  # It is elected in any case.
        elif broker is None or not broker.is_active:
            yield "I4: the new leader is not active"
        elif not broker.has_online(after.directory_of(leader)):
            yield "I4: the log directory of the new leader is offline"
        # A proposal that completes a reassignment may also move the leadership, to a replica that joins the ISR.
        completes = after.replicas != before.replicas and not (after.adding or after.removing)
        if leader not in {*before.isr, *before.elr} and not completes:
            self.unclean.add(key)
            is_allowed = self.is_unclean_requested or self.image.is_unclean(key[0])
            if not is_allowed and not is_last_known:
                yield "I6: the new leader was not in the ISR"
            if after.isr != (leader,) or not after.recovery:
                yield "I7: a leader from outside the ISR leads alone, and recovers"

    def _lists(self, state: PartitionState) -> Iterator[str]:
        """I5 and I4 of one state."""
        replicas = set(state.replicas)
        if len(replicas) != len(state.replicas) or not replicas:
            yield "I5: the replicas are none, or repeat"
        if len(set(state.isr)) != len(state.isr) or not set(state.isr) <= replicas:
            yield "I5: the ISR has others than the replicas, or repeats"
        if not state.isr and not self._elr_enabled:
            yield "I5: the ISR is empty"
        if state.leader != -1 and state.leader not in state.isr:
            yield "I4: the leader is not in the ISR"
        if not {*state.adding, *state.removing} <= replicas:
            yield "I21: replicas are added or removed that are none"

    @property
    def _elr_enabled(self) -> bool:
        return self.image.features.get(ELR_FEATURE, 0) > 0

    def _elr(self, topic_id: UUID, before: PartitionState, state: PartitionState) -> Iterator[str]:
        elr = set(state.elr)
        if (elr or state.last_known_elr) and not self._elr_enabled:
            yield "K5: an ELR without the feature"
        if elr & set(state.isr):
            yield "K5: a broker is in the ISR and in the ELR"
        if not elr <= {*before.isr, *before.elr}:
            yield "K5: a broker joins the ELR that was not in the ISR"
        if not elr <= set(state.replicas):
            yield "K5: the ELR has others than the replicas"
        # An election from the ELR comes after the ELR was determined.
        is_elected = state.leader in before.elr and state.isr == (state.leader,)
        if elr and not is_elected and len(state.isr) >= self._outlook.min_isr[topic_id]:
            yield "K5: an ELR although the ISR has min.insync.replicas"

    def _reassignment(self, before: PartitionState, after: PartitionState) -> Iterator[str]:
        """I21, I22: replicas change only to begin, to complete and to cancel a reassignment."""
        changing = before.adding or before.removing
        if after.replicas == before.replicas and (after.adding, after.removing) == (before.adding, before.removing):
            return
        if after.adding or after.removing:
            origin = set(before.replicas) - set(before.adding)
            if not origin <= set(after.replicas):
                yield "I22: a replica of the origin leaves before the targets are in sync"
            return
        target = set(before.replicas) - set(before.removing)
        origin = set(before.replicas) - set(before.adding)
        if not changing:
            if not set(after.replicas) <= set(before.replicas):
                yield "I21: replicas join without being added"
        elif set(after.replicas) == target != origin:
            members = {*after.isr, *(() if after.isr == (after.leader,) else before.isr)}
            state = TargetState(before.replicas, tuple(members), before.adding, before.removing)
            if not state.is_complete(self._options.release):
                yield "I22: the reassignment completes before its replicas are in sync"
        # Another request may complete at once, with replicas that are in sync already.
        elif set(after.replicas) != origin and not set(after.replicas) < set(before.replicas):
            yield "I21: the replicas are neither the target nor the origin"

    def _registration(self, record: records.RegisterBrokerRecord, offset: int) -> Iterator[str]:
        former = self.image.brokers.get(record.broker_id)
        if former is not None and former.incarnation_id == record.incarnation_id:
            if former.broker_epoch != record.broker_epoch:
                yield "I16: the broker epoch of a process changes"
            return
        if record.broker_epoch <= self._broker_epochs.get(record.broker_id, -1) or record.broker_epoch > offset:
            yield "I16: the broker epoch of a new process is not above all former ones"
        self._broker_epochs[record.broker_id] = record.broker_epoch
        if not record.fenced:
            yield "I16: a new process is not fenced"
        if self._options.release >= _RESTART_LEAVES_ISRS:
            yield from self._no_roles(record.broker_id, "the former process of a broker")

    def _broker_change(self, record: records.BrokerRegistrationChangeRecord) -> Iterator[str]:
        broker = self.image.brokers.get(record.broker_id)
        if broker is None or broker.broker_epoch != record.broker_epoch:
            yield "I16: the registration has another epoch"
            return
        if record.fenced == records.FencingChange.FENCE:
            yield from self._no_roles(record.broker_id, "a fenced broker")
        if record.fenced == records.FencingChange.UNFENCE and not broker.fenced:
            yield "I28: the broker is not fenced"

    def _no_roles(self, broker_id: int, subject: str) -> Iterator[str]:
        if self._options.release < LAST_KNOWN_ACTIVE and self._elr_enabled:
            return  # An inactive last-known leader may lead.
        for state in self.image.partitions.values():
            if state.leader == broker_id:
                yield f"I4: {subject} leads"
            if broker_id in state.isr and (len(state.isr) > 1 or self._elr_enabled):
                yield f"I5: {subject} is in an ISR with others"

    def _is_active(self, broker_id: int) -> bool:
        broker = self.image.brokers.get(broker_id)
        return broker is not None and broker.is_active
