"""Updates of feature levels on a KRaft cluster: who blocks them, what they change, and unregistration."""

from __future__ import annotations

from uuid import UUID

import pytest
from msgspec.structs import replace

from kframe.core.kraft.replay import replay
from kframe.errors import InputError
from kframe.model.kraft.records import ControllerFeature, RegisterControllerRecord
from kframe.snapshot import Snapshot, Source
from kframe.whatif import WhatIf
from kframe.whatif.results.feature_update import FeatureBlocker, RecordVersions
from tests.whatif.kraft_samples import features_of, metadata_with, partition

VERSION = "metadata.version"
NEW = 30


def cluster(
    level: int,
    controllers: dict[int, int],
    *,
    supported: int = NEW,
    stale_broker: int | None = None,
    known_voters: tuple[int, ...] | None = None,
) -> WhatIf:
    """Brokers 1 to 4 that support ``supported``, and controllers by the highest level that each supports. 90 is active.

    ``stale_broker``: broker 4 is fenced, and supports this level only.
    """
    metadata = metadata_with([partition(0, (1, 2), (1, 2))], elr=False, level=level, supported=supported)
    if stale_broker is not None:
        stale = replace(metadata.brokers.registrations[4], fenced=True, features=features_of(stale_broker))
        metadata.brokers.register(stale)
    for controller_id, highest in controllers.items():
        feature = ControllerFeature(name=VERSION, min_supported_version=1, max_supported_version=highest)
        record = RegisterControllerRecord(
            controller_id=controller_id,
            incarnation_id=UUID(int=controller_id),
            zk_migration_ready=False,
            end_points=(),
            features=(feature,),
        )
        replay(metadata, record, 50)
    source = Source("kraft", "sample")
    return WhatIf(Snapshot.from_metadata(metadata, source=source, controller_id=90, voters=known_voters))


def blocker(node_id: int, role: str, state: str, level: int, highest: int, lowest: int = 1) -> FeatureBlocker:
    return FeatureBlocker(node_id, role, state, VERSION, level, lowest, highest)  # type: ignore[arg-type]


#: Present and requested level, controllers, voters, expected blockers, and the ends of the notes.
REFUSED = (
    # Controllers of an earlier node pool are neither processes nor voters, but registered (Strimzi 11039).
    (19, 21, {3: 19, 5: 19, 90: 21, 91: 21}, (90, 91),
     [blocker(3, "controller", "not a voter", 21, 19), blocker(5, "controller", "not a voter", 21, 19)],
     "of a release that supports the level, replaces the registration"),
    (19, 21, {3: 19, 90: 21}, (), [blocker(3, "controller", "registered", 21, 19)],
     "that needs metadata.version 4.4-IV2, and the cluster has 3.7-IV4"),
    (19, 21, {3: 19, 90: 21}, (3, 90), [blocker(3, "controller", "voter", 21, 19)], None),
    (19, 21, {90: 19, 91: 21}, (), [blocker(90, "controller", "active", 21, 19)], None),
    (33, 34, {3: 33, 90: 34}, (90,), [blocker(3, "controller", "not a voter", 34, 33)],
     "kafka-cluster unregister-controller removes a controller that is gone: 3"),
)  # fmt: skip


@pytest.mark.parametrize("level, requested, controllers, voters, blockers, note", REFUSED)
def test_registered_controllers_block_levels_that_they_do_not_support(
    level: int,
    requested: int,
    controllers: dict[int, int],
    voters: tuple[int, ...],
    blockers: list[FeatureBlocker],
    note: str | None,
) -> None:
    outcome = cluster(level, controllers, supported=requested).update_features({VERSION: requested}, voters=voters)
    assert outcome.feature_update is not None
    assert outcome.feature_update.blockers == blockers
    assert not outcome.changed
    assert "only these nodes block the request" in outcome.notes[0]
    assert [note is not None and note in text for text in outcome.notes[1:]] == [True] * (note is not None)
    if voters:
        known = cluster(level, controllers, supported=requested, known_voters=voters)
        assert known.update_features({VERSION: requested}).feature_update == outcome.feature_update


