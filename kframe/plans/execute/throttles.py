"""Throttle the replication of moving partitions, and restore the configurations that were set before.

Kafka's brokers throttle the replicas that ``leader.`` and ``follower.replication.throttled.replicas`` of a topic list,
to the rates of the broker (``ReassignPartitionsCommand``, ``ReplicationQuotaManager``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from kframe.plans.execute.entries import (
    ChangeConfigs,
    ConfigEntry,
    ConfigKey,
    ExecutedPartition,
    Goal,
    GoalChanged,
    ResourceKind,
    RunEnded,
    RunResult,
)
from kframe.plans.execute.observation import Observation
from kframe.plans.execute.state import ExecutionState
from kframe.plans.execute.step_types import SaveOriginals, Step, Wait

LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
LEADER_REPLICAS: Final = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS: Final = "follower.replication.throttled.replicas"
#: The rate of a broker at which it copies logs between its log directories, all together.
DIRECTORIES_RATE: Final = "replica.alter.log.dirs.io.max.bytes.per.second"
#: Values of a list of replicas: all of the topic, and none.
_ALL: Final = "*"
_NONE: Final = ("", "none")
#: Observations in which restoring or setting configurations is tried.
CONFIG_ROUNDS: Final = 5


class ThrottlePlanner:
    """Gives the next step that changes configurations."""

    def __init__(self, state: ExecutionState) -> None:
        self._state = state
        self._configured: dict[ConfigKey, str] = {}
        self._set_failures = self._restore_failures = 0

    def configured(self, changes: Iterable[ConfigEntry], *, restores: bool, failed: bool) -> None:
        """Note the configurations that were set or restored, and whether others could not be."""
        for change in changes:
            if restores or change.value is None:
                self._configured.pop(change.key, None)
            else:
                self._configured[change.key] = change.value
        if restores:
            self._restore_failures += failed
        else:
            self._set_failures = self._set_failures + 1 if failed else 0

    def throttle(self, stage: Sequence[ExecutedPartition], observation: Observation) -> Step | None:
        """The next change of configurations for a stage; None if it is throttled."""
        rate = self._state.limits.throttle
        if rate is None:
            return self._restore_except((), observation)
        values = throttle_values(stage, self._state.rolls_back, rate, self._state.originals)
        topics = {topic for topic, _ in observation.partitions}
        usable = {
            key
            for key in values
            if _is_reachable(key, observation) and (key.kind is ResourceKind.BROKER or key.resource in topics)
        }
        unsaved = tuple(sorted(usable - self._state.originals.keys()))
        if self._set_failures >= CONFIG_ROUNDS:
            return GoalChanged(Goal.PAUSE, "the throttle cannot be set")
        if unsaved:
            return SaveOriginals(unsaved)
        changes = [
            ConfigEntry(key, value)
            for key, value in sorted(values.items())
            if key in usable and self._configured.get(key) != value
        ]
        if changes:
            return ChangeConfigs(tuple(changes), restores=False)
        return self._restore_except(values, observation)

    def finish(self, result: RunResult, reason: str, observation: Observation) -> Step:
        """Restore the configurations of live brokers, then end."""
        remaining = [ConfigEntry(key, value) for key, value in sorted(self._state.originals.items())]
        reachable = [change for change in remaining if _is_reachable(change.key, observation)]
        if self._restore_failures < CONFIG_ROUNDS:
            if reachable:
                return ChangeConfigs(tuple(reachable), restores=True)
            if remaining:
                self._restore_failures += 1
                return Wait()
        if remaining:
            resources = sorted({f"{change.key.kind} {change.key.resource}" for change in remaining})
            text = f"throttles of {', '.join(resources)} are not restored yet"
            reason = f"{reason}; {text}" if reason else text
        return RunEnded(result, reason)

    def _restore_except(self, keys: Collection[ConfigKey], observation: Observation) -> Step | None:
        """Restore the throttles that the stage does not need; None if there are none, or the cluster refuses that."""
        if self._restore_failures >= CONFIG_ROUNDS:
            return None
        former = [
            ConfigEntry(key, value)
            for key, value in sorted(self._state.originals.items())
            if key not in keys and _is_reachable(key, observation)
        ]
        return ChangeConfigs(tuple(former), restores=True) if former else None


def _is_reachable(key: ConfigKey, observation: Observation) -> bool:
    """Only a broker itself changes its configurations."""
    return key.kind is ResourceKind.TOPIC or int(key.resource) in observation.live


def throttle_values(
    partitions: Iterable[ExecutedPartition], rolls_back: bool, rate: int, originals: Mapping[ConfigKey, str | None]
) -> dict[ConfigKey, str]:
    """The values that throttle these partitions to ``rate`` bytes per second and broker.

    Followers are the replicas that are added, leaders all that exist before. Replicas that operators throttle stay
    throttled.
    """
    values: dict[ConfigKey, str] = {}
    replicas: dict[ConfigKey, set[str]] = defaultdict(set)
    for partition in partitions:
        leaders, end = partition.ends(rolls_back)
        if set(leaders) != set(end):
            for broker_id in {*leaders, *end}:
                for name in (LEADER_RATE, FOLLOWER_RATE):
                    values[ConfigKey(ResourceKind.BROKER, str(broker_id), name)] = str(rate)
        for move in partition.directory_moves(rolls_back):
            values[ConfigKey(ResourceKind.BROKER, str(move.broker_id), DIRECTORIES_RATE)] = str(rate)
        if followers := partition.added(rolls_back):
            for name, broker_ids in ((LEADER_REPLICAS, leaders), (FOLLOWER_REPLICAS, followers)):
                key = ConfigKey(ResourceKind.TOPIC, partition.topic, name)
                replicas[key] |= {f"{partition.partition}:{broker_id}" for broker_id in broker_ids}
    for key, throttled in replicas.items():
        original = originals.get(key) or ""
        configured = set() if original in _NONE else set(original.split(","))
        values[key] = _ALL if _ALL in configured else ",".join(sorted(configured | throttled))
    return values
