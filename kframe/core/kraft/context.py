"""Input of the KRaft rules: metadata, broker heartbeats, static settings and a random source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kframe.core.kraft.brokers.heartbeats import Heartbeats
from kframe.core.kraft.controller_result import DecisionPart, RequestRefused
from kframe.core.kraft.random_source import RandomSource
from kframe.core.kraft.replay import replay
from kframe.core.kraft.replication.change_batch import PartitionChangeBatch
from kframe.core.kraft.replication.leader_selection import BuiltinSelection, LeaderSelection
from kframe.core.kraft.replication.replay import replay_change_batch
from kframe.core.kraft.topics.replay import replay_new_partitions
from kframe.core.mutation_quotas import MutationQuotas
from kframe.errors import ErrorCode
from kframe.model.arrays import Int32, UInt8
from kframe.model.kraft.brokers import BrokerRegistration
from kframe.model.kraft.ids import ResourceType
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.records import MetadataRecord, PartitionRecord
from kframe.model.kraft.releases import LATEST_RELEASE, Release, ReleaseRule, has_rule, supported_features
from kframe.model.kraft.topics import MIN_INSYNC_REPLICAS, UNCLEAN_ELECTION, UNSET, parse_min_isr, parse_unclean
from kframe.model.row_views import values_at

#: The feature levels that a controller of the latest release supports.
SUPPORTED_FEATURES: Final = supported_features(LATEST_RELEASE)


@dataclass(frozen=True, slots=True)
class KraftSettings:
    """Static settings of the controller, by Kafka's keys."""

    cluster_id: str = ""
    node_id: int = 0
    quorum_ids: tuple[int, ...] = ()
    """The voters of the static list."""
    min_insync_replicas: int = 1
    unclean_leader_election_enable: bool = False
    default_replication_factor: int = 3
    num_partitions: int = 1
    max_elections: int = 1_000
    """Most elections of one pass of a timer."""
    release: Release = LATEST_RELEASE
    """The release of Kafka that the controllers run."""
    validates_configs: bool = False
    """Whether values of configurations are checked. Kafka's classes leave that to a validator of the server."""
    ends_sessions_at_shutdown: bool = False
    """Whether the session of a broker ends when it may shut down, so that its next process registers at once. Kafka 4
    makes it wait for the session timeout."""
    strict: bool = False
    """Whether a replica that leaves a partition leaves its ELR, too. Kafka 4.4 keeps it there, and may elect it once it
    is added again, although it has no records yet."""
    supported_features: Mapping[str, tuple[int, int]] = field(default_factory=lambda: SUPPORTED_FEATURES)
    static_configs: Mapping[str, str] = field(default_factory=dict)
    """The controller's own file of settings, which gives topics their defaults."""


@dataclass(slots=True)
class KraftContext:
    """The state of an active controller."""

    metadata: ClusterMetadata
    heartbeats: Heartbeats
    settings: KraftSettings
    random: RandomSource
    now_ns: int = 0
    """The time of a monotonic clock, which the caller sets before each event."""
    selection: LeaderSelection = field(default_factory=BuiltinSelection)
    """Chooses leaders."""
    mutation_quotas: MutationQuotas = field(default_factory=MutationQuotas)
    """What clients may still create and delete."""
    consulted: set[ReleaseRule] = field(default_factory=set)
    """The rules by release that decided something: releases without one of them decide otherwise."""

    @property
    def level(self) -> int:
        """The level of ``metadata.version``."""
        return self.metadata.metadata_version

    def follows(self, rule: ReleaseRule) -> bool:
        """Whether the release has a rule, where that changes the decision. Adds the rule to ``consulted``."""
        self.consulted.add(rule)
        return has_rule(self.settings.release, rule)

    def replay(self, record: MetadataRecord, offset: int) -> None:
        """Apply a record of the log to the metadata and the heartbeats."""
        replay(self.metadata, record, offset)
        self.heartbeats.replay(self.metadata, record)

    def apply(self, part: DecisionPart, offset: int) -> int:
        """Apply a part of a decision; ``offset`` is that of its first record. Returns the number of records."""
        if isinstance(part, PartitionChangeBatch):
            replay_change_batch(part)
            return part.count
        self.replay(part.record, offset)
        return 1

    def apply_new_partitions(self, new: Sequence[PartitionRecord]) -> None:
        """Apply the records of partitions that a decision creates."""
        replay_new_partitions(self.metadata, new)

    def registration(self, broker_id: int, broker_epoch: int) -> BrokerRegistration:
        """A broker's registration. Raises RequestRefused unless it has this epoch."""
        registration = self.metadata.brokers.registrations.get(broker_id)
        if registration is None or registration.broker_epoch != broker_epoch:
            expected = "no registration" if registration is None else f"broker epoch {registration.broker_epoch}"
            message = f"Broker {broker_id} has {expected}, but the request has broker epoch {broker_epoch}."
            raise RequestRefused(ErrorCode.STALE_BROKER_EPOCH, message)
        return registration

    def min_isr(self, rows: NDArray[np.int32]) -> Int32:
        """(k,) effective ``min.insync.replicas`` of each row: at most the replicas of partition 0."""
        topic = values_at(self.metadata.partitions.topic, rows)
        # Rows of a topic mostly follow each other: only the first of them is searched for.
        starts = np.flatnonzero(np.append(True, topic[1:] != topic[:-1])[: len(topic)])
        topics, position = np.unique(topic[starts], return_inverse=True)
        factor = self.metadata.partitions.replica_count[self.metadata.topics.first_rows(topics)]
        minimum: Int32 = np.minimum(self.configured_min_isr(topics), factor).astype(np.int32)[position]
        return np.repeat(minimum, np.diff(starts, append=len(topic)))

    def configured_min_isr(self, topics: NDArray[np.int32]) -> Int32:
        """(t,) ``min.insync.replicas`` of topics by index.

        The topic's setting precedes those of the active controller's node, of the cluster and of its own file.
        """
        value = parse_min_isr(self._node_config(MIN_INSYNC_REPLICAS))
        fallback = self.settings.min_insync_replicas if value == UNSET else value
        configured = self.metadata.topics.min_isr[topics]
        minimum: Int32 = np.where(configured == UNSET, fallback, configured).astype(np.int32)
        return minimum

    def unclean_enabled(self, rows: NDArray[np.int32]) -> UInt8:
        """(k,) 1 where ``unclean.leader.election.enable`` holds."""
        value = self._node_config(UNCLEAN_ELECTION)
        fallback = self.settings.unclean_leader_election_enable if value is None else parse_unclean(value)
        by_topic = self.metadata.topics.unclean
        if bool((by_topic == UNSET).all()):  # most clusters: the topics of the rows need not be read
            return np.full(len(rows), fallback, np.uint8)
        configured = by_topic[self.metadata.partitions.topic[rows]]
        return np.where(configured == UNSET, fallback, configured == 1).astype(np.uint8)

    def _node_config(self, key: str) -> str | None:
        configs = self.metadata.configs
        for name in (str(self.settings.node_id), ""):
            value = configs.get((ResourceType.BROKER, name), {}).get(key)
            if value is not None:
                return value
        return None
