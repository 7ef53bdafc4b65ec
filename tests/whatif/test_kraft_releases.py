"""What a KRaft controller decides depends on its release: reassignments with a retained replica that is out of sync."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final
from uuid import UUID

import pytest

from kframe.core.kraft.causes.change_causes import explain_change
from kframe.core.kraft.causes.request_causes import ALTERED
from kframe.core.kraft.context import KraftSettings
from kframe.core.kraft.replay import replay
from kframe.errors import ConfigError
from kframe.model.kraft.records import ControllerFeature, PartitionChangeRecord, RegisterControllerRecord
from kframe.model.kraft.releases import Release, known_release, parse_release, release_of_level
from kframe.plans.file.read import load_plan
from kframe.ports.committed_log import CommittedBatch, CommittedRecord
from kframe.scenario.kraft.format import parse_kraft_scenario
from kframe.scenario.kraft.runner import KraftScenarioRunner
from kframe.snapshot import Snapshot, Source, read_snapshot
from kframe.whatif import Outcome, TopicStatus, WhatIf
from kframe.whatif.engines.choice import applicable_config
from kframe.whatif.shadow.kraft import LogShadow
from tests.whatif.kraft_samples import TOPIC_ID, directory, metadata_with, partition
from tests.whatif.samples import small
from tests.whatif.shadow.test_log_shadow import ScenarioLog

INPUTS: Final = Path(__file__).with_name("inputs")
#: The latest ``metadata.version`` of each release.
LEVELS: Final = {"3.7": 19, "3.8": 20, "4.2": 29, "4.3": 30, "4.4": 33}


def reassigned(config: dict[str, object]) -> Outcome:
    """Three reassignments that keep the dead broker 2."""
    snapshot = read_snapshot(INPUTS / "dead-kept-replica.txt").with_mode("kraft")
    return WhatIf(snapshot, config).reassign(load_plan(INPUTS / "dead-kept-replica-plan.json"))


BOTH: Final = ["all-targets-in-sync", "retained-out-of-sync"]


@pytest.mark.parametrize(
    "config, completed, release, rules",
    [
        ({"metadata.version": "4.0"}, False, "4.0", BOTH[1:]),
        ({"metadata.version": "4.2-IV1"}, False, "4.2", BOTH[1:]),
        ({"metadata.version": "3.7"}, True, "3.7", BOTH),
        ({"metadata.version": "4.3"}, True, "4.3", []),
        ({}, True, "4.4", BOTH),
        ({"kframe.kraft.release": "4.2.1"}, False, "4.2 stated", []),
        ({"kframe.kraft.release": "4.4", "metadata.version": "4.0"}, True, "4.4 stated", []),
        ({"kframe.kraft.release": "3.6"}, True, "3.6 stated", []),
    ],
)
def test_retained_replica_out_of_sync_holds_reassignment_before_kafka_4_3(
    config: dict[str, object], completed: bool, release: str, rules: list[str]
) -> None:
    outcome = reassigned(config)
    assert outcome.reassignment is not None
    expected = TopicStatus.COMPLETED if completed else TopicStatus.WAITING
    assert {outcome.reassignment.status(index) for index in range(3)} == {expected}
    number, _, source = release.partition(" ")
    assumed = [text for text in outcome.assumptions if text.startswith("cluster.release unknown")]
    assert [f"Kafka {number}" in text for text in assumed] == [True] * (not source)
    record = outcome.release
    assert record is not None
    assert (record.release, record.source) == (number, source or "assumed")
    assert ([rule.name for rule in record.rules], record.matters) == (rules, bool(rules))
    assert (record.text is None) == bool(source)
    assert source or ("the release matters here: since " in (record.text or "")) == bool(rules)


@pytest.mark.parametrize(
    "cluster, keys",
    [
        ("kraft with levels", {"kframe.kraft.release"}),
        ("kraft", {"kframe.kraft.release", "metadata.version"}),
        ("zookeeper", set()),
    ],
)
def test_fleet_gives_release_to_kraft_clusters(cluster: str, keys: set[str]) -> None:
    text = read_snapshot(INPUTS / "dead-kept-replica.txt")
    snapshots = {
        "kraft with levels": Snapshot.from_metadata(metadata_with([]), source=Source("kraft", "sample")),
        "kraft": text.with_mode("kraft"),
        "zookeeper": small(),
    }
    config = {"min.insync.replicas": "1", "kframe.kraft.release": "4.2", "metadata.version": "4.0"}
    assert applicable_config(config, snapshots[cluster]).keys() == keys | {"min.insync.replicas"}


def test_stated_release_must_be_a_release() -> None:
    with pytest.raises(ConfigError, match=r"found latest, expected a release of Kafka such as 4.4"):
        reassigned({"kframe.kraft.release": "latest"})


def registered(controller_id: int, level: int) -> RegisterControllerRecord:
    feature = ControllerFeature(name="metadata.version", min_supported_version=7, max_supported_version=level)
    return RegisterControllerRecord(
        controller_id=controller_id,
        incarnation_id=UUID(int=controller_id),
        zk_migration_ready=False,
        end_points=(),
        features=(feature,),
    )


@pytest.mark.parametrize(
    "controllers, brokers, active, release",
    [
        ({}, None, -1, None),
        ({}, 29, -1, "4.2"),
        ({3: 29, 4: 30}, 33, 3, "4.2"),
        ({3: 29, 4: 30}, 33, 4, "4.3"),
        ({3: 29, 4: 30}, 33, -1, "4.2"),
        ({3: 40}, None, 3, "4.4"),
    ],
)
def test_release_is_that_of_the_supported_levels(
    controllers: dict[int, int], brokers: int | None, active: int, release: str | None
) -> None:
    metadata = metadata_with([], supported=brokers or 2**15 - 1)
    named = {controller_id: registered(controller_id, level) for controller_id, level in controllers.items()}
    known = known_release(named, metadata.brokers.registrations.values(), active)
    assert known == (None if release is None else parse_release(release))


@pytest.mark.parametrize("config, level", [({}, 33), ({"kframe.kraft.release": 4.2}, 29)])
def test_scenario_has_the_levels_and_rules_of_its_release(config: dict[str, object], level: int) -> None:
    document = {"schema": "kframe.scenario/v1", "controller": "kraft", "name": "s", "brokers": [1], "config": config}
    runner = KraftScenarioRunner(parse_kraft_scenario({**document, "steps": [{"elect": {}}]}, "s.yaml"))
    runner.play()
    assert runner.metadata.metadata_version == level


def test_restart_before_kafka_4_0_leaves_isrs_as_they_are() -> None:
    """The registration of the new process follows its last heartbeat within the session."""
    for release, leader, isr in (("3.9", 1, [1, 2]), ("4.0", 2, [2])):
        snapshot = Snapshot.from_metadata(
            metadata_with([partition(0, (1, 2), (1, 2))], elr=False, level=19), source=Source("kraft", "sample")
        )
        whatif = WhatIf(snapshot, {"kframe.kraft.release": release})
        whatif.restart([1])
        p = whatif.cluster.partitions
        assert whatif.cluster.brokers.ids_of([int(p.leader[0])]) == (leader,), release
        assert [*whatif.cluster.brokers.ids_of(p.list_of("isr", 0))] == isr, release


@pytest.mark.parametrize("release, level", LEVELS.items())
def test_release_of_a_level(release: str, level: int) -> None:
    assert str(release_of_level(level)) == release


def test_levels_outside_of_the_known_ones() -> None:
    assert (release_of_level(0), release_of_level(99)) == (Release(3, 3), Release(4, 4))


#: A reassignment from [1,2] to [1,2,3] with broker 2 out of sync: broker 3 has caught up.
MOVING: Final = partition(0, (1, 2, 3), (1,), adding_replicas=(3,))
PENDING: Final[dict[str, Any]] = {"isr": (1, 3)}
COMPLETE: Final[dict[str, Any]] = {"isr": (1, 3), "adding_replicas": ()}


@pytest.mark.parametrize("release, complete", [("3.7", True), ("3.8", False), ("4.2", False), ("4.3", True)])
@pytest.mark.parametrize("of_controller", [False, True])
def test_shadow_follows_the_rules_of_the_release(release: str, complete: bool, of_controller: bool) -> None:
    """The release is that of the active controller, or of the brokers if no controller is registered."""
    for fields, equal in ((COMPLETE, complete), (PENDING, not complete)):
        level = LEVELS[release]
        log = ScenarioLog([])
        log.state = metadata_with([MOVING], supported=33 if of_controller else level, min_isr=1)
        if of_controller:
            replay(log.state, registered(log.leader_id, level), 50)
        change = PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, **fields)
        log.batches = [CommittedBatch(100, 0, log.leader_id, 1, (CommittedRecord(100, change, 2),))]
        shadow = LogShadow(log, KraftSettings(), knows_unclean=True)
        shadow.open(from_start=True)
        (comparison,) = [*shadow.poll(), *shadow.finish()]
        assert (comparison.differences == []) == equal, (fields, comparison)


@pytest.mark.parametrize("level", LEVELS.values())
def test_cause_of_a_change_by_an_earlier_release(level: int) -> None:
    """The log shows the release of now, and the change may be older."""
    moving = partition(
        0,
        (1, 2, 3),
        (1,),
        adding_replicas=(3,),
        removing_replicas=(1,),
        directories=tuple(directory(broker_id) for broker_id in (1, 2, 3)),
    )
    metadata = metadata_with([moving], supported=level, min_isr=1)
    completed = {
        "isr": (3,),
        "leader": 3,
        "replicas": (2, 3),
        "adding_replicas": (),
        "removing_replicas": (),
        "directories": (directory(2), directory(3)),
    }
    for fields in (completed, {"isr": (1, 3)}):
        change = PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, **fields)
        assert [cause.event for cause in explain_change([metadata], change, [])] == [ALTERED]