def test_stated_voters_must_be_those_of_the_snapshot() -> None:
    whatif = cluster(19, {3: 19, 90: 21}, known_voters=(3, 90))
    with pytest.raises(InputError, match="voters: found 3, expected those of the snapshot: 3, 90"):
        whatif.update_features({VERSION: 21}, voters=(3,))


def test_fenced_broker_that_is_gone_blocks_a_level_until_it_is_unregistered() -> None:
    """Strimzi 10296."""
    whatif = cluster(14, {}, supported=19, stale_broker=14)
    refused = whatif.update_features({VERSION: 19})
    assert refused.feature_update is not None
    assert refused.feature_update.blockers == [blocker(4, "broker", "fenced", 19, 14, 7)]
    assert refused.notes[-1] == "kafka-cluster unregister removes a broker that is gone: 4"
    outcome = whatif.unregister([4])
    assert {record.record: record.count for record in outcome.records or ()} == {"UnregisterBroker": 1}
    assert whatif.update_features({VERSION: 19}).changed


def test_stale_controller_is_unregistered_from_level_33_on() -> None:
    whatif = cluster(33, {3: 33, 90: 34}, supported=34)
    assert whatif.unregister(stale_controllers=[3]).changed
    outcome = whatif.update_features({VERSION: 34})
    assert outcome.feature_update is not None
    assert (outcome.feature_update.blockers, outcome.changed) == ([], True)


@pytest.mark.parametrize(
    "level, controller, error",
    [(30, 3, "UNSUPPORTED_VERSION"), (33, 90, "INVALID_REQUEST")],
)
def test_refused_unregistration_of_a_controller_changes_nothing(level: int, controller: int, error: str) -> None:
    outcome = cluster(level, {3: 33, 90: 33}, supported=33).unregister(stale_controllers=[controller])
    response = outcome.steps[0].response
    assert response is not None
    assert (response.error.name, outcome.changed) == (error, False)


@pytest.mark.parametrize(
    "brokers, controllers, message",
    [
        ([], [], "found no node, expected at least one broker or controller"),
        ([9], [], "brokers: found node 9, expected registered ones: 1, 2, 3, 4"),
        ([], [4], "stale_controllers: found node 4, expected registered ones: 3"),
        ([1, 1], [], "brokers: found node 1 twice"),
    ],
)
def test_unregistration_names_registered_nodes(brokers: list[int], controllers: list[int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        cluster(33, {3: 33}).unregister(brokers, controllers)


@pytest.mark.parametrize(
    "before, after, records, rules",
    [
        (14, 19, [RecordVersions("RegisterBroker", 2, 3), RecordVersions("Partition", 0, 1),
                  RecordVersions("PartitionChange", 0, 1), RecordVersions("BrokerRegistrationChange", 1, 2),
                  RecordVersions("RegisterController", None, 0)], ["3.7-IV0 begins", "3.7-IV2 begins"]),
        (25, 29, [], []),
        (22, 25, [RecordVersions("Partition", 1, 2), RecordVersions("PartitionChange", 1, 2),
                  RecordVersions("ClearElr", None, 0)], ["4.0-IV1 begins"]),
        (30, 29, [RecordVersions("RegisterBroker", 4, 3), RecordVersions("BrokerRegistrationChange", 3, 2)],
         ["4.3-IV0 ends"]),
    ],
)  # fmt: skip
def test_update_names_records_and_rules_that_change(
    before: int, after: int, records: list[RecordVersions], rules: list[str]
) -> None:
    update = cluster(before, {90: 33}, supported=33).update_features({VERSION: after}).feature_update
    assert update is not None
    assert update.records == records
    assert [f"{rule.name} {rule.change}" for rule in update.rules] == rules


def test_supported_levels_are_those_of_the_active_controller_or_its_release() -> None:
    metadata = metadata_with([partition(0, (1, 2), (1, 2))], level=21, supported=33, elr=False)
    snapshot = Snapshot.from_metadata(metadata, source=Source("kraft", "sample"))
    for release, accepted in (("3.9", False), ("4.0", True), ("4.4", True)):
        outcome = WhatIf(snapshot, {"kframe.kraft.release": release}).update_features({VERSION: 25})
        assert outcome.changed == accepted, release
