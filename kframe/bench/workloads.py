"""The workload of each bench by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kframe.bench import admin_requests as admin
from kframe.bench import encoding, failures, isrs, snapshots
from kframe.bench.clusters import leaderless_cluster, led_by_second, racked_cluster, single_topic, whole_cluster
from kframe.bench.workload import EventWorkload, Workload
from kframe.core.selectors.kafka_selectors import FirstInSync
from kframe.kernels import _selectors
from kframe.model.elections import LeaderSelector
from kframe.model.ids import ElectionKind
from kframe.registry.native import NativeSelector
from kframe.registry.scalar import PartitionElection, ScalarSelector


def _native() -> Mapping[ElectionKind, LeaderSelector]:
    """Kafka's offline election rule as a native selector: a C function for one partition."""
    return {ElectionKind.OFFLINE: NativeSelector("first-in-sync-native", _selectors.FIRST_IN_SYNC)}


def _bulk() -> Mapping[ElectionKind, LeaderSelector]:
    """The same rule as a bulk selector: array passes over all partitions."""
    return {ElectionKind.OFFLINE: FirstInSync("first-in-sync")}


def _scalar() -> Mapping[ElectionKind, LeaderSelector]:
    """The same rule as a scalar selector: a Python function for one partition."""
    return {ElectionKind.OFFLINE: ScalarSelector("first-in-sync-scalar", _first_in_sync)}


def _first_in_sync(election: PartitionElection) -> int | None:
    for broker_id in election.eligible:
        if broker_id in election.isr:
            return broker_id
    return election.eligible[0] if election.unclean_allowed and election.eligible else None


def _broker_failure(selectors: Mapping[ElectionKind, LeaderSelector]) -> EventWorkload:
    return EventWorkload(whole_cluster, failures.broker_failure, failures.expect_all_led, selectors=selectors)


def _election_of_all(selectors: Mapping[ElectionKind, LeaderSelector]) -> EventWorkload:
    return EventWorkload(leaderless_cluster, admin.election_of_all, failures.expect_all_led, selectors=selectors)


WORKLOADS: Final[Mapping[str, Workload]] = {
    "broker-failure": _broker_failure({}),
    "broker-failure-native": _broker_failure(_native()),
    "broker-failure-bulk": _broker_failure(_bulk()),
    "broker-failure-scalar": _broker_failure(_scalar()),
    "election-of-all": _election_of_all({}),
    "election-of-all-native": _election_of_all(_native()),
    "election-of-all-bulk": _election_of_all(_bulk()),
    "election-of-all-scalar": _election_of_all(_scalar()),
    "several-brokers-failure": EventWorkload(
        whole_cluster, failures.several_brokers_failure, failures.expect_live_replicas_lead
    ),
    "rack-failure": EventWorkload(racked_cluster, failures.rack_failure, failures.expect_all_led),
    "controller-failover": EventWorkload(whole_cluster, failures.controller_failover, failures.expect_all_led),
    "preferred-election": EventWorkload(led_by_second, admin.preferred_election, admin.expect_preferred_leaders),
    "topic-creation": EventWorkload(single_topic, admin.creation, admin.expect_topics),
    "topic-creation-storm": EventWorkload(
        whole_cluster, admin.creation_storm, admin.expect_storm_topics, admin.CREATIONS
    ),
    "reassignment-start": EventWorkload(whole_cluster, admin.reassignment_start, admin.expect_reassigning),
    "reassignment-completion": EventWorkload(whole_cluster, admin.reassignment_completion, admin.expect_reassigned),
    "topic-deletion": EventWorkload(whole_cluster, admin.deletion, admin.expect_no_topics),
    "alter-partition": EventWorkload(whole_cluster, isrs.alterations, failures.expect_all_led, isrs.ALTERATIONS),
    "alter-partition-storm": EventWorkload(whole_cluster, isrs.alteration_storm, isrs.expect_isrs_shrunk),
    "isr-notifications": EventWorkload(whole_cluster, isrs.notifications, isrs.expect_notified_isrs_shrunk),
    "batching": encoding.batching(),
    **{f"encode-leader-and-isr-{version}": encoding.leader_and_isr(version) for version in (2, 5, 7)},
    **{f"encode-update-metadata-{version}": encoding.update_metadata(version) for version in (5, 7, 8)},
    **{f"encode-stop-replica-{version}": encoding.stop_replica(version) for version in (1, 3, 4)},
    **{
        f"snapshot-load-{name}": snapshots.loading(name)
        for name in ("kframe", "zookeeper", "describe", "kcat", "reassignment")
    },
    "snapshot-save-kframe": snapshots.saving(),
}
