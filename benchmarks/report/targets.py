"""The targets of the figures: replication factor 3, two cores, both sides measured in one run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Target:
    """``name`` is that of the ratio, ``text`` what people read. ``at_most`` or at least ``wanted`` of ``unit``."""

    name: str
    text: str
    limit: float
    unit: str = "times"
    at_most: bool = False


_ALL: Final = (
    Target("broker-failure/1000000/100 beside kafka", "a broker fails, 1,000,000, beside Kafka's classes", 100),
    Target("controller-failover/1000000/100 beside kafka", "a failover, 1,000,000, beside Kafka's classes", 100),
    Target("kraft fence/1000000/100 decided beside kafka",
           "a broker's failure decided in KRaft mode, 1,000,000, beside Kafka's KRaft classes", 25),
    Target("memory/1000000/100 beside kafka", "memory a partition, beside Kafka's context", 10),
    Target("memory/1000000/100 beside kraft", "memory a partition, beside KRaft's", 10),
    Target("live failover/100000/10 beside kafka", "a failover over ZooKeeper, 100,000, beside Kafka", 20),
    Target("live broker-failure/100000/10 beside kafka", "a broker fails over ZooKeeper, 100,000, beside Kafka", 10),
    Target("live failover/100000/10 beside raw", "a failover over ZooKeeper, 100,000, beside reads alone",
           1.5, at_most=True),
    Target("live broker-failure/100000/10 beside raw", "a broker fails over ZooKeeper, 100,000, beside writes alone",
           1.5, at_most=True),
    Target("live failover/1000000/10 seconds", "a failover over ZooKeeper, 1,000,000", 10, "s", at_most=True),
    Target("broker-failure/100000/100 beside kafka, every run",
           "a broker fails, 100,000, beside Kafka's classes, in each of ten runs", 50),
    Target("cold server failover/1000000/10 beside raw", "a failover on a cold server, 1,000,000, beside reads alone",
           1.25, at_most=True),
    Target("cold server broker-failure/1000000/10 beside raw",
           "a broker fails on a cold server, 1,000,000, beside writes alone", 1.3, at_most=True),
    Target("choose-native/1000000/100", "leaders chosen by a native selector, beside the built-in rule",
           1.5, at_most=True),
    Target("choose-bulk/1000000/100", "by a bulk selector", 3, at_most=True),
    Target("choose-scalar/1000000/100", "by a scalar selector", 100, at_most=True),
    Target("choose-all-native/1000000/100", "all leaders at once, native selector", 1.5, at_most=True),
    Target("choose-all-bulk/1000000/100", "all leaders at once, bulk selector", 3, at_most=True),
    Target("broker-failure/10000000/1000 seconds", "a broker of 1,000 fails, 10,000,000, in memory",
           0.1, "s", at_most=True),
    Target("controller-failover/10000000/1000 seconds", "a failover, 10,000,000, 1,000 brokers, in memory",
           2, "s", at_most=True),
    Target("topic-creation/1000000/100 seconds", "all topics are created, 1,000,000, in memory",
           0.25, "s", at_most=True),
    Target("topic-deletion/1000000/100 seconds", "all topics are deleted, 1,000,000, in memory",
           0.4, "s", at_most=True),
    Target("alter-partition-storm/1000000/100 seconds", "all ISRs change, 1,000,000, in memory",
           0.3, "s", at_most=True),
    Target("reassignment-start/1000000/100 seconds", "all reassignments begin, 1,000,000, in memory",
           1, "s", at_most=True),
    Target("reassignment-completion/1000000/100 seconds", "all reassignments end, 1,000,000, in memory",
           1, "s", at_most=True),
    Target("controller-failover/10000000/1000 resident", "memory of that failover beside the bytes being sent",
           2, "GiB", at_most=True),
    *(
        Target(f"process whatif fail, {mode}/1000000/100 {figure}", f"{text}, {mode}", limit, unit, at_most=True)
        for mode in ("zookeeper", "kraft")
        for figure, text, limit, unit in (
            ("processor", "processor time of `kframe whatif fail`, 1,000,000", 0.9, "s"),
            ("peak", "peak memory of `kframe whatif fail`, 1,000,000", 220, "MB"),
        )
    ),
    Target("process --help processor", "processor time of `kframe --help`", 0.06, "s", at_most=True),
    Target("read describe/1000000 seconds", "`kafka-topics --describe` read, 1,000,000", 1, "s", at_most=True),
    Target("read describe/1000000 memory", "memory to read `kafka-topics --describe` beside the file", 2, at_most=True),
    Target("read reassignment/1000000 seconds", "a reassignment read, 1,000,000", 0.6, "s", at_most=True),
    Target("read reassignment/1000000 memory", "memory to read a reassignment beside the file", 2, at_most=True),
    Target("read kcat/1000000 seconds", "`kcat -L -J` read, 1,000,000", 0.8, "s", at_most=True),
    Target("read kcat/1000000 memory", "memory to read `kcat -L -J` beside the file", 2, at_most=True),
    Target("read zookeeper/1000000 seconds", "a ZooKeeper dump read, 1,000,000", 1, "s", at_most=True),
    Target("read zookeeper/1000000 memory", "memory to read a ZooKeeper dump beside the file", 2, at_most=True),
    Target("read plan/1000000 seconds", "a plan read, 1,000,000", 0.6, "s", at_most=True),
    Target("read plan/1000000 memory", "memory to read a plan beside the file", 2, at_most=True),
    *(
        Target(f"{way} {stage}/10000000 beside engine",
               f"{stage} {where}, 10,000,000 in 50 clusters, beside the engine and a session's start",
               1.2, at_most=True)
        for way, where, stages in (
            ("fleet", "of a fleet", ("validate", "failover", "requests", "sweep", "plan", "report")),
            ("spark", "on Spark", ("ingest", "validate", "failover", "requests", "sweep", "plan")),
        )
        for stage in stages
    ),
)  # fmt: skip
TARGETS: Final[Mapping[str, Target]] = {target.name: target for target in _ALL}
