"""A cluster in memory with the rules of Kafka's reassignments, and crashes at any call and append."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kframe.errors import ErrorCode
from kframe.model.events import ElectionType, TopicPartition
from kframe.model.tables import Targets
from kframe.plans.execute.entries import (
    Entry,
    ExecutedPartition,
    ExecutionLimits,
    ExecutionStarted,
    Goal,
    LogMove,
    RunEnded,
    UnhealthyPartitions,
)
from kframe.plans.execute.executor import Executor
from kframe.plans.execute.journal import Journal
from kframe.plans.execute.state import ExecutionState
from kframe.ports.administration import ConfigResource, DirectoryLog, LogDirectory
from kframe.snapshot.metadata import ClusterDescription, DescribedPartition, PartitionReassignment
from kframe.snapshot.snapshot import Snapshot

CLUSTER_ID: Final = "scripted"
#: The log directories of each broker. Logs are created in the first one, unless a request has named another.
PATHS: Final = ("/d0", "/d1", "/d2")
#: Observations after which a run of a test has failed.
ROUNDS_MAX: Final = 400


class Crash(BaseException):
    """The process ends here, as by kill -9."""


@dataclass
class Crashes:
    """Counts calls and appends, and crashes at one of them: before it takes effect, or after it."""

    crash_count: int | None = None
    after: bool = False
    count: int = 0

    def perform(self, effect: Callable[[], object]) -> None:
        """Count the call, and crash if its number is ``crash_count``."""
        self.count += 1
        if self.count != self.crash_count:
            effect()
            return
        if self.after:
            effect()
        raise Crash


class CrashingJournal(Journal):
    """A journal whose appends may crash: before they write, in the middle of a line, or after it."""

    crashes: Crashes

    def append(self, entry: Entry) -> None:
        if not hasattr(self, "crashes"):
            super().append(entry)
            return
        before = self.path.stat().st_size
        try:
            self.crashes.perform(lambda: super(CrashingJournal, self).append(entry))
        except Crash:
            if not self.crashes.after:
                self._tear(entry, before)
            raise

    def _tear(self, entry: Entry, before: int) -> None:
        super().append(entry)
        os.truncate(self.path, before + (self.path.stat().st_size - before) // 2)


@dataclass
class ScriptedPartition:
    """A partition; ``replicas`` are the target, then the removing ones."""

    replicas: list[int]
    isr: list[int]
    leader: int
    adding: set[int] = field(default_factory=set)
    removing: set[int] = field(default_factory=set)


@dataclass
class ScriptedLog:
    """The log directory of a replica, and that of its future log."""

    path: str
    future: str | None = None


class ScriptedCluster:
    """Implements ``Administration``. At a ``describe``, one replica of each moving partition catches up, and all future
    logs do."""

    def __init__(self, assignments: Mapping[TopicPartition, Sequence[int]], brokers: Collection[int]) -> None:
        self.live = set(brokers)
        self.registered = set(brokers)
        self.partitions = {
            name: ScriptedPartition(list(replicas), list(replicas), replicas[0])
            for name, replicas in assignments.items()
        }
        self.logs: dict[tuple[int, TopicPartition], ScriptedLog] = {}
        self.named: dict[tuple[int, TopicPartition], str] = {}
        """Log directories that were requested before the log exists."""
        self.offline: set[tuple[int, str]] = set()
        """Log directories that have failed, with their broker."""
        self.cordoned: set[tuple[int, str]] = set()
        self._update_logs()
        self.configs: dict[ConfigResource, dict[str, str]] = {}
        self.crashes = Crashes()
        self.cluster_id = CLUSTER_ID
        self.unthrottled: set[TopicPartition] = set()
        self.in_flight_max = 0
        self.catches_up = True
        self.waits_for_all = False
        """Whether a reassignment waits for all target replicas (ZooKeeper mode), not only for added ones (KRaft)."""
        self.rates: list[str | None] = []
        """The values that the throttle of followers on brokers has had."""

    # -- Administration

    def describe(self) -> ClusterDescription:
        if self.catches_up:
            for partition in self.partitions.values():
                self._advance(partition)
            for (broker_id, _), log in self.logs.items():
                if broker_id in self.live and log.future is not None:
                    log.path, log.future = log.future, None
        self.in_flight_max = max(self.in_flight_max, len(self.reassignments()))
        brokers = {broker_id: ("host", broker_id, None) for broker_id in sorted(self.live)}
        described = [
            DescribedPartition(*name, partition.leader, 1, tuple(partition.replicas), tuple(partition.isr))
            for name, partition in self.partitions.items()
        ]
        return ClusterDescription("", self.cluster_id, 1, brokers, described, self.reassignments())

    def capture(self) -> Snapshot:
        raise NotImplementedError

    def reassignments(self) -> dict[TopicPartition, PartitionReassignment]:
        return {
            name: PartitionReassignment(
                tuple(partition.replicas), tuple(sorted(partition.adding)), tuple(sorted(partition.removing))
            )
            for name, partition in self.partitions.items()
            if partition.adding or partition.removing
        }

    def reassign(self, targets: Targets) -> tuple[ErrorCode, ...]:
        codes: list[ErrorCode] = []

        def effect() -> None:
            for index, name in enumerate(targets.partitions()):
                replicas = None if targets.cancel[index] else targets.replicas[index].tolist()
                codes.append(self._reassign(name, replicas))

        self.crashes.perform(effect)
        return tuple(codes)

    def elect(
        self, election: ElectionType, partitions: Sequence[TopicPartition] | None
    ) -> dict[TopicPartition, ErrorCode]:
        def effect() -> None:
            for name in partitions or ():
                partition = self.partitions[name]
                if partition.replicas[0] in partition.isr:
                    partition.leader = partition.replicas[0]

        self.crashes.perform(effect)
        return dict.fromkeys(partitions or (), ErrorCode.NONE)

    def read_configs(self, resources: Mapping[ConfigResource, Sequence[str]]) -> dict[ConfigResource, dict[str, str]]:
        return {
            resource: {name: value for name, value in self.configs.get(resource, {}).items() if name in names}
            for resource, names in resources.items()
        }

    def change_configs(
        self, changes: Mapping[ConfigResource, Mapping[str, str | None]]
    ) -> dict[ConfigResource, ErrorCode]:
        codes: dict[ConfigResource, ErrorCode] = {}

        def effect() -> None:
            for resource, values in changes.items():
                codes[resource] = self._change(resource, values)

        self.crashes.perform(effect)
        return codes

    def log_directories(self, broker_ids: Collection[int]) -> dict[int, list[LogDirectory]]:
        self._update_logs()
        return {
            broker_id: [
                LogDirectory(path, self._logs_in(broker_id, path), self._error(broker_id, path)) for path in PATHS
            ]
            for broker_id in broker_ids
            if broker_id in self.live
        }

    def alter_log_directories(
        self, paths: Mapping[int, Mapping[TopicPartition, str]]
    ) -> dict[int, dict[TopicPartition, ErrorCode]]:
        codes: dict[int, dict[TopicPartition, ErrorCode]] = {}

        def effect() -> None:
            self._update_logs()
            for broker_id, by_name in paths.items():
                codes[broker_id] = {name: self._move_log(broker_id, name, path) for name, path in by_name.items()}

        self.crashes.perform(effect)
        return codes

    def close(self) -> None: ...

    # -- faults

    def fail(self, broker_id: int) -> None:
        """A broker ends: its replicas leave ISRs, and leaders move."""
        self.live.discard(broker_id)
        for partition in self.partitions.values():
            partition.isr = [replica for replica in partition.isr if replica != broker_id] or partition.isr
            if partition.leader == broker_id:
                partition.leader = next((replica for replica in partition.isr if replica in self.live), -1)

    def restart(self, broker_id: int) -> None:
        """A broker comes back, and its old replicas catch up at once."""
        self.live.add(broker_id)
        for partition in self.partitions.values():
            if broker_id in partition.replicas and broker_id not in partition.adding | set(partition.isr):
                partition.isr.append(broker_id)
            if partition.leader < 0 and broker_id in partition.isr:
                partition.leader = broker_id

    def assignment(self) -> dict[TopicPartition, tuple[int, ...]]:
        """All replicas."""
        return {name: tuple(partition.replicas) for name, partition in self.partitions.items()}

    def paths(self) -> dict[tuple[int, TopicPartition], str]:
        """The log directory of each replica. Those that have a future log are followed by its directory."""
        self._update_logs()
        return {key: log.path if log.future is None else f"{log.path} {log.future}" for key, log in self.logs.items()}

    # -- rules

    def _update_logs(self) -> None:
        """Create the logs of added replicas, and delete those of removed ones."""
        hosted = {(broker_id, name) for name, partition in self.partitions.items() for broker_id in partition.replicas}
        for key in sorted(hosted - self.logs.keys()):
            self.logs[key] = ScriptedLog(self.named.pop(key, PATHS[0]))
        for key in self.logs.keys() - hosted:
            del self.logs[key]

    def _logs_in(self, broker_id: int, path: str) -> list[DirectoryLog]:
        return [
            DirectoryLog(*name, 1000, is_future)
            for (holder, name), log in self.logs.items()
            for is_future, held in ((False, log.path), (True, log.future))
            if (holder, held) == (broker_id, path) and (broker_id, path) not in self.offline
        ]

    def _error(self, broker_id: int, path: str) -> str | None:
        return ErrorCode.KAFKA_STORAGE_ERROR.name if (broker_id, path) in self.offline else None

    def _move_log(self, broker_id: int, name: TopicPartition, path: str) -> ErrorCode:
        """As ``ReplicaManager.alterReplicaLogDirs``."""
        if broker_id not in self.live:
            return ErrorCode.BROKER_NOT_AVAILABLE
        if path not in PATHS:
            return ErrorCode.LOG_DIR_NOT_FOUND
        if (broker_id, path) in self.offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if (broker_id, path) in self.cordoned:
            return ErrorCode.INVALID_REPLICA_ASSIGNMENT
        log = self.logs.get((broker_id, name))
        if log is None:
            self.named[broker_id, name] = path
            return ErrorCode.REPLICA_NOT_AVAILABLE
        if log.future != path:
            log.future = None
        if path == log.path:
            return ErrorCode.NONE
        if any(broker == broker_id for broker, _ in self.offline):
            return ErrorCode.KAFKA_STORAGE_ERROR
        log.future = path
        if "replica.alter.log.dirs.io.max.bytes.per.second" not in self.configs.get(
            ConfigResource(None, broker_id), {}
        ):
            self.unthrottled.add(name)
        return ErrorCode.NONE

    def _change(self, resource: ConfigResource, values: Mapping[str, str | None]) -> ErrorCode:
        if resource.broker_id is not None and resource.broker_id not in self.live:
            return ErrorCode.BROKER_NOT_AVAILABLE
        settings = self.configs.setdefault(resource, {})
        for name, value in values.items():
            if name == "follower.replication.throttled.rate":
                self.rates.append(value)
            if value is None:
                settings.pop(name, None)
            else:
                settings[name] = value
        if not settings:
            del self.configs[resource]
        return ErrorCode.NONE

    def _reassign(self, name: TopicPartition, replicas: list[int] | None) -> ErrorCode:
        partition = self.partitions.get(name)
        if partition is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if replicas is None:
            if not (partition.adding or partition.removing):
                return ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
            partition.replicas = [replica for replica in partition.replicas if replica not in partition.adding]
        elif not set(replicas) <= self.registered:
            return ErrorCode.INVALID_REPLICA_ASSIGNMENT
        else:
            # As KRaft: without new adding or removing replicas, those of the reassignment before remain.
            current = list(partition.replicas)
            partition.adding = (set(replicas) - set(current)) or partition.adding
            partition.removing = (set(current) - set(replicas)) or partition.removing
            partition.replicas = [*replicas, *(replica for replica in current if replica not in replicas)]
            if partition.adding and not self._is_throttled(name, partition):
                self.unthrottled.add(name)
            partition.isr = [replica for replica in partition.isr if replica in partition.replicas]
            self._complete(partition)
            return ErrorCode.NONE
        partition.adding, partition.removing = set(), set()
        partition.isr = [replica for replica in partition.isr if replica in partition.replicas]
        return ErrorCode.NONE

    def _is_throttled(self, name: TopicPartition, partition: ScriptedPartition) -> bool:
        """Whether the added replicas, and the leader for them, are throttled."""
        topic = self.configs.get(ConfigResource(name[0]), {})
        rates = all(
            "follower.replication.throttled.rate" in self.configs.get(ConfigResource(None, broker_id), {})
            for broker_id in partition.adding & self.live
        )
        followers = topic.get("follower.replication.throttled.replicas", "")
        listed = {f"{name[1]}:{broker_id}" for broker_id in partition.adding}
        return rates and (followers == "*" or listed <= set(followers.split(",")))

    def _advance(self, partition: ScriptedPartition) -> None:
        if partition.leader < 0:
            return
        lagging = sorted((partition.adding & self.live) - set(partition.isr))
        if lagging:
            partition.isr.append(lagging[0])
        self._complete(partition)

    def _complete(self, partition: ScriptedPartition) -> None:
        awaited = set(partition.replicas) - partition.removing if self.waits_for_all else partition.adding
        if (partition.adding or partition.removing) and awaited <= set(partition.isr) - partition.removing:
            partition.replicas = [replica for replica in partition.replicas if replica not in partition.removing]
            partition.isr = [replica for replica in partition.isr if replica in partition.replicas]
            partition.adding, partition.removing = set(), set()
        if partition.leader not in partition.replicas:
            partition.leader = next((replica for replica in partition.replicas if replica in partition.isr), -1)


def started(
    cluster: ScriptedCluster,
    *stages: Mapping[TopicPartition, Sequence[int]],
    throttle: int | None = 1000,
    concurrency: int = 4,
    max_under_replicated: int = 0,
    directories: Mapping[TopicPartition, Mapping[int, str]] = {},
) -> ExecutionStarted:
    """The first entry of an execution of these stages. ``directories`` are the targets of replicas by broker."""
    paths = cluster.paths()

    def planned(name: TopicPartition, target: Sequence[int]) -> ExecutedPartition:
        partition = cluster.partitions[name]
        moves = tuple(
            LogMove(broker_id, paths.get((broker_id, name)), path)
            for broker_id, path in directories.get(name, {}).items()
        )
        return ExecutedPartition(*name, tuple(partition.replicas), tuple(target), partition.leader, None, moves)

    limits = ExecutionLimits(throttle, concurrency, max_under_replicated)
    planned_stages = tuple(tuple(planned(*item) for item in stage.items()) for stage in stages)
    unhealthy = UnhealthyPartitions((), ())
    return ExecutionStarted(1, "plan", "digest", CLUSTER_ID, "kafka://scripted:1", limits, planned_stages, unhealthy)


def run(
    cluster: ScriptedCluster,
    path: Path,
    start: ExecutionStarted | None = None,
    goals: Sequence[Entry] = (),
    crashes: Crashes | None = None,
    script: Callable[[int], Goal | None] = lambda _round: None,
) -> RunEnded:
    """Run an execution to its end, from a new journal with ``start`` or from an old one. May raise Crash.

    ``script`` is called with the number of each observation; it may change the cluster and request a goal.
    """
    if start is not None and not path.exists():
        CrashingJournal.create(path, start).close()
    journal, entries = CrashingJournal.resume(path)
    assert isinstance(journal, CrashingJournal)
    cluster.crashes = journal.crashes = crashes or Crashes()
    with journal:
        state = ExecutionState(entries)
        for goal in goals:
            journal.append(goal)
            state.apply(goal)
        executor = Executor(cluster, journal, state)
        for number in range(1, ROUNDS_MAX):
            executor.observe(cluster.describe(), script(number))
            if (ended := executor.step()) is not None:
                return ended
    raise AssertionError("the execution does not end")
