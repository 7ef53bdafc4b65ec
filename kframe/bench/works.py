"""What is timed, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kframe.bench import failures, isrs, orders, requests, snapshots, tiers
from kframe.bench.clusters import leaderless_cluster, led_by_second, one_topic, racked_cluster, whole_cluster
from kframe.bench.work import EventWork, Work
from kframe.model.elections import LeaderSelector
from kframe.model.ids import ElectionKind


def _broker_failure(tier: Mapping[ElectionKind, LeaderSelector]) -> EventWork:
    return EventWork(whole_cluster, failures.broker_failure, failures.all_led, selectors=tier)


def _election_of_all(tier: Mapping[ElectionKind, LeaderSelector]) -> EventWork:
    return EventWork(leaderless_cluster, orders.election_of_all, failures.all_led, selectors=tier)


WORKS: Final[Mapping[str, Work]] = {
    "broker-failure": _broker_failure({}),
    "broker-failure-native": _broker_failure(tiers.native()),
    "broker-failure-bulk": _broker_failure(tiers.bulk()),
    "broker-failure-scalar": _broker_failure(tiers.scalar()),
    "election-of-all": _election_of_all({}),
    "election-of-all-native": _election_of_all(tiers.native()),
    "election-of-all-bulk": _election_of_all(tiers.bulk()),
    "election-of-all-scalar": _election_of_all(tiers.scalar()),
    "several-brokers-failure": EventWork(
        whole_cluster, failures.several_brokers_failure, failures.all_led_that_can_be
    ),
    "rack-failure": EventWork(racked_cluster, failures.rack_failure, failures.all_led),
    "controller-failover": EventWork(whole_cluster, failures.controller_failover, failures.all_led),
    "preferred-election": EventWork(led_by_second, orders.preferred_election, orders.all_preferred),
    "topic-creation": EventWork(one_topic, orders.creation, orders.created),
    "topic-creation-storm": EventWork(whole_cluster, orders.creation_storm, orders.created_beside, orders.CREATIONS),
    "reassignment-start": EventWork(whole_cluster, orders.reassignment_start, orders.moving),
    "reassignment-completion": EventWork(whole_cluster, orders.reassignment_completion, orders.arrived),
    "topic-deletion": EventWork(whole_cluster, orders.deletion, orders.gone),
    "alter-partition": EventWork(whole_cluster, isrs.alterations, failures.all_led, isrs.ALTERATIONS),
    "alter-partition-storm": EventWork(whole_cluster, isrs.alteration_storm, isrs.shrunk),
    "isr-notifications": EventWork(whole_cluster, isrs.notifications, isrs.some_shrunk),
    "batching": requests.batching(),
    **{f"encode-leader-and-isr-{version}": requests.leader_and_isr(version) for version in (2, 5, 7)},
    **{f"encode-update-metadata-{version}": requests.update_metadata(version) for version in (5, 7, 8)},
    **{f"encode-stop-replica-{version}": requests.stop_replica(version) for version in (1, 3, 4)},
    **{f"snapshot-load-{name}": snapshots.loading(name) for name in
       ("kframe", "zookeeper", "describe", "kcat", "reassignment")},
    "snapshot-save-kframe": snapshots.saving(),
}  # fmt: skip
