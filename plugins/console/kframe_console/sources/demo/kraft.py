"""An embedded KRaft cluster: the controller with a log in memory, and brokers that send what Kafka's brokers send."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import Final
from uuid import UUID

import numpy as np

from kframe.plugin import Int32, Ragged
from kframe.plugin.cluster import ElectionType
from kframe.plugin.controller import KraftController, KraftControllerBuilder
from kframe.plugin.kraft import ClusterMetadata, ControllerResult, DecisionPart, KraftContext
from kframe.plugin.kraft import directories as directory_indexes
from kframe.plugin.kraft_controller import broker_events, directory_assignments, isr_proposals
from kframe.plugin.server import NewTopic
from kframe.plugin.snapshot import Snapshot, Source
from kframe_console.sources.demo.cluster import DIRECTORIES, DemoCluster, refusal_of

_CONTROLLER_ID: Final = 3000
_CONFIG: Final = {"min.insync.replicas": "2"}
#: Most partitions of an event, so that other events need not wait.
_PARTITIONS_MAX: Final = 2_000
#: Heartbeats after which a broker no longer waits for the end of its controlled shutdown.
_HEARTBEATS_MAX: Final = 5


class KraftDemo(DemoCluster):
    """See DemoCluster."""

    mode = "kraft"

    def __init__(self, brokers: int, directories: int = DIRECTORIES) -> None:
        super().__init__(brokers)
        self._directories: Final = {
            broker_id: tuple(UUID(int=broker_id << 64 | number + 1 << 8) for number in range(directories))
            for broker_id in self.broker_ids
        }
        #: With a single directory, the controller assigns new replicas to it.
        self._has_several_directories: Final = directories > 1
        self._failed: dict[int, set[UUID]] = {broker_id: set() for broker_id in self.broker_ids}
        #: The epochs of the brokers whose process runs, and the brokers whose heartbeats are lost.
        self._running: dict[int, int] = {}
        self._unreachable: set[int] = set()
        self._clean_shutdowns: set[int] = set()
        self._controller: KraftController = KraftControllerBuilder(_CONTROLLER_ID, "kraft-memory:", _CONFIG).build()
        self.controllers = (self._controller,)

    @property
    def version(self) -> int:
        """See DemoCluster."""
        return self._controller.quorum.log_end

    def start(self) -> None:
        """See DemoCluster."""
        self._controller.start()
        for broker_id in self.broker_ids:
            self.start_broker(broker_id)

    def snapshot(self) -> Snapshot:
        """See DemoCluster."""
        quorum = self._controller.quorum

        def read(metadata: ClusterMetadata) -> Snapshot:
            return Snapshot.from_metadata(
                metadata,
                source=Source("demo", "demo"),
                cluster_id="kframe-demo",
                controller_id=quorum.node_id,
                controller_epoch=quorum.details()["controller_epoch"],
                offset=quorum.log_end - 1,
                voters=(quorum.node_id,),
            )

        return self._controller.inspect(read).result()

    def create_topic(self, name: str, partitions: int) -> str:
        """See DemoCluster."""
        topic = NewTopic(name, partitions, self.replication_factor)
        created = self._controller.create_topics([topic]).result()
        brokers = self._running.items() if self._has_several_directories else ()
        for broker_id, epoch in brokers:
            report = partial(_report_directories, broker_id, epoch, self._online(broker_id))
            while self._controller.submit(report).result():
                pass
        return refusal_of(created, name)

    def start_broker(self, broker_id: int) -> None:
        """See DemoCluster. The heartbeats of a fenced process arrive again; a new process registers."""
        if broker_id in self._unreachable:
            self._unreachable.discard(broker_id)
            self._heartbeat(broker_id)
        if broker_id in self._running:
            return
        rack, clean = self.rack_of(broker_id), broker_id in self._clean_shutdowns
        self._failed[broker_id].clear()
        registered = self._controller.register_broker(
            broker_id, rack, clean=clean, directories=self._directories[broker_id]
        )
        self._running[broker_id] = registered.result()
        self._clean_shutdowns.discard(broker_id)

    def kill_broker(self, broker_id: int) -> None:
        """See DemoCluster."""
        if self._running.pop(broker_id, None) is not None:
            self._unreachable.discard(broker_id)
            self._controller.fence_broker(broker_id).result()

    def shut_down_broker(self, broker_id: int) -> None:
        """See DemoCluster."""
        if broker_id not in self._reachable():
            return
        for _ in range(_HEARTBEATS_MAX):
            for other in self._reachable():
                if other != broker_id:
                    self._heartbeat(other)
            if self._heartbeat(broker_id, want_shut_down=True):
                break
        del self._running[broker_id]
        self._controller.fence_broker(broker_id).result()
        self._clean_shutdowns.add(broker_id)

    def fence_broker(self, broker_id: int) -> None:
        """See DemoCluster."""
        if broker_id in self._running:
            self._unreachable.add(broker_id)
            self._controller.fence_broker(broker_id).result()

    def fail_directory(self, broker_id: int) -> None:
        """See DemoCluster."""
        online = self._online(broker_id)
        if broker_id not in self._reachable():
            return
        self._failed[broker_id].add(online[0])
        if len(online) == 1:
            self.kill_broker(broker_id)
        else:
            self._heartbeat(broker_id)

    def catch_up(self) -> None:
        """See DemoCluster."""
        while self._controller.submit(_propose_isrs).result():
            pass

    def elect_leaders(self, election_type: ElectionType) -> None:
        """See DemoCluster."""
        self._controller.elect_leaders(election_type).result()

    def _reachable(self) -> list[int]:
        return [broker_id for broker_id in self._running if broker_id not in self._unreachable]

    def _online(self, broker_id: int) -> tuple[UUID, ...]:
        failed = self._failed[broker_id]
        return tuple(directory for directory in self._directories[broker_id] if directory not in failed)

    def _heartbeat(self, broker_id: int, *, want_shut_down: bool = False) -> bool:
        """Send a heartbeat. Returns whether the broker may shut down."""
        quorum, epoch, failed = self._controller.quorum, self._running[broker_id], tuple(self._failed[broker_id])

        def event(context: KraftContext) -> ControllerResult[bool]:
            registration = context.metadata.brokers.registrations[broker_id]
            offset = max(quorum.log_end, registration.offset)
            beat = broker_events.BrokerHeartbeat(
                broker_id, epoch, offset, want_shut_down=want_shut_down, offline_directories=failed
            )
            decided = broker_events.handle_heartbeat(context, beat, quorum.log_end)
            return ControllerResult(decided.parts, decided.response.should_shut_down)

        return self._controller.submit(event).result()


def _report_directories(
    broker_id: int, broker_epoch: int, directory_ids: tuple[UUID, ...], context: KraftContext
) -> ControllerResult[bool]:
    """Assign some new replicas of a broker to its directories. The response is whether there may be more."""
    metadata = context.metadata
    p, topics = metadata.partitions, metadata.topics
    rows = np.flatnonzero(p.topic >= 0)
    replicas, directories = p.lists("replica", rows), p.lists("directory", rows)
    broker = metadata.brokers.find(broker_id)
    is_new = (replicas.values == broker) & (directories.values == directory_indexes.UNASSIGNED)
    new = np.flatnonzero(is_new)[:_PARTITIONS_MAX]
    assignments = [
        directory_assignments.DirectoryAssignment(
            directory_ids[int(p.partition[row]) % len(directory_ids)],
            topics.ids[int(p.topic[row])],
            int(p.partition[row]),
        )
        for row in rows[replicas.owners[new]].tolist()
    ]
    decided = directory_assignments.assign_directories(context, broker_id, broker_epoch, assignments)
    return ControllerResult(decided.parts, len(new) == _PARTITIONS_MAX)


def _propose_isrs(context: KraftContext) -> ControllerResult[bool]:
    """Leaders propose all replicas that are online. The response is whether there may be more."""
    metadata = context.metadata
    p, brokers, topics = metadata.partitions, metadata.brokers, metadata.topics
    rows, members = _short_isrs(metadata)
    proposals: dict[int, list[isr_proposals.KraftIsrProposal]] = defaultdict(list)
    for position, row in enumerate(rows[:_PARTITIONS_MAX].tolist()):
        proposal = isr_proposals.KraftIsrProposal(
            topics.ids[int(p.topic[row])],
            int(p.partition[row]),
            tuple((broker_id, isr_proposals.UNKNOWN_EPOCH) for broker_id in brokers.ids_of(members[position])),
            int(p.leader_epoch[row]),
            int(p.partition_epoch[row]),
        )
        proposals[int(brokers.ids[p.leader[row]])].append(proposal)
    parts: list[DecisionPart] = []
    for leader, leader_proposals in sorted(proposals.items()):
        epoch = brokers.registrations[leader].broker_epoch
        parts += isr_proposals.alter_partitions(context, leader, epoch, leader_proposals).parts
    return ControllerResult(parts, bool(parts) and len(rows) > _PARTITIONS_MAX)


def _short_isrs(metadata: ClusterMetadata) -> tuple[Int32, Ragged]:
    """The partitions with a leader and more online replicas than in-sync ones, and their online replicas."""
    p = metadata.partitions
    rows = np.flatnonzero((p.topic >= 0) & (p.leader >= 0) & (p.isr_count < p.replica_count)).astype(np.int32)
    replicas, directories = p.lists("replica", rows), p.lists("directory", rows)
    owners = metadata.directories.brokers[directories.values]
    has_directory = (directories.values < directory_indexes.LOST) | (owners == replicas.values)
    online = replicas.keep(has_directory & (metadata.brokers.active[replicas.values] == 1))
    short = np.flatnonzero(online.counts > p.isr_count[rows])
    return rows[short], online.take(short)
