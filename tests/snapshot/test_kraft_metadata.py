"""Snapshots of KRaft clusters: their metadata, the directory format, and what is assumed where a text says nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final
from uuid import UUID

import numpy as np
import pytest
from msgspec.structs import replace

from kframe.core.kraft.replay import replay
from kframe.errors import InputError
from kframe.model.arrays import Ragged
from kframe.model.kraft import records
from kframe.model.kraft.brokers import BrokerRegistration
from kframe.model.kraft.columns import PartitionLists
from kframe.model.kraft.ids import ELR_VERSION, METADATA_VERSION
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.views import partition_record
from kframe.scenario.kraft.format import read_kraft_scenario
from kframe.scenario.kraft.runner import KraftScenarioRunner
from kframe.snapshot import Snapshot, Source, generate, read_snapshot, write_snapshot
from tests.kraft.golden import scenario_parameters

SOURCE: Final = Source("kraft", "node-1")
DIRECTORIES: Final = (UUID(int=500), UUID(int=700))


def golden_metadata(path: Path) -> ClusterMetadata:
    runner = KraftScenarioRunner(read_kraft_scenario(path))
    runner.play()
    return runner.metadata


def small_cluster() -> ClusterMetadata:
    """Two brokers, two partitions, and a record of each type that no table has."""
    endpoint = records.BrokerEndpoint(name="SASL", host="h", port=9093, security_protocol=3)
    feature = records.BrokerFeature(name=METADATA_VERSION, min_supported_version=7, max_supported_version=33)
    metadata = ClusterMetadata()
    log: list[records.MetadataRecord] = [
        records.FeatureLevelRecord(name=METADATA_VERSION, feature_level=30),
        records.FeatureLevelRecord(name=ELR_VERSION, feature_level=1),
        *(
            records.RegisterBrokerRecord(
                broker_id=broker_id, incarnation_id=UUID(int=broker_id), broker_epoch=broker_id + 10,
                end_points=(endpoint,), features=(feature,), rack="r", fenced=broker_id == 2,
                log_dirs=(DIRECTORIES[broker_id - 1],), cordoned_log_dirs=(),
            )
            for broker_id in (1, 2)
        ),
        records.TopicRecord(name="t", topic_id=UUID(int=1 << 90)),
        *(
            records.PartitionRecord(
                partition_id=partition, topic_id=UUID(int=1 << 90), replicas=(1, 2), isr=(1,), removing_replicas=(),
                adding_replicas=(), leader=1, leader_epoch=3, partition_epoch=7, directories=DIRECTORIES,
                eligible_leader_replicas=(2,), last_known_elr=(),
            )
            for partition in (1, 0)
        ),
        records.ConfigRecord(resource_type=2, resource_name="t", name="min.insync.replicas", value="2"),
        records.ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="1"),
        records.ConfigRecord(resource_type=4, resource_name="2", name="log.cleaner.threads", value="4"),
        records.ClientQuotaRecord(
            entity=(records.EntityData(entity_type="user", entity_name=None),), key="producer_byte_rate", value=1.5,
            remove=False,
        ),
        records.AccessControlEntryRecord(
            id=UUID(int=9), resource_type=2, resource_name="t", pattern_type=3, principal="User:a", host="*",
            operation=3, permission_type=3,
        ),
        records.UserScramCredentialRecord(
            name="a", mechanism=1, salt=b"\x00\xff", stored_key=b"k", server_key=b"s", iterations=4096
        ),
        records.DelegationTokenRecord(
            owner="a", requester="a", renewers=("b",), issue_timestamp=1, max_timestamp=2, expiration_timestamp=2,
            token_id="x",
        ),
        records.RegisterControllerRecord(
            controller_id=9, incarnation_id=UUID(int=99), zk_migration_ready=False, end_points=(), features=()
        ),
        records.ProducerIdsRecord(broker_id=1, broker_epoch=11, next_producer_id=1_000),
    ]  # fmt: skip
    for offset, record in enumerate(log):
        replay(metadata, record, offset)
    return metadata


def saved_and_read(snapshot: Snapshot, path: Path) -> Snapshot:
    write_snapshot(snapshot, path)
    return read_snapshot(path)


@pytest.mark.parametrize("path", scenario_parameters())
def test_golden_kraft_image_round_trip_is_equal(path: Path, tmp_path: Path) -> None:
    snapshot = Snapshot.from_metadata(golden_metadata(path), source=SOURCE, cluster_id="c", offset=7)
    reread = Snapshot.from_metadata(snapshot.to_metadata(), source=SOURCE, cluster_id="c", offset=7)
    assert reread.digest() == snapshot.digest()
    assert saved_and_read(snapshot, tmp_path / "saved").digest() == snapshot.digest()
    assert snapshot.assumptions == snapshot.unknown == ()


def test_kraft_metadata_is_saved_and_read(tmp_path: Path) -> None:
    metadata = small_cluster()
    snapshot = Snapshot.from_metadata(metadata, source=SOURCE, offset=40, voters=(7, 8))
    reread = saved_and_read(snapshot, tmp_path / "saved")
    assert (reread.kraft, reread.digest()) == (snapshot.kraft, snapshot.digest())
    saved = reread.to_metadata()
    assert saved.brokers.registrations == metadata.brokers.registrations
    for name in ("features", "configs", "controllers", "quotas", "acls", "scram", "tokens", "next_producer_id"):
        assert getattr(saved, name) == getattr(metadata, name), name
    for partition in (0, 1):
        rows = saved.row("t", partition), metadata.row("t", partition)
        assert rows[0] is not None
        assert rows[1] is not None
        assert partition_record(saved, rows[0]) == partition_record(metadata, rows[1])
    assert saved.topics.min_isr.tolist() == [2]


@pytest.mark.parametrize(
    "change",
    [
        lambda metadata: metadata.features.pop(ELR_VERSION),
        lambda metadata: metadata.brokers.register(replace(metadata.brokers.registrations[1], fenced=True)),
        lambda metadata: metadata.partitions.replace_lists(0, {"directory": [2, 2]}),
        lambda metadata: metadata.acls.clear(),
        lambda metadata: metadata.partitions.replace_lists(0, {"last_known_elr": [0]}),
    ],
    ids=["feature", "fenced broker", "lost directory", "no ACL", "last known ELR"],
)
def test_digest_covers_facts_of_kraft(change: Callable[[ClusterMetadata], object]) -> None:
    changed = small_cluster()
    change(changed)
    digests = [Snapshot.from_metadata(metadata, source=SOURCE).digest() for metadata in (small_cluster(), changed)]
    assert digests[0] != digests[1]


def test_partition_with_three_replicas_takes_at_most_80_bytes() -> None:
    count = 1_000
    replicas = Ragged(np.arange(0, 3 * count + 1, 3, dtype=np.int32), np.tile(np.arange(3, dtype=np.int32), count))
    metadata = ClusterMetadata()
    metadata.features[ELR_VERSION] = 1
    for broker_id in range(3):
        metadata.brokers.register(
            BrokerRegistration(
                broker_id=broker_id,
                broker_epoch=1,
                incarnation_id=UUID(int=1),
                fenced=False,
                directories=(UUID(int=1_000 + broker_id),),
            )
        )
    topic = metadata.topics.add("t", UUID(int=1 << 80))
    none = Ragged.empty(count)
    metadata.partitions.append(
        PartitionLists(
            replicas=replicas,
            isr=replicas,
            directories=Ragged(replicas.offsets, replicas.values + 3),
            elr=none,
            last_known_elr=none,
            adding=none,
            removing=none,
        ),
        {"topic": np.full(count, topic, np.int32), "partition": np.arange(count, dtype=np.int32)},
    )
    metadata.topics.set_rows(topic, np.arange(count, dtype=np.int32))
    snapshot = Snapshot.from_metadata(metadata, source=SOURCE)
    assert snapshot.partitions.nbytes <= 80 * count
    assert snapshot.to_metadata().partitions.nbytes <= 80 * count


DESCRIBE: Final = (
    "Topic: t\tTopicId: AAAAAAAAAAAAAAAAAAAAAQ\tPartitionCount: 1\tReplicationFactor: 3"
    "\tConfigs: min.insync.replicas=2\n"
    "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2\tElr: {elr}\tLastKnownElr: {elr}\n"
)


def described(tmp_path: Path, elr: str) -> Snapshot:
    path = tmp_path / "d.txt"
    path.write_text(DESCRIBE.format(elr=elr))
    return read_snapshot(path)


def test_listing_with_elrs_converts_to_kraft_metadata(tmp_path: Path) -> None:
    snapshot = described(tmp_path, "")
    metadata = snapshot.to_metadata()
    assert (snapshot.mode, metadata.elr_enabled) == ("kraft", True)
    assert [registration.fenced for registration in metadata.brokers.registrations.values()] == [False, False, True]
    assumed = [text.split(" ")[0] for text in snapshot.assumptions]
    assert assumed == [
        "cluster.features",
        "cluster.configs",
        "brokers.registered",
        "brokers.registration",
        "partitions.leader_epoch",
        "partitions.partition_epoch",
        "partitions.leader_recovery_state",
        "partitions.directories",
        "partitions.adding_replicas:",
        "partitions.removing_replicas:",
    ]


def test_stated_mode_drops_columns_that_a_kraft_cluster_does_not_have(tmp_path: Path) -> None:
    stated = generate(300, 4).with_mode("kraft")
    assert saved_and_read(stated, tmp_path / "saved").digest() == stated.digest()


def test_mode_of_a_listing_can_be_stated(tmp_path: Path) -> None:
    snapshot = described(tmp_path, "N/A")
    stated = snapshot.with_mode("kraft")
    assert (snapshot.mode, stated.mode) == ("zookeeper", "kraft")
    assert not stated.to_metadata().elr_enabled
    assert saved_and_read(stated, tmp_path / "saved").digest() == stated.digest()
    with pytest.raises(InputError, match="mode: found zookeeper, expected kraft"):
        stated.with_mode("zookeeper")
    with pytest.raises(InputError, match="mode: found zookeeper"):
        snapshot.to_metadata()
