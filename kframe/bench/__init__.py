"""Benchmarks of the engine that ``kframe bench`` runs: events of a controller by phase, and parts of the engine."""

from __future__ import annotations

from typing import Final

#: The names of all benches; ``kframe.bench.workloads`` defines them.
BENCHES: Final = (
    "broker-failure",
    "broker-failure-native",
    "broker-failure-bulk",
    "broker-failure-scalar",
    "election-of-all",
    "election-of-all-native",
    "election-of-all-bulk",
    "election-of-all-scalar",
    "several-brokers-failure",
    "rack-failure",
    "controller-failover",
    "preferred-election",
    "topic-creation",
    "topic-creation-storm",
    "reassignment-start",
    "reassignment-completion",
    "topic-deletion",
    "alter-partition",
    "alter-partition-storm",
    "isr-notifications",
    "batching",
    "encode-leader-and-isr-2",
    "encode-leader-and-isr-5",
    "encode-leader-and-isr-7",
    "encode-update-metadata-5",
    "encode-update-metadata-7",
    "encode-update-metadata-8",
    "encode-stop-replica-1",
    "encode-stop-replica-3",
    "encode-stop-replica-4",
    "snapshot-load-kframe",
    "snapshot-load-zookeeper",
    "snapshot-load-describe",
    "snapshot-load-kcat",
    "snapshot-load-reassignment",
    "snapshot-save-kframe",
)
