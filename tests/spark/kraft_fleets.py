"""Random KRaft clusters in states that a controller can be in, and scenarios of every verb."""

from __future__ import annotations

import json
from random import Random
from typing import Any
from uuid import UUID

from kframe.core.kraft.replay import replay
from kframe.model.kraft import records
from kframe.model.kraft.directory_ids import LOST, UNASSIGNED
from kframe.model.kraft.ids import ELR_VERSION, METADATA_VERSION, MetadataLevel
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.snapshot import Snapshot, Source
from tests.spark.outcomes import scenario
from tests.whatif.kraft_samples import FEATURES, directory

IDS = (1, 2, 3, 5, 8)
LEVELS = (MetadataLevel.DIRECTORIES, MetadataLevel.ELR, MetadataLevel.LATEST)


def kraft_snapshot(random: Random) -> Snapshot:
    """Five brokers, some fenced, shutting down, cordoned or without registration, and up to four topics."""
    metadata = ClusterMetadata()
    for broker_id in IDS:
        metadata.brokers.index_of(broker_id)
    level = random.choice(LEVELS)
    elr = level >= MetadataLevel.ELR and random.random() < 0.7
    log: list[records.MetadataRecord] = [
        records.FeatureLevelRecord(name=METADATA_VERSION, feature_level=level),
        records.FeatureLevelRecord(name=ELR_VERSION, feature_level=int(elr)),
        *(_registration(random, broker_id) for broker_id in IDS if random.random() < 0.95),
    ]
    for topic in range(random.randint(1, 4)):
        log.append(records.TopicRecord(name=f"t{topic}", topic_id=UUID(int=(topic + 1) << 90)))
        log += _configs(random, 2, f"t{topic}")
        log += [_partition(random, topic, number, elr) for number in range(random.randint(1, 5))]
    log += [*_configs(random, 4, ""), *_configs(random, 4, str(random.choice(IDS)))]
    log.append(
        records.ClientQuotaRecord(
            entity=(records.EntityData(entity_type="user", entity_name=None),),
            key="producer_byte_rate",
            value=1.5,
            remove=False,
        )
    )
    for offset, record in enumerate(log):
        replay(metadata, record, offset)
    return Snapshot.from_metadata(
        metadata,
        source=Source("kraft", "drawn"),
        cluster_id="c",
        controller_id=random.choice(IDS),
        controller_epoch=4,
        offset=len(log),
        voters=random.choice([None, (90, 91, 92)]),
    )


def _registration(random: Random, broker_id: int) -> records.RegisterBrokerRecord:
    directories = (directory(broker_id), directory(broker_id, 1))
    return records.RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=UUID(int=broker_id),
        broker_epoch=broker_id + 10,
        features=FEATURES,
        end_points=(records.BrokerEndpoint(name="PLAIN", host="h", port=9092, security_protocol=0),),
        rack=random.choice(["a", "b", None]),
        fenced=random.random() < 0.2,
        log_dirs=directories,
        in_controlled_shutdown=random.random() < 0.15,
        cordoned_log_dirs=random.choice([None, (), directories[:1], directories]),
    )


def _configs(random: Random, kind: int, name: str) -> list[records.MetadataRecord]:
    configs = {
        "min.insync.replicas": str(random.randint(1, 3)),
        "unclean.leader.election.enable": random.choice(["true", "false"]),
    }
    return [
        records.ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value)
        for key, value in configs.items()
        if random.random() < 0.4
    ]


def _partition(random: Random, topic: int, number: int, elr: bool) -> records.PartitionRecord:
    replicas = random.sample(IDS, random.randint(1, 4))
    isr = [broker_id for broker_id in replicas if random.random() < 0.6] or ([] if elr else replicas[:1])
    others = [broker_id for broker_id in replicas if broker_id not in isr]
    eligible = [broker_id for broker_id in others if random.random() < 0.5] if elr else []
    moving = [broker_id for broker_id in replicas[1:] if random.random() < 0.2]
    adding = tuple(broker_id for broker_id in moving if broker_id in others) if number else ()
    removing = tuple(broker_id for broker_id in moving if broker_id not in others) if number else ()
    leader = random.choice([*isr, *isr, -1]) if isr else -1
    recovering = leader >= 0 and len(isr) == 1 and random.random() < 0.2
    return records.PartitionRecord(
        partition_id=number,
        topic_id=UUID(int=(topic + 1) << 90),
        replicas=tuple(replicas),
        isr=tuple(isr),
        leader=leader,
        leader_epoch=random.randint(0, 9),
        partition_epoch=random.randint(0, 99),
        leader_recovery_state=int(recovering),
        adding_replicas=adding,
        removing_replicas=removing,
        directories=tuple(
            random.choice([directory(broker_id), directory(broker_id, 1), UNASSIGNED, LOST]) for broker_id in replicas
        ),
        eligible_leader_replicas=tuple(eligible),
        last_known_elr=(replicas[0],) if elr and not isr and not eligible else (),
    )


def kraft_scenarios(random: Random, snapshot: Snapshot) -> list[dict[str, Any]]:
    """One scenario of every verb, by name."""
    up = [facts.broker_id for facts in snapshot.brokers if facts.registration and not facts.registration.fenced]
    known = [facts.broker_id for facts in snapshot.brokers if facts.registration]
    failing = random.sample(up, min(len(up), random.randint(1, 2)))
    topic, partitions = snapshot.topics.names[0], int(snapshot.topics.partition_counts[0])
    plan = {
        "version": 1,
        "partitions": [
            {"topic": topic, "partition": number, "replicas": random.sample(IDS, random.randint(1, 3))}
            for number in range(partitions)
        ],
    }
    return [
        scenario("fail", failing, name="fail", together=random.random() < 0.5),
        scenario("shutdown", failing, name="shutdown", together=random.random() < 0.5),
        scenario("restart", random.sample(known, 2), name="restart", clean=random.choice([None, True, False])),
        scenario("fence", failing, name="fence"),
        scenario("unfence", known[:2], name="unfence"),
        scenario("elect", election="preferred", name="preferred"),
        scenario("elect", election="unclean", name="unclean", names=[f"{topic}-0", f"{topic}-{partitions - 1}"]),
        scenario("reassign", name="reassign", plan=json.dumps(plan)),
        scenario("create", name="create", names=["new"], partitions=3, replication_factor=2, seed=random.randint(0, 9)),
        scenario("delete", name="delete", names=[topic]),
        scenario("directory", failing[:1], name="directory", names=[str(directory(failing[0] if failing else 1))]),
        scenario("feature", name="feature", names=[f"{ELR_VERSION}={random.randint(0, 1)}"]),
    ]
