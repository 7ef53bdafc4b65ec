"""What follows from the targets of a decision for a partition: a plain model of ``PartitionChangeBuilder`` (Kafka 4.4).

A record has the targets: replicas, ISR, recovery. Leader, leader epoch, ELR and last-known leader follow from them,
from the state before, and from the brokers that are active once the decision is applied.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from kframe.plugin.kraft import records
from kframe.plugin.kraft_controller import Release
from verification.kraft.simulation.image import ELR_FEATURE, BrokerState, Image, PartitionState
from verification.kraft.simulation.options import Options
from verification.kraft.simulation.selectors import Choice

#: The release since which an assignment of directories leaves the ELR as it is.
_ASSIGNMENT_KEEPS_ELR: Final = Release(4, 3)
#: The level since which a smaller ISR keeps the leader epoch.
_SHRINK_KEEPS_EPOCH: Final = 12
#: The release since which only an active last-known leader is elected.
LAST_KNOWN_ACTIVE: Final = Release(4, 1)
#: The release since which the last-known leader is stored when the leader is lost, not when the ISR becomes empty.
_LAST_KNOWN_WITH_LEADER: Final = Release(4, 1)
#: The lists of a record, and their names in a state.
_LISTS = (
    ("replicas", "replicas"),
    ("adding_replicas", "adding"),
    ("removing_replicas", "removing"),
    ("directories", "directories"),
)


@dataclass(frozen=True, slots=True)
class Outlook:
    """``brokers`` as they are once a batch is applied. ``restarted`` registers in it again, as a new process,
    or is unregistered. ``min_isr`` of each topic is that before the batch."""

    brokers: Mapping[int, BrokerState]
    restarted: frozenset[int]
    unfenced: frozenset[int]
    changes_features: bool
    min_isr: Mapping[UUID, int]

    def is_active(self, broker_id: int) -> bool:
        """Whether a broker may lead then."""
        broker = self.brokers.get(broker_id)
        return broker is not None and broker.is_active


def outlook_of(image: Image, batch: Sequence[records.MetadataRecord]) -> Outlook:
    """The outlook of the records of a batch."""
    after = Image(brokers=dict(image.brokers))
    restarted, unfenced = set(), set()
    for record in batch:
        match record:
            case records.RegisterBrokerRecord():
                former = after.brokers.get(record.broker_id)
                if former is None or former.incarnation_id != record.incarnation_id:
                    restarted.add(record.broker_id)
            case records.UnregisterBrokerRecord():
                restarted.add(record.broker_id)
            case records.BrokerRegistrationChangeRecord(fenced=records.FencingChange.UNFENCE):
                unfenced.add(record.broker_id)
        after.apply_to_brokers(record)
    changes_features = any(isinstance(record, records.FeatureLevelRecord) for record in batch)
    min_isr = {topic_id: image.min_isr(topic_id) for topic_id in image.topics.values()}
    return Outlook(after.brokers, frozenset(restarted), frozenset(unfenced), changes_features, min_isr)


@dataclass(frozen=True, slots=True)
class PartitionChange:
    """A change of a partition. ``image`` is the metadata before it."""

    options: Options
    image: Image
    outlook: Outlook
    topic_id: UUID
    before: PartitionState
    after: PartitionState
    record: records.PartitionChangeRecord

    def problems(self) -> Iterator[str]:
        """What does not follow from the targets."""
        if self.outlook.changes_features:
            return  # A new level of ELR clears and fills lists by rules of its own.
        yield from self._written()
        yield from self._leader()
        yield from self._epoch()
        if self.image.features.get(ELR_FEATURE, 0):
            yield from self._elr()
            yield from self._last_known()

    @property
    def _is_elected(self) -> bool:
        return self.after.leader >= 0 and self.after.leader != self.before.leader

    @property
    def _is_from_elr(self) -> bool:
        is_member = self._is_elected and self.after.leader in self.before.elr
        return is_member and self.after.isr == (self.after.leader,) and not self._cancels_isr

    @property
    def _cancels_isr(self) -> bool:
        """Whether a cancelled reassignment leaves no ISR: the first replica is the new one (Kafka 4.4
        ``PartitionReassignmentRevert``)."""
        before, after = self.before, self.after
        is_cancelled = bool(before.adding) and not ({*after.replicas} & {*before.adding} or after.adding)
        return is_cancelled and {*before.isr} <= {*before.adding} and after.isr == after.replicas[:1]

    @property
    def _is_unclean(self) -> bool:
        """A proposal that completes a reassignment may move the leadership to a replica that joins the ISR."""
        before, after = self.before, self.after
        is_outside = after.leader not in {*before.isr, *before.elr}
        completes = after.replicas != before.replicas and not (after.adding or after.removing)
        recovers = after.recovery > 0 or not completes
        return self._is_elected and is_outside and recovers and after.isr == (after.leader,)

    def can_lead(self, member: int) -> bool:
        """Whether a replica's broker is active, and its log directory online, before and after the decision."""
        brokers = self.image.brokers.get(member), self.outlook.brokers.get(member)
        if member not in self.after.replicas or not self.outlook.is_active(member):
            return False
        directories = {self.after.directory_of(member)}
        if member in self.before.replicas:
            directories.add(self.before.directory_of(member))
        return all(broker is not None and all(map(broker.has_online, directories)) for broker in brokers)

    def last_known_leader(self) -> int | None:
        """The last-known leader, if it leads because no replica is in the ISR or in the ELR.

        Kafka 4.0 elects it whether it is active or not.
        """
        before, options = self.before, self.options
        known = before.last_known_elr if self.image.features.get(ELR_FEATURE, 0) else ()
        if before.isr or set(before.elr) - self.outlook.restarted or len(known) != 1 or known == (-1,):
            return None
        if options.release < _ASSIGNMENT_KEEPS_ELR and self._may_be_assignment():
            return None
        return known[0] if options.release < LAST_KNOWN_ACTIVE or self.can_lead(known[0]) else None

    def in_order(self) -> tuple[int, ...]:
        """The replicas as the leader selector prefers them."""
        replicas = self.after.replicas
        return replicas[::-1] if self.options.choice is Choice.LAST else replicas

    def _written(self) -> Iterator[str]:
        """Lists are written where they differ."""
        record, before = self.record, self.before
        for name, field in _LISTS:
            if getattr(record, name) is not None and tuple(getattr(record, name)) == getattr(before, field):
                yield f"I28: {name} stay as they were, and are written"
        if record.isr is not None and record.isr == before.isr and not self._is_unclean:
            yield "I28: the ISR stays as it was, and is written"
        if record.eligible_leader_replicas is not None and set(record.eligible_leader_replicas) == set(before.elr):
            yield "I28: the ELR stays as it was, and is written"
        if record.last_known_elr is not None and record.last_known_elr == before.last_known_elr:
            yield "I28: the last-known leader stays as it was, and is written"

    def _leader(self) -> Iterator[str]:
        before, after, options = self.before, self.after, self.options
        if after.leader < 0:
            able = [member for member in after.isr or after.elr if self.can_lead(member)]
            if able:
                yield f"L1: {able} could lead"
            elif self.last_known_leader() is not None and not (after.isr or after.elr):
                yield f"L1: {before.last_known_elr} could lead"
            return
        is_moved = before.leader not in (-1, after.leader) and after.leader != after.replicas[0]
        if is_moved and before.leader in after.isr and self.can_lead(before.leader):
            yield "I6: the leader could stay"
        if not self._is_elected:
            return
        if self._is_unclean:
            able = [member for member in self.in_order() if self.can_lead(member)]
            last = self.last_known_leader()
            allowed = able[:1] if last is None else [last]
            is_chosen = options.choice in (Choice.FIRST, Choice.LAST) and options.release >= LAST_KNOWN_ACTIVE
            # Without the ELR, only a broker that restarted after an unclean shutdown.
            if last is not None and (is_chosen or before.elr):
                allowed += able[:1]
            if allowed and after.leader not in allowed:
                yield f"I6: {allowed[0]} should lead"
        elif self._is_from_elr:
            able = [member for member in self.in_order() if member in before.elr and self.can_lead(member)]
            if able and able[0] != after.leader:
                yield f"I6: {able[0]} of the ELR should lead"
        else:
            able = [member for member in self.in_order() if member in after.isr and self.can_lead(member)]
            if able and after.leader not in (able[0], after.replicas[0]):
                yield f"I6: {able[0]} of the ISR should lead"

    def _epoch(self) -> Iterator[str]:
        removed = set(self.before.replicas) - set(self.after.replicas)
        if self.image.features["metadata.version"] < _SHRINK_KEEPS_EPOCH:
            removed |= set(self.before.isr) - set(self.after.isr)
        expected = self.after.leader != self.before.leader or bool(removed)
        if (self.record.leader != records.NO_LEADER_CHANGE) != expected:
            yield f"I8: the leader epoch must {'rise' if expected else 'stay'}"

    def _elr(self) -> Iterator[str]:
        before, after, elr = self.before, self.after, set(self.after.elr)
        if self.options.release < _ASSIGNMENT_KEEPS_ELR and self._may_be_assignment():
            if elr:
                yield f"K5: the ELR is {after.elr} after an assignment of directories"
            return
        if list(after.elr) != sorted(after.elr):
            yield "K5: the ELR is not in order"
        known = {*before.isr, *before.elr} & set(before.replicas) & set(after.replicas)
        restarted = self.outlook.restarted
        if self._is_unclean or (not self._is_from_elr and len(after.isr) >= self.outlook.min_isr[self.topic_id]):
            if elr:
                yield "K5: an ELR that must be empty"
        elif self._is_from_elr:
            if not (set(before.elr) & known) - restarted - {after.leader} <= elr:
                yield "K5: the ELR has lost a replica"
        elif elr not in (known - set(after.isr), known - set(after.isr) - restarted):
            yield f"K5: the ELR is {sorted(elr)}, and not {sorted(known - set(after.isr))}"

    def _may_be_assignment(self) -> bool:
        """Whether a broker may have assigned a directory, also the stored one."""
        record = self.record
        is_emptied = record.isr is None and record.leader == records.NO_LEADER_CHANGE and not self.after.elr
        return record.replicas is None and (record.directories is not None or is_emptied)

    def _last_known(self) -> Iterator[str]:
        before, after = self.before, self.after
        expected = before.last_known_elr
        if self.record.last_known_elr == (-1,) and self.options.release < _LAST_KNOWN_WITH_LEADER:
            return  # The ISR becomes empty without a leader.
        if self.options.release < _LAST_KNOWN_WITH_LEADER:
            has_leader = before.leader >= 0 and self.record.leader != -1
            if self.record.isr == () and expected != (before.leader,):
                expected = (before.leader,)
            elif self.record.leader >= 0 or has_leader:
                expected = ()
        elif self.record.leader == -1 and not expected:
            expected = (before.leader,)
        elif self.record.leader >= 0:
            expected = ()
        if after.last_known_elr != expected:
            yield f"K5: the last-known leader is {after.last_known_elr}, and not {expected}"


def leaderless_problems(image: Image, outlook: Outlook, release: Release) -> Iterator[str]:
    """A broker that is unfenced leads the partitions that waited for it. In Kafka 4.0 each last-known leader does."""
    if not outlook.unfenced:
        return
    for (topic_id, number), state in image.partitions.items():
        if state.leader >= 0:
            continue
        waiting = outlook.unfenced & {*state.isr, *state.elr}
        if not (state.isr or state.elr) and len(state.last_known_elr) == 1:
            waiting = outlook.unfenced & {*state.last_known_elr}
            if release < LAST_KNOWN_ACTIVE and state.last_known_elr != (-1,):
                yield f"L1: {image.names[topic_id]}-{number} waited for its last-known leader: {state}"
        for member in waiting:
            if member in state.replicas and image.brokers[member].has_online(state.directory_of(member)):
                yield f"L1: {image.names[topic_id]}-{number} waited for broker {member}: {state}"
