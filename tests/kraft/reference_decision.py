"""KRaft's decision for one partition as a plain function over lists, for comparison with the columns.

The steps are those of Kafka 4.4 ``PartitionChangeBuilder.build``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from kframe.model.ids import NO_LEADER, RecoveryState
from kframe.model.kraft.ids import KraftElection, MetadataLevel
from kframe.model.kraft.records import Ids, PartitionChangeRecord, PartitionRecord


@dataclass(slots=True)
class Decision:
    """The input of a decision. Targets without a change equal the stored state."""

    stored: PartitionRecord
    kind: KraftElection
    min_isr: int
    level: int
    elr_enabled: bool
    is_acceptable: Callable[[int], bool]
    isr: Ids
    replicas: Ids
    directories: tuple[UUID, ...]
    adding: Ids
    removing: Ids
    recovery: int
    unclean_broker: int = -1
    elr: Ids = ()
    fields: dict[str, Any] = field(default_factory=dict)

    def build(self) -> PartitionChangeRecord | None:
        """The record, or None if nothing changes."""
        self.elr = self.stored.eligible_leader_replicas or ()
        self._complete_reassignment()
        self._update_elr()
        unclean = self._elect()
        if "leader" not in self.fields and not set(self.stored.replicas) <= set(self.replicas):
            self.fields["leader"] = self.stored.leader
        if unclean or not self.elr_enabled:
            self.elr = ()
        if set(self.elr) != set(self.stored.eligible_leader_replicas or ()):
            self.fields["eligible_leader_replicas"] = tuple(sorted(self.elr))
        if not unclean and (self.isr or self.elr_enabled) and self.isr != self.stored.isr:
            self.fields["isr"] = self.isr
        shrinks = "isr" in self.fields and not set(self.stored.isr) <= set(self.fields["isr"])
        if "leader" not in self.fields and shrinks and self.level < MetadataLevel.NO_EPOCH_BUMP_ON_SHRINK:
            self.fields["leader"] = self.stored.leader
        self._update_last_known()
        self._store_assignment()
        if self.recovery != self.stored.leader_recovery_state:
            self.fields["leader_recovery_state"] = self.recovery
        if not self.fields:
            return None
        return PartitionChangeRecord(
            partition_id=self.stored.partition_id, topic_id=self.stored.topic_id, **self.fields
        )

    def _complete_reassignment(self) -> None:
        if not (self.adding or self.removing):
            return
        isr = tuple(member for member in self.isr if member not in self.removing)
        replicas = tuple(replica for replica in self.replicas if replica not in self.removing)
        if self.removing and not (isr and replicas):
            return
        if not set(self.adding) <= set(isr):
            return
        if len(self.adding) < len(self.removing) and not set(replicas) <= set(isr):
            return
        directory = dict(zip(self.replicas, self.directories, strict=True))
        self.isr, self.replicas, self.adding, self.removing = isr, replicas, (), ()
        self.directories = tuple(directory[replica] for replica in replicas)

    def _update_elr(self) -> None:
        if not self.elr_enabled:
            return
        members = {*self.elr, *self.stored.isr} - {*self.isr, self.unclean_broker}
        self.elr = () if len(self.isr) >= self.min_isr else tuple(members)

    def _elect(self) -> bool:
        """Write the leader; return whether the election is unclean."""
        leader, unclean = self._choose()
        if leader == self.stored.leader:
            return False
        self.fields["leader"] = leader
        if leader in self.elr:
            self.isr, self.elr = (leader,), tuple(set(self.elr) - {leader})
        if unclean:
            self.fields["isr"] = (leader,)
            if self.stored.leader_recovery_state != RecoveryState.RECOVERING:
                self.fields["leader_recovery_state"] = int(RecoveryState.RECOVERING)
        return unclean

    def _choose(self) -> tuple[int, bool]:
        candidates = [self.stored.leader, *self.replicas]
        if self.kind is KraftElection.PREFERRED:
            candidates = [*self.replicas[:1], *candidates]
        for candidate in candidates:
            if candidate in (self.isr or self.elr) and self.is_acceptable(candidate):
                return candidate, False
        last_known = self.stored.last_known_elr or ()
        uses_last_known = self.elr_enabled and not self.isr and not self.elr and len(last_known) == 1
        if uses_last_known and self.is_acceptable(last_known[0]):
            return last_known[0], True
        if self.kind is KraftElection.UNCLEAN:
            for replica in self.replicas:
                if self.is_acceptable(replica):
                    return replica, True
        return NO_LEADER, False

    def _update_last_known(self) -> None:
        leader, stored = self.fields.get("leader"), self.stored.last_known_elr or ()
        if not self.elr_enabled or leader is None:
            return
        if leader == NO_LEADER and not stored:
            self.fields["last_known_elr"] = (self.stored.leader,)
        elif leader != NO_LEADER and stored:
            self.fields["last_known_elr"] = ()

    def _store_assignment(self) -> None:
        if self.replicas:
            if self.level >= MetadataLevel.DIRECTORIES and self.directories != self.stored.directories:
                self.fields["directories"] = self.directories
            if self.replicas != self.stored.replicas:
                self.fields["replicas"] = self.replicas
        if self.removing != self.stored.removing_replicas:
            self.fields["removing_replicas"] = self.removing
        if self.adding != self.stored.adding_replicas:
            self.fields["adding_replicas"] = self.adding
